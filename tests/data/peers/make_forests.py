"""Make forests.npz: what wildboar gives for distances of subsequences, and for forests.

    PYTHON tests/data/peers/make_forests.py

run by an interpreter that has wildboar, draws the inputs and stores them with the results. What
each key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from wildboar.distance import pairwise_subsequence_distance
from wildboar.ensemble import ShapeletForestClassifier

HERE = Path(__file__).resolve().parent
SEEDS = range(3)


def draw_inputs(rng):
    walks = rng.standard_normal((9, 40)).cumsum(axis=1)
    flat = rng.standard_normal((6, 40)).cumsum(axis=1)
    flat[::2, 8:25] = 1.5
    scales = rng.standard_normal((5, 40)).cumsum(axis=1) * 10.0 ** np.arange(-4, 6, 2)[:, None]
    return {"walks": walks, "flat": flat, "scales": scales}


def draw_pieces(rng, X, count=25):
    """Series, start and length of some subsequences that are not constant."""
    found = []
    while len(found) < count:
        length = int(rng.integers(4, X.shape[1] + 1))
        row, start = int(rng.integers(len(X))), int(rng.integers(X.shape[1] - length + 1))
        if np.ptp(X[row, start : start + length]) > 0:
            found.append((row, start, length))
    return np.array(found)


def draw_shapes(rng, n):
    """A bump or a saw of 20 points somewhere in noise, or none of both."""
    X, y = np.round(rng.standard_normal((n, 80)), 2), np.arange(n) % 3
    bump = np.round(3 * np.hanning(20), 2)
    saw = np.round(1.5 * np.sin(np.arange(20) * 1.2), 2)
    for row, label in zip(X, y, strict=True):
        start = rng.integers(61)
        row[start : start + 20] += (bump, saw, 0.0)[label]
    return X, y


def main():
    rng = np.random.default_rng(20261124)
    stored = {}
    for name, X in draw_inputs(rng).items():
        pieces = draw_pieces(rng, X)
        queries = [X[row, start : start + length] for row, start, length in pieces.tolist()]
        found = [
            pairwise_subsequence_distance(query, X, metric="scaled_euclidean").ravel()
            for query in queries
        ]
        stored |= {f"input.{name}": X, f"pieces.{name}": pieces, f"distances.{name}": found}
    stored["shapes_X"], stored["shapes_y"] = draw_shapes(rng, 60)
    stored["shapes_Z"], stored["shapes_z"] = draw_shapes(rng, 150)
    stored["accuracies"] = [
        ShapeletForestClassifier(100, random_state=seed)
        .fit(stored["shapes_X"], stored["shapes_y"])
        .score(stored["shapes_Z"], stored["shapes_z"])
        for seed in SEEDS
    ]
    versions = {"wildboar": version("wildboar"), "python": python_version()}
    np.savez_compressed(HERE / "forests.npz", versions=json.dumps(versions), **stored)
    print(versions, stored["accuracies"])


if __name__ == "__main__":
    main()
