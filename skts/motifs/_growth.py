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

from ..engines import JoinFound, Nearest, Reduction, least_of_rows
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


class KnownNeighbors(NamedTuple):
    """The nearest neighbours of all windows of a line, as far as they are known.

    Attributes
    ----------
    distances, indices : ndarray of shape (n_windows, n_known)
        As of `Nearest`: the first of all neighbours, in the order of distances and places; after
        those that are known, infinity and -1.
    limit : ndarray of shape (n_windows,)
        Neighbours at this distance or farther may be missing, and come after all that are known,
        but before later ones at the same distance; infinite where none is missing.
    """

    distances: np.ndarray
    indices: np.ndarray
    limit: np.ndarray

    @classmethod
    def none(cls, n_windows: int, n_known: int) -> Self:
        """Return neighbours of windows that have none."""
        return cls(*Nearest.none(n_windows, n_known), np.full(n_windows, np.inf))

    @classmethod
    def of(cls, found: Nearest | JoinFound) -> Self:
        """Take what a join of all windows has found."""
        return cls(found.distances, found.indices, found.distances[:, -1].copy())

    @property
    def n_known(self) -> int:
        """Neighbours that are known of a window at most."""
        return self.distances.shape[1]

    @property
    def lost(self) -> np.ndarray:
        """Which windows have lost all neighbours that were known, and may have others."""
        return (self.indices[:, 0] < 0) & (self.limit < np.inf)

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
        first = int(windows.pool.starts[-1])
        shape = windows.number, self.n_known
        distances, indices, limit = np.empty(shape), np.empty(shape, np.int64), np.empty(shape[0])
        distances[since:], indices[since:], limit[since:] = np.inf, -1, np.inf
        # of places in the last series, from `first` on; what has left comes below it
        for old, here in (
            (slice(first), slice(first)),
            (slice(first + dropped, None), slice(first, since)),
        ):
            distances[here], limit[here] = self.distances[old], self.limit[old]
            places = self.indices[old]
            moved = np.subtract(places, dropped, out=indices[here])
            np.maximum(moved, np.minimum(places, first - 1) if first else -1, out=moved)
            own = places - first if first else places
            # negative ones are large numbers without a sign
            losing = np.zeros(len(places), bool)
            losing[np.flatnonzero(own.view(np.uint64) < dropped) // self.n_known] = True
            rows = np.flatnonzero(losing)
            gone = own[rows].view(np.uint64) < dropped
            # what is left moves up, in its order
            order = np.argsort(gone, axis=1, kind="stable")
            for values, nothing in (distances[here], np.inf), (indices[here], -1):
                left = np.where(gone, nothing, values[rows])
                values[rows] = np.take_along_axis(left, order, axis=1)
        return type(self)(distances, indices, limit)

    def add(self, new: Nearest | JoinFound, since: int) -> None:
        """Take neighbours that a join with new windows has found, from `since` on."""
        distances, indices, limit = self
        distances[since:], indices[since:] = new.distances[since:], new.indices[since:]
        limit[since:] = distances[since:, -1]
        rows = np.flatnonzero(new.distances[:since, 0] < limit[:since])
        missing = new.distances[rows] >= limit[rows, np.newaxis]
        near = Nearest(
            np.where(missing, np.inf, new.distances[rows]), np.where(missing, -1, new.indices[rows])
        )
        distances[rows], indices[rows] = Nearest(distances[rows], indices[rows]).merged(near)
        # where there is no room, others are left out
        limit[rows] = np.minimum(limit[rows], distances[rows, -1])

    def nearest(self) -> Nearest:
        """Return the nearest neighbour of every window."""
        return Nearest(self.distances[:, :1].copy(), self.indices[:, :1].copy())


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
    known = KnownNeighbors.none(windows.number, 1)
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
    n_lost = max((int(one.lost.sum()) for one in known), default=0)
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
        options |= {"since": since, "needed": (known[0].limit, known[-1].limit)}
    found = compute(windows.join(**options))
    parts = [found.right, found.left] if sides else [found]
    if known:
        for one, new, side in zip(
            known, parts, ["right", "left"] if sides else ["both"], strict=True
        ):
            one.add(new, since)
            _search_again(compute, windows, one, np.flatnonzero(one.lost), side)
    else:
        known = [KnownNeighbors.of(one) for one in parts]
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
        known.distances[some, :k] = distances
        known.indices[some, :k] = np.where(np.isinf(distances), -1, nearest)
        known.limit[some] = known.distances[some, -1]


def check_kept(max_points: Any, longest: int) -> None:
    """Refuse to keep less than a window."""
    whole = isinstance(max_points, Integral) and not isinstance(max_points, bool)
    if max_points is not None and not (whole and max_points >= longest):
        raise ValueError(
            f"max_points={max_points!r}: it is a number of points, at least one window of "
            f"{longest}, or None."
        )
