"""Joins of a line with the windows that have come at its end: few others have a new neighbour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from ...core.reduction import Reduction, Tile
from ...core.verify import Check, Sample
from .join import Join, JoinFound, JoinPart, JoinTotal
from .nearest import Nearest

__all__ = ["GrowthFound", "GrowthJoin", "NewNeighbors", "ranks_of_runs"]


class NewNeighbors(NamedTuple):
    """Neighbours that new windows have, and that earlier windows have in them.

    Attributes
    ----------
    new : Nearest
        The neighbours of new windows.
    windows : ndarray of shape (n_found,), int64
        Earlier windows that have new neighbours, ascending, one entry for each neighbour.
    distances, indices : ndarray of shape (n_found,)
        Those neighbours: of each window nearest first, equal ones by their place.
    """

    new: Nearest
    windows: np.ndarray
    distances: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, nearest: Nearest, since: int) -> NewNeighbors:
        """Take them from lists of all windows."""
        rows, columns = np.nonzero(nearest.indices[:since] >= 0)
        found = nearest.distances[rows, columns], nearest.indices[rows, columns]
        return cls(Nearest(nearest.distances[since:], nearest.indices[since:]), rows, *found)

    def lists(self, since: int) -> Nearest:
        """Return lists of all windows."""
        n_new, k = self.new.distances.shape
        found = Nearest.none(since + n_new, k)
        found.distances[since:], found.indices[since:] = self.new
        ranks = ranks_of_runs(self.windows)
        found.distances[self.windows, ranks] = self.distances
        found.indices[self.windows, ranks] = self.indices
        return found


class GrowthFound(NamedTuple):
    """The answer of a `GrowthJoin`: later and earlier neighbours, or both in `later`."""

    later: NewNeighbors
    earlier: NewNeighbors | None


class GrowthTotal(NamedTuple):
    """The merged results of tiles, see `JoinTotal`.

    Attributes
    ----------
    new : list of Nearest
        Neighbours of new windows.
    others : list of list of tuple
        Earlier windows that have new neighbours, and their lists as a tile has found them.
    floors, device_accumulators, hints
        As of `JoinTotal`.
    """

    new: list[Nearest]
    others: list[list[tuple[np.ndarray, Nearest]]]
    floors: list[np.ndarray]
    device_accumulators: dict[Any, Any]
    hints: list[np.ndarray]


@dataclass(frozen=True, eq=False)
class GrowthJoin(Join):
    """The neighbours that windows from `since` on have, and are, within one line.

    The lists of earlier windows, most of which are empty, are never laid out.

    Parameters
    ----------
    a, b, length, exclusion, n_neighbors, sides, normalize, excluded, since, precision : see `Join`
        The same as there; `b` is None.
    needed, hint, device_accumulators, lengths : see `Join`
        The same as there.
    """

    def join(self) -> Join:
        """Return the join whose answer has a list for every window."""
        return Join(**{one.name: getattr(self, one.name) for one in fields(Join)})

    def result_bytes(self) -> int:
        """Size of the lists of new windows."""
        return 16 * (self.shape[0] - self.since) * self.n_neighbors * (2 if self.sides else 1)

    def start(self) -> GrowthTotal:  # type: ignore[override]
        """Return empty lists."""
        n_windows, lists = self.shape[0], range(2 if self.sides else 1)
        needed: Any = self.needed or [np.full(n_windows, np.inf)] * 2
        return GrowthTotal(
            [Nearest.none(n_windows - self.since, self.n_neighbors) for _ in lists],
            [[] for _ in lists],
            [np.full(n_windows, np.inf) for _ in lists],
            {},
            [needed[at].copy() for at in lists],
        )

    def merge(  # type: ignore[override]
        self, total: GrowthTotal, tile: Tile, result: JoinPart | None
    ) -> None:
        """Take the neighbours of a tile; None where they are kept."""
        if result is None:
            return
        sides = [(0, tile.rows, result.rows, result.row_floor)]
        if result.cols is not None:
            sides.append((-1, tile.cols, result.cols, result.col_floor))
        for at, windows, nearest, floor in sides:
            n_old = min(max(self.since - windows.start, 0), windows.stop - windows.start)
            some = np.flatnonzero(nearest.indices[:n_old, 0] >= 0)
            others = Nearest(nearest.distances[some], nearest.indices[some])
            hint, some = total.hints[at], some + windows.start
            if some.size:
                total.others[at].append((some, others))
                hint[some] = np.minimum(hint[some], others.distances[:, -1])
            first = windows.start + n_old
            if first < windows.stop:
                mine, here = total.new[at], slice(first - self.since, windows.stop - self.since)
                mine.add(here, Nearest(nearest.distances[n_old:], nearest.indices[n_old:]))
                hint = hint[first : windows.stop]
                np.minimum(hint, mine.distances[here, -1], out=hint)
            if floor is not None:
                floors = total.floors[at][windows]
                np.minimum(floors, floor, out=floors)

    def finish(  # type: ignore[override]
        self, total: GrowthTotal, run: Callable[[Reduction], Any]
    ) -> GrowthFound:
        """Finish as a `Join` does, without lists of all windows where that changes nothing."""
        for tile, part in self.drain(total, Tile(0, self.shape[0], 0, self.shape[1])):  # type: ignore[arg-type]
            self.merge(total, tile, part)
        found = [
            NewNeighbors(new, *self._sorted(others))
            for new, others in zip(total.new, total.others, strict=True)
        ]
        kinds, _ = self._kinds(run)
        certain = all(np.isinf(floor).all() for floor in total.floors)
        if certain and not kinds.constant.any() and not kinds.unsearched.any():
            return GrowthFound(found[0], found[1] if self.sides else None)
        lists = [one.lists(self.since) for one in found]
        whole = super().finish(JoinTotal(lists, total.floors, {}, [], total.hints), run)
        return self._of(whole)

    def verify(self, answer: GrowthFound, sample: Sample) -> Iterator[Check]:  # type: ignore[override]
        """Compare as a `Join` does."""
        later = answer.later.lists(self.since)
        if answer.earlier is None:
            found = JoinFound(*later)
        else:
            earlier = answer.earlier.lists(self.since)
            both = later.copy()
            both.add(slice(None), earlier)
            found = JoinFound(*both, left=earlier, right=later)
        return self.join().verify(found, sample)

    def _of(self, found: JoinFound) -> GrowthFound:
        """Take the answer of the join of all windows."""
        if found.right is None or found.left is None:
            return GrowthFound(
                NewNeighbors.of(Nearest(found.distances, found.indices), self.since), None
            )
        return GrowthFound(
            NewNeighbors.of(found.right, self.since), NewNeighbors.of(found.left, self.since)
        )

    def _sorted(
        self, others: list[tuple[np.ndarray, Nearest]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Windows, distances and places of new neighbours of earlier windows."""
        if not others:
            return np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)
        there = [nearest.indices >= 0 for _, nearest in others]
        counts = [each.sum(axis=1) for each in there]
        pairs = [(np.repeat(some, n), each) for (some, each), n in zip(others, counts, strict=True)]
        listed = np.concatenate([some for some, _ in others])
        windows = np.concatenate([some for some, _ in pairs])
        found = zip(pairs, there, strict=True)
        kept = [(each.distances[which], each.indices[which]) for (_, each), which in found]
        distances, indices = (np.concatenate(each) for each in zip(*kept, strict=True))
        if (np.diff(listed) <= 0).any():
            # tiles of several columns have found them
            order = np.lexsort((indices, distances, windows))
            windows, distances, indices = windows[order], distances[order], indices[order]
            near = ranks_of_runs(windows) < self.n_neighbors
            windows, distances, indices = windows[near], distances[near], indices[near]
        return windows, distances, indices


def ranks_of_runs(values: np.ndarray) -> np.ndarray:
    """Places of sorted values among those that are equal: 0, 1, ... for each."""
    places = np.arange(values.size)
    begins = np.concatenate([[True], values[1:] != values[:-1]]) if values.size else places > 0
    first: np.ndarray = np.maximum.accumulate(np.where(begins, places, 0))
    return places - first
