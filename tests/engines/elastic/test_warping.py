"""All options of a distance under warping: engines against the oracle, and what must hold."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest
import reference
from elastic_cases import among, among_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from skts import DTWNearestNeighbor
from skts.engines import (
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    Series,
    Tile,
    Warping,
    find_engine,
    run,
)
from skts.engines.cupy.elastic.programs import BandKernel, choose_dtw
from skts.engines.numba.elastic import dtw, lower_bounds
from skts.metrics import pairwise_dtw
from skts.neighbors import dtw_window_search

OPTIONS = [
    Warping(metric, cost, window, alignment)
    for metric, cost in product(("dtw", "dog_keeper"), ("squared", "absolute"))
    for window, alignment in (
        (None, "global"),
        (0, "global"),
        (2, "global"),
        (0.3, "global"),
        (None, "subsequence"),
        (None, "supersequence"),
    )
]


def listed(series):
    return [reference.unpadded(series, i) for i in range(len(series))]


SHAPES = [(1, 1, 1, None), (9, 9, 1, None), (7, 70, 1, None), (40, 12, 1, 5)]
CASES = [(warping, *shape) for warping in OPTIONS for shape in SHAPES]
# channels in one window, cost and alignment of each: every kernel that has them is built here
CASES += [(warping, 11, 8, 2, 3) for warping in OPTIONS[3::5]]


@pytest.mark.parametrize(("warping", "n", "m", "channels", "shortest"), among_cases(CASES), ids=str)
def test_matrix_and_neighbors_have_the_bits_of_the_oracle(
    fast_engine, make_series, warping, n, m, channels, shortest
):
    rows, cols = (
        make_series(3, n, channels, shortest=shortest),
        make_series(35, m, channels, shortest=shortest),
    )
    expected = reference.pairwise_dtw(listed(rows), listed(cols), **asdict(warping))
    assert_array_equal(run(DTWMatrix(rows, cols, warping), engine=fast_engine), expected)
    nearest = reference.nearest(expected, 3)
    for precision in ("auto", "float64"):
        work = DTWNeighbors(rows, cols, 3, precision=precision, warping=warping)
        found = run(work, engine=fast_engine)
        assert_array_equal(found.indices, nearest[1])
        assert_array_equal(found.distances, nearest[0])
    pairs = np.array([[i % 3, (7 * i) % 35] for i in range(40)])
    assert_array_equal(
        run(DTWPairs(rows, cols, pairs, warping), engine=fast_engine),
        expected[pairs[:, 0], pairs[:, 1]],
    )


@pytest.mark.parametrize("warping", among(OPTIONS), ids=str)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (6, 1), (12, 12), (9, 17), (17, 9)])
def test_path(make_series, engine, warping, n, m):
    x, y = make_series(1, n), make_series(1, m)
    path, distance = run(DTWPath(x, y, warping), engine=engine)
    expected, expected_distance = reference.dtw_path(x.values[0], y.values[0], **asdict(warping))
    assert distance == expected_distance
    assert_array_equal(path, expected)


def test_shares_of_a_band_are_rounded_up_but_for_rounding():
    longest = np.arange(1, 301)
    for percent in range(100):
        found = Warping(window=percent / 100).points(longest)
        assert_array_equal(found, -(-percent * longest // 100))


@pytest.mark.parametrize("window", [0, 1, 4, 0.3, 1.0, None])
def test_the_widest_band_and_whether_one_binds(rng, window):
    warping = Warping(window=window)
    for longest in range(1, 9):
        n, m = (rng.integers(1, longest + 1, 3) for _ in range(2))
        n[0] = longest
        radii = [int(warping.radius(i, j)) for i in n for j in m]
        if warping.window is not None:
            assert radii == [reference.band_radius(window, i, j) for i in n for j in m]
        assert warping.largest_radius(n, m) == max(radii)
        left_out = any(
            abs(i - j) > warping.radius(a, b)
            for a, b in product(range(1, longest + 1), repeat=2)
            for i, j in product(range(a), range(b))
        )
        assert warping.binds(longest) == left_out


@pytest.mark.parametrize("alignment", ["global", "subsequence", "supersequence"])
def test_of_paths_whose_costs_overflow_the_first_is_taken(engine, alignment):
    """All ends are equal: the first; all steps back are: the diagonal."""
    shapes = {"global": (3, 5), "subsequence": (3, 5), "supersequence": (5, 3)}
    n, m = shapes[alignment]
    sides = [Series(np.full((1, 1, k), z), np.array([k])) for k, z in ((n, 1e200), (m, -1e200))]
    found = run(DTWPath(*sides, Warping(alignment=alignment)), engine=engine)
    assert found.distance == np.inf
    expected = {
        "global": [[0, 0], [0, 1], [0, 2], [1, 3], [2, 4]],
        "subsequence": [[0, 0], [1, 0], [2, 0]],
        "supersequence": [[0, 0], [0, 1], [0, 2]],
    }
    assert_array_equal(found.path, expected[alignment])


@pytest.mark.gpu
@pytest.mark.parametrize("warping", among(OPTIONS), ids=str)
@pytest.mark.parametrize(
    ("n", "m", "channels"), [(1030, 1050, 1), (2500, 2400, 1), (3000, 40, 2), (40, 3000, 1)]
)
def test_long_paths_on_the_gpu_are_those_of_the_cpu(make_series, warping, n, m, channels):
    missing = find_engine("cupy").available()
    if missing is not None:
        pytest.skip(missing)
    # whole numbers, so that many steps are equally good
    x, y = (
        Series(np.round(side.values), side.lengths)
        for side in (make_series(1, n, channels), make_series(1, m, channels))
    )
    if warping.window is not None and n != m:
        warping = replace(warping, window=abs(n - m) + 7)
    path, distance = run(DTWPath(x, y, warping), engine="cupy")
    expected, expected_distance = run(DTWPath(x, y, warping), engine="numba")
    assert distance == expected_distance
    assert_array_equal(path, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [40, 41])
def test_few_rows_against_several_strips_of_columns(make_series, n):
    """The last rows of a strip begin from those of the strip before."""
    a, b = make_series(2, n), make_series(2, 2500)
    for warping in (Warping(), Warping("dog_keeper"), Warping(alignment="subsequence")):
        found, expected = (run(DTWMatrix(a, b, warping), engine=e) for e in ("cupy", "numba"))
        assert_array_equal(found, expected)


def test_a_path_along_the_edge_of_a_wide_band(fast_engine, rng):
    y = rng.normal(size=1500)
    before, behind = np.pad(y, (300, 0), mode="edge"), np.pad(y, (0, 300), mode="edge")
    short, long = (
        Series(v[:, np.newaxis], np.full(len(v), v.shape[1]))
        for v in (np.array([y]), np.array([before, behind]))
    )
    for a, b in ((short, long), (long, short)):
        assert not run(DTWMatrix(a, b, Warping(window=300)), engine=fast_engine).any()


@pytest.mark.parametrize("warping", among(OPTIONS), ids=str)
@pytest.mark.parametrize("n_cols", [1, 3])
def test_many_rows_against_few_columns(fast_engine, make_series, warping, n_cols):
    rows, cols = make_series(70, 9, shortest=4), make_series(n_cols, 7, shortest=5)
    expected = reference.pairwise_dtw(listed(rows), listed(cols), **asdict(warping))
    assert_array_equal(run(DTWMatrix(rows, cols, warping), engine=fast_engine), expected)
    excluded = np.arange(70) % 5 if n_cols > 1 else None
    for precision in ("auto", "float64"):
        work = DTWNeighbors(rows, cols, 1, excluded, precision, warping)
        found, nearest = run(work, engine=fast_engine), reference.nearest(expected, 1, excluded)
        assert_array_equal(found.indices, nearest[1])
        assert_array_equal(found.distances, nearest[0])


#: All widths of a GPU band.
BANDS = [
    (Warping(metric, cost, window), n, m, channels)
    for n, m, channels, window in (
        (1, 1, 1, 0),
        (5, 3, 2, 2),
        (40, 40, 1, 3),
        (103, 101, 3, 0.1),
        (64, 64, 1, 14),
        (90, 93, 1, 0.42),
        (150, 150, 1, 66),
    )
    for metric, cost in product(("dtw", "dog_keeper"), ("squared", "absolute"))
]


@pytest.mark.parametrize(("warping", "n", "m", "channels"), among_cases(BANDS), ids=str)
def test_bands_of_equal_lengths(fast_engine, make_series, warping, n, m, channels):
    # series along either side of a block
    rows, cols = make_series(3, n, channels), make_series(140, m, channels)
    few = listed(cols.take(slice(4)))
    expected = reference.pairwise_dtw(listed(rows), few, **asdict(warping))
    found = run(DTWMatrix(rows, cols.take(slice(4)), warping), engine=fast_engine)
    assert_array_equal(found, expected)
    whole = run(DTWMatrix(rows, cols, warping), engine=fast_engine)
    assert_array_equal(whole[:, :4], expected)
    flipped = run(DTWMatrix(cols, rows, warping), engine=fast_engine)
    assert_array_equal(flipped, whole.T)
    nearest = run(DTWNeighbors(rows, cols, 2, warping=warping), engine=fast_engine)
    assert_array_equal(nearest.distances, np.sort(whole, axis=1)[:, :2])


@pytest.mark.parametrize("warping", among(OPTIONS), ids=str)
@pytest.mark.parametrize("length", [33, 130, 300])
def test_long_series_on_both_engines(fast_engine, make_series, warping, length):
    rows, cols = make_series(3, length, shortest=length // 2), make_series(40, length)
    expected = run(DTWMatrix(rows, cols, warping), engine="numba")
    check = reference.dtw(reference.unpadded(rows, 1), cols.values[5], **asdict(warping))
    assert expected[1, 5] == check
    assert_array_equal(run(DTWMatrix(rows, cols, warping), engine=fast_engine), expected)
    found = run(DTWNeighbors(rows, cols, 2, warping=warping), engine=fast_engine)
    assert_array_equal(found.indices, reference.nearest(expected, 2)[1])


@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_what_must_hold(make_series, cost):
    X = make_series(25, 20)

    def matrix(**options):
        return run(DTWMatrix(X, X, Warping(cost=cost, **options)), engine="numba")

    dtw, keeper = matrix(), matrix(metric="dog_keeper")
    # a wider band allows more paths; window 0 is the Euclidean (or city-block) distance
    previous = matrix(window=0)
    difference = np.abs(X.values[:, None, 0] - X.values[None, :, 0])
    lockstep = np.sqrt((difference**2).sum(-1)) if cost == "squared" else difference.sum(-1)
    np.testing.assert_allclose(previous, lockstep, rtol=1e-12, atol=1e-12)
    for window in (1, 3, 8, 19):
        band = matrix(window=window)
        assert np.all(band <= previous)
        previous = band
    assert_array_equal(previous, dtw)
    assert np.all(keeper <= dtw)
    assert_array_equal(keeper, keeper.T)
    # triangle inequality of the dog-keeper distance, for every triple
    assert np.all(keeper[:, None, :] <= (keeper[:, :, None] + keeper[None, :, :]) * (1 + 1e-12))
    for metric, whole in (("dtw", dtw), ("dog_keeper", keeper)):
        for alignment in ("subsequence", "supersequence"):
            assert np.all(matrix(metric=metric, alignment=alignment) <= whole)
        sub = matrix(metric=metric, alignment="subsequence")
        assert_array_equal(sub.T, matrix(metric=metric, alignment="supersequence"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "lcss"}, "metric='lcss' is not one of 'dtw', 'dog_keeper'"),
        ({"cost": "cubic"}, "cost='cubic' is not one of"),
        ({"alignment": "local"}, "alignment='local' is not one of"),
        ({"window": -1}, "window=-1 is negative"),
        ({"window": 1.5}, "window=1.5 is not a fraction"),
        ({"window": True}, "window=True is not a number"),
        ({"window": "wide"}, "window='wide' is not a number"),
        ({"window": 3, "alignment": "subsequence"}, "window=3 does not go with"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Warping(**options)


@pytest.mark.parametrize(
    ("window", "n", "m", "radius"),
    [(None, 5, 7, 7), (0, 5, 5, 0), (0, 5, 9, 4), (3, 9, 9, 3), (0.1, 128, 128, 13)]
    + [(0.04, 150, 150, 6), (0.07, 100, 100, 7), (0.99, 8, 8, 8), (0.0, 8, 8, 0)],
)
def test_radius(window, n, m, radius):
    assert Warping(window=window).radius(n, m) == radius
    expected = reference.band_radius(window, n, m)
    assert radius == (max(n, m) if expected is None else expected)


def test_without_a_window_pairs_of_all_lengths_have_one_radius():
    """Lanes whose bands differ would be looked at cell by cell."""
    n, m = np.array([[3], [9]]), np.array([2, 5, 7])
    assert_array_equal(Warping().radius(n, m), np.full((2, 3), 9))
    assert Warping().radius(4, np.empty(0, np.int64)).shape == (0,)


def test_options_travel_with_parts(make_series):
    warping = Warping("dog_keeper", "absolute")
    X = make_series(3, 5)
    tile = Tile(0, 2, 0, 3)
    pairs = np.array([[0, 1], [2, 2]])
    for work in (DTWMatrix(X, X, warping), DTWPairs(X, X, pairs, warping)):
        assert work.part(tile).warping == warping
    work = replace(DTWNeighbors(X, X, 1), warping=warping)
    assert work.part(tile).warping == warping


@pytest.mark.parametrize(
    "warping",
    among(Warping(*kind, 3) for kind in product(("dtw", "dog_keeper"), ("squared", "absolute"))),
    ids=str,
)
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("kind", ["walks", "near ties", "ties", "far away"])
def test_bounds_and_abandoning_change_nothing(fast_engine, rng, warping, channels, kind):
    """Enough candidates of one length for the cascade of the CPU engine."""
    X = np.cumsum(rng.normal(size=(300, channels, 40)), axis=2)
    Q = np.cumsum(rng.normal(size=(4, channels, 40)), axis=2)
    if kind == "near ties":
        X = X[:1] + 1e-9 * rng.normal(size=X.shape)
    if kind == "ties":
        X = X[rng.integers(0, 5, 300)]
    if kind == "far away":
        X += 1e6
    queries, candidates = (Series(V, np.full(len(V), 40)) for V in (Q, X))
    matrix = run(DTWMatrix(queries, candidates, warping), engine="numba")
    excluded = np.array([-1, 7, 0, 299])
    for n_neighbors in (1, 5):
        work = DTWNeighbors(queries, candidates, n_neighbors, excluded, warping=warping)
        found = run(work, engine=fast_engine)
        expected = reference.nearest(matrix, n_neighbors, excluded)
        assert_array_equal(found.indices, expected[1])
        assert_array_equal(found.distances, expected[0])


lengths_of = st.integers(1, 12)


@pytest.mark.long
@given(
    data=st.data(),
    n=lengths_of,
    lengths=st.lists(lengths_of, min_size=1, max_size=3),
    channels=st.integers(1, 3),
    warping=st.sampled_from(OPTIONS),
)
@settings(deadline=None, max_examples=300)
def test_bounds_are_at_most_the_distance(data, n, lengths, channels, warping):
    """Both bounds of the cascade, deflated, against certified distances of the same points."""
    finite = st.floats(-100, 100, width=32, allow_subnormal=False)
    x = data.draw(arrays(np.float32, (channels, n), elements=finite))
    m = max(lengths)
    values = np.zeros((len(lengths), channels, m), np.float32)
    for y, length in zip(values, lengths, strict=True):
        y[:, :length] = data.draw(arrays(np.float32, (channels, length), elements=finite))
    lengths = np.array(lengths)
    radius = int(warping.radius(n, lengths).max())
    # envelopes in a band, ranges of whole series without: the cascade has ranges in wide bands too
    whole = warping.window is None or data.draw(st.booleans())
    low, high = lower_bounds.envelopes(values, lengths, radius, 1 if whole else n)
    packed, packed_lengths = dtw.pack(values, lengths, dtw.LANES[np.float32])
    flags = dtw.Flags.of(warping, channels)
    ends = warping.alignment == "global"
    candidates = lower_bounds.BoundedSeries(packed, packed_lengths, values, low, high)
    bounds = lower_bounds.first_bounds(
        *(np.ascontiguousarray(x.T), candidates, radius),
        *(flags.multivariate, flags.squared, flags.largest, flags.free_columns, ends),
    )
    sides = [Series(np.zeros((1, channels, k)), np.array([k])) for k in (n, m)]
    deflation = lower_bounds.deflation(channels, DTWNeighbors(*sides, 1, warping=warping))
    assert 0.999 < deflation < 1
    for i, (y, length) in enumerate(zip(values, lengths, strict=True)):
        distance = reference.dtw(x.astype(float), y[:, :length].astype(float), **asdict(warping))
        cost = distance**2 if warping.squared else distance
        allowed = cost * (1 + 1e-12) + 1e-30
        assert bounds[i] * deflation <= allowed
        if ends:
            second = lower_bounds.second_bound(
                *(x, np.ascontiguousarray(y)[:, :length], low[i], high[i]),
                *(flags.squared, flags.largest),
            )
            assert second * deflation <= allowed


@pytest.mark.parametrize(
    ("warping", "channels"),
    among_cases([(w, 1) for w in OPTIONS] + [(w, 2) for w in OPTIONS[3::5]]),
    ids=str,
)
@pytest.mark.parametrize("kind", ["one length", "lengths"])
def test_the_cascade_with_every_option(rng, warping, channels, kind):
    """Long enough series, enough candidates, far and near: bounds must rule out some of them."""
    n, m = (60, 60) if kind == "one length" else (50, 60)
    X = np.cumsum(rng.normal(size=(200, channels, m)), axis=2) * rng.choice([1, 20], (200, 1, 1))
    Q = np.cumsum(rng.normal(size=(3, channels, n)), axis=2)
    lengths = (np.full(3, n), np.full(200, m))
    if kind == "lengths":
        lengths = rng.integers(25, n + 1, 3), rng.integers(25, m + 1, 200)
        for V, k in ((Q, lengths[0]), (X, lengths[1])):
            V[np.arange(V.shape[2]) >= k[:, None, None] + np.zeros((1, channels, 1))] = 0
    queries, candidates = Series(Q, lengths[0]), Series(X, lengths[1])
    matrix = run(DTWMatrix(queries, candidates, warping), engine="numba")
    excluded = np.array([-1, 7, 199])
    numba = find_engine("numba")
    for n_neighbors in (1, 4):
        work = DTWNeighbors(queries, candidates, n_neighbors, excluded, warping=warping)
        tile = Tile(0, 3, 0, 200)
        assert numba._worth_bounding(work, tile)
        found = run(work, engine="numba")
        expected = reference.nearest(matrix, n_neighbors, excluded)
        assert_array_equal(found.indices, expected[1])
        assert_array_equal(found.distances, expected[0])


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("radius", [0, 1, 4, 30])
def test_envelopes(rng, channels, radius):
    values = rng.normal(size=(5, channels, 20)).astype(np.float32)
    low, high = lower_bounds.envelopes(values, np.full(5, 20), radius, 20)
    for i in range(20):
        near = values[:, :, max(0, i - radius) : i + radius + 1]
        assert_array_equal(low[:, :, i], near.min(axis=2))
        assert_array_equal(high[:, :, i], near.max(axis=2))


@pytest.mark.parametrize("warping", among(OPTIONS), ids=str)
def test_no_series_as_long_as_the_array(fast_engine, make_series, warping):
    """The width of the arrays says nothing about bands: lengths do."""
    rows, cols = make_series(9, 90, shortest=20), make_series(40, 50, shortest=30)
    rows, cols = rows.take(np.flatnonzero(rows.lengths < 80)), cols.take(slice(1, None))
    expected = run(DTWMatrix(rows, cols, warping), engine="numba")
    assert expected[0, 3] == reference.dtw(
        reference.unpadded(rows, 0), reference.unpadded(cols, 3), **asdict(warping)
    )
    assert_array_equal(run(DTWMatrix(rows, cols, warping), engine=fast_engine), expected)
    found = run(DTWNeighbors(rows, cols, 2, warping=warping), engine=fast_engine)
    assert_array_equal(found.indices, reference.nearest(expected, 2)[1])


# --- bands of unequal lengths ------------------------------------------------------------------


def listed_as_series(arrays):
    """Series of any lengths, padded with zeros."""
    arrays = [np.atleast_2d(array) for array in arrays]
    values = np.zeros((len(arrays), arrays[0].shape[0], max(a.shape[1] for a in arrays)))
    for row, array in zip(values, arrays, strict=True):
        row[:, : array.shape[1]] = array
    return Series(values, np.array([a.shape[1] for a in arrays]))


@pytest.mark.parametrize("metric", ["dtw", "dog_keeper"])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("window", [11, 0.11, 0, 0.5])
def test_a_band_holds_beside_pairs_of_very_unequal_lengths(
    fast_engine, rng, metric, channels, window
):
    # 1 and 100 points: their band is wider than any matrix, those of other pairs are not
    arrays = [rng.normal(size=(channels, n)) for n in (4, 4, 24, 66, 1, 100, 32)]
    series, warping = listed_as_series(arrays), Warping(metric, window=window)
    expected = reference.pairwise_dtw(arrays, arrays, **asdict(warping))
    assert_array_equal(run(DTWMatrix(series, series, warping), engine=fast_engine), expected)
    found = run(DTWNeighbors(series, series, 3, np.arange(7), warping=warping), engine=fast_engine)
    nearest = reference.nearest(expected, 3, np.arange(7))
    assert_array_equal(found.indices, nearest[1])
    assert_array_equal(found.distances, nearest[0])


@pytest.mark.parametrize("seed", range(12))
def test_random_lengths_windows_and_options(fast_engine, seed):
    rng = np.random.default_rng(1000 + seed)
    for _ in range(3):
        channels = int(rng.integers(1, 4))
        longest = int(rng.choice([2, 5, 40, 68, 100]))
        shortest = int(rng.choice([1, max(1, longest - 6)]))
        sides = [
            [rng.normal(size=(channels, n)) for n in rng.integers(shortest, longest + 1, count)]
            for count in (4, 5)
        ]
        windows = (int(rng.integers(0, longest + 2)), float(rng.random()), float(rng.random() / 9))
        warping = Warping(
            metric=str(rng.choice(["dtw", "dog_keeper"])),
            cost=str(rng.choice(["squared", "absolute"])),
            window=windows[int(rng.integers(3))],
        )
        expected = reference.pairwise_dtw(*sides, **asdict(warping))
        rows, cols = map(listed_as_series, sides)
        assert_array_equal(run(DTWMatrix(rows, cols, warping), engine=fast_engine), expected)
        nearest = reference.nearest(expected, 2)
        for precision in ("auto", "float64"):
            work = DTWNeighbors(rows, cols, 2, precision=precision, warping=warping)
            found = run(work, engine=fast_engine)
            assert_array_equal(found.indices, nearest[1])
            assert_array_equal(found.distances, nearest[0])
        pairs = np.array(list(product(range(4), range(5))))
        found = run(DTWPairs(rows, cols, pairs, warping), engine=fast_engine)
        assert_array_equal(found, expected.ravel())


@pytest.mark.parametrize("type", ["float", "double"])
@pytest.mark.parametrize("longest", [4, 100, 101, 400])
def test_kernels_mask_every_band_that_leaves_out_a_cell(type, longest):
    lengths = np.array([1, longest])
    for window in (0, 1, longest - 3, longest - 2, longest - 1, 0.5, 1.0):
        warping = Warping(window=window)
        width = -(-longest // 4) * 4
        reach = warping.largest_radius(lengths, lengths)
        kernel, _ = choose_dtw(type, 1, width, width, warping, reach)
        if warping.radius(longest, longest) < longest - 1:
            assert isinstance(kernel, BandKernel) or kernel.band


# --- windows as numbers of any kind ------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    [
        np.float32(0.2),
        np.float16(0.3),
        np.longdouble(0.1),
        np.int8(3),
        np.uint64(9),
    ],
    ids=repr,
)
def test_a_window_is_a_plain_number_for_every_engine(engine, rng, window):
    plain = int(window) if isinstance(window, np.integer) else float(window)
    warping = Warping(window=window)
    assert type(warping.window) is type(plain)
    assert warping == Warping(window=plain)
    arrays = [rng.normal(size=n) for n in (40, 33, 12, 5)]
    series = listed_as_series(arrays)
    expected = reference.pairwise_dtw(arrays, arrays, window=plain)
    assert_array_equal(run(DTWMatrix(series, series, warping), engine=engine), expected)
    assert pairwise_dtw(arrays, window=window, engine=engine).tolist() == expected.tolist()
    model = DTWNearestNeighbor(window=window, engine=engine).fit(arrays, [0, 1, 0, 1])
    nearest = reference.nearest(expected, 1, np.arange(4))
    assert_array_equal(model.kneighbors()[1], nearest[1])


def test_a_whole_share_and_one_point_are_told_apart(fast_engine, rng):
    """1.0 equals 1, which a GPU took for a choice that it remembered: both bands have 17 points."""
    lengths = [1, 18, 4, 2, 5, 1, 4, 1, 1]
    arrays = [rng.normal(size=(2, n)) for n in lengths]
    shorter = [x[:, :17] for x in arrays]
    for some, window in ((shorter, 1.0), (arrays, 1), (arrays, 1.0), (shorter, 1)):
        expected = reference.pairwise_dtw(some, some, window=window)
        assert_array_equal(pairwise_dtw(some, window=window, engine=fast_engine), expected)
    assert Warping(window=1.0) == Warping(window=np.float32(1)) == Warping()
    assert Warping(window=1) != Warping()


@pytest.mark.parametrize("window", [10**30, 2**63, 2**31, 10**9, np.uint64(2**64 - 1)], ids=str)
def test_windows_beyond_all_lengths_are_no_limit(engine, rng, window):
    arrays = [rng.normal(size=n) for n in (40, 33, 12, 1)]
    series, warping = listed_as_series(arrays), Warping(window=window)
    expected = reference.pairwise_dtw(arrays, arrays)
    assert_array_equal(run(DTWMatrix(series, series, warping), engine=engine), expected)
    found = run(DTWNeighbors(series, series, 2, warping=warping), engine=engine)
    assert_array_equal(found.indices, reference.nearest(expected, 2)[1])
    x, y = series.take(slice(1)), series.take(slice(1, 2))
    path, distance = run(DTWPath(x, y, warping), engine=engine)
    assert distance == expected[0, 1]
    assert_array_equal(path, reference.dtw_path(*arrays[:2])[0])
    equal = rng.normal(size=(6, 9))
    widest = dtw_window_search(equal, [0, 1] * 3, windows=[0, window], engine=engine)
    plain = dtw_window_search(equal, [0, 1] * 3, windows=[0, 8], engine=engine)
    assert_array_equal(widest.errors, plain.errors)


# --- scales ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("exponent", [-400, -300, 300, 400])
@pytest.mark.parametrize("warping", among(OPTIONS[::5]), ids=str)
def test_powers_of_two_scale_distances_and_nothing_else(fast_engine, rng, warping, exponent):
    rows = Series(rng.normal(size=(4, 2, 30)), np.full(4, 30))
    cols = Series(np.concatenate([rng.normal(size=(90, 2, 30)), rows.values]), np.full(94, 30))
    scaled = [Series(np.ldexp(side.values, exponent), side.lengths) for side in (rows, cols)]

    def everything(rows, cols):
        work = [DTWMatrix(rows, cols, warping)]
        for precision in ("auto", "float64"):
            work.append(DTWNeighbors(rows, cols, 5, precision=precision, warping=warping))
        path = run(DTWPath(rows.take(slice(1)), cols.take(slice(1)), warping), engine=fast_engine)
        return [run(each, engine=fast_engine) for each in work], path

    (matrix, *found), path = everything(rows, cols)
    (scaled_matrix, *scaled_found), scaled_path = everything(*scaled)
    assert_array_equal(scaled_matrix, np.ldexp(matrix, exponent))
    for one, other in zip(found, scaled_found, strict=True):
        assert_array_equal(other.indices, one.indices)
        assert_array_equal(other.distances, np.ldexp(one.distances, exponent))
    assert scaled_path.distance == np.ldexp(path.distance, exponent)
    assert_array_equal(scaled_path.path, path.path)


@pytest.mark.filterwarnings("error")
def test_queries_and_candidates_of_different_scales(fast_engine, rng):
    # float32 holds the differences of none of these
    base = rng.normal(size=(70, 1, 20))
    for rows, cols in product((-480, -100, 0, 100, 479), repeat=2):
        queries = Series(np.ldexp(base[:3], rows - 2), np.full(3, 20))
        candidates = Series(np.ldexp(base[3:], cols - 2), np.full(67, 20))
        expected = run(DTWMatrix(queries, candidates), engine="numba")
        found = run(DTWNeighbors(queries, candidates, 2), engine=fast_engine)
        nearest = reference.nearest(expected, 2)
        assert_array_equal(found.indices, nearest[1])
        assert_array_equal(found.distances, nearest[0])
