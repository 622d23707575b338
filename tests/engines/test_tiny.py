"""Every family of work at sizes that plain Python gets through, against plain loops.

`tests.mutation` runs these with Numba switched off: nothing is compiled, calls in kernels are seen,
and an index out of bounds is an error. Sizes step over the edges of lanes and strips, and data are
such that ties, constants, gaps and large offsets meet each other.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
import reference_sbd
import reference_subsequence_search
from numpy.testing import assert_allclose, assert_array_equal
from reference_join import window_distance
from reference_rotation import rotation_distance

from skts.engines import (
    ConcatenatedSeries,
    DTWNeighbors,
    DTWPath,
    DTWWindowSearch,
    LongSeries,
    MotifPair,
    RotationNeighbors,
    SBDAssign,
    SBDCenters,
    SBDMatrix,
    Series,
    Shapes,
    SubsequenceMatches,
    SubsequenceNeighbors,
    Warping,
    WindowDistances,
    WindowKinds,
    run,
)
from skts.engines.families.search.subsequence import greedy

# --- rotation ----------------------------------------------------------------------------------

ROTATED = {
    "noise": lambda rng: rng.normal(size=(11, 6)),
    "integers": lambda rng: rng.integers(0, 3, (12, 5)).astype(float),
    "periodic": lambda rng: np.tile(rng.integers(0, 3, (9, 2)), 3).astype(float),
    "channels": lambda rng: rng.integers(0, 4, (9, 2, 5)).astype(float),
    "one point": lambda rng: rng.integers(0, 3, (6, 1)).astype(float),
    "offset": lambda rng: 1e6 + rng.normal(size=(9, 4)),
}


@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("window", [None, 0])
@pytest.mark.parametrize("kind", ROTATED)
def test_rotation(fast_engine, rng, kind, window, cost):
    X = ROTATED[kind](rng)
    series, queries = Series.of(X), Series.of(X[:2])
    matrix = np.array(
        [
            [rotation_distance(x, y, cost=cost, window=window) for y in series.values]
            for x in queries.values
        ]
    )
    for k, excluded in ((1, None), (3, np.array([0, 1])), (len(X) + 1, np.array([4, 1]))):
        found = run(
            RotationNeighbors(queries, series, k, excluded, Warping(cost=cost, window=window)),
            engine=fast_engine,
        )
        distances, indices = reference.nearest(matrix, k, excluded)
        # fewer candidates than neighbours leave infinity and -1
        for q in range(2):
            assert_array_equal(found.indices[q, : len(indices[q])], indices[q])
            assert_array_equal(found.distances[q, : len(indices[q])], distances[q])
            assert np.all(found.indices[q, len(indices[q]) :] == -1)
            assert np.all(np.isinf(found.distances[q, len(indices[q]) :]))


def test_rotation_of_more_points_than_a_strip_has_columns(fast_engine, rng):
    X = rng.integers(-1, 2, (3, 53)).cumsum(axis=1).astype(float)
    series = Series.of(X)
    found = run(RotationNeighbors(series, series, 1, np.arange(3)), engine=fast_engine)
    matrix = np.array([[rotation_distance(x, y) for y in series.values] for x in series.values])
    distances, indices = reference.nearest(matrix, 1, np.arange(3))
    assert_array_equal(found.indices, indices)
    assert_array_equal(found.distances, distances)


# --- every width of the band -------------------------------------------------------------------


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("kind", ["noise", "integers", "channels", "walks", "offset"])
def test_window_search(fast_engine, rng, kind, squared):
    X = {
        "noise": lambda: rng.normal(size=(7, 1, 6)),
        "integers": lambda: rng.integers(0, 3, (12, 1, 7)).astype(float),
        "channels": lambda: rng.integers(0, 3, (8, 3, 5)).astype(float),
        "walks": lambda: rng.normal(size=(8, 1, 12)).cumsum(axis=2),
        "offset": lambda: 1e8 + rng.integers(0, 5, (8, 1, 6)),
    }[kind]()
    radii = np.arange(X.shape[2])[::-1].copy()
    for excluded in (np.arange(len(X)), np.full(len(X), -1)):
        queries = X if excluded[0] == 0 else X + rng.integers(0, 2, X.shape)
        work = DTWWindowSearch(Series.of(queries), Series.of(X), excluded, radii, squared)
        found = run(work, engine=fast_engine)
        cost = "squared" if squared else "absolute"
        for column, radius in enumerate(radii.tolist()):
            matrix = reference.pairwise_dtw(queries, X, window=radius, cost=cost)
            _, indices = reference.nearest(matrix, 1, excluded)
            assert_array_equal(found[:, column], indices[:, 0])


# --- nearest neighbours by lower bounds --------------------------------------------------------

WARPINGS = {
    "none": Warping(),
    "band": Warping(window=2),
    "fraction": Warping(window=0.3),
    "absolute": Warping(cost="absolute", window=1),
    "largest": Warping(metric="dog_keeper"),
    "largest absolute": Warping(metric="dog_keeper", cost="absolute", window=3),
    "subsequence": Warping(alignment="subsequence"),
    "supersequence": Warping(alignment="supersequence"),
}


@pytest.mark.parametrize(
    "warping",
    [
        # kernels of the others are large: the CPU has two of the four kinds of cell in every run
        pytest.param(name, marks=pytest.mark.compiles if name in ("absolute", "largest") else ())
        for name in WARPINGS
    ],
)
@pytest.mark.parametrize("shape", [(9, 1, None), (7, 2, 3)], ids=str)
def test_neighbors_by_lower_bounds(fast_engine, monkeypatch, rng, warping, shape):
    from skts.engines.numba.elastic import tiles as dtw_tiles

    monkeypatch.setattr(dtw_tiles, "WORTH_BOUNDING", 0)
    warping, (n, channels, shortest) = WARPINGS[warping], shape
    values = rng.integers(0, 6, (150, channels, n)).cumsum(axis=2).astype(float)
    lengths = np.full(150, n)
    if shortest is not None and warping.alignment == "global":
        lengths[3::2] = rng.integers(shortest, n + 1, lengths[3::2].size)
        values[np.broadcast_to(np.arange(n) >= lengths[:, None, None], values.shape)] = 0
    candidates, queries = Series(values, lengths), Series(values[:2], lengths[:2])
    matrix = reference.pairwise_dtw(
        [reference.unpadded(queries, i) for i in range(2)],
        [reference.unpadded(candidates, i) for i in range(150)],
        metric=warping.metric,
        cost=warping.cost,
        window=warping.window,
        alignment=warping.alignment,
    )
    for k, excluded in ((1, np.arange(2)), (3, None)):
        work = DTWNeighbors(queries, candidates, k, excluded, "auto", warping)
        found = run(work, engine=fast_engine)
        distances, indices = reference.nearest(matrix, k, excluded)
        assert_array_equal(found.indices, indices)
        assert_array_equal(found.distances, distances)


@pytest.mark.parametrize("warping", [w for w in WARPINGS if w != "fraction"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (9, 9), (10, 7), (5, 12), (17, 17)], ids=str)
def test_paths(fast_engine, rng, warping, shape):
    warping = WARPINGS[warping]
    for channels in (1, 2):
        x, y = (rng.integers(0, 3, (1, channels, n)).astype(float) for n in shape)
        found = run(DTWPath(Series.of(x), Series.of(y), warping), engine=fast_engine)
        path, distance = reference.dtw_path(
            x[0], y[0], metric=warping.metric, cost=warping.cost, window=warping.window,
            alignment=warping.alignment,
        )  # fmt: skip
        assert_array_equal(found.path, path)
        assert found.distance == distance


# --- windows of a line -------------------------------------------------------------------------


def dirty_line(rng, n):
    """Noise with a constant stretch, a gap, a repeat and a loud point."""
    line = rng.normal(size=n)
    line[5:12] = 2.5
    line[n // 2] = np.nan
    line[n - 9 :] = line[13:22]
    line[n // 2 - 4] = 1e7
    return line


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("length", [1, 4, 7])
def test_window_distances(fast_engine, rng, length, normalize):
    a, b = dirty_line(rng, 44), dirty_line(rng, 39)
    positions = np.array([0, 5, 13, 30, 44 - length])
    found = run(
        WindowDistances(
            ConcatenatedSeries.of([a]), positions, ConcatenatedSeries.of([b]), length, normalize
        ),
        engine=fast_engine,
    )
    for row, i in zip(found, positions, strict=True):
        expected = [
            window_distance(a[i : i + length], b[j : j + length], normalize=normalize)
            for j in range(39 - length + 1)
        ]
        assert_allclose(row, expected, rtol=1e-9, atol=1e-9)


def test_window_kinds(fast_engine, rng):
    line = dirty_line(rng, 60)
    for length in (1, 2, 5):
        kinds = run(WindowKinds(ConcatenatedSeries.of([line]), length), engine=fast_engine)
        windows = np.lib.stride_tricks.sliding_window_view(line, length)
        finite = np.isfinite(windows).all(axis=1)
        assert_array_equal(kinds.finite, finite)
        flat = [f and w.max() == w.min() for f, w in zip(finite, windows, strict=True)]
        assert_array_equal(kinds.constant, flat)
        assert_array_equal(kinds.regular, finite & ~np.array(flat))


def test_windows_of_several_series_on_one_line():
    series = [np.arange(3.0), np.arange(5.0), np.arange(1.0)]
    pool = ConcatenatedSeries.of(series, gap=2)
    assert_array_equal(pool.starts, [0, 5, 12])
    assert_array_equal(pool.lengths, [3, 5, 1])
    assert_array_equal(np.isnan(pool.points), [0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0])
    assert_array_equal(pool.points[~np.isnan(pool.points)], np.concatenate(series))
    assert not pool.points.flags.writeable
    assert pool.n_windows(13) == 1 and pool.n_windows(14) == 0 and pool.n_windows(1) == 13
    which, start = pool.locate(np.array([-1, 0, 2, 5, 9, 12]))
    assert_array_equal(which, [-1, 0, 0, 1, 1, 2])
    assert_array_equal(start, [-1, 0, 2, 0, 4, 0])
    alone = ConcatenatedSeries.of([series[1]], gap=3)
    assert alone.points.base is not None and alone.points.size == 5
    assert_array_equal(ConcatenatedSeries.of(series, gap=0).starts, [0, 4, 10])


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("n_references", [1, 3, 50])
def test_nearest_pair(fast_engine, rng, n_references, normalize):
    lines = [
        rng.normal(size=40),
        dirty_line(rng, 75),
        np.round(rng.normal(size=60)),
        np.tile(rng.normal(size=9), 5),
    ]
    for line, (length, exclusion) in itertools.product(lines, ((5, 1), (8, 9), (3, 0))):
        work = MotifPair(
            ConcatenatedSeries.of([line]), length, exclusion, normalize, n_references=n_references
        )
        found = run(work, engine=fast_engine)
        assert found[:3] == pytest.approx(nearest_pair(line, length, exclusion, normalize))


def nearest_pair(line, length, exclusion, normalize):
    """The first of the nearest pairs, from the definition."""
    best = np.inf, -1, -1
    n = len(line) - length + 1
    for i in range(n):
        for j in range(i + exclusion + 1, n):
            windows = line[i : i + length], line[j : j + length]
            distance = window_distance(*windows, normalize=normalize)
            if distance < best[0]:
                best = distance, i, j
    return best


# --- subsequence search ------------------------------------------------------------------------

SEARCHES = {
    "none": {},
    "band": {"window": 2},
    "euclidean": {"window": 0},
    "absolute": {"cost": "absolute", "window": 1},
    "largest": {"metric": "dog_keeper"},
}


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("options", SEARCHES)
def test_subsequence_search(fast_engine, rng, options, normalize):
    options = SEARCHES[options]
    series = (dirty_line(rng, 45), rng.normal(size=20).cumsum(), rng.normal(size=3))
    queries = (series[0][14:21] + 0.1 * rng.normal(size=7), rng.normal(size=4), np.ones(3))
    for neighbors, exclusion, radius in (
        (1, None, np.inf),
        (3, 0, np.inf),
        (4, None, np.inf),
        (5, 3, 2.5),
        (None, None, 2.0),
    ):
        work = SubsequenceNeighbors(
            queries, LongSeries(series), Warping(**options), normalize, neighbors, radius, exclusion
        )
        found = run(work, engine=fast_engine)
        for query, one in zip(queries, found, strict=True):
            more = {"normalize": normalize, **options}
            if neighbors is None:
                expected = reference_subsequence_search.all_distances(query, series, **more)
                expected = [match for match in expected if match[0] <= radius]
            else:
                expected = reference_subsequence_search.nearest_windows(
                    query, series, neighbors, exclusion, **more
                )
                expected = [match for match in expected if match[0] <= radius]
            expected = np.array(expected, float).reshape(-1, 3)
            assert_array_equal(one.positions, expected[:, 1:])
            assert_allclose(one.distances, expected[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", [{"window": 3}, {}, {"metric": "dog_keeper", "window": 2}])
def test_a_query_of_more_points_than_a_strip_has_columns(fast_engine, rng, options):
    line = rng.normal(size=71).cumsum()
    queries = (line[1:68] + 0.5 * rng.normal(size=67), rng.integers(0, 3, 66).astype(float))
    work = SubsequenceNeighbors(
        queries, LongSeries((line,)), Warping(**options), True, 3, np.inf, 0
    )
    for query, one in zip(queries, run(work, engine=fast_engine), strict=True):
        expected = reference_subsequence_search.nearest_windows(query, (line,), 3, 0, **options)
        expected = np.array(expected, float)
        assert_array_equal(one.positions, expected[:, 1:])
        assert_allclose(one.distances, expected[:, 0], rtol=1e-12)


@pytest.mark.parametrize("exclusion", [0, 1, 4])
def test_matches_are_taken_greedily(rng, exclusion):
    positions = np.column_stack([rng.integers(0, 2, 60), rng.integers(0, 30, 60)])
    order = rng.permutation(60)
    for count in (1, 5, 60):
        taken = []
        for entry in order:
            series, start = positions[entry]
            free = all(
                positions[t][0] != series or abs(positions[t][1] - start) > exclusion for t in taken
            )
            if free and len(taken) < count:
                taken.append(entry)
        assert_array_equal(greedy(positions, order, exclusion, count), taken)


@pytest.mark.parametrize("normalize", [True, False])
def test_best_matches(fast_engine, rng, normalize):
    values = rng.normal(size=(4, 2, 20))
    values[0, 0, 3:12] = 1.5
    values[1, 1, 8] = np.nan
    series = Series(values, np.array([20, 20, 20, 6]))
    values[3, :, 6:] = 0
    queries = (rng.normal(size=5), values[2, 1, 4:9].copy(), np.ones(5), rng.normal(size=8))
    channels = np.array([0, 1, 0, 1])
    found = run(SubsequenceMatches(queries, series, normalize, channels), engine=fast_engine)
    for q, query in enumerate(queries):
        for b in range(4):
            points = values[b, channels[q], : series.lengths[b]]
            best, at = np.inf, -1
            for start in range(len(points) - len(query) + 1):
                window = points[start : start + len(query)]
                distance = window_distance(query, window, normalize=normalize)
                if distance < best:
                    best, at = distance, start
            assert found.starts[q, b] == at
            assert_allclose(found.distances[q, b], best, rtol=1e-12, atol=1e-12)


# --- shapes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("n", [1, 2, 5, 9, 21])
def test_shape_distances(fast_engine, rng, n, channels):
    values = rng.normal(size=(7, channels, n))
    values[2] = 0
    values[3], values[4] = values[1], -values[1]
    X, C = Shapes.of(values), Shapes.of(np.ascontiguousarray(values[[1, 2, 6]]))
    found = run(SBDMatrix(X, C), engine=fast_engine)
    distances, shifts = reference_sbd.pairwise_sbd(X.values, C.values)
    assert_allclose(found.distances, distances, atol=1e-12)
    assert_array_equal(found.shifts, shifts)
    labels, shifts, distances = reference_sbd.assign(X.values, C.values)
    assigned = run(SBDAssign(X, C), engine=fast_engine)
    assert_array_equal(assigned.labels, labels)
    assert_array_equal(assigned.shifts, shifts)
    assert_allclose(assigned.distances, distances, atol=1e-12)


@pytest.mark.parametrize("iterated", [False, True])
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize(("channels", "width"), [(1, 6), (2, 6), (1, 11)])
def test_centers(fast_engine, monkeypatch, rng, channels, width, centered, iterated):
    from skts.engines.numba.kshape import tiles as sbd_tiles

    if iterated:  # by Lanczos iteration, as for long series
        monkeypatch.setattr(sbd_tiles, "SMALL", 0)
    n = 9
    values = rng.normal(size=(n, channels, width))
    labels = np.array([0, 1, 0, 3, 1, 0, 3, 3, 4], np.int32)  # cluster 2 is empty, 4 has one
    shifts = rng.integers(-3, 4, n).astype(np.int32)
    previous = rng.normal(size=(5, channels, width)) if iterated else None
    work = SBDCenters(Shapes.of(values), labels, shifts, 5, previous, centered)
    found = run(work, engine=fast_engine).values
    for cluster in range(5):
        members = [i for i in range(n) if labels[i] == cluster]
        if not members:
            assert_array_equal(found[cluster], 0)
            continue
        moved = np.array([reference_sbd.shifted(values[i], shifts[i]) for i in members])
        expected = reference_sbd.center(moved, centered).reshape(channels, width)
        assert_allclose(found[cluster], expected, atol=1e-8)
