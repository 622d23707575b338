"""Filter and certify: search in float32, answer in float64.

A search estimates every distance in single precision and knows an interval around each estimate
that holds the certified value (`Bound`). From each tile of the work it keeps, per query, every
candidate whose lower value does not exceed the k-th smallest upper value (`shortlist`); a
`Shortlists` gathers these over all tiles; the survivors are recomputed as *certified* values
(float64, one operation order, no fused multiply-add, the same bits on every engine); `nearest`
chooses among them by (value, index). Two candidates tie when their certified values are equal
bit by bit, and then the lower index wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np

from .constants import FLOAT32_UNIT, FLOAT64_UNIT
from .order import order_of_pairs
from .reduction import InBatches, Reduction, Tile
from .series import Series

__all__ = [
    "Bound",
    "Neighbors",
    "NeighborsInBatches",
    "Rescaling",
    "SearchInBatches",
    "Shortlist",
    "Shortlists",
    "dtw_bound",
    "nearest",
    "shortlist",
]

#: A query may hold this many survivors for each neighbour asked for before it is settled in
#: float64 altogether; more are seen only where many candidates are equal or nearly so.
SURVIVORS_PER_NEIGHBOR = 8
MIN_SURVIVORS = 64
#: Entries after which `Shortlists` drops what later tiles have ruled out.
COMPACT_AFTER = 2**12
#: Survivors for each neighbour asked for that the queries of a `Shortlists` may hold on average,
#: before some are dropped.
HELD_PER_NEIGHBOR = 4
#: Bytes of an entry of `Shortlists` at the most, while it is compacted.
ENTRY_BYTES = 200
#: Part of the memory budget that survivors may take.
SURVIVORS_SHARE = 1 / 4
#: The error of a point counts so much more, since its square may underflow in float32,
UNDERFLOW = 2.0**-63
#: and the slack for errors of points is raised by this factor, for roundings of certified values.
#: see "dtw float32" in docs/developer/numerics.rst
INPUT_SLACK = 1 + 1e-6


def survivor_cap(n_neighbors: int) -> int:
    """Survivors that one query may hold before it is settled in float64 altogether."""
    return max(MIN_SURVIVORS, SURVIVORS_PER_NEIGHBOR * n_neighbors)


def survivors_held(n_neighbors: int) -> int:
    """Survivors for which `Shortlists` has room, for each query."""
    return max(MIN_SURVIVORS, HELD_PER_NEIGHBOR * n_neighbors)


def gamma(n: float, unit: float) -> float:
    """Relative error of n roundings, n u / (1 - n u); infinite where that says nothing."""
    # see "gamma" in docs/developer/numerics.rst
    return n * unit / (1 - n * unit) if n * unit < 1 else np.inf


class Rescaling(NamedTuple):
    """The common offset and power of two that bring data into the range of float32."""

    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def of(cls, values: np.ndarray) -> Rescaling:
        """Choose for an array: centred only where the offset dwarfs the spread, at most 1 large.

        Without the offset float32 input stays exact, and needs no allowance for rounding.
        """
        return cls.between(float(values.min()), float(values.max()))

    @classmethod
    def between(cls, low: float, high: float) -> Rescaling:
        """Choose for values of which these are the least and the largest."""
        middle = low / 2 + high / 2
        return cls.about(middle if abs(middle) > high / 2 - low / 2 else 0.0, low, high)

    @classmethod
    def about(cls, offset: float, low: float, high: float) -> Rescaling:
        """Choose the scale, by an offset and the least and the largest value."""
        # where all candidates are one constant, queries are likely to be as large as that
        largest = max(abs(low - offset), abs(high - offset)) or abs(low)
        exponent = np.frexp(largest)[1] if largest > 0 else 0
        return cls(offset, float(2.0**-exponent))

    def apply(
        self, values: np.ndarray, inside: np.ndarray | bool = True
    ) -> tuple[np.ndarray, float]:
        """Return the values in float32 and the largest rounding error made, in scaled units.

        `inside` is False for padding, which stays 0 and has no part in the error.
        """
        # see "rescaling" in docs/developer/numerics.rst
        scaled = (values - self.offset) * self.scale if self.offset else values * self.scale
        if self.offset and inside is not True:
            scaled *= inside
        with np.errstate(over="ignore"):
            single = scaled.astype(np.float32)
            error = np.abs(single - scaled).max(initial=0.0)
        if self.offset:
            error += FLOAT64_UNIT * (
                np.abs(scaled).max(initial=0.0) + abs(self.offset) * self.scale
            )
        return single, float(error)


@dataclass(frozen=True)
class Bound:
    """An interval around an estimated distance that holds the certified one.

    The certified distance lies in ``[v * shrink - slack, v * grow + slack]`` for an estimate v.
    An estimate that is not finite says nothing: its interval is ``[0, inf]``.
    """

    shrink: float = 1.0
    grow: float = 1.0
    slack: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether estimates are certified values already."""
        return self.shrink == 1 and self.grow == 1 and self.slack == 0

    def lower(self, estimate: np.ndarray) -> np.ndarray:
        """Lower ends of the intervals."""
        if self.exact:
            return estimate
        known = np.where(np.isfinite(estimate), estimate, 0.0)
        return np.maximum(known * self.shrink - self.slack, 0.0)

    def upper(self, estimate: np.ndarray) -> np.ndarray:
        """Upper ends of the intervals."""
        if self.exact:
            return estimate
        return np.where(np.isfinite(estimate), estimate * self.grow + self.slack, np.inf)


def dtw_bound(
    n_steps: int,
    n_channels: int,
    error: float,
    scale: float,
    *,
    squared: bool = True,
    more: int = 0,
) -> Bound:
    """Bound of a distance under warping that was searched in float32.

    Parameters
    ----------
    n_steps : int
        Costs that are added along the longest possible path (1 where only the largest counts).
    n_channels : int
        Channels over which the cost is summed.
    error : float
        Largest rounding error of the input of one series plus that of the other, scaled.
    scale : float
        The power of two by which the input was multiplied.
    squared : bool, default True
        Whether costs are squared and the distance is a root, else costs are absolute.
    more : int, default 0
        Roundings of the cost of a step beside those of its sum over channels.

    Returns
    -------
    Bound
        For estimates in the units of the data.

    Notes
    -----
    The accumulated cost D of P steps carries a relative error of at most gamma(P + C + 2). Where
    the points of the two series move by e_x and e_y, the root of D moves by at most
    sqrt(P C) (e_x + e_y), and a sum of absolute costs by at most P C (e_x + e_y). Costs that
    underflow add at most P C 2^-126 to D. The certified value itself is a float64 sum, and carries
    gamma(P + C + 2) of that type.
    """
    # see "dtw float32" in docs/developer/numerics.rst
    roundings = n_steps + n_channels + 2 + more
    single, double = gamma(roundings, FLOAT32_UNIT), gamma(roundings + 4, FLOAT64_UNIT)
    if not single < 1:
        # grow stays 1: a distance of 0 times infinity is NaN
        return Bound(0.0, 1.0, np.inf)
    shrink, grow, terms = 1 / (1 + single), 1 / (1 - single), float(n_steps * n_channels)
    if squared:
        shrink, grow, terms = math.sqrt(shrink), math.sqrt(grow), math.sqrt(terms)
    slack = terms * (error + UNDERFLOW) / scale * INPUT_SLACK
    return Bound((1 - double) * shrink, (1 + double) * grow, slack)


class Neighbors(NamedTuple):
    """Nearest candidates of each query, best first; inf and -1 where there are fewer."""

    distances: np.ndarray
    indices: np.ndarray


class Shortlist(NamedTuple):
    """Survivors of a tile: rows and columns count from the corner of the tile.

    `overflowed_rows` names rows with more survivors than may be kept; they have none in the list.
    """

    rows: np.ndarray
    cols: np.ndarray
    estimates: np.ndarray
    bound: Bound
    overflowed_rows: np.ndarray = np.empty(0, np.int64)


def shortlist(
    estimates: np.ndarray, n_neighbors: int, bound: Bound, excluded: np.ndarray | None
) -> Shortlist:
    """Keep of each row of a block of estimates the candidates that may be among its nearest.

    Parameters
    ----------
    estimates : ndarray of shape (n_rows, n_cols), float64
        Estimated distances; overwritten at excluded places.
    n_neighbors : int
        Neighbours asked for.
    bound : Bound
        Their error. Exact estimates keep exactly the nearest, ties by column.
    excluded : ndarray of shape (n_rows,), int64, or None
        One column a row that does not take part (out of range: none).

    Returns
    -------
    Shortlist
        The survivors.
    """
    n_cols = estimates.shape[1]
    allowed = np.ones(estimates.shape, bool)
    if excluded is not None:
        inside = np.flatnonzero((excluded >= 0) & (excluded < n_cols))
        allowed[inside, excluded[inside]] = False
        estimates[inside, excluded[inside]] = np.inf
    if bound.exact:
        k = min(n_neighbors, n_cols)
        order = np.argsort(estimates, axis=1, kind="stable")[:, :k]
        keep = np.zeros(estimates.shape, bool)
        np.put_along_axis(keep, order, True, axis=1)
        keep &= allowed
    else:
        upper = np.where(allowed, bound.upper(estimates), np.inf)
        k = min(n_neighbors, n_cols) - 1
        threshold = np.partition(upper, k, axis=1)[:, k, None] if n_neighbors <= n_cols else np.inf
        # see "shortlist" in docs/developer/numerics.rst
        keep = allowed & (bound.lower(estimates) <= threshold)
    overflowed_rows = np.flatnonzero(np.count_nonzero(keep, axis=1) > survivor_cap(n_neighbors))
    keep[overflowed_rows] = False
    rows, cols = np.nonzero(keep)
    return Shortlist(rows, cols, estimates[rows, cols], bound, overflowed_rows)


@dataclass
class Shortlists:
    """Survivors of all tiles so far, and queries that have too many.

    It holds about `survivors_held` entries for each query, however many candidates tie: where there
    are more, the queries with most of them overflow.
    """

    n_queries: int
    n_neighbors: int
    parts: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    overflowed_rows: list[np.ndarray] = field(default_factory=list)
    size: int = 0
    compact_at: int = 0
    #: First rows of the tiles so far, while each starts at the first column, and none comes twice:
    #: then all that a query has is from one tile, which has ruled out what there was to rule out.
    corners: set[int] | None = field(default_factory=set)

    def __post_init__(self) -> None:
        self._compact_later()

    def _compact_later(self) -> None:
        # small enough for `survivors_held`, large enough that compacting takes little time
        least = max(COMPACT_AFTER, 2 * self.n_queries * self.n_neighbors)
        self.compact_at = max(least, 2 * self.size)

    def add(self, corner: tuple[int, int], found: Shortlist) -> None:
        """Take the survivors of the tile whose first row and column are `corner`."""
        part = (
            found.rows + corner[0],
            found.cols + corner[1],
            found.estimates,
            found.bound.lower(found.estimates),
            found.bound.upper(found.estimates),
        )
        self.parts.append(part)
        self.overflowed_rows.append(found.overflowed_rows + corner[0])
        if self.corners is not None:
            if corner[1] or corner[0] in self.corners:
                self.corners = None
            else:
                self.corners.add(corner[0])
        self.size += found.rows.size
        if self.size > self.compact_at:
            self.compact()
            self._compact_later()

    def compact(self) -> tuple[np.ndarray, ...]:
        """Drop candidates that are ruled out by now; rows with too many survivors overflow.

        Returns
        -------
        tuple of ndarray
            Queries, candidates, estimates, lower and upper values, in any order.
        """
        columns = list(zip(*self.parts, strict=True)) or [[np.empty(0, np.int64)]] * 5
        self.parts = []
        # column by column, so that only one is in memory twice at a time
        whole = tuple(np.concatenate(columns.pop(0)) for _ in range(5))
        overflowed = np.unique(np.concatenate([np.empty(0, np.int64), *self.overflowed_rows]))
        # half: the next compaction comes when there are twice as many
        room = self.n_queries * survivors_held(self.n_neighbors) // 2
        exact = np.array_equal(whole[3], whole[4])
        most = self.n_neighbors if exact else survivor_cap(self.n_neighbors)
        few = whole[0].size <= room and np.bincount(whole[0]).max(initial=0) <= most
        if self.corners is None or not few:
            chosen, overflowed = self._chosen(whole, overflowed, room)
            whole = tuple(column[chosen] for column in whole)
        self.parts, self.overflowed_rows = [whole], [overflowed]
        self.size = whole[0].size
        return whole

    def _chosen(
        self, whole: tuple[np.ndarray, ...], overflowed: np.ndarray, room: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which entries stay, ordered by query, and which queries have too many."""
        query, candidate, _, lower, upper = whole
        order = order_of_pairs(query, candidate, upper)
        start = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=self.n_queries))])
        kth = start[:-1] + self.n_neighbors - 1
        threshold = np.full(self.n_queries, np.inf)
        full = kth < start[1:]
        threshold[full] = upper[order[kth[full]]]
        keep = lower <= threshold[query]
        exact = np.array_equal(lower, upper)
        if exact:
            rank = np.empty(query.size, np.int64)
            rank[order] = np.arange(query.size) - start[query[order]]
            keep &= rank < self.n_neighbors
        counts = np.bincount(query[keep], minlength=self.n_queries)
        closed = counts > survivor_cap(self.n_neighbors)
        closed[overflowed] = True
        if not exact:
            counts[closed] = 0
            most = np.argsort(-counts, kind="stable")
            held = counts.sum() - np.cumsum(counts[most])
            closed[most[: np.count_nonzero(held > room) + (counts.sum() > room)]] = True
        keep &= ~closed[query]
        return order[keep[order]], np.flatnonzero(closed)


class SearchInBatches(InBatches, Reduction):
    """Some candidates of each query: work that keeps survivors of tiles, some queries at a time."""

    queries: Series
    candidates: Series
    excluded: np.ndarray | None

    @property
    def shape(self) -> tuple[int, int]:
        """Queries and candidates."""
        return len(self.queries), len(self.candidates)

    def part(self, tile: Tile) -> Self:
        """Return some queries against some candidates."""
        return replace(  # type: ignore[type-var]
            self,
            queries=self.queries.take(tile.rows),
            candidates=self.candidates.take(tile.cols),
            excluded=None if self.excluded is None else self.excluded[tile.rows] - tile.col,
        )

    def batch(self, rows: slice) -> Reduction:
        """Return the search of some queries, among the same object of candidates."""
        part = self.part(Tile(rows.start, rows.stop, 0, len(self.candidates)))
        return replace(part, candidates=self.candidates)  # type: ignore[type-var]

    def merge(self, total: Any, tile: Tile, result: Shortlist) -> None:
        """Take the survivors of a tile."""
        total.add((tile.row, tile.col), result)


@dataclass(frozen=True, eq=False)
class NeighborsInBatches(SearchInBatches):
    """The nearest candidates of each query: work that keeps survivors in `Shortlists`.

    Queries whose survivors have no room together are searched one batch after the other.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    n_neighbors : int
        Neighbours of each query.
    excluded : ndarray of shape (n_queries,), int64, or None, default None
        One candidate that a query must not find; out of range is none.
    """

    queries: Series
    candidates: Series
    n_neighbors: int
    excluded: np.ndarray | None = None

    def result_bytes(self) -> int:
        """Size of the answer."""
        return 16 * len(self.queries) * self.n_neighbors

    def limit_of(self, query: int) -> float:
        """Distance beyond which no neighbour of a query is looked for."""
        return np.inf

    def survivor_bytes(self) -> int:
        """Bytes that the survivors of all queries may take at most."""
        n_queries = len(self.queries)
        held = max(COMPACT_AFTER, n_queries * survivors_held(self.n_neighbors))
        return ENTRY_BYTES * min(held, n_queries * len(self.candidates))

    def batches(self, budget: int) -> list[slice]:
        """Queries that are searched together."""
        room = ENTRY_BYTES * min(survivors_held(self.n_neighbors), len(self.candidates))
        # so many are held in any case
        fitting = max(int(SURVIVORS_SHARE * budget), ENTRY_BYTES * COMPACT_AFTER) // room
        n_queries, step = len(self.queries), max(1, fitting)
        return [slice(i, min(i + step, n_queries)) for i in range(0, n_queries, step)]

    def start(self) -> Shortlists:
        """Return an empty list of survivors."""
        return Shortlists(len(self.queries), self.n_neighbors)

    def gather(self, answers: Iterable[tuple[slice, Neighbors]]) -> Neighbors:
        """Write the answers of batches into one."""
        shape = len(self.queries), self.n_neighbors
        whole = Neighbors(np.empty(shape), np.empty(shape, np.int64))
        for rows, found in answers:
            whole.distances[rows], whole.indices[rows] = found
        return whole


def nearest(
    query: np.ndarray, candidate: np.ndarray, value: np.ndarray, n_queries: int, n_neighbors: int
) -> Neighbors:
    """Choose the nearest candidates of each query by (value, index).

    Parameters
    ----------
    query, candidate : ndarray of shape (n_pairs,), int64
        Pairs, in any order.
    value : ndarray of shape (n_pairs,), float64
        Their certified distances.
    n_queries, n_neighbors : int
        Shape of the answer.

    Returns
    -------
    Neighbors
        Arrays of shape (n_queries, n_neighbors).
    """
    order = order_of_pairs(query, candidate, value)
    counts = np.bincount(query, minlength=n_queries)
    query = query[order]
    rank = np.arange(query.size) - (np.cumsum(counts) - counts)[query]
    first = rank < n_neighbors
    distances = np.full((n_queries, n_neighbors), np.inf)
    indices = np.full((n_queries, n_neighbors), -1, np.int64)
    distances[query[first], rank[first]] = value[order][first]
    indices[query[first], rank[first]] = candidate[order][first]
    return Neighbors(distances, indices)
