"""The elastic family: every engine against the definitions of the papers, and the same bits.

Compiling the kernels of all policies takes minutes: on the CPU the default run compiles those of
one, and computes the others by NumPy, some by the kernels as plain Python on tiny series.
"""

from __future__ import annotations

import contextlib
from itertools import product

import numpy as np
import pytest
import reference
import reference_elastic
from elastic_cases import OPTIONS, drawn, sides_of
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import (
    DISTANCES,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    Tile,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.families.elastic.warping import Warping, settled
from skts.engines.numba.elastic import certified, dtw, edits, lanes, tiles, uneven, warping_path

COMPILED = ("twe",)
WINDOWS = [None, 0, 2, 0.3]
COUNTING = ("_matching", "_replacements", "_omissions")
COUNTING += ("_narrow_replacements", "_narrow_omissions")
GO_ON = np.zeros(1, np.uint8)


@pytest.fixture(params=range(len(OPTIONS)), ids=[f"{n}-{o}" for n, o in OPTIONS])
def case(request):
    """Name of a distance, and its options."""
    return OPTIONS[request.param]


@contextlib.contextmanager
def computing(engine, metric):
    """On the CPU by NumPy, but for the policy whose kernels are compiled."""
    with replace_kernels(always=engine == "numba" and metric not in COMPILED):
        yield


def expected(metric, X, Y, **options):
    return np.array([[reference_elastic.distance(metric, x, y, **options) for y in Y] for x in X])


def skip_if_lacking(engine, work):
    """Skip where an engine refuses a distance, in the words that users get."""
    reason = find_engine(engine).supports(work)
    if reason is not None:
        pytest.skip(reason)


def tolerance(kind):
    return {"rtol": 1e-12, "atol": 1e-13} if kind != "offset" else {"rtol": 1e-12, "atol": 1e-8}


SHAPES = [
    ("ties", 1, [1, 2, 3, 4, 5]),
    ("any", 2, [3, 7]),
    ("constant", 1, [4]),
    ("offset", 1, [6]),
]


@pytest.mark.filterwarnings("ignore:X has . channels of one time point")
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("kind", "channels", "lengths"), SHAPES)
def test_distances_are_those_of_the_papers(engine, case, rng, window, kind, channels, lengths):
    metric, options = case
    if engine == "numba" and metric not in COMPILED and window is not None:
        lengths = lengths[-1:]  # NumPy computes no bands that differ
    X, Y = (drawn(rng, kind, count, channels, lengths) for count in (4, 5))
    wanted = expected(metric, X, Y, window=window, **options)
    left, right, warping = sides_of(metric, X, Y, window=window, **options)
    skip_if_lacking(engine, DTWMatrix(left, right, warping))
    with computing(engine, metric):
        found = run(DTWMatrix(left, right, warping), engine=engine)
        assert_allclose(found, wanted, **tolerance(kind))
        i, j = np.indices(found.shape).reshape(2, -1)
        pairs = run(DTWPairs(left, right, np.column_stack([i, j]), warping), engine=engine)
        assert_array_equal(pairs.reshape(found.shape), found)
        near = run(
            DTWNeighbors(left, right, 2, precision="float64", warping=warping), engine=engine
        )
    order = np.argsort(found, axis=1, kind="stable")[:, :2]
    assert_array_equal(near.indices, order)
    assert_array_equal(near.distances, np.take_along_axis(found, order, axis=1))
    if engine != "oracle":
        # plain code, which checks answers under `verify`, has the same bits
        plain = [
            [
                warping.plain(reference.unpadded(left, a), reference.unpadded(right, b))
                for b in range(5)
            ]
            for a in range(4)
        ]
        assert_array_equal(found, plain)


#: Borders, numbers of each series, and weights by place: interpreted by default.
INTERPRETED = [OPTIONS[1], OPTIONS[4], OPTIONS[9]]


@pytest.mark.parametrize(("metric", "options"), INTERPRETED, ids=str)
def test_kernels_of_the_cpu_as_plain_python(metric, options, rng, monkeypatch):
    check_plain_kernels(metric, options, rng, monkeypatch, SHAPES[0], [2])


@pytest.mark.parametrize(("metric", "options"), INTERPRETED, ids=str)
def test_strips_of_the_cpu_as_plain_python(metric, options, rng, monkeypatch):
    """Strips of three columns, so that short series go through several."""
    monkeypatch.setattr(uneven, "_WIDTH", 3)
    check_plain_kernels(metric, options, rng, monkeypatch, SHAPES[0], [None])


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_all_kernels_of_the_cpu_as_plain_python(case, rng, monkeypatch, shape):
    windows = WINDOWS[:: 1 if shape[0] == "ties" else 2]
    check_plain_kernels(*case, rng, monkeypatch, shape, windows)


def check_plain_kernels(metric, options, rng, monkeypatch, shape, windows):
    """Lanes in both types, whatever is compiled."""
    kind, channels, lengths = shape
    for window in windows:
        X, Y = (drawn(rng, kind, count, channels, lengths) for count in (2, 3))
        left, right, warping = sides_of(metric, X, Y, window=window, **options)
        with replace_kernels(always=True):
            wanted = run(DTWMatrix(left, right, warping), engine="numba")
        by_channel = DTWMatrix(left, right, warping).by_channel()
        for dtype, tolerated in ((np.float64, 0.0), (np.float32, 1e-5)):
            if dtype is np.float32 and (kind == "offset" or warping.own or metric == "edr"):
                continue
            total = 0.0
            for work in by_channel:
                total = total + interpreted(work, dtype, monkeypatch)
            assert_allclose(total, wanted, rtol=tolerated, atol=tolerated)


def interpreted(work, dtype, monkeypatch):
    """Distances by the kernels of the lanes, not compiled."""
    rows, cols, warping = work.rows, work.cols, work.warping
    packed, lengths = dtw.pack(cols.values.astype(dtype), cols.lengths, lanes.LANES[dtype])
    x = np.ascontiguousarray(rows.values.astype(dtype).transpose(0, 2, 1))
    radius = np.stack([np.broadcast_to(warping.radius(n, lengths[0]), lengths[0].shape)
                       for n in rows.lengths])[:, None]  # fmt: skip
    out = np.empty((len(rows), packed.shape[3]), dtype)
    plain = ["sweep", "_border_rows", "_border_columns", "_row_of_cells", "_cell"]
    plain += ["_two_rows", "_two_rows_looking_back", "_two_rows_with_numbers", "count_edits"]
    for module, names in ((uneven, plain), (edits, COUNTING)):
        for name in names:
            kernel = getattr(module, name)
            monkeypatch.setattr(module, name, getattr(kernel, "py_func", kernel))
    block = getattr(uneven.block_kernel, "py_func", uneven.block_kernel)
    given = uneven.options(warping, x.shape[2], dtype)
    with np.errstate(over="ignore"):  # words of bits
        block(x, rows.lengths, packed, lengths, radius, out, GO_ON, *given)
    return settled(warping, out[:, : len(cols)], rows, cols)


def in_lanes(work):
    """Run a matrix in lanes, also where certificates of pairs would take less time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dtw, "pairs_are_faster", lambda *given: False)
        return run(work, engine="numba")


def test_each_row_and_group_has_its_lengths_and_bands(monkeypatch):
    seen, numbers = [], np.arange(12.0).reshape(2, 3, 2)

    def sweep(x, y, y_lengths, radius, out, *more):
        seen.append((x.tolist(), y.tolist(), y_lengths.tolist(), radius.tolist()))
        out[:] = len(seen)

    monkeypatch.setattr(uneven, "sweep", sweep)
    block = getattr(uneven.block_kernel, "py_func", uneven.block_kernel)
    for radius in (numbers, numbers[:1]):
        x, y, out = (
            np.arange(6.0).reshape(2, 3),
            np.arange(12.0).reshape(3, 2, 1, 2),
            np.zeros((2, 6)),
        )
        seen.clear()
        block(
            x,
            np.array([1, 3]),
            y,
            np.arange(6).reshape(3, 2),
            radius,
            out,
            *3 * [None],
            True,
            *6 * [None],
        )
        expected = [
            (
                x[i, : (1, 3)[i]].tolist(),
                y[g].tolist(),
                [2 * g, 2 * g + 1],
                radius[i % len(radius), g].tolist(),
            )
            for g in range(3)
            for i in range(2)
        ]
        assert seen == expected
        assert_array_equal(out, [[1, 1, 3, 3, 5, 5], [2, 2, 4, 4, 6, 6]])


@pytest.mark.slow
def test_compiled_kernels_have_the_bits_of_the_certificate(case, rng):
    """Lengths below and above a strip of columns, either side in the lanes, all precisions."""
    metric, options = case
    for channels, window in ((1, None), (1, 9), (2, 0.2)):
        X = drawn(rng, "any", 40, channels, [5, 64, 70])
        Y = drawn(rng, "any", 7, channels, [66, 130])
        left, right, warping = sides_of(metric, X, Y, window=window, **options)
        for a, b in ((left, right), (right, left)):
            found = in_lanes(DTWMatrix(a, b, warping))
            i, j = np.indices(found.shape).reshape(2, -1)
            pairs = run(DTWPairs(a, b, np.column_stack([i, j]), warping), engine="numba")
            assert_array_equal(pairs.reshape(found.shape), found)
            for precision in ("auto", "float32", "float64"):
                near = run(DTWNeighbors(a, b, 2, None, precision, warping), engine="numba")
                order = np.argsort(found, axis=1, kind="stable")[:, :2]
                if precision != "float32":
                    assert_array_equal(near.indices, order)
                best = np.take_along_axis(found, order, axis=1)
                loose = 1e-4 if precision == "float32" else 0.0
                assert_allclose(near.distances, best, rtol=loose, atol=1e-2 * (loose > 0))


#: Kernels of all policies are compiled; of the two with absolute costs those of one by default.
SLOW = ("wdtw", {"g": 0.4, "cost": "absolute"})
BANDED = [pytest.param(*one, marks=pytest.mark.slow if one == SLOW else ()) for one in OPTIONS]
assert SLOW in OPTIONS


@pytest.mark.parametrize("window", [0.2, 9, 2])
@pytest.mark.parametrize(("metric", "options"), BANDED, ids=str)
def test_bands_of_series_that_go_together_are_those_of_each_pair_alone(
    metric, options, rng, window
):
    """Of uneven lengths, so that a group has bands of several widths."""
    X = drawn(rng, "any", 8, 1, [30, 41, 64, 80])
    Y = drawn(rng, "any", 24, 1, [20, 33, 47, 62, 75, 90])
    left, right, warping = sides_of(metric, X, Y, window=window, **options)
    work = DTWMatrix(left, right, warping)
    found = in_lanes(work)
    for i, j in np.ndindex(2, len(Y)):
        assert found[i, j] == run(work.part(Tile(i, i + 1, j, j + 1)), engine="numba")[0, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("metric", "channels"), [(None, 1), (None, 3), ("twe", 1), ("twe", 3), ("wdtw", 1), ("wdtw", 2)]
)
def test_each_lane_has_a_band_of_its_own(rng, metric, channels, dtype):
    """Of compiled kernels, which fill four rows at once, whatever the narrowest band."""
    X = drawn(rng, "any", 6, channels, [9, 41, 90])
    Y = drawn(rng, "any", 40, channels, np.arange(3, 130))
    for window in (None, 0, 1, 7, 0.3):
        left, right, warping = sides_of(metric or "twe", X, Y, window=window)
        if metric is None:
            warping = Warping(window=window)
        x = left.values.astype(dtype)
        packed, lengths = dtw.pack(right.values.astype(dtype), right.lengths, lanes.LANES[dtype])
        costs = dtw.block(x, left.lengths, packed, lengths, warping, GO_ON)[:, : len(Y)]
        if dtype is np.float64:
            i, j = (places.ravel() for places in np.indices(costs.shape))
            one, other = left.take(i), right.take(j)
            given = one.values, one.lengths, other.values, other.lengths
            exact = certified.pairs(*given, warping, GO_ON).reshape(costs.shape)
            assert_array_equal(costs, exact)
            continue
        for place in range(len(Y)):
            alone = packed[place // 64, ..., place % 64][np.newaxis, ..., np.newaxis]
            alone = np.repeat(alone, 64, axis=3), lengths[place // 64, [place % 64] * 64][None]
            found = dtw.block(x, left.lengths, *alone, warping, GO_ON)
            assert_array_equal(found, np.repeat(costs[:, [place]], 64, axis=1))


@pytest.mark.parametrize("metric", ["adtw", "msm"])
@pytest.mark.parametrize("swap", [False, True])
def test_series_of_similar_lengths_go_together(rng, monkeypatch, metric, swap):
    """All lanes go on to the end of the longest, so that one long series costs as a group does."""
    packed, pack = [], dtw.pack

    def noted(values, lengths, n_lanes):
        packed.append(lengths)
        return pack(values, lengths, n_lanes)

    monkeypatch.setattr(dtw, "pack", noted)
    monkeypatch.setattr(tiles, "prefer_numpy", lambda *given, **options: False)
    X = drawn(rng, "any", 5, 1, [12, 30])
    Y = [rng.normal(size=(1, n)) for n in [3, 60, 4, 25] * 9]
    left, right, warping = sides_of(metric, *((Y, X) if swap else (X, Y)), window=0.1)
    work = DTWMatrix(left, right, warping)
    found = in_lanes(work)
    assert [lengths.tolist() for lengths in packed] == [[3] * 9 + [4] * 9 + [25] * 9 + [60] * 9]
    for i, j in np.ndindex(found.shape):
        assert found[i, j] == run(work.part(Tile(i, i + 1, j, j + 1)), engine="numba")[0, 0]


def test_pairs_of_one_length_that_are_faster_have_their_memory(rng):
    """A part of a block of any shape takes no more of them one by one than the block may."""
    taken = 0
    for n_rows, n_cols in rng.integers(1, 150, (300, 2)).tolist():
        rows, cols = (int(rng.integers(1, n + 1)) for n in (n_rows, n_cols))
        lengths = np.full(rows, rng.integers(2, 900)), np.full(cols, rng.integers(2, 900))
        for warping in (Warping(), Warping(window=0.1), DISTANCES["msm"]()):
            for dtype in (np.float32, np.float64):
                if dtw.pairs_are_faster(*lengths, warping, 1, dtype):
                    taken += 1
                    assert rows * cols <= dtw.most_faster_pairs(n_rows, n_cols)
    assert taken > 50


def test_pairs_are_faster_where_few_cells_count():
    """Few lanes, or lengths so far apart that bands of lanes have nothing in common."""
    alike, apart = np.full(64, 100), np.repeat([1000, 100], 8)
    for warping in (Warping(), Warping(window=0.1)):
        assert not dtw.pairs_are_faster(alike, alike, warping, 1, np.float64)
        assert not dtw.pairs_are_faster(alike, alike, warping, 1, np.float32)
        assert dtw.pairs_are_faster(alike[:4], alike[:5], warping, 1, np.float64)
        # in float32 as many fill fewer lanes, which take half the time
        assert dtw.pairs_are_faster(alike[:4], alike[:5], warping, 1, np.float32)
        # an antidiagonal of two cells takes as long as one of twenty
        assert not dtw.pairs_are_faster(np.arange(2, 26), np.arange(3, 27), warping, 1, np.float64)
    assert dtw.pairs_are_faster(apart, apart, Warping(window=0.1), 1, np.float64)
    # of uneven policies pairs of one channel take one pass, of more several
    few, warping = np.full(8, 100), sides_of("erp", [np.zeros((1, 3))], [np.zeros((1, 3))])[2]
    assert dtw.pairs_are_faster(few, few, warping, 1, np.float64)
    assert not dtw.pairs_are_faster(few, few, warping, 2, np.float64)


@pytest.mark.parametrize("metric", [None, "twe"])
def test_neighbors_by_pairs_are_those_by_lanes(rng, metric):
    """A few series of lengths far apart in a narrow band, whose cells hardly fill lanes."""
    X = drawn(rng, "any", 12, 1, [300, 30])
    Y = drawn(rng, "any", 9, 1, [280, 40])
    left, right, warping = sides_of(metric or "twe", X, Y, window=0.05)
    if metric is None:
        warping = Warping(window=0.05)
    for precision in ("auto", "float64"):
        work = DTWNeighbors(left, right, 2, None, precision, warping)
        with replace_kernels(always=False):
            found, expected = run(work, engine="numba"), in_lanes(work)
        assert_array_equal(found.indices, expected.indices)
        assert_array_equal(found.distances, expected.distances)


GAPS = [0.0, 1e-15, 1e-9, 1e-7]
SEARCHED = ["erp", "msm", "twe", "wdtw", "adtw"]


@pytest.mark.gpu
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("metric", SEARCHED)
def test_near_ties_that_float32_cannot_see(rng, metric, gap):
    """Searched in float32 and certified: the neighbours are those of the matrix."""
    check_near_ties("cupy", rng, metric, gap)


@pytest.mark.slow
@pytest.mark.parametrize("metric", SEARCHED)
def test_near_ties_on_the_cpu(rng, metric):
    for gap in GAPS:
        check_near_ties("numba", rng, metric, gap)


def check_near_ties(engine, rng, metric, gap):
    base = rng.normal(size=24)
    Y = base + gap * np.arange(70)[:, np.newaxis] * rng.choice([-1.0, 1.0], (70, 24))
    X = base[np.newaxis] + 0.25
    left, right, warping = sides_of(metric, X, Y)
    assert warping.bounded
    D = run(DTWMatrix(left, right, warping), engine=engine)
    found = run(DTWNeighbors(left, right, 3, warping=warping), engine=engine)
    wanted = reference.nearest(D, 3)
    assert_array_equal(found.indices, wanted[1])
    assert_array_equal(found.distances, wanted[0])


def test_padding_is_no_part_of_the_epsilon_of_a_series(rng):
    X = [rng.normal(size=(2, n)) for n in (30, 12, 1)]
    left, _, warping = sides_of("edr", X, X)
    for x, own in zip(X, left.values[:, -1, 0], strict=True):
        points = x.ravel().tolist()
        mean = sum(points) / len(points)
        deviation = (sum((p - mean) ** 2 for p in points) / len(points)) ** 0.5
        assert own == pytest.approx(deviation / 4, rel=1e-12) and own == np.std(x) / 4
    assert warping.own


@pytest.mark.parametrize("metric", ["edr", "lcss"])
def test_no_difference_from_epsilon_is_rounded(fast_engine, rng, metric):
    """Tenths differ by a tenth or by a little more, which float32 does not tell apart."""
    X, Y = (list(rng.integers(0, 5, (count, 1, 12)) * 0.1) for count in (3, 40))
    left, right, warping = sides_of(metric, X, Y, epsilon=0.1)
    work = DTWNeighbors(left, right, 5, warping=warping)
    assert not work.single
    with computing(fast_engine, metric):
        found = run(work, engine=fast_engine)
    wanted = reference.nearest(expected(metric, X, Y, epsilon=0.1), 5)
    assert_array_equal(found.indices, wanted[1])


@pytest.mark.parametrize("window", [None, 2])
def test_paths_cost_what_the_distance_says(case, rng, window, fast_engine):
    metric, options = case
    if fast_engine == "numba" and metric not in COMPILED:
        pytest.skip("its kernels are compiled by a slow test")
    check_paths(fast_engine, metric, options, rng, window)


def test_pairs_of_a_path_of_lcss_are_alike():
    """In every channel: points that are passed over together are no pair."""
    rng = np.random.default_rng(0)
    x, y = 9 + rng.normal(size=(2, 2, 30))
    path = np.column_stack([np.arange(30), np.arange(30)])
    alike = [k for k in range(30) if max(abs(x[0, k] - y[0, k]), abs(x[1, k] - y[1, k])) <= 1.0]
    found = DISTANCES["lcss"](epsilon=1.0).matched(path, x, y)
    assert found.tolist() == [[k, k] for k in alike]
    assert 5 < len(alike) < 25


@pytest.mark.parametrize("window", [None, 2])
def test_paths_of_the_cpu_as_plain_python(case, rng, window, monkeypatch):
    """Of every distance, whichever side is longer."""
    for name, kernel in list(vars(warping_path).items()):
        monkeypatch.setattr(warping_path, name, getattr(kernel, "py_func", kernel))
    check_paths("numba", *case, rng, window)


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, 2])
def test_paths_of_compiled_kernels(case, rng, window):
    check_paths("numba", *case, rng, window)


def check_paths(engine, metric, options, rng, window):
    for (n, m), several in product(((1, 1), (1, 5), (5, 1), (9, 7), (20, 23)), (False, True)):
        channels = 1 if metric == "msm" else 2
        x, y, other = (rng.integers(0, 5, (channels, size)) / 2 for size in (n, m, 25))
        # beside series of other lengths numbers are those of each pair
        X, Y = ([one, other][: 1 + several] for one in (x, y))
        left, right, warping = sides_of(metric, X, Y, window=window, **options)
        left, right = left.take(slice(0, 1)), right.take(slice(0, 1))
        skip_if_lacking(engine, DTWPath(left, right, warping))
        path, distance = run(DTWPath(left, right, warping), engine=engine)
        wanted = reference_elastic.distance(metric, x, y, window=window, **options)
        assert_allclose(distance, wanted, rtol=1e-12, atol=1e-13)
        along = cost_along(warping, reference.unpadded(left, 0), reference.unpadded(right, 0), path)
        assert_allclose(along, wanted, rtol=1e-12, atol=1e-12)
        if window is not None:
            assert (np.abs(path[:, 0] - path[:, 1]) <= warping.radius(n, m)).all()


def cost_along(warping, x, y, path):
    """Distance along a path: its steps, and where points may be left out those beside it."""
    n, m = x.shape[1], y.shape[1]
    total, i, j = 0.0, -1, -1
    for a, b in path.tolist():
        if warping.borders:
            # what lies between two matches is left out
            total += sum(warping.prices(x, y, k, -1)[1] for k in range(i + 1, a))
            total += sum(warping.prices(x, y, -1, k)[2] for k in range(j + 1, b))
            total += warping.prices(x, y, a, b)[0]
        else:
            total += warping.prices(x, y, a, b)[{(1, 1): 0, (1, 0): 1, (0, 1): 2}[a - i, b - j]]
        i, j = a, b
    if warping.borders:
        total += sum(warping.prices(x, y, k, -1)[1] for k in range(i + 1, n))
        total += sum(warping.prices(x, y, -1, k)[2] for k in range(j + 1, m))
    return warping.settle(np.float64(total), n, m, abs(x[0, -1] - y[0, -1]))


def test_all_distances_are_tested():
    # shape DTW: test_descriptors
    assert {name for name, _ in OPTIONS} | {"shape_dtw"} == set(DISTANCES)
    assert set(DISTANCES) <= set(reference_elastic.DISTANCES)


@pytest.mark.parametrize("metric", ["edr", "lcss"])
def test_a_gpu_counts_no_more_edits_than_float32_holds(make_series, monkeypatch, metric):
    gpu = pytest.importorskip("skts.engines.cupy.elastic.tiles")
    warping, engine = DISTANCES[metric](epsilon=0.5), find_engine("cupy")
    sides = [make_series(2, n) for n in (9, 11)]
    assert gpu.MOST_COUNTED == 2**24
    monkeypatch.setattr(gpu, "MOST_COUNTED", 21)
    assert engine.supports(DTWMatrix(*sides, warping)) is None
    monkeypatch.setattr(gpu, "MOST_COUNTED", 20)
    assert "less than 20 points together; here they have up to 20" in engine.supports(
        DTWMatrix(*sides, warping)
    )
    # prices of the others are real numbers
    assert engine.supports(DTWMatrix(*sides, DISTANCES["msm"]())) is None
