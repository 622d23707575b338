"""Tiles of MK on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._mk import PairWalk, Walked
from .._reductions import Tile
from .._windows import Pool
from . import mk
from .join_tiles import Windows

__all__ = ["MKTiles"]


class MKTiles:
    """Methods of the CPU engine for MK; the statistics of windows are those of joins."""

    _windows: Callable[[Pool, int, bool], Windows]

    def pair_walk_bytes(self, reduction: PairWalk, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile: the line prepared, order and gaps."""
        held = reduction.gaps.nbytes + reduction.order.nbytes
        return 58 * reduction.series.points.size + held, 2**16 + rows

    def pair_walk(self, reduction: PairWalk, tile: Tile, cancel: np.ndarray) -> Walked:
        """Walk over a tile."""
        line = self._windows(reduction.series, reduction.length, reduction.normalize)
        best = np.array([reduction.best[0]])
        places = np.array(reduction.best[1:], np.int64)
        measured = mk.walk(
            line.points,
            line.mean,
            line.inverse,
            reduction.length,
            reduction.order,
            reduction.gaps,
            *reduction.limit,
            reduction.exclusion,
            (tile.row, tile.row_stop, reduction.first + tile.col, reduction.first + tile.col_stop),
            best,
            places,
            cancel,
        )
        return Walked(float(best[0]), int(places[0]), int(places[1]), measured)
