"""Tiles of work under warping on the CPU: what is prepared, which kernel runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...core.certify import (
    ENTRY_BYTES,
    Bound,
    Rescaling,
    Shortlist,
    survivor_cap,
)
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...core.series import Series, read_only
from ...families.elastic.distances import ShapeDTW
from ...families.elastic.dtw import (
    DTWMatrix,
    DTWPairs,
    DTWPath,
    DTWReduction,
    DTWSearch,
    WarpingPath,
    along_descriptors,
)
from ...families.elastic.warping import Warping, added, lacks_distance, settled
from ...families.elastic.window_search import DTWWindowSearch
from ...host.small_work import most_bytes, prefer_numpy
from . import (
    by_numpy,
    certified,
    descriptors,
    dtw,
    lower_bounds,
    stepped_bounds,
    uneven,
    warping_path,
    window_search,
)
from .alignment_tiles import most_steps
from .alignments import trace_kernel
from .cells import cell_of
from .point_cells import lacks_function

__all__ = ["DTWTiles"]

#: Points of the pairs that are certified at a time: their series are copied side by side.
CERTIFIED_POINTS = 2**18
#: Points of two series together from which bounds pay, in a band of any width or without.
WORTH_BOUNDING = 40


class DTWTiles:
    """Methods of the CPU engine for DTW, dog-keeper and whatever else has a policy (`cells`)."""

    prepared: PreparedStore
    budget: Callable[[], int]

    def _dtw_bytes(self, reduction: DTWReduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes held for a tile of this shape: packed lanes are shared, the rest is a thread's."""
        left, right = reduction.sides
        n, m, channels = left.n_timepoints, right.n_timepoints, left.n_channels
        if isinstance(reduction.warping, ShapeDTW):
            return 0, self._described_bytes(reduction, reduction.warping, rows * cols)
        uneven = cell_of(reduction.warping).uneven
        if isinstance(reduction, DTWPath):
            return 0, warping_path.path_bytes(n, m)
        small = by_numpy.pairs_bytes(left, right, reduction.warping, rows * cols)
        small = min(small, most_bytes(self.budget()))
        alike = all(side.lengths.min() == side.lengths.max() for side in reduction.sides)
        one_by_one = isinstance(reduction, DTWPairs) or rows * cols == 1
        if alike and isinstance(reduction, DTWMatrix):
            # it is known which tiles take no lanes
            lengths = left.lengths[:rows], right.lengths[:cols]
            one_by_one = one_by_one or _pairs_are_faster(reduction, *lengths)
        most = dtw.most_faster_pairs(rows, cols) if alike and not one_by_one else rows * cols
        pairs = min(most, _certified_at_a_time(reduction))
        held = 8 * pairs * (channels * (n + m) + 4)
        held += certified.pairs_bytes(channels, n, m, pairs, uneven=uneven)
        held = 48 * rows * cols + max(held, small)
        if one_by_one:
            return 0, held
        shared, each = map(
            max,
            *(
                self._block_bytes(reduction, rows, cols, flip=dtw.rows_in_lanes(rows, cols, t))
                for t in dtw.LANES
            ),
        )
        each = max(each, held)
        if reduction.warping.independent:
            each += 8 * rows * cols * channels
        if not isinstance(reduction, DTWSearch):
            return shared, each
        k = reduction.n_neighbors
        found = rows * (min(cols, survivor_cap(k)) if k else cols)
        return shared + reduction.survivor_bytes(), each + ENTRY_BYTES * found

    def _described_bytes(self, reduction: DTWReduction, warping: ShapeDTW, n_pairs: int) -> int:
        """Bytes held for pairs along paths between descriptors."""
        left, right = reduction.sides
        n, m, channels = left.n_timepoints, right.n_timepoints, left.n_channels
        if isinstance(reduction, DTWPath):
            return warping_path.path_bytes(n, m) + 64 * channels * (n + m + 2 * warping.width)
        small = descriptors.by_numpy_bytes(n, m, channels, warping, n_pairs)
        some = n, m, channels, warping, n_pairs, most_steps(self.budget())
        held = max(descriptors.distances_bytes(*some), min(small, most_bytes(self.budget())))
        found = reduction.survivor_bytes() if isinstance(reduction, DTWSearch) else 0
        return held + found + (48 + ENTRY_BYTES) * n_pairs

    def _block_bytes(
        self, reduction: DTWReduction, rows: int, cols: int, *, flip: bool
    ) -> tuple[int, int]:
        """Bytes held for a block whose column series, or with `flip` row series, lie in lanes."""
        left, right = reduction.sides
        n, m, channels = left.n_timepoints, right.n_timepoints, left.n_channels
        if flip:
            n, m, rows, cols = m, n, cols, rows
        uneven = cell_of(reduction.warping).uneven
        # float64 lanes, or lanes, rows and envelopes in float32; of uneven policies all in float64
        points = (-(-cols // 64) * 64) * channels * (m + (m if flip else max(n, m)))
        lanes = (24 if uneven else 8) * points
        each = 16 * rows * channels * n + 64 * rows * cols + dtw.sweep_bytes(n, m, uneven=uneven)
        # lanes that the cascade gathers
        each += 256 * channels * m
        return (0, lanes + each) if flip else (lanes, each)

    dtw_matrix_bytes = dtw_neighbors_bytes = dtw_pairs_bytes = dtw_path_bytes = _dtw_bytes
    dtw_radius_neighbors_bytes = _dtw_bytes

    def _dtw_lacks(self, reduction: DTWReduction) -> str | None:
        """Say whether there is no policy for a distance."""
        if isinstance(reduction.warping, ShapeDTW):
            return None
        lacking = lacks_function(reduction.warping)
        if lacking is not None:
            return lacking
        try:
            cell_of(reduction.warping)
        except LookupError:
            return lacks_distance("numba", reduction.warping)
        return None

    dtw_matrix_lacks = dtw_neighbors_lacks = dtw_pairs_lacks = dtw_path_lacks = _dtw_lacks
    dtw_radius_neighbors_lacks = _dtw_lacks

    def dtw_window_search_bytes(
        self, reduction: DTWWindowSearch, rows: int, cols: int
    ) -> tuple[int, int]:
        """Bytes held for some queries at every radius."""
        n_results = rows * reduction.radii.size
        n_candidates, n_channels, n_timepoints = reduction.candidates.values.shape
        return 0, window_search.query_bytes(n_candidates, n_channels, n_timepoints, n_results)

    def dtw_neighbors(self, reduction: DTWSearch, tile: Tile, cancel: np.ndarray) -> Shortlist:
        """Survivors of a tile."""
        if isinstance(reduction.warping, ShapeDTW):
            distances = self._described(reduction, reduction.warping, tile.places, cancel)
            return reduction.shortlist(distances.reshape(tile.shape), Bound(), tile)
        if reduction.precision != "float32" and self._dtw_by_numpy(reduction, tile):
            return reduction.shortlist(self._all_pairs(reduction, tile, cancel), Bound(), tile)
        if self._worth_bounding(reduction, tile):
            found = self._cascade(reduction, tile, cancel)
            if found is not None:
                return found
        if cell_of(reduction.warping).uneven and stepped_bounds.worth_bounding(
            reduction, tile.shape[1]
        ):
            return self._stepped_search(reduction, tile, cancel)
        lengths = _lengths_of(reduction, tile)
        if reduction.precision != "float32" and _pairs_are_faster(reduction, *lengths):
            distances = self._certified(reduction, tile.places, cancel)
            return reduction.shortlist(distances.reshape(tile.shape), Bound(), tile)
        estimates, error = self._estimates(reduction, tile, cancel)
        bound = reduction.scale_and_bound(error)[1] if reduction.single else Bound()
        return reduction.shortlist(estimates, bound, tile)

    dtw_radius_neighbors = dtw_neighbors

    def _dtw_by_numpy(self, reduction: DTWReduction, tile: Tile) -> bool:
        """Whether NumPy computes a tile: see `prefer_numpy`."""
        kernels = dtw.block_kernel, lower_bounds.search, uneven.block_kernel, certified.costs
        warping, sides = reduction.warping, reduction.sides
        some, total = (n_rows * n_cols for n_rows, n_cols in (tile.shape, reduction.shape))

        def able() -> bool:
            held = by_numpy.pairs_bytes(*sides, warping, some)
            return by_numpy.knows(warping, *sides) and held <= most_bytes(self.budget())

        def seconds() -> tuple[float, float]:
            one = partial(by_numpy.seconds, *sides, warping)
            return one(some), one(total)

        return prefer_numpy(seconds, *kernels, able=able, like=cell_of(warping))

    def _all_pairs(
        self, reduction: DTWMatrix | DTWSearch, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of a tile by NumPy."""
        i, j = tile.places.T
        return self._pairs_by_numpy(reduction, i, j, cancel).reshape(tile.shape)

    def _pairs_by_numpy(
        self, reduction: DTWReduction, i: np.ndarray, j: np.ndarray, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of pairs by NumPy."""
        found = []
        for each in reduction.by_channel():
            left, right = each.sides
            costs = by_numpy.pairs(left, right, i, j, each.warping, cancel)
            found.append(settled(each.warping, costs, left.take(i), right.take(j)))
        return added(found)

    def _described(
        self, reduction: DTWReduction, warping: ShapeDTW, pairs: np.ndarray, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of pairs along the best paths between descriptors."""
        left, right = reduction.sides
        total = reduction.shape[0] * reduction.shape[1]

        def able() -> bool:
            n, m, channels = left.n_timepoints, right.n_timepoints, left.n_channels
            held = descriptors.by_numpy_bytes(n, m, channels, warping, len(pairs))
            return held <= most_bytes(self.budget())

        def seconds() -> tuple[float, float]:
            one = partial(descriptors.seconds, left, right, warping)
            return one(len(pairs)), one(total)

        like = cell_of(warping.between_descriptors)
        if prefer_numpy(seconds, trace_kernel, able=able, like=like):
            return descriptors.distances_by_numpy(left, right, pairs, warping, cancel)
        most = most_steps(self.budget())
        return descriptors.distances(left, right, pairs, warping, cancel, most)

    def _estimates(
        self, reduction: DTWMatrix | DTWSearch, tile: Tile, cancel: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Distances of a tile, and the rounding error of the points of both sides."""
        rescaling = None
        if isinstance(reduction, DTWSearch) and reduction.single:
            rescaling = reduction.rescaling
        scale = 1.0 if rescaling is None else rescaling.scale
        found, error = [], 0.0
        for each in reduction.by_channel():
            costs, rounding = self._costs(each, tile, cancel, rescaling)
            rows, cols = (
                side.take(part)
                for side, part in zip(each.sides, (tile.rows, tile.cols), strict=True)
            )
            found.append(settled(each.warping, costs, rows, cols, scale))
            error = max(error, rounding)
        return added(found), error

    def _costs(
        self,
        reduction: DTWReduction,
        tile: Tile,
        cancel: np.ndarray,
        rescaling: Rescaling | None,
    ) -> tuple[np.ndarray, float]:
        """Accumulated costs of a tile, and the rounding error of the points of both sides."""
        dtype: type = np.float64 if rescaling is None else np.float32
        warping, (left, right) = reduction.warping, reduction.sides
        if rescaling is not None:
            warping = warping.rescaled(rescaling)
        rows, cols = left, right
        row_slice, col_slice = tile.rows, tile.cols
        flip = dtw.rows_in_lanes(*tile.shape, dtype)
        if flip:
            warping, rows, cols = warping.flipped, right, left
            row_slice, col_slice = col_slice, row_slice
        order = _by_length(cols.lengths[col_slice])
        packed, lengths, error = self._packed(cols, col_slice, dtype, rescaling, order)
        some = rows.take(row_slice)
        values, row_error = some.values, 0.0
        if rescaling is not None:
            values, row_error = rescaling.apply(values, some.inside)
        costs = dtw.block(values, some.lengths, packed, lengths, warping, cancel)
        costs = costs[:, : col_slice.stop - col_slice.start]
        if order is not None:
            costs = costs[:, np.argsort(order)]
        return costs.T if flip else costs, row_error + error

    def _worth_bounding(self, reduction: DTWSearch, tile: Tile) -> bool:
        """Whether bounds may spare work: long enough series, more candidates than neighbours."""
        n, m = (side.n_timepoints for side in reduction.sides)
        return (
            type(reduction.warping) is Warping
            and reduction.single
            and n + m >= WORTH_BOUNDING
            and tile.shape[1] >= max(2, reduction.n_neighbors // 8) * dtw.LANES[np.float32]
        )

    def _cascade(self, reduction: DTWSearch, tile: Tile, cancel: np.ndarray) -> Shortlist | None:
        """Survivors of a tile, most candidates ruled out by their bounds; None for want of one."""
        warping, k, rescaling = reduction.warping, reduction.n_neighbors, reduction.rescaling
        excluded = reduction.excluded_of(tile)
        packed, lengths, error = self._packed(
            reduction.candidates, tile.cols, np.float32, rescaling
        )
        some = reduction.queries.take(tile.rows)
        values, row_error = rescaling.apply(some.values, some.inside)
        scale, bound = reduction.scale_and_bound(row_error + error)
        deflation = lower_bounds.deflation(some.n_channels, reduction)
        if bound.shrink == 0 or deflation == 0:
            return None
        candidates = lower_bounds.BoundedSeries(packed, lengths, *self._enveloped(reduction, tile))
        margins = lower_bounds.Margins(deflation, scale, bound.shrink, bound.grow, bound.slack)
        queries = lower_bounds.SearchedQueries(
            values,
            np.array(some.lengths),  # Numba has types of its own for arrays that are read-only
            warping.radius(some.lengths[:, None], reduction.candidates.lengths[tile.cols]),
            np.full(len(some), -1) if excluded is None else excluded,
            k,
            lower_bounds.cost_within(reduction.radius, bound, scale, squared=warping.squared),
        )
        cell, *flags = dtw.Flags.of(warping, some.n_channels)
        found, costs = np.empty(tile.shape, np.int64), np.empty(tile.shape, np.float32)
        counts = lower_bounds.search(
            queries, candidates, margins, cell, tuple(flags), (found, costs), cancel
        )
        lists, overflowed = [], []
        for row, count in enumerate(counts):
            estimates = warping.distance(costs[row, :count]) / scale
            farthest = reduction.radius
            if 0 < k <= count:
                farthest = min(farthest, np.sort(bound.upper(estimates))[k - 1])
            keep = bound.lower(estimates) <= farthest
            if k and np.count_nonzero(keep) > survivor_cap(k):
                overflowed.append(row)
                keep[:] = False
            lists.append((np.full(keep.sum(), row), found[row, :count][keep], estimates[keep]))
        of_row, of_col, values = map(np.concatenate, zip(*lists, strict=True))
        return Shortlist(of_row, of_col, values, bound, np.array(overflowed, np.int64))

    def _stepped_search(self, reduction: DTWSearch, tile: Tile, cancel: np.ndarray) -> Shortlist:
        """Survivors of a tile, candidates ruled out by the prices of their steps."""
        queries, series = reduction.sides
        rescaling = reduction.rescaling if reduction.single else None
        some = series.take(tile.cols)
        radius = reduction.warping.largest_radius(queries.lengths, some.lengths)

        def in_type(side: Series) -> tuple[np.ndarray, float]:
            if rescaling is None:
                # a copy, since kernels are compiled for arrays that may be written to
                return side.values.copy(), 0.0
            return rescaling.apply(side.values, side.inside)

        def build() -> tuple[stepped_bounds.RangedCandidates, int]:
            values, error = in_type(some)
            low, high = lower_bounds.envelopes(values, some.lengths, radius, queries.n_timepoints)
            made = stepped_bounds.RangedCandidates(values, low, high, error)
            return made, values.nbytes + low.nbytes + high.nbytes

        key = ("ranges", rescaling, radius, queries.n_timepoints, tile.col, tile.col_stop)
        candidates = self.prepared.get(series.values, key, build)
        rows = queries.take(tile.rows)
        return stepped_bounds.search(
            *(reduction, rows, *in_type(rows), candidates, some),
            reduction.excluded_of(tile),
            cancel,
        )

    def dtw_matrix(self, reduction: DTWMatrix, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """A block of the matrix."""
        if isinstance(reduction.warping, ShapeDTW):
            distances = self._described(reduction, reduction.warping, tile.places, cancel)
            return distances.reshape(tile.shape)
        if self._dtw_by_numpy(reduction, tile):
            return self._all_pairs(reduction, tile, cancel)
        if _pairs_are_faster(reduction, *_lengths_of(reduction, tile)):
            return self._certified(reduction, tile.places, cancel).reshape(tile.shape)
        return self._estimates(reduction, tile, cancel)[0]

    def dtw_pairs(self, reduction: DTWPairs, tile: Tile, cancel: np.ndarray) -> np.ndarray:
        """Certified distances of some pairs."""
        if isinstance(reduction.warping, ShapeDTW):
            pairs = reduction.pairs[tile.rows]
            return self._described(reduction, reduction.warping, pairs, cancel)
        if self._dtw_by_numpy(reduction, tile):
            i, j = reduction.pairs[tile.rows].T
            return self._pairs_by_numpy(reduction, i, j, cancel)
        return self._certified(reduction, reduction.pairs[tile.rows], cancel)

    def dtw_path(self, reduction: DTWPath, tile: Tile, cancel: np.ndarray) -> WarpingPath:
        """A best path."""
        if isinstance(reduction.warping, ShapeDTW):
            path_of = partial(descriptors.path, warping=reduction.warping, cancel=cancel)
            return along_descriptors(reduction, reduction.warping, path_of)
        x, y = (_unpadded(series, 0) for series in reduction.sides)
        path, cost = warping_path.path(x, y, reduction.warping, cancel)
        distance = settled(reduction.warping, np.array([cost]), *reduction.sides)
        return WarpingPath(path, float(distance[0]))

    def dtw_window_search(
        self, reduction: DTWWindowSearch, tile: Tile, cancel: np.ndarray
    ) -> np.ndarray:
        """Nearest candidates of some queries, at every radius."""
        found = np.zeros((tile.shape[0], reduction.radii.size), np.int64)
        window_search.search(
            read_only(reduction.queries.values[tile.rows]),
            read_only(reduction.candidates.values),
            reduction.excluded[tile.rows],
            reduction.radii,
            cell_of(Warping(cost="squared" if reduction.squared else "absolute")),
            reduction.squared,
            found,
            cancel,
        )
        return found

    def _certified(
        self, reduction: DTWMatrix | DTWPairs | DTWSearch, pairs: np.ndarray, cancel: np.ndarray
    ) -> np.ndarray:
        """Distances of pairs, some of which are copied side by side at a time."""
        step, found = _certified_at_a_time(reduction), []
        for each in reduction.by_channel():
            (left, right), warping = each.sides, each.warping
            distances = np.empty(len(pairs))
            # pairs of the same lengths one after the other
            order = np.lexsort((right.lengths[pairs[:, 1]], left.lengths[pairs[:, 0]]))
            for start in range(0, len(pairs), step):
                part = order[start : start + step]
                x, y = left.take(pairs[part, 0]), right.take(pairs[part, 1])
                costs = certified.pairs(x.values, x.lengths, y.values, y.lengths, warping, cancel)
                distances[part] = settled(warping, costs, x, y)
            found.append(distances)
        return added(found)

    def _packed(
        self,
        series: Series,
        part: slice,
        dtype: type,
        rescaling: Rescaling | None,
        order: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Lanes of some series, also in the order of `_by_length`; their points' rounding error."""

        def build() -> tuple[tuple[np.ndarray, np.ndarray, float], int]:
            some = series.take(part)
            if order is not None:
                some = some.take(order)
            values, error = some.values, 0.0
            if rescaling is not None:
                values, error = rescaling.apply(values, some.inside)
            packed, lengths = dtw.pack(values, some.lengths, dtw.LANES[dtype])
            return (packed, lengths, error), packed.nbytes

        key = ("lanes", dtype, rescaling, part.start, part.stop, order is None)
        return self.prepared.get(series.values, key, build)

    def _enveloped(self, reduction: DTWSearch, tile: Tile) -> tuple[np.ndarray, ...]:
        """Column series of a tile in float32, and their envelopes or ranges."""
        queries, series, rescaling = *reduction.sides, reduction.rescaling
        lengths = series.lengths[tile.cols]
        n, longest = queries.n_timepoints, max(queries.n_timepoints, series.n_timepoints)
        radius = reduction.warping.largest_radius(queries.lengths, lengths)
        if reduction.warping.window is None or 2 * radius >= longest:
            n, radius = 1, 0

        def build() -> tuple[tuple[np.ndarray, ...], int]:
            some = series.take(tile.cols)
            values, _ = rescaling.apply(some.values, some.inside)
            made = values, *lower_bounds.envelopes(values, lengths, radius, n)
            return made, sum(array.nbytes for array in made)

        key = ("envelopes", rescaling, radius, n, tile.col, tile.col_stop)
        return self.prepared.get(series.values, key, build)


def _certified_at_a_time(reduction: DTWReduction) -> int:
    """Pairs whose series are copied side by side."""
    left, right = reduction.sides
    return max(1, CERTIFIED_POINTS // (left.n_channels * (left.n_timepoints + right.n_timepoints)))


def _lengths_of(reduction: DTWReduction, tile: Tile) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the row and of the column series of a tile."""
    rows, cols = reduction.sides
    return rows.lengths[tile.rows], cols.lengths[tile.cols]


def _pairs_are_faster(reduction: DTWReduction, rows: np.ndarray, cols: np.ndarray) -> bool:
    """Whether certificates of pairs of series of some lengths take less time than lanes."""
    single = isinstance(reduction, DTWSearch) and reduction.single
    one = reduction.by_channel()[0]
    channels = one.sides[0].n_channels - cell_of(one.warping).own
    dtype = np.float32 if single else np.float64
    return dtw.pairs_are_faster(rows, cols, one.warping, channels, dtype)


def _by_length(lengths: np.ndarray) -> np.ndarray | None:
    """The order of series in lanes, from short to long; None where all have one length.

    All lanes of a group go on to the end of its longest series, and through cells that only the
    widest of their bands holds.
    """
    return None if lengths.min() == lengths.max() else np.argsort(lengths, kind="stable")


def _unpadded(series: Series, index: int) -> np.ndarray:
    """One series without padding, of shape (n_channels, n_timepoints)."""
    return np.ascontiguousarray(series.values[index, :, : series.lengths[index]])
