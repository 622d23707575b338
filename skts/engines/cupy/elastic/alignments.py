"""Best paths of many pairs on the GPU, and sums of the points that they match."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import ELASTIC_THREADS as THREADS
from ...families.elastic.averages import MatchedSums
from ...families.elastic.warping import Warping
from ..loading import load_kernel, multiprocessors
from ..transfers import send
from .alignment_programs import ADD_MATCHED, TRACE, TRACE_WINDOWS, WALK_BACK, path_words
from .cells import any_cell, windows_cell
from .dtw import DeviceSeries, points_by_length

__all__ = ["Paths", "add_matched", "trace"]

_FILE = "elastic/alignments.cu"
#: Warps of a multiprocessor that are busy with pairs: each has an edge of its own.
WARPS = 32


class Paths(NamedTuple):
    """The points of each series that each point of its average is matched with.

    Attributes
    ----------
    first, stop : cupy.ndarray of shape (n_series, stride of the averages), int32
        The first, and the one after the last.
    costs : cupy.ndarray of shape (n_series,)
        Certified accumulated costs.
    """

    first: cp.ndarray
    stop: cp.ndarray
    costs: cp.ndarray


def trace(
    averages: DeviceSeries,
    series: DeviceSeries,
    labels: cp.ndarray,
    warping: Warping,
    cancel: np.ndarray,
    *,
    budget: int,
    width: int = 1,
) -> Paths:
    """Find the best path of each series to its average.

    Parameters
    ----------
    averages, series : DeviceSeries
        Two sets in float64.
    labels : cupy.ndarray of shape (n_series,), int32
        The average of each series.
    warping : Warping
        Options of the distance; whole series are matched.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    budget : int
        Bytes for the steps of the pairs that are under way at a time.
    width : int, default 1
        Points of the windows that are compared in place of points; both sets then have
        ``width - 1`` points more than their lengths say, and window i begins with point i.
    """
    (n_series, n_channels, m), n = series.shape, averages.shape[2]
    words = path_words(m)
    at_a_time = min(n_series, max(1, budget // (8 * n * words)))
    blocks = min(-(-at_a_time * 32 // THREADS), multiprocessors() * WARPS * 32 // THREADS)
    steps = cp.empty(at_a_time * n * words, np.uint64)
    edges = cp.empty(blocks * (THREADS // 32) * m)
    # nothing is matched by pairs that an interrupt leaves out
    first, stop = (cp.zeros((n_series, n), np.int32) for _ in range(2))
    costs = cp.empty(n_series)
    points = points_by_length(warping, max(n, m))
    for begin in range(0, n_series, at_a_time):
        if cancel[0]:
            break
        pairs = {
            "average_lengths": averages.lengths,
            "n_stride": n,
            "lengths": series.lengths,
            "labels": labels,
            "begin": begin,
            "n_pairs": min(at_a_time, n_series - begin),
            "n_words": words,
            "steps": steps,
        }
        load_kernel(_FILE, TRACE_WINDOWS if width > 1 else TRACE)(
            blocks,
            THREADS,
            averages=averages.values,
            values=series.values,
            m_stride=m,
            n_channels=n_channels,
            points=points,
            cell=windows_cell(warping.squared, width) if width > 1 else any_cell(warping),
            edges=edges,
            costs=costs,
            **pairs,
        )
        load_kernel(_FILE, WALK_BACK)(
            -(-pairs["n_pairs"] // THREADS), THREADS, first=first, stop=stop, **pairs
        )
        if at_a_time < n_series:
            # none waits behind these, so that an interrupt ends the work
            cp.cuda.get_current_stream().synchronize()
    return Paths(first, stop, costs)


def add_matched(
    averages: DeviceSeries,
    n: int,
    series: DeviceSeries,
    labels: np.ndarray,
    weights: np.ndarray,
    paths: Paths,
    rows: int,
) -> MatchedSums:
    """Add what the paths match, for each cell of `rows` series and each average by itself.

    Parameters
    ----------
    averages : DeviceSeries
        The averages.
    n : int
        Points of the longest average.
    series : DeviceSeries
        The series.
    labels, weights : ndarray of shape (n_series,)
        The average of each series, and its weight.
    paths : Paths
        What `trace` returns.
    rows : int
        Series of a cell of the grid.
    """
    n_series, n_channels, m = series.shape
    n_averages, n_cells = averages.shape[0], -(-n_series // rows)
    group = np.arange(n_series) // rows * n_averages + labels
    # a stable sort of short integers is a counting sort
    group = group.astype(np.min_scalar_type(n_cells * n_averages))
    order = np.argsort(group, kind="stable").astype(np.int32)
    counts = np.bincount(group, minlength=n_cells * n_averages)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    on_device = send(order, starts, weights)
    sums = cp.empty((n_cells, n_averages, n_channels, n))
    sum_weights = cp.empty((n_cells, n_averages, n))
    load_kernel(_FILE, ADD_MATCHED)(
        (n_cells * n_averages, -(-n_channels * n // THREADS)),
        THREADS,
        values=series.values,
        n_channels=n_channels,
        m_stride=m,
        weights=on_device[2],
        average_lengths=averages.lengths,
        n_averages=n_averages,
        n=n,
        n_stride=averages.shape[2],
        order=on_device[0],
        starts=on_device[1],
        first=paths.first,
        stop=paths.stop,
        sums=sums,
        sum_weights=sum_weights,
    )
    return MatchedSums(sums.get(), sum_weights.get(), paths.costs.get())
