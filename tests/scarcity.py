"""Memory that is refused at one allocation after the other: of the host, and of a GPU.

On the host it is NumPy's own allocator that refuses, for all arrays that this thread and those that
it starts make, within NumPy, SciPy and scikit-learn, too. Out of reach: objects of Python, and
memory that Numba's kernels ask for themselves.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Refusal", "refusing", "spread"]

#: What stands in for arrays of a GPU takes memory of the host that a GPU would not.
EMULATOR = str(Path(__file__).parent / "emulator")
#: Of the functions of NumPy's C interface, those that set and get the allocator.
SET_HANDLER, GET_HANDLER = 304, 305

Size, Pointer = ctypes.c_size_t, ctypes.c_void_p
#: Arguments of functions that allocate, behind the context.
SIZES = {"malloc": (Size,), "calloc": (Size, Size), "realloc": (Pointer, Size)}
#: The functions as C calls them.
CALLED = {name: ctypes.CFUNCTYPE(Pointer, Pointer, *sizes) for name, sizes in SIZES.items()}


class Refusal:
    """Counts allocations and refuses one of them, by its number; 0 for none."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.count, self._lock = at, 0, threading.Lock()

    def __call__(self) -> bool:
        """Whether this one is refused."""
        with self._lock:
            self.count += 1
            return self.count == self.at


class Handler(ctypes.Structure):
    """`PyDataMem_Handler` of NumPy."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", Pointer),
        *CALLED.items(),
        ("free", Pointer),
    )


def _interface() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions that set and get the allocator of arrays that this thread makes."""
    core = importlib.import_module("numpy._core" if np.__version__ >= "2" else "numpy.core")
    _multiarray_umath = importlib.import_module(f"{core.__name__}._multiarray_umath")

    capsule = ctypes.pythonapi.PyCapsule_GetPointer
    capsule.restype, capsule.argtypes = Pointer, [ctypes.py_object, ctypes.c_char_p]
    table = (Pointer * (GET_HANDLER + 1)).from_address(capsule(_multiarray_umath._ARRAY_API, None))
    put = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])
    get = ctypes.PYFUNCTYPE(ctypes.py_object)(table[GET_HANDLER])
    return put, get


class _Host:
    """NumPy's own allocator behind one that may refuse.

    Arrays remember who frees them: that is NumPy's own function, and the structure is never freed.
    """

    def __init__(self) -> None:
        self.put, get = _interface()
        address = ctypes.pythonapi.PyCapsule_GetPointer(get(), b"mem_handler")
        own = Handler.from_address(address)
        # NumPy's functions are called with the interpreter's lock held, as NumPy does
        self.own = {
            name: ctypes.cast(getattr(own, name), ctypes.PYFUNCTYPE(Pointer, Pointer, *sizes))
            for name, sizes in SIZES.items()
        }
        self.refuse: Callable[[], bool] = Refusal()
        self.handler = Handler(
            b"refusing",
            1,
            own.context,
            *(function(getattr(self, f"_{name}")) for name, function in CALLED.items()),
            own.free,
        )
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.handler))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [Pointer, ctypes.c_char_p, Pointer]
        self.capsule = new(ctypes.addressof(self.handler), b"mem_handler", None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.capsule))

    def _refused(self) -> bool:
        caller = sys._getframe(2)
        return not caller.f_code.co_filename.startswith(EMULATOR) and self.refuse()

    def _malloc(self, context: int | None, size: int) -> int | None:
        return None if self._refused() else self.own["malloc"](context, size)

    def _calloc(self, context: int | None, count: int, size: int) -> int | None:
        return None if self._refused() else self.own["calloc"](context, count, size)

    def _realloc(self, context: int | None, pointer: int, size: int) -> int | None:
        return None if self._refused() else self.own["realloc"](context, pointer, size)


_host: _Host | None = None


def _take_host_allocator(*event: object) -> None:
    sys.setprofile(None)
    _host.put(_host.capsule)


@contextmanager
def _refusing_on_host(refuse: Refusal) -> Iterator[None]:
    global _host
    if _host is None:
        _host = _Host()
    _host.refuse = refuse
    # the allocator is one of a thread: others take it when they begin
    before, profile = _host.put(_host.capsule), threading.getprofile()
    threading.setprofile(_take_host_allocator)
    try:
        yield
    finally:
        threading.setprofile(profile)
        _host.put(before)
        _host.refuse = Refusal()


@contextmanager
def _refusing_on_device(refuse: Refusal) -> Iterator[None]:
    import cupy

    allocate = cupy.cuda.get_allocator()

    def allocator(size: int) -> Any:
        if refuse():
            raise cupy.cuda.memory.OutOfMemoryError(size, 0)
        return allocate(size)

    cupy.cuda.set_allocator(allocator)
    try:
        yield
    finally:
        cupy.cuda.set_allocator(allocate)


PLACES = {"host": _refusing_on_host, "device": _refusing_on_device}


@contextmanager
def refusing(place: str, at: int = 0) -> Iterator[Refusal]:
    """Refuse one allocation of those made inside of a `with`; count all of them."""
    refuse = Refusal(at)
    with PLACES[place](refuse):
        yield refuse


def spread(count: int, how_many: int | None) -> list[int]:
    """Numbers of allocations from the first to the last: so many, or all for None."""
    return np.unique(np.linspace(1, count, how_many or count).astype(int)).tolist()
