"""Lengths of windows, as users name them or by the period of the series; lines to search."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from .._scalars import plain
from ..engines import ConcatenatedSeries, Series
from ._search import length_of

__all__ = ["period_of", "private_line", "window_lengths"]

#: Series, and points of all of them, that window="auto" looks at.
AUTO_SERIES, AUTO_POINTS = 100, 2**18
#: Height times prominence of peaks that count, and what share of the best score is as good.
CLEAR, SAME_PERIOD = 0.01, 0.9
#: Windows of fewer points say little more than up or down.
SHORTEST = 3


def window_lengths(window: Any, series: list[np.ndarray], name: str = "window") -> list[int]:
    """Return how many points the windows have that are asked for.

    Parameters
    ----------
    window : int, float, "auto", or list of int and float
        As users give it: points, shares of the shortest series, or the period.
    series : list of ndarray
        Each channel of each series.
    name : str, default "window"
        What it is called in messages.

    Returns
    -------
    list of int
        Points of each, in the order in which they are given.

    Raises
    ------
    ValueError
        If a length is none, or longer than all series.
    """
    shortest = min(points.size for points in series)
    longest = max(points.size for points in series)
    if isinstance(window, str):
        return [period_of(series, shortest)]
    lengths = []
    if isinstance(window, range):
        window = list(window[: longest + 1])  # of so many, one is none of a window
    if not isinstance(window, Real):
        window = list(window) if isinstance(window, list | tuple) else np.ravel(window).tolist()
    each: Any
    for each in [window] if isinstance(window, Real) else window:
        whole = isinstance(each, Integral) and not isinstance(each, bool)
        share = isinstance(each, Real) and not isinstance(each, Integral)
        if (whole and each >= 1) or (share and 0 < each <= 1):
            length = length_of(plain(each), shortest)
        else:
            raise ValueError(
                f"{name}={each!r}: a length is a number of points, at least 1, or a fraction of "
                f"the {'shortest ' if len(series) > 1 else ''}series above 0 and up to 1."
            )
        if length > longest and len(series) == 1:
            raise ValueError(
                f"A window of {length} is longer than the series, which has {longest} time points "
                f"(n_features = {longest})."
            )
        if length > longest:
            raise ValueError(
                f"A window of {length} is longer than every series; the longest has {longest} "
                f"time points (n_features = {longest})."
            )
        lengths.append(length)
    if not lengths:
        raise ValueError(f"{name} is empty: name at least one length.")
    return lengths


def period_of(series: list[np.ndarray], shortest: int) -> int:
    """Return the lag of the clearest peak of autocorrelation.

    Parameters
    ----------
    series : list of ndarray
        Each channel of each series.
    shortest : int
        Points of the shortest.

    Returns
    -------
    int
        Points of a period; a tenth of the shortest series where there is none.
    """
    from scipy.signal import find_peaks  # takes a tenth of a second, and few need it

    looked_at: list[np.ndarray] = []
    room = AUTO_POINTS
    for points in series[:AUTO_SERIES]:
        if points.size > room and looked_at:
            break
        found = _without_gaps(points[:room])
        if found is not None:
            looked_at.append(found)
            room -= found.size
    last = min(shortest, AUTO_POINTS) // 3
    peaks = []
    for low in (2**power for power in range(1, last.bit_length())):
        total = np.zeros(3 * low + 2)
        for points in looked_at:
            total += _autocorrelation(points, low, total.size)
        lags, found = find_peaks(total / max(1, len(looked_at)), height=0.0, prominence=0.0)
        clearness = found["peak_heights"] * found["prominences"]
        inside = (lags >= max(low, SHORTEST)) & (lags < 2 * low) & (lags <= last)
        peaks += [
            (clear / math.sqrt(lag), int(lag))
            for lag, clear in zip(lags[inside], clearness[inside], strict=True)
            if clear >= CLEAR
        ]
    if not peaks:
        return min(shortest, max(SHORTEST, shortest // 10))
    best, _ = max(peaks)
    return min(lag for score, lag in peaks if score >= SAME_PERIOD * best)


def _without_gaps(points: np.ndarray) -> np.ndarray | None:
    """Points around 0, at most 1, gaps bridged by straight lines; None where they are constant."""
    points = np.array(points, np.float64)
    finite = np.isfinite(points)
    if not finite.any():
        return None
    places = np.arange(points.size)
    points = np.interp(places, places[finite], points[finite])
    with np.errstate(over="ignore"):
        points /= max(np.abs(points).max(), np.finfo(float).tiny)
    points -= points.mean()
    largest = np.abs(points).max()
    return points / largest if largest > 1e-12 else None


def _autocorrelation(points: np.ndarray, low: int, n_lags: int) -> np.ndarray:
    """Autocorrelation without the trend that is slower than lags from `low` to twice that.

    The trend is a moving mean of a moving mean, each of `low` points to either side; or a straight
    line where the means would leave less than half of the series.
    """
    correlation = np.zeros(n_lags)
    if points.size >= 8 * low:
        rest = points[2 * low : -2 * low] - _moving_mean(_moving_mean(points, low), low)
    else:
        times = np.arange(points.size) - (points.size - 1) / 2
        rest = points - times * (times @ points) / max(times @ times, 1.0)
    if np.abs(rest).max() > 1e-9:
        size = next_fast_len(rest.size + min(n_lags, rest.size), real=True)
        found = irfft(np.abs(rfft(rest, size)) ** 2, size)[: min(n_lags, rest.size)]
        correlation[: found.size] = found / found[0]
    return correlation


def _moving_mean(points: np.ndarray, reach: int) -> np.ndarray:
    """Means of every ``2 * reach + 1`` points."""
    sums = np.cumsum(np.concatenate([[0.0], points]))
    return (sums[2 * reach + 1 :] - sums[: -2 * reach - 1]) / (2 * reach + 1)


def private_line(series: list[np.ndarray], gap: int) -> ConcatenatedSeries:
    """Return a line of our own; a single memory map is kept by reference.

    Parameters
    ----------
    series : list of ndarray
        What lies on the line, one behind the other.
    gap : int
        Points between two series.

    Returns
    -------
    ConcatenatedSeries
        The line, of arrays that nobody else writes to.
    """
    if len(series) == 1:
        series = [Series.of(series[0][np.newaxis]).freeze().values[0, 0]]
    return ConcatenatedSeries.of(series, gap)
