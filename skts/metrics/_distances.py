"""Matrices and paths of any distance that has a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._metrics import METRIC, METRIC_PARAMS, distance_of
from .._parameters import checks_arguments
from .._scalars import takes_plain
from ..engines import DTWMatrix, DTWPath, run
from ._arguments import WARPING, WORK, check_pair, check_sets

__all__ = ["pairwise_distances", "warping_path"]

_NAMED = WARPING | {
    "metric": METRIC,
    "metric_params": METRIC_PARAMS,
}


@takes_plain
@checks_arguments(_NAMED | WORK)
def pairwise_distances(
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = None,
    *,
    metric: str = "dtw",
    metric_params: dict[str, Any] | None = None,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    alignment: str = "global",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Compute distances between all series of two sets, or within one.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_timepoints) or (n_samples_X, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    Y : array-like or None, default None
        A second set in one of these forms; None compares `X` with itself, each pair once.
    metric : str, default "dtw"
        A distance by its name, see the notes.
    metric_params : dict or None, default None
        Parameters of the distance, those of the function of its name; None takes their defaults.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit. Not for "euclidean".
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels, for "dtw", "dog_keeper", "euclidean",
        "ddtw", "wdtw", "adtw" and "shape_dtw". The others have prices of their own, and take no
        notice. For the first four it may be a function of two points in a channel, or a
        `PointCost`; then no root is taken.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        As in `pairwise_dtw`, for "dtw", "dog_keeper" and "ddtw"; others match series in full.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Distances, computed in float64.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option is unknown or contradicts another; if series have lengths for
        which the distance is not defined.
    MemoryBudgetError
        If the matrix is larger than the memory of the machine.

    See Also
    --------
    pairwise_dtw : The same of dynamic time warping and the dog-keeper distance.
    PointCost : A cost of your own.

    Notes
    -----
    Names, and the parameters that `metric_params` may have: "dtw", "dog_keeper" and its other name
    "frechet" (the discrete Frechet distance), "euclidean" (series of one length), "ddtw", "wdtw"
    (``g``), "adtw" (``penalty``), "shape_dtw" (``reach``), "erp" (``gap``), "edr" (``epsilon``),
    "lcss" (``epsilon``), "msm" (``penalty``), "twe" (``nu``, ``lmbda``).

    Examples
    --------
    >>> from skts.metrics import pairwise_distances
    >>> X = [[0, 1, 2], [0, 2, 2], [5, 5, 5]]
    >>> pairwise_distances(X, metric="msm", metric_params={"penalty": 0.5})
    array([[0., 1., 7.],
           [1., 0., 7.],
           [7., 7., 0.]])
    """
    distance = distance_of(metric, metric_params, cost=cost, window=window, alignment=alignment)
    rows, cols = check_sets(X, Y)
    work = DTWMatrix(*distance.sides(rows, cols))
    return run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)


@takes_plain
@checks_arguments(_NAMED)
def warping_path(
    x: ArrayLike,
    y: ArrayLike,
    *,
    metric: str = "dtw",
    metric_params: dict[str, Any] | None = None,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    alignment: str = "global",
    engine: str | None = None,
) -> tuple[np.ndarray, float]:
    """Find the best warping path of two series, and the distance along it.

    Of several best paths it returns the one that ends first. Followed backwards from its end, that
    path takes the diagonal step where it can, otherwise a step back in `x`. Under "erp", "edr" and
    "lcss" points may be left out: the path holds those that are matched with each other, or, under
    "edr", replaced. Under "ddtw" it counts from the second point of each series, the first that has
    a derivative. Under "shape_dtw" the rule for several best paths takes the shorter series in the
    place of `x`, of two of the same length the one that is less where they first differ.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    metric : str, default "dtw"
        A distance by its name, see `pairwise_distances`.
    metric_params : dict or None, default None
        Parameters of the distance; None takes their defaults.
    window : int, float or None, default None
        Sakoe-Chiba band, see `pairwise_distances`.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, see `pairwise_distances`.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        As in `dtw_path`, for "dtw", "dog_keeper" and "ddtw".
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    path : ndarray of shape (n_steps, 2), int64
        Matched time points of `x` and `y`, in order.
    distance : float
        The distance.

    Raises
    ------
    ValueError
        As in `pairwise_distances`; for "msm" also for several channels, each of which has a path of
        its own.

    Examples
    --------
    >>> from skts.metrics import warping_path
    >>> path, distance = warping_path(
    ...     [0, 5, 1, 2], [0, 1, 2, 9], metric="lcss", metric_params={"epsilon": 0.5}
    ... )
    >>> path.tolist(), distance
    ([[0, 0], [2, 1], [3, 2]], 0.25)
    """
    distance = distance_of(metric, metric_params, cost=cost, window=window, alignment=alignment)
    found = run(DTWPath(*distance.sides(*check_pair(x, y))), engine=engine, n_jobs=1)
    return found.path, found.distance
