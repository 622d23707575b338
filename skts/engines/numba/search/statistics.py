"""Means and deviations of windows of a long series: by running sums, and exactly."""

from __future__ import annotations

import numpy as np

from ...core.constants import CONSTANT, FLOAT64_UNIT, SMALLEST_RANGE
from ...host import kernel

__all__ = ["RUNNING_ERROR", "running_statistics", "window_moments"]

#: Windows after which running sums start anew.
_RUN = 1024
#: Largest error of a normalised point by running statistics, per unit and per deviation.
#: see "running statistics" in docs/developer/numerics.rst
RUNNING_ERROR = 1e-7


@kernel
def window_moments(points, first, length):
    """Mean from the first point on, and 1 / deviation, 0 where a window is constant."""
    anchor = points[first]
    total, low, high = 0.0, anchor, anchor
    for i in range(first, first + length):
        point = points[i]
        total += point - anchor
        low = point if point < low else low
        high = point if point > high else high
    if high - low <= max(CONSTANT * max(abs(low), abs(high)), SMALLEST_RANGE):
        return 0.0, 0.0
    mean, squares = total / length, 0.0
    for i in range(first, first + length):
        d = (points[i] - anchor) - mean
        squares += d * d
    deviation = np.sqrt(squares / length)
    return mean, 1.0 / deviation


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _center(points, line):
    """Points less the first; their largest magnitude, the sums of what is left and its squares."""
    size, absolute, square = 0.0, 0.0, 0.0
    center = points[0]
    for i in range(points.size):
        d = points[i] - center
        line[i] = d
        absolute += abs(d)
        square += d * d
        magnitude = abs(points[i])
        size = magnitude if magnitude > size else size
    line[points.size] = 0.0
    return size, absolute, square


@kernel
def _settle(sums, squares, inverse, center, length, mean_error, square_error):
    """Turn sums of windows into means, and those of squares into `inverse`; -1 if it is not known.

    Returns of how many it is known.
    """
    n_known = 0
    for i in range(sums.size):
        m = sums[i] / length
        variance = squares[i] / length - m * m
        error = square_error + 2 * abs(m) * mean_error + mean_error * mean_error
        # |d sqrt(v)| is dv / (2 sqrt(v)) and a little, and so much of it is the mean off
        # (the variance of a constant window is not known as well, or at most its range squared)
        deviation = np.sqrt(abs(variance))
        known = (
            (variance > 4 * SMALLEST_RANGE**2)
            & (error <= RUNNING_ERROR * variance)
            & (mean_error <= 0.5 * RUNNING_ERROR * deviation)
        )
        sums[i] = center + m
        inverse[i] = 1.0 / deviation if known else -1.0
        n_known += known
    return n_known


@kernel
def running_statistics(points, length, n_windows, mean, inverse):
    """Mean and 1 / deviation of all windows, good to RUNNING_ERROR.

    The inverse is 0 where a window is constant, and NaN where it is not known as well as that.
    """
    squares, line = np.empty(_RUN), np.empty(_RUN + length)
    steps = FLOAT64_UNIT * (length + 2 * _RUN + 8)
    for first in range(0, n_windows, _RUN):
        count = min(_RUN, n_windows - first)
        size, absolute, square = _center(points[first : first + count + length - 1], line)
        total, total_square = 0.0, 0.0
        for i in range(length):
            total += line[i]
            total_square += line[i] * line[i]
        sums, inverses = mean[first : first + count], inverse[first : first + count]
        for i in range(count):
            sums[i], squares[i] = total, total_square
            d, e = line[i + length], line[i]
            total += d - e
            total_square += d * d - e * e
        # absolute errors of the mean and of the mean square about the center
        mean_error = 2 * steps * absolute / length + 4 * FLOAT64_UNIT * size
        square_error = 2 * steps * square / length
        n_known = _settle(sums, squares, inverses, points[first], length, mean_error, square_error)
        if n_known < count:
            for i in range(first, first + count):
                if inverse[i] < 0:
                    own, scale = window_moments(points, i, length)
                    mean[i] = points[i] + own
                    exact = 8 * FLOAT64_UNIT * size * scale <= 0.5 * RUNNING_ERROR
                    inverse[i] = scale if exact else np.nan
