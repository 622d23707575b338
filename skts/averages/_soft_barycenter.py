"""The average of a set of series under soft-DTW, by its gradient."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from .._log import tell
from .._metrics import distance_of
from .._parameters import checks_arguments, warn_user
from .._scalars import takes_plain
from .._validation import check_series, check_weights, is_3d
from ..engines import (
    Engine,
    Series,
    SoftDTWGradient,
    Warping,
    check_gamma,
    get_engine,
    points_in_reach,
    run,
)
from ._barycenter import ARGUMENTS, Barycenter, start_of

__all__ = ["soft_dtw_barycenter"]


@takes_plain
@checks_arguments(ARGUMENTS | {"gamma": [Interval(Real, 1e-100, 1e100, closed="both")]})
def soft_dtw_barycenter(
    X: ArrayLike | list[ArrayLike],
    *,
    gamma: float = 1.0,
    init: Literal["mean", "medoid"] | ArrayLike = "mean",
    window: float | None = None,
    weights: ArrayLike | None = None,
    max_iter: int = 100,
    tol: float = 1e-5,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Barycenter:
    """Average series under soft-DTW, whose derivatives lead to the average.

    The sum of the soft-DTW values of all series and the average is minimised by L-BFGS, from SciPy.
    Averages are smoother than those of `dtw_barycenter`, the more so the larger `gamma` is.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    gamma : float, default 1.0
        Smoothing, in units of squared differences of points.
    init : {"mean", "medoid"} or array-like, default "mean"
        Where to start, as in `dtw_barycenter`. The average has as many points as the start.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    weights : array-like of shape (n_samples,) or None, default None
        Weight of each series; None is 1.
    max_iter : int, default 100
        Iterations at most.
    tol : float, default 1e-5
        Ends when an iteration lowers the sum by no more than this share of it, or when no
        derivative, with the weights and the data scaled to about 1, is larger.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 reports the sum at each point that is tried, 2 also shows progress bars.

    Returns
    -------
    Barycenter
        The average, the sum of soft-DTW values by weight as `inertia`, and the number of
        iterations.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if numbers of
        channels differ; if a weight is negative, or all are zero; if `gamma` is so small beside the
        differences that float64 has no digits left.

    Warns
    -----
    ConvergenceWarning
        When `max_iter` is reached before `tol`.

    See Also
    --------
    dtw_barycenter : Averages under DTW itself.
    skts.metrics.soft_dtw : The value of two series.

    Notes
    -----
    Values and derivatives have the same bits on all engines, so that the averages have, too.

    References
    ----------
    .. [1] Cuturi, Blondel. "Soft-DTW: a differentiable loss function for time-series". ICML 2017.

    Examples
    --------
    >>> from skts.averages import soft_dtw_barycenter
    >>> X = [[0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 3, 0]]
    >>> found = soft_dtw_barycenter(X, gamma=0.1, init=X[0])
    >>> found.average.round(1)
    array([0., 0., 3., 0., 0., 0.])
    """
    series = check_series(X)
    shares = check_weights(weights, len(series), input_name="weights")
    # a power of two, as the data's below: the search sees neither
    exponent = int(np.frexp(shares.max())[1])
    shares = np.ldexp(shares, -exponent)
    warping = Warping(window=window)
    start = start_of(init, series, shares, distance_of("dtw", window=window), engine, n_jobs)
    gamma = check_gamma(gamma, series, start)
    # the first step of the search is of length 1: a sixteenth of the range of the data, or less
    power = _power(series, start, gamma)
    scaled, first = (Series(np.ldexp(one.values, -power), one.lengths) for one in (series, start))
    work = SoftDTWGradient(scaled, first, shares, float(np.ldexp(gamma, -2 * power)), warping)
    found = _search(work, max_iter, tol, get_engine(engine, work), n_jobs, verbose)
    average = np.ldexp(found.x.reshape(start.shape[1:]), power)
    inertia = float(np.ldexp(found.fun, 2 * power + exponent))
    flat = series.n_channels == 1 and not is_3d(X)
    return Barycenter(average[0] if flat else average, inertia, int(found.nit))


def _power(series: Series, start: Series, gamma: float) -> int:
    """The power of two that data are divided by: the largest distance of two points becomes 16."""
    low, high = map(np.array, zip(series.extent, start.extent, strict=True))
    power = int(np.frexp(high.max() - low.min())[1]) - 4
    # gamma over its square stays in the range of float64
    return max(power, (int(np.frexp(gamma)[1]) - 900) // 2)


def _search(
    work: SoftDTWGradient,
    max_iter: int,
    tol: float,
    engine: Engine,
    n_jobs: int | None,
    verbose: int,
) -> Any:
    """Minimise the sum of some work by the points of its average; return what SciPy does."""
    low, high = points_in_reach(work.series, work.average, work.gamma)

    def value_and_slope(points: np.ndarray) -> tuple[float, np.ndarray]:
        # the search may try points that are so far from all data that no engine tells paths apart:
        # there the sum of the nearest point in reach grows by the squared distance to that
        inside = np.clip(points, low, high)
        average = Series(inside.reshape(work.average.shape).copy(), work.average.lengths)
        here = SoftDTWGradient(work.series, average, work.weights, work.gamma, work.warping)
        found = run(here, engine=engine, n_jobs=n_jobs, verbose=max(0, verbose - 1))
        total, slope = float(np.sum(work.weights * found.values)), found.gradient.ravel()
        beyond = points - inside
        if beyond.any():
            total += float(work.weights.sum() * (beyond @ beyond))
            slope = np.where(beyond != 0, 2 * work.weights.sum() * beyond, slope)
        if verbose:
            tell(f"Sum {total:.6f}, in units of the scaled data")
        return total, slope

    found = minimize(
        value_and_slope,
        work.average.values.ravel(),
        method="L-BFGS-B",
        jac=True,
        options={"maxiter": max_iter, "ftol": tol, "gtol": tol},
    )
    if found.status == 1:
        warn_user(
            f"The sum still falls after max_iter={max_iter} iterations. Raise max_iter for more, "
            "or tol for less.",
            ConvergenceWarning,
        )
    return found
