"""Series that came in the memory of a GPU."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import cupy as cp
import numpy as np

from ..core.series import Series, _any_below, read_only

__all__ = ["GpuSeries", "fetch"]


class GpuSeries(Series):
    """Series that lie on a device; engines on a GPU take them from there.

    Parameters
    ----------
    points : cupy.ndarray of shape (n_series, n_channels, n_timepoints), float64, C-contiguous
        Points, on whichever device.
    lengths : ndarray of shape (n_series,), int64
        Points of each series.
    """

    points: cp.ndarray
    #: An array that lives as long as these series.
    owner: np.ndarray = np.empty(0)

    def __init__(self, points: cp.ndarray, lengths: np.ndarray) -> None:
        # the base class is frozen: nothing is set once an instance is made
        vars(self).update(points=points, lengths=lengths, owner=np.empty(0))

    @classmethod
    def of(cls, array: Any) -> GpuSeries:
        """Take series of one length: float64 in C order as they are, others as a copy."""
        points = cp.asarray(array)
        with points.device:
            points = cp.ascontiguousarray(points, np.float64)
        if points.ndim == 2:
            points = points[:, np.newaxis, :]
        return cls(points, np.full(len(points), points.shape[2], np.int64))

    @cached_property
    def values(self) -> np.ndarray:
        """The points in host memory, fetched once."""
        values = fetch(self.points)
        values.flags.writeable = False
        return values

    @property
    def shape(self) -> tuple[int, int, int]:
        """Series, channels, points."""
        return self.points.shape

    @cached_property
    def extent(self) -> tuple[float, float]:
        """The least and the largest value; NaN if there is one."""
        with self.points.device:
            return float(self.points.min()), float(self.points.max())

    def any_below(self, limit: float) -> bool:
        """Whether all values of a series that is not all 0 are below a limit in magnitude."""
        with self.points.device:
            return _any_below(self.points, limit)

    def take(self, which: slice | np.ndarray) -> Series:
        """Return some of the series; from host memory, where they have been fetched."""
        if "values" in vars(self):
            return super().take(which)
        with self.points.device:
            at = which if isinstance(which, slice) else cp.asarray(which)
            return GpuSeries(_settled(self.points[at]), self.lengths[which])

    def freeze(self) -> GpuSeries:
        """Return a private copy on the same device."""
        with self.points.device:
            copy = GpuSeries(_settled(self.points.copy()), read_only(self.lengths.copy()))
        return self._with_facts(copy)

    def here(self) -> cp.ndarray:
        """The points on the current device."""
        near = self.points.device.id == cp.cuda.Device().id
        return self.points if near else self.points.copy()


def _settled(array: cp.ndarray) -> cp.ndarray:
    """Wait for an array: workers read it on streams that know nothing of this one."""
    cp.cuda.get_current_stream().synchronize()
    return array


def fetch(array: Any) -> np.ndarray:
    """Bring an array to host memory."""
    array = cp.asarray(array)
    with array.device:
        return array.get(order="C")
