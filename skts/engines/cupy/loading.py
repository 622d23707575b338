"""CUDA functions, compiled when first asked for."""

from __future__ import annotations

import threading
from collections import defaultdict
from functools import cache

import cupy as cp

from ..core.interrupts import aside
from .launch import Kernel
from .programs import OPTIONS, source

__all__ = ["blocks_for", "load_kernel"]

#: Bytes of shared memory that a block may have without asking.
SHARED = 48 * 1024

_loaded: dict[tuple[str, str, int], Kernel] = {}
#: For each program one: whoever needs it waits for the first, who may have been interrupted.
_compiling: defaultdict[tuple[str, str | None], threading.Lock] = defaultdict(threading.Lock)


def load_kernel(file: str, name: str, shared: int = 0) -> Kernel:
    """Return a function of a source file, compiled for the device where it is launched.

    CuPy keeps programs on disk. An instance of a template is one, and so are all plain functions
    of a file. NVRTC takes seconds in which no signal is seen: it works aside.

    Parameters
    ----------
    file : str
        Source file, with the folder of its family: ``"elastic/dtw.cu"``.
    name : str
        Name of the function in C++, that of an instance with its arguments: ``"dtw<float, ...>"``.
    shared : int, default 0
        Bytes of shared memory that launches will ask for.

    Returns
    -------
    Kernel
        The function, which checks its arguments.
    """
    found = _loaded.get((file, name, shared))
    if found is not None:
        return found
    program = file, name if "<" in name else None
    device = cp.cuda.Device()

    def load() -> Kernel:
        with _compiling[program], device:
            if (file, name, shared) not in _loaded:
                function = _function(_module(*program), name, shared)
                _loaded[file, name, shared] = Kernel(function, file, name)
            return _loaded[file, name, shared]

    return aside(load)


def _function(module: cp.RawModule, name: str, shared: int) -> cp.RawKernel:
    """Take a function from its program, which is compiled at need."""
    kernel = module.get_function(name)
    # the function is the same for all who ask: it keeps the most that was asked for
    if shared > max(SHARED, kernel.max_dynamic_shared_size_bytes):
        kernel.max_dynamic_shared_size_bytes = shared
    return kernel


@cache
def _module(file: str, instance: str | None) -> cp.RawModule:
    """An instance of a template, or all functions of a file that are no templates."""
    names = {} if instance is None else {"name_expressions": (instance,)}
    return cp.RawModule(code=source(file), options=OPTIONS, **names)


def blocks_for(count: int, threads: int) -> int:
    """Blocks of so many threads that have one for each of `count`."""
    return -(-count // threads)
