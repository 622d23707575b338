"""The CUDA programs of rotation-invariant searches. Imports nothing of CUDA."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ...families.elastic.warping import Warping
from .cells import cell_of
from .programs import CHOICES, cheapest_shape, rows_in_flight

__all__ = ["LIST_KERNELS", "TurnsKernel", "kernels", "choose_turns"]

#: Kernels of ``rotation.cu``.
LIST_KERNELS = (
    "divide",
    "promise",
    "probe",
    "peaks",
    "shifts",
    "straight<Squared>",
    "straight<Absolute>",
)
#: Columns of a lane that are compiled, where registers hold them: few, as every search launches
#: several widths.
COLUMNS = (4, 8, 16, 32, 40, 64)


class TurnsKernel(NamedTuple):
    """An instance of the kernel of ``turns.cu``, in float32, and its launch shape.

    Attributes
    ----------
    columns : int
        Columns of a lane, K.
    channels : int
        Channels, C.
    strips : bool
        Whether the columns go in strips.
    cell : str
        What steps cost, see `cell_of`.
    group : int
        Lanes of an item, G; chosen at the launch.
    """

    columns: int
    channels: int
    strips: bool
    cell: str
    group: int

    type: str = "float"
    pairs: int = 1

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        shape = f"{self.columns}, {self.channels}, {rows_in_flight(self.columns)}"
        return f"turns<{shape}, {str(self.strips).lower()}, {self.cell}>"


def column_counts(channels: int) -> list[int]:
    """Columns of a lane that are compiled for so many channels."""
    return [k for k in COLUMNS if k == COLUMNS[0] or (channels + 1) * k <= 128]


@lru_cache(CHOICES)
def choose_turns(
    channels: int, n: int, length: int, count: int, n_items: int, cell: str
) -> TurnsKernel:
    """Choose columns per lane and lanes per item.

    Parameters
    ----------
    channels, n, length : int
        Channels of a series, and points of the longest query and candidate.
    count : int
        Shifts of an item, at most.
    n_items : int
        Items of a launch.
    cell : str
        What steps cost.

    Returns
    -------
    TurnsKernel
        The cheapest.
    """
    m = length + count - 1

    def steps(group: int, columns: int) -> int:
        # lanes go one by one at the beginning, too
        return n + 2 * rows_in_flight(columns) * (group - 1)

    counts = column_counts(channels)
    (group, columns), _ = cheapest_shape(counts, m, n_items, steps)
    return TurnsKernel(columns, channels, group * columns < m, cell, group)


def kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check: of ``turns.cu`` some widths."""
    names = set()
    for channels, strips in ((1, False), (1, True), (3, False)):
        for columns in column_counts(channels)[1 if channels == 1 else -1 :]:
            others = [Warping(cost="absolute"), Warping("dog_keeper")] if columns == 8 else []
            for warping in (Warping(), *others):
                if columns <= 48 or not strips:
                    cell = cell_of(warping)
                    kernel = TurnsKernel(columns, channels, strips, cell, 32)
                    names.add(kernel.name)
    return {"elastic/turns.cu": sorted(names), "elastic/rotation.cu": list(LIST_KERNELS)}
