"""Tiles of given shapelets, dilated or not, on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.constants import MATCH_THREADS
from ...core.reduction import Tile
from ...core.series import Series
from ...families.shapelets.dilated import (
    FEATURES,
    DilatedShapelets,
    DistanceQuantiles,
    ShapeletFeatures,
    largest_squares,
)
from .dilated_programs import FILE, batches, described_bytes, units_of

if TYPE_CHECKING:
    import cupy

__all__ = ["DilatedTiles"]


class DilatedTiles:
    """Methods of the GPU engine for given shapelets."""

    def shapelet_features_bytes(
        self, reduction: ShapeletFeatures, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: its answer, shapelets, series and their windows."""
        series, shapelets = reduction.series, reduction.shapelets
        n_runs = min(rows, len(shapelets.runs) - 1)
        windows = described_bytes(n_runs, cols, series.n_timepoints)
        points = cols * (series.n_channels * series.n_timepoints + 1)
        each = 8 * rows * (len(reduction.features) * cols + int(shapelets.lengths.max()) + 16)
        return 0, each + 8 * points + windows + 2**16

    def shapelet_features(
        self, reduction: ShapeletFeatures, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Distance, start and count of matches of some shapelets in some series."""
        import cupy as cp

        from ..loading import load_kernel
        from ..transfers import send, to_host

        part = reduction.part(tile)
        n_features, n_series = len(part.features), len(part.series)
        width = part.series.n_timepoints
        lines, shapelets = _lines(part.series), _shapelets(part.shapelets, part.thresholds)
        out = cp.empty((n_series, n_features, len(part.shapelets)))
        places = {"out": out, "n_features": n_features, "n_shapelets": len(part.shapelets)}
        for name in FEATURES:
            places[name] = part.features.index(name) if name in part.features else -1
        described: Any = None
        units, runs = units_of(part.shapelets)
        for some, own in batches(units, runs, n_series, width):
            if cancel[0]:
                break
            here, there = send(some, own)
            if np.any(own[:, 5] >= 0):
                described = cp.empty((len(own), n_series, width, 2))
                load_kernel(FILE, "describe_windows")(
                    (n_series, len(own)),
                    MATCH_THREADS,
                    lines=lines,
                    runs=there,
                    described=described,
                )
            load_kernel(FILE, "match_dilated")(
                (n_series, len(some)),
                MATCH_THREADS,
                lines=lines,
                units=here,
                described=described,
                shapelets=shapelets,
                places=places,
            )
        return to_host(out)

    def distance_quantiles_bytes(
        self, reduction: DistanceQuantiles, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: its answer, shapelets, series, a place for windows."""
        series, longest = reduction.series, int(reduction.shapelets.lengths.max())
        points = min(rows, len(series)) * (series.n_channels * series.n_timepoints + 1)
        return 0, 8 * (rows * (series.n_timepoints + longest + 24) + points) + 2**16

    def distance_quantiles(
        self, reduction: DistanceQuantiles, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """An order statistic of the sums of squares of some shapelets in one series each."""
        import cupy as cp

        from ..loading import blocks_for, load_kernel
        from ..transfers import bring, send

        part = reduction.part(tile)
        n, width = len(part.shapelets), part.series.n_timepoints
        units, partners, ranks = send(
            units_of(part.shapelets, 1)[0],
            part.partners.astype(np.int32),
            part.ranks.astype(np.int32),
        )
        out = cp.empty(n)
        load_kernel(FILE, "select_distance")(
            blocks_for(n, MATCH_THREADS // 32),
            MATCH_THREADS,
            lines=_lines(part.series),
            units=units,
            n_shapelets=n,
            shapelets=_shapelets(part.shapelets, np.zeros(n)),
            partners=partners,
            ranks=ranks,
            room=cp.empty((n, width)),
            out=out,
        )
        return bring(out)


def _lines(series: Series) -> dict[str, Any]:
    """Series on the device, the argument `lines` of kernels."""
    import cupy as cp

    values: cupy.ndarray = cp.asarray(series.values)
    sizes: cupy.ndarray = cp.asarray(series.lengths, np.int32)
    shape = {"width": series.n_timepoints, "n_channels": series.n_channels}
    return {"values": values, "sizes": sizes, **shape}


def _shapelets(shapelets: DilatedShapelets, thresholds: np.ndarray) -> dict[str, Any]:
    """Shapelets on the device, the argument of that name of kernels."""
    from ..transfers import send

    points, constant = shapelets.prepared
    kinds = shapelets.normalized.astype(np.uint8) + constant.astype(np.uint8)
    names = "points", "begins", "kinds", "limits", "thresholds"
    limits = largest_squares(thresholds, shapelets.lengths)
    sent = send(points, shapelets.begins, kinds, limits, thresholds)
    return dict(zip(names, sent, strict=True))
