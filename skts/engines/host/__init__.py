"""Compiled code of the host that every engine shares: what it computes has the same bits for all.

Statistics and distances of windows in two passes, series scaled for k-Shape, certified distances.
The families import it when they first need it, so that ``import skts`` compiles nothing.
"""

from . import arrays, by_numpy, paths, plain, point_costs, shapes, small_work, windows
from ._cache import prepare_kernels, stamp_of

__all__ = [
    "arrays",
    "by_numpy",
    "paths",
    "plain",
    "point_costs",
    "prepare_kernels",
    "shapes",
    "small_work",
    "stamp_of",
    "windows",
]

prepare_kernels(__name__)
