"""Bounds hold, survivors contain the answer, and merging in any order gives it."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import DTWNeighbors, RotationNeighbors, Series, Warping, run
from skts.engines.core import certify, executor
from skts.engines.core.certify import (
    COMPACT_AFTER,
    ENTRY_BYTES,
    SURVIVORS_SHARE,
    Bound,
    Rescaling,
    Shortlist,
    Shortlists,
    dtw_bound,
    gamma,
    nearest,
    shortlist,
    survivor_cap,
    survivors_held,
)
from skts.engines.numba.elastic import certified, dtw


@pytest.mark.parametrize("length", [2, 30, 300])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-3, 10.0), (1e5, -1e7)])
@pytest.mark.parametrize("channels", [1, 3])
def test_bound_holds_the_certified_distance(rng, length, scale, offset, channels):
    x, y = (offset + scale * rng.normal(size=(40, channels, length)) for _ in range(2))
    lengths = np.full(40, length)
    cancel = np.zeros(1, np.uint8)
    exact = np.sqrt(certified.pairs(x, lengths, y, lengths, Warping(), cancel))
    rescaling = Rescaling.of(y)
    (x32, x_error), (y32, y_error) = rescaling.apply(x), rescaling.apply(y)
    packed, packed_lengths = dtw.pack(y32, lengths, dtw.LANES[np.float32])
    costs = dtw.block(x32, lengths, packed, packed_lengths, Warping(), cancel)
    estimates = np.sqrt(np.diagonal(costs[:, :40]).astype(float)) / rescaling.scale
    bound = dtw_bound(2 * length - 1, channels, x_error + y_error, rescaling.scale)
    assert not np.array_equal(estimates, exact)
    assert np.all(bound.lower(estimates) <= exact)
    assert np.all(exact <= bound.upper(estimates))


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize(
    ("n_steps", "n_channels"), [(1, 1), (59, 1), (599, 7), (2**21, 2), (2**23 - 4, 1)]
)
def test_the_interval_is_the_one_that_is_derived(n_steps, n_channels, squared):
    """In the section "dtw float32" of the developer guide."""
    error, scale = 3e-8, 2.0**-5
    roundings, terms = n_steps + n_channels + 2, n_steps * n_channels
    single = Fraction(roundings, 2**24 - roundings)
    double = Fraction(roundings + 4, 2**53 - roundings - 4)
    power = 0.5 if squared else 1.0
    bound = dtw_bound(n_steps, n_channels, error, scale, squared=squared)
    assert bound.shrink == pytest.approx((1 - double) * float(1 + single) ** -power, rel=1e-15)
    left = float(1 - single)
    assert bound.grow == pytest.approx((1 + double) * left**-power, rel=1e-15 / left)
    slack = terms**power * (error + 2.0**-63) / scale * (1 + 1e-6)
    assert bound.slack == pytest.approx(slack, rel=1e-15)
    none = dtw_bound(n_steps, n_channels, 0.0, scale, squared=squared)
    assert none.slack == pytest.approx(terms**power * 2.0**-63 / scale * (1 + 1e-6), rel=1e-15)


def test_an_interval_is_that_of_squared_costs_unless_said_otherwise():
    assert dtw_bound(9, 2, 1e-7, 0.5) == dtw_bound(9, 2, 1e-7, 0.5, squared=True)


def test_roundings_that_may_add_up_to_everything_say_nothing():
    assert gamma(3, 2.0**-24) == 3 / (2**24 - 3)
    assert [gamma(n, 2.0**-4) for n in (15, 16, 17)] == [15, math.inf, math.inf]
    # where the error may be as large as the value
    assert dtw_bound(2**23 - 3, 1, 0.0, 1.0) == Bound(0.0, 1.0, math.inf)


@pytest.mark.parametrize("inexact", [{"shrink": 0.5}, {"grow": 2.0}, {"slack": 1.0}])
def test_an_interval_is_exact_unless_one_of_its_ends_is_not(inexact):
    estimates = np.array([0.5, 4.0, np.nan])
    exact = Bound()
    assert exact.exact and exact == Bound(1.0, 1.0, 0.0)
    assert exact.lower(estimates) is estimates and exact.upper(estimates) is estimates
    bound = Bound(**inexact)
    assert not bound.exact
    by, times, more = bound.shrink, bound.grow, bound.slack
    assert_array_equal(bound.lower(estimates), [max(0.5 * by - more, 0), 4 * by - more, 0])
    assert_array_equal(bound.upper(estimates), [0.5 * times + more, 4 * times + more, np.inf])


def test_bound_says_nothing_where_it_cannot():
    assert dtw_bound(2**25, 1, 0.0, 1.0).lower(np.array([5.0]))[0] == 0
    bound = dtw_bound(10, 1, 1e-8, 1.0)
    assert bound.lower(np.array([np.inf]))[0] == 0
    assert bound.upper(np.array([np.inf]))[0] == np.inf


def test_rescaling_is_a_power_of_two_and_keeps_float32_input_exact(rng):
    values = (100 * rng.normal(size=1000)).astype(np.float32).astype(float)
    rescaling = Rescaling.of(values)
    single, error = rescaling.apply(values)
    assert rescaling.offset == 0
    assert np.log2(rescaling.scale) == round(np.log2(rescaling.scale))
    assert error == 0
    assert 0.5 <= np.abs(single).max() <= 1
    assert_array_equal(single.astype(float) / rescaling.scale, values)


def test_rescaling_removes_a_large_offset(rng):
    values = 1e9 + rng.normal(size=1000)
    single, error = Rescaling.of(values).apply(values)
    assert 0.25 < np.ptp(single) <= 2
    assert 0 < error < 1e-6


@pytest.mark.parametrize(
    ("low", "high", "offset", "scale"),
    [
        (0.0, 2.0, 0.0, 0.25),  # an offset of half of the spread is none
        (0.5, 2.0, 1.25, 1.0),
        (-2.0, -0.5, -1.25, 1.0),
        (-3.0, 1.0, 0.0, 0.25),
        (-1.0, 3.0, 0.0, 0.25),
        (7.0, 7.0, 7.0, 0.125),
        (0.0, 0.0, 0.0, 1.0),
        (-(2.0**1023), 2.0**1023, 0.0, 2.0**-1024),
    ],
)
def test_rescaling_by_the_least_and_the_largest(low, high, offset, scale):
    assert Rescaling.between(low, high) == (offset, scale)


@pytest.mark.parametrize("offset", [0.0, -1e6])
def test_the_error_of_rescaling_is_measured_and_holds_that_of_the_offset(rng, offset):
    values = offset + rng.normal(size=300)
    found, error = Rescaling(offset, 0.125).apply(values)
    exact = [(Fraction(value) - Fraction(offset)) / 8 for value in values.tolist()]
    off = max(abs(Fraction(one) - two) for one, two in zip(found.tolist(), exact, strict=True))
    margin = Fraction(1, 2**53) * (max(map(abs, exact)) + abs(Fraction(offset)) / 8)
    assert off <= error
    assert error == pytest.approx(float(off + (margin if offset else 0)), rel=1e-11)


def test_rescaling_of_constants():
    assert Rescaling.of(np.zeros(5)) == (0.0, 1.0)
    single, _ = Rescaling.of(np.full(5, 7.0)).apply(np.full(5, 7.0))
    assert_array_equal(single, 0)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("n_neighbors", [1, 3, 40])
@pytest.mark.parametrize("width", [11, 30])
def test_shortlists_hold_the_answer_in_any_order_of_tiles(rng, exact, n_neighbors, width):
    true = np.round(rng.random((7, 30)), 2)  # with ties
    excluded = rng.integers(-1, 30, 7)
    bound = Bound() if exact else Bound(0.99, 1.01, 0.01)
    estimates = true if exact else true * rng.uniform(0.995, 1.005, true.shape)
    lists = Shortlists(7, n_neighbors)
    tiles = [(r, c) for r in (0, 4) for c in range(0, 30, width)]
    for position in rng.permutation(len(tiles)):
        row, col = tiles[position]
        rows = slice(row, row + 4) if row == 0 else slice(4, 7)
        block = estimates[rows, col : col + width].copy()
        lists.add((row, col), shortlist(block, n_neighbors, bound, excluded[rows] - col))
    assert (lists.corners is None) == (width < 30)
    query, candidate, *_ = lists.compact()
    found = nearest(query, candidate, true[query, candidate], 7, n_neighbors)
    for i in range(7):
        expected = reference.nearest(true[i : i + 1], n_neighbors, excluded[i : i + 1])
        count = expected[1].shape[1]
        assert_array_equal(found.indices[i, :count], expected[1][0])
        assert_array_equal(found.distances[i, :count], expected[0][0])
        assert np.all(found.indices[i, count:] == -1)


def test_exact_shortlist_keeps_just_the_neighbors():
    found = shortlist(np.zeros((2, 100)), 3, Bound(), np.array([1, -1]))
    assert_array_equal(found.rows, [0, 0, 0, 1, 1, 1])
    assert_array_equal(found.cols, [0, 2, 3, 0, 1, 2])


def test_rows_with_too_many_survivors_become_unsettled(monkeypatch):
    monkeypatch.setattr(certify, "MIN_SURVIVORS", 5)
    lists = Shortlists(2, 1)
    bound = Bound(0.9, 1.1, 0.0)
    estimates = np.ones((2, 20))
    estimates[1, 3] = 0.1
    lists.add((0, 0), shortlist(estimates, 1, bound, None))
    query, candidate, *_ = lists.compact()
    assert_array_equal(lists.overflowed_rows[0], [0])
    assert_array_equal(query, [1])
    assert_array_equal(candidate, [3])


@pytest.mark.parametrize("bound", [Bound(), Bound(0.9, 1.1)], ids=["exact", "estimated"])
def test_a_query_that_lacks_one_candidate_loses_none(bound):
    """Those of the next query are none of its own."""
    lists = Shortlists(3, 2)
    three = np.arange(3)
    distances = np.array([5.0, 1.0, 3.0])
    lists.add((0, 0), Shortlist(three, three, distances, bound))
    query, candidate, estimate, *_ = lists.compact()
    assert_array_equal([query, candidate], [three, three])
    assert_array_equal(estimate, distances)


@pytest.mark.parametrize(("n_neighbors", "cap", "held"), [(1, 64, 64), (9, 72, 64), (17, 136, 68)])
def test_as_many_survivors_as_there_is_room_for_are_kept(n_neighbors, cap, held):
    assert survivors_held(n_neighbors) == held
    for n_survivors, overflowed in ((cap, []), (cap + 1, [0])):
        found = shortlist(np.ones((1, n_survivors)), n_neighbors, Bound(0.9, 1.1, 0.0), None)
        assert_array_equal(found.overflowed_rows, overflowed)
        assert found.rows.size == (0 if overflowed else cap)
        # the same where they come from several tiles, and other queries have none
        lists = Shortlists(20, n_neighbors)
        for cols in np.array_split(np.arange(n_survivors), 3):
            rows = np.zeros(cols.size, np.int64)
            lists.add((0, 0), Shortlist(rows, cols, np.ones(cols.size), Bound(0.9, 1.1, 0.0)))
        lists.compact()
        assert_array_equal(lists.overflowed_rows[0], overflowed)
        assert lists.size == (0 if overflowed else cap)
    assert survivor_cap(n_neighbors) == cap


def test_survivors_are_compacted_after_some_thousand_and_then_after_twice_as_many():
    lists = Shortlists(100, 2)
    bound = Bound(0.5, 2.0)

    def add(n):
        rows = np.arange(n) % 100
        lists.add((0, 0), Shortlist(rows, np.arange(n), np.ones(n), bound))

    add(COMPACT_AFTER)
    add(0)
    assert COMPACT_AFTER == 4096 and len(lists.parts) == 2
    add(1)
    assert len(lists.parts) == 1
    held = lists.size
    assert lists.compact_at == max(COMPACT_AFTER, 2 * held)
    assert Shortlists(2000, 3).compact_at == 12_000


@pytest.mark.parametrize(
    ("counts", "closed"),
    [
        ([30, 60, 10, 45, 1], []),
        ([30, 60, 10, 45], [1]),
        ([30, 60, 10], [1]),
        ([60, 60, 60, 1], [0]),
        ([60, 60, 0, 60, 60], [0, 1]),
        ([64, 64, 0, 64], [0]),  # what is left fills the room
        ([64, 0], []),
    ],
)
def test_the_queries_with_most_survivors_become_unsettled(counts, closed):
    """As few as leave the others room: half of what is held for each on average."""
    n_queries, total = len(counts), sum(counts)
    lists = Shortlists(n_queries, 1)
    lists.compact_at = 0
    rows = np.repeat(np.arange(n_queries), counts)
    cols = np.concatenate([np.arange(count) for count in counts])
    found = Shortlist(rows, cols, np.ones(rows.size), Bound(0.5, 2.0))
    lists.add((0, 0), found)
    query, candidate, *_ = lists.compact()
    assert (total > n_queries * survivors_held(1) // 2) == bool(closed)
    assert_array_equal(np.concatenate(lists.overflowed_rows), closed)
    assert_array_equal(query, rows[~np.isin(rows, closed)])
    assert_array_equal(candidate, cols[~np.isin(rows, closed)])


@pytest.mark.parametrize("n_neighbors", [1, 3, 40])
def test_of_exact_values_no_more_than_the_neighbours_are_kept(rng, n_neighbors):
    """Of equal ones those of lower index, however many there are."""
    values = rng.integers(0, 3, (4, 30)).astype(float)
    lists = Shortlists(4, n_neighbors)
    for col in rng.permutation(range(0, 30, 10)):
        lists.add((0, col), shortlist(values[:, col : col + 10].copy(), n_neighbors, Bound(), None))
    query, candidate, *_ = lists.compact()
    kept = min(n_neighbors, 30)
    assert_array_equal(query, np.repeat(np.arange(4), kept))
    assert_array_equal(
        np.sort(candidate.reshape(4, kept), axis=1),
        np.sort(np.argsort(values, axis=1, kind="stable")[:, :kept], axis=1),
    )


def test_survivors_are_compacted_column_by_column():
    """So that each is there twice only for a moment."""
    n_queries, n_neighbors = 500, 200
    lists = Shortlists(n_queries, n_neighbors)
    n = n_queries * n_neighbors
    tracemalloc.start()
    found = Shortlist(
        *(np.arange(n) // n_neighbors, np.arange(n) % n_neighbors),
        *(np.ones(n), Bound(0.5, 2.0), np.empty(0, np.int64)),
    )
    lists.add((0, 0), found)
    del found
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    assert lists.compact()[0].size == n
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # queries, candidates, three values, twice over; their order, ranks and what is kept
    assert held == pytest.approx(40 * n, rel=0.1)
    assert peak < 120 * n


def test_bytes_of_answers_and_survivors(make_series):
    queries, candidates = make_series(7, 12), make_series(90, 12)
    work = DTWNeighbors(queries, candidates, 3)
    found = run(work, engine="oracle")
    assert work.result_bytes() == found.distances.nbytes + found.indices.nbytes
    assert math.isinf(work.limit_of(0))
    # all pairs, unless that is more than is held
    assert work.survivor_bytes() == ENTRY_BYTES * 7 * 90
    many = replace(work, queries=make_series(100, 12))
    assert many.survivor_bytes() == ENTRY_BYTES * 100 * survivors_held(3)
    few = replace(work, queries=make_series(50, 12))
    assert few.survivor_bytes() == ENTRY_BYTES * COMPACT_AFTER


@pytest.mark.parametrize("budget", [0, 2**24, 2**27, 2**30])
def test_batches_of_queries_fit_their_share_of_the_budget(budget):
    candidates = Series(np.broadcast_to(0.0, (640, 1, 50)), np.broadcast_to(50, 640))
    queries = Series(np.broadcast_to(0.0, (5000, 1, 50)), np.broadcast_to(50, 5000))
    for k in (1, 30):
        batches = DTWNeighbors(queries, candidates, k).batches(budget)
        assert [b.start for b in batches] == [0, *(b.stop for b in batches[:-1])]
        assert batches[-1].stop == 5000
        room = max(budget * SURVIVORS_SHARE, ENTRY_BYTES * COMPACT_AFTER)
        each, size = ENTRY_BYTES * survivors_held(k), batches[0].stop
        assert size == 1 or size * each <= room
        assert size == 5000 or (size + 1) * each > room


def test_bounds_that_say_nothing_drop_no_equal_series():
    bound = dtw_bound(2**25, 1, 0.0, 1.0)
    assert bound.upper(np.zeros(1))[0] == np.inf
    found = shortlist(np.zeros((1, 4)), 2, bound, None)
    assert_array_equal(found.cols, [0, 1, 2, 3])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("slack", [0.0, np.inf])
def test_intervals_of_estimates_that_overflowed(slack):
    bound, estimates = Bound(0.9, 1.1, slack), np.array([np.inf, 1.0, 0.0])
    assert_array_equal(bound.lower(estimates), [0, 0.9 if slack == 0 else 0, 0])
    assert_array_equal(bound.upper(estimates), [np.inf, 1.1 + slack, slack])


def series_of(values):
    return Series(np.ascontiguousarray(values[:, None]), np.full(len(values), values.shape[1]))


CROWDS = {
    "many": lambda rng: (rng.normal(size=(250, 12)), rng.normal(size=(900, 12)), 300),
    "tied": lambda rng: (np.zeros((600, 12)), np.ones((1500, 12)), 5),
    "nearly tied": lambda rng: (
        rng.normal(size=(600, 12)),
        1 + 1e-13 * rng.normal(size=(1500, 12)),
        5,
    ),
}


@pytest.mark.parametrize("kind", CROWDS)
def test_survivors_stay_within_the_budget(fast_engine, rng, kind):
    queries, candidates, k = CROWDS[kind](rng)
    work = DTWNeighbors(series_of(queries), series_of(candidates), k)
    expected = run(replace(work, precision="float64"), engine="numba")
    with config_context(memory="4MiB"):
        run(work, engine=fast_engine)  # compiles
        tracemalloc.start()
        found = run(work, engine=fast_engine, n_jobs=1)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.distances, expected.distances)
    assert peak < 2**22 + work.result_bytes() + 2**20


@pytest.mark.long
@pytest.mark.parametrize("precision", ["auto", "float64"])
def test_batches_of_queries_do_not_change_an_answer(fast_engine, rng, monkeypatch, precision):
    series = series_of(np.round(rng.normal(size=(90, 10)), 1))
    work = DTWNeighbors(series, series, 4, np.arange(90), precision)
    turned = RotationNeighbors(series, series, 4, np.arange(90))
    expected = [run(each, engine=fast_engine) for each in (work, turned)]
    for room in (1, 2**17, 2**18):
        monkeypatch.setattr(executor, "host_budget", lambda room=room: room)
        assert len(work.batches(room)) > 1
        for each, before in zip((work, turned), expected, strict=True):
            found = run(each, engine=fast_engine)
            assert_array_equal(found.indices, before.indices)
            assert_array_equal(found.distances, before.distances)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_candidates", [5, 200])
@pytest.mark.parametrize("size", [1e15, 1e19, 1e25, 1e100])
@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
def test_estimates_beyond_float32_are_computed_in_float64(
    fast_engine, rng, metric, cost, size, n_candidates
):
    queries, candidates = rng.normal(size=(3, 12)), rng.normal(size=(n_candidates, 12))
    queries[1] *= size
    warping = Warping(metric, cost)
    work = DTWNeighbors(series_of(queries), series_of(candidates), 2, None, "float32", warping)
    found = run(work, engine=fast_engine)
    expected = run(replace(work, precision="float64"), engine="numba")
    assert_allclose(found.distances, expected.distances, rtol=1e-5)
    if size >= 1e25 and cost == "squared":
        assert_array_equal(found.distances[1], expected.distances[1])
        assert_array_equal(found.indices[1], expected.indices[1])
