"""The best cut among the candidates of many nodes: the choices of `Criterion`, compiled.

Each series is there as often as it was drawn. Where all weigh the same, gains are sums of whole
numbers, as those of `Criterion`, and gaps the same sums in the same order: equal bits. Where
classes weigh differently, gains are rounded; a group whose choice depends on a rounding that
float64 leaves open is left to `Criterion`, which has more digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.constants import TOLERANCE
from .kernels import kernel

__all__ = ["ClassWeights", "Lines", "judge"]

#: Pieces of so many keys are sorted by insertion.
_RUN = 8


class Lines(NamedTuple):
    """Distances and series of groups, as `Groups` of ``families/shapelets/groups.py`` has them.

    Attributes
    ----------
    distances : ndarray of float64
        Group by group, candidate by candidate.
    lengths : ndarray of shape (n_candidates,), int64
        Points of candidates.
    candidates_of, members_of : ndarray of shape (n_groups + 1,), int64
        Where those of each group begin.
    labels, times : ndarray of shape (n_members,), int64
        The class of each member, and how often it is there.
    """

    distances: np.ndarray
    lengths: np.ndarray
    candidates_of: np.ndarray
    members_of: np.ndarray
    labels: np.ndarray
    times: np.ndarray


class ClassWeights(NamedTuple):
    """Weights of classes as `Criterion.weighing` has them; of no groups where all are 1.

    Attributes
    ----------
    whole : ndarray of shape (n_groups, n_classes), int64
        Weights as whole numbers; all are 0 in a group whose series weigh the same.
    total : ndarray of shape (n_groups,), int64
        The weight of a group.
    least : ndarray of shape (n_groups,), float64
        Share of it that must lie on either side.
    unit, unit_of_terms : float
        Units of a gain and of terms, of a nat.
    wrong : float
        By how much gains may be off before they are rounded.
    """

    whole: np.ndarray
    total: np.ndarray
    least: np.ndarray
    unit: float
    unit_of_terms: float
    wrong: float


@kernel
def _sort(keys, order, room):
    """Write the order of some keys: pieces by insertion, then merged, equal keys as they come."""
    n = keys.size
    for first in range(0, n, _RUN):
        for i in range(first, min(first + _RUN, n)):
            at = i
            while at > first and keys[order[at - 1]] > keys[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    width = _RUN
    while width < n:
        for first in range(0, n, 2 * width):
            middle, stop = min(first + width, n), min(first + 2 * width, n)
            a, b = first, middle
            for k in range(first, stop):
                if b >= stop or (a < middle and keys[order[a]] <= keys[order[b]]):
                    room[k] = order[a]
                    a += 1
                else:
                    room[k] = order[b]
                    b += 1
        for k in range(n):
            order[k] = room[k]
        width *= 2


@kernel
def _best_cut(distances, order, labels, times, counts, terms, floor, leaf, left):
    """Gain, gap and threshold of the best cut of one order line; a gain of -1 where there is none.

    `terms` are n log(n) of whole numbers, as integers; `left` is scratch, a number for each class.
    """
    n_classes, size = counts.size, 0
    whole, total = 0, 0.0
    for c in range(n_classes):
        size += counts[c]
        whole -= terms[counts[c]]
        left[c] = 0
    whole += terms[size]
    for k in range(order.size):
        for _ in range(times[order[k]]):
            total += distances[order[k]]
    best_gain, best_gap, threshold = -1, -np.inf, np.nan
    # sums over classes, of numbers on the left and on the right
    here, there, on_left, near = 0, terms[size] - whole, 0, 0.0
    for k in range(order.size - 1):
        i = order[k]
        c, a, b = labels[i], distances[i], distances[order[k + 1]]
        before = left[c]
        after = before + times[i]
        here += terms[after] - terms[before]
        there += terms[counts[c] - after] - terms[counts[c] - before]
        left[c] = after
        on_left += times[i]
        for _ in range(times[i]):
            near += a
        if not (b - a > TOLERANCE * max(floor, b)):
            continue
        if on_left < leaf or size - on_left < leaf:
            continue
        gain = whole - (terms[on_left] - here) - (terms[size - on_left] - there)
        if gain < best_gain:
            continue
        gap = (total - near) / (size - on_left) - near / on_left
        if gain > best_gain or gap > best_gap:
            best_gain, best_gap, threshold = gain, gap, a + (b - a) / 2
    return best_gain, best_gap, threshold


@kernel(forceinline=True)
def _entropy(share):
    """X ln x, 0 at 0."""
    return share * np.log(share) if share > 0 else 0.0


@kernel
def _best_weighted_cut(
    distances, order, labels, times, counts, weights, group, floor, leaf, left, terms
):
    """As `_best_cut`, where classes weigh differently; and whether its gain may be off by 1.

    `left` and `terms` are scratch, numbers for each class.
    """
    whole, whole_weight, unit = weights.whole[group], weights.total[group], weights.unit_of_terms
    size, total = 0, 0.0
    for c in range(counts.size):
        size += counts[c]
        left[c] = 0
        terms[c] = np.int64(np.rint(unit * _entropy(counts[c] * whole[c] / whole_weight)))
    for k in range(order.size):
        for _ in range(times[order[k]]):
            total += distances[order[k]]
    best_gain, best_gap, threshold, open_gain = -1, -np.inf, np.nan, -1
    # terms of classes on both sides, less those of the group; sums of whole numbers
    both, weight, on_left, near = 0, 0, 0, 0.0
    for k in range(order.size - 1):
        i = order[k]
        c, a, b = labels[i], distances[i], distances[order[k + 1]]
        left[c] += times[i]
        here, there = left[c] * whole[c], (counts[c] - left[c]) * whole[c]
        term = np.int64(np.rint(unit * _entropy(here / whole_weight)))
        term += np.int64(np.rint(unit * _entropy(there / whole_weight)))
        both += term - terms[c]
        terms[c] = term
        weight += times[i] * whole[c]
        on_left += times[i]
        for _ in range(times[i]):
            near += a
        if not (b - a > TOLERANCE * max(floor, b)):
            continue
        share = weight / whole_weight
        if on_left < leaf or size - on_left < leaf or min(share, 1 - share) < weights.least[group]:
            continue
        rough = weights.unit * (both / unit - _entropy(share) - _entropy(1 - share))
        gain = np.int64(np.rint(rough))
        if abs(rough - np.floor(rough) - 0.5) <= weights.wrong:
            open_gain = max(open_gain, gain)
        if gain < best_gain:
            continue
        gap = (total - near) / (size - on_left) - near / on_left
        if gain > best_gain or gap > best_gap:
            best_gain, best_gap, threshold = gain, gap, a + (b - a) / 2
    return best_gain, best_gap, threshold, open_gain >= 0 and open_gain >= best_gain - 1


@kernel(forceinline=True)
def _join(own, before, way, out):
    """Write the distances of a candidate that joins others: the larger ones, or the smaller."""
    for i in range(own.size):
        x = own[i]
        if way == 1:
            x = max(x, before[i])
        elif way == 2:
            x = min(x, before[i])
        out[i] = x


@kernel
def judge(
    lines, weights, tables, tables_of, leaves, ways, chosen, way, gain, gap, threshold, left, unsure
):
    """Choose the candidates of each group, one after the other, and their cuts.

    Parameters
    ----------
    lines : Lines
        Distances and series.
    weights : ClassWeights
        Weights of classes.
    tables, tables_of : ndarray of int64
        n log(n) of whole numbers, for groups of up to 2, 4, 8, ... series, and where each begins.
    leaves : ndarray of shape (n_groups,), int64
        Series that must lie on either side.
    ways : ndarray of int64
        How further candidates may join: 1 takes the larger distance, 2 the smaller.
    chosen, way, gain : ndarray of shape (n_groups, most), int64
        Written: candidates, counted within the group, -1 from the first that is not there; how
        each joins those before it, 0 for the first; gains of the cuts.
    gap, threshold : ndarray of shape (n_groups, most), float64
        Written: gaps and thresholds of the cuts.
    left : ndarray of shape (n_members,), bool
        Written: which members are on the left of the last cut.
    unsure : ndarray of shape (n_groups,), bool
        Written: groups whose choice depends on how a gain is rounded, whose splits are not chosen.
    """
    most, n_classes = 1, 0
    for g in range(lines.members_of.size - 1):
        most = max(most, lines.members_of[g + 1] - lines.members_of[g])
    for i in range(lines.labels.size):
        n_classes = max(n_classes, lines.labels[i] + 1)
    room, sorted_places = np.empty(most, np.int64), np.empty(most, np.int64)
    joined, before = np.empty(most), np.empty(most)
    counts, scratch = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    terms_of_classes = np.empty(n_classes, np.int64)
    begin = 0
    for g in range(lines.members_of.size - 1):
        first, stop = lines.members_of[g], lines.members_of[g + 1]
        n = stop - first
        labels, times = lines.labels[first:stop], lines.times[first:stop]
        begin_candidate = lines.candidates_of[g]
        n_candidates = lines.candidates_of[g + 1] - begin_candidate
        counts[:] = 0
        for i in range(n):
            counts[labels[i]] += times[i]
        size, number = counts.sum(), 0
        while 1 << (number + 1) < size:
            number += 1
        terms = tables[tables_of[number] : tables_of[number + 1]]
        weighted = len(weights.total) > 0 and weights.total[g] > 0
        order, line, base = sorted_places[:n], joined[:n], before[:n]
        chosen[g, :] = -1
        best_gain, best_gap, normalized = 0, np.inf, False
        for literal in range(chosen.shape[1]):
            # the largest gain that some cut may have whose rounding is open
            possible = 0
            for k in range(n_candidates):
                own = lines.distances[begin + k * n : begin + (k + 1) * n]
                own_floor = lines.lengths[begin_candidate + k] >= 3
                for w in range(ways.size if literal else 1):
                    how = ways[w] if literal else 0
                    _join(own, base, how, line)
                    _sort(line, order, room[:n])
                    floor = 1.0 if own_floor or normalized else 0.0
                    if weighted:
                        this, its_gap, its_threshold, doubtful = _best_weighted_cut(
                            *(line, order, labels, times, counts, weights, g, floor, leaves[g]),
                            *(scratch, terms_of_classes),
                        )
                        if doubtful:
                            possible = max(possible, this + 1)
                    else:
                        this, its_gap, its_threshold = _best_cut(
                            line, order, labels, times, counts, terms, floor, leaves[g], scratch
                        )
                    if this > best_gain or (this == best_gain and this > 0 and its_gap > best_gap):
                        best_gain, best_gap = this, its_gap
                        chosen[g, literal], way[g, literal] = k, how
                        gain[g, literal], gap[g, literal] = this, its_gap
                        threshold[g, literal] = its_threshold
            if possible > 0 and possible >= best_gain:
                unsure[g], chosen[g, :], way[g, :] = True, -1, 0
                gain[g, :], gap[g, :], threshold[g, :] = 0, 0.0, 0.0
                left[first:stop] = False
                break
            k, how = chosen[g, literal], way[g, literal]
            if k < 0:
                break
            own = lines.distances[begin + k * n : begin + (k + 1) * n]
            _join(own, base, how, base)
            for i in range(n):
                left[first + i] = base[i] <= threshold[g, literal]
            normalized = normalized or lines.lengths[begin_candidate + k] >= 3
        begin += n_candidates * n
