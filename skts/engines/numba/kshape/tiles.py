"""Tiles of k-Shape work on the CPU: what is prepared, which kernel runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.kshape.centers import (
    Centers,
    SBDCenters,
    center_space,
    generic_vector,
    scaled_center,
)
from ...families.kshape.certified import settle_assignment, settle_pairs
from ...families.kshape.distances import (
    Assignment,
    SBDAssign,
    SBDMatrix,
    SBDReduction,
    ShapeDistances,
)
from ...families.kshape.eigenvectors import choose_shape, leading_shape
from ...families.kshape.shapes import Shapes
from ...host.shapes import fft_length
from .._blas import one_blas_thread
from . import sbd
from .members import few_bytes, members_of

__all__ = ["SBDTiles"]

#: Series of at most so many points have S itself formed: two reads of the members do.
SMALL = 64
#: Members whose outer products are added up at a time.
CHUNK = 512


class SBDTiles:
    """Methods of the CPU engine for k-Shape work."""

    prepared: PreparedStore

    def _sbd_bytes(self, reduction: SBDReduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile of this shape: spectra are shared, a block is a thread's."""
        channels, length = reduction.series.n_channels, reduction.series.n_timepoints
        n = fft_length(length)
        spectrum = 16 * channels * (n // 2 + 1)
        block = min(rows, reduction.cell_rows)
        at_once = min(cols, max(1, sbd.POINTS // (block * n))) * block
        each = at_once * (8 * n + spectrum) + block * spectrum + 12 * rows * cols
        return (rows + cols) * spectrum, each

    sbd_matrix_bytes = sbd_assign_bytes = _sbd_bytes

    def sbd_matrix(self, reduction: SBDMatrix, tile: Tile, cancel: np.ndarray) -> ShapeDistances:
        """A block of the matrices."""
        found = self._sbd_distances(reduction, tile, cancel)
        settle_pairs(reduction, tile, found, cancel)
        return found

    def sbd_assign(self, reduction: SBDAssign, tile: Tile, cancel: np.ndarray) -> Assignment:
        """Centres of some series."""
        found = self._sbd_distances(reduction, tile, cancel).assign(reduction.doubts)
        settle_assignment(reduction, tile, found, cancel)
        return found

    def _sbd_distances(
        self, reduction: SBDReduction, tile: Tile, cancel: np.ndarray
    ) -> ShapeDistances:
        """Distances and shifts of a tile, some of which may be unclear."""
        series, centers = reduction.series, reduction.centers
        n_rows, n_cols = tile.shape
        found = ShapeDistances(np.empty((n_rows, n_cols)), np.empty((n_rows, n_cols), np.int32))
        spectra = self._sbd_spectra(series, tile.row, tile.row_stop)
        others = self._sbd_spectra(centers, tile.col, tile.col_stop)
        norms, other_norms = series.norms[tile.rows], centers.norms[tile.cols]
        doubts = reduction.doubts[tile.cols]
        # blocks are cells of the grid, so that a transform meets the same company in every tile
        for start in range(0, n_rows, reduction.cell_rows):
            if cancel[0]:
                break
            block = slice(start, min(start + reduction.cell_rows, n_rows))
            sbd.correlate(
                spectra[block],
                norms[block],
                others,
                other_norms,
                doubts,
                series.n_timepoints,
                found.distances[block],
                found.shifts[block],
            )
        return found

    def _sbd_spectra(self, shapes: Shapes, start: int, stop: int) -> np.ndarray:
        """Spectra of some series."""

        def build() -> tuple[np.ndarray, int]:
            made = sbd.spectra(shapes.values[start:stop])
            return made, made.nbytes

        frequencies = fft_length(shapes.n_timepoints) // 2 + 1
        size = 16 * (stop - start) * shapes.n_channels * frequencies
        return self.prepared.get(shapes.values, ("spectra", start, stop), build, size)

    def sbd_centers_bytes(self, reduction: SBDCenters, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for some centres: a basis and its images, or S."""
        n = reduction.series.n_channels * reduction.series.n_timepoints
        chunk = 8 * CHUNK * n if n <= SMALL else 0
        steps = 8 * n * (3 * min(128, n) + rows + 8) + 16 * min(n, SMALL) ** 2
        return 0, steps + chunk + few_bytes(reduction)

    def sbd_centers(self, reduction: SBDCenters, tile: Tile, cancel: np.ndarray) -> Centers:
        """Centres of some clusters: the certified ones, which follow from the members alone."""
        clusters = range(tile.row, tile.row_stop)
        with one_blas_thread():
            found = [self._sbd_center(reduction, c, cancel) for c in clusters]
        return Centers(np.array(found), np.zeros(len(found)))

    def _sbd_center(self, reduction: SBDCenters, cluster: int, cancel: np.ndarray) -> np.ndarray:
        """The centre of a cluster, of shape (n_channels, n_timepoints)."""
        shape = reduction.series.values.shape[1:]
        n = shape[0] * shape[1]
        members = members_of(reduction, cluster, cancel)
        if members is None:
            return np.zeros(shape)
        n_members = int(reduction.counts[cluster])

        def centered(vectors: np.ndarray) -> np.ndarray:
            return center_space(vectors, shape[0], reduction.centered)

        def apply(vectors: np.ndarray) -> np.ndarray:
            # vectors are centred but for rounding, which grows where they were scaled up
            return centered(members.product(centered(vectors)))

        def rows(start: int, stop: int) -> np.ndarray:
            return centered(members.rows(start, stop))

        def member(number: int) -> np.ndarray:
            return rows(number, number + 1)[0]

        def dense() -> tuple[np.ndarray, np.ndarray]:
            return _eigenvectors(rows, n_members, n, cancel)

        total = centered(members.sum()[np.newaxis])[0]
        if n <= SMALL:
            vector = choose_shape(*dense(), total, n_members, member)
        else:
            guess = centered(generic_vector(n)[np.newaxis])[0]
            vector = leading_shape(apply, total, guess, n_members, dense=dense, member=member)
        return scaled_center(vector, reduction.centered).reshape(shape)


def _eigenvectors(
    rows: Callable[[int, int], np.ndarray], n_members: int, n: int, cancel: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of S, descending, and vectors: from S, or from the members' inner products.

    `rows` maps two numbers to Q times the members between them, one a row.
    """
    if n <= n_members:
        S = np.zeros((n, n))
        for start in range(0, n_members, CHUNK):
            if cancel[0]:
                break
            block = rows(start, min(start + CHUNK, n_members))
            S += block.T @ block
        values, vectors = eigh(S)
        return values[::-1], vectors.T[::-1]
    everyone = rows(0, n_members)
    values, mixes = eigh(everyone @ everyone.T)
    values, mixes = values[::-1], mixes.T[::-1]
    kept = values > 0.5 * values[0]
    vectors = mixes[kept] @ everyone
    return values[kept], vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
