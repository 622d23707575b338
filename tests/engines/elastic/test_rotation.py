"""Rotation-invariant neighbours: every shift, on every engine that has them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import reference
from elastic_cases import among
from numpy.testing import assert_array_equal
from reference_rotation import rotation_distance

from skts import config_context
from skts.engines import (
    DTWMatrix,
    RotationNeighbors,
    Series,
    Tile,
    Warping,
    find_engine,
    get_engine,
    run,
)
from skts.engines.core.certify import Bound, Shortlist
from skts.engines.cupy.elastic.rotation_programs import choose_turns, kernels
from skts.engines.cupy.elastic.rotation_tiles import periods
from skts.engines.families.elastic import rotation as rotation_module
from skts.engines.numba import cell_of
from skts.engines.numba.elastic import certified, rotation
from skts.engines.numba.elastic.rotation import _period
from skts.exceptions import MemoryBudgetError

WARPINGS = [
    Warping(cost=cost, window=window) for cost in ("squared", "absolute") for window in (None, 0)
]
BANDS = [
    Warping(window=1),
    Warping(window=0.3),
    Warping("dog_keeper"),
    Warping("dog_keeper", window=2),
    Warping("dog_keeper", "absolute", 0),
]


def brute(queries, candidates, k, warping, excluded=None):
    """Neighbours by the certified distances of all shifts."""
    options = {"metric": warping.metric, "cost": warping.cost, "window": warping.window}
    sides = (
        [reference.unpadded(side, i) for i in range(len(side))] for side in (queries, candidates)
    )
    rows, cols = sides
    matrix = [[rotation_distance(x, y, **options) for y in cols] for x in rows]
    return reference.nearest(np.array(matrix), k, excluded)


def assert_brute(engine, queries, candidates, k, warping, excluded=None):
    found = run(RotationNeighbors(queries, candidates, k, excluded, warping), engine=engine)
    distances, indices = brute(queries, candidates, k, warping, excluded)
    assert_array_equal(found.indices, indices)
    assert_array_equal(found.distances, distances)


DATA = {
    "noise": lambda rng: rng.normal(size=(7, 9)),
    "walks": lambda rng: rng.normal(size=(7, 12)).cumsum(axis=1),
    "channels": lambda rng: rng.normal(size=(5, 3, 7)).cumsum(axis=2),
    # integers: many shifts, paths and series at equal distance
    "ties": lambda rng: rng.integers(0, 2, (9, 8)).astype(float),
    "turned": lambda rng: np.array([np.roll(np.arange(9.0) ** 2, s) for s in (0, 4, 8, 1, 5)]),
    "periodic": lambda rng: np.tile(rng.normal(size=(6, 3)), 4),
    "constant": lambda rng: np.repeat([[1.0], [2.0], [1.0]], 6, axis=1),
    "offset": lambda rng: 1e9 + rng.normal(size=(6, 8)),
    "tiny": lambda rng: 1e-160 * rng.normal(size=(6, 8)),
    "points": lambda rng: rng.normal(size=(7, 1)),
    "pairs": lambda rng: rng.normal(size=(7, 2)),
    "steps": lambda rng: np.repeat(rng.integers(0, 3, (6, 3)), 4, axis=1).astype(float),
}


@pytest.mark.parametrize("warping", among(WARPINGS + BANDS), ids=str)
@pytest.mark.parametrize("kind", DATA)
def test_neighbors_of_brute_force(fast_engine, rng, kind, warping):
    series = Series.of(DATA[kind](rng))
    queries = series.take(slice(0, 3))
    for k in (1, 2):
        assert_brute(fast_engine, queries, series, k, warping, np.arange(3))
    assert_brute(fast_engine, series.take(slice(0, 2)), series.take(slice(2, None)), 1, warping)


def uneven(rng, lengths, channels=1):
    """Walks of several lengths."""
    values = rng.normal(size=(len(lengths), channels, max(lengths))).cumsum(axis=2)
    lengths = np.array(lengths)
    return Series(values * (np.arange(max(lengths)) < lengths[:, None, None]), lengths)


#: Distances whose kernels other tests of this file compile as well.
SHARED = [Warping(), Warping(window=0)]
UNEVEN = {
    # every length in a lane of its own; a point; as long as a strip of columns, and longer
    "lanes": lambda rng: (uneven(rng, [9, 4, 1]), uneven(rng, [1, 2, 3, 5, 8, 13, 9, 4, 4, 1])),
    "one length each": lambda rng: (uneven(rng, [6, 6]), uneven(rng, [11] * 5)),
    "channels": lambda rng: (uneven(rng, [7, 10], 2), uneven(rng, [10, 7, 3, 12], 2)),
    "strips": lambda rng: (uneven(rng, [6]), uneven(rng, [33, 66, 3, 64])),
    "offset": lambda rng: tuple(
        Series(side.values + 1e6 * side.inside, side.lengths)
        for side in (uneven(rng, [6, 9]), uneven(rng, [9, 6, 4, 7]))
    ),
}


# in a band of 0 points series of several lengths are warped; kernels for that are others' too
@pytest.mark.parametrize(
    "warping",
    [
        pytest.param(one, marks=[] if one in SHARED else pytest.mark.compiles)
        for one in WARPINGS + BANDS
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", UNEVEN)
def test_series_of_several_lengths(fast_engine, rng, kind, warping):
    queries, candidates = UNEVEN[kind](rng)
    # a turned part of another, and one that repeats
    candidates.values[2, :, : candidates.lengths[2]] = candidates.values[2, :, :1]
    assert_brute(fast_engine, queries, candidates, 3, warping)
    if kind != "strips":
        few = candidates.take(slice(0, 4))
        assert_brute(fast_engine, few, few, 2, warping, np.arange(4))


@pytest.mark.skipif(np.__version__ < "2", reason="there, int and np.uint64 add up to a float")
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("ascending", [True, False])
def test_of_many_that_are_equally_far_the_first_is_found(monkeypatch, cost, ascending):
    """As plain Python, whatever the order in which two groups of candidates are looked at."""
    for module in (rotation, certified):
        for name, kernel in list(vars(module).items()):
            monkeypatch.setattr(module, name, getattr(kernel, "py_func", kernel))
    x, count = np.array([[0.0, 1.0, 3.0]]), rotation.LANES // rotation.PIECES + 3
    turned = np.roll(x + [[0.0, 0.0, 1.0]], 1)
    candidates = np.tile(np.hstack([turned, turned]), (count, 1, 1)), np.full(count, 3), None
    order = np.arange(count)[:: 1 if ascending else -1]
    for k in (1, 2, 5):
        distances, indices = np.full(k, np.inf), np.full(k, -1)
        cell = cell_of(Warping("dog_keeper", cost))
        nothing = np.zeros(count), order, -1, np.inf
        rest = cell, cost == "squared", distances, indices, np.zeros(1, np.uint8)
        assert rotation.search(x, candidates, *nothing, *rest) == k
        assert_array_equal(indices, np.arange(k))
        assert_array_equal(distances, np.ones(k))


def test_several_lengths_are_cut_in_parts(fast_engine, monkeypatch, rng):
    lengths = rng.integers(5, 16, 70)
    series = uneven(rng, lengths)
    work = RotationNeighbors(series, series, 3, np.arange(70), Warping(window=0.1))
    expected = run(work, engine=fast_engine)
    monkeypatch.setattr(rotation_module, "BLOCK", 16)
    found = run(work, engine=fast_engine, n_jobs=2)
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)
    part = work.part(Tile(3, 9, 20, 50))
    found = run(part, engine=fast_engine)
    assert_array_equal(
        found.indices[0], brute(part.queries, part.candidates, 3, part.warping)[1][0]
    )


@pytest.mark.parametrize("warping", WARPINGS + BANDS, ids=str)
def test_oracle_engine(rng, warping):
    series = Series.of(DATA["walks"](rng)[:4])
    work = RotationNeighbors(series, series, 2, np.arange(4), warping)
    found, expected = run(work, engine="numba"), run(work, engine="oracle")
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)


def every_shift(engine, x, candidates, warping):
    """Least certified distances, each shift by DTW of its own."""
    n = x.shape[-1]
    turned = np.stack([np.roll(candidates, -shift, axis=-1) for shift in range(n)], axis=1)
    rows = Series.of(x[None])
    matrix = run(DTWMatrix(rows, Series.of(turned.reshape(-1, *x.shape)), warping), engine=engine)
    return matrix.reshape(len(candidates), n).min(axis=1)


@pytest.mark.parametrize("n", [3, 16, 37, 100])
@pytest.mark.parametrize("kind", ["noise", "walks", "bumps", "integers"])
def test_longer_series_have_the_bits_of_all_shifts(fast_engine, rng, kind, n):
    X = {
        "noise": rng.normal(size=(12, n)),
        "walks": rng.normal(size=(12, n)).cumsum(axis=1),
        # most shifts of a bump are warped away, and equal but for rounding
        "bumps": np.array([np.roll(1.1**i * (np.arange(n) < n // 3), 3 * i) for i in range(12)]),
        "integers": rng.integers(-1, 2, (12, n)).cumsum(axis=1).astype(float),
    }[kind]
    for warping in WARPINGS + (BANDS if n > 16 else []):
        found = run(
            RotationNeighbors(Series.of(X[:2]), Series.of(X[2:]), 10, warping=warping),
            engine=fast_engine,
        )
        for query in range(2):
            expected = every_shift("numba", X[query], X[2:], warping)
            order = np.lexsort((np.arange(10), expected))
            assert_array_equal(found.indices[query], order)
            assert_array_equal(found.distances[query], expected[order])


@pytest.mark.parametrize("n", [16, 37])
def test_each_channel_counts_at_every_shift(fast_engine, rng, n):
    """Channels of a candidate are turned together, and any of them may tell it from others."""
    X = rng.normal(size=(14, 3, n))
    for i in range(2):
        # all that is near one but for a channel, and one that is near in every channel
        for c in range(3):
            X[2 + 4 * i + c] = np.roll(X[i], 3 + c, axis=1)
            X[2 + 4 * i + c, c] = rng.normal(size=n)
        X[5 + 4 * i] = np.roll(X[i], 5, axis=1) + 0.3 * rng.normal(size=(3, n))
    for warping in (Warping(window=0), Warping(window=1)):
        for k in (1, 3):
            work = RotationNeighbors(Series.of(X[:2]), Series.of(X[2:]), k, warping=warping)
            found = run(work, engine=fast_engine)
            for query in range(2):
                expected = every_shift("numba", X[query], X[2:], warping)
                order = np.lexsort((np.arange(12), expected))[:k]
                assert_array_equal(found.indices[query], order)
                assert_array_equal(found.distances[query], expected[order])


@pytest.mark.parametrize("warping", [Warping(), Warping(cost="absolute"), *BANDS[:2]], ids=str)
def test_same_neighbors_however_the_work_is_cut(fast_engine, monkeypatch, rng, warping):
    X = rng.normal(size=(150, 24)).cumsum(axis=1)
    series = Series.of(X)
    work = RotationNeighbors(series, series, 3, np.arange(150), warping)
    expected = run(work, engine=fast_engine)
    monkeypatch.setattr(rotation_module, "BLOCK", 32)
    for memory in ("100MB", "1200KB"):
        with config_context(memory=memory):
            found = run(work, engine=fast_engine, n_jobs=2)
        assert_array_equal(found.indices, expected.indices)
        assert_array_equal(found.distances, expected.distances)
    part = work.part(Tile(10, 20, 64, 96))
    found = run(part, engine=fast_engine)
    clear = run(
        RotationNeighbors(series.take(slice(10, 20)), series.take(slice(64, 96)), 3, None, warping),
        engine=fast_engine,
    )
    assert_array_equal(found.indices, clear.indices)


@pytest.mark.parametrize("warping", WARPINGS, ids=str)
def test_a_tile_leaves_out_what_is_excluded(fast_engine, rng, warping):
    series = Series.of(rng.normal(size=(8, 12)))
    work = RotationNeighbors(series, series, 2, np.arange(8), warping)
    found = find_engine(fast_engine).compute(work, Tile(0, 8, 4, 8), np.zeros(1, np.uint8))
    assert (found.rows != found.cols + 4).all()
    assert (np.bincount(found.rows, minlength=8) >= 2).all()


@pytest.mark.parametrize("n", [1, 2, 7, 64, 97, 1000])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1.0), (-3.0, 1e-150)])
def test_correlations_bound_all_shifts_from_below(rng, n, offset, scale):
    values = offset + scale * rng.normal(size=(6, 2, n)).cumsum(axis=2)
    values[1] = np.roll(values[0], n // 2, axis=1)
    series = Series.of(values)
    work = RotationNeighbors(series, series, 1, warping=Warping(window=0))
    lower, floors = get_engine("numba")._correlate(work, values[0], Tile(0, 6, 0, 6))
    norms = np.sum((values - values.mean(axis=(0, 2))[:, None]) ** 2, axis=(1, 2))
    slack = (np.sqrt(norms[0]) + np.sqrt(norms)) ** 2
    for candidate in range(6):
        for shift in {*range(0, n, n // 20 + 1), n // 2}:
            turned = np.roll(values[candidate], -shift, axis=1)
            exact = math.fsum(((values[0] - turned) ** 2).ravel())
            in_order = 0.0
            for column in (values[0] - turned).T:
                in_order = (column[0] * column[0] + column[1] * column[1]) + in_order
            floor = floors[candidate, shift]
            assert floor <= min(exact, in_order)
            # no more than what is stated, and so tight that few shifts are left
            assert exact - floor <= 4e-13 * slack[candidate] + 1e-307
        assert lower[candidate] <= np.sqrt(max(0.0, floors[candidate].min()))


@pytest.mark.parametrize(("channels", "squared"), [(1, True), (1, False), (2, True)])
@pytest.mark.parametrize("share", [None, 0.0, 0.1, 0.5])
def test_bounds_of_runs_of_shifts(rng, channels, squared, share):
    """The cheapest path of a run, from any of its first columns to any of its last.

    Rows go in twos, which share their part of the band.
    """
    lanes, width = rotation.LANES, rotation._WIDTH
    cell = cell_of(Warping(cost="squared" if squared else "absolute"))
    for n, count in ((70, 1), (71, 20), (150, 40), (33, 33), (6, 2)):
        reach = None if share is None else int(share * n)
        x, y = rng.normal(size=(2, 4, channels, n))
        lengths = np.full(4, n)
        candidate, first = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        runs = [(lane % 4, lane * (n - 1) // 7) for lane in range(8)]
        for lane in range(lanes):
            candidate[lane], first[lane] = runs[lane % 8]
        room = tuple(
            np.full(shape, 3.0)
            for shape in (
                *((n + 1, lanes), (width + 1, lanes), (channels, width, lanes)),
                *((2, lanes), (2, lanes), (lanes,)),
            )
        )
        least = np.empty(lanes)
        rotation._bound(
            *(x[0], y, lengths, candidate, first, count, reach, cell, least, room),
            np.zeros(1, np.uint8),
        )
        for lane, (which, shift) in enumerate(runs):
            turned = y[which][:, (shift + np.arange(n + count - 1)) % n]
            d = x[0][:, :, np.newaxis] - turned[:, np.newaxis]
            costs = (d * d if squared else np.abs(d)).sum(axis=0).tolist()
            row = [0.0] * count + [np.inf] * n
            for i, here in enumerate(costs):
                above, row = row, [np.inf]
                first_row, last_row = i // 2 * 2, min(i // 2 * 2 + 1, n - 1)
                for j, cost in enumerate(here):
                    inside = reach is None or first_row - reach <= j < last_row + reach + count
                    row.append(cost + min(above[j], above[j + 1], row[j]) if inside else np.inf)
            assert_array_equal(least[lane::8], min(row[n:]))


def test_limits_of_further_blocks_are_the_farthest_of_full_lists(rng, monkeypatch):
    monkeypatch.setattr(rotation_module, "BLOCK", 4)
    series = Series.of(rng.normal(size=(9, 5)))
    work = RotationNeighbors(series.take(slice(0, 4)), series, 2)
    total = work.start()
    rows, cols = np.array([0, 1, 1, 3, 3, 3]), np.array([2, 0, 3, 0, 1, 2])
    distances = np.array([9.0, 4.0, 2.0, 8.0, 5.0, 7.0])
    total.add((0, 0), Shortlist(rows, cols, distances, Bound(), np.empty(0, np.int64)))
    assert_array_equal(work.with_incumbent(total).limits, [np.inf, 4, np.inf, 7])


def test_periods_are_those_of_the_cpu(rng):
    for n in (1, 2, 12, 30):
        X = rng.integers(0, 2, (60, 2, n)).astype(float)
        for i, period in enumerate(p for p in (1, 2, 3, 5, 6, 10, 15) if n % p == 0):
            X[i] = np.tile(X[i, :, :period], n // period)
        expected = [_period(x, n) for x in X]
        assert_array_equal(periods(Series.of(X)), expected)
        assert n < 12 or len(set(expected)) > 3


def test_kernels_of_the_gpu_hold_all_columns():
    compiled = set(kernels()["elastic/turns.cu"])
    for n, channels in itertools.product((1, 7, 60, 427, 1024, 3000), (1, 3, 100)):
        for count, n_items in itertools.product((1, -(-n // 4), n), (1, 300, 10**6)):
            kernel = choose_turns(channels, n, n, count, n_items, "Dtw<Squared>")
            assert kernel.group in (1, 2, 4, 8, 16, 32)
            wide = kernel.group * kernel.columns >= n + count - 1
            assert wide != kernel.strips
            assert wide or kernel.group == 32
            assert kernel.columns == 4 or (channels + 1) * kernel.columns <= 128
            if channels == 1 and kernel.columns > 4:
                assert kernel.name in compiled


@pytest.fixture
def gpu():
    """Skip where there is none, with the engine's own reason."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [8, 64, 97, 1000, 1009])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1.0), (-3.0, 1e-150)])
def test_bounds_of_correlations_on_the_gpu(gpu, rng, n, offset, scale):
    import cupy

    from skts.engines.cupy.elastic import dtw, rotation

    values = offset + scale * rng.normal(size=(6, 2, n)).cumsum(axis=2)
    values[1] = np.roll(values[0], n // 2, axis=1)
    side = dtw.upload(Series.of(values))
    search = rotation.EuclideanRotation(
        side,
        side,
        periods=np.full(6, n, np.int32),
        n_neighbors=1,
        excluded=None,
        limits=np.full(6, np.inf),
        squared=True,
        cancel=np.zeros(1, np.uint8),
    )
    center = search.values(side).mean(axis=(0, 2))[:, None]
    spectra, norms = search.transform(side, center)
    products = cupy.sum(spectra[:, None].conj() * spectra[None], axis=2)
    low, high = (bound.get() for bound in search.bounds(cupy.fft.irfft(products, n), norms, norms))
    warping = Warping(window=0)
    roots = np.sqrt(norms.get())
    for query in range(6):
        certified = every_shift("numba", values[query], values, warping) ** 2
        slack = (roots[query] + roots) ** 2
        near = 4 * 2.0**-53 * certified
        assert np.all(low[query] <= certified + near)
        assert np.all(certified - near <= high[query])
        assert np.all(high[query] - low[query] <= 4e-13 * slack + 1e-307)


@pytest.mark.gpu
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
def test_roundings_of_the_longest_path_are_bounded_on_the_gpu(gpu, monkeypatch, rng, metric):
    """Through n rows and the 2 n - 1 columns that all shifts together have."""
    from skts.engines.cupy.elastic import rotation_tiles

    counted, bound = [], rotation_tiles.dtw_bound

    def count(steps, *arguments, **options):
        counted.append(steps)
        return bound(steps, *arguments, **options)

    monkeypatch.setattr(rotation_tiles, "dtw_bound", count)
    n = 7
    X = Series.of(rng.normal(size=(3, n)))
    run(RotationNeighbors(X, X, 1, warping=Warping(metric)), engine="cupy")
    assert counted == [1 if metric == "dog_keeper" else n + (2 * n - 1) - 1]


@pytest.mark.gpu
def test_runs_of_shifts_are_cut_in_parts_on_the_gpu(gpu, monkeypatch, rng):
    from skts.engines.cupy.elastic import rotation

    X = rng.normal(size=(40, 50)).cumsum(axis=1)
    X[20:] = X[:20] + 1e-8 * rng.normal(size=(20, 50))
    series = Series.of(X)
    work = RotationNeighbors(series, series, 3, np.arange(40))
    expected = run(work, engine="numba")
    monkeypatch.setattr(rotation, "FEWEST_RUNS", 64)
    monkeypatch.setattr(rotation, "MOST_RUNS", 64)
    found = run(work, engine="cupy")
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)


@pytest.mark.gpu
@pytest.mark.parametrize(("columns", "moved"), [(8, 630), (20, 630), (20, 629)])
def test_runs_of_shifts_cost_the_same_in_strips(gpu, monkeypatch, rng, columns, moved):
    from skts.engines.cupy.elastic import rotation

    n, tile, engine = 650, Tile(0, 2, 0, 2), find_engine("cupy")
    walk = rng.normal(size=n).cumsum()
    # the cheapest path of the first to the second crosses the border of strips early, in the
    # first or the second of two rows
    series = Series.of([walk, np.roll(walk, moved)])
    work = RotationNeighbors(series, series, 1)
    sides = (engine._sides(work, tile, rescaling) for rescaling in (work.rescaling, None))
    search = rotation.WarpedRotation(
        *zip(*sides, strict=True),
        most_points=(n, n),
        periods=np.full(2, n, np.int32),
        n_neighbors=1,
        excluded=None,
        limits=np.full(2, np.inf),
        bound=Bound(),
        scale=work.rescaling.scale,
        warping=Warping(),
        widest=2 * n,
        budget=2**20,
        cancel=np.zeros(1, np.uint8),
    )

    def strips(*arguments):
        return choose_turns(*arguments)._replace(columns=columns, group=32, strips=True)

    def dear(*of):
        given = edges_of(*of)
        given["edges"].fill(1e30)
        return given

    edges_of = rotation.dtw.edges_of
    monkeypatch.setattr(rotation.dtw, "edges_of", dear)
    whole = search.measure(None, 4, n).get()
    assert not whole.any()
    monkeypatch.setattr(rotation, "choose_turns", strips)
    assert_array_equal(search.measure(None, 4, n).get(), whole)


@pytest.mark.gpu
def test_strips_of_several_lengths_on_the_gpu(gpu, rng):
    queries, candidates = uneven(rng, [500, 1100]), uneven(rng, [1100, 900, 2100, 30, 1101, 700])
    for warping in (Warping(), Warping(window=0.05)):
        work = RotationNeighbors(queries, candidates, 2, warping=warping)
        found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
        assert_array_equal(found.indices, expected.indices)
        assert_array_equal(found.distances, expected.distances)


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "channels"), [(1100, 1), (2100, 1), (600, 3)])
def test_strips_on_the_gpu(gpu, rng, n, channels):
    X = rng.normal(size=(7, channels, n)).cumsum(axis=2)
    X[6] = np.roll(X[0], n // 3, axis=1) + 0.1 * rng.normal(size=(channels, n))
    work = RotationNeighbors(Series.of(X[:1]), Series.of(X[1:]), 2)
    found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)


def test_limits_leave_out_what_is_farther(fast_engine, rng):
    series = Series.of(rng.normal(size=(9, 20)).cumsum(axis=1))
    for warping in (Warping(), Warping(window=0), *BANDS):
        work = RotationNeighbors(series, series, 3, np.arange(9), warping)
        expected = run(work, engine="numba")
        limits = expected.distances[:, 1].copy()
        found = run(
            RotationNeighbors(series, series, 3, np.arange(9), warping, limits), engine=fast_engine
        )
        assert_array_equal(found.indices[:, :2], expected.indices[:, :2])
        assert_array_equal(found.indices[:, 2], -1)


def test_workers_share_candidates_twice_over_and_in_lanes():
    n, channels = 200, 2
    series = Series(np.broadcast_to(0.0, (2000, channels, n)), np.broadcast_to(n, 2000))
    work = RotationNeighbors(series.take(slice(0, 10)), series, 3)
    for rows, cols in ((1, 64), (10, 640), (1, 1000)):
        shared, _ = get_engine("numba").footprint(work, rows, cols)
        lanes = -(-cols // 64) * 64
        twice = 2 * channels * n * (8 * cols + 4 * lanes)
        assert twice <= shared - work.survivor_bytes() <= 1.01 * twice


def test_memory_is_planned(fast_engine):
    series = Series.of(np.random.default_rng(0).normal(size=(300, 64)))
    with config_context(memory="20kB"), pytest.raises(MemoryBudgetError):
        run(RotationNeighbors(series, series, 1), engine=fast_engine)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("warping", WARPINGS + BANDS, ids=str)
def test_constant_candidates_an_ulp_apart_beside_large_queries(fast_engine, warping):
    # rescaled to the spread of the candidates, the queries are beyond float32
    tiny, large = np.nextafter(1e-100, [0, 1]), np.nextafter(1e8, [1, 1e9])
    candidates = Series.of(np.repeat([*tiny, tiny[0], 1e-100], 15).reshape(4, 15))
    queries = Series.of(np.repeat([large[0], 1e-100, large[1]], 15).reshape(3, 15))
    assert_brute(fast_engine, queries, candidates, 2, warping)
    assert_brute(fast_engine, queries, candidates, 3, warping, np.array([0, 3, -1]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("exponent", [-400, -300, 300, 400])
@pytest.mark.parametrize("warping", [*WARPINGS, *BANDS[::3]], ids=str)
def test_powers_of_two_scale_distances_and_nothing_else(fast_engine, rng, warping, exponent):
    values = rng.normal(size=(20, 2, 16)).cumsum(axis=2)
    values[3] = np.roll(values[2], 5, axis=1)
    values[4] = 1.25
    found = []
    for k in (0, exponent):
        series = Series.of(np.ldexp(values, k))
        work = RotationNeighbors(series, series, 3, np.arange(20), warping)
        found.append(run(work, engine=fast_engine))
    assert_array_equal(found[1].indices, found[0].indices)
    assert_array_equal(found[1].distances, np.ldexp(found[0].distances, exponent))
