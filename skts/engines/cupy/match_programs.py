"""The CUDA programs of best matches: launch shapes, memory. Imports nothing of CUDA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = [
    "MEASURED_TOGETHER",
    "QUERY",
    "THREADS",
    "Part",
    "all_match_kernels",
    "match_bytes",
    "plan",
    "runs",
    "split",
]

#: Threads of a block of `sift`, windows of each, and points of a tile beside these, as the kernel
#: has them.
THREADS, WINDOWS, SPARE = 128, 9, 512
#: Queries that a block of `sift` takes: few, and from so many blocks on, more.
FEW, MANY_BLOCKS, MANY = 2, 2**13, 16
#: Queries that a block of `match` takes together, where all windows are measured.
MEASURED_TOGETHER = 4
#: Segments (a query and the windows of a series that are in one block) of a part of the queries.
SEGMENTS = 2**18
#: A query as `Query` of ``matches.cu``.
QUERY = np.dtype(
    [
        ("begin", "i8"),
        ("place", "i8"),
        *((name, "i4") for name in ("length", "channel", "row", "unused")),
    ]
)


class Part(NamedTuple):
    """Queries that are sifted in one launch.

    Attributes
    ----------
    first, stop : int
        The queries.
    capacity : int
        Windows that there is room to list.
    first_unit, n_units : int
        What blocks take: one unit and some of the series.
    blocks : int
        Blocks of a unit, at most.
    """

    first: int
    stop: int
    capacity: int
    first_unit: int
    n_units: int
    blocks: int


def blocks_of(lengths: np.ndarray, n_columns: int, width: int) -> np.ndarray:
    """Blocks for a query of each of some lengths: see `pieces_of_block` of ``matches.cu``."""
    pieces = np.maximum(1, (width - lengths + WINDOWS) // WINDOWS)
    most = SPARE // WINDOWS - 2
    whole = np.minimum(THREADS // pieces, most) * pieces
    full = (whole * 5 >= (whole + 31) // 32 * 128) | (pieces * most < THREADS)
    return -(-n_columns * pieces // np.where(full & (whole > 0), whole, THREADS))


def room(n_segments: int) -> int:
    """Windows that are listed at most; what goes beyond is measured window by window."""
    return 2 * n_segments + 4096


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


def plan(table: np.ndarray, n_columns: int, width: int) -> tuple[list[Part], np.ndarray]:
    """Launches of `sift` for queries in order, and the units (first query, how many) of them."""
    blocks = blocks_of(table["length"], n_columns, width)
    ends = np.cumsum(n_columns + blocks)
    parts, units, n_units, first = [], [], 0, 0
    while first < len(table):
        before = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + SEGMENTS, "right")))
        own = blocks[first:stop]
        some = split(runs(table[first:stop]), MANY if own.sum() >= FEW * MANY_BLOCKS else FEW)
        capacity = room(int(ends[stop - 1] - before))
        parts.append(Part(first, stop, capacity, n_units, len(some), int(own.max())))
        units.append(some)
        n_units += len(some)
        first = stop
    return parts, np.concatenate(units)


def runs(table: np.ndarray) -> np.ndarray:
    """Runs of one length and channel: (first, how many)."""
    new = np.ones(len(table), bool)
    new[1:] = (np.diff(table["length"]) != 0) | (np.diff(table["channel"]) != 0)
    first = np.flatnonzero(new)
    return np.stack([first, np.diff(np.append(first, len(table)))], axis=1)


def split(some_runs: np.ndarray, most: int) -> np.ndarray:
    """Cut runs into pieces of so many at most, as the kernels take them."""
    first, size = some_runs.T
    count = -(-size // most)
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    begin = np.repeat(first, count) + most * within
    many = np.minimum(most, np.repeat(first + size, count) - begin)
    return np.stack([begin, many], axis=1).astype(np.int32)


def all_match_kernels() -> list[str]:
    """Names of all functions of ``matches.cu``."""
    plain = ["survey", "normalize", "sift", "certify", "first"]
    return [*plain, "match<1>", f"match<{MEASURED_TOGETHER}>"]
