"""Distances along the best paths between descriptors, on the CPU: many pairs side by side.

Paths come from `alignments`, or one after the other from `warping_path` where their steps would
take too much memory. Descriptors are made of some pairs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.series import Series
from ...families.elastic.descriptors import Spans, in_order, write_span
from ...families.elastic.distances import ShapeDTW
from . import alignments, warping_path
from .lanes import LANES

__all__ = [
    "by_numpy_bytes",
    "distances",
    "distances_bytes",
    "distances_by_numpy",
    "path",
    "seconds",
    "spans_of",
]

#: Points of the descriptors that are held at a time, where that is more than a group of lanes.
_POINTS = 2**18
#: Pairs held at a time at most, however short.
_MOST = 1024
#: Entries of the matrices that NumPy fills at a time, where that is more than one pair's.
_ENTRIES = 2**15


def distances(
    left: Series,
    right: Series,
    pairs: np.ndarray,
    warping: ShapeDTW,
    cancel: np.ndarray,
    most_steps: int,
) -> np.ndarray:
    """Distances of pairs along the best paths between descriptors.

    Parameters
    ----------
    left, right : Series
        Two sets of series.
    pairs : ndarray of shape (n_pairs, 2)
        A series of `left` and one of `right`.
    warping : ShapeDTW
        Options of the distance.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    most_steps : int
        Bytes that pairs may take side by side.

    Returns
    -------
    ndarray of shape (n_pairs,)
        The distances.
    """
    found = np.empty(len(pairs))
    for spans in spans_of(left, right, pairs, warping, cancel, most_steps):
        found[spans.part] = warping.along_spans(*spans[1:5])
    return found


def spans_of(
    left: Series,
    right: Series,
    pairs: np.ndarray,
    warping: ShapeDTW,
    cancel: np.ndarray,
    most_steps: int,
) -> Iterator[Spans]:
    """Best paths between descriptors, of some pairs after the other; parameters as `distances`."""
    n, m, channels = left.n_timepoints, right.n_timepoints, left.n_channels
    side_by_side, step = _fits(n, m, channels, warping, most_steps)
    for start in range(0, len(pairs), step):
        if cancel[0]:
            break
        part = slice(start, start + step)
        x, y, swapped = in_order(left, right, pairs[part])
        if side_by_side:
            sides, labels = (warping.padded(x), warping.padded(y)), np.arange(len(x))
            between, width = warping.between_descriptors, warping.width
            first, stop, _ = alignments.trace(*sides, labels, between, cancel, width)
        else:
            first, stop = _one_by_one(x, y, warping, cancel)
        yield Spans(part, x, y, first, stop, swapped)


def path(x: Series, y: Series, warping: ShapeDTW, cancel: np.ndarray) -> np.ndarray:
    """Best path between the descriptors of one series and another, in the memory of one path."""
    p, q = (
        warping.padded(side).values[0, :, : side.lengths[0] + warping.width - 1] for side in (x, y)
    )
    return warping_path.path(p, q, warping.between_descriptors, cancel, warping.width)[0]


def _one_by_one(
    x: Series, y: Series, warping: ShapeDTW, cancel: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The points that paths match, of series i of one set and series i of another."""
    first, stop = np.zeros((2, len(x), x.n_timepoints), np.int32)
    for place in range(len(x)):
        one = slice(place, place + 1)
        found = path(x.take(one), y.take(one), warping, cancel)
        if cancel[0]:
            break
        write_span(found, first[place], stop[place])
    return first, stop


def _fits(n: int, m: int, channels: int, warping: ShapeDTW, most_steps: int) -> tuple[bool, int]:
    """Whether pairs lie side by side, and of how many descriptors are held at a time."""
    longest = max(n, m)
    if alignments.group_bytes(longest, longest, channels, warping.width) > most_steps:
        return False, 1
    fitting = _POINTS // (channels * (n + m + 2 * warping.width))
    return True, max(LANES[np.float64], min(_MOST, fitting))


def distances_bytes(
    n: int, m: int, channels: int, warping: ShapeDTW, n_pairs: int, most_steps: int
) -> int:
    """Bytes that `distances` holds beside its input and output."""
    longest, width = max(n, m), warping.width
    side_by_side, step = _fits(n, m, channels, warping, most_steps)
    if side_by_side:
        held = alignments.group_bytes(longest, longest, channels, width)
    else:
        held = warping_path.path_bytes(longest, longest) + 16 * channels * (longest + width)
    # both series in several copies, and with what is repeated; spans of the path
    series = 8 * (4 * channels * (longest + width) + 8 * channels * longest + 2 * longest)
    return held + min(n_pairs, step) * series


def distances_by_numpy(
    left: Series,
    right: Series,
    pairs: np.ndarray,
    warping: ShapeDTW,
    cancel: np.ndarray,
) -> np.ndarray:
    """The same as `distances` for small work, without a kernel.

    Every cell of a warping matrix also holds the cost of the points along the path to it.
    """
    step = _pairs_at_a_time(left.n_timepoints, right.n_timepoints, warping)
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), step):
        if cancel[0]:
            break
        part = slice(start, start + step)
        x, y, _ = in_order(left, right, pairs[part])
        found[part] = warping.distance(_along(x, y, warping))
    return found


def _pairs_at_a_time(n: int, m: int, warping: ShapeDTW) -> int:
    """Pairs whose matrices NumPy fills at a time."""
    return max(1, _ENTRIES // ((n + warping.width) * (m + warping.width)))


def _along(x: Series, y: Series, warping: ShapeDTW) -> np.ndarray:
    """Costs of pairs along their best paths, by NumPy along antidiagonals."""
    (count, _, n), m = x.shape, y.n_timepoints
    padded = _matrices(warping.padded(x), warping.padded(y), squared=warping.squared)
    costs = _window_costs(padded, warping.width)
    terms = _matrices(x, y, squared=warping.squared)
    apart = np.abs(np.arange(n)[:, np.newaxis] - np.arange(m))
    costs[apart > warping.radius(x.lengths, y.lengths)[:, np.newaxis, np.newaxis]] = np.inf
    # with a border in front: of the descriptors, and of the points along the path
    best, along = np.full((count, n + 1, m + 1), np.inf), np.zeros((count, n + 1, m + 1))
    best[:, 0, 0] = 0.0
    for d in range(n + m - 1):
        a = np.arange(max(0, d - m + 1), min(n, d + 1))
        b = d - a
        across, down, right = best[:, a, b], best[:, a, b + 1], best[:, a + 1, b]
        diagonal, above = (across <= down) & (across <= right), down <= right
        least = np.where(diagonal, across, np.where(above, down, right))
        best[:, a + 1, b + 1] = costs[:, a, b] + least
        before = np.where(above, along[:, a, b + 1], along[:, a + 1, b])
        along[:, a + 1, b + 1] = terms[:, a, b] + np.where(diagonal, along[:, a, b], before)
    found: np.ndarray = along[np.arange(count), x.lengths, y.lengths]
    return found


def _matrices(x: Series, y: Series, *, squared: bool) -> np.ndarray:
    """Differences of the points of each pair, added over channels in their order."""
    size = np.square if squared else np.abs
    found: np.ndarray = np.zeros((len(x), x.n_timepoints, y.n_timepoints))
    for c in range(x.n_channels):
        found += size(x.values[:, c, :, np.newaxis] - y.values[:, c, np.newaxis])
    return found


def _window_costs(terms: np.ndarray, width: int) -> np.ndarray:
    """Sums of the terms of all pairs of windows, in the order of `alignments`.

    The terms are of shape (n_pairs, n + width - 1, m + width - 1).
    """
    count, n, m = terms.shape[0], terms.shape[1] - width + 1, terms.shape[2] - width + 1
    costs = np.empty((count, n, m))
    for base in range(0, n, width):
        rows = min(width, n - base)
        # by the column that a diagonal has in the first row, from 1 - rows on
        sums = np.zeros((count, m + rows - 1))
        for r in range(width - 1, -1, -1):
            begin = min(r, rows - 1)
            sums[:, rows - 1 - begin :] += terms[:, base + r, r - begin : m + r]
            if r < rows:
                costs[:, base + r] = sums[:, rows - 1 - r : rows - 1 - r + m]
        sums[:] = 0.0
        for r in range(1, rows):
            behind = terms[:, base + width + r - 1, width + r - rows :]
            sums[:, : m + rows - 1 - r] += behind
            costs[:, base + r] += sums[:, rows - 1 - r : rows - 1 - r + m]
    return costs


def by_numpy_bytes(n: int, m: int, channels: int, warping: ShapeDTW, n_pairs: int) -> int:
    """Bytes that `distances_by_numpy` holds beside its input and output."""
    longest, width = max(n, m), warping.width
    step = min(n_pairs, _pairs_at_a_time(n, m, warping))
    matrices = 6 * (longest + 1) ** 2 + 3 * (longest + width) ** 2
    return 8 * step * (matrices + 4 * channels * (longest + width))


def seconds(left: Series, right: Series, warping: ShapeDTW, n_pairs: int) -> float:
    """About how long `distances_by_numpy` takes."""
    n, m, width = left.n_timepoints, right.n_timepoints, warping.width
    terms = (n + width) * (m + width) * (2 * left.n_channels + 2 + width // n)
    steps = -(-n_pairs // _pairs_at_a_time(n, m, warping))
    return 2e-9 * n_pairs * (terms + 20 * n * m) + (1e-4 * (n + m) + 2e-6 * width) * steps
