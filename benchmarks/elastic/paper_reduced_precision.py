"""Reduced precision and length: 1-NN errors with 8-bit values, and with 128 points.

    SKTS_DATA=... python -m benchmarks.elastic.paper_reduced_precision

writes `benchmarks/results/papers-reduced-precision.json`. The paper stores z-normalised values in 8
bits on its FPGA and shows in figure 5 that errors of 1-NN classification hardly change; longer
series are shortened to 128 points. Here the same is counted on the sets of the UCR archive in
the folder SKTS_DATA that take a few seconds each: DTW without a window, of z-normalised series

* in full;
* with values rounded to 256 levels, evenly from the least to the largest value of the training set;
* brought to exactly 128 points by taking points at equal steps, as the paper does;
* both.

The paper judges by a paired t-test over the sets. Each is also judged by McNemar's exact test on
the test series that one of the two classifies correctly and the other does not.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, ttest_rel

from benchmarks import _records
from skts import DTWNearestNeighbor

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


def measure(name, X, y, Z, z):
    """One row: errors of each kind, and what the paper's reduction changes."""
    X, Z = normalized(X), normalized(Z)
    short = shortened(X), shortened(Z)
    kinds = dict(zip(KINDS, ((X, Z), rounded(X, Z), short, rounded(*short)), strict=True))
    row = {"set": name, "train": len(X), "test": len(Z), "points": X.shape[1]}
    wrong = {}
    for kind, (train, test) in kinds.items():
        start = time.perf_counter()
        wrong[kind] = DTWNearestNeighbor().fit(train, y).predict(test) != z
        row[f"seconds, {kind}"] = time.perf_counter() - start
        row[f"error, {kind}"] = float(wrong[kind].mean())
        if kind != "full":
            worse = int(np.sum(wrong[kind] & ~wrong["full"]))
            better = int(np.sum(~wrong[kind] & wrong["full"]))
            row[f"newly wrong, {kind}"], row[f"newly right, {kind}"] = worse, better
            changed = worse + better
            row[f"p, {kind}"] = binomtest(worse, changed).pvalue if changed else 1.0
    return row


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument(
        "--output", type=Path, default=_records.RESULTS / "papers-reduced-precision.json"
    )
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA does not name a folder of data")
    rows = []
    for name, *data in data_sets(Path(folder)):
        row = measure(name, *data)
        rows.append(row)
        errors = "  ".join(f"{row[f'error, {kind}']:.4f}" for kind in KINDS)
        print(f"{name:24} {row['points']:5} points  {errors}", flush=True)
    summary = {}
    for kind in KINDS[1:]:
        full, other = (np.array([row[f"error, {k}"] for row in rows]) for k in ("full", kind))
        summary[kind] = {
            "mean error, full": float(full.mean()),
            "mean error": float(other.mean()),
            "p of a paired t-test": float(ttest_rel(full, other).pvalue),
            "sets with p < 0.05 by McNemar": [r["set"] for r in rows if r[f"p, {kind}"] < 0.05],
        }
        print(kind, summary[kind])
    title = "1-NN errors with 8-bit values and 128 points"
    _records.write_cpu(options.output, title, rows, summary=summary)


if __name__ == "__main__":
    main()
