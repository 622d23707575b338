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


GROUPS, LENGTH = 4, 9
#: Fields of ``Group``: norm, step, size, slip, weight, least and largest mean.
GROUP = np.array([1.0, 1.0, 1.0, 1e-12, 1.0, 0.0, 0.0])
#: By which an error of float64 is as large as the score.
LARGE = {"norm": 1e4, "step": 1e4, "size": 1e15, "slip": 1e12, "weight": 1e13, "high": 1e14}


def score_for_certain(groups, normalize):
    """What a score of 100 is at least, by the errors of rows and columns in some groups."""
    import cupy as cp

    from skts.engines.cupy.loading import load_kernel

    n = GROUPS * JOIN_GROUP
    covariances, rows = np.zeros((1, n), np.float32), np.ones((n, 4), np.float32)
    covariances[0, 100] = 100.0 if normalize else 99.0
    reached = cp.zeros(1)
    load_kernel("profile/precision.cu", "count_near")(
        (1, 1),
        32,
        covariances=cp.asarray(covariances),
        rows=cp.asarray(rows),
        weights=cp.ones(n, np.float32),
        groups_a=cp.asarray(groups[0]),
        groups_b=cp.asarray(groups[1]),
        n_rows=n,
        n_columns=n,
        apart=1,
        height=n,
        panel=n,
        strip=n,
        exclusion=0,
        length=LENGTH,
        normalize=normalize,
        reached=reached,
        counts=None,
    )
    return float(reached[0])


@pytest.mark.parametrize("normalize", [True, False])
def test_the_largest_numbers_of_any_group_bound_the_errors(normalize):
    pytest.importorskip("cupy")
    plain = np.tile(GROUP, (2, GROUPS, 1))
    known = score_for_certain(plain, normalize)
    assert 99 < known < 100
    fields = ["norm", "step", *(["size", "slip", "weight", "high"] if normalize else [])]
    for at, name in enumerate(fields):
        for side in range(2):
            if (name, side) == ("weight", 0):
                continue  # a row's own weight is in its score
            for group in range(GROUPS):
                groups = plain.copy()
                groups[side, group, 6 if name == "high" else at] = LARGE[name]
                if name == "weight":
                    groups[:, :, 0] = 1e-3
                assert score_for_certain(groups, normalize) < known - 1e-3, (name, side, group)
