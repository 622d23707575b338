"""Tiles of MK on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.concatenated import ConcatenatedSeries
from ...families.profile.mk import PairWalk, WalkedPairs
from .programs import MK_CAPACITY
from .tiles import LINE_BYTES

if TYPE_CHECKING:
    import cupy

    from .lines import DeviceLine

__all__ = ["MKTiles"]


class MKTiles:
    """Methods of the GPU engine for MK; lines on the device are those of joins."""

    prepared: PreparedStore
    _line: Callable[[ConcatenatedSeries, int, bool], DeviceLine]

    def pair_walk_bytes(self, reduction: PairWalk, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile: the line, the order, and pairs that are measured."""
        pairs = max(MK_CAPACITY, rows)
        held = reduction.gaps.nbytes + reduction.order.nbytes + 16 * rows
        return 0, LINE_BYTES * reduction.series.points.size + held + 48 * pairs

    def pair_walk(self, reduction: PairWalk, tile: Tile, cancel: np.ndarray) -> WalkedPairs:
        """Walk over a tile."""
        import cupy as cp

        from . import mk

        device = cp.cuda.Device().id
        line = self._line(reduction.series, reduction.length, reduction.normalize)

        def upload(array: np.ndarray) -> tuple[cupy.ndarray, int]:
            return cp.asarray(array), array.nbytes

        order, gaps = (
            self.prepared.get(array, ("order", device), partial(upload, array))
            for array in (reduction.order, reduction.gaps)
        )
        return mk.walk(line, order, gaps, reduction, tile, cancel)
