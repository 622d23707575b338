"""Parts that all displays share: panels, and a palette that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._validation import check_one

__all__ = [
    "COSTS",
    "PanelsMixin",
    "check_fitted",
    "check_most",
    "color_of",
    "is_place",
    "normalized",
    "points_of",
]

#: Okabe and Ito's palette without its yellow, which is too pale for lines, and without black.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Colour map of costs: its lightness grows evenly, also without red or green.
COSTS = "cividis"


def is_place(value: Any, number: float) -> bool:
    """Whether a value is the number of one of so many things, counted from 0.

    Parameters
    ----------
    value : object
        What was given.
    number : int or float
        How many things there are.

    Returns
    -------
    bool
        False for what is no whole number, too.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and 0 <= value < number


def check_most(name: str, value: Any) -> None:
    """Raise unless a parameter says how many things to draw at most.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : object
        What was given.

    Raises
    ------
    ValueError
        If it is no whole number, or a negative one.
    """
    if not is_place(value, np.inf):
        raise ValueError(f"{name}={value!r} is no whole number of 0 or more.")


def check_fitted(estimator: Any, kind: type | tuple[type, ...]) -> None:
    """Raise unless an estimator is of a kind, and fitted.

    Parameters
    ----------
    estimator : object
        What was given.
    kind : type or tuple of type
        The class that can be drawn, or several.

    Raises
    ------
    TypeError
        If it is of another class.
    NotFittedError
        If it is not fitted.
    """
    if not isinstance(estimator, kind):
        names = [one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,))]
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; a fitted {' or '.join(names)} is needed "
            "here."
        )
    check_is_fitted(estimator)


def points_of(x: ArrayLike, name: str) -> np.ndarray:
    """Return one series as it is compared: checked, without the NaN or mask that pads it.

    Parameters
    ----------
    x : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        A series.
    name : str
        The argument's name in messages.

    Returns
    -------
    ndarray of shape (n_channels, n_timepoints), float64
        Its points.
    """
    series = check_one(x, name)
    points: np.ndarray = series.values[0, :, : series.lengths[0]]
    return points


def color_of(number: int) -> str:
    """Colour of a class, cluster or motif; they repeat after six, so its name stands beside it.

    Parameters
    ----------
    number : int
        Its number.

    Returns
    -------
    str
        A colour as matplotlib takes it.
    """
    return _COLORS[number % len(_COLORS)]


def normalized(rows: np.ndarray) -> np.ndarray:
    """Rows with mean 0 and deviation 1; constant ones with mean 0.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_timepoints)
        The rows.

    Returns
    -------
    ndarray of shape (n_rows, n_timepoints)
        New rows.
    """
    centered = rows - rows.mean(axis=1, keepdims=True)
    spread = centered.std(axis=1, keepdims=True)
    return centered / np.where(spread > 0, spread, 1)


class PanelsMixin:
    """Displays that are drawn in several axes."""

    axes_: np.ndarray
    figure_: Any

    def _panels(self, axes: Any, n_panels: int, make: Callable[[], list[Any]]) -> list[Any]:
        """Axes to draw in, those that were given or those of a new figure; remembered.

        They may be given as `matplotlib.pyplot.subplots` returns them: one, or an array.
        """
        if axes is None:
            axes = make()
        axes = np.ravel(np.array(axes, dtype=object)).tolist()
        if len(axes) != n_panels:
            raise ValueError(f"axes holds {len(axes)} axes for {n_panels} panels.")
        for one in axes:
            if not hasattr(one, "plot"):
                raise TypeError(f"axes holds a {type(one).__name__}: give axes of matplotlib.")
        self.axes_ = np.array(axes, dtype=object)
        self.figure_ = axes[0].figure
        return axes
