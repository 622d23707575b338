"""How many candidates lie side by side in the kernels of `dtw` and `uneven`, and which cells."""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from ...host import kernel

__all__ = ["LANES", "columns_of_rows", "lanes_of"]

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


@kernel(inline="always")
def columns_of_rows(i, height, start, width, reach, least_reach):
    """Which columns of a strip lie in the bands of one or more rows, and which in all bands.

    Parameters
    ----------
    i, height : int
        The first row, and how many.
    start, width : int
        The first column of the strip, and how many.
    reach, least_reach : int
        The widest band of a lane, and the narrowest.

    Returns
    -------
    first, stop : int
        Columns of the strip of which a cell may lie in a band.
    inner_first, inner_stop : int
        Those of which all cells of the rows lie in the bands of all lanes; of one row none.
    """
    first = max(0, i - reach - start)
    stop = min(width, i + height + reach - start)
    inner_first = max(first, i + height - 1 - least_reach - start)
    inner_stop = min(stop, i + least_reach + 1 - start) if height > 1 else 0
    return first, stop, inner_first, inner_stop
