"""Averages under warping: sums of the points that best paths match to each point of an average."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series, read_only
from ...core.verify import Check, Sample, check_value
from .descriptors import Spans, derivative, write_span
from .distances import Stepped, prepared
from .dtw import DTWReduction
from .warping import PLAIN, Warping, plain_distance, settled

__all__ = ["AlignmentSums", "MatchedSums", "cells_of", "rows_of_cells"]

#: Series of a cell of the grid at least: lanes of the CPU kernel, and work for a block of a GPU.
LEAST_ROWS = 64
#: Cells of the grid at most, and the bytes that the sums of all of them take.
MOST_CELLS, MOST_BYTES = 256, 2**26
#: Cells of the grid where the sums of one take more than that.
FEWEST_CELLS = 16


def rows_of_cells(n_series: int, sum_bytes: int) -> int:
    """Series of a cell of the grid, so many that the sums of all cells stay small."""
    n_cells = min(MOST_CELLS, max(FEWEST_CELLS, MOST_BYTES // sum_bytes))
    return max(LEAST_ROWS, -(-n_series // n_cells))


def cells_of(tile: Tile, rows: int) -> slice:
    """The cells of the grid, of so many series each, that make up a tile."""
    return slice(tile.row // rows, -(-tile.row_stop // rows))


class MatchedSums(NamedTuple):
    """Sums of the points that averages are matched with.

    Attributes
    ----------
    values : ndarray of shape (n_averages, n_channels, n_timepoints)
        Sum of the points matched with each point of each average, by weight.
    weights : ndarray of shape (n_averages, n_timepoints)
        Sum of their weights; 0 beyond the end of an average, and for one that no series belongs to.
    costs : ndarray of shape (n_series,)
        Certified accumulated cost of each series and its average.
    """

    values: np.ndarray
    weights: np.ndarray
    costs: np.ndarray


@dataclass(frozen=True, eq=False)
class AlignmentSums(DTWReduction):
    """Sums of the points of series along the best paths to their averages.

    The path of a series is that of `DTWPath` with the average as `x`: of equal steps back the
    diagonal, then the point before in the average. The points that a path matches with one point of
    the average follow each other: they are added in order of time, and sums of series in the order
    of the series, a cell of the grid at a time; then cells in their order. Points that a path
    leaves out are in no sum.

    Parameters
    ----------
    series : Series
        All series.
    averages : Series
        Averages, of any lengths.
    labels : ndarray of shape (n_series,), int64
        The average that each series belongs to.
    weights : ndarray of shape (n_series,), float64
        Weight of each series.
    warping : Warping
        Options of the distance, as `prepared` returns them; whole series are matched.
    rows_per_cell : int, default 0
        Series of a cell of the grid, for parts of other work; 0 takes it from the shapes.
    derived : bool, default False
        Whether paths are those of the derivatives; first points are matched, too, and last ones.
    """

    series: Series
    averages: Series
    labels: np.ndarray
    weights: np.ndarray
    warping: Warping = PLAIN
    rows_per_cell: int = 0
    derived: bool = False
    method: ClassVar[str] = "alignment_sums"

    @property
    def shape(self) -> tuple[int, int]:
        """All series, one column."""
        return len(self.series), 1

    @property
    def sides(self) -> tuple[Series, Series]:
        """The averages and the series."""
        return self.averages, self.series

    @property
    def sum_bytes(self) -> int:
        """Bytes of the sums of a cell of the grid."""
        n_averages, n_channels, n_timepoints = self.averages.shape
        return 8 * n_averages * (n_channels + 1) * n_timepoints

    @property
    def cell(self) -> tuple[int, int]:
        """Enough series that the sums of all cells stay small."""
        if self.rows_per_cell:
            return self.rows_per_cell, 1
        return rows_of_cells(len(self.series), self.sum_bytes), 1

    @property
    def one_by_one(self) -> bool:
        """Whether a path needs more than the kernels for many pairs of plain distances do."""
        return self.derived or isinstance(self.warping, Stepped)

    @property
    def lacks_path(self) -> str | None:
        """Say that a series has no path of its own, but each of its channels: see `by_channel`."""
        if not self.warping.independent or self.series.n_channels == 1:
            return None
        return (
            f"There is no path of several channels under metric={self.warping.metric!r}: each "
            "channel has its own."
        )

    @cached_property
    def described(self) -> tuple[Series, Series, Warping]:
        """Averages and series as paths are found between them, and the distance."""
        averages, series = self.averages, self.series
        if self.derived:
            averages, series = derivative(averages), derivative(series)
        return prepared(averages, series, self.warping)

    def described_bytes(self, rows: int) -> int:
        """Bytes that `described` takes for so many series."""
        n_averages, n_channels, n = self.averages.shape
        return 8 * (n_channels + 1) * (n_averages * n + rows * self.series.n_timepoints)

    def write_matched(
        self, row: int, path: np.ndarray, first: np.ndarray, stop: np.ndarray
    ) -> None:
        """Write which points of a series a path matches with each point of its average.

        Parameters
        ----------
        row : int
            Number of the series.
        path : ndarray of shape (n_steps, 2), int64
            A best path between what is `described`.
        first, stop : ndarray of shape (n_timepoints,), int32
            Zeros, that receive the first point of the series and the one after the last.
        """
        write_span(self._matched(row, path), first, stop)

    @property
    def own_pairs(self) -> np.ndarray:
        """Each series with its average: pairs of `averages` and `series`."""
        return np.column_stack([self.labels, np.arange(len(self.series))])

    def along_descriptors(
        self, found: Iterable[Spans]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Turn the paths between descriptors of `own_pairs` into those from averages to series.

        Parameters
        ----------
        found : iterable of Spans
            The paths, in the order in which two series are compared, whichever is the average.

        Returns
        -------
        first, stop : ndarray of shape (n_series, n_timepoints), int32
            The first point of the series that each point of the average is matched with, and the
            one after the last.
        costs : ndarray of shape (n_series,)
            Accumulated costs of the points along the paths.
        """
        from ...host.paths import costs_along

        first, stop = np.zeros((2, len(self.series), self.averages.n_timepoints), np.int32)
        of_average, of_series = self.averages.lengths[self.labels], self.series.lengths
        for spans in found:
            for place, row in enumerate(range(len(self.series))[spans.part]):
                n, m = of_average[row], of_series[row]
                a, b = spans.first[place], spans.stop[place]
                if spans.swapped[place]:
                    # both rise: the points of the series whose spans hold a point of the average
                    points = np.arange(n)
                    a, b = (np.searchsorted(each[:m], points, side="right") for each in (b, a))
                first[row, :n], stop[row, :n] = a[:n], b[:n]
        own = self.averages.take(self.labels)
        costs = costs_along(own, self.series, first, stop, squared=self.warping.squared)
        return first, stop, costs

    def between_series(self, first: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Turn the paths of all series between what is `described` into those of the series.

        Parameters
        ----------
        first, stop : ndarray of shape (n_series, n_timepoints of what is described), int32
            The first point of the series that each point of the average is matched with, and the
            one after the last.

        Returns
        -------
        first, stop : ndarray of shape (n_series, n_timepoints), int32
            The same of the points of averages and series.
        """
        if not self.derived:
            self._leave_out(first, stop)
            return first, stop
        # derivatives lack the first point and the last one
        found = np.zeros((2, len(self.series), self.averages.n_timepoints), np.int32)
        for inner, outer in zip((first, stop), found, strict=True):
            outer[:, 1:-1] = np.where(stop > 0, inner + 1, 0)
        rows, ends = np.arange(len(self.series)), self.averages.lengths[self.labels] - 1
        found[1, :, 0] = 1
        found[0, rows, ends], found[1, rows, ends] = self.series.lengths - 1, self.series.lengths
        return found[0], found[1]

    def _leave_out(self, first: np.ndarray, stop: np.ndarray) -> None:
        """Drop from the paths of all series the points that lie on them but do not match.

        Both are as `write_matched` writes them, and changed in place.
        """
        if type(self.warping).matched is Warping.matched:
            return
        for row, (begins, ends) in enumerate(zip(first, stop, strict=True)):
            rows = np.flatnonzero(ends)
            path = np.column_stack([rows, begins[rows]])
            begins[:], ends[:] = 0, 0
            self.write_matched(row, path, begins, ends)

    def _matched(self, row: int, path: np.ndarray) -> np.ndarray:
        """Of a path between what is `described`, the points of average and series that match."""
        label = self.labels[row]
        n, m = self.averages.lengths[label], self.series.lengths[row]
        if self.derived:
            return np.concatenate([[[0, 0]], path + 1, [[n - 1, m - 1]]])
        if not self.warping.borders:
            return path
        x, y = self.averages.values[label, :, :n], self.series.values[row, :, :m]
        return self.warping.matched(path, x, y)

    def summed(
        self, first: np.ndarray, stop: np.ndarray, costs: np.ndarray, cancel: np.ndarray
    ) -> MatchedSums:
        """Add what the paths of all its series match.

        Parameters
        ----------
        first, stop : ndarray of shape (n_series, n_timepoints of the averages), int32
            The first point of the series that each point of the average is matched with, and the
            one after the last; equal where there is none.
        costs : ndarray of shape (n_series,)
            Certified accumulated costs.
        cancel : ndarray of shape (1,), uint8
            1 if paths are missing.

        Returns
        -------
        MatchedSums
            The sums of each cell of the grid.
        """
        from ...host.matched import add_matched

        found = self.start()
        if not cancel[0]:
            add_matched(
                *map(read_only, (self.series.values, self.labels, self.weights)),
                read_only(self.averages.lengths), first, stop,
                self.cell[0], found.values, found.weights,
            )  # fmt: skip
        return found._replace(costs=costs)

    def distances(self, costs: np.ndarray) -> np.ndarray:
        """Turn the accumulated costs of all series into distances to their averages."""
        if not self.warping.settles:
            return self.warping.distance(costs)
        return settled(self.warping, costs, self.averages.take(self.labels), self.series)

    def cells(self, tile: Tile) -> slice:
        """The cells of the grid that make up a tile."""
        return cells_of(tile, self.cell[0])

    def result_bytes(self) -> int:
        """Size of the sums of all cells."""
        n = len(self.series)
        return self.sum_bytes * -(-n // self.cell[0]) + 8 * n

    def part(self, tile: Tile) -> AlignmentSums:
        """Return some of the series with all averages, in cells as large as those of the whole."""
        return replace(
            self,
            series=self.series.take(tile.rows),
            labels=self.labels[tile.rows],
            weights=self.weights[tile.rows],
            rows_per_cell=self.cell[0],
        )

    def start(self) -> MatchedSums:
        """Return sums of all cells, to be filled."""
        n_averages, n_channels, n_timepoints = self.averages.shape
        n_cells = self.cells(Tile(0, len(self.series), 0, 1)).stop
        return MatchedSums(
            np.zeros((n_cells, n_averages, n_channels, n_timepoints)),
            np.zeros((n_cells, n_averages, n_timepoints)),
            np.empty(len(self.series)),
        )

    def merge(self, total: MatchedSums, tile: Tile, result: MatchedSums) -> None:
        """Write the sums of some cells."""
        cells = self.cells(tile)
        total.values[cells] = result.values
        total.weights[cells] = result.weights
        total.costs[tile.rows] = result.costs

    def finish(self, total: MatchedSums, run: Callable[[Reduction], Any]) -> MatchedSums:
        """Add the cells, in their order."""
        values, weights = np.zeros(total.values.shape[1:]), np.zeros(total.weights.shape[1:])
        for cell_values, cell_weights in zip(total.values, total.weights, strict=True):
            values += cell_values
            weights += cell_weights
        return MatchedSums(values, weights, total.costs)

    def verify(self, answer: MatchedSums, sample: Sample) -> Iterator[Check]:
        """Compare some costs, and the sums of weights with the least that paths allow."""
        averages, series, warping = self.described
        distances = self.distances(answer.costs)
        for place in sample(len(self.series)):
            label = int(self.labels[place])
            expected = plain_distance(averages, label, series, place, warping)
            found = float(distances[place])
            yield check_value(f"the distance of {place} and its average", found, expected)
        if self.warping.borders:
            return
        least = np.bincount(self.labels, self.weights, len(self.averages))[:, np.newaxis]
        enough = answer.weights >= least * (1 - 1e-9)
        enough |= np.arange(self.averages.n_timepoints) >= self.averages.lengths[:, np.newaxis]
        few = np.argwhere(~enough).tolist()
        yield Check("points of averages that some series do not match", few, [], not few)
