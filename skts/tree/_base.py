"""Base of the trees whose tests are distances to shapelets."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import TransformerMixin
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import N_JOBS
from .._validation import check_series, check_weights
from ..base import SeriesMixin
from ..engines import (
    LEAST_NORMALIZED,
    Series,
    SubsequenceMatches,
    distances_to_all,
    get_engine,
)
from ._growth import TreeGrowth
from ._logic import choose_ways
from ._structure import Shapelet, ShapeletTree, keep, prune, walk

__all__ = ["ShapeletTreeMixin"]


class ShapeletTreeMixin(SeriesMixin, TransformerMixin):
    """Growth of a tree, its shapelets, and the way of series through it."""

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
        "max_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    min_length: int | float | str
    max_length: int | float | str
    length_step: int
    logic: Any
    ccp_alpha: float
    n_channels_: int
    tree_: ShapeletTree
    shapelets_: list[Shapelet]
    _n_timepoints: int

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
        return self._measure(self._validate_series(X), self.shapelets_)

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
        series = self._validate_series(X)
        starts = np.empty((len(series), len(self.shapelets_)), np.int64)
        for normalized in (False, True):
            columns = [
                k
                for k, shapelet in enumerate(self.shapelets_)
                if (shapelet.length >= LEAST_NORMALIZED) == normalized
            ]
            if columns:
                shapelets = [self.shapelets_[k] for k in columns]
                channels = np.array([shapelet.channel for shapelet in shapelets])
                queries = tuple(shapelet.values for shapelet in shapelets)
                work = SubsequenceMatches(queries, series, normalized, channels)
                starts[:, columns] = self._run(work).starts.T
        return starts

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
            Class labels, or targets.
        sample_weight : array-like of shape (n_samples,), float or None, default None
            Weights of the series, as those of `fit`.

        Returns
        -------
        Bunch
            ``ccp_alphas``, ascending, and ``impurities``: for each of them the impurity of the
            leaves of the pruned tree, weighted by their shares of the training series.
        """
        growth = self._start_growth(X, y, sample_weight)[1]
        growth.choose_engine()
        if self.logic == "auto":
            growth.ways = choose_ways(growth.folds(), growth.judge)
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
        """Return the share of each shapelet in the decrease of impurity by the whole tree.

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

    @abstractmethod
    def _growth_of(self, series: Series, y: np.ndarray, *others: Any) -> TreeGrowth:
        """The growth of a tree on series that have a weight; arguments as of `TreeGrowth`."""

    def _start_growth(
        self, X: ArrayLike | list[ArrayLike], y: ArrayLike, sample_weight: ArrayLike | float | None
    ) -> tuple[Series, TreeGrowth]:
        """Validate training data; return the series, and the growth on those that have a weight."""
        y = self._validate_target(X, y)
        weights = check_weights(sample_weight, len(y), self)
        series = check_series(X, estimator=self).freeze()
        rows = np.flatnonzero(weights)
        there = series if len(rows) == len(series) else series.take(rows).freeze()
        return series, self._growth_of(there, y[rows], weights[rows], rows)

    def _grow(
        self, X: ArrayLike | list[ArrayLike], y: ArrayLike, sample_weight: ArrayLike | float | None
    ) -> tuple[TreeGrowth, dict[str, Any]]:
        """Grow and prune the tree; return the growth, and what `fit` keeps."""
        get_engine(self.engine)
        series, growth = self._start_growth(X, y, sample_weight)
        engine = growth.choose_engine()
        if self.logic == "auto":
            growth.ways = choose_ways(growth.folds(), growth.judge)
        tree, shapelets = growth.grow()
        tree, shapelets = keep(tree, shapelets, prune(tree, self.ccp_alpha)[2])
        self._remember_form(X, series)
        return growth, {
            "engine_": engine,
            "logic_": growth.ways,
            "tree_": growth.with_weights(tree),
            "shapelets_": shapelets,
            "_n_timepoints": series.n_timepoints,
        }

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

    def _measure(self, series: Series, shapelets: list[Shapelet]) -> np.ndarray:
        """Distances of shapelets to all series, shape (n_series, n_shapelets)."""
        if not shapelets:
            return np.empty((len(series), 0))  # of a root that is a leaf
        lengths = np.array([shapelet.length for shapelet in shapelets])
        values = np.zeros((len(shapelets), series.n_channels, lengths.max()))
        pieces = np.zeros((len(shapelets), 4), np.int64)
        for k, shapelet in enumerate(shapelets):
            values[k, shapelet.channel, : shapelet.length] = shapelet.values
            pieces[k] = k, shapelet.channel, 0, shapelet.length
        distances = distances_to_all(Series(values, lengths), pieces, series, self._run)
        return np.ascontiguousarray(distances.T)

    def _paths(self, X: ArrayLike | list[ArrayLike]) -> list[np.ndarray]:
        """Nodes of all series, level by level; series that have arrived stay where they are."""
        check_is_fitted(self)
        distances = self._measure(self._validate_series(X), self.shapelets_)
        return walk(self.tree_, self.shapelets_, distances)


def _points(given: int | float | str, longest: int) -> int | str:
    """Points of a number or a share of the longest series; words stay."""
    if isinstance(given, str | Integral):
        return given if isinstance(given, str) else int(given)
    return max(1, int(given * longest))
