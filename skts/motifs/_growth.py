"""Profiles of a line whose last series grows at its end and loses points at its beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engines import JoinFound, Reduction
from ._records import SeriesProfile
from ._search import BATCH, WindowSet

__all__ = ["LOST", "grow_profile", "on_line"]

#: In place of a neighbour whose points are gone: its distance is a bound of those that are left.
LOST = -2
#: Pairs of windows that a join compares in the time of one product of points, where a window is
#: compared with all others by itself.
JOINED = 1.0


def on_line(windows: WindowSet, profile: SeriesProfile, dropped: int = 0) -> JoinFound:
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
    JoinFound
        Of windows that are new there is nothing; neighbours that are gone are `LOST`.
    """
    pool = windows.pool
    distances = np.full((windows.number, 1), np.inf)
    indices = np.full((windows.number, 1), -1, np.int64)
    last = len(pool.starts) - 1
    starts = profile.indices - np.where(profile.series == last, dropped, 0)
    places = pool.starts[np.maximum(profile.series, 0)] + starts
    places = np.where(profile.indices < 0, -1, np.where(starts < 0, LOST, places))
    for row, start in enumerate(pool.starts):
        first = dropped if row == last else 0
        count = max(0, int(pool.lengths[row]) - windows.length + 1)
        count = max(0, min(count, profile.distances.shape[1] - first))
        distances[start : start + count, 0] = profile.distances[row, first : first + count]
        indices[start : start + count, 0] = places[row, first : first + count]
    return JoinFound(distances, indices)


def grow_profile(
    compute: Callable[[Reduction], Any],
    windows: WindowSet,
    since: int,
    old: JoinFound | None,
    sides: bool,
) -> JoinFound:
    """Return the profile of a line, from what was known of its windows.

    Parameters
    ----------
    compute : callable
        Runs a reduction.
    windows : WindowSet
        The windows of the line.
    since : int
        Where the first new window starts.
    old : JoinFound or None
        What `on_line` makes of the profile of before, None to compute all of it.
    sides : bool
        Whether earlier and later neighbours are searched apart.

    Returns
    -------
    JoinFound
        The same as of the whole line at once.
    """
    if old is None or since == 0:
        return compute(windows.join(sides=sides))
    parts: list[Any] = [old.left, old.right] if sides else [old]
    n_lost = max(int((one.indices[:since] == LOST).sum()) for one in parts)
    n = windows.number
    if JOINED * n_lost * windows.length + (n - since) > n / 2:
        return compute(windows.join(sides=sides))
    new = compute(windows.join(sides=sides, since=since))
    names = ["left", "right"] if sides else ["both"]
    for name, theirs in zip(names, parts, strict=True):
        mine = new if name == "both" else getattr(new, name)
        _take_old(mine, theirs, since)
        gone = theirs.indices[:since, 0] == LOST
        # what is new may be nearer than all that was there
        gone &= ~(mine.distances[:since, 0] < theirs.distances[:since, 0])
        _search_again(compute, windows, mine, np.flatnonzero(gone), name)
    if not sides:
        return new
    both = new.right.copy()
    both.add(slice(None), new.left)
    return JoinFound(both.distances, both.indices, new.left, new.right)


def _take_old(mine: Any, theirs: Any, since: int) -> None:
    """Take the neighbours of before where they are nearer, and still there."""
    known = slice(since)
    distance, index = mine.distances[known], mine.indices[known]
    before = theirs.distances[known], theirs.indices[known]
    kept = (before[0] < distance) | ((before[0] == distance) & (before[1] < index))
    kept &= before[1] >= 0
    distance[kept], index[kept] = before[0][kept], before[1][kept]


def _search_again(
    compute: Callable[[Reduction], Any],
    windows: WindowSet,
    found: Any,
    places: np.ndarray,
    name: str,
) -> None:
    """Compare windows with all others, and write their nearest neighbours."""
    batch = max(1, BATCH // windows.number)
    for start in range(0, places.size, batch):
        some = places[start : start + batch]
        rows = compute(windows.rows(some))
        for place, row in zip(some.tolist(), rows, strict=True):
            row[windows.near(place)] = np.inf
            if name == "left":
                row[place:] = np.inf
            elif name == "right":
                row[:place] = np.inf
        nearest = rows.argmin(axis=1)
        distances = rows[np.arange(some.size), nearest]
        found.distances[some, 0] = distances
        found.indices[some, 0] = np.where(np.isinf(distances), -1, nearest)
