"""Distances along the best paths between descriptors, and these paths, on the GPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.series import Series
from ...families.elastic.descriptors import Spans, in_order, write_span
from ...families.elastic.distances import ShapeDTW
from .alignment_programs import along, path_words

__all__ = [
    "MOST_BYTES",
    "distances",
    "distances_bytes",
    "path",
    "spans_bytes",
    "spans_of",
]

#: Bytes of pairs with repeated ends, and of the steps of their paths, that are held at a time.
MOST_BYTES = 2**28
#: Warps of a multiprocessor that are busy with distances, by the shared memory that they take.
WARPS = 9


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
        Bytes for the series of the pairs that are under way at a time.

    Returns
    -------
    ndarray of shape (n_pairs,)
        The distances.
    """
    import cupy

    from ..loading import load_kernel
    from . import dtw

    found = np.zeros(len(pairs))
    n, m, width = left.n_timepoints, right.n_timepoints, warping.width
    step = max(1, budget // _bytes_of_points(left, right, warping))
    kernel = load_kernel("elastic/windows.cu", along(warping))
    points = dtw.points_by_length(warping, max(n, m))
    multiprocessors = cupy.cuda.Device().attributes["MultiProcessorCount"]
    for start in range(0, len(pairs), step):
        if cancel[0]:
            break
        some = pairs[start : start + step]
        # of each side the series that take part
        numbers, places = zip(
            *(np.unique(side, return_inverse=True) for side in some.T), strict=True
        )
        x, y = (
            dtw.upload(warping.padded(side.take(one)))
            for side, one in zip((left, right), numbers, strict=True)
        )
        blocks = min(len(some), multiprocessors * WARPS)
        out = cupy.empty(len(some))
        kernel(
            blocks,
            32,
            left_values=x.values,
            left_lengths=x.lengths,
            left_stride=x.shape[2],
            right_values=y.values,
            right_lengths=y.lengths,
            right_stride=y.shape[2],
            n_channels=left.n_channels,
            pairs=cupy.asarray(np.column_stack(places).astype(np.int32)),
            n_pairs=len(some),
            width=width,
            points=points,
            root=warping.squared,
            edges=cupy.empty(2 * blocks * max(n, m)),
            edge_stride=max(n, m),
            out=out,
        )
        found[start : start + step] = out.get()
    return found


def spans_of(
    left: Series,
    right: Series,
    pairs: np.ndarray,
    warping: ShapeDTW,
    cancel: np.ndarray,
    budget: int,
) -> Iterator[Spans]:
    """Best paths between descriptors, of some pairs after the other.

    Parameters are those of `distances`; the budget is for the steps of the paths, too.
    """
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


def _bytes_of_points(left: Series, right: Series, warping: ShapeDTW) -> int:
    """Bytes of a pair on the device: its points, with those that are repeated, and its numbers."""
    from . import dtw

    points = left.n_timepoints + right.n_timepoints + 2 * dtw.stride(warping.width)
    return 8 * left.n_channels * (points + 8) + 32


def distances_bytes(left: Series, right: Series, warping: ShapeDTW, budget: int) -> int:
    """Bytes that `distances` holds on the device."""
    each = _bytes_of_points(left, right, warping)
    # edges of as many warps as a large device has
    edges = 2**11 * 16 * max(left.n_timepoints, right.n_timepoints)
    return max(each, budget) + edges + 2**15


def spans_bytes(left: Series, right: Series, warping: ShapeDTW, budget: int) -> int:
    """Bytes that `spans_of` holds on the device."""
    from . import dtw
    from .warping_path import path_bytes

    n = max(left.n_timepoints, right.n_timepoints) + warping.width
    each = _bytes_of_one(left, right, warping)
    if each > budget:
        return 2 * dtw.device_bytes(1, left.n_channels, n) + path_bytes(n, n)
    # edges of as many warps as a large device has
    return 2 * budget + 2**13 * 8 * dtw.stride(n)
