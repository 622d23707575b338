"""Plots, in the manner of scikit-learn's displays: `SomeDisplay.from_estimator(model, X)`."""

from ._alignment import AlignmentDisplay
from ._cluster import ClusterDisplay
from ._motifs import MotifDisplay
from ._pan_profile import PanProfileDisplay
from ._search import SearchDisplay
from ._tree import ShapeletMatchDisplay, ShapeletTreeDisplay

__all__ = [
    "AlignmentDisplay",
    "ClusterDisplay",
    "MotifDisplay",
    "PanProfileDisplay",
    "SearchDisplay",
    "ShapeletMatchDisplay",
    "ShapeletTreeDisplay",
]
