"""Cell policies as expressions: what their methods make of symbols in place of numbers.

`rows_of_cells` writes loops in the terms of the compiler, which keeps more in registers than it
does for loops of Numba. What a cell costs comes from the methods of the policy all the same: called
with terms, they return the expression that they would compute. Methods that do something else with
their arguments than to add, subtract, multiply, compare, or choose by `least` and `where`, have no
expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

__all__ = ["Expression", "Term", "expression_of"]


@dataclass(frozen=True)
class Expression:
    """An operation with its arguments, or a symbol.

    Attributes
    ----------
    kind : str
        What is done, or the name of the symbol.
    args : tuple
        Expressions; of symbols, what tells them apart; of "number" and "whole" the value.
    """

    kind: str
    args: tuple[Any, ...] = ()

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols in it."""
        inner = [each.symbols for each in self.args if isinstance(each, Expression)]
        return frozenset().union(*inner) if inner else frozenset([self.kind])

    def replaced(self, symbol: Expression, other: Expression) -> Expression:
        """Return the same expression with another one in place of a symbol."""
        if self == symbol:
            return other
        args = (
            each.replaced(symbol, other) if isinstance(each, Expression) else each
            for each in self.args
        )
        return Expression(self.kind, tuple(args))

    @property
    def is_zero(self) -> bool:
        """Whether it is the number 0."""
        return self.kind in ("number", "whole") and self.args[0] == 0


class Term:
    """An expression that a method of a policy gets in place of a number.

    It is neither true nor false, nor equal to anything, so that no method asks for that in vain.

    Parameters
    ----------
    expression : Expression
        What it stands for.
    """

    def __init__(self, expression: Expression) -> None:
        self.expression = expression

    def __add__(self, other: Any) -> Term:
        # costs are not negative, so that to add 0 leaves their bits
        if _expression(other).is_zero:
            return self
        return _term(other) if self.expression.is_zero else _made("add", self, other)

    def __radd__(self, other: Any) -> Term:
        return _term(other) + self

    def __sub__(self, other: Any) -> Term:
        return _made("subtract", self, other)

    def __rsub__(self, other: Any) -> Term:
        return _made("subtract", other, self)

    def __mul__(self, other: Any) -> Term:
        zero = self.expression.is_zero or _expression(other).is_zero
        return _term(0.0) if zero else _made("multiply", self, other)

    def __rmul__(self, other: Any) -> Term:
        return _term(other) * self

    def __neg__(self) -> Term:
        return _made("negative", self)

    def __abs__(self) -> Term:
        return _made("magnitude", self)

    def __lt__(self, other: Any) -> Term:
        return _made("less", self, other)

    def __gt__(self, other: Any) -> Term:
        return _made("less", other, self)

    def __getitem__(self, place: Any) -> Term:
        return _made("entry", self, place)

    def __bool__(self) -> NoReturn:
        raise TypeError("a term is neither true nor false")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("a term is equal to nothing")

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def least(a: Any, b: Any) -> Term:
        """The lesser of two."""
        return _made("least", a, b)

    def where(self, a: Any, b: Any) -> Term:
        """One of two, as it says."""
        return _made("where", self, a, b)

    @staticmethod
    def as_number(value: Any) -> Term:
        """A whole number as a number of the type of the points."""
        return _made("convert", value) if isinstance(value, Term) else _term(float(value))


def _expression(value: Any) -> Expression:
    if isinstance(value, Term):
        return value.expression
    if isinstance(value, (int, np.integer)):
        return Expression("whole", (int(value),))
    return Expression("number", (float(value),))


def _term(value: Any) -> Term:
    return value if isinstance(value, Term) else Term(_expression(value))


def _made(kind: str, *args: Any) -> Term:
    return Term(Expression(kind, tuple(map(_expression, args))))


class _Policy:
    """Stands in for a policy: its fields are terms, or 0 where they are to be."""

    def __init__(self, kind: type, names: tuple[str, ...], zero: tuple[str, ...]) -> None:
        self._kind, self._names, self._zero = kind, names, zero

    def __getattr__(self, name: str) -> Any:
        if name in self._zero:
            return _term(0.0)
        if name in self._names:
            return Term(Expression("field", (name,)))
        return getattr(self._kind, name)


def expression_of(
    kind: type, names: tuple[str, ...], zero: tuple[str, ...], method: str, *args: Expression
) -> Any:
    """Return what a method of a policy makes of its arguments.

    Parameters
    ----------
    kind : type
        The class of the policy.
    names, zero : tuple of str
        Its fields, and those that are to be 0.
    method : str
        Name of the method.
    *args : Expression
        Its arguments.

    Returns
    -------
    Expression or tuple of Expression
        The result, or results.

    Raises
    ------
    TypeError, AttributeError, ValueError
        If the method has no expression.
    """
    found = getattr(kind, method)(_Policy(kind, names, zero), *map(Term, args))
    return tuple(map(_expression, found)) if isinstance(found, tuple) else _expression(found)
