"""Leading eigenvectors of clusters on the GPU, uncertified, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines import SBDCenters, Shapes, Tile, find_engine
from skts.engines.families.kshape.centers import LARGEST_OFFSET
from tests import reference_sbd as reference

pytestmark = pytest.mark.gpu


def aligned(work, cluster):
    """The members of a cluster, shifted, centred and weighted, one a row."""
    members = np.flatnonzero(work.labels == cluster)
    rows = np.array([reference.shifted(work.series.values[i], work.shifts[i]) for i in members])
    rows = rows.reshape(-1, *work.series.values.shape[1:])
    if work.centered:
        rows = rows - rows.mean(axis=2, keepdims=True)
    weights = np.ones(members.size) if work.weights is None else work.weights[members]
    return (rows * weights[:, None, None]).reshape(members.size, -1)


def some_clusters(rng, n_timepoints, n_channels, centered, weighted):
    """Six clusters of noisy members, one of them empty; values, labels and shifts on the device."""
    import cupy

    sizes = np.array([5, 0, 17, 2, 34, 1])
    labels = rng.permutation(np.repeat(np.arange(6), sizes)).astype(np.int32)
    patterns = rng.normal(size=(6, n_channels, n_timepoints))
    values = patterns[labels] + 0.3 * rng.normal(size=(labels.size, n_channels, n_timepoints))
    shifts = rng.integers(-3, 4, labels.size).astype(np.int32)
    exponents = rng.integers(-1, 2, labels.size).astype(np.int32) if weighted else None
    shapes = Shapes(values, np.sqrt(np.sum(values**2, axis=(1, 2))), exponents=exponents)
    work = SBDCenters(shapes, labels, shifts, 6, centered=centered)
    return work, *map(cupy.asarray, (values, labels, shifts))


def check_clusters(work, found):
    """Compare with singular vectors of the members; what an error says holds."""
    np.testing.assert_array_equal(found.counts, work.counts)
    assert found.errors[1] == 0
    assert found.values[1] == 0
    assert not found.vectors[1].any()
    assert not found.totals[1].any()
    for cluster in np.flatnonzero(work.counts):
        rows = aligned(work, cluster)
        if not rows.any():
            # moved by more than their length
            assert not found.vectors[cluster].any()
            continue
        _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
        assert np.isfinite(found.errors[cluster]), cluster
        np.testing.assert_allclose(found.totals[cluster], rows.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.values[cluster], singular[0] ** 2, rtol=1e-12)
        vector = found.vectors[cluster]
        off = min(np.linalg.norm(vector - vectors[0]), np.linalg.norm(vector + vectors[0]))
        assert off <= found.errors[cluster] + 1e-13 < 1e-8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n_timepoints", "n_channels", "centered", "few"),
    [(33, 1, True, True), (33, 2, False, False), (65, 1, False, True), (7, 3, True, False)],
)
def test_all_clusters_settle_in_one_go(
    rng, monkeypatch, n_timepoints, n_channels, centered, few, weighted
):
    """Of any number of members, and beside clusters without any; again and again."""
    from skts.engines.cupy import launch
    from skts.engines.cupy.kshape import centers

    monkeypatch.setattr(launch, "WORTH_A_GRAPH", 2)
    monkeypatch.setattr(centers, "FEW", 2**16 if few else 0)
    work, values, *where = some_clusters(rng, n_timepoints, n_channels, centered, weighted)
    iteration = centers.LeadingVectors(values, 6, slice(0, 6), weighted=weighted, centered=centered)
    cancel = np.zeros(1, np.uint8)
    where = [work.labels, work.shifts] if few else where
    for _ in range(3):
        found = iteration.find(
            *where, work.weights, None, lambda: (work.counts, work.squares), cancel
        )
        check_clusters(work, found)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("wiggle", [1e-4, 1e-2])
@pytest.mark.parametrize("size", [10, 70, 130])
@pytest.mark.parametrize("begin", ["alike", "otherwise", "anew"])
def test_members_far_from_zero_have_centred_vectors(rng, begin, size, wiggle, members):
    """A basis whose next vector is rounding alone: a multiple of what was centred away."""
    import cupy

    from skts.engines.cupy.kshape import centers

    values = np.full((members, 1, size), -0.4878)
    values[:, 0, 0] -= wiggle
    shapes = Shapes(values, np.sqrt(np.sum(values**2, axis=(1, 2))))
    labels, shifts = np.zeros((2, members), np.int32)
    starts = {"alike": 2.05 * values[:1], "otherwise": rng.normal(size=(1, 1, size)), "anew": None}
    work = SBDCenters(shapes, labels, shifts, 1, starts[begin])
    iteration = centers.LeadingVectors(
        cupy.asarray(values), 1, slice(0, 1), weighted=False, centered=True
    )
    counts = work.counts, work.squares
    cancel = np.zeros(1, np.uint8)
    found = iteration.find(labels, shifts, None, starts[begin], lambda: counts, cancel)
    _, singular, vectors = np.linalg.svd(aligned(work, 0), full_matrices=False)
    np.testing.assert_allclose(found.values[0], singular[0] ** 2, rtol=1e-9)
    off = np.linalg.norm(found.vectors[0] - np.sign(found.vectors[0] @ vectors[0]) * vectors[0])
    assert off <= 1e-9
    # beyond that the CPU engine finds the centre
    far = work.squares[0] > LARGEST_OFFSET * singular[0] ** 2
    assert np.isinf(found.errors[0]) if far else off <= found.errors[0] + 1e-13 < 1e-8


@pytest.mark.parametrize("broken", ["not centred", "not of norm 1", ""])
def test_vectors_of_a_basis_that_is_none_are_not_certain(rng, monkeypatch, broken):
    from skts.engines.cupy.kshape import centers

    work, values, *_ = some_clusters(rng, 33, 2, True, False)
    iteration = centers.LeadingVectors(values, 6, slice(0, 6), weighted=False, centered=True)
    cancel = np.zeros(1, np.uint8)
    sound = iteration._are_sound

    def look(vectors):
        wrong = {"not centred": vectors + 1e-9, "not of norm 1": vectors * (1 + 1e-9)}
        return sound(wrong.get(broken, vectors))

    monkeypatch.setattr(iteration, "_are_sound", look)
    found = iteration.find(
        work.labels, work.shifts, None, None, lambda: (work.counts, work.squares), cancel
    )
    assert np.isinf(found.errors[work.counts > 0]).all() == bool(broken)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n_timepoints", "n_channels", "centered"),
    [(60, 1, True), (19, 3, True), (5, 1, False), (2, 1, False), (1, 1, False)],
)
def test_short_members_are_summed_up(rng, n_timepoints, n_channels, centered, weighted):
    """Sums of the products of their points give the same clusters."""
    from skts.engines.cupy.kshape import members, moments

    work, values, *where = some_clusters(rng, n_timepoints, n_channels, centered, weighted)
    ordered = members.sort(*where, work.weights, 6, slice(0, 6))
    check_clusters(work, moments.leading_vectors(values, ordered, centered=centered))


def test_sums_that_are_not_precise_enough_are_told(rng, monkeypatch):
    """Where the eigenvalues lie so close that roundings of the sums could matter."""
    from skts.engines.cupy.kshape import members, moments

    work, values, *where = some_clusters(rng, 30, 1, True, False)
    ordered = members.sort(*where, None, 6, slice(0, 6))
    monkeypatch.setattr(moments, "FLOAT64_UNIT", 1e-11)
    found = moments.leading_vectors(values, ordered, centered=True)
    assert np.isnan(found.errors[work.counts > 2]).all()


def test_a_mix_of_what_a_basis_holds_is_that_of_each_active_cluster(rng):
    import cupy

    from skts.engines.cupy.loading import load_kernel

    clusters, room, size, known = 3, 8, 130, 5
    bases, mixes = rng.normal(size=(clusters, room, size)), rng.normal(size=(clusters, 2, room))
    out = cupy.full((2, clusters, size), 7.0)
    load_kernel("kshape/centers.cu", "combine")(
        (2, clusters),
        128,
        bases=cupy.asarray(bases),
        mixes=cupy.asarray(mixes[:, :, :known].copy()),
        active=cupy.asarray(np.array([1, 0, 1], np.uint8)),
        known=known,
        room=room,
        size=size,
        out=out,
    )
    expected = mixes[:, :, :known] @ bases[:, :known]
    expected[1] = 7.0
    np.testing.assert_allclose(out.get(), expected.transpose(1, 0, 2), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("resident", [True, False])
def test_the_matrix_of_a_cluster_comes_with_the_sum_of_its_members(rng, resident):
    from skts.engines.cupy.kshape import centers

    work, values, *_ = some_clusters(rng, 20, 2, True, True)
    for cluster in np.flatnonzero(work.counts):
        rows = aligned(work, cluster)
        found, _, total = centers.dense_eigenvectors(
            work.series,
            values if resident else None,
            work.members(cluster),
            work.shifts,
            work.weights,
            np.zeros(1, np.uint8),
            centered=work.centered,
        )
        np.testing.assert_allclose(total, rows.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(found[0], np.linalg.norm(rows, 2) ** 2, rtol=1e-12)


def test_clusters_that_are_not_precise_enough_are_found_by_themselves(rng, monkeypatch):
    """Beside others that are."""
    engine = find_engine("cupy")
    work, *_ = some_clusters(rng, 30, 1, True, False)
    given = work, Tile(0, work.shape[0], 0, work.shape[1]), np.zeros(1, np.uint8)
    expected, find = engine.compute(*given), type(engine)._resident_centers
    assert np.isfinite(expected.errors).all()

    def some(*of):
        values, leading = find(*of)
        for one in (leading.values, leading.errors, leading.vectors, leading.totals):
            one[2] = np.nan
        return values, leading

    monkeypatch.setattr(type(engine), "_resident_centers", some)
    found = engine.compute(*given)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-8)
    assert np.isfinite(found.errors).all()
