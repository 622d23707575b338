"""Certified costs under warping on the CPU: the plain recurrence along antidiagonals.

Searches fill warping matrices of many series side by side, in strips, two rows at a time, with
masks (`dtw`, `rotation`). An error in there must not certify itself, so what decides an answer is
computed here in another form: along the antidiagonals of a matrix, whose cells do not depend on
each other. A band only shortens the antidiagonals. Each cell is the same sum of the same two
numbers as in the searches, hence the bits are the same.

::

    d = i + j      j = 0   1   2   3          two[i]     one[i]
                i = 0  0   1   2   3          D(i-1,j-1) D(i-1,j)
                    1  1   2   3   4          one[i+1]   now[i+1]
                    2  2   3   4   5          D(i,j-1)   D(i,j)

Short antidiagonals cost more to begin than to fill. So some pairs of the same two lengths lie
side by side: entry ``i * lanes + lane`` is row i of one of them, and all that moves by one row
moves by `lanes` entries. A pair alone is the case of one lane.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ...families.elastic.warping import Warping

__all__ = ["cost", "pairs", "pairs_bytes"]


#: Pairs side by side at most, and the entries of an antidiagonal from which more of them gain
#: nothing: its arrays then fill the first-level cache. Points of them all, for their memory.
_LANES, _ENTRIES, _POINTS = 32, 1024, 2**15


@njit(nogil=True, cache=True, error_model="numpy")
def _fill(rows, columns, lanes, radius, out, options, cancel):
    """Accumulated costs of the best paths of some pairs side by side, infinity if there is none.

    rows, columns: of shape (n_channels, n_timepoints * lanes), columns backwards, so that the
    points that meet on an antidiagonal lie in the same order; out: of shape (lanes,).
    """
    squared, largest, free_columns, free_rows = options
    n_channels, n, m = rows.shape[0], rows.shape[1] // lanes, columns.shape[1] // lanes
    # row i + 1 of an antidiagonal is row i of the matrix; in front the border above the first row
    size = (n + 2) * lanes
    two, one, now = np.empty(size), np.empty(size), np.empty(size)
    two[:], one[:], now[:] = np.inf, np.inf, np.inf
    fused = n_channels == 1 and squared and not largest
    here = np.empty(0 if fused else n * lanes)
    above, before = 0.0 if free_columns else np.inf, 0.0 if free_rows else np.inf
    two[:lanes], one[:lanes], one[lanes : 2 * lanes] = 0.0, above, before
    out[:] = np.inf
    for d in range(n + m - 1):
        if cancel[0]:
            break
        first = max(0, d - m + 1, (d - radius + 1) // 2)
        stop = min(n, d + 1, (d + radius) // 2 + 1)
        # unsigned, so that Numba does not look for negative indices, and LLVM vectorizes; by way of
        # int64, which wraps around in plain Python, too
        ahead, step = np.uint64(np.int64((m - 1 - d) * lanes)), np.uint64(lanes)
        cells = range(np.uint64(first * lanes), np.uint64(stop * lanes))
        if fused:
            # the usual case in one pass
            for i in cells:
                best = one[i] if one[i] < one[i + step] else one[i + step]
                best = two[i] if two[i] < best else best
                difference = rows[0, i] - columns[0, i + ahead]
                now[i + step] = difference * difference + best
        else:
            for c in range(n_channels):
                if c == 0:
                    here[first * lanes : stop * lanes] = 0.0
                if squared:
                    for i in cells:
                        difference = rows[c, i] - columns[c, i + ahead]
                        here[i] += difference * difference
                else:
                    for i in cells:
                        here[i] += abs(rows[c, i] - columns[c, i + ahead])
            if largest:
                for i in cells:
                    best = one[i] if one[i] < one[i + step] else one[i + step]
                    best = two[i] if two[i] < best else best
                    now[i + step] = here[i] if here[i] > best else best
            else:
                for i in cells:
                    best = one[i] if one[i] < one[i + step] else one[i + step]
                    best = two[i] if two[i] < best else best
                    now[i + step] = here[i] + best
        # whatever the next two antidiagonals read beyond the ends of this one
        now[first * lanes : (first + 1) * lanes] = above if first == 0 else np.inf
        now[(stop + 1) * lanes : (stop + 2) * lanes] = before if stop == d + 1 else np.inf
        if free_columns and stop == n:
            for lane in range(lanes):
                out[lane] = min(out[lane], now[n * lanes + lane])
        if free_rows and first == d - m + 1:
            for lane in range(lanes):
                out[lane] = min(out[lane], now[(first + 1) * lanes + lane])
        two, one, now = one, now, two
    if not (free_columns or free_rows):
        for lane in range(lanes):
            out[lane] = one[n * lanes + lane]


@njit(nogil=True, cache=True, error_model="numpy")
def cost(x, y, radius, squared, largest, free_columns, free_rows, cancel):
    """Accumulated cost of the best path of one pair, infinity if there is none.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n) and (n_channels, m), float64
        Series.
    radius : int
        Half width of the band.
    squared, largest : bool
        Cost and how costs join, as `Warping` has them.
    free_columns, free_rows : bool
        Whether a path may begin and end at any point of `y`, or of `x`.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    float
        The accumulated cost.
    """
    out = np.empty(1)
    options = squared, largest, free_columns, free_rows
    _fill(x.copy(), y[:, ::-1].copy(), 1, radius, out, options, cancel)
    return out[0]


@njit(nogil=True, cache=True, error_model="numpy")
def _costs(x, x_lengths, y, y_lengths, radius, out, options, cancel):
    """Accumulated costs of pairs; those that follow each other and are alike lie side by side."""
    n_channels, place = x.shape[1], 0
    while place < out.size:
        n, m, half = x_lengths[place], y_lengths[place], radius[place]
        most = min(_LANES, _ENTRIES // min(n, m, half + 1), _POINTS // (n_channels * (n + m)))
        lanes = 1
        while (
            lanes < most
            and place + lanes < out.size
            and x_lengths[place + lanes] == n
            and y_lengths[place + lanes] == m
        ):
            lanes += 1
        rows, columns = np.empty((n_channels, n * lanes)), np.empty((n_channels, m * lanes))
        for lane in range(lanes):
            for c in range(n_channels):
                for i in range(n):
                    rows[c, i * lanes + lane] = x[place + lane, c, i]
                for j in range(m):
                    columns[c, (m - 1 - j) * lanes + lane] = y[place + lane, c, j]
        _fill(rows, columns, lanes, half, out[place : place + lanes], options, cancel)
        place += lanes


def pairs(
    x: np.ndarray,
    x_lengths: np.ndarray,
    y: np.ndarray,
    y_lengths: np.ndarray,
    warping: Warping,
    cancel: np.ndarray,
) -> np.ndarray:
    """Certified accumulated costs of series i of `x` against series i of `y`.

    Pairs of the same two lengths are fastest one after the other.

    Parameters
    ----------
    x, y : ndarray of shape (n_pairs, n_channels, n_timepoints), float64
        Series.
    x_lengths, y_lengths : ndarray of shape (n_pairs,)
        Their lengths.
    warping : Warping
        Options of the distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Accumulated costs.
    """
    out = np.empty(len(x))
    options = (
        warping.squared,
        warping.largest,
        warping.alignment == "subsequence",
        warping.alignment == "supersequence",
    )
    radius = warping.radius(x_lengths, y_lengths)
    _costs(x, x_lengths, y, y_lengths, radius, out, options, cancel)
    return out


def pairs_bytes(n_channels: int, n: int, m: int, n_pairs: int = 1) -> int:
    """Bytes that `pairs` holds beside its input and output; of `cost` for one pair."""
    points = n_channels * (n + m)
    lanes = min(n_pairs, _LANES, -(-_POINTS // points))
    # of shorter pairs as many points, but most of them may be on the first side
    return 8 * lanes * (points + 4 * (n + 2 if lanes == 1 else n + m))
