"""Single kernels and pieces of work, called as engines call them, against their definitions."""

from __future__ import annotations

import importlib
import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import reference_sbd
from elastic_cases import among
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

from skts.engines import (
    Assignment,
    ConcatenatedSeries,
    DTWMatrix,
    LongSeries,
    MotifPair,
    SBDAssign,
    SBDCenters,
    SBDMatrix,
    Series,
    ShapeDistances,
    Shapes,
    SubsequenceNeighbors,
    Tile,
    Warping,
    WindowDistances,
    run,
)
from skts.engines.core.constants import FLOAT32_UNIT, UNCLEAR
from skts.engines.families.kshape.centers import center_error
from skts.engines.families.kshape.certified import (
    certified_distances,
    settle_assignment,
    settle_pairs,
)
from skts.engines.families.kshape.distances import UNITS
from skts.engines.families.kshape.eigenvectors import _orthonormal, krylov
from skts.engines.families.profile.concatenated import fill_gaps
from skts.engines.families.profile.lines import (
    common_frame,
    even_line,
    line_as_it_is,
    line_of_pieces,
)
from skts.engines.families.profile.nearest import MOST_UNSORTED, least_of_rows
from skts.engines.families.profile.statistics import settle_statistics
from skts.engines.families.search.subsequence import TileMatches
from skts.engines.host import shapes, windows
from skts.engines.numba.elastic import (
    certified,
    dtw,
    lower_bounds,
    rotation,
    warping_path,
    window_search,
)
from skts.engines.numba.elastic.cells import cell_of
from skts.engines.numba.elastic.rows_of_cells import ROWS
from skts.engines.numba.kshape import sbd
from skts.engines.numba.profile import walk
from skts.engines.numba.search.lanes import (
    LANES,
    AlikeQueries,
    Comparison,
    Piece,
    Room,
    Waiting,
    bound_by_query,
    bound_by_windows,
    envelope_of_windows,
    far_apart,
    gather,
    local_envelope,
    moments_of_lanes,
    promising,
    warp,
)
from skts.engines.numba.search.statistics import RUNNING_ERROR, running_statistics, window_moments

GO_ON = np.zeros(1, np.uint8)


# --- shapes ------------------------------------------------------------------------------------


def test_candidates_in_the_order_of_their_costs(rng):
    for n in range(1, 40):
        costs = rng.integers(0, 1 + n // 2, size=n).astype(float)
        costs[rng.random(n) < 0.1] = np.inf
        order = window_search._order(costs, np.empty(n, np.int64), np.empty(n, np.int64))
        np.testing.assert_array_equal(order, np.argsort(costs, kind="stable"))


def test_largest(rng):
    for _ in range(60):
        values = rng.permutation(40).astype(float)
        start = int(rng.integers(0, 30))
        stop = int(rng.integers(start + 1, 41))
        assert shapes.largest(values[start:stop]) == values[start:stop].max()


@pytest.mark.parametrize("start", [0, 3])
def test_products_of_a_window_with_those_of_a_line(rng, start):
    """As many as are asked for, up to the last window of the line."""
    line, window = rng.normal(size=60), rng.normal(size=5)
    windows = np.lib.stride_tricks.sliding_window_view(line, 5)
    for count in (1, walk.LANES - 1, walk.LANES, walk.LANES + 1, 56 - start):
        around = np.full(count + 2 * walk.LANES, 7.0)
        out = around[walk.LANES : walk.LANES + count]
        walk.seeds(line, start, 0.25, window, out)
        assert_allclose(out, (windows[start : start + count] - 0.25) @ window, rtol=1e-12)
        around[walk.LANES : walk.LANES + count] = 7.0
        assert (around == 7.0).all()


def _walk_plainly(cov, entering, rows, columns, row, stop, both, normalize):
    """Walk `walk.LANES` columns in their order: covariances of each row, and where one is near."""
    held, (p, r, w, need), (q, s, w_b, need_b) = [], rows, columns
    for i in range(row, stop):
        cov, entering[i] = np.concatenate([[entering[i]], cov[:-1]]), cov[-1]
        cov = cov + p[i] * q + r[i] * s
        held.append(cov)
        score = (cov * w_b, cov * w[i]) if normalize else (cov + w_b, cov + w[i])
        if (score[0] >= need[i]).any() or (both and (score[1] >= need_b).any()):
            return np.array(held), i + 1, True
    return np.array(held), stop, False


def _group(single):
    """Type and number of lanes, places of the columns of two groups, and what takes these back."""
    kind, lanes, place, column_in = np.float64, walk.LANES, walk.lane_of, walk.column_of
    if single:
        kind, lanes = np.float32, walk.SINGLE_LANES
        place, column_in = walk.single_lane_of, walk.single_column_of
    same = {"rtol": 1e-4 if single else 1e-12, "atol": 1e-4 if single else 1e-12}
    return kind, lanes, np.array([place(at) for at in range(2 * lanes)]), column_in, same


@pytest.mark.parametrize(
    ("both", "normalize", "single"),
    [(True, True, False), (None, None, False), (True, True, True), (None, True, True)],
)
def test_walk_of_columns(rng, both, normalize, single):
    """Columns are where `lane_of` says; what leaves is in the place of what entered."""

    @njit
    def descend(cov, entering, rows, columns, at, row, stop, left, both, normalize):
        return walk.descend(cov, entering, rows, columns, at, row, stop, left, both, normalize)

    kind, lanes, places, column_in, same = _group(single)
    assert [column_in(lane) for lane in places] == list(range(2 * lanes))
    assert sorted(places[:lanes]) == list(range(lanes))
    for high, found in ((1e9, None), (2.0, None), (1e9, "row"), (1e9, "column")):
        rows = rng.normal(size=(4, 40)).astype(kind)
        columns = rng.normal(size=(4, lanes)).astype(kind)
        rows[3], columns[3] = high, high
        if found == "row":
            rows[3, 17] = -1e9
        elif found == "column":
            columns[3, 11] = -1e9
        cov, entering = rng.normal(size=lanes).astype(kind), rng.normal(size=40).astype(kind)
        dealt, cov_dealt = np.full((4, 2 * lanes), np.nan, kind), np.full(3 * lanes, np.nan, kind)
        # from `at` on; those of the last row come to the beginning
        dealt[:, places[lanes:]], cov_dealt[lanes + places[:lanes]] = columns, cov
        got = entering.copy()
        axes = walk.WalkAxis(*rows), walk.WalkAxis(*dealt)
        end, *bits_of = descend(cov_dealt, got, *axes, lanes, 3, 38, lanes, both, normalize)
        wanted = entering.copy()
        held, stop, hit = _walk_plainly(cov, wanted, rows, columns, 3, 38, both, normalize)
        assert end == stop
        assert_allclose(cov_dealt[places[:lanes]], held[-1], **same)
        assert_allclose(got, wanted, **same)
        near = _near_lanes(held[-1], rows, columns, end - 1, normalize, column_in)
        if not both:
            near[1] = []
        if not hit:
            near = [[], []]
        # of 64 lanes the last is the sign
        assert [[lane for lane in range(lanes) if bits >> lane & 1] for bits in bits_of] == near


def _near_lanes(cov, rows, columns, row, normalize, column_in):
    """Lanes whose score is what a row needs, and those of which it is what the column needs."""
    scores = [cov * one if normalize else cov + one for one in (columns[2], rows[2, row])]
    near = [score >= least for score, least in zip(scores, (rows[3, row], columns[3]), strict=True)]
    return [[lane for lane in range(cov.size) if some[column_in(lane)]] for some in near]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("normalize", [True, None])
@pytest.mark.parametrize("n_rows", [0, 1, 7])
def test_walk_of_a_block_keeps_what_it_passes(rng, normalize, single, n_rows):
    """The covariances of each row, the highest scores of columns, and which are near."""

    @njit
    def climb(cov, entering, rows, columns, most, row, stop, left, normalize):
        return walk.climb(cov, entering, rows, columns, most, row, stop, left, normalize)

    @njit
    def near_lanes(cov, entering, rows, columns, at, row, left, normalize):
        return walk.near_lanes(cov, entering, rows, columns, at, row, left, normalize)

    kind, lanes, places, column_in, same = _group(single)
    rows = rng.normal(size=(4, 40)).astype(kind)
    columns = rng.normal(size=(4, lanes)).astype(kind)
    cov, entering = rng.normal(size=lanes).astype(kind), rng.normal(size=40).astype(kind)
    dealt, kept = np.full((4, 2 * lanes), np.nan, kind), np.full(9 * lanes, np.nan, kind)
    dealt[:, places[lanes:]], kept[places[:lanes]] = columns, cov
    got, most = entering.copy(), np.full(lanes, np.nan, kind)
    axes = walk.WalkAxis(*rows), walk.WalkAxis(*dealt)
    bits = climb(kept, got, *axes, most, 5, 5 + n_rows, lanes, normalize)
    wanted = entering.copy()
    never = np.full_like(rows[3], 1e9), np.full_like(columns[3], 1e9)
    held, _, _ = _walk_plainly(
        cov, wanted, (*rows[:3], never[0]), (*columns[:3], never[1]), 5, 5 + n_rows, True, normalize
    )
    held = np.array([cov, *held])
    assert_allclose(got, wanted, **same)
    order = [column_in(lane) for lane in range(lanes)]
    assert_allclose(kept[: held.size].reshape(held.shape), held[:, order], **same)
    assert np.isnan(kept[held.size :]).all()
    weights = rows[2, 4 : 5 + n_rows, np.newaxis]
    scores = held * weights if normalize else held + weights
    assert_allclose(most, scores.max(axis=0)[order], **same)
    near = scores.max(axis=0)[order] >= columns[3][order]
    assert [lane for lane in range(lanes) if bits >> lane & 1] == np.flatnonzero(near).tolist()
    for row in range(n_rows + 1):
        found = near_lanes(kept, got, *axes, row * lanes, 4 + row, lanes, normalize)
        near = [[lane for lane in range(lanes) if some >> lane & 1] for some in found]
        assert near == _near_lanes(held[row], rows, columns, 4 + row, normalize, column_in)


def test_dot_products_have_twice_the_precision(rng):
    for n in (1, 2, 9, 40):
        x, y = np.exp(rng.normal(scale=9, size=(2, n))) * rng.choice([-1, 1], (2, n))
        # what comes first is taken away again
        x, y = np.concatenate([x, x, [1.0]]), np.concatenate([y, -y, [2.0**-30]])
        y[n - 1] *= 1 + 2.0**-45
        total, rest = shapes.two_fold_dot(x, y, 0.0, 0.0)
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True))
        error = abs(Fraction(total) + Fraction(rest) - exact)
        assert error <= 2.0**-52 * abs(exact) + 2.0**-100 * x.size**2 * float(np.abs(x * y).sum())


def test_norms_of_series_as_they_are(rng):
    """Between 1 and 2, by a power of two that is told: nothing is rounded."""
    given = rng.normal(size=(30, 2, 7)) * 10.0 ** rng.integers(-200, 200, 30)[:, None, None]
    found = Shapes.normalized(Series(given, np.full(30, 7)), normalize=False)
    assert np.all((found.norms >= 1) & (found.norms < 2))
    assert_array_equal(np.ldexp(found.values, found.exponents[:, None, None]), given)


def test_pieces_are_as_loud_as_their_windows_allow(rng):
    for length in (2, 5):
        for _ in range(40):
            line = rng.normal(size=60) * 10.0 ** np.repeat(rng.integers(-2, 3, 12), 5)
            ranges = np.ptp(np.lib.stride_tricks.sliding_window_view(line, length), axis=1)
            ranges[rng.random(ranges.size) < 0.2] = np.inf
            begins = windows.cut(line, ranges, length, 20.0)
            assert begins[0]
            edges = [*np.flatnonzero(begins).tolist(), line.size]
            for first, stop in itertools.pairwise(edges):
                inside = ranges[first : max(first, stop - length + 1)]
                assert np.ptp(line[first:stop]) <= 20.0 * inside.min(initial=np.inf)


@pytest.mark.parametrize("n", [5, 33])
def test_spectra_do_not_depend_on_the_company(rng, n):
    values = rng.normal(size=(530, 2, n))
    whole = sbd.spectra(values)
    for start in (128, 256, 384):
        assert_array_equal(sbd.spectra(values[start:]), whole[start:])


def make_shapes(rng, n, channels, width):
    values = rng.normal(size=(n, channels, width)).cumsum(axis=2)
    values[2] = values[1]
    return Shapes.of(values - values.mean(axis=2, keepdims=True))


@pytest.mark.parametrize("channels", [1, 2])
def test_certified_shape_distances(rng, channels):
    X, C = make_shapes(rng, 9, channels, 7), make_shapes(rng, 4, channels, 7)
    expected, shifts = reference_sbd.pairwise_sbd(X.values, C.values)
    pairs = [(0, 0), (8, 3), (5, 1)]
    distances, found = certified_distances(SBDMatrix(X, C), pairs)
    assert_allclose(distances, [expected[pair] for pair in pairs], atol=1e-12)
    assert_array_equal(found, [shifts[pair] for pair in pairs])
    zero = Shapes.of(np.zeros((1, channels, 7)))
    assert_array_equal(certified_distances(SBDMatrix(X, zero), [(3, 0)]), [[1.0], [0]])
    # a tile in the middle: what is unclear is replaced, nothing else
    tile = Tile(3, 8, 1, 4)
    some = ShapeDistances(np.full((5, 3), 7.0), np.full((5, 3), 5, np.int32))
    some.shifts[1, 2] = some.shifts[4, 0] = UNCLEAR
    settle_pairs(SBDMatrix(X, C), tile, some, GO_ON)
    for i, j in itertools.product(range(5), range(3)):
        if (i, j) in ((1, 2), (4, 0)):
            assert_allclose(some.distances[i, j], expected[3 + i, 1 + j], atol=1e-12)
            assert some.shifts[i, j] == shifts[3 + i, 1 + j]
        else:
            assert (some.distances[i, j], some.shifts[i, j]) == (7.0, 5)


def test_unclear_assignments_are_chosen_again(rng):
    X, C = make_shapes(rng, 9, 1, 7), make_shapes(rng, 4, 1, 7)
    labels, shifts, distances = reference_sbd.assign(X.values, C.values)
    found = Assignment(np.full(5, 9, np.int32), np.full(5, 5, np.int32), np.full(5, 7.0))
    found.shifts[[0, 3]] = UNCLEAR
    settle_assignment(SBDAssign(X, C), Tile(3, 8, 0, 4), found, GO_ON)
    for i in range(5):
        if i in (0, 3):
            assert (found.labels[i], found.shifts[i]) == (labels[3 + i], shifts[3 + i])
            assert_allclose(found.distances[i], distances[3 + i], atol=1e-12)
        else:
            assert (found.labels[i], found.shifts[i], found.distances[i]) == (9, 5, 7.0)


def test_of_shifts_that_tie_the_shortest_then_the_one_to_the_left():
    """However many may tie by their correlations from transforms."""
    n, at = 5, np.zeros((1, 5))
    at[0, 2] = 1.0
    for points, shift in (
        ([1.0, 0.0, 0.5, 0.0, 1.0], -2),
        ([1.0, 0.0, 0.5, 1.0, 0.0], -1),
        ([1.0, 0.0, 1.0, 0.0, 1.0], 0),
        ([1.0, 0.0, 0.5, 0.0, 0.5], 2),
    ):
        x, correlations = np.array([points]), np.zeros(9)
        for s in range(-4, 5):
            correlations[-s % 9] = x[0, 2 - s] if abs(s) <= 2 else 0.0
        scale = np.linalg.norm(x)
        for doubt in (0.0, 0.1, 0.5):
            distance, found = shapes.certify(correlations, x, at, scale, doubt)
            assert found == shift
            assert distance == pytest.approx(1 - x.max() / scale, abs=1e-15)
        assert shapes.fft_length(n) == 9


def test_errors_of_two_correlations_add_up():
    """That of the best one, which may be too low, and that of the one that seems the best."""
    center, x = np.zeros((1, 5)), np.array([[0.95, 0.0, 1.0, 0.0, 0.0]])
    center[0, 2] = 1.0
    scale, doubt = np.linalg.norm(x), 0.1
    correlations = np.zeros(9)
    correlations[0], correlations[-2] = 1.0 - doubt * scale, 0.95 + doubt * scale
    distance, found = shapes.certify(correlations, x, center, scale, doubt)
    assert found == 0
    assert distance == pytest.approx(1 - 1 / scale, abs=1e-15)


def test_series_of_one_point_have_one_shift():
    x, center = np.array([[3.0], [4.0]]), np.array([[0.0], [2.0]])
    for doubt in (0.0, 0.5):
        found = shapes.certify(np.array([8.0]), x, center, 10.0, doubt)
        assert found == (pytest.approx(0.2, abs=1e-15), 0)


@pytest.mark.parametrize("channels", [1, 3])
def test_rounding_counts_the_passes_of_a_transform(channels):
    for n in range(1, 200):
        one = Shapes(np.empty((1, channels, n)), np.ones(1))
        passes = np.log2(shapes.fft_length(n)) + np.log2(channels)
        assert UNITS * 2.0**-53 * passes <= SBDMatrix(one, one).rounding
        assert SBDMatrix(one, one).rounding <= UNITS * 2.0**-53 * (passes + 2.5)


def test_centers_are_no_farther_off_than_stated(rng):
    """An approximate eigenvector, by its residual and the gap; and hardly nearer."""
    for residual in (1e-9, 1e-12, 0.0):
        members = rng.normal(size=(30, 12)) + 3 * rng.normal(size=12)
        matrix = members.T @ members
        values, vectors = np.linalg.eigh(matrix)
        off = vectors[:, -1] + residual * rng.normal(size=12)
        off /= np.linalg.norm(off)
        squares, value = np.sum(members**2), off @ matrix @ off
        wrong = float(np.linalg.norm(matrix @ off - value * off))
        bound = center_error((value, values[-2]), (wrong, 0.0), squares)
        far = np.linalg.norm(off - vectors[:, -1])
        assert far <= bound <= 1e-10 + 3 * wrong / (values[-1] - values[-2])
    assert center_error((1.0, 1.0), (0.0, 0.0), 5.0) == np.inf
    assert center_error((1.0, 0.5), (0.0, 0.5), 5.0) == np.inf
    assert center_error((1.0, 0.5), (0.0, 0.0), 2.0**21) == np.inf


@pytest.mark.parametrize("n", [1, 7, 50, 100, 1000, 10**5])
def test_rows_of_a_cell_are_a_power_of_two_that_fits(n):
    rows = SBDMatrix(Shapes(np.empty((1, 1, n)), np.ones(1)), None).cell_rows
    assert 2 <= rows <= 256 and rows & (rows - 1) == 0
    assert rows == 2 or 2 * n * rows <= 2**15
    assert rows == 256 or 4 * n * rows > 2**14


def test_centers_of_series_of_different_scales(fast_engine, rng):
    """Series that are not normalised are held by their exponents, and count by their size."""
    X = rng.normal(size=(8, 1, 6))
    X[[1, 4]] *= 2.0**90
    X[6] *= 2.0**-60
    labels = np.array([0, 1, 0, 1, 1, 0, 2, 2], np.int32)
    shifts = rng.integers(-2, 3, 8).astype(np.int32)
    shapes = Shapes.normalized(Series(X, np.full(8, 6)), normalize=False)
    found = run(SBDCenters(shapes, labels, shifts, 3), engine=fast_engine).values
    expected = reference_sbd.centers(X, labels, shifts, 3)
    assert_allclose(found, expected, atol=1e-8)


# --- lower bounds ------------------------------------------------------------------------------


def beyond(points, low, high, squared):
    """How far points lie outside of an envelope, as costs."""
    d = np.maximum(np.maximum(points - high, low - points), 0)
    return d * d if squared else d


OPTIONS = [
    (channels, squared, largest)
    for channels in (1, 2)
    for squared in (True, None)
    for largest in (True, None)
]


@pytest.mark.parametrize(("channels", "squared", "largest"), OPTIONS)
@pytest.mark.parametrize("radius", [0, 2, None])
def test_bounds_of_queries_and_candidates(rng, radius, channels, squared, largest):
    """LB_Keogh and LB_Kim from their definition, of integers, which float32 adds exactly."""
    n, m, count = 8, 8, 70
    x = rng.integers(0, 30, (n, channels)).astype(np.float32)
    y = rng.integers(0, 30, (count, channels, m)).astype(np.float32)
    lengths = np.full(count, m)
    if radius is None:
        lengths[::2] = rng.integers(2, m + 1, 35)
    packed, packed_lengths = dtw.pack(y, lengths, dtw.LANES[np.float32])
    low = np.empty((count, channels, m if radius is not None else 1), np.float32)
    high = np.empty_like(low)
    for b in range(count):
        for c in range(channels):
            points = y[b, c, : lengths[b]]
            for i in range(low.shape[2]):
                near = points
                if radius is not None:
                    near = points[max(0, i - radius) : i + radius + 1]
                low[b, c, i], high[b, c, i] = near.min(), near.max()
    join = np.max if largest else np.sum
    multivariate = True if channels > 1 else None
    candidates = lower_bounds.BoundedSeries(packed, packed_lengths, y, low, high)
    found = lower_bounds.first_bounds(
        x, candidates, radius or 0, multivariate, squared, largest, False, True
    )
    for b in range(count):
        length = lengths[b]
        costs = np.zeros((length, channels))
        for j in range(length):
            near = x if radius is None else x[max(0, j - radius) : j + radius + 1]
            near = x[:1] if j == 0 else x[-1:] if j == length - 1 else near
            costs[j] = beyond(y[b, :, j], near.min(axis=0), near.max(axis=0), squared)
        assert found[b] == join(costs.sum(axis=1))
        # the query by the envelope of a candidate, its ends at their true cost
        by_channel = np.ascontiguousarray(x.T)
        inner = beyond(x.T, low[b], high[b], squared).sum(axis=0)
        ends = [
            beyond(x[0], y[b, :, 0], y[b, :, 0], squared).sum(),
            beyond(x[-1], y[b, :, length - 1], y[b, :, length - 1], squared).sum(),
        ]
        second = lower_bounds.second_bound(
            by_channel, y[b, :, :length], low[b], high[b], squared, largest
        )
        assert second == join(np.concatenate([inner[1 : n - 1], ends]))
        whole = lower_bounds.backward(by_channel, low[b], high[b], 0, n, squared, largest)
        assert whole == join(inner)


@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
@pytest.mark.parametrize(("channels", "n"), [(1, 1), (1, 40), (3, 25), (2, 1000)])
def test_bounds_are_deflated_by_their_roundings(metric, channels, n):
    """One of each difference and square, one of each sum; and twice that is little."""
    from skts.engines import DTWNeighbors, Warping

    side = Series(np.broadcast_to(0.0, (1, channels, n)), np.array([n]))
    deflation = lower_bounds.deflation(
        channels, DTWNeighbors(side, side, 1, warping=Warping(metric=metric))
    )
    terms = channels * (n if metric == "dtw" else 1)
    assert 1 - 8 * (terms + 20) * FLOAT32_UNIT <= deflation <= (1 - FLOAT32_UNIT) ** (terms + 3)


# --- rotation without warping ------------------------------------------------------------------


@pytest.mark.parametrize("squared", [True, False])
def test_straight_search_without_bounds(squared):
    """In any order of candidates, and with limits that partial sums meet exactly."""
    cell = cell_of(Warping(cost="squared" if squared else "absolute"))
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, channels = 4, 1 + seed % 2
        x = rng.integers(0, 3, (channels, n)).astype(float)
        Y = rng.integers(0, 3, (7, channels, n)).astype(float)
        doubled = np.concatenate([Y, Y], axis=2)
        costs = np.abs(x - np.stack([doubled[:, :, s : s + n] for s in range(n)], axis=1))
        costs = (costs**2 if squared else costs).sum(axis=(2, 3)).min(axis=1)
        distances = np.sqrt(costs) if squared else costs
        for k, excluded in ((1, -1), (3, int(seed % 7))):
            ranked = [j for j in np.lexsort((np.arange(7), distances)) if j != excluded][:k]
            near, places = np.full(k, np.inf), np.full(k, -1)
            for limit in (np.inf, distances[ranked[-1]]):
                count = rotation.search_straight(
                    x, doubled, np.zeros(7), rng.permutation(7), np.zeros((7, 1)), excluded, limit,
                    cell, squared, near, places, GO_ON,
                )  # fmt: skip
                assert count == k
                assert_array_equal(places, ranked)
                assert_array_equal(near, distances[ranked])


# --- subsequence search ------------------------------------------------------------------------


def test_matches_are_a_quarter_of_the_query_apart():
    line = LongSeries((np.zeros(100),))
    for length in range(1, 30):
        work = SubsequenceNeighbors((np.zeros(length),), line)
        assert work.exclusion_of(length) == math.ceil(length / 4)
        assert work.apart(length) == 1
    work = SubsequenceNeighbors((np.zeros(8),), line, n_neighbors=5, exclusion=0)
    assert work.exclusion_of(8) == 0 and work.apart(8) == 5
    work = SubsequenceNeighbors((np.zeros(8),), line, n_neighbors=5, exclusion=1)
    assert work.apart(8) == 9
    assert SubsequenceNeighbors((np.zeros(8),), line, n_neighbors=None).apart(8) == 0


@pytest.mark.parametrize("sizes", [(9,), (4, 1, 6), (1, 1), (5, 7, 3, 2)])
def test_pieces_of_series_on_a_line(rng, sizes):
    parts = tuple(rng.normal(size=size) for size in sizes)
    line = LongSeries(parts)
    laid = np.concatenate([np.append(part, np.nan) for part in parts])[:-1]
    assert line.n_points == laid.size
    for start, stop in itertools.combinations(range(laid.size + 3), 2):
        if start < laid.size:
            assert_array_equal(line.piece(start, stop), laid[start:stop])
    room = np.full(laid.size + 4, 7.0)
    assert_array_equal(line.piece(1, laid.size, room), laid[1:])
    for place in range(laid.size):
        series, start = line.locate(np.array([place]))[0]
        if np.isfinite(laid[place]):
            assert laid[place] == parts[series][start]


def test_distance_of_the_last_of_windows_far_from_each_other(rng):
    for _ in range(40):
        positions, distances = rng.integers(0, 30, 12), rng.permutation(12).astype(float)
        exclusion, need = int(rng.integers(0, 6)), int(rng.integers(1, 5))
        taken = []
        for entry in np.argsort(distances):
            if all(abs(positions[entry] - positions[t]) > exclusion for t in taken):
                taken.append(entry)
        expected = distances[taken[need - 1]] if len(taken) >= need else np.inf
        stretches = np.full(30 // (exclusion + 1) + 3, -1)
        for count in range(need):
            assert far_apart(positions, distances, count, need, exclusion, stretches) == np.inf
        assert far_apart(positions, distances, 12, need, exclusion, stretches) == expected
        assert (stretches == -1).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_ranges_that_are_just_constant(sign):
    """To the last bit: a range of at most 2^-40 of the largest magnitude."""
    unit, steps = 2.0**-52, 4097
    for low in (steps * 2**40 - steps - 1, steps * 2**40 - 1, steps * 2**40):
        window = sign * np.array([low, low + steps, low]) * unit
        largest = (low + steps) * unit
        constant = steps * unit * 2.0**40 <= largest
        assert constant == (low + steps >= steps * 2**40)
        assert (window_moments(window, 0, 3) == (0.0, 0.0)) == constant
        _, *spread = windows.statistics(window, 3, True)
        assert settle_statistics(*spread, np.ones(1, bool)).constant.tolist() == [constant]


def test_a_spike_leaves_later_windows_known_and_right(rng):
    line, length = rng.normal(size=300), 4
    line[10] = 3e5
    mean, inverse = np.zeros(297), np.ones(297)
    running_statistics(line, length, 297, mean, inverse)
    windows = np.lib.stride_tricks.sliding_window_view(line, length)
    assert_allclose(inverse * windows.std(axis=1), 1, rtol=RUNNING_ERROR)
    assert np.all(np.abs(mean - windows.mean(axis=1)) * inverse <= RUNNING_ERROR)
    # windows that are far less than what their line is rounded to are not known
    far = 1e10 + rng.normal(size=300)
    running_statistics(far, length, 297, mean, inverse)
    assert np.isnan(inverse).all()


def queries_of(points, low, high, order):
    """Some queries as kernels of the search take them, all with one order of their points."""
    points, low, high = (np.atleast_2d(one) for one in (points, low, high))
    orders = np.tile(order, (len(points), 1))
    return AlikeQueries(points, low, high, orders, orders)


def room_for(length):
    """Memory of the search for windows of so many points."""
    wide = [np.full((2, LANES + 2 * length), np.nan) for _ in range(2)]
    windows = np.full((length, LANES), np.nan)
    rest = np.full((-(-length // 16) + 1, LANES), np.nan)
    limits, out = np.full(LANES, np.inf), np.empty(LANES)
    return Room(*wide, windows, np.full(LANES, -1), rest, limits, out)


def compared(radius, squared, largest, normalize=True):
    """How kernels of the search compare a window with a query."""
    return Comparison(radius, normalize, squared, largest)


@pytest.mark.parametrize(("squared", "largest"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("radius", [0, 2, 5])
def test_windows_bound_the_query(rng, radius, squared, largest):
    """By the points around each of its own, of a group of windows and of no others."""
    length, p = 9, 5
    last = p + LANES + length - 1
    points = rng.normal(size=last + 20)
    query = 50 * rng.choice([-1, 1], length) + rng.normal(size=length)
    # what lies around them would let any query through
    points[:p], points[last:] = np.resize([-1e6, 1e6], p), np.resize([1e6, -1e6], 20)
    mean, inverse = rng.normal(size=100), rng.uniform(0.5, 2, 100)
    room, out = room_for(length), np.zeros(LANES)
    piece = Piece(points, np.ones(100, bool), mean, inverse)
    both = np.stack([query[::-1], query])
    given = queries_of(both, both, both, rng.permutation(length))
    row = envelope_of_windows(piece, p, length, radius, room)
    how = compared(radius, squared, largest)
    bound_by_windows(piece, p, given, 1, how, room, row, np.inf, out)
    for lane in range(LANES):
        start = p + lane
        costs = np.empty(length)
        for i in range(length):
            near = points[max(p, start + i - radius) : min(last, start + i + radius + 1)]
            if 2 * radius + 1 >= length:
                near = points[start : start + length]
            z = (near - mean[start]) * inverse[start]
            d = max(query[i] - z.max(), z.min() - query[i], 0.0)
            costs[i] = d * d if squared else d
        assert_allclose(out[lane], costs.max() if largest else costs.sum(), rtol=1e-12)


@pytest.mark.parametrize(("squared", "largest"), [(True, False), (False, False), (True, True)])
@pytest.mark.parametrize("normalize", [True, False])
def test_gathered_windows_and_what_their_ends_cost(rng, normalize, squared, largest):
    length = 37
    points = rng.normal(size=120).cumsum()
    low = rng.normal(size=(3, length))
    high, own = low + rng.random((3, length)), rng.normal(size=(3, length))
    queries = queries_of(own, low, high, np.arange(length))
    comparison, room = compared(0, squared, largest, normalize), room_for(length)
    lanes = np.full((length + 3, LANES), np.nan)
    for count in (LANES, 20):
        places, rows = rng.integers(0, 120 - length, 2 * LANES), rng.integers(0, 3, 2 * LANES)
        members = places.copy(), rows.copy()
        waiting = Waiting(rows, places, np.zeros(2 * LANES))
        gather(points, queries, lanes, waiting, count, comparison, room)
        for lane in range(LANES):
            # lanes that nobody is in repeat the first
            place, q = (one[lane if lane < count else 0] for one in members)
            check_lane(points[place : place + length], room, lane, comparison, low[q], high[q])
            assert_array_equal(lanes[:length, lane], own[q])
    # the waiting windows behind them wait on
    assert_array_equal(places[LANES:], members[0][LANES:])
    # one query for all lanes
    one, column = queries_of(own[0], low[0], high[0], np.arange(length)), own[0, :, np.newaxis]
    waiting = Waiting(np.zeros_like(rows), places, np.zeros(2 * LANES))
    gather(points, one, column.copy(), waiting, LANES, comparison, room)
    for lane, place in enumerate(places[:LANES]):
        check_lane(points[place : place + length], room, lane, comparison, low[0], high[0])


def check_lane(window, room, lane, comparison, low, high):
    """Compare what lies in a lane with a window, and what its ends cost at least."""
    strip, (_, normalize, squared, largest) = 16, comparison
    if normalize:
        window = (window - window.mean()) / window.std()
    assert_allclose(room.windows[:, lane], window, atol=1e-12)
    costs = np.maximum(np.maximum(window - high, low - window), 0)
    costs = costs**2 if squared else costs
    for k in range(len(room.rest)):
        behind = costs[k * strip :]
        expected = behind.max(initial=0) if largest else behind.sum()
        assert_allclose(room.rest[k, lane], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("squared", "largest"), [(True, False), (False, False), (True, True)])
def test_the_query_bounds_windows(rng, squared, largest):
    """Until all are beyond the limit; windows of which nothing is known cost nothing."""
    length, p = 9, 5
    points, places = rng.normal(size=120), rng.permutation(length)
    low = rng.normal(size=(2, length))
    high = low + rng.random((2, length))
    mean, inverse = rng.normal(size=100), rng.uniform(0.5, 2, 100)
    mean[p + 3] = inverse[p + 7] = np.nan
    piece, given = (
        Piece(points, np.ones(100, bool), mean, inverse),
        queries_of(low, low, high, places),
    )
    how, costs = compared(0, squared, largest), np.zeros((length, LANES))
    for lane in range(LANES):
        start = p + lane
        z = (points[start : start + length] - mean[start]) * inverse[start]
        d = np.nan_to_num(np.maximum(np.maximum(z - high[1], low[1] - z), 0))
        costs[:, lane] = (d * d if squared else d)[places]
    sums = np.maximum.accumulate(costs) if largest else np.cumsum(costs, axis=0)
    out = np.full(LANES, np.nan)
    bound_by_query(piece, p, given, 1, how, np.inf, out)
    assert_allclose(out, sums[-1], rtol=1e-12)
    assert out[3] == out[7] == 0.0
    inverse[p + 7], mean[p + 3] = 1.0, 0.0
    for limit in (-1.0, 0.0, 0.5, 2.0):
        bound_by_query(piece, p, given, 1, how, limit, out)
        whole = np.empty(LANES)
        bound_by_query(piece, p, given, 1, how, np.inf, whole)
        # some lane within the limit is known in full; else all are beyond it
        assert (out > limit).all() or np.array_equal(out, whole)
        assert np.array_equal(out > limit, whole > limit)


@pytest.mark.parametrize("of_each", [True, False])
@pytest.mark.parametrize("options", [{}, {"cost": "absolute"}, {"metric": "dog_keeper"}])
def test_warped_lanes_have_the_bits_of_plain_sums(rng, options, of_each):
    """Any number of rows, in any band: of one query, or of one for each lane."""
    warping = Warping(**options)
    cell = cell_of(warping)
    for length, radius in itertools.product((1, 2, 3, 4, 5, 18, 33), (0, 1, 3, 17, 40)):
        radius, room = min(radius, length - 1), room_for(length)
        room.windows[:], room.rest[:] = rng.normal(size=(length, LANES)), 0.0
        own = np.zeros((length + ROWS - 1, LANES if of_each else 1))
        own[:length] = rng.normal(size=(length, own.shape[1]))
        how = compared(radius, warping.squared, warping.largest)
        warp(own, room, how, cell, np.zeros(1, np.uint8))
        expected = np.full((length + 1, length + 1, LANES), np.inf)
        expected[0, 0] = 0.0
        for i, j in itertools.product(range(length), repeat=2):
            if abs(i - j) <= radius:
                d = own[i] - room.windows[j]
                cost = d * d if warping.squared else abs(d)
                best = np.minimum(
                    np.minimum(expected[i, j], expected[i, j + 1]), expected[i + 1, j]
                )
                expected[i + 1, j + 1] = np.maximum(cost, best) if warping.largest else cost + best
        assert_array_equal(room.out, expected[-1, -1])
        # they give up together, where none can be within its limit
        room.limits[:] = expected[-1, -1]
        room.limits[1:] *= 0.5
        warp(own, room, how, cell, np.zeros(1, np.uint8))
        assert room.out[0] == expected[-1, -1, 0]
        room.limits[:] = -1.0
        warp(own, room, how, cell, np.zeros(1, np.uint8))
        assert length <= 16 + radius + ROWS or np.isinf(room.out).all()


def test_moments_side_by_side_have_the_bits_of_those_of_one_window(rng):
    windows = rng.normal(size=(21, LANES)).cumsum(axis=0)
    windows[:, 0], windows[:, 1], windows[:, 2] = 3.0, 0.0, 1e6 + 1e-9 * windows[:, 3]
    windows[:, 4] *= 1e-200
    mean, scale = np.empty(LANES), np.empty(LANES)
    moments_of_lanes(windows, mean, scale)
    for lane in range(LANES):
        assert (mean[lane], scale[lane]) == window_moments(windows[:, lane].copy(), 0, 21)


@pytest.mark.parametrize("n_finite", [5, 33, 70])
def test_promising_windows_fill_lanes(rng, n_finite):
    """The window of the least bound of each group of lanes; groups without one are left out."""
    n_groups, length = 70, 2
    n_windows = n_groups * LANES - 5
    points, query = rng.normal(size=n_windows + length + LANES), rng.normal(size=length)
    whole = np.zeros(n_windows, bool)
    for group in rng.permutation(n_groups)[:n_finite]:
        whole[group * LANES : (group + 1) * LANES] = (
            rng.random(len(whole[group * LANES :][:LANES])) < 0.5
        )
        whole[group * LANES] = True
    mean, inverse = np.zeros(n_windows + LANES), np.ones(n_windows + LANES)
    piece = Piece(points, whole, mean, inverse)
    given = queries_of(query, query, query, np.arange(length))
    found = promising(piece, given, 0, compared(0, True, False), 3 * LANES)
    costs = (points[:n_windows] - query[0]) ** 2 + (points[1 : n_windows + 1] - query[1]) ** 2
    costs[~whole] = np.inf
    groups = [range(g * LANES, min((g + 1) * LANES, n_windows)) for g in range(n_groups)]
    best = sorted((costs[one].min(), one[int(np.argmin(costs[one]))]) for one in groups)
    best = [place for cost, place in best if cost < np.inf]
    assert_array_equal(found, best[: min(3 * LANES, n_finite) // LANES * LANES])


@pytest.mark.parametrize(("before", "width"), [(0, 1), (0, 4), (2, 5), (3, 7), (5, 11), (0, 8)])
def test_local_envelopes(rng, before, width):
    points, count, p = rng.normal(size=30), 16, 3
    low, high = np.empty((2, 60)), np.empty((2, 60))
    row = local_envelope(points, p, count, before, width, low, high)
    for i in range(count):
        near = points[p + max(0, i - before) : p + min(count, i - before + width)]
        if near.size:
            assert (low[row, i], high[row, i]) == (near.min(), near.max())


def test_gaps_repeat_the_last_point():
    nan, inf = np.nan, np.inf
    for line, filled in (
        ([1.0, 2.0], [1.0, 2.0]),
        ([nan, nan, 3.0, inf, 5.0, nan], [3.0, 3.0, 3.0, 3.0, 5.0, 5.0]),
        ([4.0, nan, -inf], [4.0, 4.0, 4.0]),
        ([nan, inf], [0.0, 0.0]),
    ):
        found, finite = fill_gaps(np.array(line))
        assert_array_equal(found, filled)
        assert_array_equal(finite, np.isfinite(line))


# --- plans and certificates --------------------------------------------------------------------


def test_work_of_a_nearest_pair_is_less_than_all_pairs():
    for n in (100, 10_000):
        work = MotifPair(ConcatenatedSeries.of([np.zeros(n)]), 10, 3).step_work
        assert (n - 9) ** 2 // 20 <= work <= (n - 9) ** 2 // 2


def test_certificates_take_their_rows_columns_and_antidiagonals():
    for channels, n, m in ((1, 5, 9), (3, 200, 100)):
        least = 8 * (channels * (n + m) + 4 * n)
        assert least <= certified.pairs_bytes(channels, n, m) <= 2 * least


def test_paths_take_the_rows_that_are_kept_those_between_and_themselves():
    for n, m in ((1, 1), (90, 110), (1000, 3), (26, 400)):
        every = max(1, math.isqrt(n))
        # the row above the first
        kept, between, here = -(-n // every), every + 1, 1
        # three numbers for each of some columns; sums along diagonals, where windows are compared
        sums = 3 * 256 + m + every
        # the longest path, from the end to the start and the other way round
        needed = 8 * ((m + 1) * (kept + between + here) + sums + n) + 2 * 16 * (n + m - 1)
        assert needed <= warping_path.path_bytes(n, m) <= needed + 40


@pytest.mark.gpu
def test_paths_of_a_gpu_take_the_rows_between_strips_the_steps_of_one_and_themselves():
    module = importlib.import_module("skts.engines.cupy.elastic.warping_path")
    for n, m in ((1, 1), (90, 110), (5000, 1), (26, 4000)):
        rows = -(-n // module.PATH_STRIP) + 1
        # infinities along the other side; where the path is, and how long
        needed = 8 * rows * (m + 1) + 8 * n + 16 * (n + m - 1) + 3 * 8
        assert needed + module.step_bytes(n, m) <= module.path_bytes(n, m)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (5, 5), (4, 9)])
@pytest.mark.parametrize("radius", [None, 0, 2])
def test_certificates(rng, shape, radius):
    """Antidiagonals against the recurrence, for every option."""
    import reference

    n, m = shape
    x, y = rng.integers(0, 4, (3, 2, n)).astype(float), rng.integers(0, 4, (3, 2, m)).astype(float)
    for metric, cost in itertools.product(("dtw", "dog_keeper"), ("squared", "absolute")):
        for alignment in ("global", "subsequence", "supersequence"):
            if radius is not None and alignment != "global":
                continue
            options = {"metric": metric, "cost": cost, "window": radius, "alignment": alignment}
            warping = Warping(**options)
            found = certified.pairs(x, np.full(3, n), y, np.full(3, m), warping, GO_ON)
            expected = [reference.dtw(a, b, **options) for a, b in zip(x, y, strict=True)]
            assert_array_equal(warping.distance(found), expected)


KINDS = [
    Warping(metric, cost)
    for metric, cost in itertools.product(("dtw", "dog_keeper"), ("squared", "absolute"))
]


@pytest.mark.parametrize("window", [None, 3, 0.1])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("kind", among(KINDS), ids=str)
def test_certificates_side_by_side_are_those_alone(rng, window, channels, kind):
    """More pairs of some lengths than lie side by side, and pairs of lengths of their own."""
    lengths = np.array([[40, 40]] * 70 + [[1, 9], [9, 1], [30, 41]] + [[41, 30]] * 3)
    x, y = (rng.normal(size=(len(lengths), channels, 41)) for _ in range(2))
    # arrays as engines have them: others would be other kernels
    n, m = np.ascontiguousarray(lengths.T)
    for alignment in ("global",) if window is not None else ("global", "subsequence"):
        warping = replace(kind, window=window, alignment=alignment)
        found = certified.pairs(x, n, y, m, warping, GO_ON)
        options = certified.options(warping)
        alone = [
            certified.cost(
                *(np.ascontiguousarray(one) for one in (a[:, :i], b[:, :j])),
                *(int(warping.radius(i, j)), *options, GO_ON),
            )
            for a, b, i, j in zip(x, y, n, m, strict=True)
        ]
        assert_array_equal(found, alone)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("length", [1, 3, 20])
@pytest.mark.parametrize("n", [24, 200])
def test_distances_of_windows_do_not_depend_on_their_company(
    fast_engine, rng, normalize, length, n
):
    series = ConcatenatedSeries.of([rng.normal(size=n)])

    def measure(positions):
        work = WindowDistances(series, np.array(positions), series, length, normalize)
        return run(work, engine=fast_engine)

    positions = [4, 0, 2, 2, 1, 3, 4]
    alone = np.concatenate([measure([one]) for one in positions])
    for count in range(2, 8):
        assert_array_equal(measure(positions[:count]), alone[:count])
    # both windows of a pair are alike
    assert_array_equal(alone[:2, [4, 0]], alone[:2, [4, 0]].T)


@pytest.mark.parametrize("k", [1, 3, MOST_UNSORTED, MOST_UNSORTED + 1])
def test_the_least_of_a_row_are_the_first_of_equal_ones(rng, k):
    values = np.append(rng.integers(0, 4, (30, 12)).astype(float), np.full((1, 12), np.inf), axis=0)
    values[::3, ::2] = np.inf
    order = np.argsort(values, axis=1, kind="stable")[:, :k]
    wanted = np.take_along_axis(values, order, axis=1)
    least, places = least_of_rows(values.copy(), k)
    assert_array_equal(least, wanted)
    known = np.isfinite(wanted)
    assert_array_equal(places[known], order[known])


def test_a_matrix_of_one_pair_is_its_certificate(fast_engine, rng):
    import reference

    x, y = rng.normal(size=(1, 2, 7)), rng.normal(size=(1, 2, 5))
    sides = Series(x, np.array([7])), Series(y, np.array([5]))
    assert run(DTWMatrix(*sides), engine=fast_engine)[0, 0] == reference.dtw(x[0], y[0])


@pytest.mark.parametrize("radius", [0, 1, 3, 20])
def test_envelopes(rng, radius):
    values = rng.integers(0, 9, (5, 2, 7)).astype(np.float32)
    lengths = np.array([7, 3, 1, 5, 7])
    for n in (1, 7, 9):
        low, high = lower_bounds.envelopes(values, lengths, radius, n)
        for b, c, i in itertools.product(range(5), range(2), range(n)):
            points = values[b, c, : lengths[b]]
            near = points if n == 1 else points[max(0, i - radius) : i + radius + 1]
            least, most = (near.min(), near.max()) if near.size else (-np.inf, np.inf)
            assert (low[b, c, i], high[b, c, i]) == (least, most)


# --- sums, scales and spaces of shapes ---------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 4, 7, 9, 24])
def test_sums_and_extremes_in_lanes(rng, n):
    for _ in range(5):
        x, y = rng.integers(-9, 10, (2, n)).astype(float)
        assert shapes.lane_sum(x, y) == x @ y
        assert shapes.extremes(x) == (x.min(), x.max())
        out = np.empty(n)
        assert shapes.shifted_scaled(x, 0.5, 3.0, out) == (x * 0.5 - 3).sum()
        assert_array_equal(out, x * 0.5 - 3)


@pytest.mark.parametrize("scale", [1.0, 2.0**-200, 2.0**300])
@pytest.mark.parametrize("channels", [1, 2])
def test_normalised_shapes(rng, channels, scale):
    X = rng.normal(size=(6, channels, 9)) + 3
    X[1] = 5.0
    X[2, 0] = 0.0
    lengths = np.array([9, 9, 9, 4, 1, 9])
    for i, length in enumerate(lengths):
        X[i, :, length:] = 0
    found = Shapes.normalized(Series(X * scale, lengths))
    raw = Shapes.normalized(Series(X * scale, lengths), normalize=False)
    for i, length in enumerate(lengths):
        expected = np.zeros((channels, 9))
        for c in range(channels):
            points = X[i, c, :length]
            if np.ptp(points) > 0:
                expected[c, :length] = (points - points.mean()) / points.std()
        assert_allclose(found.values[i], expected, atol=1e-12)
        assert_allclose(found.norms[i], np.linalg.norm(expected), atol=1e-12)
        # a series as it is, times the power of two that brings its norm to between 1 and 2
        norm = np.linalg.norm(X[i])
        exponent = 0 if raw.exponents is None else raw.exponents[i]
        assert_array_equal(np.ldexp(raw.values[i], exponent), X[i] * scale)
        assert norm == 0 or 1 <= raw.norms[i] < 2
        assert_allclose(raw.norms[i], np.linalg.norm(raw.values[i]), rtol=1e-14)


def test_orthonormal_vectors_and_their_coordinates(rng):
    basis = np.linalg.qr(rng.normal(size=(8, 3)))[0].T
    vectors = rng.normal(size=(4, 8))
    vectors[2] = vectors[0] + 1e-9 * rng.normal(size=8)
    vectors[3] = 2 * basis[1]
    found, coordinates = _orthonormal(vectors, basis)
    assert len(found) == 3
    assert_allclose(found @ found.T, np.eye(3), atol=1e-12)
    assert_allclose(found @ basis.T, 0, atol=1e-12)
    rest = vectors - vectors @ basis.T @ basis
    assert_allclose(coordinates.T @ found, rest, atol=1e-12)


@pytest.mark.parametrize("values", [[3, 3, 3, 3], [5, 5, 1, 0], [4, 2, 1, 0.5], [0, 0, 0, 0]])
def test_largest_eigenvalues_of_a_growing_space(rng, values):
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    matrix = turn * np.array(values, float) @ turn.T
    found, vectors, settled = krylov(lambda block: block @ matrix, rng.normal(size=(2, 4)), 128)
    assert settled
    assert_allclose(found[0], values[0], atol=1e-12)
    if values[0]:
        assert_allclose(vectors @ matrix, found[:, None] * vectors, atol=1e-9)


def test_members_of_many_clusters(rng):
    for n_clusters in (3, 256, 257, 700, 65_536, 70_001):
        labels = rng.integers(0, n_clusters, 40).astype(np.int32)
        labels[:2] = n_clusters - 1, 0
        work = SBDCenters(Shapes(np.empty((40, 1, 2)), np.ones(40)), labels, labels, n_clusters)
        for cluster in (0, n_clusters - 1, int(labels[5])):
            assert_array_equal(work.members(cluster), np.flatnonzero(labels == cluster))


@pytest.mark.parametrize("n", [7, 100])
def test_work_of_a_tile_of_shapes_is_that_of_a_cell_by_all_its_centers(n):
    shapes = Shapes(np.empty((1000, 1, n)), np.ones(1000))
    work = SBDMatrix(shapes, shapes)
    rows, _ = work.cell
    one = work.work(Tile(0, 1, 0, 1))
    for n_rows, n_cols in ((1, 5), (rows, 1), (rows, 300), (3 * rows, 4)):
        assert work.work(Tile(0, n_rows, 10, 10 + n_cols)) == min(n_rows, rows) * n_cols * one


# --- blocks of warping matrices ----------------------------------------------------------------


@pytest.mark.parametrize("window", [None, 3, 0.2])
def test_a_block_of_unequal_lengths_with_limits(rng, window):
    import reference

    from skts.engines import Warping

    lengths, other = np.array([6, 3, 70, 9]), np.array([68, 5, 130])
    x = rng.integers(0, 4, (4, 1, 70)).astype(float)
    y = rng.integers(0, 4, (3, 1, 130)).astype(float)
    warping = Warping(window=window)
    packed, packed_lengths = dtw.pack(y, other, dtw.LANES[np.float64])
    expected = np.array(
        [
            [
                reference.dtw(a[:, :n], b[:, :m], window=window) ** 2
                for b, m in zip(y, other, strict=True)
            ]
            for a, n in zip(x, lengths, strict=True)
        ]
    )
    found = dtw.block(x, lengths, packed, packed_lengths, warping, GO_ON)[:, :3]
    assert_allclose(found, expected, rtol=1e-12)
    # a row may leave infinity in place of what is beyond its limit, and nothing else
    for limits in (np.full(4, 40.0), np.median(expected, axis=1)):
        some = dtw.block(x, lengths, packed, packed_lengths, warping, GO_ON, limits)[:, :3]
        within = expected <= limits[:, None] * (1 - 1e-9)
        assert_allclose(some[within], expected[within], rtol=1e-12)
        assert np.all(np.isinf(some[~within]) | (some[~within] >= found[~within]))


@pytest.mark.parametrize("limit", [0.0, 60.0, 1e9])
def test_lanes_give_up_together(rng, limit):
    """Where all lanes of a group are in use, and some, all or none are beyond the limit."""
    import reference

    from skts.engines import Warping

    lanes = dtw.LANES[np.float64]
    x = rng.integers(0, 4, (1, 1, 5)).astype(float)
    y = rng.integers(0, 4, (lanes, 1, 70)).astype(float)
    y[::3, :, :66] = 9.0
    packed, lengths = dtw.pack(y, np.full(lanes, 70), lanes)
    found = dtw.block(x, np.array([5]), packed, lengths, Warping(), GO_ON, np.array([limit]))[0]
    expected = np.array([reference.dtw(x[0], one) ** 2 for one in y])
    within = expected <= limit
    assert_allclose(found[within], expected[within], rtol=1e-12)
    assert np.all(np.isinf(found[~within]) | np.isclose(found[~within], expected[~within]))


@pytest.mark.parametrize("largest", [False, True])
def test_lanes_give_up_by_what_the_columns_behind_a_strip_leave(rng, largest):
    """Windows of several channels: limits of strips rule out nothing that is within the cost."""
    import reference

    from skts.engines import Warping
    from skts.engines.families.search.subsequence import query_envelope
    from skts.engines.numba.search import channels
    from skts.engines.numba.search.lanes import AlikeQueries, Comparison

    length, n_windows = 37, 45
    x = rng.normal(size=(2, 200)).cumsum(axis=1)
    query = x[:, 60 : 60 + length] + rng.normal(size=(2, length))
    warping = Warping("dog_keeper" if largest else "dtw", window=5)
    sides = [query_envelope(one, 5) for one in query]
    order = np.argsort(-np.abs(query), axis=1)
    queries = AlikeQueries(
        query, *(np.array(side) for side in zip(*sides, strict=True)), order, order
    )
    places = rng.permutation(200 - length)[:n_windows]
    expected = np.array(
        [
            reference.dtw(query, x[:, p : p + length], window=5, metric=warping.metric) ** 2
            for p in places
        ]
    )
    packed, limits = np.empty((2, length, 2, 32)), np.empty((1, 2, 3, 32))
    lengths = np.zeros((2, 32), np.int64)
    lengths.ravel()[:n_windows] = length
    for cost in (np.inf, np.median(expected), expected.min() * 1.0001):
        comparison = Comparison(5, False, True, largest)
        channels.lay_windows(x, places, queries, comparison, cost, packed, limits[0])
        assert (limits <= cost).all()
        given = query[np.newaxis], np.array([length]), packed, lengths, warping, GO_ON, limits
        found = dtw.block(*given)[0, :n_windows]
        within = expected <= cost * (1 - 1e-9)
        assert_allclose(found[within], expected[within], rtol=1e-12)
        assert np.all(np.isinf(found[~within]) | (found[~within] >= expected[~within] * (1 - 1e-9)))


def test_a_query_by_the_envelope_of_any_number_of_positions(rng):
    x = rng.integers(0, 30, (2, 5)).astype(np.float32)
    for n in (1, 2, 3, 5):
        low = rng.integers(0, 30, (2, n)).astype(np.float32)
        for squared, largest in itertools.product((True, None), repeat=2):
            found = lower_bounds.backward(x[:, :n], low, low + 3, 0, n, squared, largest)
            costs = beyond(x[:, :n], low, low + 3, squared).sum(axis=0)
            assert found == (costs.max() if largest else costs.sum())


def test_bounds_of_the_shortest_series(rng):
    """Where first and last point are the same, their cost counts once."""
    for n, m in ((1, 1), (1, 3), (3, 1), (2, 2)):
        x = rng.integers(0, 9, (1, n)).astype(np.float32)
        y = rng.integers(0, 9, (1, m)).astype(np.float32)
        low, high = y.min(axis=1, keepdims=True), y.max(axis=1, keepdims=True)
        bound = lower_bounds.second_bound(x, y, low, high, True, None)
        ends = (x[0, 0] - y[0, 0]) ** 2 + (n > 1 or m > 1) * (x[0, -1] - y[0, -1]) ** 2
        inner = beyond(x[:, 1:-1], low, high, True).sum()
        assert bound == ends + inner


# --- windows -----------------------------------------------------------------------------------


def test_moments_of_windows():
    line = np.array([5.0, 1.0, 3.0, 1.0, 3.0, 7.0, 7.0, 7.0 + 2.0**-45, 0.0, 2.0**-520, 0.0])
    mean, inverse = window_moments(line, 1, 4)
    assert (line[1] + mean, inverse) == (2.0, 1.0)
    # constant: a range of 2^-40 of the largest magnitude, or one whose square underflows
    assert window_moments(line, 5, 3) == (0.0, 0.0)
    assert window_moments(line, 8, 3) == (0.0, 0.0)
    assert window_moments(-line, 5, 3) == (0.0, 0.0)


@pytest.mark.parametrize("loud", [1.0, 1e12])
def test_a_line_for_the_search_holds_its_windows(rng, loud):
    """Each window that is not hidden is its own, less an offset, times a power of two."""
    length = 6
    filled = rng.normal(size=80)
    filled[30:50] = loud * rng.normal(size=20) + 50 * loud
    ranges = np.ptp(np.lib.stride_tricks.sliding_window_view(filled, length), axis=1)
    even = even_line(filled, ranges)
    assert (even is None) == (loud > 1)
    found = even if even is not None else line_of_pieces(filled, ranges, length)
    assert np.abs(found.points).max() <= 1 and not found.hidden.all()
    whole = found.hidden.size - found.hidden.sum()
    assert whole >= (75 if loud == 1 else 40)
    for i in np.flatnonzero(~found.hidden):
        own, given = found.points[i : i + length], filled[i : i + length]
        factor = np.ptp(own) / np.ptp(given)
        power = 2.0 ** np.round(np.log2(factor))
        assert_allclose(own - own[0], power * (given - given[0]), atol=1e-15 * power * loud * 60)

    def compute(points):
        windows = np.lib.stride_tricks.sliding_window_view(points, length)
        anchored = windows.mean(axis=1) - points[: len(windows)]
        return anchored, windows.std(axis=1), windows.min(axis=1), windows.max(axis=1)

    mean, deviation, size, error = found.moments(compute(filled), compute)
    for i in np.flatnonzero(~found.hidden):
        own = found.points[i : i + length]
        assert abs(mean[i] - own.mean()) <= error[i] + 1e-16
        assert_allclose(deviation[i], own.std(), rtol=1e-9)
        assert size[i] >= np.abs(own).max() * (1 - 1e-12)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_an_offset_is_taken_off_where_it_dwarfs_the_spread(rng, offset):
    length, spread = 6, 2.0**-10
    filled = offset + spread * rng.uniform(-1, 1, 50)
    filled[:2] = offset - spread, offset + spread
    windows = np.lib.stride_tricks.sliding_window_view(filled, length)
    line = even_line(filled, np.ptp(windows, axis=1))
    assert line.frame == (offset, 2.0**9) and np.abs(line.points).max() == 0.5
    assert_array_equal(line.points, (filled - offset) * 2.0**9)
    given = windows.mean(axis=1) - windows[:, 0], windows.std(axis=1)
    _, _, size, error = line.moments((*given, windows.min(axis=1), windows.max(axis=1)), None)
    own = np.lib.stride_tricks.sliding_window_view(line.points, length)
    assert_array_equal(size, np.abs(own).max(axis=1))
    assert np.all(error < 1e-14)
    # windows that are compared as they are have their frame in common
    frame = common_frame([filled], [lambda: (windows.min(axis=1), windows.max(axis=1))])
    line = line_as_it_is(filled, frame, length)
    assert abs(frame.offset - offset) < spread
    assert line.frame == (frame.offset, line.unit) and not line.hidden.any()
    assert 0.5 <= np.abs(line.points).max() <= 1
    assert_array_equal(line.points, (filled - frame.offset) * line.unit)


def test_few_loud_points_are_left_out_of_the_frame_of_small_ones(rng):
    filled, length = 1e-3 * rng.normal(size=200), 5
    filled[[40, 90]] = 1e12
    windows = np.lib.stride_tricks.sliding_window_view(filled, length)
    frame = common_frame([filled], [lambda: (windows.min(axis=1), windows.max(axis=1))])
    quiet = np.delete(filled, [40, 90])
    assert np.abs(quiet - frame.offset).max() <= frame.largest <= 0.01


# --- tiles in the middle -----------------------------------------------------------------------


def test_tiles_in_the_middle_are_slices_of_the_whole(fast_engine, rng):
    from skts.engines import WindowDistances, find_engine

    engine = find_engine(fast_engine)
    X, Y = rng.normal(size=(9, 1, 5)), rng.normal(size=(140, 1, 6))
    rows, cols = Series(X, np.full(9, 5)), Series(Y, np.full(140, 6))
    shapes = Shapes.of(rng.normal(size=(9, 1, 8))), Shapes.of(rng.normal(size=(20, 1, 8)))
    line = ConcatenatedSeries.of([rng.normal(size=150)])
    for work, tile in (
        (DTWMatrix(rows, cols), Tile(2, 7, 64, 131)),
        (DTWMatrix(cols, rows), Tile(64, 128, 3, 8)),
        (SBDMatrix(*shapes), Tile(2, 6, 5, 17)),
        (WindowDistances(line, np.arange(0, 90, 10), line, 8), Tile(3, 8, 20, 77)),
    ):
        whole, part = run(work, engine=engine), engine.compute(work, tile, GO_ON)
        whole = whole if isinstance(whole, tuple) else (whole,)
        part = part if isinstance(part, tuple) else (part,)
        for one, other in zip(whole, part, strict=True):
            assert_array_equal(one[tile.rows, tile.cols], other)


def test_sizes_of_answers(rng):
    from skts.engines import DTWWindowSearch, WindowDistances

    series = Series(rng.normal(size=(6, 2, 5)), np.full(6, 5))
    shapes = Shapes.of(series.values)
    labels = np.zeros(6, np.int32)
    line = ConcatenatedSeries.of([rng.normal(size=40)])
    for work in (
        DTWMatrix(series, series.take(slice(0, 4))),
        DTWWindowSearch(series, series, np.arange(6), np.array([3, 1])),
        SBDMatrix(shapes, shapes.take(slice(0, 3))),
        WindowDistances(line, np.arange(3), line, 7),
    ):
        answer = run(work, engine="numba")
        parts = answer if isinstance(answer, tuple) else (answer,)
        assert work.result_bytes() == sum(part.nbytes for part in parts)
    work = SBDCenters(shapes, labels, labels, 3)
    assert work.result_bytes() == run(work, engine="numba").values.nbytes


# --- parts, merges and limits ------------------------------------------------------------------


def test_points_of_the_longest_path():
    from skts.engines import Warping

    for n, m in ((1, 1), (5, 7), (3, 1)):
        assert Warping().steps(n, m) == Warping(cost="absolute").steps(n, m) == n + m - 1
        assert Warping(metric="dog_keeper").steps(n, m) == 1


@pytest.mark.parametrize("neighbors", [1, 3, None])
def test_searches_merge_from_tiles_in_any_order(fast_engine, rng, neighbors):
    from skts.engines import find_engine

    engine = find_engine(fast_engine)
    line = (rng.integers(0, 3, 70).astype(float), rng.normal(size=20))
    queries = tuple(rng.integers(0, 3, n).astype(float) for n in (5, 4))
    work = SubsequenceNeighbors(
        queries, LongSeries(line), n_neighbors=neighbors, radius=2.5, exclusion=3
    )
    expected = run(work, engine=engine)
    cuts = [0, 13, 14, 40, 71, work.shape[1]]
    tiles = [Tile(r, r + 1, a, b) for r in (0, 1) for a, b in itertools.pairwise(cuts)]
    for order in (tiles, tiles[::-1], [tiles[i] for i in rng.permutation(len(tiles))]):
        total = work.start()
        for tile in order:
            informed = work.with_incumbent(total)
            work.merge(total, tile, engine.compute(informed, tile, GO_ON))
        for one, other in zip(work.finish(total, None), expected, strict=True):
            assert_array_equal(one.positions, other.positions)
            assert_array_equal(one.distances, other.distances)


def test_few_matches_rule_nothing_out():
    """As long as fewer are known than bound the last match, any other may still be one."""
    work = SubsequenceNeighbors(
        (np.zeros(4),), LongSeries((np.zeros(60),)), n_neighbors=2, exclusion=3
    )
    total = work.start()
    for col, position, distance in ((0, 5, 1.0), (10, 10, 5.0), (30, 2, 7.0), (40, 0, 4.0)):
        found = TileMatches(np.array([position]), np.array([distance]))
        work.merge(total, Tile(0, 1, col, col + 10), [found])
    # 1 at 5, 4 at 40, 5 at 20, 7 at 32: any three that are far from each other bound the second
    assert total[0].limit == 5.0
    assert sorted(total[0].distances) == [1.0, 4.0, 5.0]
    (answer,) = work.finish(total, None)
    assert_array_equal(answer.distances, [1.0, 4.0])
    assert_array_equal(answer.positions, [[0, 5], [0, 40]])


def test_rotations_merge_from_blocks(fast_engine, monkeypatch, rng):
    import reference
    from reference_rotation import rotation_distance

    from skts.engines import RotationNeighbors
    from skts.engines.families.elastic import rotation as rotations

    monkeypatch.setattr(rotations, "BLOCK", 4)
    X, Q = rng.integers(0, 3, (15, 1, 5)).astype(float), rng.integers(0, 3, (3, 1, 5)).astype(float)
    candidates, queries = (Series(values, np.full(len(values), 5)) for values in (X, Q))
    matrix = np.array([[rotation_distance(q, x) for x in X] for q in Q])
    for k in (1, 2, 6):
        work = RotationNeighbors(queries, candidates, k, np.array([0, 7, 14]))
        found = run(work, engine=fast_engine)
        distances, indices = reference.nearest(matrix, k, [0, 7, 14])
        assert_array_equal(found.indices, indices)
        assert_array_equal(found.distances, distances)
    # limits that are given hold however many candidates there are: at one, and just below
    nearest = matrix.min(axis=1)
    for block in (4, 16):
        monkeypatch.setattr(rotations, "BLOCK", block)
        for limits in (nearest, np.nextafter(nearest, -1)):
            work = RotationNeighbors(queries, candidates, 1, None, limits=limits)
            found = run(work, engine=fast_engine)
            within = nearest <= limits
            assert_array_equal(found.distances[:, 0], np.where(within, nearest, np.inf))
            assert_array_equal(found.indices[:, 0], np.where(within, matrix.argmin(axis=1), -1))
    limited = RotationNeighbors(queries, candidates, 2, None, limits=np.array([1.0, 2.0, 3.0]))
    part = limited.part(Tile(1, 3, 4, 8))
    assert_array_equal(part.limits, [2.0, 3.0])
    assert part.shape == (2, 4)
    assert RotationNeighbors(queries, candidates, 2).part(Tile(0, 1, 0, 4)).limits is None


def test_best_part_of_candidates_of_unequal_lengths(rng):
    import reference

    from skts.engines import Warping

    warping, x = Warping(alignment="subsequence"), rng.integers(0, 5, (2, 1, 4)).astype(float)
    # in one strip of columns, and in several
    for lengths in (np.array([9, 4, 1, 7]), np.array([70, 66, 64, 5])):
        longest = lengths[0]
        y = rng.integers(0, 5, (4, 1, longest)).astype(float) + 1
        y[np.arange(longest) >= lengths[:, None, None]] = 0
        packed, packed_lengths = dtw.pack(y, lengths, dtw.LANES[np.float64])
        found = dtw.block(x, np.array([4, 3]), packed, packed_lengths, warping, GO_ON)[:, :4]
        for i, n in enumerate((4, 3)):
            for j, m in enumerate(lengths):
                expected = reference.dtw(x[i, :, :n], y[j, :, :m], alignment="subsequence") ** 2
                assert found[i, j] == pytest.approx(expected, rel=1e-12)


def test_nearly_constant_channels_and_large_offsets(rng):
    near = np.full((1, 3, 6), -1.0)
    near[0, 0, 2] += 2.0**-40
    near[0, 1, 2] += 1.5 * 2.0**-40
    shapes = Shapes.normalized(Series(near, np.array([6])))
    assert not shapes.values[0, 0].any() and not shapes.values[0, 2].any()
    assert shapes.values[0, 1].any()
    raw = Shapes.of(near)
    assert_array_equal(raw.flat, [[1, 0, 1]])
    assert_array_equal(Shapes.of(-near).flat, [[1, 0, 1]])
    far = 2.0**40 + rng.integers(0, 9, (5, 1, 11))
    z = Shapes.normalized(Series(far, np.full(5, 11))).values
    assert np.abs(z.sum(axis=2)).max() < 1e-13
    assert_allclose((z**2).mean(axis=2), 1, rtol=1e-13)
