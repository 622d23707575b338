"""How many clusters: fits over a range of numbers, and what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from .._distance_rows import rows_of, silhouettes
from .._log import counted
from .._scalars import takes_plain
from ..engines import TIE
from ._dtw_kmeans import DTWKMeans
from ._dtw_kmedoids import DTWKMedoids
from ._kshape import KShapeClusterer

__all__ = ["ClusterChoice", "Clusterer", "choose_n_clusters", "distance_options"]

Clusterer = DTWKMeans | DTWKMedoids | KShapeClusterer


class ClusterChoice(NamedTuple):
    """Numbers of clusters that were tried, and the one that was chosen.

    Attributes
    ----------
    n_clusters : ndarray of shape (n_tried,), int64
        Numbers of clusters that were asked for, ascending.
    inertia : ndarray of shape (n_tried,)
        Inertia of each fit.
    silhouette : ndarray of shape (n_tried,)
        Mean silhouette of each; NaN where all series are in one cluster, or each in its own.
    best : int
        The number with the largest silhouette.
    estimator : estimator
        The fit with that number.

    Examples
    --------
    >>> from skts import DTWKMedoids
    >>> from skts.cluster import choose_n_clusters
    >>> X = [[0, 0, 1], [0, 1, 1], [5, 5, 5], [5, 5, 6]]
    >>> choose_n_clusters(DTWKMedoids(init="build"), X, [2, 3]).estimator.labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    n_clusters: np.ndarray
    inertia: np.ndarray
    silhouette: np.ndarray
    best: int
    estimator: Clusterer


@takes_plain
def choose_n_clusters(
    estimator: Clusterer,
    X: ArrayLike | list[ArrayLike],
    n_clusters: Iterable[int] = range(2, 11),
) -> ClusterChoice:
    """Fit a clusterer with several numbers of clusters, and choose the best by silhouettes.

    Parameters
    ----------
    estimator : DTWKMeans, DTWKMedoids or KShapeClusterer
        What to fit, with all its parameters; it is cloned and stays as it is.
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        Series; or a list of arrays of any lengths. For `DTWKMedoids` with ``metric="precomputed"``
        their distances, a square matrix.
    n_clusters : iterable of int, default range(2, 11)
        Numbers to try, 2 at least, and fewer than there are series.

    Returns
    -------
    n_clusters : ndarray of shape (n_tried,), int64
        The numbers, ascending, each once.
    inertia : ndarray of shape (n_tried,)
        Inertia of each fit. It falls with each cluster; behind the right number it falls slowly.
    silhouette : ndarray of shape (n_tried,)
        Mean silhouette of each, in the distance of the clusterer; NaN where a fit has found one
        cluster alone, or as many as there are series.
    best : int
        The number with the largest silhouette; of those within 1e-9 of it the least.
    estimator : estimator
        The fit with that number.

    Raises
    ------
    TypeError
        If the estimator is another one, or a number is no integer.
    ValueError
        If there is no number, or one is less than 2 or not less than the number of series, or one
        that a given `init` of the estimator does not fit; if no fit has a silhouette; and as `fit`
        of the estimator.

    See Also
    --------
    skts.metrics.silhouette_samples : The silhouette of each series.
    skts.plotting.ClusterChoiceDisplay : A picture of the record.

    Notes
    -----
    Distances of all pairs are computed once for the silhouettes of all fits, in parts where their
    matrix takes more than half of the memory budget.

    Examples
    --------
    >>> from skts import DTWKMeans
    >>> from skts.cluster import choose_n_clusters
    >>> from skts.datasets import make_warped_shapes
    >>> X, y = make_warped_shapes(30, 40, random_state=0)
    >>> X[y == 1] += 9
    >>> X[y == 2] -= 9
    >>> found = choose_n_clusters(DTWKMeans(window=0.2, n_init=3, random_state=0), X, range(2, 6))
    >>> found.best
    3
    """
    if not isinstance(estimator, Clusterer):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; DTWKMeans, DTWKMedoids or KShapeClusterer "
            "is needed here."
        )
    series = estimator._check_rows(X)
    numbers = _check_numbers(n_clusters, len(series))
    if (
        isinstance(estimator.init, Sized)
        and not isinstance(estimator.init, str)
        and any(k != len(estimator.init) for k in numbers)
    ):
        raise ValueError(
            f"n_clusters={numbers}: init of the estimator holds "
            f"{counted(len(estimator.init), 'cluster')}, and fits no other number."
        )
    fits = [clone(estimator).set_params(n_clusters=k).fit(X) for k in numbers]
    # a private copy, to which engines tie what they make of it
    rows = rows_of(
        series.freeze(),
        distance_options(estimator),
        estimator.engine,
        estimator.n_jobs,
        max(0, estimator.verbose - 1),
    )
    means = np.full(len(fits), np.nan)
    apart = [i for i, one in enumerate(fits) if 1 < one.labels_.max() + 1 < len(series)]
    if not apart:
        raise ValueError(
            "No fit has a silhouette: each has put all series into one cluster, or each into its "
            "own. Are they different?"
        )
    found = silhouettes(rows, [fits[i].labels_ for i in apart])
    means[apart] = [float(np.mean(one)) for one in found]
    best = int(np.flatnonzero(means >= np.nanmax(means) - TIE)[0])
    return ClusterChoice(
        np.array(numbers, np.int64),
        np.array([one.inertia_ for one in fits]),
        means,
        numbers[best],
        fits[best],
    )


def distance_options(estimator: Clusterer) -> dict[str, Any]:
    """Return the distance of a clusterer, with its options, as functions take them.

    Parameters
    ----------
    estimator : estimator
        A clusterer of this package; it need not be fitted.

    Returns
    -------
    dict
        Keyword arguments of `skts.metrics.silhouette_samples`: ``metric``, and those options that
        the clusterer has.
    """
    if isinstance(estimator, KShapeClusterer):
        return {"metric": "sbd", "metric_params": {"normalize": estimator.normalize}}
    names = ("metric", "metric_params", "cost", "window")
    given = estimator.get_params(deep=False)
    return {name: given[name] for name in names if name in given}


def _check_numbers(given: Iterable[int], n_samples: int) -> list[int]:
    """Numbers of clusters, ascending, each once."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"n_clusters={given!r} is no iterable of numbers of clusters.")
    numbers = list(given)
    for one in numbers:
        if isinstance(one, bool | np.bool_) or not isinstance(one, Integral):
            raise TypeError(f"n_clusters holds {one!r}, which is no integer.")
        if not 2 <= one < n_samples:
            raise ValueError(
                f"n_clusters holds {one}; silhouettes need from 2 to n_samples - 1 = "
                f"{n_samples - 1} clusters."
            )
    if not numbers:
        raise ValueError("n_clusters holds no number.")
    return sorted({int(one) for one in numbers})
