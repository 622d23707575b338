"""Clustering of time series."""

from ._dtw_kmeans import DTWKMeans
from ._dtw_kmedoids import DTWKMedoids
from ._kshape import KShapeClusterer

__all__ = ["DTWKMeans", "DTWKMedoids", "KShapeClusterer"]
