"""DTWNearestNeighbor(rotation_invariant=True): answers of the oracle, options, errors."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.testing import assert_array_equal
from reference_rotation import rotation_distance
from sklearn.model_selection import cross_val_score

from skts import DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors
from skts.datasets import make_cylinder_bell_funnel
from tests.contract import check_with_scikit_learn


@pytest.fixture
def data(rng):
    X = np.round(rng.normal(size=(9, 8)), 1)
    X[5] = np.roll(X[2], 3)  # a tie
    return X, np.array(list("abcabcabc")), np.vstack([rng.normal(size=(2, 8)), np.roll(X[2], 5)])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"window": 0},
        {"cost": "absolute"},
        {"window": 0.0},
        {"window": 2},
        {"metric": "dog_keeper", "window": 0.2},
    ],
)
def test_answers(data, engine, options):
    X, y, Q = data
    model = DTWNearestNeighbor(3, rotation_invariant=True, engine=engine, **options).fit(X, y)
    matrix = np.array([[rotation_distance(q, x, **options) for x in X] for q in Q])
    expected = reference.nearest(matrix, 3)
    distances, indices = model.kneighbors(Q)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])
    assert distances[2, 0] == 0
    assert indices[2, 0] == 2
    assert_array_equal(
        model.transform(Q), np.column_stack([matrix[:, y == c].min(axis=1) for c in "abc"])
    )
    if engine == "oracle":
        return
    graph = model.kneighbors_graph(Q, mode="distance").toarray()
    assert_array_equal(np.sort(graph, axis=1)[:, -3:], np.sort(distances, axis=1))
    own = np.array([[rotation_distance(q, x, **options) for x in X] for q in X])
    expected = reference.nearest(own, 2, np.arange(9))
    assert_array_equal(model.kneighbors(n_neighbors=2)[1], expected[1])
    # one neighbour votes
    model.set_params(n_neighbors=1)
    assert_array_equal(model.predict(Q), y[matrix.argmin(axis=1)])
    assert_array_equal(
        model.predict_proba(Q).argmax(axis=1),
        np.unique(y, return_inverse=True)[1][matrix.argmin(axis=1)],
    )


def test_channels_turn_together(rng):
    X = rng.normal(size=(5, 2, 6))
    Q = np.roll(X, 4, axis=2)[::-1]
    model = DTWNearestNeighbor(rotation_invariant=True).fit(X, range(5))
    distances, indices = model.kneighbors(Q)
    assert_array_equal(indices[:, 0], [4, 3, 2, 1, 0])
    assert_array_equal(distances, 0)


@pytest.mark.parametrize("window", [None, 0])
def test_turned_classes(window):
    X, y = make_cylinder_bell_funnel(40, 60, random_state=0)
    rng = np.random.default_rng(0)
    turned = np.array(
        [np.roll(x, shift) for x, shift in zip(X, rng.integers(0, 60, 40), strict=True)]
    )
    fixed, free = (
        cross_val_score(
            DTWNearestNeighbor(window=window, rotation_invariant=way), turned, y, cv=4
        ).mean()
        for way in (False, True)
    )
    assert free > fixed


def test_scikit_learns_checks(fast_engine):
    check_with_scikit_learn(DTWNearestNeighbor(rotation_invariant=True, engine=fast_engine))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alignment": "subsequence"}, "does not go with alignment='subsequence'"),
        ({"rotation_invariant": "yes"}, "rotation_invariant"),
    ],
)
def test_options_that_do_not_go(data, options, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        DTWNearestNeighbor(**{"rotation_invariant": True} | options).fit(X, y)


@pytest.mark.parametrize("options", [{}, {"window": 0}, {"metric": "frechet", "window": 0.2}])
def test_several_lengths(engine, rng, options):
    X = [rng.normal(size=n) for n in (8, 5, 8, 11, 3, 6)]
    Q = [np.roll(X[3], 4), rng.normal(size=7), X[1][:4]]
    model = DTWNearestNeighbor(2, rotation_invariant=True, engine=engine, **options)
    model.fit(X, list("ababab"))
    named = options | ({"metric": "dog_keeper"} if "metric" in options else {})
    matrix = np.array([[rotation_distance(q, x, **named) for x in X] for q in Q])
    expected = reference.nearest(matrix, 2)
    distances, indices, shifts = model.kneighbors(Q, return_shift=True)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])
    assert distances[0, 0] == 0 and indices[0, 0] == 3 and shifts[0, 0] == 4
    for row, place in np.ndindex(indices.shape):
        turned = np.roll(X[indices[row, place]], shifts[row, place])
        assert reference.dtw(Q[row], turned, **named) == distances[row, place]
    near = model.radius_neighbors(Q, 2.0)[1]
    for row in range(3):
        assert_array_equal(near[row], np.flatnonzero(matrix[row] <= 2.0))


@pytest.mark.parametrize(
    "estimator", [DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors]
)
def test_without_warping_one_length_is_needed(data, estimator):
    X, y = data[0], np.arange(9)
    pages = " ".join(estimator.__doc__.split())
    assert 'series of any lengths, and "euclidean", with those of one length' in pages
    model = estimator(metric="euclidean", rotation_invariant=True)
    with pytest.raises(ValueError, match="needs series of one length: one has 8 time points"):
        model.fit([X[0], X[1][:7]], y[:2])
    model.fit(X, y)
    with pytest.raises(ValueError, match="needs series of one length: one has 5 time points"):
        model.kneighbors([X[0][:5]])


def test_precomputed_distances_know_of_no_turns(data):
    X, y, _ = data
    D = np.abs(X[:, :1] - X[:, :1].T)
    model = DTWNearestNeighbor(2, metric="precomputed", rotation_invariant=True).fit(D, y)
    assert_array_equal(model.kneighbors()[1], reference.nearest(D, 2, np.arange(9))[1])
