"""The scan of candidates on the CPU: which of them it lists, and what it says of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import Criterion, Series, ShapeletSearch, VarianceCriterion, run
from skts.engines.families.shapelets.variance import TARGET_BITS
from skts.engines.numba.shapelets import tiles
from skts.engines.numba.shapelets.order_lines import MANY, OrderLine, make_scratch, promise
from skts.engines.numba.shapelets.variance_lines import promise_of_variance


def work_of(scale, **options):
    """A search among windows of one and two points, as they are."""
    rng = np.random.default_rng(3)
    values = scale * rng.normal(size=(9, 1, 6))
    criterion = Criterion(np.array([0, 1, 0, 1, 1, 0, 0, 1, 1]), np.ones(2))
    return ShapeletSearch(Series(values, np.full(9, 6)), np.arange(9), (1, 2), criterion, **options)


def scanned(work, gain, gap):
    """Candidates that are listed where so much is reached for certain."""
    cancel, everyone = np.zeros(1, np.uint8), np.arange(len(work.members))
    held, tables = tiles.Held(gain, gap), work.criterion.tables()
    blocks = tiles.blocks_of(work.series, 0, 0, len(everyone), work.lengths, None, cancel)
    for length, distances in blocks:
        own = tiles.JudgedRows(everyone, work.series.lengths - length + 1, everyone, everyone)
        tiles._scan(work, distances, own, tables, held, (length, 0), cancel)
    return held.survivors()


def test_a_candidate_whose_bound_is_what_is_reached_is_listed():
    """It may be as good, and come first."""
    work = work_of(1.0)
    found = scanned(work, -1, -np.inf)
    best = max(zip(found.gain.tolist(), found.gap.tolist(), strict=True))
    again = scanned(work, *best)
    assert best in zip(again.gain.tolist(), again.gap.tolist(), strict=True)
    assert not len(scanned(work, best[0], np.nextafter(best[1], np.inf)).gain)


@pytest.mark.parametrize("way", ["and", "or"])
def test_distances_of_a_literal_have_the_unit_of_the_windows(way):
    scale = 2.0**20
    before = scale * np.array([0.1, 2.0, 0.3, 1.5, 0.2, 0.4, 1.0, 0.8, 1.2])
    work = work_of(scale, before=before, before_normalized=False, ways=(way,))
    found, expected = scanned(work, -1, -np.inf), run(work, engine="oracle")
    at = [tuple(where) for where in found.where.tolist()].index((*expected[1:5], 0))
    gain, gap = expected.cut.gain, expected.cut.gap
    assert found.gain[at] == gain
    assert gap <= found.gap[at] <= gap + 1e-9 * scale


def test_memory_that_lines_use_again_is_written_first():
    criterion = Criterion(np.array([0, 1, 0, 1, 0, 1]), np.ones(2))
    # the last three are in an order that errors leave open
    line = OrderLine(
        np.array([0.0, 1.0, 0.5, 2.0, 2.1, 2.2]),
        np.array([True, *[False] * 5]),
        np.full(6, 0.1),
        0.1,
    )
    found = []
    for value in (-(2**40), 7, 2**40):
        scratch = make_scratch(6, 2)
        for array in scratch:
            array.fill(value)
        found.append(promise(line, criterion.tables(), np.int64(-1), scratch))
    assert found[0] == found[1] == found[2]
    # the two of class 1 come last
    swapped = criterion.best_cuts(np.array([[0.0, 1.0, 0.7, 1.45, 1.4, 1.46]]), np.array([False]))
    assert found[0][0] == swapped.gain[0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("leaf", [1, 3])
def test_lines_promise_what_the_best_cut_has_in_any_order_of_what_is_open(rng, n_classes, leaf):
    """See "open runs" in docs/developer/numerics.rst: gains, and gaps of cuts that gain as much."""
    equal = 0
    for _ in range(200):
        labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, 12 - n_classes))
        criterion = Criterion(rng.permutation(labels), np.ones(n_classes), leaf)
        # some places that errors leave open, and some that they do not
        squares, error = rng.integers(1, 7, 12) ** 2.0, 1e-6
        line = OrderLine(squares, np.zeros(12, bool), np.full(12, error), error)
        scratch = make_scratch(12, n_classes)
        gain, high, low = promise(line, criterion.tables(), np.int64(-1), scratch)
        exact = np.sqrt(squares + rng.uniform(-error, error, (100, 12)))
        cuts = criterion.best_cuts(exact, np.zeros(100, bool))
        assert gain >= cuts.gain.max()
        reached = cuts.gain == gain
        assert (cuts.gap[reached] <= high).all()
        assert low == -np.inf or (cuts.gap >= low).all()
        equal += reached.any()
    assert equal > 100


@pytest.mark.parametrize("n_classes", [2, 3])
def test_lines_promise_what_the_best_cut_has_where_members_have_errors_of_their_own(rng, n_classes):
    """Some distances are exact, others off by little or by much, in any order."""
    n = n_classes + 6
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, 6))
    for criterion, bound in (
        (Criterion(labels, np.ones(n_classes)), promise),
        (VarianceCriterion(rng.normal(size=n)), promise_of_variance),
    ):
        tables, scratch, tight = criterion.tables(), make_scratch(n, n_classes), 0
        for _ in range(300):
            squares, sure = rng.uniform(0.5, 2.0, n), rng.random(n) < 0.4
            errors = rng.choice([1e-9, 0.02, 0.3], n)
            line = OrderLine(squares, sure, errors, errors.max())
            gain, high, _ = bound(line, tables, np.int64(-1), scratch)
            off = np.where(sure, 0.0, errors)
            exact = np.sqrt(squares + off * rng.choice([-1, -0.5, 0, 0.5, 1], (200, n)))
            cuts = criterion.best_cuts(exact, np.zeros(200, bool))
            assert gain >= cuts.gain.max()
            reached = cuts.gain == gain
            assert (cuts.gap[reached] <= high).all()
            tight += reached.any()
        # a run in which all is open would hold, too, and mean that much more is measured
        assert tight > 100


@pytest.mark.parametrize("n_classes", [2, 3])
def test_lines_promise_what_the_best_cut_has_where_errors_have_no_bound(rng, n_classes):
    """What is behind such a distance is open up to the end of the line."""
    n, open_gains = n_classes + 6, 0
    labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, 6))
    for criterion, bound in (
        (Criterion(labels, np.ones(n_classes)), promise),
        (VarianceCriterion(rng.normal(size=n)), promise_of_variance),
    ):
        tables, scratch = criterion.tables(), make_scratch(n, n_classes)
        for _ in range(100):
            squares, errors = rng.uniform(0.5, 2.0, n), np.full(n, 1e-9)
            endless = rng.permutation(n)[: rng.integers(1, 4)]
            errors[endless] = np.inf
            line = OrderLine(squares, np.zeros(n, bool), errors, np.inf)
            gain, high, low = bound(line, tables, np.int64(-1), scratch)
            exact = np.tile(squares, (200, 1))
            exact[:, endless] = rng.uniform(0.0, 4.0, (200, endless.size))
            cuts = criterion.best_cuts(np.sqrt(exact), np.zeros(200, bool))
            assert gain >= cuts.gain.max()
            assert (cuts.gap[cuts.gain == gain] <= high).all()
            assert low == -np.inf
            open_gains += cuts.gain.min() < cuts.gain.max()
    assert open_gains > 100


@pytest.mark.parametrize("of_series", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 9])
@pytest.mark.parametrize("least", [0.0, 2.5])
def test_lines_promise_no_less_where_weights_differ(rng, n_classes, of_series, least):
    """Cuts on either side of runs that errors leave open, within them, and those that are clear."""
    reached = 0
    for _ in range(100):
        labels = np.append(np.arange(n_classes), rng.integers(0, n_classes, 12 - n_classes))
        weights = rng.choice([0.3, 1.0, 1 / 3, rng.random()], n_classes)
        often = rng.choice([1.0, 2.0, rng.random() + 0.01], 12) if of_series else None
        weights[0] += 0.125
        criterion = Criterion(rng.permutation(labels), weights, 1, least, often)
        squares, error = rng.integers(1, 9, 12) ** 2.0, 1e-6
        line = OrderLine(squares, np.zeros(12, bool), np.full(12, error), error)
        tables, scratch = criterion.tables(), make_scratch(12, n_classes)
        gain, high, low = promise(line, tables, np.int64(-(2**62)), scratch)
        exact = np.sqrt(squares + rng.uniform(-error, error, (100, 12)))
        best = criterion.best_cuts(exact, np.zeros(100, bool)).gain.max()
        # a gain that is needed rules cuts out, and not the best one
        for needed in (best - 1, best):
            assert promise(line, tables, np.int64(needed), scratch) == (gain, high, low)
        assert gain >= best
        assert (high, low) in ((np.inf, -np.inf), (-np.inf, -np.inf))
        reached += gain <= best + 2 * tables.slack
    assert reached > 20


@pytest.mark.parametrize("n", [1, 5, 200])
def test_there_is_room_for_every_cut_that_gains_most(n):
    """Those between neighbours, and those of all subsets of a run."""
    scratch = make_scratch(n, 3)
    assert scratch.places.size >= n - 1 + 2**MANY
    assert_array_equal([scratch.order.size, scratch.ordered.size, scratch.buckets.size], n)
    assert scratch.low.size == n + 1
    assert scratch.left.size == scratch.run.size == scratch.terms.size == 3


def test_short_windows_of_some_series_are_as_many_as_these():
    """Distances of the candidates of a block that is not the first, from the definition."""
    work, cancel = work_of(1.0), np.zeros(1, np.uint8)
    values = work.series.values[:, 0]
    for length, distances in tiles.blocks_of(work.series, 0, 4, 7, (1, 2), None, cancel):
        windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=1)
        apart = (windows[4:7, :, np.newaxis, np.newaxis] - windows) ** 2
        expected = apart.mean(axis=-1).min(axis=-1) / distances.unit**2
        assert distances.squares.shape == (3, 7 - length, 9)
        assert_allclose(distances.squares, expected, rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 2.0**40, 2.0**-40])
@pytest.mark.parametrize("offset", [0, -7, 1000])
def test_targets_are_as_whole_numbers_whatever_their_unit_and_offset(unit, offset):
    """As many bits as there is room for, of the distance between the least and the largest."""
    targets = np.array([3.0, 0.0, 5.0, 8.0, 1.0])
    expected, point = VarianceCriterion(targets)._whole
    assert 2.0 ** (TARGET_BITS - 1) <= np.ptp(expected) <= 2.0**TARGET_BITS
    assert abs(expected.sum()) <= targets.size / 2
    assert_array_equal(np.diff(expected) / 2.0**point, np.diff(targets))
    whole, at = VarianceCriterion(unit * (targets + offset))._whole
    assert_array_equal(whole, expected)
    assert 2.0 ** (point - at) == unit
