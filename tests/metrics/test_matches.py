"""dtw_matches: the best parts of a series, each disjoint from those before, against all parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import find_engine
from skts.metrics import dtw, dtw_matches, dtw_path

PEERS = Path(__file__).parents[1] / "data" / "peers"
NUMBERS = {
    "noise": lambda rng, shape: rng.normal(size=shape),
    "offset": lambda rng, shape: 1e9 + rng.normal(size=shape),
    "ties": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "constant": lambda rng, shape: np.full(shape, 3.0),
}


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("options", [{}, {"cost": "absolute"}, {"metric": "dog_keeper"}], ids=str)
def test_matches_are_the_best_of_all_parts(fast_engine, rng, numbers, options):
    for channels, m, n in ((1, 4, 11), (2, 3, 9), (1, 1, 5), (1, 5, 3), (1, 2, 1)):
        x, y = (NUMBERS[numbers](rng, (channels, size)) for size in (m, n))
        distances, spans = dtw_matches(x, y, 40, engine=fast_engine, **options)
        assert spans.shape == (len(distances), 2) and spans.dtype == np.int64
        parts = {
            (a, b): reference.dtw(x, y[:, a:b], **options)
            for a in range(n)
            for b in range(a + 1, n + 1)
        }
        for distance, (start, stop) in zip(distances, spans.tolist(), strict=True):
            assert_allclose(distance, parts[start, stop], rtol=1e-12)
            assert distance <= min(parts.values()) * (1 + 1e-12)
            parts = {(a, b): d for (a, b), d in parts.items() if b <= start or a >= stop}
        assert not parts
        for k in (1, 2):
            few = dtw_matches(x, y, k, engine=fast_engine, **options)
            assert_array_equal(few.distances, distances[:k])
            assert_array_equal(few.spans, spans[:k])


def test_the_first_is_that_of_the_path_and_a_long_series_shows_all(rng):
    bump, line = np.hanning(30), rng.normal(scale=0.1, size=2000)
    places = [(100, 45), (700, 20), (1500, 60)]
    for start, length in places:
        line[start : start + length] += np.hanning(length)
    distances, spans = dtw_matches(bump, line, 3)
    path, distance = dtw_path(bump, line, alignment="subsequence")
    assert distances[0] == distance
    assert spans[0].tolist() == [path[0, 1], path[-1, 1] + 1]
    for (start, stop), value in zip(spans.tolist(), distances, strict=True):
        assert dtw(bump, line[start:stop]) == value
        assert any(start < p + n and p < stop for p, n in places)
    assert len({min(places, key=lambda one: abs(one[0] - start)) for start in spans[:, 0]}) == 3


@pytest.mark.parametrize("name", ["stretched", "regular", "walk"])
def test_matches_are_those_of_dtaidistance(name):
    with np.load(PEERS / "matches.npz") as file:
        query, y, distances = file["query"], file[f"series.{name}"], file[f"distances.{name}"]
        spans = file[f"spans.{name}"]
    found = dtw_matches(query, y, len(distances))
    assert_array_equal(found.spans, spans)
    assert_allclose(found.distances, distances, rtol=1e-12)


def test_equally_near_parts_come_in_order():
    y = np.array([5.0, 0, 1, 0, 5, 0, 1, 0, 5, 0, 1, 0])
    distances, spans = dtw_matches([0, 1, 0], y, 3, engine=find_engine("oracle").name)
    assert spans.tolist() == [[1, 4], [5, 8], [9, 12]] and not distances.any()
