"""Lines on the device: what certified distances, searches and covariances need of every window."""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import JOIN_GROUP
from ...families.profile.concatenated import ConcatenatedSeries, fill_gaps, whole_windows
from ...families.profile.lines import (
    Frame,
    even_frame,
    even_line,
    line_as_it_is,
    line_of_pieces,
    step_factors,
)
from ...families.profile.statistics import settle_statistics
from ..loading import blocks_for, load_kernel
from ..transfers import Near, as_in, bring, module_of, near, to_host
from .programs import steps_kernel

__all__ = [
    "PAD",
    "DeviceLine",
    "Searched",
    "Steps",
    "inverse_norm",
    "make_steps",
    "prepare_line",
    "prepare_search",
    "window_distances",
]

#: Rows that the walk may fetch beyond the last: two of its chunks.
PAD = 64


class DeviceLine(NamedTuple):
    """A line on the device, prepared for certified distances between windows of one length.

    Attributes
    ----------
    points : cupy.ndarray of float64
        The line from `fill_gaps`.
    mean, inverse : cupy.ndarray of float64
        Mean, counted from the first point of each window, and 1 / deviation, or 0 and 1.
    moments : list of four arrays of float64
        Mean, deviation, least and largest point of all windows of that line, as they came out: on
        the host, if the line is short; so are `constant` and `finite`.
    constant, finite, regular : array of bool
        Which windows are constant, none if they are compared as they are; which are finite; which
        are finite and not constant.
    extents : cupy.ndarray of shape (n, 3) or None
        Least and largest points of some windows, and the least range of the regular ones; None if
        the line is short.
    """

    points: cp.ndarray
    mean: cp.ndarray
    inverse: cp.ndarray
    moments: list[Near]
    constant: Near
    finite: Near
    regular: Near
    extents: cp.ndarray | None

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        arrays = self.points, self.inverse, *self.moments, *self[4:7]
        return sum(array.nbytes for array in arrays)


class Uploaded(NamedTuple):
    """Arrays of a line that is searched for kernels: float64, on the device."""

    points: cp.ndarray
    mean: cp.ndarray
    norm: cp.ndarray
    slip: cp.ndarray


class Searched(NamedTuple):
    """A line prepared for the search of a join, on the host if it is short.

    Attributes
    ----------
    points : array of float64
        Those of the `SearchLine`.
    mean, norm, size, slip : array of float64
        Mean, norm, largest magnitude and error of the mean of all windows of that line; the norm
        of what covariances are taken of.
    regular, hidden : array of bool
        Which windows are searched; which of the finite ones that are not constant are not.
    device : Uploaded
        Some of these arrays, for kernels.
    unit : float
        That of the `SearchLine`.
    frame : Frame or None
        Offset and size that raw windows have in common.
    """

    points: Near
    mean: Near
    norm: Near
    size: Near
    slip: Near
    regular: Near
    hidden: Near
    device: Uploaded
    unit: float
    frame: Frame | None

    @property
    def nbytes(self) -> int:
        """Bytes on the device, or as many on the host."""
        return sum(array.nbytes for array in self[:7])


def _statistics(points: cp.ndarray, length: int) -> list[cp.ndarray]:
    """Mean, from the first point of each window on, deviation, least and largest point."""
    n_windows = points.size - length + 1
    found = [cp.empty(n_windows) for _ in range(4)]
    mean, deviation, low, high = found
    load_kernel("profile/windows.cu", "statistics")(
        blocks_for(n_windows, 128),
        128,
        points=points,
        n_windows=n_windows,
        length=length,
        mean=mean,
        deviation=deviation,
        low=low,
        high=high,
    )
    return found


@np.errstate(all="ignore")  # as on the device; what is not finite is left out
def prepare_line(
    pool: ConcatenatedSeries, length: int, normalize: bool, points: cp.ndarray | None = None
) -> DeviceLine:
    """Bring a line to the device, prepared for certified distances; `points` if they are there."""
    filled, finite = fill_gaps(pool.points)
    if points is None:
        points = cp.asarray(filled)
    moments = near(*_statistics(points, length))
    mean, deviation, low, high = moments
    # a mean of what is not finite is never looked at
    used: cp.ndarray = cp.asarray(mean) if normalize else cp.zeros(mean.size)
    if not isinstance(mean, np.ndarray):
        whole = None if filled is pool.points else whole_windows(finite, length)
        return DeviceLine(points, used, *_kinds(moments, whole, normalize))
    found = settle_statistics(deviation, low, high, whole_windows(finite, length))
    inverse, constant, regular = found.inverse, found.constant, found.regular
    if not normalize:
        inverse, constant = found.finite.astype(np.float64), np.zeros_like(constant)
        regular = found.finite
    kinds = constant, found.finite, regular
    return DeviceLine(points, used, cp.asarray(inverse), moments, *kinds, None)


def _kinds(moments: list[cp.ndarray], whole: np.ndarray | None, normalize: bool) -> Any:
    """All but the first two of a `DeviceLine`; `whole` says which windows are finite, None: all."""
    _, deviation, low, high = moments
    n_windows, blocks = low.size, blocks_for(low.size, 256)
    inverse, extents = cp.empty(n_windows), cp.empty((blocks, 3))
    constant, finite, regular = (cp.empty(n_windows, np.bool_) for _ in range(3))
    load_kernel("profile/windows.cu", "kinds")(
        blocks,
        256,
        deviation=deviation,
        low=low,
        high=high,
        whole=None if whole is None else cp.asarray(whole),
        n_windows=n_windows,
        normalize=normalize,
        inverse=inverse,
        constant=constant,
        finite=finite,
        regular=regular,
        extents=extents,
    )
    return inverse, moments, constant, finite, regular, extents


@np.errstate(all="ignore")
def prepare_search(
    pool: ConcatenatedSeries, line: DeviceLine, length: int, frame: Frame | None
) -> Searched:
    """Prepare a line for the search of a join; `frame` is that of windows as they are."""
    regular = line.regular
    module = module_of(regular)
    if frame is None and line.extents is not None:
        extents = bring(line.extents)
        known = even_frame(extents[:, 0].min(), extents[:, 1].max(), extents[:, 2].min())
        if known is not None:
            return _move_line(line, length, *known)
    if frame is None:
        low, high = line.moments[2:]
        ranges = np.where(regular, high - low, np.inf)
        given = line.points if module is cp else fill_gaps(pool.points)[0]
        made = even_line(given, ranges)
        if made is None:
            made = line_of_pieces(fill_gaps(pool.points)[0], to_host(ranges), length)
    else:
        made = line_as_it_is(fill_gaps(pool.points)[0], frame, length)
    points, hidden = as_in(module, made.points), as_in(module, made.hidden) & regular
    made = made._replace(points=points)
    mean, deviation, size, slip = made.moments(
        line.moments,
        lambda one: [as_in(module, array) for array in _statistics(cp.asarray(one), length)],
    )
    square = deviation**2 if frame is None else deviation**2 + mean**2
    norm = np.sqrt(length * square)
    device = Uploaded(*(cp.asarray(array) for array in (points, mean, norm, slip)))
    mask = regular & ~hidden
    return Searched(points, mean, norm, size, slip, mask, hidden, device, made.unit, frame)


def _move_line(line: DeviceLine, length: int, offset: float, scale: float) -> Searched:
    """Prepare a line, all of whose points move alike, for the search of a join."""
    mean, deviation, low, high = line.moments
    n_points, n_windows = line.points.size, mean.size
    points = cp.empty(n_points)
    means, norm, size, slip = (cp.empty(n_windows) for _ in range(4))
    load_kernel("profile/windows.cu", "searched")(
        blocks_for(n_points, 256),
        256,
        points=line.points,
        mean=mean,
        deviation=deviation,
        low=low,
        high=high,
        n_points=n_points,
        n_windows=n_windows,
        length=length,
        offset=offset,
        scale=scale,
        moved=points,
        means=means,
        norm=norm,
        size=size,
        slip=slip,
    )
    device = Uploaded(points, means, norm, slip)
    hidden = cp.zeros(n_windows, np.bool_)
    return Searched(points, means, norm, size, slip, line.regular, hidden, device, 1.0, None)


class Steps(NamedTuple):
    """Factors and bounds of the covariances of the windows of a line, in the type of a search.

    Attributes
    ----------
    rows : cupy.ndarray of shape (n_windows + PAD, 4)
        The two factors of the step that leads to a window, and its weight, along the rows.
    first, second, weight : cupy.ndarray of shape (n_windows,)
        The same, along the columns.
    groups : cupy.ndarray of shape (n_groups, 7), float64
        The kernel's ``Group``.
    """

    rows: cp.ndarray
    first: cp.ndarray
    second: cp.ndarray
    weight: cp.ndarray
    groups: cp.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self)


@np.errstate(all="ignore")
def make_steps(line: Searched, regular: Near, level: float, dtype: type) -> Steps:
    """Make factors and bounds for covariances; `level` keeps scores of raw windows positive."""
    mean = line.mean
    n_windows = mean.size
    if not isinstance(mean, np.ndarray):
        return _steps_of(line, regular, level, dtype)
    lead, trail = step_factors(line.points, mean, line.frame)
    if line.frame is None:
        weight = inverse_norm(line, regular)
        first, second = trail, lead
    else:
        weight = np.where(regular, level / 2 - line.norm**2 / 2, -level)
        first, second = lead, -trail
    rows = np.zeros((n_windows + PAD, 4), dtype)
    rows[:n_windows] = np.stack([lead, trail, weight, np.zeros_like(mean)], axis=1)
    n_groups = -(-n_windows // JOIN_GROUP)
    groups = np.empty((n_groups, 7))
    step = np.abs(lead) + np.abs(trail)
    bounds = line.norm, step, line.size, line.slip, np.maximum(weight, 0), -mean, mean
    for at, values in enumerate(bounds):
        padded = np.full(n_groups * JOIN_GROUP, -np.inf)
        padded[:n_windows] = values
        groups[:, at] = padded.reshape(n_groups, JOIN_GROUP).max(axis=1)
    groups[:, 5] *= -1
    first, second, weight = (array.astype(dtype) for array in (first, second, weight))
    return Steps(*map(cp.asarray, (rows, first, second, weight, groups)))


def _steps_of(line: Searched, regular: cp.ndarray, level: float, dtype: type) -> Steps:
    """The same of a line on the device, by one kernel."""
    n_windows, padded = line.mean.size, line.mean.size + PAD
    rows = cp.empty((padded, 4), dtype)
    first, second, weight = (cp.empty(n_windows, dtype) for _ in range(3))
    groups = cp.empty((blocks_for(n_windows, JOIN_GROUP), 7))
    load_kernel("profile/steps.cu", steps_kernel(dtype, line.frame is None))(
        blocks_for(padded, JOIN_GROUP),
        JOIN_GROUP,
        points=line.points,
        mean=line.mean,
        norm=line.norm,
        size=line.size,
        slip=line.slip,
        regular=regular,
        n_windows=n_windows,
        padded=padded,
        length=line.points.size - n_windows + 1,
        level=level,
        rows=rows,
        first=first,
        second=second,
        weights=weight,
        groups=groups,
    )
    return Steps(rows, first, second, weight, groups)


def inverse_norm(line: Searched, regular: Near) -> Near:
    """1 / norm of windows that take part, 0 of others."""
    return np.where(regular, 1.0 / np.where(regular, line.norm, 1.0), 0.0)


def window_distances(
    a: DeviceLine,
    positions: np.ndarray,
    b: DeviceLine,
    columns: slice,
    length: int,
    normalize: bool,
) -> cp.ndarray:
    """Certified distances of chosen windows to a run of others, constant ones not settled."""
    first, count = columns.start, columns.stop - columns.start
    out = cp.empty((len(positions), count))
    for start in range(0, len(positions), 65535):
        some = cp.asarray(positions[start : start + 65535].astype(np.int64))
        load_kernel("profile/windows.cu", "distances")(
            (blocks_for(count, 256), len(some)),
            256,
            a=a.points,
            mean_a=a.mean,
            inverse_a=a.inverse,
            positions=some,
            b=b.points,
            mean_b=b.mean,
            inverse_b=b.inverse,
            first=first,
            count=count,
            length=length,
            anchored=normalize,
            out=out[start:],
        )
    return out
