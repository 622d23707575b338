"""Series made of series, between which distances under warping are computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.series import Series

__all__ = ["Spans", "derivative", "in_order", "with_repeated_ends", "write_span"]


class Spans(NamedTuple):
    """Best paths of some pairs, by the points that match.

    Attributes
    ----------
    part : slice
        Which pairs.
    x, y : Series
        The first and the second series of each, in the order of `in_order`.
    first, stop : ndarray of shape (n_pairs, n_timepoints of `x` or more), int32
        The first point of the second series that each point of the first is matched with, and the
        one after the last.
    swapped : ndarray of shape (n_pairs,), bool
        As `in_order` returns it.
    """

    part: slice
    x: Series
    y: Series
    first: np.ndarray
    stop: np.ndarray
    swapped: np.ndarray


def write_span(path: np.ndarray, first: np.ndarray, stop: np.ndarray) -> None:
    """Write which points of the second series a path matches with each point of the first.

    Parameters
    ----------
    path : ndarray of shape (n_steps, 2), int64
        Pairs of points, in order.
    first, stop : ndarray of shape (n_timepoints,), int32
        Receive the first point of the second series and the one after the last.
    """
    rows = path[:, 0]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = np.append(begins[1:], len(path))[: begins.size] - 1
    first[rows[begins]], stop[rows[begins]] = path[begins, 1], path[ends, 1] + 1


def derivative(series: Series) -> Series:
    """Estimate the derivative at every point but the first and the last.

    Half of the step from the point before, and of the slope between the points on either side
    (Keogh, Pazzani, "Derivative dynamic time warping", SIAM International Conference on Data Mining
    2001, section 3).

    Parameters
    ----------
    series : Series
        Series of at least three points.

    Returns
    -------
    Series
        The estimates, two points shorter.

    Raises
    ------
    ValueError
        If a series has fewer than three points.
    """
    short = np.flatnonzero(series.lengths < 3)
    if short.size:
        raise ValueError(
            f"metric='ddtw' needs series of at least 3 time points: series {short[0]} has "
            f"{series.lengths[short[0]]}."
        )
    x = series.values
    values = ((x[:, :, 1:-1] - x[:, :, :-2]) + (x[:, :, 2:] - x[:, :, :-2]) / 2) / 2
    lengths = series.lengths - 2
    values *= np.arange(values.shape[2]) < lengths[:, np.newaxis, np.newaxis]
    return Series(np.ascontiguousarray(values), lengths)


def with_repeated_ends(series: Series, reach: int) -> Series:
    """Repeat the first and the last point of series.

    Parameters
    ----------
    series : Series
        Series.
    reach : int
        How many times.

    Returns
    -------
    Series
        The series with ``2 * reach`` points more than their lengths say, which are those of the
        series: the window of `reach` points before and after a point begins where the point was.
    """
    (n_series, n_channels, n), last = series.shape, series.lengths - 1
    values = np.empty((n_series, n_channels, n + 2 * reach))
    values[:, :, :reach] = series.values[:, :, :1]
    values[:, :, reach : reach + n] = series.values
    values[:, :, reach + n :] = series.values[:, :, -1:]
    if not series.equal_length:
        ends = series.values[np.arange(n_series), :, last][:, :, np.newaxis]
        beyond = np.arange(-reach, n + reach) > last[:, np.newaxis, np.newaxis]
        values = np.where(beyond, ends, values)
    return Series(values, series.lengths)


def in_order(left: Series, right: Series, pairs: np.ndarray) -> tuple[Series, Series, np.ndarray]:
    """Put the series of each pair in an order that does not depend on their sides.

    Parameters
    ----------
    left, right : Series
        Two sets.
    pairs : ndarray of shape (n_pairs, 2), int64
        A series of `left` and one of `right`.

    Returns
    -------
    first, second : Series
        Of each pair the shorter series and the other one; of two of the same length the one that is
        less at the first point at which they differ, channel by channel.
    swapped : ndarray of shape (n_pairs,), bool
        Whether the first one is from `right`.
    """
    i, j = pairs.T
    x, y, n, m = left.values[i], right.values[j], left.lengths[i], right.lengths[j]
    width = min(x.shape[2], y.shape[2])
    # of the same length both are 0 beyond their ends
    flat = (len(x), -1)
    a, b = (np.ascontiguousarray(side[:, :, :width]).reshape(flat) for side in (x, y))
    where = (np.arange(len(x)), np.argmax(a != b, axis=1))
    swapped = np.where(n == m, a[where] > b[where], n > m)
    longest = max(x.shape[2], y.shape[2])

    def chosen(one: np.ndarray, other: np.ndarray, lengths: np.ndarray) -> Series:
        values = np.zeros((len(one), one.shape[1], longest))
        values[~swapped, :, : one.shape[2]] = one[~swapped]
        values[swapped, :, : other.shape[2]] = other[swapped]
        return Series(np.ascontiguousarray(values[:, :, : lengths.max()]), lengths)

    return (
        chosen(x, y, np.where(swapped, m, n)),
        chosen(y, x, np.where(swapped, n, m)),
        swapped,
    )
