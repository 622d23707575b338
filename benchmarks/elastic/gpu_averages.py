"""Averages under warping on one GPU: wall time from host arrays to host arrays.

    python -m benchmarks.elastic.gpu_averages

writes `benchmarks/results/gpu-averages.json`. Barycenters are compared with those of
`engine="numba"`, bit by bit; of k-means on 300,000 series, which takes the CPU minutes, a whole fit
of some of them, and the labels of some under the centres of all.
"""

import time
import warnings
from itertools import chain

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._gpu import keep_rows, make_parser, median_wall, verdict
from skts import DTWKMeans
from skts.averages import dtw_barycenter, soft_dtw_barycenter
from skts.metrics import pairwise_soft_dtw

#: Series of which a whole fit is made on the CPU, too.
FITTED = 4_000
#: Series whose labels are checked under the centres of all.
LABELLED = 3_000


def walks(n, length, seed=0):
    """Random walks, z-normalised."""
    X = np.random.default_rng(seed).standard_normal((n, length)).cumsum(axis=1)
    return (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)


def barycenter_rows():
    """Ten iterations from the mean."""
    given = {"max_iter": 10, "tol": 0}
    for n, length in ((300, 128), (10_000, 128), (1_000, 1_024)):
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


def soft_rows():
    """All pairs under soft-DTW, and some steps to a barycenter."""
    X = walks(4096, 128)
    seconds, found = median_wall(lambda: pairwise_soft_dtw(X, X[:1024], engine="cupy"), 3)
    expected = pairwise_soft_dtw(X[::512], X[:1024:8], engine="numba")
    same = np.array_equal(found[::512, ::8], expected)
    yield {
        "work": "soft-DTW, 4,096 x 1,024 random walks of 128",
        "value": 4096 * 1024 * 128**2 / seconds / 1e9,
        "unit": "Gcells/s",
        "must": None,
        "reach": None,
        "checked": verdict(same, f"{expected.size} values as numba's"),
    }
    given = {"max_iter": 10, "tol": 0}
    seconds, found = median_wall(lambda: soft_dtw_barycenter(X[:1000], engine="cupy", **given), 3)
    few, numba = (soft_dtw_barycenter(X[:50], engine=one, **given) for one in ("cupy", "numba"))
    same = np.array_equal(few.average, numba.average) and few[1:] == numba[1:]
    yield {
        "work": "soft-DTW barycenter, 1,000 random walks of 128, 10 iterations",
        "value": seconds,
        "unit": "s",
        "must": None,
        "reach": None,
        "iterations": found.n_iter,
        "checked": verdict(same, "of 50 of them as numba's"),
    }


def kmeans_rows():
    """The work of issue 121 of tslearn, twenty iterations at most."""
    n, length, k = 300_000, 48, 10
    X = walks(n, length)
    for window, must, reach in ((None, 10.0, 4.0), (0.1, None, None)):
        model = DTWKMeans(k, window=window, max_iter=20, random_state=0, engine="cupy")
        model.fit(X[:1000])
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        rows = np.random.default_rng(1).choice(n, LABELLED, replace=False)
        labels = model.set_params(engine="numba").predict(X[rows])
        same = np.array_equal(labels, model.labels_[rows])
        small = [
            DTWKMeans(k, window=window, max_iter=20, random_state=0, engine=engine).fit(X[:FITTED])
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
            "checked": verdict(same, f"{LABELLED} labels, and a fit of {FITTED}, as numba's"),
        }


def main():
    parser = make_parser(__doc__, "gpu-averages.json")
    parser.add_argument("--parts", nargs="+", default=["barycenter", "soft", "kmeans"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = chain.from_iterable(globals()[f"{part}_rows"]() for part in options.parts)
    keep_rows("Averages under warping on a GPU", rows, options)


if __name__ == "__main__":
    main()
