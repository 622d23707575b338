"""`run`: one executor for all reductions.

It chooses the engine, plans tiles within the memory budget, hands them to worker threads, merges
their results, reports progress, and stops within a second of Ctrl-C. A worker is a plain thread:
kernels release the interpreter's lock, so nothing here depends on Numba's own thread pool, whose
default layer aborts the process when two threads enter it at once. Inside a block of joblib's
``parallel_config`` with processes or a cluster behind it, large work goes there; see `_distribute`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from ..._config import config_context, get_config, parse_memory
from ...exceptions import MemoryBudgetError
from .distribute import Results, find_backend, share_out
from .engine import DEFAULT_MEMORY, Engine
from .interrupts import heeding
from .memory import (
    balance,
    check_result,
    check_smallest,
    halve,
    out_of_memory,
    physical_memory,
    plan_tiles,
)
from .progress import describe, progress
from .reduction import Reduction, Tile
from .registry import get_engine

__all__ = ["compute_area", "host_budget", "run"]

#: Tiles with more steps than this run beside the main thread, which stays free for Ctrl-C.
INLINE_WORK = 2**29
#: Work with more steps than this, about a second on a thread, is worth the way to other processes.
WORTH_SENDING = 2**31
#: Shares for each worker elsewhere, so that the slower ones take fewer.
SHARES = 4


def run(
    reduction: Reduction,
    *,
    engine: str | Engine | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Any:
    """Compute a reduction.

    Parameters
    ----------
    reduction : Reduction
        The work.
    engine : str, Engine or None, default None
        An engine or its name; see `get_engine`.
    n_jobs : int or None, default None
        Threads: None is all that Numba was given, or the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``; negative numbers count from all, as joblib's do.
    verbose : int, default 0
        1 shows a progress bar, 2 also the plan: engine, devices, parts, memory.

    Returns
    -------
    object
        The reduction's answer, in host memory.
    """
    check_result(reduction)
    rows, cols = reduction.shape
    backend = find_backend(n_jobs) if rows * cols * reduction.step_work > WORTH_SENDING else None
    batches = reduction.batches(host_budget())
    if len(batches) > 1:
        if backend is None and not isinstance(engine, Engine):
            engine = get_engine(engine, reduction)
        options = {"engine": engine, "n_jobs": n_jobs, "verbose": verbose}
        return reduction.gather(
            (batch, run(reduction.batch(batch), **options)) for batch in batches
        )
    total = reduction.start()
    if backend is not None:
        name = engine.name if isinstance(engine, Engine) else engine or get_config()["engine"]
        _send(reduction, total, backend, name, n_jobs, verbose)
    else:
        if not isinstance(engine, Engine):
            engine = get_engine(engine, reduction)
        inform, take = partial(reduction.informed, total), partial(reduction.merge, total)
        _compute(reduction, None, engine, n_jobs, verbose, inform=inform, take=take)
    return reduction.finish(total, partial(run, engine=engine, n_jobs=n_jobs, verbose=0))


def host_budget() -> int:
    """Bytes of this machine's memory that what is merged may take."""
    memory = get_config()["memory"]
    return DEFAULT_MEMORY if memory is None else parse_memory(memory, physical_memory())


def compute_area(reduction: Reduction, area: Tile, *, engine: str, n_jobs: int | None) -> Results:
    """Compute a rectangle of grid cells in this process; return the results of its tiles."""
    results: Results = []
    total = reduction.start() if reduction.learns else None

    def take(tile: Tile, result: Any) -> None:
        results.append((tile, result))
        if reduction.learns:
            reduction.merge(total, tile, result)

    inform = partial(reduction.informed, total)
    chosen = get_engine(engine, reduction)
    _compute(reduction, area, chosen, n_jobs, 0, inform=inform, take=take)
    return results + list(reduction.collect(total, area))


def _compute(
    reduction: Reduction,
    area: Tile | None,
    engine: Engine,
    n_jobs: int | None,
    verbose: int,
    *,
    inform: Callable[[], Reduction],
    take: Callable[[Tile, Any], None],
) -> None:
    """Compute all the work, or an area of it, on the devices that the engine chooses for it."""
    with config_context(devices=engine.devices(reduction) or get_config()["devices"]):
        budget = engine.budget()
        with engine.prepared.limited(budget):
            _compute_here(reduction, area, engine, budget, n_jobs, verbose, inform, take)


def _compute_here(
    reduction: Reduction,
    area: Tile | None,
    engine: Engine,
    budget: int,
    n_jobs: int | None,
    verbose: int,
    inform: Callable[[], Reduction],
    take: Callable[[Tile, Any], None],
) -> None:
    """Compute all the work, or an area of it; `take` gets the result of each tile.

    All that a run decides is its own: several may use one engine at the same time. Where memory
    runs out all the same, what was prepared is dropped and the tile is halved, down to a cell of
    the grid: the answer stays the same.
    """
    for later in reduction.later():
        check_smallest(later, partial(engine.footprint, later), budget)
    tiles, workers = plan_tiles(
        reduction,
        tile_work=engine.tile_work,
        row_scale=engine.row_scale,
        footprint=partial(engine.footprint, reduction),
        budget=budget,
        workers=engine.workers(n_jobs) * engine.lanes(reduction),
        area=area,
    )
    kept = budget
    if tiles:
        # what all workers share is prepared; engines that share nothing count it with each tile
        widest = max(tiles, key=lambda tile: tile.shape[0] * tile.shape[1])
        shared, each = engine.footprint(reduction, *widest.shape)
        kept = budget - workers * each if shared else budget
    tiles = balance(reduction, tiles, workers)
    settings = get_config()
    lock, scarce = threading.Lock(), threading.RLock()
    if verbose >= 2 and tiles:
        widest = max(tiles, key=reduction.work)
        shared, each = engine.footprint(reduction, *widest.shape)
        memory = shared + min(workers, len(tiles)) * each, budget
        print(describe(reduction, engine.name, tiles, min(workers, len(tiles)), memory))
    with progress(reduction, tiles, verbose) as advance:
        # a loop and not a recursion: a function that refers to itself would keep the arrays of the
        # work until the garbage collector comes
        def compute(tile: Tile, cancel: np.ndarray) -> None:
            waiting = [tile]
            with ExitStack() as alone:
                alone.enter_context(config_context(**settings))
                alone.enter_context(engine.prepared.limited(kept))
                alone.enter_context(heeding(cancel))
                while waiting and not cancel[0]:
                    tile = waiting.pop()
                    try:
                        with lock:
                            work = inform()
                        result = engine.compute(work, tile, cancel)
                    except MemoryBudgetError:
                        raise
                    except MemoryError as error:
                        halves = halve(tile, reduction.cell)
                        if not halves:
                            footprint = engine.footprint(reduction, *tile.shape)
                            raise out_of_memory(footprint, budget) from error
                        engine.prepared.clear()
                        alone.enter_context(scarce)
                        waiting += reversed(halves)
                        continue
                    if not cancel[0]:
                        with lock:
                            take(tile, result)

        _work_through(compute, tiles, min(workers, len(tiles)), reduction, advance)


def _send(
    reduction: Reduction,
    total: Any,
    backend: tuple[Any, int],
    engine: str,
    n_jobs: int | None,
    verbose: int,
) -> None:
    """Have the work done by other processes, and merge what they bring."""
    elsewhere, workers = backend
    rows, cols = reduction.shape
    whole = rows * cols * reduction.step_work
    shares, _ = plan_tiles(
        reduction,
        tile_work=whole // (SHARES * workers * reduction.tile_scale),
        footprint=lambda rows, cols: (0, 0),
        budget=1,
        workers=1,
    )
    name = f"{engine}, {workers} workers of {type(elsewhere).__name__}"
    if verbose >= 2:
        print(describe(reduction, name, shares, workers, None))
    with progress(reduction, shares, verbose) as advance:
        for results in share_out(elsewhere, reduction, shares, engine, n_jobs):
            for tile, result in results:
                reduction.merge(total, tile, result)
            advance()


def _work_through(
    compute: Callable[[Tile, np.ndarray], None],
    tiles: list[Tile],
    workers: int,
    reduction: Reduction,
    advance: Callable[[], None],
) -> None:
    """Compute every tile, here or in threads; on an error or interrupt stop all of them."""
    cancel = np.zeros(1, np.uint8)
    if workers <= 1 and all(reduction.work(tile) <= INLINE_WORK for tile in tiles[:1]):
        for tile in tiles:
            compute(tile, cancel)
            advance()
        return
    queue = iter(tiles)
    with ThreadPoolExecutor(max(1, workers), thread_name_prefix="skts") as pool:

        def submit_next() -> set[Future]:
            tile = next(queue, None)
            return set() if tile is None else {pool.submit(compute, tile, cancel)}

        try:
            # two tiles a worker are under way, so that none waits for this thread
            running: set[Future] = set()
            for _ in range(2 * max(1, workers)):
                running |= submit_next()
            while running:
                done, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    advance()
                    running |= submit_next()
        except BaseException:
            cancel[0] = 1
            pool.shutdown(wait=True, cancel_futures=True)
            raise
