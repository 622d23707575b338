"""Shapelets on the CPU: certified matches, segment maxima of joins, and order lines.

The covariances of the windows of a series with those of several others are walked down along
their diagonals (`shapelet_walk`): each serves the best match of its row in one series and that of
its column in the other. First rows and columns are sums of raw products that grow from one length
to the next.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ...core.constants import CONSTANT, SMALLEST_RANGE, TOLERANCE
from ...host.windows import distances, statistics
from ..profile.walk import FINITE
from .walk import DIAGONALS, LANES, walk

__all__ = ["joins", "match", "pack", "prepare", "raw", "scan"]

_LOWEST = -1e300
#: Classes of an open run whose subsets are all tried.
MANY = 6
#: Series whose best columns are kept before they are written.
TOGETHER = 8
#: Just below the square of the distance that a constant window has from any other.
_BELOW_ONE = 1 - 2.0**-53
#: Squares a < b with b - a above this share of a, or of 1 if that is more, are those of distances
#: that are farther apart than `TOLERANCE` allows for equal ones, and twice that.
_APART = 8 * TOLERANCE
#: Gain of an order line without a cut: below all that roundings make of 0.
_NONE = -(2**62)
#: Roots of sums of squares beyond these may have lost squares that are too small or too large.
_SMALL, _LARGE = 2.0**-450, 2.0**450


@njit(nogil=True, cache=True, error_model="numpy")
def _describe(points, length, normalize):
    """Mean and inverse deviation of all windows, which are constant, which are finite."""
    n = points.size - length + 1
    finite = np.ones(n, np.bool_)
    filled = points.copy()
    for t in range(points.size):
        if not np.isfinite(points[t]):
            filled[t] = 0.0
            finite[max(0, t - length + 1) : t + 1] = False
    mean, deviation, low, high = statistics(filled, filled, length)
    inverse, constant = np.zeros(n), np.zeros(n, np.bool_)
    for i in range(n):
        if normalize is None:
            mean[i], inverse[i] = 0.0, 1.0
        else:
            largest = max(abs(low[i]), abs(high[i]))
            constant[i] = high[i] - low[i] <= max(CONSTANT * largest, SMALLEST_RANGE)
            inverse[i] = 0.0 if constant[i] else 1.0 / deviation[i]
    return filled, mean, inverse, constant, finite


@njit(nogil=True, cache=True, error_model="numpy")
def _scaled_distance(a, b, j):
    """The norm of the difference of `a` and the points of `b` from `j` on, whatever its size."""
    largest = 0.0
    for t in range(a.size):
        largest = max(largest, abs(a[t] - b[j + t]))
    if largest == 0:
        return 0.0
    # a power of two: the bits are those of the plain sum, where that holds all squares
    unit = 2.0 ** (math.frexp(largest)[1] - 1)
    total = 0.0
    for t in range(a.size):
        d = (a[t] - b[j + t]) / unit
        total += d * d
    return np.sqrt(total) * unit


@njit(nogil=True, cache=True, error_model="numpy")
def match(queries, ends, channels, values, lengths, found, starts, cancel, normalize):
    """Best match of each query, in `queries` up to its end, in each series; the first of equals."""
    row = np.zeros(1, np.int64)  # the one window of a query
    for b in range(values.shape[0]):
        n = lengths[b]
        before, channel_before = 0, -1
        points, mean, inverse, constant, finite = _describe(np.zeros(1), 1, normalize)
        for query in range(ends.size):
            if cancel[0]:
                return
            first = ends[query - 1] if query else 0
            own = queries[first : ends[query]]
            length = own.size
            found[query, b], starts[query, b] = np.inf, -1
            if length > n:
                continue
            if length != before or channels[query] != channel_before:
                before, channel_before = length, channels[query]
                points, mean, inverse, constant, finite = _describe(
                    values[b, channels[query], :n], length, normalize
                )
            a, mean_a, inverse_a, constant_a, finite_a = _describe(own, length, normalize)
            if not finite_a[0]:
                continue
            out = np.empty((1, mean.size))
            distances(
                a, row, mean_a, inverse_a, points, 0, mean, inverse, length, out, cancel
            )  # fmt: skip
            for j in range(mean.size):
                if not finite[j]:
                    continue
                distance = out[0, j]
                if normalize is None and not (_SMALL < distance < _LARGE):
                    distance = _scaled_distance(own, points, j)
                if constant[j] != constant_a[0]:
                    distance = np.sqrt(float(length))
                elif constant[j]:
                    distance = 0.0
                if distance < found[query, b]:
                    found[query, b], starts[query, b] = distance, j


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
def pack(values, lengths):
    """Series less their means, as they are and with LANES of them side by side.

    Returns
    -------
    middles : ndarray of shape (n_series,)
        The means.
    centered : ndarray of shape (n_series, n_timepoints)
        The series less those.
    """
    n, width = values.shape
    middles, centered = np.empty(n), np.zeros((n, width))
    for b in range(n):
        middles[b] = values[b, : lengths[b]].mean()
        for t in range(lengths[b]):
            centered[b, t] = values[b, t] - middles[b]
    return middles, centered


@njit(nogil=True, cache=True, error_model="numpy")
def prepare(values, lengths, middles, centered, run):
    """What joins need of the windows of some series of one channel, for several lengths.

    Returns
    -------
    mean, lead, trail, weight : ndarray of shape (n_lengths, n_series, n_windows)
        Means of the centred windows; the factors of steps; 1 / norm, 0 where constant.
    q, s, w : ndarray of shape (n_lengths, n_groups, n_columns * LANES)
        Trail, lead and weight of LANES series side by side.
    constant : ndarray of shape (n_lengths, n_series, n_windows), bool
        Which windows are constant.
    largest : ndarray of shape (n_lengths, n_series, 5)
        Largest norm, step, weight and magnitude of each series, and the size of its mean.
    """
    n, width = values.shape
    most = width - run[0] + 1
    shape = run.size, n, most
    mean, lead, trail, weight = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    # the walk looks a few columns ahead
    packed = run.size, (n + LANES - 1) // LANES, (most + DIAGONALS) * LANES
    q, s, w = np.zeros(packed), np.zeros(packed), np.zeros(packed)
    constant, largest = np.zeros(shape, np.bool_), np.zeros((run.size, n, 5))
    for k in range(run.size):
        length = run[k]
        for b in range(n):
            size, line = lengths[b], centered[b]
            _, _, inverse, flat, _ = _describe(values[b, :size], length, True)
            means, deviations, _, _ = statistics(line[:size], line[:size], length)
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
            largest[k, b, 3], largest[k, b, 4] = np.abs(line).max(), abs(middles[b])
    return mean, lead, trail, weight, q, s, w, constant, largest


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
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


@njit(nogil=True, cache=True, error_model="numpy")
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


@njit(nogil=True, cache=True, error_model="numpy")
def _next(squares, end, n_block, n_windows, n):
    """The array of the next length, and where it ends."""
    after = end + n_block * n_windows * n
    return squares[end:after].reshape(n_block, n_windows, n), after


@njit(nogil=True, cache=True, error_model="numpy")
def _square(correlation):
    """The squared distance over the length; between loud and quiet stretches scores may be none."""
    square = 2.0 - 2.0 * correlation
    return min(square, 4.0) if square >= 0 else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def joins(centered, lengths, first, stop, run, prepared, squares, cancel):
    """Squared distances, over the length, of all windows of a block of series to all series.

    Parameters
    ----------
    centered : ndarray of shape (n_series, n_timepoints)
        From `pack`.
    lengths : ndarray of shape (n_series,)
        Points of each series.
    first, stop : int
        The block; `first` is a multiple of LANES, and `stop` is one or is the end.
    run : ndarray of shape (n_lengths,)
        Lengths of windows, ascending.
    prepared : tuple of ndarray
        What `prepare` returns.
    squares : ndarray of shape (n_cells,)
        Written: for each length an array of shape (stop - first, n_windows, n_series).
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
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
        longest = lengths[begin : begin + count].max()
        for a in range(first, min(stop, begin + LANES) if inside else stop):
            if cancel[0]:
                return
            both = inside and a < begin
            first_row[:] = 0.0
            first_column[:] = 0.0
            before = end = 0
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
    end = 0
    for k in range(run.size):
        out, end = _next(squares, end, stop - first, width - run[k] + 1, n)
        _mend(out, first, lengths, run[k], constant[k])


@njit(nogil=True, cache=True, error_model="numpy")
def _mend(squares, first, lengths, length, constant):
    """Put in what constant windows are at, and the distance to the own series.

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


@njit(nogil=True, cache=True, error_model="numpy")
def _order(line, order, ordered, heads, buckets):
    """Put a line in order: into more buckets than there are values, then by insertion."""
    n, n_buckets = line.size, heads.size - 1
    low, high = line[0], line[0]
    for k in range(n):
        low, high = min(low, line[k]), max(high, line[k])
    scale = (n_buckets - 1) / (high - low) if high > low else 0.0
    if not scale < 1e300:
        scale = 0.0
    heads[:] = 0
    for k in range(n):
        buckets[k] = int((line[k] - low) * scale)
    for k in range(n):
        heads[buckets[k] + 1] += 1
    for k in range(n_buckets):
        heads[k + 1] += heads[k]
    for k in range(n):
        at = heads[buckets[k]]
        heads[buckets[k]] = at + 1
        ordered[at], order[at] = line[k], k
    for k in range(1, n):
        value, index = ordered[k], order[k]
        at = k
        while at > 0 and ordered[at - 1] > value:
            ordered[at], order[at] = ordered[at - 1], order[at - 1]
            at -= 1
        ordered[at], order[at] = value, index


@njit(nogil=True, cache=True, error_model="numpy")
def _sides(left, judge):
    """Entropy of both sides of a cut times their weight, without the terms of single classes."""
    _, _, sides, weights, counts, _, _, least, _, unit, _ = judge
    size, on_left, on_right = 0, 0.0, 0.0
    for c in range(counts.size):
        size += left[c]
        on_left += left[c] * weights[c]
        on_right += (counts[c] - left[c]) * weights[c]
    if sides.size > 0:
        return sides[size], True
    both = np.int64(np.rint(unit * on_left * np.log(max(on_left, 1e-300))))
    both += np.int64(np.rint(unit * on_right * np.log(max(on_right, 1e-300))))
    return both, min(on_left, on_right) >= least * (1 - 1e-12)


@njit(nogil=True, cache=True, error_model="numpy")
def _open_gain(left, run, judge, best, n_best, places, each):
    """What a cut among distances of unknown order may gain: the best of all subsets on the left.

    `left` holds the numbers of classes up to the end of the run, `run` those within. The gain is
    convex in the numbers on the left, so each class lies on one side as a whole at its largest.
    """
    changes, counts = judge[1], judge[4]
    n_open, subset = 0, np.empty(MANY, np.int64)
    for c in range(run.size):
        if run[c] > 0:
            if n_open < MANY:
                subset[n_open] = c
            n_open += 1
    # cuts before and behind the run count by themselves, unless they leave a side too small
    limited = judge[6] > 1 or judge[7] > 0
    if n_open < 2 and not limited:
        return best, n_best, True
    if n_open > MANY:
        return best, n_best, False
    tried = left.copy()
    n_ways = 1 << n_open
    for chosen in range(0 if limited else 1, n_ways if limited else n_ways - 1):
        total, size = each, 0
        for k in range(n_open):
            c = subset[k]
            tried[c] = left[c] - (run[c] if chosen >> k & 1 else 0)
            # these go to the right
            for m in range(tried[c], left[c]):
                total -= changes[c, m] - changes[c, counts[c] - m - 1]
        for c in range(counts.size):
            size += tried[c]
        if size == 0 or size == judge[0].size:
            continue
        gain = judge[5] - _sides(tried, judge)[0] + total
        if gain > best:
            best, n_best = gain, 0
        if gain == best and n_best < places.size:
            places[n_best] = size - 1
            n_best += 1
    return best, n_best, True


@njit(nogil=True, cache=True, error_model="numpy")
def _promise(line, sure, error, errors, judge, needed, scratch):
    """What (gain, gap) of an order line do not exceed, and the gap that is reached for certain.

    Distances of which `sure` is true are exact, others off by their own of `errors`, and by
    `error` at most. Returns gain `_NONE` without a cut; a gap of -inf where nothing is certain.
    """
    labels, changes, sides, _, counts, whole, leaf, _, total_weight, unit, slack = judge
    order, ordered, heads, buckets, left, run, places, low = scratch
    n = labels.size
    _order(line, order, ordered, heads, buckets)
    near = False
    closest = 2 * error + _APART * max(1.0, ordered[n - 1] + error)
    for k in range(n - 1):
        near = near or ordered[k + 1] - ordered[k] <= closest
    if near:
        # the least that a distance from here on may be
        low[n] = np.inf
        for k in range(n - 1, -1, -1):
            own = 0.0 if sure[order[k]] else errors[order[k]]
            low[k] = min(low[k + 1], ordered[k] - own)
    left[:] = 0
    run[:] = 0
    equal = sides.size > 0
    best, n_best, each, begin = np.int64(_NONE), 0, np.int64(0), 0
    certain, bounded, high, spread = True, True, -np.inf, 0.0
    all_sure, opened = True, False
    for k in range(n):
        label = labels[order[k]]
        each += changes[label, left[label]] - changes[label, counts[label] - left[label] - 1]
        left[label] += 1
        if near:
            run[label] += 1
            own = 0.0 if sure[order[k]] else errors[order[k]]
            all_sure = all_sure and sure[order[k]]
            high = max(high, ordered[k] + own)
            if k < n - 1 and not high + _APART * max(1.0, high) < low[k + 1]:
                continue
            # what is exact may still be too close for a cut: only what is equal has none for sure
            if k > begin and not (all_sure and ordered[k] == ordered[begin]):
                opened = True
                before = best, n_best
                best, n_best, small = _open_gain(left, run, judge, best, n_best, places, each)
                bounded = bounded and small
                certain = certain and small and before == (best, n_best)
                spread = max(spread, np.sqrt(ordered[k]) - np.sqrt(ordered[begin]))
            run[:] = 0
            begin, all_sure = k + 1, True
        if k + 1 < leaf or n - 1 - k < max(leaf, 1):
            continue
        if equal:
            both = sides[k + 1]
        else:
            both, enough = _sides(left, judge)
            if not enough:
                continue
        gain = whole - both + each
        if gain > best:
            best, n_best = gain, 0
        if gain == best and n_best < places.size:
            places[n_best] = k
            n_best += 1
    if not bounded:
        # all that the classes can be told apart; entropies of the tables are rounded
        most = unit * total_weight * np.log(counts.size) * (1 + 2.0**-20)
        return np.int64(most) + slack + 2**12, np.inf, -np.inf
    if best == _NONE:
        return best, -np.inf, -np.inf
    loose = slack > 0 and (opened or not equal)
    if loose:
        best += slack
    if best < needed:
        return best, -np.inf, -np.inf
    if loose:
        return best, np.inf, -np.inf
    top, total, blur = -np.inf, 0.0, 0.0
    for k in range(n):
        total += np.sqrt(ordered[k])
        own = 0.0 if sure[order[k]] else errors[order[k]]
        blur = max(blur, np.sqrt(ordered[k] + own) - np.sqrt(max(0.0, ordered[k] - own)))
    # places of several runs may come in any order
    for k in range(n):
        low[k] = np.sqrt(ordered[k]) + (low[k - 1] if k > 0 else 0.0)
    for way in range(n_best):
        k = places[way]
        top = max(top, (total - low[k]) / (n - 1 - k) - low[k] / (k + 1))
    # sums are rounded, here and where distances are certified
    blur = 2 * (blur + spread) + 2.0**-50 * (n + 64) * (1.0 + np.sqrt(ordered[n - 1]))
    return best, top + blur, top - blur if certain else -np.inf


@njit(nogil=True, cache=True, error_model="numpy")
def scan(
    squares, weights, errors, floor, exact, flat, rows, counts, members, owns, judge, before,
    ways, best, gains, gaps, where, offset, cancel,
):  # fmt: skip
    """Judge the candidates of a block; write those that could be the best.

    Parameters
    ----------
    squares : ndarray of shape (n_block, n_windows, n_series)
        Squared distances.
    weights : ndarray of shape (n_block, n_windows)
        Weights of the candidates.
    errors : ndarray of shape (n_block, n_series)
        What squared distances are wrong by at most, by the weight of the candidate.
    floor : float
        To be added to that.
    exact : ndarray of shape (n_block, n_windows), bool
        Candidates whose distances are exact.
    flat : ndarray of shape (n_series,), bool
        Series with a constant window: squares of 1 are exact there.
    rows, counts : ndarray of shape (n_rows,)
        Which rows of the block to judge, and the windows of each.
    members : ndarray of shape (n_members,)
        Columns of `squares` that belong to the node.
    owns : ndarray of shape (n_rows,)
        The series of each row, as one of the members.
    judge : tuple
        Labels of the members; what entropies change by as the number of a class grows by one, for
        each class and number; entropies of both sides of all cuts, empty where weights differ;
        weights; numbers of each class; entropy of the node; least series and weight of a leaf;
        the weight of all; what a nat is; what gains may be off by. See `Tables`.
    before : ndarray of shape (n_members,)
        Squared distances of the literals before.
    ways : ndarray of int
        0 the candidate alone, 1 and, 2 or.
    best : tuple of (int, float)
        A gain and gap that the best one reaches for certain.
    gains, gaps, where : ndarray
        Written: `where` is (row, start, way).
    offset : tuple of int
        Row and start at which to begin.

    Returns
    -------
    row, start : int
        Where to go on; the list was full before the end.
    count : int
        Entries on the list.
    best : tuple
        As given, raised.
    """
    gain_best, gap_best = best
    count = 0
    n = members.size
    line, plain, off, worst = np.empty(n), np.empty(n), np.empty(n), np.empty(rows.size)
    for a in range(rows.size):
        worst[a] = 0.0
        for k in range(n):
            worst[a] = max(worst[a], errors[rows[a], members[k]])
    sure, plainly = np.empty(n, np.bool_), np.empty(n, np.bool_)
    scratch = (
        np.empty(n, np.int64), np.empty(n), np.empty(4 * n + 1, np.int64),
        np.empty(n, np.int64), np.empty(judge[3].size, np.int64), np.empty(judge[3].size, np.int64),
        np.empty(4 * n + 64, np.int64), np.empty(n + 1),
    )  # fmt: skip
    for a in range(offset[0], rows.size):
        row = rows[a]
        for i in range(offset[1] if a == offset[0] else 0, counts[a]):
            if cancel[0] or count + ways.size > gains.size:
                return a, i, count, (gain_best, gap_best)
            error, certain = worst[a] * weights[row, i] + floor, exact[row, i]
            for k in range(n):
                plain[k] = squares[row, i, members[k]]
                off[k] = errors[row, members[k]] * weights[row, i] + floor
                one = plain[k] == 1.0 and off[k] < 1e-9 and flat[members[k]]
                plainly[k] = certain or one
            plainly[owns[a]] = True
            for way in range(ways.size):
                changed = ways[way] == 0
                if ways[way] == 0:
                    line[:] = plain
                    sure[:] = plainly
                else:
                    sign = 1.0 if ways[way] == 1 else -1.0
                    for k in range(n):
                        # how far this distance is beyond the one before, in the way that counts
                        ahead = sign * (plain[k] - before[k])
                        line[k] = plain[k] if ahead > 0 else before[k]
                        sure[k] = ahead < -off[k] or plainly[k]
                        changed = changed or ahead > (-off[k] if not plainly[k] else 0.0)
                if not changed:
                    continue
                gain, gap, reached = _promise(line, sure, error, off, judge, gain_best, scratch)
                if gain < 0 or gain < gain_best or (gain == gain_best and gap < gap_best):
                    continue
                gains[count], gaps[count] = gain, gap
                where[count, 0], where[count, 1], where[count, 2] = a, i, way
                count += 1
                if reached > -np.inf and (
                    gain > gain_best or (gain == gain_best and reached > gap_best)
                ):
                    gain_best, gap_best = gain, reached
    return rows.size, 0, count, (gain_best, gap_best)
