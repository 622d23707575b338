"""The oracle of averages under warping: plain loops along single paths."""

from __future__ import annotations

import math

import numpy as np

from skts.engines import MatchedSums, MovedAverage, SoftSlope


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

    def subgradient_steps(self, reduction, tile, cancel):
        work = reduction
        average, costs = work.average.values[0, :, : work.average.lengths[0]], []
        X = [x[:, :n] for x, n in zip(work.series.values, work.series.lengths, strict=True)]
        for step, rate in enumerate(work.rates):
            rows = work.order[step * work.batch_size : (step + 1) * work.batch_size]
            costs += [cost(average, X[row], work.warping.window) for row in rows]
            average = subgradient_step(X, average, rows, rate, work.weights, work.warping.window)
        return MovedAverage(average[np.newaxis], np.array(costs))

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


def price_of_steps(metric, x, y, i, j, *, gap=0.0, epsilon=1.0, nu=0.001, lmbda=1.0, penalty=1.0,
                   g=0.05):  # fmt: skip
    """Prices of matching points i and j, and of the steps to them in x and in y.

    From the papers that `reference_elastic` names; x, y: (n_channels, n_timepoints).
    """
    n, m = x.shape[1], y.shape[1]

    def apart(p, q):
        return float(np.abs(p - q).sum())

    p, q = x[:, i], y[:, j]
    if metric == "erp":
        return apart(p, q), apart(p, np.full(len(p), gap)), apart(q, np.full(len(q), gap))
    if metric in ("lcss", "edr"):
        alike = bool((np.abs(p - q) <= epsilon).all())
        return (0.0 if alike else 2.0 if metric == "lcss" else 1.0), 1.0, 1.0
    if metric == "msm":

        def split(new, own, other):
            low, high = min(own, other), max(own, other)
            return penalty + max(0.0, low - new, new - high)

        down = split(p[0], x[0, i - 1], q[0]) if i else math.inf
        right = split(q[0], y[0, j - 1], p[0]) if j else math.inf
        return apart(p, q), down, right
    if metric == "twe":
        before = x[:, i - 1] if i else 0 * p, y[:, j - 1] if j else 0 * q
        across = apart(p, q) + apart(*before) + 2 * nu * abs(i - j)
        return across, apart(p, before[0]) + nu + lmbda, apart(q, before[1]) + nu + lmbda
    here = float(((p - q) ** 2).sum())
    if metric == "adtw":
        return here, here + penalty, here + penalty
    if metric == "wdtw":
        here /= 1 + math.exp(-g * (abs(i - j) - max(n, m) / 2))
    return here, here, here


def elastic_path(metric, x, y, window=None, **parameters):
    """The matched points of two series, the average first: diagonal steps before those in x."""
    ends = []
    if metric == "shape_dtw":
        import reference_elastic

        return reference_elastic.shape_path(x, y, window=window, **parameters)
    if metric == "ddtw":
        ends = [(0, 0)], [(x.shape[1] - 1, y.shape[1] - 1)]
        x, y = (
            ((one[:, 1:-1] - one[:, :-2]) + (one[:, 2:] - one[:, :-2]) / 2) / 2 for one in (x, y)
        )
    if metric == "edr" and parameters.get("epsilon") is None:
        parameters["epsilon"] = max(np.std(x), np.std(y)) / 4
    n, m = x.shape[1], y.shape[1]
    radius = 0 if metric == "euclidean" else band(window, n, m)
    borders = metric in ("erp", "lcss", "edr")
    largest = metric == "dog_keeper"
    D = np.full((n + 1, m + 1), math.inf)
    D[0, 0] = 0.0
    for k in range(radius if borders else 0):
        if k < n:
            D[k + 1, 0] = D[k, 0] + price_of_steps(metric, x, y, k, 0, **parameters)[1]
        if k < m:
            D[0, k + 1] = D[0, k] + price_of_steps(metric, x, y, 0, k, **parameters)[2]

    def ways(i, j):
        prices = price_of_steps(metric, x, y, i, j, **parameters)
        before = D[i, j], D[i, j + 1], D[i + 1, j]
        if largest:
            return list(before)
        return [one + price for one, price in zip(before, prices, strict=True)]

    for i in range(n):
        for j in range(max(0, i - radius), min(m, i + radius + 1)):
            D[i + 1, j + 1] = min(ways(i, j))
            if largest:
                here = price_of_steps(metric, x, y, i, j)[0]
                D[i + 1, j + 1] = max(here, D[i + 1, j + 1])
    i, j, path = n - 1, m - 1, []
    while i >= 0 and j >= 0:
        chosen = int(np.argmin(ways(i, j)))
        left_out = borders and chosen
        if metric == "lcss":
            left_out |= price_of_steps(metric, x, y, i, j, **parameters)[0] > 0
        if not left_out:
            path.append((i, j))
        i, j = i - (chosen < 2), j - (chosen != 1)
    path = path[::-1]
    if ends:
        path = [*ends[0], *((i + 1, j + 1) for i, j in path), *ends[1]]
    return path


def elastic_update(metric, X, average, window=None, weights=None, **parameters):
    """The average from the means of what paths match with it; points left out stay."""
    if metric == "msm" and len(average) > 1:
        return np.concatenate([
            elastic_update(metric, [x[c : c + 1] for x in X], average[c : c + 1], window, weights,
                           **parameters)
            for c in range(len(average))
        ])  # fmt: skip
    total, count = np.zeros(average.shape), np.zeros(average.shape[1])
    for place, x in enumerate(X):
        weight = 1.0 if weights is None else weights[place]
        for i, j in elastic_path(metric, average, x, window, **parameters):
            total[:, i] += weight * x[:, j]
            count[i] += weight
    return np.where(count > 0, total / np.where(count > 0, count, 1), average)
