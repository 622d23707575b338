"""Tiles of joins of many channels on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.channels import ChannelJoin, nearest_of_all_channels
from ...families.profile.concatenated import ConcatenatedSeries
from ...families.profile.join import JoinPart
from ...families.profile.nearest import Nearest
from .channel_programs import (
    BLOCKS_AT_ONCE,
    HEIGHT,
    KEPT_AT_ONCE,
    MANY,
    MEASURED_AT_ONCE,
    MOST_CHANNELS,
    choose_walk,
)

if TYPE_CHECKING:
    from .channels import ChannelAxis
    from .lines import DeviceLine, Searched

__all__ = ["ChannelTiles"]

#: Bytes of a point of a channel on the device: line, search, steps, and these as kernels take them.
LINE_BYTES = 84 + 120 + 64 + 56 + 152
#: CPU seconds that compiling the walks takes; seconds of the host for a pair of one channel that is
#: measured in their place, and of a device of modest size for each point of one.
TO_COMPILE, A_PAIR, A_POINT = 3.0, 4e-8, 4e-12
#: Distances that are measured at a time in place of the walk.
AT_A_TIME = 2**20
#: Largest typical error of a square in float32, as a share of that of windows which do not
#: correlate: 2 length. Larger ones would list many pairs.
MOST_ERROR = 4e-3
#: Pairs that the list has room for: for each window and channel, and at least; its bytes at most.
PAIRS_PER_WINDOW, LEAST_PAIRS, MOST_BYTES = 5, 2**16, 2**32
#: The same of runs of pairs of many channels, where 1 in 100 may hold a near one.
RUNS_PER_WINDOW, LEAST_RUNS, MOST_RUN_BYTES = 16, 2**14, 2**31


class ChannelTiles:
    """Methods of the GPU engine for joins of many channels."""

    prepared: PreparedStore
    window_distances: Callable[..., np.ndarray]
    _line: Callable[..., DeviceLine]
    _searched: Callable[..., tuple[Searched, Searched]]

    def channel_join_lacks(self, reduction: ChannelJoin) -> str | None:
        """Say that a walk holds no more channels."""
        n_channels = len(reduction.channels)
        if n_channels <= MOST_CHANNELS:
            return None
        return (
            f"engine='cupy' joins series of at most {MOST_CHANNELS} channels; these have "
            f"{n_channels}."
        )

    def channel_join_bytes(self, reduction: ChannelJoin, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile: lines, list, bounds and neighbours."""
        n_channels = len(reduction.channels)
        windows = sum(reduction.shape[: 1 if reduction.within else 2])
        capacity = _capacity(n_channels, rows + cols)
        kept = min(capacity, KEPT_AT_ONCE) if n_channels >= MANY else 0
        lists = _pair_bytes(n_channels) * (capacity + kept)
        lists += run_bytes(n_channels) * runs_room(n_channels, rows + cols)
        blocks = min(BLOCKS_AT_ONCE, (rows // HEIGHT + 1) * ((cols + HEIGHT) // 32 + 1))
        lists += 8 * n_channels * blocks if n_channels >= MANY else 0
        measured = min(MEASURED_AT_ONCE, n_channels * capacity) * (16 + 8)
        return 0, n_channels * windows * (LINE_BYTES + 2 * (4 + 3 * 12)) + lists + measured

    def channel_join(self, reduction: ChannelJoin, tile: Tile, cancel: np.ndarray) -> JoinPart:
        """Nearest windows within a tile, by channels."""
        from ..loading import shared_room
        from .channels import ChannelWalk, Found, answer, open_side
        from .many_channels import walk

        length = reduction.length
        within, rule = reduction.within, reduction.rule
        first = max(tile.col, reduction.since) if within else tile.col
        if self._few_pairs(reduction, tile):
            return nearest_of_all_channels(
                reduction, tile, self.window_distances, AT_A_TIME, cancel
            )
        n_cols = tile.shape[1] if within else 0
        nothing = Nearest.none(n_cols, len(rule.dimensions))
        if first >= tile.col_stop:
            return JoinPart(Nearest.none(tile.shape[0], len(rule.dimensions)), nothing)
        (rows_axis, cols_axis), unit = self._axes(reduction)
        looking = self._looking(reduction)
        rows_axis, cols_axis = rows_axis.without(~looking[0]), cols_axis.without(~looking[1])
        axes = rows_axis, cols_axis
        exact = reduction.precision == "float64" or max(one.error for one in axes) > MOST_ERROR
        dtypes = ("double",) if exact else ("float", "double")
        kernels = tuple(choose_walk(reduction, dtype, shared_room()) for dtype in dtypes)
        rows, cols = tile.rows, slice(first, tile.col_stop)
        hints: list[np.ndarray | None] = [None, None]
        if reduction.hint is not None and within:
            with np.errstate(over="ignore"):
                hints = [one * np.array(rule.dimensions) * unit for one in reduction.hint]
        elif reduction.hint is not None:
            hints[0] = reduction.hint[0] * np.array(rule.dimensions) * unit
        capacity = _capacity(len(reduction.channels), sum(tile.shape))
        side = open_side(rows, looking[0], hints[0], rule, axes[0])
        found = Found.none(axes[0])
        room = runs_room(len(reduction.channels), sum(tile.shape))
        options = length, bool(reduction.normalize), capacity, room
        # one list for both: its neighbours are those of rows
        same = within and not reduction.sides and (rows.start, rows.stop) == (cols.start, cols.stop)
        if within:
            other = side if same else open_side(cols, looking[1], hints[1], rule, axes[1])
            found_b = found if same else Found.none(axes[1])
            sides, both = (side, other), (found, found_b)
            walk(
                ChannelWalk(
                    kernels, axes, sides, both, rows, cols, reduction.least_apart + 1, *options
                )
            )
        else:
            nobody = open_side(slice(0, 0), looking[1], None, rule, axes[1])
            none = Found.none(axes[1])
            # pairs above the diagonal, then those below, turned round
            walk(ChannelWalk(kernels, axes, (side, nobody), (found, none), rows, cols, 0, *options))
            turned = (axes[1], axes[0]), (nobody, side), (none, found), cols, rows
            walk(ChannelWalk(kernels, *turned, 1, *options))
        *rows_found, dropped = answer(found, side, rows, rule)
        floor = np.where(dropped, 0.0, np.inf)[:, np.newaxis]
        if not within:
            return JoinPart(Nearest(*rows_found), nothing, floor)
        if same:
            return JoinPart(Nearest(*rows_found), None, floor)
        *cols_found, dropped = answer(found_b, other, tile.cols, rule)
        col_floor = np.where(dropped, 0.0, np.inf)[:, np.newaxis]
        return JoinPart(Nearest(*rows_found), Nearest(*cols_found), floor, col_floor)

    def _few_pairs(self, reduction: ChannelJoin, tile: Tile) -> bool:
        """Whether to measure all pairs of a tile: to compile the walks takes longer."""
        from ..loading import pays, shared_room

        each = len(reduction.channels) * (A_PAIR + A_POINT * reduction.length)
        kernel = choose_walk(reduction, "float", shared_room())
        n_pairs = tile.shape[0] * tile.shape[1]
        return not pays(kernel.file, kernel.name, n_pairs * each, TO_COMPILE)

    def _axes(self, reduction: ChannelJoin) -> tuple[tuple[ChannelAxis, ChannelAxis], float]:
        """Both axes, of all windows, in the order in which channels count; and their unit."""
        length, normalize, rule = reduction.length, reduction.normalize, reduction.rule
        order = [*rule.include, *rule.others(len(reduction.channels))]
        pairs = [(reduction.channels[c], reduction.other_channels[c]) for c in order]
        searched = [self._searched(pair, length, normalize) for pair in pairs]
        unit = min(line.unit for both in searched for line in both)
        axes = []
        for at in range(1 if reduction.within else 2):
            pools, lines = [pair[at] for pair in pairs], [both[at] for both in searched]
            axes.append(self._axis(pools, lines, length, normalize, unit))
        return (axes[0], axes[-1]), unit

    def _axis(
        self,
        pools: list[ConcatenatedSeries],
        lines: list[Searched],
        length: int,
        normalize: bool,
        unit: float,
    ) -> ChannelAxis:
        """The channels of a line, laid together; kept while the first of them lives."""
        import cupy

        from .channels import make_axis

        def build() -> tuple[ChannelAxis, int]:
            known = [self._line(pool, length, normalize) for pool in pools]
            made = make_axis(known, lines, length, normalize, unit)
            return made, made.nbytes

        frames = tuple(line.frame for line in lines)
        key = "channels", cupy.cuda.Device().id, length, normalize, unit, frames
        return self.prepared.get_of([pool.points for pool in pools], key, build)

    def _looking(self, reduction: ChannelJoin) -> list[np.ndarray]:
        """Windows along rows and columns that are searched."""
        from ..transfers import to_host

        pairs = list(zip(reduction.channels, reduction.other_channels, strict=True))

        def hidden(channel: int, at: int) -> np.ndarray:
            both = self._searched(pairs[channel], reduction.length, reduction.normalize)
            return to_host(both[at].hidden)

        return reduction.looking(hidden)


def _pair_bytes(n_channels: int) -> int:
    """Bytes of a listed pair: itself, its sums, and, of few channels, once more if it is kept."""
    return (16 if n_channels < MANY else 8) + 4 * n_channels


def run_bytes(n_channels: int) -> int:
    """Bytes of a listed run of pairs of many channels: itself and its covariances."""
    return 16 + 8 * n_channels if n_channels >= MANY else 0


def runs_room(n_channels: int, windows: int) -> int:
    """Runs that the list of a tile has room for."""
    most = MOST_RUN_BYTES // max(1, run_bytes(n_channels))
    return max(LEAST_RUNS, min(most, RUNS_PER_WINDOW * windows))


def _capacity(n_channels: int, windows: int) -> int:
    """Pairs that the list of a tile has room for."""
    wanted = PAIRS_PER_WINDOW * n_channels * windows
    return max(LEAST_PAIRS, min(MOST_BYTES // _pair_bytes(n_channels), wanted))
