"""Radius searches under warping: all candidates within a distance of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.certify import Bound, Shortlist
from ...core.radius import RadiusInBatches, Within, WithinSoFar, within
from ...core.reduction import Reduction, Tile
from ...core.verify import Check, Sample
from .dtw import DTWSearch
from .rotation import RotationSearch
from .warping import PLAIN, Warping

__all__ = ["DTWRadiusNeighbors", "RotationRadiusNeighbors"]


@dataclass(frozen=True, eq=False)
class DTWRadiusNeighbors(RadiusInBatches, DTWSearch):
    """All candidates within a distance of each query.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    radius : float
        Largest distance of a neighbour.
    excluded : ndarray of shape (n_queries,), int64, or None
        One candidate that a query must not find, itself in leave-one-out; out of range is none.
    precision : {"auto", "float32", "float64"}
        "auto" searches in float32 and certifies, "float32" leaves out the certificate, but for
        distances that float32 does not hold, "float64" searches in float64.
    warping : Warping
        Options of the distance.
    distances : bool
        Whether distances are asked for; without them only candidates in doubt are certified.
    """

    precision: str = "auto"
    warping: Warping = PLAIN
    distances: bool = True
    method: ClassVar[str] = "dtw_radius_neighbors"
    n_neighbors: ClassVar[int] = 0  # type: ignore[misc]  # of any number

    def shortlist(self, estimates: np.ndarray, bound: Bound, tile: Tile) -> Shortlist:
        """Keep of the estimates of a tile those that may be within."""
        return within(estimates, self.radius, bound, self.excluded_of(tile))

    def finish(self, total: WithinSoFar, run: Callable[[Reduction], Any]) -> Within:
        """Certify the survivors, and drop those that lie beyond the radius."""
        query, candidate, estimate, sure = total.together()
        settled = np.zeros(query.size, bool) if self.distances else sure
        value = self.certify(query, candidate, estimate, run, settled)
        near = settled | (value <= self.radius)
        given = value[near] if self.distances else None
        return Within.of(query[near], candidate[near], given, len(self.queries))

    def verify(self, answer: Within, sample: Sample) -> Iterator[Check]:
        """Compare some neighbours, and some of the other candidates."""
        if self.precision != "float32":
            yield from self.check(answer, sample, 8, self.plain_distance)


@dataclass(frozen=True, eq=False)
class RotationRadiusNeighbors(RadiusInBatches, RotationSearch):
    """All candidates within a distance of each query under all circular shifts of the candidates.

    Engines look for as many neighbours as there are candidates, none farther than the radius.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series, of any lengths.
    radius : float
        Largest distance of a neighbour.
    excluded : ndarray of shape (n_queries,), int64, or None
        One candidate that a query must not find; out of range is none.
    warping : Warping
        Options of the distance, in global alignment.

    Raises
    ------
    ValueError
        For options for which no exact and fast search is known.
    """

    warping: Warping = PLAIN
    method: ClassVar[str] = "rotation_neighbors"

    @property
    def n_neighbors(self) -> int:  # type: ignore[override]  # it follows from the others
        """As many as there may be."""
        return len(self.candidates)

    @property
    def limits(self) -> np.ndarray:  # type: ignore[override]  # it follows from the others
        """Distances beyond which no neighbour is looked for."""
        return np.full(len(self.queries), self.radius)

    def finish(self, total: WithinSoFar, run: Callable[[Reduction], Any]) -> Within:
        """Put the neighbours in order; their distances are certified already."""
        query, candidate, distance, near = total.together()
        return Within.of(query[near], candidate[near], distance[near], len(self.queries))

    def verify(self, answer: Within, sample: Sample) -> Iterator[Check]:
        """Compare some neighbours, and some of the other candidates."""
        yield from self.check(answer, sample, 3, self.plain_distance)
