"""Compiled code of the host that every engine shares: what it computes has the same bits for all.

Statistics and distances of windows in two passes, series scaled for k-Shape, certified distances.
The families import it when they first need it, so that ``import skts`` compiles nothing.
"""

from . import by_numpy, plain, shapes, small_work, windows
from ._cache import prepare_kernels, stamp_of

__all__ = ["by_numpy", "small_work", "plain", "prepare_kernels", "shapes", "stamp_of", "windows"]

prepare_kernels(__name__)
