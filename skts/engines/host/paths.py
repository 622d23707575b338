"""Costs along given paths of pairs of series."""

from __future__ import annotations

import numpy as np

from ..core.series import Series
from .kernels import kernel

__all__ = ["costs_along"]


@kernel
def _add_along(x, lengths, y, first, stop, squared, out):
    for pair in range(len(x)):
        total = 0.0
        for i in range(lengths[pair]):
            for j in range(first[pair, i], stop[pair, i]):
                cost = 0.0
                for c in range(x.shape[1]):
                    difference = x[pair, c, i] - y[pair, c, j]
                    cost += difference * difference if squared else abs(difference)
                total += cost
        out[pair] = total


def costs_along(
    x: Series, y: Series, first: np.ndarray, stop: np.ndarray, *, squared: bool
) -> np.ndarray:
    """Add up what the matched points of pairs differ by, from the beginning of each path on.

    Parameters
    ----------
    x, y : Series
        The first and the second series of each pair.
    first, stop : ndarray of shape (n_pairs, n_timepoints of `x` or more), int32
        The first point of the second series that each point of the first is matched with, and the
        one after the last.
    squared : bool
        Whether differences are squared.

    Returns
    -------
    ndarray of shape (n_pairs,)
        The sums.
    """
    out = np.empty(len(x))
    _add_along(x.values, x.lengths, y.values, first, stop, squared, out)
    return out
