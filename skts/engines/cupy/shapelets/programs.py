"""The CUDA programs of shapelets: which instances there are. Imports nothing of CUDA."""

from __future__ import annotations

from typing import NamedTuple

from ...core.constants import CUT_TOGETHER, LABEL_BITS, WIDE_THREADS

__all__ = [
    "KEYS",
    "MOST_MEMBERS",
    "MOST_SHARED",
    "NAMED_SHARED",
    "WALKS",
    "ScanKernel",
    "WalkKernel",
    "kernels",
    "keys_of_lane",
    "most_classes",
    "padded_members",
    "scan_kernel",
    "sorted_bytes",
    "walk_kernel",
]

#: Keys of a lane that are compiled, for order lines of 32 times as many series.
KEYS = (1, 2, 4, 8, 16, 32, 64)
#: Bytes of shared memory of a block: room for the static arrays of kernels, and the most that a
#: launch may ask for beside them on the largest devices.
NAMED_SHARED, MOST_SHARED = 7 * 1024, 220 * 1024
#: Bytes of the table of what entropies change by, of a block: larger ones are read where they are.
MOST_TABLE = 24 * 1024
#: Series of a node that the counters of an order line have room for.
MOST_MEMBERS = 32768


class WalkKernel(NamedTuple):
    """The instance that walks over the windows of pairs of series.

    Attributes
    ----------
    columns : int
        Columns of a lane.
    lanes : int
        Lanes of a pair of series.
    """

    columns: int
    lanes: int

    @property
    def name(self) -> str:
        """Its name in C++."""
        return f"segments<{self.columns}, {self.lanes}>"

    @property
    def pairs(self) -> int:
        """Pairs of series of a block."""
        return 128 // self.lanes

    def strips(self, n_windows: int) -> int:
        """Strips, one after the other, for so many windows."""
        return -(-n_windows // (self.columns * self.lanes))


#: Instances of the walk that are compiled: with fewer columns a lane, what each row costs beside
#: them counts more than lanes of other pairs.
WALKS = (
    *(WalkKernel(columns, 32) for columns in (7, 8, 9, 10, 11, 12)),
    *(WalkKernel(columns, 16) for columns in (7, 8, 9, 10, 11, 12)),
    *(WalkKernel(columns, 8) for columns in (2, 4, 5, 6, 8, 10, 12)),
)


def walk_kernel(n_windows: int) -> WalkKernel:
    """The instance for so many windows: a row costs three cells of each lane beside its own."""
    # lanes that share a warp have a single strip
    there = [walk for walk in WALKS if walk.lanes == 32 or walk.strips(n_windows) == 1]
    return min(there, key=lambda walk: walk.strips(n_windows) * (walk.columns + 3) * walk.lanes)


class ScanKernel(NamedTuple):
    """The instance that judges order lines, and its launch shape.

    Attributes
    ----------
    file, name : str
        Where it is, and its name in C++.
    keys : int
        Keys of a lane; of a block, if the line is wide.
    shared : int
        Bytes of shared memory.
    beside : int, default 1
        Neighbouring candidates of a block.
    tabled : bool, default False
        Whether shared memory holds what entropies change by.
    """

    file: str
    name: str
    keys: int
    shared: int
    beside: int = 1
    tabled: bool = False

    @property
    def wide(self) -> bool:
        """Whether a block judges one candidate, in place of a warp."""
        return self.name == "scan_wide"


def keys_of_lane(n_members: int) -> int | None:
    """Keys of a lane of a warp that sorts so many series; None where these are too many.

    Others ask here, and keep no `KEYS` of their own: tests have none, so that all lines are wide.
    """
    return next((keys for keys in KEYS if 32 * keys >= n_members), None)


def scan_kernel(
    n_members: int, n_classes: int, most_shared: int = MOST_SHARED
) -> ScanKernel | None:
    """The instance for so many series and classes; None where there is none."""
    keys = keys_of_lane(n_members)
    if keys is not None:
        beside = 32 if keys <= 8 else 16 if keys <= 16 else 8
        # scores of candidates, labels, keys in order, numbers of classes of each lane
        shared = 4 * ((beside + 2) * n_members + 8 * 32 * keys) + 2 * 8 * 32 * n_classes
        if shared <= most_shared:
            table = 4 * n_members * n_classes
            tabled = table <= MOST_TABLE and shared + table <= most_shared
            shared += table if tabled else 0
            name = f"scan<{keys}>"
            return ScanKernel("shapelets/order_lines.cu", name, keys, shared, beside, tabled)
    if n_members > MOST_MEMBERS or n_classes > most_classes(n_members, most_shared):
        return None
    padded = padded_members(n_members)
    return ScanKernel(
        "shapelets/wide_lines.cu", "scan_wide", padded, 4 * padded + 2 * WIDE_THREADS * n_classes
    )


def sorted_bytes(n_members: int, n_classes: int) -> int:
    """Shared memory of a block that sorts the certified distances of a candidate."""
    # distances, sums and labels; counters of classes, of each lane of a warp or of all
    counters = 32 * n_classes if n_classes <= CUT_TOGETHER else n_classes
    return 20 * padded_members(n_members) + 4 * counters


def most_classes(n_members: int, most_shared: int = MOST_SHARED) -> int:
    """Classes that a block has room for beside so many series."""
    return min(
        2**LABEL_BITS - 1, (most_shared - 4 * padded_members(n_members)) // (2 * WIDE_THREADS)
    )


def padded_members(n_members: int) -> int:
    """Keys that a block sorts."""
    return 1 << max(0, n_members - 1).bit_length()


def kernels() -> dict[str, list[str]]:
    """Names of all instances by file."""
    return {
        "shapelets/shapelets.cu": [
            *("prepare", "doubts", "edges", "nearest"),
            *(walk.name for walk in WALKS),
        ],
        "shapelets/order_lines.cu": [
            "weed",
            "cuts",
            "sort_and_cut",
            "digest",
            "compare",
            *(f"scan<{keys}>" for keys in KEYS),
        ],
        "shapelets/wide_lines.cu": ["scan_wide"],
    }
