"""Best matches on the GPU: the bits of the CPU, and which launches there are."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skts.engines import Series, SubsequenceMatches, run
from skts.engines.cupy.shapelets import match_programs
from skts.engines.cupy.shapelets.match_programs import SEGMENTS, match_bytes, plan


def walks(rng, n, width, n_channels=1):
    values = rng.normal(size=(n, n_channels, width)).cumsum(axis=2)
    return Series(values, np.full(n, width))


def pieces_of(rng, series, lengths):
    """A query of each length from anywhere in the series, and its channel."""
    queries, channels = [], []
    for length in lengths:
        row, channel = rng.integers(len(series)), rng.integers(series.n_channels)
        size = int(series.lengths[row])
        start = rng.integers(max(1, size - length + 1))
        queries.append(series.values[row, channel, start : min(size, start + length)].copy())
        channels.append(channel)
    return tuple(queries), np.array(channels)


KINDS = [
    *("walks", "sets", "short", "unequal", "constant", "not finite", "repeated", "offset"),
    *("nearly constant", "scales", "too large", "too small", "few values", "spike", "raw"),
    *("long queries", "no room", "many parts", "large units"),
]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_the_gpu_finds_the_bits_of_the_cpu(kind, monkeypatch):
    rng = np.random.default_rng(KINDS.index(kind))
    n, width = (300, 9) if kind == "short" else (9, 1500 if kind == "spike" else 200)
    series = walks(rng, n, width, 2)
    values, lengths = series.values, rng.integers(3, width, 40)
    if kind in ("sets", "large units"):
        lengths = np.repeat([8, 9, 30], [19, 2, 7])
    if kind == "long queries":
        series = walks(rng, 130, 64)
        values, lengths = series.values, rng.integers(30, 65, 40)
    if kind == "no room":
        monkeypatch.setattr(match_programs, "room", lambda n_segments: n_segments // 3)
    if kind == "many parts":
        monkeypatch.setattr(match_programs, "SEGMENTS", 40)
    if kind == "large units":
        monkeypatch.setattr(match_programs, "MANY_BLOCKS", 1)
    if kind == "unequal":
        series = Series(values, rng.integers(5, width, n))
        values[np.broadcast_to(np.arange(width) >= series.lengths[:, None, None], values.shape)] = 0
    if kind in ("constant", "not finite"):
        values[0, 0, 5:90] = 3.0
        values[3, :] = 1.5
        lengths = lengths // 4 + 3
    if kind == "not finite":
        values[1, 0, 8], values[2, 1, 30], values[4, 0, ::3] = np.nan, np.inf, -np.inf
    if kind == "repeated":
        values[:, :, 100:] = values[:, :, :100]
        values[5:] = values[:4]
        lengths = lengths // 2 + 2
    if kind == "offset":
        values += 10.0 ** rng.integers(5, 11, (n, 2, 1))
    if kind == "nearly constant":
        values[::2, :, 20:160] = 3 + 1e-7 * values[::2, :, 20:160]
        values[1::4, :, 50:150] = 3 + 1e-13 * values[1::4, :, 50:150]
    if kind == "scales":
        values *= 10.0 ** rng.integers(-140, 140, (n, 2, 1))
    if kind in ("too large", "too small"):
        values *= 1e155 if kind == "too large" else 1e-160
    if kind == "few values":
        values[:] = rng.integers(0, 2, values.shape)
        lengths = rng.integers(3, 14, 40)
    if kind == "spike":
        values[0, :, 700] = 1e8
    queries, channels = pieces_of(rng, series, lengths.tolist())
    queries += np.ones(8), np.array([1.0, np.nan, 2.0]), np.arange(width + 1.0)
    queries += (np.array([1.0, np.nan, 1.0]),)
    last = values.shape[1] - 1
    channels = np.append(channels, [0, last, 0, last])
    work = SubsequenceMatches(queries, series, kind != "raw", channels)
    with np.errstate(all="ignore"):
        found, expected = (run(work, engine=engine) for engine in ("cupy", "numba"))
    assert_array_equal(found.starts, expected.starts)
    assert_array_equal(found.distances, expected.distances)


@pytest.mark.gpu
def test_few_windows_of_random_walks_are_measured(monkeypatch):
    """Little more than the best of each pair: answers do not tell how many were listed."""
    matches = importlib.import_module("skts.engines.cupy.shapelets.matches")
    load_kernel, counts = matches.load_kernel, []

    def noted(file, name, *rest):
        kernel = load_kernel(file, name, *rest)
        if name != "sift":
            return kernel

        def launch(*given, **arguments):
            kernel(*given, **arguments)
            counts.append(arguments["lists"]["counts"].get())

        return launch

    monkeypatch.setattr(matches, "load_kernel", noted)
    rng = np.random.default_rng(0)
    series = walks(rng, 9, 200)
    queries, channels = pieces_of(rng, series, rng.integers(8, 60, 40).tolist())
    # the windows of a constant stretch are told by their points
    series.values[4, 0, 100:170] = 3.0
    run(SubsequenceMatches(queries, series, True, channels), engine="cupy")
    (listed, left), *more = counts
    assert not more
    assert left == 0
    assert 40 * 9 <= listed < 1.05 * 40 * 9


@pytest.mark.parametrize(("n_columns", "width"), [(1, 8), (155, 1092), (1000, 128), (3, 100_000)])
def test_every_query_is_in_one_launch(n_columns, width):
    rng = np.random.default_rng(width)
    lengths, channels = np.sort(rng.integers(1, width + 3, 2000)), np.repeat([0, 1], 1000)
    parts, units = plan(lengths, channels, n_columns, width)
    assert [part.first for part in parts] == [0, *(part.stop for part in parts[:-1])]
    seen = np.zeros(2000, int)
    for part, own in zip(parts, units, strict=True):
        assert len(own) == part.n_units
        for begin, many in (own + [part.first, 0]).tolist():
            rows = slice(begin, begin + many)
            assert len({*zip(lengths[rows], channels[rows], strict=True)}) == 1
            assert match_programs.blocks_of(lengths[rows][:1], n_columns, width)[0] <= part.blocks
            seen[rows] += 1
    assert_array_equal(seen, 1)


def test_bytes_stay_within_what_a_part_may_list():
    few, many = (match_bytes(n, 3, 90, 50, 1, 100) for n in (1, 10**6))
    assert few < 2**19
    assert many - 10**6 * (8 * 90 + 64) < 64 * SEGMENTS + 2**20
    # of every query its points, a row of the table, whether it is constant, and its mean
    more = match_bytes(2 * 10**6, 3, 90, 50, 1, 100)
    assert more - many >= 10**6 * (8 * 90 + 32 + 1 + 4)
    # of short series in many channels points, two sums of squares each in two parts, runs, a scale
    assert match_bytes(1, 3, 3, 10**4, 10, 8) >= 10**5 * (8 * 8 + 2 * 16 * (8 + 1) + 8 * 8 + 32)
