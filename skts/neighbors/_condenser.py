"""Numerosity reduction: the few training series that 1-NN classification under DTW needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from .._metrics import COST, METRIC, METRIC_PARAMS, METRICS, WINDOW, Distance, distance_of
from .._parameters import N_JOBS, checks_parameters, warn_user
from .._validation import check_series, chosen
from ..base import SeriesMixin
from ..engines import DTWNeighbors, Neighbors, Series, Warping, get_engine
from ._parameter_search import nearest_under

__all__ = ["DTWCondenser"]

Given = TypeVar("Given", bound=ArrayLike | list[ArrayLike])
Labels = TypeVar("Labels", bound=ArrayLike)

#: Neighbours of each series that are kept at least; more where memory allows, up to the most. With
#: still more each search is dearer, and TwoPatterns, down to a tenth, takes no search less.
_FEWEST, _MOST = 8, 24
#: How many times longer a list becomes, at most, when it is filled again: one that was used up
#: soon is likely to be used up again, as where many series are equally far.
_GROWTH = 2
#: Part of the memory budget that the neighbours may take, of all windows together.
_SHARE = 1 / 4
#: Windows of which the neighbours are kept.
_WINDOWS = 6
#: Bytes of a neighbour in a list, and while a search hands it over.
_ENTRY_BYTES, _SEARCH_BYTES = 16, 64


class DTWCondenser(SeriesMixin, BaseEstimator):
    """Condense a training set to the series that nearest-neighbour classification under DTW needs.

    The method is AWARD [1]_. A series is ranked by its use as a nearest neighbour. For each
    training series whose nearest neighbour it is, among the other series that are kept, it gets 1
    if their classes agree, and ``-2 / (n_classes - 1)`` if not. The series with the lowest sum is
    removed, again and again. The fewer series are left, the wider the best warping window tends to
    be: after each removal the windows that are 1 % narrower and 1 % wider are tested too.

    Parameters
    ----------
    n_prototypes : int or float, default 0.1
        Series to keep: a number, or a fraction of the training set, rounded up.
    min_accuracy : float or None, default None
        Removing stops before the leave-one-out accuracy falls below this, even if more than
        `n_prototypes` series are left. To keep as few series as reach an accuracy, combine it with
        ``n_prototypes=1``.
    window : int, float or None, default None
        Sakoe-Chiba band (not the length of a subsequence) to start with, in time points or as a
        fraction of the longer series. None takes the window with the least leave-one-out error
        among 0, 1, ... 100 %, of several the smallest; with ``adapt_window=False`` it sets no
        limit.
    adapt_window : bool, default True
        Whether the window is adapted as the set shrinks.
    voters : {"all", "kept"}, default "all"
        Whose nearest neighbour counts in the sums: of all training series, also of those that were
        removed, or of the series that are kept alone.
    metric : str, default "dtw"
        The distance: any name that `DTWNearestNeighbor` takes, but "precomputed". "euclidean" is
        without warping, and takes no window.
    metric_params : dict or None, default None
        Parameters of the distance, such as ``{"penalty": 0.5}`` for ``metric="msm"``; None takes
        their defaults.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels; for distances without prices of their
        own. As in `DTWNearestNeighbor` it may be a function, or a `skts.metrics.PointCost`.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" searches in float32 and certifies the answer in float64, "float32" leaves out the
        certificate, "float64" computes everything in float64.
    engine : str, default "auto"
        "auto", "numba", "cupy", or another registered engine.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar in long work, 2 also the plan: engine, parts, memory.

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_kept,), int64
        Rows of the training set that are kept, ascending.
    ranks_ : ndarray of shape (n_samples,), int64
        1 for series that are kept, 2 for the last one that was removed, 3 for the one before it,
        and so on: ``ranks_ <= 1 + k`` selects the series that were left before the last k removals.
    windows_ : ndarray of shape (n_removed + 1,), float64
        The window, as a fraction of the length, before the first removal and after each; infinite
        where there is no limit. ``windows_[-1]`` belongs to the kept series. Where `window` is a
        number of points, the fraction is one of the longest series, and all pairs have as many
        points (rounded up); otherwise it is one of the longer series of each pair.
    accuracies_ : ndarray of shape (n_removed + 1,), float64
        Leave-one-out accuracy with these windows: the share of all training series whose nearest
        neighbour, among the other series that were kept then, is of their class.
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
        If the named engine cannot run here.

    See Also
    --------
    DTWNearestNeighbor : The classifier for which the set is condensed.
    skts.neighbors.dtw_window_search : The errors of which the first window has the least.

    Notes
    -----
    Of series with equal sums, the one that is farther from the series whose neighbour it is goes
    first (the smaller sum of inverse squared distances), then the one with the higher index. By
    default all training series count in these sums, also those that were removed: they stand for
    the series that the kept ones will have to classify. The paper can be read either way;
    ``voters="kept"`` is the other one. A window is tested by the leave-one-out accuracy of
    all training series against those that are kept. It changes only if that raises the accuracy; if
    both neighbours raise it alike, the narrower one is taken. A series that is left alone has no
    neighbour, and counts as misclassified.

    `fit_resample` is the convention of imbalanced-learn: in its pipelines the set is condensed when
    a pipeline is fitted, and left alone when it predicts.

    References
    ----------
    .. [1] Xi, Keogh, Shelton, Wei, Ratanamahatana. "Fast time series classification using
       numerosity reduction". International Conference on Machine Learning, 2006, section 3.
    .. [2] Sart, Mueen, Najjar, Keogh, Niennattrakul. "Accelerating dynamic time warping
       subsequence search with GPUs and FPGAs". IEEE International Conference on Data Mining, 2010,
       section VII.C.

    Examples
    --------
    >>> from skts import DTWCondenser
    >>> from skts.datasets import make_cylinder_bell_funnel
    >>> X, y = make_cylinder_bell_funnel(30, 64, random_state=0)
    >>> condenser = DTWCondenser(n_prototypes=6)
    >>> X_kept, y_kept = condenser.fit_resample(X, y)
    >>> X_kept.shape
    (6, 64)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_prototypes": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "min_accuracy": [None, Interval(Real, 0, 1, closed="both")],
        "window": WINDOW,
        "adapt_window": ["boolean"],
        "voters": [StrOptions({"all", "kept"})],
        "metric": METRIC,
        "metric_params": METRIC_PARAMS,
        "cost": COST,
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        n_prototypes: float = 0.1,
        min_accuracy: float | None = None,
        window: float | None = None,
        adapt_window: bool = True,
        voters: Literal["all", "kept"] = "all",
        metric: str = "dtw",
        metric_params: dict[str, Any] | None = None,
        cost: Literal["squared", "absolute"] | Callable[[float, float], float] = "squared",
        precision: Literal["auto", "float32", "float64"] = "auto",
        engine: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_prototypes = n_prototypes
        self.min_accuracy = min_accuracy
        self.window = window
        self.adapt_window = adapt_window
        self.voters = voters
        self.metric = metric
        self.metric_params = metric_params
        self.cost = cost
        self.precision = precision
        self.engine = engine
        self.n_jobs = n_jobs
        self.verbose = verbose

    @checks_parameters
    def fit(self, X: ArrayLike | list[ArrayLike], y: ArrayLike) -> Self:
        """Choose the series to keep.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
            At least two series; or a list of arrays of any lengths. NaN at the end is padding.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : DTWCondenser
            The fitted estimator.

        Raises
        ------
        ValueError
            If there is one series only, or `n_prototypes` is larger than the number of series.

        Warns
        -----
        UserWarning
            If the accuracy of the complete set is below `min_accuracy` already; then nothing is
            removed.
        """
        get_engine(self.engine)
        y = self._validate_target(X, y)
        series = check_series(X, estimator=self).freeze()
        n_kept = self._n_kept(len(series))
        nearest = _Nearest(self, series)
        self._remember_form(X, series)
        self.engine_ = nearest.engine.name
        _, labels = np.unique(y, return_inverse=True)
        award = _Award(nearest, labels, self._first_window(series, labels))
        # as many as make this accuracy, whatever the product's rounding
        least = math.ceil((self.min_accuracy or 0) * len(series) - 1e-9)
        if award.counts[0] < least:
            warn_user(
                f"min_accuracy={self.min_accuracy} is not reached by all {len(series)} series "
                f"together, of which {award.counts[0]} are classified correctly: "
                "none is removed. Lower min_accuracy to have fewer."
            )
            n_kept = len(series)
        while nearest.n_kept > n_kept and award.remove_one(least):
            pass
        self.sample_indices_ = np.flatnonzero(nearest.kept)
        self.ranks_ = np.ones(len(series), np.int64)
        self.ranks_[award.removed] += np.arange(len(award.removed), 0, -1)
        self.windows_ = np.array(award.windows)
        self.accuracies_ = np.array(award.counts) / len(series)
        return self

    def fit_resample(self, X: Given, y: Labels) -> tuple[Given, Labels]:
        """Choose the series to keep, and return them.

        Parameters
        ----------
        X : array-like or list of array-like
            Series, as for `fit`.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        X_kept : array-like or list of array-like
            The series that are kept, in the form in which they were given: a list stays a list, a
            data frame a data frame; arrays on a GPU become NumPy's.
        y_kept : array-like of shape (n_kept,)
            Their labels.
        """
        self.fit(X, y)
        kept: Given = chosen(X, self.sample_indices_, "X")
        labels: Labels = chosen(y, self.sample_indices_, "y")
        return kept, labels

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: class labels are needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _n_kept(self, n_samples: int) -> int:
        """Series to keep, of so many."""
        if n_samples < 2:
            raise ValueError(
                f"Found array with {n_samples} sample(s) while a minimum of 2 is required by "
                "DTWCondenser."
            )
        if not isinstance(self.n_prototypes, Integral):
            return max(1, math.ceil(self.n_prototypes * n_samples - 1e-9))
        if self.n_prototypes > n_samples:
            raise ValueError(
                f"n_prototypes={self.n_prototypes} is more than the {n_samples} series of X."
            )
        return int(self.n_prototypes)

    def _first_window(self, series: Series, labels: np.ndarray) -> float:
        """The window to start with, as a fraction of the length; infinite for no limit."""
        window = Warping(window=self.window).window
        if METRICS[self.metric].straight:
            return math.inf
        if isinstance(window, int):
            return min(window, series.n_timepoints) / series.n_timepoints
        if self.window is not None:
            return float(self.window)
        if not self.adapt_window:
            return math.inf
        distances = [self._distance(percent / 100) for percent in range(101)]
        nearest = nearest_under(series, distances, lambda work: self._run(work, self.engine_))
        return int(np.argmin(np.count_nonzero(labels[nearest] != labels, axis=1))) / 100

    def _distance(self, window: float | None) -> Distance:
        """The distance with a window, in points or as a fraction."""
        return distance_of(self.metric, self.metric_params, cost=self.cost, window=window)


class _Nearest:
    """The nearest kept series of every series, for some windows.

    Of each series the nearest kept ones are listed; removing a series moves those that point at it
    one place on, and a list that is used up is filled again from what is kept by then.

    Of n series, each removal moves up to n lists on, since that many may be nearest to the series
    that goes: n^2 steps for each window cannot be spared. Distances are counted apart: n^2 of them
    fill all lists once. If lists were filled again as long as they were, n removals would take
    n / length times as many, n^3 in all, where all series are equally far from each other. So a
    list that is used up becomes longer, as far as memory allows: that is n^2 log n, and n^3 / room
    only where n is larger than the room of a list. Series of the same points share their distances,
    so that n counts the different ones.
    """

    def __init__(self, condenser: DTWCondenser, series: Series) -> None:
        self.series, self.condenser = series, condenser
        self.kept = np.ones(len(series), bool)
        self.removed: list[int] = []
        # also refuses what the distance does not take
        left, right, warping = condenser._distance(condenser.window).sides(series, series)
        whole = DTWNeighbors(left, right, 1, None, condenser.precision, warping)
        self.engine = get_engine(condenser.engine, whole)
        n_windows = _WINDOWS if condenser.adapt_window else 1
        entry_bytes = n_windows * _ENTRY_BYTES + _SEARCH_BYTES
        fitting = int(_SHARE * self.engine.budget()) // (entry_bytes * len(series))
        #: Neighbours of a series that have room, and those of a list when it is filled first.
        self.room = min(max(_FEWEST, fitting), len(series) - 1)
        self.depth = min(_MOST, self.room)
        first = _first_of_same(series)
        self._first = None if np.array_equal(first, np.arange(len(series))) else first
        self._lists: dict[float, _Lists] = {}
        self._options: dict[float, tuple[float, Series, Warping]] = {}

    @property
    def n_kept(self) -> int:
        """Series that are left."""
        return len(self.kept) - len(self.removed)

    def remove(self, index: int) -> None:
        """Remove a series."""
        self.kept[index] = False
        self.removed.append(index)

    def restore(self) -> None:
        """Take back the last removal; lists that have followed it are of no use any more."""
        self.kept[self.removed.pop()] = True
        self._lists.clear()

    def find(self, window: float) -> _Lists:
        """The nearest other kept series, and how far they are; index -1 where there is none."""
        if window not in self._options:
            series, _, warping = self._distance(window).sides(self.series, self.series)
            n = series.n_timepoints
            # fractions that are the same number of points share their lists
            key = int(warping.radius(n, n)) if series.equal_length else window
            self._options[window] = key, series, warping
        key, series, warping = self._options[window]
        lists = self._lists.pop(key, None)
        if lists is None:
            everything = np.arange(len(self.series))
            lists = _Lists(len(self.series))
            found = self._search(series, warping, everything, self.depth, self.condenser.verbose)
            lists.fill(everything, *found)
        elif lists.n_removed < len(self.removed):
            self._follow(lists, series, warping)
        lists.n_removed = len(self.removed)
        self._lists[key] = lists
        if len(self._lists) > _WINDOWS:
            del self._lists[next(iter(self._lists))]
        return lists

    def _follow(self, lists: _Lists, series: Series, warping: Warping) -> None:
        """Let entries that name removed series go on to the next neighbour."""
        rows = np.flatnonzero(self._gone(lists.nearest))
        while rows.size:
            lists.place[rows] += 1
            if np.any(lists.place[rows] == lists.length[rows]):
                # lists that are nearly used up are filled again, too
                full = np.flatnonzero(lists.place >= lists.length - lists.length // 4)
                longer = min(_GROWTH * int(lists.length[full].max()), self.room)
                lists.fill(full, *self._search(series, warping, full, longer))
            lists.follow(rows)
            rows = rows[self._gone(lists.nearest[rows])]

    def _gone(self, indices: np.ndarray) -> np.ndarray:
        """Which series are not kept; -1 is none."""
        return ~self.kept[indices] & (indices >= 0)

    def _search(
        self, series: Series, warping: Warping, rows: np.ndarray, depth: int, verbose: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """So many of the nearest kept series of some series, as far as there are so many."""
        kept = np.flatnonzero(self.kept)
        depth = min(depth, kept.size)
        if self._first is not None:
            return self._search_different(series, warping, rows, depth, verbose)
        # a series must not find itself; where it is not kept, its place is out of range
        own = np.full(len(self.kept), -1)
        own[kept] = np.arange(kept.size)
        found = self._nearest(series, warping, rows, kept, depth, own[rows], verbose)
        return found.distances, np.where(found.indices < 0, -1, kept[found.indices])

    def _search_different(
        self, series: Series, warping: Warping, rows: np.ndarray, depth: int, verbose: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `_search`, where of series of the same points one is searched for all of them."""
        assert self._first is not None
        queries, query = np.unique(self._first[rows], return_inverse=True)
        kept = np.flatnonzero(self.kept)
        # the first kept ones of the same points, so that ties go to the lowest index
        _, first, kind = np.unique(self._first[kept], return_index=True, return_inverse=True)
        order = np.argsort(first)
        kind = np.argsort(order)[kind]
        # one more, since each series is among its own
        depth += 1
        n_kinds = min(depth, first.size)
        found = self._nearest(series, warping, queries, kept[first[order]], n_kinds, None, verbose)
        distances = np.full((queries.size, depth), np.inf)
        indices = np.full((queries.size, depth), -1)
        of_kind = np.empty(first.size)
        for one, (far, which) in enumerate(zip(found.distances, found.indices, strict=True)):
            of_kind[:] = np.nan
            of_kind[which] = far
            members = np.flatnonzero(~np.isnan(of_kind[kind]))
            members = members[np.argsort(of_kind[kind[members]], kind="stable")[:depth]]
            distances[one, : members.size] = of_kind[kind[members]]
            indices[one, : members.size] = kept[members]
        return _without_own(rows, distances[query], indices[query])

    def _nearest(
        self,
        series: Series,
        warping: Warping,
        queries: np.ndarray,
        candidates: np.ndarray,
        n_neighbors: int,
        own: np.ndarray | None,
        verbose: int,
    ) -> Neighbors:
        """Search some of the series among some of them."""
        queried, among = (
            # all of them are prepared already
            series if which.size == len(series) else series.take(which)
            for which in (queries, candidates)
        )
        precision = self.condenser.precision
        reduction = DTWNeighbors(queried, among, n_neighbors, own, precision, warping)
        found: Neighbors = self.condenser._run(reduction, self.engine, verbose)
        return found

    def _distance(self, window: float) -> Distance:
        """The distance for a window, a fraction of the length."""
        if math.isinf(window):
            return self.condenser._distance(None)
        if isinstance(self.condenser.window, Integral):
            # points given are points for series of any length
            window = math.ceil(window * self.series.n_timepoints - 1e-9)
        return self.condenser._distance(window)


class _Lists:
    """The nearest kept series of each series, in order, and how far each list is used up.

    Attributes
    ----------
    distances, indices : ndarray of shape (n_samples, longest)
        The nearest of those that were kept when a list was filled; index -1 where there were fewer.
    length : ndarray of shape (n_samples,)
        How many were asked for then: a list may be shorter than the longest.
    place : ndarray of shape (n_samples,)
        Where in the lists the nearest are that are still kept.
    distance, nearest : ndarray of shape (n_samples,)
        What stands there.
    n_removed : int
        Series that had been removed when `place` was right.
    """

    def __init__(self, n_samples: int) -> None:
        self.distances = np.empty((n_samples, 0))
        self.indices = np.empty((n_samples, 0), np.int64)
        self.length, self.place = np.zeros((2, n_samples), np.int64)
        self.distance, self.nearest = np.empty(n_samples), np.empty(n_samples, np.int64)
        self.n_removed = 0

    def fill(self, rows: np.ndarray, distances: np.ndarray, indices: np.ndarray) -> None:
        """Replace the lists of some series, and go to their first places."""
        n_samples, length = len(self.place), indices.shape[1]
        if rows.size == n_samples:
            self.distances, self.indices = distances, indices
        else:
            more = length - self.indices.shape[1]
            if more > 0:
                self.distances = np.pad(self.distances, ((0, 0), (0, more)))
                self.indices = np.pad(self.indices, ((0, 0), (0, more)))
            self.distances[rows, :length], self.indices[rows, :length] = distances, indices
        self.length[rows], self.place[rows] = length, 0
        self.follow(rows)

    def follow(self, rows: np.ndarray) -> None:
        """Look up what is nearest to some series."""
        place = self.place[rows]
        self.distance[rows], self.nearest[rows] = (
            self.distances[rows, place],
            self.indices[rows, place],
        )


class _Award:
    """The state of AWARD: what was removed, in which windows, and how well the rest classifies."""

    def __init__(self, nearest: _Nearest, labels: np.ndarray, window: float) -> None:
        self.nearest, self.labels = nearest, labels
        adapt = nearest.condenser.adapt_window
        self.start, self.steps = window, 0
        self.adapt = adapt and not math.isinf(window)
        self.removed: list[int] = []
        self.windows = [window]
        self.counts = [self._correct(window)]

    def remove_one(self, least: float) -> bool:
        """Remove the series of lowest rank, unless fewer than `least` would then be correct."""
        index = self._lowest()
        self.nearest.remove(index)
        count, _, steps = max(
            (self._correct(self._window(steps)), preference, steps)
            for preference, steps in self._choices()
        )
        if count < least:
            self.nearest.restore()
            return False
        self.steps = steps
        self.removed.append(index)
        self.windows.append(self._window(steps))
        self.counts.append(count)
        return True

    def _choices(self) -> list[tuple[int, int]]:
        """Windows to test, in steps of 1 % from the first, with what decides between equals."""
        if not self.adapt:
            return [(0, 0)]
        # the current one, else the narrower
        return [(2, self.steps), (1, self.steps - 1), (0, self.steps + 1)]

    def _window(self, steps: int) -> float:
        """The window so many steps of 1 % from the first."""
        return self.start if steps == 0 else min(1.0, max(0.0, self.start + steps / 100))

    def _correct(self, window: float) -> int:
        """Series whose nearest other kept series is of their class."""
        indices = self.nearest.find(window).nearest
        return int(np.count_nonzero((self.labels[indices] == self.labels) & (indices >= 0)))

    def _lowest(self) -> int:
        """The series of lowest rank."""
        found = self.nearest.find(self.windows[-1])
        n, n_classes = len(self.labels), self.labels.max() + 1
        # -1 is no neighbour: of the last series that is kept, where only those vote
        voting = found.nearest >= 0
        if self.nearest.condenser.voters == "kept":
            voting &= self.nearest.kept
        voted = found.nearest[voting]
        agree = self.labels[voted] == self.labels[voting]
        # ranks times the number of classes less one are integers; in a single class all agree
        rank = np.bincount(voted, np.where(agree, max(1, n_classes - 1), -2), n)
        distances = _in_range(found.distance)[voting]
        # the nearest first: sums of equal distances are equal, whatever the order of the voters
        order = np.argsort(distances, kind="stable")
        with np.errstate(divide="ignore", over="ignore"):
            nearness = np.bincount(voted[order], 1.0 / distances[order] ** 2, n)
        lowest = np.flatnonzero(self.nearest.kept)
        for worth in (rank, nearness):
            lowest = lowest[worth[lowest] == worth[lowest].min()]
        return int(lowest[-1])


def _first_of_same(series: Series) -> np.ndarray:
    """Index of the first series of the same points, of each series."""
    firsts: dict[int, int] = {}
    found = np.arange(len(series))
    for i, length in enumerate(series.lengths.tolist()):
        points = series.values[i, :, :length].tobytes()
        first = firsts.setdefault(hash(points), i)
        # different points may have one hash
        if series.values[first, :, : series.lengths[first]].tobytes() == points:
            found[i] = first
    return found


def _without_own(
    rows: np.ndarray, distances: np.ndarray, indices: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lists of some series without these themselves, or without the last entry."""
    stays = indices != rows[:, np.newaxis]
    stays[stays.all(axis=1), -1] = False
    shape = len(rows), indices.shape[1] - 1
    return distances[stays].reshape(shape), indices[stays].reshape(shape)


def _in_range(distances: np.ndarray) -> np.ndarray:
    """Distances times a power of two, so that the squares of the smallest do not underflow.

    Sums of inverse squares are only compared, so that the factor makes no difference.
    """
    positive = distances[distances > 0]
    exponent = np.frexp(positive.min(initial=1.0, where=np.isfinite(positive)))[1]
    return np.ldexp(distances, -500 - exponent)
