"""The oracle: the definitions of the methods, written down once more and sharing no code.

Plain loops (compiled, most of them, by Numba: without it they are slower and find the same) over
float64 or, where a rounding would decide, over pairs of float64 that hold what a sum or a
difference loses. Nothing of `skts` is imported. Values come with a bound of how far the
package's may be off: `slack` of windows grows with their range over their deviation, as that of
any two-pass formula in float64 does that counts points from the first; their level costs nothing.
"""

from __future__ import annotations

import itertools
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

EPS, SINGLE = 2.0**-52, 2.0**-24
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
        for j in range(max(1, i - radius), min(m, i + radius) + 1):
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


def _pack(X: Any, power: int) -> np.ndarray:
    """Series of any lengths in one array."""
    packed = np.zeros((len(X), X[0].shape[0], max(x.shape[1] for x in X)))
    for row, x in enumerate(X):
        packed[row, :, : x.shape[1]] = x
    return np.ldexp(packed, -power)


def dtw_matrix(X: Any, Y: Any, warp: Warp) -> np.ndarray:
    """Distances of all series of one set to all of another."""
    power = plane(X, Y)
    A, B = _pack(X, power), _pack(Y, power)
    n, m = ([x.shape[1] for x in each] for each in (X, Y))
    # only so many different lengths, though many pairs
    known = {pair: band(warp.window, *pair) for pair in itertools.product(set(n), set(m))}
    radii = np.array([[known[i, j] for j in m] for i in n])
    squared = warp.cost == "squared"
    found = _matrix(
        *(A, np.array(n), B, np.array(m), radii, squared, warp.metric == "dog_keeper"),
        *(warp.alignment == "supersequence", warp.alignment == "subsequence"),
    )
    return np.ldexp(np.sqrt(found) if squared else found, power)


def single_slack(D: np.ndarray, X: Any, Y: Any, warp: Warp) -> np.ndarray | None:
    """How far distances without a certificate may be off: found in float32, around the data of Y.

    Each of the L c differences along a path (n + m points, c channels) is off by the rounding of
    two numbers no larger than the range of all data, and their sum by L c roundings of its own. An
    offset that all data have is taken off. None where a query lies so far from the data that
    float32 has no numbers for it.
    """
    (low, high), (least, most) = (
        (min(float(x.min()) for x in side), max(float(x.max()) for x in side)) for side in (X, Y)
    )
    spread = max(high, most) - min(low, least)
    if spread > 2.0**40 * (most - least):
        return None
    steps = np.add.outer([x.shape[1] for x in X], [y.shape[1] for y in Y]) * len(X[0])
    each = np.sqrt(steps) if warp.cost == "squared" else steps
    return SINGLE * ((steps + 4) * np.where(np.isfinite(D), D, 0.0) + 4 * each * spread)


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


@njit(cache=True, nogil=True)
def _add(total, lost, value):
    """Add to a sum and to what its roundings lose."""
    new = total + value
    part = new - total
    return new, lost + ((total - (new - part)) + (value - part))


@njit(cache=True, nogil=True)
def _cut(points, finite, length, power):
    """The fields of `Windows`; each window on a scale of its own, so that squares stay in range."""
    count = max(0, points.size - length + 1)
    raw, z = np.zeros((count, length)), np.zeros((count, length))
    whole, constant = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    slack, high, low = np.zeros(count), np.zeros(length), np.zeros(length)
    for k in range(count):
        window = points[k : k + length]
        for t in range(length):
            raw[k, t] = math.ldexp(window[t], -power)
        whole[k] = finite[k : k + length].all()
        size, span = np.abs(window).max(), window.max() - window.min()
        constant[k] = whole[k] and span <= max(CONSTANT * size, SMALLEST)
        if constant[k] or not whole[k]:
            continue
        own = -math.frexp(span)[1]
        total = lost = 0.0
        first = math.ldexp(window[0], own)
        for t in range(length):
            # the difference from the first point, exactly: in two parts
            high[t], low[t] = _add(math.ldexp(window[t], own), 0.0, -first)
            total, lost = _add(total, lost + low[t], high[t])
        mean = (total + lost) / length
        # what the quotient loses: the remainder, of which few digits matter
        rest = lost
        for _ in range(length):
            total, rest = _add(total, rest, -mean)
        rest = (total + rest) / length
        total = lost = 0.0
        for t in range(length):
            part, left = _add(high[t], low[t] - rest, -mean)
            z[k, t] = part + left
            total, lost = _add(total, lost, z[k, t] * z[k, t])
        deviation = math.sqrt((total + lost) / length)
        z[k] /= deviation
        slack[k] = EPS * (8 + 4 * (math.ldexp(span, own) / deviation))
    return raw, z, whole, constant, slack


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
        return cls(*_cut(np.where(finite, points, 0.0), finite, length, power), power)

    def values(self, normalize: bool) -> np.ndarray:
        """The values that are compared."""
        return self.z if normalize else self.raw


@njit(cache=True, nogil=True)
def _pairs(a, b, normalize, power, finite, constant, slack):
    """Distances of all pairs of windows, and their slack; each of the last three is of a and b."""
    length = a.shape[1]
    root, rounding = math.sqrt(length), 4 * length * EPS
    D, off = np.full((a.shape[0], b.shape[0]), np.inf), np.zeros((a.shape[0], b.shape[0]))
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            if normalize:
                off[i, j] = root * (slack[0][i] + slack[1][j])
            if not (finite[0][i] and finite[1][j]):
                continue
            if normalize and (constant[0][i] or constant[1][j]):
                D[i, j] = 0.0 if constant[0][i] and constant[1][j] else root
                off[i, j] = 0.0
            else:
                total = 0.0
                for t in range(length):
                    d = a[i, t] - b[j, t]
                    total += d * d
                D[i, j] = math.sqrt(total) if normalize else math.ldexp(math.sqrt(total), power)
            off[i, j] += rounding * D[i, j]
    return D, off


def pair_distances(a: Windows, b: Windows, normalize: bool) -> tuple[np.ndarray, np.ndarray]:
    """Distances of all windows of a line to all of another, and how far they may be off."""
    values = (np.ascontiguousarray(one.values(normalize)) for one in (a, b))
    sides = ((a.finite, b.finite), (a.constant, b.constant), (a.slack, b.slack))
    return _pairs(*values, bool(normalize), a.power, *sides)


@njit(cache=True, nogil=True)
def _match(query, windows, radius, squared, largest):
    found = np.empty(windows.shape[0])
    for k in range(windows.shape[0]):
        D = _table(query, windows[k], radius, squared, largest, False, False)
        found[k] = D[-1, -1]
    return found


def match_rows(
    query: np.ndarray, line: np.ndarray, warp: Warp, normalize: bool, *, single: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Distances of a query to all windows of a series under warping, and how far they may be off.

    With `single` as far as those found in float32 may be: the bounds of float64 with its unit, and
    the rounding of the points themselves.
    Infinite where a window is not finite; constant ones normalise to zeros. Series of several
    channels are 2-D; each channel is normalised by itself.
    """
    query, line = np.atleast_2d(query), np.atleast_2d(line)
    length = query.shape[1]
    power = plane([query, line[np.isfinite(line)]])
    asked, others = ([Windows.of(x, length, power) for x in side] for side in (query, line))
    squared = warp.cost == "squared"
    found = _match(
        np.stack([one.values(normalize)[0] for one in asked]),
        np.stack([other.values(normalize) for other in others], axis=1),
        band(warp.window, length, length),
        squared,
        warp.metric == "dog_keeper",
    )
    found = np.sqrt(found) if squared else found
    slack = 8 * length * len(query) * EPS * found
    finite = np.all([other.finite for other in others], axis=0)
    steps = 1 if warp.metric == "dog_keeper" else 2 * length - 1
    each = math.sqrt(steps) if squared else steps
    if normalize:
        for one, other in zip(asked, others, strict=True):
            slack = slack + each * (other.slack + one.slack[0])
    elif single:
        # points are rounded where the series is as loud as anywhere
        for one, other in zip(asked, others, strict=True):
            loudest = np.abs(other.raw[other.finite]).max(initial=0.0)
            slack = slack + each * EPS * (loudest + np.abs(one.raw).max())
    if single:
        slack = slack * (2 * SINGLE / EPS)
    if not normalize:
        found, slack = np.ldexp(found, power), np.ldexp(slack, power)
    return np.where(finite, found, np.inf), slack


def single_slack_of_windows(lines: list, length: int, warp: Warp) -> list[np.ndarray]:
    """How far distances to normalised windows may be off beside louder ones, found in float32.

    Of each line that has windows, for all of them. Their points count from the middle of a range
    that may be that of all lines, R: each is off by some roundings of R over its deviation, which
    is at least the range of the window over the root of 2 l. What would be off by more than an
    eighth has no estimates.
    """
    channels = [np.atleast_2d(line) for line in lines]
    steps = 1 if warp.metric == "dog_keeper" else 2 * length - 1
    each = math.sqrt(steps) if warp.cost == "squared" else steps
    found = [np.zeros(line.shape[1] - length + 1) for line in channels if line.shape[1] >= length]
    for number in range(len(channels[0])):
        mine = [line[number] for line in channels]
        points = np.concatenate([line[np.isfinite(line)] for line in mine])
        if not points.size:
            continue
        most = points.max() - points.min()
        fitting = (line for line in mine if len(line) >= length)
        for off, line in zip(found, fitting, strict=True):
            windows = np.lib.stride_tricks.sliding_window_view(line, length)
            with np.errstate(invalid="ignore", divide="ignore"):
                ranges = (windows.max(axis=1) - windows.min(axis=1)) / math.sqrt(2 * length)
                share = np.minimum(0.125, 16 * SINGLE * most / ranges)
            off += each * np.where(ranges > 0, share, 0.0)
    return found


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


@njit(cache=True, nogil=True)
def correlations(x, c):
    """Normalised cross-correlation for x moved by 1 - n, ..., n - 1 points to the right."""
    n, found = x.shape[1], np.zeros(2 * x.shape[1] - 1)
    norm_x, norm_c = math.sqrt((x * x).sum()), math.sqrt((c * c).sum())
    if norm_x == 0 or norm_c == 0:
        return found
    one, other = x / norm_x, c / norm_c
    for k in range(found.size):
        shift = k - n + 1
        for row in range(x.shape[0]):
            for t in range(max(0, -shift), min(n, n - shift)):
                found[k] += one[row, t] * other[row, t + shift]
    return found


@njit(cache=True, nogil=True)
def _first(values, tie):
    """The shift within `tie` of the best that moves least; of two the one to the left."""
    best, n = values.max(), (values.size + 1) // 2
    found = values.size
    for k in range(values.size):
        shift = k - n + 1
        if values[k] >= best - tie and (
            abs(shift) < abs(found) or (abs(shift) == abs(found) and shift < found)
        ):
            found = shift
    return found


def sbd(x: np.ndarray, c: np.ndarray) -> tuple[float, set[int], np.ndarray]:
    """Distance; the shifts that a tolerance of 1e-9 allows for; and all correlations."""
    values = correlations(x, c)
    best = float(values.max())
    # correlations at the border of the tolerance may lie on either side of it
    allowed = {_first(values, TIE)}
    if (np.abs(best - TIE - values) <= 1e-3 * TIE).any():
        allowed |= {_first(values, TIE * (1 + 2e-3)), _first(values, TIE * (1 - 2e-3))}
    return max(0.0, 1 - best), allowed, values
