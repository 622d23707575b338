"""Threads, progress, interrupts, and merging of parts computed apart."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts._log import LOGGER
from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    Join,
    Series,
    Tile,
    find_engine,
    get_engine,
    run,
)
from skts.engines.core import execution
from skts.engines.core.progress import Estimate, progress
from skts.engines.cupy import CupyEngine
from skts.exceptions import MemoryBudgetError
from skts.metrics import pairwise_sbd
from tests.examples_of_work import reductions
from tests.waiting import press_ctrl_c, quickest, threads_left


def test_every_reduction_has_a_method_in_the_cpu_engine_and_the_oracle():
    methods = {kind.method for kind in reductions()}
    assert len(methods) > 20
    for name in ("numba", "oracle"):
        assert all(callable(getattr(find_engine(name), method)) for method in methods)


def test_parts_computed_apart_merge_to_the_same_answer(fast_engine, make_series):
    queries, candidates = make_series(9, 20), make_series(150, 20)
    excluded = np.arange(9) * 7
    pairs = np.array([[i % 9, (i * 31) % 150] for i in range(40)])
    engine = find_engine(fast_engine)
    works = [
        (
            DTWNeighbors(queries, candidates, 3, excluded),
            [Tile(0, 5, 0, 64), Tile(5, 9, 0, 64), Tile(0, 9, 64, 150)],
        ),
        (DTWMatrix(queries, candidates), [Tile(0, 9, 0, 100), Tile(0, 9, 100, 150)]),
        (DTWPairs(queries, candidates, pairs), [Tile(0, 33, 0, 1), Tile(33, 40, 0, 1)]),
    ]
    for reduction, tiles in works:
        expected = run(reduction, engine=fast_engine)
        total = reduction.start()
        for tile in reversed(tiles):
            part = pickle.loads(pickle.dumps(reduction.part(tile)))
            whole = Tile(0, part.shape[0], 0, part.shape[1])
            assert whole.shape == tile.shape
            reduction.merge(total, tile, engine.compute(part, whole, np.zeros(1, np.uint8)))
        found = reduction.finish(total, lambda work: run(work, engine=fast_engine))
        for a, b in zip(found, expected, strict=True):
            assert_array_equal(a, b)


def test_progress_is_reported_and_ends_at_the_total(fast_engine, make_series):
    seen = []
    with config_context(progress=lambda done, total: seen.append((done, total))):
        run(DTWMatrix(make_series(200, 100), make_series(200, 100)), engine=fast_engine)
    assert seen
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]


def test_verbose_shows_a_bar_and_the_plan(make_series, capsys, caplog, monkeypatch):
    monkeypatch.setattr("skts.engines.core.progress.DELAY", 0)
    work = DTWMatrix(make_series(300, 100), make_series(200, 100))
    run(work, engine="numba", n_jobs=2, verbose=2)
    captured = capsys.readouterr()
    (plan,) = (record.getMessage() for record in caplog.records if record.name == "skts")
    assert "DTWMatrix: 300 x 200 on numba, 6e+08 cells in" in plan and captured.out == ""
    words = r"in \d+ parts of up to \d+ x \d+, \d workers?, [\d.]+ \wiB of 1 GiB"
    assert re.search(words, plan)
    assert "100%" in captured.err and "600M/600M" in captured.err and "cells/s" in captured.err
    run(work, engine="numba", verbose=1)
    quiet = capsys.readouterr()
    assert quiet.out == "" and "100%" in quiet.err and len(caplog.records) == 1


def test_without_logging_the_plan_is_printed(make_series, capsys, monkeypatch):
    work = DTWMatrix(make_series(9, 10), make_series(9, 10))
    monkeypatch.setattr(LOGGER, "hasHandlers", lambda: False)
    run(work, engine="numba", verbose=2)
    assert capsys.readouterr().out.startswith("DTWMatrix: 9 x 9 on numba")
    LOGGER.setLevel("WARNING")
    try:
        run(work, engine="numba", verbose=2)
    finally:
        LOGGER.setLevel("INFO")
    assert capsys.readouterr().out == ""


class Slow:
    """An engine whose one part takes long, as kernels do."""

    def __init__(self, monkeypatch, seconds):
        self.engine = find_engine("numba")

        def wait(reduction, tile, cancel):
            time.sleep(seconds)
            return np.zeros(tile.shape)

        monkeypatch.setattr(self.engine, "dtw_matrix", wait)
        monkeypatch.setattr("skts.engines.core.execution.INLINE_WORK", 0)
        monkeypatch.setattr("skts.engines.core.progress.DELAY", 0.1)


def test_a_single_part_shows_a_bar_with_what_was_learned(make_series, capsys, monkeypatch):
    engine = Slow(monkeypatch, 0.7).engine
    monkeypatch.setattr("skts.engines.core.progress._RATES", {})
    work = DTWMatrix(make_series(2, 8), make_series(2, 8))
    run(work, engine=engine, n_jobs=1, verbose=1)
    first = capsys.readouterr().err
    assert "0%|" in first and "100%" in first and "left" not in first.split("100%")[0]
    run(work, engine=engine, n_jobs=1, verbose=1)
    second = capsys.readouterr().err
    assert re.search(r"0%\|.*about 00:00 left", second) and "256/256" in second


def test_estimates_learn(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("skts.engines.core.progress.monotonic", lambda: now[0])
    monkeypatch.setattr("skts.engines.core.progress._RATES", {})
    key = "numba", "DTWMatrix", 2
    estimate = Estimate(key, 1000)
    assert estimate.left() is None
    now[0] = 10.0
    estimate.add(500)
    assert estimate.left() == pytest.approx(10)
    now[0] = 14.0
    assert estimate.left() == pytest.approx(6)
    now[0] = 21.0
    assert estimate.left() is None  # longer than thought
    estimate.add(500)
    estimate.learn()
    again = Estimate(key, 2000)
    assert again.left() == pytest.approx(42)
    now[0] += 21  # twice as slow
    again.add(500)
    assert 31.5 < again.left() < 63
    now[0] += 63
    again.add(1500)
    again.learn()
    assert 42 < Estimate(key, 2000).left() < 84
    other = Estimate(("numba", "DTWMatrix", 1), 1000)
    assert other.left() is None
    now[0] += 0.25
    other.add(800)
    assert other.left() == pytest.approx(0.0625)


def test_the_bar_counts_what_parts_hold(make_series, monkeypatch):
    work = DTWMatrix(make_series(5, 8), make_series(3, 8))
    with progress(work, [Tile(0, 1, 0, 3), Tile(1, 5, 0, 3)], 0) as report:
        report.advance(Tile(1, 5, 0, 3))
        assert report.estimate.done * 5 == 4 * report.estimate.total
        report.advance(Tile(0, 1, 0, 3))
        assert report.estimate.done == report.estimate.total


def test_parts_that_other_processes_did_add_up_to_the_whole(make_series):
    """Whatever each of them held: they count alike."""
    work = DTWMatrix(make_series(5, 8), make_series(3, 8))
    for parts in (1, 2, 7):
        with progress(work, [Tile(0, 5, 0, 3)] * parts, 0) as report:
            done = [0]
            for _ in range(parts):
                report.advance()
                done.append(report.estimate.done)
        assert done[-1] == report.estimate.total
        assert np.ptp(np.diff(done)) <= 1


def test_quick_work_shows_no_bar(make_series, capsys, monkeypatch):
    # it is quick, however long others hold it up
    monkeypatch.setattr("skts.engines.core.progress.DELAY", 100)
    run(DTWMatrix(make_series(300, 10), make_series(200, 10)), engine="numba", verbose=1)
    assert capsys.readouterr() == ("", "")


def test_an_error_in_a_worker_reaches_the_caller(make_series, monkeypatch):
    engine = find_engine("numba")

    def fail(reduction, tile, cancel):
        raise ZeroDivisionError(f"tile {tile.row}")

    monkeypatch.setitem(vars(engine), "dtw_matrix", fail)
    with pytest.raises(ZeroDivisionError, match="tile"):
        run(DTWMatrix(make_series(300, 100), make_series(300, 100)), engine=engine, n_jobs=2)
    assert not threads_left()


def test_an_interrupt_cancels_what_is_running(make_series, monkeypatch):
    engine = find_engine("numba")
    work = DTWMatrix(make_series(300, 100), make_series(300, 100))
    stopped = threading.Event()

    def endless(reduction, tile, cancel):
        while not cancel[0]:
            time.sleep(0.01)
        stopped.set()

    def attempt():
        stopped.clear()
        heard, _ = press_ctrl_c(lambda: run(work, engine=engine, n_jobs=2), 0.3)
        assert stopped.is_set()
        return heard

    monkeypatch.setitem(vars(engine), "dtw_matrix", endless)
    assert quickest(attempt) < 1


def test_ctrl_c_stops_a_long_kernel_within_a_second():
    script = """
        import numpy as np, signal
        from skts.metrics import dtw
        signal.signal(signal.SIGINT, signal.default_int_handler)
        dtw(np.zeros(10), np.zeros(10), engine="numba")
        print("ready", flush=True)
        try:
            dtw(np.zeros(400_000), np.ones(400_000), engine="numba")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """

    def attempt():
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        heard = time.perf_counter() - start
        assert process.wait() == 0
        return heard

    assert quickest(attempt) < 1


def test_two_threads_at_once(fast_engine, make_series):
    queries, candidates = make_series(40, 60), make_series(200, 60)
    expected = run(DTWNeighbors(queries, candidates, 2), engine=fast_engine)
    with ThreadPoolExecutor(4) as pool:
        futures = [
            pool.submit(run, DTWNeighbors(queries, candidates, 2), engine=fast_engine)
            for _ in range(8)
        ]
        for future in futures:
            assert_array_equal(future.result().indices, expected.indices)
            assert_array_equal(future.result().distances, expected.distances)


def test_two_threads_at_once_under_the_workqueue_layer():
    """The layer of Numba that aborts on concurrent access is never entered."""
    script = """
        import numpy as np
        from concurrent.futures import ThreadPoolExecutor
        from skts.metrics import pairwise_dtw
        X = np.random.default_rng(0).normal(size=(150, 80))
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: pairwise_dtw(X, engine="numba"), range(6)))
        assert all(np.array_equal(result, results[0]) for result in results)
        print("done")
    """
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == "done\n", result.stderr


def test_n_jobs(monkeypatch):
    import numba

    engine = find_engine("numba")
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 4)
    assert [engine.workers(n) for n in (None, 1, 3, 9, -1, -2, -9)] == [4, 1, 3, 4, 4, 3, 1]
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert engine.workers(None) == 2
        assert engine.workers(3) == 3
    with pytest.raises(ValueError, match="n_jobs=0"):
        engine.workers(0)


def test_numba_threads_of_the_user_stay_as_they_are(make_series):
    import numba

    before = numba.get_num_threads()
    run(DTWMatrix(make_series(100, 50), make_series(100, 50)), engine="numba", n_jobs=1)
    assert numba.get_num_threads() == before


def test_where_memory_runs_out_tiles_are_halved(make_series, monkeypatch):
    engine = find_engine("numba")
    work = DTWNeighbors(make_series(30, 20), make_series(300, 20), 3)
    expected = run(work, engine=engine)
    compute, tried = engine.dtw_neighbors, []

    def scarce(reduction, tile, cancel):
        tried.append(tile.shape)
        if tile.shape[0] * tile.shape[1] > 2000:
            raise MemoryError
        return compute(reduction, tile, cancel)

    monkeypatch.setitem(vars(engine), "dtw_neighbors", scarce)
    for a, b in zip(run(work, engine=engine), expected, strict=True):
        assert_array_equal(a, b)
    assert max(rows * cols for rows, cols in tried) > 2000


def test_halves_that_hold_nothing_are_not_computed(rng, monkeypatch):
    """Pairs within one line that are old, or below the diagonal."""
    line = ConcatenatedSeries.of([rng.standard_normal(3000)])
    work = Join(line, None, 20, 5, since=2500)
    engine = find_engine("numba")
    expected = run(work, engine=engine)
    compute, tried = engine.join, []

    def scarce(reduction, tile, cancel):
        tried.append(tile)
        if tile.shape[0] * tile.shape[1] > 2**21:
            raise MemoryError
        return compute(reduction, tile, cancel)

    monkeypatch.setitem(vars(engine), "join", scarce)
    monkeypatch.setitem(vars(engine), "tile_work", 2**40)
    for a, b in zip(run(work, engine=engine, n_jobs=1)[:2], expected[:2], strict=True):
        assert_array_equal(a, b)
    assert len(tried) > 3
    assert all(work.wanted(tile) for tile in tried)


def test_memory_that_is_not_there_for_one_cell_is_an_error_with_numbers(make_series, monkeypatch):
    engine = find_engine("numba")

    def none_left(reduction, tile, cancel):
        raise MemoryError

    monkeypatch.setitem(vars(engine), "dtw_matrix", none_left)
    with (
        pytest.raises(MemoryBudgetError, match=r"Memory ran out: .* of the 2 MiB"),
        config_context(memory="2MiB"),
    ):
        run(DTWMatrix(make_series(30, 20), make_series(300, 20)), engine=engine)


def test_places_on_devices_are_handed_out_in_turn(monkeypatch):
    engine = CupyEngine()
    monkeypatch.setitem(vars(engine), "_devices", lambda: (3, 1))
    with ExitStack() as held:
        take = [held.enter_context(engine._one_device(2)) for _ in range(4)]
        assert take == [(3, 0), (1, 0), (3, 1), (1, 1)]
        assert engine._free(2) is None
    with engine._one_device(1) as place:
        assert place == (3, 0)
        with engine._one_device(2) as other:
            assert other == (1, 0)
            assert engine._free(1) is None
    assert engine._free(1) == (3, 0)


def test_work_goes_to_as_many_devices_as_it_is_worth(monkeypatch):
    runtime = SimpleNamespace(getDeviceCount=lambda: 3)
    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(id=1), runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    engine = CupyEngine()

    def work(n):
        line = ConcatenatedSeries(np.broadcast_to(0.0, n + 99), np.zeros(1, int), np.array([n]))
        return Join(line, None, 100, 25)

    sizes = [10_000, 2**19, 2**20, 2**21]
    assert [engine.devices(work(n)) for n in sizes] == [(1,), (1,), (1, 0), (1, 0, 2)]
    with config_context(devices=[2, 0]):
        assert engine.devices(work(10_000)) == (2,)
        assert engine.devices(work(2**22)) == (2, 0)
        assert engine.workers(None) == 2
    series = Series(np.broadcast_to(0.0, (20_000, 1, 200)), np.broadcast_to(200, 20_000))
    assert engine.lanes(DTWNeighbors(series, series, 1)) == 2
    assert engine.lanes(DTWNeighbors(series.take(slice(100)), series, 1)) == 1
    assert engine.lanes(work(2**22)) == 1
    # each process of loky takes one, by its number
    process = multiprocessing.current_process()
    for name, device in (("LokyProcess-1", 1), ("LokyProcess-2", 2), ("LokyProcess-6", 0)):
        monkeypatch.setattr(process, "name", name)
        assert engine.devices(work(2**22)) == (device,)


def test_work_without_lanes_has_a_device_to_itself_and_comes_first(monkeypatch):
    engine, order = CupyEngine(), []
    monkeypatch.setitem(vars(engine), "_devices", lambda: (0,))

    def work(name, lanes):
        with engine._one_device(lanes):
            order.append(name)

    with engine._one_device(2), ThreadPoolExecutor(2) as pool:
        alone = pool.submit(work, "alone", 1)
        while not engine._alone:
            time.sleep(0.001)
        # the second lane is free, but somebody waits for the device
        assert engine._free(2) is None
        assert not alone.done()
        engine._busy[0] = 0
        with engine._freed:
            engine._freed.notify_all()
        alone.result(timeout=60)
    assert order == ["alone"]


def test_an_interrupt_in_the_midst_of_a_wait_is_one(make_series, monkeypatch):
    def wait(*running, **options):
        """As that of Python where Ctrl-C comes between two of its steps."""
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("release unlocked lock")  # noqa: B904

    work = DTWMatrix(make_series(300, 100), make_series(300, 100))
    monkeypatch.setattr(execution, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        run(work, engine="numba", n_jobs=2)
    assert not threads_left()


@pytest.fixture
def two_devices():
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    import cupy

    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one GPU")


def gpu_works(rng):
    def series(n, length):
        values = rng.normal(size=(n, 1, length)).cumsum(axis=2)
        return Series(values, np.full(n, length)).freeze()

    queries, candidates = series(700, 80), series(900, 80)
    line = ConcatenatedSeries.of([rng.normal(size=60_000).cumsum()])
    return {
        "neighbors": DTWNeighbors(queries, candidates, 3),
        "float64": DTWNeighbors(queries, candidates, 3, precision="float64"),
        "matrix": DTWMatrix(candidates, candidates),
        "join": Join(line, None, 100, 25),
        "sides": Join(line, None, 100, 25, n_neighbors=3, sides=True),
    }


@pytest.mark.gpu
@pytest.mark.parametrize("first", [0, 1])
def test_kernels_have_their_shared_memory_on_each_device(two_devices, rng, first, monkeypatch):
    """A transform of a long series takes more than every kernel has."""
    from skts.engines.cupy import loading

    monkeypatch.setattr(loading, "_loaded", {})
    loading._module.cache_clear()
    x, y = rng.normal(size=(2, 2, 3000)).cumsum(axis=-1)
    expected = pairwise_sbd(x, y, engine="numba")
    for device in (first, 1 - first):
        with config_context(devices=[device]):
            assert_allclose(pairwise_sbd(x, y, engine="cupy"), expected, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize("work", gpu_works(np.random.default_rng(0)))
def test_two_devices_find_what_one_finds(two_devices, rng, monkeypatch, work):
    reduction, used = gpu_works(rng)[work], set()
    engine = find_engine("cupy")
    compute = getattr(engine, reduction.method)

    def watched(reduction, tile, cancel):
        import cupy

        used.add(cupy.cuda.Device().id)
        return compute(reduction, tile, cancel)

    with config_context(devices=[1]):
        expected = run(reduction, engine=engine)
    monkeypatch.setitem(vars(engine), reduction.method, watched)
    monkeypatch.setattr(type(engine), "tile_work", 2**24)
    monkeypatch.setattr("skts.engines.cupy.WORTH_A_DEVICE", {})
    monkeypatch.setattr("skts.engines.cupy.WORTH_OTHERWISE", 2**20)
    with config_context(devices=[0, 1]):
        found = run(reduction, engine=engine)
    assert used == {0, 1}
    used.clear()
    everywhere = run(reduction, engine=engine)
    assert len(used) >= 2
    for answer in (found, everywhere):
        assert type(answer) is type(expected)
        for a, b in zip(_arrays(answer), _arrays(expected), strict=True):
            assert_array_equal(a, b)


@pytest.mark.gpu
def test_two_lanes_of_a_device_find_what_one_finds(rng, monkeypatch):
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    for reduction in gpu_works(rng).values():
        expected = run(reduction, engine=engine)
        with monkeypatch.context() as patch:
            patch.setattr(type(engine), "tile_work", 2**24)
            patch.setattr(type(engine), "lanes", lambda self, reduction: 2)
            found = run(reduction, engine=engine)
        for a, b in zip(_arrays(found), _arrays(expected), strict=True):
            assert_array_equal(a, b)


def _arrays(answer):
    if np.isscalar(answer) or isinstance(answer, np.ndarray):
        return [np.asarray(answer)]
    return [array for part in answer if part is not None for array in _arrays(part)]


@pytest.mark.gpu
def test_a_forked_process_says_why_it_has_no_gpu(rng):
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    run(gpu_works(rng)["matrix"], engine=engine)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert "was forked from one that used the GPU" in pool.apply(_missing)
        assert pool.apply(_chosen, (gpu_works(rng)["join"],)) == "numba"


def _missing():
    return find_engine("cupy").available()


def _chosen(reduction):
    return get_engine("auto", reduction).name


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nothing_holds_the_arrays_of_finished_work(make_series, n_jobs):
    gc.collect()
    gc.disable()
    try:
        series = make_series(300, 60)
        watch = weakref.ref(series.values)
        run(DTWMatrix(series, make_series(200, 60)), engine="numba", n_jobs=n_jobs)
        del series
        assert watch() is None
    finally:
        gc.enable()
