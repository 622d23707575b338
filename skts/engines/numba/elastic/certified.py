"""Certified costs under warping on the CPU: the plain recurrence along antidiagonals.

Searches fill warping matrices of many series side by side, in strips, two rows at a time, with
masks (`dtw`, `rotation`). An error in there must not certify itself, so what decides an answer is
computed here in another form: along the antidiagonals of a matrix, whose cells do not depend on
each other. A band only shortens the antidiagonals. Each cell joins the same two numbers as in the
searches, by the same policy (`cells`), hence the bits are the same.

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

from ...families.elastic.warping import Warping
from ...host import kernel
from ...host.arrays import put
from .cells import Cell, cell_of

__all__ = ["cost", "costs", "options", "pairs", "pairs_bytes"]


#: Pairs side by side at most, and the entries of an antidiagonal from which more of them gain
#: nothing: its arrays then fill the first-level cache. Points of them all, for their memory.
_LANES, _ENTRIES, _POINTS = 32, 1024, 2**15


@kernel
def _add_prices(cell, rows, columns, lanes, first, stop, ahead, own, match, down, right):
    """Prices of the steps into the cells of an antidiagonal, added over the channels.

    Each in a loop of its own: LLVM vectorizes none that writes several arrays, which may overlap.
    """
    n_channels, step = rows.shape[0] - 1 if own else rows.shape[0], np.uint64(lanes)
    # made here: of one that is handed over LLVM does not know the step
    cells = range(np.uint64(first * lanes), np.uint64(stop * lanes))
    for c in range(n_channels):
        x, y = rows[c], columns[c]
        x_own, y_own = rows[rows.shape[0] - 1], columns[rows.shape[0] - 1]
        if c == 0:
            for e in cells:
                match[e], down[e], right[e] = 0.0, 0.0, 0.0
        if own:
            for e in cells:
                match[e] += cell.match(x[e + step], y[e + ahead], x_own[e + step], y_own[e + ahead])
            continue
        for e in cells:
            match[e] += cell.match(x[e + step], y[e + ahead], x[e], y[e + ahead + step])
        for e in cells:
            down[e] += cell.down(x[e + step], x[e], y[e + ahead])
        for e in cells:
            right[e] += cell.right(y[e + ahead], y[e + ahead + step], x[e + step])
    if own:
        for e in cells:
            down[e] = rows[n_channels, e + step]
        for e in cells:
            right[e] = columns[n_channels, e + ahead]


@kernel
def _border(cell, rows, columns, lanes, radius, own, above, before):
    """Fill the row above the first, if it is not free, and the column before the first.

    Entry k of each is k points away from D(-1, -1), which is entry 0.
    """
    n_channels, n, m = rows.shape[0], rows.shape[1] // lanes - 1, columns.shape[1] // lanes - 1
    for lane in range(lanes):
        for j in range(min(m, radius) if above[1, lane] > 0 else 0):
            entry = (m - 1 - j) * lanes + lane
            total = columns[n_channels - 1, entry]
            if not own:
                total = cell.right(columns[0, entry], 0.0, 0.0)
                for c in range(1, n_channels):
                    total += cell.right(columns[c, entry], 0.0, 0.0)
            above[j + 1, lane] = cell.steps(0.0, 0.0, total, 0)[2] + above[j, lane]
        for i in range(min(n, radius) if before[1, lane] > 0 else 0):
            entry = (i + 1) * lanes + lane
            total = rows[n_channels - 1, entry]
            if not own:
                total = cell.down(rows[0, entry], 0.0, 0.0)
                for c in range(1, n_channels):
                    total += cell.down(rows[c, entry], 0.0, 0.0)
            before[i + 1, lane] = cell.steps(0.0, total, 0.0, 0)[1] + before[i, lane]


@kernel(inline="always")
def _entered(steps, diagonal, above, before):
    """Value of a cell, by the costs of the three steps into it and the cells where they begin."""
    best, value = steps[0] + diagonal, steps[1] + above
    best = value if value < best else best
    value = steps[2] + before
    return value if value < best else best


@kernel(inline="always")
def _fill(rows, columns, lanes, radius, out, cell, uneven, free_columns, free_rows, cancel):
    """Accumulated costs of the best paths of some pairs side by side, infinity if there is none.

    The walk is one function: loops over an antidiagonal take three others, which change places.

    rows, columns: of shape (n_channels, (n_timepoints + 1) * lanes), columns backwards, so that the
    points that meet on an antidiagonal lie in the same order; before the first point of a series
    are zeros. out: of shape (lanes,).
    """
    n_channels, n, m = rows.shape[0], rows.shape[1] // lanes - 1, columns.shape[1] // lanes - 1
    # row i + 1 of an antidiagonal is row i of the matrix; in front the border above the first row
    size = (n + 2) * lanes
    two, one, now = np.empty(size), np.empty(size), np.empty(size)
    two[:], one[:], now[:] = np.inf, np.inf, np.inf
    # one channel, the usual case, takes one pass
    fused = n_channels == 1
    here = np.empty(0 if fused or uneven is not None else n * lanes)
    above, before = 0.0 if free_columns else np.inf, 0.0 if free_rows else np.inf
    two[:lanes], one[:lanes], one[lanes : 2 * lanes] = 0.0, above, before
    if uneven is not None:
        match, down, right = np.empty(n * lanes), np.empty(n * lanes), np.empty(n * lanes)
        twice = 2 * (np.arange(n * lanes) // lanes)
        top, front = np.full((m + 2, lanes), above), np.full((n + 2, lanes), before)
        top[0], front[0] = 0.0, 0.0
        if uneven[1]:
            _border(cell, rows, columns, lanes, radius, uneven[0], top, front)
        put(top[1], one[:lanes])
        put(front[1], one[lanes:])
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
        if uneven is not None and fused:
            for i in cells:
                x, y, k = rows[0, i + step], columns[0, i + ahead], i + ahead + step
                steps = cell.steps(
                    cell.match(x, y, rows[0, i], columns[0, k]),
                    cell.down(x, rows[0, i], y),
                    cell.right(y, columns[0, k], x),
                    d - twice[i],
                )
                now[i + step] = _entered(steps, two[i], one[i], one[i + step])
        elif uneven is not None:
            _add_prices(
                cell, rows, columns, lanes, first, stop, ahead, uneven[0], match, down, right
            )  # fmt: skip
            for i in cells:
                steps = cell.steps(match[i], down[i], right[i], d - twice[i])
                now[i + step] = _entered(steps, two[i], one[i], one[i + step])
        elif fused:
            for i in cells:
                best = one[i] if one[i] < one[i + step] else one[i + step]
                best = two[i] if two[i] < best else best
                now[i + step] = cell.join(cell.term(rows[0, i + step], columns[0, i + ahead]), best)
        else:
            for c in range(n_channels):
                if c == 0:
                    here[first * lanes : stop * lanes] = 0.0
                for i in cells:
                    here[i] += cell.term(rows[c, i + step], columns[c, i + ahead])
            for i in cells:
                best = one[i] if one[i] < one[i + step] else one[i + step]
                best = two[i] if two[i] < best else best
                now[i + step] = cell.join(here[i], best)
        # whatever the next two antidiagonals read beyond the ends of this one
        now[first * lanes : (first + 1) * lanes] = above if first == 0 else np.inf
        now[(stop + 1) * lanes : (stop + 2) * lanes] = before if stop == d + 1 else np.inf
        if uneven is not None:
            if first == 0:
                put(top[d + 2], now[:lanes])
            if stop == d + 1:
                put(front[d + 2], now[(stop + 1) * lanes :])
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


@kernel
def cost(x, y, radius, cell, uneven, free_columns, free_rows, cancel):
    """Accumulated cost of the best path of one pair, infinity if there is none.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n) and (n_channels, m), float64
        Series.
    radius : int
        Half width of the band.
    cell : Cell
        What steps cost.
    uneven : (bool, bool) or None
        Of uneven policies, whether series have numbers of their `own`, and paths `borders`.
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
    rows = np.zeros((x.shape[0], x.shape[1] + 1))
    columns = np.zeros((y.shape[0], y.shape[1] + 1))
    for c in range(x.shape[0]):
        put(x[c], rows[c, 1:])
        put(y[c, ::-1], columns[c])
    _fill(rows, columns, 1, radius, out, cell, uneven, free_columns, free_rows, cancel)
    return out[0]


@kernel
def costs(x, x_lengths, y, y_lengths, radius, out, cell, uneven, free_columns, free_rows, cancel):
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
        rows = np.zeros((n_channels, (n + 1) * lanes))
        columns = np.zeros((n_channels, (m + 1) * lanes))
        for lane in range(lanes):
            for c in range(n_channels):
                for i in range(n):
                    rows[c, (i + 1) * lanes + lane] = x[place + lane, c, i]
                for j in range(m):
                    columns[c, (m - 1 - j) * lanes + lane] = y[place + lane, c, j]
        _fill(
            rows, columns, lanes, half, out[place : place + lanes],
            cell, uneven, free_columns, free_rows, cancel,
        )  # fmt: skip
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
    radius = warping.radius(x_lengths, y_lengths)
    costs(x, x_lengths, y, y_lengths, radius, out, *options(warping), cancel)
    return out


def options(warping: Warping) -> tuple[Cell, tuple[bool, bool] | None, bool, bool]:
    """Return the options of `cost`, in its order, by those of a distance."""
    cell, alignment = cell_of(warping), warping.alignment
    uneven = (cell.own, cell.borders) if cell.uneven else None
    return cell, uneven, alignment == "subsequence", alignment == "supersequence"


def pairs_bytes(n_channels: int, n: int, m: int, n_pairs: int = 1, *, uneven: bool = False) -> int:
    """Bytes that `pairs` holds beside its input and output; of `cost` for one pair."""
    lanes = min(n_pairs, _LANES, -(-_POINTS // (n_channels * (n + m))))
    points = n_channels * (n + m + 2)
    # of shorter pairs as many points, but most of them may be on the first side; with uneven steps
    # three prices and a place for each row, and both borders
    arrays = 4 * (n + 2 if lanes == 1 else n + m) + (4 * (n + m) + 4 if uneven else 0)
    return 8 * lanes * (points + arrays)
