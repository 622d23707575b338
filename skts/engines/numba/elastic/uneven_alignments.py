"""Best paths of many pairs side by side, where steps into a cell cost differently.

A group holds LANES pairs, an average and a series each, point by point, as in `alignments`. The
step that leads into a cell is kept in a byte for each lane. Prices are summed, and steps chosen, in
the order of `warping_path`, so that the paths are the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ...core.series import read_only
from ...families.elastic.averages import AlignmentSums
from .cells import cell_of
from .dtw import _radius
from .lanes import LANES, lanes_of

__all__ = ["group_bytes", "trace"]

#: The steps into a cell.
_ACROSS, _DOWN, _RIGHT = 0, 1, 2


@njit(nogil=True, cache=True, error_model="numpy")
def _prices(cell, x, i, y, j, sums, own):
    """Sums over channels of the prices of the three steps into a cell of all lanes.

    In a border one of i and j is -1, and only the step along it counts.
    """
    n_channels = x.shape[1] - 1 if own else x.shape[1]
    for c in range(n_channels):
        # beside the matrix, and before the first point, stand zeros
        p, before_p = x[max(i, 0), c], x[max(i - 1, 0), c]
        q, before_q = y[max(j, 0), c], y[max(j - 1, 0), c]
        has_p, has_q = 1.0 if i >= 0 else 0.0, 1.0 if j >= 0 else 0.0
        had_p, had_q = 1.0 if i > 0 else 0.0, 1.0 if j > 0 else 0.0
        for lane in range(sums.shape[1]):
            one, other = p[lane] * has_p, q[lane] * has_q
            one_before, other_before = before_p[lane] * had_p, before_q[lane] * had_q
            if own:
                one_before = x[max(i, 0), n_channels, lane]
                other_before = y[max(j, 0), n_channels, lane]
            match = cell.match(one, other, one_before, other_before)
            down = cell.down(one, one_before, other)
            right = cell.right(other, other_before, one)
            sums[0, lane] = match if c == 0 else sums[0, lane] + match
            sums[1, lane] = down if c == 0 else sums[1, lane] + down
            sums[2, lane] = right if c == 0 else sums[2, lane] + right
    if own:
        for lane in range(sums.shape[1]):
            sums[1, lane] = x[max(i, 0), n_channels, lane]
            sums[2, lane] = y[max(j, 0), n_channels, lane]


@njit(nogil=True, cache=True, error_model="numpy")
def _fill(x, y, y_lengths, radius, out, steps, cancel, cell, own, borders):
    """Fill the warping matrices of all lanes, and note the steps into their cells.

    x: (n, C, lanes), y: (m, C, lanes), radius: (lanes,), out: (lanes,) accumulated costs; steps:
    (n, m, lanes) bytes.
    """
    lanes = lanes_of(y)
    n, m, reach = x.shape[0], y_lengths.max(), radius.max()
    row, front = np.empty((m + 1, lanes)), np.empty(lanes)
    sums, diagonal, left = np.empty((3, lanes)), np.empty(lanes), np.empty(lanes)
    # row[j + 1] is D(i - 1, j), and then D(i, j)
    for j in range(m + 1):
        for lane in range(lanes):
            row[j, lane] = np.inf if j > 0 else 0.0
    for lane in range(lanes):
        front[lane] = 0.0
    if borders:
        for j in range(min(m, reach)):
            _prices(cell, x, np.int64(-1), y, j, sums, own)
            for lane in range(lanes):
                if j < radius[lane]:
                    price = cell.steps(sums[0, lane], sums[1, lane], sums[2, lane], j + 1)[2]
                    row[j + 1, lane] = price + row[j, lane]
    for i in range(n):
        if cancel[0]:
            return
        first, stop = max(0, i - reach), min(m, i + reach + 1)
        if borders and i < reach:
            _prices(cell, x, i, y, np.int64(-1), sums, own)
        for lane in range(lanes):
            diagonal[lane] = row[first, lane]
            border = np.inf
            if borders and i < radius[lane]:
                price = cell.steps(sums[0, lane], sums[1, lane], sums[2, lane], -1 - i)[1]
                border = price + front[lane]
            front[lane] = border
            left[lane] = border if first == 0 else np.inf
            row[first, lane] = left[lane]
        for j in range(first, stop):
            _prices(cell, x, i, y, j, sums, own)
            offset = j - i
            for lane in range(lanes):
                prices = cell.steps(sums[0, lane], sums[1, lane], sums[2, lane], offset)
                up = row[j + 1, lane]
                across, down, right = (
                    prices[0] + diagonal[lane], prices[1] + up, prices[2] + left[lane],
                )  # fmt: skip
                best = down if down <= right else right
                step = _DOWN if down <= right else _RIGHT
                value = across if across <= best else best
                steps[i, j, lane] = _ACROSS if across <= best else step
                value = np.inf if abs(offset) > radius[lane] else value
                diagonal[lane] = up
                left[lane] = value
                row[j + 1, lane] = value
    for lane in range(lanes):
        out[lane] = row[y_lengths[lane], lane]


@njit(nogil=True, cache=True, error_model="numpy")
def _walk_back(steps, lane, n, m, borders, first, stop):
    """Follow the steps of a lane back: the points that each point of the average matches.

    With borders, points that are left out have no place in the path.
    """
    i, j = n - 1, m - 1
    last = j
    while i >= 0 and j >= 0:
        step = steps[i, j, lane]
        if borders:
            if step == _ACROSS:
                first[i], stop[i] = j, j + 1
            i -= 1 if step != _RIGHT else 0
            j -= 1 if step != _DOWN else 0
            continue
        if i == 0 and j == 0:
            step = _ACROSS
        if step != _RIGHT:
            first[i], stop[i] = j, last + 1
            i -= 1
            j -= 1 if step == _ACROSS else 0
            last = j
        else:
            j -= 1


@njit(nogil=True, cache=True, error_model="numpy")
def _trace(
    averages, average_lengths, values, lengths, labels, order, radius, first, stop, costs, cancel,
    cell, own, borders,
):  # fmt: skip
    """Paths of some series to their averages; see `trace`."""
    n_channels, most_n, most_m = values.shape[1], averages.shape[2], values.shape[2]
    lanes = lanes_of(costs)
    x, y = np.zeros((most_n, n_channels, lanes)), np.zeros((most_m, n_channels, lanes))
    steps = np.empty((most_n, most_m, lanes), np.uint8)
    y_lengths, reach, out = np.empty(lanes, np.int64), np.empty(lanes, np.int64), np.empty(lanes)
    place = 0
    while place < order.size:
        n, count = average_lengths[labels[order[place]]], 1
        while (
            count < lanes
            and place + count < order.size
            and average_lengths[labels[order[place + count]]] == n
        ):
            count += 1
        for lane in range(lanes):
            # lanes without a series repeat the first one
            series = order[place + (lane if lane < count else 0)]
            y_lengths[lane], reach[lane] = lengths[series], radius[series]
            for c in range(n_channels):
                for i in range(n):
                    x[i, c, lane] = averages[labels[series], c, i]
                for j in range(most_m):
                    y[j, c, lane] = values[series, c, j]
        _fill(x[:n], y, y_lengths, reach, out, steps, cancel, cell, own, borders)
        if cancel[0]:
            return
        for lane in range(count):
            series = order[place + lane]
            costs[series] = out[lane]
            _walk_back(steps, lane, n, lengths[series], borders, first[series], stop[series])
        place += count


def trace(work: AlignmentSums, cancel: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the paths of all series of some work.

    Parameters
    ----------
    work : AlignmentSums
        Series and averages, under a distance whose steps cost differently.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    first, stop : ndarray of shape (n_series, n_timepoints of the averages), int32
        The first point of the series that each point of the average is matched with, and the one
        after the last; both 0 for a point that is matched with none.
    costs : ndarray of shape (n_series,)
        Certified accumulated costs.
    """
    averages, series, warping = work.described
    shape = len(series), averages.n_timepoints
    first, stop, costs = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.empty(shape[0])
    n, cell = averages.lengths[work.labels], cell_of(warping)
    # averages of one length side by side
    order = np.argsort(n, kind="stable")
    _trace(
        *map(read_only, (averages.values, averages.lengths, series.values, series.lengths)),
        read_only(work.labels), order, _radius(warping, n, series.lengths), first, stop, costs,
        cancel, cell, cell.own, cell.borders,
    )  # fmt: skip
    return first, stop, costs


def group_bytes(n: int, m: int, n_channels: int) -> int:
    """Bytes of the pairs that lie side by side: series, steps, and a row."""
    lanes = LANES[np.float64]
    return lanes * (n * m + 8 * ((n + m) * (n_channels + 1) + m + 12))
