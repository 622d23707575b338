"""Rows of the matrix of all distances within a set, which is held where it fits in memory.

All of it reads rows in one order, whether the matrix is held or computed again a part at a time:
the memory that there is changes no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from ._metrics import distance_of
from ._validation import check_distances
from .engines import REFERENCE, DTWMatrix, Engine, SBDMatrix, Series, Shapes, find_engine, run

__all__ = ["DistanceRows", "rows_of", "silhouettes"]

#: Series of fewer points are scaled to norm 1 and not centred, by shape-based distances.
SHORT = 3

#: Part of the memory budget that the matrix of distances, or else a part of it, may take.
SHARE, PART_SHARE = 0.5, 0.125


class DistanceRows:
    """Rows of the matrix of all distances within a set of series.

    Parameters
    ----------
    series : Series or Shapes
        The set.
    between : callable
        Takes two parts of the set, and returns the distances of all pairs; the same object twice
        needs no more than half of them.
    """

    def __init__(self, series: Any, between: Callable[[Any, Any], np.ndarray]) -> None:
        self.series, self.between = series, between
        budget = find_engine(REFERENCE).budget()
        n = len(series)
        #: Rows of a part.
        self.step = max(1, min(n, int(PART_SHARE * budget) // (8 * n)))
        self._whole: np.ndarray | None = None
        self._fits = 8 * n * n <= SHARE * budget

    @classmethod
    def of(cls, matrix: np.ndarray) -> Self:
        """Return the rows of a matrix that is there already.

        Parameters
        ----------
        matrix : ndarray of shape (n_series, n_series)
            The distances.

        Returns
        -------
        DistanceRows
            Its rows, without copies.
        """
        rows = cls(matrix, _none_left)
        rows._whole, rows._fits = matrix, True
        return rows

    def __len__(self) -> int:
        return len(self.series)

    def whole(self) -> np.ndarray | None:
        """Return the whole matrix, computed once.

        Returns
        -------
        ndarray of shape (n_series, n_series) or None
            The distances; None where the budget has no room for them.
        """
        if self._fits and self._whole is None:
            self._whole = self.between(self.series, self.series)
        return self._whole

    def some(self, which: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Return distances of some series, to all or to some.

        Parameters
        ----------
        which : ndarray of int
            Their numbers.
        among : ndarray of int or None, default None
            Numbers of the other series; None is all.

        Returns
        -------
        ndarray of shape (n_which, n_among)
            The distances, a copy.
        """
        if self._whole is not None:
            held: np.ndarray = self._whole[which if among is None else np.ix_(which, among)]
            return held
        left = self.series.take(which)
        if among is None:
            right = self.series
        else:
            # the same object twice: half of the distances
            right = left if among is which else self.series.take(among)
        return self.between(left, right)

    def parts(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all rows, some at a time, each time with the number of the first."""
        whole = self.whole()
        for first in range(0, len(self), self.step):
            rows = slice(first, min(first + self.step, len(self)))
            if whole is not None:
                yield first, whole[rows]
            else:
                yield first, self.some(np.arange(rows.start, rows.stop))

    def sums_among(self, members: np.ndarray) -> np.ndarray:
        """Return the sum of the distances of each of some series to all of these.

        Parameters
        ----------
        members : ndarray of shape (n_members,), int
            Their numbers.

        Returns
        -------
        ndarray of shape (n_members,)
            The sums.
        """
        sums = np.empty(members.size)
        step = max(1, self.step * len(self) // members.size)
        for first in range(0, members.size, step):
            some = members if step >= members.size else members[first : first + step]
            block = self.some(some, members)
            sums[first : first + step] = block.sum(axis=1)
        return sums


def _none_left(left: Any, right: Any) -> np.ndarray:
    raise AssertionError("A distance is computed where all are there.")


def rows_of(
    series: Series,
    options: dict[str, Any],
    engine: str | Engine | None,
    n_jobs: int | None,
    verbose: int,
) -> DistanceRows:
    """Return the distances within a set of series, under a distance with its options.

    Parameters
    ----------
    series : Series
        The set; under "precomputed" the rows of the matrix.
    options : dict
        ``metric``, and others of `silhouette_samples`.
    engine : str, Engine or None
        The engine.
    n_jobs : int or None
        Threads on the CPU.
    verbose : int
        1 shows progress bars.

    Returns
    -------
    DistanceRows
        The distances, none of them computed yet.

    Raises
    ------
    ValueError
        If options contradict each other.
    """
    given: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "verbose": verbose}
    if options["metric"] == "precomputed":
        return DistanceRows.of(check_distances(series))
    if options["metric"] == "sbd":
        shapes = _shapes(series, options)
        return DistanceRows(shapes, _between_shapes(given))
    distance = distance_of(**options)
    compared, _, warping = distance.sides(series, series)
    return DistanceRows(compared, lambda left, right: run(DTWMatrix(left, right, warping), **given))


def silhouettes(rows: DistanceRows, labelings: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Compute silhouettes for several labelings, in one pass over all distances.

    Parameters
    ----------
    rows : DistanceRows
        The distances.
    labelings : sequence of ndarray of shape (n_series,), int
        Each with labels from 0 on, 2 of them at least.

    Returns
    -------
    list of ndarray of shape (n_series,)
        Silhouettes for each labeling.
    """
    n = len(rows)
    sums = [np.empty((n, labels.max() + 1)) for labels in labelings]
    for first, part in rows.parts():
        for index, row in enumerate(part, first):
            if row[index] != 0:
                # a constant series is not at distance 0 from itself under "sbd"
                row = row.copy()
                row[index] = 0.0
            for labels, total in zip(labelings, sums, strict=True):
                total[index] = np.bincount(labels, row, minlength=total.shape[1])
    return [_of_sums(labels, total) for labels, total in zip(labelings, sums, strict=True)]


def _of_sums(labels: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Silhouettes by the sums of the distances of each series to each cluster."""
    counts, each = np.bincount(labels), np.arange(labels.size)
    own = counts[labels]
    within = sums[each, labels] / np.maximum(own - 1, 1)
    means = sums / counts
    means[each, labels] = np.inf
    other = means.min(axis=1)
    largest = np.maximum(within, other)
    # alone in its cluster, or at distance 0 to two clusters
    nothing = (own == 1) | (largest == 0)
    return np.where(nothing, 0.0, (other - within) / np.where(nothing, 1.0, largest))


def _between_shapes(given: dict[str, Any]) -> Callable[[Shapes, Shapes], np.ndarray]:
    """Return a function that computes shape-based distances; rounding may bring them below 0."""

    def between(left: Shapes, right: Shapes) -> np.ndarray:
        found: np.ndarray = run(SBDMatrix(left, right), **given).distances
        np.maximum(found, 0.0, out=found)
        return found

    return between


def _shapes(series: Series, options: dict[str, Any]) -> Shapes:
    """Series as k-Shape compares them: filled up to the longest of all."""
    params = dict(options.get("metric_params") or {})
    normalize = params.pop("normalize", True)
    if params:
        raise ValueError(
            f"metric_params: {next(iter(params))!r} is no parameter of metric='sbd', which has "
            "'normalize'."
        )
    if not isinstance(normalize, bool | np.bool_):
        raise TypeError(f"normalize={normalize!r} of metric='sbd' is not True or False.")
    if callable(options.get("cost")):
        raise ValueError(
            f"cost={options['cost']!r} does not go with metric='sbd', which matches no points."
        )
    if options.get("window") is not None:
        raise ValueError(
            f"window={options['window']!r} does not go with metric='sbd', which has no warping."
        )
    return Shapes.normalized(series, normalize=bool(normalize), short=series.n_timepoints < SHORT)
