"""Tiles of joins on the CPU: windows of long series against each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import read_only
from ...families.profile.concatenated import ConcatenatedSeries, fill_gaps, whole_windows
from ...families.profile.every_pair import nearest_of_all
from ...families.profile.join import Join, JoinPart
from ...families.profile.lines import (
    Frame,
    common_frame,
    even_frame,
    even_line,
    line_as_it_is,
    line_of_pieces,
)
from ...families.profile.nearest import Nearest
from ...families.profile.statistics import settle_statistics
from ...families.profile.windows import Kinds, WindowDistances, WindowKinds
from ...host import by_numpy, windows
from ...host.small_work import ENTRIES, prefer_numpy
from .candidates import LISTED, Line
from .join import TileAxis, Work, search
from .lines import PreparedLine, Searched, Steps, describe, grown_steps, make_steps, repeats, weigh

__all__ = ["JoinTiles"]


class JoinTiles:
    """Methods of the CPU engine for work on windows."""

    prepared: PreparedStore

    def _join_by_numpy(self, length: int, some: int, total: int) -> bool:
        """Whether NumPy computes so many of all distances: see `prefer_numpy`."""

        def seconds() -> tuple[float, float]:
            return by_numpy.seconds(some, length), by_numpy.seconds(total, length)

        return prefer_numpy(seconds, search, windows.distances, windows.statistics)

    def window_distances_bytes(
        self, reduction: WindowDistances, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: both lines prepared, and its distances."""
        lines = {id(pool.points): pool for pool in (reduction.queries, reduction.series)}
        shared = sum(58 * pool.points.size for pool in lines.values())
        held = max(32 * reduction.length, by_numpy.held_bytes(rows * cols))
        return shared, 8 * rows * cols + held

    def window_distances(
        self, reduction: WindowDistances, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Certified distances of some windows to a run of others."""
        series, whole = reduction.series, tile.shape == (1, reduction.shape[1])
        origin = series.origin
        if not whole or reduction.queries is not series or origin is None:
            return self._distances(reduction, tile, cancel)
        # of a window of a line that grows, those to windows that were there before are known
        place, key = (
            int(reduction.positions[tile.row]),
            ("row", reduction.length, reduction.normalize),
        )

        def build() -> tuple[np.ndarray, int]:
            dropped = origin.dropped
            before, _ = self._before(series, reduction.length, (*key, place + dropped))
            known = np.empty((1, 0)) if before is None else before[:, dropped:]
            new = tile._replace(col=known.shape[1])
            found = np.hstack([known, self._distances(reduction, new, cancel)])
            return found, found.nbytes

        found: np.ndarray = self.prepared.get(series.points, (*key, place), build)
        if cancel[0]:
            self.prepared.drop(series.points, (*key, place))
        return found.copy()

    def _distances(self, reduction: WindowDistances, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """Measure the distances of some windows to a run of others."""
        length = reduction.length
        counts = (n_rows * n_cols for n_rows, n_cols in (tile.shape, reduction.shape))
        small = self._join_by_numpy(length, *counts)
        a = self._windows(reduction.queries, length, reduction.normalize, small)
        b = self._windows(reduction.series, length, reduction.normalize, small)
        found = np.empty(tile.shape)
        positions = np.ascontiguousarray(reduction.positions[tile.rows], np.int64)
        measure = by_numpy.distances if small else windows.distances
        measure(
            *(a.points, positions, a.mean, a.inverse),
            *(b.points, tile.col, b.mean, b.inverse),
            *(length, found, cancel, reduction.normalize or None),
        )
        constant, finite = b.constant[tile.cols], b.finite[tile.cols]
        odd = np.flatnonzero(constant | ~finite)
        if odd.size:
            some = found[:, odd]
            rows = a.constant[positions, np.newaxis], a.finite[positions, np.newaxis]
            settle_constant(some, *rows, constant[odd], finite[odd], length)
            found[:, odd] = some
        for row, i in enumerate(positions):
            if not a.finite[i] or a.constant[i]:
                settle_constant(found[row], a.constant[i], a.finite[i], constant, finite, length)
        return found

    def window_kinds_bytes(self, reduction: WindowKinds, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for the statistics of a line, and for its search."""
        if reduction.joined is None:
            return 0, 58 * reduction.series.points.size
        return 0, 100 * (reduction.series.points.size + reduction.joined.points.size)

    def window_kinds(self, reduction: WindowKinds, tile: Tile, cancel: np.ndarray) -> Kinds:
        """Which windows are constant, which are finite, which a join does not search."""
        series, length, normalize = reduction.series, reduction.length, reduction.normalize
        small = self._join_by_numpy(length, series.points.size, series.points.size)
        found = self._windows(series, length, normalize, small)
        if reduction.joined is None:
            return Kinds(found.constant, found.finite)
        searched, _ = self._searched((series, reduction.joined), length, normalize)
        return Kinds(found.constant, found.finite, searched.hidden)

    def join_bytes(self, reduction: Join, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile: lines and their steps; lists, limits and neighbours."""
        shared = 230 * sum(reduction.shape[: 1 if reduction.within else 2])
        # a list of pairs takes more than what NumPy holds in its place
        return shared, 48 * LISTED + (16 + 48 * reduction.n_neighbors) * (rows + cols)

    def join(self, reduction: Join, tile: Tile, cancel: np.ndarray) -> JoinPart:
        """Nearest windows within a tile."""
        length, k, normalize = reduction.length, reduction.n_neighbors, reduction.normalize
        pools, (n_rows, n_cols) = (reduction.a, reduction.other), reduction.shape
        pairs = (reduction.work(part) for part in (tile, Tile(0, n_rows, 0, n_cols)))
        small = self._join_by_numpy(length, *pairs)
        known_lines = [self._windows(pool, length, normalize, small) for pool in pools]
        certified = [Line(*line[:3]) for line in known_lines]
        lines = self._searched(pools, length, normalize)
        regular_a, regular_b = (line.regular for line in lines)
        if reduction.excluded is not None:
            regular_a = regular_a & ~reduction.excluded
            regular_b = regular_a if reduction.within else regular_b
        if small:
            measure = partial(_measure, certified[0], certified[1], reduction, cancel)
            regular = regular_a, regular_b
            return nearest_of_all(reduction, tile, regular, measure, 4 * ENTRIES, cancel)
        level = 0.0 if normalize else 4 * max(line.energy(length).max() for line in lines)
        steps_a, steps_b = (
            self._steps(pool, line, length, level) for pool, line in zip(pools, lines, strict=True)
        )
        steps_b = steps_b._replace(
            lead=steps_b.trail if normalize else steps_b.lead,
            trail=steps_b.lead if normalize else -steps_b.trail,
        )
        first = max(tile.col, reduction.since) if reduction.within else tile.col
        spans = (tile.row, tile.row_stop), (first, tile.col_stop)
        repeated = [np.zeros(regular.size, bool) for regular in (regular_a, regular_b)]
        if not normalize:
            repeated = [
                repeats(line.points, regular, span, length, k)
                for line, regular, span in zip(
                    certified, (regular_a, regular_b), spans, strict=True
                )
            ]
        if reduction.excluded is not None or any(some.any() for some in repeated):
            steps_a, steps_b = (
                steps._replace(weight=weigh(steps.weight, regular & ~some, level))
                for steps, regular, some in zip(
                    (steps_a, steps_b), (regular_a, regular_b), repeated, strict=True
                )
            )
        rows = Nearest.none(tile.shape[0], k)
        cols = Nearest.none(tile.shape[1] if reduction.within else 0, k)
        known = reduction.hint or [np.full(n, np.inf) for n in reduction.shape]
        # in the units of the search; infinity stays
        hint = tuple(
            _scaled(one, lines[0].unit, (tile.rows, tile.cols) if reduction.within else (windows,))
            for one, windows in zip(known, (tile.rows, tile.cols), strict=True)
        )
        found = cols if first == tile.col else Nearest.none(tile.col_stop - first, k)
        # one list for both: its neighbours are those of rows
        same = reduction.within and not reduction.sides
        same = same and tile.row == first and tile.row_stop == tile.col_stop
        sides = (
            TileAxis(line, searched.points, searched.mean, regular, steps, *span)
            for line, searched, regular, steps, span in zip(
                certified,
                lines,
                (regular_a, regular_b),
                (steps_a, steps_b),
                spans,
                strict=True,
            )
        )
        single = normalize and reduction.precision != "float64"
        work = Work(
            *(length, reduction.least_apart, same, bool(reduction.within), normalize or None),
            bool(single),
        )
        search(*sides, work, hint, tuple(rows), tuple(found), cancel)
        if repeated[1].any():
            columns = np.flatnonzero(repeated[1])
            _take_repeats(rows, tile, columns, regular_a, certified, work, cancel)
        if reduction.within and first > tile.col:
            cols.add(slice(first - tile.col, None), found)
        return JoinPart(rows, cols)

    def _windows(
        self, pool: ConcatenatedSeries, length: int, normalize: bool, small: bool = False
    ) -> PreparedLine:
        """Statistics of a line for one window length, kept while the line lives."""
        key = "windows", length, normalize

        def prepare(given: np.ndarray) -> PreparedLine:
            filled, finite = fill_gaps(given)
            # one after the other, and nobody writes to them: kernels are compiled for one kind of
            # array, and a series that runs backwards would be another
            points = read_only(np.ascontiguousarray(filled))
            if small:
                moments = by_numpy.statistics(points, length, True)
            else:
                moments = describe(points, length)
            mean, deviation, low, high = moments
            found = settle_statistics(deviation, low, high, whole_windows(finite, length))
            if normalize:
                # a mean of what is not finite is never looked at
                chosen = mean, found.inverse, moments, found.constant
            else:
                inverse, zeros = found.finite.astype(np.float64), np.zeros_like(mean)
                chosen = zeros, inverse, moments, np.zeros_like(found.constant)
            return PreparedLine(points, *chosen, found.finite)

        def build() -> tuple[PreparedLine, int]:
            made = None
            before, dropped = self._before(pool, length, key)
            if before is not None and before.finite.all():
                # of windows that were there before, nothing changes
                made = prepare(pool.points[before.finite.size - dropped :])
                made = before.grown(made, dropped) if made.finite.all() else None
            if made is None:
                made = prepare(pool.points)
            return made, 10 * made.finite.size + sum(array.nbytes for array in made.moments)

        return self.prepared.get(pool.points, key, build)

    def _before(
        self, pool: ConcatenatedSeries, length: int, key: tuple[Hashable, ...]
    ) -> tuple[Any, int]:
        """Find data of the line that a line has grown from, and the windows that it has lost."""
        if pool.origin is None or pool.origin.dropped + length > pool.origin.points.size:
            return None, 0
        return self.prepared.known(pool.origin.points, key), pool.origin.dropped

    def _searched(
        self, pools: tuple[ConcatenatedSeries, ConcatenatedSeries], length: int, normalize: bool
    ) -> tuple[Searched, Searched]:
        """Two lines, or the same twice, for the search; kept while they live."""
        lines = [self._windows(pool, length, normalize) for pool in pools]
        alone = pools[0].points is pools[1].points

        def choose() -> tuple[Frame, int]:
            some = lines[: 1 if alone else 2]
            extents = [lambda one=line: one.moments[2:] for line in some]
            return common_frame([line.points for line in some], extents), 64

        frame = None
        if not normalize and alone:
            # once for all tiles
            frame = self.prepared.get(pools[0].points, ("frame", length), choose)
        elif not normalize:
            frame, _ = choose()
        first, second = (
            self._searched_line(*one, length, frame) for one in zip(pools, lines, strict=True)
        )
        return first, second

    def _searched_line(
        self, pool: ConcatenatedSeries, line: PreparedLine, length: int, frame: Frame | None
    ) -> Searched:
        """A line for the search."""
        key = "searched", length, frame

        def build() -> tuple[Searched, int]:
            found = None
            if frame is None:
                before, dropped = self._before(pool, length, key)
                ranges = np.where(line.regular, line.moments[3] - line.moments[2], np.inf)
                even = even_frame(line.points.min(), line.points.max(), ranges.min())
                if before is not None and line.finite.all() and even == before.even is not None:
                    # offset and scale are those of before: of windows that were there, nothing
                    # changes where no gaps are filled
                    found = before.after(dropped, line, ranges)
                else:
                    whole = even_line(line.points, ranges)
                    made = whole or line_of_pieces(line.points, ranges, length)
            else:
                made = line_as_it_is(line.points, frame, length)
            if found is None:
                found = Searched.of(made, line.moments, line.regular, frame)
            return found, sum(array.nbytes for array in found.arrays)

        return self.prepared.get(pool.points, key, build)

    def _steps(self, pool: ConcatenatedSeries, line: Searched, length: int, level: float) -> Steps:
        """Factors and bounds of a line for covariances, kept while it lives."""
        key = "steps", length, line.frame, level

        def build() -> tuple[Steps, int]:
            before, dropped = self._before(pool, length, key)
            searched, _ = self._before(pool, length, ("searched", length, line.frame))
            if before is not None and searched is not None and line.continues(searched, dropped):
                made = grown_steps(before, dropped, line, length, level)
            else:
                made = make_steps(line, length, level)
            return made, sum(array.nbytes for array in made)

        return self.prepared.get(pool.points, key, build)


def _measure(
    a: Line, b: Line, reduction: Join, cancel: np.ndarray, rows: np.ndarray, columns: slice
) -> np.ndarray:
    """Certified distances of some windows to a run of others, by NumPy."""
    found = np.empty((rows.size, columns.stop - columns.start))
    by_numpy.distances(
        *(a.points, rows, a.mean, a.inverse, b.points, columns.start, b.mean, b.inverse),
        *(reduction.length, found, cancel, reduction.normalize or None),
    )
    return found


def _take_repeats(
    rows: Nearest,
    tile: Tile,
    repeated: np.ndarray,
    regular: np.ndarray,
    lines: Sequence[Line],
    work: Work,
    cancel: np.ndarray,
) -> None:
    """Take columns that repeat those before them where one of these is too near to a row."""
    (own, others), k = lines, rows.distances.shape[1]
    for apart in range(work.least_apart + 1, work.least_apart + 1 + k):
        columns = repeated[(repeated >= tile.row + apart) & (repeated < tile.row_stop + apart)]
        columns = columns[regular[columns - apart]]
        # some may have been measured by the search
        found = rows.indices[columns - apart - tile.row] == columns[:, np.newaxis]
        columns = columns[~found.any(axis=1)]
        distances = np.empty(columns.size)
        windows.pair_distances(
            *(own.points, columns - apart, own.mean, own.inverse),
            *(others.points, columns, others.mean, others.inverse),
            *(work.length, distances, cancel, work.normalize),
        )
        new = Nearest(distances[:, np.newaxis], columns[:, np.newaxis])
        rows.add(columns - apart - tile.row, new)


def _scaled(values: np.ndarray, unit: float, parts: Sequence[slice]) -> np.ndarray:
    """Values times a unit, in some parts of them; the others are nothing."""
    scaled = np.empty(values.size)
    with np.errstate(over="ignore"):
        for part in parts:
            np.multiply(values[part], unit, out=scaled[part])
    return scaled


def settle_constant(
    distances: np.ndarray,
    constant_a: np.ndarray | bool,
    finite_a: np.ndarray | bool,
    constant_b: np.ndarray,
    finite_b: np.ndarray,
    length: int,
) -> None:
    """Write the distances of constant windows, and of those that are not finite, by definition."""
    distances[constant_a != constant_b] = np.sqrt(length)
    distances[constant_a & constant_b] = 0.0
    distances[~(finite_a & finite_b)] = np.inf
