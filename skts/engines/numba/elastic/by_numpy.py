"""Certified costs under warping by NumPy, for small work: `certified` without a kernel.

The same recurrence along antidiagonals, of many pairs side by side: cells join the same two numbers
in the same order, hence the bits are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.series import Series
from ...families.elastic.warping import Warping
from ...host.small_work import ENTRIES
from .cells import Cell, cell_of

__all__ = ["fill", "knows", "pairs", "pairs_bytes", "seconds"]


def knows(warping: Warping, left: Series, right: Series) -> bool:
    """Whether `pairs` computes a distance of two sets: of one length, or where no band differs."""
    alike = left.equal_length and right.equal_length
    free = warping.window is None and warping.alignment == "global"
    known = type(warping) is Warping or cell_of(warping).arrays
    return known and (alike or free)


def fill(
    x: np.ndarray,
    y: np.ndarray,
    x_lengths: np.ndarray,
    y_lengths: np.ndarray,
    warping: Warping,
    cancel: np.ndarray,
) -> np.ndarray:
    """Accumulated costs of the best paths of pairs side by side, infinity if there is none.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n_timepoints, n_pairs), or 1 in place of n_pairs
        Series; padding is finite.
    x_lengths, y_lengths : ndarray of shape (n_pairs,)
        Their lengths: all the same, unless `warping` is global and without a band.
    warping : Warping
        Options of the distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Accumulated costs.
    """
    (n_channels, n), m, lanes = x.shape[:2], y.shape[1], x_lengths.size
    radius = int(warping.radius(n, m))
    cell = cell_of(warping)
    size, join = (np.square, np.abs)[not warping.squared], (np.add, np.maximum)[warping.largest]
    free_columns = warping.alignment == "subsequence"
    free_rows = warping.alignment == "supersequence"
    above, before = 0.0 if free_columns else np.inf, 0.0 if free_rows else np.inf
    backwards, ends = y[:, ::-1], x_lengths + y_lengths - 2
    first_end = n + m if free_columns or free_rows else ends.min()
    two, one, now = (np.full((n + 2, lanes), np.inf) for _ in range(3))
    top, front = np.full((m + 2, 1), above), np.full((n + 2, 1), before)
    if cell.borders:
        top, front = (_border(cell, side, radius, step) for side, step in ((y, 2), (x, 1)))
    top[0] = front[0] = 0.0
    two[0], one[0], one[1] = 0.0, top[1], front[1]
    out = np.full(lanes, np.inf)
    for d in range(n + m - 1):
        if cancel[0]:
            break
        first = max(0, d - m + 1, (d - radius + 1) // 2)
        stop = min(n, d + 1, (d + radius) // 2 + 1)
        here, there = slice(first, stop), slice(first + 1, stop + 1)
        met = slice(first + m - 1 - d, stop + m - 1 - d)
        if cell.uneven:
            across, down, right = _steps(cell, x, backwards, here, met, d)
            best = np.minimum(across + two[here], down + one[here])
            np.minimum(best, right + one[there], out=now[there])
        else:
            cost = size(x[0, here] - backwards[0, met])
            for c in range(1, n_channels):
                cost += size(x[c, here] - backwards[c, met])
            best = np.minimum(one[here], one[there])
            join(cost, np.minimum(best, two[here], out=best), out=now[there])
        # whatever the next two antidiagonals read beyond the ends of this one
        now[first] = top[d + 2] if first == 0 else np.inf
        now[stop + 1] = front[d + 2] if stop == d + 1 else np.inf
        if free_columns and stop == n:
            np.minimum(out, now[n], out=out)
        elif free_rows and first == d - m + 1:
            np.minimum(out, now[first + 1], out=out)
        elif d >= first_end:
            done = np.flatnonzero(ends == d)
            out[done] = now[x_lengths[done], done]
        two, one, now = one, now, two
    return out


def _steps(
    cell: Cell, x: np.ndarray, backwards: np.ndarray, here: slice, met: slice, d: int
) -> tuple[np.ndarray, ...]:
    """Costs of the steps into the cells of an antidiagonal, diagonally, down and to the right."""
    n_channels = len(x) - cell.own
    offsets = d - 2 * np.arange(here.start, here.stop)[:, np.newaxis]
    match: Any = 0.0
    down: Any = 0.0
    right: Any = 0.0
    for c in range(n_channels):
        p, q = x[c, here], backwards[c, met]
        if cell.own:
            down, right = x[n_channels, here], backwards[n_channels, met]
            match = match + cell.match(p, q, down, right)
            continue
        p_before = x[c, max(0, here.start - 1) : here.stop - 1]
        if here.start == 0:
            p_before = np.concatenate([np.zeros_like(x[c, :1]), p_before])
        q_before = backwards[c, met.start + 1 : met.stop + 1]
        if len(q_before) < len(q):
            q_before = np.concatenate([q_before, np.zeros_like(backwards[c, :1])])
        match = match + cell.match(p, q, p_before, q_before)
        down = down + cell.down(p, p_before, q)
        right = right + cell.right(q, q_before, p)
    return cell.steps(match, down, right, offsets)


def _border(cell: Cell, points: np.ndarray, radius: int, step: int) -> np.ndarray:
    """Cells along a border, with 0 in front: sums of steps down (1), or to the right (2)."""
    price, totals = (cell.down, cell.right)[step - 1], points[-1]
    if not cell.own:
        totals = price(points[0], 0.0, 0.0)
        for c in range(1, len(points)):
            totals = totals + price(points[c], 0.0, 0.0)
    steps = cell.steps(0.0, totals if step == 1 else 0.0, totals if step == 2 else 0.0, 0)[step]
    cells = np.full((len(points[0]) + 2, points.shape[2]), np.inf)
    cells[0] = 0.0
    np.cumsum(np.broadcast_to(steps, points.shape[1:]), axis=0, out=cells[1:-1])
    cells[radius + 1 :] = np.inf
    return cells


def pairs(
    left: Series,
    right: Series,
    i: np.ndarray,
    j: np.ndarray,
    warping: Warping,
    cancel: np.ndarray,
) -> np.ndarray:
    """Certified accumulated costs of pairs.

    Parameters
    ----------
    left, right : Series
        Two sets of series.
    i, j : ndarray of shape (n_pairs,)
        A series of `left` and one of `right`.
    warping : Warping
        Options of the distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Accumulated costs.
    """
    out = np.empty(i.size)
    step = _at_a_time(left, right, warping)
    with np.errstate(over="ignore"):
        for start in range(0, i.size, step):
            a, b = i[start : start + step], j[start : start + step]
            x, y = (
                np.ascontiguousarray(side.values[some].transpose(1, 2, 0), np.float64)
                for side, some in ((left, a), (right, b))
            )
            out[start : start + step] = fill(
                x, y, left.lengths[a], right.lengths[b], warping, cancel
            )
    return out


def seconds(left: Series, right: Series, warping: Warping, n_pairs: int) -> float:
    """About how long `pairs` takes: for every cell, and for every antidiagonal of some pairs."""
    n, m = left.n_timepoints, right.n_timepoints
    cells = n_pairs * warping.cells(n, m) * left.n_channels
    return 3e-9 * cells + 15e-6 * (n + m) * -(-n_pairs // _at_a_time(left, right, warping))


def _at_a_time(left: Series, right: Series, warping: Warping) -> int:
    """Pairs side by side: as many entries of an antidiagonal as stay in a cache."""
    n, m = left.n_timepoints, right.n_timepoints
    width = min(n, m, int(warping.radius(n, m)) + 1)
    return max(1, min(ENTRIES // width, 4 * ENTRIES // (left.n_channels * (n + m))))


def pairs_bytes(left: Series, right: Series, warping: Warping, n_pairs: int) -> int:
    """Bytes that `pairs` holds beside its input and output: copies, and some antidiagonals."""
    n, m = left.n_timepoints, right.n_timepoints
    lanes = 1 if n_pairs == 1 else min(n_pairs, _at_a_time(left, right, warping))
    return 8 * lanes * (3 * left.n_channels * (n + m) + 3 * (n + 2) + 4 * min(n, m) + 8)
