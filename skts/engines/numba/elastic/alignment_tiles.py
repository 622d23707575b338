"""Tiles of averages under warping on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...families.elastic.averages import AlignmentSums, MatchedSums
from ...families.elastic.distances import ShapeDTW, Stepped
from ...families.elastic.subgradients import MovedAverage, SubgradientSteps
from ...families.elastic.warping import lacks_distance
from . import alignments, descriptors, subgradients, uneven_alignments, warping_path
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
        warping = reduction.warping
        try:
            cell_of(warping.between_descriptors if isinstance(warping, ShapeDTW) else warping)
        except LookupError:
            return lacks_distance("numba", reduction.warping)
        return reduction.lacks_path

    def alignment_sums_bytes(
        self, reduction: AlignmentSums, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for some series: paths, the sums of their cells, and pairs side by side."""
        n, m = (side.n_timepoints for side in reduction.sides)
        sums = reduction.sum_bytes * -(-rows // reduction.cell[0])
        if isinstance(reduction.warping, ShapeDTW):
            shape = n, m, reduction.series.n_channels, reduction.warping, rows
            held = descriptors.distances_bytes(*shape, most_steps(self.budget()))
            return 0, held + sums + rows * (8 * n + 8 * reduction.series.n_channels * n + 64)
        copies = 16 * (reduction.series.n_channels * m + n)
        described = reduction.described_bytes(rows) if reduction.one_by_one else 0
        held, side_by_side = warping_path.path_bytes(n, m) + copies, _group_bytes(reduction)
        if side_by_side <= most_steps(self.budget()):
            held = side_by_side
        # paths between derivatives stand beside those of their series
        paths = rows * (8 * n * (2 if reduction.derived else 1) + 64)
        return 0, paths + sums + held + described

    def alignment_sums(
        self, reduction: AlignmentSums, tile: Tile, cancel: np.ndarray
    ) -> MatchedSums:
        """Sums of the cells of a tile, and costs of its series."""
        work = reduction.part(tile)
        if isinstance(warping := work.warping, ShapeDTW):
            sides = work.averages, work.series, work.own_pairs
            spans = descriptors.spans_of(*sides, warping, cancel, most_steps(self.budget()))
            return work.summed(*work.along_descriptors(spans), cancel)
        if _group_bytes(reduction) > most_steps(self.budget()):
            return work.summed(*alignments.trace_one_by_one(work, cancel), cancel)
        if isinstance(reduction.warping, Stepped):
            first, stop, costs = uneven_alignments.trace(work, cancel)
        else:
            averages, series, warping = work.described
            first, stop, costs = alignments.trace(averages, series, work.labels, warping, cancel)
        first, stop = work.between_series(first, stop)
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


def _group_bytes(reduction: AlignmentSums) -> int:
    """Bytes of the pairs that lie side by side."""
    n, m = (side.n_timepoints for side in reduction.sides)
    n_channels = reduction.series.n_channels
    if isinstance(reduction.warping, Stepped):
        return uneven_alignments.group_bytes(n, m, n_channels + 1)
    return alignments.group_bytes(n, m, n_channels)
