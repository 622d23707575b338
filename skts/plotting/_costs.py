"""Costs of matching points under any distance, for pictures of warping paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._metrics import Distance
from ..engines import CustomWarping, Series

__all__ = ["as_sets", "first_point", "label_of", "matching_costs"]


def as_sets(*series: np.ndarray) -> list[Series]:
    """Return each series as a set of one, as distances take them.

    Parameters
    ----------
    *series : ndarray of shape (n_channels, n_timepoints)
        The series.

    Returns
    -------
    list of Series
        The sets.
    """
    return [Series.of(one[np.newaxis]) for one in series]


def first_point(metric: str) -> int:
    """Return the time point of the first value that a distance compares.

    Parameters
    ----------
    metric : str
        Its name.

    Returns
    -------
    int
        1 under "ddtw": derivatives begin at the second point; else 0.
    """
    return int(metric == "ddtw")


def matching_costs(
    x: np.ndarray, y: np.ndarray, distance: Distance, steps: tuple[int, ...]
) -> np.ndarray:
    """Return the costs of matching every n-th point of two series under a distance.

    They are those of the column "both" of the table in docs/user_guide/distances.rst. Under "ddtw"
    points are estimates of the derivative, under "lcss" a match costs 0, and points that do not
    match cost 1.

    Parameters
    ----------
    x, y : ndarray of shape (n_channels, n_timepoints)
        The series.
    distance : Distance
        The distance.
    steps : tuple of int
        One of so many points is taken of `x`, and of `y`.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        The costs.
    """
    warping: Any
    left, right, warping = distance.sides(*as_sets(x, y))
    points, numbers = [left.values[0], right.values[0]], [0.0]
    if getattr(warping, "own", False):  # the last channel is a number of the series
        numbers = [side[-1, 0] for side in points]
        points = [side[:-1] for side in points]
    sides = [side[:, ::step] for side, step in zip(points, steps, strict=True)]
    if warping.metric in ("edr", "lcss"):
        epsilon = max(numbers) if warping.epsilon is None else warping.epsilon
        return (_largest_gaps(*sides) > epsilon).astype(np.float64)
    if isinstance(warping, CustomWarping):
        return _summed_by_function(sides[0], sides[1], warping)
    costs = _summed(*sides, squared=warping.squared)
    places = [np.arange(0, side.shape[1], n) for side, n in zip(points, steps, strict=True)]
    apart = np.abs(places[0][:, np.newaxis] - places[1])
    if warping.metric == "wdtw":
        costs *= warping.weights(2 * apart - warping.longest)
    if warping.metric == "twe":
        # before the first point stands a 0
        before = [np.pad(side, ((0, 0), (1, 0)))[:, :-1] for side in points]
        before = [side[:, ::step] for side, step in zip(before, steps, strict=True)]
        costs += _summed(*before, squared=False) + 2 * warping.nu * apart
    return costs


def label_of(distance: Distance) -> str:
    """Name the costs of a distance, for the scale of a picture.

    Parameters
    ----------
    distance : Distance
        The distance.

    Returns
    -------
    str
        A few words.
    """
    name, warping = distance.entry.name, distance.warping
    if isinstance(warping, CustomWarping) or name == "twe":
        return "cost"
    if name in ("edr", "lcss"):
        return "1: more than epsilon apart"
    label = f"{warping.cost} difference"
    return {"wdtw": f"weighted {label}", "ddtw": f"{label} of derivatives"}.get(name, label)


def _differences(x: np.ndarray, y: np.ndarray) -> Any:
    """Absolute differences of all pairs of points, channel by channel."""
    return (np.abs(a[:, np.newaxis] - b) for a, b in zip(x, y, strict=True))


def _summed(x: np.ndarray, y: np.ndarray, *, squared: bool) -> np.ndarray:
    """Squared or absolute differences, summed over channels."""
    costs = np.zeros((x.shape[1], y.shape[1]))
    for gap in _differences(x, y):
        costs += gap * gap if squared else gap
    return costs


def _largest_gaps(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Absolute differences, the largest of all channels."""
    costs = np.zeros((x.shape[1], y.shape[1]))
    for gap in _differences(x, y):
        np.maximum(costs, gap, out=costs)
    return costs


def _summed_by_function(x: np.ndarray, y: np.ndarray, warping: CustomWarping) -> np.ndarray:
    """Costs by a function of the user's, summed over channels."""
    cost_of = np.vectorize(warping.own_cost, otypes=[np.float64])
    costs = np.zeros((x.shape[1], y.shape[1]))
    for a, b in zip(x, y, strict=True):
        costs += cost_of(a[:, np.newaxis], b)
    return costs
