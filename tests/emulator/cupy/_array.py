"""Arrays of the emulated device: NumPy's, in memory between guards, that NumPy does not take.

As CuPy's: host and device arrays do not mix, and what NumPy returns as a number is an array without
dimensions.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ._machine import Memory

__all__ = ["Foreign", "allocate", "inner", "ndarray", "outer", "quietly"]

#: Bytes that integers hold before anything is written to them; floats hold NaN.
POISON = 0xCB
#: Bytes at either end of an array that hold this.
POISONED = 2**18


class ndarray(NDArrayOperatorsMixin):
    """An array on a device."""

    __slots__ = ("__weakref__", "_array", "device")
    __hash__ = None

    def __init__(self, shape: Any, dtype: Any = float) -> None:
        self._array = allocate(shape, dtype)
        self.device = _current_device()

    # ------------------------------------------------------------------------------- attributes

    @property
    def data(self) -> Any:
        """Where the array lies."""
        return SimpleNamespace(ptr=self._array.ctypes.data, device=self.device)

    @property
    def __cuda_array_interface__(self) -> dict:
        from .cuda.runtime import start

        start()  # CuPy asks for the current stream here, which fails in a forked process
        interface = self._array.__array_interface__
        return {key: interface[key] for key in ("shape", "typestr", "data", "strides", "version")}

    @property
    def T(self) -> ndarray:
        return outer(self._array.T)

    @property
    def real(self) -> ndarray:
        return outer(self._array.real)

    @property
    def imag(self) -> ndarray:
        return outer(self._array.imag)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._array, name)
        if callable(found):
            return lambda *args, **kwargs: quietly(found, *args, **kwargs)
        return found

    # -------------------------------------------------------------------------------- host side

    def get(
        self, stream: Any = None, order: str = "C", out: np.ndarray | None = None
    ) -> np.ndarray:
        """Copy the array to the host."""
        if out is None:
            return np.array(self._array, order=order)
        if out.shape != self.shape or out.dtype != self.dtype:
            raise ValueError("shape or type of out")
        out[...] = self._array
        return out

    def set(self, array: np.ndarray, stream: Any = None) -> None:
        """Copy an array of the host to this one."""
        if not isinstance(array, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if array.dtype != self.dtype:
            raise TypeError(f"{array.dtype} array cannot be set to {self.dtype} array")
        if array.shape != self.shape:
            raise ValueError(f"Shape mismatch: {array.shape} and {self.shape}")
        if not (self._array.flags.c_contiguous or self._array.flags.f_contiguous):
            raise RuntimeError("Cannot set to non-contiguous array")
        self._array[...] = array

    def item(self, *args: int) -> Any:
        return self._array.item(*args)

    def tolist(self) -> Any:
        return self._array.tolist()

    def view(self, dtype: Any = None) -> ndarray:
        return outer(self._array.view() if dtype is None else self._array.view(dtype))

    def copy(self, order: str = "C") -> ndarray:
        return outer(self._array.copy(order))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    # -------------------------------------------------------------------------------- operators

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        refuse(args)
        out = kwargs.get("out")
        found = quietly(getattr(ufunc, method), *args, **kwargs)
        return out[0] if out else found

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        refuse((args, tuple(kwargs.values())))
        return quietly(function, *args, **kwargs)

    def __getitem__(self, key: Any) -> ndarray:
        return outer(self._array[inner(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError(f"Unsupported type {type(value)}")
        self._array[inner(key)] = inner(value)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Any:
        return (outer(part) for part in self._array)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)

    def __index__(self) -> int:
        return self._array.__index__()

    def __repr__(self) -> str:
        return repr(self._array)

    def __str__(self) -> str:
        return str(self._array)

    def __reduce__(self) -> Any:
        return outer, (np.array(self._array),)


def _current_device() -> Any:
    from .cuda import Device

    return Device()


def allocate(shape: Any, dtype: Any = float, order: str = "C", *, poison: bool = True) -> Any:
    """Memory of the device, which holds what nobody should use, or zeros."""
    from .cuda import memory

    dtype = np.dtype(dtype)
    shape = tuple(int(n) for n in np.atleast_1d(shape)) if shape != () else ()
    size = math.prod(shape) * dtype.itemsize
    flat = np.asarray(memory.take(size))
    if size == 0:
        return np.empty(shape, dtype, order)
    if poison:
        # of large arrays, lists with much room above all, the begin and the end
        value = 0xFF if dtype.kind in "fc" else POISON
        flat[:POISONED] = value
        flat[max(POISONED, size - POISONED) :] = value
    return flat.view(dtype).reshape(shape, order=order)


def _is_of_device(array: np.ndarray) -> bool:
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, Memory | Foreign)


class Foreign:
    """An array of another library, by its interface."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = dict(owner.__cuda_array_interface__)
        self.__array_interface__["version"] = 3


def outer(found: Any) -> Any:
    """A result of NumPy, in the form in which CuPy returns it."""
    if isinstance(found, np.ndarray | np.generic):
        array = np.asarray(found)
        if not _is_of_device(array):
            order = "F" if array.flags.fnc else "C"
            made = allocate(array.shape, array.dtype, order, poison=False)
            made[...] = array
            array = made
        wrapped = ndarray.__new__(ndarray)
        wrapped._array, wrapped.device = array, _current_device()
        return wrapped
    if isinstance(found, tuple) and type(found) is not tuple:  # named tuples
        return type(found)(*map(outer, found))
    if isinstance(found, tuple | list):
        return type(found)(map(outer, found))
    return found


def inner(given: Any) -> Any:
    """An argument for NumPy, in place of arrays of the device."""
    if isinstance(given, ndarray):
        return given._array
    if isinstance(given, tuple | list):
        return type(given)(map(inner, given))
    if isinstance(given, dict):
        return {key: inner(value) for key, value in given.items()}
    return given


def refuse(given: Any) -> None:
    """CuPy's functions take no arrays of the host."""
    if isinstance(given, np.ndarray):
        raise TypeError(f"Unsupported type {type(given)}")
    if isinstance(given, tuple | list):
        for one in given:
            refuse(one)


def quietly(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function of NumPy with arrays of the device; a GPU warns of nothing."""
    with np.errstate(all="ignore"):
        return outer(function(*inner(args), **inner(kwargs)))
