"""Shapelet forests on one GPU: wall time from host arrays to fitted forests and classes.

    SKTS_DATA=<folder> python -m benchmarks.shapelets.gpu_forests

writes `benchmarks/results/gpu-forests.json`. The folder holds `ucr/*.npz`. Every forest is compared
with that of the CPU engine: shares of the classes of all test series, to the last bit.
"""

import os
import time
from statistics import median

import numpy as np

from benchmarks._gpu import keep_rows, make_parser, verdict
from benchmarks.shapelets.paper_shapelets import load
from skts import ShapeletForestClassifier

#: Sets and numbers of trees; must and reach in seconds of fit.
FORESTS = (
    ("OSULeaf", 100, 0.5, 0.15),
    ("OSULeaf", 1000, None, None),
    ("Haptics", 100, None, None),
    ("Wafer", 100, None, None),
)


def timed(work, *arguments):
    """Seconds of a call, and its result."""
    start = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - start, result


def rows(folder, options):
    """Two rows for each forest: fit and predict."""
    for name, count, must, reach in FORESTS:
        X, y, Z, z = load(folder, name)
        on_gpu, on_cpu = (
            ShapeletForestClassifier(count, random_state=0, engine=engine)
            for engine in ("cupy", "numba")
        )
        # of new arrays, so that nothing is prepared
        fits = [timed(on_gpu.fit, X.copy(), y)[0] for _ in range(4)]
        on_cpu.fit(X[:20], y[:20])
        cpu_fit, _ = timed(on_cpu.fit, X.copy(), y)
        predicts = [timed(on_gpu.predict_proba, Z.copy()) for _ in range(3)]
        cpu_predict, expected = timed(on_cpu.predict_proba, Z.copy())
        same = verdict(np.array_equal(predicts[-1][1], expected), "the CPU engine, bit by bit")
        title = f"{name}, {len(X)} series of {X.shape[1]} points, {count} trees"
        yield {
            "work": f"fit, {title}",
            "value": median(fits[1:]),
            "unit": "s",
            "must": must,
            "reach": reach,
            "first, s": fits[0],
            "the CPU engine here, s": cpu_fit,
            "checked": same,
        }
        yield {
            "work": f"predict {len(Z)} series, {title}",
            "value": median(one for one, _ in predicts),
            "unit": "s",
            "must": None,
            "reach": None,
            "the CPU engine here, s": cpu_predict,
            "accuracy": float(np.mean(on_gpu.classes_[expected.argmax(axis=1)] == z)),
            "checked": same,
        }


if __name__ == "__main__":
    chosen = make_parser(__doc__, "gpu-forests.json").parse_args()
    keep_rows("Shapelet forests on a GPU", rows(os.environ["SKTS_DATA"], chosen), chosen)
