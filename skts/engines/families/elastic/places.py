"""Where a neighbour matches: the span of a sub- or supersequence, and the best circular shift.

Searches return distances alone. For the few pairs that are left, these functions find the place.
Under a distance of which no bounds are known, all shifts of all candidates are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.reduction import Reduction
from ...core.series import Series
from .dtw import DTWMatrix, DTWNeighbors, DTWPath
from .warping import Warping

__all__ = ["best_shifts", "distances_of_all_shifts", "match_spans"]

#: Points of shifted series that are laid out at a time.
POINTS = 2**22


def match_spans(
    queries: Series,
    candidates: Series,
    indices: np.ndarray,
    warping: Warping,
    run: Callable[[Reduction], Any],
) -> np.ndarray:
    """Find the points at which free ends of a best warping path lie.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    indices : ndarray of shape (n_queries, n_neighbors), int64
        Candidates of each query.
    warping : Warping
        Options of the distance; its alignment is "subsequence" or "supersequence".
    run : callable
        Computes a reduction.

    Returns
    -------
    ndarray of shape (n_queries, n_neighbors, 2), int64
        First point of the match, and the one behind its last, of the candidate for a subsequence,
        of the query for a supersequence; those of the path that `DTWPath` finds.
    """
    axis = 1 if warping.alignment == "subsequence" else 0
    spans = np.empty((*indices.shape, 2), np.int64)
    for (row, place), index in np.ndenumerate(indices):
        x, y = queries.take(slice(row, row + 1)), candidates.take(slice(index, index + 1))
        path = run(DTWPath(x, y, warping)).path
        spans[row, place] = path[0, axis], path[-1, axis] + 1
    return spans


def best_shifts(
    queries: Series,
    candidates: Series,
    indices: np.ndarray,
    warping: Warping,
    run: Callable[[Reduction], Any],
) -> np.ndarray:
    """Find the circular shifts by which candidates are nearest to queries.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    indices : ndarray of shape (n_queries, n_neighbors), int64
        Candidates of each query.
    warping : Warping
        Options of the distance.
    run : callable
        Computes a reduction.

    Returns
    -------
    ndarray of shape (n_queries, n_neighbors), int64
        Shifts as `numpy.roll` takes them, of equally good ones the least.
    """
    shifts = np.empty(indices.shape, np.int64)
    for (row, place), index in np.ndenumerate(indices):
        query, best = queries.take(slice(row, row + 1)), (np.inf, 0)
        for begin, rolled in _shifts(candidates, index):
            found = run(DTWNeighbors(query, rolled, 1, warping=warping))
            best = min(best, (float(found.distances[0, 0]), begin + int(found.indices[0, 0])))
        shifts[row, place] = best[1]
    return shifts


def distances_of_all_shifts(
    queries: Series, candidates: Series, warping: Warping, run: Callable[[Reduction], Any]
) -> np.ndarray:
    """Compute the least distances over all circular shifts of the candidates, one by one.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    warping : Warping
        Options of the distance.
    run : callable
        Computes a reduction.

    Returns
    -------
    ndarray of shape (n_queries, n_candidates)
        The distances.
    """
    least = np.full((len(queries), len(candidates)), np.inf)
    for index in range(len(candidates)):
        for _, rolled in _shifts(candidates, index):
            found = run(DTWMatrix(queries, rolled, warping)).min(axis=1)
            least[:, index] = np.minimum(least[:, index], found)
    return least


def _shifts(candidates: Series, index: int) -> Iterator[tuple[int, Series]]:
    """Circular shifts of a candidate, some at a time: the first of them, and the shifted series."""
    m = int(candidates.lengths[index])
    y = candidates.values[index, :, :m]
    step = max(1, POINTS // y.size)
    for begin in range(0, m, step):
        some = range(begin, min(begin + step, m))
        yield begin, Series.of([np.roll(y, s, axis=1) for s in some])
