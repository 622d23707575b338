"""The CUDA programs of rotation-invariant searches. Imports nothing of CUDA."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

__all__ = ["LIST_KERNELS", "TurnsKernel", "all_rotation_kernels", "choose_turns"]

#: Kernels of ``rotation.cu``.
LIST_KERNELS = (
    "divide",
    "promise",
    "probe",
    "peaks",
    "shifts",
    "straight<true>",
    "straight<false>",
)
#: Columns of a lane that are compiled, where registers hold them: few, as every search launches
#: several widths.
COLUMNS = (4, 8, 16, 32, 40, 64)
#: Lanes that keep a large GPU busy.
LANES_IN_FLIGHT = 2**15


class TurnsKernel(NamedTuple):
    """An instance of the kernel of ``turns.cu`` and its launch shape.

    Attributes
    ----------
    type : {"float", "double"}
        Type of all values.
    columns : int
        Columns of a lane, K.
    channels : int
        Channels, C.
    strips : bool
        Whether the columns go in strips.
    squared : bool
        Whether costs are squared differences, else absolute ones.
    group : int
        Lanes of an item, G; chosen at the launch.
    """

    type: str
    columns: int
    channels: int
    strips: bool
    squared: bool
    group: int

    pairs: ClassVar[int] = 1

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        flags = f"{self.strips}, {self.squared}".lower()
        rows = rows_in_flight(self.columns)
        return f"turns<{self.type}, {self.columns}, {self.channels}, {rows}, {flags}>"


def rows_in_flight(columns: int) -> int:
    """Rows that a lane works on at once, as in ``dtw.cu``."""
    return 1 if columns <= 16 else 2


def column_counts(type: str, channels: int) -> list[int]:
    """Columns of a lane that are compiled for a type and so many channels."""
    words = 1 if type == "float" else 2
    return [k for k in COLUMNS if k == COLUMNS[0] or words * (channels + 1) * k <= 128]


def choose_turns(
    type: str, channels: int, n: int, count: int, n_items: int, *, squared: bool
) -> TurnsKernel:
    """Choose columns per lane and lanes per item.

    Parameters
    ----------
    type : {"float", "double"}
        Type of all values.
    channels, n : int
        Channels and points of a series.
    count : int
        Shifts of an item, at most.
    n_items : int
        Items of a launch.
    squared : bool
        Whether costs are squared differences.

    Returns
    -------
    TurnsKernel
        The cheapest, with prices as those of `choose_dtw`.
    """
    m = n + count - 1

    def price(shape: tuple[int, int]) -> float:
        group, columns = shape
        strips = -(-m // (group * columns))
        slower = 1 + 0.12 * (columns > 48) + 0.08 * (strips > 1)
        steps = n + 2 * rows_in_flight(columns) * (group - 1)
        lanes = group / min(1.0, n_items * group / LANES_IN_FLIGHT)
        return strips * lanes * steps * (columns + 3 + 8 / group) * slower

    counts = column_counts(type, channels)
    shapes = [(32, k) for k in counts if k <= 48 or 32 * k >= m]
    shapes += [(g, k) for g in (1, 2, 4, 8, 16) for k in counts if g * k >= m]
    group, columns = min(shapes, key=price)
    return TurnsKernel(type, columns, channels, group * columns < m, squared, group)


def all_rotation_kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check: of ``turns.cu`` some widths."""
    names = set()
    for type, channels, strips in (
        ("float", 1, False),
        ("float", 1, True),
        ("double", 1, False),
        ("float", 3, False),
    ):
        for columns in column_counts(type, channels)[1 if channels == 1 else -1 :]:
            for squared in (True, False) if columns == 8 else (True,):
                if columns <= 48 or not strips:
                    kernel = TurnsKernel(type, columns, channels, strips, squared, 32)
                    names.add(kernel.name)
    return {"turns.cu": sorted(names), "rotation.cu": list(LIST_KERNELS)}
