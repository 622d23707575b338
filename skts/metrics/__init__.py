"""Distances between time series, on the same engines as the estimators."""

from ._dtw import dog_keeper, dtw, dtw_path, lb_keogh, pairwise_dtw

__all__ = ["dog_keeper", "dtw", "dtw_path", "lb_keogh", "pairwise_dtw"]
