"""Statistics of windows: mean, deviation, and which windows are constant.

They come from the points of the window alone, counted from the first of them, in two passes:
nothing else on the line, and nothing else in the call, changes a bit of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import CONSTANT, SMALLEST_RANGE
from ...core.series import read_only
from .concatenated import fill_gaps, whole_windows

__all__ = ["WindowStatistics", "settle_statistics", "window_statistics"]


class WindowStatistics(NamedTuple):
    """Statistics of the windows that start at each point.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_windows,), float64
        Mean (for engines that of the points less the first of the window) and population standard
        deviation; 0 where the window is not finite, and a deviation of exactly 0 where it is
        constant.
    constant : ndarray of shape (n_windows,), bool
        Where max - min <= max(2^-40 max |x|, 2^-500).
    finite : ndarray of shape (n_windows,), bool
        Where no point is NaN or infinite. The others take part in nothing.
    """

    mean: np.ndarray
    deviation: np.ndarray
    constant: np.ndarray
    finite: np.ndarray

    @property
    def regular(self) -> np.ndarray:
        """Where a window is finite and not constant."""
        return self.finite & ~self.constant

    @property
    def inverse(self) -> np.ndarray:
        """1 / deviation, 0 where there is none."""
        with np.errstate(divide="ignore"):
            return np.where(self.deviation > 0, 1.0 / self.deviation, 0.0)


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
    from ...host import windows

    filled, finite = fill_gaps(series)
    points = read_only(filled)
    mean, *_ = windows.statistics(points, points, length)
    _, deviation, low, high = windows.statistics(points, points, length, True)
    return settle_statistics(mean, deviation, low, high, whole_windows(finite, length))


def settle_statistics(
    mean: np.ndarray,
    deviation: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    finite: np.ndarray,
) -> WindowStatistics:
    """Decide which windows are constant, and clear what is not finite."""
    largest = np.maximum(np.abs(low), np.abs(high))
    constant = finite & (high - low <= np.maximum(CONSTANT * largest, SMALLEST_RANGE))
    return WindowStatistics(
        np.where(finite, mean, 0.0),
        np.where(finite & ~constant, deviation, 0.0),
        constant,
        finite,
    )
