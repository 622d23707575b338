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


def cuts(line, length, labels, rules):
    """Every allowed cut of a line: its gain, as `gain_of` has it, and its gap.

    `rules` are the weights of classes, series and weight of a leaf.
    """
    weights, leaf, least = rules
    classes = range(len(weights))
    counts = [labels.count(c) for c in classes]
    for a, _ in pairwise(sorted(set(line))):
        on_left = [d <= a for d in line]
        left = [
            sum(here and y == c for here, y in zip(on_left, labels, strict=True)) for c in classes
        ]
        size = sum(left)
        weight = sum(w * m for w, m in zip(weights, left, strict=True))
        rest = sum(w * m for w, m in zip(weights, counts, strict=True)) - weight
        if min(size, len(line) - size) < leaf or min(weight, rest) < least:
            continue
        sides = [[], []]
        for d, here in zip(line, on_left, strict=True):
            sides[not here].append(as_float(d, length))
        near, far = (math.fsum(side) / len(side) for side in sides)
        yield gain_of(left, counts, weights), far - near
