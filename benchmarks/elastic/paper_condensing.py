"""AWARD, section VII-C of Sart and others: seconds of condensing, and errors of what is left.

    SKTS_DATA=<folder> python -m benchmarks.elastic.paper_condensing --engine numba
    SKTS_DATA=<folder> python -m benchmarks.elastic.paper_condensing --engine cupy

writes `benchmarks/results/papers-condensing.json`, or with "-on-gpu". The paper condenses
TwoPatterns (1,000 x 128) in 1.49 days on a CPU, 50 minutes on a GPU and 4.3 minutes on an FPGA.
Here every set is condensed to one series, which gives the order of all; the errors on the test set
of several sizes, with the window of that size, are compared with those of as many series drawn at
random (mean of 5 draws, with the window that suits all of them).

Before anything is timed, a set of 60 series is condensed by plain loops over a matrix for every
window, and the order of removal and the windows must be the same.
"""

import math
import sys
import time

import numpy as np

from benchmarks._paper import keep, make_parser, parse, threads
from benchmarks._sets import archive
from skts import DTWCondenser, DTWNearestNeighbor
from skts.datasets import make_two_patterns
from skts.metrics import pairwise_dtw

OUTPUTS = {"numba": "papers-condensing.json", "cupy": "papers-condensing-on-gpu.json"}
#: Seconds of the paper with TwoPatterns; Xi and others had 2.31 days on a CPU.
PAPER = {"CPU": 1.49 * 86400, "GPU": 50 * 60.0, "FPGA": 4.3 * 60}
SETS = ("TwoPatterns", "SyntheticControl", "ECG200", "GunPoint", "OSULeaf")
FRACTIONS = (0.05, 0.1, 0.2, 0.4, 1.0)


def by_hand(X, y, window):
    """Order of removal and windows, from matrices of all distances."""
    n, length, classes = len(X), X.shape[1], len(np.unique(y))
    matrices = {}

    def nearest(percent, kept):
        points = math.ceil(percent / 100 * length - 1e-9)
        if points not in matrices:
            matrices[points] = pairwise_dtw(X, window=points)
        D = np.where(kept, matrices[points], np.inf)
        np.fill_diagonal(D, np.inf)
        return D.min(axis=1), D.argmin(axis=1)

    def correct(percent, kept):
        return np.sum(y[nearest(percent, kept)[1]] == y)

    kept, removed, windows = np.ones(n, bool), [], [window]
    while kept.sum() > 2:
        distances, indices = nearest(window, kept)
        rank, nearness = np.zeros(n), np.zeros(n)
        for j, i in enumerate(indices):
            rank[i] += classes - 1 if y[i] == y[j] else -2
            nearness[i] += 1 / distances[j] ** 2
        worst = min(np.flatnonzero(kept), key=lambda i: (rank[i], nearness[i], -i))
        kept[worst] = False
        removed.append(int(worst))
        counts = {percent: correct(percent, kept) for percent in (window, window - 1, window + 1)}
        window = max(counts, key=counts.get)  # the first of equals
        windows.append(window)
    return removed, windows


def check(given):
    """Condense a small set by hand, and compare."""
    X, y = make_two_patterns(60, 100, random_state=0)
    model = DTWCondenser(n_prototypes=2, window=0.08, **given).fit(X, y)
    removed, windows = by_hand(X, y, 8)
    order = sorted(removed, key=lambda i: -model.ranks_[i])
    if order != removed or not np.allclose(100 * model.windows_, windows):
        sys.exit("condensing by hand gives another order")


def measure(name, X, y, Z, z, given):
    """One row for each size: errors, and the seconds that all sizes took together."""
    start, cpu_start = time.perf_counter(), time.process_time()
    tenth = DTWCondenser(**given).fit(X, y)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    start = time.perf_counter()
    model = DTWCondenser(n_prototypes=1, **given).fit(X, y)
    whole = time.perf_counter() - start
    if not np.array_equal(
        np.flatnonzero(model.ranks_ <= len(tenth.sample_indices_)), tenth.sample_indices_
    ):
        sys.exit(f"{name}: a tenth is not what is left on the way to one")
    common = {"part": "section VII-C", "set": name, "data": "real", "threads": given.get("n_jobs")}
    common |= {
        "points": X.shape[1],
        "seconds to a tenth": seconds,
        "CPU seconds to a tenth, all threads": cpu,
        "seconds to one": whole,
    }
    if name == "TwoPatterns":
        common |= {f"paper: {device}, s": seconds for device, seconds in PAPER.items()}
    rows = []
    rng = np.random.default_rng(0)

    def error(members, window):
        fitted = DTWNearestNeighbor(window=float(window), **given).fit(X[members], y[members])
        return 1 - fitted.score(Z, z)

    for fraction in FRACTIONS:
        size = math.ceil(fraction * len(X) - 1e-9)
        draws = [rng.choice(len(X), size, replace=False) for _ in range(5 if fraction < 1 else 1)]
        rows.append(
            common
            | {
                "of series": len(X),
                "kept": size,
                "window": float(model.windows_[-size]),
                "leave-one-out error": float(1 - model.accuracies_[-size]),
                "test error": error(np.flatnonzero(model.ranks_ <= size), model.windows_[-size]),
                "test error, random": float(
                    np.mean([error(np.sort(draw), model.windows_[0]) for draw in draws])
                ),
                "checked": "order and windows of 60 other series by hand",
            }
        )
    return rows


def sets(options):
    """Rows of all sets, TwoPatterns last."""
    given = {"engine": options.engine}
    if options.engine == "numba":
        given["n_jobs"] = options.threads
    check(given)
    for name in reversed(SETS):
        data = archive(name)
        if data is None:
            sys.exit("SKTS_DATA does not name a folder of data")
        yield from measure(name, *data, given)


PARTS = {"sets": sets}


def main():
    parser = make_parser(__doc__, OUTPUTS, PARTS)
    parser.add_argument("--threads", type=int, default=threads()[-1], help="of the CPU engine")
    options = parse(parser, OUTPUTS)
    rows = (row for part in options.parts for row in PARTS[part](options))
    keep("Condensing with AWARD (Sart and others): section VII-C", rows, options)


if __name__ == "__main__":
    main()
