"""DTW without a window on one GPU: kernel speed, and wall time from host arrays to host arrays.

    python -m benchmarks.gpu_dtw

takes less than a minute and writes `benchmarks/results/gpu-dtw.json`. Every row's results are
checked in the same run: those of the kernel against float64 on the CPU, on a sample; those of the
estimator, of which nothing may differ, against `engine="numba"`, on some of the queries.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import _records

#: Values of a set of series in a kernel run: a gigabyte on the host in float64.
VALUES = 2**27
#: Cells of an all-pairs kernel run: 40 ms at 5 Tcells/s.
CELLS = 2e11
#: Length, what an issue is accepted on and where we want to be, in Tcells/s.
KERNEL_ROWS = (
    (127, 5.4, 6.8),
    (255, 5.4, 6.8),
    (511, 5.4, 6.8),
    (1023, 5.4, 6.8),
    (2047, 4.8, 6.8),
    (100, 4.2, 6.0),
    (427, 4.2, 6.0),
    (637, 4.2, 6.0),
    (1092, 4.2, 6.0),
)


def kernel_seconds(queries, candidates, repeats=7):
    """Time the float32 kernel on all pairs of two sets of series that are on the device already.

    Parameters
    ----------
    queries, candidates : ndarray of shape (n_series, n_timepoints)
        Host arrays.
    repeats : int
        Launches after the first; the median counts.

    Returns
    -------
    seconds : float
        By CUDA events around a launch.
    distances : cupy.ndarray of shape (n_queries, n_candidates)
        Squared distances in units of `scale` squared.
    scale : float
        By which the device's copies are multiplied.
    """
    import cupy

    from skts.engines._certify import Rescaling
    from skts.engines._series import Series
    from skts.engines.cupy import dtw

    rescaling = Rescaling.of(candidates)

    def on_device(X):
        series = Series(X[:, None, :], np.full(len(X), X.shape[1], np.int64))
        return dtw.rescale(dtw.upload(series), rescaling)

    rows, cols = on_device(queries), on_device(candidates)
    elapsed = []
    for _ in range(repeats + 1):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        found = dtw.distances(rows, cols, root=False, budget=2**30)
        stop.record()
        stop.synchronize()
        elapsed.append(cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return median(elapsed[1:]), found, rescaling.scale


def kernel_row(name, queries, candidates, must, reach):
    """One run of the kernel, checked on a sample of both ends of the sets."""
    from skts.metrics import pairwise_dtw

    seconds, found, scale = kernel_seconds(queries, candidates)
    length = queries.shape[1]
    rows, cols = (np.unique([0, len(X) // 2, len(X) - 1]) for X in (queries, candidates))
    distances = np.sqrt(found[rows[:, None], cols].get(), dtype=float) / scale
    exact = pairwise_dtw(queries[rows], candidates[cols], engine="numba")
    error = float(np.max(np.abs(distances - exact) / exact))
    # rounding of the longest path and the difference: gamma of (steps + channels + 2)
    bound = (2 * length + 2) * 2.0**-24
    return {
        "work": name,
        "value": len(queries) * len(candidates) * length**2 / seconds / 1e12,
        "unit": "Tcells/s",
        "must": must,
        "reach": reach,
        "checked": verdict(error <= bound, f"relative error {error:.1e}, bound {bound:.1e}"),
    }


def kernel_rows(rng):
    """One query against many series, and all pairs, at every length."""
    # exact in float32 and centred, so that the kernel's rounding is all that differs
    values = (rng.random(VALUES, dtype=np.float32) - np.float32(0.5)).astype(np.float64)
    for length, must, reach in KERNEL_ROWS:
        many = values[: VALUES // length * length].reshape(-1, length)
        yield kernel_row(
            f"kernel, one query against {len(many) - 1:,}, length {length}",
            many[:1],
            many[1:],
            must,
            reach,
        )
        n = int(CELLS**0.5 / length)
        yield kernel_row(
            f"kernel, all pairs {n:,} x {n:,}, length {length}",
            many[:n],
            many[n : 2 * n],
            must,
            reach,
        )


def median_wall(run, repeats=5):
    """Median wall seconds of a function after a first call, and its last result."""
    result, elapsed = run(), []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        elapsed.append(time.perf_counter() - start)
    return median(elapsed), result


def search_row(rng):
    """Fit and search, 128 queries among 1,024 series of 1,024 points: everything is uploaded."""
    from skts import DTWNearestNeighbor

    X, queries = (np.cumsum(rng.standard_normal((n, 1024)), axis=1) for n in (1024, 128))
    y = np.zeros(len(X), int)

    def search(engine, queries):
        return DTWNearestNeighbor(1, engine=engine).fit(X, y).kneighbors(queries)

    seconds, (distances, indices) = median_wall(lambda: search("cupy", queries))
    sample = slice(None, None, 16)
    exact_distances, exact_indices = search("numba", queries[sample])
    same = np.array_equal(indices[sample], exact_indices) and np.allclose(
        distances[sample], exact_distances, rtol=1e-9, atol=0
    )
    return {
        "work": "fit and kneighbors, 128 queries, 1,024 series, length 1,024",
        "value": seconds,
        "unit": "s",
        "must": 0.1,
        "reach": 0.05,
        "checked": verdict(same, f"neighbours of {len(exact_indices)} queries as numba's"),
    }


def osuleaf_row():
    """Fit and predict on OSULeaf, or on warped shapes of its size where SKTS_DATA is not set."""
    from skts import DTWNearestNeighbor
    from skts.datasets import make_warped_shapes

    folder = os.environ.get("SKTS_DATA")
    if folder:
        with np.load(Path(folder) / "ucr" / "OSULeaf.npz") as file:
            X, y, Z, z = (file[f"{name}_{part}"] for part in ("train", "test") for name in "Xy")
    else:
        X, y = make_warped_shapes(442, 427, random_state=0)
        X, y, Z, z = X[:200], y[:200], X[200:], y[200:]

    def classify(engine, queries):
        return DTWNearestNeighbor(1, engine=engine).fit(X, y).predict(queries)

    seconds, labels = median_wall(lambda: classify("cupy", Z))
    same = np.array_equal(labels, classify("numba", Z))
    name = "OSULeaf" if folder else "warped shapes"
    return {
        "work": f"1-NN, {name} (200 against 242, length 427), fit and predict",
        "value": seconds,
        "unit": "s",
        "must": None,
        "reach": None,
        "checked": verdict(same, f"labels as numba's, error {np.mean(labels != z):.4f}"),
    }


def verdict(passed, text):
    """How a check came out: failed ones say so."""
    return text if passed else f"FAILED: {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "gpu-dtw.json")
    options = parser.parse_args()

    import cupy

    rng = np.random.default_rng(0)
    rows = []

    def keep(row):
        goal = "" if row["must"] is None else f"must {row['must']}, reach {row['reach']}"
        print(f"{row['work']:62}{row['value']:9.4g} {row['unit']:9}{goal:22}{row['checked']}")
        sys.stdout.flush()
        rows.append(row)

    for row in kernel_rows(rng):
        keep(row)
    keep(search_row(rng))
    keep(osuleaf_row())

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    found = _records.record(
        "DTW without a window on a GPU",
        device=properties["name"].decode(),
        versions=_records.versions("skts", "numpy", "numba", "cupy-cuda12x", "cupy-cuda13x")
        | {
            "CUDA runtime": cupy.cuda.runtime.runtimeGetVersion(),
            "CUDA driver": cupy.cuda.runtime.driverGetVersion(),
        },
        rows=rows,
        commit=options.commit,
    )
    _records.write(options.output, found)
    if any(row["checked"].startswith("FAILED") for row in rows):
        sys.exit("a result is wrong: see the last column")


if __name__ == "__main__":
    main()
