"""The oracle of dilated shapelets: every window measured, in plain loops."""

from __future__ import annotations

import math

import numpy as np
from reference_shapelets import normalized, window_distance

from skts.engines.families.shapelets.best import Bounds


def dilated_norms(values, points, dilation, normalize):
    """Norms of differences of a shapelet and all windows of a series; tuples of numbers."""
    extent = (len(values) - 1) * dilation + 1
    return [
        window_distance(values, points[start : start + extent : dilation], normalize)
        for start in range(len(points) - extent + 1)
    ]


def dilated_distances(values, points, dilation, normalize):
    """Distances of a shapelet to all windows of a series, by their starts."""
    root = math.sqrt(len(values))
    return [norm / root for norm in dilated_norms(values, points, dilation, normalize)]


class DilatedOracle:
    """Methods of the oracle engine for given shapelets."""

    def _norms(self, work, row, column):
        shapelets, series = work.shapelets, work.series
        begin, length = shapelets.begins[row], shapelets.lengths[row]
        values = tuple(shapelets.points[begin : begin + length].tolist())
        points = series.values[column, shapelets.channels[row], : series.lengths[column]]
        normalize = bool(shapelets.normalized[row])
        return dilated_norms(
            values, tuple(points.tolist()), int(shapelets.dilations[row]), normalize
        )

    def shapelet_features(self, reduction, tile, cancel):
        n_rows, n_cols = tile.shape
        found = np.empty((n_cols, len(reduction.features), n_rows))
        for i, row in enumerate(range(tile.row, tile.row_stop)):
            root = math.sqrt(reduction.shapelets.lengths[row])
            for j, column in enumerate(range(tile.col, tile.col_stop)):
                norms = self._norms(reduction, row, column)
                known = {"distance": math.inf, "start": -1, "count": 0}
                if norms:
                    # roots of the length may make equal distances of norms that differ
                    known["distance"] = min(norms) / root
                    known["start"] = norms.index(min(norms))
                for norm in norms:
                    known["count"] += norm / root <= reduction.thresholds[row]
                found[j, :, i] = [known[name] for name in reduction.features]
        return found

    def distance_quantiles(self, reduction, tile, cancel):
        """Sums of squares, for `finish` takes roots: of rank among the windows in their order."""
        found = np.full(tile.shape[0], np.inf)
        for i, row in enumerate(range(tile.row, tile.row_stop)):
            begin, length = reduction.shapelets.begins[row], int(reduction.shapelets.lengths[row])
            dilation = int(reduction.shapelets.dilations[row])
            values = reduction.shapelets.points[begin : begin + length]
            column = reduction.partners[row]
            channel = reduction.shapelets.channels[row]
            points = reduction.series.values[column, channel, : reduction.series.lengths[column]]
            sums = []
            for start in range(len(points) - (length - 1) * dilation):
                window = points[start:][::dilation][:length]
                sums.append(squares(values, window, reduction.shapelets.normalized[row]))
            if sums:
                found[i] = sorted(sums)[reduction.ranks[row]]
        return found


class BestOracle:
    """The oracle engine for the best of all candidates: all are measured and judged."""

    def shapelet_bounds(self, reduction, tile, cancel):
        n_channels = reduction.series.n_channels
        row, _, block, _ = reduction.spans
        gains, gaps = [], []
        for number in range(row + tile.row, row + tile.row_stop):
            kind, channel = reduction.kinds[number // n_channels], number % n_channels
            first, _ = reduction.members(block + tile.col, block + tile.col + 1)
            _, stop = reduction.members(block + tile.col, block + tile.col_stop)
            for b in range(first, stop):
                for start in range(int(reduction.series.lengths[b]) - kind.extent + 1):
                    gain, gap = self._gain(reduction, kind, channel, b, start)
                    gains.append(gain)
                    gaps.append(gap)
        return Bounds(np.array(gains, np.int64), np.array(gaps))

    def _gain(self, reduction, kind, channel, b, start):
        series = reduction.series
        values = series.values[b, channel, start:][: kind.extent : kind.dilation]
        least = []
        for line, size in zip(series.values[:, channel], series.lengths.tolist(), strict=True):
            points = tuple(line[:size].tolist())
            least.append(
                min(
                    dilated_distances(
                        tuple(values.tolist()), points, kind.dilation, kind.normalized
                    )
                )
            )
        cuts = reduction.criterion.best_cuts(np.array([least]), kind.normalized)
        return max(0, int(cuts.gain[0])), -np.inf if cuts.gain[0] < 0 else cuts.gap[0]


def squares(x, y, normalize):
    """Sum of the squared differences of two windows."""
    x, y = tuple(x.tolist()), tuple(y.tolist())
    if normalize:
        x, y, length = normalized(x), normalized(y), len(x)
        if x is None or y is None:
            return 0.0 if x is None and y is None else float(length)
    total = 0.0
    for v, w in zip(x, y, strict=True):
        total += (v - w) * (v - w)
    return total
