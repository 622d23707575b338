"""`windows` and `shapes` by NumPy, for small work: statistics, distances, scaled series.

Each sum adds in the same order as in the kernels, hence the bits are the same.
"""

from __future__ import annotations

import numpy as np

from ..core.constants import CONSTANT, SMALLEST_RANGE
from .small_work import ENTRIES

__all__ = ["distances", "held_bytes", "seconds", "statistics", "z_normalize"]


def statistics(points: np.ndarray, length: int, anchored: bool | None = None) -> list[np.ndarray]:
    """Mean, deviation, least and largest point of all windows: see `windows.statistics`."""
    n_windows = points.size - length + 1
    mean, deviation, low, high = found = [np.empty(n_windows) for _ in range(4)]
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, n_windows, ENTRIES):
            stop = min(first + ENTRIES, n_windows)
            some = slice(first, stop)
            anchor = points[some] if anchored else 0.0
            total, squares = np.zeros(stop - first), np.zeros(stop - first)
            low[some] = high[some] = points[some]
            for t in range(length):
                here = slice(first + t, stop + t)
                total += points[here] - anchor
                np.minimum(low[some], points[here], out=low[some])
                np.maximum(high[some], points[here], out=high[some])
            mean[some] = total / length
            for t in range(length):
                squares += np.square(points[first + t : stop + t] - anchor - mean[some])
            deviation[some] = np.sqrt(squares / length)
    return found


def distances(
    a: np.ndarray,
    rows: np.ndarray,
    means_a: np.ndarray,
    inverses_a: np.ndarray,
    b: np.ndarray,
    start: int,
    means: np.ndarray,
    inverses: np.ndarray,
    length: int,
    out: np.ndarray,
    cancel: np.ndarray,
    anchored: bool | None = None,
) -> None:
    """Certified distances of windows: see `windows.distances`."""
    width = min(out.shape[1], ENTRIES // 8)
    height = max(1, ENTRIES // max(1, width))
    with np.errstate(over="ignore", invalid="ignore"):
        for top in range(0, rows.size, height):
            some = rows[top : top + height, np.newaxis]
            own = a[some] if anchored else 0.0
            for left in range(0, out.shape[1], width):
                if cancel[0]:
                    return
                place = slice(start + left, start + min(left + width, out.shape[1]))
                other = b[place] if anchored else 0.0
                total = np.zeros((some.size, place.stop - place.start))
                for t in range(length):
                    x = (a[some + t] - own - means_a[some]) * inverses_a[some]
                    points = b[place.start + t : place.stop + t]
                    y = (points - other - means[place]) * inverses[place]
                    total += np.square(x - y)
                out[top : top + height, left : left + width] = np.sqrt(total)


def seconds(n_distances: int, length: int) -> float:
    """About how long `distances` takes."""
    return 2e-9 * n_distances * length


def held_bytes(n_distances: int) -> int:
    """Bytes that `distances` and `statistics` hold beside their input and output, at most."""
    return 8 * 8 * min(n_distances, ENTRIES)


def _lane_sum(values: np.ndarray) -> np.ndarray:
    """Sums of rows in four lanes: see `shapes.lane_sum`."""
    lanes, whole = np.zeros((4, len(values))), values.shape[1] // 4 * 4
    for t in range(0, whole, 4):
        lanes += values[:, t : t + 4].T
    for t in range(whole, values.shape[1]):
        lanes[0] += values[:, t]
    a, b, c, d = lanes
    return np.asarray((a + b) + (c + d))


def z_normalize(series: np.ndarray, target: np.ndarray, norms: np.ndarray) -> None:
    """Z-normalise each channel of series of one length: see `shapes.z_normalize`."""
    n, total = series.shape[2], np.zeros(len(series))
    with np.errstate(all="ignore"):
        for c in range(series.shape[1]):
            low, high = series[:, c].min(axis=1), series[:, c].max(axis=1)
            peak = np.maximum(-low, high)
            span = high / 2 - low / 2
            some = ~(span <= np.maximum(CONSTANT / 2 * peak, SMALLEST_RANGE / 2))
            exponent = np.clip(np.frexp(peak[some])[1], -1000, 1000)
            z = series[some, c] * np.ldexp(1.0, -exponent)[:, np.newaxis]
            for _ in range(2):
                z -= (_lane_sum(z) / n)[:, np.newaxis]
            variance = _lane_sum(z * z) / n
            factor = 1 / np.sqrt(variance)
            target[some, c, :n] = z * factor[:, np.newaxis]
            total[some] += n * (factor * factor * variance)
    norms[:] = np.sqrt(total)
