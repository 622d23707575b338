"""Survivors of a radius search on the GPU."""

from __future__ import annotations

import cupy as cp
import numpy as np

from ...core.certify import Bound, Shortlist
from ...core.constants import ELASTIC_THREADS as THREADS
from ..loading import blocks_for, load_kernel
from ..transfers import read_number

__all__ = ["within"]

#: Blocks of a launch, which walk over the pairs with a stride.
MOST_BLOCKS = 2**16


def within(
    estimates: cp.ndarray,
    radius: float,
    bound: Bound,
    excluded: np.ndarray | None,
    scale: float,
    *,
    squared: bool,
) -> Shortlist:
    """Keep of a block the pairs that may lie within a distance.

    Parameters
    ----------
    estimates : cupy.ndarray of shape (n_rows, n_cols)
        float32: accumulated costs in scaled units; float64: certified distances.
    radius : float
        The distance.
    bound : Bound
        Error of the distances; exact for float64.
    excluded : ndarray of shape (n_rows,), int64, or None
        One column a row that takes no part.
    scale : float
        By which data were multiplied.
    squared : bool
        Whether float32 estimates are squared distances.

    Returns
    -------
    Shortlist
        The survivors, on the host; no row has too many.
    """
    n_cols, single = estimates.shape[1], estimates.dtype == np.float32
    kernel = load_kernel("elastic/radius.cu", "within<float>" if single else "within<double>")
    skipped = None if excluded is None else cp.asarray(excluded)

    def launch(*lists: cp.ndarray | None) -> int:
        n_found = cp.zeros(1, np.int32)
        kernel(
            min(blocks_for(estimates.size, THREADS), MOST_BLOCKS),
            THREADS,
            estimates=estimates,
            n_pairs=estimates.size,
            n_cols=n_cols,
            excluded=skipped,
            radius=radius,
            scale=scale,
            squared=squared,
            shrink=bound.shrink,
            slack=bound.slack,
            n_found=n_found,
            found_row=lists[0],
            found_col=lists[1],
            found_value=lists[2],
        )
        return int(read_number(n_found))

    count = launch(None, None, None)
    rows, cols = cp.empty(count, np.int32), cp.empty(count, np.int32)
    found = cp.empty(count, estimates.dtype)
    if count:
        launch(rows, cols, found)
    values = found.get()
    if single:
        values = values.astype(np.float64)
        values = (np.sqrt(values) if squared else values) / scale
    return Shortlist(rows.get().astype(np.int64), cols.get().astype(np.int64), values, bound)
