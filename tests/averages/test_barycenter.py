"""dtw_barycenter: the loop against plain loops, starts, weights, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skts import config_context
from skts.averages import Barycenter, dtw_barycenter
from skts.metrics import pairwise_dtw
from tests import reference_averages as reference

#: Few iterations are asked for on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def as_list(X):
    return [np.atleast_2d(x) for x in X]


@pytest.mark.parametrize("window", [None, 2, 0.3])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_iterations_are_those_of_plain_loops(fast_engine, rng, window, n_channels):
    shape = (n_channels,) if n_channels > 1 else ()
    X = [rng.normal(size=(*shape, n)).cumsum(axis=-1) for n in (9, 12, 7, 12, 1)]
    start = rng.normal(size=(*shape, 8))
    weights = np.array([1.0, 0.5, 2.0, 0.0, 0.25])
    expected, labels = [np.atleast_2d(start)], np.zeros(5, int)
    for n_iter in range(1, 5):
        expected = reference.updated(as_list(X), expected, labels, window, weights)
        found = dtw_barycenter(
            X, init=start, window=window, weights=weights, max_iter=n_iter, tol=0,
            engine=fast_engine,
        )  # fmt: skip
        assert isinstance(found, Barycenter)
        if found.n_iter < n_iter:
            break
        assert_allclose(np.atleast_2d(found.average), expected[0], rtol=1e-12, atol=1e-12)
        costs = [reference.cost(expected[0], x, window) for x in as_list(X)]
        assert found.inertia == pytest.approx(np.dot(weights, costs), rel=1e-12)


def test_the_inertia_never_rises(fast_engine, rng):
    for X in (rng.normal(size=(12, 30)).cumsum(axis=1), rng.integers(0, 3, (9, 20)).astype(float)):
        last = np.inf
        for max_iter in (1, 2, 3, 5, 8, 13, 200):
            found = dtw_barycenter(X, max_iter=max_iter, tol=0, engine=fast_engine)
            assert found.inertia <= last
            last = found.inertia
        assert found.n_iter < 200
        squares = pairwise_dtw(found.average[np.newaxis], X) ** 2
        assert found.inertia == pytest.approx(squares.sum(), rel=1e-12)


def test_starts(fast_engine, rng):
    X = rng.normal(size=(7, 15)).cumsum(axis=1)
    given = {"max_iter": 3, "tol": 0, "engine": fast_engine}
    mean = dtw_barycenter(X, init=X.mean(axis=0), **given)
    assert_array_equal(dtw_barycenter(X, **given).average, mean.average)
    medoid = np.argmin((pairwise_dtw(X) ** 2).sum(axis=1))
    same = dtw_barycenter(X, init=X[medoid], **given)
    assert_array_equal(dtw_barycenter(X, init="medoid", **given).average, same.average)
    # as long as the longest, or as the start
    ragged = [X[0, :4], X[1, :15], X[2, :1]]
    assert dtw_barycenter(ragged, **given).average.shape == (15,)
    assert dtw_barycenter(ragged, init=X[0, :6], **given).average.shape == (6,)


def test_the_mean_of_equal_series_is_the_series(fast_engine):
    x = np.array([0.0, 1.0, 1.0, 5.0])
    found = dtw_barycenter([x, x, x], engine=fast_engine)
    assert_array_equal(found.average, x)
    assert found.inertia == 0.0 and found.n_iter == 1


def test_weights(fast_engine, rng):
    X = rng.normal(size=(6, 14)).cumsum(axis=1)
    given = {"init": X[0], "tol": 0, "engine": fast_engine}
    once = dtw_barycenter(X, weights=[1, 2, 0, 1, 3, 1], **given)
    often = dtw_barycenter(np.repeat(X, [1, 2, 0, 1, 3, 1], axis=0), **given)
    assert_allclose(once.average, often.average, rtol=1e-9)
    assert once.inertia == pytest.approx(often.inertia, rel=1e-9)
    # a power of two changes no bit
    large = dtw_barycenter(X, weights=np.array([1, 2, 0, 1, 3, 1]) * 2.0**450, **given)
    assert_array_equal(large.average, once.average)
    assert large.inertia == once.inertia * 2.0**450


def test_forms_of_the_average(fast_engine, rng):
    X = rng.normal(size=(4, 1, 9))
    assert dtw_barycenter(X, engine=fast_engine).average.shape == (1, 9)
    assert dtw_barycenter(X[:, 0], engine=fast_engine).average.shape == (9,)
    X = rng.normal(size=(4, 3, 9))
    assert dtw_barycenter(X, engine=fast_engine).average.shape == (3, 9)
    assert dtw_barycenter(X, init=X[0, :, :5], engine=fast_engine).average.shape == (3, 5)


def test_tiles_and_threads_change_nothing(fast_engine, rng):
    X = rng.normal(size=(500, 24)).cumsum(axis=1)
    expected = dtw_barycenter(X, max_iter=3, engine=fast_engine)
    for memory, n_jobs in (("400KB", 1), ("1MB", 2)):
        with config_context(memory=memory):
            found = dtw_barycenter(X, max_iter=3, engine=fast_engine, n_jobs=n_jobs)
        assert_array_equal(found.average, expected.average)
        assert found[1:] == expected[1:]


def test_tells_when_iterations_end_too_early(rng):
    X = rng.normal(size=(12, 30)).cumsum(axis=1)
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 iterations"):
        dtw_barycenter(X, max_iter=1, tol=0)


def test_wrong_arguments(rng):
    X = rng.normal(size=(4, 9))
    for given, message in (
        ({"init": np.zeros((2, 9))}, "init has 2 channels, and the series of X have 1"),
        ({"init": "median"}, "The 'init' parameter"),
        ({"weights": [1, 2, 3]}, r"weights has the shape \(3,\)"),
        ({"weights": [1, 2, -3, 0]}, "weights is -3 for series 2"),
        ({"weights": np.zeros(4)}, "weights is zero for all series"),
        ({"max_iter": 0}, "The 'max_iter' parameter"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            dtw_barycenter(X, **given)
