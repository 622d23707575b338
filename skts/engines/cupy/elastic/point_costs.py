"""Metrics of single channels whose terms are expressions of the user's, in the text of programs.

Imports nothing of CUDA.
"""

from __future__ import annotations

import hashlib

from ...families.elastic.custom import CustomWarping
from ...families.elastic.warping import Warping
from ..programs import add_text

__all__ = ["lacks_expression", "metric_of"]

#: A metric as ``include/cells.cuh`` has them: term(x, y), and add(x, y, sum).
_TEXT = """
struct {name} {{
    enum {{ FUSED = false }};

    template <typename T>
    static __device__ __forceinline__ T term(T {x}, T {y}) {{
        return T({expression});
    }}

    template <typename T>
    static __device__ __forceinline__ T add(T x, T y, T sum) {{
        return Arithmetic<T>::add(sum, term(x, y));
    }}
}};
"""


def metric_of(expression: str, *, turned: bool) -> str:
    """Name the metric of an expression, and have programs that name it hold its class.

    Parameters
    ----------
    expression : str
        The cost of two points, ``x`` and ``y``.
    turned : bool
        Whether the two series have changed places.

    Returns
    -------
    str
        The name of the class.
    """
    name = f"Custom_{hashlib.sha256(expression.encode()).hexdigest()[:16]}{'_turned' * turned}"
    x, y = ("y", "x") if turned else ("x", "y")
    add_text(name, _TEXT.format(name=name, x=x, y=y, expression=expression))
    return name


def lacks_expression(warping: Warping) -> str | None:
    """Say in a sentence that a cost of the user's is no expression, if it is none."""
    if not isinstance(warping, CustomWarping) or warping.own_cost.cuda is not None:
        return None
    return (
        "engine='cupy' needs the cost as a CUDA expression; here it is a Python function: give "
        "PointCost(function, cuda=...)."
    )
