"""How many candidates lie side by side in the kernels of `dtw` and `uneven`."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

__all__ = ["LANES", "lanes_of"]

#: Lanes of a group, by type: the fastest of 16 to 64 on AVX2. With 16 float64 lanes LLVM unrolls
#: the lane loop instead of vectorising it (4 times slower).
LANES: dict[type, int] = {np.float64: 32, np.float32: 64}


def lanes_of(packed: np.ndarray) -> int:
    """Lanes of a type, a constant wherever a kernel is compiled."""
    return LANES[packed.dtype.type]


@overload(lanes_of)
def _lanes_of(packed):
    if packed.dtype == types.float32:
        return lambda packed: 64
    return lambda packed: 32
