"""Mean, deviation and range of every window: neighbouring windows side by side, one per lane."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["statistics"]

_LANES = 32


@njit(nogil=True, cache=True, error_model="numpy")
def statistics(points, length):
    """Two-pass mean and deviation, minimum and maximum of all windows of finite points."""
    n_windows = points.size - length + 1
    mean, deviation = np.empty(n_windows), np.empty(n_windows)
    low, high = np.empty(n_windows), np.empty(n_windows)
    total, squares = np.empty(_LANES), np.empty(_LANES)
    least, most = np.empty(_LANES), np.empty(_LANES)
    center = np.empty(_LANES)
    for first in range(0, n_windows, _LANES):
        # the last lanes move back over windows done already, so that all lanes are always full
        start = max(0, min(first, n_windows - _LANES))
        lanes = min(_LANES, n_windows)
        total[:] = 0.0
        squares[:] = 0.0
        least[:] = np.inf
        most[:] = -np.inf
        for i in range(length):
            for lane in range(lanes):
                point = points[start + lane + i]
                total[lane] += point
                least[lane] = point if point < least[lane] else least[lane]
                most[lane] = point if point > most[lane] else most[lane]
        for lane in range(lanes):
            center[lane] = total[lane] / length
        for i in range(length):
            for lane in range(lanes):
                d = points[start + lane + i] - center[lane]
                squares[lane] += d * d
        for lane in range(lanes):
            mean[start + lane] = center[lane]
            deviation[start + lane] = np.sqrt(squares[lane] / length)
            low[start + lane] = least[lane]
            high[start + lane] = most[lane]
    return mean, deviation, low, high
