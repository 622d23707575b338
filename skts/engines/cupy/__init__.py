"""The GPU engine: CUDA kernels launched through CuPy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._config import get_config
from .._certify import Bound, Shortlist
from .._engine import Engine
from .._reductions import DTWMatrix, DTWNeighbors, DTWPairs, Reduction, Tile
from .._series import Series

if TYPE_CHECKING:
    from .dtw import DeviceSeries

__all__ = ["CupyEngine"]

_INSTALL = "pip install 'skts[cuda13]' (CUDA 13) or 'skts[cuda12]' (CUDA 12)"


class CupyEngine(Engine):
    """Computes on an NVIDIA GPU."""

    name = "cupy"
    #: A hundredth of a second of float32 cells on a large GPU, a second of float64 on a small one.
    tile_work = 2**36
    crossover = 2**29

    def __init__(self) -> None:
        super().__init__()
        self._busy: set[int] = set()
        self._freed = threading.Condition()

    def available(self) -> str | None:
        """Return None where CuPy is installed and finds a GPU of compute capability 7.5 or more."""
        try:
            import cupy
        except ImportError as error:
            return f"engine='cupy' needs CuPy ({error}): {_INSTALL}."
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            return f"engine='cupy' needs an NVIDIA GPU and its driver; CuPy found none ({error})."
        if count == 0:
            return "engine='cupy' needs an NVIDIA GPU; CuPy found none."
        capability = int(cupy.cuda.Device().compute_capability)
        if capability < 75:
            return (
                "engine='cupy' needs a GPU of compute capability 7.5 or more; this one has "
                f"{capability / 10:.1f}."
            )
        return None

    def workers(self, n_jobs: int | None) -> int:
        """One for each device; `n_jobs` counts CPU threads and says nothing here."""
        return len(self._devices())

    def default_memory(self) -> int:
        """Three quarters of what is free on the devices, CuPy's own pool included."""
        import cupy

        free = 0
        for device in self._devices():
            with cupy.cuda.Device(device):
                free += cupy.cuda.runtime.memGetInfo()[0]
                free += cupy.get_default_memory_pool().free_bytes()
        return (free + self.prepared.size()) * 3 // 4

    def footprint(self, reduction: Reduction, rows: int, cols: int) -> tuple[int, int]:
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

    def compute(self, reduction: Reduction, tile: Tile, cancel: np.ndarray) -> Any:
        """Compute a tile on a device that is free."""
        import cupy

        with self._one_device() as device, cupy.cuda.Device(device):
            return super().compute(reduction, tile, cancel)

    def _devices(self) -> tuple[int, ...]:
        """Numbers of the devices to use."""
        import cupy

        return get_config()["devices"] or (cupy.cuda.Device().id,)

    @contextmanager
    def _one_device(self) -> Iterator[int]:
        """Take a device of those configured that no other worker of this process is using."""
        with self._freed:
            while not (free := [d for d in self._devices() if d not in self._busy]):
                self._freed.wait()
            self._busy.add(free[0])
        try:
            yield free[0]
        finally:
            with self._freed:
                self._busy.discard(free[0])
                self._freed.notify_all()

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
