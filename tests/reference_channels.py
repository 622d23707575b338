"""The oracle of joins of many channels: distances in each channel, sorted pair by pair."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from reference_join import part_of_join, window_distances


def counted(distances, number, include, worst):
    """Channels that count for a pair, in the order in which their distances are added."""
    others = [channel for channel in range(len(distances)) if channel not in include]
    finite = [channel for channel in others if distances[channel] < math.inf]
    missing = [channel for channel in others if distances[channel] == math.inf]
    finite.sort(key=lambda channel: -distances[channel] if worst else distances[channel])
    return [*include, *finite, *missing][:number]


def mean_distance(distances, number, include=(), worst=False):
    """Mean over the channels that count for a pair; infinite if one of them is not finite."""
    total = 0.0
    for channel in counted(distances, number, include, worst):
        total += distances[channel]
    return total / number


def mean_distances(a, b, length, number, include=(), *, worst=False, normalize=True):
    """Mean distances of all windows of two series, given by their channels."""
    each = [
        window_distances(x, range(len(x) - length + 1), y, length, normalize=normalize)
        for x, y in zip(a, b, strict=True)
    ]
    means = np.empty(each[0].shape)
    for i, j in np.ndindex(means.shape):
        means[i, j] = mean_distance([float(one[i, j]) for one in each], number, include, worst)
    return means


def nearest(means, admissible):
    """The nearest admissible window of each, and its distance; the first of equally near ones."""
    distances, indices = np.full(len(means), np.inf), np.full(len(means), -1)
    for i, row in enumerate(means):
        for j, value in enumerate(row):
            if value < distances[i] and admissible(i, j):
                distances[i], indices[i] = value, j
    return distances, indices


def channel_join(reduction):
    """Nearest windows of a `ChannelJoin`: of all, of earlier and of later ones."""
    a, b = ([one.points for one in side] for side in (reduction.channels, reduction.other_channels))
    rule, excluded = reduction.rule, reduction.excluded

    def admissible(i, j):
        if excluded is not None and (excluded[i] or (reduction.within and excluded[j])):
            return False
        return not reduction.within or (
            abs(i - j) > reduction.exclusion and max(i, j) >= reduction.since
        )

    found = [[], [], []]
    for number in rule.dimensions:
        means = mean_distances(
            a, b, reduction.length, number, rule.include,
            worst=rule.worst, normalize=reduction.normalize,
        )  # fmt: skip
        found[0].append(nearest(means, admissible))
        found[1].append(nearest(means, lambda i, j: admissible(i, j) and j < i))
        found[2].append(nearest(means, lambda i, j: admissible(i, j) and j > i))
    return [
        tuple(np.stack(part, axis=1) for part in zip(*columns, strict=True)) for columns in found
    ]


class ChannelOracle:
    """Plain loops for joins of many channels."""

    def channel_join(self, reduction, tile, cancel):
        return part_of_join(reduction, tile, *channel_join(replace(reduction, sides=True)))
