"""GridSearchCV on GPUs: candidates and folds one after the other, in threads, loky and Dask.

    python -m benchmarks.grid_search
    python -m benchmarks.grid_search --devices 1

Scores are compared with those of one process before times are. With each way to run stands how
many processes hold a context on a GPU, and how much of its memory they hold. The record is
`benchmarks/results/grid-search-gpu.json`; a second run for another number of GPUs is added to it.
"""

import argparse
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV

from benchmarks import _records
from skts import DTWNearestNeighbor

WINDOWS = [None, 0.1, 0.2]
FOLDS = 3


def search(n_jobs):
    """A search over windows."""
    model = DTWNearestNeighbor(engine="cupy")
    return GridSearchCV(model, {"window": WINDOWS}, cv=FOLDS, n_jobs=n_jobs, refit=False)


def held():
    """Processes with a context on a GPU that is visible here, and MiB in use on each."""
    if shutil.which("nvidia-smi") is None:
        return None, None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    only = [f"--id={visible}"] if visible else []

    def ask(*what):
        command = ["nvidia-smi", *only, *what, "--format=csv,noheader,nounits"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()

    return len(ask("--query-compute-apps=gpu_uuid")), list(map(int, ask("--query-gpu=memory.used")))


def ways(workers):
    """Names of ways to run, each with a context."""
    yield "one process", None, lambda: parallel_config(n_jobs=1)
    yield "threading", workers, lambda: parallel_config("threading", n_jobs=workers)
    yield "loky", workers, lambda: parallel_config("loky", n_jobs=workers)
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("without Dask: distributed is not installed")
        return
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield "Dask", None, lambda: parallel_config("dask")


def main():
    """Run the searches and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, help="GPUs to show to the processes")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--series", type=int, default=9000)
    parser.add_argument("--commit")
    parser.add_argument("--output", default=_records.RESULTS / "grid-search-gpu.json")
    arguments = parser.parse_args()
    if arguments.devices:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(arguments.devices)))

    import cupy

    from benchmarks._gpu import device_and_versions

    count = cupy.cuda.runtime.getDeviceCount()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((arguments.series, 400)).cumsum(axis=1)
    y = np.arange(len(X)) % 3
    rows, expected = [], None
    for name, n_jobs, context in ways(arguments.workers):
        with context():
            search(n_jobs).fit(X[:300], y[:300])  # starts processes, loads kernels
            start = time.perf_counter()
            scores = search(n_jobs).fit(X, y).cv_results_["mean_test_score"]
            seconds = time.perf_counter() - start
        expected = scores if expected is None else expected
        if not np.array_equal(scores, expected):
            raise AssertionError(f"{name}: other scores than one process")
        processes, memory = held()
        rows.append(
            {
                "work": f"{len(X):,} x 400, {len(WINDOWS)} windows, {FOLDS} folds",
                "GPUs": count,
                "how": name if name == "one process" else f"{name}, {arguments.workers} workers",
                "seconds": seconds,
                "processes with a context": processes,
                "MiB in use on each GPU": memory,
                "checked": "scores of one process",
            }
        )
        print(rows[-1], flush=True)
    path = Path(arguments.output)
    if path.exists():
        before = json.loads(path.read_text())["rows"]
        rows = [row for row in before if row["GPUs"] != count] + rows
    device, versions = device_and_versions()
    _records.write(
        path,
        _records.record(
            "grid-search-gpu", device=device, versions=versions, rows=rows, commit=arguments.commit
        ),
    )


if __name__ == "__main__":
    main()
