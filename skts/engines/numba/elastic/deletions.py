"""Four rows of cells of `DeletionCell` at once: move-split-merge and time warp edit distance.

The policy alone, in loops over lanes (`uneven`), reads and writes the cells before for each two
cells, and computes the difference of two points twice: for their own cell, and for the next on the
diagonal. Here the cells on the left of four rows, and the differences of the column before, stay in
registers while columns go by, for some lanes at a time; a column reads its points and the cells
above the four rows, and writes the last row::

                    up
       left[0]  ->  .
       left[1]  ->  .
       left[2]  ->  .
       left[3]  ->  .  -> row of the column

Only the terms of the compiler keep so much in registers. Each cell adds the same numbers in the
same order as the policy does.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = ["ROWS", "fill_rows"]

#: Rows that are filled at once.
ROWS = 4
#: Vectors of lanes that go side by side: one has to wait for its own cells.
VECTORS = 2


def _emit_rows(module: Any, single: bool, late: bool) -> Any:
    """Emit the loop of `fill_rows`; `late` where differences in time have a price.

    It is one function, since all of its parts name values of the same blocks.
    """
    index, word = ir.IntType(64), ir.IntType(32)
    number, size, lanes = (ir.FloatType(), 16, 64) if single else (ir.DoubleType(), 8, 32)
    vector, data = ir.VectorType(number, size), number.as_pointer()
    name = f"skts_deletion_rows_{single:d}{late:d}"
    if name in module.globals:
        return module.globals[name]
    given = [data, number, data, data, data, index, index, number, number]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), given), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    x, before, columns, row, edge, width, offset, deletion, stiffness = function.args
    magnitude = cgutils.get_or_insert_function(
        module, ir.FunctionType(vector, [vector]), f"llvm.fabs.v{size}f{32 if single else 64}"
    )
    blocks = ("begin", "lanes", "column", "after", "done")
    begin, group, column, after, done = map(function.append_basic_block, blocks)
    builder = ir.IRBuilder(begin)

    def spread(value: Any) -> Any:
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, word(0))
        zeros = ir.Constant(ir.VectorType(word, size), [0] * size)
        return builder.shuffle_vector(one, one, zeros)

    def place(array: Any, line: Any, at: Any) -> Any:
        entry = builder.add(builder.mul(line, index(lanes)), at)
        return builder.bitcast(builder.gep(array, [entry]), vector.as_pointer())

    def load(array: Any, line: Any, at: Any) -> Any:
        return builder.load(place(array, line, at), align=4)

    def apart(a: Any, b: Any) -> Any:
        return builder.call(magnitude, [builder.fsub(a, b)])

    def lesser(value: Any, best: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", value, best), value, best)

    points = [spread(before)]
    points += [spread(builder.load(builder.gep(x, [index(k)]))) for k in range(ROWS)]
    price, slope = spread(deletion), spread(stiffness)
    down = [builder.fadd(apart(points[k + 1], points[k]), price) for k in range(ROWS)]
    builder.branch(group)

    builder.position_at_end(group)
    first = builder.phi(index)
    first.add_incoming(index(0), begin)
    at = [builder.add(first, index(v * size)) for v in range(VECTORS)]
    starts = []
    for lane in at:
        point = load(columns, index(0), lane)
        lefts = [load(edge, index(k), lane) for k in range(ROWS)]
        matches = [apart(points[k], point) for k in range(ROWS)]
        starts.append([point, load(row, index(0), lane), *lefts, *matches])
    builder.branch(column)

    builder.position_at_end(column)
    j = builder.phi(index)
    held = [[builder.phi(vector) for _ in one] for one in starts]
    following = builder.add(j, index(1))
    costs = []
    for k in range(ROWS if late else 0):
        distance = builder.sub(builder.add(offset, j), index(k))
        far = spread(builder.sitofp(distance, number))
        costs.append(builder.fmul(slope, builder.call(magnitude, [far])))
    ends = []
    for lane, (point, corner, *others) in zip(at, held, strict=True):
        lefts, matches = others[:ROWS], others[ROWS:]
        own, up = load(columns, following, lane), load(row, following, lane)
        right = builder.fadd(apart(own, point), price)
        mine = [apart(each, own) for each in points]
        diagonal, above, found = corner, up, []
        for k in range(ROWS):
            match = builder.fadd(mine[k + 1], matches[k])
            if late:
                match = builder.fadd(match, costs[k])
            best = builder.fadd(match, diagonal)
            best = lesser(builder.fadd(down[k], above), best)
            best = lesser(builder.fadd(right, lefts[k]), best)
            diagonal, above = lefts[k], best
            found.append(best)
        builder.store(above, place(row, following, lane), align=4)
        ends.append([own, up, *found, *mine[:ROWS]])
    j.add_incoming(index(0), group)
    j.add_incoming(following, column)
    for values, one, other in zip(held, starts, ends, strict=True):
        for value, start, end in zip(values, one, other, strict=True):
            value.add_incoming(start, group)
            value.add_incoming(end, column)
    builder.cbranch(builder.icmp_signed("<", following, width), column, after)

    builder.position_at_end(after)
    for lane, end in zip(at, ends, strict=True):
        for k in range(ROWS):
            builder.store(end[2 + k], place(edge, index(k), lane), align=4)
    new = builder.add(first, index(VECTORS * size))
    first.add_incoming(new, after)
    builder.cbranch(builder.icmp_signed("<", new, index(lanes)), group, done)
    builder.position_at_end(done)
    builder.ret_void()
    return function


@intrinsic
def fill_rows(
    typing_context, x, i, before, columns, width, offset, row, edge, deletion, stiffness
):  # fmt: skip
    """Fill ROWS rows from row i on in the columns of a strip, all of whose cells are in the band.

    Parameters
    ----------
    x : ndarray of shape (n, 1)
        The series of the rows.
    i : int
        The first of them.
    before : float
        The point before it, 0 before the first.
    columns : ndarray of shape (..., lanes)
        Points of the column before the strip, then those of its columns.
    width, offset : int
        Columns of the strip, and the place of the first of them less i.
    row : ndarray of shape (..., lanes)
        The row of cells above, the one before the strip in front; receives the last row.
    edge : ndarray of shape (n + 1, lanes)
        Cells of the column before the strip, from row -1 on; receives those of its last column.
    deletion, stiffness : float
        Those of `DeletionCell`.
    """
    place = types.int64
    number = columns.dtype
    signature = types.void(
        x, place, number, columns, place, place, row, edge, number, number
    )  # fmt: skip

    def codegen(context, builder, signature, args):
        def data(at):
            return make_array(signature.args[at])(context, builder, args[at]).data

        single = signature.args[3].dtype == types.float32
        index, i = ir.IntType(64), args[1]
        lanes = index(64 if single else 32)
        begin = builder.mul(builder.add(i, index(1)), lanes)
        given = [builder.gep(data(0), [i]), args[2], data(3), data(6)]
        given += [builder.gep(data(7), [begin]), args[4], args[5], args[8], args[9]]
        timeless = builder.fcmp_unordered("==", args[9], ir.Constant(args[9].type, 0.0))
        with builder.if_else(timeless) as (without, with_time):
            with without:
                builder.call(_emit_rows(builder.module, single, False), given)
            with with_time:
                builder.call(_emit_rows(builder.module, single, True), given)
        return context.get_dummy_value()

    return signature, codegen
