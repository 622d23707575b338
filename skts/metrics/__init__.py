"""Distances between time series, on the same engines as the estimators."""

from ..engines import PointCost
from ._distances import pairwise_distances, warping_path
from ._dtw import dog_keeper, dtw, dtw_path, lb_keogh, pairwise_dtw
from ._elastic import adtw, ddtw, edr, erp, lcss, msm, shape_dtw, twe, wdtw
from ._matches import DTWMatches, dtw_matches
from ._sbd import ShapeDistance, pairwise_sbd, sbd
from ._silhouette import silhouette_samples, silhouette_score
from ._soft import SoftGradient, pairwise_soft_dtw, soft_dtw, soft_dtw_gradient
from ._subsequence import SubsequenceDistance, subsequence_distance

__all__ = [
    "DTWMatches",
    "PointCost",
    "ShapeDistance",
    "SoftGradient",
    "SubsequenceDistance",
    "adtw",
    "ddtw",
    "dog_keeper",
    "dtw",
    "dtw_matches",
    "dtw_path",
    "edr",
    "erp",
    "lb_keogh",
    "lcss",
    "msm",
    "pairwise_distances",
    "pairwise_dtw",
    "pairwise_sbd",
    "pairwise_soft_dtw",
    "sbd",
    "shape_dtw",
    "silhouette_samples",
    "silhouette_score",
    "soft_dtw",
    "soft_dtw_gradient",
    "subsequence_distance",
    "twe",
    "warping_path",
    "wdtw",
]
