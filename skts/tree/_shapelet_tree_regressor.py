"""A regression tree whose tests are distances to shapelets."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import column_or_1d

from .._parameters import checks_parameters
from .._validation import LARGEST, check_outputs
from ..engines import Series
from ._base import ShapeletTreeMixin
from ._target_growth import TargetGrowth

__all__ = ["ShapeletTreeRegressor"]


class ShapeletTreeRegressor(ShapeletTreeMixin, RegressorMixin, BaseEstimator):
    """Predict numbers that go with time series by an exact regression tree over shapelets.

    Each node takes, of all subsequences of its training series, the one that lowers the variance of
    the targets most; a leaf predicts the mean of its targets. Distances, candidates, and the rules
    for ties are those of `ShapeletTreeClassifier`: of splits with equal decrease of the variance
    the one with the larger separation gap wins, then the shorter shapelet, the series with the
    lower index, the earlier start, the lower channel. Splits rest on certified float64 distances
    and on exact sums, so that every engine and memory budget grows the same tree.

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
    logic : sequence of {"and", "or"} or "auto", default ()
        How further shapelets may join a node: "and" takes the larger of the two distances, "or" the
        smaller; () allows one shapelet only. "auto" takes both ways or none, by the squared errors
        of five-fold cross-validation on the training series, for ten more trees.
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
        Decrease of the variance, times the node's share of the weight, that a split needs.
    ccp_alpha : float, default 0.0
        Complexity parameter of minimal cost-complexity pruning.
    max_candidates : int or None, default None
        Candidates tried at each node, drawn at random; None tries all.
    random_state : int, RandomState instance or None, default None
        Draws the candidates.
    engine : str, default "auto"
        "auto", "numba", "cupy" or another registered engine. "cupy" measures all candidates, where
        the CPU engine, which "auto" takes, has bounds that spare most of the work.
    n_jobs : int or None, default None
        Threads on the CPU. None takes the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``, or else all threads that Numba has; -1 takes all of
        these.
    verbose : int, default 0
        1 shows a progress bar in long work, 2 also the plan: engine, parts, memory.

    Attributes
    ----------
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
    ShapeletTreeClassifier : A tree that predicts classes.
    DTWNearestNeighborRegressor : Predict by the nearest training series.
    export_text : The rules of a tree as text.

    Notes
    -----
    To compare decreases of the variance exactly, the targets of a node become whole numbers, 2^44
    of them over their range, and its weights ratios of whole numbers, up to 2^40 in sum. Decreases
    are equal where they are the same part of the variance of the node, rounded to 2^-38 of it, and
    a node is not split if nothing is gained. Means and variances that the tree holds are of the
    targets and weights as they are.

    Where a series is shorter than a shapelet its distance is infinite, as explained at
    `ShapeletTreeClassifier`.

    References
    ----------
    .. [1] Ye, Keogh. "Time series shapelets: a new primitive for data mining". KDD, 2009.
    .. [2] Breiman, Friedman, Olshen, Stone. "Classification and regression trees". Chapman and
       Hall, 1984, chapter 8.
    .. [3] Tan, Bergmeir, Petitjean, Webb. "Time series extrinsic regression". Data Mining and
       Knowledge Discovery 35, 2021.

    Examples
    --------
    >>> from skts import ShapeletTreeRegressor
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, 2, 1, 2, 0], [0, 2, 1, 2, 0, 0]]
    >>> model = ShapeletTreeRegressor(min_length=3, max_length=3, max_depth=1)
    >>> model = model.fit(X, [1.0, 2.0, 7.0, 8.0])
    >>> model.predict([[0, 0, 0, 1, 2, 1]]).tolist()
    [1.5]
    >>> model.shapelets_[0].values.tolist()
    [2.0, 1.0, 2.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ShapeletTreeMixin._parameter_constraints
    }

    def __init__(
        self,
        *,
        min_length: int | float | Literal["auto"] = "auto",
        max_length: int | float | Literal["auto"] = "auto",
        length_step: int = 1,
        logic: tuple[str, ...] | list[str] | Literal["auto"] = (),
        max_literals: int = 2,
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: int | float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        ccp_alpha: float = 0.0,
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
            Targets.
        sample_weight : array-like of shape (n_samples,), float or None, default None
            Weights of the series, 0 or above; None means 1 for all. A series of weight 2 counts
            like two equal series, one of weight 0 not at all. Only `min_samples_split` and
            `min_samples_leaf` count series without their weights.

        Returns
        -------
        self : ShapeletTreeRegressor
            The fitted tree.
        """
        fitted = self._grow(X, y, sample_weight)[1]
        # all at once: a fit that fails or is interrupted leaves the tree before as it was
        self.__dict__.update(fitted)
        return self

    def predict(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Predict the target of each series.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples,)
            The means of the targets in the leaves.
        """
        leaves = self.apply(X)
        return self.tree_.value[leaves]

    def _growth_of(self, series: Series, y: np.ndarray, *others: Any) -> TargetGrowth:
        """The growth of a tree that predicts numbers."""
        return TargetGrowth(self, series, y, *others)

    def _validate_target(self, X: Any, y: Any) -> np.ndarray:
        """Validate targets of one column that go with `X`."""
        targets = check_outputs(X, y, f"This {type(self).__name__} estimator")
        if targets.ndim == 2 and targets.shape[1] != 1:
            raise ValueError(
                f"y has {targets.shape[1]} columns; fit a ShapeletTreeRegressor to each of them."
            )
        targets = column_or_1d(targets, warn=True)
        sizes = np.abs(targets)
        if sizes.max() > LARGEST:
            row = int(sizes.argmax())
            raise ValueError(
                f"y holds {targets[row]:g} at {row}; give targets from {-LARGEST:.1g} to "
                f"{LARGEST:.1g}."
            )
        return targets
