"""Nearest-neighbour classification under dynamic time warping."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._metrics import METRIC_PARAMS, METRICS, distance_of
from .._parameters import N_JOBS, checks_parameters
from .._scalars import takes_plain
from .._validation import check_series
from ..base import SeriesMixin
from ..engines import DTWNeighbors, RotationNeighbors, Series, get_engine

__all__ = ["DTWNearestNeighbor"]


class DTWNearestNeighbor(
    SeriesMixin,
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
        warping. "ddtw", "wdtw", "adtw", "erp", "edr", "lcss", "msm" and "twe" are further elastic
        distances: see `skts.metrics.pairwise_distances`. With "precomputed", `X` is a matrix of
        distances to the training series.
    metric_params : dict or None, default None
        Parameters of the distance, such as ``{"penalty": 0.5}`` for ``metric="msm"``; None takes
        their defaults.
    cost : {"squared", "absolute"}, default "squared"
        Cost of matching two points, summed over channels. The distance is the square root of
        accumulated squared costs, or the accumulated absolute costs. For "dtw", "dog_keeper",
        "euclidean", "ddtw", "wdtw" and "adtw"; the others have prices of their own.
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
        of the training series. For series of one length, with ``metric="dtw"`` without a window, or
        with ``window=0`` for the Euclidean distance. Answers are certified in float64 whatever
        `precision` says.
    weights : {"uniform", "distance"} or callable, default "uniform"
        Weights of the votes: "uniform" gives each neighbour 1, "distance" the inverse of its
        distance (neighbours at distance 0 then outvote all others). A callable takes an array of
        distances and returns one of weights.
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
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, "precomputed"})],
        "metric_params": METRIC_PARAMS,
        "cost": [StrOptions({"squared", "absolute"})],
        "window": [
            None,
            Interval(Integral, 0, None, closed="left"),
            Interval(Real, 0, 1, closed="both"),
        ],
        "alignment": [StrOptions({"global", "subsequence", "supersequence"})],
        "rotation_invariant": ["boolean"],
        "weights": [StrOptions({"uniform", "distance"}), callable],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_neighbors: int = 1,
        *,
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        cost: Literal["squared", "absolute"] = "squared",
        window: float | None = None,
        alignment: Literal["global", "subsequence", "supersequence"] = "global",
        rotation_invariant: bool = False,
        weights: str | Callable[[np.ndarray], np.ndarray] = "uniform",
        precision: Literal["auto", "float32", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.cost = cost
        self.window = window
        self.alignment = alignment
        self.rotation_invariant = rotation_invariant
        self.weights = weights
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

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
        series = check_series(X, estimator=self, equal_length=self._precomputed).freeze()
        if self._precomputed:
            _check_distances(series, len(series))
        engine = get_engine(self.engine, self._search(series, series, 1))
        self._remember_form(X, series)
        self.engine_ = engine.name
        self._series = series
        self.classes_, self._y = np.unique(y, return_inverse=True)
        self.n_samples_fit_ = len(series)
        return self

    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        n_neighbors: int | None = ...,
        return_distance: Literal[True] = ...,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        n_neighbors: int | None = ...,
        *,
        return_distance: Literal[False],
    ) -> np.ndarray: ...
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None,
        n_neighbors: int | None,
        return_distance: Literal[False],
    ) -> np.ndarray: ...
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        n_neighbors: int | None = ...,
        return_distance: bool = ...,
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray: ...
    @takes_plain
    def kneighbors(
        self,
        X: ArrayLike | list[ArrayLike] | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """Find the nearest training series.

        Parameters
        ----------
        X : array-like, list of array-like or None, default None
            Series; None stands for the training series, each of which then finds neighbours among
            the others.
        n_neighbors : int or None, default None
            How many; None takes the parameter of the estimator.
        return_distance : bool, default True
            Whether to return distances too.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Ascending; only with `return_distance`.
        indices : ndarray of shape (n_queries, n_neighbors), int64
            Rows of the training series; of equally near ones, the lower index comes first.

        Raises
        ------
        ValueError
            If more neighbours are asked for than there are training series.
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        if X is None:
            queries, excluded = self._series, np.arange(self.n_samples_fit_)
        else:
            queries, excluded = self._validate_series(X), None
        available = self.n_samples_fit_ - (X is None)
        if k > available:
            raise ValueError(
                f"Expected n_neighbors <{'' if X is None else '='} n_samples_fit, but "
                f"n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, "
                f"n_samples = {len(queries)}"
            )
        if self._precomputed:
            distances, indices = _nearest_of(queries, self.n_samples_fit_, int(k), excluded)
        else:
            distances, indices = self._run(self._search(queries, self._series, int(k), excluded))
        return (distances, indices) if return_distance else indices

    @takes_plain
    def kneighbors_graph(
        self,
        X: ArrayLike | list[ArrayLike] | None = None,
        n_neighbors: int | None = None,
        mode: Literal["connectivity", "distance"] = "connectivity",
    ) -> csr_matrix:
        """Return the nearest training series as a sparse graph.

        Parameters
        ----------
        X : array-like, list of array-like or None, default None
            Series; None as in `kneighbors`.
        n_neighbors : int or None, default None
            How many; None takes the parameter of the estimator.
        mode : {"connectivity", "distance"}, default "connectivity"
            Whether entries are ones or distances.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit)
            Row i holds the neighbours of query i.

        Raises
        ------
        ValueError
            If `mode` is unknown, and as for `kneighbors`.
        """
        if mode not in ("connectivity", "distance"):
            raise ValueError(
                f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" '
                "instead"
            )
        distances, indices = self.kneighbors(X, n_neighbors)
        data = distances if mode == "distance" else np.ones(indices.shape)
        pointers = np.arange(0, indices.size + 1, indices.shape[1])
        shape = (len(indices), self.n_samples_fit_)
        return csr_matrix((data.ravel(), indices.ravel(), pointers), shape=shape)

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
        """
        votes = self._votes(X)
        total = votes.sum(axis=1, keepdims=True)
        return votes / np.where(total == 0, 1.0, total)

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
                matrix = _check_distances(queries, self.n_samples_fit_)
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
        weights = _weigh(distances, self.weights)
        votes = np.zeros((len(indices), len(self.classes_)))
        rows = np.arange(len(indices))
        for neighbor in range(indices.shape[1]):
            votes[rows, self._y[indices[:, neighbor]]] += weights[:, neighbor]
        return votes

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: a precomputed matrix is cut along both axes, and positive."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.positive_only = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return self.metric == "precomputed"

    def _search(
        self, queries: Series, candidates: Series, k: int, excluded: np.ndarray | None = None
    ) -> DTWNeighbors | RotationNeighbors:
        """The work of a search, with the options of this estimator."""
        if self._precomputed:
            return DTWNeighbors(queries, candidates, k, excluded, self.precision)
        distance = distance_of(
            self.metric,
            self.metric_params,
            cost=self.cost,
            window=self.window,
            alignment=self.alignment,
        )
        if self.rotation_invariant:
            if distance.entry.describe is not None:
                raise ValueError(
                    f"rotation_invariant=True does not go with metric={self.metric!r}."
                )
            return RotationNeighbors(queries, candidates, k, excluded, distance.warping)
        queries, candidates, warping = distance.sides(queries, candidates)
        return DTWNeighbors(queries, candidates, k, excluded, self.precision, warping)


def _weigh(distances: np.ndarray, weights: str | Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    if weights == "uniform":
        return np.ones_like(distances)
    if callable(weights):
        found = np.asarray(weights(distances))
        if found.shape != distances.shape:
            raise ValueError(
                f"weights returned shape {found.shape} for distances of shape {distances.shape}; "
                "return one weight for each distance."
            )
        return found
    exact = distances == 0
    with np.errstate(divide="ignore"):
        inverse = 1.0 / distances
    return np.where(exact.any(axis=1, keepdims=True), exact.astype(float), inverse)


def _check_distances(matrix: Series, n_columns: int) -> np.ndarray:
    """Return a matrix of distances to the training series, or say what is wrong with it."""
    values = matrix.values[:, 0, :]
    if matrix.n_channels != 1 or values.shape[1] != n_columns:
        raise ValueError(
            f"Precomputed metric requires shape (n_queries, n_indexed). Got "
            f"{(len(values), values.shape[1])} for {n_columns} indexed."
        )
    if np.any(values < 0):
        row, column = np.argwhere(values < 0)[0]
        raise ValueError(
            "Negative values in data passed as precomputed distances: "
            f"{values[row, column]:g} in row {row}, column {column}."
        )
    return values


def _nearest_of(
    matrix: Series, n_columns: int, k: int, excluded: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest columns of each row of precomputed distances, ties by column."""
    values = _check_distances(matrix, n_columns)
    if excluded is not None:
        values = values.copy()
        values[np.arange(len(values)), excluded] = np.inf
    indices = np.argsort(values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, indices, axis=1), indices
