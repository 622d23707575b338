"""Motifs and discords of one or many series, as an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Hidden, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import N_JOBS, checks_parameters, renamed
from .._scalars import takes_plain
from .._validation import (
    check_more_points,
    check_multivariate,
    refuse_channels_of_one_point,
    refuse_times_as_series,
)
from ..base import SeriesMixin
from ..engines import (
    ChannelRule,
    ConcatenatedSeries,
    Join,
    JoinFound,
    Reduction,
    Series,
    TimedJoin,
    WindowDistances,
    get_engine,
)
from ._channels import ChannelSearch, ChannelWindows, channels_of_discord, means_of, one_rule
from ._growth import KnownNeighbors, check_kept, grow_profile, on_line
from ._records import Discord, Motif, SeriesProfile
from ._search import (
    SAME,
    PairSearch,
    ProfileSearch,
    WindowSet,
    exclusion_of,
    find_discords,
    find_motifs,
    norm_of,
    raise_no_pair,
    separation_of,
)
from ._windows import private_line, window_lengths

__all__ = ["MotifFinder"]


class MotifFinder(SeriesMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Find motifs and discords: patterns that repeat, and windows that are unlike all others.

    A motif is the pair of windows that are nearest to each other, together with the other windows
    that are near to it; a discord is a window whose nearest neighbour is far away. Windows are
    compared by the Euclidean distance after z-normalisation of each. The answer is exact, and the
    same on every engine.

    Several series are searched together: a window and its neighbour may lie in different series.
    Windows of several channels are compared by the channels in which they are nearest, for each
    pair anew; discords by those in which they are farthest.

    Parameters
    ----------
    window : int, float, "auto" or array-like, default "auto"
        Length of the subsequences that are compared (not a band of warping), in points; or a
        fraction of the shortest series, rounded up. "auto" takes one period of the series (see the
        notes); if there is none, a tenth of the shortest series, but at least 3 points. With
        several lengths, pairs are compared by their distance over the square root of the length.
    n_motifs : int, default 3
        How many motifs at most. The k-th is the nearest pair among the windows that do not start
        within `separation` of an occurrence of an earlier one.
    max_matches : int or None, default 10
        Occurrences that are kept of each motif, best first; None is all. Windows near to any
        occurrence, kept or not, are left out of the search for further motifs.
    radius_factor : float, default 2.0
        Occurrences lie within this many times the distance of the pair from the first window of the
        pair; at least 1. If the distance is 0, they lie within 1e-7 sqrt(window), or, without
        z-normalisation, within 1e-7 times the norm of the window.
    n_discords : int, default 0
        How many discords at most.
    exclusion : int, float or None, default None
        Windows of one series that start at most this many points apart are neither a pair nor two
        occurrences of one motif; a float is a fraction of the window, rounded up, and None means a
        quarter.
    separation : int, float or None, default None
        Windows that start at most this many points from an occurrence of a motif are left out of
        the search for further motifs, and those so near to a discord out of the search for further
        discords; a float is a fraction of the window, rounded up. None means half of the window, or
        `exclusion` if that is more.
    normalize : bool, default True
        Whether windows are z-normalised.
    dimensions : int or None, default None
        Of several channels, how many count: the distance of two windows is the mean of their
        distances in so many channels. None is all.
    include : array-like of int or None, default None
        Channels that count for every pair.
    left_right : bool, default False
        Whether to also keep the nearest neighbour among earlier windows and among later ones.
    algorithm : {"auto", "profile", "mk"}, default "auto"
        "profile" computes the distance of every window to its nearest neighbour. "mk" finds only
        the best pairs, by distances to reference windows, and gives neither a profile nor discords.
        "auto" takes "profile", which was far faster in all measurements; see the user guide.
    n_references : int, default 10
        Reference windows of MK.
    random_state : int, RandomState or None, default None
        Draws the reference windows; the answer does not depend on it.
    time_limit : float or None, default None
        Seconds of `fit` after which no further part of the pairs is begun; several lengths share
        the time. Means and deviations of all windows, and the first part, are computed for each
        length in any case: without them there is no answer. Then `share_` says how many of the
        pairs were compared, profiles are upper bounds, and motifs and discords are those of the
        pairs that were compared. None compares all pairs. For series of one channel, and not for
        MK.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" is exact: the search may run in float32, with known error, and every answer is
        certified in float64. "float32" leaves out the certificate, "float64" searches in float64.
    engine : str, default "auto"
        "auto", "numba", "cupy", or another registered engine. "auto" takes the GPU if there is one
        and the work is large enough to pay for the transfer; "cupy" never falls back to the CPU.
    n_jobs : int or None, default None
        Threads on the CPU. None takes the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``, or else all threads that Numba has; -1 takes all of
        these.
    verbose : int, default 0
        1 shows a progress bar in long work, 2 also the plan: engine, parts, memory.
    radius : float
        The former name of `radius_factor`.

        .. deprecated:: 0.1
           It will go in 0.2.

    Attributes
    ----------
    motifs_ : list of Motif
        Motifs, best first: `window`, `positions`, `distances`, `values` and `series` of the
        occurrences, `radius`, `n_matches`, `channels`. Fewer than `n_motifs` where no pair is left.
        Of several channels, occurrences are near in the `channels` of the pair, and `values` has
        shape (n_matches, n_channels, window).
    discords_ : list of Discord
        Discords; the one farthest from its nearest neighbour comes first. A window without any
        neighbour is no discord.
    window_ : int or ndarray of int
        Points of a window; an array where several lengths were given.
    profile_ : ndarray of shape (n_samples, n_windows)
        Distance of every window to its nearest neighbour; infinite where there is none, or where a
        series is shorter than the longest. A list of such arrays where several lengths were given.
        Missing after ``algorithm="mk"``.
    profile_index_ : ndarray of shape (n_samples, n_windows), int64
        Where the neighbours start in their series, -1 where there is none.
    profile_series_ : ndarray of shape (n_samples, n_windows), int64
        In which series the neighbours lie, -1 where there is none.
    share_ : float or list of float
        Share of the admissible pairs that were compared: 1.0, unless a `time_limit` came before. A
        list where several lengths were given. Missing after ``algorithm="mk"``.
    left_profile_, right_profile_ : SeriesProfile
        `distances`, `indices` and `series` of the nearest neighbours among earlier windows, and
        among later ones. All windows of a series are earlier than those of the next. Only with
        `left_right`.
    pruning_rate_ : ndarray of shape (n_searches,)
        Share of the pairs whose distance MK never measured, for each pair that it searched. Only
        with ``algorithm="mk"``.
    n_features_in_ : int
        Time points of the series given to `fit`; not set after `fit` on a list.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of the data given to `fit`, where they are all strings.
    n_channels_ : int
        Channels of the series.
    engine_ : str
        The engine that `fit` chose.

    See Also
    --------
    skts.motifs.matrix_profile : The profile alone, also of one series against another.

    Notes
    -----
    NaN and infinities may be anywhere: a window that holds one is left out. A window is constant
    when its range is at most 2^-40 of its largest magnitude, or at most 2^-500; two constant
    windows are at distance 0, a constant and another one at ``sqrt(window)``. Equally near windows
    are ordered by their row, then by their start. The distance of two windows depends on their
    points alone, whatever else is in the series.

    ``window="auto"`` is the lag, from 3 points to a third of the shortest series, at which the
    series repeat most clearly. Slow drift, which hardly shows within a z-normalised window, is
    removed first: for every octave of lags a trend is subtracted before the series are correlated
    with themselves. The trend is a moving mean of a moving mean, each over twice the shortest of
    these lags, or a straight line where that would leave less than half of a series. A peak of the
    mean correlation scores its height times its prominence over the root of its lag; a peak whose
    height times prominence is below 0.01 does not count. Of the peaks whose score is within a tenth
    of the best, the one with the shortest lag is taken. At most the first 100 series and 262,144 of
    their points are used.

    A single series is one row: ``fit(x.reshape(1, -1))``. A single row that is a `numpy.memmap` of
    float64 is not copied; several rows are.

    References
    ----------
    .. [1] Kraeva. "Development of a parallel algorithm for motif discovery in time series on
       many-core accelerators". Thesis, South Ural State University, 2020, sections 3 and 4.
    .. [2] Mueen, Keogh, Zhu, Cash, Westover. "Exact Discovery of Time Series Motifs". SDM 2009.
    .. [3] Yeh et al. "Matrix Profile I: All Pairs Similarity Joins for Time Series". ICDM 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skts import MotifFinder
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> x[120:140] = x[30:50] * 3 + 5
    >>> model = MotifFinder(20, n_motifs=1, n_discords=1).fit(x.reshape(1, -1))
    >>> model.motifs_[0].positions
    array([ 30, 120])
    >>> model.predict([x[25:60], x[150:185]])
    array([ 0, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "window": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            StrOptions({"auto"}),
            "array-like",
        ],
        "n_motifs": [Interval(Integral, 1, None, closed="left")],
        "max_matches": [Interval(Integral, 2, None, closed="left"), None],
        "radius_factor": [Interval(Real, 1, None, closed="left")],
        "n_discords": [Interval(Integral, 0, None, closed="left")],
        "exclusion": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
            None,
        ],
        "separation": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
            None,
        ],
        "normalize": ["boolean"],
        "dimensions": [Interval(Integral, 1, None, closed="left"), None],
        "include": ["array-like", None],
        "left_right": ["boolean"],
        "algorithm": [StrOptions({"auto", "profile", "mk"})],
        "n_references": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "radius": [
            Interval(Real, 1, None, closed="left"),
            Hidden(StrOptions({"deprecated"})),
        ],
    }

    def __init__(
        self,
        window: int | float | Literal["auto"] | ArrayLike = "auto",
        *,
        n_motifs: int = 3,
        max_matches: int | None = 10,
        radius_factor: float = 2.0,
        n_discords: int = 0,
        exclusion: float | None = None,
        separation: float | None = None,
        normalize: bool = True,
        dimensions: int | None = None,
        include: ArrayLike | None = None,
        left_right: bool = False,
        algorithm: Literal["auto", "profile", "mk"] = "auto",
        n_references: int = 10,
        random_state: int | np.random.RandomState | None = None,
        time_limit: float | None = None,
        precision: Literal["auto", "float32", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        radius: Any = "deprecated",
    ) -> None:
        self.window = window
        self.n_motifs = n_motifs
        self.max_matches = max_matches
        self.radius_factor = radius_factor
        self.n_discords = n_discords
        self.exclusion = exclusion
        self.separation = separation
        self.normalize = normalize
        self.dimensions = dimensions
        self.include = include
        self.left_right = left_right
        self.algorithm = algorithm
        self.n_references = n_references
        self.random_state = random_state
        self.time_limit = time_limit
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.radius = radius

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Find motifs and discords.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. A single series is one row.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : MotifFinder
            The fitted estimator.

        Raises
        ------
        ValueError
            If there is no pair of windows, a window is longer than every series, options
            contradict each other, or channels are asked for that there are not; if no pair was
            found within the `time_limit`.
        """
        get_engine(self.engine)
        if self.algorithm == "mk" and (self.n_discords > 0 or self.left_right):
            raise ValueError(
                "algorithm='mk' computes no profile, and so neither discords nor left and right "
                "profiles: use algorithm='profile'."
            )
        series = check_multivariate(X, estimator=self)
        refuse_channels_of_one_point(X, series)
        refuse_times_as_series(X, series, self.window)
        n_channels = len(series[0])
        if n_channels > 1 and self.algorithm == "mk":
            raise ValueError("algorithm='mk' is for series of one channel.")
        self._check_limit(n_channels)
        rule = one_rule(self.dimensions, self.include, n_channels)
        lengths = window_lengths(self.window, [points for each in series for points in each])
        gap = self._gap(lengths, [each[0] for each in series])
        pools = tuple(private_line([each[c] for each in series], gap) for c in range(n_channels))
        windows = self._windows(pools, lengths, rule)
        engine = get_engine(self.engine, windows[-1].join())
        compute = self._computer(engine)
        profiles = None
        if self.algorithm != "mk":
            joins = [each.join(sides=bool(self.left_right)) for each in windows]
            profiles = [compute(join) for join in self._limited(joins)]
        motifs, discords, rates = self._find(windows, profiles, compute)
        if not motifs:
            if profiles is not None and min(each.share for each in profiles) < 1:
                raise ValueError(
                    f"time_limit={self.time_limit}: no motif was found among the pairs that were "
                    "compared in this time."
                )
            raise_no_pair("motif", windows[0], len(series))
        self._remember_form(X, Series.of(series[0][np.newaxis]))
        self._rule = rule
        several = not isinstance(self.window, str | Real)
        self.window_ = np.array(lengths) if several else lengths[0]
        self._pools = pools
        self._set_found(motifs, discords, rates, profiles)
        self._profiled_with = self._settings()
        self.engine_ = engine.name
        return self

    @takes_plain
    def update(self, points: ArrayLike, series: int = -1, *, max_points: int | None = None) -> Self:
        """Append points to a series, and bring profile, motifs and discords up to date.

        The result is that of a new `fit` on all points that are kept, with the same window lengths.
        If the last series grows, the profile of its earlier points is not computed again. Only for
        series of one channel, all of whose pairs were compared; `time_limit` does not count here.

        Parameters
        ----------
        points : array-like of shape (n_points,)
            Points to append at the end of the series.
        series : int, default -1
            Which series grows (row of `X`); the last by default.
        max_points : int or None, default None
            Points of that series that are kept, at least one window: its oldest points leave, and
            the places of motifs, discords and neighbours in it count from the oldest that is left.
            Windows whose neighbours left are searched again. None keeps all.

        Returns
        -------
        self : MotifFinder
            The estimator.

        Raises
        ------
        ValueError
            If the series have several channels, or a `time_limit` came before all pairs were
            compared; if `points` is not 1-D, there is no such series, or `max_points` is less than
            a window; if no pair of windows is left. The estimator stays as it was.

        Notes
        -----
        `n_features_in_` stays what it was. A memory map is read into memory.

        With n points kept, k new ones take the time of about k n pairs of windows, or of n^2 / 2 if
        that is less. Without `max_points` that is all. With it, from the first point on that
        leaves, 8 neighbours of each window are kept (160 bytes for each point, for each length), as
        long as few points come at a time and `left_right` is False: new points take about twice as
        long then, and the first time all pairs are compared once more. A window that has lost all
        of them is compared with all others by itself, which takes the time of about n pairs for
        every point of the window. With `left_right` one neighbour is kept on each side, and about
        as many windows lose it as points leave: then it pays to append many points at a time. An
        update that is interrupted changes nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from skts import MotifFinder
        >>> x = np.random.default_rng(0).normal(size=200)
        >>> model = MotifFinder(20).fit(x[:150].reshape(1, -1)).update(x[150:])
        >>> again = MotifFinder(20).fit(x.reshape(1, -1))
        >>> np.array_equal(model.profile_, again.profile_)
        True
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        if self.n_channels_ > 1:
            raise ValueError(
                f"update is for series of one channel; these have {self.n_channels_}: use fit."
            )
        share = np.min(getattr(self, "share_", 1.0))
        if share < 1:
            raise ValueError(
                "update needs the profile of all pairs, but a time_limit left share_ = "
                f"{share:.3g} of them: use fit."
            )
        (more,) = check_more_points(points, "one series", self)
        (pool,) = self._pools
        n_samples = len(pool.lengths)
        if not isinstance(series, Integral) or not -n_samples <= series < n_samples:
            raise ValueError(f"series={series!r}: there are {n_samples} series.")
        series = int(series) % n_samples
        lengths = np.atleast_1d(self.window_).tolist()
        check_kept(max_points, max(lengths))
        parts = [points for (points,) in self._series()]
        if more.size == 0 and (max_points is None or parts[series].size <= max_points):
            return self
        parts[series] = np.concatenate([parts[series], more])
        dropped = 0 if max_points is None else max(0, parts[series].size - int(max_points))
        parts[series] = parts[series][dropped:]
        grown = ConcatenatedSeries.of(parts, self._gap(lengths, parts))
        grown = grown.after(pool, dropped)
        windows = self._windows((grown,), lengths, self._rule)
        compute = self._computer(get_engine(self.engine, windows[-1].join()))
        profiles = known = None
        if self.algorithm != "mk":
            sides, is_last = bool(self.left_right), series == n_samples - 1
            first, left = int(grown.starts[-1]), int(pool.lengths[-1]) - dropped
            since = [first + max(0, left - length + 1) for length in lengths]
            old: list[Any] = [None] * len(lengths)
            same = sides == hasattr(self, "left_profile_")  # set_params may have come after fit
            same &= self._settings() == getattr(self, "_profiled_with", None)
            if is_last and same and hasattr(self, "profile_"):
                old = self._line_neighbors(windows, since, dropped)
            grow = partial(grow_profile, compute, sides=sides, n_left=dropped if is_last else 0)
            pairs = [grow(*each) for each in zip(windows, since, old, strict=True)]
            profiles, known = (list(each) for each in zip(*pairs, strict=True))
        found = self._find(windows, profiles, compute)
        if not found[0]:
            raise_no_pair("motif", windows[0], n_samples)
        self._pools = (grown._replace(origin=None),)
        self._set_found(*found, profiles)
        self._profiled_with = self._settings()
        if known is not None and max(one.n_known for one, *_ in known) > 1:
            self._known = known
        return self

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the distance of each series to each motif.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series, none shorter than the windows of the motifs; or a list of arrays.

        Returns
        -------
        ndarray of shape (n_samples, n_motifs)
            Distance of the first window of a motif to the nearest window of the series; infinite
            where every window of the series holds NaN or infinity.

        Raises
        ------
        ValueError
            If a series is shorter than a motif.
        """
        return self._distances(X)

    def _distances(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """As `transform`, which scikit-learn may make a data frame of."""
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        series = check_multivariate(X, estimator=self, new=False)
        self._compare_form(X, *series[0].shape)
        longest = max(motif.window for motif in self.motifs_)
        sizes = [each.shape[1] for each in series]
        short = [row for row, size in enumerate(sizes) if size < longest]
        if short:
            raise ValueError(
                f"Series {short[0]} of X has {sizes[short[0]]} time points; that is less "
                f"than one window of {longest}."
            )
        pools = [
            ConcatenatedSeries.of([each[channel] for each in series])
            for channel in range(self.n_channels_)
        ]
        pool = pools[0]
        compute, found = self._computer(self.engine), np.empty((len(series), len(self.motifs_)))
        for column, motif in enumerate(self.motifs_):
            first, normalize = np.zeros(1, np.int64), bool(self.normalize)
            channels = np.arange(1) if motif.channels is None else motif.channels
            pattern = np.atleast_2d(motif.values[0])
            rows = [
                compute(WindowDistances(line, first, pools[channel], motif.window, normalize))[0]
                for channel in channels
                for line in [ConcatenatedSeries.of([pattern[channel]])]
            ]
            (row,) = rows if len(rows) == 1 else [means_of(np.stack(rows), channels, self._rule)]
            for i, (start, length) in enumerate(zip(pool.starts, pool.lengths, strict=True)):
                found[i, column] = row[start : start + length - motif.window + 1].min()
        return found

    @takes_plain
    def predict(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Find the motif that comes closest in each series.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series, none shorter than the windows of the motifs; or a list of arrays.

        Returns
        -------
        ndarray of shape (n_samples,), int64
            Index into `motifs_` of the nearest motif whose radius reaches the series, by distance
            over the square root of the window; -1 where there is none. Distances that differ by up
            to 1e-7 (without z-normalisation: times the root mean square of the motif) count as
            equal; then the first motif is taken.
        """
        distances = self._distances(X)
        radii = np.array([motif.radius for motif in self.motifs_])
        sizes = np.sqrt([motif.window for motif in self.motifs_])
        # equal windows differ by rounding
        norms = sizes if self.normalize else np.array([_norm_of_motif(m) for m in self.motifs_])
        near = distances <= radii + SAME * norms
        ranks = np.where(near, distances / sizes, np.inf)
        same = ranks.min(axis=1, keepdims=True) + SAME * norms / sizes
        best = np.argmax(ranks <= same, axis=1)
        return np.where(near.any(axis=1), best, -1)

    @property
    def _n_features_out(self) -> int:
        return len(self.motifs_)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _series(self) -> list[np.ndarray]:
        """The series that are kept, each of shape (n_channels, n_timepoints)."""
        pool = self._pools[0]
        return [
            np.stack([each.points[start : start + length] for each in self._pools])
            for start, length in zip(pool.starts, pool.lengths, strict=True)
        ]

    def _apart(self, length: int, longest: int) -> tuple[int, int]:
        """Exclusion and separation of windows of one length, in points."""
        exclusion = exclusion_of(self.exclusion, length, longest)
        return exclusion, separation_of(self.separation, exclusion, length, longest)

    def _settings(self) -> tuple[Any, ...]:
        """Parameters without which a profile would be another one, but for its length."""
        lengths = np.atleast_1d(self.window_).tolist()
        longest = int(self._pools[0].lengths.max())
        exclusions = [self._apart(length, longest)[0] for length in lengths]
        return exclusions, bool(self.normalize), self.precision

    def _gap(self, lengths: Sequence[int], series: list[np.ndarray]) -> int:
        """Points between series, for windows of different ones to be no neighbours of any kind."""
        longest = max(points.size for points in series)
        return max(max(self._apart(length, longest)) - length + 1 for length in lengths)

    def _windows(
        self, pools: tuple[ConcatenatedSeries, ...], lengths: Sequence[int], rule: ChannelRule
    ) -> list[Any]:
        """The windows of all lengths on a line: `WindowSet`, or `ChannelWindows` of several."""
        pool, options = pools[0], (bool(self.normalize), self.precision)
        longest = int(pool.lengths.max())
        windows = [
            WindowSet(pool, length, *self._apart(length, longest), *options) for length in lengths
        ]
        if len(pools) == 1:
            return windows
        return [ChannelWindows(pools, each, rule) for each in windows]

    def _check_limit(self, n_channels: int) -> None:
        """Refuse a limit of time where there is none."""
        if self.time_limit is None:
            return
        if self.algorithm == "mk":
            raise ValueError(
                f"time_limit={self.time_limit} is for profiles; algorithm='mk' computes none."
            )
        if n_channels > 1:
            raise ValueError(f"time_limit={self.time_limit}: a limit is for series of one channel.")

    def _limited(self, joins: list[Any]) -> Iterator[Join]:
        """Joins that end in time: each has what those before it left of their parts."""
        begin = None
        for number, join in enumerate(joins, 1):
            if self.time_limit is not None:
                timed = TimedJoin.of(join, self.time_limit * number / len(joins))
                begin = timed.begin if begin is None else begin
                join = replace(timed, begin=begin)
            yield join

    def _computer(self, engine: Any) -> Callable[[Reduction], Any]:
        return partial(self._run, engine=engine)

    def _find(
        self,
        windows: list[Any],
        profiles: list[JoinFound] | None,
        compute: Callable[[Reduction], Any],
    ) -> tuple[list[Motif], list[Discord], np.ndarray | None]:
        """Motifs, discords and pruning rates."""
        if profiles is None:
            random_state = check_random_state(self.random_state)
            searches = [
                PairSearch(each, compute, self.n_references, random_state) for each in windows
            ]
        else:
            kind = ChannelSearch if isinstance(windows[0], ChannelWindows) else ProfileSearch
            searches = [
                kind(each, compute, profile)
                for each, profile in zip(windows, profiles, strict=True)
            ]
        names, values = ("radius", "radius_factor"), (self.radius, self.radius_factor)
        factor = renamed(*names, *values, type(self).__name__)
        motifs = find_motifs(searches, self.n_motifs, self.max_matches, factor)
        if profiles is None:
            return motifs, [], np.array([rate for each in searches for rate in each.pruned])
        if isinstance(windows[0], ChannelWindows):
            return motifs, self._find_far(windows, compute), None
        return motifs, find_discords(windows, profiles, self.n_discords), None

    def _find_far(
        self, windows: list[ChannelWindows], compute: Callable[[Reduction], Any]
    ) -> list[Discord]:
        """Discords, by the channels in which windows are farthest."""
        if self.n_discords == 0:
            return []
        far = [replace(each, rule=replace(each.rule, worst=True)) for each in windows]
        profiles = [compute(each.join()) for each in far]
        by_length = {each.length: each for each in far}
        return [
            channels_of_discord(by_length[discord.window], compute, discord)
            for discord in find_discords(far, profiles, self.n_discords)
        ]

    def _set_found(
        self,
        motifs: list[Motif],
        discords: list[Discord],
        rates: np.ndarray | None,
        profiles: list[JoinFound] | None,
    ) -> None:
        """Set what was found; profiles of before go."""
        for name in _FOUND:
            self.__dict__.pop(name, None)
        self.motifs_ = motifs
        self.discords_ = discords
        if profiles is None:
            self.pruning_rate_ = rates
            return
        lengths = np.atleast_1d(self.window_).tolist()
        several = not isinstance(self.window_, int)

        def spread(found: list[Any]) -> list[SeriesProfile]:
            pairs = zip(lengths, found, strict=True)
            return [_by_series(self._pools[0], length, one) for length, one in pairs]

        both = spread(profiles)
        whole = both if several else both[0]
        columns = list(zip(*both, strict=True)) if several else whole
        shares = [float(one.share) for one in profiles]
        self.share_ = shares if several else shares[0]
        self.profile_, self.profile_index_, self.profile_series_ = (
            list(column) if several else column for column in columns
        )
        if self.left_right:
            for side in ("left", "right"):
                found = spread([getattr(profile, side) for profile in profiles])
                setattr(self, f"{side}_profile_", found if several else found[0])

    def _line_neighbors(
        self, windows: list[WindowSet], since: list[int], dropped: int
    ) -> list[list[KnownNeighbors]]:
        """The neighbours that are kept, on a line whose last series has lost points."""
        known = getattr(self, "_known", None)
        if known is not None and any(one.overwritten for sides in known for one in sides):
            known = None  # by an update that failed, or of a copy
        if known is not None and np.array_equal(windows[0].pool.starts, self._pools[0].starts):
            return [
                [one.moved(each, place, dropped) for one in sides]
                for each, place, sides in zip(windows, since, known, strict=True)
            ]
        several = not isinstance(self.window_, int)
        columns = self.profile_, self.profile_index_, self.profile_series_
        kept: list[Any] = [list(zip(*columns, strict=True)) if several else columns]
        if hasattr(self, "left_profile_"):
            kept = [self.right_profile_, self.left_profile_]
        by_length = zip(windows, *(one if several else [one] for one in kept), strict=True)
        return [
            [on_line(each, SeriesProfile(*side), dropped) for side in sides]
            for each, *sides in by_length
        ]


_FOUND = (
    "_known",
    "profile_",
    "profile_index_",
    "profile_series_",
    "left_profile_",
    "right_profile_",
    "share_",
    "pruning_rate_",
)


def _norm_of_motif(motif: Motif) -> float:
    """Norm of the first occurrence, the mean of those of its channels."""
    if motif.channels is None:
        return norm_of(motif.values[0])
    norms = [norm_of(motif.values[0][channel]) for channel in motif.channels]
    return math.fsum(norms) / len(norms)


def _by_series(pool: ConcatenatedSeries, length: int, found: Any) -> SeriesProfile:
    """Cut a profile on the line into one row for each series."""
    counts = pool.lengths - length + 1
    shape = len(counts), max(0, int(counts.max()))
    distances = np.full(shape, np.inf)
    places = np.full(shape, -1, np.int64)
    for row, (start, count) in enumerate(zip(pool.starts, counts, strict=True)):
        count = max(0, count)
        distances[row, :count] = found.distances[start : start + count, 0]
        places[row, :count] = found.indices[start : start + count, 0]
    series, starts = pool.locate(places)
    return SeriesProfile(distances, starts, series)
