"""Candidates for shapelets: where they lie in training series, drawn or all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..engines import LEAST_NORMALIZED, Kind, Places, Series

__all__ = ["Kinds", "draw", "draw_partners", "kinds_of"]


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

    def all_of_them(self) -> tuple[Kind, ...]:
        """Return the kinds in the order in which the first of equal candidates is better.

        Shorter ones come first, of these the less dilated, of these the normalised.

        Returns
        -------
        tuple of Kind
            A share between 0 and 1 gives both, normalised and not; ones of too few points to be
            normalised are not.
        """
        return tuple(
            Kind(length, dilation, normalized)
            for length, dilations in self.dilations.items()
            for dilation in dilations
            for normalized in self._both(length)
        )

    def _both(self, length: int) -> tuple[bool, ...]:
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
