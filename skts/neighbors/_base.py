"""Base of the estimators that look for the nearest of the series they keep."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._metrics import ALIGNMENT, COST, METRIC_PARAMS, METRICS, WINDOW, Distance, distance_of
from .._parameters import N_JOBS
from .._scalars import takes_plain
from .._validation import check_distances
from ..base import SeriesMixin
from ..engines import (
    DTWNeighbors,
    DTWRadiusNeighbors,
    Reduction,
    RotationNeighbors,
    RotationRadiusNeighbors,
    Series,
    Within,
    best_shifts,
    distances_of_all_shifts,
    get_engine,
    match_spans,
    pieces_from_end,
)

__all__ = ["NeighborsMixin", "weigh"]


class NeighborsMixin(SeriesMixin):
    """Options of a distance, and searches of the nearest series, or of all within a radius."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({*METRICS, "precomputed"})],
        "metric_params": METRIC_PARAMS,
        "cost": COST,
        "window": WINDOW,
        "alignment": ALIGNMENT,
        "rotation_invariant": ["boolean"],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }
    n_neighbors: int
    metric: str
    metric_params: dict[str, Any] | None
    cost: str | Callable[[float, float], float]
    window: float | None
    alignment: str
    rotation_invariant: bool
    precision: str
    n_samples_fit_: int
    _series: Series

    def _set_options(
        self,
        n_neighbors: int,
        *,
        metric: str,
        metric_params: dict[str, Any] | None,
        cost: str | Callable[[float, float], float],
        window: float | None,
        alignment: str,
        rotation_invariant: bool,
        precision: str,
        **options: Any,
    ) -> None:
        """Keep the parameters that all have; `options` are those of a run."""
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.metric_params = metric_params
        self.cost = cost
        self.window = window
        self.alignment = alignment
        self.rotation_invariant = rotation_invariant
        self.precision = precision
        for name, value in options.items():
            setattr(self, name, value)

    def _keep(self, X: ArrayLike | list[ArrayLike]) -> None:
        """Keep training series that have been compared with their labels."""
        series = self._check_rows(X).freeze()
        if self._precomputed:
            check_distances(series)
        engine = get_engine(self.engine, self._search(series, series, 1))
        self._remember_form(X, series)
        self.engine_ = engine.name
        self._series = series
        self.n_samples_fit_ = len(series)

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
    @overload
    def kneighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        n_neighbors: int | None = ...,
        return_distance: bool = ...,
        *,
        return_span: bool = ...,
        return_shift: bool = ...,
    ) -> tuple[np.ndarray, ...] | np.ndarray: ...
    @takes_plain
    def kneighbors(
        self,
        X: ArrayLike | list[ArrayLike] | None = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
        *,
        return_span: bool = False,
        return_shift: bool = False,
    ) -> tuple[np.ndarray, ...] | np.ndarray:
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
        return_span : bool, default False
            Whether to return where matches lie too; for ``alignment="subsequence"`` and
            "supersequence".
        return_shift : bool, default False
            Whether to return too by how much neighbours are turned round; with
            ``rotation_invariant=True``.

        Returns
        -------
        distances : ndarray of shape (n_queries, n_neighbors)
            Ascending; only with `return_distance`.
        indices : ndarray of shape (n_queries, n_neighbors), int64
            Rows of the training series; of equally near ones, the lower index comes first.
        spans : ndarray of shape (n_queries, n_neighbors, 2), int64
            First time point of the match, and the one behind its last: in the neighbour for a
            subsequence, in the query for a supersequence. Between these points alone the distance
            is the same; with ``metric="ddtw"`` they hold all points of which derivatives are made.
            Only with `return_span`.
        shifts : ndarray of shape (n_queries, n_neighbors), int64
            ``numpy.roll(neighbour, shift)`` is nearest to the query, of equally good shifts the
            least one. Only with `return_shift`.

        Raises
        ------
        ValueError
            If more neighbours are asked for than there are training series, or spans or shifts
            where there are none.
        """
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        self._check_places(return_span, return_shift)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, bool) or not isinstance(k, Integral):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value")
        if k <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {k}")
        queries, excluded = self._queries(X)
        available = self.n_samples_fit_ - (X is None)
        if k > available:
            raise ValueError(
                f"Expected n_neighbors <{'' if X is None else '='} n_samples_fit, but "
                f"n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}, "
                f"n_samples = {len(queries)}"
            )
        if self._precomputed or self._every_shift:
            distances, indices = _nearest_of(self._matrix(queries), int(k), excluded)
        else:
            distances, indices = self._run(self._search(queries, self._series, int(k), excluded))
        places = [self._spans(queries, indices)] if return_span else []
        if return_shift:
            pairs = queries, self._series, indices, self._distance().warping, self._run
            places.append(best_shifts(*pairs))
        if return_distance:
            return distances, indices, *places
        return (indices, *places) if places else indices

    def _check_places(self, return_span: bool, return_shift: bool) -> None:
        """Refuse places that do not exist: whole series match, or none is turned round."""
        asked = {"return_span": return_span, "return_shift": return_shift}
        for name in (name for name, wanted in asked.items() if wanted and self._precomputed):
            raise ValueError(f"{name}=True does not go with metric='precomputed': give series.")
        if return_span and self.alignment == "global":
            raise ValueError(
                "return_span=True needs alignment='subsequence' or 'supersequence': in "
                "alignment='global' a series is matched in full."
            )
        if return_shift and not self.rotation_invariant:
            raise ValueError("return_shift=True needs rotation_invariant=True.")

    def _spans(self, queries: Series, indices: np.ndarray) -> np.ndarray:
        """Points of neighbours, or of queries, between which the distance is that of the match."""
        left, right, warping = self._distance().sides(queries, self._series)
        spans = match_spans(left, right, indices, warping, self._run)
        # of a derivative the first estimate is that of the second point, and both ends are missing
        spans[..., 1] += queries.n_timepoints - left.n_timepoints
        return spans

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
        _check_mode(mode)
        distances, indices = self.kneighbors(X, n_neighbors)
        data = distances if mode == "distance" else np.ones(indices.shape)
        pointers = np.arange(0, indices.size + 1, indices.shape[1])
        shape = (len(indices), self.n_samples_fit_)
        return csr_matrix((data.ravel(), indices.ravel(), pointers), shape=shape)

    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        radius: float | None = ...,
        return_distance: Literal[True] = ...,
        sort_results: bool = ...,
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        radius: float | None = ...,
        *,
        return_distance: Literal[False],
        sort_results: bool = ...,
    ) -> np.ndarray: ...
    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None,
        radius: float | None,
        return_distance: Literal[False],
        sort_results: bool = ...,
    ) -> np.ndarray: ...
    @overload
    def radius_neighbors(  # numpydoc ignore=GL08
        self,
        X: ArrayLike | list[ArrayLike] | None = ...,
        radius: float | None = ...,
        return_distance: bool = ...,
        sort_results: bool = ...,
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray: ...
    @takes_plain
    def radius_neighbors(
        self,
        X: ArrayLike | list[ArrayLike] | None = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        """Find all training series within a distance of each series.

        Parameters
        ----------
        X : array-like, list of array-like or None, default None
            Series; None stands for the training series, each of which then finds neighbours among
            the others.
        radius : float or None, default None
            Largest distance of a neighbour (itself a distance, no factor); None takes the parameter
            of the estimator, where it has one.
        return_distance : bool, default True
            Whether to return distances too. Without them fewer candidates are compared in float64.
        sort_results : bool, default False
            Whether neighbours come in the order of their distances, the lower index first where
            these are equal; otherwise they come in the order of their indices.

        Returns
        -------
        distances : ndarray of shape (n_queries,) of ndarray of shape (n_found,)
            Distances; only with `return_distance`.
        indices : ndarray of shape (n_queries,) of ndarray of shape (n_found,), int64
            Rows of the training series.

        Raises
        ------
        ValueError
            If no radius is given, or one below 0, or if results without distances are to be sorted.
        """
        if sort_results and not return_distance:
            raise ValueError("return_distance must be True if sort_results is True.")
        found = self._within(X, radius, distances=return_distance)
        if sort_results:
            _sort_rows(found)
        indices = _rows_of(found.indices, found.starts)
        if found.distances is None:
            return indices
        distances = _rows_of(found.distances, found.starts)
        return (distances, indices) if return_distance else indices

    @takes_plain
    def radius_neighbors_graph(
        self,
        X: ArrayLike | list[ArrayLike] | None = None,
        radius: float | None = None,
        mode: Literal["connectivity", "distance"] = "connectivity",
        sort_results: bool = False,
    ) -> csr_matrix:
        """Return all training series within a distance as a sparse graph.

        Parameters
        ----------
        X : array-like, list of array-like or None, default None
            Series; None as in `radius_neighbors`.
        radius : float or None, default None
            Largest distance; None as in `radius_neighbors`.
        mode : {"connectivity", "distance"}, default "connectivity"
            Whether entries are ones or distances.
        sort_results : bool, default False
            Whether the entries of a row are stored in the order of their distances; only with
            ``mode="distance"``.

        Returns
        -------
        csr_matrix of shape (n_queries, n_samples_fit)
            Row i holds the neighbours of query i. Distances of 0 are stored.

        Raises
        ------
        ValueError
            If `mode` is unknown, and as for `radius_neighbors`.
        """
        _check_mode(mode)
        found = self._within(X, radius, distances=mode == "distance")
        if sort_results and mode == "distance":
            _sort_rows(found)
        shape = (found.starts.size - 1, self.n_samples_fit_)
        # as SciPy stores them, but never twice
        dtype = np.int32 if max(found.indices.size, *shape) <= np.iinfo(np.int32).max else np.int64
        indices = np.empty(found.indices.size, dtype)
        for row, run in pieces_from_end(found.indices, found.starts):
            indices[found.starts[row] : found.starts[row + 1]] = run
        data = found.distances
        if data is None or mode == "connectivity":
            data = np.ones(indices.size)
        return csr_matrix((data, indices, found.starts.astype(dtype)), shape=shape)

    def _within(
        self, X: ArrayLike | list[ArrayLike] | None, radius: float | None, *, distances: bool
    ) -> Within:
        """All training series within a distance of each series."""
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        given = getattr(self, "radius", None) if radius is None else radius
        if given is None:
            raise ValueError(f"radius=None: {type(self).__name__} has no radius of its own.")
        if isinstance(given, bool) or not isinstance(given, Real):
            raise TypeError(f"radius={given!r} is not a number.")
        limit = float(given)
        if not limit >= 0:
            raise ValueError(f"Expected radius >= 0. Got {given}")
        queries, excluded = self._queries(X)
        if self._precomputed or self._every_shift:
            return _within_of(self._matrix(queries), limit, excluded)
        distance = self._distance()
        rows, cols, warping = distance.sides(queries, self._series)
        if self.rotation_invariant:
            work: Reduction = RotationRadiusNeighbors(rows, cols, limit, excluded, warping)
        else:
            work = DTWRadiusNeighbors(
                rows, cols, limit, excluded, self.precision, warping, distances=distances
            )
        found: Within = self._run(work)
        return found

    def _queries(self, X: ArrayLike | list[ArrayLike] | None) -> tuple[Series, np.ndarray | None]:
        """Queries that have been checked, and the training series that each must not find."""
        if X is None:
            return self._series, np.arange(self.n_samples_fit_)
        return self._validate_series(X), None

    @property
    def _every_shift(self) -> bool:
        """Whether all shifts are tried: of a function as the cost no bounds are known."""
        return self.rotation_invariant and callable(self.cost)

    def _matrix(self, queries: Series) -> np.ndarray:
        """All distances to the training series: those that were given, or the least of all shifts.

        The array may be written to.
        """
        if self._precomputed:
            return check_distances(queries, self.n_samples_fit_).copy()
        warping = self._distance().warping
        return distances_of_all_shifts(queries, self._series, warping, self._run)

    def _distance(self) -> Distance:
        """The distance, with its options; of precomputed ones any."""
        metric, given = self.metric, self.metric_params
        if self._precomputed:
            metric, given = "dtw", None
        distance = distance_of(
            metric, given, cost=self.cost, window=self.window, alignment=self.alignment
        )
        made = distance.entry.describe is not None or distance.warping.described
        if self.rotation_invariant and made:
            raise ValueError(f"rotation_invariant=True does not go with metric={metric!r}.")
        return distance

    def _search(
        self, queries: Series, candidates: Series, k: int, excluded: np.ndarray | None = None
    ) -> DTWNeighbors | RotationNeighbors:
        """The work of a search, with the options of this estimator."""
        queries, candidates, warping = self._distance().sides(queries, candidates)
        if self.rotation_invariant and not (self._precomputed or callable(self.cost)):
            return RotationNeighbors(queries, candidates, k, excluded, warping)
        return DTWNeighbors(queries, candidates, k, excluded, self.precision, warping)


def weigh(
    distances: np.ndarray, weights: str | Callable[[np.ndarray], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Weigh neighbours: by ones, by inverse distances, or by a function of these.

    Parameters
    ----------
    distances : ndarray of shape (n_queries, n_neighbors)
        Distances of the neighbours.
    weights : {"uniform", "distance"} or callable
        The kind of weights.

    Returns
    -------
    found : ndarray of shape (n_queries, n_neighbors)
        The weights, those of a row in a unit of its own; where some are infinite, as at distance 0,
        ones for these and zeros for all others.
    total : ndarray of shape (n_queries,)
        Their sums, none of which is 0.

    Raises
    ------
    ValueError
        If a function returns another shape, or what is no weight; if the weights of a row add up
        to 0.
    """
    if weights == "uniform":
        found = np.ones_like(distances)
    elif callable(weights):
        found = np.asarray(weights(distances))
        if found.shape != distances.shape:
            raise ValueError(
                f"weights returned shape {found.shape} for distances of shape {distances.shape}; "
                "return one weight for each distance."
            )
        found = _check_weights(found, distances)
    else:
        with np.errstate(divide="ignore"):
            found = 1.0 / distances
    endless = np.isposinf(found)
    found = np.where(endless.any(axis=1, keepdims=True), endless.astype(float), found)
    # by a power of two, which rounds nothing: no sum of weights overflows
    largest = np.abs(found).max(axis=1, keepdims=True)
    _, exponent = np.frexp(largest)
    found = np.ldexp(found, 1 - exponent)
    # one neighbour after the other, so that no row depends on how many there are
    total = np.zeros(len(found))
    for column in found.T:
        total += column
    if np.any(total == 0):
        row = int(np.flatnonzero(total == 0)[0])
        raise ValueError(
            f"The weights of the neighbours of query {row} add up to 0: a mean or a vote needs "
            "others."
        )
    return found, total


def _check_weights(found: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Weights that a function returned, as float64."""
    if found.dtype.kind not in "biuf":
        raise ValueError(f"weights returned an array of {found.dtype}; return real numbers.")
    found = found.astype(np.float64)
    wrong = np.argwhere(np.isnan(found) | np.isneginf(found))
    if wrong.size:
        row, column = wrong[0].tolist()
        raise ValueError(
            f"weights returned {found[row, column]} for query {row}, at the distance "
            f"{distances[row, column]:g}; return numbers, of which inf counts more than all others."
        )
    return found


def _nearest_of(
    values: np.ndarray, k: int, excluded: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest columns of each row of distances, ties by column; the array is written to."""
    if excluded is not None:
        values[np.arange(len(values)), excluded] = np.inf
    indices = np.argsort(values, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(values, indices, axis=1), indices


def _within_of(values: np.ndarray, radius: float, excluded: np.ndarray | None) -> Within:
    """The columns of each row of distances that are within a radius."""
    near = values <= radius
    if excluded is not None:
        near[np.arange(len(values)), excluded] = False
    rows, columns = np.nonzero(near)
    return Within.of(rows, columns, values[near], len(values))


def _check_mode(mode: str) -> None:
    """Refuse a kind of graph that is unknown."""
    if mode not in ("connectivity", "distance"):
        raise ValueError(
            f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" '
            "instead"
        )


def _sort_rows(found: Within) -> None:
    """Put the neighbours of each query in the order of their distances, of equal ones as before."""
    assert found.distances is not None
    for start, stop in itertools.pairwise(found.starts.tolist()):
        order = start + np.argsort(found.distances[start:stop], kind="stable")
        found.distances[start:stop] = found.distances[order]
        found.indices[start:stop] = found.indices[order]


def _rows_of(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Values cut in rows, as an array of arrays; no values are left."""
    rows = np.empty(starts.size - 1, object)
    for row, run in pieces_from_end(values, starts):
        rows[row] = run.copy()
    return rows
