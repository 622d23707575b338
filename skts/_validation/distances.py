"""Matrices of distances that users give in the place of series."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engines import Series
from .forms import as_host, is_list_of_series
from .layout import refuse_one_dimension
from .numbers import as_numbers
from .series import check_series

__all__ = ["check_distances", "read_distances"]


def read_distances(X: Any, *, estimator: Any = None) -> Series:
    """Bring a matrix of distances into the form of series, a row each.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_indexed)
        The matrix.
    estimator : estimator or None, default None
        It stands in messages.

    Returns
    -------
    Series
        The rows.

    Raises
    ------
    ValueError, TypeError
        As `check_series` does, and for NaN anywhere.
    """
    if not is_list_of_series(X):
        refuse_one_dimension(X, "X")
        X = as_numbers(as_host(X, "X"), "X", "distances", order="C", estimator=estimator)
        missing = np.argwhere(np.isnan(X))
        if missing.size:
            row, column = missing[0, [0, -1]].tolist()
            raise ValueError(
                f"Input X contains NaN in row {row}, column {column}: precomputed distances must "
                "all be known."
            )
    return check_series(X, estimator=estimator, equal_length=True, new=False)


def check_distances(matrix: Series, n_columns: int | None = None) -> np.ndarray:
    """Return a matrix of distances to the training series, or say what is wrong with it.

    Parameters
    ----------
    matrix : Series
        The rows of the matrix.
    n_columns : int or None, default None
        Number of training series; None where the rows are these themselves.

    Returns
    -------
    ndarray of shape (n_queries, n_columns)
        The matrix.

    Raises
    ------
    ValueError
        If it has another shape, or a distance is negative.
    """
    values = matrix.values[:, 0, :]
    shape = values.shape if matrix.n_channels == 1 else matrix.shape
    if n_columns is None and shape != (len(values), len(values)):
        raise ValueError(
            f"X has shape {shape}; with metric='precomputed' it must be a square matrix, the "
            "distances within the training series."
        )
    if n_columns is not None and shape != (len(values), n_columns):
        raise ValueError(
            f"Precomputed metric requires shape (n_queries, n_indexed). Got {shape} for "
            f"{n_columns} indexed."
        )
    if np.any(values < 0):
        row, column = np.argwhere(values < 0)[0]
        raise ValueError(
            "Negative values in data passed as precomputed distances: "
            f"{values[row, column]:g} in row {row}, column {column}."
        )
    return values
