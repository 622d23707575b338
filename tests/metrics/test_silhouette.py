"""Silhouettes against scikit-learn's, and the choice of the number of clusters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.metrics
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from skts import DTWKMeans, DTWKMedoids, KShapeClusterer, config_context
from skts.cluster import choose_n_clusters
from skts.datasets import make_shifted_shapes, make_warped_shapes
from skts.metrics import pairwise_distances, pairwise_sbd, silhouette_samples, silhouette_score


def plain(D, labels):
    """Silhouettes in plain loops."""
    found = []
    for i, own in enumerate(labels):
        means = {}
        for label in set(labels):
            members = [j for j in range(len(D)) if labels[j] == label and j != i]
            means[label] = sum(D[i][j] for j in members) / len(members) if members else None
        a = means.pop(own)
        b = min(means.values())
        found.append(0.0 if a is None or max(a, b) == 0 else (b - a) / max(a, b))
    return found


@pytest.mark.parametrize("kind", ["any", "ties", "names"])
def test_silhouettes_are_those_of_scikit_learn(fast_engine, rng, kind):
    X = rng.normal(size=(70, 2, 9)).cumsum(axis=2)
    labels = rng.integers(0, 5, 70)
    if kind == "ties":
        X, labels = np.round(X), np.append(np.repeat([3, -1, 7], 23), 9)
    if kind == "names":
        X, labels = [x[:, : rng.integers(3, 10)] for x in X], np.array(["b", "a"])[labels % 2]
    D = pairwise_distances(X, window=3, engine=fast_engine)
    wanted = sklearn.metrics.silhouette_samples(D, labels, metric="precomputed")
    found = silhouette_samples(X, labels, window=3, engine=fast_engine)
    assert_array_equal(found, wanted)
    assert_allclose(found, plain(D.tolist(), labels.tolist()), rtol=1e-10, atol=1e-12)
    score = silhouette_score(X, labels, window=3, engine=fast_engine)
    assert score == sklearn.metrics.silhouette_score(D, labels, metric="precomputed")


def test_a_matrix_that_does_not_fit_changes_nothing(fast_engine, rng):
    X, labels = rng.normal(size=(260, 1, 9)).cumsum(axis=2), rng.integers(0, 4, 260)
    found = silhouette_samples(X, labels, window=3, engine=fast_engine)
    with config_context(memory="400kB"):
        again = silhouette_samples(X, labels, window=3, n_jobs=1, engine=fast_engine)
    assert_array_equal(again, found)


def test_shape_based_silhouettes(fast_engine, rng):
    X = make_shifted_shapes(24, 32, random_state=0)[0]
    # one that is not at distance 0 from itself
    X[5] = 0
    labels = np.arange(24) % 3
    for normalize in (True, False):
        D = np.maximum(pairwise_sbd(X, normalize=normalize), 0)
        found = silhouette_samples(
            X, labels, metric="sbd", metric_params={"normalize": normalize}, engine=fast_engine
        )
        assert_allclose(found, plain(D.tolist(), labels.tolist()), atol=1e-9)


def test_alike_and_alone(fast_engine):
    X = np.zeros((4, 3))
    assert_array_equal(silhouette_samples(X, [0, 0, 1, 1], engine=fast_engine), 0)
    X[3] = 5
    assert_array_equal(silhouette_samples(X, [0, 0, 1, 2], engine=fast_engine), [0, 0, 0, 0])
    assert_array_equal(silhouette_samples(X, [0, 0, 0, 2], engine=fast_engine), [1, 1, 1, 0])


def test_refusals(rng):
    X = rng.normal(size=(6, 9))
    labels = np.arange(6) % 2
    for given, options, message in (
        (np.zeros(6), {}, "Number of labels is 1. Valid values are 2 to n_samples - 1"),
        (np.arange(6), {}, "Number of labels is 6"),
        (labels[:5], {}, "inconsistent numbers of samples"),
        (None, {}, r"labels has shape \(\); one label for each of the 6 series"),
        (np.eye(6), {}, r"labels has shape \(6, 6\)"),
        ([0, 1, np.nan, 0, 1, 1], {}, "Input labels contains NaN"),
        (np.ma.array(labels, mask=labels), {}, "labels has a masked label, at 1"),
        (["a", "b", None, "a", "b", "b"], {}, "labels of several types: NoneType, str"),
        (labels, {"metric": "sbd", "window": 3}, "window=3 does not go with metric='sbd'"),
        (labels, {"metric": "sbd", "metric_params": {"g": 1}}, "'g' is no parameter of metric="),
        (labels, {"metric": "cosine"}, "The 'metric' parameter"),
    ):
        with pytest.raises(ValueError, match=message):
            silhouette_samples(X, given, **options)
    with pytest.raises(TypeError, match="normalize=1 of metric='sbd'"):
        silhouette_score(X, labels, metric="sbd", metric_params={"normalize": 1})


@pytest.mark.parametrize("kind", ["kmeans", "kmeans of wdtw", "kmedoids", "kshape"])
def test_the_number_of_clusters(fast_engine, kind):
    if kind == "kshape":
        X = make_shifted_shapes(40, 48, n_shapes=3, max_shift=8, noise=0.1, random_state=2)[0]
        model = KShapeClusterer(n_init=5, random_state=0, engine=fast_engine)
        options = {"metric": "sbd"}
    else:
        X, y = make_warped_shapes(40, 40, noise=0.05, random_state=0)
        X += 5 * y[:, np.newaxis]
        options = {"window": 0.2}
        if kind == "kmeans of wdtw":
            options |= {"metric": "wdtw", "metric_params": {"g": 0.5}}
        model = DTWKMeans(n_init=3, random_state=0, engine=fast_engine, **options)
        if kind == "kmedoids":
            model = DTWKMedoids(init="build", engine=fast_engine, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = choose_n_clusters(model, X, [4, 3, 2, 3, 5])
        fits = [clone(model).set_params(n_clusters=k).fit(X) for k in (2, 3, 4, 5)]
    assert_array_equal(found.n_clusters, [2, 3, 4, 5])
    assert_array_equal(found.inertia, [one.inertia_ for one in fits])
    scores = [silhouette_score(X, one.labels_, engine=fast_engine, **options) for one in fits]
    assert_allclose(found.silhouette, scores, rtol=1e-12)
    best = int(np.argmax(scores))
    assert found.best == best + 2 == len(found.estimator.cluster_centers_)
    assert found.best == 3 or kind == "kshape"
    assert_array_equal(found.estimator.labels_, fits[best].labels_)
    assert not hasattr(model, "labels_")


def test_of_equal_silhouettes_the_least_number_is_taken(fast_engine):
    X = np.repeat([[0.0, 0], [9, 9]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="Only 2 medoids"):
        found = choose_n_clusters(DTWKMedoids(init="build", engine=fast_engine), X, [2, 3, 4])
    assert_array_equal(found.silhouette, 1)
    assert found.best == 2


def test_refused_choices(rng):
    X = rng.normal(size=(6, 9))
    model = DTWKMedoids(init="build")
    for numbers, error, message in (
        ([1, 2], ValueError, "n_clusters holds 1; silhouettes need from 2 to n_samples - 1 = 5"),
        ([6], ValueError, "n_clusters holds 6"),
        ([], ValueError, "n_clusters holds no number"),
        ([2.0], TypeError, "n_clusters holds 2.0, which is no integer"),
        ([True], TypeError, "n_clusters holds True"),
        (3, TypeError, "n_clusters=3 is no iterable"),
    ):
        with pytest.raises(error, match=message):
            choose_n_clusters(model, X, numbers)
    with pytest.raises(ValueError, match="init of the estimator holds 2 clusters, and fits"):
        choose_n_clusters(DTWKMedoids(init=[0, 1]), X, [2, 3])
    with pytest.raises(TypeError, match="estimator is a KMeans; DTWKMeans, DTWKMedoids or KShape"):
        choose_n_clusters(KMeans(), X, [2])
    with (
        pytest.raises(ValueError, match="No fit has a silhouette"),
        pytest.warns(ConvergenceWarning, match="Only 1 medoid has"),
    ):
        choose_n_clusters(model, np.zeros((6, 9)), [2])


@pytest.mark.parametrize("function", [silhouette_samples, silhouette_score])
def test_of_a_matrix_of_distances_scikit_learn_has_it(function):
    D = 1.0 - np.eye(4)
    with pytest.raises(ValueError, match=r"take sklearn\.metrics\.silhouette_score or "):
        function(D, [0, 0, 1, 1], metric="precomputed")
    # it is no choice
    with pytest.raises(ValueError, match="'metric' parameter .* must be a str among") as raised:
        function(D, [0, 0, 1, 1], metric="cosine")
    assert "precomputed" not in str(raised.value)
