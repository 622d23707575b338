"""Averages of time series under warping."""

from ._barycenter import Barycenter, dtw_barycenter

__all__ = ["Barycenter", "dtw_barycenter"]
