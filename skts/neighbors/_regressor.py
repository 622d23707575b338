"""Regression by nearest neighbours under dynamic time warping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions

from .._parameters import checks_parameters
from .._validation import check_outputs
from ..engines import get_engine
from ._base import NeighborsMixin, weigh

__all__ = ["DTWNearestNeighborRegressor"]


class DTWNearestNeighborRegressor(NeighborsMixin, RegressorMixin, BaseEstimator):
    """Predict numbers that go with time series by nearest neighbours under dynamic time warping.

    A prediction is the mean of the targets of the nearest training series. Neighbours are those of
    `DTWNearestNeighbor`, exact and the same on every engine.

    Parameters
    ----------
    n_neighbors : int, default 1
        Neighbours whose targets are averaged.
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
        Weights of the mean: "uniform" gives each neighbour 1, "distance" the inverse of its
        distance (neighbours at distance 0 then stand for all). A callable takes an array of
        distances and returns one of weights, of which infinite ones likewise stand for all.
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
    DTWNeighbors : Neighbours without labels.

    References
    ----------
    .. [1] Bachmann, Trogant, Freytag. "GPU-beschleunigte Time-Warping-Distanzen", section 2.
    .. [2] Tan, Bergmeir, Petitjean, Webb. "Time series extrinsic regression". Data Mining and
       Knowledge Discovery 35, 2021.

    Examples
    --------
    >>> from skts import DTWNearestNeighborRegressor
    >>> X = [[0, 1, 0, 0, 0], [0, 0, 2, 0, 0], [0, 3, 0, 0, 0], [0, 0, 0, 4, 0]]
    >>> model = DTWNearestNeighborRegressor(2).fit(X, [1.0, 2.0, 3.0, 4.0])
    >>> model.predict([[0, 0, 0, 2, 0], [0, 3, 0, 0, 0]])
    array([1.5, 2.5])
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
        """Keep the training series and their targets; O(n) in time and memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Training series; or a list of arrays of any lengths. NaN at the end is padding. The
            series are copied, but for a memory map of float64, which is kept by reference: its
            file must not change while the estimator is in use.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        self : DTWNearestNeighborRegressor
            The fitted estimator.
        """
        get_engine(self.engine)
        targets = check_outputs(X, y, f"This {type(self).__name__} estimator")
        self._keep(X)
        self._y = targets
        return self

    def predict(self, X: ArrayLike | list[ArrayLike] | None) -> np.ndarray:
        """Predict the target of each series as the mean of those of its neighbours.

        Parameters
        ----------
        X : array-like, list of array-like or None
            Series; None stands for the training series, each judged by its neighbours among the
            others.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), float64
            Predictions.

        Raises
        ------
        ValueError
            If the weights of the neighbours of a series add up to 0, or one is NaN.
        """
        distances, indices = self.kneighbors(X)
        weights, total = weigh(distances, self.weights)
        targets = self._y.reshape(len(self._y), -1)
        sums = np.zeros((len(indices), targets.shape[1]))
        # one neighbour after the other, so that no row depends on how many there are
        for neighbor in range(indices.shape[1]):
            sums += weights[:, neighbor, np.newaxis] * targets[indices[:, neighbor]]
        found: np.ndarray = sums / total[:, np.newaxis]
        return found.reshape(-1) if self._y.ndim == 1 else found

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: targets of several outputs."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
