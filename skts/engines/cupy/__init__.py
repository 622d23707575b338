"""The GPU engine: CUDA kernels launched through CuPy.

The methods that compute tiles stand beside their kernels, a mixin for each family of work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._config import get_config
from .._engine import Engine
from .._reductions import Reduction, Tile
from .dtw_tiles import DTWTiles
from .join_tiles import JoinTiles
from .mk_tiles import MKTiles
from .sbd_tiles import SBDTiles

__all__ = ["CupyEngine"]

_INSTALL = "pip install 'skts[cuda13]' (CUDA 13) or 'skts[cuda12]' (CUDA 12)"


class CupyEngine(DTWTiles, JoinTiles, MKTiles, SBDTiles, Engine):
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

    def total_memory(self) -> int:
        """As many times the smallest of the devices as there are; all get equal shares."""
        import cupy

        sizes = []
        for device in self._devices():
            with cupy.cuda.Device(device):
                sizes.append(cupy.cuda.runtime.memGetInfo()[1])
        return len(sizes) * min(sizes)

    def default_memory(self) -> int:
        """Three quarters of what is free on the devices, CuPy's own pool included."""
        import cupy

        free = []
        for device in self._devices():
            with cupy.cuda.Device(device):
                pool = cupy.get_default_memory_pool().free_bytes()
                free.append(cupy.cuda.runtime.memGetInfo()[0] + pool)
        return (len(free) * min(free) + self.prepared.size()) * 3 // 4

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
