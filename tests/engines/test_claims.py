"""Errors that the code allows for are those that the page of numerics claims, term by term.

Answers are right with bounds that are too small, as long as no data meet the worst case, and with
bounds that are too large. Formulas here are written from docs/developer/numerics.rst.
"""

from __future__ import annotations

import importlib
from math import ceil, log2, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skts.engines import (
    DISTANCES,
    Criterion,
    DTWNeighbors,
    LongSeries,
    SBDCenters,
    SBDMatrix,
    Series,
    Shapes,
    SubsequenceNeighbors,
    Tile,
    Warping,
    find_engine,
)
from skts.engines.core.certify import Bound, dtw_bound, gamma
from skts.engines.core.constants import (
    LIMIT_MARGIN,
    SCORE_ABOVE32,
    SCORE_ABOVE64,
    TAKES_NO_PART,
)
from skts.engines.families.elastic.soft import points_in_reach
from skts.engines.families.profile import lines as profile_lines
from skts.engines.families.profile.mk import PairWalk
from skts.engines.numba.elastic import lower_bounds, rotation, rotation_tiles, stepped_bounds
from skts.engines.numba.profile import candidates, channels, join, mk_tiles
from skts.engines.numba.search import channels as search_channels
from skts.engines.numba.search import lanes
from skts.engines.numba.shapelets import dilated, groups, order_lines, tiles, variance_lines

U, V = 2.0**-53, 2.0**-24


def plain(function):
    """A function without its compiler."""
    return getattr(function, "py_func", function)


def series(n, length, n_channels=1):
    rng = np.random.default_rng(n * length)
    return Series(rng.normal(size=(n, n_channels, length)), np.full(n, length))


# --- constants -----------------------------------------------------------------------------------


#: By module: constants that the page gives numbers of.
CONSTANTS = {
    "core.constants": {
        **{"FLOAT32_UNIT": V, "FLOAT64_UNIT": U, "FLOAT64_TINY": 2.0**-1022, "TIE": 1e-9},
        **{"FLOAT32_LOST": 1e-34, "LIMIT_MARGIN": 1 + 1e-9, "CONSTANT": 2.0**-40},
        **{"SMALLEST_RANGE": 2.0**-500, "CERTIFIED_ROUNDING": 1e-14, "TOLERANCE": 2.0**-36},
        **{"SCORE_BELOW32": 2.0**-22, "SCORE_BELOW64": 2.0**-26, "SCORE_ABOVE32": 2.0**-22},
        **{"SCORE_ABOVE64": 2.0**-20 + 2.0**-25, "LOST_SQUARES": 2.0**-900, "NEGLIGIBLE": 1e-14},
    },
    "core.certify": {"UNDERFLOW": 2.0**-63, "INPUT_SLACK": 1 + 1e-6},
    "families.profile.lines": {"EVEN": 2.0**30, "QUIET": 22},
    "families.elastic.soft": {"MOST_COST": 2.0**40},
    "families.kshape.distances": {"UNITS": 16},
    "families.kshape.eigenvectors": {"DEGENERATE": 1e-8, "LEVEL": 1e-9},
    "families.kshape.centers": {
        **{"PRODUCT_UNITS": 16, "LARGEST_POWER": 200, "LARGEST_OFFSET": 2.0**20, "CLOSE": 1e-9},
        **{"LARGEST_ERROR": 1e-9 / 8},
    },
    "families.shapelets.criterion": {"CONVEX": 4096, "ROUNDED": 2.0**38},
    "families.shapelets.variance": {"WRONG": 2.0**-10},
    "families.shapelets.search": {"CLOSE": 1e-9},
    "numba.profile.walk": {
        **{"OUTSIDE": -(2.0**200), "SINGLE_NOTHING": 2.0**60, "SINGLE_OUTSIDE": -(2.0**90)},
    },
    "numba.profile.join": {"SINGLE_DOUBT": 2.0**-9},
    "numba.profile.channels": {"LOST": 1e-18},
    "numba.profile.channel_candidates": {"LOST": 1e-150},
    "numba.search.statistics": {"RUNNING_ERROR": 1e-7, "_RUN": 1024},
    "numba.elastic.rotation_tiles": {"_FFT_ERROR": 16.0},
    "numba.shapelets.order_lines": {"_APART": 8 * 2.0**-36},
    "numba.shapelets.tiles": {"RAW_ERROR": 2.0**-46},
}


@pytest.mark.parametrize("module", CONSTANTS)
def test_constants(module):
    there = importlib.import_module(f"skts.engines.{module}")
    assert {name: getattr(there, name) for name in CONSTANTS[module]} == CONSTANTS[module]


# --- foundations, elastic distances --------------------------------------------------------------


def test_gamma():
    assert_allclose(gamma(7, 0.125), 7.0)
    assert gamma(8, 0.125) == gamma(9, 0.125) == np.inf
    assert_allclose(gamma(3, 0.25), 3.0)


@pytest.mark.parametrize("more", [0, 8])
def test_dtw_float32(more):
    for squared, steps, n_channels in ((True, 90, 3), (False, 90, 3), (True, 1, 2), (False, 7, 1)):
        bound = dtw_bound(steps, n_channels, 1e-3, 0.25, squared=squared, more=more)
        single = gamma(steps + n_channels + 2 + more, V)
        double = gamma(steps + n_channels + 6 + more, U)
        root = sqrt if squared else float
        terms = root(steps * n_channels)
        assert_allclose(bound.shrink, (1 - double) * root(1 / (1 + single)), rtol=1e-15)
        assert_allclose(bound.grow, (1 + double) * root(1 / (1 - single)), rtol=1e-15)
        slack = terms * (1e-3 + 2.0**-63) / 0.25 * (1 + 1e-6)
        assert_allclose(bound.slack, slack, rtol=1e-15)
    assert dtw_bound(2**24, 1, 0.0, 1.0) == Bound(0.0, 1.0, np.inf)
    assert dtw_bound(2**23 - 4, 1, 0.0, 1.0).slack < np.inf
    assert dtw_bound(2**23 - 3, 1, 0.0, 1.0).slack == np.inf


def test_elastic_float32():
    """P = n + m, eight more roundings, and twice the channels for all but ERP."""
    X, Y = series(2, 9, 3), series(2, 13, 3)
    for name in ("erp", "msm", "twe", "wdtw", "adtw"):
        work = DTWNeighbors(X, Y, 1, warping=DISTANCES[name]())
        scale, bound = work.scale_and_bound(1e-3)
        spread = 1 if name == "erp" else 2
        squared = work.warping.squared
        assert bound == dtw_bound(22, 3 * spread, 1e-3, scale, squared=squared, more=8)


@pytest.mark.parametrize("n_channels", [1, 4])
def test_deflation(n_channels):
    work = DTWNeighbors(series(2, 30, n_channels), series(2, 40, n_channels), 1)
    factor = lower_bounds.deflation(n_channels, work)
    share = gamma(40 * n_channels + n_channels + 8, V)
    assert factor == np.float32(1 - 2 * share)
    # float32 is too coarse to tell one rounding more
    warping = Warping("dog_keeper")
    work = DTWNeighbors(series(2, 30, n_channels), series(2, 40, n_channels), 1, warping=warping)
    factor = lower_bounds.deflation(n_channels, work)
    assert factor == np.float32(1 - 2 * gamma(2 * n_channels + 8, V))
    long = Series(np.broadcast_to(0.0, (1, 1, 2**24)), np.array([2**24]))
    assert lower_bounds.deflation(1, DTWNeighbors(long, long, 1)) == 0


def test_stepped_bounds():
    work = DTWNeighbors(series(2, 30, 2), series(2, 40, 2), 1, warping=DISTANCES["msm"]())
    for dtype, unit in ((np.float32, V), (np.float64, U)):
        factor = stepped_bounds.deflation(work, dtype)
        assert_allclose(1 - factor, 2 * gamma(2 * 40 + 2 * 2 + 8, unit), rtol=1e-2)
    assert_allclose(1 - stepped_bounds.deflation(work, np.float32), 2 * gamma(92, V), rtol=1e-12)
    long = Series(np.broadcast_to(0.0, (1, 1, 2**22)), np.array([2**22]))
    work = DTWNeighbors(long, long, 1, warping=DISTANCES["msm"]())
    assert stepped_bounds.deflation(work, np.float32) == 0


def test_cost_limits():
    bound, scale = Bound(0.75, 1.5, 0.3), 0.25
    for squared in (True, False):
        power = 2 if squared else 1
        beyond = ((2.0 + 0.3) / 0.75 * scale) ** power * (1 + 1e-6)
        assert lower_bounds.cost_within(2.0, bound, scale, squared=squared) == np.float32(beyond)
        margins = SimpleNamespace(scale=scale, shrink=0.75, grow=1.5, slack=0.3)
        cost = 0.5
        distance = (sqrt(cost) if squared else cost) / scale
        beyond = ((distance * 1.5 + 0.6) / 0.75 * scale) ** power * (1 + 1e-6)
        found = plain(lower_bounds._limit)(cost, margins, True if squared else None)
        assert found == np.float32(beyond)
        # none of the nearest is known yet
        assert plain(lower_bounds._limit)(np.float32(np.inf), margins, squared or None) == np.inf
    within = plain(rotation._cost_within)
    assert within(3.0, True) == 9.0 * (1 + 8 * U) > 9.0
    assert within(0.0, True) == 2.0**-1022
    assert within(3.0, False) == 3.0


def test_spectra(monkeypatch):
    """With a large unit of roundoff, so that the error is seen beside the distances."""
    monkeypatch.setattr(rotation_tiles, "FLOAT64_UNIT", 1e-3)
    n, n_channels = 16, 2
    X, Y = series(1, n, n_channels), series(3, n, n_channels)
    found = {}
    engine = SimpleNamespace(
        _spectra=lambda work, tile: (
            np.zeros((n_channels, 1)), np.fft.rfft(Y.values), (Y.values**2).sum(axis=(1, 2)),
        )
    )  # fmt: skip
    work = SimpleNamespace(warping=Warping(window=0))
    lower, floors = rotation_tiles.RotationTiles._correlate(engine, work, X.values[0], None)
    for row, y in enumerate(Y.values):
        for shift in range(n):
            found[shift] = ((X.values[0] - np.roll(y, -shift, axis=1)) ** 2).sum()
        norms = sqrt((X.values[0] ** 2).sum()) + sqrt((y**2).sum())
        error = (16 * (log2(n) + 2) + n + n_channels) * 1e-3 * norms**2
        assert_allclose(floors[row], [found[s] - error for s in range(n)], rtol=1e-9)
        least = sqrt(max(0.0, min(found.values()) - error))
        assert_allclose(lower[row], least * (1 - 4e-3), rtol=1e-9)


def test_soft_minima():
    low, high = points_in_reach(series(2, 9, 3), series(1, 7, 3), 0.5)
    most = max(series(2, 9, 3).values.max(), series(1, 7, 3).values.max())
    least = min(series(2, 9, 3).values.min(), series(1, 7, 3).values.min())
    reach = 16 * sqrt(2**40 * 0.5 / ((9 + 7) * 3))
    assert_allclose([low, high], [least - reach, most + reach], rtol=1e-12)


# --- windows of long series ----------------------------------------------------------------------


def test_search_line():
    """The error of a mean: u ((l + 2) r + 4 M), in the units of the line."""
    points = np.random.default_rng(3).normal(size=30)
    length, offset, scale = 5, 0.4, 0.25
    windows = np.lib.stride_tricks.sliding_window_view(points, length)
    mean, deviation = windows.mean(axis=1) - points[:26], windows.std(axis=1)
    low, high = windows.min(axis=1), windows.max(axis=1)
    line = profile_lines.SearchLine((points - offset) * scale, None, 1.0, (offset, scale))
    found = line.moments((mean, deviation, low, high), None)
    on_line = (windows - offset) * scale
    largest = np.abs(on_line).max(axis=1)
    ranges = on_line.max(axis=1) - on_line.min(axis=1)
    expected = on_line.mean(axis=1), on_line.std(axis=1), largest
    for one, other in zip(found, (*expected, U * (7 * ranges + 4 * largest)), strict=True):
        assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("single", [False, True])
def test_covariance_walk(single):
    band = SimpleNamespace(norm=3.0, step=5.0, height=11, drift=0.7)
    reach, stride, length = 2.0, 7.0, 13
    error = plain(join._error)(band, reach, stride, length, single)
    if single:
        walk = V * (11 + 16) * (2 * 3 * 2 + 8 * 5 * 7) + 1e-34
    else:
        walk = U * (11 + 4) * (2 * 3 * 2 + 4 * 5 * 7)
    assert_allclose(error, walk + U * (13 + 8) * 3 * 2, rtol=1e-12, atol=0)
    if single:  # of windows without norms and steps
        quiet = SimpleNamespace(norm=0.0, step=0.0, height=11)
        assert_allclose(plain(join._error)(quiet, 0.0, 0.0, 13, True), 1e-34, rtol=1e-9)
    drift, slip = 0.9, 1e-3
    error = plain(join._error_of_means)(band, reach, stride, drift, slip, length)
    seed = U * (13 + 8) * sqrt(13) * (3 * 0.9 + 2 * 0.7)
    means = 13 * slip * (0.9 + 0.7 + slip) + 2 * 11 * slip * (5 + 7)
    assert_allclose(error, seed + means, rtol=1e-15)
    # without errors of means the first part alone
    error = plain(join._error_of_means)(band, reach, stride, drift, 0.0, length)
    assert_allclose(error, seed, rtol=1e-12)


@pytest.mark.parametrize("doubt", [join._doubt, channels.doubt], ids=["join", "channels"])
def test_normalised_windows(doubt):
    length = 9
    for blur, shift in ((0.0, 0.0), (1e5, 0.0), (0.0, 1e-3), (1e8, 1e-5)):
        wanted = 1e-14 * 81 + 8 * U * 9 * 3 * blur + 8 * (9 * shift) ** 2
        assert_allclose(plain(doubt)(blur, shift, length), wanted, rtol=1e-12)


def test_raw_windows():
    assert_allclose(plain(join._share)(9), U * 9 * (16 + 8 * 3), rtol=1e-12)


def test_join_limits():
    squares = SimpleNamespace(alpha=20.0, beta=3.0, slack=0.5)
    for limit in (1.0, 19.5, 26.0, 1e5):
        score = (20.0 - limit - 0.5) / 3
        assert plain(candidates.needed_score)(squares, limit) == score - 4 * U * abs(score)
    assert plain(candidates.needed_score)(squares, np.inf) == -candidates.NOTHING


def test_channel_sums():
    """Sums of the nearest of three channels, beside one that always counts."""
    needed = plain(channels._needed)
    assert needed(2.0, 0.25, 3) == np.float32(2.25 * (1 + 8 * V))
    assert_allclose(float(needed(2.0, 0.25, 2**22)), 2.25 * (1 + (2**22 + 5) * V), rtol=1e-7)
    assert needed(np.inf, 0.25, 3) == np.float32(channels.MOST_NEEDED)
    allowance = np.array([1e-5, 2e-5])
    # of the second of two rows, in order
    values = np.full((2, 3, 1), np.nan, np.float32)
    for worst in (False, True):
        values[1, :, 0] = [-3.0, -2.0, -1.0] if worst else [1.0, 2.0, 3.0]
        sums = np.full((2, 2), np.nan)
        rule = SimpleNamespace(n_included=1, worst=worst, dimensions=np.array([2, 4]))
        bounds = SimpleNamespace(sums_low=sums[0], sums_up=sums[1], sorted=None, low=None, up=None)
        first_sums = np.array([[np.nan], [0.5]])
        room = SimpleNamespace(
            bounds=bounds, values=values, first_sums=first_sums, allowance=allowance
        )
        walk = SimpleNamespace(rule=rule)
        assert plain(channels._bound_by_estimates)(1, 0, room, walk)
        for at, (number, total) in enumerate(((2, 3.5 if worst else 1.5), (4, 6.5))):
            share = (number + 7) * V
            assert_allclose(sums[0, at], total * (1 - share) - allowance[at], rtol=1e-12)
            assert_allclose(sums[1, at], total * (1 + share) + allowance[at], rtol=1e-12)
        room.allowance = np.array([1e-5, 7.0]) / [1, channels.SHARP]
        assert not plain(channels._bound_by_estimates)(1, 0, room, walk)
        # just sharp enough
        room.allowance = np.array([1.4, 6.4]) / channels.SHARP
        assert plain(channels._bound_by_estimates)(1, 0, room, walk)


def test_mk():
    length, scale = 12, 8.0
    sums = 2 * (length + 8) * U
    slope, offset = PairWalk.limit.fget(SimpleNamespace(length=length, scale=scale))
    assert_allclose(slope - 1 / scale, (sums + 4 * V + sums * 4 * V) / scale, rtol=1e-6)
    assert_allclose(offset, 2 * sums + 8 * V, rtol=1e-12)
    line = SimpleNamespace(
        points=np.array([1.0, -7.0, 2.0]), mean=np.array([0.5, 3.0]), inverse=np.array([4.0, 8.0])
    )
    engine = SimpleNamespace(prepared=SimpleNamespace(get=lambda array, key, build: build()[0]))
    work = SimpleNamespace(length=9, normalize=True, series=SimpleNamespace(points=None))
    centers, off = mk_tiles.MKTiles._centers(engine, work, line)
    assert_allclose(centers, [1.5, -4.0])
    assert_allclose(off, U * (4 * 3 * 32 + 16 * 9), rtol=1e-12)


def test_running_statistics():
    assert_allclose(plain(lanes.cost_limit)(2.0, 0.5, True), 6.25 * (1 + 1e-9) ** 2, rtol=1e-15)
    assert_allclose(plain(lanes.cost_limit)(2.0, 0.5, False), 2.5 * (1 + 1e-9), rtol=1e-15)
    queries, long = (np.random.default_rng(0).normal(size=(2, n)) for n in (9, 50))
    for cost, terms in (("squared", sqrt(18)), ("absolute", 18)):
        work = SubsequenceNeighbors(
            (queries,), LongSeries((long,)), Warping(cost=cost, window=2), n_neighbors=1
        )
        piece = SimpleNamespace(points=long, whole=np.ones(42, bool))
        one = search_channels._Search(work, 0, piece, np.zeros(1, np.uint8))
        assert_allclose(one.slack, 2 * 1e-7 * terms, rtol=1e-12)


# --- k-Shape -------------------------------------------------------------------------------------


def test_transforms():
    shapes, centers = (Shapes.normalized(series(n, 20, 2)) for n in (5, 3))
    work = SBDMatrix(shapes, centers)
    rounding = 16 * U * (log2(40) + log2(4)) * shapes.spread
    assert_allclose(work.rounding, rounding, rtol=1e-12)
    assert_allclose(work.doubts, rounding)
    _, error = work.plain_distances(1, 2)
    assert_allclose(error, 2 * rounding + U * (2 * 40 + 8), rtol=1e-12)


# --- shapelets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_sums_of_weighted_gains(n_classes):
    """2 k + 8 units of 2**-38: of k classes, or of k groups where series have weights."""
    labels, of_class = np.arange(40) % n_classes, 1.0 + np.arange(n_classes)
    tables = Criterion(labels, of_class).tables()
    assert (tables.slack, tables.unit) == (2 * n_classes + 8, 2.0**38)
    of_series = Criterion(labels, np.ones(n_classes), sample_weight=1.0 + np.arange(40) % 2)
    assert of_series.tables().slack == 2 * n_classes + 8
    assert of_series.tables(of_groups=True).slack == 2 * len(of_series.groups[1]) + 8


def test_equal_gains():
    """2.5 n log2(n) units for more than 4,096 series, and none up to there."""
    for n, slack in ((4096, 0), (4097, ceil(2.5 * 4097 * log2(4097)))):
        assert Criterion(np.arange(n) % 2, np.ones(2)).tables().slack == slack


def test_shapelet_walk():
    """Of two series, of which the second one alone is the candidates'."""
    n_windows, length = 30, 9
    largest = np.array([[3.0, 5.0, 7.0, 11.0], [2.0, 1.5, 4.0, 6.0]]) * 2.0**-4
    errors, floor = tiles._errors(largest, length, n_windows, slice(1, 2))
    norm, step, heavy, size = largest.T
    slip = U * (length / 2 + 2) * size
    coarse = 2 * U * sqrt(length) * size
    wanted = []
    for j in (0, 1):
        error = U * (n_windows + 4) * (3 * norm[1] * norm[j] + 6 * step[1] * step[j])
        error += U * (length + 8) * length * size[1] * size[j]
        error += 2 * n_windows * (slip[1] * step[j] + step[1] * slip[j])
        error += length * (slip[1] * size[j] + size[1] * slip[j])
        error += coarse[1] * norm[j] + norm[1] * coarse[j]
        wanted.append(2 * error * heavy[j] + 8 * coarse[1])
    assert_allclose(errors, [wanted], rtol=1e-12)
    assert_allclose(floor, 16 * length * U + 8 * (coarse * heavy).max() + 1e-13, rtol=1e-12)
    # stretches as loud as there are beside others as quiet: errors are finite
    largest[:, 2] = 2.0**1000
    errors, floor = tiles._errors(largest, length, n_windows, slice(0, 2))
    assert_allclose(floor, 8 * (coarse * 2.0**1000).max())
    assert np.isfinite(errors).all()


def scratch_of(squares, places):
    n = len(squares)
    arrays = SimpleNamespace(order=np.arange(n), ordered=np.sort(squares), low=np.zeros(n + 1))
    return (arrays.order, arrays.ordered, *5 * (None,), np.array(places), arrays.low)


def test_order_line_sums():
    """Exact members have no error; the best of several cuts is the one with the largest gap."""
    squares = np.array([0.25, 1.0, 4.0, 9.0, 16.0])
    errors, sure = np.array([0.01, 0.02, 0.5, 0.0, 9.0]), np.array([0, 0, 0, 0, 1], bool)
    roots = np.sqrt(squares)
    wanted = max(
        sqrt(q + e) - sqrt(max(0.0, q - e)) for q, e in zip(squares, [*errors[:4], 0], strict=True)
    )
    gaps = [roots[k + 1 :].mean() - roots[: k + 1].mean() for k in range(4)]
    rounding = 8 * U * (5 + 64) * (1 + 4.0)
    scratch = scratch_of(squares, [0, 2, 3])
    top, blur = plain(order_lines._largest_gap)(sure, errors, 2, 0.125, scratch)
    assert_allclose(top, max(gaps[0], gaps[2]), rtol=1e-12)
    assert_allclose(blur, 2 * (wanted + 0.125) + rounding, rtol=1e-12)
    exact = np.ones(5, bool)
    _, blur = plain(order_lines._largest_gap)(exact, errors, 2, 0.0, scratch)
    assert_allclose(blur, rounding, rtol=1e-12)
    # series that are there several times
    often = np.array([1, 3, 1, 2, 1])
    high, low = plain(variance_lines._largest_gap)(
        sure, errors, 2, often, scratch_of(squares, [0, 2, 3])
    )
    gaps = [
        np.average(roots[k + 1 :], weights=often[k + 1 :])
        - np.average(roots[: k + 1], weights=often[: k + 1])
        for k in range(4)
    ]
    off = 2 * wanted + 8 * rounding  # one of eight is on the left of the first cut
    assert_allclose([high, low], [max(gaps[0], gaps[2]) + s * off for s in (1, -1)], rtol=1e-12)


@pytest.mark.parametrize("together", [False, True], ids=["points", "half sums"])
def test_match_keys_in_float32(together):
    length, lean, width = 22, 1e-4, 30 if together else 22
    query = np.ones(length) if together else np.random.default_rng(0).normal(size=length)
    query[20:] = 0.25
    out, places, numbers = np.zeros(32, np.float32), np.zeros(2, np.int64), np.zeros(11)
    n, step = plain(groups._round_query)(query, lean, 40 * width, out, places, numbers)
    assert (n, step) == ((5, 4) if together else (22, 1))
    both = 0.5 * length * ((length + 48) * V + 2.02 * lean)
    left_out = 0.5 * 1e-6 * length if together else 0.0
    assert_allclose(numbers[[2, 4, 6]], [1 / 22, 22, 1.00001 * both], rtol=1e-9)
    assert_allclose(numbers[5], 1.00001 * (both + left_out), rtol=1e-9)
    assert_allclose(numbers[7], 0.500005 * length * together, rtol=1e-9)
    assert places.tolist() == [22, 20 if together else 22]
    if together:
        assert out[:7].tolist() == [2.0] * 5 + [0.25, 0.25]
        assert numbers[8:].tolist() == [0.25, 0.25, 0.0]
    else:
        assert_allclose(out[:22], query, rtol=1e-6)


@pytest.mark.parametrize(("magnitude", "heaviest"), [(2.0, 2.0**-9), (2.0**40, 2.0), (4.0, 2.0)])
def test_windows_that_match_keys_judge(monkeypatch, magnitude, heaviest):
    """By their squares about the mean, and by the weights between which values are certified."""
    for name, found in (("products", None), ("bounds", 0.0), ("least", -groups._NEVER)):
        monkeypatch.setattr(groups, name, lambda *_, found=found: found)
    monkeypatch.setattr(groups, "_products", lambda *_: None)
    monkeypatch.setattr(groups, "_judge", lambda *_: None)
    length, width, lightest = 8, 50, 2.0**-20
    rows, windows = np.zeros((1, 2 * width)), np.zeros((1, width + 1))
    surveyed = groups.Surveyed(
        np.zeros((1, 1, width)), np.array([width]), rows, *2 * (np.zeros((2, *windows.shape)),),
        windows, rows, rows, rows, np.array([[magnitude, lightest, heaviest]]),
    )  # fmt: skip
    numbers = np.zeros(11)
    query = np.ones(length), (np.zeros(length), length, 1, np.zeros(2, np.int64), numbers)
    lists = 7 * (np.zeros(0),)
    one = np.zeros(1, np.int64)
    plain(groups._match_one)(
        surveyed, *query, 0.0, False, 0, one, lists, (windows, windows), np.zeros(1)
    )
    wrong = 32 * U * width**2
    most = min(heaviest, 2.0**38 / magnitude, 2.0**-13 / (U * length * magnitude))
    least = max(1.000001 * length / most**2, 2.0**20 * wrong)
    assert_allclose(numbers[[0, 1, 3]], [least, 0.999999 * length / lightest**2, wrong], rtol=1e-12)


def test_shapelet_keys():
    """Two shapelets of 3 points in units of a series about 1, which are twice as large."""
    points = np.array([2.0, 0.0, 3.0, 1.0, 1.0, 4.0])
    table = SimpleNamespace(
        begins=np.array([0, 3]), lengths=np.array([3, 3]), points=points,
        limits=np.array([7.0, np.inf]), kinds=np.array([1, 2]),
    )  # fmt: skip
    rounded = np.zeros(6, np.float32), np.zeros((2, 2)), np.zeros(2)
    plain(dilated._round_shapelets)(table, 0, 2, 1.0, 2.0, 50.0, rounded)
    found, bounds, errors = rounded
    assert_allclose(found, 2 * (points - 1))
    total = 4 * (1 + 1 + 4)
    error = (3 + 8) * V * (total + 50)
    limit = 0.5 * 7 * 4
    margin = error + 4 * V * limit
    assert_allclose(bounds[0] - (limit - total / 2), [-margin, margin], rtol=1e-6)
    assert_allclose(errors[0], error, rtol=1e-12)
    assert errors[1] == np.inf


# --- of a GPU ------------------------------------------------------------------------------------


def run_on_a_gpu(file, kernel, *arguments, threads=1, size=16):
    """Run some code that sees the functions of a source file in a block; returns its numbers."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    cp = importlib.import_module("cupy")
    programs = importlib.import_module("skts.engines.cupy.programs")
    text = f'{programs.source(file)}\nextern "C" __global__ void told({kernel}\n}}\n'
    told = cp.RawModule(code=text, options=programs.OPTIONS).get_function("told")
    found = cp.zeros(size)
    given = [cp.asarray(one) if isinstance(one, np.ndarray) else one for one in arguments]
    told((1,), (threads,), (*given, found))
    return found.get()


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
def test_errors_of_a_band_and_a_panel_on_a_gpu(normalize):
    """See "covariance walk", "normalised windows" and "raw windows"."""
    flag, length = str(normalize).lower(), 9
    # norm, step, size, slip, weight, low, high
    a = np.array([3.0, 5.0, 7.0, 1e-3, 2.0, -0.5, 0.75])
    b = np.array([2.0, 1.5, 4.0, 3e-3, 6.0, 0.25, 1.5])
    kernel = f"""const double* of, int length, double* found) {{
        const Group* groups = (const Group*)of;
        const Extent a = Extent::of_few(groups, 0, 0);
        const Extent b = Extent::of_few(groups, JOIN_GROUP, JOIN_GROUP);
        const CovarianceError single = covariance_error<float, {flag}>(a, b, length);
        const CovarianceError twice = covariance_error<double, {flag}>(a, b, length);
        const Slack slack = bound_errors<double, {flag}>(a, b, length);
        const Extent both = Extent::of_few(groups, 0, JOIN_GROUP);
        found[0] = single.first, found[1] = single.growth;
        found[2] = twice.first, found[3] = twice.growth;
        found[4] = slack.row, found[5] = slack.col;
        found[6] = slack.row_growth, found[7] = slack.col_growth;
        found[8] = both.norm, found[9] = both.step, found[10] = both.size, found[11] = both.slip;
        found[12] = both.weight, found[13] = both.low, found[14] = both.high;
        found[15] = slack.row_after(3) - slack.col_after(2);"""
    found = run_on_a_gpu("profile/join.cu", kernel, np.concatenate([a, b]), np.int32(length))
    for at, unit in ((0, V), (2, U)):
        growth = unit * (2 * 6 + 8 * 7.5)
        first = 4 * growth + 1e-34 + U * (length + 8) * 6
        if normalize:
            drift, slip = 1.25 + 1.25, 4e-3
            first += U * (length + 8) * 3 * 5 * drift + length * slip * (2 * drift + slip)
            growth += 2 * slip * 6.5
        assert_allclose(found[at : at + 2], [first, growth], rtol=1e-12)
    if normalize:
        rest = 8 * (length * 18e-3) ** 2 / length + U * 4 * 3 * 24
        slack = [first * 6 + rest * 3, first * 2 + rest * 2, growth * 6, growth * 2]
    else:
        both = first + U * length * (8 + 4 * 3) * (9 + 4)
        slack = [both, both, growth, growth]
    assert_allclose(found[4:8], slack, rtol=1e-12)
    assert_allclose(found[8:15], [3, 5, 7, 3e-3, 6, -0.5, 1.5], rtol=1e-12)
    after = slack[0] + 3 * slack[2] - slack[1] - 2 * slack[3]
    assert_allclose(found[15], after, rtol=1e-6, atol=1e-20)


@pytest.mark.gpu
@pytest.mark.parametrize("slack", [0.0, 2.0**-40, 0.2, 3.0])
def test_scores_that_are_looked_at_on_a_gpu(slack):
    """From the score of a neighbour that is known, less its error; half of the error at least."""
    scores = np.array([0.0, 1e-9, 0.29, 1.5 * slack, 7.0])
    singles = scores.astype(np.float32).view(np.int32)
    doubles = (scores.view(np.int64) >> 32).astype(np.int32)
    kernel = """const int* known, double slack, double* found) {
        for (int k = 0; k < 6; ++k) {
            found[k] = least_to_look_at<float>(known[k], slack);
            found[6 + k] = least_to_look_at<double>(known[6 + k], slack);
        }"""
    known = np.array([*singles, TAKES_NO_PART, *doubles, TAKES_NO_PART], np.int32)
    found = run_on_a_gpu("profile/join.cu", kernel, known, np.float64(slack))

    def single(bound):
        below = np.float32(bound)
        below = np.nextafter(below, np.float32(0)) if float(below) > bound else below
        return int(below.view(np.int32))

    def double(bound):
        return int(np.float64(bound).view(np.int64)) >> 32

    singly, doubly = singles.view(np.float32), (doubles.astype(np.int64) << 32).view(float)
    for least, bits, share, one in (
        (singly.astype(float), single, SCORE_ABOVE32, found[:6]),
        (doubly, double, SCORE_ABOVE64, found[6:12]),
    ):
        bounds = [max((each - slack) * (1 - share), slack / 2) for each in least]
        assert one.tolist() == [*(max(bits(each) - 1, 1) for each in bounds), TAKES_NO_PART]


@pytest.mark.gpu
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("slack", [0.3, 0.0])
@pytest.mark.parametrize("error", [0.25, np.inf])
def test_what_accumulated_costs_tell_on_a_gpu(squared, slack, error):
    """Distances that a cost may stand for, and "cost limits", large and small ones."""
    kernel = """const float* costs, int squared, double slack, double error, double* found) {
        const Interval interval = {0.75, 1.5, slack, 0.125, squared};
        for (int k = 0; k < 5; ++k) {
            found[k] = interval.lower(costs[k], error);
            found[5 + k] = interval.upper(costs[k], error);
            found[10 + k] = interval.beyond(costs[k], error);
        }"""
    costs = np.array([0.0, 1e-3, 0.3, 5.0, np.inf], np.float32)
    given = np.int32(squared), np.float64(slack), np.float64(error)
    found = run_on_a_gpu("search/search.cu", kernel, costs, *given)
    lower, upper, beyond = (found[at : at + 5].astype(np.float32) for at in (0, 5, 10))
    if error == np.inf:  # nothing is known of such windows
        assert (lower == 0).all() and (upper == np.inf).all() and (beyond == np.inf).all()
        return
    off, largest = slack * (0.125 + error), float(np.finfo(np.float32).max)
    # an infinite cost is one that was given up
    distances = costs.astype(float)
    finite = np.minimum(distances, largest)
    if squared:
        distances, finite = np.sqrt(distances), np.sqrt(finite)
    wanted = np.maximum(finite * 0.75 - off, 0)
    assert_allclose(lower, wanted, rtol=2 * V)
    assert (lower <= wanted * (1 + 1e-15)).all()
    limits = ((costs.astype(float) + off) / 0.75 * LIMIT_MARGIN) ** (2 if squared else 1)
    for one, wanted in ((upper, distances * 1.5 + off), (beyond, limits)):
        assert_allclose(one, wanted, rtol=2 * V)
        assert (one >= wanted * (1 - 1e-15)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
def test_refined_scores_on_a_gpu(normalize):
    flag, length = str(normalize).lower(), 9
    a = np.array([3.0, 5.0, 7.0, 1e-3, 2.0, -0.5, 0.75])
    kernel = f"""const double* of, int length, double* found) {{
        const Group* groups = (const Group*)of;
        const Extent a = Extent::of_few(groups, 0, 0);
        const CovarianceError twice = covariance_error<double, {flag}>(a, a, length);
        found[0] = block_error<{flag}>(a, a, length) - (twice.first + 32 * twice.growth);
        Work work;
        work.length = length, work.side = 0, work.level = 40;
        Looking<{flag}> mine(work);
        mine.norm = 3, mine.off = 1e-9, mine.blur = 1e6, mine.slip = 1e-6;
        found[1] = mine.error(work, 0.5, 2e5, 2e-7);
        mine.blur = 1e5, mine.slip = 1e-7;
        found[2] = mine.error(work, 0.5, 1e6, 1e-6);
        found[3] = mine.own, found[4] = mine.from;"""
    found = run_on_a_gpu("profile/pairs.cu", kernel, a, np.int32(length))
    if normalize:
        each = 3 * (1e-14 * length + 4 * U * (3 * 1e6 + 1) + 4 * length * 1e-12)
        wanted = 1e-9 * 0.5 + each
    else:  # twice the share, of both energies and the level
        wanted = 1e-9 + U * length * (16 + 4 * 3) * (9 + 40 - 1 + 40)
    assert_allclose(found[:5], [0, wanted, wanted, 0, 0], rtol=1e-9, atol=1e-27)


@pytest.mark.gpu
def test_gaps_and_gains_of_order_lines_on_a_gpu():
    """See "order line sums", "open runs", "order line keys"."""
    kernel = """double* found) {
        Judge judge;
        judge.n_members = 100, judge.leaf = 5, judge.share = 0.02, judge.total = 7;
        const ErrorBound doubt = {0.25f, 0.5f, 0, 0};
        found[0] = slack_of_gaps<8>(judge, doubt, 3.0f);
        judge.leaf = 0;
        found[1] = slack_of_gaps<8>(judge, doubt, 3.0f);
        found[2] = gain_of_changes(judge, 3);
        judge.share = 0.3;
        found[3] = gain_of_changes(judge, 9);"""
    found = run_on_a_gpu("shapelets/order_lines.cu", kernel)
    for at, leaf in ((0, 5), (1, 1)):
        wanted = 2 * 0.5 + (1e-5 + 1.2e-7 * 16 * 100 / leaf) * 3
        assert_allclose(found[at], wanted, rtol=1e-5)
    entropy = -(0.08 * np.log(0.08) + 0.92 * np.log(0.92))
    assert_allclose(found[2], 7 * entropy, rtol=5e-4)
    assert found[2] > 7 * entropy
    assert_allclose(found[3], 7 * np.log(2), rtol=5e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("n_series", [40, 700])
@pytest.mark.parametrize("summed", [True, False], ids=["sums of products", "the matrix itself"])
def test_centres_on_a_gpu(monkeypatch, n_series, summed):
    """Of members whose sums of products a GPU adds up, and of a cluster found by itself."""
    from skts.engines.cupy.kshape import centers, tiles

    if not summed:
        monkeypatch.setattr(tiles, "MOMENT_POINTS", 0)
        monkeypatch.setattr(centers, "choose_gram", lambda size: None)
    rng, size = np.random.default_rng(n_series), 12
    labels = np.arange(n_series) % 3
    values = 5 + rng.normal(size=(n_series, 1, size)) + 4 * rng.normal(size=(3, 1, size))[labels]
    values[labels == 1] *= 0.01  # eigenvalues below and above 1
    shapes = Shapes(values, np.sqrt(np.sum(values**2, axis=(1, 2))))
    work = SBDCenters(shapes, labels.astype(np.int32), 0 * labels, 3)
    found = find_engine("cupy").compute(work, Tile(0, 3, 0, 1), np.zeros(1, np.uint8))
    # chunks of 16 members, or 2048 in all; 16 lanes
    additions = 16 + n_series // (16 * 16) + 2 * 16 + 4 * size
    for cluster in range(3):
        rows = values[labels == cluster, 0]
        squares = np.sum(rows**2)
        roots = np.linalg.svd(rows - rows.mean(axis=1, keepdims=True), compute_uv=False)[:2]
        value, second = roots**2
        residual = 64 * U * value + (additions * U * squares if summed else 0)
        rounding = 16 * U * sqrt(value * squares)
        wanted = (residual + 2 * rounding + 4e-15 * value) / (value - second - residual)
        assert_allclose(found.errors[cluster] - 1e-11, wanted, rtol=1e-6)
