"""Distances by their names, and the forms of their options, for estimators and functions.

One table, `METRICS`, of `metric` and `metric_params`, from which constraints, messages,
documentation and tests take their names. The distances of
`skts.engines.families.elastic.distances` are in it by themselves.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .engines import (
    DISTANCES,
    CustomWarping,
    Parameter,
    PointCost,
    Series,
    Warping,
    derivative,
    parameters_of,
    prepared,
)

__all__ = [
    "ALIGNMENT",
    "COST",
    "METRIC",
    "METRICS",
    "METRIC_PARAMS",
    "NAMED_COST",
    "WINDOW",
    "Distance",
    "Metric",
    "distance_of",
]


@dataclass(frozen=True)
class Metric:
    """An entry of the table.

    Attributes
    ----------
    name : str
        The value of `metric`.
    distance : type of Warping
        The distance.
    about : str
        What it is, in a line.
    metric : str
        The name by which the class of the distance knows it.
    describe : callable or None
        Makes the series of which the distance is computed.
    straight : bool
        Whether points are matched with those at the same time alone.
    """

    name: str
    distance: type[Warping]
    about: str
    metric: str
    describe: Callable[[Series], Series] | None = None
    straight: bool = False

    @property
    def parameters(self) -> dict[str, tuple[float | None, Parameter]]:
        """Default and limits of each of its `metric_params`.

        Returns
        -------
        dict
            By name.
        """
        return parameters_of(self.distance)

    @property
    def prices(self) -> tuple[str, ...]:
        """Values of `cost` that it goes with; of `cost` it takes no notice if that is one alone.

        Returns
        -------
        tuple of str
            The values.
        """
        return getattr(self.distance, "costs", ("squared", "absolute"))


def _first_line(distance: type[Warping]) -> str:
    return (distance.__doc__ or "").partition("\n")[0].rstrip(".")


_WARPED = (
    Metric("dtw", Warping, "Dynamic time warping: costs along a path are added", "dtw"),
    Metric("dog_keeper", Warping, "Discrete Frechet: the largest cost counts", "dog_keeper"),
    Metric("frechet", Warping, "Another name of dog_keeper", "dog_keeper"),
    Metric("euclidean", Warping, "No warping; series of one length", "dtw", straight=True),
    Metric("ddtw", Warping, "Dynamic time warping of the derivatives", "dtw", derivative),
)
#: All distances that have names.
METRICS: dict[str, Metric] = {one.name: one for one in _WARPED} | {
    name: Metric(name, distance, _first_line(distance), name)
    for name, distance in DISTANCES.items()
}
#: Constraints of the parameters, as scikit-learn writes them.
METRIC: list[Any] = [StrOptions(set(METRICS))]
METRIC_PARAMS: list[Any] = [dict, None]
NAMED_COST: list[Any] = [StrOptions({"squared", "absolute"})]
COST: list[Any] = [*NAMED_COST, callable]
WINDOW: list[Any] = [
    Interval(Integral, 0, None, closed="left"),
    Interval(Real, 0, 1, closed="both"),
    None,
]
ALIGNMENT: list[Any] = [StrOptions({"global", "subsequence", "supersequence"})]

#: What has been made of series, as long as these live.
_made: weakref.WeakKeyDictionary[Series, dict[Any, Series]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Distance:
    """A distance with its parameters, as reductions need it.

    Attributes
    ----------
    entry : Metric
        Its entry in the table.
    warping : Warping
        Its options.
    """

    entry: Metric
    warping: Warping

    def sides(self, left: Series, right: Series) -> tuple[Series, Series, Warping]:
        """Return what a reduction takes for two sets of series.

        Parameters
        ----------
        left, right : Series
            The sets; the same object twice stays so. What is made of them is kept as long as they.

        Returns
        -------
        left, right : Series
            The series of which the distance is computed.
        warping : Warping
            The distance.

        Raises
        ------
        ValueError
            If the distance is not defined for series of these lengths.
        """
        entry, describe = self.entry, self.entry.describe
        if describe is not None:
            left, right = (_keep(entry.name, side, describe) for side in (left, right))
        if entry.straight:
            for side in (left, right):
                other = np.flatnonzero(side.lengths != left.lengths[0])
                if other.size:
                    named = f"series {other[0]} has" if len(side) > 1 else "another"
                    raise ValueError(
                        f"metric={entry.name!r} needs series of one length: one has "
                        f"{left.lengths[0]} time points, {named} {side.lengths[other[0]]}."
                    )
        return prepared(left, right, self.warping, partial(_keep, entry.name + " numbers"))


def _keep(kind: str, series: Series, make: Callable[[Series], Series]) -> Series:
    """Make something of a set of series, or find it."""
    found = _made.setdefault(series, {})
    if kind not in found:
        found[kind] = make(series)
    return found[kind]


def distance_of(
    metric: str = "dtw",
    metric_params: Mapping[str, Any] | None = None,
    *,
    cost: str | Callable[[float, float], float] = "squared",
    window: float | None = None,
    alignment: str = "global",
) -> Distance:
    """Return a distance by its name and parameters.

    Parameters
    ----------
    metric : str, default "dtw"
        A name of `METRICS`.
    metric_params : mapping of str to float, or None
        Parameters of the distance; None takes the defaults.
    cost : {"squared", "absolute"} or callable, default "squared"
        Cost of matching two points; distances that have prices of their own take no notice of a
        name. A callable is a `PointCost`, or what it takes for its function.
    window : int, float or None, default None
        Sakoe-Chiba band, see `Warping`.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        What is matched in full, see `Warping`.

    Returns
    -------
    Distance
        The distance.

    Raises
    ------
    ValueError
        If a name is unknown, or options do not go together.
    TypeError
        If a parameter is not a number.
    """
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not one of {', '.join(map(repr, METRICS))}.")
    entry, given = METRICS[metric], dict(metric_params or {})
    known = entry.parameters
    for name in given:
        if name not in known:
            those = ", ".join(map(repr, known)) or "none"
            raise ValueError(
                f"metric_params: {name!r} is no parameter of metric={metric!r}, which has {those}."
            )
    if entry.distance is not Warping and alignment != "global":
        raise ValueError(
            f"alignment={alignment!r} does not go with metric={metric!r}: both series are matched "
            "in full."
        )
    if entry.straight:
        if window is not None or alignment != "global":
            name, value = ("window", window) if window is not None else ("alignment", alignment)
            raise ValueError(
                f"{name}={value!r} does not go with metric={metric!r}, which has no warping: use "
                "metric='dtw'."
            )
        window = 0
    if callable(cost):
        if entry.distance is not Warping:
            raise ValueError(
                f"cost={cost!r} does not go with metric={metric!r}: a function is the cost of "
                + ", ".join(repr(one.name) for one in _WARPED)
                + "."
            )
        own = PointCost.of(cost)
        custom = CustomWarping(entry.metric, "absolute", window, alignment, own)
        return Distance(entry, custom)
    if len(entry.prices) == 1:
        cost = entry.prices[0]
    warping = entry.distance(entry.metric, cost, window, alignment)
    return Distance(entry, replace(warping, **given) if given else warping)
