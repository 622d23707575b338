"""DTWKMeans under other metrics than DTW."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from skts import DTWKMeans
from skts.metrics import pairwise_distances
from tests import reference_averages as reference

#: Few iterations are asked for on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: Others than the first have more kernels to compile.
METRICS = ["msm", "shape_dtw"] + [
    pytest.param(metric, marks=pytest.mark.slow)
    for metric in ("adtw", "ddtw", "dog_keeper", "edr", "erp", "lcss", "twe", "wdtw")
]
SQUARED = {"adtw", "ddtw", "dog_keeper", "euclidean", "shape_dtw", "wdtw"}


def groups(rng, n_channels=1):
    """Series with few digits, of two kinds and several lengths."""
    kinds = [rng.normal(size=(n_channels, 12)).cumsum(axis=1) * 2 for _ in range(2)]
    lengths = (12, 9, 11, 10, 12, 8, 12, 10, 9)
    return [
        np.round((kinds[k % 2][:, :n] + 0.3 * rng.normal(size=(n_channels, n))) * 16) / 16
        for k, n in enumerate(lengths)
    ]


@pytest.mark.long
@pytest.mark.parametrize("metric", METRICS)
def test_an_iteration_is_that_of_plain_loops(fast_engine, rng, metric):
    X = groups(rng, 2)
    init, window = [X[0], X[1]], 3
    model = DTWKMeans(
        2, init=init, metric=metric, window=window, max_iter=1, tol=0, engine=fast_engine
    ).fit(X)
    options = {"metric": metric, "window": window, "engine": "oracle"}

    def costs(centers):
        found = pairwise_distances(X, centers, **options)
        return found**2 if metric in SQUARED else found

    labels = costs(init).argmin(axis=1)
    moved = [
        reference.elastic_update(
            metric, [x for x, own in zip(X, labels, strict=True) if own == k], init[k], window
        )
        for k in range(2)
    ]
    sums = [costs(centers).min(axis=1).sum() for centers in (init, moved)]
    assert model.inertia_ == pytest.approx(min(sums), rel=1e-12)
    assert model.history_[0] == pytest.approx(sums[0], rel=1e-12)
    expected = (init, moved)[int(np.argmin(sums))]
    for found, center in zip(model.cluster_centers_, expected, strict=True):
        assert_allclose(found[:, : center.shape[1]], center, rtol=1e-12)
    assert_array_equal(model.predict(X), model.labels_)
    assert_array_equal(model.transform(X).argmin(axis=1), model.labels_)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)


@pytest.mark.parametrize("metric", [pytest.param("adtw", marks=pytest.mark.slow), "msm"])
def test_the_first_batch_is_the_first_iteration(fast_engine, rng, metric):
    X = groups(rng, 2)
    given = {"init": [X[0], X[1]], "metric": metric, "tol": 0, "engine": fast_engine}
    batch = DTWKMeans(2, **given).partial_fit(X)
    whole = DTWKMeans(2, max_iter=1, **given).fit(X)
    if metric == "adtw":
        assert_array_equal(batch.cluster_centers_, whole.cluster_centers_)
        assert batch.inertia_ == whole.inertia_
    # and goes on from there, point by point and, under msm, channel by channel
    kinds = 2 if metric == "msm" else 1
    assert batch._weights.shape == (2, kinds, batch.cluster_centers_.shape[2])
    before = batch._weights.sum()
    again = batch.partial_fit(X[:3])
    assert again.n_iter_ == 2 and again._weights.sum() > before
    # what fit has found is gone on from, too
    assert whole.partial_fit(X).n_iter_ == whole.n_iter_


def test_runs_keep_the_best_where_iterations_may_raise_the_inertia(rng):
    X = [x[0] for x in groups(rng)]
    model = DTWKMeans(3, metric="msm", random_state=0, tol=0, engine="numba").fit(X)
    assert (np.diff(model.history_) < 0).all()
    assert model.history_[-1] == model.inertia_ == -model.score(X)
    assert_array_equal(model.predict(X), model.labels_)


def test_the_euclidean_kmeans_is_that_of_scikit_learn(fast_engine, rng):
    X = rng.normal(size=(60, 7)) + 3 * rng.integers(0, 3, 60)[:, np.newaxis]
    ours = DTWKMeans(3, init=X[:3], metric="euclidean", tol=0, engine=fast_engine).fit(X)
    theirs = KMeans(3, init=X[:3], n_init=1, tol=0).fit(X)
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-12)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-12)


def test_wrong_arguments(rng):
    X = rng.normal(size=(6, 9))
    for given, message in (
        ({"metric_params": {"g": 1.0}}, "'g' is no parameter of metric='dtw'"),
        ({"metric": "euclidean", "window": 0.1}, "does not go with metric='euclidean'"),
        ({"metric": "ddtw", "init": X[:2, :2]}, "at least 3 time points"),
    ):
        with pytest.raises(ValueError, match=message):
            DTWKMeans(2, **given).fit(X)
