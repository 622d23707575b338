"""Make shapelets.npz: dilated windows as aeon cuts and normalises them, and their distances.

    PYTHON tests/data/peers/make_shapelets.py

run by an interpreter that has aeon, draws the inputs and stores them with the distances. What each
key means is in README.md beside this file.
"""

import json
from importlib.metadata import version
from pathlib import Path
from platform import python_version

import numpy as np
from aeon.transformations.collection.shapelet_based._dilated_shapelet_transform import (
    get_all_subsequences,
    normalise_subsequences,
    sliding_mean_std_one_series,
)

HERE = Path(__file__).resolve().parent
#: Length, dilation, and whether windows are normalised.
KINDS = [(7, 1, True), (9, 4, True), (11, 16, True), (3, 2, True), (9, 8, False), (2, 5, False)]
#: Shapelets of each kind.
EACH = 4


def draw_inputs():
    # levels and scales are mild: aeon takes deviations from sums of squares of points as they are
    rng = np.random.default_rng(20262)
    n = 300
    flat = rng.standard_normal(n).cumsum()
    flat[100:180], flat[200:240] = flat[100], 0.0
    scales = rng.standard_normal(n)
    scales[: n // 3] *= 0.1
    scales[2 * n // 3 :] *= 10.0
    return np.stack(
        [
            rng.standard_normal(n).cumsum(),
            rng.standard_normal(n),
            flat,
            scales,
            10.0 + rng.standard_normal(n).cumsum(),
            np.tile(rng.standard_normal(50), 6),
        ]
    )


def windows(x, length, dilation, normalized):
    """All windows of a series, as aeon compares them: of shape (n_windows, length)."""
    x = x[np.newaxis]
    found = get_all_subsequences(x, length, dilation).copy()
    if normalized:
        found = normalise_subsequences(found, *sliding_mean_std_one_series(x, length, dilation))
    return found[:, 0]


def main():
    rng, X = np.random.default_rng(7), draw_inputs()
    found, rows = {"X": X}, []
    for length, dilation, normalized in KINDS:
        cut = [windows(x, length, dilation, normalized) for x in X]
        plain = [windows(x, length, dilation, False) for x in X]
        # constant windows have conventions of their own
        busy = [np.flatnonzero(np.ptp(part, axis=1) > 1e-9) for part in plain]
        for _ in range(EACH):
            row = int(rng.integers(len(X)))
            start = int(rng.choice(busy[row]))
            rows.append((row, start, length, dilation, normalized))
            for b, (part, all_of_them) in enumerate(zip(cut, busy, strict=True)):
                distances = np.sqrt(np.mean((part - cut[row][start]) ** 2, axis=1))
                found[f"distances.{len(rows) - 1}.{b}"] = distances[all_of_them]
                found[f"starts.{length}.{dilation}.{b}"] = all_of_them
    found["shapelets"] = np.array(rows, np.int64)
    found["versions"] = json.dumps({"aeon": version("aeon"), "python": python_version()})
    np.savez_compressed(HERE / "shapelets.npz", **found)


if __name__ == "__main__":
    main()
