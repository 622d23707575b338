"""The best cut among the candidates of many nodes: the choices of `Criterion`, compiled.

All series weigh the same, and each is there as often as it was drawn. Gains are sums of whole
numbers, as those of `Criterion`, and gaps the same sums in the same order: equal bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ..core.constants import TOLERANCE

__all__ = ["Lines", "judge"]

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


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
def judge(lines, tables, tables_of, leaves, ways, chosen, way, gain, gap, threshold, left):
    """Choose the candidates of each group, one after the other, and their cuts.

    Parameters
    ----------
    lines : Lines
        Distances and series.
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
    """
    most, n_classes = 1, 0
    for g in range(lines.members_of.size - 1):
        most = max(most, lines.members_of[g + 1] - lines.members_of[g])
    for i in range(lines.labels.size):
        n_classes = max(n_classes, lines.labels[i] + 1)
    room, sorted_places = np.empty(most, np.int64), np.empty(most, np.int64)
    joined, before = np.empty(most), np.empty(most)
    counts, scratch = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
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
        order, line, base = sorted_places[:n], joined[:n], before[:n]
        chosen[g, :] = -1
        best_gain, best_gap, normalized = 0, np.inf, False
        for literal in range(chosen.shape[1]):
            for k in range(n_candidates):
                own = lines.distances[begin + k * n : begin + (k + 1) * n]
                own_floor = lines.lengths[begin_candidate + k] >= 3
                for w in range(ways.size if literal else 1):
                    how = ways[w] if literal else 0
                    for i in range(n):
                        x = own[i]
                        if how == 1:
                            x = max(x, base[i])
                        elif how == 2:
                            x = min(x, base[i])
                        line[i] = x
                    _sort(line, order, room[:n])
                    floor = 1.0 if own_floor or normalized else 0.0
                    this, its_gap, its_threshold = _best_cut(
                        line, order, labels, times, counts, terms, floor, leaves[g], scratch
                    )
                    if this > best_gain or (this == best_gain and this > 0 and its_gap > best_gap):
                        best_gain, best_gap = this, its_gap
                        chosen[g, literal], way[g, literal] = k, how
                        gain[g, literal], gap[g, literal] = this, its_gap
                        threshold[g, literal] = its_threshold
            k, how = chosen[g, literal], way[g, literal]
            if k < 0:
                break
            own = lines.distances[begin + k * n : begin + (k + 1) * n]
            for i in range(n):
                x = own[i]
                if how == 1:
                    x = max(x, base[i])
                elif how == 2:
                    x = min(x, base[i])
                base[i] = x
                left[first + i] = x <= threshold[g, literal]
            normalized = normalized or lines.lengths[begin_candidate + k] >= 3
        begin += n_candidates * n
