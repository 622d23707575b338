"""The walk of MK: bounds of neighbouring positions side by side, one per lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import LOST_SQUARES
from ...host import kernel
from ...host.windows import pair_distances

__all__ = ["MeasuredLine", "OrderedWindows", "walk"]

#: Positions that are bounded together; points that are added between two looks at the total.
_LANES = 64
_POINTS = 32


class MeasuredLine(NamedTuple):
    """Points, and all that distances of their windows need.

    Attributes
    ----------
    points : ndarray of shape (n_timepoints,), float64
    mean, inverse : ndarray of shape (n_windows,), float64
        Mean relative to the first point of a window, and one over its deviation.
    center : ndarray of shape (n_windows,), float64
        Means in one number.
    slip : float
        Most that a distance by `center` is off.
    length, exclusion : int
    normalize : True or None
        None compares windows as they are.
    """

    points: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray
    center: np.ndarray
    slip: float
    length: int
    exclusion: int
    normalize: bool | None


class OrderedWindows(NamedTuple):
    """Windows in the order of the walk, and their distances to the references.

    Attributes
    ----------
    order : ndarray of shape (n_windows,), int64
    gaps : ndarray of shape (n_references, n_windows), float32
    slope, shift : float
        A pair is hopeless where a gap exceeds slope x distance + shift.
    """

    order: np.ndarray
    gaps: np.ndarray
    slope: float
    shift: float


@kernel
def _difference(x, mean_i, inverse_i, y, mean_j, inverse_j):
    """Difference of two normalised points, in strict arithmetic."""
    return (x - mean_i) * inverse_i - (y - mean_j) * inverse_j


@kernel(fastmath={"reassoc", "nsz"})
def _square(points, i, mean_i, inverse_i, j, mean_j, inverse_j, length, cutoff):
    """Squared distance of two windows, summed in any order; abandoned above `cutoff`."""
    first, second = points[i : i + length], points[j : j + length]
    whole = length - length % _POINTS
    total = 0.0
    for t in range(0, whole, _POINTS):
        x, y = first[t : t + _POINTS], second[t : t + _POINTS]
        for s in range(_POINTS):
            d = _difference(x[s], mean_i, inverse_i, y[s], mean_j, inverse_j)
            total += d * d
        if total > cutoff:
            return total
    for t in range(whole, length):
        d = _difference(first[t], mean_i, inverse_i, second[t], mean_j, inverse_j)
        total += d * d
    return total


@kernel
def _bound(gaps, reference, p, offset, lanes, limit, worst):
    """Raise the bounds of some positions by one more reference; how many are within the limit."""
    here = gaps[reference, p : p + lanes]
    there = gaps[reference, p + offset : p + offset + lanes]
    left = 0
    if lanes == _LANES:
        for lane in range(_LANES):
            gap = abs(there[lane] - here[lane])
            known = worst[lane]
            worst[lane] = gap if gap > known else known
        near = np.int32(0)
        for lane in range(_LANES):
            near += np.int32(worst[lane] <= limit)
        left = near
    else:
        for lane in range(lanes):
            worst[lane] = max(worst[lane], abs(there[lane] - here[lane]))
            left += worst[lane] <= limit
    return left


@kernel
def walk(line, ordered, tile, best, places, cancel):
    """Walk over positions by growing offset; the best pair is improved in place.

    `best` is its distance, `places` its windows. Returns how many pairs were measured.
    """
    center, slip, mean, inverse = line.center, line.slip, line.mean, line.inverse
    order, gaps = ordered.order, ordered.gaps
    row, row_stop, first, stop = tile  # positions and offsets
    n_ordered, n_references = order.size, gaps.shape[0]
    worst = np.empty(_LANES, np.float32)
    i_pair, j_pair = np.empty(1, np.int64), np.empty(1, np.int64)
    value = np.empty(1)
    n_blocks = (row_stop - row + _LANES - 1) // _LANES
    done = np.zeros(n_blocks, np.uint8)
    measured = 0
    limit = np.float32(ordered.slope * best[0] + ordered.shift)
    for offset in range(first, stop):
        if cancel[0]:
            break
        alive = False
        for block in range(n_blocks):
            p = row + block * _LANES
            lanes = min(_LANES, row_stop - p, n_ordered - offset - p)
            if done[block] or lanes <= 0:
                continue
            worst[:] = np.float32(0.0)
            left = _bound(gaps, 0, p, offset, lanes, limit, worst)
            if left == 0:
                # the gap in the order grows with the offset
                done[block] = 1
                continue
            alive = True
            for reference in range(1, n_references):
                left = _bound(gaps, reference, p, offset, lanes, limit, worst)
                if left == 0:
                    break
            if left == 0:
                continue
            for lane in range(lanes):
                if worst[lane] > limit:
                    continue
                i, j = order[p + lane], order[p + lane + offset]
                if i > j:
                    i, j = j, i
                if j - i <= line.exclusion:
                    continue
                if best[0] == 0.0 and (i > places[0] or (i == places[0] and j >= places[1])):
                    continue  # none is nearer, and of equally near ones the first counts
                measured += 1
                # see "mk squares" in docs/developer/numerics.rst
                cutoff = (best[0] + slip) * (best[0] + slip) * (1.0 + 1e-9) + LOST_SQUARES
                found = _square(
                    line.points, i, center[i], inverse[i], j, center[j], inverse[j], line.length,
                    cutoff,
                )  # fmt: skip
                if found > cutoff:
                    continue
                i_pair[0], j_pair[0] = i, j
                pair_distances(
                    line.points, i_pair, mean, inverse, line.points, j_pair, mean, inverse,
                    line.length, value, cancel, line.normalize,
                )  # fmt: skip
                if value[0] > best[0] or (
                    value[0] == best[0] and (i > places[0] or (i == places[0] and j >= places[1]))
                ):
                    continue
                best[0] = value[0]
                places[0], places[1] = i, j
                limit = np.float32(ordered.slope * best[0] + ordered.shift)
        if not alive:
            break
    return measured
