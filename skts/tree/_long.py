"""Candidates for which some of the training series have no room: all of them are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ..engines import GroupMatches, Groups, Reduction, Series, ShapeletSearch, ShapeletSplit

__all__ = ["best_with_long"]

#: Distances that are held at a time, and candidates that a thread measures in one go.
_HELD, _TOGETHER = 2**20, 16


def best_with_long(
    search: ShapeletSearch,
    lengths: tuple[int, ...],
    run: Callable[[Reduction], Any],
    best: ShapeletSplit | None,
) -> ShapeletSplit | None:
    """Return the best of what is known and of all candidates of further lengths.

    Distances to series that are shorter than a candidate are infinite, which no bound of the search
    allows for.

    Parameters
    ----------
    search : ShapeletSearch
        The work of the node, of other lengths.
    lengths : tuple of int
        The further lengths, ascending; above those of the search, or all where there was none.
    run : callable
        Computes reductions.
    best : ShapeletSplit or None
        The answer of the search, if there was one.

    Returns
    -------
    ShapeletSplit or None
        The best; None if nothing is good enough.
    """
    for length in lengths:
        series = search.of_members
        for where in _candidates(series, length):
            known = _distances(series, where, run)
            ways = np.arange(len(search.ways))
            chosen = np.column_stack(
                [np.repeat(where, len(ways), axis=0), np.tile(ways, len(where))]
            )
            most = np.full(len(chosen), np.iinfo(np.int64).max)
            bounds = most, np.full(len(chosen), np.inf)
            work = search
            if best is not None:
                # those before come first among equals
                gain, gap = best.cut.gain, best.cut.gap
                work = replace(search, best_gain_so_far=gain, best_gap_so_far=gap)
            found = work.measure(*bounds, chosen, run, np.repeat(known, len(ways), axis=0))
            best = best if found is None else found
    return best


def _candidates(series: Series, length: int) -> Iterator[np.ndarray]:
    """All candidates of a length as (length, series, start, channel), some at a time."""
    counts = np.maximum(0, series.lengths - length + 1) * series.n_channels
    ends = np.cumsum(counts)
    step = max(_TOGETHER, _HELD // len(series))
    for first in range(0, int(ends[-1]), step):
        number = np.arange(first, min(first + step, int(ends[-1])))
        row = np.searchsorted(ends, number, side="right")
        start, channel = np.divmod(number - (ends - counts)[row], series.n_channels)
        yield np.column_stack([np.full(len(number), length), row, start, channel])


def _distances(series: Series, where: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
    """Certified distances of candidates to all series, by the root of the length."""
    n, count = len(series), -(-len(where) // _TOGETHER)
    groups = Groups(
        series,
        np.ascontiguousarray(where[:, [1, 3, 2, 0]]),
        np.minimum(np.arange(count + 1) * _TOGETHER, len(where)),
        series,
        np.tile(np.arange(n), count),
        np.arange(count + 1) * n,
    )
    found: np.ndarray = run(GroupMatches(groups))
    return found.reshape(-1, n)
