"""DTWKMeans: the loop against plain loops, bounds, edge cases, scikit-learn's contract."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skts import DTWKMeans, config_context
from skts._metrics import distance_of
from skts._validation import check_series
from skts.cluster._dtw_kmeans import _mean_variance
from skts.cluster._nearest_centers import NearestCenters, largest_change
from skts.engines import Series, Warping, find_engine, run
from skts.metrics import dtw_path, pairwise_dtw
from tests import reference_averages as reference
from tests.contract import check_described, check_with_scikit_learn


def warped(rng, n_samples, n_timepoints, n_kinds=3, noise=0.05):
    """Bumps, saws and waves at speeds of their own."""
    t = np.linspace(0, 1, n_timepoints)
    kinds = [
        lambda u: np.exp(-200 * (u - 0.3) ** 2) + np.exp(-200 * (u - 0.7) ** 2),
        lambda u: (4 * u) % 1,
        lambda u: np.sin(4 * np.pi * u),
    ]
    y = rng.permutation(np.arange(n_samples) % n_kinds)
    speeds = np.exp(rng.uniform(-0.4, 0.4, n_samples))
    X = np.array([kinds[label](t**speed) for label, speed in zip(y, speeds, strict=True)])
    return X + noise * rng.normal(size=X.shape), y


@pytest.fixture
def early():
    """Let few iterations be asked for on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def test_finds_kinds(fast_engine, rng):
    X, y = warped(rng, 45, 40)
    model = DTWKMeans(3, n_init=3, random_state=0, engine=fast_engine).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.engine_ == fast_engine


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_loop_is_that_of_plain_loops(fast_engine, rng, window, n_channels, early):
    X = rng.normal(size=(17, n_channels, 11)).cumsum(axis=2)
    centers = list(X[:3])
    for n_iter in range(1, 6):
        model = DTWKMeans(
            3, init=X[:3], max_iter=n_iter, tol=0, window=window, engine=fast_engine
        ).fit(X)
        labels = reference.nearest(X, centers, window)
        assert_allclose(
            model.history_[n_iter - 1], reference.inertia(X, centers, labels, window), rtol=1e-12
        )
        centers = reference.updated(X, centers, labels, window)
        if model.n_iter_ < n_iter or len(model.history_) < n_iter + 1:
            break
        assert_array_equal(model.labels_, reference.nearest(X, centers, window))
        assert_allclose(model.cluster_centers_, centers, rtol=1e-11, atol=1e-11)


def test_the_inertia_never_rises_and_bounds_change_nothing(fast_engine, rng, monkeypatch):
    X, _ = warped(rng, 90, 25, noise=0.4)
    model = DTWKMeans(6, random_state=1, tol=0, engine=fast_engine).fit(X)
    assert (np.diff(model.history_) < 0).all() and len(model.history_) > 4
    searched = []
    search = NearestCenters.search

    def noted(self, centers, rows=None):
        searched.append(len(self.series) if rows is None else rows.size)
        return search(self, centers, rows)

    monkeypatch.setattr(NearestCenters, "search", noted)
    again = clone(model).fit(X)
    # bounds spare some of the work
    assert sum(searched) < (again.n_iter_ + 1) * len(X)

    def follow(self, centers, moved, distances):
        return search(self, moved)

    monkeypatch.setattr(NearestCenters, "follow", follow)
    without = clone(model).fit(X)
    for other in (again, without):
        assert_array_equal(other.labels_, model.labels_)
        assert_array_equal(other.cluster_centers_, model.cluster_centers_)
        assert_array_equal(other.history_, model.history_)


def test_a_file_is_read_in_parts(fast_engine, rng, monkeypatch, tmp_path):
    X, _ = warped(rng, 90, 25, noise=0.4)
    given = {"n_clusters": 6, "random_state": 1, "engine": fast_engine}
    expected = DTWKMeans(**given).fit(X)
    file = np.memmap(tmp_path / "X", np.float64, "w+", shape=X.shape)
    file[:] = X
    monkeypatch.setattr("skts.cluster._nearest_centers.MOST_COPIED", 8 * 25 * 7)
    monkeypatch.setattr("skts.cluster._dtw_kmeans.POINTS_AT_ONCE", 25 * 7)
    found = DTWKMeans(**given).fit(file)
    assert_array_equal(found.labels_, expected.labels_)
    assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert_array_equal(found.history_, expected.history_)


def test_the_variance_of_a_time_point_is_over_the_series_that_reach_it(rng, monkeypatch):
    X = [rng.normal(size=(2, n)) for n in (3, 9, 5, 9)]
    values = [np.var([x[c, t] for x in X if x.shape[1] > t]) for c in range(2) for t in range(9)]
    series = check_series(X)
    for most in (2**20, 40, 1):
        monkeypatch.setattr("skts.cluster._dtw_kmeans.POINTS_AT_ONCE", most)
        assert _mean_variance(series) == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.filterwarnings("ignore:x has 2 channels")
@pytest.mark.parametrize("window", [None, 0, 2])
def test_no_distance_moves_further_than_the_bound(rng, window):
    warping = Warping(window=window)
    for _ in range(20):
        before = rng.normal(size=(2, rng.integers(1, 9)))
        after = before + rng.normal(size=before.shape) * rng.choice([0.01, 1, 10])
        X = [rng.normal(size=(2, n)) for n in (1, 2, 5, 9)]
        bound = largest_change(before, after, 9, warping)
        for x in X:
            old, new = (np.sqrt(reference.cost(one, x, window)) for one in (before, after))
            assert abs(new - old) <= bound * (1 + 1e-12)
            # along any path
            path, _ = dtw_path(before, x, window=window)
            difference = (after - before)[:, path[:, 0]]
            assert np.linalg.norm(difference) <= bound * (1 + 1e-12)
    # a path that stays at one point
    assert largest_change(np.zeros((1, 1)), np.ones((1, 1)), 4, Warping()) == 2.0


@pytest.mark.parametrize("init", ["k-means++", "random"])
@pytest.mark.parametrize("n_channels", [None, 2])
def test_labels_are_predicted_and_consistent(fast_engine, rng, init, n_channels):
    shape = (40, 20) if n_channels is None else (40, n_channels, 20)
    X = rng.normal(size=shape).cumsum(axis=-1)
    model = DTWKMeans(5, init=init, n_init=2, random_state=1, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    assert_array_equal(model.labels_, clone(model).fit_predict(X))
    assert set(model.labels_) == set(range(5)) and model.labels_.dtype == np.int32
    distances = model.transform(X)
    assert_array_equal(distances, pairwise_dtw(X, model.cluster_centers_))
    assert_array_equal(distances.argmin(axis=1), model.labels_)
    assert model.inertia_ == -model.score(X) == model.history_[-1]
    expected = (5, 20) if n_channels is None else (5, 2, 20)
    assert model.cluster_centers_.shape == expected
    assert list(model.get_feature_names_out()) == [f"dtwkmeans{i}" for i in range(5)]


@pytest.mark.gpu
def test_engines_agree(rng):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    X, _ = warped(rng, 120, 30, noise=0.5)
    ragged = [x[: rng.integers(5, 31)] for x in X[:50]]
    for data, options in (
        (X, {"n_init": 2}),
        (X, {"init": "random", "n_init": 2, "window": 0.1}),
        (ragged, {"window": 3}),
    ):
        models = [
            DTWKMeans(4, random_state=3, engine=engine, **options).fit(data)
            for engine in ("numba", "cupy")
        ]
        for name in ("labels_", "cluster_centers_", "history_", "n_iter_", "inertia_"):
            assert_array_equal(*(getattr(model, name) for model in models))


def test_splits_and_threads_change_nothing(fast_engine, rng):
    X, _ = warped(rng, 400, 20, noise=0.5)
    given = DTWKMeans(4, random_state=0, max_iter=4, tol=0.5, engine=fast_engine)
    expected = given.fit(X)
    for memory, n_jobs in (("1MB", 1), ("4MB", 2)):
        with config_context(memory=memory):
            found = clone(given).set_params(n_jobs=n_jobs).fit(X)
        assert_array_equal(found.labels_, expected.labels_)
        assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


def test_series_and_centres_of_any_lengths(fast_engine, rng):
    X = [rng.normal(size=n).cumsum() for n in (9, 4, 12, 7, 3, 12, 8, 1)]
    model = DTWKMeans(3, init=[X[1], X[2], X[4]], engine=fast_engine).fit(X)
    assert model.cluster_centers_.shape == (3, 12)
    lengths = (~np.isnan(model.cluster_centers_)).sum(axis=1)
    assert_array_equal(lengths, [4, 12, 3])
    assert_array_equal(model.predict(X), model.labels_)
    assert not hasattr(model, "n_features_in_")
    centers = [c[:n] for c, n in zip(model.cluster_centers_, lengths, strict=True)]
    assert_array_equal(model.transform(X), pairwise_dtw(X, centers))


def test_an_empty_cluster_takes_the_farthest_series(fast_engine):
    X = np.array([[0.0, 0, 0], [0, 0, 1], [9, 9, 9], [9, 9, 8], [50, 50, 50]])
    init = np.array([[0.0, 0, 0], [9, 9, 9], [1e6, 1e6, 1e6]])
    model = DTWKMeans(3, init=init, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, [0, 0, 1, 1, 2])
    assert_array_equal(model.cluster_centers_[2], X[4])


def test_the_farthest_series_may_be_longer_than_all_centres(fast_engine):
    X = [[0.0, 0], [0, 1], [40, 50, 60, 70]]
    model = DTWKMeans(2, init=[[0.0], [1e6]], engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, [0, 0, 1])
    assert_array_equal(model.cluster_centers_[1], X[2])
    assert_array_equal(np.isnan(model.cluster_centers_[0]), [False, True, True, True])


def test_fewer_different_series_than_clusters(fast_engine):
    X = np.repeat([[0.0, 1, 2], [5, 5, 5]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="Only 2 centres have series of their own"):
        model = DTWKMeans(5, random_state=0, engine=fast_engine).fit(X)
    assert len(model.cluster_centers_) == 2 and model.inertia_ == 0
    assert set(model.labels_) == {0, 1}
    assert model.transform(X).shape == (8, 2)


def test_ties_go_to_the_first_centre(fast_engine):
    X = np.array([[0.0, 0], [2, 2], [4, 4], [4, 4.0]])
    model = DTWKMeans(2, init=np.array([[0.0, 0], [4, 4]]), engine=fast_engine).fit(X)
    # series 1 is as far from the one as from the other
    assert_array_equal(model.labels_, [0, 0, 1, 1])


@pytest.mark.filterwarnings("ignore:X has shape")
@pytest.mark.parametrize("n_timepoints", [1, 2, 3, 4, 5])
def test_tiny_series(fast_engine, rng, n_timepoints):
    X = rng.normal(size=(9, n_timepoints))
    model = DTWKMeans(3, random_state=0, engine=fast_engine).fit(X)
    assert_array_equal(model.labels_, model.predict(X))
    alone = DTWKMeans(1, engine=fast_engine).fit(X)
    assert not alone.labels_.any()


def test_constants_offsets_and_scales(fast_engine, rng):
    X, _ = warped(rng, 30, 12)
    expected = DTWKMeans(3, random_state=0, engine=fast_engine).fit(X)
    for power in (-400, 400):
        scaled = clone(expected).fit(np.ldexp(X, power))
        assert_array_equal(scaled.labels_, expected.labels_)
        assert_array_equal(scaled.cluster_centers_, np.ldexp(expected.cluster_centers_, power))
    far = clone(expected).fit(X + 1e9)
    assert_array_equal(far.labels_, far.predict(X + 1e9))
    with pytest.warns(ConvergenceWarning, match="Only 1 centre has series of its own"):
        clone(expected).fit(np.zeros((5, 4)))


def test_messages(fast_engine, rng):
    X, _ = warped(rng, 20, 15, noise=0.6)
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 iterations"):
        DTWKMeans(4, random_state=0, max_iter=1, tol=0, engine=fast_engine).fit(X)
    for options, message in (
        ({"n_clusters": 21}, "n_samples=20 should be >= n_clusters=21"),
        ({"n_clusters": 3, "init": X[:2]}, "init holds 2 centres of 1 channel; 3 of 1"),
        ({"metric": "warped"}, "The 'metric' parameter"),
        ({"tol": -1.0}, "The 'tol' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            DTWKMeans(engine=fast_engine, **options).fit(X)


def test_reports_iterations(rng, caplog):
    X, _ = warped(rng, 20, 15)
    caplog.set_level("INFO", "skts")
    model = DTWKMeans(2, random_state=0, verbose=1).fit(X)
    lines = [record.getMessage() for record in caplog.records]
    assert sum("inertia" in line for line in lines) >= len(model.history_)


def test_in_a_pipeline_and_pickled(fast_engine, rng):
    X, _ = warped(rng, 20, 15)
    pipeline = make_pipeline(FunctionTransformer(), DTWKMeans(2, engine=fast_engine)).fit(X)
    again = pickle.loads(pickle.dumps(pipeline))
    assert_array_equal(again.predict(X), pipeline.predict(X))


def test_bounds_of_one_centre(rng):
    series = Series(rng.normal(size=(4, 1, 6)), np.full(4, 6))
    centers = series.take(slice(0, 1))
    nearest = NearestCenters(series, distance_of(), run).search(centers)
    assert nearest.follow(centers, centers, np.zeros(4)) is nearest
    assert not nearest.labels.any()


def test_scikit_learn(fast_engine):
    check_with_scikit_learn(DTWKMeans(engine=fast_engine))


def test_docstring(rng):
    check_described(DTWKMeans(2).fit(warped(rng, 12, 20)[0]))
