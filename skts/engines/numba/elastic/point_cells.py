"""Cell policies of costs that are functions of the user's."""

from __future__ import annotations

from typing import Any

from ...families.elastic.custom import CustomWarping
from ...families.elastic.warping import Warping
from ...host import point_costs
from .cells import Cell, DogKeeperCell, cell_of, like

__all__ = ["custom_cell", "lacks_function"]

#: Policies by the states of their functions, and what is made of them.
_made: dict[tuple[str, str, bool], Cell] = {}


def lacks_function(warping: Warping) -> str | None:
    """Say in a sentence that a cost of the user's is no function, if it is none."""
    if not isinstance(warping, CustomWarping) or warping.own_cost.function is not None:
        return None
    return (
        "engine='numba' needs the cost as a Python function; here it is the CUDA expression "
        f"{warping.own_cost.cuda!r}: give PointCost(function, cuda=...)."
    )


@cell_of.register
def custom_cell(distance: CustomWarping) -> Cell:
    """Return the policy of a distance: of one class for functions in the same state.

    Kernels on disk are found by the name of the class, which holds that state.
    """
    function = distance.own_cost.function
    if function is None:
        raise LookupError("there is no function")
    key = point_costs.digest_of(function), distance.metric, distance.turned
    if key not in _made:
        cost: Any = point_costs.compiled(function)

        def straight(self: Cell, x: float, y: float) -> Any:
            return like(cost(x, y), x)

        def turned(self: Cell, x: float, y: float) -> Any:
            return like(cost(y, x), x)

        base = DogKeeperCell if distance.largest else Cell
        # all that tells it from others
        name = " ".join(["Custom", distance.metric, key[0], *["turned"] * distance.turned])
        methods = {"term": turned if distance.turned else straight, "__module__": __name__}
        # of two threads that come at once either may make it: by its name the kernels are the same
        _made[key] = type(name, (base,), methods)()
    return _made[key]
