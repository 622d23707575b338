"""Certified shape-based distances: the same bits on every engine.

Engines find correlations by transforms, each with roundings of its own. Where these leave open
which shift or which centre it is, and where k-Shape compares sums of distances that are equal but
for them, the correlations in question are computed again: as dot products in twice the precision,
by this one code.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
from scipy.fft import irfft, rfft

from ...core.constants import UNCLEAR
from ...core.reduction import Tile
from .distances import Assignment, SBDReduction, ShapeDistances

__all__ = ["certified_distances", "settle_assignment", "settle_pairs"]


def certified_distances(
    work: SBDReduction, pairs: Iterable[tuple[int, int]], cancel: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute certified distances and shifts of some pairs.

    Parameters
    ----------
    work : SBDReduction
        Series and centres; errors of the centres are taken for 0.
    pairs : iterable of (int, int)
        Series and centres.
    cancel : ndarray or None, default None
        Turns 1 on an interrupt.

    Returns
    -------
    distances, shifts : ndarray of shape (n_pairs,)
        As `SBDMatrix` defines them.
    """
    from ...host import shapes

    series, centers = work.series, work.centers
    n = shapes.fft_length(series.n_timepoints)
    found: list[tuple[float, int]] = []
    for row, col in pairs:
        if cancel is not None and cancel[0]:
            break
        scale = series.norms[row] * centers.norms[col]
        if scale == 0:
            found.append((1.0, 0))
            continue
        x, center = series.values[row], centers.values[col]
        spectrum = (rfft(x, n) * rfft(center, n).conj()).sum(axis=0)
        found.append(shapes.certify(irfft(spectrum, n), x, center, scale, work.rounding))
    distances, shifts = np.array(found, np.float64).reshape(-1, 2).T
    return distances, shifts.astype(np.int32)


def settle_pairs(work: SBDReduction, tile: Tile, found: ShapeDistances, cancel: np.ndarray) -> None:
    """Replace those of a tile's distances and shifts that are unclear by certified ones."""
    rows, cols = np.nonzero(found.shifts == UNCLEAR)
    if rows.size:
        pairs = zip((rows + tile.row).tolist(), (cols + tile.col).tolist(), strict=True)
        distances, shifts = certified_distances(work, pairs, cancel)
        if not cancel[0]:
            found.distances[rows, cols], found.shifts[rows, cols] = distances, shifts


def settle_assignment(
    work: SBDReduction, tile: Tile, found: Assignment, cancel: np.ndarray
) -> None:
    """Choose again, among certified distances, for those of a tile's series that are unclear.

    Centres that are not certified themselves leave them unclear.
    """
    rows = np.flatnonzero(found.shifts == UNCLEAR)
    if rows.size == 0 or work.centers.errors is not None:
        return
    n_centers = len(work.centers)
    pairs = product((rows + tile.row).tolist(), range(n_centers))
    known = certified_distances(work, pairs, cancel)
    if not cancel[0]:
        again = ShapeDistances(*(one.reshape(rows.size, n_centers) for one in known)).assign()
        for one, other in zip(found, again, strict=True):
            one[rows] = other
