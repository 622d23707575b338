"""Search of queries in long series: the windows that are nearest to each query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from ...core.reduction import Reduction, Tile, UsesIncumbent
from ...core.series import are_constant
from ...core.verify import Check, Sample, check_value
from ..elastic.warping import PLAIN, Warping

__all__ = [
    "Gathered",
    "LongSeries",
    "SubsequenceNeighbors",
    "TileMatches",
    "WindowMatches",
    "exclusion_points",
    "greedy",
    "normalize_windows",
    "query_envelope",
]

#: Windows of a grid cell.
_CELL = 4096
#: So few matches are looked at each time that some are found.
_FEW = 4096


def normalize_windows(windows: np.ndarray, normalize: bool) -> np.ndarray:
    """Windows, or a query, z-normalised, each channel by itself, or as they are.

    Parameters
    ----------
    windows : ndarray of shape (..., length), float64
        Finite windows.
    normalize : bool
        Whether to change anything.

    Returns
    -------
    ndarray of shape (..., length)
        A copy. The bits of a window depend on its points alone.
    """
    if not normalize:
        return windows.copy()
    constant = are_constant(windows.min(axis=-1), windows.max(axis=-1))
    points: np.ndarray = windows - windows[..., :1]
    size = windows.shape[-1]
    # cumulative sums add in the order of time
    points -= np.cumsum(points, axis=-1)[..., -1:] / size
    deviation = np.sqrt(np.cumsum(points * points, axis=-1)[..., -1:] / size)
    with np.errstate(divide="ignore", invalid="ignore"):
        points *= 1.0 / deviation
    points[constant] = 0.0
    return points


def query_envelope(query: np.ndarray, radius: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest points of a query that each point of a window may meet."""
    size = 2 * radius + 1
    low = minimum_filter1d(query, size, mode="nearest")
    high = maximum_filter1d(query, size, mode="nearest")
    # the first points meet, and so do the last
    low[[0, -1]] = high[[0, -1]] = query[[0, -1]]
    return low, high


class LongSeries(NamedTuple):
    """Series behind each other on a line that is never laid out, but for the piece of a tile.

    Between two series lies one point of NaN: a window that touches it matches nothing.

    Attributes
    ----------
    parts : tuple of ndarray of shape (n_timepoints,) or (n_channels, n_timepoints), float64
        The series, all 1-D or all of several channels; memory maps stay where they are.
    """

    parts: tuple[np.ndarray, ...]

    @property
    def n_channels(self) -> int:
        """Channels of each series."""
        return 1 if self.parts[0].ndim == 1 else len(self.parts[0])

    def channel(self, channel: int) -> LongSeries:
        """Return one channel of series of several."""
        return LongSeries(tuple(one[channel] for one in self.parts))

    @property
    def starts(self) -> np.ndarray:
        """Where each series begins on the line."""
        lengths = [one.shape[-1] + 1 for one in self.parts]
        return np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)

    @property
    def n_points(self) -> int:
        """Points of the line."""
        return sum(one.shape[-1] + 1 for one in self.parts) - 1

    def piece(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """Lay out a run of points, NaN between the series; at the beginning of `out` if given."""
        stop = min(stop, self.n_points)
        shape = *self.parts[0].shape[:-1], stop - start
        found = np.empty(shape) if out is None else out[..., : stop - start]
        if len(self.parts) > 1:
            found.fill(np.nan)
        starts = self.starts
        first = int(np.searchsorted(starts, start, side="right")) - 1
        last = int(np.searchsorted(starts, stop, side="left"))
        for begin, one in zip(starts[first:last].tolist(), self.parts[first:last], strict=True):
            a, b = max(start, begin), min(stop, begin + one.shape[-1])
            run = one[..., a - begin : max(b, a) - begin]
            found[..., max(a - start, 0) : max(b - start, 0)] = run
        return found

    def locate(self, positions: np.ndarray) -> np.ndarray:
        """Series and start in it of places on the line, of shape (n, 2)."""
        if len(self.parts) == 1:
            found = np.zeros((positions.size, 2), np.int64)
            found[:, 1] = positions
            return found
        starts = self.starts
        series = np.searchsorted(starts, positions, side="right") - 1
        return np.column_stack([series, positions - starts[series]]).astype(np.int64)


class WindowMatches(NamedTuple):
    """Matches of one query, best first, ties by series and start.

    Attributes
    ----------
    distances : ndarray of shape (n_matches,), float64
        Certified distances.
    positions : ndarray of shape (n_matches, 2), int64
        Series, and start in it.
    """

    distances: np.ndarray
    positions: np.ndarray


class TileMatches(NamedTuple):
    """Windows of a tile that may match a query.

    Attributes
    ----------
    positions : ndarray of shape (n_found,), int64
        Where they start, from the first column of the tile on.
    distances : ndarray of shape (n_found,), float64
        Certified distances.
    """

    positions: np.ndarray
    distances: np.ndarray


def greedy(positions: np.ndarray, order: np.ndarray, exclusion: int, count: int) -> np.ndarray:
    """Take entries in an order, but none that starts within `exclusion` of one taken before.

    Parameters
    ----------
    positions : ndarray of shape (n, 2), int64
        Series and start.
    order : ndarray of shape (n,), int64
        Entries, best first.
    exclusion : int
        Starts in one series must be more than this apart.
    count : int
        How many to take at most.

    Returns
    -------
    ndarray of shape (n_taken,), int64
        Entries taken.
    """
    taken: list[int] = []
    # of each stretch of exclusion + 1 starts at most one is taken
    stretches: dict[tuple[int, int], int] = {}
    for entry, (series, start) in _places(positions, order):
        if len(taken) == count:
            break
        here = start // (exclusion + 1)
        for near in (here - 1, here, here + 1):
            other = stretches.get((series, near))
            if other is not None and abs(start - other) <= exclusion:
                break
        else:
            stretches[series, here] = start
            taken.append(entry)
    return np.array(taken, np.int64)


def _places(positions: np.ndarray, order: np.ndarray) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield entries and their places, some at a time: who asks may stop early."""
    for first in range(0, len(order), 64):
        some = order[first : first + 64]
        yield from zip(some.tolist(), positions[some].tolist(), strict=True)


def exclusion_points(exclusion: float | None, length: int) -> int:
    """Starts of matches of a query of so many points are more than this apart."""
    exclusion = 0.25 if exclusion is None else exclusion
    if isinstance(exclusion, float):
        # see "shares" in docs/developer/numerics.rst
        exclusion = math.ceil(exclusion * length - 1e-9)
    return int(exclusion)


@dataclass
class Gathered:
    """Matches of one query that have been found so far.

    Attributes
    ----------
    limit : float
        Distance beyond which a window is no match.
    positions : ndarray of shape (n_found,), int64
        Where they start.
    distances : ndarray of shape (n_found,), float64
        Their distances.
    known : int
        How many there were when the limit was last looked at.
    """

    limit: float
    positions: np.ndarray
    distances: np.ndarray
    known: int = 0

    def add(self, positions: np.ndarray, distances: np.ndarray) -> None:
        """Take windows that are within the limit.

        Parameters
        ----------
        positions : ndarray of shape (n_new,), int64
            Where they start.
        distances : ndarray of shape (n_new,), float64
            Their distances.
        """
        self.positions = np.concatenate([self.positions, positions])
        self.distances = np.concatenate([self.distances, distances])

    def lower_limit(self, series: LongSeries, exclusion: int, need: int) -> None:
        """Lower the limit by windows that are far from each other, and drop those beyond it.

        Of windows as far as the limit, those that come after the one that gave it go, too: where
        all tie, few are held. Many are looked at once they have become half as many more: then the
        work grows like a sort of all of them, as every look is one of those that there are.

        Parameters
        ----------
        series : LongSeries
            Where the windows are.
        exclusion : int
            Starts in one series must be more than this apart.
        need : int
            How many bound the last match.
        """
        size = self.distances.size
        if size < need or (size > _FEW and 2 * size < 3 * self.known):
            return
        order = np.lexsort((self.positions, self.distances))
        taken = greedy(series.locate(self.positions), order, exclusion, need)
        if taken.size == need:
            last, place = self.distances[taken[-1]], self.positions[taken[-1]]
            self.limit = min(self.limit, float(last))
            beyond = (self.distances == last) & (self.positions > place)
            keep = (self.distances <= self.limit) & ~beyond
            self.positions, self.distances = self.positions[keep], self.distances[keep]
        self.known = self.distances.size


@dataclass(frozen=True, eq=False)
class SubsequenceNeighbors(UsesIncumbent, Reduction):
    """The windows nearest to each query, or all within a radius.

    Windows have the length of the query. Windows and queries are z-normalised, each by its own
    mean and population deviation (a constant one to zeros), unless `normalize` is false. Points
    count from the first of their window, so that its statistics depend on nothing else. Each
    channel is normalised by itself, and costs of points are summed over channels.

    Parameters
    ----------
    queries : tuple of ndarray of shape (length,) or (n_channels, length), float64
        Finite queries of any lengths.
    series : LongSeries
        Where to search.
    warping : Warping
        Options of the distance, aligned globally.
    normalize : bool
        Whether windows and queries are z-normalised.
    n_neighbors : int or None
        Matches of each query, taken greedily, best first; None is all within the radius.
    radius : float
        Largest distance of a match.
    exclusion : int, float or None
        Of `n_neighbors` matches in one series, starts are more than this apart; a float is a
        fraction of the query, rounded up, and None a quarter.
    limits : ndarray of shape (n_queries,) or None
        Distances beyond which a window is no match, as far as is known.
    n_windows : int or None
        Windows that start farther on the line take no part; None is all.
    precision : {"auto", "float32", "float64"}
        "auto" may search in float32 and certifies, "float32" may leave out the certificate,
        "float64" searches in float64.

    Notes
    -----
    A window may be left out when it is farther than 2 k - 1 others whose starts are more than
    the exclusion apart: each match that is taken excludes at most two of these, so that the k-th
    is no farther than the farthest of them. The k-th best so far would not do, because a better
    match can displace two.
    """

    queries: tuple[np.ndarray, ...]
    series: LongSeries
    warping: Warping = PLAIN
    normalize: bool = True
    n_neighbors: int | None = 1
    radius: float = np.inf
    exclusion: float | None = None
    limits: np.ndarray | None = None
    n_windows: int | None = None
    precision: str = "auto"
    method: ClassVar[str] = "subsequence_neighbors"

    def __post_init__(self) -> None:
        if type(self.warping) is not Warping:
            raise ValueError(f"Windows are not searched under metric={self.warping.metric!r}.")

    @cached_property
    def longest(self) -> int:
        """Points of the longest query."""
        return max(query.shape[-1] for query in self.queries)

    @property
    def n_channels(self) -> int:
        """Channels of queries and series."""
        return self.series.n_channels

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Queries, and windows of the shortest on the line."""
        shortest = min(query.shape[-1] for query in self.queries)
        n_windows = max(0, self.series.n_points - shortest + 1)
        if self.n_windows is not None:
            n_windows = min(n_windows, self.n_windows)
        return len(self.queries), n_windows

    @cached_property
    def step_work(self) -> int:
        """A few bounds, and a share of the cells of a warping matrix."""
        cells = self.warping.cells(self.longest, self.longest)
        return self.n_channels * (4 * self.longest + cells // 8)

    @property
    def cell(self) -> tuple[int, int]:
        """One query, and a run of windows that is long beside it."""
        return 1, max(_CELL, 4 * self.longest)

    def exclusion_of(self, length: int) -> int:
        """Starts of matches of a query of so many points are more than this apart.

        At most the points of the line: a larger exclusion means the same.
        """
        return min(exclusion_points(self.exclusion, length), self.series.n_points)

    def apart(self, length: int) -> int:
        """How many windows far from each other bound the last match; 0 where none is needed."""
        if self.n_neighbors is None:
            return 0
        need = self.n_neighbors if self.exclusion_of(length) == 0 else 2 * self.n_neighbors - 1
        # more than there are windows bounds nothing, however many
        return min(need, self.series.n_points + 1)

    def apart_of(self, length: int, n_windows: int) -> int:
        """How many of so many windows in a row bound the last match; 0, too, where none can."""
        need = self.apart(length)
        return need if need <= -(-n_windows // (self.exclusion_of(length) + 1)) else 0

    def result_bytes(self) -> int:
        """Size of distances and positions, where their number is given."""
        return 24 * len(self.queries) * (self.n_neighbors or 0)

    @property
    def every_limit(self) -> np.ndarray:
        """Distances beyond which a window is no match, of all queries."""
        if self.limits is None:
            return np.full(len(self.queries), float(self.radius))
        return self.limits

    def limit_of(self, row: int) -> float:
        """Distance beyond which a window is no match of a query."""
        return float(self.radius if self.limits is None else self.limits[row])

    def part(self, tile: Tile) -> SubsequenceNeighbors:
        """Return some queries and a piece of the line."""
        queries = self.queries[tile.rows]
        longest = max(query.shape[-1] for query in queries)
        piece = self.series.piece(tile.col, tile.col_stop + longest - 1)
        return replace(
            self,
            queries=queries,
            series=LongSeries((piece,)),
            limits=None if self.limits is None else self.limits[tile.rows],
            n_windows=tile.shape[1],
        )

    def start(self) -> list[Gathered]:
        """Return an empty list for each query."""
        empty = np.empty(0, np.int64), np.empty(0)
        return [Gathered(limit, *empty) for limit in self.every_limit.tolist()]

    def with_incumbent(self, total: list[Gathered]) -> SubsequenceNeighbors:
        """Return the work with the limits that are known by now."""
        if self.n_neighbors is None:
            # no match is nearer than it must be
            return self
        return replace(self, limits=np.array([found.limit for found in total]))

    def merge(self, total: list[Gathered], tile: Tile, result: list[TileMatches]) -> None:
        """Take the windows of a tile, and drop those that are no matches now."""
        for row, found in enumerate(result, tile.row):
            if found.distances.size == 0:
                continue
            so_far = total[row]
            keep = found.distances <= so_far.limit
            if not keep.any():
                continue
            so_far.add(found.positions[keep] + tile.col, found.distances[keep])
            length = self.queries[row].shape[-1]
            need = self.apart(length)
            if need:
                so_far.lower_limit(self.series, self.exclusion_of(length), need)

    def finish(self, total: list[Gathered], run: Callable[[Reduction], Any]) -> list[WindowMatches]:
        """Put the matches of each query in order."""
        answer = []
        nothing = WindowMatches(np.empty(0), np.empty((0, 2), np.int64))
        for query, found in zip(self.queries, total, strict=True):
            if found.distances.size == 0:
                answer.append(nothing)
                continue
            order = np.lexsort((found.positions, found.distances))
            positions = self.series.locate(found.positions)
            if self.n_neighbors is not None:
                exclusion = self.exclusion_of(query.shape[-1])
                order = greedy(positions, order, exclusion, self.n_neighbors)
            answer.append(WindowMatches(found.distances[order], positions[order]))
        return answer

    def verify(self, answer: list[WindowMatches], sample: Sample) -> Iterator[Check]:
        """Compare some matches, and look at some other windows."""
        if self.precision == "float32":
            return
        for row in sample(len(self.queries), 8):
            yield from self._verify_query(row, answer[row], sample)

    def _verify_query(self, row: int, found: WindowMatches, sample: Sample) -> Iterator[Check]:
        """Compare some matches of one query, and look at some other windows."""
        length = self.queries[row].shape[-1]
        listed = [
            (distance, *place)
            for distance, place in zip(
                found.distances.tolist(), found.positions.tolist(), strict=True
            )
        ]
        for place in sample(len(listed)):
            distance, series, start = listed[place]
            item = f"the distance of query {row} and the window at {start} of series {series}"
            yield check_value(item, distance, self._plain_distance(row, series, start))
        limit, starts = self.limit_of(row), self.series.starts
        exclusion = -1 if self.n_neighbors is None else self.exclusion_of(length)
        for place in sample(self.series.n_points - length + 1, 64):
            series = int(np.searchsorted(starts, place, side="right")) - 1
            start = place - int(starts[series])
            if start + length > self.series.parts[series].shape[-1]:
                continue
            if self.n_windows is not None and place >= self.n_windows:
                continue
            key = self._plain_distance(row, series, start), series, start
            if key[0] == np.inf or key[0] > limit or key in listed:
                continue
            near = any(
                one < key and one[1] == series and abs(one[2] - start) <= exclusion
                for one in listed
            )
            full = len(listed) == self.n_neighbors and listed[-1] < key
            yield Check(f"the matches of query {row}", listed[-1:], key, near or full)

    def _plain_distance(self, row: int, series: int, start: int) -> float:
        """Distance of a query and a window, by plain code."""
        from ...host import plain

        asked, warping = np.atleast_2d(self.queries[row]), self.warping
        length = asked.shape[1]
        query, window = np.empty(asked.shape), np.empty(asked.shape)
        points = np.atleast_2d(self.series.parts[series][..., start : start + length])
        for channel, one in enumerate(np.array(points, np.float64)):
            plain.standardize(asked[channel], 0, length, self.normalize, query[channel])
            kind = plain.standardize(one, 0, length, self.normalize, window[channel])
            if kind == plain.UNKNOWN:
                return np.inf
        radius = int(warping.radius(length, length))
        options = warping.squared, warping.largest, False, False
        return float(warping.distance(plain.warped(query, window, radius, *options)))
