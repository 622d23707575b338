"""Stored results of wildboar (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts import ShapeletForestClassifier
from skts.engines import GroupMatches, Groups, Series, run

with np.load(Path(__file__).parents[1] / "data" / "peers" / "forests.npz") as stored:
    STORED = dict(stored)


@pytest.mark.parametrize("name", ["walks", "flat", "scales"])
def test_distances_of_subsequences(fast_engine, name):
    X, pieces = STORED[f"input.{name}"], STORED[f"pieces.{name}"]
    series = Series(np.ascontiguousarray(X[:, np.newaxis]), np.full(len(X), X.shape[1]))
    row, start, length = pieces.T
    places = np.column_stack([row, np.zeros_like(row), start, length])
    n, count = len(X), len(pieces)
    groups = Groups(series, places, np.array([0, count]), series, np.arange(n), np.array([0, n]))
    found = run(GroupMatches(groups), engine=fast_engine).reshape(count, n)
    expected = STORED[f"distances.{name}"] / np.sqrt(length)[:, np.newaxis]
    assert_allclose(found, expected, rtol=1e-9, atol=1e-7)


def test_a_forest_is_as_accurate():
    X, y, Z, z = (STORED[f"shapes_{part}"] for part in "XyZz")
    scores = [
        ShapeletForestClassifier(random_state=seed, engine="numba").fit(X, y).score(Z, z)
        for seed in range(3)
    ]
    assert np.mean(scores) >= STORED["accuracies"].mean() - 0.02
