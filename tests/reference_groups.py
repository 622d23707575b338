"""The oracle of forests: candidates of nodes measured and judged in plain loops."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from reference_shapelets import best_match
from reference_splits import gain_of

from skts.engines import Splits

#: Distances that differ by less than this share, or normalised ones by less than this, are equal.
EQUAL = 2.0**-36


def cuts_of(line, labels, times, normalized, leaf, n_classes):
    """Every allowed cut of a line: its exact gain, as a fraction, gap, threshold."""
    drawn = sorted(
        (distance, label)
        for distance, label, often in zip(line, labels, times, strict=True)
        for _ in range(often)
    )
    counts = [sum(label == c for _, label in drawn) for c in range(n_classes)]
    total = 0.0
    for distance, _ in drawn:
        total += distance
    left, near = [0] * n_classes, 0.0
    for k, (a, label) in enumerate(drawn[:-1]):
        left[label] += 1
        near += a
        b, size = drawn[k + 1][0], k + 1
        if b == math.inf or not b - a > EQUAL * max(float(normalized), b):
            continue
        if min(size, len(drawn) - size) < leaf:
            continue
        gap = (total - near) / (len(drawn) - size) - near / size
        yield gain_of(left, counts, [1] * n_classes), gap, a + (b - a) / 2


@cache
def whole_log(n, bits):
    """The logarithm of n in units of 2^-bits, as the sum of those of its primes, each rounded."""
    found, prime = 0, 2
    while n > 1:
        while n % prime == 0:
            found += round(math.ldexp(math.log(prime), bits))
            n //= prime
        prime += 1
    return found


def nats_of(goes_left, labels, times, n_classes):
    """The information gain of a split in nats, from whole logarithms."""
    counts = [[0] * n_classes for _ in range(2)]
    for is_left, label, often in zip(goes_left, labels, times, strict=True):
        counts[bool(is_left)][label] += often
    n = sum(times)
    size = max(2, 1 << (n - 1).bit_length())
    bits = min(46, 60 - math.ceil(math.log2(size * math.log(size))))

    def disorder(numbers):
        terms = [number * whole_log(number, bits) for number in (sum(numbers), *numbers)]
        return terms[0] - sum(terms[1:])

    both = [sum(pair) for pair in zip(*counts, strict=True)]
    gain = disorder(both) - disorder(counts[0]) - disorder(counts[1])
    return gain / math.ldexp(float(n), bits)


def nothing_gained(labels, times, n_classes):
    """The fraction of a cut that gains nothing: that of all series on one side."""
    counts = [
        sum(often for label, often in zip(labels, times, strict=True) if label == c)
        for c in range(n_classes)
    ]
    return gain_of(counts, counts, [1] * n_classes)


def best_split(distances, lengths, labels, times, leaf, ways, most):
    """Literals of a node: candidate, way, gap, threshold, and which members are on the left."""
    n_classes = max(labels) + 1
    key = nothing_gained(labels, times, n_classes), math.inf
    before, base, found = None, False, []
    while len(found) < (most if ways else 1):
        best = None
        for k, own in enumerate(distances):
            for way in ways if found else ("first",):
                line = own
                if way != "first":
                    line = [
                        (max if way == "and" else min)(*pair)
                        for pair in zip(before, own, strict=True)
                    ]
                normalized = lengths[k] >= 3 or base
                for gain, gap, threshold in cuts_of(
                    line, labels, times, normalized, leaf, n_classes
                ):
                    if (gain, gap) > key:
                        key, best = (gain, gap), (k, way, gap, threshold, line)
        if best is None:
            break
        k, way, gap, threshold, before = best
        base = base or lengths[k] >= 3
        found.append((k, way, gap, threshold, before))
    return found


class GroupOracle:
    """Groups of candidates and series in plain loops behind the contract of engines."""

    def group_matches(self, reduction, tile, cancel):
        groups, found = reduction.groups, []
        for g in range(tile.row, tile.row_stop):
            for k in range(groups.candidates_of[g], groups.candidates_of[g + 1]):
                row, channel, start, length = groups.pieces[k].tolist()
                query = groups.source.values[row, channel, start : start + length]
                for i in range(groups.members_of[g], groups.members_of[g + 1]):
                    b = groups.members[i]
                    points = groups.series.values[b, channel, : groups.series.lengths[b]]
                    best = best_match(tuple(query.tolist()), tuple(points.tolist()), length >= 3)
                    found.append(best[0] / math.sqrt(length))
        return np.array(found)

    def group_splits(self, reduction, tile, cancel):
        """Whole numbers of series are compared exactly; weights as `Criterion` has them."""
        groups, rules = reduction.groups, reduction.rules
        distances = self.group_matches(reduction, tile, cancel).tolist()
        begin, stop = (groups.members_of[row] for row in (tile.row, tile.row_stop))
        found = Splits.empty(tile.row_stop - tile.row, rules.most, stop - begin)
        for row, g in enumerate(range(tile.row, tile.row_stop)):
            members = slice(groups.members_of[g], groups.members_of[g + 1])
            labels, times = rules.labels[members].tolist(), rules.times[members].tolist()
            lengths = groups.pieces[groups.candidates_of[g] : groups.candidates_of[g + 1], 3]
            n = len(labels)
            lines = [distances[k * n : (k + 1) * n] for k in range(len(lengths))]
            del distances[: n * len(lengths)]
            leaf = max(rules.leaf, math.ceil(rules.least[g] - 1e-9))
            assert rules.class_weight is None, "the oracle counts series"
            split = best_split(lines, lengths.tolist(), labels, times, leaf, rules.ways, rules.most)
            for literal, (k, way, gap, threshold, line) in enumerate(split):
                found.chosen[row, literal] = k
                found.way[row, literal] = ("first", "and", "or").index(way)
                left = np.array(line) <= threshold
                found.gain[row, literal] = nats_of(left, labels, times, max(labels) + 1)
                found.gap[row, literal], found.threshold[row, literal] = gap, threshold
                found.left[members.start - begin : members.stop - begin] = left
        return found
