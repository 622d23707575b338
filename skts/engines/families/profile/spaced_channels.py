"""Neighbours that are apart from each other, of windows of many channels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.reduction import Reduction
from ...core.verify import Check, Sample
from .channels import ChannelJoin, channel_means, measure_channels
from .concatenated import ConcatenatedSeries
from .join import JoinTotal
from .nearest import Nearest
from .spaced import SpacedNeighbors
from .windows import Kinds, plain_profile

__all__ = ["SpacedChannels"]


@dataclass(frozen=True, eq=False)
class SpacedChannels(SpacedNeighbors, ChannelJoin):
    """The nearest windows of every window of many channels that are apart from each other.

    Parameters
    ----------
    a, b, length, exclusion, n_neighbors, sides, normalize, excluded, since, precision : see `Join`
        As `SpacedNeighbors` has them.
    needed, hint, device_accumulators, lengths : see `Join`
        For engines.
    channels, channels_b, rule : see `ChannelJoin`
        The same as there; a single number of channels counts.
    n_spaced, left : see `SpacedNeighbors`
        The same as there.
    """

    @property
    def at_a_time(self) -> int:
        """Windows that are compared at a time: each has a distance in every channel."""
        return max(1, super().at_a_time // len(self.channels))

    def with_incumbent(self, total: JoinTotal) -> ChannelJoin:
        """Return the join with the distances beyond which blocks are not needed."""
        rows, cols = (total.lists[at].distances[:, -1:] for at in (0, -1))
        return replace(self, hint=(rows, cols), device_accumulators=None)

    def verify(self, answer: Any, sample: Sample) -> Iterator[Check]:
        """Compare the neighbours of some windows with those by their whole distance profiles."""
        places = np.arange(self.shape[1])
        for window in sample(self.shape[0], 4) if places.size else []:
            profiles = [
                plain_profile(own, window, other, self.length, self.normalize)
                for own, other in zip(self.channels, self.other_channels, strict=True)
            ]
            values = channel_means(np.stack(profiles), self.rule)[0]
            values[~self._admissible(np.array([window]), places, self._direction)[0]] = np.inf
            yield self.check_window(window, answer, values)

    def _fill(self, answer: Nearest, total: JoinTotal, run: Callable[[Reduction], Any]) -> None:
        """Choose from what tiles have found, and measure what they have left open."""
        hidden, hidden_b = self.hidden(run)
        nothing = Kinds(np.empty(0), np.empty(0))
        if self.all_at_once:
            found = (total.lists[-1].distances[:, 0] < np.inf) | (total.floors[-1] < np.inf)
            some = np.flatnonzero(found | hidden | hidden_b.any())
            self._measure_all(answer, some, nothing, run)
            return
        self._choose(answer, np.flatnonzero(~hidden), total.lists[-1], nothing, run)
        last, floor = answer.distances[:, -1], total.floors[-1]
        again = hidden | ((floor < np.inf) & (floor <= last))
        if hidden_b.any():
            again |= self._nearest_of(np.flatnonzero(hidden_b), run) <= last
        self._measure_all(answer, np.flatnonzero(again), nothing, run)

    def _measure(
        self, rows: np.ndarray, columns: slice, b: Kinds, run: Callable[[Reduction], Any]
    ) -> np.ndarray:
        """Distances of some windows to a run of others, infinite where they are not admissible."""
        stop = columns.stop + self.length - 1
        pieces = [line.points[columns.start : stop] for line in self.other_channels]
        lines = [
            ConcatenatedSeries(piece, np.zeros(1, np.int64), np.array([piece.size]))
            for piece in pieces
        ]
        found = measure_channels(run, self.channels, rows, lines, self.length, self.normalize)
        values: np.ndarray = channel_means(found, self.rule)[0]
        places = np.arange(columns.start, columns.stop)
        values[~self._admissible(rows, places, self._direction)] = np.inf
        return values

    def _nearest_of(self, hidden: np.ndarray, run: Callable[[Reduction], Any]) -> np.ndarray:
        """Distance of each window to the nearest of those that no tile has searched."""
        nearest = np.full(self.shape[0], np.inf)
        batch = max(1, self.at_a_time // self.shape[0])
        for start in range(0, len(hidden), batch):
            some = hidden[start : start + batch]
            options = self.channels, self.length, self.normalize
            found = measure_channels(run, self.other_channels, some, *options)
            np.minimum(nearest, channel_means(found, self.rule)[0].min(axis=0), out=nearest)
        return nearest
