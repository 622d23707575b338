"""Certified distances of the candidates of many nodes to the series of each, on the CPU.

A candidate is looked for in one series after the other, in three steps. Dot products in float32
with all windows of a series, of sums of four points where series are smooth, bound how near each
window is from below. The nearest by that, and all that may be as near, get dot products in float64,
with a bound of their errors: nearly always a single one is left. These are measured LANES at a
time, in the one order of operations of all engines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import CONSTANT, FLOAT32_UNIT, FLOAT64_UNIT, SMALLEST_RANGE
from ...host import kernel
from .._borrowed import borrowed
from .matches import _LARGE, _SMALL, _scaled_distance
from .screen import LANES, VECTORS, bounds, least, measure, products, reach

__all__ = ["LANES", "PADDING", "Surveyed", "match_groups", "survey"]

#: Points behind rows, which whole vectors of windows reach.
PADDING = LANES * VECTORS + 4
#: The bound of keys of windows that cannot be judged.
_NEVER = np.float32(-1e30)
#: Products that take as long as to judge one window by itself.
_EACH = 1000
_MASK = 2**LANES - 1


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
    rounded, coarse : ndarray of shape (n_rows, n_timepoints + PADDING), float32
        Centred points, and half of the sum of four from each on.
    strided : ndarray of shape (n_rows, n_timepoints + PADDING)
        Sums of the squares of every fourth of these sums before each.
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
    rounded: np.ndarray
    coarse: np.ndarray
    strided: np.ndarray
    scales: np.ndarray


@kernel
def _add(total, rest, x):
    """Add a number to a sum of two numbers; what rounding leaves over goes to the second."""
    both = total + x
    part = both - total
    return both, rest + ((total - (both - part)) + (x - part))


@kernel
def survey(values, lengths, centered, sums, squares, equals, rounded, coarse, strided, scales):
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
        for t in range(n):
            rounded[row, t] = centered[row, t]
        for t in range(n - 3):
            x = centered[row, t] + centered[row, t + 1]
            x = 0.5 * (x + (centered[row, t + 2] + centered[row, t + 3]))
            coarse[row, t] = x
            strided[row, t + 4] = strided[row, t] + x * x
        fine = abs(power) < 900 and abs(power + more) < 900
        scales[row, 0] = 4.0 / step
        scales[row, 1] = 2.0 ** (power + more - 500) if fine else np.inf
        scales[row, 2] = 2.0 ** (power + more + 500) if fine else 0.0


@kernel(fastmath={"contract", "reassoc"})
def _products(query, points, begins, count, out):
    """Dot products of a query and some windows of points: estimates, in any rounding."""
    for i in range(count):
        total, x = 0.0, points[begins[i] :][: query.size]
        for t in range(query.size):
            total += query[t] * x[t]
        out[i] = total


@kernel(forceinline=True)
def _judge(surveyed, row, length, lean, begins, count, keys, doubts):
    """Turn dot products into keys, larger for nearer windows, with a bound of their error.

    The squared distance is twice the length less the dot product, by the weight of the window,
    twice: keys are such products. The doubt is infinite of a window that cannot be judged here.
    """
    share, u = 1.0 / length, FLOAT64_UNIT
    magnitude, lightest, heaviest = surveyed.scales[row]
    s0, s1 = surveyed.sums[0, row], surveyed.sums[1, row]
    q0, q1 = surveyed.squares[0, row], surveyed.squares[1, row]
    width = float(surveyed.centered.shape[1])
    lost = 64 * u * u * width * width * width
    for i in range(count):
        j = begins[i]
        s = (s0[j + length] - s0[j]) + (s1[j + length] - s1[j])
        q = (q0[j + length] - q0[j]) + (q1[j + length] - q1[j])
        # what is left of squares about the mean, and what that is wrong by
        rest = q - s * s * share
        wrong = 16 * u * q + lost
        sound = wrong < 1e-3 * rest
        rest = rest if sound else 1.0
        part = 1.0 / rest
        weight = np.sqrt(part * length)
        farthest = magnitude * weight
        shift = u * length * farthest
        # above the norm of the centred points over that of the window's deviations
        steep = 0.5 + 0.5 * q * part
        # see "match keys" in docs/developer/numerics.rst
        total = u * (length + 4) * steep + u * (4.0 * length + 40) + wrong * part
        total += 0.5 * shift * shift + lean * (steep + shift)
        sound &= (weight >= lightest) & (weight <= heaviest)
        sound &= (farthest < 2.0**38) & (shift < 1e-2)
        keys[i] = keys[i] * weight if sound else 0.0
        doubts[i] = 2.001 * total * length if sound else np.inf


@kernel
def _describe(points):
    """Certified mean, from the first point on, 1 / deviation, and whether points are constant."""
    first = points[0]
    total, low, high = 0.0, first, first
    for t in range(points.size):
        total += points[t] - first
        low, high = min(low, points[t]), max(high, points[t])
    mean, squares = total / points.size, 0.0
    for t in range(points.size):
        d = points[t] - first - mean
        squares += d * d
    constant = high - low <= max(CONSTANT * max(abs(low), abs(high)), SMALLEST_RANGE)
    return mean, 0.0 if constant else 1.0 / np.sqrt(squares / points.size), constant


@kernel
def _measure(query, flat, points):
    """Certified distance of a normalised query, which may be constant, to one window."""
    mean, inverse, constant = _describe(points)
    if constant != flat:
        return np.sqrt(float(points.size))
    if constant:
        return 0.0
    total = 0.0
    for t in range(points.size):
        d = query[t] - (points[t] - points[0] - mean) * inverse
        total += d * d
    return np.sqrt(total)


@kernel
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


@kernel
def _round_query(query, lean, width, out, places, numbers):
    """Round a query to float32, as half sums of four points if that pays; say what it leaves out.

    Returns how many numbers are compared, and how many points each stands for; writes what
    `bounds` is told of the query.
    """
    length = query.size
    n, left_out, step = length // 4, 0.0, 4
    for k in range(n):
        p, q, r, s = query[4 * k], query[4 * k + 1], query[4 * k + 2], query[4 * k + 3]
        x = 0.5 * (p + q + (r + s))
        out[k] = x
        left_out += p * p + q * q + r * r + s * s - x * x
    # windows that are measured: some, and as many as coarse points leave out; each takes as long
    # as so many products
    n_windows = max(1, width - length + 1)
    if _EACH * (4 + 2 * left_out / length * n_windows) >= 0.75 * length * n_windows:
        n, left_out, step = 0, 0.0, 1
    middle = step * n
    for t in range(middle, length):
        out[n + t - middle] = query[t]
    # see "match keys" in docs/developer/numerics.rst
    share = (length + 48) * FLOAT32_UNIT + 2.02 * lean
    both = 0.5 * length * share
    numbers[2], numbers[4] = 1.0 / length, length
    numbers[5] = 1.00001 * (both + 0.5 * (left_out + 1e-6 * length * (step == 4)))
    numbers[6], numbers[7] = 1.00001 * both, 0.500005 * length * (step == 4)
    for k in range(3):
        numbers[8 + k] = out[n + k] if step == 4 and middle + k < length else 0.0
    if step == 1:
        n = middle = length
    places[0], places[1] = length, middle
    return n, step


@kernel
def _match_one(surveyed, query, rounded_query, lean, flat, channel, members, lists, rooms, found):
    """Distances of one normalised query to some series; those of listed windows come later.

    Listed are the member, and where the window begins in all values; returns how many are.
    """
    whose, begins, uppers, entries, judged, keys, doubts = lists
    rounded, n_rounded, step, places, numbers = rounded_query
    values, length, place, u = surveyed.values, query.size, 0, FLOAT64_UNIT
    n_channels, width = values.shape[1:]
    root, products_of_all, lows = np.sqrt(float(length)), rooms[0], rooms[1]
    numbers[3] = wrong = 32 * u * float(width) * float(width)
    stride = surveyed.rounded.shape[1]
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
        products(
            surveyed.rounded if step == 1 else surveyed.coarse,
            *(row * stride, step, rounded, n_rounded, n, products_of_all),
        )
        magnitude, lightest, heaviest = surveyed.scales[row]
        heaviest = min(heaviest, 2.0**38 / magnitude, 2.0**-13 / (u * length * magnitude))
        numbers[0] = max(1.000001 * length / (heaviest * heaviest), 2.0**20 * wrong)
        numbers[1] = 0.999999 * length / (lightest * lightest)
        floor = bounds(
            *(surveyed.sums[0, row], surveyed.squares[0, row], surveyed.strided[row]),
            *(surveyed.rounded[row], places, numbers, n, products_of_all, lows),
        )
        padded = (n + LANES - 1) // LANES * LANES
        first, best = place, -np.inf
        # windows that cannot be judged, the nearest one, and those that may be as near
        for stage in range(3):
            if stage == 0 and floor > _NEVER:
                continue
            if stage == 1:
                floor = least(lows, padded)
            if stage == 2:
                floor = np.float32(min(-best, 1e29))
            if floor == -_NEVER:
                break
            count = np.int64(0)
            for entry in range(reach(lows, padded, floor, entries)):
                j, bits = entries[entry] >> LANES, entries[entry] & _MASK
                while bits:
                    if bits & 1:
                        lows[j] = -_NEVER
                        if surveyed.equals[row, j] < length:
                            judged[count] = j
                            count += 1
                        else:
                            # a constant window is as far from any query that is not constant
                            found[k] = min(found[k], root)
                    bits >>= 1
                    j += 1
            _products(query, surveyed.centered[row], judged, count, keys)
            _judge(surveyed, row, length, lean, judged, count, keys, doubts)
            for i in range(count):
                j, doubt = judged[i], doubts[i]
                if doubt == np.inf or place == whose.size:
                    one = _measure(query, flat, points[j : j + length])
                    found[k] = min(found[k], one)
                elif keys[i] + doubt >= best:
                    best = max(best, keys[i] - doubt)
                    whose[place], begins[place] = k, row * width + j
                    uppers[place] = keys[i] + doubt
                    place += 1
        stop, place = place, first
        for i in range(first, stop):
            if uppers[i] >= best:
                whose[place], begins[place] = whose[i], begins[i]
                place += 1
    return place


@kernel
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
    surveyed = borrowed(surveyed)
    padded = width + LANES * VECTORS
    rooms = np.empty(padded, np.float32), np.empty(padded, np.float32)
    # windows beyond these are measured one by one
    size = 4 * most + width
    lists = (
        *(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)),
        *(np.empty(padded, np.int64), np.empty(padded, np.int64)),
        *(np.empty(padded), np.empty(padded)),
    )
    rounded, places, numbers = np.empty(longest, np.float32), np.empty(2, np.int64), np.empty(11)
    room, measured, normal = np.ones((longest, LANES)), np.empty(LANES), np.empty(longest)
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
                    query[t] = 0.0 if flat else (own[t] - own[0] - mean) * inverse
                    lean += query[t]
                    norm += query[t] * query[t]
                lean = abs(lean) / length + length * FLOAT64_UNIT
                if not (abs(norm / length - 1) < 1e-6 and lean < 1e-3):
                    lean = np.inf
                lean *= 1.01
                n_rounded, step = _round_query(query, lean, width, rounded, places, numbers)
                n_listed = _match_one(
                    *(surveyed, query, (rounded, n_rounded, step, places, numbers), lean, flat),
                    *(channel, some, lists, rooms, out),
                )
                for first in range(0, n_listed, LANES):
                    count = min(LANES, n_listed - first)
                    for lane in range(count):
                        window = flat_values[lists[1][first + lane] :][:length]
                        for t in range(length):
                            room[t, lane] = window[t]
                    measure(query, length, room, measured)
                    for lane in range(count):
                        i = lists[0][first + lane]
                        out[i] = min(out[i], measured[lane])
            scale = np.sqrt(float(length))
            for i in range(some.size):
                out[i] /= scale
