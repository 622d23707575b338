"""Runs that are scored in blocks, against scores of all their pairs from the points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from skts.engines import ConcatenatedSeries, Join, run


def cells_of(runs, at, lanes, tile):
    """Windows that look, and the others, of all pairs of runs."""
    bits = (runs[:, 2, np.newaxis].astype(np.int64) >> np.arange(32)) & 1
    one, bit = np.nonzero(bits)
    others = runs[one, 1] + bit * lanes
    others = (others[:, np.newaxis] + np.arange(lanes)).ravel()
    windows = np.repeat(runs[one, 0], lanes)
    inside = others < (tile.row_stop if at else tile.col_stop)
    return windows[inside], others[inside]


def scores_of(search, at, windows, others):
    """Scores of pairs, from the points."""
    length, lines = search.join.length, [search.searched[at], search.searched[1 - at]]
    mine, theirs = (
        sliding_window_view(np.asarray(line.device.points.get()), length)[which]
        for line, which in zip(lines, (windows, others), strict=True)
    )
    if not search.join.normalize:
        return (mine * theirs).sum(axis=1) + search.level / 2 - (theirs**2).sum(axis=1) / 2
    mine, theirs = (one - one.mean(axis=1, keepdims=True) for one in (mine, theirs))
    norms = np.sqrt((theirs**2).sum(axis=1))
    return (mine * theirs).sum(axis=1) / np.where(norms > 0, norms, np.inf)


@pytest.mark.gpu
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(
    ("within", "normalize", "k", "length"),
    [(True, True, 1, 20), (False, True, 1, 300), (True, False, 1, 5), (True, True, 3, 17)],
)
def test_blocks_have_the_pairs_of_their_runs(
    monkeypatch, rng, within, normalize, k, length, single
):
    import cupy as cp

    from skts.engines.cupy.profile import candidates, programs, tiles

    monkeypatch.setattr(tiles, "_is_small", lambda *_: False)
    kind = np.float32 if single else np.float64
    monkeypatch.setattr(tiles.JoinTiles, "_join_type", lambda *_: kind)
    monkeypatch.setitem(programs.HEIGHTS, kind, ((0, 96),))
    score_runs, seen = candidates.score_runs, []

    def check(search, at, runs, lines, reached, pairs, *, raising):
        listed, lanes = runs.get(), 1 if at else search.kernel.columns
        # also of windows with gaps between them
        listed = listed[rng.random(len(listed)) < rng.choice([1.0, 0.6, 0.1])]
        windows, others = cells_of(listed, at, lanes, search.tile)
        away = others.astype(np.int64) - windows
        regular = np.asarray(search.regular[1 - at].get())
        good = ((-away if at else away) > search.join.least_apart) & regular[others]
        windows, others = windows[good], others[good]
        scores, before = scores_of(search, at, windows, others), reached.get()
        some, known = candidates.Pairs.room_for(max(1, good.size)), reached.copy()
        if len(listed):
            given = cp.asarray(np.ascontiguousarray(listed))
            score_runs(search, at, given, lines, known, some, raising=raising)
        count = int(some.count.get()[0])
        found, places, uppers = (array.get()[:count] for array in some[:3])
        every = dict(zip(zip(windows.tolist(), others.tolist(), strict=True), scores, strict=True))
        pair = list(zip(found.tolist(), places.tolist(), strict=True))
        assert len(set(pair)) == len(pair)
        exact, slack = np.array([every[one] for one in pair]), 1e-9 * (1 + search.level)
        assert (uppers >= exact - 1e-13).all() and (uppers <= exact + slack).all()
        best = np.maximum(before, 0)
        if raising:
            np.maximum.at(best, windows, scores)
        after = known.get()
        looked = np.unique(windows)
        assert (after <= best + slack)[looked].all()
        assert (after >= best - slack)[looked].all()
        missing = set(every) - set(pair)
        assert all(every[one] < best[one[0]] + slack for one in missing)
        seen.append(count)
        score_runs(search, at, runs, lines, reached, pairs, raising=raising)

    monkeypatch.setattr(candidates, "score_runs", check)
    a = ConcatenatedSeries.of([rng.normal(size=700).cumsum()])
    b = None if within else ConcatenatedSeries.of([rng.normal(size=500).cumsum()])
    join = Join(a, b, length, 3 if within else 0, k, normalize=normalize)
    found, expected = (run(join, engine=engine) for engine in ("cupy", "numba"))
    assert sum(seen) > 100
    assert np.array_equal(found.distances, expected.distances)
    assert np.array_equal(found.indices, expected.indices)
