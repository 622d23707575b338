"""Block Lanczos iteration: what it accepts."""

from __future__ import annotations

import numpy as np
import pytest

from skts.engines.families.kshape.eigenvectors import krylov, leading_shape


def test_vectors_are_off_by_no_more_than_is_said():
    """Residuals are at most 1e-11 of the distance of the next eigenvalue."""
    gap, n = 3e-3, 120
    for seed in range(12):
        rng = np.random.default_rng(seed)
        basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
        matrix = (basis * np.concatenate([[1.0, 1 - gap], np.linspace(0, 0.95, n - 2)])) @ basis.T
        matrix = (matrix + matrix.T) / 2
        values, vectors, settled = krylov(lambda v, m=matrix: v @ m, rng.normal(size=(2, n)), 128)
        assert settled
        # the last part is rounding of the product here
        residual = np.linalg.norm(vectors[0] @ matrix - values[0] * vectors[0])
        assert residual <= 1.05e-11 * gap + 4e-15


@pytest.mark.parametrize("settles", [True, False])
def test_dense_algebra_is_asked_where_the_iteration_does_not_settle(rng, settles):
    members = rng.normal(size=(9, 1)) * rng.normal(size=40) + 0.3 * rng.normal(size=(9, 40))
    _, singular, vectors = np.linalg.svd(members, full_matrices=False)
    asked = []

    def dense():
        asked.append(True)
        return singular[:2] ** 2, vectors[:2]

    found = leading_shape(
        lambda v: v @ members.T @ members,
        members.sum(axis=0),
        rng.normal(size=40),
        len(members),
        dense=dense,
        member=members.__getitem__,
        max_vectors=128 if settles else 4,
        restarts=1,
    )
    assert asked == ([] if settles else [True])
    off = min(np.linalg.norm(found - vectors[0]), np.linalg.norm(found + vectors[0]))
    assert off < 1e-9
