"""Centres on the GPU from S itself, where members are short: they are read once for all steps."""

from __future__ import annotations

from functools import cache

import cupy as cp
import numpy as np
from scipy.linalg import eigh

from ...core.constants import FLOAT64_UNIT, MOMENT_SIDE, MOMENT_THREADS, PARTIAL_LANES
from ...families.kshape.centers import LARGEST_ERROR, center_error, center_space
from ..loading import load_kernel
from ..transfers import bring
from .centers import DENSE_RESIDUAL, Leading, add_chunks
from .members import Members, chunk_rows

__all__ = ["leading_vectors", "moment_bytes", "sum_products"]


def leading_vectors(values: cp.ndarray, members: Members, *, centered: bool) -> Leading:
    """Find the leading eigenvectors of all clusters, as `LeadingVectors` does.

    Errors are NaN where they are too large for want of precision in S.

    Parameters
    ----------
    values : cupy.ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    members : Members
        Series by cluster.
    centered : bool
        Whether members are centred.
    """
    n_series, n_channels, length = values.shape
    size, k = n_channels * length, members.starts.size - 1
    sums = sum_products(values, members)
    packed, starts = bring(sums), bring(members.starts)
    rows, columns, places = _places(size)
    S = np.zeros((k, size, size))
    S[:, rows, columns] = S[:, columns, rows] = packed[:, places]
    squares = np.trace(S, axis1=1, axis2=2)
    for _ in range(2):
        S = center_space(S.reshape(-1, size), n_channels, centered).reshape(S.shape)
        S = S.transpose(0, 2, 1)
    found = Leading(
        np.diff(starts),
        center_space(packed[:, -size:], n_channels, centered),
        np.zeros(k),
        np.zeros((k, size)),
        np.zeros(k),
    )
    # see "centres" in docs/developer/numerics.rst
    chunk = chunk_rows(n_series)
    additions = chunk + n_series // (chunk * PARTIAL_LANES) + 2 * PARTIAL_LANES + 4 * size
    for cluster in np.flatnonzero(squares > 0).tolist():
        matrix, square = S[cluster], float(squares[cluster])
        best = [max(0, size - 2), size - 1]
        ritz, vectors = eigh(matrix, subset_by_index=best, check_finite=False)
        first, second = float(ritz[-1]), float(ritz[0]) if size > 1 else 0.0
        residual = DENSE_RESIDUAL * first + additions * FLOAT64_UNIT * square
        error = center_error((first, second), (residual, residual), square)
        possible = center_error((first, second), (0.0, 0.0), square)
        found.errors[cluster] = np.nan if possible <= LARGEST_ERROR < error else error
        found.values[cluster], found.vectors[cluster] = first, vectors[:, -1]
    return found


def sum_products(values: cp.ndarray, members: Members) -> cp.ndarray:
    """Sums of the products of pairs of points of members, packed, and sums of the members."""
    n_series, n_channels, length = values.shape
    k = members.starts.size - 1
    chunk, width = chunk_rows(n_series), _width(n_channels * length)
    n_chunks = -(-n_series // chunk) + k
    partial, sums = cp.empty((n_chunks, width)), cp.empty((k, width))
    load_kernel("kshape/centers.cu", "moments")(
        n_chunks,
        MOMENT_THREADS,
        values=values,
        weights=members.weights,
        shifts=members.shifts,
        order=members.order,
        starts=members.starts,
        chunk_starts=members.chunk_starts,
        n_clusters=k,
        chunk=chunk,
        n_channels=n_channels,
        length=length,
        partial=partial,
    )
    add_chunks(members, partial, width, width, sums)()
    return sums


def moment_bytes(n_series: int, n_clusters: int, size: int) -> int:
    """Bytes that `leading_vectors` takes beside the series."""
    chunks = -(-n_series // chunk_rows(n_series)) + n_clusters
    return 8 * _width(size) * (chunks + n_clusters) + 40 * n_series


def _width(size: int) -> int:
    """Numbers that a chunk of members has: products of pairs of points, and sums."""
    sides = -(-size // MOMENT_SIDE)
    return sides * (sides + 1) // 2 * MOMENT_SIDE**2 + size


@cache
def _places(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of products, and where these are among the numbers of a chunk."""
    sides = -(-size // MOMENT_SIDE)
    i, j = np.triu_indices(sides)
    rows, columns = (
        np.broadcast_to(part, (i.size, MOMENT_SIDE, MOMENT_SIDE)).ravel()
        for part in (
            MOMENT_SIDE * i[:, None, None] + np.arange(MOMENT_SIDE)[:, None],
            MOMENT_SIDE * j[:, None, None] + np.arange(MOMENT_SIDE),
        )
    )
    places = np.flatnonzero((rows < size) & (columns < size) & (rows <= columns))
    return rows[places], columns[places], places
