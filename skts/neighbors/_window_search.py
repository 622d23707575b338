"""The leave-one-out error of nearest-neighbour classification for every warping window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._log import counted
from .._metrics import COST, distance_of
from .._parameters import N_JOBS, checks_arguments
from .._scalars import plain, takes_plain
from .._summary import summarized
from .._validation import check_series, check_target
from ..engines import run
from ._parameter_search import nearest_under

__all__ = ["WindowSearch", "dtw_window_search"]


@summarized
class WindowSearch(NamedTuple):
    """Leave-one-out errors for several warping windows.

    Attributes
    ----------
    windows : ndarray of shape (n_windows,), int64
        Half widths of the band in time points.
    errors : ndarray of shape (n_windows,), float64
        Share of the series whose nearest other series has another label.
    best : int or float
        The window with the least error, of several the smallest: a fraction of the length, or
        points where `fractions` is None. ``DTWNearestNeighbor(window=...)`` takes it as it is.
    fractions : ndarray of shape (n_windows,), float64, or None
        The windows as fractions of the length, where they were given so.
    """

    windows: np.ndarray
    errors: np.ndarray
    best: float
    fractions: np.ndarray | None


@takes_plain
@checks_arguments(
    {
        "cost": COST,
        "engine": [str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }
)
def dtw_window_search(
    X: ArrayLike | list[ArrayLike],
    y: ArrayLike,
    *,
    windows: ArrayLike | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> WindowSearch:
    """Compute the leave-one-out error of 1-NN classification for every warping window at once.

    The errors are exactly those of ``DTWNearestNeighbor(window=w).fit(X, y).kneighbors()`` for each
    window. A distance that is the same for several windows is computed once, and most distances are
    only bounded.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        At least two series of one length; or a list of such arrays.
    y : array-like of shape (n_samples,)
        Class labels.
    windows : array-like of int or float, or None, default None
        Half widths of the Sakoe-Chiba band (no lengths of subsequences) to try, in time points, or
        as fractions of the length between 0 and 1, rounded up to points. None tries 0, 1, ... 100 %
        of the length, as the UCR archive does.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. As in `DTWNearestNeighbor` it may be a
        function, or a `skts.metrics.PointCost`.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar, 2 also the plan: engine, parts, memory.

    Returns
    -------
    WindowSearch
        Named tuple of `windows`, `errors`, `best` and `fractions`.

    Raises
    ------
    ValueError
        If lengths differ, there are fewer than two series, the numbers of series and labels differ,
        a window or cost is unknown, or some windows are points and others fractions.

    See Also
    --------
    skts.DTWNearestNeighbor : The classifier for which the window is chosen.

    Notes
    -----
    Of series at equal distances the one that comes first in `X` is the nearest. The published
    windows of the archive were found in the same way. A window that is chosen in this way is fitted
    to `X`: estimate the error of the classifier on other series.

    References
    ----------
    .. [1] Tan, Herrmann, Forestier, Webb, Petitjean. "Efficient search of the best warping window
       for dynamic time warping". SIAM International Conference on Data Mining, 2018.
    .. [2] Dau, Bagnall, Kamgar, Yeh, Zhu, Gharghabi, Ratanamahatana, Keogh. "The UCR time series
       archive". IEEE/CAA Journal of Automatica Sinica 6, 2019.

    Examples
    --------
    >>> from skts.neighbors import dtw_window_search
    >>> X = [[0, 4, 0, 0, 0, 0], [0, 0, 4, 0, 0, 0], [0, 5, 0, 4, 0, 0], [0, 0, 5, 0, 4, 0]]
    >>> y = ["one", "one", "two", "two"]
    >>> search = dtw_window_search(X, y, windows=[0, 1, 2])
    >>> search.errors
    array([1., 0., 0.])
    >>> search.best
    1
    """
    labels = check_target(X, y, "dtw_window_search")
    series = check_series(X, equal_length=True)
    if len(series) < 2:
        raise ValueError(f"Found array with {len(series)} sample(s) while 2 or more are required.")
    given = _check_windows(windows)
    distances = [distance_of("dtw", cost=cost, window=window) for window in given.tolist()]
    run_here = partial(run, engine=engine, n_jobs=n_jobs, verbose=verbose)
    nearest = nearest_under(series, distances, run_here)
    errors = np.mean(labels[nearest] != labels, axis=1)
    n = series.n_timepoints
    points = np.array([one.warping.radius(n, n) for one in distances], np.int64)
    best = given[errors == errors.min()].min().item()
    return WindowSearch(points, errors, best, given if given.dtype.kind == "f" else None)


def _check_windows(windows: ArrayLike | None) -> np.ndarray:
    """Windows as int64 points or float64 fractions; their range is checked by `Warping`."""
    if windows is None:
        return np.arange(101) / 100
    given = np.asarray(windows, object)
    if any(isinstance(window, bool | np.bool_) for window in given.flat):
        raise ValueError(f"windows={windows!r} is not a list of numbers: it has truth values.")
    numbers = [isinstance(window, Integral) for window in given.flat]
    if given.ndim == 1 and all(numbers):
        # no series is as long as int64 goes
        given = np.minimum(given, 2**62)
    try:
        given = np.array([plain(window) for window in given] if given.ndim == 1 else given.tolist())
    except ValueError:  # lists of several lengths
        given = np.empty(0, object)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iuf":
        raise ValueError(
            f"windows={windows!r} is not a list of numbers of points or of fractions of the length."
        )
    if given.dtype.kind == "f" and (mixed := given[np.array(numbers)]).any():
        points = int(mixed.max())
        raise ValueError(
            f"windows={windows!r} holds {counted(points, 'point')} among fractions of the length: "
            "give all as the one or the other; 1.0 is the whole length."
        )
    return given.astype(np.float64 if given.dtype.kind == "f" else np.int64)
