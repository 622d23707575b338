"""Candidates of a join on the CPU, and the bounds that they are listed by, against plain loops."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_array_equal

from skts.engines import ConcatenatedSeries, get_engine
from skts.engines.host.windows import PAIRS
from skts.engines.numba.profile import candidates, channel_candidates, join
from skts.engines.numba.profile.candidates import Line
from skts.engines.numba.profile.lines import Searched, make_steps
from skts.engines.numba.profile.walk import NOTHING, lane_of


def line_of(points, length, normalize):
    """A line, and its windows as they are compared."""
    windows = sliding_window_view(points, length)
    mean, inverse = np.zeros(len(windows)), np.ones(len(windows))
    if normalize:
        anchored = windows - windows[:, :1]
        mean, inverse = anchored.mean(axis=1), 1 / anchored.std(axis=1)
        windows = (anchored - mean[:, np.newaxis]) * inverse[:, np.newaxis]
    return Line(points, mean, inverse), windows


def draw(rng, n_points, normalize):
    """Points: whole numbers where windows are compared as they are, so that many pairs tie."""
    points = rng.normal(size=n_points) if normalize else rng.integers(0, 3, n_points)
    return points.astype(float)


def nearest(found, k):
    """The k nearest of some pairs (distance, other), and what fills the rest."""
    pairs = sorted(found)[:k] + [(np.inf, -1)] * (k - len(found))
    return [distance for distance, _ in pairs], [other for _, other in pairs]


def candidates_of(n_windows, k):
    """Candidates of windows from the first one on, of which nothing is known."""
    found = np.full((n_windows, k), np.inf), np.full((n_windows, k), -1)
    return candidates.open_candidates(0, np.full(n_windows, np.inf), *found)


@pytest.mark.parametrize("normalize", [True, None])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("n_others", [1, 2, 30])
def test_the_nearest_of_what_was_offered_are_measured(rng, normalize, k, n_others):
    """In any order, with room that is made on the way; some windows get no offer, or few."""
    length, first, n_windows = 5, 3, 8
    own, windows = line_of(draw(rng, first + n_windows + length, normalize), length, normalize)
    others, theirs = line_of(draw(rng, n_others + length - 1, normalize), length, normalize)
    found = np.full((n_windows, k), np.inf), np.full((n_windows, k), -1)
    hint = np.full(len(windows), np.inf)
    known = candidates.open_candidates(first, hint, *found)
    offers = [(w, o) for w in range(first, first + n_windows) for o in range(n_others) if w != 5]
    wanted = {window: [] for window in range(first, first + n_windows)}
    for window, other in rng.permutation(offers).tolist():
        square = float(np.sum((windows[window] - theirs[other]) ** 2))
        slack = 0.0 if normalize is None else float(rng.choice([1e-12, 0.1, 3.0]))
        offered = square + slack * rng.uniform(-0.9, 0.9)
        candidates._offer(known, window, other, offered, slack + 1e-13 * (normalize is not None))
        wanted[window].append((np.sqrt(square), other))
        if rng.random() < 0.1:
            candidates.make_room(known, own, others, length, normalize)
        if rng.random() < 0.05:
            candidates.measure(known, own, others, length, normalize)
            assert known.n_listed[0] == 0
    candidates.measure_all(known, own, others, length, normalize)
    for window, pairs in wanted.items():
        distances, indices = nearest(pairs, k)
        np.testing.assert_allclose(found[0][window - first], distances, rtol=1e-12)
        assert_array_equal(found[1][window - first], indices)


@pytest.mark.parametrize("worst", [False, True])
def test_the_nearest_of_what_was_offered_in_channels_are_measured(rng, worst):
    """A list of more pairs than are measured at a time, in any order; whole numbers, which tie."""
    length, first, n_windows, n_others, n_channels = 3, 2, 5, 2 * PAIRS, 3
    sides, windows = [], []
    for n in (first + n_windows, n_others):
        points = rng.integers(0, 3, (n_channels, n + length - 1)).astype(float)
        # raw windows: nothing is taken off, and all are regular
        shape = n_channels, n
        each = np.zeros(shape), np.ones(shape), np.zeros(shape, np.uint8)
        sides.append(channel_candidates.ChannelLine(points, *each))
        windows.append(sliding_window_view(points, length, axis=1))
    squares = ((windows[0][:, :, np.newaxis] - windows[1][:, np.newaxis]) ** 2).sum(axis=-1)
    # of each pair the channels in the order in which they count, added one by one
    ordered = np.sort(np.sqrt(squares), axis=0)
    sums = np.cumsum(ordered[::-1] if worst else ordered, axis=0)
    dimensions, order = np.array([1, 3]), np.arange(n_channels)
    rule = channel_candidates.Rule(dimensions, np.zeros(n_channels, bool), 0, worst, False)
    found = np.full((n_windows, 2), np.inf), np.full((n_windows, 2), -1)
    looking, hint = np.ones(first + n_windows, bool), np.full((first + n_windows, 2), np.inf)
    known = channel_candidates.open_known(first, looking, hint, *found, 1)
    offers = rng.permutation([(p, a, o) for p, a, o in np.ndindex(n_windows, 2, n_others)])
    for place, at, other in offers.tolist():
        total = sums[dimensions[at] - 1, first + place, other]
        # of so wide bounds none tells which is nearer
        channel_candidates.offer(known, place, at, other, max(total - 9.0, 0.0), total + 9.0)
    pairs = {(place, other) for place, _, other in known.entries[: known.n_listed[0]].tolist()}
    assert len(pairs) > 4 * PAIRS
    channel_candidates.measure_all(known, *sides, length, rule, order)
    assert known.n_listed[0] == 0
    wanted = (sums[dimensions - 1, first:].T / dimensions).transpose(1, 2, 0)
    assert_array_equal(found[0], wanted.min(axis=2))
    assert_array_equal(found[1], wanted.argmin(axis=2))


def test_a_hint_rules_out_what_is_farther(rng):
    """But not what is as near: of equally near windows the first is to be found."""
    length, points = 4, np.arange(12.0)
    own, _ = line_of(points, length, None)
    found = np.full((9, 2), np.inf), np.full((9, 2), -1)
    # raw windows of this line that are d apart have distance 2 d
    known = candidates.open_candidates(0, np.full(9, 4.0), *found)
    for window in range(9):
        for other in range(8, -1, -1):
            if other != window:
                square = 4.0 * (window - other) ** 2
                candidates._offer(known, window, other, square, 0.0)
    candidates.measure_all(known, own, own, length, None)
    assert_array_equal(found[1][4], [3, 5])
    assert_array_equal(found[0][:, 0], np.full(9, 2.0))
    assert_array_equal(found[1][0], [1, 2])
    assert_array_equal(found[1][8], [7, 6])


@pytest.mark.parametrize("k", [1, 3])
def test_of_equal_windows_no_later_ones_are_kept_on_the_list(k):
    """A series that repeats exactly lists nearly all of its pairs, and few need be measured."""
    length = 6
    own, _ = line_of(np.tile([0.0, 1.0, 3.0], 20), length, None)
    found = np.full((4, k), np.inf), np.full((4, k), -1)
    known = candidates.open_candidates(0, np.full(4, np.inf), *found)
    for other in (9, 12, 15, 18)[: k + 1]:
        candidates._offer(known, 0, other, 0.0, 1e-9)
    candidates.measure(known, own, own, length, None)
    assert_array_equal(found[1][0], [9, 12, 15][:k])
    for other in (45, 3, 48, 51):
        candidates._offer(known, 0, other, 0.0, 1e-9)
    candidates.make_room(known, own, own, length, None)
    assert_array_equal(known.pairs[: known.n_listed[0]], [[0, 3]])
    candidates.measure_all(known, own, own, length, None)
    assert_array_equal(found[1][0], [3] if k == 1 else [3, 9, 12])
    assert_array_equal(found[0][0], np.zeros(k))


@pytest.mark.parametrize("normalize", [True, None])
@pytest.mark.parametrize("k", [1, 2])
def test_equal_windows_are_taken_from_the_list(normalize, k):
    """The first of them, in any order; others that may be equal stay on the list."""
    length = 3
    own, _ = line_of(np.tile([0.0, 1.0, 3.0, 5.0], 20), length, normalize)
    known = candidates_of(4, k)
    candidates._offer(known, 1, 20, 5.0, 1e-9)
    for other in (9, 6, 5, 13):
        candidates._offer(known, 1, other, 1e-10, 1e-9)
    assert known.n_listed[2] == 4
    candidates.take_equal(known, own, own, length, normalize)
    assert known.n_listed[2] == 0
    # of a single neighbour the far one waits apart, and none after the first equal one is left
    left = np.reshape([[1, 20], [1, 6]] if k == 2 else [], (-1, 2))
    assert_array_equal(known.pairs[: known.n_listed[0]], left)
    assert_array_equal(known.indices[1], [5, 9][:k])
    assert_array_equal(known.distances[1], np.zeros(k))
    squares = candidates.Squares(1.0, 1.0, 1e-9)
    assert candidates.is_settled(known, 1) and not candidates.is_settled(known, 0)
    assert (
        candidates.needed_by(known, 1, squares) == NOTHING > candidates.needed_by(known, 0, squares)
    )


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("known", [2.0, np.inf])
def test_the_limit_of_a_window_is_the_kth_least_of_its_upper_values(rng, k, known):
    """As low as can be, for what is farther need not be measured; never lower."""
    hint = np.full(1, known)
    tops = candidates.open_candidates(0, hint, np.empty((1, k)), np.empty((1, k), int)).tops[0]
    values = [*tops]
    for value in rng.integers(0, 8, 30) / 2:
        candidates._lower(tops, value)
        values.append(value)
        assert_array_equal(tops, np.sort(values)[:k])


def test_scores_from_which_on_a_pair_may_be_near():
    squares = candidates.Squares(20.0, 4.0, 0.5)
    need = candidates.needed_score(squares, 7.5)
    assert need == pytest.approx(3.0, rel=1e-14)
    assert need <= 3.0
    assert candidates.needed_score(squares, np.inf) == -NOTHING
    assert candidates.needed_score(squares, 100.0) < 0


# --- bounds --------------------------------------------------------------------------------------


def axis_of(rng, n_points, length):
    """An axis of a join of z-normalised windows whose sizes, and the errors of means, differ."""
    points = rng.normal(size=n_points) * np.repeat(10.0 ** rng.uniform(-2, 0, n_points // 5), 5)
    windows = sliding_window_view(points, length)
    mean, deviation = windows.mean(axis=1), windows.std(axis=1)
    slip = 1e-16 * rng.uniform(1, 100, mean.size)
    regular = np.ones(mean.size, bool)
    regular[[4, mean.size - 3]] = False
    size = np.abs(windows).max(axis=1)
    searched = Searched(points, mean, deviation, size, slip, regular, ~regular, 1.0, None)
    steps = make_steps(searched, length, 0.0)
    line, _ = line_of(points, length, True)
    return join.TileAxis(line, points, mean, regular, steps, 0, mean.size)


def doubt_of_a_pair(steps, i, j, length):
    """What a pair of windows leaves open of their squared distance."""
    blur, shift = max(steps.blur[i], steps.blur[j]), max(steps.shift[i], steps.shift[j])
    return join._doubt(blur, shift, length)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(("top", "start", "width"), [(0, 20, 40), (7, 8, 13), (31, 30, 1)])
def test_bounds_of_a_strip_hold_for_each_of_its_pairs(rng, top, start, width, single):
    """Errors of covariances, and with them of squared distances, for rows and for columns."""
    length = 6
    for _ in range(5):
        side = axis_of(rng, 80, length)._replace(stop=top + 12)
        work = join.Work(length, 0, False, True, True, single)
        steps, room = side.steps, join._open_room(length)
        band = join._open_band(top, side, room.band, True)
        assert (band.top, band.height) == (top, 12)
        errors = room.slack_of_column
        strip = join._open_strip(start, width, band, side, room.strip, errors, single, work)
        assert strip.single == single
        error = errors[:width].copy()
        known = candidates_of(side.mean.size, 2)
        known.tops[:] = 1.5
        rows = (room.slack_of_row, room.band.needed)
        join._need_rows(top, 12, strip, side, known, *rows, work)
        join._need_columns(strip, band, side, known, errors, room.strip.needed, work)
        for i in range(top, top + 12):
            alone = join._open_band(i, side._replace(stop=i + 1), room.band, True)
            for j in range(start, start + width):
                reach, stride = steps.reach[band.level, j], steps.stride[band.level, j]
                least = join._error(alone, reach, stride, length, single)
                assert least <= error[j - start]
                doubt = doubt_of_a_pair(steps, i, j, length)
                # a squared distance is alpha - beta score, a score is covariance times weight
                slack_i, slack_j = room.slack_of_row[i - top], errors[j - start]
                off_i = steps.beta[i] * steps.weight[j] * error[j - start] + doubt
                off_j = steps.beta[j] * steps.weight[i] * error[j - start] + doubt
                assert slack_i >= off_i * (1 - 1e-14)
                assert slack_j >= off_j * (1 - 1e-14)
                lane = lane_of(j - start)
                for at, need, slack in (
                    (i, room.band.needed[i - top], slack_i),
                    (j, room.strip.needed[lane], slack_j),
                ):
                    if side.regular[at]:
                        least = (steps.alpha[at] - 1.5 - slack) / steps.beta[at]
                        assert least * (1 - 1e-14) - 1e-14 <= need <= least
                    else:
                        assert need == NOTHING


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("single", [True, False])
def test_a_score_to_come_raises_what_is_needed_as_it_does_when_it_is_taken(rng, k, single):
    """But never above the score that the pair is taken with, which single precision rounds."""
    for _ in range(200):
        squares = candidates.Squares(2 * rng.random() + 1, rng.random() + 0.5, 1e-3 * rng.random())
        tops = np.sort(rng.exponential(size=k))
        if rng.random() < 0.3:
            tops[rng.integers(k) :] = np.inf
        score = rng.normal()
        most = np.float64(np.float32(score)) if single else score
        raised = join._raised(squares, most, single, tops)
        assert raised <= max(score, candidates.needed_score(squares, tops[-1]))
        after = tops.copy()
        candidates._lower(after, squares.alpha - squares.beta * score + squares.slack)
        taken = candidates.needed_score(squares, after[-1])
        least = abs(score) * 2.0**-20 if single else 0.0
        assert taken - least - 1e-15 * abs(taken) <= raised <= taken + 1e-15 * abs(taken)


def test_blocks_of_rows_end_before_a_row_that_takes_no_part():
    regular = np.ones(100, bool)
    regular[[7, 50]] = False
    for row, stop, end in ((3, 90, 7), (7, 90, 8), (8, 20, 20), (8, 90, 40), (20, 90, 50)):
        assert join._block(row, stop, regular) == end


def test_single_precision_is_left_where_it_leaves_much_in_doubt(rng):
    """Of the limits that are known so far: errors of half of the rows are a large share of them."""
    length = 6
    side = axis_of(rng, 80, length)
    room = join._open_room(length)
    work = join.Work(length, 2, False, False, True, True)
    band = join._open_band(0, side._replace(stop=20), room.band, True)
    strip = join._open_strip(30, 40, band, side, room.strip, room.slack_of_column, True, work)
    slack = np.array([join._slack_of_row(at, strip, side.steps, length) for at in range(20)])
    known = candidates_of(20, 2)
    assert not join._in_doubt(0, 20, strip, side, known, length)
    known.tops[:10, 1] = slack[:10] * 0.999 / join.CLEAR
    assert not join._in_doubt(0, 20, strip, side, known, length)
    known.tops[10, 1] = slack[10] * 0.999 / join.CLEAR
    assert join._in_doubt(0, 20, strip, side, known, length)
    # of settled windows nothing is left to measure
    known.distances[10] = 0.0
    assert not join._in_doubt(0, 20, strip, side, known, length)
    known.tops[:] = 1e9
    assert not join._in_doubt(0, 10, strip, side, known, length)


def test_single_precision_pays_until_it_leaves_more_to_measure_than_it_saved():
    """Pairs that have been measured, and listed ones that are still near."""
    length, n = 10, 7
    nothing = np.full(50, np.inf)
    for same in (True, False):
        for k in (1, 2):
            lists = [
                candidates.open_candidates(0, nothing, np.full((n, k), np.inf), np.full((n, k), -1))
                for _ in range(2)
            ]
            # of several neighbours one pair of each is measured after any walk
            of_any = 2 * n if k == 2 else 0
            work = join.Work(length, 2, same, True, True, True)
            if same:
                lists[1] = lists[0]
            for one, measured, far in zip(lists, (3, 2), (1, 4), strict=True):
                one.n_listed[1], one.n_listed[0] = of_any + measured, far + 1
                one.pairs[: far + 1] = 0
                one.tops[:] = 1.0
                one.floors[:far], one.floors[far] = 2.0, 0.5
            known, known_b = lists
            extra = 2 + 1 if same else 3 + 1 + 2 + 1
            assert not join._pays(known, known_b, work, extra - 1)
            # what is far has left the list
            assert known.n_listed[0] == known_b.n_listed[0] == 1
            assert join._pays(known, known_b, work, extra)
            known.n_listed[:] = known_b.n_listed[:] = 0
            assert join._pays(known, known_b, work, 0)


def test_what_is_affordable_grows_as_what_has_been_walked():
    """A share of the tile, for a start."""
    work = join.Work(10, 2, False, False, True, True)
    price = join.SAVED + join.SAVED_BY_POINT * 10
    axis = SimpleNamespace(first=100, stop=100 + 4 * price)
    other = SimpleNamespace(first=7, stop=7 + join.AHEAD)
    assert join._affordable.py_func(axis, other, work, 0) == 4
    assert join._affordable.py_func(axis, other, work, 3 * price - 1) == 6
    assert join._affordable.py_func(axis, other, work, 3 * price) == 7


@pytest.mark.parametrize("single", [True, False])
def test_a_walk_hands_on_no_more_rows_than_a_band_has(rng, monkeypatch, single):
    """As plain Python, with room for these rows alone: an index behind them is an error."""
    for name, function in list(vars(join).items()):
        monkeypatch.setattr(join, name, getattr(function, "py_func", function))
    monkeypatch.setattr(join, "HEIGHTS", (12,))
    # what the compiler makes of a group of columns: nothing is near, to the last of its rows
    monkeypatch.setattr(join, "descend", lambda *given: (given[6], 0, 0))
    length, n = 6, 75
    side = axis_of(rng, 80, length)._replace(stop=12)
    work = join.Work(length, -n, False, False, True, single)
    room = join._open_room(length)
    assert room.entering.size == room.single.entering.size == 12
    band = join._open_band(0, side, room.band, True)
    strip = join._open_strip(0, n, band, side, room.strip, room.slack_of_column, single, work)
    join._enter_rows(0, 0, band, side, side, room, work)
    join._enter_columns(0, strip, side, side, room, work)
    if single:
        join._narrow_strip(12, strip, room)
    known = candidates.Candidates(0, *(np.zeros(1) for _ in range(8)))
    tile = join.TileJoin(side, side, known, known, room, work)
    assert join._walk_strip(tile, band, strip, 0) == n
    # of a list that is too long the first group is walked, in single precision
    known.n_listed[0] = 1
    assert join._walk_strip(tile, band, strip, 0) == (join.SINGLE_LANES if single else n)


def test_a_band_is_bounded_by_its_largest_windows(rng):
    length = 6
    side = axis_of(rng, 60, length)
    steps, room = side.steps, join._open_room(length)
    for top, stop in ((0, 10), (9, 30), (20, 21)):
        band = join._open_band(top, side._replace(stop=stop), room.band, True)
        rows = slice(top, stop)
        for name in ("norm", "slip", "weight", "blur", "shift"):
            assert getattr(band, name) == np.abs(getattr(steps, name)[rows]).max(), name
        sizes = np.abs(steps.lead) + np.abs(steps.trail)
        assert band.step == sizes[top + 1 : stop].max(initial=0.0)
        assert band.drift == np.abs(side.mean[rows] - band.middle).max()
        assert band.middle in side.mean[rows]
        assert_array_equal(room.band.lead[1 : stop - top], steps.lead[top + 1 : stop])
        assert_array_equal(room.band.weight[: stop - top], steps.weight[rows])
        assert room.band.lead[0] == room.band.trail[0] == 0


@pytest.mark.parametrize("normalize", [True, False])
def test_factors_of_a_line_bound_its_steps(rng, normalize):
    """Norms and steps of a window and those before it, as many as a band may have."""
    from skts.engines.families.profile.lines import Frame

    length = 6
    side = axis_of(rng, 60, length)
    line = Searched(
        *(side.points, side.mean, 1 / side.line.inverse, np.ones(55), np.zeros(55)),
        *(side.regular, ~side.regular, 1.0, None if normalize else Frame(0.0, 1.0)),
    )
    steps = make_steps(line, length, 50.0)
    windows = sliding_window_view(side.points, length)
    energies = np.sum(windows**2, axis=1)
    if normalize:
        energies = np.sum((windows - windows.mean(axis=1, keepdims=True)) ** 2, axis=1)
        np.testing.assert_allclose(steps.beta[side.regular] * steps.norm[side.regular], 2 * length)
    np.testing.assert_allclose(steps.norm, np.sqrt(energies), rtol=1e-9)
    sizes = np.abs(steps.lead) + np.abs(steps.trail)
    for level, height in enumerate(join.HEIGHTS):
        for at in range(55):
            before = slice(max(0, at - height), at + 1)
            assert steps.reach[level, at] == steps.norm[before].max()
            assert steps.stride[level, at] == sizes[before].max()
    # squared distances of all pairs
    for i, j in rng.integers(0, 55, (40, 2)).tolist():
        if side.regular[i] and side.regular[j]:
            a, b = windows[i], windows[j]
            if normalize:
                a, b = ((w - w.mean()) for w in (a, b))
                score, square = a @ b * steps.weight[j], np.sum((a / a.std() - b / b.std()) ** 2)
            else:
                score, square = a @ b + steps.weight[j], np.sum((a - b) ** 2)
            np.testing.assert_allclose(steps.alpha[i] - steps.beta[i] * score, square, atol=1e-8)


@pytest.mark.parametrize("dropped", [0, 7])
def test_a_line_that_grows_keeps_what_is_known_of_its_windows(rng, dropped):
    engine, length, n_points = get_engine("numba"), 6, 5_000
    points = draw(rng, n_points, True)
    points[100:120] = 1.0  # constant windows
    before = ConcatenatedSeries.of([points[: n_points - 500]])
    grown = ConcatenatedSeries.of([points[dropped:]]).after(before, dropped)
    anew = ConcatenatedSeries.of([points[dropped:].copy()])
    for one in (before, grown, anew):
        engine._steps(one, engine._searched((one, one), length, True)[0], length, 0.0)
    known, expected = (engine._windows(one, length, True) for one in (grown, anew))
    for mine, theirs in zip(known, expected, strict=True):
        assert_array_equal(np.array(mine), np.array(theirs))
    line = engine._searched((grown, grown), length, True)[0]
    steps, others = (engine._steps(one, line, length, 0.0) for one in (grown, anew))
    for name in ("lead", "trail", "weight", "alpha", "beta", "norm", "slip", "blur", "shift"):
        assert_array_equal(getattr(steps, name), getattr(others, name))
    for name in ("reach", "stride"):  # also of windows that have left
        mine, theirs = getattr(steps, name), getattr(others, name)
        assert (mine >= theirs).all()
        own = slice(join.HEIGHTS[0] + 1, None)
        assert_array_equal(mine[:, own], theirs[:, own])


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("normalize", "k"), [(True, 1), (False, 1), (True, 3)])
def test_answers_of_long_lines_have_the_bits_of_short_ones(monkeypatch, rng, dtype, normalize, k):
    """By a kernel on the device, where NumPy does it for short lines."""
    from skts.engines import ConcatenatedSeries, Join, Tile
    from skts.engines.cupy import transfers
    from skts.engines.cupy.profile import known, lines
    from skts.engines.families.profile.lines import Frame

    points = 3 * rng.standard_normal(300).cumsum()
    points[100:140] = 0.5
    pool = ConcatenatedSeries.of([points])
    join = Join(pool, None, 20, 5, k, normalize=normalize)
    n = join.shape[0]
    scores = rng.uniform(0, 40, (2, n)).astype(dtype)
    bits = scores.view(np.int32) if dtype is np.float32 else (scores.view(np.int64) >> 32)
    distances = np.sort(rng.integers(0, 9, (2, n, k)).astype(float), axis=2)
    distances[:, ::7] = np.inf
    indices = rng.integers(0, n, (2, n, k)).astype(np.int32)
    indices[np.isinf(distances)] = known.TAKES_NO_PART
    answers = []
    for small in (True, False):
        for module in (transfers, known):
            monkeypatch.setattr(module, "is_small", lambda size, small=small: small)
        line = lines.prepare_line(pool, 20, normalize)
        searched = lines.prepare_search(pool, line, 20, None if normalize else Frame(0.0, 128.0))
        level = 0.0 if normalize else 4 * float(searched.norm.max()) ** 2
        area, regular = Tile(0, n, 0, n), searched.regular
        some = (join, (searched, searched), (regular, regular), area, area.shape, level, dtype)
        one = known.Known(*some, 2**20)
        for at in range(2):
            one.sides[at].skipped.set(bits[at].astype(np.int32))
            one.found[at].distances.set(distances[at])
            one.found[at].indices.set(indices[at])
        answers.append([part for _, part in one.answer(area)])
    for part, other in zip(*answers, strict=True):
        assert (part.cols is None) == (k == 1) == (other.cols is None)
        for mine, its in ((part.rows, other.rows), (part.cols, other.cols)):
            for array, its_array in zip(mine or (), its or (), strict=True):
                assert_array_equal(array, its_array)
        assert_array_equal(part.row_floor, other.row_floor)
        assert np.isinf(part.row_floor).sum() == (~transfers.to_host(regular)).sum()
