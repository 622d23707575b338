"""Tiles of given shapelets, dilated or not, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.reduction import Tile
from ...core.series import read_only
from ...families.shapelets.dilated import (
    FEATURES,
    DilatedShapelets,
    DistanceQuantiles,
    ShapeletFeatures,
    largest_squares,
)
from ...host.small_work import ENTRIES, most_bytes, prefer_numpy
from . import dilated_by_numpy
from .dilated import ShapeletTable, features, quantiles

__all__ = ["DilatedTiles"]

#: Seconds of NumPy in place of kernels that take some ten to compile, and those of a step.
LIMIT, STEP = 2.0, 3e-9
#: Seconds of the calls of NumPy for a series and a run of shapelets, however short it is.
CALLS = 1e-4
#: Bytes that kernels hold for windows of any length, at least.
BUFFERS = 2**19


class DilatedTiles:
    """Methods of the CPU engine for given shapelets."""

    budget: Callable[[], int]

    def shapelet_features_bytes(
        self, reduction: ShapeletFeatures, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its answer, the shapelets, windows that are looked at."""
        longest = int(reduction.shapelets.lengths.max())
        each = 8 * rows * (len(reduction.features) * cols + 2 * longest + 16)
        numpy = min(_numpy_bytes(reduction), most_bytes(self.budget()))
        return 0, each + 900 * longest + BUFFERS + numpy

    def shapelet_features(
        self, reduction: ShapeletFeatures, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Distance, start and count of matches of some shapelets in some series."""
        part = reduction.part(tile)
        if self._small(reduction, tile, features):
            return dilated_by_numpy.features(part, cancel)
        slots = [part.features.index(name) if name in part.features else -1 for name in FEATURES]
        found = part.start()
        series = part.series
        features(
            table_of(part.shapelets, part.thresholds),
            read_only(series.values),
            read_only(series.lengths),
            read_only(np.array(slots)),
            found,
            cancel,
        )
        return found

    def distance_quantiles_bytes(
        self, reduction: DistanceQuantiles, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its answer, the shapelets, their series, windows of one."""
        longest, width = int(reduction.shapelets.lengths.max()), reduction.series.n_timepoints
        of_series = 8 * min(rows, len(reduction.series)) * reduction.series.n_channels * width
        numpy = min(_numpy_bytes(reduction), most_bytes(self.budget()))
        return 0, 16 * rows * (longest + 8) + of_series + 16 * width * (longest + 6) + numpy

    def distance_quantiles(
        self, reduction: DistanceQuantiles, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """An order statistic of the sums of squares of some shapelets in one series each."""
        part = reduction.part(tile)
        if self._small(reduction, tile, quantiles):
            return dilated_by_numpy.quantiles(part, cancel)
        found = part.start()
        quantiles(
            table_of(part.shapelets, np.zeros(len(part.shapelets))),
            read_only(part.series.values),
            read_only(part.series.lengths),
            read_only(part.partners),
            read_only(part.ranks),
            found,
            cancel,
        )
        return found

    def _small(
        self, reduction: ShapeletFeatures | DistanceQuantiles, tile: Tile, kernel: Any
    ) -> bool:
        """Whether NumPy computes a tile in place of a kernel: see `prefer_numpy`."""

        def seconds() -> tuple[float, float]:
            total = _numpy_seconds(reduction)
            return total * reduction.work(tile) / reduction.total_work, total

        def able() -> bool:
            return _numpy_bytes(reduction) <= most_bytes(self.budget())

        return prefer_numpy(seconds, kernel, able=able, limit=LIMIT)


def table_of(shapelets: DilatedShapelets, thresholds: np.ndarray) -> ShapeletTable:
    """Shapelets as kernels read them."""
    points, constant = shapelets.prepared
    limits = largest_squares(thresholds, shapelets.lengths)
    table = ShapeletTable(
        points,
        shapelets.begins,
        shapelets.lengths,
        shapelets.dilations,
        shapelets.channels,
        shapelets.normalized.astype(np.uint8) + constant.astype(np.uint8),
        shapelets.runs,
        np.minimum(limits, np.finfo(np.float64).max),
        thresholds,
    )
    return ShapeletTable(*(read_only(np.ascontiguousarray(column)) for column in table))


def _numpy_seconds(reduction: ShapeletFeatures | DistanceQuantiles) -> float:
    """About how long `dilated_by_numpy` takes: steps, and calls where series are short."""
    calls = len(reduction.series) * (len(reduction.shapelets.runs) - 1)
    if isinstance(reduction, DistanceQuantiles):  # each shapelet has one series
        calls = min(calls, len(reduction.shapelets))
    return STEP * reduction.total_work + CALLS * calls


def _numpy_bytes(reduction: ShapeletFeatures | DistanceQuantiles) -> int:
    """Bytes that `dilated_by_numpy` holds: windows of a series, and some shapelets with them."""
    longest, width = int(reduction.shapelets.lengths.max()), reduction.series.n_timepoints
    return 32 * longest * (width + ENTRIES // 8) + 64 * (ENTRIES + width)
