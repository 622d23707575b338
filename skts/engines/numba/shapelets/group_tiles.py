"""Tiles of groups of candidates and series on the CPU: the nodes of a level of a forest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series, read_only
from ...families.shapelets.groups import CandidateGroups, GroupMatches
from ...families.shapelets.matches import LEAST_NORMALIZED
from ...families.shapelets.splits import GroupSplits, Splits, split_groups
from ...host.small_work import most_bytes, prefer_numpy
from . import by_numpy
from .groups import LANES, PADDING, Surveyed, match_groups, survey

__all__ = ["LIMIT", "GroupTiles"]

#: Seconds of NumPy in place of kernels that take some twenty to compile.
LIMIT = 4.0


class GroupTiles:
    """Methods of the CPU engine for groups of candidates and series."""

    prepared: PreparedStore
    budget: Callable[[], int]

    def group_matches_bytes(
        self, reduction: CandidateGroups, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for a tile: series, described; distances, and what a candidate takes."""
        n, n_channels, width = reduction.groups.series.shape
        n_candidates, n_members, n_distances, _ = reduction.largest
        each = 8 * rows * n_distances + 64 * rows * (n_candidates + n_members)
        survey_bytes = n * n_channels * (64 * (width + 2) + 16 * PADDING)
        return survey_bytes, each + 8 * width * (LANES + 14) + 128 * n_members

    def group_matches(self, reduction: GroupMatches, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """Distances of the candidates of some groups to their members."""
        groups = reduction.groups

        def seconds() -> tuple[float, float]:
            each = by_numpy.GROUP_SECONDS + 2e-9 * reduction.step_work
            return each * tile.shape[0], each * reduction.shape[0]

        def able() -> bool:
            held = 64 * reduction.largest[1] * groups.series.n_timepoints
            return bool(
                groups.pieces[:, 3].min(initial=LEAST_NORMALIZED) >= LEAST_NORMALIZED
            ) and held * reduction.largest[0] <= most_bytes(self.budget())

        if prefer_numpy(seconds, match_groups, able=able, limit=LIMIT):
            return by_numpy.group_distances(groups.take(tile.rows), cancel)
        return self._group_distances(reduction, tile, cancel)

    def _group_distances(
        self, reduction: CandidateGroups, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of some groups, by kernels."""
        groups = reduction.groups.take(tile.rows)
        found = np.empty(groups.distances_of[-1])
        match_groups(
            self._surveyed(groups.series),
            *(read_only(groups.source.values), groups.pieces, groups.candidates_of),
            *(groups.members, groups.members_of, found, cancel),
        )
        return found

    def group_splits_bytes(self, reduction: GroupSplits, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile: those of distances, and what judging a group takes."""
        shared, each = self.group_matches_bytes(reduction, rows, cols)
        answer = 48 * (reduction.rules.most + reduction.largest[1]) + reduction.weight_bytes
        return shared, each + reduction.judging_bytes + rows * answer

    def group_splits(self, reduction: GroupSplits, tile: Tile, cancel: np.ndarray) -> Splits:
        """Splits of some groups."""
        distances = self._group_distances(reduction, tile, cancel)
        if cancel[0]:
            return reduction.start()
        return split_groups(reduction, tile.rows, distances)

    def _surveyed(self, series: Series) -> Surveyed:
        """Series, described; kept while they live."""
        n, n_channels, width = series.shape
        given = read_only(series.values), read_only(series.lengths)

        def build() -> tuple[tuple[np.ndarray, ...], int]:
            rows = n * n_channels
            sums, squares = np.zeros((2, 2, rows, width + 1))
            made = (
                *(np.zeros((rows, width)), sums, squares),
                np.zeros((rows, width), np.int64),
                *np.zeros((2, rows, width + PADDING), np.float32),
                *(np.zeros((rows, width + PADDING)), np.zeros((rows, 3))),
            )
            survey(*given, *made)
            return made, sum(part.nbytes for part in made)

        # without what was given: that would live as long as the entry, which goes when it dies
        return Surveyed(*given, *self.prepared.get(series.values, "surveyed", build))
