"""Statistics of every window of a series: one place for all methods that z-normalise windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["WindowStatistics", "window_statistics"]

#: A window is constant when its range is at most this share of its largest magnitude.
CONSTANT = 2.0**-40


class WindowStatistics(NamedTuple):
    """Statistics of the windows that start at each point.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_windows,), float64
        Mean and population standard deviation; 0 where the window is not finite, and a deviation
        of exactly 0 where it is constant.
    constant : ndarray of shape (n_windows,), bool
        Where max - min <= 2^-40 max |x|.
    finite : ndarray of shape (n_windows,), bool
        Where no point is NaN or infinite. The others take part in nothing.
    """

    mean: np.ndarray
    deviation: np.ndarray
    constant: np.ndarray
    finite: np.ndarray


def window_statistics(series: np.ndarray, length: int) -> WindowStatistics:
    """Compute the statistics of all windows of a series.

    Every window is summed in its own order in two passes, so its statistics depend on its points
    alone: not on where it lies, nor on how a long series is cut into pieces.

    Parameters
    ----------
    series : ndarray of shape (n_timepoints,), float64
        The series; may hold NaN and infinities.
    length : int
        Points of a window, at most `n_timepoints`.

    Returns
    -------
    WindowStatistics
        Arrays of n_timepoints - length + 1 entries.
    """
    from .numba import windows

    finite_points = np.isfinite(series)
    points = np.where(finite_points, series, 0.0)
    gaps = np.concatenate([[0], np.cumsum(~finite_points)])
    finite = gaps[length:] == gaps[:-length]
    mean, deviation, low, high = windows.statistics(points, length)
    constant = finite & (high - low <= CONSTANT * np.maximum(np.abs(low), np.abs(high)))
    return WindowStatistics(
        np.where(finite, mean, 0.0),
        np.where(finite & ~constant, deviation, 0.0),
        constant,
        finite,
    )
