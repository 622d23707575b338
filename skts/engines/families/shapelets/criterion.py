"""Cuts judged by the entropy of classes: logarithms, gains, and tables for engines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT
from .cuts import SplitCriterion

__all__ = [
    "ROUNDED",
    "TERMS",
    "Criterion",
    "Tables",
    "Weighing",
    "integer_weights",
    "number_terms",
    "wrong_gain",
]

#: Bits after the point of logarithms of whole numbers, at most.
BITS = 46
#: Series of a node up to which gains in those logarithms are convex where exact ones are.
#: see "logarithms" in docs/developer/numerics.rst
CONVEX = 4096
#: Gains are rounded to this part of a nat where classes weigh differently.
ROUNDED = 2.0**38
#: Terms of classes whose sums are whole numbers are rounded to this part of a nat: sums of their
#: magnitudes are below 2^5.
TERMS = 2.0**57
#: Denominators that weights of classes are taken to have, at most; whole numbers that are exact.
DENOMINATOR, EXACT = 2**16, 2**52


@cache
def _logarithms(size: int) -> tuple[np.ndarray, int]:
    """Logarithms of 0 to `size` as integers, 0 of 0; and the bits that these have after the point.

    Logarithms of primes are rounded, and log(a b) is log(a) + log(b) exactly. A gain is a sum of
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


def wrong_gain(n_classes: int) -> float:
    """By how much a gain of weighted classes may be off in float64, in parts of `ROUNDED`.

    Parameters
    ----------
    n_classes : int
        How many there are.

    Returns
    -------
    float
        The error, before the gain is rounded to a whole number.
    """
    # see "weighted gains" in docs/developer/numerics.rst
    n_terms = 2 * n_classes
    return ROUNDED * (40 * FLOAT64_UNIT * (2 + math.log(n_terms)) + 2 * n_terms / TERMS)


@cache
def number_terms(most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tables of n log(n) as integers, for nodes of up to 2, 4, 8, ... series, one after the other.

    Parameters
    ----------
    most : int
        Series of the largest node.

    Returns
    -------
    tables : ndarray of int64
        The tables.
    begins : ndarray of shape (n_tables + 1,), int64
        Where each begins.
    bits : ndarray of shape (n_tables,), int64
        Bits after the point of each.
    """
    sizes = [1 << k for k in range(1, max(2, (most - 1).bit_length() + 1))]
    logs, bits = zip(*map(_logarithms, sizes), strict=True)
    tables = np.concatenate([np.arange(len(log)) * log for log in logs])
    return tables, np.cumsum([0, *map(len, logs)]), np.array(bits)


@lru_cache(2**14)
def _exact_entropy(number: int) -> Decimal:
    """X ln x of a whole number to some 50 digits, 0 of 0."""
    with localcontext(prec=64):
        return number * Decimal(max(1, number)).ln()


def _entropies(shares: np.ndarray) -> np.ndarray:
    """X ln x, 0 at 0."""
    return shares * np.log(np.where(shares > 0, shares, 1.0))


@lru_cache(2**14)
def _small_ratio(weight: float, largest: float) -> Fraction | None:
    """The ratio of small numbers that two weights have but for their last bits, if there is one."""
    ratio = Fraction(weight) / Fraction(largest)
    near = ratio.limit_denominator(DENOMINATOR)
    return near if abs(near - ratio) <= ratio / 2**50 else None


@lru_cache(2**6)
def _small_weights(weights: bytes) -> list[int] | None:
    """Whole numbers in the ratio of weights, where all of them are ratios of small numbers."""
    known = np.frombuffer(weights)
    largest = float(known.max()) or 1.0
    small: list[Fraction] = []
    for weight in known.tolist():
        near = _small_ratio(weight, largest)
        if near is None:
            return None
        small.append(near)
    common = math.lcm(*(ratio.denominator for ratio in small))
    return [int(ratio * common) for ratio in small]


@lru_cache(2**6)
def _rounded_weights(weights: bytes, most: int) -> list[int]:
    """Weights rounded to whole numbers, of which the largest is `most`."""
    known = np.frombuffer(weights)
    largest = Fraction(float(known.max()) or 1.0)
    return [round(Fraction(weight) / largest * most) for weight in known.tolist()]


def integer_weights(weights: np.ndarray, counts: np.ndarray, exact: int = EXACT) -> np.ndarray:
    """Weights in the ratio of whole numbers, whose sum over all series is exact.

    `counts` are the series of each weight; one of no series becomes 0. Weights that are ratios of
    small numbers but for their last bits, as 1 / 3 or "balanced" ones, become these, so that sums
    which should be equal are. The sum over all series is near `exact` at most, a power of two.
    Nodes of a tree have the same weights, which are made whole once.
    """
    key, held = np.asarray(weights, np.float64).tobytes(), np.flatnonzero(counts).tolist()
    whole = _small_weights(key)
    if whole is None or sum(whole[one] * int(counts[one]) for one in held) > exact:
        whole = _rounded_weights(key, exact >> int(counts.sum()).bit_length())
    out = np.zeros(len(whole), np.int64)
    out[held] = [whole[one] for one in held]
    return out


class Weighing(NamedTuple):
    """How series without weights of their own count in a node.

    Attributes
    ----------
    leaf : int
        Series that must lie on either side.
    whole : ndarray of shape (n_classes,), int64
        Weights of classes in the ratio of whole numbers; 0 of those that the node does not hold.
    total : int
        The weight of the node, as such a number; 0 where all series weigh the same.
    least : float
        Share of it that must lie on either side.
    """

    leaf: int
    whole: np.ndarray
    total: int
    least: float


class Tables(NamedTuple):
    """Tables by which engines judge cuts with sums of integers.

    Attributes
    ----------
    labels : ndarray of shape (n_members,), int64
        Class of each series of the node.
    changes : ndarray of shape (n_classes, n_members + 1), int64
        Growth of the entropy of a class with one more series of it.
    sides : ndarray of shape (n_members + 1,), int64
        Entropies of both sides of a cut, by the size of one; empty where classes weigh differently.
    weights : ndarray of shape (n_classes,), float64
        Weight of a series of each class: 1, or its share of all where classes weigh differently.
    counts : ndarray of shape (n_classes,), int64
        Series of each class, or the sums of their `steps`.
    node_entropy : int
        Entropy of the node, with the terms of its classes on the right of a cut.
    leaf : int
        Series that must lie on either side.
    least, total : float
        Weight that must lie on either side, and the weight of all.
    unit : float
        Units of these integers for a nat times a weight of 1.
    slack : int
        Largest difference of sums of these integers from the gains of `Criterion`; where classes
        weigh the same, how much gains may fall short of convexity.
    steps : ndarray of shape (n_members,), int64
        By how much each series raises the number of its class, where series of one class weigh
        differently: such numbers are weights. Empty elsewhere: each adds 1.
    """

    labels: np.ndarray
    changes: np.ndarray
    sides: np.ndarray
    weights: np.ndarray
    counts: np.ndarray
    node_entropy: int
    leaf: int
    least: float
    total: float
    unit: float
    slack: int
    steps: np.ndarray


@dataclass(frozen=True, eq=False)
class Criterion(SplitCriterion):
    """How cuts of an order line are judged: by information gain.

    Gains are integers, and depend on the numbers of classes on either side alone: equal gains of
    different numbers are equal integers, and one of nothing is 0. Where all classes weigh the same
    they are sums of `_logarithms`; else the exact gain, rounded. With weights of single series
    gains and gaps are those of series that are there as often as these weights say.

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
    sample_weight : ndarray of shape (n_members,), float64, or None, default None
        Weight of each series beside that of its class, above 0; None where all are 1.
    """

    labels: np.ndarray
    class_weight: np.ndarray
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    sample_weight: np.ndarray | None = None

    @cached_property
    def counts(self) -> np.ndarray:
        """Series of each class."""
        return np.bincount(self.labels, minlength=len(self.class_weight))

    @cached_property
    def equal(self) -> bool:
        """Whether all series weigh the same."""
        same = bool(np.all(self.class_weight == self.class_weight[0]))
        return same and self.sample_weight is None

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of each series."""
        weights = self.class_weight[self.labels]
        return weights if self.sample_weight is None else weights * self.sample_weight

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Classes whose series weigh the same: the group of each series, and a group's weight.

        Series of one class and different weights are of different groups. A gain of groups is no
        less than that of their classes: whoever knows the group knows the class.
        """
        if self.sample_weight is None:
            return self.labels, self.class_weight
        both = np.stack([self.labels.astype(np.float64), self.weights])
        (_, weights), group = np.unique(both, axis=1, return_inverse=True)
        return group.reshape(-1), weights

    @cached_property
    def unit(self) -> float:
        """Units of an information gain of one nat."""
        n = len(self.labels)
        return math.ldexp(n, self._logs[1]) if self.equal else ROUNDED

    @property
    def width(self) -> int:
        """The sum over classes; and a weight, where not all series weigh the same."""
        return 1 if self.equal else 2

    @cached_property
    def _logs(self) -> tuple[np.ndarray, int]:
        return _logarithms(1 << max(1, (len(self.labels) - 1).bit_length()))

    @cached_property
    def _of_number(self) -> np.ndarray:
        """N ln n of whole numbers up to that of the series."""
        n = len(self.labels)
        return np.arange(n + 1) * self._logs[0][: n + 1]

    @cached_property
    def _integer_groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Groups: of each series, weights as whole numbers, counts; and the weight of the node."""
        labels, weights = self.groups
        counts = np.bincount(labels, minlength=len(weights))
        whole = integer_weights(weights, counts)
        return labels, whole, counts, max(1, int(whole @ counts))

    @cached_property
    def _steps(self) -> np.ndarray:
        """By how much each series raises the number of its class: 1, or a weight of its own."""
        labels, whole, *_ = self._integer_groups
        return np.ones(len(labels), np.int64) if self.sample_weight is None else whole[labels]

    @cached_property
    def _integers(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Weight of 1 of the number of a class; these numbers; and the weight of the node."""
        _, whole, _, total = self._integer_groups
        if self.sample_weight is None:
            return whole, self.counts, total
        numbers = np.zeros(len(self.class_weight), np.int64)
        np.add.at(numbers, self.labels, self._steps)
        return np.ones(len(numbers), np.int64), numbers, total

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
        total = float(
            self.counts @ self.class_weight if self.sample_weight is None else self.weights.sum()
        )
        if self.equal or total <= 0:
            return 0.0
        return self.min_weight_leaf / total * (1 - 1e-12)

    def tables(self, *, of_groups: bool = False) -> Tables:
        """Entropies by the numbers of each class.

        Parameters
        ----------
        of_groups : bool, default False
            Take groups for classes, for engines that know no weights of single series: gains are
            then bounds, which no gain of the classes exceeds.

        Returns
        -------
        Tables
            These.
        """
        n, none = len(self.labels), np.empty(0, np.int64)
        if self.equal:
            sizes = self._of_number
            changes = np.tile(np.append(np.diff(sizes), 0), (len(self.class_weight), 1))
            bits = math.log2(max(2, n))
            slack = 0 if n <= CONVEX else math.ceil(2.5 * n * bits)
            weights, whole = np.ones(len(self.class_weight)), int(sizes[n])
            rest = float(n), math.ldexp(1.0, self._logs[1]), slack, none
            judged = weights, self.counts, whole, self._leaf, self._least
            return Tables(self.labels, changes, sizes + sizes[::-1], *judged, *rest)
        if self.sample_weight is None or of_groups:
            labels, of_one, numbers, total = self._integer_groups
            each = np.minimum(np.arange(n + 1), numbers[:, np.newaxis])
            shares = each * of_one[:, np.newaxis] / total
            table = np.rint(ROUNDED * _entropies(shares)).astype(np.int64)
            changes, steps = np.diff(table, axis=1, append=table[:, -1:]), none
        else:
            of_one, numbers, total = self._integers
            labels, changes, steps = self.labels, np.empty((0, 0), np.int64), self._steps
        # half a unit for each term of a class, and for both sides, and for the gain itself
        # see "weighted gains" in docs/developer/numerics.rst
        rest = 1.0, ROUNDED, 2 * len(numbers) + 8, steps
        judged = of_one / total, numbers, 0, self._leaf, self._least
        return Tables(labels, changes, none, *judged, *rest)

    def weighing(self) -> Weighing:
        """How series count, where they have no weights of their own.

        Returns
        -------
        Weighing
            Their weights, and what must lie on either side of a cut.
        """
        if self.equal:
            return Weighing(self._leaf, np.zeros(len(self.class_weight), np.int64), 0, 0.0)
        whole, _, total = self._integers
        return Weighing(self._leaf, whole, total, self._least)

    def _by_class(self, order: np.ndarray) -> np.ndarray:
        """Places of lines in an order, class by class, as they come within each."""
        # small whole numbers are sorted in time that grows as their number
        labels = self.labels.astype(np.min_scalar_type(self.counts.size))[order]
        return np.argsort(labels, axis=1, kind="stable")

    def _gains_along(self, order: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains of cuts; all are exact where no weights differ.

        Each series that goes to the left changes the terms of its own class alone.
        """
        if not self.equal:
            return self._weighted_gains(order, allowed)
        n, counts = order.shape[1], self.counts
        # series of the same class that come before, class by class
        before = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
        sizes, growth = self._of_number, np.diff(self._of_number)
        changes = growth[before] - growth[np.repeat(counts, counts) - before - 1]
        steps = np.empty(order.shape, np.int64)
        np.put_along_axis(steps, self._by_class(order), changes[np.newaxis], axis=1)
        both = sizes[1:n] + sizes[n - 1 : 0 : -1]
        gain = sizes[n] - both + np.cumsum(steps, axis=1)[:, :-1]
        return np.where(allowed, gain, -1)

    def _weighted_gains(self, order: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains of cuts where weights differ."""
        weights, numbers, total = self._integers
        # sums of whole numbers, exact in any order; no more than `EXACT`
        share = np.cumsum(self._own_weights[order], axis=1)[:, :-1] / total
        allowed &= np.minimum(share, 1 - share) >= self._least
        both = self._terms_along(order) / TERMS
        rough = ROUNDED * (both - _entropies(share) - _entropies(1 - share))
        gain = np.where(allowed, np.rint(rough), -1).astype(np.int64)
        close = np.abs(rough - np.floor(rough) - 0.5) <= wrong_gain(len(weights))
        close &= allowed & (gain >= gain.max(axis=1, keepdims=True) - 1)
        for line, cut in np.argwhere(close).tolist():
            left, steps = order[line, : cut + 1], self._steps
            on_left = np.zeros(len(numbers), np.int64)
            np.add.at(on_left, self.labels[left], steps[left])
            gain[line, cut] = self._exact_gain(on_left.tolist())
        return gain

    @cached_property
    def _own_weights(self) -> np.ndarray:
        """Weight of each series as a whole number."""
        return self._integers[0][self.labels] * self._steps

    def _terms_along(self, order: np.ndarray) -> np.ndarray:
        """Terms of classes on both sides of cuts, less those of the node, times `TERMS`."""
        weights, numbers, total = self._integers
        n, rows, by_class = (
            order.shape[1],
            np.arange(len(order))[:, np.newaxis],
            self._by_class(order),
        )
        present = np.flatnonzero(self.counts)
        counts = self.counts[present]
        first, labels = np.cumsum(counts) - counts, np.repeat(present, counts)
        # numbers of the class of each series on the left, class by class, once it is there
        left = np.cumsum(self._steps[order[rows, by_class]], axis=1)
        left -= np.repeat(np.cumsum(numbers[present]) - numbers[present], counts)
        each = (some * weights[labels] / total for some in (left, numbers[labels] - left))
        terms = np.zeros(order.shape, np.int64)
        for some in each:
            terms += np.rint(TERMS * _entropies(some)).astype(np.int64)
        change = np.diff(terms, axis=1, prepend=0)
        of_node = np.rint(TERMS * _entropies(numbers * weights / total)).astype(np.int64)
        change[:, first] = terms[:, first] - of_node[present]
        along = np.empty((len(order), n), np.int64)
        along[rows, by_class] = change
        return np.cumsum(along, axis=1)[:, :-1]

    def _exact_gain(self, left: list[int]) -> int:
        """The rounded gain of one cut, by the numbers of classes on the left, where weights differ.

        A sum of whole multiples of logarithms of whole numbers is 0 or irrational, so that 64
        digits tell on which side of a rounding edge it is.
        """
        weights, numbers, total = (np.asarray(part).tolist() for part in self._integers)
        on_left = sum(a * b for a, b in zip(weights, left, strict=True))
        with localcontext(prec=64):
            terms = _exact_entropy(total) - _exact_entropy(on_left)
            terms -= _exact_entropy(total - on_left)
            for weight, here, count in zip(weights, left, numbers, strict=True):
                # classes that lie on one side change nothing
                if 0 < here < count:
                    terms += _exact_entropy(weight * here) + _exact_entropy(weight * (count - here))
                    terms -= _exact_entropy(weight * count)
            return int((terms * int(ROUNDED) / total).to_integral_value())

    def plain_gain(self, left: np.ndarray) -> float:
        """Information gain of a cut, in nats."""
        weights, classes = self.weights / self.weights.max(), len(self.class_weight)

        def impurity(members: np.ndarray) -> float:
            shares = np.bincount(self.labels[members], weights[members], classes)
            whole = shares.sum()
            return float(sum(-share * math.log(share / whole) for share in shares if share > 0))

        everyone = np.ones(left.size, bool)
        whole = float(weights.sum())
        return (impurity(everyone) - impurity(left) - impurity(~left)) / whole
