"""Stored matches of wildboar (see ``tests/data/peers/README.md``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts import SubsequenceSearch

with np.load(Path(__file__).parents[1] / "data" / "peers" / "search.npz") as stored:
    STORED = dict(stored)
SERIES = [key.split(".")[1] for key in STORED if key.startswith("series.")]


@pytest.mark.parametrize("name", SERIES)
def test_best_matches(name, fast_engine):
    x = STORED[f"series.{name}"][np.newaxis]
    keys = [key for key in STORED if key.startswith("best.") and key.split(".")[2] == name]
    assert len(keys) == 3 * 10
    for key in keys:
        _, kind, _, shape, band = key.split(".")
        distance, place = STORED[key]
        search = SubsequenceSearch(
            metric=kind.removeprefix("plain"),
            window=int(band) if band.isdigit() else None,
            normalize=not kind.startswith("plain"),
            engine=fast_engine,
        )
        found, positions = search.fit(x).kneighbors([STORED[f"query.{shape}"]])
        assert positions[0, 0].tolist() == [0, place], key
        assert_allclose(found[0, 0], distance, rtol=1e-9, err_msg=key)


@pytest.mark.parametrize("name", SERIES)
def test_all_distances(name, fast_engine):
    search = SubsequenceSearch(metric="euclidean", engine=fast_engine)
    search.fit(STORED[f"series.{name}"][np.newaxis])
    for shape in ("long", "short", "part"):
        expected = STORED[f"profile.{name}.{shape}"]
        distances, positions = search.radius_neighbors([STORED[f"query.{shape}"]], np.inf)
        found = np.full(expected.size, np.nan)
        found[positions[0][:, 1]] = distances[0]
        # wildboar's running sums of squares lose digits far from zero
        assert_allclose(found, expected, rtol=1e-8 if name == "level" else 1e-9)
