"""Shape-based distances on the CPU: correlations by real transforms, products with S on members."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.fft import irfft, next_fast_len, rfft

from ...families.kshape.sbd import CONSTANT, LEAST_RANGE, TIE, UNCLEAR

__all__ = [
    "aligned",
    "certify",
    "correlate",
    "fft_length",
    "gram_product",
    "member_sums",
    "scale_to_norm",
    "spectra",
    "z_normalize",
]

#: Sums of a dot product run in as many lanes as the hardware has; infinities do not occur.
FAST = {"reassoc", "contract", "arcp", "nsz"}
#: Correlations of a block of series with some centres that are made at a time: 1 MiB.
POINTS = 2**17
#: Series that are transformed at a time, a multiple of the lanes that share a vector.
AT_ONCE = 256


def fft_length(n_timepoints: int) -> int:
    """Points of a transform that has room for all shifts of two series."""
    return next_fast_len(2 * n_timepoints - 1, real=True)


def spectra(values: np.ndarray) -> np.ndarray:
    """Spectra of series of shape (n_series, n_channels, n_timepoints), channel by channel."""
    n_series, n_channels, length = values.shape
    n = fft_length(length)
    out = np.empty((n_series, n_channels, n // 2 + 1), np.complex128)
    for start in range(0, n_series, AT_ONCE):
        # padded copies of some series, not of all
        some = slice(start, start + AT_ONCE)
        out[some] = rfft(values[some], n, axis=2)
    return out


def correlate(
    spectrum: np.ndarray,
    norms: np.ndarray,
    centers: np.ndarray,
    center_norms: np.ndarray,
    doubts: np.ndarray,
    n_timepoints: int,
    distances: np.ndarray,
    shifts: np.ndarray,
) -> None:
    """Distances and shifts of a block of series and all centres; shifts may be `UNCLEAR`.

    Parameters
    ----------
    spectrum : ndarray of shape (n_series, n_channels, n_frequencies), complex128
        Spectra of the series.
    norms, center_norms : ndarray of shape (n_series,) and (n_centers,)
        Norms of both sides.
    centers : ndarray of shape (n_centers, n_channels, n_frequencies), complex128
        Spectra of the centres.
    doubts : ndarray of shape (n_centers,)
        Errors of the NCC with each centre.
    n_timepoints : int
        Points of a series.
    distances, shifts : ndarray of shape (n_series, n_centers)
        Where to write.
    """
    n = fft_length(n_timepoints)
    n_series, n_frequencies = spectrum.shape[0], spectrum.shape[2]
    # many centres a call: between calls threads wait for the interpreter's lock
    step = max(1, POINTS // (n_series * n))
    for start in range(0, len(centers), step):
        some = slice(start, min(start + step, len(centers)))
        product = np.empty((some.stop - start, n_series, n_frequencies), np.complex128)
        multiply(spectrum, centers[some], product)
        best(
            irfft(product, n, axis=2, overwrite_x=True),
            norms,
            center_norms[some],
            doubts[some],
            n_timepoints,
            distances[:, some],
            shifts[:, some],
        )


@njit(nogil=True, cache=True, fastmath={"contract"})
def multiply(spectrum, centers, product):
    """Products of the spectra of a block with the conjugates of others, summed over channels."""
    n_series, n_channels, n_frequencies = spectrum.shape
    for j in range(len(centers)):
        for i in range(n_series):
            for f in range(n_frequencies):
                x, c = spectrum[i, 0, f], centers[j, 0, f]
                product[j, i, f] = complex(
                    x.real * c.real + x.imag * c.imag, x.imag * c.real - x.real * c.imag
                )
            for channel in range(1, n_channels):
                for f in range(n_frequencies):
                    x, c = spectrum[i, channel, f], centers[j, channel, f]
                    product[j, i, f] += complex(
                        x.real * c.real + x.imag * c.imag, x.imag * c.real - x.real * c.imag
                    )


@njit(nogil=True, cache=True)
def largest(values, start, stop):
    """Largest value of a stretch, in lanes."""
    lanes = np.full(8, -np.inf)
    whole = start + (stop - start) // 8 * 8
    for i in range(start, whole, 8):
        for lane in range(8):
            value = values[i + lane]
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    top = lanes.max()
    for i in range(whole, stop):
        top = max(top, values[i])
    return top


@njit(nogil=True, cache=True)
def best(correlations, norms, center_norms, doubts, n_timepoints, distances, shifts):
    """Each distance, and its shift: of those that tie the shortest, then the one to the left.

    The correlation at shift s stands at -s, that at -s at s. The first that may tie is the answer
    if it ties whatever the errors are, `doubts` for each of two values.
    """
    n_centers, n_series, n = correlations.shape
    for j in range(n_centers):
        for i in range(n_series):
            values = correlations[j, i]
            scale = norms[i] * center_norms[j]
            if scale == 0.0:
                distances[i, j], shifts[i, j] = 1.0, 0
                continue
            top = max(largest(values, 0, n_timepoints), largest(values, n - n_timepoints + 1, n))
            floor = top - (TIE + 2 * doubts[j]) * scale
            found = 0
            if not values[0] >= floor:
                for s in range(1, n_timepoints):
                    if values[s] >= floor:
                        found = -s
                        break
                    if values[n - s] >= floor:
                        found = s
                        break
            distances[i, j] = max(0.0, 1.0 - top / scale)
            clear = values[(n - found) % n] >= top - (TIE - 2 * doubts[j]) * scale
            shifts[i, j] = found if clear else UNCLEAR


@njit(nogil=True, cache=True)
def two_fold_dot(x, y, total, rest):
    """Add a dot product to `total + rest`, in twice the precision of float64.

    Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), Dot2.
    """
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


@njit(nogil=True, cache=True)
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
    top = largest(correlations, 0, n_timepoints)
    top = max(top, largest(correlations, n - n_timepoints + 1, n))
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


@njit(nogil=True, cache=True, fastmath=FAST)
def gram_product(values, flat, weights, members, shifts, vectors, out, cancel):
    """Add to `out` the products of S, the sum of outer products of aligned members, with vectors.

    A member is read once for all vectors. Shapes: `values` (n_series, n_channels, n_timepoints),
    `vectors` and `out` (n_vectors, n_channels, n_timepoints). Channels that are `flat` count as
    zeros where the member is not shifted.
    """
    n_vectors, n_channels, n = vectors.shape
    shares = np.empty(n_vectors)
    for position in range(members.size):
        if position % 1024 == 0 and cancel[0]:
            return
        member = members[position]
        shift = shifts[member]
        low, high = max(0, shift), min(n, n + shift)
        for q in range(n_vectors):
            weight = 0.0
            for c in range(n_channels):
                if flat[member, c] and shift == 0:
                    continue
                x, v = values[member, c, low - shift : high - shift], vectors[q, c, low:high]
                for t in range(high - low):
                    weight += x[t] * v[t]
            shares[q] = weight * weights[member] * weights[member]
        for q in range(n_vectors):
            for c in range(n_channels):
                if flat[member, c] and shift == 0:
                    continue
                x, w = values[member, c, low - shift : high - shift], out[q, c, low:high]
                for t in range(high - low):
                    w[t] += shares[q] * x[t]


@njit(nogil=True, cache=True)
def member_sums(values, flat, weights, members, shifts, out):
    """Add the aligned members to `out`, of shape (n_channels, n_timepoints)."""
    n = out.shape[1]
    for position in range(members.size):
        member = members[position]
        shift = shifts[member]
        low, high = max(0, shift), min(n, n + shift)
        for c in range(out.shape[0]):
            if flat[member, c] and shift == 0:
                continue
            x, w = values[member, c, low - shift : high - shift], out[c, low:high]
            for t in range(high - low):
                w[t] += weights[member] * x[t]


@njit(nogil=True, cache=True)
def aligned(values, flat, weights, members, shifts, out):
    """Write aligned members to `out`, of shape (n_members, n_channels, n_timepoints)."""
    n = out.shape[2]
    out[:] = 0.0
    for position in range(members.size):
        member = members[position]
        shift = shifts[member]
        low, high = max(0, shift), min(n, n + shift)
        for c in range(out.shape[1]):
            if flat[member, c] and shift == 0:
                continue
            for t in range(low, high):
                out[position, c, t] = weights[member] * values[member, c, t - shift]


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def extremes(x):
    """Least and largest value of a row, in four lanes each."""
    low, high = np.full(4, x[0]), np.full(4, x[0])
    whole = x.size // 4 * 4
    for t in range(0, whole, 4):
        for lane in range(4):
            value = x[t + lane]
            low[lane] = value if value < low[lane] else low[lane]
            high[lane] = value if value > high[lane] else high[lane]
    for t in range(whole, x.size):
        low[0], high[0] = min(low[0], x[t]), max(high[0], x[t])
    return low.min(), high.max()


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def exponent_of(largest_value):
    """The power of two that brings a positive number to between 1/2 and 1, or near to that.

    Both it and its inverse are normal numbers.
    """
    return min(1000, max(-1000, math.frexp(largest_value)[1]))


@njit(nogil=True, cache=True)
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
            if span <= max(CONSTANT / 2 * peak, LEAST_RANGE / 2):
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


@njit(nogil=True, cache=True)
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
