"""Tiles of averages under warping on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...families.elastic.averages import AlignmentSums, MatchedSums
from ...families.elastic.distances import Stepped
from ...families.elastic.subgradients import MovedAverage, SubgradientSteps
from ...families.elastic.warping import lacks_distance
from . import alignments, subgradients, uneven_alignments, warping_path
from .cells import cell_of

__all__ = ["AlignmentTiles", "most_steps"]

#: Bytes of pairs that lie side by side at most: longer ones are followed one by one.
MOST_STEPS = 2**27


def most_steps(budget: int) -> int:
    """Bytes that pairs may take side by side."""
    return min(MOST_STEPS, budget // 4)


class AlignmentTiles:
    """Methods of the CPU engine for averages under warping."""

    budget: Callable[[], int]

    def alignment_sums_lacks(self, reduction: AlignmentSums) -> str | None:
        """Say whether there is no policy for a distance."""
        try:
            cell_of(reduction.warping)
        except LookupError:
            return lacks_distance("numba", reduction.warping)
        return reduction.lacks_path

    def alignment_sums_bytes(
        self, reduction: AlignmentSums, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for some series: paths, the sums of their cells, and pairs side by side."""
        n, m = (side.n_timepoints for side in reduction.sides)
        sums = reduction.sum_bytes * -(-rows // reduction.cell[0])
        copies = 16 * (reduction.series.n_channels * m + n)
        side_by_side = alignments.group_bytes(n, m, reduction.series.n_channels)
        if reduction.one_by_one:
            copies += reduction.described_bytes(rows)
            side_by_side = uneven_alignments.group_bytes(n, m, reduction.series.n_channels + 1)
        held = warping_path.path_bytes(n, m) + copies
        if side_by_side <= most_steps(self.budget()):
            held = side_by_side + (reduction.described_bytes(rows) if reduction.one_by_one else 0)
        return 0, rows * (8 * n + 64) + sums + held

    def alignment_sums(
        self, reduction: AlignmentSums, tile: Tile, cancel: np.ndarray
    ) -> MatchedSums:
        """Sums of the cells of a tile, and costs of its series."""
        work, averages = reduction.part(tile), reduction.averages
        series = work.series
        held = alignments.group_bytes(averages.n_timepoints, series.n_timepoints, series.n_channels)
        stepped = isinstance(reduction.warping, Stepped)
        if stepped:
            held = uneven_alignments.group_bytes(
                averages.n_timepoints, series.n_timepoints, series.n_channels + 1
            )
        if reduction.derived or held > most_steps(self.budget()):
            first, stop, costs = alignments.trace_one_by_one(work, cancel)
        elif stepped:
            first, stop, costs = uneven_alignments.trace(work, cancel)
            work.leave_out(first, stop)
        else:
            first, stop, costs = alignments.trace(
                averages, series, work.labels, reduction.warping, cancel
            )
        return work.summed(first, stop, costs, cancel)

    def subgradient_steps_bytes(
        self, reduction: SubgradientSteps, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a pair."""
        n, m = (side.n_timepoints for side in reduction.sides)
        return 0, subgradients.step_bytes(n, m, reduction.series.n_channels) + 8 * len(
            reduction.series
        )

    def subgradient_steps(
        self, reduction: SubgradientSteps, tile: Tile, cancel: np.ndarray
    ) -> MovedAverage:
        """The average after all steps."""
        return subgradients.follow(reduction, cancel)
