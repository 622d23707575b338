"""Candidates on the device: what a walk has listed is scored, and the best is certified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import PAIR_COLUMNS, PAIR_ROWS, PAIR_WARPS, TAKES_NO_PART
from ...families.profile.join import Join
from ..loading import blocks_for, load_kernel, multiprocessors
from ..transfers import bring, filled, read_number, send
from .known import MeasuredNeighbors
from .programs import pairs_kernel
from .walk import TileJoin

__all__ = [
    "THREADS",
    "Pairs",
    "addresses_of",
    "certify_nearest",
    "measure_all",
    "score_runs",
    "searched_lines",
]

#: Threads of a block that measures: one for each cell or pair.
THREADS = 128
#: Blocks for each multiprocessor that take pairs, or runs, in turns: how many there are the host is
#: not told.
BLOCKS = 16


class Pairs(NamedTuple):
    """Pairs of windows on the device.

    Attributes
    ----------
    windows, places : cupy.ndarray of int32
        The windows that look for neighbours, and those that they find.
    values : cupy.ndarray of float64
        Upper bounds of their scores, or their covariances.
    count : cupy.ndarray of one uint64
        How many there are, or were found where that is more than there is room for.
    """

    windows: cp.ndarray
    places: cp.ndarray
    values: cp.ndarray
    count: cp.ndarray

    @classmethod
    def room_for(cls, capacity: int) -> Pairs:
        """Return room for so many pairs, which holds none."""
        windows, places = cp.empty((2, capacity), np.int32)
        return cls(windows, places, cp.empty(capacity), cp.zeros(1, np.uint64))


def measure_all(search: TileJoin) -> None:
    """Measure the runs that are listed, and empty the lists."""
    n_sides = 2 if search.join.within else 1
    sides = search.sides[:n_sides]
    counts = bring(sides[0].counts)[:n_sides].tolist()
    sides[0].counts.fill(0)
    # what both sides need travels together
    totals, searched, *addresses = send(
        np.zeros((n_sides, 2), np.uint64),
        searched_lines(search),
        *(addresses_of([search.lines[i][:3] for i in _order(at)]) for at in range(n_sides)),
    )
    chosen = [
        _choose(search, at, side.runs, counts[at], totals[at]) for at, side in enumerate(sides)
    ]
    for at, (n_runs, n_cells) in enumerate(bring(totals).tolist()):
        runs, lines = chosen[at], (addresses[at], searched)
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


def searched_lines(search: TileJoin) -> np.ndarray:
    """Return the kernel's ``Searched`` of the rows and of the columns."""
    return np.array(
        [
            [array.data.ptr for array in (*line.device, regular, steps.groups)] + [line.points.size]
            for line, regular, steps in zip(
                search.searched, search.regular, search.steps, strict=True
            )
        ],
        np.int64,
    )


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
    pairs = Pairs.room_for(n_cells)
    score_runs(search, at, runs, searched, reached, pairs, raising=k == 1)
    if k == 1:
        certify_nearest(lines, join, pairs, reached, (found.distances[:, 0], found.indices[:, 0]))
        return
    kept = _keep(pairs, reached)
    # bounds are not needed any more
    distances = pairs.values
    _certify(kept, lines, join, distances)
    count = read_number(kept["n_pairs"])
    if count:
        _keep_nearest(found, kept["windows"][:count], distances[:count], kept["places"][:count])


def _keep(
    pairs: Pairs, reached: cp.ndarray, chosen: cp.ndarray | None = None
) -> dict[str, cp.ndarray]:
    """Return arguments of kernels: the pairs that windows have not surpassed.

    Where `chosen` is given, the place of one such pair of each window goes there, and only the
    others are returned.
    """
    capacity = pairs.windows.size
    (windows, places), count = cp.empty((2, capacity), np.int32), cp.zeros(1, np.int32)
    load_kernel("profile/candidates.cu", "keep")(
        _blocks(capacity),
        THREADS,
        windows=pairs.windows,
        places=pairs.places,
        uppers=pairs.values,
        n_pairs=pairs.count,
        reached=reached,
        chosen=chosen,
        kept_windows=windows,
        kept_places=places,
        n_kept=count,
    )
    return {"windows": windows, "places": places, "n_pairs": count}


def _certify(
    kept: dict[str, cp.ndarray],
    lines: cp.ndarray,
    join: Join,
    found: cp.ndarray,
    nearest: tuple[cp.ndarray | None, cp.ndarray | None] = (None, None),
) -> None:
    """Certify the pairs that `_keep` has returned; the `nearest` distances fall to theirs."""
    load_kernel("profile/candidates.cu", "certify")(
        _blocks(found.size),
        THREADS,
        **kept,
        lines=lines,
        length=join.length,
        normalize=join.normalize,
        distances=nearest[0],
        indices=nearest[1],
        found=found,
    )


def _blocks(count: int) -> int:
    """Blocks that take at most so many pairs in turns."""
    return min(blocks_for(count, THREADS), BLOCKS * multiprocessors())


def score_runs(
    search: TileJoin,
    at: int,
    runs: cp.ndarray,
    searched: cp.ndarray,
    reached: cp.ndarray,
    pairs: Pairs,
    *,
    raising: bool,
    covariances: bool = False,
) -> None:
    """Add the pairs of some runs whose scores may reach what their windows need.

    Parameters
    ----------
    search : TileJoin
        The work.
    at : int
        The side whose windows look for neighbours.
    runs : cupy.ndarray of shape (n_runs, 4)
        Runs of that side.
    searched : cupy.ndarray
        The `searched_lines`.
    reached : cupy.ndarray of float64
        Scores that windows are known to reach. Where `raising`, they rise to the best lower bounds.
    pairs : Pairs
        Gets the pairs, with upper bounds of their scores or with their `covariances`.
    """
    join, tile, count = search.join, search.tile, len(runs)
    origin, n_others = (tile.col, tile.row_stop) if at else (tile.row, tile.col_stop)
    heads, n_heads = cp.empty(count, np.int32), cp.zeros(1, np.int32)
    load_kernel("profile/pairs.cu", "heads")(
        blocks_for(count, THREADS),
        THREADS,
        list=runs,
        count=count,
        origin=origin,
        size=PAIR_COLUMNS if at else PAIR_ROWS,
        places=heads,
        n_heads=n_heads,
    )
    work = {
        "lines": searched,
        "side": at,
        "lanes": _lanes(search, at),
        "origin": origin,
        # the last columns of a run may belong to the next tile
        "n_others": n_others,
        "length": join.length,
        "least_apart": join.least_apart,
        "level": search.level,
    }
    found = {
        "reached": reached,
        "raising": raising,
        "capacity": pairs.windows.size,
        "windows": pairs.windows,
        "places": pairs.places,
        "uppers": None if covariances else pairs.values,
        "covariances": pairs.values if covariances else None,
        "n_pairs": pairs.count,
    }
    load_kernel("profile/pairs.cu", pairs_kernel(join.normalize))(
        min(blocks_for(count, PAIR_WARPS), BLOCKS * multiprocessors()),
        32 * PAIR_WARPS,
        list=runs,
        count=count,
        heads=heads,
        n_heads=n_heads,
        work=work,
        found=found,
    )


def certify_nearest(
    lines: cp.ndarray,
    join: Join,
    pairs: Pairs,
    reached: cp.ndarray,
    nearest: tuple[cp.ndarray, cp.ndarray],
) -> None:
    """Certify the pairs that windows have not surpassed, and keep the nearest of each window.

    Parameters
    ----------
    lines : cupy.ndarray
        Addresses of the lines of the windows and of the others, for certified distances.
    join : Join
        The work.
    pairs : Pairs
        Pairs with upper bounds of their scores, which are overwritten.
    reached : cupy.ndarray of float64
        Scores that windows reach.
    nearest : tuple of (distances, indices)
        Neighbours that are known, to which this adds.
    """
    distances, indices = nearest
    chosen = filled(distances.size, TAKES_NO_PART, np.int32)
    others = _keep(pairs, reached, chosen)
    load_kernel("profile/candidates.cu", "certify_chosen")(
        blocks_for(chosen.size, THREADS),
        THREADS,
        lines=lines,
        chosen=chosen,
        n_windows=chosen.size,
        length=join.length,
        normalize=join.normalize,
        distances=distances,
        indices=indices,
    )
    found = pairs.values  # bounds are not needed any more
    _certify(others, lines, join, found, nearest)
    load_kernel("profile/candidates.cu", "first_of_equals")(
        _blocks(found.size), THREADS, **others, distances=distances, found=found, indices=indices
    )


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
