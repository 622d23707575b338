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
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload

from .cell_types import CellType, class_of
from .terms import Expression, expression_of
from .writers import (
    OF_LANES,
    POINT,
    POINT_BEFORE,
    POINT_OF_EACH,
    Points,
    Writer,
    add_channels,
)

__all__ = ["ROWS", "fill_rows", "has_rows"]

#: Rows that are filled at once.
ROWS = 4
#: Vectors of lanes that go side by side: one has to wait for its own cells.
VECTORS = 2

#: Cells before one, and the sum or the least of them that `Cell.join` gets.
_BEFORE = Expression("before")
#: A number of one of the series, which no expression may look at.
_OWN = Expression("own")


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
    kind: Any,
    names: tuple[str, ...],
    zero: tuple[str, ...] = (),
    *,
    many: bool = False,
    point: str = "x",
) -> Costs | None:
    """Return the expressions of a policy, with 0 for some fields; None if it has none.

    With `many` channels prices are sums over these. `point` is the name of a point of a row.
    """
    costs = Costs([], [])
    given = kind, names, zero

    def price(method: str, *points: Expression) -> Expression:
        found = expression_of(*given, method, *points)
        return Expression("sum", (found,)) if many and not found.is_zero else found

    try:
        for k in range(ROWS):
            # the point before the first row is number 0
            x_before, x, offset = (
                Expression(point, (k,)),
                Expression(point, (k + 1,)),
                Expression("offset", (k,)),
            )
            if not kind.uneven:
                cost = price("term", x, POINT)
                costs.values.append(expression_of(*given, "join", cost, _BEFORE))
                continue
            if kind.own:
                match = price("match", x, POINT, _OWN, _OWN)
                if not kind.weighted or "own" in match.symbols:
                    return None
                cost = Expression("multiply", (match, Expression("factor", (k,))))
                costs.steps.append((cost, cost, cost))
                continue
            prices = (
                price("match", x, POINT, x_before, POINT_BEFORE),
                price("down", x, x_before, POINT),
                price("right", POINT, POINT_BEFORE, x),
            )
            costs.steps.append(expression_of(*given, "steps", *prices, offset))
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
    return not known or costs_of(kind, _names_of(cell)) is None


@overload(has_rows)
def _has_rows(cell):
    if _lacks_rows(cell):
        return lambda cell: False
    return lambda cell: True


def _parts(terms: Iterable[Expression], wanted: Callable[[Expression], bool]) -> list[Expression]:
    """The largest parts of expressions of which something holds, each once."""
    found: dict[Expression, None] = {}

    def look(term: Expression) -> None:
        if wanted(term):
            found[term] = None
            return
        for each in term.args:
            if isinstance(each, Expression):
                look(each)

    for term in terms:
        look(term)
    return list(found)


def _is_kept(term: Expression) -> bool:
    """Whether a part of an expression looks at the column before alone."""
    return "y_before" in term.symbols and not term.symbols & {"y", "offset"}


class _Kind(NamedTuple):
    """Properties of a loop that are known when it is compiled.

    Attributes
    ----------
    policy : str
        Name of the policy, and of fields that are 0.
    single : bool
        Whether points are in float32.
    rows : int
        Rows, 1 or `ROWS`.
    banded : bool
        Whether cells become infinite that are farther from the diagonal than the radius of their
        lane.
    many : bool
        Whether there are several channels.
    each : bool
        Whether each lane has a series of its own for the rows.
    """

    policy: str
    single: bool
    rows: int
    banded: bool
    many: bool
    each: bool

    @property
    def name(self) -> str:
        """Name of the function."""
        known = f"{self.single:d}{self.rows}{self.banded:d}{self.many:d}{self.each:d}"
        return f"skts_rows_{self.policy}_{known}"


def _emit_rows(module: Any, kind: _Kind, members: Any, costs: Costs) -> Any:
    """Emit the loop of `fill_rows`: one function, as its parts name values of the same blocks."""
    if kind.name in module.globals:
        return module.globals[kind.name]
    index, rows, single = ir.IntType(64), kind.rows, kind.single
    number, size, lanes = (ir.FloatType(), 16, 64) if single else (ir.DoubleType(), 8, 32)
    vector, data = ir.VectorType(number, size), number.as_pointer()
    # places in lanes, as wide as the points
    places = ir.VectorType(ir.IntType(32) if single else index, size)
    given = [data] * 6 + [index.as_pointer()] + [index] * 5 + [each for _, each in members]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), given), kind.name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    x, y, row, corner, left, factors, radius, i, column, width, stride, n_channels, *rest = (
        function.args
    )
    begin, group, columns, after, done = map(
        function.append_basic_block, ("begin", "lanes", "column", "after", "done")
    )
    outside, builder, inside = map(ir.IRBuilder, (begin, group, columns))
    writer = Writer(module, outside, inside, number, size)
    for (field, _), value in zip(members, rest, strict=True):
        writer.fixed[Expression("field", (field,))] = value
    points = Points(writer, lanes, x, i, y, column, stride)
    place, load = points.place, points.load
    terms = [each for step in costs.steps[:rows] for each in step] + costs.values[:rows]
    sums = _parts(terms, lambda term: term.kind == "sum")
    of_columns = [each for each in sums if each.symbols & OF_LANES]
    weighted = any("factor" in each.symbols for each in terms)
    kept = [] if kind.many else _parts(terms, _is_kept)
    if kind.each:
        assert not kind.many and not costs.steps
    elif not kind.many:
        writer.fixed.update(points.rows(outside, index(0), rows))
    elif len(of_columns) < len(sums):
        of_rows = [each for each in sums if each not in of_columns]

        def points_of_rows(builder: Any, c: Any) -> Any:
            return points.rows(builder, c, rows), []

        outside, (totals,) = add_channels(outside, writer, n_channels, of_rows, points_of_rows, 0)
        writer.outside = outside
        writer.fixed.update(totals)

    # before the first column
    first = builder.phi(index)
    at = [builder.add(first, index(v * size)) for v in range(VECTORS)]
    starts, of_rows_of_each = [], []
    writer.inside = builder
    for lane in at:
        known = {}
        of_rows_of_each.append(points.rows_of_each(builder, rows, lane) if kind.each else {})
        if kept:
            before = points.before_column(builder, index(0), index(0), lane)
            known[POINT] = before[POINT_BEFORE]
        lefts = [load(builder, left, index(k), lane) for k in range(rows)]
        held = [writer.lanes(each.replaced(POINT_BEFORE, POINT), known) for each in kept]
        starts.append([load(builder, corner, index(0), lane), *lefts, *held])
    radii = []
    for lane in at if kind.banded else ():
        some = builder.gep(radius, [lane])
        some = builder.bitcast(some, ir.VectorType(index, size).as_pointer())
        some = builder.load(some, align=8)
        radii.append(builder.trunc(some, places) if single else some)
    builder.branch(columns)

    j = inside.phi(index)
    values = [[inside.phi(vector) for _ in one] for one in starts]
    known_of: list[dict[Expression, Any]] = [{} for _ in at]
    if of_columns:

        def points_of_column(builder: Any, c: Any) -> Any:
            known = [points.of_column(builder, c, j, lane) for lane in at]
            for lane, one in zip(at, known, strict=True):
                if any("y_before" in each.symbols for each in of_columns):
                    one.update(points.before_column(builder, c, j, lane))
            return points.rows(builder, c, rows), known

        inside, known_of = add_channels(
            inside, writer, n_channels, of_columns, points_of_column, VECTORS
        )
    following = inside.add(j, index(1))
    writer.inside = inside
    apart, infinite = [], ir.Constant(vector, [float("inf")] * size)
    for k in range(rows):
        offset = inside.sub(inside.sub(inside.add(column, j), i), index(k))
        writer.shared[Expression("offset", (k,))] = offset
        negative = inside.icmp_signed("<", offset, index(0))
        apart.append(inside.select(negative, inside.neg(offset), offset))

    def lesser(value: Any, best: Any) -> Any:
        return inside.select(inside.fcmp_ordered("<", value, best), value, best)

    ends = []
    for v, (lane, (diagonal, *others)) in enumerate(zip(at, values, strict=True)):
        lefts, up = others[:rows], load(inside, row, following, lane)
        known = known_of[v]
        if not kind.many:
            known.update(points.of_column(inside, index(0), j, lane))
        known.update(of_rows_of_each[v])
        known.update(zip(kept, others[rows:], strict=True))
        above, found = up, []
        for k in range(rows):
            if weighted:
                known[Expression("factor", (k,))] = load(inside, factors, apart[k], lane)
            if costs.steps:
                across, down, right = (writer.lanes(each, known) for each in costs.steps[k])
                best = inside.fadd(across, diagonal)
                best = lesser(inside.fadd(down, above), best)
                best = lesser(inside.fadd(right, lefts[k]), best)
            else:
                known[_BEFORE] = lesser(lefts[k], lesser(above, diagonal))
                best = writer.lanes(costs.values[k], known)
                known = {term: one for term, one in known.items() if "before" not in term.symbols}
            if kind.banded:
                far = inside.trunc(apart[k], places.element) if single else apart[k]
                beyond = inside.icmp_signed(">", writer.spread(inside, far), radii[v])
                best = inside.select(beyond, infinite, best)
            diagonal, above = lefts[k], best
            found.append(best)
        inside.store(above, place(inside, row, following, lane), align=4)
        held = [writer.lanes(each.replaced(POINT_BEFORE, POINT), known) for each in kept]
        ends.append([up, *found, *held])
    j.add_incoming(index(0), group)
    j.add_incoming(following, inside.block)
    for phis, one, other in zip(values, starts, ends, strict=True):
        for phi, start, end in zip(phis, one, other, strict=True):
            phi.add_incoming(start, group)
            phi.add_incoming(end, inside.block)
    inside.cbranch(inside.icmp_signed("<", following, width), columns, after)
    first.add_incoming(index(0), outside.block)
    outside.branch(group)

    builder = ir.IRBuilder(after)
    for lane, end in zip(at, ends, strict=True):
        builder.store(end[0], place(builder, corner, index(0), lane), align=4)
        for k in range(rows):
            builder.store(end[1 + k], place(builder, left, index(k), lane), align=4)
    new = builder.add(first, index(VECTORS * size))
    first.add_incoming(new, after)
    builder.cbranch(builder.icmp_signed("<", new, index(lanes)), group, done)
    ir.IRBuilder(done).ret_void()
    return function


@intrinsic
def _fill(
    typing_context,
    cell, x, i, y, column, width, many, one, inner, row, first, diagonal, left, radius, factors,
):  # fmt: skip
    """As `fill_rows`; `many` is a type: none, or a boolean."""
    place = types.int64
    signature = types.void(
        cell, x, place, y, place, place, many, types.boolean, types.boolean, row, place, diagonal,
        left, radius, factors,
    )  # fmt: skip

    def codegen(context, builder, signature, args):
        kind = signature.args[0]
        policy, names = class_of(kind), _names_of(kind)
        proxy = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
        number, index = context.get_value_type(signature.args[1].dtype), ir.IntType(64)
        members, fields = [], []
        for name, member in kind.members:
            value = getattr(proxy, name)
            if isinstance(member, types.Array):
                value = context.make_array(member)(context, builder, value).data
            members.append((name, value.type))
            fields.append(value)

        def array(at):
            return context.make_array(signature.args[at])(context, builder, args[at])

        _, channels, *lanes = cgutils.unpack_tuple(builder, array(1).shape)
        single, several = signature.args[1].dtype == types.float32, many != types.none
        start = builder.mul(args[10], index(64 if single else 32))
        given = [array(1).data, array(3).data, builder.gep(array(9).data, [start])]
        given += [array(11).data, array(12).data, array(14).data, array(13).data]
        own = index(int(policy.own))
        given += [args[2], args[4], args[5], channels, builder.sub(channels, own), *fields]
        digest = hashlib.sha256(kind.policy.encode()).hexdigest()[:12]

        def call(zero):
            point = POINT_OF_EACH if lanes else "x"
            costs = costs_of(policy, names, zero, many=several, point=point)
            title = "_".join([digest, *zero])

            def loop(rows, banded):
                emitted = _Kind(title, single, rows, banded, several, bool(lanes))
                builder.call(_emit_rows(builder.module, emitted, members, costs), given)

            with builder.if_else(args[7]) as (alone, together):
                with alone:
                    loop(1, True)
                with together, builder.if_else(args[8]) as (within, across):
                    with within:
                        loop(ROWS, False)
                    with across:
                        loop(ROWS, True)

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
    cell: Any, x: Any, i: int, y: Any, column: int, width: int, many: Any, one: bool, inner: bool,
    row: Any, first: int, diagonal: Any, left: Any, radius: Any, factors: Any,
) -> None:  # fmt: skip
    """Fill ROWS rows, or one, from row i on in some columns.

    Parameters
    ----------
    cell : Cell
        A policy of which `has_rows` says that it has such a loop.
    x : ndarray of shape (n, n_channels) or (n, 1, lanes)
        The series of the rows, or one for each lane; such policies have steps that cost the same.
    i : int
        The first of them.
    y : ndarray of shape (m, n_channels, lanes)
        Those of the columns.
    column, width : int
        The first column, and how many are filled.
    many : bool or None
        Whether there are several channels, as a type; numbers of the series are none.
    one : bool
        Whether one row is filled.
    inner : bool
        Whether all cells of these columns are in the bands of all lanes.
    row : ndarray of shape (..., lanes)
        Cells above the first row; entry ``first + 1`` is that of the first column. Receives those
        of the last row.
    first : int
        Where the columns begin there.
    diagonal : ndarray of shape (lanes,)
        The cell before the first on the diagonal; receives that of the column after the last.
    left : ndarray of shape (ROWS, lanes)
        Cells on the left of the first column; receives those of the last column.
    radius : ndarray of shape (lanes,)
        Half widths of the bands.
    factors : ndarray of shape (..., lanes)
        Of `weighted` policies by how far a cell is away from the diagonal; others have none.
    """
    raise NotImplementedError


@overload(fill_rows)
def _fill_rows(
    cell, x, i, y, column, width, many, one, inner, row, first, diagonal, left, radius, factors
):  # fmt: skip
    if _lacks_rows(cell):

        def nothing(
            cell, x, i, y, column, width, many, one, inner, row, first, diagonal, left, radius,
            factors,
        ):  # fmt: skip
            pass

        return nothing

    def fill(
        cell, x, i, y, column, width, many, one, inner, row, first, diagonal, left, radius, factors
    ):  # fmt: skip
        _fill(
            cell, x, i, y, column, width, many, one, inner, row, first, diagonal, left, radius,
            factors,
        )  # fmt: skip

    return fill
