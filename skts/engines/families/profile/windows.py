"""Windows of long series: where they lie, their statistics, and certified distances between them.

One place for all methods that compare z-normalised windows. Several series lie behind each other
on one line (`Pool`), with gaps of NaN between them: a window that touches a gap is not finite and
takes part in nothing, so no kernel needs to know where a series ends.

Statistics and certified distances of a window come from its own points, counted from the first of
them, in two passes: nothing else on the line, and nothing else in the call, changes a bit of them.
A search sees a line of its own (`SearchLine`), centred and scaled, whose rounding its bounds hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import CONSTANT, FLOAT64_UNIT, SMALLEST_RANGE
from ...core.reduction import Reduction, Tile
from ...core.series import read_only
from ...core.verify import Check, Sample, check_value

__all__ = [
    "Frame",
    "Kinds",
    "Pool",
    "SearchLine",
    "WindowDistances",
    "WindowKinds",
    "WindowStatistics",
    "common_frame",
    "even_line",
    "fill_gaps",
    "line_as_it_is",
    "line_of_pieces",
    "name_lines",
    "plain_profile",
    "settle_statistics",
    "whole_windows",
    "window_statistics",
]

#: A piece of a line spreads at most so many times the range of each of its windows.
#: see "search line" in docs/developer/numerics.rst
EVEN = 2.0**30
#: Windows so many powers of two below the loudest of a line are too quiet for its search, where
#: they are compared as they are; points whose middle and size are looked at.
QUIET, SAMPLE = 22, 4096


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
        Mean (for engines that of the points less the first of the window) and population standard
        deviation; 0 where the window is not finite, and a deviation of exactly 0 where it is
        constant.
    constant : ndarray of shape (n_windows,), bool
        Where max - min <= max(2^-40 max |x|, 2^-500).
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
    return (filled if finite.all() else _repeat_last(filled, finite)), finite


def _repeat_last(points: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Let unwanted points repeat the last wanted one, the first ones the first; else 0."""
    if not wanted.any():
        return np.zeros(points.size)
    last = np.maximum.accumulate(np.where(wanted, np.arange(points.size), -1))
    return points[np.where(last < 0, int(np.argmax(wanted)), last)]


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
    from ...host import windows

    filled, finite = fill_gaps(series)
    points = read_only(filled)
    mean, *_ = windows.statistics(points, points, length)
    _, *others = windows.statistics(points, points, length, True)
    return settle_statistics(mean, *others, whole_windows(finite, length))


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
    largest = np.maximum(np.abs(low), np.abs(high))
    constant = finite & (high - low <= np.maximum(CONSTANT * largest, SMALLEST_RANGE))
    return WindowStatistics(
        np.where(finite, mean, 0.0),
        np.where(finite & ~constant, deviation, 0.0),
        constant,
        finite,
    )


class SearchLine(NamedTuple):
    """A line as the search of a join sees it: no point is larger than 1.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Finite points. Those of a window that is not hidden are its own, less an offset, times a
        power of two, each rounded once.
    hidden : ndarray of shape (n_windows,), bool
        Windows that the line does not hold as they are; a join measures them one by one.
    unit : float
        What distances are times as large, where windows are compared as they are; else 1.
    frame : (float, float) or None
        Offset and power of two of all points; None where they have no common one.
    """

    points: np.ndarray
    hidden: np.ndarray
    unit: float
    frame: tuple[float, float] | None

    def moments(
        self, given: Sequence[Any], compute: Callable[[Any], Sequence[Any]]
    ) -> tuple[Any, Any, Any, Any]:
        """Mean, deviation, largest magnitude and error of the mean of all windows of this line.

        Parameters
        ----------
        given : sequence of four arrays of shape (n_windows,)
            Of the line as it was given: means from the first points on, deviations, least and
            largest points.
        compute : callable
            Makes that of any line.

        Returns
        -------
        tuple of four arrays
            A mean sums length differences that are no larger than the range.
        """
        points, (offset, scale) = self.points, self.frame or (0.0, 1.0)
        mean, deviation, low, high = compute(points) if self.frame is None else given
        size = np.maximum(np.abs(low - offset), np.abs(high - offset)) * scale
        length = points.size - mean.size + 1
        # see "search line" in docs/developer/numerics.rst
        error = FLOAT64_UNIT * ((length + 2) * scale * (high - low) + 4 * size)
        return points[: mean.size] + mean * scale, deviation * scale, size, error


def even_line(filled: Any, ranges: Any) -> SearchLine | None:
    """Make the line on which z-normalised windows are searched, if it is as loud everywhere.

    Parameters
    ----------
    filled : array of shape (n_points,), float64
        From `fill_gaps`, in the memory of the engine.
    ranges : array of shape (n_windows,), float64
        Of each window; infinite for those that are constant or not finite.

    Returns
    -------
    SearchLine or None
        None where `line_of_pieces` is needed.
    """
    low, high = float(filled.min()), float(filled.max())
    if high - low > EVEN * float(ranges.min()):
        return None
    offset, scale = map(float, _center(np.float64(low), np.float64(high)))
    return SearchLine((filled - offset) * scale, ranges < 0, 1.0, (offset, scale))


def line_of_pieces(filled: np.ndarray, ranges: np.ndarray, length: int) -> SearchLine:
    """Make the line on which z-normalised windows are searched, piece by piece.

    A search sums along a line: its errors are those of the loudest stretch. So a line that is much
    louder in one place than in another is cut into pieces, each centred and scaled for itself,
    which changes no z-normalised window. Windows across a cut are hidden.

    Parameters
    ----------
    filled : ndarray of shape (n_points,), float64
        From `fill_gaps`.
    ranges : ndarray of shape (n_windows,), float64
        Of each window; infinite for those that are constant or not finite.
    length : int
        Points of a window.

    Returns
    -------
    SearchLine
        Of each window that is not hidden the range is at least 2^-31.
    """
    from ...host import windows

    begins = windows.cut(read_only(filled), ranges, length, EVEN)
    first = np.flatnonzero(begins)
    sizes = np.diff(first, append=filled.size)
    offset, scale = _center(np.minimum.reduceat(filled, first), np.maximum.reduceat(filled, first))
    points = (filled - np.repeat(offset, sizes)) * np.repeat(scale, sizes)
    cuts = np.cumsum(begins)
    return SearchLine(points, cuts[: ranges.size] != cuts[length - 1 :], 1.0, None)


def _center(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offset, if it dwarfs the spread, and power of two that bring values to 1 at most."""
    middle = low / 2 + high / 2
    offset = np.where(np.abs(middle) > high / 2 - low / 2, middle, 0.0)
    return offset, _power_for(np.maximum(np.abs(low - offset), np.abs(high - offset)))


def _power_for(largest: np.ndarray) -> np.ndarray:
    """The power of two that brings values to 1 at most."""
    return np.ldexp(1.0, -np.maximum(np.frexp(largest)[1], -1000))


class Frame(NamedTuple):
    """What windows that are compared as they are have in common.

    Attributes
    ----------
    offset : float
        What is taken off all points.
    largest : float
        Points farther from the offset are left out.
    """

    offset: float
    largest: float


def common_frame(
    lines: Sequence[np.ndarray], extents: Sequence[Callable[[], tuple[np.ndarray, np.ndarray]]]
) -> Frame:
    """Choose the frame of lines whose windows are compared as they are.

    Windows of no more than a few values, such as those that stand for missing ones, would bury all
    others under their rounding errors: where fewer are that loud than are that quiet, they are
    left out.

    Parameters
    ----------
    lines : sequence of ndarray of shape (n_points,), float64
        From `fill_gaps`.
    extents : sequence of callable
        Return the least and largest points of all windows of a line, if they are needed.
    """
    some = np.concatenate([line[:: max(1, line.size // SAMPLE)] for line in lines])
    middle = float(np.median(some))
    typical = float(np.median(np.abs(some - middle)))
    offset = middle if abs(middle) > 4 * typical else 0.0
    low = min(float(line.min()) for line in lines)
    high = max(float(line.max()) for line in lines)
    largest = max(abs(low - offset), abs(high - offset))
    if largest <= 2.0**QUIET * typical:
        return Frame(offset, largest)
    sizes = np.concatenate(
        [np.maximum(np.abs(low - offset), np.abs(high - offset)) for low, high in
         (extent() for extent in extents)]
    )  # fmt: skip
    exponents = np.frexp(sizes[sizes > 0])[1]
    if exponents.size == 0:
        return Frame(offset, largest)
    base = int(exponents.min())
    counts = np.bincount(exponents - base)
    upto = np.cumsum(counts)
    quiet = np.concatenate([np.zeros(QUIET + 1, np.int64), upto])[: counts.size]
    unserved = np.where(counts > 0, counts.sum() - upto + quiet, np.iinfo(np.int64).max)
    chosen = counts.size - 1 - int(np.argmin(unserved[::-1]))
    return Frame(offset, min(largest, float(np.ldexp(1.0, base + chosen))))


def line_as_it_is(filled: np.ndarray, frame: Frame, length: int) -> SearchLine:
    """Make the line on which windows are searched that are compared as they are."""
    points = filled - frame.offset
    inside = np.abs(points) <= frame.largest
    hidden = ~whole_windows(inside, length)
    scale = float(_power_for(np.float64(frame.largest)))
    if inside.all():
        return SearchLine(points * scale, hidden, scale, (frame.offset, scale))
    return SearchLine(_repeat_last(points, inside) * scale, hidden, scale, None)


class Kinds(NamedTuple):
    """What the windows of a line are.

    Attributes
    ----------
    constant, finite : ndarray of shape (n_windows,), bool
        As in `WindowStatistics`; none is constant where windows are compared as they are.
    hidden : ndarray of shape (n_windows,), bool, or None
        As in `SearchLine`; None is no window.
    """

    constant: np.ndarray
    finite: np.ndarray
    hidden: np.ndarray | None = None

    @property
    def usual(self) -> np.ndarray:
        """Where a window is finite and not constant."""
        return self.finite & ~self.constant


@dataclass(frozen=True, eq=False)
class WindowKinds(Reduction):
    """Which windows of a line are constant, which are finite, and which a join does not search.

    Parameters
    ----------
    series : Pool
        The line.
    length : int
        Points of a window.
    normalize : bool, default True
        Whether windows are z-normalised.
    joined : Pool or None, default None
        The line that it is joined with, to know which windows that join does not search.
    """

    series: Pool
    length: int
    normalize: bool = True
    joined: Pool | None = None
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
        """The lines."""
        return name_lines(
            self.series, *([] if self.joined in (None, self.series) else [self.joined])
        )

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

    def verify(self, answer: Kinds, sample: Sample) -> Iterator[Check]:
        """Look at the points of some windows."""
        from ...host import plain

        window = np.empty(self.length)
        for place in sample(answer.finite.size, 256):
            kind = plain.standardize(self.series.points, place, self.length, True, True, window)
            finite = kind != plain.UNKNOWN
            found, expected = bool(answer.finite[place]), finite
            yield Check(f"whether window {place} is finite", found, expected, found == expected)
            if finite and self.normalize:
                found, expected = bool(answer.constant[place]), kind == plain.CONSTANT
                item = f"whether window {place} is constant"
                yield Check(item, found, expected, found == expected)


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

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some distances."""
        for place in sample(answer.size):
            row, window = divmod(place, answer.shape[1])
            start, there = int(self.positions[row]), np.array([window])
            (expected,) = plain_profile(
                self.queries, start, self.series, self.length, self.normalize, there
            )
            item = f"the distance of windows {start} and {window}"
            yield check_value(item, answer[row, window], expected)


def plain_profile(
    a: Pool,
    start: int,
    b: Pool,
    length: int,
    normalize: bool,
    windows: np.ndarray | None = None,
) -> np.ndarray:
    """Distances of a window of a line to all windows of a line, or to some, by plain code."""
    from ...host import plain

    windows = np.arange(b.n_windows(length)) if windows is None else windows
    return plain.profile(a.points, start, b.points, windows, length, normalize, True)
