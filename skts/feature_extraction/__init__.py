"""Features of series for linear and other models: distances to shapelets, where they match."""

from ._transformer import DilatedShapelet, ShapeletTransformer

__all__ = ["DilatedShapelet", "ShapeletTransformer"]
