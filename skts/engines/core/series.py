"""`Series`: how every reduction holds a set of time series."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...exceptions import EngineNotAvailableError
from .constants import CONSTANT, SMALLEST_RANGE
from .engine import Engine
from .registry import engine_names, find_engine

__all__ = ["Series", "are_constant", "fetch", "lies_on_gpu", "read_only"]

T = TypeVar("T")
S = TypeVar("S", bound="Series")


@dataclass(frozen=True, eq=False)
class Series:
    """A set of time series: one rectangular array and the length of each series.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints), float64, C-contiguous
        Points; what lies beyond the length of a series is 0 and takes part in nothing.
    lengths : ndarray of shape (n_series,), int64
        Points of each series, at least 1.

    Raises
    ------
    TypeError
        If an array is of another type.
    """

    values: np.ndarray
    lengths: np.ndarray

    def __post_init__(self) -> None:
        # kernels read these arrays by their bytes
        for name, dtype in (("values", np.float64), ("lengths", np.int64)):
            array = getattr(self, name)
            if array.dtype != dtype:
                raise TypeError(f"{name} of Series are {np.dtype(dtype)}, not {array.dtype}.")

    def __reduce__(self) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
        """Travel as two arrays, which are looked at where they arrive."""
        return _arrived, (self.values, self.lengths)

    @classmethod
    def of(cls, values: ArrayLike) -> Series:
        """Series of one length: each row of `values` is one.

        Parameters
        ----------
        values : array-like of shape (n_series, n_timepoints), or with channels as a second axis
            Finite points.

        Returns
        -------
        Series
            It holds `values` themselves, where these are float64 one after the other.
        """
        # as any array: a memory map stays one
        held = np.asanyarray(values, np.float64, order="C")
        held = held[:, np.newaxis] if held.ndim == 2 else held
        return cls(held, np.full(len(held), held.shape[2], np.int64))

    @staticmethod
    def on_gpu(array: Any, name: str) -> Series:
        """Take series of one length from the memory of a GPU, where they stay.

        Parameters
        ----------
        array : object with ``__cuda_array_interface__``
            Of shape (n_series, n_timepoints) or (n_series, n_channels, n_timepoints).
        name : str
            What it is called in messages.

        Returns
        -------
        Series
            Its `values` are fetched when they are first asked for.
        """
        series: Series = _ask_owner(array, name, lambda engine: engine.series_of(array))
        return series

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Series, channels, points of the longest that fits."""
        return self.values.shape

    @property
    def n_channels(self) -> int:
        """Channels of every series."""
        return self.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Length of the longest series that fits, the width of `values`."""
        return self.shape[2]

    @cached_property
    def equal_length(self) -> bool:
        """Whether every series fills the whole width."""
        return bool(np.all(self.lengths == self.n_timepoints))

    @cached_property
    def extent(self) -> tuple[float, float]:
        """The least and the largest value within the lengths of the series; NaN if there is one."""
        low, high = float(self.values.min()), float(self.values.max())
        if low < 0.0 < high or self.equal_length:
            return low, high
        # one of the two may be the 0 beyond the end of a series
        low = self.values.min(where=self.inside, initial=np.inf)
        high = self.values.max(where=self.inside, initial=-np.inf)
        return float(low), float(high)

    @property
    def inside(self) -> np.ndarray | bool:
        """Which points are no padding, to broadcast with `values`; True where none is."""
        if self.equal_length:
            return True
        return np.arange(self.n_timepoints) < self.lengths[:, np.newaxis, np.newaxis]

    def any_below(self, limit: float) -> bool:
        """Whether all values of a series that is not all 0 are below a limit in magnitude."""
        return _any_below(self.values, limit)

    @cached_property
    def channels(self) -> tuple[Series, ...]:
        """The channels as sets of their own, copied."""
        return tuple(
            Series(np.ascontiguousarray(self.values[:, c : c + 1]), self.lengths)
            for c in range(self.n_channels)
        )

    @property
    def owner(self) -> np.ndarray:
        """The array to whose life engines tie what they make of these series."""
        return self.values

    def take(self, which: slice | np.ndarray) -> Series:
        """Return some of the series: a view for a slice, a copy for an index array."""
        return Series(self.values[which], self.lengths[which])

    def freeze(self) -> Series:
        """Return a private, non-writeable copy; a memory map is kept by reference.

        Data that engines prepare from it (packed lanes, uploads) live as long as this copy.
        """
        values = self.values
        if not _maps_file(values):
            values = values.copy()
            values.flags.writeable = False
        return self._with_facts(Series(values, read_only(self.lengths.copy())))

    def _with_facts(self, copy: S) -> S:
        """Tell a copy what is known of these series, so that no pass over it finds it again."""
        names = ("equal_length", "extent")
        vars(copy).update({name: vars(self)[name] for name in names if name in vars(self)})
        return copy


def _arrived(values: np.ndarray, lengths: np.ndarray) -> Series:
    """Series from a pickle: kernels would read beside arrays where that is damaged."""
    series = Series(values, lengths)
    if values.ndim != 3 or lengths.shape != values.shape[:1]:
        raise ValueError(
            f"The pickle is damaged: values of shape {values.shape} and lengths of shape "
            f"{lengths.shape} are no series."
        )
    wrong = np.flatnonzero((lengths < 1) | (lengths > values.shape[2]))
    if wrong.size:
        raise ValueError(
            f"The pickle is damaged: series {wrong[0]} has {lengths[wrong[0]]} of "
            f"{values.shape[2]} time points."
        )
    return series


def _any_below(points: Any, limit: float) -> bool:
    """As `Series.any_below`, on the device of the points."""
    # nearly always one point of each series shows that it is not
    if (np.abs(points[:, 0, points.shape[2] // 2]) >= limit).all():
        return False
    magnitudes = np.maximum(points.max(axis=(1, 2)), -points.min(axis=(1, 2)))
    return bool(((magnitudes > 0) & (magnitudes < limit)).any())


def lies_on_gpu(array: Any) -> bool:
    """Whether something is an array in the memory of a GPU, CuPy's or another library's."""
    try:
        return hasattr(array, "__cuda_array_interface__")
    except RuntimeError:  # CUDA does not run in this process, but made the array in another one
        return True


def fetch(array: Any, name: str) -> np.ndarray:
    """Bring an array from the memory of a GPU.

    Parameters
    ----------
    array : object with ``__cuda_array_interface__``
        The array.
    name : str
        What it is called in messages.

    Returns
    -------
    ndarray
        Its values, in its own type.

    Raises
    ------
    EngineNotAvailableError
        If CuPy, which reads it, is not there.
    """
    return _ask_owner(array, name, lambda engine: engine.fetch(array))


def _ask_owner(array: Any, name: str, ask: Callable[[Engine], T]) -> T:
    """Ask the engine in whose memory an array lies."""
    for engine in map(find_engine, engine_names()):
        if engine.owns(array):
            try:
                return ask(engine)
            except EngineNotAvailableError as error:
                raise EngineNotAvailableError(
                    f"{name} lies in the memory of a GPU. {error}"
                ) from None
            except ImportError as error:
                raise EngineNotAvailableError(
                    f"{name} lies in the memory of a GPU, and reading it takes CuPy ({error}): pip "
                    "install 'skts[cuda13]' (CUDA 13) or 'skts[cuda12]' (CUDA 12), or give a NumPy "
                    "array."
                ) from error
    raise EngineNotAvailableError(f"{name} lies in the memory of a device that no engine reads.")


def are_constant(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which windows are constant, or channels of series, by least and largest points."""
    largest = np.maximum(np.abs(low), np.abs(high))
    constant: np.ndarray = high - low <= np.maximum(CONSTANT * largest, SMALLEST_RANGE)
    return constant


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written to: kernels of the CPU are compiled once, for such arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def zeros_beside(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Make an array of zeros where another array lies: in memory, or in a file for a memory map.

    The file is a temporary one that goes when the array does, or this process; it lies in
    JOBLIB_TEMP_FOLDER, or where temporary files do.
    """
    if not _maps_file(array):
        return np.zeros(shape)
    path = new_file()
    mapped = np.memmap(path, np.float64, "w+", shape=shape)
    remove_with(mapped, path)
    return mapped.view(np.ndarray)


def new_file() -> str:
    """Make a temporary file, where joblib's are made or where the system has its own."""
    directory = os.environ.get("JOBLIB_TEMP_FOLDER")
    with tempfile.NamedTemporaryFile(prefix="skts-", dir=directory, delete=False) as file:
        return file.name


def remove_with(array: np.ndarray, path: str) -> None:
    """Remove a file when an array dies, or this process ends."""
    weakref.finalize(array, _remove, path)


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.unlink(path)


def _maps_file(array: np.ndarray) -> bool:
    """Whether `array` is a memory map or a view of one; copies of maps are of that class, too."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if getattr(owner, "_mmap", None) is not None:
            return True
        owner = owner.base
    return False
