"""Windows of series on the CPU, described, and certified best matches of queries among them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.constants import CONSTANT, SMALLEST_RANGE
from ...host import kernel
from ...host.windows import distances, statistics

__all__ = ["Queries", "describe", "match"]

#: Roots of sums of squares beyond these may have lost squares that are too small or too large.
_SMALL, _LARGE = 2.0**-450, 2.0**450


class Queries(NamedTuple):
    """Queries of any lengths.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        All queries, one after the other.
    ends : ndarray of shape (n_queries,), int64
        Where each ends in these.
    channels : ndarray of shape (n_queries,), int64
        The channel in which each is looked for.
    """

    points: np.ndarray
    ends: np.ndarray
    channels: np.ndarray


@kernel
def describe(points, length, normalize, cancel):
    """Mean and inverse deviation of all windows, which are constant, which are finite.

    Means count from the first point of each window. The points that are not finite are written
    over. Callers give a copy, and values that are no literals, so that there is one instance of
    this. The answer is arbitrary once `cancel` is set.
    """
    n = points.size - length + 1
    finite = np.ones(n, np.bool_)
    for t in range(points.size):
        if not np.isfinite(points[t]):
            points[t] = 0.0
            finite[max(0, t - length + 1) : t + 1] = False
    mean, deviation, low, high = statistics(points, length, True, cancel)
    inverse, constant = np.zeros(n), np.zeros(n, np.bool_)
    for i in range(n):
        if normalize is None:
            mean[i], inverse[i] = 0.0, 1.0
        else:
            largest = max(abs(low[i]), abs(high[i]))
            constant[i] = high[i] - low[i] <= max(CONSTANT * largest, SMALLEST_RANGE)
            inverse[i] = 0.0 if constant[i] else 1.0 / deviation[i]
    return mean, inverse, constant, finite


@kernel
def _scaled_distance(a, b, j):
    """The norm of the difference of `a` and the points of `b` from `j` on, whatever its size."""
    largest = 0.0
    for t in range(a.size):
        largest = max(largest, abs(a[t] - b[j + t]))
    if largest == 0:
        return 0.0
    # a power of two: the bits are those of the plain sum, where that holds all squares
    unit = 2.0 ** (math.frexp(largest)[1] - 1)
    total = 0.0
    for t in range(a.size):
        d = (a[t] - b[j + t]) / unit
        total += d * d
    return np.sqrt(total) * unit


@kernel
def match(queries, values, lengths, found, starts, cancel, normalize):
    """Best match of each query in each series, the first of equals.

    One series after the other, and queries of one length and channel after each other, which find
    its windows described.

    Parameters
    ----------
    queries : Queries
        Queries.
    values : ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    lengths : ndarray of shape (n_series,)
        Their points.
    found, starts : ndarray of shape (n_queries, n_series)
        Written: distances, and where the matches begin.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    normalize : True or None
        Whether windows are z-normalised.
    """
    ends, channels = queries.ends, queries.channels
    row = np.zeros(1, np.int64)  # the one window of a query
    means, inverses = np.empty((ends.size, 1)), np.empty((ends.size, 1))
    constants, finites = np.empty(ends.size, np.bool_), np.empty(ends.size, np.bool_)
    for query in range(ends.size):
        own = queries.points[(ends[query - 1] if query else 0) : ends[query]].copy()
        mean, inverse, constant, finite = describe(own, own.size, normalize, cancel)
        means[query, 0], inverses[query, 0] = mean[0], inverse[0]
        constants[query], finites[query] = constant[0], finite[0]
    for b in range(values.shape[0]):
        n = lengths[b]
        before, channel_before = 0, -1
        points = mean = inverse = np.empty(0)
        constant = finite = np.empty(0, np.bool_)
        for query in range(ends.size):
            if cancel[0]:
                return
            first = ends[query - 1] if query else 0
            own = queries.points[first : ends[query]]
            length = own.size
            found[query, b], starts[query, b] = np.inf, -1
            if length > n or not finites[query]:
                continue
            if length != before or channels[query] != channel_before:
                before, channel_before = length, channels[query]
                points = values[b, channels[query], :n].copy()
                mean, inverse, constant, finite = describe(points, length, normalize, cancel)
            out = np.empty((1, mean.size))
            distances(
                own, row, means[query], inverses[query], points, row[0], mean, inverse, length,
                out, cancel, normalize,
            )  # fmt: skip
            for j in range(mean.size):
                if not finite[j]:
                    continue
                distance = out[0, j]
                if normalize is None and not (_SMALL < distance < _LARGE):
                    if cancel[0]:
                        return
                    distance = _scaled_distance(own, points, j)
                if constant[j] != constants[query]:
                    distance = np.sqrt(float(length))
                elif constant[j]:
                    distance = 0.0
                if distance < found[query, b]:
                    found[query, b], starts[query, b] = distance, j
