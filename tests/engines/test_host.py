"""Functions that all engines share, each against NumPy, at every size around their lanes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_array_equal

from skts.engines.host import plain, shapes, windows


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


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1.0, 1e160, 1e300])
def test_the_norm_of_a_difference_whatever_its_size(size):
    a, b = size * np.array([3.0, 7.0, 1.0]), size * np.array([0.0, 3.0, 1.0])
    assert plain._norm(a, b, 3) == pytest.approx(math.hypot(*(a - b)), rel=1e-14)
    assert plain._norm(a, a, 3) == 0
    assert plain._norm(np.array([0.0, -np.inf]), np.zeros(2), 2) == np.inf
