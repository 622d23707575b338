"""Nearest neighbours of time series."""

from ._dtw import DTWNearestNeighbor
from ._window_search import WindowSearch, dtw_window_search

__all__ = ["DTWNearestNeighbor", "WindowSearch", "dtw_window_search"]
