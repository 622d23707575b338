"""Queries of a search on the GPU: their data on the host and the device, and the limit so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import cupy as cp
import numpy as np

from ...core.certify import INPUT_SLACK, UNDERFLOW, Bound, Rescaling, dtw_bound
from ...core.series import Series
from ...families.search.subsequence import (
    SubsequenceNeighbors,
    greedy,
    normalize_windows,
    query_envelope,
)
from ..elastic import dtw
from ..transfers import send_one
from .programs import WarpKernel

__all__ = ["Query", "prepare_query"]

_INTERVAL = np.dtype(
    [
        *((name, np.float64) for name in ("shrink", "grow", "slack", "base")),
        ("squared", np.int32),
    ],
    align=True,
)


@dataclass
class Query:
    """A query with the matches and the limit so far.

    Attributes
    ----------
    certified : ndarray of shape (n_channels, length), float64
        Normalised, if windows are.
    single : ndarray of shape (n_channels, length), float32
        The same for the search.
    envelope : ndarray of shape (n_channels, length, 2), float32
        Least and largest point that each point of a window may meet.
    rescaling : Rescaling
        Offset and scale of the points of windows in the search, without normalisation.
    rough, bound : Bound
        Errors of costs by rounding, of bounds and of estimates.
    terms, error : float
        Factor from errors of points to errors of costs; error of the points of the query, and of
        what is too small for float32, summed over channels.
    radius : int
        Half width of the band.
    need, exclusion : int
        See `SubsequenceNeighbors.apart`.
    limit : float
        Distance beyond which a window is no match.
    near, near_values : ndarray
        Windows far from each other, and upper bounds of their distances.
    positions, distances : list of ndarray
        Matches of the parts so far.
    made : dict
        Data on the device; see `once`.
    """

    certified: np.ndarray
    single: np.ndarray
    envelope: np.ndarray
    rescaling: Rescaling
    rough: Bound
    bound: Bound
    terms: float
    error: float
    radius: int
    need: int
    exclusion: int
    limit: float
    near: np.ndarray
    near_values: np.ndarray
    positions: list[np.ndarray] = field(default_factory=list)
    distances: list[np.ndarray] = field(default_factory=list)
    made: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def n_channels(self) -> int:
        """Channels."""
        return len(self.certified)

    @property
    def length(self) -> int:
        """Points."""
        return self.certified.shape[1]

    def once(self, key: Hashable, build: Callable[[], Any]) -> Any:
        """Return data of the query on the device, made at the first call."""
        if key not in self.made:
            self.made[key] = build()
        return self.made[key]

    def columns(self, kernel: WarpKernel) -> cp.ndarray:
        """The query, of one channel, as the columns of a kernel that warps windows."""

        def build() -> cp.ndarray:
            columns = np.full(kernel.width, np.inf, np.float32)
            columns[kernel.width - self.length :] = self.single[0]
            return send_one(columns)

        return self.once(kernel, build)

    def series(self, certified: bool) -> dtw.DeviceSeries:
        """The query for kernels of pairs."""

        def build() -> dtw.DeviceSeries:
            points = self.certified if certified else self.single.astype(np.float64)
            made = dtw.upload(Series.of(points[np.newaxis]))
            return made if certified else dtw.rescale(made, Rescaling())

        return self.once(certified, build)

    def interval(self, bound: Bound, *, squared: bool) -> np.ndarray:
        """The argument of kernels that says what costs tell."""
        exact = bound.exact
        interval = np.zeros(1, _INTERVAL)
        interval["shrink"], interval["grow"] = bound.shrink, bound.grow
        interval["slack"] = 0.0 if exact else self.terms * INPUT_SLACK
        interval["base"] = self.error
        interval["squared"] = squared
        return interval

    def lower_limit(self, positions: np.ndarray, values: np.ndarray) -> None:
        """Lower the limit by windows that are far from each other.

        Parameters
        ----------
        positions : ndarray of shape (n,), int64
            Windows of the tile.
        values : ndarray of shape (n,), float64
            What their distances are at most.
        """
        count = 4 * self.need + 64
        while True:
            few = np.argpartition(values, count)[:count] if count < values.size else slice(None)
            where = np.concatenate([self.near, positions[few]])
            value = np.concatenate([self.near_values, values[few]])
            order = np.lexsort((where, value))
            line = np.zeros((where.size, 2), np.int64)
            line[:, 1] = where
            taken = greedy(line, order, self.exclusion, self.need)
            if taken.size == self.need or count >= values.size:
                break
            count *= 8
        self.near, self.near_values = where[taken], value[taken]
        if taken.size == self.need:
            self.limit = min(self.limit, float(self.near_values[-1]))


def prepare_query(reduction: SubsequenceNeighbors, row: int) -> Query:
    """Prepare a query for a search."""
    given = np.array(reduction.queries[row], np.float64)
    length, warping = given.shape[-1], reduction.warping
    certified = np.atleast_2d(normalize_windows(given, bool(reduction.normalize)))
    rescaling = Rescaling() if reduction.normalize else Rescaling.of(given)
    single, error = rescaling.apply(certified)
    radius = min(int(warping.radius(length, length)), length - 1)
    envelopes = [query_envelope(channel, radius) for channel in single.astype(np.float64)]
    low, high = (np.array(side) for side in zip(*envelopes, strict=True))
    n_channels = len(certified)
    exact = reduction.precision == "float32"
    steps = warping.steps(length, length)
    # see "search float32" in docs/developer/numerics.rst
    rough = dtw_bound(steps + 4, n_channels, 0.0, 1.0, squared=warping.squared)
    return Query(
        certified=certified,
        single=single,
        envelope=np.stack([low, high], axis=-1).astype(np.float32),
        rescaling=rescaling,
        rough=rough,
        bound=Bound() if exact else rough,
        terms=float(np.sqrt(steps)) if warping.squared else float(steps),
        error=n_channels * (error + UNDERFLOW),
        radius=radius,
        need=reduction.apart(length),
        exclusion=reduction.exclusion_of(length),
        limit=reduction.limit_of(row),
        near=np.empty(0, np.int64),
        near_values=np.empty(0),
    )
