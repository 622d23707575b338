"""Whatever fails in the midst of a run: an error or the right answer, and an engine that works."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

import skts
from skts import config_context
from skts.engines import find_engine, run
from tests.examples_of_work import examples, leaves, reductions

FOLDER = str(Path(skts.__file__).parent)
#: Functions of NumPy that allocate.
ALLOCATORS = ["empty", "zeros", "ones", "full", "arange", "concatenate", "where", "array", "stack"]
TABLE = examples()


@pytest.fixture(scope="module")
def expected():
    known = {}

    def find(kind):
        if kind not in known:
            known[kind] = [
                leaves(one.answer(run(one.work, engine="numba", n_jobs=1))) for one in TABLE[kind]
            ]
        return known[kind]

    return find


class Scarce:
    """NumPy in which one allocation that this package asks for fails; counts them."""

    def __init__(self, monkeypatch, at=-1):
        self.at, self.count, self.lock = at, 0, threading.Lock()
        for name in ALLOCATORS:
            monkeypatch.setattr(np, name, self.wrap(getattr(np, name)))

    def wrap(self, allocate):
        def allocated(*args, **kwargs):
            if sys._getframe(1).f_code.co_filename.startswith(FOLDER):
                with self.lock:
                    self.count += 1
                    if self.count == self.at:
                        raise MemoryError("no room")
            return allocate(*args, **kwargs)

        return allocated


@pytest.mark.parametrize("kind", reductions())
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_memory_that_is_refused_once(kind, n_jobs, expected, monkeypatch):
    """At one allocation after the other: tiles are halved, or the error is one of memory."""
    for one, answer in zip(TABLE[kind], expected(kind), strict=True):
        with monkeypatch.context() as patch:
            counted = Scarce(patch)
            run(one.work, engine="numba", n_jobs=n_jobs)
        stops = np.unique(np.linspace(1, counted.count, 8).astype(int)).tolist()
        for at in stops:
            with monkeypatch.context() as patch:
                Scarce(patch, at)
                try:
                    found = run(one.work, engine="numba", n_jobs=n_jobs)
                except MemoryError:
                    pass
                else:
                    assert leaves(one.answer(found)) == answer
        assert leaves(one.answer(run(one.work, engine="numba", n_jobs=n_jobs))) == answer
    assert not find_engine("numba").prepared._gates


class Failing:
    """An engine's `compute` that fails once."""

    def __init__(self, compute, at):
        self.compute, self.at, self.count, self.lock = compute, at, 0, threading.Lock()

    def __call__(self, reduction, tile, cancel):
        with self.lock:
            self.count += 1
            lost = self.count == self.at
        if lost:
            raise RuntimeError("the device is gone")
        return self.compute(reduction, tile, cancel)


@pytest.mark.parametrize("kind", reductions())
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_device_that_is_lost_in_the_midst_of_a_run(kind, n_jobs, expected, monkeypatch):
    engine = find_engine("numba")
    compute = engine.compute
    for one, answer in zip(TABLE[kind], expected(kind), strict=True):
        with monkeypatch.context() as patch:
            for at in (1, 2, 3):
                failing = Failing(compute, at)
                patch.setattr(engine, "compute", failing)
                try:
                    found = run(one.work, engine=engine, n_jobs=n_jobs)
                except RuntimeError as error:
                    assert str(error) == "the device is gone"
                else:
                    assert failing.count < at
                    assert leaves(one.answer(found)) == answer
        assert leaves(one.answer(run(one.work, engine=engine, n_jobs=n_jobs))) == answer


@pytest.mark.slow
def test_a_process_that_dies_is_an_error_and_the_next_call_has_others(expected, monkeypatch):
    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)
    kind = next(kind for kind in reductions() if kind.__name__ == "DTWMatrix")
    work, answer = TABLE[kind][0].work, expected(kind)[0]

    def kill(done, total):
        for process in list(reusable_executor._executor._processes):
            os.kill(process, signal.SIGKILL)

    with parallel_config("loky", n_jobs=2):
        run(work, engine="numba")
        try:
            with config_context(progress=kill):
                found = run(work, engine="numba")
        except TerminatedWorkerError:
            pass
        else:
            assert leaves(found) == answer
        assert leaves(run(work, engine="numba")) == answer
