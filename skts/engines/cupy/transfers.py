"""Arrays on their way to the device, and results of tiles on their way to the host."""

from __future__ import annotations

import cupy as cp
import cupyx
import numpy as np

__all__ = ["bring", "read_number", "send", "to_host"]

#: Arrays of fewer bytes come in ordinary memory.
LARGE = 2**20
#: Arrays that are sent together begin at multiples of so many bytes.
ALIGNED = 16


def send(*arrays: np.ndarray) -> list[cp.ndarray]:
    """Send arrays to the device in one transfer: many small ones take as long as one each."""
    begins = np.cumsum([0, *(-(-array.nbytes // ALIGNED) * ALIGNED for array in arrays)]).tolist()
    packed = np.zeros(begins[-1], np.uint8)
    for begin, array in zip(begins, arrays, strict=False):
        packed[begin : begin + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).ravel()
    there = cp.asarray(packed)
    return [
        there[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
        for begin, array in zip(begins, arrays, strict=False)
    ]


def to_host(array: cp.ndarray) -> np.ndarray:
    """Bring the result of a tile to the host, through memory that CuPy keeps for the next one.

    Large arrays of ordinary memory are new pages at every tile, which the system hands out more
    slowly than the bus fills them. For results that are merged and let go.
    """
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
