"""Averages and k-means under warping beside their peers: the same work, in the same run.

    python -m benchmarks.peers.elastic_averages --python python3.13

makes an environment for each peer where there is none, and writes
`benchmarks/results/peers-averages.json`. All start from the same series and do as many iterations,
k-means with one iteration of DBA in each (the peers do up to 30, 50 and 10 of their own accord, and
take longer). Averages differ where paths tie, and where a library follows other paths: the inertia
is that of the averages that a library returns, computed by skts. Under DTW that of skts may be no
larger than any other; under other metrics a mean need not lower it, along whatever paths. Soft-DTW
is compared to 1e-9 of its largest value; aeon returns its absolute value.

"seconds" is the least processor time of the rounds, to which other work on the machine adds little;
of k-means and averages it is that of one iteration. aeon stops where an iteration raises the cost:
under other metrics than DTW the time is that of the first iteration, and the inertia that of ten,
or as many as it does. Series are random walks, z-normalised, and for k-means warped shapes. skts
runs in the environment of this command.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.peers._comparison import Comparison, make_parser
from skts.datasets import make_warped_shapes
from skts.metrics import pairwise_distances

PEERS = ("tslearn", "aeon", "dtaidistance")
SCRIPT = Path(__file__).with_name("_elastic_averages_worker.py")
#: Metrics whose inertia is a sum of squares of distances.
SQUARED = {"dtw", "adtw", "wdtw", "ddtw"}


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    name: str
    kind: str
    n_series: int
    n_timepoints: int
    libraries: tuple[str, ...] = ("skts", *PEERS)
    n_iter: int = 10
    n_clusters: int = 1
    metric: str = "dtw"

    def request(self):
        """The input of the workers."""
        shape = self.n_series, self.n_timepoints
        X = np.random.default_rng(0).standard_normal(shape).cumsum(axis=1)
        if self.kind == "kmeans":
            X, _ = make_warped_shapes(*shape, random_state=0)
        X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
        names = ("kind", "metric", "n_iter", "n_clusters")
        return {"X": X, "Y": X[::-1].copy()} | {name: getattr(self, name) for name in names}

    def inertia(self, X, answer):
        """Sum over all series of the (squared) distances to the nearest average."""
        averages = answer[1:].reshape(self.n_clusters, -1)
        found = pairwise_distances(X, averages, metric=self.metric, engine="numba").min(axis=1)
        return float(np.sum(found**2 if self.metric in SQUARED else found))


WORKS = {
    "dba": Work("DBA, 300 x 128, an iteration", "barycenter", 300, 128),
    "kmeans-300": Work(
        "k-means, 300 x 128, k = 5, an iteration", "kmeans", 300, 128, n_clusters=5
    ),
    "kmeans-2000": Work(
        "k-means, 2,000 x 48, k = 10, an iteration", "kmeans", 2_000, 48, n_clusters=10
    ),
    "soft": Work(
        "soft-DTW, 64 x 64, length 128", "soft", 64, 128, libraries=("skts", "tslearn", "aeon")
    ),
    **{
        f"dba-{metric}": Work(
            f"DBA under {metric.upper()}, 300 x 128, an iteration", "barycenter", 300, 128,
            libraries=("skts", "aeon"), n_iter=1, metric=metric,
        )
        for metric in ("msm", "twe", "adtw", "wdtw", "edr")
    },
}  # fmt: skip


def rows(work, outcomes, threads, X):
    """The figures kept of each outcome."""
    mine = None
    for outcome in outcomes:
        row = {"work": work.name, "threads": threads, "library": outcome.library}
        if outcome.failure:
            yield row | {"failed": outcome.failure}
            continue
        seconds = min(outcome.processor)
        if work.kind == "soft":
            row |= {"result": "agrees" if outcome.agrees else f"off by {outcome.difference:.2g}"}
        else:
            done = int(outcome.result[0])
            seconds /= done
            row |= {"iterations": done, "inertia": work.inertia(X, outcome.result)}
        mine = seconds if outcome.library == "skts" else mine
        yield row | {
            "seconds": seconds,
            "rounds": len(outcome.processor),
            "time / skts": seconds / mine if mine else None,
        }


def wrong(found):
    """Names of works in which skts differs, or another has a lower inertia from the same start."""
    for name in {row["work"] for row in found}:
        done = [row for row in found if row["work"] == name and "failed" not in row]
        mine = [row for row in done if row["library"] == "skts"]
        least = min((row.get("inertia", 0.0) for row in done), default=0.0)
        right = mine and mine[0].get("result", "agrees") == "agrees"
        if " under " in name:
            least = np.inf
        if not right or mine[0].get("inertia", 0.0) > least * (1 + 1e-9):
            yield name


def main():
    parser = make_parser(__doc__, PEERS, WORKS, "peers-averages.json", threads=[1], repeats=7)
    parser.add_argument("--add", action="store_true", help="to the other works of the record")
    options = parser.parse_args()
    comparison = Comparison(SCRIPT, options)
    if options.add and options.output.exists():
        asked = {WORKS[name].name for name in options.works}
        before = json.loads(options.output.read_text())
        comparison.rows += [row for row in before["rows"] if row["work"] not in asked]
        comparison.versions |= before["versions"]
    for work in (WORKS[name] for name in options.works):
        request = work.request()
        asked = [name for name in work.libraries if name in comparison.pythons]
        for threads in options.threads:
            outcomes = comparison.measure(request, threads, asked)
            for row in rows(work, outcomes, threads, request["X"]):
                print(row, flush=True)
                comparison.rows.append(row)
    comparison.write("Averages and k-means beside their peers on a CPU: least processor times")
    failed = sorted(wrong(comparison.rows))
    if failed:
        sys.exit(f"skts failed, or a peer has a lower inertia from the same start: {failed}")


if __name__ == "__main__":
    main()
