"""Statistics and certified distances of windows by NumPy, for small work: `windows` without kernels.

Each sum adds in the order of time, hence the bits are the same.
"""

from __future__ import annotations

import numpy as np

from .narrow import ENTRIES

__all__ = ["distances", "seconds", "statistics"]


def statistics(
    points: np.ndarray, raw: np.ndarray, length: int, anchored: bool | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and deviation of all windows; least and largest raw point: see `windows.statistics`."""
    n_windows = points.size - length + 1
    anchor = points[:n_windows] if anchored else 0.0
    total, squares = np.zeros(n_windows), np.zeros(n_windows)
    low, high = raw[:n_windows].copy(), raw[:n_windows].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(length):
            total += points[t : t + n_windows] - anchor
            np.minimum(low, raw[t : t + n_windows], out=low)
            np.maximum(high, raw[t : t + n_windows], out=high)
        mean = total / length
        for t in range(length):
            squares += np.square(points[t : t + n_windows] - anchor - mean)
        return mean, np.sqrt(squares / length), low, high


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
