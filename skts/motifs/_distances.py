"""Distances from a window to all windows of series, and from a series to another one."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, RealNotInt

from .._parameters import N_JOBS, checks_arguments
from .._scalars import takes_plain
from .._validation import check_univariate
from ..engines import ConcatenatedSeries, Join, WindowDistances, run
from ._matrix_profile import _COMMON, _lines, one_line
from ._search import length_of

__all__ = ["distance_profile", "mpdist"]


@takes_plain
@checks_arguments(
    {
        "query": ["array-like"],
        "series": ["array-like", list],
        "normalize": ["boolean"],
        "engine": [str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }
)
def distance_profile(
    query: ArrayLike,
    series: ArrayLike | list[ArrayLike],
    *,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Compute the distance of a query to every window of one or several series.

    The distance of two windows is that of `matrix_profile`, bit by bit: the Euclidean distance
    after each has been z-normalised by its own mean and population deviation.

    Parameters
    ----------
    query : array-like of shape (window,)
        The pattern. Where it holds NaN or infinity, all distances are infinite.
    series : array-like of shape (n_timepoints,) or (n_samples, n_timepoints), or list of array-like
        One series, or several of any lengths, none shorter than the query. Windows that hold NaN or
        infinity are infinitely far.
    normalize : bool, default True
        Whether query and windows are z-normalised. Otherwise distances are plain Euclidean ones.
    engine : str or None, default None
        "auto", "numba", "cupy", or another registered engine; None takes the configuration's.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ndarray of shape (n_windows,) or (n_samples, n_windows), float64
        Distances; of several series a row for each, infinite where a series is shorter.

    Raises
    ------
    ValueError
        If the query is no 1-D array, or longer than a series.

    See Also
    --------
    skts.SubsequenceSearch : The best matches alone, also under DTW, in series of any size.

    Notes
    -----
    A constant query is at distance 0 from constant windows, at ``sqrt(window)`` from others. Each
    distance takes as many steps as the query has points; it is computed in float64 from the points
    of the two windows alone.

    References
    ----------
    .. [1] Mueen et al. "The Fastest Similarity Search Algorithm for Time Series Subsequences under
       Euclidean Distance". 2017 (the same values by another computation).

    Examples
    --------
    >>> from skts.motifs import distance_profile
    >>> distance_profile([0, 1, 0], [5, 5, 5, 7, 5, 4, 5]).round(2)
    array([1.73, 3.  , 0.  , 2.67, 3.46])
    """
    pattern = one_line(query, "query")
    length = pattern.points.size
    several = not _is_single(series)
    if several:
        parts = check_univariate(series, input_name="series")
        pool = ConcatenatedSeries.of(parts)
    else:
        pool = one_line(series, "series")
    for row, size in enumerate(pool.lengths.tolist()):
        if size < length:
            name = f"Series {row} of series" if several else "series"
            raise ValueError(
                f"{name} has {size} time points; that is less than a query of {length}."
            )
    work = WindowDistances(pattern, np.zeros(1, np.int64), pool, length, bool(normalize))
    (found,) = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)
    if not several:
        return found
    counts = pool.lengths - length + 1
    rows = np.full((counts.size, int(counts.max())), np.inf)
    for k, (start, count) in enumerate(zip(pool.starts, counts, strict=True)):
        rows[k, :count] = found[start : start + count]
    return rows


@takes_plain
@checks_arguments(
    {name: _COMMON[name] for name in ("a", "window", "normalize", "engine", "n_jobs", "verbose")}
    | {
        "b": ["array-like"],
        "k": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
    }
)
def mpdist(
    a: ArrayLike,
    b: ArrayLike,
    *,
    window: float,
    k: float = 0.05,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> float:
    """Compute the MPdist of two series: they are near if they share many windows, in any order.

    Each window of either series has a nearest window in the other one. MPdist is the k-th smallest
    of all these distances. It is symmetric, but no metric: series that share k windows are at
    distance 0, and the triangle inequality does not hold.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        One series. Windows that hold NaN or infinity are left out.
    b : array-like of shape (n_timepoints_b,)
        The other series, of any length.
    window : int or float
        Length of the subsequences that are compared, in points; or a fraction of the shorter
        series, rounded up.
    k : int or float, default 0.05
        Which distance is taken, from the smallest on: 1 is the smallest; a float is a share of the
        points of both series, rounded up. The largest is taken where there are fewer.
    normalize : bool, default True
        Whether windows are z-normalised.
    engine : str or None, default None
        "auto", "numba", "cupy", or another registered engine; None takes the configuration's.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    float
        The distance; infinite where no window of one series is finite.

    Raises
    ------
    ValueError
        If a series is no 1-D array or shorter than the window.

    See Also
    --------
    matrix_profile : The nearest window in another series, of every window.

    References
    ----------
    .. [1] Gharghabi, Imani, Bagnall, Darvishzadeh, Keogh. "Matrix Profile XII: MPdist: A Novel Time
       Series Distance Measure to Allow Data Mining in More Challenging Scenarios". ICDM 2018,
       section III.

    Examples
    --------
    >>> from skts.motifs import mpdist
    >>> a = [0, 1, 3, 2, 9, 4, 1, 1]
    >>> b = [7, 5, 0, 1, 3, 2, 5, 6]
    >>> mpdist(a, b, window=4)
    0.0
    >>> round(mpdist(a, b, window=4, k=6), 2)
    0.68
    """
    (one, other), length = _lines({"a": a, "b": b}, window)
    found = []
    for lookers, places in ((one, other), (other, one)):
        work = Join(lookers, places, length, normalize=bool(normalize))
        profile: Any = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)
        found.append(profile.distances[:, 0])
    distances = np.concatenate(found)
    distances = np.sort(distances[np.isfinite(distances)])
    if distances.size == 0:
        return np.inf
    rank = length_of(k, one.points.size + other.points.size)
    return float(distances[min(rank, distances.size) - 1])


def _is_single(series: Any) -> bool:
    """Whether this is one series rather than several."""
    if hasattr(series, "shape"):
        return len(series.shape) == 1
    try:
        return np.ndim(series) == 1
    except ValueError:  # rows of several lengths
        return False
