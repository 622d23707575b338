"""How well clusters are apart: silhouettes under the distances of the clusterers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Hidden, StrOptions

from .._distance_rows import rows_of, silhouettes
from .._metrics import COST, METRIC_PARAMS, METRICS, WINDOW
from .._parameters import checks_arguments
from .._scalars import takes_plain
from .._validation import check_series, one_label_each, refuse_mixed_types
from ._arguments import WORK

__all__ = ["silhouette_samples", "silhouette_score"]

_OPTIONS: dict[str, list[Any]] = {
    "window": WINDOW,
    "cost": COST,
    "engine": [str, None],
    # "precomputed" has a message of its own
    "metric": [StrOptions({*METRICS, "sbd"}), Hidden(StrOptions({"precomputed"}))],
    "metric_params": METRIC_PARAMS,
}


@takes_plain
@checks_arguments(_OPTIONS | WORK)
def silhouette_samples(
    X: ArrayLike | list[ArrayLike],
    labels: ArrayLike,
    *,
    metric: str = "dtw",
    metric_params: dict[str, Any] | None = None,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Compute the silhouette of each series, under any distance of this package.

    With a the mean distance of a series to the others of its cluster, and b the least mean distance
    to the series of another cluster, it is (b - a) / max(a, b): near 1 inside of a cluster that is
    far from the others, negative where another cluster is nearer. In a cluster of one series it
    is 0.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        Series; or a list of arrays of any lengths. NaN at the end is padding.
    labels : array-like of shape (n_samples,)
        Cluster of each series.
    metric : str, default "dtw"
        A name of `pairwise_distances`, or "sbd": that of the clusterer, which is "dtw" for
        `DTWKMeans`, and "sbd" for `KShapeClusterer`, for which all series are filled with zeros to
        the length of the longest.
    metric_params : dict or None, default None
        Parameters of the distance; of "sbd" it is ``normalize``, as in `sbd`. None takes their
        defaults.
    window : int, float or None, default None
        Sakoe-Chiba band, as in `pairwise_distances`. Not for "euclidean" and "sbd".
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, as in `pairwise_distances`. "sbd" takes no notice of a name. A
        function gets the points of the series whose silhouette it is first.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ndarray of shape (n_samples,)
        Silhouettes, from -1 to 1.

    Raises
    ------
    ValueError
        If there are fewer than 2 clusters, or as many as series; if there is not one label for each
        series, or one is missing; if options contradict each other; if a series holds infinity, or
        NaN before its last value.

    See Also
    --------
    silhouette_score : Their mean.
    skts.cluster.choose_n_clusters : The number of clusters with the largest.
    sklearn.metrics.silhouette_samples : The same for points, or for a matrix of distances.

    Notes
    -----
    Exact: all pairs are compared. The matrix of distances is computed once where it takes no more
    than half of the memory budget, else a part of its rows at a time. The same bits come out, but
    for "sbd", whose distances may differ in their last bits, as they do between engines.

    References
    ----------
    .. [1] Rousseeuw. "Silhouettes: a graphical aid to the interpretation and validation of cluster
       analysis". Journal of Computational and Applied Mathematics 20, 1987.

    Examples
    --------
    >>> from skts.metrics import silhouette_samples
    >>> X = [[0, 0, 1], [0, 1, 1], [5, 5, 5], [5, 5, 6]]
    >>> silhouette_samples(X, [0, 0, 1, 1]).round(2)
    array([1.  , 1.  , 0.87, 0.88])
    """
    distance = {"metric": metric, "metric_params": metric_params, "window": window, "cost": cost}
    return _silhouettes(X, labels, distance, engine, n_jobs, verbose)


@takes_plain
@checks_arguments(_OPTIONS | WORK)
def silhouette_score(
    X: ArrayLike | list[ArrayLike],
    labels: ArrayLike,
    *,
    metric: str = "dtw",
    metric_params: dict[str, Any] | None = None,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> float:
    """Compute the mean silhouette of all series, under any distance of this package.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        Series; or a list of arrays of any lengths. NaN at the end is padding.
    labels : array-like of shape (n_samples,)
        Cluster of each series.
    metric : str, default "dtw"
        A name of `pairwise_distances`, or "sbd"; see `silhouette_samples`.
    metric_params : dict or None, default None
        Parameters of the distance; None takes their defaults.
    window : int, float or None, default None
        Sakoe-Chiba band, as in `pairwise_distances`. Not for "euclidean" and "sbd".
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, see `silhouette_samples`.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    float
        The mean, from -1 to 1; the larger, the better the clusters are apart.

    Raises
    ------
    ValueError
        As `silhouette_samples`.

    See Also
    --------
    silhouette_samples : The silhouette of each series.

    Examples
    --------
    >>> from skts.metrics import silhouette_score
    >>> X = [[0, 0, 1], [0, 1, 1], [5, 5, 5], [5, 5, 6]]
    >>> round(silhouette_score(X, [0, 0, 1, 1]), 2)
    0.94
    """
    distance = {"metric": metric, "metric_params": metric_params, "window": window, "cost": cost}
    return float(np.mean(_silhouettes(X, labels, distance, engine, n_jobs, verbose)))


def _silhouettes(
    X: ArrayLike | list[ArrayLike],
    labels: ArrayLike,
    distance: dict[str, Any],
    engine: str | None,
    n_jobs: int | None,
    verbose: int,
) -> np.ndarray:
    """The silhouette of each series, under a distance with its options."""
    if distance["metric"] == "precomputed":
        raise ValueError(
            "metric='precomputed': X are series here. For a matrix of distances take "
            "sklearn.metrics.silhouette_score or silhouette_samples, with the same arguments."
        )
    series = check_series(X)
    codes = _check_labels(labels, len(series))
    return silhouettes(rows_of(series, distance, engine, n_jobs, verbose), [codes])[0]


def _check_labels(labels: ArrayLike, n_samples: int) -> np.ndarray:
    """Labels from 0 on."""
    given = np.asarray(one_label_each(labels, "labels"))
    if given.ndim != 1 and given.shape != (n_samples, 1):
        raise ValueError(
            f"labels has shape {given.shape}; one label for each of the {n_samples} series is "
            "needed here."
        )
    given = column_or_1d(given)
    refuse_mixed_types(given, "labels")
    assert_all_finite(given, input_name="labels")
    if given.size != n_samples:
        check_consistent_length(np.empty(n_samples), given)
    codes: np.ndarray = LabelEncoder().fit_transform(given)
    found = int(codes.max()) + 1
    if not 2 <= found < n_samples:
        raise ValueError(
            f"Number of labels is {found}. Valid values are 2 to n_samples - 1 (inclusive)"
        )
    return codes
