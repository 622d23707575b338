"""The growing of a tree that predicts classes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ..engines import Criterion
from ._class_weights import class_weights
from ._growth import NodeValue, TreeGrowth
from ._logic import FOLDS

__all__ = ["ClassGrowth"]


class ClassGrowth(TreeGrowth):
    """The growing of a tree that predicts classes."""

    def take_target(self, y: np.ndarray) -> None:
        """Number the classes, and weigh them."""
        self.classes, self.labels = np.unique(y, return_inverse=True)
        self.weights, scale = class_weights(
            self.model.class_weight, self.classes, self.labels, self.sample_weight
        )
        self.scale *= scale

    def criterion(self, members: np.ndarray) -> Criterion:
        """The entropy of the classes of a node."""
        # classes that have no series here would cost every cut as much as the others
        present, labels = np.unique(self.labels[members], return_inverse=True)
        class_weight, each = self.weights[present], self.sample_weight[members]
        if np.ptp(self.weights) > 0 and np.ptp(class_weight) == 0:
            # gains are rounded in another way where no weights differ: that is for the whole tree
            lightest, heaviest = self.weights.min(), self.weights.max()
            other = heaviest if class_weight[0] < heaviest else lightest
            class_weight = np.append(class_weight, other)
        differ = bool(np.any(each != each[0]))
        return Criterion(
            labels,
            class_weight if differ else class_weight * each[0],
            self.leaf,
            self.model.min_weight_fraction_leaf * self.total,
            each if differ else None,
        )

    def weigh_classes(self, members: np.ndarray) -> np.ndarray:
        """The weight of each class among some series."""
        each = np.bincount(self.labels[members], self.sample_weight[members], len(self.weights))
        return each * self.weights

    def weigh(self, members: np.ndarray) -> float:
        """The weight of some series."""
        return float(self.weigh_classes(members).sum())

    def describe(self, members: np.ndarray) -> NodeValue:
        """Entropy and shares of the classes."""
        each = self.weigh_classes(members)
        weight = each.sum()
        value = each / weight if weight > 0 else np.full(each.size, 1 / each.size)
        impurity = -float(np.sum(value * np.log(np.where(value > 0, value, 1.0))))
        return NodeValue(float(weight), abs(impurity), value, impurity <= 0)

    def folds(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """Parts with series of all classes; none where a class has one series."""
        count = min(FOLDS, int(np.bincount(self.labels).min()))
        if count < 2:
            return ()
        # the same parts whatever draws the candidates
        folds = StratifiedKFold(count, shuffle=True, random_state=0)
        return folds.split(np.zeros(len(self.labels)), self.labels)

    def credit(self, value: np.ndarray, test: np.ndarray) -> float:
        """The weight of series that are classified rightly."""
        right = value.argmax(axis=1) == self.labels[test]
        return float(self.given[1][test][right].sum())
