"""Joins of many channels on the GPU: two walks over the rows of a tile, then measurements."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import JOIN_GROUP, TAKES_NO_PART
from ...families.profile.channels import ChannelRule
from ...families.profile.lines import step_factors
from ..loading import blocks_for, load_kernel
from ..transfers import Near, as_in, module_of, near, read_number, to_host
from .channel_programs import HEIGHT, ChannelKernel
from .lines import DeviceLine, Searched

__all__ = [
    "ChannelAxis",
    "ChannelSide",
    "ChannelWalk",
    "Found",
    "make_axis",
    "measure",
    "open_side",
    "walk",
]

#: Windows beyond the last that a walk may read.
PAD = 128
#: In place of the squared distance of windows that are not both finite, see `walk_channels`; sums
#: that no window need not exceed.
FAR, MOST_NEEDED = 1e30, np.float32(1e14)
#: Kinds of windows.
CONSTANT_KIND, MISSING_KIND = 1, 2
#: Pairs that are measured at a time; threads of a block that measures.
AT_A_TIME, THREADS = 2**20, 128
#: Most blocks of a launch along its second axis.
MOST_BANDS = 65535


class ChannelAxis(NamedTuple):
    """The channels of a line on the device, in the order in which they count.

    Attributes
    ----------
    points, mean, inverse : cupy.ndarray of shape (n_channels, ...), float64
        For certified distances.
    kinds : cupy.ndarray of shape (n_channels, n_windows), uint8
        Regular, constant, or not finite.
    searched, centers : cupy.ndarray of shape (n_channels, ...), float64
        Points and means of the lines of the search.
    rows, columns : cupy.ndarray of shape (n_channels, n_windows + PAD, 4), float64
        The kernel's ``ChannelStep``, along rows and along columns.
    groups : cupy.ndarray of shape (n_channels, n_groups, 9), float64
        The kernel's ``ChannelGroup``.
    """

    points: cp.ndarray
    mean: cp.ndarray
    inverse: cp.ndarray
    kinds: cp.ndarray
    searched: cp.ndarray
    centers: cp.ndarray
    rows: cp.ndarray
    columns: cp.ndarray
    groups: cp.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self)

    def without(self, windows: np.ndarray) -> ChannelAxis:
        """Return the line with some windows that are the neighbours of none."""
        if not windows.any():
            return self
        places = cp.asarray(np.flatnonzero(windows))
        rows, columns = self.rows.copy(), self.columns.copy()
        rows[:, places, 3] = FAR
        columns[:, places, 3] = FAR
        return self._replace(rows=rows, columns=columns)

    @property
    def n_windows(self) -> int:
        """Windows of the line."""
        return int(self.mean.shape[1])

    @property
    def pitch(self) -> int:
        """Windows with those beyond the last."""
        return self.n_windows + PAD


class ChannelSide(NamedTuple):
    """Windows of one side of a tile: upper bounds of sums, by the number of channels."""

    tops: cp.ndarray
    dropped: cp.ndarray


class Found(NamedTuple):
    """Neighbours that have been measured, by the number of channels: (n_channels, pitch)."""

    distances: cp.ndarray
    indices: cp.ndarray

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Found:
        """Return neighbours not yet found."""
        distances, indices = cp.empty(shape), cp.empty(shape, np.int32)
        distances.fill(np.inf)
        indices.fill(TAKES_NO_PART)
        return cls(distances, indices)


@np.errstate(all="ignore")  # as on the device; what is not finite is left out
def make_axis(
    lines: list[DeviceLine],
    searched: list[Searched],
    length: int,
    normalize: bool,
    unit: float,
) -> ChannelAxis:
    """Lay the channels of a line together."""
    n_windows = int(lines[0].mean.size)
    kinds: list[cp.ndarray] = []
    rows: list[cp.ndarray] = []
    columns: list[cp.ndarray] = []
    groups: list[cp.ndarray] = []
    for line, one in zip(lines, searched, strict=True):
        module = module_of(one.mean)
        finite, constant = as_in(module, line.finite), as_in(module, line.constant)
        kind = np.where(finite, np.where(constant, CONSTANT_KIND, 0), MISSING_KIND)
        kinds.append(cp.asarray(kind.astype(np.uint8)))
        lead, trail = step_factors(one.points, one.mean, one.frame)
        usable = one.regular
        if normalize:
            weight = np.where(usable, 1.0 / np.where(usable, one.norm, 1.0), 0.0)
            scale = np.sqrt(2.0 * length) * weight
            alpha = np.where(finite, np.where(constant, 0.0, float(length)), FAR)
            blur, shift = one.size * weight, one.slip * weight
            first, second = trail, lead
        else:
            # of the common unit; to the square
            factor = unit / one.unit
            energy = one.norm**2
            scale = np.where(usable, np.sqrt(2.0) * factor, 0.0)
            alpha = np.where(finite & ~one.hidden, energy * factor**2, FAR)
            blur = shift = np.zeros_like(one.norm)
            first, second = lead, -trail
        for packed, both in ((rows, (lead, trail)), (columns, (first, second))):
            steps = module.zeros((n_windows + PAD, 4))
            steps[n_windows:, 3] = FAR
            steps[:n_windows] = np.stack([*both, scale, alpha], axis=1)
            packed.append(cp.asarray(steps))
        step = np.abs(lead) + np.abs(trail)
        energy = np.where(alpha < FAR, alpha, 0.0)
        mean = one.mean
        bounds = one.norm, step, one.slip, scale, blur, shift, energy, -mean, mean
        groups.append(cp.asarray(_largest_of_groups(bounds)))
    # of the search, and as they came
    certified = ([getattr(line, name) for line in lines] for name in ("points", "mean", "inverse"))
    search = ([cp.asarray(getattr(one, name)) for one in searched] for name in ("points", "mean"))
    return ChannelAxis(*map(cp.stack, (*certified, kinds, *search, rows, columns, groups)))


def _largest_of_groups(bounds: tuple[Near, ...]) -> Near:
    """The largest of values over groups of windows; of the last but one, negated, the least."""
    module, size = module_of(bounds[0]), bounds[0].size
    n_groups = -(-size // JOIN_GROUP)
    groups = module.empty((n_groups, len(bounds)))
    for at, values in enumerate(bounds):
        padded = module.full(n_groups * JOIN_GROUP, -np.inf)
        padded[:size] = values
        groups[:, at] = padded.reshape(n_groups, JOIN_GROUP).max(axis=1)
    groups[:, -2] *= -1
    return groups


def open_side(
    windows: slice,
    looking: np.ndarray,
    hints: np.ndarray | None,
    rule: ChannelRule,
    axis: ChannelAxis,
) -> ChannelSide:
    """Windows that look for neighbours within a tile; others have negative bounds.

    `hints` has sums, in units of the search, that neighbours need not exceed.
    """
    tops = np.full((axis.mean.shape[0], axis.pitch), np.float32(-1))
    wanted = np.zeros(axis.n_windows, bool)
    wanted[windows] = looking[windows]
    for at, number in enumerate(rule.dimensions):
        row = np.full(axis.n_windows, MOST_NEEDED)
        if hints is not None:
            with np.errstate(over="ignore"):
                known = hints[:, at] * (1 + 1e-6) + 1e-30
            row = np.minimum(known, MOST_NEEDED).astype(np.float32)
        tops[number - 1, : axis.n_windows] = np.where(wanted, row, np.float32(-1))
    dropped = cp.zeros(axis.pitch, np.int32)
    return ChannelSide(cp.asarray(tops), dropped)


class ChannelWalk(NamedTuple):
    """A walk over the pairs of a tile.

    Attributes
    ----------
    kernel : ChannelKernel
        Which.
    axes, sides, found : tuple of two
        Of rows and columns.
    rows, cols : slice
        The tile.
    first_diagonal, length : int
        Least distance of pairs from the diagonal; points of a window.
    normalize : bool
        Whether windows are z-normalised.
    capacity : int
        Pairs that a list has room for.
    """

    kernel: ChannelKernel
    axes: tuple[ChannelAxis, ChannelAxis]
    sides: tuple[ChannelSide, ChannelSide]
    found: tuple[Found, Found]
    rows: slice
    cols: slice
    first_diagonal: int
    length: int
    normalize: bool
    capacity: int


def walk(work: ChannelWalk) -> None:
    """Find upper bounds of the nearest neighbours in a tile, then list and measure what may be."""
    _launch(work, work.rows, None, None, False)
    entries, count = cp.empty((work.capacity, 2), np.int32), cp.zeros(1, np.int32)
    waiting = [work.rows]
    while waiting:
        rows = waiting.pop()
        count.fill(0)
        last = rows.stop - rows.start <= HEIGHT
        _launch(work, rows, entries, count, last)
        listed = read_number(count)
        if listed > work.capacity and not last:
            middle = rows.start + -(-(rows.stop - rows.start) // (2 * HEIGHT)) * HEIGHT
            waiting += [slice(middle, rows.stop), slice(rows.start, middle)]
            continue
        for start in range(0, min(listed, work.capacity), AT_A_TIME):
            measure(work, entries[start : min(start + AT_A_TIME, listed, work.capacity)])


def _launch(
    work: ChannelWalk, rows: slice, entries: cp.ndarray | None, count: cp.ndarray | None, mark: bool
) -> None:
    """Walk some rows of a tile."""
    (a, b), (side, other), lists = work.axes, work.sides, entries is not None
    kernel = load_kernel("profile/channels.cu", work.kernel.name(lists))
    width = 32 * work.kernel.diagonals
    nothing = cp.zeros(2, np.int32)
    for start in range(rows.start, rows.stop, MOST_BANDS * HEIGHT):
        stop = min(rows.stop, start + MOST_BANDS * HEIGHT)
        least = max(work.first_diagonal, work.cols.start - (stop - 1))
        n_diagonals = work.cols.stop - start - least + HEIGHT
        if work.cols.stop - start <= least:
            return
        kernel(
            (blocks_for(n_diagonals, width), blocks_for(stop - start, HEIGHT)),
            32,
            points_a=a.searched,
            mean_a=a.centers,
            rows=a.rows,
            groups_a=a.groups,
            points_b=b.searched,
            mean_b=b.centers,
            columns=b.columns,
            groups_b=b.groups,
            n_windows_a=a.n_windows,
            n_windows_b=b.n_windows,
            pitch_a=a.pitch,
            pitch_b=b.pitch,
            row=start,
            row_stop=stop,
            col=work.cols.start,
            col_stop=work.cols.stop,
            first_diagonal=work.first_diagonal,
            height=HEIGHT,
            length=work.length,
            normalize=work.normalize,
            tops_a=side.tops,
            tops_b=other.tops,
            entries=nothing if entries is None else entries,
            capacity=work.capacity if lists else 0,
            n_entries=nothing if count is None else count,
            dropped_a=side.dropped if mark else None,
            dropped_b=other.dropped if mark else None,
        )


def measure(work: ChannelWalk, entries: cp.ndarray) -> None:
    """Measure some pairs, and keep the nearest of both windows of each."""
    (a, b), (side, other), (found, found_b) = work.axes, work.sides, work.found
    count, n_channels = len(entries), work.kernel.channels
    if count == 0:
        return
    entries = cp.ascontiguousarray(entries)
    distances, means = cp.empty((2, n_channels, count))
    load_kernel("profile/channels.cu", "channel_distances")(
        blocks_for(count * n_channels, THREADS),
        THREADS,
        entries=entries,
        count=count,
        n_channels=n_channels,
        points_a=a.points,
        mean_a=a.mean,
        inverse_a=a.inverse,
        kinds_a=a.kinds,
        points_b=b.points,
        mean_b=b.mean,
        inverse_b=b.inverse,
        kinds_b=b.kinds,
        n_windows_a=a.n_windows,
        n_windows_b=b.n_windows,
        length=work.length,
        normalize=work.normalize,
        distances=distances,
    )
    same = found is found_b
    before = [one.distances.copy() for one in (found, found_b)[: 1 if same else 2]]
    load_kernel("profile/channels.cu", "settle_channels")(
        blocks_for(count, THREADS),
        THREADS,
        entries=entries,
        count=count,
        n_channels=n_channels,
        n_included=work.kernel.included,
        worst=work.kernel.worst,
        distances=distances,
        tops_a=side.tops,
        tops_b=other.tops,
        pitch_a=a.pitch,
        pitch_b=b.pitch,
        means=means,
        least_a=found.distances,
        least_b=found_b.distances,
    )
    for one, known in zip((found, found_b), before, strict=False):
        # the former nearest is replaced where a nearer one was found
        after, earlier, indices = near(one.distances, known, one.indices)
        one.indices[...] = cp.asarray(np.where(after < earlier, np.int32(TAKES_NO_PART), indices))
    load_kernel("profile/channels.cu", "channel_equals")(
        blocks_for(count, THREADS),
        THREADS,
        entries=entries,
        count=count,
        n_channels=n_channels,
        means=means,
        least_a=found.distances,
        least_b=found_b.distances,
        pitch_a=a.pitch,
        pitch_b=b.pitch,
        indices_a=found.indices,
        indices_b=found_b.indices,
    )


def answer(
    found: Found, side: ChannelSide, windows: slice, rule: ChannelRule
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances and places of neighbours of some windows, and whether some may be missing."""
    wanted = [number - 1 for number in rule.dimensions]
    distances = np.stack([to_host(found.distances[at, windows]).copy() for at in wanted], axis=1)
    indices = np.stack([to_host(found.indices[at, windows]).copy() for at in wanted], axis=1)
    indices = indices.astype(np.int64)
    indices[indices == TAKES_NO_PART] = -1
    return distances, indices, to_host(side.dropped[windows]) > 0
