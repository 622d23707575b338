"""Statistics of all windows, a piece at a time: between two of them a run can be stopped."""

from __future__ import annotations

import numpy as np

from ..core.interrupts import raise_if_cancelled
from . import windows

__all__ = ["statistics"]

#: Points that are summed in one piece, those of a window for each window: some tenths of a second.
PIECE = 2**28


def statistics(points: np.ndarray, length: int) -> list[np.ndarray]:
    """Mean, deviation, least and largest point of all windows: see `windows.statistics`.

    Points count from the first one of their window, so that the bits do not depend on the pieces.
    """
    n_windows = points.size - length + 1
    size = windows.TOGETHER * max(1, PIECE // (length * windows.TOGETHER))
    if n_windows <= size:
        return list(windows.statistics(points, length, True))
    found = [np.empty(n_windows) for _ in range(4)]
    for first in range(0, n_windows, size):
        raise_if_cancelled()
        stop = min(first + size, n_windows)
        piece = windows.statistics(points[first : stop + length - 1], length, True)
        for whole, part in zip(found, piece, strict=True):
            whole[first:stop] = part
    return found
