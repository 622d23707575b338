"""Groups of windows on the GPU, by the largest numbers of which errors are bounded."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from skts.engines.core.constants import JOIN_GROUP

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("n_windows", [1, JOIN_GROUP, 3 * JOIN_GROUP - 5])
def test_a_group_holds_the_largest_numbers_of_its_windows(rng, n_windows):
    lines = pytest.importorskip("skts.engines.cupy.profile.lines")
    length = 9
    sizes = 10.0 ** rng.integers(-2, 3, n_windows + length - 1)
    points = rng.normal(size=sizes.size) * sizes
    windows = sliding_window_view(points, length)
    mean, largest = windows.mean(axis=1), np.abs(windows).max(axis=1)
    norm = np.linalg.norm(windows - mean[:, np.newaxis], axis=1)
    slip, regular = 1e-16 * rng.uniform(1, 9, n_windows), rng.random(n_windows) < 0.8
    searched = lines.Searched(points, mean, norm, largest, slip, regular, ~regular, None, 1.0, None)
    found = lines.make_steps(searched, regular, 0.0, np.float64).groups.get()
    factors = importlib.import_module("skts.engines.families.profile.lines").step_factors
    lead, trail = factors(points, mean, None)
    weight = np.where(regular, 1 / norm, 0.0)
    assert len(found) == -(-n_windows // JOIN_GROUP)
    for group, row in enumerate(found):
        here = slice(group * JOIN_GROUP, (group + 1) * JOIN_GROUP)
        steps = (np.abs(lead) + np.abs(trail))[here]
        expected = [values[here].max() for values in (norm, largest, slip, weight, mean)]
        expected = [expected[0], steps.max(), *expected[1:4], mean[here].min(), expected[4]]
        np.testing.assert_allclose(row, expected, rtol=1e-15)
