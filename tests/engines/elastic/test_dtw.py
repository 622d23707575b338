"""Every engine against the oracle: same indices, same bits."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import (
    DISTANCES,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    Series,
    Tile,
    Warping,
    find_engine,
    get_engine,
    replace_kernels,
    run,
)
from skts.engines.core.certify import Bound, survivor_cap
from skts.engines.cupy.elastic.programs import column_counts
from tests.engines.test_claims import run_on_a_gpu


def listed(series):
    return [reference.unpadded(series, i) for i in range(len(series))]


# n_rows, n_cols, points of rows and columns, channels, shortest
SHAPES = [
    (1, 1, 1, 1, 1, None),
    (3, 2, 1, 5, 1, None),
    (5, 70, 7, 7, 1, None),
    (3, 5, 33, 32, 1, None),
    (2, 3, 31, 65, 1, None),
    (2, 2, 64, 130, 1, None),
    (4, 66, 9, 13, 1, 1),
    (3, 4, 40, 37, 1, 20),
    (3, 5, 12, 11, 2, None),
    (2, 9, 17, 8, 3, 2),
    (2, 2, 10, 10, 7, 4),
]


@pytest.mark.parametrize(("n_rows", "n_cols", "n", "m", "channels", "shortest"), SHAPES)
def test_matrix_has_the_bits_of_the_oracle(
    engine, make_series, n_rows, n_cols, n, m, channels, shortest
):
    rows = make_series(n_rows, n, channels, shortest=shortest)
    cols = make_series(n_cols, m, channels, shortest=shortest)
    expected = reference.pairwise_dtw(listed(rows), listed(cols))
    assert_array_equal(run(DTWMatrix(rows, cols), engine=engine), expected)


def test_symmetric_matrix(engine, make_series):
    series = make_series(70, 6)
    matrix = run(DTWMatrix(series, series), engine=engine)
    assert_array_equal(matrix, matrix.T)
    assert_array_equal(matrix, reference.pairwise_dtw(listed(series), listed(series)))


@pytest.mark.parametrize("n_pairs", [1, 7, 9, 100])
@pytest.mark.parametrize("channels", [1, 3])
def test_pairs_have_the_bits_of_the_matrix(engine, make_series, rng, n_pairs, channels):
    left = make_series(6, 15, channels, shortest=3)
    right = make_series(9, 11, channels, shortest=2)
    pairs = np.column_stack([rng.integers(0, 6, n_pairs), rng.integers(0, 9, n_pairs)])
    matrix = run(DTWMatrix(left, right), engine="oracle")
    assert_array_equal(
        run(DTWPairs(left, right, pairs), engine=engine), matrix[pairs[:, 0], pairs[:, 1]]
    )


@pytest.mark.parametrize("precision", ["auto", "float64"])
@pytest.mark.parametrize("n_neighbors", [1, 3, 20])
@pytest.mark.parametrize(("channels", "shortest"), [(1, None), (2, 4)])
def test_neighbors_are_those_of_the_oracle(
    engine, make_series, precision, n_neighbors, channels, shortest
):
    queries = make_series(5, 12, channels, shortest=shortest)
    candidates = make_series(20, 14, channels, shortest=shortest)
    matrix = reference.pairwise_dtw(listed(queries), listed(candidates))
    expected_distances, expected_indices = reference.nearest(matrix, n_neighbors)
    found = run(DTWNeighbors(queries, candidates, n_neighbors, precision=precision), engine=engine)
    assert_array_equal(found.indices, expected_indices)
    assert_array_equal(found.distances, expected_distances)


@pytest.mark.gpu
def test_a_lane_tells_which_of_its_columns_are_inside_the_band():
    """For any place of the band, in both rows; bits of many columns take several words."""
    each = """
        for (int reach = 0; reach < 40; reach += 13)
            for (int offset = -2 * reach - 70; offset < 2 * reach + 5; ++offset) {{
                const Inside<{0}, true> inside(offset, reach);
                for (int row = 0; row < 2; ++row)
                    for (int k = 0; k < {0}; ++k) {{
                        const int place = offset + k - row;
                        const bool wanted = place >= 0 && place <= 2 * reach;
                        found[wanted] += 1, found[2] += inside(k, row) != wanted;
                    }}
            }}"""
    columns = *column_counts("float", 1), 30, 31, 33
    found = run_on_a_gpu("elastic/dtw.cu", "double* found) {" + "".join(map(each.format, columns)))
    assert found[:2].min() > 0
    assert found[2] == 0


@pytest.mark.gpu
def test_rows_are_cut_short_by_whole_warps(rng, monkeypatch):
    """Ties are counted by warps."""
    if (missing := find_engine("cupy").available()) is not None:
        pytest.skip(missing)
    cupy, dtw = map(importlib.import_module, ("cupy", "skts.engines.cupy.elastic.dtw"))
    load, threads = dtw.load_kernel, []

    def noted(*names):
        kernel = load(*names)
        return lambda grid, block, **given: (threads.append(block), kernel(grid, block, **given))

    monkeypatch.setattr(dtw, "load_kernel", noted)
    distances = cupy.asarray(rng.random((3, 40)))
    found = dtw.shortlist(distances, 2, Bound(), None, 1.0, squared=False)
    assert sorted(found.rows.tolist()) == [0, 0, 1, 1, 2, 2]
    assert threads and all(each % 32 == 0 for each in threads)


@pytest.mark.gpu
@pytest.mark.parametrize("group", [8, 32])
@pytest.mark.parametrize("pairs", [1, 2])
def test_a_launch_has_as_many_threads_as_32_bits_count(group, pairs):
    """Or, of fewer pairs, blocks for each of them and no more."""
    if (missing := find_engine("cupy").available()) is not None:
        pytest.skip(missing)
    dtw = importlib.import_module("skts.engines.cupy.elastic.dtw")
    kernel = SimpleNamespace(group=group, pairs=pairs, strips=False)
    block = dtw.THREADS // group * pairs
    for n_pairs in (1, block, block + 1, 1000 * block - 1, 2**40):
        groups = dtw.groups_in_flight(kernel, n_pairs, 10, 2**30)
        blocks = groups * group // dtw.THREADS
        assert groups * group % dtw.THREADS == 0
        if n_pairs < 2**40:
            assert (blocks - 1) * block < n_pairs <= blocks * block
        else:
            assert 2**31 - dtw.THREADS < blocks * dtw.THREADS <= 2**31


@pytest.mark.parametrize("k", [3, 100, 290])
@pytest.mark.parametrize("n_queries", [1, 20])
def test_of_hundreds_of_equals_the_first_are_neighbors(fast_engine, k, n_queries):
    """Far more of them than the GPU looks at together, with nearer and farther ones between."""
    values = np.where(np.arange(2600) % 256 < 32, 2.0, 1.0)
    values[[5, 300, 699]] = 0.0
    points = np.zeros((n_queries, 1))
    expected = reference.nearest(np.abs(points - values), k)
    for precision in ("auto", "float64"):
        work = DTWNeighbors(
            Series.of(points), Series.of(values[:, np.newaxis]), k, precision=precision
        )
        found = run(work, engine=fast_engine)
        assert_array_equal(found.indices, expected[1])
        assert_array_equal(found.distances, expected[0])


@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_leave_one_out(engine, make_series, precision):
    series = make_series(12, 9)
    excluded = np.arange(12)
    found = run(DTWNeighbors(series, series, 2, excluded, precision), engine=engine)
    matrix = reference.pairwise_dtw(listed(series), listed(series))
    expected = reference.nearest(matrix, 2, excluded)
    assert_array_equal(found.distances, expected[0])
    assert_array_equal(found.indices, expected[1])


def test_fewer_candidates_than_neighbors_leave_inf_and_minus_one(engine, make_series):
    found = run(DTWNeighbors(make_series(2, 5), make_series(3, 5), 5), engine=engine)
    assert_array_equal(np.isinf(found.distances), [[False] * 3 + [True] * 2] * 2)
    assert_array_equal(found.indices[:, 3:], -1)
    assert_array_equal(np.sort(found.indices[:, :3], axis=1), [[0, 1, 2]] * 2)


def test_float32_precision_is_close(fast_engine, make_series):
    queries, candidates = make_series(6, 50), make_series(40, 50)
    exact = run(DTWNeighbors(queries, candidates, 3), engine="numba")
    rough = run(DTWNeighbors(queries, candidates, 3, precision="float32"), engine=fast_engine)
    assert_allclose(rough.distances, exact.distances, rtol=1e-5)


# --- filter and certify under adversarial data -------------------------------------------------


def assert_certified(engine, queries, candidates, n_neighbors, excluded=None):
    """The float32 search with certificate gives what a float64 matrix gives, bit for bit."""
    matrix = run(DTWMatrix(queries, candidates), engine="numba")
    found = run(DTWNeighbors(queries, candidates, n_neighbors, excluded), engine=engine)
    expected = reference.nearest(matrix, n_neighbors, excluded)
    assert_array_equal(found.indices, expected[1])
    assert_array_equal(found.distances, expected[0])


@pytest.mark.parametrize("n_neighbors", [1, 4])
@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-7])
def test_near_ties_that_float32_cannot_see(fast_engine, rng, n_neighbors, gap):
    base = rng.normal(size=40)
    candidates = base + gap * rng.normal(size=(60, 40))
    assert_certified(
        fast_engine, Series.of(rng.normal(size=(7, 40))), Series.of(candidates), n_neighbors
    )


@pytest.mark.parametrize("n_neighbors", [1, 5])
def test_more_equal_candidates_than_the_cap(fast_engine, rng, n_neighbors):
    base = rng.normal(size=20)
    n_candidates = 3 * survivor_cap(n_neighbors)
    candidates = np.tile(base, (n_candidates, 1))
    candidates[::2] += 1e-13 * rng.normal(size=(len(candidates[::2]), 20))
    assert_certified(
        fast_engine, Series.of(rng.normal(size=(5, 20))), Series.of(candidates), n_neighbors
    )


@pytest.mark.parametrize(
    ("scale", "offset"),
    [(1.0, 1e8), (1e-3, 1e6), (1e-6, 0.0), (1e6, 0.0), (1e-100, 0.0), (1e100, 0.0), (1e-9, 1.0)],
)
def test_scales_and_offsets(fast_engine, make_series, scale, offset):
    queries = make_series(4, 30, scale=scale, offset=offset)
    candidates = make_series(70, 30, scale=scale, offset=offset)
    assert_certified(fast_engine, queries, candidates, 2)


def test_queries_far_outside_the_range_of_the_candidates(fast_engine, make_series):
    queries = make_series(4, 20)
    queries.values[1] *= 1e30
    queries.values[2] += 1e12
    queries.values[3] *= 1e-30
    assert_certified(fast_engine, queries, make_series(80, 20), 3)


def test_identical_series_are_at_distance_zero(fast_engine, make_series):
    series = make_series(40, 25)
    twice = Series(np.concatenate([series.values] * 2), np.concatenate([series.lengths] * 2))
    found = run(DTWNeighbors(series, twice, 2), engine=fast_engine)
    assert_array_equal(found.distances, 0.0)
    assert_array_equal(found.indices, np.column_stack([np.arange(40), np.arange(40) + 40]))


def test_constant_and_denormal_values(fast_engine, rng):
    values = np.repeat(rng.integers(-2, 3, 50)[:, None].astype(float), 10, axis=1)
    values[::7] *= 5e-324
    assert_certified(fast_engine, Series.of(values[:9]), Series.of(values), 3)


# --- splits ------------------------------------------------------------------------------------


def test_memory_and_threads_do_not_change_a_bit(fast_engine, make_series):
    queries, candidates = make_series(30, 40, shortest=10), make_series(300, 45, shortest=10)
    expected = run(DTWNeighbors(queries, candidates, 3), engine="numba", n_jobs=1)
    work = DTWNeighbors(queries, candidates, 3)
    for rows, cols in ((30, 128), (2, 300), (1, 64)):
        memory = sum(get_engine(fast_engine).footprint(work, rows, cols))
        with config_context(memory=memory):
            for n_jobs in (1, 2):
                found = run(DTWNeighbors(queries, candidates, 3), engine=fast_engine, n_jobs=n_jobs)
                assert_array_equal(found.indices, expected.indices)
                assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize("length", [1, 2, 3, 24, 100, 128, 257, 427, 1092, 1300, 2600])
def test_engines_agree_at_all_lengths(fast_engine, make_series, length):
    queries, candidates = make_series(3, length), make_series(37, length)
    exact = run(DTWNeighbors(queries, candidates, 2, precision="float64"), engine="numba")
    found = run(DTWNeighbors(queries, candidates, 2), engine=fast_engine)
    assert_array_equal(found.indices, exact.indices)
    assert_array_equal(found.distances, exact.distances)
    matrix = run(DTWMatrix(queries, candidates), engine=fast_engine)
    assert_array_equal(matrix, run(DTWMatrix(queries, candidates), engine="numba"))


@pytest.mark.parametrize(("n", "m"), [(1, 2000), (2000, 1), (63, 1500), (1501, 64), (333, 2777)])
def test_engines_agree_at_unequal_lengths(fast_engine, make_series, n, m):
    rows, cols = (
        make_series(5, n, shortest=max(1, n // 2)),
        make_series(9, m, shortest=max(1, m // 2)),
    )
    expected = run(DTWMatrix(rows, cols), engine="numba")
    assert_array_equal(run(DTWMatrix(rows, cols), engine=fast_engine), expected)
    found = run(DTWNeighbors(rows, cols, 2), engine=fast_engine)
    assert_array_equal(found.indices, reference.nearest(expected, 2)[1])


@pytest.mark.parametrize("channels", [2, 3, 5, 12])
def test_engines_agree_with_channels(fast_engine, make_series, channels):
    rows, cols = make_series(4, 50, channels), make_series(40, 61, channels, shortest=30)
    expected = run(DTWMatrix(rows, cols), engine="numba")
    assert_array_equal(run(DTWMatrix(rows, cols), engine=fast_engine), expected)
    found = run(DTWNeighbors(rows, cols, 2), engine=fast_engine)
    assert_array_equal(found.indices, reference.nearest(expected, 2)[1])


# --- paths -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 6), (6, 1), (7, 7), (20, 13), (40, 41)])
@pytest.mark.parametrize("channels", [1, 2])
def test_path(make_series, engine, n, m, channels):
    x, y = make_series(1, n, channels), make_series(1, m, channels)
    path, distance = run(DTWPath(x, y), engine=engine)
    expected, expected_distance = reference.dtw_path(x.values[0], y.values[0])
    assert_array_equal(path, expected)
    assert distance == expected_distance


def test_path_prefers_the_diagonal(engine):
    flat = Series.of(np.zeros((1, 5)))
    path, _ = run(DTWPath(flat, flat), engine=engine)
    assert_array_equal(path, np.column_stack([np.arange(5)] * 2))


def test_channels_of_single_points_are_all_compared(engine, rng):
    """Queries of one point each, candidates long and many enough for bounds."""
    queries, candidates = rng.normal(size=(3, 2, 1)), rng.normal(size=(140, 2, 40))
    sides = Series(queries, np.ones(3, int)), Series(candidates, np.full(140, 40))
    expected, indices = reference.nearest(reference.pairwise_dtw(queries, candidates), 2)
    found = run(DTWNeighbors(*sides, 2), engine=engine)
    assert_array_equal(found.indices, indices)
    assert_array_equal(found.distances, expected)


def test_survivors_of_a_tile_may_be_among_the_nearest(rng):
    """All of them, and few others: no query of ordinary data overflows."""
    query, candidates = Series.of(rng.normal(size=(1, 20))), Series.of(rng.normal(size=(140, 20)))
    (distances,) = reference.pairwise_dtw(listed(query), listed(candidates))
    for k in (1, 5):
        found = get_engine("numba").compute(
            DTWNeighbors(query, candidates, k), Tile(0, 1, 0, 140), np.zeros(1, np.uint8)
        )
        assert found.overflowed_rows.size == 0
        lower, upper = (side(found.estimates) for side in (found.bound.lower, found.bound.upper))
        assert np.all(lower <= distances[found.cols])
        assert np.all(distances[found.cols] <= upper)
        assert set(np.argsort(distances)[:k]) <= set(found.cols)
        assert np.all(lower <= np.sort(upper)[k - 1])


@pytest.mark.parametrize("k", [1, 5])
def test_candidates_that_are_beyond_the_nearest_so_far_are_given_up(rng, monkeypatch, k):
    """Answers do not tell: with looser limits more are warped to the end, and left out later."""
    from skts.engines.numba.elastic import lower_bounds

    queries, candidates = (Series.of(rng.normal(size=(n, 40)).cumsum(axis=1)) for n in (6, 600))
    search, counts = lower_bounds.search, []

    def noted(*given):
        counts.append(search(*given))
        return counts[-1]

    monkeypatch.setattr(lower_bounds, "search", noted)
    work = DTWNeighbors(queries, candidates, k)
    tile, cancel = Tile(0, len(queries), 0, len(candidates)), np.zeros(1, np.uint8)
    found = get_engine("numba")._cascade(work, tile, cancel)
    assert set(found.rows) == set(range(len(queries)))
    assert len(counts) == 1
    assert np.max(counts) < len(candidates) / 4


@pytest.mark.parametrize("distance", ["dtw", "erp", "msm", "twe"])
def test_queries_of_too_many_survivors_have_none(fast_engine, rng, distance):
    """Of the others all are listed that may be among the nearest."""
    if (missing := find_engine(fast_engine).available()) is not None:
        pytest.skip(missing)
    base, others = rng.normal(size=(1, 30)), rng.normal(size=(60, 30)).cumsum(axis=1)
    candidates = np.concatenate([others, np.repeat(base, 2 * survivor_cap(1), axis=0)])
    queries = np.concatenate([others[7:8], base, others[21:22]]) + 1e-3
    warping = Warping() if distance == "dtw" else DISTANCES[distance]()
    work = DTWNeighbors(Series.of(queries), Series.of(candidates), 1, warping=warping)
    tile, cancel = Tile(0, *work.shape[:1], 0, work.shape[1]), np.zeros(1, np.uint8)
    with replace_kernels(False):
        found = find_engine(fast_engine).compute(work, tile, cancel)
    assert_array_equal(found.overflowed_rows, [1])
    assert sorted(zip(found.rows, found.cols, strict=True)) == [(0, 7), (2, 21)]
