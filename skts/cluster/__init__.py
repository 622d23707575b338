"""Clustering of time series."""

from ._dtw_kmeans import DTWKMeans
from ._kshape import KShapeClusterer

__all__ = ["DTWKMeans", "KShapeClusterer"]
