"""Lines as the search of a join sees them: centred and scaled, with bounds of the rounding.

Covariances sum along a line, so that their errors are those of its loudest stretch. A search
therefore takes a line of its own, no point of which is larger than 1. Windows whose points cannot
be kept there are hidden from the search; a join measures them one by one.

Z-normalised windows do not change with offset and scale: a line that is as loud everywhere is
centred as a whole (`even_line`), any other piece by piece (`line_of_pieces`). Windows that are
compared as they are need one offset and one scale for all lines of a join (`common_frame`,
`line_as_it_is`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT
from ...core.series import read_only
from .concatenated import repeat_last, whole_windows

__all__ = [
    "Frame",
    "SearchLine",
    "common_frame",
    "even_frame",
    "even_line",
    "line_as_it_is",
    "line_of_pieces",
    "step_factors",
]

#: A piece of a line spreads at most so many times the range of each of its windows.
#: see "search line" in docs/developer/numerics.rst
EVEN = 2.0**30
#: Windows so many powers of two below the loudest of a line are too quiet for its search, where
#: they are compared as they are; points whose middle and size are looked at.
QUIET, SAMPLE = 22, 4096
#: An array, or one of its values.
Values = np.ndarray | np.float64


class SearchLine(NamedTuple):
    """A line as the search of a join sees it: no point is larger than 1.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Finite points. In a window that is not hidden, each is the given point less an offset,
        times a power of two, rounded once.
    hidden : ndarray of shape (n_windows,), bool
        Windows that the line does not hold as they are; a join measures them one by one.
    unit : float
        By this factor distances are larger here, where windows are compared as they are; else 1.
    frame : (float, float) or None
        Offset and power of two of all points; None where they have no common one.
    """

    points: np.ndarray
    hidden: np.ndarray
    unit: float
    frame: tuple[float, float] | None

    def moments(
        self, given: Sequence[Any], compute: Callable[[Any], Sequence[Any]]
    ) -> tuple[Any, Any, Any, Any]:
        """Mean, deviation, largest magnitude and error of the mean of all windows of this line.

        Parameters
        ----------
        given : sequence of four arrays of shape (n_windows,)
            Of the line as it was given: means from the first points on, deviations, least and
            largest points.
        compute : callable
            Makes that of any line.

        Returns
        -------
        tuple of four arrays
            A mean sums length differences that are no larger than the range.
        """
        points, (offset, scale) = self.points, self.frame or (0.0, 1.0)
        mean, deviation, low, high = compute(points) if self.frame is None else given
        size = np.maximum(np.abs(low - offset), np.abs(high - offset)) * scale
        length = points.size - mean.size + 1
        # see "search line" in docs/developer/numerics.rst
        error = FLOAT64_UNIT * ((length + 2) * scale * (high - low) + 4 * size)
        return points[: mean.size] + mean * scale, deviation * scale, size, error


def even_line(filled: Any, ranges: Any) -> SearchLine | None:
    """Make the line on which z-normalised windows are searched, if it is as loud everywhere.

    Parameters
    ----------
    filled : array of shape (n_points,), float64
        From `fill_gaps`, in the memory of the engine.
    ranges : array of shape (n_windows,), float64
        Of each window; infinite for those that are constant or not finite.

    Returns
    -------
    SearchLine or None
        None where `line_of_pieces` is needed.
    """
    frame = even_frame(filled.min(), filled.max(), ranges.min())
    if frame is None:
        return None
    offset, scale = frame
    return SearchLine((filled - offset) * scale, ranges < 0, 1.0, frame)


def even_frame(low: Any, high: Any, least_range: Any) -> tuple[float, float] | None:
    """Offset and power of two of all points of a line that is as loud everywhere, else None.

    Parameters
    ----------
    low, high : number, or array of one
        The least and the largest point.
    least_range : number, or array of one
        The least range of a window that is neither constant nor infinite.
    """
    low, high = float(low), float(high)
    if high - low > EVEN * float(least_range):
        return None
    offset, scale = map(float, _center(np.float64(low), np.float64(high)))
    return offset, scale


def line_of_pieces(filled: np.ndarray, ranges: np.ndarray, length: int) -> SearchLine:
    """Make the line on which z-normalised windows are searched, piece by piece.

    A search sums along a line: its errors are those of the loudest stretch. So a line that is much
    louder in one place than in another is cut into pieces, each centred and scaled for itself,
    which changes no z-normalised window. Windows across a cut are hidden.

    Parameters
    ----------
    filled : ndarray of shape (n_points,), float64
        From `fill_gaps`.
    ranges : ndarray of shape (n_windows,), float64
        Of each window; infinite for those that are constant or not finite.
    length : int
        Points of a window.

    Returns
    -------
    SearchLine
        Of each window that is not hidden the range is at least 2^-31.
    """
    from ...host import windows

    begins = windows.cut(read_only(filled), ranges, length, EVEN)
    first = np.flatnonzero(begins)
    sizes = np.diff(first, append=filled.size)
    offset, scale = _center(np.minimum.reduceat(filled, first), np.maximum.reduceat(filled, first))
    points = (filled - np.repeat(offset, sizes)) * np.repeat(scale, sizes)
    cuts = np.cumsum(begins)
    return SearchLine(points, cuts[: ranges.size] != cuts[length - 1 :], 1.0, None)


def _center(low: Values, high: Values) -> tuple[np.ndarray, np.ndarray]:
    """Offset, if it dwarfs the spread, and power of two that bring values to 1 at most."""
    middle = low / 2 + high / 2
    offset = np.where(np.abs(middle) > high / 2 - low / 2, middle, 0.0)
    return offset, _power_for(np.maximum(np.abs(low - offset), np.abs(high - offset)))


def _power_for(largest: Values) -> np.ndarray:
    """The power of two that brings values to 1 at most."""
    return np.ldexp(1.0, -np.maximum(np.frexp(largest)[1], -1000))


class Frame(NamedTuple):
    """Offset and size that windows have in common which are compared as they are.

    Attributes
    ----------
    offset : float
        Subtracted from all points.
    largest : float
        Points farther from the offset are left out.
    """

    offset: float
    largest: float


def common_frame(
    lines: Sequence[np.ndarray], extents: Sequence[Callable[[], tuple[np.ndarray, np.ndarray]]]
) -> Frame:
    """Choose the frame of lines whose windows are compared as they are.

    A few windows with very large values, such as codes for missing ones, would raise the rounding
    error above the values of all others: where fewer windows are that loud than are that quiet,
    the loud ones are left out.

    Parameters
    ----------
    lines : sequence of ndarray of shape (n_points,), float64
        From `fill_gaps`.
    extents : sequence of callable
        Return the least and largest points of all windows of a line, if they are needed.
    """
    some = np.concatenate([line[:: max(1, line.size // SAMPLE)] for line in lines])
    middle = float(np.median(some))
    typical = float(np.median(np.abs(some - middle)))
    offset = middle if abs(middle) > 4 * typical else 0.0
    low = min(float(line.min()) for line in lines)
    high = max(float(line.max()) for line in lines)
    largest = max(abs(low - offset), abs(high - offset))
    if largest <= 2.0**QUIET * typical:
        return Frame(offset, largest)
    sizes = np.concatenate(
        [np.maximum(np.abs(low - offset), np.abs(high - offset)) for low, high in
         (extent() for extent in extents)]
    )  # fmt: skip
    exponents = np.frexp(sizes[sizes > 0])[1]
    if exponents.size == 0:
        return Frame(offset, largest)
    base = int(exponents.min())
    counts = np.bincount(exponents - base)
    upto = np.cumsum(counts)
    quiet = np.concatenate([np.zeros(QUIET + 1, np.int64), upto])[: counts.size]
    unserved = np.where(counts > 0, counts.sum() - upto + quiet, np.iinfo(np.int64).max)
    chosen = counts.size - 1 - int(np.argmin(unserved[::-1]))
    return Frame(offset, min(largest, float(np.ldexp(1.0, base + chosen))))


def line_as_it_is(filled: np.ndarray, frame: Frame, length: int) -> SearchLine:
    """Make the line on which windows are searched that are compared as they are."""
    points = filled - frame.offset
    inside = np.abs(points) <= frame.largest
    hidden = ~whole_windows(inside, length)
    scale = float(_power_for(np.float64(frame.largest)))
    if inside.all():
        return SearchLine(points * scale, hidden, scale, (frame.offset, scale))
    return SearchLine(repeat_last(points, inside) * scale, hidden, scale, None)


def step_factors(points: Any, mean: Any, frame: Frame | None) -> tuple[Any, Any]:
    """Make the two factors of the step that leads to each window from the one before.

    When two windows move on by a point, their covariance grows by ``lead trail' + trail lead'``;
    the product of windows that are compared as they are by ``lead lead' - trail trail'``.

    Parameters
    ----------
    points : array of shape (..., n_points), float64
        Those of a `SearchLine`, or of several, in the memory of the engine.
    mean : array of shape (..., n_windows), float64
        Means of its windows.
    frame : Frame or None
        That of windows which are compared as they are.

    Returns
    -------
    lead, trail : array of shape (..., n_windows), float64
        0 for the first window.
    """
    # see "covariance walk" in docs/developer/numerics.rst
    length = points.shape[-1] - mean.shape[-1] + 1
    new, old = points[..., length:], points[..., : points.shape[-1] - length]
    lead, trail = np.zeros_like(mean), np.zeros_like(mean)
    if frame is None:
        lead[..., 1:] = (new - old) / 2
        trail[..., 1:] = (new - mean[..., 1:]) + (old - mean[..., :-1])
    else:
        lead[..., 1:], trail[..., 1:] = new, -old
    return lead, trail
