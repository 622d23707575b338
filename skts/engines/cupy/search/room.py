"""How much of a tile of subsequence search is on the device at a time."""

from __future__ import annotations

from typing import NamedTuple

from ...families.search.subsequence import SubsequenceNeighbors

__all__ = ["SearchRoom"]

#: Most windows that are on the device at a time: some ten milliseconds of warping.
WINDOWS = 2**20
#: Fewest windows, and most bytes, of rows that are laid out for the kernels of pairs.
ROWS, ROWS_BYTES = 128, 2**29
#: Most bytes for edges of strips.
EDGES_BYTES = 2**27
#: Bytes of a window: two buffers of points, statistics, lists, costs, segments of the line.
WINDOW_BYTES = 104


class SearchRoom(NamedTuple):
    """How much is on the device at a time.

    Attributes
    ----------
    windows : int
        Windows of a part of a tile.
    chunk : int
        Windows that are laid out one after the other.
    edges : int
        Bytes for edges of strips.
    keep : int
        Bytes of points that may stay for the next search.
    """

    windows: int
    chunk: int
    edges: int
    keep: int

    @classmethod
    def of(cls, reduction: SubsequenceNeighbors, cols: int, budget: int) -> SearchRoom:
        """Plan a tile of so many windows: parts as large as the budget allows."""
        least = reduction.cell[1]
        windows = max(least, WINDOWS)
        n_channels = reduction.n_channels

        def held(windows: int) -> int:
            return n_channels * least_bytes(reduction.longest, windows)

        while windows > least and held(min(cols, windows)) > budget:
            windows = max(least, windows // 2)
        windows = min(cols, windows)
        each = n_channels * row_bytes(reduction.longest)
        spare = max(0, budget - held(windows)) // 4
        chunk = ROWS + min(2 * spare, ROWS_BYTES) // each
        edges = edge_bytes(reduction.longest) + min(spare, EDGES_BYTES)
        return cls(windows, chunk, edges, spare)


def row_bytes(length: int) -> int:
    """Bytes of a window that is laid out, and once more transposed for narrow bands."""
    return 16 * length + 1300


def edge_bytes(length: int) -> int:
    """Bytes for the edges of a block, where a query does not fit into registers."""
    return 0 if length <= 1024 else 64 * (length + 128)


def least_bytes(length: int, windows: int) -> int:
    """Bytes of a part of a tile with the fewest rows laid out."""
    segments = 4 * (length + 1036) * (1 + windows // max(1024, length))
    rows = ROWS * row_bytes(length) + 100 * length + 2**17
    return WINDOW_BYTES * windows + segments + rows + edge_bytes(length)
