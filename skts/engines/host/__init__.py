"""Compiled code of the host that every engine shares: what it computes has the same bits for all.

Statistics and distances of windows in two passes, series scaled for k-Shape, certified distances.
The families import it when they first need it, so that ``import skts`` compiles nothing.
"""

from . import arrays, by_numpy, paths, plain, point_costs, shapes, small_work, windows
from .kernels import kernel, remember_sources, stamp_of

__all__ = [
    "arrays",
    "by_numpy",
    "kernel",
    "paths",
    "plain",
    "point_costs",
    "remember_sources",
    "shapes",
    "small_work",
    "stamp_of",
    "windows",
]

remember_sources(__name__.partition(".")[0])
