"""Averages under warping on one GPU: wall time from host arrays to host arrays.

    python -m benchmarks.elastic.gpu_averages

writes `benchmarks/results/gpu-averages.json`. Barycenters are compared with those of
`engine="numba"`, bit by bit; of k-means on 300,000 series, which takes the CPU minutes, a whole fit
of some of them, and the labels of some under the centres of all. With `--trial` all sets are small,
and no record is written.
"""

import os
import time
import warnings
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._gpu import keep_rows, make_parser, median_wall, verdict
from skts import DTWKMeans
from skts.averages import dtw_barycenter, soft_dtw_barycenter
from skts.metrics import pairwise_soft_dtw

#: Series of which a whole fit is made on the CPU, too.
FITTED = 20_000
#: Series whose labels are checked under the centres of all.
LABELLED = 10_000
#: With `--trial`: by what numbers of series and of their points are divided.
FEWER, SHORTER = 100, 8


class TimedDTWKMeans(DTWKMeans):
    """k-means that adds up the seconds of its reductions, kind by kind: `seconds`."""

    def fit(self, X, y=None):
        self.seconds = Counter()
        return super().fit(X, y)

    def _run(self, reduction, *arguments, **more):
        start = time.perf_counter()
        found = super()._run(reduction, *arguments, **more)
        self.seconds[type(reduction).__name__] += time.perf_counter() - start
        return found


def walks(n, length, seed=0):
    """Random walks, z-normalised."""
    X = np.random.default_rng(seed).standard_normal((n, length)).cumsum(axis=1)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def barycenter_rows(size):
    """Ten iterations from the mean."""
    given = {"max_iter": 10, "tol": 0}
    for n, length in (size(300, 128), size(10_000, 128), size(1_000, 1_024)):
        X = walks(n, length)
        seconds, found = median_wall(lambda X=X: dtw_barycenter(X, engine="cupy", **given), 3)
        start = time.perf_counter()
        expected = dtw_barycenter(X, engine="numba", **given)
        cpu = time.perf_counter() - start
        same = np.array_equal(found.average, expected.average) and found[1:] == expected[1:]
        yield {
            "work": f"DBA, {n:,} random walks of {length:,}, 10 iterations",
            "value": seconds,
            "unit": "s",
            "must": None,
            "reach": None,
            "iterations": found.n_iter,
            "checked": verdict(same, f"as numba's, {cpu:.2f} s"),
        }


def soft_rows(size):
    """All pairs under soft-DTW, and some steps to a barycenter."""
    (n, length), few = size(4_096, 128), size(1_024, 128)[0]
    X = walks(n, length)
    seconds, found = median_wall(lambda: pairwise_soft_dtw(X, X[:few], engine="cupy"), 3)
    expected = pairwise_soft_dtw(X[:: n // 8], X[: few : few // 8], engine="numba")
    same = np.array_equal(found[:: n // 8, :: few // 8], expected)
    yield {
        "work": f"soft-DTW, {n:,} x {few:,} random walks of {length}",
        "value": n * few * length**2 / seconds / 1e9,
        "unit": "Gcells/s",
        "must": None,
        "reach": None,
        "checked": verdict(same, f"{expected.size} values as numba's"),
    }
    given = {"max_iter": 10, "tol": 0}
    X = X[: size(1_000, 128)[0]]
    seconds, found = median_wall(lambda: soft_dtw_barycenter(X, engine="cupy", **given), 3)
    cupy, numba = (soft_dtw_barycenter(X[:50], engine=one, **given) for one in ("cupy", "numba"))
    same = np.array_equal(cupy.average, numba.average) and cupy[1:] == numba[1:]
    yield {
        "work": f"soft-DTW barycenter, {len(X):,} random walks of {length}, 10 iterations",
        "value": seconds,
        "unit": "s",
        "must": None,
        "reach": None,
        "iterations": found.n_iter,
        "checked": verdict(same, "of 50 of them as numba's"),
    }


def kmeans_rows(size):
    """The work of issue 121 of tslearn, twenty iterations at most."""
    (n, length), k = size(300_000, 48), 10
    fitted, labelled = size(FITTED, length)[0], size(LABELLED, length)[0]
    X = walks(n, length)
    for window, must, reach in ((None, 10.0, 4.0), (0.1, None, None)):
        model = TimedDTWKMeans(k, window=window, max_iter=20, random_state=0, engine="cupy")
        # compiles all that the whole set needs, too
        model.fit(X[::10])
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        by_kind = {name: round(each, 3) for name, each in model.seconds.items()}
        rows = np.random.default_rng(1).choice(n, labelled, replace=False)
        labels = model.set_params(engine="numba").predict(X[rows])
        same = np.array_equal(labels, model.labels_[rows])
        small = [
            DTWKMeans(k, window=window, max_iter=20, random_state=0, engine=engine).fit(X[:fitted])
            for engine in ("cupy", "numba")
        ]
        same &= all(
            np.array_equal(*(getattr(one, name) for one in small))
            for name in ("labels_", "cluster_centers_", "history_")
        )
        yield {
            "work": f"DTWKMeans, {n:,} random walks of {length}, k = {k}"
            + ("" if window is None else f", {window:.0%} band"),
            "value": seconds,
            "unit": "s",
            "must": must,
            "reach": reach,
            "iterations": model.n_iter_,
            "inertia": model.inertia_,
            "seconds": by_kind,
            "checked": verdict(same, f"{labelled} labels, and a fit of {fitted}, as numba's"),
        }


def main():
    parser = make_parser(__doc__, "gpu-averages.json")
    parser.add_argument("--parts", nargs="+", default=["kmeans", "barycenter", "soft"])
    parser.add_argument("--trial", action="store_true", help="small sets, and no record")
    options = parser.parse_args()
    if options.trial:
        options.output = Path(os.devnull)
    warnings.simplefilter("ignore", ConvergenceWarning)

    def size(n, length):
        return (max(24, n // FEWER), length // SHORTER) if options.trial else (n, length)

    rows = chain.from_iterable(globals()[f"{part}_rows"](size) for part in options.parts)
    keep_rows("Averages under warping on a GPU", rows, options)


if __name__ == "__main__":
    main()
