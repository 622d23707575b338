"""`Series`: how every reduction holds a set of time series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Series"]


@dataclass(frozen=True, eq=False)
class Series:
    """A set of time series: one rectangular array and the length of each series.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints), float64, C-contiguous
        Points; what lies beyond the length of a series is 0 and takes part in nothing.
    lengths : ndarray of shape (n_series,), int64
        Points of each series, at least 1.
    """

    values: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def n_channels(self) -> int:
        """Channels of every series."""
        return self.values.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Length of the longest series that fits, the width of `values`."""
        return self.values.shape[2]

    @property
    def equal_length(self) -> bool:
        """Whether every series fills the whole width."""
        return bool(np.all(self.lengths == self.n_timepoints))

    def take(self, which: slice | np.ndarray) -> Series:
        """Return some of the series: a view for a slice, a copy for an index array."""
        return Series(self.values[which], self.lengths[which])

    def freeze(self) -> Series:
        """Return a private, non-writeable copy; a memory map is kept by reference.

        What an engine prepares (packed lanes, uploads) lives as long as this copy does.
        """
        values = self.values
        if not _maps_file(values):
            values = values.copy()
            values.flags.writeable = False
        lengths = self.lengths.copy()
        lengths.flags.writeable = False
        return Series(values, lengths)


def _maps_file(array: np.ndarray | None) -> bool:
    """Whether `array` is a memory map or a view of one."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
