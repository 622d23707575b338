"""Plots, in the manner of scikit-learn's displays: `SomeDisplay.from_estimator(model, X)`."""

from ._cluster import ClusterDisplay

__all__ = ["ClusterDisplay"]
