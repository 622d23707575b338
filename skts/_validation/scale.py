"""Magnitudes whose squares, and the sums of these, stay in the range of float64."""

from __future__ import annotations

import math

import numpy as np

from ..engines import Series

__all__ = ["LARGEST", "LEAST", "check_scale", "in_range", "raise_scale"]

#: Squares and their sums leave the range of float64 where a value is above the one, or all those of
#: a series below the other. Rescaling by a power of two between them changes no bit of an answer.
LARGEST, LEAST = 2.0**480, 2.0**-480
#: Points that are looked at together, where a series may be a memory map.
_PIECE = 2**20


def in_range(series: Series) -> bool:
    """Whether there is neither NaN nor a series whose scale float64 cannot square."""
    low, high = series.extent
    return -LARGEST <= low and high <= LARGEST and not series.any_below(LEAST)


def check_scale(points: np.ndarray, row: int, input_name: str) -> None:
    """Raise if the largest finite magnitude of a series is out of range, unless it is 0.

    Points are looked at piece by piece: they may be those of a memory map.
    """
    largest, place = 0.0, 0
    for start in range(0, points.size, _PIECE):
        piece = points[start : start + _PIECE]
        top = max(piece.max(), -piece.min())
        if LEAST <= top <= LARGEST:
            largest = max(largest, top)
            continue
        # all are small, or there is NaN, infinity, or what is too large
        sizes = np.abs(piece)
        sizes[~np.isfinite(sizes)] = 0.0
        first = int(np.argmax(sizes > LARGEST)) if sizes.max() > LARGEST else int(sizes.argmax())
        if sizes[first] > LARGEST:
            raise_scale(points[start + first], row, start + first, "", input_name)
        if sizes[first] > largest:
            largest, place = sizes[first], start + first
    if 0 < largest < LEAST:
        raise_scale(points[place], row, place, "", input_name)


def raise_scale(value: float, row: int, point: int, channel: str, input_name: str) -> None:
    """Say that a value is too large, or that the largest value of a series is too small."""
    where = f"at series {row}, time point {point}{channel}"
    size = abs(value)
    advice = f"Rescale the data, for example multiply by 1e{min(300, -round(math.log10(size)))}."
    if size > LARGEST:
        raise ValueError(
            f"Input {input_name} contains {value:g} {where}; above {LARGEST:.2g} squares overflow "
            f"float64. {advice}"
        )
    raise ValueError(
        f"Input {input_name} contains no magnitude above {size:g}, {where}; below {LEAST:.2g} "
        f"squares underflow float64. {advice}"
    )
