"""The exact oracle of splits: distances and gains of whole numbers, compared without rounding.

A distance is held as a number that orders as it does: its square for windows as they are, the
correlation times its magnitude, less, for normalised ones. A gain is held as a ratio of products of
n^n, which is larger where the gain is. Both are fractions, and equal where the numbers are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise


def power(n):
    """N to the n, 1 at 0."""
    return n**n


def gain_of(left, counts, weights):
    """A fraction that orders cuts of one node as their information gains do."""
    right = [count - here for here, count in zip(left, counts, strict=True)]
    found = Fraction(1)
    for side in (left, right):
        each = [number * weight for number, weight in zip(side, weights, strict=True)]
        found *= Fraction(math.prod(map(power, each)), power(sum(each)))
    return found


def similarity(x, y):
    """The signed square of the correlation of two windows; of constant ones what stands for it."""
    n = len(x)
    xx, yy = (n * sum(v * v for v in w) - sum(w) ** 2 for w in (x, y))
    if xx == 0 or yy == 0:
        return Fraction(1) if xx == yy else Fraction(1, 4)
    xy = n * sum(v * w for v, w in zip(x, y, strict=True)) - sum(x) * sum(y)
    return Fraction(xy * abs(xy), xx * yy)


@cache
def exact_distance(query, points):
    """A fraction that orders as the distance of a query to a series does; both are of int."""
    n = len(query)
    windows = [points[start : start + n] for start in range(len(points) - n + 1)]
    if n < 3:
        square = min(sum((v - w) ** 2 for v, w in zip(query, one, strict=True)) for one in windows)
        return Fraction(square, n)
    return -max(similarity(query, one) for one in windows)


def as_float(distance, length):
    """The distance that a fraction stands for."""
    if length < 3:
        return math.sqrt(distance)
    correlation = math.copysign(math.sqrt(abs(distance)), -distance)
    return math.sqrt(max(0.0, 2 - 2 * correlation))


def numbers(labels, often, n_classes):
    """How many of each class there are, where each is there so often."""
    pairs = list(zip(labels, often, strict=True))
    return [sum(m for y, m in pairs if y == c) for c in range(n_classes)]


def cuts(line, length, labels, rules):
    """Every allowed cut of a line: its gain, as `gain_of` has it, and its gap.

    `rules` are the weights of classes, series and weight of a leaf, and how often each series is
    there, all of them once if that is left out.
    """
    weights, leaf, least, *often = rules
    (often,) = often or ([1] * len(labels),)
    counts = numbers(labels, often, len(weights))
    for a, _ in pairwise(sorted(set(line))):
        on_left = [d <= a for d in line]
        here = [m * is_left for m, is_left in zip(often, on_left, strict=True)]
        left = numbers(labels, here, len(weights))
        size = sum(on_left)
        weight = sum(w * m for w, m in zip(weights, left, strict=True))
        rest = sum(w * m for w, m in zip(weights, counts, strict=True)) - weight
        if min(size, len(line) - size) < leaf or min(weight, rest) < least:
            continue
        sides = [[], []]
        for d, is_left, m in zip(line, on_left, often, strict=True):
            sides[not is_left] += [as_float(d, length)] * m
        near, far = (math.fsum(side) / len(side) for side in sides)
        yield gain_of(left, counts, weights), far - near
