"""Where neighbours match: spans and shifts, against the definitions in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from numpy.testing import assert_array_equal
from reference_elastic import ddtw, derivative
from reference_rotation import rotation_distance

from skts import DTWNearestNeighbor, DTWNearestNeighborRegressor, DTWNeighbors
from skts.engines.families.elastic import places

NUMBERS = {
    "noise": lambda rng, shape: rng.normal(size=shape),
    "ties": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "constant": lambda rng, shape: np.full(shape, 3.0),
}


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("alignment", ["subsequence", "supersequence"])
@pytest.mark.parametrize("options", [{}, {"cost": "absolute"}, {"metric": "dog_keeper"}], ids=str)
def test_spans(fast_engine, rng, numbers, alignment, options):
    draw = NUMBERS[numbers]
    sizes = [(2, 9), (2, 12), (2, 5), (2, 1)], [(2, 4), (2, 1), (2, 9)]
    X, Q = ([draw(rng, size) for size in some] for some in sizes)
    model = DTWNeighbors(2, alignment=alignment, engine=fast_engine, **options).fit(X)
    distances, indices, spans = model.kneighbors(Q, return_span=True)
    assert_array_equal(model.kneighbors(Q)[0], distances)
    assert spans.shape == (3, 2, 2) and spans.dtype == np.int64
    side = 1 if alignment == "subsequence" else 0
    for row, place in np.ndindex(indices.shape):
        x, y = Q[row], X[indices[row, place]]
        path, distance = reference.dtw_path(x, y, alignment=alignment, **options)
        assert_array_equal(spans[row, place], (path[0, side], path[-1, side] + 1))
        part = slice(*spans[row, place])
        pair = (x, y[:, part]) if side else (x[:, part], y)
        np.testing.assert_allclose(reference.dtw(*pair, **options), distance, rtol=1e-12)
        np.testing.assert_allclose(distances[row, place], distance, rtol=1e-12)


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("alignment", ["subsequence", "supersequence"])
def test_spans_of_derivatives_hold_their_points(fast_engine, rng, numbers, alignment):
    draw = NUMBERS[numbers]
    sizes = [(2, 9), (2, 12), (2, 5), (2, 3)], [(2, 4), (2, 3), (2, 9)]
    X, Q = ([draw(rng, size) for size in some] for some in sizes)
    X[1][:, 5:9] = Q[0]
    options = {"metric": "ddtw", "alignment": alignment, "engine": fast_engine}
    distances, indices, spans = DTWNeighbors(2, **options).fit(X).kneighbors(Q, return_span=True)
    side = 1 if alignment == "subsequence" else 0
    for row, place in np.ndindex(indices.shape):
        x, y = Q[row], X[indices[row, place]]
        path, _ = reference.dtw_path(derivative(x), derivative(y), alignment=alignment)
        assert_array_equal(spans[row, place], (path[0, side], path[-1, side] + 3))
        part = slice(*spans[row, place])
        pair = (x, y[:, part]) if side else (x[:, part], y)
        np.testing.assert_allclose(distances[row, place], ddtw(*pair), rtol=1e-12)
    if numbers == "noise" and side:
        assert indices[0, 0] == 1 and spans[0, 0].tolist() == [5, 9] and distances[0, 0] == 0


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize(
    "options",
    [{}, {"cost": "absolute"}, {"window": 0}, {"window": 1}, {"metric": "dog_keeper", "window": 2}],
    ids=str,
)
@pytest.mark.parametrize("channels", [1, 2])
def test_shifts(fast_engine, rng, monkeypatch, numbers, options, channels):
    X, Q = (NUMBERS[numbers](rng, (count, channels, 8)) for count in (5, 3))
    X[1] = np.roll(Q[0], 3, axis=1)
    model = DTWNeighbors(3, rotation_invariant=True, engine=fast_engine, **options).fit(X)
    for points in (None, 1, 40):
        if points is not None:
            monkeypatch.setattr(places, "POINTS", points)
        distances, indices, shifts = model.kneighbors(Q, return_shift=True)
        assert shifts.shape == (3, 3) and shifts.dtype == np.int64
        for row, place in np.ndindex(indices.shape):
            x, y = Q[row], X[indices[row, place]]
            turned = [reference.dtw(x, np.roll(y, s, axis=1), **options) for s in range(8)]
            assert shifts[row, place] == np.argmin(turned)
            assert distances[row, place] == min(turned) == rotation_distance(x, y, **options)


def test_outputs_come_in_order(fast_engine, rng):
    X, Q = rng.normal(size=(6, 12)), list(rng.normal(size=(2, 7)))
    model = DTWNearestNeighbor(2, alignment="subsequence", engine=fast_engine)
    model.fit(X, np.arange(6))
    distances, indices, spans = model.kneighbors(Q, return_span=True)
    again = model.kneighbors(Q, 2, False, return_span=True)
    assert_array_equal(again[0], indices)
    assert_array_equal(again[1], spans)
    # among the training series, each without itself
    model = DTWNearestNeighborRegressor(2, rotation_invariant=True, engine=fast_engine)
    model.fit(X, np.arange(6))
    distances, indices, shifts = model.kneighbors(return_shift=True)
    for row, place in np.ndindex(indices.shape):
        other = np.roll(X[indices[row, place]], shifts[row, place])
        assert indices[row, place] != row
        assert reference.dtw(X[row], other) == distances[row, place]
    assert model.kneighbors(X[:1], 1, return_shift=True)[2].shape == (1, 1)


@pytest.mark.parametrize(
    ("options", "asked", "message"),
    [
        ({}, "return_span", "needs alignment='subsequence'"),
        ({}, "return_shift", "needs rotation_invariant=True"),
        ({"metric": "precomputed"}, "return_span", "does not go with metric='precomputed'"),
        (
            {"metric": "precomputed", "rotation_invariant": True},
            "return_shift",
            "does not go with metric='precomputed'",
        ),
    ],
)
def test_places_that_do_not_exist(options, asked, message):
    model = DTWNeighbors(1, **options).fit(np.zeros((3, 3)))
    with pytest.raises(ValueError, match=message):
        model.kneighbors(**{asked: True})
