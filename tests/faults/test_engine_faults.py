"""After a failure in the midst of a run: an error or the right answer, and an engine that works."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from joblib import parallel_config
from joblib.externals.loky import reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from skts import config_context
from skts.engines import find_engine, run
from tests.examples_of_work import examples, leaves, reductions

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
def test_a_device_that_is_lost_in_the_midst_of_a_run(kind, n_jobs, fast_engine, monkeypatch):
    engine = find_engine(fast_engine)
    compute = engine.compute
    for one in TABLE[kind]:
        answer = leaves(one.answer(run(one.work, engine=engine)))
        with monkeypatch.context() as patch:
            for at in (1, 2, 3):
                failing = Failing(compute, at)
                patch.setitem(vars(engine), "compute", failing)
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
