"""Certified costs under warping on the CPU: the plain recurrence, one pair of series at a time.

Searches fill warping matrices of many series side by side, in strips, two rows at a time, with
masks (`dtw`, `rotation`). An error in there must not certify itself, so what decides an answer is
computed here in another form: along the antidiagonals of a single matrix, whose cells do not depend
on each other. A band only shortens the antidiagonals. Each cell is the same sum of the same two
numbers as in the searches, hence the bits are the same.

::

    d = i + j      j = 0   1   2   3          two[i]     one[i]
                i = 0  0   1   2   3          D(i-1,j-1) D(i-1,j)
                    1  1   2   3   4          one[i+1]   now[i+1]
                    2  2   3   4   5          D(i,j-1)   D(i,j)
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ...families.elastic.warping import Warping

__all__ = ["cost", "pairs", "pairs_bytes"]


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
    n_channels, n = x.shape
    m = y.shape[1]
    rows, columns = np.empty((n_channels, n)), np.empty((n_channels, m))
    for c in range(n_channels):
        for i in range(n):
            rows[c, i] = x[c, i]
        # backwards, so that the points that meet on an antidiagonal lie in the same order
        for j in range(m):
            columns[c, m - 1 - j] = y[c, j]
    # entry i + 1 of an antidiagonal is row i; in front the border above the first row
    two, one, now = np.full(n + 2, np.inf), np.full(n + 2, np.inf), np.full(n + 2, np.inf)
    here = np.empty(n)
    above, before = 0.0 if free_columns else np.inf, 0.0 if free_rows else np.inf
    two[0], one[0], one[1] = 0.0, above, before
    least = np.inf
    for d in range(n + m - 1):
        if cancel[0]:
            break
        first = max(0, d - m + 1, (d - radius + 1) // 2)
        stop = min(n, d + 1, (d + radius) // 2 + 1)
        # unsigned, so that Numba does not look for negative indices, and LLVM vectorizes; by way of
        # int64, which wraps around in plain Python, too
        ahead, step = np.uint64(np.int64(m - 1 - d)), np.uint64(1)
        cells = range(np.uint64(first), np.uint64(stop))
        if squared:
            for i in cells:
                difference = rows[0, i] - columns[0, i + ahead]
                here[i] = difference * difference
        else:
            for i in cells:
                here[i] = abs(rows[0, i] - columns[0, i + ahead])
        for c in range(1, n_channels):
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
        now[first] = above if first == 0 else np.inf
        now[stop + 1] = before if stop == d + 1 else np.inf
        if free_columns and stop == n:
            least = min(least, now[n])
        if free_rows and first == d - m + 1:
            least = min(least, now[first + 1])
        two, one, now = one, now, two
    return least if free_columns or free_rows else one[n]


@njit(nogil=True, cache=True, error_model="numpy")
def _costs(x, x_lengths, y, y_lengths, radius, out, options, cancel):
    for pair in range(out.size):
        n, m = x_lengths[pair], y_lengths[pair]
        out[pair] = cost(x[pair, :, :n], y[pair, :, :m], radius[pair], *options, cancel)


def pairs(
    x: np.ndarray,
    x_lengths: np.ndarray,
    y: np.ndarray,
    y_lengths: np.ndarray,
    warping: Warping,
    cancel: np.ndarray,
) -> np.ndarray:
    """Certified accumulated costs of series i of `x` against series i of `y`.

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


def pairs_bytes(n_channels: int, n: int, m: int) -> int:
    """Bytes that `pairs` holds beside its input and output."""
    return 8 * (n_channels * (n + m) + 4 * (n + 2))
