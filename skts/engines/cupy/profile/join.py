"""Joins on the GPU: the rows of a tile are walked, and what is listed is measured."""

from __future__ import annotations

import cupy as cp
import numpy as np

from ...core.reduction import Tile
from ...families.profile.join import Join
from ..transfers import bring
from .candidates import measure_all
from .known import Known
from .lines import DeviceLine, Searched, Steps
from .programs import SEED_BYTES, choose_height, choose_join
from .walk import TileJoin, launch

__all__ = ["nearest"]


def nearest(
    join: Join,
    lines: tuple[DeviceLine, DeviceLine],
    searched: tuple[Searched, Searched],
    steps: tuple[Steps, Steps],
    regular: tuple[cp.ndarray, cp.ndarray],
    tile: Tile,
    level: float,
    known: Known,
) -> None:
    """Find the nearest windows within a tile.

    Parameters
    ----------
    join : Join
        The work.
    lines, searched, steps, regular : tuple of two
        Lines on the device, those of the search, their steps, and which windows take part, along
        rows and columns.
    tile : Tile
        Rows and columns.
    level : float
        As in `prepare`.
    known : Known
        What is known and what has been found, to which this adds.
    """
    kernel = choose_join(join, tile.shape, known.dtype)
    walked = tile._replace(col=max(tile.col, join.since)) if join.within else tile
    _walk(
        TileJoin(
            join,
            kernel,
            lines,
            searched,
            regular,
            steps,
            walked,
            level,
            choose_height(tile.shape, known.dtype),
            known.sides,
            known.found,
            known.at_a_time,
            known.make_room,
        )
    )


def _walk(search: TileJoin) -> None:
    """Search the tile, launch by launch, and measure the runs that are listed."""
    tile, kernel = search.tile, search.kernel
    n_panels = -(-tile.shape[1] // kernel.panel)
    size = np.dtype(kernel.dtype).itemsize
    bands = max(1, SEED_BYTES // (size * search.height * max(1, n_panels)))
    rows = bands * search.height
    for start in range(tile.row, tile.row_stop, rows):
        if search.join.within and tile.col_stop - 1 - start <= search.join.exclusion:
            break
        _walk_rows(search, start, min(start + rows, tile.row_stop), n_panels)
    measure_all(search)


def _walk_rows(search: TileJoin, row: int, stop: int, n_panels: int, again: bool = False) -> None:
    """Walk some rows; where a list is too short, again, and then by halves."""
    counts = search.sides[0].counts
    before = bring(counts)
    launch(search, row, stop, n_panels, again)
    search.meanwhile()
    after = bring(counts)
    if all(count <= len(side.runs) for count, side in zip(after, search.sides, strict=True)):
        return
    # runs listed before are measured, which makes room; and limits are lower now, so that most of
    # the runs just listed would not be listed again
    counts.set(before)
    measure_all(search)
    if not again:
        _walk_rows(search, row, stop, n_panels, True)
        return
    middle = row + max(1, (stop - row) // 2)
    if stop - row > search.height:
        middle = row + -(-(stop - row) // (2 * search.height)) * search.height
    _walk_rows(search, row, middle, n_panels, True)
    _walk_rows(search, middle, stop, n_panels, True)
