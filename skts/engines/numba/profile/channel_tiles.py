"""Tiles of joins of many channels on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.constants import CONSTANT_KIND, FAR, MISSING_KIND
from ...core.order import network_of
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.channels import ChannelJoin, nearest_of_all_channels
from ...families.profile.concatenated import ConcatenatedSeries
from ...families.profile.join import JoinPart
from ...families.profile.lines import step_factors
from ...families.profile.nearest import Nearest, take_nearer
from ...host import by_numpy
from ...host.small_work import ENTRIES, prefer_numpy
from .channel_candidates import (
    LISTED,
    ChannelLine,
    Rule,
    open_known,
)
from .channel_rows import ROWS
from .channels import BLOCK_WIDTHS, GROUP, ChannelAxis, Walk, search
from .lines import PreparedLine, Searched

__all__ = ["ChannelTiles"]

#: Columns beyond the last that a block may read.
PAD = BLOCK_WIDTHS[1]
#: Pairs of a row of a block, each of them twice where rows and columns have one list.
PAIRS_OF_A_ROW = 2 * BLOCK_WIDTHS[1]
#: Bytes of a point of a channel: lines, and what the walk needs of every window.
LINE_BYTES = 230


class ChannelTiles:
    """Methods of the CPU engine for joins of many channels."""

    prepared: PreparedStore
    window_distances: Callable[..., np.ndarray]
    _windows: Callable[..., PreparedLine]
    _searched: Callable[..., tuple[Searched, Searched]]

    def channel_join_bytes(self, reduction: ChannelJoin, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile: lines; lists, limits and neighbours."""
        n_channels, n_dimensions = len(reduction.channels), len(reduction.rule.dimensions)
        windows = sum(reduction.shape[: 1 if reduction.within else 2])
        lists = 2 * 32 * (LISTED + PAIRS_OF_A_ROW * n_dimensions)
        room = (16 + 5 * ROWS) * n_channels * BLOCK_WIDTHS[1] + 4 * (n_channels + 1) * cols
        each = lists + room + 56 * n_dimensions * (rows + cols)
        return LINE_BYTES * n_channels * windows, each

    def channel_join(self, reduction: ChannelJoin, tile: Tile, cancel: np.ndarray) -> JoinPart:
        """Nearest windows within a tile, by channels."""
        length, n_channels = reduction.length, len(reduction.channels)
        (n_rows, n_cols), pairs = reduction.shape, tile.shape[0] * tile.shape[1]

        def seconds() -> tuple[float, float]:
            some, total = n_channels * pairs, n_channels * n_rows * n_cols
            return by_numpy.seconds(some, length), by_numpy.seconds(total, length)

        if prefer_numpy(seconds, search):
            return nearest_of_all_channels(
                reduction, tile, self.window_distances, 4 * ENTRIES, cancel
            )
        a, b = self._axes(reduction)
        n_dimensions = len(reduction.rule.dimensions)
        rows = Nearest.none(tile.shape[0], n_dimensions)
        cols = Nearest.none(tile.shape[1] if reduction.within else 0, n_dimensions)
        first = max(tile.col, reduction.since) if reduction.within else tile.col
        if first >= tile.col_stop:
            return JoinPart(rows, cols)
        found = Nearest.none(tile.col_stop - first, n_dimensions)
        a = a._replace(first=tile.row, stop=tile.row_stop)
        b = b._replace(first=first, stop=tile.col_stop)
        order, rule = _rule(reduction)
        network = network_of(n_channels - rule.n_included)
        hints, looking = self._hints(reduction), self._looking(reduction)

        def known(side: int, start: int, nearest: Nearest) -> Any:
            return open_known(start, looking[side], hints[side], *nearest, PAIRS_OF_A_ROW)

        def walk(least_apart: int, of_rows: bool, of_columns: bool) -> Walk:
            options = same, bool(reduction.normalize), rule, order, network
            return Walk(length, least_apart, of_rows, of_columns, *options)

        own = known(0, tile.row, rows)
        # one list for both: its neighbours are those of rows
        same = reduction.within and not reduction.sides
        same = same and (tile.row, tile.row_stop) == (first, tile.col_stop)
        if reduction.within:
            other = own if same else known(1, first, found)
            search(a, b, own, other, walk(reduction.least_apart, True, True), cancel)
            take_nearer(cols, slice(first - tile.col, None), found)
        else:
            nobody = known(1, first, Nearest.none(0, n_dimensions))
            # pairs above the diagonal, then those below, turned round
            search(a, b, own, nobody, walk(-1, True, False), cancel)
            below = Nearest.none(tile.shape[0], n_dimensions)
            search(b, a, nobody, known(0, tile.row, below), walk(0, False, True), cancel)
            take_nearer(rows, slice(None), below)
        return JoinPart(rows, cols)

    def _axes(self, reduction: ChannelJoin) -> tuple[ChannelAxis, ChannelAxis]:
        """Both axes, of all windows."""
        length, normalize = reduction.length, reduction.normalize
        pairs = list(zip(reduction.channels, reduction.other_channels, strict=True))
        searched = [self._searched(pair, length, normalize) for pair in pairs]
        # one unit for all channels
        unit = min(line.unit for both in searched for line in both)
        axes = []
        for at in range(1 if reduction.within else 2):
            pools = [pair[at] for pair in pairs]
            lines = [both[at] for both in searched]
            axes.append(self._axis(pools, lines, length, normalize, unit))
        hidden = [np.any([both[at].hidden for both in searched], axis=0) for at in range(len(axes))]
        left_out = [one if one.any() else None for one in hidden]
        if reduction.excluded is not None:
            left_out[0] = hidden[0] | reduction.excluded
        for at, out in enumerate(left_out):
            if out is not None:
                alpha = axes[at].alpha.copy()
                alpha[:, : out.size][:, out] = FAR
                axes[at] = axes[at]._replace(alpha=alpha)
        return axes[0], axes[-1]

    def _axis(
        self,
        pools: list[ConcatenatedSeries],
        lines: list[Searched],
        length: int,
        normalize: bool,
        unit: float,
    ) -> ChannelAxis:
        """The channels of a line, laid together; kept while the first of them lives."""

        def build() -> tuple[ChannelAxis, int]:
            known = [self._windows(pool, length, normalize) for pool in pools]
            made = _make_axis(known, lines, length, normalize, unit)
            size = sum(array.nbytes for array in [*made[1:-2], *made.line])
            return made, size

        frames = tuple(line.frame for line in lines)
        key = "channels", length, normalize, unit, frames
        return self.prepared.get_of([pool.points for pool in pools], key, build)

    def _looking(self, reduction: ChannelJoin) -> list[np.ndarray]:
        """Windows along rows and columns that are searched."""
        pairs = list(zip(reduction.channels, reduction.other_channels, strict=True))

        def hidden(channel: int, at: int) -> np.ndarray:
            both = self._searched(pairs[channel], reduction.length, reduction.normalize)
            return both[at].hidden

        return reduction.looking(hidden)

    def _hints(self, reduction: ChannelJoin) -> list[np.ndarray]:
        """Sums, in the units of the search, that neighbours along rows and columns need not exceed.

        Distances that are known may have come from another order of tiles: they spare work only.
        """
        dimensions = np.array(reduction.rule.dimensions)
        known = reduction.hint
        if known is None or not reduction.within:
            nothing = [np.full((size, dimensions.size), np.inf) for size in reduction.shape]
            known = nothing[0] if known is None else known[0], nothing[1]
        unit = 1.0
        if not reduction.normalize:
            unit = min(
                self._searched(pair, reduction.length, False)[0].unit
                for pair in zip(reduction.channels, reduction.other_channels, strict=True)
            )
        with np.errstate(over="ignore"):
            return [np.ascontiguousarray(one * dimensions * unit) for one in known]


def _rule(reduction: ChannelJoin) -> tuple[np.ndarray, Rule]:
    """The order of channels, and which count."""
    rule, n_channels = reduction.rule, len(reduction.channels)
    order = np.array([*rule.include, *rule.others(n_channels)], np.int64)
    included = np.zeros(n_channels, bool)
    included[list(rule.include)] = True
    dimensions = np.array(rule.dimensions, np.int64)
    counted = dimensions, included, len(rule.include), bool(rule.worst)
    return order, Rule(*counted, bool(reduction.normalize))


def _make_axis(
    known: list[PreparedLine], lines: list[Searched], length: int, normalize: bool, unit: float
) -> ChannelAxis:
    """Lay the channels of a line together."""
    n_windows = known[0].mean.size
    kind = np.zeros((len(known), n_windows), np.uint8)
    points, mean, inverse = (
        np.stack([getattr(one, name) for one in known]) for name in ("points", "mean", "inverse")
    )
    line = ChannelLine(points, mean, inverse, kind)
    shape = len(known), n_windows + PAD
    lead, trail, scale = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    alpha = np.full(shape, FAR)
    blur, shift = np.zeros((len(known), n_windows)), np.zeros((len(known), n_windows))
    n_groups = -(-n_windows // GROUP)
    groups, extents = np.zeros((len(known), n_groups, 8)), np.zeros((len(known), n_groups, 2))
    begins = np.arange(0, n_windows, GROUP)
    for c, (one, searched) in enumerate(zip(known, lines, strict=True)):
        kind[c, one.constant] = CONSTANT_KIND
        kind[c, ~one.finite] = MISSING_KIND
        here = slice(0, n_windows)
        lead[c, here], trail[c, here] = step_factors(searched.points, searched.mean, searched.frame)
        usable = searched.regular
        if normalize:
            norm = np.sqrt(length) * searched.deviation
            weight = np.divide(1.0, norm, out=np.zeros(n_windows), where=usable)
            scale[c, here] = np.sqrt(2 * length) * weight
            alpha[c, here] = np.where(one.finite, np.where(one.constant, 0.0, length), FAR)
            blur[c], shift[c] = searched.size * weight, searched.slip * weight
        else:
            energy = searched.energy(length)
            norm = np.sqrt(energy)
            # of the common unit; to the square
            factor = unit / searched.unit
            scale[c, here] = np.where(usable, np.sqrt(2) * factor, 0.0)
            alpha[c, here] = np.where(one.finite & ~searched.hidden, energy * factor**2, FAR)
        step = np.abs(lead[c, here]) + np.abs(trail[c, here])
        finite_alpha = np.where(alpha[c, here] < FAR, alpha[c, here], 0.0)
        bounds = norm, step, searched.slip, scale[c, here], blur[c], shift[c], finite_alpha
        for at, values in enumerate(bounds):
            groups[c, :, at] = np.maximum.reduceat(values, begins)
        groups[c, :, 7] = np.minimum.reduceat(np.where(usable, norm, np.inf), begins)
        extents[c, :, 0] = np.minimum.reduceat(searched.mean, begins)
        extents[c, :, 1] = np.maximum.reduceat(searched.mean, begins)
    points, mean = (np.stack([getattr(one, name) for one in lines]) for name in ("points", "mean"))
    everything = lead, trail, scale, alpha, blur, shift, groups, extents
    return ChannelAxis(line, points, mean, *everything, 0, n_windows)
