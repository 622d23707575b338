"""The matrix profile of skts beside its peers: the same work, in the same run, on the same threads.

    python -m benchmarks.peers.motifs --python python3.13

does for matrix profiles what `benchmarks.peers.dtw` does for DTW; the record is
`benchmarks/results/peers-motifs.json`. Cells are pairs of windows; a self-join counts each once.
Values are squared distances, which must agree to 1e-6 of the largest: pyscamp returns float32.

Two peers need help with their environment: matrixprofile wants Python 3.9 and a NumPy below 2;
pyscamp is compiled when it is installed (CMake, a C++ compiler, `FORCE_NO_CUDA=1` in the
environment where there is a CUDA compiler without cuFFT), and NumPy has to be added to it.
"""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import _records
from benchmarks.peers import _environments, _rounds
from benchmarks.peers.dtw import rows, table

PEERS = ("stumpy", "pyscamp", "matrixprofile")
SCRIPT = Path(__file__).with_name("_motifs_worker.py")
TOLERANCE = 1e-6
NOTE = (
    "matrixprofile leaves out pairs one point farther apart than the others, and cannot be told "
    "otherwise: on the smooth ECG the neighbours of some windows differ."
)


def walk(n):
    """A random walk."""
    return {"x": np.random.default_rng(0).standard_normal(n).cumsum()}


def noise(n):
    """White noise: neighbours may be anywhere, also just outside of the exclusion."""
    return {"x": np.random.default_rng(1).standard_normal(n)}


def ecg(n):
    """The ECG that comes with skts."""
    from skts.datasets import load_ecg

    return {"x": np.ravel(load_ecg().data)[:n].astype(float)}


def two_walks(n):
    """Two random walks."""
    x, y = np.random.default_rng(2).standard_normal((2, n)).cumsum(axis=1)
    return {"x": x, "y": y}


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    name: str
    series: Callable[[int], dict]
    n: int
    window: int

    def request(self):
        """What the workers get, and the number of pairs of windows."""
        request = self.series(self.n)
        request |= {"window": self.window, "exclusion": self.window // 4 - 1}
        n = self.n - self.window + 1
        return request, n * n if "y" in request else n * (n - 1) // 2


WORKS = {
    "walk-128": Work("random walk, n = 50,000, window 128", walk, 50_000, 128),
    "walk-1024": Work("random walk, n = 50,000, window 1,024", walk, 50_000, 1024),
    "ecg-128": Work("ECG, n = 50,000, window 128", ecg, 50_000, 128),
    "noise-128": Work("white noise, n = 20,000, window 128", noise, 20_000, 128),
    "two-128": Work("two random walks, n = 25,000 each, window 128", two_walks, 25_000, 128),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    everyone = ("skts", *PEERS)
    parser.add_argument("--libraries", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--threads", nargs="+", type=int, default=sorted({1, os.cpu_count()}))
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--patience", type=float, default=60)
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "peers-motifs.json")
    options = parser.parse_args()

    pythons, missing = {}, {}
    for library in options.libraries:
        if library == "skts":
            pythons[library] = sys.executable
            continue
        try:
            pythons[library] = _environments.interpreter(
                library, folder=options.environments, python=options.python
            )
        except _environments.InstallationError as error:
            missing[library] = str(error).splitlines()[0]
            print(error, file=sys.stderr)

    found, versions = [], {}
    for work in (WORKS[name] for name in options.works):
        request, cells = work.request()
        for threads in options.threads:
            outcomes = _rounds.measure(
                SCRIPT,
                request,
                pythons,
                threads=threads,
                repeats=options.repeats,
                patience=options.patience,
            )
            _rounds.compare([one for one in outcomes if not one.failure], TOLERANCE)
            new = list(rows(work, outcomes, threads, cells))
            print(*table(new), sep="\n", flush=True)
            for row, outcome in zip(new, outcomes, strict=True):
                found.append(row | {"difference": outcome.difference})
                kept = {outcome.library, "python", "numpy", "numba"} & outcome.versions.keys()
                if kept:
                    found_here = {key: outcome.versions[key] for key in sorted(kept)}
                    versions[outcome.library] = found_here
    _records.write(
        options.output,
        _records.record(
            "The matrix profile beside its peers on a CPU",
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=versions,
            rows=found,
            missing=missing,
            note=NOTE,
        ),
    )
    if not all(row["result"] == "agrees" for row in found if row["library"] == "skts"):
        sys.exit("skts failed, or its results are not those of its peers")


if __name__ == "__main__":
    main()
