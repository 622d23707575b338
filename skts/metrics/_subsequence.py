"""The distance of a subsequence to a series."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._parameters import N_JOBS, checks_arguments
from .._scalars import takes_plain
from .._validation import as_host, check_one
from ..engines import Series, SubsequenceMatches, run

__all__ = ["SubsequenceDistance", "subsequence_distance"]


class SubsequenceDistance(NamedTuple):
    """A distance, and where the best match begins.

    Attributes
    ----------
    distance : float
        Root mean square difference.
    start : int
        Where the best match begins, of several the earliest.

    Examples
    --------
    >>> from skts.metrics import subsequence_distance
    >>> subsequence_distance([0, 1, 0], [5, 5, 5, 6, 5]).start
    2
    """

    distance: float
    start: int


@takes_plain
@checks_arguments(
    {"normalize": ["boolean"], "engine": [str, None], "n_jobs": N_JOBS},
)
def subsequence_distance(
    x: ArrayLike,
    series: ArrayLike,
    *,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
) -> SubsequenceDistance:
    """Find where a subsequence matches best in a series.

    The distance of two windows is the root of the mean squared difference of their points, both
    z-normalised: ``sqrt(2 (1 - corr))``, at most 2. Two constant windows are at distance 0, a
    constant window and another one at distance 1. Windows of fewer than 3 points are compared as
    they are.

    Parameters
    ----------
    x : array-like of shape (length,)
        The subsequence.
    series : array-like of shape (n_timepoints,)
        The series, at least as long.
    normalize : bool, default True
        Whether windows are z-normalised.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU.

    Returns
    -------
    distance : float
        Root mean square difference to the best window.
    start : int
        Where that window begins, of several the earliest.

    Raises
    ------
    ValueError
        If the subsequence is longer than the series, or a point is not finite.

    References
    ----------
    .. [1] Ye, Keogh. "Time series shapelets: a new primitive for data mining". KDD, 2009,
       section 2.

    Examples
    --------
    >>> from skts.metrics import subsequence_distance
    >>> distance, start = subsequence_distance([0, 1, 0], [5, 5, 5, 6, 5])
    >>> round(distance, 6), start
    (0.0, 2)
    """
    one, other = _one_channel(x, "x"), _one_channel(series, "series")
    length, n = int(one.lengths[0]), int(other.lengths[0])
    if length > n:
        raise ValueError(f"x has {length} time points, more than the {n} of the series.")
    queries = (np.ascontiguousarray(one.values[0, 0, :length]),)
    work = SubsequenceMatches(queries, other, normalize and length >= 3)
    found = run(work, engine=engine, n_jobs=n_jobs)
    distance = float(found.distances[0, 0] / np.sqrt(length))
    return SubsequenceDistance(distance, int(found.starts[0, 0]))


def _one_channel(x: ArrayLike, name: str) -> Series:
    """One series of one channel, as a set of one."""
    series = check_one(as_host(x, name), name)
    if series.n_channels != 1:
        advice = f": write {name}.ravel()" if series.n_timepoints == 1 else ""
        raise ValueError(
            f"{name} has shape {series.values.shape[1:]}; one series of shape (n_timepoints,) is "
            f"needed here{advice}."
        )
    return series
