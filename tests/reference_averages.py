"""The oracle of averages under warping: plain loops along single paths."""

from __future__ import annotations

import math

import numpy as np

from skts.engines import MatchedSums, SoftSlope


def matched_points(path, n):
    """For each of the n points of an average the points of the series, in order of time."""
    matched = [[] for _ in range(n)]
    for i, j in path:
        matched[i].append(j)
    return matched


def alignment_sums(series, averages, labels, weights, path_of, rows):
    """Sums of matched points and of weights, by cells of so many series; distances."""
    values = np.zeros((-(-len(series) // rows), len(averages), *averages.values.shape[1:]))
    totals = np.zeros((len(values), len(averages), averages.n_timepoints))
    distances = np.empty(len(series))
    for place, (label, weight) in enumerate(zip(labels, weights, strict=True)):
        x = averages.values[label, :, : averages.lengths[label]]
        y = series.values[place, :, : series.lengths[place]]
        path, distances[place] = path_of(x, y)
        for i, matched in enumerate(matched_points(path, x.shape[1])):
            totals[place // rows, label, i] += weight * len(matched)
            for c in range(len(y)):
                total = y[c, matched[0]]
                for j in matched[1:]:
                    total += y[c, j]
                values[place // rows, label, c, i] += weight * total
    return values, totals, distances


def squared_table(x, y, radius):
    """Accumulated squared costs of two series (n_channels, n_timepoints)."""
    n, m = x.shape[1], y.shape[1]
    D = np.full((n + 1, m + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            if abs(i - j) <= radius:
                here = sum((x[c, i] - y[c, j]) ** 2 for c in range(len(x)))
                D[i + 1, j + 1] = here + min(D[i, j], D[i, j + 1], D[i + 1, j])
    return D[1:, 1:]


class AveragesOracle:
    """Methods of the oracle for averages."""

    def alignment_sums_lacks(self, reduction):
        return self.dtw_matrix_lacks(reduction)

    def alignment_sums(self, reduction, tile, cancel):
        import reference

        warping = reduction.warping
        options = {"metric": warping.metric, "cost": warping.cost, "window": warping.window}
        labels, weights = reduction.labels[tile.rows], reduction.weights[tile.rows]
        tables = []

        def path_of(x, y):
            radius = reference.band_radius(warping.window, x.shape[1], y.shape[1])
            own = {**options, "radius": radius}
            del own["window"]
            tables.append(reference.accumulate(x, y, **own)[-1, -1])
            return reference.dtw_path(x, y, **options)

        values, totals, _ = alignment_sums(
            reduction.series.take(tile.rows), reduction.averages, labels, weights, path_of,
            reduction.cell[0],
        )  # fmt: skip
        return MatchedSums(values, totals, np.array(tables))

    def soft_dtw_matrix(self, reduction, tile, cancel):
        window = reduction.warping.window
        rows, cols = (each(side) for side in (reduction.rows, reduction.cols))
        return np.array([
            [soft_dtw(x, y, reduction.gamma, window)[0] for y in cols[tile.cols]]
            for x in rows[tile.rows]
        ])  # fmt: skip

    def soft_dtw_gradient(self, reduction, tile, cancel):
        rows, (average,) = reduction.cell[0], each(reduction.average)
        series, weights = each(reduction.series)[tile.rows], reduction.weights[tile.rows]
        gradients = np.zeros((-(-len(series) // rows), *average.shape))
        values = np.empty(len(series))
        for place, y in enumerate(series):
            window = reduction.warping.window
            values[place], slope = soft_dtw(average, y, reduction.gamma, window)
            gradients[place // rows] += weights[place] * slope
        return SoftSlope(gradients, values)


def each(series):
    """Series one by one, without padding."""
    return [x[:, :n] for x, n in zip(series.values, series.lengths, strict=True)]


def band(window, n, m):
    """Half width of the band."""
    import reference

    radius = reference.band_radius(window, n, m)
    return n + m if radius is None else radius


def cost(x, y, window=None):
    """Accumulated squared costs of the best path of two series (n_channels, n_timepoints)."""
    return squared_table(x, y, band(window, x.shape[1], y.shape[1]))[-1, -1]


def inertia(X, centers, labels, window=None):
    """Sum of squared distances."""
    return sum(cost(centers[k], x, window) for x, k in zip(X, labels, strict=True))


def nearest(X, centers, window=None):
    """The first of the nearest centres of each series."""
    return np.array([
        int(np.argmin([np.sqrt(cost(center, x, window)) for center in centers])) for x in X
    ])  # fmt: skip


def updated(X, centers, labels, window=None, weights=None):
    """Each centre from the means of the points that paths of its members match."""
    import reference

    moved = []
    for k, center in enumerate(centers):
        total, count = np.zeros(center.shape), np.zeros(center.shape[1])
        for place, x in enumerate(X):
            if labels[place] != k:
                continue
            weight = 1.0 if weights is None else weights[place]
            path, _ = reference.dtw_path(center, x, window=window)
            for i, j in path:
                total[:, i] += weight * x[:, j]
                count[i] += weight
        moved.append(total / count)
    return moved


def updated_by_batch(X, centers, weights, labels, window=None):
    """Centres and the weights of their points, after the points that a batch matches with them."""
    import reference

    moved, added = [], []
    for k, center in enumerate(centers):
        total, count = center * weights[k], weights[k].copy()
        for x, label in zip(X, labels, strict=True):
            if label == k:
                for i, j in reference.dtw_path(center, x, window=window)[0]:
                    total[:, i] += x[:, j]
                    count[i] += 1
        moved.append(total / np.maximum(count, 1) if count.any() else center)
        added.append(count)
    return moved, added


def subgradient_step(X, average, rows, rate, weights, window=None):
    """The average after a step along the subgradients of some series (n_channels, n_timepoints)."""
    import reference

    slope, counts = np.zeros_like(average), np.zeros(average.shape[1])
    for row in rows:
        path, _ = reference.dtw_path(average, X[row], window=window)
        for i, j in path:
            slope[:, i] += 2 * weights[row] * (average[:, i] - X[row][:, j])
            counts[i] += weights[row]
    # no further than to the mean of the points
    return average - np.minimum(rate, 1 / (2 * counts)) * slope


def soft_dtw(x, y, gamma, window=None):
    """Soft-DTW of two series (n_channels, n_timepoints), and its derivatives by the points of x.

    Algorithms 1 and 2 of Cuturi and Blondel (2017): R forwards, E backwards.
    """
    n, m = x.shape[1], y.shape[1]
    radius = band(window, n, m)
    cost = np.array([[sum((x[:, i] - y[:, j]) ** 2) for j in range(m)] for i in range(n)])
    R = np.full((n + 2, m + 2), np.inf)
    R[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if abs(i - j) <= radius:
                before = [R[i - 1, j - 1], R[i - 1, j], R[i, j - 1]]
                least = min(before)
                total = sum(math.exp((least - one) / gamma) for one in before)
                R[i, j] = cost[i - 1, j - 1] + least - gamma * math.log(total)
    E = np.zeros((n + 2, m + 2))
    E[n, m] = 1.0
    gradient = np.zeros(x.shape)
    for i in range(n, 0, -1):
        for j in range(m, 0, -1):
            for a, b in ((i + 1, j), (i, j + 1), (i + 1, j + 1)):
                if a <= n and b <= m and R[a, b] < np.inf and R[i, j] < np.inf:
                    least = R[a, b] - cost[a - 1, b - 1]
                    E[i, j] += E[a, b] * math.exp((least - R[i, j]) / gamma)
            gradient[:, i - 1] += 2 * E[i, j] * (x[:, i - 1] - y[:, j - 1])
    return R[n, m], gradient
