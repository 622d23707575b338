"""Calls that do not return to the interpreter, such as a compiler's, can be interrupted.

A thread of its own makes the call, while the thread that needs the result waits and sees an
interrupt within a tenth of a second. The call is completed: its result is there for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["Cancelled", "aside", "heeded", "heeding", "interrupts_as_such"]

#: Seconds between looks at the flag of a run.
_LOOK = 0.05

_here = threading.local()


class Cancelled(BaseException):
    """The run that needs this has been stopped; the reason is raised where it was started."""


@contextmanager
def interrupts_as_such() -> Iterator[None]:
    """Raise the KeyboardInterrupt that a compiled function hands on as the cause of a SystemError.

    A function of Numba that returns arrays calls the interpreter to build them, which then sees the
    Ctrl-C that came while it ran.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__
        if cause is None:
            raise
        raise KeyboardInterrupt from None


@contextmanager
def heeding(cancel: np.ndarray) -> Iterator[None]:
    """Have this thread stop waiting in `aside` once a flag of one byte turns 1."""
    before = getattr(_here, "cancel", None)
    _here.cancel = cancel
    try:
        yield
    finally:
        _here.cancel = before


@contextmanager
def heeded() -> Iterator[np.ndarray]:
    """Give the flag that this thread heeds, or one that nobody sets, to work that looks at it.

    Raises
    ------
    Cancelled
        If it is set behind the work, whose answer is arbitrary then.
    """
    cancel = getattr(_here, "cancel", None)
    if cancel is None:
        cancel = np.zeros(1, np.uint8)
    yield cancel
    if cancel[0]:
        raise Cancelled


def aside(work: Callable[[], Any]) -> Any:
    """Do some work in a thread of its own, and wait for what it returns or raises.

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C, in the main thread.
    Cancelled
        If the flag that this thread heeds is set.
    """
    cancel = getattr(_here, "cancel", None)
    if cancel is None and threading.current_thread() is not threading.main_thread():
        return work()  # nobody can stop this thread
    answer: list[tuple[Any, BaseException | None]] = []
    done = threading.Event()

    def do() -> None:
        try:
            answer.append((work(), None))
        except BaseException as error:
            answer.append((None, error))
        finally:
            done.set()

    threading.Thread(target=do, name="skts-aside", daemon=True).start()
    while not done.wait(_LOOK):
        if cancel is not None and cancel[0]:
            raise Cancelled
    result, error = answer.pop()
    if error is not None:
        raise error
    return result
