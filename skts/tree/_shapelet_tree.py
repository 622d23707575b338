"""A decision tree whose tests are distances to shapelets."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    TransformerMixin,
)
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import N_JOBS, checks_parameters
from .._validation import check_series, check_weights
from ..base import SeriesMixin
from ..engines import (
    LEAST_NORMALIZED,
    Series,
    SubsequenceMatches,
    get_engine,
)
from ._growth import TreeGrowth
from ._logic import choose_ways
from ._structure import Shapelet, keep, prune, walk

__all__ = ["ShapeletTreeClassifier"]


class ShapeletTreeClassifier(
    SeriesMixin,
    TransformerMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Classify time series by an exact decision tree over shapelets.

    Each node takes, of all subsequences of its training series, the one that separates the classes
    best. The distance of a shapelet to a series is the least root mean square difference to the
    windows of the series, both z-normalised; windows of fewer than 3 points are compared as they
    are. Of splits with equal information gain the one with the larger separation gap wins, then the
    shorter shapelet, the series with the lower index, the earlier start, the lower channel. Gains
    are compared exactly, and a node is not split if nothing is gained. Distances that differ by at
    most 2^-36 of the larger one (for normalised windows: by at most 2^-36) are never separated,
    since such a difference may be a rounding error. Splits rest on certified float64 distances, so
    that every engine and memory budget grows the same tree.

    Parameters
    ----------
    min_length : int, float or "auto", default "auto"
        Points of the shortest candidate; a float is a share of the longest series, rounded down,
        "auto" a quarter of the shortest series, at least 3 where the series has as many.
    max_length : int, float or "auto", default "auto"
        Points of the longest candidate; a float is a share of the longest series, rounded down,
        "auto" two thirds of the shortest series. It may be above the length of the shortest.
    length_step : int, default 1
        Step from one candidate length to the next.
    logic : sequence of {"and", "or"} or "auto", default ("and", "or")
        How further shapelets may join a node: "and" takes the larger of the two distances, "or" the
        smaller; () allows one shapelet only. "auto" takes both ways or none, by the accuracy of
        five-fold cross-validation on the training series, for ten more trees.
    max_literals : int, default 2
        Shapelets of a node at most.
    max_depth : int or None, default None
        Depth of the tree at most.
    min_samples_split : int or float, default 2
        Series that a node needs to be split; a float is a share of all.
    min_samples_leaf : int or float, default 1
        Series that a leaf needs; a float is a share of all.
    min_weight_fraction_leaf : float, default 0.0
        Share of the weight of all series that a leaf needs.
    min_impurity_decrease : float, default 0.0
        Decrease of the entropy, times the node's share of the weight, that a split needs.
    ccp_alpha : float, default 0.0
        Complexity parameter of minimal cost-complexity pruning.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, 0 or above; only their ratios matter to the tree. They are
        multiplied with `sample_weight` of `fit`, and do not enter the separation gap.
    max_candidates : int or None, default None
        Candidates tried at each node, drawn at random; None tries all.
    random_state : int, RandomState instance or None, default None
        Draws the candidates.
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
    logic_ : tuple of {"and", "or"}
        How further shapelets might join a node.
    tree_ : ShapeletTree
        The tree as flat arrays.
    shapelets_ : list of Shapelet
        Shapelets of all nodes, in the order of the nodes.
    feature_importances_ : ndarray of shape (n_timepoints,) or (n_channels, n_timepoints)
        The importance of each time point of the training series.
    shapelet_importances_ : ndarray of shape (n_shapelets,)
        The importance of each shapelet, as the columns of `transform`.
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
    skts.metrics.subsequence_distance : The distance of one subsequence to one series.
    export_text : The rules of a tree as text.

    Notes
    -----
    Where a series is shorter than a shapelet its distance is infinite; no threshold separates
    infinite distances from others, these series go to the right, and the separation gap is
    infinite. Candidates for which some training series have no room are all measured, as
    are those that may join them, while bounds spare most of the work for others.

    Features of the training series overfit, since the tree was grown from their labels: make those
    of each fold with a tree of the other folds (`sklearn.model_selection` shows how).

    References
    ----------
    .. [1] Chang, Deka, Hwu, Roth. "Efficient pattern-based time series classification on GPU".
       ICDM, 2012, sections II and III.
    .. [2] Mueen, Keogh, Young. "Logical-shapelets: an expressive primitive for time series
       classification". KDD, 2011.

    Examples
    --------
    >>> from skts import ShapeletTreeClassifier
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, 2, 1, 2, 0], [0, 2, 1, 2, 0, 0]]
    >>> y = ["peak", "peak", "valley", "valley"]
    >>> model = ShapeletTreeClassifier(min_length=3, max_length=3).fit(X, y)
    >>> model.predict([[0, 0, 0, 1, 2, 1]]).tolist()
    ['peak']
    >>> model.shapelets_[0].values.tolist()
    [2.0, 1.0, 2.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_length": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"auto"}),
        ],
        "max_length": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
            StrOptions({"auto"}),
        ],
        "length_step": [Interval(Integral, 1, None, closed="left")],
        "logic": [tuple, list, StrOptions({"auto"})],
        "max_literals": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="right"),
        ],
        "min_samples_leaf": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        ],
        "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
        "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        min_length: int | float | Literal["auto"] = "auto",
        max_length: int | float | Literal["auto"] = "auto",
        length_step: int = 1,
        logic: tuple[str, ...] | list[str] | Literal["auto"] = ("and", "or"),
        max_literals: int = 2,
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        max_candidates: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
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
        self.ccp_alpha = ccp_alpha
        self.class_weight = class_weight
        self.max_candidates = max_candidates
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(
        self,
        X: ArrayLike | list[ArrayLike],
        y: ArrayLike,
        sample_weight: ArrayLike | float | None = None,
    ) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Training series; or a list of arrays of any lengths. NaN at the end is padding.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), float or None, default None
            Weights of the series, 0 or above; None means 1 for all. A series of weight 2 counts
            like two equal series, one of weight 0 not at all. Only `min_samples_split` and
            `min_samples_leaf` count series without their weights.

        Returns
        -------
        self : ShapeletTreeClassifier
            The fitted tree.
        """
        get_engine(self.engine)
        series, growth = self._start_growth(X, y, sample_weight)
        engine = get_engine(self.engine, growth.search(np.arange(len(growth.series))))
        if self.logic == "auto":
            growth.ways = choose_ways(growth.labels, growth.judge)
        tree, shapelets = growth.grow()
        tree, shapelets = keep(tree, shapelets, prune(tree, self.ccp_alpha)[2])
        self._remember_form(X, series)
        # all at once: a fit that fails or is interrupted leaves the tree before as it was
        self.__dict__.update(
            engine_=engine.name,
            classes_=growth.classes,
            logic_=growth.ways,
            tree_=growth.with_weights(tree),
            shapelets_=shapelets,
            _n_timepoints=series.n_timepoints,
        )
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
            Labels; of equally frequent classes in a leaf, the one that comes first in `classes_`.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def predict_proba(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the share of each class in the leaf that a series reaches.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1; columns as in `classes_`.
        """
        leaves = self.apply(X)
        return self.tree_.value[leaves]

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the distance of each series to each shapelet.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_shapelets)
            Columns as in `shapelets_`; infinite where a series is shorter than the shapelet.
        """
        check_is_fitted(self)
        return self._measure(self._validate_series(X))[0]

    def locate(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return where each shapelet matches best in each series.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_shapelets), int64
            Start of the best match, of several the earliest; -1 where a series is shorter than the
            shapelet.
        """
        check_is_fitted(self)
        return self._measure(self._validate_series(X))[1]

    def apply(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the leaf that each series reaches.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples,), int64
            Nodes of `tree_`.
        """
        return self._paths(X)[-1]

    def decision_path(self, X: ArrayLike | list[ArrayLike]) -> csr_matrix:
        """Return the nodes that each series passes.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        csr_matrix of shape (n_samples, n_nodes)
            Ones where a series passes a node.
        """
        steps = np.stack(self._paths(X))
        indicator = np.zeros((steps.shape[1], len(self.tree_.threshold)), np.int64)
        for nodes in steps:
            indicator[np.arange(len(nodes)), nodes] = 1
        return csr_matrix(indicator)

    def get_depth(self) -> int:
        """Return the depth of the tree.

        Returns
        -------
        int
            Largest number of splits between the root and a leaf.
        """
        check_is_fitted(self)
        depth = np.zeros(len(self.tree_.threshold), np.int64)
        for node in np.flatnonzero(self.tree_.children_left >= 0):
            children = self.tree_.children_left[node], self.tree_.children_right[node]
            depth[list(children)] = depth[node] + 1
        return int(depth.max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Returns
        -------
        int
            Nodes without children.
        """
        check_is_fitted(self)
        return int((self.tree_.children_left < 0).sum())

    def cost_complexity_pruning_path(
        self,
        X: ArrayLike | list[ArrayLike],
        y: ArrayLike,
        sample_weight: ArrayLike | float | None = None,
    ) -> Bunch:
        """Return the steps of pruning the full tree, from which `ccp_alpha` can be chosen.

        Parameters
        ----------
        X : array-like or list of array-like
            Training series.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), float or None, default None
            Weights of the series, as those of `fit`.

        Returns
        -------
        Bunch
            ``ccp_alphas``, ascending, and ``impurities``: for each of them the entropy of the
            leaves of the pruned tree, weighted by their shares of the training series.
        """
        growth = self._start_growth(X, y, sample_weight)[1]
        if self.logic == "auto":
            growth.ways = choose_ways(growth.labels, growth.judge)
        alphas, impurities, _ = prune(growth.grow()[0], np.inf)
        return Bunch(ccp_alphas=np.array(alphas), impurities=np.array(impurities))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default None
            Not used, present for scikit-learn's convention.

        Returns
        -------
        ndarray of str objects
            A name for each shapelet: its number, series, channel (of several), start and length.
        """
        check_is_fitted(self)
        of = "_channel{0.channel}" if self.n_channels_ > 1 else ""
        form = "shapelet{1}_series{0.series}" + of + "_start{0.start}_length{0.length}"
        return np.array([form.format(s, k) for k, s in enumerate(self.shapelets_)], dtype=object)

    @property
    def shapelet_importances_(self) -> np.ndarray:
        """Return the share of each shapelet in the decrease of entropy by the whole tree.

        Of several shapelets in a node, each gets the part by which it raises the gain.

        Returns
        -------
        ndarray of shape (n_shapelets,)
            As the columns of `transform`; they sum to 1, or are 0 where nothing is split.
        """
        check_is_fitted(self)
        weights, found = self.tree_.weighted_n_node_samples, np.zeros(len(self.shapelets_))
        for k, one in enumerate(self.shapelets_):
            gain = one.gain if one.logic == "first" else one.gain - self.shapelets_[k - 1].gain
            # gains of a node are rounded alike: the later one is not below
            found[k] = max(0.0, gain) * weights[one.node] / weights[0]
        total = found.sum()
        return found / total if total > 0 else found

    @property
    def feature_importances_(self) -> np.ndarray:
        """Return the importance of each time point of the training series.

        The importance of a shapelet is spread over the time points that it was taken from; in other
        series it may match anywhere.

        Returns
        -------
        ndarray of shape (n_timepoints,), or (n_channels, n_timepoints) if there are several
            They sum to 1, or are 0 where nothing is split; the longest training series counts.
        """
        importances = self.shapelet_importances_
        found = np.zeros((self.n_channels_, self._n_timepoints))
        for one, share in zip(self.shapelets_, importances, strict=True):
            found[one.channel, one.start : one.start + one.length] += share / one.length
        return found if self.n_channels_ > 1 else found[0]

    def _start_growth(
        self, X: ArrayLike | list[ArrayLike], y: ArrayLike, sample_weight: ArrayLike | float | None
    ) -> tuple[Series, TreeGrowth]:
        """Validate training data; return the series, and the growth on those that have a weight."""
        y = self._validate_target(X, y)
        weights = check_weights(sample_weight, len(y), self)
        series = check_series(X, estimator=self).freeze()
        rows = np.flatnonzero(weights)
        there = series if len(rows) == len(series) else series.take(rows).freeze()
        return series, TreeGrowth(self, there, y[rows], weights[rows], rows)

    def _lengths(self, series: Series) -> tuple[int, ...]:
        """Lengths of candidates."""
        shortest, longest = int(series.lengths.min()), int(series.lengths.max())
        least, most = (_points(given, longest) for given in (self.min_length, self.max_length))
        if isinstance(least, str):
            least = shortest if shortest < 3 else max(3, shortest // 4)
            least = least if isinstance(most, str) else min(least, most)
        if isinstance(most, str):
            most = max(least, 2 * shortest // 3)
        if least > most:
            raise ValueError(f"min_length={least} is above max_length={most}.")
        if least > shortest:
            row = int(series.lengths.argmin())
            raise ValueError(
                f"min_length={least} is above the {shortest} time points of series {row}, the "
                "shortest."
            )
        if most > longest:
            raise ValueError(
                f"max_length={most} is above the {longest} time points of the longest series."
            )
        return tuple(range(int(least), int(most) + 1, int(self.length_step)))

    def _measure(
        self, series: Series, shapelets: list[Shapelet] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Distances and places of all shapelets in all series."""
        shapelets = self.shapelets_ if shapelets is None else shapelets
        shape = len(series), len(shapelets)
        distances, starts = np.empty(shape), np.empty(shape, np.int64)
        for raw in (False, True):
            short = np.array([s.length < LEAST_NORMALIZED for s in shapelets], bool)
            columns = np.flatnonzero(short == raw)
            if not columns.size:
                continue
            literals = [shapelets[k] for k in columns]
            channels = np.array([literal.channel for literal in literals])
            queries = tuple(literal.values for literal in literals)
            found = self._run(SubsequenceMatches(queries, series, not raw, channels))
            scale = np.sqrt([[literal.length] for literal in literals])
            distances[:, columns] = (found.distances / scale).T
            starts[:, columns] = found.starts.T
        return distances, starts

    def _paths(self, X: ArrayLike | list[ArrayLike]) -> list[np.ndarray]:
        """Nodes of all series, level by level; series that have arrived stay where they are."""
        check_is_fitted(self)
        distances = self._measure(self._validate_series(X))[0]
        return walk(self.tree_, self.shapelets_, distances)


def _points(given: int | float | str, longest: int) -> int | str:
    """Points of a number or a share of the longest series; words stay."""
    if isinstance(given, str | Integral):
        return given if isinstance(given, str) else int(given)
    return max(1, int(given * longest))
