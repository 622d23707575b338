"""Functions that all engines share, each against NumPy, at every size around their lanes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_array_equal

from skts.engines import Series, Shapes
from skts.engines.host import arrays, plain, shapes, windows


@pytest.mark.parametrize("n", [1, 2, 3, 10, 257])
@pytest.mark.parametrize("kind", ["random", "ties", "rising", "falling", "equal", "infinite"])
def test_the_kth_smallest_number(rng, n, kind):
    numbers = {
        "random": rng.normal(size=n),
        "ties": rng.integers(0, 4, n).astype(float),
        "rising": np.arange(n, dtype=float),
        "falling": -np.arange(n, dtype=float),
        "equal": np.zeros(n),
        "infinite": rng.choice([0.0, 1.0, np.inf, -np.inf], n),
    }[kind]
    for k in range(0, n, 1 if n < 20 else 17):
        shuffled = numbers.copy()
        assert arrays.kth_smallest(shuffled, k) == np.sort(numbers)[k]
        assert_array_equal(np.sort(shuffled), np.sort(numbers))


def test_numbers_are_put_in_front():
    out = np.full(4, 9.0)
    arrays.put(np.arange(3.0), out)
    assert_array_equal(out, [0, 1, 2, 9])


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 20, 21])
def test_points_are_shifted_and_scaled_and_added(rng, n):
    x, out = rng.normal(size=n), np.full(n, np.nan)
    total = shapes.shifted_scaled(x, 0.75, -2.5, out)
    assert_array_equal(out, x * 0.75 + 2.5)
    assert total == pytest.approx(math.fsum(out), rel=1e-14)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 17, 40])
def test_the_range_of_every_window(rng, length):
    points = rng.integers(-9, 9, 40).astype(float)
    low, high = np.full((2, 41 - length), np.nan)
    windows._range(points, length, low, high)
    assert_array_equal(low, sliding_window_view(points, length).min(axis=1))
    assert_array_equal(high, sliding_window_view(points, length).max(axis=1))


@pytest.mark.parametrize("length", [1, 3, windows.POINTS, windows.POINTS + 1, 300])
def test_distances_of_pairs_of_windows_of_two_lines(rng, length):
    """More points than are compared at a time, and pairs that do not fill the last lanes."""
    a, b = rng.normal(size=length + 20), rng.normal(size=length + 30)
    i, j = rng.integers(0, 21, 11), rng.integers(0, 31, 11)
    own, other = (sliding_window_view(points, length) for points in (a, b))
    means = own.mean(axis=1), other.mean(axis=1)
    inverses = rng.uniform(0.5, 2, 21), rng.uniform(0.5, 2, 31)
    out = np.full(11, np.nan)
    windows.pair_distances(
        *(a, i, means[0], inverses[0], b, j, means[1], inverses[1]),
        *(length, out, np.zeros(1, np.uint8)),
    )
    x, y = (
        (view - mean[:, np.newaxis]) * inverse[:, np.newaxis]
        for view, mean, inverse in zip((own, other), means, inverses, strict=True)
    )
    np.testing.assert_allclose(out, np.linalg.norm(x[i] - y[j], axis=1), rtol=1e-12)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1.0, 1e160, 1e300])
def test_the_norm_of_a_difference_whatever_its_size(size):
    a, b = size * np.array([3.0, 7.0, 1.0]), size * np.array([0.0, 3.0, 1.0])
    assert plain._norm(a, b, 3) == pytest.approx(math.hypot(*(a - b)), rel=1e-14)
    assert plain._norm(a, a, 3) == 0
    assert plain._norm(np.array([0.0, -np.inf]), np.zeros(2), 2) == np.inf


@pytest.mark.parametrize("peak", [1.0, -3.0, 1e200])
def test_a_series_is_constant_up_to_and_including_the_limit(peak):
    """Points are at most 2^-40 of the largest apart."""
    limit = np.full((1, 1, 4), peak)
    limit[..., 1::2] -= peak * 2.0**-40
    beyond = limit.copy()
    beyond[..., 1::2] = np.nextafter(limit[..., 1::2], 0)
    for series, constant in ((limit, True), (beyond, False)):
        normalized = Shapes.normalized(Series(series, np.full(1, 4)))
        assert (normalized.norms[0] == 0) == constant
        assert (normalized.values == 0).all() == constant
