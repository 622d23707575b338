"""Workers of joblib and Dask: their numbers, and the arrays that they keep mapped."""

from __future__ import annotations

import multiprocessing
import sys
from collections import OrderedDict
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines.core import distribute
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
