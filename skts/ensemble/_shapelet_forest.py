"""A forest of trees whose tests are distances to random shapelets."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import N_JOBS, checks_parameters, warn_user
from .._validation import check_series
from ..base import SeriesMixin
from ..engines import Series, get_engine
from ..tree import ShapeletTreeClassifier
from ..tree._class_weights import class_weights, share_of
from ..tree._log_proba import LogProbaMixin
from ._growth import Growth, Limits, Sample
from ._trees import Trees

__all__ = ["ShapeletForestClassifier"]

#: Seeds of trees are below this.
_SEEDS = np.iinfo(np.int32).max
#: Trees, candidates of a node, and shapelets of a node, at most: arrays have room for all of them.
_MOST, _MOST_LITERALS = 10**6, 100
#: Above all numbers of series, and small enough for sums of two in 64 bits.
_MANY = 2**60


class ShapeletForestClassifier(LogProbaMixin, SeriesMixin, ClassifierMixin, BaseEstimator):
    """Classify time series by a forest of trees over random shapelets.

    Each tree is grown on a sample of the training series, drawn with replacement. Each of its nodes
    draws some subsequences of its series and takes the one that separates the classes best, by the
    rules of `ShapeletTreeClassifier`: the distance of a shapelet to a series is the least root mean
    square difference to the windows of the series, both z-normalised; of splits with equal
    information gain the one with the larger separation gap wins. The classes of a series are
    averaged over the leaves that it reaches.

    All trees grow together, level by level. Candidates are drawn by this machine's processor, and
    splits rest on certified float64 distances, so that one seed gives the same forest on every
    engine, with any number of threads and any memory budget.

    Parameters
    ----------
    n_estimators : int, default 100
        Trees, at most a million.
    max_candidates : int, "sqrt" or "log2", default 10
        Candidates that each node draws, at most a million; "sqrt" and "log2" are of the longest
        training series.
    min_length : int, float or "auto", default "auto"
        Points of the shortest candidate; a float is a share of the longest series. "auto" is 3, or
        all points of a series that has fewer.
    max_length : int, float, "auto" or None, default "auto"
        Points of the longest candidate; a float is a share of the longest series, None all of it,
        "auto" half of it, at least 3 points of a series that has as many.
    length_step : int, default 1
        Step from one candidate length to the next.
    logic : sequence of {"and", "or"}, default ()
        How further candidates of a node may join the first: "and" takes the larger of the two
        distances, "or" the smaller; () allows one shapelet only.
    max_literals : int, default 2
        Shapelets of a node at most; not above 100.
    max_depth : int or None, default None
        Depth of the trees at most.
    min_samples_split : int or float, default 2
        Series that a node needs to be split; a float is a share of all. Series count as often as
        they were drawn.
    min_samples_leaf : int or float, default 1
        Series that a leaf needs; a float is a share of all. Series count as often as they were
        drawn.
    min_weight_fraction_leaf : float, default 0.0
        Share of the weight of the tree's series that a leaf needs.
    min_impurity_decrease : float, default 0.0
        Decrease of the entropy, times the node's share of the weight, that a split needs.
    bootstrap : bool, default True
        Whether each tree draws its series, with replacement; else all trees have all.
    max_samples : int, float or None, default None
        Series that each tree draws; a float is a share of all, None as many as there are.
    oob_score : bool, default False
        Whether to judge the forest by the series that trees have not drawn.
    class_weight : dict, "balanced", "balanced_subsample" or None, default None
        Weights of the classes, 0 or above; only their ratios matter. "balanced_subsample" balances
        those that each tree has drawn.
    random_state : int, RandomState instance or None, default None
        Draws a seed for each tree, which draws its series and candidates. A tree does not depend on
        how many others there are.
    warm_start : bool, default False
        Whether `fit` keeps the trees that there are and grows the ones that are missing, on the
        same training series.
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
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_classes_ : int
        How many there are.
    estimators_ : list of ShapeletTreeClassifier
        The trees, made when they are first asked for.
    feature_importances_ : ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        The importance of each time point of the training series.
    oob_score_ : float
        Share of the training series that trees which have not drawn them classify rightly; with
        `oob_score` only.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        The shares of the classes that these trees give; NaN where all trees have drawn a series.
        With `oob_score` only.
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
    ShapeletTreeClassifier : One tree, exact: each node takes the best of all subsequences.

    Notes
    -----
    Where a series is shorter than a shapelet its distance is infinite; no threshold separates
    infinite distances from others, and these series go to the right.

    A node draws a series, one of the lengths that this has room for, a start, and a channel, each
    with equal probability [1]_. A node of which no candidate gains anything is a leaf.

    The forest keeps its training series, of which its shapelets are pieces.

    References
    ----------
    .. [1] Karlsson, Papapetrou, Boström. "Generalized random shapelet forests". Data Mining and
       Knowledge Discovery 30, 2016.
    .. [2] Breiman. "Random forests". Machine Learning 45, 2001.

    Examples
    --------
    >>> from skts import ShapeletForestClassifier
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, 2, 1, 2, 0], [0, 2, 1, 2, 0, 0]]
    >>> y = ["peak", "peak", "valley", "valley"]
    >>> model = ShapeletForestClassifier(random_state=0).fit(X, y)
    >>> model.predict([[0, 0, 0, 1, 2, 1]]).tolist()
    ['peak']
    >>> len(model.estimators_)
    100
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: ShapeletTreeClassifier._parameter_constraints[name]
            for name in ("length_step", "max_depth", "min_samples_split",
                         "min_samples_leaf", "min_weight_fraction_leaf", "min_impurity_decrease",
                         "random_state", "engine", "verbose")
        },
        "n_estimators": [Interval(Integral, 1, _MOST, closed="both")],
        "max_candidates": [
            Interval(Integral, 1, _MOST, closed="both"),
            StrOptions({"sqrt", "log2"}),
        ],
        "min_length": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"auto"}),
        ],
        "max_length": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"auto"}),
            None,
        ],
        "logic": [tuple, list],
        "max_literals": [Interval(Integral, 1, _MOST_LITERALS, closed="both")],
        "bootstrap": ["boolean"],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            None,
        ],
        "oob_score": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced", "balanced_subsample"}), None],
        "warm_start": ["boolean"],
        "n_jobs": N_JOBS,
    }  # fmt: skip

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_candidates: int | Literal["sqrt", "log2"] = 10,
        min_length: int | float | Literal["auto"] = "auto",
        max_length: int | float | Literal["auto"] | None = "auto",
        length_step: int = 1,
        logic: tuple[str, ...] | list[str] = (),
        max_literals: int = 2,
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        bootstrap: bool = True,
        max_samples: int | float | None = None,
        oob_score: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_candidates = max_candidates
        self.min_length = min_length
        self.max_length = max_length
        self.length_step = length_step
        self.logic = logic
        self.max_literals = max_literals
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: ArrayLike) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Training series; or a list of arrays of any lengths. NaN at the end is padding.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : ShapeletForestClassifier
            The fitted forest.
        """
        get_engine(self.engine)
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score=True needs bootstrap=True: trees that have all series "
                             "leave none out.")  # fmt: skip
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError("max_samples needs bootstrap=True, which draws so many series.")
        y = self._validate_target(X, y)
        series = check_series(X, estimator=self).freeze()
        classes, labels = np.unique(y, return_inverse=True)
        limits = self._limits(series)
        seeds = check_random_state(self.random_state).randint(_SEEDS, size=self.n_estimators)
        known = self._known(series, classes, labels)
        n_known = 0 if known is None else known.trees.n_trees
        samples = self._samples(seeds[n_known:], classes, labels)
        grown = known
        if samples:
            growth = Growth(series, labels, len(classes), samples, limits)
            engine = get_engine(self.engine, growth.roots()).name
            trees = growth.grow(self._run)
            if known is not None:
                trees = known.trees.followed_by(trees)
                seeds = np.concatenate([known.seeds, seeds[n_known:]])
            grown = _Grown(series, classes, labels, trees, seeds, engine)
        assert grown is not None
        self._remember_form(X, series)
        self.__dict__.update(
            engine_=grown.engine, classes_=classes, n_classes_=len(classes), _grown=grown
        )
        self.__dict__.pop("_estimators", None)
        if self.oob_score:
            self._judge_out_of_bag()
        return self

    def predict(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Predict the class of each series.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; of equally probable classes the one that comes first in `classes_`.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def predict_proba(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the mean share of each class in the leaves that a series reaches.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1; columns as in `classes_`.
        """
        leaves = self._leaves(X)
        found = np.zeros((len(leaves), self.n_classes_))
        for column in leaves.T:
            found += self._grown.trees.value[column]
        return found / leaves.shape[1]

    def apply(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the leaf that each series reaches in each tree.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators), int64
            Nodes of the `tree_` of each of the `estimators_`.
        """
        leaves = self._leaves(X)
        places = self._grown.trees.places()
        return places[leaves]

    @property
    def estimators_(self) -> list[ShapeletTreeClassifier]:
        """Return the trees as estimators of their own.

        Returns
        -------
        list of ShapeletTreeClassifier
            Fitted trees, as many as `n_estimators`.
        """
        check_is_fitted(self)
        found = self.__dict__.get("_estimators")
        if found is None:
            found = [self._estimator(number) for number in range(self._grown.trees.n_trees)]
            self.__dict__["_estimators"] = found
        return list(found)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Return the importance of each time point of the training series.

        The importance of a shapelet, its share in the decrease of entropy by its tree, is spread
        over the time points that it was taken from; in other series it may match anywhere.

        Returns
        -------
        ndarray of shape (n_timepoints,), or (n_channels, n_timepoints) if there are several
            They sum to 1, or are 0 where nothing is split; the longest training series counts.
        """
        check_is_fitted(self)
        n_channels, width = self._grown.series.shape[1:]
        trees = self._grown.trees
        pieces, shares = trees.literals.pieces, trees.importances()
        _, channels, starts, lengths = pieces.T
        # in an order that does not tell which trees were grown together
        order = np.lexsort((shares, lengths, starts, channels))
        channels, starts, ends = channels[order], starts[order], (starts + lengths)[order]
        steps = np.zeros((n_channels, width + 1))
        often = np.zeros(steps.shape, np.int64)
        for some, each in ((steps, (shares / lengths)[order]), (often, shares[order] > 0)):
            np.add.at(some, (channels, starts), each)
            np.subtract.at(some, (channels, ends), each)
        # where no shapelet was taken, what rounding leaves of the sums is nothing
        found = np.maximum(0.0, np.cumsum(steps, axis=1)[:, :-1])
        found[np.cumsum(often, axis=1)[:, :-1] == 0] = 0.0
        total = found.sum()
        found = found / total if total > 0 else found
        return found if n_channels > 1 else found[0]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: not the trees as estimators, which are made again."""
        return {name: v for name, v in super().__getstate__().items() if name != "_estimators"}

    def _limits(self, series: Series) -> Limits:
        """When nodes are split; checks what depends on the series."""
        if not set(self.logic) <= {"and", "or"}:
            raise ValueError(f'logic takes "and" and "or"; got {tuple(self.logic)!r}.')
        n, longest = len(series), series.n_timepoints
        given = self.max_candidates
        if isinstance(given, str):
            count = max(1, int(np.sqrt(longest) if given == "sqrt" else np.log2(longest)))
        else:
            count = int(given)
        leaf, split = self.min_samples_leaf, self.min_samples_split
        return Limits(
            self._lengths(series),
            count,
            tuple(way for way in ("and", "or") if way in self.logic),
            self.max_literals,
            self.max_depth,
            min(_MANY, int(split) if isinstance(split, Integral) else max(2, share_of(n, split))),
            min(_MANY, int(leaf) if isinstance(leaf, Integral) else max(1, share_of(n, leaf))),
            self.min_weight_fraction_leaf,
            self.min_impurity_decrease,
        )

    def _lengths(self, series: Series) -> np.ndarray:
        """Lengths of candidates."""
        shortest, width = int(series.lengths.min()), series.n_timepoints

        def points(given: int | float) -> int:
            return int(given) if isinstance(given, Integral) else max(1, int(given * width))

        least = 1 if isinstance(self.min_length, str) else points(self.min_length)
        if isinstance(self.max_length, str):
            most = max(least, min(3, width), width // 2)
        else:
            most = width if self.max_length is None else points(self.max_length)
        if isinstance(self.min_length, str):
            least = min(3, shortest, most)
        for name, given in (("min_length", least), ("max_length", most)):
            if given > width:
                raise ValueError(
                    f"{name}={given} is above the {width} time points of the longest series."
                )
        if least > most:
            raise ValueError(f"min_length={self.min_length} is above max_length={self.max_length}.")
        if least > shortest:
            row = int(series.lengths.argmin())
            raise ValueError(
                f"min_length={self.min_length} is above the {shortest} time points of series {row},"
                " the shortest."
            )
        return np.arange(least, most + 1, min(int(self.length_step), width))

    def _samples(self, seeds: np.ndarray, classes: np.ndarray, labels: np.ndarray) -> list[Sample]:
        """Draw the series of each tree."""
        n, n_classes = len(labels), len(classes)
        weights, scale = np.ones(n_classes), 1.0
        subsample = self.class_weight == "balanced_subsample"
        if not subsample:
            weights, scale = class_weights(self.class_weight, classes, labels, np.ones(n))
        found = []
        for seed in seeds.tolist():
            random = np.random.RandomState(seed)
            rows, times = np.arange(n), np.ones(n, np.int64)
            if self.bootstrap:
                times = np.bincount(random.randint(0, n, self._n_drawn(n)), minlength=n)
                rows = np.flatnonzero(times)
                times = times[rows]
            if subsample:
                counts = np.bincount(labels[rows], times, n_classes)
                there = np.flatnonzero(counts)
                scale = float(times.sum() / (there.size * counts[there].min()))
                weights = np.zeros(n_classes)
                weights[there] = counts[there].min() / counts[there]
            found.append(Sample(rows, times, weights, scale, random))
        return found

    def _n_drawn(self, n: int) -> int:
        """Series that each tree draws."""
        most = self.max_samples
        if most is None:
            return n
        if isinstance(most, Integral):
            if most > n:
                raise ValueError(f"max_samples={most} is above the {n} training series.")
            return int(most)
        return max(1, round(n * float(most)))

    def _known(self, series: Series, classes: np.ndarray, labels: np.ndarray) -> _Grown | None:
        """The trees that `warm_start` keeps."""
        before: _Grown | None = self.__dict__.get("_grown")
        if not self.warm_start or before is None:
            return None
        same = np.array_equal(before.series.values, series.values)
        same &= np.array_equal(before.series.lengths, series.lengths)
        if not (same and np.array_equal(before.classes[before.labels], classes[labels])):
            raise ValueError(
                "warm_start=True adds trees to those that were grown on the same series and "
                "classes; these are others. Fit with warm_start=False."
            )
        if before.trees.n_trees > self.n_estimators:
            raise ValueError(
                f"n_estimators={self.n_estimators} is below the {before.trees.n_trees} trees that "
                "there are; warm_start=True can only add trees."
            )
        return before

    def _leaves(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Nodes that series reach in each tree."""
        check_is_fitted(self)
        series = self._validate_series(X)
        trees, source = self._grown.trees, self._grown.series
        wanted = np.ones((len(series), trees.n_trees), bool)
        return trees.walk(source, series, wanted, self._run)

    def _judge_out_of_bag(self) -> None:
        """Have each training series classified by the trees that have not drawn it."""
        series, classes, labels, trees, seeds, _ = self._grown
        wanted = np.ones((len(series), trees.n_trees), bool)
        for number, sample in enumerate(self._samples(seeds, classes, labels)):
            wanted[sample.rows, number] = False
        leaves = trees.walk(series, series, wanted, self._run)
        votes = np.zeros((len(series), len(classes)))
        for column, asked in zip(leaves.T, wanted.T, strict=True):
            votes[asked] += trees.value[column[asked]]
        count = wanted.sum(axis=1)
        judged = count > 0
        if not judged.all():
            warn_user(
                f"Each tree has drawn {np.count_nonzero(~judged)} of the {len(series)} training "
                "series, which the out-of-bag score leaves out: grow more trees."
            )
        shares = np.full(votes.shape, np.nan)
        shares[judged] = votes[judged] / count[judged, np.newaxis]
        right = shares[judged].argmax(axis=1) == labels[judged]
        self.oob_decision_function_ = shares
        self.oob_score_ = float(right.mean()) if judged.any() else np.nan

    def _estimator(self, number: int) -> ShapeletTreeClassifier:
        """One of the trees as an estimator."""
        series, classes, _, trees, seeds, engine = self._grown
        lengths = self._lengths(series)
        model = ShapeletTreeClassifier(
            min_length=int(lengths[0]),
            max_length=int(lengths[-1]),
            length_step=self.length_step,
            logic=self.logic,
            max_literals=self.max_literals,
            max_depth=self.max_depth,
            min_samples_split=self.min_samples_split,
            min_samples_leaf=self.min_samples_leaf,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            min_impurity_decrease=self.min_impurity_decrease,
            max_candidates=self._limits(series).n_candidates,
            random_state=int(seeds[number]),
            engine=cast(str, self.engine),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        tree, shapelets = trees.take(number, series)
        model.__dict__.update(
            engine_=engine,
            classes_=classes,
            tree_=tree,
            shapelets_=shapelets,
            _n_timepoints=series.n_timepoints,
        )
        for name in ("n_features_in_", "feature_names_in_", "n_channels_", "_channel_names"):
            if hasattr(self, name):
                setattr(model, name, getattr(self, name))
        return model


class _Grown(NamedTuple):
    """A forest, and what it was grown from: series, classes, labels; seeds of trees; the engine."""

    series: Series
    classes: np.ndarray
    labels: np.ndarray
    trees: Trees
    seeds: np.ndarray
    engine: str
