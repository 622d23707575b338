"""Leading eigenvectors of clusters on the GPU, uncertified, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines import SBDCenters, Shapes
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n_timepoints", "n_channels", "centered"),
    [(33, 1, True), (33, 2, False), (65, 1, False), (7, 3, True)],
)
def test_all_clusters_settle_in_one_go(rng, n_timepoints, n_channels, centered, weighted):
    """Of any number of members, and beside clusters without any."""
    import cupy

    from skts.engines.cupy.kshape import centers, members

    sizes = np.array([5, 0, 17, 2, 34, 1])
    labels = rng.permutation(np.repeat(np.arange(6), sizes)).astype(np.int32)
    patterns = rng.normal(size=(6, n_channels, n_timepoints))
    values = patterns[labels] + 0.3 * rng.normal(size=(labels.size, n_channels, n_timepoints))
    shifts = rng.integers(-3, 4, labels.size).astype(np.int32)
    exponents = rng.integers(-1, 2, labels.size).astype(np.int32) if weighted else None
    shapes = Shapes(values, np.sqrt(np.sum(values**2, axis=(1, 2))), exponents=exponents)
    work = SBDCenters(shapes, labels, shifts, 6, centered=centered)
    sorted_members = members.sort(
        cupy.asarray(labels), cupy.asarray(shifts), work.weights, 6, slice(0, 6)
    )
    found = centers.leading_vectors(
        cupy.asarray(values),
        sorted_members,
        None,
        work.squares,
        np.zeros(1, np.uint8),
        centered=centered,
    )
    assert found.errors[1] == 0
    assert found.values[1] == 0
    assert not found.vectors[1].any()
    assert not found.totals[1].any()
    for cluster in np.flatnonzero(sizes):
        rows = aligned(work, cluster)
        _, singular, vectors = np.linalg.svd(rows, full_matrices=False)
        assert np.isfinite(found.errors[cluster]), cluster
        np.testing.assert_allclose(found.totals[cluster], rows.sum(axis=0), atol=1e-12)
        np.testing.assert_allclose(found.values[cluster], singular[0] ** 2, rtol=1e-12)
        vector = found.vectors[cluster]
        off = min(np.linalg.norm(vector - vectors[0]), np.linalg.norm(vector + vectors[0]))
        assert off <= found.errors[cluster] + 1e-13 < 1e-8


def test_a_mix_of_what_a_basis_holds_is_that_of_each_cluster(rng):
    import cupy

    from skts.engines.cupy.loading import load_kernel

    clusters, room, size, known = 3, 8, 130, 5
    bases, mixes = rng.normal(size=(clusters, room, size)), rng.normal(size=(clusters, 2, room))
    out = cupy.full((clusters, 2, size), 7.0)
    load_kernel("kshape/centers.cu", "combine")(
        (2, clusters),
        128,
        bases=cupy.asarray(bases),
        mixes=cupy.asarray(mixes),
        known=known,
        room=room,
        size=size,
        out=out,
    )
    expected = mixes[:, :, :known] @ bases[:, :known]
    np.testing.assert_allclose(out.get(), expected, rtol=1e-12, atol=1e-12)
