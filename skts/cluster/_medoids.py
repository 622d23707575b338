"""Medoids of series, of whose distances rows are read: starts, swaps, alternation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import numpy as np

from .._distance_rows import DistanceRows

__all__ = ["Medoids", "Start", "alternate", "draw", "swap"]


class Medoids:
    """Medoids, and what follows from their distances: labels, the nearest two, the inertia.

    Parameters
    ----------
    indices : ndarray of int
        Numbers of the series that are medoids.
    distances : ndarray of shape (n_medoids, n_series)
        Their distances to all series; changed by what follows, and gone after `release`.
    """

    def __init__(self, indices: np.ndarray, distances: np.ndarray) -> None:
        self.indices, self.distances = np.array(indices, np.int64), distances
        self._follow()

    def _follow(self) -> None:
        """Find the nearest medoid of each series, of equally near ones the first."""
        columns = np.arange(self.distances.shape[1])
        self.labels = self.distances.argmin(axis=0)
        self.nearest = self.distances[self.labels, columns]
        self.distances[self.labels, columns] = np.inf
        #: Distances to the second medoid, infinite where there is one alone.
        self.second = self.distances.min(axis=0)
        self.distances[self.labels, columns] = self.nearest
        self.inertia = float(self.nearest.sum())

    def release(self) -> Self:
        """Drop the distances, the memory of which is more than that of all else.

        Returns
        -------
        self : Medoids
            With numbers, labels, nearest and second distances, and the inertia.
        """
        self.distances = np.empty((0, self.distances.shape[1]))
        return self

    def replace(self, place: int, index: int, row: np.ndarray) -> None:
        """Put a series in the place of a medoid.

        Parameters
        ----------
        place : int
            The number of the medoid.
        index : int
            The number of the series.
        row : ndarray of shape (n_series,)
            Its distances to all series.
        """
        self.indices[place] = index
        self.distances[place] = row
        self._follow()

    def try_swap(self, index: int, row: np.ndarray) -> bool:
        """Put a series in the place of the medoid where it lowers the inertia most, if anywhere.

        The inertia after each of the swaps comes out of one pass over the series (FastPAM, [2]_ of
        `DTWKMedoids`, section 3): without the medoid of its cluster a series has the second.

        Parameters
        ----------
        index : int
            The number of the series.
        row : ndarray of shape (n_series,)
            Its distances to all series.

        Returns
        -------
        bool
            Whether it is a medoid now.
        """
        low = np.minimum(row, self.nearest)
        more = np.bincount(
            self.labels, np.minimum(row, self.second) - low, minlength=len(self.indices)
        )
        place = int(np.argmin(more))
        if not float(low.sum()) + more[place] < self.inertia:
            return False
        # the sum of the distances themselves decides, so that rounding cannot make swaps circle
        others = np.where(self.labels == place, self.second, self.nearest)
        if not float(np.minimum(row, others).sum()) < self.inertia:
            return False
        self.replace(place, index, row)
        return True

    def fill(self, rows: DistanceRows) -> Self:
        """Give clusters without series the series that is farthest from its medoid, or drop them.

        Each such move lowers the inertia, so that they end.

        Parameters
        ----------
        rows : DistanceRows
            The distances.

        Returns
        -------
        self : Medoids
            With no cluster without series.
        """
        while True:
            empty = np.bincount(self.labels, minlength=len(self.indices)) == 0
            if not empty.any():
                return self
            farthest = int(np.argmax(self.nearest))
            row = rows.some(np.array([farthest]))[0]
            # under a cost of the user's a series may be far from itself
            if row[farthest] < self.nearest[farthest]:
                self.replace(int(np.argmax(empty)), farthest, row)
            else:
                self.indices, self.distances = self.indices[~empty], self.distances[~empty]
                self._follow()


class Start(NamedTuple):
    """The result of one start."""

    medoids: Medoids
    history: list[float]
    n_iter: int
    converged: bool


def swap(
    rows: DistanceRows, start: np.ndarray, max_iter: int, tell: Callable[[int, float], None]
) -> Start:
    """Swap medoids with other series until no single swap lowers the inertia (FasterPAM).

    Series are tried in their order, around and around, each in the place of the medoid that it
    replaces best; a swap that lowers the inertia is made at once.

    Parameters
    ----------
    rows : DistanceRows
        The distances.
    start : ndarray of int
        Medoids to start from.
    max_iter : int
        Passes over all series at most.
    tell : callable
        Takes the number of a pass and the inertia after it.

    Returns
    -------
    Start
        Medoids and how they were found.
    """
    n = len(rows)
    medoids = Medoids(start, rows.some(start))
    history, tried, iteration = [medoids.inertia], 0, 0
    tell(0, medoids.inertia)
    while tried < n and iteration < max_iter:
        iteration += 1
        for index, row in _each(rows):
            if tried == n:
                break
            tried += 1
            if index not in medoids.indices and medoids.try_swap(index, row):
                tried = 1
        if tried == n or iteration == max_iter:
            medoids.fill(rows)
        tell(iteration, medoids.inertia)
        if medoids.inertia < history[-1]:
            history.append(medoids.inertia)
    return Start(medoids.release(), history, iteration, tried == n)


def _each(rows: DistanceRows) -> Iterator[tuple[int, np.ndarray]]:
    """The rows one by one, with their numbers."""
    for first, part in rows.parts():
        yield from enumerate(part, first)


def alternate(
    rows: DistanceRows, start: np.ndarray, max_iter: int, tell: Callable[[int, float], None]
) -> Start:
    """Alternate labels and medoids: each cluster takes its member with the least sum of distances.

    Parameters
    ----------
    rows : DistanceRows
        The distances, of which those to medoids and within clusters are needed.
    start : ndarray of int
        Medoids to start from.
    max_iter : int
        Iterations at most.
    tell : callable
        Takes the number of an iteration and the inertia after it.

    Returns
    -------
    Start
        Medoids and how they were found.
    """
    medoids = Medoids(start, rows.some(start)).fill(rows).release()
    history = [medoids.inertia]
    tell(0, medoids.inertia)
    for iteration in range(1, max_iter + 1):
        groups = (np.flatnonzero(medoids.labels == place) for place in range(len(medoids.indices)))
        moved = np.array([group[np.argmin(rows.sums_among(group))] for group in groups])
        new = Medoids(moved, rows.some(moved)).fill(rows).release()
        tell(iteration, new.inertia)
        if not new.inertia < medoids.inertia:
            return Start(medoids, history, iteration, True)
        medoids = new
        history.append(new.inertia)
    return Start(medoids, history, max_iter, False)


def draw(
    rows: DistanceRows, n_clusters: int, init: str, random_state: np.random.RandomState
) -> np.ndarray:
    """Choose medoids to start from.

    Parameters
    ----------
    rows : DistanceRows
        The distances.
    n_clusters : int
        How many.
    init : {"k-means++", "build", "random"}
        How, see `DTWKMedoids`.
    random_state : RandomState
        Draws.

    Returns
    -------
    ndarray of shape (n_clusters,), int64
        Numbers of different series.
    """
    if init == "random":
        return random_state.choice(len(rows), n_clusters, replace=False)
    if init == "build":
        return _build(rows, n_clusters)
    n, draws = len(rows), 2 + int(np.log(n_clusters))
    drawn = np.array([random_state.randint(n)])
    nearest = rows.some(drawn)[0]
    while drawn.size < n_clusters:
        weights = np.cumsum(nearest)
        shares = random_state.uniform(size=draws) * weights[-1]
        chosen = np.minimum(np.searchsorted(weights, shares, side="right"), n - 1)
        chosen = chosen[~np.isin(chosen, drawn)]
        if not chosen.size:
            # all distances that are left are 0
            chosen = np.setdiff1d(np.arange(n), drawn)[:1]
        found = np.minimum(rows.some(chosen), nearest)
        best = int(np.argmin(found.sum(axis=1)))
        drawn = np.append(drawn, chosen[best])
        nearest = found[best]
    return drawn


def _build(rows: DistanceRows, n_clusters: int) -> np.ndarray:
    """Take medoids one after the other, each as it lowers the inertia most (BUILD of PAM)."""
    found = np.empty(0, np.int64)
    nearest = np.full(len(rows), np.inf)
    while found.size < n_clusters:
        sums = np.empty(len(rows))
        for first, part in rows.parts():
            # a row at a time: no second copy of a part
            for index, row in enumerate(part, first):
                sums[index] = np.minimum(row, nearest).sum()
        sums[found] = np.inf
        best = int(np.argmin(sums))
        nearest = np.minimum(rows.some(np.array([best]))[0], nearest)
        found = np.append(found, best)
    return found
