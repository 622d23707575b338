"""Block Lanczos iteration: what it accepts."""

from __future__ import annotations

import numpy as np

from skts.engines.families.kshape.eigenvectors import krylov


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
