"""The oracle of subsequence search: every window, from the definition."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np

from skts.engines.families.search.subsequence import TileMatches


def total(numbers):
    """Add one after the other; from Python 3.12 on `sum` adds more precisely."""
    found = 0.0
    for number in numbers:
        found += number
    return found


def normalized(points):
    """z-normalise by the window's own mean and population deviation; constant gives zeros.

    Each channel by itself.
    """
    if np.ndim(points) == 2:
        return np.array([normalized(channel) for channel in points])
    low, high = min(points), max(points)
    if high - low <= max(2.0**-40 * max(abs(low), abs(high)), 2.0**-500):
        return np.zeros(len(points))
    points = [float(point) - float(points[0]) for point in points]
    mean = total(points) / len(points)
    squares = total((point - mean) * (point - mean) for point in points)
    deviation = math.sqrt(squares / len(points))
    return np.array([(point - mean) * (1 / deviation) for point in points])


def window_distance(query, points, *, normalize=True, **warping):
    """Distance of a query and one window; infinite where the window is not finite."""
    from reference import dtw

    if not np.all(np.isfinite(points)):
        return math.inf
    if normalize:
        query, points = normalized(query), normalized(points)
    return dtw(query, points, **warping)


def all_distances(query, series, **options):
    """List (distance, series, start) of all finite windows, best first."""
    found = []
    for number, points in enumerate(series):
        length = np.shape(query)[-1]
        for start in range(np.shape(points)[-1] - length + 1):
            d = window_distance(query, points[..., start : start + length], **options)
            if d < math.inf:
                found.append((d, number, start))
    return sorted(found)


def nearest_windows(query, series, n_neighbors, exclusion=None, **options):
    """Take the best match whose start is far enough from all taken before, again and again."""
    exclusion = math.ceil(np.shape(query)[-1] / 4) if exclusion is None else exclusion
    taken = []
    for match in all_distances(query, series, **options):
        near = [m for m in taken if m[1] == match[1] and abs(m[2] - match[2]) <= exclusion]
        if not near and len(taken) < n_neighbors:
            taken.append(match)
    return taken


class SubsequenceOracle:
    """Method of the oracle engine for subsequence search."""

    def subsequence_neighbors(self, reduction, tile, cancel):
        results = []
        for query in reduction.queries[tile.rows]:
            piece = reduction.series.piece(tile.col, tile.col_stop + query.shape[-1] - 1)
            options = {"normalize": reduction.normalize, **asdict(reduction.warping)}
            found = all_distances(query, [piece], **options)
            found = [match for match in found if match[0] <= reduction.radius]
            positions = np.array([start for _, _, start in found], np.int64)
            results.append(TileMatches(positions, np.array([d for d, _, _ in found])))
        return results
