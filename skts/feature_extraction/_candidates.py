"""Candidates for shapelets: where they lie in training series, drawn or all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..engines import LEAST_NORMALIZED, DilatedShapelets, Series

__all__ = ["Kinds", "Places", "draw", "draw_partners", "every", "kinds_of"]


class Places(NamedTuple):
    """Where shapelets lie in training series: arrays of shape (n_shapelets,).

    Attributes
    ----------
    normalized, length, dilation, channel : ndarray
        What they share with others: see `DilatedShapelets`.
    series, start : ndarray of int64
        The series, and the time point of the first point.
    """

    normalized: np.ndarray
    length: np.ndarray
    dilation: np.ndarray
    channel: np.ndarray
    series: np.ndarray
    start: np.ndarray

    def take(self, which: np.ndarray) -> Places:
        """Return some of them.

        Parameters
        ----------
        which : ndarray of int64
            Their numbers.

        Returns
        -------
        Places
            These.
        """
        return Places(*(column[which] for column in self))

    @property
    def extent(self) -> np.ndarray:
        """Return the time points from the first point to the last, both included.

        Returns
        -------
        ndarray of shape (n_shapelets,), int64
            Of each.
        """
        return (self.length - 1) * self.dilation + 1

    def cut_out(self, series: Series) -> DilatedShapelets:
        """Return the shapelets with their points.

        Parameters
        ----------
        series : Series
            The training series.

        Returns
        -------
        DilatedShapelets
            In the same order.
        """
        ends = np.cumsum(self.length)
        number = np.arange(ends[-1] if len(ends) else 0) - np.repeat(
            ends - self.length, self.length
        )
        time = np.repeat(self.start, self.length) + number * np.repeat(self.dilation, self.length)
        row, channel = (np.repeat(one, self.length) for one in (self.series, self.channel))
        points = series.values[row, channel, time]
        return DilatedShapelets(points, self.length, self.dilation, self.channel, self.normalized)

    @classmethod
    def joined(cls, parts: list[Places]) -> Places:
        """Return all places of some parts, one after the other.

        Parameters
        ----------
        parts : list of Places
            The parts.

        Returns
        -------
        Places
            Of all.
        """
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Kinds(NamedTuple):
    """Kinds of candidates: which lengths, which dilations of each, normalised or not.

    Attributes
    ----------
    dilations : dict of int to tuple of int
        By the length, ascending; none is empty.
    normalized : float
        The share of candidates that are normalised.
    """

    dilations: dict[int, tuple[int, ...]]
    normalized: float

    def both(self, length: int) -> tuple[bool, ...]:
        """Return which of normalised and raw there are, for a length.

        Parameters
        ----------
        length : int
            Points of candidates.

        Returns
        -------
        tuple of bool
            Normalised first.
        """
        if length < LEAST_NORMALIZED or self.normalized == 0:
            return (False,)
        return (True,) if self.normalized == 1 else (True, False)


def kinds_of(
    lengths: list[int], dilations: str | list[int], normalized: float, shortest: int
) -> Kinds:
    """Return the kinds whose extent no series is shorter than.

    Parameters
    ----------
    lengths : list of int
        Lengths, none above `shortest`.
    dilations : "auto" or list of int
        Powers of two, or these.
    normalized : float
        Share of normalised candidates.
    shortest : int
        Time points of the shortest series.

    Returns
    -------
    Kinds
        Of these lengths.
    """
    found: dict[int, tuple[int, ...]] = {}
    for length in sorted(set(lengths)):
        most = (shortest - 1) // (length - 1) if length > 1 else 1
        if isinstance(dilations, str):
            given = [2**power for power in range(most.bit_length())]
        else:
            given = sorted(set(dilations))
        fitting = tuple(one for one in given if one <= most)
        if fitting:
            found[length] = fitting
    return Kinds(found, normalized)


def draw(series: Series, kinds: Kinds, count: int, random: np.random.RandomState) -> Places:
    """Draw candidates: a length, a dilation, a series, a channel, a start; each of all alike.

    Those that are drawn twice count once. They come in the order of the columns of `Places`,
    normalised ones first.

    Parameters
    ----------
    series : Series
        The training series.
    kinds : Kinds
        Kinds of candidates.
    count : int
        How many to draw.
    random : RandomState
        Draws.

    Returns
    -------
    Places
        At most `count`.
    """
    lengths = np.array([*kinds.dilations])
    length = lengths[random.randint(0, len(lengths), count)]
    dilation = np.empty(count, np.int64)
    for one, allowed in kinds.dilations.items():
        rows = np.flatnonzero(length == one)
        dilation[rows] = np.array(allowed)[random.randint(0, len(allowed), len(rows))]
    normalized = (random.random_sample(count) < kinds.normalized) & (length >= LEAST_NORMALIZED)
    row = random.randint(0, len(series), count)
    channel = random.randint(0, series.n_channels, count)
    start = random.randint(0, series.lengths[row] - (length - 1) * dilation)
    columns = [~normalized, length, dilation, channel, row, start]
    widths = [2, *(int(column.max()) + 1 for column in columns[1:])]
    keys = np.unique(np.ravel_multi_index(columns, widths))
    raw, *rest = (column.astype(np.int64) for column in np.unravel_index(keys, widths))
    return Places(raw == 0, *rest)


def every(series: Series, kinds: Kinds, most: int) -> Iterator[Places]:
    """Yield all candidates, `most` at a time, in the order in which they come where equal.

    Shorter ones first, of these the less dilated, normalised ones, those of lower channels, series
    and starts.

    Parameters
    ----------
    series : Series
        The training series.
    kinds : Kinds
        Kinds of candidates.
    most : int
        Candidates at a time.

    Yields
    ------
    Places
        Of one kind and channel.
    """
    for length, dilations in kinds.dilations.items():
        for dilation in dilations:
            counts = series.lengths - (length - 1) * dilation
            ends = np.cumsum(counts)
            for normalized in kinds.both(length):
                for channel in range(series.n_channels):
                    for first in range(0, int(ends[-1]), most):
                        number = np.arange(first, min(first + most, int(ends[-1])))
                        row = np.searchsorted(ends, number, side="right")
                        start = number - (ends - counts)[row]
                        kind = normalized, length, dilation, channel
                        shared = [np.full(len(number), one) for one in kind]
                        yield Places(*[*shared, row, start])


def draw_partners(
    rows: np.ndarray, labels: np.ndarray, random: np.random.RandomState
) -> np.ndarray:
    """Draw another series of the same class for each of some series; the same if there is none.

    Parameters
    ----------
    rows : ndarray of shape (n,), int64
        The series.
    labels : ndarray of shape (n_series,), int64
        Class of each series.
    random : RandomState
        Draws.

    Returns
    -------
    ndarray of shape (n,), int64
        The other series, each of a class with the same chance.
    """
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    begins = np.cumsum(counts) - counts
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels))
    of_class = labels[rows]
    others = counts[of_class] - 1
    drawn = begins[of_class] + random.randint(0, np.maximum(1, others))
    # the last of the class stands in for the series itself
    drawn = np.where(drawn == place[rows], begins[of_class] + others, drawn)
    return order[drawn]
