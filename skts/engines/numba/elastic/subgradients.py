"""All steps of the stochastic subgradient method, one pair of series after the other.

A step waits for the one before, so that no two pairs lie side by side. The cells of an antidiagonal
of a warping matrix do not depend on each other: they are computed together. Which step leads into
a cell is kept in a byte, by the rule of `alignments`.
"""

from __future__ import annotations

import numpy as np

from ...core.series import read_only
from ...families.elastic.subgradients import MovedAverage, SubgradientSteps
from ...host import kernel

__all__ = ["follow", "step_bytes"]

#: The bit of a cell whose diagonal step is a best one; another tells that the step down is better
#: than, or as good as, the one to the right.
_ACROSS = 1
_ONE = np.uint64(1)


@kernel
def _antidiagonal(x, turned, m, radius, d, above, diagonal, here, steps):
    """Fill antidiagonal d, whose cell (i, d - i) is at place i + 1, from the two before.

    Of one channel: beside a loop over channels this one would not be vectorised. Indices are
    unsigned, else each is looked at whether it counts from the end; and one loop does all, as short
    ones cost most at their ends.
    """
    low = max(0, max(d - m + 1, (d - radius + 1) // 2))
    stop = min(x.shape[1], min(d, (d + radius) // 2) + 1)
    if low < stop:
        begin, count = np.uint64(low), np.uint64(stop - low)
        first = np.uint64(m - 1 - d + low)
        for k in range(count):
            difference = x[0, begin + k] - turned[0, first + k]
            up, left, across = above[begin + k], above[begin + k + _ONE], diagonal[begin + k]
            best = up if up <= left else left
            here[begin + k + _ONE] = difference * difference + (across if across <= best else best)
            steps[d, begin + k] = (2 if up <= left else 0) + (1 if across <= best else 0)
    # no cell beside these is in the band
    here[low] = np.inf
    here[stop + 1] = np.inf


@kernel
def _antidiagonal_of_channels(x, turned, m, radius, d, above, diagonal, here, steps):
    """The same of several channels."""
    low = max(0, max(d - m + 1, (d - radius + 1) // 2))
    stop = min(x.shape[1], min(d, (d + radius) // 2) + 1)
    if low < stop:
        begin, count = np.uint64(low), np.uint64(stop - low)
        first = np.uint64(m - 1 - d + low)
        for c in range(x.shape[0]):
            for k in range(count):
                difference = x[c, begin + k] - turned[c, first + k]
                before = here[begin + k + _ONE] if c > 0 else 0.0
                here[begin + k + _ONE] = before + difference * difference
        for k in range(count):
            up, left, across = above[begin + k], above[begin + k + _ONE], diagonal[begin + k]
            best = up if up <= left else left
            here[begin + k + _ONE] += across if across <= best else best
            steps[d, begin + k] = (2 if up <= left else 0) + (1 if across <= best else 0)
    here[low] = np.inf
    here[stop + 1] = np.inf


@kernel
def _start(y, m, turned, one, two):
    """Turn a series, and prepare lines for the first antidiagonal."""
    for k in range(len(one)):
        one[k] = np.inf
        two[k] = np.inf
    two[0] = 0.0
    for c in range(len(y)):
        for j in range(m):
            turned[c, j] = y[c, m - 1 - j]


@kernel
def _fill(x, y, m, radius, turned, one, two, three, steps):
    """Accumulated cost of a pair of one channel, and the steps into all cells.

    x: (C, n), y: (C, >= m), turned: (C, >= m), receives y from its end; one, two, three: (n + 2,)
    for antidiagonals, in turn; steps: (>= n + m - 1, n) bytes.
    """
    _start(y, m, turned, one, two)
    n = x.shape[1]
    count = n + m - 1
    for d in range(0, count, 3):
        _antidiagonal(x, turned, m, radius, d, one, two, three, steps)
        two[0] = np.inf
        if d + 1 < count:
            _antidiagonal(x, turned, m, radius, d + 1, three, one, two, steps)
        if d + 2 < count:
            _antidiagonal(x, turned, m, radius, d + 2, two, three, one, steps)
    last = (count - 1) % 3
    return three[n] if last == 0 else (two[n] if last == 1 else one[n])


@kernel
def _fill_channels(x, y, m, radius, turned, one, two, three, steps):
    """The same of several channels."""
    _start(y, m, turned, one, two)
    n = x.shape[1]
    count = n + m - 1
    for d in range(count):
        _antidiagonal_of_channels(x, turned, m, radius, d, one, two, three, steps)
        if d == 0:
            two[0] = np.inf
        one, two, three = three, one, two
    return one[n]


@kernel
def _add_path(steps, y, n, m, weight, sums, counts):
    """Add what the best path matches with each point of the average, in order of time."""
    i, j = n - 1, m - 1
    last = j
    while True:
        bits = steps[i + j, i]
        leaves = i > 0 and (j == 0 or bits > 0)
        if leaves or (i == 0 and j == 0):
            # points j to last are matched with point i
            counts[i] += weight * (last - j + 1)
            for c in range(y.shape[0]):
                total = y[c, j]
                for k in range(j + 1, last + 1):
                    total += y[c, k]
                sums[c, i] += weight * total
        if i == 0 and j == 0:
            break
        if leaves:
            i -= 1
            if j > 0 and bits & _ACROSS:
                j -= 1
            last = j
        else:
            j -= 1


@kernel
def _follow(values, lengths, order, weights, rates, batch_size, radius, average, costs, cancel):
    """Take all steps; average: (C, n) is moved, costs: (n_order,) is filled."""
    n_channels, n = average.shape
    longest = values.shape[2]
    turned = np.empty((n_channels, longest))
    one, two, three = np.empty(n + 2), np.empty(n + 2), np.empty(n + 2)
    steps = np.empty((n + longest - 1, n), np.uint8)
    sums, counts = np.empty((n_channels, n)), np.empty(n)
    for step in range(len(rates)):
        if cancel[0]:
            return
        for i in range(n):
            counts[i] = 0.0
            for c in range(n_channels):
                sums[c, i] = 0.0
        for place in range(step * batch_size, min(len(order), (step + 1) * batch_size)):
            row = order[place]
            m = lengths[row]
            if n_channels == 1:
                costs[place] = _fill(
                    average, values[row], m, radius[row], turned, one, two, three, steps
                )
            else:
                costs[place] = _fill_channels(
                    average, values[row], m, radius[row], turned, one, two, three, steps
                )
            _add_path(steps, values[row], n, m, weights[row], sums, counts)
        rate = 2 * rates[step]
        for c in range(n_channels):
            for i in range(n):
                share = min(rate * counts[i], 1.0)
                average[c, i] += share * (sums[c, i] / counts[i] - average[c, i])


def follow(work: SubgradientSteps, cancel: np.ndarray) -> MovedAverage:
    """Take all steps of some work.

    Parameters
    ----------
    work : SubgradientSteps
        The work.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    MovedAverage
        The average after all steps.
    """
    series, n = work.series, int(work.average.lengths[0])
    found = MovedAverage(work.average.values.copy(), np.zeros(work.order.size))
    average = found.values[0, :, :n].copy()
    _follow(
        read_only(series.values), read_only(series.lengths), work.order, work.weights, work.rates,
        work.batch_size, work.warping.radius(n, series.lengths), average,
        found.costs, cancel,
    )  # fmt: skip
    found.values[0, :, :n] = average
    return found


def step_bytes(n: int, m: int, n_channels: int) -> int:
    """Bytes that `follow` needs for series of n and m points."""
    return n * (n + m) + 8 * (n_channels * (m + 3 * n) + 4 * (n + 2))
