"""Distances under warping as functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from .._metrics import NAMED_COST, distance_of
from .._parameters import checks_arguments
from .._scalars import takes_plain
from ..engines import DTWMatrix, DTWPath, Warping, run
from ._arguments import DISTANCE, WARPING, WORK, check_pair, check_sets

__all__ = ["dog_keeper", "dtw", "dtw_path", "lb_keogh", "pairwise_dtw"]

# of a function no bound is known
_BOUND = {name: WARPING[name] for name in ("metric", "window")} | {"cost": NAMED_COST}


@takes_plain
@checks_arguments(DISTANCE)
def dtw(
    x: ArrayLike,
    y: ArrayLike,
    *,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    alignment: str = "global",
    engine: str | None = None,
) -> float:
    """Compute the dynamic time warping distance of two series.

    The sum of costs along a warping path, minimised over all paths. A path matches the first points
    of both series, the last points of both, and never steps back. For squared costs the distance is
    the square root of that sum, for absolute costs the sum itself.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence: the largest distance in time between two
        matched points. An int counts points; a float is a fraction of the longer series, rounded
        up. The band is widened to the difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. It may be a function of two points in a
        channel, or a `PointCost`; then no root is taken.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        "global" matches both series in full, "subsequence" matches `x` with a contiguous part of
        `y`, "supersequence" matches `y` with a contiguous part of `x`. The last two take no window.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance, in the units of the data.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option is unknown or contradicts another.

    See Also
    --------
    dog_keeper : The largest cost of a path instead of the sum.
    dtw_path : The path along with the distance.
    pairwise_dtw : All distances between two sets.

    References
    ----------
    .. [1] Bachmann, Trogant, Freytag. "GPU-beschleunigte Time-Warping-Distanzen", sections 2, 3.2.

    Examples
    --------
    >>> from skts.metrics import dtw
    >>> dtw([0, 1, 2, 2], [0, 0, 1, 2])
    0.0
    >>> dtw([0, 0], [3, 4])
    5.0
    >>> dtw([0, 0], [3, 4], cost="absolute")
    7.0
    >>> dtw([1, 2], [9, 1, 2, 9], alignment="subsequence")
    0.0
    """
    return _distance(x, y, _warping("dtw", cost, window, alignment), engine)


@takes_plain
@checks_arguments(DISTANCE)
def dog_keeper(
    x: ArrayLike,
    y: ArrayLike,
    *,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    alignment: str = "global",
    engine: str | None = None,
) -> float:
    """Compute the dog-keeper (discrete Frechet) distance of two series.

    The largest cost along a warping path, minimised over all paths: the length of the shortest
    leash with which a keeper and a dog can walk along the two series. For squared costs the
    distance is the square root. Without a window, and if both series are matched in full, it obeys
    the triangle inequality; repeated points cost nothing.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence: the largest distance in time between two
        matched points. An int counts points; a float is a fraction of the longer series, rounded
        up. The band is widened to the difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. It may be a function of two points in a
        channel, or a `PointCost`; then no root is taken.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        "global" matches both series in full, "subsequence" matches `x` with a contiguous part of
        `y`, "supersequence" matches `y` with a contiguous part of `x`. The last two take no window.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance, in the units of the data.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option is unknown or contradicts another.

    See Also
    --------
    dtw : The sum of costs.

    References
    ----------
    .. [1] Bachmann, Trogant, Freytag. "GPU-beschleunigte Time-Warping-Distanzen", section 2.

    Examples
    --------
    >>> from skts.metrics import dog_keeper
    >>> dog_keeper([0, 1, 5, 5, 5], [0, 1, 2, 5])
    1.0
    """
    return _distance(x, y, _warping("dog_keeper", cost, window, alignment), engine)


@takes_plain
@checks_arguments(WARPING)
def dtw_path(
    x: ArrayLike,
    y: ArrayLike,
    *,
    metric: str = "dtw",
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    alignment: str = "global",
    engine: str | None = None,
) -> tuple[np.ndarray, float]:
    """Find the best warping path of two series, and the distance along it.

    Of several best paths it returns the one that ends first. Followed backwards from its end, that
    path takes the diagonal step where it can, otherwise a step back in `x`.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    metric : {"dtw", "dog_keeper"}, default "dtw"
        "dtw" adds the costs along a warping path, "dog_keeper" takes the largest of them.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence: the largest distance in time between two
        matched points. An int counts points; a float is a fraction of the longer series, rounded
        up. The band is widened to the difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. It may be a function of two points in a
        channel, or a `PointCost`; then no root is taken.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        "global" matches both series in full, "subsequence" matches `x` with a contiguous part of
        `y`, "supersequence" matches `y` with a contiguous part of `x`. The last two take no window.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    path : ndarray of shape (n_steps, 2), int64
        Matched time points of `x` and `y`, in order.
    distance : float
        As `dtw` or `dog_keeper` returns it.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option is unknown or contradicts another.

    Notes
    -----
    Memory grows with n_y sqrt(n_x), not with n_x n_y: some rows of the matrix are kept, and those
    between them are computed twice.

    Examples
    --------
    >>> from skts.metrics import dtw_path
    >>> path, distance = dtw_path([0, 1, 2, 2], [0, 0, 1, 2])
    >>> path.tolist()
    [[0, 0], [0, 1], [1, 2], [2, 3], [3, 3]]
    >>> distance
    0.0
    """
    left, right = check_pair(x, y)
    warping = _warping(metric, cost, window, alignment)
    path, distance = run(DTWPath(left, right, warping), engine=engine, n_jobs=1)
    return path, distance


@takes_plain
@checks_arguments(WARPING | WORK)
def pairwise_dtw(
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = None,
    *,
    metric: str = "dtw",
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    alignment: str = "global",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Compute distances under warping between all series of two sets, or within one.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_timepoints) or (n_samples_X, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    Y : array-like or None, default None
        A second set in one of these forms; None compares `X` with itself, each pair once.
    metric : {"dtw", "dog_keeper"}, default "dtw"
        "dtw" adds the costs along a warping path, "dog_keeper" takes the largest of them.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence: the largest distance in time between two
        matched points. An int counts points; a float is a fraction of the longer series, rounded
        up. The band is widened to the difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. It may be a function of two points in a
        channel, or a `PointCost`; then no root is taken.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        "global" matches both series in full, "subsequence" matches a series of `X` with a
        contiguous part of one of `Y`, "supersequence" one of `Y` with a contiguous part of one of
        `X`. The last two take no window.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Distances as `dtw` and `dog_keeper` return them, computed in float64.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option is unknown or contradicts another.
    MemoryBudgetError
        If the matrix is larger than the memory of the machine.

    Examples
    --------
    >>> from skts.metrics import pairwise_dtw
    >>> pairwise_dtw([[0, 1, 2], [0, 2, 2], [5, 5, 5]])
    array([[0.        , 1.        , 7.07106781],
           [1.        , 0.        , 6.55743852],
           [7.07106781, 6.55743852, 0.        ]])
    """
    warping = _warping(metric, cost, window, alignment)
    rows, cols = check_sets(X, Y)
    return run(DTWMatrix(rows, cols, warping), engine=engine, n_jobs=n_jobs, verbose=verbose)


@takes_plain
@checks_arguments(_BOUND)
def lb_keogh(
    x: ArrayLike,
    y: ArrayLike,
    *,
    metric: str = "dtw",
    window: float | None = None,
    cost: str = "squared",
) -> float:
    """Bound the distance of two series from below, by how far `x` leaves the envelope of `y`.

    Point i of `x` can only be matched with points of `y` in the band, so it costs at least its
    distance from the range of those. Call it both ways and take the larger value.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    metric : {"dtw", "dog_keeper"}, default "dtw"
        Which distance to bound.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence: the largest distance in time between two
        matched points. An int counts points; a float is a fraction of the longer series, rounded
        up. The band is widened to the difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"}, default "squared"
        Cost of matching two points, summed over channels.

    Returns
    -------
    float
        At most the distance, up to rounding.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option is unknown or contradicts another.

    References
    ----------
    .. [1] Keogh, Ratanamahatana. "Exact indexing of dynamic time warping". Knowledge and
       Information Systems 7, 2005.

    Examples
    --------
    >>> from skts.metrics import dtw, lb_keogh
    >>> lb_keogh([0, 3, 0], [0, 1, 0], window=1), dtw([0, 3, 0], [0, 1, 0], window=1)
    (2.0, 2.0)
    """
    left, right = check_pair(x, y)
    warping = Warping(metric, cost, window)
    n, m = left.n_timepoints, right.n_timepoints
    radius = int(warping.radius(n, m))
    low, high = (
        _slide(right.values[0], n, radius, best, missing)
        for best, missing in ((minimum_filter1d, np.inf), (maximum_filter1d, -np.inf))
    )
    points = left.values[0]
    outside = np.maximum(np.maximum(points - high, low - points), 0.0)
    costs = (outside**2 if warping.squared else outside).sum(axis=0)
    return float(warping.distance(costs.max() if warping.largest else costs.sum()))


def _slide(
    points: np.ndarray, n: int, radius: int, best: Callable[..., np.ndarray], missing: float
) -> np.ndarray:
    """Least or largest of the points within `radius` of each of n positions."""
    padded = np.full((len(points), max(n, points.shape[1])), missing)
    padded[:, : points.shape[1]] = points
    size = 2 * min(radius, padded.shape[1]) + 1
    return best(padded, size, axis=1, mode="constant", cval=missing)[:, :n]


def _warping(
    metric: str,
    cost: str | Callable[[float, float], float],
    window: float | None,
    alignment: str,
) -> Warping:
    return distance_of(metric, cost=cost, window=window, alignment=alignment).warping


def _distance(x: ArrayLike, y: ArrayLike, warping: Warping, engine: str | None) -> float:
    left, right = check_pair(x, y)
    return float(run(DTWMatrix(left, right, warping), engine=engine, n_jobs=1)[0, 0])
