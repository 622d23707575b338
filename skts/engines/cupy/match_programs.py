"""The CUDA programs of best matches: instances, launch shapes, memory. Imports nothing of CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

__all__ = [
    "MEASURED_TOGETHER",
    "QUERY",
    "SIFTS",
    "THREADS",
    "Launch",
    "Part",
    "Sift",
    "all_match_kernels",
    "match_bytes",
    "plan",
    "runs",
    "split",
]

#: Threads of a block, and points of a tile beside one for each window, as the kernels have them.
THREADS, SPARE = 128, 512
#: Queries that a block of `match` takes together, where all windows are measured.
MEASURED_TOGETHER = 4
#: Segments (a query and the windows of a series that are in one block) of a part of the queries.
SEGMENTS = 2**18
#: Blocks from which on a block of `sift` takes several sets of queries, and how many.
MANY_BLOCKS, SETS = 2**14, 4
#: A query as `Query` of ``matches.cu``.
QUERY = np.dtype(
    [
        ("begin", "i8"),
        ("place", "i8"),
        *((name, "i4") for name in ("length", "channel", "row", "unused")),
    ]
)


class Sift(NamedTuple):
    """An instance of the kernel that lists the windows that could be the best.

    Attributes
    ----------
    queries : int
        Queries of one length that a block takes together.
    windows : int
        Windows of a thread.
    """

    queries: int
    windows: int

    @property
    def name(self) -> str:
        """The C++ name of the instance."""
        return f"sift<{self.queries}, {self.windows}>"

    def blocks(self, lengths: np.ndarray, n_columns: int, width: int) -> np.ndarray:
        """Blocks for a query of each of some lengths: see `pieces_of_block` of ``matches.cu``."""
        pieces = np.maximum(1, (width - lengths + self.windows) // self.windows)
        whole = np.minimum(THREADS // pieces, SPARE // self.windows - 2)
        full = whole * pieces * 5 >= THREADS * 4
        full |= pieces * (SPARE // self.windows - 2) < THREADS
        each = np.where(full, whole * pieces, THREADS)
        return -(-n_columns * pieces // each)


#: The instances, by their queries.
SIFTS = {sift.queries: sift for sift in (Sift(1, 9), Sift(2, 7), Sift(4, 5))}


class Launch(NamedTuple):
    """A launch of `sift`: its instance, where its units are, and blocks of a unit."""

    sift: Sift
    first: int
    count: int
    blocks: int


class Part(NamedTuple):
    """Queries that are sifted together, the room for what is listed, and launches."""

    first: int
    stop: int
    capacity: int
    launches: list[Launch]


def segments(lengths: np.ndarray, n_columns: int, width: int) -> np.ndarray:
    """Segments of a query of each of some lengths, at most."""
    return n_columns + SIFTS[4].blocks(lengths, n_columns, width)


def room(n_segments: int) -> int:
    """Windows that are listed at most; what goes beyond is measured window by window."""
    return 2 * n_segments + 4096


def match_bytes(
    n_queries: int, shortest: int, longest: int, n_columns: int, n_channels: int, width: int
) -> int:
    """Bytes for queries in series, beside these and the answer.

    Points and sums of the series, normalised queries and a table of them, and lists.
    """
    of_query = int(segments(np.array([shortest]), n_columns, width)[0])
    total = min(of_query * n_queries, SEGMENTS + of_query)
    lists = 24 * room(total) + 9 * min(total, n_queries * n_columns)
    queries = (8 * longest + 64) * n_queries
    return n_columns * n_channels * 48 * (width + 2) + lists + queries


def plan(table: np.ndarray, n_columns: int, width: int) -> tuple[list[Part], np.ndarray]:
    """Launches of `sift` for queries in order, and the units of all of them."""
    ends = np.cumsum(segments(table["length"], n_columns, width))
    parts, units, n_units, first = [], [], 0, 0
    while first < len(table):
        before = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + SEGMENTS, "right")))
        own, launches = table[first:stop], []
        for sift, some_runs in _sets(own):
            some = split(some_runs, sift.queries)
            blocks = sift.blocks(own["length"][some[:, 0]], n_columns, width)
            if blocks.sum() >= MANY_BLOCKS:
                some = split(some_runs, SETS * sift.queries)
            launches.append(Launch(sift, n_units, len(some), int(blocks.max())))
            units.append(some)
            n_units += len(some)
        parts.append(Part(first, stop, room(int(ends[stop - 1] - before)), launches))
        first = stop
    return parts, np.concatenate(units)


def _sets(table: np.ndarray) -> Iterator[tuple[Sift, np.ndarray]]:
    """Which of the queries each instance takes: runs (first, how many) of one length and channel.

    As many as there are by fours, where a three is one as well; then what is left.
    """
    first, size = runs(table).T
    rest = np.where(size % 4 == 3, 0, size % 4)
    for queries, some in (
        (4, np.stack([first, size - rest], axis=1)),
        (2, np.stack([first + size - rest, np.where(rest == 2, 2, 0)], axis=1)),
        (1, np.stack([first + size - rest, np.where(rest == 1, 1, 0)], axis=1)),
    ):
        some = some[some[:, 1] > 0]
        if len(some):
            yield SIFTS[queries], some


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
    plain = ["survey", "normalize", "certify", "first"]
    return [*plain, "match<1>", f"match<{MEASURED_TOGETHER}>", *(s.name for s in SIFTS.values())]
