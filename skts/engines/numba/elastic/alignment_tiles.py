"""Tiles of averages under warping on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...families.elastic.averages import AlignmentSums, MatchedSums
from ...families.elastic.warping import lacks_distance
from . import alignments, warping_path
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
        """Say whether paths of a distance are not found side by side."""
        try:
            uneven = cell_of(reduction.warping).uneven
        except LookupError:
            uneven = True
        return lacks_distance("numba", reduction.warping) if uneven else None

    def alignment_sums_bytes(
        self, reduction: AlignmentSums, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for some series: paths, the sums of their cells, and pairs side by side."""
        n, m = (side.n_timepoints for side in reduction.sides)
        sums = reduction.sum_bytes * -(-rows // reduction.cell[0])
        copies = 16 * (reduction.series.n_channels * m + n)
        side_by_side = alignments.group_bytes(n, m, reduction.series.n_channels)
        held = (
            side_by_side
            if side_by_side <= most_steps(self.budget())
            else warping_path.path_bytes(n, m) + copies
        )
        return 0, rows * (8 * n + 64) + sums + held

    def alignment_sums(
        self, reduction: AlignmentSums, tile: Tile, cancel: np.ndarray
    ) -> MatchedSums:
        """Sums of the cells of a tile, and costs of its series."""
        series, averages = reduction.series.take(tile.rows), reduction.averages
        labels, weights = reduction.labels[tile.rows], reduction.weights[tile.rows]
        held = alignments.group_bytes(averages.n_timepoints, series.n_timepoints, series.n_channels)
        trace = alignments.trace
        if held > most_steps(self.budget()):
            trace = alignments.trace_one_by_one
        first, stop, costs = trace(averages, series, labels, reduction.warping, cancel)
        cells = reduction.cells(tile)
        n_cells, (n_averages, n_channels, n) = cells.stop - cells.start, averages.shape
        values, sums = (
            np.zeros((n_cells, n_averages, n_channels, n)),
            np.zeros((n_cells, n_averages, n)),
        )
        if not cancel[0]:
            alignments.add_matched(
                series.values, labels, weights, averages.lengths, first, stop,
                reduction.cell[0], values, sums,
            )  # fmt: skip
        return MatchedSums(values, sums, costs)
