"""Mean, deviation and range of every window: neighbouring windows side by side, one per lane.

With `anchored` (True, else None) points of a window count from the first of them: what it is then
depends on its own points alone, and an offset costs no precision.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["cut", "distances", "pair_distances", "statistics"]

_LANES = 32


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
def statistics(points, raw, length, anchored=None):
    """Two-pass mean and deviation of all windows of finite points; least and largest raw point."""
    n_windows = points.size - length + 1
    mean, deviation = np.empty(n_windows), np.empty(n_windows)
    low, high = np.empty(n_windows), np.empty(n_windows)
    total, squares = np.empty(_LANES), np.empty(_LANES)
    anchor, center = np.zeros(_LANES), np.empty(_LANES)
    for first in range(0, n_windows, _LANES):
        # the last lanes move back over windows done already, so that all lanes are always full
        start = max(0, min(first, n_windows - _LANES))
        lanes = min(_LANES, n_windows)
        total[:] = 0.0
        squares[:] = 0.0
        if anchored is not None:
            for lane in range(lanes):
                anchor[lane] = points[start + lane]
        for i in range(length):
            for lane in range(lanes):
                point = points[start + lane + i]
                total[lane] += point - anchor[lane] if anchored is not None else point
        for lane in range(lanes):
            center[lane] = total[lane] / length
        for i in range(length):
            for lane in range(lanes):
                point = points[start + lane + i]
                point = point - anchor[lane] if anchored is not None else point
                d = point - center[lane]
                squares[lane] += d * d
        for lane in range(lanes):
            mean[start + lane] = center[lane]
            deviation[start + lane] = np.sqrt(squares[lane] / length)
    _range(raw, length, low, high)
    return mean, deviation, low, high


@njit(nogil=True, cache=True, error_model="numpy")
def _rows_of_distances(
    a, rows, means_a, inverses_a, b, start, means, inverses, length, out, cancel, anchored, four
):  # fmt: skip
    """Fill one row of distances or, with `four` (True, else None), four: columns are read once."""
    total, second = np.empty(_LANES), np.empty(_LANES)
    third, fourth = np.empty(_LANES), np.empty(_LANES)
    anchor, center, scale = np.zeros(_LANES), np.empty(_LANES), np.empty(_LANES)
    window = np.empty((4, length))
    for row in range(rows.size):
        own = a[rows[row]] if anchored is not None else 0.0
        mean, inverse = means_a[rows[row]], inverses_a[rows[row]]
        for t in range(length):
            window[row, t] = (a[rows[row] + t] - own - mean) * inverse
    n_columns = out.shape[1]
    lanes = min(_LANES, n_columns)
    for first in range(0, n_columns, _LANES):
        if cancel[0]:
            return
        # the last lanes move back over columns done already, so that all lanes are always full
        column = min(first, n_columns - lanes)
        at = start + column
        total[:] = 0.0
        if four is not None:
            second[:] = 0.0
            third[:] = 0.0
            fourth[:] = 0.0
        for lane in range(lanes):
            if anchored is not None:
                anchor[lane] = b[at + lane]
            center[lane] = means[at + lane]
            scale[lane] = inverses[at + lane]
        for t in range(length):
            point = window[0, t]
            if four is not None:
                point_2, point_3, point_4 = window[1, t], window[2, t], window[3, t]
            for lane in range(lanes):
                other = b[at + lane + t]
                other = other - anchor[lane] if anchored is not None else other
                other = (other - center[lane]) * scale[lane]
                d = point - other
                total[lane] += d * d
                if four is not None:
                    d = point_2 - other
                    second[lane] += d * d
                    d = point_3 - other
                    third[lane] += d * d
                    d = point_4 - other
                    fourth[lane] += d * d
        for lane in range(lanes):
            out[0, column + lane] = np.sqrt(total[lane])
            if four is not None:
                out[1, column + lane] = np.sqrt(second[lane])
                out[2, column + lane] = np.sqrt(third[lane])
                out[3, column + lane] = np.sqrt(fourth[lane])


@njit(nogil=True, cache=True, error_model="numpy")
def distances(
    a, rows, means_a, inverses_a, b, start, means, inverses, length, out, cancel, anchored=None
):  # fmt: skip
    """Certified distances of the windows at `rows` of `a` to those of `b` from `start` on.

    The norm of the difference of the two normalised windows, summed in the order of time.
    """
    done = 0
    while rows.size - done >= 4:
        _rows_of_distances(
            a, rows[done : done + 4], means_a, inverses_a, b, start, means, inverses, length,
            out[done : done + 4], cancel, anchored, True,
        )  # fmt: skip
        done += 4
    for row in range(done, rows.size):
        _rows_of_distances(
            a, rows[row : row + 1], means_a, inverses_a, b, start, means, inverses, length,
            out[row : row + 1], cancel, anchored, None,
        )  # fmt: skip


@njit(nogil=True, cache=True, error_model="numpy")
def pair_distances(
    a, i, means_a, inverses_a, b, j, means_b, inverses_b, length, out, cancel, anchored=None
):  # fmt: skip
    """Certified distances of pairs of windows: the value of `distances`, pair by pair."""
    for pair in range(out.size):
        if cancel[0]:
            return
        x, y = i[pair], j[pair]
        anchor_x = a[x] if anchored is not None else 0.0
        anchor_y = b[y] if anchored is not None else 0.0
        mean_x, mean_y = means_a[x], means_b[y]
        scale_x, scale_y = inverses_a[x], inverses_b[y]
        total = 0.0
        for t in range(length):
            d = (a[x + t] - anchor_x - mean_x) * scale_x - (b[y + t] - anchor_y - mean_y) * scale_y
            total += d * d
        out[pair] = np.sqrt(total)
