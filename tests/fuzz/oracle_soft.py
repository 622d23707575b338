"""The oracle of soft-DTW: algorithms 1 and 2 of Cuturi and Blondel (2017) in plain loops."""

from __future__ import annotations

import numpy as np
from numba import njit

from . import oracle

__all__ = ["least_gamma", "slack", "slope_slack", "soft"]


@njit(cache=True, nogil=True)
def _soft(x, y, radius, gamma):
    """R forwards with the least of three taken out of the logarithm, E backwards."""
    n, m = x.shape[1], y.shape[1]
    R, E = np.full((n + 2, m + 2), np.inf), np.zeros((n + 2, m + 2))
    cost = np.zeros((n + 2, m + 2))
    R[0, 0], E[n, m] = 0.0, 1.0
    for i in range(1, n + 1):
        for j in range(max(1, i - radius), min(m, i + radius) + 1):
            for c in range(x.shape[0]):
                cost[i, j] += (x[c, i - 1] - y[c, j - 1]) ** 2
            least = min(R[i - 1, j - 1], R[i - 1, j], R[i, j - 1])
            total = 0.0
            for a, b in ((i - 1, j - 1), (i - 1, j), (i, j - 1)):
                total += np.exp(-(R[a, b] - least) / gamma)
            R[i, j] = cost[i, j] + (least - gamma * np.log(total))
    slope = np.zeros(x.shape)
    for i in range(n, 0, -1):
        for j in range(min(m, i + radius), max(1, i - radius) - 1, -1):
            for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                if R[a, b] < np.inf:
                    E[i, j] += E[a, b] * np.exp((R[a, b] - cost[a, b] - R[i, j]) / gamma)
            for c in range(x.shape[0]):
                slope[c, i - 1] += 2 * E[i, j] * (x[c, i - 1] - y[c, j - 1])
    return R[n, m], slope


def soft(x: np.ndarray, y: np.ndarray, gamma: float, window: float | None) -> tuple:
    """The value of two series, (n_channels, n_points), and its derivatives by the points of x."""
    value, slope = _soft(x, y, oracle.band(window, x.shape[1], y.shape[1]), gamma)
    return float(value), slope


def slack(value: float, gamma: float, n: int, m: int) -> float:
    """How far a value may be off: some units of the costs along the paths that count."""
    return 1e-12 * (abs(value) + 2 * gamma * (n + m))


def slope_slack(value: float, gamma: float, x: np.ndarray, y: np.ndarray) -> float:
    """How far a derivative may be off: shares of paths by their costs over gamma."""
    n, m = x.shape[1], y.shape[1]
    reach = max(float(x.max() - y.min()), float(y.max() - x.min()))
    return 1e-14 * (n + m) * (abs(value) / gamma + 2 * (n + m)) * reach * (m + 1)


def least_gamma(*sets: list) -> float:
    """The smallest gamma that is accepted: costs along a path may be 2**40 times as large."""
    series = [x for some in sets for x in some]
    reach = max(float(x.max()) for x in series) - min(float(x.min()) for x in series)
    steps = sum(max(x.shape[1] for x in some) for some in sets) * series[0].shape[0]
    return steps * reach * reach / 2**40
