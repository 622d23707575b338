"""Several lengths of the window from one walk: answers as one by one, and what bounds them."""

from __future__ import annotations

import importlib
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import ConcatenatedSeries, Join, Lengths, Tile, find_engine, run
from skts.engines.cupy.profile import length_groups
from skts.engines.cupy.profile.length_groups import GroupSizes, joins_lengths


def make_series(kind, rng, n=400):
    """A series of a kind."""
    x = rng.normal(size=n).cumsum()
    if kind == "ties":
        return rng.integers(0, 3, n).astype(float)
    if kind == "period":
        return np.sin(np.arange(n) * np.pi / 25) + (np.arange(n) % 50 == 7)
    if kind == "offset":
        return x + 1e7
    if kind == "steps":
        # first points of a window that say nothing about the others
        x[100:140] += 1e4
        x[300:] *= 1e-3
    if kind == "constant":
        x[50:90] = 2.0
    if kind == "gap":
        x[77] = np.nan
    return np.full(n, np.nan) if kind == "nothing" else x


@pytest.fixture
def groups(monkeypatch):
    """Make groups of short series; a list of the groups, and whether one walk served each."""
    monkeypatch.setattr(length_groups, "LEAST_WINDOWS", 1)
    monkeypatch.setattr(length_groups, "SHARE", 0.1)
    length_tiles = pytest.importorskip("skts.engines.cupy.profile.length_tiles")
    search, made = length_tiles._search, []

    def spy(tiles, join, group, sizes):
        found = search(tiles, join, group, sizes)
        made.append((group, found is not None))
        return found

    monkeypatch.setattr(length_tiles, "_search", spy)
    return made


def profiles(x, values, exclusions, engine, together):
    """Profiles of all lengths, in the order given."""
    line = ConcatenatedSeries.of([x])
    order = np.argsort(values)
    lengths = Lengths(np.asarray(values)[order], np.asarray(exclusions)[order], set(values))
    found = {}
    for length, exclusion in zip(values, exclusions, strict=True):
        if length in found:
            continue
        work = Join(line, None, length, exclusion, lengths=lengths if together else None)
        one = run(work, engine=engine)
        found |= one.lengths or {length: one}
        lengths.waiting.difference_update(found)
    return [found[length] for length in values]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kind", "grouped"),
    [
        *(("walk", True), ("ties", True), ("period", True), ("offset", True), ("steps", None)),
        *(("constant", False), ("gap", True), ("nothing", False)),
    ],
)
def test_equal_to_one_by_one(rng, groups, kind, grouped):
    x = make_series(kind, rng)
    values = [30, 40, 35, 31, 34, 33, 32, 41, 36]
    exclusions = [-(-length // 4) for length in values]
    found = profiles(x, values, exclusions, "cupy", True)
    if grouped is not None:
        assert any(together for _, together in groups) == grouped
    for one, other in zip(found, profiles(x, values, exclusions, "numba", False), strict=True):
        assert_array_equal(one.distances, other.distances)
        assert_array_equal(one.indices, other.indices)


@pytest.mark.gpu
def test_neighbours_at_the_end_and_in_exclusions_that_grow(rng, groups):
    x = rng.normal(size=300).cumsum()
    x[270:] = x[100:130] + 0.01 * rng.normal(size=30)  # neighbours that longer windows do not have
    values, exclusions = [26, 27, 28, 29], [0, 20, 60, 120]
    found = profiles(x, values, exclusions, "cupy", True)
    assert any(together for _, together in groups)
    for one, other in zip(found, profiles(x, values, exclusions, "numba", False), strict=True):
        assert_array_equal(one.distances, other.distances)
        assert_array_equal(one.indices, other.indices)


def test_correlations_of_longer_windows_bound_those_of_shorter_ones(rng):
    for kind in ("walk", "steps", "ties"):
        x, (short, long) = make_series(kind, rng, 120), (8, 11)
        windows = sliding_window_view(x, long)
        first, whole = (
            part - part.mean(axis=1, keepdims=True) for part in (windows[:, :short], windows)
        )
        energies = [(part**2).sum(axis=1) for part in (first, whole)]
        with np.errstate(all="ignore"):
            r, r_long = (
                part @ part.T / np.sqrt(np.outer(energy, energy))
                for part, energy in zip((first, whole), energies, strict=True)
            )
        least, most = (1 - np.maximum(r, 0) ** 2) * energies[0], (1 - r_long**2) * energies[1]
        known = (r_long > 0) & np.isfinite(r)
        assert known.sum() > 1000
        assert (least <= most * (1 + 1e-9) + 1e-9 * energies[1])[known].all()


@pytest.mark.parametrize(("step", "share"), [(1, 0.03), (3, 0.03), (1, 10.0)])
def test_groups_hold_each_length_once(monkeypatch, step, share):
    monkeypatch.setattr(length_groups, "SHARE", share)
    lengths, sizes = np.arange(2, 3000, step), GroupSizes()
    for pairs in (20.0, 1.0, 1.0, np.inf, np.inf, np.inf):
        for length in lengths[1:].tolist():
            if length & (length - 1) == 0:
                sizes.learn(length, pairs)
                sizes.learn(length * 3 // 2, pairs)
        found = sorted({sizes.group(lengths, at) for at in range(lengths.size)})
        assert found[0][0] == 0 and found[-1][1] == lengths.size
        assert all(stop == start for (_, stop), (start, _) in pairwise(found))
        for first, stop in found:
            assert stop - first <= length_groups.MOST_TOGETHER
            assert lengths[stop - 1] <= 2 * lengths[first]


def test_groups_learn_from_what_is_left_to_score():
    sizes = GroupSizes()
    for pairs, factor in (
        (20.0, 1),
        (2.0, 2),
        (0.0, 2),
        (2.0, 4),
        (100.0, 2),
        (2.0, 2),
        (np.inf, 1),
    ):
        sizes.learn(1000, pairs)
        assert sizes.factor(1000) == factor and sizes.factor(100) == 1
    for length in (100, 90, 100, 130):
        sizes.add(length)
    assert sizes.near(101, 108) == [100]
    assert sizes.near(105, 115) == [100, 130]
    assert sizes.near(140, 141) == []


def test_lengths_are_searched_together_only_where_nothing_else_is_asked_for(rng, monkeypatch):
    monkeypatch.setattr(length_groups, "LEAST_WINDOWS", 100)
    line = ConcatenatedSeries.of([rng.normal(size=200)])
    lengths = Lengths(np.array([10, 11]), np.array([3, 3]), {10, 11})

    def together(capacity=2**30, tile=None, **options):
        join = Join(line, None, 10, 3, **{"lengths": lengths} | options)
        return joins_lengths(join, tile or Tile(0, 191, 0, 191), capacity)

    assert together()
    assert not together(capacity=1000)
    assert not together(tile=Tile(0, 100, 0, 191))
    for options in (
        *({"lengths": None}, {"n_neighbors": 2}, {"sides": True}, {"normalize": False}),
        *({"excluded": np.zeros(191, bool)}, {"since": 5}, {"precision": "float64"}),
    ):
        assert not together(**options)
    monkeypatch.setattr(length_groups, "LEAST_WINDOWS", 192)
    assert not together()


@pytest.mark.gpu
def test_errors_of_correlations_are_those_of_the_farther_window():
    """See "correlations of several lengths" in docs/developer/numerics.rst."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    cp = importlib.import_module("cupy")
    programs = importlib.import_module("skts.engines.cupy.programs")
    kernel = """
    extern "C" __global__ void errors(const double* of, int length, double* found) {
        found[0] = correlation_error(of[0], of[1], of[2], of[3], length);
    }
    """
    text = programs.source("profile/lengths.cu") + kernel
    errors = cp.RawModule(code=text, options=programs.OPTIONS).get_function("errors")
    unit = 2.0**-53
    # roots of sums of squares, and means: both near, each far from 0 or nearly constant
    cases = (3, 2, 1, -1), (3, 2, -1e9, 1), (3, 2, 1, 1e9), (1e-9, 2, 1, 1), (3, 1e-9, 1, 1)
    # what is small beside the other terms shows where windows are long
    for of, length in product((*cases, (3, 2, 1e8, 1), (3, 2, 1, 1e8)), (20, 2**26, 2**27, 2**30)):
        found = cp.zeros(1)
        errors((1,), (1,), (cp.asarray(np.array(of, float)), np.int32(length), found))
        blur = max(1 + abs(of[2]) / of[0], 1 + abs(of[3]) / of[1])
        slip = unit * (2 * length + 8 + 4 * blur)
        wanted = 1e-14 * length + unit * (16 * length + 64 + 8 * length**0.5 * blur)
        assert_allclose(found.get(), wanted + 8 * length * slip**2, rtol=1e-12)
