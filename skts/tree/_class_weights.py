"""Weights of classes and shares of series, for trees and forests."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import compute_class_weight

from .._validation import LARGEST

__all__ = ["class_weights", "power_of_two", "share_of"]


def share_of(n: int, share: float) -> int:
    """Series that are a share of n at least; a product may be rounded up."""
    return int(np.ceil(share * n * (1 - 1e-12)))


def power_of_two(weights: np.ndarray) -> float:
    """The power of two by which the largest of some weights is from 1 to 2."""
    return float(2.0 ** (np.frexp(weights.max())[1] - 1))


def class_weights(
    class_weight: dict[Any, float] | str | None,
    classes: np.ndarray,
    labels: np.ndarray,
    sample_weight: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Weights of the classes, and what they are to be multiplied by.

    Equal ones are 1, and the largest of others is from 1 to 2: the tree does not depend on scale.
    """
    if isinstance(class_weight, dict):
        for label, weight in class_weight.items():
            if not isinstance(weight, Real):
                raise ValueError(f"class_weight is {weight!r} for class {label!r}; give numbers.")
    if class_weight == "balanced":
        each = np.bincount(labels, sample_weight)
        weights = each.sum() / (len(classes) * each)
    else:
        weights = compute_class_weight(class_weight, classes=classes, y=classes[labels])
        weights = weights.astype(np.float64)
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST)))
    if bad.size:
        raise ValueError(
            f"class_weight is {weights[bad[0]]:g} for class {classes[bad[0]]!s}; give numbers from "
            f"0 to {LARGEST:.1g}."
        )
    if not weights.any():
        raise ValueError("class_weight is 0 for all classes of y; give one of them a weight.")
    if np.all(weights == weights[0]):
        return np.ones(len(weights)), float(weights[0])
    scale = power_of_two(weights)
    return weights / scale, scale
