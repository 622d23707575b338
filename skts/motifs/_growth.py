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


class KnownNeighbors(NamedTuple):
    """The nearest neighbours of all windows of a line, as far as they are known.

    Places in the last series are counted with the points that it has lost, so that nothing has to
    be written anew when points leave.

    Attributes
    ----------
    distances, indices : ndarray of shape (n_known, n_windows)
        As of `Nearest`, a row for each rank: the first of all neighbours, in the order of distances
        and places; after those that are known, infinity and -1.
    limit : ndarray of shape (n_windows,)
        Neighbours at this distance or farther may be missing, and come after all that are known,
        but before later ones at the same distance; infinite where none is missing.
    oldest : ndarray of shape (n_windows,) or None
        The least of the places in the last series, `NONE` without one; None where points never
        leave.
    first : int
        Where the last series begins.
    lost_points : int
        Points that the last series has lost.
    suspects : ndarray or None
        Windows that may have lost all that were known; None for any.
    """

    distances: np.ndarray
    indices: np.ndarray
    limit: np.ndarray
    oldest: np.ndarray | None
    first: int
    lost_points: int = 0
    suspects: np.ndarray | None = None

    @classmethod
    def none(cls, n_windows: int, n_known: int, first: int) -> Self:
        """Return neighbours of windows that have none."""
        shape = n_known, n_windows
        return cls(
            *(np.full(shape, np.inf), np.full(shape, -1, np.int64), np.full(n_windows, np.inf)),
            *(None, first),
        )

    @classmethod
    def of(cls, found: Nearest, first: int) -> Self:
        """Take what a join of all windows has found."""
        distances, indices = (np.ascontiguousarray(each.T) for each in (found[0], found[1]))
        oldest = None if len(indices) == 1 else _oldest(indices, first)
        return cls(distances, indices, distances[-1].copy(), oldest, first)

    @property
    def n_known(self) -> int:
        """Neighbours that are known of a window at most."""
        return len(self.distances)

    @property
    def lost(self) -> np.ndarray:
        """The windows that have lost all neighbours that were known, and may have others."""
        some: Any = slice(None) if self.suspects is None else self.suspects
        lost = np.flatnonzero((self.indices[0, some] < 0) & (self.limit[some] < np.inf))
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
        first = self.first

        def laid(old: np.ndarray, nothing: float) -> np.ndarray:
            new = np.empty((*old.shape[:-1], windows.number), old.dtype)
            new[..., :first] = old[..., :first]
            new[..., first:since] = old[..., first + dropped :]
            new[..., since:] = nothing
            return new

        distances, limit = laid(self.distances, np.inf), laid(self.limit, np.inf)
        before = _oldest(self.indices, first) if self.oldest is None else self.oldest
        indices, oldest = laid(self.indices, -1), laid(before, NONE)
        lost_points = self.lost_points + dropped
        rows = np.flatnonzero(oldest < first + lost_points)
        values, places = distances.take(rows, axis=1), indices.take(rows, axis=1)
        left = np.arange(rows.size)
        while left.size:
            # what comes after the first that is gone moves up, in each window that has one
            some, at = values[:, left], places[:, left]
            gone = (at >= first) & (at < first + lost_points)
            after = np.logical_or.accumulate(gone, axis=0)
            np.copyto(some[:-1], some[1:].copy(), where=after[:-1])
            np.copyto(at[:-1], at[1:].copy(), where=after[:-1])
            moving = after[-1]
            some[-1, moving], at[-1, moving] = np.inf, -1
            values[:, left], places[:, left] = some, at
            left = left[np.count_nonzero(gone, axis=0) > 1]
        for new, old in ((distances, values), (indices, places)):
            for rank, row in enumerate(old):
                new[rank, rows] = row
        oldest[rows] = _oldest(places, first)
        return type(self)(distances, indices, limit, oldest, first, lost_points, rows)

    def add(self, new: NewNeighbors, since: int) -> None:
        """Take neighbours that a join with new windows has found, from `since` on."""
        distances, indices, limit = self[:3]
        self.write(slice(since, None), new.new)
        near = np.flatnonzero(new.distances < limit[new.windows])
        windows, ranks = new.windows[near], ranks_of_runs(new.windows[near])
        for rank in range(int(ranks.max(initial=-1)) + 1):
            # one more of each window, put in its place
            some = near[ranks == rank]
            rows, distance, place = new.windows[some], new.distances[some], new.indices[some]
            place = self._stored(place)
            values, places = distances.take(rows, axis=1), indices.take(rows, axis=1)
            later = (values > distance) | ((values == distance) & (places > place)) | (places < 0)
            # where all before are nearer, it comes here; the others come one later
            for at in range(self.n_known - 1, -1, -1):
                before = later[at - 1] if at else np.zeros(rows.size, bool)
                moved = rows[before]
                distances[at, moved] = values[at - 1, before]
                indices[at, moved] = places[at - 1, before]
                here = later[at] & ~before
                distances[at, rows[here]], indices[at, rows[here]] = distance[here], place[here]
        rows = windows[ranks == 0]
        # where there is no room, others are left out
        limit[rows] = np.minimum(limit[rows], distances[-1, rows])
        if self.oldest is not None:
            self.oldest[rows] = _oldest(indices.take(rows, axis=1), self.first)

    def write(self, windows: slice | np.ndarray, nearest: Nearest) -> None:
        """Write the neighbours of some windows."""
        k = nearest.distances.shape[1]
        self.distances[:k, windows] = nearest.distances.T
        self.indices[:k, windows] = places = self._stored(nearest.indices.T)
        self.limit[windows] = self.distances[-1, windows]
        if self.oldest is not None:
            self.oldest[windows] = _oldest(places, self.first)

    def nearest(self) -> Nearest:
        """Return the nearest neighbour of every window."""
        places = self.indices[0]
        if self.lost_points:
            places = np.where(places < self.first, places, places - self.lost_points)
        return Nearest(self.distances[0][:, np.newaxis].copy(), places[:, np.newaxis].copy())

    def _stored(self, places: np.ndarray) -> np.ndarray:
        """Places, counted with points that have been lost."""
        if self.lost_points == 0:
            return places
        return np.where(places < self.first, places, places + self.lost_points)


def _oldest(indices: np.ndarray, first: int) -> np.ndarray:
    """The least of the places in the last series, along the first axis; NONE without one."""
    # places before it, and -1, are large numbers without a sign, once less than `first`
    least: np.ndarray = (indices - first).view(np.uint64).min(axis=0)
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
        known.distances[0, here] = np.where(left, distances, np.inf)
        known.indices[0, here] = np.where(left, places[before], -1)
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
        needed = known[0].limit, known[-1].limit
        growth = compute(windows.growth(since=since, needed=needed, **options))
        names = ["right", "left"] if sides else ["both"]
        for one, new, side in zip(known, growth, names, strict=False):
            one.add(new, since)
            _search_again(compute, windows, one, one.lost, side)
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
