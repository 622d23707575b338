"""Clustering of time series."""

from ._kshape import KShapeClusterer

__all__ = ["KShapeClusterer"]
