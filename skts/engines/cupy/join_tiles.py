"""Tiles of joins on the GPU: windows of long series against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._join import Join, JoinPart
from .._memory import PreparedStore
from .._reductions import Tile
from .._windows import Kinds, Pool, WindowDistances, WindowKinds

if TYPE_CHECKING:
    from .join import DeviceLine, Known, Steps

__all__ = ["JoinTiles"]

#: Bytes of a point of a line on the device: points and statistics, and twice its steps.
LINE_BYTES = 70 + 120


class JoinTiles:
    """Methods of the GPU engine for work on windows."""

    prepared: PreparedStore

    def window_kinds_bytes(self, reduction: WindowKinds, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for the statistics of a line."""
        return 0, LINE_BYTES * reduction.series.points.size

    def window_kinds(self, reduction: WindowKinds, tile: Tile, cancel: np.ndarray) -> Kinds:
        """Which windows are constant, which are finite."""
        line = self._line(reduction.series, reduction.length, True)
        return Kinds(line.constant.get(), line.finite.get())

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

        from . import join

        length = reduction.length
        a = self._line(reduction.queries, length, reduction.normalize)
        b = self._line(reduction.series, length, reduction.normalize)
        positions = np.asarray(reduction.positions[tile.rows])
        found = join.window_distances(a, positions, b, tile.col, tile.shape[1], length)
        constant_a, finite_a = a.constant[positions, None], a.finite[positions, None]
        constant_b, finite_b = b.constant[tile.cols], b.finite[tile.cols]
        found = cp.where(constant_a != constant_b, np.sqrt(length), found)
        found = cp.where(constant_a & constant_b, 0.0, found)
        return cp.where(finite_a & finite_b, found, np.inf).get()

    def join_bytes(self, reduction: Join, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile: lines, lists, and the first columns of a launch."""
        from .join import room
        from .join_programs import RUNS_PER_WINDOW, choose_join

        kernel = choose_join(reduction, (rows, cols))
        size = np.dtype(kernel.dtype).itemsize
        lines = LINE_BYTES * sum(reduction.shape[: 1 if reduction.within else 2])
        least, some = room(self.prepared.capacity)
        # lists, what windows know, what they have found; cells that are refined at a time
        lists = 2 * 16 * max(least, RUNS_PER_WINDOW * (rows + cols)) + 512 * some
        lists += (32 + 24 * reduction.n_neighbors) * sum(reduction.shape)
        panels = -(-cols // kernel.panel)
        seeds = max(2**30, size * panels * min(rows, 4096)) if rows > 4096 else size * panels * rows
        return 0, lines + lists + seeds + size * cols * -(-rows // 1024)

    def join(self, reduction: Join, tile: Tile, cancel: np.ndarray) -> JoinPart | None:
        """Nearest windows within a tile; where there is a board, they stay on the device."""
        import cupy as cp

        from . import join
        from .join_programs import choose_join

        length, normalize = reduction.length, reduction.normalize
        pools = reduction.a, reduction.other
        lines = tuple(self._line(pool, length, normalize) for pool in pools)
        level = 0.0 if normalize else 4 * max(float(line.norm.max()) for line in lines) ** 2
        usual = [line.finite & ~line.constant for line in lines]
        if reduction.excluded is not None:
            keep = ~cp.asarray(reduction.excluded)
            usual[0] &= keep
            usual[1] = usual[0] if reduction.within else usual[1]
        dtype = choose_join(reduction, tile.shape).dtype
        steps = []
        for pool, line, mask in zip(pools, lines, usual, strict=True):
            if reduction.excluded is not None:
                steps.append(join.prepare(line, mask, length, normalize, level, dtype))
            else:
                steps.append(self._steps(pool, line, mask, length, normalize, level, dtype))
        known, kept = self._known(reduction, lines, tuple(usual), tile, level)
        join.nearest(reduction, lines, tuple(steps), tuple(usual), tile, level, known)
        return None if kept else known.part(tile, 2 if reduction.within else 1)

    def _known(
        self,
        reduction: Join,
        lines: tuple[DeviceLine, DeviceLine],
        usual: tuple[Any, Any],
        tile: Tile,
        level: float,
    ) -> tuple[Known, bool]:
        """What windows know on this device and stream, and whether that stays for the next tile.

        It is where there is a board, but not of several neighbours for each window: those that one
        tile has found could not be told from those that another finds again.
        """
        import cupy

        from . import join

        board = reduction.board
        lane = cupy.cuda.Device().id, cupy.cuda.get_current_stream().ptr
        kept = board is not None and reduction.n_neighbors == 1
        if kept and lane in board:
            return board[lane], kept
        area = Tile(0, reduction.shape[0], 0, reduction.shape[1]) if kept else tile
        budget = self.prepared.capacity
        known = join.Known(reduction, lines, usual, area, tile.shape, level, budget)
        if kept:
            board[lane] = known
        return known, kept

    def _line(self, pool: Pool, length: int, normalize: bool) -> DeviceLine:
        """A line on the current device, kept while it lives."""
        import cupy

        from . import join

        def build() -> tuple[DeviceLine, int]:
            made = join.lay(pool, length, normalize)
            return made, made.nbytes

        key = ("windows", cupy.cuda.Device().id, length, normalize)
        return self.prepared.get(pool.points, key, build)

    def _steps(
        self,
        pool: Pool,
        line: DeviceLine,
        usual: Any,
        length: int,
        normalize: bool,
        level: float,
        dtype: type,
    ) -> Steps:
        """What covariances need of a line, kept while it lives."""
        import cupy

        from . import join

        def build() -> tuple[Steps, int]:
            made = join.prepare(line, usual, length, normalize, level, dtype)
            return made, made.nbytes

        key = ("steps", cupy.cuda.Device().id, length, normalize, level, dtype)
        return self.prepared.get(pool.points, key, build)
