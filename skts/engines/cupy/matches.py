"""Certified best matches of queries among the windows of series, on the GPU."""

from __future__ import annotations

import cupy as cp
import numpy as np

from .loading import load_kernel

__all__ = ["best_matches"]

#: Queries that a block of `match` takes together.
TOGETHER = 4


def _blocks(count: int, threads: int) -> int:
    return -(-count // threads)


def best_matches(
    source_values: cp.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    channels: np.ndarray,
    rows: np.ndarray,
    values: cp.ndarray,
    sizes: cp.ndarray,
    series: cp.ndarray,
    normalized: bool,
    distances: cp.ndarray,
    starts: cp.ndarray | None,
) -> None:
    """Certified best matches of queries in series.

    Parameters
    ----------
    source_values : cupy.ndarray
        The queries: each has some `lengths` of its points from `begins` on.
    begins, lengths, channels, rows : ndarray of shape (n_queries,), int
        Where queries begin, their points, the channel to look in, and the row of the answer.
    values : cupy.ndarray of shape (n_series, n_channels, n_timepoints)
        The series.
    sizes : cupy.ndarray of shape (n_series,), int32
        Their points.
    series : cupy.ndarray of shape (n_columns,), int32
        Which of them to look in.
    normalized : bool
        Whether windows and queries are z-normalised.
    distances, starts : cupy.ndarray of shape (>= n_queries, n_columns)
        Written; `starts` may be None.
    """
    order = np.lexsort((channels, lengths))
    begins, lengths, channels, rows = (a[order] for a in (begins, lengths, channels, rows))
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(lengths) != 0) | (np.diff(channels) != 0)
    runs = np.flatnonzero(new)
    sizes_of_runs = np.diff(np.append(runs, len(order)))
    # each run of one length and channel in groups
    n_groups = -(-sizes_of_runs // TOGETHER)
    within = np.arange(n_groups.sum()) - np.repeat(np.cumsum(n_groups) - n_groups, n_groups)
    first = np.repeat(runs, n_groups) + TOGETHER * within
    count = np.minimum(TOGETHER, np.repeat(runs + sizes_of_runs, n_groups) - first)
    groups = cp.asarray(np.stack([first, count], axis=1).astype(np.int32))
    ends = np.cumsum(lengths)
    places = cp.asarray(ends - lengths)
    queries, kinds = cp.empty(int(ends[-1])), cp.empty(len(order), np.uint8)
    lengths, channels, rows = (cp.asarray(a, np.int32) for a in (lengths, channels, rows))
    flag = np.int32(normalized)
    load_kernel("matches.cu", "normalize")(
        (_blocks(len(order), 64),),
        (64,),
        (
            *(source_values, cp.asarray(begins), lengths, places, np.int32(len(order)), flag),
            *(queries, kinds),
        ),
    )
    n_channels, width = values.shape[1:]
    for some in range(0, len(first), 65535):
        load_kernel("matches.cu", "match")(
            (series.size, min(65535, len(first) - some)),
            (128,),
            (
                *(values, np.int32(width), np.int32(n_channels), sizes, series),
                *(np.int32(series.size), groups[some:], lengths, channels, places, queries),
                *(kinds, rows, flag, distances, 0 if starts is None else starts),
            ),
        )
