"""Candidates on the device: what the walk of a join has listed is measured."""

from __future__ import annotations

from collections.abc import Sequence

import cupy as cp
import numpy as np

from ..loading import blocks_for, load_kernel, multiprocessors
from ..transfers import bring, read_number, send
from .known import MeasuredNeighbors
from .walk import TileJoin

__all__ = ["BLOCKS", "THREADS", "addresses_of", "measure_all", "refine"]

#: Threads of a block that measures: one for each cell or pair.
THREADS = 128
#: Blocks for each multiprocessor that take pairs in turns: how many there are the host is not told.
BLOCKS = 16


def measure_all(search: TileJoin) -> None:
    """Measure the runs that are listed, and empty the lists."""
    n_sides = 2 if search.join.within else 1
    sides = search.sides[:n_sides]
    counts = bring(sides[0].counts)[:n_sides].tolist()
    sides[0].counts.fill(0)
    # what both sides need travels together
    totals, *addresses = send(
        np.zeros((n_sides, 2), np.uint64),
        *(addresses_of([search.lines[i][:3] for i in _order(at)]) for at in range(n_sides)),
        *(
            addresses_of([[*search.searched[i].device, search.regular[i]] for i in _order(at)])
            for at in range(n_sides)
        ),
    )
    chosen = [
        _choose(search, at, side.runs, counts[at], totals[at]) for at, side in enumerate(sides)
    ]
    for at, (n_runs, n_cells) in enumerate(bring(totals).tolist()):
        runs, lines = chosen[at], (addresses[at], addresses[n_sides + at])
        if n_runs <= search.at_a_time:
            _measure(search, at, runs[:n_runs], n_cells, lines)
            continue
        for start in range(0, n_runs, search.at_a_time):
            listed = runs[start : min(start + search.at_a_time, n_runs)]
            (again,) = send(np.zeros(2, np.uint64))
            some = _choose(search, at, listed, len(listed), again)
            n_some, n_cells = bring(again).tolist()
            _measure(search, at, some[:n_some], n_cells, lines)


def addresses_of(lines: list[Sequence[cp.ndarray]]) -> np.ndarray:
    """Structures of pointers for kernels."""
    return np.array([[array.data.ptr for array in line] for line in lines], np.int64)


def _lanes(search: TileJoin, at: int) -> int:
    """Cells of each bit of a run."""
    return 1 if at else search.kernel.columns


def _choose(
    search: TileJoin, at: int, listed: cp.ndarray, count: int, totals: cp.ndarray
) -> cp.ndarray:
    """Runs that windows have not surpassed; `totals` gets how many there are, and their cells."""
    chosen = cp.empty((count, 4), np.int32)
    if count:
        load_kernel("profile/candidates.cu", "choose")(
            blocks_for(count, THREADS),
            THREADS,
            list=listed,
            count=count,
            tops=search.sides[at].tops,
            lanes=_lanes(search, at),
            chosen=chosen,
            totals=totals,
        )
    return chosen


def _measure(
    search: TileJoin,
    at: int,
    runs: cp.ndarray,
    n_cells: int,
    addresses: tuple[cp.ndarray, cp.ndarray],
) -> None:
    """Certify the pairs of some runs that may be among the nearest."""
    if n_cells == 0:
        return
    join, side, found = search.join, search.sides[at], search.found[at]
    k, (lines, searched) = join.n_neighbors, addresses
    reached = cp.empty(side.tops.size)
    load_kernel("profile/candidates.cu", "least_scores")(
        blocks_for(side.tops.size, THREADS),
        THREADS,
        tops=side.tops,
        count=side.tops.size,
        single=search.kernel.dtype is np.float32,
        exact=join.precision != "float32",  # scores in float32 may be too high
        reached=reached,
    )
    windows, places, uppers = refine(search, at, runs, n_cells, searched, reached)
    windows, places, n_kept = _keep(windows, places, uppers, reached)
    # bounds are not needed any more
    distances, pairs = uppers, {"windows": windows, "places": places, "n_pairs": n_kept}
    blocks = min(blocks_for(n_cells, THREADS), BLOCKS * multiprocessors())
    load_kernel("profile/candidates.cu", "certify")(
        blocks,
        THREADS,
        **pairs,
        lines=lines,
        length=join.length,
        normalize=join.normalize,
        distances=found.distances if k == 1 else None,
        indices=found.indices if k == 1 else None,
        found=distances,
    )
    if k > 1:
        kept = read_number(n_kept)
        if kept:
            _keep_nearest(found, windows[:kept], distances[:kept], places[:kept])
        return
    load_kernel("profile/candidates.cu", "first_of_equals")(
        blocks,
        THREADS,
        **pairs,
        distances=found.distances,
        found=distances,
        indices=found.indices,
    )


def refine(
    search: TileJoin,
    at: int,
    runs: cp.ndarray,
    n_cells: int,
    searched: cp.ndarray,
    reached: cp.ndarray,
) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
    """Windows, others, and upper bounds of the scores of all cells of some runs.

    With one neighbour of each window, `reached` rises to the best lower bounds.
    """
    join, lanes = search.join, _lanes(search, at)
    offsets, owners = cp.empty(len(runs), np.int64), cp.empty(n_cells, np.int32)
    load_kernel("profile/candidates.cu", "spread")(
        blocks_for(len(runs), THREADS),
        THREADS,
        runs=runs,
        count=len(runs),
        lanes=lanes,
        offsets=offsets,
        owners=owners,
        n_cells=cp.zeros(1, np.uint64),
    )
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
) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
    """Windows and others of the cells whose upper bounds their windows do not surpass; how many."""
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
    return kept[0], kept[1], count


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
