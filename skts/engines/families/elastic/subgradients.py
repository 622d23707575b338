"""Steps of the stochastic subgradient method: an average that moves towards series in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.reduction import Tile
from ...core.series import Series
from ...core.verify import Check, Sample, check_value
from .averages import LEAST_ROWS, AlignmentSums, MatchedSums
from .dtw import DTWReduction
from .warping import PLAIN, Warping, plain_distance

__all__ = ["MovedAverage", "SubgradientSteps"]

#: Bytes of the steps of a pair that are found at once; longer series go through `AlignmentSums`.
MOST_STEP_BYTES = 2**24


class MovedAverage(NamedTuple):
    """An average after some steps.

    Attributes
    ----------
    values : ndarray of shape (1, n_channels, n_timepoints)
        The average.
    costs : ndarray of shape (n_order,)
        Certified accumulated cost of each series of the order and the average before its step.
    """

    values: np.ndarray
    costs: np.ndarray


@dataclass(frozen=True, eq=False)
class SubgradientSteps(DTWReduction):
    """An average that moves by the subgradients of a few series after the other.

    For an average z and a series x of weight w a subgradient of w DTW(z, x)^2 is 2 w (V z - W x): V
    counts the points that the best path matches with each point of z, and W x adds them up (Schultz
    and Jain, Pattern Recognition 74, 2018, section 3). A step of rate r in its opposite direction
    moves each point of z towards the mean of its matched points, by a share 2 r w V of the way;
    here by the whole way at most. Series of a batch have one step, along the sum of their
    subgradients. Paths and sums are those of `AlignmentSums`.

    Parameters
    ----------
    series : Series
        All series.
    average : Series
        One series, to start from.
    order : ndarray of shape (n_order,), int64
        Series in the order in which the average moves towards them.
    weights : ndarray of shape (n_series,), float64
        Weight of each series; those of the order have one above 0.
    rates : ndarray of shape (n_steps,), float64
        Learning rate of each step.
    batch_size : int
        Series of a step.
    warping : Warping
        The band; costs are squared, whole series are matched.
    """

    series: Series
    average: Series
    order: np.ndarray
    weights: np.ndarray
    rates: np.ndarray
    batch_size: int
    warping: Warping = PLAIN
    method: ClassVar[str] = "subgradient_steps"

    @property
    def shape(self) -> tuple[int, int]:
        """One piece of work: each step waits for the one before."""
        return 1, 1

    @property
    def sides(self) -> tuple[Series, Series]:
        """The average and the series."""
        return self.average, self.series

    @property
    def step_work(self) -> int:
        """Cells of all warping matrices."""
        return self.order.size * super().step_work

    def work(self, tile: Tile) -> int:
        """Cells between two checks for Ctrl-C: those of one matrix."""
        return super().step_work

    @property
    def at_once(self) -> bool:
        """Whether an engine may take all steps at once: batches are a cell of the grid at most."""
        n, m = self.average.n_timepoints, self.series.n_timepoints
        return self.batch_size <= LEAST_ROWS and n * (n + m) <= MOST_STEP_BYTES

    @property
    def first_batch(self) -> AlignmentSums:
        """The work of the first step."""
        return self._batch(self.order[: self.batch_size], self.average.values)

    def _batch(self, rows: np.ndarray, values: np.ndarray) -> AlignmentSums:
        """The work of a step."""
        return AlignmentSums(
            self.series.take(rows),
            Series(values, self.average.lengths),
            np.zeros(rows.size, np.int64),
            self.weights[rows],
            self.warping,
        )

    def follow(
        self, sums_of: Callable[[AlignmentSums], MatchedSums], cancel: np.ndarray | None = None
    ) -> MovedAverage:
        """Take the steps one by one.

        Parameters
        ----------
        sums_of : callable
            Computes the sums of a batch.
        cancel : ndarray of shape (1,), uint8, or None, default None
            Turns 1 to stop early.

        Returns
        -------
        MovedAverage
            The average after all steps.
        """
        values, costs = self.average.values, np.zeros(self.order.size)
        for step, rate in enumerate(self.rates.tolist()):
            if cancel is not None and cancel[0]:
                break
            part = slice(step * self.batch_size, (step + 1) * self.batch_size)
            sums = sums_of(self._batch(self.order[part], values))
            if cancel is not None and cancel[0]:
                break
            counts = sums.weights[:, np.newaxis]
            share = np.minimum(2 * rate * counts, 1.0)
            values = values + share * (sums.values / counts - values)
            costs[part] = sums.costs
        return MovedAverage(values, costs)

    def result_bytes(self) -> int:
        """Size of the average and of the costs."""
        return 8 * (self.average.values.size + self.order.size)

    def part(self, tile: Tile) -> SubgradientSteps:
        """Return itself: steps do not split."""
        return self

    def start(self) -> MovedAverage:
        """Return an average and costs, to be filled."""
        return MovedAverage(np.empty(self.average.values.shape), np.empty(self.order.size))

    def merge(self, total: MovedAverage, tile: Tile, result: MovedAverage) -> None:
        """Write the answer."""
        total.values[:] = result.values
        total.costs[:] = result.costs

    def finish(self, total: MovedAverage, run: Callable[..., Any]) -> MovedAverage:
        """Hand the answer out."""
        return total

    def verify(self, answer: MovedAverage, sample: Sample) -> Iterator[Check]:
        """Compare the costs of the first step, and see that the average lies among the points."""
        for place in sample(min(self.batch_size, self.order.size)):
            row = int(self.order[place])
            expected = plain_distance(self.average, 0, self.series, row, self.warping)
            found = float(self.warping.distance(answer.costs[place]))
            yield check_value(f"the distance of {row} and the first average", found, expected)
        low, high = map(np.array, zip(self.series.extent, self.average.extent, strict=True))
        least, most = float(answer.values.min()), float(answer.values.max())
        # each step ends between the point before and the mean of points
        room = 1e-9 * float(high.max() - low.min())
        inside = least >= min(low.min(), 0.0) - room and most <= max(high.max(), 0.0) + room
        yield Check("the average", (least, most), (float(low.min()), float(high.max())), inside)
