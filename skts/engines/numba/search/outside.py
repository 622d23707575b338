"""Bounds of windows by envelopes, a lane for each, in the terms of the compiler.

Points of LANES windows lie side by side. What each lane costs so far stays in registers while
points go by, in the order in which they tell most, until all lanes exceed a limit. Compiled loops
write it to memory for each point, and use half of a vector.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.types import Array
from numba.extending import intrinsic

__all__ = ["LANES", "add_outside"]

#: Windows side by side, and how many of them are one vector of the compiler's.
LANES = 32
_VECTOR = 8

_INDEX, _NUMBER, _BIT, _WORD = ir.IntType(64), ir.DoubleType(), ir.IntType(1), ir.IntType(32)
_NUMBERS, _DATA = ir.VectorType(_NUMBER, _VECTOR), _NUMBER.as_pointer()
_MASK = ir.IntType(_VECTOR)


def _spread(builder: Any, value: Any) -> Any:
    """A number in all lanes of a vector."""
    none = ir.Constant(_NUMBERS, ir.Undefined)
    one = builder.insert_element(none, value, _WORD(0))
    zeros = ir.Constant(ir.VectorType(_WORD, _VECTOR), [0] * _VECTOR)
    return builder.shuffle_vector(one, one, zeros)


def _places(builder: Any, data: Any, at: Any) -> list[Any]:
    """Where the vectors of all lanes are, from a number on."""
    begins = (builder.add(at, _INDEX(lane)) for lane in range(0, LANES, _VECTOR))
    return [builder.bitcast(builder.gep(data, [at]), _NUMBERS.as_pointer()) for at in begins]


def _load(builder: Any, data: Any, at: Any) -> list[Any]:
    """The vectors of all lanes, from a number on."""
    return [builder.load(place, align=8) for place in _places(builder, data, at)]


def _greater(builder: Any, value: Any, other: Any) -> Any:
    """The greater of two numbers, lane by lane: the other one where either is NaN."""
    return builder.select(builder.fcmp_ordered(">", value, other), value, other)


def _emit(module: Any, same: bool) -> Any:
    """Emit the loop of `add_outside`; with `same` the least points are the largest."""
    name = f"skts_outside_{same:d}"
    if name in module.globals:
        return module.globals[name]
    given = [_DATA] * 4 + [_INDEX.as_pointer(), *[_DATA] * 3, _INDEX, _INDEX, _NUMBER, _BIT, _BIT]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), given), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    least, most, low, high, order, *statistics, out, count, step, limit, squared, largest = (
        function.args
    )
    begin, loop, done = map(function.append_basic_block, ("begin", "point", "done"))
    builder = ir.IRBuilder(begin)
    centers, scales = (_load(builder, data, _INDEX(0)) for data in statistics)
    starts, beyond = _load(builder, out, _INDEX(0)), _spread(builder, limit)
    none = ir.Constant(_NUMBERS, [0.0] * _VECTOR)
    builder.branch(loop)

    builder = ir.IRBuilder(loop)
    k = builder.phi(_INDEX)
    totals = [builder.phi(_NUMBERS) for _ in starts]
    at = builder.load(builder.gep(order, [k]))
    below, above = (_spread(builder, builder.load(builder.gep(one, [at]))) for one in (low, high))
    place, ends, far = builder.mul(at, step), [], _MASK(2**_VECTOR - 1)
    lows = _load(builder, least, place)
    highs = lows if same else _load(builder, most, place)
    for total, center, scale, *points in zip(totals, centers, scales, lows, highs, strict=True):
        under, over = (builder.fmul(builder.fsub(one, center), scale) for one in points)
        cost = _greater(builder, builder.fsub(under, above), builder.fsub(below, over))
        cost = _greater(builder, cost, none)
        cost = builder.select(squared, builder.fmul(cost, cost), cost)
        whole = builder.fadd(total, cost)
        ends.append(builder.select(largest, _greater(builder, cost, total), whole))
        exceeds = builder.bitcast(builder.fcmp_ordered(">", ends[-1], beyond), _MASK)
        far = builder.and_(far, exceeds)
    following = builder.add(k, _INDEX(1))
    last = builder.icmp_signed(">=", following, count)
    all_far = builder.icmp_unsigned("==", far, _MASK(2**_VECTOR - 1))
    builder.cbranch(builder.or_(last, all_far), done, loop)
    for value, first, after in zip(
        [k, *totals], [_INDEX(0), *starts], [following, *ends], strict=True
    ):
        value.add_incoming(first, begin)
        value.add_incoming(after, loop)

    builder = ir.IRBuilder(done)
    for value, place in zip(ends, _places(builder, out, _INDEX(0)), strict=True):
        builder.store(value, place, align=8)
    builder.ret_void()
    return function


@intrinsic
def add_outside(
    typing_context, least, most, step, envelope, order, statistics, limit, kinds, out
):  # fmt: skip
    """Add to `out` what LANES windows cost by an envelope, until all exceed a limit.

    The points of the windows that are compared with point j of the envelope lie from ``j step`` on:
    `least` with its upper side, `most` with its lower side, normalised by `statistics`, means and
    inverse deviations. `most` is None where it is the same as `least`. `envelope` are its lower and
    upper side; `order` is that of its points, one at least. `kinds` says whether costs are squares,
    and whether the largest counts and not the sum. Windows whose statistics are NaN cost nothing.
    """
    arrays = least, *envelope.types, order, *statistics.types, out
    if not all(isinstance(one, Array) and (one.ndim, one.layout) == (1, "C") for one in arrays):
        return None
    signature = types.void(
        *(least, most, types.int64, envelope, order, statistics, types.float64, kinds, out)
    )

    def codegen(context, builder, signature, args):
        def data(kind, value):
            return context.make_array(kind)(context, builder, value).data

        kinds = signature.args
        same = isinstance(kinds[1], types.NoneType)
        lows = data(kinds[0], args[0])
        sides, numbers = (
            [
                data(kind, one)
                for kind, one in zip(
                    kinds[at].types, cgutils.unpack_tuple(builder, args[at]), strict=True
                )
            ]
            for at in (3, 5)
        )
        lengths = context.make_array(kinds[4])(context, builder, args[4]).shape
        count = builder.extract_value(lengths, 0)
        flags = [
            builder.trunc(one, _BIT) if one.type != _BIT else one
            for one in cgutils.unpack_tuple(builder, args[7])
        ]
        given = [lows, lows if same else data(kinds[1], args[1]), *sides, data(kinds[4], args[4])]
        given += [*numbers, data(kinds[8], args[8]), count, args[2], args[6], *flags]
        builder.call(_emit(builder.module, same), given)
        return context.get_dummy_value()

    return signature, codegen
