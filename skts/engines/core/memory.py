"""Memory plans (pure arithmetic) and the one store of prepared data.

Memory is planned, never discovered: before any work, the planner picks the largest rectangle of
grid cells whose footprint, as the engine states it, stays inside the budget. A smaller budget
gives smaller tiles; it never moves the grid, and so never changes a result.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ...exceptions import MemoryBudgetError
from .reduction import Reduction, Tile

__all__ = [
    "PreparedStore",
    "balance",
    "check_result",
    "check_size",
    "check_smallest",
    "format_bytes",
    "halve",
    "out_of_memory",
    "physical_memory",
    "plan_tiles",
]

#: Where Linux says how much memory a container may have, in its newer and its older form.
CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)
#: Bytes of a result for which the memory of the machine is not asked, which takes a while.
ALWAYS_THERE = 2**16
#: Tiles that hold less than the part of a worker divided by this are not cut for balance.
SMALLEST_SHARE = 16
#: Bytes that a tile of so many rows and columns takes: shared by all workers, and of each worker.
Footprint = Callable[[int, int], tuple[int, int]]


def format_bytes(size: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> format_bytes(3 * 2**29)
    '1.5 GiB'
    """
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.4g} {units[0]}"


def physical_memory() -> int:
    """Bytes of memory that this process may have; what cannot be asked counts as no limit."""
    limits = [2**62]
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in CONTAINER_LIMITS:
        with suppress(ValueError, OSError):
            limits.append(int(Path(path).read_text()))
    return min(limits)


def check_result(reduction: Reduction) -> None:
    """Raise if the answer itself is larger than the memory of this machine."""
    check_size(reduction.result_bytes(), reduction.shape)


def check_size(size: int, shape: tuple[int, int]) -> None:
    """Raise if a result of so many bytes is larger than the memory of this machine."""
    if size <= ALWAYS_THERE:
        return
    limit = physical_memory()
    if size > limit:
        raise MemoryBudgetError(
            f"The result of shape {shape} needs {format_bytes(size)}; this machine has "
            f"{format_bytes(limit)} of memory. Ask for part of it, or for nearest neighbours."
        )


def check_smallest(
    reduction: Reduction, footprint: Footprint, budget: int, area: Tile | None = None
) -> tuple[int, int]:
    """Return the footprint of a cell of the grid; raise if it does not fit."""
    extent = reduction.shape if area is None else area.shape
    shared, each = footprint(*(min(c, n) for c, n in zip(reduction.cell, extent, strict=True)))
    if shared + each > budget:
        why = f", as it holds {reduction.whole} whole" if reduction.whole else ""
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
    if n_rows == 0 or n_cols == 0:
        return [], 0
    rows, cols = (min(c, n) for c, n in zip(reduction.cell, area.shape, strict=True))
    shared, each = check_smallest(reduction, footprint, budget, area)
    workers = min(workers, max(1, (budget - shared) // max(1, each)))

    def fits(r: int, c: int) -> bool:
        shared, each = footprint(r, c)
        return r * c * reduction.step_work <= tile_work and shared + workers * each <= budget

    tile_work *= reduction.tile_scale
    if reduction.square and workers > 1 and not reduction.divisible:
        tile_work = min(tile_work, n_rows * n_cols * reduction.step_work // (8 * workers))
    if fits(n_rows, n_cols):
        rows, cols = n_rows, n_cols
    if reduction.square:
        while max(rows / n_rows, cols / n_cols) < 1 and fits(
            min(2 * rows, n_rows), min(2 * cols, n_cols)
        ):
            rows, cols = min(2 * rows, n_rows), min(2 * cols, n_cols)
    while cols < n_cols and fits(rows, min(2 * cols, n_cols)):
        cols = min(2 * cols, n_cols)
    if not reduction.square:
        whole = n_rows * n_cols * reduction.step_work
        tile_work = max(tile_work, min(row_scale * tile_work, whole // (8 * workers)))
    while rows < n_rows and fits(min(2 * rows, n_rows), cols):
        rows = min(2 * rows, n_rows)
    tiles = (
        Tile(row, min(row + rows, area.row_stop), col, min(col + cols, area.col_stop))
        for col in range(area.col, area.col_stop, cols)
        for row in range(area.row, area.row_stop, rows)
    )
    return [tile for tile in tiles if reduction.wanted(tile)], workers


def balance(reduction: Reduction, tiles: list[Tile], workers: int) -> list[Tile]:
    """Cut tiles towards the end, so that workers of any speed finish at nearly the same time.

    What is handed out holds at most the part of one worker of half the work that is left, down to a
    small share of all the work. For reductions that are divisible.
    """
    if workers <= 1 or not reduction.divisible:
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


def out_of_memory(footprint: tuple[int, int], budget: int) -> MemoryBudgetError:
    """Say that memory ran out for the smallest part of the work."""
    return MemoryBudgetError(
        f"Memory ran out: the smallest part of this work was planned to take "
        f"{format_bytes(sum(footprint))} of the {format_bytes(budget)} that it may use, and this "
        "machine could not give them. Set less with skts.set_config(memory=...), or free some."
    )


class PreparedStore:
    """What an engine has prepared from arrays: built once, found again, dropped with the array.

    Parameters
    ----------
    capacity : int
        Bytes to hold where no run says otherwise; the least recently used entries make room.
    """

    def __init__(self, capacity: int = 2**30) -> None:
        self._capacity = capacity
        self._run = threading.local()
        self._entries: OrderedDict[tuple[int, Hashable], tuple[Any, int]] = OrderedDict()
        self._owners: set[int] = set()
        self._lock = threading.RLock()
        self._gates: dict[tuple[int, Hashable], Any] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def capacity(self) -> int:
        """Bytes to hold, as the run that this thread works for has planned it."""
        return getattr(self._run, "capacity", self._capacity)

    @contextmanager
    def limited(self, capacity: int) -> Iterator[None]:
        """Hold so many bytes for what this thread does meanwhile; other runs have their own plans.

        What they have prepared may have to make room, and is made anew when they ask for it.
        """
        before = dict(vars(self._run))
        self._run.capacity = capacity
        try:
            yield
        finally:
            vars(self._run).clear()
            vars(self._run).update(before)

    def get(
        self,
        owner: np.ndarray,
        key: Hashable,
        build: Callable[[], tuple[Any, int]],
        size: int = 0,
    ) -> Any:
        """Return what `build` made for this array and key, building it at need.

        Parameters
        ----------
        owner : ndarray
            The array from which it is made; when that dies, so does the entry.
        key : hashable
            Which of the things made from the array.
        build : callable
            Returns the thing and its size in bytes.
        size : int, default 0
            Bytes that it will take, where that is known: room is made before it is built.
        """
        full_key = (id(owner), key)
        found = self._find(full_key)
        if found is not None:
            return found[0]
        with self._lock:
            gate = self._gates.setdefault(full_key, threading.RLock())
        # workers that need the same thing wait for the first of them, and make no other
        with gate:
            found = self._find(full_key)
            if found is not None:
                return found[0]
            self.make_room(size)
            try:
                value, size = build()
                self.settle()
            finally:
                with self._lock:
                    self._gates.pop(full_key, None)
            with self._lock:
                if id(owner) not in self._owners:
                    self._owners.add(id(owner))
                    weakref.finalize(owner, self._drop, id(owner))
                self._entries[full_key] = (value, size)
                self.make_room(0)
        return value

    def holds(self, owner: np.ndarray, key: Hashable) -> bool:
        """Whether something made from an array is there."""
        return (id(owner), key) in self._entries

    def make_room(self, size: int) -> None:
        """Drop what was used longest ago until so many bytes more would fit."""
        gone = []  # what dies may own other entries, which then are dropped: not while this goes on
        with self._lock:
            while len(self._entries) > (size == 0) and self.size() + size > self.capacity:
                gone.append(self._entries.popitem(last=False))

    def settle(self) -> None:
        """Wait until what was built is there for all workers; engines whose work is queued do."""

    def _find(self, full_key: tuple[int, Hashable]) -> tuple[Any, int] | None:
        """What is held under a key, now the last used."""
        with self._lock:
            if full_key in self._entries:
                self._entries.move_to_end(full_key)
            return self._entries.get(full_key)

    def drop(self, owner: np.ndarray, key: Hashable) -> None:
        """Forget one thing made from an array."""
        with self._lock:
            self._entries.pop((id(owner), key), None)

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            gone, self._entries = self._entries, OrderedDict()
        gone.clear()

    def size(self) -> int:
        """Bytes held."""
        return sum(size for _, size in list(self._entries.values()))

    def _drop(self, owner: int) -> None:
        # the garbage collector may call this anywhere, also in the midst of another call of it
        with self._lock:
            self._owners.discard(owner)
            for key in list(self._entries):
                if key[0] == owner:
                    self._entries.pop(key, None)
