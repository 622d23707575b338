"""Accuracy of the shapelet transformer before a linear classifier, on the sets of the archive.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.shapelet_transforms

writes `benchmarks/results/shapelet-transforms.json`, one row for each set of `reference.csv`,
beside the accuracies that it has of other shapelet methods: the random dilated shapelet transform
(RDST) and the shapelet transform (STC), on the same split. Defaults throughout, nothing is tuned:
`make_pipeline(ShapeletTransformer(), StandardScaler(), RidgeClassifierCV(...))`, for some seeds.
The last row is the mean of the sets that have the columns.
"""

import argparse
import csv
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _records
from benchmarks._gpu import device_and_versions
from benchmarks.shapelets.shapelet_forests import load
from skts import ShapeletTransformer

#: Strengths that leave-one-out errors of the training series choose among.
ALPHAS = np.logspace(-3, 3, 13)
COLUMNS = {"RDST": "acc_rdst", "STC": "acc_stc", "random shapelet forest": "acc_rsf"}


def scored(name, seed, engine):
    """Accuracy on the test series, and seconds to transform and to fit all that follows."""
    X, y, Z, z = load(os.environ["SKTS_DATA"], name)
    transformer = ShapeletTransformer(random_state=seed, engine=engine)
    start = time.perf_counter()
    table, other = transformer.fit_transform(X, y), transformer.transform(Z)
    between = time.perf_counter()
    head = make_pipeline(StandardScaler(copy=False), RidgeClassifierCV(ALPHAS)).fit(table, y)
    accuracy = float(head.score(other, z))
    return accuracy, between - start, time.perf_counter() - between


def rows(names, options):
    """One row for each set that there is time for; the last is their mean."""
    begin, found = time.perf_counter(), []
    for name in names:
        if time.perf_counter() - begin > options.patience:
            break
        try:
            runs = [scored(name["name"], seed, options.engine) for seed in range(options.seeds)]
        except ValueError as error:
            # a series of the test that is shorter than a shapelet has infinite distances
            yield {"set": name["name"], "not computed": str(error)[:80]}
            continue
        accuracy, seconds, of_head = np.mean(runs, axis=0).tolist()
        found.append(
            {"set": name["name"], "accuracy": accuracy}
            | {
                title: float(name[column]) if name[column] else None
                for title, column in COLUMNS.items()
            }
            | {"transform of all, s": seconds, "classifier, s": of_head}
        )
        yield found[-1]
    both = [row for row in found if row["RDST"] is not None]
    if both:
        keys = ("accuracy", *COLUMNS)
        yield {"set": f"mean of {len(both)}"} | {
            key: float(np.mean([row[key] for row in both if row[key] is not None])) for key in keys
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--engine", default="numba")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=3600, help="seconds to start sets in")
    parser.add_argument("--commit", help="what to record where there is no git")
    parser.add_argument(
        "--output", type=Path, default=_records.RESULTS / "shapelet-transforms.json"
    )
    options = parser.parse_args()
    folder = os.environ.get("SKTS_DATA")
    if not folder:
        sys.exit("SKTS_DATA names no folder of data")
    warnings.filterwarnings("ignore", message=".*constant.*")
    with (Path(folder) / "reference.csv").open() as file:
        names = [
            row
            for row in csv.DictReader(file)
            if (Path(folder) / "ucr" / f"{row['name']}.npz").exists()
        ]
    # those with other accuracies, and of these the small ones first, should time run out
    names.sort(key=lambda row: (not row["acc_rdst"], int(row["n_train"]) + int(row["n_test"])))
    more = {}
    if options.engine == "cupy":
        more["device"], more["versions"] = device_and_versions()
    else:
        more["device"] = "CPU"
        more["versions"] = _records.versions("skts", "numpy", "numba", "scikit-learn")
    kept = []
    for row in rows(names, options):
        print(row, flush=True)
        kept.append(row)
        found = _records.record(
            "Accuracy of the shapelet transformer", rows=kept, commit=options.commit, **more
        )
        _records.write(options.output, found)


if __name__ == "__main__":
    main()
