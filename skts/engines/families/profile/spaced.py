"""Neighbours that are apart from each other: of each window, chosen one after the other.

The nearest window comes first; then the nearest of those that start more than the exclusion from
all that were chosen before; and so on. So the neighbours are different events, not one event and
the windows beside it.

The columns are cut into blocks, and tiles are single cells, so that each tile brings the nearest
window of a block. A chosen window takes others out in few blocks. Only these are measured again; of
all others the nearest window still counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ...core.reduction import Reduction, Tile, Tiling
from ...core.verify import Check, Sample
from .concatenated import ConcatenatedSeries
from .join import Join, JoinFound, JoinPart, JoinTotal
from .nearest import Nearest
from .windows import Kinds, WindowDistances, distances_at_a_time, plain_profile

__all__ = ["SpacedNeighbors", "choose_apart"]

#: Windows of a block at least, blocks at most, and windows of a block at most, which goes first: a
#: block that lost its nearest window costs as many distances; each pair of blocks is a tile.
LEAST, MOST_BLOCKS, LARGEST = 1024, 128, 16_384


@dataclass(frozen=True, eq=False)
class SpacedNeighbors(Join):
    """The nearest windows of every window that are apart from each other.

    Parameters
    ----------
    a, b, length, exclusion, n_neighbors, sides, normalize, excluded, since, precision : see `Join`
        The same as there; `n_neighbors` and `excluded` keep their defaults, `sides` is `left`.
    needed, hint, device_accumulators, lengths : see `Join`
        For streams, and for engines.
    n_spaced : int, default 1
        Neighbours of each window. Any two start more than `exclusion` points apart.
    left : bool, default False
        Whether only earlier windows are neighbours, within one line.
    """

    n_spaced: int = 1
    left: bool = False
    tiling: ClassVar[Tiling] = Tiling(square=True, single=True)

    def __post_init__(self) -> None:
        """Earlier windows are found apart from later ones where they alone are asked for."""
        object.__setattr__(self, "sides", self.left)

    @property
    def block(self) -> int:
        """Columns of a block."""
        wanted = -(-max(self.shape) // (LEAST * MOST_BLOCKS)) * LEAST
        return min(max(LEAST, wanted), LARGEST)

    @property
    def cell(self) -> tuple[int, int]:
        """A block along both axes."""
        return self.block, self.block

    @property
    def n_listed(self) -> int:
        """Blocks whose nearest window is kept: more than all earlier neighbours can take out."""
        touched = 2 * self.exclusion // self.block + 2
        n_blocks = -(-self.shape[1] // self.block)
        return max(1, min(n_blocks, (self.n_spaced - 1) * touched + 1))

    @property
    def at_a_time(self) -> int:
        """Windows that are compared at a time."""
        return distances_at_a_time()

    @property
    def all_at_once(self) -> bool:
        """Whether distances to all windows are fewer than those to blocks, a block for each turn.

        Each neighbour but the first takes out the window that its block has brought at least.
        """
        fewer = self.shape[1] <= (self.n_spaced - 1) * self.block
        return fewer and self.since == 0 and self.precision != "float32"

    def result_bytes(self) -> int:
        """Size of the neighbours, and of what they are chosen from."""
        return 16 * self.shape[0] * (self.n_spaced + 2 * self.n_listed)

    def start(self) -> JoinTotal:
        """Return empty lists; later windows are not kept where only earlier ones are asked for."""
        n_windows = self.shape[0]
        lists = [Nearest.none(n_windows, self.n_listed)]
        if self.left:
            lists.insert(0, Nearest(np.zeros((n_windows, 1)), np.full((n_windows, 1), -1)))
        return JoinTotal(lists, [np.full(n_windows, np.inf) for _ in lists], {}, [])

    def with_incumbent(self, total: JoinTotal) -> Join:
        """Return the join with the distances beyond which blocks are not needed."""
        rows, cols = (total.lists[at].distances[:, -1] for at in (0, -1))
        return replace(self, hint=(rows, cols), device_accumulators=None)

    def drain(self, total: JoinTotal, area: Tile) -> Iterator[tuple[Tile, JoinPart]]:
        """Nothing is kept on devices."""
        return iter(())

    def merge(self, total: JoinTotal, tile: Tile, result: JoinPart | None) -> None:
        """Take the nearest window of a block for the windows of a cell."""
        if result is None:
            return
        sides = [] if self.left else [(tile.row, result.rows, result.row_floor)]
        if self.within and result.cols is not None:
            sides.append((tile.col, result.cols, result.col_floor))
        nearest, floors = total.lists[-1], total.floors[-1]
        if len(sides) == 2 and tile.rows == tile.cols:
            # of a block one window, before or behind: a second would take the place of another's
            both = result.rows.copy()
            both.add(slice(None), sides[1][1])
            none = Nearest.none(0, 1)
            sides = [(tile.row, both, result.row_floor), (tile.col, none, result.col_floor)]
        for first, found, floor in sides:
            last = nearest.distances[first : first + len(found.distances), -1]
            # equal to the last, and earlier on the line: `add` sees to that
            some = np.flatnonzero((found.indices[:, 0] >= 0) & (found.distances[:, 0] <= last))
            if some.size:
                nearest.add(first + some, Nearest(found.distances[some], found.indices[some]))
            if floor is not None:
                part = floors[first : first + len(floor)]
                np.minimum(part, floor.ravel(), out=part)

    def finish(self, total: JoinTotal, run: Callable[[Reduction], Any]) -> JoinFound:
        """Choose the neighbours of each window."""
        answer = Nearest.none(self.shape[0], self.n_spaced)
        if min(self.shape) > 0:
            self._fill(answer, total, run)
        return JoinFound(answer.distances, answer.indices)

    def _fill(self, answer: Nearest, total: JoinTotal, run: Callable[[Reduction], Any]) -> None:
        """Choose from what tiles have found, and measure what they have left open."""
        a, b = self._kinds(run)
        some = np.flatnonzero(a.regular & ~a.unsearched)
        if self.all_at_once:
            self._measure_all(answer, np.flatnonzero(a.regular), b, run)
            self._settle_constant(answer, np.flatnonzero(a.constant), b)
            return
        self._choose(answer, some, total.lists[-1], b, run)
        last = answer.distances[:, -1]
        again = a.unsearched | (a.regular & (total.floors[-1] <= last))
        if b.constant.any():
            again |= a.regular & (last >= np.sqrt(self.length))
        again |= a.regular & (self._nearest_hidden(b, run) <= last)
        self._measure_all(answer, np.flatnonzero(again), b, run)
        self._settle_constant(answer, np.flatnonzero(a.constant), b)

    def verify(self, answer: JoinFound, sample: Sample) -> Iterator[Check]:
        """Compare the neighbours of some windows with those by their whole distance profile."""
        if self.precision == "float32" or self.shape[1] == 0:
            return
        for window in sample(self.shape[0], 8):
            values = plain_profile(self.a, window, self.other, self.length, self.normalize)
            places = np.arange(self.shape[1])
            values[~self._admissible(np.array([window]), places, self._direction)[0]] = np.inf
            yield self.check_window(window, answer, values)

    def check_window(self, window: int, answer: JoinFound, values: np.ndarray) -> Check:
        """Compare the neighbours of a window with those by its distances to all; overwrites."""
        wanted = choose_apart(values[np.newaxis], self.n_spaced, self.exclusion)
        found, expected = (
            list(zip(distances[at].tolist(), indices[at].tolist(), strict=True))
            for distances, indices, at in ((*answer[:2], window), (*wanted, 0))
        )
        item = f"the neighbours of window {window} that are apart"
        return Check(item, found, expected, found == expected)

    @property
    def _direction(self) -> str:
        """Where neighbours may lie."""
        return "left" if self.left else "both"

    def _choose(
        self,
        answer: Nearest,
        rows: np.ndarray,
        listed: Nearest,
        b: Kinds,
        run: Callable[[Reduction], Any],
    ) -> None:
        """Choose the neighbours of some windows from the nearest windows of their blocks."""
        distances, places = listed.distances[rows], listed.indices[rows]
        chosen = np.full((len(rows), self.n_spaced), -1, np.int64)
        each = np.arange(len(rows))
        for turn in range(self.n_spaced):
            while True:
                taken = self._taken(places, chosen[:, :turn])
                best = _first_of(np.where(taken, np.inf, distances), places)
                before = (distances, places), (distances[each, best], places[each, best])
                # a block whose nearest window is gone may still hold the next
                gone = taken & np.isfinite(distances) & _is_before(*before)
                gone |= taken & np.isfinite(distances) & taken[each, best][:, np.newaxis]
                if not gone.any():
                    break
                self._measure_blocks(rows, gone, chosen[:, :turn], (distances, places), b, run)
            found = distances[each, best]
            chosen[:, turn] = np.where(np.isinf(found), -1, places[each, best])
            answer.distances[rows, turn], answer.indices[rows, turn] = found, chosen[:, turn]

    def _taken(self, places: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Which of the places of each row are too near to one that was chosen for it."""
        taken = np.zeros(places.shape, bool)
        for one in chosen.T:
            near = np.abs(places - one[:, np.newaxis]) <= self.exclusion
            taken |= near & (one >= 0)[:, np.newaxis]
        return taken & (places >= 0)

    def _measure_blocks(
        self,
        rows: np.ndarray,
        wanted: np.ndarray,
        chosen: np.ndarray,
        lists: tuple[np.ndarray, np.ndarray],
        b: Kinds,
        run: Callable[[Reduction], Any],
    ) -> None:
        """Find the nearest window that is left in some blocks, and write it to the lists."""
        distances, places = lists
        at, rank = np.nonzero(wanted)
        block = places[at, rank] // self.block
        order = np.argsort(block, kind="stable")
        at, rank, block = at[order], rank[order], block[order]
        bounds = np.flatnonzero(np.diff(block, prepend=-1, append=-1))
        batch = max(1, self.at_a_time // self.block)
        for first, stop in pairwise(bounds):
            start = int(block[first]) * self.block
            columns = slice(start, min(start + self.block, self.shape[1]))
            for low in range(first, stop, batch):
                some = slice(low, min(low + batch, stop))
                these = at[some]
                values = self._measure(rows[these], columns, b, run)
                for one in chosen[these].T:
                    _take_out(values, one - start, self.exclusion)
                nearest = values.argmin(axis=1)
                value = values[np.arange(len(values)), nearest]
                distances[these, rank[some]] = value
                places[these, rank[some]] = np.where(np.isinf(value), -1, start + nearest)

    def _measure(
        self, rows: np.ndarray, columns: slice, b: Kinds, run: Callable[[Reduction], Any]
    ) -> np.ndarray:
        """Distances of some windows to a run of others, infinite where they are not admissible."""
        piece = self.other.points[columns.start : columns.stop + self.length - 1]
        line = ConcatenatedSeries(piece, np.zeros(1, np.int64), np.array([piece.size]))
        values: np.ndarray = run(WindowDistances(self.a, rows, line, self.length, self.normalize))
        admissible = self._admissible(rows, np.arange(columns.start, columns.stop), self._direction)
        values[~(admissible & b.finite[columns])] = np.inf
        return values

    def _nearest_hidden(self, b: Kinds, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Distance of each window to the nearest of those that no tile has searched."""
        nearest = np.full(self.shape[0], np.inf)
        hidden = np.flatnonzero(b.unsearched)
        batch = max(1, self.at_a_time // self.shape[0])
        for start in range(0, len(hidden), batch):
            some = hidden[start : start + batch]
            work = WindowDistances(self.other, some, self.a, self.length, self.normalize)
            np.minimum(nearest, run(work).min(axis=0), out=nearest)
        return nearest

    def _measure_all(
        self, answer: Nearest, rows: np.ndarray, b: Kinds, run: Callable[[Reduction], Any]
    ) -> None:
        """Choose the neighbours of some windows from their distances to all others."""
        batch = max(1, self.at_a_time // self.shape[1])
        for start in range(0, len(rows), batch):
            some = rows[start : start + batch]
            values = self._measure(some, slice(0, self.shape[1]), b, run)
            found = choose_apart(values, self.n_spaced, self.exclusion)
            answer.distances[some], answer.indices[some] = found

    def _settle_constant(self, answer: Nearest, rows: np.ndarray, b: Kinds) -> None:
        """Choose for constant windows: constant ones in order, then all others in order."""
        unlike = float(np.sqrt(self.length))
        groups = ((np.flatnonzero(b.constant), 0.0), (np.flatnonzero(b.regular), unlike))
        ranges = self._ranges(rows, self._direction)
        for number, row in enumerate(rows):
            chosen: list[int] = []
            values: list[float] = []
            for places, distance in groups:
                for first, stop in ranges:
                    place = int(first[number])
                    while len(chosen) < self.n_spaced:
                        at = int(np.searchsorted(places, place))
                        if at == len(places) or places[at] >= stop[number]:
                            break
                        place = int(places[at])
                        near = [one for one in chosen if abs(one - place) <= self.exclusion]
                        if near:
                            place = max(near) + self.exclusion + 1
                            continue
                        chosen.append(place)
                        values.append(distance)
            answer.distances[row, : len(values)] = values
            answer.indices[row, : len(values)] = chosen


def choose_apart(values: np.ndarray, k: int, exclusion: int) -> Nearest:
    """Choose the nearest place of each row, then the nearest that is apart from it, and so on.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_places)
        Distances, infinite where a place is not admissible; overwritten.
    k : int
        Places of each row.
    exclusion : int
        Any two are more than this apart.

    Returns
    -------
    Nearest
        The first of equally near ones comes first.
    """
    found = Nearest.none(len(values), k)
    each = np.arange(len(values))
    for turn in range(k if values.shape[1] else 0):
        nearest = values.argmin(axis=1)
        value = values[each, nearest]
        found.distances[:, turn] = value
        found.indices[:, turn] = np.where(np.isinf(value), -1, nearest)
        _take_out(values, nearest, exclusion)
    return found


def _take_out(values: np.ndarray, places: np.ndarray, exclusion: int) -> None:
    """Make a run of each row infinite, around a place that may lie outside of it."""
    first = np.maximum(places - exclusion, 0).tolist()
    stop = np.maximum(places + exclusion + 1, 0).tolist()
    for row, low, high in zip(values, first, stop, strict=True):
        row[low:high] = np.inf


def _first_of(distances: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Where the nearest of each row is; of equally near ones that with the lowest place."""
    least = distances.min(axis=1, keepdims=True)
    return np.where(distances == least, places, np.iinfo(np.int64).max).argmin(axis=1)


def _is_before(
    these: tuple[np.ndarray, np.ndarray], those: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Whether pairs of a distance and a place come before one of each row."""
    distance, place = (one[:, np.newaxis] for one in those)
    return (these[0] < distance) | ((these[0] == distance) & (these[1] < place))
