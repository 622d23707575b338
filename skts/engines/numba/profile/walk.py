"""The walk of covariances over pairs of windows, LANES neighbouring columns side by side.

One row down, the covariance of two windows moves one column right and changes by two products::

    cov(i, j) = cov(i - 1, j - 1) + p_i q_j + r_i s_j

so the covariances of LANES columns, and what the columns need, stay in registers while rows go by
(`descend`): of a row, four numbers are read, and one covariance, which enters at the left. The one
that leaves at the right is written in its place, and enters the columns that follow.

Columns are dealt to vectors in turn, so that one column right is one vector on, and of the last
vector alone the lanes have to be moved; here with three vectors of two lanes::

    entering[i] -> 0  3        vector 0 holds columns 0 and 3
                   1  4        one row down, it is moved into vector 1,
                   2  5        and vector 2, with what enters, into vector 0
                      5 -> entering[i]

Diagonals that hold no admissible pair carry OUTSIDE, of which every score is too small.

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

from ...core.constants import FLOAT32_UNIT

__all__ = [
    "FINITE",
    "LANES",
    "NOTHING",
    "OUTSIDE",
    "SINGLE_LANES",
    "WalkAxis",
    "column_of",
    "descend",
    "lane_of",
    "lowest_bit",
    "narrow",
    "narrow_need",
    "near_lanes",
    "seeds",
    "single_column_of",
    "single_lane_of",
    "widen",
]

#: What a window needs that takes part in nothing, and the weight of what is no window: beyond
#: every score, see above.
#: see "search line" in docs/developer/numerics.rst
NOTHING = 2.0**100
#: The covariance of what is no pair: beyond every score, times every weight.
OUTSIDE = -(2.0**200)
#: Scores are finite numbers: no window that is not finite, and no infinity, ever enters.
FINITE = {"nnan", "ninf", "nsz", "contract"}
#: Columns that are walked side by side, and how many of them are one vector of the compiler's.
LANES = 32
VECTOR = 8
VECTORS = LANES // VECTOR
#: The same in single precision: as many vectors, each of twice as many columns.
SINGLE_LANES = 2 * LANES
#: What takes the place of NOTHING and OUTSIDE in single precision, and what covariances never are.
SINGLE_NOTHING = 2.0**60
SINGLE_OUTSIDE = -(2.0**90)
FAR_OUTSIDE = -(2.0**80)
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


def _emit_descend(module, both, product, single):
    """Emit the loop of `descend`, as a function of its own: its parts share the registers.

    Only the terms of the compiler keep so much in registers.
    """
    index, word = ir.IntType(64), ir.IntType(32)
    number, size, n_lanes = (
        (ir.FloatType(), 16, SINGLE_LANES) if single else (ir.DoubleType(), VECTOR, LANES)
    )
    # of the same bits
    integer = word if single else index
    vector, integers = ir.VectorType(number, size), ir.VectorType(integer, size)
    kind = ir.FunctionType(index, [number.as_pointer()] * 10 + [index] * 2)
    name = f"skts_descend_{both:d}{product:d}{single:d}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    covariance, entrance, *fields, row, stop = function.args
    flags = ("nnan", "ninf", "contract")
    before, loop, done = (function.append_basic_block(name) for name in ("begin", "row", "done"))
    builder = ir.IRBuilder(before)

    def pointer(data, lane):
        return builder.bitcast(builder.gep(data, [index(lane)]), vector.as_pointer())

    def load(data):
        return [builder.load(pointer(data, lane), align=4) for lane in range(0, n_lanes, size)]

    def spread(data):
        value = builder.load(builder.gep(data, [i]))
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, word(0))
        zeros = ir.Constant(ir.VectorType(word, size), [0] * size)
        return builder.shuffle_vector(one, one, zeros)

    def scored(value, weight):
        combine = builder.fmul if product else builder.fadd
        return combine(value, weight, flags=flags)

    begin = load(covariance)
    lead, trail, weight, need = map(load, fields[4:])
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(index)
    held = [builder.phi(vector) for _ in begin]
    # the covariance that enters, then all of the last vector but its end
    moved = ir.Constant(ir.VectorType(word, size), list(range(size - 1, 2 * size - 1)))
    from_left = [builder.shuffle_vector(spread(entrance), held[-1], moved), *held[:-1]]
    leaving = builder.extract_element(held[-1], word(size - 1))
    builder.store(leaving, builder.gep(entrance, [i]))
    p_i, r_i, w_i, need_i = map(spread, fields[:4])
    ends, far = [], None
    for at, end in enumerate(from_left):
        end = builder.fadd(end, builder.fmul(r_i, trail[at], flags=flags), flags=flags)
        end = builder.fadd(end, builder.fmul(p_i, lead[at], flags=flags), flags=flags)
        ends.append(end)
        # by how much the score exceeds what the row, and the column, needs
        beyond = [builder.fsub(scored(end, weight[at]), need_i, flags=flags)]
        if both:
            beyond.append(builder.fsub(scored(end, w_i), need[at], flags=flags))
        # the sign of all of them is set only where all are negative
        for sign in (builder.bitcast(value, integers) for value in beyond):
            far = sign if far is None else builder.and_(far, sign)
    far = builder.icmp_signed("<", far, ir.Constant(integers, [0] * size))
    far = builder.bitcast(far, ir.IntType(size))
    near = builder.icmp_unsigned("!=", far, ir.IntType(size)(-1))
    following = builder.add(i, index(1))
    last = builder.icmp_signed(">=", following, stop)
    builder.cbranch(builder.or_(near, last), done, loop)
    for value, first, after in zip([i, *held], [row, *begin], [following, *ends], strict=True):
        value.add_incoming(first, before)
        value.add_incoming(after, loop)
    builder.position_at_end(done)
    for at, end in enumerate(ends):
        builder.store(end, pointer(covariance, at * size), align=4)
    # the row, and whether it is one to look at, in one number
    found = builder.shl(following, index(1))
    builder.ret(builder.or_(found, builder.zext(near, index)))
    return function


@intrinsic
def descend(typing_context, cov, entering, rows, columns, row, stop, left, both, normalize):
    """Walk columns from a row on, until a row holds a pair that may be near.

    LANES columns of numbers in double precision, SINGLE_LANES in single precision.

    `cov` holds the covariances of the row before, `entering` what enters each row at the left and,
    in its place, receives what leaves at the right. `rows` and `columns` are `WalkAxis`; the places
    of columns, also of `cov`, are those of `lane_of` or `single_lane_of`, from `left` on. Without
    `both` (None), what columns need is not looked at. Returns the row after the last one done, and
    whether that last row is one to look at.
    """
    same = rows.instance_class is columns.instance_class is WalkAxis
    if not (isinstance(cov, Array) and isinstance(entering, Array) and same):
        return None
    place = types.int64
    signature = types.Tuple((types.int64, types.boolean))(
        cov, entering, rows, columns, place, place, place, both, normalize
    )

    def codegen(context, builder, signature, args):
        kinds, arrays = list(signature.args[:2]), list(args[:2])
        for kind, value in zip(signature.args[2:4], args[2:4], strict=True):
            kinds += kind.types
            arrays += cgutils.unpack_tuple(builder, value)
        # in the order of covariances, of what enters, then of the fields of rows and of columns
        data = [
            make_array(kind)(context, builder, value).data
            for kind, value in zip(kinds, arrays, strict=True)
        ]
        row, stop, left = args[4:7]
        data[6:] = [builder.gep(one, [left]) for one in data[6:]]
        both, product = (not isinstance(kind, types.NoneType) for kind in signature.args[7:])
        single = signature.args[0].dtype == types.float32
        function = _emit_descend(builder.module, both, product, single)
        found = builder.call(function, [*data, row, stop])
        one = found.type(1)
        return context.make_tuple(
            builder,
            signature.return_type,
            [builder.ashr(found, one), builder.trunc(found, ir.IntType(1))],
        )

    return signature, codegen


def _emit_near(module, product, single):
    """Emit which lanes of a row score what they need, or what the row needs, as bits."""
    index, word = ir.IntType(64), ir.IntType(32)
    number, size, n_lanes = (
        (ir.FloatType(), 16, SINGLE_LANES) if single else (ir.DoubleType(), VECTOR, LANES)
    )
    vector, data = ir.VectorType(number, size), number.as_pointer()
    name = f"skts_near_{product:d}{single:d}"
    if name in module.globals:
        return module.globals[name]
    pair = ir.LiteralStructType([index, index])
    function = ir.Function(module, ir.FunctionType(pair, [data] * 5 + [index]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    covariance, row_weight, row_need, weight, need, row = function.args
    builder = ir.IRBuilder(function.append_basic_block("begin"))
    flags = ("nnan", "ninf", "contract")

    def load(data, lane):
        place = builder.gep(data, [index(lane)])
        return builder.load(builder.bitcast(place, vector.as_pointer()), align=4)

    def spread(data):
        value = builder.load(builder.gep(data, [row]))
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, word(0))
        zeros = ir.Constant(ir.VectorType(word, size), [0] * size)
        return builder.shuffle_vector(one, one, zeros)

    combine = builder.fmul if product else builder.fadd
    weight_i, need_i = spread(row_weight), spread(row_need)
    found = [index(0), index(0)]
    for lane in range(0, n_lanes, size):
        value = load(covariance, lane)
        for side, (factor, least) in enumerate(
            ((load(weight, lane), need_i), (weight_i, load(need, lane)))
        ):
            # as the walk compares them
            beyond = builder.fsub(combine(value, factor, flags=flags), least, flags=flags)
            near = builder.fcmp_ordered(">=", beyond, ir.Constant(vector, [0.0] * size))
            bits = builder.zext(builder.bitcast(near, ir.IntType(size)), index)
            found[side] = builder.or_(found[side], builder.shl(bits, index(lane)))
    both = builder.insert_value(ir.Constant(pair, ir.Undefined), found[0], 0)
    builder.ret(builder.insert_value(both, found[1], 1))
    return function


@intrinsic
def near_lanes(typing_context, cov, rows, columns, row, left, normalize):
    """Say which of the columns that `descend` has walked are near in its last row, as bits.

    Bit t stands for lane t: of the first number where the score is what the row needs, of the
    second where it is what the column needs.
    """
    place = types.int64
    signature = types.UniTuple(types.int64, 2)(cov, rows, columns, place, place, normalize)

    def codegen(context, builder, signature, args):
        def data(kind, value):
            return make_array(kind)(context, builder, value).data

        def fields(at):
            kinds, values = signature.args[at].types, cgutils.unpack_tuple(builder, args[at])
            both = list(zip(kinds, values, strict=True))[2:]
            return [data(*one) for one in both]

        product = not isinstance(signature.args[5], types.NoneType)
        single = signature.args[0].dtype == types.float32
        function = _emit_near(builder.module, product, single)
        columns = [builder.gep(one, [args[4]]) for one in fields(2)]
        given = [data(signature.args[0], args[0]), *fields(1), *columns, args[3]]
        found = builder.call(function, given)
        both = [builder.extract_value(found, at) for at in range(2)]
        return context.make_tuple(builder, signature.return_type, both)

    return signature, codegen


@intrinsic
def lowest_bit(typing_context, bits):
    """Place of the lowest bit of a number that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def lane_of(column):
    """Return the place of a column, of many groups of columns that are dealt to vectors."""
    within = column % LANES
    return column - within + within % VECTORS * VECTOR + within // VECTORS


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def column_of(lane):
    """Return the column in a place: what `lane_of` takes back."""
    within = lane % LANES
    return lane - within + within % VECTOR * VECTORS + within // VECTOR


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def single_lane_of(column):
    """Return the place of a column, as `lane_of` does, among columns in single precision."""
    within = column % SINGLE_LANES
    return column - within + within % VECTORS * (SINGLE_LANES // VECTORS) + within // VECTORS


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def single_column_of(lane):
    """Return the column in a place in single precision: what `single_lane_of` takes back."""
    within = lane % SINGLE_LANES
    size = SINGLE_LANES // VECTORS
    return lane - within + within % size * VECTORS + within // size


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def widen(covariance):
    """Return a covariance in single precision in double precision."""
    return np.float64(covariance) if covariance > FAR_OUTSIDE else OUTSIDE


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def narrow(covariance):
    """Return a covariance in double precision in single precision."""
    return np.float32(max(covariance, SINGLE_OUTSIDE))


@njit(nogil=True, cache=True, error_model="numpy", forceinline=True)
def narrow_need(need):
    """Return a needed score in single precision, not above what it was."""
    need = min(max(need, -SINGLE_NOTHING), SINGLE_NOTHING)
    # see "single precision" in docs/developer/numerics.rst
    return np.float32(need - abs(need) * 4 * FLOAT32_UNIT)


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
