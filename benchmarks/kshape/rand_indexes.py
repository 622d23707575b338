"""Rand indexes of k-Shape on the UCR sets at hand, beside published ones.

    SKTS_DATA=<folder> python -m benchmarks.kshape.rand_indexes --engine numba

writes `benchmarks/results/rand-indexes-kshape.json`, after each set. (The sets of table VIII of
Wang et al. are in `benchmarks.kshape.paper_kshape`.) The folder holds `ucr/*.npz` and
`reference.csv`, whose columns are the means of the authors' implementation and of kasba's over ten
runs. As there, training and test series are joined, and there are as many clusters as classes. Ten
seeds are run once each from random labels (the paper's start) and from "plusplus"; the least
inertia of the ten random starts is what `n_init="auto"` returns. "standardised again" is the
authors' variant of the centre, which z-normalises members after shifting; equation 8 of the paper,
and skts, do not.

Gaps of DodgerLoopDay are interpolated; tails of series of unequal length are zeros; whole rows are
z-normalised, as the published figures were made.
"""

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import rand_score

from benchmarks import _cores, _records
from benchmarks._sets import load
from skts import KShapeClusterer

SEEDS = range(10)


def restandardized_run(X, k, seed):
    """Labels of one run with the authors' centres: members z-normalised again after shifting."""
    from skts.metrics import pairwise_sbd

    Z = (X - X.mean(axis=1, keepdims=True)) / np.maximum(X.std(axis=1, keepdims=True), 1e-300)
    rng = np.random.RandomState(seed)
    labels = rng.randint(k, size=len(Z))
    labels[rng.permutation(len(Z))[:k]] = np.arange(k)
    shifts = np.zeros(len(Z), int)
    times = np.arange(Z.shape[1])
    for iteration in range(100):
        centers = np.empty((k, Z.shape[1]))
        for cluster in range(k):
            members = np.flatnonzero(labels == cluster)
            if members.size == 0:
                members = rng.randint(len(Z), size=1)
            source = times - shifts[members][:, None]
            inside = (source >= 0) & (source < len(times))
            A = np.where(inside, Z[members[:, None], source.clip(0, len(times) - 1)], 0.0)
            spread = A.std(axis=1, ddof=1, keepdims=True)
            A = (A - A.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
            _, _, vectors = np.linalg.svd(A, full_matrices=False)
            centers[cluster] = vectors[0] * np.sign(np.sum(A @ vectors[0]) or 1.0)
        distances, moves = pairwise_sbd(Z, centers, return_shifts=True, engine="numba")
        new = distances.argmin(axis=1)
        shifts = moves[np.arange(len(Z)), new]
        if iteration and np.array_equal(new, labels):
            break
        labels = new
    return labels


def row(folder, name, published, engine, *, authors):
    """The row of one set."""
    X, y = load(folder, name)
    k = len(np.unique(y))
    found = {"set": name, "series": len(X), "points": X.shape[1], "k": k} | published
    for init in ("random", "plusplus"):
        start = time.perf_counter()
        models = [
            KShapeClusterer(k, init=init, n_init=1, random_state=seed, engine=engine).fit(X)
            for seed in SEEDS
        ]
        found[init] = float(np.mean([rand_score(y, model.labels_) for model in models]))
        if init == "random":
            best = min(models, key=lambda model: model.inertia_)
            found["best inertia of ten"] = float(rand_score(y, best.labels_))
        found[f"{init}: iterations"] = float(np.mean([model.n_iter_ for model in models]))
        found[f"{init}: seconds"] = time.perf_counter() - start
    if authors and X.size < authors:
        labels = [restandardized_run(X, k, seed) for seed in SEEDS]
        found["standardised again"] = float(np.mean([rand_score(y, each) for each in labels]))
    print(", ".join(f"{key} {value}" for key, value in found.items()), flush=True)
    return found


def mean_rows(rows):
    """Means over the sets that a published column has, beside ours over the same sets."""
    for column in ("authors", "kasba"):
        having = [each for each in rows if each[column] is not None]
        if not having:
            continue
        mean = {"set": f"mean of {len(having)} sets that {column} has"}
        for key in (column, "random", "best inertia of ten", "plusplus"):
            mean[key] = float(np.mean([each[key] for each in having]))
        yield mean
    having = [each for each in rows if "standardised again" in each]
    if having:
        mean = {"set": f"mean of {len(having)} sets that were standardised again"}
        for key in ("random", "standardised again"):
            mean[key] = float(np.mean([each[key] for each in having]))
        yield mean


def write(rows, options):
    """Write the record: the rows of the sets that are done, and means over them."""
    device = options.engine
    if device == "numba":
        device = _cores.device(_cores.available())
    found = _records.record(
        "Rand indexes of k-Shape on UCR sets",
        device=device,
        versions=_records.versions("skts", "numpy", "numba", "scikit-learn"),
        rows=[*rows, *mean_rows(rows)],
        commit=options.commit,
    )
    _records.write(options.output, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--sets", nargs="+", help="names (default: all)")
    parser.add_argument(
        "--authors",
        type=int,
        default=200_000,
        metavar="POINTS",
        help="largest set for their variant",
    )
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument(
        "--output", type=Path, default=_records.RESULTS / "rand-indexes-kshape.json"
    )
    options = parser.parse_args()
    if not os.environ.get("SKTS_DATA"):
        sys.exit("SKTS_DATA does not name a folder of data")
    folder = Path(os.environ["SKTS_DATA"])
    # cycles among ten random starts are part of the method
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    with (folder / "reference.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            name = line["name"]
            if options.sets and name not in options.sets:
                continue
            if not (folder / "ucr" / f"{name}.npz").exists():
                continue
            published = {
                "authors": float(line["ri_kshape_authors"] or "nan"),
                "kasba": float(line["ri_kshape_kasba10"] or "nan"),
            }
            published = {
                key: None if np.isnan(value) else value for key, value in published.items()
            }
            rows.append(row(folder, name, published, options.engine, authors=options.authors))
            write(rows, options)
    for each in mean_rows(rows):
        print(each)


if __name__ == "__main__":
    main()
