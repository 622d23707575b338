"""`RotationNeighbors`: nearest candidates where each may be turned round by any shift.

The distance is the least over all circular shifts of the candidate, and certified: the least of the
certified values of all shifts, with the same bits wherever it is computed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.certify import Neighbors, NeighborsInBatches, Rescaling, Shortlists, nearest
from ...core.reduction import Reduction, Tile, UsesIncumbent
from ...core.series import Series
from ...core.verify import Check, Sample, check_neighbors
from .dtw import LANES
from .warping import PLAIN, Warping, plain_distance

__all__ = ["RotationNeighbors", "RotationSearch"]

#: Candidates that are looked at together, the most promising first.
BLOCK = 16 * LANES
#: Warping matrices that a search is expected to fill for each pair, most ruled out by a bound that
#: fills two of them. It only sets the size of tiles.
FILLED = 3


class RotationSearch(Reduction):
    """A search of queries among candidates that may be turned round; it checks its options."""

    queries: Series
    candidates: Series
    n_neighbors: int
    excluded: np.ndarray | None
    warping: Warping
    limits: np.ndarray | None

    @abstractmethod
    def survivor_bytes(self) -> int:
        """Bytes that the survivors of all queries may take at most."""

    def __post_init__(self) -> None:
        warping = self.warping
        if type(warping) is not Warping:
            raise ValueError(f"rotation_invariant=True does not go with metric={warping.metric!r}.")
        if warping.alignment != "global":
            raise ValueError(
                f"rotation_invariant=True does not go with alignment={warping.alignment!r}: a "
                "rotated series is matched in full."
            )

    @property
    def step_work(self) -> int:
        """About the cells of warping matrices for one pair."""
        n, m = self.most_points
        columns = 1 if self.straight else min(m, 2 * int(self.warping.radius(n, m)) + 1)
        return FILLED * n * self.queries.n_channels * columns

    @cached_property
    def rescaling(self) -> Rescaling:
        """Offset and scale of estimates in float32, taken from the candidates."""
        return self.warping.rescaling(*self.candidates.extent)

    @cached_property
    def straight(self) -> bool:
        """Whether points are compared without warping: no band is wider, all lengths are one."""
        (n, m), sides = self.most_points, (self.queries, self.candidates)
        alike = n == m and all(side.equal_length for side in sides)
        return alike and int(self.warping.radius(n, m)) == 0

    @property
    def most_points(self) -> tuple[int, int]:
        """Points of the longest query, and of the longest candidate."""
        return self.queries.n_timepoints, self.candidates.n_timepoints

    @property
    def cell(self) -> tuple[int, int]:
        """One query against a block of candidates."""
        return 1, BLOCK

    def plain_distance(self, query: int, candidate: int) -> float:
        """Least distance of a query and a candidate over all shifts, by plain code."""
        m = int(self.candidates.lengths[candidate])
        values = self.candidates.values[candidate, :, :m]
        turned = Series.of([np.roll(values, s, axis=1) for s in range(m)])
        return min(plain_distance(self.queries, query, turned, s, self.warping) for s in range(m))


@dataclass(frozen=True, eq=False)
class RotationNeighbors(NeighborsInBatches, UsesIncumbent, RotationSearch):
    """The nearest candidates of each query under all circular shifts of the candidates.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series, of any lengths.
    n_neighbors : int
        Neighbours of each query.
    excluded : ndarray of shape (n_queries,), int64, or None, default None
        One candidate that a query must not find; out of range is none.
    warping : Warping
        Options of the distance, in global alignment.
    limits : ndarray of shape (n_queries,) or None, default None
        Distances beyond which no neighbour is looked for.

    Raises
    ------
    ValueError
        For options for which no exact and fast search is known.
    """

    warping: Warping = PLAIN
    limits: np.ndarray | None = None
    method: ClassVar[str] = "rotation_neighbors"

    def part(self, tile: Tile) -> RotationNeighbors:
        """Return some queries against some candidates."""
        limits = None if self.limits is None else self.limits[tile.rows]
        return replace(super().part(tile), limits=limits)

    def with_incumbent(self, total: Shortlists) -> RotationNeighbors:
        """Return the work with the distances of the neighbours found in other blocks."""
        if len(self.candidates) <= BLOCK:
            return self
        query, _, distance, *_ = total.compact()
        limits = np.full(len(self.queries), np.inf) if self.limits is None else self.limits.copy()
        full = np.bincount(query, minlength=len(limits)) >= self.n_neighbors
        farthest = np.zeros(len(limits))
        np.maximum.at(farthest, query, distance)
        limits[full] = np.minimum(limits[full], farthest[full])
        return replace(self, limits=limits)

    def finish(self, total: Shortlists, run: Callable[[Reduction], Any]) -> Neighbors:
        """Choose among the neighbours of all blocks."""
        query, candidate, distance, *_ = total.compact()
        return nearest(query, candidate, distance, len(self.queries), self.n_neighbors)

    def limit_of(self, query: int) -> float:
        """Distance beyond which no neighbour of a query is looked for."""
        return np.inf if self.limits is None else float(self.limits[query])

    def verify(self, answer: Neighbors, sample: Sample) -> Iterator[Check]:
        """Compare some neighbours, and some of the other candidates."""
        yield from check_neighbors(self, answer, sample, 3)
