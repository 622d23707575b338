"""Shapelets by NumPy, for small work: certified distances of all candidates, and their exact cuts.

Products of matrices say which windows may be the best matches; these few are measured point by
point, in the order of time, so that the bits are those of `match`.
"""

from __future__ import annotations

import numpy as np

from ...core.constants import FLOAT32_UNIT
from ...core.series import Series
from ...families.profile.concatenated import whole_windows
from ...families.profile.statistics import settle_statistics
from ...families.shapelets.matches import Matches, SubsequenceMatches
from ...families.shapelets.search import ShapeletSearch, Survivors, are_normalized
from ...host import by_numpy
from ...host.small_work import ENTRIES
from .._blas import one_blas_thread

__all__ = ["all_distances", "judge", "matches"]

#: Order lines that are judged at a time, by their members.
_LINES = 2**16


def _describe(
    line: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and inverse deviation of all windows, which are constant, which are finite."""
    finite = np.isfinite(line)
    points = np.where(finite, line, 0.0)
    mean, deviation, low, high = by_numpy.statistics(points, length)
    found = settle_statistics(deviation, low, high, whole_windows(finite, length))
    return mean, found.inverse, found.constant, found.finite


def matches(reduction: SubsequenceMatches, rows: slice, cols: slice, cancel: np.ndarray) -> Matches:
    """Certified best matches of normalised queries in some series."""
    queries, series = reduction.queries[rows], reduction.series.take(cols)
    channels = reduction.channels
    channels = np.zeros(len(queries), np.int64) if channels is None else channels[rows]
    n, width = len(series), series.n_timepoints
    shape = len(queries), n
    found = Matches(np.full(shape, np.inf), np.full(shape, -1, np.int64))
    kinds = np.column_stack([[query.size for query in queries], channels])
    for length, channel in np.unique(kinds, axis=0).tolist():
        if length > width:
            continue
        chosen = np.flatnonzero((kinds == (length, channel)).all(axis=1))
        own = np.concatenate([queries[row] for row in chosen])
        places = np.arange(chosen.size) * length
        line = np.ascontiguousarray(series.values[:, channel]).ravel()
        mean_a, inverse_a, constant_a, finite_a = _describe(own, length)
        mean, inverse, constant, finite = _describe(line, length)
        own, line = (np.where(np.isfinite(points), points, 0.0) for points in (own, line))
        out = np.empty((chosen.size, mean.size))
        by_numpy.distances(
            own, places, mean_a, inverse_a, line, 0, mean, inverse, length, out, cancel
        )
        out[constant_a[places, np.newaxis] != constant] = np.sqrt(float(length))
        out[constant_a[places, np.newaxis] & constant] = 0.0
        out[:, ~finite], out[~finite_a[places]] = np.inf, np.inf
        out[np.isnan(out)] = np.inf  # of squares beyond all numbers
        for b in range(n):
            count = int(series.lengths[b]) - length + 1
            if count > 0:
                here = out[:, b * width : b * width + count]
                at = here.argmin(axis=1)
                best = here[np.arange(chosen.size), at]
                found.distances[chosen, b] = best
                found.starts[chosen, b] = np.where(np.isinf(best), -1, at)
    return found


def all_distances(series: Series, channel: int, length: int, cancel: np.ndarray) -> np.ndarray:
    """Certified distances of all windows to all series, of shape (n, n_windows, n).

    Those of windows that are not there are arbitrary.
    """
    n, width = len(series), series.n_timepoints
    windows = width - length + 1
    line = np.ascontiguousarray(series.values[:, channel], np.float64).ravel()
    starts = (np.arange(n)[:, np.newaxis] * width + np.arange(windows)).ravel()
    mean, inverse, constant, _ = _describe(line, length)
    mean, inverse, constant = mean[starts], inverse[starts], constant[starts]
    z = np.empty((length, starts.size))
    for t in range(length):
        z[t] = (line[starts + t] - mean) * inverse
    there = (np.arange(windows) < series.lengths[:, np.newaxis] - length + 1).ravel()
    flat = (constant & there).reshape(n, windows).any(axis=1)
    squares = np.square(z).sum(axis=0)
    # see "window products" in docs/developer/numerics.rst
    blur = np.float32(8 * (length + 8) * FLOAT32_UNIT * float(squares.max(initial=0.0)))
    # the product of these is the square of a row less twice a product of points; the square of the
    # column is the same for all rows
    rows = np.column_stack([-2.0 * z.T, np.where(there & ~constant, squares, np.inf)])
    left, right = rows.astype(np.float32), np.vstack([z, np.ones(starts.size)]).astype(np.float32)
    best = np.empty((starts.size, n))
    step = max(1, 4 * ENTRIES // max(windows, length))
    # BLAS may say "invalid" of infinite squares, whose sums are right
    with one_blas_thread(), np.errstate(invalid="ignore"):
        for first in range(0, starts.size, step):
            some = slice(first, min(first + step, starts.size))
            of_some, columns = z[:, some], np.ascontiguousarray(right[:, some])
            estimates = np.empty((windows, columns.shape[1]), np.float32)
            for k in range(n):
                if cancel[0]:
                    return best.reshape(n, windows, n)
                others = slice(k * windows, (k + 1) * windows)
                np.matmul(left[others], columns, out=estimates)
                squares = _least_squared_distances(of_some, z[:, others], estimates, blur)
                best[some, k] = np.sqrt(squares)
    unlike = np.sqrt(float(length))
    best[:, flat] = np.minimum(best[:, flat], unlike)
    best[constant] = np.where(flat, 0.0, unlike)
    return best.reshape(n, windows, n)


def _least_squared_distances(
    z: np.ndarray, others: np.ndarray, estimates: np.ndarray, blur: np.float32
) -> np.ndarray:
    """Certify the least squared distance of each window, a column of `z`, to the others.

    Only those count whose estimate is within `blur` of the least; infinite where there are none.
    """
    least = estimates.min(axis=0)
    least[least == np.inf] = -np.inf
    other, own = np.divmod(_sparse_places(estimates <= least + blur), least.size)
    one = np.full(least.size, -1)
    one[own] = other
    found = np.where(one < 0, np.inf, _squares(z, others[:, one]))
    # most have one; where several may be the best, the least counts
    more = np.flatnonzero(one[own] != other)
    if more.size:
        np.minimum.at(found, own[more], _squares(z[:, own[more]], others[:, other[more]]))
    return found


def _sparse_places(near: np.ndarray) -> np.ndarray:
    """Find the few that are true, as `flatnonzero` does, in a third of its time."""
    if near.size % 8:
        return np.flatnonzero(near)
    eights = near.reshape(-1, 8)
    some = np.flatnonzero(eights.view(np.uint64)[:, 0] != 0)
    places = np.flatnonzero(eights[some])
    return 8 * some[places // 8] + places % 8


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances of columns, point by point in the order of time."""
    total = np.zeros(a.shape[1])
    apart = a - b
    for points in np.square(apart, out=apart):
        total += points
    return total


def judge(
    reduction: ShapeletSearch,
    distances: np.ndarray,
    owns: np.ndarray,
    place: tuple[int, int],
    best: tuple[int, float],
) -> tuple[Survivors, tuple[int, float]]:
    """Exact cuts of the candidates of some members, of one (length, channel).

    Parameters
    ----------
    reduction : ShapeletSearch
        The search.
    distances : ndarray
        From `all_distances`.
    owns : ndarray of shape (n_rows,)
        The series of the candidates, by their places among the members.
    place : tuple of int
        Length and channel.
    best : tuple of (int, float)
        A gain and a gap that are reached for certain.

    Returns
    -------
    survivors : Survivors
        The candidates that could be the best.
    best : tuple of (int, float)
        As given, raised.
    """
    (length, channel), members = place, reduction.members
    everyone = len(members) == len(distances)
    parts: list[Survivors] = []
    counts = reduction.series.lengths[members[owns]] - length + 1
    of_row, of_start = np.repeat(owns, counts), np.concatenate([np.arange(k) for k in counts])
    step = max(1, _LINES // (len(members) * reduction.criterion.width))
    for first in range(0, of_row.size, step):
        row, start = of_row[first : first + step], of_start[first : first + step]
        measured = distances[members[row], start]
        measured = (measured if everyone else measured[:, members]) / np.sqrt(length)
        for number, way in enumerate(reduction.ways):
            where = np.empty((row.size, 5), np.int64)
            where[:, 0], where[:, 3], where[:, 4] = length, channel, number
            where[:, 1], where[:, 2] = row, start
            normalized = are_normalized(where, reduction.ways, reduction.before_normalized)
            cuts = reduction.criterion.best_cuts(reduction.join(measured, way), normalized)
            found = Survivors(cuts.gain, cuts.gap, where, measured)
            found = found.filter_by_bound(best)
            found = found.take(found.gain >= 0)
            if found.gain.size:
                top = np.lexsort((found.gap, found.gain))[-1]
                best = max(best, (int(found.gain[top]), float(found.gap[top])))
                parts.append(found)
    return Survivors.of_parts(parts).filter_by_bound(best), best
