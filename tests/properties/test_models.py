"""Properties of fitted estimators whatever the data."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone

import skts
from skts import (
    DiscordDetector,
    DTWCondenser,
    DTWKMeans,
    DTWKMedoids,
    DTWNearestNeighbor,
    DTWNearestNeighborRegressor,
    DTWNeighbors,
    KShapeClusterer,
    MotifFinder,
    ShapeletForestClassifier,
    ShapeletTransformer,
    ShapeletTreeClassifier,
    ShapeletTreeRegressor,
    SubsequenceMonitor,
    SubsequenceSearch,
)
from tests.properties.strategies import few, labelled, powers

TREE = {"min_length": 3, "max_length": 4}


def same_tree(one, other, factor=1.0):
    for name, value in one.tree_._asdict().items():
        value = value * factor if name == "weighted_n_node_samples" else value
        assert_array_equal(value, getattr(other.tree_, name), err_msg=name)
    for left, right in zip(one.shapelets_, other.shapelets_, strict=True):
        assert left[1:] == right[1:]


@few
@given(labelled(), st.integers(-40, 40), st.sampled_from([(1, 1), (1, 3), (5, 2), (0.3, 0.1)]))
def test_weights_times_a_power_of_two_grow_the_same_tree(fast_engine, data, power, weights):
    X, y = data
    trees = []
    for factor in (1.0, 2.0**power):
        each = {label: factor * weights[label % 2] for label in np.unique(y).tolist()}
        model = ShapeletTreeClassifier(**TREE, class_weight=each, engine=fast_engine)
        trees.append(model.fit(X, y))
    same_tree(*trees, factor=2.0**power)


@few
@given(labelled(), powers)
def test_trees_have_no_scale(fast_engine, data, power):
    X, y = data
    one, other = (
        ShapeletTreeClassifier(**TREE, engine=fast_engine).fit(np.ldexp(X, p), y)
        for p in (0, power)
    )
    same_tree(one, other)
    assert_array_equal(one.transform(X), other.transform(np.ldexp(X, power)))


@few
@given(labelled(), st.sampled_from([None, 0, 2, 0.3]), st.integers(1, 3), powers)
def test_neighbours_have_no_scale_and_no_company(fast_engine, data, window, k, power):
    X, y = data
    model = DTWNearestNeighbor(k, window=window, engine=fast_engine).fit(X, y)
    distances, indices = model.kneighbors(X)
    other = clone(model).fit(np.ldexp(X, power), y)
    scaled = other.kneighbors(np.ldexp(X, power))
    assert_array_equal(scaled[1], indices)
    assert_array_equal(scaled[0], np.ldexp(distances, power))
    for row, x in enumerate(X):
        alone = model.kneighbors([x])
        assert_array_equal(alone[0], distances[[row]])
        assert_array_equal(alone[1], indices[[row]])
    assert_array_equal(indices[:, 0], [np.flatnonzero((X == x).all(axis=1))[0] for x in X])


@few
@given(labelled(5), st.integers(1, 3), powers, st.integers(0, 9))
def test_clusters_have_no_scale(fast_engine, data, k, power, seed):
    X, _ = data
    found = [
        KShapeClusterer(k, n_init=2, random_state=seed, engine=fast_engine).fit(np.ldexp(X, p))
        for p in (0, power)
    ]
    for name in ("labels_", "shifts_", "cluster_centers_", "inertia_"):
        assert_array_equal(*(getattr(model, name) for model in found), err_msg=name)


@few
@given(labelled(), powers)
def test_condensed_sets_have_no_scale(fast_engine, data, power):
    X, y = data
    found = [
        DTWCondenser(n_prototypes=2, window=0.1, engine=fast_engine).fit(np.ldexp(X, p), y)
        for p in (0, power)
    ]
    for name in ("sample_indices_", "ranks_", "windows_", "accuracies_"):
        assert_array_equal(*(getattr(model, name) for model in found), err_msg=name)


def estimators(engine):
    """One of each, with what it is fitted on beside X."""
    return {
        "DTWCondenser": DTWCondenser(n_prototypes=2, window=2, engine=engine),
        "DTWKMedoids": DTWKMedoids(2, random_state=0, engine=engine),
        "DTWKMeans": DTWKMeans(2, n_init=1, max_iter=3, random_state=0, engine=engine),
        "DTWNearestNeighbor": DTWNearestNeighbor(engine=engine),
        "DTWNearestNeighborRegressor": DTWNearestNeighborRegressor(2, engine=engine),
        "DTWNeighbors": DTWNeighbors(2, engine=engine),
        "DiscordDetector": DiscordDetector(4, engine=engine),
        "KShapeClusterer": KShapeClusterer(2, random_state=0, engine=engine),
        "MotifFinder": MotifFinder(4, engine=engine),
        "ShapeletForestClassifier": ShapeletForestClassifier(
            3, min_length=3, max_length=4, random_state=0, engine=engine
        ),
        "ShapeletTransformer": ShapeletTransformer(
            5, max_candidates=20, lengths=[3], random_state=0, engine=engine
        ),
        "ShapeletTreeClassifier": ShapeletTreeClassifier(**TREE, engine=engine),
        "ShapeletTreeRegressor": ShapeletTreeRegressor(**TREE, engine=engine),
        "SubsequenceMonitor": SubsequenceMonitor(2.0, engine=engine),
        "SubsequenceSearch": SubsequenceSearch(engine=engine),
    }


names = st.sampled_from(sorted(estimators("numba")))


def answers(model, X):
    """The answers of every method that takes series."""
    found = {}
    for method in (
        "predict",
        "predict_proba",
        "transform",
        "apply",
        "locate",
        "decision_path",
        "kneighbors",
        "kneighbors_graph",
        "radius_neighbors",
        "score",
    ):
        if not hasattr(model, method):
            continue
        if method == "radius_neighbors":
            short = isinstance(model, SubsequenceSearch)
            got = model.radius_neighbors(X[:, :5] if short else X, 2.0)
        elif isinstance(model, SubsequenceSearch):
            got = model.kneighbors(X[:, :5], 2)
        elif method == "score":
            got = model.score(X, np.arange(len(X)) % 2)
        else:
            got = getattr(model, method)(X)
        got = got.toarray() if hasattr(got, "toarray") else got
        parts = got if isinstance(got, tuple) else (got,)
        found[method] = [
            np.concatenate(part) if method == "radius_neighbors" else np.asarray(part)
            for part in parts
        ]
    for name in ("sample_indices_", "ranks_", "windows_", "accuracies_"):
        if hasattr(model, name):
            found[name] = [getattr(model, name)]
    return found


def check_same(found, wanted):
    assert found.keys() == wanted.keys()
    for method, parts in wanted.items():
        for one, other in zip(found[method], parts, strict=True):
            assert_array_equal(one, other, err_msg=method)


def test_there_is_one_of_each_estimator():
    known = {name for name in skts.__all__ if isinstance(getattr(skts, name), type)}
    assert known == set(estimators("numba"))


@few
@given(
    labelled(), st.sampled_from(sorted(estimators("numba"))), st.sampled_from(["pandas", "default"])
)
def test_the_form_of_output_changes_no_method(fast_engine, data, name, form):
    X, y = data
    model = estimators(fast_engine)[name].fit(X, y)
    wanted = answers(model, X)
    if hasattr(model, "set_output"):
        model.set_output(transform=form)
    check_same(answers(model, X), wanted)
    check_same(answers(model.fit(X, y), X), wanted)


class Stop(BaseException):
    """As rude as Ctrl-C."""


@few
@given(labelled(), labelled(), names, st.integers(0, 12))
def test_a_fit_that_stops_leaves_everything_as_it_was(fast_engine, data, other, name, stop):
    X, y = data
    Z, z = other
    model = estimators(fast_engine)[name].fit(X, y)
    wanted, state = answers(model, X), set(vars(model))
    calls = 0

    def count(done, total):
        nonlocal calls
        calls += 1
        if calls > stop:
            raise Stop

    with skts.config_context(progress=count):
        try:
            model.fit(Z, z + 5)
        except Stop:
            stopped = True
        else:
            stopped = False
    if stopped:
        assert set(vars(model)) == state
        check_same(answers(model, X), wanted)
    else:
        check_same(answers(model, Z), answers(estimators(fast_engine)[name].fit(Z, z + 5), Z))
