"""Four rows of cells at once, in registers, for every policy that is an expression (`terms`).

Loops over lanes in Numba read and write the cells before for each two cells. Here the cells on the
left of four rows stay in registers while columns go by, for some lanes at a time; a column reads
its points and the cells above the four rows, and writes the last row::

        diagonal  up
       left[0] -> .
       left[1] -> .
       left[2] -> .
       left[3] -> .  -> row of the column

What a cell costs is an expression in its points and those before. A part of it that looks at the
column before alone, such as the difference of the two points before, is not computed again, but
kept from that column, where the next row, or the same one, has it as a part of its own.

Only the terms of the compiler keep so much in registers. Each cell adds the same numbers in the
same order as loops over lanes do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from .cell_types import CellType, class_of
from .terms import Expression, expression_of

__all__ = ["ROWS", "fill_rows", "fill_rows_of_each", "has_rows"]

#: Rows that are filled at once.
ROWS = 4
#: Vectors of lanes that go side by side: one has to wait for its own cells.
VECTORS = 2

#: Cells before one, and the sum or the least of them that `Cell.join` gets.
_BEFORE = Expression("before")
_POINT, _POINT_BEFORE = Expression("y"), Expression("y_before")
#: What differs from lane to lane: these, and points of rows where each lane has its own ("own").
_OF_LANES = frozenset(["y", "y_before", "before", "own"])


class Costs(NamedTuple):
    """Expressions for the rows of a column.

    Attributes
    ----------
    steps : list of tuple of Expression
        Of uneven policies the costs of the three steps into the cell of each row.
    values : list of Expression
        Of others the value of the cell of each row, by the least of the cells before (`_BEFORE`).
    """

    steps: list[tuple[Expression, ...]]
    values: list[Expression]


@cache
def costs_of(
    kind: Any, names: tuple[str, ...], zero: tuple[str, ...] = (), point: str = "x"
) -> Costs | None:
    """Return the expressions of a policy, with 0 for some fields; None if it has none.

    `point` is the name of a point of a row.
    """
    costs = Costs([], [])
    try:
        for k in range(ROWS):
            # the point before the first row is number 0
            x_before, x, offset = (
                Expression(point, (k,)),
                Expression(point, (k + 1,)),
                Expression("offset", (k,)),
            )
            if not kind.uneven:
                cost = expression_of(kind, names, zero, "term", x, _POINT)
                costs.values.append(expression_of(kind, names, zero, "join", cost, _BEFORE))
                continue
            prices = (
                expression_of(kind, names, zero, "match", x, _POINT, x_before, _POINT_BEFORE),
                expression_of(kind, names, zero, "down", x, x_before, _POINT),
                expression_of(kind, names, zero, "right", _POINT, _POINT_BEFORE, x),
            )
            costs.steps.append(expression_of(kind, names, zero, "steps", *prices, offset))
    except (TypeError, AttributeError, ValueError, NumbaError):
        # the last one comes of compiled functions of the user's, which take numbers alone
        return None
    return costs


def has_rows(cell: Any) -> bool:
    """Whether there is a loop for four rows of a policy: in plain Python there is none."""
    return False


def _names_of(cell: CellType) -> tuple[str, ...]:
    return tuple(name for name, _ in cell.members)


def _lacks_rows(cell: CellType) -> bool:
    kind: Any = class_of(cell)
    numbers = types.float64, types.float32, types.int64
    known = all(
        member in numbers
        or (isinstance(member, types.Array) and (member.ndim, member.layout) == (1, "C"))
        for _, member in cell.members
    )
    return kind.own or not known or costs_of(kind, _names_of(cell)) is None


@overload(has_rows)
def _has_rows(cell):
    if _lacks_rows(cell):
        return lambda cell: False
    return lambda cell: True


class _Writer:
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
        if not term.symbols & _OF_LANES:
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


def _kept(terms: Iterable[Expression]) -> list[Expression]:
    """The largest parts of expressions that look at the column before alone."""
    found: dict[Expression, None] = {}

    def look(term: Expression) -> None:
        if "y_before" in term.symbols and not term.symbols & {"y", "offset"}:
            found[term] = None
            return
        for each in term.args:
            if isinstance(each, Expression):
                look(each)

    for term in terms:
        look(term)
    return list(found)


def _emit_rows(
    module: Any, policy: str, members: Any, costs: Costs, single: bool, banded: bool, own: bool
) -> Any:
    """Emit the loop of `fill_rows`: one function, since its parts name values of the same blocks.

    With `banded` cells become infinite that are farther from the diagonal than the radius of their
    lane. With `own` each lane has points of rows of its own, and no other is looked at.
    """
    index = ir.IntType(64)
    number, size, lanes = (ir.FloatType(), 16, 64) if single else (ir.DoubleType(), 8, 32)
    vector, data = ir.VectorType(number, size), number.as_pointer()
    # places in lanes, as wide as the points
    places = ir.VectorType(ir.IntType(32) if single else index, size)
    name = f"skts_rows_{policy}_{single:d}{banded:d}{own:d}"
    if name in module.globals:
        return module.globals[name]
    given = [data] * 4 + [index.as_pointer(), index, index]
    points = [data] if own else [number] * (ROWS + 1)
    given += points + [kind for _, kind in members]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), given), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    columns, row, corner, left, radius, width, offset, *rest = function.args
    begin, group, column, after, done = map(
        function.append_basic_block, ("begin", "lanes", "column", "after", "done")
    )
    outside, builder = ir.IRBuilder(begin), ir.IRBuilder(group)
    inside = ir.IRBuilder(column)
    writer = _Writer(module, outside, inside, number, size)
    for k, value in enumerate(() if own else rest[: len(points)]):
        writer.fixed[Expression("x", (k,))] = value
    for (field, _), value in zip(members, rest[len(points) :], strict=True):
        writer.fixed[Expression("field", (field,))] = value
    kept = _kept(each for steps in costs.steps for each in steps)

    def place(builder: Any, array: Any, line: Any, at: Any) -> Any:
        entry = builder.add(builder.mul(line, index(lanes)), at)
        return builder.bitcast(builder.gep(array, [entry]), vector.as_pointer())

    def load(builder: Any, array: Any, line: Any, at: Any) -> Any:
        return builder.load(place(builder, array, line, at), align=4)

    # before the first column
    first = builder.phi(index)
    first.add_incoming(index(0), begin)
    at = [builder.add(first, index(v * size)) for v in range(VECTORS)]
    starts, rows = [], []
    writer.inside = builder
    for lane in at:
        known = {_POINT: load(builder, columns, index(0), lane)} if kept else {}
        rows.append(
            {
                Expression("own", (k + 1,)): load(builder, rest[0], index(k), lane)
                for k in range(ROWS)
            }
            if own
            else {}
        )
        lefts = [load(builder, left, index(k), lane) for k in range(ROWS)]
        held = [writer.lanes(each.replaced(_POINT_BEFORE, _POINT), known) for each in kept]
        starts.append([load(builder, corner, index(0), lane), *lefts, *held])
    radii = []
    for lane in at if banded else ():
        some = builder.gep(radius, [lane])
        some = builder.bitcast(some, ir.VectorType(index, size).as_pointer())
        some = builder.load(some, align=8)
        radii.append(builder.trunc(some, places) if single else some)
    builder.branch(column)

    j = inside.phi(index)
    values = [[inside.phi(vector) for _ in one] for one in starts]
    following = inside.add(j, index(1))
    writer.inside = builder = inside
    apart, infinite = [], ir.Constant(vector, [float("inf")] * size)
    for k in range(ROWS):
        place_of = inside.sub(inside.add(offset, j), index(k))
        writer.shared[Expression("offset", (k,))] = place_of
        if banded:
            far = inside.select(
                inside.icmp_signed("<", place_of, index(0)), inside.neg(place_of), place_of
            )
            far = inside.trunc(far, places.element) if single else far
            apart.append(writer.spread(inside, far))

    def lesser(value: Any, best: Any) -> Any:
        return inside.select(inside.fcmp_ordered("<", value, best), value, best)

    ends = []
    for v, (lane, (diagonal, *others)) in enumerate(zip(at, values, strict=True)):
        lefts, up = others[:ROWS], load(inside, row, following, lane)
        known = {_POINT: load(inside, columns, following, lane), **rows[v]}
        known.update(zip(kept, others[ROWS:], strict=True))
        above, found = up, []
        for k in range(ROWS):
            if costs.steps:
                across, down, right = (writer.lanes(each, known) for each in costs.steps[k])
                best = inside.fadd(across, diagonal)
                best = lesser(inside.fadd(down, above), best)
                best = lesser(inside.fadd(right, lefts[k]), best)
            else:
                known[_BEFORE] = lesser(lefts[k], lesser(above, diagonal))
                best = writer.lanes(costs.values[k], known)
                known = {term: one for term, one in known.items() if "before" not in term.symbols}
            if banded:
                beyond = inside.icmp_signed(">", apart[k], radii[v])
                best = inside.select(beyond, infinite, best)
            diagonal, above = lefts[k], best
            found.append(best)
        inside.store(above, place(inside, row, following, lane), align=4)
        held = [writer.lanes(each.replaced(_POINT_BEFORE, _POINT), known) for each in kept]
        ends.append([up, *found, *held])
    j.add_incoming(index(0), group)
    j.add_incoming(following, column)
    for phis, one, other in zip(values, starts, ends, strict=True):
        for phi, start, end in zip(phis, one, other, strict=True):
            phi.add_incoming(start, group)
            phi.add_incoming(end, column)
    inside.cbranch(inside.icmp_signed("<", following, width), column, after)
    outside.branch(group)

    builder = ir.IRBuilder(after)
    for lane, end in zip(at, ends, strict=True):
        builder.store(end[0], place(builder, corner, index(0), lane), align=4)
        for k in range(ROWS):
            builder.store(end[1 + k], place(builder, left, index(k), lane), align=4)
    new = builder.add(first, index(VECTORS * size))
    first.add_incoming(new, after)
    builder.cbranch(builder.icmp_signed("<", new, index(lanes)), group, done)
    ir.IRBuilder(done).ret_void()
    return function


@intrinsic
def _fill(
    typing_context, cell, x, columns, first, width, offset, inner, row, diagonal, left, radius
):  # fmt: skip
    """As `fill_rows`, of the points of the rows and the one before, or those of each lane."""
    place = types.int64
    signature = types.void(
        cell, x, columns, place, place, place, types.boolean, row, diagonal, left, radius
    )  # fmt: skip

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        policy, names = class_of(kind), _names_of(kind)
        proxy = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
        number, index = context.get_value_type(signature.args[2].dtype), ir.IntType(64)
        members, fields = [], []
        for name, member in kind.members:
            value = getattr(proxy, name)
            if isinstance(member, types.Array):
                value = make_array(member)(context, builder, value).data
            members.append((name, value.type))
            fields.append(value)

        def data(at):
            return make_array(signature.args[at])(context, builder, args[at]).data

        single = signature.args[2].dtype == types.float32
        lanes = index(64 if single else 32)
        start = builder.mul(args[3], lanes)
        own = isinstance(signature.args[1], types.Array)
        points = [data(1)] if own else cgutils.unpack_tuple(builder, args[1])
        given = [builder.gep(data(2), [start]), builder.gep(data(7), [start]), data(8), data(9)]
        given += [data(10), args[4], args[5], *points, *fields]
        digest = hashlib.sha256(kind.policy.encode()).hexdigest()[:12]

        def call(zero):
            costs = costs_of(policy, names, zero, "own" if own else "x")
            title = "_".join([digest, *zero])
            with builder.if_else(args[6]) as branches:
                for branch, banded in zip(branches, (False, True), strict=True):
                    with branch:
                        loop = _emit_rows(
                            builder.module, title, members, costs, single, banded, own
                        )
                        builder.call(loop, given)

        if policy.optional is None:
            call(())
        else:
            value = fields[names.index(policy.optional)]
            absent = builder.fcmp_unordered("==", value, ir.Constant(number, 0.0))
            with builder.if_else(absent) as (without, with_it):
                with without:
                    call((policy.optional,))
                with with_it:
                    call(())
        return context.get_dummy_value()

    return signature, codegen


def fill_rows(
    cell: Any, x: Any, i: int, columns: Any, first: int, width: int, offset: int, inner: bool,
    row: Any, diagonal: Any, left: Any, radius: Any,
) -> None:  # fmt: skip
    """Fill ROWS rows from row i on in some columns.

    Parameters
    ----------
    cell : Cell
        A policy of which `has_rows` says that it has such a loop.
    x : ndarray of shape (n, 1)
        The series of the rows.
    i : int
        The first of them.
    columns : ndarray of shape (..., lanes)
        Points of columns; entry ``first`` is the one before the first that is filled.
    first, width, offset : int
        Where the columns begin, how many they are, and the place of the first of them less i.
    inner : bool
        Whether all cells of these columns are in the bands of all lanes.
    row : ndarray of shape (..., lanes)
        Cells above the first row; entry ``first + 1`` is that of the first column. Receives those
        of the last row.
    diagonal : ndarray of shape (lanes,)
        The cell before the first on the diagonal; receives that of the column after the last.
    left : ndarray of shape (ROWS, lanes)
        Cells on the left of the first column; receives those of the last column.
    radius : ndarray of shape (lanes,)
        Half widths of the bands.
    """
    raise NotImplementedError


@overload(fill_rows)
def _fill_rows(cell, x, i, columns, first, width, offset, inner, row, diagonal, left, radius):
    if _lacks_rows(cell):

        def nothing(
            cell, x, i, columns, first, width, offset, inner, row, diagonal, left, radius
        ):  # fmt: skip
            pass

        return nothing

    def fill(cell, x, i, columns, first, width, offset, inner, row, diagonal, left, radius):
        before = x[i - 1, 0] if i > 0 else x.dtype.type(0)
        points = before, x[i, 0], x[i + 1, 0], x[i + 2, 0], x[i + 3, 0]
        _fill(cell, points, columns, first, width, offset, inner, row, diagonal, left, radius)

    return fill


def fill_rows_of_each(
    cell: Any, x: Any, i: int, columns: Any, first: int, width: int, offset: int, inner: bool,
    row: Any, diagonal: Any, left: Any, radius: Any,
) -> None:  # fmt: skip
    """Fill ROWS rows from row i on as `fill_rows` does, where each lane has a series of its own.

    `x` is of shape (n, lanes); and the policy is one whose steps all cost the same.
    """
    raise NotImplementedError


@overload(fill_rows_of_each)
def _fill_rows_of_each(
    cell, x, i, columns, first, width, offset, inner, row, diagonal, left, radius
):  # fmt: skip
    def fill(cell, x, i, columns, first, width, offset, inner, row, diagonal, left, radius):
        _fill(cell, x[i:], columns, first, width, offset, inner, row, diagonal, left, radius)

    return fill
