"""Cuts of an order line, and what all criteria that judge them have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ...core.constants import TOLERANCE

__all__ = ["Cut", "Cuts", "SplitCriterion"]


class Cut(NamedTuple):
    """A cut of an order line.

    Attributes
    ----------
    gain : int
        By how much the cut lowers the impurity, in units of `SplitCriterion.unit`.
    gap : float
        Mean distance on the right less that on the left.
    threshold : float
        Distances up to this go left.
    """

    gain: int
    gap: float
    threshold: float


class Cuts(NamedTuple):
    """The best cut of each of several order lines: gains, gaps and thresholds as in `Cut`."""

    gain: np.ndarray
    gap: np.ndarray
    threshold: np.ndarray


class SplitCriterion(ABC):
    """How cuts of an order line are judged: by the gain, then by the gap.

    Gains are whole numbers that depend on which series are on either side alone, computed so that
    gains which are equal in exact arithmetic are equal numbers, and one of nothing is 0.

    Attributes
    ----------
    min_samples_leaf : int
        Series that must lie on either side.
    min_weight_leaf : float
        Weight that must lie on either side.
    sample_weight : ndarray of shape (n_members,), float64, or None
        Weight of each series, above 0; None where all are 1.
    """

    min_samples_leaf: int
    min_weight_leaf: float
    sample_weight: np.ndarray | None

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """Weight of each series."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Units of a gain of 1."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers by which one side of a cut is judged."""

    @property
    @abstractmethod
    def _leaf(self) -> int:
        """Series that must lie on either side."""

    @abstractmethod
    def _gains_along(self, order: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """Gains of the cuts of lines in an order; -1 where a cut is not allowed.

        Gains that cannot be the best of their row may be off by 1; cuts that leave a side too light
        become not allowed.
        """

    @abstractmethod
    def tables(self) -> Any:
        """Tables of whole numbers, by which engines bound gains."""

    @abstractmethod
    def plain_gain(self, left: np.ndarray) -> float:
        """The gain of a cut with some series on the left, by plain code in float64."""

    def best_cuts(self, distances: np.ndarray, normalized: np.ndarray | bool = True) -> Cuts:
        """Choose for each row of certified distances the cut with the largest (gain, gap).

        Of cuts with the same gain and gap the one with the lowest threshold. Where there is no
        cut at all the gain is -1. `normalized` tells which rows have distances of normalised
        windows; see `TOLERANCE`.
        """
        m, n = distances.shape
        if n < 2:
            return Cuts(np.full(m, -1), np.full(m, -np.inf), np.full(m, np.nan))
        order, ordered = _ordered(distances)
        rows, size = np.arange(m), np.arange(1, n)
        floor = np.broadcast_to(np.asarray(normalized, np.float64), m)[:, np.newaxis]
        behind = ordered[:, 1:]
        with np.errstate(invalid="ignore"):  # behind an infinite distance there is no cut
            allowed = behind - ordered[:, :-1] > TOLERANCE * np.maximum(floor, behind)
        allowed &= np.minimum(size, n - size) >= self._leaf
        gain = self._gains_along(order, allowed)
        best = gain.max(axis=1)
        if self.sample_weight is None:
            sums, near, far = np.cumsum(ordered, axis=1), size, n - size
        else:
            often = self.sample_weight[order]
            sums, sizes = np.cumsum(ordered * often, axis=1), np.cumsum(often, axis=1)
            near, far = sizes[:, :-1], sizes[:, -1:] - sizes[:, :-1]
        gaps = np.full(gain.shape, -np.inf)
        # most rows have one cut with their largest gain
        row, cut = np.nonzero(allowed & (gain == best[:, np.newaxis]))
        near, far = (np.broadcast_to(side, gain.shape)[row, cut] for side in (near, far))
        on_left = sums[row, cut]
        # weights that vanish beside others
        with np.errstate(invalid="ignore", divide="ignore"):
            gaps[row, cut] = (sums[row, -1] - on_left) / far - on_left / near
        at = np.argmax(gaps, axis=1)
        a, b = ordered[rows, at], ordered[rows, at + 1]
        with np.errstate(invalid="ignore"):  # of two infinite distances, where there is no cut
            # below b: distances on both sides of a cut are further apart than neighbouring numbers
            threshold = a + (b - a) / 2
        return Cuts(best, gaps[rows, at], threshold)


def _ordered(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stable order of each row, and the row in that order."""
    # a sort that keeps no order of ties takes a quarter of the time of one that does
    order, rows = np.argsort(distances, axis=1), np.arange(len(distances))[:, np.newaxis]
    # what `take_along_axis` does, in half of its time
    ordered = distances[rows, order]
    tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    order[tied] = np.argsort(distances[tied], axis=1, kind="stable")
    return order, ordered
