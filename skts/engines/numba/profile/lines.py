"""Lines prepared for joins on the CPU: statistics, and what covariances need of every window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.interrupts import heeded
from ...core.series import read_only
from ...families.profile.lines import Frame, SearchLine, step_factors
from ...host import windows

__all__ = [
    "HEIGHTS",
    "Searched",
    "Steps",
    "PreparedLine",
    "describe",
    "grown_steps",
    "make_steps",
    "repeats",
    "weigh",
]

#: Rows of a band: what a covariance sums no more steps than; low ones where windows differ
#: so much in size that rounding errors of large ones would bury small ones.
HEIGHTS = (4096, 512, 64)


def describe(points: np.ndarray, length: int) -> list[np.ndarray]:
    """Mean, deviation, least and largest point of all windows, counted from their first points.

    Raises
    ------
    Cancelled
        If the run that this belongs to is stopped.
    """
    with heeded() as cancel:
        return list(windows.statistics(points, length, True, cancel))


class PreparedLine(NamedTuple):
    """A line prepared for certified distances between windows of one length.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        The line from `fill_gaps`.
    mean, inverse : ndarray of shape (n_windows,), float64
        Mean, counted from the first point of the window, and 1 / deviation; 0 and 1 where windows
        are compared as they are. The inverse is 0 where a window is constant or not finite.
    moments : list of four ndarray of shape (n_windows,), float64
        Mean, deviation, least and largest point of all windows of that line, as they came out.
    constant, finite : ndarray of shape (n_windows,), bool
        Which windows are constant, none if they are compared as they are; which are finite.
    """

    points: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray
    moments: list[np.ndarray]
    constant: np.ndarray
    finite: np.ndarray

    @property
    def regular(self) -> np.ndarray:
        """Where a window is finite and not constant."""
        return self.finite & ~self.constant

    def grown(self, new: PreparedLine, dropped: int) -> PreparedLine:
        """The line with windows behind it, less some at its beginning."""

        def both(old: np.ndarray, new: np.ndarray) -> np.ndarray:
            return np.concatenate([old[dropped:], new])

        n_windows = self.finite.size
        moments = [both(*each) for each in zip(self.moments, new.moments, strict=True)]
        points = read_only(np.concatenate([self.points[dropped:n_windows], new.points]))
        # z-normalised windows have the mean of their moments
        mean = moments[0] if self.mean is self.moments[0] else both(self.mean, new.mean)
        inverse, constant = both(self.inverse, new.inverse), both(self.constant, new.constant)
        return PreparedLine(points, mean, inverse, moments, constant, both(self.finite, new.finite))


class Searched(NamedTuple):
    """A line prepared for the search of a join.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Those of the `SearchLine`.
    mean, deviation, size, slip : ndarray of shape (n_windows,), float64
        Mean, deviation, largest magnitude and error of the mean of all windows of that line.
    regular, hidden : ndarray of shape (n_windows,), bool
        Which windows are searched; which of the finite ones that are not constant are not.
    unit : float
        That of the `SearchLine`.
    frame : Frame or None
        Offset and size that raw windows have in common.
    even : (float, float) or None
        Offset and power of two of all points of z-normalised windows, where they have one.
    grown : bool
        Whether it is known to continue the line that its line has grown from.
    """

    points: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    size: np.ndarray
    slip: np.ndarray
    regular: np.ndarray
    hidden: np.ndarray
    unit: float
    frame: Frame | None
    even: tuple[float, float] | None = None
    grown: bool = False

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays of points and windows."""
        return self[:7]

    @classmethod
    def of(
        cls,
        made: SearchLine,
        given: Sequence[np.ndarray],
        regular: np.ndarray,
        frame: Frame | None,
    ) -> Searched:
        """Prepare a line whose moments and regular windows are given as they came."""
        points, hidden = read_only(made.points), made.hidden & regular
        length = points.size - hidden.size + 1
        moments = made.moments(given, lambda _: describe(points, length))
        even = made.frame if frame is None else None
        return cls(points, *moments, regular & ~hidden, hidden, made.unit, frame, even)

    def after(self, dropped: int, line: PreparedLine, ranges: np.ndarray) -> Searched:
        """The same of a line that continues this one, less some windows at its beginning.

        Offset and scale of all its points are those of this one (`even`); `ranges` are those of
        `even_line`.
        """
        assert self.even is not None
        offset, scale = self.even
        n_kept = max(0, self.regular.size - dropped)
        late = SearchLine(
            (line.points[n_kept:] - offset) * scale, ranges[n_kept:] < 0, 1.0, self.even
        )
        moments = [one[n_kept:] for one in line.moments]
        new = Searched.of(late, moments, line.regular[n_kept:], None)
        # the last points are those of new windows, too
        both = (
            np.concatenate([old[dropped : dropped + n_kept], more])
            for old, more in zip(self.arrays, new.arrays, strict=True)
        )
        points, mean, deviation, size, slip, regular, hidden = both
        arrays = read_only(points), mean, deviation, size, slip, regular, hidden
        return Searched(*arrays, new.unit, None, self.even, True)

    def continues(self, before: Searched, dropped: int) -> bool:
        """Whether what it begins with is a line of before, less some windows at its beginning."""
        if self.grown:
            return True
        n_windows = before.mean.size - dropped
        pairs = zip(before.arrays, self.arrays, strict=True)
        same = (np.array_equal(old[dropped:], new[: old.size - dropped]) for old, new in pairs)
        return n_windows > 0 and all(same)

    def energy(self, length: int) -> np.ndarray:
        """Sum of the squares of every window."""
        return length * (self.deviation**2 + self.mean**2)


class Steps(NamedTuple):
    """Factors and bounds of the covariances of the windows of a line.

    Attributes
    ----------
    lead, trail : ndarray of shape (n_windows,), float64
        The two factors of the step that leads to a window: p and r of rows, q and s of columns.
    weight : ndarray of shape (n_windows,), float64
        Factor, or term, that makes a score of a covariance.
    alpha, beta : ndarray of shape (n_windows,), float64
        Squared distances of the window are ``alpha - beta score``.
    norm, slip : ndarray of shape (n_windows,), float64
        Norm, and error of the mean.
    blur, shift : ndarray of shape (n_windows,), float64
        Largest magnitude and error of the mean over the norm, for normalised windows; else 0.
    reach, stride : ndarray of shape (len(HEIGHTS), n_windows), float64
        The largest norms and steps of a window and those before it, as many as each of HEIGHTS.
    """

    lead: np.ndarray
    trail: np.ndarray
    weight: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    norm: np.ndarray
    slip: np.ndarray
    blur: np.ndarray
    shift: np.ndarray
    reach: np.ndarray
    stride: np.ndarray


def weigh(weight: np.ndarray, regular: np.ndarray, level: float) -> np.ndarray:
    """Weights that let windows that take part in nothing score nothing."""
    return np.where(regular, weight, -level)


def repeats(
    points: np.ndarray, regular: np.ndarray, span: tuple[int, int], length: int, count: int
) -> np.ndarray:
    """Where a window equals each of so many before it, point by point, all within a span.

    Such windows are as far from any other, and come later: none of them is among the first `count`
    of equally near neighbours of a window that may have those before it.

    Parameters
    ----------
    points : ndarray of shape (n_points,), float64
        The line as it came.
    regular : ndarray of shape (n_windows,), bool
        Which windows take part.
    span : (int, int)
        The first window of the span, and the first behind it.
    length, count : int
        Points of a window, and how many it equals.

    Returns
    -------
    ndarray of shape (n_windows,), bool
    """
    found, (first, stop) = np.zeros(regular.size, bool), span
    still = points[first + 1 : stop + length - 1] == points[first : stop + length - 2]
    if stop - first <= count or not still.any():
        return found
    # count + 1 windows that follow each other: all points are one number, and all take part
    moves = np.concatenate([[0], np.cumsum(~still)])
    gaps = np.concatenate([[0], np.cumsum(~regular[first:stop])])
    n_points = length + count
    found[first + count : stop] = (moves[n_points - 1 :] == moves[: 1 - n_points]) & (
        gaps[count + 1 :] == gaps[: -count - 1]
    )
    return found


def make_steps(line: Searched, length: int, level: float) -> Steps:
    """Make factors and bounds of the windows of a line; `level` keeps raw scores positive."""
    mean = line.mean
    lead, trail = step_factors(line.points, mean, line.frame)
    if line.frame is None:
        norm = np.sqrt(length) * line.deviation
        weight = np.divide(1.0, norm, out=np.zeros(mean.size), where=line.regular)
        alpha = np.full(mean.size, 2.0 * length)
        beta = 2.0 * length * weight
        blur = line.size * weight
        shift = line.slip * weight
    else:
        energy = line.energy(length)
        norm = np.sqrt(energy)
        weight = weigh(level / 2 - energy / 2, line.regular, level)
        alpha = energy + level
        beta = np.full(mean.size, 2.0)
        blur = shift = np.zeros(mean.size)
    step = np.abs(lead) + np.abs(trail)
    reach, stride = (_running_max(values) for values in (norm, step))
    return Steps(lead, trail, weight, alpha, beta, norm, line.slip, blur, shift, reach, stride)


def grown_steps(before: Steps, dropped: int, line: Searched, length: int, level: float) -> Steps:
    """Make them for a line that continues another, less some windows at its beginning.

    Bounds may be those of windows that have left.
    """
    n_kept = before.lead.size - dropped
    # the running maxima of new windows, and the step to the first of them, need some before it
    begin = max(0, n_kept - HEIGHTS[0] - 1)
    tail = {name: getattr(line, name)[begin:] for name in Searched._fields[:7]}
    new = make_steps(line._replace(**tail), length, level)
    both = (
        np.concatenate([old[..., dropped:], late[..., n_kept - begin :]], axis=-1)
        for old, late in zip(before, new, strict=True)
    )
    made = Steps(*both)
    made.lead[0] = made.trail[0] = 0.0
    return made


def _running_max(values: np.ndarray) -> np.ndarray:
    """The largest of the values up to each place, as many as each of HEIGHTS and itself.

    Runs of 1, 2, 4, ... values: half of the time of SciPy's filter.
    """
    run, longest, found = 1, values, np.empty((len(HEIGHTS), values.size))
    for level in range(len(HEIGHTS) - 1, -1, -1):
        wanted = HEIGHTS[level] + 1
        while 2 * run <= wanted:
            longest, run = _longer(longest, run, np.empty_like(values)), 2 * run
        _longer(longest, wanted - run, found[level])
    return found


def _longer(runs: np.ndarray, step: int, out: np.ndarray) -> np.ndarray:
    """The largest of each run and the one that many places before it; at most its own length."""
    step = min(step, runs.size)
    out[:step] = runs[:step]
    np.maximum(runs[step:], runs[: runs.size - step], out=out[step:])
    return out
