"""The oracle of what follows from profiles: chains, consensus, MPdist, regimes, in plain loops."""

from __future__ import annotations

import math

from tests.reference_join import window_distance


def windows_of(points, length):
    """All windows of a series."""
    return [points[start : start + length] for start in range(len(points) - length + 1)]


def distance_profile(query, points, *, normalize=True):
    """Distances of a query to all windows."""
    return [
        window_distance(query, one, normalize=normalize) for one in windows_of(points, len(query))
    ]


def mpdist(a, b, length, k, *, normalize=True):
    """The k-th smallest of the distances of each window to the nearest one of the other series."""
    found = []
    for one, other in ((a, b), (b, a)):
        for window in windows_of(one, length):
            nearest = min(distance_profile(window, other, normalize=normalize))
            if nearest < math.inf:
                found.append(nearest)
    found.sort()
    if not found:
        return math.inf
    rank = k if isinstance(k, int) else math.ceil(k * (len(a) + len(b)) - 1e-9)
    return found[min(rank, len(found)) - 1]


def neighbors(points, length, exclusion, side, *, normalize=True):
    """Of each window the nearest one among earlier, later or all: (distance, place)."""
    found = []
    for i, window in enumerate(windows_of(points, length)):
        best = math.inf, -1
        for j, distance in enumerate(distance_profile(window, points, normalize=normalize)):
            wanted = {"earlier": j < i, "later": j > i, "both": True}[side]
            if wanted and abs(i - j) > exclusion and distance < best[0]:
                best = distance, j
        found.append(best)
    return found


def chains(points, length, exclusion, *, normalize=True):
    """All chains of two windows or more: the longest first, then the one that begins first."""
    earlier = neighbors(points, length, exclusion, "earlier", normalize=normalize)
    later = neighbors(points, length, exclusion, "later", normalize=normalize)
    found, seen = [], set()
    for start in range(len(later)):
        if start in seen:
            continue
        chain = [start]
        while True:
            _, following = later[chain[-1]]
            if following < 0 or earlier[following][1] != chain[-1]:
                break
            chain.append(following)
        seen.update(chain)
        if len(chain) > 1:
            found.append((chain, [later[place][0] for place in chain[:-1]]))
    return sorted(found, key=lambda one: (-len(one[0]), one[0][0]))


def consensus(series, length, *, normalize=True):
    """The window of least radius: (radius, series, start), and its best matches."""
    best, matches = (math.inf, -1, -1), None
    for row, points in enumerate(series):
        for start, window in enumerate(windows_of(points, length)):
            found = []
            for other, more in enumerate(series):
                if other == row:
                    found.append((0.0, start))
                    continue
                profile = distance_profile(window, more, normalize=normalize)
                found.append(min((distance, place) for place, distance in enumerate(profile)))
            radius = max(distance for distance, _ in found)
            if (radius, row, start) < best:
                best, matches = (radius, row, start), found
    return best, matches


def arc_curve(nearest, apart):
    """Arcs over each place, as a share of those of chance; 1 near the ends."""
    there = [(i, j) for i, (_, j) in enumerate(nearest) if j >= 0]
    curve = []
    for place in range(len(nearest)):
        crossing = sum(min(i, j) <= place < max(i, j) for i, j in there)
        before = sum(i <= place for i, _ in there)
        chance = 2 * before * (len(there) - before)
        inside = apart <= place < len(nearest) - apart
        share = crossing * len(there) / chance if chance else 1.0
        curve.append(min(share, 1.0) if inside else 1.0)
    return curve


def boundaries(curve, number, apart):
    """The lowest places of a curve, each more than so far from those before."""
    found = []
    for _ in range(number):
        left = [
            (value, place)
            for place, value in enumerate(curve)
            if value < 1 and all(abs(place - other) > apart for other in found)
        ]
        if not left:
            break
        found.append(min(left)[1])
    return found
