"""DTW of skts beside its peers: the same work, in the same run, on the same threads.

    python -m benchmarks.peers.dtw --python python3.13

makes an environment for each peer where there is none, runs every work of `WORKS`, compares the
results, then prints the times and writes them to `benchmarks/results/peers-dtw.json`. skts runs
in the environment of this command. Takes some twenty minutes.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import _records
from benchmarks.peers import _environments, _rounds

PEERS = ("aeon", "tslearn", "wildboar", "dtaidistance", "tsdistances")
SCRIPT = Path(__file__).with_name("_dtw_worker.py")


def walks(n_samples, n_timepoints):
    """Two different sets of random walks: no symmetry to make use of."""
    rng = np.random.default_rng(0)
    X, Y = np.cumsum(rng.standard_normal((2, n_samples, n_timepoints)), axis=-1)
    return {"kind": "pairwise", "X": X, "Y": Y}


def osuleaf():
    """OSULeaf of the UCR archive from the folder SKTS_DATA, else warped shapes of that shape."""
    folder = os.environ.get("SKTS_DATA")
    if folder:
        with np.load(Path(folder) / "ucr" / "OSULeaf.npz") as file:
            X, Z = (file[name].astype(float) for name in ("X_train", "X_test"))
            return {"kind": "nearest", "X": X, "y": file["y_train"], "Z": Z}
    from skts.datasets import make_warped_shapes

    X, y = make_warped_shapes(442, 427, random_state=0)
    return {"kind": "nearest", "X": X[:200], "y": y[:200], "Z": X[200:]}


@dataclass(frozen=True)
class Work:
    """One row of the table: the series, and the window as a fraction of the length."""

    name: str
    series: Callable[[], dict]
    window: float | None = None

    def request(self):
        """What the workers get, and the number of cells inside the window."""
        request = self.series()
        X, others = request["X"], request["Z" if request["kind"] == "nearest" else "Y"]
        length = X.shape[-1]
        # the archive's rule: a fraction is rounded up
        radius = length if self.window is None else math.ceil(self.window * length - 1e-9)
        r = min(radius, length - 1)
        cells = length * (2 * r + 1) - r * (r + 1)
        request["radius"] = -1 if self.window is None else radius
        return request, len(X) * len(others) * cells


# Series with a window are all of one length: peers differ in what a band of unequal lengths is.
WORKS = {
    "pairwise-256": Work("all pairs, 100 x 100, length 256", lambda: walks(100, 256)),
    "pairwise-1024": Work("all pairs, 30 x 30, length 1,024", lambda: walks(30, 1024)),
    "osuleaf": Work("1-NN, 200 against 242, length 427, fit and predict", osuleaf),
    "pairwise-256-window": Work(
        "all pairs, 100 x 100, length 256, 10 % window", lambda: walks(100, 256), window=0.1
    ),
    "pairwise-1024-window": Work(
        "all pairs, 30 x 30, length 1,024, 10 % window", lambda: walks(30, 1024), window=0.1
    ),
    "osuleaf-window": Work(
        "1-NN, 200 against 242, length 427, 10 % window, fit and predict", osuleaf, window=0.1
    ),
}


def rows(work, outcomes, threads, cells):
    """What is kept of each outcome: the columns of the table."""
    mine = next((o for o in outcomes if o.library == "skts" and not o.failure), None)
    for outcome in outcomes:
        row = {"work": work.name, "threads": threads, "library": outcome.library}
        if outcome.failure:
            yield row | {"result": f"failed: {outcome.failure}"}
            continue
        yield row | {
            "seconds": outcome.seconds,
            "fastest": min(outcome.wall),
            "rounds": len(outcome.wall),
            "Gcells/s": cells / outcome.seconds / 1e9,
            "time / skts": outcome.seconds / mine.seconds if mine else None,
            "result": "agrees"
            if outcome.agrees
            else f"DISAGREES by {outcome.difference:.2g}: times cannot be compared",
        }


def table(rows):
    """The rows of one work, as lines of text."""
    yield f"\n{rows[0]['work']}, {rows[0]['threads']} thread(s)"
    head = f"  {'library':14}{'median s':>10}{'fastest':>10}{'rounds':>8}{'Gcells/s':>10}"
    yield f"{head}{'/ skts':>8}"
    for row in rows:
        line = f"  {row['library']:14}"
        if "seconds" in row:
            line += f"{row['seconds']:10.3f}{row['fastest']:10.3f}{row['rounds']:8}"
            line += f"{row['Gcells/s']:10.3f}"
            line += f"{row['time / skts']:8.2f}" if row["time / skts"] else " " * 8
        yield f"{line}  {row['result']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    everyone = ("skts", *PEERS)
    parser.add_argument("--libraries", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument(
        "--threads", nargs="+", type=int, default=sorted({1, os.cpu_count()}), metavar="N"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument(
        "--patience", type=float, default=120, help="seconds for one library at one work"
    )
    parser.add_argument(
        "--environments", type=Path, default=_environments.FOLDER, help="folder of the peers'"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of environments that are made"
    )
    parser.add_argument("--upgrade", action="store_true", help="peers to their current versions")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "peers-dtw.json")
    options = parser.parse_args()

    pythons, missing = {}, {}
    for library in options.libraries:
        try:
            if library == "skts":
                pythons[library] = sys.executable
                continue
            pythons[library] = _environments.interpreter(
                library,
                folder=options.environments,
                python=options.python,
                upgrade=options.upgrade,
            )
        except _environments.InstallationError as error:
            missing[library] = str(error).splitlines()[0]
            print(error, file=sys.stderr)

    found, timings, versions = [], [], {}
    for name in options.works:
        work = WORKS[name]
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
            new = list(rows(work, outcomes, threads, cells))
            print(*table(new), sep="\n", flush=True)
            found += new
            for outcome in outcomes:
                timings.append(
                    {
                        "work": work.name,
                        "threads": threads,
                        "library": outcome.library,
                        "wall": outcome.wall,
                        "processor": outcome.processor,
                    }
                )
                kept = {outcome.library, "python", "numpy", "numba"} & outcome.versions.keys()
                versions[outcome.library] = {key: outcome.versions[key] for key in sorted(kept)}

    _records.write(
        options.output,
        _records.record(
            "DTW beside its peers on a CPU",
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=versions,
            data="OSULeaf" if os.environ.get("SKTS_DATA") else "warped shapes in its place",
            rows=found,
            missing=missing,
            timings=timings,
        ),
    )
    if not all(row["result"] == "agrees" for row in found if row["library"] == "skts"):
        sys.exit("skts failed, or its results are not those of its peers")


if __name__ == "__main__":
    main()
