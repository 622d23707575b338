"""A pass of the stochastic subgradient method over all series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._alignment import Alignment
from ..engines import AlignmentSums, Engine, Reduction, SubgradientSteps, get_engine

__all__ = ["SubgradientPass"]

#: Learning rates: the first, and the one that it falls to in the first pass over the series.
FIRST_RATE, LAST_RATE = 0.05, 0.005


class SubgradientPass:
    """Move an average by the subgradients of a few series after the other, in random order.

    Parameters
    ----------
    weights : ndarray of shape (n_series,)
        Weight of each series; those of weight 0 are passed over. They are scaled to a mean of 1.
    batch_size : int
        Series of a step.
    random_state : RandomState
        Draws the order of each pass.
    engine : str, Engine or None
        The engine, or how it is chosen.
    run : callable
        Computes a reduction on the engine that it is told.
    """

    def __init__(
        self,
        weights: np.ndarray,
        batch_size: int,
        random_state: np.random.RandomState,
        engine: str | Engine | None,
        run: Callable[..., Any],
    ) -> None:
        self.rows = np.flatnonzero(weights)
        self.weights = weights / weights[self.rows].mean()
        self.batch_size = batch_size
        self.random_state, self.engine, self.run = random_state, engine, run
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
        rates = FIRST_RATE - (FIRST_RATE - LAST_RATE) * seen[:: self.batch_size]
        steps = SubgradientSteps(
            work.series, work.averages, order, self.weights, rates, self.batch_size, work.warping
        )
        # a GPU that pays for all series may not for a few
        asked: Reduction = steps if steps.at_once else steps.first_batch
        engine = get_engine(self.engine, asked)
        if steps.at_once:
            moved = self.run(steps, engine=engine)
        else:
            moved = steps.follow(lambda batch: self.run(batch, engine=engine))
        values: np.ndarray = moved.values
        return values
