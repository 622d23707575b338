"""Tiles of the best of all candidates on the GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...families.shapelets.best import BestShapelets, Bounds

__all__ = ["BestTiles"]

#: Points of windows that a large device compares in a second; seconds in which the host judges a
#: distance of a candidate.
POINTS_A_SECOND, JUDGED = 2**41, 2.5e-7


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

    def _seconds_of_best(self, reduction: BestShapelets) -> float:
        """To measure and judge all; a search by covariances on a CPU saves most of that."""
        lengths = np.array([kind.length for kind in reduction.kinds])
        windows = reduction.result_bytes() // 16
        each = len(reduction.series) * reduction.series.n_timepoints * float(lengths.mean())
        return windows * (each / POINTS_A_SECOND + JUDGED * len(reduction.series))

    def shapelet_bounds(self, reduction: BestShapelets, tile: Tile, cancel: np.ndarray) -> Bounds:
        """Gains and gaps of the candidates of some kinds, channels and blocks."""
        row, _, block, _ = reduction.spans
        found = [
            reduction.compared(number, one, self.shapelet_features, cancel)
            for number in range(row + tile.row, row + tile.row_stop)
            for one in range(block + tile.col, block + tile.col_stop)
        ]
        return Bounds(*(np.concatenate(column) for column in zip(*found, strict=True)))
