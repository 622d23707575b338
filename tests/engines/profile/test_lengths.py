"""Several lengths of the window from one walk: answers as one by one, and what bounds them."""

from __future__ import annotations

import importlib
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import ConcatenatedSeries, Join, Lengths, Tile, find_engine, run
from skts.engines.core.constants import TAKES_NO_PART
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


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_guesses", [1, 2, 3])
def test_limits_are_of_the_neighbours_that_guesses_tell(rng, dtype, n_guesses):
    """By plain loops; guesses that are right, wrong or none, of all windows or of the first."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    cp = importlib.import_module("cupy")
    load_kernel = importlib.import_module("skts.engines.cupy.loading").load_kernel
    n_points, lengths, exclusion, most_away = 150, np.array([6, 7, 9]), 2, 32
    x = np.sin(np.arange(n_points) / 3) + 0.1 * rng.normal(size=n_points)
    n = int(n_points - lengths[0] + 1)
    # lengths at which a window is regular, the first ones, and of these those that fit
    n_regular = rng.choice([0, 1, 2, 3, 3, 3, 3], n)
    n_mine = np.minimum(n_regular, (np.arange(n)[:, np.newaxis] + lengths <= n_points).sum(axis=1))
    guesses = rng.integers(0, n, (n_guesses, n))
    # some at the ends of the line, and where pairs begin to count
    edges = np.broadcast_to([[0], [n - 1], [exclusion], [exclusion + 1]], (4, n)).copy()
    edges[2:] += np.arange(n)
    at_edges = rng.random(guesses.shape) < 0.5
    guesses[at_edges] = rng.permuted(np.minimum(edges, n - 1), axis=0)[:n_guesses][at_edges]
    guesses[rng.random(guesses.shape) < 0.5] = TAKES_NO_PART
    # nobody knows anything of a stretch as long as what is followed on either side, and longer
    guesses[:, 40:115] = TAKES_NO_PART
    known = rng.integers(20, n + 1, n_guesses)
    windows = [sliding_window_view(x, length) for length in lengths]
    centered = [part - part.mean(axis=1, keepdims=True) for part in windows]
    roots = [np.sqrt((part**2).sum(axis=1)) for part in centered]
    r = [part @ part.T / np.outer(root, root) for part, root in zip(centered, roots, strict=True)]

    def limit(i):
        best, n_known = np.zeros(n_mine[i]), 0

        def look_at(j):
            nonlocal n_known
            if 0 <= j < n and abs(i - j) > exclusion:
                for k in range(min(n_mine[i], n_mine[j])):
                    best[k] = max(best[k], r[k][i, j])
                    n_known += k == n_known and r[k][i, j] > 0

        def follow(g, at):
            if guesses[g, at] != TAKES_NO_PART:
                look_at(guesses[g, at] + i - at)
                if n_known < n_mine[i]:
                    look_at(guesses[g, at] + i - at - (lengths[n_mine[i] - 1] - lengths[0]))

        for g in range(n_guesses):
            follow(g, min(i, known[g] - 1))
        for away in range(1, most_away + 1):
            for g in range(n_guesses if n_known < n_mine[i] else 0):
                if i >= away:
                    follow(g, min(i - away, known[g] - 1))
                if i + away < known[g]:
                    follow(g, i + away)
        rest = [(roots[k][i] / roots[0][i]) ** 2 * (1 - best[k] ** 2) for k in range(n_mine[i])]
        return roots[0][i] * np.sqrt(1 - min(1, max(rest)))

    given = {
        "points": cp.asarray(x),
        "mean": cp.asarray(windows[0].mean(axis=1)),
        "lengths": cp.asarray(lengths, np.int32),
        **{"n_lengths": 3, "n_points": n_points, "stride": n},
        **{"sums": cp.zeros((3, n)), "roots": cp.zeros((3, n))},
    }
    load_kernel("profile/lengths.cu", "energies")(2, 128, **given)
    for row, root in zip(given["roots"].get(), roots, strict=True):
        assert_allclose(row[: root.size], root, rtol=1e-9)
    tops, single = cp.zeros(n, np.int32), dtype is np.float32
    load_kernel("profile/lengths.cu", f"limits<{'float' if single else 'double'}>")(
        *(2, 128),
        **given,
        regular=cp.asarray(n_regular > np.arange(3)[:, np.newaxis]),
        guesses=cp.asarray(guesses, np.int32),
        known=cp.asarray(known, np.int32),
        n_guesses=n_guesses,
        exclusion=exclusion,
        tops=tops,
    )
    bits, none = tops.get(), n_mine == 0
    assert (bits[none] == TAKES_NO_PART).all()
    found = bits.view(np.float32) if single else (bits.astype(np.int64) << 32).view(float)
    wanted = np.array([limit(i) for i in np.flatnonzero(~none)])
    assert 0.2 * wanted.size < np.count_nonzero(wanted) < 0.95 * wanted.size
    # from below, as far as leading bits tell
    assert (found[~none] <= wanted).all()
    assert_allclose(found[~none], wanted, rtol=2.0**-19, atol=1e-6)
