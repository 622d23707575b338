"""`run`: one executor for all reductions.

It chooses the engine, plans tiles within the memory budget, has them computed here (`execution`)
or, inside a block of joblib's ``parallel_config`` with processes or a cluster behind it, elsewhere
(`distribute`), merges their results, reports progress, and stops within a second of Ctrl-C.

Underflow is no error here, also where users have NumPy raise it: engines and the plain code that
checks answers take a square that is too small for 0, as compiled code does.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..._config import get_config
from ..._log import tell
from .budget import check_size, host_budget
from .distribute import share_out
from .engine import Engine
from .execution import execute, execute_together, fit_together
from .interrupts import interrupts_as_such
from .plan import Plan, make_plan, plan_tiles
from .progress import describe_shares, progress
from .reduction import InBatches, Reduction, Stoppable
from .registry import get_engine
from .verify import verify
from .worker import find_backend

__all__ = ["run", "run_all"]

#: Work with more steps than this, about a second on a thread, is worth sending to other processes.
WORTH_SENDING = 2**31
#: Shares for each worker elsewhere, so that the slower ones take fewer.
SHARES = 4


@interrupts_as_such()
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
        1 shows a progress bar, 2 also the plan: engine, devices, parts, memory. Plans go to the
        logger "skts", and are printed where no logging is set up.

    Returns
    -------
    object
        The reduction's answer, in host memory.
    """
    with np.errstate(under="ignore"):
        return _run(reduction, engine, n_jobs, verbose)


def _run(
    reduction: Reduction, engine: str | Engine | None, n_jobs: int | None, verbose: int
) -> Any:
    """`run`, where squares of small numbers may become 0."""
    check_size(reduction.result_bytes(), reduction.shape)
    elsewhere = reduction.total_work > WORTH_SENDING and not isinstance(reduction, Stoppable)
    backend = find_backend(n_jobs) if elsewhere else None
    if backend is None:
        engine = get_engine(engine, reduction)
    again = partial(run, engine=engine, n_jobs=n_jobs)
    reduction.check_input(again)
    if isinstance(reduction, InBatches):
        batches = reduction.batches(host_budget())
        if len(batches) > 1:
            return reduction.gather(
                (batch, again(reduction.batch(batch), verbose=verbose)) for batch in batches
            )
    name = engine.name if isinstance(engine, Engine) else engine or get_config()["engine"]
    total = reduction.start()
    if backend is not None:
        _send(reduction, total, backend, name, n_jobs, verbose)
    else:
        assert isinstance(engine, Engine)
        plan = make_plan(reduction, engine, n_jobs=n_jobs)
        execute(plan, total, partial(reduction.merge, total), verbose=verbose)
    answer = reduction.finish(total, again)
    if get_config()["verify"]:
        verify(reduction, name, answer)
    return answer


@interrupts_as_such()
def run_all(
    reductions: Sequence[Reduction],
    *,
    engine: str | Engine | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Any]:
    """Compute several reductions of one kind.

    Where the engine queues its work, small ones go on together: their waits become one.

    Parameters
    ----------
    reductions : sequence of Reduction
        The works; none needs the answer of another.
    engine : str, Engine or None, default None
        As of `run`.
    n_jobs : int or None, default None
        As of `run`.
    verbose : int, default 0
        As of `run`; where something is to be shown, each is computed by itself.

    Returns
    -------
    list
        Their answers, those of `run`.
    """
    with np.errstate(under="ignore"):
        return _run_all(reductions, engine, n_jobs, verbose)


def _run_all(
    reductions: Sequence[Reduction], engine: str | Engine | None, n_jobs: int | None, verbose: int
) -> list[Any]:
    """`run_all`, where squares of small numbers may become 0."""
    again = partial(run, engine=engine, n_jobs=n_jobs)
    answers: list[Any] = []
    while len(answers) < len(reductions):
        plans = _plans_together(reductions[len(answers) :], engine, n_jobs, verbose)
        results: list[Any] | None = None
        if len(plans) > 1:
            # too little memory for all of them: one at a time, in smaller parts at need
            with suppress(MemoryError):
                results = execute_together(plans)
        if results is None:
            answers.append(again(reductions[len(answers)], verbose=verbose))
            continue
        for plan, result in zip(plans, results, strict=True):
            reduction, total = plan.reduction, plan.reduction.start()
            reduction.merge(total, plan.tiles[0], result)
            answers.append(reduction.finish(total, again))
    return answers


def _plans_together(
    reductions: Sequence[Reduction],
    engine: str | Engine | None,
    n_jobs: int | None,
    verbose: int,
) -> list[Plan]:
    """Plans of the first of some reductions, of as many as can be computed together."""
    settings, plans = get_config(), list[Plan]()
    if len(reductions) < 2 or verbose or settings["progress"] or settings["verify"]:
        return []
    for reduction in reductions:
        elsewhere = reduction.total_work > WORTH_SENDING
        if elsewhere and find_backend(n_jobs) is not None:
            break
        chosen = get_engine(engine, reduction)
        if not chosen.has_steps(reduction) or (plans and chosen is not plans[0].engine):
            break
        plans.append(make_plan(reduction, chosen, n_jobs=n_jobs))
        if not fit_together(plans):
            plans.pop()
            break
    return plans


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
    shares, _ = plan_tiles(
        reduction,
        tile_work=reduction.total_work // (SHARES * workers * reduction.tiling.scale),
        footprint=lambda rows, cols: (0, 0),
        budget=1,
        workers=1,
    )
    if verbose >= 2:
        tell(describe_shares(reduction, engine, type(elsewhere).__name__, shares, workers))
    with progress(reduction, shares, verbose, (engine, workers)) as report:
        for results in share_out(elsewhere, reduction, shares, engine, n_jobs):
            for tile, result in results:
                reduction.merge(total, tile, result)
            report.advance()
