"""Warping paths on the CPU: rows of the matrix, some of which are kept, and the way back.

Policies whose steps cost differently give all three steps; the others give one cost, and the cells
before one are compared as they are.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.series import read_only
from ...families.elastic.warping import Warping
from ...host import kernel
from ...host.arrays import put
from .cells import cell_of

__all__ = ["path", "path_bytes"]


@kernel
def _steps(cell, x, i, y, j, own):
    """Costs of the three steps into a cell; in a border one of i and j is -1."""
    n_channels = x.shape[0] - 1 if own else x.shape[0]
    match, down, right = 0.0, 0.0, 0.0
    for c in range(n_channels):
        p = x[c, i] if i >= 0 else 0.0
        q = y[c, j] if j >= 0 else 0.0
        x_before = x[c, i - 1] if i > 0 else 0.0
        y_before = y[c, j - 1] if j > 0 else 0.0
        if own:
            x_before, y_before = x[n_channels, max(i, 0)], y[n_channels, max(j, 0)]
        match += cell.match(p, q, x_before, y_before)
        down += cell.down(p, x_before, q)
        right += cell.right(q, y_before, p)
    if own:
        down, right = x[n_channels, max(i, 0)], y[n_channels, max(j, 0)]
    return cell.steps(match, down, right, j - i)


@kernel
def _window_cost(cell, x, i, y, j, width):
    """Cost of the windows that begin with points i and j, in the order of `alignments`."""
    inside = width - i % width
    total = behind = 0.0
    for k in range(inside - 1, -1, -1):
        cost = cell.term(x[0, i + k], y[0, j + k])
        for c in range(1, x.shape[0]):
            cost += cell.term(x[c, i + k], y[c, j + k])
        total += cost
    for k in range(inside, width):
        cost = cell.term(x[0, i + k], y[0, j + k])
        for c in range(1, x.shape[0]):
            cost += cell.term(x[c, i + k], y[c, j + k])
        behind += cost
    return total + behind


@kernel
def _next_row_of_windows(x, i, y, width, row, border, radius, cell):
    """As `_next_row`, between windows."""
    first, stop = max(0, i - radius), min(row.size - 1, i + radius + 1)
    diagonal = row[first]
    row[first] = border[i] if first == 0 else np.inf
    left = row[first]
    for j in range(first, stop):
        up = row[j + 1]
        best = up if up < diagonal else diagonal
        best = best if best < left else left
        left = cell.join(_window_cost(cell, x, i, y, j, width), best)
        row[j + 1] = left
        diagonal = up


@kernel(inline="always")
def _next_row(x, i, y, width, row, border, radius, cell, uneven, own):
    """Turn row i - 1 of the warping matrix, with its border in front, into row i."""
    if uneven is None and width > 1:
        _next_row_of_windows(x, i, y, width, row, border, radius, cell)
        return
    first, stop = max(0, i - radius), min(y.shape[1], i + radius + 1)
    diagonal = row[first]
    row[first] = border[i] if first == 0 else np.inf
    left = row[first]
    for j in range(first, stop):
        up = row[j + 1]
        if uneven is not None:
            across, down, right = _steps(cell, x, i, y, j, own)
            left = min(across + diagonal, min(down + up, right + left))
        else:
            cost = cell.term(x[0, i], y[0, j])
            for c in range(1, x.shape[0]):
                cost += cell.term(x[c, i], y[c, j])
            best = up if up < diagonal else diagonal
            best = best if best < left else left
            left = cell.join(cost, best)
        row[j + 1] = left
        diagonal = up


@kernel
def _borders(x, y, width, radius, cell, uneven, own, borders, free_columns, free_rows):
    """Return the row above the first, with D(-1, -1) in front, and the column before the first."""
    n, m = x.shape[1] - width + 1, y.shape[1] - width + 1
    top = np.full(m + 1, 0.0 if free_columns else np.inf)
    front = np.full(n, 0.0 if free_rows else np.inf)
    top[0] = 0.0
    if uneven is not None and borders:
        for j in range(0 if free_columns else min(m, radius)):
            top[j + 1] = _steps(cell, x, np.int64(-1), y, j, own)[2] + top[j]
        for i in range(0 if free_rows else min(n, radius)):
            front[i] = _steps(cell, x, i, y, np.int64(-1), own)[1] + (
                front[i - 1] if i > 0 else 0.0
            )
    return top, front


@kernel
def _scan(x, y, width, top, front, radius, cell, uneven, own, free_columns, free_rows, cancel):
    """Accumulated cost, and the cell in which the best path ends (the first of equals)."""
    n, m = front.size, top.size - 1
    row = top.copy()
    best, end = np.inf, 0
    for i in range(n):
        if cancel[0]:
            break
        _next_row(x, i, y, width, row, front, radius, cell, uneven, own)
        if free_rows and row[m] < best:
            best, end = row[m], i
    if free_rows:
        return best, end, m - 1
    if free_columns:
        for j in range(m):
            if row[j + 1] < best:
                best, end = row[j + 1], j
        return best, n - 1, end
    return row[m], n - 1, m - 1


@kernel
def _traceback(
    x, y, width, step, radius, cell, uneven, own, borders, free_columns, free_rows, cancel
):  # fmt: skip
    top, front = _borders(x, y, width, radius, cell, uneven, own, borders, free_columns, free_rows)
    total, i, j = _scan(
        x, y, width, top, front, radius, cell, uneven, own, free_columns, free_rows, cancel
    )  # fmt: skip
    m = top.size - 1
    n_blocks = i // step + 1
    marks = np.empty((n_blocks, m + 1))
    row = top.copy()
    for r in range(i + 1):
        if r % step == 0:
            put(row, marks[r // step])
        if cancel[0]:
            return np.empty((0, 2), np.int64), 0.0
        _next_row(x, r, y, width, row, front, radius, cell, uneven, own)
    rows = np.empty((step + 1, m + 1))
    path = np.empty((i + j + 1, 2), np.int64)
    length = 0
    for index in range(n_blocks - 1, -1, -1):
        first = index * step
        if i < first or j < 0:
            continue
        if cancel[0]:
            return np.empty((0, 2), np.int64), 0.0
        put(marks[index], rows[0])
        for r in range(i - first + 1):
            put(rows[r], rows[r + 1])
            _next_row(x, first + r, y, width, rows[r + 1], front, radius, cell, uneven, own)
        while i >= first and j >= 0:
            # rows[k] is matrix row first + k - 1, shifted by one column for its border
            above, same = rows[i - first], rows[i - first + 1]
            diagonal, up, left = above[j], above[j + 1], same[j]
            if uneven is not None:
                across, down, right = _steps(cell, x, i, y, j, own)
                diagonal, up, left = across + diagonal, down + up, right + left
            inside = i > 0 and j > 0
            if (inside or borders) and diagonal <= up and diagonal <= left:
                chosen = 0
            elif (i > 0 or borders) and ((j == 0 and not borders) or up <= left):
                chosen = 1
            else:
                chosen = 2
            # with borders, points that are left out have no place in the path
            if not borders or chosen == 0:
                path[length, 0], path[length, 1] = i, j
                length += 1
            begins = (i == 0 and (j == 0 or free_columns)) or (j == 0 and free_rows)
            if begins and not borders:
                i = -1
                break
            i -= 1 if chosen < 2 else 0
            j -= 1 if chosen != 1 else 0
    return path[:length][::-1].copy(), total


def path(
    x: np.ndarray, y: np.ndarray, warping: Warping, cancel: np.ndarray, width: int = 1
) -> tuple[np.ndarray, float]:
    """Best warping path of one pair, in O(m sqrt(n)) memory.

    Every sqrt(n)-th row of the warping matrix is kept on the way up; on the way back the rows
    between two of them are filled in once more. Of equally good steps back the diagonal comes
    first, then the step to the row above; of equally good ends the first.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n_timepoints)
        Series.
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
    n, m = (side.shape[1] - width + 1 for side in (x, y))
    step, radius, cell = max(1, math.isqrt(n)), int(warping.radius(n, m)), cell_of(warping)
    free = warping.alignment == "subsequence", warping.alignment == "supersequence"
    flags = cell.uneven or None, cell.own, cell.borders
    sides = (read_only(np.ascontiguousarray(side)) for side in (x, y))
    return _traceback(*sides, width, step, radius, cell, *flags, *free, cancel)


def path_bytes(n: int, m: int) -> int:
    """Bytes that `path` needs for series of n and m points."""
    step = max(1, math.isqrt(n))
    return 8 * (m + 1) * (-(-n // step) + step + 3) + 32 * (n + m) + 8 * n
