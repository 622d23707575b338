"""Checks of parameters, scikit-learn's, as decorators that keep the signature.

scikit-learn states no types: behind its own decorators nobody could tell what `fit` returns.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, InvalidParameterError, validate_params

__all__ = [
    "N_JOBS",
    "checks_arguments",
    "checks_parameters",
    "refuse_truth",
    "renamed",
    "warn_user",
]

Function = TypeVar("Function", bound=Callable[..., Any])
#: Threads: as joblib counts them, which knows no number for none.
N_JOBS: list[Any] = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]


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
        The decorator, scikit-learn's `validate_params` with some of its messages mended.
    """

    def _decorate(function: Function) -> Function:
        checked = validate_params(dict(constraints), prefer_skip_nested_validation=True)(function)
        signature = inspect.signature(function)
        names = list(signature.parameters)

        @wraps(checked)
        def _call(*args: Any, **kwargs: Any) -> Any:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            refuse_truth(given, constraints, function.__qualname__)
            try:
                return checked(*args, **kwargs)
            except TypeError:
                try:
                    signature.bind(*args, **kwargs)
                except TypeError:
                    # in words of Python, which name the function
                    return function(*args, **kwargs)
                raise

        return cast(Function, _call)

    return _decorate


def refuse_truth(
    given: Mapping[str, Any], constraints: Mapping[str, list[Any]], where: str
) -> None:
    """Refuse True and False where a number is asked for, which Python takes for 1 and 0.

    Parameters
    ----------
    given : mapping of str to object
        Arguments.
    constraints : mapping of str to list
        The forms that they may have.
    where : str
        The function or estimator.

    Raises
    ------
    InvalidParameterError
        If one is a truth value and may be none.
    """
    for name, value in given.items():
        if isinstance(value, bool) and any(
            one in (Integral, Real) or isinstance(one, Interval)
            for one in constraints.get(name, ())
        ):
            raise InvalidParameterError(
                f"The {name!r} parameter of {where} must be a number. Got {value!r} instead."
            )


def renamed(old: str, new: str, given: Any, value: Any, where: str) -> Any:
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

    Returns
    -------
    object
        The value that counts.
    """
    if isinstance(given, str) and given == "deprecated":
        return value
    warn_user(
        f"The parameter {old!r} of {where} is now called {new!r}; the old name goes in skts 0.2.",
        FutureWarning,
    )
    return given


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the package, behind decorators and scikit-learn's wrappers.

    Parameters
    ----------
    message : str
        The warning.
    category : type of Warning, default UserWarning
        Its class.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in ("skts", "sklearn"):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
