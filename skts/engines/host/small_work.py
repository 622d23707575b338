"""Small work without kernels: NumPy does it while a kernel would still be compiled.

Compiling the kernels of a search takes seconds, a first look at small data some hundredths of one.
So each family computes small work by NumPy, with the same bits, as long as none of its kernels
has been compiled, in this process or on disk. There is a limit to what a process does in this way:
it never loses more than that to a compilation that comes all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from numba import config, typeof
from numba.core.dispatcher import Dispatcher

from ..core import compiling
from .kernels import cache_of

__all__ = ["ENTRIES", "compiled", "most_bytes", "prefer_numpy"]

#: Seconds of NumPy that a process spends in place of compiling; `limit` where that takes longest.
LIMIT = 1.0
#: Entries of an array that NumPy goes through in one step: they stay in a cache.
ENTRIES = 2**14

#: Kernels that are there, with the type of an argument: calls of small kernels are short.
_there: set[tuple[tuple[Dispatcher, ...], type]] = set()
_lock = threading.Lock()
_spent = 0.0


def prefer_numpy(
    seconds: Callable[[], tuple[float, float]],
    *kernels: Dispatcher,
    able: Callable[[], bool] | None = None,
    like: Any = None,
    limit: float = LIMIT,
) -> bool:
    """Whether NumPy is to compute a tile, because that is small and its kernels not compiled.

    Parameters
    ----------
    seconds : callable
        Returns about how long NumPy takes for the tile, and for all of the work.
    *kernels : Dispatcher
        The kernels, any of which may be there.
    able : callable or None
        Returns whether NumPy can do such work, and has the memory; it is asked last, since most
        calls find a kernel.
    like : object or None
        An argument of theirs: kernels compiled for another type of it do not count.
    limit : float
        Seconds that all such work may have taken after it.

    Returns
    -------
    bool
        If so, the seconds count as spent.
    """
    global _spent
    if compiling.replaced is not None:
        return compiling.replaced and (able is None or able())
    if config.DISABLE_JIT:
        # as Python some kernels cannot run, and the others take longer than NumPy
        return able is None or able()
    known = kernels, type(like)
    if known in _there:
        return False
    if any(compiled(one, like) for one in kernels):
        _there.add(known)
        return False
    if able is not None and not able():
        return False
    some, total = seconds()
    if max(_spent + some, total) > limit:
        return False
    with _lock:
        _spent += some
    return True


def most_bytes(budget: int, most: int = 2**22) -> int:
    """Bytes that NumPy may hold in place of kernels: `most`, or none of a small budget."""
    return most if 8 * most <= budget else 0


def compiled(kernel: Dispatcher, like: Any = None) -> bool:
    """Whether an instance of a kernel is in memory or on disk, for the type of an argument."""
    wanted = None if like is None else typeof(like)
    return any(wanted is None or wanted in given for given in _instances(kernel))


def _instances(kernel: Dispatcher) -> Iterator[tuple[Any, ...]]:
    """Types of the arguments that a kernel has been compiled for."""
    if config.DISABLE_JIT:
        return  # kernels are Python's functions
    yield from list(kernel.overloads)
    found = vars(kernel).get("_on_disk")
    if found is None:
        cache: Any = cache_of(kernel)
        codegen = kernel.targetctx.codegen()
        index = cache._cache_file._load_index() if cache is not None else {}
        found = [key[0] for key in index if key == cache._index_key(key[0], codegen)]
        kernel._on_disk = found
    yield from found
