"""Policies as expressions: which have one, and that it computes what the methods compute."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest
from elastic_cases import OPTIONS, sides_of

from skts.engines.families.elastic.warping import Warping
from skts.engines.numba.elastic import cells
from skts.engines.numba.elastic.cells import Cell, cell_of, least, like, where
from skts.engines.numba.elastic.rows_of_cells import ROWS, costs_of, has_rows
from skts.engines.numba.elastic.terms import Expression, Term, expression_of


def value(expression, known):
    """What an expression is where its symbols have values."""
    args = expression.args
    if expression in known:
        return known[expression]
    if expression.kind in ("number", "whole"):
        return args[0]
    if expression.kind == "where":
        return value(args[1 if value(args[0], known) else 2], known)
    given = [value(each, known) for each in args]
    operations = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "negative": lambda a: -a,
        "magnitude": abs,
        "less": lambda a, b: a < b,
        "least": lambda a, b: min(b, a),
        "entry": lambda a, b: a[b],
        "convert": float,
    }
    return operations[expression.kind](*given)


def names_of(cell):
    return tuple(each.name for each in fields(cell))


def policies():
    rng, found = np.random.default_rng(0), []
    for metric, options in OPTIONS:
        X = [rng.normal(size=(1, 9)) for _ in range(2)]
        found.append(cell_of(sides_of(metric, X, X, **options)[2]))
    for metric in ("dtw", "dog_keeper"):
        found += [cell_of(Warping(metric, cost)) for cost in ("squared", "absolute")]
    return found


@pytest.mark.parametrize("cell", policies(), ids=lambda cell: type(cell).__name__)
def test_expressions_compute_what_methods_do(cell, rng):
    names = names_of(cell)
    costs = costs_of(type(cell), names)
    for k in range(ROWS):
        points, y, y_before, before = rng.normal(size=ROWS + 1), *rng.normal(size=3)
        known = {Expression("field", (name,)): getattr(cell, name) for name in names}
        known |= {Expression("x", (i,)): point for i, point in enumerate(points)}
        known |= {Expression("y"): y, Expression("y_before"): y_before}
        known |= {Expression("before"): before, Expression("offset", (k,)): k - 2}
        x_before, x = points[k], points[k + 1]
        if not cell.uneven:
            assert value(costs.values[k], known) == cell.join(cell.term(x, y), before)
            continue
        prices = (
            cell.match(x, y, x_before, y_before),
            cell.down(x, x_before, y),
            cell.right(y, y_before, x),
        )
        if not cell.own:  # whose prices are numbers of the series
            found = tuple(value(each, known) for each in costs.steps[k])
            assert found == pytest.approx(cell.steps(*prices, k - 2), rel=0, abs=0)


@dataclass(frozen=True)
class Mixed(Cell):
    uneven: ClassVar[bool] = True
    weights: np.ndarray
    price: float

    def match(self, x, y, x_before, y_before):
        return where(x > y, x - y, 2 * (y - x)) + least(abs(x_before), self.price)

    def down(self, x, x_before, y):
        return 1

    def right(self, y, y_before, x):
        return abs(-y + y_before) + like(3, y)

    def steps(self, match, down, right, offset):
        return match * self.weights[abs(offset)], down, right + where(offset < 0, 1, 0.5)


class Asks(Mixed):
    def match(self, x, y, x_before, y_before):
        return 0.0 if x == y else 1.0


class Differs(Mixed):
    def match(self, x, y, x_before, y_before):
        return 1.0 if x != y else 0.0


class Decides(Mixed):
    def down(self, x, x_before, y):
        return x if x < y else y


class Root(Mixed):
    def match(self, x, y, x_before, y_before):
        return np.sqrt(abs(x - y))


class Smaller(Cell):
    def term(self, x, y):
        return min(abs(x - y), 1.0)


@pytest.mark.parametrize("kind", [Asks, Differs, Decides, Root, Smaller])
def test_methods_that_do_more_have_no_expression(kind):
    names = ("weights", "price") if issubclass(kind, Mixed) else ()
    assert costs_of(kind, names) is None
    assert not has_rows(kind)  # in plain Python none has


def test_whole_numbers_stay_whole_and_numbers_are_mixed(rng):
    cell = Mixed(np.array([1.0, 2.0, 4.0]), 0.25)
    costs = costs_of(Mixed, names_of(cell))
    known = {Expression("field", ("weights",)): cell.weights, Expression("field", ("price",)): 0.25}
    known |= {Expression("x", (i,)): float(i) for i in range(3)}
    known |= {Expression("y"): 4.0, Expression("y_before"): 6.5, Expression("offset", (1,)): -2}
    assert [value(each, known) for each in costs.steps[1]] == [4.0 * (4.0 + 0.25), 1, 5.5 + 1]


def test_a_field_that_is_0_leaves_no_trace():
    """Of move-split-merge no difference in time is left."""
    names, kind = ("deletion", "stiffness"), cells.DeletionCell
    with_it, without = costs_of(kind, names), costs_of(kind, names, ("stiffness",))
    for k in range(ROWS):
        assert all("offset" not in each.symbols for each in without.steps[k])
        assert "offset" in with_it.steps[k][0].symbols
        assert with_it.steps[k][1:] == without.steps[k][1:]


def test_zeros_are_neither_added_nor_multiplied():
    x = Expression("x", (0,))
    zero, term = Expression("number", (0.0,)), Term(x)
    for made in (term + 0, 0 + term, term + 0.0, Term(zero) + term):
        assert made.expression == x
    for made in (term * 0, 0.0 * term, Term(zero) * term):
        assert made.expression == zero
    assert (term * 1).expression.kind == "multiply"
    assert (1 - term).expression == Expression("subtract", (Expression("whole", (1,)), x))


def test_attributes_of_the_class_are_known_to_its_methods():
    class Doubled(Cell):
        factor = 2.0

        def term(self, x, y):
            return self.factor * abs(x - y)

    x, y = Expression("x", (0,)), Expression("y")
    apart = Expression("magnitude", (Expression("subtract", (x, y)),))
    assert expression_of(Doubled, (), (), "term", x, y) == Expression(
        "multiply", (Expression("number", (2.0,)), apart)
    )
    assert apart.replaced(y, x).args[0].args == (x, x)
