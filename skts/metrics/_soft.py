"""Soft-DTW as functions: values, and the gradient by the points of a series."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from .._metrics import WINDOW
from .._parameters import checks_arguments
from .._scalars import takes_plain
from ..engines import SoftDTWGradient, SoftDTWMatrix, Warping, check_gamma, run
from ._arguments import WORK, check_pair, check_sets

__all__ = ["SoftGradient", "pairwise_soft_dtw", "soft_dtw", "soft_dtw_gradient"]

_ARGUMENTS: dict[str, list[Any]] = {
    "gamma": [Interval(Real, 1e-100, 1e100, closed="both")],
    "window": WINDOW,
    "engine": [str, None],
}


class SoftGradient(NamedTuple):
    """Soft-DTW of two series, and its derivatives.

    Attributes
    ----------
    value : float
        What `soft_dtw` returns.
    gradient : ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        Derivatives by the points of the first series.

    Examples
    --------
    >>> from skts.metrics import soft_dtw_gradient
    >>> value, gradient = soft_dtw_gradient([0, 1, 2], [0, 2, 2], gamma=0.5)
    >>> round(value, 3)
    0.384
    """

    value: float
    gradient: np.ndarray


@takes_plain
@checks_arguments(_ARGUMENTS)
def soft_dtw(
    x: ArrayLike,
    y: ArrayLike,
    *,
    gamma: float = 1.0,
    window: float | None = None,
    engine: str | None = None,
) -> float:
    """Compute soft-DTW of two series: dynamic time warping with a minimum that has derivatives.

    All warping paths count, each by how near its sum of squared costs is to the least one:
    ``-gamma * log(sum(exp(-cost / gamma)))``. The value is no distance: it is below the squared DTW
    distance, may be negative, and is not 0 for equal series.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    gamma : float, default 1.0
        Smoothing, in units of squared differences of points. As it goes to 0, the value goes to the
        square of `dtw`.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The value, in units of squared differences.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ; if `gamma` is so small beside the differences that float64 has no digits
        left.

    See Also
    --------
    soft_dtw_gradient : The value with its derivatives.
    pairwise_soft_dtw : All values of two sets.
    skts.averages.soft_dtw_barycenter : Averages under soft-DTW.

    Notes
    -----
    Engines return the same bits. Values are right to some units in the last place of the largest
    cost along the best path, or of `gamma`, whichever is larger.

    References
    ----------
    .. [1] Cuturi, Blondel. "Soft-DTW: a differentiable loss function for time-series". ICML 2017.

    Examples
    --------
    >>> from skts.metrics import dtw, soft_dtw
    >>> x, y = [0, 1, 2, 2], [0, 0, 1, 3]
    >>> round(soft_dtw(x, y), 4)
    -0.0474
    >>> round(soft_dtw(x, y, gamma=0.001), 4), round(dtw(x, y) ** 2, 4)
    (1.9993, 2.0)
    """
    left, right = check_pair(x, y)
    gamma = check_gamma(gamma, left, right)
    work = SoftDTWMatrix(left, right, gamma, Warping(window=window))
    return float(run(work, engine=engine, n_jobs=1)[0, 0])


@takes_plain
@checks_arguments(_ARGUMENTS)
def soft_dtw_gradient(
    x: ArrayLike,
    y: ArrayLike,
    *,
    gamma: float = 1.0,
    window: float | None = None,
    engine: str | None = None,
) -> SoftGradient:
    """Compute soft-DTW of two series and its derivatives by the points of the first one.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    gamma : float, default 1.0
        Smoothing, in units of squared differences of points.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    SoftGradient
        The value and the derivatives.

    Raises
    ------
    ValueError
        As by `soft_dtw`.
    MemoryBudgetError
        If the weights of all cells, 24 bytes each, are larger than the memory budget; on the CPU
        of those in the band.

    See Also
    --------
    soft_dtw : The value alone, in less time and memory.

    References
    ----------
    .. [1] Cuturi, Blondel. "Soft-DTW: a differentiable loss function for time-series". ICML 2017,
       algorithm 2.

    Examples
    --------
    >>> from skts.metrics import soft_dtw_gradient
    >>> found = soft_dtw_gradient([0, 1, 2, 2], [0, 0, 1, 3], gamma=0.1)
    >>> found.gradient.round(3)
    array([-0.,  0.,  0., -2.])
    """
    left, right = check_pair(x, y)
    gamma = check_gamma(gamma, left, right)
    work = SoftDTWGradient(right, left, np.ones(1), gamma, Warping(window=window))
    found = run(work, engine=engine, n_jobs=1)
    gradient = found.gradient
    return SoftGradient(float(found.values[0]), gradient[0] if np.ndim(x) == 1 else gradient)


@takes_plain
@checks_arguments(_ARGUMENTS | WORK)
def pairwise_soft_dtw(
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = None,
    *,
    gamma: float = 1.0,
    window: float | None = None,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Compute soft-DTW between all series of two sets, or within one.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_timepoints) or (n_samples_X, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    Y : array-like or None, default None
        A second set in one of these forms; None compares `X` with itself, each pair once.
    gamma : float, default 1.0
        Smoothing, in units of squared differences of points.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Values as `soft_dtw` returns them.

    Raises
    ------
    ValueError
        As by `soft_dtw`.
    MemoryBudgetError
        If the matrix is larger than the memory of the machine.

    Examples
    --------
    >>> from skts.metrics import pairwise_soft_dtw
    >>> pairwise_soft_dtw([[0, 1, 2], [0, 2, 2], [5, 5, 5]], gamma=0.5).round(3)
    array([[-0.251,  0.384, 50.   ],
           [ 0.384, -0.55 , 43.   ],
           [50.   , 43.   , -1.282]])
    """
    rows, cols = check_sets(X, Y)
    gamma = check_gamma(gamma, rows, cols)
    work = SoftDTWMatrix(rows, cols, gamma, Warping(window=window))
    return run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)
