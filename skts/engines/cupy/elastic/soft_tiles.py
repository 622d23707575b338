"""Tiles of soft-DTW on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...core.constants import ELASTIC_THREADS
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.elastic.soft import SoftDTWGradient, SoftDTWMatrix, SoftSlope
from .soft_programs import edge_bytes, weight_bytes

if TYPE_CHECKING:
    from .dtw import DeviceSeries

__all__ = ["SoftDTWTiles"]

#: Bytes for the weights of pairs that are under way at a time: more gain nothing.
MOST_WEIGHTS = 2**31
#: Warps of a large device at most.
MOST_WARPS = 2**13


class SoftDTWTiles:
    """Methods of the GPU engine for soft-DTW."""

    prepared: PreparedStore
    _on_device: Callable[..., DeviceSeries]

    def soft_dtw_matrix_bytes(
        self, reduction: SoftDTWMatrix, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile of this shape."""
        from .dtw import device_bytes, stride

        if rows * cols >= 2**31:
            return 0, 2**62
        series = sum(
            device_bytes(count, side.n_channels, side.n_timepoints)
            for count, side in zip((rows, cols), reduction.sides, strict=True)
        )
        edges = min(rows * cols + 32, MOST_WARPS) * edge_bytes(stride(reduction.cols.n_timepoints))
        return 0, series + edges + 16 * rows * cols

    def soft_dtw_gradient_bytes(
        self, reduction: SoftDTWGradient, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile of so many series."""
        from .dtw import device_bytes, stride

        n, m = (side.n_timepoints for side in reduction.sides)
        if rows * stride(m) >= 2**31:
            return 0, 2**62
        channels, each = reduction.average.n_channels, weight_bytes(n, stride(m))
        series = device_bytes(rows, channels, m) + 2 * device_bytes(1, channels, n)
        # a block at least
        least = ELASTIC_THREADS // 32 * each
        held = max(least, min((rows + 32) * each, self._most_weights()))
        held += min(rows + 32, MOST_WARPS) * edge_bytes(stride(m))
        sums = reduction.sum_bytes * -(-rows // reduction.cell[0])
        return 0, series + held + 2 * sums + rows * (8 * channels * stride(n) + 32)

    def _most_weights(self) -> int:
        """Bytes that the weights of pairs may take."""
        return min(MOST_WEIGHTS, self.prepared.capacity // 4)

    def soft_dtw_matrix(
        self, reduction: SoftDTWMatrix, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """A block of the matrix."""
        from . import soft

        rows = self._on_device(reduction.rows, tile.row, tile.row_stop)
        cols = self._on_device(reduction.cols, tile.col, tile.col_stop)
        return soft.values(rows, cols, reduction.gamma, reduction.warping, cancel)

    def soft_dtw_gradient(
        self, reduction: SoftDTWGradient, tile: Tile, cancel: np.ndarray
    ) -> SoftSlope:
        """Sums of the gradients of the cells of a tile, and values of its series."""
        from . import dtw, soft

        gradients, values = soft.gradient(
            dtw.upload(reduction.average),
            reduction.average.n_timepoints,
            self._on_device(reduction.series, tile.row, tile.row_stop),
            reduction.weights[tile.rows],
            reduction.gamma,
            reduction.warping,
            reduction.cell[0],
            cancel,
            budget=self._most_weights(),
        )
        return SoftSlope(gradients, values)
