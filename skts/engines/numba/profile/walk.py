"""The walk of covariances over pairs of windows, LANES neighbouring diagonals side by side.

One row down, the covariance of two windows moves one column right and changes by two products::

    cov(i, j) = cov(i - 1, j - 1) + p_i q_j + r_i s_j

so the covariances of LANES diagonals stay in registers while they go down together (`descend`).

A covariance c is scored twice: as ``c (x) w_j`` among the columns of its row and as ``c (x) w_i``
among the rows of its column, where (x) is a product for z-normalised windows and a sum for
windows as they are.

A walk is along a line no point of which is larger than 1 (`SearchLine`), and the range of each
window that it serves is at least 2^-31. So no covariance exceeds ``length`` by more than rounding,
no weight 2^32 (or 4 length, for windows as they are), and no score length 2^33: far below NOTHING,
what a window needs that takes part in nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.types import Array
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = [
    "FINITE",
    "LANES",
    "NOTHING",
    "WalkAxis",
    "best_in_columns",
    "best_in_row",
    "descend",
    "record",
    "seeds",
]

#: What a window needs that takes part in nothing, and the weight of what is no window: beyond
#: every score, see above.
#: see "search line" in docs/developer/numerics.rst
NOTHING = 2.0**100
#: Scores are finite numbers: no window that is not finite, and no infinity, ever enters.
FINITE = {"nnan", "ninf", "nsz", "contract"}
#: Diagonals that go down together, and how many of them are one vector of the compiler's.
LANES = 32
VECTOR = 8
#: Windows whose seeds are computed together: their sums stay in the first-level cache.
SEEDS = 512


class WalkAxis(NamedTuple):
    """Arrays that a walk reads along one of its axes.

    Attributes
    ----------
    lead, trail : ndarray, float64
        The two factors of the step that leads to a window: p and r of rows, q and s of columns.
    weight : ndarray, float64
        Weights of the windows.
    needed : ndarray, float64
        Scores from which on a pair may be near to a window.
    """

    lead: np.ndarray
    trail: np.ndarray
    weight: np.ndarray
    needed: np.ndarray


@intrinsic
def descend(typing_context, cov, rows, columns, row, stop, shift, both, normalize):
    """Go down LANES diagonals, from a row on, until a row holds a pair that may be near.

    Lane l of row i is in column ``i + shift + l``. Its covariance ``cov[l]`` is that of the row
    before; `rows` and `columns` are `WalkAxis`. Without `both` (None), what columns need is not
    looked at. Returns the row after the last one done, and whether that last row is one to look at.

    It is one function, as it is one loop, which only the terms of the compiler keep in registers.
    """
    if not (isinstance(cov, Array) and rows.instance_class is columns.instance_class is WalkAxis):
        return None
    place = types.int64
    signature = types.Tuple((types.int64, types.boolean))(
        cov, rows, columns, place, place, place, both, normalize
    )

    def codegen(context, builder, signature, args):
        """Emit the loop; one function, since its parts share the registers."""
        double, index = ir.DoubleType(), ir.IntType(64)
        vector = ir.VectorType(double, VECTOR)
        flags = tuple(FINITE)
        kinds, arrays = [signature.args[0]], [args[0]]
        for kind, value in zip(signature.args[1:3], args[1:3], strict=True):
            kinds += kind.types
            arrays += cgutils.unpack_tuple(builder, value)
        # in the order of covariances, then of the fields of rows and of columns
        data = [
            make_array(kind)(context, builder, value).data
            for kind, value in zip(kinds, arrays, strict=True)
        ]
        row, stop, shift = args[3:6]
        both, product = (not isinstance(kind, types.NoneType) for kind in signature.args[6:])
        maximum = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector, vector]), f"llvm.maxnum.v{VECTOR}f64"
        )

        def pointer(array, at):
            return builder.bitcast(builder.gep(data[array], [at]), vector.as_pointer())

        def at_row(array, at):
            value = builder.load(builder.gep(data[array], [at]))
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0)
            )
            return builder.shuffle_vector(
                one, one, ir.Constant(ir.VectorType(ir.IntType(32), VECTOR), [0] * VECTOR)
            )

        def at_column(array, at):
            return builder.load(pointer(array, at), align=8)

        def scored(value, weight):
            combine = builder.fmul if product else builder.fadd
            return combine(value, weight, flags=flags)

        lanes = range(0, LANES, VECTOR)
        begin = [builder.load(pointer(0, index(lane)), align=8) for lane in lanes]
        before = builder.block
        loop = builder.append_basic_block("row")
        done = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(index)
        covariances = [builder.phi(vector) for _ in lanes]
        i.add_incoming(row, before)
        p_i, r_i, w_i, need_i = (at_row(array, i) for array in (1, 2, 3, 4))
        column = builder.add(i, shift)
        most, ends = None, []
        for lane, covariance in zip(lanes, covariances, strict=True):
            j = builder.add(column, index(lane))
            step = builder.fmul(r_i, at_column(6, j), flags=flags)
            end = builder.fadd(covariance, step, flags=flags)
            step = builder.fmul(p_i, at_column(5, j), flags=flags)
            end = builder.fadd(end, step, flags=flags)
            ends.append(end)
            # by how much the score exceeds what the row, and the column, needs
            beyond = [builder.fsub(scored(end, at_column(7, j)), need_i, flags=flags)]
            if both:
                beyond.append(builder.fsub(scored(end, w_i), at_column(8, j), flags=flags))
            for one in beyond:
                most = (
                    one
                    if most is None
                    else builder.call(maximum, [most, one], fastmath=("nnan", "nsz"))
                )
        near = builder.fcmp_ordered(">=", most, ir.Constant(vector, [0.0] * VECTOR))
        near = builder.icmp_unsigned(
            "!=", builder.bitcast(near, ir.IntType(VECTOR)), ir.IntType(VECTOR)(0)
        )
        following = builder.add(i, index(1))
        last = builder.icmp_signed(">=", following, stop)
        after = builder.block
        i.add_incoming(following, after)
        for covariance, first, end in zip(covariances, begin, ends, strict=True):
            covariance.add_incoming(first, before)
            covariance.add_incoming(end, after)
        builder.cbranch(builder.or_(near, last), done, loop)
        builder.position_at_end(done)
        for lane, end in zip(lanes, ends, strict=True):
            builder.store(end, pointer(0, index(lane)), align=8)
        return context.make_tuple(
            builder, signature.return_type, [following, builder.zext(near, ir.IntType(1))]
        )

    return signature, codegen


@intrinsic
def larger(typing_context, a, b):
    """The larger of two numbers that are not NaN, in one instruction that vectorises."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = "llvm.maxnum.f64" if isinstance(kind, ir.DoubleType) else "llvm.maxnum.f32"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind, kind]), name
        )
        return builder.call(function, args, fastmath=("nnan", "nsz"))

    return a(a, b), codegen


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def record(held, rows, p, r, q, s):
    """Go down some rows from the first, keeping the covariances of all."""
    for u in range(1, rows):
        p_u, r_u, q_u, s_u = p[u], r[u], q[u : u + LANES], s[u : u + LANES]
        before, after = held[u - 1], held[u]
        for lane in range(LANES):
            after[lane] = before[lane] + p_u * q_u[lane] + r_u * s_u[lane]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def best_in_row(cov, weight, scores, normalize):
    """Score the pairs of a row by the weights of their columns; return the best."""
    most = -NOTHING
    for lane in range(LANES):
        score = cov[lane] * weight[lane] if normalize is not None else cov[lane] + weight[lane]
        scores[lane] = score
        most = larger(score, most)
    return most


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def best_in_columns(held, rows, weight, best, normalize):
    """The best score of columns by the weights of some rows."""
    best[:] = -NOTHING
    for u in range(rows):
        cov, mine, weight_u = held[u], best[u : u + LANES], weight[u]
        for lane in range(LANES):
            score = cov[lane] * weight_u if normalize is not None else cov[lane] + weight_u
            mine[lane] = larger(score, mine[lane])


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def seeds(points, start, center, window, out):
    """Products of a centred window with the windows of a line from `start` on.

    Of SEEDS windows at a time, eight points of each in one pass over their sums: those lie in
    memory, which the compiler cannot know to be apart from the line.
    """
    length = window.size
    line = np.empty(min(out.size, SEEDS) + length - 1)
    for first in range(0, out.size, SEEDS):
        count = min(SEEDS, out.size - first)
        sums = out[first : first + count]
        sums[:] = 0.0
        for i in range(count + length - 1):
            line[i] = points[start + first + i] - center
        for t in range(0, length - 7, 8):
            x, w = line[t : t + count + 7], window[t : t + 8]
            a, b, c, d, e, f, g, h = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
            for j in range(count):
                some = a * x[j] + b * x[j + 1] + c * x[j + 2] + d * x[j + 3]
                some += e * x[j + 4] + f * x[j + 5] + g * x[j + 6] + h * x[j + 7]
                sums[j] += some
        for t in range(length // 8 * 8, length):
            for j in range(count):
                sums[j] += window[t] * line[t + j]
