"""Joins of short lines: the distances of all pairs of windows, and the nearest of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from .join import Join, JoinPart
from .nearest import Nearest, least_of_rows

__all__ = ["nearest_of_all"]


def nearest_of_all(
    reduction: Join,
    tile: Tile,
    regular: tuple[np.ndarray, np.ndarray],
    measure: Callable[[np.ndarray, slice], np.ndarray],
    at_a_time: int,
    cancel: np.ndarray,
) -> JoinPart:
    """Nearest windows within a tile, from the certified distances of all its pairs.

    Parameters
    ----------
    reduction : Join
        The work.
    tile : Tile
        Rows and columns.
    regular : tuple of two ndarray of bool
        Which windows of both lines take part.
    measure : callable
        Returns the certified distances of some windows of the first line to a run of the second.
    at_a_time : int
        Distances that are measured at a time, about.
    cancel : ndarray
        Turns 1 on an interrupt.
    """
    k, within = reduction.n_neighbors, reduction.within
    rows = Nearest.none(tile.shape[0], k)
    cols = Nearest.none(tile.shape[1] if within else 0, k)
    first = max(tile.col, reduction.since) if within else tile.col
    step = max(1, at_a_time // max(1, tile.col_stop - first))
    at = np.arange(first, tile.col_stop)
    for start in range(tile.row, tile.row_stop, step):
        some = np.arange(start, min(start + step, tile.row_stop))
        # of one line pairs before the diagonal do not count
        left = max(first, start + reduction.exclusion + 1) if within else first
        if left >= tile.col_stop or cancel[0]:
            break
        other = at[left - first :]
        found = measure(some, slice(left, tile.col_stop))
        found[np.isnan(found)] = np.inf  # of squares beyond all numbers
        found[~regular[0][some]] = np.inf
        found[:, ~regular[1][other]] = np.inf
        if within:
            found[other - some[:, np.newaxis] <= reduction.exclusion] = np.inf
            cols.add(slice(left - tile.col, None), _nearest(found.T.copy(), k, some))
        rows.add(slice(start - tile.row, start - tile.row + some.size), _nearest(found, k, other))
    return JoinPart(rows, cols)


def _nearest(distances: np.ndarray, k: int, places: np.ndarray) -> Nearest:
    """The k nearest places of each row."""
    values, at = least_of_rows(distances, min(k, places.size))
    indices = np.where(np.isinf(values), -1, places[at])
    missing = ((0, 0), (0, k - values.shape[1]))
    return Nearest(
        np.pad(values, missing, constant_values=np.inf),
        np.pad(indices, missing, constant_values=-1),
    )
