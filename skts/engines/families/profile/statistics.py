"""Deviations of windows, and which windows are constant, whatever engine has summed them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.series import are_constant

__all__ = ["WindowStatistics", "settle_statistics"]


class WindowStatistics(NamedTuple):
    """Statistics of the windows that start at each point.

    Attributes
    ----------
    deviation : ndarray of shape (n_windows,), float64
        Population standard deviation; exactly 0 where the window is constant or not finite.
    constant : ndarray of shape (n_windows,), bool
        Where max - min <= max(2^-40 max |x|, 2^-500).
    finite : ndarray of shape (n_windows,), bool
        Where no point is NaN or infinite. The others take part in nothing.
    """

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


def settle_statistics(
    deviation: np.ndarray, low: np.ndarray, high: np.ndarray, finite: np.ndarray
) -> WindowStatistics:
    """Decide which windows are constant, by their range, and clear what is not finite."""
    constant = finite & are_constant(low, high)
    return WindowStatistics(np.where(finite & ~constant, deviation, 0.0), constant, finite)
