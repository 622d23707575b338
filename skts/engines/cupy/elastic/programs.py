"""The CUDA programs of dynamic time warping: which instances there are, and which suits a work.

Imports nothing of CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeVar

from ...families.elastic.distances import DISTANCES, Stepped
from ...families.elastic.warping import Warping
from .cells import ANY_CELL, WINDOWS, Policy, cell_of, policy_of

__all__ = [
    "CHOICES",
    "SEARCH_KERNELS",
    "BandKernel",
    "DTWKernel",
    "NarrowKernel",
    "certifying_cell",
    "kernels",
    "cheapest_shape",
    "choose_dtw",
    "choose_narrow",
    "choose_side",
    "choose_slow",
    "rows_in_flight",
]

#: Lanes that keep a large GPU busy.
LANES_IN_FLIGHT = 2**15
#: Choices of kernels that are remembered: a search of some milliseconds makes hundreds.
CHOICES = 1024
#: Columns of a lane in the instance that small work has in common.
SLOW_COLUMNS = 8
#: Kernels of ``shortlist.cu``.
SEARCH_KERNELS = ("rescale", "shortlist<float>", "shortlist<double>")


def certifying_cell(warping: Warping) -> str:
    """Name the policy of the kernels that certify: one instance serves all options of `Warping`."""
    return ANY_CELL if type(warping) is Warping else policy_of(warping).certifying


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
    strips : bool
        Whether the column series goes in strips.
    cell : str
        What steps cost, see `cell_of`.
    band : bool
        Whether cells outside a band are masked.
    sub : bool
        Whether the row series is matched to a part of the column series.
    group : int
        Lanes of a pair, G; chosen at the launch.
    """

    type: str
    columns: int
    channels: int
    strips: bool
    cell: str
    band: bool
    sub: bool
    group: int

    file: str = "elastic/dtw.cu"
    pairs: int = 1

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        strips, band, sub = (str(flag).lower() for flag in (self.strips, self.band, self.sub))
        shape = f"{self.columns}, {self.channels}, {rows_in_flight(self.columns)}, {strips}"
        return f"dtw<{self.type}, {shape}, {self.cell}, {band}, {sub}>"

    @property
    def width(self) -> int:
        """Columns of a strip."""
        return self.columns * self.group


class BandKernel(NamedTuple):
    """An instance of the kernel of ``band.cu``, whose lanes own offsets from the diagonal.

    Attributes
    ----------
    type : {"float", "double"}
        Type of all values.
    columns : int
        Offsets of a lane, K.
    channels : int
        Channels, C.
    cell : str
        What steps cost, see `cell_of`.
    group : int
        Lanes of two interleaved pairs, G; chosen at the launch.
    """

    type: str
    columns: int
    channels: int
    cell: str
    group: int

    file: str = "elastic/band.cu"
    pairs: int = 2
    strips: bool = False

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        return f"band<{self.type}, {self.columns}, {self.channels}, {self.cell}>"


class NarrowKernel(NamedTuple):
    """An instance of the kernel of ``narrow.cu``, whose threads own whole bands.

    Attributes
    ----------
    type : {"float", "double"}
        Type of all values.
    offsets : int
        Offsets of a thread, K.
    channels : int
        Channels, C.
    cell : str
        What steps cost, see `cell_of`.
    """

    type: str
    offsets: int
    channels: int
    cell: str

    file: str = "elastic/narrow.cu"

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        return f"narrow<{self.type}, {self.offsets}, {self.channels}, {self.cell}>"


#: A kernel that `choose_side` may choose.
AnyKernel = TypeVar("AnyKernel", bound=DTWKernel | BandKernel)


def column_counts(type: str, channels: int) -> list[int]:
    """Columns per lane that are compiled: multiples of 4 that leave every lane its registers."""
    words = 1 if type == "float" else 2
    most = max(4, 128 // (words * (channels + 1)) // 4 * 4)
    return list(range(4, most + 1, 4))


def offset_counts(type: str, channels: int) -> list[int]:
    """Offsets per lane that are compiled: every lane holds those of two pairs."""
    words = 1 if type == "float" else 2
    most = max(2, min(16, 96 // (2 * words * (channels + 2)) // 2 * 2))
    return list(range(2, most + 1, 2))


def narrow_counts(type: str, channels: int) -> list[int]:
    """Offsets of a thread that are compiled: those of a band, or 2, 4 or 6 more.

    Beyond 77 (float, one channel) some points are kept in memory, which still is twice as
    fast as other kernels up to 133.
    """
    words = 1 if type == "float" else 2
    return list(range(5, 270 // (words * (channels + 1)) + 1, 8))


def choose_narrow(
    type: str, channels: int, n: int, m: int, warping: Warping
) -> NarrowKernel | None:
    """Choose an instance for rows of n and columns of m points, None where another kernel is due.

    Parameters
    ----------
    type : {"float", "double"}
        Type of all values.
    channels, n, m : int
        Channels, and points of every row and column series.
    warping : Warping
        Options of the distance.

    Returns
    -------
    NarrowKernel or None
        The instance; None without a band, and where the band is as wide as the matrix or too
        wide for a thread.
    """
    offsets = 2 * int(warping.radius(n, m)) + 1
    fitting = [k for k in narrow_counts(type, channels) if k >= offsets]
    if warping.window is None or not fitting or offsets > 1.5 * max(n, m):
        return None
    return NarrowKernel(type, fitting[0], channels, cell_of(warping, type))


def rows_in_flight(columns: int) -> int:
    """Rows that a lane works on at once: with few columns a second one only adds to the skew."""
    return 1 if columns <= 16 else 2


def cheapest_shape(
    counts: list[int],
    m: int,
    n_items: int,
    steps: Callable[[int, int], int],
    *,
    more: float = 0.0,
) -> tuple[tuple[int, int], float]:
    """Choose lanes of an item and columns of a lane for a wavefront over m columns.

    An item costs (lanes) x (rows, with those of the skew) x (columns + overhead of a row).
    Overheads are in cells and fit what an H200 does: 3 for shuffle, loop and addresses, up to 8
    more in small groups, whose lanes read many lines of memory at once; the most columns leave too
    few warps, and the edges of strips cost a twelfth.

    Parameters
    ----------
    counts : list of int
        Columns of a lane that are compiled.
    m, n_items : int
        Columns of an item, and items of a launch.
    steps : callable
        Rows, with those of the skew, by lanes and columns.
    more : float, default 0
        How much slower cells are than those of a plain wavefront.

    Returns
    -------
    shape : (int, int)
        Lanes and columns.
    price : float
        What an item costs, on the lanes that work on it at a time.
    """

    def price(shape: tuple[int, int]) -> float:
        group, columns = shape
        strips = -(-m // (group * columns))
        slower = 1 + 0.12 * (columns > 48) + 0.08 * (strips > 1) + more
        lanes = lanes_taken(group, n_items)
        return strips * lanes * steps(group, columns) * (columns + 3 + 8 / group) * slower

    shapes = [(32, k) for k in counts if k <= 48 or 32 * k >= m]
    shapes += [(g, k) for g in (1, 2, 4, 8, 16) for k in counts if g * k >= m]
    best = min(shapes, key=price)
    return best, price(best)


def lanes_taken(group: int, n_items: int) -> float:
    """Lanes that an item of `group` lanes keeps from others; the fewer items, the more are idle."""
    return group / min(1.0, n_items * group / LANES_IN_FLIGHT)


@lru_cache(CHOICES)
def choose_dtw(
    type: str,
    channels: int,
    n: int,
    m: int,
    warping: Warping,
    reach: int,
    n_pairs: int = 2**31,
) -> tuple[DTWKernel | BandKernel, float]:
    """Choose kernel, columns per lane and lanes per pair for n rows and m columns.

    Prices are those of `cheapest_shape`. Masks of a band double the price of a cell. Pairs too few
    to fill the device are given more lanes.

    Parameters
    ----------
    type : {"float", "double"}
        Type of all values.
    channels, n, m : int
        Channels, and points of the longest row and column series.
    warping : Warping
        Options of the distance; no "supersequence", which is a subsequence of swapped sides.
    reach : int
        Half width of the widest band.
    n_pairs : int, default 2**31
        Pairs of a launch.

    Returns
    -------
    kernel : DTWKernel or BandKernel
        The cheapest.
    price : float
        What a pair costs, on the lanes that work on it at a time.
    """
    counts = column_counts(type, channels)
    plain, price = _choose_plain(counts, type, channels, n, m, warping, reach, n_pairs)

    def band_price(shape: tuple[int, int]) -> float:
        group, offsets = shape
        cells = 1.4 * offsets + 6 + 8 / group
        return lanes_taken(group, n_pairs) * (n + offsets + group / 2) * cells

    narrow = [
        (g, k)
        for g in (1, 2, 4, 8, 16, 32)
        for k in offset_counts(type, channels)
        if plain.band and g * k > 2 * reach and policy_of(warping).in_bands
    ]
    if narrow:
        lanes, offsets = least = min(narrow, key=band_price)
        if band_price(least) < price:
            return BandKernel(type, offsets, channels, plain.cell, lanes), band_price(least)
    return plain, price


@lru_cache(CHOICES)
def choose_slow(
    type: str,
    channels: int,
    n: int,
    m: int,
    warping: Warping,
    reach: int,
    n_pairs: int,
) -> tuple[DTWKernel, float]:
    """Choose lanes per pair of the instance that small work of all lengths has in common.

    It is compiled in a fifth of a second, the widest of the others in five. Parameters and prices
    are those of `choose_dtw`.
    """
    counts = [min(SLOW_COLUMNS, *column_counts(type, channels)[-1:])]
    return _choose_plain(counts, type, channels, n, m, warping, reach, n_pairs)


def _choose_plain(
    counts: list[int],
    type: str,
    channels: int,
    n: int,
    m: int,
    warping: Warping,
    reach: int,
    n_pairs: int,
) -> tuple[DTWKernel, float]:
    """Choose an instance of ``dtw.cu`` with so many columns; as `choose_dtw` otherwise."""
    # not by `reach`: a pair of a long and a short series has a band wider than any matrix, beside
    # which those of equal lengths are narrow
    band = warping.binds(max(n, m))

    def steps(group: int, columns: int) -> int:
        rows = min(n, group * columns + 2 * reach) if band else n
        return rows + rows_in_flight(columns) * (group - 1)

    (group, columns), price = cheapest_shape(counts, m, n_pairs, steps, more=0.9 * band)
    sub = warping.alignment == "subsequence"
    strips = group * columns < m
    cell = cell_of(warping, type)
    kernel = DTWKernel(type, columns, channels, strips, cell, band, sub, group)
    return kernel, price


def choose_side(
    choose: Callable[..., tuple[AnyKernel, float]],
    type: str,
    channels: int,
    n: int,
    m: int,
    warping: Warping,
    reach: int,
    n_pairs: int,
) -> tuple[AnyKernel, bool, float]:
    """Choose a kernel by `choose_dtw` or `choose_slow`, and whether to swap the sides for it.

    Either side may lie in the registers, as long series against short ones show.

    Returns
    -------
    kernel : DTWKernel or BandKernel
        The instance.
    swap : bool
        Whether the rows lie in registers; never where a part of the columns is matched.
    price : float
        What a pair costs.
    """
    kernel, price = choose(type, channels, n, m, warping, reach, n_pairs)
    if warping.alignment == "global":
        other, other_price = choose(type, channels, m, n, warping.flipped, reach, n_pairs)
        if other_price < 0.9 * price:
            return other, True, other_price
    return kernel, False, price


def stepped_policies() -> list[Policy]:
    """List a policy for each class of them that is not one of `Warping`."""
    found: dict[str, Policy] = {}
    for distance in DISTANCES.values():
        if not issubclass(distance, Stepped):
            continue
        known = {each.name for each in fields(distance)}
        some = {"longest": 8, "epsilon": 1.0}
        given = {name: value for name, value in some.items() if name in known}
        for cost, own in product(distance.costs, (False, True)):
            policy = policy_of(distance(cost=cost, own=own, **given))  # type: ignore[arg-type]
            found[policy.name] = policy
    return list(found.values())


def kernels() -> dict[str, list[str]]:
    """List the kernels of each source file, for the compile check.

    Of the many instances of ``dtw.cu``, which are compiled when they are first needed, all widths
    with the default options, and all options with two widths; of ``narrow.cu`` some widths. Of each
    policy whose steps cost differently, one plain instance, and two in strips and bands.
    """
    stepped = stepped_policies()
    names: dict[str, set[str]] = {
        "elastic/dtw.cu": set(),
        "elastic/band.cu": set(),
        "elastic/narrow.cu": set(),
    }
    cells = [
        cell_of(Warping(metric=metric, cost=cost))
        for metric, cost in product(("dtw", "dog_keeper"), ("squared", "absolute"))
    ]
    for type, channels in product(("float", "double"), (1, 3)):
        for columns in column_counts(type, channels):
            every = columns in (8, 20) and channels == 1
            for strips, cell in product((False, True), cells if every else cells[:1]):
                for band, sub in ((False, False), (True, False), (False, True))[
                    : 3 if every else 1
                ]:
                    kernel = DTWKernel(type, columns, channels, strips, cell, band, sub, 32)
                    if columns <= 48 or not strips:
                        names["elastic/dtw.cu"].add(kernel.name)
        for offsets in offset_counts(type, channels):
            for cell in cells if offsets == 4 else cells[:1]:
                names["elastic/band.cu"].add(BandKernel(type, offsets, channels, cell, 32).name)
        for policy in stepped if (type, channels) != ("float", 3) else ():
            bands = type == "double"
            kernel = DTWKernel(type, 8, channels, bands, policy.of(type), bands, False, 32)
            names["elastic/dtw.cu"].add(kernel.name)
            if channels == 1:
                names["elastic/narrow.cu"].add(NarrowKernel(type, 5, 1, policy.of(type)).name)
        counts = narrow_counts(type, channels)
        for offsets in {*counts[::4], counts[-1]}:
            for cell in cells if offsets == 5 else cells[:1]:
                names["elastic/narrow.cu"].add(NarrowKernel(type, offsets, channels, cell).name)
    certifying = [ANY_CELL, *sorted(policy.certifying for policy in stepped)]
    bordered = sorted(policy.certifying for policy in stepped if policy.borders)
    fixed = {
        "elastic/certify.cu": [f"certify<{cell}>" for cell in certifying],
        "elastic/shortlist.cu": list(SEARCH_KERNELS),
        "elastic/radius.cu": ["within<float>", "within<double>"],
        "elastic/path.cu": [
            *(f"strip<{cell}>" for cell in [*certifying, WINDOWS]),
            *(f"borders<{cell}>" for cell in bordered),
            "walk",
        ],
    }
    return fixed | {file: sorted(found) for file, found in names.items()}
