"""Time in tests, on a machine that others use, too."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["press_ctrl_c", "quickest", "threads_left"]


def press_ctrl_c(work: Callable[[], Any], seconds: float) -> tuple[float | None, Any]:
    """Do some work, and press Ctrl-C after some seconds.

    Returns
    -------
    heard : float or None
        Seconds from there to the interrupt; None where the work was done before.
    answer : object
        What the work returned; None after an interrupt.
    """
    when, answer = [], []

    def press() -> None:
        when.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds, press)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        answer.append(work())
        # it may come late: not in the midst of what follows
        timer.cancel()
        timer.join()
        time.sleep(0.001)
    except KeyboardInterrupt:
        heard = time.perf_counter()
        timer.join()
        if not answer:
            return heard - when[0], None
    finally:
        signal.signal(signal.SIGINT, before)
    return None, answer[0]


def quickest(attempt: Callable[[], float], limit: float = 1.0) -> float:
    """Seconds of the first attempt within a limit, or of the quickest of three.

    Others may take the machine for a second, but not each time; what is slow by itself is slow
    each time.
    """
    seconds = attempt()
    for _ in range(2):
        if seconds >= limit:
            seconds = min(seconds, attempt())
    return seconds


def threads_left(patience: float = 60) -> list[str]:
    """Names of threads of the package that have not ended after so many seconds."""
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("skts")]
    end = time.monotonic() + patience
    for thread in ours:
        thread.join(max(0.0, end - time.monotonic()))
    return [thread.name for thread in ours if thread.is_alive()]
