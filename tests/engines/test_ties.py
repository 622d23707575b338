"""Many small draws of integers: equal candidates, equal paths, limits that are met exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference
import reference_subsequence_search
from numpy.testing import assert_array_equal
from reference_rotation import rotation_distance

from skts.engines import (
    ConcatenatedSeries,
    DTWNeighbors,
    DTWPath,
    DTWWindowSearch,
    LongSeries,
    MotifPair,
    RotationNeighbors,
    Series,
    SubsequenceNeighbors,
    Warping,
    run,
)
from tests.engines.test_tiny import nearest_pair


def assert_nearest(found, matrix, n_neighbors, excluded=None):
    distances, indices = reference.nearest(matrix, n_neighbors, excluded)
    assert_array_equal(found.indices, indices)
    assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("channels", [1, 2])
def test_rotation(fast_engine, cost, channels):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        series, queries = (Series.of(rng.integers(0, 3, (n, channels, 4))) for n in (8, 2))
        matrix = np.array(
            [
                [rotation_distance(x, y, cost=cost, window=0) for y in series.values]
                for x in queries.values
            ]
        )
        for k in (1, 3):
            work = RotationNeighbors(queries, series, k, None, Warping(cost=cost, window=0))
            assert_nearest(run(work, engine=fast_engine), matrix, k)


def test_rotation_at_an_offset(fast_engine):
    """Correlations are off by more than neighbours are apart; equal candidates come in order."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = 2.0**20 + rng.integers(0, 2, (9, 1, 5))
        X[5:] = np.roll(X[:4], seed % 5, axis=2)
        series, queries = Series.of(X), Series.of(np.roll(X[[6, 1]], 2, axis=2))
        matrix = np.array(
            [[rotation_distance(x, y, window=0) for y in series.values] for x in queries.values]
        )
        for k in (1, 4):
            work = RotationNeighbors(queries, series, k, None, Warping(window=0))
            assert_nearest(run(work, engine=fast_engine), matrix, k)


def test_constant_series_at_an_offset_are_as_far_as_they_are(fast_engine):
    """A GPU once found all of them infinitely far."""
    path = Path(__file__).parents[1] / "data" / "defects" / "rotation_inf_on_gpu.npz"
    with np.load(path) as file:
        series, queries = Series.of(file["X"]), Series.of(file["Q"])
    matrix = np.array(
        [[rotation_distance(x, y, window=0) for y in series.values] for x in queries.values]
    )
    work = RotationNeighbors(queries, series, 2, None, Warping(window=0))
    assert_nearest(run(work, engine=fast_engine), matrix, 2)


@pytest.mark.parametrize("alignment", ["global", "subsequence", "supersequence"])
@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
def test_paths(fast_engine, metric, alignment):
    warping = Warping(metric=metric, alignment=alignment)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 8, 2)
        x, y = rng.integers(0, 4, (1, 1, n)), rng.integers(0, 4, (1, 1, m))
        found = run(DTWPath(Series.of(x), Series.of(y), warping), engine=fast_engine)
        path, distance = reference.dtw_path(x[0], y[0], metric=metric, alignment=alignment)
        assert_array_equal(found.path, path)
        assert found.distance == distance


@pytest.mark.parametrize("length", [8, 70])
@pytest.mark.parametrize("exclusion", [0, 7])
def test_nearest_pair_of_a_longer_line(fast_engine, exclusion, length):
    """Several blocks of positions, which end at different offsets; windows of several blocks."""
    for seed in range(3):
        line = np.random.default_rng(seed).normal(size=202 + length)
        windows = np.lib.stride_tricks.sliding_window_view(line, length)
        windows = windows - windows.mean(axis=1, keepdims=True)
        windows /= windows.std(axis=1, keepdims=True)
        distances = np.linalg.norm(windows[:, None] - windows, axis=2)
        distances[np.subtract.outer(range(203), range(203)) >= -exclusion] = np.inf
        work = MotifPair(ConcatenatedSeries.of([line]), length, exclusion, n_references=2)
        found = run(work, engine=fast_engine)
        first, second = np.unravel_index(np.argmin(distances), distances.shape)
        assert (found.first, found.second) == (first, second)
        assert found.distance == pytest.approx(distances.min(), rel=1e-9)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_nearest_pair_among_constant_windows(fast_engine, length):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        line = rng.integers(0, 2, int(rng.integers(length + 1, 17))).astype(float)
        line[: seed % 5] = 3.0
        if seed % 4 == 0:
            line[rng.integers(0, line.size)] = np.nan
        exclusion = seed % 3
        found = run(MotifPair(ConcatenatedSeries.of([line]), length, exclusion), engine=fast_engine)
        assert found[:3] == pytest.approx(nearest_pair(line, length, exclusion, True))


@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_every_window(fast_engine, cost):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (7, 1, 5)).astype(float)
        radii = np.arange(5)[::-1].copy()
        work = DTWWindowSearch(Series.of(X), Series.of(X), np.arange(7), radii, cost == "squared")
        found = run(work, engine=fast_engine)
        for column, radius in enumerate(radii.tolist()):
            matrix = reference.pairwise_dtw(X, X, window=radius, cost=cost)
            _, indices = reference.nearest(matrix, 1, np.arange(7))
            assert_array_equal(found[:, column], indices[:, 0])


@pytest.mark.parametrize("options", [{}, {"metric": "dog_keeper"}, {"window": 1}], ids=str)
def test_neighbors(fast_engine, options):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, Q = (rng.integers(0, 3, (n, 1, 4)).astype(float) for n in (70, 2))
        matrix = reference.pairwise_dtw(Q, X, **options)
        for k in (1, 4):
            work = DTWNeighbors(Series.of(Q), Series.of(X), k, None, "auto", Warping(**options))
            assert_nearest(run(work, engine=fast_engine), matrix, k)


@pytest.mark.parametrize("options", [{"window": 0}, {"cost": "absolute", "window": 1}], ids=str)
def test_windows_of_a_long_series(fast_engine, options):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        line, query = rng.integers(0, 3, 60).astype(float), rng.integers(0, 3, 4).astype(float)
        for k, exclusion in ((2, 1), (5, 0)):
            work = SubsequenceNeighbors(
                (query,), LongSeries((line,)), Warping(**options), False, k, np.inf, exclusion
            )
            (found,) = run(work, engine=fast_engine)
            expected = np.array(
                reference_subsequence_search.nearest_windows(
                    query, (line,), k, exclusion, normalize=False, **options
                )
            )
            assert_array_equal(found.positions, expected[:, 1:])
            assert_array_equal(found.distances, expected[:, 0])
