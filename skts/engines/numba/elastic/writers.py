"""Writes expressions of policies (`terms`) in the terms of the compiler, for lanes side by side."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from .terms import Expression

__all__ = [
    "OF_LANES",
    "POINT",
    "POINT_BEFORE",
    "POINT_OF_EACH",
    "Points",
    "Writer",
    "add_channels",
]

#: Points of a column, and of the one before it.
POINT, POINT_BEFORE = Expression("y"), Expression("y_before")
#: Name of a point of a row where each lane has a series of its own.
POINT_OF_EACH = "x_of_each"
#: Symbols that differ from lane to lane.
OF_LANES = frozenset(["y", "y_before", "before", "factor", POINT_OF_EACH])


class Writer:
    """Writes expressions: those that do not change once, those of a column for each vector.

    Parameters
    ----------
    module : Module
        Where the function is.
    outside, inside : IRBuilder
        Write before the loops, and in the loop over columns.
    number : FloatType
        The type of points.
    size : int
        Lanes of a vector.
    """

    def __init__(self, module: Any, outside: Any, inside: Any, number: Any, size: int) -> None:
        self.outside, self.inside, self.number = outside, inside, number
        self.vector = ir.VectorType(number, size)
        self.zeros = ir.Constant(ir.VectorType(ir.IntType(32), size), [0] * size)
        bits = 32 if isinstance(number, ir.FloatType) else 64
        self.magnitudes = {
            kind: cgutils.get_or_insert_function(
                module, ir.FunctionType(kind, [kind]), f"llvm.fabs.{name}"
            )
            for kind, name in ((number, f"f{bits}"), (self.vector, f"v{size}f{bits}"))
        }
        #: values that are known: those that do not change, and those of a column in all lanes
        self.fixed: dict[Expression, Any] = {}
        self.shared: dict[Expression, Any] = {}

    def spread(self, builder: Any, value: Any) -> Any:
        """A number in all lanes."""
        if isinstance(value.type, ir.VectorType):
            return value
        empty = ir.Constant(ir.VectorType(value.type, self.vector.count), ir.Undefined)
        one = builder.insert_element(empty, value, ir.IntType(32)(0))
        return builder.shuffle_vector(one, one, self.zeros)

    def converted(self, builder: Any, value: Any) -> Any:
        """A number of the type of the points."""
        whole = isinstance(value.type, ir.IntType)
        return builder.sitofp(value, self.number) if whole else value

    def write(self, term: Expression, known: dict[Expression, Any]) -> Any:
        """Return the value of an expression; `known` are those of a column in some lanes."""
        builder = self.inside
        if not term.symbols & OF_LANES:
            fixed = "offset" not in term.symbols
            known = self.fixed if fixed else self.shared
            builder = self.outside if fixed else self.inside
        if term not in known:
            if term.kind == "number":
                known[term] = ir.Constant(self.number, term.args[0])
            elif term.kind == "whole":
                known[term] = ir.IntType(64)(term.args[0])
            else:
                args = [self.write(each, known) for each in term.args]
                known[term] = self.operate(builder, term.kind, args)
        return known[term]

    def lanes(self, term: Expression, known: dict[Expression, Any]) -> Any:
        """The same in all lanes."""
        value = self.write(term, known)
        if value.type == self.vector:
            return value
        fixed, whole = "offset" not in term.symbols, Expression("lanes", (term,))
        known = self.fixed if fixed else self.shared
        if whole not in known:
            builder = self.outside if fixed else self.inside
            known[whole] = self.spread(builder, self.converted(builder, value))
        return known[whole]

    def operate(self, builder: Any, kind: str, args: list[Any]) -> Any:
        """Write one operation."""
        if kind == "entry":
            return builder.load(builder.gep(args[0], [args[1]]))
        # the condition of a choice is neither
        numbers = args[1:] if kind == "where" else args
        whole = all(isinstance(each.type, ir.IntType) for each in numbers)
        if kind == "convert":
            return self.converted(builder, args[0])
        if not whole:
            numbers = [self.converted(builder, each) for each in numbers]
        if any(isinstance(each.type, ir.VectorType) for each in args):
            numbers = [self.spread(builder, each) for each in numbers]
        args = [*args[: len(args) - len(numbers)], *numbers]
        if kind == "magnitude":
            if not whole:
                return builder.call(self.magnitudes[args[0].type], args)
            negative = builder.icmp_signed("<", args[0], args[0].type(0))
            return builder.select(negative, builder.neg(args[0]), args[0])
        if kind == "negative":
            return builder.neg(args[0]) if whole else builder.fneg(args[0])
        if kind == "where":
            return builder.select(*args)
        less = builder.icmp_signed if whole else builder.fcmp_ordered
        if kind in ("less", "least"):
            compared = less("<", *args)
            return compared if kind == "less" else builder.select(compared, *args)
        operations = {"add": "add", "subtract": "sub", "multiply": "mul"}
        return getattr(builder, ("" if whole else "f") + operations[kind])(*args)


class Points:
    """Writes how points are read.

    Parameters
    ----------
    writer : Writer
        Knows the types.
    lanes : int
        Lanes of a group.
    x, i, y, column, stride : Value
        The points of the rows (n, stride), the first row, the points of the columns
        (m, stride, lanes) and the first column.
    """

    def __init__(
        self, writer: Writer, lanes: int, x: Any, i: Any, y: Any, column: Any, stride: Any
    ) -> None:
        self.writer, self.lanes, self.x, self.i = writer, lanes, x, i
        self.y, self.column, self.stride = y, column, stride

    def place(self, builder: Any, array: Any, line: Any, at: Any) -> Any:
        """Where some lanes of a line of an array are."""
        entry = builder.add(builder.mul(line, line.type(self.lanes)), at)
        return builder.bitcast(builder.gep(array, [entry]), self.writer.vector.as_pointer())

    def load(self, builder: Any, array: Any, line: Any, at: Any) -> Any:
        """Some lanes of a line of an array."""
        return builder.load(self.place(builder, array, line, at), align=4)

    def _before(self, builder: Any, place: Any) -> tuple[Any, Any]:
        """The place before one, and whether there is one; else the first."""
        first = builder.icmp_signed("==", place, place.type(0))
        return builder.select(first, place, builder.sub(place, place.type(1))), first

    def rows(self, builder: Any, c: Any, count: int) -> dict[Expression, Any]:
        """Points of some rows in a channel, and the one before them: 0 before the first row."""
        before, first = self._before(builder, self.i)
        places = [before, *(builder.add(self.i, c.type(k)) for k in range(count))]
        entries = [builder.add(builder.mul(place, self.stride), c) for place in places]
        found = [builder.load(builder.gep(self.x, [entry])) for entry in entries]
        found[0] = builder.select(first, ir.Constant(self.writer.number, 0.0), found[0])
        return {Expression("x", (k,)): point for k, point in enumerate(found)}

    def rows_of_each(self, builder: Any, count: int, at: Any) -> dict[Expression, Any]:
        """Points of some rows in some lanes, each of which has a series of one channel."""
        lines = [builder.add(self.i, self.i.type(k)) for k in range(count)]
        found = [self.load(builder, self.x, line, at) for line in lines]
        return {Expression(POINT_OF_EACH, (k + 1,)): point for k, point in enumerate(found)}

    def of_column(self, builder: Any, c: Any, j: Any, at: Any) -> dict[Expression, Any]:
        """Points of a column in a channel, in some lanes."""
        line = builder.add(builder.mul(builder.add(self.column, j), self.stride), c)
        return {POINT: self.load(builder, self.y, line, at)}

    def before_column(self, builder: Any, c: Any, j: Any, at: Any) -> dict[Expression, Any]:
        """Points of the column before it: 0 before the first."""
        before, first = self._before(builder, builder.add(self.column, j))
        line = builder.add(builder.mul(before, self.stride), c)
        zero = ir.Constant(self.writer.vector, [0.0] * self.writer.vector.count)
        found = builder.select(first, zero, self.load(builder, self.y, line, at))
        return {POINT_BEFORE: found}


def add_channels(
    builder: Any, writer: Writer, n_channels: Any, terms: list[Expression], points: Any, size: int
) -> tuple[Any, list[dict[Expression, Any]]]:
    """Write a loop that adds up prices over all channels, in their order.

    `points` writes the points in a channel: those of the rows, and those of a column for each of
    `size` vectors. Returns a builder that goes on behind the loop, and the sums for each vector; or
    of prices of the rows alone, where size is 0, the one sum of all lanes.
    """
    before = builder.block
    channel, added = map(builder.function.append_basic_block, ("channel", "added"))
    builder.branch(channel)
    inside, index = ir.IRBuilder(channel), ir.IntType(64)
    c = inside.phi(index)
    kind = writer.vector if size else writer.number
    # a number to which others are added without a change of their bits
    zero = ir.Constant(kind, [-0.0] * writer.vector.count if size else -0.0)
    totals = [{term: inside.phi(kind) for term in terms} for _ in range(max(size, 1))]
    fixed, columns = points(inside, c)
    own = Writer(builder.module, inside, inside, writer.number, writer.vector.count)
    own.fixed.update(writer.fixed | fixed)
    sums: list[dict[Expression, Any]] = []
    for known, total in zip(columns or [own.fixed], totals, strict=True):
        sums.append({})
        for term, phi in total.items():
            (price,) = term.args
            value = own.converted(inside, own.write(price, known))
            after = inside.fadd(phi, own.spread(inside, value) if size else value)
            phi.add_incoming(zero, before)
            phi.add_incoming(after, channel)
            sums[-1][term] = after
    following = inside.add(c, index(1))
    c.add_incoming(index(0), before)
    c.add_incoming(following, channel)
    inside.cbranch(inside.icmp_signed("<", following, n_channels), channel, added)
    return ir.IRBuilder(added), sums
