"""Elastic distances as options of estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skts import DTWNearestNeighbor
from skts._metrics import METRICS
from skts.engines import replace_kernels
from skts.metrics import pairwise_distances
from tests.contract import check_with_scikit_learn


@pytest.mark.parametrize("metric", ["msm", "edr", "wdtw"])
def test_scikit_learns_checks(fast_engine, metric, monkeypatch):
    """A sum of channels, a number of each series, a table of weights."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with replace_kernels(always=fast_engine == "numba"):
        check_with_scikit_learn(DTWNearestNeighbor(metric=metric, engine=fast_engine))


@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_are_those_of_the_matrix(fast_engine, rng, metric):
    X, Q = rng.normal(size=(9, 2, 12)), rng.normal(size=(4, 2, 12))
    model = DTWNearestNeighbor(3, metric=metric, engine=fast_engine)
    with replace_kernels(always=fast_engine == "numba"):
        D = pairwise_distances(Q, X, metric=metric, engine=fast_engine)
        model.fit(X, np.arange(9) % 2)
        distances, indices = pickle.loads(pickle.dumps(model)).kneighbors(Q)
        order = np.argsort(D, axis=1, kind="stable")[:, :3]
        assert_array_equal(indices, order)
        assert_array_equal(distances, np.take_along_axis(D, order, axis=1))
        # with parameters, through a clone
        given = {
            name: 0.5 if default is None else 2 if limits.whole else 2 * default + 0.25
            for name, (default, limits) in METRICS[metric].parameters.items()
        }
        model = clone(model).set_params(metric_params=given).fit(X, np.arange(9) % 2)
        D = pairwise_distances(Q, X, metric=metric, metric_params=given, engine=fast_engine)
        assert_array_equal(model.kneighbors(Q)[0], np.sort(D, axis=1)[:, :3])


def test_names_that_mean_the_same(fast_engine, rng):
    X = rng.normal(size=(5, 9))
    on = {"engine": fast_engine}
    same = pairwise_distances(X, metric="dog_keeper", **on)
    assert_array_equal(pairwise_distances(X, metric="frechet", **on), same)
    same = pairwise_distances(X, metric="dtw", window=0, **on)
    assert_array_equal(pairwise_distances(X, metric="euclidean", **on), same)
