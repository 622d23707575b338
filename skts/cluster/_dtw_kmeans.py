"""Clustering under dynamic time warping: k-means."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

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

from .._alignment import (
    LONGER_PATIENCE,
    NEVER_RISES,
    PATIENCE,
    Alignment,
    align,
    alignment_of,
    terms,
)
from .._log import counted, tell
from .._metrics import METRIC, METRIC_PARAMS, WINDOW, Distance, distance_of
from .._parameters import N_JOBS, checks_parameters, warn_user
from .._validation import check_series, is_3d
from ..engines import DTWMatrix, DTWNeighbors, Engine, Series, get_engine
from ._centers import CentersMixin, averaged, check_enough, replaced, with_nan
from ._nearest_centers import NearestCenters

__all__ = ["DTWKMeans"]

#: Points whose variance is computed at once: series may lie in a file.
POINTS_AT_ONCE = 2**20


class _Assigned(NamedTuple):
    """Centres, the labels that follow from them, the sum of squared distances, and weights.

    The weight of a point of a centre is the number of points that its members match with it, in
    each channel or in all.
    """

    inertia: float
    centers: Series
    labels: np.ndarray
    weights: np.ndarray


class _Start(NamedTuple):
    """The result of one start."""

    found: _Assigned
    history: list[float]
    n_iter: int
    converged: bool


class DTWKMeans(
    CentersMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator
):
    """Cluster time series by k-means under dynamic time warping, or another distance.

    Two steps alternate: each series goes to the centre with the least DTW distance, and each centre
    becomes the average of its members along their best warping paths (DBA). Neither raises the sum
    of squared distances; of other metrics see the notes. `partial_fit` takes series batch by batch,
    where memory does not hold all.

    Parameters
    ----------
    n_clusters : int, default 8
        Number of clusters.
    init : {"k-means++", "random"} or array-like, default "k-means++"
        How to start. "k-means++" draws series as centres one after the other, each with a
        probability in proportion to the squared distance to the nearest centre so far, the best of
        some draws; "random" draws different series. An array holds the centres, of shape
        (n_clusters, n_timepoints) or (n_clusters, n_channels, n_timepoints); a list of arrays may
        hold centres of any lengths. A centre has as many points as the series that it starts from.
    n_init : int or "auto", default "auto"
        How often `fit` starts; the run with the least inertia is kept. "auto" means 10 for
        "random", 1 for "k-means++" and given centres. `partial_fit` starts once.
    max_iter : int, default 100
        Iterations of a run at most.
    tol : float, default 1e-4
        A run stops when the squared changes of all points of the centres add up to no more than
        this share of the mean variance of a time point; with 0, only when the inertia falls no
        more.
    metric : str, default "dtw"
        The distance, a name of `skts.metrics.pairwise_distances`, with squared
        costs where it has a choice.
    metric_params : dict or None, default None
        Parameters of the distance, such as ``{"penalty": 0.5}`` for ``metric="msm"``; None takes
        their defaults.
    window : int, float or None, default None
        Sakoe-Chiba band: the largest distance in time between two matched points. An int counts
        points; a float is a fraction of the longer series, rounded up. The band is widened to the
        difference of the lengths; None sets no limit.
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
    cluster_centers_ : ndarray of shape (n_clusters, n_timepoints)
        Centres, in the order of the numbers in `labels_`; of shape (n_clusters, n_channels,
        n_timepoints) for 3-D input or several channels. Shorter centres end in NaN.
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each series, the same as `predict` of the training series; after `partial_fit` of
        the series of the last batch.
    inertia_ : float
        Sum of the squared distances of these series to their centres; of the distances themselves
        under metrics without squares.
    n_iter_ : int
        Iterations of the best run, and one for each call of `partial_fit` since.
    history_ : ndarray
        Inertia of the centres that the best run started from, and after each iteration that lowered
        it; the last is `inertia_`. Not set after `partial_fit`.
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
    KShapeClusterer : Clusters of series that match after a shift.
    skts.averages.dtw_barycenter : The average of one set of series.

    Notes
    -----
    All engines find the same labels and centres to the bit. Distances that tie go to the centre
    with the lowest number; paths that tie are chosen by the rule of `skts.metrics.dtw_path`.

    In each iteration a centre is computed once from its members' paths. Of the series, only those
    are compared with all centres for which another one may have become nearer, as a bound shows
    that is carried from iteration to iteration.

    A cluster that loses all its members gets a new centre: the series that is farthest from its own
    centre.

    Centres under other metrics are those of `skts.averages.dtw_barycenter`: each point becomes the
    mean of the points that the best paths match with it. The inertia adds up squared distances
    under "dtw", "adtw", "wdtw", "ddtw", "shape_dtw", "dog_keeper" and "euclidean", and distances
    under "msm", "twe", "erp", "edr" and "lcss". No iteration raises it under "dtw", "adtw" and
    "euclidean"; under all others one may, a run ends after five in a row that do not lower it, and
    the best is kept. Each iteration compares all series with all centres, except under "dtw" and
    "euclidean".

    `predict` and `transform` use the parameters that the estimator has when they are called: after
    `set_params(metric=...)` or `set_params(window=...)` they compare series with the centres of the
    last `fit` by the new distance.

    `partial_fit` is one iteration on the series of a batch: their labels and paths are exact, as
    those of `fit`. Each point of a centre becomes the mean of all points that were matched with it
    so far, each by the path that was best when its batch came. Earlier batches are not seen again:
    their labels and paths do not follow the centres, so that the result depends on the order of
    batches, and the inertia of all series may rise. The first call with all series is the first
    iteration of `fit`, to the bit, unless that raises the inertia, where `fit` keeps what it began
    with, or leaves a cluster without members, which `fit` fills at once and `partial_fit` when it
    is called again.

    References
    ----------
    .. [1] Petitjean, Ketterlin, Gancarski. "A global averaging method for dynamic time warping,
       with applications to clustering". Pattern Recognition 44(3), 2011.
    .. [2] Arthur, Vassilvitskii. "k-means++: the advantages of careful seeding". SODA 2007.
    .. [3] Hamerly. "Making k-means even faster". SDM 2010.

    Examples
    --------
    >>> from skts import DTWKMeans
    >>> X = [[0, 0, 9, 0, 0, 0], [0, 9, 9, 0, 0, 0], [5, 4, 3, 2, 1, 0], [5, 5, 4, 3, 1, 0]]
    >>> model = DTWKMeans(2, random_state=0).fit(X)
    >>> groups = [model.labels_ == label for label in range(2)]
    >>> sorted(group.nonzero()[0].tolist() for group in groups)
    [[0, 1], [2, 3]]
    >>> bool(model.predict([[0, 0, 0, 0, 9, 0]])[0] == model.labels_[0])
    True
    """

    _own_verbose = 1  # iterations
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "metric": METRIC,
        "metric_params": METRIC_PARAMS,
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
        init: Literal["k-means++", "random"] | ArrayLike | list[ArrayLike] = "k-means++",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        window: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric
        self.metric_params = metric_params
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
            Series; or a list of arrays of any lengths. NaN at the end is padding.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : DTWKMeans
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are fewer series than clusters; if `init` holds other than `n_clusters` centres
            with as many channels; if a series holds infinity, or NaN before its last value.
        """
        get_engine(self.engine)
        series = check_series(X, estimator=self)
        check_enough(series, self.n_clusters)
        given = self._given_centers(series)
        # what engines prepare lives as long as this copy
        private = series.freeze()
        engine = self._engine_for(private, private.take(slice(self.n_clusters)))
        random_state = check_random_state(self.random_state)
        runs = self.n_init if self.n_init != "auto" else (10 if self._init_is("random") else 1)
        runs = runs if given is None else 1
        least = self.tol * _mean_variance(private)
        best: _Start | None = None
        for number in range(1, runs + 1):
            centers = given or self._drawn(engine, private, random_state)
            one = self._run_once(engine, private, centers, least, f"{number} of {runs}")
            if best is None or one.found.inertia < best.found.inertia:
                best = one
        assert best is not None  # there is a run at least
        inertia, centers, labels, weights = best.found
        self._warn(best, len(centers))
        flat = series.n_channels == 1 and not is_3d(X)
        values = with_nan(centers)
        fitted = {
            "cluster_centers_": values[:, 0] if flat else values,
            "labels_": labels.astype(np.int32),
            "inertia_": inertia,
            "history_": np.array(best.history),
            "n_iter_": best.n_iter,
            "engine_": engine.name,
            "_n_features_out": len(centers),
            "_weights": weights[:, :, : values.shape[2]],
        }
        # nothing of an earlier fit is replaced before all is there
        self._remember_form(X, series)
        self.__dict__.update(fitted)
        return self

    @checks_parameters
    def partial_fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Move the centres by a batch of series, in one iteration.

        The first call draws the centres to start from, as `fit` does for one start. Later ones, and
        those after `fit`, go on from the centres that there are, of which each point counts as much
        as all that was matched with it before. A centre without series in the batch stays where it
        is; only one that never had any moves to the series that is farthest from its own centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. NaN at the end is padding.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : DTWKMeans
            The estimator.

        Raises
        ------
        ValueError
            In the first call as in `fit`; later if the series do not go with the earlier ones.
        """
        get_engine(self.engine)
        is_first = not hasattr(self, "cluster_centers_")
        if is_first:
            series = check_series(X, estimator=self)
            check_enough(series, self.n_clusters)
            flat = series.n_channels == 1 and not is_3d(X)
            given = self._given_centers(series)
        else:
            series, given = self._compared(X)
            flat = np.ndim(self.cluster_centers_) == 2
        private = series.freeze()
        examples = private.take(slice(self.n_clusters)) if given is None else given
        engine = self._engine_for(private, examples)
        centers = given or self._drawn(engine, private, check_random_state(self.random_state))
        kinds = private.n_channels if self._distance.warping.independent else 1
        shape = len(centers), kinds, centers.n_timepoints
        weights = np.zeros(shape) if is_first else self._weights
        if weights.shape != shape:
            raise ValueError(
                f"cluster_centers_ holds {len(centers)} centres of {centers.n_timepoints} time "
                f"points, and what was fitted {len(weights)} of {weights.shape[2]}: call fit anew, "
                "with these as init."
            )
        nearest = NearestCenters(private, self._distance, lambda work: self._run(work, engine))
        stays: np.ndarray = weights.max(axis=(1, 2)) > 0
        centers = self._filled(nearest.search(centers), centers, stays)
        sums = self._aligned(engine, private, centers, nearest.labels)
        # a new centre may be longer than all before
        weights = np.pad(weights, ((0, 0), (0, 0), (0, centers.n_timepoints - weights.shape[2])))
        moved = averaged(centers, sums, weights)
        own = self._nearest(private, moved, engine)
        inertia = float(np.sum(terms(own.distances[:, 0], self._distance)))
        n_iter = 1 if is_first else self.n_iter_ + 1
        if self.verbose:
            tell(f"Batch {n_iter}, {len(private)} series, inertia {inertia:.6f}")
        values = with_nan(moved)
        if is_first:
            self._remember_form(X, series)
        self.__dict__.pop("history_", None)
        self.__dict__.update(
            {
                "cluster_centers_": values[:, 0] if flat else values,
                "labels_": own.indices[:, 0].astype(np.int32),
                "inertia_": inertia,
                "n_iter_": n_iter,
                "engine_": engine.name,
                "_n_features_out": len(moved),
                "_weights": (weights + sums.weights)[:, :, : values.shape[2]],
            }
        )
        return self

    def predict(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Find the nearest centre of each series.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples,), int32
            Clusters.
        """
        found = self._nearest(*self._compared(X))
        labels: np.ndarray = found.indices[:, 0].astype(np.int32)
        return labels

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the distance of each series to each centre.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Distances as `skts.metrics.pairwise_distances` returns them.
        """
        sides = self._distance.sides(*self._compared(X))
        distances: np.ndarray = self._run(DTWMatrix(*sides))
        return distances

    def score(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> float:
        """Return the negative inertia: squared distances of series to their nearest centres.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.
        y : ignored
            There for pipelines.

        Returns
        -------
        float
            The greater the better; at most 0.
        """
        found = self._nearest(*self._compared(X))
        return -float(np.sum(terms(found.distances[:, 0], self._distance)))

    @property
    def _distance(self) -> Distance:
        """The distance."""
        return distance_of(self.metric, self.metric_params, window=self.window)

    def _nearest(self, series: Series, centers: Series, engine: Engine | None = None) -> Any:
        """The nearest centre of each series."""
        left, right, warping = self._distance.sides(series, centers)
        return self._run(DTWNeighbors(left, right, 1, warping=warping), engine)

    def _aligned(
        self, engine: Engine, series: Series, centers: Series, labels: np.ndarray
    ) -> Alignment:
        """Align series with their centres."""
        work = alignment_of(series, centers, labels, np.ones(len(series)), self._distance)
        if work.one_by_one and self.engine == "auto":
            # a GPU that pays for distances does not for single paths
            engine = get_engine(self.engine, work.by_channel()[0])
        return align(work, lambda part: self._run(part, engine))

    def _init_is(self, name: str) -> bool:
        """Whether `init` is a word."""
        return isinstance(self.init, str) and self.init == name

    def _engine_for(self, series: Series, centers: Series) -> Engine:
        """The engine that suits an iteration."""
        left, right, warping = self._distance.sides(series, centers)
        return get_engine(
            self.engine, DTWNeighbors(left, right, min(2, len(centers)), warping=warping)
        )

    def _given_centers(self, series: Series) -> Series | None:
        """Centres that `init` holds; None where it is a word."""
        if isinstance(self.init, str):
            return None
        given = check_series(self.init, input_name="init", new=False)
        if (len(given), given.n_channels) != (self.n_clusters, series.n_channels):
            raise ValueError(
                f"init holds {len(given)} centres of {counted(given.n_channels, 'channel')}; "
                f"{self.n_clusters} of {series.n_channels} are needed here."
            )
        return given.freeze()

    def _run_once(
        self, engine: Engine, series: Series, centers: Series, least: float, number: str
    ) -> _Start:
        """Iterate from one start; `number` tells which one, of how many."""
        distance = self._distance
        nearest = NearestCenters(series, distance, lambda work: self._run(work, engine))
        centers = self._filled(nearest.search(centers), centers)
        patience = PATIENCE if self.metric in NEVER_RISES else LONGER_PATIENCE
        history = list[float]()
        best: _Assigned | None = None
        iteration, waited, settled = 0, 0, False
        while True:
            labels = nearest.labels.copy()
            sums = self._aligned(engine, series, centers, labels)
            distances = sums.distances
            inertia = float(np.sum(terms(distances, distance)))
            if self.verbose:
                tell(f"Run {number}, iteration {iteration}, inertia {inertia:.6f}")
            if best is None or inertia < best.inertia:
                best = _Assigned(inertia, centers, labels, sums.weights)
                history.append(inertia)
                waited = 0
            else:
                waited += 1
            if waited == patience:
                return _Start(best, history, iteration, True)
            if settled or iteration == self.max_iter:
                return _Start(best, history, iteration, settled)
            moved = averaged(centers, sums)
            settled = float(np.sum((moved.values - centers.values) ** 2)) <= least
            nearest.follow(centers, moved, distances)
            centers = self._filled(nearest, moved)
            iteration += 1

    def _filled(
        self, nearest: NearestCenters, centers: Series, stays: np.ndarray | None = None
    ) -> Series:
        """Move centres that no series is near to, or drop them; the series are compared anew.

        If it is told which ones stay as they are, none is dropped.
        """
        moves, exact = 0, False
        while True:
            counts = np.bincount(nearest.labels, minlength=len(centers))
            counts += 0 if stays is None else stays
            if counts.all():
                return centers
            if not exact:
                # bounds do not tell which series is farthest
                nearest.search(centers)
                exact = True
                continue
            farthest = int(np.argmax(nearest.upper))
            if moves < 2 * len(centers) + 10 and nearest.upper[farthest] > 0:
                centers = replaced(centers, int(np.argmin(counts > 0)), nearest.series, farthest)
                moves += 1
            elif stays is not None:
                return centers
            else:
                centers = centers.take(np.flatnonzero(counts))
            nearest.search(centers)

    def _drawn(self, engine: Engine, series: Series, random_state: np.random.RandomState) -> Series:
        """Series that a run starts from."""
        n, k = len(series), self.n_clusters
        if self._init_is("random"):
            return series.take(random_state.choice(n, k, replace=False))
        drawn = [int(random_state.randint(n))]
        draws = 2 + int(np.log(k))
        distance = self._distance

        def added(rows: np.ndarray) -> np.ndarray:
            sides = distance.sides(series, series.take(rows))
            return np.asarray(terms(self._run(DTWMatrix(*sides), engine), distance))

        nearest = added(np.array(drawn))
        while len(drawn) < k:
            weights = np.cumsum(nearest[:, 0])
            shares = random_state.uniform(size=draws) * weights[-1]
            rows = np.minimum(np.searchsorted(weights, shares, side="right"), n - 1)
            found = np.minimum(added(rows), nearest)
            best = int(np.argmin(found.sum(axis=0)))
            drawn.append(int(rows[best]))
            nearest = found[:, best : best + 1]
        return series.take(np.array(drawn))

    def _warn(self, best: _Start, n_found: int) -> None:
        """Tell of what is not as it was asked for."""
        if not best.converged:
            warn_user(
                f"Centres still move after max_iter={self.max_iter} iterations. Raise max_iter for "
                "more, or tol for less.",
                ConvergenceWarning,
            )
        if n_found < self.n_clusters:
            warn_user(
                f"Only {n_found} {'centres have' if n_found > 1 else 'centre has'} series of "
                f"{'their' if n_found > 1 else 'its'} own: there are that many clusters instead of "
                f"n_clusters={self.n_clusters}. Ask for fewer.",
                ConvergenceWarning,
            )


def _mean_variance(series: Series) -> float:
    """The mean variance of a time point, over the series that reach it."""
    n_rows = max(1, POINTS_AT_ONCE // (series.n_channels * series.n_timepoints))
    parts = [series.take(slice(first, first + n_rows)) for first in range(0, len(series), n_rows)]
    ends = np.bincount(series.lengths, minlength=series.n_timepoints + 1)
    # how many series reach each time point
    counts = np.maximum(len(series) - np.cumsum(ends)[:-1], 1)
    mean = sum(part.values.sum(axis=0) for part in parts) / counts
    squares = sum(
        np.where(part.inside, (part.values - mean) ** 2, 0.0).sum(axis=0) for part in parts
    )
    return float(np.mean(squares / counts))
