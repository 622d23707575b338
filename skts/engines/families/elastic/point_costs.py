"""`PointCost`: a function of the user's that says what two points cost."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["PointCost"]

#: Characters that make more of a text than one expression.
_NO_EXPRESSION = re.compile(r"[;{}#\\\n]")


@dataclass(frozen=True)
class PointCost:
    """The cost of matching two points, for dynamic time warping and the dog-keeper distance.

    It is asked for two points in one channel at a time, and the costs of all channels are added.
    The distance is the sum of the costs along the path, or the largest of them, without a root.

    Parameters
    ----------
    function : callable or None, default None
        Takes a point of the first and one of the second series, two floats, and returns their cost,
        finite and not negative. For the CPU engine, which compiles it by Numba: it may call what
        Numba knows, and read numbers and arrays from around it.
    cuda : str or None, default None
        The same as an expression of ``x`` and ``y`` in CUDA C++, for the GPU engine:
        ``"fabs(x - y)"``. Both are of type ``double``.

    Raises
    ------
    TypeError
        If `function` cannot be called, or `cuda` is no text.
    ValueError
        If there is neither, or `cuda` is more than one expression.

    See Also
    --------
    pairwise_distances : Takes one as `cost`.

    Notes
    -----
    One of both is enough: the other engine says what it lacks. An engine gives the same answer
    however the work is split; that both engines give the same bits is up to the function and the
    expression: compilers of CUDA join a product and a sum into one operation, and have functions of
    their own. Compiled kernels are kept on disk, and found again by what is in the function: its
    code, and the numbers that it reads from around it.

    All distances are computed in float64, without lower bounds: nothing is known of the cost.
    Before any work costs of some points are looked at: the least and largest ones, those nearest to
    0, such as both sets hold, and some between them. One that is NaN, infinite or negative raises
    a `ValueError` that names the points.

    Examples
    --------
    >>> from skts import DTWNearestNeighbor
    >>> from skts.metrics import PointCost
    >>> def huber(x, y):
    ...     apart = abs(x - y)
    ...     return 0.5 * apart * apart if apart <= 1 else apart - 0.5
    >>> cost = PointCost(huber, "fabs(x - y) <= 1 ? 0.5 * (x - y) * (x - y) : fabs(x - y) - 0.5")
    >>> cost(0.0, 4.0)
    3.5
    >>> model = DTWNearestNeighbor(cost=cost)
    """

    function: Callable[[float, float], float] | None = None
    cuda: str | None = None

    def __post_init__(self) -> None:
        if self.function is None and self.cuda is None:
            raise ValueError("PointCost needs a function, or a CUDA expression, or both.")
        if not (self.function is None or callable(self.function)):
            raise TypeError(f"function={self.function!r} cannot be called.")
        if self.cuda is None:
            return
        if not isinstance(self.cuda, str):
            raise TypeError(f"cuda={self.cuda!r} is no text.")
        if _NO_EXPRESSION.search(self.cuda) or not self.cuda.strip():
            raise ValueError(f"cuda={self.cuda!r} is not one expression of x and y.")

    def __call__(self, x: float, y: float) -> float:
        """Return the cost of two points in a channel."""
        if self.function is None:
            raise ValueError(
                f"A cost that is the CUDA expression {self.cuda!r} alone cannot be computed on the "
                "CPU: give PointCost a function, too."
            )
        return self.function(x, y)

    def __deepcopy__(self, memo: dict[int, Any]) -> PointCost:
        """Return itself, which nothing changes: a copy of a function would be another one."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel by value where the function has no name by which it is found."""
        from joblib import wrap_non_picklable_objects

        function: Any = self.function
        if function is not None:
            function = wrap_non_picklable_objects(function, keep_wrapper=False)
        return type(self), (function, self.cuda)

    @classmethod
    def of(cls, cost: Callable[[float, float], float]) -> PointCost:
        """Return a cost, or make one of a function.

        Parameters
        ----------
        cost : callable
            A function, or a cost.

        Returns
        -------
        PointCost
            The cost.
        """
        return cost if isinstance(cost, cls) else cls(cost)
