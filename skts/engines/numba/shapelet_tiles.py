"""Tiles of shapelets on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._memory import PreparedStore
from .._reductions import Tile
from .._series import Series
from .._shapelets import (
    LEAST_NORMALIZED,
    UNIT,
    Criterion,
    Matches,
    ShapeletSearch,
    SubsequenceMatches,
    Survivors,
)
from . import shapelets

__all__ = ["ShapeletTiles"]

_WAYS = {"first": 0, "and": 1, "or": 2}
#: Entries of a list of candidates before it is weeded.
LISTED = 2**14
HALF = 2.0**-53


class Block(NamedTuple):
    """Distances of the candidates of some series, for one length."""

    squares: np.ndarray
    errors: np.ndarray
    exact: np.ndarray
    counts: np.ndarray


class Edges:
    """Raw products that go from one length to the next, of one channel and block."""

    def __init__(self) -> None:
        self.length = 0
        self.arrays: tuple[np.ndarray, ...] = ()


class ShapeletTiles:
    """Methods of the CPU engine for shapelets."""

    prepared: PreparedStore

    def subsequence_matches_bytes(
        self, reduction: SubsequenceMatches, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its answer, and one series with its statistics."""
        longest = max(query.size for query in reduction.queries)
        return 0, 16 * rows * cols + 8 * rows * longest + 80 * reduction.series.n_timepoints

    def subsequence_matches(
        self, reduction: SubsequenceMatches, tile: Tile, cancel: np.ndarray
    ) -> Matches:
        """Best matches of some queries in some series."""
        queries = reduction.queries[tile.rows]
        channels = reduction.channels
        channels = np.zeros(len(queries), np.int64) if channels is None else channels[tile.rows]
        found = Matches(np.empty(tile.shape), np.empty(tile.shape, np.int64))
        series = reduction.series.take(tile.cols)
        shapelets.match(
            np.concatenate(queries),
            np.cumsum([query.size for query in queries]),
            channels,
            series.values,
            series.lengths,
            *found,
            cancel,
            reduction.normalize or None,
        )
        return found

    def shapelet_search_bytes(
        self, reduction: ShapeletSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: distances of one block and length, products of its edges."""
        n, width = len(reduction.members), reduction.series.n_timepoints
        edges = 1 if reduction.shape[1] == 1 else 2
        each = 8 * reduction.block * n * width * (1 + edges * cols)
        return 0, each + 80 * n * width + 48 * LISTED

    def shapelet_search(
        self, reduction: ShapeletSearch, tile: Tile, cancel: np.ndarray
    ) -> Survivors:
        """Candidates of some lengths and blocks that could be the best."""
        held = Held(reduction.least, reduction.least_gap)
        tables = _tables(reduction.criterion)
        edges: dict[tuple[int, int], Edges] = {}
        series = reduction.series.take(reduction.members)
        for length in reduction.lengths[tile.rows]:
            for channel in range(series.n_channels):
                values = np.ascontiguousarray(series.values[:, channel])
                prepared = None
                for block in range(tile.col, tile.col_stop):
                    first = block * reduction.block
                    stop = min(first + reduction.block, len(series))
                    if length < LEAST_NORMALIZED:
                        found = _raw(series, channel, first, stop, length, cancel)
                    else:
                        if prepared is None:
                            prepared = shapelets.prepare(values, series.lengths, length, True)
                        edge = edges.setdefault((channel, block), Edges())
                        found = _distances(
                            prepared, series.lengths, first, stop, length, edge, cancel
                        )
                    if cancel[0]:
                        return held.survivors()
                    _scan(reduction, found, tables, held, (length, first, channel), cancel)
        return held.survivors()


class Held:
    """The candidates that could be the best, so far."""

    def __init__(self, gain: int, gap: float) -> None:
        self.best = (gain, gap)
        self.parts: list[Survivors] = []
        self.size = 0

    def add(self, found: Survivors, best: tuple[int, float]) -> None:
        """Take some candidates."""
        self.best = max(self.best, best)
        self.parts.append(found)
        self.size += len(found.gain)
        if self.size > LISTED:
            self.parts = [self.survivors()]
            self.size = len(self.parts[0].gain)

    def survivors(self) -> Survivors:
        """What could still be the best."""
        if not self.parts:
            return Survivors(np.empty(0, np.int64), np.empty(0), np.empty((0, 5), np.int64))
        gain, gap, where = (np.concatenate(parts) for parts in zip(*self.parts, strict=True))
        keep = (gain > self.best[0]) | ((gain == self.best[0]) & (gap >= self.best[1]))
        return Survivors(gain[keep], gap[keep], where[keep])


def _tables(criterion: Criterion) -> tuple:
    """Entropies of all numbers of series, class by class and of all; and what else is needed."""
    n, weights = len(criterion.labels), np.asarray(criterion.class_weight, np.float64)

    def table(weight: float) -> np.ndarray:
        each = np.arange(n + 2) * weight
        return np.rint(UNIT * each * np.log(np.where(each > 0, each, 1.0))).astype(np.int64)

    tables = np.stack([table(weight) for weight in weights])
    counts = criterion.counts
    equal = bool(np.all(weights == weights[0]))
    sizes = table(weights[0] if equal else 1.0)
    total = float(counts @ weights)
    if not equal:
        sizes[n] = criterion.terms(counts) + tables[np.arange(len(weights)), counts].sum()
    spare = np.array(
        [float(equal), criterion.min_weight_leaf, weights.max() / max(total, 1e-300), total]
    )
    leaf = criterion.min_samples_leaf
    if equal and weights[0] > 0:
        leaf = max(leaf, int(np.ceil(criterion.min_weight_leaf / weights[0] - 1e-9)))
    return criterion.labels, tables, sizes, weights, spare, leaf


def _scan(
    reduction: ShapeletSearch,
    found: Block,
    tables: tuple,
    held: Held,
    place: tuple[int, int, int],
    cancel: np.ndarray,
) -> None:
    """Judge the candidates of a block."""
    length, first, channel = place
    members = np.arange(len(reduction.members))
    before = np.zeros(members.size) if reduction.before is None else reduction.before**2
    ways = np.array([_WAYS[way] for way in reduction.ways])
    gains, gaps = np.empty(LISTED, np.int64), np.empty(LISTED)
    where = np.empty((LISTED, 3), np.int64)
    offset = (0, 0)
    while offset[0] < found.counts.size and not cancel[0]:
        *offset, count, best = shapelets.scan(
            *found, members, *tables, before, ways, held.best, gains, gaps, where, tuple(offset),
            cancel,
        )  # fmt: skip
        full = np.empty((count, 5), np.int64)
        full[:, 0], full[:, 3] = length, channel
        full[:, 1], full[:, 2], full[:, 4] = where[:count, 0] + first, *where[:count, 1:].T
        held.add(Survivors(gains[:count].copy(), gaps[:count].copy(), full), best)


def _distances(
    prepared: tuple,
    lengths: np.ndarray,
    first: int,
    stop: int,
    length: int,
    edge: Edges,
    cancel: np.ndarray,
) -> Block:
    """Estimate distances of a block of candidates to all series, and bound their errors."""
    centered, mean, _, _, weight, constant, largest = prepared
    n, width = centered.shape
    whole = first == 0 and stop == n
    if not edge.arrays:
        edge.arrays = (np.empty((stop - first, n, width)),)
        if not whole:
            edge.arrays += (np.empty((n, stop - first, width)),)
    for array, rows, cols in zip(
        edge.arrays, ((first, stop), (0, n)), ((0, n), (first, stop)), strict=False
    ):
        shapelets.seed(centered, lengths, rows, cols, edge.length, length, array, cancel)
    edge.length = length
    squares = np.empty((stop - first, mean.shape[1], n))
    shapelets.joins(
        prepared, lengths, first, stop, length, edge.arrays[0], edge.arrays[-1], squares, cancel
    )
    norm, step, heavy, size, middle = largest.T
    steps = mean.shape[1] + 4
    own = slice(first, stop)
    error = HALF * steps * (3 * np.outer(norm[own], norm) + 6 * np.outer(step[own], step))
    error += 2 * HALF * (length + 8) * length * np.outer(size[own], size)
    coarse = 2 * HALF * np.sqrt(length) * (size + middle)
    error += np.outer(coarse[own], norm) + np.outer(norm[own], coarse)
    worst = (2 * error * heavy).max(axis=1) + 8 * coarse[own]
    errors = worst[:, np.newaxis] * weight[own]
    errors += 16 * length * HALF + 8 * (coarse * heavy).max()
    return Block(squares, errors, constant[own], lengths[own] - length + 1)


def _raw(
    series: Series, channel: int, first: int, stop: int, length: int, cancel: np.ndarray
) -> Block:
    """Distances of windows as they are: too short for joins to be worth while."""
    n, width = len(series), series.n_timepoints
    squares = np.zeros((stop - first, width - length + 1, n))
    counts = series.lengths[first:stop] - length + 1
    shapelets.raw(series.values[:, channel], series.lengths, first, length, squares, cancel)
    scale = squares.max(initial=0.0, where=np.isfinite(squares))
    errors = np.full(squares.shape[:2], 1e-14 * scale)
    return Block(squares, errors, np.zeros(squares.shape[:2], bool), counts)
