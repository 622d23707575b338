"""The nearest centre of each series, iteration after iteration: bounds that move with the centres.

DTW with squared costs is no metric, but for a fixed warping path it is a norm. So where a centre c
becomes c', the distance of any series changes by at most the norm of c - c' along the path on which
that is largest. A series is compared anew only where, after such changes, another centre could be
as near as its own (Hamerly's bounds for k-means, with this in place of the triangle inequality).
Under other distances all series are compared anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from .._metrics import Distance
from ..engines import DTWNeighbors, Reduction, Series, Warping

__all__ = ["NearestCenters", "largest_change"]

#: Certified distances are off by less than this for each cost that is added: see "moved centres" in
#: docs/developer/numerics.rst.
UNITS = 4 * 2.0**-53
#: Bytes of series that are compared anew at a time: they are copied, and may come from a file.
MOST_COPIED = 2**23
#: Where squares underflow, distances are off by less than this for each of them.
LOST = 2.0**-500


class NearestCenters:
    """The nearest centre of each series, and bounds of the distances to it and to all others.

    Parameters
    ----------
    series : Series
        All series.
    distance : Distance
        The distance; whole series are compared.
    run : callable
        Computes a reduction.
    """

    def __init__(self, series: Series, distance: Distance, run: Callable[[Reduction], Any]) -> None:
        self.series, self.distance, self.run = series, distance, run
        n = len(series)
        self.labels = np.zeros(n, np.int64)
        #: At least the distance to the own centre, and at most those to the others.
        self.upper, self.lower = np.zeros(n), np.full(n, np.inf)

    def search(self, centers: Series, rows: np.ndarray | None = None) -> Self:
        """Compare all series, or some, with all centres.

        Parameters
        ----------
        centers : Series
            The centres.
        rows : ndarray of int or None, default None
            Numbers of the series; None is all.

        Returns
        -------
        self : NearestCenters
            With the labels and bounds that were found.
        """
        parts: list[Any] = [slice(None)]
        if rows is not None:
            most = MOST_COPIED // (8 * self.series.n_channels * self.series.n_timepoints)
            parts = np.array_split(rows, max(1, -(-rows.size // max(1, most))))
        n_neighbors = min(2, len(centers))
        for part in parts:
            series = self.series if rows is None else self.series.take(part)
            left, right, warping = self.distance.sides(series, centers)
            found = self.run(DTWNeighbors(left, right, n_neighbors, warping=warping))
            self.labels[part] = found.indices[:, 0]
            self.upper[part] = found.distances[:, 0]
            if len(centers) > 1:
                self.lower[part] = found.distances[:, 1]
        return self

    def follow(self, centers: Series, moved: Series, distances: np.ndarray) -> Self:
        """Take account of centres that have moved.

        Parameters
        ----------
        centers, moved : Series
            Before and after.
        distances : ndarray of shape (n_series,)
            Certified distances of the series to their centres before they moved.

        Returns
        -------
        self : NearestCenters
            With the labels of the moved centres, and bounds.
        """
        if len(centers) == 1:
            return self
        if self.distance.entry.name not in ("dtw", "euclidean"):
            return self.search(moved)
        warping, channels = self.distance.warping, self.series.n_channels
        steps = warping.steps(self.series.n_timepoints, centers.n_timepoints)
        error = 1 + UNITS * (steps + channels)
        lost = LOST * np.sqrt(steps * channels)
        change = np.array(
            [
                largest_change(before, after, self.series.n_timepoints, warping)
                for before, after in zip(_each(centers), _each(moved), strict=True)
            ]
        )
        change = change * error + lost
        self.upper = distances * error + change[self.labels]
        # of the other centres the one that has moved most
        farthest = int(np.argmax(change))
        others = np.full(len(change), change[farthest])
        others[farthest] = np.delete(change, farthest).max()
        self.lower = self.lower / error - others[self.labels] - lost
        rows = np.flatnonzero(~(self.lower > self.upper * error + lost))
        if 2 * rows.size > len(self.series):
            return self.search(moved)
        return self.search(moved, rows) if rows.size else self


def largest_change(before: np.ndarray, after: np.ndarray, longest: int, warping: Warping) -> float:
    """Bound how far the distance of any series to a centre moves with the centre.

    A path matches every point of the centre, and some of them more than once: with a series of m
    points, m - 1 times more in all, and a single point no more often than there are points in the
    band.

    Parameters
    ----------
    before, after : ndarray of shape (n_channels, n_timepoints)
        The centre, without padding.
    longest : int
        Points of the longest series.
    warping : Warping
        Options of the distance.

    Returns
    -------
    float
        The largest norm of the difference along a path.
    """
    squares = np.sort(((after - before) ** 2).sum(axis=0))[::-1]
    n = squares.size
    radius = max(int(warping.radius(n, m)) for m in (1, longest))
    most = min(longest, 2 * radius + 1) - 1
    repeats = np.clip(longest - 1 - most * np.arange(n), 0, most)
    return float(np.sqrt(np.sum(squares * (1 + repeats))))


def _each(series: Series) -> list[np.ndarray]:
    """Series one by one, without padding."""
    return [
        values[:, :length]
        for values, length in zip(series.values, series.lengths.tolist(), strict=True)
    ]
