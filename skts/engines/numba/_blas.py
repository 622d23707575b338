"""BLAS on one thread, where bits must not depend on how many there are.

OpenBLAS and its like cut sums by the number of their threads, which differs between a process and
its workers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_inside = 0
_libraries: list[Any] | None = None
_before: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have BLAS compute on one thread; the last of all threads that are inside ends it.

    The number is one of the whole process, where each thread by itself would put back another's;
    but of a BLAS that is built with OpenMP every thread has its own.
    """
    global _inside, _libraries, _before
    with _lock:
        if _libraries is None:
            # looking for the libraries takes some milliseconds
            _libraries = ThreadpoolController().select(user_api="blas").lib_controllers
        shared = [one for one in _libraries if not _has_own_number(one)]
        own = [one for one in _libraries if _has_own_number(one)]
        if _inside == 0:
            _before = [one.get_num_threads() for one in shared]
            _set(shared, [1] * len(shared))
        own_before = [one.get_num_threads() for one in own]
        _set(own, [1] * len(own))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _set(own, own_before)
            _inside -= 1
            if _inside == 0:
                _set(shared, _before)


def _has_own_number(library: Any) -> bool:
    """Whether each thread has a number of its own."""
    return getattr(library, "threading_layer", None) == "openmp"


def _set(libraries: list[Any], numbers: list[int]) -> None:
    """Set numbers of threads, whichever thread set them before.

    From version 3.8 on threadpoolctl ignores all threads but the first that has set the number of
    an OpenBLAS, for as long as that thread lives.
    """
    for library, number in zip(libraries, numbers, strict=True):
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(number)
        release(force=True)
