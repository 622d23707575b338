"""Tiles of rotation-invariant searches on the CPU: bounds first, then the candidates in order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import fft

from ...core.certify import Bound, Rescaling, Shortlist
from ...core.constants import FLOAT64_TINY, FLOAT64_UNIT
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series
from ...families.elastic.dtw import DTWNeighbors
from ...families.elastic.rotation import RotationSearch
from ...families.elastic.warping import Warping
from . import dtw, rotation
from .cells import cell_of

__all__ = ["RotationTiles"]

#: Error of a circular correlation by Fourier transforms, over u log2(n) and the norms.
_FFT_ERROR = 16.0


class RotationTiles:
    """Methods of the CPU engine for rotation-invariant searches."""

    prepared: PreparedStore
    _costs: Callable[[DTWNeighbors, Tile, np.ndarray, Rescaling | None], tuple[np.ndarray, float]]

    def rotation_neighbors_bytes(
        self, reduction: RotationSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile of this shape: candidates twice over, or their spectra, shared."""
        channels, (n, m) = reduction.queries.n_channels, reduction.most_points
        points, held = channels * max(n, m), reduction.survivor_bytes()
        # neighbours, what a search holds, bounds and their order, queries
        each = 32 * rows * min(reduction.n_neighbors, cols) + rotation.search_bytes(channels, n, m)
        each += 56 * cols + 8 * rows * points
        if reduction.straight:
            # twice over and spectra; a product of spectra, and the floors of all shifts
            shared = held + cols * (16 * points + 8 * channels * (n + 2))
            return shared, each + 40 * cols * (n + 2)
        lanes = -(-max(rows, cols) // 64) * 64
        each += 40 * rows * cols + 12 * points * (2 * cols + rows) + 8 * points * lanes
        return held + 16 * points * cols + 8 * points * lanes, each + dtw.sweep_bytes(n, 2 * m)

    def rotation_neighbors(
        self, reduction: RotationSearch, tile: Tile, cancel: np.ndarray
    ) -> Shortlist:
        """Nearest candidates of a tile, certified."""
        queries, warping = reduction.queries.take(tile.rows), reduction.warping
        doubled = self._doubled(reduction, tile)
        cell, squared = cell_of(warping), warping.squared
        k = min(reduction.n_neighbors, tile.shape[1])
        bounds = None if reduction.straight else self._bounds(reduction, tile, cancel)
        lengths = reduction.candidates.lengths[tile.cols].copy()
        banded = warping.binds(max(reduction.most_points))
        distances, indices = np.empty(k), np.empty(k, np.int64)
        found = []
        for row, length in enumerate(queries.lengths.tolist()):
            x, query = np.array(queries.values[row, :, :length], order="C"), tile.row + row
            excluded = -1 if reduction.excluded is None else reduction.excluded[query] - tile.col
            limit = np.inf if reduction.limits is None else reduction.limits[query]
            rest = cell, squared, distances, indices, cancel
            if bounds is None:
                lower, floors = self._correlate(reduction, x, tile)
                order = np.argsort(lower, kind="stable")
                count = rotation.search_straight(
                    x, doubled.values, lower, order, floors, excluded, limit, *rest
                )
            else:
                lower = bounds[row]
                order = np.argsort(lower, kind="stable")
                reaches = warping.radius(length, lengths) if banded else None
                candidates = doubled.values, lengths, reaches
                count = rotation.search(x, candidates, lower, order, excluded, limit, *rest)
            found.append((np.full(count, row), indices[:count].copy(), distances[:count].copy()))
        rows, cols, values = map(np.concatenate, zip(*found, strict=True))
        return Shortlist(rows, cols, values, Bound())

    def _relaxed(self, reduction: RotationSearch, doubled: Series) -> DTWNeighbors:
        """A search whose distances no shift falls below: any part of the doubled candidate."""
        given = reduction.warping
        warping = Warping(given.metric, given.cost, alignment="subsequence")
        return DTWNeighbors(reduction.queries, doubled, 1, warping=warping)

    def _bounds(self, reduction: RotationSearch, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """Lower bounds of the distances of a tile under warping."""
        doubled = self._doubled(reduction, tile)
        work = self._relaxed(reduction, doubled)
        costs, error = self._costs(work, Tile(*tile[:2], 0, len(doubled)), cancel, work.rescaling)
        # see "rotation runs" in docs/developer/numerics.rst
        scale, bound = work.scale_and_bound(error)
        return np.ascontiguousarray(bound.lower(work.warping.distance(costs) / scale))

    def _doubled(self, reduction: RotationSearch, tile: Tile) -> Series:
        """The candidates of a tile, each twice in a row."""

        def build() -> tuple[Series, int]:
            some = reduction.candidates.take(tile.cols)
            values = np.concatenate([some.values] * 2, axis=2)
            for row in np.flatnonzero(some.lengths < some.n_timepoints).tolist():
                length = int(some.lengths[row])
                values[row, :, length : 2 * length] = values[row, :, :length]
                values[row, :, 2 * length :] = 0.0
            return Series(values, 2 * some.lengths), values.nbytes

        key = ("doubled", tile.col, tile.col_stop)
        return self.prepared.get(reduction.candidates.values, key, build)

    def _correlate(
        self, reduction: RotationSearch, x: np.ndarray, tile: Tile
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower bounds of the distances of a query, and of the costs of all shifts."""
        n = x.shape[1]
        if not reduction.warping.squared or reduction.warping.largest:
            n_candidates = tile.shape[1]
            return np.zeros(n_candidates), np.zeros((n_candidates, 1))
        offset, spectra, norms = self._spectra(reduction, tile)
        x = x - offset
        norm = np.sum(x * x)
        product = np.sum(np.conj(fft.rfft(x)) * spectra, axis=1)
        # of the transforms, and of the sum in order, which is the certified one
        # see "spectra" in docs/developer/numerics.rst
        roundings = _FFT_ERROR * (math.log2(n) + 2) + n + len(x)
        error = roundings * FLOAT64_UNIT * (np.sqrt(norm) + np.sqrt(norms)) ** 2 + FLOAT64_TINY
        floors = (norm + norms - error)[:, None] - 2.0 * fft.irfft(product, n)
        lower = np.sqrt(np.maximum(floors.min(axis=1), 0.0)) * (1.0 - 4.0 * FLOAT64_UNIT)
        return lower, floors

    def _spectra(
        self, reduction: RotationSearch, tile: Tile
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Offsets of the channels, and of the candidates without them spectra and squared norms."""

        def build() -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], int]:
            values = reduction.candidates.values[tile.cols]
            offset = values.mean(axis=(0, 2))[:, None]
            values = values - offset
            made = offset, fft.rfft(values), np.sum(values * values, axis=(1, 2))
            return made, sum(array.nbytes for array in made)

        key = ("circular spectra", tile.col, tile.col_stop)
        return self.prepared.get(reduction.candidates.values, key, build)
