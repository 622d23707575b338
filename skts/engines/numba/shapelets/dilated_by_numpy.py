"""Distances of dilated shapelets by NumPy, for small work: the bits of `dilated`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.constants import LOST_SQUARES
from ...core.series import Series
from ...families.shapelets.dilated import (
    FEATURES,
    DilatedShapelets,
    DistanceQuantiles,
    ShapeletFeatures,
    normalize_rows,
)
from ...host.small_work import ENTRIES

__all__ = ["features", "quantiles"]


def features(part: ShapeletFeatures, cancel: np.ndarray) -> np.ndarray:
    """Distance, start and count of matches of all shapelets in all series."""
    shapelets, series = part.shapelets, part.series
    found = part.start()
    values = np.empty((3, len(shapelets)))
    for b in range(len(series)):
        if cancel[0]:
            break
        values[:] = np.array([[np.inf], [-1.0], [0.0]])
        for rows, norms in _norms(shapelets, series, b, np.arange(len(shapelets))):
            distances = norms / np.sqrt(shapelets.lengths[rows, np.newaxis])
            values[1, rows] = norms.argmin(axis=1)
            values[0, rows] = distances.min(axis=1)
            near = distances <= part.thresholds[rows, np.newaxis]
            values[2, rows] = np.count_nonzero(near, axis=1)
        found[b] = values[[FEATURES.index(name) for name in part.features]]
    return found


def quantiles(part: DistanceQuantiles, cancel: np.ndarray) -> np.ndarray:
    """An order statistic of the sums of squares of each shapelet in one series."""
    found = np.full(len(part.shapelets), np.inf)
    for b in range(len(part.series)):
        if cancel[0]:
            break
        chosen = np.flatnonzero(part.partners == b)
        for rows, norms in _norms(part.shapelets, part.series, b, chosen, squared=True):
            ranks = part.ranks[rows, np.newaxis]
            found[rows] = np.take_along_axis(np.sort(norms, axis=1), ranks, axis=1)[:, 0]
    return found


def _norms(
    shapelets: DilatedShapelets,
    series: Series,
    b: int,
    chosen: np.ndarray,
    *,
    squared: bool = False,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Norms of differences of some shapelets and all windows of a series; or sums of squares.

    Yields which shapelets, and an array of shape (n_rows, n_windows).
    """
    points, constant = shapelets.prepared
    starts = shapelets.runs
    for first, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        rows = chosen[(chosen >= first) & (chosen < stop)]
        length, step = int(shapelets.lengths[first]), int(shapelets.dilations[first])
        line = series.values[b, shapelets.channels[first], : series.lengths[b]]
        n_windows = len(line) - (length - 1) * step
        if n_windows <= 0 or not rows.size:
            continue
        z = line[np.arange(length)[:, np.newaxis] * step + np.arange(n_windows)]
        flat = np.zeros(n_windows, bool)
        normalized = bool(shapelets.normalized[first])
        if normalized:
            z, flat = normalize_rows(z)
        some = max(1, ENTRIES // n_windows)
        for begin in range(0, len(rows), some):
            now = rows[begin : begin + some]
            queries = points[shapelets.begins[now, np.newaxis] + np.arange(length)].T
            sums = np.zeros((len(now), n_windows))
            for query, row in zip(queries, z, strict=True):
                sums += np.square(query[:, np.newaxis] - row)
            sums[constant[now, np.newaxis] != flat] = length
            sums[constant[now, np.newaxis] & flat] = 0.0
            yield now, sums if squared else _roots(sums, queries, z, normalized)


def _roots(sums: np.ndarray, queries: np.ndarray, z: np.ndarray, normalized: bool) -> np.ndarray:
    """Roots of sums of squares; those of points as they are may have lost bits."""
    norms = np.sqrt(sums)
    if normalized or not (lost := sums < LOST_SQUARES).any():
        return norms
    row, column = np.nonzero(lost)
    differences = np.abs(queries[:, row] - z[:, column])
    unit = np.ldexp(1.0, np.frexp(differences.max(axis=0))[1] - 1)
    total = np.zeros(row.size)
    for each in differences:
        total += np.square(each / unit)
    norms[row, column] = np.sqrt(total) * unit
    return norms
