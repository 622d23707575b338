"""The walk of MK: bounds of neighbouring positions side by side, one per lane."""

from __future__ import annotations

import numpy as np
from numba import njit

from .windows import pair_distances

__all__ = ["walk"]

#: Positions that are bounded together, points that are added together.
_LANES = 64
_POINTS = 8
#: References between two looks at whether any position of a block is left.
_REFERENCES = 3


@njit(nogil=True, cache=True, error_model="numpy")
def _square(points, i, mean_i, inverse_i, j, mean_j, inverse_j, length, cutoff, total):
    """Squared distance of two windows, in no particular order; abandoned above `cutoff`."""
    total[:] = 0.0
    whole = length - length % (4 * _POINTS)
    for t in range(0, whole, 4 * _POINTS):
        for s in range(0, 4 * _POINTS, _POINTS):
            for lane in range(_POINTS):
                a = (points[i + t + s + lane] - mean_i) * inverse_i
                d = a - (points[j + t + s + lane] - mean_j) * inverse_j
                total[lane] += d * d
        found = 0.0
        for lane in range(_POINTS):
            found += total[lane]
        if found > cutoff:
            return found
    found = 0.0
    for lane in range(_POINTS):
        found += total[lane]
    for t in range(whole, length):
        d = (points[i + t] - mean_i) * inverse_i - (points[j + t] - mean_j) * inverse_j
        found += d * d
    return found


@njit(nogil=True, cache=True, error_model="numpy")
def _bound(gaps, reference, p, offset, lanes, limit, worst):
    """Raise the bounds of some positions by one more reference; how many are within the limit."""
    row = gaps[reference]
    left = 0
    if lanes == _LANES:
        for lane in range(_LANES):
            gap = abs(row[p + lane + offset] - row[p + lane])
            worst[lane] = gap if gap > worst[lane] else worst[lane]
        for lane in range(_LANES):
            left += worst[lane] <= limit
    else:
        for lane in range(lanes):
            gap = abs(row[p + lane + offset] - row[p + lane])
            worst[lane] = gap if gap > worst[lane] else worst[lane]
            left += worst[lane] <= limit
    return left


@njit(nogil=True, cache=True, error_model="numpy")
def walk(
    points, mean, inverse, length, order, gaps, slope, shift, exclusion, tile, best, places, cancel
):  # fmt: skip
    """Walk over positions by growing offset; the best pair is improved in place.

    `best` is its distance, `places` its windows. Returns how many pairs were measured.
    """
    row, row_stop, first, stop = tile  # positions and offsets
    n_ordered, n_references = order.size, gaps.shape[0]
    worst = np.empty(_LANES, np.float32)
    total = np.empty(_POINTS)
    i_pair, j_pair = np.empty(1, np.int64), np.empty(1, np.int64)
    value = np.empty(1)
    n_blocks = (row_stop - row + _LANES - 1) // _LANES
    done = np.zeros(n_blocks, np.uint8)
    measured = 0
    limit = np.float32(slope * best[0] + shift)
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
                if j - i <= exclusion:
                    continue
                if best[0] == 0.0 and (i > places[0] or (i == places[0] and j >= places[1])):
                    continue  # none is nearer, and of equally near ones the first counts
                measured += 1
                cutoff = best[0] * best[0] * (1.0 + 1e-9)
                found = _square(
                    points, i, mean[i], inverse[i], j, mean[j], inverse[j], length, cutoff, total
                )
                if found > cutoff:
                    continue
                i_pair[0], j_pair[0] = i, j
                pair_distances(
                    points, i_pair, mean, inverse, points, j_pair, mean, inverse, length, value,
                    cancel,
                )  # fmt: skip
                if value[0] > best[0] or (
                    value[0] == best[0] and (i > places[0] or (i == places[0] and j >= places[1]))
                ):
                    continue
                best[0] = value[0]
                places[0], places[1] = i, j
                limit = np.float32(slope * best[0] + shift)
        if not alive:
            break
    return measured
