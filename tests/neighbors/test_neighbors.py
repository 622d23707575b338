"""Neighbours without labels, by radius, and regression: against scikit-learn's on matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from reference_rotation import rotation_distance
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.neighbors import KNeighborsRegressor, NearestNeighbors
from sklearn.pipeline import make_pipeline

from skts import DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors
from skts.datasets import make_cylinder_bell_funnel
from skts.metrics import pairwise_dtw
from tests.contract import check_described, check_with_scikit_learn

KINDS = (DTWNeighbors, DTWNearestNeighbor, DTWNearestNeighborRegressor)

with np.load(Path(__file__).parents[1] / "data" / "peers" / "dtw.npz") as stored:
    STORED = dict(stored)


def fit(model, X):
    """Fit with labels where these are needed."""
    return model.fit(X) if isinstance(model, DTWNeighbors) else model.fit(X, np.arange(len(X)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"window": 2},
        {"metric": "dog_keeper", "cost": "absolute"},
        {"alignment": "subsequence"},
    ],
    ids=str,
)
def test_radius_neighbors(engine, rng, kind, options):
    X = [np.round(rng.normal(size=n), 1) for n in (9, 12, 7, 12, 10, 11)]
    Q = [X[4], *(np.round(rng.normal(size=n), 1) for n in (8, 12, 5))]
    model = fit(kind(1, engine=engine, **options), X)
    matrix = reference.pairwise_dtw(Q, X, **options)
    radius = float(np.median(matrix))
    distances, indices = model.radius_neighbors(Q, radius)
    ordered, order = model.radius_neighbors(Q, radius, sort_results=True)
    bare = model.radius_neighbors(Q, radius, return_distance=False)
    assert distances.dtype == indices.dtype == object
    for row, one in enumerate(matrix):
        near = np.flatnonzero(one <= radius)
        assert_array_equal(indices[row], near)
        assert_array_equal(bare[row], near)
        assert_array_equal(distances[row], one[near])
        assert_array_equal(order[row], near[np.argsort(one[near], kind="stable")])
        assert_array_equal(ordered[row], np.sort(one[near]))
        assert indices[row].dtype == np.int64
    within = np.where(matrix <= radius, matrix, 0)
    graph = model.radius_neighbors_graph(Q, radius, mode="distance")
    assert_array_equal(graph.toarray(), within)
    assert graph.nnz == np.count_nonzero(matrix <= radius)
    ones = model.radius_neighbors_graph(Q, radius).toarray()
    assert_array_equal(ones, (matrix <= radius).astype(float))
    sorted_graph = model.radius_neighbors_graph(Q, radius, "distance", sort_results=True)
    assert_array_equal(sorted_graph.data, np.concatenate(ordered))
    # each without itself
    own = reference.pairwise_dtw(X, X, **options)
    np.fill_diagonal(own, np.inf)
    for row, found in enumerate(model.radius_neighbors(radius=radius)[1]):
        assert_array_equal(found, np.flatnonzero(own[row] <= radius))


@pytest.mark.parametrize("window", [None, 0])
def test_radius_of_turned_series(fast_engine, rng, window):
    X = rng.normal(size=(6, 7))
    Q = np.vstack([np.roll(X[2], 3), rng.normal(size=(2, 7))])
    model = DTWNeighbors(rotation_invariant=True, window=window, radius=2.0, engine=fast_engine)
    matrix = np.array([[rotation_distance(q, x, window=window) for x in X] for q in Q])
    found, ones = model.fit(X).radius_neighbors(Q), model.radius_neighbors_graph(Q)
    for row in range(3):
        assert_array_equal(found[1][row], np.flatnonzero(matrix[row] <= 2))
        assert_array_equal(found[0][row], matrix[row][matrix[row] <= 2])
    assert_array_equal(ones.toarray(), matrix <= 2)


def test_precomputed_distances_are_searched_as_scikit_learn_does(rng):
    """The same sets of neighbours, in the same order where that is defined."""
    X, Q = rng.normal(size=(12, 9)), rng.normal(size=(5, 9))
    matrix, queries = pairwise_dtw(X), pairwise_dtw(Q, X)
    theirs = NearestNeighbors(n_neighbors=3, radius=2.5, metric="precomputed").fit(matrix)
    direct = DTWNeighbors(3, radius=2.5).fit(X)
    for model, arguments in (
        (DTWNeighbors(3, radius=2.5, metric="precomputed").fit(matrix), (queries,)),
        (direct, (Q,)),
    ):
        for mine, others in ((arguments, (queries,)), ((), ())):
            found, wanted = model.kneighbors(*mine), theirs.kneighbors(*others)
            assert_array_equal(found[1], wanted[1])
            found = model.radius_neighbors(*mine, sort_results=True)
            wanted = theirs.radius_neighbors(*others, sort_results=True)
            for a, b in zip(found[1], wanted[1], strict=True):
                assert_array_equal(a, b)
            for mode in ("connectivity", "distance"):
                a = model.radius_neighbors_graph(*mine, mode=mode)
                b = theirs.radius_neighbors_graph(*others, mode=mode)
                assert_array_equal(a.toarray(), b.toarray())
                assert_array_equal(
                    model.kneighbors_graph(*mine, mode=mode).toarray(),
                    theirs.kneighbors_graph(*others, mode=mode).toarray(),
                )


@pytest.mark.parametrize("peer", ["aeon", "tslearn", "dtaidistance"])
@pytest.mark.parametrize("measure", ["dtw", "dtw_window4"])
def test_neighbors_within_distances_of_peers(fast_engine, peer, measure):
    """scikit-learn's neighbours in the stored matrix of an independent package."""
    name = "beats"
    matrix = STORED[f"{measure}.{name}.{peer}"]
    X, Y = STORED[f"{name}_X"], STORED[f"{name}_Y"]
    # between two distances, which peers do not give to the last bit
    values = np.unique(np.round(matrix.ravel(), 6))
    radius = float(values[values.size // 2 - 1 : values.size // 2 + 1].mean())
    theirs = NearestNeighbors(radius=radius, metric="precomputed")
    theirs.fit(np.zeros((len(Y), len(Y))))
    window = 4 if "window4" in measure else None
    model = DTWNeighbors(radius=radius, window=window, engine=fast_engine).fit(Y)
    for mine, wanted in zip(
        np.column_stack(model.radius_neighbors(X, sort_results=True)),
        np.column_stack(theirs.radius_neighbors(matrix, sort_results=True)),
        strict=True,
    ):
        assert_array_equal(mine[1], wanted[1])
        assert_allclose(mine[0], wanted[0], rtol=1e-9)


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: np.exp(-d)])
@pytest.mark.parametrize("outputs", [None, 1, 3])
def test_regression_is_scikit_learns(fast_engine, rng, weights, outputs):
    X, Q = np.round(rng.normal(size=(14, 9)), 1), np.round(rng.normal(size=(5, 9)), 1)
    Q[0] = X[3]
    y = rng.normal(size=14 if outputs is None else (14, outputs))
    model = DTWNearestNeighborRegressor(3, weights=weights, engine=fast_engine).fit(X, y)
    theirs = KNeighborsRegressor(3, weights=weights, metric="precomputed")
    theirs.fit(pairwise_dtw(X), y)
    matrix = reference.pairwise_dtw(Q, X)
    assert_allclose(model.predict(Q), theirs.predict(matrix), rtol=1e-12)
    assert model.predict(Q).shape == theirs.predict(matrix).shape
    alone = [model.predict(Q[[row]])[0] for row in range(5)]
    assert_array_equal(model.predict(Q), alone)
    near = model.kneighbors()[1]
    if weights == "uniform":
        assert_allclose(model.predict(None), y[near].mean(axis=1), rtol=1e-12)
    score = theirs.score(matrix, np.sin(y[:5]))
    assert_allclose(model.score(Q, np.sin(y[:5])), score, rtol=1e-9)


def test_targets_are_kept_as_they_were(rng):
    y = np.arange(6)
    model = DTWNearestNeighborRegressor().fit(rng.normal(size=(6, 5)), y)
    y[:] = 7
    assert_array_equal(model._y, np.arange(6.0))


@pytest.mark.parametrize("kind", [DTWNearestNeighbor, DTWNearestNeighborRegressor])
def test_weights_without_a_sum(kind):
    model = kind(2, weights=lambda d: np.exp(-(d**2)))
    model.fit([[0.0, 0], [1, 1], [2, 2]], [1, 2, 3])
    model.predict([[0.0, 0]])
    with pytest.raises(ValueError, match="neighbours of query 1 add up to 0"):
        model.predict([[0.0, 0], [100, 100]])


@pytest.mark.parametrize("weights", ["distance", lambda d: np.minimum(1 / d, 1e308)])
def test_weights_whose_sum_is_beyond_all_numbers(weights):
    X = np.array([[1.0, 1e-308], [1, 1.25e-308], [1, 5]])
    options = {"weights": weights, "cost": "absolute", "window": 0}
    query = np.array([[1.0, 0]])
    model = DTWNearestNeighbor(3, **options).fit(X, [0, 1, 1])
    assert_allclose(model.predict_proba(query), [[5 / 9, 4 / 9]])
    regressor = DTWNearestNeighborRegressor(3, **options).fit(X, [1.0, 2.0, 3.0])
    assert_allclose(regressor.predict(query), [13 / 9])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed"),
        ([1.0, 2.0], r"inconsistent numbers of samples: \[3, 2\]: series in X and targets in y"),
        ([1.0, np.nan, 2.0], "Input y contains NaN"),
        (np.zeros((3, 1, 1)), r"y has shape|dim 3"),
        (["a", "b", "c"], "could not convert|dtype='numeric'"),
    ],
)
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=message):
        DTWNearestNeighborRegressor().fit(np.eye(3), y)


def test_life_among_scikit_learns_tools():
    X, y = make_cylinder_bell_funnel(30, 30, random_state=0)
    search = GridSearchCV(
        DTWNearestNeighborRegressor(engine="numba"),
        {"n_neighbors": [1, 3]},
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(X, y.astype(float))
    assert search.best_score_ > 0
    model = make_pipeline(DTWNearestNeighborRegressor(3, window=0.1, engine="numba"))
    found = cross_val_predict(model, X, np.column_stack([y, -y]), cv=3)
    assert_allclose(found[:, 0], -found[:, 1])
    neighbors = DTWNeighbors(radius=3.0, window=0.1, engine="numba").fit(X)
    graph = neighbors.radius_neighbors_graph(mode="distance", sort_results=True)
    matrix = pairwise_dtw(X, window=0.1)
    clusters = DBSCAN(eps=3.0, min_samples=3, metric="precomputed")
    assert_array_equal(clusters.fit_predict(graph), clusters.fit_predict(matrix))
    assert clone(neighbors).radius == 3.0


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_radii(kind):
    model = fit(kind(1, engine="numba"), np.eye(3))
    Q = np.eye(3)
    for radius, error, message in (
        (-1, ValueError, "Expected radius >= 0. Got -1"),
        (np.nan, ValueError, "Expected radius >= 0. Got nan"),
        (True, TypeError, "radius=True is not a number"),
        ("a", TypeError, "radius='a' is not a number"),
    ):
        for method in (model.radius_neighbors, model.radius_neighbors_graph):
            with pytest.raises(error, match=message):
                method(Q, radius)
    with pytest.raises(ValueError, match="return_distance must be True if sort_results"):
        model.radius_neighbors(Q, 1.0, return_distance=False, sort_results=True)
    with pytest.raises(ValueError, match="Unsupported mode"):
        model.radius_neighbors_graph(Q, 1.0, mode="both")
    if kind is not DTWNeighbors:
        with pytest.raises(ValueError, match=f"{kind.__name__} has no radius of its own"):
            model.radius_neighbors(Q)


@pytest.mark.parametrize("kind", [DTWNeighbors, DTWNearestNeighborRegressor])
@pytest.mark.parametrize("options", [{}, {"metric": "precomputed"}], ids=str)
def test_scikit_learns_checks(fast_engine, monkeypatch, kind, options):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_with_scikit_learn(kind(engine=fast_engine, **options), 30)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_and_fitted_attributes_are_described(kind):
    check_described(fit(kind(), np.eye(4)))
