"""Distances between time series, on the same engines as the estimators."""

from ._dtw import dog_keeper, dtw, dtw_path, lb_keogh, pairwise_dtw
from ._sbd import ShapeDistance, pairwise_sbd, sbd
from ._soft import SoftGradient, pairwise_soft_dtw, soft_dtw, soft_dtw_gradient
from ._subsequence import SubsequenceDistance, subsequence_distance

__all__ = [
    "ShapeDistance",
    "SoftGradient",
    "SubsequenceDistance",
    "dog_keeper",
    "dtw",
    "dtw_path",
    "lb_keogh",
    "pairwise_dtw",
    "pairwise_sbd",
    "pairwise_soft_dtw",
    "sbd",
    "soft_dtw",
    "soft_dtw_gradient",
    "subsequence_distance",
]
