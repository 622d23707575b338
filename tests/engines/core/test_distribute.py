"""Shares of the work in other processes: the same answers, whatever is lost on the way."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import CancelledError
from dataclasses import replace

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV

from skts import DTWNearestNeighbor, config_context
from skts.engines import (
    ConcatenatedSeries,
    DTWMatrix,
    DTWNeighbors,
    Join,
    Series,
    Tile,
    find_engine,
    run,
)
from skts.engines.core.distribute import TRIES, _file_of, _on_dask, _pack, _place, _unpack
from skts.engines.core.execution import compute_area
from skts.engines.core.worker import find_backend, in_dask_worker, worker_number


@pytest.fixture(scope="module")
def works():
    rng = np.random.default_rng(0)

    def series(n):
        values = rng.normal(size=(n, 1, 60)).cumsum(axis=2)
        return Series(values, np.full(n, 60)).freeze()

    queries, candidates = series(40), series(300)
    line = ConcatenatedSeries.of([rng.normal(size=3000).cumsum()])
    return {
        "neighbors": DTWNeighbors(queries, candidates, 3),
        "matrix": DTWMatrix(candidates, candidates),
        "join": Join(line, None, 40, 10, n_neighbors=2),
    }


@pytest.fixture
def eager(monkeypatch):
    """Send whatever there is."""
    monkeypatch.setattr("skts.engines.core.executor.WORTH_SENDING", 0)


def leaves(answer):
    return [answer] if isinstance(answer, np.ndarray) else [a for a in answer if a is not None]


def same(found, expected):
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        assert_array_equal(a, b)


@pytest.mark.long
@pytest.mark.parametrize("work", ["neighbors", "matrix", "join"])
def test_processes_of_this_machine_find_the_same(works, eager, work):
    expected = run(works[work], engine="numba")
    seen = []
    with (
        parallel_config("loky", n_jobs=2),
        config_context(progress=lambda done, total: seen.append((done, total))),
    ):
        same(run(works[work], engine="numba"), expected)
        same(run(works[work], engine="numba"), expected)
    # several shares for each worker
    assert max(total for _, total in seen) >= 6


@pytest.mark.parametrize("work", ["neighbors", "matrix", "join"])
def test_a_cluster_finds_the_same(works, eager, dask_cluster, work):
    expected = run(works[work], engine="numba")
    with parallel_config("dask"):
        same(run(works[work]), expected)
        same(run(works[work]), expected)


def test_arrays_reach_a_cluster_once(works, eager, dask_cluster):
    def held():
        """Arrays on the cluster; on how many workers each lies is the cluster's to change."""
        keys = dask_cluster.run(lambda dask_worker: list(map(str, dask_worker.data))).values()
        return {key for some in keys for key in some if "_compute_share" not in key}

    work = replace(works["matrix"])
    with parallel_config("dask"):
        run(work)
        before = held()
        run(work)
    assert before and before == held()


@pytest.mark.parametrize("how_many", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killed_workers_change_nothing(works, eager, dask_cluster, how_many):
    expected = run(works["matrix"], engine="numba")
    killed = []

    def alive():
        """Processes of workers; those that were killed may be listed for a while."""
        return set(dask_cluster.run(os.getpid, on_error="ignore").values()) - set(killed)

    def kill(done, total):
        if not killed:
            killed.extend(list(alive())[:how_many])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    with parallel_config("dask"), config_context(progress=kill):
        same(run(works["matrix"]), expected)
    assert len(killed) == how_many
    patience = time.monotonic() + 60
    while len(alive()) < 2 and time.monotonic() < patience:
        time.sleep(0.1)
    assert len(alive()) >= 2, "the next test has two workers, and none came for those that died"


class Forgetful:
    """A cluster that loses an array, or the first of its answers, some times; then it works."""

    id = "forgetful"

    def __init__(self, arrays, answers):
        self.arrays, self.answers, self.status = arrays, answers, "finished"

    def scatter(self, array, **options):
        """Hold an array."""
        if self.arrays > 0:
            self.arrays -= 1
            raise CancelledError
        return self

    def submit(self, task, inputs, share, **options):
        """Take a share."""
        return Answer(self, share)

    def cancel(self, futures):
        """Forget shares."""


class Answer:
    """That of a share."""

    def __init__(self, client, share):
        self.client, self.share = client, share

    def result(self):
        """Return it, or lose it."""
        if self.client.answers > 0:
            self.client.answers -= 1
            raise CancelledError
        return self.share


def test_what_a_cluster_loses_is_sent_again_some_times(monkeypatch):
    monkeypatch.setattr(pytest.importorskip("distributed"), "as_completed", list)
    shares = [Tile(i, i + 1, 0, 1) for i in range(3)]

    def found(**losses):
        return sorted(_on_dask(Forgetful(**losses), None, [np.zeros(1)], shares))

    for lost in range(TRIES):
        assert found(arrays=lost, answers=0) == found(arrays=0, answers=lost) == shares
    with pytest.raises(CancelledError):
        found(arrays=TRIES, answers=0)
    with pytest.raises(RuntimeError, match=f"its workers {TRIES} times; 1 of 3 shares"):
        found(arrays=0, answers=3 * (TRIES - 1) + 1)


def test_an_error_of_a_worker_reaches_the_caller(works, eager, dask_cluster):
    for backend in ("loky", "dask"):
        with (
            parallel_config(backend, n_jobs=2),
            config_context(memory=1000),
            pytest.raises(MemoryError, match="budget is 1000 bytes"),
        ):
            run(works["matrix"], engine="numba")


def test_where_work_stays():
    assert find_backend(None) is None
    with parallel_config(n_jobs=2):
        assert find_backend(None) is None
    with parallel_config("threading", n_jobs=2):
        assert find_backend(None) is None
    with parallel_config("loky", n_jobs=1):
        assert find_backend(None) is None
    with parallel_config("loky", n_jobs=3):
        assert find_backend(None)[1] == 3
        assert find_backend(2)[1] == 2
        assert Parallel(n_jobs=2)(delayed(find_backend)(None) for _ in range(2)) == [None, None]


def test_a_task_of_dask_is_one_thread(dask_cluster):
    assert not in_dask_worker()
    assert dask_cluster.submit(in_dask_worker, pure=False).result()
    with parallel_config("dask"):
        assert Parallel()([delayed(_inside)()]) == [(True, True)]


def test_workers_have_numbers(dask_cluster):
    assert worker_number() is None
    addresses = dask_cluster.scheduler_info()["workers"]
    found = [dask_cluster.submit(worker_number, pure=False, workers=[one]) for one in addresses]
    assert len({future.result() for future in found}) == 2
    with parallel_config("loky", n_jobs=2):
        assert set(Parallel()(delayed(worker_number)() for _ in range(8))) <= set(range(64))


@pytest.mark.gpu
@pytest.mark.slow
def test_a_cluster_with_gpus_finds_the_same(works, eager, dask_cluster):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    addresses = dask_cluster.scheduler_info()["workers"]
    found = [dask_cluster.submit(_device, pure=False, workers=[one]) for one in addresses]
    assert len({future.result() for future in found}) == min(2, count)
    for work in works.values():
        expected = run(work, engine="numba")
        with parallel_config("dask"):
            same(run(work, engine="cupy"), expected)


def _device():
    """The device that work of any size has in a worker."""
    (device,) = find_engine("cupy").devices(DTWMatrix(*2 * [_many()]))
    return device


def _many():
    """Series whose matrix would be worth several devices."""
    return Series(np.broadcast_to(0.0, (2**20, 1, 60)), np.broadcast_to(60, 2**20))


def _inside():
    return in_dask_worker(), find_backend(None) is None


def test_results_of_an_area_merge_to_the_answer(works):
    for work in works.values():
        rows, cols = work.shape
        total = work.start()
        middle = rows // (2 * work.cell[0]) * work.cell[0]
        for first, stop in ((middle, rows), (0, middle)):
            area = Tile(first, stop, 0, cols)
            for tile, result in compute_area(work, area, engine="numba", n_jobs=2):
                work.merge(total, tile, result)
        same(work.finish(total, run), run(work, engine="numba"))


def test_large_arrays_travel_apart(works):
    work = works["matrix"]
    blob, arrays = _pack(work)
    assert len(arrays) == 1 and arrays[0] is work.sides[0].values
    assert len(blob) < 2**15
    there = _unpack(blob, [_place(array).load() for array in arrays])
    assert there.sides[0].values is there.sides[1].values
    assert not there.sides[0].values.flags.writeable
    assert_array_equal(there.sides[0].values, arrays[0])


def test_parts_of_files_stay_in_their_files(tmp_path):
    path = tmp_path / "values.bin"
    values = np.arange(40_000.0).reshape(4, 10_000)
    values.tofile(path)
    mapped = np.memmap(path, np.float64, "r", 80_000, (3, 10_000))
    part = mapped[1:]
    place = _place(part)
    assert place.path == str(path)
    assert_array_equal(place.load(), values[2:])
    assert place.load() is place.load()
    assert _file_of(mapped[:, ::2]) is None
    assert _file_of(np.memmap(path, np.float64, "c")) is None
    own = values.copy()
    path = _place(own).path
    assert_array_equal(_place(own).load(), values)
    del own
    assert not os.path.exists(path)


@pytest.mark.parametrize("backend", ["loky", "dask"])
def test_folds_on_processes_score_the_same(eager, dask_cluster, backend):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(24, 20)).cumsum(axis=1), np.arange(24) % 2
    search = GridSearchCV(DTWNearestNeighbor(), {"window": [None, 0.2]}, cv=3)
    expected = search.fit(X, y).cv_results_["mean_test_score"]
    with parallel_config(backend, n_jobs=2):
        assert_array_equal(search.fit(X, y).cv_results_["mean_test_score"], expected)
