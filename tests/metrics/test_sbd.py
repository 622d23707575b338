"""sbd and pairwise_sbd."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts.metrics import pairwise_sbd, sbd
from tests import reference_sbd as reference
from tests.kshape_cases import KINDS, series


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


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_pair_does_not_depend_on_longer_series(fast_engine, rng, normalize, channels):
    lengths = [2, 7, 2, 3, 2, 5, 3, 9, 7] if channels > 1 else [1, 2, 7, 1, 3, 2, 5, 3, 9, 7]
    X = [rng.choice([-2.0, -1.0, 1.0, 3.0], size=(channels, n)) for n in lengths]
    X += [np.full((channels, n), sign) for n in (3, 3, 5) for sign in (1.0, -2.0)]
    options = {"normalize": normalize, "engine": fast_engine}
    wanted = np.array([[sbd(x, y, **options) for y in X] for x in X])
    distances, shifts = pairwise_sbd(X, return_shifts=True, **options)
    assert_allclose(distances, wanted[..., 0], atol=1e-12)
    assert_array_equal(shifts, wanted[..., 1])
    distances, shifts = pairwise_sbd(X[:8], X[4:], return_shifts=True, **options)
    assert_allclose(distances, wanted[:8, 4:, 0], atol=1e-12)
    assert_array_equal(shifts, wanted[:8, 4:, 1])
    if not normalize:  # opposite signs: all shifts of their own have negative correlations
        assert (wanted[..., 0] > 1.1).any()


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="x has 2 channels where y has 1"):
        sbd(np.zeros((2, 4)), np.zeros(4))
    with pytest.raises(ValueError, match="NaN"):
        pairwise_sbd([[1.0, np.nan, 2.0]])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("channels", [1, 3])
def test_scales_do_not_matter(engine, rng, normalize, channels):
    x, y = rng.normal(size=(2, channels, 17))
    expected = sbd(x, y, normalize=normalize, engine=engine)
    assert 0 < expected.distance < 1
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for powers in [(-470, -470), (470, 470), (-470, 470), (3, -211)]:
            scaled = [side * 2.0**power for side, power in zip((x, y), powers, strict=True)]
            assert sbd(*scaled, normalize=normalize, engine=engine) == expected
    # single tiny points beside ordinary ones are what they are
    x[0, 3] = 5e-324
    found = sbd(x, y, normalize=normalize, engine=engine)
    x[0, 3] = 0.0
    assert found == sbd(x, y, normalize=normalize, engine=engine)


@pytest.mark.parametrize("n_timepoints", [1, 2, 3, 20])
def test_nearly_constant_series_follow_the_rule(engine, rng, n_timepoints):
    y = rng.normal(size=n_timepoints)
    x = 1.0 + rng.uniform(0, 1, n_timepoints)
    if n_timepoints > 2:
        for share, constant in [(2.0**-39, False), (2.0**-41, True)]:
            one = 1.0 + (x - x.min()) / np.ptp(x) * share
            expected = reference.sbd(*(reference.normalize(v[None]) for v in (one, y)))
            assert bool(expected[0] == 1) is constant
            assert sbd(one, y, engine=engine) == (
                pytest.approx(expected[0], abs=1e-12),
                expected[1],
            )
    # without normalisation a constant is a shape like any other
    one = np.full(n_timepoints, 3.0)
    found = sbd(one, -2.0 * one, normalize=False, engine=engine)
    expected = reference.sbd(one[None], -2.0 * one[None])
    assert found == (pytest.approx(expected[0], abs=1e-12), expected[1])


def pair(x, y, normalize):
    """Distance and shift of two series of their own lengths."""
    width = max(x.shape[1], y.shape[1])
    filled = np.zeros((2, len(x), width))
    for target, row in zip(filled, (x, y), strict=True):
        value = reference.normalize(row, width < 3) if normalize else reference.of_size_one(row)
        target[:, : row.shape[1]] = value
    return reference.sbd(*filled)


@pytest.mark.parametrize("first", range(len(KINDS)))
def test_hard_pairs(fast_engine, first):
    for seed in range(first, 12 * len(KINDS), len(KINDS)):
        rng = np.random.default_rng([7, seed])
        channels, length = int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 4, 7, 16, 33]))
        X = series(rng, KINDS[first], 6, channels, length)
        lengths = rng.integers(1, length + 1, 6) if seed % 3 == 0 else np.full(6, length)
        rows = [x[:, :size].copy() for x, size in zip(X, lengths, strict=True)]
        for normalize in (True, False):
            options = {"normalize": normalize, "engine": fast_engine}
            distances, shifts = pairwise_sbd(rows[:3], rows[3:], return_shifts=True, **options)
            wanted = [[pair(x, y, normalize) for y in rows[3:]] for x in rows[:3]]
            said = f"{seed} {KINDS[first]} {normalize}"
            assert_allclose(distances, np.array(wanted)[..., 0], rtol=0, atol=1e-12, err_msg=said)
            assert_array_equal(shifts, np.array(wanted)[..., 1], err_msg=said)
