"""The order of the axes: samples, channels, time points; and axes that have changed places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from .._parameters import warn_user
from ..engines import Series
from .forms import form_of, is_3d, is_list_of_series, shortened, transposed

__all__ = [
    "check_layout",
    "check_shape",
    "one_point_each",
    "raise_unequal",
    "refuse_one_dimension",
]

#: So many times as many channels as time points, and they may have changed places.
_MANY_CHANNELS = 10


def check_layout(X: Any, series: Series, input_name: str = "X") -> None:
    """Notice axes that have changed places: time and channels, or time and samples.

    An array of many channels with one time point is refused; a list of them, which says what is
    channel and what is time, passes with a warning.

    Parameters
    ----------
    X : array-like or list of array-like
        What was given.
    series : Series
        What was made of it.
    input_name : str, default "X"
        The argument's name in messages.

    Raises
    ------
    ValueError
        If an array holds several channels of one time point each.

    Warns
    -----
    UserWarning
        As `check_series` says.
    """
    listed = is_list_of_series(X)
    n_channels, n_timepoints = series.n_channels, series.n_timepoints
    if n_timepoints <= max(1, n_channels // _MANY_CHANNELS):
        # by the axes that were given, also where all that follows is padding
        n_timepoints = max(map(_width, form_of(X))) if listed else _width(X)
    if n_channels >= _MANY_CHANNELS * n_timepoints or n_timepoints == 1 < n_channels:
        points = "one time point" if n_timepoints == 1 else f"{n_timepoints} time points"
        form = "(n_samples, n_channels, n_timepoints)"
        if listed:
            form, advice = "(n_channels, n_timepoints)", f"[x.T for x in {input_name}]"
        else:
            advice = transposed(X, input_name, (0, 2, 1))
        text = (
            f"{input_name} has {n_channels} channels of {points} each: series are {form}. If the "
            f"channels come last, write {advice}."
        )
        if n_timepoints == 1 and not listed:
            rows = f"list({input_name if hasattr(X, 'shape') else f'np.asarray({input_name})'})"
            raise ValueError(f"{text} If it is meant so, write {rows}.")
        warn_user(text)
    elif n_timepoints == 1 < len(series) and not listed and not is_3d(X):
        warn_user(f"{one_point_each(X, len(series), input_name)}.")


def _width(X: Any) -> int:
    """Length of the last axis."""
    form = form_of(X)
    return int((form if hasattr(form, "shape") else np.asarray(form)).shape[-1])


def one_point_each(X: Any, n_samples: int, input_name: str) -> str:
    """Say that a column was given, and how to make it a row."""
    return (
        f"{input_name} has shape ({n_samples}, 1), {n_samples} series of one time point each "
        f"(n_features = 1). If it is one series of {n_samples} points, write "
        f"{transposed(X, input_name)}"
    )


def refuse_one_dimension(X: Any, input_name: str) -> None:
    """Raise if `X` is a single series, a number, or nothing."""
    if X is None:
        raise ValueError(f"Expected 2D array, got None instead: {input_name} is missing.")
    if not hasattr(X, "shape") and hasattr(X, "__array__"):
        try:
            n_dimensions = np.asarray(X).ndim
        except ValueError:  # rows of several lengths
            n_dimensions = 1
        if n_dimensions == 1:
            _refuse_ragged(X, input_name)
        return  # any other object that converts itself is left to scikit-learn
    try:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
    except ValueError:  # rows of several lengths
        return
    objects = len(shape) == 1 and str(getattr(X, "dtype", "")) == "object"
    if objects and any(np.ndim(x) > 0 for x in np.asarray(X)[:1]):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {input_name} is an object array of series. "
            f"Give them as a list, list({input_name})."
        )
    if len(shape) == 1:
        _refuse_ragged(X, input_name)
    if not shape:
        advice = "series are one a row, (n_samples, n_timepoints), or a list of arrays"
        if isinstance(X, Iterable) and not isinstance(X, str | bytes):
            values = f"{input_name}.values()" if isinstance(X, Mapping) else input_name
            advice = f"if it yields one series after the other, write list({values})"
        raise ValueError(
            f"Expected 2D array, got scalar array instead: {input_name} is {shortened(X)}. "
            f"Reshape your data: {advice}."
        )
    if len(shape) < 2:
        row = f"{input_name}.reshape(1, -1)" if isinstance(X, np.ndarray) else f"[{input_name}]"
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {input_name} has "
            f"shape {shape}. Reshape your data: one series is {row}, many series are one a row, "
            "(n_samples, n_timepoints), or a list of arrays."
        )


def _refuse_ragged(X: Any, input_name: str) -> None:
    """Raise if `X` is a column of another library whose cells are series: they are no array."""
    if isinstance(X, np.ndarray | list | tuple):
        return
    rows = f"{input_name}.to_pylist()" if hasattr(X, "to_pylist") else f"list({input_name})"
    if any(hasattr(x, "__len__") and not isinstance(x, str | bytes) for x in islice(X, 1)):
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {input_name}, of type "
            f"{type(X).__name__}, holds series. Give them as a list, {rows}."
        )


def check_shape(values: np.ndarray, input_name: str) -> None:
    """Raise unless there are series, channels and points."""
    if values.ndim not in (2, 3):
        raise ValueError(
            f"{input_name} has {values.ndim} dimensions: give series as (n_samples, "
            "n_timepoints), as (n_samples, n_channels, n_timepoints), or as a list of arrays."
        )
    if 0 in values.shape:
        raise ValueError(
            f"Found array with shape {values.shape} for {input_name}: a minimum of 1 sample, "
            "1 channel and 1 time point is required."
        )


def raise_unequal(lengths: np.ndarray, input_name: str) -> None:
    row = int(np.flatnonzero(lengths != lengths[0])[0])
    raise ValueError(
        f"Series {row} of {input_name} has {lengths[row]} time points where series 0 has "
        f"{lengths[0]}; series of one length are needed here."
    )
