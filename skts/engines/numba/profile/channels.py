r"""Joins of many channels on the CPU: covariances of all channels walk down diagonals side by side.

A tile is walked band of rows by band, a band in blocks of WIDTH neighbouring diagonals::

               columns
         +----------------------+     A block begins with covariances that are computed from points,
    rows |\ block \             |     and goes down row by row: the covariance of each diagonal
         | \       \            |     changes by two products, in each channel. Its squared distance
         |  \       \           |     is ``alpha_i + alpha_j - scale_i scale_j covariance``.
         +----------------------+

Constant windows have alpha 0, others that of their norm, windows that are not finite FAR, so that
distances of all kinds of windows come out of one formula. Estimates of distances are float32; their
nearest channels are added, and compared with what either window needs, ROWS rows at once
(`channel_rows.py`). A pair that passes is looked at in float64, channel by channel, with the bounds
of its errors (`channel_candidates.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import (
    CERTIFIED_ROUNDING,
    CONSTANT_KIND,
    FAR,
    FLOAT32_UNIT,
    FLOAT64_UNIT,
    MISSING_KIND,
    MOST_FINITE,
)
from ...host import kernel
from .._borrowed import borrowed
from .channel_candidates import (
    ChannelLine,
    PairBounds,
    Rule,
    bound_channels,
    bound_sums,
    certain_channels,
    comes_later,
    make_room,
    measure_all,
    offer,
    sort_few,
    take_exact,
)
from .channel_rows import FACTORS, LANES, ROWS, walk_rows
from .walk import lowest_bit, seeds

__all__ = ["BLOCK_WIDTHS", "GROUP", "ChannelAxis", "Walk", "search"]

#: Diagonals of a block: of so many channels at most, and of more.
BLOCK_WIDTHS = (16, 256, 64)
#: Rows of a band: fewer where windows differ so much in size that rounding errors of large ones
#: would bury small ones.
HEIGHTS = (512, 64)
#: Windows over which bounds of errors are taken.
GROUP = 64
#: Estimates of sums so many times larger than the error of their channels bound sums well enough.
SHARP = 1e4
#: Sums up to here are those of finite distances, see FAR.
MOST_NEEDED = np.float32(MOST_FINITE)
#: More than estimates in float32 lose where they underflow.
#: see "channel sums" in docs/developer/numerics.rst
LOST = 1e-18


class ChannelAxis(NamedTuple):
    """One axis of a tile: the channels along it, and which windows the tile holds.

    Attributes
    ----------
    line : ChannelLine
        The channels as they came, for certified distances.
    points, mean : ndarray of shape (n_channels, ...), float64
        Points and means of the lines of the search.
    lead, trail : ndarray of shape (n_channels, n_windows + padding), float64
        The two factors of the step that leads to a window, as of rows.
    scale, alpha : ndarray of shape (n_channels, n_windows + padding), float64
        What makes squared distances of covariances.
    blur, shift : ndarray of shape (n_channels, n_windows), float64
        As in `Steps`.
    groups : ndarray of shape (n_channels, n_groups, 8), float64
        The largest norm, step, error of a mean, scale, blur, shift and finite alpha of GROUP
        windows; their least norm.
    extents : ndarray of shape (n_channels, n_groups, 2), float64
        Their least and largest mean.
    first, stop : int
        Windows of the tile.
    """

    line: ChannelLine
    points: np.ndarray
    mean: np.ndarray
    lead: np.ndarray
    trail: np.ndarray
    scale: np.ndarray
    alpha: np.ndarray
    blur: np.ndarray
    shift: np.ndarray
    groups: np.ndarray
    extents: np.ndarray
    first: int
    stop: int


class Walk(NamedTuple):
    """Options of a search.

    Attributes
    ----------
    length : int
        Points of a window.
    least_apart : int
        Pairs with j - i <= this are left out.
    rows, columns : bool
        Whether windows along rows, and along columns, look for neighbours.
    same : bool
        Whether rows and columns are the same windows, with one list of neighbours.
    normalize : bool
        Whether windows are z-normalised.
    rule : Rule
        Which channels count.
    order : ndarray of shape (n_channels,), int64
        Channels: those that count in any case, then the others.
    network : ndarray of shape (n_comparators, 2), int64
        Puts the others in order, where they are many.
    """

    length: int
    least_apart: int
    rows: bool
    columns: bool
    same: bool
    normalize: bool
    rule: Rule
    order: np.ndarray
    network: np.ndarray


class BlockArrays(NamedTuple):
    """Arrays that are filled again for every block.

    Attributes
    ----------
    cov : ndarray of shape (2, n_channels, width), float64
        Covariances of the row before some rows, and of the last of them; the sides change places.
    own : ndarray of shape (n_channels, ROWS, FACTORS), float64
        Of each of the rows the two factors of its step, its scale and its alpha.
    held : ndarray of shape (ROWS * n_channels + 1, LANES), float32
        Estimates of distances of a group of pairs, in the order of `Walk.order`; from a whole
        vector on.
    values : ndarray of shape (ROWS, n_others, width), float32
        Estimates in order; as all that follows, of the pairs that are to be looked at.
    first_sums : ndarray of shape (ROWS, width), float32
        Sums over the channels that count in any case.
    flags : ndarray of shape (ROWS, width / LANES), uint16
        Pairs of each row that are to be looked at.
    need : ndarray of shape (ROWS, n_others + 1), float32
        Sums up to which a pair is near to the windows of the rows.
    needs : ndarray of shape (n_others + 1, n_columns + padding), float32
        The same of the columns of the tile, from `base` on.
    base : int
        See there.
    errors, doubts : ndarray of shape (n_channels,), float64
        Bounds of errors of covariances of the block, and of the rest of squared distances.
    allowance : ndarray of shape (n_dimensions,), float64
        Bounds of errors of sums of the block.
    window : ndarray of shape (length,), float64
        A centred window.
    bounds : PairBounds
        Of one pair.
    kinds : ndarray of shape (2, n_channels), uint8
        Of both windows of the pair.
    irregular : bool
        Whether any window is constant, not finite or hidden in any channel.
    unlike : ndarray of shape (n_dimensions,), float64
        Sums of a pair of a constant and a regular window in each channel.
    """

    cov: np.ndarray
    own: np.ndarray
    held: np.ndarray
    values: np.ndarray
    first_sums: np.ndarray
    flags: np.ndarray
    need: np.ndarray
    needs: np.ndarray
    base: int
    errors: np.ndarray
    doubts: np.ndarray
    allowance: np.ndarray
    window: np.ndarray
    bounds: PairBounds
    kinds: np.ndarray
    irregular: bool
    unlike: np.ndarray


@kernel
def _add_unlike(n_channels, walk):
    """Sum the distances of constant windows and regular ones, for each number of channels."""
    sums, total, at = np.zeros(walk.rule.dimensions.size), 0.0, 0
    for number in range(1, n_channels + 1):
        total += np.sqrt(walk.length)
        if at < sums.size and walk.rule.dimensions[at] == number:
            sums[at] = total
            at += 1
    return sums


@kernel
def _is_irregular(axis):
    """Whether any window of a tile is constant, not finite or hidden in any channel."""
    for c in range(axis.mean.shape[0]):
        for i in range(axis.first, axis.stop):
            if axis.line.kind[c, i] != 0 or axis.alpha[c, i] >= FAR:
                return True
    return False


@kernel
def _open_room(n_channels, first, stop, irregular, walk):
    """Make the arrays to work in, for columns `first` to `stop`."""
    most, narrow, wide = BLOCK_WIDTHS
    width = narrow if n_channels <= most else wide
    n_others, n_dimensions = n_channels - walk.rule.n_included, walk.rule.dimensions.size
    return BlockArrays(
        np.zeros((2, n_channels, width)),
        np.zeros((n_channels, ROWS, FACTORS)),
        np.zeros((ROWS * n_channels + 1, LANES), np.float32),
        np.zeros((ROWS, n_others, width), np.float32),
        np.zeros((ROWS, width), np.float32),
        np.zeros((ROWS, width // LANES), np.uint16),
        np.full((ROWS, n_others + 1), np.float32(-1)),
        np.full((n_others + 1, stop - first + 2 * width), np.float32(-1)),
        first - width,
        np.zeros(n_channels),
        np.zeros(n_channels),
        np.zeros(n_dimensions),
        np.empty(walk.length),
        PairBounds(np.zeros(n_channels), np.zeros(n_channels), np.zeros(n_dimensions),
                   np.zeros(n_dimensions), np.zeros(n_others)),
        np.zeros((2, n_channels), np.uint8),
        irregular,
        _add_unlike(n_channels, walk),
    )  # fmt: skip


@kernel
def _largest(groups, first, stop, at):
    """The largest of a bound over windows `first` to `stop`."""
    most = 0.0
    for group in range(first // GROUP, min((stop - 1) // GROUP + 1, groups.shape[0])):
        most = max(most, groups[group, at])
    return most


@kernel
def _drift(extents, first, stop, middle):
    """How far means of windows are from that of the middle one."""
    most = 0.0
    for group in range(first // GROUP, min((stop - 1) // GROUP + 1, extents.shape[0])):
        if extents[group, 0] <= extents[group, 1]:
            most = max(most, middle - extents[group, 0], extents[group, 1] - middle)
    return most


@kernel
def _height(top, a):
    """Rows of the band that begins at `top`."""
    for height in HEIGHTS:
        stop, even = min(top + height, a.stop), True
        for c in range(a.mean.shape[0]):
            least, most = np.inf, 0.0
            for group in range(top // GROUP, (stop - 1) // GROUP + 1):
                most = max(most, a.groups[c, group, 0])
                least = min(least, a.groups[c, group, 7])
            even = even and most <= 1e3 * least
        if even:
            break
    return stop - top


@kernel
def doubt(blur, shift, length):
    """Error of a squared distance that normalised windows leave open: see `_doubt` of `join.py`."""
    # see "normalised windows" in docs/developer/numerics.rst
    rounded = 8 * FLOAT64_UNIT * length * np.sqrt(length) * blur
    return CERTIFIED_ROUNDING * length * length + rounded + 8 * (length * shift) ** 2


@kernel
def _bound_errors(a, b, rows, columns, room, walk):
    """Bound the errors of a block of rows and columns; returns whether any is finite."""
    (top, bottom), (left, right), length = rows, columns, walk.length
    height = bottom - top
    n_channels = a.mean.shape[0]
    for c in range(n_channels):
        norm, norm_b = (
            _largest(a.groups[c], top, bottom, np.int64(0)),
            _largest(b.groups[c], left, right, np.int64(0)),
        )
        step, step_b = (
            _largest(a.groups[c], top, bottom, np.int64(1)),
            _largest(b.groups[c], left, right, np.int64(1)),
        )
        # see "covariance walk" in docs/developer/numerics.rst
        error = FLOAT64_UNIT * (height + 4) * (2 * norm * norm_b + 4 * step * step_b)
        error += FLOAT64_UNIT * (length + 8) * norm * norm_b
        if walk.normalize:
            slip = _largest(a.groups[c], top, bottom, np.int64(2)) + _largest(
                b.groups[c], left, right, np.int64(2)
            )
            middle = b.mean[c, min((left + right) // 2, b.mean.shape[1] - 1)]
            drift = 2 * _drift(b.extents[c], left, right, middle)
            error += FLOAT64_UNIT * (length + 8) * np.sqrt(length) * norm * drift
            error += length * slip * (drift + slip) + 2 * height * slip * (step + step_b)
            blur = max(
                _largest(a.groups[c], top, bottom, np.int64(4)),
                _largest(b.groups[c], left, right, np.int64(4)),
            )
            shift = max(
                _largest(a.groups[c], top, bottom, np.int64(5)),
                _largest(b.groups[c], left, right, np.int64(5)),
            )
            room.doubts[c] = doubt(blur, shift, length)
        else:
            # see "raw windows" in docs/developer/numerics.rst
            share = FLOAT64_UNIT * length * (16 + 8 * np.sqrt(length))
            energies = _largest(a.groups[c], top, bottom, np.int64(6)) + _largest(
                b.groups[c], left, right, np.int64(6)
            )
            room.doubts[c] = 2 * share * energies
        room.errors[c] = error
        scales = _largest(a.groups[c], top, bottom, np.int64(3)) * _largest(
            b.groups[c], left, right, np.int64(3)
        )
        room.bounds.low[c] = np.sqrt(error * scales + room.doubts[c])
    # of the channels with the largest errors
    sort_few(room.bounds.low, False)
    total, at = 0.0, 0
    for k in range(1, n_channels + 1):
        total += room.bounds.low[n_channels - k]
        if at < walk.rule.dimensions.size and walk.rule.dimensions[at] == k:
            room.allowance[at] = total + k * LOST
            at += 1


@kernel(forceinline=True)
def _needed(top, allowance, number):
    """The estimate in float32 up to which a sum of so many channels may be at most `top`."""
    # see "channel sums" in docs/developer/numerics.rst
    need = (top + allowance) * (1 + (number + 5) * FLOAT32_UNIT)
    return np.float32(min(need, MOST_NEEDED))


@kernel
def _need_columns(known, top, first, stop, room, walk):
    """Write what the columns of a block need, whose rows begin with `top`."""
    distances, indices = known.distances, known.indices
    dimensions, included = walk.rule.dimensions, walk.rule.n_included
    for at in range(dimensions.size):
        number, needs = dimensions[at], room.needs[dimensions[at] - included]
        for j in range(first, stop):
            place, need = j - known.first, np.float32(-1)
            if known.open[j] and not comes_later(distances, indices, place, at, top):
                need = _needed(known.tops[place, at], room.allowance[at], number)
            needs[j - room.base] = need


@kernel
def _need_rows(known, first, count, left, room, walk):
    """Write what so many rows need, the columns of the first of which begin with `left`."""
    distances, indices = known.distances, known.indices
    dimensions, included = walk.rule.dimensions, walk.rule.n_included
    for row in range(count):
        place = first + row - known.first
        for at in range(dimensions.size):
            number, need = dimensions[at], np.float32(-1)
            if known.open[first + row] and not comes_later(
                distances, indices, place, at, left + row
            ):
                need = _needed(known.tops[place, at], room.allowance[at], number)
            room.need[row, number - included] = need


@kernel
def _seed(a, b, i, left, room, walk):
    """Compute the covariances of the first row of a block."""
    n_windows, cov = b.mean.shape[1], room.cov[0]
    count = min(cov.shape[1], n_windows - left)
    for c in range(a.mean.shape[0]):
        center = a.mean[c, i] if walk.normalize else 0.0
        for t in range(walk.length):
            room.window[t] = a.points[c, i + t] - center
        middle = b.mean[c, left + count // 2] if walk.normalize else 0.0
        cov[c, count:] = 0.0
        seeds(b.points[c], left, middle, room.window, cov[c, :count])


@kernel
def _read_rows(a, first, count, begins, room, walk):
    """Write the factors of so many rows; the first of a block takes no step."""
    own = room.own
    for c in range(own.shape[0]):
        for row in range(count):
            i = first + row
            lead, trail = a.lead[c, i], a.trail[c, i]
            if begins and row == 0:
                lead = trail = 0.0
            # the factors of columns are those of rows, in the other order
            own[c, row, 0] = lead if walk.normalize else -trail
            own[c, row, 1] = trail if walk.normalize else lead
            own[c, row, 2] = a.scale[c, i]
            own[c, row, 3] = a.alpha[c, i]


# called in one place: compiled there, and not once more by all that lies between
@kernel(inline="always")
def _walk_block(a, b, known, known_b, rows, left, room, walk):
    """Walk a block from its first row to its last; `left` is the first column of the first row."""
    (first, stop), side = rows, 0
    for i in range(first, stop, ROWS):
        j, count = left + i - first, min(ROWS, stop - i)
        _read_rows(a, i, count, i == first, room, walk)
        if walk.rows:
            _need_rows(known, i, count, j, room, walk)
        near = walk_rows(b, room, walk, side, count, j)
        while near:
            _look(a, b, known, known_b, i, j, lowest_bit(near), side, room, walk)
            near &= near - 1
        side = 1 - side


@kernel
def _bound_by_estimates(row, d, room, walk):
    """Bound the sums of a pair by its estimates; returns whether the bounds are close."""
    # see "channel sums" in docs/developer/numerics.rst
    rule, bounds, values = walk.rule, room.bounds, room.values
    sign = -1.0 if rule.worst else 1.0
    total, number = float(room.first_sums[row, d]), rule.n_included
    missing = total > MOST_NEEDED
    for at in range(rule.dimensions.size):
        while number < rule.dimensions[at]:
            # channels that are not finite come last, also where the farthest come first
            value = float(values[row, number - rule.n_included, d])
            missing = missing or value > MOST_NEEDED
            total += sign * value
            number += 1
        if missing:
            bounds.sums_low[at] = bounds.sums_up[at] = np.inf
            continue
        if not SHARP * room.allowance[at] <= total:  # also where either is no number
            return False
        share = (number + 7) * FLOAT32_UNIT
        bounds.sums_low[at] = total * (1 - share) - room.allowance[at]
        bounds.sums_up[at] = total * (1 + share) + room.allowance[at]
    return True


@kernel(forceinline=True)
def _tell_kinds(a, b, i, j, kinds):
    """Write the kinds of both windows of a pair in each channel; what is hidden is missing.

    Returns how many channels have two regular windows, and how many a constant and a regular one.
    """
    n_regular = n_unlike = 0
    for c in range(kinds.shape[1]):
        hidden = a.alpha[c, i] >= FAR or b.alpha[c, j] >= FAR
        kinds[0, c] = MISSING_KIND if hidden else a.line.kind[c, i]
        kinds[1, c] = b.line.kind[c, j]
        n_regular += kinds[0, c] == kinds[1, c] == 0
        n_unlike += kinds[0, c] + kinds[1, c] == CONSTANT_KIND
    return n_regular, n_unlike


@kernel(forceinline=True)
def _covariance(b, c, j, place, room):
    """Walk the covariance of a pair in a channel once more, down to its row.

    Its place is a row among those that are walked at once, a diagonal of the block, and the side of
    the covariances before.
    """
    row, d, side = place
    covariance = room.cov[side, c, d]
    for above in range(row + 1):
        at = j - row + above
        covariance += room.own[c, above, 0] * b.trail[c, at] + room.own[c, above, 1] * b.lead[c, at]
    return covariance


# called in one place: compiled there, and not once more by all that lies between
@kernel(inline="always")
def _bound_exactly(a, b, pair, place, regular, room, walk):
    """Bound the sums of a pair by its covariances in float64; `place` is as in `_covariance`.

    Returns up to how many channels these are certified sums: none where all windows are regular.
    """
    bounds, (i, j) = room.bounds, pair
    for c in range(room.own.shape[0]):
        kind, kind_b = (0, 0) if regular else (room.kinds[0, c], room.kinds[1, c])
        rest = room.doubts[c]
        if walk.normalize:
            rest = doubt(
                max(a.blur[c, i], b.blur[c, j]), max(a.shift[c, i], b.shift[c, j]), walk.length
            )
        scales = a.scale[c, i] * b.scale[c, j]
        square = a.alpha[c, i] + b.alpha[c, j] - _covariance(b, c, j, place, room) * scales
        bound_channels(bounds, c, kind, kind_b, square, room.errors[c] * scales + rest)
    n_certain = 0
    if not regular:
        n_certain = certain_channels(bounds, room.kinds, walk.rule, walk.order)
    bound_sums(bounds, walk.rule, walk.order, n_certain)
    return n_certain


# called in one place: compiled there, and not once more by all that lies between
@kernel(inline="always")
def _look(a, b, known, known_b, first, left, row, side, room, walk):
    """Look at the pairs of a row whose flags are set, in float64 where estimates are too coarse.

    It is a row among those that are walked at once, from `first` and `left` on.
    """
    i, left = first + row, left + row
    _, n_channels, width = room.cov.shape
    begin, end = max(0, b.first - left), min(width, b.stop - left)
    # a list of both rows and columns takes each pair twice
    pairs = 2 * width if walk.same else width
    make_room(known, a.line, b.line, pairs, walk.length, walk.rule, walk.order)
    if not walk.same:
        make_room(known_b, b.line, a.line, pairs, walk.length, walk.rule, walk.order)
    dimensions, included, bounds = walk.rule.dimensions, walk.rule.n_included, room.bounds
    open_row = walk.rows and known.open[i]
    d = begin
    while d < end:
        flags = room.flags[row, d // LANES] >> (d % LANES)
        if flags & 1 == 0:
            # the next pair, or the next group of lanes
            d = d + 1 if flags else (d // LANES + 1) * LANES
            continue
        j = left + d
        n_regular, n_unlike, n_certain = n_channels, 0, 0
        if room.irregular:
            n_regular, n_unlike = _tell_kinds(a, b, i, j, room.kinds)
        if n_unlike == n_channels:
            n_certain = n_channels
            bounds.sums_low[:] = room.unlike
        elif n_regular < n_channels or not _bound_by_estimates(row, d, room, walk):
            pair, place, regular = (i, j), (row, d, side), n_regular == n_channels
            n_certain = _bound_exactly(a, b, pair, place, regular, room, walk)
        for at in range(dimensions.size):
            low, up, exact = bounds.sums_low[at], bounds.sums_up[at], dimensions[at] <= n_certain
            if open_row and low <= known.tops[i - known.first, at]:
                if exact:
                    take_exact(known, i - known.first, at, j, low, walk.rule)
                else:
                    offer(known, i - known.first, at, j, low, up)
            if walk.columns and known_b.open[j] and low <= known_b.tops[j - known_b.first, at]:
                if exact:
                    take_exact(known_b, j - known_b.first, at, i, low, walk.rule)
                else:
                    offer(known_b, j - known_b.first, at, i, low, up)
                need = np.float32(-1)
                # rows below come later, too
                if not comes_later(known_b.distances, known_b.indices, j - known_b.first, at, i):
                    need = _needed(
                        known_b.tops[j - known_b.first, at], room.allowance[at], dimensions[at]
                    )
                room.needs[dimensions[at] - included, j - room.base] = need
        d += 1


@kernel
def _walk_tile(a, b, known, known_b, room, walk, cancel):
    """Walk the blocks of a tile, band by band."""
    a, b, known, known_b = borrowed(a), borrowed(b), borrowed(known), borrowed(known_b)
    room, walk = borrowed(room), borrowed(walk)
    n_windows, width = b.mean.shape[1], room.cov.shape[2]
    top = a.first
    while top < a.stop:
        bottom = top + _height(top, a)
        diagonal = max(walk.least_apart + 1, b.first - (bottom - 1))
        while diagonal < b.stop - top:
            if cancel[0]:
                return
            # rows of the band in which a diagonal of the block has a column of the tile
            first = max(top, b.first - diagonal - width + 1)
            stop = min(bottom, b.stop - diagonal)
            left, right = first + diagonal, min(stop + diagonal + width, n_windows)
            _bound_errors(a, b, (first, stop), (left, right), room, walk)
            if walk.columns:
                inside = max(left, b.first), min(right, b.stop)
                _need_columns(known_b, first, inside[0], inside[1], room, walk)
            _seed(a, b, first, left, room, walk)
            _walk_block(a, b, known, known_b, (first, stop), left, room, walk)
            diagonal += width
        top = bottom


@kernel
def search(a, b, known, known_b, walk, cancel):
    """Nearest windows within a tile, among the pairs that are so far to the right of the diagonal.

    Parameters
    ----------
    a, b : ChannelAxis
        Rows and columns.
    known, known_b : Known
        Neighbours of rows and of columns, added to.
    walk : Walk
        Options.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    """
    irregular = _is_irregular(a) or _is_irregular(b)
    room = _open_room(a.mean.shape[0], b.first, b.stop, irregular, walk)
    _walk_tile(a, b, known, known_b, room, walk, cancel)
    if cancel[0]:
        return
    measure_all(known, a.line, b.line, walk.length, walk.rule, walk.order)
    if not walk.same:
        measure_all(known_b, b.line, a.line, walk.length, walk.rule, walk.order)
