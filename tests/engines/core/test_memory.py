"""Plans cover the work once, keep to the grid and the budget; the store forgets in time."""

from __future__ import annotations

import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import config_context
from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    Join,
    Series,
    Shapes,
    Tile,
    find_engine,
    run,
)
from skts.engines.core.budget import check_size, format_bytes, physical_memory
from skts.engines.core.plan import balance, halve, plan_tiles
from skts.engines.core.prepared import PreparedStore
from skts.exceptions import MemoryBudgetError
from skts.metrics import pairwise_dtw


def reduction(n_rows, n_cols, length):
    """A reduction of any size whose arrays take no memory."""
    rows, cols = (
        Series(np.broadcast_to(0.0, (n, 1, length)), np.broadcast_to(length, n))
        for n in (n_rows, n_cols)
    )
    return DTWNeighbors(rows, cols, 1)


def count_cover(work, tiles):
    covered = np.zeros(work.shape, int)
    for tile in tiles:
        covered[tile.rows, tile.cols] += 1
    return covered


@pytest.mark.parametrize("shape", [(1, 1), (7, 1000), (300, 129), (1000, 1)])
@pytest.mark.parametrize("budget", [2**62, 10**6, 3 * 10**5])
@pytest.mark.parametrize("tile_work", [1, 2**26, 2**40])
def test_plan_covers_the_work_once_within_the_budget(shape, budget, tile_work):
    work = reduction(*shape, 500)

    def footprint(rows, cols):
        return 4000 * cols, 1000 * rows + 8 * rows * cols

    tiles, workers = plan_tiles(
        work, tile_work=tile_work, footprint=footprint, budget=budget, workers=4
    )
    assert np.all(count_cover(work, tiles) == 1)
    assert 1 <= workers <= 4
    for tile in tiles:
        shared, each = footprint(*tile.shape)
        assert shared + workers * each <= budget


def test_columns_of_a_plan_do_not_depend_on_the_number_of_rows():
    def columns(n_rows):
        tiles, _ = plan_tiles(
            reduction(n_rows, 5000, 100),
            tile_work=2**36,
            footprint=lambda rows, cols: (800 * cols, 8 * rows * cols),
            budget=10**6,
            workers=2,
        )
        return {(tile.col, tile.col_stop) for tile in tiles}

    assert columns(100) == columns(1000) == columns(99999)


def test_a_symmetric_matrix_needs_half_the_tiles():
    series = reduction(1000, 1, 300).queries
    plan = {"tile_work": 1, "footprint": lambda rows, cols: (0, 0), "budget": 1, "workers": 1}
    whole, _ = plan_tiles(DTWMatrix(series, series.take(slice(None))), **plan)
    half, _ = plan_tiles(DTWMatrix(series, series), **plan)
    assert len(half) < 0.6 * len(whole)


def test_a_fraction_is_of_the_memory_of_this_machine_or_its_container(tmp_path, monkeypatch):
    engine = find_engine("numba")
    with config_context(memory=0.5):
        assert engine.budget() == physical_memory() // 2
        assert 2**20 < engine.budget() < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for text, size in (("max\n", None), ("1000000\n", 1_000_000)):
        limit = tmp_path / f"limit of {size}"
        limit.write_text(text)
        monkeypatch.setattr("skts.engines.core.budget.CONTAINER_LIMITS", (limit,))
        assert (physical_memory() == 1_000_000) == (size is not None)
    with config_context(memory=0.25):
        assert engine.budget() == 250_000
    series = Series(np.zeros((3, 1, 50)), np.full(3, 50))
    with (
        config_context(memory=0.001),
        pytest.raises(MemoryBudgetError, match="the budget is 1000 bytes"),
    ):
        run(DTWMatrix(series, series), engine=engine)


def test_results_larger_than_the_memory_of_the_machine_are_refused(tmp_path, monkeypatch):
    limit = tmp_path / "limit"
    limit.write_text("1000000\n")
    monkeypatch.setattr("skts.engines.core.budget.CONTAINER_LIMITS", (limit,))
    check_size(1_000_000, (5, 25_000))
    with pytest.raises(
        MemoryBudgetError, match=r"The result of shape \(5, 25001\) needs 976.6 KiB"
    ):
        check_size(1_000_040, (5, 25_001))
    # machines that say they have none have so much
    none = tmp_path / "none"
    none.write_text("0\n")
    monkeypatch.setattr("skts.engines.core.budget.CONTAINER_LIMITS", (none,))
    check_size(2**16, (1, 2**13))
    with pytest.raises(MemoryBudgetError, match="this machine has 0 bytes of memory. Ask for part"):
        pairwise_dtw(np.zeros((100, 3)), np.zeros((82, 3)))


@pytest.mark.gpu
def test_a_fraction_is_of_the_memory_of_the_gpu():
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    import cupy

    with config_context(memory=0.5):
        assert engine.budget() == cupy.cuda.Device().mem_info[1] // 2


@pytest.mark.parametrize("n_windows", [4_000_000, 100_000, 3000])
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_tiles_towards_the_end_are_cut_for_balance(n_windows, workers):
    line = ConcatenatedSeries(
        np.broadcast_to(0.0, n_windows + 99), np.zeros(1, int), np.array([n_windows])
    )
    work = Join(line, None, 100, 25)
    plan = {"tile_work": 2**36, "footprint": lambda rows, cols: (0, 1), "budget": 100}
    planned, ready = plan_tiles(work, workers=workers, **plan)
    assert ready == workers
    tiles = balance(work, planned, workers)
    total = sum(map(work.work, planned))
    assert total == pytest.approx(n_windows**2 / 2, rel=1e-3)
    assert sum(map(work.work, tiles)) == pytest.approx(total, rel=1e-3)
    edges = {edge for tile in tiles for edge in tile} - {n_windows}
    assert all(edge % 1024 == 0 for edge in edges)
    # hand tiles out as workers become free: they end together
    ends = [0] * workers
    for tile in tiles:
        ends[ends.index(min(ends))] += work.work(tile)
    if n_windows > 10**6:
        assert max(ends) <= (1 + 1 / 16) * total / workers
    assert len(tiles) <= len(planned) + 128 * workers
    if workers == 1:
        assert tiles == planned


def test_the_work_of_a_tile_counts_pairs_above_the_diagonal():
    line = ConcatenatedSeries(np.zeros(60), np.zeros(1, int), np.array([60]))
    work = Join(line, None, 11)
    later = np.arange(50)[:, np.newaxis] < np.arange(50)
    for tile in (Tile(0, 50, 0, 50), Tile(10, 30, 20, 50), Tile(20, 40, 0, 10), Tile(5, 9, 4, 30)):
        count = later[tile.rows, tile.cols].sum()
        assert abs(work.work(tile) - count) <= max(tile.shape) / 2
    assert Join(line, line, 11).work(Tile(20, 40, 0, 10)) == 200


def test_workers_that_need_the_same_thing_build_it_once():
    store, built, owner = PreparedStore(), [], np.zeros(1)
    both = threading.Barrier(4, timeout=60)

    def build():
        built.append(1)
        time.sleep(0.05)
        return "made", 1

    def ask(_):
        both.wait()
        return store.get(owner, "key", build)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == ["made"] * 4
    assert len(built) == 1

    def fail():
        raise MemoryError

    with pytest.raises(MemoryError):
        store.get(owner, "other", fail)
    assert store.get(owner, "other", lambda: ("there", 1)) == "there"


def test_room_is_made_before_what_is_known_to_be_large_is_built():
    store, owner, held = PreparedStore(capacity=100), np.zeros(1), []

    def build():
        held.append(store.size())
        return "made", 60

    store.get(owner, "old", lambda: ("old", 70))
    store.get(owner, "new", build, 60)
    assert held == [0]
    store.get(owner, "third", build)
    # of a size that is not known before, the old one goes after
    assert held == [0, 60]
    assert store.size() == 60


def test_normalised_series_of_a_file_lie_in_a_file(tmp_path, rng, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    mapped = np.memmap(tmp_path / "given", np.float64, "w+", shape=(30, 1, 40))
    mapped[:] = rng.normal(size=mapped.shape)
    lengths = np.full(30, 40)
    shapes = Shapes.normalized(Series(mapped, lengths))
    expected = Shapes.normalized(Series(np.array(mapped), lengths))
    assert type(shapes.values) is np.ndarray
    assert isinstance(shapes.values.base, np.memmap)
    assert_array_equal(shapes.values, expected.values)
    assert_array_equal(shapes.norms, expected.norms)
    assert not isinstance(expected.values.base, np.memmap)
    assert len(list(tmp_path.iterdir())) == 2
    del shapes
    gc.collect()
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_a_budget_too_small_for_one_tile_raises_with_both_sizes():
    with pytest.raises(MemoryBudgetError, match=r"needs .* budget is 1 KiB"):
        plan_tiles(
            reduction(10, 10, 100),
            tile_work=1,
            footprint=lambda r, c: (0, 2**20),
            budget=1024,
            workers=1,
        )


def test_no_work_no_tiles():
    series = reduction(3, 3, 5).queries
    pairs = DTWPairs(series, series, np.empty((0, 2), np.int64))
    plan = plan_tiles(pairs, tile_work=1, footprint=lambda r, c: (0, 0), budget=1, workers=3)
    assert plan == ([], 0)


@pytest.mark.parametrize(
    ("size", "text"), [(1, "1 byte"), (10, "10 bytes"), (2**20, "1 MiB"), (3 * 2**40, "3 TiB")]
)
def test_format_bytes(size, text):
    assert format_bytes(size) == text


def test_store_builds_once_and_drops_with_the_array():
    store, calls = PreparedStore(), []

    def build():
        calls.append(1)
        return object(), 10

    array = np.zeros(3)
    first = store.get(array, "a", build)
    assert store.get(array, "a", build) is first
    assert store.get(array, "b", build) is not first
    assert len(calls) == 2
    assert store.size() == 20
    del array
    gc.collect()
    assert len(store) == 0


def test_what_the_store_drops_may_own_more_of_it(monkeypatch):
    errors = []
    monkeypatch.setattr("sys.unraisablehook", errors.append)
    for let_go in (lambda store: store.make_room(60), lambda store: store.clear(), None):
        store, last, kept = PreparedStore(capacity=100), np.zeros(1), np.zeros(1)
        owner = last
        for number in range(5):
            value = owner
            owner = np.zeros(1)
            store.get(owner, number, lambda value=value: (value, 10))
            store.get(value, "other", lambda: ("there", 1))
        store.get(kept, "kept", lambda: ("there", 1))
        del value, last
        if let_go is None:
            del owner
            assert store.size() == 1
        else:
            let_go(store)
            assert store.size() <= 40
            assert store.get(owner, "again", lambda: ("made", 1)) == "made"
    assert errors == []


def test_store_makes_room_for_the_newest():
    store = PreparedStore(capacity=25)
    arrays = [np.zeros(1) for _ in range(3)]
    for array in arrays:
        store.get(array, "a", lambda: (object(), 10))
    assert store.size() == 20
    rebuilt = []
    store.get(arrays[2], "a", lambda: rebuilt.append(2) or (object(), 10))
    store.get(arrays[0], "a", lambda: rebuilt.append(0) or (object(), 10))
    assert rebuilt == [0]


def test_store_keeps_what_just_fits():
    store, owner = PreparedStore(capacity=20), np.zeros(1)
    for key in "ab":
        store.get(owner, key, lambda: (object(), 10), 10)
    assert store.size() == 20
    store.get(owner, "large", lambda: (object(), 30), 30)
    assert store.size() == 30  # alone, as whoever asked for it holds it anyway


def test_halves_meet_between_cells():
    assert halve(Tile(0, 8, 64, 320), (4, 64)) == [Tile(0, 8, 64, 192), Tile(0, 8, 192, 320)]
    assert halve(Tile(0, 7, 0, 50), (4, 64)) == [Tile(0, 4, 0, 50), Tile(4, 7, 0, 50)]
    assert halve(Tile(4, 7, 0, 50), (4, 64)) == []
