"""Windows of a line one by one: what kind each is of, and certified distances between them.

A certified distance comes from the points of the two windows alone, counted from the first of each,
in two passes: nothing else on the line, and nothing else in the call, changes a bit of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.budget import host_budget
from ...core.reduction import Reduction, Tile
from ...core.verify import Check, Sample, check_value
from .concatenated import ConcatenatedSeries, name_lines

__all__ = ["Kinds", "WindowDistances", "WindowKinds", "distances_at_a_time", "plain_profile"]

#: Distances that are measured and merged at a time, at most and at least, and the bytes of the
#: budget for each: they are copied, put in order, and chosen from.
MOST_AT_A_TIME, LEAST_AT_A_TIME, BYTES_OF_EACH = 2**22, 2**17, 256


def distances_at_a_time() -> int:
    """Distances that are measured and merged at a time: the fewer, the smaller the budget."""
    return max(LEAST_AT_A_TIME, min(MOST_AT_A_TIME, host_budget() // BYTES_OF_EACH))


class Kinds(NamedTuple):
    """The kinds of the windows of a line.

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
    def regular(self) -> np.ndarray:
        """Where a window is finite and not constant."""
        return self.finite & ~self.constant

    @property
    def unsearched(self) -> np.ndarray:
        """Where such a window is hidden from the search of a join."""
        return np.zeros_like(self.finite) if self.hidden is None else self.regular & self.hidden


@dataclass(frozen=True, eq=False)
class WindowKinds(Reduction):
    """Which windows of a line are constant, which are finite, and which a join does not search.

    Parameters
    ----------
    series : ConcatenatedSeries
        The line.
    length : int
        Points of a window.
    normalize : bool, default True
        Whether windows are z-normalised.
    joined : ConcatenatedSeries or None, default None
        The line that it is joined with, to know which windows that join does not search.
    """

    series: ConcatenatedSeries
    length: int
    normalize: bool = True
    joined: ConcatenatedSeries | None = None
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
    def undivided_input(self) -> tuple[str, int]:
        """The lines."""
        return name_lines(
            self.series, *([] if self.joined in (None, self.series) else [self.joined])
        )

    def part(self, tile: Tile) -> WindowKinds:
        """Return itself."""
        return self

    def start(self) -> list[Kinds]:
        """Return the list that receives the answer."""
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
            kind = plain.standardize(self.series.points, place, self.length, True, window)
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
    queries : ConcatenatedSeries
        The line on which the chosen windows lie.
    positions : ndarray of shape (n_chosen,), int64
        Where they start.
    series : ConcatenatedSeries
        The line whose windows they are compared with.
    length : int
        Points of a window.
    normalize : bool
        Whether windows are z-normalised.
    """

    queries: ConcatenatedSeries
    positions: np.ndarray
    series: ConcatenatedSeries
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
    def undivided_input(self) -> tuple[str, int]:
        """The lines."""
        lines = {id(line.points): line for line in (self.queries, self.series)}
        return name_lines(*lines.values())

    def part(self, tile: Tile) -> WindowDistances:
        """Return some chosen windows against a piece of the line."""
        piece = self.series.points[tile.col : tile.col_stop + self.length - 1].view()
        pool = ConcatenatedSeries(piece, np.zeros(1, np.int64), np.array([piece.size]))
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
    a: ConcatenatedSeries,
    start: int,
    b: ConcatenatedSeries,
    length: int,
    normalize: bool,
    windows: np.ndarray | None = None,
) -> np.ndarray:
    """Distances of a window of a line to all windows of a line, or to some, by plain code."""
    from ...host import plain

    windows = np.arange(b.n_windows(length)) if windows is None else windows
    return plain.profile(a.points, start, b.points, windows, length, normalize)
