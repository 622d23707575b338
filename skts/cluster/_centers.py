"""Centres of clusters: of what members match under warping, and what clusterers check of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._alignment import Alignment
from .._log import counted
from .._validation import check_series
from ..base import SeriesMixin
from ..engines import Series

__all__ = ["CentersMixin", "averaged", "check_enough", "replaced", "with_nan"]


class CentersMixin(SeriesMixin):
    """Clusterers whose centres are series of any length, with which new series are compared."""

    cluster_centers_: Any
    n_channels_: int

    def _compared(self, X: Any) -> tuple[Series, Series]:
        """Series, and the centres."""
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        if self.cluster_centers_ is None:
            raise ValueError(
                f"This {type(self).__name__} was fitted to precomputed distances and holds no "
                "series: fit it anew."
            )
        series = self._validate_series(X)
        # an attribute that everybody may change, or that a damaged pickle has brought
        given = check_series(self.cluster_centers_, input_name="cluster_centers_", new=False)
        if given.n_channels != self.n_channels_:
            raise ValueError(
                f"cluster_centers_ has {counted(given.n_channels, 'channel')}, and the series that "
                f"were fitted have {self.n_channels_}."
            )
        return series, given


def check_enough(series: Series, n_clusters: int) -> None:
    """Refuse fewer series than clusters.

    Parameters
    ----------
    series : Series
        A set of series.
    n_clusters : int
        Number of clusters.

    Raises
    ------
    ValueError
        If there are fewer.
    """
    if len(series) < n_clusters:
        raise ValueError(f"n_samples={len(series)} should be >= n_clusters={n_clusters}.")


def averaged(centers: Series, sums: Alignment, weights: np.ndarray | None = None) -> Series:
    """Average what is matched with each point of some centres.

    Parameters
    ----------
    centers : Series
        The centres before.
    sums : Alignment
        What their members match.
    weights : ndarray of the shape of `sums.weights`, or None, default None
        The weight with which each point of the centres counts itself; None is 0.

    Returns
    -------
    Series
        The centres after; a point that nothing was matched with is as before.
    """
    if weights is not None:
        matched = sums.weights > 0
        sums = sums._replace(
            values=centers.values * weights + sums.values,
            weights=np.where(matched, weights + sums.weights, 0.0),
        )
    return Series(sums.means(centers.values), centers.lengths)


def replaced(centers: Series, index: int, series: Series, row: int) -> Series:
    """Put a series in the place of a centre.

    Parameters
    ----------
    centers : Series
        The centres.
    index : int
        Number of the centre.
    series : Series
        A set of series.
    row : int
        Number of the series.

    Returns
    -------
    Series
        The centres, as wide as the longest or wider.
    """
    width = max(centers.n_timepoints, series.n_timepoints)
    values = np.zeros((len(centers), centers.n_channels, width))
    values[:, :, : centers.n_timepoints] = centers.values
    values[index] = 0.0
    values[index, :, : series.n_timepoints] = series.values[row]
    lengths = centers.lengths.copy()
    lengths[index] = series.lengths[row]
    return Series(values, lengths)


def with_nan(centers: Series) -> np.ndarray:
    """Return values of centres, as wide as the longest, NaN beyond the ends of the others.

    Parameters
    ----------
    centers : Series
        The centres.

    Returns
    -------
    ndarray of shape (n_clusters, n_channels, n_timepoints)
        New values.
    """
    width = int(centers.lengths.max())
    beyond = np.arange(width) >= centers.lengths[:, np.newaxis, np.newaxis]
    return np.where(beyond, np.nan, centers.values[:, :, :width])
