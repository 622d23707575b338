"""Options of DTWNearestNeighbor: metric, cost, window, alignment, precomputed distances."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_val_score

from skts import DTWNearestNeighbor
from skts.datasets import make_cylinder_bell_funnel
from skts.metrics import dog_keeper, dtw, dtw_path, lb_keogh, pairwise_dtw
from tests.contract import check_with_scikit_learn

OPTIONS = [
    {"window": 0},
    {"window": 2},
    {"window": 0.25},
    {"cost": "absolute", "window": 3},
    {"metric": "dog_keeper"},
    {"metric": "dog_keeper", "cost": "absolute", "window": 0.1},
    {"alignment": "subsequence"},
    {"alignment": "supersequence", "cost": "absolute"},
    {"metric": "dog_keeper", "alignment": "subsequence"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_neighbors(engine, rng, options):
    X = [rng.normal(size=n) for n in (9, 12, 7, 12, 10, 11)]
    Q = [rng.normal(size=n) for n in (8, 12, 5)]
    model = DTWNearestNeighbor(2, engine=engine, **options).fit(X, [0, 1, 0, 1, 0, 1])
    matrix = reference.pairwise_dtw(Q, X, **options)
    expected = reference.nearest(matrix, 2)
    distances, indices = model.kneighbors(Q)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])
    columns = np.column_stack([matrix[:, ::2].min(axis=1), matrix[:, 1::2].min(axis=1)])
    assert_array_equal(model.transform(Q), columns)
    loo = reference.nearest(reference.pairwise_dtw(X, X, **options), 2, np.arange(6))
    assert_array_equal(model.kneighbors()[1], loo[1])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_functions(engine, rng, options):
    x, y = rng.normal(size=(2, 9)), rng.normal(size=(2, 13))
    expected = reference.dtw(x, y, **options)
    metric = options.get("metric", "dtw")
    one = dict(options)
    one.pop("metric", None)
    assert {"dtw": dtw, "dog_keeper": dog_keeper}[metric](x, y, engine=engine, **one) == expected
    assert_array_equal(pairwise_dtw([x], [y], engine=engine, **options), [[expected]])
    path, distance = dtw_path(x, y, **options)
    assert distance == expected
    assert_array_equal(path, reference.dtw_path(x, y, **options)[0])


@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("window", [None, 0, 1, 5, 0.2])
def test_lb_keogh_is_a_lower_bound(rng, metric, cost, window):
    options = {"metric": metric, "cost": cost, "window": window}
    for n, m, channels in ((10, 10, 1), (8, 13, 1), (14, 9, 2), (1, 6, 1), (30, 30, 3)):
        x, y = (
            np.cumsum(rng.normal(size=(channels, n)), 1),
            np.cumsum(rng.normal(size=(channels, m)), 1),
        )
        bound = lb_keogh(x, y, **options)
        assert bound <= reference.dtw(x, y, **options) * (1 + 1e-12)
        radius = reference.band_radius(window, n, m)
        costs = []
        for i in range(n):
            near = [j for j in range(m) if radius is None or abs(i - j) <= radius]
            outside = np.maximum(x[:, i] - y[:, near].max(1), y[:, near].min(1) - x[:, i])
            outside = np.maximum(outside, 0)
            costs.append(np.sum(outside**2 if cost == "squared" else outside))
        expected = sum(costs) if metric == "dtw" else max(costs)
        expected = np.sqrt(expected) if cost == "squared" else expected
        np.testing.assert_allclose(bound, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"window": -1}, "'window' parameter"),
        ({"window": 1.5}, "'window' parameter"),
        ({"cost": "cubic"}, "'cost' parameter"),
        ({"alignment": "local"}, "'alignment' parameter"),
        ({"window": 3, "alignment": "subsequence"}, "window=3 does not go with alignment='subs"),
    ],
)
def test_bad_options(parameters, message):
    model = DTWNearestNeighbor(**parameters)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(np.eye(3), [0, 1, 0])
    assert vars(model) == before


def test_precomputed_distances_give_the_same_answers(rng):
    X, y = make_cylinder_bell_funnel(24, 30, random_state=0)
    Q, _ = make_cylinder_bell_funnel(9, 30, random_state=1)
    direct = DTWNearestNeighbor(3, window=0.1, engine="numba").fit(X, y)
    matrix = pairwise_dtw(X, window=0.1)
    queries = pairwise_dtw(Q, X, window=0.1)
    model = DTWNearestNeighbor(3, metric="precomputed").fit(matrix, y)
    for a, b in zip(model.kneighbors(queries), direct.kneighbors(Q), strict=True):
        assert_array_equal(a, b)
    for a, b in zip(model.kneighbors(), direct.kneighbors(), strict=True):
        assert_array_equal(a, b)
    assert_array_equal(model.predict_proba(queries), direct.predict_proba(Q))
    assert_array_equal(model.transform(queries), direct.transform(Q))
    scores = cross_val_score(direct, X, y, cv=3)
    assert_array_equal(cross_val_score(model, matrix, y, cv=3), scores)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((3, 4)), r"shape \(3, 4\); with metric='precomputed' it must be a square matrix"),
        (
            np.diag([0, np.nan, 0]),
            "NaN in row 1, column 1: precomputed distances must",
        ),
        (-np.eye(3), "precomputed distances: -1 in row 0, column 0"),
    ],
)
def test_bad_distances(matrix, message):
    with pytest.raises(ValueError, match=message):
        DTWNearestNeighbor(metric="precomputed").fit(matrix, [0, 1, 0])


def test_grid_search_over_windows():
    X, y = make_cylinder_bell_funnel(30, 30, random_state=0)
    grid = {"window": [0, 0.05, 3, None], "metric": ["dtw", "dog_keeper"]}
    search = GridSearchCV(DTWNearestNeighbor(engine="numba"), grid, cv=3).fit(X, y)
    for parameters, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        model = DTWNearestNeighbor(engine="numba", **parameters)
        assert score == np.mean(cross_val_score(model, X, y, cv=3))


@pytest.mark.parametrize(
    "options", [{"metric": "dog_keeper"}, {"window": 1}, {"metric": "precomputed"}], ids=str
)
def test_scikit_learns_checks(fast_engine, options):
    check_with_scikit_learn(DTWNearestNeighbor(engine=fast_engine, **options))
