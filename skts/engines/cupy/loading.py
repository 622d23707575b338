"""CUDA functions, compiled when first asked for."""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from functools import cache

import cupy as cp

from ..core import compiling
from ..core.interrupts import aside
from . import on_disk
from .launch import Kernel
from .programs import OPTIONS, program_of

__all__ = ["MODEST_RATE", "blocks_for", "load_kernel", "multiprocessors", "pays", "shared_room"]

#: Bytes of shared memory that a block may have without asking, what its source declares included.
SHARED = 48 * 1024

#: Seconds that may be lost for want of a kernel, for each that compiling it takes: a part, since
#: later processes find it on disk.
WORTH_WAITING = 0.25
#: Cells a second of a device of modest size, for estimates of what is lost.
MODEST_RATE = 2.0**40

#: Seconds lost for want of a faster kernel, in this process; endless where it is there.
_lost: defaultdict[tuple[str, str], float] = defaultdict(float)
_loaded: dict[tuple[str, str, int, int | None], Kernel] = {}
#: For each program one: whoever needs it waits for the first, who may have been interrupted.
_compiling: defaultdict[tuple[str, tuple[str, ...]], threading.Lock] = defaultdict(threading.Lock)


def load_kernel(file: str, name: str, shared: int = 0) -> Kernel:
    """Return a function of a source file, compiled for the device where it is launched.

    CuPy keeps programs on disk; see `program_of`. NVRTC takes seconds in which no signal is seen:
    it works aside.

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
    # how much shared memory launches may have is said to each device
    key = file, name, shared, cp.cuda.Device().id if shared else None
    found = _loaded.get(key)
    if found is not None:
        return found
    program = program_of(file, name)
    device = cp.cuda.Device()

    def load() -> Kernel:
        with _compiling[program], device:
            if key not in _loaded:
                function = _function(_module(*program), name, shared)
                _loaded[key] = Kernel(function, file, name)
                _lost[file, name] = math.inf
                on_disk.note(*program)
            return _loaded[key]

    return aside(load)


def pays(file: str, name: str, seconds: float, to_compile: float) -> bool:
    """Whether to use a kernel for work that others do as well, though more slowly.

    It is used if it has been compiled before, by this process or another, or once the work that it
    was wanted for is worth its compilation. Answers must have the same bits without it, since other
    work of the process decides. `skts.warm_up`, tests and benchmarks do not wait
    (`replace_kernels`).

    Parameters
    ----------
    file, name : str
        The faster kernel, see `load_kernel`.
    seconds : float
        About how long the work takes without it.
    to_compile : float
        About how long it takes to compile, with all that it needs.
    """
    if compiling.replaced is False:
        return True
    if (file, name) not in _lost and on_disk.is_noted(*program_of(file, name)):
        _lost[file, name] = math.inf
    _lost[file, name] += seconds
    return _lost[file, name] >= WORTH_WAITING * to_compile


def _function(module: cp.RawModule, name: str, shared: int) -> cp.RawKernel:
    """Take a function from its program, which is compiled at need."""
    kernel = module.get_function(name)
    if shared and shared + kernel.shared_size_bytes > SHARED:
        # the function is the same for all who ask: it keeps the most that was asked for
        most = max(shared, kernel.max_dynamic_shared_size_bytes)
        kernel.max_dynamic_shared_size_bytes = most
    return kernel


@cache
def _module(code: str, names: tuple[str, ...]) -> cp.RawModule:
    """A program: an instance of a template, or functions that are none."""
    return cp.RawModule(code=code, options=OPTIONS, name_expressions=names or None)


def multiprocessors() -> int:
    """Multiprocessors of the current device."""
    return _multiprocessors(cp.cuda.Device().id)


@cache
def _multiprocessors(device: int) -> int:
    count: int = cp.cuda.Device(device).attributes["MultiProcessorCount"]
    return count


def shared_room() -> int:
    """Bytes of dynamic shared memory that a block of the current device may ask for."""
    return _shared_room(cp.cuda.Device().id)


@cache
def _shared_room(device: int) -> int:
    attributes = cp.cuda.Device(device).attributes
    # some are left to static memory
    return int(attributes["MaxSharedMemoryPerBlockOptin"]) - 1024


def blocks_for(count: int, threads: int) -> int:
    """Blocks of so many threads that have one for each of `count`."""
    return -(-count // threads)
