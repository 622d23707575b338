"""Numbers that users give, in one form: Python's."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

__all__ = ["plain", "takes_plain"]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def plain(value: Any) -> Any:
    """Return a scalar of NumPy, or an array of no dimensions, as Python has it.

    All code that follows then calculates with the same numbers, whichever type they came in.

    Parameters
    ----------
    value : object
        What a user gave.

    Returns
    -------
    object
        A Python scalar for a scalar of NumPy; anything else as it is.

    Examples
    --------
    >>> import numpy as np
    >>> plain(np.float32(0.5)), plain(np.array(3)), plain(np.arange(2))
    (0.5, 3, array([0, 1]))
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.longdouble):
        return float(value)
    if isinstance(value, np.bool_ | np.number | np.str_):
        return value.item()
    return value


def takes_plain(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Decorate a function so that scalars of NumPy reach it as Python's, and underflow is no error.

    Parameters
    ----------
    function : callable
        The function.

    Returns
    -------
    callable
        The same function behind `plain`. What is too small for float64 is 0 in it, whatever
        `numpy.errstate` the caller has set.
    """

    @wraps(function)
    def _call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        # the same names, so the same signature
        given: Any = {name: plain(value) for name, value in kwargs.items()}
        with np.errstate(under="ignore"):
            return function(*map(plain, args), **given)

    return _call
