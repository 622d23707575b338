"""Walks of MK: how many pairs they measure, and how far sums that only rule out may be off."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from skts.engines import ConcatenatedSeries, MotifPair, Tile, WindowKinds, find_engine, run
from skts.engines.families.profile.mk import PairWalk, plain_pair
from skts.engines.numba.profile import mk


def pairs_left(walk, exclusion):
    """Pairs of a walk that no reference rules out, where the best pair stays what it is."""
    slope, shift = walk.limit
    farthest = np.abs(walk.gaps[:, np.newaxis] - walk.gaps[:, :, np.newaxis]).max(axis=0)
    left = farthest <= np.float32(slope * walk.best[0] + shift)
    left &= np.abs(np.subtract.outer(walk.order, walk.order)) > exclusion
    return sum(np.count_nonzero(left.diagonal(offset)) for offset in range(walk.first, walk.stop))


@pytest.mark.parametrize("n_references", [8, 40])
@pytest.mark.parametrize("exclusion", [0, 7])
def test_walks_that_begin_with_the_best_pair(fast_engine, n_references, exclusion):
    """Where a reference is of that pair, and no pair that is measured can be nearer."""
    engine, cancel = find_engine(fast_engine), np.zeros(1, np.uint8)
    compared = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=130)
        x[50] = np.nan
        line = ConcatenatedSeries.of([x])
        work = MotifPair(line, 9, exclusion, n_references=n_references, seed=seed)
        regular = np.flatnonzero(run(WindowKinds(line, 9), engine=engine).regular)
        walks = work._walks(regular, lambda one: run(one, engine=engine), (np.inf, -1, -1))
        found = run(work, engine=engine)
        if walks[0].best != found[:3]:
            continue
        compared += 1
        assert (walks[0].first, walks[-1].stop) == (1, len(regular))
        assert all(before.stop == after.first for before, after in pairwise(walks))
        measured = n_references * len(regular)
        for walk in walks:
            some = engine.pair_walk(walk, Tile(0, len(regular), 0, walk.shape[1]), cancel)
            assert some[:3] == found[:3]
            assert some.measured == pairs_left(walk, exclusion)
            measured += some.measured
        admissible = sum(j - i > exclusion for i, j in combinations(regular.tolist(), 2))
        assert found.pruned == max(0.0, 1 - measured / admissible)
    assert compared > 0


def test_a_walk_over_a_single_position(rng, fast_engine):
    """Bounds of zeros rule nothing out."""
    line = ConcatenatedSeries.of([rng.normal(size=60)])
    order, gaps = rng.permutation(52), np.zeros((1, 52), np.float32)
    walk = PairWalk(line, 9, 2, True, order, gaps, 1.0, (np.inf, -1, -1), 1, 52)
    engine, cancel = find_engine(fast_engine), np.zeros(1, np.uint8)
    for position in (0, 7, 48):
        pairs = [sorted((int(order[position]), int(other))) for other in order[position + 1 :]]
        pairs = [(i, j) for i, j in pairs if j - i > 2]
        best = min((plain_pair(walk, *pair), *pair) for pair in pairs)
        found = engine.pair_walk(walk, Tile(position, position + 1, 0, 51), cancel)
        assert found[:3] == pytest.approx(best, rel=1e-12)
        assert 0 < found.measured <= len(pairs)


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e7])
def test_distances_by_means_in_one_number_are_within_their_slip(rng, offset):
    """That of the section "mk squares" of the developer guide; the windows have any level."""
    x, length = offset + rng.normal(size=90) * np.linspace(0.5, 4, 90), 12
    line = ConcatenatedSeries.of([x])
    nothing = np.empty(0, np.int64), np.empty((1, 0), np.float32), 1.0, (np.inf, -1, -1), 1, 2
    engine, work = find_engine("numba"), PairWalk(line, length, 3, True, *nothing)
    known = engine._windows(line, length, True)
    center, slip = engine._centers(work, known)
    windows = np.lib.stride_tricks.sliding_window_view(x, length)
    mean, deviation = windows.mean(axis=1), windows.std(axis=1)
    level = np.abs(mean / deviation).max()
    assert slip == pytest.approx(2.0**-53 * (4 * np.sqrt(length) * level + 16 * length), rel=1e-6)
    exact = (windows - x[:1] - (windows - x[:1]).mean(axis=1, keepdims=True)) / deviation[:, None]
    for i, j in combinations(range(0, len(windows), 7), 2):
        both = (i, center[i], known.inverse[i]), (j, center[j], known.inverse[j])
        square = mk._square(line.points, *both[0], *both[1], length, np.inf)
        assert abs(np.sqrt(square) - np.linalg.norm(exact[i] - exact[j])) <= slip + 1e-13
    # where windows are compared as they are, nothing is rounded once more
    plain = engine._windows(line, length, False)
    assert engine._centers(PairWalk(line, length, 3, False, *nothing), plain)[1] == 0


@pytest.mark.gpu
def test_room_for_few_pairs_changes_nothing(rng, monkeypatch):
    """A launch that finds more pairs than there is room for is done again in halves, down to 1."""
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    x = np.round(rng.normal(size=60), 1)
    x[0] = 9.0  # that it orders by, about as far from all others
    line = ConcatenatedSeries.of([x])
    order = np.argsort(x[0] - x, kind="stable")
    gaps = ((x[0] - x[order]) / 2.0**20).astype(np.float32)[np.newaxis]
    walk = PairWalk(line, 1, 0, False, order, gaps, 2.0**20, (np.inf, -1, -1), 1, 60)
    tile, cancel = Tile(0, 60, 0, 59), np.zeros(1, np.uint8)
    expected = min((abs(x[i] - x[j]), i, j) for i, j in combinations(range(60), 2))
    for capacity in (2**22, 1):
        monkeypatch.setattr("skts.engines.cupy.profile.mk.MK_CAPACITY", capacity)
        assert engine.pair_walk(walk, tile, cancel)[:3] == pytest.approx(expected, abs=0)
