"""Tiles of the best of all candidates on the GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...families.shapelets.best import BestShapelets, Bounds

__all__ = ["BestTiles"]


class BestTiles:
    """Methods of the GPU engine for the best of all candidates.

    All their distances are measured on the device, and their cuts judged on the host.
    """

    shapelet_features: Callable[..., np.ndarray]
    shapelet_features_bytes: Callable[..., tuple[int, int]]

    def shapelet_bounds_bytes(
        self, reduction: BestShapelets, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: those of distances that are measured at a time."""
        work = reduction.distances(reduction.candidates.places(np.arange(1)))
        some = reduction.at_a_time
        longest = max(kind.length for kind in reduction.kinds)
        shared, each = self.shapelet_features_bytes(work, some, len(reduction.series))
        return shared, each + 8 * some * longest

    def shapelet_bounds(self, reduction: BestShapelets, tile: Tile, cancel: np.ndarray) -> Bounds:
        """Gains and gaps of the candidates of some kinds, channels and blocks."""
        row, _, block, _ = reduction.spans
        found = [
            reduction.compared(number, one, self.shapelet_features, cancel)
            for number in range(row + tile.row, row + tile.row_stop)
            for one in range(block + tile.col, block + tile.col_stop)
        ]
        return Bounds(*(np.concatenate(column) for column in zip(*found, strict=True)))
