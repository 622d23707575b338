"""Distances whose steps cost differently, on the CPU: many candidates side by side, as in `dtw`.

Lanes, strips of columns and their edges are those of `dtw.sweep`. A cell may need the points before
its own two, so that each strip begins with the column before it; the row above the first and the
column before the first may hold sums of steps. Where all cells of two rows lie in the bands of all
lanes and there is one channel, these rows go together.

Numba compiles each kernel once for each policy. Sums run in the order of `certified`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...families.elastic.warping import Warping
from ...host import kernel
from ...host.arrays import put
from .cells import Cell, cell_of
from .edits import count_edits
from .lanes import columns_of_rows, lanes_of
from .rows_of_cells import ROWS, fill_rows, has_rows

__all__ = ["block_kernel", "options"]

#: Columns of a strip, as in `dtw`.
_WIDTH = 64


@kernel
def _border_rows(cell, x, edge, radius):
    """Fill the column before the first, in front of which stands D(-1, -1)."""
    zero = edge.dtype.type(0)
    for i in range(min(x.shape[0], radius.max())):
        total = cell.down(x[i, 0], zero, zero)
        for c in range(1, x.shape[1]):
            total += cell.down(x[i, c], zero, zero)
        step = cell.steps(zero, total, zero, 0)[1]
        for lane in range(radius.size):
            if i < radius[lane]:
                edge[i + 1, lane] = step + edge[i, lane]


@kernel
def _border_columns(cell, y, start, w, row, radius):
    """Fill the row above the first of a strip of w columns, in front of which stands one more."""
    zero = row.dtype.type(0)
    for j in range(min(w, radius.max() - start)):
        for lane in range(radius.size):
            total = cell.right(y[start + j, 0, lane], zero, zero)
            for c in range(1, y.shape[1]):
                total += cell.right(y[start + j, c, lane], zero, zero)
            if start + j < radius[lane]:
                row[j + 1, lane] = cell.steps(zero, zero, total, 0)[2] + row[j, lane]


@kernel(inline="always")
def _cell(cell, match, down, right, offset, diagonal, up, left):
    """Value of a cell, by sums of prices and the cells before it."""
    steps = cell.steps(match, down, right, offset)
    best, value = steps[0] + diagonal, steps[1] + up
    best = value if value < best else best
    value = steps[2] + left
    return value if value < best else best


@kernel
def _row_of_cells(cell, x, i, y, j, n_channels, sums, diagonal, above, left):
    """Fill the cells of all lanes in row i and column j: their values go to `left` and `above`."""
    zero = sums.dtype.type(0)
    lanes = sums.shape[1]
    for c in range(n_channels):
        x_before = x[i - 1, c] if i > 0 else zero
        before, point = y[max(j, 1) - 1, c], y[j, c]
        known = zero if j == 0 else sums.dtype.type(1)
        for lane in range(lanes):
            y_before = before[lane] * known
            if n_channels < x.shape[1]:
                # numbers of the series stand in the last channel
                y_own = y[j, n_channels, lane]
                match = cell.match(x[i, c], point[lane], x[i, n_channels], y_own)
                down, right = x[i, n_channels], y_own
            else:
                match = cell.match(x[i, c], point[lane], x_before, y_before)
                down = cell.down(x[i, c], x_before, point[lane])
                right = cell.right(point[lane], y_before, x[i, c])
                if c > 0:
                    down, right = sums[1, lane] + down, sums[2, lane] + right
            sums[0, lane] = match if c == 0 else sums[0, lane] + match
            sums[1, lane], sums[2, lane] = down, right
    for lane in range(lanes):
        value = _cell(
            cell, sums[0, lane], sums[1, lane], sums[2, lane], j - i,
            diagonal[lane], above[lane], left[lane],
        )  # fmt: skip
        diagonal[lane] = left[lane]
        left[lane] = value
        above[lane] = value


@kernel
def _two_rows(cell, x, i, y_before, y, offset, row, j, diagonal, left, other):
    """Fill column j of rows i and i + 1 of all lanes, for series of one channel.

    Of policies that look at the two points alone: LLVM vectorizes no loop over more arrays that may
    overlap. It drops `y_before`, without which it vectorizes edits no more.
    """
    zero = row.dtype.type(0)
    a, b = x[i, 0], x[i + 1, 0]
    before = x[i - 1, 0] if i > 0 else zero
    for lane in range(row.shape[1]):
        q, p = y[lane], y_before[lane]
        up = row[j + 1, lane]
        value = _cell(
            cell, cell.match(a, q, before, p), cell.down(a, before, q), cell.right(q, p, a),
            offset, diagonal[lane], up, left[lane],
        )  # fmt: skip
        following = _cell(
            cell, cell.match(b, q, a, p), cell.down(b, a, q), cell.right(q, p, b),
            offset - 1, left[lane], value, other[lane],
        )  # fmt: skip
        diagonal[lane] = up
        left[lane] = value
        other[lane] = following
        row[j + 1, lane] = following


@kernel
def _two_rows_looking_back(cell, x, i, columns, j, offset, row, diagonal, left):
    """The same of policies that look at the points before, too: in few arrays."""
    zero = row.dtype.type(0)
    a, b = x[i, 0], x[i + 1, 0]
    before = x[i - 1, 0] if i > 0 else zero
    for lane in range(row.shape[1]):
        q, p, up = columns[j + 1, lane], columns[j, lane], row[j + 1, lane]
        value = _cell(
            cell, cell.match(a, q, before, p), cell.down(a, before, q), cell.right(q, p, a),
            offset, diagonal[lane], up, left[0, lane],
        )  # fmt: skip
        following = _cell(
            cell, cell.match(b, q, a, p), cell.down(b, a, q), cell.right(q, p, b),
            offset - 1, left[0, lane], value, left[1, lane],
        )  # fmt: skip
        diagonal[lane] = up
        left[0, lane] = value
        left[1, lane] = following
        row[j + 1, lane] = following


@kernel
def _two_rows_with_numbers(cell, x, i, columns, j, offset, row, diagonal, left):
    """The same where each series has a number: that of a lane stands behind all columns."""
    a, b, own = x[i, 0], x[i + 1, 0], x[i, 1]
    for lane in range(row.shape[1]):
        q, number, up = columns[j + 1, lane], columns[_WIDTH + 1, lane], row[j + 1, lane]
        value = _cell(
            cell, cell.match(a, q, own, number), own, number,
            offset, diagonal[lane], up, left[0, lane],
        )  # fmt: skip
        following = _cell(
            cell, cell.match(b, q, own, number), own, number,
            offset - 1, left[0, lane], value, left[1, lane],
        )  # fmt: skip
        diagonal[lane] = up
        left[0, lane] = value
        left[1, lane] = following
        row[j + 1, lane] = following


@kernel
def _factors(cell, x_own, y_own, size):
    """Factors of a `weighted` policy, by the distance from the diagonal and by lanes."""
    one = y_own.dtype.type(1)
    factors = np.empty((size, y_own.size), y_own.dtype)
    for offset in range(size):
        for lane in range(y_own.size):
            factors[offset, lane] = cell.steps(one, x_own, y_own[lane], offset)[0]
    return factors


@kernel
def _end_row(y_lengths, start, w, free_columns, row, out):
    """Take what the last row of a strip holds of the results."""
    for lane in range(y_lengths.size):
        j = y_lengths[lane] - 1 - start
        if free_columns:
            for k in range(min(j + 1, w)):
                if row[k + 1, lane] < out[lane]:
                    out[lane] = row[k + 1, lane]
        elif 0 <= j < w:
            out[lane] = row[j + 1, lane]


@kernel(inline="always")
def sweep(
    x, y, y_lengths, radius, out, cancel,
    cell, many, own, looks_back, borders, free_columns, free_rows,
):  # fmt: skip
    """Accumulated costs of one series x (n, C) against all lanes of y (m, C, lanes).

    The walk through the cells is one function, as in `dtw.sweep`: a step of it would take all of
    the state of the lanes and most arguments.
    """
    n, lanes = x.shape[0], lanes_of(y)
    n_channels = x.shape[1] - 1 if own is not None else x.shape[1]
    inf, zero = y.dtype.type(np.inf), y.dtype.type(0)
    m = y_lengths.max()
    reach, least_reach = radius.max(), radius.min()
    row = np.empty((_WIDTH + 1, lanes), y.dtype)
    columns = np.empty((_WIDTH + 2, lanes), y.dtype)
    edge = np.empty((n + 1, lanes), y.dtype)
    left = np.empty((ROWS, lanes), y.dtype)
    diagonal, above = np.empty(lanes, y.dtype), np.empty(lanes, y.dtype)
    sums = np.empty((3, lanes), y.dtype)
    column_ends = np.zeros(m, np.uint8)
    for lane in range(lanes):
        columns[_WIDTH + 1, lane] = y[0, y.shape[1] - 1, lane]
        if y_lengths[lane] > 0:
            column_ends[y_lengths[lane] - 1] = 1
    out[:] = inf
    # edge[i + 1] is D(i, start - 1), with the border above the first row in front
    edge[:] = zero if free_rows else inf
    edge[0, :] = 0
    if borders and not free_rows:
        _border_rows(cell, x, edge, radius)
    columns[_WIDTH] = zero
    rows = not free_rows and has_rows(cell)
    factors = row
    if own is not None and rows:
        size = min(max(n, m), reach + ROWS)
        factors = _factors(cell, x[0, n_channels], y[0, n_channels], size)
    for start in range(0, m, _WIDTH):
        if cancel[0]:
            return
        w = min(_WIDTH, m - start)
        first, stop = max(0, start - reach), min(n, start + w + reach)
        put(columns[_WIDTH], columns[0])
        for j in range(w):
            put(y[start + j, 0], columns[j + 1])
        row[:] = zero if free_columns else inf
        put(edge[first], row[0])
        edge[0] = zero if free_columns else inf
        if borders and first == 0 and not free_columns:
            _border_columns(cell, y, start, w, row, radius)
            put(row[w], edge[0])
        i = first
        while i < stop:
            height = ROWS if reach >= ROWS and i + ROWS <= stop else 1
            if not rows:
                height = 2 if i + 1 < stop else 1
            j_first, j_stop, inner_first, inner_stop = columns_of_rows(
                i, height, start, w, reach, least_reach
            )
            if many is not None and not rows:
                inner_stop = 0
            put(row[j_first], diagonal)
            left[:] = inf
            for k in range(height if j_first == 0 else 0):
                put(edge[i + k + 1], left[k])
            put(edge[i + height], row[0])
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
                        cell, x, i, y, start + j, j_next - j, many, height == 1, inner,
                        row, j, diagonal, left, radius, factors,
                    )  # fmt: skip
                    continue
                if free_rows:
                    inner = inner and not column_ends[start + j]
                if inner:
                    offset = start + j - i
                    if own is not None:
                        _two_rows_with_numbers(cell, x, i, columns, j, offset, row, diagonal, left)
                    elif looks_back is not None:
                        _two_rows_looking_back(cell, x, i, columns, j, offset, row, diagonal, left)
                    else:
                        _two_rows(
                            cell, x, i, columns[j], columns[j + 1], offset,
                            row, j, diagonal, left[0], left[1],
                        )  # fmt: skip
                    continue
                for lane in range(lanes):
                    above[lane] = row[j + 1, lane]
                for k in range(height):
                    _row_of_cells(
                        cell, x, i + k, y, start + j, n_channels, sums, diagonal, above, left[k]
                    )
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
                    diagonal[lane], row[j + 1, lane] = row[j + 1, lane], above[lane]
            for k in range(height):
                edge[i + k + 1] = inf
                if j_stop == w:
                    put(left[k], edge[i + k + 1])
            i += height
            if i == n and not free_rows:
                _end_row(y_lengths, start, w, free_columns, row, out)


@kernel
def block_kernel(
    x, x_lengths, y, y_lengths, radius, out, cancel,
    cell, edits, cells, many, own, looks_back, borders, free_columns, free_rows,
):  # fmt: skip
    """Accumulated costs of every row series against every lane, see `dtw.block`."""
    lanes = y.shape[3]
    for group in range(y.shape[0]):
        for i in range(x.shape[0]):
            if edits is not None:
                count_edits(
                    x[i, : x_lengths[i]],
                    y[group],
                    y_lengths[group],
                    radius[min(i, radius.shape[0] - 1), group],
                    out[i, group * lanes : (group + 1) * lanes],
                    cancel,
                    cell,
                    own,
                )
            if cells is not None:
                sweep(
                    x[i, : x_lengths[i]],
                    y[group],
                    y_lengths[group],
                    radius[min(i, radius.shape[0] - 1), group],
                    out[i, group * lanes : (group + 1) * lanes],
                    cancel,
                    cell,
                    many,
                    own,
                    looks_back,
                    borders,
                    free_columns,
                    free_rows,
                )


class Options(NamedTuple):
    """The last arguments of the kernels, in their order."""

    cell: Cell
    # a type for each value of these five, see `dtw.Flags`; one of the first two is None
    edits: bool | None
    cells: bool | None
    many: bool | None
    own: bool | None
    looks_back: bool | None
    borders: bool
    free_columns: bool
    free_rows: bool


def options(warping: Warping, n_channels: int, dtype: type) -> Options:
    """Return the last arguments of `block_kernel` by the options of a distance."""
    cell, alignment = cell_of(warping), warping.alignment
    # sums of steps along borders look at no numbers of the series
    assert cell.edits or not (cell.own and cell.borders)
    if dtype is np.float32:
        cell = cell.single()
    free = alignment == "subsequence", alignment == "supersequence"
    ways = cell.edits or None, not cell.edits or None
    many = not cell.edits and n_channels - cell.own > 1
    return Options(
        cell, *ways, many or None, cell.own or None, cell.looks_back or None, cell.borders, *free
    )
