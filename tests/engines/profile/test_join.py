"""Joins of windows on all engines against plain loops: kinds of data, options, tilings."""

from __future__ import annotations

import importlib
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import reference_join
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import (
    ConcatenatedSeries,
    Join,
    Tile,
    WindowDistances,
    WindowKinds,
    find_engine,
    run,
)
from skts.engines.core.constants import (
    FLOAT64_UNIT,
    SCORE_ABOVE32,
    SCORE_ABOVE64,
    SCORE_BELOW32,
    SCORE_BELOW64,
)
from skts.engines.core.execution import compute_area
from skts.engines.cupy.profile import programs
from skts.engines.families.profile.concatenated import fill_gaps
from skts.engines.families.profile.join import JoinPart
from skts.engines.families.profile.lines import (
    Frame,
    common_frame,
    even_line,
    line_as_it_is,
    line_of_pieces,
    step_factors,
)
from skts.engines.families.profile.nearest import Nearest
from skts.engines.numba.profile import join as numba_join
from skts.engines.numba.profile.lines import repeats


def make_line(kind, n, rng):
    """Series of a kind that has gone wrong somewhere, if not here."""
    walk = rng.normal(size=n).cumsum()
    if kind == "walk":
        return walk
    if kind == "noise":
        return rng.normal(size=n)
    if kind == "flat stretches":
        walk[n // 5 : n // 3] = walk[n // 5]
        walk[n // 2 : n // 2 + n // 6] = 0.0
    elif kind == "gaps":
        walk[n // 3] = np.nan
        walk[n // 2 : n // 2 + 5] = np.inf
        walk[:3] = np.nan
    elif kind == "scales":
        walk = rng.normal(size=n)
        walk[: n // 3] *= 1e-6
        walk[2 * n // 3 :] *= 1e6
    elif kind == "offset":
        walk = 1e8 + rng.normal(size=n)
    elif kind == "repeats":
        walk = np.tile(walk[: n // 8], 9)[:n]
    elif kind == "near repeats":
        walk = np.tile(walk[: n // 4], 5)[:n] + 1e-9 * rng.normal(size=n)
    elif kind == "fill values":
        walk[n // 4] = walk[n // 4 + 3] = 1e36
        walk[2 * n // 3 : 2 * n // 3 + n // 10] = -9999.0
    elif kind == "far scales":
        walk = rng.normal(size=n) * np.repeat([1e-100, 1.0, 1e100], -(-n // 3))[:n]
    elif kind == "smooth":
        # scores of a window climb from row to row
        walk = walk.cumsum()
        walk[n // 2 : n // 2 + 14] = walk[n // 2]
    elif kind == "nearly flat":
        walk = np.where(np.arange(n) % 60 < 30, 5.0, walk) + 1e-10 * rng.normal(size=n)
    return walk


KINDS = [
    *("walk", "noise", "flat stretches", "gaps", "scales", "offset", "repeats"),
    *("near repeats", "nearly flat", "fill values", "far scales", "smooth"),
]


@pytest.mark.parametrize("frame", [None, Frame(0.0, 1.0)])
def test_factors_of_steps_move_covariances_on(frame):
    x, length = np.random.default_rng(0).uniform(-1, 1, 40), 7
    windows = np.lib.stride_tricks.sliding_window_view(x, length)
    mean = windows.mean(axis=1)
    lead, trail = step_factors(x, mean, frame)
    assert lead[0] == trail[0] == 0
    if frame is None:
        centered = windows - mean[:, np.newaxis]
        products, grown = centered @ centered.T, np.outer(lead, trail) + np.outer(trail, lead)
    else:
        products, grown = windows @ windows.T, np.outer(lead, lead) - np.outer(trail, trail)
    assert_allclose(
        products[:-1, :-1] + grown[1:, 1:], products[1:, 1:], rtol=0, atol=1e-14 * length
    )


def test_raised_scores_hold_the_bits_left_out_and_what_windows_leave_open():
    """See "leading bits" in docs/developer/numerics.rst."""
    left_open, rounded = 2.0**-26, 2.0**-23
    # just below the next number that upper halves tell apart
    scores = np.ldexp(1 + 2.0**-20 - 2.0**-52, np.arange(-20, 20))
    upper = (scores.view(np.int64) >> 32 << 32).view(np.float64)
    assert (upper * (1 + SCORE_ABOVE64) >= scores * (1 + left_open)).all()
    assert SCORE_BELOW64 >= left_open
    assert min(SCORE_ABOVE32, SCORE_BELOW32) >= rounded + left_open


def check(found, expected, length):
    """Same neighbours, bit by bit the same distances."""
    distances, indices = expected
    assert_array_equal(found[1], indices)
    # the oracle sums without SIMD, in the same order: only its square root of a mean may differ
    assert_allclose(found[0], distances, rtol=1e-13, atol=1e-13 * np.sqrt(length))


def check_all(join, engine):
    found = run(join, engine=engine)
    both, left, right = reference_join.join(join)
    check(found[:2], both, join.length)
    if join.sides:
        check(found.left, left, join.length)
        check(found.right, right, join.length)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_the_oracle_compares_each_window_with_each(rng, kind, normalize):
    """It has one way to all distances of two lines, and another to a single one: the same bits."""
    a, b = make_line(kind, 60, rng), make_line("flat stretches", 50, rng)
    positions = range(0, 50, 3)
    found = reference_join.window_distances(a, positions, b, 9, normalize=normalize)
    expected = [
        [
            reference_join.window_distance(a[i : i + 9], b[j : j + 9], normalize=normalize)
            for j in range(42)
        ]
        for i in positions
    ]
    assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_self_join_with_sides(rng, fast_engine, kind, normalize):
    line = ConcatenatedSeries.of([make_line(kind, 150, rng)])
    join = Join(line, None, 11, 3, n_neighbors=2, sides=True, normalize=normalize)
    check_all(join, fast_engine)


@pytest.mark.parametrize("sides", [False, True])
def test_bytes_of_the_answer_are_those_stated(rng, sides):
    line = ConcatenatedSeries.of([rng.normal(size=60)])
    join = Join(line, None, 11, 3, n_neighbors=2, sides=sides)
    found = run(join, engine="numba")
    parts = found[:2] if not sides else (*found[:2], *found.left, *found.right)
    assert join.result_bytes() == sum(part.nbytes for part in parts)


def test_a_quiet_window_at_the_end_of_a_loud_band(fast_engine):
    """The covariances of its row carry the rounding errors of those before it."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, piece = 1e8 * rng.normal(size=200), rng.normal(size=8)
        # to the last, which is quiet too, the second is nearer than the first
        x[20:28] = 1e8 * (piece + 0.2 * rng.normal(size=8))
        x[63:71] = piece + 0.1 * rng.normal(size=8)
        x[150:158] = piece
        distances, _ = reference_join.exact_distances(x, x, 8)
        distances[np.abs(np.subtract.outer(range(193), range(193))) <= 3] = np.inf
        for sides in (False, True):
            found = run(
                Join(ConcatenatedSeries.of([x]), None, 8, 3, sides=sides), engine=fast_engine
            )
            assert_array_equal(found.indices[:, 0], distances.argmin(axis=1))


def test_raw_windows_that_are_the_opposite_of_all_others(fast_engine):
    """No pair is farther apart: its score is the least that there is."""
    left, right = (ConcatenatedSeries.of([sign * np.ones(300)]) for sign in (1, -1))
    found = run(Join(left, right, 7, normalize=False), engine=fast_engine)
    assert_array_equal(found.indices[:, 0], 0)
    assert_allclose(found.distances[:, 0], 2 * np.sqrt(7))


@pytest.mark.parametrize("kind", ["scales", "far scales", "fill values"])
def test_a_line_of_one_window(rng, fast_engine, kind):
    """Also for windows that no search holds, which are measured one by one."""
    a, b = make_line(kind, 110, rng), rng.normal(size=9)
    for normalize in (True, False):
        for one, other in ((a, b), (b, a)):
            join = Join(
                ConcatenatedSeries.of([one]),
                ConcatenatedSeries.of([other]),
                9,
                n_neighbors=2,
                normalize=normalize,
            )
            check_all(join, fast_engine)


def test_constant_windows_come_first_where_others_are_as_far(fast_engine):
    """Windows of ones and minus ones that differ in two of eight are as far as constant ones."""
    for seed in range(12, 20):
        rng = np.random.default_rng(seed)
        line = np.concatenate([rng.choice([-1.0, 1.0], 13), np.full(8, 5.0), [-1.0, 1.0] * 3])
        for k in (1, 2):
            join = Join(
                ConcatenatedSeries.of([np.roll(line, seed)]), None, 8, 2, n_neighbors=k, sides=True
            )
            check_all(join, fast_engine)


@pytest.mark.parametrize("sides", [False, True])
def test_constant_windows_among_old_and_new_ones(rng, fast_engine, sides):
    line = rng.normal(size=40)
    line[5:16], line[22:33] = 0.0, 7.0
    for since in range(0, 34, 3):
        check_all(
            Join(ConcatenatedSeries.of([line]), None, 8, 2, sides=sides, since=since), fast_engine
        )


@pytest.mark.parametrize("sides", [False, True])
@pytest.mark.parametrize("kind", ["walk", "constant"])
def test_neighbours_that_are_not_needed_may_be_missing(rng, fast_engine, kind, sides):
    line = make_line(kind, 150, rng)
    join = Join(ConcatenatedSeries.of([line]), None, 8, 2, n_neighbors=3, sides=sides, since=90)
    every = run(join, engine="oracle")
    n_windows = join.shape[0]
    needed = [np.quantile(np.append(every.distances[:90, 0], 0.0), rng.random(n_windows))
              for _ in range(2)]  # fmt: skip
    for one in needed:
        one[rng.random(n_windows) < 0.2] = np.inf
    needed[1] = needed[1] if sides else needed[0]
    with config_context(verify=True):
        found = run(replace(join, needed=tuple(needed)), engine=fast_engine)
    parts = [(found.right, every.right), (found.left, every.left)] if sides else [(found, every)]
    for (mine, theirs), limit in zip(parts, needed, strict=False):
        near = theirs.distances < limit[:, np.newaxis]
        assert near.any() and not near.all()
        assert_array_equal(mine.distances < limit[:, np.newaxis], near)
        assert_array_equal(mine.distances[near], theirs.distances[near])
        assert_array_equal(mine.indices[near], theirs.indices[near])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_join_of_two_lines(rng, fast_engine, kind, normalize):
    a, b = make_line("walk", 60, rng), make_line(kind, 110, rng)
    check_all(
        Join(ConcatenatedSeries.of([a]), ConcatenatedSeries.of([b]), 9, normalize=normalize),
        fast_engine,
    )
    check_all(
        Join(
            ConcatenatedSeries.of([b]),
            ConcatenatedSeries.of([a]),
            9,
            n_neighbors=3,
            normalize=normalize,
        ),
        fast_engine,
    )


@pytest.mark.parametrize(
    ("n", "length", "exclusion"),
    [(40, 1, 0), (40, 3, 0), (40, 3, 10), (40, 30, 8), (40, 39, 0), (40, 40, 0), (40, 25, 20)],
)
def test_short_lines_and_wide_exclusions(rng, fast_engine, n, length, exclusion):
    line = ConcatenatedSeries.of([rng.normal(size=n).cumsum()])
    check_all(Join(line, None, length, exclusion, sides=True), fast_engine)


def test_pool_of_several_series(rng, fast_engine):
    series = [rng.normal(size=n).cumsum() + 3 * n for n in (50, 12, 8, 33)]
    for exclusion in (0, 4, 30):
        line = ConcatenatedSeries.of(series, gap=exclusion - 10 + 1)
        join = Join(line, None, 10, exclusion, n_neighbors=2)
        check_all(join, fast_engine)
        # across series no exclusion holds: every window finds its nearest in the naive sense
        expected = run(replace(join, a=ConcatenatedSeries.of(series, gap=500)), engine=fast_engine)
        far, near = expected.distances, run(join, engine=fast_engine).distances
        assert_array_equal(near[np.isfinite(near)], far[np.isfinite(far)])


def test_excluded_windows_and_new_ones(rng, fast_engine):
    line = ConcatenatedSeries.of([make_line("flat stretches", 120, rng)])
    excluded = np.zeros(120 - 9, bool)
    excluded[20:45] = True
    join = Join(line, None, 10, 3, n_neighbors=2, sides=True)
    check_all(replace(join, excluded=excluded), fast_engine)
    check_all(replace(join, since=70), fast_engine)
    check_all(replace(join, since=70, excluded=excluded), fast_engine)


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_long_windows_whose_covariances_are_walked_in_both_precisions(fast_engine, seed):
    """The errors of what a strip in single precision hands on are those of single precision."""
    x, length = np.random.default_rng(seed).normal(size=2300).cumsum(), 700
    line = ConcatenatedSeries.of([x])
    found = run(Join(line, None, length, 175), engine=fast_engine, n_jobs=1)
    windows = sliding_window_view(x, length)
    windows = windows - windows.mean(axis=1, keepdims=True)
    windows /= windows.std(axis=1, keepdims=True)
    squares = 2 * length - 2 * (windows @ windows.T)
    places = np.arange(len(windows))
    squares[np.abs(places[:, np.newaxis] - places) <= 175] = np.inf
    assert_array_equal(found.indices[:, 0], squares.argmin(axis=1))


@pytest.mark.parametrize("kind", ["walk", "scales", "repeats", "flat stretches"])
def test_long_lines_of_many_strips_and_bands(rng, fast_engine, kind):
    """Against certified distances of all pairs, which are tested above."""
    n, length = 5200, 16
    line = ConcatenatedSeries.of([make_line(kind, n, rng)])
    join = Join(line, None, length, 4)
    found = run(join, engine=fast_engine)
    places = np.arange(line.n_windows(length))
    chosen = np.sort(rng.choice(places, 300, replace=False))
    distances = run(WindowDistances(line, chosen, line, length), engine="numba")
    distances[np.abs(chosen[:, None] - places) <= 4] = np.inf
    assert_array_equal(found.indices[chosen, 0], distances.argmin(axis=1))
    assert_array_equal(found.distances[chosen, 0], distances.min(axis=1))


@pytest.mark.parametrize("sides", [False, True])
def test_tiles_do_not_change_the_answer(rng, fast_engine, sides):
    line = ConcatenatedSeries.of([make_line("near repeats", 2600, rng)])
    join = Join(line, None, 20, 5, n_neighbors=9, sides=sides)
    engine = find_engine(fast_engine)
    expected = run(join, engine=engine)
    # no neighbour beyond the end of a tile may count there, too
    cuts = [0, 300, 307, 613, 1024, 1031, 1500, 2111, line.n_windows(20)]
    total, cancel = join.start(), np.zeros(1, np.uint8)
    tiles = [
        Tile(top, bottom, left, right)
        for top, bottom in itertools.pairwise(cuts)
        for left, right in itertools.pairwise(cuts)
    ]
    for tile in reversed(tiles):
        if join.wanted(tile):
            work = join.with_incumbent(total)
            join.merge(total, tile, engine.join(work, tile, cancel))
    found = join.finish(total, lambda work: run(work, engine=engine))
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)
    assert_array_equal(expected.indices, run(join, engine="numba", n_jobs=1).indices)


@pytest.mark.parametrize("exclusion", [0, 3])
def test_tiles_without_pairs_that_are_far_enough_apart_are_left_out(rng, exclusion):
    join = Join(ConcatenatedSeries.of([rng.normal(size=20)]), None, 5, exclusion, since=8)
    for tile in (Tile(*rows, *cols) for rows in ((0, 4), (6, 7)) for cols in ((2, 9), (3, 11))):
        pairs = [(i, j) for i in range(*tile[:2]) for j in range(*tile[2:]) if j >= 8]
        assert join.wanted(tile) == any(j - i > exclusion for i, j in pairs)
    assert not join.wanted(Tile(8, 9, 8, 9 + exclusion))
    assert join.wanted(Tile(8, 9, 8, 10 + exclusion))


@pytest.mark.parametrize("sides", [False, True])
def test_what_several_devices_keep_comes_together(rng, fast_engine, sides):
    line = ConcatenatedSeries.of([make_line("near repeats", 5200, rng)])
    join = Join(line, None, 20, 5, sides=sides)
    engine, cancel = find_engine(fast_engine), np.zeros(1, np.uint8)
    cuts = [0, 700, 1031, 2600, 4096, line.n_windows(20)]
    tiles = [
        Tile(top, bottom, left, right)
        for top, bottom in itertools.pairwise(cuts)
        for left, right in itertools.pairwise(cuts)
    ]
    totals = [join.start() for _ in range(3)]
    for number, tile in enumerate(filter(join.wanted, tiles)):
        mine = totals[number % 3]
        join.merge(totals[0], tile, engine.join(join.with_incumbent(mine), tile, cancel))
    # as if they had worked for one
    for number, other in enumerate(totals[1:], 1):
        totals[0].device_accumulators.update(
            {(100 + number, *key): kept for key, kept in other.device_accumulators.items()}
        )
    found = join.finish(totals[0], lambda work: run(work, engine=engine))
    expected = run(join, engine="numba")
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)
    if sides:
        assert_array_equal(found.left.indices, expected.left.indices)
        assert_array_equal(found.right.indices, expected.right.indices)


class _Kept:
    """Neighbours in host memory, as a device might keep them."""

    def __init__(self, n_windows):
        self.rows = Nearest.none(n_windows, 1)

    def take(self, other):
        self.rows.add(slice(None), other.rows)

    def answer(self, area):
        for row in range(area.row, area.row_stop, 7):
            piece = area._replace(row=row, row_stop=min(row + 7, area.row_stop))
            yield piece, JoinPart(Nearest(*(values[piece.rows] for values in self.rows)), None)


@pytest.mark.parametrize("k", [1, 2])
def test_areas_of_rows_that_others_compute_merge_to_the_answer(rng, fast_engine, k):
    """As processes have them: of all columns, so that rows and columns are not the same windows."""
    join = Join(ConcatenatedSeries.of([rng.normal(size=400).cumsum()]), None, 16, 4, k)
    n, total = join.shape[0], join.start()
    for first, stop in ((200, n), (0, 200)):
        area = Tile(first, stop, 0, n)
        for tile, result in compute_area(join, area, engine=fast_engine, n_jobs=1):
            join.merge(total, tile, result)
    found, expected = join.finish(total, run), run(join, engine="numba")
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("cuts", [(0, 45), (0, 20, 45), (0, 7, 20, 45)])
def test_what_tiles_may_lack_is_the_least_that_any_of_them_says(rng, cuts, k):
    """Floors of tiles of some rows and columns, in any order, with tiles that lack nothing."""
    join = Join(ConcatenatedSeries.of([rng.normal(size=45 + 7)]), None, 8, 2, k, sides=True)
    total, wanted = join.start(), np.full((2, 45), np.inf)
    parts = list(itertools.pairwise(cuts))
    tiles = [Tile(*rows, *cols) for rows in parts for cols in parts]
    for number, place in enumerate(rng.permutation(2 * len(tiles))):
        # each comes twice, as of two workers
        tile = tiles[place % len(tiles)]
        floors = [rng.random(count) for count in tile.shape]
        floors = [None if number % 3 == at else floor for at, floor in enumerate(floors)]
        given = [None if floor is None else floor.copy() for floor in floors]
        join.merge(total, tile, JoinPart(*(Nearest.none(n, k) for n in tile.shape), *floors))
        for at, (windows, floor) in enumerate(zip((tile.rows, tile.cols), given, strict=True)):
            if floor is not None:
                wanted[at, windows] = np.minimum(wanted[at, windows], floor)
                # where others follow, results are not changed
                assert_array_equal(floors[at], floor)
    assert_array_equal(total.floors, wanted)


def test_floors_of_the_only_tile_are_those_of_all(rng):
    join = Join(ConcatenatedSeries.of([rng.normal(size=20)]), None, 8)
    total, floor = join.start(), rng.random(13)
    join.merge(total, Tile(0, 13, 0, 13), JoinPart(Nearest.none(13, 1), None, floor))
    assert total.floors[0] is floor


@pytest.mark.parametrize("exclusion", [3, 30])
@pytest.mark.parametrize("k", [1, 2])
def test_the_last_pair_of_a_line_that_is_far_enough_apart(rng, fast_engine, exclusion, k):
    """Wherever it lies in a chunk of rows: no other row of that has an admissible column there."""
    length, chunk = 8, 32
    for n_windows in (*range(chunk + exclusion, chunk + exclusion + 6), 2 * chunk + exclusion + 2):
        points = rng.normal(size=n_windows + length - 1)
        first, last = n_windows - 2 - exclusion, n_windows - 1
        # the tail has a period where they overlap
        for t in range(length):
            points[last + t] = points[first + t]
        join = Join(ConcatenatedSeries.of([points]), None, length, exclusion, k, sides=True)
        found = run(join, engine=fast_engine)
        assert found.indices[first, 0] == found.right.indices[first, 0] == last
        assert found.indices[last, 0] == found.left.indices[last, 0] == first
        assert found.distances[first, 0] == found.distances[last, 0] == 0
        joined = run(replace(join, sides=False), engine=fast_engine)
        assert_array_equal(joined.indices, found.indices)


def test_equal_windows_need_nothing_from_now_on(rng):
    """Of a group of columns and some rows, those that are settled, and no others."""
    n, length = 3 * numba_join.SINGLE_LANES - 9, 4
    points = rng.normal(size=n + length - 1)
    line = numba_join.Line(points, np.zeros(n), np.ones(n))
    axis = numba_join.TileAxis(line, points, np.zeros(n), np.ones(n, bool), None, 0, n)
    settled = rng.random((2, n)) < 0.5
    known = [
        numba_join.open_candidates(
            first,
            np.full(99 + n, np.inf),
            np.where(equal, 0.0, 1.0)[:, np.newaxis],
            np.zeros((n, 1), int),
        )
        for first, equal in zip((11, 50), settled, strict=True)
    ]
    band = numba_join.Band(11, n, 0, *np.zeros(8))
    strip = numba_join.Strip(50, n, 0.0, 0.0, 0.0, 0.0, True)
    of_group = numba_join.SINGLE_LANES
    for columns, left, (first, end) in itertools.product(
        (True, False), range(0, n, of_group), ((0, 5), (30, 62))
    ):
        room = numba_join._open_room(length)
        needs = (room.band.needed, room.single.band.needed), (
            room.strip.needed, room.single.strip.needed,
        )  # fmt: skip
        for need in itertools.chain(*needs):
            need[:] = 1.0
        work = numba_join.Work(length, 0, False, columns, True, True)
        join = numba_join.TileJoin(axis, axis, *known, room, work)
        numba_join._settle(join, band, strip, first, end, left)
        rows, cols = np.arange(n), np.arange(n)
        changed = settled[0] & (rows >= first) & (rows < end)
        for need in needs[0]:
            assert_array_equal(need[:n] != 1, changed)
        changed = settled[1] & (cols >= left) & (cols < left + of_group) & columns
        for need, lane_of in zip(
            needs[1], (numba_join.lane_of, numba_join.single_lane_of), strict=True
        ):
            found = need[[lane_of(column) for column in cols]]
            assert_array_equal(found != 1, changed)
            assert (found[changed] > 1e18).all()  # no score is as high


def plateaus(rng, n):
    """Noise, and stretches at whole levels, whose windows are as far from others as each other."""
    line = rng.normal(size=n)
    for first in range(0, n, n // 4):
        line[first : first + n // 8] = rng.integers(-1, 2)
    return line


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("exclusion", [0, 3, 40])
def test_the_first_of_repeated_raw_windows_count(rng, fast_engine, k, exclusion):
    line = plateaus(rng, 240)
    line[100] = np.nan
    a, b = ConcatenatedSeries.of([line]), ConcatenatedSeries.of([plateaus(rng, 130), line[:60]])
    excluded = np.zeros(234, bool)
    excluded[[5, 6, 150]] = True
    for options in ({}, {"sides": True}, {"excluded": excluded}, {"since": 70}):
        join = Join(a, None, 7, exclusion, n_neighbors=k, normalize=False, **options)
        check_all(join, fast_engine)
        found = run_in_tiles(join, fast_engine, rng)
        assert_array_equal(found.indices, run(join, engine=fast_engine).indices)
    check_all(Join(a, b, 7, n_neighbors=k, normalize=False), fast_engine)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_repeated_windows_are_those_of_the_definition(rng, count):
    line = np.repeat(rng.integers(0, 2, 40), rng.integers(1, 9, 40)).astype(np.float64)
    length, n_windows = 3, line.size - 2
    regular = rng.random(n_windows) < 0.95
    windows = [line[start : start + length].tolist() for start in range(n_windows)]
    for first, stop in ((0, n_windows), (9, 70), (20, 20 + count), (5, 5)):
        expected = [
            first + count <= place < stop
            and all(windows[place - step] == windows[place] for step in range(count + 1))
            and all(regular[place - count : place + 1])
            for place in range(n_windows)
        ]
        found = repeats(line, regular, (first, stop), length, count)
        assert_array_equal(found, expected)
        assert found.any() == (stop - first > 50)


def test_few_of_repeated_raw_windows_are_looked_at(rng, monkeypatch):
    candidates = []

    def watched(a, b, *others):
        for side in (a, b):
            weights = side.steps.weight[side.first : side.stop]
            candidates.append(np.count_nonzero(weights > 0) / weights.size)
        return search(a, b, *others)

    search = numba_join.search
    monkeypatch.setattr("skts.engines.numba.profile.tiles.search", watched)
    run(
        Join(ConcatenatedSeries.of([plateaus(rng, 2000)]), None, 50, 12, normalize=False),
        engine="numba",
    )
    # half of the points are stretches of 250, and 200 windows of each repeat the first one
    assert 0.3 < max(candidates) < 0.7


def test_what_is_kept_is_merged_once_and_may_be_part_of_the_work(rng):
    line = ConcatenatedSeries.of([rng.normal(size=60).cumsum()])
    join = Join(line, None, 11, 3)
    expected, n = run(join, engine="numba"), line.n_windows(11)
    total = join.start()
    work = join.with_incumbent(total)
    for device, half in enumerate((slice(0, 20), slice(20, n))):
        work.device_accumulators[device] = _Kept(n)
        work.device_accumulators[device].rows.distances[half] = expected.distances[half]
        work.device_accumulators[device].rows.indices[half] = expected.indices[half]
    join.merge(total, Tile(0, n, 0, n), None)
    for area, part in join.drain(total, Tile(10, n, 0, n)):
        join.merge(total, area, part)
    assert list(join.drain(total, area)) == []
    assert_array_equal(total.lists[0].indices[10:], expected.indices[10:])
    assert (total.lists[0].indices[:10] == -1).all()


@pytest.mark.gpu
@pytest.mark.parametrize(("n_neighbors", "noise"), [(1, 0.0), (3, 0.0), (3, 0.05)])
def test_rows_whose_runs_have_no_room_are_walked_by_halves(rng, monkeypatch, n_neighbors, noise):
    known = importlib.import_module("skts.engines.cupy.profile.known")
    join = importlib.import_module("skts.engines.cupy.profile.join")
    # many windows are as near as the nearest, or nearly
    points = np.tile(rng.normal(size=20).cumsum(), 60)
    line = ConcatenatedSeries.of([points + noise * rng.normal(size=points.size)])
    work, walked, launch = Join(line, None, 16, 4, n_neighbors=n_neighbors), [], join.launch
    expected = run(work, engine="numba")

    def noted(search, row, stop, n_panels, again=False):
        walked.append((row, stop))
        assert len(walked) < 1000
        launch(search, row, stop, n_panels, again)

    monkeypatch.setattr(join, "launch", noted)
    monkeypatch.setattr(known, "RUNS_PER_WINDOW", 0)
    monkeypatch.setattr(known, "room", lambda budget: (2500 if noise == 0 else 400, 2**12))
    found = run(work, engine="cupy")
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)
    # twice the whole, then parts
    assert len(walked) > 3


def test_a_small_budget_does_not_change_the_answer(rng, fast_engine):
    line = ConcatenatedSeries.of([rng.normal(size=9000).cumsum()])
    join = Join(line, None, 32, 8)
    expected = run(join, engine=fast_engine)
    engine = find_engine(fast_engine)
    least = sum(engine.footprint(join, *join.cell))
    with config_context(memory=int(1.05 * least)):
        found = run(join, engine=fast_engine)
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)


def test_engines_agree_bit_by_bit(rng, fast_engine):
    line = ConcatenatedSeries.of([make_line("gaps", 3000, rng)])
    join = Join(line, None, 50, 12, n_neighbors=2, sides=True)
    found, expected = run(join, engine=fast_engine), run(join, engine="numba")
    for one, other in zip(
        (found[:2], found.left, found.right), (expected[:2], expected.left, expected.right),
        strict=True,
    ):  # fmt: skip
        assert_array_equal(one[0], other[0])
        assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("kind", KINDS)
def test_distances_of_chosen_windows_and_kinds(rng, engine, kind):
    line, other = (
        ConcatenatedSeries.of([make_line(kind, 90, rng)]),
        ConcatenatedSeries.of([make_line("flat stretches", 70, rng)]),
    )
    for normalize in (True, False):
        work = WindowDistances(line, np.arange(0, 80, 9), other, 10, normalize)
        expected = reference_join.window_distances(
            line.points, work.positions, other.points, 10, normalize=normalize
        )
        assert_allclose(run(work, engine=engine), expected, rtol=1e-13, atol=1e-12)
    kinds, expected = (
        run(WindowKinds(line, 10), engine=engine),
        run(WindowKinds(line, 10), engine="oracle"),
    )
    assert_array_equal(kinds.constant, expected.constant)
    assert_array_equal(kinds.finite, expected.finite)


def test_pool_locates_windows(rng):
    line = ConcatenatedSeries.of([np.arange(5.0), np.arange(3.0), np.arange(4.0)], gap=2)
    series, start = line.locate(np.array([0, 4, 7, 9, 12, -1]))
    assert_array_equal(series, [0, 0, 1, 1, 2, -1])
    assert_array_equal(start, [0, 4, 0, 2, 0, -1])
    assert_array_equal(line.points[7:10], np.arange(3.0))
    assert np.isnan(line.points[5:7]).all()


def test_float32_finds_neighbors_as_near_but_for_rounding(rng, fast_engine):
    line = ConcatenatedSeries.of([rng.normal(size=3000).cumsum()])
    join = Join(line, None, 40, 10)
    found = run(replace(join, precision="float32"), engine=fast_engine)
    expected = run(join, engine="numba")
    assert np.mean(found.indices == expected.indices) > 0.999
    assert_allclose(found.distances, expected.distances, atol=1e-3 * np.sqrt(40))


@pytest.fixture
def in_float32(monkeypatch):
    """Search all joins of one neighbour in float32 on the GPU, however much that leaves open."""
    precision = importlib.import_module("skts.engines.cupy.profile.precision")
    monkeypatch.setattr(programs, "PAIRS_TO_ESTIMATE", 0)
    monkeypatch.setattr(precision, "MOST_LISTED", np.inf)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("height", [64, 192, 1024])
def test_a_search_in_float32_is_certified(rng, in_float32, monkeypatch, kind, normalize, height):
    monkeypatch.setitem(programs.HEIGHTS, np.float32, ((0, height),))
    line = ConcatenatedSeries.of([make_line(kind, 300, rng)])
    other = ConcatenatedSeries.of([make_line(kind, 170, rng), rng.normal(size=40)], gap=9)
    for length, sides in ((11, True), (4, False)):
        check_all(Join(line, None, length, 3, sides=sides, normalize=normalize), "cupy")
        check_all(Join(line, other, length, normalize=normalize), "cupy")
    check_all(Join(line, None, 7, 2, normalize=normalize, since=130), "cupy")


@pytest.mark.gpu
def test_errors_that_leave_little_to_measure_are_told_from_others(rng, monkeypatch):
    """Noise is searched in float32; beats that are alike, and many neighbours, are not."""
    precision = importlib.import_module("skts.engines.cupy.profile.precision")
    monkeypatch.setattr(programs, "PAIRS_TO_ESTIMATE", 0)
    chosen = []
    estimate = precision.leaves_little_to_measure

    def noted(*given):
        chosen.append(estimate(*given))
        return chosen[-1]

    monkeypatch.setattr(precision, "leaves_little_to_measure", noted)
    noise = rng.normal(size=4000)
    beats = np.sin(np.arange(4000) / 5) ** 9 + 1e-3 * rng.normal(size=4000)
    for values in (noise, beats):
        line = ConcatenatedSeries.of([values])
        for normalize in (True, False):
            found = run(Join(line, None, 60, 15, normalize=normalize), engine="cupy")
            expected = run(Join(line, None, 60, 15, normalize=normalize), engine="numba")
            check(found[:2], expected[:2], 60)
    assert chosen == [True, True, False, False]
    run(Join(ConcatenatedSeries.of([noise[:500]]), None, 60, n_neighbors=2), engine="cupy")
    assert len(chosen) == 4


@pytest.mark.gpu
def test_no_neighbour_is_lost_where_errors_are_as_large_as_their_bounds(rng, monkeypatch):
    """Covariances are off by nearly all that the search allows for, nearly all of them down."""
    import cupy

    join = importlib.import_module("skts.engines.cupy.profile.join")
    walk = importlib.import_module("skts.engines.cupy.profile.walk")
    length, share = 64, 0.25
    line = ConcatenatedSeries.of([rng.choice([-0.9, 0.9], 480) + 0.01 * rng.normal(size=480)])
    work = Join(line, None, length, 3, sides=True)
    expected = run(work, engine="numba")
    launch, launch_seeds = join.launch, walk.launch_seeds

    def off(join, kernel, searched, steps, out, *given, **more):
        launch_seeds(join, kernel, searched, steps, out, *given, **more)
        norm = min(float(one.norm.min()) for one in searched)
        # of the few that are up, neighbours are found that are none of the nearest
        sign = np.where(rng.random(out.shape) < 0.01, 1.0, -1.0)
        out += 0.97 * share * norm**2 * cupy.asarray(sign)

    def wide(search, *given):
        steps = []
        for one in search.steps:
            groups = one.groups.copy()
            # the bound is 4 u sqrt(length) of the largest magnitude over the norm
            groups[:, 2] = share / (4 * FLOAT64_UNIT * np.sqrt(length) * groups[:, 4].max())
            steps.append(one._replace(groups=groups))
        launch(search._replace(steps=tuple(steps)), *given)

    monkeypatch.setattr(walk, "launch_seeds", off)
    monkeypatch.setattr(join, "launch", wide)
    found = run(work, engine="cupy")
    for one, other in zip(
        (found, found.left, found.right), (expected, expected.left, expected.right), strict=True
    ):
        assert_array_equal(one.indices, other.indices)
        assert_array_equal(one.distances, other.distances)


def test_small_joins_are_searched_in_float64(rng):
    line = ConcatenatedSeries.of([rng.normal(size=600_000)])
    worth = programs.worth_an_estimate
    assert worth(Join(line, None, 100))
    assert worth(Join(line, None, 100, since=100_000))
    assert not worth(Join(line, None, 100, since=599_000))
    assert not worth(Join(line, None, 100, n_neighbors=2))
    assert not worth(Join(line, ConcatenatedSeries.of([np.ones(9_000)]), 100))


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
def test_refined_scores_stay_below_their_bounds(rng, monkeypatch, normalize):
    """Scores in more digits, of cells whose means and norms lose some."""
    candidates = importlib.import_module("skts.engines.cupy.profile.candidates")
    score_runs, length, off, rises = candidates.score_runs, 19, [], []

    def pairs_of(search, at, runs, lines, reached, pairs):
        # all pairs with scores that are not negative; they come in any order
        some = candidates.Pairs.room_for(pairs.windows.size)
        score_runs(search, at, runs, lines, 0 * reached, some, raising=False)
        count = int(some.count.tolist()[0])
        windows, places, uppers = (np.asarray(array.tolist())[:count] for array in some[:3])
        return dict(zip(zip(windows.tolist(), places.tolist(), strict=True), uppers, strict=True))

    def noted(search, at, *given, raising):
        found = pairs_of(search, at, *given)
        lines = [search.searched[i] for i in ((0, 1) if at == 0 else (1, 0))]
        x, y = (
            sliding_window_view(np.asarray(one.points.tolist(), np.longdouble), length)
            for one in lines
        )
        windows, places = np.array(list(found)).T
        x, y = x[windows], y[places]
        if normalize:
            x, y = (one - one.mean(axis=1, keepdims=True) for one in (x, y))
            scores = (x * y).sum(axis=1) / np.sqrt((y * y).sum(axis=1))
        else:
            scores = (x * y).sum(axis=1) + search.level / 2 - (y * y).sum(axis=1) / 2
        off.append((np.array(list(found.values())) - scores).astype(float))
        if normalize:
            # means of every other window that are wrong by more, and the error beside them: that
            # moves each point of a normalised window
            slip, norm = lines[1].device.slip, np.asarray(lines[1].norm.tolist())
            before = slip.copy()
            slip[::2] = 1e-6
            wrong = pairs_of(search, at, *given)
            slip[:] = before
            for window, place in found:
                if window % 2 == 1 and place % 2 == 0:
                    rise = wrong[window, place] - found[window, place]
                    rises.append(rise / (4 * length * norm[window] * (1e-6 / norm[place]) ** 2))
        score_runs(search, at, *given, raising=raising)

    monkeypatch.setattr(candidates, "score_runs", noted)
    for offset in (0.0, 1e5):
        line = ConcatenatedSeries.of([offset + np.tile(rng.normal(size=60), 4)])
        run(Join(line, None, length, 3, normalize=normalize), engine="cupy")
    off = np.concatenate(off)
    assert off.size > 300
    assert off.min() >= 0
    # the offset is taken off; the search line has points of 1 at most
    assert off.max() < 1e-9
    if normalize:
        assert len(rises) > 100
        assert_allclose(rises, 1.0, rtol=1e-3)


def out_of_bounds(name):
    """Series and options of joins that once wrote out of bounds."""
    rng = np.random.default_rng(0)
    if name == "raw":
        return [rng.standard_normal(100) * 1e15], 25, 7, False
    if name == "quiet":
        x = rng.normal(size=80) * 1e12
        x[30:50] = 1 + 1e-8 * rng.normal(size=20)
        return [x], 4, 0, True
    with np.load(Path(__file__).parents[2] / "data" / "defects" / "join_out_of_bounds.npz") as file:
        return list(file["X"]), 5, 0, True


@pytest.mark.parametrize("name", ["raw", "quiet", "ordinary"])
@pytest.mark.parametrize("k", [1, 3])
def test_no_score_is_beyond_what_takes_part_in_nothing(fast_engine, name, k):
    series, length, exclusion, normalize = out_of_bounds(name)
    line = ConcatenatedSeries.of(series)
    check_all(Join(line, None, length, exclusion, k, True, normalize), fast_engine)
    other = ConcatenatedSeries.of([np.arange(40.0) ** 2 % 7])
    check_all(Join(line, other, length, n_neighbors=k, normalize=normalize), fast_engine)
    check_all(Join(other, line, length, n_neighbors=k, normalize=normalize), fast_engine)


@pytest.mark.parametrize("value", [-9999.0, 1e9, 1e12, 9.97e36, 1e144])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_window_depends_on_its_own_points(rng, fast_engine, value, normalize):
    n, length = 1500, 16
    quiet = 1e-3 * rng.normal(size=n)
    loud = quiet.copy()
    loud[[400, 401, 1100]] = value
    clean, dirty = ConcatenatedSeries.of([quiet]), ConcatenatedSeries.of([loud])
    apart = np.flatnonzero(
        run(
            WindowKinds(ConcatenatedSeries.of([np.where(quiet == loud, quiet, np.nan)]), length)
        ).finite
    )
    chosen = apart[:: len(apart) // 40]
    one, other = (
        run(WindowDistances(line, chosen, line, length, normalize), engine=fast_engine)
        for line in (clean, dirty)
    )
    assert_array_equal(one[:, apart], other[:, apart])
    found = run(Join(dirty, None, length, 4, normalize=normalize), engine=fast_engine)
    other[np.abs(chosen[:, None] - np.arange(other.shape[1])) <= 4] = np.inf
    assert_array_equal(found.indices[chosen, 0], other.argmin(axis=1))
    assert_array_equal(found.distances[chosen, 0], other.min(axis=1))


@pytest.mark.parametrize("kind", ["walk", "scales", "repeats", "flat stretches", "gaps"])
@pytest.mark.parametrize("normalize", [True, False])
def test_powers_of_two_change_no_bit(rng, fast_engine, kind, normalize):
    points = make_line(kind, 200, rng)
    join = Join(ConcatenatedSeries.of([points]), None, 12, 3, n_neighbors=2, normalize=normalize)
    expected = run(join, engine=fast_engine)
    for power in (-400, -130, 400):
        scale = 2.0**power
        found = run(replace(join, a=ConcatenatedSeries.of([points * scale])), engine=fast_engine)
        assert_array_equal(found.indices, expected.indices)
        factor = 1.0 if normalize else scale
        assert_array_equal(found.distances, expected.distances * factor)


def draw_line(rng, n):
    """Series of any kind, loud stretches, scales, gaps."""
    kind = rng.choice(KINDS)
    points = make_line(kind, n, rng)
    if rng.random() < 0.3:
        at = rng.integers(n)
        points[at : at + rng.integers(1, 9)] = rng.choice([1e9, -1e12, 1e36, 1e-200, np.nan, 7.0])
    if rng.random() < 0.2:
        points = np.round(points, 1)
    if rng.random() < 0.2:
        points *= 2.0 ** rng.integers(-100, 100)
    return points


def draw_join(rng):
    """A join of any options on such series."""
    length = int(rng.integers(1, 30))
    a, b = (draw_line(rng, int(rng.integers(length + 1, 200))) for _ in range(2))
    within = rng.random() < 0.6
    n_windows = a.size - length + 1
    return Join(
        ConcatenatedSeries.of([a]),
        None if within else ConcatenatedSeries.of([b]),
        length,
        int(rng.choice([0, 1, length // 4, length, 3 * length])),
        n_neighbors=int(rng.choice([1, 1, 2, 7])),
        sides=bool(within and rng.random() < 0.5),
        normalize=bool(rng.random() < 0.6),
        excluded=rng.random(n_windows) < 0.2 if rng.random() < 0.2 else None,
        since=int(rng.integers(n_windows)) if within and rng.random() < 0.2 else 0,
    )


def run_in_tiles(join, engine, rng):
    """The answer from tiles that are cut anywhere, in any order."""
    engine = find_engine(engine)
    cuts = [sorted({0, n, *map(int, rng.integers(0, n + 1, rng.integers(3)))}) for n in join.shape]
    if join.within:
        cuts[1] = cuts[0]
    rows, cols = map(list, map(itertools.pairwise, cuts))
    tiles = [Tile(*row, *col) for row in rows for col in cols]
    total, cancel = join.start(), np.zeros(1, np.uint8)
    for number in rng.permutation(len(tiles)):
        if join.wanted(tiles[number]):
            part = engine.join(join.with_incumbent(total), tiles[number], cancel)
            join.merge(total, tiles[number], part)
    return join.finish(total, lambda work: run(work, engine=engine))


@pytest.mark.parametrize("seed", range(60))
def test_any_join_of_any_series(fast_engine, seed):
    """The nearest by certified distances, which extended precision confirms but for rounding."""
    rng = np.random.default_rng(seed)
    join = draw_join(rng)
    a, b, length = join.a.points, join.other.points, join.length
    places = np.arange(join.shape[0])
    work = WindowDistances(join.a, places, join.other, length, join.normalize)
    distances = run(work, engine=fast_engine)
    exact, norms = reference_join.exact_distances(a, b, length, normalize=join.normalize)
    assert_array_equal(np.isfinite(distances), np.isfinite(exact))
    finite = np.isfinite(exact)
    off = np.abs(np.where(finite, distances, 0) - np.where(finite, exact, 0))
    assert np.all(off <= 40 * length * 2.0**-53 * norms + 2.0**-500)
    if join.excluded is not None:
        distances[join.excluded] = np.inf
        if join.within:
            distances[:, join.excluded] = np.inf
    i, j = np.indices(distances.shape)
    if join.within:
        near = (np.abs(i - j) <= join.exclusion) | (np.maximum(i, j) < join.since)
        distances[near] = np.inf
    found = run_in_tiles(join, fast_engine, rng) if seed % 2 else run(join, engine=fast_engine)
    for side, part in ((distances < np.inf, found), (j < i, found.left), (j > i, found.right)):
        if part is None:
            continue
        values = np.where(side, distances, np.inf)
        values = np.pad(values, ((0, 0), (0, join.n_neighbors)), constant_values=np.inf)
        order = np.argsort(values, axis=1, kind="stable")[:, : join.n_neighbors]
        values = np.take_along_axis(values, order, axis=1)
        assert_array_equal(part.distances, values)
        assert_array_equal(part.indices, np.where(np.isinf(values), -1, order))


def test_lines_of_search_are_cut_where_they_change_much(rng):
    n, length = 300, 10
    points = rng.normal(size=n) * np.repeat([1e-30, 1.0, 1e30], n // 3) + np.repeat(
        [0, 1e3, -1e32], n // 3
    )
    points[40] = 1e100
    windows = np.lib.stride_tricks.sliding_window_view(points, length)
    ranges = np.ptp(windows, axis=1)
    assert even_line(points, ranges) is None
    line = line_of_pieces(points, ranges, length)
    assert np.abs(line.points).max() <= 1
    # those that hold the spike, or points of two thirds
    across = [start for cut in (100, 200) for start in range(cut - length + 1, cut)]
    assert_array_equal(np.flatnonzero(line.hidden), [*range(31, 41), *across])
    searched = np.lib.stride_tricks.sliding_window_view(line.points, length)[~line.hidden]
    assert np.ptp(searched, axis=1).min() >= 2.0**-31
    assert_allclose(
        np.ptp(searched, axis=1) / searched.std(axis=1),
        ranges[~line.hidden] / windows[~line.hidden].std(axis=1),
        rtol=1e-9,
    )
    # what is even is centred and scaled alone
    line = even_line(points[100:200], ranges[100 : 200 - length + 1])
    assert not line.hidden.any()
    assert 0.5 <= np.abs(line.points).max() <= 1


def test_frames_of_raw_windows_leave_few_loud_points_out(rng):
    length = 10

    def frame_of(*lines):
        def extent(points):
            windows = np.lib.stride_tricks.sliding_window_view(points, length)
            return windows.min(axis=1), windows.max(axis=1)

        return common_frame(lines, [lambda one=one: extent(one) for one in lines])

    points = 1e9 + rng.normal(size=300)
    frame = frame_of(points)
    assert abs(frame.offset - 1e9) < 5
    assert frame.largest < 10
    points[[50, 200]] = 9.97e36
    frame = frame_of(points, points[:40])
    assert frame.largest < 20
    line = line_as_it_is(points, frame, length)
    assert_array_equal(np.flatnonzero(line.hidden), [*range(41, 51), *range(191, 201)])
    assert np.abs(line.points).max() <= 1
    assert_array_equal(line.points[:50], (points[:50] - frame.offset) * line.unit)
    # zeros are quiet, and no reason to leave anything out
    silent = np.where(np.arange(300) < 200, 0.0, rng.normal(size=300))
    assert frame_of(silent) == Frame(0.0, np.abs(silent).max())
    assert frame_of(np.zeros(20)) == Frame(0.0, 0.0)
    filled, finite = fill_gaps(np.array([np.nan, 2.0, np.inf, 3.0]))
    assert_array_equal(filled, [2, 2, 2, 3])
    assert_array_equal(finite, [False, True, False, True])
