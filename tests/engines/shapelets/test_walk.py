"""Scores of the walk on the GPU beside correlations by NumPy."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from skts.engines import Series, find_engine
from skts.engines.cupy.shapelets.programs import WalkKernel

pytestmark = pytest.mark.gpu
NOTHING = 2**31 - 1


@pytest.fixture
def walk():
    """The module of the walk; skip where there is no GPU, with the engine's own reason."""
    missing = find_engine("cupy").available()
    if missing:
        pytest.skip(missing)
    return importlib.import_module("skts.engines.cupy.shapelets.walk")


def least_scores(a, b, length):
    """1 less the best correlation of each window of a among those of b."""

    def normal(line):
        windows = np.lib.stride_tricks.sliding_window_view(line, length)
        windows = windows - windows.mean(axis=1, keepdims=True)
        return windows / np.sqrt((windows**2).sum(axis=1, keepdims=True))

    return 1 - (normal(a) @ normal(b).T).max(axis=1)


def some_series(n, width, shortest):
    """Random walks; some are shorter, down to the number of points that is given."""
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, width)).cumsum(axis=1)
    sizes = rng.integers(shortest, width + 1, n)
    sizes[n // 2] = width
    there = np.arange(width) < sizes[:, None]
    return values, sizes, Series(np.where(there, values, np.nan)[:, None], sizes)


@pytest.mark.parametrize(
    "n, width, lengths, first, stop",
    [
        (11, 60, (10, 11, 20), 0, 11),
        (9, 150, (9, 60, 149, 150), 0, 9),
        (20, 41, (7, 12, 40), 4, 15),
        (5, 200, (30, 70), 2, 4),
        # several strips; one of 32 lanes
        (3, 430, (10, 150), 0, 3),
    ],
)
def test_scores_are_those_of_the_best_correlations(walk, n, width, lengths, first, stop):
    """Some series are shorter, candidates are of a part of them, lengths go two at a time."""
    values, sizes, series = some_series(n, width, max(lengths))
    walked = walk.Walk(walk.lay(series, 0), first, stop, lengths[0], 2)
    for begin in range(0, len(lengths), 2):
        heads = walked(lengths[begin : begin + 2])
        for z, length in enumerate(heads.lengths):
            found = heads.scores[z].get()[:, :, : heads.windows(z)]
            for a in range(first, stop):
                there = sizes[a] - length + 1
                for b in range(n):
                    row = found[b, a - first]
                    assert (row[there:] == NOTHING).all()
                    if a == b:
                        assert (row == NOTHING).all()
                        continue
                    scores = (row[:there].astype(np.int64) << 32).view(np.float64)
                    exact = least_scores(values[a, : sizes[a]], values[b, : sizes[b]], length)
                    np.testing.assert_allclose(scores, exact, rtol=2.0**-19, atol=1e-11)


def test_all_instances_find_the_same(walk, monkeypatch):
    """How windows are shared among lanes and strips changes no bit."""
    length, (_, _, series) = 12, some_series(9, 170, 12)
    channel = walk.lay(series, 0)

    def scores():
        return walk.Walk(channel, 0, 9, length, 1)((length,)).scores.get()

    found = scores()
    for columns, lanes in ((12, 32), (1, 32), (2, 32), (10, 16), (20, 8)):
        monkeypatch.setattr(
            walk, "walk_kernel", lambda n, shape=(columns, lanes): WalkKernel(*shape)
        )
        np.testing.assert_array_equal(scores(), found)
