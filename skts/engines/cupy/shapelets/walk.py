"""The walk of shapelets on the GPU: least scores of windows among those of other series."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import SHORT_WINDOW, WALK_CHUNK
from ...core.series import Series
from ..loading import blocks_for, load_kernel
from ..transfers import is_small, send, send_one
from .programs import walk_kernel

__all__ = ["DeviceChannel", "PackedScores", "Walk", "lay"]

#: Addresses and numbers of the scores of a length for kernels: `Scores` of ``order_lines.cuh``.
SCORES = np.dtype(
    [(name, "u8") for name in ("scores", "weights", "constant", "errors", "floors", "kinds")]
    + [("n_windows", "i4"), ("length", "i4")]
)


class DeviceChannel(NamedTuple):
    """One channel of some series on the device.

    Attributes
    ----------
    points, centered : cupy.ndarray of shape (n_series, n_timepoints), float64
        The points, and less the mean of their series.
    sizes : cupy.ndarray of shape (n_series,), int32
        Points of each series.
    size : cupy.ndarray of shape (n_series,), float64
        Magnitude of centred points, at most.
    """

    points: cp.ndarray
    centered: cp.ndarray
    sizes: cp.ndarray
    size: cp.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self)

    def take(self, members: cp.ndarray) -> DeviceChannel:
        """Return some of the series."""
        return DeviceChannel(*(array[members] for array in self))


def lay(series: Series, channel: int) -> DeviceChannel:
    """Bring a channel of series to the device."""
    points, sizes = series.values[:, channel], series.lengths
    module = np if is_small(points.size) else cp
    points, sizes = module.asarray(points), module.asarray(sizes)
    there = module.arange(series.n_timepoints) < sizes[:, None]
    points = module.ascontiguousarray(np.where(there, points, 0.0))
    centered = np.where(there, points - (points.sum(axis=1) / sizes)[:, None], 0.0)
    made = points, centered, sizes.astype(np.int32), np.abs(centered).max(axis=1)
    return DeviceChannel(*(send(*made) if module is np else made))


@dataclass(frozen=True, eq=False)
class PackedScores:
    """Least scores of the windows of a block of series among those of all, for some lengths.

    Attributes
    ----------
    lengths : tuple of int
        The lengths, ascending.
    first : int
        Where the block begins.
    scores : cupy.ndarray of shape (n_lengths, n_series, n_block, n_windows), int32
        Leading bits of 1 less the best correlation.
    weights : cupy.ndarray of shape (n_lengths, n_series, n_windows), float64
        Weights of the windows, 1 / norm.
    constant : cupy.ndarray of shape (n_lengths, n_series, n_windows), uint8
        Which windows are constant.
    errors : cupy.ndarray of shape (n_lengths, n_block, n_series), int32
        Leading bits of what squared distances are wrong by, by the weight of the window.
    floors : cupy.ndarray of shape (n_lengths, n_block), float32
        To be added to that.
    kinds : cupy.ndarray of shape (n_lengths, n_series), int32
        Whether a series has constant windows (1) and others (2).
    table : ndarray of shape (n_lengths,), `SCORES`
        Addresses and numbers of each length for kernels.
    """

    lengths: tuple[int, ...]
    first: int
    scores: cp.ndarray
    weights: cp.ndarray
    constant: cp.ndarray
    errors: cp.ndarray
    floors: cp.ndarray
    kinds: cp.ndarray
    table: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        table = np.empty(len(self.lengths), SCORES)
        table["n_windows"], table["length"] = self.scores.shape[-1], self.lengths
        for name in (SCORES.names or ())[:6]:
            array = getattr(self, name)
            begin = self.first * array.strides[1] if name in ("weights", "constant") else 0
            table[name] = array.data.ptr + begin + array.strides[0] * np.arange(len(table))
        object.__setattr__(self, "table", table)

    def windows(self, z: int) -> int:
        """Windows that the longest series has, of length z."""
        return self.scores.shape[-1] - self.lengths[z] + self.lengths[0]


class Walk:
    """The walk over the windows of series, for ever longer lengths.

    Parameters
    ----------
    series : DeviceChannel
        The series.
    first, stop : int
        The block of candidates.
    shortest : int
        The least length.
    together : int
        Lengths that are walked in one launch, at most.
    """

    def __init__(
        self, series: DeviceChannel, first: int, stop: int, shortest: int, together: int
    ) -> None:
        self.series, self.first, self.stop = series, first, stop
        n, width = series.points.shape
        self.edge = width - shortest + 1
        self.before = self.last = 0
        n_block = stop - first
        self.grown = cp.empty((n, self.edge, 5))
        self.forward = cp.empty((together, n_block, n, self.edge))
        # a block of all series is its own other side
        other = (together, n, n_block, self.edge)
        self.backward = self.forward if n_block == n else cp.empty(other)
        several = walk_kernel(self.edge).strips(self.edge) > 1
        self.carry = cp.empty(self.forward.size if several else 0)

    def __call__(self, lengths: tuple[int, ...]) -> PackedScores:
        """Scores for some lengths, ascending and longer than those before.

        All of them have up to `SHORT_WINDOW` points, or none.
        """
        series, first, stop = self.series, self.first, self.stop
        n, width = series.points.shape
        many, n_block = len(lengths), stop - first
        stride = width - lengths[0] + 1
        rows = cp.empty((many, n, stride + WALK_CHUNK, 4))
        q, s, w, mean = (cp.empty((many, n, stride)) for _ in range(4))
        constant, zeros = cp.empty((many, n, stride), np.uint8), cp.zeros(4 * many * n)
        largest = zeros[: 3 * many * n]
        kinds = zeros[3 * many * n :].view(np.int32)[: many * n].reshape(many, n)
        sizes = send_one(np.array(lengths, np.int32))
        channel = {"sizes": series.sizes, "magnitudes": series.size}
        windows = {"rows": rows, "q": q, "s": s, "w": w, "mean": mean}
        load_kernel("shapelets/shapelets.cu", "prepare")(
            (blocks_for(stride + WALK_CHUNK, 128), n),
            128,
            points=series.points,
            centered=series.centered,
            channel=channel | {"n": n, "width": width},
            stride=stride,
            lengths=sizes,
            n_lengths=many,
            before=self.before,
            grown=self.grown,
            edge=self.edge,
            windows=windows,
            constant=constant,
            kinds=kinds,
            largest=largest,
        )
        errors = cp.empty((many, n_block, n), np.int32)
        floors = cp.empty((many, n_block), np.float32)
        load_kernel("shapelets/shapelets.cu", "doubts")(
            (n_block, many),
            128,
            largest=largest,
            size=series.size,
            n=n,
            first=first,
            n_windows=stride,
            lengths=sizes,
            errors=errors,
            floors=floors,
        )
        scores = cp.empty((many, n, n_block, stride), np.int32)
        kernel = walk_kernel(stride)
        block = {"stride": stride, "first": first, "n_block": n_block, "n_series": n}
        block |= {"lengths": sizes}
        if lengths[-1] <= SHORT_WINDOW:
            load_kernel("shapelets/shapelets.cu", "nearest")(
                (blocks_for(n, 4), n_block, many),
                128,
                points=series.points,
                width=width,
                means=mean,
                weights=w,
                sizes=series.sizes,
                block=block,
                heads=scores,
            )
            return PackedScores(lengths, first, scores, w, constant, errors, floors, kinds)
        self._grow_edges(sizes)
        load_kernel("shapelets/shapelets.cu", kernel.name)(
            (blocks_for(n, kernel.pairs), n_block, many),
            128,
            windows=windows,
            sizes=series.sizes,
            block=block,
            forward=self.forward,
            backward=self.backward,
            edge=self.edge,
            carry=self.carry,
            heads=scores,
        )
        self.before, self.last = lengths[-1], many - 1
        return PackedScores(lengths, first, scores, w, constant, errors, floors, kinds)

    def _grow_edges(self, lengths: cp.ndarray) -> None:
        """Sums of products at the edges, of some lengths, from those of the length before."""
        series, first, n_block = self.series, self.first, self.stop - self.first
        n, width = series.points.shape
        sides = [(self.forward, first, n_block, 0, n), (self.backward, 0, n, first, n_block)]
        for out, first_a, n_a, first_b, n_b in sides[: 1 if n_block == n else 2]:
            load_kernel("shapelets/shapelets.cu", "edges")(
                (blocks_for(self.edge, 128), n_b, blocks_for(n_a, 4)),
                128,
                points=series.centered,
                width=width,
                sizes=series.sizes,
                first_a=first_a,
                n_a=n_a,
                first_b=first_b,
                n_b=n_b,
                lengths=lengths,
                n_lengths=lengths.size,
                before=self.before,
                last=self.last,
                out=out,
                stride=self.edge,
            )
