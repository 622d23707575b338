"""Best paths of many pairs side by side, where steps into a cell cost differently.

A group holds LANES pairs, an average and a series each, point by point, and the steps into cells
are kept in bits, as in `alignments`. Where all cells of two rows lie in the bands of all lanes and
there is one channel, these rows go together. Prices are summed, and steps chosen, in the order of
`warping_path`, so that the paths are the same.
"""

from __future__ import annotations

import numpy as np

from ...core.series import read_only
from ...families.elastic.averages import AlignmentSums
from ...host import kernel
from .alignments import next_group
from .cells import cell_of
from .dtw import _extremes, _take_last_row
from .lanes import LANES, columns_of_rows, lanes_of

__all__ = ["group_bytes", "trace"]

#: Columns of a strip, as in `alignments`: bits of a word.
_WIDTH = 64


@kernel
def _prices(cell, x, i, y, j, sums, own):
    """Sums over channels of the prices of the three steps into a cell of all lanes.

    In a border one of i and j is -1, and only the step along it counts.
    """
    n_channels = x.shape[1] - 1 if own is not None else x.shape[1]
    for c in range(n_channels):
        # in front of the first point stands a zero
        p, before_p, q, before_q = x[i + 1, c], x[max(i, 0), c], y[j + 1, c], y[max(j, 0), c]
        if own is not None:
            before_p, before_q = x[i + 1, n_channels], y[j + 1, n_channels]
        for lane in range(sums.shape[1]):
            match = cell.match(p[lane], q[lane], before_p[lane], before_q[lane])
            down = cell.down(p[lane], before_p[lane], q[lane])
            right = cell.right(q[lane], before_q[lane], p[lane])
            sums[0, lane] = match if c == 0 else sums[0, lane] + match
            sums[1, lane] = down if c == 0 else sums[1, lane] + down
            sums[2, lane] = right if c == 0 else sums[2, lane] + right
    if own is not None:
        for lane in range(sums.shape[1]):
            sums[1, lane] = x[i + 1, n_channels, lane]
            sums[2, lane] = y[j + 1, n_channels, lane]


@kernel(inline="always")
def _choose(steps, diagonal, up, left):
    """Value of a cell, and which of the steps into it come first: diagonally; down, not right."""
    across, down, right = steps[0] + diagonal, steps[1] + up, steps[2] + left
    best = down if down <= right else right
    value = across if across <= best else best
    return value, 1 if across <= best else 0, 1 if down <= right else 0


@kernel
def _fill(x, y, y_lengths, radius, out, steps, last, cancel, cell, own, borders):
    """Fill the warping matrices of all lanes, and note the steps into their cells.

    As `alignments._fill`, for policies with prices, and one function for the same reason. x:
    (n + 1, C, lanes) and y: (m + 1, C, lanes), with zeros in front, radius: (lanes,), out: (lanes,)
    accumulated costs; steps: (strips, n, 2, lanes) words; last: (strips, n) the column, within its
    strip, of the lowest bit.
    """
    lanes = lanes_of(y)
    inf = np.inf
    n, n_channels = x.shape[0] - 1, x.shape[1] - 1 if own is not None else x.shape[1]
    m, reach, least_reach = _extremes(y_lengths, radius)
    row = np.empty((_WIDTH + 1, lanes))
    edge = np.empty((n + 1, lanes))
    left, diagonal = np.empty((2, lanes)), np.empty(lanes)
    sums, words = np.empty((3, lanes)), np.empty((4, lanes), np.int64)
    out[:] = inf
    # edge[i + 1] is D(i, start - 1), with the border above the first row in front
    edge[:] = inf
    edge[0, :] = 0
    if borders:
        for i in range(min(n, reach)):
            _prices(cell, x, i, y, np.int64(-1), sums, own)
            for lane in range(lanes):
                if i < radius[lane]:
                    price = cell.steps(sums[0, lane], sums[1, lane], sums[2, lane], -1 - i)[1]
                    edge[i + 1, lane] = price + edge[i, lane]
    for start in range(0, m, _WIDTH):
        if cancel[0]:
            return
        w, strip = min(_WIDTH, m - start), start // _WIDTH
        first, stop = max(0, start - reach), min(n, start + w + reach)
        row[:] = inf
        for lane in range(lanes):
            row[0, lane] = edge[first, lane]
        if borders and first == 0:
            for j in range(start, min(start + w, reach)):
                _prices(cell, x, np.int64(-1), y, j, sums, own)
                for lane in range(lanes):
                    if j < radius[lane]:
                        price = cell.steps(sums[0, lane], sums[1, lane], sums[2, lane], j + 1)[2]
                        row[j - start + 1, lane] = price + row[j - start, lane]
        for lane in range(lanes):
            edge[0, lane] = row[w, lane]
        i = first
        while i < stop:
            height = 2 if i + 1 < stop else 1
            j_first, j_stop, inner_first, inner_stop = columns_of_rows(
                i, height, start, w, reach, least_reach
            )
            if n_channels > 1:
                inner_stop = 0
            for lane in range(lanes):
                diagonal[lane] = row[j_first, lane]
                left[0, lane] = edge[i + 1, lane] if j_first == 0 else inf
                left[1, lane] = edge[i + height, lane] if j_first == 0 else inf
                row[0, lane] = edge[i + height, lane]
            words[:] = 0
            for j in range(j_first, j_stop):
                if not inner_first <= j < inner_stop:
                    for k in range(height):
                        offset = start + j - i - k
                        _prices(cell, x, i + k, y, start + j, sums, own)
                        for lane in range(lanes):
                            value, across, down = _choose(
                                cell.steps(sums[0, lane], sums[1, lane], sums[2, lane], offset),
                                diagonal[lane],
                                row[j + 1, lane] if k == 0 else left[0, lane],
                                left[k, lane],
                            )
                            words[2 * k, lane] += words[2 * k, lane] + across
                            words[2 * k + 1, lane] += words[2 * k + 1, lane] + down
                            # what the row below finds diagonally, and above
                            diagonal[lane] = left[k, lane]
                            left[k, lane] = inf if abs(offset) > radius[lane] else value
                    for lane in range(lanes):
                        diagonal[lane] = row[j + 1, lane]
                        row[j + 1, lane] = left[height - 1, lane]
                    continue
                for lane in range(lanes):
                    p, a, b = x[i, 0, lane], x[i + 1, 0, lane], x[i + 2, 0, lane]
                    r, q, up = y[start + j, 0, lane], y[start + j + 1, 0, lane], row[j + 1, lane]
                    before = left[0, lane]
                    if own is not None:
                        number, other = x[i + 1, 1, lane], y[start + j + 1, 1, lane]
                        prices = cell.match(a, q, number, other), number, other
                        below = cell.match(b, q, number, other), number, other
                    else:
                        right = cell.right(q, r, a)
                        prices = cell.match(a, q, p, r), cell.down(a, p, q), right
                        below = cell.match(b, q, a, r), cell.down(b, a, q), cell.right(q, r, b)
                    value, across, down = _choose(
                        cell.steps(prices[0], prices[1], prices[2], start + j - i),
                        diagonal[lane], up, before,
                    )  # fmt: skip
                    words[0, lane] += words[0, lane] + across
                    words[1, lane] += words[1, lane] + down
                    following, across, down = _choose(
                        cell.steps(below[0], below[1], below[2], start + j - i - 1),
                        before, value, left[1, lane],
                    )  # fmt: skip
                    words[2, lane] += words[2, lane] + across
                    words[3, lane] += words[3, lane] + down
                    diagonal[lane] = up
                    left[0, lane] = value
                    left[1, lane] = following
                    row[j + 1, lane] = following
            for k in range(height):
                last[strip, i + k] = j_stop - 1
                for lane in range(lanes):
                    steps[strip, i + k, 0, lane] = words[2 * k, lane]
                    steps[strip, i + k, 1, lane] = words[2 * k + 1, lane]
                    edge[i + k + 1, lane] = left[k, lane] if j_stop == w else inf
            i += height
            if i == n:
                _take_last_row(row, y_lengths, start, w, out, False)


@kernel
def _walk_back(steps, last, lane, n, m, borders, first, stop):
    """Follow the steps of a lane back: the points that each point of the average matches.

    With borders, points that are left out have no place in the path.
    """
    i, j = n - 1, m - 1
    end = j
    while i >= 0 and j >= 0:
        strip = j // _WIDTH
        shift = last[strip, i] - j % _WIDTH
        across = (steps[strip, i, 0, lane] >> shift) & 1
        down = not across and (steps[strip, i, 1, lane] >> shift) & 1
        if borders:
            if across:
                first[i], stop[i] = j, j + 1
            i -= 1 if across or down else 0
            j -= 0 if down else 1
            continue
        across = across or (i == 0 and j == 0)
        if across or down:
            first[i], stop[i] = j, end + 1
            i -= 1
            j -= 1 if across else 0
            end = j
        else:
            j -= 1


@kernel
def _trace(
    averages, average_lengths, values, lengths, labels, order, radius, first, stop, costs, cancel,
    cell, own, borders,
):  # fmt: skip
    """Paths of some series to their averages; see `trace`."""
    n_channels, most_n, most_m = values.shape[1], averages.shape[2], values.shape[2]
    lanes = lanes_of(costs)
    # zeros in front of the first points
    x, y = np.zeros((most_n + 1, n_channels, lanes)), np.zeros((most_m + 1, n_channels, lanes))
    steps = np.empty((-(-most_m // _WIDTH), most_n, 2, lanes), np.int64)
    last = np.empty(steps.shape[:2], np.int64)
    y_lengths, reach, out = np.empty(lanes, np.int64), np.empty(lanes, np.int64), np.empty(lanes)
    place = 0
    while place < order.size:
        n, count = next_group(
            averages, average_lengths, values, lengths, labels, order, radius, place, 1, 1,
            x, y, y_lengths, reach,
        )  # fmt: skip
        _fill(x[: n + 1], y, y_lengths, reach, out, steps, last, cancel, cell, own, borders)
        if cancel[0]:
            return
        for lane in range(count):
            series = order[place + lane]
            costs[series] = out[lane]
            _walk_back(steps, last, lane, n, lengths[series], borders, first[series], stop[series])
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
        read_only(work.labels), order, warping.radius(n, series.lengths), first, stop, costs,
        cancel, cell, cell.own or None, cell.borders,
    )  # fmt: skip
    return first, stop, costs


def group_bytes(n: int, m: int, n_channels: int) -> int:
    """Bytes of the pairs that lie side by side: series, steps, and what `_fill` holds."""
    lanes = LANES[np.float64]
    steps = -(-m // _WIDTH) * n * (16 * lanes + 8)
    return 8 * lanes * ((n + m + 2) * (n_channels + 1) + n + 1 + _WIDTH + 24) + steps
