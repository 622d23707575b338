"""DTWKMeans.partial_fit: batches against plain loops, what is exact, edge cases, state."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skts import DTWKMeans, config_context
from tests import reference_averages as reference


@pytest.fixture
def walks(rng):
    """Series of which batches are taken."""
    return rng.normal(size=(40, 12)).cumsum(axis=1)


def batches(X, *sizes):
    return np.split(X, np.cumsum(sizes))


def state(model):
    """The fitted state, for comparisons to the bit."""
    return {name: pickle.dumps(value) for name, value in vars(model).items() if name != "engine"}


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_batches_are_those_of_plain_loops(fast_engine, rng, window, n_channels):
    X = rng.normal(size=(33, n_channels, 11)).cumsum(axis=2)
    model = DTWKMeans(3, init=X[:3], window=window, engine=fast_engine)
    centers, weights = list(X[:3]), list(np.zeros((3, 11)))
    for number, batch in enumerate(batches(X, 15, 1, 9), start=1):
        labels = reference.nearest(batch, centers, window)
        centers, weights = reference.updated_by_batch(batch, centers, weights, labels, window)
        assert model.partial_fit(batch) is model
        assert model.n_iter_ == number
        assert_allclose(model.cluster_centers_, centers, rtol=1e-11, atol=1e-11)
        labels = reference.nearest(batch, centers, window)
        assert_array_equal(model.labels_, labels)
        assert_array_equal(model.predict(batch), labels)
        inertia = reference.inertia(batch, centers, labels, window)
        assert model.inertia_ == pytest.approx(inertia, rel=1e-11)
        assert model.inertia_ == -model.score(batch)


@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_first_call_is_the_first_iteration_of_fit(fast_engine, walks, init):
    model = DTWKMeans(4, init=init, n_init=1, max_iter=1, random_state=2, engine=fast_engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = clone(model).fit(walks)
    assert len(fitted.history_) == 2
    model.partial_fit(walks)
    assert_array_equal(model.cluster_centers_, fitted.cluster_centers_)
    assert_array_equal(model.labels_, fitted.labels_)
    assert model.inertia_ == fitted.inertia_
    assert not hasattr(model, "history_")


def test_without_warping_one_centre_is_the_mean_of_all(fast_engine, walks):
    model = DTWKMeans(1, window=0, engine=fast_engine)
    for batch in batches(walks, 1, 9, 11):
        model.partial_fit(batch)
    assert_allclose(model.cluster_centers_[0], walks.mean(axis=0), rtol=1e-12)


def test_goes_on_from_a_fit(fast_engine, walks):
    model = DTWKMeans(3, random_state=0, engine=fast_engine).fit(walks[:25])
    centers, weights = list(model.cluster_centers_[:, np.newaxis]), list(np.zeros((3, 12)))
    series = walks[:, np.newaxis]
    _, weights = reference.updated_by_batch(series[:25], centers, weights, model.labels_)
    labels = reference.nearest(series[25:], centers)
    centers, _ = reference.updated_by_batch(series[25:], centers, weights, labels)
    before = model.n_iter_
    model.partial_fit(walks[25:])
    assert model.n_iter_ == before + 1
    assert_allclose(model.cluster_centers_, np.concatenate(centers), rtol=1e-11)
    # and a fit starts anew
    again = clone(model).fit(walks)
    assert_array_equal(model.fit(walks).cluster_centers_, again.cluster_centers_)


def test_a_centre_without_series_in_the_batch_stays(fast_engine):
    X = np.array([[0.0, 0, 1], [0, 0.1, 1], [9, 9.7, 9]])
    model = DTWKMeans(2, init=X[[0, 2]], engine=fast_engine).partial_fit(X)
    before = model.cluster_centers_
    model.partial_fit(X[:2])
    assert_array_equal(model.cluster_centers_[1], before[1])
    assert_array_equal(model.labels_, [0, 0])
    assert model.transform(X).shape == (3, 2)


def test_a_centre_that_never_had_series_moves_to_the_farthest(fast_engine):
    equal, others = np.ones((4, 3)), np.array([[1.0, 1, 1], [5, 5, 5], [9, 9, 8]])
    model = DTWKMeans(3, random_state=0, engine=fast_engine).partial_fit(equal)
    assert_array_equal(model.cluster_centers_, np.ones((3, 3)))
    assert_array_equal(model.labels_, [0, 0, 0, 0])
    model.partial_fit(others)
    assert sorted(model.labels_) == [0, 1, 2]
    assert_array_equal(model.cluster_centers_[model.labels_], others)
    assert model.inertia_ == 0


def test_lists_of_any_lengths(fast_engine):
    first = [np.zeros(2), np.zeros(2), np.zeros(1)]
    model = DTWKMeans(2, init=first[:2], engine=fast_engine).partial_fit(first)
    assert model.cluster_centers_.shape == (2, 2)
    # the new centre is longer
    model.partial_fit([[0.0], [40, 50, 60, 70]])
    assert not hasattr(model, "n_features_in_")
    assert_array_equal(model.labels_, [0, 1])
    assert_array_equal(model.cluster_centers_[1], [40, 50, 60, 70])
    assert_array_equal(model.cluster_centers_[0], [0, 0, np.nan, np.nan])
    model.partial_fit([[42.0, 52, 62, 72], [0, 3.0]])
    assert_array_equal(model.cluster_centers_[1], [41, 51, 61, 71])
    # four zeros before
    assert_allclose(model.cluster_centers_[0], [0, 3 / 5, np.nan, np.nan])


def test_tiles_and_threads_change_nothing(fast_engine, walks):
    X = np.concatenate([walks] * 4)
    models = []
    for memory, n_jobs in ((None, None), ("300KB", 1), ("1MB", 2)):
        model = DTWKMeans(3, random_state=0, engine=fast_engine, n_jobs=n_jobs)
        with config_context(memory=memory):
            for batch in batches(X, 70):
                model.partial_fit(batch)
        models.append(model)
    for other in models[1:]:
        assert_array_equal(other.cluster_centers_, models[0].cluster_centers_)
        assert_array_equal(other.labels_, models[0].labels_)
        assert other.inertia_ == models[0].inertia_


@pytest.mark.gpu
def test_engines_agree(walks):
    numba, cupy = (DTWKMeans(3, random_state=0, engine=name) for name in ("numba", "cupy"))
    for batch in batches(walks, 20, 7):
        numba.partial_fit(batch)
        # a pickle goes on
        cupy = pickle.loads(pickle.dumps(cupy.partial_fit(batch)))
    assert_array_equal(cupy.cluster_centers_, numba.cluster_centers_)
    assert_array_equal(cupy.labels_, numba.labels_)
    assert cupy.inertia_ == numba.inertia_


def test_refuses_what_does_not_go_with_earlier_batches(fast_engine, walks):
    model = DTWKMeans(3, random_state=0, engine=fast_engine)
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        model.partial_fit(walks[:2])
    assert not hasattr(model, "cluster_centers_")
    model.partial_fit(walks)
    before = state(model)
    for wrong, message in (
        (walks[:, :9], "X has 9 features, but DTWKMeans is expecting 12"),
        (np.stack([walks, walks], axis=1), "X has 2 channels, but DTWKMeans is expecting 1"),
        (np.full((2, 12), np.inf), "infinity"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(wrong)
        assert state(model) == before
    model.partial_fit(walks[:1])
    model.cluster_centers_ = model.cluster_centers_[:2]
    with pytest.raises(ValueError, match="holds 2 centres of 12 time points, and what was fitted"):
        model.partial_fit(walks)


def test_reports_batches(walks, caplog):
    caplog.set_level("INFO", "skts")
    DTWKMeans(2, random_state=0, verbose=1).partial_fit(walks)
    assert any("Batch 1, 40 series" in record.getMessage() for record in caplog.records)
