"""Order lines on the CPU: what a cut of the distances of a candidate gains at most.

`promise` bounds gain and gap of one order line: it puts the distances in order, goes through the
cuts between neighbours, and where errors leave the order of several open, tries what their best
order gains (`_open_gain`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT, TOLERANCE
from ...host import kernel

__all__ = ["OrderLine", "Scratch", "make_scratch", "promise"]

#: Classes of an open run whose subsets are all tried.
MANY = 6
#: Squares a < b with b - a above this share of a, or of 1 if that is more, are those of distances
#: that are farther apart than `TOLERANCE` allows for equal ones, and twice that.
#: see "equal distances" in docs/developer/numerics.rst
_APART = 8 * TOLERANCE
#: Logarithm of 2, and units by which sums of a few rounded terms are off at most, and more.
_LN2, _ROUNDED = float(np.log(2.0)), 8
#: Units of whole weights, in which that of all members is 1 or a little less.
_ONE = 2.0**62
#: Gain of an order line without a cut: below all that roundings make of 0.
_NONE = -(2**62)


class Scratch(NamedTuple):
    """Memory that every line uses again.

    Attributes
    ----------
    order, ordered : ndarray of shape (n_members,)
        Members in the order of their distances, and these.
    heads, buckets : ndarray of shape (4 * n_members + 1,) and (n_members,)
        Where buckets of the sort begin, and the bucket of each distance.
    left, run : ndarray of shape (n_classes,)
        Numbers of classes on the left of a cut, and in a run of distances of unknown order.
    terms : ndarray of shape (n_classes,)
        Terms of classes on both sides of a cut, where numbers of them are weights.
    places : ndarray of shape (n_places,)
        Cuts that gain most.
    low : ndarray of shape (n_members + 1,)
        The least that a distance from each place on may be; then sums of roots.
    """

    order: np.ndarray
    ordered: np.ndarray
    heads: np.ndarray
    buckets: np.ndarray
    left: np.ndarray
    run: np.ndarray
    terms: np.ndarray
    places: np.ndarray
    low: np.ndarray


class OrderLine(NamedTuple):
    """Squared distances of a candidate to the members.

    Attributes
    ----------
    squares : ndarray of shape (n_members,)
        These.
    sure : ndarray of shape (n_members,), bool
        Which are exact.
    errors : ndarray of shape (n_members,)
        Largest errors of the others.
    error : float
        The largest of these errors, or more.
    """

    squares: np.ndarray
    sure: np.ndarray
    errors: np.ndarray
    error: float


@kernel
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


@kernel(forceinline=True)
def _whole_weight(weight):
    """Return a weight as a whole number: sums of these do not depend on the order."""
    return np.int64(weight * _ONE)


@kernel(forceinline=True)
def _all_weights(tables):
    """Return the whole weight of all members, and what one such unit weighs."""
    total = np.int64(0)
    if tables.steps.size > 0:
        return tables.counts.sum(), tables.weights[0]
    for c in range(tables.counts.size):
        total += tables.counts[c] * _whole_weight(tables.weights[c])
    return total, 1.0 / _ONE


@kernel(forceinline=True)
def _weighed_sides(left, total, of_one, tables):
    """Entropy of both sides of a cut times their weight, without the terms of single classes.

    `left` and `total` are whole weights, `of_one` is what one unit of them weighs. Also returns
    whether both sides may be heavy enough.
    """
    unit = tables.unit
    on_left, on_right = left * of_one, (total - left) * of_one
    both = np.int64(np.rint(unit * on_left * np.log(max(on_left, 1e-300))))
    both += np.int64(np.rint(unit * on_right * np.log(max(on_right, 1e-300))))
    # whole weights are rounded down: see "weighted gains" in docs/developer/numerics.rst
    lost = tables.labels.size / _ONE
    return both, min(on_left, on_right) + lost >= tables.least * (1 - 1e-12)


@kernel
def _terms(number, count, weight, unit):
    """Terms of a class on both sides of a cut by its number on the left, which is a weight."""
    total = np.int64(0)
    for side in (number, count - number):
        share = side * weight
        total += np.int64(np.rint(unit * share * np.log(max(share, 1e-300))))
    return total


@kernel
def _open_classes(members, labels, run, subset):
    """Write the classes of some members, ascending, and return how many there are.

    `run` holds how many of each class are among them, `subset` has room for `MANY`; beyond that
    some are left out.
    """
    n_open = 0
    for k in range(members.size):
        c, at = labels[members[k]], 0
        while at < min(n_open, MANY) and subset[at] < c:
            at += 1
        if run[c] <= 0 or (at < min(n_open, MANY) and subset[at] == c):
            continue
        if n_open >= MANY:
            return n_open + 1
        for place in range(n_open, at, -1):
            subset[place] = subset[place - 1]
        subset[at] = c
        n_open += 1
    return n_open


@kernel
def _open_gain(tables, members, scratch, best, n_best, sums, every):
    """Bound the gain of cuts among distances of unknown order: the best of all subsets on the left.

    `members` are those of the run. `best` and `n_best` are those of the cuts before. `sums` are
    what single classes add to the gain at the end of the run, the numbers of all classes on the
    left, and their whole weight; `every` these of all members, and what one unit of weight is.
    `scratch.left` holds the numbers of classes up to there, `run` those within. The gain is convex
    in the numbers on the left, so each class lies on one side as a whole at its largest. Returns
    the best, how many cuts have it, and False where classes are too many.
    """
    left, run, places = scratch.left, scratch.run, scratch.places
    changes, counts, weights, unit = tables.changes, tables.counts, tables.weights, tables.unit
    each, on_left, heavy = sums
    n_all, total_weight, of_one = every
    subset = np.empty(MANY, np.int64)
    n_open = _open_classes(members, tables.labels, run, subset)
    # cuts before and behind the run count by themselves, unless they leave a side too small
    limited = tables.leaf > 1 or tables.least > 0
    if n_open < 2 and not limited:
        return best, n_best, True
    if n_open > MANY:
        return best, n_best, False
    n_ways, equal, weighed = 1 << n_open, tables.sides.size > 0, tables.steps.size > 0
    for chosen in range(0 if limited else 1, n_ways if limited else n_ways - 1):
        total, size, own = each, on_left, heavy
        for k in range(n_open):
            if not chosen >> k & 1:
                continue
            # these go to the right
            c = subset[k]
            rest = left[c] - run[c]
            size -= run[c]
            if weighed:
                own -= run[c]
                total += _terms(rest, counts[c], weights[c], unit)
                total -= _terms(left[c], counts[c], weights[c], unit)
                continue
            if not equal:
                own -= run[c] * _whole_weight(weights[c])
            for m in range(rest, left[c]):
                total -= changes[c, m] - changes[c, counts[c] - m - 1]
        if size == 0 or size == n_all:
            continue
        if equal:
            both = tables.sides[size]
        else:
            both = _weighed_sides(own, total_weight, of_one, tables)[0]
        gain = tables.node_entropy - both + total
        if gain > best:
            best, n_best = gain, 0
        if gain == best and n_best < places.size:
            places[n_best] = size - 1
            n_best += 1
    return best, n_best, True


@kernel
def _largest_gap(sure, errors, n_best, spread, scratch):
    """The largest gap of the cuts that gain most, and what it may be off by."""
    order, ordered, _, _, _, _, _, places, low = scratch
    n = order.size
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
    # see "order line sums" in docs/developer/numerics.rst
    blur = 2 * (blur + spread) + 8 * FLOAT64_UNIT * (n + 64) * (1.0 + np.sqrt(ordered[n - 1]))
    return top, blur


@kernel(forceinline=True)
def promise(line, tables, needed, scratch):
    """Bound gain and gap of an order line from above, and the gap from below.

    Returns gain `_NONE` without a cut; a gap of -inf where nothing is certain. A gain below
    `needed` comes without a gap. One function: apart from each other the sort, the bounds of
    neighbours and the cuts took a third more, and every candidate goes through them.

    Parameters
    ----------
    line : OrderLine
        The distances.
    tables : Tables
        How cuts are judged.
    needed : int
        A gain that is reached for certain.
    scratch : Scratch
        Memory.
    """
    squares, sure, errors, error = line
    labels, changes, sides, weights, counts, whole, leaf, _, total_weight, unit, slack, steps = (
        tables
    )
    order, ordered, heads, buckets, left, run, terms, places, low = scratch
    n = labels.size
    _order(squares, order, ordered, heads, buckets)
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
    equal, weighed = sides.size > 0, steps.size > 0
    # no literals, for which callees are compiled again
    best, n_best, each, begin = np.int64(_NONE), np.int64(0), np.int64(0), 0
    # numbers of all classes on the left, and their whole weight; and those of both sides
    on_left, heavy, all_weights, of_one = np.int64(0), np.int64(0), np.int64(0), 1.0
    if not equal:
        all_weights, of_one = _all_weights(tables)
    every = counts.sum(), all_weights, of_one
    certain, bounded, high, spread = True, True, -np.inf, 0.0
    all_sure, opened = True, False
    for k in range(n):
        label = labels[order[k]]
        here, step = left[label], np.int64(1)
        if weighed:
            step = steps[order[k]]
            heavy += step
            if here == 0:
                terms[label] = _terms(here, counts[label], weights[label], unit)
            each -= terms[label]
            terms[label] = _terms(here + step, counts[label], weights[label], unit)
            each += terms[label]
        else:
            each += changes[label, here] - changes[label, counts[label] - here - 1]
            if not equal:
                heavy += _whole_weight(weights[label])
        left[label] = here + step
        if near:
            on_left += step
            run[label] += step
            own = 0.0 if sure[order[k]] else errors[order[k]]
            all_sure = all_sure and sure[order[k]]
            high = max(high, ordered[k] + own)
            if k < n - 1 and not high + _APART * max(1.0, high) < low[k + 1]:
                continue
            # exact distances may still be too close for a cut; only equal ones surely have none
            if k > begin and not (all_sure and ordered[k] == ordered[begin]):
                opened = True
                before, sums = (best, n_best), (each, on_left, heavy)
                best, n_best, small = _open_gain(
                    tables, order[begin : k + 1], scratch, best, n_best, sums, every
                )
                bounded = bounded and small
                certain = certain and small and before == (best, n_best)
                spread = max(spread, np.sqrt(ordered[k]) - np.sqrt(ordered[begin]))
            for member in order[begin : k + 1]:
                run[labels[member]] = 0
            begin, all_sure = k + 1, True
        if k + 1 < leaf or n - 1 - k < max(leaf, 1):
            continue
        if equal:
            both = sides[k + 1]
        else:
            # the entropy of sides of shares p and 1 - p is ln 2 - 2 (p - 1/2)^2 at most (Pinsker)
            off = heavy * of_one - 0.5
            if each + unit * (_LN2 - 2 * off * off) < max(best, needed - slack) - _ROUNDED:
                continue
            both, enough = _weighed_sides(heavy, all_weights, of_one, tables)
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
        # see "open runs" in docs/developer/numerics.rst
        most = unit * total_weight * np.log(counts.size) * (1 + 2.0**-20)
        return np.int64(most) + slack + 2**12, np.inf, -np.inf
    if best == _NONE:
        # of one class, whose order is unknown, every cut gains nothing
        return (np.int64(0), np.inf, -np.inf) if opened else (best, -np.inf, -np.inf)
    loose = slack > 0 and (opened or not equal)
    if loose:
        best += slack
    if best < needed:
        return best, -np.inf, -np.inf
    if loose:
        return best, np.inf, -np.inf
    top, blur = _largest_gap(sure, errors, n_best, spread, scratch)
    return best, top + blur, top - blur if certain else -np.inf


@kernel
def make_scratch(n, n_classes):
    """Memory for lines of so many members."""
    return Scratch(
        np.empty(n, np.int64), np.empty(n), np.empty(4 * n + 1, np.int64), np.empty(n, np.int64),
        np.empty(n_classes, np.int64), np.empty(n_classes, np.int64), np.empty(n_classes, np.int64),
        np.empty(4 * n + 64, np.int64), np.empty(n + 1),
    )  # fmt: skip
