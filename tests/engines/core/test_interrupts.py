"""Ctrl-C while something works that cannot look up: an answer at once, and no harm done."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import cache

import numpy as np
import pytest
from numba import njit

from skts.engines import DTWMatrix, Series, find_engine, run
from skts.engines.core.interrupts import Cancelled, aside, heeded, heeding
from tests.waiting import press_ctrl_c, quickest, threads_left


def test_what_is_done_aside_returns_and_raises():
    assert aside(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 // 0)
    outside = []
    thread = threading.Thread(target=lambda: outside.append(aside(threading.current_thread)))
    thread.start()
    thread.join()
    assert outside == [thread]


def test_ctrl_c_is_heard_and_the_work_goes_on():
    def attempt():
        go_on, finished = threading.Event(), threading.Event()
        heard, _ = press_ctrl_c(lambda: aside(lambda: (go_on.wait(60), finished.set())), 0.2)
        assert heard is not None and not finished.is_set()
        go_on.set()
        assert finished.wait(60)
        return heard

    assert quickest(attempt) < 1


def test_a_worker_hears_that_its_run_has_been_stopped():
    cancel, raised, waiting = np.zeros(1, np.uint8), [], threading.Event()

    def work():
        with heeding(cancel):
            try:
                aside(waiting.wait)
            except Cancelled as error:
                raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    cancel[0] = 1
    thread.join(60)
    waiting.set()
    assert len(raised) == 1


def test_work_that_is_given_no_flag_stops_with_its_run():
    cancel = np.zeros(1, np.uint8)
    with heeded() as flag:
        assert not flag[0]
    with heeding(cancel):
        with heeded() as flag:
            assert flag is cancel
        with pytest.raises(Cancelled), heeded():
            cancel[0] = 1
    with heeded() as flag:
        assert not flag[0]


@pytest.mark.gpu
@pytest.mark.parametrize("inline", [True, False])
def test_ctrl_c_is_heard_while_a_cuda_kernel_is_compiled(monkeypatch, inline):
    """Inline or in a worker; a compiler in which no signal is seen, as in NVRTC."""
    from skts.engines.cupy import loading

    values = np.random.default_rng(0).normal(size=(20, 1, 40))
    series = Series(values, np.full(20, 40))
    engine = find_engine("cupy")
    expected = run(DTWMatrix(series, series), engine=engine)
    program, compiled = loading._module.__wrapped__, []

    def compiling(*asked):
        hashlib.pbkdf2_hmac("sha256", b"", b"", 8_000_000)
        compiled.append(asked)
        return program(*asked)

    monkeypatch.setattr(loading, "_module", cache(compiling))
    if not inline:
        monkeypatch.setattr("skts.engines.core.execution.INLINE_WORK", 0)

    def attempt():
        monkeypatch.setattr(loading, "_loaded", {})
        loading._module.cache_clear()
        compiled.clear()
        heard, _ = press_ctrl_c(lambda: run(DTWMatrix(series, series), engine=engine), 0.2)
        assert heard is not None
        # the next call waits for the compiler, and starts no other for the same program
        np.testing.assert_array_equal(run(DTWMatrix(series, series), engine=engine), expected)
        assert len(compiled) == len(set(compiled))
        return heard

    assert quickest(attempt) < 1


@njit(nogil=True)
def _sum_for_long(n):
    total = np.zeros((1, 1))
    for i in range(n):
        total[0, 0] += np.sqrt(i)
    return total, total


def test_ctrl_c_in_a_compiled_function_is_an_interrupt(monkeypatch):
    """Numba sees it on the way back, where it builds the arrays, and raises a SystemError."""
    _sum_for_long(1)
    engine = find_engine("numba")
    monkeypatch.setitem(vars(engine), "dtw_matrix", lambda *_: _sum_for_long(3 * 10**8))
    series = Series(np.zeros((3, 1, 20)), np.full(3, 20))
    heard, _ = press_ctrl_c(lambda: run(DTWMatrix(series, series), engine=engine), 0.1)
    assert heard is not None


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n", [3, 300])
def test_ctrl_c_stops_a_run_that_compiles(monkeypatch, n_jobs, n):
    """Inline or in workers; a compiler that goes on until the interrupt was heard."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 1, 100))
    series = Series(values, np.full(n, 100))
    engine = find_engine("numba")
    expected = run(DTWMatrix(series, series), engine=engine)
    compute, compiled = engine.dtw_matrix, threading.Event()

    def compiling(reduction, tile, cancel):
        aside(lambda: compiled.wait(60))
        return compute(reduction, tile, cancel)

    def work():
        return run(DTWMatrix(series, series), engine=engine, n_jobs=n_jobs)

    def attempt():
        compiled.clear()
        heard, _ = press_ctrl_c(work, 0.3)
        compiled.set()
        assert heard is not None
        np.testing.assert_array_equal(work(), expected)
        return heard

    monkeypatch.setitem(vars(engine), "dtw_matrix", compiling)
    assert quickest(attempt) < 1
    assert not threads_left()


WORK = {
    "dtw": "skts.metrics.pairwise_dtw(X, engine='numba')",
    "profile": "skts.motifs.matrix_profile(X.ravel(), window=12, engine='numba').distances",
    "neighbors": "model.fit(X, y).predict(X + 1)",
    "shape": "skts.metrics.pairwise_sbd(X, engine='numba')",
}


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("seconds", [0.3, 1.5, 4.0])
def test_ctrl_c_while_kernels_compile(tmp_path, work, seconds):
    script = f"""
        import numpy as np, skts, skts.metrics, skts.motifs
        from skts.engines import find_engine
        from skts.engines.core import compiling
        compiling.replaced = False
        find_engine("numba")
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(20, 40)).cumsum(axis=1), np.arange(20) % 2
        model = skts.DTWNearestNeighbor(engine="numba")
        print("ready", flush=True)
        try:
            {WORK[work]}
            print("finished", flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert not hasattr(model, "classes_") or len(model.classes_) == 2
        found = np.asarray({WORK[work]}, dtype=np.float64)
        print(found.tobytes().hex(), flush=True)
    """
    caches = map(tmp_path.joinpath, "123")

    def attempt():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(next(caches))}
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        start = time.perf_counter()
        process.send_signal(signal.SIGINT)
        said = process.stdout.readline()
        heard = time.perf_counter() - start
        if said == "finished\n":
            process.kill()
            pytest.skip("the kernels were compiled sooner than that")
        assert said == "interrupted\n"
        found = process.stdout.readline()
        assert process.wait() == 0
        again = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert again.stdout.splitlines() == ["ready", "finished", found.strip()]
        return heard

    assert quickest(attempt) < 1


@pytest.mark.slow
def test_a_program_that_ctrl_c_ends_while_it_compiles_ends(tmp_path):
    """Nobody catches the interrupt, and the compiler is in the midst of its work."""
    script = """
        import numpy as np, skts, skts.metrics
        from skts.engines import find_engine
        from skts.engines.core import compiling
        compiling.replaced = False
        find_engine("numba")
        print("ready", flush=True)
        skts.metrics.dtw(np.arange(9.0), np.arange(8.0), engine="numba")
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=100)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode in (1, 130, -signal.SIGINT), errors
