"""Distances under warping on the CPU: many candidates side by side, one per SIMD lane.

The recurrence, whose steps a policy (`cells`) prices, cannot be vectorised along a row, but
different candidates do not depend on each other. A *group* holds LANES candidates
point by point (`pack`), and the innermost loop runs over them. Columns go in strips of WIDTH, so
that the row of a strip stays in the first-level cache whatever the lengths; the right edge of
a strip is kept for the next one. Rows go two at a time, because loads and stores, not arithmetic,
are what limits one at a time. A band only shortens the loops over rows and columns. Policies whose
steps cost differently have kernels of their own (`uneven`).

All sums run in the same order in every kernel here, and without fused multiply-add in float64, so
that the values have the bits of the certified ones, which come from `certified`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...families.elastic.warping import Warping, cells_within
from ...host import kernel
from . import uneven
from .cells import Cell, cell_of
from .lanes import LANES, columns_of_rows, lanes_of
from .rows_of_cells import ROWS, fill_rows, has_rows

__all__ = [
    "LANES",
    "NARROW",
    "Flags",
    "block",
    "block_kernel",
    "most_faster_pairs",
    "pack",
    "pairs_are_faster",
    "rows_in_lanes",
    "sweep_bytes",
]

#: Columns of a strip: the fastest of 16 to 64 on AVX2.
_WIDTH = 64
#: The same where each strip has limits of its own, after which lanes may give up.
NARROW = 16
#: Bytes of a line of the cache.
LINE = 64
#: Cells of lanes in float64 that take the time of one of a certificate: of an even policy; of an
#: uneven one in one channel, which takes one pass, and in several; with numbers of the series. In
#: float32 twice as many lanes take that time. And those that take the time of an antidiagonal.
PAIR_CELLS, ANTIDIAGONAL = (2.5, 3, 5, 12), 100


def rows_in_lanes(n_rows: int, n_cols: int, dtype: type) -> bool:
    """Whether the row series of a block fill lanes better than its column series do."""
    lanes = LANES[dtype]
    return -(-n_rows // lanes) * n_cols < -(-n_cols // lanes) * n_rows


def pairs_are_faster(
    rows: np.ndarray, cols: np.ndarray, warping: Warping, n_channels: int, dtype: type
) -> bool:
    """Whether certificates of pairs take less time than a block, most of whose cells do not count.

    A block fills the cells of all lanes of a group, up to the end of the longest series, and in the
    widest band.

    Parameters
    ----------
    rows, cols : ndarray of shape (n_rows,) and (n_cols,)
        Lengths.
    warping : Warping
        Options of the distance.
    n_channels : int
        Channels, of which a number of the series is none.
    dtype : type
        Type of the block.

    Returns
    -------
    bool
        The answer.
    """
    lanes, cell = LANES[dtype], cell_of(warping)
    each = PAIR_CELLS[3 if cell.own else cell.uneven * (1 + (n_channels > 1))]
    if rows_in_lanes(rows.size, cols.size, dtype):
        rows, cols = cols, rows
    (n, n_times), (m, m_times) = (np.unique(side, return_counts=True) for side in (rows, cols))
    n, n_times = n[:, np.newaxis], n_times[:, np.newaxis]
    alike = n_times * m_times
    # pairs of the same two lengths share antidiagonals
    longer = ANTIDIAGONAL * (n + m) * np.ceil(alike / LANES[np.float64])
    cells = each * cells_within(n, m, warping.radius(n, m)) * alike
    starts = np.arange(0, cols.size, lanes)
    cols = np.sort(cols)
    longest = np.maximum.reduceat(cols, starts)
    # the widest band is that of the shortest series of a group, or of the longest
    reach = np.maximum(warping.radius(n, cols[starts]), warping.radius(n, longest))
    filled = float(np.sum(cells_within(n, longest, reach) * n_times)) * LANES[np.float64]
    return float(np.sum(cells + longer)) < filled


def most_faster_pairs(n_rows: int, n_cols: int) -> int:
    """Pairs of a block of series of one length, or of a part of it, that may be faster than lanes.

    By `pairs_are_faster` they are fewer than the lanes of the block over the least of `PAIR_CELLS`.
    """
    lanes = LANES[np.float64]
    filled = lanes * min(-(-n_rows // lanes) * n_cols, -(-n_cols // lanes) * n_rows)
    return min(n_rows * n_cols, int(filled / min(PAIR_CELLS)))


def pack(values: np.ndarray, lengths: np.ndarray, lanes: int) -> tuple[np.ndarray, np.ndarray]:
    """Lay series side by side in groups of lanes.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    lengths : ndarray of shape (n_series,)
        Their lengths.
    lanes : int
        Series in a group; the last group is filled up with zeros.

    Returns
    -------
    packed : ndarray of shape (n_groups, n_timepoints, n_channels, lanes)
        The points.
    lengths : ndarray of shape (n_groups, lanes)
        The lengths, 0 where there is no series.
    """
    n_series, n_channels, n_timepoints = values.shape
    n_groups = -(-n_series // lanes)
    shape = n_groups, n_timepoints, n_channels, lanes
    # kernels read vectors of lanes, which are not to lie across two lines of the cache
    some = np.zeros(math.prod(shape) + LINE // values.itemsize, values.dtype)
    start = -some.ctypes.data % LINE // values.itemsize
    packed = some[start : start + math.prod(shape)].reshape(shape)
    packed_lengths = np.zeros((n_groups, lanes), np.int64)
    for group in range(n_groups):
        members = slice(group * lanes, min((group + 1) * lanes, n_series))
        count = members.stop - members.start
        packed[group, :, :, :count] = values[members].transpose(2, 1, 0)
        packed_lengths[group, :count] = lengths[members]
    return packed, packed_lengths


class Flags(NamedTuple):
    """Options of a kernel, those of its inner loop as types: True or None.

    Numba tells these apart when it compiles: a branch on ``flag is None`` is gone before LLVM sees
    it, so that one source serves all options and every instance is cached on disk by its signature.
    Borders are left by plain booleans, which cost nothing there and save instances. Lower bounds
    take `squared` and `largest`, warping takes the policy `cell`.
    """

    cell: Cell
    multivariate: bool | None
    squared: bool | None
    largest: bool | None
    free_columns: bool
    free_rows: bool

    @classmethod
    def of(cls, warping: Warping, n_channels: int) -> Flags:
        """Choose for a distance."""
        cell = cell_of(warping)
        return cls(
            cell,
            n_channels > 1 or None,
            warping.squared or None,
            warping.largest or None,
            warping.alignment == "subsequence",
            warping.alignment == "supersequence",
        )


@kernel
def _extremes(y_lengths, radius):
    """Return the longest length, the widest and the narrowest band of all lanes."""
    longest, reach, least_reach = y_lengths[0], radius[0], radius[0]
    for lane in range(1, len(radius)):
        longest = y_lengths[lane] if y_lengths[lane] > longest else longest
        reach = radius[lane] if radius[lane] > reach else reach
        least_reach = radius[lane] if radius[lane] < least_reach else least_reach
    return longest, reach, least_reach


@kernel
def _open_strip(y, start, w, columns, row, edge, first, border):
    """Load the first channel of a strip's columns; lay the border above its first row."""
    lanes = lanes_of(y)
    for j in range(w):
        for lane in range(lanes):
            columns[j, lane] = y[start + j, 0, lane]
    row[:] = border
    for lane in range(lanes):
        row[0, lane] = edge[first, lane]
        edge[0, lane] = border


@kernel
def _take_last_row(row, y_lengths, start, w, out, free_columns):
    """Take what a strip's last row says: the last cell, or the least where columns are free."""
    for lane in range(len(out)):
        j = y_lengths[lane] - 1 - start
        if free_columns:
            for k in range(min(j + 1, w)):
                if row[k + 1, lane] < out[lane]:
                    out[lane] = row[k + 1, lane]
        elif 0 <= j < w:
            out[lane] = row[j + 1, lane]


@kernel
def _hopeless(edge, first, stop, limits, y_lengths, reached):
    """Whether no lane that goes on has a cell within its limit on the edge, which paths cross."""
    for lane in range(len(y_lengths)):
        if y_lengths[lane] > reached:
            limit = limits[min(lane, limits.size - 1)]
            for i in range(first, stop):
                if edge[i + 1, lane] <= limit:
                    return False
    return True


@kernel
def sweep(
    x, y, y_lengths, radius, limits, out, cancel,
    cell, multivariate, free_columns, free_rows,
):  # fmt: skip
    """Fill the warping matrices of one row series and of the column series in all lanes.

    `limits` has a row for each strip, which is narrow then, or one for all of them; and a column
    for each lane, or one for all of them.

    The walk through the cells is one function: a step of it would take all of the state of the
    lanes (`row`, `left`, `diagonal`, `above`, `cost`) and most arguments, and the sum over channels
    apart from it made series of three channels 15 % slower.
    """
    # x: (n, C), y: (m, C, lanes), radius: (lanes,), out: (lanes,) accumulated costs
    lanes = lanes_of(y)
    zero, inf = y.dtype.type(0), y.dtype.type(np.inf)
    n, n_channels = x.shape[0], y.shape[1]
    m, reach, least_reach = _extremes(y_lengths, radius)
    row = np.empty((_WIDTH + 1, lanes), y.dtype)
    columns = np.empty((_WIDTH, lanes), y.dtype)
    width = NARROW if limits.shape[0] > 1 else _WIDTH
    # of one strip nothing is kept: all its rows share one border
    strips = m > width
    edge = np.empty((n + 1 if strips else 2, lanes), y.dtype)
    left = np.empty((ROWS, lanes), y.dtype)
    diagonal = np.empty(lanes, y.dtype)
    above = np.empty(lanes, y.dtype)
    cost = np.empty((2, lanes), y.dtype)
    column_ends = np.zeros(m, np.uint8)
    for lane in range(lanes):
        if y_lengths[lane] > 0:
            column_ends[y_lengths[lane] - 1] = 1
    rows = not free_rows and has_rows(cell)
    out[:] = inf
    # edge[i + 1] is D(i, start - 1), with the border above the first row in front
    edge[:] = zero if free_rows else inf
    edge[0, :] = 0
    for start in range(0, m, width):
        if cancel[0]:
            return
        w = min(width, m - start)
        first, stop = max(0, start - reach), min(n, start + w + reach)
        _open_strip(y, start, w, columns, row, edge, first, zero if free_columns else inf)
        i = first
        while i < stop:
            height = ROWS if reach >= ROWS and i + ROWS <= stop else 1
            if not rows:
                # rows i and i + 1 at once: half the loads and stores of one at a time
                height = 2 if i + 1 < stop else 1
            j_first, j_stop, inner_first, inner_stop = columns_of_rows(
                i, height, start, w, reach, least_reach
            )
            next_border = i + height if strips else 1
            for k in range(height):
                border = i + 1 + k if strips else 1
                for lane in range(lanes):
                    left[k, lane] = edge[border, lane] if j_first == 0 else inf
            for lane in range(lanes):
                diagonal[lane] = row[j_first, lane]
                row[0, lane] = edge[next_border, lane]
            point, next_point = x[i, 0], x[i + height - 1, 0]
            j_next = j_first
            while j_next < j_stop:
                j = j_next
                j_next += 1
                inner = inner_first <= j < inner_stop
                if rows:
                    j_next = inner_stop if inner else j_stop
                    if j < inner_first < inner_stop:
                        j_next = inner_first
                    fill_rows(
                        cell, x, i, y, start + j, j_next - j, multivariate, height == 1, inner,
                        row, j, diagonal, left, radius, row,
                    )  # fmt: skip
                    continue
                if multivariate is not None:
                    for lane in range(lanes):
                        other = columns[j, lane]
                        cost[0, lane] = cell.term(point, other)
                        cost[1, lane] = cell.term(next_point, other)
                    for c in range(1, n_channels):
                        one, next_one = x[i, c], x[i + height - 1, c]
                        for lane in range(lanes):
                            other = y[start + j, c, lane]
                            cost[0, lane] += cell.term(one, other)
                            cost[1, lane] += cell.term(next_one, other)
                if free_rows:
                    inner = inner and not column_ends[start + j]
                if inner:
                    for lane in range(lanes):
                        up = row[j + 1, lane]
                        best = up if up < diagonal[lane] else diagonal[lane]
                        best = best if best < left[0, lane] else left[0, lane]
                        if multivariate is not None:
                            here = cost[0, lane]
                        else:
                            here = cell.term(point, columns[j, lane])
                        value = cell.join(here, best)
                        best = value if value < left[0, lane] else left[0, lane]
                        best = best if best < left[1, lane] else left[1, lane]
                        diagonal[lane] = up
                        left[0, lane] = value
                        if multivariate is not None:
                            here = cost[1, lane]
                        else:
                            here = cell.term(next_point, columns[j, lane])
                        value = cell.join(here, best)
                        left[1, lane] = value
                        row[j + 1, lane] = value
                    continue
                for lane in range(lanes):
                    above[lane] = row[j + 1, lane]
                for k in range(height):
                    for lane in range(lanes):
                        best = above[lane] if above[lane] < diagonal[lane] else diagonal[lane]
                        best = best if best < left[k, lane] else left[k, lane]
                        if multivariate is not None:
                            here = cost[k, lane]
                        else:
                            here = cell.term(x[i + k, 0], columns[j, lane])
                        value = cell.join(here, best)
                        diagonal[lane] = left[k, lane]
                        left[k, lane] = value
                        above[lane] = value
                    offset = abs(i + k - start - j)
                    if offset > least_reach:
                        for lane in range(lanes):
                            if offset > radius[lane]:
                                left[k, lane] = inf
                                above[lane] = inf
                    if free_rows:
                        for lane in range(lanes):
                            last = y_lengths[lane] - 1 == start + j
                            if last and above[lane] < out[lane]:
                                out[lane] = above[lane]
                for lane in range(lanes):
                    diagonal[lane] = row[j + 1, lane]
                    row[j + 1, lane] = above[lane]
            for k in range(height if strips else 0):
                for lane in range(lanes):
                    edge[i + k + 1, lane] = left[k, lane] if j_stop == w else inf
            i += height
            if i == n and not free_rows:
                _take_last_row(row, y_lengths, start, w, out, free_columns)
        more = limits[0, 0] < inf and start + w < m and not (free_columns or free_rows)
        if more:
            here = limits[min(start // width, limits.shape[0] - 1)]
            if _hopeless(edge, first, stop, here, y_lengths, start + w):
                return


@kernel
def block_kernel(
    x, x_lengths, y, y_lengths, radius, limits, out, cancel,
    cell, multivariate, free_columns, free_rows,
):  # fmt: skip
    lanes = y.shape[3]
    for group in range(y.shape[0]):
        for i in range(x.shape[0]):
            sweep(
                x[i, : x_lengths[i]],
                y[group],
                y_lengths[group],
                radius[min(i, radius.shape[0] - 1), group],
                limits[i, min(group, limits.shape[1] - 1)],
                out[i, group * lanes : (group + 1) * lanes],
                cancel,
                *(cell, multivariate, free_columns, free_rows),
            )


def block(
    x: np.ndarray,
    x_lengths: np.ndarray,
    packed: np.ndarray,
    packed_lengths: np.ndarray,
    warping: Warping,
    cancel: np.ndarray,
    limits: np.ndarray | None = None,
) -> np.ndarray:
    """Accumulated costs of every row series against every lane.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_channels, n_timepoints)
        Row series, of the type of `packed`.
    x_lengths : ndarray of shape (n_rows,)
        Their lengths.
    packed, packed_lengths : ndarray
        Column series from `pack`.
    warping : Warping
        Options of the distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    limits : ndarray of shape (n_rows,) or (n_rows, n_groups, n_strips, lanes), or None
        Accumulated costs above which a row may leave infinity instead of the value; or such that
        a lane may do so as soon as no path gets through a strip of NARROW columns for less.

    Returns
    -------
    ndarray of shape (n_rows, n_groups * lanes)
        Accumulated costs.
    """
    dtype = packed.dtype.type
    out = np.empty((x.shape[0], packed.shape[0] * packed.shape[3]), dtype)
    if limits is None:
        limits = np.full(x.shape[0], np.inf, dtype)
    if limits.ndim == 1:
        limits = limits[:, np.newaxis, np.newaxis, np.newaxis].copy()
    # one radius for every lane, by row series only where their lengths differ
    longest = packed_lengths.max(axis=1, keepdims=True)
    lengths = np.where(packed_lengths > 0, packed_lengths, longest)
    distinct = x_lengths if x_lengths.min() != x_lengths.max() else x_lengths[:1]
    radius = warping.radius(distinct[:, None, None], lengths)
    # copies, since kernels are compiled for arrays that may be written to
    rows, x_lengths = np.array(x.transpose(0, 2, 1), order="C"), x_lengths.copy()
    if cell_of(warping).uneven:
        given = uneven.options(warping, x.shape[1], dtype)
        uneven.block_kernel(rows, x_lengths, packed, packed_lengths, radius, out, cancel, *given)
        return out
    flags = Flags.of(warping, x.shape[1])
    block_kernel(
        rows, x_lengths, packed, packed_lengths, radius, limits, out, cancel,
        *(flags.cell, flags.multivariate, flags.free_columns, flags.free_rows),
    )  # fmt: skip
    return out


def sweep_bytes(n: int, m: int, *, uneven: bool = False) -> int:
    """Bytes that a kernel holds beside its input: a strip, and between strips an edge of n rows.

    With uneven policies also factors of cells, by how far from the diagonal they are.
    """
    lines = (n + 1 if m > _WIDTH or uneven else 0) + (max(n, m) if uneven else 0)
    return 256 * lines + n + m + 4 * 64 * 64 * 8
