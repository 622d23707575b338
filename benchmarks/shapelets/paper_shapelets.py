"""Shapelet trees: the distances and trees of Chang, Deka, Hwu and Roth's paper, and accuracies.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.paper_shapelets accuracy
    SKTS_DATA=<folder> python -m benchmarks.shapelets.paper_shapelets table
    SKTS_DATA=<folder> python -m benchmarks.shapelets.paper_shapelets ladder

write `benchmarks/results/papers-shapelets-accuracy.json`, `papers-shapelets.json` and
`papers-shapelets-ladder.json`.

*accuracy*: whole trees on the sets of `reference.csv` that have the accuracy of an exact shapelet
tree, with its lengths, a quarter to two thirds of the series, all of them; and OSULeaf and Wafer,
of which the paper states accuracies, with its lengths (section VI-C). Sets come in the order of
their work; one that takes longer than `--limit` seconds is given up, and says so.

*table*: table II of the paper, the distances of all candidates of all lengths from 3 points on
(of multiples of 10 where the paper does that), and the search of the root; the paper's columns are
the original program, its optimised form, and its GPU program.

*ladder*: the same search on small sets by plain compiled loops. "windows": every window is
normalised and compared. "reuse": sums of products of a pair of series serve all windows and
lengths. "bound": as before, and a candidate is left once no order of its remaining distances
could reach the best gain so far (checked after every fourth distance). All must find the same
gain.
"""

import argparse
import csv
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

from benchmarks import _records
from benchmarks._gpu import device_and_versions
from skts import ShapeletTreeClassifier
from skts.engines import Criterion, Series, ShapeletSearch, run

#: Sets of table II at hand: the name there, whether only multiples of 10 are tried, and seconds
#: of the original program, the optimised one, and the GPU.
TABLE = {
    "DiatomSizeReduction": ("Diatom", False, 201.2, 52.2, 1.6),
    "MoteStrain": ("Motes", False, 3.5, 1.0, 0.0),
    "SonyAIBORobotSurface1": ("Sony", False, 1.9, 0.5, 0.0),
    "ECGFiveDays": ("ECGFiveD", False, 22.5, 5.9, 0.2),
    "FaceFour": ("FaceFour", False, 474.2, 125.0, 3.8),
    "Symbols": ("Symbols", False, 768.5, 202.2, 8.3),
    "Coffee": ("Coffee", False, 346.0, 90.6, 3.0),
    "OliveOil": ("OliveOil", False, 3308.9, 867.6, 31.2),
    "CBF": ("CBF", False, 100.3, 24.1, 0.4),
    "ArrowHead": ("Arrowhead", False, 1444.5, 391.5, 17.9),
    "Beef": ("Beef", False, 1836.9, 471.7, 18.1),
    "GunPoint": ("Gun_Point", False, 145.4, 38.6, 1.2),
    "Car": ("Car", False, 13769.2, 3622.0, 127.7),
    "Lightning2": ("Lighting2", True, 1870.8, 490.7, 17.0),
    "ItalyPowerDemand": ("ItalyPowerDemand", False, 0.4, 0.1, 0.0),
    "Haptics": ("Haptics (69 x 364 there)", False, 4418.3, 1179.4, 48.8),
    "Trace": ("Trace", False, 3920.6, 1060.2, 34.2),
    "ECG200": ("ECG200", False, 209.7, 62.9, 1.6),
    "Plane": ("Plane", False, 566.1, 152.9, 4.9),
    "OSULeaf": ("OSULeaf", True, 6366.2, 1711.0, 65.9),
    "ChlorineConcentration": ("Chlorine", True, 1970.1, 553.7, 17.2),
    "Wafer": ("Wafer", True, 6791.7, 1900.5, 54.6),
    "TwoPatterns": ("TwoPatterns", True, 4028.2, 1160.9, 33.1),
}
#: Archive sets that are larger than what the paper had, and take minutes.
OTHER_SHAPE = ("Haptics",)
#: Small enough for loops without reuse.
LADDER = ("ItalyPowerDemand", "SonyAIBORobotSurface1", "MoteStrain")


class TooLongError(Exception):
    """A set took more time than it was given."""


def load(folder, name):
    """Training series and classes, test series and classes."""
    with np.load(Path(folder) / "ucr" / f"{name}.npz") as data:
        parts = [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]
    return [part.astype(float) if part.ndim == 2 else part for part in parts]


def work(X, lengths):
    """Pairs of windows, each used both ways."""
    return len(X) ** 2 // 2 * sum((X.shape[1] - length + 1) ** 2 for length in lengths)


def within(seconds, function):
    """Call a function and stop it after so many seconds; its result and its time."""

    def stop(*_):
        raise TooLongError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(int(seconds))
    start = time.perf_counter()
    try:
        return function(), time.perf_counter() - start
    finally:
        signal.alarm(0)


def stated(folder):
    """Sets of which accuracies are stated: lengths of candidates, and what is stated where.

    That of the exact tree of `reference.csv`, with its lengths; and those of section VI-C of the
    paper, with multiples of ten and with all lengths from 3 on.
    """
    found = []
    with (Path(folder) / "reference.csv").open() as file:
        for row in csv.DictReader(file):
            if reference := row["acc_exact_shapelet_tree"]:
                length = load(folder, row["name"])[0].shape[1]
                lengths = range(max(3, length // 4), int(0.67 * length) + 1)
                found.append((row["name"], lengths, float(reference), None))
    for name, multiples, everything in (("Wafer", 0.9989, 0.9989), ("OSULeaf", 0.6901, 0.7231)):
        length = load(folder, name)[0].shape[1]
        found.append((name, range(10, length + 1, 10), None, multiples))
        found.append((name, range(3, length + 1), None, everything))
    return found


def unfitted(lengths, logic, engine):
    """A tree over candidates of some lengths."""
    return ShapeletTreeClassifier(
        min_length=lengths[0],
        max_length=lengths[-1],
        length_step=lengths.step,
        logic=logic,
        engine=engine,
    )


def accuracies(folder, options):
    """One row for each set and logic."""
    jobs = sorted(stated(folder), key=lambda job: work(load(folder, job[0])[0], job[1]))
    for name, lengths, reference, paper in jobs:
        X, y, Z, z = load(folder, name)
        for logic in ((), ("and", "or")):
            model = unfitted(lengths, logic, options.engine)
            row = {
                "set": name,
                "lengths": f"{lengths.start} to {lengths.stop - 1}, step {lengths.step}",
                "logic": " ".join(logic) or "none",
            }
            done = next((r for r in options.done if row.items() <= r.items()), None)
            if done is not None:
                yield done
                continue
            if options.sets and name not in options.sets:
                continue
            try:
                _, seconds = within(options.limit, partial(model.fit, X, y))
                row |= {
                    "accuracy": model.score(Z, z),
                    "exact tree of reference.csv": reference,
                    "the paper, section VI-C": paper,
                    "leaves": model.get_n_leaves(),
                    "seconds of fit": seconds,
                }
            except TooLongError:
                row["accuracy"] = None
                row["given up after, s"] = options.limit
            print(row, flush=True)
            yield row


def summary(rows):
    """Means over the sets that have a reference."""
    for logic in ("none", "and or"):
        chosen = [
            row
            for row in rows
            if row["logic"] == logic and row.get("exact tree of reference.csv") is not None
        ]
        if chosen:
            mine = np.mean([row["accuracy"] for row in chosen])
            theirs = np.mean([row["exact tree of reference.csv"] for row in chosen])
            yield {
                "set": f"mean of {len(chosen)} sets",
                "logic": logic,
                "accuracy": float(mine),
                "exact tree of reference.csv": float(theirs),
            }


def root(X, y, lengths):
    """The search of the root as a reduction."""
    values = np.ascontiguousarray(X[:, np.newaxis, :])
    labels = np.unique(y, return_inverse=True)[1]
    criterion = Criterion(labels, np.ones(labels.max() + 1))
    series = Series(values, np.full(len(X), X.shape[1]))
    return ShapeletSearch(series, np.arange(len(X)), tuple(lengths), criterion)


def table_lengths(name, X):
    """Lengths of candidates, as table II has them."""
    return range(10, X.shape[1] + 1, 10) if TABLE[name][1] else range(3, X.shape[1] + 1)


def table(folder, options):
    """One row for each set of table II."""
    sets = {name: load(folder, name)[:2] for name in TABLE if name not in OTHER_SHAPE}
    run(root(np.random.default_rng(0).normal(size=(8, 20)), np.arange(8) % 2, [5]))
    for name in sorted(
        sets, key=lambda name: work(sets[name][0], table_lengths(name, sets[name][0]))
    ):
        if options.sets and name not in options.sets:
            continue
        X, y = sets[name]
        chosen = table_lengths(name, X)
        row = {
            "set": TABLE[name][0],
            "series": len(X),
            "points": X.shape[1],
            "lengths": f"{chosen[0]} to {chosen[-1]}, step {chosen.step}",
            "paper: original, s": TABLE[name][2],
            "paper: optimised, s": TABLE[name][3],
            "paper: GPU, s": TABLE[name][4],
        }
        try:
            found, seconds = within(
                options.limit, partial(run, root(X, y, chosen), engine=options.engine)
            )
            model = unfitted(chosen, (), options.engine)
            row |= {
                "skts, root: distances and order lines, s": seconds,
                "Gcells/s": work(X, chosen) / seconds / 1e9,
                "gain, nats": found.cut.gain / 2.0**40 / len(X),
            }
            _, seconds = within(options.limit, partial(model.fit, X, y))
            row["skts, whole tree, s"] = seconds
            row["leaves"] = model.get_n_leaves()
        except TooLongError:
            row["given up after, s"] = options.limit
        print(row, flush=True)
        yield row


@njit(cache=True)
def _gain(distances, labels, counts):
    """The best information gain of an order line."""
    order = np.argsort(distances)
    n, best = labels.size, -1.0
    left = np.zeros(counts.size)
    for k in range(n - 1):
        left[labels[order[k]]] += 1
        if distances[order[k]] >= distances[order[k + 1]]:
            continue
        best = max(best, _split(left, counts, n))
    return best


@njit(cache=True)
def _split(left, counts, n):
    """Information gain of the numbers on the left."""
    total, sides, size = 0.0, 0.0, 0.0
    for c in range(counts.size):
        size += left[c]
    for c in range(counts.size):
        if counts[c] > 0:
            total -= counts[c] / n * np.log(counts[c] / n)
        if left[c] > 0:
            sides -= left[c] / n * np.log(left[c] / size)
        if counts[c] - left[c] > 0:
            sides -= (counts[c] - left[c]) / n * np.log((counts[c] - left[c]) / (n - size))
    return total - sides


@njit(cache=True)
def _bound(distances, known, labels, counts):
    """Upper bound of the gain: each class puts its open distances on the side that is best."""
    order = np.argsort(distances[:known])
    n, n_classes, best = labels.size, counts.size, 0.0
    rest = counts.astype(np.float64)
    for k in range(known):
        rest[labels[k]] -= 1
    left, tried = np.zeros(n_classes), np.zeros(n_classes)
    for k in range(-1, known):
        if k >= 0:
            left[labels[order[k]]] += 1
        for sides in range(1 << n_classes):
            size = 0.0
            for c in range(n_classes):
                tried[c] = left[c] + rest[c] * ((sides >> c) & 1)
                size += tried[c]
            if 0 < size < n:
                best = max(best, _split(tried, counts, n))
    return best


@njit(cache=True)
def _normalized(x):
    """A window of mean 0 and deviation 1; zeros where it is constant."""
    deviation = x.std()
    return (x - x.mean()) / deviation if deviation > 0 else x * 0


@njit(cache=True)
def by_windows(X, labels, counts, lengths):
    """The best gain: every window is normalised and compared."""
    n, width = X.shape
    best = -1.0
    line = np.empty(n)
    for length in lengths:
        for a in range(n):
            for i in range(width - length + 1):
                x = _normalized(X[a, i : i + length])
                for b in range(n):
                    line[b] = np.inf
                    for j in range(width - length + 1):
                        y, total = _normalized(X[b, j : j + length]), 0.0
                        for t in range(length):
                            total += (x[t] - y[t]) ** 2
                            if total >= line[b]:
                                break
                        line[b] = min(line[b], total)
                best = max(best, _gain(line, labels, counts))
    return best


@njit(cache=True)
def by_sums(X, labels, counts, lengths, prune):
    """The best gain: sums of products of a pair of series serve all windows and lengths."""
    n, width = X.shape
    sums, squares = np.zeros((n, width + 1)), np.zeros((n, width + 1))
    for b in range(n):
        sums[b, 1:], squares[b, 1:] = np.cumsum(X[b]), np.cumsum(X[b] ** 2)
    best = -1.0
    products = np.zeros((n, width + 1, width + 1))
    line = np.empty(n)
    for a in range(n):
        for b in range(n):
            for i in range(width):
                for j in range(width):
                    products[b, i + 1, j + 1] = products[b, i, j] + X[a, i] * X[b, j]
        for length in lengths:
            for i in range(width - length + 1):
                mean_a = (sums[a, i + length] - sums[a, i]) / length
                var_a = (squares[a, i + length] - squares[a, i]) / length - mean_a**2
                left = False
                for b in range(n):
                    top = -1.0
                    for j in range(width - length + 1):
                        mean_b = (sums[b, j + length] - sums[b, j]) / length
                        var_b = (squares[b, j + length] - squares[b, j]) / length - mean_b**2
                        product = products[b, i + length, j + length] - products[b, i, j]
                        scale = np.sqrt(max(var_a * var_b, 1e-300))
                        top = max(top, (product / length - mean_a * mean_b) / scale)
                    line[b] = 2 - 2 * top if a != b else 0.0
                    if prune and b % 4 == 3 and b + 1 < n:
                        left = _bound(line, b + 1, labels, counts) <= best
                        if left:
                            break
                if not left:
                    best = max(best, _gain(line, labels, counts))
    return best


def ladder(folder, options):
    """One row for each set and rung."""
    tiny, few = np.random.default_rng(0).normal(size=(8, 20)), np.arange(8) % 2
    counts = np.bincount(few)
    by_windows(tiny, few, counts, np.array([5]))
    by_sums(tiny, few, counts, np.array([5]), False)
    run(root(tiny, few, [5]), n_jobs=1)
    for name in LADDER:
        X, y = load(folder, name)[:2]
        labels = np.unique(y, return_inverse=True)[1]
        arguments = X, labels, np.bincount(labels), np.arange(3, X.shape[1] + 1)
        rungs = {
            "windows": partial(by_windows, *arguments),
            "reuse": partial(by_sums, *arguments, False),
            "reuse and bound": partial(by_sums, *arguments, True),
            "skts, 1 thread": lambda a=arguments: (
                run(root(a[0], a[1], a[3].tolist()), n_jobs=1).cut.gain / 2.0**40 / len(a[0])
            ),
        }
        gains = {}
        for rung, function in rungs.items():
            row = {"set": name, "series": len(X), "points": X.shape[1], "program": rung}
            try:
                gains[rung], seconds = within(options.limit, function)
                row |= {"seconds": seconds, "gain, nats": gains[rung]}
            except TooLongError:
                row["given up after, s"] = options.limit
            print(row, flush=True)
            yield row
        if np.ptp(list(gains.values())) > 1e-9:
            sys.exit(f"{name}: gains differ: {gains}")


PARTS = {
    "accuracy": (accuracies, "Accuracy of shapelet trees", "papers-shapelets-accuracy.json"),
    "table": (table, "Shapelet trees: table II of the paper", "papers-shapelets.json"),
    "ladder": (ladder, "Shapelet search: the paper's ladder", "papers-shapelets-ladder.json"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--sets", nargs="+", help="only these")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for one fit")
    parser.add_argument(
        "--resume", action="store_true", help="keep the accuracies that the output holds"
    )
    parser.add_argument("--engine", default="numba", help="engine of skts")
    parser.add_argument("--commit", help="what to record where git is not at hand")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")
    function, title, name = PARTS[options.part]
    output = options.output or _records.RESULTS / name
    options.done = []
    if options.resume:
        found = json.loads(output.read_text())["rows"]
        options.done = [row for row in found if row.get("accuracy") and "lengths" in row]
    device, versions = f"{_records.cpu()}, {os.cpu_count()} cores", ("skts", "numpy", "numba")
    versions = _records.versions(*versions)
    if options.engine == "cupy":
        device, versions = device_and_versions()
    rows = []
    for row in function(folder, options):
        rows.append(row)
        # what is done is kept, should a later set be interrupted
        means = list(summary(rows)) if options.part == "accuracy" else []
        _records.write(
            output,
            _records.record(
                title,
                device=device,
                versions=versions,
                rows=rows + means,
                commit=options.commit,
            ),
        )


if __name__ == "__main__":
    main()
