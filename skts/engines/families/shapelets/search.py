"""The best shapelet of a tree's node: candidates that could be the best, measured in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import TOLERANCE
from ...core.reduction import Reduction, Tile, Tiling
from ...core.series import Series
from ...core.verify import Check, Sample, check_value
from .cuts import Cut, SplitCriterion
from .groups import distances_to_all
from .matches import LEAST_NORMALIZED

__all__ = ["LANES", "ShapeletSearch", "ShapeletSplit", "Survivors", "are_normalized"]

#: Candidates that are measured together at most; the first ones alone, since they often settle it.
BATCH = 512
#: Numbers on the left of a cut that are held for them.
BATCH_CELLS = 2**20
#: Bytes of distances of a block of candidate series to all series, for one length.
BLOCK_BYTES = 2**27
#: Series of a block are a multiple of this: engines take so many side by side.
LANES = 4
#: Gains and gaps of plain sums are no further from exact ones than this share.
CLOSE = 1e-9


def are_normalized(where: np.ndarray, ways: tuple[str, ...], before_normalized: bool) -> np.ndarray:
    """Which candidates, as joined in a way, have distances of normalised windows.

    `where` is as that of `Survivors`, `before_normalized` as that of `ShapeletSearch`.
    """
    alone = np.array([way == "first" for way in ways])[where[:, 4]]
    return (where[:, 0] >= LEAST_NORMALIZED) | (before_normalized & ~alone)


class Survivors(NamedTuple):
    """Candidates that could be the best.

    Attributes
    ----------
    gain : ndarray of shape (n,), int64
        Upper bounds of their gains.
    gap : ndarray of shape (n,), float64
        Upper bounds of their gaps, where the gain is as large as its bound.
    where : ndarray of shape (n, 5), int64
        Length, place of the series among the members, start, channel, and number of the way in
        which it joins the literals before it.
    distances : ndarray of shape (n, n_members), float64, or None, default None
        Their certified distances to the members, divided by the root of the length, where the
        engine has measured them.
    """

    gain: np.ndarray
    gap: np.ndarray
    where: np.ndarray
    distances: np.ndarray | None = None

    @classmethod
    def of_parts(cls, parts: Sequence[Survivors]) -> Survivors:
        """All candidates of some parts; their distances where each has been measured."""
        if len(parts) == 1:
            return parts[0]
        none = cls(np.empty(0, np.int64), np.empty(0), np.empty((0, 5), np.int64))
        *found, distances = zip(none, *parts, strict=True)
        gain, gap, where = map(np.concatenate, found)
        measured = [part for part in distances if part is not None]
        if not measured or sum(map(len, measured)) < len(gain):
            return cls(gain, gap, where)
        return cls(gain, gap, where, np.concatenate(measured))

    def filter_by_bound(self, best: tuple[int, float]) -> Survivors:
        """Return those whose bounds are no lower than a gain and a gap."""
        gain, gap = best
        return self.take((self.gain > gain) | ((self.gain == gain) & (self.gap >= gap)))

    def take(self, chosen: np.ndarray) -> Survivors:
        """Return some of the candidates."""
        distances = None if self.distances is None else self.distances[chosen]
        return Survivors(self.gain[chosen], self.gap[chosen], self.where[chosen], distances)


class ShapeletSplit(NamedTuple):
    """The best split of a node.

    Attributes
    ----------
    cut : Cut
        Where the order line is cut.
    length, series, start, channel : int
        The shapelet; `series` counts among the members.
    way : str
        How it joins the literals before it: "and", "or", or "first".
    distances : ndarray of shape (n_members,), float64
        Of the members, joined with those of the literals before it.
    """

    cut: Cut
    length: int
    series: int
    start: int
    channel: int
    way: str
    distances: np.ndarray


@dataclass(frozen=True, eq=False)
class ShapeletSearch(Reduction):
    """The best shapelet of a node.

    Parameters
    ----------
    series : Series
        All training series, the same object in every search of a tree.
    members : ndarray of shape (n_members,), int64
        The series of the node, ascending.
    lengths : tuple of int
        Lengths of candidates, ascending, none longer than the shortest series.
    criterion : SplitCriterion
        How cuts are judged.
    before : ndarray of shape (n_members,), float64, or None, default None
        Joined distances of the literals that the node has; infinite ones `measure` alone takes.
    before_normalized : bool, default True
        Whether any of those are of normalised windows.
    ways : tuple of {"first", "and", "or"}, default ("first",)
        How a candidate may join them.
    best_gain_so_far : int, default 0
        A gain that must be exceeded; with `best_gap_so_far`, or equalled.
    best_gap_so_far : float, default inf
        A gap that must be exceeded where the gain is `best_gain_so_far`.
    grid : tuple of int, or None, default None
        Of a part of a search: series of a block, the first of its blocks and the one after the
        last.
    """

    series: Series
    members: np.ndarray
    lengths: tuple[int, ...]
    criterion: SplitCriterion
    before: np.ndarray | None = None
    before_normalized: bool = True
    ways: tuple[str, ...] = ("first",)
    best_gain_so_far: int = 0
    best_gap_so_far: float = np.inf
    grid: tuple[int, int, int] | None = None
    method: ClassVar[str] = "shapelet_search"
    tiling: ClassVar[Tiling] = Tiling(scale=2**14, square=True)

    @cached_property
    def block(self) -> int:
        """Series whose candidates are compared with all others at a time."""
        if self.grid is not None:
            return self.grid[0]
        n, width = len(self.members), self.series.n_timepoints
        count = BLOCK_BYTES // (8 * n * (width - self.lengths[0] + 1))
        return min(max(count // LANES * LANES, LANES), n)

    @property
    def shape(self) -> tuple[int, int]:
        """Lengths, and blocks of series."""
        first, stop = self.blocks
        return len(self.lengths), stop - first

    @property
    def blocks(self) -> tuple[int, int]:
        """The first block and the one after the last."""
        if self.grid is not None:
            return self.grid[1:]
        return 0, -(-len(self.members) // self.block)

    @property
    def step_work(self) -> int:
        """Pairs of windows, for candidates of one block and length."""
        windows = self.series.n_timepoints - self.lengths[0] + 1
        return self.block * len(self.members) * windows**2 * self.series.n_channels // 2 + 1

    @cached_property
    def of_members(self) -> Series:
        """The series of the node: what engines prepare from them serves all candidates."""
        return self.series.take(self.members)

    @property
    def cell(self) -> tuple[int, int]:
        """One length and one block."""
        return 1, 1

    def part(self, tile: Tile) -> ShapeletSearch:
        """Return some of the lengths and blocks; blocks need all series."""
        first = self.blocks[0]
        grid = self.block, first + tile.col, first + tile.col_stop
        return replace(self, lengths=self.lengths[tile.rows], grid=grid)

    def start(self) -> list[Survivors]:
        """Return an empty list."""
        return []

    def merge(self, total: list[Survivors], tile: Tile, result: Survivors) -> None:
        """Take the survivors of a tile."""
        total.append(result)

    def finish(
        self, total: list[Survivors], run: Callable[[Reduction], Any]
    ) -> ShapeletSplit | None:
        """Measure candidates, the most promising first, until no other can be the best."""
        found = Survivors.of_parts(total)
        if len(found.gain) > 1:
            found = found.take(np.lexsort((*found.where.T[::-1], -found.gap, -found.gain)))
        return self.measure(found.gain, found.gap, found.where, run, found.distances)

    def measure(
        self,
        gain: np.ndarray,
        gap: np.ndarray,
        where: np.ndarray,
        run: Callable[[Reduction], Any],
        known: np.ndarray | None = None,
    ) -> ShapeletSplit | None:
        """Choose among candidates, in the descending order of their bounds.

        `known` holds their certified distances, where these have been measured before.
        """
        best: ShapeletSplit | None = None
        key: tuple[float, ...] = (self.best_gain_so_far, self.best_gap_so_far)
        first, size, n = 0, 2, len(self.members)
        most = min(max(BATCH_CELLS // (n * self.criterion.width), 1), BATCH)
        while first < len(gain) and (gain[first], gap[first]) >= key[:2]:
            now = slice(first, first + size)
            chosen = where[now]
            joined = self.certify(chosen, run) if known is None else known[now].copy()
            for number, way in enumerate(self.ways):
                rows = chosen[:, 4] == number
                joined[rows] = self.join(joined[rows], way)
            normalized = are_normalized(chosen, self.ways, self.before_normalized)
            cuts = self.criterion.best_cuts(joined, normalized)
            wrong = np.flatnonzero(cuts.gain > gain[now])
            if wrong.size:
                length, series, start = chosen[wrong[0], :3].tolist()
                raise RuntimeError(
                    f"A bound of the shapelet search does not hold: points {start} to "
                    f"{start + length} of series {self.members[series]} gain more than it allows. "
                    "Please report this, with the data."
                )
            first, size = first + size, min(2 * size, most)
            for row, place in enumerate(chosen.tolist()):
                cut = Cut(int(cuts.gain[row]), float(cuts.gap[row]), float(cuts.threshold[row]))
                here = (cut.gain, cut.gap, *(-part for part in place))
                if cut.gain < 0 or not (here[:2] > key[:2] or (best is not None and here > key)):
                    continue
                key = here
                length, series, start, channel, number = place
                way = self.ways[number]
                best = ShapeletSplit(cut, length, series, start, channel, way, joined[row].copy())
        return best

    def certify(self, where: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Certified distances of candidates to the members, divided by sqrt(length).

        Candidates of the same points, which tie where series are alike, are measured once.
        """
        series = self.of_members
        places: dict[tuple[int, bytes], int] = {}
        measured = [
            places.setdefault(
                (channel, series.values[row, channel, start : start + length].tobytes()), place
            )
            for place, (length, row, start, channel, _) in enumerate(where.tolist())
        ]
        first, same = np.unique(measured, return_inverse=True)
        pieces = where[first][:, [1, 3, 2, 0]]
        return distances_to_all(series, pieces, series, run)[same]

    def join(self, distances: np.ndarray, way: str) -> np.ndarray:
        """Join distances with those of the literals before."""
        if way == "first" or self.before is None:
            return distances
        return (np.maximum if way == "and" else np.minimum)(self.before, distances)

    def verify(self, answer: ShapeletSplit | None, sample: Sample) -> Iterator[Check]:
        """Measure the shapelet and its cut again, and see what some other candidates gain."""
        unit = self.criterion.unit
        best = self.best_gain_so_far / unit, self.best_gap_so_far
        if answer is not None:
            place = answer.length, answer.series, answer.start, answer.channel
            distances, where = self._plain_distances(*place, answer.way), f"the shapelet {place}"
            for member, expected in enumerate(distances.tolist()):
                item = f"the distance of {where} and member {member}"
                yield check_value(item, answer.distances[member], expected)
            left = distances <= answer.cut.threshold
            best = self.criterion.plain_gain(left), self._plain_gap(distances, left)
            yield check_value(f"the gain of {where}", answer.cut.gain / unit, best[0], CLOSE)
            close = CLOSE * abs(best[1])
            yield check_value(f"the gap of {where}", answer.cut.gap, best[1], close)
        lengths = self.of_members.lengths
        for row in sample(len(self.lengths) * len(self.members) * len(self.ways), 8):
            row, way = divmod(row, len(self.ways))
            at, member = divmod(row, len(self.members))
            length, channel = self.lengths[at], row % self.series.n_channels
            (start,) = sample(int(lengths[member]) - length + 1, 1) or [0]
            distances = self._plain_distances(length, member, start, channel, self.ways[way])
            normalized = length >= LEAST_NORMALIZED
            normalized |= self.before_normalized and self.ways[way] != "first"
            floor = TOLERANCE * normalized
            for key in self._plain_cuts(distances, floor):
                more = key[0] > best[0] + CLOSE
                more |= abs(key[0] - best[0]) < CLOSE**2 and key[1] > best[1] * (1 + CLOSE)
                item = f"the best split, beside points {start} to {start + length} of {member}"
                yield Check(item, best, key, not more)

    def _plain_distances(
        self, length: int, member: int, start: int, channel: int, way: str
    ) -> np.ndarray:
        """Joined distances of a candidate to the members, by plain code."""
        from ...host import plain

        series = self.of_members
        query = series.values[member, channel, start : start + length]
        normalize = length >= LEAST_NORMALIZED
        distances = np.array(
            [
                plain.best_match(query, values[channel, :size], normalize)[0]
                for values, size in zip(series.values, series.lengths.tolist(), strict=True)
            ]
        ) / np.sqrt(length)
        before = self.before
        if way == "first" or before is None:
            return distances
        first = before > distances if way == "and" else before < distances
        return np.where(first, before, distances)

    def _plain_cuts(self, distances: np.ndarray, floor: float) -> Iterator[tuple[float, float]]:
        """Gain and gap of each cut of a line that is allowed for certain."""
        rules, weights = self.criterion, self.criterion.weights
        ordered = np.sort(distances)
        for low, high in zip(ordered[:-1].tolist(), ordered[1:].tolist(), strict=True):
            if not high - low > 2 * max(floor, TOLERANCE * high) or high == np.inf:
                continue
            left = distances <= low
            smallest = min(np.count_nonzero(left), np.count_nonzero(~left))
            lightest = min(weights[left].sum(), weights[~left].sum())
            enough = lightest > rules.min_weight_leaf * (1 + CLOSE)
            if smallest >= rules.min_samples_leaf and enough:
                yield self.criterion.plain_gain(left), self._plain_gap(distances, left)

    def _plain_gap(self, distances: np.ndarray, left: np.ndarray) -> float:
        """Mean distance on the right of a cut less that on the left."""
        often = self.criterion.sample_weight
        often = np.ones(left.size) if often is None else often
        means = (np.average(distances[side], weights=often[side]) for side in (~left, left))
        far, near = means
        return float(far - near)
