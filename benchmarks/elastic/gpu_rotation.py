"""Rotation invariance and condensing on one GPU: wall time from host arrays to host arrays.

    SKTS_DATA=... python -m benchmarks.elastic.gpu_rotation

writes `benchmarks/results/gpu-rotation.json`: table 3 of paper 004 (light curves, which are made as
in `paper_rotation.py`), real outlines, data on which bounds say little, and AWARD.
Every row is checked in the same run against `engine="numba"`: neighbours and distances bit by bit,
on some of the queries where those of all would take too long; of AWARD all that `fit` finds.
Without SKTS_DATA, sets of the archive are left out, and AWARD condenses made patterns of that size.
"""

import time
from itertools import chain
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, make_parser, median_wall, verdict
from benchmarks._sets import archive
from benchmarks.elastic.paper_rotation import OUTLINES, PAPER, PAPER_ACCURACY, light_curves
from skts import DTWCondenser, DTWNearestNeighbor

#: Must and reach of the searches on light curves, in seconds.
GOALS = {"rDTW": (5.0, 1.0), "DTW": (0.1, 0.05)}
#: Of the light curves' queries, those that numba checks: under warping and turning one in so many.
CHECKED = {"rDTW": 4, "DTW": 2}
#: Sets that are condensed beside TwoPatterns.
SETS = ("SyntheticControl", "ECG200", "GunPoint", "OSULeaf")


def search_row(work, X, y, Z, z, distance, every, must=None, reach=None):
    """Fit and search, everything uploaded anew."""

    def search(engine, queries):
        model = DTWNearestNeighbor(
            window=0 if distance.endswith("ED") else None,
            rotation_invariant=distance.startswith("r"),
            engine=engine,
        )
        return model.fit(X, y).kneighbors(queries)

    seconds, (distances, indices) = median_wall(lambda: search("cupy", Z), repeats=3)
    sample = slice(None, None, every)
    start = time.perf_counter()
    exact_distances, exact_indices = search("numba", Z[sample])
    cpu = time.perf_counter() - start
    same = np.array_equal(indices[sample], exact_indices) and np.array_equal(
        distances[sample], exact_distances
    )
    count = len(exact_indices)
    return {
        "work": f"{work}, {distance}",
        "value": seconds,
        "unit": "s",
        "must": must,
        "reach": reach,
        "accuracy": float(np.mean(y[indices[:, 0]] == z)),
        "checked": verdict(same, f"{count} of {len(Z)} queries as numba's, {cpu:.2f} s"),
    }


def light_rows(rng):
    """Table 3 of the paper."""
    X, y = light_curves(1024, rng)
    Z, z = light_curves(128, rng)
    for distance, paper in PAPER.items():
        name = "128 light curves against 1,024, length 1,024"
        goals = GOALS.get(distance, (None, None))
        row = search_row(name, X, y, Z, z, distance, CHECKED.get(distance, 1), *goals)
        row["accuracy of the paper"] = PAPER_ACCURACY[distance]
        row["paper: CPU, GPU, FPGA, s"] = paper
        yield row


def outline_rows(rng):
    """Real outlines, with all queries checked."""
    for name in OUTLINES:
        data = archive(name)
        for distance in PAPER if data else ():
            n, m = data[0].shape
            work = f"{name}, {len(data[2])} queries, {n} series, length {m}"
            yield search_row(work, *data, distance, 1)


def hard_rows(rng):
    """Series without structure, of which bounds rule few out; and many short ones."""
    for name, count, n, every in (
        ("random walks", 1024, 512, 32),
        ("noise", 1024, 256, 16),
        ("random walks", 20_000, 128, 16),
    ):
        X, Z = rng.standard_normal((count, n)), rng.standard_normal((128, n))
        if name == "random walks":
            X, Z = (np.cumsum(side, axis=1) for side in (X, Z))
            X, Z = ((s - s.mean(1)[:, None]) / s.std(1)[:, None] for s in (X, Z))
        y, z = np.arange(count) % 2, np.full(128, -1)
        work = f"{name}, 128 queries, {count:,} series, length {n}"
        row = search_row(work, X, y, Z, z, "rDTW", every)
        del row["accuracy"]
        yield row


def award_rows(rng):
    """Condensing to a tenth and to one series."""
    from skts.datasets import make_two_patterns

    data = archive("TwoPatterns")
    X, y = data[:2] if data else make_two_patterns(1000, 128, random_state=0)
    yield award_row("TwoPatterns" if data else "made patterns", X, y, 0.1, 5.0, 1.0)
    yield award_row("TwoPatterns" if data else "made patterns", X, y, 1, None, None)
    for name in SETS:
        data = archive(name)
        if data:
            yield award_row(name, *data[:2], 0.1, None, None)


def award_row(name, X, y, n_prototypes, must, reach):
    """Condense with both engines, and compare all that comes out."""

    def condense(engine):
        return DTWCondenser(n_prototypes=n_prototypes, engine=engine).fit(X, y)

    condense("cupy")
    elapsed = []
    for _ in range(3):
        start = time.perf_counter()
        found = condense("cupy")
        elapsed.append(time.perf_counter() - start)
    start = time.perf_counter()
    expected = condense("numba")
    cpu = time.perf_counter() - start
    same = all(
        np.array_equal(getattr(found, attribute), getattr(expected, attribute))
        for attribute in ("sample_indices_", "ranks_", "windows_", "accuracies_")
    )
    n, length = X.shape
    size = len(found.sample_indices_)
    return {
        "work": f"AWARD, {name} ({n:,} x {length}), to {size}",
        "value": median(elapsed),
        "unit": "s",
        "must": must,
        "reach": reach,
        "checked": verdict(same, f"order and windows as numba's, {cpu:.2f} s"),
    }


def main():
    parser = make_parser(__doc__, "gpu-rotation.json")
    parser.add_argument("--parts", nargs="+", default=["light", "award", "outline", "hard"])
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = chain.from_iterable(globals()[f"{part}_rows"](rng) for part in options.parts)
    keep_rows("Rotation invariance and condensing on a GPU", rows, options)


if __name__ == "__main__":
    main()
