"""The best matches of a series in a long one, of any lengths and without overlap."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._metrics import COST, distance_of
from .._parameters import checks_arguments
from .._scalars import takes_plain
from ..engines import DTWPath, Series, run
from ._arguments import check_pair

__all__ = ["DTWMatches", "dtw_matches"]


class DTWMatches(NamedTuple):
    """Matches, best first.

    Attributes
    ----------
    distances : ndarray of shape (n_found,), float64
        Their distances, ascending.
    spans : ndarray of shape (n_found, 2), int64
        First point of each, and the one behind its last.

    Examples
    --------
    >>> from skts.metrics import dtw_matches
    >>> dtw_matches([0, 1, 0], [5, 0, 1, 1, 0, 5]).spans
    array([[1, 5]])
    """

    distances: np.ndarray
    spans: np.ndarray


@takes_plain
@checks_arguments(
    {
        "n_matches": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({"dtw", "dog_keeper"})],
        "cost": COST,
        "engine": [str, None],
    }
)
def dtw_matches(
    x: ArrayLike,
    y: ArrayLike,
    n_matches: int = 1,
    *,
    metric: str = "dtw",
    cost: str | Callable[[float, float], float] = "squared",
    engine: str | None = None,
) -> DTWMatches:
    """Find the parts of a long series that are nearest to a series under warping.

    A part may have any length and lie anywhere; points are compared as they are. The best part
    comes first, then the best of those that share no point with it, and so on.

    Parameters
    ----------
    x : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series that is looked for.
    y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The long series, with as many channels.
    n_matches : int, default 1
        How many parts at most: the series may be used up before.
    metric : {"dtw", "dog_keeper"}, default "dtw"
        "dtw" adds the costs along a warping path, "dog_keeper" takes the largest of them.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. It may be a function of two points in a
        channel, or a `PointCost`; then no root is taken.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    distances : ndarray of shape (n_found,), float64
        Distances of `x` and the parts, ascending.
    spans : ndarray of shape (n_found, 2), int64
        First point of each part, and the one behind its last; of equally near parts in different
        places between earlier matches the first, in one place that of `dtw_path`.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity or NaN; if the numbers of channels differ.

    See Also
    --------
    dtw_path : The best part alone, ``alignment="subsequence"``, with its warping path.
    skts.SubsequenceSearch : Search windows of one length, each z-normalised.

    Notes
    -----
    A part that shares no point with those before lies in one of the stretches between them. So
    each stretch has a best part, and a match that is taken leaves two stretches in place of one:
    at most ``2 n_matches - 1`` warping paths are found, and the steps of one of them are in memory
    at a time. Points count as they are, and parts may be short: with ``normalize=False``
    `skts.SubsequenceSearch` compares parts of one length.

    References
    ----------
    .. [1] Müller. "Information Retrieval for Music and Motion". Springer, 2007, section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.metrics import dtw_matches
    >>> series = np.array([9, 0, 3, 0, 9, 9, 0, 0, 4, 3, 0, 9.0])
    >>> distances, spans = dtw_matches([0, 3, 0], series, n_matches=2)
    >>> distances
    array([0., 1.])
    >>> spans
    array([[ 1,  4],
           [ 7, 11]])
    """
    query, line = check_pair(x, y)
    warping = distance_of(metric, cost=cost, alignment="subsequence").warping
    found: list[tuple[float, int, int]] = []
    waiting: list[tuple[float, int, int, tuple[int, int]]] = []

    def _measure(start: int, stop: int) -> None:
        # the best part of a stretch
        if start < stop:
            points = np.ascontiguousarray(line.values[:, :, start:stop])
            part = Series(points, np.array([stop - start]))
            path, distance = run(DTWPath(query, part, warping), engine=engine, n_jobs=1)
            span = start + int(path[0, 1]), start + int(path[-1, 1]) + 1
            heapq.heappush(waiting, (distance, start, stop, span))

    _measure(0, line.n_timepoints)
    while waiting and len(found) < n_matches:
        distance, start, stop, span = heapq.heappop(waiting)
        found.append((distance, *span))
        if len(found) < n_matches:
            _measure(start, span[0])
            _measure(span[1], stop)
    return DTWMatches(
        np.array([one[0] for one in found]), np.array([one[1:] for one in found], np.int64)
    )
