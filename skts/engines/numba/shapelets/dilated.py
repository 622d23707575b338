"""Distances of dilated shapelets to the windows of series on the CPU, certified.

Windows of a series that begin side by side have their points side by side, whatever the dilation:
each loop runs over windows. Some hundred of them are normalised, which all shapelets of a run share
(see `DilatedShapelets.runs`), and lie in the cache while one shapelet after the other is compared
with them, in float32. Bounds of the errors say which windows may be the nearest, or may be on
either side of the threshold, nearly always one. These are measured: squares are summed in the order
of time, without fused multiply-add.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.constants import CONSTANT, FLOAT32_UNIT, LOST_SQUARES, SMALLEST_RANGE
from ...host import kernel
from ...host.arrays import kth_smallest
from .._borrowed import borrowed
from .screen import LANES, VECTORS, halves_of_squares, reach

__all__ = ["ShapeletTable", "features", "quantiles"]

#: Numbers of normalised windows that are looked at together, and windows at least; multiples of
#: so many are.
_ROOM, _WINDOWS = 5120, LANES * VECTORS
#: Places with windows that are measured one by one, at most; else all of them are.
_FEW = 16
#: The key of windows that are not there, above those of all that are, and of all limits.
_ABSENT, _HIGHEST = np.float32(1e30), 1e25
#: Half the range of a series, or its inverse, at most; and squares, in units of it.
_FINE, _FINE_SQUARES = 1e100, 1e12
_UNIT, _MASK = FLOAT32_UNIT, 2**LANES - 1


class ShapeletTable(NamedTuple):
    """Shapelets as kernels read them.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Points as they are compared.
    begins, lengths, dilations, channels : ndarray of shape (n_shapelets,), int64
        See `DilatedShapelets`.
    kinds : ndarray of shape (n_shapelets,), uint8
        0 as they are, 1 normalised, 2 normalised and constant.
    runs : ndarray of shape (n_runs + 1,), int64
        Where shapelets begin that share their windows.
    limits : ndarray of shape (n_shapelets,), float64
        The largest sum of squares that counts as a match, a finite number.
    thresholds : ndarray of shape (n_shapelets,), float64
        The largest distance that does.
    """

    points: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    dilations: np.ndarray
    channels: np.ndarray
    kinds: np.ndarray
    runs: np.ndarray
    limits: np.ndarray
    thresholds: np.ndarray


@kernel
def _lay(points, first, count, dilation, normalized, z, room):
    """Write some windows as they are compared, a point of all in each row; see which are constant.

    Points of normalised windows count from the first of them.
    `room` has rows for mean, least and largest, and inverse deviation, 0 of those.
    """
    length = z.shape[0]
    mean, low, high, inverse = room[0], room[1], room[2], room[3]
    if not normalized:
        for t in range(length):
            x, row = points[first + t * dilation :][:count], z[t]
            for j in range(count):
                row[j] = x[j]
        return
    x = points[first:][:count]
    for j in range(count):
        mean[j], low[j], high[j], inverse[j] = 0.0, x[j], x[j], 0.0
        z[0, j] = 0.0
    for t in range(1, length):
        x, start, row = points[first + t * dilation :][:count], points[first:][:count], z[t]
        for j in range(count):
            row[j] = x[j] - start[j]
            mean[j] += row[j]
            low[j] = x[j] if x[j] < low[j] else low[j]
            high[j] = x[j] if x[j] > high[j] else high[j]
    for j in range(count):
        mean[j] /= length
    for t in range(length):
        row = z[t]
        for j in range(count):
            d = row[j] - mean[j]
            row[j] = d
            inverse[j] += d * d
    for j in range(count):
        largest = max(abs(low[j]), abs(high[j]))
        if high[j] - low[j] <= max(CONSTANT * largest, SMALLEST_RANGE):
            inverse[j] = 0.0
        else:
            inverse[j] = 1.0 / np.sqrt(inverse[j] / length)
    for t in range(length):
        row = z[t]
        for j in range(count):
            row[j] *= inverse[j]


@kernel
def _squares(query, z, inverse, kind, sums):
    """Sums of squares of a shapelet and some windows."""
    length, count = query.size, sums.size
    for j in range(count):
        sums[j] = 0.0
    for t in range(length):
        a, row = query[t], z[t][:count]
        for j in range(count):
            e = a - row[j]
            sums[j] += e * e
    if kind > 0:
        # constant windows: 0 from constant shapelets, 1 from others, which have windows at 1, too
        for j in range(count):
            if kind == 2:
                sums[j] = 0.0 if inverse[j] == 0.0 else float(length)
            elif inverse[j] == 0.0:
                sums[j] = float(length)


@kernel(forceinline=True)
def _square(query, z, inverse, j):
    """The sum of squares of a shapelet that is not constant and a window."""
    if inverse[j] == 0.0:
        return float(query.size)
    total = 0.0
    for t in range(query.size):
        e = query[t] - z[t, j]
        total += e * e
    return total


@kernel
def _scaled_distance(query, points, start, dilation):
    """The norm of the difference of a shapelet and a window, whatever its size."""
    largest = 0.0
    for t in range(query.size):
        largest = max(largest, abs(query[t] - points[start + t * dilation]))
    if largest == 0:
        return 0.0
    # a power of two: the bits are those of the plain sum, where that holds all squares
    unit = 2.0 ** (math.frexp(largest)[1] - 1)
    total = 0.0
    for t in range(query.size):
        d = (query[t] - points[start + t * dilation]) / unit
        total += d * d
    return np.sqrt(total) * unit


@kernel
def _match_tiny(query, points, n_windows, dilation, threshold):
    """Best match where squares are too small for a plain sum: distance, start and count."""
    best, start, count, root = np.inf, -1, 0, np.sqrt(float(query.size))
    for j in range(n_windows):
        total = 0.0
        for t in range(query.size):
            d = query[t] - points[j + t * dilation]
            total += d * d
        norm = np.sqrt(total)
        if total < LOST_SQUARES:
            norm = _scaled_distance(query, points, j, dilation)
        if norm < best:
            best, start = norm, j
        count += norm / root <= threshold
    return best, start, count


@kernel
def _measure_all(sums, limit, block, mine):
    """Take note of the sums of squares of all windows of a block; see `_run`."""
    for j in range(sums.size):
        square = sums[j]
        mine[2] += square <= limit
        if square < mine[3] or mine[1] < 0:
            root, mine[3] = np.sqrt(square), square
            if root < mine[0] or mine[1] < 0:
                mine[0], mine[1] = root, block + j


@kernel
def _round_windows(z, count, each, centre, scale, rounded):
    """Round windows to float32, in units of their series; return their largest sum of squares.

    Behind them are halves of their squares. Windows that are not there are far from everything.
    """
    length = z.shape[0]
    halves, most = rounded[length * each :][:each], np.float32(0)
    for j in range(each):
        halves[j] = 0.0 if j < count else _ABSENT
    for t in range(length):
        row, out = z[t], rounded[t * each :][:each]
        for j in range(count):
            x = np.float32((row[j] - centre) * scale)
            out[j] = x
            halves[j] += np.float32(0.5) * x * x
        for j in range(count, each):
            out[j] = 0.0
    for j in range(count):
        most = max(most, halves[j])
    return 2.0 * most


@kernel
def _round_shapelets(table, first, stop, centre, scale, most, rounded):
    """Round shapelets to float32, in units of a series, and say which keys mean what.

    `most` is the largest sum of squares of a window. `rounded` has points; keys up to which a
    window is within the limit for sure, and may be; the largest error of a key, infinite where
    they mean nothing.
    """
    points, bounds, errors = rounded
    for row in range(first, stop):
        total, begin = 0.0, table.begins[row]
        for t in range(begin, begin + table.lengths[row]):
            a = (table.points[t] - centre) * scale
            points[t] = a
            total += a * a
        # see "shapelet keys" in docs/developer/numerics.rst
        error = (table.lengths[row] + 8) * _UNIT * (total + most)
        limit = min(0.5 * table.limits[row] * scale * scale, _HIGHEST)
        margin = error + 4 * _UNIT * abs(limit)
        limit -= 0.5 * total
        bounds[row, 0], bounds[row, 1] = limit - margin, limit + margin
        errors[row] = error if table.kinds[row] < 2 and total + most < _FINE_SQUARES else np.inf


@kernel
def _run(table, first, stop, points, buffers, shapelets, best):
    """Compare the shapelets of a run with all windows of a series, of which there are some.

    `best` has a row for each shapelet: norm, start and count, and the least sum of squares.
    """
    length, dilation = table.lengths[first], table.dilations[first]
    normalized = table.kinds[first] > 0
    n_windows = points.size - (length - 1) * dilation
    most = max(_WINDOWS, _ROOM // length // _WINDOWS * _WINDOWS)
    n_blocks = (n_windows + most - 1) // most
    each = (n_windows + n_blocks - 1) // n_blocks
    each = (each + _WINDOWS - 1) // _WINDOWS * _WINDOWS
    place, number, rounded, keys, places = borrowed(buffers)
    table, best, shapelets = borrowed((table, best, shapelets))
    rounded_points, bounds, errors = shapelets
    z = place[: length * each].reshape(length, each)
    room = number[: 5 * each].reshape(5, each)
    inverse, limits = room[3], table.limits
    centre, scale, able = 0.0, 1.0, True
    if not normalized:
        low, high = points[0], points[0]
        for t in range(points.size):
            low, high = min(low, points[t]), max(high, points[t])
        # halves first: nothing overflows
        centre, half_range = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        able = 1 / _FINE < half_range < _FINE
        scale = 1 / half_range if able else 0.0
    for block in range(0, n_windows, each):
        count = min(each, n_windows - block)
        _lay(points, block, count, dilation, normalized, z, room)
        for j in range(0 if normalized else count):
            inverse[j] = 1.0
        largest = _round_windows(z, count, each, centre, scale, rounded)
        if not normalized:
            _round_shapelets(table, first, stop, centre, scale, largest, shapelets)
        for row in range(first, stop):
            query, mine = table.points[table.begins[row] :][:length], best[row - first]
            error, n_places = errors[row], 0
            if able and error < np.inf:
                least, within, near = halves_of_squares(
                    *(rounded_points, table.begins[row], length, rounded, each, each),
                    *(bounds, row, keys),
                )
                floor = np.float32(least + 2 * error)
                if near > within:
                    floor = max(floor, bounds[row, 1])
                n_places = reach(keys, each, floor, places)
            if n_places == 0 or n_places > _FEW:
                sums = room[4][:count]
                _squares(query, z, inverse, table.kinds[row], sums)
                _measure_all(sums, limits[row], block, mine)
                continue
            mine[2] += within
            for k in range(n_places):
                j, bits = places[k] >> LANES, places[k] & _MASK
                while bits:
                    if bits & 1:
                        square = _square(query, z, inverse, j)
                        mine[3] = min(mine[3], square)
                        root = np.sqrt(square)
                        if root < mine[0]:
                            mine[0], mine[1] = root, block + j
                        mine[2] += keys[j] > bounds[row, 0] and square <= limits[row]
                    bits >>= 1
                    j += 1


@kernel
def _buffers(longest):
    """Make room for windows of up to so many points, in float64 and in float32, and their keys."""
    windows = max(_WINDOWS, _ROOM)
    large = max(_WINDOWS * longest, _ROOM) + windows
    # a vector of float32 that crosses lines of the cache takes twice as long
    rounded = np.empty(large + 16, np.float32)
    begin = -(rounded.ctypes.data // 4) % 16
    keys, places = np.empty(windows, np.float32), np.empty(windows, np.int64)
    return np.empty(large), np.empty(5 * windows), rounded[begin:][:large], keys, places


@kernel
def features(table, values, lengths, slots, out, cancel):
    """Distance, start and count of matches of each shapelet in each series.

    Parameters
    ----------
    table : ShapeletTable
        The shapelets.
    values : ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    lengths : ndarray of shape (n_series,)
        Their points.
    slots : ndarray of shape (3,), int64
        Where in `out` distance, start and count go; -1 is nowhere.
    out : ndarray of shape (n_series, n_features, n_shapelets)
        Written.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    table = borrowed(table)
    longest, largest, n_runs = np.int64(1), 1, table.runs.size - 1
    rounded = (
        np.empty(table.points.size, np.float32),
        np.empty((table.lengths.size, 2), np.float32),
        np.empty(table.lengths.size),
    )
    for run in range(n_runs):
        first, stop = table.runs[run], table.runs[run + 1]
        length = table.lengths[first]
        longest, largest = max(longest, length), max(largest, stop - first)
        if table.kinds[first] > 0:
            _round_shapelets(table, first, stop, 0.0, 1.0, 1.001 * length, rounded)
    room = np.empty((largest, 4))
    buffers = _buffers(longest)
    for b in range(values.shape[0]):
        for run in range(n_runs):
            if cancel[0]:
                return
            first, stop = table.runs[run], table.runs[run + 1]
            length, dilation = table.lengths[first], table.dilations[first]
            points = values[b, table.channels[first], : lengths[b]]
            n_windows = points.size - (length - 1) * dilation
            best = room[: stop - first]
            for i in range(len(best)):
                best[i, 0], best[i, 1], best[i, 2], best[i, 3] = np.inf, -1.0, 0.0, np.inf
            if n_windows > 0:
                _run(table, first, stop, points, buffers, rounded, best)
            if n_windows > 0 and table.kinds[first] == 0:
                for row in range(first, stop):
                    if best[row - first, 3] < LOST_SQUARES:
                        query = table.points[table.begins[row] :][:length]
                        mine = best[row - first]
                        mine[0], mine[1], mine[2] = _match_tiny(
                            query, points, n_windows, dilation, table.thresholds[row]
                        )
            scale = np.sqrt(float(length))
            for k in range(3):
                if slots[k] >= 0:
                    line = out[b, slots[k], first:stop]
                    for i in range(line.size):
                        line[i] = best[i, k] / scale
                scale = 1.0


@kernel
def quantiles(table, values, lengths, partners, ranks, out, cancel):
    """An order statistic of the sums of squares of each shapelet and the windows of one series.

    Parameters are those of `features`, and of `DistanceQuantiles`.
    """
    place, number = np.empty(0), np.empty(0)
    for row in range(table.lengths.size):
        if cancel[0]:
            return
        b, length, dilation = partners[row], table.lengths[row], table.dilations[row]
        points = values[b, table.channels[row], : lengths[b]]
        n_windows = points.size - (length - 1) * dilation
        if n_windows <= 0:
            out[row] = np.inf
            continue
        if place.size < length * n_windows:
            place = np.empty(length * n_windows)
        if number.size < 5 * n_windows:
            number = np.empty(5 * n_windows)
        z = place[: length * n_windows].reshape(length, n_windows)
        room = number[: 5 * n_windows].reshape(5, n_windows)
        _lay(points, np.int64(0), n_windows, dilation, table.kinds[row] > 0, z, room)
        query = table.points[table.begins[row] :][:length]
        _squares(query, z, room[3], table.kinds[row], room[4])
        out[row] = kth_smallest(room[4], ranks[row])
