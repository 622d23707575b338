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
    about one join for each series.

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

    def best_of(self, row: int, limit: float) -> tuple[float, int, int]:
        """Radius, series and place of the window of a series whose radius is least.

        Infinite and no window where no radius is finite and at most the limit.
        """
        lines, count = self.lines, self.lines[row].n_windows(self.length)
        left = [*range(row + 1, len(lines)), *range(row)]
        # a radius is at least the distance to any other series
        bounds, alive = np.zeros(count), np.arange(count)
        while left and alive.size:
            other = left.pop(0)
            if alive.size * self.length <= count:
                bounds[alive] = np.maximum(bounds[alive], self.nearest(row, alive, other)[0])
            else:
                work = Join(lines[row], lines[other], self.length, normalize=self.normalize)
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
        for other in left:
            if bounds[place] > limit or bounds[place] == np.inf:
                return np.inf
            (distance,), _ = self.nearest(row, np.array([place]), other)
            bounds[place] = max(bounds[place], distance)
        return float(bounds[place])

    def nearest(self, row: int, places: np.ndarray, other: int) -> tuple[np.ndarray, np.ndarray]:
        """Distances of some windows of a series to the nearest of another one, and where it is."""
        distances, starts = np.empty(places.size), np.empty(places.size, np.int64)
        batch = max(1, BATCH // self.lines[other].n_windows(self.length))
        for first in range(0, places.size, batch):
            some = slice(first, first + batch)
            rows = self.compute(
                WindowDistances(
                    *(self.lines[row], places[some], self.lines[other]),
                    *(self.length, self.normalize),
                )
            )
            starts[some] = rows.argmin(axis=1)
            distances[some] = rows.min(axis=1)
        return distances, starts


def _record(radii: _Radii, radius: float, row: int, place: int) -> ConsensusMotif:
    """The motif with its best match in each series."""
    count, length = len(radii.lines), radii.length
    positions, distances = np.full(count, place), np.zeros(count)
    for other in range(count):
        if other != row:
            (distance,), (start,) = radii.nearest(row, np.array([place]), other)
            positions[other], distances[other] = start, distance
    values = [
        line.points[start : start + length]
        for line, start in zip(radii.lines, positions, strict=True)
    ]
    return ConsensusMotif(length, row, place, radius, positions, distances, np.array(values))
