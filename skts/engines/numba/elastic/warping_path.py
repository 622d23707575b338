"""Warping paths on the CPU: rows of the matrix, some of which are kept, and the way back.

Policies whose steps cost differently give all three steps; the others give one cost, and the cells
before one are compared as they are. Numba leaves out what needs the other kind of policy: of the
arguments `uneven` and `even` one is None.
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

#: Columns whose prices are computed at a time: they stay in the nearest cache.
_TILE = 256


@kernel
def _steps(cell, x, i, y, j, own):
    """Costs of the three steps into a cell; in a border one of i and j is -1."""
    n_channels = x.shape[0] - 1 if own is not None else x.shape[0]
    match, down, right = 0.0, 0.0, 0.0
    for c in range(n_channels):
        p = x[c, i] if i >= 0 else 0.0
        q = y[c, j] if j >= 0 else 0.0
        x_before = x[c, i - 1] if i > 0 else 0.0
        y_before = y[c, j - 1] if j > 0 else 0.0
        if own is not None:
            x_before, y_before = x[n_channels, max(i, 0)], y[n_channels, max(j, 0)]
        match += cell.match(p, q, x_before, y_before)
        down += cell.down(p, x_before, q)
        right += cell.right(q, y_before, p)
    if own is not None:
        down, right = x[n_channels, max(i, 0)], y[n_channels, max(j, 0)]
    return cell.steps(match, down, right, j - i)


@kernel
def _terms(cell, x, i, points, costs):
    """Costs of point i and some points of the other series."""
    for k in range(points.shape[1]):
        costs[k] = cell.term(x[0, i], points[0, k])
    for c in range(1, points.shape[0]):
        for k in range(points.shape[1]):
            costs[k] += cell.term(x[c, i], points[c, k])


@kernel
def _add_terms(cell, x, i, y, start, sums, costs):
    """Add the costs of point i and the points from `start` on of the other series to sums."""
    for done in range(0, sums.size, _TILE):
        some = sums[done : done + _TILE]
        _terms(cell, x, i, y[:, start + done : start + done + some.size], costs)
        for k in range(some.size):
            some[k] += costs[k]


@kernel
def _window_costs(cell, x, y, width, first, rows, radius, sums, costs, cancel):
    """Costs of the windows that begin with the points of some rows, from row `first` on.

    In the order of `alignments`: the parts of windows in the block of `width` points in which they
    begin are summed from its end back, so that along a diagonal the sum goes on from one row to the
    one above. The parts in the next block are summed from its beginning on, where it goes on from
    the row above. A diagonal is the column that it has in row `begin`, and has its sum in
    ``sums[diagonal - low]``.

    rows[r] receives the costs of row first + r, with a place in front.
    """
    m, begin, end = rows.shape[1] - 1, first, first + rows.shape[0]
    while begin < end:
        base = begin // width * width
        stop = min(end, base + width)
        low = max(begin - stop + 1, begin - radius)
        diagonals = sums[: min(m, begin + radius + 1) - low]
        for k in range(diagonals.size):
            diagonals[k] = 0.0
        for i in range(base + width - 1, begin - 1, -1):
            if cancel[0]:
                return
            # where a diagonal has not reached the first column no window begins
            column = max(0, low + i - begin)
            skipped = column - (i - begin) - low
            _add_terms(cell, x, i, y, column, diagonals[skipped:], costs)
            if i < stop:
                row = rows[i - first, 1 + column :]
                for k in range(min(row.size, diagonals.size - skipped)):
                    row[k] = diagonals[skipped + k]
        for k in range(diagonals.size):
            diagonals[k] = 0.0
        for i in range(base, stop):
            if cancel[0]:
                return
            if i > base:
                column = low + i - 1 - begin + width
                some = diagonals[: min(diagonals.size, y.shape[1] - column)]
                _add_terms(cell, x, i - 1 + width, y, column, some, costs)
            if i >= begin:
                column = max(0, low + i - begin)
                skipped = column - (i - begin) - low
                row = rows[i - first, 1 + column :]
                for k in range(min(row.size, diagonals.size - skipped)):
                    row[k] += diagonals[skipped + k]
        begin = stop


@kernel
def _prices(cell, x, i, y, start, w, prices, own):
    """Sums over channels of the prices of the steps into w cells; prices: (3, _TILE) receives them.

    As `_steps`, but not for the first column: each column has one before it.
    """
    n_channels = x.shape[0] - 1 if own is not None else x.shape[0]
    match, down, right = prices[0, :w], prices[1, :w], prices[2, :w]
    for k in range(w):
        match[k] = 0.0
        down[k] = 0.0
        right[k] = 0.0
    for c in range(n_channels):
        p, x_before = x[c, i], x[c, i - 1] if i > 0 else 0.0
        points, before = y[c, start : start + w], y[c, start - 1 : start - 1 + w]
        if own is not None:
            x_before, before = x[n_channels, i], y[n_channels, start : start + w]
        for k in range(w):
            match[k] += cell.match(p, points[k], x_before, before[k])
        if own is None:
            for k in range(w):
                down[k] += cell.down(p, x_before, points[k])
                right[k] += cell.right(points[k], before[k], p)
    if own is not None:
        for k in range(w):
            down[k] = x[n_channels, i]
            right[k] = y[n_channels, start + k]


@kernel
def _next_row(cell, x, i, y, width, above, here, border, radius, prices, uneven, even, own):
    """Fill row i of the warping matrix from row i - 1, both with their borders in front.

    Whatever does not depend on the cell on the left is done for a tile of columns at a time, in
    loops that LLVM vectorizes; the loop from cell to cell then takes as few operations as it can.
    Where windows are compared the row holds their costs.
    """
    first, stop = max(0, i - radius), min(here.size - 1, i + radius + 1)
    left = border[i] if first == 0 else np.inf
    here[first] = left
    if stop + 1 < here.size:
        # above the last cell of the next row
        here[stop + 1] = np.inf
    start = first
    if uneven is not None and first == 0:
        # no point is before the first
        across, down, right = _steps(cell, x, i, y, np.int64(0), own)
        left = min(across + above[0], min(down + above[1], right + left))
        here[1] = left
        start = 1
    while start < stop:
        w = min(_TILE, stop - start)
        diagonal, up = above[start : start + w], above[start + 1 : start + 1 + w]
        row, best, costs = here[start + 1 : start + 1 + w], prices[0], prices[2]
        if uneven is not None:
            _prices(cell, x, i, y, start, w, prices, own)
            for k in range(w):
                across, down, right = cell.steps(best[k], prices[1, k], costs[k], start + k - i)
                best[k] = min(across + diagonal[k], down + up[k])
                costs[k] = right
            for k in range(w):
                value = costs[k] + left
                left = value if value < best[k] else best[k]
                row[k] = left
        if even is not None:
            if width > 1:
                costs = row
            else:
                _terms(cell, x, i, y[:, start : start + w], costs)
            for k in range(w):
                best[k] = up[k] if up[k] < diagonal[k] else diagonal[k]
            for k in range(w):
                left = cell.join(costs[k], best[k] if best[k] < left else left)
                row[k] = left
        start += w


@kernel
def _fill(
    cell, x, y, width, first, rows, border, radius, diagonals, prices, uneven, even, own, cancel
):  # fmt: skip
    """Fill rows[1:] with rows of the matrix from `first` on; rows[0] is the one above."""
    if even is not None and width > 1:
        _window_costs(cell, x, y, width, first, rows[1:], radius, diagonals, prices[0], cancel)
    for r in range(rows.shape[0] - 1):
        if cancel[0]:
            return
        _next_row(
            cell, x, first + r, y, width, rows[r], rows[r + 1], border, radius, prices, uneven,
            even, own,
        )  # fmt: skip


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
def _scan(
    cell, x, y, width, step, rows, marks, border, radius, diagonals, prices, uneven, even, own,
    free_columns, free_rows, cancel,
):  # fmt: skip
    """Accumulated cost, and the cell in which the best path ends (the first of equals).

    rows[0] is the row above the first. marks[k] receives the row above row ``k * step``.
    """
    n, m = border.size, rows.shape[1] - 1
    best, end = np.inf, 0
    for index in range(marks.shape[0]):
        first = index * step
        count = min(step, n - first)
        put(rows[0], marks[index])
        _fill(
            cell, x, y, width, first, rows[: count + 1], border, radius, diagonals, prices, uneven,
            even, own, cancel,
        )  # fmt: skip
        if free_rows:
            for r in range(count):
                if rows[r + 1, m] < best:
                    best, end = rows[r + 1, m], first + r
        put(rows[count], rows[0])
    if free_rows:
        return best, end, m - 1
    if free_columns:
        for j in range(m):
            if rows[0, j + 1] < best:
                best, end = rows[0, j + 1], j
        return best, n - 1, end
    return rows[0, m], n - 1, m - 1


@kernel
def _traceback(
    x, y, width, step, radius, cell, uneven, even, own, borders, free_columns, free_rows, cancel
):  # fmt: skip
    top, front = _borders(x, y, width, radius, cell, uneven, own, borders, free_columns, free_rows)
    m = top.size - 1
    marks, rows = np.empty((-(-front.size // step), m + 1)), np.empty((step + 1, m + 1))
    diagonals, prices = np.empty(m + step if width > 1 else 0), np.empty((3, _TILE))
    put(top, rows[0])
    total, i, j = _scan(
        cell, x, y, width, step, rows, marks, front, radius, diagonals, prices, uneven, even, own,
        free_columns, free_rows, cancel,
    )  # fmt: skip
    path = np.empty((i + j + 1, 2), np.int64)
    length = 0
    for index in range(i // step, -1, -1):
        first = index * step
        if i < first or j < 0:
            continue
        put(marks[index], rows[0])
        _fill(
            cell, x, y, width, first, rows[: i - first + 2], front, radius, diagonals, prices,
            uneven, even, own, cancel,
        )  # fmt: skip
        if cancel[0]:
            return np.empty((0, 2), np.int64), 0.0
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
    flags = cell.uneven or None, not cell.uneven or None, cell.own or None, cell.borders
    sides = (read_only(np.ascontiguousarray(side)) for side in (x, y))
    return _traceback(*sides, width, step, radius, cell, *flags, *free, cancel)


def path_bytes(n: int, m: int) -> int:
    """Bytes that `path` needs for series of n and m points."""
    step = max(1, math.isqrt(n))
    rows = 8 * (m + 1) * (-(-n // step) + step + 3)
    return rows + 8 * step + 24 * _TILE + 32 * (n + m) + 8 * n
