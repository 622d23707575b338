"""The oracle of shapelets: every candidate measured, in plain loops."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from skts.engines import Matches
from skts.engines.families.shapelets.search import Survivors


@cache
def normalized(window):
    """A window less its mean over its deviation, from its first point on; None where constant."""
    low, high = min(window), max(window)
    if high - low <= max(2.0**-40 * max(abs(low), abs(high)), 2.0**-500):
        return None
    # not by `sum`, which newer versions of Python make up for roundings
    window = [x - window[0] for x in window]
    total = squares = 0.0
    for x in window:
        total += x
    mean = total / len(window)
    for x in window:
        squares += (x - mean) * (x - mean)
    deviation = math.sqrt(squares / len(window))
    return tuple((x - mean) * (1.0 / deviation) for x in window)


def window_distance(x, y, normalize=True):
    """Norm of the difference of two windows."""
    if not all(math.isfinite(v) for v in [*x, *y]):
        return math.inf
    if normalize:
        a, b = normalized(x), normalized(y)
        if a is None or b is None:
            return 0.0 if a is None and b is None else math.sqrt(len(x))
        x, y = a, b
        unit = 1.0
    else:
        # squares of what is tiny or huge are no numbers
        largest = max(abs(v - w) for v, w in zip(x, y, strict=True))
        unit = math.ldexp(1.0, math.frexp(largest)[1])
    total = 0.0
    for v, w in zip(x, y, strict=True):
        total += ((v - w) / unit) * ((v - w) / unit)
    return math.sqrt(total) * unit


@cache
def best_match(query, points, normalize=True):
    """Distance and start of the best match, the first of equals; both are tuples."""
    best = math.inf, -1
    for start in range(len(points) - len(query) + 1):
        distance = window_distance(query, points[start : start + len(query)], normalize)
        if distance < best[0]:
            best = distance, start
    return best


class ShapeletOracle:
    """Shapelets in plain loops behind the contract of engines."""

    def subsequence_matches(self, reduction, tile, cancel):
        found = Matches(np.empty(tile.shape), np.empty(tile.shape, np.int64))
        for row, query in enumerate(range(tile.row, tile.row_stop)):
            channel = 0 if reduction.channels is None else reduction.channels[query]
            for col, b in enumerate(range(tile.col, tile.col_stop)):
                points = reduction.series.values[b, channel, : reduction.series.lengths[b]]
                found.distances[row, col], found.starts[row, col] = best_match(
                    tuple(reduction.queries[query].tolist()),
                    tuple(points.tolist()),
                    reduction.normalize,
                )
        return found

    def shapelet_search(self, reduction, tile, cancel):
        """Every candidate survives: all of them are then measured."""
        where = []
        for length in reduction.lengths[tile.rows]:
            for block in range(tile.col, tile.col_stop):
                first = (reduction.blocks[0] + block) * reduction.block
                for row in range(first, min(first + reduction.block, len(reduction.members))):
                    size = reduction.series.lengths[reduction.members[row]]
                    for start in range(size - length + 1):
                        for channel in range(reduction.series.n_channels):
                            for way in range(len(reduction.ways)):
                                where.append((length, row, start, channel, way))
        n = len(where)
        gain = np.full(n, np.iinfo(np.int64).max)
        return Survivors(gain, np.full(n, np.inf), np.array(where, np.int64).reshape(n, 5))
