"""Time-series mining for scikit-learn users, on CPU (Numba) and GPU (CuPy)."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from ._config import config_context, get_config, set_config
from ._version import __version__ as __version__
from ._warm_up import warm_up
from .cluster import DTWKMeans, DTWKMedoids, KShapeClusterer
from .engines import show_engines
from .ensemble import ShapeletForestClassifier
from .feature_extraction import ShapeletTransformer
from .motifs import DiscordDetector, MotifFinder
from .neighbors import (
    DTWCondenser,
    DTWNearestNeighbor,
    DTWNearestNeighborRegressor,
    DTWNeighbors,
    SubsequenceMonitor,
    SubsequenceSearch,
)
from .tree import ShapeletTreeClassifier, ShapeletTreeRegressor
from .utils import show_versions

__all__ = [
    "DTWCondenser",
    "DTWKMeans",
    "DTWKMedoids",
    "DTWNearestNeighbor",
    "DTWNearestNeighborRegressor",
    "DTWNeighbors",
    "DiscordDetector",
    "KShapeClusterer",
    "MotifFinder",
    "ShapeletForestClassifier",
    "ShapeletTransformer",
    "ShapeletTreeClassifier",
    "ShapeletTreeRegressor",
    "SubsequenceMonitor",
    "SubsequenceSearch",
    "config_context",
    "get_config",
    "set_config",
    "show_engines",
    "show_versions",
    "warm_up",
]

#: Modules that ``import skts`` makes reachable; those that it does not need itself load later.
_MODULES = (
    "averages",
    "base",
    "cluster",
    "datasets",
    "engines",
    "ensemble",
    "exceptions",
    "feature_extraction",
    "metrics",
    "motifs",
    "neighbors",
    "plotting",
    "tree",
    "utils",
)

if TYPE_CHECKING:
    from . import averages as averages
    from . import datasets as datasets
    from . import metrics as metrics
    from . import plotting as plotting
else:

    def __getattr__(name: str) -> ModuleType:
        """Load a module of the package at its first use."""
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Public names, modules included."""
        return sorted([*__all__, *_MODULES, "__version__"])
