"""Cuts judged by the variance of targets: whole numbers in their place, gains, tables for engines.

The gain of a cut is by how much the variance about the means of both sides is below that about the
mean of the node. For weights w, targets q and the sums W of w and S of w q,

    gain = (S_left - S W_left / W)^2 / (W_left W_right),

which depends on W_left and S_left alone. Both are sums of whole numbers, exact in any order.
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

#: Bits of targets as whole numbers, at most; those of sums of weighted ones; and the sum of weights
#: that are no ratios of small numbers.
TARGET_BITS, SUM_BITS, WEIGHTS = 44, 62, 2**31
#: Gains in float64 are off by less, in units of the rounded ones.
#: see "gains of variance" in docs/developer/numerics.rst
WRONG = 2.0**-10


class VarianceTables(NamedTuple):
    """Sums and factors by which engines judge cuts.

    Attributes
    ----------
    targets : ndarray of shape (n_members,), int64
        Whole numbers in place of the targets, about their mean.
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

    Targets are rounded to whole numbers, `TARGET_BITS` of them over the range of the node, fewer
    where sums of so many series would not fit into 64 bits. Gains are exact for these, and rounded
    to 2^-38 of the variance of the node. With weights of single series gains and gaps are those of
    series that are there as often as these weights say.

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
        """Weight and weighted sum."""
        return 2

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
        bits = min(TARGET_BITS, SUM_BITS - int(steps.sum()).bit_length())
        point = bits - math.frexp(high - low)[1]
        whole = np.rint(np.ldexp(self.targets - low, point)).astype(np.int64)
        return whole - round(Fraction(int(whole @ steps), int(steps.sum()))), point

    def tables(self) -> VarianceTables:
        """Sums and factors for engines."""
        return self._tables

    @cached_property
    def _tables(self) -> VarianceTables:
        whole, steps = self._whole[0], self._steps
        weight, total = int(steps.sum()), int(whole @ steps)
        squares = sum(w * q * q for w, q in zip(steps.tolist(), whole.tolist(), strict=True))
        # the sum of squares about the mean, times the weight
        spread = weight * squares - total * total
        factor = float(Fraction(int(ROUNDED) * weight**2, spread)) if spread > 0 else 0.0
        differ = self.sample_weight is not None
        least = self.min_weight_leaf / float(self.weights.sum()) * (1 - 1e-12) if differ else 0.0
        return VarianceTables(
            *(whole, steps, weight, total / weight, factor, self._leaf, least),
            *(self.weights, differ),
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
        """Weight and weighted sum on the left of each cut, of lines in an order."""
        both = np.stack([self._steps, self._steps * self._whole[0]], axis=1)
        return np.cumsum(both[order], axis=1)[:, :-1]

    def _gains(self, left: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains by the weight and the weighted sum on the left."""
        _, _, weight, mean, factor, _, least, *_ = self._tables
        near, sums = left[..., 0].astype(np.float64), left[..., 1].astype(np.float64)
        far = weight - near
        allowed &= np.minimum(near, far) >= least * weight
        off = sums - mean * near
        rough = factor * (off * off) / (near * far)
        gain = np.where(allowed, np.rint(rough), -1).astype(np.int64)
        close = np.abs(rough - np.floor(rough) - 0.5) <= WRONG
        close &= allowed & (gain >= gain.max(axis=1, keepdims=True) - 1)
        for place in zip(*np.nonzero(close), strict=True):
            gain[place] = self._exact_gain(*left[place].tolist())
        return gain

    def _exact_gain(self, near: int, sums: int) -> int:
        """The rounded gain of one cut; one that lies between two whole numbers becomes even."""
        whole, steps, weight, _, factor, *_ = self._tables
        off = Fraction(sums) - Fraction(int(whole @ steps) * near, weight)
        return round(Fraction(factor) * off * off / (near * (weight - near)))

    def plain_gain(self, left: np.ndarray) -> float:
        """Decrease of the variance by a cut."""
        weights, total = self.weights, float(self.weights.sum())

        def squares(members: np.ndarray) -> float:
            mean = np.average(self.targets[members], weights=weights[members])
            return float(weights[members] @ (self.targets[members] - mean) ** 2)

        everyone = np.ones(left.size, bool)
        return (squares(everyone) - squares(left) - squares(~left)) / total
