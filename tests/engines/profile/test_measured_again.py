"""Windows whose lists may lack a neighbour are measured against all others, and no others are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import ConcatenatedSeries, Join, run
from skts.engines.families.profile.nearest import Nearest
from skts.engines.families.profile.windows import Kinds

LINE = ConcatenatedSeries.of([np.array([0.0, 3.0, 5.0, 7.0, 11.0])])


@pytest.mark.parametrize(
    ("floor", "again"), [(1.0, True), (np.nextafter(2.0, 0), True), (2.0, True), (2.5, False)]
)
def test_where_a_neighbour_that_is_not_listed_may_be_as_near(floor, again):
    """One that is as near as the last of the list and comes first belongs on it."""
    work = Join(LINE, None, 1, 0, normalize=False)
    kinds = Kinds(np.zeros(5, bool), np.ones(5, bool))
    # the window at 5 is as far from 3 as from 7, and the second is listed
    listed = np.array([[3.0], [2.0], [2.0], [2.0], [4.0]]), np.array([[1], [2], [3], [2], [3]])
    nearest = Nearest(*(each.copy() for each in listed))
    floors = np.full(5, np.inf)
    floors[2] = floor
    calls = []

    def measure(part):
        calls.append(part)
        return run(part, engine="numba")

    work._measure_again(floors, nearest, "both", kinds, kinds, measure)
    assert [part.shape for part in calls] == [(1, 5)] * again
    assert_array_equal(nearest.distances, listed[0])
    assert_array_equal(nearest.indices[:, 0], [1, 2, 1 if again else 3, 2, 3])


def test_a_window_without_admissible_neighbours_is_not_measured():
    work = Join(LINE, None, 1, 2, normalize=False)
    kinds = Kinds(np.zeros(5, bool), np.ones(5, bool))
    nearest, calls = work.start().lists[0].copy(), []

    def measure(part):
        calls.append(part)
        return run(part, engine="numba")

    work._measure_again(np.zeros(5), nearest, "right", kinds, kinds, measure)
    assert [part.shape for part in calls] == [(2, 5)]  # the others have none after them
    assert_array_equal(nearest.distances[:, 0], [7, 8, np.inf, np.inf, np.inf])
    assert_array_equal(nearest.indices[:, 0], [3, 4, -1, -1, -1])


def test_no_more_distances_are_held_than_a_batch_has(rng):
    """Where all windows may lack a neighbour: each is measured once, some at a time."""
    line = ConcatenatedSeries.of([rng.normal(size=3000)])
    work = Join(line, None, 1, 0, normalize=False)
    kinds = Kinds(np.zeros(3000, bool), np.ones(3000, bool))
    nearest, calls = work.start().lists[0].copy(), []

    def measure(part):
        calls.append(part)
        return np.ones(part.shape)

    work._measure_again(np.zeros(3000), nearest, "both", kinds, kinds, measure)
    assert all(n_rows * n_cols <= 2**23 for n_rows, n_cols in (part.shape for part in calls))
    assert len(calls) == 2
    assert_array_equal(np.concatenate([part.positions for part in calls]), np.arange(3000))
    assert_array_equal(nearest.distances, np.ones((3000, 1)))
