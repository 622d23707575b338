"""The points that series match with averages, under any distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._metrics import Distance
from .engines import AlignmentSums, Reduction, Series

__all__ = [
    "LONGER_PATIENCE",
    "NEVER_RISES",
    "PATIENCE",
    "Alignment",
    "align",
    "alignment_of",
    "terms",
]

#: Metrics under which no average by means of matched points raises the inertia: means minimise it,
#: with paths as they are.
NEVER_RISES = frozenset({"dtw", "adtw", "euclidean"})
#: Iterations in a row that do not lower the inertia, after which an algorithm ends, where none
#: raises it, and where some may.
PATIENCE, LONGER_PATIENCE = 1, 5


class Alignment(NamedTuple):
    """Sums of the points that series match with averages, and how far they are.

    Attributes
    ----------
    values : ndarray of shape (n_averages, n_channels, n_timepoints)
        Sum of the points matched with each point of each average, by weight.
    weights : ndarray of shape (n_averages, n_channels, n_timepoints)
        Sum of their weights; of shape (n_averages, 1, n_timepoints) where all channels have one
        path.
    costs : ndarray of shape (n_series,)
        What each series adds to an inertia: its squared distance, or its distance where costs are
        not squared.
    distances : ndarray of shape (n_series,)
        Certified distance of each series and its average.
    """

    values: np.ndarray
    weights: np.ndarray
    costs: np.ndarray
    distances: np.ndarray

    def means(self, before: np.ndarray) -> np.ndarray:
        """Average what is matched with each point.

        Parameters
        ----------
        before : ndarray of shape (n_averages, n_channels, n_timepoints)
            The averages that series were aligned with.

        Returns
        -------
        ndarray of shape (n_averages, n_channels, n_timepoints)
            The means; a point that nothing is matched with is as before.
        """
        matched = self.weights > 0
        found: np.ndarray = np.where(
            matched, self.values / np.where(matched, self.weights, 1.0), before
        )
        return found


def alignment_of(
    series: Series, averages: Series, labels: np.ndarray, weights: np.ndarray, distance: Distance
) -> AlignmentSums:
    """Return the work that aligns series with averages.

    Parameters
    ----------
    series, averages : Series
        All series, and averages.
    labels : ndarray of shape (n_series,), int64
        The average of each series.
    weights : ndarray of shape (n_series,), float64
        Weight of each series.
    distance : Distance
        The distance.

    Returns
    -------
    AlignmentSums
        The work.

    Raises
    ------
    ValueError
        If the distance is not defined for series of these lengths.
    """
    _, _, warping = distance.sides(series, averages)
    derived = distance.entry.describe is not None
    return AlignmentSums(series, averages, labels, weights, warping, derived=derived)


def align(work: AlignmentSums, run: Callable[[Reduction], Any]) -> Alignment:
    """Align series with their averages, channel by channel where each has a path of its own.

    Parameters
    ----------
    work : AlignmentSums
        Series and averages.
    run : callable
        Computes a reduction.

    Returns
    -------
    Alignment
        What is matched.
    """
    parts = work.by_channel()
    found = [run(part) for part in parts]
    costs, distances = found[0].costs, parts[0].distances(found[0].costs)
    for part, sums in zip(parts[1:], found[1:], strict=True):
        distances = distances + part.distances(sums.costs)
    return Alignment(
        np.concatenate([sums.values for sums in found], axis=1),
        np.stack([sums.weights for sums in found], axis=1),
        costs if work.warping.squared else distances,
        distances,
    )


def terms(distances: np.ndarray, distance: Distance) -> np.ndarray:
    """Return the terms of an inertia: squared distances, or distances where costs are none.

    Parameters
    ----------
    distances : ndarray
        Distances.
    distance : Distance
        The distance.

    Returns
    -------
    ndarray
        Of the same shape.
    """
    return distances**2 if distance.warping.squared else distances
