"""Time-series mining for scikit-learn users, on CPU (Numba) and GPU (CuPy)."""

from ._config import config_context, get_config, set_config
from ._version import __version__ as __version__
from ._warm_up import warm_up
from .cluster import KShapeClusterer
from .engines import show_engines
from .motifs import MotifFinder
from .neighbors import DTWCondenser, DTWNearestNeighbor, SubsequenceSearch
from .tree import ShapeletTreeClassifier
from .utils import show_versions

__all__ = [
    "DTWCondenser",
    "DTWNearestNeighbor",
    "KShapeClusterer",
    "MotifFinder",
    "ShapeletTreeClassifier",
    "SubsequenceSearch",
    "config_context",
    "get_config",
    "set_config",
    "show_engines",
    "show_versions",
    "warm_up",
]
