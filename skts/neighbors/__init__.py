"""Nearest neighbours of time series."""

from ._condenser import DTWCondenser
from ._dtw import DTWNearestNeighbor
from ._neighbors import DTWNeighbors
from ._parameter_search import ParameterSearch, elastic_parameter_search
from ._regressor import DTWNearestNeighborRegressor
from ._subsequence_monitor import SubsequenceMonitor
from ._subsequence_search import SubsequenceSearch
from ._window_search import WindowSearch, dtw_window_search

__all__ = [
    "DTWCondenser",
    "DTWNearestNeighbor",
    "DTWNearestNeighborRegressor",
    "DTWNeighbors",
    "ParameterSearch",
    "SubsequenceMonitor",
    "SubsequenceSearch",
    "WindowSearch",
    "dtw_window_search",
    "elastic_parameter_search",
]
