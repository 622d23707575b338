"""Clustering under warping around medoids."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._distance_rows import DistanceRows
from .._log import tell
from .._metrics import COST, METRIC_PARAMS, METRICS, WINDOW, Distance, distance_of
from .._parameters import N_JOBS, checks_parameters, warn_user
from .._validation import as_host, check_distances, is_3d
from ..engines import DTWMatrix, DTWNeighbors, Engine, Series, get_engine
from ._centers import CentersMixin, check_enough, with_nan
from ._medoids import Start, alternate, draw, swap

__all__ = ["DTWKMedoids"]


class DTWKMedoids(
    CentersMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator
):
    """Cluster time series around medoids, under dynamic time warping or another elastic distance.

    A medoid is a series of the set that stands for its cluster. The sum of the distances of all
    series to their medoids is lowered by swaps of a medoid with another series, until no single
    swap lowers it (PAM [1]_, in the form of FasterPAM [2]_). There are no averages: distances are
    all that is needed, and any of them will do.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of clusters.
    method : {"pam", "alternate"}, default "pam"
        How medoids improve. "pam" tries all swaps, and needs the distances of all pairs. They are
        computed once where their matrix takes no more than half of the memory budget
        (`skts.set_config`), and a part at a time in each pass where it takes more. "alternate"
        takes turns: each cluster takes as its medoid the member with the least sum of distances to
        the others, each series goes to its nearest medoid [3]_. It needs only distances to medoids
        and within clusters, and ends in optima that are no better, and often worse. It is for
        sets of which no matrix fits.
    init : {"k-means++", "build", "random"} or array-like of int, default "k-means++"
        How to start. "k-means++" draws series one after the other, each with a probability in
        proportion to the distance to the nearest medoid so far, the best of some draws; "build"
        takes one after the other as it lowers the sum of distances most, without chance, in
        `n_clusters` passes over all pairs; "random" draws different series. An array holds the
        numbers of different series.
    n_init : int or "auto", default "auto"
        How often to start; the run with the least inertia is kept. "auto" means 10 for "random", 1
        for all others. Other starts than "build" and an array are drawn anew each time.
    max_iter : int, default 100
        Passes over all series of a run at most, or iterations.
    metric : str, default "dtw"
        The distance, a name of `skts.metrics.pairwise_distances`. With "precomputed", `X` is a
        matrix of distances to the training series, square in `fit`, and no other option of the
        distance is used.
    metric_params : dict or None, default None
        Parameters of the distance, such as ``{"penalty": 0.5}`` for ``metric="msm"``; None takes
        their defaults.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels, for "dtw", "dog_keeper", "euclidean",
        "ddtw", "wdtw", "adtw" and "shape_dtw". The others have prices of their own, and take no
        notice. For the first four it may be a function of two points in a channel, that of a series
        and that of a medoid, or a `skts.metrics.PointCost`; then no root is taken.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit. Not for "euclidean".
    random_state : int, RandomState or None, default None
        Draws the series to start from.
    engine : str, default "auto"
        "auto", "numba", "cupy", or another registered engine. "auto" takes the GPU if there is one
        and the work is large enough to pay for the transfer; "cupy" never falls back to the CPU.
    n_jobs : int or None, default None
        Threads on the CPU. None takes the number of an enclosing
        ``joblib.parallel_config(n_jobs=...)``, or else all threads that Numba has; -1 takes all of
        these.
    verbose : int, default 0
        1 reports each iteration with its inertia, 2 also shows progress bars of long work, 3 also
        the plans: engine, parts, memory.

    Attributes
    ----------
    medoid_indices_ : ndarray of shape (n_clusters,), int64
        Numbers of the training series that are medoids, in the order of the numbers in `labels_`.
    cluster_centers_ : ndarray of shape (n_clusters, n_timepoints)
        The medoids; of shape (n_clusters, n_channels, n_timepoints) for 3-D input or several
        channels. Shorter ones end in NaN. None with ``metric="precomputed"``.
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each series, the same as `predict` of the training series.
    inertia_ : float
        Sum of the distances of the series to their medoids.
    n_iter_ : int
        Passes, or iterations, of the best run; in the last of them nothing was found to improve.
    history_ : ndarray
        Inertia of the medoids that the best run started from, and after each pass or iteration that
        lowered it; the last is `inertia_`.
    n_features_in_ : int
        Time points of the training series; not set after `fit` on a list.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Column names of the training data, where they are all strings.
    n_channels_ : int
        Channels of every series.
    engine_ : str
        The engine that `fit` chose.

    Warns
    -----
    ConvergenceWarning
        When `max_iter` is reached, and when there are fewer different series than clusters.

    See Also
    --------
    DTWKMeans : Clusters around averages.
    skts.metrics.pairwise_distances : The distances.

    Notes
    -----
    All engines find the same medoids and labels, whatever the number of threads and the budget of
    memory. Distances that tie go to the cluster with the lowest number, swaps and sums that tie to
    the lowest one as well.

    `fit` holds the distances of all series to the medoids, as `transform` returns them, beside the
    budget of memory.

    Two different series may be at distance 0 under warping. If that leaves a cluster without
    series, its medoid becomes the series that is farthest from its own; where all distances to
    medoids are 0, empty clusters are dropped. A medoid may itself be in the cluster of another one
    at distance 0.

    `predict` and `transform` use the parameters that the estimator has when they are called: after
    `set_params(metric=...)` or `set_params(window=...)` they compare series with the medoids of the
    last `fit` by the new distance.

    A precomputed matrix holds in row i and column j the distance of series i to series j; it need
    not be symmetric. `predict`, `transform` and `score` take a row for each series, with a column
    for each training series, of which those of the medoids count.

    References
    ----------
    .. [1] Kaufman, Rousseeuw. "Finding groups in data: an introduction to cluster analysis". Wiley,
       1990, chapter 2.
    .. [2] Schubert, Rousseeuw. "Fast and eager k-medoids clustering: O(k) runtime improvement of
       the PAM, CLARA, and CLARANS algorithms". Information Systems 101, 2021, algorithm 3.
    .. [3] Park, Jun. "A simple and fast algorithm for K-medoids clustering". Expert Systems with
       Applications 36, 2009.

    Examples
    --------
    >>> from skts import DTWKMedoids
    >>> X = [[0, 0, 9, 0, 0, 0], [0, 9, 9, 0, 0, 0], [5, 4, 3, 2, 1, 0], [5, 5, 4, 3, 1, 0]]
    >>> model = DTWKMedoids(2, metric="msm", init="build").fit(X)
    >>> model.labels_
    array([0, 0, 1, 1], dtype=int32)
    >>> model.medoid_indices_
    array([0, 2])
    >>> model.predict([[0, 0, 0, 0, 9, 0]])
    array([0], dtype=int32)
    >>> from skts.metrics import pairwise_distances
    >>> D = pairwise_distances(X, metric="msm")
    >>> DTWKMedoids(2, metric="precomputed", init="build").fit(D).medoid_indices_
    array([0, 2])
    """

    _own_verbose = 1  # iterations
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"pam", "alternate"})],
        "init": [StrOptions({"k-means++", "build", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, "precomputed"})],
        "metric_params": METRIC_PARAMS,
        "cost": COST,
        "window": WINDOW,
        "random_state": ["random_state"],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        method: Literal["pam", "alternate"] = "pam",
        init: Literal["k-means++", "build", "random"] | ArrayLike = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 100,
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        cost: Literal["squared", "absolute"] | Callable[[float, float], float] = "squared",
        window: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.metric = metric
        self.metric_params = metric_params
        self.cost = cost
        self.window = window
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Cluster series.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. NaN at the end is padding. With
            ``metric="precomputed"`` their distances, of shape (n_samples, n_samples).
        y : ignored
            There for pipelines.

        Returns
        -------
        self : DTWKMedoids
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are fewer series than clusters; if `init` holds other than the numbers of
            `n_clusters` different series; if options of the distance contradict each other; if a
            series holds infinity, or NaN before its last value; if precomputed distances are not
            square, or one is negative or NaN.
        """
        get_engine(self.engine)
        distance = None if self._precomputed else self._distance()
        series = self._check_rows(X)
        if distance is None:
            check_distances(series)
        check_enough(series, self.n_clusters)
        given = self._given_medoids(len(series))
        if distance is None:
            # as those that are computed: rows are of medoids
            rows = DistanceRows.of(np.ascontiguousarray(series.values[:, 0].T))
            engine = get_engine(self.engine)
        else:
            # what engines prepare lives as long as this copy
            series = series.freeze()
            rows, engine = self._computed(series, distance)
        best = self._best_of_runs(rows, given)
        medoids = best.medoids
        self._warn(best)
        centers = None
        if distance is not None:
            flat = series.n_channels == 1 and not is_3d(X)
            centers = with_nan(series.take(medoids.indices))
            centers = centers[:, 0] if flat else centers
        fitted = {
            "medoid_indices_": medoids.indices,
            "cluster_centers_": centers,
            "labels_": medoids.labels.astype(np.int32),
            "inertia_": medoids.inertia,
            "history_": np.array(best.history),
            "n_iter_": best.n_iter,
            "engine_": engine.name,
            "_n_features_out": len(medoids.indices),
        }
        # nothing of an earlier fit is replaced before all is there
        self._remember_form(X, series)
        self.__dict__.update(fitted)
        return self

    def predict(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Find the nearest medoid of each series.

        Parameters
        ----------
        X : array-like or list of array-like
            Series; with ``metric="precomputed"`` their distances to all training series.

        Returns
        -------
        ndarray of shape (n_samples,), int32
            Clusters.
        """
        return self._nearest(X)[0].astype(np.int32)

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the distance of each series to each medoid.

        Parameters
        ----------
        X : array-like or list of array-like
            Series; with ``metric="precomputed"`` their distances to all training series.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Distances as `skts.metrics.pairwise_distances` returns them.
        """
        if self._precomputed:
            return self._to_medoids(X)
        distances: np.ndarray = self._run(DTWMatrix(*self._distance().sides(*self._compared(X))))
        return distances

    def score(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> float:
        """Return the negative sum of the distances of series to their nearest medoids.

        Parameters
        ----------
        X : array-like or list of array-like
            Series; with ``metric="precomputed"`` their distances to all training series.
        y : ignored
            There for pipelines.

        Returns
        -------
        float
            The greater the better; at most 0.
        """
        return -float(np.sum(self._nearest(X)[1]))

    def _distance(self) -> Distance:
        """The distance, with its options."""
        return distance_of(self.metric, self.metric_params, cost=self.cost, window=self.window)

    def _nearest(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """The nearest medoid of each series, and the distance to it."""
        if self._precomputed:
            distances = self._to_medoids(X)
            return distances.argmin(axis=1), distances.min(axis=1)
        series, centers, warping = self._distance().sides(*self._compared(X))
        found = self._run(DTWNeighbors(series, centers, 1, warping=warping))
        return found.indices[:, 0], found.distances[:, 0]

    def _to_medoids(self, X: Any) -> np.ndarray:
        """Distances to the medoids, of rows of distances to all training series."""
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        matrix = check_distances(self._validate_series(X), self.labels_.size)
        return np.take(matrix, self.medoid_indices_, axis=1)

    def _computed(self, series: Series, distance: Distance) -> tuple[DistanceRows, Engine]:
        """Distances of medoids to all series, none of them computed yet, and the engine."""
        compared, _, warping = distance.sides(series, series)
        engine = get_engine(self.engine, DTWMatrix(compared, compared, warping))

        def _between(left: Series, right: Series) -> np.ndarray:
            if warping.symmetric:
                found: np.ndarray = self._run(DTWMatrix(left, right, warping), engine)
                return found
            # rows are of medoids, and a function gets the point of the other series first
            found = self._run(DTWMatrix(right, left, warping), engine)
            return np.ascontiguousarray(found.T)

        return DistanceRows(compared, _between), engine

    def _given_medoids(self, n_samples: int) -> np.ndarray | None:
        """Numbers of series that `init` holds; None where it is a word."""
        if isinstance(self.init, str):
            return None
        given = np.asarray(as_host(self.init, "init"))
        if given.shape != (self.n_clusters,) or not np.issubdtype(given.dtype, np.integer):
            raise ValueError(
                f"init holds {given.dtype} of shape {given.shape}; the numbers of "
                f"n_clusters={self.n_clusters} series are needed here."
            )
        wrong = given[(given < 0) | (given >= n_samples)]
        if wrong.size:
            raise ValueError(f"init holds {wrong[0]}, and there are {n_samples} series.")
        if np.unique(given).size < given.size:
            raise ValueError("init holds the number of a series twice.")
        return given.astype(np.int64)

    def _best_of_runs(self, rows: DistanceRows, given: np.ndarray | None) -> Start:
        """Start as often as asked for, and keep the run with the least inertia."""
        random_state = check_random_state(self.random_state)
        init = self.init if isinstance(self.init, str) else ""
        runs = self.n_init if self.n_init != "auto" else (10 if init == "random" else 1)
        runs = 1 if init in ("", "build") else runs
        rows.whole()
        improve = swap if self.method == "pam" else alternate
        best: Start | None = None
        for number in range(1, runs + 1):

            def report(iteration: int, inertia: float, number: int = number) -> None:
                if self.verbose:
                    tell(f"Run {number} of {runs}, iteration {iteration}, inertia {inertia:.6f}")

            start = draw(rows, self.n_clusters, init, random_state) if given is None else given
            one = improve(rows, start, self.max_iter, report)
            if best is None or one.medoids.inertia < best.medoids.inertia:
                best = one
        assert best is not None  # there is a run at least
        return best

    def _warn(self, best: Start) -> None:
        """Tell of what is not as it was asked for."""
        if not best.converged:
            warn_user(
                f"The inertia still falls after max_iter={self.max_iter} iterations. Raise "
                "max_iter for more.",
                ConvergenceWarning,
            )
        n_found = len(best.medoids.indices)
        if n_found < self.n_clusters:
            warn_user(
                f"Only {n_found} {'medoids have' if n_found > 1 else 'medoid has'} series of "
                f"{'their' if n_found > 1 else 'its'} own: there are that many clusters instead of "
                f"n_clusters={self.n_clusters}. Ask for fewer.",
                ConvergenceWarning,
            )
