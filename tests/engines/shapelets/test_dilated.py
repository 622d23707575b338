"""Features of given shapelets, dilated or not: every engine against plain loops, and bit by bit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from reference_dilated import dilated_distances

from skts import config_context
from skts.engines import (
    DilatedShapelets,
    DistanceQuantiles,
    Series,
    ShapeletFeatures,
    SubsequenceMatches,
    replace_kernels,
    run,
)
from skts.engines.cupy.shapelets import dilated_programs
from skts.engines.families.shapelets.dilated import largest_squares
from skts.engines.numba.shapelets import dilated_by_numpy, dilated_tiles


def walks(rng, n, width, n_channels=1):
    values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
    return Series(values, np.full(n, width))


def cut(rng, series, count, lengths, dilations, raw=0.3):
    """Shapelets from anywhere in the series; those that share windows side by side."""
    rows = []
    for _ in range(count):
        row, channel = rng.integers(len(series)), rng.integers(series.n_channels)
        size = int(series.lengths[row])
        length = min(int(rng.choice(lengths)), size)
        step = int(rng.choice(dilations)) if length > 1 else 1
        step = min(step, max(1, (size - 1) // max(1, length - 1)))
        start = rng.integers(size - (length - 1) * step)
        normalized = length > 2 and rng.random() >= raw
        values = series.values[row, channel, start:][: (length - 1) * step + 1 : step]
        rows.append(((not normalized, length, step, channel), values))
    rows.sort(key=lambda one: one[0])
    keys, values = zip(*rows, strict=True)
    raw_ones, length, step, channel = (np.array(column) for column in zip(*keys, strict=True))
    return DilatedShapelets(np.concatenate(values), length, step, channel, ~raw_ones.astype(bool))


KINDS = ["walks", "channels", "short", "unequal", "constant", "all constant", "repeated", "offset"]
KINDS += ["scales", "too small", "few values", "many of a kind", "wide"]


def work_of(kind):
    """Shapelets and series."""
    rng = np.random.default_rng(KINDS.index(kind))
    n, width = {"short": (40, 5), "wide": (3, 900)}.get(kind, (7, 60))
    series = walks(rng, n, width, 2 if kind in ("channels", "constant", "scales") else 1)
    values = series.values
    if kind == "short":
        series = Series(values, rng.integers(1, width + 1, n))
    if kind == "unequal":
        series = Series(values, rng.integers(5, width, n))
    padding = np.arange(width) >= series.lengths[:, np.newaxis, np.newaxis]
    values[np.broadcast_to(padding, values.shape)] = 0
    if kind == "constant":
        values[0, 0, 5:50], values[3] = 3.0, 1.5
    if kind == "all constant":
        values[:] = rng.integers(0, 2, (n, 1, 1))
    if kind == "repeated":
        values[:, :, 30:] = values[:, :, :30]
        values[4:] = values[:3]
    if kind == "offset":
        values += 10.0 ** rng.integers(5, 11, (n, 1, 1))
    if kind == "scales":
        values *= 10.0 ** rng.integers(-140, 140, (n, 2, 1))
    if kind == "too small":
        values *= 1e-160
    if kind == "few values":
        values[:] = rng.integers(0, 2, values.shape)
    lengths = {"short": (1, 2, 3, 4, 5), "many of a kind": (7,)}.get(kind, (1, 2, 3, 5, 8, 13))
    steps = (1, 2) if kind == "many of a kind" else (1, 2, 3, 8, 17)
    count = 300 if kind in ("many of a kind", "wide") else 45
    return rng, cut(rng, series, count, lengths, steps), series


def some_thresholds(rng, shapelets, series):
    """A distance of each shapelet to some series, so that windows lie on the border."""
    partners = rng.integers(len(series), size=len(shapelets))
    windows = series.lengths[partners] - shapelets.extents + 1
    ranks = (rng.random(len(shapelets)) * 0.4 * np.maximum(windows, 1)).astype(np.int64)
    return partners, ranks


def test_work_is_that_of_a_shapelet_of_mean_size():
    once = np.ones(2, np.int64)
    shapelets = DilatedShapelets(np.zeros(8), 3 * once + [0, 2], once, 0 * once, once == 1)
    series = Series(np.zeros((2, 1, 10)), np.full(2, 10))
    work = ShapeletFeatures(shapelets, series, np.zeros(2))
    assert work.step_work == (3 * 8 + 5 * 6) // 2
    assert replace(work, series=Series(np.zeros((2, 1, 1)), np.ones(2, np.int64))).step_work == 4


@pytest.mark.parametrize("kind", [one for one in KINDS if one not in ("many of a kind", "wide")])
def test_features_and_quantiles_are_those_of_plain_loops(fast_engine, kind):
    rng, shapelets, series = work_of(kind)
    quantiles = DistanceQuantiles(shapelets, series, *some_thresholds(rng, shapelets, series))
    thresholds = run(quantiles, engine=fast_engine)
    loud = np.abs(shapelets.points).max() * 1e-15 if kind not in ("scales", "offset") else 0.0
    slack = 1e-6 if kind == "offset" else 1e-9
    expected = run(quantiles, engine="oracle")
    there = np.isfinite(expected)
    assert_array_equal(np.isfinite(thresholds), there)
    away = np.abs(thresholds[there] - expected[there])
    off = slack * np.where(shapelets.normalized[there], 1.0, expected[there]) + loud
    assert (away <= off).all()
    found = run(ShapeletFeatures(shapelets, series, thresholds), engine=fast_engine)
    begins = shapelets.begins
    for (b, row), distance in np.ndenumerate(found[:, 0]):
        values = shapelets.points[begins[row] :][: shapelets.lengths[row]]
        line = series.values[b, shapelets.channels[row], : series.lengths[b]]
        plain = dilated_distances(
            *(tuple(values.tolist()), tuple(line.tolist())),
            *(int(shapelets.dilations[row]), bool(shapelets.normalized[row])),
        )
        start, count = found[b, 1:, row]
        if not plain:
            assert (distance, start, count) == (math.inf, -1, 0)
            continue
        plain = np.array(plain)
        off = slack * np.where(shapelets.normalized[row], 1.0, plain) + loud
        assert abs(distance - plain.min()) <= off.max()
        assert plain[int(start)] - off[int(start)] <= plain.min() + off.max()
        assert (plain <= thresholds[row] - off).sum() <= count
        assert count <= (plain <= thresholds[row] + off).sum()


def constant_and_others():
    """Normalised shapelets; a constant series, and one that begins so; which shapelets are."""
    rng = np.random.default_rng(4)
    lengths = np.concatenate([rng.choice([7, 23, 45], 20, p=[0.3, 0.3, 0.4]), [23, 45]])
    lengths.sort()
    values = [rng.normal(size=length).cumsum() for length in lengths]
    flat = np.array([np.flatnonzero(lengths == 23)[0], lengths.size - 1])
    for row in flat:
        values[row][:] = 2.5
    once = np.ones(lengths.size, np.int64)
    shapelets = DilatedShapelets(np.concatenate(values), lengths, once, 0 * once, once == 1)
    lines = np.full((2, 1, 400), 0.7)
    lines[1, 0, 70:] = rng.normal(size=330).cumsum()
    # their own squares do not add up to the length, nor to a distance of 1
    sums = np.add.reduceat(shapelets.prepared[0] ** 2, shapelets.begins)
    assert (np.delete(np.sqrt(sums) / np.sqrt(lengths) != 1, flat)).sum() > 4
    return shapelets, Series(lines, np.full(2, 400)), np.isin(np.arange(lengths.size), flat)


def test_quantiles_of_constant_windows_are_exactly_one(fast_engine):
    shapelets, series, flat = constant_and_others()
    for rank in (0, 45):
        asked = DistanceQuantiles(shapelets, series, 0 * flat, 0 * flat + rank)
        assert_array_equal(run(asked, engine=fast_engine), 1.0 - flat)


@pytest.mark.parametrize("width", [400, 90])
def test_constant_windows_are_matched_at_a_distance_of_exactly_one(fast_engine, width):
    """Many of them, which are measured together on the CPU, or few, which are one by one."""
    shapelets, series, flat = constant_and_others()
    series = Series(series.values[:, :, :width], np.full(2, width))
    n_windows = width - shapelets.lengths + 1
    for threshold, counts in ((1.0, n_windows), (np.nextafter(1.0, 0.0), n_windows * flat)):
        work = ShapeletFeatures(shapelets, series, np.full(flat.size, threshold))
        found = run(work, engine=fast_engine)
        assert_array_equal(found[0], [1.0 - flat, 0 * flat, counts])
        assert_array_equal(found[1, :2, flat], 0.0)


def test_starts_are_the_first_of_equal_windows_and_counts_those_of_whole_numbers(fast_engine):
    """Squares of whole numbers have no roundings: answers are exactly those of plain loops."""
    rng = np.random.default_rng(7)
    values = rng.integers(0, 3, (6, 1, 40)).astype(float)
    series = Series(values, np.full(6, 40))
    shapelets = cut(rng, series, 60, (4, 16), (1, 2), raw=1.0)
    thresholds = np.sqrt(rng.integers(0, 8, 60) / shapelets.lengths)
    work = ShapeletFeatures(shapelets, series, thresholds)
    assert_array_equal(run(work, engine=fast_engine), run(work, engine="oracle"))


@pytest.mark.parametrize("n_windows", [64, 127, 128])
def test_blocks_that_windows_fill(fast_engine, n_windows):
    """As many, or nearly, as blocks of so many points have room for on the CPU."""
    rng, width = np.random.default_rng(8), n_windows + 43
    series = Series(rng.integers(0, 3, (2, 1, width)).astype(float), np.full(2, width))
    shapelets = cut(rng, series, 5, (44,), (1,), raw=1.0)
    work = ShapeletFeatures(shapelets, series, np.full(5, 1.2))
    with replace_kernels(always=False):
        assert_array_equal(run(work, engine=fast_engine), run(work, engine="oracle"))


def test_without_dilation_distances_are_those_of_subsequence_matches():
    rng = np.random.default_rng(3)
    series = walks(rng, 5, 80)
    shapelets = cut(rng, series, 30, (3, 9, 20), (1,), raw=0.0)
    queries = tuple(np.split(shapelets.points, shapelets.begins[1:]))
    matches = run(SubsequenceMatches(queries, series, True, shapelets.channels), engine="numba")
    work = ShapeletFeatures(shapelets, series, np.zeros(30), ("distance", "start"))
    found = run(work, engine="numba")
    roots = np.sqrt(shapelets.lengths)[:, np.newaxis]
    assert_array_equal(found[:, 0].T, matches.distances / roots)
    assert_array_equal(found[:, 1].T, matches.starts)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [*KINDS, "many units", "many runs"])
def test_the_gpu_finds_the_bits_of_the_cpu(kind, monkeypatch):
    if kind == "many units":
        monkeypatch.setattr(dilated_programs, "RUNS", 3)
    if kind == "many runs":
        monkeypatch.setattr(dilated_programs, "DESCRIBED", 1)
    rng, shapelets, series = work_of(kind if kind in KINDS else "channels")
    asked = DistanceQuantiles(shapelets, series, *some_thresholds(rng, shapelets, series))
    thresholds, expected = (run(asked, engine=engine) for engine in ("cupy", "numba"))
    assert_array_equal(thresholds, expected)
    for features in (("distance", "start", "count"), ("count",), ("start", "distance")):
        work = ShapeletFeatures(shapelets, series, thresholds, features)
        found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
        assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_finds_the_bits_of_the_kernels(kind):
    rng, shapelets, series = work_of(kind)
    asked = DistanceQuantiles(shapelets, series, *some_thresholds(rng, shapelets, series))
    go = np.zeros(1, np.uint8)
    thresholds = run(asked, engine="numba")
    assert_array_equal(asked.finish(dilated_by_numpy.quantiles(asked, go), None), thresholds)
    work = ShapeletFeatures(shapelets, series, thresholds)
    assert_array_equal(dilated_by_numpy.features(work, go), run(work, engine="numba"))


@pytest.mark.parametrize(("n_series", "small"), [(50, True), (30_000, False)])
def test_many_short_series_are_no_small_work(rng, monkeypatch, n_series, small):
    """NumPy is called for each of them, which takes longer than the steps do."""
    seen = []

    def prefer(seconds, *kernels, able, limit):
        seen.append((*seconds(), limit))
        return False

    monkeypatch.setattr(dilated_tiles, "prefer_numpy", prefer)
    series = walks(rng, n_series, 5)
    shapelets = cut(rng, series, 2, [3], [1], raw=0.0)
    rows = np.array([0, 1])
    thresholds = run(DistanceQuantiles(shapelets, series, rows, rows), engine="numba")
    assert all(total <= limit for _, total, limit in seen)  # of two series alone
    seen.clear()
    run(ShapeletFeatures(shapelets, series, thresholds), engine="numba")
    assert all((total <= limit) == small for _, total, limit in seen)
    assert sum(some for some, _, _ in seen) == pytest.approx(seen[0][1])


@pytest.mark.parametrize("kind", ["channels", "unequal", "too small"])
def test_answers_are_verified(kind):
    rng, shapelets, series = work_of(kind)
    asked = DistanceQuantiles(shapelets, series, *some_thresholds(rng, shapelets, series))
    with config_context(verify=True):
        thresholds = run(asked, engine="numba")
        run(ShapeletFeatures(shapelets, series, thresholds), engine="numba")


def test_a_sum_of_squares_is_within_a_threshold_when_its_root_is():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 400, 4000)
    thresholds = rng.normal(size=4000) * 10.0 ** rng.integers(-150, 150, 4000)
    thresholds[:4] = 0.0, np.inf, -0.0, 1.0
    with np.errstate(all="raise"):
        found = largest_squares(thresholds, lengths)
    assert_array_equal(found < 0, thresholds < 0)
    assert found[1] == np.inf
    some = np.flatnonzero((thresholds >= 0) & (thresholds < np.inf))
    roots = np.sqrt(lengths[some].astype(float))
    with np.errstate(over="ignore"):
        assert (np.sqrt(found[some]) / roots <= thresholds[some]).all()
        above = np.nextafter(found[some], np.inf)
        beyond = np.sqrt(above) / roots > thresholds[some]
    assert (beyond | np.isinf(above)).all()
