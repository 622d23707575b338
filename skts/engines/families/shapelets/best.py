"""The best of all candidates for shapelets, none of which cover the same points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Reduction, Tile, Tiling
from ...core.series import Series
from ...core.verify import Check, Sample, check_value
from .criterion import Criterion
from .dilated import ShapeletFeatures, plain_norms
from .places import Candidates, Kind, Places, Room, choose

__all__ = ["BestShapelets", "Bounds", "Chosen"]

#: Bytes of distances of the candidates of a block of series to all windows that are kept apart.
BLOCK_BYTES = 2**27
#: Series of a block are a multiple of this: engines take so many side by side.
LANES = 4
#: Numbers of a class on the left of a cut that are held at a time.
CUT_CELLS = 2**18
#: Distances of candidates that are held at a time.
CELLS = 2**18


class Bounds(NamedTuple):
    """Upper bounds of what candidates gain.

    Attributes
    ----------
    gain : ndarray of int64
        Of the gain of the best cut, in units of `Criterion.unit`; 0 where there is no cut.
    gap : ndarray of float64
        Of its gap, where the gain is as large as its bound; -inf where there is no cut.
    """

    gain: np.ndarray
    gap: np.ndarray


class Chosen(NamedTuple):
    """The best shapelets, the best one first.

    Attributes
    ----------
    places : Places
        Where they lie.
    gain, gap : ndarray of shape (n_shapelets,)
        As in `Bounds`, but exact.
    """

    places: Places
    gain: np.ndarray
    gap: np.ndarray


@dataclass(frozen=True, eq=False)
class BestShapelets(Reduction):
    """The best of all candidates of some kinds, by information gain and gap.

    A candidate that covers time points of one that is better, of the same series and channel, is
    passed over, and so are those of a class that has enough. Of equal candidates the first is
    better: in the order of kinds, channels, series and starts.

    Parameters
    ----------
    series : Series
        Training series; no one is shorter than the extent of a kind.
    kinds : tuple of Kind
        Kinds of candidates.
    criterion : Criterion
        How cuts are judged; all series weigh the same.
    count : int
        How many to choose at most.
    most : int
        How many from series of one class.
    grid : tuple of int, or None, default None
        Of a part: series of a block, its first row and the one after the last, its first block and
        the one after the last.

    Notes
    -----
    Engines bound what candidates gain; the answer, a `Chosen`, follows from certified distances of
    those few that the bounds leave.
    """

    series: Series
    kinds: tuple[Kind, ...]
    criterion: Criterion
    count: int
    most: int
    grid: tuple[int, int, int, int, int] | None = None
    method: ClassVar[str] = "shapelet_bounds"
    tiling: ClassVar[Tiling] = Tiling(scale=2**14, square=True)

    @cached_property
    def candidates(self) -> Candidates:
        """All candidates, with their numbers."""
        return Candidates(self.kinds, self.series.lengths, self.series.n_channels)

    @cached_property
    def block(self) -> int:
        """Series whose candidates are bounded at a time."""
        if self.grid is not None:
            return self.grid[0]
        n, largest = len(self.series), max(kind.dilation for kind in self.kinds)
        count = BLOCK_BYTES // (8 * n * (self.series.n_timepoints + largest) * largest)
        count = min(max(count // LANES * LANES, LANES), n)
        # blocks of about one size
        n_blocks = -(-n // count)
        return min(n, -(-n // (n_blocks * LANES)) * LANES)

    @property
    def spans(self) -> tuple[int, int, int, int]:
        """The first row and the one after the last, the first block and the one after the last."""
        if self.grid is not None:
            return self.grid[1:]
        return 0, len(self.kinds) * self.series.n_channels, 0, -(-len(self.series) // self.block)

    @property
    def shape(self) -> tuple[int, int]:
        """Kinds and channels, and blocks of series."""
        row, row_stop, block, block_stop = self.spans
        return row_stop - row, block_stop - block

    @property
    def step_work(self) -> int:
        """Pairs of windows, for candidates of one block, kind and channel; points of raw ones."""
        extents = np.array([kind.extent for kind in self.kinds])
        points = np.array([1 if kind.normalized else kind.length for kind in self.kinds])
        squares = (self.series.n_timepoints - extents + 1) ** 2
        return self.block * len(self.series) * int((points * squares).mean()) + 1

    @property
    def cell(self) -> tuple[int, int]:
        """One kind and channel, and one block."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of all bounds."""
        return 16 * int(self.candidates.begins()[-1])

    def part(self, tile: Tile) -> BestShapelets:
        """Return some kinds, channels and blocks; blocks need all series."""
        row, _, block, _ = self.spans
        rows, blocks = (
            (row + tile.row, row + tile.row_stop),
            (block + tile.col, block + tile.col_stop),
        )
        return replace(self, grid=(self.block, *rows, *blocks))

    def members(self, first: int, stop: int) -> tuple[int, int]:
        """The first series of some blocks and the one after the last."""
        return first * self.block, min(stop * self.block, len(self.series))

    def slices(self, tile: Tile) -> Iterator[slice]:
        """Yield for each row of a tile where its candidates are among those of this work."""
        row, _, block, block_stop = self.spans
        whole = self.members(block, block_stop)
        own = self.members(block + tile.col, block + tile.col_stop)
        end = 0
        for number in range(row, row + tile.row_stop):
            counts = self.candidates.windows(number)
            if number >= row + tile.row:
                first = end + int(counts[whole[0] : own[0]].sum())
                yield slice(first, first + int(counts[own[0] : own[1]].sum()))
            end += int(counts[slice(*whole)].sum())

    def start(self) -> Bounds:
        """Return empty arrays."""
        total = max(one.stop for one in self.slices(Tile(0, self.shape[0], 0, self.shape[1])))
        return Bounds(np.empty(total, np.int64), np.empty(total))

    def merge(self, total: Bounds, tile: Tile, result: Bounds) -> None:
        """Write the bounds of a tile."""
        end = 0
        for place in self.slices(tile):
            now = slice(end, end := end + place.stop - place.start)
            total.gain[place], total.gap[place] = result.gain[now], result.gap[now]

    def finish(self, total: Bounds, run: Callable[[Reduction], Any]) -> Chosen:
        """Measure candidates, the most promising first, until no other can be better."""
        shape = self.series.n_channels, self.series.n_timepoints
        room = Room(self.criterion.labels, shape, self.most)

        def measure(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            places = self.candidates.places(numbers)
            work = self.distances(places)
            return self.exact(run(work)[:, 0].T, places.normalized)

        places = self.candidates.places
        numbers, gain, gap = choose((total.gain, total.gap), places, room, self.count, measure)
        return Chosen(places(numbers), gain, gap)

    def distances(self, places: Places) -> ShapeletFeatures:
        """The work of measuring candidates."""
        none = np.zeros(len(places.start))
        return ShapeletFeatures(places.cut_out(self.series), self.series, none, ("distance",))

    def compared(
        self,
        row: int,
        block: int,
        features: Callable[[ShapeletFeatures, Tile, np.ndarray], np.ndarray],
        cancel: np.ndarray,
    ) -> Bounds:
        """Gains and gaps of the candidates of a kind, channel and block, by all their distances.

        `features` is an engine's method for `ShapeletFeatures`.
        """
        first, stop = self.members(block, block + 1)
        counts = self.candidates.windows(row)
        begin = int(self.candidates.begins()[row] + counts[:first].sum())
        end = begin + int(counts[first:stop].sum())
        step, parts = self.at_a_time, []
        for number in range(begin, end, step):
            some = np.arange(number, min(number + step, end))
            if cancel[0]:
                parts.append(Bounds(np.zeros(len(some), np.int64), np.zeros(len(some))))
                continue
            places = self.candidates.places(some)
            work = self.distances(places)
            distances = features(work, Tile(0, *work.shape[:1], 0, work.shape[1]), cancel)
            parts.append(self.exact(distances[:, 0].T, places.normalized))
        return Bounds(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @property
    def at_a_time(self) -> int:
        """Candidates whose distances are held at a time."""
        return max(1, CELLS // len(self.series))

    def compared_bytes(self) -> int:
        """Bytes that `compared` holds beside what the engine does."""
        longest = max(kind.length for kind in self.kinds)
        some = self.at_a_time
        return 16 * CELLS + 32 * CUT_CELLS + 8 * some * (2 * longest + 32)

    def exact(self, distances: np.ndarray, normalized: np.ndarray) -> Bounds:
        """Gains and gaps of candidates by their certified distances to all series."""
        cells = distances.shape[1] * len(self.criterion.class_weight)
        step, parts = max(1, CUT_CELLS // cells), []
        for first in range(0, len(distances), step):
            now = slice(first, first + step)
            cuts = self.criterion.best_cuts(distances[now], normalized[now])
            parts.append((np.maximum(cuts.gain, 0), np.where(cuts.gain < 0, -np.inf, cuts.gap)))
        gain, gap = zip(*parts, strict=True)
        return Bounds(np.concatenate(gain), np.concatenate(gap))

    def verify(self, answer: Chosen, sample: Sample) -> Iterator[Check]:
        """Measure some of the shapelets again, and see that no others are better than the last."""
        places = answer.places
        for row in sample(len(answer.gain), 8):
            yield from self._check(answer, row, places.take(np.array([row])))
        if len(answer.gain) < self.count:
            return
        worst = int(answer.gain[-1])
        for number in sample(int(self.candidates.begins()[-1]), 8):
            one = self.candidates.places(np.array([number]))
            gain = int(self._plain(one).gain[0])
            # one that fits beside all that are as good comes before those that are worse
            room = Room(
                self.criterion.labels,
                (self.series.n_channels, self.series.n_timepoints),
                self.most,
            )
            for row in np.flatnonzero(answer.gain >= gain).tolist():
                room.take(places.take(np.array([row])))
            if room.fits(one)[0]:
                item = f"candidate {number}, beside the last of the shapelets"
                yield Check(item, worst, gain, gain <= worst)

    def _plain(self, place: Places) -> Bounds:
        shapelet = place.cut_out(self.series)
        lines = range(len(self.series))
        least = np.array([plain_norms(shapelet, self.series, b).min() for b in lines])
        return self.exact(least[np.newaxis] / np.sqrt(place.length), place.normalized)

    def _check(self, answer: Chosen, row: int, place: Places) -> Iterator[Check]:
        plain = self._plain(place)
        unit = self.criterion.unit
        yield check_value(
            f"the gain of shapelet {row}", answer.gain[row] / unit, plain.gain[0] / unit
        )
        yield check_value(f"the gap of shapelet {row}", answer.gap[row], plain.gap[0])
