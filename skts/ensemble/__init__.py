"""Forests of trees over shapelets."""

from ._shapelet_forest import ShapeletForestClassifier

__all__ = ["ShapeletForestClassifier"]
