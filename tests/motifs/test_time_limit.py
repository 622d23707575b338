"""Profiles that are stopped: upper bounds, exact where the pair was seen, with the right share."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import skts.engines.families.profile.timed as module
from skts import MotifFinder, config_context
from skts.engines import ConcatenatedSeries, Join, Tile, TimedJoin, find_engine
from skts.engines.core import execution
from skts.engines.core.plan import spread
from skts.motifs import matrix_profile
from tests import reference_profiles as reference
from tests.engines.profile.test_join import make_line


@pytest.fixture
def seen(monkeypatch, fast_engine):
    """Tiles that were merged; they are single cells of 32 by 32."""
    tiles, merge = [], TimedJoin.merge

    def watched(self, total, tile, result):
        if max(tile.shape) <= 32:  # all that a GPU has kept comes at the end
            tiles.append(tile)
        merge(self, total, tile, result)

    monkeypatch.setattr(TimedJoin, "merge", watched)
    monkeypatch.setattr(Join, "cell", (32, 32))
    monkeypatch.setattr(type(find_engine(fast_engine)), "tile_work", 1)
    return tiles


def stop_after(monkeypatch, tiles):
    """Set a clock that ticks each time it is looked at, so that a limit of this many holds."""
    clock = itertools.count()
    monkeypatch.setattr(module, "monotonic", lambda: float(next(clock)))
    return float(tiles)


def all_distances(a, b, length, normalize=True):
    """Distances of all pairs, by plain loops."""
    rows = reference.windows_of(a, length)
    return np.array([reference.distance_profile(one, b, normalize=normalize) for one in rows])


def mask_of(tiles, shape, within):
    """Which pairs are in tiles, and in one line the same pairs the other way round."""
    mask = np.zeros(shape, bool)
    for tile in tiles:
        mask[tile.rows, tile.cols] = True
    if within:
        mask = np.triu(mask)
        mask |= mask.T
    return mask


@pytest.mark.parametrize(("within", "limit"), [(True, 1), (True, 4), (True, 9), (False, 5)])
@pytest.mark.parametrize("normalize", [True, False])
def test_of_what_was_seen_the_nearest(
    rng, monkeypatch, fast_engine, seen, within, limit, normalize
):
    a, other = rng.normal(size=150).cumsum(), rng.normal(size=110).cumsum()
    b = None if within else other
    options = {"window": 8, "exclusion": 3, "normalize": normalize, "engine": fast_engine}
    full = matrix_profile(a, b, **options)
    seconds = stop_after(monkeypatch, limit)
    found = matrix_profile(a, b, **options, time_limit=seconds, n_jobs=1)
    assert len(set(seen)) == len(seen) == limit
    distances = all_distances(a, a if within else b, 8, normalize)
    i, j = np.indices(distances.shape)
    allowed = np.abs(i - j) > 3 if within else np.ones(distances.shape, bool)
    compared = allowed & mask_of(seen, distances.shape, within)
    assert found.share == compared.sum() / allowed.sum()
    nearest = np.where(compared, distances, np.inf)
    known = np.isfinite(nearest.min(axis=1))
    if fast_engine == "cupy" and normalize:
        # what does not correlate may be left out
        known &= nearest.min(axis=1) < 3.99
    assert known.any()
    assert_array_equal(found.distances[known], nearest.min(axis=1)[known])
    assert_array_equal(found.indices[known], nearest.argmin(axis=1)[known])
    unknown = ~compared.any(axis=1)
    assert np.isinf(found.distances[unknown]).all() and (found.indices[unknown] == -1).all()
    assert (found.distances >= full.distances).all()
    there = compared[np.arange(len(known)), full.indices] & known
    assert_array_equal(found.distances[there], full.distances[there])
    assert_array_equal(found.indices[there], full.indices[there])


@pytest.mark.parametrize("kind", ["flat stretches", "gaps", "far scales", "repeats"])
def test_bounds_from_above(rng, monkeypatch, fast_engine, seen, kind):
    """Constant windows, and those that no tile searches, are compared with all in any case."""
    x = make_line(kind, 150, rng)
    options = {"window": 8, "exclusion": 3, "k": 2, "sides": True, "engine": fast_engine}
    full = matrix_profile(x, **options)
    with config_context(verify=True):
        found = matrix_profile(x, **options, time_limit=stop_after(monkeypatch, 5), n_jobs=1)
    assert 0 < found.share < 1 and found.left.share == found.right.share == found.share
    distances = all_distances(x, x, 8)
    for mine, exact in ((found, full), (found.left, full.left), (found.right, full.right)):
        assert (mine.distances >= exact.distances).all()
        rows, ranks = np.nonzero(mine.indices >= 0)
        assert_array_equal(mine.distances[rows, ranks], distances[rows, mine.indices[rows, ranks]])


@pytest.mark.parametrize("options", [{}, {"k": 2, "sides": True}, {"b": True, "k": 3}])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_all_of_it_in_time_is_the_profile(rng, monkeypatch, fast_engine, seen, options, n_jobs):
    monkeypatch.setattr(execution, "INLINE_WORK", 0)
    x = make_line("flat stretches", 150, rng)
    options = options | {"window": 8, "engine": fast_engine, "n_jobs": n_jobs}
    if options.get("b"):
        options["b"] = make_line("gaps", 100, rng)
    expected = matrix_profile(x, **options)
    assert not seen and expected.share == 1
    found = matrix_profile(x, **options, time_limit=1e9)
    assert len(seen) > 5 and found.share == 1
    for mine, exact in ((found, expected), (found.left, expected.left)):
        for one, other in zip((mine or ())[:2], (exact or ())[:2], strict=True):
            assert_array_equal(one, other)


def test_threads_stop_too(rng, monkeypatch, fast_engine, seen):
    monkeypatch.setattr(execution, "INLINE_WORK", 0)
    x = rng.normal(size=260).cumsum()
    limit = stop_after(monkeypatch, 4)
    found = matrix_profile(x, window=8, time_limit=limit, engine=fast_engine, n_jobs=2)
    assert len(seen) == 4 and found.share < 1


def test_the_first_part_is_computed_in_any_case(rng, fast_engine, seen):
    x = rng.normal(size=150)
    found = matrix_profile(x, window=8, time_limit=1e-12, engine=fast_engine, n_jobs=1)
    assert len(seen) == 1 and 0 < found.share < 1


def test_motifs_and_discords_of_what_was_seen(rng, monkeypatch, fast_engine, seen):
    x = rng.normal(size=200).cumsum()
    x[150:170] = x[20:40] + 0.1 * rng.normal(size=20)
    options = {"n_motifs": 3, "n_discords": 2, "exclusion": 3, "engine": fast_engine, "n_jobs": 1}
    whole = MotifFinder(12, **options).fit(x[np.newaxis])
    assert whole.share_ == 1
    assert MotifFinder(12, time_limit=1e9, **options).fit(x[np.newaxis]).share_ == 1
    seen.clear()
    limit = stop_after(monkeypatch, 8)
    model = MotifFinder(12, time_limit=limit, **options).fit(x[np.newaxis])
    assert len(seen) == 8 and 0 < model.share_ < 1
    profile, places = model.profile_[0], model.profile_index_[0]
    assert (profile >= whole.profile_[0]).all()
    distances = all_distances(x, x, 12)
    known = np.flatnonzero(places >= 0)
    assert_array_equal(profile[known], distances[known, places[known]])
    first = model.motifs_[0]
    assert first.distances[1] <= profile.min()
    assert set(first.positions[:2]) >= {int(profile.argmin())}
    assert model.discords_[0].distance == profile[known].max()
    with pytest.raises(ValueError, match="update needs the profile of all pairs, but a time_limit"):
        model.update(x[:5])
    assert model.share_ < 1


def test_lengths_share_the_time(rng, monkeypatch, fast_engine, seen):
    x = rng.normal(size=(1, 260)).cumsum(axis=1)
    options = {"engine": fast_engine, "n_jobs": 1}
    limit = stop_after(monkeypatch, 12)
    model = MotifFinder([8, 20], time_limit=limit, **options).fit(x)
    assert all(0 < share < 1 for share in model.share_)
    assert len(seen) < 14
    tiny = MotifFinder([8, 20], time_limit=1e-12, **options)
    seen.clear()
    try:
        assert all(0 < share < 1 for share in tiny.fit(x).share_)
    except ValueError as error:
        assert "no motif was found among the pairs that were compared" in str(error)
    assert len(seen) == 2


def test_without_pairs_all_are_seen(fast_engine):
    found = matrix_profile([1, 2, 3], window=3, time_limit=1e-12, engine=fast_engine)
    assert found.share == 1 and found.indices.tolist() == [-1]


@pytest.mark.parametrize("exclusion", [0, 3, 40, 200])
def test_pairs_are_counted(rng, exclusion):
    line = ConcatenatedSeries.of([np.zeros(60)])
    work = TimedJoin(line, None, 11, exclusion)
    i, j = np.indices((50, 50))
    for _ in range(30):
        row, row_stop = np.sort(rng.choice(51, 2, replace=False)).tolist()
        col, col_stop = np.sort(rng.choice(51, 2, replace=False)).tolist()
        tile = Tile(row, row_stop, col, col_stop)
        assert work.pairs(tile) == (j - i > exclusion)[tile.rows, tile.cols].sum()


@pytest.mark.parametrize(("n_rows", "n_cols"), [(1, 1), (7, 7), (16, 16), (5, 12), (12, 5)])
@pytest.mark.parametrize("upper", [True, False])
def test_tiles_spread(n_rows, n_cols, upper):
    tiles = [
        Tile(10 * row, 10 * row + 10, 8 * col, 8 * col + 8)
        for col in range(n_cols)
        for row in range(n_rows)
        if col >= row or not upper
    ]
    order = spread(tiles)
    assert sorted(order) == sorted(tiles)
    number = max(n_rows, n_cols)
    sets = [
        list(some)
        for _, some in itertools.groupby(
            order, key=lambda tile: (tile.row // 10 + tile.col // 8) % number
        )
    ]
    assert len(sets) <= number
    for some in sets:
        for axis, size in ((0, 10), (2, 8)):
            places = [tile[axis] // size for tile in some]
            assert len(set(places)) == len(places)
    if upper and n_rows == n_cols > 1:
        # each place meets another one, or itself, with each set
        for some in sets:
            assert {place for t in some for place in (t.row // 10, t.col // 8)} == set(
                range(n_rows)
            )
