"""k-Shape of skts beside its peers: the same work, in the same run, on the same threads.

    python -m benchmarks.peers.kshape --python python3.13

makes an environment for each peer where there is none, lets every library cluster the same series
for some iterations, and writes `benchmarks/results/peers-kshape.json`. A figure is the time of
`fit` over the iterations that it did, the first assignment included. Series are z-normalised
before, and come in planted kinds; the Rand index of labels and kinds says whether times are of the
same work.
skts runs in the environment of this command. Takes some five minutes.
"""

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import rand_score

from benchmarks import _records
from benchmarks.gpu_kshape import moved_shapes
from benchmarks.peers import _environments, _rounds

PEERS = ("tslearn", "aeon", "kshape")
SCRIPT = Path(__file__).with_name("_kshape_worker.py")


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    n_series: int
    n_timepoints: int
    n_clusters: int
    n_iter: int = 3

    @property
    def name(self):
        return f"{self.n_series:,} x {self.n_timepoints:,}, k = {self.n_clusters}"

    def request(self):
        """What the workers get, and the kind of each series."""
        shape = self.n_series, self.n_timepoints, self.n_clusters
        # so much noise that labels keep changing for some iterations
        shapes, kinds = moved_shapes(*shape, np.random.default_rng(0), noise=2.0)
        X = np.ascontiguousarray(shapes.values[:, 0])
        return {"X": X, "n_clusters": self.n_clusters, "n_iter": self.n_iter}, kinds


WORKS = {
    "1000x1024": Work(1_000, 1_024, 3),
    "5000x128": Work(5_000, 128, 5),
}


def rows(work, outcomes, threads, kinds):
    """What is kept of each outcome."""
    mine = next((o for o in outcomes if o.library == "skts" and not o.failure), None)
    for outcome in outcomes:
        row = {"work": work.name, "threads": threads, "library": outcome.library}
        if outcome.failure:
            yield row | {"failed": outcome.failure}
            continue
        done, labels = int(outcome.result[0]), outcome.result[1:]
        row |= {
            "ms an iteration": outcome.seconds / done * 1e3,
            "iterations": done,
            "rounds": len(outcome.wall),
            "Rand index": float(rand_score(kinds, labels)),
        }
        if mine is not None:
            row["time / skts"] = row["ms an iteration"] / (mine.seconds / int(mine.result[0]) * 1e3)
        yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    everyone = ("skts", *PEERS)
    parser.add_argument("--libraries", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--patience", type=float, default=60)
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--upgrade", action="store_true")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "peers-kshape.json")
    options = parser.parse_args()

    pythons, missing = {}, {}
    for library in options.libraries:
        try:
            pythons[library] = (
                sys.executable
                if library == "skts"
                else _environments.interpreter(
                    library,
                    folder=options.environments,
                    python=options.python,
                    upgrade=options.upgrade,
                )
            )
        except _environments.InstallationError as error:
            missing[library] = str(error).splitlines()[0]
            print(error, file=sys.stderr)

    found, versions = [], {}
    for name in options.works:
        work = WORKS[name]
        request, kinds = work.request()
        for threads in options.threads:
            outcomes = _rounds.measure(
                SCRIPT,
                request,
                pythons,
                threads=threads,
                repeats=options.repeats,
                patience=options.patience,
            )
            for row in rows(work, outcomes, threads, kinds):
                print(row, flush=True)
                found.append(row)
            for outcome in outcomes:
                kept = {outcome.library, "python", "numpy", "numba"} & outcome.versions.keys()
                versions[outcome.library] = {key: outcome.versions[key] for key in sorted(kept)}
    _records.write(
        options.output,
        _records.record(
            "k-Shape beside its peers on a CPU",
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=versions,
            rows=found,
            missing=missing,
        ),
    )
    for row in found:
        others = (r.get("Rand index", 0) for r in found if r["work"] == row["work"])
        if row["library"] == "skts" and row.get("Rand index", 0) < max(others) - 0.02:
            sys.exit(f"skts failed at {row['work']}, or others find the planted kinds better")


if __name__ == "__main__":
    main()
