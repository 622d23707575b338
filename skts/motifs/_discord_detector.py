"""Anomaly detection by distances to the nearest windows, in scikit-learn's form."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import N_JOBS, checks_parameters
from .._validation import (
    check_more_points,
    check_multivariate,
    refuse_channels_of_one_point,
    refuse_times_as_series,
)
from ..base import SeriesMixin
from ..engines import (
    LEAST_NORMALIZED,
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Join,
    Reduction,
    Series,
    SpacedChannels,
    SpacedNeighbors,
    get_engine,
)
from ._channels import one_rule
from ._growth import check_kept
from ._search import exclusion_of
from ._windows import private_line, window_lengths

__all__ = ["DiscordDetector"]

#: An exclusion that no two windows of a series are beyond.
UNLIMITED = 2**62
#: The channels of series, each on a line.
Pools = tuple[ConcatenatedSeries, ...]


class DiscordDetector(SeriesMixin, OutlierMixin, BaseEstimator):
    """Detect anomalies: windows that are far from all others, or from those of normal data.

    The score of a window is its distance to its k-th nearest neighbour, where neighbours do not
    overlap each other: with k = 2 an anomaly is still found that occurs twice. A series scores as
    its most unusual window does, and a time point as the windows that cover it. Scores are exact,
    and the same on every engine.

    Training data may be the recording itself, in which the anomalies are, or normal data. Windows
    of several channels are compared by the channels in which they are farthest from each other,
    for each pair anew.

    Parameters
    ----------
    window : int, float or "auto", default "auto"
        Length of the subsequences that are compared (not a band of warping), in points; or a
        fraction of the shortest series, rounded up. "auto" takes one period of the training series,
        as `MotifFinder` does.
    n_neighbors : int, default 1
        Which neighbour counts: an anomaly that occurs fewer than ``n_neighbors + 1`` times in what
        it is compared with is found.
    exclusion : int, float or None, default None
        Windows of one series that start at most this many points apart are no neighbours, and no
        two neighbours of a window; a float is a fraction of the window, rounded up. None means that
        neighbours do not overlap: one point less than the window. More than the points of the
        longest training series means all windows of a series, also of a longer one that follows.
    side : {"both", "left"}, default "both"
        Where neighbours may be. "left" compares a window with earlier ones alone, as a stream has
        to: those of training series before its own, and those before it in its own series. Windows
        of further series are compared with all training data, and with earlier windows of their own
        series.
    normalize : bool, default True
        Whether windows are z-normalised, each channel by itself. Windows of fewer than 3 points
        never are: normalised, they would say no more than up, down or flat. They are compared as
        they are.
    dimensions : int or None, default None
        Of several channels, how many count: the distance of two windows is the mean of their
        distances in so many channels, those in which they are farthest. 1 finds what is unusual in
        any channel. None is all.
    include : array-like of int or None, default None
        Channels that count for every pair.
    contamination : "auto" or float, default "auto"
        Which series `predict` calls outliers. A float is their share among the training series, in
        (0, 0.5]; equal scores at the limit are not told apart, and none of them is an outlier.
        "auto" takes scores beyond Tukey's fence: the third quartile of the scores of training
        series and 1.5 times their interquartile range.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" is exact: the search may run in float32, with known error, and every answer is
        certified in float64. "float32" leaves out the certificate, "float64" searches in float64.
        Several channels are certified in any case.
    engine : str, default "auto"
        "auto", "numba", "cupy", or another registered engine. "auto" takes the GPU if there is one
        and the work is large enough to pay for the transfer; "cupy" never falls back to the CPU.
    n_jobs : int or None, default None
        Threads on the CPU. None takes the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``, or else all threads that Numba has; -1 takes all of
        these.
    verbose : int, default 0
        1 shows a progress bar in long work, 2 also the plan: engine, parts, memory.

    Attributes
    ----------
    window_ : int
        Points of a window.
    exclusion_ : int
        Windows of one series that start so near are no neighbours, in points; at most those of the
        longest training series.
    window_scores_ : ndarray of shape (n_samples, n_windows)
        Scores of all windows of the training series; NaN where a window has fewer than
        `n_neighbors` neighbours or holds NaN or infinity, and beyond the end of a shorter series.
    offset_ : float
        What `score_samples` is below for outliers.
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
    MotifFinder : Discords with their neighbours, and motifs.
    skts.motifs.matrix_profile : Distances to the nearest neighbours, which may overlap each other.

    Notes
    -----
    The neighbours of a window are chosen one after the other: the nearest, then the nearest that
    starts more than `exclusion` from the first, and so on; of equally near ones the earliest.

    A series that is equal to a training series, point for point but for NaN at the end, is taken
    for that series, or for the first of them: none of its windows is a neighbour of itself, and it
    has the scores that it had in `fit`. So ``fit(X).score_points(X)`` is about a recording that is
    compared with itself.

    NaN and infinities may be anywhere: a window that holds one has no score and is no neighbour; of
    several channels, it takes no part in that channel, and has no score where fewer channels are
    left than count. Distances of constant windows are those of `skts.motifs.matrix_profile`. A
    series without any window that has a score counts as normal: its score is 0.

    A single series is one row: ``fit(x.reshape(1, -1))``.

    References
    ----------
    .. [1] Keogh, Lin, Fu. "HOT SAX: Efficiently Finding the Most Unusual Time Series Subsequence".
       ICDM 2005.
    .. [2] Yeh, Kavantzas, Keogh. "Matrix Profile VI: Meaningful Multidimensional Motif Discovery".
       ICDM 2017.
    .. [3] Lu et al. "Matrix Profile XXIV: Scaling Time Series Anomaly Detection to Trillions of
       Datapoints and Ultra-fast Arriving Data Streams". KDD 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skts import DiscordDetector
    >>> x = np.sin(np.arange(400) / 5)
    >>> x[200:210] = 0.5
    >>> detector = DiscordDetector(30).fit(x.reshape(1, -1))
    >>> scores = detector.score_points(x.reshape(1, -1))
    >>> int(scores[0].argmax())
    184
    >>> normal = DiscordDetector(30).fit(x[np.newaxis, :190])
    >>> normal.predict([x[20:80], x[180:240]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "window": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            StrOptions({"auto"}),
        ],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "exclusion": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="both"),
            None,
        ],
        "side": [StrOptions({"both", "left"})],
        "normalize": ["boolean"],
        "dimensions": [Interval(Integral, 1, None, closed="left"), None],
        "include": ["array-like", None],
        "contamination": [StrOptions({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        window: int | float | Literal["auto"] = "auto",
        *,
        n_neighbors: int = 1,
        exclusion: float | None = None,
        side: Literal["both", "left"] = "both",
        normalize: bool = True,
        dimensions: int | None = None,
        include: ArrayLike | None = None,
        contamination: float | Literal["auto"] = "auto",
        precision: Literal["auto", "float32", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.window = window
        self.n_neighbors = n_neighbors
        self.exclusion = exclusion
        self.side = side
        self.normalize = normalize
        self.dimensions = dimensions
        self.include = include
        self.contamination = contamination
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Score all windows of the training series, and choose the offset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. A single series is one row.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : DiscordDetector
            The fitted estimator.

        Raises
        ------
        ValueError
            If a series is shorter than the window, no window has `n_neighbors` neighbours, or
            channels are asked for that there are not.
        """
        get_engine(self.engine)
        series = check_multivariate(X, estimator=self)
        refuse_channels_of_one_point(X, series)
        refuse_times_as_series(X, series, self.window)
        n_channels = len(series[0])
        rule = replace(one_rule(self.dimensions, self.include, n_channels), worst=True)
        (length,) = window_lengths(self.window, [points for each in series for points in each])
        _refuse_short(series, length)
        longest = max(each.shape[1] for each in series)
        exclusion = length - 1 if self.exclusion is None else self.exclusion
        exclusion = exclusion_of(exclusion, length, UNLIMITED)
        scoring = _Scoring(
            length,
            exclusion if exclusion <= longest else UNLIMITED,
            int(self.n_neighbors),
            self.side == "left",
            bool(self.normalize) and length >= LEAST_NORMALIZED,
            self.precision,
            rule,
        )
        if scoring.n_neighbors > scoring.most_neighbors(series):
            raise scoring.no_scores(len(series), longest)  # before any work
        gap = scoring.gap(series)
        pools = tuple(private_line([each[c] for each in series], gap) for c in range(n_channels))
        work = scoring.work(pools, None)
        engine = get_engine(self.engine, work)
        scores = scoring.cut(self._run(work, engine), pools)
        if all(np.isnan(one).all() for one in scores):
            raise scoring.no_scores(len(series), longest)
        self._remember_form(X, Series.of(series[0][np.newaxis]))
        self._scoring, self._pools = scoring, pools
        self._rows: dict[str, int] = {}
        first_rows = [self._rows.setdefault(_digest(one), row) for row, one in enumerate(series)]
        self.window_, self.exclusion_ = length, min(exclusion, longest)
        self.window_scores_ = _as_rows(scores)
        self.offset_ = self._choose_offset(-_largest([scores[row] for row in first_rows]))
        self.engine_ = engine.name
        return self

    def score_samples(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return how normal each series is: minus the score of its most unusual window.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series, none shorter than a window; or a list of arrays.

        Returns
        -------
        ndarray of shape (n_samples,)
            Minus the largest score of a window; 0 where no window has one. The lower, the more
            unusual.

        Raises
        ------
        ValueError
            If a series is shorter than a window.
        """
        return -_largest(self._score_windows(X)[1])

    def decision_function(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return how far the score of each series is above the offset.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series, none shorter than a window; or a list of arrays.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``: negative for outliers.

        Raises
        ------
        ValueError
            If a series is shorter than a window.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Say which series are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series, none shorter than a window; or a list of arrays.

        Returns
        -------
        ndarray of shape (n_samples,), int64
            -1 for outliers, 1 for others.

        Raises
        ------
        ValueError
            If a series is shorter than a window.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def score_points(
        self, X: ArrayLike | list[ArrayLike], *, aggregate: Literal["max", "mean"] = "max"
    ) -> np.ndarray:
        """Return how unusual each time point is, from the windows that cover it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series, none shorter than a window; or a list of arrays.
        aggregate : {"max", "mean"}, default "max"
            Whether the largest of these windows' scores counts, or their mean.

        Returns
        -------
        ndarray of shape (n_samples, n_timepoints)
            The higher, the more unusual, in the unit of the distances. NaN where no window that
            covers the point has a score, and beyond the end of a shorter series.

        Raises
        ------
        ValueError
            If a series is shorter than a window, or `aggregate` is neither of these words.

        Examples
        --------
        >>> import numpy as np
        >>> from skts import DiscordDetector
        >>> x = np.array([[0, 1, 0, 1, 0, 1, 0, 5, 0, 1, 0, 1.0]])
        >>> DiscordDetector(2, normalize=False).fit(x).score_points(x)
        array([[0., 0., 0., 0., 0., 0., 4., 4., 4., 0., 0., 0.]])
        """
        if aggregate not in ("max", "mean"):
            raise ValueError(f"aggregate={aggregate!r}: it must be 'max' or 'mean'.")
        series, scores = self._score_windows(X)
        length = self.window_
        found = [_cover(one, length, aggregate) for one in scores]
        assert all(one.size == each.shape[1] for one, each in zip(found, series, strict=True))
        return _as_rows(found)

    def update(self, points: ArrayLike, *, max_points: int | None = None) -> np.ndarray:
        """Take the next points of a stream, and return the scores of the windows that they end.

        The stream is the last training series, and grows by these points. Only for
        ``side="left"``: no score that has been given changes.

        Parameters
        ----------
        points : array-like of shape (n_points,) or (n_channels, n_points)
            Points that follow the last training series, any number of them, also none; NaN and
            infinities may be anywhere. Of several channels they are 2-D.
        max_points : int or None, default None
            Points of that series that are kept for the windows to come, at least one window; the
            oldest leave after the new windows have been scored. None keeps all.

        Returns
        -------
        ndarray of shape (n_points,)
            Scores of the windows whose last points these are, in their order; NaN where one has
            fewer than `n_neighbors` neighbours or holds NaN or infinity.

        Raises
        ------
        ValueError
            If `side` is "both", where later windows would change scores; if `points` does not have
            the channels of the series, or `max_points` is less than a window. The estimator stays
            as it was.

        Notes
        -----
        Without `max_points` scores are those of a `fit` on all points, with the same length of
        windows, in whatever parts the points come (where `exclusion` was all windows of a series,
        it stays so). With it, a window is compared with all windows
        of the points that were kept before its update, and with those of the update before it.

        With n points kept, k new ones take the time of about k n pairs of windows. `offset_` stays
        what it was in `fit`, so that scores beyond ``-offset_`` are those of outliers. The row of
        `window_scores_` moves on with the series.

        Examples
        --------
        >>> import numpy as np
        >>> from skts import DiscordDetector
        >>> x = np.sin(np.arange(600) / 5)
        >>> x[500:510] = 0.5
        >>> detector = DiscordDetector(30, side="left").fit(x[np.newaxis, :200])
        >>> alarms = []
        >>> for start in range(200, 600, 50):
        ...     scores = detector.update(x[start : start + 50], max_points=200)
        ...     alarms += [start + int(k) for k in np.flatnonzero(scores > 1.5)]
        >>> alarms[0], alarms[-1]
        (501, 530)
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        scoring, length = self._scoring, self.window_
        if not scoring.left:
            raise ValueError(
                "update needs side='left': with side='both', points to come would change the "
                "scores of windows before them."
            )
        more = check_more_points(points, "a stream", self, self.n_channels_)
        check_kept(max_points, length)
        *others, last = self._series()
        grown = np.concatenate([last, more], axis=1)
        series, scores = [*others, grown], np.empty(0)
        first = last.shape[1] - length + 1
        if more.size:
            pools = _lay_out(series, scoring.gap(series))
            work = scoring.work(pools, None, since=int(pools[0].starts[-1]) + first)
            scores = scoring.cut(self._run(work), pools)[-1][first:]
        dropped = 0 if max_points is None else max(0, grown.shape[1] - int(max_points))
        series[-1] = grown[:, dropped:]
        known = [
            self.window_scores_[row, : one.shape[1] - length + 1] for row, one in enumerate(others)
        ]
        known.append(np.concatenate([self.window_scores_[-1, :first], scores])[dropped:])
        rows: dict[str, int] = {}
        for row, one in enumerate(series):
            rows.setdefault(_digest(one), row)
        pools = _lay_out(series, scoring.gap(series))
        window_scores = _as_rows(known)
        # all at once: an update that is interrupted changes nothing
        self._pools, self._rows, self.window_scores_ = pools, rows, window_scores
        return scores

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: NaN is allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _score_windows(
        self, X: ArrayLike | list[ArrayLike]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The series of X, and the scores of their windows."""
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        series = check_multivariate(X, estimator=self, new=False)
        self._compare_form(X, *series[0].shape)
        scoring = self._scoring
        _refuse_short(series, scoring.length)
        known = [self._find_row(each) for each in series]
        new = [each for each, row in zip(series, known, strict=True) if row is None]
        fresh = iter(self._score_new(new) if new else [])
        scores = []
        for each, row in zip(series, known, strict=True):
            n_windows = each.shape[1] - scoring.length + 1
            scores.append(next(fresh) if row is None else self._known_scores(row, n_windows))
        return series, scores

    def _score_new(self, series: list[np.ndarray]) -> list[np.ndarray]:
        """Scores of the windows of series that are no training series."""
        scoring = self._scoring
        if not scoring.left:
            pools = _lay_out(series, 1)
            return scoring.cut(self._run(scoring.work(pools, self._pools)), pools)
        scores = []
        before = self._series()
        for each in series:
            pools = _lay_out([*before, each], scoring.gap([*before, each]))
            work = scoring.work(pools, None, since=int(pools[0].starts[-1]))
            scores.append(scoring.cut(self._run(work), pools)[-1])
        return scores

    def _series(self) -> list[np.ndarray]:
        """The training series, each of shape (n_channels, n_timepoints)."""
        pool = self._pools[0]
        places = zip(pool.starts, pool.lengths, strict=True)
        if len(self._pools) == 1:
            return [pool.points[np.newaxis, start : start + length] for start, length in places]
        return [
            np.stack([line.points[start : start + length] for line in self._pools])
            for start, length in places
        ]

    def _find_row(self, series: np.ndarray) -> int | None:
        """Which training series this one is, if it is one; NaN at the end is padding."""
        row = self._rows.get(_digest(series))
        if row is None:
            return None
        pool = self._pools[0]
        start, stop = pool.starts[row], pool.starts[row] + pool.lengths[row]
        known = np.stack([line.points[start:stop] for line in self._pools])
        same = np.array_equal(_without_padding(series), _without_padding(known), equal_nan=True)
        return row if same else None

    def _known_scores(self, row: int, n_windows: int) -> np.ndarray:
        """The scores of a training series that may come with more or less padding than in `fit`."""
        known: np.ndarray = self.window_scores_[row, :n_windows]
        return np.pad(known, (0, n_windows - known.size), constant_values=np.nan)

    def _choose_offset(self, scores: np.ndarray) -> float:
        """The offset, from the scores of the training series."""
        if isinstance(self.contamination, str):
            first, third = np.percentile(scores, [25, 75])
            return float(first - 1.5 * (third - first))
        return float(np.percentile(scores, 100 * self.contamination))


class _Scoring(NamedTuple):
    """How windows are scored: what `fit` was asked for."""

    length: int
    exclusion: int
    n_neighbors: int
    left: bool
    normalize: bool
    precision: str
    rule: ChannelRule

    def gap(self, series: list[np.ndarray]) -> int:
        """Points between series, for windows of different ones to be farther apart."""
        return self._within(max(each.shape[1] for each in series)) - self.length + 1

    def _within(self, longest: int) -> int:
        """The exclusion, as far as it matters: no two windows of a series are farther apart."""
        return min(self.exclusion, max(0, longest - 1))

    def most_neighbors(self, series: list[np.ndarray]) -> int:
        """How many windows of some series can be neighbours of one, at most."""
        apart = self.exclusion + 1
        return sum(-(-(each.shape[1] - self.length + 1) // apart) for each in series)

    def no_scores(self, n_samples: int, longest: int) -> ValueError:
        """The error where no window has enough neighbours, in series of so many points at most."""
        return ValueError(
            f"There are no scores: no window of {self.length} points in the n_samples = "
            f"{n_samples} series of X has {_many(self.n_neighbors)} not start "
            f"within {min(self.exclusion, longest)} points of it or of each other."
        )

    def work(self, a: Pools, b: Pools | None, since: int = 0) -> Reduction:
        """The work of finding the neighbours of all windows of a line."""
        options: dict[str, Any] = {
            "exclusion": self._within(int((a if b is None else b)[0].lengths.max())),
            "normalize": self.normalize,
            "precision": self.precision,
            "since": since,
        }
        of_one: type[Join] = Join
        of_several: type[ChannelJoin] = ChannelJoin
        if self.n_neighbors > 1:
            of_one, of_several = SpacedNeighbors, SpacedChannels
            options |= {"n_spaced": self.n_neighbors, "left": self.left}
        elif self.left:
            n_windows = a[0].points.size - self.length + 1
            # of later neighbours none
            needed = np.zeros(n_windows), np.full(n_windows, np.inf)
            options |= {"sides": True, "needed": needed}
        if len(a) > 1:
            return of_several.of(a, b, self.length, self.rule, **options)
        return of_one(a[0], None if b is None else b[0], self.length, **options)

    def cut(self, found: Any, pools: Pools) -> list[np.ndarray]:
        """Scores of the windows of each series, NaN where there is none."""
        if self.n_neighbors == 1 and self.left:
            found = found.left
        last = found.distances[:, -1]
        last = np.where(np.isinf(last), np.nan, last)
        return [
            last[start : start + length - self.length + 1]
            for start, length in zip(pools[0].starts, pools[0].lengths, strict=True)
        ]


def _lay_out(series: list[np.ndarray], gap: int) -> Pools:
    """The channels of series of shape (n_channels, n_timepoints), each on a line."""
    return tuple(ConcatenatedSeries.of(list(channel), gap) for channel in zip(*series, strict=True))


def _many(k: int) -> str:
    """So many neighbours, and the beginning of a clause about them."""
    return "a neighbour that does" if k == 1 else f"n_neighbors = {k} neighbours that do"


def _refuse_short(series: list[np.ndarray], length: int) -> None:
    """Refuse series that hold no window."""
    for row, each in enumerate(series):
        if each.shape[1] < length:
            raise ValueError(
                f"Series {row} of X has {each.shape[1]} time points; that is less than one window "
                f"of {length}."
            )


def _without_padding(series: np.ndarray) -> np.ndarray:
    """The points up to the last one that is known in any channel."""
    known = np.flatnonzero(~np.isnan(series).all(axis=0))
    return series[:, : known[-1] + 1 if known.size else 0]


def _digest(series: np.ndarray) -> str:
    """A few characters that are the same for series that are equal but for padding."""
    series = _without_padding(series)
    plain = np.where(np.isnan(series), np.nan, series) + 0.0
    return hashlib.blake2b(plain.tobytes(), digest_size=16).hexdigest()


def _largest(scores: list[np.ndarray]) -> np.ndarray:
    """The largest score of each series, 0 where there is none."""
    return np.array([np.max(one, initial=0.0, where=~np.isnan(one)) for one in scores])


def _as_rows(series: list[np.ndarray]) -> np.ndarray:
    """One row for each, NaN at the end of shorter ones."""
    rows = np.full((len(series), max(one.size for one in series)), np.nan)
    for row, one in zip(rows, series, strict=True):
        row[: one.size] = one
    return rows


def _cover(scores: np.ndarray, length: int, aggregate: str) -> np.ndarray:
    """The largest or mean score of the windows that cover each point."""
    missing = np.full(length - 1, np.nan)
    padded = np.concatenate([missing, scores, missing])
    known = ~np.isnan(padded)
    if aggregate == "max":
        from scipy.ndimage import maximum_filter1d  # takes a while to import

        filled = np.where(known, padded, -np.inf)
        largest = maximum_filter1d(filled, length, mode="constant", cval=-np.inf)
        first = length // 2
        found = largest[first : first + scores.size + length - 1]
        return np.where(np.isinf(found), np.nan, found)
    windows = np.lib.stride_tricks.sliding_window_view
    count = windows(known, length).sum(axis=1)
    total = windows(np.where(known, padded, 0.0), length).sum(axis=1)
    return np.divide(total, count, out=np.full(count.size, np.nan), where=count > 0)
