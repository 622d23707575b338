"""Arguments that distances have in common: options and their forms, two series, two sets."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from .._log import counted
from .._metrics import ALIGNMENT, COST, WINDOW
from .._parameters import N_JOBS, warn_user
from .._validation import (
    channel_names,
    check_layout,
    check_one,
    check_series,
    refuse_other_channels,
    transposed,
)
from ..engines import Series

__all__ = ["DISTANCE", "WARPING", "WORK", "check_pair", "check_sets"]

#: Options of the functions of one distance.
DISTANCE: dict[str, list[Any]] = {
    "window": WINDOW,
    "cost": COST,
    "alignment": ALIGNMENT,
    "engine": [str, None],
}
#: Those of functions that take one of both distances of warping.
WARPING: dict[str, list[Any]] = {"metric": [StrOptions({"dtw", "dog_keeper"})], **DISTANCE}
#: How matrices are computed.
WORK: dict[str, list[Any]] = {"n_jobs": N_JOBS, "verbose": ["verbose"]}


def check_pair(x: ArrayLike, y: ArrayLike) -> tuple[Series, Series]:
    """Check two series.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        The series.

    Returns
    -------
    tuple of Series
        Each as a set of one.
    """
    left, right = check_one(x, "x"), check_one(y, "y")
    channels = left.n_channels, right.n_channels
    if left.n_timepoints == 1 == right.n_timepoints and max(channels) > 1:
        text = (
            f"x has {channels[0]} channels and y {channels[1]}, of one time point each: series are "
            "(n_timepoints,) or (n_channels, n_timepoints). If time runs down the rows, write "
            f"{transposed(x, 'x')} and {transposed(y, 'y')}."
        )
        if channels[0] != channels[1]:
            raise ValueError(text)
        warn_user(text)
    _same_channels(left, right, ("x", "y"))
    return left, right


def check_sets(
    X: ArrayLike | list[ArrayLike], Y: ArrayLike | list[ArrayLike] | None
) -> tuple[Series, Series]:
    """Check two sets of series.

    Parameters
    ----------
    X, Y : array-like or list of array-like
        The sets, as `check_series` takes them; `Y` may be None.

    Returns
    -------
    tuple of Series
        Both sets, or one twice.
    """
    if Y is None:
        return (both := check_series(X)), both
    left, right = (check_series(Z, input_name=name, new=False) for Z, name in ((X, "X"), (Y, "Y")))
    # a single time point of several channels may be compared with longer series
    if left.n_timepoints == 1 == right.n_timepoints:
        check_layout(X, left, "X")
        check_layout(Y, right, "Y")
    _same_channels(left, right, ("X", "Y"))
    refuse_other_channels(Y, channel_names(X), "Y", "X")
    return left, right


def _same_channels(left: Series, right: Series, names: tuple[str, str]) -> None:
    if left.n_channels != right.n_channels:
        raise ValueError(
            f"{names[0]} has {counted(left.n_channels, 'channel')} where {names[1]} has "
            f"{right.n_channels}."
        )
