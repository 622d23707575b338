"""Bytes that tiles are said to take grow with what they hold."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skts import config_context
from skts.engines import (
    DISTANCES,
    AlignmentSums,
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Criterion,
    DilatedShapelets,
    DistanceQuantiles,
    DTWMatrix,
    DTWNeighbors,
    Groups,
    GroupSplits,
    Join,
    RotationNeighbors,
    SBDCenters,
    SBDMatrix,
    Series,
    ShapeletFeatures,
    ShapeletSearch,
    Shapes,
    SoftDTWGradient,
    SoftDTWMatrix,
    SplitRules,
    SubsequenceMatches,
    Warping,
    WindowDistances,
    WindowKinds,
    find_engine,
)
from skts.engines.core.plan import Tile
from skts.engines.core.prepared import PreparedStore
from skts.engines.families.shapelets import splits
from skts.engines.host import small_work
from skts.engines.numba.elastic.dtw import sweep_bytes
from skts.engines.numba.elastic.lanes import LANES


def series(n, length):
    """Series that take no memory."""
    return Series(np.broadcast_to(0.0, (n, 1, length)), np.broadcast_to(length, n))


@pytest.mark.parametrize("rows_cols", [(3, 400), (100, 100)])
@pytest.mark.parametrize(
    "kind",
    [
        DTWMatrix,
        lambda a, b: DTWNeighbors(a, b, 2),
        lambda a, b: RotationNeighbors(a, b, 2),
        lambda a, b: RotationNeighbors(a, b, 2, warping=Warping(window=0)),
    ],
    ids=["matrix", "neighbors", "warped rotation", "rotation"],
)
def test_with_rows_columns_and_points(fast_engine, kind, rows_cols):
    engine = find_engine(fast_engine)

    def size(length, rows, cols):
        work = kind(series(1000, length), series(1000, length))
        return sum(engine.footprint(work, rows, cols))

    rows, cols = rows_cols
    sizes = [size(length, rows, cols) for length in (100, 200, 400, 800)]
    assert sorted(set(sizes)) == sizes
    for length in (50, 400):
        base = size(length, rows, cols)
        assert base < size(length, 2 * rows, 2 * cols)
        assert base <= size(length, 2 * rows, cols)
        assert base <= size(length, rows, 2 * cols)


def test_two_lines_take_more_than_one(fast_engine):
    engine = find_engine(fast_engine)
    a, b = (ConcatenatedSeries.of([np.zeros(n)]) for n in (2000, 3_000_000))
    one, two = (sum(engine.footprint(Join(a, other, 20), 1000, 1000)) for other in (None, b))
    # statistics, steps and a mean of every window, in float64
    assert two - one > 8 * 8 * 3_000_000


@pytest.mark.parametrize("kind", ["distances", "kinds", "searched kinds"])
def test_windows_take_what_their_lines_take(fast_engine, kind):
    """Statistics of every window in float64; twice as much of two lines, in any order."""
    engine = find_engine(fast_engine)

    def size(*points):
        lines = [ConcatenatedSeries.of([np.zeros(n)]) for n in points]
        if kind == "distances":
            work = WindowDistances(lines[0], np.arange(3), lines[-1], 20)
        else:
            work = WindowKinds(lines[0], 20, True, None if kind == "kinds" else lines[-1])
        return sum(engine.footprint(work, 3, 1))

    few, many = 2_000, 3_000_000
    assert size(many) - size(few) >= 4 * 8 * (many - few)
    if kind != "kinds":
        for pair in ((few, many), (many, few)):
            assert size(*pair) - size(few, few) >= 4 * 8 * (many - few)
        assert size(many, many) - size(few, many) >= 4 * 8 * (many - few)


def test_few_pairs_of_a_search_take_lanes_and_those_of_a_matrix_do_not():
    """A search packs its candidates side by side, however few there are."""
    engine, length = find_engine("numba"), 500
    shared, _ = engine.footprint(DTWNeighbors(series(2, length), series(2, length), 1), 2, 2)
    assert shared >= 8 * 2 * length
    assert engine.footprint(DTWMatrix(series(2, length), series(2, length)), 2, 2)[0] == 0


def test_a_join_has_room_for_the_lists_of_rows_and_columns():
    """Two numbers of a pair, and the bound of its distance, for each entry of two lists."""
    from skts.engines.numba.profile.candidates import LISTED

    a, b = (ConcatenatedSeries.of([np.zeros(n)]) for n in (200, 300))
    _, own = find_engine("numba").footprint(Join(a, b, 20), 1, 1)
    assert own >= 2 * (2 * 8 + 8) * LISTED


def drawn(rng, n, length, n_channels=1):
    return Series(rng.normal(size=(n, n_channels, length)), np.full(n, length)).freeze()


WORKS = {
    "rotation": lambda rng: RotationNeighbors(drawn(rng, 1, 1500, 2), drawn(rng, 1, 1500, 2), 1),
    "many lengths of few series": lambda rng: ShapeletSearch(
        drawn(rng, 2, 300), np.arange(2), tuple(range(10, 150)), Criterion(np.arange(2), np.ones(2))
    ),
    "soft values of short series": lambda rng: SoftDTWMatrix(
        drawn(rng, 200, 3), drawn(rng, 300, 3), 1.0
    ),
    "paths under a stepped distance": lambda rng: AlignmentSums(
        drawn(rng, 40, 90), drawn(rng, 2, 90), np.arange(40) % 2, np.ones(40), DISTANCES["msm"]()
    ),
    "a group of many candidates": lambda rng: weighted_splits(rng, drawn(rng, 200, 9), 100),
}
WORKS_OF_A_GPU = {
    "rotation": lambda rng: RotationNeighbors(
        drawn(rng, 3, 100), drawn(rng, 70, 100), 1, warping=Warping(window=0)
    ),
    "many series of several channels": lambda rng: DTWMatrix(
        drawn(rng, 1, 150, 3), drawn(rng, 500, 150, 3), Warping(window=0)
    ),
    "channels in a band": lambda rng: DTWMatrix(
        drawn(rng, 2, 300, 4), drawn(rng, 2, 300, 4), Warping(window=5)
    ),
    "paths to averages": lambda rng: AlignmentSums(
        drawn(rng, 40, 50), drawn(rng, 2, 50), np.arange(40) % 2, np.ones(40)
    ),
    "dilated shapelets": lambda rng: ShapeletFeatures(
        dilated(rng, 3), drawn(rng, 40, 200), np.ones(3)
    ),
    "quantiles of long shapelets": lambda rng: quantiles(
        rng, [5] + 200 * [150], drawn(rng, 1, 200)
    ),
}


def dilated(rng, count, length=5):
    """Shapelets of so many points, each with a dilation of its own."""
    once = np.ones(count, np.int64)
    points = rng.normal(size=length * count)
    return DilatedShapelets(points, length * once, np.arange(count) + 1, 0 * once, once == 1)


def quantiles(rng, lengths, series):
    """The least distance of shapelets of some lengths to the first series."""
    nothing = np.zeros(len(lengths), np.int64)
    shapelets = DilatedShapelets(
        rng.normal(size=sum(lengths)), np.array(lengths), nothing + 1, nothing, nothing == 0
    )
    return DistanceQuantiles(shapelets, series, nothing, nothing)


def weighted_splits(rng, series, count):
    """The split of series drawn once or twice by points of the first ones; classes have weights."""
    n, pieces = len(series), np.zeros((count, 4), np.int64)
    pieces[:, 0], pieces[:, 3] = np.arange(count), 3
    groups = Groups(series, pieces, np.array([0, count]), series, np.arange(n), np.array([0, n]))
    weights, times = np.array([[1.0, 0.5]]), rng.integers(1, 3, n)
    rules = SplitRules(np.arange(n) % 2, times, 1, np.zeros(1), weights, ("and", "or"), 2)
    return GroupSplits(groups, rules)


def said_and_compute(engine, work):
    """Bytes that the only tile of some work is said to take, and a function that computes it."""
    tile, cancel = Tile(0, work.shape[0], 0, work.shape[1]), np.zeros(1, np.uint8)
    engine.compute(work, tile, cancel)  # compiles
    engine.prepared.clear()
    said = sum(engine.footprint(work, *work.shape))
    return said, lambda: engine.compute(work, tile, cancel)


@pytest.mark.parametrize("name", WORKS)
def test_a_tile_takes_no_more_than_it_is_said_to(rng, name):
    said, compute = said_and_compute(find_engine("numba"), WORKS[name](rng))
    tracemalloc.start()
    try:
        compute()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= said


def test_matches_by_numpy_take_no_more_than_they_are_said_to(rng):
    from skts.engines.numba.shapelets import by_numpy, tiles

    queries = tuple(rng.normal(size=40) for _ in range(8))
    work = SubsequenceMatches(queries, drawn(rng, 60, 300))
    said, cancel = tiles._matches_bytes(work, 8, 60), np.zeros(1, np.uint8)
    tracemalloc.start()
    try:
        by_numpy.matches(work, slice(0, 8), slice(0, 60), cancel)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said / 4 < peak <= said


def test_pairs_by_numpy_take_no_more_than_they_are_said_to(rng):
    """Some at a time, beside the answer of all."""
    work, engine = DTWMatrix(drawn(rng, 220, 1), drawn(rng, 220, 1)), find_engine("numba")
    said, tile, cancel = (
        sum(engine.footprint(work, 220, 220)),
        Tile(0, 220, 0, 220),
        np.zeros(1, np.uint8),
    )
    tracemalloc.start()
    try:
        engine._all_pairs(work, tile, cancel)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said / 3 < peak <= said


def test_dilated_shapelets_by_numpy_take_no_more_than_they_are_said_to(rng):
    from skts.engines.numba.shapelets import dilated_by_numpy, dilated_tiles

    work = ShapeletFeatures(dilated(rng, 3, 200), drawn(rng, 2, 1500), np.ones(3))
    said, cancel = dilated_tiles._numpy_bytes(work), np.zeros(1, np.uint8)
    dilated_by_numpy.features(work, cancel)  # prepares the shapelets
    tracemalloc.start()
    try:
        dilated_by_numpy.features(work, cancel)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said / 8 < peak <= said


def test_a_window_search_takes_no_more_than_it_is_said_to():
    """The envelope of a query, and what is known of each candidate; without queries no more."""
    from skts.engines.numba.elastic.window_search import query_bytes, search

    candidates, none = np.zeros((300, 6, 1000)), np.empty(0, np.int64)
    search = getattr(search, "py_func", search)
    tracemalloc.start()
    try:
        search(candidates[:0], candidates, none, none, None, True, none, np.zeros(1, np.uint8))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = query_bytes(300, 6, 1000, 0)
    assert 0.8 * said < peak <= said


@pytest.mark.parametrize(("n", "m", "n_channels"), [(1, 1, 1), (70, 33, 1), (40, 300, 3)])
def test_paths_side_by_side_take_what_they_are_said_to(n, m, n_channels):
    """Points, two words a row and strip with its last column, and rows of all lanes."""
    from skts.engines.numba.elastic.alignments import _WIDTH, group_bytes

    lanes = LANES[np.float64]
    x, y = np.empty((n, n_channels, lanes)), np.empty((m, n_channels, lanes))
    steps = np.empty((-(-m // _WIDTH), n, 2, lanes), np.int64)
    last, edge = np.empty(steps.shape[:2], np.int64), np.empty((n + 1, lanes))
    row, beside = np.empty((_WIDTH + 1, lanes)), np.empty((12, lanes))
    # of several channels the costs of two cells, and room for sums of windows
    rows = 2 if n_channels > 1 else 0
    costs, sums = (np.empty((k, lanes)) for k in (rows, 2 * (_WIDTH + rows) * (rows > 0)))
    least = sum(part.nbytes for part in (x, y, steps, last, edge, row, beside, costs, sums))
    assert least <= group_bytes(n, m, n_channels) <= least + 128 * lanes


def test_warped_rotations_have_room_for_a_sweep_and_for_lists():
    """Candidates side by side, with the strips of the kernel; a list for each query."""
    engine, n, options = find_engine("numba"), 90, {"warping": Warping(window=5)}

    def each(rows, cols, k):
        work = RotationNeighbors(series(rows, n), series(cols, n), k, **options)
        return engine.footprint(work, rows, cols)[1]

    packed = np.empty((2 * n, 1, 64), np.float32)
    assert each(1, 1, 1) >= packed.nbytes + sweep_bytes(n, 2 * n)
    assert each(70, 130, 50) - each(70, 130, 1) >= 24 * 70 * 49


def test_series_of_a_cell_share_its_sums(fast_engine):
    engine = find_engine(fast_engine)
    work = AlignmentSums(series(99, 9), series(3000, 9), np.zeros(99, np.int64), np.ones(99))
    assert work.cell == (64, 1) and work.sum_bytes > 2**18
    one, cell, two = (sum(engine.footprint(work, rows, 1)) for rows in (1, 64, 65))
    assert cell - one < work.sum_bytes / 4 < work.sum_bytes <= two - cell


def test_gradients_of_a_cell_share_their_sum():
    engine = find_engine("numba")
    work = SoftDTWGradient(series(99, 9), series(1, 30_000), np.ones(99), 1.0)
    assert work.cell == (64, 1) and work.sum_bytes > 2**17
    # as many lie side by side
    some, cell, two = (sum(engine.footprint(work, rows, 1)) for rows in (33, 64, 65))
    assert cell - some < work.sum_bytes / 4 < work.sum_bytes <= two - cell


def group_splits(n_groups, n_candidates, n_members, class_weight=None):
    """Splits of groups of the same series, of which each candidate is a piece."""
    rng = np.random.default_rng(0)
    some = Series(rng.normal(size=(n_members, 1, 9)), np.full(n_members, 9))
    each, members = np.arange(n_groups + 1), np.tile(np.arange(n_members), n_groups)
    pieces = np.tile([0, 0, 0, 3], (n_groups * n_candidates, 1))
    pieces[:, 0] = rng.integers(0, n_members, len(pieces))
    groups = Groups(some, pieces, each * n_candidates, some, members, each * n_members)
    labels = members % 3
    rules = SplitRules(labels, np.ones_like(labels), 1, np.zeros(n_groups), class_weight)
    return GroupSplits(groups, rules)


def test_splits_take_their_answer_beside_the_distances():
    work = group_splits(50, 1, 40)
    engine = find_engine("numba")
    distances, splits = (
        sum(find(work, 50, 1)) for find in (engine.group_matches_bytes, engine.group_splits_bytes)
    )
    assert splits - distances >= work.result_bytes()


def peak_of(compute):
    """Bytes of this machine's memory that a call holds at most."""
    gc.collect()
    tracemalloc.start()
    compute()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("by_numpy", [False, True])
@pytest.mark.parametrize("classes", [2, 30])
def test_judges_take_some_lines_at_a_time(monkeypatch, classes, by_numpy):
    """NumPy and the compiled judge take what is said, however many candidates there are."""
    monkeypatch.setattr(small_work, "prefer_numpy", lambda *_: by_numpy)
    monkeypatch.setattr(splits, "AT_A_TIME", 2**19)
    weights = np.linspace(0.5, 2.0, classes)
    work = group_splits(1, 300, 90, weights[np.newaxis])
    labels = work.rules.labels * (classes - 1) // 2
    work = replace(work, rules=work.rules._replace(labels=labels))
    distances = np.random.default_rng(1).random(300 * 90)
    expected = splits.split_groups(work, slice(0, 1), distances)
    peak = peak_of(lambda: splits.split_groups(work, slice(0, 1), distances))
    assert work.judging_bytes < 3 * peak or not by_numpy
    assert peak < work.judging_bytes + work.result_bytes() + 2**16
    monkeypatch.setattr(splits, "AT_A_TIME", 2**40)
    everything = splits.split_groups(work, slice(0, 1), distances)
    assert work.judging_bytes < splits._entry_bytes(work.rules) * distances.size
    for some, whole in zip(expected, everything, strict=True):
        np.testing.assert_array_equal(some, whole)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 300, 200), (60, 9, 40)], ids=["one", "many"])
@pytest.mark.parametrize("weighted", [False, True])
def test_splits_of_a_gpu_say_what_they_take_on_the_host(shape, weighted):
    """Distances that were fetched, and the order lines of judges, are on this machine."""
    engine, n_groups = find_engine("cupy"), shape[0]
    work = group_splits(*shape, np.full((n_groups, 3), 0.5) if weighted else None)
    tile, going = Tile(0, n_groups, 0, 1), np.zeros(1, bool)
    engine.group_splits(work, tile, going)
    shared, each = engine.group_splits_bytes(work, n_groups, 1)
    with config_context(memory=shared + each):
        peak = peak_of(lambda: engine.group_splits(work, tile, going))
    assert peak <= each


@pytest.mark.gpu
@pytest.mark.parametrize("name", WORKS_OF_A_GPU)
def test_nor_does_a_tile_on_a_gpu(rng, name):
    import cupy

    pool, peak = cupy.get_default_memory_pool(), 0

    def malloc(size):
        nonlocal peak
        made = pool.malloc(size)
        peak = max(peak, pool.used_bytes())
        return made

    said, compute = said_and_compute(find_engine("cupy"), WORKS_OF_A_GPU[name](rng))
    gc.collect()
    held = pool.used_bytes()
    cupy.cuda.set_allocator(malloc)
    try:
        compute()
    finally:
        cupy.cuda.set_allocator(pool.malloc)
    assert held < peak <= held + said


@pytest.mark.gpu
def test_a_series_takes_its_points_and_its_spectrum_on_a_gpu(rng):
    from skts.engines.cupy.kshape.sbd import transform_length

    engine, n = find_engine("cupy"), 50
    shapes = Shapes.normalized(Series(rng.normal(size=(3, 2, n)), np.full(3, n)))
    few, many = (sum(engine.footprint(SBDMatrix(shapes, shapes), rows, 1)) for rows in (64, 128))
    # two series have a complex spectrum together
    least = 2 * 8 * n + 2 * 8 * transform_length(n)
    assert many - few >= 64 * least


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "k", "length"), [(3000, 2, 300), (40, 30, 300)])
def test_leading_vectors_take_no_more_than_they_are_said_to(monkeypatch, n, k, length):
    """Beside the series: bases, pairs, sums of chunks, and members in order."""
    import cupy

    from skts.engines.cupy.kshape import centers, members

    def arrays(one):
        if isinstance(one, cupy.ndarray):
            return {id(one): one.nbytes}
        parts = one if isinstance(one, tuple) else vars(one).values()
        some = (cupy.ndarray, centers.Products, members.Sorting, members.Members)
        return {
            key: size
            for part in parts
            if isinstance(part, some)
            for key, size in arrays(part).items()
        }

    ready = SimpleNamespace(ready=lambda *_, **__: lambda: None)
    for module in (centers, members):
        monkeypatch.setattr(module, "load_kernel", lambda *_: ready)
    monkeypatch.setattr(centers, "Launches", list)
    values = cupy.zeros((n, 1, length))
    found = centers.LeadingVectors(values, k, slice(0, k), weighted=True, centered=True)
    held = sum(arrays(found).values()) - values.nbytes
    assert 0.7 * centers.krylov_bytes(n, k, length) < held <= centers.krylov_bytes(n, k, length)


@pytest.mark.parametrize("n_timepoints", [50, 99])
def test_what_is_kept_takes_what_room_is_made_for(fast_engine, rng, monkeypatch, n_timepoints):
    """Series, spectra, and memory of an iteration: also of some rows, and beside what is there."""
    engine, n, said, get = find_engine(fast_engine), 30, [], PreparedStore.get

    def note(store, owner, key, build, size=0):
        before, there = store.size(), store.holds(owner, key)
        made = get(store, owner, key, build, size)
        if size and not there:
            said.append((size, store.size() - before))
        return made

    monkeypatch.setattr(PreparedStore, "get", note)
    values = rng.normal(size=(n, 2, n_timepoints))
    shapes = Shapes.normalized(Series(values, np.full(n, n_timepoints)))
    labels, shifts = (rng.integers(0, 3, n).astype(np.int32) for _ in range(2))
    distances = SBDMatrix(shapes, shapes.take(slice(4)))
    centers = SBDCenters(shapes, labels, shifts, 3)
    works = [(distances, Tile(*rows, 0, 4)) for rows in ((11, 18), (0, n), (17, n))]
    # the series are there before their spectra, too
    for order in (works, [(centers, Tile(0, 3, 0, 1)), *works]):
        engine.prepared.clear()
        for work, tile in order:
            engine.compute(work, tile, np.zeros(1, np.uint8))
    assert len(said) >= 6
    # the norms of series are theirs and those of their spectra
    assert all(made - 8 * n <= size <= made for size, made in said)


@pytest.mark.gpu
def test_a_block_of_candidates_takes_its_scores_on_a_gpu(rng):
    n, width, lengths = 200, 60, (10, 11, 12)
    criterion = Criterion(np.arange(n) % 2, np.ones(2))
    work = ShapeletSearch(drawn(rng, n, width), np.arange(n), lengths, criterion)
    _, own = find_engine("cupy").footprint(work, 1, 1)
    # sums of both sides, and what leaves a strip, in float64
    assert own >= 3 * 8 * n * min(n, work.block) * (width - lengths[0] + 1)


@pytest.mark.parametrize("channels", [1, 3])
def test_lanes_that_a_search_by_bounds_gathers_have_room(rng, channels):
    queries, candidates = (
        Series(rng.normal(size=(n, channels, 90)), np.full(n, 90)) for n in (1, 500)
    )
    lanes = np.empty((90, channels, LANES[np.float32]), np.float32)
    beside = 16 * channels * 90 + 64 * 500 + sweep_bytes(90, 90)
    work = DTWNeighbors(queries, candidates, 1)
    each = find_engine("numba")._block_bytes(work, 1, 500, flip=False)[1]
    assert beside + lanes.nbytes <= each <= beside + 1.05 * lanes.nbytes


def test_all_pairs_of_a_small_matrix_have_room(rng):
    """It fills few lanes, so that its pairs lie side by side; NumPy has no share of the budget."""
    X, Y = (Series(rng.normal(size=(n, 2, 90)), np.full(n, 90)) for n in (2, 3))
    side_by_side = 8 * 2 * 3 * 2 * (90 + 90)
    with config_context(memory=2**22):
        assert find_engine("numba").footprint(DTWMatrix(X, Y), 2, 3)[1] > side_by_side


@pytest.mark.parametrize("budget", [2**22, 2**26, 2**32])
def test_lists_and_measured_distances_have_room_on_a_gpu(rng, budget):
    """An entry of a list has the number of a window, and what its score may be."""
    from skts.engines.cupy.shapelets.tiles import HELD, LIST_BYTES, MEASURE_BYTES, _room

    n, width, criterion = 200, 60, Criterion(np.arange(200) % 2, np.ones(2))
    work = ShapeletSearch(drawn(rng, n, width), np.arange(n), (10, 11, 12), criterion)
    room = _room(work, n, n, budget)
    assert room.nbytes >= 12 * (room.listed + room.held) + 8 * room.measured * n
    # lists of two series with many lengths and channels take more than their scores
    series = Series(rng.normal(size=(2, 8, 200)), np.full(2, 200))
    criterion = Criterion(np.arange(2), np.ones(2))
    work = ShapeletSearch(series, np.arange(2), tuple(range(10, 200)), criterion)
    room = _room(work, 2, 2, budget)
    # all candidates, of all channels, as far as there is room
    total = 2 * (200 - 10 + 1) * len(work.lengths) * 8
    assert room.held == min(total, HELD, budget // 8 // LIST_BYTES)
    # a distance to each series, and an eighth of the points
    each = 2 + 200 // 8
    least = LIST_BYTES * (room.listed + room.held) + MEASURE_BYTES * room.measured * each
    assert least <= room.nbytes <= least + 2**22


@pytest.mark.parametrize("budget", [800_000, 900_000, 1_000_000])
def test_a_list_on_a_gpu_takes_an_eighth_of_the_budget_at_most(rng, budget):
    """All candidates of a length and block: of so few series they take more than scores do."""
    from skts.engines.cupy.shapelets.tiles import LIST_BYTES, _room

    work = ShapeletSearch(
        drawn(rng, 12, 60), np.arange(12), (10,), Criterion(np.arange(12) % 2, np.ones(2))
    )
    room = _room(work, 12, 12, budget)
    assert room.block * 51 <= room.listed <= budget // 8 // LIST_BYTES
    assert (room.block == 12) == (budget == 1_000_000)


@pytest.mark.parametrize("budget", [2**22, 2**25, 3 * 2**24, 2**26])
def test_kept_scores_leave_a_gpu_what_a_block_takes(rng, budget):
    from skts.engines.cupy.shapelets.tiles import _kept, _room

    n, width = 30, 60
    criterion = Criterion(np.arange(n) % 2, np.ones(2))
    work = ShapeletSearch(drawn(rng, n, width), np.arange(n), tuple(range(5, 60, 5)), criterion)
    kept, size = _kept(work, budget)
    assert len(kept) == (11 if budget >= 2**25 else 0)
    assert not kept or size + 2 * _room(work, n, n, budget).nbytes <= budget


def test_scores_that_a_gpu_keeps_are_those_of_as_many_lengths_as_fit():
    from skts.engines.cupy.shapelets.tiles import _lengths_within

    lengths = 5, 10, 15
    sizes = [_lengths_within((30, 1, 60), lengths[:k], 1, 2**30)[1] for k in range(4)]
    assert sizes == sorted(set(sizes))
    for k in range(3):
        kept = frozenset(lengths[:k])
        assert _lengths_within((30, 1, 60), lengths, 1, sizes[k]) == (kept, sizes[k])
        assert _lengths_within((30, 1, 60), lengths, 1, sizes[k + 1] - 1) == (kept, sizes[k])


def test_distances_of_channels_have_room_beside_their_sum(rng, monkeypatch):
    X, msm = drawn(rng, 60, 20, 3), DISTANCES["msm"]
    engine, work = find_engine("numba"), DTWMatrix(X, X, msm())
    apart = engine.footprint(work, 60, 60)[1]
    monkeypatch.setattr(msm, "independent", False)
    assert apart == engine.footprint(work, 60, 60)[1] + 8 * 60 * 60 * 3


@pytest.mark.parametrize("n_channels", [2, 9])
def test_pairs_of_channels_that_a_gpu_measures_have_room(n_channels):
    """The numbers of its two windows, and a distance, of each channel of all that are listed."""
    from skts.engines.cupy.profile.channel_tiles import ChannelTiles, _capacity

    channels = [ConcatenatedSeries.of([np.zeros(400)]) for _ in range(n_channels)]
    work = ChannelJoin.of(channels, None, 20, ChannelRule((1,)))
    n = work.shape[0]
    _, own = ChannelTiles().channel_join_bytes(work, n, n)
    assert own >= 24 * n_channels * _capacity(n_channels, 2 * n)
