"""The growing of a tree that predicts numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from sklearn.model_selection import KFold

from ..engines import VarianceCriterion
from ._growth import NodeValue, TreeGrowth
from ._logic import FOLDS

__all__ = ["TargetGrowth"]


class TargetGrowth(TreeGrowth):
    """The growing of a tree that predicts numbers."""

    def take_target(self, y: np.ndarray) -> None:
        """Keep the targets."""
        self.targets = y

    def criterion(self, members: np.ndarray) -> VarianceCriterion:
        """The variance of the targets of a node."""
        each = self.sample_weight[members]
        differ = bool(np.any(each != each[0]))
        least = self.model.min_weight_fraction_leaf * self.total
        return VarianceCriterion(
            self.targets[members],
            self.leaf,
            least if differ else least / float(each[0]),
            each if differ else None,
        )

    def weigh(self, members: np.ndarray) -> float:
        """The weight of some series."""
        return math.fsum(self.sample_weight[members])

    def describe(self, members: np.ndarray) -> NodeValue:
        """Variance and mean, of sums that are rounded once: in no order of series others."""
        weights, targets = self.sample_weight[members], self.targets[members]
        weight = math.fsum(weights)
        if np.all(targets == targets[0]):
            return NodeValue(weight, 0.0, float(targets[0]), True)
        mean = math.fsum(weights * targets) / weight
        variance = math.fsum(weights * (targets - mean) ** 2) / weight
        return NodeValue(weight, variance, mean, False)

    def folds(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Parts of all series; none of a single one."""
        n = len(self.targets)
        if n < 2:
            return ()
        # the same parts whatever draws the candidates
        return KFold(min(FOLDS, n), shuffle=True, random_state=0).split(np.zeros(n))

    def credit(self, value: np.ndarray, test: np.ndarray) -> float:
        """The sum of squared errors, less than 0."""
        return -math.fsum(self.given[1][test] * (value - self.targets[test]) ** 2)
