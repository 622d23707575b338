"""Shapelets on the CPU: certified matches, segment maxima of joins, and order lines.

The covariances of the windows of two series are walked down row by row, as in `join`: each serves
the best match of its row in one series and that of its column in the other. The first row and
column of a pair are sums of raw products that grow by one product from one length to the next.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .join import FINITE, larger, seeds
from .windows import distances, statistics

__all__ = ["joins", "match", "prepare", "raw", "scan", "seed"]

CONSTANT = 2.0**-40
_LOWEST = -1e300


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
            flat = high[i] - low[i] <= CONSTANT * max(abs(low[i]), abs(high[i]))
            constant[i] = flat or deviation[i] == 0
            inverse[i] = 0.0 if constant[i] else 1.0 / deviation[i]
    return filled, mean, inverse, constant, finite


@njit(nogil=True, cache=True, error_model="numpy")
def match(queries, ends, channels, values, lengths, found, starts, cancel, normalize):
    """Best match of each query, in `queries` up to its end, in each series; the first of equals."""
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
            out = np.empty(mean.size)
            distances(a, 0, mean_a[0], inverse_a[0], points, 0, mean, inverse, length, out, cancel)
            for j in range(out.size):
                if not finite[j]:
                    continue
                distance = out[j]
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
def prepare(values, lengths, length, normalize):
    """What joins need of the windows of some series of one channel.

    Returns
    -------
    centered : ndarray of shape (n_series, n_timepoints)
        The series less their means.
    mean, lead, trail, weight : ndarray of shape (n_series, n_windows)
        Means of the centred windows; the factors of steps; 1 / norm, 0 where constant.
    constant : ndarray of shape (n_series, n_windows), bool
        Which windows are constant.
    largest : ndarray of shape (n_series, 5)
        Largest norm, step, weight and magnitude of each series, and the size of its mean.
    """
    n, width = values.shape
    n_windows = width - length + 1
    centered = np.zeros((n, width))
    mean, lead = np.zeros((n, n_windows)), np.zeros((n, n_windows))
    trail, weight = np.zeros((n, n_windows)), np.zeros((n, n_windows))
    constant, largest = np.zeros((n, n_windows), np.bool_), np.zeros((n, 5))
    for b in range(n):
        size = lengths[b]
        middle = values[b, :size].mean()
        centered[b, :size] = values[b, :size] - middle
        _, _, inverse, flat, _ = _describe(values[b, :size], length, normalize)
        means, deviations, _, _ = statistics(centered[b, :size], centered[b, :size], length)
        for i in range(size - length + 1):
            mean[b, i] = means[i]
            weight[b, i] = inverse[i] / np.sqrt(length)
            constant[b, i] = flat[i]
            if i > 0:
                new, old = centered[b, i + length - 1], centered[b, i - 1]
                lead[b, i] = (new - old) / 2
                trail[b, i] = (new - means[i]) + (old - means[i - 1])
            largest[b, 0] = max(largest[b, 0], np.sqrt(length) * deviations[i])
            largest[b, 1] = max(largest[b, 1], abs(lead[b, i]) + abs(trail[b, i]))
            largest[b, 2] = max(largest[b, 2], weight[b, i])
        largest[b, 3], largest[b, 4] = np.abs(centered[b]).max(), abs(middle)
    return centered, mean, lead, trail, weight, constant, largest


@njit(nogil=True, cache=True, error_model="numpy")
def seed(centered, lengths, rows, cols, before, length, edges, cancel):
    """Bring raw products of first windows from one length (0: none) to the next.

    ``edges[a, b]`` holds those of the first window of a row with all windows of a column, both
    counted from the first of their ranges.
    """
    for a in range(rows[0], rows[1]):
        for b in range(cols[0], cols[1]):
            if cancel[0]:
                return
            n = lengths[b] - length + 1
            edge = edges[a - rows[0], b - cols[0]]
            if before == 0:
                seeds(centered[b, : lengths[b]], 0, 0.0, centered[a, :length], edge[:n])
            else:
                for t in range(before, length):
                    x = centered[a, t]
                    for j in range(n):
                        edge[j] += x * centered[b, j + t]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def _step(cov, out, p, r, weight, q, s, w, best_of_column, width):
    """Go one row down; return the best score of the row, without its own weight."""
    best = _LOWEST
    for j in range(width):
        c = cov[j] + p * q[j] + r * s[j]
        out[j] = c
        best = larger(c * w[j], best)
        best_of_column[j] = larger(c * weight, best_of_column[j])
    return best


@njit(nogil=True, cache=True, error_model="numpy")
def joins(prepared, lengths, a_first, a_stop, length, edges, backward, squares, cancel):
    """Squared distances, over the length, of all windows of a block of series to all series.

    ``squares[a - a_first, i, b]`` is written; `backward` holds the edges of all series against the
    block, ``backward[b, a - a_first]``, so that pairs need each product of edges once.
    """
    _, mean, lead, trail, weight, constant, _ = prepared
    n_windows = mean.shape[1]
    cov = np.zeros((2, n_windows + 1))
    best_of_column = np.empty(n_windows)
    for a in range(a_first, a_stop):
        na = lengths[a] - length + 1
        for b in range(mean.shape[0]):
            if cancel[0]:
                return
            nb = lengths[b] - length + 1
            inside = a_first <= b < a_stop
            if b == a:
                squares[a - a_first, :na, a] = 0.0
                continue
            if inside and b < a:
                continue
            row_edge, column_edge = edges[a - a_first, b], backward[b, a - a_first]
            q, s, w = trail[b, :nb], lead[b, :nb], weight[b, :nb]
            best_of_column[:] = _LOWEST
            for j in range(nb):
                cov[0, j] = row_edge[j] - length * (mean[a, 0] * mean[b, j])
            for i in range(na):
                p, r = lead[a, i], trail[a, i]
                if i > 0:
                    edge = column_edge[i] - length * (mean[a, i] * mean[b, 0])
                    cov[i & 1, 0] = edge - (p * q[0] + r * s[0])
                else:
                    p = r = 0.0
                best = _step(
                    cov[i & 1], cov[(i + 1) & 1, 1:], p, r, weight[a, i], q, s, w,
                    best_of_column, nb,
                )  # fmt: skip
                squares[a - a_first, i, b] = max(0.0, 2.0 - 2.0 * best * weight[a, i])
            if inside:
                for j in range(nb):
                    squares[b - a_first, j, a] = max(0.0, 2.0 - 2.0 * best_of_column[j] * w[j])
    for b in range(mean.shape[0]):
        nb = lengths[b] - length + 1
        some, every = False, True
        for j in range(nb):
            some = some or constant[b, j]
            every = every and constant[b, j]
        for a in range(a_first, a_stop):
            for i in range(lengths[a] - length + 1):
                if a == b:
                    continue
                if constant[a, i]:
                    squares[a - a_first, i, b] = 0.0 if some else 1.0
                elif every:
                    squares[a - a_first, i, b] = 1.0
                elif some:
                    squares[a - a_first, i, b] = min(1.0, squares[a - a_first, i, b])


@njit(nogil=True, cache=True, error_model="numpy")
def _promise(squares, error, labels, tables, size_table, weights, spare, leaf, needed, keys):
    """What (gain, gap) of an order line do not exceed, and the gap that is reached for certain.

    Returns gain -1 without a cut; a gap of -inf where nothing is certain.
    """
    n = labels.size
    shift = 0
    while (1 << shift) < n:
        shift += 1
    mask = (1 << shift) - 1
    bits = squares.view(np.int64)
    for k in range(n):
        keys[k] = (bits[k] & ~mask) | k
    keys[:n].sort()
    n_classes = weights.size
    left, right = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    for k in range(n):
        right[labels[k]] += 1
    whole = size_table[n]
    for c in range(n_classes):
        whole -= tables[c, right[c]]
    each_left, each_right = np.int64(0), np.int64(0)
    for c in range(n_classes):
        each_right += tables[c, right[c]]
    best, n_best, run, longest = np.int64(-1), 0, 1, 1
    places = np.empty(n, np.int64)
    equal = spare[0] > 0
    for k in range(n - 1):
        label = labels[keys[k] & mask]
        each_left += tables[label, left[label] + 1] - tables[label, left[label]]
        each_right += tables[label, right[label] - 1] - tables[label, right[label]]
        left[label] += 1
        right[label] -= 1
        here, there = squares[keys[k] & mask], squares[keys[k + 1] & mask]
        if (here == there and here == 1.0) or (error == 0 and here == there):
            run = run + 1 if run > 1 else 1
            longest = max(longest, run)
            continue
        if there - here <= 2 * error:
            run += 1
            longest = max(longest, run)
        else:
            run = 1
        if k + 1 < leaf or n - 1 - k < leaf:
            continue
        if equal:
            sides = size_table[k + 1] + size_table[n - 1 - k]
        else:
            on_left, on_right = 0.0, 0.0
            for c in range(n_classes):
                on_left += left[c] * weights[c]
                on_right += right[c] * weights[c]
            if min(on_left, on_right) < spare[1] * (1 - 1e-12):
                continue
            sides = np.int64(
                np.rint(2.0**40 * on_left * np.log(on_left))
                + np.rint(2.0**40 * on_right * np.log(on_right))
            )
        gain = whole - sides + each_left + each_right
        if gain > best:
            best, n_best = gain, 0
        if gain == best:
            places[n_best] = k
            n_best += 1
    if longest > 1:
        # the order within a run is open, and so is where it can be cut
        share = min(0.5, longest * spare[2])
        doubt = -share * np.log(share) - (1 - share) * np.log(1 - share)
        return max(best, 0) + np.int64(doubt * 2.0**40 * spare[3]) + 2**12, np.inf, -np.inf
    if best < needed:
        return best, -np.inf, -np.inf
    if not equal:
        # logarithms of the host are compared with other ones
        return best + 2**12, np.inf, -np.inf
    low, high = 0.0, -np.inf
    total, loose = 0.0, 0.0
    for k in range(n):
        total += np.sqrt(squares[k])
        loose = max(loose, np.sqrt(squares[k] + error) - np.sqrt(max(0.0, squares[k] - error)))
    k, before = 0, 0.0
    for way in range(n_best):
        while k <= places[way]:
            before += np.sqrt(squares[keys[k] & mask])
            k += 1
        high = max(high, (total - before) / (n - k) - before / k)
    low = high - 2 * loose - 1e-12
    return best, high + 2 * loose + 1e-12, low


@njit(nogil=True, cache=True, error_model="numpy")
def scan(
    squares, errors, exact, counts, members, labels, tables, size_table, weights, spare, leaf,
    before, ways, best, gains, gaps, where, offset, cancel,
):  # fmt: skip
    """Judge the candidates of a block; write those that could be the best.

    Parameters
    ----------
    squares : ndarray of shape (n_block, n_windows, n_series)
        Squared distances.
    errors : ndarray of shape (n_block, n_windows)
        What they are wrong by at most.
    exact : ndarray of shape (n_block, n_windows), bool
        Candidates whose distances are exact.
    counts : ndarray of shape (n_block,)
        Windows of each series.
    members : ndarray of shape (n_members,)
        Columns of `squares` that belong to the node.
    labels, tables, size_table, weights, spare, leaf
        Of the criterion; see `ShapeletTiles._tables`.
    before : ndarray of shape (n_members,)
        Squared distances of the literals before.
    ways : ndarray of int
        0 the candidate alone, 1 and, 2 or.
    best : tuple of (int, float)
        A gain and gap that the best one reaches for certain.
    gains, gaps, where : ndarray
        Written from `offset` on: where is (series of the block, start, way).

    Returns
    -------
    series, start : int
        Where to go on; the list was full before the end.
    count : int
        Entries on the list.
    best : tuple
        As given, raised.
    """
    gain_best, gap_best = best
    count = 0
    n = members.size
    line, keys = np.empty(n), np.empty(n, np.int64)
    shift = 2.0**-52
    while shift * 2.0**52 < n:
        shift *= 2
    for a in range(offset[0], counts.size):
        for i in range(offset[1] if a == offset[0] else 0, counts[a]):
            if cancel[0]:
                return a, i, count, (gain_best, gap_best)
            if count + ways.size > gains.size:
                return a, i, count, (gain_best, gap_best)
            for way in range(ways.size):
                error = 0.0
                if not exact[a, i] or ways[way]:
                    error = errors[a, i] + 8 * shift + 1e-13
                changed = ways[way] == 0
                for k in range(n):
                    value = squares[a, i, members[k]]
                    if ways[way] == 1:
                        changed = changed or value + error >= before[k]
                        value = max(value, before[k])
                    elif ways[way] == 2:
                        changed = changed or value - error <= before[k]
                        value = min(value, before[k])
                    line[k] = value
                if not changed:
                    continue
                gain, gap, certain = _promise(
                    line, error, labels, tables, size_table, weights, spare, leaf, gain_best, keys
                )
                if gain < 0 or gain < gain_best or (gain == gain_best and gap < gap_best):
                    continue
                gains[count], gaps[count] = gain, gap
                where[count, 0], where[count, 1], where[count, 2] = a, i, way
                count += 1
                if certain > -np.inf and (
                    gain > gain_best or (gain == gain_best and certain > gap_best)
                ):
                    gain_best, gap_best = gain, certain
    return counts.size, 0, count, (gain_best, gap_best)
