"""A function as `cost`: all that has the parameter takes one, or says in a sentence why not.

Works are found by walking the package, as in `tests.test_contract`. They run on the oracle, whose
loops need no kernels of a function's own.
"""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import DTWCondenser, DTWKMedoids, DTWNearestNeighbor, config_context
from skts.cluster import choose_n_clusters
from skts.metrics import PointCost, dtw_matches, pairwise_distances, silhouette_samples
from skts.neighbors import dtw_window_search, elastic_parameter_search
from skts.plotting import AlignmentDisplay
from tests.discovery import displays, estimators, functions
from tests.examples_of_estimators import arguments, examples, methods
from tests.examples_of_functions import FUNCTIONS, needed
from tests.test_contract import same_bits

#: All that refuses a function, and why.
REFUSED = {
    "SubsequenceMonitor": "windows are ruled out by bounds, and of a function none is known",
    "SubsequenceSearch": "windows are ruled out by bounds, and of a function none is known",
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
