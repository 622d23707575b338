"""Distances that the triangle inequality of dog-keeper spares a 1-NN search.

    SKTS_DATA=... python -m benchmarks.elastic.paper_dog_keeper_pivots

writes `benchmarks/results/papers-dog-keeper-pivots.json`. The paper names as the merit of the
dog-keeper distance DK that it obeys the triangle inequality, so that it can be indexed: with the
distances d(p, x) of some pivots p to all candidates, d(q, x) >= |d(q, p) - d(p, x)|. This counts
what that would save: candidates are ruled out at the final best distance, the best case for any
order of search. Pivots cost their own distances to each query; they pay where they rule out more
candidates, beyond those that the bounds of the search rule out, than there are pivots.

Pivots are chosen one after the other, each the candidate that is farthest from those before. Sets
are those of the UCR archive in the folder SKTS_DATA, if there is one, and random walks.
"""

import sys
import time

import numpy as np

from benchmarks._paper import keep, make_parser, parse
from benchmarks._sets import archive
from benchmarks.elastic.gpu_dtw import as_series
from skts.engines import DTWMatrix, DTWNeighbors, Warping, run

DK = Warping("dog_keeper", "absolute")
OUTPUTS = {"numba": "papers-dog-keeper-pivots.json"}
UCR = (
    *("Adiac", "CBF", "ECG200", "FaceFour", "GunPoint", "Haptics"),
    *("OSULeaf", "Plane", "Symbols", "SyntheticControl", "Trace", "TwoPatterns", "Wafer"),
)
PIVOTS = (1, 4, 16, 64)
QUERIES = 50


def data_sets(rng):
    """Name, candidates and queries of each set."""
    for name in UCR:
        data = archive(name)
        if data is not None:
            X, _, Z, _ = data
            yield name, X, Z[rng.permutation(len(Z))[:QUERIES]]
    for n, length in ((1000, 128), (3000, 64)):
        walks = np.cumsum(rng.standard_normal((n + QUERIES, length)), axis=1)
        yield f"{n:,} random walks of {length} points", walks[:n], walks[n:]
        walks -= walks.mean(axis=1, keepdims=True)
        walks /= walks.std(axis=1, keepdims=True)
        yield f"the same, z-normalised ({n:,})", walks[:n], walks[n:]


def range_bounds(X, Z):
    """The bounds of the search: distances from the other's range, and those of the two ends."""
    ends = np.abs(Z[:, None, [0, -1]] - X[None, :, [0, -1]]).max(axis=2)
    for inner, outer in ((Z, X), (X, Z)):
        low, high = outer.min(axis=1), outer.max(axis=1)
        beyond = np.maximum(
            inner.max(axis=1)[:, None] - high[None], low[None] - inner.min(axis=1)[:, None]
        )
        ends = np.maximum(ends, beyond if inner is Z else beyond.T)
    return ends


def choose_pivots(X, count):
    """Indices of pivots, and their distances to all candidates."""
    series = as_series(X)
    chosen, table = [0], []
    while True:
        last = series.take(np.array(chosen[-1:]))
        table.append(run(DTWMatrix(last, series, DK), engine="numba")[0])
        if len(chosen) == min(count, len(X)):
            return np.array(chosen), np.array(table)
        chosen.append(int(np.argmax(np.min(table, axis=0))))


def measure(name, X, Z):
    """One row: shares of the candidates that are left, and seconds."""
    queries, candidates = as_series(Z), as_series(X)
    exact = run(DTWMatrix(queries, candidates, DK), engine="numba")
    run(DTWNeighbors(queries.take(slice(1)), candidates, 1, warping=DK), engine="numba")
    start = time.perf_counter()
    found = run(DTWNeighbors(queries, candidates, 1, warping=DK), engine="numba", n_jobs=1)
    seconds = time.perf_counter() - start
    best = found.distances
    if not np.array_equal(best[:, 0], exact.min(axis=1)):
        sys.exit(f"{name}: the search is wrong")
    ranges = range_bounds(X, Z)
    if np.any(ranges > exact * (1 + 1e-12)):
        sys.exit(f"{name}: a bound is no bound")
    left = np.sum(ranges <= best, axis=1)
    row = {
        "part": "the triangle inequality",
        "set": name,
        "data": "synthetic" if "walks" in name or "same" in name else "real",
        "candidates": len(X),
        "points": X.shape[1],
        "seconds of the search": seconds,
        "left by ranges and ends, %": 100 * left.mean() / len(X),
    }
    chosen, table = choose_pivots(X, max(PIVOTS))
    for count in PIVOTS:
        pivots, distances = chosen[:count], table[:count]
        bound = np.abs(exact[:, pivots].T[:, :, None] - distances[:, None, :]).max(axis=0)
        if np.any(bound > exact * (1 + 1e-9)):
            sys.exit(f"{name}: the triangle inequality does not hold")
        both = np.sum(np.maximum(bound, ranges) <= best, axis=1)
        row[f"left by {count} pivots alone, %"] = 100 * np.mean(bound <= best)
        # distances to pivots are spent; those among what is left would have been spent anyway
        row[f"distances that {count} pivots save a query, net"] = float(
            (left - both).mean() - count
        )
    row["checked"] = "least of all distances; no bound is above its distance"
    return row


def pivots(options):
    """A row for each set."""
    for name, X, Z in data_sets(np.random.default_rng(0)):
        yield measure(name, X, Z)


PARTS = {"pivots": pivots}


def main():
    options = parse(make_parser(__doc__, OUTPUTS, PARTS), OUTPUTS)
    keep("Pivots for the dog-keeper distance (Bachmann and others)", pivots(options), options)


if __name__ == "__main__":
    main()
