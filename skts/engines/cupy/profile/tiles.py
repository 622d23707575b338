"""Tiles of joins on the GPU: windows of long series against each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.concatenated import ConcatenatedSeries, fill_gaps
from ...families.profile.every_pair import nearest_of_all
from ...families.profile.join import Join, JoinPart
from ...families.profile.lines import Frame, common_frame
from ...families.profile.windows import Kinds, WindowDistances, WindowKinds
from .length_groups import bytes_of_lengths, joins_lengths
from .programs import (
    HEIGHTS,
    RUNS_PER_WINDOW,
    SAMPLE,
    SEED_BYTES,
    choose_join,
    room,
    stated_type,
    worth_an_estimate,
)

if TYPE_CHECKING:
    from ..transfers import Near
    from .known import Known
    from .lines import DeviceLine, Searched, Steps

__all__ = ["JoinTiles"]

#: Bytes of a point of a line on the device: points and statistics, of the search, too, and twice
#: its steps.
LINE_BYTES = 84 + 120
#: CPU seconds that compiling the walk of a join takes; seconds of the host for a pair that is
#: measured in its place, and of a device of modest size for each point of one.
TO_COMPILE, A_PAIR, A_POINT = 1.0, 2e-8, 4e-12
#: Pairs that are measured at a time in place of the walk.
AT_A_TIME = 2**20


class JoinTiles:
    """Methods of the GPU engine for work on windows."""

    prepared: PreparedStore

    def window_kinds_bytes(self, reduction: WindowKinds, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for the statistics of a line, and for its search."""
        lines = [one for one in (reduction.series, reduction.joined) if one is not None]
        return 0, LINE_BYTES * sum(line.points.size for line in lines)

    def window_kinds(self, reduction: WindowKinds, tile: Tile, cancel: np.ndarray) -> Kinds:
        """Which windows are constant, which are finite, which a join does not search."""
        from ..transfers import to_host

        series, length, normalize = reduction.series, reduction.length, reduction.normalize
        line = self._line(series, length, normalize)
        if reduction.joined is None:
            return Kinds(to_host(line.constant), to_host(line.finite))
        searched, _ = self._searched((series, reduction.joined), length, normalize)
        return Kinds(to_host(line.constant), to_host(line.finite), to_host(searched.hidden))

    def window_distances_bytes(
        self, reduction: WindowDistances, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile: both lines, and its distances."""
        points = reduction.queries.points.size + reduction.series.points.size
        return 0, LINE_BYTES * points + 24 * rows * cols

    def window_distances(
        self, reduction: WindowDistances, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Certified distances of some windows to a run of others."""
        from ..transfers import as_in, module_of, near, to_host
        from . import lines

        length = reduction.length
        a = self._line(reduction.queries, length, reduction.normalize)
        b = self._line(reduction.series, length, reduction.normalize)
        positions = np.asarray(reduction.positions[tile.rows])
        normalize = bool(reduction.normalize)
        (found,) = near(lines.window_distances(a, positions, b, tile.cols, length, normalize))
        there = partial(as_in, module_of(found))
        constant_a, finite_a = (there(of[positions, None]) for of in (a.constant, a.finite))
        constant_b, finite_b = (there(of[tile.cols]) for of in (b.constant, b.finite))
        found = np.where(constant_a != constant_b, np.sqrt(length), found)
        found = np.where(constant_a & constant_b, 0.0, found)
        return to_host(np.where(finite_a & finite_b, found, np.inf))

    def join_bytes(self, reduction: Join, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile: lines, lists, and the first columns of a launch."""
        dtype = stated_type(reduction)
        kernel = choose_join(reduction, (rows, cols), dtype)
        size = np.dtype(dtype).itemsize
        lines = LINE_BYTES * sum(reduction.shape[: 1 if reduction.within else 2])
        least, some = room(self.prepared.capacity)
        # lists, what windows know, what they have found; cells that are refined at a time
        lists = 2 * 16 * max(least, RUNS_PER_WINDOW * (rows + cols)) + 512 * some
        lists += (32 + 24 * reduction.n_neighbors) * sum(reduction.shape)
        panels = -(-cols // kernel.panel)
        heights = [height for _, height in HEIGHTS[dtype]]
        high, low = max(heights), min(heights)
        seeds = size * panels * min(rows, high)
        if rows > high:
            seeds = max(SEED_BYTES, seeds)
        seeds += size * cols * -(-rows // low)
        if reduction.precision == "auto" and worth_an_estimate(reduction):
            seeds = max(seeds, 4 * SAMPLE * reduction.shape[1])
        together = bytes_of_lengths(reduction, rows, self.prepared.capacity)
        return 0, lines + lists + seeds + together

    def join(self, reduction: Join, tile: Tile, cancel: np.ndarray) -> JoinPart | None:
        """Nearest windows within a tile; with device accumulators they stay on the device."""
        import cupy as cp

        from ..transfers import module_of, to_host
        from .join import nearest
        from .lines import make_steps

        if joins_lengths(reduction, tile, self.prepared.capacity):
            from .length_tiles import profile_of_length

            together = profile_of_length(self, reduction)
            if together is not None:
                return together
        length, normalize = reduction.length, reduction.normalize
        pools = reduction.a, reduction.other
        row_line, col_line = (self._line(pool, length, normalize) for pool in pools)
        lines = row_line, col_line
        searched = self._searched(pools, length, normalize)
        mask_a, mask_b = (line.regular for line in searched)
        if reduction.excluded is not None:
            mask_a = mask_a & ~module_of(mask_a).asarray(reduction.excluded)
            mask_b = mask_a if reduction.within else mask_b
        regular = mask_a, mask_b
        if _is_small(reduction, tile):
            found = partial(_distances, lines, reduction)
            on_host = to_host(mask_a), to_host(mask_b)
            return nearest_of_all(reduction, tile, on_host, found, AT_A_TIME, cancel)
        level = 0.0 if normalize else 4 * max(float(line.norm.max()) for line in searched) ** 2
        masks = cp.asarray(mask_a), cp.asarray(mask_b)

        def steps_in(dtype: type) -> tuple[Steps, Steps]:
            first, second = (
                self._steps(pool, line, length, level, dtype)
                if reduction.excluded is None
                else make_steps(line, mask, level, dtype)
                for pool, line, mask in zip(pools, searched, regular, strict=True)
            )
            return first, second

        dtype = self._join_type(reduction, searched, steps_in)
        known, kept = self._known(reduction, searched, regular, tile, level, dtype)
        nearest(reduction, lines, searched, steps_in(known.dtype), masks, tile, level, known)
        return None if kept else known.part(tile, 2 if reduction.within else 1)

    def _known(
        self,
        reduction: Join,
        searched: tuple[Searched, Searched],
        regular: tuple[Near, Near],
        tile: Tile,
        level: float,
        dtype: type,
    ) -> tuple[Known, bool]:
        """Bounds and neighbours on this device and stream, and whether they stay for the next tile.

        They stay where there are device accumulators, but not of several neighbours for each
        window: a neighbour that two tiles find could not be told from two neighbours.
        """
        import cupy

        from .known import Known

        device_accumulators = reduction.device_accumulators
        lane = cupy.cuda.Device().id, cupy.cuda.get_current_stream().ptr
        make = partial(Known, reduction, searched, regular)
        budget = self.prepared.capacity
        if device_accumulators is None or reduction.n_neighbors > 1:
            return make(tile, tile.shape, level, dtype, budget), False
        known = device_accumulators.get(lane)
        if not isinstance(known, Known):
            area = Tile(0, reduction.shape[0], 0, reduction.shape[1])
            known = device_accumulators[lane] = make(area, tile.shape, level, dtype, budget)
        return known, True

    def _join_type(
        self,
        reduction: Join,
        searched: tuple[Searched, Searched],
        steps_in: Callable[[type], tuple[Steps, Steps]],
    ) -> type:
        """Type of the covariances of a join: one for all of its tiles, on all devices."""
        from .precision import leaves_little_to_measure

        if reduction.precision != "auto" or not worth_an_estimate(reduction):
            return stated_type(reduction)

        def build() -> tuple[type, int]:
            little = leaves_little_to_measure(reduction, searched, steps_in(np.float32))
            return (np.float32 if little else np.float64), 0

        # tiles of one run share the lines of the join, whichever copy of it they hold
        key = "join type", reduction.length, reduction.exclusion, id(reduction.other.points)
        return self.prepared.get(reduction.a.points, (*key, reduction.normalize), build)

    def _line(self, pool: ConcatenatedSeries, length: int, normalize: bool) -> DeviceLine:
        """A line on the current device, kept while it lives."""
        import cupy

        from .lines import prepare_line

        def build() -> tuple[DeviceLine, int]:
            made = prepare_line(pool, length, normalize)
            return made, made.nbytes

        key = ("windows", cupy.cuda.Device().id, length, normalize)
        return self.prepared.get(pool.points, key, build)

    def _searched(
        self, pools: tuple[ConcatenatedSeries, ConcatenatedSeries], length: int, normalize: bool
    ) -> tuple[Searched, Searched]:
        """Two lines, or the same twice, for the search of a join; kept while they live."""
        import cupy

        from .lines import prepare_search

        lines = [self._line(pool, length, normalize) for pool in pools]
        frame = None if normalize else self._frame(pools, lines)

        def search_line(pool: ConcatenatedSeries, line: DeviceLine) -> Searched:
            def build() -> tuple[Searched, int]:
                made = prepare_search(pool, line, length, frame)
                return made, made.nbytes

            key = ("searched", cupy.cuda.Device().id, length, frame)
            return self.prepared.get(pool.points, key, build)

        first, second = map(search_line, pools, lines)
        return first, second

    def _frame(
        self, pools: tuple[ConcatenatedSeries, ConcatenatedSeries], lines: list[DeviceLine]
    ) -> Frame:
        """Offset and size in common of windows of two lines that are compared as they are."""
        from ..transfers import to_host

        last = 1 if pools[0].points is pools[1].points else 2
        points = [fill_gaps(pool.points)[0] for pool in pools[:last]]

        def extent(line: DeviceLine) -> tuple[np.ndarray, np.ndarray]:
            low, high = line.moments[2:]
            return to_host(low), to_host(high)

        return common_frame(points, [partial(extent, line) for line in lines[:last]])

    def _steps(
        self, pool: ConcatenatedSeries, line: Searched, length: int, level: float, dtype: type
    ) -> Steps:
        """Factors and bounds of a line for covariances, kept while it lives."""
        import cupy

        from .lines import make_steps

        def build() -> tuple[Steps, int]:
            made = make_steps(line, line.regular, level, dtype)
            return made, made.nbytes

        key = ("steps", cupy.cuda.Device().id, length, line.frame, level, dtype)
        return self.prepared.get(pool.points, key, build)


def _is_small(reduction: Join, tile: Tile) -> bool:
    """Whether to measure all pairs of a tile: to compile the walk takes longer."""
    from ..loading import pays

    seconds = tile.shape[0] * tile.shape[1] * (A_PAIR + A_POINT * reduction.length)
    kernel = choose_join(reduction, tile.shape, stated_type(reduction))
    return not pays("profile/join.cu", kernel.name, seconds, TO_COMPILE)


def _distances(
    lines: tuple[DeviceLine, DeviceLine], reduction: Join, rows: np.ndarray, columns: slice
) -> np.ndarray:
    """Certified distances of some windows to a run of others, on the host."""
    from ..transfers import bring
    from .lines import window_distances

    normalize = bool(reduction.normalize)
    return bring(window_distances(lines[0], rows, lines[1], columns, reduction.length, normalize))
