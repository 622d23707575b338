"""Arrays on their way to the device, and results of tiles on their way to the host."""

from __future__ import annotations

import math
from types import ModuleType
from typing import TypeAlias

import cupy as cp
import cupyx
import numpy as np

from ..core import compiling
from .launch import Copy

__all__ = [
    "LARGE",
    "Near",
    "Parcel",
    "Staged",
    "as_in",
    "bring",
    "filled",
    "is_small",
    "module_of",
    "near",
    "read_number",
    "send",
    "send_one",
    "to_host",
]

#: An array on the device, or a small one on the host, where arithmetic with it is done.
Near: TypeAlias = "np.ndarray | cp.ndarray"

#: Arithmetic with arrays of so many numbers is done on the host: CuPy compiles every operation when
#: it is first needed, a tenth of a second each, and launches take as long as NumPy's loops here.
SMALL = 2**15
#: Arrays of fewer bytes come in ordinary memory.
LARGE = 2**20
#: Arrays that are sent together begin at multiples of so many bytes.
ALIGNED = 16


def send_one(array: np.ndarray) -> cp.ndarray:
    """Send an array to the device: CuPy's `asarray` takes twice as long for a small one."""
    there = cp.empty(array.shape, array.dtype)
    there.set(array)
    return there


class Parcel:
    """Arrays that go to the device in one transfer, where some may hold addresses of others.

    Their places on the device are known before they are sent: `here` holds a copy of each on the
    host, to be completed until then.

    Parameters
    ----------
    *arrays : ndarray
        What is sent.
    room : int, default 0
        Bytes behind the last array that are not sent.

    Attributes
    ----------
    here : list of ndarray
        Copies of the arrays.
    block : cupy.ndarray of uint8
        All of it on the device.
    begins : list of int
        Where in it each array begins; the last number is where the room does.
    """

    def __init__(self, *arrays: np.ndarray, room: int = 0) -> None:
        self.begins = [0]
        for array in arrays:
            self.begins.append(self.begins[-1] + -(-array.nbytes // ALIGNED) * ALIGNED)
        self._packed = np.zeros(self.begins[-1], np.uint8)
        self.here = []
        for array, begin in zip(arrays, self.begins, strict=False):
            place = self._packed[begin : begin + array.nbytes].view(array.dtype)
            place = place if array.ndim == 1 else place.reshape(array.shape)
            place[...] = array
            self.here.append(place)
        size = self.begins[-1] + room
        # blocks of nearly the same size are of the same: CuPy's pool then has one that was freed
        grain = 1 << max(0, size.bit_length() - 5) if room else 1
        self.block = cp.empty(-(-size // grain) * grain, np.uint8)

    def address(self, k: int) -> int:
        """Where array k is on the device; 0 where it is empty."""
        return int(self.block.data.ptr) + self.begins[k] if self.here[k].size else 0

    def send(self) -> None:
        """Send the arrays as they are now."""
        self.block[: self.begins[-1]].set(self._packed)

    def there(self, k: int) -> cp.ndarray:
        """Array k on the device."""
        array = self.here[k]
        part = self.block[self.begins[k] : self.begins[k] + array.nbytes].view(array.dtype)
        return part if array.ndim == 1 else part.reshape(array.shape)


def send(*arrays: np.ndarray) -> list[cp.ndarray]:
    """Send arrays to the device in one transfer: many small ones take as long as one each."""
    parcel = Parcel(*arrays)
    parcel.send()
    return list(map(parcel.there, range(len(arrays))))


class Staged:
    """Arrays that stay where they are, on the device and in pinned memory of the host.

    Neighbours lie together and travel in one transfer, which a graph can hold. On the device they
    begin as zeros.

    Parameters
    ----------
    **fields : tuple of (tuple of int, type)
        Shape and type of each array, by its name.

    Attributes
    ----------
    there, here : dict of arrays
        Those of the device and of the host.
    """

    def __init__(self, **fields: tuple[tuple[int, ...], type]) -> None:
        self._places: dict[str, slice] = {}
        end = 0
        for name, (shape, dtype) in fields.items():
            size = math.prod(shape) * np.dtype(dtype).itemsize
            self._places[name] = slice(end, end + size)
            end += -(-size // ALIGNED) * ALIGNED
        self._blocks = cp.zeros(end, np.uint8), cupyx.empty_pinned(end, np.uint8)
        self.there, self.here = (
            {
                name: block[self._places[name]].view(dtype).reshape(shape)
                for name, (shape, dtype) in fields.items()
            }
            for block in self._blocks
        )

    def send(self, first: str, last: str) -> Copy:
        """Return the copy of neighbours to the device."""
        return Copy(*(self._run(block, first, last) for block in self._blocks))

    def fetch(self, first: str, last: str) -> Copy:
        """Return the copy of neighbours to the host."""
        return Copy(*(self._run(block, first, last) for block in self._blocks[::-1]))

    def _run(self, block: Near, first: str, last: str) -> Near:
        return block[self._places[first].start : self._places[last].stop]


def is_small(size: int) -> bool:
    """Whether arithmetic with so many numbers is done on the host.

    Who compiles ahead gets what larger arrays need (`skts.warm_up`), and so do tests.
    """
    return size <= SMALL and compiling.replaced is not False


def near(*arrays: cp.ndarray) -> list[Near]:
    """Bring arrays to where arithmetic with them is done: the host, if all of them are small."""
    if all(is_small(array.size) for array in arrays):
        return [bring(array) for array in arrays]
    return list(arrays)


def module_of(array: Near) -> ModuleType:
    """NumPy or CuPy, by where an array is."""
    module: ModuleType = np if isinstance(array, np.ndarray) else cp
    return module


def as_in(module: ModuleType, array: Near) -> Near:
    """Bring an array to where another is."""
    if module is np:
        return array if isinstance(array, np.ndarray) else bring(array)
    return send_one(array) if isinstance(array, np.ndarray) else array


def filled(shape: int | tuple[int, ...], value: float | np.generic, dtype: type) -> cp.ndarray:
    """Make an array on the device that is the same everywhere."""
    made = cp.empty(shape, dtype)
    if is_small(made.size):
        made.set(np.full(shape, value, dtype))
    else:
        made.fill(value)
    return made


def to_host(array: Near) -> np.ndarray:
    """Bring the result of a tile to the host, through memory that CuPy keeps for the next one.

    Large arrays of ordinary memory are new pages at every tile, which the system hands out more
    slowly than the bus fills them. For results that are merged and let go.
    """
    if isinstance(array, np.ndarray):
        return array
    if array.nbytes < LARGE:
        return bring(array)
    out = cupyx.empty_pinned(array.shape, array.dtype)
    return cp.ascontiguousarray(array).get(out=out)


def bring(array: cp.ndarray) -> np.ndarray:
    """Bring an array to ordinary memory, once the kernels before are done.

    A copy to ordinary memory that waits for a kernel holds up copies of other threads, those to
    other devices, too; one that waits for its stream holds up nobody.
    """
    cp.cuda.get_current_stream().synchronize()
    return array.get()


def read_number(array: cp.ndarray) -> int:
    """Read the first number of an array, once the kernels before are done, as `bring` does."""
    return int(bring(array[:1])[0])
