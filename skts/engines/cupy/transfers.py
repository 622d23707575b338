"""Results of tiles on their way to the host."""

from __future__ import annotations

import cupy as cp
import cupyx
import numpy as np

__all__ = ["bring", "read_number", "to_host"]

#: Arrays of fewer bytes come in ordinary memory.
LARGE = 2**20


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
