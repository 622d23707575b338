"""The GPU engine: CUDA kernels launched through CuPy.

The methods that compute tiles stand beside their kernels, a mixin for each family of work.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..._config import get_config
from ...exceptions import EngineNotAvailableError
from ..core.engine import Engine
from ..core.prepared import PreparedStore
from ..core.reduction import Reduction, Tile
from ..core.series import Series, lies_on_gpu
from ..core.worker import worker_number
from ..families.elastic.averages import AlignmentSums
from ..families.elastic.subgradients import SubgradientSteps
from ..families.shapelets.best import BestShapelets
from ._process import claim, lost_by_fork
from .elastic.alignment_tiles import AlignmentTiles
from .elastic.rotation_tiles import RotationTiles
from .elastic.soft_tiles import SoftDTWTiles
from .elastic.tiles import DTWTiles
from .kshape.tiles import SBDTiles
from .profile.channel_tiles import ChannelTiles
from .profile.mk_tiles import MKTiles
from .profile.tiles import JoinTiles
from .search.tiles import SubsequenceTiles
from .shapelets.best_tiles import BestTiles
from .shapelets.dilated_tiles import DilatedTiles
from .shapelets.tiles import ShapeletTiles

__all__ = ["CupyEngine"]

_INSTALL = "pip install 'skts[cuda13]' (CUDA 13) or 'skts[cuda12]' (CUDA 12)"

#: Seconds until a device has the data and the results are back, and elementary steps a second: with
#: the figures of the CPU engine, a GPU is chosen above 2^29 steps, as was measured.
START, STEPS_A_SECOND = 0.2495, 2**40
#: Seconds of paths that others wait for, at least: some launches, and the way to the host.
PATH_SECONDS = 1e-3
#: Seconds after which a device is asked again for its memory.
ASKED_EVERY = 1.0
#: Steps for which one more device is used: some tenths of a second of a large one.
WORTH_A_DEVICE = {
    "join": 2**39,
    "channel_join": 2**39,
    "dtw_matrix": 2**37,
    "dtw_neighbors": 2**37,
    "dtw_radius_neighbors": 2**37,
}
WORTH_OTHERWISE = 2**40
#: Work of which a device may have two tiles under way, and how many tiles there must be for each.
OVERLAPPED = {"dtw_matrix": 8, "dtw_neighbors": 8, "dtw_radius_neighbors": 8}

#: Priority of a stream whose kernels begin before others that wait: any number below 0.
FIRST = -1


class DeviceStore(PreparedStore):
    """A store of data that streams prepare, for workers with streams of their own."""

    def settle(self) -> None:
        """Wait for what the current stream has been given."""
        import cupy

        cupy.cuda.get_current_stream().synchronize()


class CupyEngine(
    AlignmentTiles,
    ChannelTiles,
    BestTiles,
    DilatedTiles,
    DTWTiles,
    JoinTiles,
    MKTiles,
    RotationTiles,
    SBDTiles,
    ShapeletTiles,
    SoftDTWTiles,
    SubsequenceTiles,
    Engine,
):
    """Computes on an NVIDIA GPU."""

    name = "cupy"
    #: A hundredth of a second of float32 cells on a large GPU, a second of float64 on a small one.
    tile_work = 2**36
    #: Of searches in float32. After a tile the device waits for a millisecond until both lanes have
    #: read what they found: a tenth of the time of so short ones.
    row_scale = 8
    #: 2^34 steps are a hundredth of a second of a large GPU, a quarter of one of a small one.
    inline_scale = 2**5

    def __init__(self) -> None:
        super().__init__()
        self.prepared = DeviceStore()
        self._busy: defaultdict[int, int] = defaultdict(int)  # bits of the lanes in use
        self._alone = 0
        self._freed = threading.Condition()
        self._streams: dict[int, Any] = {}
        # by device: when it was asked for its memory, and what of that others do not hold
        self._left_by_others: dict[int, tuple[float, int]] = {}

    def available(self) -> str | None:
        """Return None where CuPy is installed and finds a GPU of compute capability 7.5 or more."""
        lost = lost_by_fork()
        if lost is not None:
            return lost
        try:
            import cupy
        except ImportError as error:
            return f"engine='cupy' needs CuPy ({error}): {_INSTALL}."
        try:
            count = cupy.cuda.runtime.getDeviceCount()
            capability = int(cupy.cuda.Device().compute_capability) if count else 0
        except cupy.cuda.runtime.CUDARuntimeError as error:
            lost = lost_by_fork(error.status)
            if lost is not None:
                return lost
            return f"engine='cupy' needs an NVIDIA GPU and its driver; CuPy found none ({error})."
        if count == 0:
            return "engine='cupy' needs an NVIDIA GPU; CuPy found none."
        claim()
        if capability < 75:
            return (
                "engine='cupy' needs a GPU of compute capability 7.5 or more; this one has "
                f"{capability / 10:.1f}."
            )
        return None

    def seconds(self, reduction: Reduction) -> float:
        """A start, and steps at the rate of a large device: the CPU is faster below 2^29 steps."""
        if isinstance(reduction, BestShapelets):
            return START + self._seconds_of_best(reduction)
        if isinstance(reduction, AlignmentSums) and reduction.one_by_one:
            return START + len(reduction.series) * PATH_SECONDS
        if isinstance(reduction, SubgradientSteps):
            return START + reduction.rates.size * PATH_SECONDS
        return START + reduction.total_work / STEPS_A_SECOND

    def details(self) -> str:
        """Devices, and the versions of CUDA of driver and runtime."""
        import cupy

        runtime = cupy.cuda.runtime
        names = [
            runtime.getDeviceProperties(device)["name"].decode()
            for device in range(runtime.getDeviceCount())
        ]
        driver, own = (
            f"{version // 1000}.{version % 1000 // 10}"
            for version in (runtime.driverGetVersion(), runtime.runtimeGetVersion())
        )
        return f"{', '.join(names)}; CUDA {driver} (driver), {own} (CuPy {cupy.__version__})"

    def owns(self, array: Any) -> bool:
        """Whether an array lies in the memory of a GPU, CuPy's or another library's."""
        return lies_on_gpu(array)

    def series_of(self, array: Any) -> Series:
        """Return the `Series` of an array; their points stay on their device."""
        from .series import GpuSeries

        _claim_arrays()
        return GpuSeries.of(array)

    def fetch(self, array: Any) -> np.ndarray:
        """Bring an array to host memory."""
        from . import series

        _claim_arrays()
        return series.fetch(array)

    def workers(self, n_jobs: int | None) -> int:
        """One for each device; `n_jobs` counts CPU threads and has no effect here."""
        return len(self._devices())

    def devices(self, reduction: Reduction) -> tuple[int, ...]:
        """As many as the work is worth, of those that are set or of all, the current one first.

        A worker process of joblib or Dask takes one of all, by its number.
        """
        import cupy

        chosen = get_config()["devices"]
        if not chosen:
            current, count = cupy.cuda.Device().id, cupy.cuda.runtime.getDeviceCount()
            number = worker_number()
            if number is not None:
                return ((current + number) % count,)
            chosen = (current, *(d for d in range(count) if d != current))
        least = WORTH_A_DEVICE.get(reduction.method, WORTH_OTHERWISE)
        return tuple(chosen[: max(1, reduction.total_work // least)])

    def lanes(self, reduction: Reduction) -> int:
        """Two where there is much work: results of a tile travel and merge while another runs."""
        if reduction.method not in OVERLAPPED:
            return 1
        each = OVERLAPPED[reduction.method] * self.tile_work * reduction.tiling.scale
        return 2 if reduction.total_work > each * self.workers(None) else 1

    def row_scale_of(self, reduction: Reduction) -> int:
        """More for searches in float32 alone: float64 takes a small device a second as it is."""
        return self.row_scale if getattr(reduction, "single", False) else 1

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
        free = list(map(self._free_memory, self._devices()))
        return (len(free) * min(free) + self.prepared.size()) * 3 // 4

    def _free_memory(self, device: int) -> int:
        """Bytes that this process can still take on a device.

        What others hold is asked for once in a while: the answer waits for whatever memory other
        processes are taking or giving back, for milliseconds.
        """
        import cupy

        with cupy.cuda.Device(device):
            pool = cupy.get_default_memory_pool()
            now = time.monotonic()
            asked, mine = self._left_by_others.get(device, (-math.inf, 0))
            if now - asked > ASKED_EVERY:
                mine = cupy.cuda.runtime.memGetInfo()[0] + pool.total_bytes()
                self._left_by_others[device] = now, mine
            return max(0, mine - pool.used_bytes())

    def compute_all(self, works: Sequence[tuple[Reduction, Tile]], cancel: np.ndarray) -> list[Any]:
        """Compute a tile of each of several reductions, on one device that is free."""
        import cupy

        with self._one_device(1) as (device, _), cupy.cuda.Device(device):
            return super().compute_all(works, cancel)

    def compute(self, reduction: Reduction, tile: Tile, cancel: np.ndarray) -> Any:
        """Compute a tile on a device that is free."""
        import cupy

        with self._one_device(self.lanes(reduction)) as (device, lane), cupy.cuda.Device(device):
            if lane == 0:
                return super().compute(reduction, tile, cancel)
            # one stream a device: CuPy's pool holds memory for each stream, for the next work; what
            # it is given comes before blocks of the other lane that wait, which fill its pauses
            if device not in self._streams:
                self._streams[device] = cupy.cuda.Stream(non_blocking=True, priority=FIRST)
            with self._streams[device]:
                return super().compute(reduction, tile, cancel)

    def _devices(self) -> tuple[int, ...]:
        """Numbers of the devices to use."""
        import cupy

        return get_config()["devices"] or (cupy.cuda.Device().id,)

    @contextmanager
    def _one_device(self, lanes: int) -> Iterator[tuple[int, int]]:
        """Take the device of those configured that is least in use by this process, and a lane.

        Work without lanes has a device to itself, and comes before a second tile of other work.
        """
        with self._freed:
            self._alone += lanes == 1
            try:
                while not (free := self._free(lanes)):
                    self._freed.wait()
            finally:
                self._alone -= lanes == 1
            device, lane = free
            self._busy[device] |= 1 << lane
        try:
            yield device, lane
        finally:
            with self._freed:
                self._busy[device] &= ~(1 << lane)
                self._freed.notify_all()

    def _free(self, lanes: int) -> tuple[int, int] | None:
        """A device and a lane of it; None where all are taken."""
        places = [
            (self._busy[device].bit_count(), order, device)
            for order, device in enumerate(self._devices())
        ]
        for taken, _, device in sorted(places):
            if taken == 0 or (taken < lanes and not self._alone):
                return device, 0 if not self._busy[device] & 1 else 1
        return None


def _claim_arrays() -> None:
    """Remember that CUDA has started, as whoever made an array on a device has started it.

    Raises
    ------
    EngineNotAvailableError
        If that was in another process, from which this one was forked.
    """
    lost = lost_by_fork()
    if lost is not None:
        raise EngineNotAvailableError(lost)
    claim()
