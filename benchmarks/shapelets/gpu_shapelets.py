"""Shapelet searches and trees on one GPU: kernel speed, and wall time from host arrays to trees.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.gpu_shapelets

takes some minutes, most of them on the CPU, and writes `benchmarks/results/gpu-shapelets.json`. The
folder holds `ucr/*.npz`. Every split is compared with that of the CPU engine, every tree with the
one that `shapelet_trees.py` has recorded: all of its shapelets, thresholds and leaves.
"""

import os
import sys
import time
from itertools import chain
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, launch_seconds, make_parser, verdict
from benchmarks.shapelets import shapelet_trees
from benchmarks.shapelets.paper_shapelets import (
    OTHER_SHAPE,
    TABLE,
    load,
    root,
    same_split,
    table_lengths,
    work,
)
from skts.engines import Series, run

#: Lengths of OSULeaf, must and reach in seconds.
ROOTS = (("in steps of 10", 10, 0.5, 0.1), ("all", 1, 1.0, 0.4))


def kernel_rows(folder, options):
    """The walk on the device alone, see `launch_seconds`, over OSULeaf and sets of other widths."""
    from skts.engines.cupy.shapelets import walk as shapelet_walk

    for name, length, must, reach in (
        ("OSULeaf", 44, None, None),
        ("OSULeaf", 150, None, None),
        ("OSULeaf", 300, None, None),
        ("Wafer", 20, None, None),
        ("Haptics", 100, None, None),
    ):
        X = load(folder, name)[0]
        n, width = X.shape
        on_device = shapelet_walk.lay(Series(X[:, np.newaxis], np.full(n, width)), 0)
        with launch_seconds(shapelet_walk, "segments<") as elapsed:
            for _ in range(5):
                heads = shapelet_walk.Walk(on_device, 0, n, length, 1)((length,))
        # distances of some candidates
        chosen = np.random.default_rng(0).choice(n, 8, replace=False)
        scores = (heads.scores[0].get().astype(np.int64) << 32).view(np.float64)
        parts = heads.errors, heads.floors, heads.weights
        errors, floors, weights = (part[0].get() for part in parts)
        right = True
        for a in chosen:
            for b in chosen:
                if a != b:
                    exact = 1 - best_correlations(X[a], X[b], length)
                    bound = errors[a, b] * weights[a] + floors[a] + 2**-19 * exact
                    right = right and bool(np.all(np.abs(scores[b, a] - exact) <= bound))
        cells = n * (n - 1) / 2 * (width - length + 1) ** 2
        yield {
            "work": f"kernel, {name}, {n} series of {width} points, length {length}",
            "value": cells / median(elapsed[1:]) / 1e12,
            "unit": "Tcells/s",
            "must": must,
            "reach": reach,
            "checked": verdict(right, "correlations of 56 pairs by NumPy"),
        }


def best_correlations(x, y, length):
    """Best correlation of each window of a series with those of another."""

    def normal(line):
        windows = np.lib.stride_tricks.sliding_window_view(line, length)
        windows = windows - windows.mean(axis=1, keepdims=True)
        norm = np.sqrt((windows**2).sum(axis=1, keepdims=True))
        return windows / np.where(norm > 1e-12, norm, np.inf)

    return (normal(x) @ normal(y).T).max(axis=1)


def root_rows(folder, options):
    """The search of the root of OSULeaf, of new arrays, so that nothing is prepared."""
    X, y = load(folder, "OSULeaf")[:2]
    for title, step, must, reach in ROOTS:
        lengths = range(10, X.shape[1] + 1, 10) if step == 10 else range(3, X.shape[1] + 1)
        elapsed = []
        for _ in range(4):
            search = root(X.copy(), y, lengths)
            start = time.perf_counter()
            found = run(search, engine="cupy")
            elapsed.append(time.perf_counter() - start)
        start = time.perf_counter()
        expected = run(root(X.copy(), y, lengths), engine="numba") if options.check else found
        yield {
            "work": f"root search, OSULeaf, lengths {title}",
            "value": median(elapsed[1:]),
            "unit": "s",
            "must": must,
            "reach": reach,
            "first, s": elapsed[0],
            "Tcells/s": work(X, lengths) / median(elapsed[1:]) / 1e12,
            "the CPU engine here, s": time.perf_counter() - start,
            "checked": verdict(same_split(found, expected), "the CPU engine, bit by bit")
            if options.check
            else "not checked",
        }


def tree_rows(folder, options):
    """Whole trees of the sets of table II, compared with those that the CPU engine has grown."""
    names = [name for name in TABLE if not options.sets or name in options.sets]
    known, total, verdicts = shapelet_trees.recorded(), 0.0, []
    for name in names:
        lengths = table_lengths(name, load(folder, name)[0])
        # from new arrays each time, so that nothing is prepared
        grown = [shapelet_trees.grow(folder, (name, lengths, ()), "cupy") for _ in range(4)]
        seconds = median(row["seconds of fit"] for row in grown[1:])
        total += 0.0 if name in OTHER_SHAPE else seconds
        verdicts.append(shapelet_trees.compared(grown[-1], known))
        there = " (69 x 364 there)" if name in OTHER_SHAPE else ""
        yield {
            "work": f"whole tree, {TABLE[name].title}{there}, lengths {lengths[0]} to "
            f"{lengths[-1]}, step {lengths.step}",
            "value": seconds,
            "unit": "s",
            "must": 5.0 if name in OTHER_SHAPE else None,
            "reach": 3.0 if name in OTHER_SHAPE else None,
            "leaves": grown[-1]["leaves"],
            "accuracy": grown[-1]["accuracy"],
            "the paper's GPU, distances alone, s": TABLE[name].gpu,
            "checked": verdicts[-1],
        }
    checked = [text for text in verdicts if text != shapelet_trees.NOT_CHECKED]
    failed = any(text.startswith("FAILED") for text in checked)
    yield {
        "work": "whole trees of table II, Haptics apart, in all",
        "value": total,
        "unit": "s",
        "must": 3.0,
        "reach": 1.2,
        "checked": verdict(not failed, f"{len(checked)} digests of the CPU engine's trees")
        if checked
        else shapelet_trees.NOT_CHECKED,
    }


def main():
    parser = make_parser(__doc__, "gpu-shapelets.json")
    parser.add_argument("--sets", nargs="+", help="trees of these sets only")
    parser.add_argument("--parts", nargs="+", default=["kernel", "root", "tree"])
    parser.add_argument(
        "--no-check", dest="check", action="store_false", help="do not compare with the CPU engine"
    )
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")
    parts = {"kernel": kernel_rows, "root": root_rows, "tree": tree_rows}
    rows = chain.from_iterable(parts[part](folder, options) for part in options.parts)
    keep_rows("Shapelets on a GPU", rows, options)


if __name__ == "__main__":
    main()
