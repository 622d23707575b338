"""Joins on the CPU: the covariances of all pairs of windows, strip by strip.

One row down, the covariance of two windows moves one column right and changes by two products::

    cov(i, j) = cov(i - 1, j - 1) + p_i q_j + r_i s_j

so a strip of WIDTH columns is walked down with its covariances in the first-level cache: a row is
read from one buffer and written, one place further, into the other. What leaves a strip on the
right enters the next one on the left, so that only the first row of a band of rows, and the left
edge of a tile, are computed from their points.

A covariance c is scored twice: as ``c (x) w_j`` among the columns of its row and as ``c (x) w_i``
among the rows of its column, where (x) is a product for z-normalised windows and a sum for
windows as they are. Squared distances fall linearly with the score, ``alpha - beta score``.

Scores are estimates. What could be among the nearest, by the bound of its error, is listed,
and what is on the list is measured: distances that leave this module are certified.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["HEIGHTS", "WIDTH", "larger", "search", "seeds", "walk"]

#: Columns of a strip: its five arrays fill three quarters of the first-level cache.
WIDTH = 512
#: Rows of a band: what a covariance sums no more steps than; low ones where windows differ
#: so much in size that rounding errors of large ones would bury small ones.
HEIGHTS = (4096, 512, 64)
#: Rows after which the maxima of columns are looked at.
CHUNK = 32
#: Possible neighbours that are listed before they are measured.
LISTED = 2**17

#: Scores are finite numbers: no window that is not finite, and no infinity, ever enters.
FINITE = {"nnan", "ninf", "nsz", "contract"}
LANES = 32


@intrinsic
def larger(typing_context, a, b):
    """The larger of two numbers that are not NaN, in one instruction that vectorises."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = "llvm.maxnum.f64" if isinstance(kind, ir.DoubleType) else "llvm.maxnum.f32"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind, kind]), name
        )
        return builder.call(function, args, fastmath=("nnan", "nsz"))

    return a(a, b), codegen


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def _step(
    cov, out, p, r, weight, q, s, w, best_of_column, width, columns, normalize
):  # fmt: skip
    """Go one row down; `out` begins one column further right. Return the best score of the row."""
    # indices from 0 on: LLVM vectorises only where it knows that none is negative
    best = cov.dtype.type(0)
    for j in range(width):
        c = cov[j] + p * q[j] + r * s[j]
        out[j] = c
        best = larger(c * w[j] if normalize is not None else c + w[j], best)
        if columns is not None:
            score = c * weight if normalize is not None else c + weight
            best_of_column[j] = larger(score, best_of_column[j])
    return best


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def walk(
    cov, entering, leaving, p, r, weight, needed, q, s, w, best_of_column,
    row, stop, corner, width, columns, normalize,
):  # fmt: skip
    """Walk a strip down, until a row has a score that it needs to know of.

    Rows count from the top of the band, whose step is 0. Row i leaves its covariances in
    ``cov[(i + 1) % 2, 1:]``; what enters and leaves on the sides is of the row before.

    Returns
    -------
    row : int
        The row after the last one done.
    best : float
        The best score of that last row.
    """
    best = cov.dtype.type(0)
    even, odd, even_out, odd_out = cov[0], cov[1], cov[0, 1:], cov[1, 1:]
    while row < stop:
        first = row - corner
        if row > 0:
            cov[row & 1, 0] = entering[row]
        if first > 0:
            best = _step(
                cov[row & 1, first:], cov[(row + 1) & 1, first + 1 :], p[row], r[row], weight[row],
                q[first:], s[first:], w[first:], best_of_column[first:], width - first, columns,
                normalize,
            )  # fmt: skip
        elif row & 1:
            best = _step(
                odd, even_out, p[row], r[row], weight[row], q, s, w, best_of_column, width, columns,
                normalize,
            )  # fmt: skip
        else:
            best = _step(
                even, odd_out, p[row], r[row], weight[row], q, s, w, best_of_column, width, columns,
                normalize,
            )  # fmt: skip
        row += 1
        leaving[row] = cov[row & 1, width]
        if best >= needed[row - 1]:
            break
    return row, best


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def ahead(best_of_column, needed, width):
    """By how much the best of columns exceed, at most, what they need to be listed."""
    most = best_of_column.dtype.type(-1)
    for j in range(width):
        most = larger(best_of_column[j] - needed[j], most)
    return most


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def seeds(points, start, center, window, out):
    """Products of a centred window with the windows of a line from `start` on."""
    total = np.empty(LANES)
    for first in range(0, out.size, LANES):
        count = min(LANES, out.size - first)
        at = start + first
        total[:] = 0.0
        if at + LANES + window.size - 1 <= points.size:
            for t in range(window.size):
                for lane in range(LANES):
                    total[lane] += window[t] * (points[at + lane + t] - center)
        else:
            for t in range(window.size):
                for lane in range(count):
                    total[lane] += window[t] * (points[at + lane + t] - center)
        for lane in range(count):
            out[first + lane] = total[lane]


@njit(nogil=True, cache=True, error_model="numpy")
def _insert(distances, indices, distance, index):
    """Put a neighbour in its place among the nearest, in the order of (distance, index)."""
    place = distances.size
    while place > 0 and (
        distance < distances[place - 1]
        or (distance == distances[place - 1] and index < indices[place - 1])
    ):
        place -= 1
    if place == distances.size:
        return
    for k in range(distances.size - 1, place, -1):
        distances[k] = distances[k - 1]
        indices[k] = indices[k - 1]
    distances[place] = distance
    indices[place] = index


@njit(nogil=True, cache=True, error_model="numpy")
def _lower(tops, top):
    """Put an upper value among the least of a window; the last of them is its limit."""
    place = tops.size
    while place > 0 and top < tops[place - 1]:
        place -= 1
    if place == tops.size:
        return
    for k in range(tops.size - 1, place, -1):
        tops[k] = tops[k - 1]
    tops[place] = top


@njit(nogil=True, cache=True, error_model="numpy")
def _measure(
    windows, floors, count, own, others, length, least_apart, sign, offset, tops, nearest, found
):
    """Measure what is on a list, and may still be near; an entry is (window, first other, run)."""
    points, mean, inverse, _ = own
    points_b, mean_b, inverse_b, usual_b = others
    total = np.empty(CHUNK)
    center, scale = np.empty(CHUNK), np.empty(CHUNK)
    k = tops.shape[1]
    for entry in range(count):
        window, other, run = windows[entry]
        place = window - offset
        if floors[entry] > tops[place, k - 1]:
            continue
        a, b = mean[window], inverse[window]
        if run == 1:
            if not usual_b[other] or sign * (other - window) <= least_apart:
                continue
            summed = 0.0
            a_b, b_b = mean_b[other], inverse_b[other]
            for t in range(length):
                d = (points[window + t] - a) * b - (points_b[other + t] - a_b) * b_b
                summed += d * d
            _insert(nearest[place], found[place], np.sqrt(summed), other)
            continue
        total[:] = 0.0
        for lane in range(CHUNK):
            at = other + min(lane, run - 1)
            center[lane], scale[lane] = mean_b[at], inverse_b[at]
        if other + CHUNK + length - 1 <= points_b.size:
            for t in range(length):
                x = (points[window + t] - a) * b
                for lane in range(CHUNK):
                    d = x - (points_b[other + lane + t] - center[lane]) * scale[lane]
                    total[lane] += d * d
        else:
            for t in range(length):
                x = (points[window + t] - a) * b
                for lane in range(run):
                    d = x - (points_b[other + lane + t] - center[lane]) * scale[lane]
                    total[lane] += d * d
        for lane in range(run):
            if usual_b[other + lane] and sign * (other + lane - window) > least_apart:
                _insert(nearest[place], found[place], np.sqrt(total[lane]), other + lane)


@njit(nogil=True, cache=True, error_model="numpy")
def _sift(windows, floors, count, offset, tops):
    """Drop what is no longer near from a list; return how much is left."""
    left, k = 0, tops.shape[1]
    for entry in range(count):
        if floors[entry] <= tops[windows[entry, 0] - offset, k - 1]:
            for part in range(3):
                windows[left, part] = windows[entry, part]
            floors[left] = floors[entry]
            left += 1
    return left


@njit(nogil=True, cache=True, error_model="numpy")
def _height(top, row_stop, norm, reach, usual):
    """Rows of the band that begins at `top`, and which of HEIGHTS bounds it."""
    for level in range(len(HEIGHTS)):
        height = min(HEIGHTS[level], row_stop - top)
        most, least = 0.0, np.inf
        for i in range(top, top + height):
            most = max(most, reach[level, i])
            if usual[i]:
                least = min(least, norm[i])
        if most <= 1e3 * least:
            break
    return height, level


@njit(nogil=True, cache=True, error_model="numpy")
def search(
    a, steps_a, b, steps_b, length, tile, least_apart, unit, hint,
    nearest, found, nearest_b, found_b, cancel, columns, normalize,
):  # fmt: skip
    """Nearest windows within a tile, of its rows and, with `columns`, of its columns.

    Parameters
    ----------
    a, b : tuple of ndarray
        Points, means, inverse deviations and which windows take part, of both lines.
    steps_a, steps_b : tuple of ndarray
        Of each window: the two factors of the step that leads to it (p, r or q, s) and its weight,
        in the type of the search; alpha, beta, its norm and largest magnitude; the largest norms
        and steps of the windows before it, as many as each of HEIGHTS.
    length : int
        Points of a window.
    tile : tuple of int
        First row and the one after the last; the columns alike.
    least_apart : int
        Pairs with j - i <= this are not admissible.
    unit : float
        Unit roundoff of the type of the search.
    hint : tuple of two ndarray
        Distances, of all windows of both lines, that neighbours need not exceed.
    nearest, found, nearest_b, found_b : ndarray of shape (n, n_neighbors)
        Distances and places of neighbours of rows and columns, written here.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    columns, normalize : True or None
        Whether columns look for neighbours, too; whether windows are z-normalised.
    """
    row, row_stop, col, col_stop = tile
    points_a, mean_a, _, usual_a = a
    points_b, mean_b, _, usual_b = b
    p, r, weight_a, alpha_a, beta_a, norm_a, size_a, reach_a, _ = steps_a
    q, s, weight_b, alpha_b, beta_b, _, size_b, reach_b, stride_b = steps_b
    k = nearest.shape[1]
    # the least upper values of squared distances, of rows and of columns; the last is the limit
    tops = np.empty((row_stop - row, k))
    tops_b = np.empty((col_stop - col, k) if columns is not None else (0, k))
    for i in range(tops.shape[0]):
        tops[i] = hint[0][row + i] ** 2 * (1 + 1e-15)
    for j in range(tops_b.shape[0]):
        tops_b[j] = hint[1][col + j] ** 2 * (1 + 1e-15)
    # typed constants: a literal would compile what it is handed to once more
    none, after, before = np.int64(0), np.int64(1), np.int64(-1)
    windows, floors, count = np.empty((LISTED, 3), np.int64), np.empty(LISTED), none
    windows_b, floors_b, count_b = np.empty((LISTED, 3), np.int64), np.empty(LISTED), none
    cov = np.zeros((2, WIDTH + 1), p.dtype)
    q_strip, s_strip = np.zeros(WIDTH, p.dtype), np.zeros(WIDTH, p.dtype)
    w_strip, needed = np.zeros(WIDTH, p.dtype), np.zeros(WIDTH, p.dtype)
    slack_b = np.zeros(WIDTH)
    best_of_column = np.zeros(WIDTH, p.dtype)
    entering, leaving = np.zeros(HEIGHTS[0] + 1, p.dtype), np.zeros(HEIGHTS[0] + 1, p.dtype)
    p_band, r_band = np.zeros(HEIGHTS[0], p.dtype), np.zeros(HEIGHTS[0], p.dtype)
    w_band, needed_row = np.zeros(HEIGHTS[0], p.dtype), np.zeros(HEIGHTS[0], p.dtype)
    slack_row = np.zeros(HEIGHTS[0])
    window = np.empty(length)
    fresh = np.empty(max(WIDTH, HEIGHTS[0]))
    half = 2.0**-53
    top = row
    while top < row_stop:
        height, level = _height(top, row_stop, norm_a, reach_a, usual_a)
        bottom = top + height
        norm_band, step_band, size_band, weight_band = 0.0, 0.0, 0.0, 0.0
        for i in range(top, bottom):
            norm_band, size_band = max(norm_band, norm_a[i]), max(size_band, size_a[i])
            step_band = max(step_band, abs(p[i]) + abs(r[i])) if i > top else step_band
            weight_band = max(weight_band, abs(weight_a[i]))
            p_band[i - top], r_band[i - top], w_band[i - top] = p[i], r[i], weight_a[i]
        p_band[0] = r_band[0] = 0
        # seeds of the left edge are centred on the middle of the band
        middle_a = mean_a[top + height // 2] if normalize is not None else 0.0
        drift_a = 0.0
        for i in range(top, bottom if normalize is not None else top):
            drift_a = max(drift_a, abs(mean_a[i] - middle_a))
        leftmost = True
        for start in range(col, col_stop, WIDTH):
            if cancel[0]:
                return
            width = min(WIDTH, col_stop - start)
            if start + width - 1 - top <= least_apart:
                continue
            middle = mean_b[start + width // 2] if normalize is not None else 0.0
            # the error of every covariance of a column, times the weights, bounds that of scores
            worst = 0.0
            for j in range(width):
                at = start + j
                q_strip[j], s_strip[j], w_strip[j] = q[at], s[at], weight_b[at]
                error = (
                    unit
                    * (height + 4)
                    * (2 * norm_band * reach_b[level, at] + 4 * step_band * stride_b[level, at])
                )
                error += half * (length + 8) * norm_band * reach_b[level, at]
                if normalize is not None:
                    drift = abs(mean_b[at] - middle)
                    slip = half * length * (size_band + size_b[at])
                    error += (
                        half
                        * (length + 8)
                        * np.sqrt(length)
                        * (norm_band * drift + reach_b[level, at] * drift_a)
                    )
                    error += length * slip * (drift + drift_a + slip)
                    error += 2 * height * slip * (step_band + stride_b[level, at])
                    slack_b[j] = error
                    worst = max(worst, error * weight_b[at])
                else:
                    slack_b[j] = error
                    worst = max(worst, error)
            for j in range(width):
                at = start + j
                if columns is None:
                    continue
                if normalize is not None:
                    slip = half * length * max(size_band, size_b[at])
                    slack_b[j] *= beta_b[at] * weight_band
                    slack_b[j] += 1e-14 * length * length
                    slack_b[j] += 8 * (length * slip * max(weight_band, weight_b[at])) ** 2
                else:
                    slack_b[j] = 2 * slack_b[j] + 1e-15 * length * alpha_b[at]
                needed[j] = _needed(
                    alpha_b[at], beta_b[at], tops_b[at - col, k - 1] + slack_b[j], unit, usual_b[at]
                )
            # the first row, from its points
            center = mean_a[top] if normalize is not None else 0.0
            for t in range(length):
                window[t] = points_a[top + t] - center
            seeds(points_b, start, middle, window, fresh[:width])
            for j in range(width):
                cov[0, j] = fresh[j]
            if leftmost and height > 1 and start - top - 1 > least_apart:
                # the left edge of the tile, less the step that leads to it
                center = mean_b[start] if normalize is not None else 0.0
                for t in range(length):
                    window[t] = points_b[start + t] - center
                seeds(points_a, top, middle_a, window, fresh[:height])
                for i in range(top + 1, bottom):
                    entering[i - top] = fresh[i - top] - (p[i] * q[start] + r[i] * s[start])
            leftmost = False
            # what rows need, to be looked at
            last = min(bottom, start + width - 1 - least_apart) - top
            for i in range(last):
                at = top + i
                if normalize is not None:
                    slip = half * length * max(size_band, size_a[at])
                    slack_row[i] = beta_a[at] * worst + 1e-14 * length * length
                    slack_row[i] += 8 * (length * slip * weight_a[at]) ** 2
                else:
                    slack_row[i] = 2 * worst + 1e-15 * length * alpha_a[at]
                needed_row[i] = _needed(
                    alpha_a[at], beta_a[at], tops[at - row, k - 1] + slack_row[i], unit, usual_a[at]
                )
            corner = start - least_apart - 1 - top
            best_of_column[:] = 0
            i = chunk = none
            while i < last:
                i, best = walk(
                    cov, entering, leaving, p_band, r_band, w_band, needed_row, q_strip, s_strip,
                    w_strip, best_of_column, i, min(last, chunk + CHUNK), corner, width, columns,
                    normalize,
                )  # fmt: skip
                if best >= needed_row[i - 1]:
                    at = top + i - 1
                    for j in range(max(0, i - 1 - corner), width):
                        c, w = cov[i & 1, j + 1], w_strip[j]
                        score = c * w if normalize is not None else c + w
                        if score < needed_row[i - 1] or not usual_b[start + j]:
                            continue
                        square = alpha_a[at] - beta_a[at] * score
                        _lower(tops[at - row], square + slack_row[i - 1])
                        needed_row[i - 1] = _needed(
                            alpha_a[at], beta_a[at], tops[at - row, k - 1] + slack_row[i - 1],
                            unit, True,
                        )  # fmt: skip
                        if count == LISTED:
                            count = _sift(windows, floors, count, row, tops)
                            if count > LISTED // 2:
                                _measure(
                                    windows, floors, count, a, b, length, least_apart, after, row,
                                    tops, nearest, found,
                                )  # fmt: skip
                                count = none
                        windows[count, 0], windows[count, 1], windows[count, 2] = at, start + j, 1
                        floors[count] = square - slack_row[i - 1]
                        count += 1
                if i - chunk < CHUNK and i < last:
                    continue
                if columns is not None:
                    if ahead(best_of_column, needed, width) >= 0:
                        for j in range(width):
                            if best_of_column[j] < needed[j]:
                                continue
                            at = start + j
                            square = alpha_b[at] - beta_b[at] * best_of_column[j]
                            # 0 is what the best began with, and may belong to no row
                            if best_of_column[j] > 0:
                                _lower(tops_b[at - col], square + slack_b[j])
                            needed[j] = _needed(
                                alpha_b[at], beta_b[at], tops_b[at - col, k - 1] + slack_b[j],
                                unit, True,
                            )  # fmt: skip
                            if count_b == LISTED:
                                count_b = _sift(windows_b, floors_b, count_b, col, tops_b)
                                if count_b > LISTED // 2:
                                    _measure(
                                        windows_b, floors_b, count_b, b, a, length, least_apart,
                                        before, col, tops_b, nearest_b, found_b,
                                    )  # fmt: skip
                                    count_b = none
                            windows_b[count_b, 0] = at
                            windows_b[count_b, 1] = top + chunk
                            windows_b[count_b, 2] = i - chunk
                            floors_b[count_b] = square - slack_b[j]
                            count_b += 1
                    best_of_column[:] = 0
                chunk = i
            entering, leaving = leaving, entering
        top = bottom
    _measure(windows, floors, count, a, b, length, least_apart, after, row, tops, nearest, found)
    if columns is not None:
        _measure(
            windows_b, floors_b, count_b, b, a, length, least_apart, before, col, tops_b, nearest_b,
            found_b,
        )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def _needed(alpha, beta, limit, unit, usual):
    """The score from which on a squared distance may be within a limit."""
    if not usual:
        return 1e30
    score = (alpha - limit) / beta
    return score - 4 * unit * abs(score) if score > -1e30 else -1e30
