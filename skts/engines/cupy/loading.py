"""CUDA functions, compiled when first asked for."""

from __future__ import annotations

from functools import cache

import cupy as cp

from .programs import OPTIONS, source

__all__ = ["blocks_for", "load_kernel"]

#: Bytes of shared memory that a block may have without asking.
SHARED = 48 * 1024


@cache
def load_kernel(file: str, name: str, shared: int = 0) -> cp.RawKernel:
    """Return a function of a source file, compiled for the device where it is launched.

    CuPy keeps programs on disk. An instance of a template is one, and so are all plain functions
    of a file.

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
    cupy.RawKernel
        The function.
    """
    if "<" in name:
        module = cp.RawModule(code=source(file), options=OPTIONS, name_expressions=(name,))
    else:
        module = _plain_functions(file)
    kernel = module.get_function(name)
    # the function is the same for all who ask: it keeps the most that was asked for
    if shared > max(SHARED, kernel.max_dynamic_shared_size_bytes):
        kernel.max_dynamic_shared_size_bytes = shared
    return kernel


@cache
def _plain_functions(file: str) -> cp.RawModule:
    """The program of all functions of a file that are no templates."""
    return cp.RawModule(code=source(file), options=OPTIONS)


def blocks_for(count: int, threads: int) -> int:
    """Blocks of so many threads that have one for each of `count`."""
    return -(-count // threads)
