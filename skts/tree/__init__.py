"""Decision trees over shapelets: the subsequences that tell classes apart."""

from ._export import export_text
from ._shapelet_tree import ShapeletTreeClassifier
from ._structure import Shapelet, ShapeletTree

__all__ = ["Shapelet", "ShapeletTree", "ShapeletTreeClassifier", "export_text"]
