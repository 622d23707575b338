"""Shapelets on the GPU: launches, and the candidates that could be the best."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from .._series import Series
from .._shapelets import Criterion, Survivors, Tables
from .loading import load_kernel as _kernel
from .matches import best_matches
from .shapelet_programs import scan_kernel, walk_kernel

__all__ = ["DeviceSeries", "Heads", "Lines", "Walk", "best_matches", "lay"]

#: Rows that the walk may fetch beyond the last.
CHUNK = 32
#: A promise on the list: gain, highest and lowest gap, series, start, length and way.
PROMISE = np.dtype(
    [("gain", "i8"), ("high", "f4"), ("low", "f4")]
    + [(name, "i4") for name in ("series", "start", "length", "way")]
)
REACHED = np.dtype([("gain", "i8"), ("settled", "i8"), ("gap", "f4"), ("count", "i4")])
#: Entries that may stay on the list when a length is done.
HELD = 2**17
#: Candidates of a group of lengths that the list has room for beside those.
LISTED = 2**21
#: Candidates that are measured at first; distances that are measured at a time.
FEW, DISTANCES = 256, 2**21


def _blocks(count: int, threads: int) -> int:
    return -(-count // threads)


class DeviceSeries(NamedTuple):
    """One channel of some series on the device.

    Attributes
    ----------
    points, centered : cupy.ndarray of shape (n_series, n_timepoints), float64
        The points, and less the mean of their series.
    sizes : cupy.ndarray of shape (n_series,), int32
        Points of each series.
    size, middle : cupy.ndarray of shape (n_series,), float64
        Magnitude of centred points, at most, and of the mean.
    """

    points: cp.ndarray
    centered: cp.ndarray
    sizes: cp.ndarray
    size: cp.ndarray
    middle: cp.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self)

    def take(self, members: cp.ndarray) -> DeviceSeries:
        """Return some of the series."""
        return DeviceSeries(*(array[members] for array in self))


def lay(series: Series, channel: int) -> DeviceSeries:
    """Bring a channel of series to the device."""
    points, sizes = cp.asarray(series.values[:, channel]), cp.asarray(series.lengths)
    there = cp.arange(series.n_timepoints) < sizes[:, None]
    points = cp.ascontiguousarray(cp.where(there, points, 0.0))
    middle = points.sum(axis=1) / sizes
    centered = cp.where(there, points - middle[:, None], 0.0)
    size = cp.abs(centered).max(axis=1)
    return DeviceSeries(points, centered, sizes.astype(np.int32), size, cp.abs(middle))


class Heads(NamedTuple):
    """Least scores of the windows of a block of series among those of all, for one length.

    Attributes
    ----------
    scores : cupy.ndarray of shape (n_series, n_block, n_windows), int32
        Leading bits of 1 less the best correlation.
    weights : cupy.ndarray of shape (n_block, n_windows), float64
        Weights of the windows of the block, 1 / norm.
    constant : cupy.ndarray of shape (n_block, n_windows), uint8
        Which of these are constant.
    errors : cupy.ndarray of shape (n_block, n_series), float32
        What squared distances are wrong by, by the weight of the window.
    floors : cupy.ndarray of shape (n_block,), float32
        To be added to that.
    kinds : cupy.ndarray of shape (n_series,), int32
        Whether a series has constant windows (1) and others (2).
    """

    scores: cp.ndarray
    weights: cp.ndarray
    constant: cp.ndarray
    errors: cp.ndarray
    floors: cp.ndarray
    kinds: cp.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self)


class Walk:
    """The walk over the windows of series, for one length after the other.

    Parameters
    ----------
    series : DeviceSeries
        The series.
    first, stop : int
        The block of candidates.
    shortest : int
        The least length.
    """

    def __init__(self, series: DeviceSeries, first: int, stop: int, shortest: int) -> None:
        self.series, self.first, self.stop = series, first, stop
        n, width = series.points.shape
        self.edge = width - shortest + 1
        self.before = 0
        n_block = stop - first
        self.forward = cp.empty((n_block, n, self.edge))
        # a block of all series is its own other side
        self.backward = self.forward if n_block == n else cp.empty((n, n_block, self.edge))
        self.carry = cp.empty(n_block * n * self.edge if self.edge > 32 else 0)

    def __call__(self, length: int) -> Heads:
        """Scores for a length, not shorter than the one before."""
        series, first, stop = self.series, self.first, self.stop
        n, width = series.points.shape
        stride, n_block = width - length + 1, stop - first
        rows = cp.empty((n, stride + CHUNK, 4))
        q, s, w, mean = (cp.empty((n, stride)) for _ in range(4))
        constant, zeros = cp.empty((n, stride), np.uint8), cp.zeros(4 * n)
        largest, kinds = zeros[: 3 * n], zeros[3 * n :].view(np.int32)[:n]
        size = np.int32(length)
        _kernel("shapelets.cu", "prepare")(
            (_blocks(stride + CHUNK, 128), n),
            (128,),
            (
                *(series.points, series.centered, series.sizes, np.int32(width)),
                *(np.int32(stride), size, rows, q, s, w, mean, constant, kinds, largest),
            ),
        )
        errors, floors = cp.empty((n_block, n), np.float32), cp.empty(n_block, np.float32)
        _kernel("shapelets.cu", "doubts")(
            (n_block,),
            (128,),
            (
                *(largest, series.size, series.middle, np.int32(n), np.int32(first)),
                *(np.int32(stride), size, errors, floors),
            ),
        )
        sides = [(self.forward, first, n_block, 0, n), (self.backward, 0, n, first, n_block)]
        for out, first_a, n_a, first_b, n_b in sides[: 1 if n_block == n else 2]:
            _kernel("shapelets.cu", "edges")(
                (_blocks(stride, 128), n_b, _blocks(n_a, 4)),
                (128,),
                (
                    *(series.centered, np.int32(width), series.sizes, np.int32(first_a)),
                    *(np.int32(n_a), np.int32(first_b), np.int32(n_b), np.int32(self.before)),
                    *(size, out, np.int32(self.edge)),
                ),
            )
        self.before = length
        scores = cp.empty((n, n_block, stride), np.int32)
        _kernel("shapelets.cu", walk_kernel(stride))(
            (_blocks(n, 4), n_block),
            (128,),
            (
                *(rows, q, s, w, mean, series.sizes, np.int32(stride), np.int32(first)),
                *(np.int32(n_block), np.int32(n), size, self.forward, self.backward),
                *(np.int32(self.edge), self.carry, scores),
            ),
        )
        return Heads(scores, w[first:stop], constant[first:stop], errors, floors, kinds)


class DeviceRules:
    """How cuts are judged, on the device.

    Parameters
    ----------
    criterion : Criterion
        The rules.
    """

    def __init__(self, criterion: Criterion) -> None:
        tables: Tables = criterion.tables()
        labels, counts = (cp.asarray(a, np.int32) for a in (tables.labels, tables.counts))
        terms = np.zeros((len(tables.counts), len(tables.labels) + 1), np.int64)
        for changes, count, row in zip(tables.changes, tables.counts.tolist(), terms, strict=True):
            row[1 : count + 1] = np.cumsum(changes[:count] - changes[:count][::-1])
        base = tables.whole - tables.sides
        terms, base, weights = (cp.asarray(a) for a in (terms, base, tables.weights))
        self.arrays = labels, terms, base, weights, counts
        self.exact = base.size > 0
        self.n_members, self.n_classes = labels.size, counts.size
        share = tables.weights.max() / tables.total if tables.total > 0 else 1.0
        addresses = [array.data.ptr if array.size else 0 for array in self.arrays]
        numbers = [tables.whole, self.n_members, self.n_classes, max(1, tables.leaf)]
        floats = np.array([tables.least, share, tables.total]).view(np.int64)
        self.judge = cp.asarray(np.array([*addresses, *numbers, *floats.tolist()], np.int64))


class Lines:
    """Order lines of a node, and the candidates that could be the best.

    Parameters
    ----------
    values : cupy.ndarray of shape (n_series, n_channels, n_timepoints)
        All series.
    sizes : cupy.ndarray of shape (n_series,), int32
        Their points.
    members : ndarray of shape (n_members,)
        The series of the node.
    criterion : Criterion
        How cuts are judged.
    before : ndarray of shape (n_members,) or None
        Distances of the literals before.
    ways : tuple of str
        How a candidate joins them.
    least : tuple of (int, float)
        Gain and gap to be reached.
    candidates, lengths : int
        Candidates of a length, at most, and lengths.
    """

    def __init__(
        self,
        values: cp.ndarray,
        sizes: cp.ndarray,
        members: np.ndarray,
        criterion: Criterion,
        before: np.ndarray | None,
        ways: tuple[str, ...],
        least: tuple[int, float],
        candidates: int,
        lengths: int,
    ) -> None:
        self.values, self.sizes = values, sizes
        self.members = cp.asarray(members, np.int32)
        self.rules = DeviceRules(criterion)
        self.ways = ways
        numbers = [("first", "and", "or").index(way) for way in ways]
        self.way_numbers = cp.asarray(numbers, np.int32)
        known = np.zeros(len(members)) if before is None else before
        self.before = cp.asarray(known)
        self.rough_before = cp.asarray(known, np.float32)
        self.settled = cp.asarray((known == 0) | (known == 1)).astype(np.uint8)
        #: Lengths that may be scanned before somebody looks at the list.
        each = candidates * len(ways)
        self.group = min(lengths, max(1, LISTED // each))
        self.capacity = min(HELD, lengths * each) + self.group * each
        #: Lengths after which the list is weeded.
        self.weeding = next(k for k in (4, 2, 1) if self.group % k == 0)
        self.most = max(1, min(DISTANCES // len(members), lengths * each))
        self.list = cp.empty((self.capacity, PROMISE.itemsize // 8), np.int64)
        self.reached = cp.zeros(REACHED.itemsize // 8, np.int64)
        self.best = least
        self.parts: list[Survivors] = []
        self.scanned = 0
        self._tell()

    def scan(
        self,
        heads: Heads,
        length: int,
        channel: int,
        rows: cp.ndarray,
        sizes: cp.ndarray,
        owns: cp.ndarray,
        members: cp.ndarray,
    ) -> None:
        """Judge the candidates of some rows of a block.

        `sizes` are the points of the series of the rows, `owns` which of the members they are, and
        `members` where those are among the series of `heads`.
        """
        n_series, n_block, n_windows = heads.scores.shape
        n = self.rules.n_members
        name, keys = scan_kernel(n)
        kernel = _kernel("order_lines.cu", name)
        shared = 4 * (10 * n + 8 * 32 * keys) + 2 * 8 * 32 * self.rules.n_classes
        if shared > 48 * 1024:
            kernel.max_dynamic_shared_size_bytes = shared
        kernel(
            (_blocks(n_windows, 8), rows.size),
            (256,),
            (
                *(heads.scores, np.int32(n_block), np.int32(n_series), np.int32(n_windows)),
                *(np.int32(length), rows, sizes, owns, members, heads.weights, heads.constant),
                *(heads.errors, heads.floors, heads.kinds, self.rules.judge, self.rough_before),
                *(self.settled, np.int32(len(self.ways)), self.way_numbers, np.int32(channel)),
                *(self.reached, self.list, np.int32(self.capacity)),
            ),
            shared_mem=shared,
        )
        self.scanned += 1
        if self.scanned % self.weeding == 0:
            self._weed()
        if self.scanned % self.group == 0 and self._count() > HELD:
            self.settle()

    def every(self, where: np.ndarray) -> None:
        """Measure all of some candidates, given as (length, member, start, channel, way)."""
        n = len(where)
        self._measure(np.full(n, np.iinfo(np.int64).max), np.full(n, np.inf), where)

    def survivors(self) -> Survivors:
        """What could be the best."""
        self.settle()
        none = Survivors(np.empty(0, np.int64), np.empty(0), np.empty((0, 5), np.int64))
        gain, gap, where = (np.concatenate(parts) for parts in zip(none, *self.parts, strict=True))
        keep = (gain > self.best[0]) | ((gain == self.best[0]) & (gap >= self.best[1]))
        return Survivors(gain[keep], gap[keep], where[keep])

    def settle(self) -> None:
        """Measure what is on the list, and empty it."""
        self._weed()
        count = self._count()
        promises = self.list[:count].get().view(PROMISE).ravel()
        way, channel = promises["way"] & 3, promises["way"] >> 2
        columns = promises["length"], promises["series"], promises["start"], channel, way
        where = np.stack(columns, axis=1).astype(np.int64)
        order = np.lexsort((-promises["high"], -promises["gain"]))
        promises = promises[order]
        self._measure(promises["gain"], promises["high"].astype(np.float64), where[order])
        self._tell()

    def _weed(self) -> None:
        """Take from the list what cannot be the best any more."""
        _kernel("order_lines.cu", "weed")(
            (1,), (1024,), (self.reached, self.list, np.int32(self.capacity))
        )

    def _count(self) -> int:
        return int(self.reached.get().view(REACHED)["count"][0])

    def _tell(self) -> None:
        """Tell the device what is reached, and that the list is empty."""
        gain, gap = self.best
        low = np.float32(gap)
        if low > gap:
            low = np.nextafter(low, np.float32(-np.inf))
        self.reached.set(np.array([(gain, gain, low, 0)], REACHED).view(np.int64))

    def _measure(self, gain: np.ndarray, gap: np.ndarray, where: np.ndarray) -> None:
        """Measure candidates in the order of what they promise, until no other can be the best.

        Where the weights of classes are equal the gains found are those of the host, to the bit,
        and of equal candidates the first is kept; else they differ by roundings, and all are kept
        that come close.
        """
        slack = 0 if self.rules.exact else 2**13
        first, size = 0, min(FEW, self.most)
        while first < len(gain) and (int(gain[first]), gap[first]) >= self.best:
            some = where[first : first + size]
            first, size = first + size, min(4 * size, self.most)
            gains, gaps = self._cuts(some)
            if not self.rules.exact:
                top = max(int(gains.max()) - slack, self.best[0])
                near = (gains >= top) & (gains >= 0)
                self.best = max(self.best, (top, -np.inf))
                self._keep(gains[near] + slack, np.full(near.sum(), np.inf), some[near])
                continue
            order = np.lexsort((*some.T[::-1], -gaps, -gains))
            here = int(gains[order[0]]), float(gaps[order[0]])
            if here[0] >= 0 and here >= self.best:
                self.best = here
                self._keep(*(a[order[:1]] for a in (gains, gaps, some)))

    def _keep(self, gain: np.ndarray, gap: np.ndarray, where: np.ndarray) -> None:
        self.parts.append(Survivors(gain, gap, where))

    def _cuts(self, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gain and gap of the best cut of some candidates, from certified distances."""
        m, n = len(where), self.rules.n_members
        n_channels, width = self.values.shape[1:]
        lengths, channels = where[:, 0], where[:, 3]
        series = self.members.get()[where[:, 1]].astype(np.int64)
        begins = (series * n_channels + channels) * width + where[:, 2]
        distances = cp.empty((m, n))
        for raw in (True, False):
            # windows of fewer points are compared as they are
            rows = np.flatnonzero((lengths < 3) == raw)
            if rows.size:
                best_matches(
                    *(self.values, begins[rows], lengths[rows], channels[rows], rows, self.values),
                    *(self.sizes, self.members, not raw, distances, None),
                )
        distances /= cp.sqrt(cp.asarray(lengths, np.float64))[:, None]
        for number, way in enumerate(self.ways):
            if way != "first":
                rows = cp.asarray(np.flatnonzero(where[:, 4] == number))
                join = cp.maximum if way == "and" else cp.minimum
                distances[rows] = join(self.before, distances[rows])
        order = cp.argsort(distances, axis=1)
        ordered = cp.take_along_axis(distances, order, axis=1)
        left, sums = cp.zeros((m, self.rules.n_classes), np.int32), cp.empty((m, n))
        gains, gaps = cp.empty(m, np.int64), cp.empty(m)
        _kernel("order_lines.cu", "cuts")(
            (_blocks(m, 64),),
            (64,),
            (ordered, order, np.int32(m), self.rules.judge, left, sums, gains, gaps),
        )
        return gains.get(), gaps.get()
