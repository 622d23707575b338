"""Searches: the least costs so far, what is certified, and which warpings have bounds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import DTWNeighbors, Warping
from skts.engines.core.certify import Bound, Shortlist
from skts.engines.numba.elastic import lower_bounds


@pytest.mark.parametrize(
    ("precision", "certified"),
    [("auto", [[0, 0], [0, 1], [1, 2]]), ("float32", [[0, 1]]), ("float64", [])],
)
def test_estimates_are_taken_as_they_are_where_they_were_asked_for(
    make_series, precision, certified
):
    """Those of "float32", unless they overflowed; those of "float64" are certified already."""
    work = DTWNeighbors(make_series(2, 5), make_series(3, 5), 2, None, precision)
    total, asked = work.start(), []
    estimates = np.array([2.0, np.inf, 3.0])
    total.add((0, 0), Shortlist(np.array([0, 0, 1]), np.array([0, 1, 2]), estimates, Bound(0.5)))

    def measure(part):
        asked.extend(part.pairs.tolist())
        return 10.0 + part.pairs[:, 1]

    found = work.finish(total, measure)
    assert asked == certified
    values = estimates.copy()
    for _, candidate in certified:
        values[candidate] = 10.0 + candidate
    assert_array_equal(found.distances, [values[:2], [values[2], np.inf]])
    assert_array_equal(found.indices[0, 0], 0)
    assert_array_equal(found.indices[1], [2, -1])


def test_bounds_are_known_of_the_warpings_of_the_package_alone():
    @dataclass(frozen=True)
    class Other(Warping):
        """Costs of its own."""

    assert Warping().bounded and Warping("dog_keeper", "absolute").bounded
    assert not Other().bounded


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_least_costs_in_ascending_order(n):
    for costs in product([0.0, 1.0, 1.0, 2.0, np.inf], repeat=4):
        least = np.full(n + 1, np.inf)
        least[n] = -1  # of others
        for cost in costs:
            lower_bounds.insert(least[:n], cost)
        expected = sorted([*costs, *[np.inf] * n])[:n]
        assert_array_equal(least, [*expected, -1.0])
