"""Motifs and discords among the windows of a line, from its profile or by MK."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..engines import (
    ConcatenatedSeries,
    GrowthJoin,
    Join,
    JoinFound,
    MotifPair,
    Reduction,
    WindowDistances,
    whole_windows,
)
from ._records import Discord, Motif

__all__ = [
    "EitherSearch",
    "PairSearch",
    "ProfileSearch",
    "WindowSet",
    "exclusion_of",
    "find_discords",
    "find_motifs",
    "length_of",
    "norm_of",
    "raise_no_pair",
    "separation_of",
]

#: Occurrences of a pair of equal windows may differ from it by rounding: times the norm.
#: see "equal occurrences" in docs/developer/numerics.rst
SAME = 1e-7
#: Distances that are looked at together, so that a batch of rows fits into memory.
BATCH = 2**22
#: Places, in the order of their distances, of which those that are taken are removed together.
AT_ONCE = 1024
#: Places around which windows are masked one after the other, in less time than all at once.
FEW = 256
#: Windows are many from a share of all on: then most of them are not sorted.
CROWDED = 8
#: Rows of distances that are measured for one pair before the whole profile is computed anew
#: without the masked windows: points that are compared, as a share of all pairs of windows.
REPROFILE = 1.0


def exclusion_of(exclusion: float | None, length: int, longest: int) -> int:
    """Trivial matches start within so many points: by default a quarter of the window.

    No two windows of one series, of whatever lengths, are farther apart than the first and last
    point of the longest: larger exclusions mean the same.
    """
    farthest = max(0, longest - 1)
    return min(_points(0.25 if exclusion is None else exclusion, length), farthest)


def length_of(window: float, shortest: int) -> int:
    """Points of a window: as they are, or a fraction of the shortest series, rounded up."""
    return max(1, _points(window, shortest))


def separation_of(separation: float | None, exclusion: int, length: int, longest: int) -> int:
    """Points beyond which later finds start: by default half of the window.

    A default is never below the exclusion.
    """
    if separation is None:
        return max(exclusion, exclusion_of(0.5, length, longest))
    return exclusion_of(separation, length, longest)


def _points(share: float, length: int) -> int:
    """Points as they are, or as a fraction of a window, rounded up."""
    if isinstance(share, Integral):
        return int(share)
    # see "shares" in docs/developer/numerics.rst
    return math.ceil(share * length - 1e-9)


def norm_of(points: np.ndarray) -> float:
    """Norm of a window, in the order of time; a power of two changes no bit of it."""
    return math.sqrt(float(np.cumsum(points * points)[-1]))


class WindowSet(NamedTuple):
    """The windows of one length on a line, and how they are compared.

    Attributes
    ----------
    pool : ConcatenatedSeries
        The line.
    length : int
        Points of a window.
    exclusion : int
        Windows that start so near to each other are no pair.
    separation : int
        A further motif or discord starts farther than this from all that belongs to earlier ones.
    normalize : bool
        Whether windows are z-normalised.
    precision : str
        As `Join` has it.
    """

    pool: ConcatenatedSeries
    length: int
    exclusion: int
    separation: int
    normalize: bool = True
    precision: str = "auto"

    @property
    def number(self) -> int:
        """How many there are, those that touch gaps included."""
        return self.pool.n_windows(self.length)

    def finite(self, since: int) -> np.ndarray:
        """Which windows from a place on are finite."""
        return whole_windows(np.isfinite(self.pool.points[since:]), self.length)

    def join(self, **options: Any) -> Join:
        """The work of a profile."""
        return Join(
            self.pool,
            None,
            self.length,
            exclusion=self.exclusion,
            normalize=self.normalize,
            precision=self.precision,
            **options,
        )

    def growth(self, since: int, **options: Any) -> GrowthJoin:
        """The work of a profile that has grown: pairs with windows from `since` on."""
        return GrowthJoin(
            self.pool,
            None,
            self.length,
            exclusion=self.exclusion,
            normalize=self.normalize,
            precision=self.precision,
            # a last series that is shorter than a window has none
            since=min(since, self.number),
            **options,
        )

    def rows(self, positions: Sequence[int] | np.ndarray) -> WindowDistances:
        """The work of comparing some windows with all."""
        positions = np.asarray(positions, np.int64)
        return WindowDistances(self.pool, positions, self.pool, self.length, self.normalize)

    def measure(
        self, compute: Callable[[Reduction], Any], positions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """Distances of some windows to all."""
        found: np.ndarray = compute(self.rows(positions))
        return found

    def near(self, position: int | np.integer) -> slice:
        """Windows that start so near that they are no pair with this one."""
        return _around(position, self.exclusion)

    def taken(self, position: int | np.integer) -> slice:
        """Windows that start too near to something found at a place to be found after it."""
        return _around(position, self.separation)

    def norm(self, position: int) -> float:
        """Norm of a window as it is compared: a z-normalised one has that of its length."""
        if self.normalize:
            return math.sqrt(self.length)
        return norm_of(self.pool.points[position : position + self.length])

    def values(self, positions: Sequence[int] | np.ndarray) -> np.ndarray:
        """Points of windows, shape (n_positions, length)."""
        points = self.pool.points
        return np.array([points[p : p + self.length] for p in positions]).reshape(-1, self.length)


def _around(position: int | np.integer, reach: int) -> slice:
    """Windows that start at most so far from a place."""
    return slice(max(0, int(position) - reach), int(position) + reach + 1)


def _ascending(values: np.ndarray) -> np.ndarray:
    """Places of values in ascending order, equal ones in their own.

    NumPy's unstable sort is many times as fast; few values are equal, as a rule.
    """
    order = np.argsort(values)
    ordered = values[order]
    if (ordered[1:] == ordered[:-1]).any():
        return np.argsort(values, kind="stable")
    return order


def _apart(places: np.ndarray, exclusion: int, n_windows: int) -> np.ndarray:
    """Take places in their order, but none within an exclusion of one taken before.

    Of single bytes Python reads one in a third of the time of one in an array; after the first of
    many places, arrays tell which of the others are left. There is room before the first window and
    behind the last one, so that what is around a place need not be cut off.
    """
    reach = min(exclusion, n_windows)
    width = 2 * reach + 1
    free, around, taken = bytearray(b"\1" * (n_windows + 2 * reach)), bytes(width), []
    left = np.frombuffer(free, bool)[reach:]
    for begin in range(0, places.size, AT_ONCE):
        some = places[begin : begin + AT_ONCE]
        for place in some[left[some]].tolist():
            if free[place + reach]:
                taken.append(place)
                free[place : place + width] = around
    return np.array(taken, np.int64)


def _least_beside(values: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """The least of so many values before each place, and behind it, from runs of 1, 2, 4, ..."""
    least = np.full(values.size + 2 * reach, np.inf)
    least[reach : reach + values.size] = values
    run = 1
    while run < reach:
        step = min(run, reach - run)
        least, run = np.minimum(least[:-step], least[step:]), run + step
    return least[: values.size], least[reach + 1 :][: values.size]


def _around_any(places: np.ndarray, reach: int, n_windows: int) -> np.ndarray:
    """Which windows start at most so far from any of some places."""
    first, stop = np.maximum(places - reach, 0), np.minimum(places + reach + 1, n_windows)
    changes = np.bincount(first, minlength=n_windows + 1)
    changes -= np.bincount(stop, minlength=n_windows + 1)
    around: np.ndarray = np.cumsum(changes[:n_windows]) > 0
    return around


def _nearest_apart(distances: np.ndarray, near: np.ndarray, exclusion: int) -> np.ndarray:
    """Take windows, nearest first, but none within an exclusion of one taken before.

    Of many, those that come before all around them are taken first: in any order none of them
    is in the way of another, and few are left to be sorted.
    """
    n_windows = distances.size
    if exclusion == 0 or CROWDED * near.size < n_windows:
        return _apart(near[_ascending(distances[near])], exclusion, n_windows)
    reach, left = min(exclusion, n_windows), np.full(n_windows, np.inf)
    left[near] = distances[near]
    before, behind = _least_beside(left, reach)
    # of equal ones the earlier counts
    first = np.flatnonzero((left < before) & (left <= behind) & (left < np.inf))
    left[_around_any(first, reach, n_windows)] = np.inf
    rest = np.flatnonzero(left < np.inf)
    rest = _apart(rest[_ascending(left[rest])], exclusion, n_windows)
    taken = np.sort(np.concatenate([first, rest]))
    return taken[_ascending(distances[taken])]


class _Pair(NamedTuple):
    """The nearest two windows, the earlier one first."""

    distance: float
    first: int
    second: int


class _GivenUp(Exception):
    """MK is likely to take longer than a profile."""


class PairSearch:
    """The best pair of windows that are not masked, found by MK every time.

    Parameters
    ----------
    windows : WindowSet
        Where to search.
    compute : callable
        Runs a reduction.
    n_references : int
        Reference windows.
    random_state : RandomState
        Draws them.
    """

    #: Whether MK gives up where a profile is likely to take less time.
    allow_give_up = False
    #: Channels of the pair whose occurrences were found last; None where there is one channel.
    channels: np.ndarray | None = None

    def __init__(
        self,
        windows: WindowSet,
        compute: Callable[[Reduction], Any],
        n_references: int = 0,
        random_state: np.random.RandomState | None = None,
    ) -> None:
        self.windows = windows
        self.masked = np.zeros(windows.number, bool)
        self.pruned: list[float] = []
        self._compute = compute
        self._n_references = n_references
        self._random_state: Any = random_state
        self._latest: _Pair | None = None

    def best_pair(self) -> _Pair | None:
        """The nearest admissible pair; None where there is none."""
        if self._latest is None or self.masked[[self._latest.first, self._latest.second]].any():
            windows = self.windows
            found = self._compute(
                MotifPair(
                    windows.pool,
                    windows.length,
                    windows.exclusion,
                    normalize=windows.normalize,
                    excluded=self.masked.copy(),
                    n_references=self._n_references,
                    seed=int(self._random_state.randint(2**31 - 1)),
                    allow_give_up=self.allow_give_up,
                )
            )
            if found.given_up:
                raise _GivenUp
            self.pruned.append(found.pruned)
            if found.first < 0:
                return None
            self._latest = _Pair(found.distance, found.first, found.second)
        return self._latest

    def occurrences(self, pair: _Pair, radius: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Windows near the first of a pair, best first, their distances, and how far is near."""
        row = self.windows.measure(self._compute, [pair.first])[0]
        return self._take_apart(row, pair, radius, SAME * self.windows.norm(pair.first))

    def _take_apart(
        self, row: np.ndarray, pair: _Pair, radius: float, least: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Windows near the first of a pair that start apart, given its distances to all."""
        row[self.masked] = np.inf
        # the certified distance, also where the profile was not certified
        distance = row[pair.second]
        limit = radius * distance if distance > 0 else least
        near = np.flatnonzero(row <= limit)
        taken = _nearest_apart(row, near, self.windows.exclusion)
        return taken, row[taken], float(limit)

    def mask(self, positions: np.ndarray) -> None:
        """Take all windows out that start within the separation from one of these places."""
        n = self.masked.size
        if len(positions) < FEW:
            for position in positions:
                self.masked[self.windows.taken(position)] = True
            return
        self.masked |= _around_any(positions, min(self.windows.separation, n), n)


class ProfileSearch(PairSearch):
    """The best pair of windows that are not masked, from a profile.

    Masking can only take neighbours away, so the profile of all windows is a lower bound. Windows
    are looked at in its order: one whose neighbour is still there has its distance; the others are
    compared with all that is left, and wait for their turn with what comes out.

    Parameters
    ----------
    windows : WindowSet
        Where to search.
    compute : callable
        Runs a reduction.
    profile : JoinFound
        The profile of all windows. Of one that a limit of time cut short, the pairs count that were
        compared, and windows that lose their neighbour are measured as long as that takes no longer
        than a profile would.
    """

    def __init__(
        self, windows: WindowSet, compute: Callable[[Reduction], Any], profile: JoinFound
    ) -> None:
        super().__init__(windows, compute)
        self._is_whole = profile.share == 1
        self._take(profile)

    def _take(self, profile: JoinFound) -> None:
        """Take the values of a profile as bounds."""
        self._bound, self._neighbor = profile.distances[:, 0].copy(), profile.indices[:, 0].copy()

    def best_pair(self) -> _Pair | None:
        """The nearest admissible pair; None where there is none."""
        windows, n = self.windows, self.windows.number
        self._bound[self.masked] = np.inf
        batch = measured = 1
        while n:
            best = int(np.argmin(self._bound))
            distance, neighbor = float(self._bound[best]), int(self._neighbor[best])
            if distance == np.inf:
                break
            if not self.masked[neighbor]:
                return _Pair(distance, min(best, neighbor), max(best, neighbor))
            if measured * windows.length > REPROFILE * n and not self._is_whole:
                self._bound[self.masked[self._neighbor]] = np.inf
                continue
            if measured * windows.length > REPROFILE * n:
                self._take(self._compute(windows.join(excluded=self.masked.copy())))
                continue
            stale = np.flatnonzero((self._bound < np.inf) & self.masked[self._neighbor])
            stale = stale[np.argsort(self._bound[stale], kind="stable")[:batch]]
            self._measure(stale)
            measured += len(stale)
            batch = max(1, min(2 * batch, BATCH // n))
        return None

    def _measure(self, positions: np.ndarray) -> None:
        """Find the nearest neighbours of some windows among those that are left."""
        rows = self.windows.measure(self._compute, positions)
        rows[:, self.masked] = np.inf
        for position, row in zip(positions, rows, strict=True):
            row[self.windows.near(position)] = np.inf
            self._neighbor[position] = nearest = int(np.argmin(row))
            self._bound[position] = row[nearest]


class EitherSearch(ProfileSearch):
    """The best pair of windows that are not masked, by MK while that is likely to be faster.

    Once MK gives up, there is a profile, and the rest comes from that, if the budget has room for
    one.

    Parameters
    ----------
    windows : WindowSet
        Where to search.
    compute : callable
        Runs a reduction.
    n_references : int
        Reference windows of MK.
    random_state : RandomState
        Draws them.
    """

    allow_give_up = True

    def __init__(
        self,
        windows: WindowSet,
        compute: Callable[[Reduction], Any],
        n_references: int,
        random_state: np.random.RandomState,
    ) -> None:
        PairSearch.__init__(self, windows, compute, n_references, random_state)
        self._profiled, self._is_whole = False, True

    def best_pair(self) -> _Pair | None:
        """The nearest admissible pair; None where there is none."""
        if not self._profiled:
            try:
                return PairSearch.best_pair(self)
            except _GivenUp:
                try:
                    self._take(self._compute(self.windows.join(excluded=self.masked.copy())))
                    self._profiled = True
                except MemoryError:
                    # a profile needs more of a line than MK does
                    self.allow_give_up = False
                    return PairSearch.best_pair(self)
        return super().best_pair()


def raise_no_pair(wanted: str, windows: WindowSet, n_samples: int = 1) -> NoReturn:
    """Say that no two windows can be compared, so that nothing is known of repeats."""
    samples = f"in the n_samples = {n_samples} series " if n_samples > 1 else ""
    raise ValueError(
        f"There is no {wanted}: no two windows of {windows.length} points {samples}are finite and "
        f"start more than {windows.exclusion} points apart."
    )


def find_motifs(
    searches: Sequence[PairSearch], n_motifs: int, max_matches: int | None, radius: float
) -> list[Motif]:
    """Find the best pairs, each apart from all occurrences of those before.

    Of several lengths the pair counts whose distance over the square root of the length is least,
    and of equal ones the length that comes first.
    """
    motifs: list[Motif] = []
    while len(motifs) < n_motifs:
        best = None
        for search in searches:
            pair = search.best_pair()
            if pair is None:
                continue
            rank = pair.distance / math.sqrt(search.windows.length)
            if best is None or rank < best[0]:
                best = rank, search, pair
        if best is None:
            break
        _, search, pair = best
        windows = search.windows
        places, distances, limit = search.occurrences(pair, radius)
        kept = slice(max_matches)
        series, positions = windows.pool.locate(places[kept])
        found = positions, distances[kept], windows.values(places[kept]), series
        motifs.append(Motif(windows.length, *found, limit, len(places), search.channels))
        for each in searches if len(motifs) < n_motifs else ():
            each.mask(places)
    return motifs


def find_discords(
    windows: Sequence[Any], profiles: Sequence[JoinFound], n_discords: int
) -> list[Discord]:
    """Find the windows whose nearest neighbour is farthest, each apart from those before.

    Of several lengths those count whose distance over the square root of the length is largest.
    """
    ranks = []
    for each, profile in zip(windows, profiles, strict=True):
        distances = profile.distances[:, 0] / math.sqrt(each.length)
        ranks.append(np.where(profile.indices[:, 0] < 0, -np.inf, distances))
    discords: list[Discord] = []
    while len(discords) < n_discords:
        tops = [int(np.argmax(rank)) if rank.size else -1 for rank in ranks]
        heights = [
            rank[top] if rank.size else -np.inf for rank, top in zip(ranks, tops, strict=True)
        ]
        which = int(np.argmax(heights))
        if heights[which] == -np.inf:
            break
        each, profile, place = windows[which], profiles[which], tops[which]
        series, position = each.pool.locate(np.array([place, profile.indices[place, 0]]))
        discords.append(
            Discord(
                each.length,
                int(position[0]),
                float(profile.distances[place, 0]),
                each.values([place])[0],
                int(series[0]),
                int(position[1]),
                int(series[1]),
            )
        )
        for other, rank in zip(windows, ranks, strict=True):
            rank[other.taken(place)] = -np.inf
    return discords
