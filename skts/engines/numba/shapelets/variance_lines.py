"""Order lines on the CPU: by how much a cut decreases the variance of targets at most.

As `order_lines`, for targets in place of classes. Where errors leave the order of a run of
distances open, any part of it may be on the left. The gain is a convex function of the weight and
the weighted sum on the left; of all parts of a run, those that are corners of the set of such pairs
hold its series with the least targets, or those with the largest, so that these alone are tried.
With equal weights the same holds of all parts of one size.
"""

from __future__ import annotations

import numpy as np

from ...core.constants import FLOAT64_UNIT
from ...families.shapelets.variance import LOW_BITS, WRONG
from ...host import kernel
from .order_lines import _APART, _NONE, _order

__all__ = ["promise_of_variance"]


@kernel
def _gain(weight, high, low, tables):
    """The gain of a cut by the weight and the parts of the sum on its left, not yet rounded."""
    near = float(weight)
    # in an order that rounds the sum once
    sums = (high + (low >> LOW_BITS)) * float(1 << LOW_BITS) + (low & ((1 << LOW_BITS) - 1))
    off = sums - tables.mean * near
    return tables.factor * (off * off) / (near * (float(tables.total_weight) - near))


@kernel
def _open_gain(tables, run, held, before):
    """The largest gain of cuts that divide a run of members in any way.

    `before` are the weight and the parts of the weighted sum left of the run. Writes the members in
    the order of their targets to `held`.
    """
    for k in range(run.size):
        member, place = run[k], k
        while place > 0 and tables.targets[held[place - 1]] > tables.targets[member]:
            held[place] = held[place - 1]
            place -= 1
        held[place] = member
    best = -1.0
    # the whole run is on the left of the cut behind it; where weights differ it may be a corner
    stop = run.size if tables.weighted else run.size - 1
    for largest in range(2):
        weight, high, low = before
        for k in range(stop):
            member = held[run.size - 1 - k if largest == 1 else k]
            weight += tables.weights[member]
            high += tables.high[member]
            low += tables.low[member]
            if weight < tables.total_weight:
                best = max(best, _gain(weight, high, low, tables))
    return best


@kernel
def _largest_gap(sure, errors, n_best, often, scratch):
    """Bounds of the largest gap of the cuts that gain most, from above and from below."""
    order, ordered, _, _, _, _, _, places, _ = scratch
    n = order.size
    whole, size, blur = 0.0, 0.0, 0.0
    for k in range(n):
        own = 0.0 if sure[order[k]] else errors[order[k]]
        blur = max(blur, np.sqrt(ordered[k] + own) - np.sqrt(max(0.0, ordered[k] - own)))
        whole += often[order[k]] * np.sqrt(ordered[k])
        size += often[order[k]]
    top, total, near, at, heavy = -np.inf, 0.0, 0.0, 0, 1.0
    for k in range(n):
        total += often[order[k]] * np.sqrt(ordered[k])
        near += often[order[k]]
        if at < n_best and places[at] == k:
            top = max(top, (whole - total) / (size - near) - total / near)
            heavy = max(heavy, size / near, size / (size - near))
            at += 1
    if not heavy < 2.0**30:
        # nothing is known of the mean of a side whose weight vanishes beside that of the other
        return np.inf, -np.inf
    # sums are rounded, here and where distances are certified
    # see "order line sums" in docs/developer/numerics.rst
    rounding = 8 * FLOAT64_UNIT * (n + 64) * (1.0 + np.sqrt(ordered[n - 1])) * heavy
    return top + 2 * blur + rounding, top - 2 * blur - rounding


@kernel
def promise_of_variance(line, tables, needed, scratch):
    """Bound gain and gap of an order line from above, and the gap from below.

    Arguments and results are those of `promise`, with `VarianceTables`. One function, for the
    reason that is given there.
    """
    squares, sure, errors, error = line
    order, ordered, heads, buckets, _, _, _, places, low = scratch
    n = order.size
    _order(squares, order, ordered, heads, buckets)
    close = False
    closest = 2 * error + _APART * max(1.0, ordered[n - 1] + error)
    for k in range(n - 1):
        close = close or ordered[k + 1] - ordered[k] <= closest
    if close:
        # the least that a distance from here on may be
        low[n] = np.inf
        for k in range(n - 1, -1, -1):
            own = 0.0 if sure[order[k]] else errors[order[k]]
            low[k] = min(low[k + 1], ordered[k] - own)
    near, high, rest, begin = np.int64(0), np.int64(0), np.int64(0), 0
    before = near, high, rest
    # `top` and `best` are of cuts that are there for certain, `top` before it is rounded
    top, best, opened, n_best = -2.0, np.int64(_NONE), -1.0, 0
    all_sure, settled, reach = True, True, -np.inf
    for k in range(n):
        member = order[k]
        near += tables.weights[member]
        high += tables.high[member]
        rest += tables.low[member]
        if close:
            own = 0.0 if sure[member] else errors[member]
            all_sure = all_sure and sure[member]
            reach = max(reach, ordered[k] + own)
            if k < n - 1 and not reach + _APART * max(1.0, reach) < low[k + 1]:
                continue
            # exact distances may still be too close for a cut; only equal ones surely have none
            if k > begin and not (all_sure and ordered[k] == ordered[begin]):
                run, held = order[begin : k + 1], buckets
                opened = max(opened, _open_gain(tables, run, held, before))
            begin, all_sure, before = k + 1, True, (near, high, rest)
        if k + 1 < tables.leaf or n - 1 - k < max(tables.leaf, 1):
            continue
        weight, total = float(near), float(tables.total_weight)
        if min(weight, total - weight) < tables.least * total:
            continue
        gain = _gain(near, high, rest, tables)
        if gain < top - 2.0:
            continue
        # no lower than the gain that is rounded as it should be
        upper = np.int64(np.floor(gain + 0.5 + WRONG))
        if upper > best:
            top, best, n_best, settled = gain, upper, 0, True
        if upper == best:
            settled = settled and np.floor(gain + 0.5 - WRONG) == upper
            if n_best < places.size:
                places[n_best] = k
                n_best += 1
    inside = np.int64(_NONE)
    if opened >= 0:
        inside = np.int64(np.floor(opened + 0.5 + WRONG))
    most = max(best, inside)
    if most < needed or most == _NONE:
        return most, -np.inf, -np.inf
    if inside >= best:
        return most, np.inf, -np.inf
    gap, reached = _largest_gap(sure, errors, n_best, tables.often, scratch)
    return best, gap, reached if settled else -np.inf
