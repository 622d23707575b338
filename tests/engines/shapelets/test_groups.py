"""Groups of candidates and series: distances and splits, beside plain loops."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import config_context
from skts.engines import (
    GroupMatches,
    Groups,
    GroupSplits,
    Series,
    SplitRules,
    Splits,
    SubsequenceMatches,
    Tile,
    distances_to_all,
    offsets,
    replace_kernels,
    run,
)
from skts.engines.core.series import read_only
from skts.engines.families.shapelets import splits
from skts.engines.families.shapelets.criterion import _logarithms, number_terms
from skts.engines.host.splits import _sort
from skts.engines.numba.shapelets.groups import PADDING, survey

KINDS = ["walks", "whole", "offset", "constant", "channels", "unequal", "loud", "points"]


def draw(kind, seed=0):
    """Series of a kind, 1 to 6 groups of candidates among them, and their members."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n, width = int(rng.integers(2, 9)), int(rng.integers(5, 40))
    n_channels = 2 if kind == "channels" else 1
    values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
    lengths = np.full(n, width)
    if kind == "whole":
        values = np.round(values)
    elif kind == "offset":
        values = 1e9 + 1e-3 * values
    elif kind == "constant":
        values[:, :, width // 2 :] = 3.0
        values[0] = 1.0
    elif kind == "loud":
        values[:, :, : width // 2] *= 1e12
    elif kind == "points":
        n, width = n, int(rng.integers(1, 6))
        values, lengths = values[:, :, :width], np.full(n, width)
    elif kind == "unequal":
        lengths = rng.integers(1, width + 1, n)
    values = np.where(np.arange(width) < lengths[:, None, None], values, 0.0)
    series = Series(np.ascontiguousarray(values), lengths)
    n_groups = int(rng.integers(1, 7))
    n_candidates, n_members = rng.integers(1, 5, n_groups), rng.integers(1, n + 1, n_groups)
    rows = rng.integers(0, n, n_candidates.sum())
    sizes = rng.integers(1, lengths[rows] + 1)
    starts = rng.integers(0, lengths[rows] - sizes + 1)
    channels = rng.integers(0, n_channels, len(rows))
    members = [np.sort(rng.permutation(n)[:count]) for count in n_members]
    pieces = np.column_stack([rows, channels, starts, sizes])
    return Groups(
        series, pieces, offsets(n_candidates), series, np.concatenate(members), offsets(n_members)
    )


def rules_for(groups, seed=0, **options):
    rng = np.random.default_rng(seed)
    n = len(groups.members)
    given = {"leaf": int(rng.integers(1, 3)), "least": np.zeros(len(groups))}
    return SplitRules(rng.integers(0, 3, n), rng.integers(1, 4, n), **(given | options))


def same_splits(found, expected):
    for name, one, other in zip(Splits._fields, found, expected, strict=True):
        assert_array_equal(one, other, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_of_the_oracle(fast_engine, kind):
    for seed in range(4):
        groups = draw(kind, seed)
        with config_context(verify=True):
            found = run(GroupMatches(groups), engine=fast_engine)
        assert_array_equal(found, run(GroupMatches(groups), engine="oracle"))


@pytest.mark.parametrize("kind", ["smooth", "noise", "peak", "steps", "waves", "loud", "copies"])
def test_distances_in_long_series(kind):
    """Where sums of points are compared first; some windows cannot be judged, or many are alike."""
    rng = np.random.default_rng(len(kind))
    n, width, t = 5, 320, np.arange(320)
    values = rng.normal(size=(n, 1, width)).cumsum(axis=2)
    if kind == "noise":
        values = rng.normal(size=(n, 1, width))
    elif kind == "peak":
        values[:3, 0, 50] = 1e7
    elif kind == "steps":
        values = np.repeat(np.round(values[:, :, ::40]), 40, axis=2)
    elif kind == "waves":
        values = np.sin(2 * np.pi * t / 20) * rng.uniform(1, 2, (n, 1, 1))
    elif kind == "loud":
        values[:, :, : width // 2] *= 1e9
    elif kind == "copies":
        values[2:4] = values[:2]
        values[:, :, 160:] = values[:, :, :160] * 4 + 1
    series, sizes = Series(values, np.full(n, width)), np.array([107, 108, 150, 213])
    pieces = np.column_stack([rng.integers(0, n, 4), 0 * sizes, rng.integers(0, 100, 4), sizes])
    groups = Groups(series, pieces, np.array([0, 4]), series, np.arange(n), np.array([0, n]))
    found = run(GroupMatches(groups), engine="numba")
    assert_array_equal(found, run(GroupMatches(groups), engine="oracle"))


@pytest.mark.parametrize("power", [-600, 600])
def test_distances_of_points_of_any_size(fast_engine, power):
    """Windows of few points are compared as they are: their squares are beyond all numbers."""
    groups = draw("points", 1)
    scaled = Series(np.ldexp(groups.series.values, power), groups.series.lengths)
    again = replace(groups, source=scaled, series=scaled)
    found, plain = (run(GroupMatches(one), engine=fast_engine) for one in (again, groups))
    assert_array_equal(np.unique(found[plain > 0] / plain[plain > 0]), [np.ldexp(1.0, power)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ways", [(), ("and", "or"), ("or",)])
def test_splits_are_those_of_the_oracle(fast_engine, kind, ways):
    for seed in range(4):
        groups = draw(kind, seed)
        work = GroupSplits(groups, rules_for(groups, seed, ways=ways, max_literals=3))
        with config_context(verify=True):
            found = run(work, engine=fast_engine)
        same_splits(found, run(work, engine="oracle"))


def weights_for(groups, kind, seed):
    """Weights of three classes in each group."""
    rng, shape = np.random.default_rng(seed), (len(groups), 3)
    if kind == "ratios":
        return rng.integers(1, 5, shape) / 3
    if kind == "any":
        return rng.uniform(0.1, 1, shape)
    if kind == "zeros":
        return rng.integers(0, 2, shape) * rng.uniform(0.1, 1, shape)
    # in one group all are equal, and not 1
    return np.where(np.arange(len(groups))[:, np.newaxis] == 0, 0.7, rng.integers(1, 3, shape))


@pytest.mark.parametrize("weights", [None, "ratios", "any", "zeros", "equal"])
@pytest.mark.parametrize("kind", ["walks", "whole", "unequal"])
def test_compiled_choices_are_those_of_the_criterion(kind, weights):
    for seed in range(6):
        groups = draw(kind, seed)
        rules = rules_for(groups, seed, ways=("and", "or"), max_literals=2)
        if weights is not None:
            least = np.full(len(groups), 0.5 * (seed % 3))
            rules = rules._replace(class_weight=weights_for(groups, weights, seed), least=least)
        work = GroupSplits(groups, rules)
        distances = run(GroupMatches(groups), engine="numba")
        found = splits.split_groups(work, slice(0, len(groups)), distances)
        expected = work.start()
        splits._split_by_criterion(groups, rules, distances, expected, range(len(groups)))
        same_splits(found, expected)


@pytest.mark.parametrize(("wrong", "share"), [(0.0, 0.0), (0.02, 0.1), (0.5, 1.0)])
def test_groups_of_open_roundings_are_left_to_the_criterion(wrong, share, monkeypatch):
    """Few where few gains are near the edge of a rounding, and all that have a cut if all are."""
    split, left, cut = splits._split_by_criterion, [], []
    monkeypatch.setattr(splits, "wrong_gain", lambda n_classes: wrong)

    def count(groups, rules, distances, found, which):
        left.extend(which)
        split(groups, rules, distances, found, which)

    rng = np.random.default_rng(8)
    for _ in range(60):
        # distances of candidates to members, one group
        groups, n = some_groups(4, n_members=12), 12
        distances = rng.integers(0, 9, n) / 7
        rules = SplitRules(
            *(rng.integers(0, 3, n), rng.integers(1, 4, n), 1, np.zeros(1)),
            class_weight=rng.uniform(0.1, 1, (1, 3)),
        )
        work = GroupSplits(groups, rules)
        expected = work.start()
        split(groups, rules, distances, expected, range(1))
        with monkeypatch.context() as counting:
            counting.setattr(splits, "_split_by_criterion", count)
            same_splits(splits.split_groups(work, slice(0, 1), distances), expected)
        cut.append(expected.chosen[0, 0] == 0)
    assert sum(cut) > 50
    assert len(left) == pytest.approx(share * sum(cut), abs=0.09 * sum(cut) * (0 < share < 1))


def test_weights_of_one_change_nothing(fast_engine):
    groups = draw("walks", 3)
    rules = rules_for(groups, 3, leaf=1)
    plain = run(GroupSplits(groups, rules), engine=fast_engine)
    ones = np.full((len(groups), 3), 1.0)
    weighted = run(GroupSplits(groups, rules._replace(class_weight=ones)), engine=fast_engine)
    same_splits(weighted, plain)
    uneven = rules._replace(class_weight=np.tile([1.0, 0.25, 0.5], (len(groups), 1)))
    found = run(GroupSplits(groups, uneven), engine=fast_engine)
    same_splits(found, run(GroupSplits(groups, uneven), engine="numba"))


def test_tiles_merge_in_any_order(fast_engine):
    groups = draw("channels", 2)
    work = GroupSplits(groups, rules_for(groups))
    whole = run(work, engine=fast_engine)
    total = work.start()
    for row in reversed(range(len(groups))):
        tile = Tile(row, row + 1, 0, 1)
        part = work.part(tile)
        assert len(part.groups.series) <= len(groups.series)
        work.merge(total, tile, run(part, engine=fast_engine))
    same_splits(total, whole)


def test_candidates_of_another_source(fast_engine):
    """As `predict` has them: pieces of the training series, in series that come later."""
    groups = draw("walks", 1)
    others = Series(np.ascontiguousarray(groups.series.values[:, :, ::-1]), groups.series.lengths)
    found = run(GroupMatches(replace(groups, series=others)), engine=fast_engine)
    for g in range(len(groups)):
        members = groups.members[groups.members_of[g] : groups.members_of[g + 1]]
        begin = groups.distances_of[g]
        for k in range(groups.candidates_of[g], groups.candidates_of[g + 1]):
            row, channel, start, length = groups.pieces[k]
            query = groups.source.values[row, channel, start : start + length].copy()
            matches = SubsequenceMatches((query,), others.take(members), length >= 3)
            expected = run(matches, engine="numba").distances[0] / np.sqrt(length)
            assert_array_equal(found[begin : begin + len(members)], expected)
            begin += len(members)


def some_groups(length, n_members=4, n_groups=1):
    """Groups of all series, each with the first points of the first one as its candidate."""
    series = Series(np.arange(9.0 * n_members).reshape(n_members, 1, 9), np.full(n_members, 9))
    each, members = np.arange(n_groups + 1), np.tile(np.arange(n_members), n_groups)
    pieces = np.tile([0, 0, 0, length], (n_groups, 1))
    return Groups(series, pieces, each, series, members, each * n_members)


@pytest.mark.parametrize(("length", "threshold"), [(3, 0.5), (2, 5e-15)])
def test_a_cut_lies_where_no_rounding_sets_distances_apart(length, threshold):
    """Of normalised windows alone: others may be as small as they like."""
    groups, distances = some_groups(length), np.array([0.0, 1e-14, 1.0, 1.0])
    rules = SplitRules(np.array([0, 1, 1, 1]), np.ones(4, np.int64), 1, np.zeros(1))
    work = GroupSplits(groups, rules)
    expected = work.start()
    splits._split_by_criterion(groups, rules, distances, expected, range(1))
    assert expected.threshold[0, 0] == pytest.approx(threshold)
    same_splits(splits.split_groups(work, slice(0, 1), distances), expected)


@pytest.mark.parametrize("length", [1, 4, 9])
def test_work_is_that_of_all_points_of_all_windows(length):
    work = GroupMatches(some_groups(length, n_members=5, n_groups=3))
    assert work.step_work == length * (9 - length + 1) * 5 + 1


def test_ties_go_to_the_first_candidate(fast_engine):
    values = np.array([[0, 1, 0, 0, 2.0], [0, 1, 0, 0, 2.0], [0, 0, 1, 1, 0.0], [0, 0, 1, 1, 0.0]])
    series = Series(values[:, np.newaxis], np.full(4, 5))
    pieces = np.array([[0, 0, 0, 3], [0, 0, 0, 3], [1, 0, 0, 3]])
    groups = Groups(series, pieces, np.array([0, 3]), series, np.arange(4), np.array([0, 4]))
    rules = SplitRules(np.array([0, 0, 1, 1]), np.ones(4, np.int64), 1, np.zeros(1))
    found = run(GroupSplits(groups, rules), engine=fast_engine)
    assert found.chosen.tolist() == [[0]] and found.left.tolist() == [True, True, False, False]
    assert found.gain[0, 0] == pytest.approx(np.log(2))


def test_one_candidate_judges_a_node_unless_more_are_asked_for():
    nothing = np.zeros(4, np.int64), np.ones(4, np.int64), 1, np.zeros(1)
    assert SplitRules(*nothing, ways=("and",)).most == 1
    assert SplitRules(*nothing, ways=("and",), max_literals=3).most == 3
    assert SplitRules(*nothing, max_literals=3).most == 1


@pytest.mark.parametrize("kind", ["walks", "loud"])
def test_sums_of_series_are_kept_to_twice_the_digits(kind):
    """Of all points before each, and of their squares, the last ones included."""
    series = draw(kind, 1).series
    n, n_channels, width = series.shape
    rows, scratch = n * n_channels, np.zeros((n * n_channels, width), np.int64)
    points, scales = np.zeros((rows, width)), np.zeros((rows, 3))
    sums, squares = np.zeros((2, 2, rows, width + 1))
    strided = np.zeros((rows, width + PADDING))
    given = read_only(series.values), read_only(series.lengths)
    rounded, coarse = np.zeros((2, rows, width + PADDING), np.float32)
    survey(*given, points, sums, squares, scratch, rounded, coarse, strided, scales)
    for row in range(rows):
        place, channel = divmod(row, n_channels)
        line = series.values[place, channel, : series.lengths[place]]
        # points with their mean, in units of the centred ones
        units = np.ptp(line) / np.ptp(points[row, : line.size])
        magnitude = (np.abs(line).max() + abs(line.mean())) / units
        assert magnitude * (1 - 1e-9) <= scales[row, 0] <= 4 * magnitude * (1 + 1e-9)
        for found, terms in ((sums, points[row]), (squares, points[row] ** 2)):
            exact, size = Fraction(0), 0.0
            for t in range(series.lengths[row // n_channels] + 1):
                kept = Fraction(found[0, row, t]) + Fraction(found[1, row, t])
                assert abs(kept - exact) <= size * 2.0**-95
                if t < width:
                    exact += Fraction(terms[t])
                    size += abs(terms[t])


@pytest.mark.parametrize("n", [1, 8, 9, 16, 17, 100])
def test_orders_keep_equal_keys_as_they_come(rng, n):
    keys, order = rng.integers(0, 5, n).astype(float), np.empty(n, np.int64)
    _sort(keys, order, np.empty(n, np.int64))
    assert_array_equal(order, np.argsort(keys, kind="stable"))


def test_tables_of_small_nodes_are_those_of_larger_forests():
    tables, begins, bits = number_terms(300)
    for number in range(len(bits)):
        size = 2 << number
        logs, own = _logarithms(size)
        assert bits[number] == own
        assert_array_equal(tables[begins[number] : begins[number + 1]], np.arange(size + 1) * logs)


def test_logarithms_are_as_precise_as_their_sums_allow():
    for size in (2, 100, 3000, 20_000):
        logs, bits = _logarithms(size)
        assert size * int(logs[size]) < 2**60
        assert bits == 46 or size * int(logs[size]) >= 2**59


@pytest.mark.gpu
@pytest.mark.parametrize("judges", [2, 3, 8])
def test_any_number_of_threads_judges_alike(judges, monkeypatch):
    for kind in ("walks", "unequal"):
        groups = draw(kind, 5)
        work = GroupSplits(groups, rules_for(groups, 5, ways=("or",), max_literals=2))
        with monkeypatch.context() as patch:
            patch.setattr("skts.engines.cupy.shapelets.group_tiles.JUDGES", judges)
            patch.setattr("skts.engines.cupy.shapelets.group_tiles.WORTH_A_JUDGE", 1)
            patch.setattr("os.cpu_count", lambda: 8)
            found = run(work, engine="cupy")
        same_splits(found, run(work, engine="numba"))


@pytest.mark.gpu
@pytest.mark.parametrize("room", [1, 5, 12, 30, 10**6])
def test_as_many_groups_go_together_on_a_gpu_as_there_is_room_for(room, monkeypatch):
    """Neighbours, in their order, each once: one alone, or distances that are within the room."""
    from skts.engines.cupy.shapelets import group_tiles

    monkeypatch.setattr(group_tiles, "PAIRS", room)
    together = set()
    for seed in range(12):
        groups = draw("walks", seed)
        n_candidates, n_members = groups.sizes
        each = (n_candidates * n_members).tolist()
        parts = list(group_tiles._parts(groups))
        assert_array_equal(np.concatenate([part.pieces for part in parts]), groups.pieces)
        assert_array_equal(np.concatenate([part.members for part in parts]), groups.members)
        first = 0
        for part in parts:
            stop = first + len(part)
            assert len(part) == 1 or (len(part) > 1 and sum(each[first:stop]) <= room)
            # nor is there room for the next one
            assert stop == len(groups) or sum(each[first : stop + 1]) > room
            together.add(len(part))
            first = stop
        assert first == len(groups)
    assert (max(together) > 1) == (room > 1)


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("n_series", [1, 5, 150])
def test_numpy_finds_the_distances_of_kernels(rng, n_channels, n_series):
    """Constant windows, equal ones, and series that are shorter than candidates."""
    values = rng.normal(size=(n_series, n_channels, 20)).round(1)
    lengths = rng.integers(3, 21, n_series)
    for row, length in zip(values, lengths, strict=True):
        row[:, length:] = 0.0
    source = rng.normal(size=(4, n_channels, 20)).round(1)
    source[0] = 1.0
    pieces = np.array([(k, k % n_channels, k, 3 + 4 * k) for k in range(4)])
    given = Series(source, np.full(4, 20)), pieces, Series(values, lengths)
    found, expected = (by_choice(always, given) for always in (True, False))
    assert_array_equal(found, expected)
    assert np.isfinite(found).any()


def by_choice(always, given):
    with replace_kernels(always=always):
        return distances_to_all(*given, lambda work: run(work, engine="numba"))
