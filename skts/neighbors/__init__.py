"""Nearest neighbours of time series."""

from ._dtw import DTWNearestNeighbor

__all__ = ["DTWNearestNeighbor"]
