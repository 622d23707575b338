"""Cell policies as expressions: what their methods make of symbols in place of numbers.

`rows_of_cells` writes loops in the terms of the compiler, which keeps more in registers than it
does for loops of Numba. What a cell costs comes from the methods of the policy all the same: called
with terms, they return the expression that they would compute. Methods that do something else with
their arguments than to add, subtract, multiply, compare, or choose by `least` and `where`, have no
expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Term", "term_of"]


@dataclass(frozen=True)
class Term:
    """An expression: an operation with its arguments, or a symbol.

    Attributes
    ----------
    kind : str
        What is done, or the name of the symbol.
    args : tuple
        Terms; of symbols, what tells them apart; of "number" its value.
    """

    kind: str
    args: tuple[Any, ...] = ()

    @cached_property
    def symbols(self) -> frozenset[str]:
        """Names of all symbols in it."""
        inner = [each.symbols for each in self.args if isinstance(each, Term)]
        return frozenset().union(*inner) if inner else frozenset([self.kind])

    def parts(self) -> Iterator[Term]:
        """Yield the expression and all that it is made of, from the outside to the inside."""
        yield self
        for each in self.args:
            if isinstance(each, Term):
                yield from each.parts()

    def replaced(self, kind: str, other: Term) -> Term:
        """Return the same expression with another term in place of a symbol."""
        if self.kind == kind:
            return other
        args = [
            each.replaced(kind, other) if isinstance(each, Term) else each for each in self.args
        ]
        return Term(self.kind, tuple(args))

    def __add__(self, other: Any) -> Term:
        # costs are not negative, so that to add 0 leaves their bits
        if self.is_zero or _term(other).is_zero:
            return _term(other) if self.is_zero else self
        return Term("add", (self, _term(other)))

    def __sub__(self, other: Any) -> Term:
        return Term("subtract", (self, _term(other)))

    def __mul__(self, other: Any) -> Term:
        if self.is_zero or _term(other).is_zero:
            return Term("number", (0.0,))
        return Term("multiply", (self, _term(other)))

    def __radd__(self, other: Any) -> Term:
        return _term(other) + self

    def __rsub__(self, other: Any) -> Term:
        return _term(other) - self

    def __rmul__(self, other: Any) -> Term:
        return _term(other) * self

    def __neg__(self) -> Term:
        return Term("negative", (self,))

    def __abs__(self) -> Term:
        return Term("magnitude", (self,))

    def __lt__(self, other: Any) -> Term:
        return Term("less", (self, _term(other)))

    def __gt__(self, other: Any) -> Term:
        return Term("less", (_term(other), self))

    def __getitem__(self, place: Any) -> Term:
        return Term("entry", (self, _term(place)))

    def __bool__(self) -> bool:
        raise TypeError("a term is neither true nor false")

    @property
    def is_zero(self) -> bool:
        """Whether it is the number 0."""
        return self.kind == "number" and self.args[0] == 0.0

    @staticmethod
    def least(a: Any, b: Any) -> Term:
        """The lesser of two."""
        return Term("least", (_term(a), _term(b)))

    def where(self, a: Any, b: Any) -> Term:
        """One of two, as it says."""
        return Term("where", (self, _term(a), _term(b)))

    @staticmethod
    def as_number(value: Any) -> Term:
        """A whole number as a number of the type of the points."""
        return Term("convert", (value,)) if isinstance(value, Term) else _term(value)


def _term(value: Any) -> Term:
    return value if isinstance(value, Term) else Term("number", (float(value),))


class _Policy:
    """Stands in for a policy: its fields are terms, or 0 where they are to be."""

    def __init__(self, kind: type, names: tuple[str, ...], zero: tuple[str, ...]) -> None:
        self._kind, self._names, self._zero = kind, names, zero

    def __getattr__(self, name: str) -> Any:
        if name in self._zero:
            return Term("number", (0.0,))
        return Term("field", (name,)) if name in self._names else getattr(self._kind, name)


def term_of(
    kind: type, names: tuple[str, ...], zero: tuple[str, ...], method: str, *args: Any
) -> Any:
    """Return what a method of a policy makes of terms.

    Parameters
    ----------
    kind : type
        The class of the policy.
    names, zero : tuple of str
        Its fields, and those that are to be 0.
    method : str
        Name of the method.
    *args : Term
        Its arguments.

    Returns
    -------
    Term or tuple of Term
        The expression, or expressions.

    Raises
    ------
    TypeError, AttributeError, ValueError
        If the method has no expression.
    """
    found = getattr(kind, method)(_Policy(kind, names, zero), *args)
    return tuple(map(_term, found)) if isinstance(found, tuple) else _term(found)
