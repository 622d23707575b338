"""A vote of distances: 1-NN errors of each on the UCR sets at hand, beside published ones.

    SKTS_DATA=<folder> python -m benchmarks.elastic.vote --seconds 20

adds rows to `benchmarks/results/elastic-vote.json`, one for each set and distance, small sets
first, until the time is over; what the record holds already is not computed again, so that the same
command goes on. ``--sets GunPoint Coffee`` and ``--metrics msm twe`` choose. Each row has the error
on the test series with the usual parameters and with those that `elastic_parameter_search` chooses
on the training series (the hundred values of the literature), the error left out, and the times;
the published columns are those of `reference.csv`.
"""

import argparse
import csv
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import _records
from skts import DTWNearestNeighbor
from skts._metrics import METRICS
from skts.neighbors import elastic_parameter_search

#: "frechet" is another name.
NAMES = [name for name in METRICS if name != "frechet"]
PUBLISHED = ("err_1nn_ed", "err_1nn_dtw_full", "err_1nn_dtw_learned", "learned_w_pct", "acc_pf")


def load(folder, name):
    """Training series and labels, test series and labels; None of sets with gaps."""
    with np.load(folder / "ucr" / f"{name}.npz") as data:
        parts = [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]
    return parts if all(np.isfinite(part).all() for part in (parts[0], parts[2])) else None


def row_of(parts, name, metric, published, engine):
    """Errors and times of a distance on a set."""
    X, y, X_test, y_test = parts
    row = {"set": name, "metric": metric, "train": len(X), "test": len(X_test)}
    row |= {"points": X.shape[-1]}
    start = time.perf_counter()
    usual = DTWNearestNeighbor(metric=metric, engine=engine).fit(X, y)
    row["error, usual"] = float(np.mean(usual.predict(X_test) != y_test))
    row["s, usual"] = time.perf_counter() - start
    start = time.perf_counter()
    search = elastic_parameter_search(X, y, metric=metric, engine=engine)
    row["s, search"] = time.perf_counter() - start
    start = time.perf_counter()
    chosen = DTWNearestNeighbor(**search.best_params, engine=engine).fit(X, y)
    row["error, chosen"] = float(np.mean(chosen.predict(X_test) != y_test))
    row["s, chosen"] = time.perf_counter() - start
    row |= {"error left out": search.best_error, "values": len(search.params)}
    row |= {"window": search.best_params["window"], **(search.best_params["metric_params"] or {})}
    return row | {key: float(published[key]) for key in PUBLISHED if published.get(key)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--engine", default="numba")
    parser.add_argument("--seconds", type=float, default=20.0, help="begin nothing after these")
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--metrics", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument("--output", type=Path, default=_records.RESULTS / "elastic-vote.json")
    options = parser.parse_args()
    if "SKTS_DATA" not in os.environ:
        sys.exit("set SKTS_DATA to the folder that holds ucr/ and reference.csv")
    folder = Path(os.environ["SKTS_DATA"])
    with (folder / "reference.csv").open(encoding="utf-8") as file:
        published = {row["name"]: row for row in csv.DictReader(file)}
    rows = []
    if options.output.exists():
        rows = json.loads(options.output.read_text(encoding="utf-8"))["rows"]
    done = {(row["set"], row["metric"]) for row in rows}
    paths = sorted((folder / "ucr").glob("*.npz"), key=lambda path: path.stat().st_size)
    start = time.perf_counter()
    for path in paths:
        name = path.stem
        left = [metric for metric in options.metrics if (name, metric) not in done]
        if not left or (options.sets and name not in options.sets):
            continue
        parts = load(folder, name)
        for metric in left if parts is not None else ():
            if time.perf_counter() - start > options.seconds:
                return
            row = row_of(parts, name, metric, published.get(name, {}), options.engine)
            print(row, flush=True)
            rows.append(row)
            found = _records.record(
                "1-NN errors of the elastic distances on UCR sets",
                device=_records.cpu() if options.engine == "numba" else options.engine,
                versions=_records.versions("skts", "numpy", "numba", "scikit-learn"),
                rows=rows,
                commit=options.commit,
            )
            _records.write(options.output, found)


if __name__ == "__main__":
    main()
