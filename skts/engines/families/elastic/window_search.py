"""`DTWWindowSearch`: the nearest neighbour of each series under warping windows of every width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...core.verify import Check, Sample
from .warping import Warping, plain_distance

__all__ = ["DTWWindowSearch"]

#: Windows whose full matrices an engine may be expected to fill for one query: the others follow
#: from bounds and abandoned matrices. It only sets the size of tiles.
_FILLED = 2


@dataclass(frozen=True, eq=False)
class DTWWindowSearch(Reduction):
    """The nearest candidate of each query, at each of several radii of the warping window.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series, all of one length.
    excluded : ndarray of shape (n_queries,), int64
        One candidate that a query must not find, itself in leave-one-out; out of range is none.
    radii : ndarray of shape (n_radii,), int64
        Half widths of the band, from 0 to `n_timepoints` - 1, strictly descending.
    squared : bool
        Whether costs are squared and the distance is a root, else costs are absolute.

    Raises
    ------
    ValueError
        If a radius is out of range, or the radii do not descend.
    """

    queries: Series
    candidates: Series
    excluded: np.ndarray
    radii: np.ndarray
    squared: bool = True
    method: ClassVar[str] = "dtw_window_search"

    def __post_init__(self) -> None:
        widest = self.queries.n_timepoints - 1
        # to engines a wider radius would be that of a candidate which is settled already
        wrong = np.flatnonzero((self.radii < 0) | (self.radii > widest))
        if wrong.size:
            raise ValueError(
                f"Radii are from 0 to {widest}, one less than the time points: "
                f"number {wrong[0]} is {self.radii[wrong[0]]}."
            )
        wrong = np.flatnonzero(np.diff(self.radii) >= 0)
        if wrong.size:
            at = int(wrong[0])
            raise ValueError(
                f"Radii descend: number {at + 1}, {self.radii[at + 1]}, follows {self.radii[at]}."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """All queries, one column: a query meets its candidates in the order of their promise."""
        return len(self.queries), 1

    @property
    def step_work(self) -> int:
        """About the cells of the warping matrices that a query needs."""
        n = self.queries.n_timepoints
        return _FILLED * len(self.candidates) * n * n * self.queries.n_channels

    @property
    def cell(self) -> tuple[int, int]:
        """One query."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of the answer."""
        return 8 * len(self.queries) * self.radii.size

    def part(self, tile: Tile) -> DTWWindowSearch:
        """Return some queries against all candidates."""
        return replace(
            self, queries=self.queries.take(tile.rows), excluded=self.excluded[tile.rows]
        )

    def start(self) -> np.ndarray:
        """Return the empty table of neighbours."""
        return np.empty((len(self.queries), self.radii.size), np.int64)

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write the neighbours of some queries."""
        total[tile.rows] = result

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Look at some neighbours, and at some other candidates."""
        for place in sample(answer.size, 8):
            query, at = divmod(place, self.radii.size)
            radius, found = int(self.radii[at]), int(answer[query, at])
            warping = Warping(window=radius, cost="squared" if self.squared else "absolute")
            item = f"the neighbour of query {query} at radius {radius}"
            own = int(self.excluded[query])
            nearest = np.inf, len(self.candidates)
            if found >= 0:
                distance = plain_distance(self.queries, query, self.candidates, found, warping)
                nearest = distance, found
                yield Check(item, found, "another candidate", found != own)
            for other in sample(len(self.candidates), 8):
                if other not in (found, own):
                    distance = plain_distance(self.queries, query, self.candidates, other, warping)
                    yield Check(item, nearest, (distance, other), nearest < (distance, other))
