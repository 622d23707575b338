"""Tiles of subsequence search on the CPU: a piece of the line, its statistics, its queries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import are_constant
from ...families.profile.concatenated import fill_gaps, whole_windows
from ...families.search.subsequence import (
    SubsequenceNeighbors,
    TileMatches,
    normalize_windows,
    query_envelope,
)
from ...host.by_numpy import statistics
from ...host.small_work import ENTRIES, most_bytes, prefer_numpy
from ..elastic import by_numpy
from ..elastic.cells import cell_of
from ..elastic.dtw import block_kernel
from ..elastic.rows_of_cells import ROWS
from . import channels, lanes
from .lanes import AlikeQueries, Comparison, Piece
from .statistics import running_statistics

__all__ = ["SubsequenceTiles"]

#: Windows, of all queries that are searched together, for which there is room among the matches.
_TOGETHER = 2**19
#: Windows of which one query alone fills the lanes: they are of the same use to all of them then.
_ALONE = 2**13


class SubsequenceTiles:
    """Method of the CPU engine for subsequence search."""

    prepared: PreparedStore
    budget: Callable[[], int]

    def subsequence_neighbors_bytes(
        self, reduction: SubsequenceNeighbors, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its points several times, lanes; of each query all windows."""
        length, n_channels = reduction.longest, reduction.n_channels
        small = min(_numpy_bytes(reduction, cols), most_bytes(self.budget()))
        found = 33 * rows * cols
        if n_channels == 1:
            # matches of queries, and for one of them their order and which are far from each other
            found += 16 * cols * (min(rows, _together(cols)) + 1)
        else:
            found += channels.most_bytes(n_channels, length, cols)
        return (
            n_channels * _query_bytes(rows, length),
            n_channels * 42 * (cols + length) + found + 8 * 32 * (7 * length + 64) + small,
        )

    def subsequence_neighbors(
        self, reduction: SubsequenceNeighbors, tile: Tile, cancel: np.ndarray
    ) -> list[TileMatches]:
        """Windows of a tile that may match each of some queries."""
        several = reduction.n_channels > 1
        line = reduction.series.piece(tile.col, tile.col_stop + reduction.longest - 1)
        if several:
            filled, finite = channels.fill_gaps(line)
        else:
            filled, finite = fill_gaps(line)

        def seconds() -> tuple[float, float]:
            return _seconds(reduction, *tile.shape), _seconds(reduction, *reduction.shape)

        def able() -> bool:
            return _numpy_bytes(reduction, tile.shape[1]) <= most_bytes(self.budget())

        kernel = block_kernel if several else lanes.search
        small = prefer_numpy(seconds, kernel, able=able, like=cell_of(reduction.warping))
        points = np.concatenate([filled, np.repeat(filled[..., -1:], lanes.LANES, -1)], axis=-1)
        found: dict[int, TileMatches] = {}
        for length, rows in _rows_of_length(reduction, tile).items():
            n_windows = min(tile.shape[1], line.shape[-1] - length + 1)
            if n_windows < 1:
                found |= {row: TileMatches(np.empty(0, np.int64), np.empty(0)) for row in rows}
                continue
            if small:
                whole = whole_windows(finite, length)[:n_windows]
                found |= {row: _measure(reduction, row, filled, whole, cancel) for row in rows}
                continue
            if several:
                whole = whole_windows(finite, length)[:n_windows]
                windows = channels.prepare(points, whole, length, bool(reduction.normalize))
                for row in rows:
                    found[row] = channels.search(reduction, row, windows, cancel)
                continue
            piece = _prepare(reduction, points, finite, length, n_windows)
            step = _together(n_windows)
            for start in range(0, len(rows), step):
                some = rows[start : start + step]
                found |= zip(some, self._search(reduction, some, piece, cancel), strict=True)
        return [found[row] for row in range(tile.row, tile.row_stop)]

    def _search(
        self, reduction: SubsequenceNeighbors, rows: list[int], piece: Piece, cancel: np.ndarray
    ) -> list[TileMatches]:
        """Windows of a piece that may match each of some queries of one length."""
        warping, shape = reduction.warping, (len(rows), piece.whole.size)
        length = reduction.queries[rows[0]].size
        radius = min(int(warping.radius(length, length)), length - 1)
        matches = lanes.Matches(
            reduction.every_limit[rows].astype(np.float64),
            *(np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)),
            *(np.empty(shape, np.int64), np.empty(shape)),
        )
        given = [reduction.queries[row] for row in rows]
        queries = self._queries(given, radius, reduction.normalize)
        lanes.search(
            piece,
            queries,
            _in_lanes(queries),
            Comparison(radius, bool(reduction.normalize), warping.squared, warping.largest),
            cell_of(warping),
            reduction.apart_of(length, piece.whole.size),
            *(reduction.exclusion_of(length), matches, cancel),
        )
        found = [TileMatches(np.empty(0, np.int64), np.empty(0))] * len(rows)
        for k in np.flatnonzero(matches.counts).tolist():
            places = slice(matches.counts[k])
            found[k] = TileMatches(
                matches.positions[k, places].copy(), matches.distances[k, places].copy()
            )
        return found

    def _queries(self, given: list[np.ndarray], radius: int, normalize: bool) -> AlikeQueries:
        """Queries of one length prepared, once for as long as the arrays live."""

        def build() -> tuple[AlikeQueries, int]:
            made = _prepare_queries(given, radius, normalize)
            return made, _query_bytes(*made.points.shape)

        return self.prepared.get_of(given, ("queries", radius, normalize), build)


def _together(n_windows: int) -> int:
    """Queries that are searched together: as many as have a number of windows in all, or one."""
    return max(1, _TOGETHER // n_windows) if n_windows < _ALONE else 1


def _in_lanes(queries: AlikeQueries) -> np.ndarray:
    """A column of the one query, or room for one of each lane; with rows to fill up the last."""
    n_queries, length = queries.points.shape
    own = np.zeros((length + ROWS - 1, 1 if n_queries == 1 else lanes.LANES))
    if n_queries == 1:
        own[:length, 0] = queries.points[0]
    return own


def _query_bytes(n_queries: int, length: int) -> int:
    """Bytes of queries that are prepared."""
    return 40 * n_queries * length


def _rows_of_length(reduction: SubsequenceNeighbors, tile: Tile) -> dict[int, list[int]]:
    """Queries of a tile by their length: windows of one length are prepared once."""
    sizes = [query.shape[-1] for query in reduction.queries[tile.rows]]
    if len(set(sizes)) == 1:
        return {sizes[0]: list(range(tile.row, tile.row_stop))}
    rows: dict[int, list[int]] = {}
    for row, size in enumerate(sizes, tile.row):
        rows.setdefault(size, []).append(row)
    return rows


def _prepare_queries(given: list[np.ndarray], radius: int, normalize: bool) -> AlikeQueries:
    """Queries of one length, their envelopes, and in which orders their points are looked at."""
    points = normalize_windows(np.array(given, np.float64), normalize)
    envelopes = [query_envelope(one, radius) for one in points]
    low, high = (np.array([sides[k] for sides in envelopes]) for k in range(2))
    order = np.array([_order(*sides) for sides in envelopes])
    own_order = np.argsort(-np.abs(points), axis=1, kind="stable")
    return AlikeQueries(points, low, high, order, own_order)


def _numpy_bytes(reduction: SubsequenceNeighbors, n_windows: int) -> int:
    """Bytes that `_measure` holds."""
    points = reduction.n_channels * (reduction.longest + 2)
    return 8 * 12 * points * min(n_windows, _at_a_time(reduction))


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
    query = np.atleast_2d(normalize_windows(given, bool(reduction.normalize)))[..., np.newaxis]
    length, normalize = query.shape[1], bool(reduction.normalize)
    lines = [line[: whole.size + length - 1] for line in np.atleast_2d(points)]
    known = [(line, *_statistics(line, length, normalize)) for line in lines]
    distances = np.empty(places.size)
    step = _at_a_time(reduction)
    for start in range(0, places.size, step):
        some = places[start : start + step]
        at = some + np.arange(length)[:, np.newaxis]
        window = np.stack(
            [
                (line[at] - anchor[some] - mean[some]) * inverse[some]
                for line, anchor, mean, inverse in known
            ]
        )
        lengths = np.full(some.size, length)
        with np.errstate(over="ignore"):
            costs = by_numpy.fill(query, window, lengths, lengths, warping, cancel)
        distances[start : start + step] = warping.distance(costs)
    keep = (distances <= reduction.limit_of(row)) & (distances < np.inf)
    return TileMatches(places[keep], distances[keep])


def _statistics(
    line: np.ndarray, length: int, normalize: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First point, mean from it on, and 1 / deviation of all windows of a line, certified."""
    n_windows = line.size - length + 1
    if not normalize:
        return np.zeros(n_windows), np.zeros(n_windows), np.ones(n_windows)
    mean, deviation, low, high = statistics(line, length, True)
    regular = ~are_constant(low, high)
    inverse = np.divide(1.0, deviation, out=np.zeros(n_windows), where=regular)
    return line[:n_windows], np.where(regular, mean, 0.0), inverse


def _at_a_time(reduction: SubsequenceNeighbors) -> int:
    """Windows side by side for NumPy."""
    return max(1, 2 * ENTRIES // (reduction.n_channels * reduction.longest))


def _seconds(reduction: SubsequenceNeighbors, n_queries: int, n_windows: int) -> float:
    """About how long NumPy takes for some queries."""
    length, n_steps = reduction.longest, -(-n_windows // _at_a_time(reduction))
    cells = reduction.n_channels * reduction.warping.cells(length, length)
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
        running_statistics(points, length, n_windows, mean, inverse)
    return Piece(points, whole, mean, inverse)
