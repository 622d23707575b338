"""Which candidates are kept and measured: those whose bounds are no lower than the best so far."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import Criterion, Series, ShapeletSearch
from skts.engines.families.shapelets.search import Survivors

#: Four series, the last two of another class: distances of a candidate that gains all there is,
#: and of one that gains less.
CLEAN, MIXED = [0.0, 1.0, 4.0, 6.0], [0.0, 4.0, 1.0, 6.0]


def work(**options):
    series = Series(np.zeros((4, 1, 3)), np.full(4, 3))
    criterion = Criterion(np.array([0, 0, 1, 1]), np.ones(2))
    return ShapeletSearch(series, np.arange(4), (1,), criterion, **options)


def cut_of(distances):
    """Gain and gap of the best cut of an order line."""
    cuts = work().criterion.best_cuts(np.array([distances]), np.array([False]))
    return int(cuts.gain[0]), float(cuts.gap[0])


def measure(candidates, **options):
    """The start of the candidate that is chosen; each is a bound, its start and its distances."""
    bounds, starts, distances = zip(*candidates, strict=True)
    gain, gap = np.array([b[0] for b in bounds]), np.array([b[1] for b in bounds])
    where = np.array([(1, 0, start, 0, 0) for start in starts])
    found = work(**options).measure(gain, gap, where, None, np.array(distances))
    return None if found is None else found.start


def test_the_bounds_that_are_kept_are_no_lower():
    gain, gap = np.array([7, 5, 5, 5, 3]), np.array([0.0, 2.5, 2.0, 1.5, 9.0])
    where, distances = np.arange(25).reshape(5, 5), np.arange(20.0).reshape(5, 4)
    found = Survivors(gain, gap, where, distances).filter_by_bound((5, 2.0))
    assert_array_equal(found.gain, [7, 5, 5])
    assert_array_equal(found.gap, [0.0, 2.5, 2.0])
    assert_array_equal(found.where, where[:3])
    assert_array_equal(found.distances, distances[:3])
    assert Survivors(gain, gap, where).filter_by_bound((5, 2.0)).distances is None


def test_a_bound_that_the_best_so_far_equals_is_measured():
    """It may be as good, and come first; the bounds of those before it were loose."""
    gain, gap = cut_of(CLEAN)
    loose, far = ((gain + 1, gap), 2, CLEAN), ((gain + 1, gap), 1, MIXED)
    assert measure([loose, far, ((gain, gap), 0, CLEAN)]) == 0
    assert measure([loose, far, ((gain, gap), 3, CLEAN)]) == 2
    # those after it cannot be as good, and are not measured: their distances would say otherwise
    assert measure([loose, far, ((gain, np.nextafter(gap, 0)), 0, CLEAN)]) == 2
    assert measure([loose, far, ((gain - 1, gap), 0, CLEAN)]) == 2


def test_what_is_known_must_be_exceeded():
    gain, gap = cut_of(CLEAN)
    only = [((gain, gap), 1, CLEAN)]
    for so_far, found in (
        ((gain, gap), None),
        ((gain, np.nextafter(gap, 0)), 1),
        ((gain - 1, np.inf), 1),
        ((gain, np.inf), None),
        ((gain + 1, 0.0), None),
    ):
        options = dict(zip(("best_gain_so_far", "best_gap_so_far"), so_far, strict=True))
        assert measure(only, **options) == found


def test_a_gain_of_nothing_is_judged_by_its_gap():
    """As any other: only a gap that none exceeds, the default, leaves no cut without a gain."""
    series = Series(np.zeros((4, 1, 3)), np.full(4, 3))
    criterion = Criterion(np.array([0, 0, 1, 1]), np.ones(2), 2)
    bound, where = (np.zeros(1, np.int64), np.full(1, 3.0)), np.array([(1, 0, 0, 0, 0)])
    for so_far, gap in ((1.9, 2.0), (2.0, None), (np.inf, None)):
        search = ShapeletSearch(series, np.arange(4), (1,), criterion, best_gap_so_far=so_far)
        found = search.measure(*bound, where, None, np.array([[0.0, 2.0, 1.0, 3.0]]))
        assert (found and found.cut[:2]) == (gap and (0, gap))


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_of_equal_candidates_is_chosen_in_any_order(first):
    bound = cut_of(CLEAN)
    candidates = [(bound, 0, CLEAN), (bound, 1, CLEAN)]
    assert measure(candidates[first:] + candidates[:first]) == 0
