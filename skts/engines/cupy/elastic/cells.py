"""Cell policies of the GPU engine: classes of ``include/cells.cuh`` and ``stepped_cells.cuh``.

Imports nothing of CUDA.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Protocol

import numpy as np

from ...families.elastic import distances
from ...families.elastic.custom import CustomWarping
from ...families.elastic.warping import Warping
from . import point_costs

__all__ = [
    "ANY_CELL",
    "NO_PARAMETERS",
    "WINDOWS",
    "Costs",
    "Policy",
    "any_cell",
    "cell_of",
    "metric_of",
    "policy_of",
    "windows_cell",
]

#: The policy that kernels take whose one instance serves all options.
ANY_CELL = "AnyWarping"
#: The policy between windows of points.
WINDOWS = "Windows"
_WINDOWS = np.dtype([("squared", np.int32), ("width", np.int32)])
_ANY = np.dtype([("squared", np.int32), ("largest", np.int32)])
#: The argument `cell` of a kernel whose policy has no parameters: in C++ it has one byte.
NO_PARAMETERS = np.void(1)
#: How far from the diagonal, beyond the longest series, kernels look up weights: lanes before their
#: first row, and the columns of a widest strip.
WEIGHTS_MARGIN = 2304


class Costs(Protocol):
    """The options of a `Warping` that a policy depends on."""

    @property
    def squared(self) -> bool:
        """Whether costs are squared."""

    @property
    def largest(self) -> bool:
        """Whether the largest cost of a path counts."""


def metric_of(*, squared: bool) -> str:
    """Name the metric of single channels."""
    return "Squared" if squared else "Absolute"


@dataclass(frozen=True)
class Policy:
    """A policy and its parameters.

    Parameters
    ----------
    name : str
        The class, ``T`` in place of the type of points: ``"Erp<T>"``.
    numbers : dict of str to float
        Its members, in their order.
    weighted : WDTW or None, default None
        The distance whose weights are its one member.
    own : bool, default False
        Whether the last channel of a series holds a number of the series.
    borders : bool, default False
        Whether cells before the first row and column are sums of steps.
    in_bands : bool, default False
        Whether points that are infinitely far cost infinity, so that they may surround a matrix:
        then ``band.cu`` may have it.
    searched : str or None, default None
        The class that searches take, where it is another one; its parameters are the same, but
        those of `scaled_epsilon` where points are float.
    """

    name: str
    numbers: dict[str, float] = field(default_factory=dict)
    weighted: distances.WDTW | None = None
    own: bool = False
    borders: bool = False
    in_bands: bool = False
    searched: str | None = None

    def of(self, type: str) -> str:
        """Name the class that searches take for points of a type."""
        return (self.searched or self.name).replace("<T", f"<{type}")

    @property
    def certifying(self) -> str:
        """The class of kernels that certify: plain counts, where searches have others."""
        return self.name.replace("<T", "<double")

    def arguments(self, type: str) -> np.ndarray | np.void:
        """Return the argument `cell` of a kernel, where no member is a table."""
        if not self.numbers:
            return NO_PARAMETERS
        number, numbers = np.float32 if type == "float" else np.float64, self.numbers
        if type == "float" and self.searched is not None:
            numbers = scaled_epsilon(numbers["epsilon"])
        made = np.zeros(1, [(name, number) for name in numbers])
        with np.errstate(over="ignore"):
            made[0] = tuple(number(value) for value in numbers.values())
        return made

    def weights(self, longest: int) -> tuple[np.ndarray, int]:
        """Return weights of all places for series of so many points, and the place of weight 0."""
        distance, reach = self.weighted, longest + WEIGHTS_MARGIN
        assert distance is not None  # nobody asks others
        if distance.own:
            return distance.weights(np.arange(-distance.longest, 2 * reach)), distance.longest
        offsets = np.abs(np.arange(-reach, reach + 1))
        return distance.weights(2 * offsets - distance.longest), reach


def scaled_epsilon(epsilon: float) -> dict[str, float]:
    """Return the members of ``Matching<float, true>``: a scale, and the scaled epsilon and 1.

    With the scaled epsilon from 2**23 to 2**24, neighbouring numbers of float are 1 or 2 apart from
    there on, and `epsilon` and 1 is one of them. A scale beyond 2**100 is not needed where points
    are near 1, as those of searches are; differences below 2**-100 then count in part.
    """
    with np.errstate(over="ignore"):
        single = float(min(np.float32(epsilon), np.finfo(np.float32).max))
    power = min(100, 24 - math.frexp(single)[1]) if single else 100
    return {"scale": 2.0**power, "limit": single * 2.0**power + 1}


@singledispatch
def policy_of(warping: Warping) -> Policy:
    """Return the policy of a distance; ``policy_of.register`` adds a class of distances.

    Raises
    ------
    LookupError
        If none has been registered for distances of this class.
    """
    if type(warping) is not Warping:
        raise LookupError(f"no policy of the GPU engine is registered for {type(warping).__name__}")
    return Policy(_plain(warping), in_bands=True)


def _plain(warping: Costs) -> str:
    policy = "DogKeeper" if warping.largest else "Dtw"
    return f"{policy}<{metric_of(squared=warping.squared)}>"


@policy_of.register
def _custom(distance: CustomWarping) -> Policy:
    if distance.own_cost.cuda is None:
        raise LookupError("there is no expression")
    metric = point_costs.metric_of(distance.own_cost.cuda, turned=distance.turned)
    kind = "DogKeeper" if distance.largest else "Dtw"
    return Policy(f"{kind}<{metric}>", in_bands=True)


@policy_of.register
def _erp(distance: distances.ERP) -> Policy:
    return Policy("Erp<T>", {"gap": distance.gap}, borders=True)


@policy_of.register
def _lcss(distance: distances.LCSS) -> Policy:
    searched = "LcssSearch<T>"
    return Policy("Lcss<T>", {"epsilon": distance.epsilon}, borders=True, searched=searched)


@policy_of.register
def _edr(distance: distances.EDR) -> Policy:
    if distance.own:
        return Policy("Edr<T, true>", {"epsilon": 0.0}, own=True, borders=True)
    if distance.epsilon is None:
        raise LookupError("series have to be prepared")
    return Policy("Edr<T, false>", {"epsilon": distance.epsilon}, borders=True)


@policy_of.register
def _twe(distance: distances.TWE) -> Policy:
    return Policy("Twe<T>", {"deletion": distance.deletion, "stiffness": 2 * distance.nu})


@policy_of.register
def _msm(distance: distances.MSM) -> Policy:
    return Policy("Msm<T>", {"deletion": 2 * distance.penalty})


@policy_of.register
def _adtw(distance: distances.ADTW) -> Policy:
    metric = metric_of(squared=distance.squared)
    return Policy(f"Amerced<T, {metric}>", {"penalty": distance.penalty}, in_bands=True)


@policy_of.register
def _wdtw(distance: distances.WDTW) -> Policy:
    if distance.longest == 0:
        raise LookupError("series have to be prepared")
    metric, own = metric_of(squared=distance.squared), str(distance.own).lower()
    return Policy(f"Weighted<T, {metric}, {own}>", weighted=distance, own=distance.own)


def cell_of(warping: Costs, type: str = "float") -> str:
    """Name the policy of a distance, for points of a type: ``"Dtw<Squared>"``."""
    return policy_of(warping).of(type) if isinstance(warping, Warping) else _plain(warping)


def any_cell(warping: Costs) -> np.ndarray:
    """Return the argument `cell` of a kernel with the policy `ANY_CELL`."""
    return np.array([(warping.squared, warping.largest)], _ANY)


def windows_cell(squared: bool, width: int) -> np.ndarray:
    """Return the argument `cell` of a kernel with the policy `WINDOWS`."""
    return np.array([(squared, width)], _WINDOWS)
