"""Joins: the nearest window of each window of a line, in itself or in another line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from ...core.reduction import Reduction, Tile, Tiling, UsesIncumbent
from ...core.verify import Check, Sample
from .concatenated import ConcatenatedSeries, name_lines
from .nearest import Nearest, least_of_rows
from .windows import (
    Kinds,
    WindowDistances,
    WindowKinds,
    distances_at_a_time,
    plain_profile,
)

__all__ = ["Join", "JoinFound", "JoinPart", "JoinTotal", "DeviceAccumulator", "Lengths"]

#: No pair is this far below the diagonal: the exclusion of a join of two lines.
NO_EXCLUSION = -(2**62)


class JoinPart(NamedTuple):
    """The result of a tile: neighbours of its rows among its columns, and the other way round.

    Windows that are constant or not finite are not among them. Neighbours at a distance of
    `row_floor` (or `col_floor`) or more may be missing; None is infinite. `cols` is None where
    only neighbours of rows are asked for, and where `rows` holds the neighbours of both. Where an
    engine has searched several lengths together, `lengths` holds whole answers, this one's, too.
    """

    rows: Nearest
    cols: Nearest | None
    row_floor: np.ndarray | None = None
    col_floor: np.ndarray | None = None
    lengths: dict[int, Nearest] | None = None


class DeviceAccumulator(Protocol):
    """Results that a worker keeps on its device until all of its tiles are done."""

    def take(self, other: Self) -> None:
        """Add the results of another worker."""

    def answer(self, area: Tile) -> Iterable[tuple[Tile, JoinPart]]:
        """Return the results for an area, in one piece or several."""


class JoinTotal(NamedTuple):
    """The merged results of tiles.

    Lists, floors and hints of a `Join` that nothing has been added to are read-only and take no
    memory: where one tile is all, its result becomes the total.

    Attributes
    ----------
    lists : list of Nearest
        Later and earlier neighbours; one list where they mix.
    floors : list of ndarray
        Lower bounds of the distances of neighbours that no tile has listed.
    device_accumulators : dict
        Results that workers keep on devices, each under a key of its own; keys can be sorted.
    tiles : list of Tile
        Tiles that are merged, of work that may end before all are.
    hints : list of ndarray
        Of each list the distances that neighbours need not exceed, for the next tile of a `Join`.
    settled : list of dict of int to Nearest
        The answers at several lengths, where there are any: nothing is left to add or to measure.
    """

    lists: list[Nearest]
    floors: list[np.ndarray]
    device_accumulators: dict[Any, DeviceAccumulator]
    tiles: list[Tile]
    hints: list[np.ndarray] = []
    settled: list[dict[int, Nearest]] = []


class Lengths(NamedTuple):
    """Lengths of the window for which a line is joined with itself, each by a `Join` of its own.

    Attributes
    ----------
    values : ndarray of int
        The lengths, in ascending order.
    exclusions : ndarray of int
        The exclusion at each.
    waiting : set of int
        Those without an answer.
    """

    values: np.ndarray
    exclusions: np.ndarray
    waiting: set[int]


class JoinFound(NamedTuple):
    """The answer of a join.

    Attributes
    ----------
    distances, indices : ndarray of shape (n_windows, n_neighbors)
        As of `Nearest`.
    left, right : Nearest or None
        The nearest among earlier and among later windows, where asked for.
    share : float
        Share of the admissible pairs that were compared.
    lengths : dict of int to Nearest
        The answers at this and other lengths, where they were searched together.
    """

    distances: np.ndarray
    indices: np.ndarray
    left: Nearest | None = None
    right: Nearest | None = None
    share: float = 1.0
    lengths: dict[int, Nearest] = {}


@dataclass(frozen=True, eq=False)
class Join(UsesIncumbent, Reduction):
    """The nearest windows of every window.

    Parameters
    ----------
    a : ConcatenatedSeries
        The line whose windows look for neighbours.
    b : ConcatenatedSeries or None
        The line where they look; None is `a` itself.
    length : int
        Points of a window.
    exclusion : int, default 0
        Within one line windows i and j are admissible neighbours where ``|i - j| > exclusion``.
    n_neighbors : int, default 1
        Neighbours of each window.
    sides : bool, default False
        Whether earlier and later windows are also searched apart, within one line.
    normalize : bool, default True
        Whether windows are z-normalised.
    excluded : ndarray of shape (n_windows,), bool, or None
        Windows of `a` (and of `b`, where that is `a`) that take part in nothing.
    since : int, default 0
        Within one line only pairs count whose later window starts at or after this place.
    precision : {"auto", "float32", "float64"}
        Type of the search; "float32" leaves out the certificate.
    needed : tuple of two ndarray of shape (n_windows,), or None
        Within one line, of every window as it looks for later neighbours and for earlier ones (the
        same where these mix): neighbours at such a distance or farther may be missing. None is
        infinite.
    hint : tuple of two ndarray of shape (n_windows,), or None
        Distances of neighbours that other tiles have found: farther ones are not needed.
    device_accumulators : dict or None
        Where an engine may keep results of its workers, instead of returning them tile by tile.
    lengths : Lengths or None
        All lengths that this line is asked for, where there are several: an engine may answer
        others that wait beside this one.
    """

    a: ConcatenatedSeries
    b: ConcatenatedSeries | None
    length: int
    exclusion: int = 0
    n_neighbors: int = 1
    sides: bool = False
    normalize: bool = True
    excluded: np.ndarray | None = None
    since: int = 0
    precision: str = "auto"
    needed: tuple[np.ndarray, np.ndarray] | None = None
    hint: tuple[np.ndarray, np.ndarray] | None = None
    device_accumulators: dict[Any, DeviceAccumulator] | None = None
    lengths: Lengths | None = None
    method: ClassVar[str] = "join"
    tiling: ClassVar[Tiling] = Tiling(scale=16, square=True, divisible=True)

    @property
    def within(self) -> bool:
        """Whether the line is joined with itself."""
        return self.b is None

    @property
    def other(self) -> ConcatenatedSeries:
        """The line along the columns."""
        return self.a if self.b is None else self.b

    @property
    def shape(self) -> tuple[int, int]:
        """Windows along rows and columns."""
        return self.a.n_windows(self.length), self.other.n_windows(self.length)

    @property
    def step_work(self) -> int:
        """One covariance."""
        return 1

    @property
    def cell(self) -> tuple[int, int]:
        """A band of rows, some strips."""
        return 1024, 1024

    @property
    def least_apart(self) -> int:
        """Pairs with j - i <= this are not admissible, as the kernels have it."""
        return self.exclusion if self.within else NO_EXCLUSION

    def work(self, tile: Tile) -> int:
        """Pairs above the diagonal, or all of them."""
        if not self.within:
            return super().work(tile)
        ends = (1, tile.row, tile.col_stop), (-1, tile.row_stop, tile.col_stop)
        starts = (-1, tile.row, tile.col), (1, tile.row_stop, tile.col)
        return sum(sign * max(col - row, 0) ** 2 for sign, row, col in ends + starts) // 2

    def wanted(self, tile: Tile) -> bool:
        """Skip tiles below the diagonal, and pairs that are older than asked for."""
        if not self.within:
            return True
        return tile.col_stop - 1 - tile.row > self.exclusion and tile.col_stop > self.since

    def result_bytes(self) -> int:
        """Size of the profile."""
        return 16 * self.shape[0] * self.n_neighbors * (3 if self.sides else 1)

    @property
    def undivided_input(self) -> tuple[str, int]:
        """The lines."""
        return name_lines(self.a, *([] if self.b is None else [self.b]))

    def part(self, tile: Tile) -> Join:
        """Return itself: a tile needs both lines."""
        return self

    def start(self) -> JoinTotal:
        """Return empty lists."""
        n_windows = self.shape[0]
        n_lists = 2 if self.within and self.sides else 1
        endless, shape = np.broadcast_to(np.inf, n_windows), (n_windows, self.n_neighbors)
        none = Nearest(np.broadcast_to(np.inf, shape), np.broadcast_to(np.int64(-1), shape))
        limits = self.needed or [None] * n_lists
        hints = [endless if limit is None else limit.copy() for limit in limits][:n_lists]
        return JoinTotal([none] * n_lists, [endless] * n_lists, {}, [], hints, [])

    def with_incumbent(self, total: JoinTotal) -> Join:
        """Return the join with the distances found so far, and the place for results on devices."""
        hint = total.hints[0], total.hints[-1]
        found = hint if any(one.flags.writeable for one in hint) else None
        return replace(self, hint=found, device_accumulators=total.device_accumulators)

    def drain(self, total: JoinTotal, area: Tile) -> Iterator[tuple[Tile, JoinPart]]:
        """Return the results that workers have kept, merged by the first of them."""
        kept = [total.device_accumulators[number] for number in sorted(total.device_accumulators)]
        total.device_accumulators.clear()
        for other in kept[1:]:
            kept[0].take(other)
        for one in kept[:1]:
            yield from one.answer(area)

    def merge(self, total: JoinTotal, tile: Tile, result: JoinPart | None) -> None:
        """Take the neighbours of a tile; None where they are kept."""
        if result is None:
            return
        if result.lengths is not None:
            total.settled.append(result.lengths)
            return
        sides = [(0, tile.rows, result.rows, result.row_floor)]
        if self.within and result.cols is not None:
            sides.append((-1, tile.cols, result.cols, result.col_floor))
        for at, windows, nearest, floor in sides:
            mine, whole = total.lists[at], False
            if not mine.distances.flags.writeable:
                whole = nearest.distances.shape == mine.distances.shape
                mine = nearest if whole else mine
                # where others follow, results are not changed; and they may lie in memory that is
                # short, which has another owner
                last = tile.shape == self.shape and all(array.flags.owndata for array in nearest)
                mine = total.lists[at] = mine if whole and last else mine.copy()
            if not whole:
                mine.add(windows, nearest)
            if total.hints and tile.shape != self.shape:
                hint = _own(total.hints, at)[windows]
                np.minimum(hint, mine.distances[windows, -1], out=hint)
            if floor is None:
                continue
            if floor.shape == total.floors[at].shape and not total.floors[at].flags.writeable:
                total.floors[at] = floor
            else:
                floors = _own(total.floors, at)[windows]
                np.minimum(floors, floor, out=floors)

    def finish(self, total: JoinTotal, run: Callable[[Reduction], Any]) -> JoinFound:
        """Add constant and hidden windows, and measure windows whose lists may lack neighbours."""
        for lengths in total.settled:
            return JoinFound(*lengths[self.length], lengths=lengths)
        # no tile comes that they could help
        total = total._replace(hints=[])
        for tile, part in self.drain(total, Tile(0, self.shape[0], 0, self.shape[1])):
            self.merge(total, tile, part)
        for at, nearest in enumerate(total.lists):
            if not nearest.distances.flags.writeable:
                total.lists[at] = nearest.copy()
        a, b = self._kinds(run)
        directions = ["right", "left"] if len(total.lists) == 2 else ["both"]
        for nearest, direction in zip(total.lists, directions, strict=True):
            self._add_constant(nearest, direction, a, b)
        self._add_hidden(total, directions, a, b, run)
        for nearest, floor, direction in zip(*total[:2], directions, strict=True):
            self._measure_again(floor, nearest, direction, a, b, run)
        if len(total.lists) == 1:
            return JoinFound(*total.lists[0])
        right, left = total.lists
        both = right.copy()
        both.add(slice(None), left)
        return JoinFound(*both, left=left, right=right)

    def verify(self, answer: JoinFound, sample: Sample) -> Iterator[Check]:
        """Compare the neighbours of some windows with those by their whole distance profile."""
        if self.precision == "float32":
            return
        places = np.arange(self.shape[1])
        for window in sample(self.shape[0], 8) if places.size else []:
            values = plain_profile(self.a, window, self.other, self.length, self.normalize)
            if self.within:
                values[np.abs(places - window) <= self.exclusion] = np.inf
                values[np.maximum(places, window) < self.since] = np.inf
            if self.excluded is not None:
                values[self.excluded if self.within else slice(0)] = np.inf
                values[:] = np.inf if self.excluded[window] else values
            later, earlier = (
                [np.inf] * 2 if self.needed is None else [n[window] for n in self.needed]
            )
            sides = [("neighbours", answer[:2], values, min(later, earlier))]
            for name, nearest, far, limit in (
                ("earlier neighbours", answer.left, places > window, earlier),
                ("later neighbours", answer.right, places < window, later),
            ):
                if nearest is not None:
                    sides.append((name, nearest, np.where(far, np.inf, values), limit))
            for name, (distances, indices), profile, limit in sides:
                order = np.argsort(profile, kind="stable")[: self.n_neighbors]
                expected = [(profile[at], at) for at in order.tolist() if profile[at] < limit]
                found = [
                    (distance, place)
                    for distance, place in zip(distances[window], indices[window], strict=True)
                    if distance < limit
                ]
                yield Check(f"the {name} of window {window}", found, expected, found == expected)

    def _needed(self, direction: str) -> np.ndarray | float:
        """Distances from which on neighbours of windows may be missing."""
        return np.inf if self.needed is None else self.needed[direction == "left"]

    def _kinds(self, run: Callable[[Reduction], Any]) -> tuple[Kinds, Kinds]:
        """The kinds of windows along rows and columns; none is constant if compared as it is."""
        a = b = run(WindowKinds(self.a, self.length, self.normalize, self.other))
        if not self.within:
            b = run(WindowKinds(self.other, self.length, self.normalize, self.a))
        if not self.normalize:
            a, b = (kinds._replace(constant=np.zeros_like(kinds.constant)) for kinds in (a, b))
        if self.excluded is not None:
            taken = ~self.excluded
            a = a._replace(constant=a.constant & taken, finite=a.finite & taken)
        return a, a if self.within else b

    def _ranges(self, windows: np.ndarray, direction: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """First and last places, exclusive, of admissible neighbours: one run or two."""
        zero = np.zeros(len(windows), np.int64)
        end = np.full(len(windows), self.shape[1])
        if not self.within:
            return [(zero, end)]
        # an old window may only meet new ones
        oldest = np.where(windows < self.since, self.since, 0)
        before = (oldest, np.maximum(oldest, windows - self.exclusion))
        after = (np.maximum(oldest, windows + self.exclusion + 1), end)
        return {"left": [before], "right": [after], "both": [before, after]}[direction]

    def _first(self, places: np.ndarray, windows: np.ndarray, direction: str) -> np.ndarray:
        """The first admissible of some sorted places for each window, then -1."""
        chosen = np.full((len(windows), self.n_neighbors), -1, np.int64)
        if places.size == 0:
            return chosen
        wanted = np.arange(self.n_neighbors)[np.newaxis, :]
        passed = np.zeros((len(windows), 1), np.int64)
        for first, stop in self._ranges(windows, direction):
            low, high = np.searchsorted(places, first), np.searchsorted(places, stop)
            count = np.maximum(high - low, 0)[:, np.newaxis]
            here = (wanted >= passed) & (wanted < passed + count)
            at = np.where(here, low[:, np.newaxis] + wanted - passed, 0)
            chosen = np.where(here, places[at], chosen)
            passed = passed + count
        return chosen

    def _add_constant(self, nearest: Nearest, direction: str, a: Kinds, b: Kinds) -> None:
        """Constant windows are at 0 from each other and at sqrt(length) from all others."""
        unlike = float(np.sqrt(self.length))
        constant, flat = np.flatnonzero(b.constant), np.flatnonzero(a.constant)
        if constant.size == flat.size == 0:
            return
        far = np.flatnonzero(a.regular & (nearest.distances[:, -1] >= unlike))
        for windows, places, distance in (
            (far, constant, unlike),
            (flat, constant, 0.0),
            (flat, np.flatnonzero(b.regular), unlike),
        ):
            if windows.size and places.size:
                found = self._first(places, windows, direction)
                nearest.add(windows, Nearest(np.where(found < 0, np.inf, distance), found))

    def _add_hidden(
        self,
        total: JoinTotal,
        directions: list[str],
        a: Kinds,
        b: Kinds,
        run: Callable[[Reduction], Any],
    ) -> None:
        """Measure windows that no tile has searched, as neighbours of others and for themselves."""
        unsearched = np.flatnonzero(a.unsearched)
        for which in range(len(total.floors) if unsearched.size else 0):
            _own(total.floors, which)[unsearched] = 0.0
        hidden = np.flatnonzero(b.unsearched)
        lookers = np.flatnonzero(a.regular & ~a.unsearched) if hidden.size else hidden
        if lookers.size == 0:
            return
        batch = max(1, distances_at_a_time() // self.shape[0])
        for start in range(0, len(hidden), batch):
            some = hidden[start : start + batch]
            work = WindowDistances(self.other, some, self.a, self.length, self.normalize)
            found = run(work)
            distances = np.ascontiguousarray(found[:, lookers].T)
            for nearest, direction in zip(total.lists, directions, strict=True):
                admissible = self._admissible(lookers, some, direction)
                values = np.where(admissible, distances, np.inf)
                values, at = least_of_rows(values, min(self.n_neighbors, len(some)))
                nearest.add(lookers, Nearest(values, np.where(np.isinf(values), -1, some[at])))
            if self.within:
                # the same distances are those of the hidden windows to all others
                for nearest, floor, direction in zip(*total[:2], directions, strict=True):
                    self._settle(nearest, some, found.copy(), direction, b)
                    floor[some] = np.inf

    def _admissible(self, windows: np.ndarray, places: np.ndarray, direction: str) -> np.ndarray:
        """Which of some places are admissible neighbours of some windows."""
        admissible = np.zeros((len(windows), len(places)), bool)
        for first, stop in self._ranges(windows, direction):
            admissible |= (places >= first[:, np.newaxis]) & (places < stop[:, np.newaxis])
        return admissible

    def _settle(
        self, nearest: Nearest, windows: np.ndarray, distances: np.ndarray, direction: str, b: Kinds
    ) -> None:
        """Write the neighbours of windows whose distances to all others are given; overwrites."""
        n_windows = self.shape[1]
        admissible = self._admissible(windows, np.arange(n_windows), direction)
        distances[~(admissible & b.finite)] = np.inf
        k = min(self.n_neighbors, n_windows)
        values, places = least_of_rows(distances, k)
        nearest.distances[windows, :k] = values
        nearest.indices[windows, :k] = np.where(np.isinf(values), -1, places)

    def _may_lack(self, floor: np.ndarray, farthest: np.ndarray) -> np.ndarray:
        """Which windows may have nearer neighbours than the farthest that is listed."""
        return floor <= farthest

    def _measure_again(
        self,
        floor: np.ndarray,
        nearest: Nearest,
        direction: str,
        a: Kinds,
        b: Kinds,
        run: Callable[[Reduction], Any],
    ) -> None:
        """Measure windows that may have neighbours which no tile has listed against all others."""
        n_windows = self.shape[1]
        windows = np.flatnonzero(self._may_lack(floor, nearest.distances[:, -1]))
        if windows.size:
            windows = windows[(a.regular & (floor < self._needed(direction)))[windows]]
        enough = sum(
            np.maximum(stop - first, 0) for first, stop in self._ranges(windows, direction)
        )
        windows = windows[enough > 0]
        batch = max(1, 2**23 // max(1, n_windows))
        for start in range(0, len(windows), batch):
            some = windows[start : start + batch]
            distances = run(WindowDistances(self.a, some, self.other, self.length, self.normalize))
            self._settle(nearest, some, distances, direction, b)


def _own(arrays: list[np.ndarray], at: int) -> np.ndarray:
    """One of some arrays, in memory of its own from now on."""
    if not arrays[at].flags.writeable:
        arrays[at] = arrays[at].copy()
    return arrays[at]
