"""The least time that arithmetic leaves one core for a work, drawn beside the times of libraries.

A core is asked what it can do by a matrix product, which BLAS computes at nearly the full rate:
one multiply-add for each of its steps. A work is counted in operations that nothing saves, each as
one multiply-add, so that no exact method in float64 that looks at every cell can be faster.
"""

import time
from functools import cache

import numpy as np
from threadpoolctl import threadpool_limits

#: Rows and columns of the matrices.
SIZE = 1_000


@cache
def operations_per_second(repeats=5):
    """Multiply-adds in float64 that one core does in a second: the most of some matrix products."""
    a, b = np.random.default_rng(0).random((2, SIZE, SIZE))
    out = np.empty((SIZE, SIZE))
    fastest = np.inf
    with threadpool_limits(1):
        for _ in range(repeats + 1):
            start = time.perf_counter()
            np.matmul(a, b, out=out)
            fastest = min(fastest, time.perf_counter() - start)
    return SIZE**3 / fastest
