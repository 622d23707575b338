"""Best matches, and the search of shapelets: the fast engine against plain loops."""

from __future__ import annotations

import pickle
import threading
import time
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import (
    Criterion,
    Series,
    ShapeletSearch,
    SubsequenceMatches,
    Tile,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.core.series import read_only
from skts.engines.families.shapelets.criterion import (
    _rounded_weights,
    _small_weights,
    integer_weights,
)
from skts.engines.numba.shapelets import joins
from skts.engines.numba.shapelets import tiles as shapelet_tiles
from tests.waiting import press_ctrl_c, quickest


def make(n, width, n_channels=1, seed=0, lengths=None):
    values = np.random.default_rng(seed).normal(size=(n, n_channels, width)).cumsum(axis=2)
    lengths = np.full(n, width) if lengths is None else np.asarray(lengths)
    values[np.broadcast_to(np.arange(width) >= lengths[:, None, None], values.shape)] = 0
    return Series(values, lengths.astype(np.int64))


@pytest.mark.parametrize("normalize", [True, False])
def test_matches_are_those_of_the_oracle(fast_engine, normalize):
    series = make(5, 40, 2, lengths=[40, 30, 12, 40, 7])
    series.values[0, 0, 5:25] = 3.0
    series.values[1, 0, 8] = np.nan
    rng = np.random.default_rng(1)
    queries = (
        *(rng.normal(size=n) for n in (8, 8, 13, 3)),
        np.ones(8),
        series.values[3, 1, 4:19].copy(),
    )
    channels = np.array([0, 1, 0, 0, 0, 1])
    work = SubsequenceMatches(queries, series, normalize, channels)
    expected = run(work, engine="oracle")
    found = run(work, engine=fast_engine)
    assert_array_equal(found.starts, expected.starts)
    assert_allclose(found.distances, expected.distances, rtol=1e-9, atol=1e-9)
    assert found.distances[5, 3] == 0 and found.starts[5, 3] == 4
    assert np.isinf(found.distances[0, 4]) and found.starts[0, 4] == -1


def search(engine, series, labels, lengths, *, weights=None, members=None, **options):
    members = np.arange(len(series)) if members is None else members
    weights = np.ones(labels.max() + 1) if weights is None else np.asarray(weights)
    criterion = Criterion(labels[members], weights, options.pop("leaf", 1))
    return run(ShapeletSearch(series, members, tuple(lengths), criterion, **options), engine=engine)


def same(found, expected):
    assert found[1:6] == expected[1:6]
    assert found.cut.gain == expected.cut.gain
    assert_allclose(found.cut[1:], expected.cut[1:], rtol=1e-9)
    assert_allclose(found.distances, expected.distances, rtol=1e-9, atol=1e-12)


CASES = {
    "plain": {},
    "leaf": {"leaf": 4},
    "weights": {"weights": [1.0, 2.5, 0.7]},
    "members": {"members": np.array([0, 2, 3, 5, 6, 9, 11])},
    "logic": {"before": np.linspace(0.2, 1.0, 12), "ways": ("and", "or")},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["walks", "unequal", "constant", "repeated", "offset", "channels"])
def test_the_search_finds_the_split_of_the_oracle(fast_engine, case, kind):
    lengths = 24 - np.arange(12) if kind == "unequal" else None
    series = make(12, 24, 2 if kind == "channels" else 1, seed=3, lengths=lengths)
    if kind == "constant":
        series.values[::2, :, 3:14] = 2.0
        series.values[5] = 1.0
    if kind == "repeated":
        series.values[6:] = series.values[:6]
    if kind == "offset":
        series.values[:] += 1e6
    labels = np.array([0, 1, 2, 1, 0, 1, 2, 0, 0, 1, 0, 2])
    found, expected = (
        search(engine, series, labels, (2, 5, 6, 9, 13), **CASES[case])
        for engine in (fast_engine, "oracle")
    )
    same(found, expected)


@pytest.mark.parametrize("ways", [("first",), ("and", "or")])
@pytest.mark.parametrize(("first", "stop"), [(0, 5), (0, 2), (2, 4), (4, 5)])
def test_each_member_of_a_block_has_the_candidates_of_its_own_length(ways, first, stop):
    """Told without a GPU; members are counted, and are not all series."""
    from skts.engines.cupy.shapelets.tiles import _all_candidates

    series, members = make(7, 9, 2, lengths=[9, 4, 7, 5, 8, 4, 6]), np.array([0, 2, 3, 5, 6])
    criterion = Criterion(np.array([0, 1, 0, 1, 1]), np.ones(2))
    before = None if len(ways) == 1 else np.ones(5)
    work = ShapeletSearch(series, members, (1, 4), criterion, before, ways=ways)
    for length, channel in ((1, 0), (4, 1)):
        found = [*_all_candidates(work, length, channel, first, stop)]
        wanted = [
            (length, member, start, channel, way)
            for member in range(first, stop)
            for way in range(len(ways))
            for start in range(series.lengths[members[member]] - length + 1)
        ]
        assert np.concatenate(found).tolist() == [list(one) for one in wanted]


@pytest.mark.gpu
@pytest.mark.parametrize("n", [20, 40, 70, 150, 300])
@pytest.mark.parametrize("kind", ["walks", "unequal", "repeated", "nearly constant", "scales"])
def test_the_gpu_finds_the_bits_of_the_cpu(kind, n):
    """Order lines of all widths, strips of one lane's columns and of several."""
    rng = np.random.default_rng(n)
    lengths = rng.integers(40, 81, n) if kind == "unequal" else None
    series = make(n, 80, seed=n, lengths=lengths)
    if kind == "repeated":
        series.values[n // 2 :] = series.values[: n - n // 2]
    if kind == "nearly constant":
        series.values[::3, :, 20:60] = 3 + 1e-7 * series.values[::3, :, 20:60]
    if kind == "scales":
        series.values[:] *= 10.0 ** rng.integers(-6, 7, n)[:, None, None]
    labels = rng.integers(0, 3, n)
    series.values[labels == 1, :, 10:25] += 3 * np.sin(np.arange(15.0))
    first, expected = (search(e, series, labels, (9, 15, 33)) for e in ("cupy", "numba"))
    same(first, expected)
    assert_array_equal(first.distances, expected.distances)
    options = {"before": first.distances, "ways": ("and", "or")}
    options |= {"best_gain_so_far": first.cut.gain, "best_gap_so_far": first.cut.gap}
    second, expected = (search(e, series, labels, (9, 33), **options) for e in ("cupy", "numba"))
    assert (second is None) == (expected is None)
    if expected is not None:
        same(second, expected)
        assert_array_equal(second.distances, expected.distances)


def test_splits_do_not_depend_on_the_budget(fast_engine, monkeypatch):
    series, labels = make(20, 60, seed=5), np.arange(20) % 3
    expected = search("numba", series, labels, range(8, 30))
    monkeypatch.setattr("skts.engines.families.shapelets.search.BLOCK_BYTES", 8 * 20 * 60 * 7)
    with config_context(memory="3MB" if fast_engine == "numba" else "12MB"):
        same(search(fast_engine, series, labels, range(8, 30)), expected)


def test_parts_merge_to_the_answer_of_the_whole(fast_engine, monkeypatch):
    series, labels = make(21, 40, seed=7), np.arange(21) % 2
    monkeypatch.setattr("skts.engines.families.shapelets.search.BLOCK_BYTES", 8 * 21 * 34 * 8)
    work = ShapeletSearch(
        series, np.arange(21), (7, 12, 19), Criterion(labels, np.ones(2)), ways=("first",)
    )
    assert work.shape == (3, 3)
    total, engine = work.start(), find_engine(fast_engine)
    for tile in (Tile(0, 1, 0, 3), Tile(1, 3, 1, 3), Tile(1, 3, 0, 1)):
        part = pickle.loads(pickle.dumps(work.part(tile)))
        assert part.shape == tile.shape
        whole = Tile(0, part.shape[0], 0, part.shape[1])
        work.merge(total, tile, engine.compute(part, whole, np.zeros(1, np.uint8)))
    same(work.finish(total, lambda reduction: run(reduction, engine="numba")), run(work))


def test_distances_that_are_kept_are_not_computed_again(monkeypatch):
    """By nodes and literals that come later; without room for them the answers are the same."""
    series, labels = make(18, 50, 2, seed=4).freeze(), np.arange(18) % 3
    computed = []
    joins = shapelet_tiles.joins

    def count(block, *rest):
        computed.append((len(block.lengths), *block.run.tolist()))
        return joins(block, *rest)

    monkeypatch.setattr(shapelet_tiles, "joins", count)
    node = np.array([1, 2, 5, 8, 9, 10, 16])

    def found():
        computed.clear()
        first = search("numba", series, labels, (9, 20, 31))
        child = search("numba", series, labels, (9, 20, 31), members=node)
        options = {"before": first.distances, "ways": ("and", "or")}
        partner = search(
            "numba", series, labels, (9, 20, 31), best_gain_so_far=first.cut.gain,
            best_gap_so_far=first.cut.gap, **options,
        )  # fmt: skip
        return first, child, partner

    kept = found()
    assert sorted(length for n, *run in computed for length in run if n == 18) == [
        *(9, 9, 20, 20, 31, 31)
    ]
    assert all(n == 18 for n, *_ in computed)
    assert find_engine("numba").prepared.size() > 0
    find_engine("numba").prepared.clear()
    with config_context(memory="1.4MB"):
        again = found()
    assert len([1 for n, *_ in computed if n == 7]) > 0
    for a, b in zip(kept, again, strict=True):
        if a is None or b is None:
            assert a is b
        else:
            same(a, b)


@pytest.mark.parametrize(
    "kind", ["walks", "offset", "nearly constant", "scales", "unequal", "trends"]
)
def test_estimates_are_within_their_bounds(kind):
    lengths = 60 - 3 * np.arange(9) if kind == "unequal" else None
    series = make(9, 60, seed=8, lengths=lengths)
    if kind == "offset":
        series.values[:] += 1e7
    if kind == "nearly constant":
        series.values[::2, :, 20:45] = 3 + 1e-7 * series.values[::2, :, 20:45]
    if kind == "scales":
        series.values[:] *= 10.0 ** np.arange(-8, 10, 2)[:, None, None]
    if kind == "trends":
        # means that are rounded the same way at every step
        series.values[:] += 10.0 ** np.arange(9)[:, None, None] * np.linspace(0, 1, 60)
    run_lengths, cancel = (3, 8, 21, 33), np.zeros(1, np.uint8)
    everyone = shapelet_tiles.blocks_of(
        series, 0, 0, 9, run_lengths, shapelet_tiles.Buffer(), cancel
    )
    for length, block in everyone:
        places = [(a, i) for a in range(9) for i in range(series.lengths[a] - length + 1)]
        queries = tuple(series.values[a, 0, i : i + length] for a, i in places)
        exact = run(SubsequenceMatches(queries, series), engine="numba").distances ** 2 / length
        for (a, i), squares in zip(places, exact, strict=True):
            bound = block.errors[a] * block.weights[a, i] + block.floor
            assert np.all(np.abs(block.squares[a, i] - squares) <= bound)
        # and say something: a millionth of the largest distance, but for what is badly scaled
        if kind in ("walks", "unequal"):
            assert np.max(block.errors * block.weights.max(axis=1, keepdims=True)) < 1e-6


@pytest.mark.parametrize("normalize", [True, False], ids=["described", "measured again"])
def test_ctrl_c_is_heard_within_one_long_series(normalize):
    """While its windows are described, and while equal points are measured one window at a time."""
    series = make(1, 10**6)
    if not normalize:
        series.values[:] = 1.0

    def matches(n_points):
        queries = (series.values[0, 0, :n_points].copy(),)
        return run(SubsequenceMatches(queries, series, normalize), engine="numba")

    with replace_kernels(False):
        matches(3)  # compiles

        def attempt():
            heard, _ = press_ctrl_c(lambda: matches(20_000), 0.2)
            assert heard is not None
            return heard

        assert quickest(attempt) < 1


def test_distances_of_long_series_stop_while_windows_are_described():
    cancel = np.zeros(1, np.uint8)

    def blocks(series, length):
        return list(shapelet_tiles.blocks_of(series, 0, 0, 2, (length,), None, cancel))

    assert len(blocks(make(2, 40), 8)) == 1  # compiles
    series = make(2, 200_000)

    def attempt():
        cancel[0] = 0
        timer = threading.Timer(0.2, cancel.fill, (1,))
        timer.start()
        start = time.perf_counter()
        found = blocks(series, 60_000)
        seconds = time.perf_counter() - start
        timer.join()
        assert not found
        return seconds

    assert quickest(attempt) < 1


def test_errors_follow_the_largest_numbers_of_each_series():
    lengths = np.array([40, 31, 40, 22, 40])
    series = make(5, 40, seed=4, lengths=lengths)
    series.values[:] *= 10.0 ** np.array([2, -1, 3, 0, 1])[:, None, None]
    values = series.values[:, 0]
    centered = joins.less_means(values, lengths)
    made = joins.prepare(
        read_only(values.copy()), read_only(lengths), centered, np.array([6, 11]),
        np.zeros(1, np.uint8),
    )  # fmt: skip
    for k, length in enumerate((6, 11)):
        windows = np.lib.stride_tricks.sliding_window_view(centered, length, axis=1)
        there = np.arange(windows.shape[1]) < lengths[:, None] - length + 1
        norms = np.linalg.norm(windows - windows.mean(axis=2, keepdims=True), axis=2) * there
        steps = np.abs(made.lead[k]) + np.abs(made.trail[k])
        expected = [norms.max(axis=1), steps.max(axis=1), made.weight[k].max(axis=1)]
        expected += [np.abs(centered).max(axis=1)]
        assert_allclose(made.largest[k], np.transpose(expected), rtol=1e-12)


def test_constant_windows_are_told_in_the_series_that_they_are_in():
    lengths = np.array([40, 31, 40])
    series = make(3, 40, seed=4, lengths=lengths)
    series.values[1, 0, 5:20], series.values[2, 0, 33:] = 2.0, -1.0
    values = series.values[:, 0]
    centered = joins.less_means(values, lengths)
    made = joins.prepare(
        read_only(values.copy()), read_only(lengths), centered, np.array([6, 11]),
        np.zeros(1, np.uint8),
    )  # fmt: skip
    for k, length in enumerate((6, 11)):
        there = [(1, i) for i in range(5, 21 - length)] + [(2, 33)] * (length == 6)
        there += [(2, 34)] * (length == 6)
        assert list(zip(*np.nonzero(made.constant[k]), strict=True)) == there


def test_errors_hold_all_that_goes_wrong_on_the_walk():
    """See "shapelet walk" in docs/developer/numerics.rst."""
    unit, length, n_windows = 2.0**-53, 8, 50
    norm, step, heavy = np.array([5.0, 3.0]), np.array([10.0, 20.0]), np.array([0.5, 2.0])
    size = np.array([1e3, 1e2])
    largest = np.column_stack([norm, step, heavy, size])

    def both(a, b):
        return np.outer(a, b) + np.outer(b, a)

    means = unit * (length / 2 + 2) * size
    terms = [
        n_windows * unit * (2 * np.outer(norm, norm) + 4 * np.outer(step, step)),
        unit * (length + 8) * length * np.outer(size, size),
        length * both(means, size),
        2 * n_windows * both(means, step),
        both(2 * unit * np.sqrt(length) * size, norm),
    ]
    errors, _ = shapelet_tiles._errors(largest, length, n_windows, slice(0, 2))
    assert (errors >= 2 * sum(terms) * heavy).all()
    assert (errors <= 2.2 * sum(terms) * heavy).all()
    # every term is one of squared points: of points twice as large errors are twice as large
    larger, floor = shapelet_tiles._errors(largest * [2, 2, 0.5, 2], length, n_windows, slice(0, 2))
    np.testing.assert_array_equal(larger, 2 * errors)
    assert floor == shapelet_tiles._errors(largest, length, n_windows, slice(0, 2))[1]


def test_memory_is_used_again_unless_more_is_needed():
    """Fresh memory would hold the same."""
    buffer = shapelet_tiles.Buffer()
    first = buffer.get(1000)
    assert first.shape == (1000,)
    for size in (1000, 10, 999, 1000):
        again = buffer.get(size)
        assert again.shape == (size,)
        assert np.shares_memory(first, again)
    assert buffer.get(1001).shape == (1001,)


def test_memory_of_distances_that_are_not_kept_is_used_again(monkeypatch):
    """By the searches of nodes, one after the other; distances that are kept have their own."""
    made = []

    def make_buffer():
        made.append(buffer())
        return made[-1]

    buffer = shapelet_tiles.Buffer
    monkeypatch.setattr(shapelet_tiles, "Buffer", make_buffer)
    criterion, engine = Criterion(np.arange(12) % 2, np.ones(2)), find_engine("numba")
    series, lengths = make(12, 30).freeze(), (9, 14, 20)
    for memory in ("200kB", "1GiB"):
        engine.prepared.clear()
        made.clear()
        for members in (np.arange(12), np.arange(2, 9), np.arange(1, 12, 2)):
            work = ShapeletSearch(series, members, lengths, criterion)
            with config_context(memory=memory):
                kept = shapelet_tiles._kept(work, engine.budget())[0]
                chosen, cancel = np.arange(len(members)), np.zeros(1, np.uint8)
                for _, found, *_ in engine._found(work, 0, chosen, lengths, cancel):
                    used = [np.shares_memory(found.squares, one.array) for one in made]
                    assert any(used) == (found.squares.shape[2] < 12 or not kept)
            assert len(made) == 1
        assert bool(kept) == (memory == "1GiB")


def test_distances_that_are_kept_take_half_of_the_budget():
    series = make(30, 60)
    criterion = Criterion(np.arange(30) % 2, np.ones(2))
    work = ShapeletSearch(series, np.arange(30), tuple(range(5, 60, 5)), criterion)
    for budget in (2**19, 2**21, 2**22, 2**23, 2**30):
        kept, size = shapelet_tiles._kept(work, budget)
        assert size <= budget // 2
        assert kept == frozenset(work.lengths[: len(kept)])
        # squares of all pairs, and a few numbers of each window
        least = sum(8 * 30 * 30 * (61 - length) for length in kept)
        assert least <= size <= 1.1 * least
    assert len(kept) == 11


@pytest.mark.gpu
@pytest.mark.parametrize("windows", [31, 32, 63, 95, 97])
def test_windows_that_all_run_the_other_way(windows):
    """Every score of a pair is a bad one: columns that are no windows must not count as better."""
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    slopes = np.where(labels == 1, -1.0, np.where(np.arange(24) < 12, 1.0, 0.0))
    values = slopes[:, None] * np.arange(windows + 8) + rng.normal(size=(24, windows + 8))
    series = Series(values[:, np.newaxis], np.full(24, windows + 8))
    found, expected = (search(e, series, labels, (9,)) for e in ("cupy", "numba"))
    same(found, expected)
    assert_array_equal(found.distances, expected.distances)


@pytest.mark.gpu
def test_kernels_read_windows_of_candidates_where_those_begin():
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    from skts.engines.cupy.shapelets.walk import Walk, lay

    series = make(5, 40, seed=8)
    heads = Walk(lay(series, 0), 2, 5, 8, 2)((8, 17))
    for z in range(2):
        for name in ("errors", "floors", "kinds"):
            assert heads.table[name][z] == getattr(heads, name)[z].data.ptr
        # windows are of all series, candidates begin with the third
        for name in ("weights", "constant"):
            assert heads.table[name][z] == getattr(heads, name)[z, 2:].data.ptr


@pytest.mark.gpu
def test_what_passes_from_strip_to_strip_has_room():
    """More windows than the widest strip has columns."""
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    series, labels = make(6, 480, seed=2), np.arange(6) % 2
    found, expected = (search(e, series, labels, (40,)) for e in ("cupy", "numba"))
    same(found, expected)


def quiet_far_from_zero(n_series, length, n_windows):
    """Long windows with one point that differs by as little as a window that varies must have."""
    values = np.full((n_series, 1, length + n_windows - 1), 0.1)
    for i in range(n_series):
        values[i, 0, length // 2 + 7 * i] *= 1 + 2.0**-39
    return Series(values, np.full(n_series, values.shape[-1]))


@pytest.mark.parametrize("length", [1000, 4000])
def test_estimates_of_long_quiet_windows_are_within_their_bounds(length):
    """Points of which thousands lie in one place, and one far from there by their deviation."""
    series, cancel = quiet_far_from_zero(3, length, 6), np.zeros(1, np.uint8)
    ((_, block),) = shapelet_tiles.blocks_of(
        series, 0, 0, 3, (length,), shapelet_tiles.Buffer(), cancel
    )
    places = [(a, i) for a in range(3) for i in range(6)]
    queries = tuple(series.values[a, 0, i : i + length] for a, i in places)
    exact = run(SubsequenceMatches(queries, series), engine="numba").distances ** 2 / length
    for (a, i), squares in zip(places, exact, strict=True):
        bound = block.errors[a] * block.weights[a, i] + block.floor
        assert np.all(np.abs(block.squares[a, i] - squares) <= bound)


def test_work_grows_with_the_pairs_of_windows():
    def work(n, width, lengths):
        return ShapeletSearch(
            make(n, width), np.arange(n), lengths, Criterion(np.arange(n) % 2, np.ones(2))
        )

    for n, width in ((6, 40), (6, 80), (12, 40)):
        one = work(n, width, (5,))
        assert one.step_work * one.shape[1] >= (n * (width - 4)) ** 2 // 2
        assert one.step_work <= one.block * n * width**2 // 2 + 1
        assert work(n, width, (5, 9)).total_work == 2 * one.total_work


def test_weights_that_are_ratios_of_small_numbers():
    counts = np.array([3, 4])
    for number in (3, 1000, 2**16):
        assert_array_equal(integer_weights(np.array([1, 1 / number]), counts), [number, 1])
    # others are as exact as sums of them allow
    first, second = integer_weights(np.array([1, 1 / (2**16 + 1)]), counts).tolist()
    assert 2**48 < first < 2**52 / 7 and second == round(first / (2**16 + 1))


def test_weights_of_classes_that_a_node_does_not_hold():
    """Their ratio to the others, a whole number above 2^63, is not needed."""
    primes = [65521, 65519, 65497, 65479]
    weights = 1 / np.array([1, *primes], np.float64)
    whole = integer_weights(weights, np.array([0, 3, 3, 0, 0]))
    others = 65497 * 65479
    assert_array_equal(whole, [0, 65519 * others, 65521 * others, 0, 0])


@pytest.mark.parametrize("kind", ["ratios", "others"])
def test_weights_are_made_whole_once_for_all_nodes(kind):
    rng = np.random.default_rng(5)
    weights = 1 / rng.integers(1, 9, 500) if kind == "ratios" else rng.uniform(0.5, 1, 500)
    before = _small_weights.cache_info().misses, _rounded_weights.cache_info().misses
    for held in range(100):
        counts = np.bincount(np.arange(held, held + 9), minlength=500)
        assert_array_equal(np.flatnonzero(integer_weights(weights, counts)), counts.nonzero()[0])
    assert _small_weights.cache_info().misses == before[0] + 1
    assert _rounded_weights.cache_info().misses == before[1] + (kind == "others")


@pytest.mark.parametrize("weight", [1.1, 1 / 3, 30 / 27])
def test_gains_are_those_of_the_tables(weight):
    """To the bit, also where all classes weigh the same, but not 1."""
    rng = np.random.default_rng(3)
    for n in (53, 54, 55, 177):
        labels = rng.integers(0, 3, n)
        criterion = Criterion(labels, np.full(3, weight))
        tables = criterion.tables()
        left = np.cumsum(np.eye(3, dtype=np.int64)[labels], axis=0)[:-1]
        order = np.arange(n)[np.newaxis]
        (expected,) = criterion._gains_along(order, np.ones((1, n - 1), bool))
        found = tables.node_entropy - tables.sides[1:-1]
        for c, (changes, count) in enumerate(zip(tables.changes, tables.counts, strict=True)):
            here = np.append(0, np.cumsum(changes))
            found = found + (here[left[:, c]] - here[0]) - (here[count] - here[count - left[:, c]])
        assert_array_equal(found, expected)


def test_a_leaf_of_the_least_weight_is_allowed():
    """0.07 of 100 is 7.000000000000001 where it is rounded."""
    least = 0.07 * 100
    assert least > 7
    labels = (np.arange(100) < 7).astype(np.int64)
    for weights in (np.ones(2), np.array([1.0, 1.0 + 1e-15])):
        criterion = Criterion(labels, weights, 1, least)
        cut = criterion.best_cuts(np.arange(100.0)[np.newaxis])
        assert cut.threshold[0] == 6.5


@pytest.fixture(params=["narrow", "wide"])
def kernels(request, monkeypatch):
    """Order lines of a warp, and of a block."""
    if request.param == "wide":
        monkeypatch.setattr("skts.engines.cupy.shapelets.programs.KEYS", ())


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("counts", "behind", "rules"),
    [
        # lines of (class, how many, distance): those at 1 are exactly there; weights, series and
        # weight of a leaf
        ([(1, 40, 0.5), (0, 1, 1.0), (1, 10, 1.0)], (0, 5), ([1, 1], 1)),
        ([(0, 45, 0.5), (0, 45, 1.0)], (1, 5), ([1, 1], 10)),
        ([(1, 20, 0.5), (0, 3, 1.0), (1, 30, 1.0)], (0, 3), ([1, 1], 1)),
        ([(1, 100, 0.5), (0, 1, 1.0), (1, 60, 1.0)], (0, 9), ([1, 1], 1)),
        # the only cut that is allowed
        ([(0, 8, 0.5), (0, 2, 1.0), (1, 9, 1.5)], (1, 1), ([1, 1], 10)),
        ([(0, 19, 0.5), (0, 1, 1.0), (1, 29, 1.5)], (1, 1), ([1.5, 1], 1, 30.0)),
        # far behind among the keys of a lane
        ([(0, 40, 0.5), (0, 6, 1.0), (1, 1050, 1.5)], (1, 4), ([1, 1], 1)),
    ],
)
def test_what_may_lie_behind_a_tie_is_promised(counts, behind, rules, kernels):
    """Exact distances are equal, and it is open whether others are larger."""
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    import cupy as cp

    from skts.engines.cupy.shapelets.order_lines import CANDIDATE_BOUND, Lengths, Lines
    from skts.engines.cupy.shapelets.walk import Walk, lay

    rng, width = np.random.default_rng(0), 96
    labels = np.repeat([c for c, *_ in (*counts, behind)], [m for _, m, *_ in (*counts, behind)])
    before = np.repeat([d for *_, d in counts], [m for _, m, _ in counts])
    before = np.append(before * (1 - 1e-3 * (before < 1) * rng.random(len(before))), 1 + 1e-12)
    before = np.append(before, np.full(behind[1] - 1, 1 + 1e-12))
    n = len(labels)
    series = Series(rng.normal(size=(n, 1, width)), np.full(n, width))
    criterion = Criterion(labels, np.array(rules[0], float), *rules[1:])
    stop = min(n, 90)
    queries = tuple(series.values[:stop:9, 0])
    distances = run(SubsequenceMatches(queries, series), engine="numba").distances
    joined = np.minimum(before, distances / np.sqrt(width))
    gains = criterion.best_cuts(joined).gain.tolist()
    everyone, sizes = cp.arange(n, dtype=np.int32), cp.asarray(series.lengths, np.int32)
    lines = Lines(
        cp.asarray(series.values), sizes, np.arange(n), series.lengths,
        criterion, before, ("or",), (-1, -np.inf), listed=1, held=1, measured=1,
    )  # fmt: skip
    heads = Lengths.of([(Walk(lay(series, 0), 0, stop, width, 1)((width,)), 0)])
    for a, gain in zip(range(0, stop, 9), gains, strict=True):
        # each by itself, where its own gain is reached already
        row = everyone[a : a + 1]
        lines.best = (gain, -np.inf)
        lines._reset()
        lines.scan(heads, 0, row, sizes[row], row, everyone, np.zeros(1, np.uint8))
        assert lines._count() == 1
        assert lines.list[:1].get().view(CANDIDATE_BOUND)[0, 0]["gain"] >= gain


@pytest.mark.gpu
@pytest.mark.parametrize("scale", [1.0, 1e36, 1e60])
def test_what_changes_by_less_than_a_rounding_is_judged(scale, kernels):
    """An exact distance of 1 in place of less, beside others of any size."""
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    import cupy as cp

    from skts.engines.cupy.shapelets.order_lines import CANDIDATE_BOUND, Lengths, Lines
    from skts.engines.cupy.shapelets.walk import Walk, lay

    values = np.random.default_rng(0).normal(size=(6, 1, 9))
    values[0] = 1
    before = np.array([0, 1 - 1e-12, 1, scale * (1 + 1e-9), 2 * scale, 3 * scale])
    criterion = Criterion(np.array([0, 0, 1, 1, 2, 2]), np.ones(3))
    cut = criterion.best_cuts(np.maximum(before, np.arange(6) > 0)[np.newaxis])
    everyone, sizes = cp.arange(6, dtype=np.int32), cp.full(6, 9, np.int32)
    lines = Lines(
        cp.asarray(values), sizes, np.arange(6), np.full(6, 9),
        criterion, before, ("and",), (-1, -np.inf), listed=1, held=1, measured=1,
    )  # fmt: skip
    heads = Lengths.of([(Walk(lay(Series(values, np.full(6, 9)), 0), 0, 6, 9, 1)((9,)), 0)])
    row = everyone[:1]
    lines.scan(heads, 0, row, sizes[:1], row, everyone, np.zeros(1, np.uint8))
    assert lines._count() == 1
    bound = lines.list[:1].get().view(CANDIDATE_BOUND)[0, 0]
    assert bound["gain"] >= cut.gain[0]
    assert bound["gain"] > cut.gain[0] or bound["high"] >= cut.gap[0] >= bound["low"]


@pytest.mark.gpu
@pytest.mark.parametrize("scale", [1.0, 1e-36, 1e-160, 1e-200, 1e40, 1e156])
@pytest.mark.parametrize("kind", ["walks", "nearly constant", "unequal"])
def test_scores_of_the_gpu_are_within_their_bounds(kind, scale):
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    from skts.engines.cupy.shapelets.walk import Walk, lay

    series = make(5, 40, seed=8, lengths=40 - 4 * np.arange(5) if kind == "unequal" else None)
    if kind == "nearly constant":
        series.values[::2, :, 10:30] = 3 + 1e-5 * series.values[::2, :, 10:30]
    series.values[:] *= scale
    heads = Walk(lay(series, 0), 0, 5, 8, 2)((8, 17))
    scores, bits = heads.scores.get().astype(np.int64), heads.errors.get().astype(np.int64)
    squares = 2 * np.clip(scores << 32, 0, np.float64(2).view(np.int64)).view(np.float64)
    weights, constant, kinds = heads.weights.get(), heads.constant.get(), heads.kinds.get()
    for z, length in enumerate(heads.lengths):
        places = [(a, i) for a in range(5) for i in range(series.lengths[a] - length + 1)]
        queries = tuple(series.values[a, 0, i : i + length] for a, i in places)
        exact = run(SubsequenceMatches(queries, series), engine="numba").distances
        for (a, i), distances in zip(places, exact / np.sqrt(length), strict=True):
            others = np.flatnonzero(np.arange(5) != a)
            if constant[z, a, i]:
                assert_array_equal(distances[others], 1.0 - (kinds[z, others] & 1))
                continue
            found = squares[z, others, a, i] * (1 + 2.0**-21)
            with np.errstate(over="ignore", invalid="ignore"):
                bound = (bits[z, a].max() << 32).view(np.float64) * weights[z, a, i]
                bound = np.fmin(8, bound + heads.floors.get()[z, a])
            bound = bound + 2.0**-20 * found
            found = np.where(kinds[z, others] == 3, np.minimum(found, 1), found)
            found = np.where(kinds[z, others] == 1, 1, found)
            assert np.all(np.abs(found - distances[others] ** 2) <= bound)


@pytest.mark.gpu
def test_scores_of_long_quiet_windows_are_within_their_bounds():
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    from skts.engines.cupy.shapelets.walk import Walk, lay

    length = 4000
    series = quiet_far_from_zero(3, length, 4)
    heads = Walk(lay(series, 0), 0, 3, length, 1)((length,))
    scores, bits = heads.scores.get().astype(np.int64)[0], heads.errors.get().astype(np.int64)[0]
    squares = 2 * np.clip(scores << 32, 0, np.float64(2).view(np.int64)).view(np.float64)
    places = [(a, i) for a in range(3) for i in range(4)]
    queries = tuple(series.values[a, 0, i : i + length] for a, i in places)
    exact = run(SubsequenceMatches(queries, series), engine="numba").distances ** 2 / length
    for (a, i), distances in zip(places, exact, strict=True):
        others = np.flatnonzero(np.arange(3) != a)
        bound = (bits[a].max() << 32).view(np.float64) * heads.weights.get()[0, a, i]
        bound += heads.floors.get()[0, a] + 2.0**-19
        assert np.all(np.abs(squares[others, a, i] - distances[others]) <= bound)


@pytest.mark.gpu
@pytest.mark.parametrize("lengths", [(3, 6), (8, 17), (33, 40)])
@pytest.mark.parametrize("stop", [3, 5])
def test_the_gpu_writes_every_score_that_is_read(lengths, stop, monkeypatch):
    """Of all windows of the longest series, also where a pair has fewer or is none."""
    import cupy as cp

    from skts.engines.cupy.shapelets.walk import Walk, lay

    empty = cp.empty

    def marked(shape, dtype=float):
        made = empty(shape, dtype)
        made.view(np.uint8)[...] = 0xEE
        return made

    monkeypatch.setattr(cp, "empty", marked)
    series = make(5, 150, lengths=[150, 41, 80, 140, 47])
    heads = Walk(lay(series, 0), 0, stop, lengths[0], 2)(lengths)
    for z in range(2):
        assert heads.windows(z) == 150 - lengths[z] + 1
        read = heads.scores[z, :, :, : heads.windows(z)]
        assert not (read.get() == np.frombuffer(b"\xee" * 4, np.int32)).any()
        own = read.get()[np.arange(stop), np.arange(stop)]
        assert (own == np.iinfo(np.int32).max).all()


@pytest.mark.parametrize("twice", [0, 2**21])
@pytest.mark.parametrize("ways", [("first",), ("and", "or")])
def test_of_many_equal_candidates_the_first_is_chosen(fast_engine, ways, twice, monkeypatch):
    """Series of few values, as of switches; each is measured, or one of those that are equal."""
    if fast_engine == "cupy":
        monkeypatch.setattr("skts.engines.cupy.shapelets.order_lines.FIRST_BATCH", 4)
        monkeypatch.setattr("skts.engines.cupy.shapelets.order_lines.MEASURED_TWICE", twice)
    elif twice:
        pytest.skip("the CPU engine measures each")
    rng = np.random.default_rng(3)
    values = np.repeat(rng.integers(0, 2, (14, 1, 5)), 4, axis=2).astype(float)
    labels = rng.integers(0, 2, 14)
    values[labels == 1, :, 8:14] = [0, 1, 0, 1, 0, 1]
    series = Series(values, np.full(14, 20))
    before = None if ways == ("first",) else 0.1 * rng.integers(0, 3, 14)
    found, expected = (
        search(engine, series, labels, (2, 5), before=before, ways=ways)
        for engine in (fast_engine, "oracle")
    )
    same(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "far"), [(71, 3), (150, 5)])
def test_no_candidate_gains_more_than_the_gpu_promises(n, far):
    """Where the order of many neighbours is open, also of the last ones, far from all others."""
    import cupy as cp

    from skts.engines.cupy.shapelets.order_lines import CANDIDATE_BOUND, Lengths, Lines
    from skts.engines.cupy.shapelets.walk import Walk, lay

    rng, width = np.random.default_rng(n), 16
    shapes = np.cumsum(1 + 0.5 * rng.normal(size=(4, 1, width)), axis=2)
    values = shapes[rng.integers(0, 4, n)] + 1e-9 * rng.normal(size=(n, 1, width))
    values[:far] = 1e-9 * rng.normal(size=(far, 1, width)) - shapes[0]
    series = Series(values, np.full(n, width))
    criterion = Criterion((np.arange(n) != 1).astype(np.int64), np.ones(2))
    distances = run(SubsequenceMatches(tuple(values[:, 0]), series), engine="numba").distances
    gains = criterion.best_cuts(distances / np.sqrt(width)).gain
    everyone, sizes = cp.arange(n, dtype=np.int32), cp.asarray(series.lengths, np.int32)
    lines = Lines(
        cp.asarray(values), sizes, np.arange(n), series.lengths,
        criterion, None, ("first",), (-1, -np.inf), listed=1, held=1, measured=1,
    )  # fmt: skip
    heads = Lengths.of([(Walk(lay(series, 0), 0, n, width, 1)((width,)), 0)])
    for a, gain in enumerate(gains):
        # each by itself, so that none is left out for what another one reaches
        row = everyone[a : a + 1]
        lines.scan(heads, 0, row, sizes[row], row, everyone, np.zeros(1, np.uint8))
        bound = lines.list[:1].get().view(CANDIDATE_BOUND)[0, 0]
        assert lines._count() == 1
        assert bound["series"] == a
        assert bound["gain"] >= gain
        lines._reset()


def test_the_gpu_says_how_many_series_it_takes():
    engine = find_engine("cupy")

    def reason(n, n_classes):
        series = Series(np.zeros((n, 1, 8)), np.full(n, 8))
        criterion = Criterion(np.arange(n) % n_classes, np.ones(n_classes))
        return engine.supports(ShapeletSearch(series, np.arange(n), (4,), criterion))

    assert reason(2048, 424) is None
    assert "424 classes at most among 2048 series; here are 425" in reason(2048, 425)
    assert reason(32768, 2) is None
    assert "32768 series at most; here are 32769" in reason(32769, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["walks", "unequal", "constant", "repeated", "switches"])
def test_wide_order_lines_find_the_same(case, kind, monkeypatch):
    """As a warp has room for few series only."""
    monkeypatch.setattr("skts.engines.cupy.shapelets.programs.KEYS", ())
    lengths = 24 - np.arange(12) if kind == "unequal" else None
    series = make(12, 24, seed=3, lengths=lengths)
    if kind == "constant":
        series.values[::2, :, 3:14] = 2.0
        series.values[5] = 1.0
    if kind == "repeated":
        series.values[6:] = series.values[:6]
    if kind == "switches":
        series.values[:] = series.values > np.median(series.values)
    labels = np.array([0, 1, 2, 1, 0, 1, 2, 0, 0, 1, 0, 2])
    found, expected = (
        search(engine, series, labels, (2, 3, 9, 13), **CASES[case]) for engine in ("cupy", "numba")
    )
    same(found, expected)
    assert_array_equal(found.distances, expected.distances)


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "n_classes"), [(2100, 2), (2500, 150), (400, 300)])
def test_the_gpu_takes_thousands_of_series_and_hundreds_of_classes(n, n_classes):
    rng = np.random.default_rng(n)
    labels = rng.permutation(np.arange(n) % n_classes)
    series = make(n, 20, seed=1)
    series.values[labels == 0, :, 4:12] += 5 * np.sin(np.arange(8.0))
    found, expected = (search(e, series, labels, (5, 9)) for e in ("cupy", "numba"))
    same(found, expected)
    assert_array_equal(found.distances, expected.distances)


def test_gains_of_many_classes_take_no_number_for_each():
    """Where all series weigh the same: numbers of all classes at all cuts were many times more."""
    rng = np.random.default_rng(4)
    n, n_classes, n_lines = 400, 200, 25
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, n - n_classes))
    criterion, lines = Criterion(labels, np.ones(n_classes)), rng.random((n_lines, n))
    criterion.best_cuts(lines[:1])
    tracemalloc.start()
    cuts = criterion.best_cuts(lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n_lines * n * 20
    for line, gain, threshold in zip(lines, cuts.gain, cuts.threshold, strict=True):
        plain = criterion.plain_gain(line <= threshold)
        assert_allclose(gain / criterion.unit, plain, rtol=1e-9)
