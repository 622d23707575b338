"""Sums along the best paths to averages: every engine against plain loops, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import config_context
from skts.engines import DISTANCES, AlignmentSums, DTWPairs, DTWPath, Series, Warping, run
from skts.engines.core.reduction import Tile
from skts.engines.core.verify import verify
from skts.exceptions import VerificationError


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_array_equal(one, other)


def whole(series):
    """Series of a few whole numbers: most paths tie."""
    values = np.round(2 * series.values) % 3
    beyond = np.arange(values.shape[2]) >= series.lengths[:, None, None]
    return Series(np.where(beyond, 0.0, values), series.lengths)


@pytest.mark.parametrize("window", [None, 0, 3, 0.1])
@pytest.mark.parametrize(
    ("n", "m", "n_channels", "shortest"),
    [(1, 1, 1, None), (2, 5, 1, 1), (5, 3, 2, 1), (9, 70, 1, 3), (66, 20, 1, 12), (35, 65, 3, 30)],
)
def test_sums_and_ties_are_those_of_plain_loops(
    engine, make_series, rng, n, m, n_channels, shortest, window
):
    if engine == "oracle":
        pytest.skip("it is what the others are compared with")
    short = None if shortest is None else min(n, shortest)
    averages = whole(make_series(3, n, n_channels, shortest=short))
    series = whole(make_series(37, m, n_channels, shortest=shortest))
    labels = rng.integers(0, 3, 37)
    for weights in (np.ones(37), rng.random(37)):
        work = AlignmentSums(series, averages, labels, weights, Warping(window=window), 16)
        assert_same(run(work, engine=engine), run(work, engine="oracle"))


def test_what_is_left_out_in_front_is_paid_for_by_each_average(fast_engine, rng):
    """Averages side by side, whose first points no series has."""
    pattern, front = rng.normal(size=12).cumsum() + 5, np.array([[0.1], [0.3], [0.2]])
    averages = np.concatenate([np.repeat(front, 3, axis=1), np.tile(pattern, (3, 1))], axis=1)
    series = pattern + 1e-3 * rng.normal(size=(20, 12))
    series, averages = (Series(x[:, np.newaxis], np.full(*x.shape)) for x in (series, averages))
    labels, erp = np.arange(20) % 3, DISTANCES["erp"](cost="absolute")
    found = run(AlignmentSums(series, averages, labels, np.ones(20), erp), engine=fast_engine)
    pairs = np.column_stack([labels, np.arange(20)])
    assert_array_equal(found.costs, run(DTWPairs(averages, series, pairs, erp), engine="oracle"))
    assert np.abs(found.costs - 3 * front[labels, 0]).max() < 0.1
    assert not found.weights[:, :3].any()


def test_stepped_distances_of_series_of_several_strips(fast_engine, make_series):
    """Of unequal lengths: what passes from strip to strip, and what a shorter series ends with."""
    averages, series = make_series(2, 11, shortest=5), make_series(9, 140, shortest=60)
    labels, erp = np.arange(9) % 2, DISTANCES["erp"](cost="absolute")
    found = run(AlignmentSums(series, averages, labels, np.ones(9), erp), engine=fast_engine)
    pairs = np.column_stack([labels, np.arange(9)])
    assert_array_equal(found.costs, run(DTWPairs(averages, series, pairs, erp), engine="oracle"))


@pytest.mark.parametrize(
    "change", [lambda x: x + 1e9, lambda x: x * 2.0**400, lambda x: x * 2.0**-400, lambda x: 0 * x]
)
def test_offsets_scales_and_constants(fast_engine, make_series, change):
    series, averages = make_series(33, 40), make_series(2, 36)
    series, averages = (Series(change(one.values), one.lengths) for one in (series, averages))
    work = AlignmentSums(series, averages, np.arange(33) % 2, np.ones(33))
    assert_same(run(work, engine=fast_engine), run(work, engine="oracle"))


def test_paths_are_those_of_single_pairs(fast_engine, make_series):
    """An average whose series has weight 1, all others 0, sums what its own path matches."""
    series, averages = whole(make_series(5, 50)), whole(make_series(1, 40))
    for place in range(5):
        weights = np.eye(5)[place]
        work = AlignmentSums(series, averages, np.zeros(5, np.int64), weights)
        found = run(work, engine=fast_engine)
        path, distance = run(
            DTWPath(averages, series.take(slice(place, place + 1))), engine=fast_engine
        )
        assert_array_equal(found.weights[0], np.bincount(path[:, 0]))
        sums = np.bincount(path[:, 0], series.values[place, 0, path[:, 1]])
        assert_array_equal(found.values[0, 0], sums)
        assert np.sqrt(found.costs[place]) == distance


def test_an_average_without_series_gets_nothing(fast_engine, make_series):
    work = AlignmentSums(make_series(4, 9), make_series(3, 7), np.full(4, 1), np.ones(4))
    with config_context(verify=True):
        found = run(work, engine=fast_engine)
    assert not found.values[[0, 2]].any() and not found.weights[[0, 2]].any()
    assert (found.weights[1] >= 4).all()


def test_a_point_that_a_series_does_not_match_is_found_out(make_series):
    work = AlignmentSums(make_series(4, 9), make_series(2, 7), np.arange(4) % 2, np.ones(4))
    answer = run(work, engine="oracle")
    verify(work, "oracle", answer)
    answer.weights[1, 6] = 1.0
    with pytest.raises(VerificationError, match="that some series do not match"):
        verify(work, "oracle", answer)


def test_long_series_go_one_by_one_within_a_small_budget(fast_engine, make_series):
    series, averages = make_series(20, 300, shortest=200), make_series(2, 280)
    work = AlignmentSums(series, averages, np.arange(20) % 2, np.ones(20), Warping(window=30))
    expected = run(work, engine=fast_engine)
    with config_context(memory="300KB" if fast_engine == "numba" else "1MB"):
        assert_same(run(work, engine=fast_engine), expected)


def test_the_grid_follows_from_the_shapes_alone(make_series):
    series, averages = make_series(3000, 4), make_series(2, 4)
    work = AlignmentSums(series, averages, np.zeros(3000, np.int64), np.ones(3000))
    assert work.cell == (64, 1)
    part = work.part(Tile(128, 200, 0, 1))
    assert part.cell == work.cell and len(part.series) == 72
    large = replace(work, averages=make_series(4000, 400))
    # fewer cells where their sums are large
    assert large.cell == (-(-3000 // 16), 1)


def test_sums_do_not_depend_on_tiles(fast_engine, make_series, rng):
    series, averages = make_series(700, 20), make_series(4, 20)
    work = AlignmentSums(series, averages, rng.integers(0, 4, 700), rng.random(700))
    expected = run(work, engine=fast_engine)
    for memory in ("300KB", "2MB"):
        with config_context(memory=memory):
            assert_same(run(work, engine=fast_engine, n_jobs=2), expected)
