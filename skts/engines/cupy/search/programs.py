"""The CUDA programs of subsequence search: which instances there are. Imports nothing of CUDA."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

from ...families.elastic.warping import Warping
from ..elastic.cells import cell_of

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
    cell : str
        What steps cost, see `cell_of`.
    group : int
        Lanes of a window, G; chosen at the launch.
    rows : int
        Rows that a lane works on at once, P.
    """

    columns: int
    blocks: int
    cell: str
    group: int
    rows: int

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        return f"warp_windows<{self.columns}, {self.blocks}, {self.rows}, {self.cell}>"

    @property
    def width(self) -> int:
        """Columns of all lanes."""
        return self.columns * self.group


def choose_warp(length: int, cell: str) -> WarpKernel | None:
    """Choose an instance for a query of so many points, None where it is too long for registers.

    Parameters
    ----------
    length : int
        Points of the query.
    cell : str
        What steps cost.

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
    return _instance(max(2, columns), cell, group)


def _instance(columns: int, cell: str, group: int) -> WarpKernel:
    """The blocks and rows in flight that are fastest on an H200 for so many columns."""
    blocks = 4 if columns <= 24 else 3 if columns <= 48 else 2
    return WarpKernel(columns, blocks, cell, group, rows=4 if columns <= 48 else 2)


def kernels() -> dict[str, list[str]]:
    """Names of all instances by file; of the widths, compiled when first needed, some."""
    names = {
        _instance(columns, cell_of(Warping(metric=metric, cost=cost)), 32).name
        for columns in (2, 24, 32, 45, 64)
        for metric, cost in product(("dtw", "dog_keeper"), ("squared", "absolute"))
        if columns == 24 or (metric, cost) == ("dtw", "squared")
    }
    return {"search/search.cu": list(SUBSEQUENCE_KERNELS), "search/search_warp.cu": sorted(names)}
