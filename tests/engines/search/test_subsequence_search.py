"""Subsequence search: the fast engine against plain loops, over data, options and tilings."""

from __future__ import annotations

import importlib
import itertools
import math
import tracemalloc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import reference_subsequence_search
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import (
    LongSeries,
    SubsequenceNeighbors,
    Tile,
    Warping,
    find_engine,
    replace_kernels,
    run,
)
from skts.engines.cupy.search.programs import choose_warp
from skts.engines.cupy.search.room import (
    ROWS,
    SearchRoom,
    edge_bytes,
    least_bytes,
    row_bytes,
)
from skts.engines.families.search.subsequence import (
    TileMatches,
    greedy,
    normalize_windows,
    query_envelope,
)
from skts.engines.numba.search import channels, lanes
from skts.engines.numba.search.lanes import Comparison

LENGTH = 21


def make_line(kind, n, rng):
    """Series of a kind that has gone wrong somewhere, if not here."""
    walk = rng.normal(size=n).cumsum()
    if kind == "noise":
        return rng.normal(size=n)
    if kind == "flat":
        walk[n // 4 : n // 2] = walk[n // 4]
    elif kind == "gaps":
        walk[n // 3], walk[n // 2 : n // 2 + 5], walk[:3], walk[-1] = np.nan, np.inf, np.nan, np.nan
    elif kind == "offset":
        walk = 1e8 + rng.normal(size=n)
    elif kind == "scales":
        walk = rng.normal(size=n)
        walk[: n // 3] *= 1e-6
        walk[2 * n // 3 :] *= 1e6
    elif kind == "periodic":
        walk = np.tile(walk[:13], n // 13 + 1)[:n]
    elif kind == "nearly flat":
        walk = np.where(np.arange(n) % 60 < 30, 5.0, walk) + 1e-10 * rng.normal(size=n)
    return walk


KINDS = ["walk", "noise", "flat", "gaps", "offset", "scales", "periodic", "nearly flat"]
WARPINGS = {
    "band": Warping(window=0.1),
    "none": Warping(),
    "euclidean": Warping(window=0),
    "absolute": Warping(cost="absolute", window=3),
    "dog_keeper": Warping(metric="dog_keeper"),
    "dog_keeper absolute": Warping(metric="dog_keeper", cost="absolute", window=0.3),
}


def search(queries, series, warping, **options):
    return SubsequenceNeighbors(
        tuple(np.asarray(query, float) for query in queries),
        LongSeries(tuple(np.asarray(one, float) for one in series)),
        warping,
        **options,
    )


def matches_of_the_definition(work):
    """The answer by sorting all windows."""
    warping = work.warping
    options = {
        "normalize": work.normalize,
        "metric": warping.metric,
        "cost": warping.cost,
        "window": warping.window,
    }
    for query in work.queries:
        if work.n_neighbors is None:
            found = reference_subsequence_search.all_distances(query, work.series.parts, **options)
            yield [match for match in found if match[0] <= work.radius]
        else:
            yield reference_subsequence_search.nearest_windows(
                query, work.series.parts, work.n_neighbors, work.exclusion, **options
            )


def same(found, expected):
    """Same windows, distances but for the last bits of a root or a power."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        other = np.array(other, float).reshape(-1, 3)
        assert_array_equal(one.positions, other[:, 1:].astype(np.int64))
        assert_allclose(one.distances, other[:, 0], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normalize", [True, False])
def test_finds_the_windows_of_the_definition(rng, fast_engine, kind, normalize):
    line = make_line(kind, 210, rng)
    queries = line[140 : 140 + LENGTH], rng.normal(size=12).cumsum(), np.ones(9)
    for k, warping in [(1, "band"), (4, "band"), (3, "euclidean")]:
        work = search(queries, [line], WARPINGS[warping], normalize=normalize, n_neighbors=k)
        same(run(work, engine=fast_engine), list(matches_of_the_definition(work)))


@pytest.mark.parametrize("name", WARPINGS)
@pytest.mark.parametrize("exclusion", [None, 0, 40])
def test_options(rng, fast_engine, name, exclusion):
    series = [make_line(kind, n, rng) for kind, n in (("walk", 60), ("gaps", 110), ("noise", 15))]
    queries = [rng.normal(size=n).cumsum() for n in (16, 17, 1, 2, 40)]
    work = search(queries, series, WARPINGS[name], n_neighbors=5, exclusion=exclusion)
    same(run(work, engine=fast_engine), list(matches_of_the_definition(work)))


@pytest.fixture(params=["certified", "estimated"])
def by_kernels(request, monkeypatch, fast_engine):
    """By kernels, also where the work is small; on a GPU certified at once, or after estimates."""
    if request.param == "estimated":
        if fast_engine == "numba":
            pytest.skip("there are no estimates")
        monkeypatch.setattr("skts.engines.cupy.search.subsequence.FEW_CELLS", 0)
    with replace_kernels(False):
        yield


def make_channels(kinds, n, rng):
    """A series of several channels."""
    return np.stack([make_line(kind, n, rng) for kind in kinds])


@pytest.mark.parametrize("n_neighbors", [1, 4, None])
@pytest.mark.parametrize("normalize", [True, False])
def test_channels_at_once(rng, fast_engine, by_kernels, normalize, n_neighbors):
    """Bounds, seeds, windows that are warped together: more than one group of lanes."""
    series = [
        make_channels(kinds, n, rng)
        for kinds, n in ((("walk", "gaps", "flat"), 130), (("noise", "scales", "periodic"), 70))
    ]
    queries = [series[0][:, 20:37] + 0.1 * rng.normal(size=(3, 17)), rng.normal(size=(3, 9))]
    for window in (0.2, None, 0):
        options = {"n_neighbors": n_neighbors, "radius": np.inf if n_neighbors else 4.5}
        work = search(queries, series, Warping(window=window), normalize=normalize, **options)
        same(run(work, engine=fast_engine), list(matches_of_the_definition(work)))


@pytest.mark.parametrize("name", WARPINGS)
@pytest.mark.parametrize("normalize", [True, False])
def test_bounds_of_channels_are_the_sum_or_the_largest_of_those_of_each(rng, name, normalize):
    """Answers do not tell: with looser bounds more windows are warped."""
    line, query = rng.normal(size=(3, 60)).cumsum(axis=1), rng.normal(size=(3, 16))

    def bounds(at):
        points, whole = np.pad(line[at], ((0, 0), (0, channels.LANES))), np.ones(45, bool)
        whole[7] = False
        piece = channels.prepare(points, whole, 16, normalize)
        work = search([query[at]], [line[at]], WARPINGS[name], normalize=normalize, n_neighbors=1)
        of_query = channels._Search(work, 0, piece, np.zeros(1, np.uint8))
        radius, found = min(int(work.warping.radius(16, 16)), 15), np.empty(45)
        compared = Comparison(radius, normalize, work.warping.squared, work.warping.largest)
        given = of_query._envelopes(radius), compared, np.inf, found, np.zeros(1, np.uint8)
        channels.bound_windows(piece, *given)
        assert found[7] == np.inf
        return compared, np.delete(found, 7)

    def outside(at, compared):
        # how far windows are outside of the envelope of the query
        windows = normalize_windows(
            np.lib.stride_tricks.sliding_window_view(line[at], 16), normalize
        )
        low, high = query_envelope(normalize_windows(query[at], normalize), compared.radius)
        costs = np.maximum(0, np.maximum(windows - high, low - windows))
        costs = np.delete(costs**2 if compared.squared else costs, 7, axis=0)
        return costs.max(axis=1) if compared.largest else costs.sum(axis=1)

    compared, found = bounds([0, 1, 2])
    each = np.array([bounds([channel])[1] for channel in range(3)])
    least = np.array([outside(channel, compared) for channel in range(3)])
    assert (least > 0).any(axis=1).all()
    assert (each >= least * (1 - 1e-12)).all()
    radius, largest = compared.radius, compared.largest
    least = least.max(axis=0) if largest else least.sum(axis=0)
    assert (found >= least * (1 - 1e-12)).all()
    if largest:
        assert_array_equal(found, each.max(axis=0))
    elif radius == 0:
        assert_allclose(found, each.sum(axis=0), rtol=1e-12)
    else:
        # the envelope of the query bounds all channels, or that of the windows does
        assert (found <= each.sum(axis=0) * (1 + 1e-12)).all()
        assert (found >= each.sum(axis=0) / 2).all()


@pytest.mark.parametrize("name", WARPINGS)
@pytest.mark.parametrize("normalize", [True, False])
def test_limits_of_strips_are_what_columns_behind_them_leave(rng, name, normalize):
    """From the definition. Answers do not tell: with looser limits more cells are filled."""
    length, n_windows = 2 * channels.NARROW + 9, channels.LANES + 7
    line = rng.normal(size=(2, n_windows + length - 1)).cumsum(axis=1)
    query = rng.normal(size=(2, length)).cumsum(axis=1)
    piece = channels.prepare(line, np.ones(n_windows, bool), length, normalize)
    work = search([query], [line], WARPINGS[name], normalize=normalize, n_neighbors=1)
    of_query = channels._Search(work, 0, piece, np.zeros(1, np.uint8))
    radius = min(int(work.warping.radius(length, length)), length - 1)
    compared = Comparison(radius, normalize, work.warping.squared, work.warping.largest)
    places = rng.permutation(n_windows)
    windows = normalize_windows(
        np.lib.stride_tricks.sliding_window_view(line, length, 1), normalize
    )
    windows = windows[:, places]
    low, high = zip(
        *(query_envelope(one, radius) for one in normalize_windows(query, normalize)), strict=True
    )
    low, high = np.array(low)[:, np.newaxis], np.array(high)[:, np.newaxis]
    costs = np.maximum(0, np.maximum(windows - high, low - windows))
    costs = (costs**2 if compared.squared else costs).sum(axis=0)
    join = np.max if compared.largest else np.sum
    # beside that of a window, and not just at it
    cost = 1.001 * float(np.median(join(costs, axis=1)))
    shape = 2, -(-length // channels.NARROW), channels.LANES
    packed, limits = np.empty((2, length, 2, channels.LANES)), np.empty(shape)
    channels.lay_windows(line, places, of_query._envelopes(radius), compared, cost, packed, limits)
    # the last window fills the lanes that are left
    filled = np.minimum(np.arange(2 * channels.LANES), n_windows - 1)
    laid = packed.transpose(0, 3, 2, 1).reshape(len(filled), 2, length)
    assert_allclose(laid, windows.swapaxes(0, 1)[filled], rtol=1e-9, atol=1e-12)
    for strip in range(shape[1]):
        behind = costs[filled, (strip + 1) * channels.NARROW :]
        rest = join(behind, axis=1, initial=0.0)
        wanted = np.where(rest <= cost, cost, -1.0) if compared.largest else cost - rest
        assert_allclose(limits[:, strip].ravel(), wanted, rtol=1e-9, atol=1e-9 * cost)


@pytest.mark.parametrize("name", WARPINGS)
@pytest.mark.parametrize("exclusion", [None, 0, 40])
def test_options_of_channels(rng, engine, name, exclusion):
    series = [make_channels(("walk", "noise"), n, rng) for n in (50, 24, 7)]
    queries = [rng.normal(size=(2, n)).cumsum(axis=1) for n in (11, 1, 2, 25)]
    work = search(queries, series, WARPINGS[name], n_neighbors=5, exclusion=exclusion)
    # kernels of the others are compiled by slow tests
    with replace_kernels(name not in ("band", "none", "euclidean")):
        same(run(work, engine=engine), list(matches_of_the_definition(work)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WARPINGS)
def test_channels_of_every_kind(rng, fast_engine, by_kernels, kind, name):
    line = make_channels((kind, "walk", kind, "noise"), 180, rng)
    queries = [line[:, 100 : 100 + LENGTH], rng.normal(size=(4, 12)).cumsum(axis=1)]
    for k, normalize in ((1, True), (4, True), (2, False)):
        options = {"normalize": normalize, "n_neighbors": k}
        work = search(queries, [line], WARPINGS[name], **options)
        same(run(work, engine=fast_engine), list(matches_of_the_definition(work)))


@pytest.mark.parametrize("name", ["band", "none"])
def test_radius(rng, fast_engine, name):
    line = make_line("flat", 150, rng)
    queries = [line[20 : 20 + LENGTH] + 0.1 * rng.normal(size=LENGTH), np.zeros(LENGTH)]
    for radius in (0.0, 1.5, math.sqrt(LENGTH), np.inf):
        work = search(queries, [line], WARPINGS[name], n_neighbors=None, radius=radius)
        same(run(work, engine=fast_engine), list(matches_of_the_definition(work)))


@pytest.mark.parametrize("n_neighbors", [1, 2, 8, None])
@pytest.mark.parametrize("exclusion", [0, 1, 4])
def test_parts_in_any_order_lose_no_match(n_neighbors, exclusion):
    """As few windows as can bound the last match bound it; what ties and starts before it stays."""
    for seed in range(90):
        rng = np.random.default_rng(seed)
        lengths, radius = (12, 17), 3.0 if seed % 2 else math.inf
        series = LongSeries(tuple(np.zeros(n) for n in lengths))
        work = SubsequenceNeighbors(
            (np.zeros(3),), series, n_neighbors=n_neighbors, exclusion=exclusion, radius=radius
        )
        # many ties, or none; windows that touch two series are none
        values = rng.permutation(work.shape[1]) // (1 + seed % 3 * 3) / 4.0
        values[10:13] = np.inf
        total, cuts = work.start(), np.sort(rng.integers(0, values.size + 1, 7)).tolist()
        tiles = list(zip([0, *cuts], [*cuts, values.size], strict=True))
        for at in rng.permutation(8):
            tile = Tile(0, 1, *tiles[at])
            limit = work.with_incumbent(total).limit_of(0)
            here = np.flatnonzero((values[tile.cols] <= limit) & (values[tile.cols] < np.inf))
            work.merge(total, tile, [TileMatches(here, values[tile.cols][here])])
        (found,) = work.finish(total, run)
        expected = []
        for place in np.argsort(values, kind="stable").tolist():
            row, start = (0, place) if place < 10 else (1, place - 13)
            near = n_neighbors is not None and any(
                row == other and abs(start - at) <= exclusion for _, other, at in expected
            )
            if values[place] <= radius and values[place] < np.inf and not near:
                expected.append((values[place], row, start))
        expected = np.array(expected[:n_neighbors]).reshape(-1, 3)
        assert_array_equal(found.distances, expected[:, 0])
        assert_array_equal(found.positions, expected[:, 1:])


def test_of_windows_that_tie_few_are_held():
    """Those after the one that bounds the last match are as far, and come later."""
    n, size = 200_000, 8192
    work = SubsequenceNeighbors(
        (np.zeros(8),), LongSeries((np.zeros(n),)), n_neighbors=3, exclusion=2
    )
    for order in (1, -1):
        total, held = work.start(), []
        for start in range(0, work.shape[1], size)[::order]:
            tile = Tile(0, 1, start, min(start + size, work.shape[1]))
            work.merge(
                total, tile, [TileMatches(np.arange(tile.shape[1]), np.zeros(tile.shape[1]))]
            )
            held.append(total[0].distances.size)
        # those of a tile, and half as many more, before they are looked at
        assert max(held) <= 3 * size
        (found,) = work.finish(total, run)
        assert found.positions[:, 1].tolist() == [0, 3, 6]


def greedy_by_loops(found, n_neighbors, exclusion):
    """The best, then the best of those that start far enough from it, and so on."""
    taken = []
    for distance, series, start in found:
        near = any(one == series and abs(at - start) <= exclusion for _, one, at in taken)
        if not near and len(taken) < n_neighbors:
            taken.append((distance, series, start))
    return taken


@pytest.mark.parametrize("name", ["band", "euclidean", "dog_keeper"])
@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("exclusion", [0, 2, 30])
def test_many_neighbors(rng, fast_engine, by_kernels, name, n_channels, exclusion):
    """More than are looked at each time, with ties, and more than there are."""
    shapes = (40, 700, 5, 300) if fast_engine == "numba" else (40, 150, 5, 60)
    series = [rng.integers(0, 3, (n_channels, n)).astype(float) for n in shapes]
    series[1][:, 100:103] = np.nan
    series = [one[0] if n_channels == 1 else one for one in series]
    query = rng.integers(0, 3, (n_channels, 6)).astype(float)
    query = query[0] if n_channels == 1 else query
    options = {"window": WARPINGS[name].window, "metric": WARPINGS[name].metric}
    every = reference_subsequence_search.all_distances(query, series, **options)
    every_one = search((query,), series, WARPINGS[name], n_neighbors=None)
    (measured,) = run(every_one, engine=fast_engine)
    bits = [
        (distance, *place)
        for distance, place in zip(
            measured.distances.tolist(), measured.positions.tolist(), strict=True
        )
    ]
    same([measured], [every])
    for k in (1, 7, 60, 150, 290, 400, 1500):
        work = search((query,), series, WARPINGS[name], n_neighbors=k, exclusion=exclusion)
        (found,) = run(work, engine=fast_engine)
        expected = np.array(greedy_by_loops(bits, k, exclusion))
        assert_array_equal(found.distances, expected[:, 0])
        assert_array_equal(found.positions, expected[:, 1:])


@pytest.mark.parametrize("exclusion", [0, 5])
@pytest.mark.parametrize("n_neighbors", [300, 1500, 100_000])
def test_work_for_many_neighbors_grows_like_that_of_a_sort(
    rng, monkeypatch, exclusion, n_neighbors
):
    """Of parts that come one after the other, each nearer than all before."""
    looked = []

    def watched(positions, order, *options):
        looked.append(order.size)
        return greedy(positions, order, *options)

    monkeypatch.setattr("skts.engines.families.search.subsequence.greedy", watched)
    n, step = 40_000, 100
    series = LongSeries((np.zeros(n + 2),))
    work = SubsequenceNeighbors(
        (np.zeros(3),), series, n_neighbors=n_neighbors, exclusion=exclusion
    )
    total = work.start()
    for col in range(0, n, step):
        found = TileMatches(np.arange(step), np.arange(n - col, n - col - step, -1.0))
        work.merge(total, Tile(0, 1, col, col + step), [found])
    # few are looked at each time; more, whenever they are half as many more
    assert sum(looked) <= 4 * n + n // step * 4096


def test_matches_are_looked_at_once_enough_are_new(monkeypatch):
    """In the kernel, where each window is nearer than all before."""
    looked = []

    def watched(positions, distances, count, *options):
        looked.append(count)
        return lanes.far_apart(positions, distances, count, *options)

    keep = lanes.keep_matches.py_func
    fresh = type(keep)(keep.__code__, {**keep.__globals__, "far_apart": watched})
    n, exclusion = 200 * lanes.LANES, 3
    for need in (3, 500, n):
        looked.clear()
        matches = lanes.Matches(
            np.full(1, np.inf),
            *(np.zeros(1, np.int64), np.zeros(1, np.int64)),
            *(np.zeros((1, n), np.int64), np.zeros((1, n))),
        )
        stretches = np.full(n // (exclusion + 1) + 3, -1)
        for start in range(0, n, lanes.LANES):
            places = start + np.arange(lanes.LANES)
            waiting = lanes.Waiting(np.zeros(lanes.LANES, np.int64), places, np.zeros(lanes.LANES))
            costs = np.square(n - places.astype(float))
            fresh(
                *(waiting, lanes.LANES, costs, need, exclusion, True, matches, stretches),
            )
        kept = matches.counts[0]
        assert matches.within[0] == (np.inf if need == n else matches.distances[0, :kept].max())
        # as many as are listed, some times; once a look was at all, for each group: 640,000
        assert sum(looked) <= 30 * n if need == n else sum(looked) <= 200 * (8 * need + 256)


def test_a_part_that_comes_late_may_displace_two_matches():
    series = LongSeries((np.zeros(1000),))
    distances = {100: 1.0, 110: 1.1, 105: 0.5, 600: 3.0}
    for order in itertools.permutations(distances):
        work = SubsequenceNeighbors((np.zeros(3),), series, n_neighbors=2, exclusion=6)
        total = work.start()
        for place in order:
            found = TileMatches(np.array([0]), np.array([distances[place]]))
            work.merge(total, Tile(0, 1, place, place + 1), [found])
        (matches,) = work.finish(total, run)
        assert_array_equal(matches.positions[:, 1], [105, 600])
        assert_array_equal(matches.distances, [0.5, 3.0])


def test_a_share_that_is_whole_but_for_rounding_is_that_number():
    series = LongSeries((np.zeros(1000),))
    for share, length, points in ((0.07, 100, 7), (0.25, 8, 2), (0.25, 9, 3), (1.0, 5, 5)):
        work = SubsequenceNeighbors((np.zeros(length),), series, exclusion=share)
        assert work.exclusion_of(length) == points


def test_a_better_match_that_displaces_two(fast_engine):
    # windows at 0 and 10 lie at distances 1 and 1.1, that at 5 at 0.5 excludes both
    line = np.full(1000, 9.0)
    line[[100, 105, 110, 600]] = 1.0, 0.5, 1.1, 3.0
    work = search([[0.0]], [line], Warping(), normalize=False, n_neighbors=2, exclusion=6)
    (found,) = run(work, engine=fast_engine)
    assert_array_equal(found.positions[:, 1], [105, 600])
    assert_array_equal(found.distances, [0.5, 3.0])


@pytest.mark.parametrize("kind", ["walk", "gaps", "periodic", "offset"])
def test_tilings_and_threads_do_not_matter(rng, fast_engine, kind):
    series = [make_line(kind, n, rng) for n in (9000, 2500, 7001)]
    queries = [series[0][4000:4064], rng.normal(size=50).cumsum(), series[2][:64]]
    work = search(queries, series, WARPINGS["band"], n_neighbors=6)
    once = run(work, engine=fast_engine, n_jobs=1)
    few = find_engine(fast_engine).footprint(work, *work.cell)
    with config_context(memory=2 * sum(few)):
        for n_jobs in (1, 2):
            again = run(work, engine=fast_engine, n_jobs=n_jobs)
            for one, other in zip(once, again, strict=True):
                assert_array_equal(one.positions, other.positions)
                assert_array_equal(one.distances, other.distances)
    # tiles in any order, as parts that carry their own data
    total = work.start()
    engine = find_engine(fast_engine)
    rows, cols = work.shape
    corners = [(row, col) for row in range(0, rows, 2) for col in range(0, cols, 4096)]
    rng.shuffle(corners)
    for row, col in corners:
        tile = Tile(row, min(row + 2, rows), col, min(col + 4096, cols))
        part = work.with_incumbent(total).part(tile)
        whole = Tile(0, part.shape[0], 0, part.shape[1])
        assert part.shape[1] <= tile.shape[1]
        result = engine.compute(part, whole, np.zeros(1, np.uint8))
        work.merge(total, tile, result)
    for one, other in zip(once, work.finish(total, run), strict=True):
        assert_array_equal(one.positions, other.positions)
        assert_array_equal(one.distances, other.distances)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("name", ["band", "none", "euclidean"])
def test_precision(rng, fast_engine, precision, name):
    line = make_line("gaps", 400, rng)
    queries = [rng.normal(size=n).cumsum() for n in (LENGTH, 90)]
    work = search(queries, [line], WARPINGS[name], n_neighbors=3, precision=precision)
    expected = run(search(queries, [line], WARPINGS[name], n_neighbors=3), engine="numba")
    for one, other in zip(run(work, engine=fast_engine), expected, strict=True):
        assert_array_equal(one.positions, other.positions)
        if precision == "float64":
            assert_array_equal(one.distances, other.distances)
        assert_allclose(one.distances, other.distances, rtol=1e-4)


@pytest.mark.parametrize("options", [{"n_neighbors": 3}, {"radius": 1e-3}], ids=str)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", ["band", "none", "euclidean"])
def test_windows_of_which_float32_tells_nothing_have_distances(
    rng, fast_engine, name, normalize, options
):
    line = rng.normal(size=400)
    line[:200] += 1e10
    line[200:300] *= 1e3
    place = 220 if normalize else 20
    query = [line[place : place + LENGTH]]
    work = search(query, [line], WARPINGS[name], normalize=normalize, **options)
    (expected,) = run(work, engine="numba")
    (found,) = run(replace(work, precision="float32"), engine=fast_engine)
    assert found.positions[0].tolist() == [0, place]
    assert_array_equal(found.positions, expected.positions)
    assert_allclose(found.distances, expected.distances, rtol=1e-4, atol=1e-9)


def test_lanes_of_the_gpu_hold_the_query():
    for length in [*range(1, 300), 1281, 2047, 2048]:
        kernel = choose_warp(length, "Dtw<Squared>")
        assert 0 <= kernel.width - length < max(2, kernel.group)
        # a window takes longer than it takes to pass from the first lane to the last
        assert kernel.group == 1 or kernel.group <= length // 2
    assert choose_warp(2049, "Dtw<Squared>") is None


@pytest.mark.parametrize("length", [5, 128, 3000])
@pytest.mark.parametrize("budget", [2**24, 2**28, 2**34])
def test_parts_of_tiles_on_the_gpu_fit_the_budget(length, budget):
    work = search([np.ones(length)], [np.ones(9)], Warping())
    for cols in (100, 10**5, 10**9):
        room = SearchRoom.of(work, cols, budget)
        assert min(cols, work.cell[1]) <= room.windows <= cols
        spent = least_bytes(length, room.windows) + (room.chunk - ROWS) * row_bytes(length)
        spent += room.edges - edge_bytes(length) + room.keep
        assert spent <= budget


@pytest.mark.gpu
@pytest.mark.parametrize("name", WARPINGS)
@pytest.mark.parametrize("length", [2, 40, 81, 129, 333, 641, 1281, 2060])
def test_the_gpu_finds_the_same(rng, name, length):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    # drifts far, and has a gap
    line = 1e3 * rng.normal(size=length + 900).cumsum()
    line[100] = np.nan
    queries = [line[200 : 200 + length] + 500 * rng.normal(size=length)]
    work = search(queries, [line], WARPINGS[name], n_neighbors=4)
    (one,), (other,) = (run(work, engine=engine) for engine in ("cupy", "numba"))
    assert_array_equal(one.positions, other.positions)
    assert_array_equal(one.distances, other.distances)


@pytest.mark.gpu
def test_parts_of_tiles_do_not_matter(rng, monkeypatch):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    from skts.engines.cupy.search import room as subsequence_search_room

    many = [make_line("gaps", n, rng) for n in (9000, 2500, 30_001)]
    # a single series that nobody can change stays on the device
    one = make_line("gaps", 30_001, rng)
    one.flags.writeable = False
    queries = [rng.normal(size=50).cumsum(), rng.normal(size=129).cumsum()]
    for series, name in (
        (many, "band"),
        (many, "none"),
        (many, "euclidean"),
        ([one], "none"),
        ([one], "none"),
    ):
        work = search(queries, series, WARPINGS[name], n_neighbors=6)
        once = run(work, engine="numba")
        for windows in (4096, 9001):
            monkeypatch.setattr(subsequence_search_room, "WINDOWS", windows)
            for found, expected in zip(run(work, engine="cupy"), once, strict=True):
                assert_array_equal(found.positions, expected.positions)
                assert_array_equal(found.distances, expected.distances)


@pytest.mark.gpu
@pytest.mark.parametrize("listed", ["all", "some", "some of a list"])
@pytest.mark.parametrize(
    ("exclusion", "need", "count", "run"),
    [(0, 1, 4000, 64), (9, 1, 960, 60), (99, 2, 900, 100), (9, 100, 900, 10), (0, 90, 900, 1)],
)
def test_the_least_window_of_each_run_on_a_gpu(rng, listed, exclusion, need, count, run):
    """Runs of 64, or 16 for each neighbour; of those that exclude each other, at least."""
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    import cupy

    from skts.engines.cupy.search import query, windows

    errors = rng.choice([-1.0, 0.25, 1.5, np.inf], count).astype(np.float32)
    here = np.arange(count)
    if listed != "all":
        here = np.sort(rng.permutation(count)[: count // 3]).astype(np.int32)
    costs = rng.integers(2, 9, here.size).astype(np.float32)
    interval = np.zeros(1, query._INTERVAL)
    interval["shrink"], interval["grow"], interval["slack"], interval["base"] = 0.5, 2.0, 1.0, 0.25
    given = windows.Listed(
        None if listed == "all" else cupy.asarray(here),
        here.size,
        cupy.asarray(np.array([here.size // 2], np.int32)) if listed == "some of a list" else None,
        cupy.asarray(costs),
    )
    if listed == "some of a list":
        here, costs = here[: here.size // 2], costs[: here.size // 2]
    off = errors[here]
    values = {
        True: costs * 2 + 0.25 + off,
        False: np.where(off < np.inf, np.maximum(costs / 2 - 0.25 - off, 0), 0),
    }
    whole = SimpleNamespace(count=count, error=cupy.asarray(errors))
    asked = SimpleNamespace(exclusion=exclusion, need=need, rescaling=SimpleNamespace(scale=4.0))
    for upper, value in values.items():
        least = {}
        for w, one in zip(here[off >= 0].tolist(), value[off >= 0].tolist(), strict=True):
            least[w // run] = min(least.get(w // run, (np.inf, count)), (one, w))
        expected = [least[number] for number in sorted(least)]
        found = windows.least_of_runs(whole, given, asked, interval, upper=upper)
        assert_array_equal(found[0], [w for _, w in expected])
        assert_array_equal(found[1], [one / 4 for one, _ in expected])


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["writeable", "of a file", "one of two", "nobody can change"])
def test_points_stay_on_a_gpu_only_where_nobody_can_change_them(rng, monkeypatch, tmp_path, kind):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    from skts.engines.cupy.search import subsequence

    stayed, upload = [], subsequence.upload_parts

    def watched(*of):
        for part in upload(*of):
            stayed.append(part.ready is None)
            yield part

    monkeypatch.setattr(subsequence, "upload_parts", watched)
    line = rng.normal(size=3000).cumsum()
    if kind == "of a file":
        np.save(tmp_path / "line.npy", line)
        changed = np.load(tmp_path / "line.npy", mmap_mode="r+")
        line = np.load(tmp_path / "line.npy", mmap_mode="r")
    elif kind == "writeable":
        changed = line
    else:
        changed = None
        line.flags.writeable = False
    series = [line, rng.normal(size=100).cumsum()] if kind == "one of two" else [line]
    query = [rng.normal(size=40).cumsum()]
    for start in (100, 2000, 700):
        if changed is not None:
            changed[start : start + 40] = query[0] + start
        work = search(query, series, WARPINGS["none"], n_neighbors=3)
        (found,), (expected,) = (run(work, engine=engine) for engine in ("cupy", "numba"))
        assert_array_equal(found.positions, expected.positions)
        assert_array_equal(found.distances, expected.distances)
    assert stayed[0] is False
    assert set(stayed[-len(series) :]) == {kind == "nobody can change"}


@pytest.mark.gpu
@pytest.mark.parametrize(
    "length, options",
    [
        (64, {"warping": WARPINGS["band"]}),
        (300, {"warping": WARPINGS["none"]}),
        (1100, {"warping": WARPINGS["none"]}),
        (100, {"warping": WARPINGS["none"], "precision": "float64"}),
        (90, {"warping": WARPINGS["euclidean"], "n_neighbors": None, "radius": np.inf}),
    ],
    ids=str,
)
def test_memory_of_the_gpu_is_planned(rng, monkeypatch, length, options):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    import cupy

    from skts.engines.cupy.search import subsequence as gpu

    class Live(cupy.cuda.MemoryHook):
        name = "live"
        held = most = 0

        def malloc_postprocess(self, **of):
            self.held += of["mem_size"]
            self.most = max(self.most, self.held)

        def free_postprocess(self, **of):
            self.held -= of["mem_size"]

    def watched(*arguments):
        with hook:
            return plain(*arguments)

    hook, plain = Live(), gpu.search
    monkeypatch.setattr(gpu, "search", watched)
    line = rng.normal(size=20_000).cumsum()
    work = search([rng.normal(size=length).cumsum()], [line], **options)
    budget = 2**23
    with config_context(memory=budget):
        run(work, engine="cupy")
    assert 2**19 < hook.most <= budget


def test_the_oracle_is_an_engine(rng):
    work = search([rng.normal(size=5)], [make_line("gaps", 60, rng)], Warping(), n_neighbors=3)
    same(run(work, engine="oracle"), list(matches_of_the_definition(work)))


def test_a_query_longer_than_all_series_matches_nothing(rng, engine):
    work = search([rng.normal(size=30), np.ones(5)], [rng.normal(size=20)], Warping())
    long, short = run(work, engine=engine)
    assert long.distances.size == 0 and long.positions.shape == (0, 2)
    assert short.distances.size == 1


def test_running_statistics_keep_their_promise(rng):
    from skts.engines.numba.search import statistics

    for kind in [*KINDS, "zeros"]:
        line = make_line(kind, 5000, rng)
        if kind == "zeros":
            line[1000:4000] = 0.0
        line = np.where(np.isfinite(line), line, 0.0)
        n_windows = line.size - LENGTH + 1
        mean, inverse = np.zeros(n_windows), np.ones(n_windows)
        statistics.running_statistics(line, LENGTH, n_windows, mean, inverse)
        for start in range(0, n_windows, 7):
            window = line[start : start + LENGTH]
            exact = normalize_windows(window, True)
            rough = (window - mean[start]) * inverse[start]
            if not np.isnan(inverse[start]):
                error = np.abs(rough - exact)
                assert np.all(error <= statistics.RUNNING_ERROR * (1 + np.abs(exact)))


@pytest.mark.parametrize("before, after", [(0, 0), (3, 3), (0, 9), (50, 50)])
def test_envelopes(rng, before, after):
    from skts.engines.numba.search import lanes as subsequence_search

    points = rng.integers(0, 5, 40).astype(float)
    first, count, width = 4, 33, before + after + 1
    low, high = np.empty((2, count + width)), np.empty((2, count + width))
    row = subsequence_search.local_envelope(points, first, count, before, width, low, high)
    for i in range(count):
        part = points[first : first + count][max(0, i - before) : i + after + 1]
        assert low[row, i] == part.min() and high[row, i] == part.max()


@pytest.mark.gpu
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("warping", WARPINGS)
def test_no_search_of_the_gpu_certifies_itself(rng, monkeypatch, warping, normalize):
    """Values that decide come from antidiagonals: an error of a search in float64 changes none."""
    from skts.engines.cupy.elastic import dtw

    original = dtw.distances

    def wrong(*args, root=False, **options):
        found = original(*args, root=root, **options)
        return found * 2 if root else found

    queries = [rng.normal(size=LENGTH), rng.normal(size=40).cumsum()]
    work = search(queries, [make_line("walk", 900, rng)], WARPINGS[warping], n_neighbors=3,
                  normalize=normalize)  # fmt: skip
    expected = run(work, engine="numba")
    monkeypatch.setattr(dtw, "distances", wrong)
    for found, right in zip(run(work, engine="cupy"), expected, strict=True):
        assert_array_equal(found.positions, right.positions)
        assert_array_equal(found.distances, right.distances)


def test_queries_are_prepared_once_and_known_by_their_arrays(rng, monkeypatch):
    from skts.engines.numba.search import tiles

    engine = type(find_engine("numba"))()
    given = [rng.normal(size=9) for _ in range(3)]
    built = []

    def prepare(queries, *options):
        built.append(queries)
        return real(queries, *options)

    real = tiles._prepare_queries
    monkeypatch.setattr(tiles, "_prepare_queries", prepare)
    first = engine._queries(given, 2, True)
    assert engine._queries(list(given), 2, True) is first and len(built) == 1
    # others that lie where some of these did, which are gone
    key = ("queries", 2, True), (id(given[1]),)
    stale = real([given[0], given[2]], 2, True), [weakref.ref(given[2])]
    engine.prepared.get(given[0], key, lambda: (stale, 0))
    for _ in range(2):
        found = engine._queries(given[:2], 2, True)
        assert_array_equal(found.points, first.points[:2])
        assert len(built) == 2
    assert len(engine.prepared) == 2
    built.clear()
    del given
    assert len(engine.prepared) == 0


def test_numpy_takes_some_windows_at_a_time():
    """As many as lie in a cache, however long they are."""
    from skts.engines.numba.search.tiles import _at_a_time

    def work(length):
        line = LongSeries((np.broadcast_to(0.0, 2 * length),))
        return SubsequenceNeighbors((np.broadcast_to(0.0, length),), line, n_neighbors=1)

    assert 100 < _at_a_time(work(50)) < 10_000
    assert _at_a_time(work(1_000_000)) == 1


@pytest.mark.parametrize("exclusion", [None, 100])
def test_a_tile_of_channels_takes_no_more_than_it_is_said_to(rng, exclusion):
    """Also where few matches are far apart, which are sought in long runs of windows."""
    query, line = rng.normal(size=(2, 6)), rng.normal(size=(2, 500))
    work = search([query], [line], Warping(window=1), n_neighbors=1, exclusion=exclusion)
    engine, cancel = find_engine("numba"), np.zeros(1, np.uint8)
    given = work, Tile(0, 1, 0, work.shape[1]), cancel
    with replace_kernels(False):
        engine.compute(*given)  # compiles
        engine.prepared.clear()
        said = sum(engine.footprint(work, *work.shape))
        tracemalloc.start()
        try:
            engine.compute(*given)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak <= said


@pytest.mark.gpu
@pytest.mark.parametrize(("squared", "largest"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("ranges", [0, 1, 2])
def test_bounds_of_windows_that_touch_the_range_of_the_query(rng, squared, largest, ranges):
    """From the definition, on small whole numbers: many ends of ranges are equal."""
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    cp = importlib.import_module("cupy")
    windows = importlib.import_module("skts.engines.cupy.search.windows")
    line = rng.integers(0, 4, 300).astype(np.float32)
    place = np.zeros(1, windows._PLACE)
    place["shift"] = 30
    join, touching = np.max if largest else np.sum, 0
    for length, _ in itertools.product((1, 2, 3, 5), range(4)):
        query = rng.integers(0, 4, length).astype(np.float32)
        envelope = np.sort(rng.integers(0, 4, (length, 2)).astype(np.float32), axis=1)
        n = line.size - length + 1
        affine, found = np.tile(np.float32([1, 0]), (n, 1)), cp.empty(n, np.float32)
        windows.load_kernel("search/search.cu", "bounds")(
            -(-n // windows.THREADS), windows.THREADS,
            line=cp.asarray(line), n_windows=n, length=length, place=place,
            affine=cp.asarray(affine), envelope=cp.asarray(envelope), query=cp.asarray(query),
            squared=squared, largest=largest, ranges=ranges, cost=found,
        )  # fmt: skip
        there = np.lib.stride_tricks.sliding_window_view(line, length)
        for z, bound in zip(there, found.get(), strict=True):

            def cost(points, low, high):
                beyond = np.maximum(np.maximum(points - high, low - points), 0)
                return join(beyond**2 if squared else beyond)

            wanted = cost(z, *envelope.T)
            if ranges and length > 2:
                inner = query[1:-1]
                other = cost(inner, z.min(), z.max())
                meet = inner.min() <= z.max() and z.min() <= inner.max()
                both = ranges == 2 and meet and not largest
                touching += inner.min() == z.max() or z.min() == inner.max()
                wanted = wanted + other if both else max(wanted, other)
            assert bound == wanted
    assert touching > 20 or not ranges


@pytest.mark.gpu
@pytest.mark.parametrize("listed", [False, True])
def test_lists_are_walked_by_any_number_of_blocks(rng, listed):
    """Answers do not tell: of fewer windows the search begins with looser limits."""
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    cp = importlib.import_module("cupy")
    windows = importlib.import_module("skts.engines.cupy.search.windows")
    n, run_length, limit = 3 * windows.THREADS + 41, 50, 0.25
    error = np.where(rng.random(2 * n) < 0.1, -1, 0).astype(np.float32)
    places = np.sort(rng.permutation(2 * n)[:n]) if listed else np.arange(n)
    costs = rng.random(n).astype(np.float32)
    costs[error[places] < 0] = 0.0
    interval = np.zeros(1, importlib.import_module("skts.engines.cupy.search.query")._INTERVAL)
    interval["shrink"] = interval["grow"] = 1.0
    given = {
        "costs": cp.asarray(costs),
        "positions": cp.asarray(places.astype(np.int32)) if listed else None,
        "count": cp.asarray(np.array([n - 5], np.int32)) if listed else None,
        **{"n": n, "error": cp.asarray(error), "interval": interval},
    }
    allowed = (error[places] >= 0) & (np.arange(n) < (n - 5 if listed else n))
    near = places[allowed & (costs <= limit)]
    runs = places // run_length
    of_runs = [np.flatnonzero(allowed & (runs == each)) for each in np.unique(runs[allowed])]
    least = [places[some[costs[some].argmin()]] for some in of_runs]
    for blocks in (1, 2, 3, 4, 7):
        keys = windows.filled(-(-2 * n // run_length), windows._NOTHING, np.uint64)
        windows.load_kernel("search/search.cu", "minima")(
            blocks, windows.THREADS, **given, upper=0, run=run_length, keys=keys
        )
        keys = keys.get()
        keys = keys[keys != windows._NOTHING]
        assert_array_equal(keys & np.uint64(2**32 - 1), least)
        found, count = cp.zeros(n, np.int32), cp.zeros(1, np.int32)
        windows.load_kernel("search/search.cu", "choose")(
            blocks, windows.THREADS, **given,
            limit=limit, found=found, n_found=count, kept=None,
        )  # fmt: skip
        assert_array_equal(np.sort(found.get()[: int(count.get()[0])]), near)


@pytest.mark.gpu
def test_segments_count_from_the_middle_of_their_points(rng):
    """From the definition: float32 then keeps as much of them as it can."""
    engine = find_engine("cupy")
    if engine.available() is not None:
        pytest.skip(engine.available())
    cp = importlib.import_module("cupy")
    windows = importlib.import_module("skts.engines.cupy.search.windows")
    step, pitch, n_points = 64, 84, 7 * 64 + 11
    points = rng.normal(size=n_points)
    # far from 0, below it, small, not finite in part and as a whole, of one value
    points[64:148] += 1e6
    points[148:256] = -1e6 - 1e-3 * rng.random(108)
    points[256 : 256 + 84] = np.nan
    points[270:340:7] = np.inf
    points[384:] = 3.0
    points[rng.integers(0, 256, 20)] = np.nan
    n_segments = -(-n_points // step)
    line, frames = cp.empty(n_segments * pitch, np.float32), cp.empty((n_segments, 2))
    windows.load_kernel("search/search.cu", "segments")(
        n_segments, windows.THREADS, points=cp.asarray(points), n_points=n_points, step=step,
        pitch=pitch, line=line, frames=frames,
    )  # fmt: skip
    for k, (center, scale) in enumerate(frames.get()):
        given = points[k * step : k * step + pitch]
        there = np.isfinite(given)
        low, high = (given[there].min(), given[there].max()) if there.any() else (0.0, 0.0)
        assert center == low / 2 + high / 2
        reach = max(high - center, center - low)
        assert np.log2(scale) % 1 == 0
        assert 0.5 <= reach * scale < 1 or reach == 0
        wanted = np.zeros(pitch, np.float32)
        wanted[: given.size][there] = (given[there] - center) * scale
        assert_array_equal(line.get()[k * pitch : (k + 1) * pitch], wanted)
