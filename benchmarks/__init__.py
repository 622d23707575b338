"""Benchmarks: of kernels, however small the work; only `cold_start` lets NumPy replace them."""

from skts.engines.core import compiling

compiling.replaced = False
