"""Nearest neighbours at every width of the warping window, one query at a time.

Windows are taken from the widest to the narrowest, because

* a narrower window allows fewer paths, so that a distance, or a lower bound of one, bounds the
  distance from below in every later window;
* a distance stays the same down to the *reach* of its best path, the largest |i - j| on it; and
  as the others only grow, the neighbour stays the same down to the reach of its own path.

Both hold for the computed values bit by bit: rounding is monotone, and a narrower window leaves
the sums along the path as they are. Whatever these do not settle is bounded by LB_Keogh, and then
warped within the cells from which the best distance so far can still be reached (early abandoning
and pruning). The Euclidean distance, window 0, bounds every distance from above.

Costs and sums are those of the policy that `dtw` and `certified` take, so that the values are the
certified ones. Only policies of DTW hold here: bounds and pruned matrices add costs.

References
----------
Tan, Herrmann, Forestier, Webb, Petitjean. "Efficient search of the best warping window for dynamic
time warping". SIAM International Conference on Data Mining, 2018.
"""

from __future__ import annotations

import numpy as np

from ...core.constants import FLOAT64_TINY, FLOAT64_UNIT
from ...host import kernel
from .lower_bounds import envelope

__all__ = ["query_bytes", "search"]

#: Half widths of the band from which on four rows at once are faster than one after the other.
_WIDE = 8


@kernel
def _distance(cost, squared):
    return np.sqrt(cost) if squared else cost


@kernel
def _largest_equal(cost, squared):
    """Largest cost that is no farther than this one: roots of different costs may be equal."""
    if squared:
        distance = np.sqrt(cost)
        while cost < np.inf and np.sqrt(np.nextafter(cost, np.inf)) == distance:
            cost = np.nextafter(cost, np.inf)
    return cost


@kernel
def _add_channels(cost, x, i, y, j, cell):
    """Add the costs of all channels but the first, a function of its own: it is not inlined."""
    for c in range(1, x.shape[0]):
        cost += cell.term(x[c, i], y[c, j])
    return cost


@kernel
def _straight(x, y, cell):
    """Accumulated cost of the diagonal, the only path of window 0."""
    total = 0.0
    for i in range(x.shape[1]):
        cost = cell.term(x[0, i], y[0, i])
        if x.shape[0] > 1:
            cost = _add_channels(cost, x, i, y, i, cell)
        total = cell.join(cost, total)
    return total


@kernel
def _bounded(x, low, high, allowed, limit, squared):
    """Whether LB_Keogh leaves a path of at most `limit`, and what each row may have used up of it.

    low, high: envelope (n, C) of the column series; x: row series; allowed[i]: the limit less the
    bounds of the rows after i.
    """
    n = x.shape[1]
    for i in range(n - 1, -1, -1):
        allowed[i] = limit
        for c in range(x.shape[0]):
            above, below = x[c, i] - high[i, c], low[i, c] - x[c, i]
            d = above if above > below else below
            if d > 0.0:
                limit -= d * d if squared else d
        if limit < 0.0:
            return False
    return True


@kernel
def _warp(x, y, radius, allowed, cell, row, reaches, cancel):
    """Accumulated cost of the best path, infinity if no path keeps the limits of its rows.

    Only columns from which the last cell can still be reached are filled: row i starts at the
    first column that row i - 1 left within its limit, and ends at the first beyond the last
    such column that is not within its own. The last entry of `reaches` becomes the reach of a
    best path.
    """
    # row[j + 1] is D(i, j), reaches[j + 1] the reach of a best path to there; a cell that is not
    # within the limit is left at infinity, or at no less than its true value, beyond the limit
    (n_channels, n), m = x.shape, y.shape[1]
    row[0], row[1] = 0.0, np.inf
    reaches[0] = reaches[1] = first = stop = 0
    for i in range(n):
        if cancel[0]:
            return np.inf
        limit = allowed[i]
        start, end = max(first, i - radius), min(m, i + radius + 1)
        diagonal, left = row[start], np.inf
        diagonal_reach, left_reach = reaches[start], 0
        # below the cells of the row before, and one beyond
        for j in range(start, min(end, stop + 1)):
            up = row[j + 1]
            best = up if up < diagonal else diagonal
            up_reach = reaches[j + 1]
            reach = up_reach if up < diagonal else diagonal_reach
            reach = left_reach if left < best else reach
            left_reach = max(reach, abs(i - j))
            diagonal_reach = up_reach
            reaches[j + 1] = left_reach
            best = left if left < best else best
            cost = cell.term(x[0, i], y[0, j])
            if n_channels > 1:
                cost = _add_channels(cost, x, i, y, j, cell)
            left = cell.join(cost, best)
            row[j + 1] = left
            diagonal = up
        # further right only step by step along the row
        j = stop + 1
        while j < end and left <= limit:
            cost = cell.term(x[0, i], y[0, j])
            if n_channels > 1:
                cost = _add_channels(cost, x, i, y, j, cell)
            left = cell.join(cost, left)
            row[j + 1] = left
            left_reach = max(left_reach, abs(i - j))
            reaches[j + 1] = left_reach
            j += 1
        first, stop = start, min(end, j)
        while first < stop and not row[first + 1] <= limit:
            first += 1
        while first < stop and not row[stop] <= limit:
            stop -= 1
        if first >= stop:
            return np.inf
        row[first] = np.inf
        if stop < m:
            row[stop + 1] = np.inf
    return row[m] if stop == m else np.inf


@kernel
def _enter(cost, up, diagonal, left, cell):
    """Accumulated cost of a cell, given those of the three before it."""
    best = up if up < diagonal else diagonal
    return cell.join(cost, left if left < best else best)


@kernel
def _warp_together(x, y, radius, allowed, cell, row, cancel):
    """The cost that `_warp` finds, of series of one channel, from four rows at once.

    Each is a column behind the one above it, so that their cells do not wait for each other.
    Cells are dropped as if all four rows had the limit of the last one, which is the largest.

    It is one function, so that the last two columns of four rows stay in registers.
    """
    n, m, inf = x.size, y.size, np.inf
    row[0], row[1] = 0.0, inf
    first = stop = 0
    v3 = inf
    for i in range(0, n, 4):
        if cancel[0]:
            return inf
        height = min(4, n - i)
        limit, start = allowed[i + height - 1], max(first, i - radius)
        x0, x1 = x[i], x[min(i + 1, n - 1)]
        x2, x3 = x[min(i + 2, n - 1)], x[min(i + 3, n - 1)]
        # of each row the last cell, and the one before it
        l0 = l1 = l2 = l3 = p0 = p1 = p2 = p3 = inf
        diagonal = row[start]
        # from here on all four cells are in the band, and below or beside cells of the row above
        inner_first = max(start + 3, i + 6 - radius)
        inner_stop = min(m, i + radius + 1, stop + 1) if height == 4 else 0
        last = min(m, i + height + radius) + height - 1
        t = end = start
        while t < last:
            if inner_first <= t < inner_stop:
                for j in range(t, inner_stop):
                    above = row[j + 1]
                    v3 = _enter(cell.term(x3, y[j - 3]), l2, p2, l3, cell)
                    v2 = _enter(cell.term(x2, y[j - 2]), l1, p1, l2, cell)
                    v1 = _enter(cell.term(x1, y[j - 1]), l0, p0, l1, cell)
                    v0 = _enter(cell.term(x0, y[j]), above, diagonal, l0, cell)
                    p0, p1, p2, p3 = l0, l1, l2, l3
                    l0, l1, l2, l3, diagonal = v0, v1, v2, v3, above
                    row[j - 2] = v3
                t, end = inner_stop, inner_stop - 3
                continue
            # left of the start, outside the band and behind the last column all is infinite
            above = row[t + 1] if t <= stop and t < m else inf
            v0 = v1 = v2 = v3 = inf
            if height > 3 and max(start, i + 3 - radius) <= t - 3 < min(m, i + radius + 4):
                v3 = _enter(cell.term(x3, y[t - 3]), l2, p2, l3, cell)
            if height > 2 and max(start, i + 2 - radius) <= t - 2 < min(m, i + radius + 3):
                v2 = _enter(cell.term(x2, y[t - 2]), l1, p1, l2, cell)
            if height > 1 and max(start, i + 1 - radius) <= t - 1 < min(m, i + radius + 2):
                v1 = _enter(cell.term(x1, y[t - 1]), l0, p0, l1, cell)
            if t < min(m, i + radius + 1):
                v0 = _enter(cell.term(x0, y[t]), above, diagonal, l0, cell)
            p0, p1, p2, p3 = l0, l1, l2, l3
            l0, l1, l2, l3, diagonal = v0, v1, v2, v3, above
            j = t - height + 1
            if j >= start:
                row[j + 1] = (v0, v1, v2, v3)[height - 1]
                end = j + 1
            t += 1
            nearest = min(min(min(l0, l1), min(l2, l3)), min(min(p0, p1), min(p2, p3)))
            if t > stop + 1 and nearest > limit:
                break
        first, stop = start, end
        while first < stop and not row[first + 1] <= limit:
            first += 1
        while first < stop and not row[stop] <= limit:
            stop -= 1
        if first >= stop:
            return inf
        row[first] = inf
        if stop < m:
            row[stop + 1] = inf
    return row[m] if stop == m else inf


@kernel
def _order(costs, order, other):
    """Candidates by cost, of equal ones the lowest first, in one of two arrays.

    A merge sort of a few lines: that of NumPy takes Numba more than a second to compile.
    """
    n, width = costs.size, 1
    for i in range(n):
        order[i] = i
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for place in range(start, stop):
                first = right == stop
                if left < middle and not first:
                    first = not costs[order[right]] < costs[order[left]]
                if first:
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def search(queries, candidates, excluded, radii, cell, squared, found, cancel):
    """Find the nearest candidate of every query at every radius.

    Parameters
    ----------
    queries, candidates : ndarray of shape (n_series, n_channels, n_timepoints), float64
        Series of one length.
    excluded : ndarray of shape (n_queries,), int64
        One candidate that a query must not find.
    radii : ndarray of shape (n_radii,), int64
        Half widths of the band, strictly descending.
    cell : Cell
        What steps cost: a policy of DTW.
    squared : bool
        Whether its costs are squared and the distance is a root.
    found : ndarray of shape (n_queries, n_radii), int64
        Receives the candidates; of equally near ones the lowest.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    n_candidates, n_channels, n = candidates.shape
    row, reaches = np.empty(n + 2), np.empty(n + 2, np.int64)
    allowed = np.empty(n)
    low, high = np.empty((n, n_channels)), np.empty((n, n_channels))
    # what is known of each candidate: the cost is exact where the reach is in the window
    costs, reach = np.empty(n_candidates), np.empty(n_candidates, np.int64)
    orders = np.empty(n_candidates, np.int64), np.empty(n_candidates, np.int64)
    # of a bound and of a distance, relative: one for each sum and product, and once more for both
    # see "window search" in docs/developer/numerics.rst
    slack = 1.0 + 2.0 * FLOAT64_UNIT * (n * n_channels + 2 * n + n_channels + 8)
    for q in range(queries.shape[0]):
        query = queries[q]
        for candidate in range(n_candidates):
            straight = _straight(query, candidates[candidate], cell)
            costs[candidate] = straight if candidate != excluded[q] else np.inf
        order = _order(costs, *orders)
        ceiling = _largest_equal(costs[order[0]], squared)
        costs[:] = 0.0
        reach[:] = n
        nearest = order[0]
        for k in range(radii.size):
            if cancel[0]:
                return
            radius = radii[k]
            together = n_channels == 1 and radius >= _WIDE
            if reach[nearest] <= radius:
                found[q, k] = nearest
                continue
            envelope(query.T, radius, low, high)
            limit, best, guess, nearest = ceiling, np.inf, nearest, -1
            for position in range(-1, n_candidates):
                candidate = guess if position < 0 else order[position]
                if candidate == excluded[q] or costs[candidate] > limit:
                    continue
                if reach[candidate] > radius:
                    cost, x = np.inf, candidates[candidate]
                    if _bounded(x, low, high, allowed, (limit + FLOAT64_TINY) * slack, squared):
                        cost = limit
                        if together:
                            cost = _warp_together(
                                x[0], query[0], radius, allowed, cell, row, cancel
                            )
                            if cost <= limit:
                                # fewer cells have to be filled again for the reach
                                bound = (cost + FLOAT64_TINY) * slack
                                _bounded(x, low, high, allowed, bound, squared)
                        if cost <= limit:
                            cost = _warp(x, query, radius, allowed, cell, row, reaches, cancel)
                    if cost > limit:
                        costs[candidate] = np.nextafter(limit, np.inf)
                        continue
                    costs[candidate] = cost
                    reach[candidate] = reaches[n]
                distance = _distance(costs[candidate], squared)
                if nearest < 0 or distance < best or (distance == best and candidate < nearest):
                    best, nearest = distance, candidate
                    limit = _largest_equal(costs[candidate], squared)
            found[q, k] = nearest


def query_bytes(n_candidates: int, n_channels: int, n: int, n_results: int) -> int:
    """Bytes that `search` holds beside its input: for one query, and its results."""
    return 8 * (4 * n_candidates + (2 * n_channels + 5) * n + n_results)
