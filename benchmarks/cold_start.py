"""First calls in fresh processes: CPU seconds with an empty cache of kernels, and with a full one.

    python -m benchmarks.cold_start [--only dtw tree ...] [--engine numba] [--output FILE]

Each call runs in a process of its own, that of the cold start with an empty `NUMBA_CACHE_DIR` and
CUPY_CACHE_DIR, that of the warm start with what the cold one left there. Counted are user and
system seconds of the process and its children, less those of importing what an empty program with
scikit-learn imports, measured in turn. asv tracks the same figures.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import _records

DATA = """
import skts
import skts.metrics
import skts.motifs
from skts.datasets import load_gunpoint, make_random_walk
X, y = load_gunpoint(split="train", return_X_y=True)
Z = load_gunpoint(split="test", return_X_y=True)[0][:20]
T = make_random_walk(1, 2_000, random_state=0)
o = {"engine": ENGINE, "n_jobs": 1}
"""
#: What is called first, by name.
CALLS = {
    "dtw": "skts.DTWNearestNeighbor(**o).fit(X, y).predict(Z)",
    "tree": "skts.ShapeletTreeClassifier(min_length=10, max_length=30, length_step=10,"
    " random_state=0, **o).fit(X, y).predict(Z)",
    "motif_finder": "skts.MotifFinder(50, **o).fit(T)",
    "search": "skts.SubsequenceSearch(**o).fit(T).kneighbors(T[:, 100:200])",
    "condenser": "skts.DTWCondenser(**o).fit_resample(X, y)",
    "kshape": "skts.KShapeClusterer(2, random_state=0, **o).fit(X).predict(Z)",
    "metrics.dtw": "skts.metrics.dtw(X[0], X[1], engine=ENGINE)",
    "metrics.dtw_path": "skts.metrics.dtw_path(X[0], X[1], engine=ENGINE)",
    "metrics.pairwise_dtw": "skts.metrics.pairwise_dtw(X, **o)",
    "metrics.sbd": "skts.metrics.sbd(X[0], X[1], engine=ENGINE)",
    "metrics.pairwise_sbd": "skts.metrics.pairwise_sbd(X, **o)",
    "metrics.subsequence_distance": "skts.metrics.subsequence_distance(X[0, :40], X[1])",
    "motifs.matrix_profile": "skts.motifs.matrix_profile(T[0], window=50, **o)",
}
IMPORTS = "import sklearn.base, sklearn.neighbors, sklearn.cluster, sklearn.tree\n"
COUNT = "\nimport os; print(sum(os.times()[:4]))"


def seconds(code, cache):
    """CPU seconds of a process that runs some code with a folder for kernels, children included."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(Path(cache, "numba")),
        "CUPY_CACHE_DIR": str(Path(cache, "cupy")),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + code + COUNT],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return float(done.stdout.split()[-1])


def start(name, engine="numba"):
    """Cold and warm CPU seconds of a first call beyond importing scikit-learn."""
    code = f"ENGINE = {engine!r}\n{DATA}\n{CALLS[name]}"
    with tempfile.TemporaryDirectory() as cache:
        runs = [seconds(code, cache) for _ in range(2)]
        base = seconds("", cache)
    return {"cold": round(runs[0] - base, 2), "warm": round(runs[1] - base, 2)}


class FirstCall:
    """Cold and warm starts, for asv."""

    params = [list(CALLS)]
    param_names = ["call"]
    unit = "CPU seconds"
    timeout = 600

    def setup_cache(self):
        return {name: start(name) for name in CALLS}

    setup_cache.timeout = 1800

    def track_cold(self, found, call):
        return found[call]["cold"]

    def track_warm(self, found, call):
        return found[call]["warm"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CALLS, default=list(CALLS), metavar="CALL")
    parser.add_argument("--engine", default="numba")
    parser.add_argument("--output", help="a file for the record, as JSON")
    options = parser.parse_args()
    rows = []
    for name in options.only:
        rows.append({"call": name, "engine": options.engine, **start(name, options.engine)})
        print(json.dumps(rows[-1]), flush=True)
    if options.output:
        _records.write_cpu(options.output, "cold-start", rows, unit="CPU seconds")


if __name__ == "__main__":
    main()
