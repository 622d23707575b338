"""The CUDA programs of soft-DTW, and the memory that they take.

Imports nothing of CUDA.
"""

from __future__ import annotations

__all__ = [
    "ADD_GRADIENTS",
    "GRADIENTS",
    "VALUES",
    "edge_bytes",
    "kernels",
    "steps_of_strip",
    "weight_bytes",
]

VALUES = "soft_values"
GRADIENTS = "soft_gradients"
ADD_GRADIENTS = "add_gradients"


def steps_of_strip(m: int) -> int:
    """Steps of a warp through a strip of 32 rows and m columns."""
    return m + 31


def weight_bytes(n: int, m: int) -> int:
    """Bytes of the weights of one pair: three for each cell, as the lanes find them."""
    return -(-n // 32) * steps_of_strip(m) * 96 * 8


def edge_bytes(m: int) -> int:
    """Bytes of the row between two strips of a warp."""
    return 16 * (m + 1)


def kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check."""
    return {"elastic/soft.cu": [VALUES, GRADIENTS, ADD_GRADIENTS]}
