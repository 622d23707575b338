"""Distances between time series, on the same engines as the estimators."""

from ._dtw import dtw, dtw_path, pairwise_dtw

__all__ = ["dtw", "dtw_path", "pairwise_dtw"]
