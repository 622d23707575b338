"""Distances along the best paths between descriptors, on the GPU: many pairs at a time.

Paths are found on the device; what is matched is added up on the host, as the CPU engine does it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.series import Series
from ...families.elastic.descriptors import Spans, in_order, write_span
from ...families.elastic.distances import ShapeDTW
from .alignment_programs import path_words

__all__ = ["MOST_BYTES", "distances", "distances_bytes", "spans_of"]

#: Bytes of pairs with repeated ends, and of the steps of their paths, that are held at a time.
MOST_BYTES = 2**28


def distances(
    left: Series,
    right: Series,
    pairs: np.ndarray,
    warping: ShapeDTW,
    cancel: np.ndarray,
    budget: int,
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
    budget : int
        Bytes for the descriptors and steps of the pairs that are under way at a time.

    Returns
    -------
    ndarray of shape (n_pairs,)
        The distances.
    """
    found = np.zeros(len(pairs))
    for spans in spans_of(left, right, pairs, warping, cancel, budget):
        found[spans.part] = warping.along_spans(*spans[1:5])
    return found


def spans_of(
    left: Series,
    right: Series,
    pairs: np.ndarray,
    warping: ShapeDTW,
    cancel: np.ndarray,
    budget: int,
) -> Iterator[Spans]:
    """Best paths between descriptors, of some pairs after the other; parameters as `distances`."""
    import cupy

    from . import alignments, dtw

    each = _bytes_of_one(left, right, warping)
    step = max(1, budget // each)
    for start in range(0, len(pairs), step):
        if cancel[0]:
            break
        part = slice(start, start + step)
        x, y, swapped = in_order(left, right, pairs[part])
        if each > budget:
            yield Spans(part, x, y, *_one_span(x, y, warping, cancel), swapped)
            continue
        traced = alignments.trace(
            dtw.upload(warping.padded(x)),
            dtw.upload(warping.padded(y)),
            cupy.arange(len(x), dtype=np.int32),
            warping.between_descriptors,
            cancel,
            budget=budget,
            width=warping.width,
        )
        yield Spans(part, x, y, traced.first.get(), traced.stop.get(), swapped)


def _one_span(
    x: Series, y: Series, warping: ShapeDTW, cancel: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same of a pair of long series, in the memory of one path."""
    first, stop = np.zeros((2, 1, x.n_timepoints), np.int32)
    found = path(x, y, warping, cancel)
    if not cancel[0]:
        write_span(found, first[0], stop[0])
    return first, stop


def path(x: Series, y: Series, warping: ShapeDTW, cancel: np.ndarray) -> np.ndarray:
    """Best path between the descriptors of one series and another, in the memory of one path."""
    from . import dtw, warping_path

    p, q = (dtw.upload(warping.padded(side)) for side in (x, y))
    return warping_path.path(p, q, warping.between_descriptors, cancel, warping.width)[0]


def _bytes_of_one(left: Series, right: Series, warping: ShapeDTW) -> int:
    """Bytes of a pair with repeated ends, and of the steps of its path."""
    from . import dtw

    n = dtw.stride(max(left.n_timepoints, right.n_timepoints) + warping.width)
    return 8 * (2 * left.n_channels * n + n * path_words(n) + n)


def distances_bytes(left: Series, right: Series, warping: ShapeDTW, budget: int) -> int:
    """Bytes that `distances` holds on the device."""
    from . import dtw
    from .warping_path import path_bytes

    n = max(left.n_timepoints, right.n_timepoints) + warping.width
    each = _bytes_of_one(left, right, warping)
    if each > budget:
        return 2 * dtw.device_bytes(1, left.n_channels, n) + path_bytes(n, n)
    # edges of as many warps as a large device has
    return 2 * budget + 2**13 * 8 * dtw.stride(n)
