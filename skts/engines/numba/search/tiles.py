"""Tiles of subsequence search on the CPU: a piece of the line, its statistics, its queries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.reduction import Tile
from ...families.profile.pool import fill_gaps, whole_windows
from ...families.search.subsequence import (
    SubsequenceNeighbors,
    TileMatches,
    normalize_query,
    query_envelope,
)
from ..elastic.cells import cell_of
from . import lanes

__all__ = ["SubsequenceTiles"]


class Piece(NamedTuple):
    """A piece of the line, prepared for one length of windows.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Finite points, and a group of lanes more.
    whole : ndarray of shape (n_windows,), bool
        Which windows are finite.
    mean, inverse : ndarray of shape (n_windows + lanes,), float64
        From `subsequence_search.running_statistics`.
    """

    points: np.ndarray
    whole: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray


class SubsequenceTiles:
    """Method of the CPU engine for subsequence search."""

    def subsequence_neighbors_bytes(
        self, reduction: SubsequenceNeighbors, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its points several times, lanes; of each query all windows."""
        length = reduction.longest
        return 0, 56 * (cols + length) + 33 * rows * cols + 8 * 32 * (4 * length + 64)

    def subsequence_neighbors(
        self, reduction: SubsequenceNeighbors, tile: Tile, cancel: np.ndarray
    ) -> list[TileMatches]:
        """Windows of a tile that may match each of some queries."""
        line = reduction.series.piece(tile.col, tile.col_stop + reduction.longest - 1)
        filled, finite = fill_gaps(line)
        points = np.concatenate([filled, np.full(lanes.LANES, filled[-1])])
        prepared: dict[int, Piece] = {}
        found = []
        for row in range(tile.row, tile.row_stop):
            length = reduction.queries[row].size
            n_windows = min(tile.shape[1], line.size - length + 1)
            if n_windows < 1:
                found.append(TileMatches(np.empty(0, np.int64), np.empty(0)))
                continue
            if length not in prepared:
                prepared[length] = _prepare(reduction, points, finite, length, n_windows)
            found.append(self._search(reduction, row, prepared[length], cancel))
        return found

    def _search(
        self, reduction: SubsequenceNeighbors, row: int, piece: Piece, cancel: np.ndarray
    ) -> TileMatches:
        """Windows of a piece that may match a query."""
        warping, normalize = reduction.warping, bool(reduction.normalize)
        given = np.array(reduction.queries[row], np.float64)
        length = given.size
        radius = min(int(warping.radius(length, length)), length - 1)
        query = normalize_query(given, normalize)
        low, high = query_envelope(query, radius)
        positions, distances = np.empty(piece.whole.size, np.int64), np.empty(piece.whole.size)
        count = lanes.search(
            *piece,
            *(query, low, high),
            _order(low, high),
            np.argsort(-np.abs(query), kind="stable"),
            *(radius, normalize),
            *(reduction.apart(length), reduction.exclusion_of(length), reduction.limit_of(row)),
            *(positions, distances, cancel, cell_of(warping), warping.squared, warping.largest),
        )
        return TileMatches(positions[:count].copy(), distances[:count].copy())


def _order(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Columns, those first whose points hardly lie in the envelope: the ends, then far from 0."""
    telling = np.maximum(low, -high)
    telling[[0, -1]] = np.inf
    return np.argsort(-telling, kind="stable")


def _prepare(
    reduction: SubsequenceNeighbors,
    points: np.ndarray,
    finite: np.ndarray,
    length: int,
    n_windows: int,
) -> Piece:
    """Statistics of the windows of a piece, and which of them are finite."""
    n_lanes = n_windows + lanes.LANES
    whole = whole_windows(finite, length)[:n_windows]
    mean, inverse = np.zeros(n_lanes), np.ones(n_lanes)
    if reduction.normalize:
        lanes.running_statistics(points, length, n_windows, mean, inverse)
    return Piece(points, whole, mean, inverse)
