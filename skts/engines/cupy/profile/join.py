"""Joins on the GPU: lines on the device, launch geometry, and what is listed measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.reduction import Tile
from ...families.profile.join import Join, JoinPart
from ...families.profile.lines import Frame, even_line, line_as_it_is, line_of_pieces
from ...families.profile.nearest import Nearest
from ...families.profile.pool import Pool, fill_gaps, whole_windows
from ...families.profile.statistics import settle_statistics
from ..loading import load_kernel
from ..transfers import read_number, to_host
from .programs import RUNS_PER_WINDOW, JoinKernel, choose_join, seed_kernel

__all__ = ["DeviceLine", "Known", "Searched", "lay", "lay_search", "nearest", "window_distances"]

#: Windows of a group, over which bounds of errors are taken.
GROUP = 64
#: Bands, and panels, of a square of warps.
SQUARE = 32
#: Rows that the walk may fetch beyond the last.
PAD = 64
#: Points of a line that a block of `seeds` may read beyond the last.
SEED_SPAN = 1024
#: Bytes of first columns in a launch.
SEED_BYTES = 2**30
#: From so many bytes on: runs that a list holds at least, and runs that are measured at a time.
#: Rows whose runs do not fit on a list are walked again.
ROOMS = (2**30, 2**20, 2**19), (0, 2**16, 2**16)
#: Windows whose neighbours come to the host at a time.
ANSWERED = 2**20
_TAKES_NO_PART = np.int32(2**31 - 1)

_population = cp.ElementwiseKernel(
    "int32 bits", "int32 count", "count = __popc(bits)", "population"
)


class DeviceLine(NamedTuple):
    """A line on the device, prepared for certified distances between windows of one length.

    Attributes
    ----------
    points : cupy.ndarray of float64
        The line from `fill_gaps`.
    mean, inverse : cupy.ndarray of float64
        Mean, counted from the first point of each window, and 1 / deviation, or 0 and 1.
    moments : list of four cupy.ndarray of float64
        Mean, deviation, least and largest point of all windows of that line, as they came out.
    constant, finite : cupy.ndarray of bool
        Which windows are constant, none if they are compared as they are; which are finite.
    """

    points: cp.ndarray
    mean: cp.ndarray
    inverse: cp.ndarray
    moments: list[cp.ndarray]
    constant: cp.ndarray
    finite: cp.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        arrays = self.points, self.inverse, *self.moments, self.constant, self.finite
        return sum(array.nbytes for array in arrays)

    @property
    def usual(self) -> cp.ndarray:
        """Which windows are finite and not constant."""
        return self.finite & ~self.constant


class Searched(NamedTuple):
    """A line on the device, prepared for the search of a join.

    Attributes
    ----------
    points : cupy.ndarray of float64
        Those of the `SearchLine`.
    mean, norm, size, slip : cupy.ndarray of float64
        Mean, norm, largest magnitude and error of the mean of all windows of that line; the norm
        of what covariances are taken of.
    usual, hidden : cupy.ndarray of bool
        Which windows are searched; which of the finite ones that are not constant are not.
    unit : float
        That of the `SearchLine`.
    frame : Frame or None
        Offset and size that raw windows have in common.
    """

    points: cp.ndarray
    mean: cp.ndarray
    norm: cp.ndarray
    size: cp.ndarray
    slip: cp.ndarray
    usual: cp.ndarray
    hidden: cp.ndarray
    unit: float
    frame: Frame | None

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(array.nbytes for array in self[:-2])


def _statistics(points: cp.ndarray, length: int) -> list[cp.ndarray]:
    """Mean, from the first point of each window on, deviation, least and largest point."""
    n_windows = points.size - length + 1
    found = [cp.empty(n_windows) for _ in range(4)]
    load_kernel("profile/windows.cu", "statistics")(
        (-(-n_windows // 128),),
        (128,),
        (points, np.int32(n_windows), np.int32(length), *found),
    )
    return found


def lay(pool: Pool, length: int, normalize: bool) -> DeviceLine:
    """Bring a line to the device."""
    filled, finite = fill_gaps(pool.points)
    points = cp.asarray(filled)
    moments = _statistics(points, length)
    mean, deviation, low, high = moments
    whole = cp.asarray(whole_windows(finite, length))
    found = settle_statistics(mean, deviation, low, high, whole)
    if normalize:
        inverse = cp.where(found.deviation > 0, 1.0 / found.deviation, 0.0)
        # a mean of what is not finite is never looked at
        return DeviceLine(points, moments[0], inverse, moments, found.constant, found.finite)
    inverse, zeros = found.finite.astype(np.float64), cp.zeros_like(moments[0])
    constant = cp.zeros_like(found.constant)
    return DeviceLine(points, zeros, inverse, moments, constant, found.finite)


def lay_search(pool: Pool, line: DeviceLine, length: int, frame: Frame | None) -> Searched:
    """Make the line that a join searches, for windows z-normalised, or in a frame as they are."""
    usual = line.usual
    if frame is None:
        low, high = line.moments[2:]
        ranges = cp.where(usual, high - low, np.inf)
        made = even_line(line.points, ranges)
        if made is None:
            made = line_of_pieces(fill_gaps(pool.points)[0], to_host(ranges), length)
    else:
        made = line_as_it_is(fill_gaps(pool.points)[0], frame, length)
    points, hidden = cp.asarray(made.points), cp.asarray(made.hidden) & usual
    made = made._replace(points=points)
    mean, deviation, size, slip = made.moments(line.moments, lambda one: _statistics(one, length))
    square = deviation**2 if frame is None else deviation**2 + mean**2
    norm = cp.sqrt(length * square)
    return Searched(points, mean, norm, size, slip, usual & ~hidden, hidden, made.unit, frame)


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


def prepare(line: Searched, usual: cp.ndarray, length: int, level: float, dtype: type) -> Steps:
    """Make factors and bounds for covariances; `level` keeps scores of raw windows positive."""
    points, mean = line.points, line.mean
    n_windows = mean.size
    new, old = points[length:], points[: points.size - length]
    lead, trail = cp.zeros(n_windows), cp.zeros(n_windows)
    if line.frame is None:
        lead[1:] = (new - old) / 2
        trail[1:] = (new - mean[1:]) + (old - mean[:-1])
        weight = _inverse_norm(line, usual)
        first, second = trail, lead
    else:
        lead[1:], trail[1:] = new, -old
        weight = cp.where(usual, level / 2 - line.norm**2 / 2, -level)
        first, second = lead, -trail
    rows = cp.zeros((n_windows + PAD, 4), dtype)
    rows[:n_windows] = cp.stack([lead, trail, weight, cp.zeros(n_windows)], axis=1)
    n_groups = -(-n_windows // GROUP)
    groups = cp.empty((n_groups, 7))
    step = cp.abs(lead) + cp.abs(trail)
    bounds = line.norm, step, line.size, line.slip, cp.maximum(weight, 0), -mean, mean
    for at, values in enumerate(bounds):
        padded = cp.full(n_groups * GROUP, -np.inf)
        padded[:n_windows] = values
        groups[:, at] = padded.reshape(n_groups, GROUP).max(axis=1)
    groups[:, 5] *= -1
    first, second, weight = (array.astype(dtype) for array in (first, second, weight))
    return Steps(rows, first, second, weight, groups)


def _inverse_norm(line: Searched, usual: cp.ndarray) -> cp.ndarray:
    """1 / norm of windows that take part, 0 of others."""
    return cp.where(usual, 1.0 / cp.where(usual, line.norm, 1.0), 0.0)


class Side(NamedTuple):
    """Windows of one side of a join: bounds of their neighbours, and the list of possible ones."""

    tops: cp.ndarray
    slots: cp.ndarray
    skipped: cp.ndarray
    runs: cp.ndarray
    count: cp.ndarray

    def addresses(self) -> list[int]:
        """Return the kernel's ``Side``."""
        return [array.data.ptr for array in self] + [len(self.runs)]


def _open_side(
    windows: slice, usual: cp.ndarray, scores: cp.ndarray, k: int, capacity: int, dtype: type
) -> Side:
    """Windows outside of a tile take no part, those inside know what `scores` say they reach."""
    tops = cp.full(usual.size, _TAKES_NO_PART)
    inside = cp.where(usual[windows], _leading_bits(scores, dtype), _TAKES_NO_PART)
    tops[windows] = inside
    slots = cp.repeat(tops, k) if k > 1 else cp.zeros(1, np.int32)
    return Side(
        tops,
        slots,
        cp.zeros(usual.size, np.int32),
        cp.empty((capacity, 4), np.int32),
        cp.zeros(1, np.int32),
    )


def _leading_bits(scores: cp.ndarray, dtype: type) -> cp.ndarray:
    """Leading bits of scores, towards zero; 0 for those that are not positive."""
    scores = cp.where(scores > 0, scores, 0.0)
    if dtype is np.float32:
        single = scores.astype(np.float32)
        single = cp.where(single > scores, cp.nextafter(single, np.float32(0)), single)
        return single.view(np.int32)
    return (scores.view(np.int64) >> 32).astype(np.int32)


def _from_leading_bits(bits: cp.ndarray, dtype: type) -> cp.ndarray:
    """The least scores with such leading bits."""
    if dtype is np.float32:
        return bits.view(np.float32).astype(np.float64)
    return (bits.astype(np.int64) << 32).view(np.float64)


class Search(NamedTuple):
    """A join within a tile, as the launches share it."""

    join: Join
    kernel: JoinKernel
    lines: tuple[DeviceLine, DeviceLine]
    searched: tuple[Searched, Searched]
    usual: tuple[cp.ndarray, cp.ndarray]
    steps: tuple[Steps, Steps]
    tile: Tile
    level: float
    height: int
    sides: tuple[Side, Side]
    found: list[Found]
    at_a_time: int


class Found:
    """Neighbours that have been measured, on the device.

    Parameters
    ----------
    n_windows : int
        Windows of the line.
    n_neighbors : int
        Neighbours of each.
    """

    def __init__(self, n_windows: int, n_neighbors: int) -> None:
        self.distances = cp.full((n_windows, n_neighbors), np.inf)
        self.indices = cp.full((n_windows, n_neighbors), _TAKES_NO_PART, np.int32)

    def take(self, other: Found) -> None:
        """Take neighbours from this or another device where they are nearer: one of a window."""
        distances, indices = cp.asarray(other.distances), cp.asarray(other.indices)
        nearer = (distances < self.distances) | (
            (distances == self.distances) & (indices < self.indices)
        )
        self.distances = cp.where(nearer, distances, self.distances)
        self.indices = cp.where(nearer, indices, self.indices)

    def answer(self, windows: slice) -> Nearest:
        """Return the neighbours of some windows."""
        indices = self.indices[windows].astype(np.int64)
        indices[indices == _TAKES_NO_PART] = -1
        return Nearest(to_host(self.distances[windows]), to_host(indices))


def room(budget: int) -> tuple[int, int]:
    """Runs that a list holds at least, and runs that are measured at a time, within a budget."""
    return next((least, some) for start, least, some in ROOMS if budget >= start)


class Known:
    """Bounds of the neighbours of windows on a device, and the neighbours found there.

    Parameters
    ----------
    join : Join
        The work.
    searched, usual : tuple of two
        Lines of the search, and which windows take part, along rows and columns.
    area : Tile
        Windows that look for neighbours.
    shape : tuple of int
        Rows and columns that are walked at a time: lists have room for them.
    level : float
        As in `prepare`.
    budget : int
        Bytes of working memory.
    """

    def __init__(
        self,
        join: Join,
        searched: tuple[Searched, Searched],
        usual: tuple[cp.ndarray, cp.ndarray],
        area: Tile,
        shape: tuple[int, int],
        level: float,
        budget: int,
    ) -> None:
        # `board` holds this object: a reference back would keep both alive
        self.join = replace(join, hint=None, board=None)
        self.usual, self.device = usual, cp.cuda.Device()
        self.stream = cp.cuda.get_current_stream()
        self.dtype, k = choose_join(join, shape).dtype, join.n_neighbors
        self.linear = [_linear(line, join.length, level) for line in searched]
        self.unit = searched[0].unit
        least, self.at_a_time = room(budget)
        sides = []
        for at, windows in enumerate((area.rows, area.cols)):
            alpha, beta = (values[windows] for values in self.linear[at])
            scores = cp.zeros(alpha.size)
            if join.hint is not None and (at == 0 or join.within):
                # see "join limits" in docs/developer/numerics.rst
                limit = (cp.asarray(join.hint[at][windows]) * self.unit) ** 2 * (1 + 1e-12)
                scores = (alpha - limit) / beta
                scores = cp.where(cp.isfinite(scores), scores * (1 - 1e-12), 0.0)
            capacity = min(max(least, RUNS_PER_WINDOW * shape[at]), 2**27)
            if at and not join.within:
                capacity = 1
            sides.append(_open_side(windows, usual[at], scores, k, capacity, self.dtype))
        self.sides = sides[0], sides[1]
        self.found = [Found(side.tops.size, k) for side in sides]

    def take(self, other: Known) -> None:
        """Add the results of another device or lane; for one neighbour of each window."""
        with other.device:
            other.stream.synchronize()
        with self.device, self.stream:
            for mine, theirs in zip(self.found, other.found, strict=True):
                mine.take(theirs)
            for side, its in zip(self.sides, other.sides, strict=True):
                cp.maximum(side.skipped, cp.asarray(its.skipped), out=side.skipped)

    def answer(self, area: Tile) -> Iterator[tuple[Tile, JoinPart]]:
        """Yield the neighbours of the windows of an area, piece by piece; only once."""
        join, same = self.join, area.rows == area.cols
        if join.within and not same:
            yield area, self.part(area, 2)
            return
        n_sides = 2 if join.within else 1
        if n_sides == 2 and join.n_neighbors == 1 and not join.sides:
            # the same windows have neighbours as rows and as columns, which merge here
            with self.device, self.stream:
                self.found[0].take(self.found[1])
                rows, cols = (side.skipped for side in self.sides)
                cp.maximum(rows, cols, out=rows)
            n_sides = 1
        for row in range(area.row, area.row_stop, ANSWERED):
            piece = area._replace(row=row, row_stop=min(row + ANSWERED, area.row_stop))
            if join.within:
                piece = piece._replace(col=piece.row, col_stop=piece.row_stop)
            yield piece, self.part(piece, n_sides)

    def part(self, area: Tile, n_sides: int) -> JoinPart:
        """Return the neighbours of the windows of an area, of rows or of both sides."""
        answers: list[Nearest] = []
        floors: list[np.ndarray] = []
        with self.device, self.stream:
            for at, windows in enumerate((area.rows, area.cols)[:n_sides]):
                answers.append(self.found[at].answer(windows))
                floors.append(to_host(self._floor(at, windows)))
        if n_sides == 1:
            return JoinPart(answers[0], None, floors[0])
        return JoinPart(answers[0], answers[1], floors[0], floors[1])

    def _floor(self, at: int, windows: slice) -> cp.ndarray:
        """Distances that neighbours of some windows which are on no list do not fall below."""
        alpha, beta = (values[windows] for values in self.linear[at])
        floor = alpha - beta * _from_leading_bits(self.sides[at].skipped[windows], self.dtype)
        if self.join.normalize:
            # so unlike that the leading bits of a score cannot hold the rounding of the distance
            length = self.join.length
            # see "leading bits" in docs/developer/numerics.rst
            floor = cp.minimum(floor, 2.0 * length * (1 - min(0.5, 1e-6 * length)))
        floor = cp.sqrt(cp.maximum(floor, 0.0)) / self.unit
        return cp.where(self.usual[at][windows], floor, np.inf)


def nearest(
    join: Join,
    lines: tuple[DeviceLine, DeviceLine],
    searched: tuple[Searched, Searched],
    steps: tuple[Steps, Steps],
    usual: tuple[cp.ndarray, cp.ndarray],
    tile: Tile,
    level: float,
    known: Known,
) -> None:
    """Find the nearest windows within a tile.

    Parameters
    ----------
    join : Join
        The work.
    lines, searched, steps, usual : tuple of two
        Lines on the device, those of the search, their steps, and which windows take part, along
        rows and columns.
    tile : Tile
        Rows and columns.
    level : float
        As in `prepare`.
    known : Known
        What is known and what has been found, to which this adds.
    """
    kernel = choose_join(join, tile.shape)
    walked = tile._replace(col=max(tile.col, join.since)) if join.within else tile
    height = 4096 if min(tile.shape) >= 2**17 else 1024
    _walk(
        Search(
            join,
            kernel,
            lines,
            searched,
            usual,
            steps,
            walked,
            level,
            height,
            known.sides,
            known.found,
            known.at_a_time,
        )
    )


def _linear(line: Searched, length: int, level: float) -> tuple[cp.ndarray, cp.ndarray]:
    """Squared distances of a window are alpha - beta score."""
    if line.frame is None:
        alpha = cp.full(line.mean.size, 2.0 * length)
        return alpha, 2.0 * length * _inverse_norm(line, line.usual)
    return line.norm**2 + level, cp.full(line.mean.size, 2.0)


def _walk(search: Search) -> None:
    """Search the tile, launch by launch, and measure the runs that are listed."""
    tile, kernel = search.tile, search.kernel
    n_panels = -(-tile.shape[1] // kernel.panel)
    size = np.dtype(kernel.dtype).itemsize
    bands = max(1, SEED_BYTES // (size * search.height * max(1, n_panels)))
    rows = bands * search.height
    for start in range(tile.row, tile.row_stop, rows):
        if search.join.within and tile.col_stop - 1 - start <= search.join.exclusion:
            break
        _walk_rows(search, start, min(start + rows, tile.row_stop), n_panels)
    _measure_all(search)


def _walk_rows(search: Search, row: int, stop: int, n_panels: int, again: bool = False) -> None:
    """Walk some rows; where a list is too short, again, and then by halves."""
    before = [read_number(side.count) for side in search.sides]
    _launch(search, row, stop, n_panels, again)
    after = [read_number(side.count) for side in search.sides]
    if all(count <= len(side.runs) for count, side in zip(after, search.sides, strict=True)):
        return
    # runs listed before are measured, which makes room; and limits are lower now, so that most of
    # the runs just listed would not be listed again
    for side, count in zip(search.sides, before, strict=True):
        side.count[:] = count
    _measure_all(search)
    if not again:
        _walk_rows(search, row, stop, n_panels, True)
        return
    middle = row + max(1, (stop - row) // 2)
    if stop - row > search.height:
        middle = row + -(-(stop - row) // (2 * search.height)) * search.height
    _walk_rows(search, row, middle, n_panels, True)
    _walk_rows(search, middle, stop, n_panels, True)


def _launch(search: Search, row: int, stop: int, n_panels: int, again: bool) -> None:
    """Seeds of all bands and panels, then the walk; `again` if these rows were walked before."""
    join, kernel, tile = search.join, search.kernel, search.tile
    k = join.n_neighbors
    (line_a, line_b), (steps_a, steps_b) = search.searched, search.steps
    n_rows, n_cols = stop - row, tile.shape[1]
    n_bands = -(-n_rows // search.height)
    first_rows = cp.zeros((n_bands, n_cols), kernel.dtype)
    first_cols = cp.zeros((n_panels, -(-n_rows // 4) * 4 + PAD), kernel.dtype)
    seed = load_kernel("profile/join.cu", seed_kernel(kernel))
    length, least = np.int32(join.length), np.int64(join.least_apart)
    for out, line, other, first, count, start, apart, sign in (
        (first_rows, line_b, line_a, tile.col, n_cols, row, search.height, 1),
        (first_cols, line_a, line_b, row, n_rows, tile.col, kernel.panel, -1),
    ):
        n_filters, stride = out.shape
        for some in range(0, n_filters, 2 * 65535):
            filters = min(2 * 65535, n_filters - some)
            seed(
                (-(-count // SEED_SPAN), -(-filters // 2)),
                (128,),
                (
                    *(line.points, line.mean, np.int32(first), np.int32(count)),
                    *(other.points, other.mean, np.int32(start + some * apart)),
                    *(np.int32(apart), np.int32(filters), np.int32(other.mean.size), length),
                    *(least, np.int32(sign), out[some:], np.int64(stride)),
                    *(steps_a.rows, steps_b.first, steps_b.second),
                ),
            )
    sides = cp.asarray(np.array([side.addresses() for side in search.sides], np.int64))
    load_kernel("profile/join.cu", kernel.name)(
        (-(-n_panels // SQUARE) * -(-n_bands // SQUARE) * SQUARE**2,),
        (32,),
        (
            *(steps_a.rows, steps_b.first, steps_b.second, steps_b.weight),
            *(first_rows, first_cols, np.int64(n_cols), np.int64(first_cols.shape[1])),
            *(steps_a.groups, steps_b.groups, np.int32(row), np.int32(stop)),
            *(np.int32(tile.col), np.int32(tile.col_stop), np.int32(search.height)),
            *(np.int32(kernel.strips), np.int32(n_panels), least, length),
            *(np.int32(0 if again and k > 1 else k), np.int32(join.precision != "float32"), sides),
        ),
    )


def _measure_all(search: Search) -> None:
    """Measure the runs that are listed, and empty the lists."""
    for at in range(2 if search.join.within else 1):
        side = search.sides[at]
        runs = side.runs[: read_number(side.count)]
        runs = runs[runs[:, 3] >= side.tops[runs[:, 0]]]
        side.count[:] = 0
        lanes = 1 if at else search.kernel.columns
        for start in range(0, len(runs), search.at_a_time):
            some = runs[start : start + search.at_a_time]
            _measure(search, at, cp.ascontiguousarray(some), lanes)


def _addresses(lines: list[Sequence[cp.ndarray]]) -> cp.ndarray:
    """Structures of pointers for kernels."""
    return cp.asarray(np.array([[array.data.ptr for array in line] for line in lines], np.int64))


def _measure(search: Search, at: int, runs: cp.ndarray, lanes: int) -> None:
    """Certify the pairs of some runs that may be among the nearest."""
    join, side, found = search.join, search.sides[at], search.found[at]
    k, length = np.int32(join.n_neighbors), np.int32(join.length)
    order = (0, 1) if at == 0 else (1, 0)
    stop = search.tile.row_stop if at else search.tile.col_stop
    lines = _addresses([search.lines[i][:3] for i in order])
    searched = _addresses(
        [[*search.searched[i][:3], search.searched[i].slip, search.usual[i]] for i in order]
    )
    cells = cp.cumsum(_population(runs[:, 2]).astype(np.int64) * lanes)
    n_cells = read_number(cells[-1:])
    offsets = cp.concatenate([cp.zeros(1, np.int64), cells[:-1]])
    owners = cp.zeros(n_cells, np.int32)
    owners[offsets[1:]] = 1
    owners = cp.cumsum(owners, dtype=np.int32)
    windows, places = cp.empty(n_cells, np.int32), cp.empty(n_cells, np.int32)
    uppers = cp.empty(n_cells)
    reached = _from_leading_bits(side.tops, search.kernel.dtype)
    if join.precision == "float32":
        reached[:] = 0  # scores in float32 may be too high
    load_kernel("profile/join.cu", "refine")(
        (-(-n_cells // 128),),
        (128,),
        (
            *(runs, offsets, owners, np.int32(n_cells), np.int32(lanes), searched),
            # the last columns of a run may belong to the next tile
            *(np.int32(stop), length, np.int64(join.least_apart)),
            *(np.int32(-1 if at else 1), np.int32(join.normalize), np.float64(search.level)),
            *(np.int32(k == 1), reached, windows, places, uppers),
        ),
    )
    near = cp.flatnonzero(uppers >= reached[windows])
    windows, places = windows[near], places[near]
    count = windows.size
    if count == 0:
        return
    distances = cp.empty(count)
    before = found.distances[:, 0].copy() if k == 1 else None
    blocks = (-(-count // 128),)
    load_kernel("profile/join.cu", "certify")(
        blocks,
        (128,),
        (
            *(windows, places, np.int32(count), lines, length, np.int32(join.normalize)),
            *(found.distances if k == 1 else 0, distances),
        ),
    )
    if k > 1:
        _keep_nearest(found, windows, distances, places)
        return
    # the former nearest is replaced where a nearer one was found
    found.indices[found.distances[:, 0] < before] = _TAKES_NO_PART
    load_kernel("profile/join.cu", "first_of_equals")(
        blocks,
        (128,),
        (windows, places, np.int32(count), found.distances, distances, found.indices),
    )


def _keep_nearest(
    found: Found, windows: cp.ndarray, distances: cp.ndarray, places: cp.ndarray
) -> None:
    """Take measured neighbours of some windows, and keep the k nearest of each."""
    k = found.distances.shape[1]
    touched = cp.unique(windows)
    windows = cp.concatenate([windows, cp.repeat(touched, k)])
    distances = cp.concatenate([distances, found.distances[touched].ravel()])
    places = cp.concatenate([places, found.indices[touched].ravel()])
    order = cp.lexsort(cp.stack([places.astype(np.float64), distances, windows.astype(np.float64)]))
    windows, distances, places = windows[order], distances[order], places[order]
    rank = cp.arange(windows.size) - cp.searchsorted(windows, windows)
    near = rank < k
    found.distances[windows[near], rank[near]] = distances[near]
    found.indices[windows[near], rank[near]] = places[near]


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
            (-(-count // 256), len(some)),
            (256,),
            (
                *(a.points, a.mean, a.inverse, some, b.points, b.mean, b.inverse),
                *(np.int32(first), np.int32(count), np.int32(length), np.int32(normalize)),
                out[start:],
            ),
        )
    return out
