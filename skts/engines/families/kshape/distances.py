"""Shape-based distances of all pairs, and the nearest centre of each series."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT, TIE, UNCLEAR
from ...core.reduction import Reduction, Tile
from ...core.verify import Check, Sample, check_value
from .shapes import Shapes

__all__ = ["Assignment", "SBDAssign", "SBDMatrix", "SBDReduction", "ShapeDistances"]

#: An NCC that comes from transforms is off by at most so many units for each pass of radix 2.
#: see "transforms" in docs/developer/numerics.rst
UNITS = 16
#: Points of a block of padded series, which decides the rows of a grid cell.
CELL_POINTS = 2**15


class ShapeDistances(NamedTuple):
    """Distances and shifts between two sets.

    Attributes
    ----------
    distances : ndarray of shape (n_series, n_centers), float64
        SBD.
    shifts : ndarray of shape (n_series, n_centers), int32
        How far a series moves to the right to match a centre.
    """

    distances: np.ndarray
    shifts: np.ndarray

    def assign(self, doubts: np.ndarray | float = 0.0) -> Assignment:
        """Choose the centre of each series: of those within `TIE` of the nearest the first.

        Where errors of the distances, up to `doubts` for each centre, could change the choice, the
        shift is `UNCLEAR`.
        """
        low, high = self.distances - doubts, self.distances + doubts
        possible = low <= high.min(axis=1, keepdims=True) + TIE
        labels = possible.argmax(axis=1).astype(np.int32)
        rows = np.arange(len(labels))
        clear = high[rows, labels] <= low.min(axis=1) + TIE
        shifts = np.where(clear, self.shifts[rows, labels], np.int32(UNCLEAR))
        return Assignment(labels, shifts, self.distances[rows, labels])


class Assignment(NamedTuple):
    """The centre of each series.

    Attributes
    ----------
    labels : ndarray of shape (n_series,), int32
        Which centre.
    shifts : ndarray of shape (n_series,), int32
        How far the series moves to the right to match it.
    distances : ndarray of shape (n_series,), float64
        SBD to it.
    """

    labels: np.ndarray
    shifts: np.ndarray
    distances: np.ndarray

    @property
    def clear(self) -> bool:
        """Whether errors of the centres change no label and no shift."""
        return not np.any(self.shifts == UNCLEAR)


class SBDReduction(Reduction):
    """Work whose steps are correlations of series with centres at all shifts."""

    series: Shapes
    centers: Shapes

    @property
    def shape(self) -> tuple[int, int]:
        """Series and centres."""
        return len(self.series), len(self.centers)

    @cached_property
    def step_work(self) -> int:
        """Operations of a product and a transform."""
        n = 2 * self.series.n_timepoints
        return n * (self.series.n_channels + max(1, n.bit_length()))

    def work(self, tile: Tile) -> int:
        """Steps between two checks for Ctrl-C: those of one cell."""
        return min(tile.shape[0], self.cell_rows) * tile.shape[1] * self.step_work

    @cached_property
    def rounding(self) -> float:
        """How far an NCC that comes from transforms is at most from the certified one.

        Two series may share a transform, and the smaller of them gets the errors of the larger.
        """
        passes = np.log2(2 * self.series.n_timepoints) + np.log2(2 * self.series.n_channels)
        return UNITS * FLOAT64_UNIT * float(passes) * self.series.spread

    @cached_property
    def doubts(self) -> np.ndarray:
        """How far the NCC with each centre is at most from the certified one; (n_centers,)."""
        doubts = np.full(len(self.centers), self.rounding)
        return doubts if self.centers.errors is None else doubts + self.centers.errors

    def plain_distances(self, row: int, col: int) -> tuple[np.ndarray, float]:
        """1 - NCC of a pair at all shifts, by dot products, and how far an engine's may be off.

        Shift s is at place s + n_timepoints - 1.
        """
        scale = self.series.norms[row] * self.centers.norms[col]
        series, center = self.series.values[row], self.centers.values[col]
        sums = np.zeros(2 * self.series.n_timepoints - 1)
        for own, there in zip(series, center, strict=True):
            sums += np.correlate(there, own, "full")
        # dot products have a rounding for each point
        # see "gamma" in docs/developer/numerics.rst
        error = 2 * float(self.doubts[col]) + FLOAT64_UNIT * (2 * series.size + 8)
        return (1 - sums / scale if scale > 0 else np.ones(sums.size)), error

    @cached_property
    def cell_rows(self) -> int:
        """Series of a grid cell, an even number."""
        fitting = CELL_POINTS // (2 * self.series.n_timepoints)
        return 1 << min(8, max(1, fitting.bit_length() - 1))


@dataclass(frozen=True, eq=False)
class SBDMatrix(SBDReduction):
    """Every distance and shift between two sets of series.

    Parameters
    ----------
    series, centers : Shapes
        Two sets of one width; `shifts` move those of `series`.
    """

    series: Shapes
    centers: Shapes
    method: ClassVar[str] = "sbd_matrix"

    @property
    def cell(self) -> tuple[int, int]:
        """A block of series and one centre."""
        return self.cell_rows, 1

    def result_bytes(self) -> int:
        """Size of both matrices."""
        return 12 * len(self.series) * len(self.centers)

    def part(self, tile: Tile) -> SBDMatrix:
        """Return some series against some centres."""
        return SBDMatrix(self.series.take(tile.rows), self.centers.take(tile.cols))

    def start(self) -> ShapeDistances:
        """Return the empty matrices."""
        return ShapeDistances(np.empty(self.shape), np.empty(self.shape, np.int32))

    def merge(self, total: ShapeDistances, tile: Tile, result: ShapeDistances) -> None:
        """Write a block."""
        total.distances[tile.rows, tile.cols] = result.distances
        total.shifts[tile.rows, tile.cols] = result.shifts

    def verify(self, answer: ShapeDistances, sample: Sample) -> Iterator[Check]:
        """Compare some distances and shifts."""
        for place in sample(answer.distances.size):
            i, j = divmod(place, len(self.centers))
            pair = answer.distances[i, j], answer.shifts[i, j]
            yield from check_shape(self, i, j, *pair)


@dataclass(frozen=True, eq=False)
class SBDAssign(SBDReduction):
    """The nearest centre of each series.

    Parameters
    ----------
    series, centers : Shapes
        Two sets of one width.
    """

    series: Shapes
    centers: Shapes
    method: ClassVar[str] = "sbd_assign"

    @property
    def cell(self) -> tuple[int, int]:
        """A block of series and all centres, among which ties are settled."""
        return self.cell_rows, len(self.centers)

    def result_bytes(self) -> int:
        """Size of labels, shifts and distances."""
        return 16 * len(self.series)

    def part(self, tile: Tile) -> SBDAssign:
        """Return some series."""
        return SBDAssign(self.series.take(tile.rows), self.centers)

    def start(self) -> dict[int, Assignment]:
        """Return no parts."""
        return {}

    def merge(self, total: dict[int, Assignment], tile: Tile, result: Assignment) -> None:
        """Keep a part by its first row."""
        total[tile.row] = result

    def finish(self, total: dict[int, Assignment], run: Callable[[Reduction], Any]) -> Assignment:
        """Join the parts; a single one is handed out as it is, so that engines know it again."""
        parts = [total[row] for row in sorted(total)]
        if len(parts) == 1:
            return parts[0]
        return Assignment(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def verify(self, answer: Assignment, sample: Sample) -> Iterator[Check]:
        """Compare some distances and shifts, and look at the other centres."""
        for row in sample(len(self.series)):
            label = int(answer.labels[row])
            yield from check_shape(self, row, label, answer.distances[row], answer.shifts[row])
            for other in sample(len(self.centers)):
                distances, error = self.plain_distances(row, other)
                least, found = max(0.0, float(distances.min())), float(answer.distances[row])
                item = f"the centre of series {row}, which is not {other}"
                # of centres within TIE of the nearest the first is chosen
                nearer = least < found - TIE - 2 * error
                yield Check(item, (found, label), (least, other), not nearer)


def check_shape(
    work: SBDReduction, row: int, col: int, distance: float, shift: int
) -> Iterator[Check]:
    """Compare distance and shift of a pair; one that is `UNCLEAR` says nothing."""
    distances, error = work.plain_distances(row, col)
    item, least = f"the distance of series {row} and centre {col}", float(distances.min())
    yield check_value(item, distance, max(0.0, least), error)
    if shift != UNCLEAR:
        n = work.series.n_timepoints
        ties = bool(distances[shift + n - 1] <= least + TIE + 2 * error)
        expected = int(np.argmin(distances)) - n + 1
        yield Check(f"the shift of series {row} and centre {col}", int(shift), expected, ties)
