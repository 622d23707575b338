"""Tiles of joins on the GPU: windows of long series against each other."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.concatenated import ConcatenatedSeries, fill_gaps
from ...families.profile.join import Join, JoinPart
from ...families.profile.lines import Frame, common_frame
from ...families.profile.windows import Kinds, WindowDistances, WindowKinds
from .programs import HEIGHTS, RUNS_PER_WINDOW, SEED_BYTES, choose_join, room

if TYPE_CHECKING:
    from .known import Known
    from .lines import DeviceLine, Searched, Steps

__all__ = ["JoinTiles"]

#: Bytes of a point of a line on the device: points and statistics, of the search, too, and twice
#: its steps.
LINE_BYTES = 84 + 120


class JoinTiles:
    """Methods of the GPU engine for work on windows."""

    prepared: PreparedStore

    def window_kinds_bytes(self, reduction: WindowKinds, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for the statistics of a line, and for its search."""
        lines = [one for one in (reduction.series, reduction.joined) if one is not None]
        return 0, LINE_BYTES * sum(line.points.size for line in lines)

    def window_kinds(self, reduction: WindowKinds, tile: Tile, cancel: np.ndarray) -> Kinds:
        """Which windows are constant, which are finite, which a join does not search."""
        series, length, normalize = reduction.series, reduction.length, reduction.normalize
        line = self._line(series, length, normalize)
        if reduction.joined is None:
            return Kinds(line.constant.get(), line.finite.get())
        searched, _ = self._searched((series, reduction.joined), length, normalize)
        return Kinds(line.constant.get(), line.finite.get(), searched.hidden.get())

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
        import cupy as cp

        from . import lines

        length = reduction.length
        a = self._line(reduction.queries, length, reduction.normalize)
        b = self._line(reduction.series, length, reduction.normalize)
        positions = np.asarray(reduction.positions[tile.rows])
        normalize = bool(reduction.normalize)
        found = lines.window_distances(a, positions, b, tile.cols, length, normalize)
        constant_a, finite_a = a.constant[positions, None], a.finite[positions, None]
        constant_b, finite_b = b.constant[tile.cols], b.finite[tile.cols]
        found = cp.where(constant_a != constant_b, np.sqrt(length), found)
        found = cp.where(constant_a & constant_b, 0.0, found)
        return cp.where(finite_a & finite_b, found, np.inf).get()

    def join_bytes(self, reduction: Join, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile: lines, lists, and the first columns of a launch."""
        kernel = choose_join(reduction, (rows, cols))
        size = np.dtype(kernel.dtype).itemsize
        lines = LINE_BYTES * sum(reduction.shape[: 1 if reduction.within else 2])
        least, some = room(self.prepared.capacity)
        # lists, what windows know, what they have found; cells that are refined at a time
        lists = 2 * 16 * max(least, RUNS_PER_WINDOW * (rows + cols)) + 512 * some
        lists += (32 + 24 * reduction.n_neighbors) * sum(reduction.shape)
        panels = -(-cols // kernel.panel)
        high, low = (height for _, height in HEIGHTS)
        seeds = size * panels * min(rows, high)
        if rows > high:
            seeds = max(SEED_BYTES, seeds)
        return 0, lines + lists + seeds + size * cols * -(-rows // low)

    def join(self, reduction: Join, tile: Tile, cancel: np.ndarray) -> JoinPart | None:
        """Nearest windows within a tile; with device accumulators they stay on the device."""
        import cupy as cp

        from .join import nearest
        from .lines import make_steps

        length, normalize = reduction.length, reduction.normalize
        pools = reduction.a, reduction.other
        row_line, col_line = (self._line(pool, length, normalize) for pool in pools)
        lines = row_line, col_line
        searched = self._searched(pools, length, normalize)
        level = 0.0 if normalize else 4 * max(float(line.norm.max()) for line in searched) ** 2
        regular = [line.regular for line in searched]
        if reduction.excluded is not None:
            keep = ~cp.asarray(reduction.excluded)
            regular[0] = regular[0] & keep
            regular[1] = regular[0] if reduction.within else regular[1]
        dtype = choose_join(reduction, tile.shape).dtype
        steps = []
        for pool, line, mask in zip(pools, searched, regular, strict=True):
            if reduction.excluded is not None:
                steps.append(make_steps(line, mask, level, dtype))
            else:
                steps.append(self._steps(pool, line, length, level, dtype))
        masks = regular[0], regular[1]
        known, kept = self._known(reduction, searched, masks, tile, level)
        both = steps[0], steps[1]
        nearest(reduction, lines, searched, both, masks, tile, level, known)
        return None if kept else known.part(tile, 2 if reduction.within else 1)

    def _known(
        self,
        reduction: Join,
        searched: tuple[Searched, Searched],
        regular: tuple[Any, Any],
        tile: Tile,
        level: float,
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
            return make(tile, tile.shape, level, budget), False
        known = device_accumulators.get(lane)
        if not isinstance(known, Known):
            area = Tile(0, reduction.shape[0], 0, reduction.shape[1])
            known = device_accumulators[lane] = make(area, tile.shape, level, budget)
        return known, True

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
        frame = None if normalize else self._frame(pools, lines, length)

        def search_line(pool: ConcatenatedSeries, line: DeviceLine) -> Searched:
            def build() -> tuple[Searched, int]:
                made = prepare_search(pool, line, length, frame)
                return made, made.nbytes

            key = ("searched", cupy.cuda.Device().id, length, frame)
            return self.prepared.get(pool.points, key, build)

        first, second = map(search_line, pools, lines)
        return first, second

    def _frame(
        self,
        pools: tuple[ConcatenatedSeries, ConcatenatedSeries],
        lines: list[DeviceLine],
        length: int,
    ) -> Frame:
        """Offset and size in common of windows of two lines that are compared as they are."""
        last = 1 if pools[0].points is pools[1].points else 2
        points = [fill_gaps(pool.points)[0] for pool in pools[:last]]

        def extent(line: DeviceLine) -> tuple[np.ndarray, np.ndarray]:
            low, high = line.moments[2:]
            return low.get(), high.get()

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
