r"""Joins on the CPU: the covariances of all pairs of windows, column beside column.

A tile is walked band of rows by band, a band strip of WIDTH columns by strip, and a strip in groups
of LANES columns (`walk.py`), from its first row to its last. Diagonals begin in the first row or at
the left edge of the band, where covariances are computed from their points, and pass from group to
group, and from strip to strip::

              strip               strip
        +---------+---------+---------+---------+
        | \  \  \  \  \  \ | \  \  \  \  \  \ |  first row: from points
        |\  \  \  \  \  \  \|  \  \  \  \  \  \ |
        |  \  \  \  \  \  \|\  \  \  \  \  \  \|  a band
        +---------+---------+---------+---------+
          left edge:      a group
          from points

Squared distances fall linearly with the score, ``alpha - beta score``. Scores are estimates: where
one may be among the nearest, by the bound of its error, the walk stops, and the pairs of that row
are looked at. Where scores climb row after row, a block of rows is walked and looked at together,
and of each column the best pair counts before the others. What may be near is listed and measured
(`candidates.py`).

Covariances of z-normalised windows are walked in single precision, twice as many in the same time,
where the bound of their error is no larger than SINGLE_DOUBT and tells neighbours from others, and
until more pairs have been measured than that saves time for; else in double precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import CERTIFIED_ROUNDING, FLOAT32_LOST, FLOAT32_UNIT, FLOAT64_UNIT
from ...host import kernel
from .._borrowed import borrowed
from .candidates import (
    LISTED,
    Candidates,
    Line,
    Squares,
    is_settled,
    make_room,
    measure_all,
    needed_by,
    needed_score,
    open_candidates,
    sift,
    take,
    take_equal,
)
from .lines import HEIGHTS, Steps
from .walk import (
    LANES,
    NOTHING,
    OUTSIDE,
    SINGLE_LANES,
    WalkAxis,
    climb,
    column_of,
    descend,
    lane_of,
    lowest_bit,
    narrow,
    narrow_need,
    near_lanes,
    seeds,
    single_column_of,
    single_lane_of,
    widen,
)

__all__ = ["TileAxis", "Work", "search"]

#: Columns of a strip, for which errors are bounded together.
WIDTH = 512
#: The error of a correlation up to which covariances are walked in single precision.
SINGLE_DOUBT = 2.0**-9
#: The share of its limit up to which the error of a squared distance in single precision leaves few
#: pairs of a window to be measured.
CLEAR = 2.0**-6
#: Pairs of a walk in single precision that take as much time less as one takes to be measured: a
#: number, and a number for each point of a window.
SAVED, SAVED_BY_POINT = 2000, 4
#: The share of a tile's pairs that a walk in single precision is taken to have walked before.
AHEAD = 32
#: Pairs that are listed in a strip, beside those that are affordable, before it ends early.
LISTED_AT_LEAST = 64
#: Rows that are walked and looked at together where one after the other is near.
BLOCK = 32
#: Rows after one that is near in which another one is a reason to walk a block.
NEARBY = 3


class TileAxis(NamedTuple):
    """One axis of a tile: the line along it, and which of its windows the tile holds.

    Attributes
    ----------
    line : Line
        The line as it came, for certified distances.
    points, mean : ndarray, float64
        Points and means of the line of the search.
    regular : ndarray of shape (n_windows,), bool
        Which windows take part.
    steps : Steps
        What covariances need.
    first, stop : int
        Windows of the tile.
    """

    line: Line
    points: np.ndarray
    mean: np.ndarray
    regular: np.ndarray
    steps: Steps
    first: int
    stop: int


class Work(NamedTuple):
    """Options of a search; True or None are types to the compiler, which leaves the other out.

    Attributes
    ----------
    length : int
        Points of a window.
    least_apart : int
        Pairs with j - i <= this are not admissible.
    same : bool
        Whether rows and columns are the same windows, and one list of neighbours is wanted: then
        that of rows is both.
    columns : bool
        Whether columns look for neighbours, too.
    normalize : True or None
        Whether windows are z-normalised.
    single : bool
        Whether covariances may be walked in single precision, which only those of z-normalised
        windows are.
    """

    length: int
    least_apart: int
    same: bool
    columns: bool
    normalize: bool | None
    single: bool


class SingleRoom(NamedTuple):
    """Arrays of a walk in single precision, see `Workspace`."""

    band: WalkAxis
    strip: WalkAxis
    entering: np.ndarray
    cov: np.ndarray
    most: np.ndarray


class Workspace(NamedTuple):
    """Arrays that are filled again for every band, strip or block."""

    band: WalkAxis
    slack_of_row: np.ndarray
    strip: WalkAxis
    slack_of_column: np.ndarray
    window: np.ndarray
    first_row: np.ndarray
    entering: np.ndarray
    cov: np.ndarray
    most: np.ndarray
    single: SingleRoom


class Band(NamedTuple):
    """A band of rows: where it lies, and the largest of what bounds errors of its covariances.

    Attributes
    ----------
    top, height : int
        First row, and how many.
    level : int
        Which of HEIGHTS bounds it.
    norm, step, slip, weight, blur, shift : float
        The largest of its windows, of those of `Steps`.
    middle, drift : float
        Mean of its middle window, and how far means of others are from that.
    """

    top: int
    height: int
    level: int
    norm: float
    step: float
    slip: float
    weight: float
    blur: float
    shift: float
    middle: float
    drift: float


class Strip(NamedTuple):
    """A strip of columns against a band: where it lies, and bounds of errors for rows.

    Attributes
    ----------
    start, width : int
        First column, and how many.
    middle : float
        Mean of its middle window.
    worst : float
        The largest error of a covariance, times the weight of its column.
    blur, shift : float
        The largest of its windows.
    single : bool
        Whether it is walked in single precision.
    """

    start: int
    width: int
    middle: float
    worst: float
    blur: float
    shift: float
    single: bool


class TileJoin(NamedTuple):
    """A join within a tile: both axes, what is known of their windows, and arrays to work in."""

    a: TileAxis
    b: TileAxis
    known: Candidates
    known_b: Candidates
    room: Workspace
    work: Work


@kernel
def _height(top, side):
    """Rows of the band that begins at `top`, and which of HEIGHTS bounds it."""
    steps = side.steps
    for level in range(len(HEIGHTS)):
        height = min(HEIGHTS[level], side.stop - top)
        most, least = 0.0, np.inf
        for i in range(top, top + height):
            most = max(most, steps.reach[level, i])
            if side.regular[i]:
                least = min(least, steps.norm[i])
        if most <= 1e3 * least:
            break
    return height, level


@kernel
def _doubt(blur, shift, length):
    """Error of a squared distance that normalised windows leave open.

    `blur` is the larger ratio of a largest magnitude to a norm, `shift` that of an error of a mean.
    Each point of the line is rounded once, and the means are, of the line and of certified
    distances.
    """
    # see "normalised windows" in docs/developer/numerics.rst
    rounded = 8 * FLOAT64_UNIT * length * np.sqrt(length) * blur
    return CERTIFIED_ROUNDING * length * length + rounded + 8 * (length * shift) ** 2


@kernel
def _share(length):
    """The share of alpha that windows as they are leave open: of line, energies and the sum."""
    # see "raw windows" in docs/developer/numerics.rst
    return FLOAT64_UNIT * length * (16 + 8 * np.sqrt(length))


@kernel
def _open_room(length):
    """Make the arrays to work in."""
    rows = HEIGHTS[0]
    band = WalkAxis(np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows))
    # the last group of a strip has columns beyond it that are no windows
    columns = WIDTH + SINGLE_LANES
    strip = WalkAxis(
        np.zeros(columns), np.zeros(columns), np.zeros(columns), np.full(columns, NOTHING)
    )
    number = np.float32
    narrow_band = WalkAxis(
        np.zeros(rows, number), np.zeros(rows, number), np.zeros(rows, number),
        np.zeros(rows, number),
    )  # fmt: skip
    narrow_strip = WalkAxis(
        np.zeros(columns, number), np.zeros(columns, number), np.zeros(columns, number),
        np.zeros(columns, number),
    )  # fmt: skip
    single = SingleRoom(
        narrow_band,
        narrow_strip,
        np.zeros(rows, number),
        np.zeros(BLOCK * SINGLE_LANES, number),
        np.zeros(SINGLE_LANES, number),
    )
    return Workspace(
        band,
        np.zeros(rows),
        strip,
        np.zeros(WIDTH),
        np.empty(length),
        np.zeros(WIDTH + SINGLE_LANES + 1),
        np.zeros(rows),
        np.zeros(BLOCK * LANES),
        np.zeros(LANES),
        single,
    )


@kernel
def _open_band(top, side, walked, normalize):
    """Lay the rows of a band side by side; find the largest of what bounds errors."""
    steps = side.steps
    height, level = _height(top, side)
    norm, step, slip, weight = 0.0, 0.0, 0.0, 0.0
    blur, shift = 0.0, 0.0
    for i in range(top, top + height):
        norm, slip = max(norm, steps.norm[i]), max(slip, steps.slip[i])
        shift, blur = max(shift, steps.shift[i]), max(blur, steps.blur[i])
        if i > top:
            step = max(step, abs(steps.lead[i]) + abs(steps.trail[i]))
        weight = max(weight, abs(steps.weight[i]))
        walked.lead[i - top], walked.trail[i - top] = steps.lead[i], steps.trail[i]
        walked.weight[i - top] = steps.weight[i]
    walked.lead[0] = walked.trail[0] = 0
    # seeds of the left edge are centred on the middle of the band
    middle = drift = 0.0
    if normalize is not None:
        middle = side.mean[top + height // 2]
        for i in range(top, top + height):
            drift = max(drift, abs(side.mean[i] - middle))
    return Band(top, height, level, norm, step, slip, weight, blur, shift, middle, drift)


@kernel
def _error(band, reach, stride, length, single):
    """Bound the error of covariances of a column: of the walk, and of the seed."""
    # see "covariance walk" in docs/developer/numerics.rst
    if single:
        error = 2 * band.norm * reach + 8 * band.step * stride
        error = FLOAT32_UNIT * (band.height + 16) * error + FLOAT32_LOST
    else:
        error = 2 * band.norm * reach + 4 * band.step * stride
        error *= FLOAT64_UNIT * (band.height + 4)
    return error + FLOAT64_UNIT * (length + 8) * band.norm * reach


@kernel
def _error_of_means(band, reach, stride, drift, slip, length):
    """Bound what means add to the error of covariances of a column, of normalised windows.

    `drift` is how far the mean is from that of the middle of the strip, `slip` its error and that
    of rows.
    """
    error = FLOAT64_UNIT * (length + 8) * np.sqrt(length)
    error *= band.norm * drift + reach * band.drift
    error += length * slip * (drift + band.drift + slip)
    return error + 2 * band.height * slip * (band.step + stride)


@kernel
def _open_strip(start, width, band, side, walked, slack, single, work):
    """Lay the columns of a strip side by side, and bound the errors of their covariances."""
    steps, length = side.steps, work.length
    middle = side.mean[start + width // 2] if work.normalize is not None else 0.0
    worst = blur = shift = 0.0
    for j in range(width):
        at, lane = start + j, lane_of(j)
        walked.lead[lane], walked.trail[lane] = steps.lead[at], steps.trail[at]
        walked.weight[lane] = steps.weight[at]
        reach, stride = steps.reach[band.level, at], steps.stride[band.level, at]
        error = _error(band, reach, stride, length, single)
        if work.normalize is not None:
            drift, slip = abs(side.mean[at] - middle), band.slip + steps.slip[at]
            error += _error_of_means(band, reach, stride, drift, slip, length)
            worst = max(worst, error * steps.weight[at])
            blur, shift = max(blur, steps.blur[at]), max(shift, steps.shift[at])
        else:
            worst = max(worst, error)
        slack[j] = error
    for j in range(width, width + SINGLE_LANES):
        lane = lane_of(j)
        walked.lead[lane] = walked.trail[lane] = 0.0
        walked.weight[lane] = 0.0 if work.normalize is not None else -NOTHING
        walked.needed[lane] = NOTHING
    return Strip(start, width, middle, worst, blur, shift, single)


@kernel
def _need_columns(strip, band, side, known, slacks, needed, work):
    """Write which scores of a strip are to be looked at for its columns."""
    steps = side.steps
    for j in range(strip.width):
        at, slack = strip.start + j, slacks[j]
        if work.normalize is not None:
            slack *= steps.beta[at] * band.weight
            blur, shift = max(band.blur, steps.blur[at]), max(band.shift, steps.shift[at])
            slack += _doubt(blur, shift, work.length)
        else:
            slack = 2 * slack + _share(work.length) * steps.alpha[at]
        slacks[j] = slack
        need = NOTHING
        if side.regular[at]:
            squares = Squares(steps.alpha[at], steps.beta[at], slack)
            need = needed_by(known, at, squares)
        needed[lane_of(j)] = need


@kernel(forceinline=True)
def _slack_of_row(at, strip, steps, length):
    """Bound the error of squared distances of a z-normalised window to the columns of a strip."""
    blur, shift = max(steps.blur[at], strip.blur), max(steps.shift[at], strip.shift)
    return steps.beta[at] * strip.worst + _doubt(blur, shift, length)


@kernel
def _in_doubt(top, last, strip, side, known, length):
    """Whether a strip in single precision would leave much to be measured, as far as is known.

    As a rule of thumb: so it is where the errors of half of the rows are a large share of their
    limits. Settled ones have nothing measured.
    """
    count, k = 0, known.tops.shape[1]
    for at in range(top, top + last):
        place = at - known.first
        if not is_settled(known, place):
            limit = known.tops[place, k - 1]
            count += _slack_of_row(at, strip, side.steps, length) > CLEAR * limit
    return 2 * count > last


@kernel
def _need_rows(top, last, strip, side, known, slacks, needed, work):
    """Write which scores of a strip are to be looked at for rows of a band before the last."""
    steps = side.steps
    for i in range(last):
        at = top + i
        if work.normalize is not None:
            slack = _slack_of_row(at, strip, steps, work.length)
        else:
            slack = 2 * strip.worst + _share(work.length) * steps.alpha[at]
        slacks[i] = slack
        need = NOTHING
        if side.regular[at]:
            squares = Squares(steps.alpha[at], steps.beta[at], slack)
            need = needed_by(known, at, squares)
        needed[i] = need


@kernel
def _center_window(points, mean, at, window, normalize):
    """Write the points of a window, less its mean."""
    center = mean[at] if normalize is not None else 0.0
    for t in range(window.size):
        window[t] = points[at + t] - center


@kernel
def _enter_rows(top, start, band, a, b, room, work):
    """Write what enters the rows of a band at the left edge of the tile."""
    entering, p, r = room.entering, a.steps.lead, a.steps.trail
    q, s = b.steps.lead[start], b.steps.trail[start]
    # rows from this one on have no admissible column at the edge
    last = max(0, min(band.height, start - top - work.least_apart))
    entering[last : band.height] = OUTSIDE
    if last > 1:
        _center_window(b.points, b.mean, start, room.window, work.normalize)
        seeds(a.points, top, band.middle, room.window, entering[:last])
        for i in range(last):
            entering[i] -= p[top + i] * q + r[top + i] * s


@kernel
def _enter_columns(top, strip, a, b, room, work):
    """Write what enters the columns of a strip in the first row of a band."""
    first_row = room.first_row
    _center_window(a.points, a.mean, top, room.window, work.normalize)
    seeds(b.points, strip.start, strip.middle, room.window, first_row[: strip.width])
    first = min(max(0, top + work.least_apart + 1 - strip.start), strip.width)
    first_row[:first] = OUTSIDE
    first_row[strip.width :] = OUTSIDE


@kernel(forceinline=True)
def _covariance(place, single, cov, narrow_cov):
    """Return the covariance in a place."""
    return widen(narrow_cov[place]) if single else cov[place]


@kernel(forceinline=True)
def _column(lane, single):
    """Return the column of a group in a lane."""
    return single_column_of(lane) if single else column_of(lane)


@kernel(forceinline=True)
def _score(value, factor, normalize):
    """Score a covariance by a weight."""
    return value * factor if normalize is not None else value + factor


@kernel
def _narrow_strip(last, strip, room):
    """Lay rows before the last and columns of a strip side by side in single precision."""
    band, columns, entering = room.single.band, room.single.strip, room.single.entering
    for i in range(last):
        band.lead[i], band.trail[i] = room.band.lead[i], room.band.trail[i]
        band.weight[i], band.needed[i] = room.band.weight[i], narrow_need(room.band.needed[i])
    for i in range(entering.size):
        entering[i] = narrow(room.entering[i])
    for j in range(strip.width + SINGLE_LANES):
        at, lane = lane_of(j), single_lane_of(j)
        columns.lead[lane], columns.trail[lane] = room.strip.lead[at], room.strip.trail[at]
        columns.weight[lane] = room.strip.weight[at]
        columns.needed[lane] = narrow_need(room.strip.needed[at])


@kernel(forceinline=True)
def _block(row, stop, regular):
    """Return where a block of rows ends that begins with one: all of them take part."""
    end = row
    while end < min(row + BLOCK, stop) and regular[end]:
        end += 1
    return max(end, row + 1)


@kernel(forceinline=True)
def _raised(squares, most, single, tops):
    """Return the score that a window needs once its pair of the highest score is taken."""
    if single:
        # not above the score that the pair is taken with
        # see "single precision" in docs/developer/numerics.rst
        most -= abs(most) * 4 * FLOAT32_UNIT
    k = tops.size
    limit = squares.alpha - squares.beta * most + squares.slack
    if k > 1:
        limit = max(limit, tops[k - 2])
    return needed_score(squares, min(limit, tops[k - 1]))


@kernel
def _settle(search, band, strip, first, end, left):
    """Take equal windows among what some rows and a group of columns have listed.

    Settled ones need nothing from now on: all that is still to come to them comes later.
    """
    a, b, known, known_b, room, work = borrowed(search)
    take_equal(known, a.line, b.line, work.length, work.normalize)
    if not work.same:
        take_equal(known_b, b.line, a.line, work.length, work.normalize)
    for row in range(first, end):
        if is_settled(known, band.top + row - known.first):
            room.band.needed[row], room.single.band.needed[row] = NOTHING, narrow_need(NOTHING)
    if not work.columns:
        return
    for column in range(left, min(left + SINGLE_LANES, strip.width)):
        if is_settled(known_b, strip.start + column - known_b.first):
            room.strip.needed[lane_of(column)] = NOTHING
            room.single.strip.needed[single_lane_of(column)] = narrow_need(NOTHING)


# called in one place: compiled there, and not once more by all that lies between
@kernel(inline="always")
def _walk_strip(search, band, strip, most_listed):
    """Walk a strip of a band, group of columns by group; return how many columns have been walked.

    A strip in single precision ends early where more than so many pairs are listed.

    Fields are taken from their structures ahead of the loops: to take an array counts references.
    It is one function, since a part of it that got structures would count them for each row.
    """
    a, b, known, known_b, room, work = search
    columns, normalize, single = work.columns, work.normalize, strip.single
    cov, first_row, entering = room.cov, room.first_row, room.entering
    most_of = room.most
    count, count_b = known.n_listed, known_b.n_listed
    walked, walked_b = room.band, room.strip
    narrow_a, narrow_b, narrow_entering, narrow_cov, narrow_most = room.single
    _, _, weight, needed = walked
    _, _, weight_b, needed_b = walked_b
    narrow_needed, narrow_needed_b = narrow_a.needed, narrow_b.needed
    top, start, width, regular, regular_b = band.top, strip.start, strip.width, a.regular, b.regular
    slack, alpha, beta = room.slack_of_row, a.steps.alpha, a.steps.beta
    slack_b, alpha_b, beta_b = room.slack_of_column, b.steps.alpha, b.steps.beta
    tops_b, first_b = known_b.tops, known_b.first
    n_lanes, n_walked = SINGLE_LANES if single else LANES, strip.width
    for left in range(0, strip.width, n_lanes):
        if single and left > 0 and max(count[0], count_b[0]) > most_listed:
            n_walked = left
            break
        n_columns = min(n_lanes, strip.width - left)
        # rows from this one on have no admissible column
        stop = strip.start + left + n_columns - 1 - work.least_apart - band.top
        stop = min(band.height, stop)
        if stop <= 0:
            continue
        if single:
            narrow_entering[0] = narrow(first_row[left])
            for column in range(SINGLE_LANES):
                narrow_cov[single_lane_of(column)] = narrow(first_row[left + 1 + column])
        else:
            entering[0] = first_row[left]
            for lane in range(LANES):
                cov[lane] = first_row[left + 1 + column_of(lane)]
        i, looked, at = 0, -1, 0
        while i < stop:
            # whether columns count is a type of the walk alone: one search serves both
            if single and columns:
                i, of_row, of_columns = descend(
                    narrow_cov, narrow_entering, narrow_a, narrow_b, at, i, stop, left, True, True
                )
            elif single:
                i, of_row, of_columns = descend(
                    narrow_cov, narrow_entering, narrow_a, narrow_b, at, i, stop, left, None, True
                )
            elif columns:
                i, of_row, of_columns = descend(
                    cov, entering, walked, walked_b, at, i, stop, left, True, normalize
                )
            else:
                i, of_row, of_columns = descend(
                    cov, entering, walked, walked_b, at, i, stop, left, None, normalize
                )
            at = 0
            if of_row == 0 and of_columns == 0:
                continue
            if max(count[0], count_b[0]) > LISTED - 2 * BLOCK * SINGLE_LANES:
                make_room(known, a.line, b.line, work.length, normalize)
                if not work.same:
                    make_room(known_b, b.line, a.line, work.length, normalize)
            first, end = i - 1, i
            if columns and first <= looked + NEARBY:
                # scores climb: some more rows are walked, and the best of each column come first
                end = _block(top + first, top + stop, regular) - top
            if end > i:
                if single:
                    rest = climb(
                        narrow_cov, narrow_entering, narrow_a, narrow_b, narrow_most, i, end, left,
                        True,
                    )  # fmt: skip
                else:
                    rest = climb(cov, entering, walked, walked_b, most_of, i, end, left, normalize)
                while rest != 0:
                    lane = lowest_bit(rest)
                    rest &= rest - 1
                    column = left + _column(lane, single)
                    place, other = lane_of(column), start + column
                    if column < width and regular_b[other]:
                        most = np.float64(narrow_most[lane]) if single else most_of[lane]
                        squares = Squares(alpha_b[other], beta_b[other], slack_b[column])
                        need = _raised(squares, most, single, tops_b[other - first_b])
                        if need > needed_b[place]:
                            needed_b[place] = need
                            narrow_needed_b[left + lane] = narrow_need(need)
            i = looked = end
            row = first
            while row < end:
                at = (row - first) * n_lanes
                if row > first and single:
                    of_row, of_columns = near_lanes(
                        narrow_cov, narrow_entering, narrow_a, narrow_b, at, row, left, True
                    )
                elif row > first:
                    of_row, of_columns = near_lanes(
                        cov, entering, walked, walked_b, at, row, left, normalize
                    )
                window, need, most, taken = top + row, needed[row], -np.inf, -1
                if of_row != 0 and regular[window]:
                    squares = Squares(alpha[window], beta[window], slack[row])
                    # the best first: then the others, as a rule, are known to be farther
                    rest = of_row
                    while rest != 0:
                        lane = lowest_bit(rest)
                        rest &= rest - 1
                        column = left + _column(lane, single)
                        value = _covariance(at + lane, single, cov, narrow_cov)
                        score = _score(value, weight_b[lane_of(column)], normalize)
                        if column < width and regular_b[start + column] and score > most:
                            taken, most = lane, score
                    if taken >= 0 and most >= need:
                        other = start + left + _column(taken, single)
                        need = take(known, window, other, most, squares)
                        rest = of_row & ~(np.int64(1) << taken)
                        while rest != 0:
                            lane = lowest_bit(rest)
                            rest &= rest - 1
                            column = left + _column(lane, single)
                            value = _covariance(at + lane, single, cov, narrow_cov)
                            score = _score(value, weight_b[lane_of(column)], normalize)
                            if column < width and regular_b[start + column] and score >= need:
                                need = take(known, window, start + column, score, squares)
                        needed[row] = need
                        narrow_needed[row] = narrow_need(need)
                if columns and regular[window]:
                    rest = of_columns
                    while rest != 0:
                        lane = lowest_bit(rest)
                        rest &= rest - 1
                        column = left + _column(lane, single)
                        place, other = lane_of(column), start + column
                        value = _covariance(at + lane, single, cov, narrow_cov)
                        score = _score(value, weight[row], normalize)
                        if column < width and regular_b[other] and score >= needed_b[place]:
                            squares = Squares(alpha_b[other], beta_b[other], slack_b[column])
                            need = take(known_b, other, window, score, squares)
                            needed_b[place] = need
                            narrow_needed_b[left + lane] = narrow_need(need)
                row += 1
            if max(count[2], count_b[2]) > 0:
                _settle(search, band, strip, first, end, left)
        if stop < band.height:
            # the next group has a row more
            if single:
                narrow_entering[stop] = narrow_cov[at + SINGLE_LANES - 1]
            else:
                entering[stop] = cov[at + LANES - 1]
    if single:
        for i in range(band.height):
            entering[i] = widen(narrow_entering[i])
    return n_walked


@kernel
def _n_extra(known, known_b, work):
    """Return how many listed pairs have been measured or may be, beside one of each neighbour.

    Of one neighbour that pair waits apart.
    """
    extra = 0
    for some in (known, known_b):
        of_any = some.distances.size if some.tops.shape[1] > 1 else 0
        extra += max(0, some.n_listed[0] + some.n_listed[1] - of_any)
    return extra // 2 if work.same else extra


@kernel
def _affordable(axis, other, work, n_pairs):
    """Return how many pairs single precision may leave to be measured after walking so many pairs.

    It is as many as the time that it saved measures, and a few at first.
    """
    n_of_tile = (axis.stop - axis.first) * (other.stop - other.first)
    return (n_pairs + n_of_tile // AHEAD) // (SAVED + SAVED_BY_POINT * work.length)


@kernel
def _pays(known, known_b, work, affordable):
    """Whether single precision leaves no more pairs to be measured than it may."""
    if _n_extra(known, known_b, work) <= affordable:
        return True
    # most of what is listed at first is far, as is known later
    sift(known)
    if not work.same:
        sift(known_b)
    return _n_extra(known, known_b, work) <= affordable


@kernel
def search(a, b, work, hint, found, found_b, cancel):
    """Nearest windows within a tile, of its rows and, with `work.columns`, of its columns.

    Parameters
    ----------
    a, b : TileAxis
        Rows and columns.
    work : Work
        Options.
    hint : tuple of two ndarray
        Distances, of all windows of both lines, that neighbours need not exceed: in the units of
        the search.
    found, found_b : tuple of two ndarray of shape (n, n_neighbors)
        Distances and places of neighbours of rows and columns, written here.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    known = open_candidates(a.first, hint[0], found[0], found[1])
    known_b = known if work.same else open_candidates(b.first, hint[1], found_b[0], found_b[1])
    normalize = work.normalize
    room = _open_room(work.length)
    everything = TileJoin(a, b, known, known_b, room, work)
    top, pays, n_pairs = a.first, work.single, 0
    while top < a.stop:
        band = _open_band(top, a, room.band, normalize)
        leftmost, single, start = True, pays, b.first
        while start < b.stop:
            if cancel[0]:
                return
            width = min(WIDTH, b.stop - start)
            # rows from this one on have no admissible column in the strip
            last = min(band.height, start + width - 1 - work.least_apart - top)
            if last <= 0:
                start += width
                continue
            slack = room.slack_of_column
            strip = _open_strip(start, width, band, b, room.strip, slack, single, work)
            affordable = _affordable(a, b, work, n_pairs)
            pays = pays and _pays(known, known_b, work, affordable)
            if single and (
                not pays
                or strip.worst * band.weight > SINGLE_DOUBT
                or _in_doubt(top, last, strip, a, known, work.length)
            ):
                # in double precision to the end of the band; of what strips in single precision
                # hand on, nothing is taken: its errors are not those of double precision
                single, leftmost = False, True
                strip = _open_strip(start, width, band, b, room.strip, slack, False, work)
            if work.columns:
                slack, needed = room.slack_of_column, room.strip.needed
                _need_columns(strip, band, b, known_b, slack, needed, work)
            slack, needed = room.slack_of_row, room.band.needed
            _need_rows(top, last, strip, a, known, slack, needed, work)
            if leftmost:
                _enter_rows(top, start, band, a, b, room, work)
                leftmost = False
            _enter_columns(top, strip, a, b, room, work)
            if strip.single:
                _narrow_strip(last, strip, room)
            most_listed = max(known.n_listed[0], known_b.n_listed[0]) + affordable
            n_walked = _walk_strip(everything, band, strip, most_listed + LISTED_AT_LEAST)
            n_pairs += last * n_walked if single else 0
            start += n_walked
        top += band.height
    measure_all(known, a.line, b.line, work.length, work.normalize)
    if work.columns and not work.same:
        measure_all(known_b, b.line, a.line, work.length, work.normalize)
