"""Clustering by shape: k-Shape."""

from __future__ import annotations

import math
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
from sklearn.utils.validation import check_is_fitted

from .._distance_rows import SHORT
from .._log import tell
from .._parameters import N_JOBS, checks_parameters, warn_user
from .._validation import check_series, is_3d
from ..base import SeriesMixin
from ..engines import (
    REFERENCE,
    TIE,
    Assignment,
    Engine,
    MemberParts,
    SBDAssign,
    SBDCenters,
    SBDMatrix,
    Series,
    ShapeMoments,
    Shapes,
    certified_distances,
    get_engine,
)
from ._centers import check_enough

__all__ = ["KShapeClusterer"]

#: Centres of series with at most so many values in all are computed by the CPU engine: for fewer
#: the launches of a GPU take as long.
FEW_VALUES = 2**16


class _Iterate(NamedTuple):
    """Centres, the assignment that follows from them, and the work that the centres came from."""

    inertia: float
    centers: Shapes
    assigned: Assignment
    work: SBDCenters


class _Run(NamedTuple):
    """The result of one start."""

    found: _Iterate
    history: list[float]
    problem: str | None


class KShapeClusterer(
    SeriesMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator
):
    """Cluster time series by shape: k-Shape.

    Series are compared by the shape-based distance (SBD), 1 minus their largest normalised
    cross-correlation over all shifts. Two steps alternate: the members of a cluster are shifted to
    match its centre, and the centre becomes the shape that correlates best with all of them; then
    each series goes to its nearest centre. `partial_fit` takes series batch by batch, where memory
    does not hold all.

    Parameters
    ----------
    n_clusters : int, default 3
        Number of clusters.
    init : {"random", "series", "plusplus"} or array-like, default "random"
        How to start. "random" draws labels, as the paper does; "series" draws series as centres;
        "plusplus" draws them one after the other, each with a probability in proportion to the
        squared distance to the nearest centre so far. An array holds the centres, of shape
        (n_clusters, n_timepoints) or (n_clusters, n_channels, n_timepoints).
    n_init : int or "auto", default "auto"
        How often `fit` starts; the run with the least inertia is kept. "auto" means 10 for "random"
        and "series", 1 for "plusplus" and given centres. `partial_fit` starts once.
    max_iter : int, default 100
        Iterations of a run at most.
    tol : float, default 0.0
        A run stops when the inertia changes by less than this share of itself; with 0, only when no
        label changes.
    normalize : bool, default True
        Whether each channel of each series is z-normalised; a constant channel becomes zeros.
        Where none has more than 2 points, series are scaled to norm 1 instead.
    random_state : int, RandomState or None, default None
        Draws the labels or series to start from.
    precision : {"auto", "float64"}, default "auto"
        Both compute in float64.
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
        Centres, z-normalised over all channels together, in the order of the numbers in `labels_`;
        of shape (n_clusters, n_channels, n_timepoints) for 3-D input or several channels.
    labels_ : ndarray of shape (n_samples,), int32
        Cluster of each series, the same as `predict` of the training series; after `partial_fit` of
        the series of the last batch.
    shifts_ : ndarray of shape (n_samples,), int32
        How many time points each of these series moves to the right to match its centre.
    inertia_ : float
        Sum of the distances of these series to their centres.
    n_iter_ : int
        Iterations of the best run, and one for each call of `partial_fit` since.
    history_ : ndarray of shape (`n_iter_`,)
        Inertia after each iteration of the best run. Not set after `partial_fit`.
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
        When a labelling repeats that of an earlier iteration, when `max_iter` is reached (the best
        iterate is returned in both cases), and when there are fewer different series than clusters.

    See Also
    --------
    skts.metrics.sbd : The distance of two series, and the shift.

    Notes
    -----
    The two steps have two objectives. Assigning series never raises the inertia; a new centre never
    lowers the sum of its squared correlations with the shifted members. So the inertia may rise
    from one iteration to the next.

    The first iteration from random labels has no centres yet and does not shift the members; later
    ones shift them to match the centre of the iteration before. Shifts whose correlations lie
    within 1e-9 of the largest tie: the shortest is taken, of two the one to the left. Centres whose
    distances lie within 1e-9 tie as well, and so do runs by their mean distance: the first is
    taken. Centres follow equation 8 of [1]_: aligned members are not normalised again. All engines
    find the same labels and shifts in the same number of iterations.

    A cluster that loses all its members gets a new centre: the series that is farthest from its own
    centre.

    `predict` and `transform` use the parameters that the estimator has when they are called: after
    `set_params(normalize=...)` they compare series that are normalised, or not, as it says now,
    with the centres of the last `fit`.

    `partial_fit` is one iteration on the series of a batch: their labels and shifts are exact, as
    those of `fit`. A centre becomes the shape that correlates best with all members so far, each
    moved by the shift that was best when its batch came: it follows from the sums of the products
    of all pairs of points of the members, a matrix of (n_channels x n_timepoints)^2 numbers for
    each cluster. Earlier batches are not seen again: their labels and shifts do not follow the
    centres, so that the result depends on the order of batches. The first call with all series is
    the first iteration of `fit`, with centres that are equal but for roundings; from random labels
    it is the first two. `fit` keeps no such sums: a call after it knows of earlier members only
    their parts along their centre, and adds to these.

    References
    ----------
    .. [1] Wang, Song, Xiao, Li, Li. "Accelerating k-Shape Time Series Clustering Algorithm Using
       GPU". IEEE Transactions on Parallel and Distributed Systems, 2023, sections II.B and IV.
    .. [2] Paparrizos, Gravano. "k-Shape: Efficient and Accurate Clustering of Time Series". SIGMOD
       2015.

    Examples
    --------
    >>> from skts import KShapeClusterer
    >>> X = [[0, 0, 1, 2, 1, 0, 0, 0], [0, 0, 0, 0, 1, 2, 1, 0],
    ...      [2, 1, 0, 2, 1, 0, 2, 1], [1, 0, 2, 1, 0, 2, 1, 0]]
    >>> model = KShapeClusterer(2, random_state=0).fit(X)
    >>> groups = [model.labels_ == label for label in range(2)]
    >>> sorted(group.nonzero()[0].tolist() for group in groups)
    [[0, 1], [2, 3]]
    >>> int(model.shifts_[0] - model.shifts_[1])
    2
    """

    _own_verbose = 1  # iterations
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"random", "series", "plusplus"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "normalize": ["boolean"],
        "random_state": ["random_state"],
        "precision": [StrOptions({"auto", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int = 3,
        *,
        init: Literal["random", "series", "plusplus"] | ArrayLike = "random",
        n_init: int | Literal["auto"] = "auto",
        max_iter: int = 100,
        tol: float = 0.0,
        normalize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        precision: Literal["auto", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
        self.random_state = random_state
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Cluster series.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths. NaN at the end is padding: each series is
            normalised on its own points and filled with zeros, up to the width of the array or the
            longest of the list.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : KShapeClusterer
            The fitted estimator.

        Raises
        ------
        ValueError
            If there are fewer series than clusters; if `init` has another shape than the centres of
            these series; if a series holds infinity, or NaN before its last value.
        """
        get_engine(self.engine)
        series = check_series(X, estimator=self)
        check_enough(series, self.n_clusters)
        starts = self._given_centers(series)
        shapes = self._shapes(series, series.n_timepoints)
        centers = shapes.take(slice(self.n_clusters)) if starts is None else starts
        engine = get_engine(self.engine, SBDAssign(shapes, centers))
        random_state = check_random_state(self.random_state)
        runs = 10 if isinstance(self.init, str) and self.init != "plusplus" else 1
        runs = self.n_init if self.n_init != "auto" else runs
        runs = runs if starts is None else 1
        best = self._run_once(engine, shapes, starts, random_state, f"1 of {runs}")
        for run_number in range(2, runs + 1):
            own = f"{run_number} of {runs}"
            one = self._run_once(engine, shapes, starts, random_state, own)
            if self._beats(shapes, one.found, best.found):
                best = one
        if best.problem is not None:
            warn_user(best.problem, ConvergenceWarning)
        inertia, centers, assigned, _ = best.found
        n_found = len(centers)
        if n_found < self.n_clusters:
            shapes_found = "1 shape" if n_found == 1 else f"{n_found} different shapes"
            warn_user(
                f"The series have only {shapes_found}: there are that many clusters "
                f"instead of n_clusters={self.n_clusters}. Ask for fewer.",
                ConvergenceWarning,
            )
        flat = series.n_channels == 1 and not is_3d(X)
        fitted = {
            "cluster_centers_": centers.values[:, 0] if flat else centers.values,
            "labels_": assigned.labels,
            "shifts_": assigned.shifts,
            "inertia_": inertia,
            "history_": np.array(best.history),
            "n_iter_": len(best.history),
            "engine_": engine.name,
            "_n_features_out": n_found,
            "_members": MemberParts.of(shapes, assigned, n_found),
        }
        # nothing of an earlier fit is replaced before all is there
        self._remember_form(X, series)
        self.__dict__.update(fitted)
        return self

    @checks_parameters
    def partial_fit(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> Self:
        """Move the centres by a batch of series, in one iteration.

        The first call draws the centres to start from, as `fit` does for one start. Later ones, and
        those after `fit`, go on from the centres that there are, and from all members that these
        had. A centre without series in the batch stays where it is; only one that never had any
        moves to the series that is farthest from its own centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            Series; or a list of arrays of any lengths, in later calls no longer than the centres.
            NaN at the end is padding.
        y : ignored
            There for pipelines.

        Returns
        -------
        self : KShapeClusterer
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
            starts = self._given_centers(series)
            width = series.n_timepoints
        else:
            series = self._validate_series(X)
            flat = np.ndim(self.cluster_centers_) == 2
            starts = self._fitted_centers()
            width = starts.n_timepoints
            if series.n_timepoints > width:
                raise ValueError(
                    f"A series has {series.n_timepoints} time points, and the centres have {width}:"
                    " the first batch decides."
                )
        shapes = self._shapes(series, width, width)
        examples = shapes.take(slice(self.n_clusters)) if starts is None else starts
        engine = get_engine(self.engine, SBDAssign(shapes, examples))
        random_state = check_random_state(self.random_state)
        centers = starts or self._first_centers(engine, shapes, random_state)
        moments = self._moments(centers.values, is_first=is_first)
        centers, assigned = self._assign_batch(engine, shapes, centers, moments.counts > 0)
        moments = moments.joined(shapes, assigned)
        moved = Shapes.of(moments.centers(np.unique(assigned.labels), centers.values))
        assigned = self._run(SBDAssign(shapes, moved), engine)
        inertia = float(assigned.distances.sum())
        n_iter = 1 if is_first else self.n_iter_ + 1
        if self.verbose:
            tell(f"Batch {n_iter}, {len(shapes)} series, inertia {inertia:.6f}")
        if is_first:
            self._remember_form(X, series)
        self.__dict__.pop("history_", None)
        self.__dict__.update(
            {
                "cluster_centers_": moved.values[:, 0] if flat else moved.values,
                "labels_": assigned.labels,
                "shifts_": assigned.shifts,
                "inertia_": inertia,
                "n_iter_": n_iter,
                "engine_": engine.name,
                "_n_features_out": len(moved),
                "_members": moments,
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
        return self._compute(X, SBDAssign).labels

    def transform(self, X: ArrayLike | list[ArrayLike]) -> np.ndarray:
        """Return the distance of each series to each centre.

        Parameters
        ----------
        X : array-like or list of array-like
            Series.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Shape-based distances, between 0 and 2.
        """
        return self._compute(X, SBDMatrix).distances

    def score(self, X: ArrayLike | list[ArrayLike], y: Any = None) -> float:
        """Return the negative sum of the distances of series to their nearest centres.

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
        return -float(self._compute(X, SBDAssign).distances.sum())

    def _aligned(
        self, X: ArrayLike | list[ArrayLike], *, move: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Labels of series, and the series normalised and, to match their centres, moved.

        The series have as many points as the centres, or the longest of them where that is more.
        """
        _, shifts, _ = assigned = self._compute(X, SBDAssign)
        series = self._validate_series(X)
        fitted = self.cluster_centers_.shape[-1]
        shapes = self._shapes(series, fitted, max(fitted, series.n_timepoints))
        values = shapes.values
        if shapes.exponents is not None:
            values = np.ldexp(values, shapes.exponents[:, np.newaxis, np.newaxis])
        width = values.shape[2]
        times = np.arange(width) - (shifts if move else np.zeros_like(shifts))[:, np.newaxis]
        moved = np.take_along_axis(values, times.clip(0, width - 1)[:, np.newaxis], axis=2)
        inside = (times >= 0) & (times < width)
        return assigned.labels, np.where(inside[:, np.newaxis], moved, 0.0)

    def _compute(self, X: Any, work: type[SBDAssign] | type[SBDMatrix]) -> Any:
        """Compare series with the centres."""
        check_is_fitted(self)
        self._validate_params()  # set_params may have come after fit
        series, centers = self._validate_series(X), self._fitted_centers().values
        fitted = centers.shape[2]
        widths = np.maximum(fitted, series.lengths)
        centered = self.normalize and fitted >= SHORT
        if centered or (widths == widths[0]).all():
            return self._compare(series, centers, max(fitted, series.n_timepoints), work)
        # centres that do not sum to 0 may correlate negatively at all shifts by which they meet a
        # series; in the width of a longer one there are shifts by which they do not, with 0
        order = np.argsort(widths, kind="stable")
        parts = []
        for rows in np.split(order, np.flatnonzero(np.diff(widths[order])) + 1):
            width = int(widths[rows[0]])
            points = np.ascontiguousarray(series.values[rows, :, :width])
            some = Series(points, series.lengths[rows])
            parts.append(self._compare(some, centers, width, work))
        back = np.argsort(order)
        return type(parts[0])(*(np.concatenate(each)[back] for each in zip(*parts, strict=True)))

    def _compare(
        self,
        series: Series,
        centers: np.ndarray,
        width: int,
        work: type[SBDAssign] | type[SBDMatrix],
    ) -> Any:
        """Compare series with the centres, both filled up to one width."""
        fitted = centers.shape[2]
        filled = np.pad(centers, ((0, 0), (0, 0), (0, width - fitted)))
        return self._run(work(self._shapes(series, fitted, width), Shapes.of(filled)))

    def _fitted_centers(self) -> Shapes:
        """The centres: an attribute that everybody may change, or a damaged pickle has brought."""
        given = check_series(
            self.cluster_centers_, input_name="cluster_centers_", equal_length=True, new=False
        )
        return Shapes.of(given.values.reshape(len(given), self.n_channels_, -1))

    def _moments(self, centers: np.ndarray, *, is_first: bool) -> ShapeMoments:
        """Return the sums over all members so far."""
        centered = centers.shape[2] >= SHORT
        if is_first:
            return ShapeMoments.none(centers, centered=centered)
        known = self._members
        if len(known.counts) == len(centers) and isinstance(known, MemberParts):
            return ShapeMoments.along(centers, known, centered=centered)
        if isinstance(known, MemberParts) or known.sums.shape != (len(centers), centers[0].size):
            raise ValueError(
                f"cluster_centers_ holds {len(centers)} centres of {centers.shape[2]} time points, "
                "and others were fitted: call fit anew, with these as init."
            )
        return known

    def _first_centers(
        self, engine: Engine, shapes: Shapes, random_state: np.random.RandomState
    ) -> Shapes:
        """Centres to start from: series, or those of random groups."""
        centered = shapes.n_timepoints >= SHORT
        if self.init != "random":
            drawn = self._drawn(engine, shapes, random_state)
            return _as_centers(shapes.take(drawn).values, centered)
        labels = _random_labels(len(shapes), self.n_clusters, random_state)
        still = np.zeros(len(shapes), np.int32)
        work = SBDCenters(shapes, labels, still, self.n_clusters, None, centered)
        found: Shapes = self._run(work, REFERENCE)
        return found

    def _assign_batch(
        self, engine: Engine, shapes: Shapes, centers: Shapes, stays: np.ndarray
    ) -> tuple[Shapes, Assignment]:
        """Assign series to centres; empty ones are moved, but those that stay as they are."""
        moves = 0
        while True:
            nearest = SBDAssign(shapes, centers)
            assigned: Assignment = self._run(nearest, engine)
            empty = (np.bincount(assigned.labels, minlength=len(centers)) == 0) & ~stays
            if not empty.any() or moves == 2 * len(centers) + 10:
                return centers, assigned
            farthest = _farthest(nearest, assigned)
            if farthest is None:
                return centers, assigned
            centers = _with_moved(centers, empty, shapes, farthest)
            moves += 1

    def _shapes(self, series: Series, fitted: int, width: int | None = None) -> Shapes:
        """Normalise series the way those of `fit`, of `fitted` points, are."""
        return Shapes.normalized(
            series, normalize=self.normalize, short=fitted < SHORT, width=width
        )

    def _given_centers(self, series: Series) -> Shapes | None:
        """Centres that `init` holds, normalised; None where it is a word."""
        if isinstance(self.init, str):
            return None
        given = check_series(self.init, input_name="init", equal_length=True, new=False)
        expected = self.n_clusters, series.n_channels, series.n_timepoints
        if given.values.shape != expected:
            raise ValueError(
                f"init has shape {given.values.shape} as (n_centers, n_channels, n_timepoints); "
                f"{expected} is needed here."
            )
        return Shapes.normalized(given, short=series.n_timepoints < SHORT)

    def _run_once(
        self,
        engine: Any,
        shapes: Shapes,
        centers: Shapes | None,
        random_state: np.random.RandomState,
        number: str = "1 of 1",
    ) -> _Run:
        """Iterate from one start; `number` tells which one, of how many."""
        n_clusters = self.n_clusters
        centered = shapes.n_timepoints >= SHORT
        if centers is None and self.init == "random":
            labels = _random_labels(len(shapes), n_clusters, random_state)
            zeros = np.zeros(len(shapes))
            assigned = Assignment(labels, zeros.astype(np.int32), zeros)
        else:
            if centers is None:
                centers = shapes.take(self._drawn(engine, shapes, random_state))
                centers = _as_centers(centers.values, centered)
            centers, assigned = self._assign(engine, shapes, centers)
        history: list[float] = []
        seen = {_fingerprint(assigned.labels)}
        best: Any = None  # an _Iterate after the first iteration, and there is one
        latest: _Iterate | None = None
        problem = None
        for iteration in range(self.max_iter):
            aligned = centers is not None
            work = SBDCenters(
                shapes,
                assigned.labels,
                assigned.shifts,
                n_clusters if centers is None else len(centers),
                None if centers is None else centers.values,
                centered,
            )
            small = shapes.values.size <= FEW_VALUES
            centers = self._run(work, REFERENCE if small else engine)
            before, previous = assigned, latest
            centers, assigned = self._assign(engine, shapes, centers, work)
            inertia = float(assigned.distances.sum())
            history.append(inertia)
            if self.verbose:
                tell(f"Run {number}, iteration {iteration + 1}, inertia {inertia:.6f}")
            latest = _Iterate(inertia, centers, assigned, work)
            if best is None or self._beats(shapes, latest, best):
                best = latest
            if aligned and np.array_equal(before.labels, assigned.labels):
                return _Run(latest, history, None)
            if previous is not None and self._hardly_changes(shapes, previous, latest):
                return _Run(latest, history, None)
            fingerprint = _fingerprint(assigned.labels)
            if aligned and fingerprint in seen:
                problem = (
                    f"The labelling of iteration {iteration + 1} occurred before: k-Shape cycles. "
                    f"The best of {iteration + 1} iterations is returned; another random_state or "
                    "n_init may lead to another result."
                )
                break
            seen.add(fingerprint)
        else:
            problem = (
                f"Labels still change after max_iter={self.max_iter} iterations; the best of them "
                "is returned. Raise max_iter for more."
            )
        return _Run(best, history, problem)

    def _assign(
        self, engine: Any, shapes: Shapes, centers: Shapes, work: SBDCenters | None = None
    ) -> tuple[Shapes, Assignment]:
        """Assign series to centres; centres that nobody is near to are moved, or dropped.

        Where a choice depends on errors of the centres, the CPU engine computes them again: `work`
        is what they came from.
        """
        moves = 0
        while True:
            nearest = SBDAssign(shapes, centers)
            assigned = self._run(nearest, engine)
            empty = np.bincount(assigned.labels, minlength=len(centers)) == 0
            doubtful = centers.errors is not None and (empty.any() or not assigned.clear)
            if work is not None and doubtful:
                centers = self._run(work, REFERENCE)
                continue
            if not empty.any():
                return centers, assigned
            farthest = None
            if moves < 2 * len(centers) + 10:
                farthest = _farthest(nearest, assigned)
            if farthest is None:
                centers = Shapes.of(np.ascontiguousarray(centers.values[~empty]))
            else:
                centers = _with_moved(centers, empty, shapes, farthest)
                moves += 1

    def _beats(self, shapes: Shapes, new: _Iterate, old: _Iterate) -> bool:
        """Whether the mean distance is less by more than `TIE`."""
        margin = old.inertia - new.inertia - TIE * len(shapes)
        if abs(margin) > _inertia_error(shapes, new) + _inertia_error(shapes, old):
            return margin > 0
        after, before = (self._certified_inertia(shapes, one) for one in (new, old))
        return before - after > TIE * len(shapes)

    def _hardly_changes(self, shapes: Shapes, old: _Iterate, new: _Iterate) -> bool:
        """Whether `tol` ends the iteration."""
        if self.tol == 0:
            return False
        margin = self.tol * new.inertia - abs(old.inertia - new.inertia)
        errors = [_inertia_error(shapes, one) for one in (old, new)]
        if abs(margin) > sum(errors) + self.tol * errors[1]:
            return margin > 0
        before, after = (self._certified_inertia(shapes, one) for one in (old, new))
        return abs(before - after) < self.tol * after

    def _certified_inertia(self, shapes: Shapes, iterate: _Iterate) -> float:
        """The inertia from certified centres and distances, correctly rounded."""
        certified = iterate.centers.errors is None
        centers = iterate.centers if certified else self._run(iterate.work, REFERENCE)
        pairs = enumerate(iterate.assigned.labels)
        return math.fsum(certified_distances(SBDAssign(shapes, centers), pairs)[0])

    def _drawn(
        self, engine: Any, shapes: Shapes, random_state: np.random.RandomState
    ) -> np.ndarray:
        """Indices of the series that a run starts from."""
        n, k = len(shapes), self.n_clusters
        if self.init == "series":
            return random_state.choice(n, k, replace=False)
        drawn = [int(random_state.randint(n))]
        nearest = np.full(n, np.inf)
        while len(drawn) < k:
            work = SBDMatrix(shapes, shapes.take(np.array(drawn)))
            latest = SBDMatrix(shapes, shapes.take(np.array(drawn[-1:])))
            distances = self._run(latest, engine).distances[:, 0]
            near = np.flatnonzero(np.abs(distances - TIE) <= 2 * work.rounding)
            distances[near], _ = certified_distances(latest, ((int(row), 0) for row in near))
            nearest = np.minimum(nearest, np.where(distances > TIE, distances, 0.0))
            nearest[drawn[-1]] = 0.0
            share = random_state.random_sample()
            total = np.sum(nearest**2)
            # see "sums of shapes" in docs/developer/numerics.rst
            error = 4 * work.rounding * np.sqrt(n * total) + n * 2.0**-50 * total
            first, last = (_draw(nearest, share, by) for by in (-error, error))
            if first != last:
                columns = range(len(drawn))
                pairs = ((row, column) for row in range(n) for column in columns)
                certified = certified_distances(work, pairs)[0].reshape(n, -1)
                certified[drawn, columns] = 0.0
                least = certified.min(axis=1)
                first = _draw(np.where(least > TIE, least, 0.0), share, 0.0)
            drawn.append(first)
        return np.array(drawn)


def _draw(nearest: np.ndarray, share: float, error: float) -> int:
    """The series at a share of the sum of squared distances, moved by an error."""
    weights = np.cumsum(nearest**2)
    place = np.searchsorted(weights, share * weights[-1] + error, side="right")
    return min(int(place), len(nearest) - 1)


def _farthest(work: SBDAssign, assigned: Assignment) -> int | None:
    """The series that is farthest from its centre, of those that tie the first; None: none is."""
    away = np.where(work.series.norms > 0, assigned.distances, 0.0)
    most, error = float(away.max()), 2 * work.rounding
    rows = np.flatnonzero(away >= most - TIE - error)
    if most > TIE + error and away[rows[0]] >= most - TIE + error:
        return int(rows[0])
    rows = rows[work.series.norms[rows] > 0]
    away, _ = certified_distances(work, zip(rows, assigned.labels[rows], strict=True))
    if not away.max(initial=0.0) > TIE:
        return None
    return int(rows[np.argmax(away >= away.max() - TIE)])


def _with_moved(centers: Shapes, empty: np.ndarray, shapes: Shapes, row: int) -> Shapes:
    """Put a series in the place of the first centre that nobody is near to."""
    moved = _as_centers(shapes.values[row : row + 1], shapes.n_timepoints >= SHORT)
    values = centers.values.copy()
    values[np.argmax(empty)] = moved.values[0]
    return Shapes.of(values)


def _inertia_error(shapes: Shapes, iterate: _Iterate) -> float:
    """How far an inertia is at most from the certified one."""
    # see "sums of shapes" in docs/developer/numerics.rst
    doubts = SBDAssign(shapes, iterate.centers).doubts
    return 4 * len(shapes) * float(doubts.max())


def _random_labels(n: int, k: int, random_state: np.random.RandomState) -> np.ndarray:
    """Labels at random, each of them at least once."""
    labels = random_state.randint(k, size=n).astype(np.int32)
    labels[random_state.permutation(n)[:k]] = np.arange(k, dtype=np.int32)
    return labels


def _as_centers(values: np.ndarray, centered: bool) -> Shapes:
    """Scale series to the norm of centres: that of z-normalised series, or 1 for short ones."""
    norms = np.sqrt(np.einsum("ict,ict->i", values, values))[:, None, None]
    norm = np.sqrt(values[0].size) if centered else 1.0
    return Shapes.of(values * np.where(norms > 0, norm / np.where(norms > 0, norms, 1.0), 0.0))


def _fingerprint(labels: np.ndarray) -> int:
    """A number that other labels do not share, but for one case in 2^64."""
    return hash((labels.astype(np.uint8) if labels.max() < 256 else labels).tobytes())
