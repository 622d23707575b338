"""Joins of a line with itself at several lengths of the window, which are searched in groups."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Protocol

import cupy as cp
import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.profile.concatenated import ConcatenatedSeries
from ...families.profile.join import Join, JoinPart
from ...families.profile.nearest import Nearest
from ..transfers import is_small, to_host
from .join import nearest
from .known import Known
from .length_groups import GroupSizes
from .lengths import LengthGroup, LengthProfile, profiles_of_lengths
from .lines import DeviceLine, Searched, Steps, prepare_line
from .precision import leaves_little_to_measure

__all__ = ["profile_of_length"]


class PreparesLines(Protocol):
    """An engine that keeps lines on devices: `JoinTiles`."""

    prepared: PreparedStore

    def _line(self, pool: ConcatenatedSeries, length: int, normalize: bool) -> DeviceLine: ...

    def _searched(
        self, pools: tuple[ConcatenatedSeries, ConcatenatedSeries], length: int, normalize: bool
    ) -> tuple[Searched, Searched]: ...

    def _steps(
        self, pool: ConcatenatedSeries, line: Searched, length: int, level: float, dtype: type
    ) -> Steps: ...


def profile_of_length(tiles: PreparesLines, join: Join) -> JoinPart | None:
    """Return whole answers at several lengths, or None where this one is searched alone.

    Parameters
    ----------
    tiles : PreparesLines
        The engine.
    join : Join
        The work at this length, one that `joins_lengths`.
    """
    lengths, points, device = join.lengths, join.a.points, cp.cuda.Device().id
    assert lengths is not None
    if is_small(points.size):  # which lies on the host
        return None
    sizes = tiles.prepared.get(points, ("group sizes", device), lambda: (GroupSizes(), 0))
    first, stop = sizes.group(lengths.values, int(np.searchsorted(lengths.values, join.length)))
    values, exclusions = (array[first:stop].tolist() for array in lengths[:2])
    group = [
        (length, exclusion)
        for length, exclusion in zip(values, exclusions, strict=True)
        if length in lengths.waiting
    ]
    if len(group) < 2 or tuple(values) in sizes.failed:
        return None
    found = _search(tiles, join, group, sizes)
    if found is None:
        sizes.failed.add(tuple(values))
        return None
    answers = {}
    for (length, _), profile in zip(group, found, strict=True):
        both = to_host(profile.distances), to_host(profile.places())
        answers[length] = Nearest(*(one[:, np.newaxis] for one in both))
    return JoinPart(answers[join.length], None, lengths=answers)


def _search(
    tiles: PreparesLines, join: Join, group: list[tuple[int, int]], sizes: GroupSizes
) -> list[LengthProfile] | None:
    """Search a group of lengths, each with its exclusion, by one walk at the first of them."""
    pool, points, device = join.a, join.a.points, cp.cuda.Device().id
    lengths, exclusions = np.array(group).T
    length, last = int(lengths[0]), int(lengths[-1])
    first = replace(
        join,
        length=length,
        exclusion=int(exclusions.max()),
        lengths=None,
        device_accumulators=None,
    )
    line = tiles._line(pool, length, True)
    both = tiles._searched((pool, pool), length, True)
    searched = both[0]

    def steps_in(dtype: type) -> tuple[Steps, Steps]:
        made = tiles._steps(pool, searched, length, 0.0, dtype)
        return made, made

    little = leaves_little_to_measure(first, both, steps_in(np.float32))
    dtype = np.float32 if little else np.float64
    steps = steps_in(dtype)
    search = partial(
        profiles_of_lengths,
        LengthGroup(first, lengths, exclusions, line, searched, steps[0], dtype),
        lambda one: line if one == length else prepare_line(pool, one, True, line.points),
    )
    guesses = [
        guess
        for near in sizes.near(length, last)
        if (guess := tiles.prepared.known(points, ("neighbours", device, near))) is not None
    ]
    found, each = search(guesses) if guesses else (None, np.inf)
    if found is None and each > 0:
        # of windows that the last length has, too: whatever is found is a neighbour at all lengths
        n_windows = points.size - last + 1
        tile = Tile(0, n_windows, 0, n_windows)
        regular = searched.regular, searched.regular
        known = Known(first, both, regular, tile, tile.shape, 0.0, dtype, tiles.prepared.capacity)
        nearest(first, (line, line), both, steps, regular, tile, 0.0, known)
        known.found[0].take(known.found[1])
        guesses = [cp.ascontiguousarray(known.found[0].indices[:n_windows, 0])]
        del known
        found, each = search(guesses)
    sizes.learn(length, each)
    for near, profile in [] if found is None else [(length, found[0]), (last, found[-1])]:
        key = "neighbours", device, near
        tiles.prepared.get(points, key, partial(_with_size, profile.indices))
        sizes.add(near)
    return found


def _with_size(made: cp.ndarray) -> tuple[cp.ndarray, int]:
    """An array, and its bytes."""
    return made, made.nbytes
