"""Best matches of short queries in series, certified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...core.verify import Check, Sample

__all__ = ["LEAST_NORMALIZED", "Matches", "SubsequenceMatches"]

#: Windows of fewer points are compared as they are: normalised they keep little but a sign.
LEAST_NORMALIZED = 3


class Matches(NamedTuple):
    """Best matches of queries in series.

    Attributes
    ----------
    distances : ndarray of shape (n_queries, n_series), float64
        Norm of the difference, not divided by the length; infinite where nothing matches.
    starts : ndarray of shape (n_queries, n_series), int64
        Where the match begins, the first of equals; -1 where nothing matches.
    """

    distances: np.ndarray
    starts: np.ndarray


@dataclass(frozen=True, eq=False)
class SubsequenceMatches(Reduction):
    """The best match of each query among all windows of each series, certified.

    Two constant windows are at 0, a constant and another at sqrt(length); windows that are not
    finite match nothing.

    Parameters
    ----------
    queries : tuple of ndarray of shape (length,), float64
        Queries as they are, of any lengths.
    series : Series
        The series; points that are not finite may be anywhere.
    normalize : bool, default True
        Whether windows and queries are z-normalised.
    channels : ndarray of shape (n_queries,), int64, or None, default None
        The channel in which each query is looked for; None is the first.
    """

    queries: tuple[np.ndarray, ...]
    series: Series
    normalize: bool = True
    channels: np.ndarray | None = None
    method: ClassVar[str] = "subsequence_matches"

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and series."""
        return len(self.queries), len(self.series)

    @property
    def step_work(self) -> int:
        """Points of all windows of a series, for the longest query."""
        return self.series.n_timepoints * max(len(query) for query in self.queries)

    @property
    def cell(self) -> tuple[int, int]:
        """One query in one series."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of distances and starts."""
        return 16 * self.shape[0] * self.shape[1]

    def part(self, tile: Tile) -> SubsequenceMatches:
        """Return some queries in some series."""
        channels = None if self.channels is None else self.channels[tile.rows]
        return SubsequenceMatches(
            self.queries[tile.rows], self.series.take(tile.cols), self.normalize, channels
        )

    def start(self) -> Matches:
        """Return empty matrices."""
        return Matches(np.empty(self.shape), np.empty(self.shape, np.int64))

    def merge(self, total: Matches, tile: Tile, result: Matches) -> None:
        """Write a block."""
        total.distances[tile.rows, tile.cols] = result.distances
        total.starts[tile.rows, tile.cols] = result.starts

    def verify(self, answer: Matches, sample: Sample) -> Iterator[Check]:
        """Compare some matches."""
        from ...host import plain

        for place in sample(answer.distances.size):
            row, col = divmod(place, len(self.series))
            channel = 0 if self.channels is None else int(self.channels[row])
            points = self.series.values[col, channel, : self.series.lengths[col]]
            expected = plain.best_match(self.queries[row], points, self.normalize)
            found = float(answer.distances[row, col]), int(answer.starts[row, col])
            item = f"the best match of query {row} in series {col}"
            yield Check(item, found, expected, found == expected)
