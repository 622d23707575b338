"""Radius searches: every engine against the oracle, same candidates, same bits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import reference
from elastic_cases import among
from numpy.testing import assert_array_equal
from reference_rotation import rotation_distance

from skts import config_context
from skts.engines import (
    DTWMatrix,
    DTWRadiusNeighbors,
    RotationRadiusNeighbors,
    Series,
    Tile,
    Warping,
    find_engine,
    get_engine,
    run,
)
from skts.engines.core.certify import Bound
from skts.engines.core.radius import Within, WithinSoFar, pieces_from_end, within
from skts.engines.core.verify import Sample
from skts.engines.numba.elastic.lower_bounds import cost_within
from skts.exceptions import VerificationError


def listed(series):
    return [reference.unpadded(series, i) for i in range(len(series))]


def expected_of(matrix, radius, excluded=None):
    """Candidates and distances of each row, in plain loops."""
    indices, distances = [], []
    for i, row in enumerate(matrix):
        near = [
            j
            for j in range(len(row))
            if row[j] <= radius and (excluded is None or excluded[i] != j)
        ]
        indices.append(near)
        distances.append([row[j] for j in near])
    return indices, distances


def assert_within(engine, work, matrix):
    found = run(work, engine=engine)
    indices, distances = expected_of(matrix, work.radius, work.excluded)
    assert_array_equal(found.starts, np.cumsum([0] + [len(row) for row in indices]))
    assert_array_equal(found.indices, [one for row in indices for one in row])
    if getattr(work, "distances", True):
        assert_array_equal(found.distances, [one for row in distances for one in row])
    else:
        assert found.distances is None
    assert found.indices.dtype == found.starts.dtype == np.int64


def radii(matrix):
    """Distances themselves, values just below and above, and the ends."""
    some = np.quantile(matrix, [0.0, 0.3, 0.7], method="nearest")
    return [0.0, *some, *np.nextafter(some, 0), *(some * (1 + 1e-9)), np.inf]


WARPINGS = [
    Warping(),
    Warping(window=2),
    Warping(window=0.3),
    Warping(window=0.3, cost="absolute"),
    Warping("dog_keeper"),
    Warping("dog_keeper", "absolute", 0),
    Warping(alignment="subsequence"),
    Warping("dog_keeper", alignment="supersequence"),
    Warping("dog_keeper", "absolute", alignment="supersequence"),
]


@pytest.mark.parametrize("warping", among(WARPINGS), ids=str)
@pytest.mark.parametrize(("channels", "shortest"), [(1, None), (2, 1)])
def test_it_finds_all_that_the_oracle_does(fast_engine, make_series, warping, channels, shortest):
    queries = make_series(4, 9, channels, shortest=shortest)
    candidates = make_series(12, 11, channels, shortest=shortest)
    options = {"metric": warping.metric, "cost": warping.cost, "window": warping.window}
    options["alignment"] = warping.alignment
    matrix = reference.pairwise_dtw(listed(queries), listed(candidates), **options)
    excluded = np.array([3, -1, 99, 0])
    for radius in radii(matrix):
        for precision, distances in (("auto", True), ("float64", True), ("auto", False)):
            work = DTWRadiusNeighbors(
                *(queries, candidates, radius, excluded, precision, warping), distances=distances
            )
            assert_within(fast_engine, work, matrix)


@pytest.mark.parametrize("warping", [Warping(), Warping(window=0.1)], ids=str)
def test_bounds_lose_nothing(fast_engine, make_series, warping):
    """Enough candidates and points that most are ruled out by their bounds."""
    queries, candidates = make_series(3, 40, shortest=30), make_series(300, 44, shortest=20)
    candidates.values[250:] = candidates.values[:50] * (1 + 1e-9)
    matrix = run(DTWMatrix(queries, candidates, warping), engine="numba")
    for radius in radii(matrix):
        for distances in (True, False):
            work = DTWRadiusNeighbors(
                queries, candidates, radius, None, "auto", warping, distances=distances
            )
            assert_within(fast_engine, work, matrix)


def test_bounds_keep_copies_at_radius_0(fast_engine, rng):
    """Intervals of their estimates and the radius meet at 0."""
    values = rng.normal(size=(130, 22))
    work = DTWRadiusNeighbors(Series.of(values[[7, 99]]), Series.of(values), 0.0)
    found = run(work, engine=fast_engine)
    assert_array_equal(found.indices, [7, 99])
    assert_array_equal(found.distances, [0.0, 0.0])


def test_parts_that_match_begin_beyond_a_strip(fast_engine):
    """Nothing before column 64 is near, and a path may still begin behind it."""
    query, values = np.array([0.0, 1.0, 0.0, 2.0]), np.full((130, 72), 9.0)
    values[5, 66:70] = query
    work = DTWRadiusNeighbors(
        Series.of(query[None]), Series.of(values), 1.0, warping=Warping(alignment="subsequence")
    )
    found = run(work, engine=fast_engine)
    assert_array_equal(found.indices, [5])
    assert_array_equal(found.distances, [0.0])


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-9, 1e-7])
def test_near_ties_at_the_radius(fast_engine, rng, gap):
    """Hundreds of candidates that float32 cannot tell from the radius: far more than k would be."""
    base = rng.normal(size=40)
    candidates = Series.of(base + gap * rng.normal(size=(400, 40)))
    queries = Series.of(rng.normal(size=(2, 40)))
    matrix = run(DTWMatrix(queries, candidates), engine="numba")
    for radius in (float(np.median(matrix[0])), float(matrix[1].max())):
        for distances in (True, False):
            work = DTWRadiusNeighbors(queries, candidates, radius, distances=distances)
            assert_within(fast_engine, work, matrix)


@pytest.mark.parametrize(
    ("scale", "offset"), [(1.0, 1e8), (1e-6, 0.0), (1e-100, 0.0), (1e100, 0.0), (1e-9, 1.0)]
)
def test_scales_and_offsets(fast_engine, make_series, scale, offset):
    queries = make_series(4, 30, scale=scale, offset=offset)
    candidates = make_series(140, 30, scale=scale, offset=offset)
    queries.values[1] *= 1e30
    queries.values[2] *= 1e-30
    matrix = run(DTWMatrix(queries, candidates), engine="numba")
    for radius in (float(np.median(matrix[0])), float(np.median(matrix[1])), np.inf):
        assert_within(fast_engine, DTWRadiusNeighbors(queries, candidates, radius), matrix)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_points(engine, rng, n):
    X = Series.of(rng.integers(0, 3, (9, n)))
    matrix = reference.pairwise_dtw(listed(X), listed(X))
    for radius in (0.0, 1.0, np.sqrt(2)):
        assert_within(engine, DTWRadiusNeighbors(X, X, radius, np.arange(9)), matrix)


def test_constants_denormals_and_underflow(fast_engine, rng):
    values = np.repeat(rng.integers(-2, 3, 140)[:, None].astype(float), 40, axis=1)
    values[::7] *= 5e-324
    values[3::7] *= 1e-165
    X = Series.of(values)
    matrix = run(DTWMatrix(X, X), engine="numba")
    for radius in (0.0, 5e-324, 1e-170, 6.3e-165, 1.0):
        assert_within(fast_engine, DTWRadiusNeighbors(X, X, radius, np.arange(140)), matrix)


def test_float32_precision_is_close(fast_engine, make_series):
    queries, candidates = make_series(6, 50), make_series(80, 50)
    exact = run(DTWRadiusNeighbors(queries, candidates, 4.0), engine="numba")
    work = DTWRadiusNeighbors(queries, candidates, 4.0, precision="float32")
    rough = run(work, engine=fast_engine)
    assert_array_equal(rough.indices, exact.indices)
    np.testing.assert_allclose(rough.distances, exact.distances, rtol=1e-5)


def test_batches_tiles_and_threads_change_nothing(fast_engine, make_series):
    queries, candidates = make_series(30, 40, shortest=10), make_series(300, 45, shortest=10)
    work = DTWRadiusNeighbors(queries, candidates, 5.0, np.arange(30))
    matrix = run(DTWMatrix(queries, candidates), engine="numba")
    assert_within(fast_engine, work, matrix)
    assert len(work.batches(2**22)) > 1
    for rows, cols in ((30, 128), (2, 300), (1, 64)):
        with config_context(memory=sum(get_engine(fast_engine).footprint(work, rows, cols))):
            assert_within(fast_engine, work, matrix)
    with config_context(memory=2**24):
        assert_within(fast_engine, work, matrix)


def test_distances_are_told_unless_nobody_asks_for_them():
    X = Series.of(np.arange(6.0).reshape(2, 3))
    asked, unasked = DTWRadiusNeighbors(X, X, 1.0), DTWRadiusNeighbors(X, X, 1.0, distances=False)
    assert run(asked, engine="oracle").distances.tolist() == [0, 0]
    assert run(unasked, engine="oracle").distances is None


def test_batches_have_one_query_at_least():
    work = DTWRadiusNeighbors(Series.of(np.zeros((3, 1))), Series.of(np.zeros((2, 1))), 1.0)
    assert work.batches(1) == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert work.batches(2**30) == [slice(0, 3)]


def test_batches_are_put_behind_each_other():
    work = DTWRadiusNeighbors(Series.of(np.zeros((3, 1))), Series.of(np.zeros((2, 1))), 1.0)
    first = Within(np.array([1.0, 2]), np.array([0, 1]), np.array([0, 2]))
    second = Within(np.array([3.0]), np.array([1]), np.array([0, 0, 1]))
    found = work.gather([(slice(1, 3), second), (slice(0, 1), first)])
    assert_array_equal(found.starts, [0, 2, 2, 3])
    assert_array_equal(found.indices, [0, 1, 1])
    assert_array_equal(found.distances, [1, 2, 3])
    bare = [(slice(0, 1), first._replace(distances=None))]
    assert work.gather(bare).distances is None


def test_batches_are_held_once():
    """Neither what is put together nor the rows that it is cut into take the memory of it twice."""
    n_batches, size = 200, 10_000
    work = DTWRadiusNeighbors(Series.of(np.zeros((n_batches, 1))), Series.of(np.zeros((2, 1))), 1.0)

    # not the peak: NumPy 2.5 says for a moment that an array that grows in its place is there twice
    held = []

    def look(value):
        held.append(tracemalloc.get_traced_memory()[0])
        return value

    def answers():
        for i in range(n_batches):
            found = Within(np.full(size, i / 8), np.arange(size) + i, np.array([0, size]))
            yield look((slice(i, i + 1), found))

    whole = 16 * n_batches * size
    tracemalloc.start()
    try:
        found = look(work.gather(answers()))
        assert found.indices.size == found.distances.size == n_batches * size
        copies = [
            look((row, run.copy()))
            for values in (found.distances, found.indices)
            for row, run in pieces_from_end(values, found.starts)
        ]
    finally:
        tracemalloc.stop()
    assert whole <= max(held) <= 1.1 * whole
    assert [row for row, _ in copies] == 2 * list(range(n_batches))[::-1]
    assert_array_equal(copies[0][1], np.full(size, (n_batches - 1) / 8))
    assert_array_equal(copies[-1][1], np.arange(size))


def test_within_keeps_what_its_bound_allows():
    estimates = np.array([[1.0, 2.0, np.inf, 3.0], [0.5, 9.0, 2.1, np.nan]])
    bound = Bound(0.9, 1.1, 0.1)
    found = within(estimates, 2.0, bound, np.array([0, 7]))
    assert_array_equal(found.rows, [0, 0, 1, 1, 1])
    assert_array_equal(found.cols, [1, 2, 0, 2, 3])
    total = WithinSoFar(2.0)
    assert [part.size for part in total.together()] == [0] * 4
    total.add((10, 20), found)
    query, candidate, _, sure = total.together()
    assert_array_equal(query, [10, 10, 11, 11, 11])
    assert_array_equal(candidate, [21, 22, 20, 22, 23])
    assert_array_equal(sure, [False, False, True, False, False])


@pytest.mark.parametrize("squared", [True, False])
def test_limits_of_costs_are_above_all_estimates_that_may_be_within(rng, squared):
    bound = Bound(1 - 1e-5, 1 + 1e-5, 1e-7)
    radius = 1.5
    limit = cost_within(radius, bound, 0.25, squared=squared)
    estimates = radius * (1 + rng.uniform(-1e-4, 1e-4, 10_000))
    costs = estimates * 0.25
    costs = (costs * costs if squared else costs).astype(np.float32)
    beyond = costs > limit
    assert 0 < beyond.sum() < beyond.size
    again = (np.sqrt(costs, dtype=np.float64) if squared else np.float64(costs)) / 0.25
    assert np.all(bound.lower(again[beyond]) > radius)
    assert cost_within(np.inf, bound, 1.0, squared=squared) == np.inf
    assert cost_within(1e300, bound, 1.0, squared=squared) == np.inf


@pytest.mark.parametrize(
    "warping",
    [Warping(), Warping(window=0), Warping(cost="absolute"), Warping("dog_keeper", window=2)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["walks", "ties", "channels", "constant"])
def test_rotation(fast_engine, rng, warping, kind):
    values = {
        "walks": rng.normal(size=(7, 12)).cumsum(axis=1),
        "ties": rng.integers(0, 2, (9, 8)).astype(float),
        "channels": rng.normal(size=(5, 3, 7)),
        "constant": np.repeat([[1.0], [2.0], [1.0]], 6, axis=1),
    }[kind]
    series = Series.of(values)
    queries = series.take(slice(0, 3))
    options = {"metric": warping.metric, "cost": warping.cost, "window": warping.window}
    matrix = np.array(
        [[rotation_distance(x, y, **options) for y in series.values] for x in queries.values]
    )
    for radius in radii(matrix):
        for excluded in (None, np.arange(3)):
            work = RotationRadiusNeighbors(queries, series, radius, excluded, warping)
            assert_within(fast_engine, work, matrix)


def test_rotation_refuses_what_it_refuses_elsewhere(make_series):
    series = make_series(3, 6)
    with pytest.raises(ValueError, match="does not go with alignment='subsequence'"):
        RotationRadiusNeighbors(series, series, 1.0, None, Warping(alignment="subsequence"))


def test_verification_sees_what_is_lost_and_what_is_too_much(make_series, monkeypatch):
    queries, candidates = make_series(3, 9), make_series(12, 9)
    radius = float(np.median(run(DTWMatrix(queries, candidates), engine="numba")))
    for kind in (DTWRadiusNeighbors, RotationRadiusNeighbors):
        work = kind(queries, candidates, radius)
        engine = find_engine("numba")
        with config_context(verify=True):
            run(work, engine=engine)
        none = engine.compute(work, Tile(0, 3, 0, 12), np.zeros(1, np.uint8))
        none = none._replace(**{name: getattr(none, name)[:0] for name in none._fields[:3]})
        with monkeypatch.context() as patch, config_context(verify=True):
            patch.setattr(type(engine), work.method, lambda *_, none=none: none)
            with pytest.raises(VerificationError):
                run(work, engine=engine)
        found = run(work)
        far = np.setdiff1d(np.arange(12), found.indices[: found.starts[1]])
        more = np.insert(found.indices, 0, far[0]), np.insert(found.distances, 0, 0.0)
        wrong = Within(more[1], more[0], np.append(0, found.starts[1:] + 1))
        assert not all(check.holds for check in work.verify(wrong, Sample(work)))
