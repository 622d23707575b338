"""Soft-DTW: values of pairs, and the gradient of a weighted sum of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...core.verify import Check, Sample, check_value
from .averages import cells_of, rows_of_cells
from .dtw import DTWMatrixReduction, DTWReduction
from .warping import PLAIN, Warping

__all__ = [
    "NOWHERE",
    "SoftDTWGradient",
    "SoftDTWMatrix",
    "SoftSlope",
    "check_gamma",
    "points_in_reach",
    "values_of",
]

#: The power of two of cells that no path leads to, whose fraction is 0.
NOWHERE = -(2.0**60)


#: Costs along a path over gamma at most, so that whole powers of two and their sums are exact, with
#: room for averages that a search tries: see "soft minima" in docs/developer/numerics.rst
MOST_COST = 2.0**40


def check_gamma(gamma: float, left: Series, right: Series) -> float:
    """Check that float64 tells paths apart.

    Parameters
    ----------
    gamma : float
        Smoothing.
    left, right : Series
        Two sets.

    Returns
    -------
    float
        `gamma`, of which an integer may be too long for a kernel.

    Raises
    ------
    ValueError
        If the costs of a path may exceed gamma by more than a factor of 2**40.
    """
    low, high = (
        fold(*ends) for fold, *ends in zip((min, max), left.extent, right.extent, strict=True)
    )
    steps = (left.n_timepoints + right.n_timepoints) * left.n_channels
    least = steps * (high - low) * (high - low) / MOST_COST
    if not gamma >= least:
        raise ValueError(
            f"gamma={gamma:g} is too small for points that are up to {high - low:g} apart: give at "
            f"least {least:.2g}."
        )
    return float(gamma)


def points_in_reach(series: Series, average: Series, gamma: float) -> tuple[float, float]:
    """Return the least and the largest point of averages for which engines have the same bits.

    Parameters
    ----------
    series, average : Series
        Data and the first average, which pass `check_gamma`.
    gamma : float
        Smoothing.
    """
    low, high = (
        fold(*ends) for fold, *ends in zip((min, max), series.extent, average.extent, strict=True)
    )
    steps = (series.n_timepoints + average.n_timepoints) * series.n_channels
    # see "soft minima" in docs/developer/numerics.rst
    reach = 16 * math.sqrt(gamma * MOST_COST / steps)
    return float(low) - reach, float(high) + reach


def values_of(fractions: np.ndarray, powers: np.ndarray, gamma: float) -> np.ndarray:
    """Values of soft-DTW from the last cells that engines find: fractions times powers of two."""
    values: np.ndarray = 0.0 - gamma * (powers * np.log(2.0) + np.log(fractions))
    return values


@dataclass(frozen=True, eq=False)
class SoftDTWMatrix(DTWMatrixReduction):
    """Soft-DTW of every pair of two sets of series, or of one, in float64.

    Every engine takes exponentials and logarithms by the same sequence of sums and products (see
    "soft minima" in docs/developer/numerics.rst), so that the values have the same bits.

    Parameters
    ----------
    rows, cols : Series
        The two sets; the same object twice makes a symmetric matrix, half computed.
    gamma : float
        Smoothing: how far a path may be from the best one to count, in units of costs.
    warping : Warping
        The band; costs are squared, whole series are matched.
    """

    gamma: float
    warping: Warping = PLAIN
    method: ClassVar[str] = "soft_dtw_matrix"

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some values."""
        for place in sample(answer.size):
            i, j = divmod(place, len(self.cols))
            expected = _plain_value(self.rows, i, self.cols, j, self)
            yield check_value(
                f"soft-DTW of {i} and {j}", answer[i, j], expected, _allowed(expected, self)
            )


class SoftSlope(NamedTuple):
    """The gradient of a weighted sum of soft-DTW values, and the values.

    Attributes
    ----------
    gradient : ndarray of shape (n_channels, n_timepoints)
        Derivatives by the points of the average.
    values : ndarray of shape (n_series,)
        Soft-DTW of the average and each series.
    """

    gradient: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class SoftDTWGradient(DTWReduction):
    """The gradient of the weighted sum of the soft-DTW values of some series and an average.

    Gradients of series are added in the order of the series, a cell of the grid at a time, then
    those of cells in their order.

    Parameters
    ----------
    series : Series
        All series.
    average : Series
        One series, by whose points the derivatives are taken.
    weights : ndarray of shape (n_series,), float64
        Weight of each series.
    gamma : float
        Smoothing.
    warping : Warping
        The band; costs are squared, whole series are matched.
    rows_per_cell : int, default 0
        Series of a cell of the grid, for parts of other work; 0 takes it from the shapes.
    """

    series: Series
    average: Series
    weights: np.ndarray
    gamma: float
    warping: Warping = PLAIN
    rows_per_cell: int = 0
    method: ClassVar[str] = "soft_dtw_gradient"

    @property
    def shape(self) -> tuple[int, int]:
        """All series, one column."""
        return len(self.series), 1

    @property
    def sides(self) -> tuple[Series, Series]:
        """The average and the series."""
        return self.average, self.series

    @property
    def sum_bytes(self) -> int:
        """Bytes of the gradient of a cell of the grid."""
        return 8 * self.average.n_channels * self.average.n_timepoints

    @property
    def cell(self) -> tuple[int, int]:
        """Enough series that the gradients of all cells stay small."""
        if self.rows_per_cell:
            return self.rows_per_cell, 1
        return rows_of_cells(len(self.series), self.sum_bytes), 1

    def cells(self, tile: Tile) -> slice:
        """The cells of the grid that make up a tile."""
        return cells_of(tile, self.cell[0])

    def result_bytes(self) -> int:
        """Size of the gradients of all cells."""
        return self.sum_bytes * -(-len(self.series) // self.cell[0]) + 8 * len(self.series)

    def part(self, tile: Tile) -> SoftDTWGradient:
        """Return some of the series, in cells as large as those of the whole."""
        return replace(
            self,
            series=self.series.take(tile.rows),
            weights=self.weights[tile.rows],
            rows_per_cell=self.cell[0],
        )

    def start(self) -> SoftSlope:
        """Return gradients of all cells, to be filled."""
        n_cells = self.cells(Tile(0, len(self.series), 0, 1)).stop
        return SoftSlope(np.zeros((n_cells, *self.average.shape[1:])), np.empty(len(self.series)))

    def merge(self, total: SoftSlope, tile: Tile, result: SoftSlope) -> None:
        """Write the gradients of some cells."""
        total.gradient[self.cells(tile)] = result.gradient
        total.values[tile.rows] = result.values

    def finish(self, total: SoftSlope, run: Callable[[Reduction], Any]) -> SoftSlope:
        """Add the cells, in their order."""
        gradient = np.zeros(total.gradient.shape[1:])
        for one in total.gradient:
            gradient += one
        return SoftSlope(gradient, total.values)

    def verify(self, answer: SoftSlope, sample: Sample) -> Iterator[Check]:
        """Compare some values."""
        for place in sample(len(self.series)):
            expected = _plain_value(self.average, 0, self.series, place, self)
            yield check_value(
                f"soft-DTW of {place} and the average",
                answer.values[place],
                expected,
                _allowed(expected, self),
            )


def _allowed(value: float, work: SoftDTWMatrix | SoftDTWGradient) -> float:
    """How far a value may be from that of plain code."""
    n, m = (side.n_timepoints for side in work.sides)
    # see "self-check" in docs/developer/numerics.rst
    return 1e-9 * (abs(value) + work.gamma * (n + m))


def _plain_value(
    rows: Series, i: int, cols: Series, j: int, work: SoftDTWMatrix | SoftDTWGradient
) -> float:
    """Soft-DTW of series i of one set and series j of another, by plain loops."""
    x, y = (side.values[place, :, : side.lengths[place]] for side, place in ((rows, i), (cols, j)))
    n, m = x.shape[1], y.shape[1]
    radius = int(work.warping.radius(n, m))
    before = [0.0] + [math.inf] * m
    for row in range(n):
        now = [math.inf] * (m + 1)
        for column in range(max(0, row - radius), min(m, row + radius + 1)):
            steps = before[column], before[column + 1], now[column]
            least = min(steps)
            total = sum(math.exp((least - step) / work.gamma) for step in steps if step < math.inf)
            cost = float(np.sum((x[:, row] - y[:, column]) ** 2))
            now[column + 1] = cost + least - work.gamma * math.log(total)
        before = now
    return before[m]
