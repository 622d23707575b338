"""Mean, deviation and range of every window, and certified distances of windows.

With `anchored` (True, else None) points of a window count from the first of them: what it is then
depends on its own points alone, and an offset costs no precision.

Sums are taken in the order of time. TOGETHER windows are summed side by side, some points of each
in one pass over the sums: these lie in memory, which the compiler cannot know to be apart from the
points, so that a pass for each point would write and read them all.
"""

from __future__ import annotations

import numpy as np

from .arrays import put
from .kernels import kernel

__all__ = ["PAIRS", "POINTS", "cut", "distances", "pair_distances", "squares", "statistics"]

#: Windows that are summed side by side.
TOGETHER = 512
#: Pairs of windows that are measured side by side, and points of each that are compared at a time.
PAIRS, POINTS = 8, 128


@kernel
def _range(points, length, low, high):
    """Least and largest point of every window, in a time that does not depend on its length.

    Points are cut into pieces as long as a window, which then is the end of one piece and the
    beginning of the next.
    """
    n = points.size
    least, most = np.empty(n), np.empty(n)
    for i in range(n - 1, -1, -1):
        least[i] = most[i] = points[i]
        if i < n - 1 and (i + 1) % length != 0:
            least[i] = min(points[i], least[i + 1])
            most[i] = max(points[i], most[i + 1])
    below = above = points[0]
    for i in range(n):
        below = min(below, points[i]) if i % length != 0 else points[i]
        above = max(above, points[i]) if i % length != 0 else points[i]
        first = i - length + 1
        if first >= 0:
            low[first] = min(least[first], below)
            high[first] = max(most[first], above)


@kernel
def cut(points, ranges, length, ratio):
    """Cut a line where it is much louder than a window beside it; returns where pieces begin.

    The points of a piece spread at most `ratio` times as far as those of any window in it, by its
    range; infinite ranges are those of windows that do not count.
    """
    begins = np.zeros(points.size, np.bool_)
    begins[0] = True
    first, low, high, least = 0, points[0], points[0], np.inf
    for t in range(points.size):
        low, high = min(low, points[t]), max(high, points[t])
        if high - low > ratio * least:
            # the point is too loud for the piece: it begins the next one
            first, low, high, least = t, points[t], points[t], np.inf
            begins[t] = True
        window = t - length + 1
        if window >= first and ranges[window] < np.inf:
            least = min(least, ranges[window])
            if high - low > ratio * least:
                # the window is too quiet for the piece: it begins the next one
                first, low, high, least = window, points[t], points[t], ranges[window]
                begins[window] = True
                for i in range(window, t):
                    low, high = min(low, points[i]), max(high, points[i])
    return begins


@kernel
def statistics(points, length, anchored=None, cancel=None):
    """Two-pass mean and deviation of all windows of finite points; their least and largest ones.

    With a flag `cancel`, an array of one byte, the answer is arbitrary once that turns 1.
    """
    n_windows = points.size - length + 1
    mean, deviation = np.zeros(n_windows), np.zeros(n_windows)
    low, high = np.empty(n_windows), np.empty(n_windows)
    anchor = np.zeros(TOGETHER)
    for first in range(0, n_windows, TOGETHER):
        if cancel is not None and cancel[0]:
            return mean, deviation, low, high
        count = min(TOGETHER, n_windows - first)
        if anchored is not None:
            put(points[first : first + count], anchor)
        total, squares = mean[first : first + count], deviation[first : first + count]
        for t in range(0, length - 7, 8):
            x = points[first + t : first + t + count + 7]
            for j in range(count):
                a = anchor[j]
                some = total[j] + (x[j] - a) + (x[j + 1] - a) + (x[j + 2] - a) + (x[j + 3] - a)
                some = some + (x[j + 4] - a) + (x[j + 5] - a) + (x[j + 6] - a) + (x[j + 7] - a)
                total[j] = some
        for t in range(length // 8 * 8, length):
            for j in range(count):
                total[j] += points[first + t + j] - anchor[j]
        for j in range(count):
            total[j] /= length
        for t in range(0, length - 3, 4):
            x = points[first + t : first + t + count + 3]
            for j in range(count):
                a, center = anchor[j], total[j]
                d, e = x[j] - a - center, x[j + 1] - a - center
                f, g = x[j + 2] - a - center, x[j + 3] - a - center
                squares[j] = squares[j] + d * d + e * e + f * f + g * g
        for t in range(length // 4 * 4, length):
            for j in range(count):
                d = points[first + t + j] - anchor[j] - total[j]
                squares[j] += d * d
        for j in range(count):
            squares[j] = np.sqrt(squares[j] / length)
    _range(points, length, low, high)
    return mean, deviation, low, high


@kernel
def _add_squares(window, points, anchor, center, scale, out):
    """Add the squares of the differences of four points of a window from those of all others."""
    a, b, c, d = window[0], window[1], window[2], window[3]
    for j in range(out.size):
        less, middle, factor = anchor[j], center[j], scale[j]
        e = a - (points[j] - less - middle) * factor
        f = b - (points[j + 1] - less - middle) * factor
        g = c - (points[j + 2] - less - middle) * factor
        h = d - (points[j + 3] - less - middle) * factor
        out[j] = out[j] + e * e + f * f + g * g + h * h


@kernel
def distances(
    a, rows, means_a, inverses_a, b, start, means, inverses, length, out, cancel, anchored=None
):  # fmt: skip
    """Certified distances of the windows at `rows` of `a` to those of `b` from `start` on.

    The norm of the difference of the two normalised windows, summed in the order of time.
    """
    n_columns, window, anchor = out.shape[1], np.empty(length), np.zeros(TOGETHER)
    for row in range(rows.size):
        at = rows[row]
        own = a[at] if anchored is not None else 0.0
        for t in range(length):
            window[t] = (a[at + t] - own - means_a[at]) * inverses_a[at]
        for first in range(0, n_columns, TOGETHER):
            if cancel[0]:
                return
            count, begin = min(TOGETHER, n_columns - first), start + first
            if anchored is not None:
                put(b[begin : begin + count], anchor)
            center, scale = means[begin : begin + count], inverses[begin : begin + count]
            sums = out[row, first : first + count]
            sums[:] = 0.0
            for t in range(0, length - 3, 4):
                points = b[begin + t : begin + t + count + 3]
                _add_squares(window[t : t + 4], points, anchor, center, scale, sums)
            for t in range(length // 4 * 4, length):
                for j in range(count):
                    d = window[t] - (b[begin + t + j] - anchor[j] - center[j]) * scale[j]
                    sums[j] += d * d
            for j in range(count):
                sums[j] = np.sqrt(sums[j])


@kernel
def squares(
    a, i, means_a, inverses_a, b, j, means_b, inverses_b, length, room, out, anchored=None
):  # fmt: skip
    """Certified squared distances of PAIRS pairs of windows; `room` has POINTS numbers for each.

    Squares are computed along the time, and summed in the order of time, all pairs side by side.
    """
    total = total_1 = total_2 = total_3 = total_4 = total_5 = total_6 = total_7 = 0.0
    for start in range(0, length, POINTS):
        count = min(POINTS, length - start)
        for pair in range(PAIRS):
            first, second, row = i[pair], j[pair], room[pair]
            x, y = a[first + start :][:count], b[second + start :][:count]
            own = a[first] if anchored is not None else 0.0
            other = b[second] if anchored is not None else 0.0
            mean_a, scale_a = means_a[first], inverses_a[first]
            mean_b, scale_b = means_b[second], inverses_b[second]
            for t in range(count):
                d = (x[t] - own - mean_a) * scale_a - (y[t] - other - mean_b) * scale_b
                row[t] = d * d
        for t in range(count):
            total, total_1 = total + room[0, t], total_1 + room[1, t]
            total_2, total_3 = total_2 + room[2, t], total_3 + room[3, t]
            total_4, total_5 = total_4 + room[4, t], total_5 + room[5, t]
            total_6, total_7 = total_6 + room[6, t], total_7 + room[7, t]
    out[0], out[1], out[2], out[3] = total, total_1, total_2, total_3
    out[4], out[5], out[6], out[7] = total_4, total_5, total_6, total_7


@kernel
def pair_distances(
    a, i, means_a, inverses_a, b, j, means_b, inverses_b, length, out, cancel, anchored=None
):  # fmt: skip
    """Certified distances of pairs of windows: the value of `distances`, pair by pair."""
    room, total = np.empty((PAIRS, POINTS)), np.empty(PAIRS)
    first, second = np.zeros(PAIRS, np.int64), np.zeros(PAIRS, np.int64)
    for done in range(0, out.size, PAIRS):
        if cancel[0]:
            return
        count = min(PAIRS, out.size - done)
        put(i[done : done + count], first)
        put(j[done : done + count], second)
        squares(
            a, first, means_a, inverses_a, b, second, means_b, inverses_b, length, room, total,
            anchored,
        )  # fmt: skip
        for pair in range(count):
            out[done + pair] = np.sqrt(total[pair])
