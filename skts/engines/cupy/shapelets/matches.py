"""Certified best matches of queries among the windows of series, on the GPU."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from ..loading import blocks_for, load_kernel
from .match_programs import MEASURED_TOGETHER, QUERY, THREADS, plan, runs, split

__all__ = ["best_matches"]

#: Blocks of what runs over lists whose lengths the host does not know.
LIST_BLOCKS = 2048
#: Bytes of `Entry` and `Line` of ``matches.cu``.
ENTRY_BYTES, LINE_BYTES = 16, 32


class Survey(NamedTuple):
    """Results of the kernel `survey` for series."""

    centered: cp.ndarray
    sums: cp.ndarray
    squares: cp.ndarray
    reaches: cp.ndarray
    lines: cp.ndarray


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
    lengths, channels = lengths[order], channels[order]
    ends = np.cumsum(lengths, dtype=np.int64)
    table = np.empty(len(order), QUERY)
    columns = begins[order], ends - lengths, lengths, channels, rows[order]
    for name, column in zip(QUERY.names or (), columns, strict=False):
        table[name] = column
    n_channels, width = values.shape[1:]
    if normalized:
        parts, units = plan(lengths, channels, series.size, width)
    else:
        parts, units = [], [split(*runs(lengths, channels), MEASURED_TOGETHER)]
    # everything in one transfer
    packed = cp.asarray(
        np.concatenate([table.view(np.int64), *(u.ravel().view(np.int64) for u in units)])
    )
    each = QUERY.itemsize // 8
    queries, groups = packed[: each * len(table)], packed[each * len(table) :]
    normal, kinds = cp.empty(int(ends[-1])), cp.empty(len(table), np.uint8)
    leans = cp.empty(len(table), np.float32)
    load_kernel("shapelets/matches.cu", "normalize")(
        (blocks_for(len(table), THREADS // 32),),
        (THREADS,),
        (source_values, queries, np.int32(len(table)), np.int32(normalized), normal, kinds, leans),
    )
    here = values, np.int32(width), np.int32(n_channels)
    answers = distances, 0 if starts is None else starts
    look_in = series, np.int32(series.size)
    if not normalized:
        n_blocks = min(len(units[0]) * series.size, 2**31 - 1)
        load_kernel("shapelets/matches.cu", f"match<{MEASURED_TOGETHER}>")(
            (n_blocks,),
            (THREADS,),
            (
                *(*here, sizes, *look_in, groups, np.int32(len(units[0])), 0, 0),
                *(queries, normal, kinds, np.int32(False), *answers),
            ),
        )
        return
    survey = _survey(values, sizes, series)
    for first, stop, capacity, n_units, blocks in parts:
        own, own_kinds, own_leans = queries[each * first :], kinds[first:], leans[first:]
        n_pairs = (stop - first) * series.size
        entries = cp.empty((capacity, ENTRY_BYTES // 8), np.int64)
        left, measured = cp.empty(n_pairs, np.int64), cp.empty(capacity)
        zeros = cp.zeros(2 + blocks_for(n_pairs, 32), np.int32)
        counts, marks = zeros[:2], zeros[2:]
        for some in range(0, n_units, 65535):
            load_kernel("shapelets/matches.cu", "sift")(
                (blocks, min(65535, n_units - some)),
                (THREADS,),
                (
                    *(*survey, np.int32(width), np.int32(n_channels), np.int32(series.size)),
                    *(groups[some:], own, normal, own_kinds, own_leans),
                    *(np.int32(capacity), entries, marks, left, counts, *answers),
                ),
            )
        groups = groups[n_units:]
        load_kernel("shapelets/matches.cu", "certify")(
            (min(4 * LIST_BLOCKS, blocks_for(capacity, 32)),),
            (32,),
            (
                *(*here, *look_in, own, normal, own_kinds, entries, counts, np.int32(capacity)),
                *(measured, distances),
            ),
        )
        if starts is not None:
            load_kernel("shapelets/matches.cu", "first")(
                (min(LIST_BLOCKS, blocks_for(capacity, 128)),),
                (128,),
                (
                    *(own, np.int32(series.size), entries, counts, np.int32(capacity), measured),
                    *answers,
                ),
            )
        load_kernel("shapelets/matches.cu", "match<1>")(
            (min(LIST_BLOCKS, n_pairs),),
            (THREADS,),
            (
                *(*here, sizes, *look_in, 0, np.int32(0), left, counts),
                *(own, normal, own_kinds, np.int32(True), *answers),
            ),
        )


def _survey(values: cp.ndarray, sizes: cp.ndarray, series: cp.ndarray) -> Survey:
    """Describe the series of all columns."""
    n_channels, width = values.shape[1:]
    n = series.size * n_channels
    survey = Survey(
        cp.empty((n, width)),
        cp.empty((n, width + 1, 2)),
        cp.empty((n, width + 1, 2)),
        cp.empty((n, width), np.int64),
        cp.empty((n, LINE_BYTES // 8)),
    )
    load_kernel("shapelets/matches.cu", "survey")(
        (series.size, n_channels),
        (THREADS,),
        (values, np.int32(width), np.int32(n_channels), sizes, series, *survey),
    )
    return survey
