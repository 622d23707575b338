"""The cascade of a search: bound all candidates, then warp the few that are left.

Bounds of the accumulated cost (sum over points, or for dog-keeper the largest):

* LB_Keogh: every point of a series that is matched in full costs at least its distance from the
  range of the points of the other that the band lets it meet; without a band from the range of all.
  In global alignment both series are matched in full and give a bound each, in "subsequence" the
  query, in "supersequence" the candidate.
* LB_Kim: in global alignment first meets first and last meets last, at their true costs, which take
  the place of these points' distances from a range.

For one query at a time: the bound that needs the query's ranges alone for all candidates, lanes
side by side. The most promising candidates are warped first; the k-th nearest of them is a limit
for the rest. The others that are left go in ascending order, are bounded the other way round,
and gathered into full groups of lanes. The limit falls after each group, and a group is abandoned
when every lane is beyond it.

Bounds carry a rounding error of their own, up to one rounding for every point, channel and
operation; they are deflated by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.certify import Bound, gamma
from ...core.constants import FLOAT32_UNIT
from ...families.elastic.dtw import DTWSearch
from ...host import kernel
from ...host.arrays import kth_smallest
from .dtw import sweep
from .lanes import lanes_of

__all__ = [
    "BoundedSeries",
    "Margins",
    "SearchedQueries",
    "cost_within",
    "deflation",
    "envelopes",
    "first_bounds",
    "search",
    "second_bound",
]


class BoundedSeries(NamedTuple):
    """Candidates as lanes, one after the other, and as envelopes.

    Attributes
    ----------
    packed : ndarray of shape (n_groups, n_timepoints, n_channels, n_lanes), float32
    lengths : ndarray of shape (n_groups, n_lanes), int64
    values : ndarray of shape (n_candidates, n_channels, n_timepoints), float32
    low, high : ndarray of shape (n_candidates, n_channels, n_positions), float32
        Envelopes; with one position ranges of whole series.
    """

    packed: np.ndarray
    lengths: np.ndarray
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray


class SearchedQueries(NamedTuple):
    """Queries, and which candidates are looked for.

    Attributes
    ----------
    values : ndarray of shape (n_queries, n_channels, n_timepoints), float32
    lengths : ndarray of shape (n_queries,), int64
    radius : ndarray of shape (n_queries, n_candidates), int64
        Of the band of each pair.
    excluded : ndarray of shape (n_queries,), int64
        One candidate that takes no part; -1 is none.
    n_neighbors : int
        How many of the nearest; 0 is all within the limit.
    limit : float32
        Accumulated cost beyond which no candidate is looked for.
    """

    values: np.ndarray
    lengths: np.ndarray
    radius: np.ndarray
    excluded: np.ndarray
    n_neighbors: int
    limit: np.float32


class Margins(NamedTuple):
    """Roundings that are allowed for.

    Attributes
    ----------
    deflate : float32
        Bounds are multiplied by it.
    scale : float
        Distances are estimates over it.
    shrink, grow, slack : float
        Interval around an estimate, as in `Bound`.
    """

    deflate: np.float32
    scale: float
    shrink: float
    grow: float
    slack: float


def deflation(n_channels: int, reduction: DTWSearch) -> np.float32:
    """Factor that keeps a bound in float32 a lower bound despite its rounding."""
    points = max(side.n_timepoints for side in reduction.sides)
    terms = n_channels * (1 if reduction.warping.largest else points)
    # see "deflation" in docs/developer/numerics.rst
    error = gamma(terms + n_channels + 8, FLOAT32_UNIT)
    return np.float32(max(0.0, 1 - 2 * error) if error < 1 else 0.0)


def cost_within(radius: float, bound: Bound, scale: float, *, squared: bool) -> np.float32:
    """Accumulated cost above which the lower value of an estimate exceeds a distance."""
    with np.errstate(over="ignore"):
        beyond = np.float64(radius + bound.slack) / bound.shrink * scale
        # see "cost limits" in docs/developer/numerics.rst
        return np.float32((beyond * beyond if squared else beyond) * (1 + 1e-6))


@kernel
def envelope(x, radius, low, high):
    """Least and largest point of each channel of x (n, C) within `radius` of every position.

    Where there is none, low is -inf and high inf: no point is outside.
    """
    n, n_channels = x.shape
    for c in range(n_channels):
        # ends of the window move forward; candidates for the extreme wait in a queue
        for sign, out in ((1.0, low), (-1.0, high)):
            queue = np.empty(n, np.int64)
            first = last = 0
            entering = 0
            for i in range(out.shape[0]):
                while entering < n and entering <= i + radius:
                    while last > first and sign * x[queue[last - 1], c] >= sign * x[entering, c]:
                        last -= 1
                    queue[last] = entering
                    last += 1
                    entering += 1
                while first < last and queue[first] < i - radius:
                    first += 1
                out[i, c] = x[queue[first], c] if first < last else -sign * np.inf


@kernel
def envelopes(values, lengths, radius, n):
    """Envelopes of series (n_series, C, m) at n positions: (n_series, C, n) low and high.

    With one position they are the ranges of whole series, whatever the radius.
    """
    shape = values.shape[0], values.shape[1], n
    low, high = np.empty(shape, values.dtype), np.empty(shape, values.dtype)
    for series in range(values.shape[0]):
        points = values[series, :, : lengths[series]]
        if n == 1:
            radius = lengths[series]
        envelope(points.T, radius, low[series].T, high[series].T)
    return low, high


@kernel
def _cost_of(x, y, squared):
    # points of all channels
    total = np.float32(0)
    for c in range(x.size):
        d = x[c] - y[c]
        total += d * d if squared is not None else abs(d)
    return total


@kernel(fastmath={"contract"})
def forward(low, high, last, y, lengths, out, multivariate, squared, largest, ends):
    """Bound lanes y (m, C, lanes) by the envelope (m, C) of the query at their positions.

    With `ends` the last point of each lane meets `last` (C,), that of the query.
    """
    lanes = lanes_of(y)
    n_channels = y.shape[1]
    total = np.zeros(lanes, np.float32)
    here = np.zeros(lanes, np.float32)
    counted = np.empty(lanes, np.int64)
    for lane in range(lanes):
        counted[lane] = lengths[lane]
        if ends and counted[lane] > 1:
            counted[lane] -= 1
    least = most = counted[0]
    for lane in range(1, lanes):
        least, most = min(least, counted[lane]), max(most, counted[lane])
    zero = np.float32(0)
    for j in range(most):
        if multivariate is None and largest is None and j < least:
            a, b = low[j, 0], high[j, 0]
            for lane in range(lanes):
                point = y[j, 0, lane]
                above = point - b
                below = a - point
                d = above if above > below else below
                d = d if d > zero else zero
                total[lane] += d * d if squared is not None else d
            continue
        here[:] = zero
        for c in range(n_channels):
            a, b = low[j, c], high[j, c]
            for lane in range(lanes):
                point = y[j, c, lane]
                above = point - b
                below = a - point
                d = above if above > below else below
                d = d if d > zero else zero
                here[lane] += d * d if squared is not None else d
        if j >= least:
            for lane in range(lanes):
                if j >= counted[lane]:
                    here[lane] = zero
        for lane in range(lanes):
            if largest is not None:
                total[lane] = here[lane] if here[lane] > total[lane] else total[lane]
            else:
                total[lane] += here[lane]
    if ends:
        for lane in range(lanes):
            if counted[lane] < lengths[lane]:
                cost = zero
                for c in range(n_channels):
                    d = last[c] - y[counted[lane], c, lane]
                    cost += d * d if squared is not None else abs(d)
                if largest is not None:
                    total[lane] = cost if cost > total[lane] else total[lane]
                else:
                    total[lane] += cost
    for lane in range(lanes):
        out[lane] = total[lane]


@kernel(fastmath={"contract", "reassoc", "nsz"})
def backward(x, low, high, first, stop, squared, largest):
    """Bound the query x (C, n) by the envelope (C, n) of a candidate, or (C, 1) by its range."""
    total = np.float32(0)
    zero = np.float32(0)
    if largest is not None:
        for i in range(first, stop):
            here = zero
            for c in range(x.shape[0]):
                k = i if low.shape[1] > 1 else 0
                above, below = x[c, i] - high[c, k], low[c, k] - x[c, i]
                d = above if above > below else below
                d = d if d > zero else zero
                here += d * d if squared is not None else d
            total = here if here > total else total
        return total
    for c in range(x.shape[0]):
        if low.shape[1] > 1:
            for i in range(first, stop):
                above, below = x[c, i] - high[c, i], low[c, i] - x[c, i]
                d = above if above > below else below
                d = d if d > zero else zero
                total += d * d if squared is not None else d
        else:
            a, b = low[c, 0], high[c, 0]
            for i in range(first, stop):
                above, below = x[c, i] - b, a - x[c, i]
                d = above if above > below else below
                d = d if d > zero else zero
                total += d * d if squared is not None else d
    return total


@kernel
def first_bounds(x, candidates, radius, multivariate, squared, largest, free_columns, ends):
    """Bound all candidates by the ranges of the query x (n, C), or as a subsequence by theirs."""
    packed, lengths = candidates.packed, candidates.lengths
    low, high = candidates.low, candidates.high
    n, n_channels = x.shape
    n_candidates = low.shape[0]
    lanes = lanes_of(packed)
    bounds = np.zeros(packed.shape[0] * lanes, np.float32)
    if free_columns:
        by_channel = np.ascontiguousarray(x.T)
        for candidate in range(n_candidates):
            bounds[candidate] = backward(
                by_channel, low[candidate], high[candidate], 0, n, squared, largest
            )
        return bounds
    m = packed.shape[1]
    x_low, x_high = np.empty((m, n_channels), x.dtype), np.empty((m, n_channels), x.dtype)
    if low.shape[2] > 1:
        envelope(x, radius, x_low, x_high)
    else:
        for c in range(n_channels):
            least = most = x[0, c]
            for i in range(1, n):
                least, most = min(least, x[i, c]), max(most, x[i, c])
            x_low[:, c], x_high[:, c] = least, most
    if ends:
        # the first point meets the first
        for c in range(n_channels):
            x_low[0, c] = x_high[0, c] = x[0, c]
    for group in range(packed.shape[0]):
        part = bounds[group * lanes : (group + 1) * lanes]
        forward(
            x_low, x_high, x[n - 1], packed[group], lengths[group], part,
            multivariate, squared, largest, ends,
        )  # fmt: skip
    return bounds


@kernel
def second_bound(x, y, low, high, squared, largest):
    """Bound the query x (C, n) in global alignment by the ranges of a candidate y (C, m)."""
    n, m = x.shape[1], y.shape[1]
    bound = backward(x, low, high, 1, n - 1, squared, largest)
    start = _cost_of(x[:, 0], y[:, 0], squared)
    bound = max(bound, start) if largest is not None else bound + start
    if n > 1 or m > 1:
        end = _cost_of(x[:, n - 1], y[:, m - 1], squared)
        bound = max(bound, end) if largest is not None else bound + end
    return bound


@kernel
def _limit(cost, margins, squared):
    # the accumulated cost above which an estimate's lower value exceeds the upper value of one
    # with this cost; a little more for the rounding here
    scale, slack = margins.scale, margins.slack
    distance = (np.sqrt(cost) if squared is not None else cost) / scale
    beyond = (distance * margins.grow + slack + slack) / margins.shrink * scale
    # see "cost limits" in docs/developer/numerics.rst
    return np.float32((beyond * beyond if squared is not None else beyond) * (1 + 1e-6))


@kernel
def insert(least, cost):
    """Put a cost among the least, in ascending order; the largest of them gives way."""
    place = least.size
    while place > 0 and least[place - 1] > cost:
        place -= 1
    if place < least.size:
        for k in range(least.size - 1, place, -1):
            least[k] = least[k - 1]
        least[place] = cost


@kernel(inline="always")
def _cascade(queries, row, candidates, margins, cell, flags, lists, cancel):
    """Search one query among candidates.

    Fills the lists with candidates and their accumulated costs, and returns how many there are.
    All others cost more than the limit of the queries, or are farther, by their bounds, than the
    n_neighbors nearest of those.
    """
    x = np.ascontiguousarray(queries.values[row, :, : queries.lengths[row]].T)
    radius, excluded = queries.radius[row], queries.excluded[row]
    limit, n_neighbors = queries.limit, queries.n_neighbors
    lengths, values, low, high = candidates[1:]
    multivariate, squared, largest, free_columns, free_rows = flags
    ends = not (free_columns or free_rows)
    found, costs = lists
    deflate = margins.deflate
    n_candidates, n_channels, m = values.shape
    lanes = lanes_of(candidates.packed)
    inf = np.float32(np.inf)
    by_channel = np.ascontiguousarray(x.T)
    flat = lengths.reshape(-1)
    bounds = first_bounds(
        x, candidates, radius.max(), multivariate, squared, largest, free_columns, ends
    )[:n_candidates]
    bounds *= deflate
    gathered = np.zeros((m, n_channels, lanes), np.float32)
    own_lengths = np.zeros(lanes, np.int64)
    reach = np.zeros(lanes, np.int64)
    limits = np.empty((1, 1), np.float32)
    out = np.empty(lanes, np.float32)
    members = np.empty(lanes, np.int64)
    best = np.empty(n_neighbors, np.float32)  # ascending
    best[:] = inf
    count = 0
    # the first few by their bounds, then all others that the limit of those leaves
    first = min(n_candidates, max(lanes, n_neighbors + 1))
    cut = kth_smallest(bounds.copy(), first - 1)
    for stage in range(2):
        if stage == 0:
            chosen = np.flatnonzero(bounds <= cut)
        else:
            chosen = np.flatnonzero((bounds > cut) & (bounds <= limit))
        order = chosen[np.argsort(bounds[chosen])]
        position = 0
        while position < order.size and not cancel[0]:
            filled = 0
            while position < order.size and filled < lanes:
                candidate = order[position]
                if bounds[candidate] > limit:
                    position = order.size
                    break
                position += 1
                if candidate == excluded:
                    continue
                length = flat[candidate]
                y = values[candidate, :, :length]
                if stage == 1 and ends:
                    back = second_bound(
                        by_channel, y, low[candidate], high[candidate], squared, largest
                    )
                    if back * deflate > limit:
                        continue
                members[filled] = candidate
                own_lengths[filled], reach[filled] = length, radius[candidate]
                for c in range(n_channels):
                    for j in range(length):
                        gathered[j, c, filled] = y[c, j]
                filled += 1
            if filled == 0:
                break
            own_lengths[filled:], reach[filled:] = 0, reach[0]
            limits[0, 0] = limit
            sweep(
                x, gathered, own_lengths, reach, limits, out, cancel,
                cell, multivariate, free_columns, free_rows,
            )  # fmt: skip
            for lane in range(filled):
                if out[lane] <= limit:
                    found[count] = members[lane]
                    costs[count] = out[lane]
                    count += 1
                    insert(best, out[lane])
            if n_neighbors > 0:  # infinite as long as fewer are known
                nearer = _limit(best[n_neighbors - 1], margins, squared)
                limit = min(limit, nearer)
    return count


@kernel
def search(queries, candidates, margins, cell, flags, lists, cancel):
    """Search queries among candidates, one after the other.

    Parameters
    ----------
    queries : SearchedQueries
    candidates : BoundedSeries
    margins : Margins
    cell : Cell
        What steps cost.
    flags : tuple
        The other members of `Flags`.
    lists : tuple of ndarray of shape (n_queries, n_candidates), int64 and float32
        Receive the candidates that may be in the answer, and their accumulated costs.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_queries,), int64
        How many each query has.
    """
    found, costs = lists
    counts = np.zeros(queries.lengths.size, np.int64)
    for row in range(counts.size):
        own = found[row], costs[row]
        counts[row] = _cascade(queries, row, candidates, margins, cell, flags, own, cancel)
    return counts
