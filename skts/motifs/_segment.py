"""Regimes of a series: where windows find no neighbours on the other side."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from .._parameters import checks_arguments, warn_user
from .._scalars import takes_plain
from ..engines import Join, run
from ._matrix_profile import _COMMON, _lines
from ._records import Segmentation
from ._search import exclusion_of

__all__ = ["segment"]

#: Windows that a boundary is away from others and from the ends, by default (section IV of FLUSS).
APART = 5


@takes_plain
@checks_arguments(
    _COMMON
    | {
        "n_regimes": [Interval(Integral, 1, None, closed="left")],
        "separation": [Interval(Integral, 0, None, closed="left"), None],
    }
)
def segment(
    a: ArrayLike,
    *,
    window: float,
    n_regimes: int = 2,
    exclusion: float | None = None,
    separation: int | None = None,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Segmentation:
    """Find where a series changes from one regime to another (FLUSS).

    An arc leads from each window to its nearest neighbour. Within a regime many arcs cross a place;
    where one regime ends and another begins there are few. The curve is their number over that of
    arcs to neighbours chosen by chance, at most 1.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        The series. Windows that hold NaN or infinity have no arc, and count as not there.
    window : int or float
        Length of the subsequences that are compared, in points: about one period. Or a fraction of
        the series, rounded up.
    n_regimes : int, default 2
        How many regimes at most, one more than there are boundaries.
    exclusion : int, float or None, default None
        Windows that start at most this many points apart are no neighbours; a float is a fraction
        of the window, rounded up, and None means a quarter.
    separation : int or None, default None
        Boundaries are more than this many windows apart, and the first and last so many windows
        hold none: the curve is 1 there. None means five times the points of a window.
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
    Segmentation
        The curve, and the boundaries where it is lowest, of equally low places the first. There are
        fewer than ``n_regimes - 1`` where the curve is 1 at all places that are left.

    Raises
    ------
    ValueError
        If `a` is no 1-D array or shorter than the window.

    Warns
    -----
    UserWarning
        If `separation` leaves no place for a boundary: by default in a series of less than eleven
        times the window.

    See Also
    --------
    matrix_profile : Nearest neighbours, from whose `indices` the curve follows.

    Notes
    -----
    Of n windows with an arc, m lie at or before a place. Chance has ``2 m (n - m) / n`` arcs cross
    it. The curve knows only where neighbours lie, not how near they are; a regime that returns
    later hides its boundaries, since arcs lead there.

    References
    ----------
    .. [1] Gharghabi, Ding, Yeh, Kamgar, Ulanova, Keogh. "Matrix Profile VIII: Domain Agnostic
       Online Semantic Segmentation at Superhuman Performance Levels". ICDM 2017, section III.

    Examples
    --------
    >>> from skts.motifs import segment
    >>> x = [0, 1, 2, 1] * 6 + [0, 3, 0, 1, 3] * 5
    >>> found = segment(x, window=4, separation=4)
    >>> found.boundaries
    array([21])
    >>> float(found.curve[21])
    0.0
    """
    (pool, _), length = _lines({"a": a}, window)
    apart = APART * length if separation is None else separation
    n_windows = pool.points.size - length + 1
    if n_regimes > 1 and n_windows <= 2 * apart:
        warn_user(
            f"There is no place for a boundary: each is at least separation={apart} windows away "
            f"from both ends, and the series has {n_windows} windows. Lower separation or window."
        )
    near = exclusion_of(exclusion, length, pool.points.size)
    work = Join(pool, None, length, exclusion=near, normalize=bool(normalize))
    found = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)
    curve = _arc_curve(found.indices[:, 0])
    curve[:apart] = 1.0
    curve[max(0, curve.size - apart) :] = 1.0
    return Segmentation(length, _lowest(curve, int(n_regimes) - 1, apart), curve)


def _arc_curve(neighbors: np.ndarray) -> np.ndarray:
    """Arcs that cross each place, over those of chance, at most 1 (section III.B and C)."""
    takes_part = neighbors >= 0
    places = np.flatnonzero(takes_part)
    ends = neighbors[takes_part]
    size = neighbors.size
    crossing = np.bincount(np.minimum(places, ends), minlength=size)
    crossing = np.cumsum(crossing - np.bincount(np.maximum(places, ends), minlength=size))
    before = np.cumsum(takes_part)
    # whole numbers below 2^53: one rounding, of the quotient
    chance = 2.0 * before * (places.size - before)
    ratio = np.divide(crossing * float(places.size), chance, out=np.ones(size), where=chance > 0)
    return np.minimum(ratio, 1.0)


def _lowest(curve: np.ndarray, number: int, apart: int) -> np.ndarray:
    """Places where the curve is lowest, each more than so far from those before."""
    left = curve.copy()
    found: list[int] = []
    while len(found) < number and left.size:
        place = int(np.argmin(left))
        if left[place] >= 1.0:
            break
        found.append(place)
        left[max(0, place - apart) : place + apart + 1] = 1.0
    return np.array(found, np.int64)
