"""`Warping`: which warping paths are allowed, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np

from ...core.certify import Rescaling
from ...core.series import Series

__all__ = [
    "PLAIN",
    "Warping",
    "added",
    "cells_within",
    "lacks_distance",
    "plain_distance",
    "settled",
]

#: Points of a band that no series reaches across; wider ones are no wider.
_WIDEST = 2**29

_CHOICES = {
    "cost": ("squared", "absolute"),
    "alignment": ("global", "subsequence", "supersequence"),
}


@dataclass(frozen=True)
class Warping:
    """Options of a distance under warping.

    A subclass is another distance, with its own names of metrics and its own fields; engines refuse
    it unless they know it (docs/developer/extending.rst).

    Parameters
    ----------
    metric : {"dtw", "dog_keeper"}, default "dtw"
        Whether the costs along a path are added, or the largest counts.
    cost : {"squared", "absolute"}, default "squared"
        Cost of matching two points, summed over channels. The distance is the square root of the
        accumulated squared costs, or the accumulated absolute costs themselves.
    window : int, float or None, default None
        Sakoe-Chiba band: matched points are at most so far apart. A float is a fraction of the
        longer series, rounded up (as the UCR archive does); None is no limit. Scalars of NumPy
        become Python's here, so that all that follows works with one and the same number; 1.0
        becomes None.
    alignment : {"global", "subsequence", "supersequence"}, default "global"
        Whether both series are matched in full; or the first to a contiguous part of the second;
        or the second to a contiguous part of the first.

    Raises
    ------
    ValueError
        If an option has another value, or a window comes with an alignment that has no band.
    """

    metric: str = "dtw"
    cost: str = "squared"
    window: float | None = None
    alignment: str = "global"

    #: Names that `metric` may have.
    metrics: ClassVar[tuple[str, ...]] = ("dtw", "dog_keeper")
    #: Whether a path may begin and end with points of one series that are left out.
    borders: ClassVar[bool] = False
    #: Whether distances depend on more than accumulated costs, see `settle`.
    settles: ClassVar[bool] = False
    #: Whether the distance of series of several channels is the sum of those of their channels.
    independent: ClassVar[bool] = False
    #: Differences of points in a channel that the price of a step adds up.
    spread: ClassVar[int] = 1
    #: Roundings that the price of a step has beside those of its sum, at most.
    roundings: ClassVar[int] = 0
    #: Whether paths are found between descriptors of points, and priced at the points themselves.
    described: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, choices in {"metric": self.metrics, **_CHOICES}.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}.")
            object.__setattr__(self, name, str(value))
        window = self.window
        if window is None:
            return
        if isinstance(window, (bool, np.bool_)) or not isinstance(window, Real):
            raise ValueError(f"window={window!r} is not a number of points, a fraction, or None.")
        window = int(window) if isinstance(window, Integral) else float(window)
        object.__setattr__(self, "window", window)
        if isinstance(window, int):
            if window < 0:
                raise ValueError(f"window={window} is negative: give 0 or more points.")
        elif not 0 <= window <= 1:
            raise ValueError(
                f"window={window} is not a fraction between 0 and 1; give an int for points."
            )
        if self.alignment != "global":
            raise ValueError(
                f"window={window} does not go with alignment={self.alignment!r}: a band needs the "
                "ends of both series matched."
            )
        if window == 1.0 and isinstance(window, float):
            # no limit; and 1.0 equals 1: what is remembered by options must tell them apart
            object.__setattr__(self, "window", None)

    @property
    def squared(self) -> bool:
        """Whether costs are squared, and the distance a square root."""
        return self.cost == "squared"

    @property
    def largest(self) -> bool:
        """Whether the largest cost of a path counts instead of the sum."""
        return self.metric == "dog_keeper"

    @property
    def bounded(self) -> bool:
        """Whether errors of float32 (`dtw_bound`) and lower bounds are known: searches use both."""
        return type(self) is Warping

    @property
    def rough(self) -> bool:
        """Whether ``precision="float32"`` searches in float32 without a bound of its error."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether the distance stays the same when the two series change places."""
        return self.alignment == "global"

    @property
    def flipped(self) -> Warping:
        """The same distance when the two series change places."""
        other = {"subsequence": "supersequence", "supersequence": "subsequence"}
        return replace(self, alignment=other.get(self.alignment, self.alignment))

    def check_costs(
        self,
        left: Series,
        right: Series,
        run: Callable[[Any], Any],
        names: tuple[str, str] = ("series {} of the first", "series {} of the second"),
    ) -> None:
        """Raise where points of two sets have a cost that is none: never, but for the user's own.

        Parameters
        ----------
        left, right : Series
            The two sets.
        run : callable
            Runs a reduction: on its engine a cost is computed that is a CUDA expression alone.
        names : tuple of str
            How messages name a series of either, by its number.
        """

    def check_distances(self, distances: np.ndarray, pairs: np.ndarray | None = None) -> None:
        """Raise where distances are none: never, but for costs of the user's.

        Parameters
        ----------
        distances : ndarray
            A matrix, or the distances of some pairs.
        pairs : ndarray of shape (n_pairs, 2) or None, default None
            The pairs.
        """

    def points(self, longest: np.ndarray | int) -> np.ndarray:
        """Half width of the band where the longer of two series has so many points.

        The widening to the difference of the lengths is left out; see `radius`. Never falls as the
        length rises.
        """
        longest = np.asarray(longest, np.int64)
        if self.window is None:
            return np.full_like(longest, _WIDEST)
        if isinstance(self.window, int):
            return np.full_like(longest, min(self.window, _WIDEST))
        # see "shares" in docs/developer/numerics.rst
        return np.ceil(self.window * longest - 1e-9).astype(np.int64)

    def radius(self, n: np.ndarray | int, m: np.ndarray | int) -> np.ndarray:
        """Half width of the band for series of n and m points, widened to their difference.

        Without a window it is the points of the longest series, for all pairs alike: kernels
        compare places of cells with the bands where these differ.
        """
        n, m = np.asarray(n, np.int64), np.asarray(m, np.int64)
        longest = np.maximum(n, m)
        if self.window is None:
            return np.full_like(longest, longest.max(initial=0))
        return np.maximum(self.points(longest), np.abs(n - m))

    def binds(self, longest: int) -> bool:
        """Whether the band leaves out a cell of any pair of series of at most so many points."""
        return self.window is not None and int(self.points(longest)) < longest - 1

    def largest_radius(self, n: np.ndarray, m: np.ndarray) -> int:
        """Half width of the widest band among all pairs of lengths from two sets."""
        longest = int(self.radius(n.max(), m.max()))
        return max(
            longest, *map(int, (self.radius(n.max(), m.min()), self.radius(n.min(), m.max())))
        )

    def cells(self, n: int, m: int) -> int:
        """About how many cells of a warping matrix lie in the band."""
        return max(1, n * min(m, 2 * int(self.radius(n, m)) + 1))

    def distance(self, accumulated: np.ndarray | float) -> np.ndarray:
        """Turn accumulated costs into distances."""
        if self.squared:
            return np.sqrt(accumulated, dtype=np.float64)
        return np.array(accumulated, np.float64)

    def settle(self, costs: Any, n: Any, m: Any, apart: Any) -> Any:
        """Turn accumulated costs into distances, where these depend on more.

        Parameters
        ----------
        costs : ndarray
            Accumulated costs.
        n, m : ndarray
            Lengths of the first and the second series, to broadcast with `costs`.
        apart : ndarray
            How far apart their last points are, in the first channel.

        Returns
        -------
        ndarray
            Distances.
        """
        return self.distance(costs)

    def rescaling(self, low: float, high: float) -> Rescaling:
        """Choose the offset and the scale of a search in float32, by the extent of the data."""
        return Rescaling.between(low, high)

    def rescaled(self, rescaling: Rescaling) -> Self:
        """The same distance of points that have been moved and scaled: its parameters follow."""
        return self

    def unscaled(self, scale: float) -> float:
        """By what distances of scaled points are too large, where points have been multiplied."""
        return scale

    def matched(self, path: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Of a best path, the points that are matched."""
        return path

    def plain(self, x: np.ndarray, y: np.ndarray) -> float:
        """Distance of two series (n_channels, n_timepoints), by plain loops: for checks."""
        return float(self.distance(np.float64(self.plain_cost(x, y))))

    def plain_cost(self, x: np.ndarray, y: np.ndarray) -> float:
        """Accumulated cost of two series (n_channels, n_timepoints), by plain loops: for checks."""
        from ...host import plain

        radius = int(self.radius(x.shape[1], y.shape[1]))
        free = self.alignment == "subsequence", self.alignment == "supersequence"
        return float(plain.warped(x, y, radius, self.squared, self.largest, *free))

    def steps(self, n: int, m: int) -> int:
        """Points of the longest path whose costs are added; 1 where only the largest counts."""
        if self.largest:
            return 1
        return n + m - 1


#: Dynamic time warping of whole series without a window.
PLAIN = Warping()


def cells_within(n: np.ndarray, m: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """How many cells of warping matrices lie in bands of some half widths, as `Warping.radius`."""
    right, left = np.maximum(m - 1 - radius, 0), np.maximum(n - 1 - radius, 0)
    return np.asarray(n * m - right * (right + 1) // 2 - left * (left + 1) // 2)


def plain_distance(rows: Series, i: int, cols: Series, j: int, warping: Warping) -> float:
    """Distance under warping of series i of one set and series j of another."""
    x, y = (
        np.ascontiguousarray(side.values[place, :, : side.lengths[place]])
        for side, place in ((rows, i), (cols, j))
    )
    return warping.plain(x, y)


def settled(
    warping: Warping, costs: np.ndarray, rows: Series, cols: Series, scale: float = 1.0
) -> np.ndarray:
    """Turn accumulated costs of pairs into distances.

    Parameters
    ----------
    warping : Warping
        The distance.
    costs : ndarray of shape (n_rows, n_cols), or (n_pairs,)
        Accumulated costs, of all pairs of two sets, or of series i of one and series i of another.
    rows, cols : Series
        The sets.
    scale : float, default 1
        By which points have been multiplied.

    Returns
    -------
    ndarray
        Distances, of the shape of `costs`.
    """
    if not warping.settles:
        return warping.distance(costs) / scale
    last = [side.values[np.arange(len(side)), 0, side.lengths - 1] for side in (rows, cols)]
    n, x = rows.lengths, last[0]
    if costs.ndim == 2:
        n, x = n[:, np.newaxis], x[:, np.newaxis]
    costs = np.asarray(costs, np.float64) / warping.unscaled(scale)
    return warping.settle(costs, n, cols.lengths, np.abs(x - last[1]))


def added(distances: list[np.ndarray]) -> np.ndarray:
    """The sum of distances of channels, in their order."""
    total = distances[0]
    for each in distances[1:]:
        total = total + each
    return total


def lacks_distance(engine: str, warping: Warping) -> str:
    """Say in one sentence that an engine does not compute a distance."""
    return f"engine={engine!r} does not compute {warping}."
