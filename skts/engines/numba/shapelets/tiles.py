"""Tiles of shapelets on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ...core.constants import FLOAT64_UNIT
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series, read_only
from ...families.shapelets.criterion import Tables
from ...families.shapelets.matches import LEAST_NORMALIZED, Matches, SubsequenceMatches
from ...families.shapelets.search import ShapeletSearch, Survivors
from ...families.shapelets.variance import VarianceTables
from ...host.small_work import most_bytes, prefer_numpy
from . import by_numpy
from .group_tiles import LIMIT, GroupTiles
from .joins import SeriesBlock, joins, less_means, prepare, raw
from .matches import Queries, match
from .scan import Distances, Found, JudgedRows, Literals, scan

__all__ = ["ShapeletTiles", "blocks_of"]

_WAYS = {"first": 0, "and": 1, "or": 2}
#: Entries of a list of candidates before those that cannot be the best are dropped.
LISTED = 2**12
#: Error of squared distances of windows as they are, of which the largest is near 1.
#: see "short windows" in docs/developer/numerics.rst
RAW_ERROR = 2.0**-46
#: Bytes that NumPy holds in place of the kernels of a tree, at most.
NUMPY_BYTES = 2**24
#: Points whose squares NumPy can sum.
LARGEST = 2.0**500
#: Squares below this lose precision.
SMALLEST_SQUARE = 2.0**-950


class ShapeletTiles(GroupTiles):
    """Methods of the CPU engine for shapelets."""

    prepared: PreparedStore
    budget: Callable[[], int]

    def subsequence_matches_bytes(
        self, reduction: SubsequenceMatches, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its answer, and one series with its statistics."""
        longest = max(query.size for query in reduction.queries)
        width = reduction.series.n_timepoints
        small = min(_matches_bytes(reduction, rows, cols), most_bytes(self.budget()))
        return 0, 16 * rows * cols + 8 * rows * longest + 80 * width + small

    def subsequence_matches(
        self, reduction: SubsequenceMatches, tile: Tile, cancel: np.ndarray
    ) -> Matches:
        """Best matches of some queries in some series."""

        def seconds() -> tuple[float, float]:
            return 2e-9 * reduction.work(tile), 2e-9 * reduction.total_work

        def able() -> bool:
            return _matches_bytes(reduction, *tile.shape) <= most_bytes(self.budget())

        if reduction.normalize and prefer_numpy(seconds, match, scan, able=able, limit=LIMIT):
            return by_numpy.matches(reduction, tile.rows, tile.cols, cancel)
        queries = reduction.queries[tile.rows]
        channels = reduction.channels
        channels = np.zeros(len(queries), np.int64) if channels is None else channels[tile.rows]
        found = Matches(np.empty(tile.shape), np.empty(tile.shape, np.int64))
        series = reduction.series.take(tile.cols)
        given = Queries(
            np.concatenate(queries),
            np.cumsum([query.size for query in queries]),
            read_only(np.asarray(channels, np.int64)),
        )
        match(
            given,
            read_only(series.values),
            read_only(series.lengths),
            *found,
            cancel,
            reduction.normalize or None,
        )
        return found

    def shapelet_search_bytes(
        self, reduction: ShapeletSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: distances that are kept, distances of a block for some lengths."""
        small = _numpy_bytes(reduction)
        each = _tile_bytes(reduction, rows)
        each += small if small <= most_bytes(self.budget(), NUMPY_BYTES) else 0
        return _kept(reduction, self.budget())[1], each

    def shapelet_search(
        self, reduction: ShapeletSearch, tile: Tile, cancel: np.ndarray
    ) -> Survivors:
        """Candidates of some lengths and blocks that could be the best."""
        if self._shapelets_by_numpy(reduction, tile):
            return self._judge(reduction, tile, cancel)
        held = Held(reduction.best_gain_so_far, reduction.best_gap_so_far)
        tables = reduction.criterion.tables()
        for channel in range(reduction.series.n_channels):
            for block in range(tile.col, tile.col_stop):
                first = (reduction.blocks[0] + block) * reduction.block
                chosen = np.arange(first, min(first + reduction.block, len(reduction.members)))
                for length, distances, rows, members, owns in self._found(
                    reduction, channel, chosen, reduction.lengths[tile.rows], cancel
                ):
                    if cancel[0]:
                        return held.survivors()
                    counts = reduction.series.lengths[reduction.members[owns]] - length + 1
                    own = JudgedRows(rows, counts, members, owns)
                    _scan(reduction, distances, own, tables, held, (length, channel), cancel)
        return held.survivors()

    def _shapelets_by_numpy(self, reduction: ShapeletSearch, tile: Tile) -> bool:
        """Whether NumPy computes a tile: see `prefer_numpy`."""
        n, width, lengths = len(reduction.series), reduction.series.n_timepoints, reduction.lengths
        windows = width - lengths[0] + 1
        owner, channels = reduction.series.values, range(reduction.series.n_channels)

        def seconds(some: tuple[int, ...], n_blocks: int) -> float:
            missing = sum(
                not self.prepared.holds(owner, _key(channel, length))
                for length in some
                for channel in channels
            )
            judged = len(some) * len(channels) * min(n_blocks * reduction.block, n) * windows
            judged *= len(reduction.members) * len(reduction.ways)
            return missing * 6e-9 * (n * windows) ** 2 + 2e-7 * judged

        def both() -> tuple[float, float]:
            return seconds(lengths[tile.rows], tile.shape[1]), seconds(lengths, reduction.shape[1])

        def able() -> bool:
            budget = self.budget()
            return (
                lengths[0] >= LEAST_NORMALIZED
                and _numpy_bytes(reduction) <= most_bytes(budget, NUMPY_BYTES)
                and _kept(reduction, budget)[0].issuperset(lengths)
                and bool(np.abs(reduction.series.values).max() <= LARGEST)
            )

        return prefer_numpy(both, scan, able=able, limit=LIMIT)

    def _judge(self, reduction: ShapeletSearch, tile: Tile, cancel: np.ndarray) -> Survivors:
        """Candidates of a tile that could be the best, by NumPy."""
        series, best = reduction.series, (reduction.best_gain_so_far, reduction.best_gap_so_far)
        first = (reduction.blocks[0] + tile.col) * reduction.block
        stop = (reduction.blocks[0] + tile.col_stop) * reduction.block
        owns = np.arange(first, min(stop, len(reduction.members)))
        parts: list[Survivors] = []
        for length in reduction.lengths[tile.rows]:
            for channel in range(series.n_channels):

                def build(length: int = length, channel: int = channel) -> tuple[np.ndarray, int]:
                    made = by_numpy.all_distances(series, channel, length, cancel)
                    if cancel[0]:
                        raise LookupError
                    return made, made.nbytes

                try:
                    distances = self.prepared.get(series.values, _key(channel, length), build)
                except LookupError:  # of a search that is cancelled nothing is kept
                    return Survivors.of_parts(parts)
                found, best = by_numpy.judge(reduction, distances, owns, (length, channel), best)
                parts.append(found)
        return Survivors.of_parts(parts).filter_by_bound(best)

    def _found(
        self,
        reduction: ShapeletSearch,
        channel: int,
        chosen: np.ndarray,
        lengths: tuple[int, ...],
        cancel: np.ndarray,
    ) -> Iterator[tuple[int, Distances, np.ndarray, np.ndarray, np.ndarray]]:
        """Distances of the candidates of chosen members: those that are kept, and computed ones.

        Yields the length, distances, which of their rows and columns to take, and the places
        among the members of the series in those rows.
        """
        owner, members = reduction.series.values, reduction.members
        everyone = np.arange(len(reduction.series))
        size = replace(reduction, members=everyone, grid=None).block
        kept = _kept(reduction, self.budget())[0]
        missing = []
        for length in lengths:
            blocks = range(members[chosen[0]] // size, members[chosen[-1]] // size + 1)
            try:
                stored = [
                    self._stored(owner, (channel, length, block * size, (block + 1) * size))
                    for block in blocks
                ]
            except LookupError:
                missing.append(length)
                continue
            for block, found in zip(blocks, stored, strict=True):
                owns = chosen[members[chosen] // size == block]
                if owns.size:
                    yield length, found, members[owns] - block * size, members, owns
        at_root = len(members) == len(everyone)
        series = reduction.series if at_root else reduction.series.take(members)
        first, stop = int(chosen[0]), int(chosen[-1]) + 1
        scratch: list[Buffer] = self.prepared.get(owner, "shapelets", lambda: ([], 0))
        for keep in (True, False):
            run = tuple(length for length in missing if (at_root and length in kept) == keep)
            buffer = None if keep else _take(scratch)
            for length, found in blocks_of(series, channel, first, stop, run, buffer, cancel):
                if keep and not cancel[0]:
                    key = "shapelets", channel, length, first, first + reduction.block
                    self.prepared.get(owner, key, partial(_sized, found))
                rows = np.arange(stop - first)
                yield length, found, rows, np.arange(len(series)), chosen
            if buffer is not None:
                scratch.append(buffer)

    def _stored(self, owner: np.ndarray, key: tuple[int, ...]) -> Distances:
        """Distances that are kept; a LookupError if they are not."""
        return self.prepared.get(owner, ("shapelets", *key), _nothing)


def _key(channel: int, length: int) -> tuple[str, int, int]:
    """Under which certified distances are kept."""
    return "certified shapelets", channel, length


class Buffer:
    """Memory that is used again: first touches of fresh pages may cost more than what they hold."""

    def __init__(self) -> None:
        self.array = np.empty(0)

    def get(self, size: int) -> np.ndarray:
        """Return so many numbers of it; their values are arbitrary."""
        if self.array.size < size:
            self.array = np.empty(size)
        return self.array[:size]


def _take(scratch: list[Buffer]) -> Buffer:
    """Take a buffer that is not in use."""
    try:
        return scratch.pop()
    except IndexError:
        return Buffer()


def _nothing() -> tuple[Distances, int]:
    raise LookupError


def _sized(block: Distances) -> tuple[Distances, int]:
    """A block and its bytes."""
    return block, sum(np.asarray(part).nbytes for part in block)


def _tile_bytes(reduction: ShapeletSearch, rows: int) -> int:
    """Bytes of a tile of so many lengths and one block."""
    n, width = len(reduction.members), reduction.series.n_timepoints
    windows = width - reduction.lengths[0] + 1
    each = rows * n * (8 * reduction.block * windows + 66 * (windows + 8))
    return each + 600 * rows * windows + 32 * n * width + 64 * LISTED


def _numpy_bytes(reduction: ShapeletSearch) -> int:
    """Bytes that `by_numpy` holds for all windows of one length, the answer apart."""
    n, width = len(reduction.series), reduction.series.n_timepoints
    n_windows = n * (width - reduction.lengths[0] + 1)
    return 8 * n_windows * (2 * reduction.lengths[-1] + n + 8) + 2**21


def _matches_bytes(reduction: SubsequenceMatches, rows: int, cols: int) -> int:
    """Bytes that `by_numpy` holds: series one after the other, their windows, all distances."""
    return 8 * cols * reduction.series.n_timepoints * (rows + 16) + 2**20


def _kept(reduction: ShapeletSearch, budget: int) -> tuple[frozenset[int], int]:
    """Lengths whose distances among all series stay, for nodes and literals to come; their bytes.

    Half of the budget is theirs; what a tile needs comes first. Short candidates, whose distances
    take longest for each byte that they fill, come before long ones.
    """
    n, width = len(reduction.series), reduction.series.n_timepoints
    root = replace(reduction, members=np.arange(n), grid=None)
    spare = min(budget // 2, budget - 2 * _tile_bytes(root, 1))
    kept, total = [], 0
    for length in reduction.lengths:
        size = reduction.series.n_channels * n * ((width - length + 1) * (8 * n + 9) + 8 * n)
        if total + size > spare:
            break
        kept.append(length)
        total += size
    return frozenset(kept), total


class Held:
    """The candidates that could be the best, so far."""

    def __init__(self, gain: int, gap: float) -> None:
        self.best = (gain, gap)
        self.parts: list[Survivors] = []
        self.size = 0
        #: A kernel writes here: gains, gaps, places.
        self.list = Found(
            np.empty(LISTED, np.int64), np.empty(LISTED), np.empty((LISTED, 3), np.int64)
        )

    def add(self, found: Survivors, best: tuple[int, float]) -> None:
        """Take some candidates."""
        self.best = max(self.best, best)
        self.parts.append(found)
        self.size += len(found.gain)
        if self.size > LISTED:
            self.parts = [self.survivors()]
            self.size = len(self.parts[0].gain)

    def survivors(self) -> Survivors:
        """Candidates that could still be the best."""
        return Survivors.of_parts(self.parts).filter_by_bound(self.best)


def _scan(
    reduction: ShapeletSearch,
    distances: Distances,
    own: JudgedRows,
    tables: Tables | VarianceTables,
    held: Held,
    place: tuple[int, int],
    cancel: np.ndarray,
) -> None:
    """Judge candidates of a block, of one (length, channel)."""
    length, channel = place
    before = np.zeros(len(reduction.members))
    if reduction.before is not None:
        before = _squares(reduction.before / distances.unit)
    rules = (None, tables) if isinstance(tables, VarianceTables) else (tables, None)
    literals = Literals(before, np.array([_WAYS[way] for way in reduction.ways]))
    gains, gaps, where = held.list
    offset = (0, 0)
    while offset[0] < own.rows.size and not cancel[0]:
        reached = held.best[0], held.best[1] / distances.unit
        where_to = reached, held.list, tuple(offset), cancel
        *offset, count, best = scan(distances, own, *rules, literals, *where_to)
        full = np.empty((count, 5), np.int64)
        full[:, 0], full[:, 3] = length, channel
        full[:, 1], full[:, 2], full[:, 4] = own.owns[where[:count, 0]], *where[:count, 1:].T
        best = best[0], best[1] * distances.unit
        held.add(Survivors(gains[:count].copy(), gaps[:count] * distances.unit, full), best)


def _squares(distances: np.ndarray) -> np.ndarray:
    """Squares that are equal only where distances are; those of tiny ones are in their order."""
    squares = distances**2
    tiny = (distances > 0) & (squares < SMALLEST_SQUARE)
    ranks = np.unique(distances[tiny], return_inverse=True)[1]
    squares[tiny] = SMALLEST_SQUARE * (1 + ranks) / (1 + len(ranks))
    return squares


def blocks_of(
    series: Series,
    channel: int,
    first: int,
    stop: int,
    lengths: tuple[int, ...],
    buffer: Buffer | None,
    cancel: np.ndarray,
) -> Iterator[tuple[int, Distances]]:
    """Distances of the candidates of a block of series, for each length."""
    if not lengths:
        return
    n, width = len(series), series.n_timepoints
    values = read_only(np.ascontiguousarray(series.values[:, channel]))
    counts = read_only(series.lengths)
    short = [length for length in lengths if length < LEAST_NORMALIZED]
    # squares are 4 at most, whatever the scale
    unit = 2.0 ** np.frexp(np.abs(values).max())[1] if short else 1.0
    scaled = read_only(values / unit) if short else values
    for length in short:
        squares = np.zeros((stop - first, width - length + 1, n))
        raw(scaled, counts, first, length, squares, cancel)
        nothing = np.zeros(squares.shape[:2])
        yield (
            length,
            Distances(
                *(squares, nothing, np.zeros((stop - first, n)), RAW_ERROR),
                *(nothing.astype(bool), np.zeros(n, bool), unit),
            ),
        )
    run = np.array(lengths[len(short) :], np.int64)
    if not run.size:
        return
    centered = less_means(values, counts)
    prepared = prepare(values, counts, centered, run, cancel)
    if cancel[0]:
        return
    sizes = (stop - first) * (width - run + 1) * n
    squares = np.empty(sizes.sum()) if buffer is None else buffer.get(int(sizes.sum()))
    joins(SeriesBlock(centered, counts, first, stop, run), prepared, squares, cancel)
    ends = np.cumsum(sizes)
    for k, length in enumerate(run.tolist()):
        block = squares[ends[k] - sizes[k] : ends[k]].reshape(stop - first, -1, n)
        windows = width - length + 1
        weight, constant = prepared.weight[k][:, :windows], prepared.constant[k][:, :windows]
        errors = _errors(prepared.largest[k], length, windows, slice(first, stop))
        own = weight[first:stop].copy(), *errors, constant[first:stop].copy()
        yield length, Distances(block, *own, constant.any(axis=1), 1.0)


def _errors(
    largest: np.ndarray, length: int, n_windows: int, own: slice
) -> tuple[np.ndarray, float]:
    """Bound the errors of squared distances.

    A bound for each pair of series, to be multiplied by the weight of the candidate; and a constant
    to be added.
    """
    norm, step, heavy, size = largest.T
    # see "shapelet walk" in docs/developer/numerics.rst
    walked = 3 * np.outer(norm[own], norm) + 6 * np.outer(step[own], step)
    error = FLOAT64_UNIT * (n_windows + 4) * walked
    error += FLOAT64_UNIT * (length + 8) * length * np.outer(size[own], size)
    # errors of means, which may follow the signs of the steps
    slip = FLOAT64_UNIT * (length / 2 + 2) * size
    slipped = 2 * n_windows * step + length * size
    error += np.outer(slip[own], slipped) + np.outer(slipped[own], slip)
    coarse = 2 * FLOAT64_UNIT * np.sqrt(length) * size
    error += np.outer(coarse[own], norm) + np.outer(norm[own], coarse)
    with np.errstate(over="ignore"):  # of stretches as loud beside others as quiet as there are
        errors = np.minimum(2 * error * heavy + 8 * coarse[own, np.newaxis], 2.0**1000)
    floor = 16 * length * FLOAT64_UNIT + 8 * (coarse * heavy).max() + 1e-13
    return errors, float(floor)
