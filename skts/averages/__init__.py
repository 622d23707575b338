"""Averages of time series under warping."""

from ._barycenter import Barycenter, dtw_barycenter
from ._soft_barycenter import soft_dtw_barycenter

__all__ = ["Barycenter", "dtw_barycenter", "soft_dtw_barycenter"]
