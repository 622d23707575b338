"""Least distances over all circular shifts of a series.

A shift s of y is the piece of the doubled series yy = (y, y) that begins at s, so that all shifts
share one matrix of n rows and 2n columns, in which the paths of shift s lead from (0, s) to
(n - 1, s + n - 1)::

    row 0       s . . . . t
                  .         .        best paths of the shifts between s and t
                   .         . . .     need not cross those of s and t
                    . . .         .
    row n - 1             s+n-1   t+n-1

The path of shift n is that of shift 0, n columns further right. Between the two the path of shift
n / 2 is sought, between that and its neighbours those of n / 4 and 3n / 4, and so on: every level
fills about n^2 cells, and there are log n of them (Maes, "On a cyclic string-to-string correction
problem", Information Processing Letters 35, 1990).

In floating point a path may be worse than the best by its rounding, and so may the paths between
it and others: each shift gets an estimate, which is the cost of a path, and a slack by which the
best cost may be lower. Shifts that could be the least are then filled in without limits. Costs and
sums are those of `dtw`, so that the values are the certified ones.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .window_search import _distance

__all__ = ["search", "search_bytes", "search_straight"]

_UNIT = 2.0**-53
_TINY = float(np.finfo(np.float64).tiny)


@njit(nogil=True, cache=True, error_model="numpy")
def _period(yy):
    """Least shift that leaves a doubled series as it is; shifts from there on repeat."""
    n = yy.shape[1] // 2
    for period in range(1, n):
        if n % period:
            continue
        same = True
        for c in range(yy.shape[0]):
            for i in range(n):
                if yy[c, i] != yy[c, i + period]:
                    same = False
                    break
            if not same:
                break
        if same:
            return period
    return n


@njit(nogil=True, cache=True, error_model="numpy")
def _fill(x, yy, shift, low, high, squared, room, cancel):
    """Accumulated cost of the best path of a shift that keeps to columns low[i] to high[i].

    steps[i, j - shift] tells where the best path to a cell comes from: 0 is the diagonal, 1 the row
    above, 2 the column before.
    """
    # row[j + 1] is D(i, j)
    row, costs, steps = room
    n, several = x.shape[1], x.shape[0] > 1
    stop = shift
    row[shift] = 0.0
    for i in range(n):
        if cancel[0]:
            break
        first, last = max(low[i], shift), min(high[i], shift + n - 1)
        point = x[0, i]
        if several:
            costs[first : last + 1] = 0.0
            for c in range(x.shape[0]):
                for j in range(first, last + 1):
                    d = x[c, i] - yy[c, j]
                    costs[j] += d * d if squared else abs(d)
        # cells that the row above does not have
        for j in range(stop, last + 1):
            row[j + 1] = np.inf
        stop = last + 1
        diagonal, left = row[first], np.inf
        row[first] = np.inf
        step_row = steps[i]
        for j in range(first, last + 1):
            up = row[j + 1]
            above = up if up < diagonal else diagonal
            step = 1 if up < diagonal else 0
            step_row[j - shift] = 2 if left < above else step
            d = point - yy[0, j]
            cost = d * d if squared else abs(d)
            if several:
                cost = costs[j]
            left = cost + (left if left < above else above)
            row[j + 1] = left
            diagonal = up
    return row[shift + n]


@njit(nogil=True, cache=True, error_model="numpy")
def _trace(steps, shift, low, high):
    """First and last column in each row of the path that was filled in last."""
    i, j = steps.shape[0] - 1, steps.shape[0] - 1
    high[i] = shift + j
    while i > 0 or j > 0:
        step = steps[i, j]
        if step == 2:
            j -= 1
            continue
        low[i] = shift + j
        i -= 1
        if step == 0:
            j -= 1
        high[i] = shift + j
    low[0] = shift


@njit(nogil=True, cache=True, error_model="numpy")
def _estimate(x, yy, period, squared, estimates, slacks, room, cancel):
    """Estimate the accumulated cost of every shift, and by how much it may be too large."""
    low, high, stack, fill_room = room
    n = x.shape[1]
    # of sums of costs, of every path: its own and that of the path which it replaces
    relative = 4.0 * (2 * n + x.shape[0] + 4) * _UNIT
    low[0, :] = 0
    high[0, :] = 2 * n
    estimates[0] = _fill(x, yy, np.int64(0), low[0], high[0], squared, fill_room, cancel)
    slacks[0] = relative * estimates[0]
    _trace(fill_room[2], np.int64(0), low[0], high[0])
    for i in range(n):
        low[1, i] = low[0, i] + period
        high[1, i] = high[0, i] + period
    # shifts on both sides, the places of their paths, and the place for one between them
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, period, 0, 1, 2
    size = 1
    while size > 0:
        if cancel[0]:
            return
        size -= 1
        before, after = stack[size, 0], stack[size, 1]
        place_before, place_after, place = stack[size, 2], stack[size, 3], stack[size, 4]
        if after - before < 2:
            continue
        shift = (before + after) // 2
        estimate = _fill(
            x, yy, shift, low[place_before], high[place_after], squared, fill_room, cancel
        )
        estimates[shift] = estimate
        slacks[shift] = slacks[before] + slacks[after % period] + relative * estimate
        if after - before > 2:
            _trace(fill_room[2], shift, low[place], high[place])
            stack[size, 0], stack[size, 1] = shift, after
            stack[size, 2], stack[size, 3], stack[size, 4] = place, place_after, place + 1
            size += 1
            stack[size, 0], stack[size, 1] = before, shift
            stack[size, 2], stack[size, 3], stack[size, 4] = place_before, place, place + 1
            size += 1


@njit(nogil=True, cache=True, error_model="numpy")
def _least(x, yy, period, squared, limit, estimates, slacks, room, cancel):
    """Certified least cost of all shifts, infinity if it is beyond a limit."""
    low, high, _, fill_room = room
    _estimate(x, yy, period, squared, estimates, slacks, room, cancel)
    best = 0
    for shift in range(1, period):
        if estimates[shift] < estimates[best]:
            best = shift
    least = np.inf
    low[0, :] = 0
    high[0, :] = 2 * x.shape[1]
    # the most promising shift first
    for place in range(-1, period):
        shift = best if place < 0 else place
        if cancel[0]:
            break
        if place != best and estimates[shift] - slacks[shift] <= min(limit, least):
            cost = _fill(x, yy, shift, low[0], high[0], squared, fill_room, cancel)
            least = min(least, cost)
    return least


@njit(nogil=True, cache=True, error_model="numpy")
def _insert(distances, indices, count, distance, index):
    """Put a neighbour in its place among the nearest; return how many there are."""
    k = distances.size
    place = count
    while place > 0 and (
        distance < distances[place - 1]
        or (distance == distances[place - 1] and index < indices[place - 1])
    ):
        if place < k:
            distances[place], indices[place] = distances[place - 1], indices[place - 1]
        place -= 1
    if place < k:
        distances[place], indices[place] = distance, index
    return min(count + 1, k)


@njit(nogil=True, cache=True, error_model="numpy")
def _cost_within(distance, squared):
    """A cost beyond which every distance is larger than this one."""
    return distance * distance * (1.0 + 8.0 * _UNIT) + _TINY if squared else distance


@njit(nogil=True, cache=True, error_model="numpy")
def search(x, doubled, bounds, order, excluded, limit, squared, distances, indices, cancel):
    """Find the nearest candidates of a query under warping.

    Parameters
    ----------
    x : ndarray of shape (n_channels, n_timepoints), float64
        The query.
    doubled : ndarray of shape (n_candidates, n_channels, 2 * n_timepoints), float64
        Series of the same length, each twice in a row.
    bounds : ndarray of shape (n_candidates,), float64
        Lower bounds of the distances.
    order : ndarray of shape (n_candidates,), int64
        Candidates by ascending bound.
    excluded : int
        A candidate that is left out.
    limit : float
        A distance beyond which none is wanted.
    squared : bool
        Whether costs are squared and the distance is a root.
    distances, indices : ndarray of shape (n_neighbors,)
        Receive the neighbours, best first.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    int
        How many there are.
    """
    n = x.shape[1]
    depth = 3 + int(np.ceil(np.log2(n)))
    low, high = np.empty((depth, n), np.int64), np.empty((depth, n), np.int64)
    fill_room = np.empty(2 * n + 1), np.empty(2 * n), np.empty((n, n), np.uint8)
    room = low, high, np.empty((depth, 5), np.int64), fill_room
    estimates, slacks = np.empty(n), np.empty(n)
    count = np.int64(0)
    for candidate in order:
        if bounds[candidate] > limit or cancel[0]:
            break
        if candidate == excluded:
            continue
        yy = doubled[candidate]
        period = _period(yy)
        within = _cost_within(limit, squared)
        cost = _least(x, yy, period, squared, within, estimates, slacks, room, cancel)
        distance = _distance(cost, squared)
        if distance <= limit and cost < np.inf:
            count = _insert(distances, indices, count, distance, candidate)
            if count == distances.size:
                limit = min(limit, distances[count - 1])
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def search_straight(
    x, doubled, bounds, order, floors, excluded, limit, squared, distances, indices, cancel
):
    """Find the nearest candidates of a query without warping, as `search` does.

    floors : ndarray of shape (n_candidates, n_timepoints) or (n_candidates, 1), float64
        Lower bounds of the accumulated costs of all shifts, or of each candidate's.
    """
    n_channels, n = x.shape
    count = np.int64(0)
    for candidate in order:
        if bounds[candidate] > limit or cancel[0]:
            break
        if candidate == excluded:
            continue
        yy = doubled[candidate]
        least, within = np.inf, _cost_within(limit, squared)
        for shift in range(_period(yy)):
            if floors[candidate, min(shift, floors.shape[1] - 1)] > min(within, least):
                continue
            total, beyond = 0.0, min(within, least)
            for i in range(n):
                d = x[0, i] - yy[0, shift + i]
                cost = d * d if squared else abs(d)
                for c in range(1, n_channels):
                    d = x[c, i] - yy[c, shift + i]
                    cost += d * d if squared else abs(d)
                total = cost + total
                if total > beyond:
                    break
            least = min(least, total)
        distance = _distance(least, squared)
        if distance <= limit:
            count = _insert(distances, indices, count, distance, candidate)
            if count == distances.size:
                limit = min(limit, distances[count - 1])
    return count


def search_bytes(n_channels: int, n: int) -> int:
    """Bytes that a search holds beside its input and output."""
    depth = 3 + int(np.ceil(np.log2(n)))
    return n * n + 16 * depth * n + 8 * (n_channels * n + 8 * n + 64)
