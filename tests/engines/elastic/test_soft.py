"""Soft-DTW and its gradient: every engine against plain loops, engines bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import Series, SoftDTWGradient, SoftDTWMatrix, Warping, find_engine, run
from skts.engines.core.reduction import Tile
from skts.engines.numba.elastic.soft import _lanes
from skts.metrics import pairwise_dtw, soft_dtw, soft_dtw_gradient
from tests import reference_averages as reference

SHAPES = [
    (1, 1, 1, None),
    (2, 5, 1, 1),
    (5, 3, 2, 1),
    (9, 70, 1, 3),
    (66, 20, 1, 12),
    (35, 65, 3, 30),
]


def each(series):
    """Series one by one, without padding."""
    return [x[:, :n] for x, n in zip(series.values, series.lengths, strict=True)]


@pytest.mark.parametrize("gamma", [1e-3, 20.0])
@pytest.mark.parametrize("window", [None, 0, 3, 0.1])
@pytest.mark.parametrize(("n", "m", "n_channels", "shortest"), SHAPES)
def test_values_and_gradients_are_those_of_plain_loops(
    fast_engine, make_series, rng, n, m, n_channels, shortest, window, gamma
):
    rows = make_series(3, n, n_channels, shortest=None if shortest is None else min(n, shortest))
    cols = make_series(35, m, n_channels, shortest=shortest)
    warping = Warping(window=window)
    found = run(SoftDTWMatrix(rows, cols, gamma, warping), engine=fast_engine)
    # some have a weight: plain loops are slow
    some = slice(0, 35, 7)
    weights = np.zeros(35)
    weights[some] = rng.random(5)
    average = rows.take(slice(0, 1))
    average = Series(average.values[:, :, : average.lengths[0]].copy(), average.lengths)
    slope = run(SoftDTWGradient(cols, average, weights, gamma, warping), engine=fast_engine)
    assert_array_equal(slope.values, found[0])
    total = np.zeros(average.shape[1:])
    for place, y in zip(range(35)[some], each(cols)[some], strict=True):
        for row, x in enumerate(each(rows)):
            value, derivatives = reference.soft_dtw(x, y, gamma, window)
            assert_allclose(found[row, place], value, rtol=1e-11, atol=1e-11 * gamma)
            if row == 0:
                total += weights[place] * derivatives
    # sums that a path of exp(-R / gamma) tells apart are off by R / gamma roundings
    size = np.abs(total).max() * (1 + np.abs(found).max() / gamma)
    assert_allclose(slope.gradient, total, rtol=0, atol=1e-14 * size + 1e-300)


@pytest.mark.gpu
def test_gradients_of_many_strips(make_series):
    """The weights of each strip are found again."""
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    X, average = make_series(2, 2, 1), make_series(1, 1030, 1)
    work = SoftDTWGradient(X, average, np.ones(2), 1.0, Warping(window=None))
    found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
    assert_array_equal(found.gradient, expected.gradient)


@pytest.mark.gpu
@pytest.mark.parametrize("gamma", [1e-6, 1.0])
@pytest.mark.parametrize("window", [None, 2, 0.2])
@pytest.mark.parametrize(("n", "m", "n_channels", "shortest"), SHAPES)
def test_engines_have_the_same_bits(make_series, rng, n, m, n_channels, shortest, window, gamma):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    rows = make_series(4, n, n_channels, shortest=None if shortest is None else min(n, shortest))
    cols = make_series(37, m, n_channels, shortest=shortest)
    average = Series(rows.values[:1, :, : rows.lengths[0]].copy(), rows.lengths[:1])
    for work in (
        SoftDTWMatrix(rows, cols, gamma, Warping(window=window)),
        SoftDTWGradient(cols, average, rng.random(37), gamma, Warping(window=window), 16),
    ):
        found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
        for one, other in zip(found, expected, strict=True):
            assert_array_equal(one, other)


@pytest.mark.gpu
@pytest.mark.parametrize("n_channels", [1, 2])
def test_launches_of_few_pairs_find_the_same(make_series, monkeypatch, n_channels):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    from skts.engines.cupy.elastic import soft

    rows, cols = make_series(5, 9, n_channels, shortest=6), make_series(2, 12, n_channels)
    work = SoftDTWMatrix(rows, cols, 0.5, Warping(window=None))
    wanted = run(work, engine="cupy")
    assert_array_equal(run(work, engine="numba"), wanted)
    monkeypatch.setattr(soft, "MOST_PAIRS", 4)
    assert_array_equal(run(work, engine="cupy"), wanted)


@pytest.mark.gpu
def test_as_many_gradients_are_under_way_as_have_room(make_series, monkeypatch):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    from skts.engines.cupy.elastic import soft
    from skts.engines.cupy.elastic.dtw import stride

    warps, load_kernel = {}, soft.load_kernel

    def load_and_watch(file, name):
        def launch(blocks, threads, **arguments):
            warps[name] = blocks * threads // 32 if name == soft.GRADIENTS else 0
            load_kernel(file, name)(blocks, threads, **arguments)

        return launch

    work = SoftDTWGradient(make_series(37, 9), make_series(1, 6), np.ones(37), 0.5)
    wanted, each = run(work, engine="numba"), soft.weight_bytes(6, stride(9))
    monkeypatch.setattr(soft, "load_kernel", load_and_watch)
    for room in (0, 8, 16):
        monkeypatch.setattr(
            type(find_engine("cupy")), "_most_weights", lambda engine, room=room: room * each
        )
        found = run(work, engine="cupy")
        assert warps[soft.GRADIENTS] == max(4, room)
        for one, other in zip(found, wanted, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("count", [1, 5, 25])
def test_as_many_weights_lie_side_by_side_as_have_room(count):
    """Three in float64 for each cell and the borders."""
    each = 3 * 8 * 40 * 40
    assert _lanes(39, 40, count * each) == count
    assert _lanes(39, 40, (count + 1) * each - 1) == count
    assert _lanes(39, 40, 0) == 1


@pytest.mark.gpu
def test_memory_is_said_for_all_warps_of_a_large_device():
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    from skts.engines.cupy.elastic import soft, soft_tiles

    assert soft_tiles.MOST_WARPS >= 132 * soft.WARPS


def test_a_small_gamma_leaves_the_best_path(fast_engine, make_series):
    X = make_series(6, 40, shortest=20)
    found = run(SoftDTWMatrix(X, X, 1e-9), engine=fast_engine)
    assert_allclose(found, pairwise_dtw([x[0] for x in each(X)]) ** 2, rtol=1e-9, atol=1e-6)
    assert_array_equal(found, found.T)


def test_gamma_may_be_an_integer_of_more_than_64_bits(fast_engine):
    x, y = [1.0, 2.0, 0.0], [2.0, 0.0]
    for function in (soft_dtw, lambda *pair, **more: soft_dtw_gradient(*pair, **more).value):
        whole = function(x, y, gamma=10**20, engine=fast_engine)
        assert whole == function(x, y, gamma=1e20, engine=fast_engine)


def test_the_gradient_is_the_slope(fast_engine, make_series, rng):
    X, average = make_series(5, 12, 2, shortest=4), make_series(1, 9, 2)
    weights, gamma, step = rng.random(5), 0.7, 1e-6

    def total(values):
        work = SoftDTWMatrix(Series(values[None], average.lengths), X, gamma)
        return float(run(work, engine=fast_engine)[0] @ weights)

    slope = run(SoftDTWGradient(X, average, weights, gamma), engine=fast_engine).gradient
    for c in range(2):
        for i in range(9):
            moved = [average.values[0].copy() for _ in range(2)]
            moved[0][c, i] += step
            moved[1][c, i] -= step
            found = (total(moved[0]) - total(moved[1])) / (2 * step)
            assert slope[c, i] == pytest.approx(found, rel=1e-6, abs=1e-6)


def test_sums_do_not_depend_on_tiles(fast_engine, make_series, rng):
    X, average = make_series(300, 20, shortest=12), make_series(1, 17)
    work = SoftDTWGradient(X, average, rng.random(300), 1.0)
    matrix = SoftDTWMatrix(X, X, 1.0, Warping(window=4))
    slope, values = run(work, engine=fast_engine), run(matrix, engine=fast_engine)
    assert work.part(Tile(128, 200, 0, 1)).cell == work.cell == (64, 1)
    with config_context(memory="2MB"):
        again = run(work, engine=fast_engine, n_jobs=2)
        assert_array_equal(run(matrix, engine=fast_engine, n_jobs=2), values)
    assert_array_equal(again.gradient, slope.gradient)
    assert_array_equal(again.values, slope.values)


@pytest.mark.gpu
@pytest.mark.parametrize("n_pairs", [1, 3, 4, 5, 130, 1000])
def test_every_pair_has_a_warp_of_a_gpu_or_as_many_work_as_there_is_room_for(n_pairs, monkeypatch):
    from skts.engines.cupy.elastic import soft

    monkeypatch.setattr(soft, "multiprocessors", lambda: 3)
    of_a_block = soft.THREADS // 32
    for most in (of_a_block, 2 * of_a_block + 1, 10**6):
        blocks, room = soft._blocks(n_pairs, most), min(most, 3 * soft.WARPS)
        if n_pairs <= room:
            assert of_a_block * (blocks - 1) < n_pairs <= of_a_block * blocks
        else:
            assert of_a_block * blocks <= room < of_a_block * (blocks + 1)


def test_a_band_takes_the_memory_of_its_cells(rng):
    x, y = rng.normal(size=(2, 3000))
    with config_context(memory="8MiB"):
        found = soft_dtw_gradient(x, y, window=5, engine="numba")
        with pytest.raises(MemoryError, match="memory"):
            soft_dtw_gradient(x, y, engine="numba")
    assert_array_equal(found.gradient, soft_dtw_gradient(x, y, window=5, engine="numba").gradient)


def test_a_group_with_room_for_more_series_keeps_to_the_band(rng):
    """Lanes without a series have no band that is wider than the weights."""
    series, average = rng.normal(size=(37, 1, 40)), rng.normal(size=(1, 1, 40))
    warping = Warping(window=2)
    work = SoftDTWGradient(Series.of(series), Series.of(average), np.ones(37), 1.0, warping)
    found = run(work, engine="numba")
    alone = [
        run(SoftDTWGradient(one, Series.of(average), np.ones(1), 1.0, warping), engine="numba")
        for one in (Series.of(each[np.newaxis]) for each in series)
    ]
    assert_array_equal(found.values, np.concatenate([one.values for one in alone]))
    assert_allclose(found.gradient, sum(one.gradient for one in alone), rtol=1e-12)
