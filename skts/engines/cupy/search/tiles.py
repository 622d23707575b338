"""Tiles of subsequence search on the GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...._config import get_config
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.search.subsequence import SubsequenceNeighbors, TileMatches
from .room import SearchRoom, least_bytes

__all__ = ["SubsequenceTiles"]


class SubsequenceTiles:
    """Method of the GPU engine for subsequence search."""

    prepared: PreparedStore
    budget: Callable[[], int]
    workers: Callable[[int | None], int]

    def subsequence_neighbors_bytes(
        self, reduction: SubsequenceNeighbors, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: those of its largest part."""
        budget = 2**62 if get_config()["memory"] is None else self.budget()
        room = SearchRoom.of(reduction, cols, budget // max(1, self.workers(None)))
        return 0, reduction.n_channels * least_bytes(reduction.longest, room.windows)

    def subsequence_neighbors(
        self, reduction: SubsequenceNeighbors, tile: Tile, cancel: np.ndarray
    ) -> list[TileMatches]:
        """Windows of a tile that may match each of some queries."""
        from .subsequence import search

        budget = self.prepared.capacity // max(1, self.workers(None))
        room = SearchRoom.of(reduction, tile.shape[1], budget)
        return search(reduction, tile, room, self.prepared, cancel)
