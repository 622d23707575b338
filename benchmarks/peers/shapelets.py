"""Exhaustive shapelet search of skts beside its peers: distances of candidates to series.

    SKTS_DATA=<folder> python -m benchmarks.peers.shapelets --python python3.13

Every subsequence of one length of the training series is measured against every series; then the
distances of a hundred of them are compared, of all libraries, and the rates are printed and written
to `benchmarks/results/peers-shapelets.json`. skts does more than its peers here: it also puts all
candidates on order lines and certifies the best split. Peers do the distances of a tenth of the
candidates alone, spread over all, for their rate. aeon and pyts have no function for this: their
own inner loops are called, which are what their transforms spend their time in.
"""

import sys
from pathlib import Path

import numpy as np

from benchmarks._sets import archive
from benchmarks.peers._comparison import Comparison, make_parser

PEERS = ("wildboar", "aeon", "pyts")
SCRIPT = Path(__file__).with_name("_shapelets_worker.py")
WORKS = {"GunPoint": 50, "Coffee": 95, "ItalyPowerDemand": 8}
#: Part of the candidates that peers measure.
SHARE = 0.1
#: Products by transforms are not as exact as sums of squares.
TOLERANCE = 1e-6


def request(name):
    """The input of the workers, and the number of distances."""
    data = archive(name)
    if data is None:
        sys.exit("SKTS_DATA names no folder of data")
    X, y = data[0], np.unique(data[1], return_inverse=True)[1]
    n_distances = len(X) ** 2 * (X.shape[1] - WORKS[name] + 1)
    return {"X": X, "y": y, "length": WORKS[name], "share": SHARE}, n_distances


def rows(name, outcomes, threads, n_distances):
    """The figures kept of each outcome."""
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
    parser = make_parser(__doc__, PEERS, WORKS, "peers-shapelets.json", threads=[1], repeats=7)
    options = parser.parse_args()
    comparison = Comparison(SCRIPT, options, TOLERANCE)
    for name in options.works:
        work, n_distances = request(name)
        for threads in options.threads:
            outcomes = comparison.measure(work, threads)
            for row in rows(name, outcomes, threads, n_distances):
                print(row, flush=True)
                comparison.rows.append(row)
    comparison.write("Exhaustive shapelet search beside its peers on a CPU")
    comparison.exit_if_skts_failed()


if __name__ == "__main__":
    main()
