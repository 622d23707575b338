"""Matches of a stream that are more than an exclusion apart, reported once nothing changes them.

The matches are those that the greedy choice of `SubsequenceSearch.kneighbors` takes from all
windows within the radius: the best, then the best of those that start far enough from it, and so
on. A window is decided by the nearer windows around it alone: it is no match if one of them is,
and a match if none of them is. So it is decided once all windows around it have been seen and all
nearer ones among them are decided.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple, Self

import numpy as np

__all__ = ["Undecided"]


class Undecided(NamedTuple):
    """Windows of one pattern that are not decided, and matches that may still rule them out.

    Attributes
    ----------
    starts : ndarray of shape (n,), int64
        Where they start in the stream, ascending.
    distances : ndarray of shape (n,), float64
        Their distances.
    matches : ndarray of shape (n,), bool
        Which are matches; they have been reported.
    """

    starts: np.ndarray
    distances: np.ndarray
    matches: np.ndarray

    @classmethod
    def none(cls) -> Self:
        """Make a list of no windows.

        Returns
        -------
        Undecided
            The list.
        """
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0, bool))

    def add(self, starts: np.ndarray, distances: np.ndarray) -> Self:
        """Append windows that start later.

        Parameters
        ----------
        starts : ndarray of shape (n_new,), int64
            Where they start, ascending.
        distances : ndarray of shape (n_new,), float64
            Their distances.

        Returns
        -------
        Undecided
            These windows and those.
        """
        return type(self)(
            np.concatenate([self.starts, starts]),
            np.concatenate([self.distances, distances]),
            np.concatenate([self.matches, np.zeros(starts.size, bool)]),
        )

    def split(self, at: int) -> tuple[Self, Self]:
        """Divide the windows.

        Parameters
        ----------
        at : int
            A place in the stream.

        Returns
        -------
        before, later : Undecided
            Windows that start before it, and the others.
        """
        count = int(np.searchsorted(self.starts, at))
        return type(self)(*(one[:count] for one in self)), type(self)(
            *(one[count:] for one in self)
        )

    def decide(
        self, exclusion: int, stop: float, before: float, known: float = -np.inf
    ) -> tuple[np.ndarray, Self]:
        """Decide what can be decided.

        Parameters
        ----------
        exclusion : int
            Matches start more than this apart.
        stop : float
            All windows that start before this have been seen; infinity ends the stream.
        before : float
            Windows that start before this are decided in any case, as if the stream ended here.
        known : float
            What `stop` was in the last decision, which left the windows here that start before it;
            minus infinity if there was none.

        Returns
        -------
        reported : ndarray of shape (n_reported,), int64
            The new matches: their entries here.
        Undecided
            What is left.
        """
        before = min(before, stop)
        matches, undecided = self._choose_last(exclusion, stop, known)
        if before > -np.inf and (undecided & (self.starts < before)).any():
            ended, _ = self._choose(matches, exclusion, np.inf)
            matches |= ended & (self.starts < before)
            matches, undecided = self._choose(matches, exclusion, stop, before)
        first = min(stop, self.starts[undecided.argmax()] if undecided.any() else np.inf)
        keep = undecided | (matches & (self.starts + exclusion >= first))
        reported = np.flatnonzero(matches & ~self.matches)
        if keep.all():
            return reported, self._replace(matches=matches)
        return reported, type(self)(self.starts[keep], self.distances[keep], matches[keep])

    def _choose_last(
        self, exclusion: int, stop: float, known: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which windows are matches, and which are undecided: those before a place as they were.

        Windows that are far enough before `known` have had all windows around them seen: they stay
        undecided as long as those around them do. Where one of these has been decided, twice as
        many windows are looked at.
        """
        count = self.starts.size
        first = int(np.searchsorted(self.starts, known - exclusion))
        while first > 0:
            held, reach = self.starts[first - 1] + 1, self.starts[first - 1] + exclusion
            left, beside = np.searchsorted(self.starts, [held - exclusion, reach + 1]).tolist()
            last = type(self)(*(one[left:] for one in self))
            chosen = last._choose(last.matches, exclusion, stop, held=held)
            matches, undecided = self.matches.copy(), ~self.matches
            matches[left:], undecided[left:] = chosen
            if (undecided | self.matches)[first:beside].all():
                return matches, undecided
            first = max(0, 2 * first - count)
        return self._choose(self.matches, exclusion, stop)

    def _choose(
        self,
        matches: np.ndarray,
        exclusion: int,
        stop: float,
        before: float = -np.inf,
        held: float = -np.inf,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which windows are matches, and which are undecided, best first.

        A window that starts before `before` is no match if it is not one of `matches`; one that
        starts before `held` is undecided.
        """
        matches, undecided = matches.copy(), np.zeros(matches.size, bool)
        starts, width = self.starts.tolist(), exclusion + 1
        # a byte for each window: whether it is a match, or near one
        decided = bytearray((self.starts < before).tobytes())

        def take(start: int) -> None:
            low = bisect_left(starts, start - exclusion)
            high = bisect_right(starts, start + exclusion, low)
            decided[low:high] = b"\1" * (high - low)

        for start in self.starts[matches].tolist():
            take(start)
        # of each stretch of exclusion + 1 starts: first and last undecided window
        lowest: dict[int, int] = {}
        highest: dict[int, int] = {}
        # equally near ones by start
        for entry in np.argsort(self.distances, kind="stable").tolist():
            if decided[entry]:
                continue
            start = starts[entry]
            here = start // width
            if (
                here in lowest
                or start - highest.get(here - 1, -np.inf) <= exclusion
                or lowest.get(here + 1, np.inf) - start <= exclusion
                or start + exclusion >= stop
                or start < held
            ):
                undecided[entry] = True
                lowest[here] = min(start, lowest.get(here, start))
                highest[here] = max(start, highest.get(here, start))
            else:
                matches[entry] = True
                take(start)
        return matches, undecided
