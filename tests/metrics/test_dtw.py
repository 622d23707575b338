"""DTW as functions: against the oracle, stored results of independent packages, and what holds."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from skts.exceptions import MemoryBudgetError
from skts.metrics import dtw, dtw_path, pairwise_dtw


def test_dtw(engine, rng):
    for n, m in ((1, 1), (4, 9), (20, 20)):
        x, y = rng.normal(size=n), rng.normal(size=m)
        assert dtw(x, y, engine=engine) == reference.dtw(x, y)
    x, y = rng.normal(size=(3, 5)), rng.normal(size=(3, 8))
    assert dtw(x, y, engine=engine) == reference.dtw(x, y)
    assert type(dtw([1, 2], [2, 4], engine=engine)) is float


def test_pairwise_of_two_sets_and_of_one(engine, rng):
    X, Y = rng.normal(size=(4, 6)), [rng.normal(size=n) for n in (3, 8, 5)]
    assert_array_equal(pairwise_dtw(X, Y, engine=engine), reference.pairwise_dtw(X, Y))
    assert_array_equal(pairwise_dtw(X, engine=engine), reference.pairwise_dtw(X, X))


def test_paths(rng):
    for n, m in ((1, 7), (12, 5), (30, 30)):
        x, y = rng.normal(size=n), rng.normal(size=m)
        path, distance = dtw_path(x, y, engine="numba")
        assert distance == dtw(x, y, engine="numba")
        assert_array_equal(path[0], [0, 0])
        assert_array_equal(path[-1], [n - 1, m - 1])
        steps = np.diff(path, axis=0)
        assert set(map(tuple, steps)) <= {(0, 1), (1, 0), (1, 1)}
        along = np.sqrt(np.sum((x[path[:, 0]] - y[path[:, 1]]) ** 2))
        assert_allclose(along, distance, rtol=1e-12)
        assert_array_equal(path, reference.dtw_path(x, y)[0])


def test_what_holds(fast_engine, rng):
    X = rng.normal(size=(12, 25))
    matrix = pairwise_dtw(X, engine=fast_engine)
    assert_array_equal(np.diag(matrix), 0)
    assert_array_equal(matrix, matrix.T)
    euclidean = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    assert np.all(matrix <= euclidean * (1 + 1e-12))
    assert_allclose(pairwise_dtw(3 * X, engine=fast_engine), 3 * matrix, rtol=1e-12)


def test_a_matrix_that_cannot_fit_is_refused_at_once():
    X = np.zeros((2_000_000, 1))
    with pytest.raises(MemoryBudgetError, match=r"\(2000000, 2000000\) needs 29.1 TiB; this mach"):
        pairwise_dtw(X, engine="numba")


def test_channels_must_agree():
    with pytest.raises(ValueError, match="X has 2 channels where Y has 3"):
        pairwise_dtw(np.zeros((1, 2, 4)), np.zeros((1, 3, 4)))
    with pytest.raises(ValueError, match="x has 1 channels where y has 2"):
        dtw(np.zeros(3), np.zeros((2, 3)))
