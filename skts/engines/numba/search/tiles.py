"""Tiles of subsequence search on the CPU: a piece of the line, its statistics, its queries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.constants import CONSTANT, SMALLEST_RANGE
from ...core.reduction import Tile
from ...families.profile.concatenated import fill_gaps, whole_windows
from ...families.search.subsequence import (
    SubsequenceNeighbors,
    TileMatches,
    normalize_query,
    query_envelope,
)
from ...host.by_numpy import statistics
from ...host.small_work import ENTRIES, most_bytes, prefer_numpy
from ..elastic import by_numpy
from ..elastic.cells import cell_of
from . import lanes
from .lanes import Comparison, Piece, Query

__all__ = ["SubsequenceTiles"]


class SubsequenceTiles:
    """Method of the CPU engine for subsequence search."""

    budget: Callable[[], int]

    def subsequence_neighbors_bytes(
        self, reduction: SubsequenceNeighbors, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its points several times, lanes; of each query all windows."""
        length = reduction.longest
        small = min(_numpy_bytes(reduction, cols), most_bytes(self.budget()))
        return 0, 56 * (cols + length) + 33 * rows * cols + 8 * 32 * (4 * length + 64) + small

    def subsequence_neighbors(
        self, reduction: SubsequenceNeighbors, tile: Tile, cancel: np.ndarray
    ) -> list[TileMatches]:
        """Windows of a tile that may match each of some queries."""
        line = reduction.series.piece(tile.col, tile.col_stop + reduction.longest - 1)
        filled, finite = fill_gaps(line)
        points = np.concatenate([filled, np.full(lanes.LANES, filled[-1])])

        def seconds() -> tuple[float, float]:
            return _seconds(reduction, *tile.shape), _seconds(reduction, *reduction.shape)

        def able() -> bool:
            return _numpy_bytes(reduction, tile.shape[1]) <= most_bytes(self.budget())

        small = prefer_numpy(seconds, lanes.search, able=able, like=cell_of(reduction.warping))
        prepared: dict[int, Piece] = {}
        found = []
        for row in range(tile.row, tile.row_stop):
            length = reduction.queries[row].size
            n_windows = min(tile.shape[1], line.size - length + 1)
            if n_windows < 1:
                found.append(TileMatches(np.empty(0, np.int64), np.empty(0)))
                continue
            if small:
                whole = whole_windows(finite, length)[:n_windows]
                found.append(_measure(reduction, row, filled, whole, cancel))
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
            piece,
            Query(query, low, high, _order(low, high), np.argsort(-np.abs(query), kind="stable")),
            Comparison(radius, normalize, warping.squared, warping.largest),
            cell_of(warping),
            *(reduction.apart(length), reduction.exclusion_of(length), reduction.limit_of(row)),
            *(positions, distances, cancel),
        )
        return TileMatches(positions[:count].copy(), distances[:count].copy())


def _numpy_bytes(reduction: SubsequenceNeighbors, n_windows: int) -> int:
    """Bytes that `_measure` holds."""
    return 8 * 12 * (reduction.longest + 2) * min(n_windows, _at_a_time(reduction))


def _measure(
    reduction: SubsequenceNeighbors,
    row: int,
    points: np.ndarray,
    whole: np.ndarray,
    cancel: np.ndarray,
) -> TileMatches:
    """Windows of a piece that match a query, by NumPy, from the certified distances of all."""
    warping, places = reduction.warping, np.flatnonzero(whole)
    given = np.array(reduction.queries[row], np.float64)
    length, n_windows = given.size, whole.size
    query = normalize_query(given, bool(reduction.normalize))[np.newaxis, :, np.newaxis]
    anchor, mean, inverse = (np.full(n_windows, value) for value in (0.0, 0.0, 1.0))
    if reduction.normalize:
        line = points[: n_windows + length - 1]
        mean, deviation, low, high = statistics(line, line, length, True)
        least = np.maximum(CONSTANT * np.maximum(np.abs(low), np.abs(high)), SMALLEST_RANGE)
        regular = high - low > least
        anchor, mean = line[:n_windows], np.where(regular, mean, 0.0)
        inverse = np.divide(1.0, deviation, out=np.zeros(n_windows), where=regular)
    distances = np.empty(places.size)
    step = _at_a_time(reduction)
    for start in range(0, places.size, step):
        some = places[start : start + step]
        window = points[some + np.arange(length)[:, np.newaxis]]
        window = (window - anchor[some] - mean[some]) * inverse[some]
        lengths = np.full(some.size, length)
        with np.errstate(over="ignore"):
            costs = by_numpy.fill(query, window[np.newaxis], lengths, lengths, warping, cancel)
        distances[start : start + step] = warping.distance(costs)
    keep = (distances <= reduction.limit_of(row)) & (distances < np.inf)
    return TileMatches(places[keep], distances[keep])


def _at_a_time(reduction: SubsequenceNeighbors) -> int:
    """Windows side by side for NumPy."""
    return max(1, 2 * ENTRIES // reduction.longest)


def _seconds(reduction: SubsequenceNeighbors, n_queries: int, n_windows: int) -> float:
    """About how long NumPy takes for some queries."""
    length, n_steps = reduction.longest, -(-n_windows // _at_a_time(reduction))
    cells = reduction.warping.cells(length, length)
    return n_queries * (3e-9 * cells * n_windows + 30e-6 * length * n_steps)


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
