"""Computing a plan in this process: threads take tiles from a queue, and hand over results.

A worker is a plain thread: kernels release the interpreter's lock, so nothing here depends on
Numba's own thread pool, whose default layer aborts the process when two threads enter it at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from ..._config import get_config, using
from ..._log import tell
from ...exceptions import MemoryBudgetError
from .budget import out_of_memory
from .interrupts import heeding
from .plan import Plan, halve, make_plan
from .progress import Report, describe, progress
from .reduction import Reduction, Stoppable, Tile, UsesIncumbent
from .registry import get_engine

__all__ = ["Results", "compute_area", "execute", "execute_together", "fit_together"]

#: Tiles and their results.
Results = list[tuple[Tile, Any]]
#: Tiles with more steps than this, or what an engine makes of it, run beside the main thread, which
#: stays free for Ctrl-C.
INLINE_WORK = 2**29


def compute_area(reduction: Reduction, area: Tile, *, engine: str, n_jobs: int | None) -> Results:
    """Compute a rectangle of grid cells in this process; return the results of its tiles."""
    results: Results = []
    total = reduction.start() if isinstance(reduction, UsesIncumbent) else None

    def take(tile: Tile, result: Any) -> None:
        results.append((tile, result))
        if total is not None:
            reduction.merge(total, tile, result)

    plan = make_plan(reduction, get_engine(engine, reduction), n_jobs=n_jobs, area=area)
    execute(plan, total, take)
    if isinstance(reduction, UsesIncumbent):
        results += reduction.drain(total, area)
    return results


def execute(plan: Plan, total: Any, take: Callable[[Tile, Any], None], *, verbose: int = 0) -> None:
    """Compute all tiles of a plan.

    Parameters
    ----------
    plan : Plan
        The work, and how it is computed.
    total : object
        The results so far, for work that uses them.
    take : callable
        Gets each tile and its result; not called by two threads at the same time.
    verbose : int, default 0
        See `run`.
    """
    if verbose >= 2 and plan.tiles:
        tell(describe(plan))
    lock, scarce = threading.Lock(), threading.RLock()
    with using(get_config() | {"devices": plan.devices}):
        compute = partial(_compute, plan, get_config(), total, take, lock, scarce)
        where = plan.engine.name, plan.workers
        with progress(plan.reduction, plan.tiles, verbose, where) as report:
            _work_through(plan, compute, report)


def execute_together(plans: Sequence[Plan]) -> list[Any]:
    """Compute several plans of one tile each, in this thread; return the results of the tiles.

    Each goes on until it would wait, then the next: the device has work while this thread prepares
    more, and there is one wait for all.
    """
    first, cancel = plans[0], np.zeros(1, np.uint8)
    settings = get_config() | {"devices": first.devices}
    left = first.budget - sum(plan.footprint(*plan.tiles[0].shape)[1] for plan in plans)
    limited = first.engine.prepared.limited(left, first.budget)
    with using(settings), limited, heeding(cancel):
        return first.engine.compute_all([(p.reduction, p.tiles[0]) for p in plans], cancel)


def fit_together(plans: Sequence[Plan]) -> bool:
    """Whether plans can be computed together: so few steps and bytes, on one device."""
    first = plans[0]
    if any(len(p.tiles) != 1 or p.workers != 1 or p.devices != first.devices for p in plans):
        return False
    steps = sum(plan.reduction.work(plan.tiles[0]) for plan in plans)
    sizes = [plan.footprint(*plan.tiles[0].shape) for plan in plans]
    # what is shared is prepared from the same arrays
    shared = max(size for size, _ in sizes)
    within = shared + sum(each for _, each in sizes) <= min(plan.budget for plan in plans)
    return within and steps <= first.engine.tile_work


def _compute(
    plan: Plan,
    settings: dict[str, Any],
    total: Any,
    take: Callable[[Tile, Any], None],
    lock: threading.Lock,
    scarce: threading.RLock,
    tile: Tile,
    cancel: np.ndarray,
) -> None:
    """Compute a tile, with the configuration of the thread that called `run`; hand its result over.

    Where memory runs out, what was prepared is dropped and the tile is halved, down to a cell of
    the grid, while no other thread does so: the answer stays the same.
    """
    waiting = [tile]
    prepared = plan.engine.prepared
    limited = prepared.limited(plan.prepared, plan.budget)
    with using(settings), limited, heeding(cancel), ExitStack() as inside:
        # a loop and not a recursion: a function that refers to itself would keep the arrays of the
        # work until the garbage collector comes
        while waiting and not cancel[0]:
            tile = waiting.pop()
            try:
                work = plan.reduction
                if isinstance(work, UsesIncumbent):
                    with lock:
                        work = work.with_incumbent(total)
                result = plan.engine.compute(work, tile, cancel)
            except MemoryBudgetError:
                raise
            except MemoryError as error:
                halves = halve(tile, plan.reduction.cell)
                if not halves:
                    raise out_of_memory(plan.footprint(*tile.shape), plan.budget) from error
                prepared.clear()
                inside.enter_context(scarce)
                # there is less memory than was planned with
                inside.enter_context(prepared.limited(plan.prepared))
                waiting += filter(plan.reduction.wanted, reversed(halves))
                continue
            if not cancel[0]:
                with lock:
                    take(tile, result)


def _work_through(plan: Plan, compute: Callable[[Tile, np.ndarray], None], report: Report) -> None:
    """Compute every tile, here or in threads; on an error or interrupt stop all of them."""
    cancel = np.zeros(1, np.uint8)
    workers = max(1, plan.workers)
    most = INLINE_WORK * plan.engine.inline_scale
    if workers == 1 and all(plan.reduction.work(tile) <= most for tile in plan.tiles[:1]):
        for tile in _wanted_tiles(plan):
            compute(tile, cancel)
            report.advance(tile)
        return
    queue, running = _wanted_tiles(plan), dict[Future[None], Tile]()
    with ThreadPoolExecutor(workers, thread_name_prefix="skts") as pool:

        def submit_next() -> None:
            tile = next(queue, None)
            if tile is not None:
                running[pool.submit(compute, tile, cancel)] = tile

        try:
            # two tiles a worker are under way, so that none waits for this thread
            for _ in range(2 * workers):
                submit_next()
            while running:
                for future in wait(running, timeout=0.2, return_when=FIRST_COMPLETED).done:
                    future.result()
                    report.advance(running.pop(future))
                    submit_next()
                report.tick()
        except BaseException as error:
            cancel[0] = 1
            pool.shutdown(wait=True, cancel_futures=True)
            interrupt = error.__context__
            if isinstance(error, RuntimeError) and isinstance(interrupt, KeyboardInterrupt):
                # between two steps of Python's own wait, which then releases what it does not hold
                raise interrupt from None
            raise


def _wanted_tiles(plan: Plan) -> Iterator[Tile]:
    """Yield the tiles in their order, until there are enough of them."""
    for number, tile in enumerate(plan.tiles):
        if number and isinstance(plan.reduction, Stoppable) and plan.reduction.has_enough():
            return
        yield tile
