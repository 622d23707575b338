"""The oracle of neighbours that are apart from each other: sorted distances, in plain loops."""

from __future__ import annotations

import math

import numpy as np
from reference_join import window_distances


def greedy(row, k, exclusion):
    """The nearest of (distance, place), then the nearest that is apart from it, and so on."""
    chosen = []
    for value, place in sorted((value, place) for place, value in enumerate(row)):
        if value < math.inf and all(abs(place - other) > exclusion for _, other in chosen):
            chosen.append((value, place))
    return chosen[:k]


def spaced_neighbors(work):
    """Distances and places of the neighbours of a `SpacedNeighbors`."""
    a, b, length = work.a.points, work.other.points, work.length
    D = window_distances(a, range(len(a) - length + 1), b, length, normalize=work.normalize)
    distances = np.full((len(D), work.n_spaced), np.inf)
    places = np.full((len(D), work.n_spaced), -1)
    for i, row in enumerate(D):
        if work.within:
            for j in range(len(row)):
                near, late = abs(i - j) <= work.exclusion, work.left and j > i
                if near or late or max(i, j) < work.since:
                    row[j] = math.inf
        for rank, (value, place) in enumerate(greedy(row, work.n_spaced, work.exclusion)):
            distances[i, rank], places[i, rank] = value, place
    return distances, places
