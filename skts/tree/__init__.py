"""Decision trees over shapelets: the subsequences that tell series apart."""

from ._export import export_text
from ._shapelet_tree import ShapeletTreeClassifier
from ._shapelet_tree_regressor import ShapeletTreeRegressor
from ._structure import Shapelet, ShapeletTree

__all__ = [
    "Shapelet",
    "ShapeletTree",
    "ShapeletTreeClassifier",
    "ShapeletTreeRegressor",
    "export_text",
]
