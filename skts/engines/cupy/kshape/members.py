"""The members of clusters on the GPU: a counting sort of the series by label."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import SORTED_SERIES
from ..loading import blocks_for, load_kernel
from ..transfers import near

__all__ = ["Members", "chunk_rows", "sort"]

THREADS = 256
#: Members of a chunk: at least so many, and more where there would be too many chunks.
CHUNK = 16
CHUNKS = 2048


class Members(NamedTuple):
    """Series by cluster.

    Attributes
    ----------
    order : cupy.ndarray of int32
        Series, cluster by cluster, ascending within each.
    starts : cupy.ndarray of int64
        Where each cluster starts in `order`, and the end.
    shifts : cupy.ndarray of int32
        Shift of each series, in their own order.
    chunk_starts : cupy.ndarray of int32
        The first chunk of members of each cluster, and their number.
    active : cupy.ndarray of uint8
        Clusters that are worked on.
    weights : cupy.ndarray of float64 or None
        How often each series counts, in their own order; None where once.
    """

    order: cp.ndarray
    starts: cp.ndarray
    shifts: cp.ndarray
    chunk_starts: cp.ndarray
    active: cp.ndarray
    weights: cp.ndarray | None


def sort(
    labels: cp.ndarray,
    shifts: cp.ndarray,
    weights: np.ndarray | None,
    n_clusters: int,
    wanted: slice,
) -> Members:
    """Sort series by label (counts of blocks, running sums, places), and describe some clusters."""
    n_series = labels.size
    blocks = blocks_for(n_series, SORTED_SERIES)
    counts = cp.empty((n_clusters, blocks), np.int32)
    load_kernel("kshape/labels.cu", "count")(
        blocks, THREADS, labels=labels, n_series=n_series, n_clusters=n_clusters, counts=counts
    )
    (each,) = near(counts)
    ends = cp.asarray(np.cumsum(each, dtype=np.int64))
    order = cp.empty(n_series, np.int32)
    load_kernel("kshape/labels.cu", "scatter")(
        blocks, THREADS, labels=labels, n_series=n_series, counts=counts, ends=ends, order=order
    )
    n_wanted = wanted.stop - wanted.start
    starts = cp.empty(n_wanted + 1, np.int64)
    chunk_starts = cp.empty(n_wanted + 1, np.int32)
    active = cp.empty(n_wanted, np.uint8)
    load_kernel("kshape/labels.cu", "bounds")(
        1,
        THREADS,
        ends=ends,
        blocks=blocks,
        first=wanted.start,
        n_clusters=n_wanted,
        chunk=chunk_rows(n_series),
        starts=starts,
        chunk_starts=chunk_starts,
        active=active,
    )
    on_device = None if weights is None else cp.asarray(weights)
    return Members(order, starts, shifts, chunk_starts, active, on_device)


def chunk_rows(n_series: int) -> int:
    """Members of a chunk, by the number of all series alone."""
    return max(CHUNK, -(-n_series // CHUNKS))
