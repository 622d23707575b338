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
from numba import types
from numba.core import cgutils
from numba.core.types import Array
from numba.extending import intrinsic

from ...core.constants import FLOAT32_UNIT
from ...host import kernel

__all__ = [
    "FINITE",
    "LANES",
    "NOTHING",
    "OUTSIDE",
    "SINGLE_LANES",
    "WalkAxis",
    "climb",
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


class _Lanes:
    """Terms of the compiler about vectors of lanes, within a function that is being built."""

    def __init__(self, product, single):
        self.index, self.word = ir.IntType(64), ir.IntType(32)
        self.number, self.size, self.n_lanes = (
            (ir.FloatType(), 16, SINGLE_LANES) if single else (ir.DoubleType(), VECTOR, LANES)
        )
        self.product, self.name = product, f"{product:d}{single:d}"
        self.data, self.vector = self.number.as_pointer(), ir.VectorType(self.number, self.size)
        self.flags = ("nnan", "ninf", "contract")
        self.builder = None

    def function(self, module, name, result, n_arrays, n_numbers):
        """Return a function of arrays and integers; a new one has a builder of its first block."""
        name = f"skts_{name}_{self.name}"
        if name in module.globals:
            return module.globals[name], False
        kind = ir.FunctionType(result, [self.data] * n_arrays + [self.index] * n_numbers)
        function = ir.Function(module, kind, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        self.builder = ir.IRBuilder(function.append_basic_block("begin"))
        return function, True

    def begins(self):
        """Return the first lanes of vectors."""
        return range(0, self.n_lanes, self.size)

    def place(self, data, at):
        """Return where a vector lies, `at` numbers behind a pointer."""
        at = at if isinstance(at, ir.Value) else self.index(at)
        return self.builder.bitcast(self.builder.gep(data, [at]), self.vector.as_pointer())

    def load(self, data):
        """Return the vectors of all lanes."""
        return [self.builder.load(self.place(data, lane), align=4) for lane in self.begins()]

    def store(self, vectors, data, first=0):
        """Write the vectors of all lanes, from the first number on."""
        for lane, value in zip(self.begins(), vectors, strict=True):
            at = self.builder.add(first, self.index(lane)) if first else lane
            self.builder.store(value, self.place(data, at), align=4)

    def spread(self, data, row):
        """Return the number of a row in all lanes of a vector."""
        value = self.builder.load(self.builder.gep(data, [row]))
        none = ir.Constant(self.vector, ir.Undefined)
        one = self.builder.insert_element(none, value, self.word(0))
        zeros = ir.Constant(ir.VectorType(self.word, self.size), [0] * self.size)
        return self.builder.shuffle_vector(one, one, zeros)

    def scored(self, value, weight):
        """Score covariances by weights."""
        combine = self.builder.fmul if self.product else self.builder.fadd
        return combine(value, weight, flags=self.flags)

    def step(self, held, entrance, rows, columns, row):
        """Return covariances one row down, where one enters at the left; write what leaves."""
        builder, size = self.builder, self.size
        # the covariance that enters, then all of the last vector but its end
        moved = ir.Constant(ir.VectorType(self.word, size), list(range(size - 1, 2 * size - 1)))
        first = builder.shuffle_vector(self.spread(entrance, row), held[-1], moved)
        leaving = builder.extract_element(held[-1], self.word(size - 1))
        builder.store(leaving, builder.gep(entrance, [row]))
        lead_of_row, trail_of_row = (self.spread(field, row) for field in rows[:2])
        ends = []
        for value, lead, trail in zip([first, *held[:-1]], *columns[:2], strict=True):
            end = builder.fmul(trail_of_row, trail, flags=self.flags)
            end = builder.fadd(value, end, flags=self.flags)
            more = builder.fmul(lead_of_row, lead, flags=self.flags)
            ends.append(builder.fadd(end, more, flags=self.flags))
        return ends

    def at_least(self, scores, needs):
        """Return of which lanes scores are at least what is needed, as bits."""
        builder, found = self.builder, self.index(0)
        for lane, score, need in zip(self.begins(), scores, needs, strict=True):
            # as the walk compares them
            beyond = builder.fsub(score, need, flags=self.flags)
            zero = ir.Constant(self.vector, [0.0] * self.size)
            near = builder.bitcast(builder.fcmp_ordered(">=", beyond, zero), ir.IntType(self.size))
            bits = builder.shl(builder.zext(near, self.index), self.index(lane))
            found = builder.or_(found, bits)
        return found


def _emit_near(module, product, single):
    """Emit which lanes of a row score what they need, or what the row needs, as bits."""
    lanes = _Lanes(product, single)
    pair = ir.LiteralStructType([lanes.index, lanes.index])
    function, new = lanes.function(module, "near", pair, 5, 1)
    if not new:
        return function
    covariance, row_weight, row_need, weight, need, row = function.args
    values, weights, needs = map(lanes.load, (covariance, weight, need))
    weight, need = (lanes.spread(data, row) for data in (row_weight, row_need))
    found = ir.Constant(pair, ir.Undefined)
    of_row = [lanes.scored(*one) for one in zip(values, weights, strict=True)]
    of_columns = [lanes.scored(value, weight) for value in values]
    for at, (scores, least) in enumerate(((of_row, [need] * len(needs)), (of_columns, needs))):
        found = lanes.builder.insert_value(found, lanes.at_least(scores, least), at)
    lanes.builder.ret(found)
    return function


def _emit_descend(module, both, product, single):
    """Emit the loop of `descend`, as a function of its own: its parts share the registers.

    Only the terms of the compiler keep so much in registers.
    """
    near_lanes = _emit_near(module, product, single)
    lanes = _Lanes(product, single)
    index, size = lanes.index, lanes.size
    result = ir.LiteralStructType([index] * 3)
    function, new = lanes.function(module, f"descend_{both:d}", result, 10, 3)
    if not new:
        return function
    covariance, entrance, *fields, at, row, stop = function.args
    # of the same bits
    integers = ir.VectorType(lanes.word if single else index, size)
    builder, before = lanes.builder, lanes.builder.block
    loop, done = (function.append_basic_block(name) for name in ("row", "done"))
    begin = lanes.load(builder.gep(covariance, [at]))
    columns = [lanes.load(field) for field in fields[4:]]
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(index)
    held = [builder.phi(lanes.vector) for _ in begin]
    ends = lanes.step(held, entrance, fields[:4], columns, i)
    w_i, need_i = (lanes.spread(field, i) for field in fields[2:4])
    far = None
    for end, weight, need in zip(ends, *columns[2:], strict=True):
        # by how much the score exceeds what the row, and the column, needs
        beyond = [builder.fsub(lanes.scored(end, weight), need_i, flags=lanes.flags)]
        if both:
            beyond.append(builder.fsub(lanes.scored(end, w_i), need, flags=lanes.flags))
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
    lanes.store(ends, covariance)
    found = builder.insert_value(ir.Constant(result, [index(0)] * 3), following, 0)
    with builder.if_then(builder.not_(near)):
        builder.ret(found)
    # in a function of its own: what it compares would be kept for it by each row of the loop
    bits = builder.call(near_lanes, [covariance, *fields[2:4], *fields[6:], i])
    for side in range(2 if both else 1):
        found = builder.insert_value(found, builder.extract_value(bits, side), side + 1)
    builder.ret(found)
    return function


def _data(context, builder, signature, args, left):
    """Return where the numbers of arrays lie, in the order of a walk's arguments.

    Covariances, what enters, the fields of rows, and those of columns, from `left` on.
    """
    kinds, arrays = list(signature.args[:2]), list(args[:2])
    for kind, value in zip(signature.args[2:4], args[2:4], strict=True):
        kinds += kind.types
        arrays += cgutils.unpack_tuple(builder, value)
    data = [
        context.make_array(kind)(context, builder, value).data
        for kind, value in zip(kinds, arrays, strict=True)
    ]
    return [*data[:6], *(builder.gep(one, [left]) for one in data[6:])]


@intrinsic
def descend(typing_context, cov, entering, rows, columns, at, row, stop, left, both, normalize):
    """Walk columns from a row on, until a row holds a pair that may be near.

    LANES columns of numbers in double precision, SINGLE_LANES in single precision.

    `cov` holds the covariances of the row before, from `at` on, and receives those of the last row,
    from 0 on. `entering` holds what enters each row at the left and, in its place, receives what
    leaves at the right. `rows` and `columns` are `WalkAxis`; the places of columns, also of `cov`,
    are those of `lane_of` or `single_lane_of`, from `left` on. Without `both` (None), what columns
    need is not looked at. Returns the row after the last one done, and of that last row what
    `near_lanes` does.
    """
    same = rows.instance_class is columns.instance_class is WalkAxis
    if not (isinstance(cov, Array) and isinstance(entering, Array) and same):
        return None
    place = types.int64
    signature = types.UniTuple(types.int64, 3)(
        cov, entering, rows, columns, *[place] * 4, both, normalize
    )

    def codegen(context, builder, signature, args):
        data = _data(context, builder, signature, args, args[7])
        both, product = (not isinstance(kind, types.NoneType) for kind in signature.args[8:])
        single = signature.args[0].dtype == types.float32
        function = _emit_descend(builder.module, both, product, single)
        found = builder.call(function, [*data, *args[4:7]])
        parts = [builder.extract_value(found, at) for at in range(3)]
        return context.make_tuple(builder, signature.return_type, parts)

    return signature, codegen


def _emit_climb(module, product, single):
    """Emit the loop of `climb`."""
    lanes = _Lanes(product, single)
    index = lanes.index
    function, new = lanes.function(module, "climb", index, 11, 2)
    if not new:
        return function
    covariance, entrance, *fields, most, row, stop = function.args
    builder, before = lanes.builder, lanes.builder.block
    loop, more, done = (function.append_basic_block(name) for name in ("row", "more", "done"))
    begin = lanes.load(covariance)
    columns = [lanes.load(field) for field in fields[4:]]
    weight = lanes.spread(fields[2], builder.sub(row, index(1)))
    scores = [lanes.scored(value, weight) for value in begin]
    builder.branch(loop)
    builder.position_at_end(loop)
    i, at = builder.phi(index), builder.phi(index)
    held, best = ([builder.phi(lanes.vector) for _ in begin] for _ in range(2))
    builder.cbranch(builder.icmp_signed("<", i, stop), more, done)
    builder.position_at_end(more)
    ends = lanes.step(held, entrance, fields[:4], columns, i)
    following = builder.add(at, index(lanes.n_lanes))
    lanes.store(ends, covariance, following)
    weight, higher = lanes.spread(fields[2], i), []
    for end, least in zip(ends, best, strict=True):
        score = lanes.scored(end, weight)
        above = builder.fcmp_ordered(">", score, least, flags=lanes.flags)
        higher.append(builder.select(above, score, least))
    later = [builder.add(i, index(1)), following, *ends, *higher]
    builder.branch(loop)
    values, first = [i, at, *held, *best], [row, index(0), *begin, *scores]
    for value, one, after in zip(values, first, later, strict=True):
        value.add_incoming(one, before)
        value.add_incoming(after, more)
    builder.position_at_end(done)
    lanes.store(best, most)
    builder.ret(lanes.at_least(best, columns[3]))
    return function


@intrinsic
def climb(typing_context, cov, entering, rows, columns, most, row, stop, left, normalize):
    """Walk columns from a row on to the row `stop`, and keep all covariances on the way.

    As `descend` does, but no row stops it, and `cov` receives the covariances of each row behind
    those of the row before, which are the first. `most` receives the highest score of each column
    among all of these. Returns of which columns that is what they need, as bits.
    """
    place = types.int64
    signature = types.int64(cov, entering, rows, columns, most, *[place] * 3, normalize)

    def codegen(context, builder, signature, args):
        product = not isinstance(signature.args[8], types.NoneType)
        single = signature.args[0].dtype == types.float32
        function = _emit_climb(builder.module, product, single)
        data = _data(context, builder, signature, args, args[7])
        most = context.make_array(signature.args[4])(context, builder, args[4]).data
        return builder.call(function, [*data, most, *args[5:7]])

    return signature, codegen


@intrinsic
def near_lanes(typing_context, cov, entering, rows, columns, at, row, left, normalize):
    """Say which of the columns that have been walked are near in a row, as bits.

    The covariances of the row are those of `cov` from `at` on. Bit t stands for lane t: of the
    first number where the score is what the row needs, of the second where it is what the column
    needs.
    """
    place = types.int64
    signature = types.UniTuple(types.int64, 2)(
        cov, entering, rows, columns, place, place, place, normalize
    )

    def codegen(context, builder, signature, args):
        product = not isinstance(signature.args[7], types.NoneType)
        single = signature.args[0].dtype == types.float32
        function = _emit_near(builder.module, product, single)
        data, _, *fields = _data(context, builder, signature, args, args[6])
        data = builder.gep(data, [args[4]])
        found = builder.call(function, [data, *fields[2:4], *fields[6:8], args[5]])
        both = [builder.extract_value(found, at) for at in range(2)]
        return context.make_tuple(builder, signature.return_type, both)

    return signature, codegen


@intrinsic
def lowest_bit(typing_context, bits):
    """Place of the lowest bit of a number that is not 0."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@kernel(forceinline=True)
def lane_of(column):
    """Return the place of a column, of many groups of columns that are dealt to vectors."""
    within = column % LANES
    return column - within + within % VECTORS * VECTOR + within // VECTORS


@kernel(forceinline=True)
def column_of(lane):
    """Return the column in a place: what `lane_of` takes back."""
    within = lane % LANES
    return lane - within + within % VECTOR * VECTORS + within // VECTOR


@kernel(forceinline=True)
def single_lane_of(column):
    """Return the place of a column, as `lane_of` does, among columns in single precision."""
    within = column % SINGLE_LANES
    return column - within + within % VECTORS * (SINGLE_LANES // VECTORS) + within // VECTORS


@kernel(forceinline=True)
def single_column_of(lane):
    """Return the column in a place in single precision: what `single_lane_of` takes back."""
    within = lane % SINGLE_LANES
    size = SINGLE_LANES // VECTORS
    return lane - within + within % size * VECTORS + within // size


@kernel(forceinline=True)
def widen(covariance):
    """Return a covariance in single precision in double precision."""
    return np.float64(covariance) if covariance > FAR_OUTSIDE else OUTSIDE


@kernel(forceinline=True)
def narrow(covariance):
    """Return a covariance in double precision in single precision."""
    return np.float32(max(covariance, SINGLE_OUTSIDE))


@kernel(forceinline=True)
def narrow_need(need):
    """Return a needed score in single precision, not above what it was."""
    need = min(max(need, -SINGLE_NOTHING), SINGLE_NOTHING)
    # see "single precision" in docs/developer/numerics.rst
    return np.float32(need - abs(need) * 4 * FLOAT32_UNIT)


@kernel(fastmath=FINITE)
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
