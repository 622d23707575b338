"""KShapeClusterer.partial_fit: batches against plain loops, and what it keeps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from skts import KShapeClusterer
from tests import reference_sbd as reference
from tests.cluster.test_kshape import waves


def batches_of_plain_loops(batches, centers, normalize=reference.normalize):
    """Centres, labels and shifts after batches: all members so far, as they were aligned."""
    members, labels = [], []
    k, shape = len(centers), centers.shape[1:]
    for batch in batches:
        X = np.array([normalize(x) for x in batch])
        own, shifts, _ = reference.assign(X, centers)
        members += [reference.shifted(x, shift) for x, shift in zip(X, shifts, strict=True)]
        labels += own.tolist()
        moved = []
        for j in range(k):
            of = np.array([x for x, label in zip(members, labels, strict=True) if label == j])
            found = reference.center(of.reshape(-1, *shape), centered=shape[1] >= 3)
            moved.append(found if (own == j).any() else centers[j])
        centers = np.array(moved)
        own, shifts, distances = reference.assign(X, centers)
    return centers, own, shifts, distances.sum()


@pytest.mark.parametrize(("n_channels", "n_timepoints"), [(1, 24), (2, 12), (1, 2)])
def test_batches_are_those_of_plain_loops(fast_engine, rng, n_channels, n_timepoints):
    X = rng.normal(size=(30, n_channels, n_timepoints)).cumsum(axis=2)
    init = X[:3]
    model = KShapeClusterer(3, init=init, engine=fast_engine)
    batches = [X[:14], X[14:15], X[15:]]
    for number, batch in enumerate(batches, 1):
        model.partial_fit(batch)
        start = np.array([reference.normalize(x) for x in init])
        centers, labels, shifts, inertia = batches_of_plain_loops(batches[:number], start)
        assert_allclose(model.cluster_centers_, centers, atol=1e-9)
        assert_array_equal(model.labels_, labels)
        assert_array_equal(model.shifts_, shifts)
        assert model.inertia_ == pytest.approx(inertia, abs=1e-9)
        assert model.n_iter_ == number and not hasattr(model, "history_")
        assert_array_equal(model.predict(batch), labels)


@pytest.mark.filterwarnings("ignore:Labels still change")
@pytest.mark.parametrize("init", ["plusplus", "series", "given"])
def test_the_first_batch_is_the_first_iteration(fast_engine, rng, init):
    X, _, _ = waves(rng, 40, 32)
    given = {"init": X[:3] if init == "given" else init, "random_state": 4, "engine": fast_engine}
    batch = KShapeClusterer(3, **given).partial_fit(X)
    whole = KShapeClusterer(3, n_init=1, max_iter=1, **given).fit(X)
    assert_array_equal(batch.labels_, whole.labels_)
    assert_array_equal(batch.shifts_, whole.shifts_)
    assert_allclose(batch.cluster_centers_, whole.cluster_centers_, atol=1e-10)
    assert batch.n_iter_ == 1 and batch.engine_ == fast_engine


def test_goes_on_from_a_fit(fast_engine, rng):
    X, y, _ = waves(rng, 90, 32)
    model = KShapeClusterer(3, random_state=0, engine=fast_engine).fit(X[:45])
    before, n_iter = model.cluster_centers_.copy(), model.n_iter_
    model.partial_fit(X[45:60])
    assert model.n_iter_ == n_iter + 1 and not hasattr(model, "history_")
    # earlier members still count
    moved = np.abs(model.cluster_centers_ - before).max()
    alone = KShapeClusterer(3, init=before, engine=fast_engine).partial_fit(X[45:60])
    assert 0 < moved < np.abs(alone.cluster_centers_ - before).max()
    model.partial_fit(X[60:])
    assert adjusted_rand_score(y, model.predict(X)) == 1


def test_the_same_on_both_engines_and_after_a_pickle(fast_engine, rng):
    X, _, _ = waves(rng, 50, 40, n_channels=2, noise=0.4)
    expected = KShapeClusterer(4, random_state=1, engine="numba")
    found = KShapeClusterer(4, random_state=1, engine=fast_engine)
    for rows in (slice(0, 20), slice(20, 35), slice(35, 50)):
        expected.partial_fit(X[rows])
        found = pickle.loads(pickle.dumps(found)).partial_fit(X[rows])
        assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
        assert_array_equal(found.labels_, expected.labels_)
        assert_array_equal(found.shifts_, expected.shifts_)


def test_centers_without_series_stay_and_those_that_never_had_any_move(fast_engine, rng):
    X, _, _ = waves(rng, 30, 32)
    # the last of the given centres is nearest to no series
    init = np.array([X[0], X[1], 0 * X[0]])
    model = KShapeClusterer(3, init=init, engine=fast_engine).partial_fit(X)
    assert set(model.labels_) == {0, 1, 2}
    before, alone = model.cluster_centers_.copy(), model.predict(X)
    model.partial_fit(X[alone == 1])
    for label in set(range(3)) - set(model.predict(X[alone == 1])):
        assert_array_equal(model.cluster_centers_[label], before[label])
    # nothing to move to
    same = KShapeClusterer(2, random_state=0, engine=fast_engine).partial_fit([X[0]] * 3)
    assert same.cluster_centers_.shape == (2, 32) and set(same.labels_) == {0}


def test_series_of_any_size_without_normalisation(fast_engine, rng):
    X, _, _ = waves(rng, 30, 32)
    given = {"init": X[:2], "normalize": False, "engine": fast_engine}
    expected = KShapeClusterer(2, **given).partial_fit(X).partial_fit(4 * X[::-1])
    for power in (-400, 400):
        found = KShapeClusterer(2, **given).partial_fit(np.ldexp(X, power))
        found.partial_fit(np.ldexp(4 * X[::-1], power))
        assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
        assert_array_equal(found.labels_, expected.labels_)
    # a batch that is small beside those before counts nothing
    centers = found.cluster_centers_.copy()
    found.partial_fit(np.ldexp(X[:5], -400))
    assert_allclose(found.cluster_centers_, centers, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Labels still change")
def test_long_series(rng):
    """Centres by iteration instead of all eigenvectors."""
    X, _, _ = waves(rng, 20, 300)
    given = {"init": X[:2], "engine": "numba"}
    found = KShapeClusterer(2, **given).partial_fit(X)
    whole = KShapeClusterer(2, max_iter=1, **given).fit(X)
    assert_allclose(found.cluster_centers_, whole.cluster_centers_, atol=1e-9)


def test_shorter_series_are_filled_and_longer_ones_refused(rng):
    X, _, _ = waves(rng, 20, 32)
    model = KShapeClusterer(2, random_state=0).partial_fit(X)
    model.partial_fit([X[0, :20], X[1]])
    state = pickle.dumps(model)
    with pytest.raises(ValueError, match="A series has 33 time points, and the centres have 32"):
        model.partial_fit([np.append(X[0], 1.0)])
    with pytest.raises(ValueError, match="X has 9 features"):
        model.partial_fit(X[:, :9])
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=3"):
        KShapeClusterer(3).partial_fit(X[:2])
    assert pickle.dumps(model) == state
    other = clone(model).fit(X)
    other.cluster_centers_ = other.cluster_centers_[:1]
    with pytest.raises(ValueError, match="holds 1 centres of 32 time points, and others were"):
        other.partial_fit(X)
