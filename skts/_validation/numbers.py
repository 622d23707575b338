"""Values as float64; text, dates and complex numbers are refused with advice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

__all__ = ["as_numbers", "with_advice"]

#: Beginnings of messages of NumPy and scikit-learn, and how to go on.
_ADVICE = {
    "could not convert string": "series are numbers, so leave out columns of names, labels or "
    "dates.",
    "setting an array element with a sequence": "a cell holds a sequence. Give a list of arrays "
    "instead, one a series.",
    "Complex data not supported": "give real and imaginary parts as two channels.",
}
#: Types of dates and times.
_TIMES = (date, timedelta, np.datetime64, np.timedelta64)


def as_numbers(X: Any, input_name: str, what: str = "series", **options: Any) -> np.ndarray:
    """Return an array of float64, with NaN for what a mask hides; raise if it holds dates or times.

    NumPy would turn these into numbers, of a unit that depends on where they come from.
    """
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind not in "mMc":
        X = np.ma.filled(X.astype(np.float64), np.nan)
    first = X
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if getattr(getattr(first, "dtype", None), "kind", "") == "O" and np.size(first):
        first = np.ravel(first)[0]
    columns = getattr(first, "dtypes", None)
    kinds = [getattr(first, "dtype", None)] if columns is None else np.ravel(columns).tolist()
    times = any(getattr(kind, "kind", None) in ("m", "M") for kind in kinds)
    if times or isinstance(first, _TIMES):
        raise _time_error(input_name)
    if isinstance(first, str | bytes) or (any(map(_is_text, kinds)) and np.size(first)):
        raise _text_error(np.ravel(first)[:1].tolist()[0], input_name, what)
    # numbers too large for float64 become infinite, and are refused as infinite
    with np.errstate(over="ignore", invalid="ignore"), with_advice(input_name):
        if isinstance(X, list | tuple):
            array = np.asarray(X)
            if _is_text(array.dtype):  # of numbers and text NumPy makes text
                text = next(one for one in _leaves(X) if isinstance(one, str | bytes))
                raise _text_error(text, input_name, what)
            X = array
        # among numbers, too: NumPy makes numbers of dates, or dates of numbers
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        if kind in ("m", "M") or (
            kind == "O" and any(isinstance(one, _TIMES) for one in np.ravel(X))
        ):
            raise _time_error(input_name)
        return check_array(
            X,
            dtype=np.float64,
            allow_nd=True,
            ensure_all_finite=False,
            input_name=input_name,
            **options,
        )


@contextmanager
def with_advice(input_name: str) -> Iterator[None]:
    """Mend messages of scikit-learn and NumPy: name the argument, and say how to go on."""
    try:
        yield
    except OverflowError as error:  # of whole numbers and fractions of Python
        raise ValueError(f"{input_name} holds a number beyond the range of float64.") from error
    except TypeError as error:
        if not str(error).startswith("float() argument"):
            raise
        # the words that scikit-learn's checks look for
        raise TypeError(f"{error} in {input_name}.") from error
    except ValueError as error:
        # scikit-learn shows all complex numbers, NumPy a shape
        text = re.split(r"\n|\. ", str(error))[0].rstrip(".")
        for start, advice in _ADVICE.items():
            if text.startswith(start):
                raise ValueError(f"{text} in {input_name}: {advice}") from error
        raise


def _is_text(kind: Any) -> bool:
    """Whether a type is that of letters."""
    return getattr(kind, "kind", None) in ("U", "S")


def _leaves(nested: Any) -> Iterator[Any]:
    """Yield all values of lists in a list, or of arrays there."""
    for one in nested:
        if isinstance(one, list | tuple):
            yield from _leaves(one)
        else:
            yield from np.ravel(one).tolist()


def _time_error(input_name: str) -> ValueError:
    return ValueError(
        f"{input_name} holds dates or times, which are no values of a series: leave them out, "
        "or turn them into numbers of a unit of your choice."
    )


def _text_error(text: str | bytes, input_name: str, what: str) -> ValueError:
    return ValueError(
        f"{input_name} holds text, such as {text!r}: {what} are numbers, so leave out names and "
        "labels, or turn them into numbers."
    )
