"""The members of clusters on the GPU: a counting sort of the series by label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import SORTED_SERIES
from ..loading import blocks_for, load_kernel

__all__ = ["Members", "Sorting", "chunk_rows", "sort"]

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
        Clusters that are worked on: all, at first.
    weights : cupy.ndarray of float64 or None
        How often each series counts, in their own order; None where once.
    """

    order: cp.ndarray
    starts: cp.ndarray
    shifts: cp.ndarray
    chunk_starts: cp.ndarray
    active: cp.ndarray
    weights: cp.ndarray | None


class Sorting:
    """A counting sort of series by label, in memory that serves again and again.

    Parameters
    ----------
    n_series, n_clusters : int
        Numbers of series and clusters.
    wanted : slice
        Clusters to describe.
    weighted : bool
        Whether series count more or less than once.
    given : tuple of two or three cupy.ndarray, or None
        Where labels, shifts and weights will be found; None makes room for what `take` is given.
    """

    def __init__(
        self,
        n_series: int,
        n_clusters: int,
        wanted: slice,
        *,
        weighted: bool,
        given: Sequence[cp.ndarray] | None = None,
    ) -> None:
        blocks = blocks_for(n_series, SORTED_SERIES)
        self.counts = cp.empty((n_clusters, blocks), np.int32)
        if given is None:
            given = [cp.empty(n_series, np.int32) for _ in range(2)]
            given += [cp.empty(n_series)] if weighted else []
            counting: list[Callable[[], None]] = []
        else:
            counting = [self._counting(given[0], given[1], None, None)]
        self.labels, shifts, *weights = given
        order = cp.empty(n_series, np.int32)
        n_wanted = wanted.stop - wanted.start
        self.members = Members(
            order,
            cp.empty(n_wanted + 1, np.int64),
            shifts,
            cp.empty(n_wanted + 1, np.int32),
            cp.empty(n_wanted, np.uint8),
            weights[0] if weighted else None,
        )
        ends = cp.empty((n_clusters, blocks), np.int64)
        #: What follows `take`, or all.
        self.launches = [
            *counting,
            load_kernel("kshape/labels.cu", "bounds").ready(
                1,
                SORTED_SERIES,
                counts=self.counts,
                n_counts=self.counts.size,
                blocks=blocks,
                first=wanted.start,
                n_clusters=n_wanted,
                chunk=chunk_rows(n_series),
                ends=ends,
                starts=self.members.starts,
                chunk_starts=self.members.chunk_starts,
                active=self.members.active,
            ),
            load_kernel("kshape/labels.cu", "scatter").ready(
                blocks,
                SORTED_SERIES,
                labels=self.labels,
                n_series=n_series,
                counts=self.counts,
                ends=ends,
                order=order,
            ),
        ]

    def take(self, labels: cp.ndarray, shifts: cp.ndarray, weights: np.ndarray | None) -> None:
        """Copy what the series have, and count labels."""
        if weights is not None:
            assert self.members.weights is not None
            self.members.weights.set(weights)
        self._counting(labels, shifts, self.labels, self.members.shifts)()

    def _counting(
        self,
        labels: cp.ndarray,
        shifts: cp.ndarray,
        kept_labels: cp.ndarray | None,
        kept_shifts: cp.ndarray | None,
    ) -> Callable[[], None]:
        """The launch of `count`."""
        n_clusters, blocks = self.counts.shape
        return load_kernel("kshape/labels.cu", "count").ready(
            blocks,
            THREADS,
            labels=labels,
            shifts=shifts,
            n_series=labels.size,
            n_clusters=n_clusters,
            counts=self.counts,
            kept_labels=kept_labels,
            kept_shifts=kept_shifts,
        )


def sort(
    labels: cp.ndarray,
    shifts: cp.ndarray,
    weights: np.ndarray | None,
    n_clusters: int,
    wanted: slice,
) -> Members:
    """Sort series by label, and describe some clusters."""
    sorting = Sorting(labels.size, n_clusters, wanted, weighted=weights is not None)
    sorting.take(labels, shifts, weights)
    for launch in sorting.launches:
        launch()
    return sorting.members


def chunk_rows(n_series: int) -> int:
    """Members of a chunk, by the number of all series alone."""
    return max(CHUNK, -(-n_series // CHUNKS))
