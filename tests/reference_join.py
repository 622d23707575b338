"""The oracle of joins: z-normalised windows of long series against each other, in plain loops."""

from __future__ import annotations

import math

import numpy as np

from skts.engines.families.profile.join import JoinPart
from skts.engines.families.profile.nearest import Nearest
from skts.engines.families.profile.windows import Kinds


def is_constant(window):
    """Whether a window's range is at most 2^-40 of its largest magnitude, or at most 2^-500."""
    return max(window) - min(window) <= max(2.0**-40 * max(abs(x) for x in window), 2.0**-500)


def total(values):
    """Plain sum, in order; Python's own compensates since 3.12."""
    found = 0.0
    for value in values:
        found += value
    return found


def z_normalize(window):
    """Zero mean and unit population deviation: from the first point on, in the order of time."""
    window = [x - window[0] for x in window]
    mean = total(window) / len(window)
    deviation = math.sqrt(total((x - mean) * (x - mean) for x in window) / len(window))
    return [(x - mean) * (1 / deviation) for x in window]


def window_distance(a, b, *, normalize=True):
    """Distance of two windows: infinite with NaN or inf, sqrt(l) for one constant window."""
    a, b = [float(x) for x in a], [float(x) for x in b]
    if not all(map(math.isfinite, a + b)):
        return math.inf
    constant = is_constant(a), is_constant(b)
    if normalize:
        if all(constant):
            return 0.0
        if any(constant):
            return math.sqrt(len(a))
        a, b = z_normalize(a), z_normalize(b)
    return math.sqrt(total((x - y) * (x - y) for x, y in zip(a, b, strict=True)))


def compared(windows, length, *, normalize=True):
    """Points of windows as they are compared, which windows are constant, and which finite."""
    points = np.zeros((len(windows), length))
    constant, finite = np.zeros((2, len(windows)), bool)
    for i, window in enumerate(windows):
        window = [float(x) for x in window]
        finite[i] = all(map(math.isfinite, window))
        constant[i] = finite[i] and is_constant(window)
        if finite[i] and not (normalize and constant[i]):
            points[i] = z_normalize(window) if normalize else window
    return points, constant, finite


def window_distances(a, positions, b, length, *, normalize=True):
    """Distances of windows of `a` at positions to all windows of `b`, by `window_distance`.

    Windows are normalised once, and the squares of all pairs added point by point: the same sums.
    """
    rows = [a[i : i + length] for i in positions]
    columns = [b[j : j + length] for j in range(len(b) - length + 1)]
    x, flat_x, finite_x = compared(rows, length, normalize=normalize)
    y, flat_y, finite_y = compared(columns, length, normalize=normalize)
    squares = np.zeros((len(rows), len(columns)))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(length):
            difference = x[:, np.newaxis, k] - y[:, k]
            squares += difference * difference
    distances = np.sqrt(squares)
    if normalize:
        distances[flat_x[:, np.newaxis] != flat_y] = math.sqrt(length)
        distances[flat_x[:, np.newaxis] & flat_y] = 0.0
    distances[~(finite_x[:, np.newaxis] & finite_y)] = np.inf
    return distances


def exact_distances(a, b, length, *, normalize=True):
    """Distances of all windows of two lines in extended precision, and the size of what is lost.

    The second number is that of which float64 may lose a few units a point: the norms of the two
    windows as they are compared.
    """
    type_ = np.longdouble

    def prepare(points):
        windows = np.lib.stride_tricks.sliding_window_view(points, length)
        finite = np.isfinite(windows).all(axis=1)
        windows = np.where(finite[:, None], windows, 0.0).astype(type_)
        if not normalize:
            return windows, np.zeros(len(windows), bool), finite
        spread = windows.max(axis=1) - windows.min(axis=1)
        largest = np.abs(windows).max(axis=1)
        constant = spread <= np.maximum(type_(2) ** -40 * largest, type_(2) ** -500)
        windows = windows - windows.mean(axis=1, keepdims=True)
        deviation = np.sqrt((windows * windows).mean(axis=1, keepdims=True))
        windows = windows / np.where(constant[:, None], 1, deviation)
        return np.where(constant[:, None], 0, windows), constant, finite

    (x, flat_x, finite_x), (y, flat_y, finite_y) = prepare(a), prepare(b)
    distances = np.sqrt(((x[:, None] - y[None]) ** 2).sum(axis=2))
    distances[flat_x[:, None] != flat_y] = np.sqrt(type_(length))
    distances[flat_x[:, None] & flat_y] = 0
    distances[~(finite_x[:, None] & finite_y)] = np.inf
    norm_x, norm_y = (np.sqrt((one * one).sum(axis=1)) for one in (x, y))
    return distances, norm_x[:, None] + norm_y


def nearest_windows(distances, admissible, k):
    """For each row the k nearest admissible windows by (value, index); inf and -1 for none."""
    values = np.full((len(distances), k), np.inf)
    indices = np.full((len(distances), k), -1)
    for i, row in enumerate(distances):
        found = sorted(
            (value, j) for j, value in enumerate(row) if admissible(i, j) and value < math.inf
        )[:k]
        for rank, (value, j) in enumerate(found):
            values[i, rank], indices[i, rank] = value, j
    return values, indices


def join(reduction, *, sides=None):
    """Nearest windows of a `skts.engines.Join`: of all; with sides of earlier, later ones."""
    a, b, length = reduction.a.points, reduction.other.points, reduction.length
    distances = window_distances(
        a, range(len(a) - length + 1), b, length, normalize=reduction.normalize
    )
    if reduction.excluded is not None:
        distances[reduction.excluded] = np.inf
        if reduction.within:
            distances[:, reduction.excluded] = np.inf

    def admissible(i, j):
        return not reduction.within or (
            abs(i - j) > reduction.exclusion and max(i, j) >= reduction.since
        )

    k = reduction.n_neighbors
    both = nearest_windows(distances, admissible, k)
    if not (reduction.sides if sides is None else sides):
        return both, None, None
    return (
        both,
        nearest_windows(distances, lambda i, j: admissible(i, j) and j < i, k),
        nearest_windows(distances, lambda i, j: admissible(i, j) and j > i, k),
    )


class JoinOracle:
    """Plain loops for the reductions on windows."""

    def window_kinds(self, reduction, tile, cancel):
        points, length = reduction.series.points, reduction.length
        pieces = [points[i : i + length] for i in range(len(points) - length + 1)]
        finite = np.array([bool(np.isfinite(piece).all()) for piece in pieces])
        flat = [f and is_constant(piece) for f, piece in zip(finite, pieces, strict=True)]
        return Kinds(np.array(flat), finite)

    def window_distances(self, reduction, tile, cancel):
        found = window_distances(
            reduction.queries.points,
            reduction.positions[tile.rows],
            reduction.series.points,
            reduction.length,
            normalize=reduction.normalize,
        )
        return found[:, tile.cols]

    def join(self, reduction, tile, cancel):
        return part_of_join(reduction, tile, *join(reduction, sides=True))


def part_of_join(reduction, tile, both, left, right):
    """Answer of a tile: neighbours on both sides, on the left and on the right of all windows."""
    if not reduction.within:
        return JoinPart(Nearest(*(part[tile.rows] for part in both)), None)
    return JoinPart(
        Nearest(*_inside(right, tile.rows, tile.cols)),
        Nearest(*_inside(left, tile.cols, tile.rows)),
    )


def _inside(found, windows, others):
    """Neighbours of some windows, without those outside of a run."""
    distances, indices = (part[windows] for part in found)
    inside = (indices >= others.start) & (indices < others.stop)
    return np.where(inside, distances, np.inf), np.where(inside, indices, -1)
