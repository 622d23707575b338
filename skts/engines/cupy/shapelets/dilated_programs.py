"""The CUDA programs of dilated shapelets: units, memory. Imports nothing of CUDA."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...families.shapelets.dilated import DilatedShapelets

__all__ = ["FILE", "UNIT", "batches", "described_bytes", "kernels", "units_of"]

FILE = "shapelets/dilated.cu"
#: Shapelets of a unit at most: what its blocks read of a series serves all of them.
UNIT = 32
#: Bytes of means and deviations that are held at a time, and runs of one launch at most.
DESCRIBED, RUNS = 2**28, 2**15
#: Numbers of `Unit` of ``dilated.cu``.
NUMBERS = 8


def units_of(shapelets: DilatedShapelets, most: int = UNIT) -> tuple[np.ndarray, np.ndarray]:
    """Cut runs of shapelets into units; also return a unit for each run.

    Parameters
    ----------
    shapelets : DilatedShapelets
        The shapelets.
    most : int
        Shapelets of a unit.

    Returns
    -------
    units, runs : ndarray of shape (n, 8), int32
        As `Unit` of ``dilated.cu``; the rows of normalised runs are their numbers.
    """
    begin, size = shapelets.runs[:-1], np.diff(shapelets.runs)
    runs = np.zeros((len(begin), NUMBERS), np.int32)
    shared = shapelets.lengths, shapelets.dilations, shapelets.channels
    for column, values in enumerate((begin, size, *(one[begin] for one in shared))):
        runs[:, column] = values
    runs[:, 5] = np.where(shapelets.normalized[begin], np.arange(len(begin)), -1)
    count = -(-size // most)
    ends = np.cumsum(count)
    within = most * (np.arange(ends[-1]) - np.repeat(ends - count, count))
    units = np.repeat(runs, count, axis=0)
    units[:, 0] += within
    units[:, 1] = np.minimum(most, units[:, 1] - within)
    return units, runs


def described_bytes(n_runs: int, n_series: int, width: int) -> int:
    """Bytes of means and deviations of the windows of some runs, that are held at a time."""
    return 16 * n_series * width * together(n_runs, n_series, width)


def together(n_runs: int, n_series: int, width: int) -> int:
    """Runs that are matched in one launch."""
    return int(np.clip(DESCRIBED // (16 * n_series * width), 1, min(n_runs, RUNS)))


def batches(
    units: np.ndarray, runs: np.ndarray, n_series: int, width: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield units and the runs that they belong to, for one launch each; rows count from 0."""
    some = together(len(runs), n_series, width)
    for first in range(0, len(runs), some):
        now = runs[first : first + some]
        low, high = now[0, 0], now[-1, 0] + now[-1, 1]
        own = units[(units[:, 0] >= low) & (units[:, 0] < high)].copy()
        own[:, 5] = np.where(own[:, 5] >= 0, own[:, 5] - first, -1)
        for begin in range(0, len(own), RUNS):
            yield own[begin : begin + RUNS], now


def kernels() -> dict[str, list[str]]:
    """List the functions of ``dilated.cu``, for the compile check."""
    return {FILE: ["describe_windows", "match_dilated", "select_distance"]}
