"""Shapelet forests and trees of whole data sets: accuracies beside those of other models.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_forests
    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_forests --engine cupy

write `benchmarks/results/shapelet-forests.json`. For each set: the mean accuracy of forests of some
seeds (`--seeds`); seconds of fit and predict of the first, the first set with those of compiling;
its out-of-bag accuracy on the training series; accuracies of exact trees, where they are grown
within `--limit` seconds; and the columns of `reference.csv`. Gaps inside of series are bridged.
Test sets choose nothing: all parameters are the defaults.

With ``--engine cupy`` the forest of the first seed is grown on both engines, and all shares of
classes are compared to the last bit.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_forests --out-of-bag

prints out-of-bag accuracies of several parameters on the training sets, by which defaults may be
chosen.
"""

import csv
import os
import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import _records
from benchmarks._gpu import keep_rows, make_parser, verdict
from benchmarks.shapelets import paper_shapelets
from benchmarks.shapelets.paper_shapelets import TooLongError, within
from skts import ShapeletForestClassifier, ShapeletTreeClassifier

#: Accuracies of `reference.csv`: its column, and what it is of.
COLUMNS = {
    "acc_exact_shapelet_tree": "exact shapelet tree",
    "acc_rsf": "random shapelet forest",
    "acc_rdst": "RDST",
    "acc_stc": "STC",
    "acc_pf": "proximity forest",
}
#: Exact trees, and how their shapelets may be joined.
TREES = {"tree": ("and", "or"), "tree, no logic": (), "tree, logic by validation": "auto"}
#: Parameters of which `--out-of-bag` judges the forests.
SETTINGS = (
    {},
    {"max_candidates": 1},
    {"max_candidates": "sqrt"},
    {"max_candidates": 30},
    {"max_candidates": 100},
    {"max_length": 0.67},
    {"max_length": None},
    {"max_candidates": 20},
    {"logic": ("and", "or")},
)


def stated(folder):
    """Accuracies of other models, set by set."""
    found = {}
    with (Path(folder) / "reference.csv").open() as file:
        for row in csv.DictReader(file):
            numbers = {text: row[column] for column, text in COLUMNS.items()}
            found[row["name"]] = {k: float(v) for k, v in numbers.items() if v}
    return found


def load(folder, name):
    """Training series and classes, test series and classes; gaps inside of series are bridged."""
    X, y, Z, z = paper_shapelets.load(folder, name)
    return bridged(X), y, bridged(Z), z


def bridged(X):
    """Series with straight lines over their gaps; NaN at their ends is padding."""
    X = X.copy()
    for x in X:
        (there,) = np.nonzero(np.isfinite(x))
        inside = np.arange(there[-1] + 1)
        x[inside] = np.interp(inside, there, x[there])
    return X


def sets(folder, names):
    """Sets of the folder, or those that are named: least work first."""
    found = names or sorted(path.stem for path in (Path(folder) / "ucr").glob("*.npz"))
    return sorted(found, key=lambda name: _cost(*load(folder, name)[:2]))


def _cost(X, y):
    """What a forest costs, roughly."""
    return len(X) * X.shape[1] ** 2 * np.log(1 + len(X)) * len(np.unique(y)) ** 0.5


def forest_of(seed, engine, **options):
    """A forest that is not fitted."""
    return ShapeletForestClassifier(random_state=seed, engine=engine, **options)


def judged(folder, name, options):
    """One row: the forests of a set, and a tree."""
    X, y, Z, z = load(folder, name)
    row, found = {"set": name, "series": len(X), "classes": len(np.unique(y))}, []
    for seed in range(options.seeds):
        start = time.perf_counter()
        model = forest_of(seed, options.engine, oob_score=seed == 0).fit(X, y)
        middle = time.perf_counter()
        shares = model.predict_proba(Z)
        found.append(np.mean(model.classes_[shares.argmax(axis=1)] == z))
        if seed == 0:
            row |= {
                "seconds of fit": middle - start,
                "seconds of predict": time.perf_counter() - middle,
                "out-of-bag accuracy": model.oob_score_,
            }
            first = shares
    row |= {"forest": float(np.mean(found)), "forest, each seed": [float(one) for one in found]}
    row["checked"] = "not checked"
    if options.engine == "cupy":
        start = time.perf_counter()
        other = forest_of(0, "numba").fit(X, y)
        row["seconds of fit, numba"] = time.perf_counter() - start
        same = np.array_equal(other.predict_proba(Z), first)
        row["checked"] = verdict(same, "shares of the classes equal those of the CPU engine")
    row |= {title: _tree(X, y, Z, z, logic, options) for title, logic in TREES.items()}
    return row


def _tree(X, y, Z, z, logic, options):
    """Accuracy of an exact tree; None where it takes too long."""
    if options.limit <= 0:
        return None
    model = ShapeletTreeClassifier(logic=logic, engine=options.engine)
    try:
        within(options.limit, partial(model.fit, X, y))
    except TooLongError:
        return None
    return model.score(Z, z)


def shown(row):
    """Print a row, and return it."""
    print(row, flush=True)
    return row


def rows(folder, options):
    """A row for each set, then the means over those that have the accuracy of a random forest."""
    known, kept = stated(folder), []
    begin = time.monotonic()
    for name in sets(folder, options.sets):
        if time.monotonic() - begin > options.patience:
            break
        row = judged(folder, name, options) | known.get(name, {})
        kept.append(row)
        yield row
    chosen = [row for row in kept if "random shapelet forest" in row]
    if chosen:
        names = ("forest", "out-of-bag accuracy", *TREES, *COLUMNS.values())
        means = {"set": f"mean of {len(chosen)} sets", "checked": "not checked"}
        for name in names:
            known = [row[name] for row in chosen if row.get(name) is not None]
            if known:
                means[name] = float(np.mean(known))
            if 0 < len(known) < len(chosen):
                means[f"{name}, sets"] = len(known)
        yield means


def out_of_bag(folder, options):
    """Print out-of-bag accuracies on the training sets, set by set and in the mean."""
    found = {str(setting): [] for setting in SETTINGS}
    begin = time.monotonic()
    for name in sets(folder, options.sets):
        if time.monotonic() - begin > options.patience:
            break
        X, y = load(folder, name)[:2]
        for setting in SETTINGS:
            start = time.perf_counter()
            model = forest_of(0, options.engine, oob_score=True, **setting).fit(X, y)
            found[str(setting)].append(model.oob_score_)
            seconds = time.perf_counter() - start
            print(f"{name} {setting}: {model.oob_score_:.4f} in {seconds:.2f} s", flush=True)
    for setting, scores in found.items():
        print(f"mean of {len(scores)} sets, {setting}: {np.mean(scores):.4f}", flush=True)


if __name__ == "__main__":
    parser = make_parser(__doc__, "shapelet-forests.json")
    parser.add_argument("--engine", choices=["numba", "cupy"], default="numba")
    parser.add_argument("--sets", nargs="*", help="names of sets, instead of all")
    parser.add_argument("--seeds", type=int, default=5, help="forests of each set")
    parser.add_argument("--limit", type=float, default=60, help="seconds of an exact tree")
    parser.add_argument("--patience", type=float, default=1e9, help="seconds until the last set")
    parser.add_argument("--out-of-bag", action="store_true", help="of several parameters")
    chosen = parser.parse_args()
    data = os.environ["SKTS_DATA"]
    if chosen.out_of_bag:
        out_of_bag(data, chosen)
    else:
        title, found = "Accuracy of shapelet forests", rows(data, chosen)
        if chosen.engine == "cupy":
            keep_rows(title, found, chosen)
        else:
            _records.write_cpu(chosen.output, title, [*map(shown, found)], commit=chosen.commit)
