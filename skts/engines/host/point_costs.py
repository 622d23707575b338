"""Functions of the user's that say what two points cost, compiled."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable
from inspect import ismethod, signature
from types import CodeType
from typing import Any

import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

from .kernels import stamp_of

__all__ = ["compiled", "digest_of", "warped"]

_compiled: dict[str, Dispatcher] = {}
_lock = threading.Lock()


def digest_of(function: Callable[..., Any]) -> str:
    """Name the state of a function: its code, and what it reads from around it.

    The same in every process, so that kernels are found again that have been compiled for it.

    Parameters
    ----------
    function : callable
        A Python function, or one compiled by Numba.

    Returns
    -------
    str
        Sixteen digits.

    Raises
    ------
    TypeError
        If it is no such function, or reads what is no number, array or function.
    """
    parts: list[Any] = []
    _describe(function, parts)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _describe(function: Any, parts: list[Any]) -> None:
    """Add the state of a function, and of those that it closes over."""
    python = getattr(function, "py_func", function)
    code = getattr(python, "__code__", None)
    if code is None or ismethod(python):
        raise TypeError(
            f"cost={function!r} is no Python function of two points, which Numba could compile."
        )
    if python.__module__ is not None:
        parts.append(stamp_of(function))
    parts += [_state_of(code), repr(python.__defaults__)]
    for cell in python.__closure__ or ():
        value = cell.cell_contents
        if isinstance(value, bool | int | float | str | np.number | np.bool_ | tuple):
            parts.append(repr(value))
        elif isinstance(value, np.ndarray):
            parts.append((str(value.dtype), value.shape, value.tobytes().hex()))
        elif value is not function:
            _describe(value, parts)


def _state_of(code: CodeType) -> tuple[Any, ...]:
    """State of what has been compiled to byte code, wherever it was written."""
    constants = [_state_of(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.co_code.hex(), repr(constants), code.co_names, code.co_varnames, code.co_freevars


def compiled(function: Callable[..., Any]) -> Dispatcher:
    """Return a function compiled by Numba, the same one for functions in the same state.

    Parameters
    ----------
    function : callable
        A Python function, or one compiled by Numba.

    Returns
    -------
    Dispatcher
        Compiled for two numbers in float64.

    Raises
    ------
    TypeError
        If it is no function of two points.
    ValueError
        If Numba does not compile it, or it returns something else than a number.
    """
    digest = digest_of(function)
    with _lock:
        if digest not in _compiled:
            made: Any = function
            if not isinstance(made, Dispatcher):
                made = njit(nogil=True, error_model="numpy")(made)
            try:
                made.compile("(float64, float64)")
            except (NumbaError, TypeError) as error:
                taken = len(signature(made.py_func).parameters)
                if taken != 2:
                    raise ValueError(
                        f"cost={function!r} must take two arguments, a point of each series; it "
                        f"takes {taken}."
                    ) from error
                raise ValueError(
                    f"Numba does not compile cost={function!r}: {_first_line(error)}"
                ) from error
            (returned,) = {
                str(types.unliteral(one.signature.return_type)) for one in made.overloads.values()
            }
            if returned not in ("float64", "float32", "int64", "bool"):
                raise ValueError(f"cost={function!r} returns a {returned}, no number.")
            _compiled[digest] = made
        return _compiled[digest]


def _first_line(error: Exception) -> str:
    """Return what is wrong, of a message of many lines."""
    # with colorama Numba colours what it says
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if not line.startswith("Failed in")]
    return (wrong or lines or [type(error).__name__])[0]


def warped(
    x: np.ndarray,
    y: np.ndarray,
    radius: int,
    cost: Callable[[float, float], float],
    turned: bool,
    largest: bool,
    free_columns: bool,
    free_rows: bool,
) -> float:
    """Accumulated cost of the best path of one pair, by plain loops: `plain.warped`.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n_timepoints)
        Two series.
    radius : int
        Half width of the band.
    cost : callable
        The cost of two points.
    turned : bool
        Whether it gets the point of `y` first.
    largest : bool
        Whether the largest cost of a path counts.
    free_columns, free_rows : bool
        Whether a path may begin and end anywhere in `y`, or in `x`.

    Returns
    -------
    float
        The accumulated cost.
    """
    (n_channels, n), m = x.shape, y.shape[1]
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0.0
    if free_columns:
        table[0] = 0.0
    if free_rows:
        table[:, 0] = 0.0
    for i in range(n):
        for j in range(max(0, i - radius), min(m, i + radius + 1)):
            total = 0.0
            for c in range(n_channels):
                pair = (y[c, j], x[c, i]) if turned else (x[c, i], y[c, j])
                total += cost(*pair)
            best = min(table[i, j], table[i, j + 1], table[i + 1, j])
            table[i + 1, j + 1] = max(total, best) if largest else total + best
    if free_rows:
        return float(table[1:, m].min())
    if free_columns:
        return float(table[n, 1:].min())
    return float(table[n, m])
