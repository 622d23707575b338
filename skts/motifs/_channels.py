"""Motifs and discords of many channels: which channels count, and how windows are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from ..engines import (
    ChannelJoin,
    ChannelRule,
    ConcatenatedSeries,
    Reduction,
    channel_means,
    measure_channels,
    unordered_channels,
)
from ._records import Discord
from ._search import SAME, ProfileSearch, WindowSet

__all__ = [
    "ChannelSearch",
    "ChannelWindows",
    "channels_of_discord",
    "chosen_dimensions",
    "included_channels",
    "means_of",
    "one_dimension",
    "one_rule",
]


def chosen_dimensions(dimensions: Any, include: tuple[int, ...], n_channels: int) -> list[int]:
    """Numbers of channels that are asked for, each at least that of the channels of `include`."""
    least = max(1, len(include))
    if dimensions is None:
        return list(range(least, n_channels + 1))
    chosen: list[Any] = [dimensions] if isinstance(dimensions, Integral) else _listed(dimensions)
    if not chosen:
        raise ValueError("dimensions is empty: name at least one number of channels.")
    for number in chosen:
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        if not whole or not least <= number <= n_channels:
            raise ValueError(
                f"dimensions={dimensions!r}: the number of channels that count is from {least} to "
                f"{n_channels} here."
            )
    return [int(number) for number in chosen]


def one_dimension(dimensions: Any, include: tuple[int, ...], n_channels: int) -> int:
    """The number of channels that count; None is all of them."""
    if dimensions is None:
        return n_channels
    (number,) = chosen_dimensions(int(dimensions), include, n_channels)
    return number


def included_channels(include: Any, n_channels: int) -> tuple[int, ...]:
    """Channels that count in any case, ascending."""
    chosen = [] if include is None else _listed(include)
    for channel in chosen:
        whole = isinstance(channel, Integral) and not isinstance(channel, bool)
        if not whole or not 0 <= channel < n_channels:
            raise ValueError(
                f"include={include!r}: channels have the numbers 0 to {n_channels - 1} here."
            )
    return tuple(sorted({int(channel) for channel in chosen}))


def _listed(numbers: Any) -> list[Any]:
    """The numbers of an array; lists of several lengths are no numbers."""
    try:
        return np.ravel(numbers).tolist()
    except ValueError:
        return [numbers]


def one_rule(dimensions: Any, include: Any, n_channels: int) -> ChannelRule:
    """The rule of motifs: by so many channels in which windows are nearest."""
    included = included_channels(include, n_channels)
    return ChannelRule((one_dimension(dimensions, included, n_channels),), included)


@dataclass(frozen=True)
class ChannelWindows:
    """The windows of one length on a line of many channels: what `WindowSet` is for one.

    Attributes
    ----------
    channels : tuple of ConcatenatedSeries
        The line.
    first : WindowSet
        The windows of the first channel.
    rule : ChannelRule
        How many channels count, a single number.
    """

    channels: tuple[ConcatenatedSeries, ...]
    first: WindowSet
    rule: ChannelRule

    @property
    def pool(self) -> ConcatenatedSeries:
        """Where the series lie on the line."""
        return self.first.pool

    @property
    def length(self) -> int:
        """Points of a window."""
        return self.first.length

    @property
    def exclusion(self) -> int:
        """See `WindowSet`."""
        return self.first.exclusion

    @property
    def separation(self) -> int:
        """See `WindowSet`."""
        return self.first.separation

    @property
    def normalize(self) -> bool:
        """Whether windows are z-normalised."""
        return self.first.normalize

    @property
    def number(self) -> int:
        """How many there are, those that touch gaps included."""
        return self.first.number

    @property
    def dimension(self) -> int:
        """How many channels count."""
        return self.rule.dimensions[0]

    def join(self, **options: Any) -> ChannelJoin:
        """The work of a profile."""
        first = self.first
        return ChannelJoin.of(
            self.channels,
            None,
            first.length,
            self.rule,
            exclusion=first.exclusion,
            normalize=first.normalize,
            precision=first.precision,
            **options,
        )

    def by_channel(
        self, compute: Callable[[Reduction], Any], positions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """Distances of some windows to all, in each channel."""
        places = np.asarray(positions, np.int64)
        options = self.channels, self.length, self.normalize
        return measure_channels(compute, self.channels, places, *options)

    def measure(
        self, compute: Callable[[Reduction], Any], positions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """Distances of some windows to all, by the channels that count."""
        return channel_means(self.by_channel(compute, positions), self.rule)[0]

    def near(self, position: int | np.integer) -> slice:
        """See `WindowSet`."""
        return self.first.near(position)

    def taken(self, position: int | np.integer) -> slice:
        """See `WindowSet`."""
        return self.first.taken(position)

    def values(self, positions: Sequence[int] | np.ndarray) -> np.ndarray:
        """Points of windows, shape (n_positions, n_channels, length)."""
        found = [self.first._replace(pool=pool).values(positions) for pool in self.channels]
        return np.stack(found, axis=1)


class ChannelSearch(ProfileSearch):
    """The best pair of windows that are not masked, by the channels in which it is best."""

    windows: Any

    def occurrences(self, pair: Any, radius: float) -> tuple[np.ndarray, np.ndarray, float]:
        """Windows near the first of a pair, in the channels of the pair: see `PairSearch`."""
        windows = self.windows
        distances = windows.by_channel(self._compute, [pair.first])[:, 0]
        number, rule = windows.dimension, windows.rule
        self.channels = unordered_channels(distances[:, pair.second], number, rule)
        row = means_of(distances[self.channels], self.channels, rule)
        norms = [windows.first._replace(pool=windows.channels[channel]).norm(pair.first)
                 for channel in self.channels]  # fmt: skip
        return self._take_apart(row, pair, radius, SAME * math.fsum(norms) / number)


def means_of(distances: np.ndarray, channels: np.ndarray, rule: ChannelRule) -> np.ndarray:
    """Means of distances in given channels, with the bits of `channel_means`."""
    include = tuple(at for at, channel in enumerate(channels) if channel in rule.include)
    within = ChannelRule((len(channels),), include, rule.worst)
    means: np.ndarray = channel_means(distances, within)[0]
    return means


def channels_of_discord(
    windows: ChannelWindows, compute: Callable[[Reduction], Any], discord: Discord
) -> Discord:
    """Name the channels that count for a discord and its nearest neighbour."""
    starts = windows.pool.starts
    place = int(starts[discord.series]) + discord.position
    neighbor = int(starts[discord.neighbor_series]) + discord.neighbor
    distances = windows.by_channel(compute, [place])[:, 0, neighbor]
    channels = unordered_channels(distances, windows.dimension, windows.rule)
    return discord._replace(channels=channels)
