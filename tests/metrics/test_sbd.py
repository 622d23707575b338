"""sbd and pairwise_sbd."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts.metrics import pairwise_sbd, sbd
from tests import reference_sbd as reference


@pytest.mark.parametrize("shape", [(9,), (2, 9), (1,), (2,)])
def test_distance_and_shift(engine, rng, shape):
    x, y = rng.normal(size=(2, *shape))
    a, b = (reference.normalize(np.atleast_2d(v)) for v in (x, y))
    distance, shift = reference.sbd(a, b)
    found = sbd(x, y, engine=engine)
    assert found.distance == pytest.approx(distance, abs=1e-12)
    assert found.shift == shift
    distance, shift = reference.sbd(*(np.atleast_2d(v) for v in (x, y)))
    assert sbd(x, y, normalize=False, engine=engine) == (pytest.approx(distance, abs=1e-12), shift)


def test_shift_moves_the_first_series_to_the_right():
    x, y = np.zeros((2, 20))
    x[4:8] = y[9:13] = [1, 4, 2, -3]
    assert sbd(x, y).shift == 5
    assert sbd(y, x).shift == -5
    assert_allclose(sbd(x, y, normalize=False).distance, 0, atol=1e-12)


def test_unequal_lengths_are_normalized_then_filled(engine, rng):
    x, y = rng.normal(size=12), rng.normal(size=7)
    a, b = reference.normalize(x[None]), np.zeros((1, 12))
    b[:, :7] = reference.normalize(y[None])
    assert sbd(x, y, engine=engine) == (
        pytest.approx(reference.sbd(a, b)[0]),
        reference.sbd(a, b)[1],
    )
    assert sbd(y, x, engine=engine).shift == -sbd(x, y, engine=engine).shift


def test_all_pairs(fast_engine, rng):
    X, Y = rng.normal(size=(70, 33)), rng.normal(size=(5, 33))
    distances, shifts = pairwise_sbd(X, Y, return_shifts=True, engine=fast_engine)
    expected = reference.pairwise_sbd(
        *([reference.normalize(v[None]) for v in side] for side in (X, Y))
    )
    assert_allclose(distances, expected[0], atol=1e-12)
    assert_array_equal(shifts, expected[1])
    within = pairwise_sbd(X, engine=fast_engine)
    assert_allclose(within, pairwise_sbd(X, X.copy(), engine=fast_engine), atol=1e-14)
    assert_allclose(within, within.T, atol=1e-14)
    assert_allclose(np.diagonal(within), 0, atol=1e-14)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="x has 2 channels where y has 1"):
        sbd(np.zeros((2, 4)), np.zeros(4))
    with pytest.raises(ValueError, match="NaN"):
        pairwise_sbd([[1.0, np.nan, 2.0]])
