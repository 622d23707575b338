"""The average of a set of series under warping: DBA, and by subgradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._alignment import (
    LONGER_PATIENCE,
    NEVER_RISES,
    PATIENCE,
    Alignment,
    align,
    alignment_of,
    terms,
)
from .._log import counted, tell
from .._metrics import METRIC, METRIC_PARAMS, WINDOW, Distance, distance_of
from .._parameters import N_JOBS, checks_arguments, warn_user
from .._scalars import takes_plain
from .._validation import check_one, check_series, check_weights, is_3d
from ..engines import AlignmentSums, DTWMatrix, Engine, Series, get_engine, run
from ._subgradient import SubgradientPass

__all__ = ["ARGUMENTS", "Barycenter", "dtw_barycenter", "start_of"]

ARGUMENTS: dict[str, list[Any]] = {
    "init": [StrOptions({"mean", "medoid"}), "array-like"],
    "window": WINDOW,
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "engine": [str, None],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}
#: Values of the next average, from some work and its sums.
Step = Callable[[AlignmentSums, Alignment], np.ndarray]


class Barycenter(NamedTuple):
    """An average of series, and how far they are from it.

    Attributes
    ----------
    average : ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        The average.
    inertia : float
        Sum of the squared distances of the series to it, by weight; of the distances themselves
        under metrics without squares, or of the soft-DTW values.
    n_iter : int
        How often it was computed anew.
    """

    average: np.ndarray
    inertia: float
    n_iter: int


@takes_plain
@checks_arguments(
    ARGUMENTS
    | {
        "metric": METRIC,
        "metric_params": METRIC_PARAMS,
        "method": [StrOptions({"dba", "subgradient"})],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }
)
def dtw_barycenter(
    X: ArrayLike | list[ArrayLike],
    *,
    init: Literal["mean", "medoid"] | ArrayLike = "mean",
    metric: str = "dtw",
    metric_params: dict[str, Any] | None = None,
    window: float | None = None,
    weights: ArrayLike | None = None,
    max_iter: int = 100,
    tol: float = 1e-5,
    method: Literal["dba", "subgradient"] = "dba",
    batch_size: int = 1,
    random_state: int | np.random.RandomState | None = None,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Barycenter:
    r"""Average series under dynamic time warping, or another distance: DBA, or by subgradients.

    In DTW barycenter averaging (DBA) each series is aligned with the average by its best warping
    path, and each point of the average becomes the mean of all points that these paths match with
    it. Both steps are repeated, and neither raises the sum of squared distances; of other metrics
    see below. The stochastic subgradient method moves the average a little towards one series after
    the other.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    init : {"mean", "medoid"} or array-like, default "mean"
        Where to start. "mean" is the mean at each time point, for which shorter series are
        stretched to the length of the longest; "medoid" is the series with the least inertia, which
        takes all pairs of series. An array is a series of any length. The average has as many
        points as the start.
    metric : str, default "dtw"
        The distance, a name of `skts.metrics.pairwise_distances`, with squared
        costs where it has a choice.
    metric_params : dict or None, default None
        Parameters of the distance, such as ``{"penalty": 0.5}`` for ``metric="msm"``; None takes
        their defaults.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
    weights : array-like of shape (n_samples,) or None, default None
        Weight of each series; None is 1.
    max_iter : int, default 100
        Iterations at most; each goes over all series.
    tol : float, default 1e-5
        Ends when an iteration lowers the inertia by no more than this share of itself; where
        iterations may also raise it, with "subgradient" and under most metrics, after five such in
        a row. With 0 it ends when nothing is lowered any more.
    method : {"dba", "subgradient"}, default "dba"
        "dba" aligns all series with the same average, and replaces it by the mean of what was
        matched [1]_. "subgradient", for ``metric="dtw"``, aligns one series after the other, in
        random order, and moves the average by a small step each time [2]_: at times to a lower
        inertia, but an iteration takes longer. The best average of all iterations is returned.
    batch_size : int, default 1
        Series that "subgradient" aligns with the same average, and then steps for all of them at
        once. On the CPU any size takes about as long, up to 64 on one thread; a GPU needs many.
    random_state : int, RandomState or None, default None
        Draws the order of the series for "subgradient".
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 reports the inertia of each iteration, 2 also shows progress bars.

    Returns
    -------
    Barycenter
        The average, its inertia and the number of iterations.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if numbers of
        channels differ; if a weight is negative, or all are zero; if the metric is not defined for
        series of these lengths, or does not go with the method.

    Warns
    -----
    ConvergenceWarning
        When `max_iter` is reached before `tol`.

    See Also
    --------
    soft_dtw_barycenter : Smoother averages, by a gradient.
    skts.DTWKMeans : Clusters with such averages as centres.
    skts.metrics.dtw_path : The path of one pair, by the same rule for ties.

    Notes
    -----
    All engines return the same bits: paths that tie are chosen by one rule, that of `dtw_path` with
    the average first, and sums are added in one order, whatever the number of threads and tiles.

    Under other metrics, too, each point becomes the mean of the points that the best paths match
    with it, those of `skts.metrics.warping_path`; under "ddtw" the first points of series are
    matched with that of the average as well, and the last ones. A point that all paths leave out,
    as those of "erp", "edr" and "lcss" may, stays as it is. Under "msm" each channel has paths of
    its own. The inertia is the sum of squared distances under "dtw", "adtw", "wdtw", "ddtw",
    "shape_dtw", "dog_keeper" and "euclidean", and that of distances under "msm", "twe", "erp", "edr" and "lcss".
    The mean minimises it for given paths, so that no iteration raises it, under "dtw", "adtw" and
    "euclidean" alone. Under all others an iteration may raise it: the best average is returned,
    which is no worse than the start.

    With "subgradient" a point of the average that is matched with :math:`v` points of a series of
    weight :math:`w` moves by a share :math:`2 \eta w v` of the way to their mean, at most by all of
    it; shares of a batch add up. Weights are scaled to a mean of 1. The learning rate :math:`\eta`
    falls from 0.05 to 0.005 while the first iteration goes over the series, and stays there.

    References
    ----------
    .. [1] Petitjean, Ketterlin, Gancarski. "A global averaging method for dynamic time warping,
       with applications to clustering". Pattern Recognition 44(3), 2011.
    .. [2] Schultz, Jain. "Nonsmooth analysis and subgradient methods for averaging in dynamic time
       warping spaces". Pattern Recognition 74, 2018.

    Examples
    --------
    >>> from skts.averages import dtw_barycenter
    >>> X = [[0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 3, 0]]
    >>> found = dtw_barycenter(X, init=X[0])
    >>> found.average
    array([0., 0., 3., 0., 0., 0.])
    >>> found.inertia
    0.0
    """
    series = check_series(X)
    shares = check_weights(weights, len(series), input_name="weights")
    # a power of two: sums of weighted squares stay in the range of float64
    exponent = int(np.frexp(shares.max())[1])
    shares = np.ldexp(shares, -exponent)
    distance = distance_of(metric, metric_params, window=window)
    if method == "subgradient" and metric != "dtw":
        raise ValueError(f"method='subgradient' takes metric='dtw', not metric={metric!r}.")
    start = start_of(init, series, shares, distance, engine, n_jobs)
    work = alignment_of(series, start, np.zeros(len(series), np.int64), shares, distance)
    step: Step = _means
    if method == "subgradient":
        step = SubgradientPass(
            shares,
            batch_size,
            check_random_state(random_state),
            engine,
            partial(run, n_jobs=n_jobs),
        )
    chosen = get_engine(engine, work.by_channel()[0])
    steady = method == "dba" and metric in NEVER_RISES
    patience = PATIENCE if steady else LONGER_PATIENCE
    average, inertia, n_iter = _iterate(
        work, step, patience, max_iter, tol, chosen, n_jobs, verbose
    )
    flat = series.n_channels == 1 and not is_3d(X)
    return Barycenter(average[0] if flat else average, float(np.ldexp(inertia, exponent)), n_iter)


def _iterate(
    work: AlignmentSums,
    step: Step,
    patience: int,
    max_iter: int,
    tol: float,
    engine: Engine,
    n_jobs: int | None,
    verbose: int,
) -> tuple[np.ndarray, float, int]:
    """Improve the one average of some work by steps, until that ends."""
    compute = partial(run, engine=engine, n_jobs=n_jobs, verbose=max(0, verbose - 1))
    best, inertia, iteration, waited = work.averages.values[0], np.inf, 0, 0
    while True:
        found = align(work, compute)
        new = float(np.sum(work.weights * found.costs))
        if verbose:
            tell(f"Iteration {iteration}, inertia {new:.6f}")
        waited = 0 if inertia - new > tol * new else waited + 1
        if new < inertia:
            best, inertia = work.averages.values[0], new
        if waited == patience:
            return best, inertia, iteration
        if iteration == max_iter:
            break
        work = replace(work, averages=Series(step(work, found), work.averages.lengths))
        iteration += 1
    if not waited:
        warn_user(
            f"The inertia still falls after max_iter={max_iter} iterations. Raise max_iter for "
            "more, or tol for less.",
            ConvergenceWarning,
        )
    return best, inertia, iteration


def _means(work: AlignmentSums, found: Alignment) -> np.ndarray:
    """The step of DBA: means of the matched points."""
    return found.means(work.averages.values)


def start_of(
    init: Any,
    series: Series,
    weights: np.ndarray,
    distance: Distance,
    engine: str | None,
    n_jobs: int | None,
) -> Series:
    """Choose the average to start from.

    Parameters
    ----------
    init : {"mean", "medoid"} or array-like
        What the user asked for.
    series : Series
        All series.
    weights : ndarray of shape (n_series,)
        Their weights.
    distance : Distance
        The distance, for the medoid.
    engine : str or None
        The engine that finds the medoid.
    n_jobs : int or None
        Threads on the CPU.

    Returns
    -------
    Series
        A set of one.
    """
    if not isinstance(init, str):
        given = check_one(init, "init")
        if given.n_channels != series.n_channels:
            raise ValueError(
                f"init has {counted(given.n_channels, 'channel')}, and the series of X have "
                f"{series.n_channels}."
            )
        return given
    if init == "mean":
        return _mean(series, weights)
    found = run(DTWMatrix(*distance.sides(series, series)), engine=engine, n_jobs=n_jobs)
    medoid = int(np.argmin((terms(found, distance) * weights).sum(axis=1)))
    length = series.lengths[medoid]
    return Series(series.values[medoid : medoid + 1, :, :length].copy(), np.array([length]))


def _mean(series: Series, weights: np.ndarray) -> Series:
    """The weighted mean at each time point of series stretched to one length."""
    n, whole = series.n_timepoints, series.lengths == series.n_timepoints
    total = np.sum(series.values[whole] * weights[whole, np.newaxis, np.newaxis], axis=0)
    for place in np.flatnonzero(~whole).tolist():
        length = series.lengths[place]
        times, known = np.linspace(0, length - 1, n), np.arange(length)
        for channel, points in enumerate(series.values[place, :, :length]):
            total[channel] += weights[place] * np.interp(times, known, points)
    return Series.of((total / np.sum(weights))[np.newaxis])
