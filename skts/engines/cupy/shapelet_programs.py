"""The CUDA programs of shapelets: which instances there are. Imports nothing of CUDA."""

from __future__ import annotations

from .match_programs import all_match_kernels

__all__ = [
    "MOST_CLASSES",
    "MOST_MEMBERS",
    "SHORT",
    "all_shapelet_kernels",
    "columns_of_strips",
    "scan_kernel",
    "walk_kernel",
]

#: Columns of a lane that are compiled.
COLUMNS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
#: Points of windows that are compared point by point, at most, as in ``shapelets.cu``.
SHORT = 6
#: Keys of a lane that are compiled, for order lines of 32 times as many series.
KEYS = (1, 2, 4, 8, 16, 32, 64)
#: Series of a node, and classes, that an order line has room for.
MOST_MEMBERS, MOST_CLASSES = 32 * KEYS[-1], 200


def columns_of_strips(n_windows: int) -> int:
    """Columns of a lane for so many windows: a row costs three cells beside its own."""
    return min(COLUMNS, key=lambda k: -(-n_windows // (32 * k)) * (k + 3))


def walk_kernel(n_windows: int) -> str:
    """The instance that walks over so many windows."""
    return f"segments<{columns_of_strips(n_windows)}>"


def scan_kernel(n_members: int) -> tuple[str, int]:
    """The instance that sorts order lines of so many series, and the keys of its lanes."""
    keys = next(keys for keys in KEYS if 32 * keys >= n_members)
    return f"scan<{keys}>", keys


def all_shapelet_kernels() -> dict[str, list[str]]:
    """Names of all instances by file; of the widest sorts, which compile long, only one."""
    return {
        "shapelets.cu": [
            *("prepare", "doubts", "edges", "nearest"),
            *(f"segments<{k}>" for k in COLUMNS),
        ],
        "order_lines.cu": [
            "weed",
            "cuts",
            "digest",
            "compare",
            *(f"scan<{keys}>" for keys in KEYS[:5]),
        ],
        "matches.cu": all_match_kernels(),
    }
