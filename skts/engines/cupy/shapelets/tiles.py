"""Tiles of shapelets on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from ...core.constants import SHORT_WINDOW
from ...core.engine import go_through
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series
from ...families.shapelets.criterion import Criterion
from ...families.shapelets.matches import LEAST_NORMALIZED, Matches, SubsequenceMatches
from ...families.shapelets.search import LANES, ShapeletSearch, Survivors
from .group_tiles import GroupTiles
from .match_programs import DOUBLES, match_bytes
from .programs import MOST_MEMBERS, MOST_SHARED, most_classes, scan_kernel

if TYPE_CHECKING:
    import cupy

    from .order_lines import Lengths
    from .walk import DeviceChannel, PackedScores

__all__ = ["ShapeletTiles"]

#: Pairs of windows that are worth a launch of their own, and lengths that are walked in one.
WORTH_A_LAUNCH, TOGETHER = 2**34, 32
#: CPU seconds that compiling what only a search needs takes; seconds in which the host judges a
#: distance of a candidate.
TO_COMPILE, JUDGED = 2.0, 1e-7
#: Candidates that the list has room for, and of these, that may stay on it; distances that are
#: measured at a time; bytes of each, with what it takes to find candidates that are equal.
LISTED, HELD, DISTANCES = 2**21, 2**17, 2**23
LIST_BYTES, MEASURE_BYTES = 192, 64


class ShapeletRoom(NamedTuple):
    """Amounts of work that a tile has on the device at a time.

    Attributes
    ----------
    block : int
        Series whose candidates are searched together.
    together : int
        Lengths that are walked in one launch.
    listed, held : int
        Candidates that the list has room for, and those that may stay on it.
    measured : int
        Candidates that are measured at a time.
    nbytes : int
        All of that in bytes.
    """

    block: int
    together: int
    listed: int
    held: int
    measured: int
    nbytes: int


class Shelf:
    """Scores that stay on a device for nodes and literals to come.

    Attributes
    ----------
    at : dict
        Where those of each length are.
    """

    def __init__(self) -> None:
        self.at: dict[int, tuple[PackedScores, int]] = {}
        self._known: tuple[tuple[int, ...], Lengths] | None = None

    def of(self, lengths: tuple[int, ...]) -> Lengths:
        """Describe some of the lengths; every node asks for the same ones."""
        from .order_lines import Lengths

        if self._known is None or self._known[0] != lengths:
            self._known = lengths, Lengths.of([self.at[length] for length in lengths])
        return self._known[1]


class ShapeletTiles(GroupTiles):
    """Methods of the GPU engine for shapelets."""

    prepared: PreparedStore
    available: Callable[[], str | None]
    budget: Callable[[], int]
    _devices: Callable[[], tuple[int, ...]]

    def shapelet_search_lacks(self, reduction: ShapeletSearch) -> str | None:
        """Return None if shared memory holds so many series and classes, else the reason."""
        if not isinstance(reduction.criterion, Criterion):
            return "engine='cupy' bounds the gains of classes, not of targets of a regression."
        n, classes = len(reduction.members), len(reduction.criterion.groups[1])
        most = MOST_SHARED
        if self.available() is None:
            from .order_lines import most_shared

            most = most_shared()
        if n > MOST_MEMBERS:
            return (
                f"engine='cupy' searches shapelets among {MOST_MEMBERS} series at most; here "
                f"are {n}."
            )
        if scan_kernel(n, classes, most) is None:
            fewer = most_classes(n, most)
            kinds = "classes"
            if reduction.criterion.sample_weight is not None:
                kinds = "pairs of a class and a weight"
            return (
                f"engine='cupy' searches shapelets of {fewer} {kinds} at most among {n} "
                f"series; here are {classes}."
            )
        return None

    def subsequence_matches_bytes(
        self, reduction: SubsequenceMatches, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: its answer, queries, series, and what matching takes."""
        series, sizes = reduction.series, [query.size for query in reduction.queries]
        shape = series.n_channels, series.n_timepoints
        matching = match_bytes(rows, min(sizes), max(sizes), cols, *shape)
        given = 16 * rows * cols + 16 * max(sizes) * rows + 8 * cols * (shape[0] * shape[1] + 2)
        return 0, given + matching

    def subsequence_matches(
        self, reduction: SubsequenceMatches, tile: Tile, cancel: np.ndarray
    ) -> Matches:
        """Best matches of some queries in some series."""
        import cupy as cp

        from .matches import ask, best_matches

        queries, series = reduction.queries[tile.rows], reduction.series.take(tile.cols)
        lengths = np.array([query.size for query in queries])
        channels = reduction.channels
        channels = np.zeros(len(queries), np.int64) if channels is None else channels[tile.rows]
        distances = cp.empty(tile.shape)
        starts = cp.empty(tile.shape, np.int64)
        asked = ask(
            *(np.cumsum(lengths) - lengths, lengths, channels, np.arange(len(queries))),
            *(series.values.shape, len(series), reduction.normalize),
        )
        best_matches(
            *(asked, cp.asarray(np.concatenate(queries))),
            *(cp.asarray(series.values), cp.asarray(series.lengths, np.int32)),
            cp.asarray(np.arange(len(series), dtype=np.int32)),
            *(distances, starts),
        )
        return Matches(distances.get(), starts.get())

    def shapelet_search_bytes(
        self, reduction: ShapeletSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device: scores that are kept; those of a block for some lengths."""
        budget = self._budget_of_a_device()
        room = _room(reduction, len(reduction.members), cols * reduction.block, budget)
        return _kept(reduction, budget)[1] * len(self._devices()), room.nbytes

    def shapelet_search(
        self, reduction: ShapeletSearch, tile: Tile, cancel: np.ndarray
    ) -> Survivors:
        """Candidates of some lengths and blocks that could be the best."""
        return go_through(self.shapelet_search_steps(reduction, tile, cancel))

    def shapelet_search_steps(
        self, reduction: ShapeletSearch, tile: Tile, cancel: np.ndarray
    ) -> Generator[None, None, Survivors]:
        """Find them in steps: judge all candidates, measure a few that could be the best."""
        from .order_lines import Lines

        series, members, size = reduction.series, reduction.members, reduction.block
        values, sizes = self._values(series)
        lengths = reduction.lengths[tile.rows]
        begin = (reduction.blocks[0] + tile.col) * size
        end = min((reduction.blocks[0] + tile.col_stop) * size, len(members))
        cols = (tile.col_stop - tile.col) * size
        room = _room(reduction, len(members), cols, self._budget_of_a_device())
        lines = Lines(
            *(values, sizes, members, series.lengths[members], _criterion(reduction)),
            *(reduction.before, reduction.ways),
            (reduction.best_gain_so_far, reduction.best_gap_so_far),
            *(room.listed, room.held, room.measured),
            reduction.before_normalized,
            on_host=self._is_small(reduction, lengths, end - begin),
        )
        points, places = lines.points, lines.places
        raw = [length for length in lengths if length < LEAST_NORMALIZED or lines.on_host]
        normalized = tuple(length for length in lengths if length not in raw)
        for first in range(begin, end, room.block):
            stop = min(first + room.block, end)
            of_block = points[first:stop], places[first:stop]
            for channel in range(series.n_channels):
                for length in raw:
                    if cancel[0]:
                        return (yield from lines.survivors())
                    of_members = _all_candidates(reduction, length, channel, first, stop)
                    for where in [np.concatenate([*of_members])] if lines.on_host else of_members:
                        lines.every(where)
                for heads, rows, columns in self._heads(
                    *(reduction, channel, first, stop, normalized, room.together),
                    *(lines.members, places),
                ):
                    if cancel[0]:
                        return (yield from lines.survivors())
                    lines.scan(heads, channel, rows, *of_block, columns, cancel)
        return (yield from lines.survivors())

    def _is_small(
        self, reduction: ShapeletSearch, lengths: tuple[int, ...], n_candidates: int
    ) -> bool:
        """Whether to measure all candidates of so many members: to compile the search takes longer.

        All candidates are then measured on the device, and the host judges their cuts.
        """
        from ..loading import MODEST_RATE, pays
        from .order_lines import most_shared

        n, series = len(reduction.members), reduction.series
        kernel = scan_kernel(n, len(_criterion(reduction).groups[1]), most_shared())
        if kernel is None:
            return True
        if pays(kernel.file, kernel.name, 0.0, TO_COMPILE):
            return False
        windows = series.n_timepoints + 1 - np.array(lengths)
        distances = n_candidates * series.n_channels * len(reduction.ways) * n * windows
        seconds = distances @ (JUDGED + DOUBLES * windows * np.array(lengths) / MODEST_RATE)
        return not pays(kernel.file, kernel.name, float(seconds), TO_COMPILE)

    def _heads(
        self,
        reduction: ShapeletSearch,
        channel: int,
        first: int,
        stop: int,
        lengths: tuple[int, ...],
        together: int,
        members: cupy.ndarray,
        places: cupy.ndarray,
    ) -> Iterator[tuple[Lengths, cupy.ndarray, cupy.ndarray]]:
        """Scores of the candidates of some members, of all lengths; `places` counts the members.

        Yields lengths, and where among their rows and columns these members, and all members, are.
        Scores that do not stay come as they are computed, others at the end.
        """
        from .order_lines import Lengths
        from .walk import Walk

        series, n = reduction.series, len(members)
        lengths_kept, kept = self._shelf(reduction, channel)
        shelf = kept.at
        at_root = n == len(series) and stop - first == n
        missing = tuple(length for length in lengths if length not in shelf)
        if missing:
            on_device = self._channel(series, channel)
            if n < len(series):
                on_device = on_device.take(members)
            walk = Walk(on_device, first, stop, missing[0], min(together, len(missing)))
        for batch in _batches(missing, lengths_kept if at_root else frozenset(), together):
            heads = walk(batch)
            at = [(heads, z) for z in range(len(batch))]
            if at_root and batch[0] in lengths_kept:
                shelf.update(zip(batch, at, strict=True))
            else:
                yield Lengths.of(at), places[: stop - first], places
        found = tuple(length for length in lengths if length in shelf)
        if found:
            yield kept.of(found), members[first:stop], members

    def _shelf(self, reduction: ShapeletSearch, channel: int) -> tuple[frozenset[int], Shelf]:
        """Lengths whose scores stay on the current device, and where those that are there are."""
        import cupy as cp

        lengths, size = _kept(reduction, self._budget_of_a_device())
        key = "shapelets", cp.cuda.Device().id, channel, reduction.lengths

        def build() -> tuple[Shelf, int]:
            return Shelf(), size // reduction.series.n_channels

        return lengths, self.prepared.get(reduction.series.values, key, build)

    def _budget_of_a_device(self) -> int:
        """All devices get equal shares."""
        return self.budget() // len(self._devices())

    def _values(self, series: Series) -> tuple[cupy.ndarray, cupy.ndarray]:
        """All series on the current device, kept while they live."""
        import cupy as cp

        from ..transfers import send_one

        def build() -> tuple[tuple[cupy.ndarray, cupy.ndarray], int]:
            made = send_one(series.values), send_one(series.lengths.astype(np.int32))
            return made, made[0].nbytes + made[1].nbytes

        return self.prepared.get(series.values, ("values", cp.cuda.Device().id), build)

    def _channel(self, series: Series, channel: int) -> DeviceChannel:
        """One channel of all series on the current device, kept while they live."""
        import cupy as cp

        from .walk import lay

        def build() -> tuple[DeviceChannel, int]:
            made = lay(series, channel)
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


def _batches(
    lengths: tuple[int, ...], kept: frozenset[int], together: int
) -> Iterator[tuple[int, ...]]:
    """Lengths that are walked together: all of them stay, or none, and all are short, or none."""
    for _, alike in groupby(lengths, lambda length: (length in kept, length <= SHORT_WINDOW)):
        run = tuple(alike)
        for first in range(0, len(run), together):
            yield run[first : first + together]


def _criterion(reduction: ShapeletSearch) -> Criterion:
    """The criterion of a search that is not refused."""
    return cast(Criterion, reduction.criterion)


def _room(reduction: ShapeletSearch, n: int, block: int, budget: int) -> ShapeletRoom:
    """Choose amounts for a tile of n series: enough to be fast, and a part of the budget."""
    series, lengths = reduction.series, reduction.lengths
    shape = series.n_timepoints, series.n_channels, lengths[0], len(lengths), len(reduction.ways)
    return _room_of(shape, n, min(block, n), budget)


@lru_cache(64)
def _room_of(
    shape: tuple[int, int, int, int, int], n: int, block: int, budget: int
) -> ShapeletRoom:
    """Amounts by points, channels, the least length, how many lengths and ways there are."""
    width, n_channels, shortest, many, n_ways = shape
    windows = width - shortest + 1

    def of_lengths(together: int) -> int:
        # scores, edges of both sides, what passes from strip to strip; the scores before
        return together * (32 * n * block * windows + (100 * n + 40 * block) * (windows + 32))

    def of_a_length() -> int:
        return block * windows * n_ways

    while block > LANES and max(2 * of_lengths(1), 8 * LIST_BYTES * of_a_length()) > budget:
        block = max(LANES, block // 2)
    together = min(
        WORTH_A_LAUNCH // (block * n * windows**2 // 2 + 1), budget // 16 // of_lengths(1)
    )
    together = min(max(together, 1), TOGETHER, many)
    total = of_a_length() * many * n_channels
    part = budget // 8
    listed = min(total, max(of_a_length(), min(LISTED, part // LIST_BYTES)))
    held = min(total, HELD, part // LIST_BYTES)
    # distances, and the points of a candidate
    each = n + width // 8
    measured = max(1, min(total, min(DISTANCES, part // MEASURE_BYTES) // each))
    # windows as they grow, and what measuring knows of each point
    nbytes = of_lengths(together) + 48 * n * (windows + width * n_channels)
    nbytes += LIST_BYTES * (listed + held) + MEASURE_BYTES * measured * each
    return ShapeletRoom(block, together, listed, held, measured, nbytes)


def _kept(reduction: ShapeletSearch, budget: int) -> tuple[frozenset[int], int]:
    """Lengths whose scores among all series stay, for nodes and literals to come; their bytes.

    Three quarters of the budget are theirs; what a block of all series needs comes first.
    """
    n = len(reduction.series)
    room = _room(reduction, n, n, budget)
    if room.block < n:
        return frozenset(), 0
    most = min(3 * budget // 4, budget - 2 * room.nbytes)
    return _lengths_within(reduction.series.shape, reduction.lengths, room.together, most)


@lru_cache(64)
def _lengths_within(
    shape: tuple[int, int, int], lengths: tuple[int, ...], together: int, most: int
) -> tuple[frozenset[int], int]:
    """The first lengths whose scores take so many bytes at most, and what they take."""
    n, n_channels, width = shape
    # windows of a length take as much as those of the first one that it is walked with
    walked_with = np.maximum(0, np.arange(len(lengths)) - together + 1)
    windows = width - np.array(lengths)[walked_with] + 1
    sizes = np.cumsum(n_channels * (4 * n * n + 9 * n) * windows + 4 * n * n)
    fits = int(np.searchsorted(sizes, most, side="right"))
    return frozenset(lengths[:fits]), int(sizes[fits - 1]) if fits else 0
