"""Certified distances of the candidates of many nodes to the series of each, on the CPU.

A candidate is looked for in one series after the other. Dot products with all windows of a series
say, with a bound of their errors, which of them may be the best match, nearly always one. These
are measured LANES at a time, in the one order of operations of all engines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ...core.constants import CONSTANT, FLOAT64_UNIT, SMALLEST_RANGE
from .matches import _LARGE, _SMALL, _scaled_distance

__all__ = ["Surveyed", "match_groups", "survey"]

#: Windows that are measured side by side.
LANES = 8


class Surveyed(NamedTuple):
    """Series, described; rows are channels of series.

    Attributes
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints)
        The series.
    lengths : ndarray of shape (n_series,)
        Their points.
    centered : ndarray of shape (n_rows, n_timepoints)
        Points less their mean, in units of the row: a power of two.
    sums, squares : ndarray of shape (2, n_rows, n_timepoints + 1)
        Sums of centred points before each, and of their squares; and what roundings left over.
    equals : ndarray of shape (n_rows, n_timepoints)
        Points from each on that are equal to it.
    scales : ndarray of shape (n_rows, 3)
        Largest magnitude of the points with their mean, in units; least and largest
        1 / deviation, in units, of windows whose certified values neither overflow nor vanish.
    """

    values: np.ndarray
    lengths: np.ndarray
    centered: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    equals: np.ndarray
    scales: np.ndarray


@njit(nogil=True, cache=True, error_model="numpy")
def _add(total, rest, x):
    """Add a number to a sum of two numbers; what rounding leaves over goes to the second."""
    both = total + x
    part = both - total
    return both, rest + ((total - (both - part)) + (x - part))


@njit(nogil=True, cache=True, error_model="numpy")
def survey(values, lengths, centered, sums, squares, equals, scales):
    """Describe series; see `Surveyed`."""
    for row in range(centered.shape[0]):
        n = lengths[row // values.shape[1]]
        line = values[row // values.shape[1], row % values.shape[1]]
        largest = 0.0
        for t in range(n):
            largest = max(largest, abs(line[t]))
        # the unit: in two steps, so that nothing overflows
        power = np.floor(np.log2(largest)) if largest > 0 else 0.0
        unit = 2.0**power
        mean = 0.0
        for t in range(n):
            mean += line[t] / unit
        mean /= n
        farthest = 0.0
        for t in range(n):
            farthest = max(farthest, abs(line[t] / unit - mean))
        more = max(-900.0, np.floor(np.log2(farthest))) if farthest > 0 else 0.0
        step = 2.0**more
        total, rest, square, rest_of_square = 0.0, 0.0, 0.0, 0.0
        for t in range(n):
            x = (line[t] / unit - mean) / step
            centered[row, t] = x
            sums[0, row, t], sums[1, row, t] = total, rest
            squares[0, row, t], squares[1, row, t] = square, rest_of_square
            total, rest = _add(total, rest, x)
            square, rest_of_square = _add(square, rest_of_square, x * x)
        sums[0, row, n], sums[1, row, n] = total, rest
        squares[0, row, n], squares[1, row, n] = square, rest_of_square
        for t in range(n - 1, -1, -1):
            equals[row, t] = 1
            if t + 1 < n and line[t] == line[t + 1]:
                equals[row, t] = equals[row, t + 1] + 1
        fine = abs(power) < 900 and abs(power + more) < 900
        scales[row, 0] = 4.0 / step
        scales[row, 1] = 2.0 ** (power + more - 500) if fine else np.inf
        scales[row, 2] = 2.0 ** (power + more + 500) if fine else 0.0


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def _products(query, points, out):
    """Dot products of a query with all windows of some points: estimates, in any rounding."""
    length, n = query.size, out.size
    out[:] = 0.0
    for t in range(0, length - 7, 8):
        a, b, c, d = query[t], query[t + 1], query[t + 2], query[t + 3]
        e, f, g, h = query[t + 4], query[t + 5], query[t + 6], query[t + 7]
        x = points[t : t + n + 7]
        for j in range(n):
            some = out[j] + a * x[j] + b * x[j + 1] + c * x[j + 2] + d * x[j + 3]
            out[j] = some + e * x[j + 4] + f * x[j + 5] + g * x[j + 6] + h * x[j + 7]
    for t in range(length // 8 * 8, length):
        a, x = query[t], points[t : t + n]
        for j in range(n):
            out[j] += a * x[j]


@njit(nogil=True, cache=True, error_model="numpy")
def _judge(surveyed, row, length, lean, keys, doubts):
    """Turn dot products into keys, larger for nearer windows, with a bound of their error.

    The squared distance is twice the length less the dot product, by the weight of the window,
    twice. Keys are such products less half of the length, so that a constant window has 0. The
    doubt is infinite of a window that cannot be judged here.
    """
    n = keys.size
    share, half, u = 1.0 / length, 0.5 * length, FLOAT64_UNIT
    magnitude, lightest, heaviest = surveyed.scales[row]
    s0, s1 = surveyed.sums[0, row][: n + length], surveyed.sums[1, row][: n + length]
    q0, q1 = surveyed.squares[0, row][: n + length], surveyed.squares[1, row][: n + length]
    width = float(surveyed.centered.shape[1])
    lost = 64 * u * u * width * width * width
    fixed = u * (4.0 * length + 40)
    for j in range(n):
        s = (s0[j + length] - s0[j]) + (s1[j + length] - s1[j])
        q = (q0[j + length] - q0[j]) + (q1[j + length] - q1[j])
        # what is left of squares about the mean, and what that is wrong by
        rest = q - s * s * share
        wrong = 16 * u * q + lost
        sound = wrong < 1e-3 * rest
        rest = rest if sound else 1.0
        part = 1.0 / rest
        weight = np.sqrt(part * length)
        reach = magnitude * weight
        shift = u * length * reach
        # above the norm of the centred points over that of the window's deviations
        steep = 0.5 + 0.5 * q * part
        # see "match keys" in docs/developer/numerics.rst
        total = u * (length + 4) * steep + fixed + wrong * part
        total += 0.5 * shift * shift + lean * (steep + shift)
        sound &= (weight >= lightest) & (weight <= heaviest) & (reach < 2.0**38) & (shift < 1e-2)
        keys[j] = keys[j] * weight - half if sound else 0.0
        doubts[j] = 2.001 * total * length if sound else np.inf


@njit(nogil=True, cache=True, error_model="numpy")
def _describe(points):
    """Certified mean, 1 / deviation, and whether points are constant: one window or query."""
    total, low, high = 0.0, points[0], points[0]
    for t in range(points.size):
        total += points[t]
        low, high = min(low, points[t]), max(high, points[t])
    mean, squares = total / points.size, 0.0
    for t in range(points.size):
        d = points[t] - mean
        squares += d * d
    constant = high - low <= max(CONSTANT * max(abs(low), abs(high)), SMALLEST_RANGE)
    return mean, 0.0 if constant else 1.0 / np.sqrt(squares / points.size), constant


@njit(nogil=True, cache=True, error_model="numpy")
def _measure(query, flat, points):
    """Certified distance of a normalised query, which may be constant, to one window."""
    mean, inverse, constant = _describe(points)
    if constant != flat:
        return np.sqrt(float(points.size))
    if constant:
        return 0.0
    total = 0.0
    for t in range(points.size):
        d = query[t] - (points[t] - mean) * inverse
        total += d * d
    return np.sqrt(total)


@njit(nogil=True, cache=True, error_model="numpy")
def _measure_together(query, values, begins, count, room, out):
    """Certified distances of a query to windows that are not constant, LANES of them at most."""
    length = query.size
    for lane in range(LANES):
        window = values[begins[min(lane, count - 1)] :][:length]
        for t in range(length):
            room[t, lane] = window[t]
    mean, scale, total = np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)
    for t in range(length):
        for lane in range(LANES):
            mean[lane] += room[t, lane]
    for lane in range(LANES):
        mean[lane] /= length
    for t in range(length):
        for lane in range(LANES):
            d = room[t, lane] - mean[lane]
            scale[lane] += d * d
    for lane in range(LANES):
        scale[lane] = 1.0 / np.sqrt(scale[lane] / length)
    for t in range(length):
        a = query[t]
        for lane in range(LANES):
            d = a - (room[t, lane] - mean[lane]) * scale[lane]
            total[lane] += d * d
    for lane in range(count):
        out[lane] = np.sqrt(total[lane])


@njit(nogil=True, cache=True, error_model="numpy")
def _raw(query, points):
    """Certified distance of a query of few points to its best match, nothing normalised."""
    best = np.inf
    for j in range(points.size - query.size + 1):
        total = 0.0
        for t in range(query.size):
            d = query[t] - points[j + t]
            total += d * d
        distance = np.sqrt(total)
        if not (_SMALL < distance < _LARGE):
            distance = _scaled_distance(query, points, j)
        best = min(best, distance)
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def _match_one(surveyed, query, lean, flat, channel, members, place, lists, rooms, found):
    """Distances of one normalised query to some series; those of listed windows come later.

    Listed are the member, and where the window begins in all values. `place` counts them.
    """
    keys_of_all, doubts_of_all = rooms
    whose, begins = lists
    values, length = surveyed.values, query.size
    n_channels, width = values.shape[1:]
    for k in range(members.size):
        series = members[k]
        n = surveyed.lengths[series] - length + 1
        found[k] = np.inf
        if n <= 0:
            continue
        row = series * n_channels + channel
        points = values[series, channel]
        if flat or lean == np.inf:
            for j in range(n):
                found[k] = min(found[k], _measure(query, flat, points[j : j + length]))
            continue
        keys, doubts = keys_of_all[:n], doubts_of_all[:n]
        _products(query, surveyed.centered[row], keys)
        _judge(surveyed, row, length, lean, keys, doubts)
        best = -np.inf
        for j in range(n):
            best = max(best, keys[j] - doubts[j])
        for j in range(n):
            if keys[j] + doubts[j] < best:
                continue
            if doubts[j] < np.inf and place < whose.size:
                whose[place], begins[place] = k, row * width + j
                place += 1
            elif surveyed.equals[row, j] < length:
                found[k] = min(found[k], _measure(query, flat, points[j : j + length]))
            else:
                # a constant window is as far from any query that is not constant
                found[k] = min(found[k], np.sqrt(float(length)))
    return place


@njit(nogil=True, cache=True, error_model="numpy")
def match_groups(surveyed, source, pieces, queries_of, members, members_of, found, cancel):
    """Distances of the queries of each group to its members, divided by the root of their length.

    Parameters
    ----------
    surveyed : Surveyed
        The series.
    source : ndarray of shape (n, n_channels, n_points)
        Where queries are taken from.
    pieces : ndarray of shape (n_queries, 4)
        Series of the source, channel, start and length of each query.
    queries_of, members_of : ndarray of shape (n_groups + 1,)
        Where queries and members of each group begin.
    members : ndarray of shape (n_members,)
        Series of the groups.
    found : ndarray of float64
        Written: group by group, query by query.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    flat_values = surveyed.values.ravel()
    width, most, longest = surveyed.values.shape[2], 1, 1
    for g in range(members_of.size - 1):
        most = max(most, members_of[g + 1] - members_of[g])
    for k in range(len(pieces)):
        longest = max(longest, pieces[k, 3])
    rooms = np.empty(width), np.empty(width)
    # windows beyond these are measured one by one
    lists = np.empty(4 * most, np.int64), np.empty(4 * most, np.int64)
    room, measured, normal = np.empty((longest, LANES)), np.empty(LANES), np.empty(longest)
    begin = 0
    for g in range(members_of.size - 1):
        some = members[members_of[g] : members_of[g + 1]]
        for k in range(queries_of[g], queries_of[g + 1]):
            if cancel[0]:
                return
            series, channel, start, length = pieces[k]
            own = source[series, channel, start : start + length]
            out = found[begin : begin + some.size]
            begin += some.size
            if length < 3:
                for i in range(some.size):
                    n = surveyed.lengths[some[i]]
                    out[i] = _raw(own, surveyed.values[some[i], channel, :n])
            else:
                query = normal[:length]
                mean, inverse, flat = _describe(own)
                lean, norm = 0.0, 0.0
                for t in range(length):
                    query[t] = 0.0 if flat else (own[t] - mean) * inverse
                    lean += query[t]
                    norm += query[t] * query[t]
                lean = abs(lean) / length + length * FLOAT64_UNIT
                if not (abs(norm / length - 1) < 1e-6 and lean < 1e-3):
                    lean = np.inf
                n_listed = _match_one(
                    surveyed, query, 1.01 * lean, flat, channel, some, 0, lists, rooms, out
                )
                for first in range(0, n_listed, LANES):
                    count = min(LANES, n_listed - first)
                    _measure_together(query, flat_values, lists[1][first:], count, room, measured)
                    for lane in range(count):
                        i = lists[0][first + lane]
                        out[i] = min(out[i], measured[lane])
            scale = np.sqrt(float(length))
            for i in range(some.size):
                out[i] /= scale
