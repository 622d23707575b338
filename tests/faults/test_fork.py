"""Processes that are forked: without CUDA, and without the threads that held a lock."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import skts
from skts.engines import find_engine
from skts.engines.core import registry
from skts.engines.cupy import CupyEngine, _process
from skts.exceptions import EngineNotAvailableError
from skts.metrics import dtw, pairwise_dtw

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
X = np.random.default_rng(3).normal(size=(9, 20)).cumsum(axis=1)
LOST = "forked from one that used the GPU.*loky.*spawn"


def in_a_fork(work):
    """The result or error of some work in a process forked from this one."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def do():
        try:
            there.send((work(), None))
        except BaseException as error:
            there.send((None, error))

    process = context.Process(target=do)
    process.start()
    assert here.poll(60), "the forked process hangs"
    answer, error = here.recv()
    process.join(10)
    if error is not None:
        raise error
    return answer


@pytest.mark.gpu
def test_a_fork_has_no_gpu_and_says_so(monkeypatch):
    import cupy

    # "auto" would take the GPU, if there were one
    monkeypatch.setattr(CupyEngine, "seconds", lambda engine, reduction: 0.0)
    model = skts.DTWNearestNeighbor(engine="cupy").fit(X, np.arange(9))
    expected, labels, there = pairwise_dtw(X, engine="cupy"), model.predict(X), cupy.asarray(X)
    rows = list(there)
    for work in (
        lambda: pairwise_dtw(X, engine="cupy"),
        lambda: model.predict(X),
        lambda: pairwise_dtw(there),
        lambda: pairwise_dtw(rows),
    ):
        with pytest.raises(EngineNotAvailableError, match=LOST) as caught:
            in_a_fork(work)
        assert isinstance(caught.value, RuntimeError)
    np.testing.assert_array_equal(in_a_fork(lambda: pairwise_dtw(X, engine="auto")), expected)
    model.set_params(engine="auto")
    np.testing.assert_array_equal(in_a_fork(lambda: model.predict(X)), labels)
    # and here nothing has changed
    assert find_engine("cupy").available() is None
    np.testing.assert_array_equal(pairwise_dtw(X, engine="cupy"), expected)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "use", ["skts.engines.find_engine('cupy').available()", "cupy.zeros(3) + 1"]
)
def test_a_fork_knows_of_it_whoever_used_the_gpu(use):
    script = f"""
        import os, sys
        import cupy
        import numpy as np
        import skts, skts.engines, skts.metrics
        {use}
        if os.fork() == 0:
            print(skts.engines.find_engine("cupy").available(), flush=True)
            skts.engines.find_engine("cupy").crossover = 0
            found = skts.metrics.pairwise_dtw(np.eye(9), engine="auto")
            print(np.array_equal(found, skts.metrics.pairwise_dtw(np.eye(9), engine="numba")))
            sys.stdout.flush()
            os._exit(0)
        assert os.wait()[1] == 0
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    sentence, same = done.stdout.splitlines()
    assert "this process was forked from one that used the GPU" in sentence
    assert same == "True"


def test_what_a_fork_leaves_is_said_before_cuda_is_asked(monkeypatch):
    monkeypatch.setattr(_process, "_user", os.getpid() + 1)
    assert "forked from one that used the GPU" in CupyEngine().available()


def test_locks_that_others_held_are_open_in_a_fork(monkeypatch):
    """Locks of engines; a thread that holds them does not come along."""
    expected = dtw(X[0], X[1], engine="numba")
    held, done = threading.Event(), threading.Event()
    store = find_engine("numba").prepared

    def hold():
        gate = store._gates.setdefault((0, "gate"), threading.RLock())
        with registry._lock, store._lock, gate:
            held.set()
            done.wait()
            store._gates.clear()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_compute, args=(expected,))
        process.start()
        process.join(60)
        if process.is_alive():
            process.kill()
        assert process.exitcode == 0
    finally:
        done.set()
        thread.join()


def _compute(expected):
    assert dtw(X[0], X[1], engine="numba") == expected
    assert not find_engine("numba").prepared._gates


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="cached properties have no lock")
def test_a_fork_does_not_wait_for_a_thread_that_is_gone():
    """Another thread was computing a cached property of some series when the process was forked."""
    locks = [one.lock for one in registry._cached_properties()]
    assert len(locks) > 20
    held, done = threading.Event(), threading.Event()

    def hold():
        for lock in locks:
            lock.acquire()
        held.set()
        done.wait()
        for lock in locks:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        found = in_a_fork(lambda: pairwise_dtw(X, engine="numba"))
    finally:
        done.set()
        thread.join()
    np.testing.assert_array_equal(found, pairwise_dtw(X, engine="numba"))
