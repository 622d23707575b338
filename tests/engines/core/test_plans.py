"""Plans from their definition: how many workers, which tiles, what memory is counted for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from skts import config_context
from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    DTWWindowSearch,
    Join,
    LongSeries,
    RotationNeighbors,
    SBDCenters,
    SBDMatrix,
    Series,
    Shapes,
    SubsequenceMatches,
    SubsequenceNeighbors,
    Tile,
    Warping,
    WindowDistances,
    WindowKinds,
    find_engine,
)
from skts.engines.core.budget import format_bytes
from skts.engines.core.certify import Bound, Rescaling, gamma, survivor_cap
from skts.engines.core.plan import balance, halve, make_plan, plan_tiles
from skts.engines.core.prepared import PreparedStore
from skts.engines.core.reduction import Tiling
from skts.engines.families.profile.statistics import WindowStatistics, settle_statistics
from skts.exceptions import MemoryBudgetError


def hollow(n_series, length, channels=1):
    """Series that take no memory."""
    return Series(
        np.broadcast_to(0.0, (n_series, channels, length)), np.broadcast_to(length, n_series)
    )


def hollow_line(n_points):
    return ConcatenatedSeries(
        np.broadcast_to(0.0, n_points), np.zeros(1, int), np.array([n_points])
    )


# --- plans -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ready", [1, 3, 8])
@pytest.mark.parametrize("room", [1, 2, 5])
def test_as_many_workers_as_the_budget_holds(ready, room):
    work = DTWNeighbors(hollow(100, 50), hollow(640, 50), 1)

    def footprint(rows, cols):
        return 1000 + cols, 500 * rows

    tiles, workers = plan_tiles(
        work, tile_work=1, footprint=footprint, budget=1064 + 500 * room + 499, workers=ready
    )
    assert workers == min(ready, room)
    assert {tile.shape for tile in tiles} == {(1, 64)}


def test_the_largest_tiles_that_fit():
    work = DTWNeighbors(hollow(1000, 50), hollow(64 * 16, 50), 1)
    cells = work.step_work
    plan = {"footprint": lambda rows, cols: (0, rows * cols), "workers": 1}
    for tile_work, budget, shape in (
        (2**60, 2**60, (1000, 1024)),
        (cells * 64, 2**60, (1, 64)),
        (cells * 64 * 2 - 1, 2**60, (1, 64)),
        (cells * 64 * 2, 2**60, (1, 128)),
        (2**60, 64 * 8, (1, 512)),
        (2**60, 64 * 16 * 5, (4, 1024)),
        (cells * 64 * 16 * 4, 2**60, (4, 1024)),
    ):
        tiles, _ = plan_tiles(work, tile_work=tile_work, budget=budget, **plan)
        assert tiles[0].shape == shape


def test_square_work_grows_along_both_axes():
    work = Join(hollow_line(2**17 + 7), None, 8)
    rows, cols = work.cell
    for factor in (1, 2, 4, 8):
        tiles, _ = plan_tiles(
            work,
            tile_work=2**60,
            footprint=lambda r, c: (0, r * c),
            budget=factor**2 * rows * cols,
            workers=1,
        )
        assert max(tile.shape for tile in tiles) == (factor * rows, factor * cols)


def test_rows_grow_while_eight_tiles_are_left_for_each_worker():
    work = DTWNeighbors(hollow(4096, 50), hollow(64, 50), 1)
    plan = {"footprint": lambda rows, cols: (0, 1), "budget": 4, "workers": 4}
    least = work.step_work * 64
    for scale, rows in ((1, 1), (8, 8), (10**6, 4096 // (8 * 4))):
        tiles, _ = plan_tiles(work, tile_work=least, row_scale=scale, **plan)
        assert tiles[0].shape == (rows, 64)


def test_searches_in_float32_have_larger_tiles_on_a_gpu():
    engine = find_engine("cupy")
    work = DTWNeighbors(hollow(4096, 50), hollow(64, 50), 1)
    assert engine.row_scale_of(work) == engine.row_scale > 1
    assert engine.row_scale_of(replace(work, precision="float64")) == 1
    assert engine.row_scale_of(DTWMatrix(work.queries, work.candidates)) == 1


def test_an_area_is_planned_alone():
    work = DTWMatrix(hollow(50, 9), hollow(640, 9))
    area = Tile(10, 30, 128, 512)
    tiles, _ = plan_tiles(
        work, tile_work=1, footprint=lambda r, c: (0, 0), budget=1, workers=1, area=area
    )
    covered = np.zeros(work.shape, int)
    for tile in tiles:
        covered[tile.rows, tile.cols] += 1
    inside = np.zeros(work.shape, int)
    inside[area.rows, area.cols] = 1
    assert np.array_equal(covered, inside)


def test_square_work_leaves_eight_tiles_for_each_worker_or_is_cut_later(monkeypatch):
    work = DTWMatrix(hollow(1024, 9), hollow(4096, 9))
    plan = {"tile_work": 2**60, "footprint": lambda rows, cols: (0, 1)}
    for tiling, workers, room, n_tiles in (
        (Tiling(square=True), 4, 99, 8 * 4),
        (Tiling(square=True), 4, 2, 8 * 2),
        # who is alone from the start, and who is left alone by a budget
        (Tiling(square=True), 1, 99, 1),
        (Tiling(square=True), 4, 1, 1),
        (Tiling(square=True, divisible=True), 4, 99, 1),
        (Tiling(), 4, 99, 1),
    ):
        monkeypatch.setattr(DTWMatrix, "tiling", tiling)
        tiles, ready = plan_tiles(work, workers=workers, budget=room, **plan)
        assert (len(tiles), ready) == (n_tiles, min(workers, room))


def test_the_smallest_part_of_an_area_is_within_it():
    work = DTWMatrix(hollow(50, 9), hollow(650, 9))
    plan = {"tile_work": 1, "footprint": lambda rows, cols: (0, cols), "budget": 10, "workers": 1}
    last = Tile(49, 50, 640, 650)
    assert plan_tiles(work, area=last, **plan) == ([last], 1)
    with pytest.raises(MemoryBudgetError, match="needs 64 bytes of working memory; the budget is"):
        plan_tiles(work, area=Tile(49, 50, 576, 650), **plan)


def test_devices_are_those_of_the_engine_or_of_the_configuration(monkeypatch):
    engine, work = find_engine("numba"), DTWMatrix(hollow(5, 9), hollow(6, 9))
    assert make_plan(work, engine).devices is None
    with config_context(devices=[3, 1]):
        assert make_plan(work, engine).devices == (3, 1)
        monkeypatch.setitem(vars(engine), "devices", lambda reduction: (1,))
        assert make_plan(work, engine).devices == (1,)


@pytest.mark.parametrize("shared", [0, 5 * 10**5])
def test_prepared_data_leave_room_for_the_tiles_of_all_workers(monkeypatch, shared):
    engine, work = find_engine("numba"), DTWMatrix(hollow(500, 50), hollow(640, 50))
    monkeypatch.setitem(vars(engine), "footprint", lambda work, rows, cols: (shared, 100 * cols))
    with config_context(memory=10**6):
        plan = make_plan(work, engine, n_jobs=3)
    each = 100 * max(tile.shape[1] for tile in plan.tiles)
    assert plan.memory == shared + plan.workers * each <= plan.budget == 10**6
    assert plan.prepared == plan.budget - (plan.workers * each if shared else 0)


def test_halves_are_of_whole_cells_and_differ_by_one_at_most():
    assert halve(Tile(0, 9, 64, 448), (9, 64)) == [Tile(0, 9, 64, 256), Tile(0, 9, 256, 448)]
    assert halve(Tile(4, 40, 0, 64), (4, 64)) == [Tile(4, 24, 0, 64), Tile(24, 40, 0, 64)]


def test_what_is_handed_out_is_at_most_a_share_of_half_of_what_is_left():
    work = Join(hollow_line(300_000), hollow_line(200_000), 8)
    planned = [Tile(0, work.shape[0], 0, work.shape[1])]
    for workers in (2, 5):
        left = total = work.work(planned[0])
        for tile in balance(work, planned, workers):
            size = work.work(tile)
            assert size <= max(total / (16 * workers), left / (2 * workers))
            left -= size
        assert left == 0


def test_the_store_keeps_the_last_even_where_it_is_too_large():
    store, owner, built = PreparedStore(capacity=10), np.zeros(1), []

    def build():
        built.append(1)
        return "large", 25

    for _ in range(3):
        assert store.get(owner, "a", build) == "large"
    assert built == [1]
    assert len(store) == 1 and store.holds(owner, "a") and not store.holds(owner, "b")
    store.get(owner, "b", lambda: ("small", 10))
    assert not store.holds(owner, "a") and store.size() == 10
    store.make_room(1)
    assert len(store) == 0


def test_entries_fill_the_store_to_the_last_byte():
    store, owners = PreparedStore(capacity=30), [np.zeros(1) for _ in range(3)]
    for owner in owners:
        store.get(owner, "a", lambda: ("made", 10), 10)
    assert store.size() == 30
    with store.limited(20):
        assert store.capacity == 20
        store.make_room(0)
    assert store.capacity == 30
    assert [store.holds(owner, "a") for owner in owners] == [False, True, True]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1023, "1023 bytes"),
        (1024, "1 KiB"),
        (2**30, "1 GiB"),
        (2**40, "1 TiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_bytes_in_words(size, text):
    assert format_bytes(size) == text


# --- what tiles take ---------------------------------------------------------------------------

N, M, C = 90, 110, 2
LINE, LENGTH = 5000, 40


def families():
    """Work, and for rows and columns of a tile the arrays that it cannot do without."""
    left, right = hollow(700, N, C), hollow(900, M, C)
    same, wide = hollow(900, N, C), hollow(1, N, 50)
    pairs = np.zeros((5000, 2), np.int64)
    shapes, short = (Shapes(np.zeros((700, C, n)), np.ones(700)) for n in (N, 30))
    labels = np.zeros(700, np.int32)
    line = hollow_line(LINE)
    queries = tuple(np.zeros(LENGTH) for _ in range(50))
    return {
        "matrix": (DTWMatrix(left, right), lambda r, c: 8 * r * c + 8 * min(r * N, c * M) * C),
        "neighbors": (
            DTWNeighbors(left, right, 3),
            lambda r, c: 8 * r * c + 4 * min(r * N, c * M) * C,
        ),
        "pairs": (DTWPairs(left, right, pairs), lambda r, c: 8 * r),
        "path": (
            DTWPath(hollow(1, N), hollow(1, M)),
            lambda r, c: 8 * M * (N // 9) + 16 * max(N, M),
        ),
        "every window": (
            DTWWindowSearch(same, same, np.zeros(900, int), np.arange(N)[::-1]),
            lambda r, c: 8 * r * N + 24 * 900,
        ),
        # with the envelope of a query
        "every window of many channels": (
            DTWWindowSearch(wide, wide, np.zeros(1, int), np.arange(N)[::-1]),
            lambda r, c: 8 * r * N + 16 * 50 * N + 24 * N,
        ),
        # candidates twice over, bounds and the costs that they come from, queries
        "rotation": (
            RotationNeighbors(hollow(700, N, C), same, 3),
            lambda r, c: 16 * c * C * N + 12 * r * c + 8 * r * C * N,
        ),
        "straight rotation": (
            RotationNeighbors(hollow(700, N, C), same, 3, warping=Warping(window=0)),
            lambda r, c: 16 * c * C * N,
        ),
        "straight rotation of long series": (
            RotationNeighbors(hollow(700, 1000), hollow(3, 1000), 3, warping=Warping(window=0)),
            lambda r, c: 24 * c * 1000 + 8 * r * 1000,
        ),
        "shapes": (SBDMatrix(shapes, shapes), lambda r, c: 12 * r * c + 16 * C * N * (r + c)),
        "centers": (
            SBDCenters(shapes, labels, labels, 40),
            lambda r, c: 8 * C * N * r + 16 * 128 * C * N,
        ),
        # the matrix of a cluster, and a block of its members
        "centers of short series": (
            SBDCenters(short, labels, labels, 40),
            lambda r, c: 8 * 60 * r + 8 * 60 * 60 + 8 * 512 * 60,
        ),
        "join": (Join(line, None, LENGTH, 3, 2), lambda r, c: 24 * LINE + 16 * 2 * (r + c)),
        "window distances": (
            WindowDistances(line, np.arange(300), line, LENGTH),
            lambda r, c: 8 * r * c + 24 * LINE,
        ),
        "window kinds": (WindowKinds(line, LENGTH), lambda r, c: 24 * LINE),
        "search": (
            SubsequenceNeighbors(queries, LongSeries((np.zeros(LINE),))),
            lambda r, c: 24 * c + 16 * r * c,
        ),
        "matches": (
            SubsequenceMatches(queries, left, True, None),
            lambda r, c: 16 * r * c + 8 * LENGTH * r + 24 * N,
        ),
    }


@pytest.mark.parametrize("kind", families())
def test_footprints_hold_what_a_tile_cannot_do_without_and_little_more(kind):
    engine, (work, least) = find_engine("numba"), families()[kind]
    n_rows, n_cols = work.shape
    # what merging keeps of all tiles counts with each of them
    held = work.survivor_bytes() if hasattr(work, "survivor_bytes") else 0
    rows, cols = (min(size, n) for size, n in zip(work.cell, work.shape, strict=True))
    sizes = itertools.product(
        {rows, *(r for r in (64, 640) if rows <= r <= n_rows)},
        {cols, *(c for c in (64, 640) if cols <= c <= n_cols)},
    )
    for r, c in sizes:
        total = sum(engine.footprint(work, r, c))
        assert held + least(r, c) <= total <= held + 13 * least(r, c) + 2**23
        if r < n_rows:
            assert sum(engine.footprint(work, min(2 * r, n_rows), c)) >= total
        if c < n_cols:
            assert sum(engine.footprint(work, r, min(2 * c, n_cols))) >= total


# --- bounds ------------------------------------------------------------------------------------


def test_error_of_roundings_and_survivors():
    assert gamma(0, 0.25) == 0
    assert gamma(1, 0.25) == pytest.approx(1 / 3)
    assert gamma(4, 0.25) == np.inf and gamma(5, 0.25) == np.inf
    assert survivor_cap(1) == survivor_cap(8) == 64 and survivor_cap(9) == 72


def test_bounds_are_intervals():
    bound = Bound(0.5, 2.0, 1.0)
    estimates = np.array([0.0, 4.0, np.inf, np.nan])
    assert bound.lower(estimates).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert bound.upper(estimates).tolist() == [1.0, 9.0, np.inf, np.inf]
    assert not bound.exact and Bound().exact
    assert not any(b.exact for b in (Bound(0.5), Bound(grow=2.0), Bound(slack=1.0)))
    assert Bound().lower(estimates) is estimates and Bound().upper(estimates) is estimates


@pytest.mark.parametrize(
    ("values", "offset", "scale"),
    [
        ([0.0, 0.0], 0.0, 1.0),
        ([-1.0, 1.0], 0.0, 0.5),
        ([3.0, 5.0], 4.0, 0.5),
        ([-5.0, -3.0], -4.0, 0.5),
        ([-1.0, 3.0], 0.0, 0.25),
        ([7.0, 7.0], 7.0, 0.125),  # queries are likely to be as large
        ([1.0, 2.5], 1.75, 1.0),
        ([-5.0, -1.0], -3.0, 0.25),
        ([0.0, 0.3], 0.0, 2.0),
    ],
)
def test_rescaling(values, offset, scale):
    found = Rescaling.of(np.array(values))
    assert (found.offset, found.scale) == (offset, scale)
    single, error = found.apply(np.array(values))
    assert single.dtype == np.float32 and np.abs(single).max() <= 1
    exact = (np.array(values) - offset) * scale
    assert np.abs(single - exact).max() <= error
    assert error <= 2.0**-24 + 2.0**-51


# --- statistics of windows ---------------------------------------------------------------------


def test_inverse_deviations_and_windows_that_take_part():
    # of 1, 3, 1, 1, 1, NaN, 2 and 6, two by two
    low, high = np.array([[1.0, 1, 1, 1, 1, 1, 2], [3.0, 3, 1, 1, 1, 2, 6]])
    finite = np.array([1, 1, 1, 1, 0, 0, 1], bool)
    found = settle_statistics((high - low) / 2, low, high, finite)
    assert found.finite.tolist() == [1, 1, 1, 1, 0, 0, 1]
    assert found.constant.tolist() == [0, 0, 1, 1, 0, 0, 0]
    assert found.deviation.tolist() == [1, 1, 0, 0, 0, 0, 2]
    assert found.inverse.tolist() == [1, 1, 0, 0, 0, 0, 0.5]
    assert found.regular.tolist() == [1, 1, 0, 0, 0, 0, 1]
    assert isinstance(found, WindowStatistics)
