"""Joins of many channels: of every window the nearest, by the channels in which two are nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core.order import sort_columns
from ...core.reduction import Reduction, Tile
from ...core.verify import Check, Sample
from .concatenated import ConcatenatedSeries, name_lines
from .join import Join, JoinFound, JoinPart, JoinTotal
from .nearest import Nearest, take_nearer
from .windows import (
    Kinds,
    WindowDistances,
    WindowKinds,
    distances_at_a_time,
    plain_profile,
)

__all__ = [
    "ChannelJoin",
    "ChannelRule",
    "channel_means",
    "measure_channels",
    "nearest_by_channels",
    "unordered_channels",
]


#: Distances whose channels are put in order at a time: they stay in the second-level cache.
SORTED_AT_A_TIME = 2**15


@dataclass(frozen=True)
class ChannelRule:
    """Which channels of two windows count.

    Attributes
    ----------
    dimensions : tuple of int
        How many channels count, ascending; each makes a profile of its own.
    include : tuple of int, default ()
        Channels that count in any case, ascending; no more than the least of `dimensions`.
    worst : bool, default False
        Whether of the other channels those count in which two windows are farthest from each other;
        else those in which they are nearest.
    """

    dimensions: tuple[int, ...]
    include: tuple[int, ...] = ()
    worst: bool = False

    def others(self, n_channels: int) -> list[int]:
        """Channels that do not count in any case."""
        return [channel for channel in range(n_channels) if channel not in self.include]


def channel_means(distances: np.ndarray, rule: ChannelRule) -> np.ndarray:
    """Mean distances over the channels that count, added in the order in which they count.

    Parameters
    ----------
    distances : ndarray of shape (n_channels, ...)
        Certified distances in each channel; infinite where a window is not finite.
    rule : ChannelRule
        Which channels count.

    Returns
    -------
    ndarray of shape (n_dimensions, ...)
        Infinite where fewer channels are finite.
    """
    n_channels, *shape = distances.shape
    columns = distances.reshape(n_channels, -1)
    means = np.empty((len(rule.dimensions), columns.shape[1]))
    step = max(1, SORTED_AT_A_TIME // n_channels)
    for start in range(0, columns.shape[1], step):
        some = slice(start, start + step)
        _add_channels(columns[:, some], rule, means[:, some])
    return means.reshape(len(means), *shape)


def _add_channels(distances: np.ndarray, rule: ChannelRule, means: np.ndarray) -> None:
    """Write the means of some columns."""
    included, others = distances[list(rule.include)], distances[rule.others(len(distances))]
    for values in (included, others):
        np.copyto(values, np.inf, where=np.isnan(values))  # of squares beyond all numbers
    if rule.worst:
        # the farthest first; what is not finite comes last
        np.negative(others, out=others, where=others < np.inf)
    others = sort_columns(others)
    if rule.worst:
        np.negative(others, out=others, where=others < np.inf)
    total = np.zeros(distances.shape[1])
    for number, one in enumerate([*included, *others], start=1):
        total += one
        if number in rule.dimensions:
            np.divide(total, number, out=means[rule.dimensions.index(number)])


def unordered_channels(distances: np.ndarray, number: int, rule: ChannelRule) -> np.ndarray:
    """Channels that count for two windows, by their distances in each; the first of equal ones."""
    others = np.array(rule.others(len(distances)), np.int64)
    values = distances[others]
    if rule.worst:
        values = np.where(np.isinf(values), np.inf, -values)
    chosen = others[np.argsort(values, kind="stable")[: number - len(rule.include)]]
    return np.sort(np.concatenate([np.array(rule.include, np.int64), chosen]))


def measure_channels(
    run: Callable[[Reduction], Any],
    a: Sequence[ConcatenatedSeries],
    positions: np.ndarray,
    b: Sequence[ConcatenatedSeries],
    length: int,
    normalize: bool,
) -> np.ndarray:
    """Certified distances of some windows to all others in each channel.

    Returns an array of shape (n_channels, n_positions, n_windows).
    """
    return np.stack(
        [
            run(WindowDistances(own, positions, other, length, normalize))
            for own, other in zip(a, b, strict=True)
        ]
    )


@dataclass(frozen=True, eq=False)
class ChannelJoin(Join):
    """The nearest windows of every window of a line of many channels.

    The distance of two windows is the mean of their distances in the channels that count. `a` and
    `b` are the first channels.

    Parameters
    ----------
    a, b, length, exclusion, n_neighbors, sides, normalize, excluded, since, precision : see `Join`
        The same as there; `n_neighbors` keeps its default, and no `precision` is without a
        certificate.
    needed, hint, device_accumulators, lengths : see `Join`
        For streams, and for engines; `needed` holds for all dimensions, `hint` has a column for
        each.
    channels : tuple of ConcatenatedSeries
        All channels of the line whose windows look for neighbours, `a` first.
    channels_b : tuple of ConcatenatedSeries or None
        Those of the line where they look; None is `channels`.
    rule : ChannelRule
        Which channels count; each of its dimensions has neighbours of its own.
    """

    channels: tuple[ConcatenatedSeries, ...] = ()
    channels_b: tuple[ConcatenatedSeries, ...] | None = None
    rule: ChannelRule = ChannelRule((1,))
    method: ClassVar[str] = "channel_join"

    def looking(self, hidden: Callable[[int, int], np.ndarray]) -> list[np.ndarray]:
        """Return which windows along rows and columns are searched.

        Parameters
        ----------
        hidden : callable
            Returns, for a channel and an axis, the windows that no search sees.

        Returns
        -------
        list of ndarray of shape (n_windows,), bool
            For each axis.
        """
        found = []
        for at, size in enumerate(self.shape):
            looking = np.ones(size, bool)
            for channel in range(len(self.channels)):
                looking &= ~hidden(channel, at)
            if self.excluded is not None and (at == 0 or self.within):
                looking &= ~self.excluded
            found.append(looking)
        return found

    @classmethod
    def of(
        cls,
        channels: Sequence[ConcatenatedSeries],
        channels_b: Sequence[ConcatenatedSeries] | None,
        length: int,
        rule: ChannelRule,
        **options: Any,
    ) -> ChannelJoin:
        """Make the join of lines given by their channels; options are those of `Join`."""
        other = None if channels_b is None else tuple(channels_b)
        first = None if other is None else other[0]
        return cls(
            channels[0],
            first,
            length,
            channels=tuple(channels),
            channels_b=other,
            rule=rule,
            **options,
        )

    @property
    def other_channels(self) -> tuple[ConcatenatedSeries, ...]:
        """The channels of the line along the columns."""
        return self.channels if self.channels_b is None else self.channels_b

    @property
    def step_work(self) -> int:
        """One covariance for each channel."""
        return len(self.channels)

    def work(self, tile: Tile) -> int:
        """Pairs above the diagonal, or all of them, in each channel."""
        pairs = super().work(tile)
        return pairs * len(self.channels) if self.within else pairs

    def result_bytes(self) -> int:
        """Size of the profiles."""
        size = 16 * self.shape[0] * len(self.rule.dimensions)
        return size * (3 if self.sides else 1)

    @property
    def undivided_input(self) -> tuple[str, int]:
        """The lines."""
        lines, n_points = name_lines(self.a, *([] if self.b is None else [self.b]))
        n_channels = len(self.channels)
        return f"{n_channels} channels of {lines}", n_channels * n_points

    def start(self) -> JoinTotal:
        """Return empty lists: a column for each dimension."""
        n_windows, n_dimensions = self.shape[0], len(self.rule.dimensions)
        n_lists = 2 if self.within and self.sides else 1
        return JoinTotal(
            [Nearest.none(n_windows, n_dimensions) for _ in range(n_lists)],
            [np.full((n_windows, n_dimensions), np.inf) for _ in range(n_lists)],
            {},
            [],
        )

    def with_incumbent(self, total: JoinTotal) -> ChannelJoin:
        """Return the join with the distances found so far, and the place for results on devices."""
        from dataclasses import replace

        rows, cols = (total.lists[at].distances.copy() for at in (0, -1))
        if self.needed is not None:
            rows, cols = (
                np.minimum(known, limit[:, np.newaxis])
                for known, limit in zip((rows, cols), self.needed, strict=True)
            )
        return replace(self, hint=(rows, cols), device_accumulators=total.device_accumulators)

    def merge(self, total: JoinTotal, tile: Tile, result: JoinPart | None) -> None:
        """Take the neighbours of a tile; None where they are kept."""
        if result is None:
            return
        sides = [(0, tile.rows, result.rows, result.row_floor)]
        if self.within and result.cols is not None:
            sides.append((-1, tile.cols, result.cols, result.col_floor))
        for at, windows, nearest, floor in sides:
            take_nearer(total.lists[at], windows, nearest)
            if floor is not None:
                floors = total.floors[at][windows]
                np.minimum(floors, floor, out=floors)

    def finish(self, total: JoinTotal, run: Callable[[Reduction], Any]) -> JoinFound:
        """Measure hidden windows, and those whose lists may lack neighbours."""
        for tile, part in self.drain(total, Tile(0, self.shape[0], 0, self.shape[1])):
            self.merge(total, tile, part)
        hidden, hidden_b = self.hidden(run)
        directions = ["right", "left"] if len(total.lists) == 2 else ["both"]
        for floor in total.floors:
            floor[hidden] = 0.0
        if hidden_b.any():
            self._add_hidden_channels(total, directions, hidden_b, run)
        again = np.zeros(self.shape[0], bool)
        for nearest, floor, direction in zip(*total[:2], directions, strict=True):
            lacking = np.flatnonzero(floor.min(axis=1) < self._needed(direction))
            missing = (floor[lacking] < np.inf) & (floor[lacking] <= nearest.distances[lacking])
            again[lacking] |= missing.any(axis=1)
        if self.excluded is not None:
            again &= ~self.excluded
        windows = np.flatnonzero(again) if self.shape[1] else np.zeros(0, np.int64)
        for some, means in self._measured(run, windows):
            for nearest, direction in zip(total.lists, directions, strict=True):
                self._settle_channels(nearest, some, means, direction)
        if len(total.lists) == 1:
            return JoinFound(*total.lists[0])
        right, left = total.lists
        both = right.copy()
        take_nearer(both, slice(None), left)
        return JoinFound(*both, left=left, right=right)

    def verify(self, answer: JoinFound, sample: Sample) -> Iterator[Check]:
        """Compare the neighbours of some windows with those by their whole distance profiles."""
        places = np.arange(self.shape[1])
        for window in sample(self.shape[0], 4) if places.size else []:
            profiles = np.stack(
                [
                    plain_profile(own, window, other, self.length, self.normalize)
                    for own, other in zip(self.channels, self.other_channels, strict=True)
                ]
            )
            values = channel_means(profiles, self.rule)
            sides: list[tuple[str, str, Any]] = []
            if self.needed is None:
                sides.append(("both", "neighbour", answer[:2]))
            for direction, nearest in (("left", answer.left), ("right", answer.right)):
                # where all are asked for
                if nearest is not None and np.all(np.isinf(self._needed(direction))):
                    sides.append((direction, f"{direction} neighbour", nearest))
            for direction, name, (distances, indices) in sides:
                admissible = self.admissible(np.array([window]), places, direction)[0]
                for at, number in enumerate(self.rule.dimensions):
                    row = np.where(admissible, values[at], np.inf)
                    place = int(row.argmin())
                    expected = (float(row[place]), place if row[place] < np.inf else -1)
                    found = float(distances[window, at]), int(indices[window, at])
                    item = f"the {name} of window {window} by {number} channels"
                    yield Check(item, found, expected, found == expected)

    def kinds(self, run: Callable[[Reduction], Any]) -> list[tuple[Kinds, Kinds]]:
        """The kinds of windows along rows and columns in each channel."""
        found = []
        for own, other in zip(self.channels, self.other_channels, strict=True):
            a = b = run(WindowKinds(own, self.length, self.normalize, other))
            if not self.within:
                b = run(WindowKinds(other, self.length, self.normalize, own))
            found.append((a, b))
        return found

    def hidden(self, run: Callable[[Reduction], Any]) -> tuple[np.ndarray, np.ndarray]:
        """Windows along rows and columns that are hidden from the search in any channel."""
        kinds = self.kinds(run)
        a, b = (np.any([pair[at].unsearched for pair in kinds], axis=0) for at in (0, 1))
        if self.excluded is not None:
            a = a & ~self.excluded
            b = a if self.within else b
        return a, b

    def admissible(self, windows: np.ndarray, places: np.ndarray, direction: str) -> np.ndarray:
        """Which of some places are admissible neighbours of some windows."""
        found = self._admissible(windows, places, direction)
        if self.excluded is not None and self.within:
            found &= ~self.excluded[places] & ~self.excluded[windows][:, np.newaxis]
        return found

    def _measured(
        self, run: Callable[[Reduction], Any], windows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Some windows at a time, and their mean distances to all others."""
        batch = max(1, distances_at_a_time() // (len(self.channels) * max(1, self.shape[1])))
        for start in range(0, len(windows), batch):
            some = windows[start : start + batch]
            found = measure_channels(
                run, self.channels, some, self.other_channels, self.length, self.normalize
            )
            yield some, channel_means(found, self.rule)

    def _settle_channels(
        self, nearest: Nearest, windows: np.ndarray, means: np.ndarray, direction: str
    ) -> None:
        """Write the neighbours of windows whose distances to all others are given."""
        admissible = self.admissible(windows, np.arange(self.shape[1]), direction)
        found = nearest_by_channels(means, np.arange(self.shape[1]), admissible)
        nearest.distances[windows], nearest.indices[windows] = found

    def _add_hidden_channels(
        self,
        total: JoinTotal,
        directions: list[str],
        hidden: np.ndarray,
        run: Callable[[Reduction], Any],
    ) -> None:
        """Measure windows that no tile has searched as neighbours of all others."""
        lookers = np.arange(self.shape[0])
        places = np.flatnonzero(hidden)
        batch = max(1, distances_at_a_time() // (len(self.channels) * max(1, self.shape[0])))
        for start in range(0, len(places), batch):
            some = places[start : start + batch]
            found = measure_channels(
                run, self.other_channels, some, self.channels, self.length, self.normalize
            )
            means = channel_means(found, self.rule).transpose(0, 2, 1)
            for nearest, direction in zip(total.lists, directions, strict=True):
                admissible = self.admissible(lookers, some, direction)
                take_nearer(nearest, lookers, nearest_by_channels(means, some, admissible))


def nearest_by_channels(means: np.ndarray, places: np.ndarray, admissible: np.ndarray) -> Nearest:
    """The nearest admissible of some places, of each window and for each dimension.

    Parameters
    ----------
    means : ndarray of shape (n_dimensions, n_windows, n_places)
        Mean distances.
    places : ndarray of shape (n_places,), int64
        Ascending.
    admissible : ndarray of shape (n_windows, n_places), bool
        Which count.
    """
    values = np.where(admissible, means, np.inf)
    at = values.argmin(axis=2)
    least = np.take_along_axis(values, at[:, :, np.newaxis], axis=2)[:, :, 0]
    indices = np.where(np.isinf(least), -1, places[at])
    return Nearest(np.ascontiguousarray(least.T), np.ascontiguousarray(indices.T).astype(np.int64))


def nearest_of_all_channels(
    reduction: ChannelJoin,
    tile: Tile,
    window_distances: Callable[[WindowDistances, Tile, np.ndarray], np.ndarray],
    at_a_time: int,
    cancel: np.ndarray,
) -> JoinPart:
    """Nearest windows within a tile, from the certified distances of all its pairs.

    Parameters
    ----------
    reduction : ChannelJoin
        The work.
    tile : Tile
        Rows and columns.
    window_distances : callable
        The engine's method, which returns certified distances.
    at_a_time : int
        Distances that are measured at a time, about.
    cancel : ndarray
        Turns 1 on an interrupt.
    """
    within, n_dimensions = reduction.within, len(reduction.rule.dimensions)
    n_channels, length = len(reduction.channels), reduction.length

    def measure(channel: int, rows: np.ndarray, columns: slice) -> np.ndarray:
        own, other = reduction.channels[channel], reduction.other_channels[channel]
        work = WindowDistances(own, rows, other, length, reduction.normalize)
        return window_distances(work, Tile(0, rows.size, columns.start, columns.stop), cancel)

    rows = Nearest.none(tile.shape[0], n_dimensions)
    cols = Nearest.none(tile.shape[1] if within else 0, n_dimensions)
    first = max(tile.col, reduction.since) if within else tile.col
    step = max(1, at_a_time // max(1, n_channels * (tile.col_stop - first)))
    for start in range(tile.row, tile.row_stop, step):
        some = np.arange(start, min(start + step, tile.row_stop))
        # of one line pairs before the diagonal do not count
        left = max(first, start + reduction.exclusion + 1) if within else first
        if left >= tile.col_stop or cancel[0]:
            break
        columns = slice(left, tile.col_stop)
        found = np.stack([measure(channel, some, columns) for channel in range(n_channels)])
        means = channel_means(found, reduction.rule)
        places = np.arange(left, tile.col_stop)
        admissible = np.ones((some.size, places.size), bool)
        if within:
            admissible = places - some[:, np.newaxis] > reduction.exclusion
        if reduction.excluded is not None:
            admissible &= ~reduction.excluded[some][:, np.newaxis]
            if within:
                admissible &= ~reduction.excluded[places]
        here = slice(start - tile.row, start - tile.row + some.size)
        take_nearer(rows, here, nearest_by_channels(means, places, admissible))
        if within:
            turned = nearest_by_channels(means.transpose(0, 2, 1), some, admissible.T)
            take_nearer(cols, slice(left - tile.col, None), turned)
    return JoinPart(rows, cols)
