"""`CustomWarping`: DTW and the dog-keeper distance with a cost of the user's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .point_costs import PointCost
from .warping import Warping

__all__ = ["CustomWarping"]


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

    def plain_cost(self, x: np.ndarray, y: np.ndarray) -> float:
        """As `Warping.plain_cost`."""
        from ...host import point_costs

        radius = int(self.radius(x.shape[1], y.shape[1]))
        free = self.alignment == "subsequence", self.alignment == "supersequence"
        function = self.own_cost if self.own_cost.function is None else self.own_cost.function
        cost = point_costs.compiled(function)
        return point_costs.warped(x, y, radius, cost, self.turned, self.largest, *free)
