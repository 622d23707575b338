"""Joins on the CPU: the covariances of all pairs of windows, diagonal by diagonal.

One row down, the covariance of two windows moves one column right and changes by two products::

    cov(i, j) = cov(i - 1, j - 1) + p_i q_j + r_i s_j

so LANES neighbouring diagonals go down together, their covariances in registers. A strip of WIDTH
columns is walked in groups of such diagonals: they begin at its first row, or on its left, and end
at its last row, or on its right, where they enter the next strip; so only the first row of a band
of rows, and the left edge of a tile, are computed from their points.

A covariance c is scored twice: as ``c (x) w_j`` among the columns of its row and as ``c (x) w_i``
among the rows of its column, where (x) is a product for z-normalised windows and a sum for
windows as they are. Squared distances fall linearly with the score, ``alpha - beta score``.

Scores are estimates. Where one may be among the nearest, by the bound of its error, the walk stops
and the pair is listed; what is on the list, and still may be near when much more is known, is
measured: distances that leave this module are certified.

The walk is along a line no point of which is larger than 1 (`SearchLine`), and the range of each
window that it serves is at least 2^-31. So no covariance exceeds ``length`` by more than rounding,
no weight 2^32 (or 4 length, for windows as they are), and no score length 2^33: far below NOTHING,
what a window needs that takes part in nothing.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.types import Array
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = ["HEIGHTS", "LANES", "WIDTH", "descend", "search", "seeds"]

#: Columns of a strip: its four arrays fill half of the first-level cache.
WIDTH = 512
#: Rows of a band: what a covariance sums no more steps than; low ones where windows differ
#: so much in size that rounding errors of large ones would bury small ones.
HEIGHTS = (4096, 512, 64)
#: Possible neighbours that are listed before they are measured.
LISTED = 2**17
#: Pairs that are measured side by side.
PAIRS = 8
#: What a window needs that takes part in nothing, and the weight of what is no window: beyond
#: every score, see above.
#: see "search line" in docs/developer/numerics.rst
NOTHING = 2.0**100

#: Scores are finite numbers: no window that is not finite, and no infinity, ever enters.
FINITE = {"nnan", "ninf", "nsz", "contract"}
#: Rows that are looked at together, from one on that holds a pair that may be near.
BLOCK = 16
#: Diagonals that go down together, and how many of them are one vector of the compiler's.
LANES = 32
VECTOR = 8


@intrinsic
def descend(
    typing_context, cov, p, r, weight, needed, q, s, weight_b, needed_b, row, stop, shift, columns,
    normalize,
):  # fmt: skip
    """Go down LANES diagonals, from a row on, until a row holds a pair that may be near.

    Lane l of row i is in column ``i + shift + l``. Its covariance ``cov[l]`` is that of the row
    before; the first four arrays belong to rows, the other four to columns. Without `columns`
    (None), what columns need is not looked at. Returns the row after the last one done, and
    whether that last row is one to look at.
    """
    # written in the compiler's own terms: nothing else keeps the covariances in registers
    if not all(isinstance(one, Array) for one in (cov, p, r, weight, needed, q, s)):
        return None
    signature = types.Tuple((types.int64, types.boolean))(
        cov, p, r, weight, needed, q, s, weight_b, needed_b, types.int64, types.int64,
        types.int64, columns, normalize,
    )  # fmt: skip

    def codegen(context, builder, signature, args):
        double, index = ir.DoubleType(), ir.IntType(64)
        vector = ir.VectorType(double, VECTOR)
        flags = tuple(FINITE)
        data = [
            make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args[:9], args[:9], strict=True)
        ]
        row, stop, shift = args[9:12]
        both, product = (not isinstance(kind, types.NoneType) for kind in signature.args[12:])
        maximum = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector, vector]), f"llvm.maxnum.v{VECTOR}f64"
        )

        def pointer(array, at):
            return builder.bitcast(builder.gep(data[array], [at]), vector.as_pointer())

        def at_row(array, at):
            value = builder.load(builder.gep(data[array], [at]))
            one = builder.insert_element(
                ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0)
            )
            return builder.shuffle_vector(
                one, one, ir.Constant(ir.VectorType(ir.IntType(32), VECTOR), [0] * VECTOR)
            )

        def at_column(array, at):
            return builder.load(pointer(array, at), align=8)

        def scored(value, weight):
            combine = builder.fmul if product else builder.fadd
            return combine(value, weight, flags=flags)

        lanes = range(0, LANES, VECTOR)
        begin = [builder.load(pointer(0, index(lane)), align=8) for lane in lanes]
        before = builder.block
        loop = builder.append_basic_block("row")
        done = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(index)
        covariances = [builder.phi(vector) for _ in lanes]
        i.add_incoming(row, before)
        p_i, r_i, w_i, need_i = (at_row(array, i) for array in (1, 2, 3, 4))
        column = builder.add(i, shift)
        most, ends = None, []
        for lane, covariance in zip(lanes, covariances, strict=True):
            j = builder.add(column, index(lane))
            step = builder.fmul(r_i, at_column(6, j), flags=flags)
            end = builder.fadd(covariance, step, flags=flags)
            step = builder.fmul(p_i, at_column(5, j), flags=flags)
            end = builder.fadd(end, step, flags=flags)
            ends.append(end)
            # by how much the score exceeds what the row, and the column, needs
            beyond = [builder.fsub(scored(end, at_column(7, j)), need_i, flags=flags)]
            if both:
                beyond.append(builder.fsub(scored(end, w_i), at_column(8, j), flags=flags))
            for one in beyond:
                most = (
                    one
                    if most is None
                    else builder.call(maximum, [most, one], fastmath=("nnan", "nsz"))
                )
        near = builder.fcmp_ordered(">=", most, ir.Constant(vector, [0.0] * VECTOR))
        near = builder.icmp_unsigned(
            "!=", builder.bitcast(near, ir.IntType(VECTOR)), ir.IntType(VECTOR)(0)
        )
        following = builder.add(i, index(1))
        last = builder.icmp_signed(">=", following, stop)
        after = builder.block
        i.add_incoming(following, after)
        for covariance, first, end in zip(covariances, begin, ends, strict=True):
            covariance.add_incoming(first, before)
            covariance.add_incoming(end, after)
        builder.cbranch(builder.or_(near, last), done, loop)
        builder.position_at_end(done)
        for lane, end in zip(lanes, ends, strict=True):
            builder.store(end, pointer(0, index(lane)), align=8)
        return context.make_tuple(
            builder, signature.return_type, [following, builder.zext(near, ir.IntType(1))]
        )

    return signature, codegen


@intrinsic
def larger(typing_context, a, b):
    """The larger of two numbers that are not NaN, in one instruction that vectorises."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        name = "llvm.maxnum.f64" if isinstance(kind, ir.DoubleType) else "llvm.maxnum.f32"
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind, kind]), name
        )
        return builder.call(function, args, fastmath=("nnan", "nsz"))

    return a(a, b), codegen


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def _record(held, rows, p, r, q, s):
    """Go down some rows from the first, keeping the covariances of all."""
    for u in range(1, rows):
        p_u, r_u, q_u, s_u = p[u], r[u], q[u : u + LANES], s[u : u + LANES]
        before, after = held[u - 1], held[u]
        for lane in range(LANES):
            after[lane] = before[lane] + p_u * q_u[lane] + r_u * s_u[lane]


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def _best_in_row(cov, weight, scores, normalize):
    """Score the pairs of a row by the weights of their columns; return the best."""
    most = -NOTHING
    for lane in range(LANES):
        score = cov[lane] * weight[lane] if normalize is not None else cov[lane] + weight[lane]
        scores[lane] = score
        most = larger(score, most)
    return most


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def _best_in_columns(held, rows, weight, best, normalize):
    """The best score of columns by the weights of some rows."""
    best[:] = -NOTHING
    for u in range(rows):
        cov, mine, weight_u = held[u], best[u : u + LANES], weight[u]
        for lane in range(LANES):
            score = cov[lane] * weight_u if normalize is not None else cov[lane] + weight_u
            mine[lane] = larger(score, mine[lane])


@njit(nogil=True, cache=True, error_model="numpy", fastmath=FINITE)
def seeds(points, start, center, window, out):
    """Products of a centred window with the windows of a line from `start` on."""
    total = np.empty(LANES)
    for first in range(0, out.size, LANES):
        count = min(LANES, out.size - first)
        at = start + first
        total[:] = 0.0
        if at + LANES + window.size - 1 <= points.size:
            for t in range(window.size):
                for lane in range(LANES):
                    total[lane] += window[t] * (points[at + lane + t] - center)
        else:
            for t in range(window.size):
                for lane in range(count):
                    total[lane] += window[t] * (points[at + lane + t] - center)
        for lane in range(count):
            out[first + lane] = total[lane]


@njit(nogil=True, cache=True, error_model="numpy")
def _insert(distances, indices, distance, index):
    """Put a neighbour in its place among the nearest, in the order of (distance, index)."""
    place = distances.size
    while place > 0 and (
        distance < distances[place - 1]
        or (distance == distances[place - 1] and index < indices[place - 1])
    ):
        place -= 1
    if place == distances.size:
        return
    for k in range(distances.size - 1, place, -1):
        distances[k] = distances[k - 1]
        indices[k] = indices[k - 1]
    distances[place] = distance
    indices[place] = index


@njit(nogil=True, cache=True, error_model="numpy")
def _lower(tops, top):
    """Put an upper value among the least of a window; the last of them is its limit."""
    place = tops.size
    while place > 0 and top < tops[place - 1]:
        place -= 1
    if place == tops.size:
        return
    for k in range(tops.size - 1, place, -1):
        tops[k] = tops[k - 1]
    tops[place] = top


@njit(nogil=True, cache=True, error_model="numpy")
def _measure(
    pairs, floors, count, own, others, length, offset, tops, nearest, found, normalize
):  # fmt: skip
    """Measure the pairs of a list, (window, other), that may still be near."""
    points, mean, inverse = own
    points_b, mean_b, inverse_b = others
    first, second = np.zeros(PAIRS, np.int64), np.zeros(PAIRS, np.int64)
    total, k = np.empty(PAIRS), tops.shape[1]
    anchor_of, anchor_of_b = np.zeros(PAIRS), np.zeros(PAIRS)
    mean_of, scale_of = np.empty(PAIRS), np.empty(PAIRS)
    mean_of_b, scale_of_b = np.empty(PAIRS), np.empty(PAIRS)
    entry = 0
    while entry < count:
        taken = 0
        while entry < count and taken < PAIRS:
            window, other = pairs[entry]
            if floors[entry] <= tops[window - offset, k - 1]:
                first[taken], second[taken] = window, other
                taken += 1
            entry += 1
        for lane in range(PAIRS):
            mean_of[lane], scale_of[lane] = mean[first[lane]], inverse[first[lane]]
            mean_of_b[lane], scale_of_b[lane] = mean_b[second[lane]], inverse_b[second[lane]]
            total[lane] = 0.0
            if normalize is not None:
                anchor_of[lane], anchor_of_b[lane] = points[first[lane]], points_b[second[lane]]
        for t in range(length):
            for lane in range(PAIRS):
                d = (points[first[lane] + t] - anchor_of[lane] - mean_of[lane]) * scale_of[lane] - (
                    points_b[second[lane] + t] - anchor_of_b[lane] - mean_of_b[lane]
                ) * scale_of_b[lane]
                total[lane] += d * d
        for lane in range(taken):
            place = first[lane] - offset
            _insert(nearest[place], found[place], np.sqrt(total[lane]), second[lane])


@njit(nogil=True, cache=True, error_model="numpy")
def _sift(pairs, floors, count, offset, tops):
    """Drop what is no longer near from a list; return how much is left."""
    left, k = 0, tops.shape[1]
    for entry in range(count):
        if floors[entry] <= tops[pairs[entry, 0] - offset, k - 1]:
            pairs[left, 0], pairs[left, 1] = pairs[entry, 0], pairs[entry, 1]
            floors[left] = floors[entry]
            left += 1
    return left


@njit(nogil=True, cache=True, error_model="numpy")
def _room(
    pairs, floors, count, own, others, length, offset, tops, nearest, found, normalize
):  # fmt: skip
    """Make room on a list; return how many pairs are left on it."""
    count = _sift(pairs, floors, count, offset, tops)
    if count <= LISTED // 2:
        return count
    _measure(pairs, floors, count, own, others, length, offset, tops, nearest, found, normalize)
    return np.int64(0)


@njit(nogil=True, cache=True, error_model="numpy")
def _offer(
    place, window, other, square, slack, pairs, floors, count, tops, waiting, floor_of_waiting
):  # fmt: skip
    """Take a pair that may be near, given its squared distance and how wrong that may be.

    One neighbour of each window waits apart, to be replaced by one that is nearer for certain; the
    list, on which there is room, takes what is not so clear. Returns how many pairs are on it.
    """
    _lower(tops[place], square + slack)
    if tops.shape[1] == 1:
        if waiting[place] < 0 or square + slack < floor_of_waiting[place]:
            waiting[place], floor_of_waiting[place] = other, square - slack
            return count
        if square - slack > tops[place, 0]:
            return count
    pairs[count, 0], pairs[count, 1] = window, other
    floors[count] = square - slack
    return count + 1


@njit(nogil=True, cache=True, error_model="numpy")
def _needed(alpha, beta, limit, unit, usual):
    """The score from which on a squared distance may be within a limit."""
    if not usual:
        return NOTHING
    # see "join limits" in docs/developer/numerics.rst
    score = (alpha - limit) / beta
    return score - 4 * unit * abs(score) if score > -NOTHING else -NOTHING


@njit(nogil=True, cache=True, error_model="numpy")
def _doubt(blur, shift, length):
    """What normalised windows leave open of a squared distance.

    `blur` is the larger ratio of a largest magnitude to a norm, `shift` that of an error of a mean.
    Each point of the line is rounded once, and the means are, of the line and of certified
    distances.
    """
    # see "normalised windows" in docs/developer/numerics.rst
    rounded = 8 * 2.0**-53 * length * np.sqrt(length) * blur
    return 1e-14 * length * length + rounded + 8 * (length * shift) ** 2


@njit(nogil=True, cache=True, error_model="numpy")
def _look(
    window, place, scores, begin, end, partner, usual, need, alpha, beta, slack, unit, pairs,
    floors, count, tops, waiting, floor_of_waiting,
):  # fmt: skip
    """Take what may be near to a window of a run of others, whose first is `partner`.

    Returns how many pairs are on the list, and what the window needs from now on.
    """
    # the best first: then the others, as a rule, are known to be farther
    chosen = np.int64(-1)
    for at in range(begin, end):
        if (
            scores[at] >= need
            and usual[partner + at]
            and (chosen < 0 or scores[at] > scores[chosen])
        ):
            chosen = at
    for turn in range(begin - 1, end):
        at = chosen if turn < begin else turn
        if at < 0 or turn == chosen or scores[at] < need or not usual[partner + at]:
            continue
        square = alpha - beta * scores[at]
        count = _offer(
            place, window, partner + at, square, slack, pairs, floors, count, tops, waiting,
            floor_of_waiting,
        )  # fmt: skip
        need = _needed(alpha, beta, tops[place, tops.shape[1] - 1] + slack, unit, True)
    return count, need


@njit(nogil=True, cache=True, error_model="numpy")
def _finish(
    pairs,
    floors,
    count,
    own,
    others,
    length,
    offset,
    tops,
    nearest,
    found,
    waiting,
    floor_of_waiting,
    normalize,
):
    """Measure what is on a list, and the neighbours that waited apart."""
    _measure(pairs, floors, count, own, others, length, offset, tops, nearest, found, normalize)
    count = np.int64(0)
    for place in range(waiting.size):
        if waiting[place] >= 0:
            pairs[count, 0], pairs[count, 1] = offset + place, waiting[place]
            floors[count] = floor_of_waiting[place]
            count += 1
        if count == LISTED or place == waiting.size - 1:
            _measure(
                pairs, floors, count, own, others, length, offset, tops, nearest, found, normalize
            )
            count = np.int64(0)


@njit(nogil=True, cache=True, error_model="numpy")
def _height(top, row_stop, norm, reach, usual):
    """Rows of the band that begins at `top`, and which of HEIGHTS bounds it."""
    for level in range(len(HEIGHTS)):
        height = min(HEIGHTS[level], row_stop - top)
        most, least = 0.0, np.inf
        for i in range(top, top + height):
            most = max(most, reach[level, i])
            if usual[i]:
                least = min(least, norm[i])
        if most <= 1e3 * least:
            break
    return height, level


@njit(nogil=True, cache=True, error_model="numpy")
def search(
    a, line_a, steps_a, b, line_b, steps_b, length, tile, least_apart, unit, hint,
    nearest, found, nearest_b, found_b, cancel, columns, same, normalize,
):  # fmt: skip
    """Nearest windows within a tile, of its rows and, with `columns`, of its columns.

    Parameters
    ----------
    a, b : tuple of ndarray
        Points, means and inverse deviations, for certified distances, of both lines.
    line_a, line_b : tuple of ndarray
        Points and means of the lines of the search, and which windows take part.
    steps_a, steps_b : tuple of ndarray
        Of each window: the two factors of the step that leads to it (p, r or q, s) and its weight,
        in the type of the search; alpha, beta, its norm and the error of its mean; largest
        magnitude and error of the mean over its norm, for normalised windows; the largest norms
        and steps of the windows before it, as many as each of HEIGHTS.
    length : int
        Points of a window.
    tile : tuple of int
        First row and the one after the last; the columns alike.
    least_apart : int
        Pairs with j - i <= this are not admissible.
    unit : float
        Unit roundoff of the type of the search.
    hint : tuple of two ndarray
        Distances, of all windows of both lines, that neighbours need not exceed: in the units of
        the search.
    nearest, found, nearest_b, found_b : ndarray of shape (n, n_neighbors)
        Distances and places of neighbours of rows and columns, written here.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.
    columns, normalize : True or None
        Whether columns look for neighbours, too; whether windows are z-normalised.
    same : bool
        Whether rows and columns are the same windows, and one list of neighbours is wanted: then
        that of rows is both.
    """
    row, row_stop, col, col_stop = tile
    points_a, mean_a, usual_a = line_a
    points_b, mean_b, usual_b = line_b
    p, r, weight_a, alpha_a, beta_a, norm_a, slip_a, blur_a, shift_a, reach_a, _ = steps_a
    q, s, weight_b, alpha_b, beta_b, _, slip_b, blur_b, shift_b, reach_b, stride_b = steps_b
    k = nearest.shape[1]
    # the least upper values of squared distances, of rows and of columns; the last is the limit
    tops = np.empty((row_stop - row, k))
    tops_b = np.empty((col_stop - col, k) if columns is not None else (0, k))
    for i in range(tops.shape[0]):
        tops[i] = hint[0][row + i] ** 2 * (1 + 1e-15)
    for j in range(tops_b.shape[0]):
        tops_b[j] = hint[1][col + j] ** 2 * (1 + 1e-15)
    if same:
        tops_b, nearest_b, found_b = tops, nearest, found
    none = np.int64(0)
    pairs, floors, count = np.empty((LISTED, 2), np.int64), np.empty(LISTED), none
    pairs_b, floors_b, count_b = np.empty((LISTED, 2), np.int64), np.empty(LISTED), none
    waiting, floor_of_waiting = np.full(tops.shape[0], -1), np.zeros(tops.shape[0])
    waiting_b, floor_of_waiting_b = np.full(tops_b.shape[0], -1), np.zeros(tops_b.shape[0])
    if same:
        waiting_b, floor_of_waiting_b = waiting, floor_of_waiting
    # lanes begin and end up to LANES columns beside the strip, in columns that are no windows
    q_strip, s_strip = np.zeros(WIDTH + 2 * LANES), np.zeros(WIDTH + 2 * LANES)
    w_strip, needed = np.zeros(WIDTH + 2 * LANES), np.full(WIDTH + 2 * LANES, NOTHING)
    w_strip[:LANES] = 0.0 if normalize is not None else -NOTHING
    slack_b, cov, scores = np.zeros(WIDTH), np.zeros(LANES), np.zeros(LANES)
    held, best_of_column = np.zeros((BLOCK, LANES)), np.zeros(LANES + BLOCK)
    entering, leaving = np.zeros(HEIGHTS[0] + 1), np.zeros(HEIGHTS[0] + 1)
    p_band, r_band = np.zeros(HEIGHTS[0]), np.zeros(HEIGHTS[0])
    w_band, needed_row = np.zeros(HEIGHTS[0]), np.zeros(HEIGHTS[0])
    slack_row = np.zeros(HEIGHTS[0])
    window = np.empty(length)
    first_row, fresh = np.empty(WIDTH), np.empty(HEIGHTS[0])
    half = 2.0**-53
    # the share of alpha that windows as they are leave open: of the line, energies and the sum
    # see "raw windows" in docs/developer/numerics.rst
    share = half * length * (16 + 8 * np.sqrt(length))
    top = row
    while top < row_stop:
        height, level = _height(top, row_stop, norm_a, reach_a, usual_a)
        bottom = top + height
        norm_band, step_band, slip_band, weight_band = 0.0, 0.0, 0.0, 0.0
        blur_band, shift_band = 0.0, 0.0
        for i in range(top, bottom):
            norm_band, slip_band = max(norm_band, norm_a[i]), max(slip_band, slip_a[i])
            shift_band = max(shift_band, shift_a[i])
            step_band = max(step_band, abs(p[i]) + abs(r[i])) if i > top else step_band
            weight_band, blur_band = max(weight_band, abs(weight_a[i])), max(blur_band, blur_a[i])
            p_band[i - top], r_band[i - top], w_band[i - top] = p[i], r[i], weight_a[i]
        p_band[0] = r_band[0] = 0
        # seeds of the left edge are centred on the middle of the band
        middle_a = mean_a[top + height // 2] if normalize is not None else 0.0
        drift_a = 0.0
        for i in range(top, bottom if normalize is not None else top):
            drift_a = max(drift_a, abs(mean_a[i] - middle_a))
        leftmost = True
        for start in range(col, col_stop, WIDTH):
            if cancel[0]:
                return
            width = min(WIDTH, col_stop - start)
            if start + width - 1 - top <= least_apart:
                continue
            middle = mean_b[start + width // 2] if normalize is not None else 0.0
            # the error of every covariance of a column, times the weights, bounds that of scores
            # see "covariance walk" in docs/developer/numerics.rst
            worst, blur_strip, shift_strip = 0.0, 0.0, 0.0
            for j in range(width):
                at = start + j
                q_strip[LANES + j], s_strip[LANES + j] = q[at], s[at]
                w_strip[LANES + j] = weight_b[at]
                error = (
                    unit
                    * (height + 4)
                    * (2 * norm_band * reach_b[level, at] + 4 * step_band * stride_b[level, at])
                )
                error += half * (length + 8) * norm_band * reach_b[level, at]
                if normalize is not None:
                    drift = abs(mean_b[at] - middle)
                    slip = slip_band + slip_b[at]
                    error += (
                        half
                        * (length + 8)
                        * np.sqrt(length)
                        * (norm_band * drift + reach_b[level, at] * drift_a)
                    )
                    error += length * slip * (drift + drift_a + slip)
                    error += 2 * height * slip * (step_band + stride_b[level, at])
                    slack_b[j] = error
                    worst = max(worst, error * weight_b[at])
                    blur_strip = max(blur_strip, blur_b[at])
                    shift_strip = max(shift_strip, shift_b[at])
                else:
                    slack_b[j] = error
                    worst = max(worst, error)
            for j in range(width):
                at = start + j
                if columns is None:
                    continue
                if normalize is not None:
                    slack_b[j] *= beta_b[at] * weight_band
                    blur, shift = max(blur_band, blur_b[at]), max(shift_band, shift_b[at])
                    slack_b[j] += _doubt(blur, shift, length)
                else:
                    slack_b[j] = 2 * slack_b[j] + share * alpha_b[at]
                needed[LANES + j] = _needed(
                    alpha_b[at], beta_b[at], tops_b[at - col, k - 1] + slack_b[j], unit, usual_b[at]
                )
            for j in range(LANES + width, 2 * LANES + width):
                q_strip[j] = s_strip[j] = 0.0
                w_strip[j] = 0.0 if normalize is not None else -NOTHING
                needed[j] = NOTHING
            # the first row, from its points
            center = mean_a[top] if normalize is not None else 0.0
            for t in range(length):
                window[t] = points_a[top + t] - center
            seeds(points_b, start, middle, window, first_row[:width])
            if leftmost and height > 1 and start - top - 1 > least_apart:
                # the left edge of the tile, less the step that leads to it
                center = mean_b[start] if normalize is not None else 0.0
                for t in range(length):
                    window[t] = points_b[start + t] - center
                seeds(points_a, top, middle_a, window, fresh[:height])
                for i in range(top + 1, bottom):
                    entering[i - top] = fresh[i - top] - (p[i] * q[start] + r[i] * s[start])
            leftmost = False
            # what rows need, to be looked at
            last = min(bottom, start + width - 1 - least_apart) - top
            for i in range(last):
                at = top + i
                if normalize is not None:
                    blur, shift = max(blur_a[at], blur_strip), max(shift_a[at], shift_strip)
                    slack_row[i] = beta_a[at] * worst + _doubt(blur, shift, length)
                else:
                    slack_row[i] = 2 * worst + share * alpha_a[at]
                needed_row[i] = _needed(
                    alpha_a[at], beta_a[at], tops[at - row, k - 1] + slack_row[i], unit, usual_a[at]
                )
            # groups of diagonals, by the place of their first lane: column less row
            corner = least_apart + 1 + top - start
            for diagonal in range(max(corner, 1 - last), width, LANES):
                i, stop = max(none, 1 - LANES - diagonal), min(last, width - diagonal)
                for lane in range(LANES):
                    at = diagonal + lane
                    if at >= 0:
                        cov[lane] = first_row[at] if at < width else 0.0
                    else:
                        cov[lane] = entering[-at] if -at < last else 0.0
                while i < stop:
                    i, near = descend(
                        cov, p_band, r_band, w_band, needed_row, q_strip, s_strip, w_strip, needed,
                        i, stop, LANES + diagonal, columns, normalize,
                    )  # fmt: skip
                    if not near:
                        continue
                    t = i - 1
                    at = top + t
                    # near pairs come side by side: some more rows are walked, and all looked
                    # at together
                    rows = min(BLOCK, stop - t)
                    if max(count, count_b) > LISTED - BLOCK * LANES:
                        count = _room(
                            pairs, floors, count, a, b, length, row, tops, nearest, found,
                            normalize,
                        )  # fmt: skip
                        count_b = _room(
                            pairs_b, floors_b, count_b, b, a, length, col, tops_b, nearest_b,
                            found_b, normalize,
                        )  # fmt: skip
                    first = LANES + diagonal + t
                    here = start + diagonal + t
                    for lane in range(LANES):
                        held[0, lane] = cov[lane]
                    _record(held, rows, p_band[t:], r_band[t:], q_strip[first:], s_strip[first:])
                    for lane in range(LANES):
                        cov[lane] = held[rows - 1, lane]
                    i = t + rows
                    for u in range(rows):
                        at = top + t + u
                        most = _best_in_row(held[u], w_strip[first + u :], scores, normalize)
                        if most < needed_row[t + u] or not usual_a[at]:
                            continue
                        begin = max(none, -diagonal - t - u)
                        end = min(LANES, width - diagonal - t - u)
                        count, needed_row[t + u] = _look(
                            at, at - row, scores, begin, end, here + u, usual_b, needed_row[t + u],
                            alpha_a[at], beta_a[at], slack_row[t + u], unit, pairs, floors, count,
                            tops, waiting, floor_of_waiting,
                        )  # fmt: skip
                    if columns is None:
                        continue
                    _best_in_columns(held, rows, w_band[t:], best_of_column, normalize)
                    # columns of the strip alone
                    inside = min(LANES + rows - 1, width - diagonal - t)
                    for c in range(max(none, -diagonal - t), inside):
                        if best_of_column[c] < needed[first + c]:
                            continue
                        other, j = here + c, diagonal + t + c
                        begin, end = max(none, c - (LANES - 1)), min(rows, c + 1)
                        for u in range(begin, end):
                            w, value = w_band[t + u], held[u, c - u]
                            scores[u] = value * w if normalize is not None else value + w
                        count_b, needed[first + c] = _look(
                            other, other - col, scores, begin, end, top + t, usual_a,
                            needed[first + c], alpha_b[other], beta_b[other], slack_b[j], unit,
                            pairs_b, floors_b, count_b, tops_b, waiting_b, floor_of_waiting_b,
                        )  # fmt: skip
                for lane in range(LANES):
                    # what has passed the last column enters the next strip one row further down
                    at = width - diagonal - lane
                    if 0 < at <= last:
                        leaving[at] = cov[lane]
            entering, leaving = leaving, entering
        top = bottom
    _finish(
        pairs, floors, count, a, b, length, row, tops, nearest, found, waiting, floor_of_waiting,
        normalize,
    )  # fmt: skip
    if same:
        # what waited apart has been measured
        waiting_b = waiting[:0]
    if columns is not None:
        _finish(
            pairs_b, floors_b, count_b, b, a, length, col, tops_b, nearest_b, found_b, waiting_b,
            floor_of_waiting_b, normalize,
        )  # fmt: skip
