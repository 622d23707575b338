"""Shapelets: best matches of short queries in series, and the best split of a tree's node.

The search of a split estimates the distances of all candidates to all series of the node, with a
bound of the error of each candidate; from the estimates follow a gain and a gap that no exact
distances exceed. Candidates that could be the best are then measured: a split that leaves this
module rests on certified distances alone, so every engine, split and budget finds the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import TOLERANCE
from ...core.reduction import Reduction, Tile, Tiling
from ...core.series import Series
from ...core.verify import Check, Sample, check_value

__all__ = [
    "Criterion",
    "Cut",
    "Matches",
    "ShapeletSearch",
    "ShapeletSplit",
    "SubsequenceMatches",
    "Survivors",
    "Tables",
    "are_normalized",
]

#: Bits after the point of logarithms of whole numbers, at most.
BITS = 46
#: Series of a node up to which gains in those logarithms are convex where exact ones are.
#: see "logarithms" in docs/developer/numerics.rst
CONVEX = 4096
#: Gains are rounded to this part of a nat where classes weigh differently.
ROUNDED = 2.0**38
#: Denominators that weights of classes are taken to have, at most; whole numbers that are exact.
DENOMINATOR, EXACT = 2**16, 2**52
#: Candidates that are measured together at most; the first ones alone, since they often settle it.
BATCH = 512
#: Numbers of a class on the left of a cut that are held for them.
BATCH_CELLS = 2**20
#: Bytes of distances of a block of candidate series to all series, for one length.
BLOCK_BYTES = 2**27
#: Series of a block are a multiple of this: engines take so many side by side.
LANES = 4
#: Gains and gaps of plain sums are no further from exact ones than this share.
#: see "self-check" in docs/developer/numerics.rst
CLOSE = 1e-9
#: Windows of fewer points are compared as they are: normalised they keep little but a sign.
LEAST_NORMALIZED = 3


class Matches(NamedTuple):
    """Best matches of queries in series.

    Attributes
    ----------
    distances : ndarray of shape (n_queries, n_series), float64
        Norm of the difference, not divided by the length; infinite where nothing matches.
    starts : ndarray of shape (n_queries, n_series), int64
        Where the match begins, the first of equals; -1 where nothing matches.
    """

    distances: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True, eq=False)
class SubsequenceMatches(Reduction):
    """The best match of each query among all windows of each series, certified.

    Two constant windows are at 0, a constant and another at sqrt(length); windows that are not
    finite match nothing.

    Parameters
    ----------
    queries : tuple of ndarray of shape (length,), float64
        Queries as they are, of any lengths.
    series : Series
        The series; points that are not finite may be anywhere.
    normalize : bool, default True
        Whether windows and queries are z-normalised.
    channels : ndarray of shape (n_queries,), int64, or None, default None
        The channel in which each query is looked for; None is the first.
    """

    queries: tuple[np.ndarray, ...]
    series: Series
    normalize: bool = True
    channels: np.ndarray | None = None
    method: ClassVar[str] = "subsequence_matches"

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and series."""
        return len(self.queries), len(self.series)

    @property
    def step_work(self) -> int:
        """Points of all windows of a series, for the longest query."""
        return self.series.n_timepoints * max(len(query) for query in self.queries)

    @property
    def cell(self) -> tuple[int, int]:
        """One query in one series."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of distances and starts."""
        return 16 * self.shape[0] * self.shape[1]

    def part(self, tile: Tile) -> SubsequenceMatches:
        """Return some queries in some series."""
        channels = None if self.channels is None else self.channels[tile.rows]
        return SubsequenceMatches(
            self.queries[tile.rows], self.series.take(tile.cols), self.normalize, channels
        )

    def start(self) -> Matches:
        """Return empty matrices."""
        return Matches(np.empty(self.shape), np.empty(self.shape, np.int64))

    def merge(self, total: Matches, tile: Tile, result: Matches) -> None:
        """Write a block."""
        total.distances[tile.rows, tile.cols] = result.distances
        total.starts[tile.rows, tile.cols] = result.starts

    def verify(self, answer: Matches, sample: Sample) -> Iterator[Check]:
        """Compare some matches."""
        from ...host import plain

        for place in sample(answer.distances.size):
            row, col = divmod(place, len(self.series))
            channel = 0 if self.channels is None else int(self.channels[row])
            points = self.series.values[col, channel, : self.series.lengths[col]]
            expected = plain.best_match(self.queries[row], points, self.normalize)
            found = float(answer.distances[row, col]), int(answer.starts[row, col])
            item = f"the best match of query {row} in series {col}"
            yield Check(item, found, expected, found == expected)


@cache
def _logarithms(size: int) -> tuple[np.ndarray, int]:
    """Logarithms of 0 to `size` as integers, 0 of 0; and the bits that these have after the point.

    Those of primes are rounded, and log(a b) is log(a) + log(b) to the bit. A gain is a sum of
    terms n log(n) with whole n, thus of e log(p) over primes p with whole e. By unique
    factorisation two gains are equal only if all e are: then their integers are equal, too,
    whatever the rounding of the primes. A gain of nothing is 0.

    log(n) is off by 0.6 log2(n) units at most, sums of n log(n) stay below 2^60. Gains that are not
    equal are in order unless they are closer than 2.4 n log2(n) units, for n series.
    """
    bits = min(BITS, 60 - math.ceil(math.log2(size * math.log(size))))
    logs = np.zeros(size + 1, np.int64)
    for prime in range(2, size + 1):
        if logs[prime] == 0:
            own, power = round(math.ldexp(math.log(prime), bits)), prime
            while power <= size:
                logs[power::power] += own
                power *= prime
    return logs, bits


@lru_cache(2**14)
def _exact_entropy(number: int) -> Decimal:
    """X ln x of a whole number to some 50 digits, 0 of 0."""
    with localcontext(prec=64):
        return number * Decimal(max(1, number)).ln()


def _entropies(shares: np.ndarray) -> np.ndarray:
    """X ln x, 0 at 0."""
    return shares * np.log(np.where(shares > 0, shares, 1.0))


def _whole_weights(weights: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Weights of classes in the ratio of whole numbers, whose sum over all series is exact.

    Weights that are ratios of small numbers but for their last bits, as 1 / 3 or "balanced" ones,
    become these, so that sums which should be equal are.
    """
    ratios = [Fraction(float(weight)) / Fraction(float(weights.max())) for weight in weights]
    small = [ratio.limit_denominator(DENOMINATOR) for ratio in ratios]
    if all(abs(a - b) <= b / 2**50 for a, b in zip(small, ratios, strict=True)):
        common = math.lcm(*(ratio.denominator for ratio in small))
        whole = [int(ratio * common) for ratio in small]
        if sum(a * b for a, b in zip(whole, counts.tolist(), strict=True)) <= EXACT:
            return np.array(whole, np.int64)
    most = EXACT >> int(counts.sum()).bit_length()
    return np.array([round(ratio * most) for ratio in ratios], np.int64)


class Cut(NamedTuple):
    """A cut of an order line.

    Attributes
    ----------
    gain : int
        Information gain, in units of `Criterion.unit` to a nat.
    gap : float
        Mean distance on the right less that on the left.
    threshold : float
        Distances up to this go left.
    """

    gain: int
    gap: float
    threshold: float


class Cuts(NamedTuple):
    """The best cut of each of several order lines: gains, gaps and thresholds as in `Cut`."""

    gain: np.ndarray
    gap: np.ndarray
    threshold: np.ndarray


class Tables(NamedTuple):
    """What engines need to judge cuts by sums of integers.

    Attributes
    ----------
    labels : ndarray of shape (n_members,), int64
        Class of each series of the node.
    changes : ndarray of shape (n_classes, n_members + 1), int64
        What the entropy of a class grows by with one more of it.
    sides : ndarray of shape (n_members + 1,), int64
        Entropies of both sides of a cut, by the size of one; empty where classes weigh differently.
    weights : ndarray of shape (n_classes,), float64
        Weight of a series of each class: 1, or its share of all where classes weigh differently.
    counts : ndarray of shape (n_classes,), int64
        Series of each class.
    whole : int
        Entropy of the node, with the terms of its classes on the right of a cut.
    leaf : int
        Series that must lie on either side.
    least, total : float
        Weight that must lie on either side, and the weight of all.
    unit : float
        What a nat times a weight of 1 is in integers.
    slack : int
        What sums of these integers may differ from the gains of `Criterion` by; where classes weigh
        the same, what gains may lack of convexity.
    """

    labels: np.ndarray
    changes: np.ndarray
    sides: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    whole: int
    leaf: int
    least: float
    total: float
    unit: float
    slack: int


@dataclass(frozen=True, eq=False)
class Criterion:
    """How cuts of an order line are judged.

    Gains are integers, and depend on the numbers of classes on either side alone: equal gains of
    different numbers are equal integers, and one of nothing is 0. Where all classes weigh the same
    they are sums of `_logarithms`; else the exact gain, rounded.

    Parameters
    ----------
    labels : ndarray of shape (n_members,), int64
        Class of each series of the node.
    class_weight : ndarray of shape (n_classes,), float64
        Weight of a series of each class, 0 or above.
    min_samples_leaf : int, default 1
        Series that must lie on either side.
    min_weight_leaf : float, default 0.0
        Weight that must lie on either side.
    """

    labels: np.ndarray
    class_weight: np.ndarray
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0

    @cached_property
    def counts(self) -> np.ndarray:
        """Series of each class."""
        return np.bincount(self.labels, minlength=len(self.class_weight))

    @cached_property
    def equal(self) -> bool:
        """Whether all classes weigh the same."""
        return bool(np.all(self.class_weight == self.class_weight[0]))

    @cached_property
    def unit(self) -> float:
        """What an information gain of a nat is."""
        n = len(self.labels)
        return math.ldexp(n, self._logs[1]) if self.equal else ROUNDED

    @cached_property
    def _logs(self) -> tuple[np.ndarray, int]:
        return _logarithms(1 << max(1, (len(self.labels) - 1).bit_length()))

    @cached_property
    def _of_number(self) -> np.ndarray:
        """N ln n of whole numbers up to that of the series."""
        n = len(self.labels)
        return np.arange(n + 1) * self._logs[0][: n + 1]

    @cached_property
    def _whole(self) -> tuple[np.ndarray, int]:
        """Weights as whole numbers, and the weight of the node."""
        weights = _whole_weights(self.class_weight, self.counts)
        return weights, max(1, int(weights @ self.counts))

    @cached_property
    def _of_class(self) -> np.ndarray:
        """X ln x of the share that so many of a class have of the weight of all, class by class."""
        weights, total = self._whole
        numbers = np.minimum(np.arange(len(self.labels) + 1), self.counts[:, np.newaxis])
        return _entropies(numbers * weights[:, np.newaxis] / total)

    @property
    def _leaf(self) -> int:
        """Series that must lie on either side, by their weight as well if all weigh the same."""
        weight = float(self.class_weight[0])
        if not self.equal or weight <= 0:
            return self.min_samples_leaf
        # a share of a sum may be rounded up
        # see "shares" in docs/developer/numerics.rst
        return max(self.min_samples_leaf, math.ceil(self.min_weight_leaf / weight - 1e-9))

    @property
    def _least(self) -> float:
        """Share of the weight that must lie on either side, where classes weigh differently."""
        total = float(self.counts @ self.class_weight)
        if self.equal or total <= 0:
            return 0.0
        return self.min_weight_leaf / total * (1 - 1e-12)

    def terms(self, counts: np.ndarray) -> np.ndarray:
        """Entropy of sets of series times their number, where all classes weigh the same."""
        return self._of_number[counts.sum(axis=-1)] - self._of_number[counts].sum(axis=-1)

    def tables(self) -> Tables:
        """Entropies by the numbers of each class."""
        n, n_classes = len(self.labels), len(self.class_weight)
        if self.equal:
            sizes = self._of_number
            changes = np.tile(np.append(np.diff(sizes), 0), (n_classes, 1))
            bits = math.log2(max(2, n))
            slack = 0 if n <= CONVEX else math.ceil(2.5 * n * bits)
            judged = np.ones(n_classes), self.counts, int(sizes[n])
            rest = float(n), math.ldexp(1.0, self._logs[1]), slack
            sides = sizes + sizes[::-1]
        else:
            weights, total = self._whole
            table = np.rint(ROUNDED * self._of_class).astype(np.int64)
            changes = np.diff(table, axis=1, append=table[:, -1:])
            judged = weights / total, self.counts, 0
            # half a unit for each term of a class, and for both sides, and for the gain itself
            # see "weighted gains" in docs/developer/numerics.rst
            rest, sides = (1.0, ROUNDED, 2 * n_classes + 8), np.empty(0, np.int64)
        return Tables(self.labels, changes, sides, *judged, self._leaf, self._least, *rest)

    def best_cuts(self, distances: np.ndarray, normalized: np.ndarray | bool = True) -> Cuts:
        """Choose for each row of certified distances the cut with the largest (gain, gap).

        Of cuts with the same gain and gap the one with the lowest threshold. Where there is no
        cut at all the gain is -1. `normalized` tells which rows have distances of normalised
        windows; see `TOLERANCE`.
        """
        m, n = distances.shape
        if n < 2:
            return Cuts(np.full(m, -1), np.full(m, -np.inf), np.full(m, np.nan))
        order = np.argsort(distances, axis=1, kind="stable")
        ordered = np.take_along_axis(distances, order, axis=1)
        left = np.zeros((m, n, len(self.class_weight)), np.int64)
        np.put_along_axis(left, self.labels[order][..., np.newaxis], 1, axis=2)
        left = np.cumsum(left, axis=1)[:, :-1]
        size = np.arange(1, n)
        floor = np.broadcast_to(np.asarray(normalized, np.float64), m)[:, np.newaxis]
        behind = ordered[:, 1:]
        with np.errstate(invalid="ignore"):  # behind an infinite distance there is no cut
            allowed = behind - ordered[:, :-1] > TOLERANCE * np.maximum(floor, behind)
        allowed &= np.minimum(size, n - size) >= self._leaf
        gain = self._gains(left, allowed)
        best = gain.max(axis=1)
        sums = np.cumsum(ordered, axis=1)
        gaps = (sums[:, -1:] - sums[:, :-1]) / (n - size) - sums[:, :-1] / size
        gaps = np.where(allowed & (gain == best[:, np.newaxis]), gaps, -np.inf)
        at, rows = np.argmax(gaps, axis=1), np.arange(m)
        a, b = ordered[rows, at], ordered[rows, at + 1]
        threshold = a + (b - a) / 2
        return Cuts(best, gaps[rows, at], np.where(threshold >= b, a, threshold))

    def _gains(self, left: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains of cuts by the numbers of classes on the left; -1 where a cut is not allowed.

        Where classes weigh differently, gains that cannot be the best of their row may be off by 1;
        cuts that leave a side too light become not allowed.
        """
        if self.equal:
            gain = self.terms(self.counts) - self.terms(left) - self.terms(self.counts - left)
            return np.where(allowed, gain, -1)
        weights, total = self._whole
        # sums of whole numbers in float64, exact in any order
        share = left.astype(np.float64) @ weights.astype(np.float64) / total
        allowed &= np.minimum(share, 1 - share) >= self._least
        classes = np.arange(len(weights))
        both = self._of_class[classes, left] + self._of_class[classes, self.counts - left]
        both = (both - self._of_class[classes, self.counts]).sum(axis=-1)
        rough = ROUNDED * (both - _entropies(share) - _entropies(1 - share))
        gain = np.where(allowed, np.rint(rough), -1).astype(np.int64)
        # what the sum is wrong by: an ulp of each term, five of each logarithm
        log = 2 + math.log(2 * len(weights))
        # see "weighted gains" in docs/developer/numerics.rst
        wrong = 2.0**-53 * ROUNDED * (4 * len(weights) + 40) * log
        close = np.abs(rough - np.floor(rough) - 0.5) <= wrong
        close &= allowed & (gain >= gain.max(axis=1, keepdims=True) - 1)
        for place in zip(*np.nonzero(close), strict=True):
            gain[place] = self._exact_gain(left[place].tolist())
        return gain

    def _exact_gain(self, left: list[int]) -> int:
        """The rounded gain of one cut.

        A sum of whole multiples of logarithms of whole numbers is 0 or irrational, so that 64
        digits tell on which side of a rounding edge it is.
        """
        weights, total = self._whole[0].tolist(), self._whole[1]
        on_left = sum(a * b for a, b in zip(weights, left, strict=True))
        with localcontext(prec=64):
            terms = _exact_entropy(total) - _exact_entropy(on_left)
            terms -= _exact_entropy(total - on_left)
            for weight, here, count in zip(weights, left, self.counts.tolist(), strict=True):
                terms += _exact_entropy(weight * here) + _exact_entropy(weight * (count - here))
                terms -= _exact_entropy(weight * count)
            return int((terms * int(ROUNDED) / total).to_integral_value())


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
        What their gain does not exceed.
    gap : ndarray of shape (n,), float64
        What their gap does not exceed, where the gain is as large as that.
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
        none = cls(np.empty(0, np.int64), np.empty(0), np.empty((0, 5), np.int64))
        *found, distances = zip(none, *parts, strict=True)
        gain, gap, where = map(np.concatenate, found)
        measured = [part for part in distances if part is not None]
        if not measured or sum(map(len, measured)) < len(gain):
            return cls(gain, gap, where)
        return cls(gain, gap, where, np.concatenate(measured))

    def that_reach(self, best: tuple[int, float]) -> Survivors:
        """Return those that promise a gain and a gap."""
        gain, gap = best
        return self.take((self.gain > gain) | ((self.gain == gain) & (self.gap >= gap)))

    def take(self, chosen: np.ndarray) -> Survivors:
        """Return some of the candidates."""
        return Survivors(*(None if field is None else field[chosen] for field in self))


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
    criterion : Criterion
        How cuts are judged.
    before : ndarray of shape (n_members,), float64, or None, default None
        Joined distances of the literals that the node has.
    before_normalized : bool, default True
        Whether any of those are of normalised windows.
    ways : tuple of {"first", "and", "or"}, default ("first",)
        How a candidate may join them.
    least : int, default 0
        A gain that must be exceeded; with `least_gap`, or equalled.
    least_gap : float, default inf
        A gap that must be exceeded where the gain is `least`.
    grid : tuple of int, or None, default None
        Of a part of a search: series of a block, the first of its blocks and the one after the
        last.
    """

    series: Series
    members: np.ndarray
    lengths: tuple[int, ...]
    criterion: Criterion
    before: np.ndarray | None = None
    before_normalized: bool = True
    ways: tuple[str, ...] = ("first",)
    least: int = 0
    least_gap: float = np.inf
    grid: tuple[int, int, int] | None = None
    method: ClassVar[str] = "shapelet_search"
    tiling: ClassVar[Tiling] = Tiling(scale=2**14, square=True)

    @property
    def block(self) -> int:
        """Series whose candidates are compared with all others at a time."""
        if self.grid is not None:
            return self.grid[0]
        n, width = len(self.members), self.series.n_timepoints
        count = BLOCK_BYTES // (8 * n * (width - self.lengths[0] + 1))
        return int(np.clip(count // LANES * LANES, LANES, n))

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
        """Choose among candidates, in the order of what they promise at most.

        `known` holds their certified distances, where these have been measured before.
        """
        best: ShapeletSplit | None = None
        key: tuple = (self.least, self.least_gap)
        first, size, n = 0, 2, len(self.members)
        most = int(np.clip(BATCH_CELLS // (n * len(self.criterion.class_weight)), 1, BATCH))
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
                here = (int(cuts.gain[row]), float(cuts.gap[row]), *(-part for part in place))
                if here[0] < 0 or not (here[:2] > key[:2] or (best is not None and here > key)):
                    continue
                key = here
                cut = Cut(*here[:2], float(cuts.threshold[row]))
                best = ShapeletSplit(cut, *place[:4], self.ways[place[4]], joined[row].copy())
        return best

    def certify(self, where: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Certified distances of candidates to the members, divided by sqrt(length)."""
        series = self.of_members
        found = np.empty((len(where), len(series)))
        for raw in (False, True):
            rows = np.flatnonzero((where[:, 0] < LEAST_NORMALIZED) == raw)
            if not rows.size:
                continue
            queries = tuple(
                series.values[row, channel, start : start + length]
                for length, row, start, channel, _ in where[rows].tolist()
            )
            matches = run(SubsequenceMatches(queries, series, not raw, where[rows, 3]))
            found[rows] = matches.distances / np.sqrt(where[rows, :1])
        return found

    def join(self, distances: np.ndarray, way: str) -> np.ndarray:
        """Join distances with those of the literals before."""
        if way == "first":
            return distances
        return (np.maximum if way == "and" else np.minimum)(self.before, distances)

    def verify(self, answer: ShapeletSplit | None, sample: Sample) -> Iterator[Check]:
        """Measure the shapelet and its cut again, and see what some other candidates gain."""
        unit = self.criterion.unit
        best = self.least / unit, self.least_gap
        if answer is not None:
            place = answer.length, answer.series, answer.start, answer.channel
            distances, where = self._plain_distances(*place, answer.way), f"the shapelet {place}"
            for member, expected in enumerate(distances.tolist()):
                item = f"the distance of {where} and member {member}"
                yield check_value(item, answer.distances[member], expected)
            left = distances <= answer.cut.threshold
            best = self._plain_gain(left), float(distances[~left].mean() - distances[left].mean())
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
        if way == "and":
            return np.where(self.before > distances, self.before, distances)
        return (
            distances
            if way == "first"
            else np.where(self.before < distances, self.before, distances)
        )

    def _plain_cuts(self, distances: np.ndarray, floor: float) -> Iterator[tuple[float, float]]:
        """Gain and gap of each cut of a line that is allowed for certain."""
        rules = self.criterion
        weights = rules.class_weight[rules.labels]
        ordered = np.sort(distances)
        for low, high in zip(ordered[:-1].tolist(), ordered[1:].tolist(), strict=True):
            if not high - low > 2 * max(floor, TOLERANCE * high) or high == np.inf:
                continue
            left = distances <= low
            smallest = min(np.count_nonzero(left), np.count_nonzero(~left))
            lightest = min(weights[left].sum(), weights[~left].sum())
            enough = lightest > rules.min_weight_leaf * (1 + CLOSE)
            if smallest >= rules.min_samples_leaf and enough:
                gap = distances[~left].mean() - distances[left].mean()
                yield self._plain_gain(left), float(gap)

    def _plain_gain(self, left: np.ndarray) -> float:
        """Information gain of a cut, in nats."""
        rules = self.criterion
        weights = rules.class_weight / rules.class_weight.max()

        def impurity(members: np.ndarray) -> float:
            shares = np.bincount(rules.labels[members], minlength=len(weights)) * weights
            whole = shares.sum()
            return float(sum(-share * math.log(share / whole) for share in shares if share > 0))

        everyone = np.ones(left.size, bool)
        whole = float(weights[rules.labels].sum())
        return (impurity(everyone) - impurity(left) - impurity(~left)) / whole
