"""Windows of long series: where they lie, their statistics, and certified distances between them.

One place for all methods that compare z-normalised windows. Several series lie behind each other
on one line (`Pool`), with gaps of NaN between them: a window that touches a gap is not finite and
takes part in nothing, so no kernel needs to know where a series ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ._certify import Rescaling
from ._reductions import Reduction, Tile

__all__ = [
    "Kinds",
    "Pool",
    "WindowDistances",
    "WindowKinds",
    "WindowStatistics",
    "lay_line",
    "name_lines",
    "settle_statistics",
    "whole_windows",
    "window_statistics",
]

#: A window is constant when its range is at most this share of its largest magnitude.
CONSTANT = 2.0**-40


class Pool(NamedTuple):
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
    """

    points: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, series: Sequence[np.ndarray], gap: int = 1) -> Pool:
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

    @property
    def offset(self) -> float:
        """What kernels take off all points, which they share: see `lay_line`."""
        _, filled, _ = lay_line(self.points, centered=False)
        return Rescaling.of(filled).offset

    def n_windows(self, length: int) -> int:
        """Windows of so many points on the line, those that touch a gap included."""
        return max(0, self.points.size - length + 1)

    def locate(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the series and the start in it of windows given by their place on the line.

        Positions of -1, no window, give -1 twice.
        """
        positions = np.asarray(positions)
        series = np.searchsorted(self.starts, positions, side="right") - 1
        start = positions - self.starts[np.maximum(series, 0)]
        return series, np.where(positions < 0, -1, start)


class WindowStatistics(NamedTuple):
    """Statistics of the windows that start at each point.

    Attributes
    ----------
    mean, deviation : ndarray of shape (n_windows,), float64
        Mean and population standard deviation; 0 where the window is not finite, and a deviation
        of exactly 0 where it is constant.
    constant : ndarray of shape (n_windows,), bool
        Where max - min <= 2^-40 max |x|, or the deviation is too small for float64.
    finite : ndarray of shape (n_windows,), bool
        Where no point is NaN or infinite. The others take part in nothing.
    """

    mean: np.ndarray
    deviation: np.ndarray
    constant: np.ndarray
    finite: np.ndarray

    @property
    def usual(self) -> np.ndarray:
        """Where a window is finite and not constant."""
        return self.finite & ~self.constant

    @property
    def inverse(self) -> np.ndarray:
        """1 / deviation, 0 where there is none."""
        with np.errstate(divide="ignore"):
            return np.where(self.deviation > 0, 1.0 / self.deviation, 0.0)


def name_lines(*lines: Pool) -> str:
    """Lines in words, by their points."""
    sizes = [f"{line.points.size:,}" for line in lines]
    return (
        f"a line of {sizes[0]} points"
        if len(sizes) == 1
        else f"lines of {' and '.join(sizes)} points"
    )


def lay_line(
    points: np.ndarray, *, centered: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make a line fit for kernels.

    Parameters
    ----------
    points : ndarray of shape (n_points,)
        The line; may hold NaN and infinities.
    centered : bool, default True
        Whether to take off an offset that dwarfs the spread of the line.

    Returns
    -------
    points : ndarray of shape (n_points,), float64
        `filled`, less the offset.
    filled : ndarray of shape (n_points,), float64
        The line; what is not finite repeats the last point that is, so that no window is larger
        than those of the data.
    finite : ndarray of shape (n_points,), bool
        Which points are finite.
    """
    finite = np.isfinite(points)
    filled = np.asarray(points, np.float64)
    if not finite.all():
        last = np.maximum.accumulate(np.where(finite, np.arange(points.size), -1))
        first = int(np.argmax(finite))
        filled = np.where(finite.any(), points[np.where(last < 0, first, last)], 0.0)
    offset = Rescaling.of(filled).offset if centered else 0.0
    return (filled - offset if offset else filled), filled, finite


def window_statistics(series: np.ndarray, length: int) -> WindowStatistics:
    """Compute the statistics of all windows of a series.

    Every window is summed in its own order in two passes, so its statistics depend on its points
    alone: not on where it lies, nor on how a long series is cut into pieces.

    Parameters
    ----------
    series : ndarray of shape (n_timepoints,), float64
        The series; may hold NaN and infinities.
    length : int
        Points of a window, at most `n_timepoints`.

    Returns
    -------
    WindowStatistics
        Arrays of n_timepoints - length + 1 entries.
    """
    from .numba import windows

    finite = np.isfinite(series)
    points = np.where(finite, series, 0.0)
    found = windows.statistics(points, points, length)
    return settle_statistics(*found, whole_windows(finite, length))


def whole_windows(finite: np.ndarray, length: int) -> np.ndarray:
    """Which windows hold only finite points."""
    if finite.all():
        return np.ones(max(0, finite.size - length + 1), bool)
    gaps = np.concatenate([[0], np.cumsum(~finite)])
    return gaps[length:] == gaps[:-length]


def settle_statistics(
    mean: np.ndarray,
    deviation: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    finite: np.ndarray,
) -> WindowStatistics:
    """Decide which windows are constant, and clear what is not finite."""
    constant = high - low <= CONSTANT * np.maximum(np.abs(low), np.abs(high))
    constant = finite & (constant | (deviation == 0))
    return WindowStatistics(
        np.where(finite, mean, 0.0),
        np.where(finite & ~constant, deviation, 0.0),
        constant,
        finite,
    )


class Kinds(NamedTuple):
    """What the windows of a line are.

    Attributes
    ----------
    constant, finite : ndarray of shape (n_windows,), bool
        As in `WindowStatistics`.
    """

    constant: np.ndarray
    finite: np.ndarray

    @property
    def usual(self) -> np.ndarray:
        """Where a window is finite and not constant."""
        return self.finite & ~self.constant


@dataclass(frozen=True, eq=False)
class WindowKinds(Reduction):
    """Which windows of a line are constant, and which are finite.

    Parameters
    ----------
    series : Pool
        The line.
    length : int
        Points of a window.
    """

    series: Pool
    length: int
    method: ClassVar[str] = "window_kinds"

    @property
    def shape(self) -> tuple[int, int]:
        """One piece of work."""
        return 1, 1

    @property
    def step_work(self) -> int:
        """Points of all windows."""
        return self.length * self.series.n_windows(self.length)

    @property
    def cell(self) -> tuple[int, int]:
        """The whole line."""
        return 1, 1

    @property
    def whole(self) -> str:
        """The line."""
        return name_lines(self.series)

    def part(self, tile: Tile) -> WindowKinds:
        """Return itself."""
        return self

    def start(self) -> list[Kinds]:
        """Return an empty box."""
        return []

    def merge(self, total: list[Kinds], tile: Tile, result: Kinds) -> None:
        """Keep the answer."""
        total.append(result)

    def finish(self, total: list[Kinds], run: Callable[[Reduction], Any]) -> Kinds:
        """Hand the answer out."""
        return total[0]


@dataclass(frozen=True, eq=False)
class WindowDistances(Reduction):
    """Certified distances of chosen windows to all windows of a line.

    Infinite where either window is not finite. Between z-normalised windows: two constant ones
    are at 0, a constant and another at sqrt(length).

    Parameters
    ----------
    queries : Pool
        The line on which the chosen windows lie.
    positions : ndarray of shape (n_chosen,), int64
        Where they start.
    series : Pool
        The line whose windows they are compared with.
    length : int
        Points of a window.
    normalize : bool
        Whether windows are z-normalised.
    """

    queries: Pool
    positions: np.ndarray
    series: Pool
    length: int
    normalize: bool = True
    method: ClassVar[str] = "window_distances"

    @property
    def shape(self) -> tuple[int, int]:
        """Chosen windows and windows of the line."""
        return len(self.positions), self.series.n_windows(self.length)

    @property
    def step_work(self) -> int:
        """Points of a window."""
        return self.length

    @property
    def cell(self) -> tuple[int, int]:
        """One chosen window, some thousand others."""
        return 1, 4096

    def result_bytes(self) -> int:
        """Size of the matrix."""
        return 8 * self.shape[0] * self.shape[1]

    @property
    def whole(self) -> str:
        """The lines."""
        lines = {id(line.points): line for line in (self.queries, self.series)}
        return name_lines(*lines.values())

    def part(self, tile: Tile) -> WindowDistances:
        """Return some chosen windows against a piece of the line."""
        piece = self.series.points[tile.col : tile.col_stop + self.length - 1].view()
        pool = Pool(piece, np.zeros(1, np.int64), np.array([piece.size]))
        return WindowDistances(
            self.queries, self.positions[tile.rows], pool, self.length, self.normalize
        )

    def start(self) -> np.ndarray:
        """Return the empty matrix."""
        return np.empty(self.shape)

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write a block."""
        total[tile.rows, tile.cols] = result

    def finish(self, total: Any, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Hand the matrix out."""
        return total
