"""A stand-in for CuPy on a machine without a GPU, for tests: see README.md beside this package."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import cuda, fft, linalg
from ._array import Foreign, allocate, inner, ndarray, outer, quietly, refuse
from ._kernels import ElementwiseKernel, RawKernel, RawModule
from ._machine import SETTINGS, KernelError

__all__ = ["SETTINGS", "ElementwiseKernel", "KernelError", "RawKernel", "RawModule"]
__all__ += ["cuda", "fft", "linalg"]
__version__ = "14.2.0"
# kernels are kept in a folder of the emulator's own, and none in CuPy's
os.environ.setdefault("CUPY_CACHE_IN_MEMORY", "1")

newaxis, inf, nan, pi = None, np.inf, np.nan, np.pi


def get_default_memory_pool() -> cuda.memory.MemoryPool:
    return cuda.memory.pool


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return outer(allocate(shape, dtype, order))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    dtype = np.asarray(inner(fill_value)).dtype if dtype is None else dtype
    made = allocate(shape, dtype, order, poison=False)
    made[...] = inner(fill_value)
    return outer(made)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return outer(allocate(shape, dtype, order, poison=False))


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 1, dtype, order)


def empty_like(a: Any, dtype: Any = None) -> ndarray:
    return empty(a.shape, a.dtype if dtype is None else dtype)


def zeros_like(a: Any, dtype: Any = None) -> ndarray:
    return zeros(a.shape, a.dtype if dtype is None else dtype)


def full_like(a: Any, fill_value: Any, dtype: Any = None) -> ndarray:
    return full(a.shape, fill_value, a.dtype if dtype is None else dtype)


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", **_: Any) -> ndarray:
    if not isinstance(obj, ndarray) and hasattr(obj, "__cuda_array_interface__"):
        obj = outer(np.asarray(Foreign(obj)))
    if isinstance(obj, ndarray) and not copy and (dtype is None or obj.dtype == dtype):
        return obj
    made = np.array(inner(obj), dtype, order=order)
    if made.dtype.kind not in "biufc":
        raise ValueError(f"Unsupported dtype {made.dtype}")
    return outer(made)


def asarray(a: Any, dtype: Any = None, order: str | None = None, **_: Any) -> ndarray:
    made = array(a, dtype, copy=False)
    if order is not None:
        made = outer(np.asarray(made._array, order=order))
    return made


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    made = asarray(a, dtype)
    return outer(np.ascontiguousarray(made._array))


def asfortranarray(a: Any, dtype: Any = None) -> ndarray:
    made = asarray(a, dtype)
    return outer(np.asfortranarray(made._array))


def asnumpy(a: Any) -> np.ndarray:
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def __getattr__(name: str) -> Any:
    """Functions of NumPy's namespace, which take no arrays of the host."""
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(np, name)
    if isinstance(found, type) or not callable(found):
        return found

    def function(*args: Any, **kwargs: Any) -> Any:
        refuse(args)
        out = kwargs.get("out")
        answer = quietly(found, *args, **kwargs)
        return answer if out is None else out

    function.__name__ = name
    return function
