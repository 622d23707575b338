"""Workers of joblib and Dask: what is sent to them, their numbers, and the arrays they keep."""

from __future__ import annotations

import multiprocessing
import sys
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal

from skts.engines import DTWMatrix, run
from skts.engines.core import distribute, executor
from skts.engines.core.execution import compute_area
from skts.engines.core.worker import in_dask_worker, worker_number


@pytest.fixture
def dask(monkeypatch):
    """Let this thread compute a task of a worker with some name."""
    monkeypatch.delitem(sys.modules, "dask_cuda", raising=False)

    def work(name):
        worker = SimpleNamespace(name=name)
        monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=lambda: worker))

    return work


@pytest.mark.parametrize("number", [0, 1, 5])
def test_workers_of_loky_and_of_a_local_cluster_count_from_zero(dask, monkeypatch, number):
    dask(number)
    assert in_dask_worker()
    assert worker_number() == number
    process = SimpleNamespace(name=f"LokyProcess-{number + 1}:7")
    monkeypatch.setattr(multiprocessing, "current_process", lambda: process)
    assert worker_number() == number


def test_workers_with_other_names_are_number_zero(dask, monkeypatch):
    dask("tcp://10.0.0.1:40123")
    assert worker_number() == 0
    # each of these sees its own device first
    dask(3)
    monkeypatch.setitem(sys.modules, "dask_cuda", SimpleNamespace())
    assert worker_number() == 0


def test_who_is_no_worker_has_no_number(monkeypatch):
    def get_worker():
        raise ValueError("No worker found")

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=get_worker))
    assert not in_dask_worker()
    assert worker_number() is None
    monkeypatch.delitem(sys.modules, "distributed")
    assert not in_dask_worker()
    assert worker_number() is None


def test_arrays_that_were_used_last_stay_mapped(tmp_path, monkeypatch):
    mapped = OrderedDict()
    monkeypatch.setattr(distribute, "MAPPED", 3)
    monkeypatch.setattr(distribute, "_mapped", mapped)
    values = np.arange(50.0)
    values.tofile(tmp_path / "values")
    places = [
        distribute._Place(str(tmp_path / "values"), 80 * i, values.dtype, (10,)) for i in range(5)
    ]
    first, second, third = (place.load() for place in places[:3])
    assert places[0].load() is first
    fourth = places[3].load()
    assert_array_equal(fourth, values[30:40])
    # the second was used longest ago
    assert len(mapped) == 3
    for place, array in ((0, first), (2, third), (3, fourth)):
        assert places[place].load() is array
    again = places[1].load()
    assert again is not second
    assert_array_equal(again, second)
    assert len(mapped) == 3


@pytest.fixture
def sent(monkeypatch):
    """Shares that were sent to workers; they are computed here."""
    shares = []

    def share_out(backend, reduction, given, engine, n_jobs):
        shares.extend(given)
        for share in given:
            yield list(compute_area(reduction, share, engine=engine, n_jobs=1))

    monkeypatch.setattr(executor, "share_out", share_out)
    return shares


def test_small_work_stays_here_though_there_are_workers(sent, make_series):
    work = DTWMatrix(make_series(3, 8), make_series(4, 8))
    assert work.total_work > 2**6
    with parallel_config("loky", n_jobs=2):
        found = run(work, engine="numba")
    assert not sent
    assert_array_equal(found, run(work, engine="numba"))


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_whoever_asks_for_the_plan_is_told_what_is_sent(
    sent, make_series, monkeypatch, caplog, verbose
):
    monkeypatch.setattr(executor, "WORTH_SENDING", 0)
    work = DTWMatrix(make_series(3, 8), make_series(4, 8))
    with parallel_config("loky", n_jobs=2):
        found = run(work, engine="numba", verbose=verbose)
    assert sent
    told = [record.getMessage() for record in caplog.records if record.name == "skts"]
    assert len(told) == (verbose == 2)
    assert not told or "DTWMatrix: 3 x 4 on numba, 2 workers of Loky" in told[0]
    assert_array_equal(found, run(work, engine="numba"))
