"""Ties of shapelet splits: gains and distances that are equal as numbers are equal here."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import Criterion, Series, ShapeletSearch, SubsequenceMatches, run
from skts.engines.core.constants import TOLERANCE
from tests.reference_shapelets import best_match
from tests.reference_splits import cuts, exact_distance, gain_of, numbers


def search(engine, values, labels, lengths, rules=None, **options):
    values = np.asarray(values, np.float64)
    series = Series(values[:, np.newaxis], np.full(len(values), values.shape[1]))
    weights, leaf, least, *often = rules or ([1] * (max(labels) + 1), 1, 0)
    weights, *often = (np.asarray(some, np.float64) for some in (weights, *often))
    criterion = Criterion(np.asarray(labels), weights, leaf, least, *often)
    work = ShapeletSearch(series, np.arange(len(values)), lengths, criterion, **options)
    return run(work, engine=engine)


def draw(rng):
    """A small node with many ties: values, labels, lengths, rules."""
    n, n_classes = rng.randint(3, 20), rng.choice([2, 2, 2, 3, 4])
    lengths = rng.choice([(1,), (1, 2), (3,), (3, 4)])
    width = rng.choice([1, 1, 2]) if lengths == (1,) else max(lengths) + rng.randint(0, 2)
    most = rng.choice([2, 3, 6, 30])
    values = [[rng.randint(0, most) for _ in range(width)] for _ in range(n)]
    labels = [rng.randrange(n_classes) for _ in range(n)]
    labels[:n_classes] = range(min(n, n_classes))
    weights = [1] * n_classes if rng.random() < 0.6 else rng.choices(range(1, 6), k=n_classes)
    total = sum(weights[label] for label in labels)
    leaf, least = rng.choice([(1, 0), (1, 0), (2, 0), (1, total // 5)])
    often = rng.choices(range(1, 4), k=n) if max(weights) == 1 and rng.random() < 0.5 else None
    return values, labels, lengths, (weights, leaf, least, *([often] if often else []))


def judge(found, before, case, ways):
    """Compare a split, or none, with all that there are; return its exact line."""
    values, labels, lengths, rules = case
    rows = [tuple(row) for row in values]
    often = rules[3] if len(rules) > 3 else [1] * len(labels)
    counts = numbers(labels, often, len(rules[0]))
    joins = {"first": lambda _, new: new, "and": max, "or": min}
    lines = {
        (length, row, start, way): [
            joins[way](old, exact_distance(rows[row][start : start + length], points))
            for old, points in zip(before[2] or rows, rows, strict=True)
        ]
        for length in lengths
        for row in range(len(rows))
        for start in range(len(rows[0]) - length + 1)
        for way in ways
    }
    best = {
        place: max(cuts(line, place[0], labels, rules), default=before[:2])
        for place, line in lines.items()
    }
    gain = max(best.values())[0]
    gap = max(own[1] for own in best.values() if own[0] == gain)
    # gaps are rounded: those that come as close are as good
    better = gain > before[0] or (gain == before[0] and gap > before[1] + 1e-9)
    if found is None:
        assert not better
        return None
    place = found.length, found.series, found.start, found.way
    on_left = found.distances <= found.cut.threshold
    here = [m * is_left for m, is_left in zip(often, on_left.tolist(), strict=True)]
    left = numbers(labels, here, len(counts))
    assert gain_of(left, counts, rules[0]) == best[place][0] == gain
    assert abs(found.cut.gap - gap) < 1e-9
    assert found.cut.gain > 0
    line = lines[place]
    for a, b in itertools.combinations(range(len(rows)), 2):
        if line[a] == line[b]:
            assert on_left[a] == on_left[b]
    return gain, gap, line


def attack(engine, seed):
    """Search a node, and a partner for what is found."""
    rng = random.Random(seed)
    case = values, labels, lengths, rules = draw(rng)
    counts = numbers(labels, rules[3] if len(rules) > 3 else [1] * len(labels), len(rules[0]))
    nothing = gain_of([0] * len(counts), counts, rules[0]), np.inf, None
    first = search(engine, values, labels, lengths, rules)
    before = judge(first, nothing, case, ("first",))
    if first is None or rng.random() < 0.5:
        return
    options = {"before": first.distances, "before_normalized": lengths[0] >= 3}
    options |= {"best_gain_so_far": first.cut.gain, "best_gap_so_far": first.cut.gap}
    ways = rng.choice([("and",), ("or",), ("and", "or")])
    second = search(engine, values, labels, lengths, rules, ways=ways, **options)
    judge(second, before, case, ways)


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.compiles) for n in (1, 2, 3))]
)
def test_splits_are_those_of_exact_arithmetic(fast_engine, part):
    for seed in range(100 * part, 100 * part + 100):
        attack(fast_engine, seed)


def test_equal_gains_of_different_counts_tie(engine):
    x = [0, 3, 7, 7, 9, 9, 13, 15, 17, 19, 20, 22, 26, 27, 30, 32]
    y = [0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1]
    found = search(engine, [[v] for v in x], y, (1,))
    assert found.cut.gap == 12.5


@pytest.mark.parametrize("weights", [[1, 1], [3.3, 3.3], [0.1, 0.3], [1, 7e-5], [1 / 3, 1 / 7]])
def test_what_gains_nothing_is_no_split(engine, weights):
    """Seven of each class at each of three places: every cut leaves the shares as they are."""
    values = np.repeat([[0.0], [1.0], [3.0]], 14, axis=0)
    labels = np.tile([0, 1], 21)
    assert search(engine, values, labels, (1,), (weights, 1, 0)) is None


def test_gains_are_ordered_as_exact_ones():
    """Many sets of counts on the left that small nodes may have."""
    rng = random.Random(1)
    for weights in ([1, 1], [1, 1, 1], [1, 3], [2, 3, 7], [1, 2, 2, 5]):
        for n in (5, 9, 14, 20):
            labels = [rng.randrange(len(weights)) for _ in range(n)]
            counts = [labels.count(c) for c in range(len(weights))]
            criterion = Criterion(np.array(labels), 0.1 * np.array(weights))
            order = np.array([rng.sample(range(n), n) for _ in range(200 // (n - 1) + 1)])
            found = (
                criterion._gains_along(order, np.ones((len(order), n - 1), bool)).ravel().tolist()
            )
            on_left = np.cumsum(
                np.eye(len(weights), dtype=np.int64)[criterion.labels[order]], axis=1
            )
            left = on_left[:, :-1].reshape(-1, len(weights)).tolist()
            exact = [gain_of(one, counts, weights) for one in left]
            nothing = gain_of([0] * len(counts), counts, weights)
            ordered = sorted(zip(exact, found, strict=True))
            for (a, one), (b, other) in itertools.pairwise(ordered):
                assert one == other if a == b else one <= other
                if criterion.equal and a < b:
                    assert one < other
            assert all((gain == 0) == (a == nothing) for a, gain in ordered)


def series_of_class_0_then_1(numbers):
    """A line of 400 series of class 0 and 300 of class 1, which begins with so many of each."""
    zeros, ones = np.arange(400), np.arange(400, 700)
    first, second = numbers
    parts = zeros[:first], ones[:second], zeros[first:], ones[second:]
    return np.concatenate(parts)[np.newaxis]


@pytest.mark.parametrize("percent", [31, 43])
def test_gains_near_a_rounding_edge_are_rounded_exactly(percent):
    """Sums in float64 leave open on which side; which one it is follows from the counts."""
    criterion = Criterion(np.repeat([0, 1], [400, 300]), np.array([1.0, percent / 100]))
    left = np.stack(np.meshgrid(np.arange(401), np.arange(301)), axis=-1).reshape(1, -1, 2)[:, 1:-1]
    # the cuts nearest to an edge, where there are numbers longer than float64
    weights, counts = np.array([100, percent], np.longdouble), np.array([400, 300])
    each = [side * weights for side in (left[0], counts - left[0], counts)]
    near, far, whole = (
        (x * np.log(np.maximum(x, 1))).sum(axis=-1) - x.sum(axis=-1) * np.log(x.sum(axis=-1))
        for x in each
    )
    gains = (near + far - whole) / each[2].sum() * 2.0**38
    for at in np.argsort(np.abs(gains % 1 - 0.5))[:8]:
        # alone on its line every gain is the best
        row = left[0, at].tolist()
        order = series_of_class_0_then_1(row)
        (found,) = criterion._gains_along(order, np.arange(1, 700)[np.newaxis] == sum(row))
        assert found[sum(row) - 1] == criterion._exact_gain(row)
    # lines that have all counts on the left together
    orders = np.concatenate([series_of_class_0_then_1((count, 300)) for count in range(401)])
    found = criterion._gains_along(orders, np.ones((401, 699), bool))
    line, cut = np.argwhere(found == found.max())[0]
    best = np.bincount(criterion.labels[orders[line, : cut + 1]], minlength=2).tolist()
    mirrored = (np.array([400, 300]) - best).tolist()
    assert found.max() == criterion._exact_gain(best) == criterion._exact_gain(mirrored)


def test_bounds_of_engines_hold_the_rounded_gains():
    """Sums of the tables, which kernels use, against the gains of the host."""
    rng = np.random.default_rng(2)
    for weights in ([1.0, 2.5, 0.7], [1.0, 1e-6, 3.0], [1.0, 1.0, 0.0]):
        labels = rng.integers(0, 3, 60)
        criterion = Criterion(labels, np.array(weights))
        tables = criterion.tables()
        order = rng.permutation(60)
        left = np.cumsum(np.eye(3, dtype=np.int64)[labels[order]], axis=0)[:-1]
        changes = np.cumsum(np.pad(tables.changes, ((0, 0), (1, 0))), axis=1)
        each = sum(
            changes[c, left[:, c]] + changes[c, tables.counts[c] - left[:, c]]
            - changes[c, tables.counts[c]]
            for c in range(3)
        )  # fmt: skip
        share = left @ tables.weights
        rest = (tables.counts - left) @ tables.weights
        for row, own, a, b in zip(left, each, share, rest, strict=True):
            both = sum(
                int(np.rint(tables.unit * side * np.log(max(side, 1e-300)))) for side in (a, b)
            )
            exact = criterion._exact_gain(row.tolist())
            assert abs(int(own) + tables.node_entropy - both - exact) <= tables.slack


@pytest.mark.parametrize("drawn", ["whole", "any"])
def test_bounds_of_engines_hold_gains_of_weighted_series(drawn):
    """Numbers of classes that are weights; and groups, whose gains are no less."""
    rng = np.random.default_rng(5)
    n, labels = 40, rng.integers(0, 3, 40)
    often = rng.integers(1, 4, n).astype(float) if drawn == "whole" else rng.random(n) + 0.01
    criterion = Criterion(labels, np.array([1.0, 0.3, 2.0]), sample_weight=often)
    tables, groups = criterion.tables(), criterion.tables(of_groups=True)
    assert len(groups.counts) == len(np.unique(np.stack([labels, often]), axis=1).T) > 3
    order = rng.permutation(n)
    assert_array_equal(np.bincount(labels, tables.steps), tables.counts)
    (gains,) = criterion._gains_along(order[np.newaxis], np.ones((1, n - 1), bool))
    # the definition, in plain sums
    weights = np.array([1.0, 0.3, 2.0])[labels] * often
    for k in range(n - 1):
        sides = [
            np.bincount(labels[part], weights[part], 3) for part in (order[: k + 1], order[k + 1 :])
        ]
        parts = [sum(-v * np.log(v / side.sum()) for v in side if v > 0) for side in sides]
        whole = sum(sides)
        gain = sum(-v * np.log(v / whole.sum()) for v in whole) - sum(parts)
        assert abs(gains[k] / criterion.unit - gain / whole.sum()) < 1e-10
        number = np.bincount(groups.labels[order[: k + 1]], minlength=len(groups.counts))
        bound, sizes = groups.node_entropy, (number, groups.counts - number)
        for c, (here, there) in enumerate(zip(*sizes, strict=True)):
            changes = groups.changes[c]
            bound += changes[:here].sum() - changes[there : groups.counts[c]].sum()
        for side in (size @ groups.weights for size in sizes):
            bound -= int(np.rint(groups.unit * side * np.log(side)))
        assert bound + groups.slack >= gains[k]


@pytest.mark.parametrize("factor", [3.0, 0.1, 1e3])
def test_no_threshold_lies_between_what_is_equal_but_for_rounding(engine, factor):
    """Series that are equal once they are normalised, in classes that differ."""
    rng = np.random.default_rng(4)
    shape = rng.normal(size=9)
    values = [factor**k * (shape + 7 * k) for k in range(6)]
    assert search(engine, values, [0, 1] * 3, (4, 9)) is None
    # and one that does differ is told apart
    values[3] = values[3] + 1e-6 * factor**3 * rng.normal(size=9)
    found = search(engine, values, [0, 0, 0, 1, 0, 0], (9,))
    assert found.cut.gap > 1e-8


def test_neighbours_on_a_line_are_judged_by_what_is_between_them():
    criterion = Criterion(np.array([0, 0, 1, 1]), np.ones(2))
    for step, split in ((0.99 * TOLERANCE, False), (1.01 * TOLERANCE, True)):
        line = np.array([[0, 0.5, 0.5 + step, 0.5 + 2 * step]])
        assert criterion.best_cuts(line, np.array([True])).threshold[0] < 0.5 or split
        small = 2.0**-300 * line
        assert criterion.best_cuts(small, np.array([True])).gain[0] == -1
        # windows as they are have distances of any size
        assert criterion.best_cuts(small, np.array([False])).gain[0] > 0


@pytest.mark.parametrize("power", [-400, -170, 170, 400])
@pytest.mark.parametrize("lengths", [(1, 2), (3, 5, 8, 12)])
def test_a_power_of_two_changes_no_bit(engine, power, lengths):
    rng = np.random.default_rng(6)
    values = rng.normal(size=(14, 13)).cumsum(axis=1)
    values[::3, 4:9] = 1.5
    values[1, 3] = 1e-200
    labels = rng.integers(0, 3, 14)
    scale = 2.0**power
    expected = search(engine, values, labels, lengths)
    found = search(engine, scale * values, labels, lengths)
    unit = scale if lengths[0] < 3 else 1.0
    assert found[1:6] == expected[1:6]
    assert found.cut == (expected.cut.gain, *(unit * v for v in expected.cut[1:]))
    assert_array_equal(found.distances, unit * expected.distances)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(8))
def test_loud_stretches_beside_quiet_ones(fast_engine, seed):
    """Products and bounds of the two leave the range of float64."""
    rng = np.random.default_rng(seed)
    values = 1e-140 * rng.normal(size=(10, 14)).cumsum(axis=1)
    values[rng.random(10) < 0.5, :7] *= 1e280
    labels = rng.integers(0, 2, 10)
    found, expected = (
        search(engine, values, labels, (3, 7, 9)) for engine in (fast_engine, "oracle")
    )
    assert found[1:6] == expected[1:6]
    assert found.cut.gain == expected.cut.gain
    assert abs(found.cut.gap - expected.cut.gap) < 1e-12


def test_tiny_distances_of_a_literal_stay_apart(engine):
    """Their squares are nothing beside those of others."""
    values = np.array([[0.0], [1e-200], [3e-200], [4e-200], [5.0], [6.0]])
    labels = [0, 0, 1, 1, 0, 1]
    before = np.array([0, 1e-200, 3e-200, 4e-200, 5.0, 6.0])
    options = {"before": before, "before_normalized": False, "ways": ("or",)}
    found = search(engine, values, labels, (1,), **options)
    assert found.cut.threshold == 2e-200
    assert search("oracle", values, labels, (1,), **options)[:6] == found[:6]


@pytest.mark.parametrize("power", [-400, 400])
def test_matches_of_windows_as_they_are_scale(engine, power):
    """Also where squares of differences are no numbers, and of values far from all others."""
    values = np.array([[[1.0, 3.0, 1e-200, 0.0, 2e-200, 1e-170, 5.0, 2.0]]])
    queries = tuple(np.array(q) for q in ([0.0], [3e-200, 0.0], [0.0, 1e-170], [4.0, 2.0, 7.0]))
    scale = 2.0**power
    if power < 0:
        values[np.abs(values) < 1e-100] *= 1e100
        queries = tuple(np.where(np.abs(q) < 1e-100, 1e100 * q, q) for q in queries)
    sizes = np.array([8])
    expected = run(SubsequenceMatches(queries, Series(values, sizes), False), engine=engine)
    found = run(
        SubsequenceMatches(tuple(scale * q for q in queries), Series(scale * values, sizes), False),
        engine=engine,
    )
    assert_array_equal(found.starts, expected.starts)
    assert_array_equal(found.distances, scale * expected.distances)
    if power > 0:
        assert expected.distances[1, 0] == 2e-200


def test_a_bound_that_does_not_hold_is_not_passed_over():
    """Measured gains are compared with the bounds of the search."""
    values, labels = np.arange(8.0)[:, np.newaxis], np.repeat([0, 1], 4)
    series = Series(values[:, np.newaxis], np.ones(8, np.int64))
    work = ShapeletSearch(series, np.arange(8), (1,), Criterion(labels, np.ones(2)))
    where = np.array([[1, 0, 0, 0, 0]])
    with pytest.raises(RuntimeError, match="points 0 to 1 of series 0 gain more than it allows"):
        work.measure(np.array([5]), np.array([np.inf]), where, lambda w: run(w, engine="numba"))


def test_the_exact_oracle_knows_a_gain():
    assert gain_of([1, 0], [1, 1], [1, 1]) > gain_of([0, 0], [1, 1], [1, 1]) == Fraction(1, 4)
    assert exact_distance((0, 1, 0), (0, 2, 0, 0)) == -1


@pytest.mark.parametrize("length", [2, 4])
def test_candidates_of_the_same_points_are_measured_once(length, rng):
    kinds = rng.normal(size=(3, 2, 9))
    values = kinds[[0, 1, 0, 2, 1, 0]]
    work = ShapeletSearch(
        Series(values, np.full(6, 9)),
        np.arange(6),
        (length,),
        Criterion(np.arange(6) % 2, np.ones(2)),
    )
    where = np.array(
        [
            (length, row, start, channel, 0)
            for row, start, channel in itertools.product(range(6), range(9 - length + 1), range(2))
        ]
    )
    asked = []

    def run_and_note(reduction):
        asked.append(len(reduction.groups))
        return run(reduction, engine="numba")

    found = work.certify(where, run_and_note)
    assert asked == [len(where) // 2]
    for (_, row, start, channel, _), distances in zip(where, found, strict=True):
        query = values[row, channel, start : start + length]
        expected = [
            best_match(tuple(query), tuple(points), length > 2)[0] / np.sqrt(length)
            for points in values[:, channel]
        ]
        assert_allclose(distances, expected, rtol=1e-12, atol=1e-12)
