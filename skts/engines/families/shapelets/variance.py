"""Cuts judged by the variance of targets: whole numbers in their place, gains, tables for engines.

The gain of a cut is by how much the variance about the means of both sides is below that about the
mean of the node. For weights w, targets q and the sums W of w and S of w q,

    gain = (S_left - S W_left / W)^2 / (W_left W_right),

which depends on W_left and S_left alone. Both are sums of whole numbers, exact in any order.
Products of weights and targets need more than 64 bits, so that S is kept in two parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .criterion import ROUNDED, integer_weights
from .cuts import SplitCriterion

__all__ = ["VarianceCriterion", "VarianceTables"]

#: Bits of targets as whole numbers; of these, those that are summed apart from the others; and the
#: sum of weights that are no ratios of small numbers: both sums have 62 bits at most.
TARGET_BITS, LOW_BITS, WEIGHTS = 44, 22, 2**40
#: Gains in float64 are off by less, in units of the rounded ones.
#: see "gains of variance" in docs/developer/numerics.rst
WRONG = 2.0**-10
_LOW = (1 << LOW_BITS) - 1


def _sum_of_products(targets: np.ndarray, weights: np.ndarray) -> int:
    """The weighted sum of whole numbers, exact."""
    high, low = weights @ (targets >> LOW_BITS), weights @ (targets & _LOW)
    return (int(high) << LOW_BITS) + int(low)


class VarianceTables(NamedTuple):
    """Sums and factors by which engines judge cuts.

    Attributes
    ----------
    targets : ndarray of shape (n_members,), int64
        Whole numbers in place of the targets, about their mean.
    high, low : ndarray of shape (n_members,), int64
        These, weighted and in two parts: in units of 2^22, and what is left, which is not negative.
    weights : ndarray of shape (n_members,), int64
        Whole numbers in place of the weights.
    total_weight : int
        Sum of the weights.
    mean : float
        Mean of the weighted targets, below 1.
    factor : float
        Gain in rounded units, of one of 1.
    leaf : int
        Series that must lie on either side.
    least : float
        Share of the weight that must lie on either side.
    often : ndarray of shape (n_members,), float64
        The weights as they are, for gaps.
    weighted : bool
        Whether weights differ.
    """

    targets: np.ndarray
    high: np.ndarray
    low: np.ndarray
    weights: np.ndarray
    total_weight: int
    mean: float
    factor: float
    leaf: int
    least: float
    often: np.ndarray
    weighted: bool


@dataclass(frozen=True, eq=False)
class VarianceCriterion(SplitCriterion):
    """How cuts of an order line are judged: by the decrease of the variance of targets.

    Targets become whole numbers, 2^44 of them over the range of the node, and weights ratios of
    whole numbers. Gains are exact for these, and rounded to 2^-38 of the variance of the node. With
    weights of single series gains and gaps are those of series that are there as often as these
    weights say.

    Parameters
    ----------
    targets : ndarray of shape (n_members,), float64
        Target of each series of the node.
    min_samples_leaf : int, default 1
        Series that must lie on either side.
    min_weight_leaf : float, default 0.0
        Weight that must lie on either side.
    sample_weight : ndarray of shape (n_members,), float64, or None, default None
        Weight of each series, above 0; None where all are 1.
    """

    targets: np.ndarray
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    sample_weight: np.ndarray | None = None

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of each series."""
        return np.ones(len(self.targets)) if self.sample_weight is None else self.sample_weight

    @property
    def width(self) -> int:
        """Weight, and both parts of the weighted sum."""
        return 3

    @cached_property
    def unit(self) -> float:
        """Units of a decrease of the variance by 1."""
        exponent = 2 * self._whole[1]
        # targets so close that their variance is below all numbers
        if exponent > 900 or self._tables.factor == 0:
            return math.inf
        return math.ldexp(self._tables.factor, exponent)

    @cached_property
    def _steps(self) -> np.ndarray:
        """Whole numbers in place of the weights."""
        if self.sample_weight is None:
            return np.ones(len(self.targets), np.int64)
        each, place, counts = np.unique(self.sample_weight, return_inverse=True, return_counts=True)
        return np.maximum(1, integer_weights(each, counts, WEIGHTS))[place.reshape(-1)]

    @cached_property
    def _whole(self) -> tuple[np.ndarray, int]:
        """Whole numbers in place of the targets; and the bits that these have after the point."""
        steps = self._steps
        low, high = float(self.targets.min()), float(self.targets.max())
        point = TARGET_BITS - math.frexp(high - low)[1]
        whole = np.rint(np.ldexp(self.targets - low, point)).astype(np.int64)
        total = _sum_of_products(whole, steps)
        return whole - round(Fraction(total, int(steps.sum()))), point

    def tables(self) -> VarianceTables:
        """Sums and factors for engines."""
        return self._tables

    @cached_property
    def _tables(self) -> VarianceTables:
        whole, steps = self._whole[0], self._steps
        weight, total = int(steps.sum()), _sum_of_products(whole, steps)
        squares = sum(w * q * q for w, q in zip(steps.tolist(), whole.tolist(), strict=True))
        # the sum of squares about the mean, times the weight
        spread = weight * squares - total * total
        factor = float(Fraction(int(ROUNDED) * weight**2, spread)) if spread > 0 else 0.0
        differ = self.sample_weight is not None
        least = self.min_weight_leaf / float(self.weights.sum()) * (1 - 1e-12) if differ else 0.0
        return VarianceTables(
            targets=whole,
            high=steps * (whole >> LOW_BITS),
            low=steps * (whole & _LOW),
            weights=steps,
            total_weight=weight,
            mean=total / weight,
            factor=factor,
            leaf=self._leaf,
            least=least,
            often=self.weights,
            weighted=differ,
        )

    @property
    def _leaf(self) -> int:
        """Series that must lie on either side, by their weight as well if all weigh the same."""
        if self.sample_weight is not None:
            return self.min_samples_leaf
        # a share of a sum may be rounded up
        # see "shares" in docs/developer/numerics.rst
        return max(self.min_samples_leaf, math.ceil(self.min_weight_leaf - 1e-9))

    def _numbers(self, order: np.ndarray) -> np.ndarray:
        """Weight and parts of the weighted sum on the left of each cut, of lines in an order."""
        tables = self._tables
        each = np.stack([tables.weights, tables.high, tables.low], axis=1)
        return np.cumsum(each[order], axis=1)[:, :-1]

    def _gains_along(self, order: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains of the cuts of lines in an order."""
        return self._gains(self._numbers(order), allowed)

    def _gains(self, left: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains by the weight and the parts of the weighted sum on the left."""
        tables = self._tables
        weight, mean, factor = tables.total_weight, tables.mean, tables.factor
        near, high, low = np.moveaxis(left, -1, 0)
        # in an order that rounds the sum once
        sums = (high + (low >> LOW_BITS)) * float(1 << LOW_BITS) + (low & _LOW)
        far = float(weight) - near
        allowed &= np.minimum(near, far) >= tables.least * weight
        off = sums - mean * near
        rough = factor * (off * off) / (near * far)
        gain = np.where(allowed, np.rint(rough), -1).astype(np.int64)
        close = np.abs(rough - np.floor(rough) - 0.5) <= WRONG
        close &= allowed & (gain >= gain.max(axis=1, keepdims=True) - 1)
        for place in zip(*np.nonzero(close), strict=True):
            gain[place] = self._exact_gain(*left[place].tolist())
        return gain

    def _exact_gain(self, near: int, high: int, low: int) -> int:
        """The rounded gain of one cut; one that lies between two whole numbers becomes even."""
        tables = self._tables
        weight, total = tables.total_weight, _sum_of_products(tables.targets, tables.weights)
        off = (high << LOW_BITS) + low - Fraction(total * near, weight)
        return round(Fraction(tables.factor) * off * off / (near * (weight - near)))

    def plain_gain(self, left: np.ndarray) -> float:
        """Decrease of the variance by a cut, with the weights that are ratios of whole numbers."""
        weights, total = self._steps, float(self._steps.sum())

        def squares(members: np.ndarray) -> float:
            mean = np.average(self.targets[members], weights=weights[members])
            return float(weights[members] @ (self.targets[members] - mean) ** 2)

        everyone = np.ones(left.size, bool)
        return (squares(everyone) - squares(left) - squares(~left)) / total
