"""Tiles of work under warping on the GPU: what is uploaded, which kernel runs.

CuPy is imported by the methods, so that the engine can be asked whether it is there.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.certify import Bound, Rescaling, Shortlist
from ...core.prepared import PreparedStore
from ...core.reduction import Reduction, Tile
from ...core.series import Series
from ...families.elastic.distances import EDR, LCSS, ShapeDTW
from ...families.elastic.dtw import (
    DTWMatrix,
    DTWNeighbors,
    DTWPairs,
    DTWPath,
    DTWReduction,
    DTWSearch,
    WarpingPath,
    along_descriptors,
)
from ...families.elastic.radius import DTWRadiusNeighbors
from ...families.elastic.warping import Warping, added, lacks_distance, settled
from ...families.elastic.window_search import DTWWindowSearch
from .cells import WEIGHTS_MARGIN, policy_of
from .point_costs import lacks_expression

if TYPE_CHECKING:
    from .dtw import DeviceSeries

__all__ = ["DTWTiles"]

#: Cells of LCSS and EDR count edits in float32, which holds every whole number up to this one.
MOST_COUNTED = 2**24


class DTWTiles:
    """Methods of the GPU engine for DTW, dog-keeper and whatever else has a policy (`cells`)."""

    prepared: PreparedStore

    def _dtw_bytes(self, reduction: DTWReduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile of this shape."""
        from .dtw import bands_bytes, device_bytes, edge_length

        left, right = reduction.sides
        if isinstance(reduction.warping, ShapeDTW):
            from .descriptors import distances_bytes

            return 0, distances_bytes(left, right, reduction.warping, self._most_described())
        # estimates, and rows, columns and values of the shortlist, all in float64 at most
        matrix = 24 * rows * cols
        if isinstance(reduction, DTWPairs):
            cols = rows
            matrix = 24 * rows
        elif rows * cols >= 2**31:
            return 0, 2**62
        series = sum(
            device_bytes(min(count, len(side)), side.n_channels, side.n_timepoints)
            for count, side in ((rows, left), (cols, right))
        )
        if reduction.warping.window is not None:
            longest = max(left.n_timepoints, right.n_timepoints)
            series += bands_bytes(longest, left.n_channels, max(rows, cols))
        if policy_of(reduction.warping).weighted is not None:
            series += 24 * (max(left.n_timepoints, right.n_timepoints) + WEIGHTS_MARGIN)
        if reduction.warping.independent:
            # the sum of channels, and each of them
            matrix += (matrix // 3) * (left.n_channels + 1)
        return 0, series + matrix + 64 * 8 * edge_length(left.n_timepoints)

    def dtw_path_bytes(self, reduction: DTWPath, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a path."""
        from .dtw import device_bytes
        from .warping_path import path_bytes

        n, m = (side.n_timepoints for side in reduction.sides)
        channels = reduction.x.n_channels
        if isinstance(reduction.warping, ShapeDTW):
            n, m = n + reduction.warping.width, m + reduction.warping.width
        series = device_bytes(1, channels, n) + device_bytes(1, channels, m)
        return 0, series + path_bytes(n, m)

    def dtw_window_search_bytes(
        self, reduction: DTWWindowSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for some queries at every radius, one radius at a time."""
        search = self._search_of(reduction, Tile(0, rows, 0, 1))
        shared, each = self._dtw_bytes(search, rows, len(reduction.candidates))
        return shared, each + 8 * rows * reduction.radii.size

    dtw_matrix_bytes = dtw_neighbors_bytes = dtw_pairs_bytes = _dtw_bytes
    dtw_radius_neighbors_bytes = _dtw_bytes

    def _dtw_lacks(self, reduction: DTWReduction) -> str | None:
        """Say whether there is no policy for a distance, or none for series as long as these."""
        if isinstance(reduction.warping, ShapeDTW):
            return None
        lacking = lacks_expression(reduction.warping)
        if lacking is not None:
            return lacking
        try:
            policy_of(reduction.warping)
        except LookupError:
            return lacks_distance("cupy", reduction.warping)
        points = sum(side.n_timepoints for side in reduction.sides)
        if isinstance(reduction.warping, EDR | LCSS) and points >= MOST_COUNTED:
            return (
                f"engine='cupy' counts the edits of two series of less than {MOST_COUNTED:,} "
                f"points together; here they have up to {points:,}."
            )
        return None

    dtw_matrix_lacks = dtw_neighbors_lacks = dtw_pairs_lacks = dtw_path_lacks = _dtw_lacks
    dtw_radius_neighbors_lacks = _dtw_lacks

    def dtw_neighbors(self, reduction: DTWNeighbors, tile: Tile, cancel: np.ndarray) -> Shortlist:
        """Survivors of a tile."""
        from . import dtw

        if isinstance(reduction.warping, ShapeDTW):
            return self._described_survivors(reduction, reduction.warping, tile, cancel)
        estimates, bound, scale = self._estimates(reduction, tile)
        excluded, squared = reduction.excluded_of(tile), reduction.warping.squared
        k = reduction.n_neighbors
        return dtw.shortlist(estimates, k, bound, excluded, scale, squared=squared)

    def dtw_radius_neighbors(
        self, reduction: DTWRadiusNeighbors, tile: Tile, cancel: np.ndarray
    ) -> Shortlist:
        """Survivors of a tile."""
        from . import radius

        if isinstance(reduction.warping, ShapeDTW):
            return self._described_survivors(reduction, reduction.warping, tile, cancel)
        estimates, bound, scale = self._estimates(reduction, tile)
        excluded, squared = reduction.excluded_of(tile), reduction.warping.squared
        return radius.within(estimates, reduction.radius, bound, excluded, scale, squared=squared)

    def _described_survivors(
        self, reduction: DTWSearch, warping: ShapeDTW, tile: Tile, cancel: np.ndarray
    ) -> Shortlist:
        """Survivors of a tile, by distances along paths between descriptors."""
        distances = self._described(reduction, warping, tile.places, cancel)
        return reduction.shortlist(distances.reshape(tile.shape), Bound(), tile)

    def _described(
        self, reduction: DTWReduction, warping: ShapeDTW, pairs: np.ndarray, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of pairs along the best paths between descriptors."""
        from . import descriptors

        (left, right), budget = reduction.sides, self._most_described()
        return descriptors.distances(left, right, pairs, warping, cancel, budget)

    def _most_described(self) -> int:
        """Bytes for descriptors, and for the steps of paths between them."""
        from .descriptors import MOST_BYTES

        return min(MOST_BYTES, self.prepared.capacity // 4)

    def _estimates(self, reduction: DTWSearch, tile: Tile) -> tuple[Any, Bound, float]:
        """Estimates of a tile, their error, and by what the data were multiplied."""
        rescaling = reduction.rescaling if reduction.single else None
        found, error = [], 0.0
        for each in reduction.by_channel():
            rows = self._on_device(each.queries, tile.row, tile.row_stop, rescaling)
            cols = self._on_device(each.candidates, tile.col, tile.col_stop, rescaling)
            error = max(error, rows.error + cols.error)
            found.append(self._distances(each, rows, cols, rescaling, root=not reduction.single))
        if not reduction.single:
            return added(found), Bound(), 1.0
        scale, bound = reduction.scale_and_bound(error)
        return added(found), bound, scale

    def dtw_matrix(self, reduction: DTWMatrix, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """A block of the matrix."""
        from ..transfers import to_host

        if isinstance(reduction.warping, ShapeDTW):
            found_here = self._described(reduction, reduction.warping, tile.places, cancel)
            return found_here.reshape(tile.shape)

        found = []
        for each in reduction.by_channel():
            rows = self._on_device(each.rows, tile.row, tile.row_stop)
            cols = self._on_device(each.cols, tile.col, tile.col_stop)
            found.append(to_host(self._distances(each, rows, cols, root=True)))
        return added(found)

    def dtw_pairs(self, reduction: DTWPairs, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """Certified distances of some pairs."""
        if isinstance(reduction.warping, ShapeDTW):
            pairs = reduction.pairs[tile.rows]
            return self._described(reduction, reduction.warping, pairs, cancel)
        return added([self._certified(each, tile) for each in reduction.by_channel()])

    def _certified(self, reduction: DTWPairs, tile: Tile) -> np.ndarray:
        """The same, where distances are no sums of those of channels."""
        import cupy

        from . import dtw

        both_sides = sum(
            dtw.device_bytes(len(side), side.n_channels, side.n_timepoints)
            for side in reduction.sides
        )
        part, rows = reduction, tile.rows
        if both_sides > self.prepared.capacity // 2:
            part, rows = reduction.part(tile), slice(None)
        pairs = cupy.asarray(np.ascontiguousarray(part.pairs[rows], np.int32))
        left, right = part.sides
        x, y = (self._on_device(side, 0, len(side)) for side in part.sides)
        reach = part.warping.largest_radius(*(side.lengths for side in part.sides))
        budget = self.prepared.capacity // 4
        found = dtw.certify(x, y, pairs, part.warping, root=True, reach=reach, budget=budget)
        assert found is not None  # without `least` there are distances
        if not part.warping.settles:
            return found.get()
        i, j = part.pairs[rows].T
        return settled(part.warping, found.get(), left.take(i), right.take(j))

    def dtw_path(self, reduction: DTWPath, tile: Tile, cancel: np.ndarray) -> WarpingPath:
        """A best path."""
        from . import descriptors, dtw, warping_path

        if isinstance(reduction.warping, ShapeDTW):
            path_of = partial(descriptors.path, warping=reduction.warping, cancel=cancel)
            return along_descriptors(reduction, reduction.warping, path_of)
        x, y = (dtw.upload(_unpadded(side)) for side in reduction.sides)
        path, cost = warping_path.path(x, y, reduction.warping, cancel)
        distance = settled(reduction.warping, np.array([cost]), *reduction.sides)
        return WarpingPath(path, float(distance[0]))

    def dtw_window_search(
        self, reduction: DTWWindowSearch, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Nearest candidates of some queries, at one radius after the other."""
        found = np.zeros((tile.shape[0], reduction.radii.size), np.int64)
        search = self._search_of(reduction, tile)
        for index, radius in enumerate(reduction.radii):
            if cancel[0]:
                break
            warping = replace(search.warping, window=int(radius))
            found[:, index] = self._nearest(replace(search, warping=warping), cancel)
        return found

    def _search_of(self, reduction: DTWWindowSearch, tile: Tile) -> DTWNeighbors:
        """Return the search of a tile, at the widest radius."""
        cost = "squared" if reduction.squared else "absolute"
        return DTWNeighbors(
            reduction.queries.take(tile.rows),
            reduction.candidates,
            1,
            reduction.excluded[tile.rows],
            warping=Warping(cost=cost, window=int(reduction.radii[0])),
        )

    def _nearest(self, search: DTWNeighbors, cancel: np.ndarray) -> np.ndarray:
        """The nearest candidate of each query, certified."""

        def compute(work: Reduction) -> Any:
            """Compute some work as one tile."""
            tile, total = Tile(0, work.shape[0], 0, work.shape[1]), work.start()
            work.merge(total, tile, getattr(self, work.method)(work, tile, cancel))
            return work.finish(total, compute)

        return compute(search).indices[:, 0]

    def _distances(
        self,
        reduction: DTWMatrix | DTWSearch,
        rows: DeviceSeries,
        cols: DeviceSeries,
        rescaling: Rescaling | None = None,
        *,
        root: bool,
    ) -> Any:
        """Launch the kernel for the options of a reduction."""
        from . import dtw

        left, right = reduction.sides
        warping = reduction.warping
        return dtw.distances(
            rows,
            cols,
            warping if rescaling is None else warping.rescaled(rescaling),
            reach=reduction.warping.largest_radius(left.lengths, right.lengths),
            root=root,
            budget=self.prepared.capacity // 4,
        )

    def _on_device(
        self, series: Series, start: int, stop: int, rescaling: Any = None
    ) -> DeviceSeries:
        """Some series on the current device, in float64, or rescaled in float32."""
        import cupy

        from . import dtw

        def build() -> tuple[DeviceSeries, int]:
            if rescaling is None:
                made = dtw.upload(series.take(slice(start, stop)))
            else:
                made = dtw.rescale(self._on_device(series, start, stop), rescaling)
            return made, made.buffer.nbytes + made.lengths.nbytes

        key = ("series", cupy.cuda.Device().id, rescaling, start, stop)
        return self.prepared.get(series.owner, key, build)


def _unpadded(series: Series) -> Series:
    """The one series of a set, without what lies beyond its end."""
    return Series(series.values[:, :, : series.lengths[0]], series.lengths)
