"""The best split of each of many nodes, among the candidates that each has."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Tile
from ...core.verify import Check, Sample
from .criterion import ROUNDED, TERMS, Criterion, number_terms, wrong_gain
from .cuts import Cuts
from .groups import CandidateGroups, plain_distance
from .matches import LEAST_NORMALIZED

if TYPE_CHECKING:
    from ...host.splits import ClassWeights

__all__ = ["WAYS", "GroupSplits", "SplitRules", "Splits", "split_groups"]

#: How a candidate joins those before it, by number.
WAYS = ("first", "and", "or")
_JOINS = {"and": np.maximum, "or": np.minimum}
#: Bytes of order lines that NumPy judges at a time, unless one line takes more; bytes of an entry:
#: distance, order, sums and gaps; and for each class: weights on the left, their terms.
AT_A_TIME, ENTRY, OF_A_CLASS = 2**24, 64, 48


class Splits(NamedTuple):
    """Splits of groups.

    Attributes
    ----------
    chosen : ndarray of shape (n_groups, max_literals), int64
        Candidates, counted within the group; -1 from the first that is not there.
    way : ndarray of shape (n_groups, max_literals), int64
        How each joins those before it: a place in `WAYS`.
    gain : ndarray of shape (n_groups, max_literals), float64
        Information gains in nats, of the split with this candidate and those before it.
    gap, threshold : ndarray of shape (n_groups, max_literals), float64
        Gaps and thresholds of these splits.
    left : ndarray of shape (n_members,), bool
        Which members are within the last threshold.
    """

    chosen: np.ndarray
    way: np.ndarray
    gain: np.ndarray
    gap: np.ndarray
    threshold: np.ndarray
    left: np.ndarray

    @classmethod
    def empty(cls, n_groups: int, max_literals: int, n_members: int) -> Splits:
        """Splits of nothing, to be written."""
        shape = n_groups, max_literals
        none, numbers = np.full(shape, -1), np.zeros(shape, np.int64)
        gain, gap, threshold = (np.zeros(shape) for _ in range(3))
        return cls(none, numbers, gain, gap, threshold, np.zeros(n_members, bool))


class SplitRules(NamedTuple):
    """How splits of groups are judged; see `Criterion`.

    Attributes
    ----------
    labels, times : ndarray of shape (n_members,), int64
        The class of each member, and how often it is there.
    leaf : int
        Series that must lie on either side, each as often as it is there.
    least : ndarray of shape (n_groups,), float64
        Weight that must lie on either side.
    class_weight : ndarray of shape (n_groups, n_classes), float64, or None
        Weights of the classes; None where all are 1.
    ways : tuple of {"and", "or"}
        How further candidates may join a node.
    max_literals : int
        Candidates of a node at most.
    """

    labels: np.ndarray
    times: np.ndarray
    leaf: int
    least: np.ndarray
    class_weight: np.ndarray | None = None
    ways: tuple[str, ...] = ()
    max_literals: int = 1

    @property
    def most(self) -> int:
        """Candidates of a node at most, where none may join it."""
        return self.max_literals if self.ways else 1

    def take(self, rows: slice, members: slice) -> SplitRules:
        """Return those of neighbouring groups and their members."""
        classes = self.class_weight
        return self._replace(
            labels=self.labels[members],
            times=self.times[members],
            least=self.least[rows],
            class_weight=None if classes is None else classes[rows],
        )


@dataclass(frozen=True, eq=False)
class GroupSplits(CandidateGroups):
    """The best split of each group by its candidates; `groups` has them in the order of ties.

    Of candidates with equal gain and gap the first wins. Further ones may join it by logic, if
    they are strictly better by gain and gap.

    Parameters
    ----------
    groups : Groups
        Candidates and series.
    rules : SplitRules
        The classes of the series, and how splits are judged.
    """

    rules: SplitRules
    method: ClassVar[str] = "group_splits"

    def result_bytes(self) -> int:
        """Size of the answer."""
        return 40 * self.rules.most * len(self.groups) + len(self.groups.members)

    @cached_property
    def most_drawn(self) -> int:
        """Members of a group at most, each counted as often as it is there."""
        ends = np.concatenate([[0], np.cumsum(self.rules.times)])[self.groups.members_of]
        return int(np.diff(ends).max(initial=0))

    @cached_property
    def judging_bytes(self) -> int:
        """Bytes in which NumPy judges a group, beside its distances: some order lines at a time."""
        n_candidates, n_members, _, _ = self.largest
        line = max(n_members, self.most_drawn) * _entry_bytes(self.rules)
        return min(n_candidates * line, max(AT_A_TIME, line))

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights of classes of a group, as whole numbers."""
        weights = self.rules.class_weight
        return 0 if weights is None else 8 * weights.shape[1]

    def start(self) -> Splits:
        """Return empty arrays."""
        return Splits.empty(len(self.groups), self.rules.most, len(self.groups.members))

    def members_in(self, rows: slice) -> slice:
        """Which members neighbouring groups have."""
        begin = self.groups.members_of
        return slice(int(begin[rows.start]), int(begin[rows.stop]))

    def merge(self, total: Splits, tile: Tile, result: Splits) -> None:
        """Write the splits of some groups."""
        for whole, some in zip(total[:-1], result[:-1], strict=True):
            whole[tile.rows] = some
        total.left[self.members_in(tile.rows)] = result.left

    def part(self, tile: Tile) -> GroupSplits:
        """Return some groups."""
        groups = self.groups.take(tile.rows).alone()
        return GroupSplits(groups, self.rules.take(tile.rows, self.members_in(tile.rows)))

    def verify(self, answer: Splits, sample: Sample) -> Iterator[Check]:
        """Split some groups again, by plain distances of all their candidates."""
        for g in sample(len(self.groups), 4):
            rows = slice(g, g + 1)
            groups, members = self.groups.take(rows), self.members_in(rows)
            distances = [
                plain_distance(groups, candidate, member)
                for candidate in range(len(groups.pieces))
                for member in groups.members.tolist()
            ]
            rules = self.rules.take(rows, members)
            expected = Splits.empty(1, rules.most, len(groups.members))
            _split_by_criterion(groups, rules, np.array(distances), expected, range(1))
            found = Splits._make([*(part[rows] for part in answer[:-1]), answer.left[members]])
            holds = all(map(np.array_equal, found, expected))
            yield Check(f"the split of group {g}", found, expected, holds)


def split_groups(reduction: GroupSplits, rows: slice, distances: np.ndarray) -> Splits:
    """Choose the splits of neighbouring groups by the distances of their candidates."""
    from ...host.small_work import prefer_numpy
    from ...host.splits import Lines, judge

    groups = reduction.groups.take(rows)
    rules = reduction.rules.take(rows, reduction.members_in(rows))
    found = Splits.empty(len(groups), rules.most, len(groups.members))

    def seconds() -> tuple[float, float]:
        each = (2e-4 if rules.class_weight is None else 7e-4) * (
            1 + len(rules.ways) * (rules.most - 1)
        )
        return each * len(groups), each * len(reduction.groups)

    if prefer_numpy(seconds, judge):
        _split_by_criterion(groups, rules, distances, found, range(len(groups)))
        return found
    sizes = np.add.reduceat(rules.times, groups.members_of[:-1])
    tables, begins, bits = number_terms(int(sizes.max()))
    weights, leaves = _weights_and_leaves(groups, rules)
    gains, unsure = np.zeros(found.gain.shape, np.int64), np.zeros(len(groups), bool)
    judge(
        Lines(
            *(distances, np.ascontiguousarray(groups.pieces[:, 3])),
            *(groups.candidates_of, groups.members_of, rules.labels, rules.times),
        ),
        *(weights, tables, begins, leaves),
        np.array([WAYS.index(way) for way in rules.ways], np.int64),
        *(found.chosen, found.way, gains, found.gap, found.threshold, found.left, unsure),
    )
    number = np.maximum(0, np.ceil(np.log2(sizes)).astype(np.int64) - 1)
    units = np.ldexp(sizes.astype(np.float64), bits[number])
    if len(weights.total):
        units[weights.total > 0] = weights.unit
    found.gain[:] = gains / units[:, np.newaxis]
    _split_by_criterion(groups, rules, distances, found, np.flatnonzero(unsure).tolist())
    return found


def _weights_and_leaves(groups: Any, rules: SplitRules) -> tuple[ClassWeights, np.ndarray]:
    """Weights of classes as `judge` takes them, and the series that each side of a cut needs."""
    from ...host.splits import ClassWeights

    if rules.class_weight is None:
        nothing = ClassWeights(
            np.empty((0, 0), np.int64), np.empty(0, np.int64), np.empty(0), ROUNDED, TERMS, 0.0
        )
        return nothing, np.maximum(rules.leaf, np.ceil(rules.least - 1e-9)).astype(np.int64)
    n, n_classes = rules.class_weight.shape
    whole, total = np.zeros((n, n_classes), np.int64), np.zeros(n, np.int64)
    least, leaves = np.zeros(n), np.empty(n, np.int64)
    for g in range(n):
        criterion, _ = _criterion_of(groups, rules, g)
        leaves[g], whole[g], total[g], least[g] = criterion.weighing()
    return ClassWeights(whole, total, least, ROUNDED, TERMS, wrong_gain(n_classes)), leaves


def _criterion_of(groups: Any, rules: SplitRules, g: int) -> tuple[Criterion, np.ndarray]:
    """How cuts of a group are judged, and its members, each as often as it is there."""
    members = slice(int(groups.members_of[g]), int(groups.members_of[g + 1]))
    times, labels = rules.times[members], rules.labels[members]
    drawn = np.repeat(np.arange(labels.size), times)
    n_classes = int(rules.labels.max(initial=0)) + 1
    weights = np.ones(n_classes) if rules.class_weight is None else rules.class_weight[g]
    return Criterion(labels[drawn], weights, rules.leaf, float(rules.least[g])), drawn


def _entry_bytes(rules: SplitRules) -> int:
    """Bytes that an entry of an order line takes while NumPy judges it."""
    return ENTRY + OF_A_CLASS * (int(rules.labels.max(initial=0)) + 1)


def _split_by_criterion(
    groups: Any, rules: SplitRules, distances: np.ndarray, found: Splits, which: Iterable[int]
) -> None:
    """Write the splits of some groups: every candidate judged by a `Criterion`, group by group."""
    begins = groups.distances_of
    for g in which:
        criterion, drawn = _criterion_of(groups, rules, g)
        members = slice(int(groups.members_of[g]), int(groups.members_of[g + 1]))
        own = distances[begins[g] : begins[g + 1]].reshape(-1, members.stop - members.start)
        lengths = groups.pieces[groups.candidates_of[g] : groups.candidates_of[g + 1], 3]
        normalized = lengths >= LEAST_NORMALIZED
        key: tuple[float, float] = (0, math.inf)
        before: np.ndarray | None = None
        base = False
        for literal in range(rules.most):
            ways = ("first",) if before is None else rules.ways
            cuts = [
                _best_cuts(criterion, own, before, _JOINS.get(way), drawn, normalized | base)
                for way in ways
            ]
            best = _best_of(cuts, key)
            if best is None:
                break
            k, w = best
            cut = cuts[w]
            key = int(cut.gain[k]), float(cut.gap[k])
            before = own[k] if before is None else _JOINS[ways[w]](own[k], before)
            base = bool(normalized[k] or base)
            found.chosen[g, literal], found.way[g, literal] = k, WAYS.index(ways[w])
            found.gain[g, literal] = cut.gain[k] / criterion.unit
            found.gap[g, literal], found.threshold[g, literal] = cut.gap[k], cut.threshold[k]
            found.left[members] = before <= cut.threshold[k]


def _best_cuts(
    criterion: Criterion,
    own: np.ndarray,
    before: np.ndarray | None,
    join: np.ufunc | None,
    drawn: np.ndarray,
    normalized: np.ndarray,
) -> Cuts:
    """The best cut of each candidate, joined with those before it; some candidates at a time."""
    step = max(1, AT_A_TIME // (max(1, drawn.size) * (ENTRY + OF_A_CLASS * criterion.width)))
    found = []
    for first in range(0, max(1, len(own)), step):
        some = slice(first, first + step)
        lines = own[some] if join is None else join(own[some], before)
        found.append(criterion.best_cuts(lines[:, drawn], normalized[some]))
    return Cuts._make(map(np.concatenate, zip(*found, strict=True)))


def _best_of(cuts: list[Cuts], key: tuple[float, float]) -> tuple[int, int] | None:
    """The first candidate, and way, whose gain and gap are above all others, and above a key."""
    best: tuple[int, int] | None = None
    for k in range(len(cuts[0].gain)):
        for w, cut in enumerate(cuts):
            here = int(cut.gain[k]), float(cut.gap[k])
            if here[0] > 0 and here > key:
                best, key = (k, w), here
    return best
