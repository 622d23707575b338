"""Nearest neighbours under dynamic time warping, without labels."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from .._parameters import checks_parameters
from ..engines import get_engine
from ._base import NeighborsMixin

__all__ = ["DTWNeighbors"]


class DTWNeighbors(NeighborsMixin, BaseEstimator):
    """Find the nearest of many time series under dynamic time warping.

    It is to time series as scikit-learn's `NearestNeighbors` is to points: it keeps series without
    labels, and finds the nearest of them to a query, or all within a distance. Neighbours are
    exact and the same on every engine: the search runs in float32 where that is faster, candidates
    that it cannot rule out are compared in float64, and of equally near series the one with the
    lower index comes first.

    Parameters
    ----------
    n_neighbors : int, default 5
        Neighbours that `kneighbors` looks for.
    radius : float, default 1.0
        Largest distance of neighbours that `radius_neighbors` looks for.
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
        of the training series, each matched in full. Queries and training series may have any
        lengths; "euclidean" needs one for all. For "dtw", "dog_keeper" and "euclidean" in global
        alignment. Answers are certified in float64 whatever `precision` says. Under a function as
        the cost every shift of every training series is tried, which takes far longer.
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
    DTWNearestNeighbor : Classify series by their neighbours.
    DTWNearestNeighborRegressor : Predict numbers by the neighbours of a series.
    SubsequenceSearch : Find where a query occurs in long series.

    References
    ----------
    .. [1] Bachmann, Trogant, Freytag. "GPU-beschleunigte Time-Warping-Distanzen", section 2.

    Examples
    --------
    >>> from skts import DTWNeighbors
    >>> X = [[0, 0, 1, 2, 1, 0], [0, 1, 2, 1, 0, 0], [0, 0, 0, 1, 1, 1], [3, 3, 3, 0, 0, 0]]
    >>> model = DTWNeighbors(n_neighbors=2, radius=2.0).fit(X)
    >>> distances, indices = model.kneighbors([[0, 1, 1, 2, 1, 0]])
    >>> distances, indices
    (array([[0., 0.]]), array([[0, 1]]))
    >>> distances, indices = model.radius_neighbors([[0, 1, 1, 2, 1, 0]])
    >>> indices[0]
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeighborsMixin._parameter_constraints,
        "radius": [Interval(Real, 0, None, closed="both")],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        radius: float = 1.0,
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        cost: Literal["squared", "absolute"] | Callable[[float, float], float] = "squared",
        window: float | None = None,
        alignment: Literal["global", "subsequence", "supersequence"] = "global",
        rotation_invariant: bool = False,
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
        self.radius = radius

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Keep the series; O(n) in time and memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. NaN at the end is padding. The series are
            copied, but for a memory map of float64, which is kept by reference: its file must not
            change while the estimator is in use.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : DTWNeighbors
            The fitted estimator.
        """
        get_engine(self.engine)
        self._keep(X)
        return self
