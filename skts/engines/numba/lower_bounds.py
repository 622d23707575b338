"""The cascade of a search in a band: bound all candidates, then warp the few that are left.

For one query at a time: LB_Keogh of every candidate against the envelope of the query, lanes side
by side. The most promising candidates are warped first; the k-th nearest of them is a limit for
the rest. What the first bound leaves is taken in ascending order, bounded the other way round
(the query against the envelope of the candidate), and gathered into full groups of lanes. The
limit falls after each group, and a group is abandoned when every lane is beyond it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .dtw import lanes_of, sweep

__all__ = ["cascade", "envelopes"]


@njit(nogil=True, cache=True, error_model="numpy")
def envelope(x, radius, low, high):
    """Least and largest point of each channel of x (n, C) within `radius` of every position."""
    n, n_channels = x.shape
    for c in range(n_channels):
        # ends of the window move forward; candidates for the extreme wait in a queue
        for sign, out in ((1.0, low), (-1.0, high)):
            queue = np.empty(n, np.int64)
            first = last = 0
            entering = 0
            for i in range(n):
                while entering < n and entering <= i + radius:
                    while last > first and sign * x[queue[last - 1], c] >= sign * x[entering, c]:
                        last -= 1
                    queue[last] = entering
                    last += 1
                    entering += 1
                while queue[first] < i - radius:
                    first += 1
                out[i, c] = x[queue[first], c]


@njit(nogil=True, cache=True)
def envelopes(values, radius):
    """Envelopes of series (n_series, C, n): least and largest points, in the same layout."""
    low, high = np.empty_like(values), np.empty_like(values)
    for series in range(values.shape[0]):
        envelope(values[series].T, radius, low[series].T, high[series].T)
    return low, high


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _keogh(low, high, y, out, squared, largest):
    # costs of points y (n, C, lanes) outside the envelope of the query
    lanes = lanes_of(y)
    n, n_channels = low.shape
    total = np.zeros(lanes, np.float32)
    here = np.zeros(lanes, np.float32)
    zero = np.float32(0)
    for i in range(n):
        if largest is not None:
            here[:] = zero
        for c in range(n_channels):
            a, b = low[i, c], high[i, c]
            for lane in range(lanes):
                point = y[i, c, lane]
                above = point - b
                below = a - point
                d = above if above > below else below
                d = d if d > zero else zero
                if largest is not None:
                    here[lane] += d * d if squared is not None else d
                else:
                    total[lane] += d * d if squared is not None else d
        if largest is not None:
            for lane in range(lanes):
                total[lane] = here[lane] if here[lane] > total[lane] else total[lane]
    for lane in range(lanes):
        out[lane] = total[lane]


@njit(nogil=True, cache=True, error_model="numpy")
def _limit(cost, scale, shrink, grow, slack, squared):
    # the accumulated cost above which an estimate's lower value exceeds the upper value of one
    # with this cost; a little more for the rounding here
    distance = (np.sqrt(cost) if squared is not None else cost) / scale
    beyond = (distance * grow + slack + slack) / shrink * scale
    return np.float32((beyond * beyond if squared is not None else beyond) * (1 + 1e-6))


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def _keogh_back(x, low, high, squared):
    # cost of the query x (C, n) outside the envelope of one candidate
    total = np.float32(0)
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            above = x[c, i] - high[c, i]
            below = low[c, i] - x[c, i]
            d = above if above > below else below
            d = d if d > np.float32(0) else np.float32(0)
            total += d * d if squared is not None else d
    return total


@njit(nogil=True, cache=True, error_model="numpy")
def cascade(
    x, packed, values, low, high, excluded, n_neighbors, radius, scale, shrink, grow, slack,
    found, costs, cancel, multivariate, squared, largest,
):  # fmt: skip
    """Search one query x (n, C) among candidates of the same length.

    Candidates come as lanes (`packed`), one after the other (`values`), and as envelopes (`low`,
    `high`). Fills `found` with candidates and `costs` with their accumulated costs, and returns how
    many there are. All others are farther, by their bounds, than the n_neighbors nearest of those.
    """
    n, n_channels = x.shape
    n_candidates = values.shape[0]
    lanes = lanes_of(packed)
    inf = np.float32(np.inf)
    x_low, x_high = np.empty_like(x), np.empty_like(x)
    envelope(x, radius, x_low, x_high)
    bounds = np.empty(packed.shape[0] * lanes, np.float32)
    for group in range(packed.shape[0]):
        part = bounds[group * lanes : (group + 1) * lanes]
        _keogh(x_low, x_high, packed[group], part, squared, largest)
    bounds = bounds[:n_candidates]
    by_channel = np.ascontiguousarray(x.T)
    points = np.ascontiguousarray(x).reshape(n, n_channels, 1)
    gathered = np.zeros((n, n_channels, lanes), np.float32)
    lengths = np.full(lanes, n)
    reach = np.full(lanes, radius)
    out = np.empty(lanes, np.float32)
    members = np.empty(lanes, np.int64)
    best = np.full(n_neighbors, inf)  # ascending
    limit = inf
    count = 0
    # the first few by their bounds, then all others that the limit of those leaves
    first = min(n_candidates, max(lanes, n_neighbors + 1))
    cut = np.partition(bounds, first - 1)[first - 1]
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
                if stage == 1 and largest is None:
                    back = _keogh_back(by_channel, low[candidate], high[candidate], squared)
                    if back > limit:
                        continue
                members[filled] = candidate
                for c in range(n_channels):
                    for i in range(n):
                        gathered[i, c, filled] = values[candidate, c, i]
                filled += 1
            if filled == 0:
                break
            sweep(
                points, lengths[:1], gathered, lengths, reach, limit, out, cancel,
                None, multivariate, squared, largest, None, None,
            )  # fmt: skip
            for lane in range(filled):
                if out[lane] <= limit:
                    found[count] = members[lane]
                    costs[count] = out[lane]
                    count += 1
                    place = n_neighbors
                    while place > 0 and best[place - 1] > out[lane]:
                        place -= 1
                    if place < n_neighbors:
                        best[place + 1 :] = best[place:-1].copy()
                        best[place] = out[lane]
            if best[n_neighbors - 1] < inf:
                limit = _limit(best[n_neighbors - 1], scale, shrink, grow, slack, squared)
    return count
