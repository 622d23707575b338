"""The CUDA programs of paths of many pairs and of shape DTW, and the memory that they take.

Imports nothing of CUDA.
"""

from __future__ import annotations

from ...families.elastic.distances import ShapeDTW
from .cells import ANY_CELL, WINDOWS, metric_of

__all__ = ["ADD_MATCHED", "TRACE", "TRACE_WINDOWS", "WALK_BACK", "along", "kernels", "path_words"]

TRACE, TRACE_WINDOWS = f"trace<{ANY_CELL}>", f"trace<{WINDOWS}>"
WALK_BACK = "walk_back"
ADD_MATCHED = "add_matched"


def path_words(m: int) -> int:
    """Words of 64 bits that hold the steps of a row of m cells, two bits each."""
    return -(-m // 32)


def along(warping: ShapeDTW) -> str:
    """Name the kernel of distances along paths between windows."""
    return f"along_windows<{metric_of(squared=warping.squared)}>"


def kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check."""
    return {
        "elastic/alignments.cu": [TRACE, TRACE_WINDOWS, WALK_BACK, ADD_MATCHED],
        "elastic/windows.cu": [along(ShapeDTW(cost=cost)) for cost in ("squared", "absolute")],
    }
