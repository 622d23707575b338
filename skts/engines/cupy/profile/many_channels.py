"""Walks over many channels on the GPU: runs of pairs are listed, then settled, share by share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import LISTED_ROWS
from ..loading import blocks_for, load_kernel
from ..transfers import read_number, to_host
from .channel_programs import (
    BLOCKS_AT_ONCE,
    HEIGHT,
    KEPT_AT_ONCE,
    MANY,
    MEASURED_AT_ONCE,
    ChannelKernel,
)
from .channels import THREADS, ChannelWalk, cut, launch_walk, measure, walk_few

__all__ = ["ManyChannels", "walk"]

FILE = "profile/many_channels.cu"
#: Samples take one of so many blocks, as many as have been taken before each time, up to the last.
FIRST_SAMPLE, LAST_SAMPLE = 512, 8
#: Full lists that are measured before float64 walks, thrice as long; or, there, before pairs are
#: dropped, whose windows are measured against all.
MOST_LISTS = 16
#: What kernels are told where there is no list.
NO_LIST: dict[str, Any] = {
    "entries": None,
    "sums": None,
    "capacity": 0,
    "n_entries": None,
    "dropped_a": None,
    "dropped_b": None,
}
#: Half precision holds distances up to 2^15; units are powers of two, within limits that sums in
#: float32 allow.
HALF_REACH, LEAST_FOLD, MOST_FOLD = 14, -32, 40


class Share(NamedTuple):
    """Blocks of a band that a walk takes: one of so many, from an offset on."""

    every: int
    offset: int

    @property
    def halves(self) -> tuple[Share, Share]:
        """One of two of its blocks, and the others."""
        return Share(2 * self.every, self.offset), Share(2 * self.every, self.offset + self.every)


class PairList(NamedTuple):
    """A list of pairs that may be nearest, with lower bounds of their sums.

    Attributes
    ----------
    entries : cupy.ndarray of shape (capacity, 2), int32
        Rows and columns.
    sums : cupy.ndarray of shape (capacity, n_channels), float32
        The bounds, by the number of channels.
    """

    entries: cp.ndarray
    sums: cp.ndarray

    @classmethod
    def empty(cls, work: ChannelWalk, capacity: int) -> PairList:
        """Make a list."""
        sums = cp.empty((capacity, work.kernels[0].channels), np.float32)
        return cls(cp.empty((capacity, 2), np.int32), sums)


@dataclass
class ManyChannels:
    """A walk with ``walk_many_channels`` and ``settle_runs``.

    Along rows, steps and bounds lie window after window; along columns see the kernel.

    Attributes
    ----------
    work, kernel : ChannelWalk, ChannelKernel
        What is walked, and how.
    steps : tuple of three cupy.ndarray
        Of rows; of columns, as the walk takes them; of columns, as rows lie.
    tops : tuple of two cupy.ndarray
        Bounds of rows and columns.
    runs, covariances, doubts, count : cupy.ndarray
        The list of runs, the bounds of errors of the blocks of a walk, and the length of the list.
    lists : tuple of two PairList, or None
        Where pairs are listed, and room for those that are kept of some; None for a sample.
    n_listed : cupy.ndarray of shape (1,), int32
        The length of the first list.
    fold : float
        The units in which distances are put in order.
    rate : float
        The share of runs that the last walk listed.
    listed, measured : int
        Pairs on the list by now, and those that were measured to make room.
    """

    work: ChannelWalk
    kernel: ChannelKernel
    steps: tuple[cp.ndarray, cp.ndarray, cp.ndarray]
    tops: tuple[cp.ndarray, cp.ndarray]
    runs: cp.ndarray
    covariances: cp.ndarray
    doubts: cp.ndarray
    count: cp.ndarray
    n_listed: cp.ndarray
    fold: float
    lists: tuple[PairList, PairList] | None = None
    rate: float = 1.0
    listed: int = 0
    measured: int = 0

    @classmethod
    def of(cls, work: ChannelWalk, kernel: ChannelKernel) -> ManyChannels:
        """Lay the lines and sides of a walk."""
        (a, b), (side, other) = work.axes, work.sides
        n_channels = kernel.channels
        rows = _by_window(a.lower_steps(kernel, columns=False))
        columns = b.lower_steps(kernel, columns=True)
        # every so many windows follow each other
        planes = columns.reshape(n_channels, -1, kernel.diagonals, 4).transpose(0, 2, 1, 3)
        columns = cp.ascontiguousarray(planes)
        its_rows = rows if b is a else _by_window(b.lower_steps(kernel, columns=False))
        tops = cp.ascontiguousarray(side.tops.T)
        both = tops, tops if other is side else cp.ascontiguousarray(other.tops.T)
        dtype = np.float32 if kernel.dtype == "float" else np.float64
        return cls(
            work,
            kernel,
            (rows, columns, its_rows),
            both,
            cp.empty((work.room, 4), np.int32),
            cp.empty((work.room, n_channels), dtype),
            cp.empty((min(BLOCKS_AT_ONCE, _blocks(work, kernel)) * n_channels, 2), np.float32),
            cp.zeros(1, np.int32),
            cp.zeros(1, np.int32),
            _fold(work),
        )

    def sample(self) -> None:
        """Lower the bounds by some of the pairs."""
        self.lists = None
        share = Share(_power_below(min(FIRST_SAMPLE, self._blocks)), 0)
        while share.every > LAST_SAMPLE:
            self._take(share)
            # as many again
            every = share.every if share.offset == 0 else share.every // 2
            share = Share(every, every // 2)

    def find(self, lists: tuple[PairList, PairList], last: bool) -> bool:
        """List the pairs that may be nearest, and measure them; return whether all are.

        Where more pairs are listed than it is worth, those of the `last` kernel that find no room
        on the list are marked.
        """
        self.lists = lists
        self.n_listed.fill(0)
        every = _power_below(min(LAST_SAMPLE, self._blocks))
        shares = [Share(every, 0)]
        while every > 1:
            shares.append(Share(every, every // 2))
            every //= 2
        for share in shares:
            self._take(share, last)
            if self._many_measured and not last:
                return False
        self._keep()
        self._measure()
        return True

    def close(self) -> None:
        """Write the bounds back."""
        for side, tops in zip(self.work.sides, self.tops, strict=True):
            side.tops[...] = tops.T

    @property
    def _many_measured(self) -> bool:
        """Whether the list was full so often that other ways are better."""
        return self.measured > MOST_LISTS * self.work.capacity

    def _take(self, share: Share, last: bool = False) -> None:
        """Walk some blocks of a tile, and settle the runs that are listed."""
        width, n_columns = 32 * self.kernel.diagonals, self.work.cols.stop - self.work.cols.start
        waiting = [(self.work.rows, share)]
        while waiting:
            rows, share = waiting.pop()
            n_rows = rows.stop - rows.start
            blocks = blocks_for(n_columns, width * share.every)
            looked = n_rows * blocks * width / LISTED_ROWS
            small = blocks == 1 and n_rows <= HEIGHT
            fits = self.rate * looked <= self.work.room
            if small or (fits and blocks * blocks_for(n_rows, HEIGHT) <= BLOCKS_AT_ONCE):
                self.count.fill(0)
                self._launch(rows, share)
                found = read_number(self.count)
                self.rate = found / looked
                if found <= self.work.room:
                    self._settle(found, last)
                    if self._many_measured and not last:
                        return
                    continue
            if blocks > 1:
                waiting += [(rows, half) for half in reversed(share.halves)]
            else:
                waiting += [(some, share) for some in cut(rows, n_rows // 2)]

    def _launch(self, rows: slice, share: Share) -> None:
        """List the runs that may hold near pairs, by the bounds of now."""
        of_rows = self._largest(self.tops[0])
        of_columns = of_rows if self._same else self._largest(self.tops[1])
        launch_walk(
            self.work,
            self.kernel,
            rows,
            share,
            steps_a=self.steps[0],
            steps_b=self.steps[1],
            pitch_b=int(self.tops[1].shape[0]),
            fold=self.fold,
            largest_a=of_rows[0],
            largest_b=of_columns[1],
            runs=self.runs,
            covariances=self.covariances,
            doubts=self.doubts,
            room=self.work.room,
            n_runs=self.count,
        )

    def _settle(self, count: int, last: bool) -> None:
        """Lower bounds by the pairs of listed runs, and list those that may be nearest."""
        if self.lists is None:
            self._settle_some(slice(0, count), NO_LIST)
            return
        start, size = 0, max(1, count)
        if self.listed > self.work.capacity // 2:
            self._keep()
            self.n_listed.fill(self.listed)
        while start < count:
            stop, mark = min(count, start + size), last and self._many_measured
            self._settle_some(slice(start, stop), self._given(mark))
            listed = read_number(self.n_listed)
            if listed <= self.work.capacity or mark:
                self.listed = min(listed, self.work.capacity)
                start, size = stop, 2 * size
                continue
            # what was listed before stays
            before = self.listed
            self._keep()
            if self.listed > self.work.capacity * 3 // 4 or self.listed == before:
                self._measure()
            if before == self.listed:
                size = max(1, (stop - start) // 2)
            self.n_listed.fill(self.listed)

    def _settle_some(self, some: slice, pairs: dict[str, Any]) -> None:
        """Settle some of the listed runs."""
        count = some.stop - some.start
        if count == 0:
            return
        lanes = min(32, 1 << (self.kernel.channels - 1).bit_length())
        load_kernel(FILE, self.kernel.settle)(
            blocks_for(lanes * count, THREADS),
            THREADS,
            runs=self.runs[some],
            count=count,
            covariances=self.covariances[some],
            doubts=self.doubts,
            rows=self.steps[0],
            columns=self.steps[2],
            normalize=self.work.normalize,
            col=self.work.cols.start,
            col_stop=self.work.cols.stop,
            tops_a=self.tops[0],
            tops_b=self.tops[1],
            **pairs,
        )

    def _given(self, mark: bool) -> dict[str, Any]:
        """Arguments of a kernel that fills the list; with `mark` pairs without room are marked."""
        (side, other), pairs = self.work.sides, self.lists[0] if self.lists else None
        return {
            "entries": None if pairs is None else pairs.entries,
            "sums": None if pairs is None else pairs.sums,
            "capacity": self.work.capacity,
            "n_entries": self.n_listed,
            "dropped_a": side.dropped if mark else None,
            "dropped_b": other.dropped if mark else None,
        }

    def _keep(self) -> None:
        """Keep the listed pairs that may be nearest by the bounds that are known by now.

        They move to the front of the list, some at a time.
        """
        if self.lists is None or self.listed == 0:
            return
        (pairs, some), kept = self.lists, 0
        for start in range(0, self.listed, len(some.entries)):
            count = min(len(some.entries), self.listed - start)
            self.count.fill(0)
            load_kernel(FILE, "keep_listed")(
                blocks_for(32 * count, THREADS),
                THREADS,
                entries=pairs.entries[start:],
                count=count,
                sums=pairs.sums[start:],
                n_channels=self.kernel.channels,
                n_included=self.kernel.included,
                tops_a=self.tops[0],
                tops_b=self.tops[1],
                kept=some.entries,
                kept_sums=some.sums,
                n_kept=self.count,
            )
            more = read_number(self.count)
            for to, of in zip(pairs, some, strict=True):
                to[kept : kept + more] = of[:more]
            kept += more
        self.listed = kept

    def _measure(self) -> None:
        """Measure the pairs of the list, which is empty then."""
        if self.lists is None:
            return
        step = MEASURED_AT_ONCE // self.kernel.channels
        for start in range(0, self.listed, step):
            measure(self.work, self.lists[0].entries[start : min(start + step, self.listed)])
        self.measured += self.listed
        self.listed = 0

    @property
    def _blocks(self) -> int:
        """Blocks of a band."""
        n_columns = self.work.cols.stop - self.work.cols.start
        return blocks_for(n_columns, 32 * self.kernel.diagonals)

    @property
    def _same(self) -> bool:
        """Whether rows and columns share their bounds."""
        return self.tops[1] is self.tops[0]

    def _largest(self, tops: cp.ndarray) -> tuple[cp.ndarray, cp.ndarray]:
        """The largest bounds of the windows of runs, window after window and channel by channel."""
        by_window, by_channel = cp.empty_like(tops), cp.empty(tops.size, np.float32)
        load_kernel(FILE, "largest_tops")(
            blocks_for(tops.size, THREADS),
            THREADS,
            tops=tops,
            pitch=tops.shape[0],
            n_channels=self.kernel.channels,
            fold=self.fold,
            by_window=by_window,
            by_channel=by_channel,
        )
        return by_window, by_channel


def walk(work: ChannelWalk) -> None:
    """Find the nearest neighbours in a tile, by the kernels of so many channels."""
    (_walk_many if work.kernels[0].channels >= MANY else walk_few)(work)


def _walk_many(work: ChannelWalk) -> None:
    """Find upper bounds of the nearest neighbours in a tile, then list and measure what may be."""
    some = min(work.capacity, KEPT_AT_ONCE)
    lists = PairList.empty(work, work.capacity), PairList.empty(work, some)
    for kernel in work.kernels:
        walker = ManyChannels.of(work, kernel)
        # float64 knows the bounds that float32 has found
        if kernel is work.kernels[0]:
            walker.sample()
        done = walker.find(lists, kernel is work.kernels[-1])
        walker.close()
        if done:
            return


def _by_window(steps: cp.ndarray) -> cp.ndarray:
    """Steps of all channels together, window after window."""
    return cp.ascontiguousarray(steps.transpose(1, 0, 2))


def _blocks(work: ChannelWalk, kernel: ChannelKernel) -> int:
    """Blocks of a walk over all of a tile, at most."""
    width = 32 * kernel.diagonals
    bands = blocks_for(work.rows.stop - work.rows.start, HEIGHT)
    return bands * blocks_for(work.cols.stop - work.cols.start + HEIGHT, width)


def _power_below(number: int) -> int:
    """The largest power of two that is not above a number."""
    return 1 << (number.bit_length() - 1)


def _fold(work: ChannelWalk) -> float:
    """The power of two by which no distance of finite windows is beyond half precision."""
    if work.normalize:
        reach = 2 * math.sqrt(work.length)
    else:
        energies = [float(to_host(axis.groups[:, :, 4].max())) for axis in work.axes]
        reach = 2 * math.sqrt(max(energies))
    if not 0 < reach < math.inf:
        return 1.0
    return 2.0 ** min(MOST_FOLD, max(LEAST_FOLD, HALF_REACH - math.ceil(math.log2(reach))))
