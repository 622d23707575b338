"""Distances along the best paths between descriptors, on the CPU: many pairs side by side.

Paths come from `alignments`, or one after the other from `warping_path` where their steps would
take too much memory. Descriptors are made of some pairs at a time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.series import Series
from ...families.elastic.averages import AlignmentSums
from ...families.elastic.descriptors import Spans, in_order
from ...families.elastic.distances import ShapeDTW
from . import alignments, warping_path
from .lanes import LANES

__all__ = [
    "by_numpy_bytes",
    "distances",
    "distances_bytes",
    "distances_by_numpy",
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
        sides, labels = (warping.describe(x), warping.describe(y)), np.arange(len(x))
        between = warping.between_descriptors
        if side_by_side:
            first, stop, _ = alignments.trace(*sides, labels, between, cancel)
        else:
            work = AlignmentSums(sides[1], sides[0], labels, np.ones(len(x)), between)
            first, stop, _ = alignments.trace_one_by_one(work, cancel)
        yield Spans(part, x, y, first, stop, swapped)


def _fits(n: int, m: int, channels: int, warping: ShapeDTW, most_steps: int) -> tuple[bool, int]:
    """Whether pairs lie side by side, and of how many descriptors are held at a time."""
    longest = max(n, m)
    if alignments.group_bytes(longest, longest, channels * warping.width) > most_steps:
        return False, 1
    fitting = _POINTS // (channels * warping.width * (n + m))
    return True, max(LANES[np.float64], min(_MOST, fitting))


def distances_bytes(
    n: int, m: int, channels: int, warping: ShapeDTW, n_pairs: int, most_steps: int
) -> int:
    """Bytes that `distances` holds beside its input and output."""
    longest, width = max(n, m), channels * warping.width
    side_by_side, step = _fits(n, m, channels, warping, most_steps)
    if side_by_side:
        held = alignments.group_bytes(longest, longest, width)
    else:
        held = warping_path.path_bytes(longest, longest) + 16 * width * longest
    # both series in several copies, windows with what is repeated, spans of the path
    series = 8 * (2 * width * (longest + width) + 8 * channels * longest + 2 * longest)
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
    step = max(1, _ENTRIES // (left.n_timepoints * right.n_timepoints))
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), step):
        if cancel[0]:
            break
        part = slice(start, start + step)
        x, y, _ = in_order(left, right, pairs[part])
        found[part] = warping.distance(_along(x, y, warping))
    return found


def _along(x: Series, y: Series, warping: ShapeDTW) -> np.ndarray:
    """Costs of pairs along their best paths, by NumPy along antidiagonals."""
    (count, _, n), m = x.shape, y.n_timepoints
    costs = _matrices(warping.describe(x), warping.describe(y), squared=warping.squared)
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


def by_numpy_bytes(n: int, m: int, channels: int, warping: ShapeDTW, n_pairs: int) -> int:
    """Bytes that `distances_by_numpy` holds beside its input and output."""
    longest, width = max(n, m), channels * warping.width
    step = min(n_pairs, max(1, _ENTRIES // (n * m)))
    return 8 * step * (6 * (longest + 1) ** 2 + 2 * width * (longest + width))


def seconds(left: Series, right: Series, warping: ShapeDTW, n_pairs: int) -> float:
    """About how long `distances_by_numpy` takes."""
    n, m = left.n_timepoints, right.n_timepoints
    step = max(1, _ENTRIES // (n * m))
    cells = n_pairs * n * m * (left.n_channels * warping.width + 20)
    return 2e-9 * cells + 1e-4 * (n + m) * -(-n_pairs // step)
