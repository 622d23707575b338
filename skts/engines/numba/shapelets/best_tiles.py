"""Tiles of the best of all candidates on the CPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.reduction import Tile
from ...core.series import Series, read_only
from ...families.shapelets.best import BestShapelets, Bounds
from ...families.shapelets.places import Kind
from ...host.small_work import prefer_numpy
from .bounds import bound
from .scan import Distances
from .tiles import blocks_of

__all__ = ["BestTiles"]

#: Seconds of NumPy in place of kernels that take some twenty to compile, and those of a point of a
#: window and of an entry of an order line.
LIMIT, POINT, ENTRY = 4.0, 3e-9, 3e-7
#: Just below the square of the distance that a constant window has from any other.
BELOW_ONE = 1 - 2.0**-53


class BestTiles:
    """Methods of the CPU engine for the best of all candidates."""

    budget: Callable[[], int]
    shapelet_features: Callable[..., np.ndarray]

    def shapelet_bounds_bytes(
        self, reduction: BestShapelets, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: its answer, distances of a block to all series and their parts."""
        n, width = len(reduction.series), reduction.series.n_timepoints
        candidates = 16 * rows * cols * reduction.block * width
        steps = max(kind.dilation for kind in reduction.kinds)
        lines = n * (width + 2 * steps)
        # squares, and their least of the lines of a series; what joins know of windows
        of_block = 8 * reduction.block * (width + steps) * n * (steps + 3)
        return 0, candidates + of_block + 160 * lines + reduction.compared_bytes() + 2**18

    def shapelet_bounds(self, reduction: BestShapelets, tile: Tile, cancel: np.ndarray) -> Bounds:
        """Bounds of what the candidates of some kinds, channels and blocks gain."""
        n_channels = reduction.series.n_channels
        row, _, block, _ = reduction.spans
        found = []
        for number in range(row + tile.row, row + tile.row_stop):
            kind, channel = reduction.kinds[number // n_channels], number % n_channels
            walked = kind.normalized and not self._compared(reduction, tile)
            for one in range(block + tile.col, block + tile.col_stop):
                first, stop = reduction.members(one, one + 1)
                if walked:
                    found.append(_walked(reduction, kind, channel, (first, stop), cancel))
                    continue
                found.append(reduction.compared(number, one, self.shapelet_features, cancel))
        return Bounds(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def _compared(self, reduction: BestShapelets, tile: Tile) -> bool:
        """Whether to compare all windows: NumPy can, in place of kernels that are not compiled."""
        n = len(reduction.series)
        lengths = np.array([kind.length for kind in reduction.kinds])

        def seconds() -> tuple[float, float]:
            total = reduction.total_work * POINT * float(lengths.mean())
            total += ENTRY * n * reduction.result_bytes() / 16
            share = tile.shape[0] * tile.shape[1] / (reduction.shape[0] * reduction.shape[1])
            return total * share, total

        return prefer_numpy(seconds, bound, limit=LIMIT)


def _walked(
    reduction: BestShapelets,
    kind: Kind,
    channel: int,
    members: tuple[int, int],
    cancel: np.ndarray,
) -> Bounds:
    """Bounds of the candidates of some series by covariances.

    With a dilation d every series is d lines of each d-th point, whose windows are plain ones: what
    bounds errors of the distances of windows to lines bounds those to series, the least of d.
    """
    series, d, (first, stop) = reduction.series, kind.dilation, members
    lines, windows = _lines(series, channel, kind)
    counts = series.lengths - kind.extent + 1
    total = int(counts[first:stop].sum())
    found = Bounds(np.zeros(total, np.int64), np.zeros(total))
    ends = np.cumsum(counts[first:stop])
    places = (ends - counts[first:stop])[:, np.newaxis] + np.arange(d)
    tables = reduction.criterion.tables()
    for _, distances in blocks_of(lines, 0, first * d, stop * d, (kind.length,), None, cancel):
        if not cancel[0]:
            bound(
                _merged(distances, d),
                read_only(windows[first * d : stop * d]),
                read_only(np.repeat(np.arange(first, stop), d)),
                read_only(places.reshape(-1)),
                d,
                tables,
                *found,
                cancel,
            )
    return found


def _lines(series: Series, channel: int, kind: Kind) -> tuple[Series, np.ndarray]:
    """Every d-th point of each series, from each of the first d on; and the windows of each line.

    A line without a window holds the first one of its series once more: no distance changes.
    """
    n, d, width = len(series), kind.dilation, series.n_timepoints
    values = series.values[:, channel]
    if d == 1:
        return Series(values[:, np.newaxis], series.lengths), series.lengths - kind.length + 1
    padded = np.zeros((n, -(-width // d) * d))
    padded[:, :width] = values
    lines = np.ascontiguousarray(padded.reshape(n, -1, d).swapaxes(1, 2)).reshape(n * d, -1)
    lengths = ((series.lengths[:, np.newaxis] - np.arange(d) + d - 1) // d).reshape(-1)
    windows = np.maximum(lengths - kind.length + 1, 0)
    empty = np.flatnonzero(windows == 0)
    lines[empty, : kind.length] = lines[empty // d * d, : kind.length]
    lines[empty, kind.length :] = 0.0
    lengths[empty] = kind.length
    return Series(lines[:, np.newaxis], lengths), windows


def _merged(distances: Distances, d: int) -> Distances:
    """Distances to series, from those to their d lines."""
    if d == 1:
        return distances
    shape = *distances.squares.shape[:2], -1, d
    squares = distances.squares.reshape(shape)
    flat = np.logical_or.reduce(distances.flat.reshape(-1, d), axis=1)
    least = squares.min(axis=3)
    for k in np.flatnonzero(flat).tolist():
        # exactly 1 means a distance that is 1 for certain: no estimate of another line may be less
        others = np.where(squares[:, :, k] == 1.0, np.inf, squares[:, :, k]).min(axis=2)
        unsure = (least[:, :, k] == 1.0) & (others <= 1 + 1e-9)
        least[:, :, k] = np.where(unsure, BELOW_ONE, least[:, :, k])
    errors = distances.errors.reshape(len(squares), -1, d).max(axis=2)
    return distances._replace(squares=least, errors=errors, flat=flat)
