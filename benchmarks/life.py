"""asv benchmarks that run at every commit of the project's life, for `make history`.

Only what has been there for long is called, and imported where it is called, so that a commit
without it leaves the benchmark out. Sizes are decades; both engines; time, peak memory, accuracy,
and the first call of a process.

On a machine without git and asv (a lent GPU, say) this file is also a program:

    PYTHONPATH=TREE python benchmarks/life.py OUTPUT.json [numba cupy] [Profile Search ...]

runs them, or some of the suites, for the package in TREE. `python -m benchmarks.life --keep MACHINE
OUTPUT.json ...` makes asv's files in `benchmarks/history/` of such outputs.
"""

import contextlib
import importlib
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ENGINES = ["numba", "cupy"]


def wanted(module, name, engine):
    """A function or class of the package; asv leaves out what is missing."""
    try:
        found = getattr(importlib.import_module(module), name)
        from skts.engines import get_engine

        get_engine(engine)
    except Exception as error:
        raise NotImplementedError(str(error)) from error
    # kernels alone: newer versions have NumPy in place of some that are not compiled yet
    with contextlib.suppress(ImportError):
        from skts.engines.core import compiling

        compiling.replaced = False
    return found


def walks(n, length):
    """Random walks."""
    return np.random.default_rng(0).standard_normal((n, length)).cumsum(axis=1)


class DTW:
    """Distances of 4 series to 4, by their length."""

    params = [ENGINES, [10, 100, 1_000, 10_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        self.function = wanted("skts.metrics", "pairwise_dtw", engine)
        self.X = walks(8, n_timepoints)
        self.time_pairwise_dtw(engine, n_timepoints)

    def time_pairwise_dtw(self, engine, n_timepoints):
        self.function(self.X[:4], self.X[4:], engine=engine)


class Neighbors:
    """Nearest neighbours of 100 series of 128 points in a 10 % window, by the number of others."""

    params = [ENGINES, [10, 100, 1_000, 10_000]]
    param_names = ["engine", "n_samples"]

    def setup(self, engine, n_samples):
        make = wanted("skts", "DTWNearestNeighbor", engine)
        X = walks(n_samples + 100, 128)
        self.model = make(window=0.1, engine=engine).fit(X[100:], np.arange(n_samples) % 3)
        self.Z = X[:100]
        self.time_predict(engine, n_samples)

    def time_predict(self, engine, n_samples):
        self.model.predict(self.Z)


class Profile:
    """The matrix profile of a random walk, window 128."""

    params = [ENGINES, [1_000, 10_000, 100_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        self.function = wanted("skts.motifs", "matrix_profile", engine)
        self.x = walks(1, n_timepoints)[0]
        self.function(self.x[:1_000], window=128, engine=engine)

    def time_matrix_profile(self, engine, n_timepoints):
        self.function(self.x, window=128, engine=engine)

    def peakmem_matrix_profile(self, engine, n_timepoints):
        self.function(self.x, window=128, engine=engine)


class Search:
    """The best match of a query of 128 points, 5 % band."""

    params = [ENGINES, [10_000, 100_000, 1_000_000]]
    param_names = ["engine", "n_timepoints"]

    def setup(self, engine, n_timepoints):
        make = wanted("skts", "SubsequenceSearch", engine)
        self.query = np.random.default_rng(1).standard_normal((1, 128)).cumsum(axis=1)
        self.model = make(window=0.05, engine=engine).fit(walks(1, n_timepoints))
        self.time_kneighbors(engine, n_timepoints)

    def time_kneighbors(self, engine, n_timepoints):
        self.model.kneighbors(self.query)


class KShape:
    """Eight iterations from the same start, series of 128 points, three clusters."""

    params = [ENGINES, [100, 1_000, 10_000]]
    param_names = ["engine", "n_samples"]

    def setup(self, engine, n_samples):
        make = wanted("skts", "KShapeClusterer", engine)
        self.model = make(3, n_init=1, max_iter=8, random_state=0, engine=engine)
        self.X = walks(n_samples, 128)
        self.time_fit(engine, n_samples)

    def time_fit(self, engine, n_samples):
        self.model.fit(self.X)


class Tree:
    """The exact tree of GunPoint, every eighth length."""

    params = [ENGINES, ["GunPoint"]]
    param_names = ["engine", "data"]

    def setup(self, engine, data):
        make = wanted("skts", "ShapeletTreeClassifier", engine)
        load = wanted("skts.datasets", "load_gunpoint", engine)
        self.train, self.test = (load(split=name, return_X_y=True) for name in ("train", "test"))
        self.model = make(length_step=8, random_state=0, engine=engine)
        self.time_fit(engine, data)

    def time_fit(self, engine, data):
        self.model.fit(*self.train)

    def track_accuracy(self, engine, data):
        return self.model.fit(*self.train).score(*self.test)


class FirstCall:
    """Seconds of a fresh process with empty caches of kernels, imports included."""

    CALLS = {
        "DTW": "skts.DTWNearestNeighbor(engine=E).fit(X, y).predict(X[:5])",
        "profile": "skts.motifs.matrix_profile(X.ravel()[:2000], window=50, engine=E)",
        "tree": "skts.ShapeletTreeClassifier(length_step=8, engine=E).fit(X, y)",
    }
    params = [ENGINES, list(CALLS)]
    param_names = ["engine", "call"]
    unit = "s"
    timeout = 200

    def setup(self, engine, call):
        wanted("skts", "DTWNearestNeighbor", engine)

    def track_first_call(self, engine, call):
        code = "import numpy as np, skts, skts.motifs\n"
        code += "X = np.random.default_rng(0).standard_normal((20, 150)).cumsum(axis=1)\n"
        code += f"y, E = np.arange(20) % 2, {engine!r}\n{self.CALLS[call]}"
        with tempfile.TemporaryDirectory() as folder:
            empty = {"NUMBA_CACHE_DIR": folder, "CUPY_CACHE_DIR": folder, "HOME": folder}
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=os.environ | empty,
                capture_output=True,
                cwd=folder,
            )
        return time.perf_counter() - start if done.returncode == 0 else math.nan


SUITES = (DTW, Neighbors, Profile, Search, KShape, Tree, FirstCall)


def names_of(suite):
    """Names of the benchmarks of a suite."""
    return [name for name in vars(suite) if name.startswith(("time_", "peakmem_", "track_"))]


def one(suite, name, values):
    """The figure of a benchmark with some parameters; None where it is left out or fails."""
    made = suite()
    try:
        made.setup(*values)
        work = getattr(made, name)
        if not name.startswith("time_"):
            found = work(*values)
            return found if name.startswith("track_") else _peak()
        elapsed = []
        while len(elapsed) < 3 or (sum(elapsed) < 0.2 and len(elapsed) < 15):
            start = time.perf_counter()
            work(*values)
            elapsed.append(time.perf_counter() - start)
        return float(np.median(elapsed))
    except Exception as error:
        print(f"{suite.__name__}.{name} {values}: {type(error).__name__} {error}"[:200])
        return None


def _peak():
    """The most memory that this process has had, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(output, engines, suites):
    """Run suites, and write what is there after each: figures in the order of asv's parameters."""
    found = {}
    for suite in suites:
        for name in names_of(suite):
            key = f"life.{suite.__name__}.{name}"
            found[key] = []
            for values in itertools.product(*suite.params):
                if values[0] not in engines:
                    found[key].append(None)
                elif name.startswith("peakmem_"):
                    words = [sys.executable, __file__, "--one", suite.__name__, name]
                    done = subprocess.run(
                        [*words, json.dumps(values)], capture_output=True, text=True
                    )
                    last = (done.stdout.splitlines() or ["null"])[-1]
                    found[key].append(json.loads(last) if done.returncode == 0 else None)
                else:
                    found[key].append(one(suite, name, values))
            Path(output).write_text(json.dumps(found))


def keep(outputs, machine):
    """Write asv's files of outputs, which are named by their commit."""
    from benchmarks._records import ROOT

    folder = ROOT / "benchmarks" / "history"
    known = json.loads((folder / "benchmarks.json").read_text())
    place = folder / machine
    place.mkdir(exist_ok=True)
    (place / "machine.json").write_text(json.dumps({"machine": machine, "version": 1}) + "\n")
    columns = ["result", "params", "version"]
    for path in map(Path, outputs):
        words = ["git", "-C", str(ROOT), "log", "-1", "--format=%H %ct", path.stem]
        commit, seconds = subprocess.run(
            words, check=True, capture_output=True, text=True
        ).stdout.split()
        results = {}
        for name, values in json.loads(path.read_text()).items():
            about = known[name]
            given = [math.nan if value is None else value for value in values]
            results[name] = [given, about["params"], about["version"]]
        record = {
            "commit_hash": commit,
            "env_name": "existing",
            "date": 1000 * int(seconds),
            "params": {"machine": machine, "python": "3.12"},
            "python": "3.12",
            "requirements": {},
            "env_vars": {},
            "result_columns": columns,
            "results": results,
            "durations": {},
            "version": 2,
        }
        (place / f"{commit[:8]}-existing.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    named = {suite.__name__: suite for suite in SUITES}
    if sys.argv[1] == "--one":
        print(json.dumps(one(named[sys.argv[2]], sys.argv[3], json.loads(sys.argv[4]))))
    elif sys.argv[1] == "--keep":
        keep(sys.argv[3:], sys.argv[2])
    else:
        engines = [word for word in sys.argv[2:] if word in ENGINES]
        suites = [named[word] for word in sys.argv[2:] if word not in ENGINES]
        run(sys.argv[1], engines or ENGINES, suites or SUITES)
