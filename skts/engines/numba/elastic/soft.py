"""Soft-DTW on the CPU: pairs side by side, one per SIMD lane, and the way back through them.

A cell holds Z = exp(-R / gamma), with R the soft minimum of the costs of all paths to it:

    Z(i, j) = exp(-cost(i, j) / gamma) (Z(i - 1, j - 1) + Z(i - 1, j) + Z(i, j - 1))

as a fraction from 1 to 2 and a power of two, both float64, so that nothing underflows. Each cell
takes one exponential and no logarithm; `values_of` takes that of the last one. The exponential is
written out, its steps fused where they say so: it runs in all lanes at once, where a call of the C
library would take these one by one, and has the same bits on a GPU (``elastic/soft.cu``).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...core.series import Series, read_only
from ...families.elastic.soft import NOWHERE, values_of
from ...families.elastic.warping import Warping
from ...host import kernel
from .dtw import pack

__all__ = ["gradient", "gradient_bytes", "values", "values_bytes"]

#: Pairs side by side.
LANES = 32
#: Bytes of the weights of the pairs that lie side by side, so that they stay in the cache.
MOST_WEIGHTS = 2**22

#: Powers of two that are smaller than the largest by more than this count as if by this.
LEAST_POWER = -512.0
LOG2_E = 1.4426950408889634
#: log(2) in two parts.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
#: Adding it rounds to a whole number.
ROUND = 1.5 * 2.0**52
#: Adding it to a whole number leaves, in the lowest bits, the exponent of that power of two.
EXPONENT = ROUND + 1023.0
#: exp(r), abs(r) <= log(2) / 2, to 2e-17: 1 + r + r^2 (E2 + r (E3 + ...)).
E2, E3 = 0.5000000000000019, 0.1666666666666668
E4, E5 = 0.0416666666664881, 0.008333333333319601
E6, E7 = 0.0013888888952314775, 0.00019841269890047113
E8, E9 = 2.4801485482328084e-05, 2.7557240918578656e-06
E10, E11 = 2.763263963919186e-07, 2.511003760607976e-08

_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(64)


@intrinsic
def fma(typing_context, a, b, c):
    """A b + c, rounded once."""

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(_DOUBLE, [_DOUBLE] * 3)
        return builder.call(
            cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.f64"), arguments
        )

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def power_of_two(typing_context, moved):
    """2**k of a number ``EXPONENT + k``: its lowest bits, brought to where the exponent is."""

    def generate(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], _WORD)
        return builder.bitcast(builder.shl(bits, _WORD(52)), _DOUBLE)

    return types.float64(types.float64), generate


@intrinsic
def exponent(typing_context, value):
    """K of a positive number f 2**k, 1 <= f < 2; the bits of 2**52 make a float64 of an integer."""

    def generate(context, builder, signature, arguments):
        bits = builder.lshr(builder.bitcast(arguments[0], _WORD), _WORD(52))
        number = builder.bitcast(builder.or_(bits, _WORD(0x4330000000000000)), _DOUBLE)
        return builder.fsub(number, _DOUBLE(2.0**52 + 1023.0))

    return types.float64(types.float64), generate


@intrinsic
def fraction(typing_context, value):
    """F of a positive number f 2**k, 1 <= f < 2."""

    def generate(context, builder, signature, arguments):
        bits = builder.and_(builder.bitcast(arguments[0], _WORD), _WORD(0x000FFFFFFFFFFFFF))
        return builder.bitcast(builder.or_(bits, _WORD(0x3FF0000000000000)), _DOUBLE)

    return types.float64(types.float64), generate


@kernel
def _scaled(f, k, top):
    """F 2**(k - top), for k no larger than top."""
    below = k - top
    below = below if below > LEAST_POWER else LEAST_POWER
    return f * power_of_two(below + EXPONENT)


@kernel
def _top(a, b, c):
    """The largest of three."""
    top = a if a > b else b
    return top if top > c else c


@kernel
def _exp_minus(u):
    """exp(-u) as p 2**n, for 0 <= u < 2**51."""
    n = fma(-u, LOG2_E, ROUND) - ROUND
    r = fma(-n, LN2_LOW, fma(-n, LN2_HIGH, -u))
    p = fma(E11, r, E10)
    p = fma(p, r, E9)
    p = fma(p, r, E8)
    p = fma(p, r, E7)
    p = fma(p, r, E6)
    p = fma(p, r, E5)
    p = fma(p, r, E4)
    p = fma(p, r, E3)
    p = fma(p, r, E2)
    p = fma(p, r, 1.0)
    return fma(p, r, 1.0), n


@kernel
def _set_costs(x, i, y, j, cost):
    """Squared differences of point i of a series and point j of those in all lanes."""
    for lane in range(cost.size):
        difference = x[0, i] - y[j, 0, lane]
        cost[lane] = difference * difference
    for c in range(1, x.shape[0]):
        for lane in range(cost.size):
            difference = x[c, i] - y[j, c, lane]
            cost[lane] += difference * difference


@kernel
def _fill(x, y, y_lengths, radius, gamma, out, cancel):
    """Fill the matrices of one series and of those in all lanes.

    x: (C, n), y: (m, C, lanes), radius: (lanes,); out: (2, lanes) receives fractions and powers of
    the last cells.
    """
    n, m, lanes = x.shape[1], y.shape[0], y.shape[2]
    reach, inverse = radius.max(), 1.0 / gamma
    row, power = np.zeros((m + 1, lanes)), np.full((m + 1, lanes), NOWHERE)
    row[0, :], power[0, :] = 1.0, 0.0
    left, left_power = np.empty(lanes), np.empty(lanes)
    across, across_power, cost = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for i in range(n):
        if cancel[0]:
            return
        low, stop = max(0, i - reach), min(m, i + reach + 1)
        for lane in range(lanes):
            across[lane], across_power[lane] = row[low, lane], power[low, lane]
            left[lane], left_power[lane] = 0.0, NOWHERE
        row[low, :], power[low, :] = 0.0, NOWHERE
        for j in range(low, stop):
            _set_costs(x, i, y, j, cost)
            for lane in range(lanes):
                up, up_power = row[j + 1, lane], power[j + 1, lane]
                top = _top(up_power, left_power[lane], across_power[lane])
                total = _scaled(up, up_power, top) + _scaled(left[lane], left_power[lane], top)
                total = total + _scaled(across[lane], across_power[lane], top)
                p, n = _exp_minus(cost[lane] * inverse)
                value = p * total
                inside = abs(i - j) <= radius[lane]
                across[lane], across_power[lane] = up, up_power
                left[lane] = fraction(value) if inside else 0.0
                left_power[lane] = (top + n) + exponent(value) if inside else NOWHERE
                row[j + 1, lane], power[j + 1, lane] = left[lane], left_power[lane]
    for lane in range(lanes):
        out[0, lane] = row[y_lengths[lane], lane]
        out[1, lane] = power[y_lengths[lane], lane]


@kernel
def _fill_weights(x, y, y_lengths, radius, gamma, weights, out, cancel):
    """Fill matrices as `_fill` does, and note how much each of three cells before counts.

    weights: (n + 1, width, 3, lanes) of the cells diagonally before, above and on the left; those
    of a row begin where its band does.
    """
    n, m, lanes = x.shape[1], y.shape[0], y.shape[2]
    reach, inverse = radius.max(), 1.0 / gamma
    row, power = np.zeros((m + 1, lanes)), np.full((m + 1, lanes), NOWHERE)
    row[0, :], power[0, :] = 1.0, 0.0
    left, left_power = np.empty(lanes), np.empty(lanes)
    across, across_power, cost = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for i in range(n):
        if cancel[0]:
            return
        low, stop = max(0, i - reach), min(m, i + reach + 1)
        for lane in range(lanes):
            across[lane], across_power[lane] = row[low, lane], power[low, lane]
            left[lane], left_power[lane] = 0.0, NOWHERE
        row[low, :], power[low, :] = 0.0, NOWHERE
        for j in range(low, stop):
            _set_costs(x, i, y, j, cost)
            share = weights[i, j - low]
            for lane in range(lanes):
                up, up_power = row[j + 1, lane], power[j + 1, lane]
                top = _top(up_power, left_power[lane], across_power[lane])
                above = _scaled(up, up_power, top)
                beside = _scaled(left[lane], left_power[lane], top)
                before = _scaled(across[lane], across_power[lane], top)
                total = (above + beside) + before
                # outside of the band
                total = total if total > 0.0 else 1.0
                share[0, lane] = before / total
                share[1, lane] = above / total
                share[2, lane] = beside / total
                p, n = _exp_minus(cost[lane] * inverse)
                value = p * total
                inside = abs(i - j) <= radius[lane]
                across[lane], across_power[lane] = up, up_power
                left[lane] = fraction(value) if inside else 0.0
                left_power[lane] = (top + n) + exponent(value) if inside else NOWHERE
                row[j + 1, lane], power[j + 1, lane] = left[lane], left_power[lane]
    for lane in range(lanes):
        out[0, lane] = row[y_lengths[lane], lane]
        out[1, lane] = power[y_lengths[lane], lane]


@kernel
def _walk_back(x, y, y_lengths, reach, weights, out):
    """Derivatives of the last cells by the points of x, from the end backwards.

    The derivative by a cell is that of the cells after it, each times what this one counts in it: 0
    outside of the band, whatever stands for its weight. weights: see `_fill_weights`; out: (C, n,
    lanes).
    """
    n, m, lanes = x.shape[1], y.shape[0], y.shape[2]
    below = np.zeros((m + 1, lanes))
    right, corner, now = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    out[:] = 0.0
    for i in range(n - 1, -1, -1):
        low, stop = max(0, i - reach), min(m, i + reach + 1)
        next_low = max(0, i + 1 - reach)
        for lane in range(lanes):
            right[lane], corner[lane] = 0.0, below[stop, lane]
        for j in range(stop - 1, low - 1, -1):
            above = weights[i + 1, max(0, j - next_low), 1]
            beside, across = weights[i, j + 1 - low, 2], weights[i + 1, j + 1 - next_low, 0]
            last = i == n - 1
            for lane in range(lanes):
                e = below[j, lane] * above[lane] + right[lane] * beside[lane]
                e = e + corner[lane] * across[lane]
                now[lane] = 1.0 if last and j == y_lengths[lane] - 1 else e
                corner[lane] = below[j, lane]
                right[lane] = now[lane]
                below[j, lane] = now[lane]
            for c in range(x.shape[0]):
                for lane in range(lanes):
                    out[c, i, lane] += now[lane] * (x[c, i] - y[j, c, lane])
    for c in range(x.shape[0]):
        for i in range(n):
            for lane in range(lanes):
                out[c, i, lane] *= 2.0


@kernel
def _block(rows, row_lengths, packed, lengths, radii, gamma, out, cancel):
    """Values of some series and of groups of lanes; radii: (rows, groups, lanes).

    out: (rows, groups, 2, lanes).
    """
    for i in range(rows.shape[0]):
        for group in range(packed.shape[0]):
            _fill(
                rows[i, :, : row_lengths[i]], packed[group, : lengths[group].max()],
                lengths[group], radii[i, group], gamma, out[i, group], cancel,
            )  # fmt: skip
            if cancel[0]:
                return


@kernel
def _gradients(
    average, packed, lengths, radii, gamma, shares, cell_of_group, weights, values, sums, cancel
):
    """Values and sums of gradients of groups of lanes, the lanes in their order.

    shares: (groups, lanes) the weights of the series, 0 where there is none; cell_of_group:
    (groups, lanes) the cell of the grid, -1 where there is none; sums: (cells, C, n).
    """
    n_channels, n = average.shape
    own = np.empty((n_channels, n, packed.shape[3]))
    for group in range(packed.shape[0]):
        longest = lengths[group].max()
        y, reach = packed[group, :longest], radii[group].max()
        _fill_weights(
            average, y, lengths[group], radii[group], gamma, weights, values[group], cancel
        )
        if cancel[0]:
            return
        _walk_back(average, y, lengths[group], reach, weights, own)
        for lane in range(packed.shape[3]):
            cell = cell_of_group[group, lane]
            if cell < 0:
                continue
            for c in range(n_channels):
                for i in range(n):
                    sums[cell, c, i] += shares[group, lane] * own[c, i, lane]


def _width(m: int, reach: int) -> int:
    """Cells of a row for which there are weights: those of the band, and the next one."""
    return min(m + 1, 2 * reach + 2)


def _lanes(n: int, width: int, budget: int) -> int:
    """Pairs side by side whose weights fit."""
    each = 24 * (n + 1) * width
    return int(min(LANES, max(1, min(budget, max(MOST_WEIGHTS, 4 * each)) // each)))


def values(
    rows: Series, cols: Series, gamma: float, warping: Warping, cancel: np.ndarray
) -> np.ndarray:
    """Compute soft-DTW of all pairs.

    Parameters
    ----------
    rows, cols : Series
        Two sets.
    gamma : float
        Smoothing.
    warping : Warping
        The band.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    ndarray of shape (n_rows, n_cols)
        The values.
    """
    if len(cols) < min(LANES, len(rows)):
        # more of them lie side by side; the values are the same
        return values(cols, rows, gamma, warping, cancel).T
    lanes = min(LANES, len(cols))
    packed, lengths = pack(cols.values, cols.lengths, lanes)
    radii = np.asarray(warping.radius(rows.lengths[:, None, None], lengths[None]), np.int64)
    out = np.ones((len(rows), len(packed), 2, lanes))
    given = read_only(rows.values), read_only(rows.lengths)
    _block(*given, packed, lengths, radii, gamma, out, cancel)
    return values_of(*_in_order(out, len(cols)), gamma)


def _in_order(out: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Fractions and powers of groups of lanes, series by series."""
    fractions, powers = np.moveaxis(out, -2, 0)
    shape = (*out.shape[:-3], -1)
    return fractions.reshape(shape)[..., :count], powers.reshape(shape)[..., :count]


def values_bytes(rows: int, cols: int, n: int, m: int, n_channels: int) -> int:
    """Bytes that `values` holds."""
    if cols < min(LANES, rows):
        rows, cols, n, m = cols, rows, m, n
    padded = -(-cols // LANES) * LANES
    lanes = min(LANES, cols)
    series = padded * n_channels * m + rows * n_channels * n
    # of each pair two numbers and their copies in order, a radius, and two terms with their sum
    return 8 * (series + 8 * rows * padded + lanes * (2 * m + 8))


def gradient(
    average: np.ndarray,
    series: Series,
    weights: np.ndarray,
    gamma: float,
    warping: Warping,
    reach: int,
    rows: int,
    budget: int,
    cancel: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute soft-DTW of an average and some series, and sums of gradients by cells of the grid.

    Parameters
    ----------
    average : ndarray of shape (n_channels, n_timepoints)
        The average, without padding.
    series : Series
        The series.
    weights : ndarray of shape (n_series,)
        Their weights.
    gamma : float
        Smoothing.
    warping : Warping
        The band.
    reach : int
        Half width of the widest band that these series or others have.
    rows : int
        Series of a cell of the grid.
    budget : int
        Bytes for pairs that lie side by side.
    cancel : ndarray of shape (1,), uint8
        Turns 1 to stop early.

    Returns
    -------
    gradients : ndarray of shape (n_cells, n_channels, n_timepoints)
        Sums, by weight.
    values : ndarray of shape (n_series,)
        The values.
    """
    (n_channels, n), m, count = average.shape, series.n_timepoints, len(series)
    width = _width(m, reach)
    lanes = min(_lanes(n, width, budget), count)
    packed, lengths = pack(series.values, series.lengths, lanes)
    # where there is no series, the band of the widest is wide enough
    radii = np.minimum(np.asarray(warping.radius(n, lengths), np.int64), reach)
    shares, cells = np.zeros(lengths.size), np.full(lengths.size, -1)
    shares[:count], cells[:count] = weights, np.arange(count) // rows
    room = np.zeros((n + 1, width, 3, lanes))
    found = np.ones((len(packed), 2, lanes))
    sums = np.zeros((-(-count // rows), n_channels, n))
    _gradients(
        average, packed, lengths, radii, gamma, shares.reshape(lengths.shape),
        cells.reshape(lengths.shape), room, found, sums, cancel,
    )  # fmt: skip
    return sums, values_of(*_in_order(found, count), gamma)


def gradient_bytes(rows: int, n: int, m: int, reach: int, n_channels: int, budget: int) -> int:
    """Bytes that `gradient` holds, but for its result; `reach` is that of the widest band."""
    width = _width(m, reach)
    lanes = min(_lanes(n, width, budget), rows)
    padded = -(-rows // lanes) * lanes
    each = 3 * (n + 1) * width + n_channels * n + 3 * (m + 1) + 8
    return 8 * (padded * (n_channels * m + 9) + lanes * each)
