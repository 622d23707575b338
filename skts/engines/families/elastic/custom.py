"""`CustomWarping`: DTW and the dog-keeper distance with a cost of the user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...core.series import Series
from .point_costs import PointCost
from .warping import Warping

__all__ = ["CustomWarping"]


#: Points of a side whose costs are looked at: more of them where matrices have more cells.
FEWEST, MOST = 8, 32
#: Points of a side among which they are chosen.
SAMPLE = 2**14


class _Points(NamedTuple):
    """Points of a set of series.

    Attributes
    ----------
    series : Series
        The set.
    inside : ndarray of bool
        Which of its values are points.
    values : ndarray of shape (n_values,)
        Different ones of some of them, ascending, the extreme ones included.
    """

    series: Series
    inside: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, series: Series) -> _Points:
        """Look at a set."""
        values = series.values
        inside = np.arange(values.shape[2]) < series.lengths[:, np.newaxis, np.newaxis]
        inside = np.broadcast_to(inside, values.shape)
        points = values.ravel() if inside.all() else values[inside]
        some = points[:: -(-points.size // SAMPLE)]
        least = points[np.argmin(np.abs(points))]
        return cls(series, inside, np.unique([points.min(), points.max(), least, *some]))

    def choose(self, count: int) -> np.ndarray:
        """Some of the values: those at the ends, nearest to 0, and between them."""
        nearest = np.argmin(np.abs(self.values))
        return self.values[np.union1d(_spread(self.values.size, count), nearest)]

    def find(self, value: float) -> tuple[int, int]:
        """Series and time point where a value is."""
        row, _, time = np.argwhere((self.series.values == value) & self.inside)[0].tolist()
        return row, time


def _spread(size: int, count: int) -> np.ndarray:
    """So many places of a line, or fewer, from its first to its last."""
    return np.unique(np.linspace(0, size - 1, min(size, count)).astype(np.int64))


@dataclass(frozen=True)
class CustomWarping(Warping):
    """Warping whose points cost what a function says.

    Parameters
    ----------
    point_cost : PointCost
        The cost of two points.
    turned : bool, default False
        Whether the two series have changed places: the function gets points in the order in which
        they were given.
    """

    cost: str = "absolute"  # distances are no roots
    point_cost: PointCost | None = None
    turned: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.point_cost is None or self.squared:
            raise ValueError("CustomWarping needs a point_cost, of which no root is taken.")

    @property
    def symmetric(self) -> bool:
        """Never: nothing is known of the cost."""
        return False

    @property
    def flipped(self) -> CustomWarping:
        """The same distance when the two series change places."""
        other = {"subsequence": "supersequence", "supersequence": "subsequence"}
        alignment = other.get(self.alignment, self.alignment)
        return replace(self, alignment=alignment, turned=not self.turned)

    @property
    def own_cost(self) -> PointCost:
        """The cost of two points."""
        assert self.point_cost is not None  # see __post_init__
        return self.point_cost

    def check_costs(
        self,
        left: Series,
        right: Series,
        run: Callable[[Any], Any],
        names: tuple[str, str] = ("series {} of the first", "series {} of the second"),
    ) -> None:
        """As `Warping.check_costs`: of the extreme points, those nearest to 0, and some between."""
        if self.own_cost.function is None and left.n_timepoints == right.n_timepoints == 1:
            return  # the work that computes costs
        sides = [_Points.of(left), _Points.of(left if right is left else right)]
        # a hundredth of the cells, or less
        few = int(np.clip(np.sqrt(left.values.size * right.values.size) / 64, FEWEST, MOST))
        both = np.intersect1d(sides[0].values, sides[1].values)
        chosen = [
            np.union1d(side.choose(few), both[_spread(both.size, few // 2)]) for side in sides
        ]
        costs = self._costs(chosen[0], chosen[1], run)
        wrong = np.argwhere(~((costs >= 0) & (costs < np.inf)))
        if wrong.size == 0:
            return
        places = wrong[0].tolist()
        points = [values[place] for values, place in zip(chosen, places, strict=True)]
        where = [
            f"{points[k]:.17g} ({names[k].format(row)}, time point {time})"
            for k, (row, time) in enumerate(map(_Points.find, sides, points))
        ]
        where = where[::-1] if self.turned else where
        raise ValueError(
            f"cost={self.own_cost.function or self.own_cost.cuda!r} gives "
            f"{costs[tuple(places)]:.17g} for {where[0]} and {where[1]}: a cost must be finite and "
            "not negative."
        )

    def check_distances(self, distances: np.ndarray, pairs: np.ndarray | None = None) -> None:
        """As `Warping.check_distances`: so was a cost that was not looked at."""
        wrong = np.argwhere(~((distances >= 0) & (distances < np.inf)))
        if wrong.size == 0:
            return
        place = tuple(wrong[0].tolist())
        one, other = place if pairs is None else pairs[place].tolist()
        raise ValueError(
            f"cost={self.own_cost.function or self.own_cost.cuda!r} makes {distances[place]:.17g} "
            f"the distance of series {one} of the first and series {other} of the second: a cost "
            "must be finite and not negative."
        )

    def _costs(self, x: np.ndarray, y: np.ndarray, run: Callable[[Any], Any]) -> np.ndarray:
        """Costs of all points of one side and all of the other."""
        from ...host import point_costs
        from .dtw import DTWMatrix

        if self.own_cost.function is None:
            plain = replace(self, window=None, alignment="global")
            found: np.ndarray = run(DTWMatrix(Series.of(x[:, None]), Series.of(y[:, None]), plain))
            return found
        cost = point_costs.compiled(self.own_cost.function)
        if self.turned:
            return np.array([[cost(b, a) for b in y.tolist()] for a in x.tolist()], float)
        return np.array([[cost(a, b) for b in y.tolist()] for a in x.tolist()], float)

    def plain_cost(self, x: np.ndarray, y: np.ndarray) -> float:
        """As `Warping.plain_cost`."""
        from ...host import point_costs

        radius = int(self.radius(x.shape[1], y.shape[1]))
        free = self.alignment == "subsequence", self.alignment == "supersequence"
        function = self.own_cost if self.own_cost.function is None else self.own_cost.function
        cost = point_costs.compiled(function)
        return point_costs.warped(x, y, radius, cost, self.turned, self.largest, *free)
