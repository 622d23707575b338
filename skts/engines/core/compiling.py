"""One line for who waits for a compiler, once in a process.

It goes to the logger ``skts``, which writes to the standard error stream unless the user says
otherwise: nothing is wrong, and nothing is to be changed in the program that waits, so that it is
no matter for `warnings`. Output that doctests compare is left alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..._log import LOGGER

__all__ = ["compiling", "replace_kernels"]

#: Seconds of compilation in a process that pass without a word.
PATIENCE = 1.0

#: Whether NumPy takes the place of kernels where it can; None: where that pays (`small_work`).
replaced: bool | None = None

_lock = threading.Lock()
_spent = 0.0
_said = False


@contextmanager
def compiling(really: Callable[[], bool]) -> Iterator[None]:
    """Count the seconds inside as those of a compiler, if `really`; say so when there are many."""
    global _spent
    timer = None
    if not _said:
        timer = threading.Timer(max(0.0, PATIENCE - _spent), _say, (really,))
        timer.daemon = True
        timer.start()
    begin = time.monotonic()
    try:
        yield
    finally:
        if really():
            with _lock:
                _spent += time.monotonic() - begin
        if timer is not None:
            timer.cancel()


@contextmanager
def replace_kernels(always: bool) -> Iterator[None]:
    """Have NumPy compute all small work that it can, or none, whatever is compiled."""
    global replaced
    before, replaced = replaced, always
    try:
        yield
    finally:
        replaced = before


def _say(really: Callable[[], bool]) -> None:
    global _said
    with _lock:
        if _said or not really():
            return
        _said = True
    LOGGER.warning(
        "skts compiles its kernels at the first call of each kind, which takes some seconds; "
        "later processes find them on disk. skts.warm_up() compiles ahead."
    )
