"""The CUDA programs of subsequence search: which instances there are. Imports nothing of CUDA."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

__all__ = ["SUBSEQUENCE_KERNELS", "WarpKernel", "kernels", "choose_warp"]

#: Kernels of ``search.cu``.
SUBSEQUENCE_KERNELS = (
    *("segments", "moments", "bounds", "minima", "choose", "enter"),
    *("rows_float", "rows_double"),
)
#: Most columns of a lane.
MOST_COLUMNS = 64


class WarpKernel(NamedTuple):
    """An instance of the kernel of ``search_warp.cu`` and its launch shape.

    Attributes
    ----------
    columns : int
        Columns of a lane, K.
    blocks : int
        Blocks on a multiprocessor, which bound its registers.
    squared, largest : bool
        Cost and how costs join, as `Warping` has them.
    group : int
        Lanes of a window, G; chosen at the launch.
    rows : int
        Rows that a lane works on at once, P.
    """

    columns: int
    blocks: int
    squared: bool
    largest: bool
    group: int
    rows: int

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        flags = f"{self.squared}, {self.largest}".lower()
        return f"warp_windows<{self.columns}, {self.blocks}, {self.rows}, {flags}>"

    @property
    def width(self) -> int:
        """Columns of all lanes."""
        return self.columns * self.group


def choose_warp(length: int, *, squared: bool, largest: bool) -> WarpKernel | None:
    """Choose an instance for a query of so many points, None where it is too long for registers.

    Parameters
    ----------
    length : int
        Points of the query.
    squared, largest : bool
        Options of the distance.

    Returns
    -------
    WarpKernel or None
        As few lanes as can hold the query: what a step costs beside its cells is then least.
    """
    group = 1
    while group < 32 and -(-length // group) > MOST_COLUMNS:
        group *= 2
    columns = -(-length // group)
    if columns > MOST_COLUMNS:
        return None
    return _instance(max(2, columns), squared, largest, group)


def _instance(columns: int, squared: bool, largest: bool, group: int) -> WarpKernel:
    """The blocks and rows in flight that are fastest on an H200 for so many columns."""
    blocks = 4 if columns <= 24 else 3 if columns <= 48 else 2
    return WarpKernel(columns, blocks, squared, largest, group, rows=4 if columns <= 48 else 2)


def kernels() -> dict[str, list[str]]:
    """Names of all instances by file; of the widths, compiled when first needed, some."""
    names = {
        _instance(columns, squared, largest, 32).name
        for columns in (2, 24, 32, 45, 64)
        for squared, largest in product((True, False), (False, True))
        if columns == 24 or (squared and not largest)
    }
    return {"search/search.cu": list(SUBSEQUENCE_KERNELS), "search/search_warp.cu": sorted(names)}
