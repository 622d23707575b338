"""Joins of many channels on the GPU: a walk over some pairs of a tile, one over all, measurements.

Walks are of float32 where its errors are small beside the distances of windows, and of float64
where they are not, or where a list was full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import (
    CERTIFIED_ROUNDING,
    CONSTANT_KIND,
    FAR,
    FLOAT32_UNIT,
    FLOAT64_UNIT,
    JOIN_GROUP,
    MISSING_KIND,
    MOST_FINITE,
    SQUARE_UNITS,
    TAKES_NO_PART,
)
from ...families.profile.channels import ChannelRule
from ...families.profile.lines import step_factors
from ..loading import blocks_for, load_kernel
from ..transfers import Near, as_in, module_of, near, read_number, to_host
from .channel_programs import HEIGHT, MEASURED_AT_ONCE, ChannelKernel
from .lines import DeviceLine, Searched

__all__ = [
    "ChannelAxis",
    "ChannelSide",
    "ChannelWalk",
    "Found",
    "make_axis",
    "measure",
    "open_side",
    "walk_few",
]

#: Windows beyond the last that a walk may read, at least; with them they are a multiple of it.
PAD = 256
#: Sums that no window need not exceed; sums of windows that look for no neighbour.
MOST_NEEDED, NOTHING = np.float32(MOST_FINITE), np.float32(-1)
#: What lines tell of their windows, and what those of the search tell.
KINDS = "finite", "constant"
SEARCH = "mean", "norm", "size", "slip", "regular", "hidden", "points"
#: Threads of a block that measures.
THREADS = 128
#: Most blocks of a launch.
MOST_BLOCKS = 2**31 - 1
#: The first walk takes one of so many blocks: the second lists four times as many pairs as if the
#: neighbours were known, on random walks, and half as many as after one of eight.
SAMPLED = 4
#: Parts of a tile that have a list of their own, at most, before float64 walks, thrice as long.
MOST_PARTS = 16
#: Scales of windows whose products float32 holds.
LEAST_SCALE, MOST_SCALE = 1e-12, 1e12


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
    rows, columns : cupy.ndarray of shape (n_channels, pitch, 4), float64
        The kernel's ``ChannelStep``, along rows and along columns, one window after the other.
    rests : cupy.ndarray of shape (n_channels, pitch), float64
        The share of each window in the errors of squares, but for covariances.
    groups : cupy.ndarray of shape (n_channels, n_groups, 7), float64
        The kernel's ``ChannelGroup``.
    error : float
        Typical error of a square in float32, as a share of that of windows which do not correlate;
        infinite if float32 does not hold the scales.
    """

    points: cp.ndarray
    mean: cp.ndarray
    inverse: cp.ndarray
    kinds: cp.ndarray
    searched: cp.ndarray
    centers: cp.ndarray
    rows: cp.ndarray
    columns: cp.ndarray
    rests: cp.ndarray
    groups: cp.ndarray
    error: float

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self[:-1])

    def without(self, windows: np.ndarray) -> ChannelAxis:
        """Return the line with some windows that are the neighbours of none."""
        if not windows.any():
            return self
        places = cp.asarray(np.flatnonzero(windows))
        rows, columns = self.rows.copy(), self.columns.copy()
        rows[:, places, 3] = FAR
        columns[:, places, 3] = FAR
        return self._replace(rows=rows, columns=columns)

    def lower_steps(self, kernel: ChannelKernel, columns: bool) -> cp.ndarray:
        """Steps along rows or columns in the type of a kernel; alpha makes lower bounds."""
        steps = (self.columns if columns else self.rows).copy()
        single = kernel.dtype == "float"
        near_ones = steps[:, :, 3] < FAR
        rests = self.rests
        if single:
            rests = rests + SQUARE_UNITS * FLOAT32_UNIT * np.abs(steps[:, :, 3])
        steps[:, :, 3] -= np.where(near_ones, rests, 0.0)
        return steps.astype(np.float32) if single else steps

    @property
    def n_windows(self) -> int:
        """Windows of the line."""
        return int(self.mean.shape[1])

    @property
    def pitch(self) -> int:
        """Windows with those beyond the last."""
        return int(self.rows.shape[1])


def _lay(values: cp.ndarray, kernel: ChannelKernel) -> cp.ndarray:
    """Put values of windows, (n_channels, pitch, ...), where the kernel's ``place_of`` has them."""
    n_channels, pitch, *rest = values.shape
    blocks = values.reshape(n_channels, -1, 32, kernel.diagonals, *rest)
    order = 1, 0, 3, 2, *range(4, blocks.ndim)
    return cp.ascontiguousarray(blocks.transpose(order)).reshape(n_channels * pitch, *rest)


def _unlay(laid: cp.ndarray, kernel: ChannelKernel) -> cp.ndarray:
    """Values of windows, (n_channels, pitch), that `_lay` has laid."""
    blocks = laid.reshape(-1, kernel.channels, kernel.diagonals, 32)
    return blocks.transpose(1, 0, 3, 2).reshape(kernel.channels, -1)


class ChannelSide(NamedTuple):
    """Windows of one side of a tile.

    Attributes
    ----------
    tops : cupy.ndarray of shape (n_channels, pitch), float32
        Upper bounds of sums, by the number of channels.
    dropped : cupy.ndarray of shape (pitch,), int32
        Whether a pair found no room on a list.
    looks : bool
        Whether they look for neighbours at all.
    """

    tops: cp.ndarray
    dropped: cp.ndarray
    looks: bool


class Found(NamedTuple):
    """Neighbours that have been measured, by the number of channels: (n_channels, n_windows)."""

    distances: cp.ndarray
    indices: cp.ndarray

    @classmethod
    def none(cls, axis: ChannelAxis) -> Found:
        """Return neighbours not yet found, of all windows of a line."""
        shape = axis.mean.shape
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
    n_windows, root = int(lines[0].mean.size), np.sqrt(float(length))
    pitch = -(-(n_windows + PAD) // PAD) * PAD
    module = module_of(searched[0].mean)

    def together(arrays: list[Near]) -> Near:
        return module.stack([as_in(module, array) for array in arrays])

    finite, constant = (together([getattr(one, name) for one in lines]) for name in KINDS)
    mean, norm, size, slip, usable, hidden, points = (
        together([getattr(one, name) for one in searched]) for name in SEARCH
    )
    kinds = np.where(finite, np.where(constant, CONSTANT_KIND, 0), MISSING_KIND)
    lead, trail = step_factors(points, mean, searched[0].frame)
    if normalize:
        weight = np.where(usable, 1.0 / np.where(usable, norm, 1.0), 0.0)
        scale = np.sqrt(2.0 * length) * weight
        alpha = np.where(finite, np.where(constant, 0.0, float(length)), FAR)
        # see "normalised windows" in docs/developer/numerics.rst
        blur, shift = size * weight, length * slip * weight
        rest = CERTIFIED_ROUNDING * length**2 + 8 * FLOAT64_UNIT * length * root * blur
        rest = np.where(finite, rest + 8 * shift**2, 0.0)
        first, second = trail, lead
    else:
        # of the common unit; to the square
        factor = module.asarray([[unit / one.unit] for one in searched])
        energy = norm**2 * factor**2
        scale = np.where(usable, np.sqrt(2.0) * factor, 0.0)
        alpha = np.where(finite & ~hidden, energy, FAR)
        # see "raw windows" in docs/developer/numerics.rst
        rest = np.where(alpha < FAR, 2 * FLOAT64_UNIT * length * (16 + 8 * root) * energy, 0.0)
        first, second = lead, -trail
    packed = []
    for both in ((lead, trail), (first, second)):
        steps = module.zeros((len(lines), pitch, 4))
        steps[:, n_windows:, 3] = FAR
        for at, values in enumerate((*both, scale, alpha)):
            steps[:, :n_windows, at] = values
        packed.append(cp.asarray(steps))
    rests = module.zeros((len(lines), pitch))
    rests[:, :n_windows] = rest
    step = np.abs(lead) + np.abs(trail)
    energy = np.where(alpha < FAR, alpha, 0.0)
    groups = _largest_of_groups((norm, step, slip, rest, energy, -mean, mean))
    return ChannelAxis(
        points=cp.stack([one.points for one in lines]),
        mean=cp.stack([one.mean for one in lines]),
        inverse=cp.stack([one.inverse for one in lines]),
        kinds=cp.asarray(kinds.astype(np.uint8)),
        searched=cp.asarray(points),
        centers=cp.asarray(mean),
        rows=packed[0],
        columns=packed[1],
        rests=cp.asarray(rests),
        groups=cp.asarray(groups),
        error=_typical_error(groups, scale, energy),
    )


def _typical_error(groups: Near, scale: Near, energy: Near) -> float:
    """The error of a square in float32 in most bands, see `ChannelAxis`; of the worst channel."""
    n_channels, n_windows = scale.shape
    n_bands, each = -(-n_windows // HEIGHT), HEIGHT // JOIN_GROUP
    regular = scale > 0
    squares = _in_bands(np.square(scale), HEIGHT, n_bands)
    found = (
        np.where(regular, scale, np.inf).min(axis=1),
        scale.max(axis=1),
        np.where(regular, energy, 0.0).sum(axis=1),
        np.count_nonzero(squares, axis=2),
        squares.sum(axis=2),
        *(_in_bands(groups[:, :, at], each, n_bands).max(axis=2) for at in (0, 1)),
    )
    least, most, energies, n_used, sums, norms, steps = map(to_host, found)
    errors = [0.0]
    for c in range(n_channels):
        if not n_used[c].any():
            continue
        if least[c] < LEAST_SCALE or most[c] > MOST_SCALE:
            return np.inf
        some = n_used[c] > 0
        bands = (2 * norms[c] ** 2 + 8 * steps[c] ** 2) * sums[c]
        # see "covariance walk" in docs/developer/numerics.rst
        error = FLOAT32_UNIT * (HEIGHT + 8) * float(np.median(bands[some] / n_used[c][some]))
        square = 2 * float(energies[c]) / int(n_used[c].sum())
        errors.append(error / square if square > 0 else np.inf)
    return max(errors)


def _in_bands(values: Near, height: int, n_bands: int) -> Near:
    """Values of channels in bands of rows; the last band is filled with zeros."""
    padded = module_of(values).zeros((len(values), n_bands * height))
    padded[:, : values.shape[1]] = values
    return padded.reshape(len(values), n_bands, height)


def _largest_of_groups(bounds: tuple[Near, ...]) -> Near:
    """The largest of values over groups of windows; of the last but one, negated, the least."""
    module, (n_channels, size) = module_of(bounds[0]), bounds[0].shape
    n_groups = -(-size // JOIN_GROUP)
    groups = module.empty((n_channels, n_groups, len(bounds)))
    for at, values in enumerate(bounds):
        padded = module.full((n_channels, n_groups * JOIN_GROUP), -np.inf)
        padded[:, :size] = values
        groups[:, :, at] = padded.reshape(n_channels, n_groups, JOIN_GROUP).max(axis=2)
    groups[:, :, -2] *= -1
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
    tops, n_windows = cp.empty((axis.mean.shape[0], axis.pitch), np.float32), axis.n_windows
    tops.fill(NOTHING)
    wanted = np.zeros(n_windows, bool)
    wanted[windows] = looking[windows]
    row = cp.asarray(np.where(wanted, MOST_NEEDED, NOTHING))
    known = None if hints is None else cp.asarray(hints)
    for at, number in enumerate(rule.dimensions):
        tops[number - 1, :n_windows] = row
        if known is not None:
            with np.errstate(over="ignore"):
                least = np.minimum(known[:, at] * (1 + 1e-6) + 1e-30, row)
            tops[number - 1, :n_windows] = least.astype(np.float32)
    dropped = cp.zeros(axis.pitch, np.int32)
    return ChannelSide(tops, dropped, bool(wanted.any()))


class ChannelWalk(NamedTuple):
    """A walk over the pairs of a tile.

    Attributes
    ----------
    kernels : tuple of ChannelKernel
        That of float32, if it may serve, and that of float64.
    axes, sides, found : tuple of two
        Of rows and columns.
    rows, cols : slice
        The tile.
    first_diagonal, length : int
        Least distance of pairs from the diagonal; points of a window.
    normalize : bool
        Whether windows are z-normalised.
    capacity, room : int
        Pairs that a list has room for, and runs of pairs of many channels.
    """

    kernels: tuple[ChannelKernel, ...]
    axes: tuple[ChannelAxis, ChannelAxis]
    sides: tuple[ChannelSide, ChannelSide]
    found: tuple[Found, Found]
    rows: slice
    cols: slice
    first_diagonal: int
    length: int
    normalize: bool
    capacity: int
    room: int


class _Laid(NamedTuple):
    """Arrays of rows and of columns in the order in which a kernel takes them."""

    kernel: ChannelKernel
    steps: tuple[cp.ndarray, cp.ndarray]
    tops: tuple[cp.ndarray, cp.ndarray]

    @classmethod
    def of(cls, work: ChannelWalk, kernel: ChannelKernel) -> _Laid:
        """Lay the lines and sides of a walk."""
        (a, b), (side, other) = work.axes, work.sides
        steps = (
            _lay(a.lower_steps(kernel, columns=False), kernel),
            _lay(b.lower_steps(kernel, columns=True), kernel),
        )
        tops = _lay(side.tops, kernel)
        return cls(kernel, steps, (tops, tops if other is side else _lay(other.tops, kernel)))

    def keep(self, work: ChannelWalk) -> None:
        """Write the bounds back."""
        for side, tops in zip(work.sides, self.tops, strict=True):
            side.tops[...] = _unlay(tops, self.kernel)


def walk_few(work: ChannelWalk) -> None:
    """Find upper bounds of the nearest neighbours in a tile, then list and measure what may be."""
    first, *others = work.kernels
    laid = _Laid.of(work, first)
    blocks = -(-(work.cols.stop - work.cols.start) // (32 * first.diagonals))
    every = max(1, min(SAMPLED, blocks // 8))
    if every > 1:
        _launch(work, laid, work.rows, every, None, None, None, False)
    entries, count = cp.empty((work.capacity, 2), np.int32), cp.zeros(1, np.int32)
    sums = cp.empty((first.channels, work.capacity), np.float32)
    waiting = [work.rows]
    while waiting:
        rows = waiting.pop()
        count.fill(0)
        last = rows.stop - rows.start <= HEIGHT and not others
        _launch(work, laid, rows, 1, entries, sums, count, last)
        listed = read_number(count)
        if listed > work.capacity and not last:
            n_rows = rows.stop - rows.start
            if others and n_rows <= max(HEIGHT, (work.rows.stop - work.rows.start) // MOST_PARTS):
                # float64 may tell more pairs apart
                laid.keep(work)
                laid = _Laid.of(work, others.pop(0))
                waiting.append(rows)
                continue
            waiting += cut(rows, n_rows // 2)
            continue
        if len(waiting) == 1 and listed:
            # the others as far as they are likely to fit
            fitting = (rows.stop - rows.start) * work.capacity * 3 // (listed * 4)
            waiting = cut(waiting[0], fitting)
        kept = _keep(laid, entries, sums, min(listed, work.capacity))
        step = MEASURED_AT_ONCE // first.channels
        for start in range(0, len(kept), step):
            measure(work, kept[start : start + step])
    laid.keep(work)


def _keep(laid: _Laid, entries: cp.ndarray, sums: cp.ndarray, count: int) -> cp.ndarray:
    """The listed pairs that may be nearest, by the bounds that are known in the end."""
    if count == 0:
        return entries[:0]
    kept, n_kept = cp.empty((count, 2), np.int32), cp.zeros(1, np.int32)
    kernel = laid.kernel
    load_kernel("profile/channels.cu", "keep_pairs")(
        blocks_for(count, THREADS),
        THREADS,
        entries=entries,
        count=count,
        sums=sums,
        capacity=len(entries),
        n_channels=kernel.channels,
        n_included=kernel.included,
        diagonals=kernel.diagonals,
        tops_a=laid.tops[0],
        tops_b=laid.tops[1],
        kept=kept,
        n_kept=n_kept,
    )
    return kept[: read_number(n_kept)]


def _launch(
    work: ChannelWalk,
    laid: _Laid,
    rows: slice,
    every: int,
    entries: cp.ndarray | None,
    sums: cp.ndarray | None,
    count: cp.ndarray | None,
    mark: bool,
) -> None:
    """Walk some rows of a tile, one of `every` so many blocks of diagonals."""
    side, other = work.sides
    launch_walk(
        work,
        laid.kernel,
        rows,
        (every, 0),
        steps_a=laid.steps[0],
        steps_b=laid.steps[1],
        tops_a=laid.tops[0],
        tops_b=laid.tops[1],
        entries=entries,
        sums=sums,
        capacity=0 if entries is None else work.capacity,
        n_entries=count,
        dropped_a=side.dropped if mark else None,
        dropped_b=other.dropped if mark else None,
    )


def cut(rows: slice, count: int) -> list[slice]:
    """Cut some whole bands, about so many rows, from others; those to be taken first are last."""
    middle = rows.start + max(1, -(-count // HEIGHT)) * HEIGHT
    if middle >= rows.stop:
        return [rows]
    return [slice(middle, rows.stop), slice(rows.start, middle)]


def launch_walk(
    work: ChannelWalk, kernel: ChannelKernel, rows: slice, share: tuple[int, int], **more: Any
) -> None:
    """Walk some rows of a tile: one of `every` blocks from an offset on, which are the `share`."""
    (a, b), (every, offset) = work.axes, share
    walk = load_kernel(kernel.file, kernel.name, kernel.shared)
    width, start = 32 * kernel.diagonals, rows.start
    while start < rows.stop:
        # columns from the first of the first band on, see `block_of`
        opens = max(work.first_diagonal, work.cols.start - (min(rows.stop, start + HEIGHT) - 1))
        columns = work.cols.stop - start - opens
        if columns <= 0:
            return
        groups = blocks_for(columns, width * every)
        bands = min(blocks_for(rows.stop - start, HEIGHT), MOST_BLOCKS // groups)
        stop = min(rows.stop, start + bands * HEIGHT)
        walk(
            groups * bands,
            kernel.threads,
            shared_mem=kernel.shared,
            points_a=a.searched,
            mean_a=a.centers,
            groups_a=a.groups,
            points_b=b.searched,
            mean_b=b.centers,
            groups_b=b.groups,
            n_windows_a=a.n_windows,
            n_windows_b=b.n_windows,
            row=start,
            row_stop=stop,
            col=work.cols.start,
            col_stop=work.cols.stop,
            first_diagonal=work.first_diagonal,
            every=every,
            offset=offset,
            height=HEIGHT,
            length=work.length,
            normalize=work.normalize,
            **more,
        )
        start = stop


def measure(work: ChannelWalk, entries: cp.ndarray) -> None:
    """Measure some pairs, and keep the nearest of both windows of each."""
    (a, b), (side, other), (found, found_b) = work.axes, work.sides, work.found
    kernel = work.kernels[0]
    count, n_channels = len(entries), kernel.channels
    if count == 0:
        return
    entries = cp.ascontiguousarray(entries)
    distances, means = cp.empty((2, n_channels, count))
    load_kernel("profile/channels.cu", "channel_distances")(
        (blocks_for(count, THREADS), n_channels),
        THREADS,
        entries=entries,
        count=count,
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
        blocks_for(count, 32),
        32,
        shared_mem=32 * 8 * n_channels,
        entries=entries,
        count=count,
        n_channels=n_channels,
        n_included=kernel.included,
        worst=kernel.worst,
        distances=distances,
        looks_a=side.looks,
        looks_b=other.looks,
        n_windows_a=a.n_windows,
        n_windows_b=b.n_windows,
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
        n_windows_a=a.n_windows,
        n_windows_b=b.n_windows,
        indices_a=found.indices,
        indices_b=found_b.indices,
    )


def answer(
    found: Found, side: ChannelSide, windows: slice, rule: ChannelRule
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances and places of neighbours of some windows, and whether some may be missing."""
    wanted = [number - 1 for number in rule.dimensions]
    places = np.where(found.indices == TAKES_NO_PART, np.int32(-1), found.indices)
    distances, indices = (
        to_host(cp.ascontiguousarray(values[:, windows].T)) for values in (found.distances, places)
    )
    if len(wanted) < distances.shape[1]:
        distances, indices = distances[:, wanted], indices[:, wanted]
    return distances, indices.astype(np.int64), to_host(side.dropped[windows]) > 0
