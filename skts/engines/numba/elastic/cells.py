"""Cell policies of the CPU engine: what the steps into a cell of a warping matrix cost.

::

    D(i,j) = least of  join(diagonal, D(i-1,j-1)),  join(down, D(i-1,j)),  join(right, D(i,j-1))

Kernels take a policy as their argument `cell`, an object whose fields are the parameters of the
distance, and are compiled once for each class (`cell_types`). A policy is one of two kinds:

* All three steps into a cell cost the same, `uneven` is False. It has ``term``, the cost of two
  points in one channel; kernels add the terms of all channels, and ``join`` the sum with the least
  of the three cells before.
* The steps differ, or depend on more than the two points, `uneven` is True. Each channel has three
  prices: ``match`` of two points, ``down`` of leaving out a point of the first series, ``right`` of
  one of the second. Kernels add each of them over the channels, ``steps`` makes the costs of the
  three steps of these sums, and each is added to the cell where its step begins. Cells before the
  first row and column are infinite, or sums of steps (`borders`); where the alignment lets a path
  begin anywhere, they are 0.

Methods take numbers, or arrays of them (`by_numpy`), in float64 or float32 (`Cell.single`): they
choose by `least` and `where`, and turn whole numbers into such of the type at hand by `like`.

To add a distance, derive a class, and have `cell_of` return it for its `Warping`:
docs/developer/extending.rst shows one. On the GPU ``include/cells.cuh`` has the same.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import singledispatch
from typing import Any, ClassVar, Self

import numpy as np
from numba import types
from numba.extending import overload

from ...families.elastic import distances
from ...families.elastic.warping import Warping
from .cell_types import compiles
from .terms import Term

__all__ = ["Cell", "DogKeeperCell", "cell_of", "least", "like", "where", "whole"]


def least(a: Any, b: Any) -> Any:
    """The lesser of two numbers, or of each two of arrays."""
    if isinstance(a, Term) or isinstance(b, Term):
        return Term.least(a, b)
    return np.minimum(a, b)


@overload(least)
def _least(a, b):
    return lambda a, b: a if a < b else b


def where(condition: Any, a: Any, b: Any) -> Any:
    """One number where a condition holds, else the other."""
    if isinstance(condition, Term):
        return condition.where(a, b)
    return np.where(condition, a, b)


@overload(where)
def _where(condition, a, b):
    return lambda condition, a, b: a if condition else b


def like(number: Any, other: Any) -> Any:
    """A number in the type of another one."""
    if isinstance(number, Term) or isinstance(other, Term):
        return Term.as_number(number)
    return np.asarray(other).dtype.type(number)


@overload(like)
def _like(number, other):
    if other == types.float32:
        return lambda number, other: np.float32(number)
    return lambda number, other: np.float64(number)


def whole(number: Any) -> Any:
    """A whole number that is not negative, as an integer."""
    return np.asarray(number).astype(np.int64)


@overload(whole)
def _whole(number):
    return lambda number: np.int64(number)


@compiles
@dataclass(frozen=True)
class Cell:
    """A policy. Fields are numbers or arrays; methods are compiled, and call no others of `self`.

    Attributes
    ----------
    uneven : bool
        Whether it has ``match`` and ``steps`` in place of ``term``.
    borders : bool
        Whether a path may leave out the first points of a series: for each of them a step down
        before the first column, or one to the right above the first row. Not with `own` numbers,
        but where edits are counted.
    own : bool
        Whether the last channel of a series is none, but holds a number of the series. Then
        ``match`` gets those of the two series in place of the points before, and ``steps`` in place
        of the other two sums.
    weighted : bool
        Whether, with numbers of its `own`, a policy makes of a match its product with a factor that
        depends on these numbers and on the distance from the diagonal alone, for all three steps:
        `steps` makes the factor of a match of 1. Then ``match`` does not look at the numbers.
    looks_back : bool
        Whether prices depend on the points before, too: kernels that need not look are faster.
    arrays : bool
        Whether the methods take arrays in place of numbers, as small work does.
    monotone : bool
        Whether prices never fall as two points move apart, or a cell away from the diagonal, and
        those beside the diagonal depend on the points of one series alone: see `stepped_bounds`.
    edits : bool
        Whether it counts edits: a match costs 0 where two points differ in no channel by more than
        `limit`, else 1 or 2, its field `replacement`; points that are left out cost 1 (`edits`).
    optional : str or None
        A field that is often 0, and not needed then: fast loops are compiled with and without it.
    """

    uneven: ClassVar[bool] = False
    borders: ClassVar[bool] = False
    own: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    looks_back: ClassVar[bool] = True
    arrays: ClassVar[bool] = False
    monotone: ClassVar[bool] = False
    edits: ClassVar[bool] = False
    optional: ClassVar[str | None] = None

    def term(self, x: float, y: float) -> float:
        """Cost of a cell in one channel, of points `x` and `y`."""
        return np.nan  # uneven policies have none; kernels of theirs never call it

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        """Price of matching two points, in one channel; before the first of a series is 0."""
        return np.nan  # even policies have none

    def down(self, x: Any, x_before: Any, y: Any) -> Any:
        """Price of a step down, to point `x`, in one channel.

        In a border `x_before` and `y` are 0, and are not to count.
        """
        return 0.0

    def right(self, y: Any, y_before: Any, x: Any) -> Any:
        """Price of a step to the right, to point `y`, in one channel; else as `down`."""
        return 0.0

    def steps(self, match: Any, down: Any, right: Any, offset: Any) -> tuple[Any, Any, Any]:
        """Costs of the steps diagonally, down and to the right into a cell, by sums of prices.

        `offset` is j - i.
        """
        return match, down, right

    def join(self, cost: float, before: float) -> float:
        """Value of a cell: the cost of a step, and the value of the cell where it begins."""
        return cost + before

    def limit(self, x_own: float, y_own: float) -> float:
        """Largest difference of points that match, by numbers of their series if it has `own`."""
        return np.nan  # no policies but those that count edits have one

    def single(self) -> Self:
        """The same policy with numbers in float32, for points in float32."""
        with np.errstate(over="ignore"):
            numbers: dict[str, Any] = {
                each.name: np.float32(getattr(self, each.name)) for each in fields(self)
            }
        return replace(self, **numbers)


class _Squared(Cell):
    def term(self, x: float, y: float) -> float:
        difference = x - y
        return difference * difference


class _Absolute(Cell):
    def term(self, x: float, y: float) -> float:
        return abs(x - y)


class DogKeeperCell(Cell):
    """The largest cost of a path counts; subclasses have its terms."""

    def join(self, cost: float, before: float) -> float:
        return where(cost > before, cost, before)


class SquaredDTW(_Squared):
    """Dynamic time warping: costs along a path are added."""


class AbsoluteDTW(_Absolute):
    """The same with absolute costs."""


class SquaredDogKeeper(DogKeeperCell, _Squared):
    """Dog-keeper distance: the largest cost of a path counts."""


class AbsoluteDogKeeper(DogKeeperCell, _Absolute):
    """The same with absolute costs."""


_CELLS = {
    ("dtw", "squared"): SquaredDTW(),
    ("dtw", "absolute"): AbsoluteDTW(),
    ("dog_keeper", "squared"): SquaredDogKeeper(),
    ("dog_keeper", "absolute"): AbsoluteDogKeeper(),
}


@singledispatch
def cell_of(warping: Warping) -> Cell:
    """Return the policy of a distance.

    A generic function (`functools.singledispatch`): ``cell_of.register`` adds a class of distances.

    Parameters
    ----------
    warping : Warping
        Options of the distance.

    Returns
    -------
    Cell
        The policy with its parameters.

    Raises
    ------
    LookupError
        If none has been registered for distances of this class.
    """
    if type(warping) is not Warping:
        raise LookupError(f"no policy of the CPU engine is registered for {type(warping).__name__}")
    return _CELLS[warping.metric, warping.cost]


@dataclass(frozen=True)
class _Uneven(Cell):
    uneven: ClassVar[bool] = True
    looks_back: ClassVar[bool] = False
    arrays: ClassVar[bool] = True
    monotone: ClassVar[bool] = True


@dataclass(frozen=True)
class ERPCell(_Uneven):
    """Edit distance with real penalty."""

    borders: ClassVar[bool] = True
    gap: float

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return abs(x - y)

    def down(self, x: Any, x_before: Any, y: Any) -> Any:
        return abs(x - self.gap)

    def right(self, y: Any, y_before: Any, x: Any) -> Any:
        return abs(y - self.gap)


@cell_of.register
def _erp(distance: distances.ERP) -> Cell:
    return ERPCell(distance.gap)


@dataclass(frozen=True)
class EditCell(_Uneven):
    """Edits: points that differ by more than `epsilon` cost `replacement`, points left out 1."""

    borders: ClassVar[bool] = True
    edits: ClassVar[bool] = True
    epsilon: float
    replacement: float
    one: float = 1.0

    def limit(self, x_own: float, y_own: float) -> float:
        return self.epsilon

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return where(abs(x - y) > self.epsilon, self.replacement, like(0, self.one))

    def steps(self, match: Any, down: Any, right: Any, offset: Any) -> tuple[Any, Any, Any]:
        return least(match, self.replacement), self.one, self.one


@dataclass(frozen=True)
class OwnEditCell(EditCell):
    """The same, with the larger `epsilon` of the two series."""

    own: ClassVar[bool] = True

    def limit(self, x_own: float, y_own: float) -> float:
        return x_own if x_own > y_own else y_own

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        # two conditions at once would keep LLVM from vectorizing
        epsilon = where(x_before > y_before, x_before, y_before)
        return where(abs(x - y) > epsilon, self.replacement, like(0, self.one))


@cell_of.register
def _lcss(distance: distances.LCSS) -> Cell:
    return EditCell(distance.epsilon, distance.apart)


@cell_of.register
def _edr(distance: distances.EDR) -> Cell:
    if distance.own:
        return OwnEditCell(0.0, 1.0)
    if distance.epsilon is None:
        raise LookupError("series have to be prepared")
    return EditCell(distance.epsilon, 1.0)


@dataclass(frozen=True)
class DeletionCell(_Uneven):
    """Points are matched together with those before them; deletions have a price besides.

    `stiffness` is the price of a difference in time of one point. With 0 in its place this is
    move-split-merge.
    """

    looks_back: ClassVar[bool] = True
    optional: ClassVar[str | None] = "stiffness"
    deletion: float
    stiffness: float

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return abs(x - y) + abs(x_before - y_before)

    def down(self, x: Any, x_before: Any, y: Any) -> Any:
        return abs(x - x_before)

    def right(self, y: Any, y_before: Any, x: Any) -> Any:
        return abs(y - y_before)

    def steps(self, match: Any, down: Any, right: Any, offset: Any) -> tuple[Any, Any, Any]:
        late = self.stiffness * like(abs(offset), self.stiffness)
        return match + late, down + self.deletion, right + self.deletion


@cell_of.register
def _twe(distance: distances.TWE) -> Cell:
    return DeletionCell(distance.deletion, 2 * distance.nu)


@cell_of.register
def _msm(distance: distances.MSM) -> Cell:
    return DeletionCell(2 * distance.penalty, 0.0)


@dataclass(frozen=True)
class AmercedCell(_Uneven):
    """Dynamic time warping, whose steps beside the diagonal cost more.

    Both steps have a penalty of their own, which are equal: where they are one number LLVM takes
    the addition out of the choice between them, and for Sapphire Rapids makes a loop of that which
    takes four times as long.
    """

    penalty: float
    same: float

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return (x - y) * (x - y)

    def steps(self, match: Any, down: Any, right: Any, offset: Any) -> tuple[Any, Any, Any]:
        return match, match + self.penalty, match + self.same


class AbsoluteAmercedCell(AmercedCell):
    """The same with absolute costs."""

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return abs(x - y)


@cell_of.register
def _adtw(distance: distances.ADTW) -> Cell:
    kind = AmercedCell if distance.squared else AbsoluteAmercedCell
    return kind(distance.penalty, distance.penalty)


@dataclass(frozen=True)
class WeightedCell(_Uneven):
    """Dynamic time warping whose costs have weights, by how far apart in time two points are."""

    weights: np.ndarray

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return (x - y) * (x - y)

    def steps(self, match: Any, down: Any, right: Any, offset: Any) -> tuple[Any, Any, Any]:
        cost = match * self.weights[abs(offset)]
        return cost, cost, cost


class AbsoluteWeightedCell(WeightedCell):
    """The same with absolute costs."""

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return abs(x - y)


@dataclass(frozen=True)
class OwnWeightedCell(WeightedCell):
    """The same for pairs of several lengths: weights by twice the offset less the longer length."""

    own: ClassVar[bool] = True
    weighted: ClassVar[bool] = True

    def steps(self, match: Any, down: Any, right: Any, offset: Any) -> tuple[Any, Any, Any]:
        # the first weight is that of no offset and the longest length, a third of them all
        longest = -least(-down, -right)
        place = self.weights.size // 3 + 2 * abs(offset) - whole(longest)
        cost = match * self.weights[place]
        return cost, cost, cost


class AbsoluteOwnWeightedCell(OwnWeightedCell):
    """The same with absolute costs."""

    def match(self, x: Any, y: Any, x_before: Any, y_before: Any) -> Any:
        return abs(x - y)


@cell_of.register
def _wdtw(distance: distances.WDTW) -> Cell:
    if distance.longest == 0:
        raise LookupError("series have to be prepared")
    if distance.own:
        own = OwnWeightedCell if distance.squared else AbsoluteOwnWeightedCell
        return own(distance.weights(np.arange(-distance.longest, 2 * distance.longest)))
    kind = WeightedCell if distance.squared else AbsoluteWeightedCell
    return kind(distance.weights(2 * np.arange(distance.longest) - distance.longest))
