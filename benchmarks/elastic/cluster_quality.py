"""Rand indexes of k-means and k-medoids under warping, of k-Shape and of k-means on the UCR sets.

    SKTS_DATA=<folder> python -m benchmarks.elastic.cluster_quality --engine cupy

writes `benchmarks/results/cluster-quality.json`. As in `benchmarks.kshape.rand_indexes`, training
and test series are joined and z-normalised, and there are as many clusters as classes; the
published columns are those of `reference.csv`. Each method is run from three seeds, once each, so
that means say what one run gives.

k-medoids takes the distances of all pairs. Where these are, on the CPU, more than `MOST_CELLS`
cells of warping matrices, it takes every second series of the set, or every third, and so on; the
row says so ("one series of"). `--add` keeps the rows that a record has, and runs the other sets.
"""

import argparse
import csv
import itertools
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, rand_score

from benchmarks import _records
from benchmarks._gpu import device_and_versions
from benchmarks._sets import load
from skts import DTWKMeans, DTWKMedoids, KShapeClusterer

SEEDS = range(3)
PUBLISHED = ("ri_kshape_authors", "ri_kshape_kasba10", "ri_kavg_kasba10")
#: Cells of all pairs of k-medoids at most, by engine and method.
MOST_CELLS = {"numba": {"DTWKMedoids, 5% band": 4e9, "DTWKMedoids, MSM": 2e9}, "cupy": {}}


def methods(k, engine):
    """Functions of a seed that make a clusterer, by name."""
    on = {"engine": engine, "n_init": 1}
    return {
        "k-Shape": lambda seed: KShapeClusterer(k, random_state=seed, **on),
        "DTWKMeans": lambda seed: DTWKMeans(k, random_state=seed, **on),
        "DTWKMeans, 5% band": lambda seed: DTWKMeans(k, window=0.05, random_state=seed, **on),
        "DTWKMedoids, 5% band": lambda seed: DTWKMedoids(k, window=0.05, random_state=seed, **on),
        "DTWKMedoids, MSM": lambda seed: DTWKMedoids(k, metric="msm", random_state=seed, **on),
        "k-means": lambda seed: KMeans(k, random_state=seed, n_init=1),
    }


def thinning(method, n, length, engine):
    """Of how many series one is taken, so that all pairs are no more than `MOST_CELLS` cells."""
    cells = length * length * (0.1 if "band" in method else 1.0) / 2
    most = MOST_CELLS[engine].get(method, np.inf)
    return next(step for step in itertools.count(1) if (n / step) ** 2 * cells <= most)


def row_of(folder, name, published, engine):
    """Means over the seeds for one set."""
    X, y = load(folder, name)
    X = (X - X.mean(axis=1, keepdims=True)) / np.maximum(X.std(axis=1, keepdims=True), 1e-300)
    k = len(np.unique(y))
    row = {"set": name, "series": len(X), "points": X.shape[1], "classes": k, "engine": engine}
    row |= {key: float(published[key]) for key in PUBLISHED if published.get(key)}
    for method, make in methods(k, engine).items():
        step = thinning(method, *X.shape, engine)
        start = time.perf_counter()
        labels = [make(seed).fit(X[::step]).labels_ for seed in SEEDS]
        row[f"{method}, s a run"] = (time.perf_counter() - start) / len(SEEDS)
        for name, score in (("Rand", rand_score), ("adjusted", adjusted_rand_score)):
            row[f"{method}, {name}"] = float(np.mean([score(y[::step], one) for one in labels]))
        if step > 1:
            row[f"{method}, one series of"] = step
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--engine", choices=MOST_CELLS, default="numba")
    parser.add_argument("--seconds", type=float, default=600.0, help="begin no set after these")
    parser.add_argument("--sets", nargs="+", help="names (default: all)")
    parser.add_argument("--add", action="store_true", help="to the sets that the record has")
    parser.add_argument("--note", help="what to record beside the rows")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "cluster-quality.json")
    options = parser.parse_args()
    if "SKTS_DATA" not in os.environ:
        sys.exit("set SKTS_DATA to the folder that holds ucr/ and reference.csv")
    warnings.simplefilter("ignore", ConvergenceWarning)
    folder = Path(os.environ["SKTS_DATA"])
    places = (folder / "reference.csv", folder / "ucr" / "reference.csv")
    with next(place for place in places if place.exists()).open(encoding="utf-8") as file:
        published = {row["name"]: row for row in csv.DictReader(file)}
    # small ones first
    names = sorted(
        (path.stem for path in (folder / "ucr").glob("*.npz")),
        key=lambda name: (folder / "ucr" / f"{name}.npz").stat().st_size,
    )
    start, rows = time.perf_counter(), []
    if options.add and options.output.exists():
        rows = json.loads(options.output.read_text())["rows"]
    done = {row["set"] for row in rows}
    for name in names:
        if name in done or (options.sets and name not in options.sets):
            continue
        if time.perf_counter() - start > options.seconds:
            break
        rows.append(row_of(folder, name, published.get(name, {}), options.engine))
        print(rows[-1], flush=True)
        device, versions = _records.cpu(), ("skts", "numpy", "numba", "scikit-learn")
        versions = _records.versions(*versions)
        if options.engine == "cupy":
            device, versions = device_and_versions()
        found = _records.record(
            "Clusters of UCR sets: k-Shape, k-means and k-medoids under warping, k-means",
            device=device,
            versions=versions,
            rows=rows,
            commit=options.commit,
            **({"note": options.note} if options.note else {}),
        )
        _records.write(options.output, found)


if __name__ == "__main__":
    main()
