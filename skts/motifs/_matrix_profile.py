"""Functions for single series: the matrix profile, motifs and discords."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, RealNotInt, StrOptions

from .._log import counted
from .._parameters import N_JOBS, checks_arguments, renamed
from .._scalars import takes_plain
from .._validation import check_multivariate, check_univariate, form_of
from ..engines import (
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Join,
    MotifPair,
    TimedJoin,
    check_size,
    get_engine,
    run,
)
from ._channels import (
    ChannelSearch,
    ChannelWindows,
    channels_of_discord,
    chosen_dimensions,
    included_channels,
    one_dimension,
)
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
_CHANNELS = {"dimensions": [_POSITIVE, None], "include": ["array-like", None]}
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
        "dimensions": [_POSITIVE, "array-like", None],
        "include": ["array-like", None],
        "counting": [StrOptions({"nearest", "farthest"})],
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
    dimensions: int | ArrayLike | None = None,
    include: ArrayLike | None = None,
    counting: Literal["nearest", "farthest"] = "nearest",
    time_limit: float | None = None,
    precision: Literal["auto", "float32", "float64"] = "auto",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> MatrixProfile:
    """Find the nearest neighbours of every window of a series, in itself or in another one.

    The distance of two windows is the Euclidean distance after each has been z-normalised by its
    own mean and population deviation; it lies between 0 and ``2 sqrt(window)``. Windows of several
    channels are compared by the channels in which they are nearest (mSTAMP [3]_).

    Parameters
    ----------
    a : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series whose windows look for neighbours. A window that holds NaN or infinity has no
        neighbour, and is the neighbour of none; of several channels, it takes no part in that
        channel. A memory map is not copied.
    b : array-like of shape (n_timepoints_b,) or (n_channels, n_timepoints_b) or None, default None
        The series in which they look, of as many channels; None is `a` itself.
    window : int or float
        Length of the subsequences that are compared (not a band of warping), in points; or a
        fraction of the shorter series, rounded up.
    exclusion : int, float or None, default None
        Within `a` itself, windows that start at most this many points apart are no neighbours; a
        float is a fraction of the window, rounded up, and None means a quarter. With `b` all pairs
        count.
    k : int, default 1
        Neighbours of each window. Where there are fewer, the others have an infinite distance and
        the index -1.
    sides : bool, default False
        Whether to also find the nearest neighbour among earlier windows and among later ones; not
        with `b`.
    normalize : bool, default True
        Whether windows are z-normalised. Otherwise distances are plain Euclidean ones.
    dimensions : int, array-like of int or None, default None
        Of several channels, how many count. The distance of two windows is then the mean of their
        distances in so many channels, chosen for each pair anew. Each number makes a profile of its
        own; None is all numbers, from that of the channels of `include`, or 1, to all channels.
    include : array-like of int or None, default None
        Channels that count for every pair.
    counting : {"nearest", "farthest"}, default "nearest"
        Whether of the other channels those count in which two windows are nearest to each other, or
        those in which they are farthest: the profile for discords.
    time_limit : float or None, default None
        Seconds after which no further part of the pairs is begun. Means and deviations of all
        windows, and the first part, are computed in any case: without them there is no answer.
        Then `share` of the result says how many of the pairs were compared, and distances are upper
        bounds: those to the nearest window that was compared. None compares all pairs. For series
        of one channel.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" is exact: the search may run in float32, with known error, and every answer is
        certified in float64. "float32" leaves out the certificate, "float64" searches in float64.
        Several channels are certified in any case.
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
        also `left` and `right`. Of a 2-D array they have shape (n_dimensions, n_windows), a row for
        each of its `dimensions`, or (n_windows,) for a single number.

    Raises
    ------
    ValueError
        If a series is neither 1-D nor 2-D, or shorter than the window; if `sides` is asked for with
        `b`; if numbers of channels, or channels, are not those of the series.

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
    .. [3] Yeh, Kavantzas, Keogh. "Matrix Profile VI: Meaningful Multidimensional Motif Discovery".
       ICDM 2017.

    Examples
    --------
    >>> from skts.motifs import matrix_profile
    >>> x = [0, 1, 3, 2, 9, 4, 1, 1, 2, 4, 3, 0]
    >>> profile = matrix_profile(x, window=4)
    >>> profile.indices
    array([7, 6, 0, 8, 8, 1, 1, 0, 3])
    >>> profile.distances.round(2)
    array([0.  , 0.81, 1.16, 0.99, 2.58, 3.09, 0.81, 0.  , 0.99])

    Two channels: by the nearer one, and by both.

    >>> y = [2, 5, 1, 0, 3, 3, 8, 2, 6, 1, 0, 4]
    >>> profile = matrix_profile([x, y], window=4)
    >>> profile.indices
    array([[7, 8, 0, 8, 6, 7, 1, 0, 1],
           [7, 6, 7, 8, 2, 7, 1, 0, 1]])
    """
    if b is not None and sides:
        raise ValueError(
            "sides=True asks for earlier and later windows of one series; b is another."
        )
    (lines, others), length = _channel_lines({"a": a, "b": b}, window)
    pool = lines[0]
    options: dict[str, Any] = {
        "exclusion": exclusion_of(exclusion, length, pool.points.size),
        "sides": bool(sides),
        "normalize": bool(normalize),
        "precision": precision,
    }
    if _n_axes(a) == 2:
        if k != 1:
            raise ValueError(f"k={k}: several neighbours of a window are those of one channel.")
        if time_limit is not None:
            raise ValueError(f"time_limit={time_limit}: a limit is for series of one channel.")
        included = included_channels(include, len(lines))
        chosen = chosen_dimensions(dimensions, included, len(lines))
        rule = ChannelRule(tuple(sorted(set(chosen))), included, counting == "farthest")
        work: Join = ChannelJoin.of(lines, others, length, rule, **options)
        rows = [rule.dimensions.index(number) for number in chosen]
    else:
        chosen = chosen_dimensions(dimensions, included_channels(include, 1), 1)
        other = None if others is None else others[0]
        n_windows, n_places = (
            line.points.size - length + 1 for line in (pool, pool if other is None else other)
        )
        if k > n_places:
            check_size(16 * n_windows * int(k) * (3 if sides else 1), (n_windows, int(k)))
        work = Join(pool, other, length, n_neighbors=min(int(k), n_places), **options)
        if time_limit is not None:
            work = TimedJoin.of(work, time_limit)
        rows = []
    found = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)

    def _record(one: Any, **more: Any) -> MatrixProfile:
        if rows:
            at: Any = rows[0] if isinstance(dimensions, Integral) else rows
            if at == list(range(len(lines))):
                at = slice(None)
            distances, indices = (np.ascontiguousarray(values.T[at]) for values in one[:2])
            return MatrixProfile(distances, indices, **more, dimensions=np.array(chosen))
        column: Any = 0 if k == 1 else slice(None)
        distances, indices = _filled(one[0], np.inf, int(k)), _filled(one[1], -1, int(k))
        return MatrixProfile(distances[:, column], indices[:, column], **more, share=found.share)

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
        **_CHANNELS,
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
    dimensions: int | None = None,
    include: ArrayLike | None = None,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    radius: Any = "deprecated",
) -> list[Motif]:
    """Find the patterns that repeat best in a series.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series. Windows that hold NaN or infinity are left out; of several channels, in that
        channel.
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
    dimensions : int or None, default None
        Of several channels, how many count: those in which two windows are nearest. None is
        all.
    include : array-like of int or None, default None
        Channels that count for every pair.
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
        If `a` is neither 1-D nor 2-D, or shorter than the window; if there is no pair at all, as no
        two finite windows start more than `exclusion` apart; if channels are asked for that there
        are not, or MK for several of them.

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
    windows = _windows(a, window, exclusion, separation, normalize, (dimensions, include, False))
    pool = windows.pool
    if _n_axes(a) == 2:
        if algorithm == "mk":
            raise ValueError("algorithm='mk' is for series of one channel.")
        run_one = partial(run, engine=engine, n_jobs=n_jobs, verbose=verbose)
        channel_search = ChannelSearch(windows, run_one, run_one(windows.join()))
        found = find_motifs([channel_search], n_motifs, max_matches, factor)
        if not found:
            raise_no_pair("motif", windows)
        return found
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
@checks_arguments(_COMMON | _CHANNELS | {"n_discords": [_POSITIVE], "separation": APART})
def discords(
    a: ArrayLike,
    *,
    window: float,
    n_discords: int = 3,
    exclusion: float | None = None,
    separation: float | None = None,
    normalize: bool = True,
    dimensions: int | None = None,
    include: ArrayLike | None = None,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Discord]:
    """Find the windows of a series that are most unlike all others.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series. Windows that hold NaN or infinity are left out; of several channels, in that
        channel.
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
    dimensions : int or None, default None
        Of several channels, how many count: those in which two windows are farthest. None is
        all.
    include : array-like of int or None, default None
        Channels that count for every pair.
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
        If `a` is neither 1-D nor 2-D, or shorter than the window; if no window has a neighbour, as
        no two finite windows start more than `exclusion` apart; if channels are asked for that
        there are not.

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
    windows = _windows(a, window, exclusion, separation, normalize, (dimensions, include, True))
    compute = partial(run, engine=engine, n_jobs=n_jobs, verbose=verbose)
    found = find_discords([windows], [compute(windows.join())], n_discords)
    if not found:
        raise_no_pair("discord", windows)
    if _n_axes(a) == 2:
        return [channels_of_discord(windows, compute, discord) for discord in found]
    return found


def _windows(
    a: ArrayLike,
    window: float,
    exclusion: float | None,
    separation: float | None,
    normalize: bool,
    channels: tuple[int | None, Any, bool],
) -> Any:
    """The windows of one series, a `WindowSet` or `ChannelWindows`.

    `channels` says how many of several count, which always do, and whether the farthest do.
    """
    (lines, _), length = _channel_lines({"a": a}, window)
    size = lines[0].points.size
    apart = exclusion_of(exclusion, length, size)
    further = separation_of(separation, apart, length, size)
    first = WindowSet(lines[0], length, apart, further, bool(normalize))
    dimensions, include, worst = channels
    included = included_channels(include, len(lines))
    number = one_dimension(dimensions, included, len(lines))
    if _n_axes(a) == 1:
        return first
    return ChannelWindows(tuple(lines), first, ChannelRule((number,), included, worst))


def _n_axes(given: Any) -> int:
    """How many axes an array has, wherever it lies."""
    return len(given.shape if hasattr(given, "shape") else np.shape(given))


def _filled(values: np.ndarray, value: float, k: int) -> np.ndarray:
    """Values of k neighbours of each window: also of those that no window can have."""
    missing = k - values.shape[1]
    return np.pad(values, ((0, 0), (0, missing)), constant_values=value) if missing else values


def _lines(series: dict[str, ArrayLike | None], window: float) -> tuple[list[Any], int]:
    """One or two series as lines, None for one that is not there; and the points of a window."""
    lines = [None if given is None else one_line(given, name) for name, given in series.items()]
    sizes = [None if line is None else line.points.size for line in lines]
    return [*lines, None][:2], _window_within(dict(zip(series, sizes, strict=True)), window)


def _channel_lines(
    series: dict[str, ArrayLike | None], window: float
) -> tuple[list[tuple[ConcatenatedSeries, ...] | Any], int]:
    """The channels of one series or two as lines, and the points of a window: see `_lines`."""
    lines = [None if given is None else _channels(given, name) for name, given in series.items()]
    sizes = [None if line is None else line[0].points.size for line in lines]
    length = _window_within(dict(zip(series, sizes, strict=True)), window)
    there = [(name, line) for name, line in zip(series, lines, strict=True) if line is not None]
    (first, one), (second, other) = there[0], there[-1]
    if len(one) != len(other):
        raise ValueError(
            f"{first} has {counted(len(one), 'channel')} and {second} has {len(other)}: the "
            "windows of two series are compared channel by channel."
        )
    return [*lines, None][:2], length


def _window_within(sizes: dict[str, int | None], window: float) -> int:
    """Points of a window of series of so many time points, None for one that is not there."""
    length = length_of(window, min(size for size in sizes.values() if size is not None))
    for name, size in sizes.items():
        if size is not None and size < length:
            raise ValueError(
                f"{name} has {size} time points; that is less than one window of {length}."
            )
    return length


def one_line(given: Any, name: str) -> ConcatenatedSeries:
    """Make a line of one series.

    Parameters
    ----------
    given : array-like of shape (n_timepoints,), or a data frame of one column
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
    needed = "one series of shape (n_timepoints,) is needed here"
    shape = _shape(given, name, needed)
    # a column of a frame is a series, with a row for each time point
    if len(shape) != 1 and not (len(shape) == 2 and shape[0] == 1 and hasattr(given, "columns")):
        advice = f": write {name}.ravel()" if len(shape) == 2 and 1 in shape else ""
        raise ValueError(f"{name} has shape {shape}; {needed}{advice}.")
    if 0 in shape:
        raise ValueError(f"{name} is empty: a minimum of 1 time point is required.")
    (points,) = check_univariate([given], input_name=name)
    return ConcatenatedSeries.of([points])


def _channels(given: Any, name: str) -> tuple[ConcatenatedSeries, ...]:
    """The channels of one series, each as a line."""
    needed = "one series of shape (n_timepoints,) or (n_channels, n_timepoints) is needed here"
    shape = _shape(given, name, needed)
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} has shape {shape}; {needed}.")
    if len(shape) == 2 and shape[1] == 1 < shape[0]:
        raise ValueError(f"{name} has shape {shape}; {needed}: write {name}.ravel().")
    if 0 in shape:
        raise ValueError(f"{name} is empty: a minimum of 1 time point is required.")
    (channels,) = check_multivariate([given], input_name=name)
    return tuple(ConcatenatedSeries.of([points]) for points in channels)


def _shape(given: Any, name: str, needed: str) -> tuple[int, ...]:
    """The shape of one series in any form, wherever it lies."""
    (given,) = form_of([given])
    try:
        shape: tuple[int, ...] = given.shape if hasattr(given, "shape") else np.shape(given)
    except ValueError:
        raise ValueError(f"{name} has rows of several lengths; {needed}.") from None
    return shape
