"""Reduced precision and length, figure 5 of Sart and others: errors with 8 bits, and 128 points.

    SKTS_DATA=<folder> python -m benchmarks.elastic.paper_reduced_precision

writes `benchmarks/results/papers-reduced-precision.json`, with ``--engine cupy`` that with
"-on-gpu". The paper stores z-normalised values in 8
bits on its FPGA and shows in figure 5 that errors of 1-NN classification hardly change; longer
series are shortened to 128 points. Here the same is counted on the sets of the UCR archive in
the folder SKTS_DATA that take a few seconds each: DTW without a window, of z-normalised series

* in full;
* with values rounded to 256 levels, evenly from the least to the largest value of the training set;
* brought to exactly 128 points by taking points at equal steps, as the paper does;
* both.

The paper has twenty sets, which it does not name, and prints no errors; it judges by a paired
t-test over them, with p = 49.2 %. Each is also judged by McNemar's exact test on
the test series that one of the two classifies correctly and the other does not.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, ttest_rel

from benchmarks._gpu import verdict
from benchmarks._paper import keep, make_parser, parse, threads
from skts import DTWNearestNeighbor
from skts.metrics import pairwise_dtw

OUTPUTS = {
    "numba": "papers-reduced-precision.json",
    "cupy": "papers-reduced-precision-on-gpu.json",
}
POINTS = 128
LEVELS = 256
KINDS = ("full", "8 bits", "128 points", "8 bits, 128 points")
#: Cells of warping matrices of a set up to which it is taken.
CELLS = 2e11


def normalized(X):
    """Series less their mean over their deviation; constant ones become 0."""
    X = X - X.mean(axis=1, keepdims=True)
    deviation = X.std(axis=1, keepdims=True)
    return X / np.where(deviation == 0, 1, deviation)


def shortened(X):
    """Series of exactly `POINTS` points, taken at equal steps."""
    return X[:, np.arange(POINTS) * X.shape[1] // POINTS]


def rounded(X, Z):
    """Both sets at `LEVELS` levels, values of the second clipped to the range of the first."""
    low, high = X.min(), X.max()
    step = (high - low) / (LEVELS - 1)
    return tuple(np.clip(np.rint((side - low) / step), 0, LEVELS - 1) * step for side in (X, Z))


def measure(name, X, y, Z, z, options):
    """One row: errors of each kind, and what the paper's reduction changes."""
    X, Z = normalized(X), normalized(Z)
    short = shortened(X), shortened(Z)
    kinds = dict(zip(KINDS, ((X, Z), rounded(X, Z), short, rounded(*short)), strict=True))
    row = {"part": "figure 5", "set": name, "data": "real"}
    row |= {"train": len(X), "test": len(Z), "points": X.shape[1]}
    wrong, right = {}, True
    given = {"engine": options.engine}
    if options.engine == "numba":
        given["n_jobs"] = row["threads"] = options.threads
    for kind, (train, test) in kinds.items():
        start = time.perf_counter()
        labels = DTWNearestNeighbor(**given).fit(train, y).predict(test)
        row[f"seconds, {kind}"] = time.perf_counter() - start
        wrong[kind] = labels != z
        row[f"error, {kind}"] = float(wrong[kind].mean())
        nearest = pairwise_dtw(test[:3], train, engine="numba").argmin(axis=1)
        right = right and np.array_equal(y[nearest], labels[:3])
        if kind != "full":
            worse = int(np.sum(wrong[kind] & ~wrong["full"]))
            better = int(np.sum(~wrong[kind] & wrong["full"]))
            row[f"newly wrong, {kind}"], row[f"newly right, {kind}"] = worse, better
            changed = worse + better
            row[f"p, {kind}"] = binomtest(worse, changed).pvalue if changed else 1.0
    return row | {"checked": verdict(right, "12 labels by all distances of the CPU")}


def data_sets(folder):
    """Name and data of each set that is quick enough."""
    for path in sorted((folder / "ucr").glob("*.npz")):
        with np.load(path) as file:
            X, y, Z, z = (file[key] for key in ("X_train", "y_train", "X_test", "y_test"))
        if X.ndim != 2 or not (np.isfinite(X).all() and np.isfinite(Z).all()):
            print(f"{path.stem}: left out, series have gaps or several lengths")
        elif len(X) * len(Z) * X.shape[1] ** 2 > CELLS:
            print(f"{path.stem}: left out, takes long")
        else:
            yield path.stem, X.astype(float), y, Z.astype(float), z


def summary(rows):
    """Means of the errors, and the paper's test over the sets."""
    row = {"part": "figure 5", "set": f"mean of {len(rows)} sets", "data": "real"}
    errors = {kind: np.array([each[f"error, {kind}"] for each in rows]) for kind in KINDS}
    row |= {f"error, {kind}": float(errors[kind].mean()) for kind in KINDS}
    for kind in KINDS[1:]:
        row[f"p, {kind}"] = float(ttest_rel(errors["full"], errors[kind]).pvalue)
    return row | {"paper: p of a paired t-test": 0.492}


def figure(options):
    """Each set, shortest first, and the means."""
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA does not name a folder of data")
    rows = []
    sets = list(data_sets(Path(folder)))
    for name, *data in sorted(sets, key=lambda one: len(one[1]) * len(one[3]) * one[1].shape[1]):
        rows.append(measure(name, *data, options))
        yield rows[-1]
    yield summary(rows)


PARTS = {"figure-5": figure}


def main():
    parser = make_parser(__doc__, OUTPUTS, PARTS)
    parser.add_argument("--threads", type=int, default=threads()[-1], help="of the CPU engine")
    options = parse(parser, OUTPUTS)
    rows = (row for part in options.parts for row in PARTS[part](options))
    keep("Reduced precision (Sart and others): figure 5, 1-NN errors", rows, options)


if __name__ == "__main__":
    main()
