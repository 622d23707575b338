"""Joins of many channels on all engines against plain loops: kinds of data, rules, tilings."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import numpy as np
import pytest
import reference_channels
from numpy.testing import assert_allclose, assert_array_equal
from reference_channels import channel_join, mean_distance

from skts import config_context
from skts.engines import (
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Join,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.core.constants import FLOAT32_LOST, JOIN_GROUP, LISTED_ROWS
from skts.engines.core.plan import Tile
from skts.engines.cupy.profile.channel_programs import (
    HEIGHT,
    MANY,
    MANY_DIAGONALS,
    MOST_CHANNELS,
    choose_walk,
)
from skts.engines.cupy.profile.channel_tiles import runs_room
from skts.engines.families.profile import channels as family
from skts.engines.families.profile.channels import channel_means, nearest_of_all_channels
from skts.engines.numba.profile import channel_tiles, channels
from tests.engines.profile.test_join import KINDS, make_line

GPU_TILES = "skts.engines.cupy.profile.channel_tiles.ChannelTiles"


def make_channels(kinds, n, rng):
    """A line of several channels."""
    return [ConcatenatedSeries.of([make_line(kind, n, rng)]) for kind in kinds]


def check(work, engine):
    """Bit by bit the neighbours of the oracle."""
    found = run(work, engine=engine)
    both, left, right = channel_join(work)
    sides = [(found[:2], both)]
    if work.sides:
        sides += [(found.left, left), (found.right, right)]
    for (distances, indices), (wanted, places) in sides:
        assert_array_equal(distances, wanted)
        assert_array_equal(indices, places)


@pytest.fixture(params=["walk", "numpy"])
def way(request):
    """By compiled walks, or by NumPy where the work is small."""
    if request.param == "walk":
        request.getfixturevalue("walk")
    return request.param


@pytest.fixture
def walk(monkeypatch):
    """By compiled walks, also where the work is small."""
    monkeypatch.setattr("skts.engines.numba.profile.channel_tiles.prefer_numpy", lambda *_: False)
    monkeypatch.setattr(f"{GPU_TILES}._few_pairs", lambda *_: False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_kinds_of_data(rng, fast_engine, walk, monkeypatch, kind, normalize, precision):
    # in float32, whatever its errors
    monkeypatch.setattr("skts.engines.cupy.profile.channel_tiles.MOST_ERROR", 1e300)
    line = make_channels((kind, "walk", kind), 45, rng)
    options = {"exclusion": 3, "normalize": normalize, "precision": precision}
    check(ChannelJoin.of(line, None, 7, ChannelRule((1, 2, 3)), **options), fast_engine)


@pytest.mark.parametrize("most", [1, 100])
def test_however_few_are_measured_at_a_time(rng, monkeypatch, most):
    family, measured = importlib.import_module(ChannelJoin.__module__), []
    monkeypatch.setattr(family, "distances_at_a_time", lambda: most)
    measure = family.measure_channels
    monkeypatch.setattr(
        family, "measure_channels", lambda *of: (measured.append(len(of[2])), measure(*of))[1]
    )
    line = make_channels(("fill values", "walk"), 40, rng)
    with replace_kernels(always=True):
        check(ChannelJoin.of(line, None, 5, ChannelRule((1, 2)), exclusion=2), "numba")
    # two channels and 36 windows
    assert set(measured) == {1}


RULES = [
    ChannelRule((2,)),
    ChannelRule((1, 3, 4), worst=True),
    ChannelRule((2, 4), include=(1, 3)),
    ChannelRule((1, 2, 3), include=(2,), worst=True),
    ChannelRule((4,), include=(0, 1, 2, 3)),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules(rng, engine, way, rule):
    line = make_channels(("gaps", "flat stretches", "noise", "gaps"), 40, rng)
    check(ChannelJoin.of(line, None, 5, rule, exclusion=2, sides=True), engine)


@pytest.mark.parametrize("worst", [False, True])
@pytest.mark.parametrize("n_channels", [1, 3, 8, 11])
def test_means_at_any_place(rng, monkeypatch, n_channels, worst):
    """Some places at a time, however many axes there are."""
    monkeypatch.setattr(family, "SORTED_AT_A_TIME", 4 * n_channels)
    distances = rng.random((n_channels, 3, 5))
    distances[rng.random(distances.shape) < 0.2] = np.inf
    distances[0, 1] = np.nan
    given = distances.copy()
    include = (0, 2) if n_channels > 2 else ()
    numbers = tuple(sorted({max(1, len(include)), -(-n_channels // 2), n_channels}))
    means = channel_means(distances, ChannelRule(numbers, include, worst))
    assert_array_equal(distances, given)
    each = np.where(np.isnan(given), np.inf, given)
    for (at, *place), found in np.ndenumerate(means):
        values = each[(slice(None), *place)].tolist()
        assert found == mean_distance(values, numbers[at], include, worst)
    row = ChannelRule(numbers, include, worst)
    assert_array_equal(channel_means(distances[:, 1, 2], row), means[:, 1, 2])


@pytest.mark.parametrize("n_channels", [1, 2, 5, 9, 16, 20, 33, 70, 129])
@pytest.mark.parametrize("worst", [False, True])
def test_many_channels(rng, fast_engine, walk, n_channels, worst):
    """As many as are sorted in registers, and more."""
    kinds = ["walk", "flat stretches", "gaps", "noise"]
    line = make_channels([kinds[at % 4] for at in range(n_channels)], 28, rng)
    dimensions = tuple(sorted({1, max(1, n_channels // 2), n_channels}))
    work = ChannelJoin.of(line, None, 5, ChannelRule(dimensions, worst=worst), exclusion=4)
    missing = find_engine(fast_engine).supports(work)
    if missing is None:
        check(work, fast_engine)
    else:
        assert "joins series of at most 128 channels" in missing


@pytest.mark.gpu
def test_copies_that_are_as_near_as_their_channel_allows(walk):
    """In each channel otherwise: which are the nearest of 128 decides, and lanes share them."""
    rng = np.random.default_rng(4)
    points = rng.normal(size=(128, 150)).cumsum(axis=1)
    for channel in range(0, 128, 3):
        noise = 0.01 * channel * rng.normal(size=12)
        points[channel, 100:112] = points[channel, 30:42] + noise
    line = [ConcatenatedSeries.of([one]) for one in points]
    work = ChannelJoin.of(line, None, 10, ChannelRule(tuple(range(1, 129, 6))), exclusion=3)
    # plain loops would take a minute
    found, wanted = (run(work, engine=engine) for engine in ("cupy", "numba"))
    assert_array_equal(found.distances, wanted.distances)
    assert_array_equal(found.indices, wanted.indices)


@pytest.mark.gpu
def test_as_much_shared_memory_as_every_kernel_has(rng, walk):
    """The walk of 64 channels is given 48 KiB, and its kernel declares some more."""
    line = make_channels(["walk"] * 64, 20, rng)
    work = ChannelJoin.of(line, None, 5, ChannelRule((32,)), exclusion=4, precision="float64")
    assert choose_walk(work, "double").shared == 48 * 1024
    check(work, "cupy")


def test_farthest_channels_where_each_window_lacks_others(rng, fast_engine, walk):
    """Rows that are bounded together have distances in different channels."""
    x = rng.normal(size=(17, 60))
    x[rng.random(x.shape) < 0.1] = np.nan
    line = [ConcatenatedSeries.of([one]) for one in x]
    rule = ChannelRule((1, 4, 8), worst=True)
    check(ChannelJoin.of(line, None, 3, rule, exclusion=2), fast_engine)


@pytest.mark.parametrize("normalize", [True, False])
def test_two_lines(rng, engine, way, normalize):
    a, b = (make_channels(("walk", "gaps", "repeats"), n, rng) for n in (35, 50))
    for rule in (ChannelRule((1, 2, 3)), ChannelRule((1, 3), include=(1,), worst=True)):
        check(ChannelJoin.of(a, b, 6, rule, normalize=normalize), engine)


def test_some_pairs_only(rng, engine, way):
    line = make_channels(("walk", "gaps", "flat stretches"), 40, rng)
    excluded = rng.random(36) < 0.3
    rule = ChannelRule((1, 3))
    for options in ({"since": 20}, {"excluded": excluded}, {"since": 30, "excluded": excluded}):
        check(ChannelJoin.of(line, None, 5, rule, exclusion=3, sides=True, **options), engine)
    other = make_channels(("walk", "noise", "walk"), 25, rng)
    check(ChannelJoin.of(line, other, 5, rule, excluded=excluded), engine)


@pytest.mark.gpu
def test_many_windows_beside_few_new_ones(rng, monkeypatch):
    """As of a stream that has grown: of one block of columns all diagonals are walked at once."""
    line = make_channels(("walk", "gaps", "flat stretches"), 700, rng)
    work = ChannelJoin.of(line, None, 8, ChannelRule((1, 3)), exclusion=3, since=640)
    found = []
    for few in (True, False):
        monkeypatch.setattr(f"{GPU_TILES}._few_pairs", lambda *_, few=few: few)
        found.append(run(work, engine="cupy"))
    for one, other in zip(found[0][:2], found[1][:2], strict=True):
        assert_array_equal(one, other)


def test_later_neighbours_that_nobody_needs(rng, engine, way):
    """Where earlier ones alone are asked for, those are all there."""
    line = make_channels(("walk", "gaps", "flat stretches"), 40, rng)
    needed = np.zeros(36), np.full(36, np.inf)
    rule = ChannelRule((1, 3), worst=True)
    work = ChannelJoin.of(line, None, 5, rule, exclusion=3, sides=True, since=20, needed=needed)
    with config_context(verify=True):
        found = run(work, engine=engine)
    for one, wanted in zip(found.left, channel_join(work)[1], strict=True):
        assert_array_equal(one, wanted)


@pytest.mark.parametrize("normalize", [True, False])
def test_ties_and_few_points(rng, engine, way, normalize):
    """Whole numbers: many pairs are equally near, by different channels."""
    for n in (*range(1, 6), 30):
        line = [ConcatenatedSeries.of([rng.integers(0, 2, n).astype(float)]) for _ in range(3)]
        for length in {1, min(n, 2), min(n, 4), n}:
            rule = ChannelRule((1, 2, 3))
            work = ChannelJoin.of(line, None, length, rule, exclusion=1, normalize=normalize)
            check(work, engine)


@pytest.mark.parametrize("normalize", [True, pytest.param(False, marks=pytest.mark.compiles)])
def test_one_channel_is_an_ordinary_join(rng, fast_engine, walk, normalize):
    (line,) = make_channels(("flat stretches",), 300, rng)
    options = {"exclusion": 5, "sides": True, "normalize": normalize}
    found = run(ChannelJoin.of([line], None, 12, ChannelRule((1,)), **options), engine=fast_engine)
    wanted = run(Join(line, None, 12, **options), engine=fast_engine)
    for one, other in ((found, wanted), (found.left, wanted.left), (found.right, wanted.right)):
        assert_array_equal(one[0], other[0])
        assert_array_equal(one[1], other[1])


def test_more_equal_pairs_than_a_list_has_room_for(fast_engine, walk):
    """A list that is full is measured, and takes all pairs of the next row."""
    line = [ConcatenatedSeries.of([np.full(900, value)]) for value in (0.0, 1.0, -7.0)]
    work = ChannelJoin.of(line, None, 5, ChannelRule((1, 3)), exclusion=2)
    found = run(work, engine=fast_engine, n_jobs=1)
    places = np.arange(896)
    assert not found.distances.any()
    assert_array_equal(found.indices[:, 1], np.where(places < 3, places + 3, 0))


@pytest.mark.parametrize(
    "rule",
    [
        ChannelRule((1, 2, 3)),
        ChannelRule((1, 2), include=(1,)),
        ChannelRule((2, 3), include=(0, 2)),
        ChannelRule((1, 2, 3), worst=True),
        ChannelRule((3,), include=(2,), worst=True),
    ],
)
def test_stretches_that_are_constant_or_missing_in_some_channels(rng, fast_engine, walk, rule):
    """Distances to them are certified where they are found; ties go to the first."""
    for turn in range(8):
        points = rng.standard_normal((3, 80))
        for values in points:
            for _ in range(rng.integers(0, 4)):
                first, size = rng.integers(0, 70), rng.integers(7, 40)
                values[first : first + size] = rng.integers(0, 2)
        if turn % 2:
            points[rng.integers(3), rng.integers(80)] = np.nan
        if turn % 4 == 0:
            points[:, 40:] = points[:, :40]
        line = [ConcatenatedSeries.of([values]) for values in points]
        options = {"exclusion": int(rng.integers(0, 9)), "sides": bool(turn % 3 == 0)}
        check(ChannelJoin.of(line, None, 6, rule, **options), fast_engine)
        other = [ConcatenatedSeries.of([values[::-1].copy()]) for values in points]
        check(ChannelJoin.of(line, other, 6, rule, exclusion=0), fast_engine)


def test_pairs_of_constant_windows_are_not_listed(rng, walk, monkeypatch):
    """All of them are at distance 0: of 100,000 pairs none waits to be measured."""
    from skts.engines.numba.profile import channel_tiles

    made, make = [], channel_tiles.open_known

    def filled(*given):
        known = make(*given)
        known.entries.fill(-7)
        made.append(known)
        return known

    monkeypatch.setattr(channel_tiles, "open_known", filled)
    points = np.ones((3, 480))
    points[:, :20] = rng.standard_normal((3, 20))
    work = ChannelJoin.of(
        [ConcatenatedSeries.of([values]) for values in points], None, 8, ChannelRule((1, 2, 3))
    )
    check(work, "numba")
    for known in made:
        listed = known.entries[known.entries[:, 0] != -7]
        assert (listed[:, 0] < 20).all() and len(listed) < 500


def test_several_tiles(rng, fast_engine, walk):
    """Beyond a cell of the grid: plain code agrees, and each dimension alone."""
    line = make_channels(("walk", "flat stretches", "noise"), 1_300, rng)
    options = {"exclusion": 9}
    with config_context(verify=True):
        work = ChannelJoin.of(line, None, 20, ChannelRule((1, 2, 3)), **options)
        found = run(work, engine=fast_engine)
    for at, number in enumerate((1, 2, 3)):
        work = ChannelJoin.of(line, None, 20, ChannelRule((number,)), **options)
        alone = run(work, engine=fast_engine)
        assert_array_equal(alone.distances[:, 0], found.distances[:, at])
        assert_array_equal(alone.indices[:, 0], found.indices[:, at])


@pytest.mark.parametrize("at_a_time", [1, 500, 10**9])
@pytest.mark.parametrize("since", [0, 25])
@pytest.mark.parametrize("within", [True, False])
def test_all_pairs_of_a_tile_and_no_others(rng, within, since, at_a_time):
    """On the diagonal and off it, from NumPy, as where a work is too small for a walk."""
    line = make_channels(("walk", "gaps", "flat stretches"), 46, rng)
    rule = ChannelRule((1, 3))
    work = ChannelJoin.of(line, None if within else line, 7, rule, exclusion=3, since=since)
    lines = [one.points for one in work.channels]
    means = [reference_channels.mean_distances(lines, lines, 7, number) for number in (1, 3)]
    for tile in (Tile(0, 40, 0, 40), Tile(0, 9, 20, 40), Tile(5, 17, 9, 33), Tile(0, 40, 39, 40)):

        def admissible(i, j, tile=tile):
            there = tile.row <= i < tile.row_stop and tile.col <= j < tile.col_stop
            return there and (not within or (j - i > 3 and j >= since))

        found = nearest_of_all_channels(
            work, tile, find_engine("numba").window_distances, at_a_time, np.zeros(1, np.uint8)
        )
        for at, of_rows in enumerate(means):
            sides = [(found.rows, *reference_channels.nearest(of_rows, admissible), tile.rows)]
            if within:
                turned = reference_channels.nearest(of_rows.T, lambda j, i: admissible(i, j))
                sides.append((found.cols, *turned, tile.cols))
            for nearest, distances, places, here in sides:
                assert_array_equal(nearest.distances[:, at], distances[here])
                assert_array_equal(nearest.indices[:, at], places[here])


@pytest.mark.gpu
@pytest.mark.parametrize("room", [50, 600, 5_000])
@pytest.mark.parametrize("kind", ["walk", "flat stretches"])
@pytest.mark.parametrize("n_channels", [2, 17])
def test_lists_in_parts(rng, walk, monkeypatch, room, kind, n_channels):
    """A list may hold the pairs of some bands alone, or not even those of one in float32."""
    line = make_channels([kind] * n_channels, 400, rng)
    rule = ChannelRule(tuple(sorted({1, n_channels // 2, n_channels})))
    work = ChannelJoin.of(line, None, 20, rule, exclusion=5)
    expected = run(work, engine="cupy")
    for module in ("channels", "many_channels"):
        monkeypatch.setattr(f"skts.engines.cupy.profile.{module}.HEIGHT", 64)
    monkeypatch.setattr("skts.engines.cupy.profile.channels.MOST_PARTS", 3)
    monkeypatch.setattr("skts.engines.cupy.profile.many_channels.MOST_LISTS", 3)
    monkeypatch.setattr("skts.engines.cupy.profile.many_channels.KEPT_AT_ONCE", 200)
    monkeypatch.setattr("skts.engines.cupy.profile.channel_tiles._capacity", lambda *_: room)
    found = run(work, engine="cupy")
    assert_array_equal(found.distances, expected.distances)
    assert_array_equal(found.indices, expected.indices)


@pytest.mark.gpu
@pytest.mark.parametrize("room", [256, 700, 3000])
@pytest.mark.parametrize(("every", "offset"), [(1, 0), (4, 0), (8, 4)])
@pytest.mark.parametrize("most", [0, 1, 4])
def test_walks_take_each_block_of_a_share_once(rng, monkeypatch, room, every, offset, most):
    """As much at a time as the list has room for, by what the walk before has listed."""
    import cupy

    from skts.engines.cupy.profile import many_channels as module

    height, at_once = 64, 30
    for name in ("channels", "many_channels"):
        monkeypatch.setattr(f"skts.engines.cupy.profile.{name}.HEIGHT", height)
    monkeypatch.setattr(module, "BLOCKS_AT_ONCE", at_once)
    rows, columns = slice(128, 128 + 5 * height + 9), slice(40, 40 + 64 * 20 - 5)
    # of eight runs of a row in each block so many are listed, more of them further down
    weights = rng.integers(0, most + 1, (rows.stop, 20))
    weights[:300] //= 2
    walker = module.ManyChannels.__new__(module.ManyChannels)
    walker.work = SimpleNamespace(rows=rows, cols=columns, room=room, capacity=1)
    walker.kernel, walker.count = SimpleNamespace(diagonals=2), cupy.zeros(1, np.int32)
    walker.rate, settled, rates, before = 1.0, np.zeros((rows.stop, 20), int), [1.0], []

    def launch(some, share):
        assert walker.rate == rates[-1]
        assert walker.count.get()[0] == 0
        n_rows, blocks = some.stop - some.start, -(-20 // share.every)
        looked = 8 * n_rows * blocks
        if blocks > 1 or n_rows > height:
            assert walker.rate * looked <= room
            assert blocks * -(-n_rows // height) <= at_once
        listed = int(weights[some, share.offset :: share.every].sum())
        walker.count.fill(listed)
        rates.append(listed / looked)
        before.append((some, share, listed))

    def settle(count, last):
        some, share, listed = before[-1]
        assert (count, last) == (listed, True)
        assert count <= room
        assert walker.rate == rates[-1]
        settled[some, share.offset :: share.every] += 1

    monkeypatch.setattr(walker, "_launch", launch)
    monkeypatch.setattr(walker, "_settle", settle)
    walker._take(module.Share(every, offset), last=True)
    expected = np.zeros_like(settled)
    expected[rows, offset::every] = 1
    assert_array_equal(settled, expected)
    # where nothing is listed, all that follows goes together as far as there are blocks for it
    assert len(before) <= 12 or most > 0


def test_all_runs_of_the_smallest_part_of_a_walk_of_many_channels_have_room():
    """A part that lists more than there is room for is cut, which must come to an end."""
    most = max(MANY_DIAGONALS.values()) * 32 * HEIGHT // LISTED_ROWS
    assert min(runs_room(n_channels, 2) for n_channels in range(MANY, MOST_CHANNELS + 1)) >= most


@pytest.mark.parametrize(("loud", "height"), [(0, 256), (1, 64), (4, 64)])
def test_bands_are_low_where_groups_are_uneven(loud, height):
    """Of the groups of a band alone: it is that of all after the first."""
    group, place = channels.GROUP, channels._height
    groups = np.ones((2, 5, 8))
    groups[1, loud, 0] = 1e4
    axis = SimpleNamespace(stop=5 * group, mean=np.zeros((2, 5 * group)), groups=groups)
    assert getattr(place, "py_func", place)(group, axis) == height


@pytest.mark.parametrize("normalize", [True, False])
def test_errors_of_a_block_are_those_of_its_kind(rng, monkeypatch, normalize):
    """As plain Python: doubts of normalised windows by their means, of raw ones by their energy."""
    for name in ("_largest", "_drift", "doubt", "sort_few"):
        kernel = getattr(channels, name)
        monkeypatch.setattr(channels, name, getattr(kernel, "py_func", kernel))
    length, group = 8, channels.GROUP
    a, b = (
        SimpleNamespace(
            mean=rng.normal(size=(2, 3 * group)),
            groups=rng.uniform(1, 2, (2, 3, 8)),
            extents=np.stack([np.full((2, 3), -1.0), np.full((2, 3), 1.0)], axis=-1),
        )
        for _ in range(2)
    )
    low, allowance = np.zeros(2), np.zeros(1)
    room = SimpleNamespace(doubts=np.zeros(2), errors=np.zeros(2), allowance=allowance)
    room.bounds = SimpleNamespace(low=low)
    walk = SimpleNamespace(length=length, normalize=normalize)
    walk.rule = SimpleNamespace(dimensions=np.array([1]))
    bound = getattr(channels._bound_errors, "py_func", channels._bound_errors)
    bound(a, b, (0, 2 * group), (group, 3 * group), room, walk)
    mine, other = a.groups[:, :2].max(axis=1), b.groups[:, 1:].max(axis=1)
    unit = 2.0**-53
    if normalize:
        blur, shift = np.maximum(mine, other)[:, 4:6].T
        wanted = 1e-14 * length**2 + 8 * unit * length**1.5 * blur + 8 * (length * shift) ** 2
    else:
        wanted = 2 * unit * length * (16 + 8 * length**0.5) * (mine + other)[:, 6]
    assert_allclose(room.doubts, wanted)
    # each term of the covariance walk tells, as errors of means are small
    for one in (a, b):
        one.groups[:, :, 2] *= 1e-17
    bound(a, b, (0, 2 * group), (group, 3 * group), room, walk)
    mine, other = a.groups[:, :2].max(axis=1), b.groups[:, 1:].max(axis=1)
    (norm, step, slip, scale), (norm_b, step_b, slip_b, scale_b) = mine.T[:4], other.T[:4]
    errors = unit * (2 * group + 4) * (2 * norm * norm_b + 4 * step * step_b)
    errors += unit * (length + 8) * norm * norm_b
    if normalize:
        drift = 2 * (1 + np.abs(b.mean[:, 2 * group]))
        errors += unit * (length + 8) * length**0.5 * norm * drift
        errors += length * (slip + slip_b) * (drift + slip + slip_b)
        errors += 2 * 2 * group * (slip + slip_b) * (step + step_b)
    assert_allclose(room.errors, errors, rtol=1e-12)
    roots = np.sqrt(errors * scale * scale_b + wanted)
    assert_allclose(low, np.sort(roots), rtol=1e-12)
    assert_allclose(allowance, roots.max() + 1e-18, rtol=1e-12)
    least = np.sqrt(room.errors * mine[:, 3] * other[:, 3] + wanted)
    assert_allclose(room.bounds.low, np.sort(least))
    assert allowance[0] >= least.max()


@pytest.mark.parametrize("normalize", [True, False])
def test_groups_of_windows_have_the_bounds_of_their_own_channel(rng, normalize):
    """Of channels whose scales differ."""
    length, scales = 8, (1.0, 1e3, 1e-3)
    pools = [ConcatenatedSeries.of([one * rng.normal(size=200)]) for one in scales]
    tiles, rule = find_engine("numba"), ChannelRule((1,))
    work = ChannelJoin.of(pools, None, length, rule, normalize=normalize)
    lines = [tiles._searched((pool, pool), length, normalize)[0] for pool in work.channels]
    unit = min(line.unit for line in lines)
    axis = tiles._axis(pools, lines, length, normalize, unit)
    n_windows = 200 - length + 1
    for c, line in enumerate(lines):
        steps = (np.abs(axis.lead[c]) + np.abs(axis.trail[c]))[:n_windows]
        for group in range(axis.groups.shape[1]):
            some = slice(group * channels.GROUP, min((group + 1) * channels.GROUP, n_windows))
            assert axis.groups[c, group, 1] == steps[some].max()
            assert axis.groups[c, group, 2] == line.slip[some].max()
            assert axis.groups[c, group, 3] == axis.scale[c, some].max()


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
def test_rests_of_windows_on_a_gpu(rng, walk, monkeypatch, normalize):
    """What is not known of squared distances beside their covariances."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    module, laid = importlib.import_module("skts.engines.cupy.profile.channels"), []
    make_axis = module.make_axis

    def noted(*given):
        laid.append((given[1], given[4], make_axis(*given)))
        return laid[-1][2]

    monkeypatch.setattr(module, "make_axis", noted)
    pools, length, u = make_channels(("walk", "noise"), 90, rng), 16, 2.0**-53
    run(ChannelJoin.of(pools, None, length, ChannelRule((2,)), normalize=normalize), engine="cupy")
    lines, unit, axis = laid[0]
    for c, line in enumerate(lines):
        norm, size, slip = (
            np.asarray(getattr(each, "get", lambda e=each: e)())
            for each in (line.norm, line.size, line.slip)
        )
        if normalize:
            wanted = 1e-14 * length**2 + 8 * u * length**1.5 * size / norm
            wanted += 8 * (length * slip / norm) ** 2
        else:
            energy = (norm * (unit / line.unit)) ** 2
            wanted = 2 * u * length * (16 + 8 * length**0.5) * energy
        assert_allclose(axis.rests.get()[c, : norm.size], wanted, rtol=1e-9)


@pytest.mark.gpu
def test_the_error_of_most_bands_on_a_gpu(rng):
    """That of a square in float32 beside the energy of two windows, in the worst channel."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    module = importlib.import_module("skts.engines.cupy.profile.channels")
    n_channels, n_windows, v = 3, 3 * HEIGHT - 100, 2.0**-24
    scale, energy = rng.uniform(1, 2, (2, n_channels, n_windows))
    scale[:, rng.random(n_windows) < 0.2] = 0  # of windows that are not compared by it
    # bounds of groups of windows, of which a band has many
    groups = rng.uniform(1, 9, (n_channels, -(-n_windows // JOIN_GROUP), 7))
    wanted = []
    for c in range(n_channels):
        of_bands = []
        for start in range(0, n_windows, HEIGHT):
            used = scale[c, start : start + HEIGHT]
            norm, step = groups[c, start // JOIN_GROUP : (start + HEIGHT) // JOIN_GROUP, :2].max(
                axis=0
            )
            of_bands.append((2 * norm**2 + 8 * step**2) * np.mean(used[used > 0] ** 2))
        mean = energy[c, scale[c] > 0].mean()
        wanted.append(v * (HEIGHT + 8) * np.median(of_bands) / (2 * mean))
    assert_allclose(module._typical_error(groups, scale, energy), max(wanted), rtol=1e-9)
    for c in range(n_channels):
        # a channel that no window uses has no error
        left = np.where(np.arange(n_channels)[:, np.newaxis] == c, scale, 0)
        assert_allclose(module._typical_error(groups, left, energy), wanted[c], rtol=1e-9)
        # scales of which float32 does not hold the products, and one without energy
        for factor in (1e-13, 1e13):
            off = scale.copy()
            off[c, np.flatnonzero(scale[c])[7]] *= factor
            assert module._typical_error(groups, off, energy) == np.inf
        nothing = np.where(np.arange(n_channels)[:, np.newaxis] == c, 0, energy)
        assert module._typical_error(groups, scale, nothing) == np.inf
    assert module._typical_error(groups, 0 * scale, energy) == 0


BOUNDS = """
template <typename T>
__device__ void bound(
    const ChannelGroup* a, const ChannelGroup* b, int again, int length, int normalize,
    double* found) {
    const int n = 3 * JOIN_GROUP;
    const ChannelBound all =
        bound_channel<T>(a, b, n, n, 0, n, 1, JOIN_GROUP + 1, again, length, normalize);
    found[0] = all.error, found[1] = all.rest;
}
extern "C" __global__ void bounds(
    const ChannelGroup* a, const ChannelGroup* b, int again, int length, int normalize,
    double* found) {
    bound<double>(a, b, again, length, normalize, found);
    bound<float>(a, b, again, length, normalize, found + 2);
}
"""


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
def test_bounds_of_a_block_on_a_gpu_are_those_of_its_groups(rng, normalize):
    """Each term by itself, beside next to nothing of others: docs/developer/numerics.rst."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    cp = importlib.import_module("cupy")
    programs = importlib.import_module("skts.engines.cupy.programs")
    text = programs.source("profile/channels.cu") + BOUNDS
    bounds = cp.RawModule(code=text, options=programs.OPTIONS).get_function("bounds")
    length, again = 16, 24
    one_by_one = 1e-9 + (1 - 1e-9) * np.eye(7)
    # means far apart that are known well
    far = np.array([1, 1, 1e-20, 1, 1, 1e12, 1e12])
    for shares in (np.ones(7), *one_by_one, np.full(7, 1e-20), far):
        # norm, step, slip, rest, energy, least and largest mean
        a, b = rng.uniform(1, 2, (2, 3, 7)) * [1, 1, 1e-8, 1, 1, -1, 1] * shares
        found = cp.zeros(4)
        sides = (cp.asarray(side) for side in (a, b))
        bounds((1,), (32,), (*sides, *map(np.int32, (again, length, normalize)), found))
        mine, other = a.max(axis=0), b[:2].max(axis=0)
        drift = 2 * (other[6] - b[:2, 5].min())
        slip = mine[2] + other[2]
        height, exact = 3 * JOIN_GROUP + again, 2.0**-53
        for (error, rest), unit in zip(found.get().reshape(2, 2), (exact, 2.0**-24), strict=True):
            walked = 2 * mine[0] * other[0] + 8 * mine[1] * other[1]
            wanted = unit * (height + 8) * walked
            wanted += exact * (length + 8) * mine[0] * other[0]
            if unit > exact:
                # what is too small for float32
                wanted += FLOAT32_LOST
            if normalize:
                wanted += exact * (length + 8) * length**0.5 * mine[0] * drift
                wanted += length * slip * (drift + slip)
                wanted += 2 * height * slip * (mine[1] + other[1])
            energies = 8 * unit * (mine[4] + other[4]) if unit > exact else 0
            assert_allclose(error, wanted, rtol=1e-3)
            assert_allclose(rest, 2.01 * (mine[3] + other[3] + energies), rtol=1e-6)


@pytest.mark.parametrize("normalize", [True, False])
def test_channels_of_an_axis_are_as_each_would_be_alone(rng, normalize):
    """Bounds of errors are taken from what lies there, and no answer tells whose it is."""
    engine, n, length = find_engine("numba"), 200, 9
    pools = make_channels(("offset", "walk", "flat", "noise"), n, rng)
    known = [engine._windows(pool, length, normalize) for pool in pools]
    lines = [engine._searched((pool, pool), length, normalize)[0] for pool in pools]
    unit = min(line.unit for line in lines)
    together = channel_tiles._make_axis(known, lines, length, normalize, unit)
    assert (together.first, together.stop) == (0, n - length + 1)
    for c, pair in enumerate(zip(known, lines, strict=True)):
        alone = channel_tiles._make_axis(*([one] for one in pair), length, normalize, unit)
        fields = ([*axis[1:-2], *axis.line] for axis in (together, alone))
        for both, one in zip(*fields, strict=True):
            assert_array_equal(both[c], one[0])
        # of the groups, as they are described
        for group in range(-(-together.stop // channels.GROUP)):
            some = slice(group * channels.GROUP, (group + 1) * channels.GROUP)
            means = lines[c].mean[some]
            assert together.extents[c, group].tolist() == [means.min(), means.max()]
