"""DTWKMedoids: swaps and alternation against plain loops, budgets, edge cases, the contract."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from skts import DTWKMedoids, config_context
from skts._distance_rows import DistanceRows
from skts._metrics import METRICS
from skts.cluster import choose_n_clusters
from skts.cluster._medoids import Medoids, alternate, draw, swap
from skts.datasets import make_warped_shapes
from skts.engines import find_engine
from skts.metrics import pairwise_distances
from tests import reference_medoids as reference
from tests.contract import check_described, check_with_scikit_learn

STORED = Path(__file__).parents[1] / "data" / "peers" / "medoids.npz"


def drawn(rng, n, kind):
    """Symmetric matrices with ties, with zeros, of many values; their sums are exact."""
    D = {
        "ties": lambda: rng.integers(1, 4, (n, n)),
        "zeros": lambda: rng.integers(0, 3, (n, n)),
        "any": lambda: np.floor(2.0**20 * rng.random((n, n)) ** 3) / 2.0**20,
        "far": lambda: rng.integers(0, 9, (n, n)) + 2.0**40,
    }[kind]()
    D = np.triu(np.asarray(D, float), 1)
    return D + D.T


def silent(number, inertia):
    """Report nothing."""


@pytest.mark.parametrize("kind", ["ties", "zeros", "any", "far"])
def test_swaps_are_those_of_plain_loops(rng, kind):
    for _ in range(12):
        n = int(rng.integers(1, 13))
        k = int(rng.integers(1, min(n, 4) + 1))
        D = drawn(rng, n, kind)
        start = rng.choice(n, k, replace=False)
        for max_iter in (1, 2, 100):
            medoids, passes, history = reference.swapped(D, start, max_iter)
            found = swap(DistanceRows.of(D), start, max_iter, silent)
            assert found.n_iter == passes
            kept = np.unique(reference.labels_of(D, medoids))
            if kept.size == k:
                assert_array_equal(found.medoids.indices, medoids)
                assert_array_equal(found.medoids.labels, reference.labels_of(D, medoids))
                falls = [history[0], *(b for a, b in zip(history, history[1:]) if b < a)]  # noqa: B905, RUF007
                assert_allclose(found.history, falls, rtol=1e-12)
        # no swap is left that lowers the inertia
        assert found.converged
        after = reference.all_swaps(D, list(found.medoids.indices))
        assert min(after.values(), default=np.inf) >= found.medoids.inertia * (1 - 1e-12)


@pytest.mark.parametrize("kind", ["ties", "any"])
def test_alternation_is_that_of_plain_loops(rng, kind):
    for _ in range(12):
        n = int(rng.integers(2, 16))
        k = int(rng.integers(1, min(n, 4) + 1))
        D, start = drawn(rng, n, kind), rng.choice(n, k, replace=False)
        medoids, history = reference.alternated(D, start, 100)
        told = []
        found = alternate(DistanceRows.of(D), start, 100, lambda *one, told=told: told.append(one))
        assert_array_equal(found.medoids.indices, medoids)
        assert_allclose(found.history, history, rtol=1e-12)
        assert found.converged and found.n_iter == len(history)
        for most in (1, 2):
            stopped = alternate(DistanceRows.of(D), start, most, silent)
            assert_array_equal(stopped.medoids.indices, reference.alternated(D, start, most)[0])
        assert [number for number, _ in told] == list(range(found.n_iter + 1))
        assert_allclose([inertia for _, inertia in told[: len(history)]], history, rtol=1e-12)


def test_starts(rng):
    for kind in ("ties", "zeros", "any"):
        D = drawn(rng, 11, kind)
        assert_array_equal(draw(DistanceRows.of(D), 4, "build", None), reference.built(D, 4))
        for init in ("k-means++", "random", "build"):
            for k in (1, 2, 11):
                found = draw(DistanceRows.of(D), k, init, np.random.RandomState(3))
                assert np.unique(found).size == k
        for seed in range(9):
            found = draw(DistanceRows.of(D), 5, "k-means++", np.random.RandomState(seed))
            assert_array_equal(found, reference.scattered(D, 5, np.random.RandomState(seed)))
    # nothing but zeros: the lowest numbers that are left
    found = draw(DistanceRows.of(np.zeros((5, 5))), 5, "k-means++", np.random.RandomState(0))
    assert_array_equal(np.sort(found), np.arange(5))
    # distances are the weights, so that a series at 0 is never drawn
    D = np.array([[0, 0, 1.0], [0, 0, 1], [1, 1, 0]])
    for seed in range(20):
        assert 2 in draw(DistanceRows.of(D), 2, "k-means++", np.random.RandomState(seed))


def test_no_row_is_read_after_the_last_try():
    class Counted(DistanceRows):
        read = 0

        def parts(self):
            for index, row in enumerate(self._whole):
                self.read += 1
                yield index, row[np.newaxis]

    x = np.array([0.0, 5, 6, 7, 8])
    rows = Counted.of(np.abs(x[:, None] - x))
    found = swap(rows, np.array([0]), 100, silent)
    # in the first pass 5 and then 6 take the place; in the second all before them are tried again
    assert found.n_iter == 2 and found.medoids.indices == [2]
    assert rows.read == 5 + 3


def test_clusters_without_series():
    D = np.array([[0.0, 0, 5, 7], [0, 0, 5, 7], [5, 5, 0, 2], [7, 7, 2, 0]])
    medoids = Medoids(np.array([0, 1]), D[[0, 1]]).fill(DistanceRows.of(D))
    assert_array_equal(medoids.indices, [0, 3])
    assert_array_equal(medoids.labels, [0, 0, 1, 1])
    alike = Medoids(np.array([0, 1, 2]), np.zeros((3, 4))).fill(DistanceRows.of(np.zeros((4, 4))))
    assert_array_equal(alike.indices, [0])
    assert not alike.labels.any()


@pytest.mark.parametrize("method", ["pam", "alternate"])
def test_a_matrix_that_does_not_fit_changes_nothing(fast_engine, rng, method):
    X = rng.normal(size=(260, 10)).cumsum(axis=1)
    model = DTWKMedoids(4, method=method, window=3, n_init=2, random_state=0, engine=fast_engine)
    expected = model.fit(X)
    with config_context(memory="400kB"):
        found = clone(model).set_params(n_jobs=1).fit(X)
    for name in ("medoid_indices_", "labels_", "inertia_", "history_", "n_iter_"):
        assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("init", ["k-means++", "build", "random"])
def test_labels_are_predicted_and_consistent(fast_engine, rng, init):
    X = rng.normal(size=(40, 2, 12)).cumsum(axis=2)
    model = DTWKMedoids(5, init=init, random_state=1, engine=fast_engine).fit(X)
    assert model.engine_ == fast_engine
    assert_array_equal(model.labels_, model.predict(X))
    assert_array_equal(model.labels_, clone(model).fit_predict(X))
    assert set(model.labels_) == set(range(5)) and model.labels_.dtype == np.int32
    assert_array_equal(model.cluster_centers_, X[model.medoid_indices_])
    distances = model.transform(X)
    assert_array_equal(distances, pairwise_distances(X, model.cluster_centers_))
    assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert model.inertia_ == -model.score(X) == model.history_[-1]
    assert (np.diff(model.history_) < 0).all()
    D = pairwise_distances(X)
    after = reference.all_swaps(D.tolist(), model.medoid_indices_.tolist())
    assert min(after.values()) >= model.inertia_ * (1 - 1e-12)
    assert list(model.get_feature_names_out()) == [f"dtwkmedoids{i}" for i in range(5)]


@pytest.mark.parametrize(
    ("kind", "k"),
    [(kind, k) for kind in ("swaps", "build") for k in (3, 6, 12)]
    + [("alternation", 3), ("alternation", 6)],
)
def test_stored_medoids_of_kmedoids(fast_engine, kind, k):
    with np.load(STORED) as stored:
        X, start = stored["input.walks"], stored[f"start.{k}"]
        medoids, labels, inertia = (
            stored[f"{kind}.{k}.{name}"] for name in ("medoids", "labels", "inertia")
        )
    method = "alternate" if kind == "alternation" else "pam"
    if kind == "build":
        found = draw(DistanceRows.of(pairwise_distances(X, engine=fast_engine)), k, "build", None)
        assert_array_equal(found, medoids)
        return
    model = DTWKMedoids(k, method=method, init=start, engine=fast_engine).fit(X)
    assert_array_equal(model.medoid_indices_, medoids)
    assert_array_equal(model.labels_, labels)
    assert model.inertia_ == pytest.approx(float(inertia), rel=1e-12)


def test_finds_kinds(fast_engine):
    X, y = make_warped_shapes(60, 40, random_state=0)
    model = DTWKMedoids(3, window=0.2, init="build", engine=fast_engine).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.8


@pytest.mark.gpu
def test_engines_agree(rng):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    X = rng.normal(size=(90, 12)).cumsum(axis=1)
    ragged = [x[: rng.integers(5, 13)] for x in X[:50]]
    for data, options in (
        (X, {"n_init": 2}),
        (X, {"method": "alternate", "init": "random", "window": 0.1}),
        (ragged, {"metric": "msm", "init": "build"}),
    ):
        models = [
            DTWKMedoids(4, random_state=3, engine=engine, **options).fit(data)
            for engine in ("numba", "cupy")
        ]
        for name in ("medoid_indices_", "labels_", "history_", "n_iter_", "inertia_"):
            assert_array_equal(*(getattr(model, name) for model in models))


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_every_distance(fast_engine, rng, metric):
    X = rng.normal(size=(70, 2, 9)).cumsum(axis=2)
    data = X if metric == "euclidean" else [x[:, : rng.integers(4, 10)] for x in X]
    model = DTWKMedoids(3, metric=metric, random_state=0, engine=fast_engine).fit(data)
    D = pairwise_distances(data, metric=metric, engine=fast_engine)
    # to and fro alike: blocks and the mirrored half of a matrix hold the same bits
    again = pairwise_distances(data, list(data), metric=metric, engine=fast_engine)
    assert_array_equal(D, D.T)
    assert_array_equal(D, again)
    start = draw(DistanceRows.of(D), 3, "k-means++", np.random.RandomState(0))
    assert_array_equal(
        model.medoid_indices_, swap(DistanceRows.of(D), start, 100, silent).medoids.indices
    )
    assert_array_equal(model.predict(data), model.labels_)


def test_series_of_any_lengths(fast_engine, rng):
    X = [rng.normal(size=n).cumsum() for n in (9, 4, 12, 7, 3, 12, 8, 1)]
    model = DTWKMedoids(3, init=[1, 2, 7], engine=fast_engine).fit(X)
    lengths = (~np.isnan(model.cluster_centers_)).sum(axis=1)
    assert_array_equal(lengths, [len(X[i]) for i in model.medoid_indices_])
    assert_array_equal(model.predict(X), model.labels_)
    assert not hasattr(model, "n_features_in_")


def test_fewer_different_series_than_clusters(fast_engine):
    X = np.repeat([[0.0, 1, 2], [5, 5, 5]], 4, axis=0)
    for method in ("pam", "alternate"):
        model = DTWKMedoids(5, method=method, random_state=0, engine=fast_engine)
        with pytest.warns(ConvergenceWarning, match="Only 2 medoids have series of their own"):
            model.fit(X)
        assert len(model.cluster_centers_) == 2 and model.inertia_ == 0
        assert_array_equal(model.predict(X), model.labels_)
        assert model.transform(X).shape == (8, 2)
    with pytest.warns(ConvergenceWarning, match="Only 1 medoid has series of its own"):
        clone(model).fit(np.zeros((5, 4)))


def test_ties_go_to_the_first_medoid(fast_engine):
    X = np.array([[0.0, 0], [2, 2], [4, 4], [4, 4.0]])
    model = DTWKMedoids(2, init=[0, 2], engine=fast_engine).fit(X)
    # series 1 is as far from the one as from the other
    assert_array_equal(model.labels_, [0, 0, 1, 1])
    assert_array_equal(model.medoid_indices_, [0, 2])


@pytest.mark.filterwarnings("ignore:X has shape")
@pytest.mark.parametrize("n_timepoints", [1, 2, 3, 4, 5])
def test_tiny_series(fast_engine, rng, n_timepoints):
    X = rng.normal(size=(9, n_timepoints))
    model = DTWKMedoids(3, random_state=0, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    alone = DTWKMedoids(1, engine=fast_engine).fit(X)
    assert not alone.labels_.any()
    D = pairwise_distances(X)
    assert alone.medoid_indices_ == [D.sum(axis=1).argmin()]
    assert_array_equal(DTWKMedoids(9, init="build", engine=fast_engine).fit(X).inertia_, 0)
    assert_array_equal(DTWKMedoids(1, engine=fast_engine).fit(X[:1]).labels_, [0])


def test_scales_change_nothing(fast_engine):
    X, _ = make_warped_shapes(30, 12, random_state=0)
    expected = DTWKMedoids(3, random_state=0, engine=fast_engine).fit(X)
    for power in (-400, 400):
        scaled = clone(expected).fit(np.ldexp(X, power))
        assert_array_equal(scaled.medoid_indices_, expected.medoid_indices_)
        assert scaled.inertia_ == np.ldexp(expected.inertia_, power)
    far = clone(expected).fit(X + 1e9)
    assert_array_equal(far.labels_, far.predict(X + 1e9))


def test_messages(fast_engine, rng):
    X = rng.normal(size=(30, 9)).cumsum(axis=1)
    for method in ("pam", "alternate"):
        model = DTWKMedoids(4, method=method, init=[0, 1, 2, 3], max_iter=1, engine=fast_engine)
        with pytest.warns(ConvergenceWarning, match="after max_iter=1 iterations"):
            model.fit(X)
        assert model.n_iter_ == 1 and len(model.history_) <= 2
        assert_array_equal(model.predict(X), model.labels_)
    for options, message in (
        ({"n_clusters": 31}, "n_samples=30 should be >= n_clusters=31"),
        ({"n_clusters": 3, "init": [1, 2]}, "init holds int64 of shape"),
        ({"n_clusters": 2, "init": [0.0, 1.0]}, "init holds float64 of shape"),
        ({"n_clusters": 2, "init": [0, 30]}, "init holds 30, and there are 30 series"),
        ({"n_clusters": 2, "init": [1, 1]}, "init holds the number of a series twice"),
        ({"metric": "euclid"}, "The 'metric' parameter"),
        ({"metric": "msm", "metric_params": {"gap": 1}}, "'gap' is no parameter of metric='msm'"),
        ({"metric": "euclidean", "window": 2}, "window=2 does not go with metric='euclidean'"),
        ({"window": 1.5}, "The 'window' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            DTWKMedoids(engine=fast_engine, **options).fit(X)
    model.cluster_centers_ = np.zeros((4, 2, 9))
    with pytest.raises(ValueError, match="has 2 channels, and the series that were fitted have 1"):
        model.predict(X)


def test_reports_iterations(rng, caplog):
    X = rng.normal(size=(20, 9)).cumsum(axis=1)
    caplog.set_level("INFO", "skts")
    model = DTWKMedoids(2, n_init=1, random_state=0, verbose=1).fit(X)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("inertia" in line for line in lines) == model.n_iter_ + 1
    # all runs from one start would be the same
    for init, runs in (("random", 3), ("k-means++", 3), ("build", 1), ([0, 1], 1)):
        caplog.clear()
        DTWKMedoids(2, init=init, n_init=3, random_state=0, verbose=1).fit(X)
        assert any(f"Run {runs} of {runs}," in one.getMessage() for one in caplog.records)


def test_pickled(fast_engine, rng):
    X = rng.normal(size=(20, 9)).cumsum(axis=1)
    model = DTWKMedoids(2, random_state=0, engine=fast_engine).fit(X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.labels_)


def test_scikit_learn(fast_engine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check_with_scikit_learn(DTWKMedoids(engine=fast_engine))


def both(rng, n=14):
    """Series and others, their distances within, and those to the first ones."""
    X, Q = rng.normal(size=(n, 6)), rng.normal(size=(5, 6))
    return (
        X,
        Q,
        pairwise_distances(X, metric="euclidean"),
        pairwise_distances(Q, X, metric="euclidean"),
    )


@pytest.mark.parametrize("init", ["k-means++", "build", "random", [3, 0, 7]])
@pytest.mark.parametrize("method", ["pam", "alternate"])
def test_precomputed_distances_give_the_same_answers(rng, method, init):
    X, Q, D, E = both(rng)
    options = {"method": method, "init": init, "random_state": 1}
    direct = DTWKMedoids(3, metric="euclidean", **options).fit(X)
    model = DTWKMedoids(3, metric="precomputed", **options)
    for matrix in (D, D.tolist(), list(D)):
        model.fit(matrix)
        for name in ("medoid_indices_", "labels_", "inertia_", "history_", "n_iter_"):
            assert_array_equal(getattr(model, name), getattr(direct, name))
        assert model.cluster_centers_ is None
    assert_array_equal(model.predict(E), direct.predict(Q))
    assert_array_equal(model.transform(E), direct.transform(Q))
    assert model.score(E) == direct.score(Q)
    assert_array_equal(model.predict(D), model.labels_)
    assert_array_equal(model.transform(D), D[:, model.medoid_indices_])
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(E), model.predict(E))
    assert again.cluster_centers_ is None


@pytest.mark.parametrize("kind", ["ties", "zeros", "any"])
def test_precomputed_distances_with_a_direction(rng, kind):
    """Rows hold the distances of a series to all others: those to medoids are in columns."""
    for _ in range(8):
        n = int(rng.integers(2, 11))
        k = int(rng.integers(1, min(n, 4) + 1))
        D = drawn(rng, n, kind) + np.tril(drawn(rng, n, kind))
        start = rng.choice(n, k, replace=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = DTWKMedoids(k, metric="precomputed", init=start).fit(D)
        medoids, _, history = reference.swapped(D.T, start, 100)
        if len(model.medoid_indices_) == k and len(set(reference.labels_of(D.T, medoids))) == k:
            assert model.medoid_indices_.tolist() == medoids
            assert model.inertia_ == history[-1]
        columns = model.medoid_indices_.tolist()
        assert model.labels_.tolist() == [
            min(range(len(columns)), key=lambda place: D[row, columns[place]]) for row in range(n)
        ]
        assert model.inertia_ == sum(min(D[row, m] for m in columns) for row in range(n))
        queries = rng.integers(0, 3, (4, n)).astype(float)
        assert model.predict(queries).tolist() == [
            min(range(len(columns)), key=lambda place: row[columns[place]]) for row in queries
        ]


def test_cross_validation_cuts_rows_and_columns(rng):
    X, _, D, _ = both(rng, 18)
    assert get_tags(DTWKMedoids(metric="precomputed")).input_tags.pairwise
    assert not get_tags(DTWKMedoids()).input_tags.pairwise
    grid, folds = {"n_clusters": [2, 3, 4]}, KFold(3)
    given = DTWKMedoids(metric="precomputed", init="build")
    search = GridSearchCV(given, grid, cv=folds).fit(D)
    wanted = GridSearchCV(given.set_params(metric="euclidean"), grid, cv=folds).fit(X)
    for name in ("mean_test_score", "std_test_score"):
        assert_array_equal(search.cv_results_[name], wanted.cv_results_[name])
    assert search.best_params_ == wanted.best_params_


def test_number_of_clusters_of_precomputed_distances(rng):
    X, _, D, _ = both(rng)
    given = DTWKMedoids(metric="precomputed", init="build")
    found = choose_n_clusters(given, D, [2, 3, 5])
    wanted = choose_n_clusters(clone(given).set_params(metric="euclidean"), X, [2, 3, 5])
    assert found.best == wanted.best
    assert_array_equal(found.inertia, wanted.inertia)
    assert_array_equal(found.silhouette, wanted.silhouette)
    means = [
        silhouette_score(
            D, clone(given).set_params(n_clusters=k).fit(D).labels_, metric="precomputed"
        )
        for k in (2, 3, 5)
    ]
    assert_allclose(found.silhouette, means, rtol=1e-12)


def spoilt(value):
    D = np.ones((4, 4))
    D[2, 3] = value
    return D


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((4, 3)), r"shape \(4, 3\); with metric='precomputed' it must be a square matrix"),
        (np.ones((4, 1)), r"shape \(4, 1\); with metric='precomputed' it must be a square matrix"),
        (np.ones((3, 2, 3)), r"shape \(3, 2, 3\); with metric='precomputed' it must be a square"),
        (spoilt(np.nan), "NaN in row 2, column 3: precomputed distances must all be known"),
        (spoilt(-0.5), "precomputed distances: -0.5 in row 2, column 3"),
        (spoilt(np.inf), "infinity"),
    ],
)
def test_bad_distances(matrix, message):
    model = DTWKMedoids(2, metric="precomputed")
    with pytest.raises(ValueError, match=message):
        model.fit(matrix)
    assert not hasattr(model, "labels_")
    if matrix.shape == (4, 4):
        model.fit(np.ones((4, 4)) - np.eye(4))
        with pytest.raises(ValueError, match=message):
            model.predict(matrix)


def test_bad_rows_of_distances(rng):
    _, Q, D, E = both(rng)
    model = DTWKMedoids(2, metric="precomputed").fit(D)
    with pytest.raises(ValueError, match="X has 13 features, but DTWKMedoids is expecting 14"):
        model.predict(E[:, 1:])
    with pytest.raises(ValueError, match=r"\(n_queries, n_indexed\). Got \(5, 13\) for 14 indexed"):
        model.transform(list(E[:, 1:]))
    model.set_params(metric="euclidean")
    with pytest.raises(ValueError, match="was fitted to precomputed distances and holds no series"):
        model.predict(Q)
    # other options of a distance are not used
    ignored = {"metric_params": {"gap": 1}, "cost": "absolute", "window": 3}
    other = DTWKMedoids(2, metric="precomputed", init="build", **ignored).fit(D)
    assert_array_equal(other.labels_, other.set_params(window=None, cost="squared").fit(D).labels_)


def test_scikit_learn_with_precomputed_distances(monkeypatch):
    """All but the check of clusters, which hands points over to estimators of distances as well."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")

    def failed(estimator):
        found = check_estimator(estimator, on_fail=None, on_skip=None)
        assert len(found) >= 40
        return [
            (one["check_name"], str(one["exception"])) for one in found if one["status"] == "failed"
        ]

    mine = failed(DTWKMedoids(2, metric="precomputed"))
    theirs = failed(AgglomerativeClustering(2, metric="precomputed", linkage="average"))
    assert {name for name, _ in mine} == {"check_clustering"} <= {name for name, _ in theirs}
    assert all("X has shape (50, 2)" in text and "square" in text for _, text in mine)


def test_docstring(rng):
    check_described(DTWKMedoids(2).fit(rng.normal(size=(12, 20))))
