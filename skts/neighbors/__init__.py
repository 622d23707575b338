"""Nearest neighbours of time series."""

from ._condenser import DTWCondenser
from ._dtw import DTWNearestNeighbor
from ._window_search import WindowSearch, dtw_window_search

__all__ = ["DTWCondenser", "DTWNearestNeighbor", "WindowSearch", "dtw_window_search"]
