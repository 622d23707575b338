"""A vote of distances: 1-NN errors of each on the UCR sets at hand, beside published ones.

    SKTS_DATA=<folder> python -m benchmarks.elastic.vote --seconds 20

adds rows to `benchmarks/results/elastic-vote.json`, one for each set and distance, small sets
first, until the time is over. Rows that the record holds already are kept while the code is as it
was, so that the same command goes on. ``--sets GunPoint Coffee`` and ``--metrics msm twe`` choose;
``--workers 8`` computes eight rows at a time, of which each holds times that are not its own.
Each row has the error on the test series with the usual parameters and with those that
`elastic_parameter_search` chooses on the training series (a hundred values), the error left out,
and the times; published errors are those of `reference.csv`. The last rows are means over the sets
that have all distances; pages quote them.
"""

import argparse
import csv
import json
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks import _gpu, _records
from skts import DTWNearestNeighbor
from skts._metrics import METRICS
from skts.neighbors import elastic_parameter_search

#: "frechet" is another name.
NAMES = [name for name in METRICS if name != "frechet"]
#: Published errors of 1-NN.
PUBLISHED = {
    "published, Euclidean": "err_1nn_ed",
    "published, DTW": "err_1nn_dtw_full",
    "published, DTW, window chosen": "err_1nn_dtw_learned",
}


@cache
def load(folder, name):
    """Training series and labels, test series and labels; None of sets with gaps."""
    with np.load(folder / "ucr" / f"{name}.npz") as data:
        parts = [data[key] for key in ("X_train", "y_train", "X_test", "y_test")]
    return parts if all(np.isfinite(part).all() for part in (parts[0], parts[2])) else None


def timed(function):
    """What a function returns, and the seconds that it took."""
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def row_of(parts, name, metric, published, engine):
    """Errors and times of a distance on a set."""
    X, y, X_test, y_test = parts

    def error(**options):
        model = DTWNearestNeighbor(**options, engine=engine).fit(X, y)
        return float(np.mean(model.predict(X_test) != y_test))

    # compiles
    few = {"metric": metric, "engine": engine}
    elastic_parameter_search(X[:4, :8], y[:4], **few)
    DTWNearestNeighbor(**few).fit(X[:4, :8], y[:4]).predict(X_test[:2, :8])
    usual, s_usual = timed(lambda: error(metric=metric))
    search, s_search = timed(lambda: elastic_parameter_search(X, y, **few))
    chosen, s_chosen = timed(lambda: error(**search.best_params))
    best = {"window": search.best_params["window"], **(search.best_params["metric_params"] or {})}
    return {
        "set": name,
        "metric": metric,
        "train": len(X),
        "test": len(X_test),
        "points": X.shape[-1],
        "error, usual": usual,
        "error, chosen": chosen,
        "error left out": search.best_error,
        "values": len(search.params),
        "chosen": {key: value for key, value in best.items() if value is not None},
        "s, usual": s_usual,
        "s, search": s_search,
        "s, chosen": s_chosen,
        **{key: float(published[column]) for key, column in PUBLISHED.items() if published},
    }


def means(rows):
    """Means over the sets that have all distances, in percent."""
    sets = {}
    for row in rows:
        sets.setdefault(row["set"], {})[row["metric"]] = row
    complete = [found for found in sets.values() if set(found) == set(NAMES)]
    if not complete:
        return
    yield {"work": "complete sets", "value": len(complete), "unit": "sets"}
    for metric in NAMES:
        for kind in ("usual", "chosen"):
            errors = [found[metric][f"error, {kind}"] for found in complete]
            value = 100 * float(np.mean(errors))
            yield {"work": f"mean error, {metric}, {kind}", "value": value, "unit": "%"}
    for key in PUBLISHED:
        errors = [found["euclidean"][key] for found in complete]
        yield {"work": f"mean error, {key}", "value": 100 * float(np.mean(errors)), "unit": "%"}


def earlier(path):
    """Rows of the record, one for each set and distance; none if the code has changed since."""
    if not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    if not _records.unchanged(record):
        print("the code has changed: all is computed again")
        return []
    return [row for row in record["rows"] if "metric" in row]


def work_of(folder, rows, published, options):
    """Arguments of `row_of`, but for the series: of all sets and distances that have no row yet."""
    done = {(row["set"], row["metric"]) for row in rows}
    paths = sorted((folder / "ucr").glob("*.npz"), key=lambda path: path.stat().st_size)
    for path in paths:
        name = path.stem
        left = [metric for metric in options.metrics if (name, metric) not in done]
        if not left or (options.sets and name not in options.sets) or load(folder, name) is None:
            continue
        for metric in left:
            yield folder, name, metric, published.get(name), options.engine


def computed(folder, name, *more):
    """The row of a set and a distance."""
    return row_of(load(folder, name), name, *more)


def in_turn(work, seconds, workers):
    """Rows as they are done, by one process or several; none is begun after these seconds."""
    start = time.perf_counter()
    timely = (one for one in work if time.perf_counter() - start <= seconds)
    if workers == 1:
        yield from (computed(*one) for one in timely)
        return
    # a process that is forked has no CUDA
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        under_way = {pool.submit(computed, *one) for one in islice(timely, workers)}
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            under_way |= {pool.submit(computed, *one) for one in islice(timely, len(done))}
            yield from (row.result() for row in done)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--engine", default="numba")
    parser.add_argument("--seconds", type=float, default=20.0, help="begin nothing after these")
    parser.add_argument("--workers", type=int, default=1, help="processes")
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
    rows = earlier(options.output)
    device, versions = _records.cpu(), _records.versions("skts", "numpy", "numba")
    if options.engine == "cupy":
        device, versions = _gpu.device_and_versions()
    work = work_of(folder, rows, published, options)
    for row in in_turn(work, options.seconds, options.workers):
        print(row, flush=True)
        rows.append(row)
        found = _records.record(
            "1-NN errors of the elastic distances on UCR sets",
            device=device,
            versions=versions | _records.versions("scikit-learn"),
            rows=[*rows, *means(rows)],
            commit=options.commit,
        )
        _records.write(options.output, found)


if __name__ == "__main__":
    main()
