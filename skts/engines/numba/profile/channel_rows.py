r"""Rows of a join of many channels, walked down neighbouring diagonals in vectors.

A group of LANES pairs lies beside each other in a vector. In each channel its covariances go down
ROWS rows in registers, from which they are read and written once, as are the columns in the caches
from which a row of a block takes them::

            diagonals
           0 ... 15 | 16 ... 31 | ...      first channel 0, 1, ... of one group, each down all rows,
    row 0  \ ...  \ |                      then the sums of its rows,
    row 1   \ ...  \|                      then the next group
    ...

A network of comparators, each a minimum and a maximum of two vectors, orders the channels of all
pairs of the group at once; then the first, the first two, ... are added and compared with what
either window of the pair needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...core.constants import MOST_FINITE
from ...core.order import network_of

__all__ = ["LANES", "ROWS", "walk_rows"]

#: Pairs of a vector.
LANES = 16
#: Rows that are walked at once: what is read of columns is then in the first-level cache, and lists
#: of needs are not yet old.
ROWS = 8
#: Channels that one vector each holds: as many as keep to the registers of a processor.
MOST_IN_REGISTERS = 8
#: The factors of a row: two of its step, its scale and alpha.
FACTORS = 4
#: Bytes of a vector, at whose multiples distances lie.
ALIGNED = 4 * LANES

_SINGLE, _DOUBLE, _INDEX = ir.FloatType(), ir.DoubleType(), ir.IntType(64)
_WORD, _FLAGS, _BIT = ir.IntType(32), ir.IntType(LANES), ir.IntType(1)
_VALUES, _COVARIANCES = ir.VectorType(_SINGLE, LANES), ir.VectorType(_DOUBLE, LANES)
_SIGNS = ir.VectorType(_WORD, LANES)
_NOTHING = ir.Constant(_VALUES, [0.0] * LANES)
#: Terms are finite, and contracted as those of the walk of one channel are.
_FINITE = ("nnan", "ninf", "nsz", "contract")
#: Arguments of the emitted function, each with its type.
_ARGUMENTS = {
    **dict.fromkeys(("before", "after", "own"), _DOUBLE.as_pointer()),
    **dict.fromkeys(("trail", "lead", "scale", "alpha"), _DOUBLE.as_pointer()),
    **dict.fromkeys(("held", "values", "first_sums", "need", "needs"), _SINGLE.as_pointer()),
    "flags": _FLAGS.as_pointer(),
    **dict.fromkeys(("order", "network"), _INDEX.as_pointer()),
    **dict.fromkeys(("pitch", "pitch_needs", "width", "n_channels", "included"), _INDEX),
    **dict.fromkeys(("n_comparators", "rows"), _INDEX),
    "worst": _BIT,
}


class _Emitted:
    """The function that is being emitted: its arguments by name, and terms of its vectors."""

    def __init__(self, module: Any, name: str) -> None:
        kind = ir.FunctionType(_INDEX, list(_ARGUMENTS.values()))
        self.function = ir.Function(module, kind, name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.given = dict(zip(_ARGUMENTS, self.function.args, strict=True))
        self.builder = ir.IRBuilder(self.function.append_basic_block("begin"))
        of_values = ir.FunctionType(_VALUES, [_VALUES])
        self.root, self.magnitude = (
            module.declare_intrinsic(f"llvm.{one}.v{LANES}f32", fnty=of_values)
            for one in ("sqrt", "fabs")
        )
        builder, given = self.builder, self.given
        self.n_others = builder.sub(given["n_channels"], given["included"])
        self.n_sums = builder.add(self.n_others, _INDEX(1))
        # room for one vector more is there
        place = builder.add(builder.ptrtoint(given["held"], _INDEX), _INDEX(ALIGNED - 1))
        place = builder.and_(place, _INDEX(-ALIGNED))
        self.held = builder.inttoptr(place, _VALUES.as_pointer())

    def at(self, row: Any, count: Any, more: Any) -> Any:
        """Return the place of a thing in a row of so many."""
        return self.builder.add(self.builder.mul(row, count), more)

    def load(self, data: Any, place: Any, kind: ir.VectorType = _VALUES) -> Any:
        """Return the numbers from a place on."""
        where = self.builder.gep(data, [place])
        align = 4 if kind is _VALUES else 8
        return self.builder.load(self.builder.bitcast(where, kind.as_pointer()), align=align)

    def store(self, vector: Any, data: Any, place: Any) -> None:
        """Write numbers from a place on."""
        where, align = self.builder.gep(data, [place]), 4 if vector.type is _VALUES else 8
        self.builder.store(
            vector, self.builder.bitcast(where, vector.type.as_pointer()), align=align
        )

    def spread(self, data: Any, place: Any, kind: ir.VectorType = _VALUES) -> Any:
        """Return a number in all lanes."""
        value = self.builder.load(self.builder.gep(data, [place]))
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), value, _WORD(0))
        return self.builder.shuffle_vector(one, one, ir.Constant(_SIGNS, [0] * LANES))

    def loop(
        self, start: Any, stop: Any, values: list[Any], body: Callable[..., list[Any]]
    ) -> list[Any]:
        """Emit a loop: `body` takes the counter and values, and returns these after a round."""
        builder, before = self.builder, self.builder.block
        again, done = (self.function.append_basic_block(name) for name in ("loop", "done"))
        builder.cbranch(builder.icmp_signed("<", start, stop), again, done)
        builder.position_at_end(again)
        count = builder.phi(_INDEX)
        held = [builder.phi(value.type) for value in values]
        after = body(count, *held)
        following = builder.add(count, _INDEX(1))
        last = builder.block
        builder.cbranch(builder.icmp_signed("<", following, stop), again, done)
        ends = []
        for phi, first, end in zip(
            [count, *held], [start, *values], [following, *after], strict=True
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(end, last)
        builder.position_at_end(done)
        for first, end in zip(values, after, strict=True):
            phi = builder.phi(end.type)
            phi.add_incoming(first, before)
            phi.add_incoming(end, last)
            ends.append(phi)
        return ends

    def lesser(self, x: Any, y: Any) -> Any:
        """Return the lesser of two vectors."""
        less = self.builder.fcmp_ordered("<", x, y, flags=_FINITE)
        return self.builder.select(less, x, y)

    def greater(self, x: Any, y: Any) -> Any:
        """Return the greater of two vectors."""
        less = self.builder.fcmp_ordered("<", x, y, flags=_FINITE)
        return self.builder.select(less, y, x)


def _walk_channel(emitted: _Emitted, place: Any, first: Any) -> None:
    """Go down all rows in a channel of a group, and estimate the distances of its pairs."""
    builder, given = emitted.builder, emitted.given
    c = builder.load(builder.gep(given["order"], [place]))
    at = emitted.at(c, given["width"], first)
    columns = [
        builder.gep(given[name], [emitted.at(c, given["pitch"], first)])
        for name in ("trail", "lead", "scale", "alpha")
    ]
    factors = builder.gep(given["own"], [builder.mul(c, _INDEX(ROWS * FACTORS))])

    def step(row: Any, covariance: Any) -> list[Any]:
        trail, lead, scale, alpha = (emitted.load(data, row, _COVARIANCES) for data in columns)
        p, r, scale_i, alpha_i = (
            emitted.spread(factors, emitted.at(row, _INDEX(FACTORS), _INDEX(k)), _COVARIANCES)
            for k in range(FACTORS)
        )
        for factor, other in ((p, trail), (r, lead)):
            product = builder.fmul(factor, other, flags=_FINITE)
            covariance = builder.fadd(covariance, product, flags=_FINITE)
        scales = builder.fmul(scale_i, scale, flags=_FINITE)
        taken = builder.fmul(covariance, scales, flags=_FINITE)
        square = builder.fsub(builder.fadd(alpha_i, alpha, flags=_FINITE), taken, flags=_FINITE)
        square = emitted.greater(builder.fptrunc(square, _VALUES), _NOTHING)
        distance = builder.call(emitted.root, [square])
        where = builder.gep(emitted.held, [emitted.at(row, given["n_channels"], place)])
        builder.store(distance, where, align=ALIGNED)
        return [covariance]

    begin = emitted.load(given["before"], at, _COVARIANCES)
    (end,) = emitted.loop(_INDEX(0), given["rows"], [begin], step)
    emitted.store(end, given["after"], at)


def _turn(emitted: _Emitted) -> None:
    """Let the farthest come first; what is not finite stays last."""
    builder, given = emitted.builder, emitted.given
    most = ir.Constant(_VALUES, [MOST_FINITE] * LANES)

    def turn_row(row: Any) -> list[Any]:
        def turn_channel(place: Any) -> list[Any]:
            where = builder.gep(emitted.held, [emitted.at(row, given["n_channels"], place)])
            value = builder.load(where, align=ALIGNED)
            finite = builder.fcmp_ordered("<=", value, most)
            builder.store(builder.select(finite, builder.fneg(value), value), where, align=ALIGNED)
            return []

        return emitted.loop(given["included"], given["n_channels"], [], turn_channel)

    with builder.if_then(given["worst"]):
        emitted.loop(_INDEX(0), given["rows"], [], turn_row)


def _order_in_memory(emitted: _Emitted, channels: Any) -> None:
    """Order the channels of a row where they are too many for registers."""
    builder, given = emitted.builder, emitted.given

    def compare(at: Any) -> list[Any]:
        where = []
        for side in range(2):
            place = builder.load(
                builder.gep(given["network"], [emitted.at(at, _INDEX(2), _INDEX(side))])
            )
            where.append(builder.gep(channels, [place]))
        x, y = (builder.load(one, align=ALIGNED) for one in where)
        builder.store(emitted.lesser(x, y), where[0], align=ALIGNED)
        builder.store(emitted.greater(x, y), where[1], align=ALIGNED)
        return []

    emitted.loop(_INDEX(0), given["n_comparators"], [], compare)


class _Row:
    """The sums of a row of a group."""

    def __init__(self, emitted: _Emitted, row: Any, first: Any) -> None:
        builder, given = emitted.builder, emitted.given
        self.emitted = emitted
        channels = builder.gep(emitted.held, [builder.mul(row, given["n_channels"])])
        (self.begin,) = emitted.loop(
            _INDEX(0),
            given["included"],
            [_NOTHING],
            lambda k, total: [self.add(total, channels, k)],
        )
        self.channels = builder.gep(channels, [given["included"]])
        self.own = builder.gep(given["need"], [builder.mul(row, emitted.n_sums)])
        self.columns = builder.gep(given["needs"], [builder.add(row, first)])
        self.first_sums = builder.gep(given["first_sums"], [emitted.at(row, given["width"], first)])
        others = emitted.at(builder.mul(row, emitted.n_others), given["width"], first)
        self.values = builder.gep(given["values"], [others])

    def channel(self, data: Any, k: Any) -> Any:
        """Return the distances in a channel."""
        return self.emitted.builder.load(self.emitted.builder.gep(data, [k]), align=ALIGNED)

    def add(self, total: Any, data: Any, k: Any) -> Any:
        """Return sums, and a channel more."""
        return self.add_value(total, self.channel(data, k))

    def add_value(self, total: Any, value: Any) -> Any:
        """Return sums, and distances more, of which some may be turned."""
        builder = self.emitted.builder
        return builder.fadd(total, builder.call(self.emitted.magnitude, [value]))

    def beyond(self, total: Any, k: Any) -> Any:
        """Return a sign for each lane whose sum of the first k none of the two windows needs."""
        emitted, builder = self.emitted, self.emitted.builder
        other = emitted.load(self.columns, builder.mul(k, emitted.given["pitch_needs"]))
        limit = emitted.greater(emitted.spread(self.own, k), other)
        return builder.bitcast(builder.fsub(limit, total), _SIGNS)

    def keep(self, k: Any, value: Any) -> None:
        """Keep a channel, of those in order."""
        place = self.emitted.builder.mul(k, self.emitted.given["width"])
        self.emitted.store(value, self.values, place)

    def finish(self, far: Any, keep: Callable[[], object]) -> Any:
        """Return the lanes without a sign; of a group that has any, what is to be looked at."""
        builder = self.emitted.builder
        none = ir.Constant(_SIGNS, [0] * LANES)
        hits = builder.bitcast(builder.icmp_signed(">=", far, none), _FLAGS)
        with builder.if_then(builder.icmp_unsigned("!=", hits, _FLAGS(0)), likely=False):
            self.emitted.store(self.begin, self.first_sums, _INDEX(0))
            keep()
        return hits

    def in_registers(self, n: int) -> Any:
        """Compare the sums of n channels."""
        emitted = self.emitted
        held = [self.channel(self.channels, _INDEX(k)) for k in range(n)]
        for x, y in network_of(n).tolist():
            held[x], held[y] = emitted.lesser(held[x], held[y]), emitted.greater(held[x], held[y])
        total, far = self.begin, self.beyond(self.begin, _INDEX(0))
        for k, value in enumerate(held):
            total = self.add_value(total, value)
            far = emitted.builder.and_(far, self.beyond(total, _INDEX(k + 1)))

        def keep() -> None:
            for k, value in enumerate(held):
                self.keep(_INDEX(k), value)

        return self.finish(far, keep)

    def in_memory(self) -> Any:
        """Compare the sums of any number of channels."""
        emitted, builder = self.emitted, self.emitted.builder
        _order_in_memory(emitted, self.channels)

        def add_one(k: Any, total: Any, far: Any) -> list[Any]:
            total = self.add(total, self.channels, k)
            return [total, builder.and_(far, self.beyond(total, builder.add(k, _INDEX(1))))]

        begin = [self.begin, self.beyond(self.begin, _INDEX(0))]
        _, far = emitted.loop(_INDEX(0), emitted.n_others, begin, add_one)

        def keep_one(k: Any) -> list[Any]:
            self.keep(k, self.channel(self.channels, k))
            return []

        return self.finish(far, lambda: emitted.loop(_INDEX(0), emitted.n_others, [], keep_one))

    def compare(self) -> Any:
        """Return the lanes that have a sum which one of the two windows needs."""
        builder, function = self.emitted.builder, self.emitted.function
        many, done = (function.append_basic_block(name) for name in ("many", "compared"))
        choice, found = builder.switch(self.emitted.n_others, many), []
        for n in range(MOST_IN_REGISTERS + 1):
            block = function.append_basic_block(f"channels_{n}")
            choice.add_case(_INDEX(n), block)
            builder.position_at_end(block)
            found.append((self.in_registers(n), builder.block))
            builder.branch(done)
        builder.position_at_end(many)
        found.append((self.in_memory(), builder.block))
        builder.branch(done)
        builder.position_at_end(done)
        hits = builder.phi(_FLAGS)
        for value, block in found:
            hits.add_incoming(value, block)
        return hits


def _emit_walk_rows(module: Any) -> Any:
    """Emit the loops of `walk_rows`, as a function of its own: its parts share the builder."""
    name = "skts_walk_rows"
    if name in module.globals:
        return module.globals[name]
    emitted = _Emitted(module, name)
    builder, given = emitted.builder, emitted.given
    groups = builder.sdiv(given["width"], _INDEX(LANES))

    def walk_group(group: Any, seen: Any) -> list[Any]:
        first = builder.mul(group, _INDEX(LANES))

        def walk_channel(place: Any) -> list[Any]:
            _walk_channel(emitted, place, first)
            return []

        def compare_row(row: Any, seen: Any) -> list[Any]:
            hits = _Row(emitted, row, first).compare()
            builder.store(hits, builder.gep(given["flags"], [emitted.at(row, groups, group)]))
            hit = builder.zext(builder.icmp_unsigned("!=", hits, _FLAGS(0)), _INDEX)
            return [builder.or_(seen, builder.shl(hit, row))]

        emitted.loop(_INDEX(0), given["n_channels"], [], walk_channel)
        _turn(emitted)
        return emitted.loop(_INDEX(0), given["rows"], [seen], compare_row)

    (seen,) = emitted.loop(_INDEX(0), groups, [_INDEX(0)], walk_group)
    builder.ret(seen)
    return emitted.function


@intrinsic
def walk_rows(typing_context, columns, room, walk, side, rows, left):
    """Walk some rows of a block, and find the pairs with a sum that one of their windows needs.

    Of a pair, channels are added from the nearest on, or the farthest, behind those that count in
    any case.

    Parameters
    ----------
    columns : ChannelAxis
        The columns.
    room : BlockArrays
        Its covariances of one side are those of the row before, of the other become those of the
        last row. Its flags are written, and, of a group of LANES pairs that has any, the first
        sums, and the estimates in order.
    walk : Walk
        Options.
    side : int
        The side of the covariances before.
    rows : int
        How many rows, at most ROWS.
    left : int
        Column of the first diagonal in the first row.

    Returns
    -------
    int
        A bit for each of the rows, set where it has any.
    """
    place = types.int64
    signature = place(columns, room, walk, place, place, place)

    def codegen(context, builder, signature, args):
        def fields_of(at):
            kind = signature.args[at]
            values = cgutils.unpack_tuple(builder, args[at], len(kind))
            return dict(zip(kind.fields, zip(kind.types, values, strict=True), strict=True))

        def array(fields, name):
            kind, value = fields[name]
            return context.make_array(kind)(context, builder, value)

        of_columns, of_room, of_walk = map(fields_of, range(3))
        side, rows, left = args[3:]
        covariances, network = array(of_room, "cov"), array(of_walk, "network")
        _, n_channels, width = cgutils.unpack_tuple(builder, covariances.shape)
        size = builder.mul(n_channels, width)
        rule_kind, rule = of_walk["rule"]
        rule = dict(zip(rule_kind.fields, cgutils.unpack_tuple(builder, rule), strict=True))
        needs = array(of_room, "needs")
        given = {
            "before": builder.gep(covariances.data, [builder.mul(side, size)]),
            "after": builder.gep(
                covariances.data, [builder.mul(builder.sub(_INDEX(1), side), size)]
            ),
            **{
                name: builder.gep(array(of_columns, name).data, [left])
                for name in ("trail", "lead", "scale", "alpha")
            },
            **{
                name: array(of_room, name).data
                for name in ("own", "held", "values", "first_sums", "need", "flags")
            },
            "needs": builder.gep(needs.data, [builder.sub(left, of_room["base"][1])]),
            "order": array(of_walk, "order").data,
            "network": network.data,
            "pitch": builder.extract_value(array(of_columns, "trail").shape, 1),
            "pitch_needs": builder.extract_value(needs.shape, 1),
            "width": width,
            "n_channels": n_channels,
            "included": rule["n_included"],
            "n_comparators": builder.extract_value(network.shape, 0),
            "rows": rows,
            "worst": builder.trunc(rule["worst"], _BIT),
        }
        return builder.call(_emit_walk_rows(builder.module), [given[name] for name in _ARGUMENTS])

    return signature, codegen
