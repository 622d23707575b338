"""Profiles of a line whose last series grows at its end and loses points at its beginning.

Of every window the nearest neighbours are known, up to a limit (`KnownNeighbors`). New ones join
them where they are nearer than the limit, old ones leave, and as long as one is left, the first is
the nearest of all. A window that has none left is searched again.

With one known neighbour a window, about as many windows lose it as points leave. With `KEPT`, as
many come as leave while the series stays alike, and few windows ever lose all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np

from ..engines import (
    JoinFound,
    Nearest,
    NewNeighbors,
    Reduction,
    least_of_rows,
    ranks_of_runs,
)
from ._records import SeriesProfile
from ._search import BATCH, WindowSet

__all__ = ["KEPT", "KnownNeighbors", "check_kept", "grow_profile", "on_line"]

#: Neighbours that are known of each window where points leave. While all points of a stream of
#: noise are replaced, 1,000 windows are searched again 1,100 times with one known neighbour, 110
#: times with 4, 28 with 6, 5 with 8, 1 or 2 with 10; and each makes a join take longer.
KEPT = 8
#: Where more windows lose their neighbour for each one that leaves, many have the same ones, such
#: as the first of those that are constant, and lose several as soon as one.
SHARED = 4
#: Share of new windows from which on all pairs are compared for one neighbour in less time than the
#: pairs of the new ones for as many as are kept.
MANY = 1 / 8
#: Pairs of windows that a join compares in the time of one product of points, where a window is
#: compared with all others by itself.
JOINED = 1.0
#: The oldest place of a window that has none.
NONE = 2**62
#: New windows look for neighbours within the largest limit of so many windows before them.
RECENT = 1024
#: And so much beyond it, as a share of what is between the median and the largest.
BEYOND = 0.25
#: Lists are copied to memory with room for one more of so many windows.
SPARE = 4


class Memory(NamedTuple):
    """Lists of the windows of a line, and room for those of later windows.

    Windows that come are written behind the others, whose lists change in place: nothing that stays
    is copied. Arrays of an earlier time are of no use from then on, as `latest` tells.

    Attributes
    ----------
    distances, indices : ndarray of shape (n_rows, n_known)
    limit, oldest : ndarray of shape (n_rows,)
        See `KnownNeighbors`, with rows for windows that have left, and that have not yet come.
    begin, stop : int
        Rows of the windows that are there.
    latest : list of int
        `stop`, until later windows are written.
    """

    distances: np.ndarray
    indices: np.ndarray
    limit: np.ndarray
    oldest: np.ndarray
    begin: int
    stop: int
    latest: list[int]

    @classmethod
    def of(cls, found: Nearest, first: int) -> Self:
        """Take what a join of all windows has found, without room for others."""
        (distances, indices), n_windows = found[:2], len(found[0])
        limit, oldest = distances[:, -1].copy(), _oldest(indices.T, first)
        return cls(distances, indices, limit, oldest, 0, n_windows, [n_windows])

    @property
    def lists(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The arrays of the windows that are there."""
        rows = slice(self.begin, self.stop)
        return self.distances[rows], self.indices[rows], self.limit[rows], self.oldest[rows]

    def moved(self, first: int, since: int, dropped: int, n_windows: int) -> Self:
        """Return room for a line whose windows before `since` are those that are left.

        Some have left from `first` on. Of new ones nothing is known.
        """
        begin, stop = self.begin + dropped, self.begin + dropped + n_windows
        if first > 0 or stop > len(self.limit):
            rows, begin, stop = n_windows + n_windows // SPARE, 0, n_windows

            def laid(old: np.ndarray) -> np.ndarray:
                new = np.zeros((rows, *old.shape[1:]), old.dtype)
                new[:first], new[first:since] = old[:first], old[first + dropped :]
                return new

            distances, indices, limit, oldest = map(laid, self.lists)
            moved = type(self)(distances, indices, limit, oldest, begin, stop, [stop])
        else:
            self.latest.pop()
            moved = self._replace(begin=begin, stop=stop, latest=[stop])
        for array, nothing in zip(moved.lists, (np.inf, -1, np.inf, NONE), strict=True):
            array[since:] = nothing
        return moved


class KnownNeighbors(NamedTuple):
    """The nearest neighbours of all windows of a line, as far as they are known.

    Places in the last series are counted with the points that it has lost, so that nothing has to
    be written anew when points leave.

    Attributes
    ----------
    memory : Memory
        What holds the lists.
    first : int
        Where the last series begins.
    lost_points : int
        Points that the last series has lost.
    suspects : ndarray or None
        Windows that may have lost all that were known; None for any.
    """

    memory: Memory
    first: int
    lost_points: int = 0
    suspects: np.ndarray | None = None

    @classmethod
    def none(cls, n_windows: int, n_known: int, first: int) -> Self:
        """Return neighbours of windows that have none."""
        return cls.of(Nearest.none(n_windows, n_known), first)

    @classmethod
    def of(cls, found: Nearest, first: int) -> Self:
        """Take what a join of all windows has found."""
        return cls(Memory.of(found, first), first)

    @property
    def overwritten(self) -> bool:
        """Whether those of a later time are in their memory."""
        return not self.memory.latest

    @property
    def distances(self) -> np.ndarray:
        """As of `Nearest`, in the order of distances and places; infinity after those known."""
        return self.memory.lists[0]

    @property
    def indices(self) -> np.ndarray:
        """As of `Nearest`; -1 after those that are known."""
        return self.memory.lists[1]

    @property
    def limit(self) -> np.ndarray:
        """Distance of each window from which on neighbours may be missing.

        They come after all that are known, but before later ones at the same distance. Infinite
        where none is missing.
        """
        return self.memory.lists[2]

    @property
    def oldest(self) -> np.ndarray:
        """A bound of the places of each window in the last series: none is less."""
        return self.memory.lists[3]

    @property
    def n_known(self) -> int:
        """Neighbours that are known of a window at most."""
        return self.distances.shape[1]

    @property
    def lost(self) -> np.ndarray:
        """The windows that have lost all neighbours that were known, and may have others."""
        some: Any = slice(None) if self.suspects is None else self.suspects
        lost = np.flatnonzero((self.indices[some, 0] < 0) & (self.limit[some] < np.inf))
        return lost if self.suspects is None else self.suspects[lost]

    def moved(self, windows: WindowSet, since: int, dropped: int) -> Self:
        """Return what is left of them on a line that has changed at the ends of its last series.

        Parameters
        ----------
        windows : WindowSet
            The windows of that line; the last series had and has one.
        since : int
            Where the first new window starts.
        dropped : int
            Points that the last series has lost at its beginning.
        """
        first, stop = self.first, self.first + self.lost_points + dropped
        memory = self.memory.moved(first, since, dropped, windows.number)
        distances, indices, _, oldest = memory.lists
        rows = np.flatnonzero(oldest < stop)
        values, places = _by_rank(distances, rows), _by_rank(indices, rows)
        gone = (places >= first) & (places < stop)
        for rank in range(self.n_known - 1, -1, -1):
            # what comes after one that is gone moves up
            some = np.flatnonzero(gone[rank])
            for lists, nothing in ((values, np.inf), (places, -1)):
                lists[rank:-1, some] = lists[rank + 1 :, some]
                lists[-1, some] = nothing
        distances[rows], indices[rows] = values.T, places.T
        oldest[rows] = _oldest(places, first)
        return type(self)(memory, first, self.lost_points + dropped, rows)

    def add(self, new: NewNeighbors, since: int) -> None:
        """Take neighbours that a join with new windows has found, from `since` on."""
        distances, indices, limit, oldest = self.memory.lists
        expected = limit[since:].copy()
        far = new.new.distances >= expected[:, np.newaxis]
        mine = Nearest(np.where(far, np.inf, new.new.distances), np.where(far, -1, new.new.indices))
        self.write(slice(since, None), mine)
        np.minimum(limit[since:], expected, out=limit[since:])
        near = np.flatnonzero(new.distances < limit[new.windows])
        windows, ranks = new.windows[near], ranks_of_runs(new.windows[near])
        for rank in range(int(ranks.max(initial=-1)) + 1):
            # one more of each window, put in its place
            some = near[ranks == rank]
            rows, places = new.windows[some], self._stored(new.indices[some])
            values, known = _by_rank(distances, rows), _by_rank(indices, rows)
            distance = new.distances[some]
            later = (values > distance) | (known < 0) | ((values == distance) & (known > places))
            for lists, one in ((values, distance), (known, places)):
                before = lists[:-1].copy()
                np.copyto(lists, one, where=later)
                np.copyto(lists[1:], before, where=later[:-1])
            distances[rows], indices[rows] = values.T, known.T
            places = np.where(places < self.first, NONE, places)
            oldest[rows] = np.minimum(oldest[rows], places)
        rows = windows[ranks == 0]
        # where there is no room, others are left out
        limit[rows] = np.minimum(limit[rows], distances[rows, -1])

    def expect(self, since: int, finite: np.ndarray) -> None:
        """Look for neighbours of new windows within what holds those of windows before them.

        Limits without which most pairs that are found first would be replaced by nearer ones.
        """
        limit = self.limit
        recent = limit[max(self.first, since - RECENT) : since]
        recent = recent[recent < np.inf]
        if recent.size:
            # some more: what is found within it never raises the limits of later windows
            most = recent.max()
            limit[since:][finite] = most + (most - np.median(recent)) * BEYOND

    def scarce(self, since: int) -> np.ndarray:
        """New windows of which less than half as many neighbours are known as may be."""
        few = self.indices[since:, self.n_known // 2 - 1] < 0
        return since + np.flatnonzero(few & (self.limit[since:] < np.inf))

    def write(self, windows: slice | np.ndarray, nearest: Nearest) -> None:
        """Write the neighbours of some windows."""
        k = nearest.distances.shape[1]
        distances, indices, limit, oldest = self.memory.lists
        distances[windows, :k] = nearest.distances
        indices[windows, :k] = places = self._stored(nearest.indices)
        limit[windows] = distances[windows, -1]
        oldest[windows] = _oldest(places.T, self.first)

    def nearest(self) -> Nearest:
        """Return the nearest neighbour of every window."""
        places = self.indices[:, :1].copy()
        if self.lost_points:
            places -= np.where(places < self.first, 0, self.lost_points)
        return Nearest(self.distances[:, :1].copy(), places)

    def _stored(self, places: np.ndarray) -> np.ndarray:
        """Places, counted with points that have been lost."""
        if self.lost_points == 0:
            return places
        return np.where(places < self.first, places, places + self.lost_points)


def _by_rank(lists: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Lists of some windows, a row for each rank."""
    return np.ascontiguousarray(lists[rows].T)


def _oldest(places: np.ndarray, first: int) -> np.ndarray:
    """The least of the places in the last series, along the first axis; NONE without one."""
    # places before it, and -1, are large numbers without a sign, once less than `first`
    least: np.ndarray = (places - first).view(np.uint64).min(axis=0)
    return np.where(least >> np.uint64(63), NONE, least.view(np.int64) + first)


def on_line(windows: WindowSet, profile: SeriesProfile, dropped: int = 0) -> KnownNeighbors:
    """Lay a profile, a row for each series, on a line that has changed since.

    Parameters
    ----------
    windows : WindowSet
        The windows of that line.
    profile : SeriesProfile
        The profile of before.
    dropped : int, default 0
        Points that the last series has lost at its beginning.

    Returns
    -------
    KnownNeighbors
        One neighbour of each window that was there before.
    """
    pool = windows.pool
    known = KnownNeighbors.none(windows.number, 1, int(pool.starts[-1]))
    last = len(pool.starts) - 1
    starts = profile.indices - np.where(profile.series == last, dropped, 0)
    places = pool.starts[np.maximum(profile.series, 0)] + starts
    there = (profile.indices >= 0) & (starts >= 0)
    for row, start in enumerate(pool.starts):
        first = dropped if row == last else 0
        count = max(0, int(pool.lengths[row]) - windows.length + 1)
        count = max(0, min(count, profile.distances.shape[1] - first))
        here, before = slice(start, start + count), (row, slice(first, first + count))
        distances, left = profile.distances[before], there[before]
        known.limit[here] = distances
        known.distances[here, 0] = np.where(left, distances, np.inf)
        known.indices[here, 0] = np.where(left, places[before], -1)
    known.oldest[:] = _oldest(known.indices.T, known.first)
    return known


def grow_profile(
    compute: Callable[[Reduction], Any],
    windows: WindowSet,
    since: int,
    old: list[KnownNeighbors] | None,
    sides: bool,
    n_left: int = 0,
) -> tuple[JoinFound, list[KnownNeighbors]]:
    """Return the profile of a line, from what was known of its windows.

    Parameters
    ----------
    compute : callable
        Runs a reduction.
    windows : WindowSet
        The windows of the line.
    since : int
        Where the first new window starts.
    old : list of KnownNeighbors or None
        What is left of the neighbours of before, later and earlier ones apart if `sides`;
        overwritten. None to compute all of it.
    sides : bool
        Whether later and earlier neighbours are searched apart.
    n_left : int, default 0
        Windows that have left.

    Returns
    -------
    profile : JoinFound
        The same as of the whole line at once.
    known : list of KnownNeighbors
        For the next time.
    """
    n, n_new = windows.number, windows.number - since
    known = old or []
    n_known = known[0].n_known if known else 1
    n_lost = max((one.lost.size for one in known), default=0)
    anew = not known or since == 0 or JOINED * n_lost * windows.length + n_new > n / 2
    if n_new > MANY * n or (anew and n_known > 1):
        n_known = 1
    elif n_left and not sides and n_lost <= SHARED * n_left:
        # of sides, later neighbours never leave and earlier ones never come
        n_known = max(n_known, KEPT)
    if anew or n_known != known[0].n_known:
        known = []
    options: dict[str, Any] = {"sides": sides, "n_neighbors": n_known}
    if known:
        if n_known > 1:
            known[0].expect(since, windows.finite(since))
        needed = known[0].limit, known[-1].limit
        growth = compute(windows.growth(since=since, needed=needed, **options))
        names = ["right", "left"] if sides else ["both"]
        for one, new, side in zip(known, growth, names, strict=False):
            one.add(new, since)
            lost = one.lost
            if n_known > 1:
                lost = np.concatenate([lost, _join_again(compute, windows, one, since, options)])
            _search_again(compute, windows, one, lost, side)
    else:
        found = compute(windows.join(**options))
        parts = [found.right, found.left] if sides else [found]
        known = [KnownNeighbors.of(one, int(windows.pool.starts[-1])) for one in parts]
    nearest = [one.nearest() for one in known]
    if not sides:
        return JoinFound(*nearest[0]), known
    both = nearest[0].copy()
    both.add(slice(None), nearest[1])
    return JoinFound(*both, left=nearest[1], right=nearest[0]), known


def _join_again(
    compute: Callable[[Reduction], Any],
    windows: WindowSet,
    known: KnownNeighbors,
    since: int,
    options: dict[str, Any],
) -> np.ndarray:
    """Return new windows of which too few neighbours are known, joined anew if they are many."""
    scarce = known.scarce(since)
    if JOINED * scarce.size * windows.length <= windows.number - since:
        return scarce
    # neighbours of others are not needed
    first, needed = int(scarce[0]), np.zeros(windows.number)
    needed[first:] = np.inf
    found = compute(windows.growth(since=first, needed=(needed, needed), **options))
    known.write(slice(first, None), found.later.new)
    return scarce[:0]


def _search_again(
    compute: Callable[[Reduction], Any],
    windows: WindowSet,
    known: KnownNeighbors,
    places: np.ndarray,
    side: str,
) -> None:
    """Compare windows with all others, and write their nearest neighbours."""
    batch = max(1, BATCH // windows.number)
    for start in range(0, places.size, batch):
        some = places[start : start + batch]
        rows = compute(windows.rows(some))
        for place, row in zip(some.tolist(), rows, strict=True):
            row[windows.near(place)] = np.inf
            if side == "left":
                row[place:] = np.inf
            elif side == "right":
                row[:place] = np.inf
        k = min(known.n_known, windows.number)
        distances, nearest = least_of_rows(rows, k)
        known.write(some, Nearest(distances, np.where(np.isinf(distances), -1, nearest)))


def check_kept(max_points: Any, longest: int) -> None:
    """Refuse to keep less than a window."""
    whole = isinstance(max_points, Integral) and not isinstance(max_points, bool)
    if max_points is not None and not (whole and max_points >= longest):
        raise ValueError(
            f"max_points={max_points!r}: it is a number of points, at least one window of "
            f"{longest}, or None."
        )
