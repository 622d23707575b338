"""Windows of a long series against queries on the CPU: bounds, then warping in lanes.

`LANES` windows that follow each other are bounded side by side, normalised on the fly with running
statistics (`statistics.py`), whose error every bound allows for. Windows that no bound rules
out are gathered, wherever they are and whichever query they are compared with, normalised by their
certified statistics, and warped in lanes (`warp`) by the policy of the distance, and abandoned
together once the rest of each must cost too much. Bounds hold for DTW and dog-keeper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.constants import CONSTANT, SMALLEST_RANGE
from ...host import kernel
from ...host.arrays import put
from ..elastic.lanes import columns_of_rows
from ..elastic.rows_of_cells import ROWS, fill_rows
from .outside import LANES, add_outside
from .statistics import RUNNING_ERROR

__all__ = [
    "LANES",
    "Comparison",
    "Matches",
    "Piece",
    "AlikeQueries",
    "local_envelope",
    "search",
]

#: Columns of a strip of the warping matrix, whose costs are bounded together.
_WIDTH = 16
#: Groups of lanes of windows that look good, which are warped first.
_SEEDS = 4
#: So few windows that match are looked at each time, and more once a share of them is new.
_FEW, _SHARE = 256, 8


class Piece(NamedTuple):
    """A piece of the line, prepared for one length of windows.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Finite points, and a group of lanes more.
    whole : ndarray of shape (n_windows,), bool
        Which windows are finite.
    mean, inverse : ndarray of shape (n_windows + lanes,), float64
        From `running_statistics`.
    """

    points: np.ndarray
    whole: np.ndarray
    mean: np.ndarray
    inverse: np.ndarray


class AlikeQueries(NamedTuple):
    """Queries of one length, z-normalised where windows are, and their envelopes.

    Attributes
    ----------
    points, low, high : ndarray of shape (n_queries, length), float64
    order : ndarray of shape (n_queries, length), int64
        Points of the envelope, the most telling ones first.
    own_order : ndarray of shape (n_queries, length), int64
        Points of the query, the most telling ones first.
    """

    points: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray
    own_order: np.ndarray


class Comparison(NamedTuple):
    """How a window is compared with the query.

    Attributes
    ----------
    radius : int
        Of the band.
    normalize : bool
        Whether windows are z-normalised.
    squared, largest : bool
        Whether costs are squares, and whether a path costs its largest one instead of their sum.
    """

    radius: int
    normalize: bool
    squared: bool
    largest: bool


class Matches(NamedTuple):
    """Windows that match each query, in no order.

    Attributes
    ----------
    within : ndarray of shape (n_queries,), float64
        Distance beyond which a window is no match; falls as matches are found.
    counts, known : ndarray of shape (n_queries,), int64
        How many there are, and were when `within` was last looked at.
    positions : ndarray of shape (n_queries, n_windows), int64
        Where they start.
    distances : ndarray of shape (n_queries, n_windows), float64
    """

    within: np.ndarray
    counts: np.ndarray
    known: np.ndarray
    positions: np.ndarray
    distances: np.ndarray


class Waiting(NamedTuple):
    """Windows that wait for warping, each for a query.

    Attributes
    ----------
    rows, places : ndarray of shape (2 lanes,), int64
        Query and window.
    bounds : ndarray of shape (2 lanes,), float64
        What each costs at least.
    """

    rows: np.ndarray
    places: np.ndarray
    bounds: np.ndarray


class Room(NamedTuple):
    """Memory that is written anew for each group of lanes.

    Attributes
    ----------
    low, high : ndarray of shape (2, lanes + 2 length), float64
        For `local_envelope`.
    windows : ndarray of shape (length, lanes), float64
        Windows that are warped.
    rows : ndarray of shape (lanes,), int64
        The query that lies in each lane; -1 is none.
    rest : ndarray of shape (n_strips + 1, lanes), float64
        What the columns of a window from each strip on cost at least.
    limits, out : ndarray of shape (lanes,), float64
        The cost of a window that matters, and its cost.
    """

    low: np.ndarray
    high: np.ndarray
    windows: np.ndarray
    rows: np.ndarray
    rest: np.ndarray
    limits: np.ndarray
    out: np.ndarray


@kernel
def bound_by_query(piece, p, queries, q, comparison, limit, out):
    """Bound LANES windows from p on by the envelope of query q, points in a given order.

    Windows of which nothing is known, with statistics that are NaN, cost nothing.
    """
    out[:] = 0.0
    envelope, statistics = (queries.low[q], queries.high[q]), (piece.mean[p:], piece.inverse[p:])
    kinds = comparison.squared, comparison.largest
    add_outside(
        piece.points[p:], None, 1, envelope, queries.order[q], statistics, limit, kinds, out
    )


@kernel
def local_envelope(points, p, count, before, width, low, high):
    """Least and largest of `width` points from `before` before each of `count` points on.

    Of the points from p on these alone count. Runs of 1, 2, 4, ... points: every step but the last
    doubles what a value stands for, from one row of `low` and `high` to the other. Returns the row.
    """
    size = count + width - 1
    for i in range(size):
        low[0, i], high[0, i] = np.inf, -np.inf
    for i in range(count):
        low[0, before + i] = high[0, before + i] = points[p + i]
    row, run = 0, 1
    while run < width:
        step = min(run, width - run)
        size -= step
        a, b, c, d = low[row], high[row], low[1 - row], high[1 - row]
        for i in range(size):
            c[i] = a[i] if a[i] < a[i + step] else a[i + step]
            d[i] = b[i] if b[i] > b[i + step] else b[i + step]
        row, run = 1 - row, run + step
    return row


@kernel
def envelope_of_windows(piece, p, length, radius, room):
    """Lay out what LANES windows from p on are bounded by: their envelopes, or their ranges.

    Returns the row of `room.low` and `room.high`. An envelope has a value for each point; ranges,
    where the band is wide, have one for each window.
    """
    narrow = 2 * radius + 1 < length
    before, width = (radius, 2 * radius + 1) if narrow else (0, length)
    return local_envelope(piece.points, p, LANES + length - 1, before, width, room.low, room.high)


@kernel
def bound_by_windows(piece, p, queries, q, comparison, room, row, limit, out):
    """Bound LANES windows from p on by their own envelopes, or ranges where the band is wide.

    `row` is that of `envelope_of_windows`.
    """
    point, total = queries.points[q], np.zeros(LANES)
    # ranges are the same for all points
    step = 1 if 2 * comparison.radius + 1 < point.size else 0
    statistics, kinds = (
        (piece.mean[p:], piece.inverse[p:]), (comparison.squared, comparison.largest)
    )  # fmt: skip
    least, most, order = room.low[row], room.high[row], queries.own_order[q]
    add_outside(least, most, step, (point, point), order, statistics, limit, kinds, total)
    for lane in range(LANES):
        out[lane] = total[lane] if total[lane] > out[lane] else out[lane]


@kernel
def hopeless(edge, behind, limits, least, largest):
    """Whether all lanes exceed limits: every path crosses the edge, and the columns behind it."""
    least[:] = np.inf
    for i in range(edge.shape[0]):
        for lane in range(LANES):
            here = edge[i, lane]
            least[lane] = here if here < least[lane] else least[lane]
    beyond = True
    for lane in range(LANES):
        cost = max(behind[lane], least[lane]) if largest else least[lane] + behind[lane]
        beyond = beyond and cost > limits[lane]
    return beyond


@kernel
def warp(own, room, comparison, cell, cancel):
    """Accumulated costs of queries against windows, each in a lane; all infinite beyond the limits.

    Every cell joins the same two numbers as in `dtw.sweep`.
    """
    windows, limits, out = room.windows, room.limits, room.out
    n, inf, radius = windows.shape[0], np.inf, comparison.radius
    # of each column the cell of the last row that is done
    row = np.full((n, LANES), inf)
    left, diagonal = np.empty((ROWS, LANES)), np.empty(LANES)
    least, radii, looked = np.empty(LANES), np.full(LANES, radius), 0
    columns = windows.reshape(n, 1, LANES)
    of_each = own.reshape(own.shape[0], 1, own.shape[1])
    out[:] = inf
    for i in range(0, n, ROWS):
        if cancel[0]:
            return
        j, stop, inner_first, inner_stop = columns_of_rows(i, ROWS, 0, n, radius, radius)
        left[:] = inf
        diagonal[:] = inf if i > 0 else 0.0
        if j > 0:
            put(row[j - 1], diagonal)
        while j < stop:
            inner = inner_first <= j < inner_stop
            end = min(stop, inner_stop if inner else inner_first if j < inner_first else stop)
            place, cells = (
                (j, end - j, None, False, inner),
                (row, j - 1, diagonal, left, radii, row),
            )
            if own.shape[1] > 1:
                fill_rows(cell, of_each, i, columns, *place, *cells)
            else:
                fill_rows(cell, own, i, columns, *place, *cells)
            j = end
        # every path crosses the last of these rows, and the columns behind its band
        last = i + ROWS - 1
        strip = -(-(last + radius + 1) // _WIDTH)
        if strip > looked and strip * _WIDTH < n:
            looked = strip
            band = row[max(0, last - radius) : last + radius + 1]
            if hopeless(band, room.rest[strip], limits, least, comparison.largest):
                return
    put(left[(n - 1) % ROWS], out)


@kernel
def moments_of_lanes(windows, mean, scale):
    """Write what `window_moments` says of each of LANES windows (length, LANES), the same bits."""
    length, anchor = windows.shape[0], windows[0]
    low, high, sums = np.empty(LANES), np.empty(LANES), np.zeros(LANES)
    put(anchor, low)
    put(anchor, high)
    for j in range(length):
        for lane in range(LANES):
            point = windows[j, lane]
            sums[lane] += point - anchor[lane]
            low[lane] = point if point < low[lane] else low[lane]
            high[lane] = point if point > high[lane] else high[lane]
    for lane in range(LANES):
        size = max(abs(low[lane]), abs(high[lane]))
        regular = high[lane] - low[lane] > max(CONSTANT * size, SMALLEST_RANGE)
        mean[lane] = sums[lane] / length if regular else 0.0
        scale[lane] = 1.0 if regular else 0.0
        sums[lane] = 0.0
    for j in range(length):
        for lane in range(LANES):
            d = (windows[j, lane] - anchor[lane]) - mean[lane]
            sums[lane] += d * d
    for lane in range(LANES):
        scale[lane] = 1.0 / np.sqrt(sums[lane] / length) if scale[lane] > 0.0 else 0.0


# a bound may be summed in any order
@kernel(fastmath={"reassoc", "contract", "nsz"})
def bound_rest(window, low, high, squared, largest, rest):
    """Bound what the points of a window from each strip on cost, by the envelope of a query."""
    rest[rest.size - 1] = 0.0
    for strip in range(rest.size - 2, -1, -1):
        total = 0.0
        for j in range(strip * _WIDTH, min((strip + 1) * _WIDTH, low.size)):
            d, e = window[j] - high[j], low[j] - window[j]
            d = d if d > e else e
            d = d if d > 0.0 else 0.0
            cost = d * d if squared else d
            most = cost if cost > total else total
            total = most if largest else total + cost
        behind = rest[strip + 1]
        rest[strip] = max(behind, total) if largest else behind + total


@kernel
def _write_lane(values, q, own, lane):
    """Write the points of query q into its lane, where not all lanes have the same."""
    if own.shape[1] > 1:
        for j in range(values.shape[1]):
            own[j, lane] = values[q, j]


@kernel
def gather(points, queries, own, waiting, count, comparison, room):
    """Lay windows and queries side by side; bound what the columns from each strip on cost.

    `own` is a column of the query of all lanes, or has one for the query of each.
    """
    length, windows, rest = queries.points.shape[1], room.windows, room.rest
    normalize, squared, largest = comparison.normalize, comparison.squared, comparison.largest
    anchor, mean, scale = np.zeros(LANES), np.zeros(LANES), np.ones(LANES)
    for lane in range(LANES):
        if lane >= count:
            # lanes that nobody is in repeat the first
            waiting.rows[lane], waiting.places[lane] = waiting.rows[0], waiting.places[0]
        if room.rows[lane] != waiting.rows[lane]:
            room.rows[lane] = waiting.rows[lane]
            _write_lane(queries.points, waiting.rows[lane], own, lane)
    # strip by strip: a cache holds the same few rows of all lanes
    for start in range(0, length, _WIDTH):
        for lane in range(LANES):
            place = waiting.places[lane]
            for j in range(start, min(start + _WIDTH, length)):
                windows[j, lane] = points[place + j]
    if normalize:
        put(windows[0], anchor)
        moments_of_lanes(windows, mean, scale)
        for j in range(length):
            for lane in range(LANES):
                windows[j, lane] = ((windows[j, lane] - anchor[lane]) - mean[lane]) * scale[lane]
    window = np.empty(length)
    for lane in range(LANES):
        place, q = waiting.places[lane], waiting.rows[lane]
        first, middle, factor = anchor[lane], mean[lane], scale[lane]
        for j in range(length):
            window[j] = ((points[place + j] - first) - middle) * factor
        bound_rest(window, queries.low[q], queries.high[q], squared, largest, rest[:, lane])


@kernel
def far_apart(positions, distances, count, need, exclusion, stretches):
    """Distance of the last of so many windows far from each other, best first; else infinity.

    `stretches` has room for the window that is taken of each exclusion + 1 that follow each other,
    and for one more at either end; it is all -1, before and after.
    """
    last = np.inf
    if count < need:
        return last
    order, width = np.argsort(distances[:count]), exclusion + 1
    for entry in order:
        start = positions[entry]
        here = start // width + 1
        before, after = stretches[here - 1], stretches[here + 1]
        if stretches[here] >= 0 or (before >= 0 and start - before <= exclusion):
            continue
        if after >= 0 and after - start <= exclusion:
            continue
        stretches[here] = start
        need -= 1
        if need == 0:
            last = distances[entry]
            break
    for entry in order:
        stretches[positions[entry] // width + 1] = -1
    return last


@kernel
def cost_limit(distance, slack, squared):
    """Accumulated cost above which a window is farther than that; `slack` for its statistics."""
    # see "running statistics" in docs/developer/numerics.rst
    beyond = (distance + slack) * (1 + 1e-9)
    return beyond * beyond if squared else beyond


@kernel
def promising(piece, queries, q, comparison, count):
    """Windows of the least bounds, one of LANES that follow each other; full groups of lanes.

    Bounds are left as soon as they exceed those of as many windows as are asked for.
    """
    whole = piece.whole
    n_windows = whole.size
    n_groups = -(-n_windows // LANES)
    size = min(count, n_groups) // LANES * LANES
    members, best = np.empty(size, np.int64), np.full(size, np.inf)
    bounds, worst, kept = np.empty(LANES), 0, 0
    for p in range(0, n_windows if size else 0, LANES):
        limit = best[worst]
        bound_by_query(piece, p, queries, q, comparison, limit, bounds)
        least, place = np.inf, np.int64(0)
        for lane in range(min(LANES, n_windows - p)):
            if whole[p + lane] and bounds[lane] < least:
                least, place = bounds[lane], p + lane
        if least < limit:
            kept += limit == np.inf
            members[worst], best[worst] = place, least
            worst = np.argmax(best)
    return members[np.argsort(best)][: kept // LANES * LANES]


@kernel
def survivors(whole, p, bounds, limit):
    """How many of LANES windows from p on are finite and not ruled out."""
    left = 0
    for lane in range(min(LANES, whole.size - p)):
        left += whole[p + lane] and not bounds[lane] > limit
    return left


@kernel
def append(whole, p, bounds, limit, q, waiting, filled):
    """Let windows from p on that are not ruled out wait for warping; returns how many wait."""
    for lane in range(min(LANES, whole.size - p)):
        if whole[p + lane] and not bounds[lane] > limit:
            waiting.rows[filled], waiting.places[filled] = q, p + lane
            waiting.bounds[filled] = bounds[lane]
            filled += 1
    return filled


@kernel
def keep_waiting(waiting, first, stop, limits):
    """Move windows from `first` to `stop` that are not ruled out to the front; how many."""
    kept = 0
    for entry in range(first, stop):
        if not waiting.bounds[entry] > limits[waiting.rows[entry]]:
            waiting.rows[kept], waiting.places[kept] = waiting.rows[entry], waiting.places[entry]
            waiting.bounds[kept] = waiting.bounds[entry]
            kept += 1
    return kept


@kernel
def keep_within(places, values, count, limit):
    """Move entries that do not exceed a limit to the front; how many."""
    kept = 0
    for entry in range(count):
        if not values[entry] > limit:
            places[kept], values[kept] = places[entry], values[entry]
            kept += 1
    return kept


@kernel
def keep_matches(waiting, taken, out, need, exclusion, squared, matches, stretches):
    """Keep those of the windows that were warped that match.

    The distance of a query is looked at anew once there are enough windows more: then the work
    grows like a sort of all of them, as every look is one of those that there are.
    """
    within, known = matches.within, matches.known
    nearer = False
    for lane in range(taken):
        q = waiting.rows[lane]
        positions, distances, count = matches.positions[q], matches.distances[q], matches.counts[q]
        found = np.sqrt(out[lane]) if squared else out[lane]
        if found <= within[q] and found < np.inf:
            positions[count], distances[count] = waiting.places[lane], found
            count += 1
            nearer = nearer or found < within[q]
        if need > 0 and nearer and (lane + 1 == taken or waiting.rows[lane + 1] != q):
            if count <= _FEW or _SHARE * (count - known[q]) >= count:
                last = far_apart(positions, distances, count, need, exclusion, stretches)
                if last < within[q]:
                    within[q] = last
                    count = keep_within(positions, distances, count, last)
                known[q] = count
            nearer = False
        matches.counts[q] = count


@kernel
def search(piece, queries, own, comparison, cell, need, exclusion, matches, cancel):
    """Find the windows of a piece that may match each of some queries.

    `own` is a column of the one query, or has one for the query of each lane: with as many rows as
    are filled together.

    A match is within the distance of its query, and within that of `need` windows more than
    `exclusion` apart.
    """
    whole, n_windows = piece.whole, piece.whole.size
    n_queries, length = queries.points.shape
    radius, squared, within = comparison.radius, comparison.squared, matches.within
    slack = 0.0
    if comparison.normalize:
        slack = 2 * RUNNING_ERROR * (np.sqrt(length) if squared else length)
    bounds, limits = np.empty(LANES), np.empty(n_queries)
    stretches = np.full(n_windows // (exclusion + 1) + 3 if need > 0 else 0, -1)
    waiting = Waiting(
        np.empty(2 * LANES, np.int64), np.empty(2 * LANES, np.int64), np.empty(2 * LANES)
    )
    room = Room(
        np.empty((2, LANES + 2 * length)),
        np.empty((2, LANES + 2 * length)),
        np.empty((length, LANES)),
        np.full(LANES, -1),
        np.empty((-(-length // _WIDTH) + 1, LANES)),
        np.empty(LANES),
        np.empty(LANES),
    )
    filled, none = np.int64(0), waiting.places[:0]
    # before all windows come some that look good, and after them all that wait
    for p in range(-LANES, n_windows + LANES, LANES):
        begins, ends = p < 0, p >= n_windows
        here = not begins and not ends and whole[p : p + LANES].any()
        # the envelopes are the same for all queries, and made for the first that needs them
        row = -1
        for q in range(n_queries):
            if cancel[0]:
                return
            seeds, n_seeds = none, 0
            if begins:
                limits[q] = cost_limit(within[q], slack, squared)
                # without a limit those that look good are warped, and then again with all others
                if need > 0 and within[q] == np.inf:
                    most = max(_SEEDS, -(-2 * need // LANES)) * LANES
                    seeds = promising(piece, queries, q, comparison, most)
            if here:
                limit = limits[q]
                bound_by_query(piece, p, queries, q, comparison, limit, bounds)
                some = survivors(whole, p, bounds, limit) > 0
                if some and radius > 0 and length > 2 and limit < np.inf:
                    if row < 0:
                        row = envelope_of_windows(piece, p, length, radius, room)
                    bound_by_windows(piece, p, queries, q, comparison, room, row, limit, bounds)
                if some:
                    filled = append(whole, p, bounds, limit, q, waiting, filled)
            while filled >= LANES or (ends and filled > 0) or n_seeds < seeds.size:
                if begins:
                    put(seeds[n_seeds:][:LANES], waiting.places)
                    waiting.rows[:LANES], waiting.bounds[:LANES] = q, 0.0
                    filled, n_seeds = np.int64(LANES), n_seeds + LANES
                # called here alone, where all that depends on the policy is compiled
                taken = min(filled, LANES)
                gather(piece.points, queries, own, waiting, taken, comparison, room)
                for lane in range(LANES):
                    room.limits[lane] = cost_limit(within[waiting.rows[lane]], 0.0, squared)
                warp(own, room, comparison, cell, cancel)
                keep_matches(
                    *(waiting, taken, room.out, need, exclusion, squared, matches, stretches)
                )
                for lane in range(taken if need > 0 else 0):
                    one = waiting.rows[lane]
                    limits[one] = cost_limit(within[one], slack, squared)
                filled = keep_waiting(waiting, taken, filled, limits)
            if begins:
                matches.counts[q] = matches.known[q] = 0
