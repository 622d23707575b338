"""The consensus motif of several series: the window that all of them hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import checks_arguments
from .._scalars import takes_plain
from .._validation import check_univariate
from ..engines import ConcatenatedSeries, Join, Reduction, WindowDistances, run
from ._matrix_profile import _COMMON
from ._records import ConsensusMotif
from ._search import BATCH, length_of

__all__ = ["consensus_motif"]

#: Points of all windows of a series up to which it is short: comparing a window with each of a few
#: thousand takes less than to plan that for a series by itself.
SHORT = 2**12
#: Windows of short series that are compared at once.
AT_ONCE = 2**12


@takes_plain
@checks_arguments(
    {name: _COMMON[name] for name in ("window", "normalize", "engine", "n_jobs", "verbose")}
)
def consensus_motif(
    X: ArrayLike | list[ArrayLike],
    *,
    window: float,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ConsensusMotif:
    """Find the window that comes back in all of several series (Ostinato).

    The radius of a window is its distance to the series that it matches worst: the largest, over
    the other series, of the distance to their nearest window. The consensus motif is the window of
    least radius. It is found exactly.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints), or list of array-like
        Two series or more, of any lengths. Windows that hold NaN or infinity are left out.
    window : int or float
        Length of the subsequences that are compared, in points; or a fraction of the shortest
        series, rounded up.
    normalize : bool, default True
        Whether windows are z-normalised.
    engine : str or None, default None
        "auto", "numba", "cupy", or another registered engine; None takes the configuration's.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ConsensusMotif
        The window, and its best match in each series. Of windows of equal radius that of the first
        series is taken, and there the earliest.

    Raises
    ------
    ValueError
        If there are fewer than two series, or one is shorter than the window; if a series has no
        finite window.

    See Also
    --------
    skts.MotifFinder : Pairs of windows that are most alike, in one series or in two.

    Notes
    -----
    The windows of each series are joined with other series until few can still have a radius as
    small as the best one so far; these are measured one by one. With a clear consensus that takes
    about one join for each series. Short series are compared with many others at once.

    References
    ----------
    .. [1] Kamgar, Gharghabi, Keogh. "Matrix Profile XV: Exploiting Time Series Consensus Motifs to
       Find Structure in Time Series Sets". ICDM 2019, section IV.

    Examples
    --------
    >>> from skts.motifs import consensus_motif
    >>> a = [4, 4, 0, 1, 3, 2, 9, 1, 7]
    >>> b = [9, 2, 8, 1, 3, 7, 5, 2]
    >>> c = [0, 2, 6, 4, 7, 7, 8, 1]
    >>> found = consensus_motif([a, b, c], window=4)
    >>> found.series, found.positions, round(found.radius, 2)
    (0, array([2, 3, 0]), 0.0)
    """
    series = check_univariate(X)
    if len(series) < 2:
        raise ValueError("A consensus needs two series or more; X has 1.")
    length = length_of(window, min(points.size for points in series))
    for row, points in enumerate(series):
        if points.size < length:
            raise ValueError(
                f"Series {row} of X has {points.size} time points; that is less than one window of "
                f"{length}."
            )
        if not _has_window(points, length):
            raise ValueError(
                f"There is no consensus: series {row} of X has no finite window of {length} points."
            )
    lines = [ConcatenatedSeries.of([points]) for points in series]
    compute = partial(run, engine=engine, n_jobs=n_jobs, verbose=verbose)
    radii = _Radii(lines, length, bool(normalize), compute)
    best = np.inf, -1, -1
    for row in range(len(lines)):
        best = min(best, radii.best_of(row, best[0]))
    radius, row, place = best
    return _record(radii, radius, row, place)


def _has_window(points: np.ndarray, length: int) -> bool:
    """Whether so many points in a row are finite."""
    gaps = np.flatnonzero(~np.isfinite(points))
    return bool(np.diff(gaps, prepend=-1, append=points.size).max() > length)


class _Radii:
    """Radii of windows, and bounds of them.

    Parameters
    ----------
    lines : sequence of ConcatenatedSeries
        The series.
    length : int
        Points of a window.
    normalize : bool
        Whether windows are z-normalised.
    compute : callable
        Runs a reduction.
    """

    def __init__(
        self,
        lines: Sequence[ConcatenatedSeries],
        length: int,
        normalize: bool,
        compute: Callable[[Reduction], Any],
    ) -> None:
        self.lines, self.length, self.normalize, self.compute = lines, length, normalize, compute
        self.groups = _grouped([line.n_windows(length) for line in lines], length)
        self.joined = [
            ConcatenatedSeries.of([lines[row].points for row in group])
            if len(group) > 1
            else lines[group.start]
            for group in self.groups
        ]
        self.group_of = np.repeat(np.arange(len(self.groups)), [len(one) for one in self.groups])

    def best_of(self, row: int, limit: float) -> tuple[float, int, int]:
        """Radius, series and place of the window of a series whose radius is least.

        Infinite and no window where no radius is finite and at most the limit.
        """
        lines, count, own = self.lines, self.lines[row].n_windows(self.length), self.group_of[row]
        left = [*range(own, len(self.groups)), *range(own)]
        if len(self.groups[own]) == 1:
            left.remove(own)
        # a radius is at least the distance to any other series
        bounds, alive = np.zeros(count), np.arange(count)
        while left and alive.size:
            group = left.pop(0)
            if len(self.groups[group]) > 1 or alive.size * self.length <= count:
                bounds[alive] = np.maximum(bounds[alive], self.farthest(row, alive, group))
            else:
                work = Join(
                    *(lines[row], self.joined[group], self.length), normalize=self.normalize
                )
                np.maximum(bounds, self.compute(work).distances[:, 0], out=bounds)
                limit = min(limit, self._settle_best(row, bounds, left, limit))
            alive = np.flatnonzero((bounds <= limit) & (bounds < np.inf))
        if alive.size == 0:
            return np.inf, -1, -1
        place = int(alive[np.argmin(bounds[alive])])
        return float(bounds[place]), row, place

    def _settle_best(self, row: int, bounds: np.ndarray, left: list[int], limit: float) -> float:
        """Measure the window of least bound until it is its radius, or above the limit.

        A small radius, found early, rules out most other windows.
        """
        place = int(np.argmin(bounds))
        for group in left:
            if bounds[place] > limit or bounds[place] == np.inf:
                return np.inf
            (distance,) = self.farthest(row, np.array([place]), group)
            bounds[place] = max(bounds[place], distance)
        return float(bounds[place])

    def farthest(self, row: int, places: np.ndarray, group: int) -> np.ndarray:
        """Distances of some windows of a series to that of a group that they match worst."""
        found, line = np.empty(places.size), self.joined[group]
        batch = max(1, BATCH // line.n_windows(self.length))
        for first in range(0, places.size, batch):
            some = slice(first, first + batch)
            distances = self._distances(row, places[some], group)
            # windows that touch what lies between two series are at infinity
            nearest = np.minimum.reduceat(distances, line.starts, axis=1)
            if self.group_of[row] == group:
                nearest[:, row - self.groups[group].start] = 0.0
            found[some] = nearest.max(axis=1)
        return found

    def matches(self, row: int, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances of a window to the nearest of each series, and where that starts."""
        positions, distances = np.empty(len(self.lines), np.int64), np.empty(len(self.lines))
        for group, rows in enumerate(self.groups):
            if rows == range(row, row + 1):
                continue
            (found,) = self._distances(row, np.array([place]), group)
            for other, one in zip(
                rows, np.split(found, self.joined[group].starts[1:]), strict=True
            ):
                positions[other], distances[other] = one.argmin(), one.min()
        positions[row], distances[row] = place, 0.0
        return distances, positions

    def _distances(self, row: int, places: np.ndarray, group: int) -> np.ndarray:
        """Distances of some windows of a series to all of a group."""
        line = self.joined[group]
        work = WindowDistances(self.lines[row], places, line, self.length, self.normalize)
        found: np.ndarray = self.compute(work)
        return found


def _grouped(counts: list[int], length: int) -> list[range]:
    """Series in a row that are compared at once: short ones, or a longer one alone."""
    groups: list[range] = []
    room = 0
    for row, count in enumerate(counts):
        short = count * length <= SHORT
        if short and count <= room:
            groups[-1] = range(groups[-1].start, row + 1)
            room -= count + length
        else:
            groups.append(range(row, row + 1))
            room = AT_ONCE - count - length if short else 0
    return groups


def _record(radii: _Radii, radius: float, row: int, place: int) -> ConsensusMotif:
    """The motif with its best match in each series."""
    length, (distances, positions) = radii.length, radii.matches(row, place)
    values = [
        line.points[start : start + length]
        for line, start in zip(radii.lines, positions, strict=True)
    ]
    return ConsensusMotif(length, row, place, radius, positions, distances, np.array(values))
