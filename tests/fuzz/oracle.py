"""What is right: the definitions of the methods, written down once more and sharing no code.

Plain loops (compiled, some of them, by Numba) over float64 or, where a rounding would decide,
over NumPy's longdouble. Nothing of `skts` is imported. Values come with a bound of how far the
package's may be off: `slack` of windows grows with their conditioning, largest magnitude over
deviation, as that of any two-pass formula in float64 does.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

__all__ = [
    "Warp",
    "Windows",
    "band",
    "dtw_matrix",
    "dtw_table",
    "elastic",
    "keogh",
    "match_rows",
    "pair_distances",
    "plane",
    "sbd",
    "shape_of",
]

EPS = 2.0**-52
CONSTANT, SMALLEST = 2.0**-40, 2.0**-500
#: Shifts and centres within this of the best tie.
TIE = 1e-9


def plane(*groups: Any) -> int:
    """The power of two next to the largest number: dividing by it keeps all squares in range."""
    largest = max(
        (float(np.abs(one).max()) for group in groups for one in group if one.size), default=0
    )
    return 0 if largest == 0 else math.frexp(largest)[1]


# -- elastic distances


class Warp(NamedTuple):
    """Options of a distance under warping."""

    metric: str = "dtw"
    cost: str = "squared"
    window: float | None = None
    alignment: str = "global"


def band(window: float | None, n: int, m: int) -> int:
    """Half width of the band: ceil(window max(n, m) - 1e-9) for fractions, at least |n - m|."""
    if window is None:
        return n + m
    if isinstance(window, float):
        window = math.ceil(window * max(n, m) - 1e-9)
    return max(min(window, n + m), abs(n - m))


@njit(cache=True, nogil=True)
def _table(x, y, radius, squared, largest, free_x, free_y):
    """D(i, j) for every cell; x and y are (n_channels, n_points)."""
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    if free_y:
        D[0, :] = 0.0
    if free_x:
        D[:, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if abs(i - j) > radius:
                continue
            cost = 0.0
            for c in range(x.shape[0]):
                difference = x[c, i - 1] - y[c, j - 1]
                cost += difference * difference if squared else abs(difference)
            best = min(D[i - 1, j - 1], D[i - 1, j], D[i, j - 1])
            D[i, j] = max(cost, best) if largest else cost + best
    return D[1:, 1:]


def dtw_table(x: np.ndarray, y: np.ndarray, warp: Warp) -> np.ndarray:
    """Accumulated costs of the best paths to every cell."""
    return _table(
        x,
        y,
        band(warp.window, x.shape[1], y.shape[1]),
        warp.cost == "squared",
        warp.metric == "dog_keeper",
        warp.alignment == "supersequence",
        warp.alignment == "subsequence",
    )


def _least(D: np.ndarray, warp: Warp) -> float:
    if warp.alignment == "subsequence":
        return float(D[-1].min())
    if warp.alignment == "supersequence":
        return float(D[:, -1].min())
    return float(D[-1, -1])


def elastic(x: np.ndarray, y: np.ndarray, warp: Warp) -> float:
    """Distance of two series, of shape (n_channels, n_points)."""
    power = plane([x, y])
    found = _least(dtw_table(np.ldexp(x, -power), np.ldexp(y, -power), warp), warp)
    return math.ldexp(math.sqrt(found) if warp.cost == "squared" else found, power)


@njit(cache=True, nogil=True)
def _matrix(X, n, Y, m, radii, squared, largest, free_x, free_y):
    """Ends of the tables of all pairs."""
    found = np.empty((X.shape[0], Y.shape[0]))
    for i in range(X.shape[0]):
        for j in range(Y.shape[0]):
            x, y = X[i, :, : n[i]], Y[j, :, : m[j]]
            D = _table(x, y, radii[i, j], squared, largest, free_x, free_y)
            if free_y:
                found[i, j] = D[-1].min()
            elif free_x:
                found[i, j] = D[:, -1].min()
            else:
                found[i, j] = D[-1, -1]
    return found


def _pack(X: Any, power: int) -> tuple[np.ndarray, np.ndarray]:
    """Series of any lengths in one array, and their lengths."""
    lengths = np.array([x.shape[1] for x in X])
    packed = np.zeros((len(X), X[0].shape[0], lengths.max()))
    for row, x in enumerate(X):
        packed[row, :, : x.shape[1]] = np.ldexp(x, -power)
    return packed, lengths


def dtw_matrix(X: Any, Y: Any, warp: Warp) -> np.ndarray:
    """Distances of all series of one set to all of another."""
    power = plane(X, Y)
    (A, n), (B, m) = _pack(X, power), _pack(Y, power)
    radii = np.array([[band(warp.window, int(i), int(j)) for j in m] for i in n])
    squared = warp.cost == "squared"
    found = _matrix(
        *(A, n, B, m, radii, squared, warp.metric == "dog_keeper"),
        *(warp.alignment == "supersequence", warp.alignment == "subsequence"),
    )
    return np.ldexp(np.sqrt(found) if squared else found, power)


def dtw_path(x: np.ndarray, y: np.ndarray, warp: Warp) -> list[tuple[int, int]]:
    """Best path: from the first best end backwards, the diagonal first, then a step back in x."""
    D = dtw_table(x, y, warp)
    i, j = D.shape[0] - 1, D.shape[1] - 1
    if warp.alignment == "subsequence":
        j = int(np.argmin(D[-1]))
    if warp.alignment == "supersequence":
        i = int(np.argmin(D[:, -1]))
    path = [(i, j)]
    while True:
        if i == 0 and (j == 0 or warp.alignment == "subsequence"):
            break
        if j == 0 and warp.alignment == "supersequence":
            break
        steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min((step for step in steps if min(step) >= 0), key=lambda step: D[step])
        path.append((i, j))
    return path[::-1]


def rotation_matrix(X: Any, Y: Any, warp: Warp) -> np.ndarray:
    """Least distances over all circular shifts of the second series."""
    turned = [[np.roll(y, -shift, axis=1) for shift in range(y.shape[1])] for y in Y]
    return np.column_stack([dtw_matrix(X, shifts, warp).min(axis=1) for shifts in turned])


def keogh(x: np.ndarray, y: np.ndarray, warp: Warp) -> float:
    """How far every point of x is from the range of the points of y that it may be matched with."""
    power = plane([x, y])
    x, y = np.ldexp(x, -power), np.ldexp(y, -power)
    n, m = x.shape[1], y.shape[1]
    radius = band(warp.window, n, m)
    costs = []
    for i in range(n):
        near = y[:, max(0, i - radius) : min(m, i + radius + 1)]
        away = np.maximum(0, np.maximum(near.min(axis=1) - x[:, i], x[:, i] - near.max(axis=1)))
        costs.append(float(np.sum(away**2 if warp.cost == "squared" else away)))
    total = max(costs) if warp.metric == "dog_keeper" else math.fsum(costs)
    return math.ldexp(math.sqrt(total) if warp.cost == "squared" else total, power)


# -- windows


class Windows(NamedTuple):
    """All windows of one length of a series, normalised each by its own mean and deviation.

    Attributes
    ----------
    raw, z : ndarray of shape (n_windows, length), float64
        As they are (scaled by `power`), and normalised; zeros where constant or not finite.
    finite, constant : ndarray of shape (n_windows,), bool
        Windows without NaN and infinity; those of them that are constant.
    slack : ndarray of shape (n_windows,)
        How far a point of `z` may be off in float64.
    power : int
        ``raw * 2**power`` are the points.
    """

    raw: np.ndarray
    z: np.ndarray
    finite: np.ndarray
    constant: np.ndarray
    slack: np.ndarray
    power: int

    @classmethod
    def of(cls, points: np.ndarray, length: int, power: int | None = None) -> Windows:
        """Cut a series into windows."""
        finite = np.isfinite(points)
        if power is None:
            power = plane([points[finite]])
        count = max(0, len(points) - length + 1)
        if count == 0:
            empty, none = np.zeros((0, length)), np.zeros(0, bool)
            return cls(empty, empty, none, none, np.zeros(0), power)
        cut = np.lib.stride_tricks.sliding_window_view
        whole = cut(finite, length).all(axis=1)
        given = cut(np.where(finite, points, 0.0), length)
        low, high = given.min(axis=1), given.max(axis=1)
        size = np.abs(given).max(axis=1)
        constant = whole & (high - low <= np.maximum(CONSTANT * size, SMALLEST))
        usual = whole & ~constant
        # each window on a scale of its own: squares stay in range
        own = np.where(usual, -np.frexp(np.where(usual, high - low, 1.0))[1], 0)
        long = np.ldexp(given.astype(np.longdouble), own[:, None])
        # relative to the first point, which is exact but for the last bits of longdouble
        long = np.where(usual[:, None], long - long[:, :1], 0)
        long -= long.mean(axis=1, keepdims=True)
        deviation = np.sqrt(np.mean(long * long, axis=1))
        z = np.where(usual[:, None], long / np.where(usual, deviation, 1)[:, None], 0)
        condition = np.ldexp(size, own) / np.where(usual, deviation, 1)
        slack = np.where(usual, EPS * (8 + 4 * condition.astype(float)), 0.0)
        return cls(np.ldexp(given, -power), z.astype(float), whole, constant, slack, power)

    def values(self, normalize: bool) -> np.ndarray:
        """What is compared."""
        return self.z if normalize else self.raw


@njit(cache=True, nogil=True)
def _norms(a, b):
    found = np.empty((a.shape[0], b.shape[0]))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            total = 0.0
            for t in range(a.shape[1]):
                d = a[i, t] - b[j, t]
                total += d * d
            found[i, j] = np.sqrt(total)
    return found


def pair_distances(a: Windows, b: Windows, normalize: bool) -> tuple[np.ndarray, np.ndarray]:
    """Distances of all windows of a line to all of another, and how far they may be off."""
    length = a.raw.shape[1]
    D = _norms(np.ascontiguousarray(a.values(normalize)), np.ascontiguousarray(b.values(normalize)))
    root = math.sqrt(length)
    if normalize:
        flat = a.constant[:, None].astype(int) + b.constant[None]
        D = np.where(flat == 2, 0.0, np.where(flat == 1, root, D))
        slack = root * np.where(flat > 0, 0.0, a.slack[:, None] + b.slack[None])
    else:
        D = np.ldexp(D, a.power)
        slack = np.zeros(D.shape)
    D = np.where(a.finite[:, None] & b.finite[None], D, np.inf)
    return D, slack + 4 * length * EPS * np.where(np.isfinite(D), D, 0.0)


@njit(cache=True, nogil=True)
def _match(query, windows, radius, squared, largest):
    found = np.empty(windows.shape[0])
    one = query.reshape(1, -1)
    for k in range(windows.shape[0]):
        D = _table(one, windows[k].copy().reshape(1, -1), radius, squared, largest, False, False)
        found[k] = D[-1, -1]
    return found


def match_rows(
    query: np.ndarray, line: np.ndarray, warp: Warp, normalize: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of a query to all windows of a series under warping, and how far they may be off.

    Infinite where a window is not finite; constant ones normalise to zeros.
    """
    length = len(query)
    power = plane([query, line[np.isfinite(line)]])
    one, other = Windows.of(query, length, power), Windows.of(line, length, power)
    squared = warp.cost == "squared"
    found = _match(
        np.ascontiguousarray(one.values(normalize)[0]),
        np.ascontiguousarray(other.values(normalize)),
        band(warp.window, length, length),
        squared,
        warp.metric == "dog_keeper",
    )
    found = np.sqrt(found) if squared else found
    slack = 8 * length * EPS * found
    if normalize:
        steps = 1 if warp.metric == "dog_keeper" else 2 * length - 1
        slack = slack + (math.sqrt(steps) if squared else steps) * (other.slack + one.slack[0])
    else:
        found, slack = np.ldexp(found, power), np.ldexp(slack, power)
    return np.where(other.finite, found, np.inf), slack


# -- shapes


class Shape(NamedTuple):
    """A series as k-Shape compares it, and how far a point of it may be off."""

    values: np.ndarray
    slack: float


def shape_of(x: np.ndarray, *, normalize: bool, short: bool, width: int) -> Shape:
    """Normalise a series, (n_channels, n), channel by channel, and fill it with zeros."""
    out = np.zeros((len(x), width))
    slack = 0.0
    if not normalize:
        out[:, : x.shape[1]] = np.ldexp(x, -plane([x]))
    elif short:
        scaled = np.ldexp(x, -plane([x])).astype(np.longdouble)
        norm = np.sqrt(np.sum(scaled**2))
        out[:, : x.shape[1]] = scaled / norm if norm > 0 else 0.0
    else:
        for c, channel in enumerate(x):
            windows = Windows.of(channel, len(channel))
            out[c, : x.shape[1]] = windows.z[0]
            slack = max(slack, float(windows.slack[0]))
    return Shape(out, slack)


def correlations(x: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Normalised cross-correlation for x moved by 1 - n, ..., n - 1 points to the right."""
    norms = [math.sqrt(math.fsum((one * one).ravel().tolist())) for one in (x, c)]
    n = x.shape[1]
    if 0 in norms:
        return np.zeros(2 * n - 1)
    total = sum(np.correlate(c[k] / norms[1], x[k] / norms[0], "full") for k in range(len(x)))
    return np.asarray(total)


def sbd(x: np.ndarray, c: np.ndarray) -> tuple[float, set[int], np.ndarray]:
    """Distance; the shifts that a tolerance of 1e-9 allows for; and all correlations."""
    n = x.shape[1]
    values = correlations(x, c)
    best = float(values.max())
    shifts = np.arange(1 - n, n)

    def chosen(tie: float) -> int:
        tied = shifts[values >= best - tie]
        return int(min(tied, key=lambda s: (abs(s), s)))

    # correlations at the border of the tolerance may lie on either side of it
    unsure = np.abs(best - TIE - values) <= 1e-3 * TIE
    allowed = {chosen(TIE)}
    if unsure.any():
        allowed |= {chosen(TIE * (1 + 2e-3)), chosen(TIE * (1 - 2e-3))}
    return max(0.0, 1 - best), allowed, values
