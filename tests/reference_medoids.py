"""The oracle of medoids: plain loops over all swaps, each sum from the beginning."""

from __future__ import annotations

import numpy as np


def labels_of(D, medoids):
    """For each series the number of the nearest medoid, the first of equally near ones."""
    labels = []
    for o in range(len(D)):
        best = 0
        for place in range(1, len(medoids)):
            if D[medoids[place]][o] < D[medoids[best]][o]:
                best = place
        labels.append(best)
    return labels


def inertia_of(D, medoids):
    """The sum of the distances of all series to their nearest medoids."""
    return sum(min(D[m][o] for m in medoids) for o in range(len(D)))


def all_swaps(D, medoids):
    """Inertia after each swap of a medoid with a series that is none, by place and series."""
    found = {}
    for index in range(len(D)):
        if index not in medoids:
            for place in range(len(medoids)):
                found[place, index] = inertia_of(
                    D, [*medoids[:place], index, *medoids[place + 1 :]]
                )
    return found


def swapped(D, medoids, max_iter):
    """Medoids, passes and inertia by pass: each series in turn takes the best place it can."""
    medoids, n = [int(m) for m in medoids], len(D)
    history, tried, passes = [inertia_of(D, medoids)], 0, 0
    while tried < n and passes < max_iter:
        passes += 1
        for index in range(n):
            if tried == n:
                break
            tried += 1
            if index in medoids:
                continue
            after = [
                inertia_of(D, [*medoids[:place], index, *medoids[place + 1 :]])
                for place in range(len(medoids))
            ]
            if min(after) < inertia_of(D, medoids):
                medoids[after.index(min(after))] = index
                tried = 1
        history.append(inertia_of(D, medoids))
    return medoids, passes, history


def built(D, k):
    """Medoids of BUILD: one after the other as it lowers the inertia most."""
    medoids = []
    for _ in range(k):
        sums = [
            np.inf if index in medoids else inertia_of(D, [*medoids, index])
            for index in range(len(D))
        ]
        medoids.append(sums.index(min(sums)))
    return medoids


def scattered(D, k, random_state):
    """Medoids of k-means++, each the best of some that are drawn by their distances."""
    n, draws = len(D), 2 + int(np.log(k))
    medoids = [random_state.randint(n)]
    while len(medoids) < k:
        nearest = [min(D[m][o] for m in medoids) for o in range(n)]
        chosen = []
        for share in random_state.uniform(size=draws):
            index, reached = 0, nearest[0]
            while index < n - 1 and not reached > share * sum(nearest):
                index += 1
                reached += nearest[index]
            if index not in medoids:
                chosen.append(index)
        chosen = chosen or [min(set(range(n)) - set(medoids))]
        sums = [inertia_of(D, [*medoids, index]) for index in chosen]
        medoids.append(chosen[sums.index(min(sums))])
    return medoids


def centers_of(D, labels, k):
    """The member of each cluster with the least sum of distances to the others."""
    medoids = []
    for place in range(k):
        members = [o for o, label in enumerate(labels) if label == place]
        sums = [sum(D[m][o] for o in members) for m in members]
        medoids.append(members[sums.index(min(sums))])
    return medoids


def alternated(D, medoids, max_iter):
    """Medoids and inertia by iteration, as long as no cluster loses all its members."""
    medoids, history = list(medoids), [inertia_of(D, medoids)]
    for _ in range(max_iter):
        new = centers_of(D, labels_of(D, medoids), len(medoids))
        if not inertia_of(D, new) < history[-1]:
            break
        medoids = new
        history.append(inertia_of(D, new))
    return medoids, history
