"""Which lengths are searched together: see ``lengths.py``. Imports nothing of CUDA."""

from __future__ import annotations

from bisect import bisect_left, insort
from math import log2

import numpy as np

from ...core.reduction import Tile
from ...families.profile.join import Join

__all__ = ["GroupSizes", "bytes_of_lengths", "joins_lengths"]

#: Windows from which on lengths are searched together: a walk of fewer takes no longer than what
#: has to be done at each length.
LEAST_WINDOWS = 2**16
#: Most lengths of a group, and by which share, and how many points, the last may be longer than the
#: first, where nothing else is known.
MOST_TOGETHER, SHARE, POINTS = 16, 0.02, 16.0
#: Most times more points than that.
MOST_FACTOR = 4.0
#: Pairs of a window to score, on the average, above which groups become smaller, and below which
#: they become larger.
MANY, FEW = 80.0, 5.0
#: Bytes of each window at a time: those of the lists, and pairs with bounds at all lengths.
WINDOW_BYTES = 24 * 2 * 16 + 96 * (24 + 8 * MOST_TOGETHER) + 120 * MOST_TOGETHER


class GroupSizes:
    """How many lengths of a line are searched together, by how many pairs that left to score.

    Attributes
    ----------
    failed : set of tuple of int
        Groups of lengths that are searched one by one.
    """

    def __init__(self) -> None:
        self.failed: set[tuple[int, ...]] = set()
        # for lengths that are alike: how many times more than where nothing is known, and at most
        self._factors: dict[int, tuple[float, float]] = {}
        self._known: list[int] = []

    def group(self, lengths: np.ndarray, at: int) -> tuple[int, int]:
        """Return the first and the last, exclusive, of the lengths to search with that at `at`."""
        size = MOST_TOGETHER
        while size > 1:
            first = at // size * size
            stop = min(first + size, lengths.size)
            shortest = int(lengths[first])
            more = int(lengths[stop - 1]) - shortest
            # see "correlations of several lengths" in docs/developer/numerics.rst
            most = min(self.factor(shortest) * min(POINTS, SHARE * shortest), shortest)
            if more <= most:
                return first, stop
            size //= 2
        return at, at + 1

    def factor(self, length: int) -> float:
        """How many times more points longer the last of a group may be than at first."""
        return self._factors.get(_kind(length), (1.0, MOST_FACTOR))[0]

    def learn(self, length: int, pairs: float) -> None:
        """Take notice of how many pairs of each window a group left to score."""
        factor, most = self._factors.get(_kind(length), (1.0, MOST_FACTOR))
        if pairs > MANY:
            factor = most = max(factor / 2, 1 / 16)
        elif 0 < pairs < FEW:
            factor = min(factor * 2, most)
        self._factors[_kind(length)] = factor, most

    def add(self, length: int) -> None:
        """Take notice that neighbours of a length are known."""
        if length not in self._known:
            insort(self._known, length)

    def near(self, first: int, last: int) -> list[int]:
        """Lengths, at most one below and one above some, whose neighbours are known and near."""
        reach = max(3 * (last - first), 1)
        at = bisect_left(self._known, first)
        around = self._known[max(0, at - 1) : at] + self._known[at : at + 1]
        return [one for one in around if first - reach <= one <= last + reach]


def _kind(length: int) -> int:
    """Number of lengths that are alike: there are two kinds between powers of two."""
    return int(2 * log2(length))


def bytes_of_lengths(join: Join, rows: int, capacity: int) -> int:
    """Bytes on the device for a group of lengths of a join; 0 where each is searched alone."""
    lengths, n_windows = join.lengths, join.shape[0]
    apt = (
        lengths is not None
        and type(join) is Join
        and rows == n_windows >= LEAST_WINDOWS
        and join.within
        and join.normalize
        and join.precision == "auto"
        and join.n_neighbors == 1
        and not join.sides
        and join.excluded is None
        and join.since == 0
        and join.needed is None
    )
    size = n_windows * WINDOW_BYTES
    return size if apt and size <= capacity // 2 else 0


def joins_lengths(join: Join, tile: Tile, capacity: int) -> bool:
    """Whether lengths are searched together: of all windows at once, where there is room."""
    return tile.shape == join.shape and bytes_of_lengths(join, tile.shape[0], capacity) > 0
