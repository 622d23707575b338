"""Forms that series come in: arrays, lists of arrays, frames, arrays on a GPU."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from ..engines import fetch, lies_on_gpu

__all__ = [
    "as_host",
    "channel_names",
    "chosen",
    "form_of",
    "has_row_for_each_time",
    "is_3d",
    "is_list_of_series",
    "names_of_series",
    "refuse_other_channels",
    "shortened",
    "transposed",
]

#: Types of an index of times, by their names: pandas may not be there.
_INDICES_OF_TIMES = frozenset({"DatetimeIndex", "TimedeltaIndex", "PeriodIndex"})
#: Characters of a value that a message shows.
_SHOWN = 60


def is_list_of_series(X: Any) -> TypeGuard[list[ArrayLike]]:
    """Whether `X` is a list (or tuple) of arrays rather than a nested list of numbers.

    A long frame is, too.
    """
    if _is_long_frame(X):
        return True
    if not isinstance(X, list | tuple) or len(X) == 0:
        return False
    if any(hasattr(x, "shape") or hasattr(x, "__array__") for x in X):
        return True
    lengths = {len(x) if isinstance(x, list | tuple) else -1 for x in X}
    return len(lengths) > 1 and -1 not in lengths


def _is_long_frame(X: Any) -> bool:
    """Whether `X` is a data frame with a row for each time point: its index has levels."""
    return hasattr(X, "columns") and getattr(getattr(X, "index", None), "nlevels", 1) > 1


def is_3d(X: Any) -> bool:
    """Whether `X`, which is no list of series, has three dimensions."""
    X = form_of(X)
    return not is_list_of_series(X) and (X if hasattr(X, "ndim") else np.asarray(X)).ndim == 3


def form_of(X: Any) -> Any:
    """Return an object by which the form of `X` can be judged.

    That is `X` itself, the list of series of a long frame or of a list of frames, or, for an array
    on a GPU, a stand-in of its shape and type that takes no memory.
    """
    if _is_long_frame(X):
        return _split(X)
    if _frames_of(X):
        return _of_frames(X)
    if not lies_on_gpu(X):
        return X
    try:
        interface = X.__cuda_array_interface__
    except RuntimeError:  # CUDA does not run here, which is said where the array is fetched
        return fetch(X, "X")
    return np.broadcast_to(np.zeros((), interface["typestr"]), interface["shape"])


def _frames_of(X: Any) -> list[Any]:
    """The data frames of a list, each of one series."""
    return [x for x in X if _is_frame(x)] if isinstance(X, list | tuple) else []


def _is_frame(x: Any) -> bool:
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def has_row_for_each_time(X: Any) -> bool:
    """Whether `X` is a data frame whose index holds times, and no other level."""
    return _is_frame(X) and type(getattr(X, "index", None)).__name__ in _INDICES_OF_TIMES


def _of_frames(X: list[Any] | tuple[Any, ...]) -> list[Any]:
    """The series of a list in which some are data frames, of a row for each time point."""
    first, found = _frames_of(X)[0], []
    for number, x in enumerate(X):
        if not _is_frame(x):
            found.append(x)
            continue
        if list(x.columns) != list(first.columns):
            raise ValueError(
                f"The data frame of series {number} has the columns {shortened(list(x.columns))} "
                f"where another has {shortened(list(first.columns))}: give the same in each."
            )
        found.append(_points_of(x, getattr(x, "index", None), number))
    if 0 < max(map(len, _frames_of(X))) < len(first.columns):
        raise ValueError(
            f"The data frames in the list have {len(first.columns)} columns and fewer rows: in "
            "each, rows are the time points of one series. If columns are, write x.to_numpy()."
        )
    return found


def _split(frame: Any) -> list[np.ndarray]:
    """The series of a long frame, in the order in which they come."""
    if frame.index.nlevels != 2:
        raise ValueError(
            f"The index of the frame has {frame.index.nlevels} levels; those of series are two, "
            "series and time points."
        )
    found = [
        _points_of(part, part.index.get_level_values(1), name) for name, part in _by_series(frame)
    ]
    if found and len(found[0]) > max(part.shape[1] for part in found):
        raise ValueError(
            "The index of the frame has two levels, series and time points, but there are more "
            "columns than time points; if each row is a series, leave the index out with "
            "reset_index(drop=True)."
        )
    return found


def _points_of(frame: Any, times: Any, name: Any) -> np.ndarray:
    """The points of a series, of shape (n_channels, n_timepoints), from a row for each time."""
    if times is not None and not (times.is_monotonic_increasing and times.is_unique):
        raise ValueError(
            f"The time points of series {name!r} do not ascend: sort the frame by its index."
        )
    points: np.ndarray = frame.to_numpy().T
    return points


def _by_series(frame: Any) -> Any:
    """The rows of a long frame, grouped by series, in the order in which these come."""
    return frame.groupby(level=0, sort=False, observed=True, dropna=False)


def names_of_series(X: Any) -> Any:
    """Return the names of the series of a long frame, in the order in which they come.

    Parameters
    ----------
    X : object
        Series in any of the accepted forms.

    Returns
    -------
    pandas.Index or None
        Nothing of another form.
    """
    return X.index.get_level_values(0).unique() if _is_long_frame(X) else None


def channel_names(X: Any) -> tuple[str, ...]:
    """Return the names of the channels of a long frame, or of frames; none where they are no text.

    Parameters
    ----------
    X : object
        Series in any of the accepted forms: only such frames name their channels.

    Returns
    -------
    tuple of str
        A name a channel, or nothing.
    """
    frames = [X] if _is_long_frame(X) else _frames_of(X)
    names = tuple(frames[0].columns) if frames else ()
    return names if all(isinstance(name, str) for name in names) else ()


def refuse_other_channels(X: Any, known: tuple[str, ...], input_name: str, where: str) -> None:
    """Raise where one of several channels has another name than it is known by.

    Parameters
    ----------
    X : object
        Series in any of the accepted forms.
    known : tuple of str
        Names of the channels of other series, if they have any.
    input_name : str
        The argument's name in messages.
    where : str
        What these others are.

    Raises
    ------
    ValueError
        If both have as many names, more than one, and two of them differ.
    """
    names = channel_names(X)
    if len(names) == len(known) > 1 and names != known:
        place = next(i for i, name in enumerate(names) if name != known[i])
        raise ValueError(
            f"Channel {place} of {input_name} is {names[place]!r}, and {known[place]!r} in "
            f"{where}: give the same columns in the same order."
        )


def chosen(X: Any, samples: np.ndarray, input_name: str) -> Any:
    """Return some series, or their labels, in the form in which all of them were given.

    Parameters
    ----------
    X : object
        Series in any of the accepted forms, or labels.
    samples : ndarray of int
        Which of them.
    input_name : str
        The argument's name in messages.

    Returns
    -------
    object
        A list of a list, a data frame of a data frame; of an array on a GPU, an ndarray.
    """
    if _is_long_frame(X):
        series = _by_series(X).ngroup().to_numpy()
        ends = np.cumsum(np.bincount(series))
        rows = np.split(np.argsort(series, kind="stable"), ends[:-1])
        samples = np.concatenate([rows[sample] for sample in samples])
    return _safe_indexing(as_host(X, input_name), samples)


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


def shortened(value: Any) -> str:
    """Return the text of a value, or its type where that is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"a {type(value).__name__}"
