"""Launches of the walk of a join: seeds of all bands and panels, then the walk itself."""

from __future__ import annotations

from collections.abc import Callable
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

__all__ = ["TileJoin", "launch", "launch_seeds"]

#: Most blocks of a launch along its second axis.
MOST_BLOCKS = 65535


class TileJoin(NamedTuple):
    """A join within a tile, as the launches share it; `meanwhile` is for the host, as they run."""

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
    meanwhile: Callable[[], None]


def launch(search: TileJoin, row: int, stop: int, n_panels: int, again: bool) -> None:
    """Seeds of all bands and panels, then the walk; `again` if these rows were walked before."""
    join, kernel, tile = search.join, search.kernel, search.tile
    k = join.n_neighbors
    steps_a, steps_b = search.steps
    n_rows, n_cols = stop - row, tile.shape[1]
    n_bands = -(-n_rows // search.height)
    first_rows = cp.zeros((n_bands, n_cols), kernel.dtype)
    first_cols = cp.zeros((n_panels, -(-n_rows // 4) * 4 + PAD), kernel.dtype)
    columns, rows = (1, tile.col, n_cols), (0, row, n_rows)
    bands, panels = (0, row, search.height), (1, tile.col, kernel.panel)
    for out, along, across in ((first_rows, columns, bands), (first_cols, rows, panels)):
        launch_seeds(
            *(join, kernel, search.searched, search.steps, out, along, across),
            least_apart=join.least_apart,
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


def launch_seeds(
    join: Join,
    kernel: JoinKernel,
    searched: tuple[Searched, Searched],
    steps: tuple[Steps, Steps],
    out: cp.ndarray,
    along: tuple[int, int, int],
    across: tuple[int, int, int],
    *,
    least_apart: int,
) -> None:
    """Compute covariances of chosen windows of one line with a run of windows of the other.

    Parameters
    ----------
    join : Join
        The work.
    kernel : JoinKernel
        The walk that begins with these.
    searched, steps : tuple of two
        Lines of the search and their steps, along rows and columns.
    out : cupy.ndarray of shape (n_chosen, ...)
        First rows of bands, or first columns of panels.
    along : (int, int, int)
        Which line, first window, and how many: the run, for each row of `out`.
    across : (int, int, int)
        Which line, first window, and how far apart: those that the rows of `out` belong to. Where
        they lie along the columns, what is computed enters these from the left.
    least_apart : int
        Where nothing is farther apart, columns after rows, nothing is computed.
    """
    (which, first, count), (which_other, start, apart) = along, across
    line, other = searched[which], searched[which_other]
    steps_a, steps_b = steps
    function = load_kernel("profile/seeds.cu", seed_kernel(kernel))
    n_filters, stride = out.shape
    most = SEED_FILTERS * MOST_BLOCKS
    for some in range(0, n_filters, most):
        filters = min(most, n_filters - some)
        function(
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
            length=join.length,
            least_apart=least_apart,
            sign=-1 if which_other else 1,
            out=out[some:],
            stride=stride,
            rows=steps_a.rows,
            q=steps_b.first,
            s=steps_b.second,
        )
