"""Lower bounds of the elastic family: below every distance, and searches by them find the same."""

from __future__ import annotations

import numpy as np
import pytest
from elastic_cases import OPTIONS, drawn, sides_of
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import (
    DISTANCES,
    DTWMatrix,
    DTWNeighbors,
    Series,
    Tile,
    find_engine,
    prepared,
    replace_kernels,
    run,
)
from skts.engines.core.certify import Bound, Rescaling
from skts.engines.families.elastic.distances import ADTW
from skts.engines.numba.elastic import stepped_bounds, uneven
from skts.engines.numba.elastic.lower_bounds import envelope

ADVERSARIAL = ("ties", "constant", "any", "offset", "spikes", "alternating")


def series_of(rng, kind, count, channels, lengths):
    """Those of `drawn`, and series of which most points are far from their neighbours."""
    if kind == "spikes":
        X = drawn(rng, "any", count, channels, lengths)
        return [x * np.where(rng.random(x.shape) < 0.2, 1e3, 1.0) for x in X]
    if kind == "alternating":
        lengths = rng.choice(lengths, count)
        return [np.resize([1.0, -1.0], (channels, n)) * rng.uniform(0.5, 2) for n in lengths]
    return drawn(rng, kind, count, channels, lengths)


def bounds_of(left, right, warping):
    """Bounds of all pairs, as accumulated costs, by kernels in plain Python."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bounds", "_rows", "_columns", "_nearest"):
            kernel = getattr(stepped_bounds, name)
            patch.setattr(stepped_bounds, name, getattr(kernel, "py_func", kernel))
        envelope_of = getattr(envelope, "py_func", envelope)
        given = uneven.options(warping, left.n_channels, np.float64)
        cell, own, borders = given.cell, given.own, given.borders
        values, n, m = right.values, left.n_timepoints, right.n_timepoints
        found = np.empty((len(left), len(right)))
        reach = warping.largest_radius(left.lengths, right.lengths)
        low, high = np.empty((2, *values.shape[:2], n))
        for s, y in enumerate(values):
            envelope_of(y[:, : right.lengths[s]].T, reach, low[s].T, high[s].T)
        for row, x in enumerate(left.values):
            x = np.ascontiguousarray(x[:, : left.lengths[row]])
            x_low, x_high = np.empty((2, len(x), m))
            envelope_of(x.T, reach, x_low.T, x_high.T)
            stepped_bounds.bounds(
                *(cell, x, x_low, x_high, values, right.lengths, low, high, own, borders),
                found[row],
            )
    return found


@pytest.mark.filterwarnings("ignore:X has . channels of one time point")
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_bounds_are_below_the_distance(metric, options, rng):
    """As plain Python, on random series and those made against it."""
    for kind in ADVERSARIAL:
        for window, lengths in ((0, [7]), (2, [5, 6, 9]), (None, [1, 4, 8])):
            channels = 1 if metric == "msm" else int(rng.integers(1, 3))
            X, Y = (series_of(rng, kind, count, channels, lengths) for count in (2, 3))
            left, right, warping = sides_of(metric, X, Y, window=window, **options)
            exact = np.array(
                [
                    [
                        warping.plain(x[:, :n], y[:, :m])
                        for y, m in zip(right.values, right.lengths, strict=True)
                    ]
                    for x, n in zip(left.values, left.lengths, strict=True)
                ]
            )
            found = bounds_of(left, right, warping)
            last = [s.values[np.arange(len(s)), 0, s.lengths - 1] for s in (left, right)]
            apart = np.abs(last[0][:, np.newaxis] - last[1])
            found = warping.settle(found, left.lengths[:, np.newaxis], right.lengths, apart)
            assert (found <= exact * (1 + 1e-12)).all(), (kind, window)
            if kind == "spikes" and window == 0 and metric != "lcss":
                assert found.max() > 0


@pytest.mark.filterwarnings("ignore:X has . channels of one time point")
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_bounds_are_the_same_in_either_order(metric, options, rng):
    """Rows of the one are columns of the other: the larger bound of both comes from either."""
    X, Y = (series_of(rng, "spikes", 5, 1, [4, 6, 9]) for _ in range(2))
    for window in (0, 2):
        forth = bounds_of(*sides_of(metric, X, Y, window=window, **options))
        back = bounds_of(*sides_of(metric, Y, X, window=window, **options))
        assert_allclose(forth, back.T, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "options"), OPTIONS, ids=str)
def test_searches_by_bounds_find_the_same(metric, options, rng, monkeypatch):
    """Queries near and far, ties between candidates, several lengths, one candidate left out."""
    monkeypatch.setattr(stepped_bounds, "WIDE", 6)
    for lengths, channels in (([40], 1), ([38, 40, 43], 1), ([40], 2)):
        if metric == "msm" and channels == 2:
            continue
        X = drawn(rng, "any", 5, channels, lengths)
        Y = drawn(rng, "any", 140, channels, lengths)
        Y[130:] = Y[:10]
        X[0] = Y[3]
        left, right, warping = sides_of(metric, X, Y, window=6, **options)
        excluded = np.array([3, -1, 139, -1, 0])
        D = run(DTWMatrix(left, right, warping), engine="numba")
        D[[0, 2, 4], [3, 139, 0]] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, :3]
        for precision in ("auto", "float64"):
            work = DTWNeighbors(left, right, 3, excluded, precision, warping)
            assert stepped_bounds.worth_bounding(work, 140)
            with replace_kernels(always=False):
                near = run(work, engine="numba")
            assert_array_equal(near.indices, order)
            assert_array_equal(near.distances, np.take_along_axis(D, order, axis=1))


def interpret(monkeypatch):
    """Have kernels run as plain Python."""
    bounding = ("bounds", "_rows", "_columns", "_nearest", "envelope")
    walking = ("block_kernel", "sweep", "_border_rows", "_border_columns", "_row_of_cells")
    walking += ("_two_rows", "_two_rows_looking_back", "_two_rows_with_numbers", "_cell")
    for module, names in ((stepped_bounds, bounding), (uneven, walking)):
        for name in names:
            kernel = getattr(module, name)
            monkeypatch.setattr(module, name, getattr(kernel, "py_func", kernel))


@pytest.mark.parametrize("turned", [False, True])
def test_the_first_point_may_be_left_out_where_paths_may_begin_so(monkeypatch, turned):
    """The nearest series lacks a point that costs nothing; matched, it would cost most."""
    interpret(monkeypatch)
    whole, short = np.r_[0.0, np.full(7, 5.0)], np.full(7, 5.0)
    query, nearest = (short, whole) if turned else (whole, short)
    others = [query + np.where(query > 0, 1e-3 * k, 0.0) for k in range(1, 150)]
    left, right, warping = sides_of("erp", [query[None]], [y[None] for y in (*others, nearest)],
                                    window=1)  # fmt: skip
    work = DTWNeighbors(left, right, 1, None, "float64", warping)
    found = find_engine("numba")._stepped_search(work, Tile(0, 1, 0, 150), np.zeros(1, np.uint8))
    assert found.cols.tolist() == [149] and found.estimates.tolist() == [0.0]


@pytest.mark.parametrize(
    ("precision", "metric", "options"),
    [("auto", "erp", {"gap": 0.5}), ("float64", "erp", {"gap": 0.5}), ("float64", "msm", {})],
)
def test_a_search_by_bounds_as_plain_python(rng, monkeypatch, precision, metric, options):
    """Its estimates are the distances, and the nearest are among them; not all are computed."""
    interpret(monkeypatch)
    X, Y = (drawn(rng, "any", count, 1, [7, 8]) for count in (2, 150))
    # most of them are far
    Y[20:] = [y + 100.0 for y in Y[20:]]
    left, right, warping = sides_of(metric, X, Y, window=1, **options)
    work = DTWNeighbors(left, right, 3, None, precision, warping)
    tile, go_on = Tile(0, 2, 0, 150), np.zeros(1, np.uint8)
    found = find_engine("numba")._stepped_search(work, tile, go_on)
    D = np.array([[warping.plain(x, y) for y in Y] for x in X])
    loose = 1e-4 if precision == "auto" else 0.0
    assert_allclose(found.estimates, D[found.rows, found.cols], rtol=loose)
    assert found.rows.size < 2 * 100
    for row in range(2):
        nearest = np.argsort(D[row], kind="stable")[:3]
        assert set(nearest) <= set(found.cols[found.rows == row])


def test_exact_estimates_keep_the_nearest_of_many_ties():
    """As `shortlist` does: a query that kept all ties would be searched again without end."""
    estimates, members = np.zeros(200), np.random.default_rng(0).permutation(200)
    kept = stepped_bounds._kept(estimates, members, Bound(), 0.0, 3)
    assert sorted(members[kept]) == [0, 1, 2]
    estimates[members == 1] = 1.0
    kept = stepped_bounds._kept(estimates, members, Bound(), 1.0, 3)
    assert sorted(members[kept]) == [0, 2, 3]
    # all that are within a radius, and all that an inexact estimate cannot rule out
    assert stepped_bounds._kept(estimates, members, Bound(), 0.0, 0).sum() == 199
    assert stepped_bounds._kept(estimates, members, Bound(1 - 1e-6, 1 + 1e-6), 0.0, 3).sum() == 199


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["auto", "float64"])
@pytest.mark.parametrize("metric", ["lcss", "adtw", "twe"])
def test_a_search_among_many_ties_ends(metric, precision):
    X, Y = (
        Series(np.zeros((1, 1, 4)), np.array([4])),
        Series(np.zeros((128, 1, 4)), np.full(128, 4)),
    )
    options = {"epsilon": 0.5} if metric == "lcss" else {}
    X, Y, warping = prepared(X, Y, DISTANCES[metric](window=0, **options))
    with replace_kernels(always=False):
        found = run(DTWNeighbors(X, Y, 2, None, precision, warping), engine="numba")
    assert_array_equal(found.indices, [[0, 1]])
    assert_array_equal(found.distances, [[0, 0]])


def test_a_large_penalty_is_rescaled_without_an_error():
    """By the square of a scale beyond float64."""
    assert ADTW(penalty=1.0).rescaled(Rescaling(scale=2.0**519)).penalty == np.finfo(float).max
    assert ADTW(penalty=0.0).rescaled(Rescaling(scale=2.0**519)).penalty == 0.0
    assert ADTW(penalty=3.0).rescaled(Rescaling(scale=0.5)).penalty == 0.75
