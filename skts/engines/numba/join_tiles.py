"""Tiles of joins on the CPU: windows of long series against each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.ndimage import maximum_filter1d

from .._join import Join, JoinPart, Nearest
from .._memory import PreparedStore
from .._reductions import Tile
from .._series import read_only
from .._windows import (
    Kinds,
    Pool,
    WindowDistances,
    WindowKinds,
    lay_line,
    settle_statistics,
    whole_windows,
)
from . import join, windows

__all__ = ["JoinTiles", "Steps", "Windows", "make_steps"]


class Windows(NamedTuple):
    """A line prepared for one window length.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        The line from `lay_line`.
    mean, inverse : ndarray of shape (n_windows,), float64
        Mean and 1 / deviation; 0 and 1 where windows are compared as they are. The inverse is 0
        where a window is constant or not finite.
    constant, finite : ndarray of shape (n_windows,), bool
        Which windows are constant, which are finite.
    rough_mean, rough_deviation, size : ndarray of shape (n_windows,), float64
        Mean, deviation and largest magnitude of all windows, of the filled ones, too.
    """

    points: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray
    constant: np.ndarray
    finite: np.ndarray
    rough_mean: np.ndarray
    rough_deviation: np.ndarray
    size: np.ndarray


class Steps(NamedTuple):
    """What covariances need of the windows of a line; see `join.search`."""

    lead: np.ndarray
    trail: np.ndarray
    weight: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    norm: np.ndarray
    size: np.ndarray
    reach: np.ndarray
    stride: np.ndarray


class JoinTiles:
    """Methods of the CPU engine for work on windows."""

    prepared: PreparedStore

    def window_distances_bytes(
        self, reduction: WindowDistances, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: both lines prepared, and its distances."""
        lines = {id(pool.points): pool for pool in (reduction.queries, reduction.series)}
        return sum(58 * pool.points.size for pool in lines.values()), 8 * rows * cols

    def window_distances(
        self, reduction: WindowDistances, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Certified distances of some windows to a run of others."""
        length = reduction.length
        a = self._windows(reduction.queries, length, reduction.normalize)
        b = self._windows(reduction.series, length, reduction.normalize)
        found = np.empty(tile.shape)
        for row, i in enumerate(reduction.positions[tile.rows]):
            windows.distances(
                *(a.points, i, a.mean[i], a.inverse[i]),
                *(b.points, tile.col, b.mean, b.inverse),
                *(length, found[row], cancel),
            )
            settle_constant(
                found[row], a.constant[i], a.finite[i], b.constant[tile.cols], b.finite[tile.cols],
                length,
            )  # fmt: skip
        return found

    def window_kinds_bytes(self, reduction: WindowKinds, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for the statistics of a line."""
        return 0, 58 * reduction.series.points.size

    def window_kinds(self, reduction: WindowKinds, tile: Tile, cancel: np.ndarray) -> Kinds:
        """Which windows are constant, which are finite."""
        found = self._windows(reduction.series, reduction.length, True)
        return Kinds(found.constant, found.finite)

    def join_bytes(self, reduction: Join, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile: lines and their steps; lists, limits and neighbours."""
        shared = 230 * sum(reduction.shape[: 1 if reduction.within else 2])
        return shared, 48 * join.LISTED + (16 + 48 * reduction.n_neighbors) * (rows + cols)

    def join(self, reduction: Join, tile: Tile, cancel: np.ndarray) -> JoinPart:
        """Nearest windows within a tile."""
        length, k, normalize = reduction.length, reduction.n_neighbors, reduction.normalize
        a = self._windows(reduction.a, length, normalize)
        b = self._windows(reduction.other, length, normalize)
        level = 0.0 if normalize else 4 * max(_energy(a, length).max(), _energy(b, length).max())
        usual_a, usual_b = a.finite, b.finite
        if normalize:
            usual_a, usual_b = usual_a & ~a.constant, usual_b & ~b.constant
        if reduction.excluded is not None:
            usual_a = usual_a & ~reduction.excluded
            usual_b = usual_a if reduction.within else usual_b
        steps_a = self._steps(reduction.a, length, normalize, level)
        steps_b = self._steps(reduction.other, length, normalize, level)
        steps_b = steps_b._replace(
            lead=steps_b.trail if normalize else steps_b.lead,
            trail=steps_b.lead if normalize else -steps_b.trail,
        )
        if not normalize or reduction.excluded is not None:
            steps_a = steps_a._replace(weight=_weigh(steps_a.weight, usual_a, level))
            steps_b = steps_b._replace(weight=_weigh(steps_b.weight, usual_b, level))
        rows = Nearest.none(tile.shape[0], k)
        cols = Nearest.none(tile.shape[1] if reduction.within else 0, k)
        first = max(tile.col, reduction.since) if reduction.within else tile.col
        hint = reduction.hint
        if hint is None:
            hint = tuple(np.full(n, np.inf) for n in reduction.shape)
        search = cols if first == tile.col else Nearest.none(tile.col_stop - first, k)
        # one list for both: its neighbours are those of rows
        same = reduction.within and not reduction.sides
        same = same and tile.row == first and tile.row_stop == tile.col_stop
        join.search(
            (a.points, a.mean, a.inverse, usual_a),
            tuple(steps_a),
            (b.points, b.mean, b.inverse, usual_b),
            tuple(steps_b),
            length,
            (tile.row, tile.row_stop, first, tile.col_stop),
            reduction.least_apart,
            2.0**-53,
            tuple(np.ascontiguousarray(one) for one in hint),
            *rows,
            *search,
            cancel,
            reduction.within or None,
            same,
            normalize or None,
        )
        if reduction.within and first > tile.col:
            cols.add(slice(first - tile.col, None), search)
        return JoinPart(rows, cols)

    def _windows(self, pool: Pool, length: int, normalize: bool) -> Windows:
        """Statistics of a line for one window length, kept while the line lives."""

        def build() -> tuple[Windows, int]:
            points, filled, finite = lay_line(pool.points, centered=normalize)
            whole = points is filled
            # a view that nobody writes to: kernels are compiled for one kind of array
            points, filled = read_only(points), read_only(filled)
            mean, deviation, low, high = windows.statistics(points, filled, length)
            found = settle_statistics(mean, deviation, low, high, whole_windows(finite, length))
            size = np.maximum(np.abs(low), np.abs(high))
            if not whole:
                size = np.abs(mean) + np.sqrt(length) * deviation
            made = Windows(
                points,
                mean if normalize else np.zeros(mean.size),
                found.inverse if normalize else found.finite.astype(np.float64),
                found.constant if normalize else np.zeros(mean.size, bool),
                found.finite,
                *(mean, deviation, size),
            )
            return made, sum(array.nbytes for array in made)

        return self.prepared.get(pool.points, ("windows", length, normalize), build)

    def _steps(self, pool: Pool, length: int, normalize: bool, level: float) -> Steps:
        """What covariances need of a line, kept while it lives."""

        def build() -> tuple[Steps, int]:
            made = make_steps(self._windows(pool, length, normalize), length, normalize, level)
            return made, sum(array.nbytes for array in made)

        return self.prepared.get(pool.points, ("steps", length, normalize, level), build)


def _energy(line: Windows, length: int) -> np.ndarray:
    """Sum of the squares of every window."""
    return length * (line.rough_deviation**2 + line.rough_mean**2)


def _weigh(weight: np.ndarray, usual: np.ndarray, level: float) -> np.ndarray:
    """Weights that let windows that take part in nothing score nothing."""
    return np.where(usual, weight, -level)


def make_steps(line: Windows, length: int, normalize: bool, level: float) -> Steps:
    """Make what covariances need of the windows of a line; `level` keeps raw scores positive."""
    points, mean = line.points, line.rough_mean
    new, old = points[length:], points[: points.size - length]
    lead, trail = np.zeros(mean.size), np.zeros(mean.size)
    if normalize:
        lead[1:] = (new - old) / 2
        trail[1:] = (new - mean[1:]) + (old - mean[:-1])
        norm = np.sqrt(length) * line.rough_deviation
        weight = line.inverse / np.sqrt(length)
        alpha = np.full(mean.size, 2.0 * length)
        beta = 2.0 * length * weight
    else:
        lead[1:], trail[1:] = new, -old
        energy = _energy(line, length)
        norm = np.sqrt(energy)
        weight = level / 2 - energy / 2
        alpha = energy + level
        beta = np.full(mean.size, 2.0)
    step = np.abs(lead) + np.abs(trail)
    reach, stride = (
        np.stack([_running_max(values, height) for height in join.HEIGHTS])
        for values in (norm, step)
    )
    return Steps(lead, trail, weight, alpha, beta, norm, line.size, reach, stride)


def _running_max(values: np.ndarray, height: int) -> np.ndarray:
    """The largest of the values up to each place, `height` of them and itself."""
    return maximum_filter1d(values, height + 1, mode="nearest", origin=height // 2)


def settle_constant(
    distances: np.ndarray,
    constant_a: np.ndarray | bool,
    finite_a: np.ndarray | bool,
    constant_b: np.ndarray,
    finite_b: np.ndarray,
    length: int,
) -> None:
    """Write what is defined, not computed: constant windows, and those that are not finite."""
    distances[constant_a != constant_b] = np.sqrt(length)
    distances[constant_a & constant_b] = 0.0
    distances[~(finite_a & finite_b)] = np.inf
