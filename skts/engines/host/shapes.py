"""Series scaled for k-Shape, and certified shape-based distances in twice the precision."""

from __future__ import annotations

import math

import numpy as np
from scipy.fft import next_fast_len

from ..core.constants import CONSTANT, SMALLEST_RANGE, TIE
from .kernels import kernel

__all__ = ["certify", "count_members", "fft_length", "largest", "scale_to_norm", "z_normalize"]


def fft_length(n_timepoints: int) -> int:
    """Points of a transform that has room for all shifts of two series."""
    return int(next_fast_len(2 * n_timepoints - 1, real=True))


@kernel
def count_members(labels, squares, counts, sums):
    """Add the members of each cluster, and their squares, in order: the sums of `np.bincount`."""
    for i in range(labels.size):
        counts[labels[i]] += 1
        sums[labels[i]] += squares[i]


@kernel
def largest(values):
    """Largest value, in lanes; -inf if there is none."""
    lanes = np.empty(8)
    lanes[:] = -np.inf
    whole = values.size // 8 * 8
    for i in range(0, whole, 8):
        for lane in range(8):
            value = values[i + lane]
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    top = lanes[0]
    for lane in range(1, 8):
        top = max(top, lanes[lane])
    for i in range(whole, values.size):
        top = max(top, values[i])
    return top


@kernel
def two_fold_dot(x, y, total, rest):
    """Add a dot product to `total + rest`, in twice the precision of float64.

    Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), Dot2.
    """
    # see "two-fold dot" in docs/developer/numerics.rst
    for t in range(x.size):
        a, b = x[t], y[t]
        product = a * b
        # Dekker: halves of both factors, whose products are exact
        high = 134217729.0 * a
        a_high = high - (high - a)
        a_low = a - a_high
        high = 134217729.0 * b
        b_high = high - (high - b)
        b_low = b - b_high
        error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
        added = total + product
        before = added - total
        error += (total - (added - before)) + (product - before)
        total = added
        rest += error
    return total, rest


@kernel
def certify(correlations, x, center, scale, doubt):
    """The certified distance and shift of one series and one centre.

    Parameters
    ----------
    correlations : ndarray of shape (n,)
        Correlations from transforms, as `best` takes them: they say which shifts may tie.
    x, center : ndarray of shape (n_channels, n_timepoints)
        The series and the centre.
    scale : float
        Product of their norms, not 0.
    doubt : float
        Error of `correlations`, as a share of `scale`.

    Returns
    -------
    distance : float
        SBD.
    shift : int
        Of the shifts that tie the shortest, then the one to the left.
    """
    n, (n_channels, n_timepoints) = correlations.size, x.shape
    top = largest(correlations[:n_timepoints])
    top = max(top, largest(correlations[n - n_timepoints + 1 :]))
    floor = top - (TIE + 2 * doubt) * scale
    values, shifts = np.empty(2 * n_timepoints), np.empty(2 * n_timepoints, np.int64)
    count, top = 0, -np.inf
    for place in range(2 * n_timepoints - 1):
        half = (place + 1) // 2
        shift = -half if place % 2 else half
        if not correlations[(n - shift) % n] >= floor:
            continue
        low, high = max(0, shift), min(n_timepoints, n_timepoints + shift)
        total, rest = 0.0, 0.0
        for c in range(n_channels):
            total, rest = two_fold_dot(
                x[c, low - shift : high - shift], center[c, low:high], total, rest
            )
        values[count], shifts[count] = total + rest, shift
        top = max(top, values[count])
        count += 1
    first = 0
    while not values[first] >= top - TIE * scale:
        first += 1
    return max(0.0, 1.0 - top / scale), shifts[first]


@kernel
def lane_sum(x, y):
    """Sum of the products of two rows, in four lanes that are added at the end."""
    a = b = c = d = 0.0
    whole = x.size // 4 * 4
    for t in range(0, whole, 4):
        a += x[t] * y[t]
        b += x[t + 1] * y[t + 1]
        c += x[t + 2] * y[t + 2]
        d += x[t + 3] * y[t + 3]
    for t in range(whole, x.size):
        a += x[t] * y[t]
    return (a + b) + (c + d)


@kernel
def extremes(x):
    """Least and largest value of a row, in four lanes each."""
    low, high = np.empty(4), np.empty(4)
    low[:], high[:] = x[0], x[0]
    whole = x.size // 4 * 4
    for t in range(0, whole, 4):
        for lane in range(4):
            value = x[t + lane]
            low[lane] = value if value < low[lane] else low[lane]
            high[lane] = value if value > high[lane] else high[lane]
    for t in range(whole, x.size):
        low[0], high[0] = min(low[0], x[t]), max(high[0], x[t])
    for lane in range(1, 4):
        low[0], high[0] = min(low[0], low[lane]), max(high[0], high[lane])
    return low[0], high[0]


@kernel
def shifted_scaled(x, scale, offset, out):
    """Write ``x * scale - offset``, and return the sum of that, in four lanes."""
    a = b = c = d = 0.0
    whole = x.size // 4 * 4
    for t in range(0, whole, 4):
        p, q = x[t] * scale - offset, x[t + 1] * scale - offset
        r, s = x[t + 2] * scale - offset, x[t + 3] * scale - offset
        out[t], out[t + 1], out[t + 2], out[t + 3] = p, q, r, s
        a += p
        b += q
        c += r
        d += s
    for t in range(whole, x.size):
        out[t] = x[t] * scale - offset
        a += out[t]
    return (a + b) + (c + d)


@kernel
def exponent_of(largest_value):
    """The power of two that brings a positive number to between 1/2 and 1, or near to that.

    Both it and its inverse are normal numbers.
    """
    return min(1000, max(-1000, math.frexp(largest_value)[1]))


@kernel
def z_normalize(series, lengths, normalize, target, norms, exponents):
    """Z-normalise each channel of each series on its own points; a constant channel becomes zeros.

    Parameters
    ----------
    series : ndarray of shape (n_series, n_channels, n_timepoints)
        Series as they came.
    lengths : ndarray of shape (n_series,)
        Points of each.
    normalize : bool
        True; the parameters are those of `scale_to_norm`.
    target : ndarray of shape (n_series, n_channels, width)
        Where to write; holds zeros.
    norms : ndarray of shape (n_series,), float64
        Gets norms over all channels.
    exponents : ndarray of shape (n_series,), int32
        Stays 0.
    """
    for i in range(len(series)):
        n, square = lengths[i], 0.0
        for c in range(series.shape[1]):
            x, z = series[i, c, :n], target[i, c, :n]
            low, high = extremes(x)
            peak = max(-low, high)
            # that of the halves is finite whatever they are
            span = high / 2 - low / 2
            if span <= max(CONSTANT / 2 * peak, SMALLEST_RANGE / 2):
                continue
            scale = 2.0 ** -exponent_of(peak)
            total = shifted_scaled(x, scale, 0.0, z)
            # the first mean is off by the rounding of large values, the second is not
            total = shifted_scaled(z, 1.0, total / n, z)
            shifted_scaled(z, 1.0, total / n, z)
            variance = lane_sum(z, z) / n
            factor = 1 / math.sqrt(variance)
            for t in range(n):
                z[t] *= factor
            square += n * (factor * factor * variance)
        norms[i] = math.sqrt(square)


@kernel
def scale_to_norm(series, lengths, normalize, target, norms, exponents):
    """Scale each series to norm 1, or by the power of two that brings its norm to [1, 2).

    Parameters as those of `z_normalize`; `normalize` asks for norm 1, else `exponents` gets the
    power that each series was divided by.
    """
    for i in range(len(series)):
        n, peak, norms[i] = lengths[i], 0.0, 0.0
        for c in range(series.shape[1]):
            for t in range(n):
                peak = max(peak, abs(series[i, c, t]))
        if peak == 0.0:
            continue
        exponent, square = exponent_of(peak), 0.0
        for c in range(series.shape[1]):
            z = target[i, c, :n]
            for t in range(n):
                z[t] = series[i, c, t] * 2.0**-exponent
            square += lane_sum(z, z)
        norm = math.sqrt(square)
        factor = 1 / norm
        if not normalize:
            further = math.frexp(norm)[1] - 1
            factor = 2.0**-further
            exponents[i] = exponent + further
        square = 0.0
        for c in range(series.shape[1]):
            z = target[i, c, :n]
            for t in range(n):
                z[t] *= factor
            square += lane_sum(z, z)
        norms[i] = math.sqrt(square)
