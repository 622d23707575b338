"""Radius searches: all candidates within a distance of each query, however many there are.

They filter and certify as searches of the nearest do (`certify`). From each tile a search keeps
every candidate whose lower value does not exceed the radius (`within`); only those whose interval
holds the radius are in doubt. All of a batch of queries fit in memory even if every candidate is
within.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .certify import ENTRY_BYTES, SURVIVORS_SHARE, Bound, SearchInBatches, Shortlist
from .order import order_of_pairs
from .series import Series
from .verify import Check, Sample, check_value

__all__ = ["RadiusInBatches", "Within", "WithinSoFar", "append", "pieces_from_end", "within"]


class Within(NamedTuple):
    """Candidates within a distance of each query, by query, then by candidate.

    Attributes
    ----------
    distances : ndarray of shape (n_found,), float64, or None
        Certified distances; None where only the candidates were asked for.
    indices : ndarray of shape (n_found,), int64
        Candidates.
    starts : ndarray of shape (n_queries + 1,), int64
        Those of query i are the entries ``starts[i]`` to ``starts[i + 1]``.
    """

    distances: np.ndarray | None
    indices: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(
        cls, query: np.ndarray, candidate: np.ndarray, value: np.ndarray | None, n_queries: int
    ) -> Within:
        """Put pairs, in any order, in the order of an answer."""
        order = order_of_pairs(query, candidate, candidate)
        counts = np.bincount(query, minlength=n_queries)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(None if value is None else value[order], candidate[order], starts)


def within(
    estimates: np.ndarray, radius: float, bound: Bound, excluded: np.ndarray | None
) -> Shortlist:
    """Keep of each row of a block of estimates the candidates that may lie within a distance.

    Parameters
    ----------
    estimates : ndarray of shape (n_rows, n_cols), float64
        Estimated distances.
    radius : float
        The distance.
    bound : Bound
        Their error.
    excluded : ndarray of shape (n_rows,), int64, or None
        One column a row that does not take part (out of range: none).

    Returns
    -------
    Shortlist
        The survivors; no row has too many.
    """
    keep = bound.lower(estimates) <= radius
    if excluded is not None:
        inside = np.flatnonzero((excluded >= 0) & (excluded < estimates.shape[1]))
        keep[inside, excluded[inside]] = False
    rows, cols = np.nonzero(keep)
    return Shortlist(rows, cols, estimates[rows, cols], bound)


def append(array: np.ndarray, more: np.ndarray) -> None:
    """Make an array of its own memory longer, in place: its points are not held twice."""
    size = array.size
    array.resize(size + more.size, refcheck=False)
    array[size:] = more


def pieces_from_end(array: np.ndarray, starts: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the runs of an array of its own memory, the last first, each with its number.

    A run is to be copied before the next is asked for: the array is shortened by it then, so that
    copies of all runs do not take their memory twice. It is empty in the end.
    """
    for number in range(starts.size - 2, -1, -1):
        yield number, array[starts[number] :]
        array.resize(starts[number], refcheck=False)


@dataclass
class WithinSoFar:
    """Survivors of all tiles so far.

    Attributes
    ----------
    radius : float
        The distance within which candidates are looked for.
    parts : list of tuple of ndarray
        Of some tiles: queries, candidates, estimates, and whether the candidate is within for sure.
    """

    radius: float
    parts: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def add(self, corner: tuple[int, int], found: Shortlist) -> None:
        """Take the survivors of the tile whose first row and column are `corner`."""
        sure = found.bound.upper(found.estimates) <= self.radius
        self.parts.append((found.rows + corner[0], found.cols + corner[1], found.estimates, sure))

    def together(self) -> tuple[np.ndarray, ...]:
        """Return queries, candidates, estimates, and which are within for sure."""
        empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, bool)
        return tuple(map(np.concatenate, zip(empty, *self.parts, strict=True)))


@dataclass(frozen=True, eq=False)
class RadiusInBatches(SearchInBatches):
    """All candidates within a distance of each query: work that keeps survivors in `WithinSoFar`.

    Queries go in batches, so that there is room for all pairs of a batch.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    radius : float
        Largest distance of a neighbour.
    excluded : ndarray of shape (n_queries,), int64, or None, default None
        One candidate that a query must not find; out of range is none.
    """

    queries: Series
    candidates: Series
    radius: float
    excluded: np.ndarray | None = None

    def survivor_bytes(self) -> int:
        """Bytes that the survivors of all queries may take at most."""
        return ENTRY_BYTES * len(self.queries) * len(self.candidates)

    def batches(self, budget: int) -> list[slice]:
        """Queries that are searched together: all pairs of them have room."""
        n_queries = len(self.queries)
        step = max(1, int(SURVIVORS_SHARE * budget) // (ENTRY_BYTES * len(self.candidates)))
        return [slice(i, min(i + step, n_queries)) for i in range(0, n_queries, step)]

    def start(self) -> WithinSoFar:
        """Return an empty list of survivors."""
        return WithinSoFar(self.radius)

    def gather(self, answers: Iterable[tuple[slice, Within]]) -> Within:
        """Put the answers of batches behind each other, each once those before it are there."""
        distances, indices = np.empty(0), np.empty(0, np.int64)
        starts, known = [np.zeros(1, np.int64)], True
        waiting: dict[int, tuple[int, Within]] = {}
        here = 0
        for rows, found in answers:
            waiting[rows.start] = rows.stop, found
            while here in waiting:
                here, answer = waiting.pop(here)
                starts.append(answer.starts[1:] + indices.size)
                append(indices, answer.indices)
                if answer.distances is None:
                    known = False
                else:
                    append(distances, answer.distances)
        return Within(distances if known else None, indices, np.concatenate(starts))

    def check(self, answer: Within, sample: Sample, most: int, plain: Any) -> Iterator[Check]:
        """Compare some neighbours of some queries, and that some other candidates are farther.

        `plain` computes the distance of a query and a candidate; `most` bounds how many.
        """
        for query in sample(len(self.queries), most):
            own = -1 if self.excluded is None else int(self.excluded[query])
            part = slice(answer.starts[query], answer.starts[query + 1])
            listed = answer.indices[part].tolist()
            right = listed == sorted(set(listed)) and own not in listed
            yield Check(f"the neighbours of query {query}", listed, "each once, in order", right)
            for place in sample(len(listed), most):
                expected = plain(query, listed[place])
                item = f"the distance of {query} and {listed[place]}"
                if answer.distances is not None:
                    yield check_value(item, answer.distances[part][place], expected)
                yield Check(item, expected, f"at most {self.radius}", expected <= self.radius)
            for other in sample(len(self.candidates), most):
                if other not in listed and other != own:
                    distance, item = plain(query, other), f"the distance of {query} and {other}"
                    far = distance > self.radius
                    yield Check(item, distance, f"more than {self.radius}", far)
