"""Dynamic time warping on the CPU: many candidates side by side, one per SIMD lane.

The recurrence D(i,j) = c(i,j) + min(D(i-1,j-1), D(i-1,j), D(i,j-1)) cannot be vectorised along a
row, but different candidates do not depend on each other. A *group* holds LANES candidates
point by point (`pack`), and the innermost loop runs over them. Columns go in strips of WIDTH, so
that the row of a strip stays in the first-level cache whatever the lengths; the right edge of
a strip is kept for the next one.

All sums run in the same order in every kernel here, and without fused multiply-add in float64:
those values are the certified ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

__all__ = ["LANES", "block", "pack", "pairs", "path", "path_bytes", "single", "sweep_bytes"]

#: Lanes of a group and columns of a strip, by type: the fastest of 16 to 64 of each on AVX2. With
#: 16 float64 lanes LLVM unrolls the lane loop instead of vectorising it (4 times slower).
LANES = {np.float64: 32, np.float32: 64}
_WIDTH = {np.float64: 64, np.float32: 32}


def pack(values: np.ndarray, lengths: np.ndarray, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Lay series side by side in groups of lanes.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    lengths : ndarray of shape (n_series,)
        Their lengths.
    lanes : int
        Series in a group; the last group is filled up with zeros.

    Returns
    -------
    packed : ndarray of shape (n_groups, n_timepoints, n_channels, lanes)
        The points.
    lengths : ndarray of shape (n_groups, lanes)
        The lengths, 0 where there is no series.
    """
    n_series, n_channels, n_timepoints = values.shape
    n_groups = -(-n_series // lanes)
    packed = np.zeros((n_groups, n_timepoints, n_channels, lanes), values.dtype)
    packed_lengths = np.zeros((n_groups, lanes), np.int64)
    for group in range(n_groups):
        members = slice(group * lanes, min((group + 1) * lanes, n_series))
        count = members.stop - members.start
        packed[group, :, :, :count] = values[members].transpose(2, 1, 0)
        packed_lengths[group, :count] = lengths[members]
    return packed, packed_lengths


def _make_sweep(dtype: type, paired: bool, multivariate: bool) -> Callable[..., None]:
    """Build the kernel that fills LANES warping matrices side by side.

    `paired` lanes each have a row series of their own; else one row series meets all lanes.
    """
    lanes, width, inf = LANES[dtype], _WIDTH[dtype], dtype(np.inf)

    @njit(
        nogil=True,
        cache=True,
        error_model="numpy",
        fastmath={"contract"} if dtype is np.float32 else False,
    )
    def sweep(x, x_lengths, y, y_lengths, out, cancel):
        # x: (n, C, 1 or lanes), y: (m, C, lanes), out: (lanes,) accumulated costs
        n, m, n_channels = x_lengths.max(), y_lengths.max(), y.shape[1]
        row = np.empty((width + 1, lanes), y.dtype)
        columns = np.empty((width, lanes), y.dtype)
        edge = np.empty((n + 1, lanes), y.dtype)
        left = np.empty(lanes, y.dtype)
        diagonal = np.empty(lanes, y.dtype)
        cost = np.empty(lanes, y.dtype)
        ends = np.zeros(n, np.uint8)
        for lane in range(x_lengths.size):
            if x_lengths[lane] > 0:
                ends[x_lengths[lane] - 1] = 1
        edge[:] = inf
        edge[0, :] = 0
        for start in range(0, m, width):
            if cancel[0]:
                return
            w = min(width, m - start)
            for j in range(w):
                for lane in range(lanes):
                    columns[j, lane] = y[start + j, 0, lane]
            row[:] = inf
            for lane in range(lanes):
                row[0, lane] = edge[0, lane]
                edge[0, lane] = inf
            for i in range(n):
                for lane in range(lanes):
                    diagonal[lane] = row[0, lane]
                    row[0, lane] = edge[i + 1, lane]
                    left[lane] = edge[i + 1, lane]
                point = x[i, 0, 0]
                for j in range(w):
                    if multivariate:
                        for lane in range(lanes):
                            d = x[i, 0, lane if paired else 0] - columns[j, lane]
                            cost[lane] = d * d
                        for c in range(1, n_channels):
                            for lane in range(lanes):
                                d = x[i, c, lane if paired else 0] - y[start + j, c, lane]
                                cost[lane] += d * d
                    for lane in range(lanes):
                        up = row[j + 1, lane]
                        best = up if up < diagonal[lane] else diagonal[lane]
                        best = best if best < left[lane] else left[lane]
                        if multivariate:
                            value = cost[lane] + best
                        else:
                            d = (x[i, 0, lane] if paired else point) - columns[j, lane]
                            value = d * d + best
                        diagonal[lane] = up
                        left[lane] = value
                        row[j + 1, lane] = value
                for lane in range(lanes):
                    edge[i + 1, lane] = left[lane]
                if ends[i]:
                    for lane in range(lanes):
                        j = y_lengths[lane] - 1 - start
                        ends_here = x_lengths[lane if paired else 0] - 1 == i
                        if ends_here and 0 <= j < w:
                            out[lane] = row[j + 1, lane]

    return sweep


_SWEEP = {
    (dtype, paired, multivariate): _make_sweep(dtype, paired, multivariate)
    for dtype, paired in ((np.float64, False), (np.float32, False), (np.float64, True))
    for multivariate in (False, True)
}


def _make_block(sweep: Callable[..., None]) -> Callable[..., None]:
    @njit(nogil=True, cache=True)
    def block_kernel(x, x_lengths, y, y_lengths, out, cancel):
        lanes = y.shape[3]
        for group in range(y.shape[0]):
            for i in range(x.shape[0]):
                sweep(
                    x[i],
                    x_lengths[i : i + 1],
                    y[group],
                    y_lengths[group],
                    out[i, group * lanes : (group + 1) * lanes],
                    cancel,
                )

    return block_kernel


def _make_pairs(sweep: Callable[..., None]) -> Callable[..., None]:
    @njit(nogil=True, cache=True)
    def pairs_kernel(x, x_lengths, y, y_lengths, out, cancel):
        for group in range(y.shape[0]):
            sweep(x[group], x_lengths[group], y[group], y_lengths[group], out[group], cancel)

    return pairs_kernel


_BLOCK = {key: _make_block(sweep) for key, sweep in _SWEEP.items() if not key[1]}
_PAIRS = {key: _make_pairs(sweep) for key, sweep in _SWEEP.items() if key[1]}


def block(
    x: np.ndarray,
    x_lengths: np.ndarray,
    packed: np.ndarray,
    packed_lengths: np.ndarray,
    cancel: np.ndarray,
) -> np.ndarray:
    """Accumulated costs of every row series against every lane.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_channels, n_timepoints)
        Row series, of the type of `packed`.
    x_lengths : ndarray of shape (n_rows,)
        Their lengths.
    packed, packed_lengths : ndarray
        Column series from `pack`.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_rows, n_groups * lanes)
        Squared distances.
    """
    out = np.zeros((x.shape[0], packed.shape[0] * packed.shape[3]), packed.dtype)
    kernel = _BLOCK[packed.dtype.type, False, x.shape[1] > 1]
    rows = np.ascontiguousarray(x.transpose(0, 2, 1))[..., None]
    kernel(rows, x_lengths, packed, packed_lengths, out, cancel)
    return out


def pairs(
    x: np.ndarray,
    x_lengths: np.ndarray,
    y: np.ndarray,
    y_lengths: np.ndarray,
    cancel: np.ndarray,
) -> np.ndarray:
    """Certified accumulated costs of series i of `x` against series i of `y`.

    Parameters
    ----------
    x, y : ndarray of shape (n_pairs, n_channels, n_timepoints), float64
        Series.
    x_lengths, y_lengths : ndarray of shape (n_pairs,)
        Their lengths.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Squared distances.
    """
    lanes = LANES[np.float64]
    x_packed, x_packed_lengths = pack(x, x_lengths, lanes)
    y_packed, y_packed_lengths = pack(y, y_lengths, lanes)
    out = np.zeros((y_packed.shape[0], lanes))
    kernel = _PAIRS[np.float64, True, x.shape[1] > 1]
    kernel(x_packed, x_packed_lengths, y_packed, y_packed_lengths, out, cancel)
    return out.ravel()[: len(x)]


@njit(nogil=True, cache=True, error_model="numpy")
def single(x, y, cancel):
    """Certified accumulated cost of one pair, without lanes: for work too small to fill them.

    `x` and `y` have shape (n_channels, n_timepoints) and no padding.
    """
    n, m = x.shape[1], y.shape[1]
    row = np.full(m + 1, np.inf)
    row[0] = 0.0
    for i in range(n):
        if cancel[0]:
            return 0.0
        _next_row(x, i, y, row)
    return row[m]


@njit(nogil=True, cache=True, error_model="numpy", inline="always")
def _next_row(x, i, y, row):
    """Turn row i - 1 of the warping matrix, with its border in front, into row i."""
    diagonal = row[0]
    row[0] = np.inf
    left = np.inf
    for j in range(y.shape[1]):
        cost = (x[0, i] - y[0, j]) ** 2
        for c in range(1, x.shape[0]):
            cost += (x[c, i] - y[c, j]) ** 2
        up = row[j + 1]
        best = up if up < diagonal else diagonal
        best = best if best < left else left
        left = cost + best
        row[j + 1] = left
        diagonal = up


@njit(nogil=True, cache=True, error_model="numpy")
def _traceback(x, y, step, cancel):
    n, m = x.shape[1], y.shape[1]
    n_blocks = (n + step - 1) // step
    marks = np.empty((n_blocks, m + 1))
    row = np.full(m + 1, np.inf)
    row[0] = 0.0
    for i in range(n):
        if i % step == 0:
            marks[i // step] = row
        if cancel[0]:
            return np.empty((0, 2), np.int64), 0.0
        _next_row(x, i, y, row)
    total = row[m]
    rows = np.empty((step + 1, m + 1))
    path = np.empty((n + m - 1, 2), np.int64)
    i, j, length = n - 1, m - 1, 0
    for block_index in range(n_blocks - 1, -1, -1):
        first = block_index * step
        if i < first:
            continue
        if cancel[0]:
            return np.empty((0, 2), np.int64), 0.0
        rows[0] = marks[block_index]
        for r in range(i - first + 1):
            rows[r + 1] = rows[r]
            _next_row(x, first + r, y, rows[r + 1])
        while i >= first:
            path[length, 0], path[length, 1] = i, j
            length += 1
            if i == 0 and j == 0:
                i = -1
                break
            # rows[k] is matrix row first + k - 1, shifted by one column for its border
            above, same = rows[i - first], rows[i - first + 1]
            if above[j] <= above[j + 1] and above[j] <= same[j]:
                i -= 1
                j -= 1
            elif above[j + 1] <= same[j]:
                i -= 1
            else:
                j -= 1
    return path[:length][::-1].copy(), total


def path(x: np.ndarray, y: np.ndarray, cancel: np.ndarray) -> tuple[np.ndarray, float]:
    """Best warping path of one pair, in O(m sqrt(n)) memory.

    Every sqrt(n)-th row of the warping matrix is kept on the way up; on the way back the rows
    between two of them are filled in once more. Of equally good steps back the diagonal comes
    first, then the step to the row above.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n_timepoints)
        Series.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    path : ndarray of shape (n_steps, 2), int64
        Matched points, from (0, 0) on.
    cost : float
        Certified accumulated cost.
    """
    return _traceback(x, y, max(1, math.isqrt(x.shape[1])), cancel)


def sweep_bytes(n_pairs: int, n: int) -> int:
    """Bytes that a kernel holds beside its input: an edge of n rows in all lanes, a strip."""
    return 16 * n if n_pairs == 1 else 256 * (n + 1) + 4 * 64 * 64 * 8


def path_bytes(n: int, m: int) -> int:
    """Bytes that `path` needs for series of n and m points."""
    step = max(1, math.isqrt(n))
    return 8 * (m + 1) * (-(-n // step) + step + 2) + 32 * (n + m)
