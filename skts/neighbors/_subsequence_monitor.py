"""Watching a stream for patterns, as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._metrics import COST, WINDOW
from .._parameters import N_JOBS, checks_parameters
from .._scalars import takes_plain
from .._validation import as_host, check_more_points, check_series, refuse_times_as_series
from ..engines import (
    EveryWindow,
    LongSeries,
    SubsequenceNeighbors,
    Warping,
    exclusion_points,
    get_engine,
)
from ._subsequence_search import (
    SearchMixin,
    _engine_of,
    _search_warping,
    _without_padding,
    _work_under,
)
from ._undecided import Undecided

__all__ = ["SubsequenceMonitor"]


class SubsequenceMonitor(SearchMixin, BaseEstimator):
    """Watch a stream for patterns: report each window that is within a radius of one of them.

    `fit` keeps the patterns, `update` takes the points of the stream as they come and returns the
    new matches. However the stream is cut, all matches together are those that `SubsequenceSearch`
    finds in it. Patterns and streams of several channels are compared in all of them, along one
    warping path. Answers are exact, and the same on every engine.

    Parameters
    ----------
    radius : float or array-like of shape (n_patterns,), default 1.0
        Largest distance of a match; an array has one for each pattern.
    metric : {"dtw", "dog_keeper", "euclidean"}, default "dtw"
        How a window and a pattern are compared: "dtw" adds the costs along a warping path,
        "dog_keeper" takes the largest of them, "euclidean" compares point by point.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points under warping, summed over channels. The distance is the square
        root of the accumulated squared costs, or the accumulated absolute costs. A function, or a
        `skts.metrics.PointCost`, is as in `SubsequenceSearch`, and as slow: it takes a point of the
        pattern and one of a window.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence (which is that of the pattern): the
        largest distance in time between two matched points. An int counts points; a float is a
        fraction of the pattern, rounded up. 0 allows no warping; None sets no limit. Not for
        ``metric="euclidean"``.
    normalize : bool, default True
        Whether each window, and each pattern, is z-normalised (population deviation), each channel
        by itself.
    exclusion : int, float or None, default None
        Matches of one pattern start more than this many points apart; a float is a fraction of the
        pattern, rounded up, and None means a quarter. 0 reports every window within the radius.
    max_points : int, default 1_000_000
        How many of the last points may matter for a match. A window that is still undecided after
        half as many, because each window near it had a nearer one behind it, is decided by what has
        been seen. More than twice the exclusion.
    precision : {"auto", "float64"}, default "auto"
        "auto" is exact: the GPU searches in float32 and certifies the windows that may match.
        "float64" searches in float64 throughout. The CPU searches in float64, so that both are the
        same there.
    engine : str, default "auto"
        "auto", "numba", "cupy", or another registered engine.
    n_jobs : int or None, default None
        Threads on the CPU. None takes the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``, or else all threads that Numba has; -1 takes all of
        these.
    verbose : int, default 0
        1 shows a progress bar in long work, 2 also the plan: engine, parts, memory.

    Attributes
    ----------
    radii_ : ndarray of shape (n_patterns,), float64
        The radius of each pattern.
    n_points_ : int
        Points of the stream so far.
    n_features_in_ : int
        Points of the patterns; not set after `fit` on a list.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of the data given to `fit`, where they are all strings.
    n_channels_ : int
        Channels of the patterns, and of the stream.
    n_samples_fit_ : int
        Number of patterns.
    engine_ : str
        The engine that `fit` chose for an update as long as the longest pattern.

    See Also
    --------
    SubsequenceSearch : Search a recording that is there as a whole.
    MotifFinder : Find patterns that occur more than once in a stream, without a query.

    Notes
    -----
    `SubsequenceSearch` keeps series, and is asked about queries; here patterns are kept, and a
    stream goes by. In scikit-learn `fit` takes what is kept: so this is a class of its own.

    With ``exclusion=0`` the matches are those of `SubsequenceSearch.radius_neighbors`, each
    reported with its last point. Otherwise they are those that `SubsequenceSearch.kneighbors` takes
    among the windows within the radius: the best, then the best of those that start far enough from
    it, and so on. A window is reported as soon as nothing that follows can change this: no earlier
    than `exclusion` points after its last one, and later only while each window near it has a
    nearer one behind it. The matches of a pattern are reported in the order of time.

    A window that holds NaN or infinity, in any channel, matches nothing: a gap of the recording is
    best given as NaN. Constant windows and patterns normalise to zeros, and so do such channels of
    them.

    Memory: one point less than the longest pattern, and what is not decided, mostly nothing. At
    most ``17 * max_points`` bytes for each pattern. An update that fails or is interrupted leaves
    the estimator as it was. Parameters count as they were in `fit`, but for `engine`, `n_jobs` and
    `verbose`.

    References
    ----------
    .. [1] Sart, Mueen, Najjar, Keogh, Niennattrakul. "Accelerating Dynamic Time Warping Subsequence
       Search with GPUs and FPGAs". ICDM 2010, section I.
    .. [2] Rakthanmanon et al. "Searching and Mining Trillions of Time Series Subsequences under
       Dynamic Time Warping". KDD 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skts import SubsequenceMonitor
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> bump = np.hanning(20)
    >>> x[50:70] += 8 * bump
    >>> x[200:220] += 100 + 20 * bump
    >>> monitor = SubsequenceMonitor(radius=1.5, window=0.1).fit([bump])
    >>> for start in range(0, 300, 60):
    ...     distances, starts = monitor.update(x[start : start + 60])
    ...     print(monitor.n_points_, starts[0])
    60 []
    120 [49]
    180 []
    240 [200]
    300 []
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "radius": [Interval(Real, 0, None, closed="both"), "array-like"],
        "metric": [StrOptions({"dtw", "dog_keeper", "euclidean"})],
        "cost": COST,
        "window": WINDOW,
        "normalize": ["boolean"],
        "exclusion": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
            None,
        ],
        "max_points": [Interval(Integral, 2, 2**40, closed="both")],
        "precision": [StrOptions({"auto", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    n_points_: int
    _recent: np.ndarray
    _undecided: list[Undecided]

    def __init__(
        self,
        radius: float | ArrayLike = 1.0,
        *,
        metric: Literal["dtw", "dog_keeper", "euclidean"] = "dtw",
        cost: Literal["squared", "absolute"] | Callable[[float, float], float] = "squared",
        window: float | None = None,
        normalize: bool = True,
        exclusion: float | None = None,
        max_points: int = 1_000_000,
        precision: Literal["auto", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.metric = metric
        self.cost = cost
        self.window = window
        self.normalize = normalize
        self.exclusion = exclusion
        self.max_points = max_points
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Keep the patterns; a new stream begins.

        Parameters
        ----------
        X : array-like of shape (n_patterns, n_points) or (n_patterns, n_channels, n_points)
            Patterns, NaN at the end is padding; or a list of arrays of any lengths.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : SubsequenceMonitor
            The fitted estimator.

        Raises
        ------
        ValueError
            If a pattern holds NaN or infinity, patterns have different numbers of channels, there
            is not one radius for each, `max_points` is too small for the exclusion, or options
            contradict each other.
        """
        get_engine(self.engine)
        _search_warping(self.metric, self.cost, self.window)
        series = check_series(X, estimator=self)
        patterns = _without_padding(series.freeze())
        refuse_times_as_series(X, patterns)
        window = self.window
        if isinstance(window, Integral):
            # no band is wider than the longest pattern
            window = min(int(window), series.n_timepoints)
        warping = _search_warping(self.metric, self.cost, window)
        radii = _radii(self.radius, len(patterns))
        lengths = [pattern.shape[-1] for pattern in patterns]
        exclusions = [exclusion_points(self.exclusion, length) for length in lengths]
        for row, exclusion in enumerate(exclusions):
            if exclusion >= self.max_points // 2:
                raise ValueError(
                    f"max_points={self.max_points} is not enough for pattern {row}, whose matches "
                    f"start more than {exclusion} points apart: at least {2 * exclusion + 2}."
                )
        watch = _Watch(
            *(patterns, radii, exclusions, self.max_points // 2),
            *(warping, bool(self.normalize), self.precision),
        )
        sample = np.zeros((*patterns[0].shape[:-1], 2 * watch.longest))
        engine = _engine_of(self.engine, watch.search(range(len(patterns)), sample))
        self._remember_form(X, series)
        self._watch, self._groups = watch, watch.groups()
        self._checked = _Checked.of(self)
        self.radii_ = radii
        self.n_samples_fit_ = len(patterns)
        self.engine_ = engine.name
        self._begin()
        return self

    @takes_plain
    def update(self, points: ArrayLike, *, final: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Take the next points of the stream, and return the new matches.

        Parameters
        ----------
        points : array-like of shape (n_points,) or (n_channels, n_points)
            Points that follow those of earlier calls, any number of them, also none; NaN and
            infinities may be anywhere. Those of one channel are 1-D.
        final : bool, default False
            Whether the stream ends with these points: then nothing waits for later ones, and the
            next call begins another stream.

        Returns
        -------
        distances : ndarray of shape (n_patterns,) of ndarray of shape (n_matches,)
            Distances of the new matches of each pattern.
        starts : ndarray of shape (n_patterns,) of ndarray of shape (n_matches,), int64
            Where they start, counted from the first point of the stream; ascending, also from one
            call to the next.

        Raises
        ------
        ValueError
            If `points` is not 1-D, or does not have the channels of the patterns.
        """
        check_is_fitted(self)
        if self._checked != _Checked.of(self):
            self._validate_params()  # set_params may have come after fit
            self._checked = _Checked.of(self)
        more = check_more_points(points, "a stream", self, self.n_channels_)
        if self.n_channels_ == 1:
            (more,) = more
        if not isinstance(final, bool):
            raise TypeError(f"final={final!r} is neither True nor False.")
        line, n_new = np.concatenate([self._recent, more], axis=-1), more.shape[-1]
        stop = self.n_points_ + n_new
        undecided = list(self._undecided)
        distances, starts = (np.empty(len(undecided), object) for _ in range(2))
        for row, (places, values) in enumerate(self._find(line, stop, n_new)):
            waits = places.size or undecided[row].starts.size
            if waits and self._watch.exclusions[row]:
                decided = self._watch.decide(
                    row, undecided[row].add(places, values), (stop - n_new, stop), final
                )
                places, values, undecided[row] = decided
            starts[row], distances[row] = places, values
        self._undecided = undecided
        self.n_points_ = stop
        self._recent = line[..., max(0, line.shape[-1] - self._watch.longest + 1) :].copy()
        if final:
            self._begin()
        return distances, starts

    def _begin(self) -> None:
        """Forget the stream."""
        self.n_points_ = 0
        self._recent = np.empty((*self._watch.patterns[0].shape[:-1], 0))
        self._undecided = [Undecided.none() for _ in self._watch.patterns]

    def _find(self, line: np.ndarray, stop: int, n_new: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Starts and distances of the new windows within the radius of each pattern, by start."""
        nothing = np.empty(0, np.int64), np.empty(0)
        found = [nothing] * self.n_samples_fit_
        for group in self._groups:
            # windows that end in the new points
            part = line[..., max(0, line.shape[-1] - n_new - group.length + 1) :]
            if n_new == 0 or part.shape[-1] < group.length:
                continue
            answer = self._matches(self._watch.search_group(group, part))
            for row, one in zip(group.rows, answer, strict=True):
                if one.distances.size:
                    places = one.positions[:, 1]
                    order = np.argsort(places)
                    found[row] = places[order] + (stop - part.shape[-1]), one.distances[order]
        return found


class _Checked:
    """Parameters that have been checked, so that `update`, called often, checks new ones alone.

    A copy, and what a pickle brings, knows of none.
    """

    def __init__(self, *parameters: Any) -> None:
        self.parameters = parameters

    @classmethod
    def of(cls, monitor: SubsequenceMonitor) -> _Checked:
        """The parameters of a monitor."""
        return cls(*(getattr(monitor, name) for name in monitor._parameter_constraints))

    def __eq__(self, other: object) -> bool:
        """Whether all parameters are the same objects."""
        if not isinstance(other, _Checked) or len(self.parameters) != len(other.parameters):
            return False
        return all(a is b for a, b in zip(self.parameters, other.parameters, strict=True))

    __hash__ = None  # type: ignore[assignment]  # by their places, which change

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without parameters."""
        return type(self), ()


class _Group(NamedTuple):
    """Patterns of one length, which have the same windows: their rows, and their radii."""

    length: int
    rows: tuple[int, ...]
    patterns: tuple[np.ndarray, ...]
    radii: np.ndarray


class _Watch(NamedTuple):
    """Patterns, and how matches are found and chosen: what `fit` was asked for."""

    patterns: tuple[np.ndarray, ...]
    radii: np.ndarray
    exclusions: list[int]
    grid: int
    warping: Warping
    normalize: bool
    precision: str

    @property
    def longest(self) -> int:
        """Points of the longest pattern."""
        return max(pattern.shape[-1] for pattern in self.patterns)

    def groups(self) -> list[_Group]:
        """Patterns by their length."""
        rows: dict[int, list[int]] = {}
        for row, pattern in enumerate(self.patterns):
            rows.setdefault(pattern.shape[-1], []).append(row)
        return [self.group(length, some) for length, some in rows.items()]

    def group(self, length: int, rows: Iterable[int]) -> _Group:
        """Some patterns, the longest of which has so many points."""
        rows = tuple(rows)
        patterns = tuple(self.patterns[row] for row in rows)
        return _Group(length, rows, patterns, self.radii[list(rows)])

    def search(self, rows: Iterable[int], points: np.ndarray) -> SubsequenceNeighbors | EveryWindow:
        """The work of finding all windows within the radius of some patterns."""
        return self.search_group(self.group(self.longest, rows), points)

    def search_group(self, group: _Group, points: np.ndarray) -> SubsequenceNeighbors | EveryWindow:
        """The same, of patterns that have been put together."""
        search = SubsequenceNeighbors(
            group.patterns,
            LongSeries((points,)),
            Warping(),
            self.normalize,
            n_neighbors=None,
            limits=group.radii,
            precision=self.precision,
        )
        return _work_under(self.warping, search)

    def decide(
        self, row: int, undecided: Undecided, ends: tuple[int, int], final: bool
    ) -> tuple[np.ndarray, np.ndarray, Undecided]:
        """Starts and distances of the matches that can be reported now, and what is left.

        Points from the first of `ends` up to the second are new. Windows that have waited too long
        are decided where the number of windows seen is a multiple of `grid`, and so independently
        of how the stream was cut.
        """
        exclusion, length = self.exclusions[row], self.patterns[row].shape[-1]
        before, seen = (max(0, end - length + 1) for end in ends)
        starts, distances = [np.empty(0, np.int64)], [np.empty(0)]

        def decide(some: Undecided, stop: float, oldest: float, known: float) -> Undecided:
            reported, left = some.decide(exclusion, stop, oldest, known)
            starts.append(some.starts[reported])
            distances.append(some.distances[reported])
            return left

        at, known = (before // self.grid + 1) * self.grid, before
        if at > seen and not final:
            reported, left = undecided.decide(exclusion, seen, -np.inf, known)
            return undecided.starts[reported], undecided.distances[reported], left
        undecided, later = undecided.split(min(at, seen))
        while at <= seen and undecided.starts.size + later.starts.size:
            if undecided.starts.size:
                undecided = decide(undecided, at, at - self.grid, known)
                known = at
                at += self.grid
            else:
                at = (int(later.starts[0]) // self.grid + 1) * self.grid
            some, later = later.split(min(at, seen))
            undecided = undecided.add(some.starts, some.distances)
        oldest = np.inf if final else -np.inf
        undecided = decide(undecided, np.inf if final else seen, oldest, known)
        return np.concatenate(starts), np.concatenate(distances), undecided


def _radii(radius: float | ArrayLike, n_patterns: int) -> np.ndarray:
    """The radius of each pattern."""
    if isinstance(radius, Real):
        return np.full(n_patterns, float(radius))
    try:
        given = as_host(radius, "radius")
        if any(isinstance(one, bool | np.bool_) for one in np.array(given, object).flat):
            raise TypeError
        radii = np.array(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"radius={radius!r}: it must be a number, or one for each pattern."
        ) from None
    if radii.shape != (n_patterns,):
        raise ValueError(
            f"radius has shape {radii.shape}, but X has {n_patterns} patterns: give one number, or "
            "one for each pattern."
        )
    wrong = np.flatnonzero(~(radii >= 0))
    if wrong.size:
        raise ValueError(f"Expected radius >= 0. Got {radii[wrong[0]]} for pattern {wrong[0]}")
    radii.flags.writeable = False
    return radii
