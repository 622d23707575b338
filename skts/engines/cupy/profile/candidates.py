"""Candidates on the device: what the walk of a join has listed is measured."""

from __future__ import annotations

from collections.abc import Sequence

import cupy as cp
import numpy as np

from ...core.constants import TAKES_NO_PART
from ..loading import blocks_for, load_kernel
from ..transfers import near, read_number
from .known import MeasuredNeighbors, from_leading_bits
from .walk import TileJoin

__all__ = ["measure_all"]

#: Threads of a block that measures: one for each cell or pair.
THREADS = 128

_population = cp.ElementwiseKernel(
    "int32 bits", "int32 count", "count = __popc(bits)", "population"
)


def measure_all(search: TileJoin) -> None:
    """Measure the runs that are listed, and empty the lists."""
    for at in range(2 if search.join.within else 1):
        side = search.sides[at]
        runs = side.runs[: read_number(side.count)]
        listed, tops = near(runs, side.tops)
        runs = cp.asarray(listed[listed[:, 3] >= tops[listed[:, 0]]])
        side.count.fill(0)
        lanes = 1 if at else search.kernel.columns
        for start in range(0, len(runs), search.at_a_time):
            some = runs[start : start + search.at_a_time]
            _measure(search, at, cp.ascontiguousarray(some), lanes)


def _addresses(lines: list[Sequence[cp.ndarray]]) -> cp.ndarray:
    """Structures of pointers for kernels."""
    return cp.asarray(np.array([[array.data.ptr for array in line] for line in lines], np.int64))


def _measure(search: TileJoin, at: int, runs: cp.ndarray, lanes: int) -> None:
    """Certify the pairs of some runs that may be among the nearest."""
    join, side, found = search.join, search.sides[at], search.found[at]
    k = join.n_neighbors
    lines = _addresses([search.lines[i][:3] for i in _order(at)])
    (tops,) = near(side.tops)
    reached = cp.asarray(from_leading_bits(tops, search.kernel.dtype))
    if join.precision == "float32":
        reached.fill(0)  # scores in float32 may be too high
    windows, places, uppers = _refine(search, at, runs, lanes, reached)
    windows, places = _keep(windows, places, uppers, reached)
    count = windows.size
    if count == 0:
        return
    distances = cp.empty(count)
    before = near(found.distances[:, 0].copy())[0] if k == 1 else None
    load_kernel("profile/candidates.cu", "certify")(
        blocks_for(count, THREADS),
        THREADS,
        windows=windows,
        places=places,
        count=count,
        lines=lines,
        length=join.length,
        normalize=join.normalize,
        distances=found.distances if k == 1 else None,
        found=distances,
    )
    if k > 1:
        _keep_nearest(found, windows, distances, places)
        return
    # the former nearest is replaced where a nearer one was found
    after, indices = near(found.distances[:, 0], found.indices)
    indices[after < before] = TAKES_NO_PART
    found.indices = cp.asarray(indices)
    load_kernel("profile/candidates.cu", "first_of_equals")(
        blocks_for(count, THREADS),
        THREADS,
        windows=windows,
        places=places,
        count=count,
        distances=found.distances,
        found=distances,
        indices=found.indices,
    )


def _refine(
    search: TileJoin, at: int, runs: cp.ndarray, lanes: int, reached: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
    """Windows, others, and upper bounds of the scores of all cells of some runs.

    With one neighbour of each window, `reached` rises to the best lower bounds.
    """
    join = search.join
    searched = _addresses([[*search.searched[i].device, search.regular[i]] for i in _order(at)])
    offsets, owners = _cells(runs, lanes)
    n_cells = owners.size
    windows, places = cp.empty(n_cells, np.int32), cp.empty(n_cells, np.int32)
    uppers = cp.empty(n_cells)
    load_kernel("profile/candidates.cu", "refine")(
        blocks_for(n_cells, THREADS),
        THREADS,
        list=runs,
        offsets=offsets,
        owners=owners,
        count=n_cells,
        lanes=lanes,
        lines=searched,
        # the last columns of a run may belong to the next tile
        n_others=search.tile.row_stop if at else search.tile.col_stop,
        length=join.length,
        least_apart=join.least_apart,
        sign=-1 if at else 1,
        normalize=join.normalize,
        level=search.level,
        raising=join.n_neighbors == 1,
        reached=reached,
        windows=windows,
        places=places,
        uppers=uppers,
    )
    return windows, places, uppers


def _keep(
    windows: cp.ndarray, places: cp.ndarray, uppers: cp.ndarray, reached: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray]:
    """Windows and others of the cells whose upper bounds are not below what the window reaches."""
    kept, count = cp.empty((2, windows.size), np.int32), cp.zeros(1, np.int32)
    load_kernel("profile/candidates.cu", "keep")(
        blocks_for(windows.size, THREADS),
        THREADS,
        windows=windows,
        places=places,
        uppers=uppers,
        count=windows.size,
        reached=reached,
        kept_windows=kept[0],
        kept_places=kept[1],
        n_kept=count,
    )
    n_kept = read_number(count)
    return kept[0, :n_kept], kept[1, :n_kept]


def _cells(runs: cp.ndarray, lanes: int) -> tuple[cp.ndarray, cp.ndarray]:
    """Make cells of runs, so many of each bit: where those of a run begin, and whose each is."""
    (some,) = near(runs)
    if isinstance(some, np.ndarray):
        bits = np.ascontiguousarray(some[:, 2]).view(np.uint8).reshape(-1, 4)
        each = lanes * np.unpackbits(bits, axis=1).sum(axis=1, dtype=np.int64)
        owners = np.repeat(np.arange(len(each), dtype=np.int32), each)
        return cp.asarray(np.cumsum(each) - each), cp.asarray(owners)
    cells = cp.cumsum(_population(runs[:, 2]).astype(np.int64) * lanes)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cells[:-1]])
    owners = cp.zeros(read_number(cells[-1:]), np.int32)
    owners[offsets[1:]] = 1
    return offsets, cp.cumsum(owners, dtype=np.int32)


def _order(at: int) -> tuple[int, int]:
    """The line whose windows look for neighbours on a side of a join, and the other one."""
    return (0, 1) if at == 0 else (1, 0)


def _keep_nearest(
    found: MeasuredNeighbors, windows: cp.ndarray, distances: cp.ndarray, places: cp.ndarray
) -> None:
    """Take measured neighbours of some windows, and keep the k nearest of each."""
    k = found.distances.shape[1]
    touched = cp.unique(windows)
    windows = cp.concatenate([windows, cp.repeat(touched, k)])
    distances = cp.concatenate([distances, found.distances[touched].ravel()])
    places = cp.concatenate([places, found.indices[touched].ravel()])
    order = cp.lexsort(cp.stack([places.astype(np.float64), distances, windows.astype(np.float64)]))
    windows, distances, places = windows[order], distances[order], places[order]
    rank = cp.arange(windows.size) - cp.searchsorted(windows, windows)
    near = rank < k
    found.distances[windows[near], rank[near]] = distances[near]
    found.indices[windows[near], rank[near]] = places[near]
