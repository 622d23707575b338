"""The walk of MK on the GPU: launches by growing offset."""

from __future__ import annotations

import cupy as cp
import numpy as np

from ...core.reduction import Tile
from ...families.profile.mk import PairWalk, WalkedPairs, better
from ..loading import blocks_for, load_kernel
from .lines import DeviceLine
from .programs import MK_CAPACITY

__all__ = ["walk"]

#: Offsets of the first launch and of the largest; offsets of a thread.
FEWEST, MOST, RUN = 4, 2**16, 32


def walk(
    line: DeviceLine,
    order: cp.ndarray,
    gaps: cp.ndarray,
    reduction: PairWalk,
    tile: Tile,
    cancel: np.ndarray,
) -> WalkedPairs:
    """Walk over a tile: collect pairs, measure them, and go on with what that has shown.

    Parameters
    ----------
    line : DeviceLine
        The line.
    order, gaps : cupy.ndarray
        Those of the reduction, on the device.
    reduction : PairWalk
        The work.
    tile : Tile
        Positions and offsets.
    cancel : ndarray
        Turns 1 on an interrupt.

    Returns
    -------
    WalkedPairs
        The best pair, and how many were measured.
    """
    n_ordered, n_references = order.size, len(gaps)
    row, row_stop = tile.row, tile.row_stop
    offset, stop = reduction.first + tile.col, reduction.first + tile.col_stop
    capacity = max(MK_CAPACITY, row_stop - row)
    pairs, values = cp.empty((capacity, 2), np.int32), cp.empty(capacity)
    best = reduction.best
    known, count = cp.array([best[0]]), cp.zeros(1, np.uint64)
    slope, shift = reduction.limit
    chunk, measured = FEWEST, 0
    while offset < stop and not cancel[0]:
        last = min(row_stop, n_ordered - offset)
        if last <= row:
            break
        nearest = float((gaps[0, row + offset : last + offset] - gaps[0, row:last]).min())
        if nearest > np.float32(slope * best[0] + shift):
            break
        here = min(chunk, stop - offset)
        count.fill(0)
        load_kernel("profile/mk.cu", "bound")(
            (blocks_for(last - row, 256), blocks_for(here, RUN)),
            256,
            order=order,
            gaps=gaps,
            n_ordered=n_ordered,
            n_references=n_references,
            row=row,
            row_stop=last,
            first=offset,
            stop=offset + here,
            run=RUN,
            best=known,
            slope=slope,
            shift=shift,
            exclusion=reduction.exclusion,
            best_first=best[1],
            best_second=best[2],
            capacity=capacity,
            count=count,
            pairs=pairs,
        )
        found = int(count[0])
        if found > capacity:
            chunk = max(1, here // 2)
            continue
        if found:
            measured += found
            load_kernel("profile/mk.cu", "measure")(
                blocks_for(found, 128),
                128,
                points=line.points,
                mean=line.mean,
                inverse=line.inverse,
                length=reduction.length,
                normalize=reduction.normalize,
                pairs=pairs,
                n_pairs=found,
                best=known,
                out=values,
            )
            least = float(values[:found].min())
            if least < np.inf:
                equal = pairs[:found][values[:found] == least].astype(np.int64)
                key = int(((equal[:, 0] << 32) | equal[:, 1]).min())
                best = better(best, (least, key >> 32, key & (2**32 - 1)))
        offset += here
        if found < capacity // 4:
            chunk = min(2 * here, MOST)
    return WalkedPairs(best[0], best[1], best[2], measured)
