"""Chains of windows: patterns that drift."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from .._parameters import checks_arguments
from .._scalars import takes_plain
from ..engines import Join, run
from ._matrix_profile import _COMMON, _lines
from ._records import Chain
from ._search import exclusion_of

__all__ = ["motif_chains"]


@takes_plain
@checks_arguments(
    _COMMON
    | {
        "anchor": [Interval(Integral, 0, None, closed="left"), None],
        "min_length": [Interval(Integral, 2, None, closed="left")],
    }
)
def motif_chains(
    a: ArrayLike,
    *,
    window: float,
    anchor: int | None = None,
    min_length: int = 2,
    exclusion: float | None = None,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Chain]:
    """Find patterns that change from one occurrence to the next.

    A window links to its nearest later neighbour if it is in turn the nearest earlier neighbour of
    that window. So a window has at most one link forth and one back, and links form chains.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        The series. Windows that hold NaN or infinity are in no chain.
    window : int or float
        Length of the subsequences that are compared, in points; or a fraction of the series,
        rounded up.
    anchor : int or None, default None
        The window, by its start, from which on a chain is followed. None is all chains, each from
        its first window on.
    min_length : int, default 2
        Chains of fewer windows are left out.
    exclusion : int, float or None, default None
        Windows that start at most this many points apart are no neighbours; a float is a fraction
        of the window, rounded up, and None means a quarter.
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
    list of Chain
        Those of most windows first, of equally long ones the one that begins first. With an
        `anchor` one chain, that from there on, or none.

    Raises
    ------
    ValueError
        If `a` is no 1-D array or shorter than the window; if `anchor` is no window of it.

    See Also
    --------
    motifs : Patterns that repeat as they are.
    matrix_profile : Nearest earlier and later neighbours, with ``sides=True``.

    References
    ----------
    .. [1] Zhu, Imamura, Nikovski, Keogh. "Matrix Profile VII: Time Series Chains: A New Primitive
       for Time Series Data Mining". ICDM 2017, definitions 7 to 11.

    Examples
    --------
    A step that becomes steeper each time:

    >>> from skts.motifs import motif_chains
    >>> x = [0, 0, 2, 2, 9, 0, 1, 3, 1, 9, 0, 2, 4, 0, 9, 0, 3, 5, -1, 9, 0, 4, 6, -2]
    >>> chain = motif_chains(x, window=4)[0]
    >>> chain.positions
    array([ 1,  6, 11, 16])
    >>> chain.distances.round(2)
    array([0.49, 0.5 , 0.45])
    """
    (pool, _), length = _lines({"a": a}, window)
    number = pool.n_windows(length)
    if anchor is not None and anchor >= number:
        raise ValueError(
            f"anchor={anchor} is no window: a has {number} windows of {length} points."
        )
    work = Join(
        pool,
        None,
        length,
        exclusion=exclusion_of(exclusion, length, pool.points.size),
        sides=True,
        normalize=bool(normalize),
    )
    found = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)
    later, earlier = found.right.indices[:, 0], found.left.indices[:, 0]
    places = np.arange(number)
    linked = (later >= 0) & (earlier[later] == places)
    following = np.where(linked, later, -1)
    if anchor is None:
        is_first = linked.copy()
        is_first[following[linked]] = False
        starts = np.flatnonzero(is_first)
    else:
        starts = np.array([anchor])
    chains = [_follow(following, start) for start in starts.tolist()]
    # stable: of equally long ones the first comes first
    chains = sorted((one for one in chains if one.size >= min_length), key=np.size, reverse=True)
    distances = found.right.distances[:, 0]
    return [Chain(length, positions, distances[positions[:-1]]) for positions in chains]


def _follow(following: np.ndarray, place: int) -> np.ndarray:
    """A window and all that follow it in its chain."""
    chain = []
    while place >= 0:
        chain.append(place)
        place = int(following[place])
    return np.array(chain, np.int64)
