"""Checks of parameters, scikit-learn's, as decorators that keep the signature.

scikit-learn states no types: behind its own decorators nobody could tell what `fit` returns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from sklearn.base import _fit_context
from sklearn.utils._param_validation import validate_params

__all__ = ["checks_arguments", "checks_parameters", "renamed"]

Function = TypeVar("Function", bound=Callable[..., Any])


def checks_parameters(method: Function) -> Function:
    """Decorate `fit` so that the parameters of the estimator are checked first.

    Parameters
    ----------
    method : callable
        The method.

    Returns
    -------
    callable
        The same behind scikit-learn's `_fit_context`.
    """
    return cast(Function, _fit_context(prefer_skip_nested_validation=True)(method))


def checks_arguments(constraints: Mapping[str, list[Any]]) -> Callable[[Function], Function]:
    """Decorate a function so that its arguments are checked first.

    Parameters
    ----------
    constraints : mapping of str to list
        For each argument the forms that it may have, as scikit-learn writes them.

    Returns
    -------
    callable
        The decorator, scikit-learn's `validate_params`.
    """
    return cast(
        Callable[[Function], Function],
        validate_params(dict(constraints), prefer_skip_nested_validation=True),
    )


def renamed(old: str, new: str, given: Any, value: Any, where: str, *, depth: int = 5) -> Any:
    """Return the value of a parameter that had another name, and warn if that was used.

    Parameters
    ----------
    old, new : str
        The two names.
    given : object
        What came under the old one, "deprecated" for nothing.
    value : object
        What came under the new one.
    where : str
        The function or estimator.
    depth : int, default 5
        Calls up to that of the user: this one, the function, its two decorators.

    Returns
    -------
    object
        The value that counts.
    """
    if isinstance(given, str) and given == "deprecated":
        return value
    warnings.warn(
        f"The parameter {old!r} of {where} is now called {new!r}; the old name goes in skts 0.2.",
        FutureWarning,
        stacklevel=depth,
    )
    return given
