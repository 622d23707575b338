"""Window statistics against plain sums, at any scale, wherever the window lies."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import (
    ConcatenatedSeries,
    Tile,
    WindowDistances,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.core.interrupts import Cancelled, heeding
from skts.engines.families.profile.concatenated import fill_gaps, whole_windows
from skts.engines.families.profile.statistics import settle_statistics
from skts.engines.families.profile.windows import distances_at_a_time, plain_profile
from skts.engines.host import by_numpy, windows
from tests.waiting import quickest


def window_statistics(series, length):
    """Means, from the first point of each window on, and what engines make of the deviations."""
    points, finite = fill_gaps(series)
    mean, *spread = windows.statistics(points, length, True)
    for a, b in zip((mean, *spread), by_numpy.statistics(points, length, True), strict=True):
        assert_array_equal(a, b)
    return mean, settle_statistics(*spread, whole_windows(finite, length))


@pytest.mark.parametrize(("n", "length"), [(1, 1), (5, 5), (31, 2), (100, 1), (200, 37), (33, 2)])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-6, 0.0), (1.0, 1e8), (1e6, -3.0)])
def test_against_exact_sums(rng, n, length, scale, offset):
    series = offset + scale * rng.normal(size=n)
    means, found = window_statistics(series, length)
    for i in range(n - length + 1):
        window = series[i : i + length]
        mean = math.fsum(window) / length
        deviation = math.sqrt(math.fsum((window - mean) ** 2) / length)
        assert_allclose(series[i] + means[i], mean, 1e-14 * length, 1e-15 * length * scale)
        if length > 1:
            assert_allclose(found.deviation[i], deviation, rtol=1e-12 + 1e-14 * abs(offset) / scale)
        assert found.constant[i] == (length == 1)
        assert found.finite[i]


def test_a_spike_leaves_no_trace_in_later_windows(rng):
    series = rng.normal(size=500)
    spiked = series.copy()
    spiked[100] = 1e12
    (mean, clean), (other, dirty) = window_statistics(series, 20), window_statistics(spiked, 20)
    assert_array_equal(clean.deviation[101:], dirty.deviation[101:])
    assert_array_equal(mean[101:], other[101:])


def test_pieces_have_the_bits_of_the_whole(rng):
    series = np.cumsum(rng.normal(size=1000))
    mean, whole = window_statistics(series, 50)
    for start, stop in ((0, 400), (351, 777), (949, 1000)):
        own, piece = window_statistics(series[start:stop], 50)
        for a, b in zip((own, *piece), (mean, *whole), strict=True):
            assert_array_equal(a, b[start : stop - 49])


def test_statistics_stop_with_their_run(rng):
    """While the windows of a long series are described: what they are so far is not kept."""
    points, cancel = rng.normal(size=200_000), np.zeros(1, np.uint8)
    series = ConcatenatedSeries.of([points])
    engine = find_engine("numba")

    def attempt():
        cancel[0] = 0
        timer = threading.Timer(0.2, cancel.fill, (1,))
        timer.start()
        start = time.perf_counter()
        with heeding(cancel), replace_kernels(False), pytest.raises(Cancelled):
            engine._windows(series, 60_000, True)
        seconds = time.perf_counter() - start
        timer.join()
        return seconds

    engine._windows(ConcatenatedSeries.of([points[:500]]), 50, True)  # compiles
    assert quickest(attempt) < 1
    assert engine.prepared.known(series.points, ("windows", 60_000, True)) is None


def test_constant_windows_are_exact(rng):
    series = np.concatenate([rng.normal(size=10), np.full(10, 1e9), 1e9 + 1e-6 * rng.random(10)])
    _, found = window_statistics(series, 5)
    assert_array_equal(np.flatnonzero(found.constant), np.arange(10, 26))
    assert_array_equal(found.deviation[10:26], 0)
    assert np.all(found.deviation[:10] > 0)


def test_windows_with_gaps_take_part_in_nothing(rng):
    series = rng.normal(size=30)
    series[7], series[20] = np.nan, np.inf
    _, found = window_statistics(series, 4)
    assert_array_equal(np.flatnonzero(~found.finite), [4, 5, 6, 7, 17, 18, 19, 20])
    assert_array_equal(found.deviation[~found.finite], 0)
    assert np.all(np.isfinite(found.deviation))
    assert not np.any(found.constant)


def test_differences_without_squares_are_none(rng):
    """A range up to 2^-500 is constant; a larger one has a deviation, however small the points."""
    series = np.concatenate([rng.normal(size=10) * 1e-160, np.zeros(10), rng.normal(size=10)])
    series[22] = 2.0**-499
    _, found = window_statistics(series, 5)
    assert_array_equal(np.flatnonzero(found.constant), np.arange(16))
    tiny = np.array([0.0, 2.0**-499, 0, 0, 0, 0])
    _, found = window_statistics(tiny, 5)
    assert_array_equal(found.constant, [False, False])
    assert_allclose(found.deviation[0], 0.4 * 2.0**-499)
    assert window_statistics(tiny / 2, 5)[1].constant.all()


@pytest.mark.parametrize("cols", [(0, 1), (3, 9), (0, 27), (26, 27)])
def test_a_part_has_the_distances_of_its_windows(rng, cols):
    line, own = (ConcatenatedSeries.of([rng.normal(size=n)]) for n in (31, 12))
    work = WindowDistances(own, np.array([0, 7, 3]), line, 5)
    part = work.part(Tile(1, 3, *cols))
    assert part.shape == (2, cols[1] - cols[0])
    assert_array_equal(run(part, engine="numba"), run(work, engine="numba")[1:3, slice(*cols)])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("small", [True, False])
def test_distances_of_windows_that_are_constant_or_not_finite(rng, normalize, small):
    points = rng.normal(size=40)
    points[[8, 9]] = np.nan, np.inf
    points[15:24], points[30:36] = 2.0, -1.0
    line, own = ConcatenatedSeries.of([points]), ConcatenatedSeries.of([points[3:33]])
    work = WindowDistances(own, np.arange(26), line, 5, normalize)
    with replace_kernels(always=small):
        found = run(work, engine="numba")
    for start in range(26):
        assert_array_equal(found[start], plain_profile(own, start, line, 5, normalize))


def test_distances_at_a_time_by_the_budget():
    """What is measured at a time beside the tiles of a join keeps to the budget, too."""
    assert distances_at_a_time() == 2**22
    for memory, expected in (("1MiB", 2**17), ("64MiB", 2**18), ("8GiB", 2**22)):
        with config_context(memory=memory):
            assert distances_at_a_time() == expected


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("gaps", [False, True])
def test_long_lines_are_prepared_with_the_bits_of_short_ones(monkeypatch, rng, normalize, gaps):
    """By kernels on the device, where NumPy does it for short lines."""
    from skts.engines.cupy import transfers
    from skts.engines.cupy.profile import lines
    from skts.engines.families.profile.lines import Frame

    points = 40 + rng.standard_normal(700).cumsum()
    points[300:350] = 3.0
    if gaps:
        points[[100, 500]] = np.nan
    pool = ConcatenatedSeries.of([points])
    prepared = []
    for small in (True, False):
        monkeypatch.setattr(transfers, "is_small", lambda size, small=small: small)
        line = lines.prepare_line(pool, 20, normalize)
        frame = None if normalize else Frame(40.0, 64.0)
        searched = lines.prepare_search(pool, line, 20, frame)
        level = 0.0 if normalize else 4 * float(searched.norm.max()) ** 2
        types = np.float64, np.float32
        steps = [lines.make_steps(searched, searched.regular, level, dtype) for dtype in types]
        kinds = line.constant, line.finite, line.regular, searched.hidden, searched.regular
        arrays = line.points, line.mean, line.inverse, *kinds, *searched[:5], *steps[0], *steps[1]
        arrays = [transfers.to_host(array) for array in arrays]
        prepared.append((arrays, searched.unit, isinstance(line.constant, np.ndarray)))
    (short, *unit, on_host), (long, *its_unit, too) = prepared
    assert (unit, on_host, too) == (its_unit, True, False)
    for one, other in zip(short, long, strict=True):
        assert_array_equal(one, other)
    constant, finite = short[3:5]
    assert constant.any() == normalize
    assert finite.all() == (not gaps)
