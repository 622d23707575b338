"""Series in any accepted form, brought into one."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from .._log import counted
from ..engines import Series, lies_on_gpu
from .forms import (
    as_host,
    form_of,
    has_row_for_each_time,
    is_list_of_series,
    shortened,
    transposed,
)
from .layout import (
    check_layout,
    check_shape,
    one_point_each,
    raise_unequal,
    refuse_one_dimension,
)
from .numbers import as_numbers, with_advice
from .scale import LARGEST, LEAST, check_scale, in_range, raise_scale

__all__ = [
    "check_more_points",
    "check_multivariate",
    "check_one",
    "check_series",
    "check_univariate",
    "refuse_channels_of_one_point",
    "refuse_times_as_series",
]

#: Rows of a frame with fewer points are hardly meant as series in which windows are looked for.
LEAST_POINTS_OF_ROWS = 10


def check_series(
    X: ArrayLike | list[ArrayLike],
    *,
    input_name: str = "X",
    estimator: Any = None,
    equal_length: bool = False,
    new: bool = True,
) -> Series:
    """Bring series in any of the accepted forms into one, or say what is wrong with them.

    Parameters
    ----------
    X : array-like or list of array-like
        ``(n_samples, n_timepoints)``, or ``(n_samples, n_channels, n_timepoints)``; or a list of
        arrays, each one series of shape ``(n_timepoints,)`` or ``(n_channels, n_timepoints)``,
        of any lengths; or a data frame whose index has two levels, series and time points, and
        whose columns are channels (sktime's ``pd-multiindex``); or a list of data frames, each of
        one series (its ``df-list``). NaN at the end of a series is padding; columns of padding
        alone are left out. Arrays may lie on a GPU (CuPy's, or anything with
        ``__cuda_array_interface__``): one array without NaN is checked there and stays there,
        others are fetched.
    input_name : str, default "X"
        The argument's name in messages.
    estimator : estimator or str or None, default None
        The estimator in messages.
    equal_length : bool, default False
        Whether all series must have one length.
    new : bool, default True
        Whether there is nothing yet that these series are compared with. Then axes that seem to
        have changed places are an error, or a warning where they may be meant so.

    Returns
    -------
    Series
        The series in float64, as wide as the longest of them; a view of `X` where that is such an
        array already.

    Raises
    ------
    ValueError, TypeError
        In scikit-learn's words where it has some; with series and time point for a bad value.

    Warns
    -----
    UserWarning
        If there are at least ten times as many channels as time points, or several series of one
        point each in a 2-D array.
    """
    if is_list_of_series(X):
        series = _measure(_pad(X, input_name), input_name)
    elif lies_on_gpu(X):
        series = _check_on_gpu(X, input_name, estimator)
    else:
        values = _as_array(X, input_name, estimator)
        if values.ndim == 2:
            values = values[:, np.newaxis, :]
        check_shape(values, input_name)
        # a view of our own: engines tie what they prepare to it, and it dies with this call or fit
        series = _measure(values.view(), input_name)
    if new:
        check_layout(X, series, input_name)
    if equal_length and (series.lengths != series.lengths[0]).any():
        raise_unequal(series.lengths, input_name)
    return series


def check_one(x: ArrayLike, input_name: str) -> Series:
    """Bring one series into the form of a set of one.

    Parameters
    ----------
    x : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series.
    input_name : str
        The argument's name in messages.

    Returns
    -------
    Series
        The series in float64.

    Raises
    ------
    ValueError, TypeError
        As `check_series` does; if it is no array of one or two dimensions.
    """
    try:
        n_dimensions = len(x.shape) if hasattr(x, "shape") else np.ndim(x)
    except ValueError:  # rows of several lengths
        raise ValueError(
            f"{input_name} has channels of different lengths; one series is (n_timepoints,) or "
            "(n_channels, n_timepoints)."
        ) from None
    if n_dimensions not in (1, 2):
        given = f"has {n_dimensions} dimensions" if n_dimensions else f"is {shortened(x)}"
        raise ValueError(
            f"{input_name} {given}; one series is an array of numbers, (n_timepoints,) or "
            "(n_channels, n_timepoints)."
        )
    if isinstance(x, list | tuple) and np.size(x) == 0:
        raise ValueError(f"{input_name} is empty: a minimum of 1 time point is required.")
    row = x[np.newaxis] if isinstance(x, np.ndarray) else [x]
    return check_series(row, input_name=input_name, new=False)


def check_univariate(
    X: ArrayLike | list[ArrayLike],
    *,
    input_name: str = "X",
    estimator: Any = None,
    new: bool = True,
) -> list[np.ndarray]:
    """Bring series of one channel into a list, for methods that pass over missing values.

    Parameters
    ----------
    X : array-like or list of array-like
        As for `check_series`, with one channel. NaN and infinities may be anywhere. An
        array on a GPU is fetched.
    input_name : str, default "X"
        The argument's name in messages.
    estimator : estimator or str or None, default None
        The estimator in messages.
    new : bool, default True
        Whether there is nothing yet that these series are compared with. Then a column, several
        series of one point each in an array, is an error.

    Returns
    -------
    list of ndarray of shape (n_timepoints,), float64
        The series; views of what is given where that holds float64, memory maps included.

    Raises
    ------
    ValueError, TypeError
        In scikit-learn's words where it has some; if there are several channels; if the finite
        values of a series are so large or so small that their squares leave the range of float64.
    """
    series = _channels_of(X, input_name, estimator, new)
    n_channels, n_timepoints = series[0].shape
    if n_channels > 1:
        name = "This method" if estimator is None else type(estimator).__name__
        advice = _as_points(X, input_name) if n_timepoints == 1 else ""
        raise ValueError(
            f"{name} takes series of one channel; {input_name} has {n_channels}.{advice}"
        )
    for row, (points,) in enumerate(series):
        check_scale(points, row, input_name)
    return [points for (points,) in series]


def refuse_channels_of_one_point(X: Any, series: list[np.ndarray], input_name: str = "X") -> None:
    """Raise where channels hold one point each: these may be points of one channel.

    Parameters
    ----------
    X : array-like or list of array-like
        What was given.
    series : list of ndarray of shape (n_channels, n_timepoints)
        What `check_multivariate` made of it.
    input_name : str, default "X"
        The argument's name in messages.

    Raises
    ------
    ValueError
        If all series have several channels and one time point.
    """
    n_channels = len(series[0])
    if n_channels > 1 and all(each.shape[1] == 1 for each in series):
        form = "(n_samples, n_channels, n_timepoints)"
        form = "(n_channels, n_timepoints)" if is_list_of_series(X) else form
        raise ValueError(
            f"{input_name} has {n_channels} channels of one time point each: series are {form}."
            f"{_as_points(X, input_name)}"
        )


def refuse_times_as_series(
    X: Any, series: Sequence[np.ndarray] | np.ndarray, window: Any = None, input_name: str = "X"
) -> None:
    """Raise where rows of a frame would be series, but are the time points of one series.

    For estimators that look for windows in series. Where a frame holds a day in each row, rows are
    longer than that.

    Parameters
    ----------
    X : array-like or list of array-like
        What was given.
    series : sequence of ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        What was made of it.
    window : object, default None
        Lengths of windows, one or several: those in points count, others do not.
    input_name : str, default "X"
        The argument's name in messages.

    Raises
    ------
    ValueError
        If the index of a frame holds times, there are more rows than columns, and rows have fewer
        points than a window, or than `LEAST_POINTS_OF_ROWS`.
    """
    if not has_row_for_each_time(X):
        return
    n_timepoints = max(each.shape[-1] for each in series)
    windows = [each for each in np.ravel(np.asarray(window, object)) if isinstance(each, Integral)]
    if n_timepoints < min(len(series), max(LEAST_POINTS_OF_ROWS, *windows, 0)):
        raise ValueError(
            f"{input_name} is a frame whose index holds times, and of a frame each row is a "
            f"series: these would be {len(series)} series of {n_timepoints} time points. If rows "
            f"are the time points of one series, and columns its channels, write [{input_name}]. "
            f"If each column is a series, write {input_name}.T; if each row is, "
            f"{input_name}.to_numpy()."
        )


def _as_points(X: Any, input_name: str) -> str:
    """Say how to give channels of one point each as the points of one channel."""
    rows = f"[x.T for x in {input_name}]"
    rows = rows if is_list_of_series(X) else transposed(X, input_name, (0, 2, 1))
    return f" If these are points of one channel, write {rows}."


def check_more_points(
    points: ArrayLike, what: str, estimator: Any, n_channels: int = 1
) -> np.ndarray:
    """Check the points that follow a series, of which there may be none.

    Parameters
    ----------
    points : array-like of shape (n_points,) or (n_channels, n_points)
        The points; NaN and infinities may be anywhere. Those of one channel are 1-D.
    what : str
        What they follow: "a stream".
    estimator : estimator
        It is named in messages.
    n_channels : int, default 1
        Channels of the series.

    Returns
    -------
    ndarray of shape (n_channels, n_points), float64
        The points, on the host.

    Raises
    ------
    ValueError
        If `points` is not 1-D, or has not so many channels, or a value is too large.
    """
    more = as_host(points, "points")
    try:
        shape = np.shape(more)
    except ValueError:
        raise ValueError(
            f"points has rows of several lengths; what follows {what} has as many points in each "
            "channel."
        ) from None
    if n_channels == 1 and len(shape) != 1:
        advice = ": write points.ravel()" if len(shape) == 2 and 1 in shape else ""
        raise ValueError(f"points has shape {shape}; what follows {what} is 1-D{advice}.")
    if n_channels > 1 and (len(shape) != 2 or shape[0] != n_channels):
        advice = ": write points.T" if len(shape) == 2 and shape[1] == n_channels else ""
        raise ValueError(
            f"points has shape {shape}; what follows {what} of {n_channels} channels is "
            f"(n_channels, n_points){advice}."
        )
    if shape[-1] == 0:
        return np.empty((n_channels, 0))
    row = more if n_channels == 1 else np.asarray(more)
    return check_multivariate([row], input_name="points", estimator=estimator)[0]


def check_multivariate(
    X: ArrayLike | list[ArrayLike],
    *,
    input_name: str = "X",
    estimator: Any = None,
    new: bool = True,
) -> list[np.ndarray]:
    """Bring series of any channels into a list, for methods that pass over missing values.

    Errors are those of `check_univariate`, but for the number of channels.

    Parameters
    ----------
    X : array-like or list of array-like
        The series.
    input_name : str, default "X"
        What messages call them.
    estimator : estimator or None, default None
        It stands in messages.
    new : bool, default True
        Whether nothing is known of the series yet: see `check_univariate`.

    Returns
    -------
    list of ndarray of shape (n_channels, n_timepoints), float64
        The series; views of what is given where that holds float64, memory maps included.
    """
    series = _channels_of(X, input_name, estimator, new)
    for row, channels in enumerate(series):
        for points in channels:
            check_scale(points, row, input_name)
    return series


def _channels_of(X: Any, input_name: str, estimator: Any, new: bool) -> list[np.ndarray]:
    """Series as arrays of shape (n_channels, n_timepoints)."""
    if is_list_of_series(X):
        series = _listed(X, input_name)
    else:
        values = _as_array(as_host(X, input_name), input_name, estimator)
        if values.ndim > 3 or 0 in values.shape:
            raise ValueError(
                f"{input_name} has shape {values.shape}: give series as (n_samples, "
                "n_timepoints), or as a list of arrays."
            )
        series = list(values if values.ndim == 3 else values[:, np.newaxis, :])
    n_channels, n_timepoints = series[0].shape
    if new and n_timepoints == 1 == n_channels < len(series) and not is_list_of_series(X):
        raise ValueError(f"{one_point_each(X, len(series), input_name)}.")
    return series


def _as_array(X: Any, input_name: str, estimator: Any) -> np.ndarray:
    """Return an array of float64, or say how series have to be given."""
    refuse_one_dimension(X, input_name)
    return as_numbers(X, input_name, order="C", estimator=estimator)


def _check_on_gpu(X: Any, input_name: str, estimator: Any) -> Series:
    """Check an array on a GPU there; where it holds what cannot stay so, it is fetched."""
    refuse_one_dimension(form_of(X), input_name)
    with with_advice(input_name):
        form = check_array(
            form_of(X),
            dtype=None,
            allow_nd=True,
            ensure_all_finite=False,
            estimator=estimator,
            input_name=input_name,
        )
    check_shape(form, input_name)
    series = Series.on_gpu(X, input_name)
    return series if in_range(series) else _measure(series.values, input_name)


def _listed(X: list[ArrayLike], input_name: str) -> list[np.ndarray]:
    """Check each series of a list: arrays of shape (n_channels, n_timepoints)."""
    arrays: list[np.ndarray] = []
    for row, x in enumerate(form_of(X)):
        name = f"series {row} of {input_name}"
        array = as_host(x, name)
        if type(array) is not np.ndarray or array.dtype != np.float64:
            array = as_numbers(
                array, name, ensure_2d=False, ensure_min_samples=0, ensure_min_features=0
            )
        if array.ndim not in (1, 2):
            raise ValueError(
                f"The {name} has {array.ndim} dimensions: a series in a list is (n_timepoints,) "
                "or (n_channels, n_timepoints)."
            )
        array = np.atleast_2d(array)
        if array.size == 0:
            raise ValueError(f"The {name} is empty: a minimum of 1 time point is required.")
        if arrays and len(array) != len(arrays[0]):
            advice = ""
            if array.shape[1] == arrays[0].shape[1]:
                advice = (
                    f" Series are (n_channels, n_timepoints): if the channels come last, write "
                    f"[x.T for x in {input_name}]."
                )
            raise ValueError(
                f"The {name} has {counted(len(array), 'channel')} where series 0 has "
                f"{len(arrays[0])}.{advice}"
            )
        arrays.append(array)
    return arrays


def _pad(X: list[ArrayLike], input_name: str) -> np.ndarray:
    """Turn a list of series into one array with NaN behind the shorter ones."""
    arrays = _listed(X, input_name)
    width = max(array.shape[1] for array in arrays)
    values = np.full((len(arrays), len(arrays[0]), width), np.nan)
    for row, array in enumerate(arrays):
        values[row, :, : array.shape[1]] = array
    return values


def _measure(values: np.ndarray, input_name: str) -> Series:
    """Find the length of every series and refuse values that take part in nothing.

    Columns in which all series have ended are left out.
    """
    n_samples, _, n_timepoints = values.shape
    lengths = np.full(n_samples, n_timepoints, np.int64)
    whole = Series(values, lengths)
    if in_range(whole):
        return whole
    for row, series in enumerate(values):
        known = np.flatnonzero(~np.isnan(series).all(axis=0))
        if known.size == 0:
            raise ValueError(f"Input {input_name} contains only NaN in series {row}.")
        lengths[row] = known[-1] + 1
        sizes = np.abs(series[:, : lengths[row]])
        if LEAST <= sizes.max() <= LARGEST or not sizes.any():
            continue
        bad = ~(sizes <= LARGEST)
        channel, point = np.argwhere(bad if bad.any() else sizes == sizes.max())[0]
        value = series[channel, point]
        which = f", channel {channel}" if len(series) > 1 else ""
        where = f"at series {row}, time point {point}{which}"
        if np.isnan(value):
            raise ValueError(
                f"Input {input_name} contains NaN {where}; NaN is accepted only as padding at "
                "the end of a series. Interpolate or drop what is missing."
            )
        if np.isinf(value):
            raise ValueError(f"Input {input_name} contains infinity (inf) {where}.")
        raise_scale(value, row, point, which, input_name)
    width = int(lengths.max())
    padded = np.arange(width) >= lengths[:, np.newaxis, np.newaxis]
    return Series(np.where(padded, 0.0, values[:, :, :width]), lengths)
