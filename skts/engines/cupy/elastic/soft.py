"""Soft-DTW on the GPU: values of all pairs, and sums of gradients."""

from __future__ import annotations

import cupy as cp
import numpy as np

from ...core.constants import ELASTIC_THREADS as THREADS
from ...families.elastic.soft import values_of
from ...families.elastic.warping import Warping
from ..loading import load_kernel, multiprocessors
from .dtw import DeviceSeries, points_by_length
from .soft_programs import (
    ADD_GRADIENTS,
    GRADIENTS,
    VALUES,
    edge_bytes,
    steps_of_strip,
    weight_bytes,
)

__all__ = ["gradient", "values"]

_FILE = "elastic/soft.cu"
#: Warps of a multiprocessor that are busy with pairs.
WARPS = 32
#: Pairs of a launch, so that an interrupt is seen between two.
MOST_PAIRS = 2**20


def _blocks(n_pairs: int, most_warps: int) -> int:
    """Blocks for so many pairs, a warp each, and no more warps than there is memory for."""
    warps = min(n_pairs, most_warps, multiprocessors() * WARPS)
    return max(1, warps // (THREADS // 32)) if warps < n_pairs else -(-warps * 32 // THREADS)


def values(
    rows: DeviceSeries, cols: DeviceSeries, gamma: float, warping: Warping, cancel: np.ndarray
) -> np.ndarray:
    """Compute soft-DTW of all pairs.

    Parameters
    ----------
    rows, cols : DeviceSeries
        Two sets in float64.
    gamma : float
        Smoothing.
    warping : Warping
        The band.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_rows, n_cols)
        The values, on the host.
    """
    (n_rows, n_channels, n), (n_cols, _, m) = rows.shape, cols.shape
    fractions, powers = cp.ones((n_rows, n_cols)), cp.zeros((n_rows, n_cols))
    at_a_time = max(1, MOST_PAIRS // n_cols)
    blocks = _blocks(min(at_a_time, n_rows) * n_cols, 2**31)
    edges = cp.empty(blocks * (THREADS // 32) * edge_bytes(m) // 8)
    points = points_by_length(warping, max(n, m))
    for begin in range(0, n_rows, at_a_time):
        if cancel[0]:
            break
        some = slice(begin, min(begin + at_a_time, n_rows))
        load_kernel(_FILE, VALUES)(
            blocks,
            THREADS,
            x_values=rows.values[begin * n_channels * n :],
            x_lengths=rows.lengths[some],
            n_stride=n,
            y_values=cols.values,
            y_lengths=cols.lengths,
            m_stride=m,
            n_channels=n_channels,
            n_cols=n_cols,
            n_pairs=(some.stop - begin) * n_cols,
            points=points,
            inverse=1.0 / gamma,
            edges=edges,
            fractions=fractions[some],
            powers=powers[some],
        )
        if at_a_time < n_rows:
            # none waits behind this one, so that an interrupt ends the work
            cp.cuda.get_current_stream().synchronize()
    return values_of(fractions.get(), powers.get(), gamma)


def gradient(
    average: DeviceSeries,
    n: int,
    series: DeviceSeries,
    weights: np.ndarray,
    gamma: float,
    warping: Warping,
    rows: int,
    cancel: np.ndarray,
    *,
    budget: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute soft-DTW of an average and some series, and sums of gradients by cells of the grid.

    The arguments are one function's: they are those of the CPU engine, on the device.

    Parameters
    ----------
    average : DeviceSeries
        One series in float64.
    n : int
        Its points.
    series : DeviceSeries
        The series in float64.
    weights : ndarray of shape (n_series,)
        Their weights.
    gamma : float
        Smoothing.
    warping : Warping
        The band.
    rows : int
        Series of a cell of the grid.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    budget : int
        Bytes for the weights of the pairs that are under way at a time.

    Returns
    -------
    gradients : ndarray of shape (n_cells, n_channels, n_timepoints)
        Sums, by weight.
    values : ndarray of shape (n_series,)
        The values.
    """
    (n_series, n_channels, m), stride = series.shape, average.shape[2]
    each, n_cells = weight_bytes(n, m), -(-n_series // rows)
    blocks = _blocks(n_series, max(1, budget // each))
    warps = blocks * (THREADS // 32)
    room, edges = cp.empty(warps * each // 8), cp.empty(warps * edge_bytes(m) // 8)
    gradients = cp.zeros((n_series, n_channels, stride))
    fractions, powers = cp.ones(n_series), cp.zeros(n_series)
    points = points_by_length(warping, max(stride, m))
    at_a_time = warps * 32
    for begin in range(0, n_series, at_a_time):
        if cancel[0]:
            break
        load_kernel(_FILE, GRADIENTS)(
            blocks,
            THREADS,
            x=average.values,
            n=n,
            n_stride=stride,
            y_values=series.values,
            y_lengths=series.lengths,
            m_stride=m,
            n_channels=n_channels,
            begin=begin,
            n_pairs=min(at_a_time, n_series - begin),
            points=points,
            inverse=1.0 / gamma,
            edges=edges,
            weights=room,
            n_steps=steps_of_strip(m),
            gradients=gradients,
            fractions=fractions,
            powers=powers,
        )
        if at_a_time < n_series:
            cp.cuda.get_current_stream().synchronize()
    sums = cp.empty((n_cells, n_channels, n))
    load_kernel(_FILE, ADD_GRADIENTS)(
        (n_cells, -(-n_channels * n // THREADS)),
        THREADS,
        gradients=gradients,
        weights=cp.asarray(weights),
        n_series=n_series,
        rows=rows,
        n_channels=n_channels,
        n=n,
        n_stride=stride,
        sums=sums,
    )
    return sums.get(), values_of(fractions.get(), powers.get(), gamma)
