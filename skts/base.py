"""One validation of series for all estimators and functions."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from . import _version
from ._parameters import refuse_truth, warn_user
from ._scalars import plain
from .engines import Series, fetch, lies_on_gpu
from .exceptions import InconsistentVersionWarning

__all__ = [
    "SeriesMixin",
    "as_host",
    "check_layout",
    "check_one",
    "check_series",
    "check_target",
    "check_univariate",
    "transposed",
]

#: Squares and their sums leave the range of float64 where a value is above the one, or all those of
#: a series below the other. Rescaling by a power of two between them changes no bit of an answer.
LARGEST, LEAST = 2.0**480, 2.0**-480
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
#: Beginnings of messages of NumPy and scikit-learn, and how to go on.
_ADVICE = {
    "could not convert string": "series are numbers, so leave out columns of names, labels or "
    "dates.",
    "setting an array element with a sequence": "a cell holds a sequence. Give a list of arrays "
    "instead, one a series.",
    "Complex data not supported": "give real and imaginary parts as two channels.",
}
#: So many times as many channels as time points, and they may have changed places.
_MANY_CHANNELS = 10
#: Characters of a value that a message shows.
_SHOWN = 60
#: Points that are looked at together, where a series may be a memory map.
_PIECE = 2**20


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
        whose columns are channels (sktime's ``pd-multiindex``). NaN at the end of a
        series is padding. Arrays may lie on a GPU (CuPy's, or
        anything with ``__cuda_array_interface__``): one array without NaN is checked there and
        stays there, others are fetched.
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
        The series in float64; a view of `X` where that is such an array already.

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
    if _is_list_of_series(X):
        values = _pad(X, input_name)
    elif lies_on_gpu(X):
        series = _check_on_gpu(X, input_name, estimator)
        if new:
            check_layout(X, series, input_name)
        if series.equal_length or not equal_length:
            return series
        _raise_unequal(series.lengths, input_name)
    else:
        values = _as_array(X, input_name, estimator)
        if values.ndim == 2:
            values = values[:, np.newaxis, :]
        _check_shape(values, input_name)
    # a view of our own: engines tie what they prepare to it, and it dies with this call or fit
    series = _measure(values.view(), input_name)
    if new:
        check_layout(X, series, input_name)
    if equal_length and not series.equal_length:
        _raise_unequal(series.lengths, input_name)
    return series


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
    n_channels, n_timepoints = series.n_channels, series.n_timepoints
    if n_channels >= _MANY_CHANNELS * n_timepoints or n_timepoints == 1 < n_channels:
        points = "one time point" if n_timepoints == 1 else f"{n_timepoints} time points"
        form = "(n_samples, n_channels, n_timepoints)"
        listed = _is_list_of_series(X)
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
    elif n_timepoints == 1 < len(series) and not _is_list_of_series(X) and not _is_3d(X):
        warn_user(f"{_one_point(X, len(series), input_name)}.")


def _one_point(X: Any, n_samples: int, input_name: str) -> str:
    """Say that a column was given, and how to make it a row."""
    return (
        f"{input_name} has shape ({n_samples}, 1), {n_samples} series of one time point each "
        f"(n_features = 1). If it is one series of {n_samples} points, write "
        f"{transposed(X, input_name)}"
    )


def transposed(X: Any, input_name: str, axes: tuple[int, ...] = ()) -> str:
    """Say how to write the transpose of an array, a data frame, or of lists in a list.

    Parameters
    ----------
    X : object
        What was given.
    input_name : str
        The argument's name.
    axes : tuple of int, default ()
        The order of the axes, if there are more than two.

    Returns
    -------
    str
        Code.
    """
    if not axes:
        return f"{input_name}.T" if hasattr(X, "T") else f"np.transpose({input_name})"
    order = ", ".join(map(str, axes))
    if isinstance(X, np.ndarray):
        return f"{input_name}.transpose({order})"
    return f"np.transpose({input_name}, ({order}))"


def _as_array(X: Any, input_name: str, estimator: Any) -> np.ndarray:
    """Return an array of float64, or say how series have to be given."""
    _refuse_one_dimension(X, input_name)
    return _numbers(X, input_name, order="C", estimator=estimator)


def _numbers(X: Any, input_name: str, **options: Any) -> np.ndarray:
    """Return an array of float64, with NaN for what a mask hides; raise if it holds dates or times.

    NumPy would turn these into numbers, of a unit that depends on where they come from.
    """
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind not in "mMc":
        X = np.ma.filled(X.astype(np.float64), np.nan)
    first = X
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if getattr(getattr(first, "dtype", None), "kind", "") == "O" and np.size(first):
        first = np.ravel(first)[0]
    columns = getattr(first, "dtypes", None)
    kinds = [getattr(first, "dtype", None)] if columns is None else np.ravel(columns).tolist()
    times = any(getattr(kind, "kind", None) in ("m", "M") for kind in kinds)
    if times or isinstance(first, date | timedelta):
        raise ValueError(
            f"{input_name} holds dates or times, which are no values of a series: leave them out, "
            "or turn them into numbers of a unit of your choice."
        )
    if isinstance(first, str | bytes) or (any(map(_is_text, kinds)) and np.size(first)):
        raise _text_error(np.ravel(first)[:1].tolist()[0], input_name)
    # numbers too large for float64 become infinite, and are refused as infinite
    with np.errstate(over="ignore", invalid="ignore"), _advice(input_name):
        if isinstance(X, list | tuple):
            array = np.asarray(X)
            if _is_text(array.dtype):  # of numbers and text NumPy makes text
                text = next(one for one in _leaves(X) if isinstance(one, str | bytes))
                raise _text_error(text, input_name)
            X = array
        return check_array(
            X,
            dtype=np.float64,
            allow_nd=True,
            ensure_all_finite=False,
            input_name=input_name,
            **options,
        )


@contextmanager
def _advice(input_name: str) -> Iterator[None]:
    """Mend messages of scikit-learn and NumPy: name the argument, and say how to go on."""
    try:
        yield
    except ValueError as error:
        # scikit-learn shows all complex numbers, NumPy a shape
        text = re.split(r"\n|\. ", str(error))[0].rstrip(".")
        for start, advice in _ADVICE.items():
            if text.startswith(start):
                raise ValueError(f"{text} in {input_name}: {advice}") from error
        raise


def _is_text(kind: Any) -> bool:
    """Whether a type is that of letters."""
    return getattr(kind, "kind", None) in ("U", "S")


def _leaves(nested: Any) -> Iterator[Any]:
    """Yield all values of lists in a list, or of arrays there."""
    for one in nested:
        if isinstance(one, list | tuple):
            yield from _leaves(one)
        else:
            yield from np.ravel(one).tolist()


def _text_error(text: str | bytes, input_name: str) -> ValueError:
    return ValueError(
        f"{input_name} holds text, such as {text!r}: series are numbers, so leave out names and "
        "labels, or turn them into numbers."
    )


def _refuse_one_dimension(X: Any, input_name: str) -> None:
    """Raise if `X` is a single series, a number, or nothing."""
    if X is None:
        raise ValueError(f"Expected 2D array, got None instead: {input_name} is missing.")
    if not hasattr(X, "shape") and hasattr(X, "__array__"):
        return  # an object that converts itself is left to scikit-learn
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
    if not shape:
        raise ValueError(
            f"Expected 2D array, got scalar array instead: {input_name} is {_shortened(X)}. "
            "Reshape your data: series are one a row, (n_samples, n_timepoints), or a list of "
            "arrays."
        )
    if len(shape) < 2:
        row = f"{input_name}.reshape(1, -1)" if hasattr(X, "reshape") else f"[{input_name}]"
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {input_name} has "
            f"shape {shape}. Reshape your data: one series is {row}, many series are one a row, "
            "(n_samples, n_timepoints), or a list of arrays."
        )


def _shortened(value: Any) -> str:
    """Return the text of a value, or its type where that is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"


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
        given = f"has {n_dimensions} dimensions" if n_dimensions else f"is {_shortened(x)}"
        raise ValueError(
            f"{input_name} {given}; one series is an array of numbers, (n_timepoints,) or "
            "(n_channels, n_timepoints)."
        )
    if isinstance(x, list | tuple) and np.size(x) == 0:
        raise ValueError(f"{input_name} is empty: a minimum of 1 time point is required.")
    row = x[np.newaxis] if isinstance(x, np.ndarray) else [x]
    return check_series(row, input_name=input_name, new=False)


def _check_shape(values: np.ndarray, input_name: str) -> None:
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


def _check_on_gpu(X: Any, input_name: str, estimator: Any) -> Series:
    """Check an array on a GPU there; where it holds what cannot stay so, it is fetched."""
    _refuse_one_dimension(_form(X), input_name)
    with _advice(input_name):
        form = check_array(
            _form(X),
            dtype=None,
            allow_nd=True,
            ensure_all_finite=False,
            estimator=estimator,
            input_name=input_name,
        )
    _check_shape(form, input_name)
    series = Series.on_gpu(X, input_name)
    return series if _in_range(series) else _measure(series.values, input_name)


def _in_range(series: Series) -> bool:
    """Whether there is neither NaN nor a series whose scale float64 cannot square."""
    low, high = series.extent
    return -LARGEST <= low and high <= LARGEST and not series.any_below(LEAST)


def _form(X: Any) -> Any:
    """Return `X` as it is looked at: series of a long frame as a list; of an array on a GPU a
    stand-in of its shape and type without memory.
    """
    if _is_long_frame(X):
        return _split(X)
    if not lies_on_gpu(X):
        return X
    try:
        interface = X.__cuda_array_interface__
    except RuntimeError:  # CUDA does not run here, which is said where the array is fetched
        return fetch(X, "X")
    return np.broadcast_to(np.zeros((), interface["typestr"]), interface["shape"])


def as_host(X: Any, input_name: str) -> Any:
    """Return `X`, or for an array on a GPU its values in host memory.

    Parameters
    ----------
    X : object
        Whatever was given.
    input_name : str
        The argument's name in messages.

    Returns
    -------
    object
        The same, or an ndarray.
    """
    return fetch(X, input_name) if lies_on_gpu(X) else X


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
    if _is_list_of_series(X):
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
    if new and n_timepoints == 1 == n_channels < len(series) and not _is_list_of_series(X):
        raise ValueError(f"{_one_point(X, len(series), input_name)}.")
    if n_channels > 1:
        name = "This method" if estimator is None else type(estimator).__name__
        advice = ""
        if n_timepoints == 1:
            listed = _is_list_of_series(X)
            rows = f"[x.T for x in {input_name}]"
            rows = rows if listed else transposed(X, input_name, (0, 2, 1))
            advice = f" If these are points of one channel, write {rows}."
        raise ValueError(
            f"{name} takes series of one channel; {input_name} has {n_channels}.{advice}"
        )
    for row, (points,) in enumerate(series):
        _check_scale(points, row, input_name)
    return [points for (points,) in series]


def _check_scale(points: np.ndarray, row: int, input_name: str) -> None:
    """Raise if the largest finite magnitude of a series is out of range, unless it is 0.

    Points are looked at piece by piece: they may be those of a memory map.
    """
    largest, place = 0.0, 0
    for start in range(0, points.size, _PIECE):
        piece = points[start : start + _PIECE]
        top = max(piece.max(), -piece.min())
        if LEAST <= top <= LARGEST:
            largest = max(largest, top)
            continue
        # all are small, or there is NaN, infinity, or what is too large
        sizes = np.abs(piece)
        sizes[~np.isfinite(sizes)] = 0.0
        first = int(np.argmax(sizes > LARGEST)) if sizes.max() > LARGEST else int(sizes.argmax())
        if sizes[first] > LARGEST:
            _raise_scale(points[start + first], row, start + first, "", input_name)
        if sizes[first] > largest:
            largest, place = sizes[first], start + first
    if 0 < largest < LEAST:
        _raise_scale(points[place], row, place, "", input_name)


def _raise_scale(value: float, row: int, point: int, channel: str, input_name: str) -> None:
    """Say that a value is too large, or that the largest value of a series is too small."""
    where = f"at series {row}, time point {point}{channel}"
    size = abs(value)
    advice = f"Rescale the data, for example multiply by 1e{min(300, -round(math.log10(size)))}."
    if size > LARGEST:
        raise ValueError(
            f"Input {input_name} contains {value:g} {where}; above {LARGEST:.2g} squares overflow "
            f"float64. {advice}"
        )
    raise ValueError(
        f"Input {input_name} contains no magnitude above {size:g}, {where}; below {LEAST:.2g} "
        f"squares underflow float64. {advice}"
    )


def _is_list_of_series(X: Any) -> TypeGuard[list[ArrayLike]]:
    """Whether `X` is a list (or tuple) of arrays rather than a nested list of numbers.

    A long frame is, too.
    """
    if _is_long_frame(X):
        return True
    if not isinstance(X, list | tuple) or len(X) == 0:
        return False
    if any(hasattr(x, "shape") for x in X):
        return True
    lengths = {len(x) if isinstance(x, list | tuple) else -1 for x in X}
    return len(lengths) > 1 and -1 not in lengths


def _is_long_frame(X: Any) -> bool:
    """Whether `X` is a data frame with a row for each time point: its index has levels."""
    return hasattr(X, "columns") and getattr(getattr(X, "index", None), "nlevels", 1) > 1


def _split(frame: Any) -> list[np.ndarray]:
    """The series of a long frame, in the order in which they come."""
    if frame.index.nlevels != 2:
        raise ValueError(
            f"The index of the frame has {frame.index.nlevels} levels; those of series are two, "
            "series and time points."
        )
    found = []
    for name, part in frame.groupby(level=0, sort=False):
        times = part.index.get_level_values(1)
        if not (times.is_monotonic_increasing and times.is_unique):
            raise ValueError(
                f"The time points of series {name!r} do not ascend: sort the frame by its index."
            )
        found.append(part.to_numpy().T)
    if found and len(found[0]) > max(part.shape[1] for part in found):
        raise ValueError(
            "The index of the frame has two levels, series and time points, but there are more "
            "columns than time points; if each row is a series, leave the index out with "
            "reset_index(drop=True)."
        )
    return found


def _is_3d(X: Any) -> bool:
    """Whether `X`, which is no list of series, has three dimensions."""
    X = _form(X)
    return not _is_list_of_series(X) and (X if hasattr(X, "ndim") else np.asarray(X)).ndim == 3


def _listed(X: list[ArrayLike], input_name: str) -> list[np.ndarray]:
    """Check each series of a list: arrays of shape (n_channels, n_timepoints)."""
    arrays: list[np.ndarray] = []
    for row, x in enumerate(_form(X)):
        name = f"series {row} of {input_name}"
        array = _numbers(
            as_host(x, name), name, ensure_2d=False, ensure_min_samples=0, ensure_min_features=0
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
                f"The {name} has {len(array)} channels where series 0 has {len(arrays[0])}.{advice}"
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
    """Find the length of every series and refuse values that take part in nothing."""
    n_samples, _, n_timepoints = values.shape
    lengths = np.full(n_samples, n_timepoints, np.int64)
    whole = Series(values, lengths)
    if _in_range(whole):
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
        _raise_scale(value, row, point, which, input_name)
    padded = np.arange(n_timepoints) >= lengths[:, np.newaxis]
    return Series(np.where(padded[:, np.newaxis, :], 0.0, values), lengths)


def _raise_unequal(lengths: np.ndarray, input_name: str) -> None:
    row = int(np.flatnonzero(lengths != lengths[0])[0])
    raise ValueError(
        f"Series {row} of {input_name} has {lengths[row]} time points where series 0 has "
        f"{lengths[0]}; series of one length are needed here."
    )


def check_target(X: Any, y: Any, name: str) -> np.ndarray:
    """Validate class labels that go with `X`.

    Parameters
    ----------
    X : array-like or list of array-like
        Series.
    y : array-like of shape (n_samples,)
        Their labels.
    name : str
        Who needs them.

    Returns
    -------
    ndarray of shape (n_samples,)
        The labels.

    Raises
    ------
    ValueError
        If there are no labels, or not as many as series, or one is missing, or they are numbers of
        a regression.
    """
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    if not _is_list_of_series(X):
        _refuse_one_dimension(_form(X), "X")
    if np.ma.is_masked(y):
        raise ValueError(f"y has a masked label, at {int(np.argmax(np.ma.getmaskarray(y)))}.")
    labels: np.ndarray = column_or_1d(as_host(y, "y"), warn=True)
    if labels.dtype == object and len(kinds := {type(label).__name__ for label in labels}) > 1:
        raise ValueError(f"y holds labels of several types: {', '.join(sorted(kinds))}.")
    assert_all_finite(labels, input_name="y")
    try:
        check_consistent_length(_form(X), labels)
    except ValueError as error:
        advice = ""
        if getattr(_form(X), "shape", ())[1:] == (len(labels),):
            advice = f" If the series are columns, write {transposed(X, 'X')}."
        raise ValueError(f"{error}: series in X and labels in y.{advice}") from None
    check_classification_targets(labels)
    return labels


def _whole(
    method: Callable[Concatenate[Any, Arguments], Answer],
) -> Callable[Concatenate[Any, Arguments], Answer]:
    """Have a method that fits replace the fitted state in one step, at its end.

    It works on a stand-in with the same parameters and nothing of an earlier `fit` to be seen; if
    it fails or is interrupted, the estimator has never changed.
    """

    @wraps(method)
    def replace_at_once(self: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        stand_in = object.__new__(type(self))
        keep = method.__name__ != "fit"
        vars(stand_in).update(
            {name: v for name, v in vars(self).items() if keep or not name.endswith("_")}
        )
        result = method(stand_in, *args, **kwargs)
        # one assignment, which no interrupt divides
        self.__dict__ = vars(stand_in)
        return cast(Answer, self) if result is stand_in else result

    return replace_at_once


class SeriesMixin:
    """Validation, state and tags of estimators whose samples are time series.

    Methods called `fit` and `update` are made to replace the fitted state as a whole.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("fit", "update"):
            if name in vars(cls):
                setattr(cls, name, _whole(vars(cls)[name]))

    def _validate_params(self) -> None:
        """Check the parameters as scikit-learn does; truth values are no numbers."""
        super()._validate_params()  # type: ignore[misc]  # scikit-learn's
        given = {name: getattr(self, name) for name in self._parameter_constraints}
        refuse_truth(given, self._parameter_constraints, type(self).__name__)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; parameters that are scalars of NumPy become Python's."""
        super().__setattr__(name, value if name.endswith("_") else plain(value))

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: all attributes, and which version of skts made them."""
        state: Any = super().__getstate__()
        return {**state, "_skts_version": _version.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the attributes from a pickle; one of another version may not mean the same."""
        state = dict(state)
        made_by = state.pop("_skts_version", "before 0.1.0")
        if made_by != _version.__version__:
            warnings.warn(
                f"This {type(self).__name__} was pickled by skts {made_by} and is read by skts "
                f"{_version.__version__}, which may not understand it: fit it anew.",
                InconsistentVersionWarning,
                stacklevel=2,
            )
        super().__setstate__(state)  # type: ignore[misc]  # scikit-learn's

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: 2-D and 3-D input, no NaN but as padding."""
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]  # scikit-learn's
        tags.input_tags.three_d_array = True
        return tags

    def _remember_form(self, X: Any, series: Series) -> None:
        """Remember width, names and channels of training data that have been checked."""
        if _is_3d(X):
            self.n_features_in_ = series.n_timepoints
        elif not _is_list_of_series(X):
            validate_data(self, _form(X), "no_validation", reset=True, skip_check_array=True)
        self.n_channels_ = series.n_channels

    def _validate_series(self, X: Any) -> Series:
        """Validate series that come after `fit`, and compare their form with what was remembered.

        A 2-D array must have the width of the training data; lists and 3-D are of any length.
        """
        series = check_series(X, estimator=self, new=False)
        self._compare_form(X, series.n_channels, series.n_timepoints)
        return series

    def _compare_form(self, X: Any, n_channels: int, n_timepoints: int = 0) -> None:
        """Compare the form of series that have been checked with what was remembered."""
        any_length = _is_list_of_series(X) or _is_3d(X)
        if not any_length and hasattr(self, "n_features_in_"):
            validate_data(self, _form(X), "no_validation", reset=False, skip_check_array=True)
        if n_channels != self.n_channels_:
            swapped = n_timepoints == self.n_channels_ and not _is_list_of_series(X)
            advice = f" If the channels come last, write {transposed(X, 'X', (0, 2, 1))}."
            raise ValueError(
                f"X has {n_channels} channels, but {type(self).__name__} is expecting "
                f"{self.n_channels_} channels as input.{advice if swapped else ''}"
            )

    def _validate_target(self, X: Any, y: Any) -> np.ndarray:
        """Validate a target of one column that goes with `X`."""
        return check_target(X, y, f"This {type(self).__name__} estimator")

    def _validate_weights(self, sample_weight: Any, n: int) -> np.ndarray:
        """Validate weights of n series: 1 each where there are none."""
        if sample_weight is None or isinstance(sample_weight, Real):
            weights = np.full(n, 1.0 if sample_weight is None else float(sample_weight))
        else:
            weights = _numbers(
                as_host(sample_weight, "sample_weight"),
                "sample_weight",
                ensure_2d=False,
                estimator=self,
            )
        if weights.shape != (n,):
            raise ValueError(
                f"sample_weight has the shape {weights.shape}; give one number for each of the "
                f"{n} series."
            )
        bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST)))
        if bad.size:
            raise ValueError(
                f"sample_weight is {weights[bad[0]]:g} for series {bad[0]}; give numbers from 0 to "
                f"{LARGEST:.1g}."
            )
        if not weights.any():
            raise ValueError("sample_weight is zero for all series; give one of them a weight.")
        return weights
