"""Tiles of shapelets on the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .._memory import PreparedStore
from .._reductions import Reduction, Tile
from .._series import Series
from .._shapelets import (
    LEAST_NORMALIZED,
    Matches,
    ShapeletSearch,
    SubsequenceMatches,
    Survivors,
)
from .shapelet_programs import MOST_CLASSES, MOST_MEMBERS

if TYPE_CHECKING:
    import cupy

    from .shapelets import DeviceSeries, Heads

__all__ = ["ShapeletTiles"]

#: Bytes of a candidate on the list, and of what is measured at a time.
LIST_BYTES, MEASURE_BYTES = 32 * 2**22, 64 * 2**21


class ShapeletTiles:
    """Methods of the GPU engine for shapelets."""

    prepared: PreparedStore

    def supports(self, reduction: Reduction) -> str | None:
        """Return None if this engine computes such work, else the reason why not."""
        if isinstance(reduction, ShapeletSearch):
            n, classes = len(reduction.members), len(reduction.criterion.class_weight)
            if n > MOST_MEMBERS or classes > MOST_CLASSES:
                return (
                    f"engine='cupy' searches shapelets among {MOST_MEMBERS} series of "
                    f"{MOST_CLASSES} classes at most; here are {n} series of {classes} classes."
                )
        return super().supports(reduction)  # type: ignore[misc]

    def subsequence_matches_bytes(
        self, reduction: SubsequenceMatches, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: its answer, queries, and series."""
        longest = max(query.size for query in reduction.queries)
        series = reduction.series.n_channels * reduction.series.n_timepoints
        return 0, 16 * rows * cols + (32 * longest + 64) * rows + 8 * cols * (series + 2)

    def subsequence_matches(
        self, reduction: SubsequenceMatches, tile: Tile, cancel: np.ndarray
    ) -> Matches:
        """Best matches of some queries in some series."""
        import cupy as cp

        from . import shapelets

        queries, series = reduction.queries[tile.rows], reduction.series.take(tile.cols)
        lengths = np.array([query.size for query in queries])
        channels = reduction.channels
        channels = np.zeros(len(queries), np.int64) if channels is None else channels[tile.rows]
        distances = cp.empty(tile.shape)
        starts = cp.empty(tile.shape, np.int64)
        shapelets.best_matches(
            cp.asarray(np.concatenate(queries)),
            *(np.cumsum(lengths) - lengths, lengths, channels, np.arange(len(queries))),
            *(cp.asarray(series.values), cp.asarray(series.lengths, np.int32)),
            *(cp.arange(len(series), dtype=np.int32), reduction.normalize, distances, starts),
        )
        return Matches(distances.get(), starts.get())

    def shapelet_search_bytes(
        self, reduction: ShapeletSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device: scores that are kept; those of a block for one length."""
        return _kept(reduction, self.budget())[1], _tile_bytes(reduction, cols * reduction.block)

    def shapelet_search(
        self, reduction: ShapeletSearch, tile: Tile, cancel: np.ndarray
    ) -> Survivors:
        """Candidates of some lengths and blocks that could be the best."""
        import cupy as cp

        from . import shapelets

        series, members, size = reduction.series, reduction.members, reduction.block
        values, sizes = self._values(series)
        lengths = reduction.lengths[tile.rows]
        first = (reduction.blocks[0] + tile.col) * size
        stop = min((reduction.blocks[0] + tile.col_stop) * size, len(members))
        points = cp.asarray(series.lengths[members[first:stop]], np.int32)
        owns = cp.arange(first, stop, dtype=np.int32)
        lines = shapelets.Lines(
            *(values, sizes, members, reduction.criterion, reduction.before, reduction.ways),
            (reduction.least, reduction.least_gap),
            (stop - first) * (series.n_timepoints - lengths[0] + 1),
            len(lengths) * series.n_channels,
        )
        for channel in range(series.n_channels):
            for length in lengths:
                if length < LEAST_NORMALIZED:
                    for where in _all_candidates(reduction, length, channel, first, stop):
                        lines.every(where)
            run = tuple(length for length in lengths if length >= LEAST_NORMALIZED)
            for length, heads, rows, columns in self._heads(reduction, channel, first, stop, run):
                if cancel[0]:
                    return lines.survivors()
                lines.scan(heads, length, channel, rows, points, owns, columns)
        return lines.survivors()

    def _heads(
        self,
        reduction: ShapeletSearch,
        channel: int,
        first: int,
        stop: int,
        lengths: tuple[int, ...],
    ) -> Iterator[tuple[int, Heads, cupy.ndarray, cupy.ndarray]]:
        """Scores of the candidates of some members: those that are kept, and computed ones.

        Yields the length, scores, and where among their rows and columns these members, and all
        members, are.
        """
        import cupy as cp

        from . import shapelets

        series, members = reduction.series, cp.asarray(reduction.members, np.int32)
        n = len(members)
        everyone = cp.arange(n, dtype=np.int32)
        lengths_kept, shelf = self._shelf(reduction, channel)
        found = {length: shelf[length] for length in lengths if length in shelf}
        for length, heads in found.items():
            yield length, heads, members[first:stop], members
        missing = [length for length in lengths if length not in found]
        if not missing:
            return
        device_series = self._channel(series, channel)
        at_root = n == len(series)
        if not at_root:
            device_series = device_series.take(members)
        walk = shapelets.Walk(device_series, first, stop, missing[0])
        for length in missing:
            heads = walk(length)
            if at_root and stop - first == n and length in lengths_kept:
                shelf[length] = heads
            yield length, heads, everyone[: stop - first], everyone

    def _shelf(
        self, reduction: ShapeletSearch, channel: int
    ) -> tuple[frozenset[int], dict[int, Heads]]:
        """Lengths whose scores stay on the current device, and those that are there."""
        import cupy as cp

        lengths, size = _kept(reduction, self.budget())
        key = "shapelets", cp.cuda.Device().id, channel, reduction.lengths

        def build() -> tuple[dict[int, Heads], int]:
            return {}, size // reduction.series.n_channels

        return lengths, self.prepared.get(reduction.series.values, key, build)

    def _values(self, series: Series) -> tuple[cupy.ndarray, cupy.ndarray]:
        """All series on the current device, kept while they live."""
        import cupy as cp

        def build() -> tuple[tuple[cupy.ndarray, cupy.ndarray], int]:
            made = cp.asarray(series.values), cp.asarray(series.lengths, np.int32)
            return made, made[0].nbytes + made[1].nbytes

        return self.prepared.get(series.values, ("values", cp.cuda.Device().id), build)

    def _channel(self, series: Series, channel: int) -> DeviceSeries:
        """One channel of all series on the current device, kept while they live."""
        import cupy as cp

        from . import shapelets

        def build() -> tuple[DeviceSeries, int]:
            made = shapelets.lay(series, channel)
            return made, made.nbytes

        return self.prepared.get(series.values, ("channel", cp.cuda.Device().id, channel), build)


def _all_candidates(
    reduction: ShapeletSearch, length: int, channel: int, first: int, stop: int
) -> Iterator[np.ndarray]:
    """All candidates of some members, of one length: (length, member, start, channel, way)."""
    for member in range(first, stop):
        count = int(reduction.series.lengths[reduction.members[member]]) - length + 1
        for way in range(len(reduction.ways)):
            where = np.empty((count, 5), np.int64)
            where[:] = length, member, 0, channel, way
            where[:, 2] = np.arange(count)
            yield where


def _tile_bytes(reduction: ShapeletSearch, block: int) -> int:
    """Bytes of a block of so many series against all, for one length."""
    n, width = len(reduction.members), reduction.series.n_timepoints
    windows, block = width - reduction.lengths[0] + 1, min(block, n)
    candidates = block * windows * len(reduction.lengths) * len(reduction.ways)
    lists = min(LIST_BYTES, 32 * candidates) + min(MEASURE_BYTES, 64 * candidates * n)
    # scores, edges of both sides, what passes from strip to strip; the same again for a while
    return 32 * n * block * windows + (100 * n + 40 * block) * (windows + 32) + lists


def _kept(reduction: ShapeletSearch, budget: int) -> tuple[frozenset[int], int]:
    """Lengths whose scores among all series stay, for nodes and literals to come; their bytes.

    Half of the budget is theirs; what a block of all series needs comes first.
    """
    n, width = len(reduction.series), reduction.series.n_timepoints
    spare = min(budget // 2, budget - 2 * _tile_bytes(reduction, n))
    kept, total = [], 0
    for length in reduction.lengths:
        windows = width - length + 1
        size = reduction.series.n_channels * (4 * n * n * windows + 12 * n * (windows + n))
        if total + size > spare:
            break
        kept.append(length)
        total += size
    return frozenset(kept), total
