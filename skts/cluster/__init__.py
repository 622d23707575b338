"""Clustering of time series."""

from ._choice import ClusterChoice, choose_n_clusters
from ._dtw_kmeans import DTWKMeans
from ._dtw_kmedoids import DTWKMedoids
from ._kshape import KShapeClusterer

__all__ = ["ClusterChoice", "DTWKMeans", "DTWKMedoids", "KShapeClusterer", "choose_n_clusters"]
