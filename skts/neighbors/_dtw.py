"""Nearest-neighbour classification under dynamic time warping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._parameters import checks_parameters
from .._validation import check_distances
from ..engines import get_engine
from ._base import NeighborsMixin, weigh

__all__ = ["DTWNearestNeighbor"]


class DTWNearestNeighbor(
    NeighborsMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Classify time series by their nearest neighbours under dynamic time warping.

    The distance of two series is, by default, the square root of the least sum of squared
    differences over all warping paths. Neighbours are exact and the same on every engine: the
    search runs in float32 where that is faster, candidates that it cannot rule out are compared in
    float64, and of equally near series the one with the lower index comes first.

    Parameters
    ----------
    n_neighbors : int, default 1
        Neighbours that vote.
    metric : str, default "dtw"
        "dtw" (dynamic time warping) adds the costs along a warping path, "dog_keeper" (also
        "frechet", the discrete Frechet distance) takes the largest of them; "euclidean" is without
        warping. "ddtw", "wdtw", "adtw", "shape_dtw", "erp", "edr", "lcss", "msm" and "twe" are
        further elastic distances: see `skts.metrics.pairwise_distances`. With "precomputed",
        `X` is a matrix of distances to the training series, and no other option of the distance is
        used.
    metric_params : dict or None, default None
        Parameters of the distance, such as ``{"penalty": 0.5}`` for ``metric="msm"``; None takes
        their defaults.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels. The distance is the square root of
        accumulated squared costs, or the accumulated absolute costs. For "dtw", "dog_keeper",
        "euclidean", "ddtw", "wdtw", "adtw" and "shape_dtw"; the others have prices of their own.
        For the first four it may be a function of two points in a channel, or a
        `skts.metrics.PointCost`; then no root is taken.
    window : int, float or None, default None
        Sakoe-Chiba band, not the length of a subsequence: the largest distance in time between two
        matched points. An int counts points; a float is a fraction of the longer series, rounded up
        (the rule of the UCR archive). The band is widened to the difference of the lengths. 0 gives
        the Euclidean distance of series of one length; None sets no limit.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        "global" matches both series in full, "subsequence" matches the query with a contiguous part
        of the training series, "supersequence" matches the training series with a contiguous part
        of the query. The last two take no window, and are for "dtw", "dog_keeper" and "ddtw".
    rotation_invariant : bool, default False
        Whether training series may be rotated: the distance is the least over all circular shifts
        of the training series, each matched in full. For "dtw" and "dog_keeper", with queries and
        training series of any lengths, and "euclidean", with those of one length, in global
        alignment. Answers are certified in float64 whatever `precision` says. Under a function as
        the cost every shift of every training series is tried, which takes far longer.
    weights : {"uniform", "distance"} or callable, default "uniform"
        Weights of the votes: "uniform" gives each neighbour 1, "distance" the inverse of its
        distance (neighbours at distance 0 then outvote all others). A callable takes an array of
        distances and returns one of weights, of which infinite ones likewise outvote all others.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" searches in float32 and certifies the answer in float64, "float32" leaves out the
        certificate (near ties may be resolved wrongly, and distances carry about 5 digits; queries
        too large for float32 are still computed in float64), "float64" computes everything in
        float64.
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
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Time points of the training series; not set after `fit` on a list.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of the training data, where they are all strings.
    n_channels_ : int
        Channels of every series.
    n_samples_fit_ : int
        Number of training series.
    engine_ : str
        The engine that `fit` chose for a search of this size.

    Raises
    ------
    EngineNotAvailableError
        If the named engine cannot run here, before anything else happens.

    See Also
    --------
    skts.metrics.pairwise_dtw : The distances alone, for ``metric="precomputed"`` elsewhere.

    Notes
    -----
    `transform` gives each training series distance 0 to its own class. Features of the training
    series overfit for that reason: make those of each fold with a model of the other folds::

        for train, test in StratifiedKFold(5).split(X, y):
            Z[test] = clone(model).fit(X[train], y[train]).transform(X[test])

    References
    ----------
    .. [1] Bachmann, Trogant, Freytag. "GPU-beschleunigte Time-Warping-Distanzen", section 2.
    .. [2] Sart, Mueen, Najjar, Keogh, Niennattrakul. "Accelerating dynamic time warping
       subsequence search with GPUs and FPGAs". IEEE International Conference on Data Mining, 2010,
       section VII.A (rotation invariance).
    .. [3] Sakoe, Chiba. "Dynamic programming algorithm optimization for spoken word
       recognition". IEEE Transactions on Acoustics, Speech and Signal Processing 26, 1978.

    Examples
    --------
    >>> from skts import DTWNearestNeighbor
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, -1, -2, -1, 0], [0, -1, -2, -1, 0, 0]]
    >>> y = ["up", "up", "down", "down"]
    >>> model = DTWNearestNeighbor().fit(X, y)
    >>> model.predict([[0, 0, 0, 1, 2, 1]])
    array(['up'], dtype='<U4')
    >>> distances, indices = model.kneighbors([[0, 0, 0, 1, 2, 0]])
    >>> distances, indices
    (array([[1.]]), array([[0]]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeighborsMixin._parameter_constraints,
        "weights": [StrOptions({"uniform", "distance"}), callable],
    }

    def __init__(
        self,
        n_neighbors: int = 1,
        *,
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        cost: Literal["squared", "absolute"] | Callable[[float, float], float] = "squared",
        window: float | None = None,
        alignment: Literal["global", "subsequence", "supersequence"] = "global",
        rotation_invariant: bool = False,
        weights: str | Callable[[np.ndarray], np.ndarray] = "uniform",
        precision: Literal["auto", "float32", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self._set_options(
            n_neighbors,
            metric=metric,
            metric_params=metric_params,
            cost=cost,
            window=window,
            alignment=alignment,
            rotation_invariant=rotation_invariant,
            precision=precision,
            engine=engine,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.weights = weights

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: ArrayLike) -> Self:
        """Keep the training series; O(n) in time and memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Training series; or a list of arrays of any lengths. NaN at the end is padding. The
            series are copied, but for a memory map of float64, which is kept by reference: its
            file must not change while the estimator is in use.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : DTWNearestNeighbor
            The fitted estimator.
        """
        get_engine(self.engine)
        y = self._validate_target(X, y)
        self._keep(X)
        self.classes_, self._y = np.unique(y, return_inverse=True)
        return self

    def predict(self, X: ArrayLike | list[ArrayLike] | None) -> np.ndarray:
        """Predict the class of each series by the vote of its neighbours.

        Parameters
        ----------
        X : array-like, list of array-like or None
            Series; None stands for the training series, each judged by its neighbours among the
            others.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; of classes with equal votes, the one that comes first in `classes_`.

        Raises
        ------
        ValueError
            If the weights of the neighbours of a series add up to 0, or one is NaN.
        """
        votes = self._votes(X)
        return self.classes_[votes.argmax(axis=1)]

    def predict_proba(self, X: ArrayLike | list[ArrayLike] | None) -> np.ndarray:
        """Return the share of the votes that each class gets.

        Parameters
        ----------
        X : array-like, list of array-like or None
            Series; None as in `predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to 1; columns as in `classes_`.

        Raises
        ------
        ValueError
            If the weights of the neighbours of a series add up to 0, or one is NaN.
        """
        votes = self._votes(X)
        shares: np.ndarray = votes / votes.sum(axis=1, keepdims=True)
        return shares

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the distance of each series to the nearest training series of each class.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Distances; columns as in `classes_`.
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        queries = self._validate_series(X)
        columns = []
        for label in range(len(self.classes_)):
            members = np.flatnonzero(self._y == label)
            if self._precomputed:
                matrix = check_distances(queries, self.n_samples_fit_)
                columns.append(matrix[:, members].min(axis=1))
            else:
                found = self._run(self._search(queries, self._series.take(members), 1))
                columns.append(found.distances[:, 0])
        return np.column_stack(columns)

    @property
    def _n_features_out(self) -> int:
        return len(self.classes_)

    def _votes(self, X: ArrayLike | list[ArrayLike] | None) -> np.ndarray:
        """Weight of the neighbours in each class, shape (n_samples, n_classes)."""
        distances, indices = self.kneighbors(X)
        weights, _ = weigh(distances, self.weights)
        votes = np.zeros((len(indices), len(self.classes_)))
        rows = np.arange(len(indices))
        for neighbor in range(indices.shape[1]):
            votes[rows, self._y[indices[:, neighbor]]] += weights[:, neighbor]
        return votes
