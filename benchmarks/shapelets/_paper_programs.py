"""Programs of the ladder of `paper_shapelets`: compiled loops, and the paper's kernels."""

from pathlib import Path

import numpy as np
from numba import njit

#: The paper's programs on a GPU: its names of them, and those of the kernels.
KERNELS = {"GPU (BL)": "baseline", "GPU (+SM)": "shared", "GPU (+All)": "products"}
#: Threads of a block.
THREADS = 256


@njit(cache=True)
def _gain(distances, labels, counts):
    """The best information gain of an order line."""
    order = np.argsort(distances)
    n, best = labels.size, -1.0
    left = np.zeros(counts.size)
    for k in range(n - 1):
        left[labels[order[k]]] += 1
        if distances[order[k]] >= distances[order[k + 1]]:
            continue
        best = max(best, _split(left, counts, n))
    return best


@njit(cache=True)
def _split(left, counts, n):
    """Information gain of the numbers on the left."""
    total, sides, size = 0.0, 0.0, 0.0
    for c in range(counts.size):
        size += left[c]
    for c in range(counts.size):
        if counts[c] > 0:
            total -= counts[c] / n * np.log(counts[c] / n)
        if left[c] > 0:
            sides -= left[c] / n * np.log(left[c] / size)
        if counts[c] - left[c] > 0:
            sides -= (counts[c] - left[c]) / n * np.log((counts[c] - left[c]) / (n - size))
    return total - sides


@njit(cache=True)
def _bound(distances, known, labels, counts):
    """Upper bound of the gain: each class puts its open distances on the side that is best."""
    order = np.argsort(distances[:known])
    n, n_classes, best = labels.size, counts.size, 0.0
    rest = counts.astype(np.float64)
    for k in range(known):
        rest[labels[k]] -= 1
    left, tried = np.zeros(n_classes), np.zeros(n_classes)
    for k in range(-1, known):
        if k >= 0:
            left[labels[order[k]]] += 1
        for sides in range(1 << n_classes):
            size = 0.0
            for c in range(n_classes):
                tried[c] = left[c] + rest[c] * ((sides >> c) & 1)
                size += tried[c]
            if 0 < size < n:
                best = max(best, _split(tried, counts, n))
    return best


@njit(cache=True)
def _normalized(x):
    """A window of mean 0 and deviation 1; zeros where it is constant."""
    deviation = x.std()
    return (x - x.mean()) / deviation if deviation > 0 else x * 0


@njit(cache=True)
def by_windows(X, labels, counts, lengths):
    """The best gain: every window is normalised and compared."""
    n, width = X.shape
    best = -1.0
    line = np.empty(n)
    for length in lengths:
        for a in range(n):
            for i in range(width - length + 1):
                x = _normalized(X[a, i : i + length])
                for b in range(n):
                    line[b] = np.inf
                    for j in range(width - length + 1):
                        y, total = _normalized(X[b, j : j + length]), 0.0
                        for t in range(length):
                            total += (x[t] - y[t]) ** 2
                            if total >= line[b]:
                                break
                        line[b] = min(line[b], total)
                best = max(best, _gain(line, labels, counts))
    return best


@njit(cache=True)
def by_sums(X, labels, counts, lengths, prune):
    """The best gain: sums of products of a pair of series serve all windows and lengths."""
    n, width = X.shape
    sums, squares = np.zeros((n, width + 1)), np.zeros((n, width + 1))
    for b in range(n):
        sums[b, 1:], squares[b, 1:] = np.cumsum(X[b]), np.cumsum(X[b] ** 2)
    best = -1.0
    products = np.zeros((n, width + 1, width + 1))
    line = np.empty(n)
    for a in range(n):
        for b in range(n):
            for i in range(width):
                for j in range(width):
                    products[b, i + 1, j + 1] = products[b, i, j] + X[a, i] * X[b, j]
        for length in lengths:
            for i in range(width - length + 1):
                mean_a = (sums[a, i + length] - sums[a, i]) / length
                var_a = (squares[a, i + length] - squares[a, i]) / length - mean_a**2
                left = False
                for b in range(n):
                    top = -1.0
                    for j in range(width - length + 1):
                        mean_b = (sums[b, j + length] - sums[b, j]) / length
                        var_b = (squares[b, j + length] - squares[b, j]) / length - mean_b**2
                        product = products[b, i + length, j + length] - products[b, i, j]
                        scale = np.sqrt(max(var_a * var_b, 1e-300))
                        top = max(top, (product / length - mean_a * mean_b) / scale)
                    line[b] = 2 - 2 * top if a != b else 0.0
                    if prune and b % 4 == 3 and b + 1 < n:
                        left = _bound(line, b + 1, labels, counts) <= best
                        if left:
                            break
                if not left:
                    best = max(best, _gain(line, labels, counts))
    return best


class GpuDistances:
    """Distances of all candidates to all series, by one of the paper's programs.

    Parameters
    ----------
    program : str
        One of `KERNELS`.
    """

    def __init__(self, program):
        import cupy

        code = Path(__file__).with_name("paper_shapelets.cu").read_text()
        self.kernel = cupy.RawModule(code=code).get_function(KERNELS[program])

    def __call__(self, X, lengths):
        """Sums of the distances of the candidates of each length and series, by all series.

        Parameters
        ----------
        X : ndarray of shape (n_series, n_timepoints), float64
        lengths : sequence of int

        Returns
        -------
        ndarray of shape (n_lengths, n_series)
        """
        import cupy

        n, width = X.shape
        series, sizes = cupy.asarray(X), cupy.asarray(np.asarray(lengths, np.int32))
        blocks = min(n * len(lengths), 8 * cupy.cuda.Device().attributes["MultiProcessorCount"])
        distances = cupy.empty((blocks, n, width))
        sums = cupy.zeros((len(lengths), n))
        shared = 8 * (8 * width + THREADS)
        if self.kernel.max_dynamic_shared_size_bytes < shared:
            self.kernel.max_dynamic_shared_size_bytes = shared
        self.kernel(
            (blocks,),
            (THREADS,),
            (series, np.int32(n), np.int32(width), sizes, np.int32(len(lengths)), distances, sums),
            shared_mem=shared,
        )
        return cupy.asnumpy(sums)


def sum_of_distances(X, series, length):
    """What a program on a GPU finds for the candidates of a series, by NumPy."""

    def normal(line):
        windows = np.lib.stride_tricks.sliding_window_view(line, length)
        windows = windows - windows.mean(axis=1, keepdims=True)
        squares = (windows**2).sum(axis=1, keepdims=True)
        return windows / np.sqrt(np.where(squares > 1e-9, squares, np.inf))

    own = normal(X[series])
    best = [(own @ normal(line).T).max(axis=1) for line in X]
    return float(sum(np.sqrt(2 * np.maximum(0, 1 - one)).sum() for one in best))
