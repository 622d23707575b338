"""Stored windows of aeon (see ``tests/data/peers/README.md``): distances, places and counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts.engines import DilatedShapelets, DistanceQuantiles, Series, ShapeletFeatures, run

with np.load(Path(__file__).parents[1] / "data" / "peers" / "shapelets.npz") as stored:
    STORED = dict(stored)


def parts():
    """The shapelets, the series, and for each pair the distances and starts of windows."""
    X, rows = STORED["X"], STORED["shapelets"]
    length, dilation, normalized = rows[:, 2:].T
    points = [X[b, s:][: (n - 1) * d + 1 : d] for b, s, n, d in rows[:, :4].tolist()]
    of_all = DilatedShapelets(
        *(np.concatenate(points), length, dilation, np.zeros(len(rows), np.int64)),
        normalized.astype(bool),
    )
    pairs = {
        (k, b): (STORED[f"distances.{k}.{b}"], STORED[f"starts.{length[k]}.{dilation[k]}.{b}"])
        for k in range(len(rows))
        for b in range(len(X))
    }
    return of_all, Series(X[:, np.newaxis], np.full(len(X), X.shape[1])), pairs


def test_features_are_those_of_windows_of_aeon(fast_engine):
    shapelets, series, pairs = parts()
    # between two distances, so that no rounding decides about a count
    thresholds = np.empty(len(shapelets))
    for k in range(len(shapelets)):
        distances = np.sort(np.concatenate([pairs[k, b][0] for b in range(len(series))]))
        gap = np.argmax(np.diff(distances[: len(distances) // 8]))
        thresholds[k] = distances[gap : gap + 2].mean()
    found = run(ShapeletFeatures(shapelets, series, thresholds), engine=fast_engine)
    constant = series.values[2, 0]
    assert np.ptp(constant[100:180]) == 0
    for (k, b), (distances, starts) in pairs.items():
        distance, start, count = found[b, :, k]
        if b == 2 and shapelets.normalized[k]:
            # constant windows are at 1 here; aeon takes them for zeros, which is the same distance
            assert distance <= min(1.0, distances.min()) + 1e-9
            continue
        assert_allclose(distance, distances.min(), rtol=1e-9, atol=1e-9)
        if b == 2:
            continue
        near = starts[distances <= distances.min() + 1e-9]
        assert start in near
        assert count == np.count_nonzero(distances <= thresholds[k])


@pytest.mark.parametrize("share", [0.0, 0.07, 0.5])
def test_quantiles_are_those_of_windows_of_aeon(fast_engine, share):
    shapelets, series, pairs = parts()
    partners = np.arange(len(shapelets)) % 2
    ranks = [int(share * len(pairs[k, b][0])) for k, b in enumerate(partners.tolist())]
    work = DistanceQuantiles(shapelets, series, partners, np.array(ranks))
    expected = [
        np.sort(pairs[k, b][0])[rank]
        for k, (b, rank) in enumerate(zip(partners.tolist(), ranks, strict=True))
    ]
    assert_allclose(run(work, engine=fast_engine), expected, rtol=1e-9, atol=1e-9)
