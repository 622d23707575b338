"""k-Shape work on every engine against plain loops: distances, shifts, labels, centres."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skts import config_context
from skts.engines import (
    SBDAssign,
    SBDCenters,
    SBDMatrix,
    ShapeDistances,
    Shapes,
    Tile,
    find_engine,
    run,
)
from skts.engines.core.constants import TIE, UNCLEAR
from skts.engines.families.kshape import centers as centers_work
from skts.engines.families.kshape.centers import Centers
from skts.engines.families.kshape.distances import Assignment
from skts.engines.families.kshape.eigenvectors import krylov
from skts.engines.numba.kshape import members as members_on_the_cpu
from skts.engines.numba.kshape import sbd as sbd_on_the_cpu
from tests import reference_sbd as reference


def shapes(rng, n_series, n_timepoints, n_channels=1, centered=True):
    values = rng.normal(size=(n_series, n_channels, n_timepoints)).cumsum(axis=2)
    if centered:
        values -= values.mean(axis=2, keepdims=True)
    return Shapes.of(values)


@pytest.fixture(params=["written down", "where they lie"])
def members(request, monkeypatch):
    """Members of a cluster as a matrix, as few are, and read by kernels."""
    most = {"written down": 1 << 20, "where they lie": 0}[request.param]
    monkeypatch.setattr(members_on_the_cpu, "FEW", most)


def assert_same_centers(found, expected):
    assert_allclose(found, expected, rtol=0, atol=1e-8 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize(
    ("n_timepoints", "n_channels"),
    [(1, 1), (2, 1), (3, 1), (7, 2), (16, 1), (31, 1), (33, 3), (50, 1)],
)
def test_distances_and_shifts(engine, rng, n_timepoints, n_channels):
    X = shapes(rng, 11, n_timepoints, n_channels, centered=n_timepoints > 2)
    C = shapes(rng, 5, n_timepoints, n_channels, centered=n_timepoints > 2)
    found = run(SBDMatrix(X, C), engine=engine)
    distances, shifts = reference.pairwise_sbd(X.values, C.values)
    assert_allclose(found.distances, distances, rtol=0, atol=1e-12)
    assert_array_equal(found.shifts, shifts)
    assert found.shifts.dtype == np.int32
    assigned = run(SBDAssign(X, C), engine=engine)
    labels, shifts, distances = reference.assign(X.values, C.values)
    assert_array_equal(assigned.labels, labels)
    assert_array_equal(assigned.shifts, shifts)
    assert_allclose(assigned.distances, distances, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_timepoints", [1, 2, 3])
def test_the_last_of_an_even_number_of_short_series(fast_engine, rng, n_timepoints):
    """Two series lie in one transform; the threads of a short one are fewer than these."""
    X, C = (shapes(rng, n, n_timepoints, 1, centered=False) for n in (4, 3))
    found = run(SBDMatrix(X, C), engine=fast_engine)
    distances, shifts = reference.pairwise_sbd(X.values, C.values)
    assert_allclose(found.distances, distances, rtol=0, atol=1e-12)
    assert_array_equal(found.shifts, shifts)


@pytest.mark.gpu
def test_more_short_series_and_centers_than_a_block_has_on_a_gpu(rng, monkeypatch):
    from skts.engines.cupy import launch
    from skts.engines.cupy.kshape import sbd

    X, C = shapes(rng, 701, 8).values, shapes(rng, 11, 8).values
    X[5], C[3] = 0.0, 0.0
    # many shifts of these tie
    X[::50] = C[::4] = np.array([1.0, -1.0] * 4)
    X, C = Shapes.of(X), Shapes.of(C)
    found = run(SBDMatrix(X, C), engine="cupy")
    distances, shifts = reference.pairwise_sbd(X.values, C.values)
    assert_allclose(found.distances, distances, rtol=0, atol=1e-12)
    assert_array_equal(found.shifts, shifts)
    # their centres: part by part, or all at once, or again by what was kept, and by a graph
    monkeypatch.setattr(launch, "WORTH_A_GRAPH", 2)
    expected = found.assign()
    monkeypatch.setattr(sbd, "PART", 200)
    in_parts = run(SBDAssign(X, C), engine="cupy")
    monkeypatch.setattr(sbd, "PART", 2**19)
    for assigned in [in_parts, *(run(SBDAssign(X, C), engine="cupy") for _ in range(4))]:
        for one, other in zip(assigned, expected, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("n_timepoints", [40, 41, 112, 600])
@pytest.mark.parametrize("shift", [-17, -1, 0, 1, 30])
def test_planted_shifts_are_found_with_their_sign(fast_engine, rng, n_timepoints, shift):
    bump = np.zeros(n_timepoints)
    bump[17 : n_timepoints - 30 if n_timepoints > 60 else 24] = 1.0
    bump[17:24] += np.arange(7)
    if n_timepoints < 60 and shift == 30:
        shift = 10
    # c is x moved to the right: x has to move by as much to match it
    x, c = (Shapes.of(v[None, None]) for v in (bump, np.roll(bump, shift)))
    found = run(SBDMatrix(x, c), engine=fast_engine)
    assert found.shifts[0, 0] == shift
    assert found.distances[0, 0] < 1e-12


def test_ties_take_the_shortest_shift_then_the_one_to_the_left(engine):
    n = 24
    x, two, far = np.zeros((3, n))
    x[12] = 1.0
    two[[8, 16]] = 1.0
    far[[9, 16]] = 1.0
    X, C = (Shapes.of(np.array(v)[:, None]) for v in ([x], [two, far]))
    found = run(SBDMatrix(X, C), engine=engine)
    assert_array_equal(found.shifts, [[-4, -3]])
    # within 1e-9 is a tie, beyond is not
    for excess, expected in ((0.9e-9, -4), (1.1e-9, 4)):
        two[16] = 1 + excess * np.sqrt(2)
        found = run(SBDMatrix(X, Shapes.of(two[None, None])), engine=engine)
        assert found.shifts[0, 0] == expected


@pytest.mark.parametrize("transform", ["in one block", "long"])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_a_tie_does_not_depend_on_the_company(
    fast_engine, rng, monkeypatch, transform, place
):
    """A quiet series shares its transform, and the rounding errors of that, with a loud one."""
    if fast_engine == "cupy" and transform == "long":
        monkeypatch.setattr("skts.engines.cupy.kshape.sbd.transform_for", lambda n: None)
    n, steps = 24, np.arange(-9, 10, 2) * 32
    X, C = np.zeros((2, 1, n)), np.zeros((steps.size, 1, n))
    X[place, 0, 12], X[1 - place] = 1.0, 1e3 * rng.normal(size=n)
    C[:, 0, 8] = 1.0
    C[:, 0, 16] = 1.0 + 1e-9 * np.sqrt(2) + steps * 2.0**-52
    found = run(SBDMatrix(Shapes.of(X), Shapes.of(C)), engine=fast_engine)
    assert_array_equal(found.shifts[place], np.where(steps < 0, -4, 4))


def test_ties_of_centers_take_the_lowest_index(engine, rng):
    C = shapes(rng, 3, 20).values
    C = np.concatenate([C, C[1:2] * 2.0, C[:1]])
    X = Shapes.of(C[[3, 4, 2]] * 3.0)
    assert_array_equal(run(SBDAssign(X, Shapes.of(C)), engine=engine).labels, [1, 0, 2])


def test_series_of_zeros_are_at_distance_one_without_shift(engine, rng):
    X, C = shapes(rng, 4, 12).values, shapes(rng, 3, 12).values
    X[1] = 0.0
    C[2] = 0.0
    found = run(SBDMatrix(Shapes.of(X), Shapes.of(C)), engine=engine)
    assert_array_equal(found.distances[1], 1.0)
    assert_array_equal(found.shifts[1], 0)
    assert_array_equal(found.distances[:, 2], 1.0)
    assert_array_equal(found.shifts[:, 2], 0)
    assert run(SBDAssign(Shapes.of(X), Shapes.of(C)), engine=engine).labels[1] == 0


@pytest.mark.usefixtures("members")
@pytest.mark.parametrize(
    ("n_series", "n_timepoints", "n_channels", "centered"),
    [
        (12, 2, 1, False),
        (30, 3, 1, True),
        (40, 20, 1, True),
        (40, 20, 3, True),
        (60, 90, 1, True),
        (9, 90, 1, True),
        (9, 50, 2, True),
        (200, 70, 1, True),
    ],
)
def test_centers(engine, rng, n_series, n_timepoints, n_channels, centered):
    X = shapes(rng, n_series, n_timepoints, n_channels, centered)
    labels = rng.integers(0, 3, n_series).astype(np.int32)
    shifts = rng.integers(1 - n_timepoints, n_timepoints, n_series).astype(np.int32)
    shifts[::2] //= 4
    expected = reference.centers(X.values, labels, shifts, 3, centered)
    for previous in (None, shapes(rng, 3, n_timepoints, n_channels).values, expected):
        work = SBDCenters(X, labels, shifts, 3, previous, centered)
        assert_same_centers(run(work, engine=engine).values, expected)


@pytest.mark.usefixtures("members")
def test_members_are_aligned_in_the_direction_of_their_shifts(engine):
    n = 30
    shape = np.sin(np.arange(n)) * (np.abs(np.arange(n) - 15) < 5)
    shifts = np.array([0, 3, -4], np.int32)
    X = Shapes.of(np.array([np.roll(shape, -s) for s in shifts])[:, None])
    (center,) = run(SBDCenters(X, np.zeros(3, np.int32), shifts, 1), engine=engine).values
    expected = shape - shape.mean()
    assert_allclose(center[0], expected / expected.std(), atol=1e-10)


@pytest.mark.usefixtures("members")
@pytest.mark.parametrize("n_timepoints", [20, 80])
def test_centers_of_one_series_of_none_and_of_zeros(engine, rng, n_timepoints):
    X = shapes(rng, 4, n_timepoints).values
    X[2:] = 0.0
    labels = np.array([0, 0, 2, 2], np.int32)
    work = SBDCenters(Shapes.of(X), labels, np.zeros(4, np.int32), 4)
    found = run(work, engine=engine).values
    assert_same_centers(found, reference.centers(X, labels, np.zeros(4, int), 4))
    assert not found[1:].any()
    alone = SBDCenters(Shapes.of(X[:1]), np.zeros(1, np.int32), np.zeros(1, np.int32), 1)
    assert_allclose(run(alone, engine=engine).values[0], X[0] / X[0].std(), atol=1e-10)


@pytest.mark.usefixtures("members")
@pytest.mark.parametrize("n_timepoints", [16, 96])
def test_degenerate_eigenvalues_take_the_projection_of_the_sum(engine, rng, n_timepoints):
    basis = np.linalg.qr(rng.normal(size=(n_timepoints, 4)))[0].T
    basis -= basis.mean(axis=1, keepdims=True)
    basis = np.linalg.qr(basis.T)[0].T
    # three equal eigenvalues, then opposite members whose sum is nothing
    for rows in (basis[:3], np.concatenate([basis[:3], -basis[:3]]), basis[[0, 1, 1, 0]]):
        X = Shapes.of(np.ascontiguousarray(rows[:, None]))
        zeros = np.zeros(len(rows), np.int32)
        found = run(SBDCenters(X, zeros, zeros, 1), engine=engine).values
        assert_same_centers(found, reference.centers(X.values, zeros, zeros, 1))


@pytest.mark.usefixtures("members")
def test_a_sum_at_rounding_level_takes_the_sign_of_the_first_member(engine, rng):
    X = shapes(rng, 5, 80).values
    X = np.concatenate([-X, X])
    zeros = np.zeros(10, np.int32)
    (center,) = run(SBDCenters(Shapes.of(X), zeros, zeros, 1), engine=engine).values
    assert np.sum(center * X[0]) > 0
    assert_same_centers(center, reference.centers(X, zeros, zeros, 1)[0])


@pytest.mark.usefixtures("members")
def test_close_eigenvalues_are_told_apart(fast_engine, rng):
    n = 120
    basis = rng.normal(size=(12, n))
    basis -= basis.mean(axis=1, keepdims=True)
    basis = np.linalg.qr(basis.T)[0].T
    weights = np.sqrt(np.concatenate([[1.0, 1 - 1e-5], np.linspace(0.99, 0.5, 10)]))
    X = np.ascontiguousarray((basis * weights[:, None])[:, None])
    zeros = np.zeros(12, np.int32)
    (center,) = run(SBDCenters(Shapes.of(X), zeros, zeros, 1), engine=fast_engine).values
    assert abs(abs(center[0] @ basis[0]) / np.sqrt(n) - 1) < 1e-9


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_members_that_are_written_down_are_those_that_kernels_read(rng, n_channels, centered):
    n = 9
    X = rng.normal(size=(30, n_channels, n))
    X[3, 0], X[4], X[5] = 2.0, 0.0, X[5] * 2.0**300
    labels = np.zeros(30, np.int32)
    shifts = rng.integers(1 - n, n, 30).astype(np.int32)
    shifts[:7] = 0, 1 - n, n - 1, 0, 0, 2, -2
    work = SBDCenters(Shapes.of(X), labels, shifts, 1, None, centered)
    each = work.members(0)
    few = members_on_the_cpu.FewMembers(work, each)
    read = members_on_the_cpu.Members(work, each, np.zeros(1, np.uint8))
    assert work.series.flat.any()
    assert_array_equal(few.rows(0, 30), read.rows(0, 30))
    assert_array_equal(few.rows(7, 9), read.rows(7, 9))
    assert_allclose(few.sum(), read.sum(), rtol=1e-14, atol=1e-14 * np.abs(read.sum()).max())
    vectors = rng.normal(size=(2, n_channels * n))
    product = read.product(vectors)
    assert_allclose(few.product(vectors), product, rtol=0, atol=1e-14 * np.abs(product).max())


def test_krylov_says_when_it_is_not_there(rng):
    values = np.linspace(1.0, 0.999, 300)
    start = rng.normal(size=(2, 300))
    assert not krylov(lambda v: v * values, start, 16)[2]
    found, vectors, settled = krylov(lambda v: v * values, start, 302)
    assert settled
    assert_allclose(found[0], 1.0, rtol=1e-13)
    assert_allclose(np.abs(vectors[0, 0]), 1.0, rtol=1e-9)


def parts(reduction, tiles, engine):
    total = reduction.start()
    for tile in tiles:
        result = run(reduction.part(tile), engine=engine)
        if isinstance(reduction, SBDCenters):
            errors = np.zeros(len(result)) if result.errors is None else result.errors
            result = Centers(result.values, errors)
        reduction.merge(total, tile, result)
    return reduction.finish(total, run)


def test_any_split_gives_the_same_bits(fast_engine, rng):
    X, C = shapes(rng, 1500, 60), shapes(rng, 7, 60)
    whole = run(SBDAssign(X, C), engine=fast_engine)
    cell = SBDAssign(X, C).cell[0]
    with config_context(memory="3 MiB"):
        small = run(SBDAssign(X, C), engine=fast_engine, n_jobs=2)
    cut = 3 * cell
    apart = parts(SBDAssign(X, C), [Tile(cut, 1500, 0, 7), Tile(0, cut, 0, 7)], fast_engine)
    for other in (small, apart, run(SBDAssign(X, C), engine=fast_engine, n_jobs=1)):
        for a, b in zip(whole, other, strict=True):
            assert_array_equal(a, b)
    matrix = run(SBDMatrix(X, C), engine=fast_engine)
    assert isinstance(matrix, ShapeDistances)
    for a, b in zip(whole, matrix.assign(), strict=True):
        assert_array_equal(a, b)
    work = SBDCenters(X, whole.labels, whole.shifts, 7, C.values)
    centers = run(work, engine=fast_engine).values
    apart = parts(work, [Tile(4, 7, 0, 1), Tile(0, 4, 0, 1)], fast_engine).values
    assert_array_equal(centers, apart)
    assert_array_equal(centers, run(work, engine=fast_engine, n_jobs=2).values)


def test_series_that_do_not_fit_stream(fast_engine, rng):
    X, C = shapes(rng, 20_000, 50), shapes(rng, 3, 50)
    whole = run(SBDAssign(X, C), engine=fast_engine)
    centers = run(SBDCenters(X, whole.labels, whole.shifts, 3, C.values), engine=fast_engine)
    engine = find_engine(fast_engine)
    engine.prepared.clear()
    # the series alone take 8 MB
    with config_context(memory="6 MiB"):
        streamed = run(SBDAssign(X, C), engine=fast_engine)
        assert engine.prepared.size() <= 6 * 2**20
        again = run(SBDCenters(X, whole.labels, whole.shifts, 3, C.values), engine=fast_engine)
    for a, b in zip(whole, streamed, strict=True):
        assert_array_equal(a, b)
    assert_same_centers(again.values, centers.values)


@pytest.mark.parametrize("n_timepoints", [3000, 6100])
def test_long_series(fast_engine, rng, n_timepoints):
    X, C = shapes(rng, 5, n_timepoints), shapes(rng, 2, n_timepoints)
    C.values[0, 0, 70:] = X.values[3, 0, :-70]
    C = Shapes.of(C.values)
    found = run(SBDMatrix(X, C), engine=fast_engine)
    for i in range(5):
        for j in range(2):
            x, c = X.values[i, 0], C.values[j, 0]
            values = np.correlate(c, x, "full") / (X.norms[i] * C.norms[j])
            assert_allclose(found.distances[i, j], 1 - values.max(), atol=1e-12)
            assert found.shifts[i, j] == values.argmax() - (n_timepoints - 1)
    assert found.shifts[3, 0] == 70
    zeros = np.zeros(5, np.int32)
    work = SBDCenters(X, zeros, found.shifts[:, 0], 1)
    A = np.array([reference.shifted(x, s) for x, s in zip(X.values, work.shifts, strict=True)])[
        :, 0
    ]
    A -= A.mean(axis=1, keepdims=True)
    _, _, vectors = np.linalg.svd(A, full_matrices=False)
    expected = vectors[0] * np.sign(vectors[0] @ A.sum(axis=0)) * np.sqrt(n_timepoints)
    assert_same_centers(run(work, engine=fast_engine).values[0, 0], expected)


def test_members_are_grouped_in_order(rng):
    labels = rng.integers(0, 300, 2000).astype(np.int32)
    work = SBDCenters(shapes(rng, 2000, 3), labels, labels, 300)
    assert_array_equal(
        np.concatenate([work.members(c) for c in range(300)]), np.argsort(labels, kind="stable")
    )


@pytest.mark.gpu
def test_members_are_cut_in_chunks_on_a_gpu():
    import cupy

    from skts.engines.cupy.kshape.members import CHUNK, sort

    sizes = np.array([1, CHUNK - 1, CHUNK, 0, CHUNK + 1, 2 * CHUNK])
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(6), sizes)).astype(np.int32)
    found = sort(cupy.asarray(labels), cupy.zeros(labels.size, np.int32), None, 6, slice(1, 6))
    assert_array_equal(found.order.get(), np.argsort(labels, kind="stable"))
    assert_array_equal(found.starts.get(), np.cumsum(sizes))
    assert_array_equal(found.chunk_starts.get(), np.cumsum([0, 1, 1, 0, 2, 2]))


@pytest.mark.gpu
@pytest.mark.parametrize("some", [slice(0, None), slice(2, -1)])
@pytest.mark.parametrize(
    ("n_series", "n_clusters"),
    [(1, 4), (500, 31), (500, 33), (1100, 40), (9, 1100), (2500, 500), (40_000, 30)],
)
def test_members_are_sorted_by_cluster_on_a_gpu(rng, n_series, n_clusters, some):
    """Clusters of any number in one, several and many blocks, of which counts have a run each."""
    import cupy

    from skts.engines.cupy.kshape.members import CHUNK, CHUNKS, sort

    labels = rng.integers(0, n_clusters, n_series).astype(np.int32)
    shifts = rng.integers(-9, 9, n_series).astype(np.int32)
    weights = rng.random(n_series)
    given = cupy.asarray(labels), cupy.asarray(shifts)
    wanted = slice(some.start, n_clusters + (some.stop or 0))
    found = sort(*given, weights, n_clusters, wanted)
    sizes = np.bincount(labels, minlength=n_clusters)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    chunks = -(-sizes[wanted] // max(CHUNK, -(-n_series // CHUNKS)))
    assert_array_equal(found.order.get(), np.argsort(labels, kind="stable"))
    assert_array_equal(found.starts.get(), starts[wanted.start : wanted.stop + 1])
    assert_array_equal(found.chunk_starts.get(), np.concatenate([[0], np.cumsum(chunks)]))
    assert_array_equal(found.active.get(), np.ones(wanted.stop - wanted.start))
    assert_array_equal(found.shifts.get(), shifts)
    assert_array_equal(found.weights.get(), weights)


@pytest.mark.gpu
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_aligned_members_stay_in_their_rows_on_a_gpu(rng, count, centered):
    import cupy

    from skts.engines.cupy.loading import load_kernel

    values, room = rng.normal(size=(3, 2, 10)), cupy.full((4, 2, 10), 7.0)
    shifts, order = np.array([2, 0, -3], np.int32), np.array([2, 0, 1], np.int32)
    load_kernel("kshape/centers.cu", "align")(
        3,
        128,
        values=cupy.asarray(values),
        weights=None,
        shifts=cupy.asarray(shifts),
        order=cupy.asarray(order),
        first=0,
        count=count,
        n_channels=2,
        length=10,
        centered=centered,
        out=room[:3],
    )
    rows = np.array([reference.shifted(values[i], shifts[i]) for i in order[:count]])
    if centered:
        rows -= rows.mean(axis=2, keepdims=True)
    assert_allclose(room[:count].get(), rows, rtol=0, atol=1e-15 if centered else 0)
    assert not room[count:3].get().any()
    assert (room[3].get() == 7).all()


@pytest.mark.gpu
@pytest.mark.parametrize("n_centers", [1, 2, 5])
def test_labels_that_errors_could_change_are_unclear_on_a_gpu(rng, n_centers):
    """From the definition, of distances that are nearly equal, with errors of any size."""
    import cupy

    from skts.engines.cupy.kshape.sbd import THREADS
    from skts.engines.cupy.loading import load_kernel

    n, seen = 2 * THREADS + 9, set()
    for doubts in (0.0, 0.1, 0.5, 0.6, 1.5, rng.uniform(0, 2, n_centers), np.inf):
        doubts = np.full(n_centers, TIE) * doubts
        distances = 0.25 + 0.125 * TIE * rng.integers(0, 40, (n, n_centers))
        shifts = rng.integers(-9, 9, (n, n_centers)).astype(np.int32)
        shifts[rng.random(shifts.shape) < 0.1] = UNCLEAR
        ints, count = (cupy.zeros(shape, np.int32) for shape in ((2, n), 1))
        nearest = cupy.zeros(n)
        load_kernel("kshape/labels.cu", "nearest")(
            -(-n // THREADS), THREADS,
            distances=cupy.asarray(distances), shifts=cupy.asarray(shifts),
            doubts=cupy.asarray(doubts), n_series=n, n_centers=n_centers,
            labels=ints[0], label_shifts=ints[1], label_distances=nearest, n_unclear=count,
        )  # fmt: skip
        low, high = distances - doubts, distances + doubts
        labels = (low <= high.min(axis=1, keepdims=True) + TIE).argmax(axis=1)
        here = np.arange(n), labels
        clear = high[here] <= low.min(axis=1) + TIE
        wanted = np.where(clear, shifts[here], UNCLEAR)
        assert_array_equal(ints.get(), [labels, wanted])
        assert_array_equal(nearest.get(), distances[here])
        assert count.get()[0] == (wanted == UNCLEAR).sum()
        seen.update(zip(labels.tolist(), clear.tolist(), strict=True))
    assert len(seen) == 2 * n_centers


@pytest.mark.gpu
def test_shifts_of_long_series_are_clear_on_a_gpu(rng):
    """All warps of a block look at their shifts: one that is far is found, and is no tie."""
    X = shapes(rng, 4, 7300)
    for shift in (-700, -33, 0, 40, 2000):
        C = Shapes.of(np.roll(X.values, shift, axis=2))
        work = SBDMatrix(X, C)
        _, shifts, _ = find_engine("cupy")._sbd_distances(work, Tile(0, 4, 0, 4))
        assert_array_equal(shifts.get(), run(work, engine="numba").shifts)


def test_spectra_are_kept_while_the_series_live(rng):
    engine = find_engine("numba")
    X, C = shapes(rng, 40, 30), shapes(rng, 2, 30)
    run(SBDAssign(X, C), engine="numba")
    kept = len(engine.prepared)
    for _ in range(3):
        run(SBDAssign(X, shapes(rng, 2, 30)), engine="numba")
    assert len(engine.prepared) <= kept


@pytest.mark.parametrize("n_timepoints", [1, 2, 3, 6])
def test_numpy_finds_the_shifts_that_the_kernel_finds(rng, n_timepoints):
    """With ties and without, and of series without size."""
    kernel = sbd_on_the_cpu.best
    best, n = getattr(kernel, "py_func", kernel), 2 * n_timepoints + 3
    correlations = rng.integers(0, 4, (2, 40, n)) / 4.0
    norms, center_norms = rng.integers(0, 3, 40) * 1.0, np.array([1.0, 2.0])
    for doubts in (np.zeros(2), np.array([0.0, 0.2])):
        found = [(np.empty((40, 2)), np.empty((40, 2), np.int64)) for _ in range(2)]
        for choose, answer in zip((best, sbd_on_the_cpu.best_by_numpy), found, strict=True):
            choose(correlations, norms, center_norms, doubts, n_timepoints, *answer)
        for one, other in zip(*found, strict=True):
            assert_array_equal(one, other)


@pytest.mark.parametrize("many", [0, 2**18])
def test_members_and_their_squares_are_counted_as_numpy_counts_them(monkeypatch, rng, many):
    """In one pass over the labels, or two: to the last bit, clusters without members included."""
    monkeypatch.setattr(centers_work, "MANY_LABELS", many)
    labels = rng.choice([0, 1, 3], size=200).astype(np.int32)
    shapes = Shapes.of(rng.normal(size=(200, 2, 5)))
    exponents = rng.integers(-3, 4, size=200).astype(np.int32)
    for series in (shapes, replace(shapes, exponents=exponents)):
        work = SBDCenters(series, labels, np.zeros(200, np.int32), 5)
        squares = series.norms**2
        if series.exponents is not None:
            squares = (series.norms * work.weights) ** 2
        np.testing.assert_array_equal(work.counts, np.bincount(labels, minlength=5))
        np.testing.assert_array_equal(work.squares, np.bincount(labels, squares, minlength=5))


def test_a_centre_that_is_nearer_by_what_ties_and_errors_explain_is_no_fault(rng, monkeypatch):
    """Distances within TIE tie, and both may be off."""
    work, error, found = SBDAssign(shapes(rng, 1, 5), shapes(rng, 2, 5)), 2.0**-10, 0.5
    answer = Assignment(np.array([1]), np.array([UNCLEAR]), np.array([found]))
    edge = found - TIE - 2 * error
    for least, right in ((edge, True), (np.nextafter(edge, 1), True), (edge - 1e-12, False)):
        table = {0: np.full(9, least), 1: np.full(9, found)}
        monkeypatch.setattr(
            SBDAssign, "plain_distances", lambda self, row, col, table=table: (table[col], error)
        )
        checks = list(work.verify(answer, lambda size, most=0: range(size)))
        assert [check.holds for check in checks if "which is not 0" in check.item] == [right]


@pytest.mark.parametrize("n_timepoints", [12, 90])
def test_each_call_has_its_own_labels_and_shifts(fast_engine, rng, n_timepoints):
    """Whatever is kept of an array: others may come with the same one."""
    X = shapes(rng, 40, n_timepoints)
    labels = [rng.integers(0, 3, 40).astype(np.int32) for _ in range(2)]
    shifts = [rng.integers(1 - n_timepoints, n_timepoints, 40).astype(np.int32) for _ in range(2)]
    for i, j in ((0, 0), (0, 1), (0, 0), (1, 0), (1, 1), (1, 1)):
        found = run(SBDCenters(X, labels[i], shifts[j], 3), engine=fast_engine).values
        expected = reference.centers(X.values, labels[i], shifts[j], 3, True)
        assert_same_centers(found, expected)
