"""Launches of the walk of a join: seeds of all bands and panels, then the walk itself."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import JOIN_SQUARE, SEED_FILTERS, SEED_WINDOWS
from ...core.reduction import Tile
from ...families.profile.join import Join
from ..loading import blocks_for, load_kernel
from .known import MeasuredNeighbors, Side
from .lines import PAD, DeviceLine, Searched, Steps
from .programs import JoinKernel, seed_kernel

__all__ = ["TileJoin", "launch"]

#: Most blocks of a launch along its second axis.
MOST_BLOCKS = 65535


class TileJoin(NamedTuple):
    """A join within a tile, as the launches share it."""

    join: Join
    kernel: JoinKernel
    lines: tuple[DeviceLine, DeviceLine]
    searched: tuple[Searched, Searched]
    regular: tuple[cp.ndarray, cp.ndarray]
    steps: tuple[Steps, Steps]
    tile: Tile
    level: float
    height: int
    sides: tuple[Side, Side]
    found: list[MeasuredNeighbors]
    at_a_time: int


def launch(search: TileJoin, row: int, stop: int, n_panels: int, again: bool) -> None:
    """Seeds of all bands and panels, then the walk; `again` if these rows were walked before."""
    join, kernel, tile = search.join, search.kernel, search.tile
    k = join.n_neighbors
    (line_a, line_b), (steps_a, steps_b) = search.searched, search.steps
    n_rows, n_cols = stop - row, tile.shape[1]
    n_bands = -(-n_rows // search.height)
    first_rows = cp.zeros((n_bands, n_cols), kernel.dtype)
    first_cols = cp.zeros((n_panels, -(-n_rows // 4) * 4 + PAD), kernel.dtype)
    _launch_seeds(
        search, first_rows, (line_b, tile.col, n_cols), (line_a, row, search.height), sign=1
    )
    _launch_seeds(
        search, first_cols, (line_a, row, n_rows), (line_b, tile.col, kernel.panel), sign=-1
    )
    sides = cp.asarray(np.array([side.addresses() for side in search.sides], np.int64))
    load_kernel("profile/join.cu", kernel.name)(
        blocks_for(n_panels, JOIN_SQUARE) * blocks_for(n_bands, JOIN_SQUARE) * JOIN_SQUARE**2,
        32,
        rows=steps_a.rows,
        q=steps_b.first,
        s=steps_b.second,
        weights=steps_b.weight,
        first_rows=first_rows,
        first_cols=first_cols,
        row_stride=n_cols,
        col_stride=first_cols.shape[1],
        groups_a=steps_a.groups,
        groups_b=steps_b.groups,
        row=row,
        row_stop=stop,
        col=tile.col,
        col_stop=tile.col_stop,
        height=search.height,
        n_strips=kernel.strips,
        n_panels=n_panels,
        least_apart=join.least_apart,
        length=join.length,
        n_neighbors=0 if again and k > 1 else k,
        exact=join.precision != "float32",
        sides=sides,
    )


def _launch_seeds(
    search: TileJoin,
    out: cp.ndarray,
    along: tuple[Searched, int, int],
    across: tuple[Searched, int, int],
    *,
    sign: int,
) -> None:
    """Compute covariances of chosen windows of one line with a run of windows of the other.

    Parameters
    ----------
    search : TileJoin
        The work.
    out : cupy.ndarray of shape (n_chosen, ...)
        First rows of bands, or first columns of panels.
    along : (Searched, int, int)
        Line, first window, and how many: the run, for each row of `out`.
    across : (Searched, int, int)
        Line, first window, and how far apart: those that the rows of `out` belong to.
    sign : int
        1 for first rows, -1 for first columns.
    """
    (line, first, count), (other, start, apart) = along, across
    steps_a, steps_b = search.steps
    kernel = load_kernel("profile/seeds.cu", seed_kernel(search.kernel))
    n_filters, stride = out.shape
    most = SEED_FILTERS * MOST_BLOCKS
    for some in range(0, n_filters, most):
        filters = min(most, n_filters - some)
        kernel(
            (blocks_for(count, SEED_WINDOWS), blocks_for(filters, SEED_FILTERS)),
            128,
            line=line.device.points,
            line_mean=line.device.mean,
            first=first,
            count=count,
            other=other.device.points,
            other_mean=other.device.mean,
            start=start + some * apart,
            apart=apart,
            n_filters=filters,
            n_other=other.mean.size,
            length=search.join.length,
            least_apart=search.join.least_apart,
            sign=sign,
            out=out[some:],
            stride=stride,
            rows=steps_a.rows,
            q=steps_b.first,
            s=steps_b.second,
        )
