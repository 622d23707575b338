"""Tiles of work under warping on the GPU: what is uploaded, which kernel runs.

CuPy is imported by the methods, so that the engine can be asked whether it is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._certify import Bound, Shortlist
from .._dtw import DTWMatrix, DTWNeighbors, DTWPairs, DTWReduction
from .._memory import PreparedStore
from .._reductions import Tile
from .._series import Series

if TYPE_CHECKING:
    from .dtw import DeviceSeries

__all__ = ["DTWTiles"]


class DTWTiles:
    """Methods of the GPU engine for DTW and dog-keeper work."""

    prepared: PreparedStore

    def _dtw_bytes(self, reduction: DTWReduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile of this shape."""
        from .dtw import device_bytes, edge_length

        left, right = reduction.sides
        matrix = 16 * rows * cols
        if isinstance(reduction, DTWPairs):
            cols = rows
            matrix = 16 * rows
        elif rows * cols >= 2**31:
            return 0, 2**62
        series = sum(
            device_bytes(min(count, len(side)), side.n_channels, side.n_timepoints)
            for count, side in ((rows, left), (cols, right))
        )
        return 0, series + matrix + 64 * 8 * edge_length(left.n_timepoints)

    dtw_matrix_bytes = dtw_neighbors_bytes = dtw_pairs_bytes = _dtw_bytes

    def dtw_neighbors(self, reduction: DTWNeighbors, tile: Tile, cancel: np.ndarray) -> Shortlist:
        """Survivors of a tile."""
        from . import dtw

        rescaling = reduction.rescaling if reduction.single else None
        rows = self._on_device(reduction.queries, tile.row, tile.row_stop, rescaling)
        cols = self._on_device(reduction.candidates, tile.col, tile.col_stop, rescaling)
        estimates = self._distances(reduction, rows, cols, root=not reduction.single)
        bound, scale = Bound(), 1.0
        if reduction.single:
            scale, bound = reduction.scale_and_bound(rows.error + cols.error)
        excluded = None if reduction.excluded is None else reduction.excluded[tile.rows] - tile.col
        return dtw.shortlist(
            estimates,
            reduction.n_neighbors,
            bound,
            excluded,
            scale,
            squared=reduction.warping.squared,
        )

    def dtw_matrix(self, reduction: DTWMatrix, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """A block of the matrix."""
        rows = self._on_device(reduction.rows, tile.row, tile.row_stop)
        cols = self._on_device(reduction.cols, tile.col, tile.col_stop)
        return self._distances(reduction, rows, cols, root=True).get()

    def dtw_pairs(self, reduction: DTWPairs, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """Certified distances of some pairs."""
        import cupy

        from . import dtw

        whole = sum(
            dtw.device_bytes(len(side), side.n_channels, side.n_timepoints)
            for side in reduction.sides
        )
        part, rows = reduction, tile.rows
        if whole > self.prepared.capacity // 2:
            part, rows = reduction.part(tile), slice(None)
        pairs = cupy.asarray(np.ascontiguousarray(part.pairs[rows], np.int32))
        left, right = (self._on_device(side, 0, len(side)) for side in part.sides)
        return self._distances(part, left, right, root=True, pairs=pairs).get()

    def _distances(
        self,
        reduction: DTWMatrix | DTWNeighbors | DTWPairs,
        rows: DeviceSeries,
        cols: DeviceSeries,
        *,
        root: bool,
        pairs: Any = None,
    ) -> Any:
        """Launch the kernel for the options of a reduction."""
        from . import dtw

        left, right = reduction.sides
        return dtw.distances(
            rows,
            cols,
            reduction.warping,
            reach=reduction.warping.largest_radius(left.lengths, right.lengths),
            pairs=pairs,
            root=root,
            budget=self.prepared.capacity // 4,
        )

    def _on_device(
        self, series: Series, start: int, stop: int, rescaling: Any = None
    ) -> DeviceSeries:
        """Some series on the current device, in float64, or rescaled in float32."""
        import cupy

        from . import dtw

        def build() -> tuple[DeviceSeries, int]:
            if rescaling is None:
                made = dtw.upload(series.take(slice(start, stop)))
            else:
                made = dtw.rescale(self._on_device(series, start, stop), rescaling)
            return made, made.buffer.nbytes + made.lengths.nbytes

        key = ("series", cupy.cuda.Device().id, rescaling, start, stop)
        return self.prepared.get(series.values, key, build)
