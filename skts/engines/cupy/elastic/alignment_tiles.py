"""Tiles of averages under warping on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series
from ...families.elastic.averages import AlignmentSums, MatchedSums
from ...families.elastic.distances import ShapeDTW
from ...families.elastic.dtw import DTWReduction
from ...families.elastic.subgradients import MovedAverage, SubgradientSteps
from ...families.elastic.warping import Warping, lacks_distance
from .alignment_programs import path_words
from .descriptors import MOST_BYTES, spans_bytes, spans_of

if TYPE_CHECKING:
    from .dtw import DeviceSeries

__all__ = ["AlignmentTiles"]

#: Bytes for the steps of pairs that are under way at a time: more gain nothing.
MOST_STEPS = 2**30


class AlignmentTiles:
    """Methods of the GPU engine for averages under warping."""

    prepared: PreparedStore
    _on_device: Callable[..., DeviceSeries]
    dtw_path_lacks: Callable[[DTWReduction], str | None]

    def alignment_sums_lacks(self, reduction: AlignmentSums) -> str | None:
        """Say whether a distance has no policy in ``include/cells.cuh``."""
        warping = reduction.warping
        if isinstance(warping, ShapeDTW):
            return self.dtw_path_lacks(reduction)
        if type(warping) is Warping and not reduction.one_by_one:
            return None
        if not reduction.one_by_one:
            return lacks_distance("cupy", warping)
        return self.dtw_path_lacks(reduction) or reduction.lacks_path

    def alignment_sums_bytes(
        self, reduction: AlignmentSums, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on each device for a tile of so many series."""
        from .dtw import device_bytes, stride
        from .warping_path import path_bytes

        if rows * stride(reduction.series.n_timepoints) >= 2**31:
            return 0, 2**62
        if isinstance(reduction.warping, ShapeDTW):
            sides = reduction.averages, reduction.series, reduction.warping
            return 0, spans_bytes(*sides, min(MOST_BYTES, self._most_steps()))
        (n_averages, channels, n), m = reduction.averages.shape, reduction.series.n_timepoints
        series = device_bytes(rows, channels, m) + 2 * device_bytes(n_averages, channels, n)
        each = _steps_of_one(n, m)
        most = self._most_steps()
        if reduction.one_by_one:
            series, most = reduction.described_bytes(1), 0
        held = min(rows * each, most) if each <= most else path_bytes(n, m)
        # edges of as many warps as a large device has
        held += min(rows, 2**13) * 8 * stride(m)
        sums = reduction.sum_bytes * -(-rows // reduction.cell[0])
        return 0, series + held + 2 * sums + rows * (8 * stride(n) + 64)

    def _most_steps(self) -> int:
        """Bytes that the steps of pairs may take."""
        return min(MOST_STEPS, self.prepared.capacity // 4)

    def alignment_sums(
        self, reduction: AlignmentSums, tile: Tile, cancel: np.ndarray
    ) -> MatchedSums:
        """Sums of the cells of a tile, and costs of its series."""
        import cupy

        from . import alignments, dtw

        if isinstance(warping := reduction.warping, ShapeDTW):
            work, budget = reduction.part(tile), min(MOST_BYTES, self._most_steps())
            sides = work.averages, work.series, work.own_pairs
            spans = spans_of(*sides, warping, cancel, budget)
            return work.summed(*work.along_descriptors(spans), cancel)
        if reduction.one_by_one:
            work = reduction.part(tile)
            return work.summed(*_one_by_one(work, cancel), cancel)
        averages = dtw.upload(reduction.averages)
        series = self._on_device(reduction.series, tile.row, tile.row_stop)
        labels, weights = reduction.labels[tile.rows], reduction.weights[tile.rows]
        n, m = reduction.averages.n_timepoints, reduction.series.n_timepoints
        budget = self._most_steps()
        if _steps_of_one(n, m) <= budget:
            on_device = cupy.asarray(labels.astype(np.int32))
            paths = alignments.trace(
                averages, series, on_device, reduction.warping, cancel, budget=budget
            )
        else:
            found = _one_by_one(reduction.part(tile), cancel)
            paths = alignments.Paths(*map(cupy.asarray, found))
        return alignments.add_matched(
            averages, n, series, labels, weights, paths, reduction.cell[0]
        )

    def subgradient_steps_bytes(
        self, reduction: SubgradientSteps, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes on a device for the series of a step."""
        work = reduction.first_batch
        return self.alignment_sums_bytes(work, *work.shape)

    def subgradient_steps(
        self, reduction: SubgradientSteps, tile: Tile, cancel: np.ndarray
    ) -> MovedAverage:
        """The average after all steps, each of which goes to the device and comes back."""

        def sums_of(work: AlignmentSums) -> MatchedSums:
            whole = Tile(0, len(work.series), 0, 1)
            total = work.start()
            work.merge(total, whole, self.alignment_sums(work, whole, cancel))
            return work.finish(total, run=lambda work: None)

        return reduction.follow(sums_of, cancel)


def _steps_of_one(n: int, m: int) -> int:
    """Bytes of the steps of a pair."""
    from .dtw import stride

    return 8 * stride(n) * path_words(stride(m))


def _one_by_one(
    work: AlignmentSums, cancel: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points that paths match, and costs: one path after the other in the memory of one."""
    from . import dtw, warping_path

    shape = len(work.series), dtw.stride(work.averages.n_timepoints)
    first, stop, costs = np.zeros(shape, np.int32), np.zeros(shape, np.int32), np.zeros(shape[0])
    averages, series, warping = work.described
    for row, label in enumerate(work.labels.tolist()):
        average, one = dtw.upload(_one(averages, label)), dtw.upload(_one(series, row))
        path, costs[row] = warping_path.path(average, one, warping, cancel)
        if cancel[0]:
            stop[:] = 1
            break
        work.write_matched(row, path, first[row], stop[row])
    return first, stop, costs


def _one(series: Series, index: int) -> Series:
    """One series of a set, without what lies beyond its end."""
    length = series.lengths[index : index + 1]
    return Series(series.values[index : index + 1, :, : length[0]], length)
