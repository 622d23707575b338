"""Plans: how a piece of work is computed, decided before any of it is.

Memory is planned before anything is computed: the planner picks the largest rectangle of grid cells
whose footprint, as the engine states it, stays inside the budget. A smaller budget gives smaller
tiles; it never moves the grid, and so never changes a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..._config import get_config, using
from ...exceptions import MemoryBudgetError
from .budget import format_bytes
from .engine import Engine
from .reduction import FollowedUp, Reduction, Stoppable, Tile

__all__ = ["Plan", "balance", "check_smallest", "halve", "make_plan", "plan_tiles", "spread"]

#: Tiles of less than the average work of a worker, divided by this, are not cut for balance.
SMALLEST_SHARE = 16
#: Bytes that a tile of so many rows and columns takes: shared by all workers, and of each worker.
Footprint = Callable[[int, int], tuple[int, int]]

#: Bytes that are held, about, for a number of data that are not divided: with statistics, steps of
#: a join, and best matches.
HELD = 256


@dataclass(frozen=True)
class Plan:
    """How a reduction is computed in this process.

    Made once, by `make_plan`, and only read after that: by the executor, the engine, the progress
    bar. Several runs may use one engine at the same time, each with its own plan.

    Attributes
    ----------
    reduction : Reduction
        The work.
    engine : Engine
        Who computes it.
    devices : tuple of int or None
        Numbers of the devices that it goes to; None where the engine has no choice.
    tiles : tuple of Tile
        In the order in which they are handed out.
    workers : int
        How many are computed at the same time.
    budget : int
        Bytes of working memory for all of it.
    prepared : int
        Bytes of the budget for what the engine prepares from arrays and keeps.
    memory : int
        Bytes that the workers hold at most, as planned.
    footprint : callable
        Bytes of a tile of so many rows and columns, as the engine states them: those that all
        workers share, and those of each. Asked once for each shape.
    """

    reduction: Reduction
    engine: Engine
    devices: tuple[int, ...] | None
    tiles: tuple[Tile, ...]
    workers: int
    budget: int
    prepared: int
    memory: int
    footprint: Footprint


def make_plan(
    reduction: Reduction, engine: Engine, *, n_jobs: int | None = None, area: Tile | None = None
) -> Plan:
    """Plan a piece of work, or an area of it, on an engine.

    Parameters
    ----------
    reduction : Reduction
        The work.
    engine : Engine
        Who computes it.
    n_jobs : int or None, default None
        Threads; see `run`.
    area : Tile or None, default None
        A rectangle of grid cells, in place of all the work.

    Returns
    -------
    Plan
        What to compute, in which parts, by how many workers.

    Raises
    ------
    MemoryBudgetError
        If the smallest part of the work, or of what its answer needs later, does not fit.
    """
    settings = get_config()
    devices = engine.devices(reduction) or settings["devices"]
    known: dict[tuple[int, int], tuple[int, int]] = {}

    def footprint(rows: int, cols: int) -> tuple[int, int]:
        """Ask the engine once for each shape."""
        if (rows, cols) not in known:
            known[rows, cols] = engine.footprint(reduction, rows, cols)
        return known[rows, cols]

    with using(settings | {"devices": devices}):
        budget = engine.budget()
        with engine.prepared.limited(budget, budget):
            for follow_up in reduction.follow_ups() if isinstance(reduction, FollowedUp) else ():
                check_smallest(follow_up, partial(engine.footprint, follow_up), budget)
            tiles, workers = plan_tiles(
                reduction,
                tile_work=engine.tile_work,
                row_scale=engine.row_scale_of(reduction),
                footprint=footprint,
                budget=budget,
                workers=engine.workers(n_jobs) * engine.lanes(reduction),
                area=area,
            )
            prepared, memory = budget, 0
            if tiles:
                widest = max(tiles, key=lambda tile: tile.shape[0] * tile.shape[1])
                shared, each = footprint(*widest.shape)
                # shared data are prepared ones; engines that share nothing count them per tile
                prepared = budget - workers * each if shared else budget
                if isinstance(reduction, Stoppable):
                    tiles = spread(tiles)
                tiles = balance(reduction, tiles, workers)
                workers = min(workers, len(tiles))
                memory = shared + workers * each
    return Plan(
        reduction, engine, devices, tuple(tiles), workers, budget, prepared, memory, footprint
    )


def check_smallest(
    reduction: Reduction, footprint: Footprint, budget: int, area: Tile | None = None
) -> tuple[int, int]:
    """Return the footprint of a cell of the grid; raise if it does not fit."""
    extent = reduction.shape if area is None else area.shape
    shared, each = footprint(*(min(c, n) for c, n in zip(reduction.cell, extent, strict=True)))
    if shared + each > budget:
        undivided, count = reduction.undivided_input
        why = f", as every part holds {undivided} in full" if undivided else ""
        if undivided and 2 * HELD * count < shared + each:
            why = ", most of it however short the series are"
        raise MemoryBudgetError(
            f"The smallest part of this work needs {format_bytes(shared + each)} of working "
            f"memory{why}; the budget is {format_bytes(budget)}. Raise it with "
            "skts.set_config(memory=...)."
        )
    return shared, each


def plan_tiles(
    reduction: Reduction,
    *,
    tile_work: int,
    footprint: Footprint,
    budget: int,
    workers: int,
    area: Tile | None = None,
    row_scale: int = 1,
) -> tuple[list[Tile], int]:
    """Cut the work into tiles of whole grid cells.

    Parameters
    ----------
    reduction : Reduction
        The work.
    tile_work : int
        Elementary steps at which a tile stops growing.
    footprint : callable
        Bytes that a tile of so many rows and columns takes while it is computed: those that all
        workers share, and those of each worker.
    budget : int
        Bytes that all workers may hold.
    workers : int
        Workers that are ready.
    area : Tile or None, default None
        A rectangle of grid cells, in place of all the work.
    row_scale : int, default 1
        How many times more steps tiles may have that grow along the rows, as long as eight tiles
        are left for each worker.

    Returns
    -------
    tiles : list of Tile
        Column by column, so that what is prepared from the columns is used while it is there.
    workers : int
        How many may work at once.

    Raises
    ------
    MemoryBudgetError
        If not even one cell on one worker fits.

    Notes
    -----
    Tiles grow along the columns first, with one cell of rows: the run of columns then does not
    depend on the number of rows, and what an engine prepares from it serves the next call. Square
    ones grow along both axes in turn, and leave several tiles to each worker, or are cut later.
    """
    area = area or Tile(0, reduction.shape[0], 0, reduction.shape[1])
    n_rows, n_cols = area.shape
    tiling = reduction.tiling
    if n_rows == 0 or n_cols == 0:
        return [], 0
    if workers == 1 and not tiling.single:
        # most work is small: one tile does
        small = n_rows * n_cols * reduction.step_work <= tile_work * tiling.scale
        if small and sum(footprint(n_rows, n_cols)) <= budget:
            return [area] if reduction.wanted(area) else [], 1
    rows, cols = (min(c, n) for c, n in zip(reduction.cell, area.shape, strict=True))
    shared, each = check_smallest(reduction, footprint, budget, area)
    workers = min(workers, max(1, (budget - shared) // max(1, each)))

    def fits(r: int, c: int) -> bool:
        if tiling.single:
            return False
        shared, each = footprint(r, c)
        return r * c * reduction.step_work <= tile_work and shared + workers * each <= budget

    tile_work *= tiling.scale
    if tiling.square and workers > 1 and not tiling.divisible:
        tile_work = min(tile_work, n_rows * n_cols * reduction.step_work // (8 * workers))
    if fits(n_rows, n_cols):
        rows, cols = n_rows, n_cols
    if tiling.square:
        while max(rows / n_rows, cols / n_cols) < 1 and fits(
            min(2 * rows, n_rows), min(2 * cols, n_cols)
        ):
            rows, cols = min(2 * rows, n_rows), min(2 * cols, n_cols)
    while cols < n_cols and fits(rows, min(2 * cols, n_cols)):
        cols = min(2 * cols, n_cols)
    if not tiling.square:
        all_steps = n_rows * n_cols * reduction.step_work
        tile_work = max(tile_work, min(row_scale * tile_work, all_steps // (8 * workers)))
    while rows < n_rows and fits(min(2 * rows, n_rows), cols):
        rows = min(2 * rows, n_rows)
    tiles = (
        Tile(row, min(row + rows, area.row_stop), col, min(col + cols, area.col_stop))
        for col in range(area.col, area.col_stop, cols)
        for row in range(area.row, area.row_stop, rows)
    )
    return [tile for tile in tiles if reduction.wanted(tile)], workers


def spread(tiles: list[Tile]) -> list[Tile]:
    """Order tiles so that any number of the first ones is spread over rows and columns.

    Where r and c count runs of rows and of columns, the tiles of one ``(r + c) mod n`` hold each of
    them once at most. Such sets follow each other as n is halved: 0, n/2, n/4, 3n/4, and so on.
    """
    height, width = (max(tile.shape[axis] for tile in tiles) for axis in (0, 1))
    places = [(tile.row // height, tile.col // width) for tile in tiles]
    number = 1 + max(map(max, places))
    bits = (number - 1).bit_length()
    ranks = [int(f"{place:0{bits}b}"[::-1], 2) for place in range(number)]
    order = sorted(range(len(tiles)), key=lambda at: ranks[sum(places[at]) % number])
    return [tiles[at] for at in order]


def balance(reduction: Reduction, tiles: list[Tile], workers: int) -> list[Tile]:
    """Cut tiles towards the end, so that workers of any speed finish at nearly the same time.

    With w workers a tile holds at most 1 / (2 w) of the work that is left, but no tile is cut that
    holds less than 1 / (`SMALLEST_SHARE` w) of all work. Only divisible reductions are cut.
    """
    if workers <= 1 or not reduction.tiling.divisible:
        return tiles
    left = sum(map(reduction.work, tiles))
    least = left / (SMALLEST_SHARE * workers)
    waiting, cut = list(reversed(tiles)), []
    while waiting:
        tile = waiting.pop()
        work = reduction.work(tile)
        halves = []
        if work > max(least, left / (2 * workers)):
            halves = [half for half in _cut(tile, reduction.cell) if reduction.wanted(half)]
        if halves:
            waiting += reversed(halves)
        else:
            cut.append(tile)
            left -= work
    return cut


def _cut(tile: Tile, cell: tuple[int, int]) -> list[Tile]:
    """Cut a tile in two across its longer side."""
    if tile.shape[0] <= tile.shape[1]:
        return halve(tile, cell)
    turned = halve(Tile(tile.col, tile.col_stop, tile.row, tile.row_stop), cell[::-1])
    return [Tile(half.col, half.col_stop, half.row, half.row_stop) for half in turned]


def halve(tile: Tile, cell: tuple[int, int]) -> list[Tile]:
    """Cut a tile in two between cells of the grid; a single cell gives nothing."""
    (n_rows, n_cols), (rows, cols) = tile.shape, cell
    if n_cols > cols:
        middle = tile.col + -(-n_cols // (2 * cols)) * cols
        return [tile._replace(col_stop=middle), tile._replace(col=middle)]
    if n_rows > rows:
        middle = tile.row + -(-n_rows // (2 * rows)) * rows
        return [tile._replace(row_stop=middle), tile._replace(row=middle)]
    return []
