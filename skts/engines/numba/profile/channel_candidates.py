"""Possible neighbours in joins of many channels: bounds of their distances, lists, measurements.

As in `candidates.py`, of sums over channels: what of a walk's pairs may be nearest to a window, by
the bounds of its sums, is kept; what may still be nearest in the end is measured, and distances
that leave this module are certified.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import CONSTANT_KIND, MISSING_KIND
from ...host import kernel
from ...host.windows import PAIRS, POINTS, squares
from .._borrowed import borrowed

__all__ = [
    "ChannelLine",
    "Known",
    "PairBounds",
    "Rule",
    "bound_channels",
    "bound_sums",
    "certain_channels",
    "comes_later",
    "make_room",
    "measure_all",
    "offer",
    "open_known",
    "sort_few",
    "take_exact",
]

#: Pairs that a list has room for, beside those of a row.
LISTED = 2**17
#: Sums of certified distances are rounded by less than this share.
ROUNDING = 1e-14
#: More than a distance loses where its square underflows.
LOST = 1e-150


class ChannelLine(NamedTuple):
    """The channels of a line as certified distances need them.

    Attributes
    ----------
    points : ndarray of shape (n_channels, n_points), float64
        Their points.
    mean, inverse : ndarray of shape (n_channels, n_windows), float64
        As in `Line`.
    kind : ndarray of shape (n_channels, n_windows), uint8
        Regular, constant, or not finite.
    """

    points: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray
    kind: np.ndarray


class Rule(NamedTuple):
    """Which channels count.

    Attributes
    ----------
    dimensions : ndarray of shape (n_dimensions,), int64
        How many channels count, ascending.
    included : ndarray of shape (n_channels,), bool
        Channels that count in any case.
    n_included : int
        How many they are.
    worst : bool
        Whether the others count from the farthest on.
    normalize : bool
        Whether windows are z-normalised.
    """

    dimensions: np.ndarray
    included: np.ndarray
    n_included: int
    worst: bool
    normalize: bool


class Known(NamedTuple):
    """Possible neighbours of the windows of a tile along one of its axes.

    Attributes
    ----------
    first : int
        The first of the windows.
    open : ndarray of shape (n_windows,), bool
        Which windows of the line look for neighbours.
    tops : ndarray of shape (n, n_dimensions), float64
        The least upper values of sums, in the units of the search.
    distances, indices : ndarray of shape (n, n_dimensions)
        The nearest that have been measured.
    entries : ndarray of shape (n_entries, 3), int64
        The list: window, place of the dimension, other.
    floors : ndarray of shape (n_entries,), float64
        Lower bounds of sums of listed pairs.
    n_listed : ndarray of shape (1,), int64
        Pairs on the list.
    waiting, floor_of_waiting : ndarray of shape (n, n_dimensions)
        One possible neighbour that waits apart, -1 for none, and its lower bound.
    """

    first: int
    open: np.ndarray
    tops: np.ndarray
    distances: np.ndarray
    indices: np.ndarray
    entries: np.ndarray
    floors: np.ndarray
    n_listed: np.ndarray
    waiting: np.ndarray
    floor_of_waiting: np.ndarray


class PairBounds(NamedTuple):
    """Bounds of the distances of a pair in each channel, and of their sums for each dimension.

    `sorted` is room for the channels that do not count in any case.
    """

    low: np.ndarray
    up: np.ndarray
    sums_low: np.ndarray
    sums_up: np.ndarray
    sorted: np.ndarray


def open_known(
    first: int,
    looking: np.ndarray,
    hint: np.ndarray,
    distances: np.ndarray,
    indices: np.ndarray,
    pairs: int,
) -> Known:
    """Return candidates of windows that are known to have neighbours with sums up to `hint`.

    The list has room for so many pairs beside `LISTED`.
    """
    n, n_dimensions = distances.shape
    n_entries = LISTED + pairs * n_dimensions
    return Known(
        first,
        looking,
        hint[first : first + n] * (1 + ROUNDING) + LOST,
        distances,
        indices,
        np.empty((n_entries, 3), np.int64),
        np.empty(n_entries),
        np.zeros(1, np.int64),
        np.full((n, n_dimensions), -1),
        np.zeros((n, n_dimensions)),
    )


@kernel(forceinline=True)
def bound_channels(bounds, c, kind, kind_b, square, error):
    """Bound the distance of a pair in a channel, given its squared distance within an error."""
    if kind == MISSING_KIND or kind_b == MISSING_KIND:
        bounds.low[c] = bounds.up[c] = np.inf
        return
    distance = np.sqrt(max(square, 0.0))
    if kind == CONSTANT_KIND or kind_b == CONSTANT_KIND:
        bounds.low[c] = bounds.up[c] = distance
        return
    # see "channel sums" in docs/developer/numerics.rst
    off = np.sqrt(error)
    if distance > off:
        off = error / distance
    off += LOST
    bounds.low[c], bounds.up[c] = max(distance - off, 0.0), distance + off


@kernel
def sort_few(values, descending):
    """Sort a few values; what is infinite comes last."""
    for at in range(1, values.size):
        value, place = values[at], at
        while place > 0:
            other = values[place - 1]
            if descending:
                before = other == np.inf or (value > other and value < np.inf)
            else:
                before = value < other
            if not before or other == value:
                break
            values[place] = other
            place -= 1
        values[place] = value


@kernel
def _add(values, sums, rule, order, room):
    """Sums of the channels that count, added one after the other, for each dimension."""
    total, at, n_included = 0.0, 0, rule.n_included
    for place in range(n_included, values.size):
        room[place - n_included] = values[order[place]]
    sort_few(room, rule.worst)
    for number in range(1, values.size + 1):
        if number <= n_included:
            total += values[order[number - 1]]
        else:
            total += room[number - 1 - n_included]
        if at < sums.size and rule.dimensions[at] == number:
            sums[at] = total
            at += 1


@kernel
def certain_channels(bounds, kinds, rule, order):
    """Return how many channels count whose distances are certified for certain.

    Those of constant windows and of windows that are not finite are: `kinds` has the kinds of both
    windows of a pair in each channel. It is a number up to which no other channel comes between.
    """
    n_channels, count, nearest = order.size, 0, np.inf
    for place in range(n_channels):
        c = order[place]
        if kinds[0, c] == kinds[1, c] == 0:
            if place < rule.n_included or rule.worst:
                return 0
            nearest = min(nearest, bounds.low[c])
    for place in range(n_channels):
        c = order[place]
        if (
            place < rule.n_included
            or nearest == np.inf
            or ((kinds[0, c] > 0 or kinds[1, c] > 0) and bounds.low[c] < nearest)
        ):
            count += 1
    return count


@kernel
def bound_sums(bounds, rule, order, n_certain):
    """Bound the sums of a pair, given the bounds of its distances.

    Sums of up to so many channels are certified ones.
    """
    _add(bounds.low, bounds.sums_low, rule, order, bounds.sorted)
    _add(bounds.up, bounds.sums_up, rule, order, bounds.sorted)
    for at in range(bounds.sums_low.size):
        if rule.dimensions[at] > n_certain:
            bounds.sums_low[at] *= 1 - ROUNDING
        bounds.sums_up[at] *= 1 + ROUNDING


@kernel(forceinline=True)
def comes_later(distances, indices, place, at, other):
    """Whether a window has a neighbour at distance 0 that comes no later than another one.

    None is nearer. Constant stretches, and series that repeat, would list nearly all pairs.
    """
    return distances[place, at] == 0.0 and indices[place, at] <= other


@kernel
def take_exact(known, place, at, other, total, rule):
    """Take a pair whose certified sum is known."""
    known = borrowed(known)
    if total < np.inf and total <= known.tops[place, at]:
        known.tops[place, at] = min(known.tops[place, at], total * (1 + ROUNDING))
        settle(known, place, at, other, total / rule.dimensions[at])


@kernel
def offer(known, place, at, other, low, up):
    """Take a pair that may be nearest, given the bounds of its sum.

    One neighbour of each window waits apart, to be replaced by one that is nearer for certain; the
    list, on which there is room, takes what is not so clear.
    """
    known = borrowed(known)
    if low > known.tops[place, at] or low == np.inf:
        return
    if comes_later(known.distances, known.indices, place, at, other):
        return
    known.tops[place, at] = min(known.tops[place, at], up)
    if up == 0.0:
        settle(known, place, at, other, 0.0)
        return
    if known.waiting[place, at] < 0 or up < known.floor_of_waiting[place, at]:
        known.waiting[place, at], known.floor_of_waiting[place, at] = other, low
        return
    if low > known.tops[place, at]:
        return
    count = known.n_listed[0]
    known.entries[count, 0], known.entries[count, 1], known.entries[count, 2] = place, at, other
    known.floors[count] = low
    known.n_listed[0] = count + 1


@kernel(forceinline=True)
def _may_be_nearest(known, entry):
    """Whether a listed pair may still be the nearest of its window."""
    known = borrowed(known)
    place, at, other = known.entries[entry]
    if known.floors[entry] > known.tops[place, at]:
        return False
    return not comes_later(known.distances, known.indices, place, at, other)


@kernel
def make_room(known, own, others, pairs, length, rule, order):
    """Make room on a list for so many pairs."""
    if known.n_listed[0] + pairs * known.tops.shape[1] <= known.floors.size:
        return
    left = 0
    for entry in range(known.n_listed[0]):
        place, at, other = known.entries[entry]
        if _may_be_nearest(known, entry):
            known.entries[left, 0], known.entries[left, 1] = place, at
            known.entries[left, 2], known.floors[left] = other, known.floors[entry]
            left += 1
    known.n_listed[0] = left
    if left > LISTED // 2:
        _measure(known, own, others, length, rule, order)


# called in one place: compiled there, and not once more by all that lies between
@kernel(inline="always")
def _squares(own, first, others, second, c, length, room, total, normalize):
    """Certified squared distances of some pairs in a channel."""
    x, mean, inverse = own.points[c], own.mean[c], own.inverse[c]
    y, mean_b, inverse_b = others.points[c], others.mean[c], others.inverse[c]
    # whether points count from the first of a window is a type to the compiler
    if normalize:
        squares(x, first, mean, inverse, y, second, mean_b, inverse_b, length, room, total, True)
    else:
        squares(x, first, mean, inverse, y, second, mean_b, inverse_b, length, room, total, None)


@kernel
def _measure(known, own, others, length, rule, order):
    """Measure the pairs of a list that may still be nearest, and empty it."""
    entries, n_channels = known.entries, own.mean.shape[0]
    first, second = np.zeros(PAIRS, np.int64), np.zeros(PAIRS, np.int64)
    room, total = np.empty((PAIRS, POINTS)), np.empty(PAIRS)
    distances, sums = np.empty((PAIRS, n_channels)), np.empty(known.tops.shape[1])
    ordered = np.empty(n_channels - rule.n_included)
    start, count = 0, known.n_listed[0]
    while start < count:
        # entries of at most PAIRS pairs: those of a pair follow each other, as a rule
        taken, stop = 0, start
        while stop < count:
            place, at, other = entries[stop]
            if _may_be_nearest(known, stop):
                window, lane = known.first + place, 0
                while lane < taken and (first[lane] != window or second[lane] != other):
                    lane += 1
                if lane == PAIRS:
                    break
                first[lane], second[lane] = window, other
                taken = max(taken, lane + 1)
            stop += 1
        for c in range(n_channels):
            _squares(own, first, others, second, c, length, room, total, rule.normalize)
            for lane in range(taken):
                kind, kind_b = own.kind[c, first[lane]], others.kind[c, second[lane]]
                distance = np.sqrt(total[lane])
                if kind == MISSING_KIND or kind_b == MISSING_KIND or np.isnan(distance):
                    distance = np.inf
                elif kind != kind_b:
                    distance = np.sqrt(length)
                elif kind == CONSTANT_KIND:
                    distance = 0.0
                distances[lane, c] = distance
        for lane in range(taken):
            _add(distances[lane], sums, rule, order, ordered)
            for entry in range(start, stop):
                place, at, other = entries[entry]
                if known.first + place == first[lane] and other == second[lane]:
                    settle(known, place, at, other, sums[at] / rule.dimensions[at])
        start = stop
    known.n_listed[0] = 0


@kernel
def settle(known, place, at, other, distance):
    """Keep a neighbour if it is nearer, or of equally near ones the first."""
    best, index = known.distances[place, at], known.indices[place, at]
    if distance < best or (distance == best and other < index):
        known.distances[place, at], known.indices[place, at] = distance, other


@kernel
def measure_all(known, own, others, length, rule, order):
    """Measure what is on a list, and the neighbours that waited apart; once, at the end."""
    _measure(known, own, others, length, rule, order)
    n, n_dimensions = known.waiting.shape
    for place in range(n):
        for at in range(n_dimensions):
            if known.waiting[place, at] >= 0:
                count = known.n_listed[0]
                known.entries[count, 0], known.entries[count, 1] = place, at
                known.entries[count, 2] = known.waiting[place, at]
                known.floors[count] = known.floor_of_waiting[place, at]
                known.n_listed[0] += 1
        if known.n_listed[0] > LISTED - n_dimensions or place == n - 1:
            _measure(known, own, others, length, rule, order)
