"""Tiles of groups of candidates and series on the GPU: the nodes of a level of a forest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from ...core.constants import MATCH_THREADS
from ...core.reduction import Tile
from ...core.series import Series
from ...families.shapelets.groups import CandidateGroups, Groups
from ...families.shapelets.matches import LEAST_NORMALIZED
from ...families.shapelets.splits import GroupSplits, Splits, split_groups
from .match_programs import QUERY

if TYPE_CHECKING:
    import cupy

__all__ = ["GroupTiles"]

#: Pairs of a candidate and a series that are measured in one launch, and blocks of it, at most;
#: bytes of this machine's memory for each: the pair itself, as it is made, and its distance.
PAIRS, BLOCKS, ON_THE_HOST = 2**24, 2**16, 32
#: Threads that judge distances, at most, and distances that are worth one: some milliseconds.
JUDGES, WORTH_A_JUDGE = 8, 2**15


class GroupTiles:
    """Methods of the GPU engine for groups of candidates and series."""

    _values: Callable[[Series], tuple[cupy.ndarray, cupy.ndarray]]
    budget: Callable[[], int]

    def group_matches_lacks(self, reduction: CandidateGroups) -> str | None:
        """Return None if places of the distances of each group are numbers of 32 bits."""
        most = reduction.largest[2]
        if most <= np.iinfo(np.int32).max:
            return None
        return (
            f"engine='cupy' measures {np.iinfo(np.int32).max} distances of a node at most; here "
            f"are {most}."
        )

    group_splits_lacks = group_matches_lacks

    def group_matches_bytes(
        self, reduction: CandidateGroups, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes for a tile, on each device or on the host, whichever are more.

        On a device: series; distances, pairs, candidates and members. On the host: a part at a
        time, and the answer, whose parts are joined.
        """
        values, each = self._device_bytes(reduction, rows)
        answer = 16 * rows * reduction.largest[2]
        return values, max(each, self._host_bytes(reduction, rows) + answer)

    def _device_bytes(self, reduction: CandidateGroups, rows: int) -> tuple[int, int]:
        """Bytes on each device for a tile."""
        groups = reduction.groups
        n_candidates, n_members, n_distances, n_points = reduction.largest
        values = sum(8 * one.values.size + 4 * len(one) for one in (groups.series, groups.source))
        each = 16 * n_distances + 8 * n_points + (QUERY.itemsize + 8) * n_candidates
        return values, rows * (each + 4 * n_members)

    def _host_bytes(self, reduction: CandidateGroups, rows: int) -> int:
        """Bytes on the host in which a part of a tile is measured."""
        n_candidates, n_members, n_distances, _ = reduction.largest
        pairs = min(rows * n_distances, max(PAIRS, n_distances))
        return ON_THE_HOST * pairs + rows * (120 * n_candidates + 12 * n_members)

    def group_matches(
        self, reduction: CandidateGroups, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of the candidates of some groups to their members."""
        groups = reduction.groups.take(tile.rows)
        parts = []
        for some in _parts(groups):
            if cancel[0]:
                return np.empty(groups.distances_of[-1])
            parts.append(self._group_distances(some))
        return np.concatenate(parts)

    def group_splits_bytes(self, reduction: GroupSplits, rows: int, cols: int) -> tuple[int, int]:
        """Bytes for a tile, on each device or on the host, whichever are more.

        On the host: a part at a time, one judge's order lines, and the answer, whose parts are
        joined. More judges take what the budget leaves.
        """
        values, each = self._device_bytes(reduction, rows)
        answer = 96 * (reduction.rules.most + reduction.largest[1]) + reduction.weight_bytes
        on_host = self._host_bytes(reduction, rows) + reduction.judging_bytes + rows * answer
        return values, max(each, on_host)

    def group_splits(self, reduction: GroupSplits, tile: Tile, cancel: np.ndarray) -> Splits:
        """Splits of some groups: the device measures, threads of the host judge, part by part."""
        found: list[Splits] = []
        first = tile.row
        for some in _parts(reduction.groups.take(tile.rows)):
            if cancel[0]:
                return reduction.start()
            distances = self._group_distances(some)
            found += self._judge(reduction, first, some, distances)
            first += len(some)
        return Splits._make(map(np.concatenate, zip(*found, strict=True)))

    def _judge(
        self, reduction: GroupSplits, row: int, groups: Groups, distances: np.ndarray
    ) -> list[Splits]:
        """Splits of neighbouring groups, the first of which is `row`, by their distances."""
        begins = groups.distances_of
        room = (self.budget() - ON_THE_HOST * len(distances)) // max(1, reduction.judging_bytes)
        count = min(JUDGES, os.cpu_count() or 1, len(distances) // WORTH_A_JUDGE, room)
        if count < 2:
            return [split_groups(reduction, slice(row, row + len(groups)), distances)]
        # as many distances for each, of whole groups
        cuts = np.searchsorted(begins, np.linspace(0, len(distances), count + 1)[1:-1])
        ends = np.unique([0, *cuts, len(begins) - 1]).tolist()

        def judge(first: int, stop: int) -> Splits:
            rows = slice(row + first, row + stop)
            return split_groups(reduction, rows, distances[begins[first] : begins[stop]])

        with ThreadPoolExecutor(count, thread_name_prefix="skts") as pool:
            return list(pool.map(judge, ends[:-1], ends[1:]))

    def _group_distances(self, groups: Groups) -> np.ndarray:
        """Distances of groups that fit in one launch."""
        import cupy as cp

        found = cp.empty(int(groups.distances_of[-1]))
        lengths = groups.pieces[:, 3]
        n_members = np.repeat(groups.sizes[1], groups.sizes[0])
        for normalized in (True, False):
            chosen = np.flatnonzero((lengths >= LEAST_NORMALIZED) == normalized)
            if chosen.size:
                self._measure_pairs(groups, chosen, normalized, found)
        on_host: np.ndarray = found.get()
        on_host /= np.repeat(np.sqrt(lengths), n_members)
        return on_host

    def _measure_pairs(
        self, groups: Groups, chosen: np.ndarray, normalized: bool, found: cupy.ndarray
    ) -> None:
        """Write the norms of the differences of some candidates and their best matches.

        Members of all groups are the columns of `match`, one after the other, and each candidate
        has the place in which its distances would begin if the first column were its first member.
        """
        from ..loading import load_kernel
        from ..transfers import send
        from .matches import normalize

        values, sizes = self._values(groups.series)
        source = self._values(groups.source)[0]
        n_channels, width = groups.source.shape[1:]
        row, channel, start, length = groups.pieces[chosen].T
        group = np.repeat(np.arange(len(groups)), groups.sizes[0])[chosen]
        number = chosen - groups.candidates_of[group]
        n_members, first = groups.sizes[1][group], groups.members_of[group]
        ends = np.cumsum(length)
        table = np.empty(len(chosen), QUERY)
        table["begin"], table["place"] = (row * n_channels + channel) * width + start, ends - length
        table["length"], table["channel"] = length, channel
        table["row"] = groups.distances_of[group] + number * n_members - first
        pairs = np.empty((int(n_members.sum()), 2), np.int32)
        begins = np.cumsum(n_members) - n_members
        pairs[:, 0] = np.repeat(np.arange(len(chosen)), n_members)
        pairs[:, 1] = np.arange(len(pairs)) + np.repeat(first - begins, n_members)
        queries, left, counts, members = send(
            table.view(np.int64).reshape(len(chosen), -1),
            pairs,
            np.array([0, len(pairs)], np.int32),
            groups.members.astype(np.int32),
        )
        asked = normalize(source, queries, int(ends[-1]), normalized)
        columns = {"values": values, "width": groups.series.n_timepoints}
        columns |= {"n_channels": n_channels, "sizes": sizes, "series": members, "n_columns": 1}
        load_kernel("shapelets/matches.cu", "match<1>")(
            min(BLOCKS, len(pairs)),
            MATCH_THREADS,
            columns=columns,
            pairs={"groups": None, "n_groups": 0, "left": left, "counts": counts},
            asked=asked.argument,
            normalized=normalized,
            answers={"distances": found, "starts": None},
        )


def _parts(groups: Groups) -> Iterator[Groups]:
    """Neighbouring groups whose pairs fit in one launch, or single ones."""
    begins, first = groups.distances_of, 0
    while first < len(groups):
        stop = int(np.searchsorted(begins, begins[first] + PAIRS, side="right")) - 1
        stop = max(first + 1, stop)
        yield groups.take(slice(first, stop))
        first = stop
