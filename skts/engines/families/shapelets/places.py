"""Where candidates for shapelets lie in training series, and the choice of the best of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.series import Series
from .dilated import DilatedShapelets

__all__ = ["Candidates", "Kind", "Places", "Room", "choose"]

#: Candidates whose overlaps are looked up together; those that are measured together, at most.
_TOGETHER, _MEASURED = 4096, 64
#: Candidates that are looked at one by one.
_FEW = 300


class Places(NamedTuple):
    """Where shapelets lie in training series: arrays of shape (n_shapelets,).

    Attributes
    ----------
    normalized, length, dilation, channel : ndarray
        What they share with others: see `DilatedShapelets`.
    series, start : ndarray of int64
        The series, and the time point of the first point.
    """

    normalized: np.ndarray
    length: np.ndarray
    dilation: np.ndarray
    channel: np.ndarray
    series: np.ndarray
    start: np.ndarray

    def take(self, which: np.ndarray) -> Places:
        """Return some of them.

        Parameters
        ----------
        which : ndarray of int64
            Their numbers.

        Returns
        -------
        Places
            These.
        """
        return Places(*(column[which] for column in self))

    @property
    def extent(self) -> np.ndarray:
        """Return the time points from the first point to the last, both included.

        Returns
        -------
        ndarray of shape (n_shapelets,), int64
            Of each.
        """
        extents: np.ndarray = (self.length - 1) * self.dilation + 1
        return extents

    def cut_out(self, series: Series) -> DilatedShapelets:
        """Return the shapelets with their points.

        Parameters
        ----------
        series : Series
            The training series.

        Returns
        -------
        DilatedShapelets
            In the same order.
        """
        ends = np.cumsum(self.length)
        number = np.arange(ends[-1] if len(ends) else 0) - np.repeat(
            ends - self.length, self.length
        )
        time = np.repeat(self.start, self.length) + number * np.repeat(self.dilation, self.length)
        row, channel = (np.repeat(one, self.length) for one in (self.series, self.channel))
        points = series.values[row, channel, time]
        return DilatedShapelets(points, self.length, self.dilation, self.channel, self.normalized)


class Kind(NamedTuple):
    """A kind of candidates.

    Attributes
    ----------
    length, dilation : int
        Points, and steps of time from one to the next.
    normalized : bool
        Whether they are z-normalised.
    """

    length: int
    dilation: int
    normalized: bool

    @property
    def extent(self) -> int:
        """Time points from the first point to the last, both included."""
        return (self.length - 1) * self.dilation + 1


class Candidates(NamedTuple):
    """All candidates of some kinds, numbered: kind by kind, channel by channel, series by series.

    Attributes
    ----------
    kinds : tuple of Kind
        The kinds; no series is shorter than the extent of one.
    lengths : ndarray of shape (n_series,), int64
        Time points of the series.
    n_channels : int
        Channels of the series.
    """

    kinds: tuple[Kind, ...]
    lengths: np.ndarray
    n_channels: int

    def windows(self, row: int) -> np.ndarray:
        """Return the candidates in each series.

        Parameters
        ----------
        row : int
            The kind and channel, counted channel by channel.

        Returns
        -------
        ndarray of shape (n_series,), int64
            Numbers of them.
        """
        counts: np.ndarray = self.lengths - self.kinds[row // self.n_channels].extent + 1
        return counts

    def begins(self) -> np.ndarray:
        """Return the number of the first candidate of each kind and channel, and at last of all.

        Returns
        -------
        ndarray of shape (n_kinds * n_channels + 1,), int64
            These.
        """
        extents = np.array([kind.extent for kind in self.kinds])
        counts = self.lengths.sum() - len(self.lengths) * (extents - 1)
        return np.concatenate([[0], np.cumsum(np.repeat(counts, self.n_channels))])

    def places(self, numbers: np.ndarray) -> Places:
        """Return where some candidates lie.

        Parameters
        ----------
        numbers : ndarray of int64
            Their numbers.

        Returns
        -------
        Places
            In the same order.
        """
        begins = self.begins()
        row = np.searchsorted(begins, numbers, side="right") - 1
        series, start = np.empty(len(numbers), np.int64), numbers - begins[row]
        for one in np.unique(row).tolist():
            mine, counts = np.flatnonzero(row == one), self.windows(one)
            ends = np.cumsum(counts)
            series[mine] = np.searchsorted(ends, start[mine], side="right")
            start[mine] -= (ends - counts)[series[mine]]
        kind, channel = np.divmod(row, self.n_channels)
        shared = (np.array(column)[kind] for column in zip(*self.kinds, strict=True))
        length, dilation, normalized = shared
        return Places(normalized, length, dilation, channel, series, start)


class Room:
    """Time points of series that chosen shapelets cover, and how many more a class may have.

    Parameters
    ----------
    labels : ndarray of shape (n_series,), int64
        Class of each series.
    shape : tuple of int
        Channels and time points of the series.
    most : int
        Shapelets of each class.
    """

    def __init__(self, labels: np.ndarray, shape: tuple[int, int], most: int) -> None:
        self.labels = labels
        self.taken = np.zeros((len(labels), *shape), bool)
        self.left = np.full(int(labels.max()) + 1, most)

    def fits(self, places: Places) -> np.ndarray:
        """Return which candidates cover nothing that is taken, and are of a class with room."""
        has_room: np.ndarray = self.left[self.labels[places.series]] > 0
        if len(has_room) < _FEW:
            stops = places.start + places.extent
            rows = zip(places.series, places.channel, places.start, stops, strict=True)
            free = [not self.taken[a, b, start:stop].any() for a, b, start, stop in rows]
            return has_room & np.array(free, bool)
        before = np.zeros((*self.taken.shape[:2], self.taken.shape[2] + 1), np.int32)
        np.cumsum(self.taken, axis=2, out=before[..., 1:])
        line, start = (places.series, places.channel), places.start
        covered = before[(*line, start + places.extent)] > before[(*line, start)]
        return has_room & ~covered

    def take(self, place: Places) -> bool:
        """Take one candidate, if it fits."""
        series, start, channel = (int(one[0]) for one in (place.series, place.start, place.channel))
        points = self.taken[series, channel, start : start + int(place.extent[0])]
        label = self.labels[series]
        if self.left[label] == 0 or points.any():
            return False
        points[:] = True
        self.left[label] -= 1
        return True


#: Measures candidates by their numbers: scores as `choose` has them.
Measure = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def choose(
    scores: tuple[np.ndarray, np.ndarray],
    places: Callable[[np.ndarray], Places],
    room: Room,
    count: int,
    measure: Measure | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose the best candidates, the best one first.

    One that covers a time point of a series and channel that a better one covers is passed over,
    and so are those of a class of which enough are chosen.

    Parameters
    ----------
    scores : tuple of ndarray of shape (n_candidates,)
        The first decides, the second where it is equal; of equal candidates the first is better.
        Upper bounds of both, where there is `measure`: the second one where the first is reached.
    places : callable
        Returns the `Places` of candidates by their numbers.
    room : Room
        What may be taken.
    count : int
        How many to choose at most.
    measure : callable or None, default None
        Returns the scores of candidates by their numbers; None where `scores` are no bounds.

    Returns
    -------
    numbers : ndarray of int64
        The candidates.
    first, second : ndarray
        Their scores.
    """
    line = Line(scores, places, room, measure)
    chosen: list[tuple[int, Any, Any]] = []
    while len(chosen) < count and room.left.any():
        found = line.pop()
        if found is None:
            break
        if room.take(places(np.array([found[0]]))):
            chosen.append(found)
    first, second = (one.dtype for one in scores)
    return (
        np.array([one[0] for one in chosen], np.int64),
        np.array([one[1] for one in chosen], first),
        np.array([one[2] for one in chosen], second),
    )


class Line:
    """Candidates in the descending order of their scores, of which few are measured.

    Parameters are those of `choose`.
    """

    def __init__(
        self,
        scores: tuple[np.ndarray, np.ndarray],
        places: Callable[[np.ndarray], Places],
        room: Room,
        measure: Measure | None,
    ) -> None:
        self.first, self.second = scores
        self.places, self.room, self.measure = places, room, measure
        self.order = np.lexsort((-self.second, -self.first))
        self.position = 0
        #: A heap of (-first, -second, whether measured, number): bounds before what is measured.
        self.waiting: list[tuple[Any, Any, bool, int]] = []

    def pop(self) -> tuple[int, Any, Any] | None:
        """Return the best candidate that fits, with its scores; None at the end."""
        size = 1
        while True:
            self._refill()
            if not self.waiting:
                return None
            first, second, measured, number = self.waiting[0]
            if measured:
                heapq.heappop(self.waiting)
                return number, -first, -second
            self._measure(size)
            size = min(2 * size, _MEASURED)

    def _refill(self) -> None:
        """Have the best of all that are left among those that wait, with those next to it."""
        while self.position < len(self.order):
            best = int(self.order[self.position])
            if self.waiting and self._key(best, False) > self.waiting[0]:
                return
            now = self.order[self.position : self.position + _TOGETHER]
            self.position += len(now)
            now = now[self.room.fits(self.places(now))]
            for number in now.tolist():
                heapq.heappush(self.waiting, self._key(number, self.measure is None))

    def _key(self, number: int, measured: bool) -> tuple[Any, Any, bool, int]:
        return -self.first[number], -self.second[number], measured, number

    def _measure(self, size: int) -> None:
        """Measure some of the best that wait, and that cover nothing in common."""
        assert self.measure is not None
        keys: list[tuple[Any, Any, bool, int]] = []
        while self.waiting and not self.waiting[0][2] and len(keys) < 4 * size:
            keys.append(heapq.heappop(self.waiting))
        numbers = np.array([key[3] for key in keys])
        where = self.places(numbers)
        fits = np.flatnonzero(self.room.fits(where)).tolist()
        # spans that are measured, by series and channel
        spans: dict[tuple[int, int], list[tuple[int, int]]] = {}
        chosen: list[int] = []
        columns = (where.series, where.channel, where.start, where.start + where.extent)
        rows = [tuple(row) for row in np.stack(columns, axis=1).tolist()]
        for k in fits:
            series, channel, start, stop = rows[k]
            # one of them may cover what another one covers: the better one is measured first
            line = spans.setdefault((series, channel), [])
            if len(chosen) == size or any(start < end and begin < stop for begin, end in line):
                heapq.heappush(self.waiting, keys[k])
            else:
                line.append((start, stop))
                chosen.append(k)
        if not chosen:
            return
        first, second = self.measure(numbers[chosen])
        for k, gain, gap in zip(chosen, first.tolist(), second.tolist(), strict=True):
            key = -gain, -gap, True, keys[k][3]
            if key[:2] < keys[k][:2]:
                series, _, start, stop = rows[k]
                raise RuntimeError(
                    f"A bound of the shapelet search does not hold: points {start} to {stop} of "
                    f"series {series} score more than it allows. Please report this, with the data."
                )
            heapq.heappush(self.waiting, key)
