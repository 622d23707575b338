"""DTWNearestNeighbor: answers against the oracle, and life among scikit-learn's tools."""

from __future__ import annotations

import importlib.util
import pickle

import joblib
import numpy as np
import pytest
import reference
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skts import DTWNearestNeighbor, DTWNearestNeighborRegressor, config_context
from skts.base import check_series
from skts.datasets import load_gunpoint, make_cylinder_bell_funnel
from skts.engines import DTWNeighbors, find_engine
from skts.exceptions import EngineNotAvailableError, MemoryBudgetError
from tests.contract import check_described, check_with_scikit_learn


@pytest.fixture
def data(rng):
    X = np.round(rng.normal(size=(14, 9)), 1)
    X[5] = X[2]  # a tie
    y = np.array(list("abcabcabcabcab"))
    return X, y, np.vstack([np.round(rng.normal(size=(5, 9)), 1), X[2]])


def expected_neighbors(X, Q, k, excluded=None):
    return reference.nearest(reference.pairwise_dtw(Q, X), k, excluded)


@pytest.mark.parametrize("k", [1, 3, 14])
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_kneighbors(engine, data, k, precision):
    X, y, Q = data
    model = DTWNearestNeighbor(k, engine=engine, precision=precision).fit(X, y)
    distances, indices = model.kneighbors(Q)
    expected = expected_neighbors(X, Q, k)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])
    assert indices.dtype == np.int64
    assert_array_equal(model.kneighbors(Q, return_distance=False), indices)
    assert_array_equal(model.kneighbors(Q, n_neighbors=2)[1], expected_neighbors(X, Q, 2)[1])


def test_leave_one_out(engine, data):
    X, y, _ = data
    distances, indices = DTWNearestNeighbor(2, engine=engine).fit(X, y).kneighbors()
    expected = expected_neighbors(X, X, 2, np.arange(len(X)))
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])


def test_graph(engine, data):
    X, y, Q = data
    model = DTWNearestNeighbor(3, engine=engine).fit(X, y)
    distances, indices = model.kneighbors(Q)
    dense = np.zeros((len(Q), len(X)))
    np.put_along_axis(dense, indices, distances, axis=1)
    assert_array_equal(model.kneighbors_graph(Q, mode="distance").toarray(), dense)
    connected = model.kneighbors_graph(Q).toarray()
    assert_array_equal(np.sort(np.nonzero(connected)[1].reshape(len(Q), 3)), np.sort(indices))
    assert set(np.unique(connected)) == {0.0, 1.0}
    with pytest.raises(ValueError, match="Unsupported mode"):
        model.kneighbors_graph(Q, mode="both")


@pytest.mark.parametrize("weights", ["uniform", "distance", lambda d: np.exp(-d)])
def test_votes(engine, data, weights):
    X, y, Q = data
    model = DTWNearestNeighbor(4, engine=engine, weights=weights).fit(X, y)
    shares = []
    for row, neighbors in zip(*expected_neighbors(X, Q, 4), strict=True):
        votes = dict.fromkeys("abc", 0.0)
        for distance, j in zip(row, neighbors, strict=True):
            if weights == "uniform":
                votes[y[j]] += 1.0
            elif callable(weights):
                votes[y[j]] += np.exp(-distance)
            elif 0 in row:
                votes[y[j]] += distance == 0
            else:
                votes[y[j]] += 1 / distance
        shares.append(np.array([votes[c] for c in "abc"]) / sum(votes.values()))
    assert_allclose(model.predict_proba(Q), shares, rtol=1e-12)
    assert_array_equal(model.predict(Q), np.array(list("abc"))[np.argmax(shares, axis=1)])


def test_weights_of_another_shape_are_refused():
    model = DTWNearestNeighbor(2, weights=lambda distances: distances[:, 0])
    model.fit([[0.0, 0], [1, 1], [2, 2]], ["b", "a", "b"])
    message = r"shape \(1,\) for distances of shape \(1, 2\); return one weight for each distance"
    with pytest.raises(ValueError, match=message):
        model.predict([[0.0, 0]])


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        (lambda d: np.where(d > 0, np.nan, 1.0), "returned nan for query 1, at the distance 1.414"),
        (lambda d: np.where(d > 0, 1.0, -np.inf), "returned -inf for query 0, at the distance 0;"),
        (lambda d: d + 1j, "returned an array of complex128; return real numbers"),
        (lambda d: d.astype(str), "returned an array of <U32; return real numbers"),
    ],
)
def test_weights_that_are_no_numbers_are_refused(weigh, message):
    model = DTWNearestNeighbor(1, weights=weigh).fit([[0.0, 0], [5, 5]], ["b", "a"])
    for method in (model.predict, model.predict_proba):
        with pytest.raises(ValueError, match=message):
            method([[0.0, 0], [4, 4]])


def test_infinite_weights_of_a_function_count_as_those_at_distance_0():
    X, Q = [[0.0, 0], [1, 1], [0, 0], [5, 5]], [[0.0, 0], [4, 4]]

    def inverse(distances):
        with np.errstate(divide="ignore"):
            return 1 / distances

    for model, y in ((DTWNearestNeighbor, list("abca")), (DTWNearestNeighborRegressor, range(4))):
        found, wanted = (model(3, weights=kind).fit(X, y) for kind in (inverse, "distance"))
        assert_array_equal(found.predict(Q), wanted.predict(Q))
        if hasattr(found, "predict_proba"):
            assert_array_equal(found.predict_proba(Q), wanted.predict_proba(Q))
            assert_array_equal(found.predict_proba(Q[:1]), [[0.5, 0, 0.5]])


def test_equal_votes_go_to_the_first_class(engine):
    model = DTWNearestNeighbor(2, engine=engine).fit([[0.0, 0], [1, 1]], ["b", "a"])
    assert_array_equal(model.predict([[0.0, 0]]), ["a"])


def test_transform_and_names(engine, data):
    X, y, Q = data
    model = DTWNearestNeighbor(engine=engine).fit(X, y)
    matrix = reference.pairwise_dtw(Q, X)
    expected = np.column_stack([matrix[:, y == c].min(axis=1) for c in "abc"])
    assert_array_equal(model.transform(Q), expected)
    names = [f"dtwnearestneighbor{i}" for i in range(3)]
    assert_array_equal(model.get_feature_names_out(), names)
    frame = model.set_output(transform="pandas").transform(Q)
    assert list(frame.columns) == names
    assert_array_equal(frame.to_numpy(), expected)


def test_unequal_lengths_and_channels(engine, rng):
    X = [rng.normal(size=(2, n)) for n in (5, 9, 7, 8)]
    Q = [rng.normal(size=(2, n)) for n in (6, 3)]
    model = DTWNearestNeighbor(3, engine=engine).fit(X, [0, 1, 0, 1])
    assert_array_equal(model.kneighbors(Q)[1], expected_neighbors(X, Q, 3)[1])
    assert model.n_channels_ == 2
    assert not hasattr(model, "n_features_in_")


def test_scikit_learns_checks(fast_engine, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check_with_scikit_learn(DTWNearestNeighbor(engine=fast_engine))


def test_parameters_and_fitted_attributes_are_described():
    X, y = make_cylinder_bell_funnel(9, 16, random_state=0)
    check_described(DTWNearestNeighbor().fit(X, y))


def test_real_data(fast_engine):
    X, y = load_gunpoint(split="train", return_X_y=True)
    Q, z = load_gunpoint(split="test", return_X_y=True)
    model = DTWNearestNeighbor(engine=fast_engine).fit(X, y)
    assert np.sum(model.predict(Q) != z) == 14  # the archive's error, 0.0933 of 150
    assert model.score(Q, z) == 1 - 14 / 150
    assert model.engine_ == fast_engine


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_model_selection(fast_engine, backend):
    X, y = make_cylinder_bell_funnel(30, 40, random_state=0)
    steps = make_pipeline(FunctionTransformer(np.abs), DTWNearestNeighbor(engine=fast_engine))
    grid = {"dtwnearestneighbor__n_neighbors": [1, 3], "functiontransformer__func": [None, np.abs]}
    alone = GridSearchCV(steps, grid, cv=3).fit(X, y)
    scores = cross_val_score(steps, X, y, cv=3)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = GridSearchCV(steps, grid, cv=3).fit(X, y)
        assert_array_equal(cross_val_score(steps, X, y, cv=3), scores)
    assert together.best_params_ == alone.best_params_
    for key in ("mean_test_score", "rank_test_score"):
        assert_array_equal(together.cv_results_[key], alone.cv_results_[key])


def test_transform_of_training_series_leaks_and_the_documented_pattern_does_not():
    X, y = make_cylinder_bell_funnel(30, 40, random_state=0)
    model = DTWNearestNeighbor(engine="numba")
    leaky = model.fit_transform(X, y)
    assert_array_equal(leaky[np.arange(30), y], 0)
    columns = np.empty_like(leaky)
    for train, test in StratifiedKFold(3).split(X, y):
        columns[test] = clone(model).fit(X[train], y[train]).transform(X[test])
    assert np.all(columns > 0)  # nobody met itself


def test_clone_keeps_the_parameters():
    model = DTWNearestNeighbor(3, weights="distance", precision="float64", n_jobs=2, verbose=1)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("other", ["numba", "oracle"])
def test_pickles_move_between_engines(engine, other, data):
    X, y, Q = data
    model = DTWNearestNeighbor(2, engine=engine).fit(X, y)
    expected = model.kneighbors(Q)
    moved = pickle.loads(pickle.dumps(model)).set_params(engine=other)
    for a, b in zip(moved.kneighbors(Q), expected, strict=True):
        assert_array_equal(a, b)
    assert all(type(value).__module__.split(".")[0] != "cupy" for value in vars(model).values())


def test_predict_writes_nothing_to_the_estimator(engine, data):
    X, y, Q = data
    model = DTWNearestNeighbor(engine=engine).fit(X, y)
    before = dict(vars(model))
    model.predict(Q), model.transform(Q), model.kneighbors()
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_batches_and_threads_do_not_change_a_bit(fast_engine, rng):
    X, Q = rng.normal(size=(150, 30)), rng.normal(size=(9, 30))
    model = DTWNearestNeighbor(2, engine=fast_engine).fit(X, np.arange(150) % 3)
    whole = model.kneighbors(Q)
    for row in range(9):
        for a, b in zip(model.kneighbors(Q[row : row + 1]), whole, strict=True):
            assert_array_equal(a[0], b[row])
    for n_jobs in (1, 2, -1):
        for a, b in zip(model.set_params(n_jobs=n_jobs).kneighbors(Q), whole, strict=True):
            assert_array_equal(a, b)


def test_budgets(fast_engine, rng):
    X, Q = rng.normal(size=(500, 200)), rng.normal(size=(20, 200))
    model = DTWNearestNeighbor(engine=fast_engine).fit(X, np.arange(500) % 3)
    expected = model.kneighbors(Q)
    with config_context(memory="1500KiB"):
        for a, b in zip(model.kneighbors(Q), expected, strict=True):
            assert_array_equal(a, b)
    with config_context(memory=1000), pytest.raises(MemoryBudgetError, match=r"needs .* is 1000 b"):
        model.kneighbors(Q)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "'n_neighbors' parameter"),
        ({"metric": "euclid"}, "'metric' parameter"),
        ({"weights": "heavy"}, "'weights' parameter"),
        ({"precision": "half"}, "'precision' parameter"),
        ({"engine": "abacus"}, "engine='abacus' is not known; there are 'auto', 'numba', 'cupy'"),
        ({"verbose": -1}, "'verbose' parameter"),
    ],
)
def test_bad_parameters(data, parameters, message):
    X, y, _ = data
    with pytest.raises(ValueError, match=message):
        DTWNearestNeighbor(**parameters).fit(X, y)


def test_bad_requests(data):
    X, y, Q = data
    model = DTWNearestNeighbor(15, engine="numba").fit(X, y)
    with pytest.raises(ValueError, match=r"n_neighbors = 15, n_samples_fit = 14, n_samples = 6"):
        model.predict(Q)
    with pytest.raises(ValueError, match=r"Expected n_neighbors < n_samples_fit"):
        model.kneighbors(n_neighbors=14)
    with pytest.raises(ValueError, match="Expected n_neighbors > 0"):
        model.kneighbors(Q, n_neighbors=0)
    with pytest.raises(TypeError, match="enter integer value"):
        model.kneighbors(Q, n_neighbors=1.5)
    with pytest.raises(ValueError, match="'n_jobs' parameter .* Got 0"):
        model.set_params(n_jobs=0).kneighbors(Q, n_neighbors=1)


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_no_gpu_no_change(data):
    X, y, _ = data
    model = DTWNearestNeighbor(engine="cupy")
    before = dict(vars(model))
    with pytest.raises(EngineNotAvailableError, match="pip install"):
        model.fit(X, y)
    assert vars(model) == before


@pytest.mark.parametrize("size", [1.0, 1e-20, 1e-60, 1e-100])
def test_float32_sees_queries_beside_constant_series(fast_engine, size):
    # of series without spread the size says what queries are like
    model = DTWNearestNeighbor(1, engine=fast_engine, precision="float32")
    model.fit([[0.0], [-size]], [0, 1])
    assert_allclose(model.transform([[0.0]]), [[0.0, size]], rtol=1e-6)
    assert_allclose(model.fit([[-size]], [0]).kneighbors([[0.0]])[0], [[size]], rtol=1e-6)


def test_float32_finds_neighbors_that_are_as_near(fast_engine, rng):
    X, Q = rng.normal(size=(60, 30)), rng.normal(size=(8, 30))
    model = DTWNearestNeighbor(3, engine=fast_engine, precision="float32")
    distances, indices = model.fit(X, np.arange(60) % 2).kneighbors(Q)
    matrix = reference.pairwise_dtw(Q, X)
    assert_allclose(distances, np.sort(matrix, axis=1)[:, :3], rtol=1e-5)
    assert_allclose(np.take_along_axis(matrix, indices, axis=1), distances, rtol=1e-5)


def test_ties_go_to_the_lower_index(engine):
    X = [[1.0, 2, 1], [5, 5, 5], [1, 2, 1], [0, 0, 0], [1, 2, 1]]
    model = DTWNearestNeighbor(3, engine=engine).fit(X, [0, 0, 1, 1, 0])
    assert_array_equal(model.kneighbors([[1.0, 2, 1]])[1], [[0, 2, 4]])
    assert_array_equal(model.kneighbors(n_neighbors=2)[1][[0, 2, 4]], [[2, 4], [0, 4], [0, 2]])
    # a point doubled costs nothing in time warping: these tie although their points differ
    assert_array_equal(model.kneighbors([np.array([1.0, 2, 2, 1, 1])])[1], [[0, 2, 4]])


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_series_met_exactly_outvote_all_others(engine, weights):
    X = np.array([[0.0, 1], [0, 1], [0, 2], [0, 2], [0, 2]])
    model = DTWNearestNeighbor(5, engine=engine, weights=weights).fit(X, list("aabbb"))
    shares = {"uniform": [[0.4, 0.6]], "distance": [[1.0, 0.0]]}
    assert_array_equal(model.predict_proba([[0.0, 1]]), shares[weights])
    assert model.score([[0.0, 1]], ["a"]) == (weights == "distance")


def test_channels_in_three_dimensions(engine, rng):
    X, Q = rng.normal(size=(6, 3, 7)), rng.normal(size=(2, 3, 7))
    model = DTWNearestNeighbor(4, engine=engine).fit(X, [0, 1] * 3)
    distances, indices = model.kneighbors(Q)
    expected = expected_neighbors(X, Q, 4)
    assert_array_equal(distances, expected[0])
    assert_array_equal(indices, expected[1])
    assert (model.n_channels_, model.n_features_in_) == (3, 7)


def test_queries_changed_in_place_are_seen(engine, rng):
    """Data prepared from an array of the user must not outlive its content."""
    X, Q = rng.normal(size=(6, 2, 7)), rng.normal(size=(3, 2, 7))
    model = DTWNearestNeighbor(2, engine=engine).fit(X, [0, 1] * 3)
    model.kneighbors(Q)
    Q[:] = Q[::-1].copy()
    assert_array_equal(model.kneighbors(Q)[0], expected_neighbors(X, Q, 2)[0])


def test_orders_of_queries_and_of_training_series(fast_engine, rng):
    X, Q = rng.normal(size=(130, 20)), rng.normal(size=(40, 20))
    distances, indices = DTWNearestNeighbor(3, engine=fast_engine).fit(X, X[:, 0] > 0).kneighbors(Q)
    shuffle = rng.permutation(130)
    model = DTWNearestNeighbor(3, engine=fast_engine).fit(X[shuffle], X[shuffle, 0] > 0)
    found = model.kneighbors(Q[::-1])
    assert_array_equal(found[0], distances[::-1])
    assert_array_equal(shuffle[found[1]], indices[::-1])


def test_the_smallest_budget_gives_many_tiles_and_the_same_bits(fast_engine, rng):
    X, Q = rng.normal(size=(300, 40)), rng.normal(size=(25, 40))
    model = DTWNearestNeighbor(3, engine=fast_engine).fit(X, np.arange(300) % 3)
    expected = model.kneighbors(Q)
    work = DTWNeighbors(check_series(Q), check_series(X), 3)
    with config_context(memory="1MiB"):  # too little for NumPy in place of kernels
        least = sum(find_engine(fast_engine).footprint(work, 1, 64))
    totals = []
    with config_context(memory=least, progress=lambda done, total: totals.append(total)):
        found = model.kneighbors(Q)
    assert totals[0] == 25 * 5  # each query with 64 of 300 candidates at a time
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])
    with (
        config_context(memory=least - 1),
        pytest.raises(MemoryBudgetError, match=r"needs [\d.]+ \w+ of .* the budget is [\d.]+ \w+"),
    ):
        model.kneighbors(Q)


def test_lists_in_cross_validation(fast_engine, rng):
    X = [np.sin(np.arange(n)) * (1 + n % 2) + 0.1 * rng.normal(size=n) for n in range(10, 34)]
    y = np.arange(10, 34) % 2
    scores = cross_val_score(DTWNearestNeighbor(engine=fast_engine), X, y, cv=4)
    assert scores.shape == (4,)
    assert scores.mean() > 0.9


def test_search_over_a_pipeline_that_normalises(fast_engine):
    X, y = make_cylinder_bell_funnel(30, 32, random_state=1)
    steps = make_pipeline(
        FunctionTransformer(scipy.stats.zscore, kw_args={"axis": 1}),
        DTWNearestNeighbor(engine=fast_engine),
    )
    grid = {"dtwnearestneighbor__weights": ["uniform", "distance"]}
    search = GridSearchCV(steps, grid, cv=3, error_score="raise").fit(X, y)
    # what a shift and a scale of each series cannot change
    shifted = X * np.linspace(0.5, 2, 30)[:, None] + np.linspace(-3, 3, 30)[:, None]
    assert_array_equal(search.predict(shifted), search.predict(X))
    assert search.best_score_ > 0.8


def test_pickles_of_every_form(fast_engine, tmp_path, rng):
    X = rng.normal(size=(4, 2, 5))
    np.save(tmp_path / "X.npy", X)
    for training in (X, list(X), np.load(tmp_path / "X.npy", mmap_mode="r")):
        model = DTWNearestNeighbor(engine=fast_engine).fit(training, list("abab"))
        moved = pickle.loads(pickle.dumps(model))
        for found, expected in zip(moved.kneighbors(X, 3), model.kneighbors(X, 3), strict=True):
            assert_array_equal(found, expected)
        assert_array_equal(moved.predict(X), list("abab"))


def test_copies_are_not_prepared_from_each_other(fast_engine, rng):
    """Two models of different series, one after the other, in the same memory or not."""
    Q = rng.normal(size=(3, 9))
    for _ in range(20):
        X = rng.normal(size=(5, 9))
        model = DTWNearestNeighbor(2, engine=fast_engine).fit(X, [0, 1, 0, 1, 0])
        assert_array_equal(model.kneighbors(Q)[0], expected_neighbors(X, Q, 2)[0])


def test_verbose_tells_the_engine(fast_engine, data, caplog):
    X, y, Q = data
    DTWNearestNeighbor(engine=fast_engine, verbose=2).fit(X, y).predict(Q)
    assert f"DTWNeighbors: 6 x 14 on {fast_engine}" in caplog.text
