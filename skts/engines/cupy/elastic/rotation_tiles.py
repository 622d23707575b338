"""Tiles of rotation-invariant searches on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.certify import Bound, Rescaling, Shortlist, dtw_bound
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series
from ...families.elastic.rotation import RotationSearch

if TYPE_CHECKING:
    import cupy

    from .dtw import DeviceSeries

__all__ = ["RotationTiles"]


class RotationTiles:
    """Methods of the GPU engine for rotation-invariant searches."""

    prepared: PreparedStore
    _on_device: Callable[[Series, int, int, Rescaling | None], DeviceSeries]

    def rotation_neighbors_bytes(
        self, reduction: RotationSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile of this shape."""
        from .dtw import device_bytes, edge_length
        from .rotation import euclidean_bytes, warped_bytes

        if rows * cols >= 2**31:
            return 0, 2**62
        channels, (n, m) = reduction.queries.n_channels, reduction.most_points
        series = device_bytes(rows, channels, n) + device_bytes(cols, channels, m)
        if _by_correlation(reduction):
            return 0, series + euclidean_bytes(n, channels, rows, cols)
        return 0, series + warped_bytes(m, rows, cols) + 64 * 8 * edge_length(n)

    def rotation_neighbors(
        self, reduction: RotationSearch, tile: Tile, cancel: np.ndarray
    ) -> Shortlist:
        """Nearest candidates of a tile, certified."""
        import cupy

        from . import dtw
        from .rotation import EuclideanRotation, WarpedRotation

        k, squared = min(reduction.n_neighbors, tile.shape[1]), reduction.warping.squared
        excluded, limits = None, np.full(tile.shape[0], np.inf)
        if reduction.excluded is not None:
            excluded = reduction.excluded[tile.rows] - tile.col
        if reduction.limits is not None:
            limits = reduction.limits[tile.rows]
        options: dict[str, Any] = {
            "periods": self._periods(reduction.candidates, tile),
            "n_neighbors": k,
            "excluded": excluded,
            "limits": limits,
            "cancel": cancel,
        }
        exact = self._sides(reduction, tile, None)
        if _by_correlation(reduction):
            costs = EuclideanRotation(*exact, **options, squared=squared).search()
        else:
            rescaling = reduction.rescaling
            single = self._sides(reduction, tile, rescaling)
            channels, (n, m) = reduction.queries.n_channels, reduction.most_points
            error = sum(side.error for side in single)
            # in the run of all shifts a path is as long as n rows and 2 m - 1 columns let it be
            # see "rotation runs" in docs/developer/numerics.rst
            steps = 1 if reduction.warping.largest else n + 2 * m - 2
            bound = dtw_bound(steps, channels, error, rescaling.scale, squared=squared)
            costs = WarpedRotation(
                *zip(single, exact, strict=True),
                **options,
                bound=bound,
                scale=rescaling.scale,
                most_points=(n, m),
                warping=reduction.warping,
                widest=reduction.warping.largest_radius(
                    reduction.queries.lengths, reduction.candidates.lengths
                ),
                budget=self.prepared.capacity // 4,
            ).search()
        distances = cupy.sqrt(costs) if squared else costs
        found = dtw.shortlist(distances, k, Bound(), excluded, 1.0, squared=False)
        near = np.isfinite(found.estimates) & (found.estimates <= limits[found.rows])
        return found._replace(
            rows=found.rows[near], cols=found.cols[near], estimates=found.estimates[near]
        )

    def _periods(self, candidates: Series, tile: Tile) -> cupy.ndarray:
        """Periods of the candidates of a tile on the current device, kept while they live."""
        import cupy

        from ..transfers import send_one

        def build() -> tuple[cupy.ndarray, int]:
            made = send_one(periods(candidates.take(tile.cols)))
            return made, made.nbytes

        key = "periods", cupy.cuda.Device().id, tile.col, tile.col_stop
        return self.prepared.get(candidates.owner, key, build)

    def _sides(
        self, reduction: RotationSearch, tile: Tile, rescaling: Rescaling | None
    ) -> tuple[DeviceSeries, DeviceSeries]:
        """Queries and candidates of a tile on the device."""
        return (
            self._on_device(reduction.queries, tile.row, tile.row_stop, rescaling),
            self._on_device(reduction.candidates, tile.col, tile.col_stop, rescaling),
        )


def _by_correlation(reduction: RotationSearch) -> bool:
    """Whether shifts are compared by the sum over their points, without warping."""
    return reduction.straight and not reduction.warping.largest


def periods(series: Series) -> np.ndarray:
    """Least shift that leaves each series as it is; shifts from there on repeat."""
    found = np.empty(len(series), np.int32)
    for length in np.unique(series.lengths).tolist():
        some = np.flatnonzero(series.lengths == length)
        found[some] = _periods(series.values[some, :, :length])
    return found


def _periods(values: np.ndarray) -> np.ndarray:
    """As `periods`, of series of one length."""
    n = values.shape[2]
    found = np.full(len(values), n, np.int32)
    for period in range(n // 2, 0, -1):
        if n % period:
            continue
        # most are told by a point
        like = np.flatnonzero(values[:, 0, 0] == values[:, 0, period])
        like = like[np.all(values[like, :, period:] == values[like, :, :-period], axis=(1, 2))]
        found[like] = period
    return found
