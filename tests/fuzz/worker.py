"""The process that runs cases: it names each before it runs it, and tells what failed."""

from __future__ import annotations

import faulthandler
import gc
import json
import mmap
import os
import signal
import struct
import time
from pathlib import Path
from typing import Any

__all__ = ["STATUS", "WHERE", "tell_status", "work"]

#: The signal on which a worker writes where its threads are, whatever they do.
WHERE = signal.SIGUSR1

#: What a worker is at: number of the case, when it began, seconds that it may take; cases done, and
#: processor time of the process when it began.
STATUS = struct.Struct("qddqd")
#: Seconds that a case may take; the first ones of a function, which compile, may take more.
PATIENCE, COMPILING = 60.0, 600.0
#: So many workers share a GPU without harm; where there are more, a case may take longer.
SHARE_A_GPU = 4
#: Where two engines are compared, the oracle judges one case of so many; where one runs, all.
JUDGED = 4
#: Failures of one kind that are cut down and reported in full.
REPORTED = 2
#: Seconds between two notes of what was reached, which a crash may lose; and how many times as long
#: as it takes to write one, which may be a second, at least.
SAVED, SELDOM = 20.0, 50.0
#: Exit code of a worker whose GPU is of no use any more.
LOST = 77


def tell_status(status: mmap.mmap, *values: float) -> None:
    """Write what a worker is at, in one piece.

    `pack_into` clears all first, and who looked then saw a case that had begun in 1970.
    """
    status[:] = STATUS.pack(*values)


class Stopped(BaseException):
    """The time is up, and the case is not: what the parent says by SIGTERM."""


def _stop(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


def work(order: dict[str, Any]) -> int:
    """Run cases until time or numbers are up; the exit code says why it ended.

    Parameters
    ----------
    order : dict
        "seed", "engine", "against", "function", "first", "step", "last", "until", "known",
        "status", "coverage", "events", "compile", "locks", "workers of a GPU": see `__main__`.
    """
    from skts.engines.core import compiling

    from . import recipes  # noqa: F401
    from .compilers import share_compilers
    from .coverage import Coverage, compile_kernels, watch_engines
    from .machine import draw_case, find_failure, pick_recipe
    from .recipe import RECIPES
    from .shrink import shrink

    # where all threads are, for the report of a case that hangs
    faulthandler.register(WHERE, all_threads=True)
    # a first run takes kernels, some second ones NumPy in their place
    compiling.replaced = False
    if order["locks"]:
        share_compilers(Path(order["locks"]))
    if order["compile"]:
        compile_kernels(*order["compile"])
    watch_engines(order["engine"])
    coverage = Coverage()
    gc.collect()
    gc.freeze()  # modules stay: what a collection need not look at again makes it quick
    patience = PATIENCE * max(1.0, order["workers of a GPU"] / SHARE_A_GPU)
    known: dict[str, int] = order["known"]
    seen: dict[str, int] = {}
    keep = Path(order["coverage"])
    with open(order["status"], "r+b") as file, os.fdopen(order["events"], "w") as events:
        status = mmap.mmap(file.fileno(), STATUS.size)

        def tell(**event: Any) -> None:
            events.write(json.dumps(event) + "\n")
            events.flush()

        def note(number: int, limit: float) -> None:
            tell_status(status, number, time.time(), limit, done, time.process_time())

        number, saved, pause, done = order["first"], time.monotonic(), SAVED, 0
        parent = os.getppid()
        # every function once, however long it compiles
        least = 0 if order["function"] else len(RECIPES)

        def one_case(number: int, name: str) -> int:
            """Run a case, tell what fails, and say whether to go on: 0, or `LOST`."""
            limit = COMPILING if seen[name] < 30 else patience
            note(number, limit)
            start = time.monotonic()
            try:
                case, labels = draw_case(order["seed"], number, name)
            except Exception as error:
                tell(number=number, name=name, kind="fuzzer: cannot draw", text=repr(error))
                return 0
            if "backend" in case.setting:  # processes that start, and compile
                note(number, COMPILING)
            judged = number // order["step"] % JUDGED == 0
            failure = find_failure(case, order["engine"], order["against"], judged=judged)
            coverage.note(name, labels, time.monotonic() - start)
            if failure is None:
                return 0
            key = f"{name} {failure.kind}"
            known[key] = known.get(key, 0) + 1
            report = known[key] <= REPORTED
            tell(number=number, name=name, kind=failure.kind, text=str(failure), report=report)
            if "cudaError" in str(failure) or "CUDA_ERROR" in str(failure):
                return LOST
            if report:
                note(number, COMPILING)
                case, failure = shrink(
                    case,
                    failure,
                    lambda one: find_failure(one, order["engine"], order["against"]),
                    seconds=order["shrinking"],
                )
                path = Path(order["found"]) / f"{_slug(name)}-{order['seed']}-{number}.npz"
                case.save(path, failure=str(failure))
                tell(
                    number=number,
                    name=name,
                    small=case.text(),
                    points=case.points(),
                    text=str(failure),
                    path=str(path),
                )
            return 0

        code, name = 0, ""
        signal.signal(signal.SIGTERM, _stop)
        try:
            while number <= order["last"] and (number < least or time.time() < order["until"]):
                if os.getppid() != parent:  # nobody listens any more
                    return 1
                name = order["function"] or pick_recipe(order["seed"], number)
                seen[name] = seen.get(name, 0) + 1
                code = one_case(number, name)
                if code:
                    break
                done += 1
                if time.monotonic() - saved > pause:
                    start = time.monotonic()
                    coverage.save(keep)
                    saved = time.monotonic()
                    pause = max(SAVED, SELDOM * (saved - start))
                number += order["step"]
        except Stopped:
            tell(number=number, name=name, unfinished=True)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note(number, COMPILING)
        coverage.save(keep)
    return code


def _slug(name: str) -> str:
    return name.removeprefix("skts.").replace(".", "-")
