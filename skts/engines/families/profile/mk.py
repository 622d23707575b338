"""MK: the nearest two windows of a line, by reference windows and the triangle inequality.

Distances to a few reference windows bound the distance of any two windows from below:
``d(a, b) >= |d(r, a) - d(r, b)|``. Windows are put in the order of their distance to the reference
that spreads them most, and pairs are looked at by growing offset in that order. In one run of
positions the gaps in the order only grow with the offset, so the run is done when all of them
exceed the best distance so far. That rule asks the *ordering* reference alone; the others rule out
single pairs. A pair is ruled out only where a bound, lowered by what rounding may have added to it,
is strictly above the best distance, so that of equally near pairs the first is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import FLOAT32_UNIT, FLOAT64_UNIT
from ...core.reduction import FollowedUp, Reduction, Tile, Tiling, UsesIncumbent
from ...core.verify import Check, Sample, check_value
from .concatenated import ConcatenatedSeries, name_lines
from .windows import Kinds, WindowDistances, WindowKinds, plain_profile

__all__ = ["MotifPair", "NearestPair", "PairWalk", "WalkedPairs"]

#: Offsets at which a walk starts anew, with all that was found before.
_STARTS = (1, 5, 65, 1025)
#: Costs of a pair that the order leaves, and of one that is measured; a pair of a profile costs 1:
#: on an H200 and on one thread of a CPU, as measured with 10 references; a measured pair also
#: costs 1 for each point. How much faster MK has to be, and how many pairs are sampled to see it.
_BOUND_COST, _MEASURE_COST, _MARGIN, _LOOKS = 25, 70, 1.5, 4096


class NearestPair(NamedTuple):
    """The nearest two windows.

    Attributes
    ----------
    distance : float
        Certified; infinite where there is no pair.
    first, second : int
        Their places on the line, the lower one first; -1 where there is no pair.
    pruned : float
        Share of the admissible pairs whose distance was never measured.
    given_up : bool
        Whether the search was given up, because a profile is likely to take less time.
    """

    distance: float
    first: int
    second: int
    pruned: float = 1.0
    given_up: bool = False


class WalkedPairs(NamedTuple):
    """The result of a tile: its best pair, infinite and -1 without one; measured pairs."""

    distance: float
    first: int
    second: int
    measured: int


@dataclass(frozen=True, eq=False)
class PairWalk(UsesIncumbent, Reduction):
    """The nearest two windows among pairs in the order of a reference.

    Rows are positions p in the order, columns offsets: the pair of row p and column c is that of
    the windows ``order[p]`` and ``order[p + first + c]``.

    Parameters
    ----------
    series : ConcatenatedSeries
        The line.
    length : int
        Points of a window.
    exclusion : int
        Windows i and j are a pair where ``|i - j| > exclusion``.
    normalize : bool
        Whether windows are z-normalised.
    order : ndarray of shape (n_ordered,), int64
        Windows in ascending order of their distance to the first reference.
    gaps : ndarray of shape (n_references, n_ordered), float32
        Distances to the references, in that order, divided by `scale`.
    scale : float
        A power of two that brings distances to 1 at most.
    best : (float, int, int)
        Distance and places of the nearest pair known so far.
    first, stop : int
        The offsets, the second exclusive.
    """

    series: ConcatenatedSeries
    length: int
    exclusion: int
    normalize: bool
    order: np.ndarray
    gaps: np.ndarray
    scale: float
    best: tuple[float, int, int]
    first: int
    stop: int
    method: ClassVar[str] = "pair_walk"
    tiling: ClassVar[Tiling] = Tiling(scale=4, square=True)

    @property
    def shape(self) -> tuple[int, int]:
        """Positions and offsets."""
        return len(self.order), self.stop - self.first

    @property
    def step_work(self) -> int:
        """One or two bounds of a pair."""
        return 4

    @property
    def cell(self) -> tuple[int, int]:
        """Positions that share a look at the gaps, offsets."""
        return 1024, 256

    def wanted(self, tile: Tile) -> bool:
        """Skip what lies behind the end of the order."""
        return tile.row + self.first + tile.col < len(self.order)

    @property
    def limit(self) -> tuple[float, float]:
        """Slope and offset: pairs with a gap above slope x distance + offset are farther apart.

        Certified distances are norms of differences of the same normalised windows, each within
        (length + 5) / 2 roundings; both terms of a gap are at most 1 and rounded once more to
        float32, as is their difference, and the limit itself.
        """
        # see "mk gaps" in docs/developer/numerics.rst
        sums = 2 * (self.length + 8) * FLOAT64_UNIT
        slope = (1 + sums) * (1 + 4 * FLOAT32_UNIT) / self.scale
        return slope, 2 * sums + 8 * FLOAT32_UNIT

    @property
    def undivided_input(self) -> tuple[str, int]:
        """The line, and the order of its windows."""
        line, n_points = name_lines(self.series)
        n_gaps = len(self.gaps)
        return f"{line} and {n_gaps} distances of each window", n_points + n_gaps * n_points // 8

    def part(self, tile: Tile) -> PairWalk:
        """Return itself: a tile needs the whole order."""
        return self

    def start(self) -> list[Any]:
        """Return what is known, and a count of measured pairs."""
        return [self.best, 0]

    def with_incumbent(self, total: list[Any]) -> PairWalk:
        """Return the walk with the best pair so far."""
        return replace(self, best=total[0])

    def merge(self, total: list[Any], tile: Tile, result: WalkedPairs) -> None:
        """Keep the better pair, of equal ones the first."""
        total[0] = better(total[0], result[:3])
        total[1] += result.measured

    def verify(self, answer: list[Any], sample: Sample) -> Iterator[Check]:
        """Compare the distance of the pair, and look at some others."""
        best = answer[0]
        yield Check("the nearest pair", best, self.best, best <= self.best)
        if best != self.best:
            yield check_pair(self, best)
        positions, offsets = self.shape
        for place in sample(positions * offsets, 256):
            row, col = divmod(place, offsets)
            other = row + self.first + col
            if other < positions:
                pair = sorted((int(self.order[row]), int(self.order[other])))
                if pair[1] - pair[0] > self.exclusion:
                    key = plain_pair(self, *pair), *pair
                    yield Check("the nearest pair", best, key, best <= key)


@dataclass(frozen=True, eq=False)
class MotifPair(FollowedUp, Reduction):
    """The nearest two windows of a line, by MK.

    Parameters
    ----------
    series : ConcatenatedSeries
        The line.
    length : int
        Points of a window.
    exclusion : int
        Windows i and j are a pair where ``|i - j| > exclusion``.
    normalize : bool, default True
        Whether windows are z-normalised.
    excluded : ndarray of shape (n_windows,), bool, or None
        Windows that take part in nothing.
    n_references : int, default 10
        Reference windows.
    seed : int, default 0
        Of the random numbers that choose them.
    allow_give_up : bool, default False
        Whether to give up where a profile is likely to take less time, after a short walk.
    """

    series: ConcatenatedSeries
    length: int
    exclusion: int
    normalize: bool = True
    excluded: np.ndarray | None = None
    n_references: int = 10
    seed: int = 0
    allow_give_up: bool = False
    #: its tile tells the kinds of windows; the walk is done in `finish`
    method: ClassVar[str] = "window_kinds"
    joined: ClassVar[None] = None

    @property
    def shape(self) -> tuple[int, int]:
        """One piece of work."""
        return 1, 1

    @property
    def step_work(self) -> int:
        """All pairs, of which a few percent are looked at."""
        return self.series.n_windows(self.length) ** 2 // 16 + self.length

    @property
    def cell(self) -> tuple[int, int]:
        """The whole line."""
        return 1, 1

    @property
    def undivided_input(self) -> tuple[str, int]:
        """The line."""
        return name_lines(self.series)

    def follow_ups(self) -> list[Reduction]:
        """Return a walk over all windows."""
        n_windows = self.series.n_windows(self.length)
        order = np.broadcast_to(0, n_windows)
        gaps = np.broadcast_to(np.float32(0), (min(self.n_references, n_windows), n_windows))
        return [
            PairWalk(
                self.series, self.length, self.exclusion, self.normalize, order, gaps, 1.0,
                (np.inf, -1, -1), 1, n_windows,
            )
        ]  # fmt: skip

    def part(self, tile: Tile) -> WindowKinds:
        """Return the kinds of windows."""
        return WindowKinds(self.series, self.length, self.normalize)

    def start(self) -> list[Kinds]:
        """Return the list that receives the kinds of windows."""
        return []

    def merge(self, total: list[Kinds], tile: Tile, result: Kinds) -> None:
        """Keep the kinds."""
        total.append(result)

    def finish(self, total: list[Kinds], run: Callable[[Reduction], Any]) -> NearestPair:
        """Choose references, order windows, and walk."""
        constant, finite, _ = total[0]
        if self.excluded is not None:
            finite = finite & ~self.excluded
        constant = constant & finite if self.normalize else np.zeros_like(finite)
        regular = np.flatnonzero(finite & ~constant)
        best = self._constant_pair(np.flatnonzero(constant), regular)
        measured = 0
        if len(regular) > 1:
            walks = self._walks(regular, run, best)
            best = walks[0].best
            for walk in walks:
                if (
                    self.allow_give_up
                    and walk.first == _STARTS[2]
                    and self._profile_is_faster(walk, best)
                ):
                    return NearestPair(np.nan, -1, -1, given_up=True)
                best, more = run(replace(walk, best=best))
                measured += more
            measured += walk.gaps.size
        if best[0] == np.inf:
            return NearestPair(np.inf, -1, -1)
        places = np.flatnonzero(finite)
        pairs = int(np.sum(len(places) - np.searchsorted(places, places + self.exclusion + 1)))
        return NearestPair(*best, pruned=max(0.0, 1.0 - measured / pairs))

    def verify(self, answer: NearestPair, sample: Sample) -> Iterator[Check]:
        """Compare the distance of the pair, and look at whole profiles of some windows."""
        if answer.given_up:
            return
        best = answer[:3]
        windows = set(sample(self.series.n_windows(self.length), 8))
        if answer.first >= 0:
            yield check_pair(self, best)
            windows |= {answer.first, answer.second}
        else:
            best = np.inf, len(self.series.points), 0
        places = np.arange(self.series.n_windows(self.length))
        for window in sorted(windows):
            if self.excluded is not None and self.excluded[window]:
                continue
            values = plain_profile(self.series, window, self.series, self.length, self.normalize)
            values[np.abs(places - window) <= self.exclusion] = np.inf
            if self.excluded is not None:
                values[self.excluded] = np.inf
            other = int(np.argmin(values))
            if values[other] < np.inf:
                key = float(values[other]), min(window, other), max(window, other)
                yield Check("the nearest pair", best, key, best <= key)

    def _walks(
        self, regular: np.ndarray, run: Callable[[Reduction], Any], best: tuple[float, int, int]
    ) -> list[PairWalk]:
        """Measure distances to references; the nearest of those pairs is the best so far.

        Small offsets come first, in runs of their own: workers then know a good pair before they
        walk far.
        """
        drawn = np.random.RandomState(self.seed).choice(
            len(regular), min(self.n_references, len(regular)), replace=False
        )
        references = regular[np.sort(drawn)]
        distances = run(
            WindowDistances(self.series, references, self.series, self.length, self.normalize)
        )[:, regular]
        for reference, row in zip(references, distances, strict=True):
            row = np.where(np.abs(regular - reference) > self.exclusion, row, np.inf)
            other = regular[np.argmin(row)]
            pair = int(min(reference, other)), int(max(reference, other))
            best = better(best, (float(row.min()), *pair))
        spread = distances.std(axis=1)
        distances = distances[np.argsort(-spread, kind="stable")]
        order = np.argsort(distances[0], kind="stable")
        largest = distances.max()
        scale = 2.0 ** np.ceil(np.log2(largest)) if largest > 0 else 1.0
        gaps = np.ascontiguousarray((distances[:, order] / scale).astype(np.float32))
        work = PairWalk(
            self.series, self.length, self.exclusion, self.normalize, regular[order], gaps, scale,
            best, 1, len(regular),
        )  # fmt: skip
        ends = sorted({min(start, len(regular)) for start in _STARTS} | {len(regular)})
        return [replace(work, first=first, stop=stop) for first, stop in pairwise(ends)]

    def _profile_is_faster(self, walk: PairWalk, best: tuple[float, int, int]) -> bool:
        """Whether the rest of a walk is likely to take longer than a profile.

        Counts the pairs that the order leaves, and looks at some of them to see how many the other
        references leave.
        """
        slope, shift = walk.limit
        gaps, n = walk.gaps, len(walk.order)
        limit = np.float32(slope * best[0] + shift)
        ends = np.searchsorted(gaps[0], gaps[0] + limit, side="right")
        counts = np.cumsum(np.maximum(0, ends - np.arange(n) - 1))
        reached = int(counts[-1])
        if reached == 0:
            return False
        chosen = np.random.RandomState(self.seed).randint(reached, size=_LOOKS)
        p = np.searchsorted(counts, chosen, side="right")
        q = p + counts[p] - chosen
        left = np.mean(np.all(np.abs(gaps[:, p] - gaps[:, q]) <= limit, axis=0))
        cells = reached * (_BOUND_COST + left * (_MEASURE_COST + self.length))
        return bool(cells > n * (n - 1) / 2 / _MARGIN)

    def _constant_pair(self, constant: np.ndarray, regular: np.ndarray) -> tuple[float, int, int]:
        """The first of the nearest pairs with a constant window."""
        best = np.inf, -1, -1
        unlike = float(np.sqrt(self.length))
        for firsts, seconds, distance in (
            (constant[:1], constant, 0.0),
            (constant, regular, unlike),
            (regular, constant, unlike),
        ):
            at = np.searchsorted(seconds, firsts + self.exclusion + 1)
            there = np.flatnonzero(at < len(seconds))
            if there.size:
                first = there[0]
                best = better(best, (distance, int(firsts[first]), int(seconds[at[first]])))
        return best


def plain_pair(work: PairWalk | MotifPair, i: int, j: int) -> float:
    """Distance of two windows by plain code."""
    line, there = work.series, np.array([j])
    return float(plain_profile(line, i, line, work.length, work.normalize, there)[0])


def check_pair(work: PairWalk | MotifPair, best: tuple[float, int, int]) -> Check:
    """Compare the distance of the pair that was found."""
    distance, first, second = best
    return check_value(
        f"the distance of windows {first} and {second}", distance, plain_pair(work, first, second)
    )


def better(one: tuple[float, int, int], other: tuple[float, int, int]) -> tuple[float, int, int]:
    """The nearer of two pairs, of equally near ones the first on the line; infinity is no pair."""
    return other if other[0] < np.inf and other < one else one
