"""Walks over many channels on the GPU: runs of pairs are listed, then settled, share by share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ..loading import blocks_for, load_kernel
from ..transfers import read_number, to_host
from .channel_programs import HEIGHT, ChannelKernel
from .channel_tiles import BLOCKS_AT_ONCE
from .channels import NO_LIST, THREADS, ChannelWalk, PairList, cut, launch_walk

__all__ = ["ManyChannels"]

FILE = "profile/many_channels.cu"
#: Rows of two runs, which are listed together.
ROWS = 8
#: Samples take one of so many blocks, as many as have been taken before each time, up to the last.
FIRST_SAMPLE, LAST_SAMPLE = 512, 8
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


@dataclass
class ManyChannels:
    """A walk with ``walk_many_channels`` and ``settle_runs``, see `channels.Walker`.

    Along rows, steps and bounds lie window after window; along columns see the kernel.

    Attributes
    ----------
    work, kernel : ChannelWalk, ChannelKernel
        What is walked, and how.
    steps, tops : tuple of two cupy.ndarray
        Of rows and columns.
    runs, covariances, doubts, count : cupy.ndarray
        The list of runs, the bounds of errors of the blocks of a walk, and the length of the list.
    fold : float
        The units in which distances are put in order.
    rate : float
        The share of runs that the last walk listed.
    """

    work: ChannelWalk
    kernel: ChannelKernel
    steps: tuple[cp.ndarray, cp.ndarray]
    tops: tuple[cp.ndarray, cp.ndarray]
    runs: cp.ndarray
    covariances: cp.ndarray
    doubts: cp.ndarray
    count: cp.ndarray
    fold: float
    rate: float = 1.0

    @classmethod
    def of(cls, work: ChannelWalk, kernel: ChannelKernel) -> ManyChannels:
        """Lay the lines and sides of a walk."""
        (a, b), (side, other) = work.axes, work.sides
        rows, columns = a.lower_steps(kernel, columns=False), b.lower_steps(kernel, columns=True)
        n_channels = len(columns)
        # every so many windows follow each other
        planes = columns.reshape(n_channels, -1, kernel.diagonals, 4).transpose(0, 2, 1, 3)
        steps = cp.ascontiguousarray(rows.transpose(1, 0, 2)), cp.ascontiguousarray(planes)
        tops = cp.ascontiguousarray(side.tops.T)
        both = tops, tops if other is side else cp.ascontiguousarray(other.tops.T)
        dtype = np.float32 if kernel.dtype == "float" else np.float64
        return cls(
            work,
            kernel,
            steps,
            both,
            cp.empty((work.room, 4), np.int32),
            cp.empty(work.room * n_channels, dtype),
            cp.empty((min(BLOCKS_AT_ONCE, _blocks(work, kernel)) * n_channels, 2), np.float32),
            cp.zeros(1, np.int32),
            _fold(work),
        )

    def sample(self) -> None:
        """Lower the bounds by some of the pairs."""
        share = Share(_power_below(min(FIRST_SAMPLE, self._blocks)), 0)
        while share.every > LAST_SAMPLE:
            self._take(self.work.rows, share, NO_LIST)
            # as many again
            every = share.every if share.offset == 0 else share.every // 2
            share = Share(every, every // 2)

    def fill(self, rows: slice, pairs: PairList, mark: bool) -> None:
        """List the pairs of some rows that may be nearest."""
        given = pairs.given(self.work, mark)
        every = _power_below(min(LAST_SAMPLE, self._blocks))
        self._take(rows, Share(every, 0), given)
        while every > 1:
            self._take(rows, Share(every, every // 2), given)
            every //= 2

    def keep(self, pairs: PairList, count: int) -> cp.ndarray:
        """Return the listed pairs that may be nearest by the bounds that are known in the end."""
        kept, n_kept = cp.empty((count, 2), np.int32), cp.zeros(1, np.int32)
        load_kernel(FILE, "keep_listed")(
            blocks_for(32 * count, THREADS),
            THREADS,
            entries=pairs.entries,
            count=count,
            sums=pairs.sums,
            n_channels=self.kernel.channels,
            n_included=self.kernel.included,
            tops_a=self.tops[0],
            tops_b=self.tops[1],
            kept=kept,
            n_kept=n_kept,
        )
        return kept[: read_number(n_kept)]

    def close(self) -> None:
        """Write the bounds back."""
        for side, tops in zip(self.work.sides, self.tops, strict=True):
            side.tops[...] = tops.T

    def _take(self, rows: slice, share: Share, pairs: dict[str, Any]) -> None:
        """Walk some blocks of some rows of a tile, and settle the runs that are listed."""
        width, n_columns = 32 * self.kernel.diagonals, self.work.cols.stop - self.work.cols.start
        waiting = [(rows, share)]
        while waiting:
            rows, share = waiting.pop()
            n_rows = rows.stop - rows.start
            blocks = blocks_for(n_columns, width * share.every)
            looked = n_rows * blocks * width / ROWS
            small = blocks == 1 and n_rows <= HEIGHT
            fits = self.rate * looked <= self.work.room
            if small or (fits and blocks * blocks_for(n_rows, HEIGHT) <= BLOCKS_AT_ONCE):
                self.count.fill(0)
                self._launch(rows, share)
                found = read_number(self.count)
                self.rate = found / looked
                if found <= self.work.room:
                    self._settle(found, pairs)
                    continue
            if blocks > 1:
                waiting += [(rows, half) for half in reversed(share.halves)]
            else:
                waiting += [(some, share) for some in cut(rows, n_rows // 2)]

    def _launch(self, rows: slice, share: Share) -> None:
        """List the runs that may hold near pairs, by the bounds of now."""
        largest = [self._largest(tops) for tops in self.tops[: 1 if self._same else 2]]
        launch_walk(
            self.work,
            self.kernel,
            rows,
            share,
            steps_a=self.steps[0],
            steps_b=self.steps[1],
            pitch_b=self._pitch(1),
            fold=self.fold,
            largest_a=largest[0][0],
            largest_b=largest[-1][1],
            runs=self.runs,
            covariances=self.covariances,
            doubts=self.doubts,
            room=self.work.room,
            n_runs=self.count,
        )

    def _settle(self, count: int, pairs: dict[str, Any]) -> None:
        """Lower bounds by the pairs of listed runs, and list those that may be nearest."""
        if count == 0:
            return
        load_kernel(FILE, self.kernel.settle)(
            blocks_for(32 * count, THREADS),
            THREADS,
            runs=self.runs,
            count=count,
            covariances=self.covariances,
            doubts=self.doubts,
            steps_a=self.steps[0],
            steps_b=self.steps[1],
            pitch_b=self._pitch(1),
            col=self.work.cols.start,
            col_stop=self.work.cols.stop,
            tops_a=self.tops[0],
            tops_b=self.tops[1],
            **pairs,
        )

    @property
    def _blocks(self) -> int:
        """Blocks of a band."""
        n_columns = self.work.cols.stop - self.work.cols.start
        return blocks_for(n_columns, 32 * self.kernel.diagonals)

    @property
    def _same(self) -> bool:
        """Whether rows and columns share their bounds."""
        return self.tops[1] is self.tops[0]

    def _pitch(self, at: int) -> int:
        """Windows of an axis, with those beyond the last."""
        return int(self.tops[at].shape[0])

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
