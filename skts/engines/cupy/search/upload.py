"""Parts of a tile of subsequence search: points on their way to the device."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import _maps_file
from ...families.search.subsequence import SubsequenceNeighbors
from .room import SearchRoom

__all__ = ["UploadedPart", "upload_parts"]


class UploadedPart(NamedTuple):
    """Points of a part of a tile on the device, from window `first` of the tile on.

    They are there once `ready` has been reached, and may be overwritten after `used`; both are None
    for points that have been there before, and stay.
    """

    first: int
    points: cp.ndarray
    ready: cp.cuda.Event | None = None
    used: cp.cuda.Event | None = None

    def wait(self) -> None:
        """Let the current stream wait until the points are there."""
        if self.ready is not None:
            cp.cuda.get_current_stream().wait_event(self.ready)

    def release(self) -> None:
        """Say that the current stream has been given all that needs the points."""
        if self.used is not None:
            self.used.record()


@dataclass
class ResidentPoints:
    """Points of a tile that stay on the device; the first `filled` of them are there."""

    points: cp.ndarray
    filled: int = 0


def upload_parts(
    reduction: SubsequenceNeighbors,
    tile: Tile,
    n_points: int,
    room: SearchRoom,
    prepared: PreparedStore,
) -> Generator[UploadedPart, None, None]:
    """Copy parts of a tile to the device, by a stream of its own, while others are searched.

    A part is still being copied when it is yielded. The points of a single series stay on the
    device if nobody can change them and they take little of the memory. Others go to two buffers
    in turn, each of which is used again two parts later, once `used` has been reached.
    """
    longest, series, size = reduction.longest, reduction.series, room.windows
    owner = series.parts[0]
    unchanging = len(series.parts) == 1 and not owner.flags.writeable and not _maps_file(owner)
    kept = None
    if unchanging and 8 * series.n_points <= room.keep:
        key = ("points", cp.cuda.Device().id, tile.col, n_points)
        kept = prepared.get(owner, key, lambda: (ResidentPoints(cp.empty(n_points)), 8 * n_points))
        if kept.filled == n_points:
            for first in range(0, max(1, tile.shape[1]), size):
                yield UploadedPart(first, kept.points[first : first + size + longest - 1])
            return
    stream = cp.cuda.Stream(non_blocking=True)
    most = min(n_points, size + longest - 1)
    pinned = cp.cuda.alloc_pinned_memory(2 * 8 * most)
    host = np.frombuffer(pinned, np.float64, 2 * most).reshape(2, most)
    device = cp.empty((2, most)) if kept is None else None
    ready: list[cp.cuda.Event] = []
    used: list[cp.cuda.Event] = []
    # the current stream may still use the former contents of this memory
    begun = cp.cuda.Event(disable_timing=True)
    begun.record()
    stream.wait_event(begun)
    try:
        for index, first in enumerate(range(0, max(1, tile.shape[1]), size)):
            half, stop = index % 2, min(first + size + longest - 1, n_points)
            if index >= 2:
                ready[index - 2].synchronize()
            if device is not None:
                if index >= 2:
                    stream.wait_event(used[index - 2])
                begin, points = first, device[half, : stop - first]
                target = points
            elif kept is not None:
                begin, points = max(first, kept.filled), kept.points[first:stop]
                target = kept.points[begin:stop]
            if begin < stop:
                piece = series.piece(tile.col + begin, tile.col + stop, host[half])
                target.set(piece, stream=stream)
            if kept is not None:
                kept.filled = max(kept.filled, stop)
            for events in (ready, used):
                events.append(cp.cuda.Event(disable_timing=True))
            ready[-1].record(stream)
            yield UploadedPart(first, points, ready[-1], used[-1])
    finally:
        stream.synchronize()
