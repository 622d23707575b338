"""The inner loop of shapelet searches on the CPU: covariances of four pairs of series at a time.

Lanes are series: the same place of LANES series lies side by side in memory, and one vector holds
the covariances of a window of one series with the windows at one place of all of them. DIAGONALS
neighbouring diagonals are walked down together::

               columns (windows of the lanes)
               j   j+1  j+2  j+3
    row i      c0  c1   c2   c3            each c is a vector of LANES covariances,
    row i+1        c0   c1   c2   c3       and stays in a register all the way down

Nothing moves from lane to lane. The best score of a row is loaded and stored once for all its
diagonals, that of a column waits in a register until the last diagonal has passed; so a step of
16 cells takes 12 loads of vectors, 3 of numbers, and 2 stores, beside its 24 operations.

It is written in LLVM's language: whether the compiler finds this form by itself depends on its
version, and what it misses costs a factor of four.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...host import kernel

__all__ = ["DIAGONALS", "LANES", "walk"]

LANES = 4
DIAGONALS = 4

_DOUBLE, _INT, _INDEX = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_VECTOR = ir.VectorType(_DOUBLE, LANES)


def _splat(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The same number in all lanes."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, _INDEX(0))
    mask = ir.Constant(ir.VectorType(_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)


def _function(builder: ir.IRBuilder, name: str, n_arguments: int) -> ir.Function:
    """A function of LLVM on vectors."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * n_arguments)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64")


def _make(diagonals: int, columns: bool) -> Callable[..., Any]:
    """Build the loop for a number of diagonals, with or without the best of columns.

    One function, since blocks and values of the loop refer to each other; it takes its arrays one
    by one, as LLVM's language has no tuples.
    """

    @intrinsic
    def go(typing_context, cov, q, s, w, best_b, p, r, weight, best_a, j, i, steps):
        """Walk down; one function, see `_make`."""
        signature = types.void(
            cov, q, s, w, best_b, p, r, weight, best_a, types.intp, types.intp, types.intp
        )

        def codegen(context, builder, signature, args):
            data = [
                context.make_array(kind)(context, builder, value).data
                for kind, value in zip(signature.args[:9], args[:9], strict=True)
            ]
            cov, q, s, w, best_b, p, r, weight, best_a = data
            column, row, steps = args[9:]

            def lanes(pointer, index):
                """Where the lanes of a place are."""
                place = builder.gep(pointer, [builder.mul(index, _INT(LANES))])
                return builder.bitcast(place, _VECTOR.as_pointer())

            def load(pointer, index):
                return builder.load(lanes(pointer, index), align=8)

            def store(value, pointer, index):
                builder.store(value, lanes(pointer, index), align=8)

            multiply_add = _function(builder, "fmuladd", 3)
            larger = _function(builder, "maxnum", 2)

            def most(a, b):
                return builder.call(larger, [a, b], fastmath=("nnan", "nsz"))

            start = builder.basic_block
            loop = builder.append_basic_block("walk")
            end = builder.append_basic_block("walked")
            covariances = [load(cov, _INT(k)) for k in range(diagonals)]
            bests = [
                load(best_b, builder.add(column, _INT(k)))
                for k in range(diagonals if columns else 0)
            ]
            builder.cbranch(builder.icmp_signed(">", steps, _INT(0)), loop, end)
            before = [*covariances, *bests]
            builder.position_at_end(loop)
            step = builder.phi(_INT)
            step.add_incoming(_INT(0), start)
            state = [builder.phi(_VECTOR) for _ in before]
            for phi, value in zip(state, before, strict=True):
                phi.add_incoming(value, start)
            at_row, at_column = builder.add(row, step), builder.add(column, step)
            first, second, scale = (
                _splat(builder, builder.load(builder.gep(pointer, [at_row])))
                for pointer in (p, r, weight)
            )
            best, after = load(best_a, at_row), []
            columns_now = list(state[diagonals:])
            for k in range(diagonals):
                place = builder.add(at_column, _INT(k))
                c = builder.call(multiply_add, [first, load(q, place), state[k]])
                c = builder.call(multiply_add, [second, load(s, place), c])
                after.append(c)
                best = most(builder.fmul(c, load(w, place)), best)
                if columns:
                    columns_now[k] = most(builder.fmul(c, scale), columns_now[k])
            store(best, best_a, at_row)
            if columns:
                store(columns_now[0], best_b, at_column)
                entering = load(best_b, builder.add(at_column, _INT(diagonals)))
                after += [*columns_now[1:], entering]
            next_step = builder.add(step, _INT(1))
            step.add_incoming(next_step, loop)
            for phi, value in zip(state, after, strict=True):
                phi.add_incoming(value, loop)
            builder.cbranch(builder.icmp_signed("<", next_step, steps), loop, end)
            builder.position_at_end(end)
            for k in range(len(before)):
                phi = builder.phi(_VECTOR)
                phi.add_incoming(before[k], start)
                phi.add_incoming(after[k], loop)
                before[k] = phi
            for k in range(diagonals):
                store(before[k], cov, _INT(k))
            for k in range(len(bests)):
                store(
                    before[diagonals + k], best_b, builder.add(builder.add(column, steps), _INT(k))
                )
            return context.get_dummy_value()

        return signature, codegen

    return go


_one_both, _four_both = _make(1, True), _make(DIAGONALS, True)
_one_row, _four_row = _make(1, False), _make(DIAGONALS, False)


@kernel
def _diagonal(cov, q, s, w, best_b, p, r, weight, best_a, j, i, steps, columns):
    """Walk one diagonal down."""
    if steps > 0:
        if columns is not None:
            _one_both(cov, q, s, w, best_b, p, r, weight, best_a, j, i, steps)
        else:
            _one_row(cov, q, s, w, best_b, p, r, weight, best_a, j, i, steps)


@kernel
def walk(first_row, first_column, q, s, w, best_b, p, r, weight, best_a, n, n_b, cov, columns):
    """Best scores of all pairs of windows of a series with those of LANES others.

    Parameters
    ----------
    first_row : ndarray of shape (LANES, >= n_b)
        Covariances of the first window of the series with all windows of the others.
    first_column : ndarray of shape (LANES, >= n)
        Those of all windows of the series with the first windows of the others.
    q, s, w : ndarray of shape (n_columns * LANES,)
        Factors of the steps that lead to the windows of the others, and their weights; 0 at the
        first window, as `p` and `r` are.
    best_b : ndarray of shape ((n_b + DIAGONALS + 1) * LANES,)
        Best of the columns, of scores with the weights of the rows; raised with `columns`.
    p, r, weight : ndarray of shape (n,)
        Factors and weights of the series.
    best_a : ndarray of shape (n * LANES,)
        Best of the rows, of scores with the weights of the columns; raised.
    n, n_b : int
        Windows of the series and of the others.
    cov : ndarray of shape (DIAGONALS * LANES,)
        Scratch.
    columns : True or None
        Whether the best of columns are wanted.
    """
    diagonal, last = 1 - n, n_b - 1
    while diagonal <= last:
        count = min(DIAGONALS, last - diagonal + 1)
        for k in range(count):
            d = diagonal + k
            for lane in range(LANES):
                c = first_row[lane, d] if d >= 0 else first_column[lane, -d]
                cov[k * LANES + lane] = c
        # from this row on all of them are inside, until one of them ends
        row = max(0, -diagonal)
        steps = min(n - row, n_b - (row + diagonal + count - 1))
        together = count == DIAGONALS and steps > 0
        for k in range(count):
            d = diagonal + k
            i = max(0, -d)
            stop = row if together else min(n, n_b - d)
            _diagonal(
                cov[k * LANES :], q, s, w, best_b, p, r, weight, best_a, i + d, i, stop - i, columns
            )
        if together:
            if columns is not None:
                _four_both(cov, q, s, w, best_b, p, r, weight, best_a, row + diagonal, row, steps)
            else:
                _four_row(cov, q, s, w, best_b, p, r, weight, best_a, row + diagonal, row, steps)
            row += steps
            for k in range(count):
                d = diagonal + k
                _diagonal(
                    cov[k * LANES :], q, s, w, best_b, p, r, weight, best_a, row + d, row,
                    min(n - row, n_b - (row + d)), columns,
                )  # fmt: skip
        diagonal += count
