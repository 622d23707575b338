"""Tiles of soft-DTW on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...families.elastic.soft import SoftDTWGradient, SoftDTWMatrix, SoftSlope
from . import soft

__all__ = ["SoftDTWTiles"]


class SoftDTWTiles:
    """Methods of the CPU engine for soft-DTW."""

    budget: Callable[[], int]

    def soft_dtw_matrix_bytes(
        self, reduction: SoftDTWMatrix, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a block of the matrix."""
        n, m = (side.n_timepoints for side in reduction.sides)
        return 0, soft.values_bytes(rows, cols, n, m, reduction.rows.n_channels)

    def soft_dtw_gradient_bytes(
        self, reduction: SoftDTWGradient, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for some series: pairs side by side, and the gradients of their cells."""
        n, m = (side.n_timepoints for side in reduction.sides)
        channels = reduction.average.n_channels
        sums = reduction.sum_bytes * -(-rows // reduction.cell[0])
        of_weights = rows, n, m, _reach(reduction), channels, self.budget() // 4
        return 0, sums + soft.gradient_bytes(*of_weights)

    def soft_dtw_matrix(
        self, reduction: SoftDTWMatrix, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """A block of the matrix."""
        rows, cols = reduction.rows.take(tile.rows), reduction.cols.take(tile.cols)
        return soft.values(rows, cols, reduction.gamma, reduction.warping, cancel)

    def soft_dtw_gradient(
        self, reduction: SoftDTWGradient, tile: Tile, cancel: np.ndarray
    ) -> SoftSlope:
        """Sums of the gradients of the cells of a tile, and values of its series."""
        average = reduction.average
        found = soft.gradient(
            average.values[0, :, : average.lengths[0]].copy(),
            reduction.series.take(tile.rows),
            reduction.weights[tile.rows],
            reduction.gamma,
            reduction.warping,
            _reach(reduction),
            reduction.cell[0],
            self.budget() // 4,
            cancel,
        )
        return SoftSlope(*found)


def _reach(reduction: SoftDTWGradient) -> int:
    """Half width of the widest band, the same for the plan and for every tile."""
    average, series = reduction.sides
    return reduction.warping.largest_radius(average.lengths, series.lengths)
