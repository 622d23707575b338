"""Sums of the points that warping paths match."""

from __future__ import annotations

from .kernels import kernel

__all__ = ["add_matched"]


@kernel
def add_matched(values, labels, weights, lengths, first, stop, rows, sums, sum_weights):
    """Add what the paths of some series match to the sums of their cells of the grid.

    values: (n_series, C, m); lengths: of the averages; first, stop: (n_series, n) the first point
    of a series that each point of its average is matched with, and the one after the last, equal
    where it is matched with none; rows: series of a cell; sums: (n_cells, n_averages, C, n);
    sum_weights: (n_cells, n_averages, n).
    """
    for series in range(len(labels)):
        cell, label, weight = series // rows, labels[series], weights[series]
        for i in range(lengths[label]):
            low, high = first[series, i], stop[series, i]
            if low == high:
                continue
            sum_weights[cell, label, i] += weight * (high - low)
            for c in range(values.shape[1]):
                total = values[series, c, low]
                for j in range(low + 1, high):
                    total += values[series, c, j]
                sums[cell, label, c, i] += weight * total
