"""Keys of windows in float32, which say what is to be measured, and what measures it.

Lanes are windows. The same point of LANES windows lies side by side, and VECTORS vectors of keys
stay in registers while the points of a shapelet go by, each of which is loaded once for all of
them::

                 windows
                 0..15   16..31  32..47  48..63
    point 0      e0      e1      e2      e3        e is a vector of keys: sums of products of
    point 1      e0      e1      e2      e3        points of the shapelet and of windows
    ...

It is written in LLVM's language, as is the walk of shapelet searches: compiled loops leave these
vectors in memory, use half of the lanes where float64 and float32 meet, and may not find that
minima and counts need no order.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "LANES",
    "VECTORS",
    "bounds",
    "halves_of_squares",
    "least",
    "measure",
    "products",
    "reach",
]

LANES, VECTORS = 16, 4

_FLOAT, _INT, _INDEX, _BIT = ir.FloatType(), ir.IntType(64), ir.IntType(32), ir.IntType(1)
_MASK, _DOUBLE = ir.IntType(LANES), ir.DoubleType()
_DOUBLES = ir.VectorType(_DOUBLE, LANES)
_FLOATS, _COUNTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INDEX, LANES)


def _splat(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The same number in all lanes."""
    vector = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    mask = ir.Constant(_COUNTS, [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(vector, value, _INDEX(0)), vector, mask)


def _lanes(builder: ir.IRBuilder, pointer: ir.Value, place: ir.Value) -> ir.Value:
    """Where the lanes from a place on are."""
    kind = ir.VectorType(pointer.type.pointee, LANES)
    return builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer())


def _load(builder: ir.IRBuilder, pointer: ir.Value, place: ir.Value) -> ir.Value:
    """The lanes from a place on."""
    return builder.load(_lanes(builder, pointer, place), align=4)


def _store(builder: ir.IRBuilder, value: ir.Value, pointer: ir.Value, place: ir.Value) -> None:
    """Write lanes from a place on."""
    builder.store(value, _lanes(builder, pointer, place), align=4)


def _smaller(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of two numbers, lane by lane; none is NaN."""
    return builder.select(builder.fcmp_ordered("<", a, b, flags=("nnan",)), a, b)


def _least_lane(builder: ir.IRBuilder, values: ir.Value) -> ir.Value:
    """The least of all lanes."""
    kind = ir.FunctionType(_FLOAT, [_FLOATS])
    name = f"llvm.vector.reduce.fmin.v{LANES}f32"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [values], fastmath=("nnan",))


def _low_bits(builder: ir.IRBuilder, values: ir.Value, limit: ir.Value) -> ir.Value:
    """Bits of the lanes that are up to a limit."""
    return builder.bitcast(builder.fcmp_ordered("<=", values, limit, flags=("nnan",)), _MASK)


def _count(builder: ir.IRBuilder, values: ir.Value, limit: ir.Value) -> ir.Value:
    """How many lanes are up to a limit."""
    return builder.zext(builder.ctpop(_low_bits(builder, values, limit)), _INT)


def _multiply_add(builder: ir.IRBuilder) -> ir.Function:
    """The function that multiplies lanes and adds others."""
    kind, name = ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fmuladd.v{LANES}f32"
    return cgutils.get_or_insert_function(builder.module, kind, name)


def _data(context: Any, builder: ir.IRBuilder, kind: Any, value: ir.Value) -> ir.Value:
    return context.make_array(kind)(context, builder, value).data


class _Loop:
    """A loop from 0 in steps, whose values are phi nodes; its body is built inside ``with``."""

    def __init__(
        self, builder: ir.IRBuilder, stop: ir.Value, step: int, before: list[ir.Value]
    ) -> None:
        self.builder, self.stop, self.step = builder, stop, step
        start = builder.basic_block
        self.body, self.end = (builder.append_basic_block(name) for name in ("loop", "looped"))
        builder.branch(self.body)
        builder.position_at_end(self.body)
        self.place = builder.phi(_INT)
        self.place.add_incoming(_INT(0), start)
        self.values = [builder.phi(value.type) for value in before]
        for phi, value in zip(self.values, before, strict=True):
            phi.add_incoming(value, start)

    def close(self, after: list[ir.Value]) -> None:
        """End the loop, which runs once at least."""
        builder = self.builder
        place = builder.add(self.place, _INT(self.step))
        self.place.add_incoming(place, builder.basic_block)
        for phi, value in zip(self.values, after, strict=True):
            phi.add_incoming(value, builder.basic_block)
        builder.cbranch(builder.icmp_signed("<", place, self.stop), self.body, self.end)
        builder.position_at_end(self.end)


@intrinsic
def halves_of_squares(
    typing_context, query, begin, length, rows, width, count, limits, number, out
):
    """Write half squared distances less half of the squares of the shapelet, which are keys.

    Parameters: points of shapelets and where the one begins and its length; points of windows,
    `width` of one time after the other, behind them half of the squares of each window; how many
    windows there are, a multiple of ``LANES * VECTORS``; two limits of each shapelet, and its
    number; where keys go. Returns the least, and how many keys are up to either limit.
    """
    result = types.Tuple((types.float32, types.int64, types.int64))
    signature = result(
        *(query, types.intp, types.intp, rows, types.intp, types.intp),
        *(limits, types.intp, out),
    )

    def codegen(context, builder, signature, args):
        query, rows, limits, out = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 3, 6, 8)
        )
        begin, length, width, count = (args[k] for k in (1, 2, 4, 5))
        query = builder.gep(query, [begin])
        limits = builder.gep(limits, [builder.mul(args[7], _INT(2))])
        sure, maybe = (
            _splat(builder, builder.load(builder.gep(limits, [_INT(k)]))) for k in range(2)
        )
        halves = builder.gep(rows, [builder.mul(length, width)])
        most = ir.Constant(_FLOATS, [3e38] * LANES)
        outer = _Loop(builder, count, LANES * VECTORS, [most, _INT(0), _INT(0)])
        places = [builder.add(outer.place, _INT(LANES * k)) for k in range(VECTORS)]
        start = [_load(builder, halves, place) for place in places]
        inner = _Loop(builder, length, 1, start)
        point = _splat(builder, builder.fneg(builder.load(builder.gep(query, [inner.place]))))
        row = builder.gep(rows, [builder.mul(inner.place, width)])
        found = [
            builder.call(_multiply_add(builder), [point, _load(builder, row, place), value])
            for place, value in zip(places, inner.values, strict=True)
        ]
        inner.close(found)
        least, within, near = outer.values
        for place, value in zip(places, found, strict=True):
            _store(builder, value, out, place)
            least = _smaller(builder, value, least)
            within = builder.add(within, _count(builder, value, sure))
            near = builder.add(near, _count(builder, value, maybe))
        outer.close([least, within, near])
        parts = [_least_lane(builder, least), within, near]
        return context.make_tuple(builder, signature.return_type, parts)

    return signature, codegen


@intrinsic
def reach(typing_context, values, count, floor, out):
    """Write the places of LANES numbers, some of which are up to a limit; return how many.

    An entry of the answer is the first such place, times 2 ** LANES, and bits of those from it on.
    """
    signature = types.int64(values, types.intp, types.float32, out)

    def codegen(context, builder, signature, args):
        values, out = (_data(context, builder, signature.args[k], args[k]) for k in (0, 3))
        _, count, floor, _ = args
        limit = _splat(builder, floor)
        loop = _Loop(builder, count, LANES, [_INT(0)])
        (found,) = loop.values
        bits = _low_bits(builder, _load(builder, values, loop.place), limit)
        before = builder.basic_block
        with builder.if_then(builder.icmp_unsigned("!=", bits, _MASK(0)), likely=False):
            skipped = builder.cttz(bits, _BIT(1))
            place = builder.add(loop.place, builder.zext(skipped, _INT))
            rest = builder.zext(builder.lshr(bits, skipped), _INT)
            entry = builder.or_(builder.shl(place, _INT(LANES)), rest)
            builder.store(entry, builder.gep(out, [found]))
            more = builder.add(found, _INT(1))
            inside = builder.basic_block
        merged = builder.phi(_INT)
        merged.add_incoming(found, before)
        merged.add_incoming(more, inside)
        loop.close([merged])
        return merged

    return signature, codegen


@intrinsic
def products(typing_context, points, begin, step, query, length, count, out):
    """Write dot products of a query and windows of some points, of which each has every `step`-th.

    `begin` is the first point of the first window. Windows come in groups of ``LANES * VECTORS``:
    points behind the last, and places in `out`, must be there.
    """
    signature = types.void(points, *(types.intp,) * 2, query, *(types.intp,) * 2, out)

    def codegen(context, builder, signature, args):
        points, query, out = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 3, 6)
        )
        begin, step, length, count = (args[k] for k in (1, 2, 4, 5))
        points = builder.gep(points, [begin])
        outer = _Loop(builder, count, LANES * VECTORS, [])
        places = [builder.add(outer.place, _INT(LANES * k)) for k in range(VECTORS)]
        inner = _Loop(builder, length, 1, [ir.Constant(_FLOATS, [0.0] * LANES)] * VECTORS)
        point = _splat(builder, builder.load(builder.gep(query, [inner.place])))
        row = builder.gep(points, [builder.mul(inner.place, step)])
        found = [
            builder.call(_multiply_add(builder), [point, _load(builder, row, place), value])
            for place, value in zip(places, inner.values, strict=True)
        ]
        inner.close(found)
        for place, value in zip(places, found, strict=True):
            _store(builder, value, out, place)
        outer.close([])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def least(typing_context, values, count):
    """Return the least of some numbers, a multiple of LANES."""
    signature = types.float32(values, types.intp)

    def codegen(context, builder, signature, args):
        values = _data(context, builder, signature.args[0], args[0])
        loop = _Loop(builder, args[1], LANES, [ir.Constant(_FLOATS, [3e38] * LANES)])
        smaller = _smaller(builder, _load(builder, values, loop.place), loop.values[0])
        loop.close([smaller])
        return _least_lane(builder, smaller)

    return signature, codegen


@intrinsic
def measure(typing_context, query, length, windows, out):
    """Write norms of the differences of a normalised query and LANES windows, none constant.

    The same place of all windows lies side by side. Points count from the first of their window.
    Sums are taken in the order of time, without fused multiply-add: the values are certified.
    """
    signature = types.void(query, types.intp, windows, out)

    def codegen(context, builder, signature, args):
        query, windows, out = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 2, 3)
        )
        count = _splat(builder, builder.sitofp(args[1], _DOUBLE))
        zero, one = (ir.Constant(_DOUBLES, [value] * LANES) for value in (0.0, 1.0))
        kind = ir.FunctionType(_DOUBLES, [_DOUBLES])
        root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f64")

        def summed(term):
            """Sum a term of all places."""
            loop = _Loop(builder, args[1], 1, [zero])
            place = builder.mul(loop.place, _INT(LANES))
            point = builder.fsub(_load(builder, windows, place), first)
            total = builder.fadd(loop.values[0], term(point, loop.place))
            loop.close([total])
            return total

        def squared(x):
            return builder.fmul(x, x)

        def difference(x, place):
            point = _splat(builder, builder.load(builder.gep(query, [place])))
            return builder.fsub(point, builder.fmul(builder.fsub(x, mean), scale))

        first = _load(builder, windows, _INT(0))
        mean = builder.fdiv(summed(lambda x, _: x), count)
        squares = summed(lambda x, _: squared(builder.fsub(x, mean)))
        scale = builder.fdiv(one, builder.call(root, [builder.fdiv(squares, count)]))
        total = summed(lambda x, place: squared(difference(x, place)))
        _store(builder, builder.call(root, [total]), out, _INT(0))
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def bounds(typing_context, sums, squares, strided, points, places, numbers, count, keys, out):
    """Write lower bounds of keys of windows, with their sign changed; return the least.

    Parameters: sums, squares, and squares of coarse points before each point, and rounded points;
    points of a window, and of its coarse part; numbers in the order in which they are read here;
    how many windows there are; dot products; where bounds go. Windows that cannot be judged have
    a bound below all others, those that are not there one above all others.
    """
    kinds = sums, squares, strided, points, places, numbers, types.intp, keys, out
    signature = types.float32(*kinds)

    def codegen(context, builder, signature, args):
        sums, squares, strided, points, places, numbers, keys, out = (
            _data(context, builder, signature.args[k], args[k]) for k in (0, 1, 2, 3, 4, 5, 7, 8)
        )
        length, middle = (builder.load(builder.gep(places, [_INT(k)])) for k in range(2))
        given = [builder.load(builder.gep(numbers, [_INT(k)])) for k in range(11)]
        low, high, share, wrong = (_splat(builder, value) for value in given[:4])
        points_of, e_0, e_1, e_2, *tail = (
            _splat(builder, builder.fptrunc(value, _FLOAT)) for value in given[4:]
        )
        zero, one = (ir.Constant(_DOUBLES, [value] * LANES) for value in (0.0, 1.0))
        unit, never = (ir.Constant(_FLOATS, [value] * LANES) for value in (1.0, -1e30))
        lanes, absent = ir.Constant(_COUNTS, [*range(LANES)]), ir.Constant(_FLOATS, [1e30] * LANES)
        kind = ir.FunctionType(_FLOATS, [_FLOATS])
        root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{LANES}f32")
        multiply_add = _multiply_add(builder)
        last = _splat(builder, builder.trunc(args[6], _INDEX))
        loop = _Loop(builder, args[6], LANES, [ir.Constant(_FLOATS, [3e38] * LANES)])
        j = loop.place
        behind, at_middle = builder.add(j, length), builder.add(j, middle)
        s = builder.fsub(_load(builder, sums, behind), _load(builder, sums, j))
        before = _load(builder, squares, j)
        q = builder.fsub(_load(builder, squares, behind), before)
        rest = builder.fsub(q, builder.fmul(builder.fmul(s, s), share))
        sound = builder.and_(
            builder.fcmp_ordered(">", rest, low), builder.fcmp_ordered("<", rest, high)
        )
        part = builder.fptrunc(builder.select(sound, rest, one), _FLOATS)
        part = builder.fdiv(unit, part)
        coarse = builder.fsub(_load(builder, strided, at_middle), _load(builder, strided, j))
        left_out = builder.fsub(_load(builder, squares, at_middle), before)
        left_out = builder.fsub(left_out, coarse)
        positive = builder.fcmp_ordered(">", left_out, zero)
        left_out = builder.fadd(builder.select(positive, left_out, zero), wrong)
        key = _load(builder, keys, j)
        for k, value in enumerate(tail):
            x = _load(builder, points, builder.add(at_middle, _INT(k)))
            key = builder.call(multiply_add, [value, x, key])
        doubt = builder.fmul(e_1, builder.fptrunc(q, _FLOATS))
        doubt = builder.call(multiply_add, [e_2, builder.fptrunc(left_out, _FLOATS), doubt])
        doubt = builder.call(multiply_add, [part, doubt, e_0])
        weight = builder.call(root, [builder.fmul(part, points_of)])
        bound = builder.fsub(builder.fneg(builder.fmul(key, weight)), doubt)
        bound = builder.select(sound, bound, never)
        number = builder.add(_splat(builder, builder.trunc(j, _INDEX)), lanes)
        there = builder.icmp_signed("<", number, last)
        bound = builder.select(there, bound, absent)
        _store(builder, bound, out, j)
        smaller = _smaller(builder, bound, loop.values[0])
        loop.close([smaller])
        return _least_lane(builder, smaller)

    return signature, codegen
