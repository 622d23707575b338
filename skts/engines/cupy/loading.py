"""CUDA functions, compiled when first asked for."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from functools import cache

import cupy as cp

from ..core import compiling
from ..core.interrupts import aside
from .launch import Kernel
from .programs import OPTIONS, program_of

__all__ = ["blocks_for", "load_kernel", "pays"]

#: Bytes of shared memory that a block may have without asking.
SHARED = 48 * 1024

#: Work for which an instance that only is faster is compiled, in cells at the full rate of a
#: device: 3 ms of a large one, some 30 of a small one, where compilers take 100 to 5,000.
WORTH_COMPILING = 2**34

#: Work that a faster instance has been wanted for, in this process; endless once it is there.
_wanted: defaultdict[tuple[str, str], float] = defaultdict(float)
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
                _wanted[file, name] = math.inf
            return _loaded[file, name, shared]

    return aside(load)


def pays(file: str, name: str, work: float) -> bool:
    """Whether to use an instance for work that another one does as well, though more slowly.

    It is used if it has been loaded before, or once the work that it was wanted for is worth its
    compilation. Both instances must give the same bits: which one runs depends on what else this
    process has done. `skts.warm_up`, tests and benchmarks do not wait (`replace_kernels`).

    Parameters
    ----------
    file, name : str
        The faster instance, see `load_kernel`.
    work : float
        What the slower one takes, in cells at the full rate of a device.
    """
    _wanted[file, name] += work
    return compiling.replaced is False or _wanted[file, name] >= WORTH_COMPILING


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
    code, names = program_of(file, instance or "")
    return cp.RawModule(code=code, options=OPTIONS, name_expressions=names or None)


def blocks_for(count: int, threads: int) -> int:
    """Blocks of so many threads that have one for each of `count`."""
    return -(-count // threads)
