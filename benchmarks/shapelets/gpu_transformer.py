"""The shapelet transformer on one GPU: kernel time, and wall time from host arrays to features.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.gpu_transformer

takes a minute, most of it on the CPU, and writes `benchmarks/results/gpu-transformer.json`. The
folder holds `ucr/*.npz`. Features are compared with those of the CPU engine, bit by bit.
"""

import os
import sys
import time
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, launch_seconds, make_parser, verdict
from benchmarks._sets import archive
from skts import ShapeletTransformer

#: Of the random dilated shapelet transform: 10,000 shapelets, those of one start.
OPTIONS = {"max_candidates": 10_000, "random_state": 0}


def parts(X, Z, y, engine):
    """Features of both halves, and seconds: to fit, to transform one and the other."""
    model, seconds = ShapeletTransformer(**OPTIONS, engine=engine), []
    # from new arrays each time, so that nothing is prepared
    X, Z = X.copy(), Z.copy()
    found = []
    for work in (lambda: model.fit(X, y), lambda: model.transform(X), lambda: model.transform(Z)):
        start = time.perf_counter()
        found.append(work())
        seconds.append(time.perf_counter() - start)
    return found[1:], seconds


def rows(options):
    """OSULeaf: 200 training series and 242 of the test, of 427 points."""
    from skts.engines.cupy import loading

    X, y, Z, _ = archive("OSULeaf")
    found, first = parts(X, Z, y, "cupy")
    runs = [parts(X, Z, y, "cupy")[1] for _ in range(7)]
    with launch_seconds(loading, "match_dilated") as elapsed:
        parts(X, Z, y, "cupy")
    expected, of_cpu = parts(X, Z, y, "numba")
    if options.check:
        expected, of_cpu = parts(X, Z, y, "numba")
    right = all(map(np.array_equal, found, expected))
    names = "fit, s", "transform of the training series, s", "transform of the test series, s"
    yield {
        "work": "fit and transform of all, OSULeaf, 10,000 dilated shapelets",
        "value": median(map(sum, runs)),
        "unit": "s",
        "must": 0.2,
        "reach": 0.05,
        "first, s": sum(first),
        **{
            name: median(column)
            for name, column in zip(names, zip(*runs, strict=True), strict=True)
        },
        "kernels, s": sum(elapsed),
        "the CPU engine here, s": sum(of_cpu),
        "checked": verdict(right, "the CPU engine, bit by bit"),
    }
    options = {"max_candidates": None, "lengths": [60], "dilations": [1]}
    best = ShapeletTransformer(100, **options, engine="cupy")
    start = time.perf_counter()
    best.fit(X, y)
    seconds = time.perf_counter() - start
    again = ShapeletTransformer(**best.get_params() | {"engine": "numba"}).fit(X, y)
    alike = all(a[1:7] == b[1:7] for a, b in zip(best.shapelets_, again.shapelets_, strict=True))
    yield {
        "work": "fit, OSULeaf, the best 100 of all shapelets of 60 points",
        "value": seconds,
        "unit": "s",
        "must": None,
        "reach": None,
        "checked": verdict(alike, "the CPU engine"),
    }


def main():
    parser = make_parser(__doc__, "gpu-transformer.json")
    parser.add_argument("--no-check", dest="check", action="store_false", help="one run on the CPU")
    options = parser.parse_args()
    if not os.environ.get("SKTS_DATA"):
        sys.exit("SKTS_DATA names no folder of data")
    keep_rows("The shapelet transformer on a GPU", rows(options), options)


if __name__ == "__main__":
    main()
