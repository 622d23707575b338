"""Best paths of many pairs side by side.

A group holds LANES pairs, an average and a series each, point by point; the innermost loop runs
over them (`dtw`). Which step leads into a cell of a warping matrix takes two bits: whether the
diagonal one does, and whether that from above is taken before that from the left. Each lane shifts
these into words of 64 bits, two for each row of a strip of 64 columns, so that the bits of a cell
cost a few additions and no store. The way back through the words is taken lane by lane.
"""

from __future__ import annotations

import numpy as np

from ...core.series import Series, read_only
from ...families.elastic.averages import AlignmentSums
from ...families.elastic.warping import Warping
from ...host import kernel
from .dtw import Flags, _extremes, _take_last_row
from .lanes import LANES, columns_of_rows, lanes_of
from .warping_path import path as path_of_one

__all__ = ["group_bytes", "next_group", "trace", "trace_kernel", "trace_one_by_one"]

_WIDTH = 64


@kernel(inline="always")
def _terms_of(x, i, y, j, terms, cell):
    """Costs of two points in all lanes."""
    for lane in range(lanes_of(terms)):
        terms[lane] = cell.term(x[i, 0, lane], y[j, 0, lane])
    for c in range(1, x.shape[1]):
        for lane in range(lanes_of(terms)):
            terms[lane] += cell.term(x[i, c, lane], y[j, c, lane])


@kernel
def _sum_back(x, y, base, rows, width, start, w, low, stop, sums, terms, costs, cell):
    """Sums over the parts of windows in the block in which they begin, in the columns of a strip.

    A block is `width` points of x from `base` on, in which windows of `rows` rows begin, and parts
    of it are summed from its end back: so that along a diagonal the sum goes on from one row to the
    one above. A diagonal is the column that it has in the first row; those from `low` on and
    before `stop` are in the band. costs[r, j - start] receives the sum of row base + r and column
    j.
    """
    sums[:] = 0
    first = start - rows + 1
    for r in range(width - 1, -1, -1):
        for place in range(max(low, start - min(r, rows - 1)), min(stop, start + w)):
            j, k = place + r - start, place - first
            _terms_of(x, base + r, y, start + j, terms, cell)
            if r < rows and j < w:
                for lane in range(lanes_of(terms)):
                    total = sums[k, lane] + terms[lane]
                    sums[k, lane] = total
                    costs[r, j, lane] = total
            else:
                for lane in range(lanes_of(terms)):
                    sums[k, lane] += terms[lane]


@kernel
def _add_ahead(x, y, base, rows, width, start, w, low, stop, r, sums, terms, costs, cell):
    """Add to the costs of row base + r what its windows have in the next block.

    That is summed from the beginning of the block on, so that along a diagonal the sum goes on from
    the row above.
    """
    first, point = start - rows + 1, width + r - 1
    for place in range(max(low, first), min(stop, start + w - r)):
        j, k = place + r - start, place - first
        _terms_of(x, base + point, y, place + point, terms, cell)
        if j >= 0:
            for lane in range(lanes_of(terms)):
                total = sums[k, lane] + terms[lane]
                sums[k, lane] = total
                costs[r, j, lane] += total
        else:
            for lane in range(lanes_of(terms)):
                sums[k, lane] += terms[lane]


@kernel
def _outer_cell(
    x, y, i, height, row, left, diagonal, cost, words, place, offset, radius, cell, multivariate
):
    """Fill a cell, or two below each other, of all lanes, of which some are outside of the band."""
    lanes = radius.size
    for k in range(height):
        for lane in range(lanes):
            up = row[place + 1, lane] if k == 0 else left[0, lane]
            before = left[k, lane]
            best = up if up <= before else before
            words[2 * k, lane] += words[2 * k, lane] + (1 if diagonal[lane] <= best else 0)
            words[2 * k + 1, lane] += words[2 * k + 1, lane] + (1 if up <= before else 0)
            best = diagonal[lane] if diagonal[lane] <= best else best
            if multivariate is not None:
                here = cost[k, lane]
            else:
                here = cell.term(x[i + k, 0, lane], y[0, lane])
            value = cell.join(here, best)
            left[k, lane] = np.inf if abs(offset + k) > radius[lane] else value
            # what the row below finds diagonally, and above
            diagonal[lane] = before
    for lane in range(lanes):
        diagonal[lane] = row[place + 1, lane]
        row[place + 1, lane] = left[height - 1, lane]


@kernel
def _fill(x, y, y_lengths, radius, width, out, steps, last, cancel, cell, multivariate):
    """Fill the warping matrices of the pairs in all lanes, and note the steps into their cells.

    As `dtw.sweep` does, but for rows of their own in each lane; the walk is one function
    for the same reason. x: (n + width - 1, C, lanes), y: (m + width - 1, C, lanes), radius:
    (lanes,), width: points of the windows that are compared, out: (lanes,) accumulated costs;
    steps: (strips, n, 2, lanes) words; last: (strips, n) the column, within its strip, of the
    lowest bit.
    """
    lanes = lanes_of(y)
    inf = np.inf
    n = x.shape[0] - width + 1
    m, reach, least_reach = _extremes(y_lengths, radius)
    row = np.empty((_WIDTH + 1, lanes))
    edge = np.empty((n + 1, lanes))
    left = np.empty((2, lanes))
    diagonal = np.empty(lanes)
    # costs of the cells of a block of rows, or of two cells where windows are single points
    rows = max(min(n, width), 2) if multivariate is not None else 0
    costs = np.empty((rows, _WIDTH if width > 1 else 1, lanes))
    sums = np.empty((2, _WIDTH + rows if rows > 0 else 0, lanes))
    terms = np.empty(lanes)
    words = np.empty((4, lanes), np.int64)
    out[:] = inf
    # edge[i + 1] is D(i, start - 1), with the border above the first row in front
    edge[:] = inf
    edge[0, :] = 0
    for start in range(0, m, _WIDTH):
        if cancel[0]:
            return
        w, strip = min(_WIDTH, m - start), start // _WIDTH
        first, stop = max(0, start - reach), min(n, start + w + reach)
        row[:] = inf
        for lane in range(lanes):
            row[0, lane] = edge[first, lane]
            edge[0, lane] = inf
        i = first
        base = block_stop = done = 0
        while i < stop:
            height = 2 if i + 1 < stop else 1
            if multivariate is not None and width > 1:
                if i in (first, block_stop):
                    base, done = i // width * width, 0
                    block_stop = min(n, base + width)
                    _sum_back(
                        x, y, base, block_stop - base, width, start, w, base - reach,
                        base + reach + 1, sums[0], terms, costs, cell,
                    )  # fmt: skip
                    sums[1] = 0
                if i + 1 == block_stop:
                    height = 1
                while done < i + height - 1 - base:
                    done += 1
                    _add_ahead(
                        x, y, base, block_stop - base, width, start, w, base - reach,
                        base + reach + 1, done, sums[1], terms, costs, cell,
                    )  # fmt: skip
            cost = costs[i - base :] if width > 1 else costs
            j_first, j_stop, inner_first, inner_stop = columns_of_rows(
                i, height, start, w, reach, least_reach
            )
            for lane in range(lanes):
                diagonal[lane] = row[j_first, lane]
                left[0, lane] = edge[i + 1, lane] if j_first == 0 else inf
                left[1, lane] = edge[i + height, lane] if j_first == 0 else inf
                row[0, lane] = edge[i + height, lane]
            words[:] = 0
            for j in range(j_first, j_stop):
                place = j if width > 1 else 0
                if multivariate is not None and width == 1:
                    for k in range(height):
                        for lane in range(lanes):
                            costs[k, 0, lane] = cell.term(x[i + k, 0, lane], y[start + j, 0, lane])
                        for c in range(1, x.shape[1]):
                            for lane in range(lanes):
                                costs[k, 0, lane] += cell.term(
                                    x[i + k, c, lane], y[start + j, c, lane]
                                )
                if not inner_first <= j < inner_stop:
                    _outer_cell(
                        x, y[start + j], i, height, row, left, diagonal, cost[:, place], words, j,
                        i - start - j, radius, cell, multivariate,
                    )  # fmt: skip
                    continue
                for lane in range(lanes):
                    up, before = row[j + 1, lane], left[0, lane]
                    best = up if up <= before else before
                    words[0, lane] += words[0, lane] + (1 if diagonal[lane] <= best else 0)
                    words[1, lane] += words[1, lane] + (1 if up <= before else 0)
                    best = diagonal[lane] if diagonal[lane] <= best else best
                    diagonal[lane] = up
                    if multivariate is not None:
                        here = cost[0, place, lane]
                    else:
                        here = cell.term(x[i, 0, lane], y[start + j, 0, lane])
                    value = cell.join(here, best)
                    left[0, lane] = value
                    other = left[1, lane]
                    best = value if value <= other else other
                    words[2, lane] += words[2, lane] + (1 if before <= best else 0)
                    words[3, lane] += words[3, lane] + (1 if value <= other else 0)
                    best = before if before <= best else best
                    if multivariate is not None:
                        here = cost[1, place, lane]
                    else:
                        here = cell.term(x[i + 1, 0, lane], y[start + j, 0, lane])
                    value = cell.join(here, best)
                    left[1, lane] = value
                    row[j + 1, lane] = value
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
def _walk_back(steps, last, lane, n, m, first, stop):
    """Follow the steps of a lane back: the points that each point of the average matches."""
    i, j = n - 1, m - 1
    stop[i] = m
    while i > 0 or j > 0:
        strip, place = j // _WIDTH, j % _WIDTH
        shift = last[strip, i] - place
        across = (steps[strip, i, 0, lane] >> shift) & 1
        down = (steps[strip, i, 1, lane] >> shift) & 1
        if i > 0 and (j == 0 or across or down):
            first[i] = j
            i -= 1
            # of equal steps the diagonal, then that from above
            if j > 0 and across:
                j -= 1
            stop[i] = j + 1
        else:
            j -= 1
    first[0] = 0


@kernel
def next_group(
    averages, average_lengths, values, lengths, labels, order, radius, place, front, width, x, y,
    y_lengths, reach,
):  # fmt: skip
    """Lay series side by side from `place` of an order on, whose averages have one length.

    Returns the points of these averages, and how many series there are. Lanes without a series
    repeat the first one. x: (front + n + width - 1, C, lanes) receives the averages and y the
    series, both behind `front` points that are left as they are.
    """
    lanes = lanes_of(x)
    n, count = average_lengths[labels[order[place]]], 1
    while (
        count < lanes
        and place + count < order.size
        and average_lengths[labels[order[place + count]]] == n
    ):
        count += 1
    for lane in range(lanes):
        series = order[place + (lane if lane < count else 0)]
        y_lengths[lane], reach[lane] = lengths[series], radius[series]
        for c in range(values.shape[1]):
            for i in range(n + width - 1):
                x[front + i, c, lane] = averages[labels[series], c, i]
            for j in range(values.shape[2]):
                y[front + j, c, lane] = values[series, c, j]
    return n, count


@kernel
def trace_kernel(
    averages, average_lengths, values, lengths, labels, order, radius, width, first, stop, costs,
    cancel, cell, multivariate,
):  # fmt: skip
    """Paths of some series to their averages; see `trace`."""
    n_channels, most_n, most_m = values.shape[1], averages.shape[2], values.shape[2]
    lanes = lanes_of(costs)
    x, y = np.empty((most_n, n_channels, lanes)), np.zeros((most_m, n_channels, lanes))
    n_strips = -(-(most_m - width + 1) // _WIDTH)
    steps = np.empty((n_strips, most_n - width + 1, 2, lanes), np.int64)
    last = np.empty(steps.shape[:2], np.int64)
    y_lengths, reach, out = np.empty(lanes, np.int64), np.empty(lanes, np.int64), np.empty(lanes)
    place = 0
    while place < order.size:
        n, count = next_group(
            averages, average_lengths, values, lengths, labels, order, radius, place, 0, width,
            x, y, y_lengths, reach,
        )  # fmt: skip
        inside = x[: n + width - 1]
        _fill(inside, y, y_lengths, reach, width, out, steps, last, cancel, cell, multivariate)
        if cancel[0]:
            return
        for lane in range(count):
            series = order[place + lane]
            costs[series] = out[lane]
            _walk_back(steps, last, lane, n, lengths[series], first[series], stop[series])
        place += count


def trace(
    averages: Series,
    series: Series,
    labels: np.ndarray,
    warping: Warping,
    cancel: np.ndarray,
    width: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the best path of each series to its average.

    Parameters
    ----------
    averages, series : Series
        Averages and series.
    labels : ndarray of shape (n_series,), int64
        The average of each series.
    warping : Warping
        Options of the distance; whole series are matched, all steps into a cell cost the same.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    width : int, default 1
        Points of the windows that are compared in place of points; both sets then have
        ``width - 1`` points more than their lengths say, and window i begins with point i.

    Returns
    -------
    first, stop : ndarray of shape (n_series, n_timepoints of `averages`), int32
        The first point of the series that each point of the average is matched with, and the one
        after the last.
    costs : ndarray of shape (n_series,)
        Certified accumulated costs.
    """
    first, stop, costs = _empty_paths(averages, series, width)
    n = averages.lengths[labels]
    # averages of one length side by side
    order = np.argsort(n, kind="stable")
    flags = Flags.of(warping, series.n_channels)
    trace_kernel(
        *map(read_only, (averages.values, averages.lengths, series.values, series.lengths)),
        read_only(labels), order, warping.radius(n, series.lengths), width, first, stop, costs,
        cancel, flags.cell, True if width > 1 else flags.multivariate,
    )  # fmt: skip
    return first, stop, costs


def trace_one_by_one(
    work: AlignmentSums, cancel: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the paths of all series of some work in the memory of one path at a time.

    Parameters
    ----------
    work : AlignmentSums
        Series and averages, under any distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    first, stop : ndarray of shape (n_series, n_timepoints of the averages), int32
        As of `trace`; both 0 for a point that is matched with none.
    costs : ndarray of shape (n_series,)
        Certified accumulated costs.
    """
    first, stop, costs = _empty_paths(work.averages, work.series)
    averages, series, warping = work.described
    for place, label in enumerate(work.labels.tolist()):
        average = averages.values[label, :, : averages.lengths[label]]
        one = series.values[place, :, : series.lengths[place]]
        path, costs[place] = path_of_one(average.copy(), one.copy(), warping, cancel)
        if cancel[0]:
            break
        work.write_matched(place, path, first[place], stop[place])
    return first, stop, costs


def _empty_paths(
    averages: Series, series: Series, width: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays that receive the paths and costs of some series."""
    shape = len(series), averages.n_timepoints - width + 1
    return np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.empty(len(series))


def group_bytes(n: int, m: int, n_channels: int, width: int = 1) -> int:
    """Bytes of the pairs that lie side by side: series, steps, and what `_fill` holds."""
    lanes = LANES[np.float64]
    steps = -(-m // _WIDTH) * n * (16 * lanes + 8)
    rows = max(min(n, width), 2) if n_channels > 1 or width > 1 else 0
    costs = rows * (_WIDTH if width > 1 else 1) + 2 * (rows + _WIDTH) if rows else 0
    points = (n + m + 2 * (width - 1)) * n_channels
    return 8 * lanes * (points + n + 1 + _WIDTH + 24 + costs) + steps
