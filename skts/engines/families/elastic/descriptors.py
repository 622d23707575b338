"""Series made of series, between which distances under warping are computed."""

from __future__ import annotations

import numpy as np

from ...core.series import Series

__all__ = ["derivative"]


def derivative(series: Series) -> Series:
    """Estimate the derivative at every point but the first and the last.

    Half of the step from the point before, and of the slope between the points on either side
    (Keogh, Pazzani, "Derivative dynamic time warping", SIAM International Conference on Data Mining
    2001, section 3).

    Parameters
    ----------
    series : Series
        Series of at least three points.

    Returns
    -------
    Series
        The estimates, two points shorter.

    Raises
    ------
    ValueError
        If a series has fewer than three points.
    """
    short = np.flatnonzero(series.lengths < 3)
    if short.size:
        raise ValueError(
            f"metric='ddtw' needs series of at least 3 time points: series {short[0]} has "
            f"{series.lengths[short[0]]}."
        )
    x = series.values
    values = ((x[:, :, 1:-1] - x[:, :, :-2]) + (x[:, :, 2:] - x[:, :, :-2]) / 2) / 2
    lengths = series.lengths - 2
    values *= np.arange(values.shape[2]) < lengths[:, np.newaxis, np.newaxis]
    return Series(np.ascontiguousarray(values), lengths)
