"""A function as `cost`: all that has the parameter takes one, or says in a sentence why not.

Works are found by walking the package, as in `tests.test_contract`. They run on the oracle, whose
loops need no kernels of a function's own.
"""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import (
    DTWCondenser,
    DTWKMedoids,
    DTWNearestNeighbor,
    DTWNeighbors,
    SubsequenceMonitor,
    SubsequenceSearch,
    config_context,
)
from skts.cluster import choose_n_clusters
from skts.engines.families.search.subsequence import normalize_windows
from skts.metrics import PointCost, dtw_matches, pairwise_distances, silhouette_samples
from skts.neighbors import dtw_window_search, elastic_parameter_search
from skts.plotting import AlignmentDisplay
from tests.discovery import displays, estimators, functions
from tests.examples_of_estimators import arguments, examples, methods
from tests.examples_of_functions import FUNCTIONS, needed
from tests.test_contract import same_bits

#: All that refuses a function, and why.
REFUSED = {
    "adtw": "its prices of steps are in units of a named cost",
    "lb_keogh": "a bound, and of a function none is known",
    "shape_dtw": "its path is that of descriptors, which a function of two points cannot price",
    "wdtw": "its weights are those of differences",
}


def apart(x, y):
    return abs(x - y)


def has_cost(one):
    return "cost" in inspect.signature(one).parameters


ESTIMATORS = {one.__name__: one for one in estimators() if has_cost(one)}
CALLABLES = {one.__name__: one for one in functions() if has_cost(one)}


def answers(name, cost):
    """All answers of an estimator, or that of a function, for its example."""
    if name in CALLABLES:
        function = CALLABLES[name]
        answer = function(*FUNCTIONS[function][0], **needed(function), cost=cost)
        if name == "elastic_parameter_search":
            # which names the cost
            return [answer.best_params["window"], answer.best_error, answer.errors]
        return answer
    example = examples("auto", small=True)[ESTIMATORS[name]]
    fitted, found = example.make().set_params(cost=cost).fit(*example.first), []
    for method in methods(ESTIMATORS[name]):
        model = copy.deepcopy(fitted)
        found.append(getattr(model, method)(**arguments(model, method, example)))
    return found


@pytest.mark.parametrize("name", sorted({**ESTIMATORS, **CALLABLES}))
def test_a_function_is_taken_or_refused(name):
    with config_context(engine="oracle"):
        if name in REFUSED:
            with pytest.raises(ValueError, match=rf"'cost' parameter of {name} must be a str"):
                answers(name, apart)
            return
        own = PointCost(apart, "fabs(x - y)") if name in CALLABLES else apart
        assert same_bits(answers(name, own), answers(name, "absolute"))


def test_all_that_refuses_has_the_parameter():
    assert set(REFUSED) <= {*ESTIMATORS, *CALLABLES}


def leaning(x, y):
    """Dear where the first point is below; a series is at distance 1 a point from itself."""
    return 1.0 + max(x - y, 3.0 * (y - x))


@pytest.fixture
def drawn(rng):
    return rng.integers(-8, 9, (9, 6)) / 4.0


def matrix(X, Y=None, **options):
    return pairwise_distances(X, X if Y is None else Y, cost=leaning, engine="oracle", **options)


@pytest.mark.parametrize("method", ["pam", "alternate"])
def test_medoids_are_second(drawn, method):
    """The inertia is that of the series to their medoids; no swap, or move, lowers it."""
    X, more = drawn, drawn[:4] + 0.25
    model = DTWKMedoids(3, cost=leaning, method=method, random_state=0, engine="oracle").fit(X)
    D = matrix(X)
    assert (D != D.T).any() and (np.diagonal(D) > 0).all()
    to_medoids = D[:, model.medoid_indices_]
    assert_array_equal(model.transform(X), to_medoids)
    assert_array_equal(model.labels_, to_medoids.argmin(axis=1))
    assert_array_equal(model.predict(X), model.labels_)
    assert model.inertia_ == to_medoids.min(axis=1).sum() == -model.score(X)
    assert_array_equal(model.transform(more), matrix(more, X[model.medoid_indices_]))
    for place, own in enumerate(model.medoid_indices_):
        for other in range(len(X)) if method == "pam" else ():
            swapped = np.where(np.arange(3) == place, other, model.medoid_indices_)
            assert D[:, swapped].min(axis=1).sum() >= model.inertia_
        members = model.labels_ == place
        assert D[np.ix_(members, members)].sum(axis=0).min() >= D[members, own].sum()


def test_clusters_without_series_end(drawn):
    """Of medoids that are nowhere nearest, none is farther from itself than from another."""
    X = np.repeat(drawn[:2], 4, axis=0)
    with pytest.warns(UserWarning, match="Only 2 medoids"):
        model = DTWKMedoids(4, cost=leaning, init=[0, 1, 4, 5], engine="oracle").fit(X)
    assert_array_equal(model.labels_, [0] * 4 + [1] * 4)


def test_silhouettes_are_of_the_first(drawn):
    labels = np.arange(9) % 2
    D = matrix(drawn)
    found = silhouette_samples(drawn, labels, cost=leaning, engine="oracle")
    for i in range(9):
        others = np.arange(9) != i
        own = D[i, others & (labels == labels[i])].mean()
        other = D[i, labels != labels[i]].mean()
        assert np.isclose(found[i], (other - own) / max(own, other))
    model = DTWKMedoids(2, cost=leaning, random_state=0, engine="oracle")
    chosen = choose_n_clusters(model, drawn, [2, 3])
    again = silhouette_samples(drawn, chosen.estimator.labels_, cost=leaning, engine="oracle")
    assert chosen.silhouette.max() == again.mean()
    with pytest.raises(ValueError, match="does not go with metric='sbd', which matches no points"):
        silhouette_samples(drawn, labels, metric="sbd", cost=leaning)


def test_parameters_are_searched(drawn):
    y = np.arange(9) % 3
    errors = []
    for window in range(5):
        D = matrix(drawn, window=window)
        np.fill_diagonal(D, np.inf)
        errors.append(np.mean(y[D.argmin(axis=1)] != y))
    options = {"cost": leaning, "engine": "oracle"}
    assert_array_equal(dtw_window_search(drawn, y, windows=range(5), **options).errors, errors)
    found = elastic_parameter_search(drawn, y, param_grid={"window": range(5)}, **options)
    assert_array_equal(found.errors, errors)
    assert found.best_error == min(errors) and found.best_params["cost"] is leaning
    again = DTWNearestNeighbor(**found.best_params, engine="oracle").fit(drawn, y).kneighbors()[1]
    assert np.mean(y[again[:, 0]] != y) == found.best_error


def test_condensing(drawn):
    """The accuracies are those of the windows that it says, each query first."""
    y = np.arange(9) % 2
    model = DTWCondenser(n_prototypes=5, cost=leaning, engine="oracle").fit(drawn, y)
    order = np.argsort(-model.ranks_, kind="stable")
    for removed, (window, accuracy) in enumerate(
        zip(model.windows_, model.accuracies_, strict=True)
    ):
        D = matrix(drawn, window=float(window))
        np.fill_diagonal(D, np.inf)
        D[:, order[:removed]] = np.inf
        assert np.mean(y[D.argmin(axis=1)] == y) == accuracy


def test_parts_of_long_series(drawn):
    line = drawn.ravel()
    found = dtw_matches(drawn[0, :4], line, 2, cost=leaning, engine="oracle")
    for distance, (start, stop) in zip(*found, strict=True):
        assert matrix([drawn[0, :4]], [line[start:stop]])[0, 0] == distance


def normalized(points):
    """Channels less their mean, over their deviation; constant ones are zeros."""
    points = np.atleast_2d(points)
    deviations = points.std(axis=1, keepdims=True)
    apart = points - points.mean(axis=1, keepdims=True)
    return np.divide(apart, deviations, out=np.zeros_like(apart), where=deviations > 1e-12)


@pytest.mark.parametrize("options", [{"window": 1}, {"metric": "euclidean"}], ids=str)
@pytest.mark.parametrize("normalize", [True, False])
def test_windows(drawn, normalize, options):
    """Every window of both series by itself, the query first; gaps match nothing."""
    gap = drawn[2:4].ravel().copy()
    gap[7] = np.nan
    lines, query, form = (
        [drawn[:2].ravel(), gap],
        drawn[4, :5],
        normalized if normalize else np.array,
    )
    wanted = {}
    for series, line in enumerate(lines):
        for start in range(len(line) - 4):
            window = line[start : start + 5]
            if np.isfinite(window).all():
                pair = [form(query)], [form(window)]
                wanted[series, start] = matrix(*pair, **options)[0, 0]
    search = SubsequenceSearch(
        cost=leaning, normalize=normalize, exclusion=2, engine="oracle", **options
    ).fit(lines)
    distances, positions = search.kneighbors([query], 3)
    left, taken = sorted(wanted, key=wanted.get), []
    while left and len(taken) < 3:
        taken.append(left.pop(0))
        (series, start) = taken[-1]
        left = [one for one in left if one[0] != series or abs(one[1] - start) > 2]
    assert list(map(tuple, positions[0].tolist())) == taken
    assert_allclose(distances[0], [wanted[one] for one in taken], rtol=1e-12)
    radius = float(distances[0, 1]) + 1e-9
    found = search.radius_neighbors([query], radius)[1][0]
    within = {one for one, distance in wanted.items() if distance <= radius}
    assert set(map(tuple, found.tolist())) == within
    monitor = SubsequenceMonitor(
        radius, cost=leaning, normalize=normalize, exclusion=0, engine="oracle", **options
    ).fit([query])
    starts = [monitor.update(part)[1][0] for part in np.array_split(lines[0], 3)]
    assert np.concatenate(starts).tolist() == sorted(s for series, s in within if series == 0)


def test_windows_of_several_channels_have_the_bits_of_queries(rng):
    windows = rng.normal(size=(4, 3, 7)) * 1e3
    windows[1, 2] = 5.0
    for window, found in zip(windows, normalize_windows(windows, True), strict=True):
        assert_array_equal(found, normalize_windows(window, True))
        assert_array_equal(found[0], normalize_windows(window[0], True))
    assert_array_equal(normalize_windows(windows, False), windows)


def test_rotations(drawn):
    """The least over the shifts of what is found; the query first."""
    queries, found = drawn[:3], drawn[3:]
    turned = np.stack([matrix(queries, np.roll(found, s, axis=1)) for s in range(6)])
    D = turned.min(axis=0)
    model = DTWNeighbors(cost=leaning, rotation_invariant=True, engine="oracle").fit(found)
    distances, indices, shifts = model.kneighbors(queries, 2, return_shift=True)
    order = np.argsort(D, axis=1, kind="stable")[:, :2]
    assert_array_equal(indices, order)
    assert_array_equal(distances, np.take_along_axis(D, order, axis=1))
    rows = np.arange(3)[:, np.newaxis]
    assert_array_equal(shifts, turned.argmin(axis=0)[rows, indices])
    near = model.radius_neighbors(queries, float(np.median(D)), return_distance=False)
    assert [sorted(one) for one in near] == [np.flatnonzero(d <= np.median(D)).tolist() for d in D]
    own = np.stack([matrix(found, np.roll(found, s, axis=1)) for s in range(6)]).min(axis=0)
    np.fill_diagonal(own, np.inf)
    assert_array_equal(model.kneighbors(n_neighbors=1)[1][:, 0], own.argmin(axis=1))


def test_pictures(drawn):
    pytest.importorskip("matplotlib").use("Agg")
    with config_context(engine="oracle"):
        display = AlignmentDisplay.from_series(drawn[0], drawn[1], cost=leaning, window=2)
        shown = np.asarray(display.image_.get_array())
        path = display.path
        assert shown[tuple(path.T)].sum() == display.distance
        assert display.colorbar_.ax.get_ylabel() == "cost"
        model = DTWNearestNeighbor(cost=leaning).fit(drawn, np.arange(9))
        nearest = AlignmentDisplay.from_estimator(model, drawn[3])
        assert nearest.distance == matrix(drawn[3:4], drawn).min()
    assert [one.__name__ for one in displays() if has_cost(one)] == ["AlignmentDisplay"]
