"""Stored results of independent packages (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import DTWNearestNeighbor
from skts.metrics import dtw_path, pairwise_dtw

with np.load(Path(__file__).parents[1] / "data" / "peers" / "dtw.npz") as stored:
    STORED = dict(stored)
MEASURES = ("dtw", "absolute", "frechet", "subsequence")
MATRICES = [key for key in STORED if key.split(".")[0].split("_")[0] in MEASURES]
PATHS = [key for key in STORED if key.startswith("path.") and "distance" not in key]
NEAREST = [key for key in STORED if key.startswith("nearest") and ".index." in key]


def as_list(X):
    """Series without the NaN that pads the shorter ones."""
    if X.ndim == 2:
        return [x[~np.isnan(x)] for x in X]
    return [x[:, ~np.isnan(x).any(axis=0)] for x in X]


@pytest.mark.parametrize("key", MATRICES)
def test_matrices(fast_engine, key):
    measure, name, _ = key.split(".")
    measure, _, window = measure.partition("_window")
    options = {
        "dtw": {},
        "absolute": {"cost": "absolute"},
        "frechet": {"metric": "dog_keeper"},
        "subsequence": {"alignment": "subsequence"},
    }[measure]
    if window:
        options = {**options, "window": int(window)}
    X, Y = as_list(STORED[f"{name}_X"]), as_list(STORED[f"{name}_Y"])
    found = pairwise_dtw(X, Y, **options, engine=fast_engine)
    assert_allclose(found, STORED[key], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("key", PATHS)
def test_paths(key):
    parts = key.split(".")
    name, pair, peer = parts[1], [int(part) for part in parts[2:-1]], parts[-1]
    x, y = STORED[f"{name}_X"][pair[0]], STORED[f"{name}_Y"][pair[-1]]
    path, distance = dtw_path(x[~np.isnan(x)], y[~np.isnan(y)])
    assert_array_equal(path, STORED[key])
    assert_allclose(distance, STORED[key.replace(f".{peer}", f".distance.{peer}")], rtol=1e-9)


@pytest.mark.parametrize("key", NEAREST)
def test_nearest(fast_engine, key):
    window = 4 if key.startswith("nearest_window4") else None
    model = DTWNearestNeighbor(window=window, engine=fast_engine).fit(
        STORED["shapes_X"], STORED["shapes_y"]
    )
    distances, indices = model.kneighbors(STORED["shapes_Z"])
    assert_array_equal(indices[:, 0], STORED[key])
    assert_allclose(distances[:, 0], STORED[key.replace(".index.", ".distance.")], rtol=1e-9)
