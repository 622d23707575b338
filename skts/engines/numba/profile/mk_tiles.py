"""Tiles of MK on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.constants import FLOAT64_UNIT
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.concatenated import ConcatenatedSeries
from ...families.profile.mk import PairWalk, WalkedPairs
from . import mk
from .lines import PreparedLine

__all__ = ["MKTiles"]


class MKTiles:
    """Methods of the CPU engine for MK; the statistics of windows are those of joins."""

    prepared: PreparedStore
    _windows: Callable[[ConcatenatedSeries, int, bool], PreparedLine]

    def pair_walk_bytes(self, reduction: PairWalk, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile: the line prepared, order and gaps."""
        held = reduction.gaps.nbytes + reduction.order.nbytes
        return 66 * reduction.series.points.size + held, 2**16 + rows

    def pair_walk(self, reduction: PairWalk, tile: Tile, cancel: np.ndarray) -> WalkedPairs:
        """Walk over a tile."""
        line = self._windows(reduction.series, reduction.length, reduction.normalize)
        center, slip = self._centers(reduction, line)
        best = np.array([reduction.best[0]])
        places = np.array(reduction.best[1:], np.int64)
        measured_line = mk.MeasuredLine(
            line.points,
            line.mean,
            line.inverse,
            center,
            slip,
            reduction.length,
            reduction.exclusion,
            reduction.normalize or None,
        )
        ordered = mk.OrderedWindows(reduction.order, reduction.gaps, *reduction.limit)
        offset = reduction.first
        area = (tile.row, tile.row_stop, offset + tile.col, offset + tile.col_stop)
        measured = mk.walk(measured_line, ordered, area, best, places, cancel)
        return WalkedPairs(float(best[0]), int(places[0]), int(places[1]), measured)

    def _centers(self, reduction: PairWalk, line: PreparedLine) -> tuple[np.ndarray, float]:
        """Means of windows in one number, and how far distances by them may be off."""

        def build() -> tuple[tuple[np.ndarray, float], int]:
            length = reduction.length
            if not reduction.normalize:
                return (line.mean, 0.0), 0
            center = line.points[: line.mean.size] + line.mean
            # each center is rounded once more than certified distances are, and so is each point
            # see "mk squares" in docs/developer/numerics.rst
            off = 4 * np.sqrt(length) * np.max(np.abs(center) * line.inverse) + 16 * length
            return (center, FLOAT64_UNIT * float(off)), center.nbytes

        key = ("centers", reduction.length, reduction.normalize)
        return self.prepared.get(reduction.series.points, key, build)
