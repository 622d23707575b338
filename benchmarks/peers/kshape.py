"""k-Shape of skts beside its peers: the same work, in the same run, on the same threads.

    python -m benchmarks.peers.kshape --python python3.13

makes an environment for each peer where there is none, lets every library cluster the same series
for some iterations, and writes `benchmarks/results/peers-kshape.json`. A figure is the time of
`fit` over the iterations that it did, the first assignment included. Series are z-normalised
before, and come in planted kinds; the Rand index of labels and kinds says whether times are of the
same work.
skts runs in the environment of this command. Takes some five minutes.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.metrics import rand_score

from benchmarks.kshape.gpu_kshape import moved_shapes
from benchmarks.peers._comparison import Comparison, make_parser

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
        """The input of the workers, and the kind of each series."""
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
    """The figures kept of each outcome."""
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
    parser = make_parser(__doc__, PEERS, WORKS, "peers-kshape.json", threads=[1], repeats=3)
    options = parser.parse_args()
    comparison = Comparison(SCRIPT, options)
    for work in (WORKS[name] for name in options.works):
        request, kinds = work.request()
        for threads in options.threads:
            outcomes = comparison.measure(request, threads)
            for row in rows(work, outcomes, threads, kinds):
                print(row, flush=True)
                comparison.rows.append(row)
    comparison.write("k-Shape beside its peers on a CPU")
    for row in comparison.rows:
        others = (r.get("Rand index", 0) for r in comparison.rows if r["work"] == row["work"])
        if row["library"] == "skts" and row.get("Rand index", 0) < max(others) - 0.02:
            sys.exit(f"skts failed at {row['work']}, or others find the planted kinds better")


if __name__ == "__main__":
    main()
