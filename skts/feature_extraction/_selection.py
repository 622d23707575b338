"""Scores of shapelets by their distances to all training series."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..engines import Criterion

__all__ = ["SCORES", "Score", "f_statistic", "information_gain", "separation"]

#: Scores of shapelets, by their distances to all series (a row each) and the classes of these: two
#: arrays, of which the second decides where the first ones are equal.
Score = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def information_gain(
    distances: np.ndarray, labels: np.ndarray, normalized: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return gain of the best cut in nats, and its gap, as `ShapeletTreeClassifier` has them.

    Parameters
    ----------
    distances : ndarray of shape (n_candidates, n_series), float64
        Distances of candidates to all series.
    labels : ndarray of shape (n_series,), int64
        Class of each series.
    normalized : ndarray of shape (n_candidates,), bool
        Which distances are of normalised windows.

    Returns
    -------
    tuple of ndarray of shape (n_candidates,), float64
        The score, and what decides where it is equal.
    """
    criterion = Criterion(labels, np.ones(int(labels.max()) + 1))
    cuts = criterion.best_cuts(distances, normalized)
    return np.maximum(cuts.gain, 0) / criterion.unit, np.where(cuts.gain < 0, -np.inf, cuts.gap)


def f_statistic(
    distances: np.ndarray, labels: np.ndarray, normalized: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the statistic of an analysis of variance, 0 where there is none.

    Sums of squares are taken about means, so that classes that lie close together are told apart:
    `scipy.stats.f_oneway` subtracts sums of squares, which loses their digits.

    Parameters
    ----------
    distances : ndarray of shape (n_candidates, n_series), float64
        Distances of candidates to all series.
    labels : ndarray of shape (n_series,), int64
        Class of each series.
    normalized : ndarray of shape (n_candidates,), bool
        Which distances are of normalised windows.

    Returns
    -------
    tuple of ndarray of shape (n_candidates,), float64
        The score, and what decides where it is equal.
    """
    groups = np.unique(labels)
    found, none = np.zeros(len(distances)), np.zeros(len(distances))
    free = len(labels) - len(groups)
    if len(groups) < 2 or free == 0:
        return found, none
    between, within = np.zeros(len(distances)), np.zeros(len(distances))
    middle = distances.mean(axis=1)
    for one in groups:
        members = distances[:, labels == one]
        mean = members.mean(axis=1)
        between += members.shape[1] * np.square(mean - middle)
        within += np.square(members - mean[:, np.newaxis]).sum(axis=1)
    np.divide(between * free, within * (len(groups) - 1), out=found, where=within > 0)
    found[(within == 0) & (between > 0)] = np.inf
    return found, none


def separation(
    distances: np.ndarray, labels: np.ndarray, normalized: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest gap between near and far series, without labels: that of u-shapelets.

    Of all cuts of the ordered distances that leave two series or more on either side, the mean less
    the deviation beyond it, less the mean plus the deviation before it (Zakaria, Mueen, Keogh,
    "Clustering time series using unsupervised-shapelets", ICDM 2012, section III).

    Parameters
    ----------
    distances : ndarray of shape (n_candidates, n_series), float64
        Distances of candidates to all series.
    labels : ndarray of shape (n_series,), int64
        Class of each series.
    normalized : ndarray of shape (n_candidates,), bool
        Which distances are of normalised windows.

    Returns
    -------
    tuple of ndarray of shape (n_candidates,), float64
        The score, and what decides where it is equal.
    """
    n = distances.shape[1]
    none = np.zeros(len(distances))
    if n < 4:
        return none, none
    ordered = np.sort(distances, axis=1).T
    before, after = _running(ordered), _running(ordered[::-1])
    near, far = (one[:, 1 : n - 2] for one in before), (one[:, n - 3 : 0 : -1] for one in after)
    mean_near, deviation_near = near
    mean_far, deviation_far = far
    gaps = mean_far - deviation_far - mean_near - deviation_near
    return gaps.max(axis=1), none


def _running(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and deviations of the first 1, 2, ... of some rows, by Welford's recurrence."""
    means, deviations = np.empty(rows.T.shape), np.empty(rows.T.shape)
    mean, squares = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for k, row in enumerate(rows):
        away = row - mean
        mean = mean + away / (k + 1)
        squares += away * (row - mean)
        means[:, k], deviations[:, k] = mean, np.sqrt(squares / (k + 1))
    return means, deviations


#: By the name of a criterion; "separation" is for series without labels.
SCORES: dict[str, Score] = {
    "information_gain": information_gain,
    "f_statistic": f_statistic,
    "separation": separation,
}
