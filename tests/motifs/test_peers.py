"""Stored profiles of stumpy (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts.motifs import matrix_profile
from tests.reference_join import window_distance

with np.load(Path(__file__).parents[1] / "data" / "peers" / "motifs.npz") as stored:
    STORED = dict(stored)
WINDOWS = {"short": 8, "long": 50}
CASES = [
    tuple(key.split(".")) for key in STORED if key.split(".")[0].endswith("profile") and "." in key
]
#: Neighbours are unique: no two windows are equal, or constant.
UNIQUE = ("walk", "noise", "tiny", "huge", "other")


@pytest.mark.parametrize(("kind", "name", "size"), CASES)
def test_profiles(fast_engine, kind, name, size):
    join = kind.removesuffix("profile")
    x, window = STORED[name], WINDOWS[size]
    y = STORED["other"] if join == "join" else None
    distances = STORED[f"{kind}.{name}.{size}"]
    indices = STORED[f"{join}index.{name}.{size}"]
    k = distances.shape[1]
    found = matrix_profile(
        x, y, window=window, k=k, sides=not join, normalize=join != "plain", engine=fast_engine
    )
    shape = len(x) - window + 1, k
    mine, places = found.distances.reshape(shape), found.indices.reshape(shape)
    finite = np.isfinite(distances)
    assert_array_equal(np.isfinite(mine), finite)
    spread = np.std(x[np.isfinite(x)]) * np.sqrt(window)
    size_of = spread if join == "plain" else 1.0
    assert_allclose(mine[finite], distances[finite], rtol=1e-9, atol=1e-6 * size_of)
    assert_array_equal(places < 0, ~finite)
    if name in UNIQUE and join != "plain":
        assert_array_equal(places, np.where(finite, indices, -1))
        if not join:
            assert_array_equal(found.left.indices[:, 0], STORED[f"left.{name}.{size}"])
            assert_array_equal(found.right.indices[:, 0], STORED[f"right.{name}.{size}"])
        return
    other = x if y is None else y
    for i in range(0, len(mine), 7):  # neighbours may differ where they are equally near
        if finite[i, 0]:
            j = indices[i, 0]
            named = window_distance(
                x[i : i + window], other[j : j + window], normalize=join != "plain"
            )
            assert named == pytest.approx(mine[i, 0], abs=1e-6 * size_of)
