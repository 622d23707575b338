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
_controller: ThreadpoolController | None = None
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have BLAS compute on one thread; the last of all threads that are inside ends it.

    The number is one of the whole process: each thread by itself would put back another's.
    """
    global _inside, _controller, _limit
    with _lock:
        if _inside == 0:
            # looking for the libraries takes some milliseconds
            _controller = _controller or ThreadpoolController()
            _limit = _controller.limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limit.restore_original_limits()
