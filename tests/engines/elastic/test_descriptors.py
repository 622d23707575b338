"""Paths between descriptors: the same of many pairs side by side, of one, and without a kernel."""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np
import pytest
import reference
import reference_elastic
from elastic_cases import drawn
from numpy.testing import assert_allclose, assert_array_equal

from skts.base import check_series
from skts.engines import (
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    Tile,
    Warping,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.families.elastic.descriptors import in_order, with_repeated_ends
from skts.engines.families.elastic.distances import ShapeDTW
from skts.engines.numba.elastic import alignment_tiles, descriptors
from skts.metrics import pairwise_distances, warping_path
from skts.neighbors import elastic_parameter_search

#: Memory for steps: many pairs at a time, a few, and one after the other.
MEMORY = {"numba": (2**27, 1), "cupy": (2**28, 20_000, 1)}


def test_ends_are_repeated(rng):
    series = check_series([rng.normal(size=(2, n)) for n in (5, 1, 3)])
    found = with_repeated_ends(series, 2)
    assert found.shape == (3, 2, 9)
    assert_array_equal(found.lengths, series.lengths)
    for s, n in enumerate(series.lengths):
        for c, i in np.ndindex(2, 9):
            assert found.values[s, c, i] == series.values[s, c, min(max(i - 2, 0), n - 1)]


def test_the_order_of_a_pair_is_its_own(rng):
    X = check_series(drawn(rng, "ties", 30, 2, [1, 2, 3]))
    places = np.indices((30, 30)).reshape(2, -1).T
    first, second, swapped = in_order(X, X, places)
    for place, (a, b) in enumerate(places):
        x, y = (reference.unpadded(X, s) for s in (a, b))
        after = (x.shape[1], *x.ravel()) > (y.shape[1], *y.ravel())
        assert swapped[place] == after
        pair = (y, x) if after else (x, y)
        for side, wanted in zip((first, second), pair, strict=True):
            assert_array_equal(reference.unpadded(side, place), wanted)


def expected(X, Y, warping):
    options = {"reach": warping.reach, "cost": warping.cost, "window": warping.window}
    return np.array(
        [[reference_elastic.distance("shape_dtw", x, y, **options) for y in Y] for x in X]
    )


@pytest.mark.filterwarnings("ignore:X has . channels of one time point")
@pytest.mark.parametrize("channels", [1, 2])
def test_kernels(fast_engine, rng, monkeypatch, channels):
    """Ties, several lengths, bands; however many pairs are under way."""
    X, Y = (drawn(rng, "ties", count, channels, [1, 4, 6, 7]) for count in (7, 5))
    left, right = check_series(X), check_series(Y)
    i, j = np.indices((7, 5)).reshape(2, -1)
    for most in MEMORY[fast_engine]:
        if fast_engine == "numba":
            monkeypatch.setattr(alignment_tiles, "MOST_STEPS", most)
        else:
            from skts.engines.cupy.elastic import descriptors as on_device

            monkeypatch.setattr(on_device, "MOST_BYTES", most)
        for window in (None, 1):
            warping = ShapeDTW(reach=2, window=window)
            found = run(DTWMatrix(left, right, warping), engine=fast_engine)
            assert_allclose(found, expected(X, Y, warping), rtol=1e-12)
            pairs = DTWPairs(left, right, np.column_stack([i, j]), warping)
            assert_array_equal(run(pairs, engine=fast_engine).reshape(7, 5), found)
            near = run(DTWNeighbors(left, right, 2, warping=warping), engine=fast_engine)
            order = np.argsort(found, axis=1, kind="stable")[:, :2]
            assert_array_equal(near.indices, order)
            assert_array_equal(near.distances, np.take_along_axis(found, order, axis=1))
            back = run(DTWMatrix(right, left, warping), engine=fast_engine)
            assert_array_equal(back.T, found)
            with replace_kernels(always=True):
                by_numpy = run(DTWMatrix(left, right, warping), engine="numba")
            assert_array_equal(by_numpy, found)
            # plain code, which checks answers under `verify`, has the same bits
            plain = [
                [
                    warping.plain(reference.unpadded(left, a), reference.unpadded(right, b))
                    for b in range(5)
                ]
                for a in range(7)
            ]
            assert_array_equal(plain, found)


@pytest.mark.parametrize("reach", [15, 40])
def test_strips_and_groups_of_diagonals(fast_engine, rng, reach):
    """Blocks of more rows and of fewer than a strip of a GPU has, and columns of several strips."""
    X, Y = ([rng.normal(size=n).cumsum() for n in lengths] for lengths in ((33, 97), (70, 130)))
    left, right = check_series(X), check_series(Y)
    for window in (None, 40):
        warping = ShapeDTW(reach=reach, window=window)
        found = run(DTWMatrix(left, right, warping), engine=fast_engine)
        plain = [[warping.plain(x[np.newaxis], y[np.newaxis]) for y in Y] for x in X]
        assert_array_equal(found, plain)


@pytest.mark.parametrize("channels", [1, 2])
def test_side_by_side_and_one_by_one(rng, monkeypatch, channels):
    """Windows longer than the rows between two that are kept, and shorter; columns of two tiles."""
    X, Y = ([rng.integers(0, 3, (channels, n)) for n in ns] for ns in ((3, 40), (9, 300)))
    left, right = check_series(X), check_series(Y)
    for reach in (1, 15):
        for window in (None, 3):
            work = DTWMatrix(left, right, ShapeDTW(reach=reach, window=window))
            found = run(work, engine="numba")
            with monkeypatch.context() as patch:
                patch.setattr(alignment_tiles, "MOST_STEPS", 1)
                assert_array_equal(run(work, engine="numba"), found)


def test_more_pairs_than_lie_side_by_side(rng, monkeypatch):
    X = check_series(list(rng.normal(size=(9, 30)).cumsum(axis=1)))
    work = DTWMatrix(X, X, ShapeDTW(reach=3))
    monkeypatch.setattr(descriptors, "_POINTS", 0)
    found = run(work, engine="numba")
    monkeypatch.setattr(descriptors, "_ENTRIES", 2000)
    with replace_kernels(always=True):
        assert_array_equal(run(work, engine="numba"), found)
    assert_array_equal(found, found.T)
    assert not found.diagonal().any()


def test_without_reach_it_is_dtw(fast_engine, rng):
    X = rng.normal(size=(5, 2, 9))
    for window in (None, 2):
        options = {"window": window, "engine": fast_engine}
        with replace_kernels(always=fast_engine == "numba"):
            found = pairwise_distances(X, metric="shape_dtw", metric_params={"reach": 0}, **options)
            assert_array_equal(found, pairwise_distances(X, metric="dtw", **options))


def test_paths(fast_engine, rng):
    """The path of DTW between windows, from the first series to the second, and its price."""
    for kind in ("ties", "any"):
        x, y = drawn(rng, kind, 2, 2, [8])
        options = {"metric": "shape_dtw", "metric_params": {"reach": 2}, "engine": fast_engine}
        path, distance = warping_path(x, y, **options)
        flipped, same = warping_path(y, x, **options)
        assert same == distance == pairwise_distances([x], [y], **options)[0, 0]
        assert_array_equal(flipped[:, ::-1], path)
        ends = [with_repeated_ends(check_series(side[None]), 2).values[0] for side in (x, y)]
        windows = [np.concatenate([each[:, k : k + 8] for k in range(5)]) for each in ends]
        if kind == "any":
            assert_array_equal(path, reference.dtw_path(*windows)[0])
        assert_allclose(np.linalg.norm(x[:, path[:, 0]] - y[:, path[:, 1]]), distance, rtol=1e-12)


def test_peaks_are_matched_with_peaks():
    """DTW puts both peaks of x on the higher one of y; their surroundings tell them apart."""
    x, y = np.zeros(20), np.zeros(20)
    x[[5, 12]], y[[7, 14]] = 2.0, (2.0, 1.0)
    path, distance = warping_path(x, y, metric="shape_dtw", metric_params={"reach": 3})
    assert {(5, 7), (12, 14)} <= set(map(tuple, path.tolist()))
    assert distance == 1.0


def test_a_wider_window_may_have_a_larger_distance(rng):
    """So that no search with one window spares any with another."""
    X = rng.normal(size=(12, 20))
    y = np.arange(12) % 2
    narrow, wide = (
        pairwise_distances(X, metric="shape_dtw", metric_params={"reach": 4}, window=window)
        for window in (1, None)
    )
    assert (narrow < wide).any()
    grid = {"reach": [4], "window": [None, 1, 0]}
    search = elastic_parameter_search(X, y, metric="shape_dtw", param_grid=grid)
    for one, error in zip(search.params, search.errors, strict=True):
        found = pairwise_distances(
            X, metric="shape_dtw", metric_params=one["metric_params"], window=one["window"]
        )
        np.fill_diagonal(found, np.inf)
        assert error == np.mean(y[found.argmin(axis=1)] != y)


def test_bytes_are_planned(rng):
    engine, go_on = find_engine("numba"), np.zeros(1, np.uint8)
    for length, n_pairs, reach in ((60, 40, 15), (20, 200, 3)):
        X = check_series(list(rng.normal(size=(n_pairs, length))))
        work = DTWMatrix(X, X.take(slice(0, 1)), ShapeDTW(reach=reach))
        for always in (True, False):
            with replace_kernels(always=always):
                run(DTWMatrix(X.take(slice(0, 2)), X.take(slice(0, 2)), work.warping))
                planned = sum(engine.footprint(work, *work.shape))
                gc.collect()
                tracemalloc.start()
                engine.compute(work, Tile(0, n_pairs, 0, 1), go_on)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert peak <= planned


@pytest.mark.parametrize("reach", [-1, 1.5, np.nan, None, True, "1"])
def test_reach_is_a_whole_number(reach):
    with pytest.raises((TypeError, ValueError), match="reach="):
        ShapeDTW(reach=reach)
    assert type(ShapeDTW(reach=np.int64(3)).reach) is int
    assert ShapeDTW(reach=4.0).between_descriptors == Warping()
