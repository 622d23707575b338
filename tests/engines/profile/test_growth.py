"""Joins of a line that has grown: what they tell is what the join of all windows has found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import ConcatenatedSeries, GrowthJoin, Join, Tile, find_engine, run


def line_of(rng, kind, n=150):
    """A line: noise, or with stretches in which windows are constant or not finite."""
    points = rng.normal(size=n)
    if kind == "flat":
        points[20:50] = points[110:130] = 0.5
        points[80] = np.nan
    return ConcatenatedSeries.of([points[: n // 3], points[n // 3 :]], 8)


@pytest.mark.parametrize("sides", [False, True])
@pytest.mark.parametrize("kind", ["noise", "flat"])
@pytest.mark.parametrize("engine", ["oracle", "numba"])
def test_neighbors_are_those_of_a_join(rng, engine, kind, sides):
    line, length, since = line_of(rng, kind), 8, 120
    n = line.n_windows(length)
    far = rng.uniform(0.0, 4.0, n)
    far[rng.random(n) < 0.3] = np.inf
    options = {"exclusion": 3, "n_neighbors": 3, "sides": sides, "since": since}
    options["needed"] = far, far
    whole = run(Join(line, None, length, **options), engine=engine)
    grown = GrowthJoin(line, None, length, **options)
    found = run(grown, engine=engine)
    wanted = [whole.right, whole.left] if sides else [whole]
    for mine, lists in zip(found, wanted, strict=False):
        distances, indices = mine.lists(since)
        # what is no nearer than needed may be missing in either
        near = np.where(lists.distances < far[:, np.newaxis], lists.indices, -1)
        assert_array_equal(np.where(distances < far[:, np.newaxis], indices, -1), near)
        assert_array_equal(distances[near >= 0], lists.distances[near >= 0])
        assert np.all(np.diff(mine.windows) >= 0) and mine.windows.max(initial=0) < since
    assert (found.earlier is None) == (not sides)


@pytest.mark.parametrize("sides", [False, True])
def test_tiles_come_in_any_order(rng, sides):
    """A window that several tiles of columns have found neighbours for has one list of them."""
    line, length = line_of(rng, "noise"), 8
    work = GrowthJoin(line, None, length, 3, n_neighbors=2, sides=sides, since=110)
    expected = run(work, engine="numba")
    n, engine, total = line.n_windows(length), find_engine("numba"), work.start()
    cuts = [0, 40, 90, 125, n]
    spans = list(itertools.pairwise(cuts))
    tiles = [Tile(*rows, *cols) for rows in spans for cols in spans]
    for at in rng.permutation(len(tiles)):
        if work.wanted(tiles[at]) and tiles[at].col >= tiles[at].row:
            result = engine.compute(work, tiles[at], np.zeros(1, np.uint8))
            work.merge(total, tiles[at], result)
    found = work.finish(total, lambda other: run(other, engine="numba"))
    for mine, one in zip(found, expected, strict=True):
        assert (mine is None) == (one is None)
        if mine is not None:
            for values, others in zip(mine[1:], one[1:], strict=True):
                assert_array_equal(values, others)
            assert_array_equal(mine.new.indices, one.new.indices)
