"""Possible neighbours of windows: what is listed, what of it is measured, what is known so far.

A walk sees estimates. A pair whose squared distance may be among the k least of a window, by the
bound of its error, is listed (`take`); what is listed, and still may be near when much more is
known, is measured (`measure`): distances that leave this module are certified.

Functions that are called for every block of a walk are inlined (``forceinline``): an array is seven
numbers to the compiler, and a call would write those of all of them to the stack, which took half
of the time of a join.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT
from ...host import kernel
from ...host.windows import PAIRS, POINTS, squares
from .walk import NOTHING

__all__ = [
    "LISTED",
    "Candidates",
    "Line",
    "Squares",
    "is_settled",
    "make_room",
    "measure",
    "measure_all",
    "needed_by",
    "needed_score",
    "open_candidates",
    "sift",
    "take",
    "take_equal",
]

#: Possible neighbours that are listed before they are measured.
LISTED = 2**15


class Line(NamedTuple):
    """A line as certified distances need it.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Its points.
    mean, inverse : ndarray of shape (n_windows,), float64
        Mean, counted from the first point of each window, and 1 / deviation; or 0 and 1.
    """

    points: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray


class Candidates(NamedTuple):
    """Possible neighbours of the windows of a tile along one of its axes.

    Attributes
    ----------
    first : int
        The first of the windows.
    tops : ndarray of shape (n_windows, n_neighbors), float64
        The least upper values of squared distances of each, ascending: the last is the limit.
    distances, indices : ndarray of shape (n_windows, n_neighbors)
        The nearest that have been measured.
    pairs : ndarray of shape (LISTED, 2), int64
        The list: window, and other.
    floors : ndarray of shape (LISTED,), float64
        Lower bounds of squared distances of listed pairs.
    n_listed : ndarray of shape (3,), int64
        Pairs on the list, how many have been measured, and how many on the list may be of equal
        windows, until `take_equal` has looked at them.
    waiting, floor_of_waiting : ndarray of shape (n_windows,)
        One possible neighbour of each window that waits apart, -1 for none, and its lower bound.
    """

    first: int
    tops: np.ndarray
    distances: np.ndarray
    indices: np.ndarray
    pairs: np.ndarray
    floors: np.ndarray
    n_listed: np.ndarray
    waiting: np.ndarray
    floor_of_waiting: np.ndarray


class Squares(NamedTuple):
    """How scores of a window give squared distances: ``alpha - beta score``, within `slack`."""

    alpha: float
    beta: float
    slack: float


@kernel
def open_candidates(first, hint, distances, indices):
    """Return candidates of windows that are known to have neighbours as near as `hint`."""
    n_windows, k = distances.shape
    tops = np.empty((n_windows, k))
    for place in range(n_windows):
        tops[place] = hint[first + place] ** 2 * (1 + 1e-15)
    return Candidates(
        first,
        tops,
        distances,
        indices,
        np.empty((LISTED, 2), np.int64),
        np.empty(LISTED),
        np.zeros(3, np.int64),
        np.full(n_windows, -1),
        np.zeros(n_windows),
    )


@kernel
def _insert(distances, indices, distance, index):
    """Put a neighbour in its place among the nearest, in the order of (distance, index)."""
    place = distances.size
    while place > 0 and (
        distance < distances[place - 1]
        or (distance == distances[place - 1] and index < indices[place - 1])
    ):
        place -= 1
    if place == distances.size:
        return
    for k in range(distances.size - 1, place, -1):
        distances[k] = distances[k - 1]
        indices[k] = indices[k - 1]
    distances[place] = distance
    indices[place] = index


@kernel
def _lower(tops, top):
    """Put an upper value among the least of a window; the last of them is its limit."""
    place = tops.size
    while place > 0 and top < tops[place - 1]:
        place -= 1
    if place == tops.size:
        return
    for k in range(tops.size - 1, place, -1):
        tops[k] = tops[k - 1]
    tops[place] = top


@kernel(forceinline=True)
def is_settled(known, place):
    """Whether all neighbours of a window are equal to it: of other windows only earlier ones count.

    Of series that repeat exactly, and of windows of two points, nearly all pairs are equal.
    """
    return known.distances[place, known.tops.shape[1] - 1] == 0.0


@kernel(forceinline=True)
def _may_be_near(known, entry):
    """Whether a listed pair may still be among the nearest of its window."""
    window, other = known.pairs[entry]
    place, k = window - known.first, known.tops.shape[1]
    if known.floors[entry] > known.tops[place, k - 1]:
        return False
    # of equal windows the first count
    return known.distances[place, k - 1] > 0 or other < known.indices[place, k - 1]


@kernel
def measure(known, own, others, length, normalize):
    """Measure the pairs of a list that may still be near, and empty it."""
    pairs, count = known.pairs, known.n_listed[0]
    first, second = np.zeros(PAIRS, np.int64), np.zeros(PAIRS, np.int64)
    room, total = np.empty((PAIRS, POINTS)), np.empty(PAIRS)
    entry = 0
    while entry < count:
        taken = 0
        while entry < count and taken < PAIRS:
            if _may_be_near(known, entry):
                first[taken], second[taken] = pairs[entry]
                taken += 1
            entry += 1
        known.n_listed[1] += taken
        squares(
            own.points, first, own.mean, own.inverse, others.points, second, others.mean,
            others.inverse, length, room, total, normalize,
        )  # fmt: skip
        for lane in range(taken):
            place = first[lane] - known.first
            distance = np.sqrt(total[lane])
            _insert(known.distances[place], known.indices[place], distance, second[lane])
    known.n_listed[0] = known.n_listed[2] = 0


@kernel
def sift(known):
    """Drop what is no longer near from a list."""
    pairs, floors = known.pairs, known.floors
    left = 0
    for entry in range(known.n_listed[0]):
        if _may_be_near(known, entry):
            pairs[left, 0], pairs[left, 1] = pairs[entry, 0], pairs[entry, 1]
            floors[left] = floors[entry]
            left += 1
    known.n_listed[0] = left


@kernel
def make_room(known, own, others, length, normalize):
    """Make room on a list."""
    sift(known)
    if known.n_listed[0] > LISTED // 2:
        measure(known, own, others, length, normalize)


@kernel
def measure_all(known, own, others, length, normalize):
    """Measure what is on a list, and the neighbours that waited apart; once, at the end."""
    measure(known, own, others, length, normalize)
    for place in range(known.waiting.size):
        if known.waiting[place] >= 0:
            count = known.n_listed[0]
            known.pairs[count, 0] = known.first + place
            known.pairs[count, 1] = known.waiting[place]
            known.floors[count] = known.floor_of_waiting[place]
            known.n_listed[0] += 1
        if known.n_listed[0] == LISTED or place == known.waiting.size - 1:
            measure(known, own, others, length, normalize)


@kernel
def _are_equal(own, window, others, other, length, normalize):
    """Whether two windows are equal as `squares` compares them, so that their distance is 0."""
    x, y = own.points[window : window + length], others.points[other : other + length]
    first, first_b = (x[0], y[0]) if normalize is not None else (0.0, 0.0)
    mean, mean_b = own.mean[window], others.mean[other]
    scale, scale_b = own.inverse[window], others.inverse[other]
    for t in range(length):
        if (x[t] - first - mean) * scale != (y[t] - first_b - mean_b) * scale_b:
            return False
    return True


@kernel
def take_equal(known, own, others, length, normalize):
    """Take the pairs of equal windows from the end of a list, of those that may be."""
    count = known.n_listed[0]
    for entry in range(count - 1, -1, -1):
        if known.n_listed[2] == 0:
            break
        if known.floors[entry] > 0:
            continue
        known.n_listed[2] -= 1
        window, other = known.pairs[entry]
        place = window - known.first
        if _may_be_near(known, entry):
            if not _are_equal(own, window, others, other, length, normalize):
                continue
            _insert(known.distances[place], known.indices[place], 0.0, other)
        # the last of the list takes its place
        count -= 1
        known.pairs[entry, 0], known.pairs[entry, 1] = known.pairs[count, 0], known.pairs[count, 1]
        known.floors[entry] = known.floors[count]
    known.n_listed[0] = count


@kernel(forceinline=True)
def _offer(known, window, other, square, slack):
    """Take a pair that may be near, given its squared distance and how wrong that may be.

    One neighbour of each window waits apart, to be replaced by one that is nearer for certain; the
    list, on which there is room, takes what is not so clear.
    """
    place = window - known.first
    _lower(known.tops[place], square + slack)
    if known.tops.shape[1] == 1 and square > slack:
        if known.waiting[place] < 0 or square + slack < known.floor_of_waiting[place]:
            known.waiting[place], known.floor_of_waiting[place] = other, square - slack
            return
        if square - slack > known.tops[place, 0]:
            return
    count = known.n_listed[0]
    known.pairs[count, 0], known.pairs[count, 1] = window, other
    known.floors[count] = square - slack
    known.n_listed[0] = count + 1
    known.n_listed[2] += square - slack <= 0


@kernel
def needed_score(squares, limit):
    """The score from which on a squared distance may be within a limit."""
    score = (squares.alpha - (limit + squares.slack)) / squares.beta
    # see "join limits" in docs/developer/numerics.rst
    return score - 4 * FLOAT64_UNIT * abs(score) if score > -NOTHING else -NOTHING


@kernel(forceinline=True)
def needed_by(known, window, squares):
    """The score from which on a pair that comes later may be near to a window."""
    place = window - known.first
    if is_settled(known, place):
        return NOTHING
    return needed_score(squares, known.tops[place, known.tops.shape[1] - 1])


@kernel(forceinline=True)
def take(known, window, other, score, squares):
    """Take a pair that may be near; returns the score that the window needs from now on."""
    _offer(known, window, other, squares.alpha - squares.beta * score, squares.slack)
    return needed_score(squares, known.tops[window - known.first, known.tops.shape[1] - 1])
