"""Elastic distances beside dynamic time warping, as functions."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from .._metrics import COST, NAMED_COST, WINDOW, distance_of
from .._parameters import checks_arguments
from .._scalars import takes_plain
from ..engines import DTWMatrix, run
from ._arguments import check_pair

__all__ = ["adtw", "ddtw", "edr", "erp", "lcss", "msm", "shape_dtw", "twe", "wdtw"]

_NOT_NEGATIVE: list[Any] = [Interval(Real, 0, None, closed="left")]
_WITHOUT_COST: dict[str, list[Any]] = {"window": WINDOW, "engine": [str, None]}
_WITH_COST = _WITHOUT_COST | {"cost": NAMED_COST}


def _distance(x: ArrayLike, y: ArrayLike, engine: str | None, metric: str, **options: Any) -> float:
    left, right, warping = distance_of(metric, **options).sides(*check_pair(x, y))
    return float(run(DTWMatrix(left, right, warping), engine=engine, n_jobs=1)[0, 0])


@takes_plain
@checks_arguments(_WITHOUT_COST | {"gap": [Interval(Real, None, None, closed="neither")]})
def erp(
    x: ArrayLike,
    y: ArrayLike,
    *,
    gap: float = 0.0,
    window: float | None = None,
    engine: str | None = None,
) -> float:
    """Compute the edit distance with real penalty of two series.

    Points are matched at the price of their difference, summed over channels, or left out at the
    price of their difference from `gap`. A metric.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    gap : float, default 0
        The value to which points are compared that are left out, in every channel.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Chen, Ng. "On the marriage of Lp-norms and edit distance". International Conference on
       Very Large Data Bases, 2004.

    Examples
    --------
    >>> from skts.metrics import erp
    >>> erp([1, 2, 3], [1, 3])
    2.0
    """
    return _distance(x, y, engine, "erp", metric_params={"gap": gap}, window=window)


@takes_plain
@checks_arguments(_WITHOUT_COST | {"epsilon": _NOT_NEGATIVE})
def lcss(
    x: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float = 1.0,
    window: float | None = None,
    engine: str | None = None,
) -> float:
    """Compute one less the share of the longest common subsequence of two series.

    Points match that differ by at most `epsilon` in every channel. The largest number of points
    that match in order, as a share of the shorter series, is taken from 1.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    epsilon : float, default 1
        Largest difference of two points that match.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Vlachos, Kollios, Gunopulos. "Discovering similar multidimensional trajectories". IEEE
       International Conference on Data Engineering, 2002.

    Examples
    --------
    >>> from skts.metrics import lcss
    >>> lcss([0, 5, 1, 2], [0, 1, 2, 9], epsilon=0.5)
    0.25
    """
    return _distance(x, y, engine, "lcss", metric_params={"epsilon": epsilon}, window=window)


@takes_plain
@checks_arguments(_WITHOUT_COST | {"epsilon": [*_NOT_NEGATIVE, None]})
def edr(
    x: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float | None = None,
    window: float | None = None,
    engine: str | None = None,
) -> float:
    """Compute the edit distance on real sequences of two series.

    Points match that differ by at most `epsilon` in every channel. The least number of points that
    are to be replaced, inserted, or deleted, as a share of the longer series. A path may begin with
    insertions, as in the paper; in aeon the first of them cost nothing.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    epsilon : float or None, default None
        Largest difference of two points that match; None is a quarter of the larger of the two
        standard deviations.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Chen, Ozsu, Oria. "Robust and fast similarity search for moving object trajectories".
       ACM SIGMOD International Conference on Management of Data, 2005.

    Examples
    --------
    >>> from skts.metrics import edr
    >>> edr([0, 5, 1, 2], [0, 1, 2, 2], epsilon=0.5)
    0.5
    """
    return _distance(x, y, engine, "edr", metric_params={"epsilon": epsilon}, window=window)


@takes_plain
@checks_arguments(_WITHOUT_COST | {"penalty": _NOT_NEGATIVE})
def msm(
    x: ArrayLike,
    y: ArrayLike,
    *,
    penalty: float = 1.0,
    window: float | None = None,
    engine: str | None = None,
) -> float:
    """Compute the move-split-merge distance of two series.

    One series is turned into the other by moves, at the price of the difference, and by points that
    are split in two or merged, at the price of `penalty` and of how far the new point lies outside
    of its neighbours. A metric. The distance of series of several channels is the sum of those of
    their channels.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    penalty : float, default 1
        Price of a split or a merge.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Stefan, Athitsos, Das. "The move-split-merge metric for time series". IEEE Transactions
       on Knowledge and Data Engineering 25, 2013.

    Examples
    --------
    >>> from skts.metrics import msm
    >>> msm([1, 1, 3], [1, 3], penalty=0.5)
    0.5
    """
    return _distance(x, y, engine, "msm", metric_params={"penalty": penalty}, window=window)


@takes_plain
@checks_arguments(_WITHOUT_COST | {"nu": _NOT_NEGATIVE, "lmbda": _NOT_NEGATIVE})
def twe(
    x: ArrayLike,
    y: ArrayLike,
    *,
    nu: float = 0.001,
    lmbda: float = 1.0,
    window: float | None = None,
    engine: str | None = None,
) -> float:
    """Compute the time warp edit distance of two series.

    Points are matched together with those before them, at the price of both differences and of
    `nu` for each point of difference in time, or deleted, at the price of the difference from the
    point before, of `nu`, and of `lmbda`. A metric where `nu` is not 0.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    nu : float, default 0.001
        Stiffness: the price of a difference in time of one point.
    lmbda : float, default 1
        Price of a deletion.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Marteau. "Time warp edit distance with stiffness adjustment for time series matching".
       IEEE Transactions on Pattern Analysis and Machine Intelligence 31, 2009.

    Examples
    --------
    >>> from skts.metrics import twe
    >>> twe([1, 1, 3], [1, 3], nu=0.0, lmbda=0.5)
    0.5
    """
    return _distance(x, y, engine, "twe", metric_params={"nu": nu, "lmbda": lmbda}, window=window)


@takes_plain
@checks_arguments(_WITH_COST | {"g": _NOT_NEGATIVE})
def wdtw(
    x: ArrayLike,
    y: ArrayLike,
    *,
    g: float = 0.05,
    window: float | None = None,
    cost: str = "squared",
    engine: str | None = None,
) -> float:
    """Compute the weighted dynamic time warping distance of two series.

    Costs have weights, which grow with how far apart in time two points are: a difference in time
    of k points has the weight 1 / (1 + exp(-g (k - n / 2))), n the length of the longer series.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    g : float, default 0.05
        How steeply weights grow; with 0 all are 1/2.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"}, default "squared"
        Cost of matching two points, summed over channels. The distance is the square root of
        accumulated squared costs, or the accumulated absolute costs.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Jeong, Jeong, Omitaomu. "Weighted dynamic time warping for time series classification".
       Pattern Recognition 44, 2011.

    Examples
    --------
    >>> from skts.metrics import wdtw
    >>> wdtw([0, 1, 1], [0, 0, 1], g=0.0)
    0.0
    >>> wdtw([0, 0], [2, 2], g=0.0)
    2.0
    """
    return _distance(x, y, engine, "wdtw", metric_params={"g": g}, window=window, cost=cost)


@takes_plain
@checks_arguments(_WITH_COST | {"penalty": _NOT_NEGATIVE})
def adtw(
    x: ArrayLike,
    y: ArrayLike,
    *,
    penalty: float = 1.0,
    window: float | None = None,
    cost: str = "squared",
    engine: str | None = None,
) -> float:
    """Compute the amerced dynamic time warping distance of two series.

    Each step of a warping path but the diagonal one costs `penalty` more.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    penalty : float, default 1
        In units of costs: of squared differences where `cost` is "squared".
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"}, default "squared"
        Cost of matching two points, summed over channels. The distance is the square root of
        accumulated squared costs, or the accumulated absolute costs.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    References
    ----------
    .. [1] Herrmann, Webb. "Amercing: an intuitive and effective constraint for dynamic time
       warping". Pattern Recognition 137, 2023.

    Examples
    --------
    >>> from skts.metrics import adtw
    >>> adtw([0, 1, 1, 2], [0, 1, 2, 2], penalty=0.5)
    1.0
    """
    return _distance(
        x, y, engine, "adtw", metric_params={"penalty": penalty}, window=window, cost=cost
    )


@takes_plain
@checks_arguments(_WITHOUT_COST | {"cost": COST})
def ddtw(
    x: ArrayLike,
    y: ArrayLike,
    *,
    window: float | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    engine: str | None = None,
) -> float:
    """Compute the derivative dynamic time warping distance of two series.

    The dynamic time warping distance of the derivatives, which are estimated at all points but the
    first and the last: half of the step from the point before and of the slope between the points
    on either side.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. The distance is the square root of
        accumulated squared costs, or the accumulated absolute costs. It may be a function of two
        derivatives in a channel, or a `PointCost`; then no root is taken.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    Notes
    -----
    A series of n points has n - 2 derivatives, and a fraction as `window` is one of these.

    References
    ----------
    .. [1] Keogh, Pazzani. "Derivative dynamic time warping". SIAM International Conference on Data
       Mining, 2001.

    Examples
    --------
    >>> from skts.metrics import ddtw
    >>> ddtw([0, 1, 2, 3], [5, 6, 7, 8])
    0.0
    """
    return _distance(x, y, engine, "ddtw", window=window, cost=cost)


@takes_plain
@checks_arguments(_WITH_COST | {"reach": [Interval(Integral, 0, None, closed="left")]})
def shape_dtw(
    x: ArrayLike,
    y: ArrayLike,
    *,
    reach: int = 15,
    window: float | None = None,
    cost: str = "squared",
    engine: str | None = None,
) -> float:
    """Compute the shape dynamic time warping distance of two series.

    Points are matched whose surroundings are alike: the warping path is the best one between
    descriptors, for each point the part of its series from `reach` points before to `reach` points
    after it, with the first and the last point repeated beyond the ends. The distance adds up,
    along this path, what the points themselves differ by.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    reach : int, default 15
        Points of a descriptor before, and after, its own. With 0 this is `dtw`.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    cost : {"squared", "absolute"}, default "squared"
        Cost of matching two points, or two descriptors, summed over channels. The distance is the
        square root of accumulated squared costs, or the accumulated absolute costs.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if an option has a value that it may not have.
    MemoryBudgetError
        If the descriptors do not fit in memory.

    See Also
    --------
    pairwise_distances : All distances between two sets.
    warping_path : The points that are matched.

    Notes
    -----
    Of several best paths one is taken as `warping_path` says, with the shorter series in the place
    of `x`; of two of the same length, the one that is less where they first differ. So the distance
    has no direction.

    References
    ----------
    .. [1] Zhao, Itti. "shapeDTW: shape dynamic time warping". Pattern Recognition 74, 2018.

    Examples
    --------
    >>> from skts.metrics import dtw, shape_dtw
    >>> x, y = [0, 3, 0, 0, 1, 0], [0, 0, 3, 0, 0, 1]
    >>> shape_dtw(x, y, reach=1, cost="absolute"), dtw(x, y, cost="absolute")
    (1.0, 1.0)
    """
    return _distance(
        x, y, engine, "shape_dtw", metric_params={"reach": reach}, window=window, cost=cost
    )
