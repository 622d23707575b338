"""Long series on one line: where each lies, and which points of a line are finite.

Several series lie behind each other on one line (`ConcatenatedSeries`), with gaps of NaN between
them: a window that touches a gap is not finite and takes part in nothing, so no kernel needs to
know where a series ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["ConcatenatedSeries", "fill_gaps", "name_lines", "repeat_last", "whole_windows"]


class Origin(NamedTuple):
    """The line that a line has grown from: what was prepared of it need not be computed again.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        That line, without gaps.
    dropped : int
        Points that have left at its beginning; the others are those that the new line begins with.
    """

    points: np.ndarray
    dropped: int


class ConcatenatedSeries(NamedTuple):
    """Series behind each other on one line.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        The series and the gaps of NaN between them; a single series is held as it came, also if
        it is a memory map.
    starts : ndarray of shape (n_series,), int64
        Where each series begins.
    lengths : ndarray of shape (n_series,), int64
        Points of each series.
    origin : Origin or None
        Of a single series that has grown, for as long as that is in memory.
    """

    points: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    origin: Origin | None = None

    @classmethod
    def of(cls, series: Sequence[np.ndarray], gap: int = 1) -> ConcatenatedSeries:
        """Lay 1-D series on a line, with at least `gap` points of NaN between them.

        Windows of l points in different series are more than `exclusion` apart on the line where
        the gap is at least ``exclusion - l + 1``.
        """
        gap = max(1, gap)
        lengths = np.array([len(one) for one in series], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths + gap)])[:-1]
        if len(series) == 1:
            points = np.asarray(series[0], np.float64).view()
        else:
            points = np.full(int(lengths.sum()) + gap * (len(series) - 1), np.nan)
            for start, one in zip(starts, series, strict=True):
                points[start : start + len(one)] = one
        points.flags.writeable = False
        return cls(points, starts, lengths)

    def after(self, before: ConcatenatedSeries, dropped: int) -> ConcatenatedSeries:
        """Name the line that this one has grown from, which has lost so many points since.

        Lines of several series are prepared as a whole.
        """
        if len(self.lengths) > 1:
            return self
        return self._replace(origin=Origin(before.points, dropped))

    def n_windows(self, length: int) -> int:
        """Windows of so many points on the line, those that touch a gap included."""
        return max(0, self.points.size - length + 1)

    def locate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the series and the start in it of windows given by their place on the line.

        Positions of -1, no window, give -1 twice.
        """
        positions = np.asarray(positions)
        if len(self.starts) == 1:
            return np.where(positions < 0, -1, 0), positions.copy()
        series = np.searchsorted(self.starts, positions, side="right") - 1
        start = positions - self.starts[np.maximum(series, 0)]
        return series, np.where(positions < 0, -1, start)


def name_lines(*lines: ConcatenatedSeries) -> tuple[str, int]:
    """Lines in words, by their points, and how many points these are."""
    sizes = [f"{line.points.size:,}" for line in lines]
    name = (
        f"a line of {sizes[0]} points"
        if len(sizes) == 1
        else f"lines of {' and '.join(sizes)} points"
    )
    return name, sum(line.points.size for line in lines)


def fill_gaps(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Make a line finite.

    Parameters
    ----------
    points : ndarray of shape (n_points,)
        The line; may hold NaN and infinities.

    Returns
    -------
    filled : ndarray of shape (n_points,), float64
        The line; what is not finite repeats the last point that is, so that no window is larger
        than those of the data. The line itself where all is finite.
    finite : ndarray of shape (n_points,), bool
        Which points are finite.
    """
    finite = np.isfinite(points)
    filled = np.asarray(points, np.float64)
    return (filled if finite.all() else repeat_last(filled, finite)), finite


def repeat_last(points: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Replace unwanted points by the last wanted one before, or else the first; 0 without one."""
    if not wanted.any():
        return np.zeros(points.size)
    last = np.maximum.accumulate(np.where(wanted, np.arange(points.size), -1))
    return points[np.where(last < 0, int(np.argmax(wanted)), last)]


def whole_windows(finite: np.ndarray, length: int) -> np.ndarray:
    """Which windows hold only finite points."""
    if finite.all():
        return np.ones(max(0, finite.size - length + 1), bool)
    gaps = np.concatenate([[0], np.cumsum(~finite)])
    return gaps[length:] == gaps[:-length]
