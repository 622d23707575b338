"""A decision tree whose tests are distances to shapelets."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import StrOptions

from .._parameters import checks_parameters
from ..engines import Series
from ._base import ShapeletTreeMixin
from ._class_growth import ClassGrowth
from ._log_proba import LogProbaMixin

__all__ = ["ShapeletTreeClassifier"]


class ShapeletTreeClassifier(LogProbaMixin, ShapeletTreeMixin, ClassifierMixin, BaseEstimator):
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
    ShapeletTreeRegressor : A tree that predicts numbers.
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
        **ShapeletTreeMixin._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
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
        growth, fitted = self._grow(X, y, sample_weight)
        # all at once: a fit that fails or is interrupted leaves the tree before as it was
        self.__dict__.update(fitted, classes_=cast(ClassGrowth, growth).classes)
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

    def _growth_of(self, series: Series, y: np.ndarray, *others: Any) -> ClassGrowth:
        """The growth of a tree that predicts classes."""
        return ClassGrowth(self, series, y, *others)
