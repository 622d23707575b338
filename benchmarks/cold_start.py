"""First calls in fresh processes: CPU seconds with an empty cache of kernels, and with a full one.

    python -m benchmarks.cold_start [--only dtw tree ...] [--engine numba] [--output FILE]
    python -m benchmarks.cold_start --programs [--only dtw tree ...] [--arch 90]

Each call runs in a process of its own, that of the cold start with an empty `NUMBA_CACHE_DIR` and
CUPY_CACHE_DIR, that of the warm start with what the cold one left there, `LATER_RUNS` times, and
that again, `RUNS` times. A cold start may leave small work to NumPy and compile nothing; `full` is
a start, with engine numba, that finds all kernels of the call on disk. Counted are user and system
seconds of the process and its children, the least of its runs, less those of importing what an
empty program with scikit-learn imports. The package is compiled to bytecode before, as pip does
when it installs one. asv tracks the same figures. With engine cupy, `compiled` counts the programs
that the cold start left on disk. More than `--programs` lists are operations on arrays, which CuPy
compiles one by one.

With `--programs`, each call runs once, on a GPU or its emulator, and each CUDA program that it
asked for is compiled here (NVRTC needs no GPU): its CPU seconds.
"""

import argparse
import compileall
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import _gpu, _records

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
    "discord_detector": "skts.DiscordDetector(50, **o).fit(T)",
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
#: How often each process runs: other work on the machine makes one slower by half a second.
RUNS = 2
#: How often each of them is followed by another that finds what it left.
LATER_RUNS = 3
IMPORTS = "import sklearn.base, sklearn.neighbors, sklearn.cluster, sklearn.tree\n"
#: Has kernels compiled where NumPy would take their place.
COMPILE = "from skts.engines import replace_kernels\nwith replace_kernels(always=False):\n"
COUNT = "\nimport os; print(sum(os.times()[:4]))"


def run(code, cache):
    """What a process prints that runs some code with a folder for kernels."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(Path(cache, "numba")),
        "CUPY_CACHE_DIR": str(Path(cache, "cupy")),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + code],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.stdout.splitlines()[-1]


def seconds(code, cache):
    """CPU seconds of a process that runs some code with a folder for kernels, children included."""
    return float(run(code + COUNT, cache))


@functools.cache
def importing():
    """CPU seconds of a process that only imports what every program does."""
    with tempfile.TemporaryDirectory() as cache:
        return min(seconds("", cache) for _ in range(4 * LATER_RUNS))


def start(name, engine="numba"):
    """CPU seconds of a first call beyond importing scikit-learn: cold, warm, with all kernels."""
    code = f"ENGINE = {engine!r}\n{DATA}\n{CALLS[name]}"
    compileall.compile_dir(Path(importlib.util.find_spec("skts").origin).parent, quiet=2)
    runs, kernels = [], 0.0
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as cache:
            cold = seconds(code, cache)
            runs.append([cold, min(seconds(code, cache) for _ in range(LATER_RUNS))])
            left = [path.suffix for path in Path(cache, "cupy").glob("*")]
            if engine == "numba" and not kernels:
                run(f"ENGINE = {engine!r}\n{DATA}\n{COMPILE}    {CALLS[name]}{COUNT}", cache)
                kernels = min(seconds(code, cache) for _ in range(2 * LATER_RUNS))
    cold, warm = (round(min(each) - importing(), 2) for each in zip(*runs, strict=True))
    found = {"cold": cold, "warm": warm}
    if engine == "cupy":
        return found | {"compiled": len(left) - left.count(".compiled")}
    return found | ({"full": round(kernels - importing(), 2)} if kernels else {})


ASKED = """
import json
from skts.engines.cupy import loading
print(json.dumps(sorted({key[:2] for key in loading._loaded})))
"""


def programs(name):
    """The CUDA programs that a first call asks for: of each file, lists of kernels."""
    from skts.engines.cupy.programs import program_of

    code = f"ENGINE = 'cupy'\n{DATA}\n{CALLS[name]}\n{ASKED}"
    with tempfile.TemporaryDirectory() as cache:
        asked = json.loads(run(code, cache))
    found = {}
    for file, kernel in asked:
        found.setdefault((file, *program_of(file, kernel)), []).append(kernel)
    return [(file, kernels) for (file, *_), kernels in found.items()]


def measure_programs(name, arch):
    """Print the CPU seconds in which NVRTC compiles each program of a first call."""
    from skts.engines.cupy.compile import compile_program

    asked, total = programs(name), 0.0
    for file, kernels in asked:
        begin = time.process_time()
        compile_program(file, kernels, arch)
        total += time.process_time() - begin
        print(f"{name}: {time.process_time() - begin:.2f} s, {file}: {', '.join(kernels)}")
    print(f"{name}: {total:.2f} s of {len(asked)} programs", flush=True)


class FirstCall:
    """Cold and warm starts, and those that find all kernels, for asv."""

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

    def track_full(self, found, call):
        return found[call]["full"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CALLS, default=list(CALLS), metavar="CALL")
    parser.add_argument("--engine", default="numba")
    parser.add_argument("--output", help="a file for the record, as JSON")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--programs", action="store_true", help="time CUDA programs, one by one")
    parser.add_argument("--arch", type=int, default=90, help="what they are compiled for")
    options = parser.parse_args()
    if options.programs:
        for name in options.only:
            measure_programs(name, options.arch)
        return
    rows, facts = [], {"commit": options.commit, "unit": "CPU seconds"}
    title = "First calls in fresh processes"
    for name in options.only:
        rows.append({"call": name, "engine": options.engine, **start(name, options.engine)})
        print(json.dumps(rows[-1]), flush=True)
        if options.output and options.engine == "cupy":
            device, versions = _gpu.device_and_versions()
            more = {"device": device, "versions": versions, **facts}
            _records.write(options.output, _records.record(title, rows=rows, **more))
        elif options.output:
            _records.write_cpu(options.output, title, rows, **facts)


if __name__ == "__main__":
    main()
