"""Windows of several channels against queries on the CPU: bounds, then warping, best first.

Bounds of all windows are those of single channels (`lanes`), whose sum bounds the cost: a path
through all channels costs in each at least what the best path of that channel does. Under the
dog-keeper distance the largest of them does. Windows go on in the order of their bounds, are
normalised by their certified statistics, and warped in lanes by the kernel of pairs of series
(`elastic.dtw`), until the next bound is beyond all that may match. Lanes give up together, as soon
as no path gets through a strip for less than what the columns behind it leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...families.elastic.warping import Warping
from ...families.profile.concatenated import fill_gaps as fill_gaps_of_line
from ...families.search.subsequence import (
    Gathered,
    LongSeries,
    SubsequenceNeighbors,
    TileMatches,
    normalize_windows,
    query_envelope,
)
from ...host import kernel
from ...host.arrays import put
from ..elastic import dtw
from ..elastic.dtw import NARROW
from . import lanes
from .lanes import AlikeQueries, Comparison, Piece, Room
from .statistics import RUNNING_ERROR, running_statistics

__all__ = ["ChannelPiece", "bound_windows", "fill_gaps", "most_bytes", "prepare", "search"]

LANES = lanes.LANES
#: Groups of lanes that are warped at a time: first, and at most; each chunk has twice those before.
FIRST, MOST = 4, 64


class ChannelPiece(NamedTuple):
    """A piece of the line, prepared for one length of windows.

    Attributes
    ----------
    points : ndarray of shape (n_channels, n_points), float64
        Finite points, and a group of lanes more.
    whole : ndarray of shape (n_windows,), bool
        Which windows are finite in all channels.
    mean, inverse : ndarray of shape (n_channels, n_windows + lanes), float64
        From `running_statistics`.
    """

    points: np.ndarray
    whole: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray


def fill_gaps(line: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Make a line of several channels finite; and where all of them were."""
    pairs = [fill_gaps_of_line(channel) for channel in line]
    filled, finite = (np.stack(part) for part in zip(*pairs, strict=True))
    everywhere: np.ndarray = np.logical_and.reduce(finite)
    return filled, everywhere


def most_bytes(n_channels: int, length: int, n_windows: int) -> int:
    """Bytes that a search holds beside its piece: bounds, their order, windows that are warped."""
    of_a_lane = MOST * (n_channels * (length + 1) + length // NARROW + 9) + 2 * length
    return 60 * n_windows + 8 * LANES * of_a_lane


@kernel
def _least_of(values):
    """The least of some values, none of which is NaN."""
    least = values[0]
    for lane in range(values.size):
        least = values[lane] if values[lane] < least else least
    return least


@kernel
def bound_windows(piece, queries, comparison, limit, out, cancel):
    """Bound what each window costs at least; infinite where it is not finite.

    Parameters
    ----------
    piece : ChannelPiece
        The windows.
    queries : AlikeQueries
        The query: a row for each channel.
    comparison : Comparison
        How they are compared.
    limit : float
        Cost beyond which bounds need not be close.
    out : ndarray of shape (n_windows,)
        Bounds.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    whole, largest = piece.whole, comparison.largest
    n_windows, n_channels, length = whole.size, piece.points.shape[0], queries.points.shape[1]
    # for envelopes of windows; nothing is warped here
    room = Room(
        np.empty((2, LANES + 2 * length)),
        np.empty((2, LANES + 2 * length)),
        np.empty((1, LANES)),
        np.empty(1, np.int64),
        np.empty((1, LANES)),
        np.empty(1),
        np.empty(1),
    )
    total, other, one = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    both = comparison.radius > 0 and length > 2
    for p in range(0, n_windows, LANES):
        if cancel[0]:
            return
        total[:] = 0.0
        if whole[p : p + LANES].any():
            for c in range(n_channels):
                channel = Piece(piece.points[c], whole, piece.mean[c], piece.inverse[c])
                lanes.bound_by_query(channel, p, queries, c, comparison, limit, one)
                for lane in range(LANES):
                    most = one[lane] if one[lane] > total[lane] else total[lane]
                    total[lane] = most if largest else total[lane] + one[lane]
                if _least_of(total) > limit:
                    break
            if both and not _least_of(total) > limit:
                other[:] = 0.0
                for c in range(n_channels):
                    channel = Piece(piece.points[c], whole, piece.mean[c], piece.inverse[c])
                    row = lanes.envelope_of_windows(channel, p, length, comparison.radius, room)
                    one[:] = 0.0
                    lanes.bound_by_windows(
                        channel, p, queries, c, comparison, room, row, limit, one
                    )
                    for lane in range(LANES):
                        most = one[lane] if one[lane] > other[lane] else other[lane]
                        other[lane] = most if largest else other[lane] + one[lane]
                for lane in range(LANES):
                    total[lane] = other[lane] if other[lane] > total[lane] else total[lane]
        for lane in range(min(LANES, n_windows - p)):
            out[p + lane] = total[lane] if whole[p + lane] else np.inf


@kernel
def lay_windows(points, places, queries, comparison, cost, out, limits):
    """Lay windows side by side, normalised by their certified statistics, and limit each strip.

    A path crosses all columns behind a strip, and costs in each at least what its points are
    outside the query's envelope; so that much less is left for the columns up to it.

    Parameters
    ----------
    points : ndarray of shape (n_channels, n_points)
        The piece.
    places : ndarray of shape (n_windows,), int64
        Where the windows start.
    queries : AlikeQueries
        The query: a row for each channel.
    comparison : Comparison
        How they are compared.
    cost : float
        Accumulated cost above which a window is no match.
    out : ndarray of shape (n_groups, length, n_channels, lanes)
        Receives the windows, as `dtw.pack` has them; the last one fills the lanes that are left.
    limits : ndarray of shape (n_groups, n_strips, lanes)
        Receives limits, as `dtw.block` takes them.
    """
    n_groups, length, n_channels = out.shape[0], out.shape[1], out.shape[2]
    normalize, squared, largest = comparison.normalize, comparison.squared, comparison.largest
    windows, outside = np.empty((length, LANES)), np.empty((length, LANES))
    anchor, mean, scale = np.zeros(LANES), np.zeros(LANES), np.ones(LANES)
    rest = np.empty(LANES)
    for group in range(n_groups):
        outside[:] = 0.0
        for c in range(n_channels):
            # strip by strip: a cache holds the same few rows of all lanes
            for start in range(0, length, NARROW):
                for lane in range(LANES):
                    place = places[min(group * LANES + lane, places.size - 1)]
                    for j in range(start, min(start + NARROW, length)):
                        windows[j, lane] = points[c, place + j]
            if normalize:
                put(windows[0], anchor)
                lanes.moments_of_lanes(windows, mean, scale)
            for j in range(length):
                low, high = queries.low[c, j], queries.high[c, j]
                for lane in range(LANES):
                    z = windows[j, lane]
                    if normalize:
                        z = ((z - anchor[lane]) - mean[lane]) * scale[lane]
                    out[group, j, c, lane] = z
                    d = max(max(z - high, low - z), 0.0)
                    outside[j, lane] += d * d if squared else d
        rest[:] = 0.0
        for strip in range(limits.shape[1] - 1, -1, -1):
            for lane in range(LANES):
                left = cost - rest[lane]
                if largest:
                    left = cost if left >= 0.0 else -1.0
                limits[group, strip, lane] = left
            for j in range(strip * NARROW, min((strip + 1) * NARROW, length)):
                for lane in range(LANES):
                    here, total = outside[j, lane], rest[lane]
                    rest[lane] = max(total, here) if largest else total + here


def prepare(points: np.ndarray, whole: np.ndarray, length: int, normalize: bool) -> ChannelPiece:
    """Prepare the windows of a piece, whose points are followed by those of a group of lanes."""
    shape = len(points), whole.size + LANES
    mean, inverse = np.zeros(shape), np.ones(shape)
    for channel, one in enumerate(points if normalize else ()):
        running_statistics(one, length, whole.size, mean[channel], inverse[channel])
    return ChannelPiece(points, whole, mean, inverse)


def search(
    reduction: SubsequenceNeighbors, row: int, piece: ChannelPiece, cancel: np.ndarray
) -> TileMatches:
    """Windows of a piece that may match a query."""
    return _Search(reduction, row, piece, cancel).run()


class _Search:
    """The search of one query, and the windows that it has found so far."""

    def __init__(
        self, reduction: SubsequenceNeighbors, row: int, piece: ChannelPiece, cancel: np.ndarray
    ) -> None:
        self.warping: Warping = reduction.warping
        self.normalize = bool(reduction.normalize)
        given = np.array(reduction.queries[row], np.float64)
        self.query = normalize_windows(given, self.normalize)
        self.length = length = given.shape[1]
        self.need = reduction.apart_of(length, piece.whole.size)
        self.exclusion = reduction.exclusion_of(length)
        self.piece, self.cancel = piece, cancel
        self.line = LongSeries((piece.points,))
        # of each point of each channel, see "running statistics" in docs/developer/numerics.rst
        terms = given.size
        self.slack = 0.0
        if self.normalize:
            self.slack = 2 * RUNNING_ERROR * (np.sqrt(terms) if self.warping.squared else terms)
        self.found = Gathered(reduction.limit_of(row), np.empty(0, np.int64), np.empty(0))

    def cost(self, slack: float = 0.0) -> float:
        """Accumulated cost above which a window is no match."""
        beyond = float((self.found.limit + slack) * (1 + 1e-9))
        # a product of floats that is too large is infinite
        return beyond * beyond if self.warping.squared else beyond

    def run(self) -> TileMatches:
        """Bound all windows, and warp those that may match."""
        bounds = np.empty(self.piece.whole.size)
        warping, length = self.warping, self.length
        radius = min(int(warping.radius(length, length)), length - 1)
        comparison = Comparison(radius, self.normalize, warping.squared, warping.largest)
        limit = self.cost(self.slack)
        self.queries, self.comparison = self._envelopes(radius), comparison
        bound_windows(self.piece, self.queries, comparison, limit, bounds, self.cancel)
        if self.cancel[0]:
            return TileMatches(self.found.positions, self.found.distances)
        left = np.flatnonzero((bounds <= limit) & self.piece.whole)
        if self.need and limit == np.inf and left.size:
            seeds = self._seeds(bounds)
            self._warp(seeds)
            left = np.setdiff1d(left, seeds, assume_unique=True)
            left = left[bounds[left] <= self.cost(self.slack)]
        left = left[np.argsort(bounds[left], kind="stable")]
        start, groups = 0, FIRST
        while start < left.size and not self.cancel[0]:
            some = left[start : start + groups * LANES]
            # bounds ascend
            some = some[bounds[some] <= self.cost(self.slack)]
            if some.size == 0:
                break
            self._warp(some)
            start, groups = start + groups * LANES, min(2 * groups, MOST)
        return TileMatches(self.found.positions, self.found.distances)

    def _envelopes(self, radius: int) -> AlikeQueries:
        """The channels of the query, as those of single channels are bounded."""
        sides = [query_envelope(channel, radius) for channel in self.query]
        low, high = (np.array(side) for side in zip(*sides, strict=True))
        telling = np.maximum(low, -high)
        telling[:, [0, -1]] = np.inf
        order = np.argsort(-telling, axis=1, kind="stable")
        own_order = np.argsort(-np.abs(self.query), axis=1, kind="stable")
        return AlikeQueries(self.query, low, high, order, own_order)

    def _seeds(self, bounds: np.ndarray) -> np.ndarray:
        """Windows of the least bounds, apart from each other: they bound the last match."""
        run = self.exclusion + 1
        count = -(-bounds.size // run)
        padded = np.full(count * run, np.inf)
        padded[: bounds.size] = np.where(self.piece.whole, bounds, np.inf)
        at = padded.reshape(count, run).argmin(axis=1) + run * np.arange(count)
        at = at[np.isfinite(padded[at])]
        # neighbouring runs may have two that are near each other
        wanted = -(-max(2 * self.need, FIRST * LANES) // LANES) * LANES
        chosen: np.ndarray = np.sort(at[np.argsort(padded[at], kind="stable")[:wanted]])
        return chosen

    def _warp(self, places: np.ndarray) -> None:
        """Measure windows, and keep those that match."""
        for start in range(0, places.size, MOST * LANES):
            some = places[start : start + MOST * LANES]
            distances = self._measure(some)
            near = (distances <= self.found.limit) & (distances < np.inf)
            self.found.add(some[near], distances[near])
        if self.need:
            self.found.lower_limit(self.line, self.exclusion, self.need)

    def _measure(self, places: np.ndarray) -> np.ndarray:
        """Certified distances of windows; infinite beyond the limit."""
        n_groups, n_channels = -(-places.size // LANES), len(self.query)
        packed = np.empty((n_groups, self.length, n_channels, LANES))
        limits = np.empty((1, n_groups, -(-self.length // NARROW), LANES))
        given = self.piece.points, places, self.queries, self.comparison, self.cost()
        lay_windows(*given, packed, limits[0])
        lengths = np.zeros((n_groups, LANES), np.int64)
        lengths.ravel()[: places.size] = self.length
        costs = dtw.block(
            self.query[np.newaxis],
            np.array([self.length]),
            packed,
            lengths,
            self.warping,
            self.cancel,
            limits,
        )[0, : places.size]
        distances: np.ndarray = self.warping.distance(costs)
        return distances
