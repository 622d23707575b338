"""`run`: one executor for all reductions.

It chooses the engine, plans tiles within the memory budget, hands them to worker threads, merges
their results, reports progress, and stops within a second of Ctrl-C. A worker is a plain thread:
kernels release the interpreter's lock, so nothing here depends on Numba's own thread pool, whose
default layer aborts the process when two threads enter it at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from tqdm import tqdm

from .._config import config_context, get_config
from ._engine import Engine
from ._memory import check_result, plan_tiles
from ._reductions import Reduction, Tile
from ._registry import get_engine

__all__ = ["run"]

#: Tiles with more steps than this run beside the main thread, which stays free for Ctrl-C.
INLINE_WORK = 2**29


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
        1 shows a progress bar, 2 also says which engine computes.

    Returns
    -------
    object
        The reduction's answer, in host memory.
    """
    if not isinstance(engine, Engine):
        engine = get_engine(engine, reduction)
    check_result(reduction)
    budget = engine.budget()
    engine.prepared.capacity = budget
    tiles, workers = plan_tiles(
        reduction,
        tile_work=engine.tile_work,
        footprint=partial(engine.footprint, reduction),
        budget=budget,
        workers=engine.workers(n_jobs),
    )
    settings = get_config()
    total = reduction.start()
    lock = threading.Lock()
    with _progress(reduction, engine, tiles, verbose) as advance:

        def compute(tile: Tile, cancel: np.ndarray) -> None:
            with config_context(**settings):
                with lock:
                    work = reduction.informed(total)
                result = engine.compute(work, tile, cancel)
            if cancel[0]:
                return
            with lock:
                reduction.merge(total, tile, result)

        _work_through(compute, tiles, min(workers, len(tiles)), reduction, advance)
    return reduction.finish(total, partial(run, engine=engine, n_jobs=n_jobs, verbose=0))


def _work_through(
    compute: Callable[[Tile, np.ndarray], None],
    tiles: list[Tile],
    workers: int,
    reduction: Reduction,
    advance: Callable[[Tile], None],
) -> None:
    """Compute every tile, here or in threads; on an error or interrupt stop all of them."""
    cancel = np.zeros(1, np.uint8)
    if workers <= 1 and all(reduction.work(tile) <= INLINE_WORK for tile in tiles[:1]):
        for tile in tiles:
            compute(tile, cancel)
            advance(tile)
        return
    queue = iter(tiles)
    with ThreadPoolExecutor(max(1, workers), thread_name_prefix="skts") as pool:

        def submit_next() -> dict[Any, Tile]:
            tile = next(queue, None)
            return {} if tile is None else {pool.submit(compute, tile, cancel): tile}

        try:
            # two tiles a worker are under way, so that none waits for this thread
            running: dict[Any, Tile] = {}
            for _ in range(2 * max(1, workers)):
                running |= submit_next()
            while running:
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    tile = running.pop(future)
                    future.result()
                    advance(tile)
                    running |= submit_next()
        except BaseException:
            cancel[0] = 1
            pool.shutdown(wait=True, cancel_futures=True)
            raise


@contextmanager
def _progress(
    reduction: Reduction, engine: Engine, tiles: list[Tile], verbose: int
) -> Iterator[Callable[[Tile], None]]:
    """Yield a function that is called after each tile, and tells bar and callback."""
    callback = get_config()["progress"]
    name = type(reduction).__name__
    if verbose >= 2:
        print(f"{name}: {reduction.shape[0]} x {reduction.shape[1]} on {engine.name}")
    done = 0
    with tqdm(total=len(tiles), desc=name, disable=verbose < 1 or len(tiles) < 2) as bar:

        def advance(tile: Tile) -> None:
            nonlocal done
            done += 1
            bar.update()
            if callback is not None:
                callback(done, len(tiles))

        yield advance
