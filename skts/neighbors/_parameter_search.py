"""The leave-one-out error of nearest-neighbour classification for many parameters of a distance."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._metrics import COST, METRIC, METRICS, Distance, distance_of
from .._parameters import N_JOBS, checks_arguments
from .._scalars import plain, takes_plain
from .._summary import summarized
from .._validation import check_series, check_target
from ..engines import (
    DTWNeighbors,
    DTWPairs,
    DTWWindowSearch,
    Reduction,
    Series,
    Warping,
    get_engine,
    parameters_of,
    run,
)
from ._parameter_grids import default_grid

__all__ = ["ParameterSearch", "elastic_parameter_search", "nearest_under"]

#: Neighbours that a search finds of each series, so that those of later parameters are among them.
_DEPTH = 8
#: Searches whose neighbours are kept.
_SEARCHES = 16


@summarized
class ParameterSearch(NamedTuple):
    """Leave-one-out errors for several parameters of a distance.

    Attributes
    ----------
    best_params : dict
        Those with the least error, of several the smallest, as arguments of an estimator:
        ``DTWNearestNeighbor(**search.best_params)``.
    best_error : float
        Its error.
    params : list of dict
        All that were tried, in the same form.
    errors : ndarray of shape (n_params,), float64
        Share of the series whose nearest other series has another label.
    """

    best_params: dict[str, Any]
    best_error: float
    params: list[dict[str, Any]]
    errors: np.ndarray


@takes_plain
@checks_arguments(
    {
        "metric": METRIC,
        "param_grid": [dict, None],
        "cost": COST,
        "engine": [str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }
)
def elastic_parameter_search(
    X: ArrayLike | list[ArrayLike],
    y: ArrayLike,
    *,
    metric: str = "dtw",
    param_grid: Mapping[str, ArrayLike] | None = None,
    cost: str | Callable[[float, float], float] = "squared",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> ParameterSearch:
    """Compute the leave-one-out error of 1-NN classification for many parameters of a distance.

    The errors are exactly those of `DTWNearestNeighbor` with these parameters, of whose
    ``kneighbors()`` each series finds the nearest other one. Where distances cannot become less
    from one value of a parameter to the next, most neighbours follow from those that were found
    before, and few distances are computed.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        At least two series; or a list of arrays of any lengths. NaN at the end is padding.
    y : array-like of shape (n_samples,)
        Class labels.
    metric : str, default "dtw"
        Name of a distance, as in `DTWNearestNeighbor`.
    param_grid : dict of str to list, or None, default None
        Values to try: of ``window``, and of parameters of the distance (its ``metric_params``);
        every combination is tried. None tries those of the literature, see Notes.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points, summed over channels; for distances without prices of their
        own. As in `DTWNearestNeighbor` it may be a function, or a `skts.metrics.PointCost`.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows progress bars, 2 also the plans: engine, parts, memory.

    Returns
    -------
    ParameterSearch
        Named tuple of `best_params`, `best_error`, `params` and `errors`.

    Raises
    ------
    ValueError
        If there are fewer than two series, the numbers of series and labels differ, or a name or
        value of a parameter is unknown to the distance.
    TypeError
        If a value is no number.

    See Also
    --------
    dtw_window_search : The same for windows of DTW alone, with the error of each.
    skts.DTWNearestNeighbor : The classifier for which parameters are chosen.

    Notes
    -----
    Of series at equal distances the one that comes first in `X` is the nearest. Of parameters with
    equal errors those with the smallest window are the best, then those with the smallest values,
    in the order in which the distance has its parameters; None counts as larger than all numbers.
    A fraction and a number of points are compared as points of the longest series; of those that
    are equal there, the fraction comes first.
    The best are fitted to `X`: estimate the error of the classifier on other series.

    Without `param_grid`, these are tried:

    - "dtw", "ddtw": windows of 0, 1, ... 99 % of the length, "wdtw": ``g`` of 0, 0.01, ... 0.99,
      "msm": a hundred penalties from 0.01 to 100, "lcss": ten thresholds from a fifth of the
      deviation of all points to all of it, with ten windows from 0 to a quarter of the length,
      "erp": the same numbers as gaps, with the same windows, as in [1]_;
    - "twe": ``nu`` of 1e-5, 1e-4, 5e-4, 0.001, ... 0.5, 1, with ten values of ``lmbda`` from 0 to
      0.1, as in [2]_;
    - "adtw": penalties (i / 100)^5 for i = 0, 1, ... 99, times the mean cost of the diagonal of
      4,000 pairs of series that are drawn, as in [3]_, but for the last, which is infinite there;
    - "edr": the thresholds and windows of "lcss"; "dog_keeper": the windows of "dtw"; "shape_dtw":
      reaches of 0, 2, 5, 10, 15, 20 and 30. For these three no grid is usual.

    References
    ----------
    .. [1] Lines, Bagnall. "Time series classification with ensembles of elastic distance
       measures". Data Mining and Knowledge Discovery 29, 2015.
    .. [2] Lucas, Shifaz, Pelletier, O'Neill, Zaidi, Goethals, Petitjean, Webb. "Proximity Forest:
       an effective and scalable distance-based classifier for time series". Data Mining and
       Knowledge Discovery 33, 2019.
    .. [3] Herrmann, Webb. "Amercing: an intuitive and effective constraint for dynamic time
       warping". Pattern Recognition 137, 2023.

    Examples
    --------
    >>> from skts.neighbors import elastic_parameter_search
    >>> X = [[0, 4, 0, 0, 0, 0], [0, 0, 4, 0, 0, 0], [0, 5, 0, 4, 0, 0], [0, 0, 5, 0, 4, 0]]
    >>> y = ["one", "one", "two", "two"]
    >>> search = elastic_parameter_search(X, y, metric="msm", param_grid={"penalty": [0.1, 1, 9]})
    >>> search.errors
    array([0., 0., 1.])
    >>> search.best_params
    {'metric': 'msm', 'metric_params': {'penalty': 0.1}, 'window': None}
    """
    get_engine(engine)
    labels = check_target(X, y, "elastic_parameter_search")
    series = check_series(X)
    if len(series) < 2:
        raise ValueError(f"Found array with {len(series)} sample(s) while 2 or more are required.")
    entry = METRICS[metric]
    if param_grid is None:
        param_grid = default_grid(metric, series, squared=cost == "squared")
    points = _points(metric, param_grid)
    distances = [
        distance_of(metric, point["metric_params"], cost=cost, window=point["window"])
        for point in points
    ]

    def _run(work: Reduction) -> Any:
        return run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)

    nearest = nearest_under(series, distances, _run)
    errors = np.mean(labels[nearest] != labels, axis=1)
    priced = {"cost": cost} if len(entry.prices) > 1 else {}
    params = [{"metric": metric, **point, **priced} for point in points]
    least = errors.min()
    longest = series.n_timepoints
    best = min(
        np.flatnonzero(errors == least).tolist(), key=lambda place: _size(points[place], longest)
    )
    return ParameterSearch(params[best], float(least), params, errors)


def _points(metric: str, grid: Mapping[str, ArrayLike]) -> list[dict[str, Any]]:
    """Every combination of the values of a grid, as `window` and `metric_params`."""
    values = []
    for name, given in grid.items():
        listed = list(given) if np.iterable(given) and not isinstance(given, str) else []
        if not listed:
            raise ValueError(
                f"param_grid: the values of {name!r} are {given!r}, which is no list of numbers."
            )
        values.append([plain(value) for value in listed])
    points = []
    for chosen in itertools.product(*values):
        point: dict[str, Any] = dict(zip(grid, chosen, strict=True))
        window = point.pop("window", None)
        defaults = {name: default for name, (default, _) in METRICS[metric].parameters.items()}
        # in the order in which the distance has them; unknown names stay, to be refused
        point = {name: point.get(name, default) for name, default in defaults.items()} | point
        points.append({"metric_params": point or None, "window": window})
    return points


def _size(point: dict[str, Any], longest: int) -> list[float]:
    """Sort key of parameters with equal errors: the smallest is the best."""
    window = point["window"]
    if window is None:
        width = np.inf
    else:
        # points, of the longest series where it is a fraction: so that both kinds compare
        width = float(Warping(window=window).radius(longest, longest))
        window = float(min(window, 2**62))
    numbers = [width, window, *(point["metric_params"] or {}).values()]
    return [np.inf if number is None else number for number in numbers]


def nearest_under(
    series: Series, distances: list[Distance], run_here: Callable[[Reduction], Any]
) -> np.ndarray:
    """Find the nearest other series of each under a distance with several parameters.

    Parameters
    ----------
    series : Series
        At least two series.
    distances : list of Distance
        One distance with its parameters, and windows.
    run_here : callable
        Does a piece of work.

    Returns
    -------
    ndarray of shape (n_distances, n_samples), int64
        The nearest; of equally near ones the lowest.
    """
    sides = [distance.sides(series, series) for distance in distances]
    described, warpings = [side[0] for side in sides], [side[2] for side in sides]
    keys = [_key(each, warping) for each, warping in zip(described, warpings, strict=True)]
    found: dict[Any, np.ndarray] = {}
    if type(warpings[0]) is Warping and warpings[0].metric == "dtw" and described[0].equal_length:
        n = described[0].n_timepoints
        radii = [min(int(warping.radius(n, n)), n - 1) for warping in warpings]
        own = np.arange(len(series))
        distinct = np.unique(radii)[::-1].copy()
        work = DTWWindowSearch(described[0], described[0], own, distinct, warpings[0].squared)
        table = run_here(work)
        by_radius = dict(zip(distinct.tolist(), table.T, strict=True))
        return np.array([by_radius[radius] for radius in radii])
    searches = _Searches(run_here)
    for place in sorted(range(len(keys)), key=lambda place: keys[place]):
        if keys[place] not in found:
            found[keys[place]] = searches.nearest(described[place], warpings[place], keys[place])
    return np.array([found[key] for key in keys])


class _Key(NamedTuple):
    """Parameters of a distance: those that must agree, and those with which distances grow."""

    alike: tuple[float, ...]
    growing: tuple[float, ...]

    def below(self, other: _Key) -> bool:
        """Whether no distance is larger than with the other parameters."""
        return self.alike == other.alike and all(
            mine <= its for mine, its in zip(self.growing, other.growing, strict=True)
        )


def _key(series: Series, warping: Warping) -> _Key:
    """Sort the parameters of a distance; of windows that allow the same there is one."""
    width = warping.window
    if width is None:
        width = np.inf
    elif series.equal_length:
        width = int(warping.radius(series.n_timepoints, series.n_timepoints))
        width = np.inf if width >= series.n_timepoints - 1 else width
    # points and fractions are one thing only where all series have one length
    alike: list[float] = [0.0 if series.equal_length else isinstance(warping.window, int)]
    growing = [-float(width)]
    if warping.described:
        # a path that is worse between descriptors may be cheaper between points
        alike, growing = [*alike, float(width)], []
    for name, (_, limits) in parameters_of(type(warping)).items():
        value = getattr(warping, name)
        if value is None or limits.growth == 0:
            alike.append(-np.inf if value is None else value)
            value = 0.0
        growing.append(limits.growth * value)
    return _Key(tuple(alike), tuple(growing))


class _Found(NamedTuple):
    """Nearest series of some rows, by a search with some parameters."""

    key: _Key
    rows: np.ndarray
    distances: np.ndarray
    indices: np.ndarray


class _Searches:
    """Searches of the nearest other series, each of which spares the next ones most of their work.

    A search finds the `_DEPTH` nearest of a row. With other parameters, under which no distance is
    less, all others are still at least as far as the last of these. So if one of them is nearer
    than that, the nearest is among them. The order of distance and index decides, so that ties are
    resolved as ever. Computed distances grow like those of the definition: rounding is monotone.
    """

    def __init__(self, run_here: Callable[[Reduction], Any]) -> None:
        self.run = run_here
        self.found: list[_Found] = []

    def nearest(self, series: Series, warping: Warping, key: _Key) -> np.ndarray:
        """Nearest other series of each, with parameters that come in ascending order."""
        answer, left = np.empty(len(series), np.int64), np.ones(len(series), bool)
        depth = min(_DEPTH, len(series) - 1)
        # which rows an earlier search may tell
        open_ = np.zeros((len(self.found), len(series)), bool)
        for place, earlier in enumerate(self.found):
            open_[place, earlier.rows] = earlier.key.below(key)
        below = np.array([[a.key.below(b.key) for b in self.found] for a in self.found])
        while (open_ & left).any():
            # the last search of each row, whose distances are the largest as a rule
            rows = np.flatnonzero((open_ & left).any(axis=0))
            last = len(self.found) - 1 - open_[::-1, rows].argmax(axis=0)
            bounds, others = np.empty((rows.size, depth)), np.empty((rows.size, depth), np.int64)
            for place in np.unique(last).tolist():
                here, earlier = last == place, self.found[place]
                at = np.searchsorted(earlier.rows, rows[here])
                bounds[here], others[here] = earlier.distances[at], earlier.indices[at]
            sure = self._settle(series, warping, rows, (bounds, others), answer)
            left[rows[sure]] = False
            # searches with still smaller distances cannot tell what this one does not
            open_[:, rows[~sure]] &= ~below[:, last[~sure]]
        if left.any():
            self._search(series, warping, key, np.flatnonzero(left), answer)
        return answer

    def _settle(
        self,
        series: Series,
        warping: Warping,
        rows: np.ndarray,
        known: tuple[np.ndarray, np.ndarray],
        answer: np.ndarray,
    ) -> np.ndarray:
        """Find the nearest of rows among those of earlier searches; return of which that is sure.

        `known` are their distances and indices, of shape (n_rows, depth).
        """
        bounds, others = known
        best, index = np.full(rows.size, np.inf), np.full(rows.size, len(series))
        depth = bounds.shape[1]
        start, stop = 0, 1
        while start < depth:
            bound, other = bounds[:, start:stop], others[:, start:stop]
            own, of = best[:, np.newaxis], index[:, np.newaxis]
            at, column = np.nonzero((own > bound) | ((own == bound) & (of >= other)))
            if not at.size:
                break
            pairs = np.column_stack([rows[at], other[at, column]])
            distance = self.run(DTWPairs(series, series, pairs, warping))
            for number in range(bound.shape[1]):
                some, found = at[column == number], distance[column == number]
                place = other[some, number]
                nearer = (found < best[some]) | ((found == best[some]) & (place < index[some]))
                best[some[nearer]], index[some[nearer]] = found[nearer], place[nearer]
            # all of a row at once would be more pairs; one at a time are more runs
            start, stop = stop, 2 * stop
        sure = np.ones(rows.size, bool)
        if depth < len(series) - 1:
            bound, last = bounds[:, -1], others[:, -1]
            sure = (best < bound) | ((best == bound) & (index <= last))
        answer[rows[sure]] = index[sure]
        return sure

    def _search(
        self, series: Series, warping: Warping, key: _Key, rows: np.ndarray, answer: np.ndarray
    ) -> None:
        """Find the nearest of rows among all series, and keep what was found."""
        queries = series if rows.size == len(series) else series.take(rows)
        depth = min(_DEPTH, len(series) - 1)
        found = self.run(DTWNeighbors(queries, series, depth, rows, "auto", warping))
        answer[rows] = found.indices[:, 0]
        self.found.append(_Found(key, rows, found.distances, found.indices))
        del self.found[:-_SEARCHES]
