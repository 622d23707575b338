"""Tasks spread over processes until a time, and nothing left running behind them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from .sandbox import OutOfTime, end_running

__all__ = ["work"]

_function: Callable[[Any], Any]
_deadline = 0.0


def work(
    function: Callable[[Any], Any], tasks: Iterable[Any], jobs: int, deadline: float
) -> Iterator[tuple[Any, Any]]:
    """Call a function for each task; yield tasks and results as they come.

    Parameters
    ----------
    function : callable
        Processes are forked, so that it may hold anything; tasks and results are pickled.
    tasks : iterable
        The first ones begin first.
    jobs : int
        Number of processes.
    deadline : float
        Time of `time.monotonic` from which no task begins; one that notices it raises `OutOfTime`
        and has no result.
    """
    context = multiprocessing.get_context("fork")
    counter = context.Value("i", 0)
    with ProcessPoolExecutor(jobs, context, _start, (function, deadline, jobs, counter)) as pool:
        waiting = {pool.submit(_call, task): task for task in tasks}
        try:
            for done in as_completed(waiting):
                task, result = waiting[done], done.result()
                if result is not None:
                    yield task, result
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _start(function: Callable[[Any], Any], deadline: float, jobs: int, counter: Any) -> None:
    """Make this process ready for tasks."""
    global _function, _deadline
    _function, _deadline = function, deadline
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it, and ends this process
    signal.signal(signal.SIGTERM, _end)
    cores = sorted(os.sched_getaffinity(0))
    with counter.get_lock():
        number = counter.value
        counter.value += 1
    if jobs > 2 and len(cores) > 2:
        # two cores each: tests that start a thread for every core start two
        os.sched_setaffinity(0, {cores[(number + i) % len(cores)] for i in range(2)})


def _end(number: int, frame: Any) -> None:
    end_running()
    os._exit(1)


def _call(task: Any) -> Any:
    if time.monotonic() >= _deadline:
        return None
    try:
        return _function(task)
    except OutOfTime:
        return None
