"""Lists of nearest windows, and how they merge: by distance, equal ones by their place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Nearest", "least_of_rows", "take_nearer"]

#: Neighbours that are found one after the other; to sort whole rows is faster for more.
MOST_UNSORTED = 8


class Nearest(NamedTuple):
    """Neighbours of windows, nearest first, equal ones by their place.

    Attributes
    ----------
    distances : ndarray of shape (n_windows, n_neighbors), float64
        Certified distances, infinite where there is none.
    indices : ndarray of shape (n_windows, n_neighbors), int64
        Places on the line, -1 where there is none.
    """

    distances: np.ndarray
    indices: np.ndarray

    @classmethod
    def none(cls, n_windows: int, n_neighbors: int) -> Nearest:
        """Return neighbours not yet found."""
        shape = n_windows, n_neighbors
        return cls(np.full(shape, np.inf), np.full(shape, -1, np.int64))

    def add(self, windows: slice | np.ndarray, other: Nearest) -> None:
        """Take other neighbours of some windows where they are nearer; none may be there twice."""
        if isinstance(windows, slice) and other.indices.size:
            some = np.flatnonzero(other.indices[:, 0] >= 0)
            if 2 * some.size < len(other.indices):
                windows = windows.indices(len(self.indices))[0] + some
                other = Nearest(other.distances[some], other.indices[some])
        same = self.distances.shape[1] == other.distances.shape[1]
        if same and not (self.indices[windows, :1] >= 0).any():
            self.distances[windows], self.indices[windows] = other  # the first that are found
            return
        if self.distances.shape[1] == 1:
            take_nearer(self, windows, other)
            return
        mine = Nearest(self.distances[windows], self.indices[windows])
        self.distances[windows], self.indices[windows] = mine.merged(other)

    def merged(self, other: Nearest) -> Nearest:
        """Return the nearest of these and others of the same windows, as many as here."""
        k = self.distances.shape[1]
        distances = np.hstack([self.distances, other.distances])
        indices = np.hstack([self.indices, other.indices])
        order = np.argsort(distances, axis=1)
        found = np.take_along_axis(distances, order, axis=1)
        # few are equal, and to sort by both takes twice the time
        tied = ((found[:, 1:] == found[:, :-1]) & (found[:, 1:] < np.inf)).any(axis=1)
        if tied.any():
            order[tied] = np.lexsort((indices[tied], distances[tied]), axis=1)
        return Nearest(found[:, :k], np.take_along_axis(indices, order[:, :k], axis=1))

    def copy(self) -> Nearest:
        """Return a copy."""
        return Nearest(self.distances.copy(), self.indices.copy())


def take_nearer(mine: Nearest, windows: slice | np.ndarray, other: Nearest) -> None:
    """Take other neighbours of some windows where they are nearer, column by column."""
    distances, places = mine.distances[windows], mine.indices[windows]
    nearer = (other.distances < distances) | (
        (other.distances == distances) & (other.indices < places) & (other.indices >= 0)
    )
    np.copyto(distances, other.distances, where=nearer)
    np.copyto(places, other.indices, where=nearer)
    if not isinstance(windows, slice):  # else these are views
        mine.distances[windows], mine.indices[windows] = distances, places


def least_of_rows(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k least of each row, the first of equal ones first, and their places; overwrites."""
    rows = np.arange(len(values))[:, np.newaxis]
    if k > MOST_UNSORTED:
        places = np.argsort(values, axis=1, kind="stable")[:, :k]
        return values[rows, places], places
    least, places = np.empty((len(values), k)), np.empty((len(values), k), np.int64)
    for turn in range(k):
        at = values.argmin(axis=1)[:, np.newaxis]
        places[:, turn], least[:, turn] = at[:, 0], values[rows, at][:, 0]
        values[rows, at] = np.inf
    return least, places
