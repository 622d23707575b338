"""Shape-based distances on the CPU: correlations by real transforms, products with S on members."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.fft import irfft, rfft

from ...core.constants import TIE, UNCLEAR
from ...host import kernel
from ...host.shapes import fft_length, largest
from ...host.small_work import prefer_numpy

__all__ = [
    "aligned",
    "correlate",
    "gram_product",
    "member_sums",
    "spectra",
]

#: Sums of a dot product run in as many lanes as the hardware has; infinities do not occur.
FAST = {"reassoc", "contract", "arcp", "nsz"}
#: Correlations of a block of series with some centres that are made at a time: 1 MiB.
POINTS = 2**17
#: Series that are transformed at a time, a multiple of the lanes that share a vector.
AT_ONCE = 256


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
        seconds = 2e-8 * product.shape[0] * n_series * n
        small = prefer_numpy(partial(_twice, seconds), best)
        choose = best_by_numpy if small else best
        choose(
            irfft(product, n, axis=2, overwrite_x=True),
            norms,
            center_norms[some],
            doubts[some],
            n_timepoints,
            distances[:, some],
            shifts[:, some],
        )


@kernel(fastmath={"contract"})
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


@kernel
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
            top = max(largest(values[:n_timepoints]), largest(values[n - n_timepoints + 1 :]))
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


def _twice(seconds: float) -> tuple[float, float]:
    """Seconds of all the work, which is done at once."""
    return seconds, seconds


def best_by_numpy(
    correlations: np.ndarray,
    norms: np.ndarray,
    center_norms: np.ndarray,
    doubts: np.ndarray,
    n_timepoints: int,
    distances: np.ndarray,
    shifts: np.ndarray,
) -> None:
    """Each distance and its shift, without a kernel: see `best`."""
    n = correlations.shape[2]
    after = np.arange(1, n_timepoints)
    places = np.zeros(2 * n_timepoints - 1, np.int64)
    places[1::2], places[2::2] = after, n - after
    values = correlations[:, :, places]
    scale = center_norms[:, np.newaxis] * norms
    top, doubt = values.max(axis=2), doubts[:, np.newaxis]
    floor = top - (TIE + 2 * doubt) * scale
    at = np.argmax(values >= floor[:, :, np.newaxis], axis=2)
    found = np.take_along_axis(values, at[:, :, np.newaxis], axis=2)[:, :, 0]
    clear = found >= top - (TIE - 2 * doubt) * scale
    half = (at + 1) // 2
    shift = np.where(clear, np.where(at % 2, -half, half), UNCLEAR)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.maximum(0.0, 1.0 - top / scale)
    distances[:] = np.where(scale == 0.0, 1.0, distance).T
    shifts[:] = np.where(scale == 0.0, 0, shift).T


@kernel(fastmath=FAST)
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


@kernel
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


@kernel
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
