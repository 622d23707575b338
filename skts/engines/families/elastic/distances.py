"""The elastic family: distances whose steps into a cell of the warping matrix cost differently.

Each is a subclass of `Stepped`: its parameters, the prices of its steps as plain code, and what
searches in float32 need to know. To add one, write its class here, and a policy for each engine
(docs/developer/extending.rst); all that lists distances finds it in `DISTANCES`. `ShapeDTW` is the
one without a policy: its steps are those of DTW, between descriptors of the points.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from ...core.certify import Rescaling
from ...core.series import Series
from .descriptors import in_order, with_repeated_ends
from .warping import Warping

__all__ = [
    "ADTW",
    "DISTANCES",
    "EDR",
    "ERP",
    "LCSS",
    "MSM",
    "TWE",
    "WDTW",
    "Elastic",
    "Parameter",
    "ShapeDTW",
    "Stepped",
    "parameters_of",
    "prepared",
]

#: Distances by their names.
DISTANCES: dict[str, type[Elastic]] = {}


@dataclass(frozen=True)
class Parameter:
    """Limits of a parameter of a distance.

    Parameters
    ----------
    about : str
        What it is, for docstrings.
    least : float, default 0
        The least value, itself allowed.
    optional : bool, default False
        Whether None is allowed, too.
    growth : int, default 0
        1 if no distance becomes less as it grows, -1 if none becomes larger, not even by a
        rounding; 0 if some do, or nobody knows.
    whole : bool, default False
        Whether it is a whole number.
    """

    about: str
    least: float = 0.0
    optional: bool = False
    growth: int = 0
    whole: bool = False


#: Points of a descriptor of shape DTW on either side, at most.
MOST_REACH = 2**31 - 1


def _scaled(value: float, rescaling: Rescaling) -> float:
    """Return a parameter times the scale, or the largest number: float32 has neither."""
    return min(value * rescaling.scale, float(np.finfo(np.float64).max))


def _parameter(default: float | None, about: str, **limits: Any) -> Any:
    return field(default=default, metadata={"parameter": Parameter(about, **limits)})


def parameters_of(distance: type[Warping]) -> dict[str, tuple[float | None, Parameter]]:
    """Default and limits of each parameter of a distance, by name."""
    named: Any = [each for each in fields(distance) if "parameter" in each.metadata]
    return {each.name: (each.default, each.metadata["parameter"]) for each in named}


@dataclass(frozen=True)
class Elastic(Warping):
    """A distance with parameters of its own, between series that are matched in full.

    Attributes
    ----------
    costs : tuple of str
        Values that `cost` may have.
    own : bool
        Whether the last channel of a series holds a number of the series, see `prepared`.
    """

    own: bool = False

    costs: ClassVar[tuple[str, ...]] = ("squared", "absolute")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "metrics" in vars(cls):
            DISTANCES[cls.metrics[0]] = cls

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost not in self.costs:
            raise ValueError(f"cost={self.cost!r} does not go with metric={self.metric!r}.")
        if self.alignment != "global":
            raise ValueError(
                f"alignment={self.alignment!r} does not go with metric={self.metric!r}: both "
                "series are matched in full."
            )
        for name, (_, limits) in parameters_of(type(self)).items():
            value = getattr(self, name)
            if value is None and limits.optional:
                continue
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
                raise TypeError(f"{name}={value!r} of metric={self.metric!r} is not a number.")
            value = float(value)
            if not (math.isfinite(value) and value >= limits.least):
                raise ValueError(
                    f"{name}={value!r} of metric={self.metric!r} is not a finite number"
                    + (f" from {limits.least:g} on." if limits.least > -math.inf else ".")
                )
            if limits.whole:
                if not value.is_integer():
                    raise ValueError(
                        f"{name}={value!r} of metric={self.metric!r} is not a whole number."
                    )
                value = int(value)
            object.__setattr__(self, name, value)

    def prepared_for(self, left: Series, right: Series) -> Self:
        """Return the same distance for two sets, of which lengths are known: see `prepared`."""
        return self

    def own_numbers(self, series: Series) -> np.ndarray:
        """Return the number of each series on which the distance depends (`own`)."""
        raise NotImplementedError

    @property
    def bounded(self) -> bool:
        """Whether the error of a search in float32 is known."""
        return False


@dataclass(frozen=True)
class Stepped(Elastic):
    """A distance whose steps cost differently.

    Every cell is the least of three sums: the cell before it on the diagonal and the price of
    matching its two points, the cell above and the price of a step down, the cell on the left and
    the price of a step to the right. Before all cells stands a 0; what else is before the first row
    and column is infinite, or the sum of steps along the border (`borders`).

    Attributes
    ----------
    borders : bool
        Whether a path may begin with points of one series that are left out.
    """

    cost: str = "absolute"

    costs: ClassVar[tuple[str, ...]] = ("absolute",)
    borders: ClassVar[bool] = False
    roundings: ClassVar[int] = 8

    # --- what is computed ----------------------------------------------------------------------

    @abstractmethod
    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """Prices of matching points i and j, and of the steps down and to the right that end there.

        Plain code; `x` and `y` are of shape (n_channels, n_timepoints). Along a border i or j is
        -1, and only the step along it counts.
        """

    def plain(self, x: np.ndarray, y: np.ndarray) -> float:
        """Distance of two series (n_channels, n_timepoints), by plain loops: for checks."""
        if self.independent and len(x) > 1:
            return _sum([self.plain(a[None], b[None]) for a, b in zip(x, y, strict=True)])
        n, m = x.shape[1], y.shape[1]
        radius = int(self.radius(n, m))
        costs = np.full((n + 1, m + 1), np.inf)
        costs[0, 0] = 0.0
        if self.borders:
            for i in range(min(n, radius)):
                costs[i + 1, 0] = self.prices(x, y, i, -1)[1] + costs[i, 0]
            for j in range(min(m, radius)):
                costs[0, j + 1] = self.prices(x, y, -1, j)[2] + costs[0, j]
        for i in range(n):
            for j in range(max(0, i - radius), min(m, i + radius + 1)):
                match, down, right = self.prices(x, y, i, j)
                costs[i + 1, j + 1] = min(
                    match + costs[i, j], down + costs[i, j + 1], right + costs[i + 1, j]
                )
        apart = np.abs(x[0, -1] - y[0, -1])
        return float(self.settle(costs[n, m], np.int64(n), np.int64(m), apart))

    def steps(self, n: int, m: int) -> int:
        """Steps of the longest path, those along a border included."""
        return n + m

    # --- searches in float32 -------------------------------------------------------------------

    @property
    def bounded(self) -> bool:
        """Whether the error of a search in float32 is known."""
        return not self.own

    @property
    def rough(self) -> bool:
        """Whether ``precision="float32"`` searches in float32 without a bound of its error."""
        return not (self.own or self.bounded)


def _before(x: np.ndarray, i: int) -> np.ndarray:
    """The points before point i of all channels, 0 before the first."""
    return x[:, i - 1] if i > 0 else np.zeros(len(x))


def _sum(terms: Any) -> float:
    """Sum in order, as kernels sum over channels."""
    return float(np.cumsum(terms)[-1])


@dataclass(frozen=True)
class ERP(Stepped):
    """Edit distance with real penalty: a point that is left out costs its distance from `gap`.

    Parameters
    ----------
    gap : float, default 0
        The value with which points are compared that are left out, in every channel.

    References
    ----------
    .. [1] Chen, Ng. "On the marriage of Lp-norms and edit distance". VLDB 2004.
    """

    metric: str = "erp"
    gap: float = _parameter(
        0.0, "value to which points are compared that are left out", least=-math.inf
    )

    metrics: ClassVar[tuple[str, ...]] = ("erp",)
    borders: ClassVar[bool] = True

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`."""
        down, right = _sum(np.abs(x[:, i] - self.gap)), _sum(np.abs(y[:, j] - self.gap))
        return _sum(np.abs(x[:, i] - y[:, j])), down, right

    def rescaling(self, low: float, high: float) -> Rescaling:
        """Have the gap at 0, so that it is exact, and its difference needs no subtraction."""
        # see "elastic float32" in docs/developer/numerics.rst
        return Rescaling.about(self.gap, low, high)

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        return replace(self, gap=0.0)


@dataclass(frozen=True)
class LCSS(Stepped):
    """Longest common subsequence: 1 less the share of points that match within `epsilon`.

    Costs count the points that are left out, of both series together.

    Parameters
    ----------
    epsilon : float, default 1
        Largest difference, in every channel, of two points that match.

    References
    ----------
    .. [1] Vlachos, Kollios, Gunopulos. "Discovering similar multidimensional trajectories". ICDE
       2002.
    """

    metric: str = "lcss"
    epsilon: float = _parameter(
        1.0, "largest difference, in every channel, of two points that match", growth=-1
    )

    metrics: ClassVar[tuple[str, ...]] = ("lcss",)
    borders: ClassVar[bool] = True
    settles: ClassVar[bool] = True
    #: Price of two points that are passed over together.
    apart: ClassVar[float] = 2.0

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`."""
        differ = np.any(np.abs(x[:, i] - y[:, j]) > self.epsilon)
        return self.apart if differ else 0.0, 1.0, 1.0

    def settle(self, costs: Any, n: Any, m: Any, apart: Any) -> Any:
        """Return the share of the shorter series that found no partner."""
        return (costs - abs(n - m)) / (2 * np.minimum(n, m))

    def matched(self, path: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """As `Warping.matched`: points that are passed over together do not match."""
        alike = np.abs(x[:, path[:, 0]] - y[:, path[:, 1]]) <= self.epsilon
        return path[alike.all(axis=0)]

    @property
    def bounded(self) -> bool:
        """Never: a difference that is rounded may come to the other side of `epsilon`."""
        return False

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        return replace(self, epsilon=_scaled(self.epsilon, rescaling))

    def unscaled(self, scale: float) -> float:
        """As `Warping.unscaled`: costs count points."""
        return 1.0


@dataclass(frozen=True)
class EDR(Stepped):
    """Edit distance on real sequences: insertions, deletions, replacements; a share of the points.

    Parameters
    ----------
    epsilon : float or None, default None
        Largest difference, in every channel, of two points that match; None is a quarter of the
        larger of the two standard deviations.

    References
    ----------
    .. [1] Chen, Ozsu, Oria. "Robust and fast similarity search for moving object trajectories".
       SIGMOD 2005.
    """

    metric: str = "edr"
    epsilon: float | None = _parameter(
        None,
        "largest difference, in every channel, of two points that match; None is a quarter of the "
        "larger standard deviation of the two series",
        optional=True,
        growth=-1,
    )

    metrics: ClassVar[tuple[str, ...]] = ("edr",)
    borders: ClassVar[bool] = True
    settles: ClassVar[bool] = True

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`."""
        epsilon = self.epsilon
        if self.own:
            epsilon, x, y = max(x[-1, 0], y[-1, 0]), x[:-1], y[:-1]
        return float(np.any(np.abs(x[:, i] - y[:, j]) > epsilon)), 1.0, 1.0

    def settle(self, costs: Any, n: Any, m: Any, apart: Any) -> Any:
        """Return the edits as a share of the longer series."""
        return costs / np.maximum(n, m)

    @property
    def bounded(self) -> bool:
        """Never: a difference that is rounded may come to the other side of `epsilon`."""
        return False

    def prepared_for(self, left: Series, right: Series) -> Self:
        """As `Stepped.prepared_for`: each series brings its own `epsilon`, if there is no other."""
        return replace(self, own=self.epsilon is None)

    def own_numbers(self, series: Series) -> np.ndarray:
        """Return a quarter of the deviation of each series."""
        values = series.values
        return np.array(
            [np.std(x[:, :n]) / 4 for x, n in zip(values, series.lengths.tolist(), strict=True)]
        )

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        assert self.epsilon is not None  # else searched in float64
        return replace(self, epsilon=_scaled(self.epsilon, rescaling))

    def unscaled(self, scale: float) -> float:
        """As `Warping.unscaled`: costs count points."""
        return 1.0


@dataclass(frozen=True)
class TWE(Stepped):
    """Time warp edit distance: points are matched together with those before them, or deleted.

    Parameters
    ----------
    nu : float, default 0.001
        Stiffness: the price of a difference in time of one point.
    lmbda : float, default 1
        Price of a deletion.

    References
    ----------
    .. [1] Marteau. "Time warp edit distance with stiffness adjustment for time series matching".
       IEEE Transactions on Pattern Analysis and Machine Intelligence 31, 2009.
    """

    metric: str = "twe"
    nu: float = _parameter(
        0.001, "stiffness: the price of a difference in time of one point", growth=1
    )
    lmbda: float = _parameter(1.0, "price of a deletion", growth=1)

    metrics: ClassVar[tuple[str, ...]] = ("twe",)
    spread: ClassVar[int] = 2

    @property
    def deletion(self) -> float:
        """Price of a deletion beside the difference of the two points."""
        return self.nu + self.lmbda

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`."""
        p, q = _before(x, i), _before(y, j)
        match = _sum(np.abs(x[:, i] - y[:, j]) + np.abs(p - q)) + 2 * self.nu * abs(i - j)
        down, right = _sum(np.abs(x[:, i] - p)), _sum(np.abs(y[:, j] - q))
        return match, down + self.deletion, right + self.deletion

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        return replace(self, nu=_scaled(self.nu, rescaling), lmbda=_scaled(self.lmbda, rescaling))


@dataclass(frozen=True)
class MSM(Stepped):
    """Move-split-merge: points are moved at the price of their difference, split, and merged.

    With C the price of a split or merge, which is `penalty` and how far the new point is from the
    interval of its two neighbours, and d(a; b, c) = (abs(a - b) + abs(a - c) - abs(b - c)) / 2 for
    the latter, all cells D are filled as E = 2 D - abs(x_i - y_j): then each of the three prices is
    one difference, or two. The last cell makes D again (`settle`). The distance of series of
    several channels is the sum of those of their channels.

    Parameters
    ----------
    penalty : float, default 1
        Price of a split or a merge.

    References
    ----------
    .. [1] Stefan, Athitsos, Das. "The move-split-merge metric for time series". IEEE Transactions
       on Knowledge and Data Engineering 25, 2013.
    """

    metric: str = "msm"
    penalty: float = _parameter(1.0, "price of a split or a merge", growth=1)

    metrics: ClassVar[tuple[str, ...]] = ("msm",)
    settles: ClassVar[bool] = True
    independent: ClassVar[bool] = True
    spread: ClassVar[int] = 2

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`, for E."""
        p, q = _before(x, i), _before(y, j)
        match = _sum(np.abs(x[:, i] - y[:, j]) + np.abs(p - q))
        down, right = _sum(np.abs(x[:, i] - p)), _sum(np.abs(y[:, j] - q))
        return match, down + 2 * self.penalty, right + 2 * self.penalty

    def settle(self, costs: Any, n: Any, m: Any, apart: Any) -> Any:
        """Return D of the last cell by its E."""
        return (costs + apart) / 2

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        return replace(self, penalty=_scaled(self.penalty, rescaling))


@dataclass(frozen=True)
class _Priced(Stepped):
    """Dynamic time warping whose costs depend on the step, or on the place."""

    cost: str = "squared"
    costs: ClassVar[tuple[str, ...]] = ("squared", "absolute")
    spread: ClassVar[int] = 2

    def _term(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> float:
        difference = x[:, i] - y[:, j]
        return _sum(difference * difference if self.squared else np.abs(difference))


@dataclass(frozen=True)
class ADTW(_Priced):
    """Amerced dynamic time warping: every step but the diagonal one costs `penalty` more.

    Parameters
    ----------
    penalty : float, default 1
        In units of costs: of squared differences where `cost` is "squared".

    References
    ----------
    .. [1] Herrmann, Webb. "Amercing: an intuitive and effective constraint for dynamic time
       warping". Pattern Recognition 137, 2023.
    """

    metric: str = "adtw"
    penalty: float = _parameter(
        1.0, "price of every step but the diagonal one, in units of costs", growth=1
    )

    metrics: ClassVar[tuple[str, ...]] = ("adtw",)

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`."""
        term = self._term(x, y, i, j)
        return term, term + self.penalty, term + self.penalty

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        penalty = _scaled(self.penalty, rescaling)
        return replace(self, penalty=_scaled(penalty, rescaling) if self.squared else penalty)


@dataclass(frozen=True)
class WDTW(_Priced):
    """Weighted dynamic time warping: costs grow with how far apart in time two points are.

    The weight of a difference in time of k points is 1 / (1 + exp(-g (k - n / 2))), n the length of
    the longer series.

    Parameters
    ----------
    g : float, default 0.05
        How steeply weights grow; with 0 all are 1/2.
    longest : int, default 0
        Points of the longer series of every pair, 0 where pairs differ.

    References
    ----------
    .. [1] Jeong, Jeong, Omitaomu. "Weighted dynamic time warping for time series classification".
       Pattern Recognition 44, 2011.
    """

    metric: str = "wdtw"
    g: float = _parameter(0.05, "how steeply weights grow with the difference in time")
    longest: int = 0

    metrics: ClassVar[tuple[str, ...]] = ("wdtw",)

    def weights(self, twice: np.ndarray | int) -> np.ndarray:
        """Weights by 2 k - n, twice the difference in time less the length of the longer series."""
        found: np.ndarray = expit(self.g * (np.asarray(twice) / 2))
        return found

    def prices(self, x: np.ndarray, y: np.ndarray, i: int, j: int) -> tuple[float, float, float]:
        """As `Stepped.prices`."""
        longest = self.longest
        if self.own:
            longest, x, y = int(max(x[-1, 0], y[-1, 0])), x[:-1], y[:-1]
        price = self._term(x, y, i, j) * float(self.weights(2 * abs(i - j) - longest))
        return price, price, price

    @property
    def bounded(self) -> bool:
        """Whether weights are normal numbers of float32, if they are the same for all pairs."""
        return not self.own and float(self.weights(-self.longest)) > 2.0**-120

    def prepared_for(self, left: Series, right: Series) -> Self:
        """As `Stepped.prepared_for`: pairs of several lengths have weights of their own."""
        longest = max(left.n_timepoints, right.n_timepoints)
        alike = any(side.equal_length and side.n_timepoints == longest for side in (left, right))
        return replace(self, own=not alike, longest=longest)

    def own_numbers(self, series: Series) -> np.ndarray:
        """Return the length of each series."""
        return series.lengths.astype(np.float64)

    def rescaled(self, rescaling: Rescaling) -> Self:
        """As `Warping.rescaled`."""
        return self


@dataclass(frozen=True)
class ShapeDTW(Elastic):
    """Shape DTW: the path matches points whose surroundings are alike, and is priced at the points.

    The descriptor of a point is the part of its series from `reach` points before to `reach` points
    after it, the first and the last point repeated beyond the ends; of several channels one after
    the other. The path is that of dynamic time warping between descriptors; the distance adds up,
    along it, what the points themselves differ by.

    Of several best paths the distance takes the one of `DTWPath`, whose rule tells the first series
    from the second. So that it has no direction, the two are compared in an order of their own: the
    shorter one first; of the same length the one that is less where they first differ.

    The square of the distance of two descriptors (or with absolute costs their distance) is the sum
    of the costs of their points, which is defined to the bit: the points of the first series, its
    repeated ends included, are cut into blocks of a descriptor's length; the part of a descriptor
    in its first block is summed from the end of the block back, the part in the next one from its
    beginning on, and both are added. So each of these sums takes one addition from one cell of a
    diagonal to the next, and loses nothing to differences of sums (see "descriptor sums" in
    docs/developer/numerics.rst).

    Parameters
    ----------
    reach : int, default 15
        Points of a descriptor before, and after, its own.

    References
    ----------
    .. [1] Zhao, Itti. "shapeDTW: shape dynamic time warping". Pattern Recognition 74, 2018.
    """

    metric: str = "shape_dtw"
    reach: int = _parameter(15, "points of a descriptor before, and after, its own", whole=True)

    metrics: ClassVar[tuple[str, ...]] = ("shape_dtw",)
    described: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse descriptors of more points than any series has."""
        super().__post_init__()
        if self.reach > MOST_REACH:
            raise ValueError(f"reach={self.reach}: it is at most {MOST_REACH}.")

    @property
    def width(self) -> int:
        """Points of a descriptor in a channel."""
        return 2 * self.reach + 1

    @property
    def between_descriptors(self) -> Warping:
        """The distance whose path is followed."""
        return Warping("dtw", self.cost, self.window)

    def padded(self, series: Series) -> Series:
        """Return series in which the descriptor of a point begins where the point was."""
        return with_repeated_ends(series, self.reach)

    def cells(self, n: int, m: int) -> int:
        """As `Warping.cells`, each counted for its sums of descriptors, too."""
        return 3 * super().cells(n, m)

    def along(self, path: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        """Distance of two series (n_channels, n_timepoints) along a path."""
        differences = x[:, path[:, 0]] - y[:, path[:, 1]]
        terms = differences * differences if self.squared else np.abs(differences)
        # cumulative sums add in order
        return float(self.distance(np.cumsum(np.cumsum(terms, axis=0)[-1])[-1]))

    def along_spans(self, x: Series, y: Series, first: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Distances of series i of one set and series i of another along paths.

        The paths are given by what each point of `x` is matched with: the points of `y` from
        `first` on, up to the one before `stop`.
        """
        from ...host import paths

        return self.distance(paths.costs_along(x, y, first, stop, squared=self.squared))

    def plain(self, x: np.ndarray, y: np.ndarray) -> float:
        """Distance of two series (n_channels, n_timepoints), by plain loops: for checks."""
        left, right = (Series(z[np.newaxis].copy(), np.array([z.shape[1]])) for z in (x, y))
        first, second, _ = in_order(left, right, np.zeros((1, 2), np.int64))
        x, y = first.values[0], second.values[0]
        p, q = (self.padded(one).values[0] for one in (first, second))
        n, m = x.shape[1], y.shape[1]
        radius = int(self.radius(n, m))
        costs = np.full((n, m), np.inf)
        before = np.full((n + 1, m + 1), np.inf)
        before[0, 0] = 0.0
        for i in range(n):
            for j in range(max(0, i - radius), min(m, i + radius + 1)):
                difference = p[:, i : i + self.width] - q[:, j : j + self.width]
                terms = difference * difference if self.squared else np.abs(difference)
                # points of the descriptor that are in the block in which it begins
                inside, terms = self.width - i % self.width, np.cumsum(terms, axis=0)[-1]
                cost = _sum(terms[:inside][::-1])
                if inside < self.width:
                    cost += _sum(terms[inside:])
                costs[i, j] = cost + min(before[i, j], before[i, j + 1], before[i + 1, j])
                before[i + 1, j + 1] = costs[i, j]
        i, j = n - 1, m - 1
        path = [(i, j)]
        while i > 0 or j > 0:
            steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
            i, j = min((step for step in steps if min(step) >= 0), key=lambda step: costs[step])
            path.append((i, j))
        return self.along(np.array(path[::-1]), x, y)


def prepared(
    left: Series,
    right: Series,
    warping: Warping,
    keep: Callable[[Series, Callable[[Series], Series]], Series] | None = None,
) -> tuple[Series, Series, Warping]:
    """Return what reductions take, for two sets of series and a distance.

    Where a distance depends on a number of each series, that becomes their last channel (`own`);
    where it is the same for all pairs, it becomes a field of the distance.

    Parameters
    ----------
    left, right : Series
        Two sets; the same object twice stays so.
    warping : Warping
        Options of the distance.
    keep : callable or None, default None
        Takes a set and a function that makes another one of it, and returns that, or what it
        returned before for the same set.

    Returns
    -------
    left, right : Series
        The sets.
    warping : Warping
        The distance.
    """
    if not isinstance(warping, Elastic):
        return left, right, warping
    distance = warping.prepared_for(left, right)
    if not distance.own:
        return left, right, distance

    def with_numbers(series: Series) -> Series:
        n_series, n_channels, n_timepoints = series.shape
        values = np.zeros((n_series, n_channels + 1, n_timepoints))
        values[:, :-1] = series.values
        inside = np.arange(n_timepoints) < series.lengths[:, np.newaxis]
        values[:, -1] = distance.own_numbers(series)[:, np.newaxis] * inside
        return Series(values, series.lengths)

    made = with_numbers(left) if keep is None else keep(left, with_numbers)
    if right is left:
        return made, made, distance
    return made, with_numbers(right) if keep is None else keep(right, with_numbers), distance
