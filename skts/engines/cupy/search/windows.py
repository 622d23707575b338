"""Windows of a part on the GPU: prepared, bounded, listed, warped; a launch a function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.certify import Rescaling
from ...core.constants import ELASTIC_THREADS
from ...core.constants import SEARCH_THREADS as THREADS
from ...families.elastic.warping import Warping
from ...families.search.subsequence import SubsequenceNeighbors
from ..elastic import dtw
from ..elastic.cells import NO_PARAMETERS
from ..loading import blocks_for, load_kernel
from ..transfers import filled, send, send_one
from .programs import WarpKernel
from .query import Query
from .room import SearchRoom
from .upload import UploadedPart

__all__ = [
    "Listed",
    "DeviceWindows",
    "bound_windows",
    "join_channels",
    "least_of_runs",
    "prepare_windows",
    "row_distances",
    "warp_windows",
    "with_length",
    "within",
]

#: Checks of a window, while it is warped, whether to abandon it.
LOOKS = 12
#: Windows of a run where the exclusion is smaller: the nearest of a run counts towards a limit.
RUN = 64
_NOTHING = np.uint64(2**64 - 1)
_PLACE = np.dtype([("shift", np.int32), ("pitch", np.int32)])


class DeviceWindows(NamedTuple):
    """The windows of one length in a part of a tile, on the device.

    Attributes
    ----------
    points : cupy.ndarray of shape (n_points,), float64
        The part of the line.
    length, count : int
        Points of a window, and how many windows.
    line : cupy.ndarray of float32
        Segments of the line, see ``search.cu``.
    place : ndarray of one `_PLACE`
        Where a window lies there.
    moments : cupy.ndarray of shape (count, 2), float64
        Certified mean and 1 / deviation.
    affine : cupy.ndarray of shape (count, 2), float32
        Factor and summand of the points of a window.
    error : cupy.ndarray of shape (count,), float32
        Error of normalised points, summed over channels; negative where a window is not finite.
    others : tuple of DeviceWindows
        The windows in further channels.
    """

    points: cp.ndarray
    length: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks for
    line: cp.ndarray
    place: np.ndarray
    moments: cp.ndarray
    affine: cp.ndarray
    error: cp.ndarray
    others: tuple[DeviceWindows, ...] = ()

    @property
    def channels(self) -> tuple[DeviceWindows, ...]:
        """The windows in each channel."""
        return self, *self.others


class Listed(NamedTuple):
    """Windows, and costs of each where they are known.

    Attributes
    ----------
    positions : cupy.ndarray of int32, or None
        The windows; None is all.
    n : int
        How many there are at most.
    count : cupy.ndarray of shape (1,), int32, or None
        How many there are, where that is known on the device alone.
    costs : cupy.ndarray of float32, or None
        Accumulated costs.
    """

    positions: cp.ndarray | None
    n: int
    count: cp.ndarray | None = None  # type: ignore[assignment]  # hides tuple.count, too
    costs: cp.ndarray | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of kernels that go through them, besides the costs."""
        return {"positions": self.positions, "count": self.count, "n": self.n}


def _blocks(n: int) -> int:
    """Blocks for kernels that go through a list with a grid stride."""
    return max(1, min(blocks_for(n, THREADS), 2**14))


def prepare_windows(
    part: UploadedPart,
    length: int,
    count: int,
    reduction: SubsequenceNeighbors,
    rescaling: Rescaling,
) -> DeviceWindows:
    """Normalise the windows of a part: statistics, and the float32 copy of the line."""
    step = max(1024, 1 << (length - 1).bit_length())
    pitch = -(-(step + length + 8) // 4) * 4
    n_segments = -(-count // step)
    place = np.zeros(1, _PLACE)
    place["shift"], place["pitch"] = step.bit_length() - 1, pitch
    n_points = count + length - 1
    line = cp.empty(n_segments * pitch + 64, np.float32)
    frames = cp.empty((n_segments, 2))
    load_kernel("search/search.cu", "segments")(
        n_segments,
        THREADS,
        points=part.points,
        n_points=n_points,
        step=step,
        pitch=pitch,
        line=line,
        frames=frames,
    )
    made = DeviceWindows(
        part.points,
        length,
        count,
        line,
        place,
        cp.empty((count, 2)),
        cp.empty((count, 2), np.float32),
        cp.empty(count, np.float32),
    )
    load_kernel("search/search.cu", "moments")(
        blocks_for(count, THREADS),
        THREADS,
        points=part.points,
        n_windows=count,
        length=length,
        normalize=reduction.normalize,
        offset=rescaling.offset,
        scale=rescaling.scale,
        frames=frames,
        place=place,
        moments=made.moments,
        affine=made.affine,
        error=made.error,
    )
    return made


def join_channels(channels: list[DeviceWindows]) -> DeviceWindows:
    """Join the windows of several channels: a window is finite where it is so in all of them."""
    first, *others = channels
    error = first.error
    for one in others:
        known = (error >= 0) & (one.error >= 0)
        error = cp.where(known, error + one.error, np.float32(-1))
    # the sum of at most 128 is rounded
    error = error * np.float32(1 + 2**-16) if others else error
    return first._replace(error=error, others=tuple(others))


def bound_windows(windows: DeviceWindows, query: Query, warping: Warping) -> cp.ndarray:
    """Accumulated cost that each window has at least; without warping, that it has.

    A path through several channels costs at least what the best path of each does: the sum, or,
    where the largest cost of a path counts, the largest. That is less than it has, also without
    warping.
    """
    found = _bound_channel(windows, query, warping, 0)
    for channel, one in enumerate(windows.others, 1):
        more = _bound_channel(one, query, warping, channel)
        found = cp.maximum(found, more) if warping.largest else found + more
    return found


def _bound_channel(
    windows: DeviceWindows, query: Query, warping: Warping, channel: int
) -> cp.ndarray:
    """The bound of each window in one channel."""
    envelope = query.once(("envelope", channel), lambda: send_one(query.envelope[channel]))
    single = query.once(("single", channel), lambda: send_one(query.single[channel]))
    costs = cp.empty(windows.count, np.float32)
    load_kernel("search/search.cu", "bounds")(
        blocks_for(windows.count, THREADS),
        THREADS,
        line=windows.line,
        n_windows=windows.count,
        length=windows.length,
        place=windows.place,
        affine=windows.affine,
        envelope=envelope,
        query=single,
        squared=warping.squared,
        largest=warping.largest,
        ranges=0 if query.radius == 0 else 1 + (query.radius == windows.length - 1),
        cost=costs,
    )
    return costs


def least_of_runs(
    windows: DeviceWindows, listed: Listed, query: Query, interval: np.ndarray, *, upper: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The window of each run with the least lower or upper value, and that value, on the host."""
    run = max(query.exclusion + 1, min(RUN, windows.count // (16 * max(1, query.need))), 1)
    keys = filled(-(-windows.count // run), _NOTHING, np.uint64)
    load_kernel("search/search.cu", "minima")(
        _blocks(listed.n),
        THREADS,
        costs=listed.costs,
        **listed.arguments,
        error=windows.error,
        interval=interval,
        upper=upper,
        run=run,
        keys=keys,
    )
    found = keys.get()
    found = found[found != _NOTHING]
    bits = (found >> np.uint64(32)).astype(np.uint32)
    positions = (found & np.uint64(2**32 - 1)).astype(np.int64)
    return positions, bits.view(np.float32).astype(np.float64) / query.rescaling.scale


def within(
    windows: DeviceWindows,
    listed: Listed,
    query: Query,
    interval: np.ndarray,
    limit: float,
    *,
    keep: bool = False,
) -> Listed:
    """List the windows whose lower value does not exceed a limit."""
    found = cp.empty(listed.n, np.int32)
    count = cp.zeros(1, np.int32)
    kept = cp.empty(listed.n, np.float32) if keep else None
    load_kernel("search/search.cu", "choose")(
        _blocks(listed.n),
        THREADS,
        costs=listed.costs,
        **listed.arguments,
        error=windows.error,
        interval=interval,
        limit=limit * query.rescaling.scale,
        found=found,
        n_found=count,
        kept=kept,
    )
    return Listed(found, listed.n, count, kept)


def with_length(listed: Listed) -> Listed:
    """The same list, its length known on the host."""
    assert listed.positions is not None and listed.count is not None  # as `within` lists them
    n = int(listed.count.get()[0])
    costs = None if listed.costs is None else listed.costs[:n]
    return Listed(listed.positions[:n], n, None, costs)


@cache
def _resident(kernel: WarpKernel, device: int) -> int:
    """Blocks of a kernel that a device runs at a time."""
    function = load_kernel("search/search_warp.cu", kernel.name)
    per = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        function.function.kernel.ptr, ELASTIC_THREADS, 0
    )
    return max(1, per) * cp.cuda.Device(device).attributes["MultiProcessorCount"]


def warp_windows(
    windows: DeviceWindows, listed: Listed, query: Query, kernel: WarpKernel, interval: np.ndarray
) -> cp.ndarray:
    """Accumulated costs of listed windows without a band, in the order of the list.

    Infinite where the lower value, by `interval`, exceeds the limit of the query.
    """
    entries = cp.empty((listed.n, 4), np.int32)
    load_kernel("search/search.cu", "enter")(
        _blocks(listed.n),
        THREADS,
        **listed.arguments,
        place=windows.place,
        affine=windows.affine,
        error=windows.error,
        interval=interval,
        limit=query.limit * query.rescaling.scale,
        entries=entries,
    )
    costs = cp.empty(listed.n, np.float32)
    blocks = -(-listed.n * kernel.group // ELASTIC_THREADS)
    blocks = min(blocks, _resident(kernel, cp.cuda.Device().id))
    load_kernel("search/search_warp.cu", kernel.name)(
        blocks,
        ELASTIC_THREADS,
        query=query.columns(kernel),
        length=windows.length,
        G=kernel.group,
        line=windows.line,
        entries=entries,
        count=listed.count,
        n=listed.n,
        period=max(2, windows.length // (4 * LOOKS)),
        taken=cp.zeros(1, np.int32),
        out=costs,
        cell=NO_PARAMETERS,
    )
    return costs


def row_distances(
    windows: DeviceWindows,
    positions: cp.ndarray,
    query: Query,
    reduction: SubsequenceNeighbors,
    room: SearchRoom,
    *,
    certified: bool,
) -> Iterator[cp.ndarray]:
    """Distances (certified) or accumulated costs of windows laid out one after the other."""
    length, n_channels = windows.length, query.n_channels
    width = dtw.stride(length)
    type = np.float64 if certified else np.float32
    name = "rows_double" if certified else "rows_float"
    # all windows in float64 are a search themselves
    in_pairs = certified and reduction.precision != "float64"
    for first in range(0, len(positions), room.chunk):
        some = positions[first : first + room.chunk]
        n = len(some)
        buffer = cp.zeros(n * n_channels * width + 2 * dtw.PAD, type)
        shape = n, n_channels, width
        if in_pairs:
            items = np.zeros((n, 2), np.int32)
            items[:, 0] = np.arange(n)
            lengths, items = send(np.full(n, length, np.int32), items)
        else:
            lengths = filled(n, length, np.int32)
        rows = dtw.DeviceSeries(buffer, lengths, shape, length)
        grid = -(-length // THREADS), min(n, 65535)
        for channel, one in enumerate(windows.channels):
            arguments: dict[str, Any] = {
                "positions": some,
                "n": n,
                "length": length,
                "stride": n_channels * width,
                "out": rows.values[channel * width :] if channel else rows.values,
            }
            if certified:
                arguments |= {"points": one.points, "moments": one.moments}
                arguments["normalize"] = reduction.normalize
            else:
                arguments |= {"line": one.line, "place": one.place, "affine": one.affine}
            load_kernel("search/search.cu", name)(grid, THREADS, **arguments)
        other, warping = query.series(certified), reduction.warping
        reach = int(warping.radius(length, length))
        options: dict[str, Any] = {"reach": reach, "root": certified, "budget": room.edges}
        if in_pairs:
            yield dtw.certify(rows, other, items, warping, **options)
            continue
        yield dtw.distances(rows, other, warping, **options).ravel()
