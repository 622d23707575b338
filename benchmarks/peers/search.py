"""The subsequence search of skts beside its peers: the same work, in the same run.

    python -m benchmarks.peers.search --python python3.13

does for the best match of a query what `benchmarks.peers.dtw` does for DTW; the record is
`benchmarks/results/peers-search.json`. Windows are z-normalised, each by itself. Cells are those of
all warping matrices inside the band, whether they were computed or ruled out. Distances, and the
distances of the places that were named, must agree to 1e-9.

ucrdtw wants NumPy and wheel in its environment before it is installed, without build isolation.
Both peers use one thread for one query and one series, whatever they are allowed.
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

PEERS = ("ucrdtw", "wildboar")
SCRIPT = Path(__file__).with_name("_search_worker.py")
TOLERANCE = 1e-9


def walk(n, length):
    """A random walk, and another one as the query."""
    rng = np.random.default_rng(0)
    return {"x": rng.standard_normal(n).cumsum(), "query": rng.standard_normal(length).cumsum()}


def planted(n, length):
    """A random walk that holds the query, but for some noise, in its third quarter."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(n).cumsum()
    start = n * 5 // 8
    return {"x": x, "query": x[start : start + length] + 0.3 * rng.standard_normal(length)}


def ecg(n, length):
    """A beat of the ECG that comes with skts, to be found again in the minutes after it."""
    from skts.datasets import load_ecg

    x = np.ravel(load_ecg().data).astype(float)
    return {"x": x[3000:n], "query": x[1840 : 1840 + length]}


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    name: str
    series: Callable[[int, int], dict]
    n: int
    length: int
    radius: int | None

    def request(self):
        """What the workers get, and the number of cells."""
        request = self.series(self.n, self.length)
        request["radius"] = -1 if self.radius is None else self.radius
        n_windows = request["x"].size - self.length + 1
        reach = self.length - 1 if self.radius is None else self.radius
        cells = sum(min(self.length, i + reach + 1) - max(0, i - reach) for i in range(self.length))
        return request, cells * n_windows


WORKS = {
    "walk-band": Work("random walk, 1,000,000 points, query 128, band 6", walk, 10**6, 128, 6),
    "planted-band": Work(
        "random walk with the query, 1,000,000 points, query 128, band 6", planted, 10**6, 128, 6
    ),
    "ecg-band": Work("ECG, 105,000 points, query 128, band 6", ecg, 108_000, 128, 6),
    "walk": Work("random walk, 1,000,000 points, query 128, no band", walk, 10**6, 128, None),
    "planted": Work(
        "random walk with the query, 1,000,000 points, query 128, no band",
        *(planted, 10**6, 128, None),
    ),
    "ecg": Work("ECG, 105,000 points, query 128, no band", ecg, 108_000, 128, None),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    everyone = ("skts", *PEERS)
    parser.add_argument("--libraries", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--patience", type=float, default=60)
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--note", help="a sentence about this run, kept in the record")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "peers-search.json")
    options = parser.parse_args()

    pythons, missing = {}, {}
    for library in options.libraries:
        try:
            pythons[library] = (
                sys.executable
                if library == "skts"
                else _environments.interpreter(
                    library, folder=options.environments, python=options.python
                )
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
                pythons if threads == 1 else {"skts": pythons["skts"]},
                threads=threads,
                repeats=options.repeats,
                patience=options.patience,
            )
            if threads == 1:
                _rounds.compare([one for one in outcomes if not one.failure], TOLERANCE)
                expected = [one.result for one in outcomes if one.agrees]
            for one in outcomes:
                if threads > 1 and not one.failure:
                    one.agrees = any(np.array_equal(one.result, other) for other in expected)
            new = list(rows(work, outcomes, threads, cells))
            print(*table(new), sep="\n", flush=True)
            for row, outcome in zip(new, outcomes, strict=True):
                found.append(row | {"difference": outcome.difference})
                kept = {outcome.library, "python", "numpy", "numba"} & outcome.versions.keys()
                if kept:
                    versions[outcome.library] = {k: outcome.versions[k] for k in sorted(kept)}
    _records.write(
        options.output,
        _records.record(
            "Subsequence search beside its peers on a CPU",
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=versions,
            rows=found,
            missing=missing,
            **({"note": options.note} if options.note else {}),
        ),
    )
    if not all(row["result"] == "agrees" for row in found if row["library"] == "skts"):
        sys.exit("skts failed, or its results are not those of its peers")


if __name__ == "__main__":
    main()
