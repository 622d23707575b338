"""Warping paths on the GPU: strips of the matrix, and the way back through them."""

from __future__ import annotations

from typing import Any

import cupy as cp
import numpy as np

from ...core.constants import PATH_STRIP
from ...families.elastic.warping import Warping
from ..loading import load_kernel
from .cells import WINDOWS, policy_of, windows_cell
from .dtw import DeviceSeries, certifying_argument, channels_of
from .programs import certifying_cell

__all__ = ["path", "path_bytes"]


def path(
    x: DeviceSeries, y: DeviceSeries, warping: Warping, cancel: np.ndarray, width: int = 1
) -> tuple[np.ndarray, float]:
    """Best warping path of one pair.

    The last row of every strip of 1,024 rows is kept on the way down; on the way back strips
    are filled in once more. Steps and ends are chosen as the CPU engine chooses them.

    Parameters
    ----------
    x, y : DeviceSeries
        One series each, float64.
    warping : Warping
        Options of the distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    width : int, default 1
        Points of the windows that are compared in place of points, as in `alignments.trace`.

    Returns
    -------
    path : ndarray of shape (n_steps, 2), int64
        Matched points, in order; points that are left out are not among them.
    cost : float
        Certified accumulated cost.
    """
    n, m = x.length, y.length
    radius = int(warping.radius(n, m))
    free_columns = warping.alignment == "subsequence"
    free_rows = warping.alignment == "supersequence"
    cell_name, cell = certifying_cell(warping), certifying_argument(warping, max(n, m))
    argument = cell.argument
    if width > 1:
        cell_name, argument = WINDOWS, windows_cell(warping.squared, width)
    pair = _pair(x, y, warping) | {"radius": radius, "cell": argument}
    borders = policy_of(warping).borders
    firsts, threads = range(0, n, PATH_STRIP), min(PATH_STRIP, -(-n // 32) * 32)
    # marks[s] is the row before strip s, its border in front
    marks = cp.full((len(firsts) + 1, m + 1), np.inf)
    marks[0] = 0 if free_columns else np.inf
    marks[0, 0] = 0
    right = cp.full(n, np.inf) if free_rows else None
    front = cp.full(n, np.inf) if borders else None
    if borders:
        load_kernel("elastic/path.cu", f"borders<{cell_name}>")(
            1, 32, n=n, m=m, top=marks[0], front=front, **pair
        )

    def fill(index: int, steps: cp.ndarray | None) -> None:
        if cancel[0]:
            return
        first = firsts[index]
        n_rows = min(PATH_STRIP, n - first)
        load_kernel("elastic/path.cu", f"strip<{cell_name}>")(
            1,
            threads,
            first_row=first,
            n_rows=n_rows,
            begin=max(0, first - radius),
            stop=min(m, first + n_rows + radius),
            m=m,
            free_columns=free_columns,
            free_rows=free_rows,
            above=marks[index],
            front=front,
            below=marks[index + 1],
            right=right,
            steps=steps,
            **pair,
        )
        # no strips wait behind this one, so that an interrupt ends the work
        cp.cuda.get_current_stream().synchronize()

    for index in range(len(firsts)):
        fill(index, None)
    if cancel[0]:
        return np.empty((0, 2), np.int64), 0.0
    i, j, cost = _end(n, marks[-1, 1:], right, free_columns=free_columns)
    steps = cp.empty(step_bytes(n, min(m, PATH_STRIP + 2 * radius)), np.uint8)
    found = cp.empty((i + j + 1, 2), np.int64)
    state = cp.array([i, j, 0], np.int64)
    for index in range(i // PATH_STRIP, -1, -1):
        fill(index, steps)
        if cancel[0]:
            break
        load_kernel("elastic/path.cu", "walk")(
            1,
            1,
            steps=steps,
            first_row=firsts[index],
            begin=max(0, firsts[index] - radius),
            threads=threads,
            matches=borders,
            state=state,
            path=found,
        )
    length = int(state[2])
    return found[:length][::-1].get(), float(cost)


def _end(
    n: int, below: cp.ndarray, right: cp.ndarray | None, *, free_columns: bool
) -> tuple[int, int, float]:
    """Return the cell in which the best path ends, and its cost."""
    if right is not None:
        ends = right.get()
        i = int(np.argmin(ends))
        return i, len(below) - 1, ends[i]
    ends = below.get()
    j = int(np.argmin(ends)) if free_columns else len(below) - 1
    return n - 1, j, ends[j]


def _pair(x: DeviceSeries, y: DeviceSeries, warping: Warping) -> dict[str, Any]:
    """Arguments of the kernels that look at both series."""
    return {
        "x": x.values,
        "y": y.values,
        "n_channels": channels_of(x, warping),
        "x_stride": x.shape[2],
        "y_stride": y.shape[2],
    }


def step_bytes(n: int, width: int) -> int:
    """Bytes of the steps of a strip of so many columns, antidiagonal by antidiagonal."""
    threads = min(PATH_STRIP, -(-n // 32) * 32)
    return threads * (width + threads)


def path_bytes(n: int, m: int) -> int:
    """Bytes that `path` needs for series of n and m points."""
    return 8 * (m + 1) * (-(-n // PATH_STRIP) + 2) + step_bytes(n, m) + 16 * (n + m) + 8 * n
