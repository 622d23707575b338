"""Functions for single series: the matrix profile, motifs and discords."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, RealNotInt, StrOptions

from .._parameters import N_JOBS, checks_arguments, renamed
from .._scalars import takes_plain
from .._validation import check_univariate
from ..engines import ConcatenatedSeries, Join, MotifPair, TimedJoin, get_engine, run
from ._records import Discord, MatrixProfile, Motif
from ._search import (
    EitherSearch,
    PairSearch,
    ProfileSearch,
    WindowSet,
    exclusion_of,
    find_discords,
    find_motifs,
    length_of,
    raise_no_pair,
    separation_of,
)

__all__ = ["APART", "discords", "matrix_profile", "motifs", "one_line"]

#: Windows from which on it pays to see whether MK would be faster than a profile.
MANY = 2**17
_POSITIVE = Interval(Integral, 1, None, closed="left")
_FACTOR = Interval(Real, 1, None, closed="left")
APART = [
    Interval(Integral, 0, None, closed="left"),
    Interval(RealNotInt, 0, 1, closed="both"),
    None,
]
_COMMON = {
    "a": ["array-like"],
    "window": [_POSITIVE, Interval(RealNotInt, 0, 1, closed="right")],
    "exclusion": APART,
    "normalize": ["boolean"],
    "engine": [str, None],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}
_PRECISION = {"precision": [StrOptions({"auto", "float32", "float64"})]}


@takes_plain
@checks_arguments(
    _COMMON
    | _PRECISION
    | {
        "b": ["array-like", None],
        "k": [_POSITIVE],
        "sides": ["boolean"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
    },
)
def matrix_profile(
    a: ArrayLike,
    b: ArrayLike | None = None,
    *,
    window: float,
    exclusion: float | None = None,
    k: int = 1,
    sides: bool = False,
    normalize: bool = True,
    time_limit: float | None = None,
    precision: Literal["auto", "float32", "float64"] = "auto",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> MatrixProfile:
    """Find the nearest neighbours of every window of a series, in itself or in another one.

    The distance of two windows is the Euclidean distance after each has been z-normalised by its
    own mean and population deviation; it lies between 0 and ``2 sqrt(window)``.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        The series whose windows look for neighbours. A window that holds NaN or infinity has no
        neighbour, and is the neighbour of none. A memory map is not copied.
    b : array-like of shape (n_timepoints_b,) or None, default None
        The series in which they look; None is `a` itself.
    window : int or float
        Length of the subsequences that are compared (not a band of warping), in points; or a
        fraction of the shorter series, rounded up.
    exclusion : int, float or None, default None
        Within `a` itself, windows that start at most this many points apart are no neighbours; a
        float is a fraction of the window, rounded up, and None means a quarter. With `b` all pairs
        count.
    k : int, default 1
        Neighbours of each window.
    sides : bool, default False
        Whether to also find the nearest neighbour among earlier windows and among later ones; not
        with `b`.
    normalize : bool, default True
        Whether windows are z-normalised. Otherwise distances are plain Euclidean ones.
    time_limit : float or None, default None
        Seconds after which no further part of the pairs is begun; the first is computed in any
        case. Then `share` of the result says how many of the pairs were compared, and distances
        are upper bounds: those to the nearest window that was compared. None compares all pairs.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" is exact: the search may run in float32, with known error, and every answer is
        certified in float64. "float32" leaves out the certificate, "float64" searches in float64.
    engine : str or None, default None
        "auto", "numba", "cupy", or another registered engine; None takes the configuration's.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    MatrixProfile
        `distances` and `indices` of shape (n_windows,), or (n_windows, k) for k > 1; with `sides`
        also `left` and `right`.

    Raises
    ------
    ValueError
        If a series is no 1-D array or shorter than the window, or `sides` is asked for with `b`.

    See Also
    --------
    skts.MotifFinder : Motifs and discords of one or many series, as an estimator.

    Notes
    -----
    A window is constant when its range is at most 2^-40 of its largest magnitude, or at most
    2^-500. Two constant windows are at distance 0, a constant and another one at ``sqrt(window)``.
    Of equally near neighbours the earliest is returned. A distance is the norm of the difference of
    two normalised windows. It is computed in float64 from the points of these windows alone, and so
    is the same on every engine.

    With a `time_limit` the pairs are compared block by block, in an order in which each place of
    the series soon meets others all over it. Which blocks are done in time depends on the machine.
    A window that was compared with none, or (on a GPU) with none but such as correlate negatively,
    may have no neighbour yet. All is computed in this process, whatever the back end of joblib.

    References
    ----------
    .. [1] Yeh et al. "Matrix Profile I: All Pairs Similarity Joins for Time Series". ICDM 2016.
    .. [2] Zimmerman et al. "Matrix Profile XIV: Scaling Time Series Motif Discovery with GPUs to
       Break a Quintillion Pairwise Comparisons a Day and Beyond". SoCC 2019.

    Examples
    --------
    >>> from skts.motifs import matrix_profile
    >>> x = [0, 1, 3, 2, 9, 4, 1, 1, 2, 4, 3, 0]
    >>> profile = matrix_profile(x, window=4)
    >>> profile.indices
    array([7, 6, 0, 8, 8, 1, 1, 0, 3])
    >>> profile.distances.round(2)
    array([0.  , 0.81, 1.16, 0.99, 2.58, 3.09, 0.81, 0.  , 0.99])
    """
    if b is not None and sides:
        raise ValueError(
            "sides=True asks for earlier and later windows of one series; b is another."
        )
    (pool, other), length = _lines({"a": a, "b": b}, window)
    work = Join(
        pool,
        other,
        length,
        exclusion=exclusion_of(exclusion, length, pool.points.size),
        n_neighbors=int(k),
        sides=bool(sides),
        normalize=bool(normalize),
        precision=precision,
    )
    if time_limit is not None:
        work = TimedJoin.of(work, time_limit)
    found = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)

    def _record(one: Any, **more: Any) -> MatrixProfile:
        column = 0 if k == 1 else slice(None)
        return MatrixProfile(
            one.distances[:, column], one.indices[:, column], **more, share=found.share
        )

    if not sides:
        return _record(found)
    return _record(found, left=_record(found.left), right=_record(found.right))


@takes_plain
@checks_arguments(
    _COMMON
    | {
        "n_motifs": [_POSITIVE],
        "max_matches": [Interval(Integral, 2, None, closed="left"), None],
        "radius_factor": [_FACTOR],
        "separation": APART,
        "algorithm": [StrOptions({"auto", "profile", "mk"})],
        "n_references": [_POSITIVE],
        "random_state": ["random_state"],
        "radius": [_FACTOR, Hidden(StrOptions({"deprecated"}))],
    },
)
def motifs(
    a: ArrayLike,
    *,
    window: float,
    n_motifs: int = 3,
    max_matches: int | None = 10,
    radius_factor: float = 2.0,
    exclusion: float | None = None,
    separation: float | None = None,
    normalize: bool = True,
    algorithm: Literal["auto", "profile", "mk"] = "auto",
    n_references: int = 10,
    random_state: int | np.random.RandomState | None = None,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    radius: Any = "deprecated",
) -> list[Motif]:
    """Find the patterns that repeat best in a series.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        The series. Windows that hold NaN or infinity are left out.
    window : int or float
        Length of the subsequences that are compared (not a band of warping), in points; or a
        fraction of the series, rounded up.
    n_motifs : int, default 3
        How many motifs at most. The k-th is the nearest pair among the windows that do not start
        within `separation` of an occurrence of an earlier one.
    max_matches : int or None, default 10
        Occurrences that are returned of each motif, best first; None is all.
    radius_factor : float, default 2.0
        Occurrences lie within this many times the distance of the pair from the first window of the
        pair; at least 1. If the distance is 0, they lie within 1e-7 sqrt(window), or, without
        z-normalisation, within 1e-7 times the norm of the window.
    exclusion : int, float or None, default None
        Windows that start at most this many points apart are neither a pair nor two occurrences of
        one motif; a float is a fraction of the window, rounded up, and None means a quarter.
    separation : int, float or None, default None
        Windows that start at most this many points from an occurrence of a motif are left out of
        the search for further motifs; a float is a fraction of the window, rounded up. None means
        half of the window, or `exclusion` if that is more.
    normalize : bool, default True
        Whether windows are z-normalised.
    algorithm : {"auto", "profile", "mk"}, default "auto"
        "profile" computes the distance of every window to its nearest neighbour, "mk" measures
        distances to a few reference windows, and then only the pairs that these do not rule out.
        "auto" begins with MK if there are 131,072 windows or more, and changes to the profile as
        soon as that is likely to be faster, judged by the pairs that are left. All three find the
        same motifs.
    n_references : int, default 10
        Reference windows of MK.
    random_state : int, RandomState or None, default None
        Draws the reference windows; the motifs do not depend on it.
    engine : str or None, default None
        "auto", "numba", "cupy", or another registered engine; None takes the configuration's.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.
    radius : float
        The former name of `radius_factor`.

        .. deprecated:: 0.1
           It will go in 0.2.

    Returns
    -------
    list of Motif
        Best first; fewer than `n_motifs` where no further pair is left.

    Raises
    ------
    ValueError
        If `a` is no 1-D array or shorter than the window; if there is no pair at all, as no two
        finite windows start more than `exclusion` apart.

    See Also
    --------
    skts.MotifFinder : The same for one or many series, as an estimator.

    Examples
    --------
    >>> from skts.motifs import motifs
    >>> x = [5, 0, 1, 3, 2, 9, 4, 4, 1, 1, 2, 4, 3, 0, 7]
    >>> (motif,) = motifs(x, window=4, n_motifs=1)
    >>> motif.positions
    array([1, 9])
    >>> motif.values
    array([[0., 1., 3., 2.],
           [1., 2., 4., 3.]])
    """
    factor = renamed("radius", "radius_factor", radius, radius_factor, "motifs")
    windows = _windows(a, window, exclusion, separation, normalize)
    pool = windows.pool
    work: Join | MotifPair = windows.join()
    if algorithm == "mk":
        work = MotifPair(pool, windows.length, windows.exclusion, windows.normalize)
    compute = partial(run, engine=get_engine(engine, work), n_jobs=n_jobs, verbose=verbose)
    if algorithm == "auto" and windows.number < MANY:
        algorithm = "profile"
    if algorithm == "profile":
        search: PairSearch = ProfileSearch(windows, compute, compute(work))
    else:
        kind = PairSearch if algorithm == "mk" else EitherSearch
        search = kind(windows, compute, n_references, check_random_state(random_state))
    found = find_motifs([search], n_motifs, max_matches, factor)
    if not found:
        raise_no_pair("motif", windows)
    return found


@takes_plain
@checks_arguments(_COMMON | {"n_discords": [_POSITIVE], "separation": APART})
def discords(
    a: ArrayLike,
    *,
    window: float,
    n_discords: int = 3,
    exclusion: float | None = None,
    separation: float | None = None,
    normalize: bool = True,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Discord]:
    """Find the windows of a series that are most unlike all others.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        The series. Windows that hold NaN or infinity are left out.
    window : int or float
        Length of the subsequences that are compared (not a band of warping), in points; or a
        fraction of the series, rounded up.
    n_discords : int, default 3
        How many discords at most.
    exclusion : int, float or None, default None
        Windows that start at most this many points apart are no neighbours; a float is a fraction
        of the window, rounded up, and None means a quarter.
    separation : int, float or None, default None
        Windows that start at most this many points from a discord are left out of the search for
        further discords; a float is a fraction of the window, rounded up. None means half of the
        window, or `exclusion` if that is more.
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
    list of Discord
        The window whose nearest neighbour is farthest comes first. A window without any neighbour
        is no discord.

    Raises
    ------
    ValueError
        If `a` is no 1-D array or shorter than the window; if no window has a neighbour, as no two
        finite windows start more than `exclusion` apart.

    See Also
    --------
    matrix_profile : The distance of every window to its nearest neighbour.

    Examples
    --------
    >>> from skts.motifs import discords
    >>> x = [0, 1, 2, 1] * 3 + [0, 2, 1, 3] + [0, 1, 2, 1] * 3
    >>> found = discords(x, window=4, n_discords=2)
    >>> [(discord.position, round(discord.distance, 2)) for discord in found]
    [(12, 2.34), (15, 1.61)]
    """
    windows = _windows(a, window, exclusion, separation, normalize)
    profile = run(windows.join(), engine=engine, n_jobs=n_jobs, verbose=verbose)
    found = find_discords([windows], [profile], n_discords)
    if not found:
        raise_no_pair("discord", windows)
    return found


def _windows(
    a: ArrayLike,
    window: float,
    exclusion: float | None,
    separation: float | None,
    normalize: bool,
) -> WindowSet:
    """The windows of one series."""
    (pool, _), length = _lines({"a": a}, window)
    near = exclusion_of(exclusion, length, pool.points.size)
    apart = separation_of(separation, near, length, pool.points.size)
    return WindowSet(pool, length, near, apart, bool(normalize))


def _lines(series: dict[str, ArrayLike | None], window: float) -> tuple[list[Any], int]:
    """One or two series as lines, None for one that is not there; and the points of a window."""
    lines = [None if given is None else one_line(given, name) for name, given in series.items()]
    sizes = [line.points.size for line in lines if line is not None]
    length = length_of(window, min(sizes))
    for name, size in zip(series, sizes, strict=False):
        if size < length:
            raise ValueError(
                f"{name} has {size} time points; that is less than one window of {length}."
            )
    return [*lines, None][:2], length


def one_line(given: Any, name: str) -> ConcatenatedSeries:
    """Make a line of one series.

    Parameters
    ----------
    given : array-like of shape (n_timepoints,)
        The series.
    name : str
        What messages call it.

    Returns
    -------
    ConcatenatedSeries
        The line.

    Raises
    ------
    ValueError
        If it is not one series.
    """
    try:
        shape = given.shape if hasattr(given, "shape") else np.shape(given)
    except ValueError:
        raise ValueError(
            f"{name} has rows of several lengths; one series of shape (n_timepoints,) is needed "
            "here."
        ) from None
    if len(shape) != 1:
        advice = f": write {name}.ravel()" if len(shape) == 2 and 1 in shape else ""
        raise ValueError(
            f"{name} has shape {shape}; one series of shape (n_timepoints,) is needed here{advice}."
        )
    if 0 in shape:
        raise ValueError(f"{name} is empty: a minimum of 1 time point is required.")
    (points,) = check_univariate([given], input_name=name)
    return ConcatenatedSeries.of([points])
