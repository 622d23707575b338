"""dtw_barycenter by subgradients: passes against plain loops, the best of them, weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skts import config_context
from skts.averages import dtw_barycenter
from skts.engines import Series, SubgradientSteps, Warping, run
from tests import reference_averages as reference

#: Few iterations are asked for on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def as_list(X):
    return [np.atleast_2d(x) for x in X]


@pytest.mark.parametrize(("window", "batch_size"), [(None, 1), (2, 1), (2, 3), (None, 9)])
@pytest.mark.parametrize("n_channels", [1, 2])
def test_passes_are_those_of_plain_loops(fast_engine, rng, window, batch_size, n_channels):
    shape = (n_channels,) if n_channels > 1 else ()
    X = [rng.normal(size=(*shape, n)).cumsum(axis=-1) for n in (9, 12, 7, 40, 1)]
    start = rng.normal(size=(*shape, 8))
    weights, present = np.array([1.0, 0.5, 2.0, 0.0, 0.5]), np.array([0, 1, 2, 4])
    orders = np.random.RandomState(3)
    # of four series that count, the weights are 1 on the average
    average, seen, best = np.atleast_2d(start), 0.0, []
    for n_iter in range(7):
        costs = [reference.cost(average, x, window) for x in as_list(X)]
        best.append((np.dot(weights, costs), average))
        found = dtw_barycenter(
            X, init=start, window=window, weights=weights, max_iter=max(1, n_iter), tol=0,
            method="subgradient", batch_size=batch_size, random_state=3, engine=fast_engine,
        )  # fmt: skip
        if found.n_iter == n_iter:
            inertia, expected = min(best, key=lambda one: one[0])
            assert_allclose(np.atleast_2d(found.average), expected, rtol=1e-11, atol=1e-11)
            assert found.inertia == pytest.approx(inertia, rel=1e-11)
        order = orders.permutation(present)
        for first in range(0, 4, batch_size):
            rows, rate = order[first : first + batch_size], 0.05 - 0.045 * min(seen, 1)
            average = reference.subgradient_step(as_list(X), average, rows, rate, weights, window)
            seen += weights[rows].sum() / 4


def test_the_best_average_is_returned(fast_engine, rng):
    X = rng.integers(0, 4, (12, 20)).astype(float)
    dba = dtw_barycenter(X, init=X[0], tol=0, engine=fast_engine)
    last = np.inf
    for max_iter in (1, 3, 60):
        found = dtw_barycenter(
            X, init=dba.average, method="subgradient", max_iter=max_iter, tol=0, random_state=0,
            engine=fast_engine,
        )  # fmt: skip
        assert found.inertia <= min(last, dba.inertia)
        last = found.inertia


def test_a_seed_decides_and_tiles_do_not(fast_engine, rng):
    X = rng.normal(size=(70, 24)).cumsum(axis=1)
    given = {"method": "subgradient", "max_iter": 2, "engine": fast_engine}
    assert_array_equal(
        dtw_barycenter(X, random_state=1, batch_size=70, **given).average,
        dtw_barycenter(X, random_state=1, batch_size=99, **given).average,
    )
    expected = dtw_barycenter(X, random_state=1, **given)
    with config_context(memory="400KB"):
        again = dtw_barycenter(X, random_state=np.random.RandomState(1), n_jobs=1, **given)
    assert_array_equal(again.average, expected.average)
    assert again[1:] == expected[1:]
    assert (dtw_barycenter(X, random_state=2, **given).average != expected.average).any()


@pytest.mark.gpu
def test_engines_agree(rng):
    X = [rng.normal(size=(2, n)).cumsum(axis=1) for n in (20, 13, 5)]
    for batch_size in (1, 2):
        given = {"random_state": 0, "batch_size": batch_size, "max_iter": 2, "weights": [1, 2, 0.3]}
        expected, found = (
            dtw_barycenter(X, method="subgradient", engine=engine, **given)
            for engine in ("numba", "cupy")
        )
        assert_array_equal(found.average, expected.average)
        assert found[1:] == expected[1:]


def test_a_weight_of_zero_and_powers_of_two(fast_engine, rng):
    X = rng.normal(size=(6, 14)).cumsum(axis=1)
    weights = np.array([1, 0, 2, 0.5, 0, 3])
    given = {
        "method": "subgradient",
        "init": X[0],
        "random_state": 0,
        "engine": fast_engine,
        "max_iter": 5,
    }
    expected = dtw_barycenter(X, weights=weights, **given)
    without = dtw_barycenter(X[weights > 0], weights=weights[weights > 0], **given)
    large = dtw_barycenter(X, weights=weights * 2.0**450, **given)
    for found in (without, large):
        assert_array_equal(found.average, expected.average)
    assert without[1:] == expected[1:]


def test_many_points_pull_no_further_than_to_their_mean(fast_engine, rng):
    X = rng.normal(size=(8, 150)).cumsum(axis=1)
    found = dtw_barycenter(
        X, init=X[0, ::50], method="subgradient", random_state=0, max_iter=9, engine=fast_engine
    )
    assert X.min() <= found.average.min() and found.average.max() <= X.max()


def test_tells_when_iterations_end_too_early(rng):
    X = rng.normal(size=(12, 30)).cumsum(axis=1)
    with pytest.warns(ConvergenceWarning, match="after max_iter=1 iterations"):
        dtw_barycenter(X, method="subgradient", random_state=0, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dtw_barycenter(X, method="subgradient", random_state=0, tol=0.5)


@pytest.mark.parametrize("window", [None, 0, 2, 0.3])
@pytest.mark.parametrize(
    ("n", "m", "n_channels", "shortest"),
    [(1, 1, 1, None), (1, 6, 1, 2), (9, 20, 1, 5), (14, 6, 2, 3)],
)
def test_all_steps_at_once_have_the_bits_of_single_ones(
    fast_engine, make_series, rng, n, m, n_channels, shortest, window
):
    series, average = (
        make_series(13, m, n_channels, shortest=shortest),
        make_series(1, n, n_channels),
    )
    # whole numbers: most paths of the first step tie
    series, average = (Series(np.round(one.values), one.lengths) for one in (series, average))
    order, weights = rng.permutation(13)[:11], 0.5 + rng.random(13)
    for batch_size in (1, 4, 20):
        rates = np.full(-(-11 // batch_size), 0.03)
        work = SubgradientSteps(
            series, average, order, weights, rates, batch_size, Warping(window=window)
        )
        assert work.at_once
        found, expected = (
            run(work, engine=fast_engine),
            work.follow(lambda batch: run(batch, engine="oracle")),
        )
        assert_array_equal(found.values, expected.values)
        assert_array_equal(found.costs, expected.costs)


def test_large_batches_and_long_series_go_step_by_step(fast_engine, rng, monkeypatch):
    X = rng.normal(size=(100, 12)).cumsum(axis=1)
    given = {"method": "subgradient", "max_iter": 2, "tol": 0, "random_state": 0}
    large = dtw_barycenter(X, batch_size=70, engine=fast_engine, **given)
    one = dtw_barycenter(X[:20], engine=fast_engine, **given)

    monkeypatch.setattr("skts.engines.families.elastic.subgradients.MOST_STEP_BYTES", 0)
    same = dtw_barycenter(X[:20], engine=fast_engine, **given)
    assert_array_equal(same.average, one.average)
    assert same[1:] == one[1:] and large.n_iter <= 2
