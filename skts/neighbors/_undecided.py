"""Matches of a stream that are more than an exclusion apart, reported once nothing changes them.

The matches are those that the greedy choice of `SubsequenceSearch.kneighbors` takes from all
windows within the radius: the best, then the best of those that start far enough from it, and so
on. A window is decided by the nearer windows around it alone: it is no match if one of them is,
and a match if none of them is. So it is decided once all windows around it have been seen and all
nearer ones among them are decided.
"""

from __future__ import annotations

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

    def decide(self, exclusion: int, stop: float, before: float) -> tuple[np.ndarray, Self]:
        """Decide what can be decided.

        Parameters
        ----------
        exclusion : int
            Matches start more than this apart.
        stop : float
            All windows that start before this have been seen; infinity ends the stream.
        before : float
            Windows that start before this are decided in any case, as if the stream ended here.

        Returns
        -------
        reported : ndarray of shape (n_reported,), int64
            The new matches: their entries here.
        Undecided
            What is left.
        """
        before = min(before, stop)
        matches, undecided = self._choose(self.matches, exclusion, stop)
        if before > -np.inf and (undecided & (self.starts < before)).any():
            ended, _ = self._choose(matches, exclusion, np.inf)
            matches |= ended & (self.starts < before)
            matches, undecided = self._choose(matches, exclusion, stop, before)
        first = min(stop, self.starts[undecided].min(initial=np.iinfo(np.int64).max))
        keep = undecided | (matches & (self.starts + exclusion >= first))
        reported = np.flatnonzero(matches & ~self.matches)
        return reported, type(self)(self.starts[keep], self.distances[keep], matches[keep])

    def _choose(
        self, matches: np.ndarray, exclusion: int, stop: float, before: float = -np.inf
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which windows are matches, and which are undecided, best first.

        A window that starts before `before` is no match if it is not one of `matches`.
        """
        matches, undecided = matches.copy(), np.zeros(matches.size, bool)
        width = exclusion + 1
        # of each stretch of exclusion + 1 starts: the match, and first and last undecided window
        taken = {start // width: start for start in self.starts[matches].tolist()}
        waiting: dict[int, tuple[int, int]] = {}
        order = np.lexsort((self.starts, self.distances))
        for entry in order[~matches[order]].tolist():
            start = int(self.starts[entry])
            here = start // width
            near = [taken[one] for one in (here - 1, here, here + 1) if one in taken]
            if start < before or (near and min([abs(start - one) for one in near]) <= exclusion):
                continue
            low, high = waiting.get(here, (start, start))
            earlier, later = waiting.get(here - 1), waiting.get(here + 1)
            if (
                here in waiting
                or (earlier is not None and start - earlier[1] <= exclusion)
                or (later is not None and later[0] - start <= exclusion)
                or start + exclusion >= stop
            ):
                undecided[entry] = True
                waiting[here] = min(low, start), max(high, start)
            else:
                matches[entry] = True
                taken[here] = start
        return matches, undecided
