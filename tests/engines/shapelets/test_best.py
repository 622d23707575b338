"""The best of all candidates: bounds that hold, and the choice of an engine that measures all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts import config_context
from skts.engines import BestShapelets, Criterion, Kind, Series, Tile, find_engine, run
from skts.engines.families.shapelets import best
from skts.engines.families.shapelets import places as places_module
from skts.engines.families.shapelets.places import Places, Room, choose
from skts.exceptions import VerificationError

#: What of a tile's bounds exceeds what its candidates gain, at most: gaps, in distances.
TIGHT = 1e-6
KINDS = ["walks", "few values", "constant", "all constant", "repeated", "offset", "scales"]
KINDS += ["unequal", "channels", "spike", "one class", "one each", "one loud class"]


def work_of(kind, n=13, width=30, **options):
    rng = np.random.default_rng(KINDS.index(kind))
    values = rng.normal(size=(n, 2 if kind == "channels" else 1, width)).cumsum(axis=2)
    lengths = np.full(n, width)
    if kind == "few values":
        values[:] = rng.integers(0, 2, values.shape)
    if kind == "constant":
        values[0], values[1:5, :, 4:20] = 2.0, 1.0
    if kind == "all constant":
        values[:] = rng.integers(0, 2, (n, 1, 1))
    if kind == "repeated":
        values[:, :, 15:] = values[:, :, :15]
        values[6:12] = values[:6]
    if kind == "offset":
        values += 10.0 ** rng.integers(4, 9, (n, 1, 1))
    if kind == "scales":
        values *= 10.0 ** rng.integers(-100, 100, (n, 1, 1))
    if kind == "spike":
        values[3, 0, 7] = 1e7
    if kind == "one loud class":
        # windows beside such points are bounded by nothing
        values[:, 0, 7] = 10.0 ** rng.integers(6, 13, n)
    if kind == "unequal":
        lengths = rng.integers(19, width + 1, n)
        values[np.arange(width) >= lengths[:, np.newaxis, np.newaxis]] = 0
    alone = np.zeros(n, np.int64)
    labels = {"one class": alone, "one loud class": alone, "one each": np.arange(n)}.get(kind)
    labels = rng.permutation(np.arange(n) % 3) if labels is None else labels
    criterion = Criterion(labels, np.ones(labels.max() + 1))
    kinds = options.pop("kinds", ALL)
    return BestShapelets(Series(values, lengths), kinds, criterion, 9, 4)


#: With the dilation 6 some lines of every sixth point have no window.
ALL = (*(Kind(4, d, True) for d in (1, 2, 3, 6)), Kind(7, 3, True), Kind(3, 1, False))


def same(found, expected):
    for a, b in zip(found.places, expected.places, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(found.gain, expected.gain)
    assert_array_equal(found.gap, expected.gap)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_and_are_tight(kind):
    work, engine, go = work_of(kind), find_engine("numba"), np.zeros(1, np.uint8)
    tile = Tile(0, work.shape[0], 0, work.shape[1])
    found = engine.shapelet_bounds(work, tile, go)
    exact = [
        work.compared(row, block, engine.shapelet_features, go)
        for row in range(work.shape[0])
        for block in range(work.shape[1])
    ]
    gain, gap = (np.concatenate(column) for column in zip(*exact, strict=True))
    assert (found.gain >= gain).all()
    same_gain = found.gain == gain
    assert (found.gap >= gap)[same_gain].all()
    if kind in ("walks", "unequal", "channels"):
        assert same_gain.mean() > 0.99
        settled = same_gain & np.isfinite(gap)
        assert (found.gap - gap)[settled].max() < TIGHT


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_is_that_of_an_engine_that_measures_all(fast_engine, kind):
    work = work_of(kind)
    same(run(work, engine=fast_engine), run(work, engine="oracle" if kind == "walks" else "numba"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_choice_is_greedy_among_exact_gains(kind):
    work, engine, go = work_of(kind), find_engine("numba"), np.zeros(1, np.uint8)
    total = work.start()
    for row in range(work.shape[0]):
        exact = work.compared(row, 0, engine.shapelet_features, go)
        work.merge(total, Tile(row, row + 1, 0, 1), exact)
    same(run(work, engine="numba"), work.finish(total, lambda part: run(part, engine="numba")))


def test_blocks_and_parts_make_no_difference(monkeypatch):
    expected = run(work_of("channels"), engine="numba")
    monkeypatch.setattr(best, "BLOCK_BYTES", 1)
    work = work_of("channels")
    assert work.shape == (12, 4)
    same(run(work, engine="numba"), expected)
    total, engine, go = work.start(), find_engine("numba"), np.zeros(1, np.uint8)
    for tile in (Tile(0, 12, 0, 1), Tile(0, 5, 1, 4), Tile(5, 12, 1, 4)):
        part = work.part(tile)
        inner = part.start()
        for col in range(part.shape[1]):
            for rows in ((0, 2), (2, part.shape[0])):
                one = Tile(*rows, col, col + 1)
                part.merge(inner, one, engine.shapelet_bounds(part, one, go))
        work.merge(total, tile, inner)
    same(work.finish(total, lambda asked: run(asked, engine="numba")), expected)


def test_tiles_in_the_middle_are_slices_of_the_whole(fast_engine):
    kinds = Kind(4, 1, True), Kind(3, 1, True), Kind(3, 1, False)
    work, engine = work_of("walks", 5, 12, kinds=kinds), find_engine(fast_engine)
    go = np.zeros(1, np.uint8)
    whole, total = engine.shapelet_bounds(work, Tile(0, 3, 0, 1), go), work.start()
    for row in (2, 0, 1):
        tile = Tile(row, row + 1, 0, 1)
        work.merge(total, tile, engine.shapelet_bounds(work, tile, go))
    for one, other in zip(total, whole, strict=True):
        assert_array_equal(one, other)


def test_answers_are_verified():
    work = work_of("walks")
    with config_context(verify=True):
        answer = run(work, engine="numba")
    worse = answer._replace(gain=answer.gain - 1)
    with pytest.raises(VerificationError), config_context(verify=True):
        from skts.engines.core.verify import verify

        verify(work, "numba", worse)


def test_what_is_taken_is_no_longer_free():
    room = Room(np.array([0, 1]), (1, 9), 2)
    # three points of the second series, from the third on
    place = Places(*(np.array([one]) for one in (False, 3, 1, 0, 1, 2)))
    assert room.fits(place) and room.take(place)
    assert np.argwhere(room.taken).tolist() == [[1, 0, 2], [1, 0, 3], [1, 0, 4]]
    assert not room.fits(place) and not room.take(place)


def test_many_fit_where_each_fits_alone(rng):
    room = Room(np.array([0, 1, 1]), (2, 60), 2)
    room.taken[:] = rng.random(room.taken.shape) < 0.1
    room.left[0] = 0
    every = np.indices((3, 2, 56)).reshape(3, -1)
    assert every.shape[1] > places_module._FEW
    dilation = rng.integers(1, 4, every.shape[1])
    places = Places(dilation < 0, 2 + 0 * dilation, dilation, every[1], every[0], every[2])
    fits = room.fits(places)
    alone = [room.fits(places.take(np.array([k])))[0] for k in range(every.shape[1])]
    assert_array_equal(fits, alone)
    assert 0 < fits.sum() < fits.size


def test_a_bound_that_does_not_hold_is_told_with_its_place():
    def places(numbers):
        same = np.ones_like(numbers)
        return Places(same < 0, 2 * same, same, 0 * same, numbers, 3 * same)

    def measure(numbers):
        return np.where(numbers == 1, 9, 0), np.zeros(len(numbers))

    room, bounds = Room(np.zeros(3, np.int64), (1, 9), 9), (np.array([5, 4, 3]), np.zeros(3))
    with pytest.raises(RuntimeError, match="points 3 to 5 of series 1 score more than it allows"):
        choose(bounds, places, room, 3, measure)


def test_a_choice_ends_where_nothing_fits():
    work = work_of("walks", n=4, width=12, kinds=(Kind(9, 1, True),))
    assert len(run(work, engine="numba").gain) == 4


def test_auto_takes_the_cpu_where_covariances_save_most_of_the_work():
    """Also where there is a GPU, which would measure all; of raw candidates both do."""
    series = Series(np.zeros((200, 1, 427)), np.full(200, 427))
    criterion = Criterion(np.arange(200) % 6, np.ones(6))

    def seconds(normalized):
        work = BestShapelets(series, (Kind(60, 1, normalized),), criterion, 9, 4)
        return [find_engine(name).seconds(work) for name in ("numba", "cupy")]

    cpu, gpu = seconds(True)
    assert cpu < gpu
    cpu, gpu = seconds(False)
    assert gpu < cpu
