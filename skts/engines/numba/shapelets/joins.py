"""Distances of all windows of some series to all series on the CPU.

The covariances of the windows of a series with those of several others are walked down along
their diagonals (`walk`, beside this module): each serves the best match of its row in one series
and that of its column in the other. First rows and columns are sums of raw products that grow from
one length to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT
from ...host import kernel
from ...host.windows import statistics
from ..profile.walk import FINITE
from .matches import describe
from .walk import DIAGONALS, LANES, walk

__all__ = ["SeriesBlock", "Prepared", "joins", "less_means", "prepare", "raw"]

_LOWEST = -1e300
#: Series whose best columns are kept before they are written.
TOGETHER = 8
#: Just below the square of the distance that a constant window has from any other.
_BELOW_ONE = 1 - FLOAT64_UNIT


class Prepared(NamedTuple):
    """Statistics for joins of the windows of some series of one channel, for several lengths.

    Attributes
    ----------
    mean, lead, trail, weight : ndarray of shape (n_lengths, n_series, n_windows)
        Means of the centred windows; the factors of steps; 1 / norm, 0 where constant.
    q, s, w : ndarray of shape (n_lengths, n_groups, n_columns * LANES)
        Trail, lead and weight of LANES series side by side.
    constant : ndarray of shape (n_lengths, n_series, n_windows), bool
        Which windows are constant.
    largest : ndarray of shape (n_lengths, n_series, 4)
        Largest norm, step, weight and magnitude of each series.
    """

    mean: np.ndarray
    lead: np.ndarray
    trail: np.ndarray
    weight: np.ndarray
    q: np.ndarray
    s: np.ndarray
    w: np.ndarray
    constant: np.ndarray
    largest: np.ndarray


class SeriesBlock(NamedTuple):
    """Series whose windows are compared with those of all series.

    Attributes
    ----------
    centered : ndarray of shape (n_series, n_timepoints)
        All series less their means, from `less_means`.
    lengths : ndarray of shape (n_series,)
        Points of each series.
    first, stop : int
        The block; `first` is a multiple of LANES, and `stop` is one or is the end.
    run : ndarray of shape (n_lengths,)
        Lengths of windows, ascending.
    """

    centered: np.ndarray
    lengths: np.ndarray
    first: int
    stop: int
    run: np.ndarray


@kernel
def raw(values, lengths, first, length, squares, cancel):
    """Squared distances, over the length, of windows as they are: of all pairs, point by point."""
    for a in range(squares.shape[0]):
        for i in range(lengths[first + a] - length + 1):
            if cancel[0]:
                return
            for b in range(values.shape[0]):
                least = np.inf
                for j in range(lengths[b] - length + 1):
                    total = 0.0
                    for t in range(length):
                        d = values[first + a, i + t] - values[b, j + t]
                        total += d * d
                    least = min(least, total)
                squares[a, i, b] = least / length


@kernel
def less_means(values, lengths):
    """Series less their means, of shape (n_series, n_timepoints)."""
    n, width = values.shape
    centered = np.zeros((n, width))
    for b in range(n):
        middle = values[b, : lengths[b]].mean()
        for t in range(lengths[b]):
            centered[b, t] = values[b, t] - middle
    return centered


def prepare(
    values: np.ndarray,
    lengths: np.ndarray,
    centered: np.ndarray,
    run: np.ndarray,
    cancel: np.ndarray,
) -> Prepared:
    """Describe the windows of some series of one channel, for several lengths; see `Prepared`.

    What is returned is arbitrary once `cancel` is set.
    """
    n, width = values.shape
    most = width - int(run[0]) + 1
    shape = run.size, n, most
    # the walk looks a few columns ahead
    packed = run.size, -(-n // LANES), (most + DIAGONALS) * LANES
    mean, lead, trail, weight = np.zeros((4, *shape))
    q, s, w = np.zeros((3, *packed))
    constant, largest = np.zeros(shape, np.bool_), np.zeros((run.size, n, 4))
    made = Prepared(mean, lead, trail, weight, q, s, w, constant, largest)
    _describe_windows(values, lengths, centered, run, made, cancel)
    return made


@kernel
def _describe_windows(values, lengths, centered, run, made, cancel):
    """Write what `prepare` describes."""
    mean, lead, trail, weight, q, s, w, constant, largest = made
    n, width = values.shape
    for k in range(run.size):
        length = run[k]
        for b in range(n):
            if cancel[0]:
                return
            size, line = lengths[b], centered[b]
            _, inverse, flat, _ = describe(values[b, :size].copy(), length, np.bool_(True), cancel)
            means, deviations, _, _ = statistics(line[:size], length, None, cancel)
            for i in range(size - length + 1):
                mean[k, b, i] = means[i]
                weight[k, b, i] = inverse[i] / np.sqrt(length)
                constant[k, b, i] = flat[i]
                if i > 0:
                    new, old = line[i + length - 1], line[i - 1]
                    lead[k, b, i] = (new - old) / 2
                    trail[k, b, i] = (new - means[i]) + (old - means[i - 1])
                step = abs(lead[k, b, i]) + abs(trail[k, b, i])
                largest[k, b, 0] = max(largest[k, b, 0], np.sqrt(length) * deviations[i])
                largest[k, b, 1] = max(largest[k, b, 1], step)
                largest[k, b, 2] = max(largest[k, b, 2], weight[k, b, i])
                place = i * LANES + b % LANES
                q[k, b // LANES, place] = trail[k, b, i]
                s[k, b // LANES, place] = lead[k, b, i]
                w[k, b // LANES, place] = weight[k, b, i]
            for t in range(width):
                largest[k, b, 3] = max(largest[k, b, 3], abs(line[t]))


@kernel(fastmath=FINITE)
def _add_products(out, points, window, start, stop):
    """Add the products of points `start` to `stop` of a window with those of a line to sums."""
    t = start
    while t + 8 <= stop:
        a, b, c, d = window[t], window[t + 1], window[t + 2], window[t + 3]
        e, f, g, h = window[t + 4], window[t + 5], window[t + 6], window[t + 7]
        p0, p1, p2, p3 = points[t:], points[t + 1 :], points[t + 2 :], points[t + 3 :]
        p4, p5, p6, p7 = points[t + 4 :], points[t + 5 :], points[t + 6 :], points[t + 7 :]
        for j in range(out.size):
            one = a * p0[j] + b * p1[j] + c * p2[j] + d * p3[j]
            two = e * p4[j] + f * p5[j] + g * p6[j] + h * p7[j]
            out[j] += one + two
        t += 8
    while t < stop:
        x, line = window[t], points[t:]
        for j in range(out.size):
            out[j] += x * line[j]
        t += 1


@kernel
def _best_of(x, y, length, weights):
    """Best score of a centred window with all windows of a line: those that are normal."""
    best = _LOWEST
    middle = x[:length].mean()
    for j in range(y.size - length + 1):
        if weights[j] == 0:
            continue
        mean, total = y[j : j + length].mean(), 0.0
        for t in range(length):
            total += (x[t] - middle) * (y[j + t] - mean)
        best = max(best, total * weights[j])
    return best


@kernel
def _next(squares, end, n_block, n_windows, n):
    """The array of the next length, and where it ends."""
    after = end + n_block * n_windows * n
    return squares[end:after].reshape(n_block, n_windows, n), after


@kernel
def _square(correlation):
    """The squared distance over the length; between loud and quiet stretches scores may be none."""
    square = 2.0 - 2.0 * correlation
    return min(square, 4.0) if square >= 0 else 0.0


@kernel
def joins(block, prepared, squares, cancel):
    """Squared distances, over the length, of all windows of a block of series to all series.

    Group by group of LANES series: each series of the block is walked with the group, for one
    length after the other. Where the group belongs to the block, and comes behind the series, the
    columns of the walk serve the windows of the group.

    One function of some 90 lines: with its parts apart, and arrays handed on in tuples, a pair of
    short series took a tenth more; `walk` takes its arrays one by one for the same reason.

    Parameters
    ----------
    block : SeriesBlock
        Series and lengths.
    prepared : Prepared
        What `prepare` returns.
    squares : ndarray of shape (n_cells,)
        Written: for each length an array of shape (stop - first, n_windows, n_series).
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    centered, lengths, first, stop, run = block
    n, width = centered.shape
    most = width - run[0] + 1
    first_row, first_column = np.empty((LANES, most)), np.empty((LANES, most))
    seed_row, seed_column = np.empty((LANES, most)), np.empty((LANES, most))
    best_a = np.empty(most * LANES)
    best_bs = np.empty((run.size, TOGETHER, (most + DIAGONALS + 1) * LANES))
    cov = np.empty(DIAGONALS * LANES)
    mean, lead, trail, weight, q, s, w, constant, _ = prepared
    for group in range((n + LANES - 1) // LANES):
        begin, count = group * LANES, min(LANES, n - group * LANES)
        inside = first <= begin < stop
        longest = lengths[begin]
        for b in range(begin + 1, begin + count):
            longest = max(longest, lengths[b])
        for a in range(first, min(stop, begin + LANES) if inside else stop):
            if cancel[0]:
                return
            both = inside and a < begin
            first_row[:] = 0.0
            first_column[:] = 0.0
            before = end = np.int64(0)  # no literals, for which callees are compiled again
            for k in range(run.size):
                length = run[k]
                out, end = _next(squares, end, stop - first, width - length + 1, n)
                n_a, n_b = lengths[a] - length + 1, longest - length + 1
                for lane in range(count):
                    b = begin + lane
                    own = lengths[b] - length + 1
                    _add_products(first_row[lane, :own], centered[b], centered[a], before, length)
                    _add_products(
                        first_column[lane, :n_a], centered[a], centered[b], before, length
                    )
                    for j in range(own):
                        at = first_row[lane, j]
                        seed_row[lane, j] = at - length * (mean[k, a, 0] * mean[k, b, j])
                    for i in range(n_a):
                        at = first_column[lane, i]
                        seed_column[lane, i] = at - length * (mean[k, a, i] * mean[k, b, 0])
                    seed_row[lane, own:n_b] = 0.0
                for lane in range(count, LANES):
                    seed_row[lane, :n_b] = 0.0
                    seed_column[lane, :n_a] = 0.0
                before = length
                best_a[: n_a * LANES] = _LOWEST
                slot = (a - first) % TOGETHER
                best_b = best_bs[k, slot]
                if both:
                    best_b[: (n_b + DIAGONALS + 1) * LANES] = _LOWEST
                    walk(
                        seed_row, seed_column, q[k, group], s[k, group], w[k, group], best_b,
                        lead[k, a], trail[k, a], weight[k, a], best_a, n_a, n_b, cov, True,
                    )  # fmt: skip
                else:
                    walk(
                        seed_row, seed_column, q[k, group], s[k, group], w[k, group], best_b,
                        lead[k, a], trail[k, a], weight[k, a], best_a, n_a, n_b, cov, None,
                    )  # fmt: skip
                for i in range(n_a):
                    for lane in range(count):
                        best = best_a[i * LANES + lane]
                        if best <= 0 and lengths[begin + lane] < longest:
                            # the place of a window that is not there has the score 0
                            b = begin + lane
                            best = _best_of(
                                centered[a, i:], centered[b, : lengths[b]], length, weight[k, b]
                            )
                        out[a - first, i, begin + lane] = _square(best * weight[k, a, i])
                if both and (slot == TOGETHER - 1 or a == begin - 1):
                    # columns of several series at once: neighbours in memory
                    for lane in range(count):
                        b = begin + lane
                        for j in range(lengths[b] - length + 1):
                            place = j * LANES + lane
                            for x in range(slot + 1):
                                best = best_bs[k, x, place] * w[k, group, place]
                                out[b - first, j, a - slot + x] = _square(best)
    end = np.int64(0)
    for k in range(run.size):
        out, end = _next(squares, end, stop - first, width - run[k] + 1, n)
        _mend(out, first, lengths, run[k], constant[k])


@kernel
def _mend(squares, first, lengths, length, constant):
    """Write the distances of constant windows, and of windows to their own series.

    Exactly 1 means a distance that is 1 for certain, where the series has a constant window.
    """
    for b in range(lengths.size):
        some, every = False, True
        for j in range(lengths[b] - length + 1):
            some = some or constant[b, j]
            every = every and constant[b, j]
        for a in range(squares.shape[0]):
            if not some and a + first != b:
                for i in range(lengths[first + a] - length + 1):
                    if constant[first + a, i]:
                        squares[a, i, b] = 1.0
                continue
            for i in range(lengths[first + a] - length + 1):
                if a + first == b or constant[first + a, i]:
                    squares[a, i, b] = 0.0
                elif every or squares[a, i, b] > 1 + 1e-9:
                    squares[a, i, b] = 1.0
                elif squares[a, i, b] >= _BELOW_ONE:
                    squares[a, i, b] = _BELOW_ONE
