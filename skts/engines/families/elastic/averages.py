"""Averages under warping: sums of the points that best paths match to each point of an average."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...core.verify import Check, Sample, check_value
from .dtw import DTWReduction
from .warping import PLAIN, Warping, plain_distance

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
    of the series, a cell of the grid at a time; then cells in their order.

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
        Options of the distance; whole series are matched.
    rows_per_cell : int, default 0
        Series of a cell of the grid, for parts of other work; 0 takes it from the shapes.
    """

    series: Series
    averages: Series
    labels: np.ndarray
    weights: np.ndarray
    warping: Warping = PLAIN
    rows_per_cell: int = 0
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
        for place in sample(len(self.series)):
            label = int(self.labels[place])
            expected = plain_distance(self.averages, label, self.series, place, self.warping)
            found = float(self.warping.distance(answer.costs[place]))
            yield check_value(f"the distance of {place} and its average", found, expected)
        least = np.bincount(self.labels, self.weights, len(self.averages))[:, np.newaxis]
        enough = answer.weights >= least * (1 - 1e-9)
        enough |= np.arange(self.averages.n_timepoints) >= self.averages.lengths[:, np.newaxis]
        few = np.argwhere(~enough).tolist()
        yield Check("points of averages that some series do not match", few, [], not few)
