"""The oracle of motifs and discords: from the matrix of all distances, in plain loops."""

from __future__ import annotations

import math

import numpy as np
from reference_join import window_distance, window_distances

from skts.engines.families.profile.mk import WalkedPairs


def pool_line(series, gap):
    """Series behind each other, NaN between them; and where each begins."""
    line, starts = [], []
    for points in series:
        if starts:
            line += [math.nan] * gap
        starts.append(len(line))
        line += list(points)
    return line, starts


class Windows:
    """All windows of one length of several series, with all their distances."""

    def __init__(self, series, length, exclusion, separation=None, *, normalize=True):
        self.length = length
        self.exclusion = math.ceil(length / 4) if exclusion is None else exclusion
        self.separation = separation
        if separation is None:
            self.separation = max(self.exclusion, (length + 1) // 2)
        line, starts = pool_line(series, 1)
        distances = window_distances(
            line, range(len(line) - length + 1), line, length, normalize=normalize
        )
        self.places = [
            (row, start)
            for row, points in enumerate(series)
            for start in range(len(points) - length + 1)
        ]
        on_line = [starts[row] + start for row, start in self.places]
        self.distances = distances[np.ix_(on_line, on_line)]

    def near(self, one, other):
        """Whether two windows start within the exclusion of each other in one series."""
        (row, start), (other_row, other_start) = one, other
        return row == other_row and abs(start - other_start) <= self.exclusion

    def same(self, one, other):
        """Whether two windows start so near that they cannot be two findings."""
        (row, start), (other_row, other_start) = one, other
        return row == other_row and abs(start - other_start) <= self.separation

    def profile(self):
        """For each window its nearest admissible neighbour: (distance, index), (inf, -1)."""
        found = []
        for i, place in enumerate(self.places):
            best = math.inf, -1
            for j, other in enumerate(self.places):
                if not self.near(place, other):
                    distance = self.distances[i][j]
                    if distance < math.inf and (distance, j) < best:
                        best = distance, j
            found.append(best)
        return found

    def best_pair(self, masked):
        """The admissible pair with the least (distance, first, second), None without any."""
        best = None
        for i, place in enumerate(self.places):
            for j in range(i + 1, len(self.places)):
                if i in masked or j in masked or self.near(place, self.places[j]):
                    continue
                pair = self.distances[i][j], i, j
                if pair[0] < math.inf and (best is None or pair < best):
                    best = pair
        return best

    def occurrences(self, first, limit, masked):
        """Windows within the limit of the first one, greedily, best first."""
        order = sorted(
            (self.distances[first][j], j)
            for j in range(len(self.places))
            if j not in masked and self.distances[first][j] <= limit
        )
        taken = []
        for distance, j in order:
            if not any(self.near(self.places[j], self.places[k]) for _, k in taken):
                taken.append((distance, j))
        return taken


def find_motifs(every, n_motifs, radius):
    """Motifs over several lengths: (length, occurrences as (distance, row, start))."""
    taken, motifs = [], []
    while len(motifs) < n_motifs:
        best = None
        for windows in every:
            masked = {
                k
                for k, place in enumerate(windows.places)
                if any(windows.same(place, other) for other in taken)
            }
            pair = windows.best_pair(masked)
            if pair is None:
                continue
            rank = pair[0] / math.sqrt(windows.length)
            if best is None or rank < best[0]:
                best = rank, windows, pair, masked
        if best is None:
            break
        _, windows, (distance, first, _), masked = best
        limit = radius * distance if distance > 0 else 1e-7 * math.sqrt(windows.length)
        found = windows.occurrences(first, limit, masked)
        taken += [windows.places[k] for _, k in found]
        motifs.append((windows.length, [(d, *windows.places[k]) for d, k in found]))
    return motifs


def find_discords(every, n_discords):
    """Discords over several lengths: (length, distance, row, start, neighbour)."""
    candidates = []
    for order, windows in enumerate(every):
        for k, (distance, j) in enumerate(windows.profile()):
            if j >= 0:
                rank = distance / math.sqrt(windows.length)
                candidates.append((-rank, order, k, windows, distance, j))
    candidates.sort(key=lambda candidate: candidate[:3])
    discords = []
    for _, _, k, windows, distance, j in candidates:
        place = windows.places[k]
        # an earlier discord blocks by the separation of the windows it would stand beside
        if len(discords) < n_discords and not any(
            windows.same(place, (row, start)) for _, _, row, start, _ in discords
        ):
            discords.append((windows.length, distance, *place, windows.places[j]))
    return discords


class MKOracle:
    """The walk of MK in plain loops: every pair of a tile is measured."""

    def pair_walk(self, reduction, tile, cancel):
        points, length = reduction.series.points, reduction.length
        best, measured = tuple(reduction.best), 0
        for p in range(tile.row, tile.row_stop):
            for offset in range(reduction.first + tile.col, reduction.first + tile.col_stop):
                if p + offset >= len(reduction.order):
                    break
                i, j = sorted((int(reduction.order[p]), int(reduction.order[p + offset])))
                if j - i <= reduction.exclusion:
                    continue
                distance = window_distance(
                    points[i : i + length],
                    points[j : j + length],
                    normalize=reduction.normalize,
                )
                measured += 1
                if distance < math.inf and (distance, i, j) < best:
                    best = distance, i, j
        return WalkedPairs(*best, measured)
