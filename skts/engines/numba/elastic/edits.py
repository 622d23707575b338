"""Edits counted 64 cells at a time: LCSS and EDR, whose steps cost 0, 1 or 2.

Neighbouring cells differ by whole numbers that fit into a bit or two, so that a word holds the
differences along 64 rows of a column, and a few operations on words lead from a column to the next
(Myers for edits with replacements, Hyyrö for common subsequences). Which of 64 points match the
point of a column is one comparison of vectors. Rows go in blocks of a word; a block hands the
differences along its last row on to the block below. A band that fits into a word is one word that
moves down by one row from column to column.

::

    D(i,j) - D(i-1,j-1) is 0 or the price of a replacement; the sum of these along the diagonal that
    ends in the last cell, from the border on, is the accumulated cost less what the border costs.

A cell outside of the band is infinite. No cell sees a difference between that and a step along
the border of the band that costs most: so the row above the first of the band costs one step more
in each column, and rows that enter the band begin with one step more than the row above.

References
----------
Myers. "A fast bit-vector algorithm for approximate string matching based on dynamic programming".
Journal of the ACM 46, 1999.
Hyyrö. "Bit-parallel LCS-length computation revisited". AWOCA 2004.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from ...host import kernel

__all__ = ["count_edits"]

#: Rows of a block, one bit of a word each.
WORD = 64


def _matches(rows: Any, c: int, first: int, point: Any, limit: Any) -> Any:
    """Which of WORD points of channel c differ from another one by no more than a limit."""
    differ = np.abs(rows[c, first : first + WORD] - point) > limit
    return np.packbits(~differ, bitorder="little").view(np.int64)[0]


@intrinsic
def _compare(typing_context, rows, c, first, point, limit):
    """As `_matches`."""
    signature = types.int64(rows, types.int64, types.int64, rows.dtype, rows.dtype)

    def codegen(context, builder, signature, args):
        number = args[3].type
        vector, word = ir.VectorType(number, WORD), ir.IntType(32)

        def spread(value):
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, word(0))
            zeros = ir.Constant(ir.VectorType(word, WORD), [0] * WORD)
            return builder.shuffle_vector(one, one, zeros)

        kind = 32 if signature.args[3] == types.float32 else 64
        magnitude = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector]), f"llvm.fabs.v{WORD}f{kind}"
        )
        array = context.make_array(signature.args[0])(context, builder, args[0])
        length = cgutils.unpack_tuple(builder, array.shape)[1]
        at = builder.add(builder.mul(args[1], length), args[2])
        place = builder.bitcast(builder.gep(array.data, [at]), vector.as_pointer())
        points = builder.load(place, align=4)
        apart = builder.call(magnitude, [builder.fsub(points, spread(args[3]))])
        near = builder.fcmp_unordered("<=", apart, spread(args[4]))
        return builder.bitcast(near, ir.IntType(64))

    return signature, codegen


@overload(_matches)
def _matches_compiled(rows, c, first, point, limit):
    return lambda rows, c, first, point, limit: _compare(rows, c, first, point, limit)


@kernel(inline="always")
def _matching(rows, base, columns, j, limit):
    """Bits of WORD rows from `base` on that match column j in all channels."""
    found = np.int64(-1)
    for c in range(rows.shape[0]):
        found &= _matches(rows, c, base + WORD, columns[c, j], limit)
    return found


@kernel
def _replacements(rows, base, n, columns, m, radius, limit, entering):
    """Replacements along the last diagonal in the block of rows from `base` on.

    entering: (2, m) differences along the row above the block, of which bit 0 of one number says
    that they are 1, and of the other that they are -1; receives those along the last row.
    """
    total = 0
    # which differences along a column are 1, and which are -1
    more, less = np.int64(-1), np.int64(0)
    for j in range(max(0, base - radius), min(m, base + WORD + radius)):
        equal = _matching(rows, base, columns, j, limit)
        rising, falling = entering[0, j], entering[1, j]
        row = j + radius - base
        if row < WORD:
            # this row enters the band
            fresh = np.int64(-1) << row
            more |= fresh
            less &= ~fresh
        row = j - radius - base
        if row >= 0:
            # from this row on cells are in the band
            inside = np.int64(-1) << row
            equal &= inside
            more &= inside
            less &= inside
            rising, falling = np.int64(1), np.int64(0)
        beside = equal | less
        equal |= falling
        same = (((equal & more) + more) ^ more) | equal
        up = less | ~(same | more)
        down = more & same
        entering[0, j], entering[1, j] = (up >> 63) & 1, (down >> 63) & 1
        row = j - (m - n) - base
        if 0 <= row < WORD:
            total += 1 - (((same | less) >> row) & 1)
        up = (up << 1) | rising
        more = (down << 1) | falling | ~(beside | up)
        less = up & beside
    return total


@kernel
def _omissions(rows, base, n, columns, m, radius, limit, entering):
    """Cells along the last diagonal in a block whose common subsequence is no longer than before.

    As `_replacements`; differences of the lengths of common subsequences are 0 or 1.
    """
    total = 0
    # which differences along a column are 0
    equal = np.int64(-1)
    for j in range(max(0, base - radius), min(m, base + WORD + radius)):
        match = _matching(rows, base, columns, j, limit)
        rising = entering[1, j]
        row = j + radius - base
        if row < WORD:
            equal |= np.int64(-1) << row
        row = j - radius - base
        if row >= 0:
            equal &= np.int64(-1) << row
            rising = np.int64(0)
        both = equal & match
        found = equal + both + rising
        entering[1, j] = ((both | (equal & ~found)) >> 63) & 1
        after = found | (equal & ~match)
        row = j - (m - n) - base
        if 0 <= row < WORD:
            total += 1 - ((((found ^ equal ^ both) | ~after) >> row) & 1)
        equal = after
    return total


@kernel
def _narrow_replacements(rows, n, columns, m, radius, limit):
    """As `_replacements`, of all rows, in a band that fits into a word.

    Bit b stands for row j - radius + b of column j.
    """
    total, place = 0, n - m + radius
    # all rows from this bit on enter the band with the next column
    fresh = np.int64(-1) << (2 * radius)
    more, less = np.int64(-1) << radius, np.int64(0)
    for j in range(m):
        equal = _matching(rows, j - radius, columns, j, limit)
        if j < radius:
            equal &= np.int64(-1) << (radius - j)
        same = (((equal & more) + more) ^ more) | equal | less
        up = less | ~(same | more)
        down = more & same
        if j >= m - n:
            total += 1 - ((same >> place) & 1)
        same >>= 1
        more = down | ~(same | up) | fresh
        less = up & same & ~fresh
    return total


@kernel
def _narrow_omissions(rows, n, columns, m, radius, limit):
    """As `_omissions`, of all rows, in a band that fits into a word."""
    total, place = 0, n - m + radius
    fresh, equal = np.int64(-1) << (2 * radius), np.int64(-1) << radius
    for j in range(m):
        match = _matching(rows, j - radius, columns, j, limit)
        both = equal & match
        found = equal + both
        after = found | (equal & ~match)
        if j >= m - n:
            total += 1 - ((((found ^ equal ^ both) | ~after) >> place) & 1)
        equal = (after >> 1) | fresh
    return total


@kernel
def count_edits(x, y, y_lengths, radius, out, cancel, cell, own):
    """Accumulated costs of one series and of those in all lanes, as `uneven.sweep`.

    Parameters
    ----------
    x : ndarray of shape (n, n_channels)
        The series of the rows; with `own` its last channel holds a number of the series.
    y : ndarray of shape (m, n_channels, lanes)
        Those of the columns.
    y_lengths, radius : ndarray of shape (lanes,)
        Their lengths, 0 where there is none, and half widths of the bands.
    out : ndarray of shape (lanes,)
        Receives the costs.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    cell : Cell
        A policy that counts edits.
    own : bool or None
        Whether it looks at the numbers of the series.
    """
    n = x.shape[0]
    n_channels = x.shape[1] - 1 if own is not None else x.shape[1]
    # some points more on both sides, which are not looked at
    rows = np.zeros((n_channels, n + 2 * WORD), x.dtype)
    for i in range(n):
        for c in range(n_channels):
            rows[c, i + WORD] = x[i, c]
    columns = np.empty((n_channels, y.shape[0]), y.dtype)
    entering = np.empty((2, y.shape[0]), np.int64)
    for lane in range(y.shape[2]):
        if cancel[0]:
            return
        m = y_lengths[lane]
        for j in range(m):
            for c in range(n_channels):
                columns[c, j] = y[j, c, lane]
        reach = radius[lane]
        limit = cell.limit(x[0, x.shape[1] - 1], y[0, y.shape[1] - 1, lane])
        total = 0
        if 2 * reach < WORD:
            if cell.replacement > 1:
                total = 2 * _narrow_omissions(rows, n, columns, m, reach, limit)
            else:
                total = _narrow_replacements(rows, n, columns, m, reach, limit)
        else:
            # above the first row each step costs 1, and nothing is common
            entering[0] = 1
            entering[1] = 0
            for base in range(0, n if m > 0 else 0, WORD):
                if cancel[0]:
                    return
                given = rows, base, n, columns, m, reach, limit, entering
                if cell.replacement > 1:
                    total += 2 * _omissions(*given)
                else:
                    total += _replacements(*given)
        out[lane] = abs(n - m) + total if m > 0 else np.inf
