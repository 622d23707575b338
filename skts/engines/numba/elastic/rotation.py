"""Least distances over all circular shifts of a series: runs of shifts, bounded and cut.

A shift s of y, of m points, is the piece of the doubled series yy = (y, y) that begins at s, so
that all shifts share one matrix of n rows, as many as x has points, and 2m columns, in which the
paths of shift s lead from (0, s) to (n - 1, s + m - 1)::

    row 0       s . . . . t
                . begin   .         .         the cheapest path that begins at s to t and ends
                            .     end .       m - 1 columns behind costs no more than the best
    row n - 1             s+m-1   t+m-1       path of each shift between s and t

A search bounds runs of shifts of several candidates side by side, one in each lane. Runs that cost
more than the nearest candidates so far are dropped, the others cut in four, the cheapest first,
until single shifts are left: their bound is their cost, and is certified by `certified`. Costs and
sums are the same in float64, those of one policy (`cells`). Rounding is monotonic: in floating
point, too, no run costs more than a shift in it.

A band of half width r leaves to shift s the columns i + s - r to i + s + r of row i, and to a run
all that one of its shifts has; rows go in twos, which share the columns of both. Runs side by side
may be of candidates of several lengths, and have the widest of their bands.
"""

from __future__ import annotations

import numpy as np

from ...core.constants import FLOAT64_TINY, FLOAT64_UNIT
from ...host import kernel
from ...host.arrays import put
from . import certified
from .window_search import _distance

__all__ = ["search", "search_bytes", "search_straight"]

#: Runs of shifts that are bounded side by side, and columns of a strip, as `dtw` has them.
LANES, _WIDTH = 32, 64
#: Pieces into which a run is cut.
PIECES = 4


@kernel
def _period(y, m):
    """Least shift that leaves m points as they are; shifts from there on repeat."""
    for period in range(1, m):
        if m % period:
            continue
        same = True
        for c in range(y.shape[0]):
            for i in range(m - period):
                if y[c, i] != y[c, i + period]:
                    same = False
                    break
            if not same:
                break
        if same:
            return period
    return m


@kernel
def _lay_out(series, lengths, candidate, first, start, width, columns):
    """Write the points of runs from their column `start` on, one run in each lane."""
    for lane in range(LANES):
        length = lengths[candidate[lane]]
        for c in range(columns.shape[0]):
            y, place = series[candidate[lane], c], (first[lane] + start) % length
            for j in range(width):
                columns[c, j, lane] = y[place]
                # a candidate goes on from its beginning
                place = place + 1 if place + 1 < length else 0


@kernel
def _bound(x, series, lengths, candidate, first, count, reach, cell, least, room, cancel):
    """Costs of the cheapest paths of runs of `count` shifts, one in each lane.

    candidate, first, least: of LANES runs; least receives the costs. `reach` is half the width of
    the widest band, None without one, which is an instance of its own.
    """
    # edge[i + 1] is D(i, start - 1), row[j + 1] is D(i, start + j)
    edge, row, columns, cost, left, diagonal = room
    n_channels, n = x.shape
    fused, longest, shortest = n_channels == 1, 0, lengths[candidate[0]]
    for lane in range(LANES):
        longest = max(longest, lengths[candidate[lane]])
        shortest = min(shortest, lengths[candidate[lane]])
    m = longest + count - 1
    least[:] = np.inf
    edge[:] = np.inf
    for start in range(0, m, _WIDTH):
        if cancel[0]:
            return
        width = min(_WIDTH, m - start)
        _lay_out(series, lengths, candidate, first, start, width, columns)
        # a path may begin at any of the first `count` columns
        for j in range(width + 1):
            row[j] = 0.0 if start + j < count else np.inf
        for i in range(0, n, 2):
            # two rows at once; of the last one alone the second is not used
            last = min(i + 1, n - 1)
            low, high = 0, width
            if reach is not None:
                low = max(0, i - reach - start)
                high = min(width, last + reach + count - start)
            if low == 0:
                for lane in range(LANES):
                    diagonal[lane] = row[0, lane]
                    left[0, lane] = edge[i + 1, lane]
                    left[1, lane] = edge[last + 1, lane]
                    row[0, lane] = edge[last + 1, lane]
            elif low < width:
                put(row[low], diagonal)
                left[:] = np.inf
            point, next_point = x[0, i], x[0, last]
            alone = last == i
            for j in range(low, high):
                if fused:
                    for lane in range(LANES):
                        up = row[j + 1, lane]
                        best = up if up < diagonal[lane] else diagonal[lane]
                        best = best if best < left[0, lane] else left[0, lane]
                        value = cell.join(cell.term(point, columns[0, j, lane]), best)
                        best = value if value < left[0, lane] else left[0, lane]
                        best = best if best < left[1, lane] else left[1, lane]
                        diagonal[lane] = up
                        left[0, lane] = value
                        left[1, lane] = cell.join(cell.term(next_point, columns[0, j, lane]), best)
                        row[j + 1, lane] = value if alone else left[1, lane]
                    continue
                cost[:] = 0.0
                for c in range(n_channels):
                    for lane in range(LANES):
                        cost[0, lane] += cell.term(x[c, i], columns[c, j, lane])
                        cost[1, lane] += cell.term(x[c, last], columns[c, j, lane])
                for lane in range(LANES):
                    up = row[j + 1, lane]
                    best = up if up < diagonal[lane] else diagonal[lane]
                    best = best if best < left[0, lane] else left[0, lane]
                    value = cell.join(cost[0, lane], best)
                    best = value if value < left[0, lane] else left[0, lane]
                    best = best if best < left[1, lane] else left[1, lane]
                    diagonal[lane] = up
                    left[0, lane] = value
                    left[1, lane] = cell.join(cost[1, lane], best)
                    row[j + 1, lane] = value if alone else left[1, lane]
            if low < high == width:
                for lane in range(LANES):
                    edge[last + 1, lane] = left[1, lane]
                    edge[i + 1, lane] = left[0, lane]
            else:
                edge[last + 1], edge[i + 1] = np.inf, np.inf
        for j in range(max(0, shortest - 1 - start), width):
            for lane in range(LANES):
                # of a run of its own length, from its first end to its last
                beyond = start + j + 1 - lengths[candidate[lane]]
                if 0 <= beyond < count:
                    least[lane] = min(least[lane], row[j + 1, lane])


@kernel
def _widest(reaches, candidate):
    """Half width of the widest band among candidates, None without one."""
    if reaches is None:
        return None
    widest = 0
    for one in candidate:
        widest = max(widest, reaches[one])
    return widest


@kernel
def _half(reaches, candidate, cells):
    """Half width of the band of a candidate; `cells` without one."""
    if reaches is None:
        return cells
    return reaches[candidate]


@kernel(inline="always")
def _settle(group, x, candidates_of, limit, cell, squared, count, best, runs, room, cancel):
    """Find the least distances of some candidates; return how many neighbours there are.

    A stack holds runs of shifts, the cheapest on top.
    """
    candidates, firsts, widths, costs = runs
    of_lane, first, least, bound_room = room
    distances, indices = best
    doubled, lengths, reaches = candidates_of
    n, longest = x.shape[1], doubled.shape[2] // 2
    size = 0
    for candidate in group:
        candidates[size], firsts[size], costs[size] = candidate, 0, 0.0
        widths[size] = longest
        size += 1
    while size > 0 and not cancel[0]:
        within = _cost_within(limit, squared)
        width, used = widths[size - 1], 0
        piece = -(-width // PIECES)
        while size > 0 and widths[size - 1] == width and used + PIECES <= LANES:
            size -= 1
            if costs[size] > within:
                continue
            length = lengths[candidates[size]]
            stop = firsts[size] + width
            # shifts from the period on repeat
            if width == longest:
                stop = _period(doubled[candidates[size]], length)
            for shift in range(firsts[size], min(stop, length), piece):
                of_lane[used], first[used] = candidates[size], shift
                used += 1
        if used == 0:
            continue
        of_lane[used:], first[used:] = of_lane[0], first[0]
        reach = _widest(reaches, of_lane)
        _bound(x, doubled, lengths, of_lane, first, piece, reach, cell, least, bound_room, cancel)
        begin = size
        if piece == 1:
            # the cheapest first: most of the others are too far then
            for lane in np.argsort(least[:used]):
                if least[lane] > within or _distance(least[lane], squared) > limit:
                    break
                known = np.inf
                for place in range(count):
                    if indices[place] == of_lane[lane]:
                        known = distances[place]
                if known <= _distance(least[lane], squared):
                    # another shift of this candidate is no farther
                    continue
                length = lengths[of_lane[lane]]
                y = doubled[of_lane[lane], :, first[lane] : first[lane] + length]
                half = _half(reaches, of_lane[lane], n + length)
                shift_cost = certified.cost(x, y, half, cell, None, False, False, cancel)
                distance = _distance(shift_cost, squared)
                if distance <= limit and shift_cost < np.inf:
                    count = _improve(distances, indices, count, distance, of_lane[lane])
                    if count == distances.size:
                        limit = min(limit, distances[count - 1])
            continue
        for lane in range(used):
            if least[lane] > within:
                continue
            # the cheapest on top
            place = size
            while place > begin and costs[place - 1] < least[lane]:
                candidates[place], firsts[place] = candidates[place - 1], firsts[place - 1]
                widths[place], costs[place] = piece, costs[place - 1]
                place -= 1
            candidates[place], firsts[place] = of_lane[lane], first[lane]
            widths[place], costs[place] = piece, least[lane]
            size += 1
    return count


@kernel
def _improve(distances, indices, count, distance, index):
    """Put a neighbour in its place, or in a better one; return how many there are."""
    for place in range(count):
        if indices[place] == index:
            if distances[place] <= distance:
                return count
            # it leaves its old place
            for later in range(place, count - 1):
                distances[later], indices[later] = distances[later + 1], indices[later + 1]
            return _insert(distances, indices, count - 1, distance, index)
    return _insert(distances, indices, count, distance, index)


@kernel
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


@kernel
def _cost_within(distance, squared):
    """A cost beyond which every distance is larger than this one."""
    # see "cost limits" in docs/developer/numerics.rst
    return distance * distance * (1.0 + 8.0 * FLOAT64_UNIT) + FLOAT64_TINY if squared else distance


@kernel
def search(
    x, candidates_of, bounds, order, excluded, limit, cell, squared, distances, indices, cancel
):
    """Find the nearest candidates of a query under warping.

    Parameters
    ----------
    x : ndarray of shape (n_channels, n_timepoints), float64
        The query.
    candidates_of : tuple
        Series, each twice in a row, of shape (n_candidates, n_channels, twice the points of the
        longest); their lengths, int64; half widths of their bands, int64, or None without bands.
    bounds : ndarray of shape (n_candidates,), float64
        Lower bounds of the distances.
    order : ndarray of shape (n_candidates,), int64
        Candidates by ascending bound.
    excluded : int
        A candidate that is left out.
    limit : float
        A distance beyond which none is wanted.
    cell : Cell
        What steps cost.
    squared : bool
        Whether its costs are squared and the distance is a root.
    distances, indices : ndarray of shape (n_neighbors,)
        Receive the neighbours, best first.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    int
        How many there are.
    """
    n_channels, n = x.shape
    # of every width all pieces of one batch may wait
    depth, width = 2, candidates_of[0].shape[2] // 2
    while width > 1:
        width = -(-width // PIECES)
        depth += 1
    capacity = LANES * depth
    runs = (
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity),
    )
    bound_room = (
        np.empty((n + 1, LANES)),
        np.empty((_WIDTH + 1, LANES)),
        np.empty((n_channels, _WIDTH, LANES)),
        np.empty((2, LANES)),
        np.empty((2, LANES)),
        np.empty(LANES),
    )
    room = np.empty(LANES, np.int64), np.empty(LANES, np.int64), np.empty(LANES), bound_room
    group = np.empty(LANES // PIECES, np.int64)
    count = np.int64(0)
    place = 0
    while place < order.size and not cancel[0]:
        size = 0
        while place < order.size and size < group.size:
            candidate = order[place]
            if bounds[candidate] > limit:
                place = order.size
                break
            place += 1
            if candidate != excluded:
                group[size] = candidate
                size += 1
        # the most promising on top
        best = distances, indices
        count = _settle(
            group[:size][::-1], x, candidates_of, limit, cell, squared,
            count, best, runs, room, cancel,
        )  # fmt: skip
        if count == distances.size:
            limit = min(limit, distances[count - 1])
    return count


@kernel
def search_straight(
    x, doubled, bounds, order, floors, excluded, limit, cell, squared, distances, indices, cancel
):
    """Find the nearest candidates of a query without warping, as `search` does; all of one length.

    doubled : ndarray of shape (n_candidates, n_channels, 2 * n_timepoints), float64
        The candidates, each twice in a row.
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
        for shift in range(_period(yy, n)):
            if floors[candidate, min(shift, floors.shape[1] - 1)] > min(within, least):
                continue
            total, beyond = 0.0, min(within, least)
            for i in range(n):
                cost = cell.term(x[0, i], yy[0, shift + i])
                for c in range(1, n_channels):
                    cost += cell.term(x[c, i], yy[c, shift + i])
                total = cell.join(cost, total)
                if total > beyond:
                    break
            least = min(least, total)
        distance = _distance(least, squared)
        if distance <= limit:
            count = _insert(distances, indices, count, distance, candidate)
            if count == distances.size:
                limit = min(limit, distances[count - 1])
    return count


def search_bytes(n_channels: int, n: int, m: int) -> int:
    """Bytes that a search holds beside its input and output."""
    lanes = 8 * LANES
    runs = lanes * (n + 1 + _WIDTH * (n_channels + 1) + 8) + 4 * lanes * (m.bit_length() + 3)
    return runs + certified.pairs_bytes(n_channels, n, m)
