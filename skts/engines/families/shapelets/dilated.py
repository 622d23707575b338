"""Distances of given shapelets, dilated or not, to all series: best match, its start, a count."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...core.constants import LOST_SQUARES
from ...core.reduction import Reduction, Tile
from ...core.series import Series, are_constant
from ...core.verify import Check, Sample, check_value

__all__ = ["FEATURES", "DilatedShapelets", "DistanceQuantiles", "ShapeletFeatures"]

#: What is known of a shapelet and a series.
FEATURES = ("distance", "start", "count")


@dataclass(frozen=True, eq=False)
class DilatedShapelets:
    """Shapelets: some points, and how far apart they are looked for in a series.

    A window of a series has its points at ``start, start + dilation, ...``. The distance of a
    shapelet to it is the root of the mean of the squared differences; where the shapelet is
    normalised both are z-normalised first. Two constant windows are then at 0, a constant and
    another at 1.

    Parameters
    ----------
    points : ndarray of shape (n_points,), float64
        The points of all shapelets, one after the other, as they are; all finite.
    lengths : ndarray of shape (n_shapelets,), int64
        Points of each.
    dilations : ndarray of shape (n_shapelets,), int64
        Steps of time from a point to the next, 1 or more.
    channels : ndarray of shape (n_shapelets,), int64
        The channel in which each is looked for.
    normalized : ndarray of shape (n_shapelets,), bool
        Whether shapelet and windows are z-normalised.

    Notes
    -----
    Shapelets that differ in their points alone share what engines compute of a series, where they
    stand side by side.
    """

    points: np.ndarray
    lengths: np.ndarray
    dilations: np.ndarray
    channels: np.ndarray
    normalized: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def begins(self) -> np.ndarray:
        """Where the points of each begin."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def extents(self) -> np.ndarray:
        """Time points from the first point of each to its last, both included."""
        return (self.lengths - 1) * self.dilations + 1

    @cached_property
    def runs(self) -> np.ndarray:
        """Where runs of shapelets begin that differ in their points alone; their number at last."""
        kinds = np.stack([self.lengths, self.dilations, self.channels, self.normalized])
        new = np.any(kinds[:, 1:] != kinds[:, :-1], axis=0)
        return np.concatenate([[0], np.flatnonzero(new) + 1, [len(self)]]).astype(np.int64)

    def take(self, which: slice) -> DilatedShapelets:
        """Return some neighbouring shapelets; of all the same object, which knows more by then."""
        first, stop, _ = which.indices(len(self))
        if (first, stop) == (0, len(self)):
            return self
        begin = int(self.begins[first]) if first < len(self) else 0
        points = self.points[begin : begin + int(self.lengths[first:stop].sum())]
        rest = self.lengths, self.dilations, self.channels, self.normalized
        return DilatedShapelets(points, *(column[first:stop] for column in rest))

    @cached_property
    def prepared(self) -> tuple[np.ndarray, np.ndarray]:
        """Points as they are compared, and which shapelets are constant.

        Sums are taken in the order of time: the values are those of windows of a series.
        """
        points, constant = self.points.copy(), np.zeros(len(self), bool)
        for length in np.unique(self.lengths[self.normalized]).tolist():
            rows = np.flatnonzero((self.lengths == length) & self.normalized)
            places = self.begins[rows, np.newaxis] + np.arange(length)
            z, constant[rows] = normalize_rows(points[places].T)
            points[places] = z.T
        return points, constant


def normalize_rows(windows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Z-normalise windows of shape (length, n_windows); also return which are constant.

    Points count from the first of their window.
    """
    low, high = windows.min(axis=0), windows.max(axis=0)
    windows = windows - windows[0]
    total, squares = np.zeros((2, windows.shape[1]))
    for row in windows:
        total += row
    total /= len(windows)
    for row in windows:
        squares += np.square(row - total)
    deviation = np.sqrt(squares / len(windows))
    constant = are_constant(low, high)
    inverse = np.divide(1.0, deviation, out=np.zeros(total.shape), where=~constant)
    windows -= total
    windows *= inverse
    return windows, constant


@dataclass(frozen=True, eq=False)
class ShapeletFeatures(Reduction):
    """Distance, start and count of matches of each shapelet in each series, certified.

    Distances are float64 values of one order of operations, the same on every engine; for a
    dilation of 1 they are those of `SubsequenceMatches` over the root of the length.

    Parameters
    ----------
    shapelets : DilatedShapelets
        The shapelets.
    series : Series
        The series; all points are finite.
    thresholds : ndarray of shape (n_shapelets,), float64
        Windows up to this distance are counted.
    features : tuple of {"distance", "start", "count"}, default all three
        Which to compute: the least distance, the first start of it (of the norm, before the root
        of the length divides it), how many windows are within the threshold. Where a series is
        shorter than the extent of the shapelet they are infinite,
        -1 and 0.

    Notes
    -----
    The answer is an ndarray of shape (n_series, n_features, n_shapelets), float64.
    """

    shapelets: DilatedShapelets
    series: Series
    thresholds: np.ndarray
    features: tuple[str, ...] = FEATURES
    method: ClassVar[str] = "shapelet_features"

    @property
    def shape(self) -> tuple[int, int]:
        """Shapelets and series."""
        return len(self.shapelets), len(self.series)

    @property
    def step_work(self) -> int:
        """Points of all windows of a series, for a shapelet of mean size."""
        lengths, extents = self.shapelets.lengths, self.shapelets.extents
        windows = np.maximum(1, self.series.n_timepoints - extents + 1)
        return max(1, int(lengths @ windows) // max(1, len(lengths)))

    @property
    def cell(self) -> tuple[int, int]:
        """One shapelet in one series."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of the features."""
        return 8 * len(self.features) * self.shape[0] * self.shape[1]

    def part(self, tile: Tile) -> ShapeletFeatures:
        """Return some shapelets in some series."""
        return replace(
            self,
            shapelets=self.shapelets.take(tile.rows),
            series=self.series.take(tile.cols),
            thresholds=self.thresholds[tile.rows],
        )

    @cached_property
    def limits(self) -> np.ndarray:
        """The largest sum of squares of a distance that is within the threshold of a shapelet."""
        return largest_squares(self.thresholds, self.shapelets.lengths)

    def start(self) -> np.ndarray:
        """Return an empty array."""
        return np.empty((len(self.series), len(self.features), len(self.shapelets)))

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write a block."""
        total[tile.cols, :, tile.rows] = result

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some features, point by point."""
        n_series, _, n_shapelets = answer.shape
        for place in sample(n_series * n_shapelets):
            column, row = divmod(place, n_shapelets)
            one = self.shapelets.take(slice(row, row + 1))
            norms = plain_norms(one, self.series, column)
            distances = norms / np.sqrt(one.lengths[0])
            best = int(np.argmin(norms)) if norms.size else -1
            least = float(distances[best]) if distances.size else math.inf
            count = np.count_nonzero(distances <= self.thresholds[row])
            expected = dict(zip(FEATURES, (least, best, count), strict=True))
            for number, name in enumerate(self.features):
                item = f"the {name} of shapelet {row} in series {column}"
                yield check_value(item, answer[column, number, row], expected[name])


@dataclass(frozen=True, eq=False)
class DistanceQuantiles(Reduction):
    """An order statistic of the distances of each shapelet to the windows of one series.

    Parameters
    ----------
    shapelets : DilatedShapelets
        The shapelets.
    series : Series
        The series; all points are finite.
    partners : ndarray of shape (n_shapelets,), int64
        The series of each shapelet.
    ranks : ndarray of shape (n_shapelets,), int64
        Which of the distances, in ascending order from 0 on.

    Notes
    -----
    The answer is an ndarray of shape (n_shapelets,), float64; infinite where the series is shorter
    than the shapelet's extent.
    """

    shapelets: DilatedShapelets
    series: Series
    partners: np.ndarray
    ranks: np.ndarray
    method: ClassVar[str] = "distance_quantiles"

    @property
    def shape(self) -> tuple[int, int]:
        """Shapelets, and 1."""
        return len(self.shapelets), 1

    @property
    def step_work(self) -> int:
        """Points of all windows of a series, with those of sorting."""
        return 4 * int(self.shapelets.lengths.max()) * self.series.n_timepoints

    @property
    def cell(self) -> tuple[int, int]:
        """One shapelet."""
        return 1, 1

    def result_bytes(self) -> int:
        """Size of the distances."""
        return 8 * len(self.shapelets)

    def part(self, tile: Tile) -> DistanceQuantiles:
        """Return some shapelets, with their series alone."""
        rows, partners = np.unique(self.partners[tile.rows], return_inverse=True)
        shapelets, series = self.shapelets.take(tile.rows), self.series.take(rows)
        return DistanceQuantiles(shapelets, series, partners.reshape(-1), self.ranks[tile.rows])

    def start(self) -> np.ndarray:
        """Return an empty array."""
        return np.empty(len(self.shapelets))

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write sums of squares."""
        total[tile.rows] = result

    def finish(self, total: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Turn sums of squares into distances; those that lost bits are summed again."""
        found = np.sqrt(total) / np.sqrt(self.shapelets.lengths)
        for row in np.flatnonzero((total < LOST_SQUARES) & ~self.shapelets.normalized).tolist():
            found[row] = self._plain(row)
        return found

    def verify(self, answer: np.ndarray, sample: Sample) -> Iterator[Check]:
        """Compare some distances."""
        for row in sample(len(self.shapelets)):
            yield check_value(f"the quantile of shapelet {row}", answer[row], self._plain(row))

    def _plain(self, row: int) -> float:
        one = self.shapelets.take(slice(row, row + 1))
        norms = plain_norms(one, self.series, int(self.partners[row]))
        if not norms.size:
            return math.inf
        return float(np.sort(norms)[self.ranks[row]] / np.sqrt(one.lengths[0]))


def plain_norms(one: DilatedShapelets, series: Series, column: int) -> np.ndarray:
    """Norms of the differences of one shapelet and all windows of a series, by plain code.

    Windows whose starts are equal modulo the dilation d are plain ones of every d-th point.
    """
    from ...host import plain

    length, step = int(one.lengths[0]), int(one.dilations[0])
    points = series.values[column, one.channels[0], : series.lengths[column]]
    found = np.empty(max(0, len(points) - (length - 1) * step))
    for phase in range(min(step, len(found))):
        every = np.ascontiguousarray(points[phase::step])
        places = np.arange(len(found[phase::step]))
        normalize = bool(one.normalized[0])
        query = np.ascontiguousarray(one.points)
        found[phase::step] = plain.profile(query, 0, every, places, length, normalize)
    return found


def largest_squares(thresholds: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The largest sum of squares whose root, over that of the length, is within a threshold.

    Both roots and the quotient are rounded: the sum is some units in the last place from the square
    of their product; -1 where there is none.
    """
    # see "roots of sums" in docs/developer/numerics.rst
    roots = np.sqrt(lengths.astype(np.float64))

    def within(squares: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.sqrt(squares) / roots <= thresholds
        return result

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        high = np.square(np.maximum(thresholds, 0.0) * roots) * (1 + 2.0**-49)
        high = np.minimum(high + 5e-324, np.finfo(np.float64).max)
        high[np.isnan(high)] = 0.0
        low = high * (1 - 2.0**-47)
    # bits of numbers that are not negative are in their order
    above, below = high.view(np.int64), low.view(np.int64) - 1
    below = np.where(within(np.maximum(below, 0).view(np.float64)), below, -1)
    while np.any(above - below > 1):
        middle = below + (above - below) // 2
        good = within(np.maximum(middle, 0).view(np.float64)) & (middle >= 0)
        below, above = np.where(good, middle, below), np.where(good, above, middle)
    top = within(high)
    found = np.where(below >= 0, np.maximum(below, 0).view(np.float64), -1.0)
    return np.where(thresholds == np.inf, np.inf, np.where(top, high, found))
