"""The step of the stochastic subgradient method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._alignment import Alignment
from ..engines import AlignmentSums, MatchedSums, Series

__all__ = ["SubgradientPass"]

#: Learning rates: the first, and the one that it falls to in the first pass over the series.
FIRST_RATE, LAST_RATE = 0.05, 0.005


class SubgradientPass:
    """Move an average by the subgradients of a few series after the other, in random order.

    For an average z and a series x of weight w, where the mean weight is 1, a subgradient of
    w DTW(z, x)^2 is 2 w (V z - W x): V counts the points that the best path matches with each point
    of z, and W x adds them up (Schultz and Jain 2018, section 3). A step of rate r in its opposite
    direction moves each point of z towards the mean of its matched points, by a share 2 r w V of
    the way; here by the whole way at most. Series of a batch have one step, along the sum of their
    subgradients.

    Parameters
    ----------
    weights : ndarray of shape (n_series,)
        Weight of each series; those of weight 0 are passed over.
    batch_size : int
        Series of a step.
    random_state : RandomState
        Draws the order of each pass.
    run : callable
        Computes the sums of some series.
    """

    def __init__(
        self,
        weights: np.ndarray,
        batch_size: int,
        random_state: np.random.RandomState,
        run: Callable[[AlignmentSums], MatchedSums],
    ) -> None:
        self.rows = np.flatnonzero(weights)
        self.weights = weights / weights[self.rows].mean()
        self.batch_size = batch_size
        self.random_state, self.run = random_state, run
        self.is_first = True

    def __call__(self, work: AlignmentSums, found: Alignment) -> np.ndarray:
        """Take the steps of a pass over all series.

        Parameters
        ----------
        work : AlignmentSums
            All series, and the average before.
        found : Alignment
            Its sums, which are not used: each step needs those of the average before it.

        Returns
        -------
        ndarray of shape (1, n_channels, n_timepoints)
            The average after the pass.
        """
        order = self.random_state.permutation(self.rows)
        weights = self.weights[order]
        seen = np.ones(order.size)
        if self.is_first:
            seen = (np.cumsum(weights) - weights) / weights.size
        self.is_first = False
        rates = FIRST_RATE - (FIRST_RATE - LAST_RATE) * seen
        values, lengths = work.averages.values, work.averages.lengths
        for start in range(0, order.size, self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = replace(
                work,
                series=work.series.take(rows),
                averages=Series(values, lengths),
                labels=work.labels[rows],
                weights=self.weights[rows],
            )
            sums = self.run(batch)
            counts = sums.weights[:, np.newaxis]
            share = np.minimum(2 * rates[start] * counts, 1.0)
            values = values + share * (sums.values / counts - values)
        return values
