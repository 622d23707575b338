"""Search of queries in long series, as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._log import counted
from .._metrics import COST, WINDOW, distance_of
from .._parameters import N_JOBS, checks_parameters
from .._scalars import takes_plain
from .._validation import (
    check_multivariate,
    check_series,
    refuse_channels_of_one_point,
    refuse_other_channels,
    refuse_times_as_series,
)
from ..base import SeriesMixin
from ..engines import (
    Engine,
    EveryWindow,
    LongSeries,
    Series,
    SubsequenceNeighbors,
    Warping,
    WindowMatches,
    check_size,
    get_engine,
)

__all__ = ["SubsequenceSearch"]


class SearchMixin(SeriesMixin):
    """Parts that estimators share which compare windows with queries or patterns."""

    def _matches(self, work: SubsequenceNeighbors | EveryWindow) -> list[WindowMatches]:
        """The matches of each query."""
        found: list[WindowMatches]
        found = work.matches(self._run) if isinstance(work, EveryWindow) else self._run(work)
        return found


class SubsequenceSearch(SearchMixin, BaseEstimator):
    """Find where a query occurs in long series: the windows that are nearest to it.

    Every window of the query's length takes part, z-normalised by its own mean and deviation, so
    that neither level nor scale of the recording matters. Queries and series of several channels
    are compared in all of them, along one warping path. Answers are exact, and the same on every
    engine.

    Parameters
    ----------
    metric : {"dtw", "dog_keeper", "euclidean"}, default "dtw"
        How a window and the query are compared: "dtw" adds the costs along a warping path,
        "dog_keeper" takes the largest of them, "euclidean" compares point by point.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points under warping, summed over channels. The distance is the square
        root of the accumulated squared costs, or the accumulated absolute costs. A function takes a
        point of the query and one of a window in a channel (a `skts.metrics.PointCost` does so on a
        GPU, too); then no root is taken, and every window is compared with the query in full, since
        no bounds of such a cost are known: a search takes far longer.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence (which is that of the query): the largest
        distance in time between two matched points. An int counts points; a float is a fraction of
        the query, rounded up. 0 allows no warping; None sets no limit. Not for
        ``metric="euclidean"``.
    normalize : bool, default True
        Whether each window, and the query, is z-normalised (population deviation), each channel by
        itself.
    exclusion : int, float or None, default None
        Matches of one series that `kneighbors` returns start more than this many points apart; a
        float is a fraction of the query, rounded up, and None means a quarter.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" is exact: the GPU searches in float32 and certifies the windows that may match.
        "float32" leaves out the certificate: distances have about six digits, fewer near 0 and
        where a window is far quieter than the series around it. A point is off by some 1e-7 of the
        range of the series there; a window is computed in float64 where that exceeds an eighth of
        its deviation. "float64" searches in float64 throughout. The CPU searches in float64, so
        that all three are the same there.
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
    n_features_in_ : int
        Time points of the series; not set after `fit` on a list.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of the data given to `fit`, where they are all strings.
    n_channels_ : int
        Channels of the series.
    n_samples_fit_ : int
        Number of series.
    engine_ : str
        The engine that `fit` chose for a search of a short query.

    See Also
    --------
    MotifFinder : Find patterns that occur more than once, without a query.
    skts.metrics.subsequence_distance : Find the best window of a single series.

    Notes
    -----
    A window that holds NaN or infinity, in any channel, matches nothing: gaps of a recording are
    best left as NaN. A window or query is constant when its range is at most 2^-40 of its largest
    magnitude, or at most 2^-500, and normalises to zeros; so does a channel of them.

    A single series is one row: ``fit(x.reshape(1, -1))``. A `numpy.memmap` of float64, alone or in
    a list, is not copied but read piece by piece: its file must not change while the estimator is
    in use.

    References
    ----------
    .. [1] Sart, Mueen, Najjar, Keogh, Niennattrakul. "Accelerating Dynamic Time Warping Subsequence
       Search with GPUs and FPGAs". ICDM 2010, section III.
    .. [2] Rakthanmanon et al. "Searching and Mining Trillions of Time Series Subsequences under
       Dynamic Time Warping". KDD 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skts import SubsequenceSearch
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> bump = np.hanning(20)
    >>> x[50:70] += 8 * bump
    >>> x[200:220] += 100 + 20 * bump
    >>> search = SubsequenceSearch(window=0.1).fit(x.reshape(1, -1))
    >>> distances, positions = search.kneighbors([bump], n_neighbors=2)
    >>> positions[0]
    array([[  0, 200],
           [  0,  49]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions({"dtw", "dog_keeper", "euclidean"})],
        "cost": COST,
        "window": WINDOW,
        "normalize": ["boolean"],
        "exclusion": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
            None,
        ],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        metric: Literal["dtw", "dog_keeper", "euclidean"] = "dtw",
        cost: Literal["squared", "absolute"] | Callable[[float, float], float] = "squared",
        window: float | None = None,
        normalize: bool = True,
        exclusion: float | None = None,
        precision: Literal["auto", "float32", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.cost = cost
        self.window = window
        self.normalize = normalize
        self.exclusion = exclusion
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Keep the series.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. NaN and infinities may be anywhere.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : SubsequenceSearch
            The fitted estimator.

        Raises
        ------
        ValueError
            If series have different numbers of channels, or options contradict each other.
        """
        get_engine(self.engine)
        self._warping()
        given = check_multivariate(X, estimator=self)
        refuse_channels_of_one_point(X, given)
        refuse_times_as_series(X, given)
        n_channels = len(given[0])
        series = LongSeries(tuple(_private(each) for each in given))
        shortest = np.zeros((n_channels, min(8, max(each.shape[1] for each in given))))
        if n_channels == 1:
            shortest = shortest[0]
        engine = _engine_of(self.engine, self._search((shortest,), series))
        self._remember_form(X, Series.of(given[0][np.newaxis]))
        self._series = series
        self.n_samples_fit_ = len(given)
        self.engine_ = engine.name
        return self

    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        Q: ArrayLike | list[ArrayLike],
        n_neighbors: int = ...,
        return_distance: Literal[True] = ...,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        Q: ArrayLike | list[ArrayLike],
        n_neighbors: int = ...,
        *,
        return_distance: Literal[False],
    ) -> np.ndarray: ...
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self, Q: ArrayLike | list[ArrayLike], n_neighbors: int, return_distance: Literal[False]
    ) -> np.ndarray: ...
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self, Q: ArrayLike | list[ArrayLike], n_neighbors: int = ..., return_distance: bool = ...
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray: ...
    @takes_plain
    def kneighbors(
        self, Q: ArrayLike | list[ArrayLike], n_neighbors: int = 1, return_distance: bool = True
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """Find the best matches of each query, more than `exclusion` points apart.

        The best match comes first, then the best of those that start far enough from it, and so on.
        Of equally near windows the one in the first series, then the earliest, counts.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_points) or (n_queries, n_channels, n_points)
            Queries, NaN at the end is padding; or a list of arrays of any lengths.
        n_neighbors : int, default 1
            How many matches.
        return_distance : bool, default True
            Whether to return distances too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Ascending, infinite where there are fewer matches; only with `return_distance`.
        positions : ndarray of shape (n_queries, n_neighbors, 2), int64
            Series (row of `X`) and start in it, -1 where there are fewer matches.

        Raises
        ------
        ValueError
            If a query is longer than every series, holds NaN or infinity, or does not have the
            channels of the series.
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, Integral):
            raise TypeError(
                f"n_neighbors does not take {type(n_neighbors)} value, enter integer value"
            )
        if n_neighbors <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {n_neighbors}")
        queries = self._validate_queries(Q)
        check_size(24 * len(queries) * n_neighbors, (len(queries), n_neighbors))
        found = self._matches(self._search(queries, self._series, n_neighbors))
        distances = np.full((len(queries), n_neighbors), np.inf)
        positions = np.full((len(queries), n_neighbors, 2), -1, np.int64)
        for row, match in enumerate(found):
            distances[row, : match.distances.size] = match.distances
            positions[row, : match.distances.size] = match.positions
        return (distances, positions) if return_distance else positions

    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self, Q: ArrayLike | list[ArrayLike], radius: float, return_distance: Literal[True] = ...
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self, Q: ArrayLike | list[ArrayLike], radius: float, *, return_distance: Literal[False]
    ) -> np.ndarray: ...
    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self, Q: ArrayLike | list[ArrayLike], radius: float, return_distance: Literal[False]
    ) -> np.ndarray: ...
    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self, Q: ArrayLike | list[ArrayLike], radius: float, return_distance: bool = ...
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray: ...
    @takes_plain
    def radius_neighbors(
        self, Q: ArrayLike | list[ArrayLike], radius: float, return_distance: bool = True
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """Find all windows within a distance of each query; they may overlap.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_points) or (n_queries, n_channels, n_points)
            Queries, NaN at the end is padding; or a list of arrays of any lengths.
        radius : float
            Largest distance of a match (itself a distance, no factor).
        return_distance : bool, default True
            Whether to return distances too.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of ndarray of shape (n_matches,)
            Ascending; only with `return_distance`.
        positions : ndarray of shape (n_queries,) of ndarray of shape (n_matches, 2), int64
            Series (row of `X`) and start in it; of equally near windows the first series, then the
            earliest start, comes first.

        Raises
        ------
        ValueError
            If `radius` is negative, a query is longer than every series, holds NaN or infinity, or
            does not have the channels of the series.
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        if isinstance(radius, bool) or not isinstance(radius, Real):
            raise TypeError(f"radius={radius!r} is not a number.")
        if not radius >= 0:
            raise ValueError(f"Expected radius >= 0. Got {radius}")
        queries = self._validate_queries(Q)
        found = self._matches(self._search(queries, self._series, None, float(radius)))
        distances, positions = (np.empty(len(queries), object) for _ in range(2))
        for row, match in enumerate(found):
            distances[row], positions[row] = match
        return (distances, positions) if return_distance else positions

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _warping(self) -> Warping:
        """Options of the distance."""
        return _search_warping(self.metric, self.cost, self.window)

    def _validate_queries(self, Q: ArrayLike | list[ArrayLike]) -> tuple[np.ndarray, ...]:
        """Queries without padding, none longer than all series."""
        series = check_series(Q, input_name="Q", estimator=self)
        refuse_times_as_series(Q, series.values, input_name="Q")
        if series.n_channels != self.n_channels_:
            name, channels = type(self).__name__, counted(self.n_channels_, "channel")
            raise ValueError(f"{name} takes queries of {channels}; Q has {series.n_channels}.")
        refuse_other_channels(Q, self._channel_names, "Q", "the series of fit")
        longest = max(each.shape[-1] for each in self._series.parts)
        too_long = np.flatnonzero(series.lengths > longest)
        if too_long.size:
            raise ValueError(
                f"Query {too_long[0]} has {series.lengths[too_long[0]]} points; the longest series "
                f"has {longest}."
            )
        return _without_padding(series)

    def _search(
        self,
        queries: tuple[np.ndarray, ...],
        series: LongSeries,
        n_neighbors: int | None = 1,
        radius: float = np.inf,
    ) -> SubsequenceNeighbors | EveryWindow:
        """The work of a search, with the options of this estimator."""
        # no two windows are farther apart, and there are no more of them
        exclusion = self.exclusion
        if exclusion is not None:
            exclusion = min(exclusion, max(each.shape[-1] for each in series.parts))
        if n_neighbors is not None:
            n_neighbors = min(n_neighbors, series.n_points)
        warping = self._warping()
        search = SubsequenceNeighbors(
            *(queries, series, Warping(), bool(self.normalize)),
            *(n_neighbors, radius, exclusion),
            precision=self.precision,
        )
        return _work_under(warping, search)


def _work_under(
    warping: Warping, search: SubsequenceNeighbors
) -> SubsequenceNeighbors | EveryWindow:
    """The work of a search under a distance: bounds are known of `Warping` itself."""
    if type(warping) is Warping:
        return replace(search, warping=warping)
    return EveryWindow(search, warping)


def _engine_of(engine: str | None, work: SubsequenceNeighbors | EveryWindow) -> Engine:
    """The engine that does some work."""
    return get_engine(engine, work.sample if isinstance(work, EveryWindow) else work)


def _search_warping(
    metric: str, cost: str | Callable[[float, float], float], window: float | None
) -> Warping:
    """Options of the distance of windows; such as contradict each other are refused."""
    if metric != "euclidean":
        # a band wider than any query is no band, however wide
        if isinstance(window, Integral):
            window = min(int(window), 2**30)
        if callable(cost):
            return distance_of(metric, cost=cost, window=window).warping
        return Warping(metric, cost, window)
    if callable(cost):
        return distance_of(metric, cost=cost, window=window or None).warping
    for name, value, plain in (("cost", cost, "squared"), ("window", window, None)):
        if value != plain and not (name == "window" and value == 0):
            raise ValueError(
                f"{name}={value!r} does not go with metric='euclidean', which has no warping: "
                "use metric='dtw'."
            )
    return Warping(window=0)


def _without_padding(series: Series) -> tuple[np.ndarray, ...]:
    """Series, each an array of its own length; 1-D where they have one channel."""
    at: Any = 0 if series.n_channels == 1 else slice(None)
    return tuple(
        np.ascontiguousarray(values[at, ..., :length])
        for values, length in zip(series.values, series.lengths.tolist(), strict=True)
    )


def _private(points: np.ndarray) -> np.ndarray:
    """A copy of our own that cannot be written to; a memory map is kept by reference.

    One channel becomes 1-D.
    """
    values = Series.of(points[np.newaxis]).freeze().values[0]
    return values[0] if len(values) == 1 else values
