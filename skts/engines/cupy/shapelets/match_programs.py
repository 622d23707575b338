"""The CUDA programs of best matches: launch shapes, memory. Imports nothing of CUDA."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...core.constants import MATCH_SERIES, MATCH_THREADS, MATCH_WINDOWS

__all__ = [
    "DOUBLES",
    "MEASURED_TOGETHER",
    "QUERY",
    "SIFT_TO_COMPILE",
    "QueryPart",
    "match_bytes",
    "plan",
    "runs",
    "split",
    "kernels",
]

#: Queries that a block of `sift` takes: few, and from so many blocks on, more.
FEW, MANY_BLOCKS, MANY = 2, 2**13, 16
#: Queries that a block of `match` takes together, where all windows are measured.
MEASURED_TOGETHER = 4
#: CPU seconds that compiling `sift` takes, and what follows it; and cells of other kernels that a
#: point of a window takes where all are measured, in float64.
SIFT_TO_COMPILE, DOUBLES = 1.8, 4
#: Segments (a query and the windows of a series that are in one block) of a part of the queries.
SEGMENTS = 2**22
#: A query as `Query` of ``matches.cuh``.
QUERY = np.dtype(
    [
        ("begin", "i8"),
        ("place", "i8"),
        *((name, "i4") for name in ("length", "channel", "row", "unused")),
    ]
)


class QueryPart(NamedTuple):
    """Queries that are sifted in one launch.

    Attributes
    ----------
    first, stop : int
        The queries.
    capacity : int
        Windows that there is room to list.
    n_units : int
        What blocks take: one unit and some of the series.
    blocks : int
        Blocks of a unit, at most.
    """

    first: int
    stop: int
    capacity: int
    n_units: int
    blocks: int


def blocks_of(lengths: np.ndarray, n_columns: int, width: int) -> np.ndarray:
    """Blocks for a query of each of some lengths: see `pieces_of_block` of ``sift.cuh``."""
    pieces = np.maximum(1, (width - lengths + MATCH_WINDOWS) // MATCH_WINDOWS)
    most = MATCH_SERIES - 2
    whole = np.minimum(MATCH_THREADS // pieces, most) * pieces
    full = (whole * 5 >= (whole + 31) // 32 * 128) | (pieces * most < MATCH_THREADS)
    return -(-n_columns * pieces // np.where(full & (whole > 0), whole, MATCH_THREADS))


def room(n_segments: int) -> int:
    """Windows that are listed at most; what goes beyond is measured window by window."""
    return n_segments * 3 // 2 + 1024


def match_bytes(
    n_queries: int, shortest: int, longest: int, n_columns: int, n_channels: int, width: int
) -> int:
    """Bytes for queries in series, beside these and the answer.

    Points and sums of the series, normalised queries and a table of them, and lists.
    """
    of_query = n_columns + int(blocks_of(np.array([shortest]), n_columns, width)[0])
    total = min(of_query * n_queries, SEGMENTS + of_query)
    lists = 24 * room(total) + 9 * min(total, n_queries * n_columns)
    queries = (8 * longest + 64) * n_queries
    return n_columns * n_channels * 48 * (width + 2) + lists + queries


def plan(
    lengths: np.ndarray, channels: np.ndarray, n_columns: int, width: int
) -> tuple[list[QueryPart], list[np.ndarray]]:
    """Launches of `sift` for queries in the order of lengths and channels, and their units.

    Units (first query, how many) count from the first query of a part.
    """
    begin, size = runs(lengths, channels)
    blocks = blocks_of(lengths[begin], n_columns, width)
    stops = _stops(np.repeat(n_columns + blocks, size))
    if len(stops) == 1:
        part, some = _part(0, begin, size, blocks, n_columns)
        return [part], [some]
    parts, units = [], []
    for first, stop in pairwise((0, *stops)):
        begin, size = runs(lengths[first:stop], channels[first:stop])
        blocks = blocks_of(lengths[first:stop][begin], n_columns, width)
        part, some = _part(first, begin, size, blocks, n_columns)
        parts.append(part)
        units.append(some)
    return parts, units


def _stops(segments: np.ndarray) -> list[int]:
    """Where parts end, of queries with so many segments."""
    ends = np.cumsum(segments)
    stops = [0]
    while stops[-1] < len(ends):
        before = int(ends[stops[-1] - 1]) if stops[-1] else 0
        stop = int(np.searchsorted(ends, before + SEGMENTS, "right"))
        stops.append(max(stop, stops[-1] + 1))
    return stops[1:]


def _part(
    first: int, begin: np.ndarray, size: np.ndarray, blocks: np.ndarray, n_columns: int
) -> tuple[QueryPart, np.ndarray]:
    """A part, from its runs and the blocks of a query of each, and its units."""
    n_queries, n_blocks = int(size.sum()), int(size @ blocks)
    units = split(begin, size, MANY if n_blocks >= FEW * MANY_BLOCKS else FEW)
    capacity = room(n_queries * n_columns + n_blocks)
    return QueryPart(first, first + n_queries, capacity, len(units), int(blocks.max())), units


def runs(lengths: np.ndarray, channels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where runs of one length and channel begin, and how many queries they have."""
    new = np.empty(len(lengths), bool)
    new[0] = True
    np.not_equal(lengths[1:], lengths[:-1], out=new[1:])
    new[1:] |= channels[1:] != channels[:-1]
    begin = np.flatnonzero(new)
    size = np.empty_like(begin)
    size[:-1] = begin[1:] - begin[:-1]
    size[-1] = len(lengths) - begin[-1]
    return begin, size


def split(begin: np.ndarray, size: np.ndarray, most: int) -> np.ndarray:
    """Cut runs into units (first query, how many) of so many at most."""
    count = -(-size // most)
    ends = np.cumsum(count)
    units = np.empty((ends[-1], 2), np.int32)
    within = most * (np.arange(ends[-1]) - np.repeat(ends - count, count))
    units[:, 0] = np.repeat(begin, count) + within
    units[:, 1] = np.minimum(most, np.repeat(size, count) - within)
    return units


def kernels() -> dict[str, list[str]]:
    """List the functions of ``matches.cu``, for the compile check."""
    plain = ["survey", "normalize", "sift", "certify", "first"]
    return {"shapelets/matches.cu": [*plain, "match<1>", f"match<{MEASURED_TOGETHER}>"]}
