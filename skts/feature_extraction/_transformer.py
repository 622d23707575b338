"""Features of series by their best matches of shapelets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import N_JOBS, checks_parameters
from .._summary import summarized
from .._validation import check_series, check_target
from ..base import SeriesMixin
from ..engines import (
    FEATURES,
    BestShapelets,
    Candidates,
    Criterion,
    DilatedShapelets,
    DistanceQuantiles,
    Places,
    Room,
    Series,
    ShapeletFeatures,
    choose,
    get_engine,
)
from ._candidates import Kinds, draw, draw_partners, kinds_of
from ._selection import SCORES

__all__ = ["DilatedShapelet", "ShapeletTransformer"]

#: Lengths of drawn shapelets, those of the random dilated shapelet transform.
_SHORT = (7, 9, 11)
#: Where all are tried: lengths, and shapelets that are kept for each series, and at most.
_MANY, _FOR_EACH, _MOST = 10, 10, 1000
#: The share of drawn shapelets that are normalised.
_NORMALIZED = 0.8
#: Candidates that are drawn at most.
_MOST_DRAWN = 10**6
#: Advice where `y` holds no classes.
_FOR_REGRESSION = " For a regression take criterion='separation', which takes no notice of y."
#: Distances that are judged at a time.
_JUDGED = 2**21


@summarized
class DilatedShapelet(NamedTuple):
    """A shapelet of a `ShapeletTransformer`, and where it comes from.

    Attributes
    ----------
    values : ndarray of shape (length,), float64
        Its points, as they are in the series: at ``start``, ``start + dilation``, and so on.
    series, start, length, dilation, channel : int
        Where it lies in the training data.
    normalized : bool
        Whether it and the windows that it is compared with are z-normalised.
    threshold : float
        Windows up to this distance are counted.
    score : float
        Information gain in nats, or F-statistic, or gap; NaN where nothing was chosen by it.
    label : object
        The class of the series; None without classes.
    """

    values: np.ndarray
    series: int
    start: int
    length: int
    dilation: int
    channel: int
    normalized: bool
    threshold: float
    score: float
    label: Any


class ShapeletTransformer(SeriesMixin, TransformerMixin, BaseEstimator):
    """Describe time series by their best matches of shapelets, for linear and other models.

    A shapelet is some points of a training series, `dilation` time points apart. Its distance to a
    window of a series is the root mean square difference, of z-normalised points where the shapelet
    is normalised. For each shapelet a series has three features: the least distance to its windows,
    where the first such window begins, and how many windows are within the threshold of the
    shapelet.

    By default 10,000 shapelets are drawn at random: the random dilated shapelet transform [1]_.
    With ``max_candidates=None`` all subsequences of the chosen lengths and dilations are
    candidates, and the best `n_shapelets` are kept: the shapelet transform [2]_. Distances are
    certified float64 values, so that every engine finds the same features and chooses the same
    shapelets.

    Parameters
    ----------
    n_shapelets : int or None, default None
        Shapelets that are kept, the best by `criterion`. None keeps all that are drawn; where all
        candidates are tried, 10 for each training series, at most 1,000.
    max_candidates : int or None, default 10000
        Candidates that are drawn, at most a million; those drawn twice count once. None tries all.
    lengths : "auto" or sequence of int or float, default "auto"
        Points of the candidates; a float is a share of the shortest series. "auto" is 7, 9 and 11
        where candidates are drawn, or half of the shortest series if that has less than 7; where
        all are tried it is 10 lengths from 3 to half of the shortest series.
    dilations : "auto" or sequence of int, default "auto"
        Steps of time from a point to the next; "auto" is all powers of two. For each length those
        count that no series is too short for.
    normalized : float or "auto", default "auto"
        The share of drawn candidates that are z-normalised: 1 for all, 0 for none. "auto" is 0.8,
        and 1 where all candidates are tried; there a share between 0 and 1 tries each in both ways.
        Shapelets of fewer than 3 points are compared as they are.
    criterion : {"information_gain", "f_statistic", "separation"}, default "information_gain"
        Scores candidates by their distances to all training series, where the best are kept: by the
        best cut, by an analysis of variance, or by the gap of u-shapelets [3]_. "separation" takes
        no notice of `y`, which may then be the targets of a regression, in a pipeline for example.
        Without `y` it is what is used.
    max_class_share : float or "auto", default "auto"
        The share of `n_shapelets` that may come from series of one class; "auto" is the same for
        all classes.
    percentiles : tuple of (float, float), default (5, 10)
        The threshold of a shapelet is a quantile of its distances to the windows of another series
        of its class: one drawn between these.
    features : sequence of {"distance", "start", "count"}, default all three
        The features that `transform` returns.
    random_state : int, RandomState instance or None, default None
        Draws candidates and thresholds.
    engine : str, default "auto"
        "auto", "numba", "cupy" or another registered engine.
    n_jobs : int or None, default None
        Threads on the CPU. None takes the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``, or else all threads that Numba has; -1 takes all of
        these.
    verbose : int, default 0
        1 shows a progress bar in long work, 2 also the plan: engine, parts, memory.

    Attributes
    ----------
    shapelets_ : list of DilatedShapelet
        The shapelets: the best first where the best are kept, else those of one length, dilation
        and channel side by side.
    n_features_in_ : int
        Time points of the training series; not set after `fit` on a list.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of the training data, where they are all strings.
    n_channels_ : int
        Channels of every series.
    engine_ : str
        The engine that `fit` chose.

    Raises
    ------
    EngineNotAvailableError
        If the named engine cannot run here, before anything else happens.

    See Also
    --------
    ShapeletTreeClassifier : A decision tree over shapelets, which can be read as rules.
    skts.metrics.subsequence_distance : The distance of one subsequence to one series.

    Notes
    -----
    Of candidates with equal scores the one with the larger gap of its best cut comes first, then
    the shorter one, the less dilated, the normalised one, that of the lower channel, series and
    start. A candidate is passed over where it shares a time point of a series and channel with a
    better one that is kept.

    Where a series is shorter than a shapelet its distance is infinite, the start -1, the count 0.

    References
    ----------
    .. [1] Guillaume, Vrain, Elloumi. "Random dilated shapelet transform: a new approach for time
       series shapelets". ICPRAI, 2022.
    .. [2] Hills, Lines, Baranauskas, Mapp, Bagnall. "Classification of time series by shapelet
       transformation". Data Mining and Knowledge Discovery 28, 2014.
    .. [3] Zakaria, Mueen, Keogh. "Clustering time series using unsupervised-shapelets". ICDM, 2012.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeClassifierCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skts import ShapeletTransformer
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, 2, 1, 2, 0], [0, 2, 1, 2, 0, 0]]
    >>> y = ["peak", "peak", "valley", "valley"]
    >>> transformer = ShapeletTransformer(1, max_candidates=None, lengths=[3], random_state=0)
    >>> transformer.fit_transform(X, y).round(2).tolist()
    [[1.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.0, 2.0, 1.0], [0.0, 1.0, 1.0]]
    >>> transformer.shapelets_[0].values.tolist()
    [2.0, 1.0, 2.0]
    >>> transformer = ShapeletTransformer(lengths=[3], random_state=0)
    >>> model = make_pipeline(transformer, StandardScaler(), RidgeClassifierCV())
    >>> model.fit(X, y).predict([[0, 0, 0, 1, 2, 1]]).tolist()
    ['peak']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_shapelets": [Interval(Integral, 1, None, closed="left"), None],
        "max_candidates": [Interval(Integral, 1, _MOST_DRAWN, closed="both"), None],
        "lengths": ["array-like", StrOptions({"auto"})],
        "dilations": ["array-like", StrOptions({"auto"})],
        "normalized": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "criterion": [StrOptions({"information_gain", "f_statistic", "separation"})],
        "max_class_share": [Interval(Real, 0, 1, closed="right"), StrOptions({"auto"})],
        "percentiles": [tuple, list],
        "features": [tuple, list],
        "random_state": ["random_state"],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_shapelets: int | None = None,
        *,
        max_candidates: int | None = 10_000,
        lengths: Literal["auto"] | Sequence[int | float] = "auto",
        dilations: Literal["auto"] | Sequence[int] = "auto",
        normalized: Literal["auto"] | float = "auto",
        criterion: str = "information_gain",
        max_class_share: Literal["auto"] | float = "auto",
        percentiles: tuple[float, float] = (5, 10),
        features: Sequence[str] = FEATURES,
        random_state: int | np.random.RandomState | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_shapelets = n_shapelets
        self.max_candidates = max_candidates
        self.lengths = lengths
        self.dilations = dilations
        self.normalized = normalized
        self.criterion = criterion
        self.max_class_share = max_class_share
        self.percentiles = percentiles
        self.features = features
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: ArrayLike | None = None) -> Self:
        """Choose shapelets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Training series; or a list of arrays of any lengths. NaN at the end is padding.
        y : array-like of shape (n_samples,) or None, default None
            Class labels; targets of any kind with ``criterion="separation"``, which takes no notice
            of them.

        Returns
        -------
        self : ShapeletTransformer
            The fitted transformer.

        Raises
        ------
        ValueError
            If `y` holds targets of a regression, and `criterion` is one of classes.
        """
        get_engine(self.engine)
        self._check_options()
        classes, labels = np.array([None], object), None
        if y is not None and self.criterion != "separation":
            y = check_target(X, y, "ShapeletTransformer", _FOR_REGRESSION)
            classes, labels = np.unique(y, return_inverse=True)
        series = check_series(X, estimator=self).freeze()
        supervised = labels is not None
        labels = np.zeros(len(series), np.int64) if labels is None else labels
        random = check_random_state(self.random_state)
        places, scores = self._choose(series, labels, supervised, random)
        order = _in_runs(places)
        shapelets = (places if order is None else places.take(order)).cut_out(series)
        # what `transform` would compute first, so that it writes nothing
        _ = shapelets.begins, shapelets.runs, shapelets.prepared
        thresholds = self._draw_thresholds(series, labels, places, order, shapelets, random)
        asked = ShapeletFeatures(shapelets, series, thresholds, tuple(self.features))
        engine = get_engine(self.engine, asked)
        self._remember_form(X, series)
        self.__dict__.update(
            engine_=engine.name,
            _chosen=_Chosen(
                places, shapelets, thresholds, order, scores, classes[labels[places.series]]
            ),
        )
        return self

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the features of series.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_features * n_shapelets), float64
            The first of the features for all shapelets, as in `shapelets_`, then the next one.

        Raises
        ------
        ValueError
            If parameters that were set after `fit` are wrong, as by `fit`.
        """
        check_is_fitted(self)
        self._check_options()  # set_params may have come after fit
        series = self._validate_series(X)
        chosen = self._chosen
        asked = ShapeletFeatures(chosen.shapelets, series, chosen.thresholds, tuple(self.features))
        found: np.ndarray = self._run(asked)
        if chosen.order is not None:
            found = found[:, :, np.argsort(chosen.order)]
        return found.reshape(len(series), -1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default None
            Not used, present for scikit-learn's convention.

        Returns
        -------
        ndarray of str objects
            The number of the shapelet in `shapelets_` and the feature: ``shapelet0_distance``.
        """
        check_is_fitted(self)
        self._check_options()  # set_params may have come after fit
        numbers = range(len(self._chosen.shapelets))
        names = [f"shapelet{k}_{feature}" for feature in self.features for k in numbers]
        return np.array(names, dtype=object)

    @property
    def shapelets_(self) -> list[DilatedShapelet]:
        """Return the shapelets, in the order of the columns of `transform`.

        Returns
        -------
        list of DilatedShapelet
            Points and provenance of each.
        """
        check_is_fitted(self)
        return self._chosen.listed()

    def _check_options(self) -> None:
        """Check parameters, those too that consist of several values."""
        self._validate_params()
        given = list(self.percentiles)
        numbers = all(isinstance(one, Real) and not isinstance(one, bool) for one in given)
        if len(given) != 2 or not numbers or not 0 <= given[0] <= given[1] <= 100:
            raise ValueError(
                f"percentiles={self.percentiles!r}: give two numbers from 0 to 100, in order."
            )
        names = list(self.features)
        if not all(one in FEATURES for one in names) or not 0 < len(names) == len(set(names)):
            raise ValueError(
                f"features={self.features!r}: give one or more of {', '.join(FEATURES)}, each once."
            )

    def _kinds(self, series: Series) -> Kinds:
        """Lengths and dilations of candidates; no series is shorter than one of them."""
        shortest = int(series.lengths.min())
        if isinstance(self.lengths, str):
            if self.max_candidates is None:
                least, most = min(3, shortest), max(min(3, shortest), shortest // 2)
                lengths = np.unique(np.linspace(least, most, _MANY).astype(int)).tolist()
            else:
                lengths = [one for one in _SHORT if one <= shortest]
                lengths = lengths or [max(1, shortest // 2 if shortest > 5 else shortest)]
        else:
            lengths = [_as_length(one, shortest) for one in self.lengths]
        if not lengths:
            raise ValueError("lengths is empty: give one or more.")
        if max(lengths) > shortest:
            row = int(series.lengths.argmin())
            raise ValueError(
                f"lengths has {max(lengths)}, above the {shortest} time points of series {row}, "
                "the shortest."
            )
        dilations = self.dilations
        if not isinstance(dilations, str):
            dilations = list(dilations)
            whole = (isinstance(one, Integral) and not isinstance(one, bool) for one in dilations)
            if not all(whole) or min(dilations, default=0) < 1:
                raise ValueError(f"dilations={self.dilations!r}: give whole numbers from 1 on.")
            dilations = [int(one) for one in dilations]
        share = self.normalized
        if isinstance(share, str):
            share = 1.0 if self.max_candidates is None else _NORMALIZED
        kinds = kinds_of(lengths, dilations, float(share), shortest)
        if not kinds.dilations:
            raise ValueError(
                f"dilations={self.dilations!r}: none leaves {min(lengths)} points of a shapelet "
                f"within the {shortest} time points of the shortest series."
            )
        return kinds

    def _choose(
        self,
        series: Series,
        labels: np.ndarray,
        supervised: bool,
        random: np.random.RandomState,
    ) -> tuple[Places, np.ndarray]:
        """The shapelets and their scores."""
        kinds, count = self._kinds(series), self.n_shapelets
        n_classes = int(labels.max()) + 1
        if self.max_candidates is None:
            count = min(_FOR_EACH * len(series), _MOST) if count is None else count
            most = self._share(count, n_classes)
            if supervised and self.criterion == "information_gain":
                criterion = Criterion(labels, np.ones(n_classes))
                work = BestShapelets(series, kinds.all_of_them(), criterion, count, most)
                best = self._run(work)
                return best.places, best.gain / criterion.unit
            every = Candidates(kinds.all_of_them(), series.lengths, series.n_channels)
            n_candidates = int(every.begins()[-1])
            places_of: Callable[[np.ndarray], Places] = every.places
        else:
            drawn = draw(series, kinds, self.max_candidates, random)
            n_candidates, places_of = len(drawn.start), drawn.take
            if count is None or (count >= n_candidates and not supervised):
                return drawn, np.full(n_candidates, np.nan)
            most = self._share(count, n_classes)
        name, step = self.criterion if supervised else "separation", max(1, _JUDGED // len(series))
        parts = [
            self._score(
                series, labels, places_of(np.arange(first, min(first + step, n_candidates))), name
            )
            for first in range(0, n_candidates, step)
        ]
        score, second = (np.concatenate(column) for column in zip(*parts, strict=True))
        room = Room(labels, (series.n_channels, series.n_timepoints), most)
        numbers, found, _ = choose((score, second), places_of, room, count)
        return places_of(numbers), found

    def _share(self, count: int, n_classes: int) -> int:
        """How many shapelets may be of one class."""
        share = self.max_class_share
        of_class = 1 / n_classes if isinstance(share, str) else float(share)
        return max(1, int(np.ceil(of_class * count * (1 - 1e-12))))

    def _score(
        self, series: Series, labels: np.ndarray, places: Places, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """Score some candidates by their distances to all series."""
        shapelets, none = places.cut_out(series), np.zeros(len(places.start))
        asked = ShapeletFeatures(shapelets, series, none, ("distance",))
        distances = self._run(asked)[:, 0].T
        step = max(1, _JUDGED // (len(series) * (int(labels.max()) + 1)))
        parts = [
            SCORES[name](
                distances[first : first + step], labels, places.normalized[first : first + step]
            )
            for first in range(0, len(distances), step)
        ]
        score, second = (np.concatenate(column) for column in zip(*parts, strict=True))
        return score, second

    def _draw_thresholds(
        self,
        series: Series,
        labels: np.ndarray,
        places: Places,
        order: np.ndarray | None,
        shapelets: DilatedShapelets,
        random: np.random.RandomState,
    ) -> np.ndarray:
        """Draw quantiles of distances to another series of the class, for shapelets in runs."""
        partners = draw_partners(places.series, labels, random)
        low, high = self.percentiles
        share = low + (high - low) * random.random_sample(len(partners))
        windows = series.lengths[partners] - places.extent + 1
        ranks = np.minimum(windows - 1, (share / 100 * windows).astype(np.int64))
        if order is not None:
            partners, ranks = partners[order], ranks[order]
        asked = DistanceQuantiles(shapelets, series, partners, ranks)
        found: np.ndarray = self._run(asked)
        return found


class _Chosen(NamedTuple):
    """The shapelets of a fitted transformer.

    Attributes
    ----------
    places : Places
        Where they lie, in the order of `shapelets_`.
    shapelets : DilatedShapelets
        Their points, those that share windows side by side.
    thresholds : ndarray of shape (n_shapelets,), float64
        In the same order.
    order : ndarray of shape (n_shapelets,), int64, or None
        Which of `places` each of `shapelets` is; None where the order is the same.
    scores, labels : ndarray of shape (n_shapelets,)
        In the order of `places`.
    """

    places: Places
    shapelets: DilatedShapelets
    thresholds: np.ndarray
    order: np.ndarray | None
    scores: np.ndarray
    labels: np.ndarray

    def listed(self) -> list[DilatedShapelet]:
        """The shapelets one by one."""
        points = np.split(self.shapelets.points, self.shapelets.begins[1:])
        thresholds, order = self.thresholds, self.order
        if order is not None:
            back = np.argsort(order).tolist()
            points, thresholds = [points[k] for k in back], thresholds[back]
        places = self.places
        whence = places.series, places.start, places.length, places.dilation, places.channel
        columns = *whence, places.normalized, thresholds, self.scores, self.labels
        rows = zip(points, *(column.tolist() for column in columns), strict=True)
        return [DilatedShapelet(values.copy(), *rest) for values, *rest in rows]


def _in_runs(places: Places) -> np.ndarray | None:
    """The order in which shapelets that share windows are side by side, None where they are."""
    shared = places.channel, places.dilation, places.length, ~places.normalized
    order = np.lexsort(shared)
    return None if np.array_equal(order, np.arange(len(order))) else order


def _as_length(given: Any, shortest: int) -> int:
    """Points of a shapelet, from a number or a share of the shortest series."""
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) >= 1:
        return int(given)
    if isinstance(given, Real) and not isinstance(given, (bool, Integral)):
        share = float(given)
        if 0 < share <= 1:
            return max(1, int(share * shortest * (1 + 1e-12)))
    raise ValueError(
        f"lengths has {given!r}: give whole numbers from 1 on, or shares between 0 and 1."
    )
