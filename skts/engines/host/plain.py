"""Plain loops that check answers: the definitions, sharing no code with any search.

They take one pair of series or windows at a time, cell by cell and point by point in order, which
is how certified values are defined: the bits are the same. `skts.engines.core.verify` uses them.
"""

from __future__ import annotations

import math

import numpy as np

from .kernels import kernel

__all__ = ["CONSTANT", "UNKNOWN", "USUAL", "best_match", "profile", "standardize", "warped"]

#: Kinds of windows: neither of the others; constant; not finite.
USUAL, CONSTANT, UNKNOWN = 0, 1, 2


@kernel
def warped(x, y, radius, squared, largest, free_columns, free_rows):
    """Accumulated cost of the best path of one pair: the recurrence, row by row."""
    n_channels, n = x.shape
    m = y.shape[1]
    above, row = np.full(m + 1, np.inf), np.full(m + 1, np.inf)
    above[0] = 0.0
    if free_columns:
        above[:] = 0.0
    least = np.inf
    for i in range(n):
        row[:] = np.inf
        row[0] = 0.0 if free_rows else np.inf
        for j in range(max(0, i - radius), min(m, i + radius + 1)):
            cost = 0.0
            for c in range(n_channels):
                difference = x[c, i] - y[c, j]
                cost += difference * difference if squared else abs(difference)
            best = min(above[j], above[j + 1], row[j])
            row[j + 1] = max(cost, best) if largest else cost + best
        if free_rows:
            least = min(least, row[m])
        above, row = row, above
    if free_columns:
        least = min(least, above[1:].min())
    return least if free_columns or free_rows else above[m]


@kernel
def standardize(points, start, length, normalize, out):
    """Write the window at `start`, z-normalised or as it is; return its kind.

    Points count from the first of the window before anything is summed.
    """
    low, high = np.inf, -np.inf
    for t in range(length):
        point = points[start + t]
        if not np.isfinite(point):
            return UNKNOWN
        low, high = min(low, point), max(high, point)
        out[t] = point
    if not normalize:
        return USUAL
    if high - low <= max(2.0**-40 * max(abs(low), abs(high)), 2.0**-500):
        out[:length] = 0.0
        return CONSTANT
    total, squares = 0.0, 0.0
    for t in range(length):
        out[t] = points[start + t] - points[start]
        total += out[t]
    mean = total / length
    for t in range(length):
        out[t] = out[t] - mean
        squares += out[t] * out[t]
    scale = 1.0 / np.sqrt(squares / length)
    for t in range(length):
        out[t] *= scale
    return USUAL


@kernel
def _norm(a, b, length):
    """The norm of a difference, whatever its size: a power of two is taken out of the squares."""
    largest = 0.0
    for t in range(length):
        largest = max(largest, abs(a[t] - b[t]))
    if largest == 0.0 or largest == np.inf:
        return largest
    unit = math.ldexp(1.0, math.frexp(largest)[1])
    total = 0.0
    for t in range(length):
        difference = (a[t] - b[t]) / unit
        total += difference * difference
    return np.sqrt(total) * unit


@kernel
def profile(a, start, b, positions, length, normalize):
    """Distances of the window at `start` of `a` to the windows at some positions of `b`."""
    own, other = np.empty(length), np.empty(length)
    out = np.full(positions.size, np.inf)
    kind = standardize(a, start, length, normalize, own)
    for place in range(positions.size):
        there = standardize(b, positions[place], length, normalize, other)
        if kind == UNKNOWN or there == UNKNOWN:
            continue
        if kind == CONSTANT or there == CONSTANT:
            out[place] = 0.0 if kind == there else np.sqrt(float(length))
        else:
            out[place] = _norm(own, other, length)
    return out


def best_match(query: np.ndarray, points: np.ndarray, normalize: bool) -> tuple[float, int]:
    """Distance and start of the best match of a query in a series, the first of equals."""
    if query.size > points.size:
        return math.inf, -1
    places = np.arange(points.size - query.size + 1)
    distances = profile(query, 0, points, places, query.size, normalize)
    best = int(np.argmin(distances))
    return (float(distances[best]), best) if np.isfinite(distances[best]) else (math.inf, -1)
