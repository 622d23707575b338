"""The oracle of the elastic family: the definitions of the papers in plain loops, one for all.

Cell (i, j) of `_table` stands for the first i and j points. Nothing of `skts` is imported.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from . import oracle

__all__ = [
    "COUNTED",
    "PARAMETERS",
    "PRICED",
    "ROUNDED",
    "distance",
    "matrix",
    "single_slack",
    "thresholds",
]

#: Parameters of each distance, their defaults, and values to draw.
PARAMETERS: dict[str, dict[str, tuple[Any, tuple[Any, ...]]]] = {
    "dtw": {},
    "dog_keeper": {},
    "frechet": {},
    "euclidean": {},
    "ddtw": {},
    "wdtw": {"g": (0.05, (0.0, 0.05, 0.25, 3.0))},
    "adtw": {"penalty": (1.0, (0.0, 0.5, 1.0, 1e6))},
    "erp": {"gap": (0.0, (0.0, -1.5, 2.0, 1e5))},
    "edr": {"epsilon": (None, (None, 0.0, 0.5, 2.0))},
    "lcss": {"epsilon": (1.0, (0.0, 0.5, 1.0, 2.0))},
    "msm": {"penalty": (1.0, (0.0, 0.5, 1.0, 100.0))},
    "twe": {"nu": (0.001, (0.0, 0.001, 1.0)), "lmbda": (1.0, (0.0, 0.5, 1.0))},
    "shape_dtw": {"reach": (15, (0, 1, 3, 15))},
}
#: Those whose costs may be squared or absolute.
PRICED = ("dtw", "dog_keeper", "frechet", "euclidean", "ddtw", "wdtw", "adtw", "shape_dtw")
#: Those whose distances are rounded even of whole numbers.
ROUNDED = ("wdtw", "twe", "edr")
#: Those that are counts over lengths, whose last bits depend on the formula: 1 - 11 / 17 or 6 / 17.
COUNTED = ("lcss", "edr")
_CODES = {name: code for code, name in enumerate(PARAMETERS)}
_WDTW, _ADTW, _ERP, _EDR, _LCSS, _MSM, _TWE = (
    _CODES[name] for name in ("wdtw", "adtw", "erp", "edr", "lcss", "msm", "twe")
)


@njit(cache=True, nogil=True)
def _apart(x, i, y, j):
    total = 0.0
    for c in range(x.shape[0]):
        total += abs(x[c, i] - y[c, j])
    return total


@njit(cache=True, nogil=True)
def _from(x, i, value):
    total = 0.0
    for c in range(x.shape[0]):
        total += abs(x[c, i] - value)
    return total


@njit(cache=True, nogil=True)
def _alike(x, i, y, j, epsilon):
    found = True
    for c in range(x.shape[0]):
        found = found and abs(x[c, i] - y[c, j]) <= epsilon
    return found


@njit(cache=True, nogil=True)
def _split(new, own, other, penalty):
    if own <= new <= other or own >= new >= other:
        return penalty
    return penalty + min(abs(new - own), abs(new - other))


@njit(cache=True, nogil=True)
def _table(x, y, radius, code, squared, a, b):
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    if code == _LCSS:
        D[:] = 0.0
    for i in range(1, n + 1):
        if i <= radius and code == _ERP:
            D[i, 0] = D[i - 1, 0] + _from(x, i - 1, a)
        if i <= radius and code == _EDR:
            D[i, 0] = i
    for j in range(1, m + 1):
        if j <= radius and code == _ERP:
            D[0, j] = D[0, j - 1] + _from(y, j - 1, a)
        if j <= radius and code == _EDR:
            D[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            inside = abs(i - j) <= radius
            if code == _LCSS:
                if inside and _alike(x, i - 1, y, j - 1, a):
                    D[i, j] = D[i - 1, j - 1] + 1
                else:
                    D[i, j] = max(D[i - 1, j], D[i, j - 1])
                continue
            if not inside:
                continue
            match = _apart(x, i - 1, y, j - 1)
            if squared:
                match = 0.0
                for c in range(x.shape[0]):
                    match += (x[c, i - 1] - y[c, j - 1]) ** 2
            down = right = 0.0
            if code == _WDTW:
                match /= 1 + math.exp(-a * (abs(i - j) - max(n, m) / 2))
                down = right = match
            elif code == _ADTW:
                down = right = match + a
            elif code == _ERP:
                down, right = _from(x, i - 1, a), _from(y, j - 1, a)
            elif code == _EDR:
                match = 0.0 if _alike(x, i - 1, y, j - 1, a) else 1.0
                down = right = 1.0
            elif code == _MSM:
                if i > 1:
                    down = _split(x[0, i - 1], x[0, i - 2], y[0, j - 1], a)
                if j > 1:
                    right = _split(y[0, j - 1], y[0, j - 2], x[0, i - 1], a)
            elif code == _TWE:
                if i > 1 and j > 1:
                    match += _apart(x, i - 2, y, j - 2)
                match += 2 * a * abs(i - j)
                down = a + b + (_apart(x, i - 1, x, i - 2) if i > 1 else _from(x, 0, 0.0))
                right = a + b + (_apart(y, j - 1, y, j - 2) if j > 1 else _from(y, 0, 0.0))
            D[i, j] = min(D[i - 1, j - 1] + match, D[i - 1, j] + down, D[i, j - 1] + right)
    return D[n, m]


@njit(cache=True, nogil=True)
def _between_shapes(x, y, radius, squared, reach):
    """Costs of the windows around all pairs of points, and of the best paths to there."""
    n, m = x.shape[1], y.shape[1]
    D, costs = np.full((n + 1, m + 1), np.inf), np.full((n, m), np.inf)
    D[0, 0] = 0.0
    for i in range(n):
        for j in range(max(0, i - radius), min(m, i + radius + 1)):
            total = 0.0
            for c in range(x.shape[0]):
                for k in range(-reach, reach + 1):
                    p = x[c, min(max(i + k, 0), n - 1)]
                    q = y[c, min(max(j + k, 0), m - 1)]
                    total += (p - q) * (p - q) if squared else abs(p - q)
            costs[i, j] = total
            D[i + 1, j + 1] = total + min(D[i, j], D[i, j + 1], D[i + 1, j])
    return costs, D


@njit(cache=True, nogil=True)
def _forks(costs, D):
    """Whether paths that are as good as the best, but for rounding, come to a cell by two ways."""
    n, m = costs.shape
    limit = D[n, m] * (1 + 1e-9)
    rest = np.full((n + 1, m + 1), np.inf)  # of the best path from a cell on, without the cell
    rest[n - 1, m - 1] = 0.0
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            for a, b in ((i + 1, j + 1), (i + 1, j), (i, j + 1)):
                if a < n and b < m:
                    rest[i, j] = min(rest[i, j], costs[a, b] + rest[a, b])
            ways = 0
            for before in (D[i, j], D[i, j + 1], D[i + 1, j]):
                ways += before + costs[i, j] + rest[i, j] <= limit
            if ways > 1:
                return True
    return False


@njit(cache=True, nogil=True)
def _along_shapes(x, y, radius, squared, reach):
    """Cost of the points along the best path between the windows around them."""
    n, m = x.shape[1], y.shape[1]
    _, D = _between_shapes(x, y, radius, squared, reach)
    i, j, along = n, m, 0.0
    while i > 0 and j > 0:
        for c in range(x.shape[0]):
            difference = x[c, i - 1] - y[c, j - 1]
            along += difference * difference if squared else abs(difference)
        if D[i - 1, j - 1] <= D[i - 1, j] and D[i - 1, j - 1] <= D[i, j - 1]:
            i, j = i - 1, j - 1
        elif D[i - 1, j] <= D[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return along


def _shapes(x: np.ndarray, y: np.ndarray, warp: oracle.Warp, reach: int) -> float:
    """Shape DTW: ties between paths are resolved for the pair in an order of its own."""
    n, m = x.shape[1], y.shape[1]
    if (n, *x.ravel().tolist()) > (m, *y.ravel().tolist()):
        x, y = y, x
    x, y, squared = np.ascontiguousarray(x), np.ascontiguousarray(y), warp.cost == "squared"
    found = _along_shapes(x, y, oracle.band(warp.window, n, m), squared, reach)
    return math.sqrt(found) if squared else found


def _derivative(x: np.ndarray) -> np.ndarray:
    slopes = [
        ((x[:, i] - x[:, i - 1]) + (x[:, i + 1] - x[:, i - 1]) / 2) / 2
        for i in range(1, x.shape[1] - 1)
    ]
    return np.stack(slopes, axis=1)


def distance(x: np.ndarray, y: np.ndarray, warp: oracle.Warp, metric: str, **given: Any) -> float:
    """Distance of two series, of shape (n_channels, n_points), under a distance of any name."""
    if metric == "ddtw":
        return oracle.elastic(_derivative(x), _derivative(y), warp._replace(metric="dtw"))
    if metric in ("dtw", "dog_keeper", "frechet"):
        name = "dtw" if metric == "dtw" else "dog_keeper"
        return oracle.elastic(x, y, warp._replace(metric=name))
    if metric == "shape_dtw":
        return _shapes(x, y, warp, given.get("reach", 15))
    if metric == "euclidean":
        return oracle.elastic(x, y, warp._replace(metric="dtw", window=0))
    if metric == "msm" and len(x) > 1:
        parts = zip(x, y, strict=True)
        return math.fsum(distance(p[None], q[None], warp, metric, **given) for p, q in parts)
    values = [given.get(name, default) for name, (default, _) in PARAMETERS[metric].items()]
    if values == [None]:
        values = [max(np.std(x), np.std(y)) / 4]
    n, m = x.shape[1], y.shape[1]
    squared = metric in PRICED and warp.cost == "squared"
    found = _table(
        *(np.ascontiguousarray(x), np.ascontiguousarray(y), oracle.band(warp.window, n, m)),
        *(_CODES[metric], squared, *map(float, [*values, 0.0][:2])),
    )
    if metric == "lcss":
        return 1 - found / min(n, m)
    if metric == "edr":
        return found / max(n, m)
    return math.sqrt(found) if squared else found


def matrix(X: Any, Y: Any, warp: oracle.Warp, metric: str, **given: Any) -> np.ndarray:
    """Distances of all series of one set to all of another."""
    if metric in ("dtw", "dog_keeper", "frechet"):
        name = "dtw" if metric == "dtw" else "dog_keeper"
        return oracle.dtw_matrix(X, Y, warp._replace(metric=name))
    return np.array([[distance(x, y, warp, metric, **given) for y in Y] for x in X])


def thresholds(metric: str, x: np.ndarray, y: np.ndarray, given: dict, warp: oracle.Warp) -> bool:
    """Whether a rounding may decide: if two points match, or which path between shapes is best."""
    if metric == "shape_dtw":
        sides = [np.ascontiguousarray(one, float) for one in (x, y)]
        if all(
            (one * 64 == np.rint(one * 64)).all() and np.abs(one).max() < 2**15 for one in sides
        ):
            return False  # nothing is rounded
        radius = oracle.band(warp.window, x.shape[1], y.shape[1])
        reach = given.get("reach", PARAMETERS[metric]["reach"][0])
        return bool(_forks(*_between_shapes(*sides, radius, warp.cost == "squared", reach)))
    if metric != "edr" or given.get("epsilon") is not None:
        return False
    epsilon = max(np.std(x), np.std(y)) / 4
    apart = np.abs(x[:, :, None] - y[:, None, :])
    scale = max(np.abs(x).max(), np.abs(y).max())
    return bool((np.abs(apart - epsilon) <= 1e-12 * (epsilon + scale)).any())


def single_slack(
    D: np.ndarray, X: Any, Y: Any, warp: oracle.Warp, metric: str, **given: Any
) -> np.ndarray | None:
    """How far distances without a certificate may be off: as `oracle.single_slack`.

    A price has twice as many differences, of points, of gaps, or from 0. Where points match or do
    not, a distance lies between those where a little more and a little less matches. Distances with
    a number of each series are found in float64.
    """
    if metric == "ddtw":
        X, Y = ([_derivative(x) for x in side] for side in (X, Y))
    if metric in ("ddtw", "dtw", "dog_keeper", "frechet", "euclidean"):
        return oracle.single_slack(D, X, Y, warp)
    parameters = {name: default for name, (default, _) in PARAMETERS[metric].items()} | given
    if metric == "shape_dtw" or parameters.get("epsilon", 0.0) is None:
        return np.zeros(D.shape)
    own = [np.concatenate([x.ravel() for x in side]) for side in (X, Y)]
    more = {"erp": [parameters.get("gap", 0.0)], "twe": [0.0]}.get(metric, [])
    spread = np.ptp(np.concatenate([*own, more]))
    if spread > 2.0**40 * np.ptp([*own[1], *more]):
        return None
    if metric in COUNTED:
        epsilon = parameters["epsilon"]
        near = 8 * oracle.SINGLE * (spread + epsilon)
        ends = [matrix(X, Y, warp, metric, epsilon=epsilon + one) for one in (-near, near)]
        return np.max([np.abs(D - one) for one in ends], axis=0) + 4 * oracle.SINGLE
    steps = 2 * np.add.outer([x.shape[1] for x in X], [y.shape[1] for y in Y]) * len(X[0])
    squared = metric in PRICED and warp.cost == "squared"
    each = np.sqrt(steps) if squared else steps
    return oracle.SINGLE * ((steps + 16) * np.where(np.isfinite(D), D, 0.0) + 4 * each * spread)
