"""Cell policies of the CPU engine: what the steps into a cell of a warping matrix cost.

::

    D(i,j) = least of  join(diagonal, D(i-1,j-1)),  join(down, D(i-1,j)),  join(right, D(i,j-1))

Kernels take a policy as their argument `cell`, an object whose fields are the parameters of the
distance, and are compiled once for each class (`cell_types`). A policy is one of two kinds:

* All three steps into a cell cost the same, `uneven` is False. It has ``term``, the cost of two
  points in one channel; kernels add the terms of all channels, and ``join`` the sum with the least
  of the three cells before.
* The steps differ, or depend on more than the two points, `uneven` is True. It has ``steps``, the
  three costs in one channel, from the points, those before them, and how far the cell is from the
  diagonal; each sum over the channels goes to ``join`` with the cell where the step begins. Cells
  before the first row and column are sums of ``skip_x`` and ``skip_y``: infinite, unless a policy
  says otherwise, as in DTW. Where the alignment lets a path begin anywhere, they are 0.

To add a distance, derive a class, and have `cell_of` return it for its `Warping`:
docs/developer/extending.rst shows one. On the GPU ``include/cells.cuh`` has the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar

import numpy as np

from ...families.elastic.warping import Warping
from .cell_types import compiles

__all__ = ["Cell", "cell_of"]


@compiles
@dataclass(frozen=True)
class Cell:
    """A policy. Fields are numbers or arrays; methods are compiled, and call no others of `self`.

    Attributes
    ----------
    uneven : bool
        Whether it has ``steps`` in place of ``term``.
    borders : bool
        Whether ``skip_x`` or ``skip_y`` is finite, so that a path may leave out the first points.
    """

    uneven: ClassVar[bool] = False
    borders: ClassVar[bool] = False

    def term(self, x: float, y: float) -> float:
        """Cost of a cell in one channel, of points `x` and `y`."""
        return np.nan  # uneven policies have none; kernels of theirs compile it, and never call it

    def steps(
        self, x: float, y: float, x_before: float, y_before: float, offset: int
    ) -> tuple[float, float, float]:
        """Costs of the steps diagonally, down and to the right into a cell, in one channel.

        `offset` is j - i; before the first point of a series is 0.
        """
        return np.nan, np.nan, np.nan  # even policies have none

    def skip_x(self, x: float) -> float:
        """Cost of a step down before the first column, in one channel."""
        return np.inf

    def skip_y(self, y: float) -> float:
        """Cost of a step to the right above the first row, in one channel."""
        return np.inf

    def join(self, cost: float, before: float) -> float:
        """Value of a cell: the cost of a step, and the value of the cell where it begins."""
        return cost + before


class _Squared(Cell):
    def term(self, x: float, y: float) -> float:
        difference = x - y
        return difference * difference


class _Absolute(Cell):
    def term(self, x: float, y: float) -> float:
        return abs(x - y)


class _Largest(Cell):
    def join(self, cost: float, before: float) -> float:
        return cost if cost > before else before


class SquaredDTW(_Squared):
    """Dynamic time warping: costs along a path are added."""


class AbsoluteDTW(_Absolute):
    """The same with absolute costs."""


class SquaredDogKeeper(_Largest, _Squared):
    """Dog-keeper distance: the largest cost of a path counts."""


class AbsoluteDogKeeper(_Largest, _Absolute):
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
