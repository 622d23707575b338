"""Lower bounds of distances whose steps cost differently, by the prices of their policy.

Every path enters each row exactly once, by a step diagonally or down, and each column once, by one
diagonally or to the right. Where prices never fall as points move apart or a cell away from the
diagonal, and steps beside the diagonal depend on the points of one series alone (`Cell.monotone`),
the price of entering row i is at least the lesser of two: matching x_i, on the diagonal, with the
nearest value in the range of the points that the band lets it meet (and, where a price looks back,
x_{i-1} with the nearest of its own), and leaving x_i out. Their sum over all rows is a bound of the
accumulated cost, and so is that over all columns. For squared differences this is LB_Keogh.

A bound runs through the operations of the kernels, whose roundings never turn the order of two
prices around; the rounding of its sum is deflated (`deflation`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.certify import Bound, Shortlist, gamma, survivor_cap
from ...core.constants import FLOAT32_UNIT, FLOAT64_UNIT
from ...core.series import Series
from ...families.elastic.dtw import DTWReduction, DTWSearch
from ...families.elastic.warping import Warping
from ...host import kernel
from . import uneven
from .lanes import LANES
from .lower_bounds import envelope

__all__ = ["RangedCandidates", "bounds", "deflation", "search", "worth_bounding"]

#: Points that a series has for each point of the half width of a band, at least, where bounds pay.
NARROW = 4
#: Points of the half width from which they do: bounds cost as much in any band, and all cells of a
#: narrower one cost less, even where bounds rule out most candidates.
WIDE = 64


class RangedCandidates(NamedTuple):
    """Candidates of a tile in the type of the search, and the ranges that they reach.

    Attributes
    ----------
    values : ndarray of shape (n_series, n_channels, m)
        Points.
    low, high : ndarray of shape (n_series, n_channels, n)
        Envelopes at the positions of queries.
    error : float
        Largest rounding error of the points.
    """

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    error: float


def worth_bounding(reduction: DTWSearch, n_candidates: int) -> bool:
    """Whether bounds may spare work: a band in long series, more candidates than neighbours."""
    warping, sides = reduction.warping, reduction.sides
    cell = uneven.options(warping, sides[0].n_channels, np.float64).cell
    if not cell.monotone or warping.window is None or len(reduction.by_channel()) > 1:
        return False
    reach = warping.largest_radius(*(side.lengths for side in sides))
    return (
        reach >= WIDE
        and NARROW * reach <= min(int(side.lengths.min()) for side in sides)
        and n_candidates >= max(2, reduction.n_neighbors // 8) * LANES[np.float32]
    )


def search(
    reduction: DTWSearch,
    queries: Series,
    rows: np.ndarray,
    row_error: float,
    candidates: RangedCandidates,
    series: Series,
    excluded: np.ndarray | None,
    cancel: np.ndarray,
) -> Shortlist:
    """Survivors of a tile: candidates in the order of their bounds, as far as these allow.

    Parameters
    ----------
    reduction : DTWSearch
        The search.
    queries : Series
        Queries of the tile, as they are.
    rows : ndarray of shape (n_queries, n_channels, n)
        The same in the type of the search.
    row_error : float
        Largest rounding error of their points.
    candidates : RangedCandidates
        Candidates of the tile.
    series : Series
        The same as they are.
    excluded : ndarray of shape (n_queries,) or None
        One candidate a query that takes no part.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    Shortlist
        The survivors.
    """
    k, dtype = reduction.n_neighbors, rows.dtype.type
    bound = Bound()
    if reduction.single:
        bound = reduction.scale_and_bound(row_error + candidates.error)[1]
    lists, overflowed = [], []
    for row in range(len(queries)):
        query = _Query(reduction, queries, row, rows[row], candidates, series)
        lower = bound.lower(query.bounds())
        if excluded is not None and 0 <= excluded[row] < lower.size:
            lower[excluded[row]] = np.nan
        order, start, limit = np.argsort(lower), 0, reduction.radius
        members, estimates = np.empty(0, np.int64), np.empty(0)
        while start < order.size and not cancel[0]:
            group = order[start : start + LANES[dtype]]
            group = group[lower[group] <= limit]
            if not group.size:
                break
            start += group.size
            members = np.concatenate([members, group])
            estimates = np.concatenate([estimates, query.distances(group, cancel)])
            upper = bound.upper(estimates)
            if 0 < k <= upper.size:
                limit = min(limit, np.partition(upper, k - 1)[k - 1])
        keep = _kept(estimates, members, bound, limit, k)
        if k > 0 and np.count_nonzero(keep) > survivor_cap(k):
            overflowed.append(row)
            keep[:] = False
        lists.append((np.full(keep.sum(), row), members[keep], estimates[keep]))
    of_row, of_col, values = map(np.concatenate, zip(*lists, strict=True))
    return Shortlist(of_row, of_col, values, bound, np.array(overflowed, np.int64))


def _kept(
    estimates: np.ndarray, members: np.ndarray, bound: Bound, limit: float, k: int
) -> np.ndarray:
    """Which candidates may be among the k nearest, or within the limit where k is 0.

    Exact estimates keep exactly the nearest, ties by column: so no query has too many of them.
    """
    if k == 0 or not bound.exact:
        return bound.lower(estimates) <= limit
    keep = np.zeros(estimates.size, bool)
    keep[np.lexsort((members, estimates))[:k]] = True
    return keep


class _Query:
    """One query against the candidates of a tile."""

    def __init__(
        self,
        reduction: DTWSearch,
        queries: Series,
        row: int,
        values: np.ndarray,
        candidates: RangedCandidates,
        series: Series,
    ) -> None:
        self.reduction, self.candidates = reduction, candidates
        self.warping, self.scale = reduction.warping, 1.0
        scaled: Warping = self.warping
        if reduction.single:
            scaled = scaled.rescaled(reduction.rescaling)
            self.scale = reduction.rescaling.scale
        self.length, self.lengths = int(queries.lengths[row]), series.lengths.copy()
        self.points = np.ascontiguousarray(values[:, : self.length])
        self.radius = self.warping.radius(self.length, series.lengths)
        self.options = uneven.options(scaled, values.shape[1], values.dtype.type)
        last = series.values[np.arange(len(series)), 0, series.lengths - 1]
        self.apart = np.abs(queries.values[row, 0, self.length - 1] - last)

    def settled(self, costs: np.ndarray, members: np.ndarray | slice) -> np.ndarray:
        """Turn accumulated costs into distances."""
        if not self.warping.settles:
            return self.warping.distance(costs) / self.scale
        costs = costs.astype(np.float64) / self.warping.unscaled(self.scale)
        found = self.warping.settle(costs, self.length, self.lengths[members], self.apart[members])
        return np.asarray(found)

    def bounds(self) -> np.ndarray:
        """Lower bounds of the distances."""
        values, low, high, _ = self.candidates
        shape = values.shape[1:]
        x_low, x_high = np.empty(shape, values.dtype), np.empty(shape, values.dtype)
        envelope(self.points.T, int(self.radius.max()), x_low.T, x_high.T)
        out = np.empty(len(values), values.dtype)
        cell, own, borders = self.options.cell, self.options.own, self.options.borders
        bounds(cell, self.points, x_low, x_high, values, self.lengths, low, high, own, borders, out)
        out *= values.dtype.type(deflation(self.reduction, values.dtype.type))
        return self.settled(out, slice(None))

    def distances(self, members: np.ndarray, cancel: np.ndarray) -> np.ndarray:
        """Distances of some candidates, no more than there are lanes."""
        values, lanes = self.candidates.values, LANES[self.points.dtype.type]
        packed = np.zeros((*values.shape[:0:-1], lanes), values.dtype)
        packed[:, :, : members.size] = values[members].transpose(2, 1, 0)
        lengths = np.zeros((1, lanes), np.int64)
        radius = np.full((1, 1, lanes), self.radius[members[0]])
        lengths[0, : members.size] = self.lengths[members]
        radius[0, 0, : members.size] = self.radius[members]
        out = np.empty((1, lanes), values.dtype)
        x, n = np.ascontiguousarray(self.points.T)[np.newaxis], np.array([self.length])
        groups = packed[np.newaxis], lengths
        uneven.block_kernel(x, n, *groups, radius, out, cancel, *self.options)
        return self.settled(out[0, : members.size], members)


def deflation(reduction: DTWReduction, dtype: type) -> float:
    """Factor that keeps a bound below distances despite the rounding of its sum; 0: no bound."""
    points = max(side.n_timepoints for side in reduction.sides)
    unit = FLOAT32_UNIT if dtype is np.float32 else FLOAT64_UNIT
    # see "stepped bounds" in docs/developer/numerics.rst
    error = gamma(2 * points + 2 * reduction.sides[0].n_channels + 8, unit)
    return max(0.0, 1 - 2 * error) if error < 1 else 0.0


@kernel(inline="always")
def _nearest(point, low, high):
    """The value of a range that is nearest to a point."""
    return low if point < low else high if point > high else point


@kernel
def _rows(cell, x, y_own, low, high, n_channels, borders):
    """Least sum of the prices of entering all rows, of x (C, n) and the ranges (C, n or 1)."""
    zero = x.dtype.type(0)
    total = zero
    for i in range(x.shape[1]):
        at = i if low.shape[1] > 1 else 0
        match, down = zero, zero
        for c in range(n_channels):
            point, before = x[c, i], x[c, i - 1] if i > 0 else zero
            near, near_before = _nearest(point, low[c, at], high[c, at]), zero
            if i > 0:
                near_before = _nearest(before, low[c, max(at - 1, 0)], high[c, max(at - 1, 0)])
            if n_channels < x.shape[0]:
                match += cell.match(point, near, x[n_channels, i], y_own)
            else:
                match += cell.match(point, near, before, near_before)
                down += cell.down(point, before, near)
        other = down
        if n_channels < x.shape[0]:
            down, other = x[n_channels, i], y_own
        across, aside, _ = cell.steps(match, down, other, 0)
        # where paths begin with a match, no step down leads into the first row
        total += across if across < aside or (i == 0 and not borders) else aside
    return total


@kernel
def _columns(cell, y, x_own, low, high, n_channels, borders):
    """Least sum of the prices of entering all columns, of y (C, m) and the ranges (C, m or 1)."""
    zero = y.dtype.type(0)
    total = zero
    for j in range(y.shape[1]):
        at = j if low.shape[1] > 1 else 0
        match, right = zero, zero
        for c in range(n_channels):
            point, before = y[c, j], y[c, j - 1] if j > 0 else zero
            near, near_before = _nearest(point, low[c, at], high[c, at]), zero
            if j > 0:
                near_before = _nearest(before, low[c, max(at - 1, 0)], high[c, max(at - 1, 0)])
            if n_channels < y.shape[0]:
                match += cell.match(near, point, x_own, y[n_channels, j])
            else:
                match += cell.match(near, point, near_before, before)
                right += cell.right(point, before, near)
        other = right
        if n_channels < y.shape[0]:
            right, other = y[n_channels, j], x_own
        across, _, aside = cell.steps(match, other, right, 0)
        total += across if across < aside or (j == 0 and not borders) else aside
    return total


@kernel
def bounds(cell, x, x_low, x_high, values, lengths, low, high, own, borders, out):
    """Bound the accumulated costs of one series and many.

    Parameters
    ----------
    cell : Cell
        What steps cost.
    x : ndarray of shape (n_channels, n)
        The series.
    x_low, x_high : ndarray of shape (n_channels, m or 1)
        Its envelope at the positions of the others, or its range.
    values, lengths : ndarray of shape (n_series, n_channels, m), (n_series,)
        The others.
    low, high : ndarray of shape (n_series, n_channels, n or 1)
        Their envelopes at the positions of `x`, or their ranges.
    own, borders : bool
        As the policy says.
    out : ndarray of shape (n_series,)
        Receives the bounds.
    """
    n_channels = x.shape[0] - 1 if own else x.shape[0]
    last = x.shape[0] - 1
    for s in range(values.shape[0]):
        y = values[s, :, : lengths[s]]
        rows = _rows(cell, x, y[last, 0], low[s], high[s], n_channels, borders)
        columns = _columns(cell, y, x[last, 0], x_low, x_high, n_channels, borders)
        out[s] = rows if rows > columns else columns
