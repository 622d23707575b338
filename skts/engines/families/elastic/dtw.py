"""Work under warping: matrices, pairs, nearest neighbours and paths of DTW and dog-keeper."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ...core.certify import (
    Bound,
    Neighbors,
    NeighborsInBatches,
    Rescaling,
    Shortlist,
    Shortlists,
    dtw_bound,
    nearest,
    shortlist,
)
from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...core.verify import Check, Sample, check_neighbors, check_value
from .descriptors import in_order
from .distances import ShapeDTW
from .warping import PLAIN, Warping, plain_distance

__all__ = [
    "DTWMatrix",
    "DTWMatrixReduction",
    "DTWNeighbors",
    "DTWPairs",
    "DTWPath",
    "DTWReduction",
    "DTWSearch",
    "WarpingPath",
    "along_descriptors",
]

#: Columns of a grid cell of DTW work: the lanes of the widest CPU kernel.
LANES = 64


class DTWReduction(Reduction):
    """Work whose steps are cells of warping matrices between two sets of series."""

    warping: Warping

    @property
    @abstractmethod
    def sides(self) -> tuple[Series, Series]:
        """The series along the rows and those along the columns of the matrices."""

    def check_input(self, run: Callable[[Reduction], Any]) -> None:
        """As `Reduction.check_input`: look at costs of some points."""
        self.warping.check_costs(*self.sides, run)

    def by_channel(self) -> list[Self]:
        """Itself, or the work of each channel, where distances are sums of those of channels."""
        if not self.warping.independent or self.sides[0].n_channels == 1:
            return [self]
        names = [each.name for each in fields(self) if isinstance(getattr(self, each.name), Series)]  # type: ignore[arg-type]
        return [
            replace(self, **{name: getattr(self, name).channels[c] for name in names})  # type: ignore[type-var]
            for c in range(self.sides[0].n_channels)
        ]

    @property
    def step_work(self) -> int:
        """Cells of one warping matrix in the band, channel by channel."""
        rows, cols = self.sides
        return self.warping.cells(rows.n_timepoints, cols.n_timepoints) * rows.n_channels

    @property
    def cell(self) -> tuple[int, int]:
        """One series, and the lanes of a group on the other side: the columns, unless too few."""
        rows, cols = self.shape
        return (LANES, 1) if cols < min(rows, LANES) else (1, LANES)


@dataclass(frozen=True, eq=False)
class DTWMatrixReduction(DTWReduction):
    """A number for every pair of two sets of series, or of one, in float64.

    Parameters
    ----------
    rows, cols : Series
        The two sets; the same object twice makes a symmetric matrix, half computed.
    """

    rows: Series
    cols: Series

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of series in the two sets."""
        return len(self.rows), len(self.cols)

    @property
    def symmetric(self) -> bool:
        """Whether rows and columns are the same series, and the distance has no direction."""
        return self.rows is self.cols and self.warping.symmetric

    @property
    def sides(self) -> tuple[Series, Series]:
        """The two sets."""
        return self.rows, self.cols

    def wanted(self, tile: Tile) -> bool:
        """Skip what lies below the diagonal of a symmetric matrix."""
        return not self.symmetric or tile.col_stop > tile.row

    def result_bytes(self) -> int:
        """Size of the matrix."""
        return 8 * len(self.rows) * len(self.cols)

    def part(self, tile: Tile) -> Self:
        """Return a tile as a matrix of its own."""
        return replace(self, rows=self.rows.take(tile.rows), cols=self.cols.take(tile.cols))

    def start(self) -> np.ndarray:
        """Return the empty matrix."""
        return np.empty(self.shape)

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write a block, and its mirror image where the matrix is symmetric."""
        total[tile.rows, tile.cols] = result
        if self.symmetric:
            total[tile.cols, tile.rows] = result.T

    @abstractmethod
    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some of the numbers."""


@dataclass(frozen=True, eq=False)
class DTWMatrix(DTWMatrixReduction):
    """Every distance between two sets of series, or within one, in float64.

    Parameters
    ----------
    rows, cols : Series
        The two sets; the same object twice makes a symmetric matrix, half computed.
    warping : Warping
        Options of the distance.
    """

    warping: Warping = PLAIN
    method: ClassVar[str] = "dtw_matrix"

    def finish(self, total: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Hand the matrix out, if it holds distances."""
        # series of one point: costs, of which more is said where they are asked for
        if max(self.rows.n_timepoints, self.cols.n_timepoints) > 1:
            self.warping.check_distances(total)
        return total

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some distances."""
        for place in sample(answer.size):
            i, j = divmod(place, len(self.cols))
            expected = plain_distance(self.rows, i, self.cols, j, self.warping)
            yield check_value(f"the distance of {i} and {j}", answer[i, j], expected)


@dataclass(frozen=True, eq=False)
class DTWPairs(DTWReduction):
    """Certified distances of chosen pairs.

    Parameters
    ----------
    left, right : Series
        Two sets of series.
    pairs : ndarray of shape (n_pairs, 2), int64
        A series of `left` and one of `right`.
    warping : Warping
        Options of the distance.
    """

    left: Series
    right: Series
    pairs: np.ndarray
    warping: Warping = PLAIN
    method: ClassVar[str] = "dtw_pairs"

    @property
    def shape(self) -> tuple[int, int]:
        """All pairs, one column."""
        return len(self.pairs), 1

    @property
    def sides(self) -> tuple[Series, Series]:
        """The two sets."""
        return self.left, self.right

    @property
    def cell(self) -> tuple[int, int]:
        """One pair, so that the survivors of a search fit into memory wherever the search did."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of the vector."""
        return 8 * len(self.pairs)

    def part(self, tile: Tile) -> DTWPairs:
        """Return some of the pairs with just the series that they name."""
        pairs = self.pairs[tile.rows]
        left, left_index = np.unique(pairs[:, 0], return_inverse=True)
        right, right_index = np.unique(pairs[:, 1], return_inverse=True)
        pairs = np.column_stack([left_index.ravel(), right_index.ravel()])
        return DTWPairs(self.left.take(left), self.right.take(right), pairs, self.warping)

    def start(self) -> np.ndarray:
        """Return the empty vector of distances."""
        return np.empty(len(self.pairs))

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write the distances of a run of pairs."""
        total[tile.rows] = result

    def finish(self, total: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Hand the distances out, if they are such."""
        self.warping.check_distances(total, self.pairs)
        return total

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some distances."""
        for place in sample(len(self.pairs)):
            i, j = self.pairs[place].tolist()
            expected = plain_distance(self.left, i, self.right, j, self.warping)
            yield check_value(f"the distance of {i} and {j}", answer[place], expected)


class DTWSearch(DTWReduction):
    """A search of queries among candidates: in float32 where that is sure to lose none.

    It ends at the `n_neighbors` nearest of each query, or at all within `radius`.
    """

    queries: Series
    candidates: Series
    n_neighbors: int
    radius: float
    excluded: np.ndarray | None
    precision: str

    @abstractmethod
    def survivor_bytes(self) -> int:
        """Bytes that the survivors of all queries may take at most."""

    @abstractmethod
    def shortlist(self, estimates: np.ndarray, bound: Bound, tile: Tile) -> Shortlist:
        """Keep of the estimates of a tile those that may be in the answer."""

    def excluded_of(self, tile: Tile) -> np.ndarray | None:
        """Columns of a tile that its rows must not find."""
        return None if self.excluded is None else self.excluded[tile.rows] - tile.col

    @property
    def sides(self) -> tuple[Series, Series]:
        """The two sets."""
        return self.queries, self.candidates

    @property
    def single(self) -> bool:
        """Whether the search runs in float32, if its error has a bound."""
        if self.precision == "float32" and self.warping.rough:
            return True
        return self.precision != "float64" and self.warping.bounded

    @cached_property
    def rescaling(self) -> Rescaling:
        """Offset and scale of the float32 search, taken from the candidates."""
        return self.warping.rescaling(*self.candidates.extent)

    def scale_and_bound(self, error: float) -> tuple[float, Bound]:
        """By what distances of the search are too large, and how they bound certified ones.

        `error` is the largest rounding error of a query's points plus that of a candidate's.
        """
        n, m = (side.n_timepoints for side in self.sides)
        warping, scale = self.warping, self.rescaling.scale
        if not warping.bounded:
            return warping.unscaled(scale), Bound()
        steps, channels = warping.steps(n, m), warping.spread * self.queries.n_channels
        # see "dtw float32" in docs/developer/numerics.rst
        bound = dtw_bound(
            steps, channels, error, scale, squared=warping.squared, more=warping.roundings
        )
        return scale, bound

    def certify(
        self,
        query: np.ndarray,
        candidate: np.ndarray,
        estimate: np.ndarray,
        run: Callable[[Reduction], Any],
        sure: np.ndarray | bool = False,
    ) -> np.ndarray:
        """Return distances of survivors, certified where `precision` asks for it and not `sure`."""
        # costs of queries far larger than the candidates leave the range of float32
        settled = {"auto": False, "float32": np.isfinite(estimate), "float64": True}
        rows = np.flatnonzero(~np.broadcast_to(settled[self.precision] | sure, query.shape))
        if not rows.size:
            return estimate
        pairs = np.column_stack([query[rows], candidate[rows]])
        value = estimate.copy()
        value[rows] = run(DTWPairs(self.queries, self.candidates, pairs, self.warping))
        return value

    def plain_distance(self, query: int, candidate: int) -> float:
        """Distance of a query and a candidate, by plain code."""
        return plain_distance(self.queries, query, self.candidates, candidate, self.warping)


@dataclass(frozen=True, eq=False)
class DTWNeighbors(NeighborsInBatches, DTWSearch):
    """The nearest candidates of each query.

    Parameters
    ----------
    queries, candidates : Series
        Two sets of series.
    n_neighbors : int
        Neighbours of each query.
    excluded : ndarray of shape (n_queries,), int64, or None
        One candidate that a query must not find, itself in leave-one-out; out of range is none.
    precision : {"auto", "float32", "float64"}
        "auto" searches in float32 and certifies, "float32" leaves out the certificate, but for
        distances that float32 does not hold, "float64" searches in float64.
    warping : Warping
        Options of the distance.
    """

    precision: str = "auto"
    warping: Warping = PLAIN
    method: ClassVar[str] = "dtw_neighbors"

    radius: ClassVar[float] = np.inf  # type: ignore[misc]  # of any distance

    def shortlist(self, estimates: np.ndarray, bound: Bound, tile: Tile) -> Shortlist:
        """Keep of the estimates of a tile those that may be among the nearest."""
        return shortlist(estimates, self.n_neighbors, bound, self.excluded_of(tile))

    def finish(self, total: Shortlists, run: Callable[[Reduction], Any]) -> Neighbors:
        """Certify the survivors and choose among them; settle the rest in float64."""
        query, candidate, estimate, *_ = total.compact()
        value = self.certify(query, candidate, estimate, run)
        answer = nearest(query, candidate, value, len(self.queries), self.n_neighbors)
        rest = total.overflowed_rows[0]
        if rest.size:
            excluded = None if self.excluded is None else self.excluded[rest]
            settled = run(
                replace(
                    self, queries=self.queries.take(rest), excluded=excluded, precision="float64"
                )
            )
            answer.distances[rest] = settled.distances
            answer.indices[rest] = settled.indices
        return answer

    def verify(self, answer: Neighbors, sample: Sample) -> Iterator[Check]:
        """Compare some neighbours, and some of the other candidates."""
        if self.precision != "float32":
            yield from check_neighbors(self, answer, sample, 8)


class WarpingPath(NamedTuple):
    """A best path and the distance along it."""

    path: np.ndarray
    distance: float


@dataclass(frozen=True, eq=False)
class DTWPath(DTWReduction):
    """A best warping path between two series; of equal steps back the diagonal, then the row.

    Parameters
    ----------
    x, y : Series
        One series each.
    warping : Warping
        Options of the distance.
    """

    x: Series
    y: Series
    warping: Warping = PLAIN
    method: ClassVar[str] = "dtw_path"

    @property
    def shape(self) -> tuple[int, int]:
        """One piece of work."""
        return 1, 1

    @property
    def sides(self) -> tuple[Series, Series]:
        """The two sets."""
        return self.x, self.y

    def __post_init__(self) -> None:
        if self.warping.independent and self.x.n_channels > 1:
            raise ValueError(
                f"There is no path of several channels under metric={self.warping.metric!r}: each "
                "channel has its own."
            )

    def part(self, tile: Tile) -> DTWPath:
        """Return itself: a path does not split."""
        return self

    def start(self) -> list[WarpingPath]:
        """Return the list that receives the path."""
        return []

    def merge(self, total: list[WarpingPath], tile: Tile, result: WarpingPath) -> None:
        """Keep the path."""
        total.append(result)

    def finish(self, total: list[WarpingPath], run: Callable[[Reduction], Any]) -> WarpingPath:
        """Hand the path out."""
        x, y = (side.values[0, :, : side.lengths[0]] for side in self.sides)
        return total[0]._replace(path=self.warping.matched(total[0].path, x, y))

    def verify(self, answer: WarpingPath, sample: Sample) -> Iterator[Check]:
        """Compare the distance, and follow the path."""
        x, y = (side.values[0, :, : side.lengths[0]] for side in self.sides)
        n, m = x.shape[1], y.shape[1]
        expected = plain_distance(self.x, 0, self.y, 0, self.warping)
        yield check_value("the distance", answer.distance, expected)
        path, alignment = answer.path, self.warping.alignment
        if self.warping.borders:
            inside = np.abs(path[:, 0] - path[:, 1]) <= self.warping.radius(n, m)
            allowed = (np.diff(path, axis=0) > 0).all() and inside.all()
            yield Check("the path", path.tolist(), "pairs in order, in the band", bool(allowed))
            return
        allowed = np.isin(np.diff(path, axis=0) @ [2, 1], [1, 2, 3]).all()
        allowed &= np.abs(np.diff(path, axis=0)).max(initial=0) <= 1
        allowed &= (np.abs(path[:, 0] - path[:, 1]) <= self.warping.radius(n, m)).all()
        ends = [(path[0, 0], path[-1, 0]) == (0, n - 1), (path[0, 1], path[-1, 1]) == (0, m - 1)]
        allowed &= ends[0] or alignment == "supersequence"
        allowed &= ends[1] or alignment == "subsequence"
        yield Check("the path", path.tolist(), "one that warping allows", bool(allowed))
        if allowed and type(self.warping) is Warping:
            differences = x[:, path[:, 0]] - y[:, path[:, 1]]
            costs = np.abs(differences) if not self.warping.squared else differences * differences
            # cumulative sums add in order
            costs = np.cumsum(costs, axis=0)[-1]
            total = costs.max() if self.warping.largest else np.cumsum(costs)[-1]
            along = float(self.warping.distance(total))
            yield check_value("the distance along the path", along, expected)


def along_descriptors(
    work: DTWPath, warping: ShapeDTW, path_of: Callable[[Series, Series], np.ndarray]
) -> WarpingPath:
    """Find the best path between descriptors, and the distance of the points along it.

    Parameters
    ----------
    work : DTWPath
        The two series.
    warping : ShapeDTW
        Options of the distance.
    path_of : callable
        Takes one series and another, and returns the best path between their descriptors.

    Returns
    -------
    WarpingPath
        The path from the first series to the second, in whichever order they are compared.
    """
    first, second, swapped = in_order(work.x, work.y, np.zeros((1, 2), np.int64))
    path = path_of(first, second)
    distance = warping.along(path, first.values[0], second.values[0])
    return WarpingPath(np.ascontiguousarray(path[:, ::-1]) if swapped[0] else path, distance)
