"""Bounds hold, survivors contain the answer, and merging in any order gives it."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

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
    nearest,
    shortlist,
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


def test_rescaling_of_constants():
    assert Rescaling.of(np.zeros(5)) == (0.0, 1.0)
    single, _ = Rescaling.of(np.full(5, 7.0)).apply(np.full(5, 7.0))
    assert_array_equal(single, 0)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("n_neighbors", [1, 3, 40])
def test_shortlists_hold_the_answer_in_any_order_of_tiles(rng, exact, n_neighbors):
    true = np.round(rng.random((7, 30)), 2)  # with ties
    excluded = rng.integers(-1, 30, 7)
    bound = Bound() if exact else Bound(0.99, 1.01, 0.01)
    estimates = true if exact else true * rng.uniform(0.995, 1.005, true.shape)
    lists = Shortlists(7, n_neighbors)
    tiles = [(r, c) for r in (0, 4) for c in (0, 11, 22)]
    for position in rng.permutation(len(tiles)):
        row, col = tiles[position]
        rows = slice(row, row + 4) if row == 0 else slice(4, 7)
        block = estimates[rows, col : col + 11].copy()
        lists.add((row, col), shortlist(block, n_neighbors, bound, excluded[rows] - col))
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
    assert_array_equal(lists.unsettled[0], [0])
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


def test_the_queries_with_most_survivors_become_unsettled():
    """As few as leave the others room: half of what is held for each on average."""
    counts = np.array([30, 60, 10, 45, 1])
    for n_queries, closed in ((5, []), (4, [1]), (3, [1])):
        lists = Shortlists(n_queries, 1)
        lists.compact_at = 0
        rows = np.repeat(np.arange(n_queries), counts[:n_queries])
        cols = np.concatenate([np.arange(count) for count in counts[:n_queries]])
        found = Shortlist(rows, cols, np.ones(rows.size), Bound(0.5, 2.0), np.empty(0, np.int64))
        lists.add((0, 0), found)
        query, candidate, *_ = lists.compact()
        room = n_queries * survivors_held(1) // 2
        assert (counts[:n_queries].sum() > room) == bool(closed)
        assert_array_equal(np.concatenate(lists.unsettled), closed)
        assert_array_equal(query, rows[~np.isin(rows, closed)])
        assert_array_equal(candidate, cols[~np.isin(rows, closed)])


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
