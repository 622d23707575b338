"""The elastic family in plain loops, from the definitions of the papers; for `reference`."""

from __future__ import annotations

import math

import numpy as np

INF = math.inf


def radius_of(window, n, m):
    """Half width of the band; without a window that of the whole matrix."""
    if window is None:
        return n + m
    if isinstance(window, float):
        window = math.ceil(window * max(n, m) - 1e-9)
    return max(window, abs(n - m))


def apart(p, q):
    """Sum of absolute differences over channels."""
    return sum(abs(float(a) - float(b)) for a, b in zip(p, q, strict=True))


def fill(n, m, radius, border_x, border_y, cell):
    """The matrix D(0..n, 0..m), whose cell (0, 0) is 0; cells outside of the band are infinite."""
    D = np.full((n + 1, m + 1), INF)
    D[0, 0] = 0.0
    for i in range(1, n + 1):
        if i <= radius:
            D[i, 0] = border_x(i, D)
    for j in range(1, m + 1):
        if j <= radius:
            D[0, j] = border_y(j, D)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if abs(i - j) <= radius:
                D[i, j] = cell(i, j, D)
    return D


def nowhere(k, D):
    return INF


def erp(x, y, *, window=None, gap=0.0):
    """Chen, Ng 2004, definition 4."""
    n, m = x.shape[1], y.shape[1]
    g = np.full(len(x), gap)
    x_gap = [apart(x[:, i], g) for i in range(n)]
    y_gap = [apart(y[:, j], g) for j in range(m)]
    D = fill(
        n, m, radius_of(window, n, m),
        lambda i, D: D[i - 1, 0] + x_gap[i - 1],
        lambda j, D: D[0, j - 1] + y_gap[j - 1],
        lambda i, j, D: min(
            D[i - 1, j - 1] + apart(x[:, i - 1], y[:, j - 1]),
            D[i - 1, j] + x_gap[i - 1],
            D[i, j - 1] + y_gap[j - 1],
        ),
    )  # fmt: skip
    return D[n, m]


def alike(p, q, epsilon):
    return all(abs(float(a) - float(b)) <= epsilon for a, b in zip(p, q, strict=True))


def lcss(x, y, *, window=None, epsilon=1.0):
    """Vlachos et al. 2002, definition 1: matched points are at most the radius apart."""
    n, m = x.shape[1], y.shape[1]
    radius = radius_of(window, n, m)
    longest = np.zeros((n + 1, m + 1), int)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if abs(i - j) <= radius and alike(x[:, i - 1], y[:, j - 1], epsilon):
                longest[i, j] = longest[i - 1, j - 1] + 1
            else:
                longest[i, j] = max(longest[i - 1, j], longest[i, j - 1])
    return 1 - longest[n, m] / min(n, m)


def edr(x, y, *, window=None, epsilon=None):
    """Chen et al. 2005, definition 2, divided by the longer length."""
    n, m = x.shape[1], y.shape[1]
    if epsilon is None:
        epsilon = max(np.std(x), np.std(y)) / 4
    D = fill(
        n, m, radius_of(window, n, m), lambda i, D: i, lambda j, D: j,
        lambda i, j, D: min(
            D[i - 1, j - 1] + (0 if alike(x[:, i - 1], y[:, j - 1], epsilon) else 1),
            D[i - 1, j] + 1,
            D[i, j - 1] + 1,
        ),
    )  # fmt: skip
    return D[n, m] / max(n, m)


def msm(x, y, *, window=None, penalty=1.0):
    """Stefan et al. 2013, section 3; of several channels the sum."""
    if len(x) > 1:
        pairs = zip(x, y, strict=True)
        return sum(msm(a[None], b[None], window=window, penalty=penalty) for a, b in pairs)
    n, m = x.shape[1], y.shape[1]
    radius = radius_of(window, n, m)
    a, b = [float(v) for v in x[0]], [float(v) for v in y[0]]

    def split(new, own, other):
        if own <= new <= other or own >= new >= other:
            return penalty
        return penalty + min(abs(new - own), abs(new - other))

    D = np.full((n, m), INF)
    for i in range(n):
        for j in range(m):
            if abs(i - j) > radius:
                continue
            ways = [abs(a[i] - b[j]) + (D[i - 1, j - 1] if i and j else 0 if i == j else INF)]
            if i:
                ways.append(D[i - 1, j] + split(a[i], a[i - 1], b[j]))
            if j:
                ways.append(D[i, j - 1] + split(b[j], b[j - 1], a[i]))
            D[i, j] = min(ways)
    return D[-1, -1]


def twe(x, y, *, window=None, nu=0.001, lmbda=1.0):
    """Marteau 2009, equation 10 and the listing of the appendix, times 1, 2, 3, ..."""
    n, m = x.shape[1], y.shape[1]
    nothing = np.zeros((len(x), 1))
    x, y = np.hstack([nothing, x]), np.hstack([nothing, y])
    D = fill(
        n, m, radius_of(window, n, m), nowhere, nowhere,
        lambda i, j, D: min(
            D[i - 1, j] + apart(x[:, i], x[:, i - 1]) + nu + lmbda,
            D[i, j - 1] + apart(y[:, j], y[:, j - 1]) + nu + lmbda,
            D[i - 1, j - 1]
            + apart(x[:, i], y[:, j])
            + apart(x[:, i - 1], y[:, j - 1])
            + nu * (abs(i - j) + abs((i - 1) - (j - 1))),
        ),
    )  # fmt: skip
    return D[n, m]


def price(p, q, cost):
    if cost == "absolute":
        return apart(p, q)
    return sum((float(a) - float(b)) ** 2 for a, b in zip(p, q, strict=True))


def root(total, cost):
    return math.sqrt(total) if cost == "squared" else total


def wdtw(x, y, *, window=None, cost="squared", g=0.05):
    """Jeong et al. 2011, equations 3 and 5, with w_max = 1."""
    n, m = x.shape[1], y.shape[1]

    def weight(k):
        return 1 / (1 + math.exp(-g * (k - max(n, m) / 2)))

    D = fill(
        n, m, radius_of(window, n, m), nowhere, nowhere,
        lambda i, j, D: weight(abs(i - j)) * price(x[:, i - 1], y[:, j - 1], cost)
        + min(D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]),
    )  # fmt: skip
    return root(D[n, m], cost)


def adtw(x, y, *, window=None, cost="squared", penalty=1.0):
    """Herrmann, Webb 2023, equation 3."""
    n, m = x.shape[1], y.shape[1]
    D = fill(
        n, m, radius_of(window, n, m), nowhere, nowhere,
        lambda i, j, D: price(x[:, i - 1], y[:, j - 1], cost)
        + min(D[i - 1, j - 1], D[i - 1, j] + penalty, D[i, j - 1] + penalty),
    )  # fmt: skip
    return root(D[n, m], cost)


def dtw(x, y, *, window=None, cost="squared"):
    n, m = x.shape[1], y.shape[1]
    D = fill(
        n, m, radius_of(window, n, m), nowhere, nowhere,
        lambda i, j, D: price(x[:, i - 1], y[:, j - 1], cost)
        + min(D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]),
    )  # fmt: skip
    return root(D[n, m], cost)


def derivative(x):
    """Keogh, Pazzani 2001, section 3: the estimate of the derivative, without the ends."""
    n = x.shape[1]
    return np.array(
        [[((q[i] - q[i - 1]) + (q[i + 1] - q[i - 1]) / 2) / 2 for i in range(1, n - 1)] for q in x]
    )


def ddtw(x, y, *, window=None, cost="squared"):
    return dtw(derivative(x), derivative(y), window=window, cost=cost)


def shape_dtw(x, y, *, window=None, cost="squared", reach=15):
    """Zhao, Itti 2018, algorithm 1: the path between raw subsequences, priced at the points."""
    path = shape_path(x, y, window=window, cost=cost, reach=reach)
    return root(sum(price(x[:, i], y[:, j], cost) for i, j in path), cost)


def shape_path(x, y, *, window=None, cost="squared", reach=15):
    """The best path between raw subsequences.

    Of equal steps back the diagonal, then that in the series that is shorter, or less where the two
    first differ.
    """
    n, m = x.shape[1], y.shape[1]
    if (n, *x.ravel().tolist()) > (m, *y.ravel().tolist()):
        path = shape_path(y, x, window=window, cost=cost, reach=reach)
        return [(i, j) for j, i in path]
    radius = radius_of(window, n, m)

    def around(q, i):
        return [
            float(q[c, min(max(i + k, 0), q.shape[1] - 1)])
            for c in range(len(q))
            for k in range(-reach, reach + 1)
        ]

    p, q = ([around(side, i) for i in range(side.shape[1])] for side in (x, y))
    D = fill(
        n, m, radius, nowhere, nowhere,
        lambda i, j, D: price(p[i - 1], q[j - 1], cost)
        + min(D[i - 1, j - 1], D[i - 1, j], D[i, j - 1]),
    )  # fmt: skip
    i, j, path = n, m, []
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        i, j = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda step: D[step])
    return path[::-1]


DISTANCES = {one.__name__: one for one in (erp, lcss, edr, msm, twe, wdtw, adtw, ddtw, shape_dtw)}


def distance(metric, x, y, **options):
    """Distance of two series, (n_timepoints,) or (n_channels, n_timepoints)."""
    x, y = np.atleast_2d(np.asarray(x, float)), np.atleast_2d(np.asarray(y, float))
    return DISTANCES[metric](x, y, **options)
