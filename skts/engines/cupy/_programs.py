"""The CUDA programs of this engine: sources, options, and which instances there are.

Imports nothing of CUDA, so that `compile` checks every kernel on a machine without a GPU.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

__all__ = ["KERNELS", "OPTIONS", "SEARCH_KERNELS", "DTWKernel", "source"]

#: Folder of the sources.
KERNELS = files(__package__) / "kernels"
#: Compiler options of every program. No fast-math: infinities are used, denormals kept.
OPTIONS = ("-std=c++17", f"-I{KERNELS}")
#: Kernels of ``shortlist.cu``.
SEARCH_KERNELS = ("rescale", "shortlist<float>", "shortlist<double>")


def source(name: str) -> str:
    """Return the text of a source file."""
    return (KERNELS / name).read_text()


class DTWKernel(NamedTuple):
    """An instance of the kernel of ``dtw.cu`` and its launch shape.

    Attributes
    ----------
    type : {"float", "double"}
        Type of all values.
    columns : int
        Columns of a lane, K.
    channels : int
        Channels, C.
    rows : int
        Rows in flight in a lane.
    strips : bool
        Whether the column series goes in strips.
    group : int
        Lanes of a pair, G; chosen at the launch.
    """

    type: str
    columns: int
    channels: int
    rows: int
    strips: bool
    group: int

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        strips = "true" if self.strips else "false"
        return f"dtw<{self.type}, {self.columns}, {self.channels}, {self.rows}, {strips}>"

    @property
    def width(self) -> int:
        """Columns of a strip."""
        return self.columns * self.group


def column_counts(type: str, channels: int) -> list[int]:
    """Columns per lane that are compiled: multiples of 4 that leave every lane its registers."""
    words = 1 if type == "float" else 2
    most = max(4, 128 // (words * (channels + 1)) // 4 * 4)
    return list(range(4, most + 1, 4))


def rows_in_flight(columns: int) -> int:
    """Rows that a lane works on at once: with few columns a second one only adds to the skew."""
    return 1 if columns <= 16 else 2


def choose_dtw(type: str, channels: int, n: int, m: int) -> DTWKernel:
    """Choose columns per lane and lanes per pair for n rows and m columns.

    A pair costs (lanes) x (rows, with those of the skew) x (columns + overhead of a row). Overheads
    are in cells and fit what an H200 does: 3 for shuffle, loop and addresses, up to 8 more in small
    groups, whose lanes read many lines of memory at once; the most columns leave too few warps, and
    the edges of strips cost a twelfth.
    """

    def cost(group: int, columns: int) -> float:
        strips = -(-m // (group * columns))
        slower = 1 + 0.12 * (columns > 48) + 0.08 * (strips > 1)
        steps = n + rows_in_flight(columns) * (group - 1)
        return strips * group * steps * (columns + 3 + 8 / group) * slower

    counts = column_counts(type, channels)
    shapes = [(32, k) for k in counts if k <= 48 or 32 * k >= m]
    shapes += [(g, k) for g in (1, 2, 4, 8, 16) for k in counts if g * k >= m]
    group, columns = min(shapes, key=lambda shape: cost(*shape))
    rows = rows_in_flight(columns)
    return DTWKernel(type, columns, channels, rows, group * columns < m, group)


def all_dtw() -> list[DTWKernel]:
    """List the instances for one channel and for three, for the compile check."""
    return [
        DTWKernel(type, columns, channels, rows_in_flight(columns), strips, 32)
        for type in ("float", "double")
        for channels in (1, 3)
        for columns in column_counts(type, channels)
        for strips in (False, True)
        if not strips or columns <= 48
    ]
