"""Sums of the nearest channels of neighbouring pairs of windows, by sorting networks in registers.

A group of LANES pairs lies beside each other in a vector, a vector for each channel. A network of
comparators, each a minimum and a maximum of two vectors, orders the channels of all pairs of the
group at once; then the first, the first two, ... are added and compared with what either window of
the pair needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.types import Array
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from ...core.order import network_of

__all__ = ["LANES", "MOST_IN_REGISTERS", "compare_sums", "order_channels"]

#: Pairs of a vector.
LANES = 8
#: Channels that one vector each holds: as many as keep to the registers of a processor.
MOST_IN_REGISTERS = 8


def _emit_compare(module: Any) -> Any:
    """Emit `compare_sums` as a function of its own, with a loop for each number of channels.

    To emit it is one function, as its parts share the builder and the places that it has come to.
    """
    single, index, word, byte = ir.FloatType(), ir.IntType(64), ir.IntType(32), ir.IntType(8)
    vector, mask = ir.VectorType(single, LANES), ir.IntType(LANES)
    kind = ir.FunctionType(
        index, [single.as_pointer()] * 4 + [byte.as_pointer()] + [index] * 5 + [single]
    )
    name = "skts_compare_sums"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, kind, name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    values, first_sums, need, needs, flags, count, groups, pitch, pitch_needs, ordered, sign = (
        function.args
    )
    begin, none = function.append_basic_block("begin"), function.append_basic_block("none")
    builder = ir.IRBuilder(begin)
    fast = ("nnan", "ninf", "nsz")
    zeros = ir.Constant(ir.VectorType(word, LANES), [0] * LANES)
    nothing = ir.Constant(vector, [0.0] * LANES)

    def spread(value: Any) -> Any:
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, word(0))
        return builder.shuffle_vector(one, one, zeros)

    def load(data: Any, place: Any) -> Any:
        return builder.load(
            builder.bitcast(builder.gep(data, [place]), vector.as_pointer()), align=4
        )

    def within(total: Any, k: Any, at: Any) -> Any:
        """Lanes whose sum of the first k is needed by one of the two windows."""
        own = spread(builder.load(builder.gep(need, [k])))
        other = load(needs, builder.add(builder.mul(k, pitch_needs), at))
        limit = builder.select(builder.fcmp_ordered(">", own, other, flags=fast), own, other)
        near = builder.and_(
            builder.fcmp_ordered("<=", total, limit), builder.fcmp_ordered(">=", total, nothing)
        )
        return builder.bitcast(near, mask)

    signs = spread(sign)
    cases = {n: function.append_basic_block(f"channels_{n}") for n in range(MOST_IN_REGISTERS + 1)}
    many = function.append_basic_block("many")
    choice = builder.switch(builder.select(builder.trunc(ordered, ir.IntType(1)), index(-1), count),
                            many)  # fmt: skip
    for n, block in cases.items():
        choice.add_case(index(n), block)
    builder.position_at_end(none)
    builder.ret(index(0))

    def loop_over_groups(start: Any, body: Callable[[Any], Any]) -> None:
        """A loop over all groups of lanes; `body` returns the mask of one."""
        loop, done = (function.append_basic_block(name) for name in ("loop", "done"))
        builder.position_at_end(start)
        builder.cbranch(builder.icmp_signed(">", groups, index(0)), loop, none)
        builder.position_at_end(loop)
        group, seen = builder.phi(index), builder.phi(mask)
        at = builder.mul(group, index(LANES))
        hits = body(at)
        builder.store(hits, builder.gep(flags, [group]))
        following, all_hits = builder.add(group, index(1)), builder.or_(seen, hits)
        last = builder.block
        builder.cbranch(builder.icmp_signed("<", following, groups), loop, done)
        for value, first, after in ((group, index(0), following), (seen, mask(0), all_hits)):
            value.add_incoming(first, start)
            value.add_incoming(after, last)
        builder.position_at_end(done)
        builder.ret(builder.zext(all_hits, index))

    for n, block in cases.items():

        def in_registers(at: Any, n: int = n) -> Any:
            held = [load(values, builder.add(builder.mul(index(c), pitch), at)) for c in range(n)]
            for x, y in network_of(n).tolist():
                less = builder.fcmp_ordered("<", held[x], held[y], flags=fast)
                held[x], held[y] = (
                    builder.select(less, held[x], held[y]),
                    builder.select(less, held[y], held[x]),
                )
            total = load(first_sums, at)
            hits = within(total, index(0), at)
            for k, value in enumerate(held):
                total = builder.fadd(total, builder.fmul(value, signs, flags=fast), flags=fast)
                hits = builder.or_(hits, within(total, index(k + 1), at))
            return hits

        loop_over_groups(block, in_registers)

    def in_memory(at: Any) -> Any:
        """The channels are in order already; one more loop adds them."""
        total = load(first_sums, at)
        hits = within(total, index(0), at)
        before = builder.block
        loop, done = (function.append_basic_block(name) for name in ("sum", "summed"))
        builder.cbranch(builder.icmp_signed(">", count, index(0)), loop, done)
        builder.position_at_end(loop)
        k, sums, found = builder.phi(index), builder.phi(vector), builder.phi(mask)
        value = load(values, builder.add(builder.mul(k, pitch), at))
        after = builder.fadd(sums, builder.fmul(value, signs, flags=fast), flags=fast)
        following = builder.add(k, index(1))
        more = builder.or_(found, within(after, following, at))
        builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
        for phi, first, next_one in (
            (k, index(0), following), (sums, total, after), (found, hits, more),
        ):  # fmt: skip
            phi.add_incoming(first, before)
            phi.add_incoming(next_one, loop)
        builder.position_at_end(done)
        result = builder.phi(mask)
        result.add_incoming(hits, before)
        result.add_incoming(more, loop)
        return result

    loop_over_groups(many, in_memory)
    return function


@intrinsic
def compare_sums(typing_context, values, first_sums, need, needs, left, flags, ordered, sign):
    """Find the pairs with a sum of nearest channels that one of their windows needs.

    Parameters
    ----------
    values : ndarray of shape (n_channels, width), float32
        Distances of each pair in each channel; in order along the channels where `ordered`, and
        else for at most MOST_IN_REGISTERS of them.
    first_sums : ndarray of shape (width,), float32
        Sums of channels that always take part.
    need : ndarray of shape (n_channels + 1,), float32
        Sums of the first 0, 1, ... channels up to which the window of the row needs them; negative
        where it does not.
    needs : ndarray of shape (n_channels + 1, n_windows), float32
        The same of the windows of the columns, from `left` on.
    flags : ndarray of shape (width / LANES,), uint8
        A bit for each pair, written here.
    ordered : int
        Whether the channels are in order.
    sign : float32
        Factor of all values.

    Returns
    -------
    int
        Not 0 if there is any.
    """
    arrays = values, first_sums, need, needs, flags
    if not all(isinstance(kind, Array) for kind in arrays):
        return None
    signature = types.int64(
        values, first_sums, need, needs, types.int64, flags, types.int64, types.float32
    )

    def codegen(context, builder, signature, args):
        def of(at):
            return make_array(signature.args[at])(context, builder, args[at])

        rows, columns = of(0), of(3)
        index = ir.IntType(64)

        def part(array, at):
            return builder.extract_value(array, at)

        shape, shape_needs = rows.shape, columns.shape
        groups = builder.sdiv(part(shape, 1), index(LANES))
        needed = builder.gep(columns.data, [args[4]])
        function = _emit_compare(builder.module)
        return builder.call(
            function,
            [
                rows.data, of(1).data, of(2).data, needed, of(5).data, part(shape, 0), groups,
                part(shape, 1), part(shape_needs, 1), args[6], args[7],
            ],
        )  # fmt: skip

    return signature, codegen


@intrinsic
def lesser(typing_context, a, b):
    """The lesser of two numbers that are not NaN."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args, flags=("nnan",)), *args)

    return a(a, b), codegen


@intrinsic
def greater(typing_context, a, b):
    """The greater of two numbers that are not NaN."""

    def codegen(context, builder, signature, args):
        first, second = args
        return builder.select(
            builder.fcmp_ordered("<", first, second, flags=("nnan",)), second, first
        )

    return a(a, b), codegen


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"nnan", "ninf", "nsz"})
def order_channels(values, network):
    """Order many channels of each pair, in memory."""
    for at in range(network.shape[0]):
        x, y = values[network[at, 0]], values[network[at, 1]]
        for d in range(x.size):
            a, b = x[d], y[d]
            x[d] = lesser(a, b)
            y[d] = greater(a, b)
