"""Distances of the candidates of many nodes to the series of each node, in one reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...core.verify import Check, Sample
from .matches import LEAST_NORMALIZED

__all__ = ["CandidateGroups", "GroupMatches", "Groups", "distances_to_all", "offsets"]

#: Series of a group where all series are compared: groups are what workers share.
GROUP_SERIES = 64


def offsets(sizes: np.ndarray) -> np.ndarray:
    """Where pieces of some sizes begin, one after the other, and where the last ends."""
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


@dataclass(frozen=True, eq=False)
class Groups:
    """Candidates and series of several groups, as nodes of trees are.

    Parameters
    ----------
    source : Series
        Where candidates are taken from; their points are finite.
    pieces : ndarray of shape (n_candidates, 4), int64
        Series of the source, channel, start and length of each candidate, group by group.
    candidates_of : ndarray of shape (n_groups + 1,), int64
        Where the candidates of each group begin.
    series : Series
        Where they are looked for; all points are finite.
    members : ndarray of shape (n_members,), int64
        Series of the groups, group by group.
    members_of : ndarray of shape (n_groups + 1,), int64
        Where those of each group begin.
    """

    source: Series
    pieces: np.ndarray
    candidates_of: np.ndarray
    series: Series
    members: np.ndarray
    members_of: np.ndarray

    def __len__(self) -> int:
        return len(self.members_of) - 1

    @property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of candidates and of members of each group."""
        return np.diff(self.candidates_of), np.diff(self.members_of)

    @property
    def distances_of(self) -> np.ndarray:
        """Where the distances of each group begin."""
        n_candidates, n_members = self.sizes
        return offsets(n_candidates * n_members)

    def take(self, rows: slice) -> Groups:
        """Return neighbouring groups."""
        first, stop = rows.start, rows.stop
        candidates = self.candidates_of[first : stop + 1]
        members = self.members_of[first : stop + 1]
        return replace(
            self,
            pieces=self.pieces[candidates[0] : candidates[-1]],
            candidates_of=candidates - candidates[0],
            members=self.members[members[0] : members[-1]],
            members_of=members - members[0],
        )

    def alone(self) -> Groups:
        """Return the groups with only those series that they are about."""
        series, members = np.unique(self.members, return_inverse=True)
        source, rows = np.unique(self.pieces[:, 0], return_inverse=True)
        pieces = self.pieces.copy()
        pieces[:, 0] = rows.reshape(-1)
        return replace(
            self,
            source=self.source.take(source),
            pieces=pieces,
            series=self.series.take(series),
            members=members.reshape(-1),
        )


@dataclass(frozen=True, eq=False)
class CandidateGroups(Reduction):
    """Work on groups, one row each; see `Groups`.

    Parameters
    ----------
    groups : Groups
        Candidates and series.
    """

    groups: Groups

    @property
    def shape(self) -> tuple[int, int]:
        """Groups, and one column."""
        return len(self.groups), 1

    @property
    def cell(self) -> tuple[int, int]:
        """One group."""
        return 1, 1

    @cached_property
    def step_work(self) -> int:
        """Points of all windows that the candidates of a group are compared with, in the mean."""
        groups, lengths = self.groups, self.groups.pieces[:, 3]
        windows = np.maximum(0, groups.series.n_timepoints - lengths + 1)
        n_members = np.repeat(groups.sizes[1], groups.sizes[0])
        return int(lengths * windows @ n_members) // max(1, len(groups)) + 1

    @cached_property
    def largest(self) -> tuple[int, int, int, int]:
        """Candidates, members, distances, and points of candidates of a group, at most."""
        n_candidates, n_members = self.groups.sizes
        points = offsets(self.groups.pieces[:, 3])[self.groups.candidates_of]
        parts = n_candidates, n_members, n_candidates * n_members, np.diff(points)
        return tuple(int(part.max(initial=1)) for part in parts)  # type: ignore[return-value]

    def part(self, tile: Tile) -> Self:
        """Return some groups."""
        return replace(self, groups=self.groups.take(tile.rows).alone())


@dataclass(frozen=True, eq=False)
class GroupMatches(CandidateGroups):
    """Certified distances of the candidates of each group to its members.

    The least root mean square difference to the windows of a series, both z-normalised; as they are
    where a candidate has fewer than `LEAST_NORMALIZED` points. Two constant windows are at 0, a
    constant and another at 1. Where a series is shorter than a candidate it is infinite.

    The answer is an array of float64: group by group, candidate by candidate.

    Parameters
    ----------
    groups : Groups
        Candidates and series.
    """

    method: ClassVar[str] = "group_matches"

    def result_bytes(self) -> int:
        """Size of the distances."""
        return 8 * int(self.groups.distances_of[-1])

    def start(self) -> np.ndarray:
        """Return an empty array."""
        return np.empty(self.groups.distances_of[-1])

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write the distances of some groups."""
        begin = self.groups.distances_of
        total[begin[tile.row] : begin[tile.row_stop]] = result

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some distances with plain code."""
        groups, begin = self.groups, self.groups.distances_of
        for place in sample(len(answer)):
            g = int(np.searchsorted(begin, place, side="right")) - 1
            n_members = int(groups.sizes[1][g])
            row, column = divmod(place - int(begin[g]), n_members)
            candidate = int(groups.candidates_of[g]) + row
            member = int(groups.members[groups.members_of[g] + column])
            expected = plain_distance(groups, candidate, member)
            item = f"the distance of candidate {candidate} and series {member}"
            yield Check(item, float(answer[place]), expected, float(answer[place]) == expected)


def distances_to_all(
    source: Series, pieces: np.ndarray, series: Series, run: Callable[[Reduction], Any]
) -> np.ndarray:
    """Return the certified distances of candidates to all series; see `GroupMatches`.

    Parameters
    ----------
    source : Series
        Where candidates are taken from.
    pieces : ndarray of shape (n_candidates, 4), int64
        Series of the source, channel, start and length of each.
    series : Series
        Where they are looked for.
    run : callable
        Computes reductions.

    Returns
    -------
    ndarray of shape (n_candidates, n_series), float64
        The distances.
    """
    n_candidates, n_series = len(pieces), len(series)
    firsts = np.append(np.arange(0, n_series, GROUP_SERIES), n_series)
    n_parts = len(firsts) - 1
    groups = Groups(
        source,
        np.repeat(pieces, n_parts, axis=0),
        np.arange(n_candidates * n_parts + 1),
        series,
        np.tile(np.arange(n_series), n_candidates),
        offsets(np.tile(np.diff(firsts), n_candidates)),
    )
    found: np.ndarray = run(GroupMatches(groups))
    return found.reshape(n_candidates, n_series)


def plain_distance(groups: Groups, candidate: int, member: int) -> float:
    """The distance of a candidate and a series, by plain code."""
    from ...host import plain

    row, channel, start, length = groups.pieces[candidate].tolist()
    query = groups.source.values[row, channel, start : start + length]
    points = groups.series.values[member, channel, : groups.series.lengths[member]]
    found: Any = plain.best_match(query, points, length >= LEAST_NORMALIZED)[0]
    return float(found / np.sqrt(length))
