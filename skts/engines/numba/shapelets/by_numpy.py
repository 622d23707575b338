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
from ...families.shapelets.groups import Groups
from ...families.shapelets.matches import Matches, SubsequenceMatches
from ...families.shapelets.search import ShapeletSearch, Survivors, are_normalized
from ...host import by_numpy
from ...host.small_work import ENTRIES
from .._blas import one_blas_thread

__all__ = ["GROUP_SECONDS", "all_distances", "group_distances", "judge", "matches"]

#: Order lines that are judged at a time, by their members.
_LINES = 2**16
#: About how long a small group takes.
GROUP_SECONDS = 1e-3


def _describe(
    line: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, from the first point on, and 1 / deviation; which are constant, which are finite."""
    finite = np.isfinite(line)
    points = np.where(finite, line, 0.0)
    mean, deviation, low, high = by_numpy.statistics(points, length, True)
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
            own, places, mean_a, inverse_a, line, 0, mean, inverse, length, out, cancel, True
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


def group_distances(groups: Groups, cancel: np.ndarray) -> np.ndarray:
    """Certified distances of normalised candidates of some groups to their members."""
    found = [np.empty(0)]
    every = slice(None)
    for g in range(len(groups)):
        own = groups.pieces[groups.candidates_of[g] : groups.candidates_of[g + 1]]
        members = groups.members[groups.members_of[g] : groups.members_of[g + 1]]
        if cancel[0] or not (len(own) and len(members)):
            found.append(np.empty(len(own) * len(members)))
            continue
        queries = tuple(
            groups.source.values[row, channel, start : start + length]
            for row, channel, start, length in own.tolist()
        )
        work = SubsequenceMatches(queries, groups.series.take(members), True, own[:, 1])
        distances = matches(work, every, every, cancel).distances
        found.append((distances / np.sqrt(own[:, 3:])).ravel())
    return np.concatenate(found)


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
        z[t] = (line[starts + t] - line[starts] - mean) * inverse
    there = (np.arange(windows) < series.lengths[:, np.newaxis] - length + 1).ravel()
    flat = (constant & there).reshape(n, windows).any(axis=1)
    squares = np.square(z).sum(axis=0)
    # see "window products" in docs/developer/numerics.rst
    blur = np.float32(8 * (length + 8) * FLOAT32_UNIT * float(squares.max(initial=0.0)))
    # the product of these is the square of a column less twice a product of points; the square of
    # the row is the same for all columns
    left = np.column_stack([z.T, np.ones(starts.size)]).astype(np.float32)
    right = np.vstack([-2.0 * z, np.where(there & ~constant, squares, np.inf)]).astype(np.float32)
    best = np.empty((starts.size, n))
    step = max(1, 4 * ENTRIES // max(windows, length))
    group = max(1, 4 * ENTRIES // step)
    # BLAS may say "invalid" of infinite squares, whose sums are right
    with one_blas_thread(), np.errstate(invalid="ignore"):
        for first in range(0, starts.size, step):
            own = np.arange(first, min(first + step, starts.size))
            of_own, estimates = left[own], np.empty((own.size, windows), np.float32)
            for some in range(0, n, group):
                others = range(some, min(some + group, n))
                near = _NearWindows(z, own, others, windows)
                for k in others:
                    if cancel[0]:
                        return best.reshape(n, windows, n)
                    np.matmul(of_own, right[:, k * windows : (k + 1) * windows], out=estimates)
                    near.add(k, estimates, blur)
                found = near.least_squares()
                best[first : first + step, some : some + group] = np.sqrt(found, out=found)
    unlike = np.sqrt(float(length))
    best[:, flat] = np.minimum(best[:, flat], unlike)
    best[constant] = np.where(flat, 0.0, unlike)
    return best.reshape(n, windows, n)


class _NearWindows:
    """Windows of some series that may be the nearest of their series to others, columns of `z`."""

    def __init__(self, z: np.ndarray, own: np.ndarray, series: range, n_windows: int) -> None:
        self.z, self.own, self.series, self.n_windows = z, own, series, n_windows
        self.rows, shape = np.arange(own.size), (own.size, len(series))
        #: Of each row and series one window by its number among those of all series, or -1.
        self.one = np.empty(shape, np.intp)
        #: Which windows of a series may be nearer, of each row.
        self.near = np.empty((own.size, n_windows), bool)
        #: Rows, places of series and numbers of others that may be nearer, and how many these are.
        self.more: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.count = 0
        #: Least squared distances to those that were measured.
        self.least = np.full(shape, np.inf)

    def add(self, k: int, estimates: np.ndarray, blur: np.float32) -> None:
        """Take the windows of a series: their estimates are within `blur` of the least of a row."""
        at, first = k - self.series[0], k * self.n_windows
        # `argmin` of rows takes half of the time of `min`
        one = estimates.argmin(axis=1)
        least = estimates[self.rows, one]
        nothing = least == np.inf
        self.one[:, at] = np.where(nothing, -1, one + first)
        reach = np.where(nothing, -np.inf, least + blur)
        np.less_equal(estimates, reach[:, np.newaxis], out=self.near)
        self.near[self.rows, one] = False
        places = np.flatnonzero(self.near)  # few rows have several
        if places.size:
            row, other = np.divmod(places, self.n_windows)
            self.more.append((row, np.full(row.size, at), other + first))
            self.count += row.size
            if self.count > ENTRIES:  # where most windows are alike, they would fill the memory
                self._measure()

    def _measure(self) -> None:
        """Measure those that may be nearer."""
        if self.more:
            row, at, other = (np.concatenate(part) for part in zip(*self.more, strict=True))
            np.minimum.at(self.least, (row, at), _squares(self.z, self.own[row], other))
            self.more, self.count = [], 0

    def least_squares(self) -> np.ndarray:
        """Certify the least squared distances; infinite where there are no windows."""
        self._measure()
        found = _squares(self.z, self.own[:, np.newaxis], self.one)
        found[self.one < 0] = np.inf
        return np.minimum(found, self.least, out=found)


def _squares(z: np.ndarray, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances of columns by their numbers, point by point in the order of time."""
    total = np.zeros(others.shape)
    step = max(1, ENTRIES // others[:1].size)
    for first in range(0, len(others), step):
        some = slice(first, first + step)
        a, b, found = own[some], others[some], total[some]
        apart = np.empty(found.shape)
        for points in z:
            # with "clip" NumPy writes to `out` directly; numbers below 0 stand for no window
            np.take(points, b, out=apart, mode="clip")
            apart -= points[a]
            found += np.square(apart, out=apart)
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
