"""Distances between time series, on the same engines as the estimators."""

from ._dtw import dog_keeper, dtw, dtw_path, lb_keogh, pairwise_dtw
from ._sbd import ShapeDistance, pairwise_sbd, sbd
from ._subsequence import SubsequenceDistance, subsequence_distance

__all__ = [
    "ShapeDistance",
    "SubsequenceDistance",
    "dog_keeper",
    "dtw",
    "dtw_path",
    "lb_keogh",
    "pairwise_dtw",
    "pairwise_sbd",
    "sbd",
    "subsequence_distance",
]
