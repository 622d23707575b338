"""Make medoids.npz: swaps, BUILD and alternation of the package kmedoids.

    PYTHON tests/data/peers/make_medoids.py

run by an interpreter that has kmedoids, draws the inputs and stores them with the results. What
each key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import kmedoids
import numpy as np

HERE = Path(__file__).resolve().parent
STARTS = {3: (0, 1, 2), 6: (5, 11, 17, 23, 29, 35), 12: tuple(range(40, 28, -1))}


def dtw(x, y):
    """Dynamic time warping with squared costs, in plain loops."""
    D = np.full((len(x) + 1, len(y) + 1), np.inf)
    D[0, 0] = 0
    for i in range(len(x)):
        for j in range(len(y)):
            D[i + 1, j + 1] = (x[i] - y[j]) ** 2 + min(D[i, j], D[i, j + 1], D[i + 1, j])
    return np.sqrt(D[-1, -1])


def main():
    X = np.cumsum(np.random.default_rng(20261).standard_normal((60, 24)), axis=1)
    D = np.array([[dtw(x, y) for y in X] for x in X])
    found = {"input.walks": X}
    for k, start in STARTS.items():
        given = np.array(start, dtype=np.uint64)
        results = {
            "swaps": kmedoids.fasterpam(D, given.copy(), 100, n_cpu=1),
            "alternation": kmedoids.alternating(D, given.copy(), 100),
            "build": kmedoids.pam_build(D, k),
        }
        if k == 12:
            # a cluster of two has two medoids: which is taken differs, and all that follows
            del results["alternation"]
        for name, result in results.items():
            found[f"{name}.{k}.medoids"] = np.asarray(result.medoids, np.int64)
            found[f"{name}.{k}.labels"] = np.asarray(result.labels, np.int32)
            found[f"{name}.{k}.inertia"] = float(result.loss)
        found[f"start.{k}"] = given.astype(np.int64)
    versions = {"kmedoids": f"{version('kmedoids')} (Python {python_version()})"}
    target = HERE / "medoids.npz"
    np.savez_compressed(target, versions=json.dumps(versions), **found)
    print(f"{target.name}: {len(found)} arrays, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
