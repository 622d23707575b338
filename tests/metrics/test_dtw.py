"""DTW as functions: against the oracle, stored results of independent packages, and what holds."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.base import check_series
from skts.engines import DTWMatrix, find_engine
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
    with pytest.raises(ValueError, match="x has 1 channel where y has 2"):
        dtw(np.zeros(3), np.zeros((2, 3)))


def test_a_matrix_follows_its_array(engine, rng):
    """Data prepared from an array of the user must not outlive its content."""
    X, Y = rng.normal(size=(3, 2, 6)), rng.normal(size=(5, 2, 6))
    for _ in range(2):
        assert_array_equal(pairwise_dtw(X, Y, engine=engine), reference.pairwise_dtw(X, Y))
        assert_array_equal(pairwise_dtw(Y, engine=engine), reference.pairwise_dtw(Y, Y))
        Y *= 2
        X += 1


def test_unequal_lengths_in_both_sets(engine, rng):
    X = [rng.normal(size=(2, n)) for n in (1, 7, 4)]
    Y = [rng.normal(size=(2, n)) for n in (6, 1, 9, 2)]
    assert_array_equal(pairwise_dtw(X, Y, engine=engine), reference.pairwise_dtw(X, Y))
    assert_array_equal(pairwise_dtw(X, engine=engine), reference.pairwise_dtw(X, X))


def test_single_points(engine):
    assert_array_equal(pairwise_dtw([[0], [3]], [[4]], engine=engine), [[4.0], [1.0]])
    assert dtw([2], [5, 6], engine=engine) == 5.0
    assert dtw([[3.0], [4.0]], [[0.0], [0.0]], engine=engine) == 5.0


def test_known_paths():
    path, distance = dtw_path([0, 1, 2, 2], [0, 0, 1, 2], engine="numba")
    assert_array_equal(path, [[0, 0], [0, 1], [1, 2], [2, 3], [3, 3]])
    assert path.dtype == np.int64
    assert distance == 0.0
    assert type(distance) is float


def test_auto_finds_an_engine_with_paths(rng):
    x, y = rng.normal(size=9), rng.normal(size=7)
    path, distance = dtw_path(x, y)
    expected = dtw_path(x, y, engine="numba")
    assert_array_equal(path, expected[0])
    assert distance == expected[1]


# Whole numbers make ties; the others make rounding.
# series of less than 2^-480 are refused
ordinary = st.floats(-1e3, 1e3).map(lambda x: x if abs(x) >= 2.0**-480 else 0.0)
points = st.one_of(st.integers(-3, 3).map(float), ordinary)
series_of = st.integers(1, 3).flatmap(
    lambda channels: st.tuples(
        *[
            arrays(np.float64, st.tuples(st.just(channels), st.integers(1, 12)), elements=points)
            for _ in range(2)
        ]
    )
)


@settings(max_examples=150, deadline=None)
@given(series_of)
def test_any_path_is_valid_best_and_costs_its_distance(pair):
    x, y = pair
    path, distance = dtw_path(x, y, engine="numba")
    assert_array_equal(path[0], [0, 0])
    assert_array_equal(path[-1], [x.shape[1] - 1, y.shape[1] - 1])
    assert {tuple(step) for step in np.diff(path, axis=0)} <= {(0, 1), (1, 0), (1, 1)}
    along = np.sqrt(np.sum((x[:, path[:, 0]] - y[:, path[:, 1]]) ** 2))
    assert_allclose(along, distance, rtol=1e-12)
    assert distance == dtw(x, y, engine="numba")
    assert_array_equal(path, reference.dtw_path(x, y)[0])


@settings(max_examples=150, deadline=None)
@given(series_of)
def test_any_distance_is_symmetric_and_at_most_euclidean(pair):
    x, y = pair
    assert dtw(x, x, engine="numba") == 0.0
    assert dtw(x, y, engine="numba") == dtw(y, x, engine="numba")
    assert dtw(x[:, ::-1], y[:, ::-1], engine="numba") == pytest.approx(
        dtw(x, y, engine="numba"), rel=1e-12
    )
    width = min(x.shape[1], y.shape[1])
    x, y = x[:, :width], y[:, :width]
    assert dtw(x, y, engine="numba") <= np.sqrt(np.sum((x - y) ** 2)) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(series_of)
def test_any_point_repeated_costs_nothing(pair):
    x, _ = pair
    assert dtw(x, np.repeat(x, 3, axis=1), engine="numba") == 0.0


def test_distances_follow_units_and_ignore_a_common_shift(fast_engine, rng):
    X = rng.integers(-50, 50, size=(6, 15)).astype(float)  # exact in every step
    matrix = pairwise_dtw(X, engine=fast_engine)
    assert_array_equal(pairwise_dtw(X + 1024, engine=fast_engine), matrix)
    assert_array_equal(pairwise_dtw(X * 2.0**-30, engine=fast_engine), matrix * 2.0**-30)
    assert_array_equal(pairwise_dtw(-X, engine=fast_engine), matrix)


def test_a_matrix_in_many_tiles_has_the_same_bits(fast_engine, rng):
    X = rng.normal(size=(150, 25))
    expected = pairwise_dtw(X, engine=fast_engine)
    series = check_series(X)
    with config_context(memory="1MiB"):  # too little for NumPy in place of kernels
        least = sum(find_engine(fast_engine).footprint(DTWMatrix(series, series), 1, 64))
    seen = []
    with config_context(memory=least, progress=lambda done, total: seen.append(total)):
        for n_jobs in (1, 2, -1, None):
            assert_array_equal(pairwise_dtw(X, engine=fast_engine, n_jobs=n_jobs), expected)
    assert min(seen) > 150
    with config_context(memory=least - 1), pytest.raises(MemoryBudgetError, match="the budget is"):
        pairwise_dtw(X, engine=fast_engine)


def test_two_sets_whose_matrix_cannot_fit_are_refused_before_any_work(monkeypatch):
    numba = type(find_engine("numba"))
    monkeypatch.setattr(numba, "compute", lambda *arguments: pytest.fail("work was done"))
    many = np.broadcast_to(np.ones((1, 1)), (3_000_000, 1))
    with pytest.raises(MemoryBudgetError, match=r"\(3000000, 2000000\) needs 43.66 TiB"):
        pairwise_dtw(many, many[:2_000_000], engine="numba")


def test_bad_requests():
    with pytest.raises(ValueError, match="engine='abacus' is not known; there are 'auto', 'numba'"):
        dtw([1], [2], engine="abacus")
    with pytest.raises(ValueError, match="'n_jobs' parameter .* Got 0"):
        pairwise_dtw([[1, 2], [2, 1]], engine="numba", n_jobs=0)
    for empty in ([], np.array([])):
        with pytest.raises(ValueError, match=r"0 feature|0 sample|is empty"):
            dtw(empty, [1.0])
    with pytest.raises(ValueError, match="x contains infinity .* time point 1"):
        dtw_path([1, np.inf], [1])
