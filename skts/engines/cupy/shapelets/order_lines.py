"""Order lines on the GPU: the candidates of a node that could be the best."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import SORTING_THREADS, WIDE_THREADS
from ...core.engine import go_through
from ...families.shapelets.criterion import Criterion
from ...families.shapelets.matches import LEAST_NORMALIZED
from ...families.shapelets.search import BATCH_CELLS, Survivors, are_normalized
from ..loading import blocks_for, load_kernel
from ..transfers import Near, as_in, bring, module_of, send_one, to_host
from .matches import Asked, ask, best_matches
from .programs import NAMED_SHARED, ScanKernel, padded_members, scan_kernel, sorted_bytes
from .rules import DeviceRules
from .walk import SCORES, PackedScores

__all__ = ["CANDIDATE_BOUND", "Lengths", "Lines", "most_shared"]

#: A candidate on the list: gain, highest and lowest gap, series, start, length and way.
CANDIDATE_BOUND = np.dtype(
    [("gain", "i8"), ("high", "f4"), ("low", "f4")]
    + [(name, "i4") for name in ("series", "start", "length", "way")]
)
REACHED = np.dtype([("gain", "i8"), ("settled", "i8"), ("gap", "f4"), ("count", "i4")])
#: Bytes of a block that sorts the distances of a candidate, at most.
SORTED_BYTES = 44 * 1024
#: Candidates that are measured first; up to how many are returned without being judged here.
FIRST_BATCH, MAX_UNJUDGED = 256, 2
#: Points of windows that are compared with candidates, of so few all: sifting takes four launches.
NOT_SIFTED = 2**27
#: Distances that may be measured twice: to find which candidates are equal takes some milliseconds.
MEASURED_TWICE = 2**21
#: How many times as many candidates as before are measured next, while any could be the best.
GROWTH = 4


class Bounds:
    """Candidates in the descending order of what bounds them.

    Parameters
    ----------
    gain, gap : ndarray of shape (n,)
        The bounds.
    places : callable
        Returns length, member, start, channel and way of the candidates from one to another.
    """

    def __init__(
        self, gain: np.ndarray, gap: np.ndarray, places: Callable[[int, int], np.ndarray]
    ) -> None:
        self.gain, self.gap, self.places = gain, gap, places
        # ascending, as `searchsorted` takes them
        self._gain, self._gap = -gain, -gap

    def __len__(self) -> int:
        return len(self.gain)

    def count_that_reach(self, best: tuple[int, float]) -> int:
        """How many bounds are no lower than a gain and a gap."""
        more = int(np.searchsorted(self._gain, -best[0], "left"))
        as_much = int(np.searchsorted(self._gain, -best[0], "right"))
        return more + int(np.searchsorted(self._gap[more:as_much], -best[1], "right"))


class Batch(NamedTuple):
    """Candidates that are measured together, as the host describes them.

    Attributes
    ----------
    where : ndarray of shape (n, 5), int64
        As that of `Survivors`.
    asked : list of Asked
        Where they are looked for as they are, and normalised.
    """

    where: np.ndarray
    asked: list[Asked]


def _distances_before(known: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances of the literals before, the same in float32, and which are exactly 0 or 1."""
    with np.errstate(over="ignore"):
        rough = known.astype(np.float32)
    return known, rough, ((known == 0) | (known == 1)).astype(np.uint8)


def most_shared() -> int:
    """Bytes of shared memory that a block may ask for on the current device."""
    return cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] - NAMED_SHARED


class Lengths(NamedTuple):
    """Lengths whose candidates are judged, long ones first.

    Their distances are clearer, and what they reach spares a closer look at short ones.

    Attributes
    ----------
    at : list of (PackedScores, int)
        Places in heads that are all of the same series and block.
    windows : list of int
        Windows that the longest series has, of each.
    table : cupy.ndarray of shape (n_lengths, n_numbers), int64
        `Scores` of ``order_lines.cuh``, a row each.
    """

    at: list[tuple[PackedScores, int]]
    windows: list[int]
    table: cp.ndarray

    @classmethod
    def of(cls, at: list[tuple[PackedScores, int]]) -> Lengths:
        """Describe lengths that are at some places."""
        at = sorted(at, key=lambda place: -place[0].lengths[place[1]])
        told = np.array([heads.table[z] for heads, z in at], SCORES)
        table = send_one(told.view(np.int64).reshape(len(told), -1))
        return cls(at, [heads.windows(z) for heads, z in at], table)


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
    points : ndarray of shape (n_members,)
        Their points.
    criterion : Criterion
        How cuts are judged.
    before : ndarray of shape (n_members,) or None
        Distances of the literals before.
    ways : tuple of str
        How a candidate joins them.
    least : tuple of (int, float)
        Gain and gap to be reached.
    listed, held : int
        Candidates that the list has room for, and those that may stay on it.
    measured : int
        Candidates that are measured at a time.
    before_normalized : bool, default True
        Whether any of the literals before are normalised windows.
    on_host : bool, default False
        Whether the host judges cuts, and all candidates are measured: for small work, which `scan`
        and what it needs would take far less than their compilation.

    Attributes
    ----------
    members, places, points : cupy.ndarray of shape (n_members,), int32
        The members, numbers of their places among themselves, and their points.
    """

    def __init__(
        self,
        values: cp.ndarray,
        sizes: cp.ndarray,
        members: np.ndarray,
        points: np.ndarray,
        criterion: Criterion,
        before: np.ndarray | None,
        ways: tuple[str, ...],
        least: tuple[int, float],
        listed: int,
        held: int,
        measured: int,
        before_normalized: bool = True,
        on_host: bool = False,
    ) -> None:
        #: Entries that the list may have by now.
        self.possible = 0
        self.values, self.sizes = values, sizes
        self.rules, self.ways, self.host_members = DeviceRules(criterion), ways, members
        self.criterion = criterion
        numbers = [("first", "and", "or").index(way) for way in ways]
        alone = ways == ("first",)
        if before is None and not alone:
            before = np.zeros(len(members))
        self.on_host: bool = on_host
        self.host_before: Any = before
        self.listed, self.held, self.measured = listed, held, measured
        self.before_normalized = before_normalized
        self.best = least
        self.parts: list[Survivors] = []
        # series, their places and points, side by side
        of_members = np.empty((3, len(members)), np.int32)
        of_members[0], of_members[2] = members, points
        of_members[1] = np.arange(len(members))
        known = () if alone or before is None else _distances_before(before)
        # the list lies behind what is reached: one transfer brings both
        capacity = listed + held
        sent, there = self.rules.send(
            *(of_members, np.array(numbers, np.int32), *known, self._reached_now()),
            room=capacity * CANDIDATE_BOUND.itemsize,
        )
        (self.members, self.places, self.points), self.way_numbers, *others, self.reached = there
        #: Distances of the literals before; None where candidates are alone.
        self.before: Any = None
        self.rough_before: Any = None
        self.settled: Any = None
        if others:
            self.before, self.rough_before, self.settled = others
        *_, begin, end = sent.begins
        first, behind = (end + n * CANDIDATE_BOUND.itemsize for n in (FIRST_BATCH, capacity))
        first = min(first, behind)
        self.list = sent.block[end:behind].view(np.int64).reshape(capacity, -1)
        #: What is reached, and the first of the list.
        self.head, self.first_listed = sent.block[begin:first], end - begin

    def scan(
        self,
        lengths: Lengths,
        channel: int,
        rows: cp.ndarray,
        sizes: cp.ndarray,
        owns: cp.ndarray,
        members: cp.ndarray,
        cancel: np.ndarray,
    ) -> None:
        """Judge the candidates of some rows of a block, of some lengths.

        `sizes` are the points of the series of the rows, `owns` which of the members they are, and
        `members` where those are among the series of the heads.
        """
        kernel = scan_kernel(self.rules.n_members, self.rules.n_classes, most_shared())
        if kernel is None:
            raise ValueError("no kernel judges order lines of so many series and classes")
        scan = self._scan_wide if kernel.wide else self._scan_narrow
        scan(kernel, lengths, channel, (rows, sizes, owns), members, cancel)

    def _scan_narrow(
        self,
        kernel: ScanKernel,
        lengths: Lengths,
        channel: int,
        of_rows: tuple[cp.ndarray, cp.ndarray, cp.ndarray],
        members: cp.ndarray,
        cancel: np.ndarray,
    ) -> None:
        """Judge a candidate by a warp: many lengths in a launch."""
        n_rows, (at, windows, table) = of_rows[0].size, lengths
        counts = n_rows * len(self.ways) * np.array(windows)
        _, n_series, n_block, _ = at[0][0].scores.shape
        launch = load_kernel(kernel.file, kernel.name, kernel.shared)
        first = 0
        while first < len(at) and not cancel[0]:
            fits = int(np.searchsorted(np.cumsum(counts[first:]), self.listed, side="right"))
            stop = min(first + max(1, fits), first + 65535)
            self._make_room(int(counts[first:stop].sum()))
            launch(
                (blocks_for(max(windows[first:stop]), kernel.beside), n_rows, stop - first),
                256,
                lengths=table[first:stop],
                n_block=n_block,
                n_series=n_series,
                candidates=dict(zip(("rows", "sizes", "owns"), of_rows, strict=True)),
                node=self._node(members, channel, kernel),
                bounds=self._bound_list,
                shared_mem=kernel.shared,
            )
            self._prune()
            first = stop

    def _scan_wide(
        self,
        kernel: ScanKernel,
        lengths: Lengths,
        channel: int,
        of_rows: tuple[cp.ndarray, cp.ndarray, cp.ndarray],
        members: cp.ndarray,
        cancel: np.ndarray,
    ) -> None:
        """Judge a candidate by a block: some rows of a length, whose scores are laid together."""
        launch = load_kernel(kernel.file, kernel.name, kernel.shared)
        for place, (heads, z) in enumerate(lengths.at):
            windows, scores = lengths.windows[place], heads.scores[z]
            # two copies of the scores of a candidate are an eighth of what measuring it takes
            at_a_time = min(self.listed // len(self.ways), 8 * self.measured)
            each = min(65535, max(1, at_a_time // windows))
            for first in range(0, of_rows[0].size, each):
                if cancel[0]:
                    return
                some = tuple(array[first : first + each] for array in of_rows)
                here = scores[members[:, None], some[0], :windows]
                self._make_room(some[0].size * windows * len(self.ways))
                launch(
                    (windows, some[0].size),
                    WIDE_THREADS,
                    of_length=lengths.table[place : place + 1],
                    heads=cp.ascontiguousarray(here.transpose(1, 2, 0)),
                    padded=kernel.keys,
                    n_series=len(scores),
                    candidates=dict(zip(("rows", "sizes", "owns"), some, strict=True)),
                    node=self._node(members, channel, kernel),
                    bounds=self._bound_list,
                    shared_mem=kernel.shared,
                )
                self._prune()

    def _node(self, members: cp.ndarray, channel: int, kernel: ScanKernel) -> dict[str, Any]:
        """The argument `node` of kernels."""
        return {
            "members": members,
            "rules": self.rules.judge,
            "before": self.rough_before,
            "settled": self.settled,
            "n_ways": len(self.ways),
            "ways": self.way_numbers,
            "channel": channel,
            "tabled": int(kernel.tabled),
        }

    @property
    def _bound_list(self) -> dict[str, Any]:
        """The argument `bounds` of kernels."""
        return {"reached": self.reached, "list": self.list, "capacity": len(self.list)}

    def every(self, where: np.ndarray) -> None:
        """Measure all of some candidates, given as (length, member, start, channel, way)."""
        n = len(where)
        most = np.full(n, np.iinfo(np.int64).max)
        bounds = Bounds(most, np.full(n, np.inf), lambda first, stop: where[first:stop])
        go_through(self._measure(bounds))

    def survivors(self) -> Generator[None, None, Survivors]:
        """Find the candidates that could be the best; yields where it is going to wait."""
        if not self.on_host:
            yield
            bounds = self._listed()
            if 0 < len(bounds) <= MAX_UNJUDGED:
                where = bounds.places(0, len(bounds))
                norms = self._norms(self._describe(where))
                yield
                distances = bring(norms) / np.sqrt(where[:, :1])
                self.parts.append(Survivors(bounds.gain, bounds.gap, where, distances))
            else:
                yield from self._measure(bounds)
        return Survivors.of_parts(self.parts).filter_by_bound(self.best)

    def settle(self) -> None:
        """Measure the candidates on the list, and empty it."""
        go_through(self._measure(self._listed()))
        self._reset()

    def _listed(self) -> Bounds:
        """The list, in order."""
        head = bring(self.head)
        count = int(head[: REACHED.itemsize].view(REACHED)["count"][0])
        if count > FIRST_BATCH:
            listed = self.list[:count]
            if count * self.rules.n_members > MEASURED_TWICE:
                listed = self._distinct(listed)
            bounds = bring(self._in_order(listed)).view(CANDIDATE_BOUND).ravel()
        else:
            bounds = head[self.first_listed :].view(CANDIDATE_BOUND)[:count]
            bounds = bounds[np.lexsort((-bounds["high"], -bounds["gain"]))]

        def places(first: int, stop: int) -> np.ndarray:
            some = bounds[first:stop]
            way, fields = some["way"], (some[name] for name in ("length", "series", "start"))
            where = np.empty((5, len(some)), np.int64)
            for column, field in zip(where, (*fields, way >> 2, way & 3), strict=True):
                column[:] = field
            return where.T

        gain = np.ascontiguousarray(bounds["gain"])
        return Bounds(gain, bounds["high"].astype(np.float64), places)

    def _make_room(self, count: int) -> None:
        """Make room for so many more on the list."""
        if self.possible + count > len(self.list):
            self.possible = self._count()
            if self.possible > self.held:
                self.settle()
        self.possible += count

    def _prune(self) -> None:
        """Drop candidates that cannot be the best any more."""
        load_kernel("shapelets/order_lines.cu", "weed")(
            (1,), (1024,), (self.reached, self.list, np.int32(len(self.list)))
        )

    def _count(self) -> int:
        return int(bring(self.reached).view(REACHED)["count"][0])

    def _reset(self) -> None:
        """Write the best gain and gap so far to the device, and empty the list."""
        self.reached.set(self._reached_now())
        self.possible = 0

    def _reached_now(self) -> np.ndarray:
        """The best gain and gap so far, and an empty list, as the device has them."""
        gain, gap = self.best
        with np.errstate(over="ignore"):  # windows as they are have gaps of any size
            low = np.float32(gap)
        if float(low) > gap:  # not as float32
            low = np.nextafter(low, np.float32(-np.inf))
        return np.array([(gain, gain, low, 0)], REACHED).view(np.int64)

    def _distinct(self, bounds: cp.ndarray) -> cp.ndarray:
        """Bounds of candidates that are not the same points as one that comes before.

        Series of few values, as of switches, have thousands that are equal.
        """
        n, (n_channels, width) = len(bounds), self.values.shape[1:]
        series, start, length, way = bounds.view(cp.int32)[:, 4:].T.astype(np.int64)
        # the first is the one that would be chosen
        order = cp.lexsort(cp.stack((start << 32 | way, length << 32 | series)))
        series, start, length, way = (field[order] for field in (series, start, length, way))
        begins = (self.members[series] * n_channels + (way >> 2)) * width + start
        arrays = self.values, begins, length.astype(np.int32), way.astype(np.int32), np.int32(n)
        digests, same = cp.empty(n, np.uint64), cp.empty(n, np.uint8)
        grid = (blocks_for(n, 128),), (128,)
        load_kernel("shapelets/order_lines.cu", "digest")(*grid, (*arrays, digests))
        _, firsts, of = cp.unique(digests, return_index=True, return_inverse=True)
        of = firsts[of].astype(np.int32)
        load_kernel("shapelets/order_lines.cu", "compare")(*grid, (*arrays, of, same))
        return bounds[order[(of == cp.arange(n)) | (same == 0)]]

    def _in_order(self, bounds: cp.ndarray) -> cp.ndarray:
        """Bounds of candidates in descending order, sorted on the device."""
        high = bounds.view(cp.int32)[:, 2].astype(np.int64)
        # floats order as integers do once negative ones are turned over
        high = cp.where(high < 0, high ^ 0x7FFFFFFF, high)
        return bounds[cp.lexsort(cp.stack((-high, -bounds[:, 0])))]

    def _measure(self, bounds: Bounds) -> Generator[None, None, None]:
        """Measure candidates in the order of their bounds, until no other can be the best.

        Where the weights of classes are equal the gains found are those of the host, to the bit,
        and of equal candidates the first is kept, with its distances; else they differ by
        roundings, and all are kept that come close. Where series of a class weigh differently the
        host finds the cuts.

        While the device measures some, the host describes those that are next if none of them
        becomes needless; yields where it is going to wait.
        """
        slack, most = self.rules.slack, self.measured
        if self.on_host or self.rules.only_bounds:
            cells = self.rules.n_members * len(self.criterion.class_weight)
            most = min(most, max(1, BATCH_CELLS // cells))
        first, size, ready = 0, min(FIRST_BATCH, most), None
        while first < (stop := bounds.count_that_reach(self.best)):
            n = min(size, stop - first)
            if ready is None or len(ready.where) != n:
                ready = self._describe(bounds.places(first, first + n))
            some, read = ready.where, self._start_cuts(ready)
            first, size = first + n, min(GROWTH * size, most)
            ready = None
            if first < stop:
                ready = self._describe(bounds.places(first, min(first + size, stop)))
            yield
            gains, gaps, distances = read()
            if self.rules.exact or self.rules.only_bounds:
                self._keep_best(gains, gaps, some, distances)
                continue
            self.best = max(self.best, (int(gains.max()) - slack, -np.inf))
            near = gains >= max(self.best[0], 0) - slack
            open_gaps = np.full(near.sum(), np.inf)
            self.parts.append(Survivors(gains[near] + slack, open_gaps, some[near]))

    def _keep_best(
        self, gains: np.ndarray, gaps: np.ndarray, where: np.ndarray, distances: Near
    ) -> None:
        """Keep the best of some candidates that are measured, unless the one before is better."""
        rows = np.flatnonzero(gains == gains.max())
        rows = rows[gaps[rows] == gaps[rows].max()]
        row = rows[np.lexsort(where[rows].T[::-1])[0]]
        here = int(gains[row]), float(gaps[row])
        earlier = bool(self.parts) and where[row].tolist() < self.parts[-1].where[0].tolist()
        if here[0] >= 0 and (here > self.best or (here == self.best and earlier)):
            self.best = here
            own = to_host(distances[int(row)])[np.newaxis]
            only = slice(row, row + 1)
            self.parts = [Survivors(gains[only], gaps[only], where[only], own)]

    def _describe(self, where: np.ndarray) -> Batch:
        """Describe some candidates, to be measured; no device is asked."""
        lengths, series, starts, channels, _ = where.T
        n_channels, width = self.values.shape[1:]
        begins = (self.host_members[series] * n_channels + channels) * width + starts
        asked = []
        for raw in (True, False):
            # windows of fewer points are compared as they are
            rows = np.flatnonzero((lengths < LEAST_NORMALIZED) == raw)
            if rows.size:
                some = begins[rows], lengths[rows], channels[rows], rows
                n = self.rules.n_members
                asked.append(ask(*some, self.values.shape, n, not raw, NOT_SIFTED))
        return Batch(where, asked)

    def _norms(self, batch: Batch) -> cp.ndarray:
        """Norms of the differences of some candidates and their best matches among the members."""
        distances = cp.empty((len(batch.where), self.rules.n_members))
        for asked in batch.asked:
            series = self.values, self.sizes, self.members
            best_matches(asked, self.values, *series, distances, None)
        return distances

    def _start_cuts(self, batch: Batch) -> Callable[[], tuple[np.ndarray, np.ndarray, Near]]:
        """Have the device measure candidates and cut their order lines.

        Returns a function that waits for that, and returns gain and gap of the best cut of each,
        and the certified distances that they follow from.
        """
        where, distances, roots = batch.where, self._norms(batch), np.sqrt(batch.where[:, 0])
        if self.on_host:
            return lambda: self._cuts_of_host(where, bring(distances) / roots[:, None])
        distances /= send_one(roots)[:, None]
        if self.rules.only_bounds:
            return lambda: self._cuts_of_host(where, distances)
        joined, (m, n) = self._joined(where, distances), distances.shape
        normalized = are_normalized(where, self.ways, self.before_normalized)
        normalized = send_one(normalized.astype(np.uint8))
        found = cp.empty((2, m), np.int64)
        shared = sorted_bytes(n, self.rules.n_classes)
        if shared <= SORTED_BYTES:
            load_kernel("shapelets/order_lines.cu", "sort_and_cut", shared)(
                (m,),
                SORTING_THREADS,
                distances=cp.ascontiguousarray(joined),
                normalized=normalized,
                padded=padded_members(n),
                rules=self.rules.judge,
                gains=found[0],
                gaps=found[1].view(np.float64),
                shared_mem=shared,
            )
        else:
            order = cp.argsort(joined, axis=1)
            ordered = cp.take_along_axis(joined, order, axis=1)
            left, sums = cp.zeros((m, self.rules.n_classes), np.int32), cp.empty((m, n))
            load_kernel("shapelets/order_lines.cu", "cuts")(
                (blocks_for(m, 64),),
                (64,),
                (ordered, order, normalized, np.int32(m), self.rules.judge, left, sums, *found),
            )

        def read() -> tuple[np.ndarray, np.ndarray, Near]:
            gains, gaps = bring(found)
            return gains, gaps.view(np.float64), distances

        return read

    def _joined(self, where: np.ndarray, distances: Near) -> Near:
        """Distances of candidates, joined with those of the literals before."""
        if self.ways == ("first",):
            return distances
        both = as_in(module_of(distances), np.array(self.ways)[where[:, 4]] == "and")[:, None]
        before = self.host_before if self.on_host else self.before
        larger, smaller = (f(before, distances) for f in (np.maximum, np.minimum))
        found: Near = np.where(both, larger, smaller)
        return found

    def _cuts_of_host(
        self, where: np.ndarray, distances: Near
    ) -> tuple[np.ndarray, np.ndarray, Near]:
        """Cut order lines on the host; returns what the function of `_start_cuts` does."""
        normalized = are_normalized(where, self.ways, self.before_normalized)
        cuts = self.criterion.best_cuts(to_host(self._joined(where, distances)), normalized)
        return cuts.gain, cuts.gap, distances
