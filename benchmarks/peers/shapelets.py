"""Exhaustive shapelet search of skts beside its peers: distances of candidates to series.

    SKTS_DATA=<folder> python -m benchmarks.peers.shapelets --python python3.13

Every subsequence of one length of the training series is measured against every series; then the
distances of a hundred of them are compared, of all libraries, and the rates are printed and written
to `benchmarks/results/peers-shapelets.json`. skts does more than its peers here: it also puts all
candidates on order lines and certifies the best split. Peers do the distances of a tenth of the
candidates alone, spread over all, for their rate. aeon and pyts have no function for this: their
own inner loops are called, which are what their transforms spend their time in.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from benchmarks import _records
from benchmarks.peers import _environments, _rounds

PEERS = ("wildboar", "aeon", "pyts")
SCRIPT = Path(__file__).with_name("_shapelets_worker.py")
WORKS = {"GunPoint": 50, "Coffee": 95, "ItalyPowerDemand": 8}
#: Part of the candidates that peers measure.
SHARE = 0.1
#: Products by transforms are not as exact as sums of squares.
TOLERANCE = 1e-6


def request(folder, name):
    """What the workers get, and the number of distances."""
    with np.load(Path(folder) / "ucr" / f"{name}.npz") as file:
        X, y = file["X_train"].astype(float), np.unique(file["y_train"], return_inverse=True)[1]
    n_distances = len(X) ** 2 * (X.shape[1] - WORKS[name] + 1)
    return {"X": X, "y": y, "length": WORKS[name], "share": SHARE}, n_distances


def rows(name, outcomes, threads, n_distances):
    """What is kept of each outcome."""
    rate = {}
    for outcome in outcomes:
        row = {
            "set": f"{name}, length {WORKS[name]}",
            "threads": threads,
            "library": outcome.library,
        }
        if outcome.failure:
            yield row | {"result": f"failed: {outcome.failure}"}
            continue
        share = 1.0 if outcome.library == "skts" else SHARE
        rate[outcome.library] = share * n_distances / outcome.seconds
        yield row | {
            "seconds": outcome.seconds,
            "candidates measured": f"{share:.0%}",
            "distances/s": rate[outcome.library],
            "skts is faster by": rate["skts"] / rate[outcome.library] if "skts" in rate else None,
            "difference": outcome.difference,
            "result": "agrees" if outcome.agrees else "DISAGREES",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    everyone = ("skts", *PEERS)
    parser.add_argument("--libraries", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--repeats", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--patience", type=float, default=60)
    parser.add_argument("--environments", type=Path, default=_environments.FOLDER)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "peers-shapelets.json")
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")

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
    for name in options.works:
        work, n_distances = request(folder, name)
        for threads in options.threads:
            outcomes = _rounds.measure(
                SCRIPT,
                work,
                pythons,
                threads=threads,
                repeats=options.repeats,
                patience=options.patience,
            )
            _rounds.compare([one for one in outcomes if not one.failure], TOLERANCE)
            for row in rows(name, outcomes, threads, n_distances):
                print(row, flush=True)
                found.append(row)
            for outcome in outcomes:
                kept = {outcome.library, "python", "numpy", "numba"} & outcome.versions.keys()
                if kept:
                    here = {key: outcome.versions[key] for key in sorted(kept)}
                    versions[outcome.library] = here
    _records.write(
        options.output,
        _records.record(
            "Exhaustive shapelet search beside its peers on a CPU",
            device=f"{_records.cpu()}, {os.cpu_count()} cores",
            versions=versions,
            rows=found,
            missing=missing,
        ),
    )
    if not all(row["result"] == "agrees" for row in found if row["library"] == "skts"):
        sys.exit("skts failed, or its results are not those of its peers")


if __name__ == "__main__":
    main()
