"""MK on all engines: the pair of the profile, of all pairs, on any data and in any tiles."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts.engines import ConcatenatedSeries, Join, MotifPair, Tile, WindowKinds, find_engine, run
from skts.engines.families.profile.mk import PairWalk
from skts.engines.numba.profile import mk
from tests.engines.profile.test_join import KINDS, make_line


def profile_pair(pool, length, exclusion, **options):
    """The best pair of a profile: distance and places, the lower one first."""
    found = run(Join(pool, None, length, exclusion, **options), engine="numba")
    first = int(np.argmin(found.distances[:, 0]))
    if found.indices[first, 0] < 0:
        return np.inf, -1, -1
    return float(found.distances[first, 0]), first, int(found.indices[first, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_the_pair_is_that_of_the_profile(rng, fast_engine, kind, normalize):
    for n, length, exclusion in ((150, 11, 3), (700, 40, 10), (90, 4, 0), (300, 20, 60)):
        line = ConcatenatedSeries.of([make_line(kind, n, rng)])
        found = run(MotifPair(line, length, exclusion, normalize), engine=fast_engine)
        assert found[:3] == profile_pair(line, length, exclusion, normalize=normalize)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_loops_over_all_pairs_find_the_same(rng, fast_engine, kind):
    line = ConcatenatedSeries.of([make_line(kind, 110, rng)])
    for normalize in (True, False):
        work = MotifPair(line, 9, 2, normalize, n_references=3)
        found, expected = run(work, engine=fast_engine), run(work, engine="oracle")
        assert found[1:3] == expected[1:3]
        assert_allclose(found.distance, expected.distance, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("scale", [2.0**-9, 1.0, 2.0**9])
def test_windows_of_any_size(rng, fast_engine, scale):
    """As they are: gaps are compared in units of the largest distance."""
    line = rng.normal(size=160)
    windows = np.lib.stride_tricks.sliding_window_view(scale * line, 9)
    distances = np.linalg.norm(windows[:, None] - windows, axis=2)
    distances[np.subtract.outer(range(152), range(152)) >= -2] = np.inf
    first, second = np.unravel_index(np.argmin(distances), distances.shape)
    found = run(MotifPair(ConcatenatedSeries.of([scale * line]), 9, 2, False), engine=fast_engine)
    assert found[1:3] == (first, second)
    assert found.distance == pytest.approx(distances.min(), rel=1e-12)


def test_hundreds_of_random_series(fast_engine):
    """The thesis's rule for stopping gives wrong pairs in many of these."""
    for seed in range(250):
        rng = np.random.default_rng(seed)
        n, length = int(rng.integers(40, 300)), int(rng.integers(1, 20))
        x = rng.normal(size=n)
        if seed % 3 == 1:
            x = x.cumsum()
        if seed % 3 == 2:
            x = np.round(x)  # many ties
        if seed % 7 == 0:
            x[n // 5] = np.nan
        line, exclusion = ConcatenatedSeries.of([x]), int(rng.integers(0, length + 3))
        work = MotifPair(line, length, exclusion, n_references=1 + seed % 5, seed=seed)
        assert run(work, engine=fast_engine)[:3] == profile_pair(line, length, exclusion), seed


@pytest.mark.parametrize("seed", range(4))
def test_references_do_not_change_the_answer(rng, fast_engine, seed):
    line = ConcatenatedSeries.of(
        [rng.normal(size=500).cumsum(), rng.normal(size=300).cumsum()], gap=1
    )
    expected = profile_pair(line, 30, 8)
    for n_references in (1, 2, 10, 2000):
        work = MotifPair(line, 30, 8, n_references=n_references, seed=seed)
        assert run(work, engine=fast_engine)[:3] == expected


def test_excluded_windows(rng, fast_engine):
    x = rng.normal(size=400)
    x[300:330] = x[20:50]
    x[200:230] = x[100:130] + 1e-6 * rng.normal(size=30)
    x[350:360] = 0.0
    line = ConcatenatedSeries.of([x])
    excluded = np.zeros(line.n_windows(30), bool)
    assert run(MotifPair(line, 30, 8), engine=fast_engine)[:3] == (0.0, 20, 300)
    excluded[10:30] = True
    found = run(MotifPair(line, 30, 8, excluded=excluded), engine=fast_engine)
    assert found[:3] == profile_pair(line, 30, 8, excluded=excluded)
    assert found[1:3] == (100, 200)
    excluded[:] = True
    assert run(MotifPair(line, 30, 8, excluded=excluded), engine=fast_engine)[:3] == (
        np.inf,
        -1,
        -1,
    )


def test_pairs_with_constant_windows(fast_engine):
    up = np.arange(6.0)
    flat = np.zeros(8)
    for x, expected in (
        (np.concatenate([up, flat, -(up**2)]), None),
        (np.concatenate([flat, up]), None),
        (np.zeros(30), (0.0, 0, 3)),
        (np.concatenate([np.zeros(5), [np.nan], up]), (np.sqrt(5.0), 0, 6)),
        (np.full(20, np.nan), (np.inf, -1, -1)),
    ):
        line = ConcatenatedSeries.of([x])
        found = run(MotifPair(line, 5, 2), engine=fast_engine)[:3]
        assert found == profile_pair(line, 5, 2)
        assert expected is None or found == expected


def test_all_windows_alike_take_no_time(fast_engine):
    """Every pair ties at 0: a pair that cannot come first is not measured."""
    line = ConcatenatedSeries.of([np.tile([0.0, 1.0, 3.0, 2.0], 1500)])
    found = run(MotifPair(line, 8, 2), engine=fast_engine)
    assert found[:3] == (0.0, 0, 4)
    assert found.pruned > 0.9


def test_pruning_is_reported(rng, fast_engine):
    x = rng.normal(size=3000).cumsum()
    x[2000:2064] = x[100:164]
    found = run(MotifPair(ConcatenatedSeries.of([x]), 64, 16), engine=fast_engine)
    assert found[1:3] == (100, 2000)
    assert 0.99 < found.pruned < 1
    noise = run(
        MotifPair(ConcatenatedSeries.of([rng.normal(size=600)]), 64, 16), engine=fast_engine
    )
    assert 0 <= noise.pruned < 0.9


@pytest.mark.parametrize("kind", ["walk", "repeats", "near repeats"])
def test_tiles_do_not_change_the_answer(rng, fast_engine, kind):
    line = ConcatenatedSeries.of([make_line(kind, 1500, rng)])
    work = MotifPair(line, 24, 6)
    engine = find_engine(fast_engine)
    kinds = run(WindowKinds(line, 24), engine=engine)
    *_, walk = work._walks(
        np.flatnonzero(kinds.regular), lambda one: run(one, engine=engine), (np.inf, -1, -1)
    )
    walk = replace(walk, first=1)
    assert isinstance(walk, PairWalk)
    n = len(walk.order)
    cancel = np.zeros(1, np.uint8)
    cuts = [0, 130, 700, n]
    tiles = [
        Tile(top, bottom, left, min(right, n - 1))
        for top, bottom in itertools.pairwise(cuts)
        for left, right in itertools.pairwise(cuts)
    ]
    expected = profile_pair(line, 24, 6)
    for order in (tiles, tiles[::-1]):
        total = walk.start()
        for tile in order:
            if walk.wanted(tile):
                walk.merge(total, tile, engine.pair_walk(walk.with_incumbent(total), tile, cancel))
        assert total[0] == expected


def test_gaps_that_say_nothing_leave_all_pairs(rng, fast_engine):
    """Near repeats far below the resolution of float32 bounds."""
    pattern = rng.normal(size=50)
    x = np.concatenate([pattern + 1e-9 * rng.normal(size=50) for _ in range(8)])
    line = ConcatenatedSeries.of([x])
    assert run(MotifPair(line, 50, 13), engine=fast_engine)[:3] == profile_pair(line, 50, 13)


def test_a_search_gives_up_where_a_profile_is_faster(rng, fast_engine):
    x = rng.normal(size=6000).cumsum()
    noise = ConcatenatedSeries.of([rng.normal(size=6000)])
    found = run(MotifPair(noise, 64, 16, allow_give_up=True), engine=fast_engine)
    assert found.given_up and np.isnan(found.distance)
    x[4000:4064] = x[100:164]
    work = MotifPair(ConcatenatedSeries.of([x]), 64, 16, allow_give_up=True)
    assert run(work, engine=fast_engine)[:3] == (0.0, 100, 4000)
    assert not run(MotifPair(noise, 64, 16), engine=fast_engine).given_up
    # not long enough to find out
    assert not run(
        replace(work, series=ConcatenatedSeries.of([x[:110]])), engine=fast_engine
    ).given_up


# --- what a walk is made of ---------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 31, 32, 33, 64, 70])
def test_squares_of_windows_are_abandoned_above_a_limit(rng, length):
    points = rng.normal(size=150)
    for i, j in ((0, 80), (5, 80 - 5)):
        x, y = points[i : i + length], points[j : j + length]
        square = np.sum(((x - 0.5) * 2.0 - (y + 0.25) * 3.0) ** 2)
        for cutoff in (np.inf, square * 1.001, square * 0.999, square / 2):
            found = mk._square(points, i, 0.5, 2.0, j, -0.25, 3.0, length, cutoff)
            if square <= cutoff:
                assert_allclose(found, square, rtol=1e-13)
            else:
                assert cutoff < found <= square * (1 + 1e-13)


@pytest.mark.parametrize("lanes", [1, 40, 64])
def test_bounds_of_positions_beside_each_other(rng, lanes):
    gaps = rng.integers(0, 9, (3, 100)).astype(np.float32)
    worst, largest = np.zeros(64, np.float32), np.zeros(lanes)
    for reference in range(3):
        left = mk._bound(gaps, reference, 7, 11, lanes, np.float32(4), worst)
        here, there = gaps[reference, 7 : 7 + lanes], gaps[reference, 18 : 18 + lanes]
        largest = np.maximum(largest, np.abs(there - here))
        assert np.array_equal(worst[:lanes], largest)
        assert left == np.count_nonzero(largest <= 4)


def test_a_block_that_is_done_ends_no_other(rng, fast_engine):
    """Far pairs in the first positions, near ones in later positions, at a larger offset."""
    points = np.concatenate([np.arange(64.0), 64 + np.sort(6 * rng.random(64))])
    pairs = pairs_of_points(points)
    known = next(pair for pair in pairs if pair[0] < 0.9)
    assert known > min(pairs)
    assert walk_over_points(fast_engine, points, known) == min(pairs)


@pytest.mark.parametrize("least", [0, 3])
def test_of_equally_near_pairs_the_first_is_found_in_any_order(fast_engine, least):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points = rng.integers(0, 40, 90) if least == 0 else least * rng.permutation(90)
        points[0] = 500  # that it orders by, far from all others
        pairs = pairs_of_points(points.astype(float))
        for known in ((np.inf, -1, -1), pairs[-1]):
            found = walk_over_points(fast_engine, points.astype(float), known)
            assert found == min(pairs) and found[0] == least


def pairs_of_points(points):
    """Distance and places of all windows of one point that are no neighbours."""
    places = itertools.combinations(range(len(points)), 2)
    return [(abs(points[i] - points[j]), i, j) for i, j in places if j - i > 1]


def walk_over_points(engine, points, known):
    """The nearest pair by a walk in the order of the distances to the first point."""
    n, distances = len(points), np.abs(points - points[0])
    order = np.argsort(distances, kind="stable")
    gaps = (distances[order] / 1024).astype(np.float32)[np.newaxis]
    work = PairWalk(ConcatenatedSeries.of([points]), 1, 1, False, order, gaps, 1024.0, known, 1, n)
    tile, cancel = Tile(0, n, 0, n - 1), np.zeros(1, np.uint8)
    total = work.start()
    work.merge(total, tile, find_engine(engine).pair_walk(work, tile, cancel))
    return total[0]


def test_a_profile_is_faster_where_many_pairs_are_left():
    line = ConcatenatedSeries.of([np.zeros(109)])
    work = MotifPair(line, 10, 3)

    def is_faster(n, second):
        gaps = np.array([np.arange(n), second(np.arange(n))], np.float32)
        walk = PairWalk(line, 10, 3, True, np.arange(n), gaps, 1.0, (1.5, 0, 9), 65, n)
        return work._profile_is_faster(walk, walk.best)

    # the order leaves each window the next; the other reference leaves all of them, or none
    assert is_faster(100, lambda p: 0 * p)
    assert not is_faster(100, lambda p: 10 * (p % 2))
    assert not is_faster(400, lambda p: 0 * p)
    # nothing is left
    assert not is_faster(1, lambda p: p)
