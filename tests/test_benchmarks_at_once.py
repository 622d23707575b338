"""Benchmarks that run at the same time: which cores each has, and what becomes of their parts."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]

if not (ROOT / "benchmarks").exists():
    pytest.skip("the benchmarks are not here", allow_module_level=True)


@pytest.fixture
def module(monkeypatch):
    """Return what imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module


def test_each_job_has_cores_of_its_own(module):
    cores, lock, taken, seen = module("benchmarks._cores"), threading.Lock(), set(), []

    def run(mine):
        with lock:
            assert not taken & set(mine)
            taken.update(mine)
        time.sleep(0.01)
        with lock:
            taken.difference_update(mine)
            seen.append(tuple(mine))
        return len(mine)

    jobs = [cores.Job(f"{i}", run, threads) for i, threads in enumerate([1, 3, 1, 2, 1, 3, 1])]
    found = {job.name: result for job, result in cores.at_once(jobs, [4, 5, 9])}
    assert found == {job.name: job.threads for job in jobs}
    assert set().union(*seen) == {4, 5, 9}
    with pytest.raises(ValueError, match="more than 2 cores are needed for 1, 5"):
        next(cores.at_once(jobs, [4, 5]))


def test_a_job_that_fails_is_not_swallowed(module):
    cores = module("benchmarks._cores")
    with pytest.raises(ZeroDivisionError):
        list(cores.at_once([cores.Job("a", lambda mine: 1 / 0)], [0]))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_commands_keep_to_cores_and_to_the_deadline(module, tmp_path):
    peers, cores = module("benchmarks.peers.__main__"), module("benchmarks._cores")
    (core, *_), file = cores.available(), tmp_path / "cores"
    code = f"import os; open({str(file)!r}, 'w').write(str(os.sched_getaffinity(0)))"
    assert peers.finished([sys.executable, "-c", code], [core], cores.Deadline(1))
    assert file.read_text() == f"{{{core}}}"
    assert not peers.finished([sys.executable, "-c", "1 / 0"], [core], cores.Deadline(1))
    start = time.monotonic()
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert not peers.finished(slow, [core], cores.Deadline(0.2 / 60))
    assert time.monotonic() - start < 10


def test_parts_of_a_record_become_one(module):
    peers = module("benchmarks.peers.__main__")

    def rows(work, *libraries):
        return [{"work": work, "threads": 1, "library": name} for name in libraries]

    first, again, other = rows("a", "skts", "aeon"), rows("a", "skts", "pyts"), rows("b", "skts")
    parts = [
        {"name": "a", "rows": first, "versions": {"skts": 1}, "commit": "abc", "data": "OSULeaf"},
        {"name": "a", "rows": again, "versions": {"pyts": 2}, "commit": "abc", "data": "OSULeaf"},
        {"name": "a", "rows": other, "versions": {}, "commit": "abc", "data": "OSULeaf"},
    ]
    found = peers.merged(parts, [0])
    # skts is in each group of libraries of a work
    assert found["rows"] == [*first, again[1], *other]
    assert found["versions"] == {"skts": 1, "pyts": 2}
    assert (found["name"], found["commit"], found["data"]) == ("a", "abc", "OSULeaf")
    assert found["device"] and found["date"]


def test_every_work_is_a_part(module, tmp_path):
    peers, cores = module("benchmarks.peers.__main__"), module("benchmarks._cores")
    options = argparse.Namespace(only=["search", "elastic"], works=None, threads=None)
    found = list(peers.parts(options, [], tmp_path, cores.Deadline(1)))
    works = {family: module(f"benchmarks.peers.{family}").WORKS for family in ("search", "elastic")}
    elastic = module("benchmarks.peers.elastic")
    count = sum(len(work.groups or [()]) for work in works["elastic"].values())
    assert len(found) == len(works["search"]) + 2 * count > len(works["search"])
    assert len({output for _, output, *_ in found}) == len(found)
    assert {job.threads for family, *_, job in found if family == "search"} == {2}
    options = argparse.Namespace(only=["elastic"], works=["osuleaf"], threads=[1])
    names = [job.name for *_, job in peers.parts(options, [], tmp_path, cores.Deadline(1))]
    assert names == [f"elastic, osuleaf, threads 1, {', '.join(each)}" for each in elastic.GROUPS]


@pytest.fixture
def table(module, tmp_path):
    """Return what makes an empty table of shapelet models, and its module."""
    models = module("benchmarks.shapelets.shapelet_peers")
    options = argparse.Namespace(
        output=tmp_path / "table.json", afresh=True, cores=[0], commit="abc1234"
    )
    table = models.Table(options)
    for name in "ab":
        table.row(name, (np.zeros((4, 9)), np.arange(4) % 2, np.zeros((3, 9)), np.zeros(3)))
    return models, table


def answer(accuracy, labels):
    """What a worker says."""
    versions = {"skts": "1", "numpy": "2", "requests": "3"}
    return {"accuracy": accuracy, "fit": 1.0, "predict": 0.5, "labels": labels} | {
        "versions": versions
    }


def test_a_tree_that_the_gpu_alone_has_grown_counts(table):
    models, found = table
    found.add("a", "skts tree", answer(0.5, [0, 1]), threads=4)
    found.add("a", "skts tree", answer(0.5, [0, 1]), where=models.ON_GPU)
    found.add("b", "skts tree", "takes a CPU too long")
    found.add("b", "skts tree", answer(1.0, [0, 0]), where=models.ON_GPU)
    found.gpu = "a GPU"
    found.write()
    record = json.loads(found.options.output.read_text())
    first, second = record["rows"]
    assert first["skts tree on a GPU, labels"] == models.SAME and first["skts tree, threads"] == 4
    assert second["left out"] == {"skts tree": "takes a CPU too long"}
    assert {"skts/engines/cupy/shapelets", "skts/engines/numba/shapelets"} < set(record["sources"])
    (mean,) = models.means(found.rows, ["skts tree", "aeon RDST", "aeon STC"])
    assert mean["skts tree"] == 0.75 and mean["skts tree on a GPU, fit s"] == 2.0
    assert "skts tree, fit s" not in mean


def test_labels_that_differ_are_said(table):
    models, found = table
    found.add("a", "skts forest", answer(0.5, [0, 1]))
    found.add("a", "skts forest", answer(0.5, [1, 0]), where=models.ON_GPU)
    assert found._completed(found.rows[0])["skts forest on a GPU, labels"] == "DIFFER"


def test_a_tree_gets_threads_by_its_work(module):
    models = module("benchmarks.shapelets.shapelet_peers")
    assert models.threads_of("aeon STC", np.zeros((1000, 1000))) == 1
    assert models.threads_of("skts tree", np.zeros((30, 100))) == 1
    assert models.threads_of("skts tree", np.zeros((200, 427))) == 4
    assert models.threads_of("skts tree", np.zeros((155, 1092))) is None


def test_an_environment_that_two_works_want_is_made_once(module, monkeypatch, tmp_path):
    environments, steps = module("benchmarks.peers._environments"), []

    def run(peer, command, variables=None):
        steps.append(command[2])
        time.sleep(0.05)
        (tmp_path / peer).mkdir(exist_ok=True)

    monkeypatch.setattr(environments, "_run", run)
    make = partial(environments.interpreter, "peer", folder=tmp_path)
    want = [threading.Thread(target=make) for _ in range(2)]
    for one in want:
        one.start()
    for one in want:
        one.join()
    assert steps == ["venv", "pip"]
    assert (tmp_path / "peer" / "installed").exists()
