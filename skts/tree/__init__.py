"""Decision trees over shapelets: the subsequences that tell classes apart."""

from ._export import export_text
from ._shapelet_tree import Shapelet, ShapeletTree, ShapeletTreeClassifier

__all__ = ["Shapelet", "ShapeletTree", "ShapeletTreeClassifier", "export_text"]
