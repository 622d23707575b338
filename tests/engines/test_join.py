"""Joins of windows on all engines against plain loops: kinds of data, options, tilings."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import reference_join
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import Join, Pool, Tile, WindowDistances, WindowKinds, find_engine, run
from skts.engines._join import JoinPart, Nearest


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
    elif kind == "nearly flat":
        walk = np.where(np.arange(n) % 60 < 30, 5.0, walk) + 1e-10 * rng.normal(size=n)
    return walk


KINDS = [
    *("walk", "noise", "flat stretches", "gaps", "scales", "offset", "repeats"),
    *("near repeats", "nearly flat"),
]


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
def test_self_join_with_sides(rng, fast_engine, kind, normalize):
    line = Pool.of([make_line(kind, 150, rng)])
    join = Join(line, None, 11, 3, n_neighbors=2, sides=True, normalize=normalize)
    check_all(join, fast_engine)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_join_of_two_lines(rng, fast_engine, kind, normalize):
    a, b = make_line("walk", 60, rng), make_line(kind, 110, rng)
    check_all(Join(Pool.of([a]), Pool.of([b]), 9, normalize=normalize), fast_engine)
    check_all(Join(Pool.of([b]), Pool.of([a]), 9, n_neighbors=3, normalize=normalize), fast_engine)


@pytest.mark.parametrize(
    ("n", "length", "exclusion"),
    [(40, 1, 0), (40, 3, 0), (40, 3, 10), (40, 30, 8), (40, 39, 0), (40, 40, 0), (40, 25, 20)],
)
def test_short_lines_and_wide_exclusions(rng, fast_engine, n, length, exclusion):
    line = Pool.of([rng.normal(size=n).cumsum()])
    check_all(Join(line, None, length, exclusion, sides=True), fast_engine)


def test_pool_of_several_series(rng, fast_engine):
    series = [rng.normal(size=n).cumsum() + 3 * n for n in (50, 12, 8, 33)]
    for exclusion in (0, 4, 30):
        line = Pool.of(series, gap=exclusion - 10 + 1)
        join = Join(line, None, 10, exclusion, n_neighbors=2)
        check_all(join, fast_engine)
        # across series no exclusion holds: every window finds its nearest in the naive sense
        expected = run(replace(join, a=Pool.of(series, gap=500)), engine=fast_engine)
        far, near = expected.distances, run(join, engine=fast_engine).distances
        assert_array_equal(near[np.isfinite(near)], far[np.isfinite(far)])


def test_excluded_windows_and_new_ones(rng, fast_engine):
    line = Pool.of([make_line("flat stretches", 120, rng)])
    excluded = np.zeros(120 - 9, bool)
    excluded[20:45] = True
    join = Join(line, None, 10, 3, n_neighbors=2, sides=True)
    check_all(replace(join, excluded=excluded), fast_engine)
    check_all(replace(join, since=70), fast_engine)
    check_all(replace(join, since=70, excluded=excluded), fast_engine)


@pytest.mark.parametrize("kind", ["walk", "scales", "repeats", "flat stretches"])
def test_long_lines_of_many_strips_and_bands(rng, fast_engine, kind):
    """Against certified distances of all pairs, which are tested above."""
    n, length = 5200, 16
    line = Pool.of([make_line(kind, n, rng)])
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
    line = Pool.of([make_line("near repeats", 2600, rng)])
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
            work = join.informed(total)
            join.merge(total, tile, engine.join(work, tile, cancel))
    found = join.finish(total, lambda work: run(work, engine=engine))
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)
    assert_array_equal(expected.indices, run(join, engine="numba", n_jobs=1).indices)


@pytest.mark.parametrize("sides", [False, True])
def test_what_several_devices_keep_comes_together(rng, fast_engine, sides):
    line = Pool.of([make_line("near repeats", 5200, rng)])
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
        join.merge(totals[0], tile, engine.join(join.informed(mine), tile, cancel))
    # as if they had worked for one
    for number, other in enumerate(totals[1:], 1):
        totals[0].board.update({(100 + number, *key): kept for key, kept in other.board.items()})
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


def test_what_is_kept_is_merged_once_and_may_be_part_of_the_work(rng):
    line = Pool.of([rng.normal(size=60).cumsum()])
    join = Join(line, None, 11, 3)
    expected, n = run(join, engine="numba"), line.n_windows(11)
    total = join.start()
    work = join.informed(total)
    for device, half in enumerate((slice(0, 20), slice(20, n))):
        work.board[device] = _Kept(n)
        work.board[device].rows.distances[half] = expected.distances[half]
        work.board[device].rows.indices[half] = expected.indices[half]
    join.merge(total, Tile(0, n, 0, n), None)
    for area, part in join.collect(total, Tile(10, n, 0, n)):
        join.merge(total, area, part)
    assert list(join.collect(total, area)) == []
    assert_array_equal(total.lists[0].indices[10:], expected.indices[10:])
    assert (total.lists[0].indices[:10] == -1).all()


def test_a_small_budget_does_not_change_the_answer(rng, fast_engine):
    line = Pool.of([rng.normal(size=9000).cumsum()])
    join = Join(line, None, 32, 8)
    expected = run(join, engine=fast_engine)
    engine = find_engine(fast_engine)
    least = sum(engine.footprint(join, *join.cell))
    with config_context(memory=int(1.05 * least)):
        found = run(join, engine=fast_engine)
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)


def test_engines_agree_bit_by_bit(rng, fast_engine):
    line = Pool.of([make_line("gaps", 3000, rng)])
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
        Pool.of([make_line(kind, 90, rng)]),
        Pool.of([make_line("flat stretches", 70, rng)]),
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
    line = Pool.of([np.arange(5.0), np.arange(3.0), np.arange(4.0)], gap=2)
    series, start = line.locate(np.array([0, 4, 7, 9, 12, -1]))
    assert_array_equal(series, [0, 0, 1, 1, 2, -1])
    assert_array_equal(start, [0, 4, 0, 2, 0, -1])
    assert_array_equal(line.points[7:10], np.arange(3.0))
    assert np.isnan(line.points[5:7]).all()


def test_float32_finds_neighbors_as_near_but_for_rounding(rng, fast_engine):
    line = Pool.of([rng.normal(size=3000).cumsum()])
    join = Join(line, None, 40, 10)
    found = run(replace(join, precision="float32"), engine=fast_engine)
    expected = run(join, engine="numba")
    assert np.mean(found.indices == expected.indices) > 0.999
    assert_allclose(found.distances, expected.distances, atol=1e-3 * np.sqrt(40))
