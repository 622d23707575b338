"""Tiles of k-Shape work on the GPU: what is uploaded, which kernel runs.

CuPy is imported by the methods, so that the engine can be asked whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.constants import MOMENT_POINTS
from ...core.prepared import PreparedStore
from ...core.reduction import Tile
from ...families.kshape.centers import Centers, SBDCenters, center_error, scaled_center
from ...families.kshape.certified import settle_assignment, settle_pairs
from ...families.kshape.distances import (
    Assignment,
    SBDAssign,
    SBDMatrix,
    SBDReduction,
    ShapeDistances,
)
from ...families.kshape.eigenvectors import LEVEL
from ...families.kshape.shapes import Shapes
from .programs import FEW

if TYPE_CHECKING:
    from .centers import Leading
    from .sbd import DeviceShapes, NearestCenters, Spectra

__all__ = ["SBDTiles"]

#: Memory to find the centres of few series stays with them if it is so small a part of all.
FEW_TIMES = 16
#: Clusters of a launch at most: the second extent of its grid.
LARGEST_GRID = 65_535


class SBDTiles:
    """Methods of the GPU engine for k-Shape work."""

    prepared: PreparedStore
    workers: Callable[[int | None], int]

    def _sbd_bytes(self, reduction: SBDReduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile of this shape: series, spectra of pairs and centres."""
        from .sbd import FFT_BATCH, is_short, transform_length

        shapes = reduction.series
        size = shapes.n_channels * shapes.n_timepoints
        spectrum = 0
        if not is_short(shapes):
            spectrum = 16 * shapes.n_channels * transform_length(shapes.n_timepoints)
        # every device keeps its own series
        series = self.workers(None) * rows * (8 * size + spectrum // 2 + 16)
        centers = cols * (8 * size + spectrum)
        return series, centers + 28 * rows * cols + 5 * FFT_BATCH * spectrum

    sbd_matrix_bytes = sbd_assign_bytes = _sbd_bytes

    def sbd_matrix(self, reduction: SBDMatrix, tile: Tile, cancel: np.ndarray) -> ShapeDistances:
        """A block of the matrices."""
        from ..transfers import bring

        *known, _ = self._sbd_distances(reduction, tile)
        found = ShapeDistances(*map(bring, known))
        settle_pairs(reduction, tile, found, cancel)
        return found

    def sbd_assign(self, reduction: SBDAssign, tile: Tile, cancel: np.ndarray) -> Assignment:
        """Centres of some series; labels and shifts of all of them stay on the device, too."""
        from . import sbd

        whole = tile.shape == reduction.shape
        again = self._sbd_again(reduction) if whole else None
        if again is not None:
            found, n_unclear = again.find(reduction.centers, reduction.doubts)
        elif tile.shape[0] >= 2 * sbd.PART and sbd.is_short(reduction.series):
            series = self._sbd_series(reduction.series, tile.row, tile.row_stop)
            centers = self._sbd_centers(reduction, tile)
            nearest, found, n_unclear = sbd.assign_in_parts(series, *centers)
        else:
            nearest = sbd.nearest(*self._sbd_distances(reduction, tile))
            found, n_unclear = nearest.bring()
            self.prepared.get(reduction.series.values, _assigned(), lambda: (True, 0))
        if n_unclear:
            settle_assignment(reduction, tile, found, cancel)
        elif again is None and whole:
            self._sbd_labels(found.labels, found.shifts, (nearest.labels, nearest.shifts))
        return found

    def _sbd_centers(self, reduction: SBDReduction, tile: Tile) -> tuple[DeviceShapes, Any]:
        """Centres of a tile, and the errors of NCC with them, on the device."""
        from ..transfers import send
        from . import sbd

        chosen = reduction.centers.take(tile.cols)
        values, norms, doubts = send(chosen.values, chosen.norms, reduction.doubts[tile.cols])
        return sbd.DeviceShapes(values, norms), doubts

    def _sbd_again(self, reduction: SBDAssign) -> NearestCenters | None:
        """The memory in which centres of few series are found again; None the first time."""
        import cupy

        from . import sbd

        shapes, (n, n_centers) = reduction.series, reduction.shape
        if n >= FEW or not self.prepared.holds(shapes.values, _assigned()):
            return None
        short = sbd.is_short(shapes)
        _, size = self._sbd_bytes(reduction, n, n_centers)
        if FEW_TIMES * size > self.prepared.capacity or not (
            short or sbd.transform_for(shapes.n_timepoints)
        ):
            return None
        compared: Any
        if short:
            compared = self._sbd_series(shapes, 0, n)
            norms = compared.norms
        else:
            compared, norms = self._sbd_spectra(shapes, 0, n)

        def build() -> tuple[NearestCenters, int]:
            shape = n_centers, shapes.n_channels, shapes.n_timepoints
            return sbd.NearestCenters(compared, norms, shape), size

        key = "nearest", cupy.cuda.Device().id, n_centers
        found = self.prepared.get(shapes.values, key, build, size)
        if found.compared is not compared:
            # of a copy that had to make room since
            self.prepared.drop(shapes.values, key)
            found = self.prepared.get(shapes.values, key, build, size)
        return found

    def _sbd_distances(self, reduction: SBDReduction, tile: Tile) -> tuple[Any, Any, Any]:
        """Distances and shifts of a tile, and the errors of NCC with its centres, on the device."""
        from . import sbd

        shapes, rows = reduction.series, (tile.row, tile.row_stop)
        centers, doubts = self._sbd_centers(reduction, tile)
        if sbd.is_short(shapes):
            series = self._sbd_series(shapes, *rows)
            return *sbd.short_distances(series, centers, doubts), doubts
        spectra, series_norms = self._sbd_spectra(shapes, *rows)
        found = sbd.distances(
            spectra,
            series_norms,
            sbd.spectra(centers, paired=False),
            centers.norms,
            doubts,
            shapes.n_timepoints,
        )
        return *found, doubts

    def _sbd_series(self, shapes: Shapes, start: int, stop: int) -> DeviceShapes:
        """Some series on the current device."""
        import cupy

        from . import sbd

        def build() -> tuple[DeviceShapes, int]:
            made = sbd.upload(shapes.take(slice(start, stop)))
            return made, made.values.nbytes + made.norms.nbytes

        key = ("shapes", cupy.cuda.Device().id, start, stop)
        size = 8 * (stop - start) * (shapes.n_channels * shapes.n_timepoints + 1)
        return self.prepared.get(shapes.values, key, build, size)

    def _sbd_spectra(self, shapes: Shapes, start: int, stop: int) -> tuple[Spectra, Any]:
        """Spectra and norms of some series on the current device."""
        import cupy

        from . import sbd

        def build() -> tuple[tuple[Spectra, Any], int]:
            series = self._sbd_series(shapes, start, stop)
            made = sbd.spectra(series, paired=True)
            return (made, series.norms), made.values.nbytes + series.norms.nbytes

        device = cupy.cuda.Device().id
        key = ("pairs", device, start, stop)
        n = sbd.transform_length(shapes.n_timepoints)
        size = 16 * -(-(stop - start) // 2) * shapes.n_channels * n
        if not self.prepared.holds(shapes.values, ("shapes", device, start, stop)):
            size += 8 * (stop - start) * (shapes.n_channels * shapes.n_timepoints + 1)
        return self.prepared.get(shapes.values, key, build, size)

    def _sbd_labels(
        self, labels: np.ndarray, shifts: np.ndarray, known: tuple[Any, Any] | None = None
    ) -> tuple[Any, Any]:
        """Labels and shifts on the current device: those that an assignment left there (`known`).

        The entry holds the array of shifts, so that no other can be taken for it.
        """
        import cupy

        def build() -> tuple[tuple[np.ndarray, tuple[Any, Any]], int]:
            made = known or tuple(cupy.asarray(np.asarray(a, np.int32)) for a in (labels, shifts))
            # beside distances, where they come from an assignment
            return (shifts, made), 16 * labels.size

        key = ("labels", cupy.cuda.Device().id)
        belonging, found = self.prepared.get(labels, key, build)
        return found if belonging is shifts else build()[0][1]

    def _resident_bytes(self, reduction: SBDCenters, rows: int) -> tuple[int, int] | None:
        """Bytes of the series and of work on members beside them; None where members stream."""
        from . import moments
        from .centers import choose_gram, krylov_bytes

        shapes = reduction.series
        n, size = len(shapes), shapes.n_channels * shapes.n_timepoints
        series = 8 * n * size
        if size <= MOMENT_POINTS:
            beside = moments.moment_bytes(n, rows, size)
        elif choose_gram(size) is not None:
            beside = krylov_bytes(n, rows, size)
        else:
            return None
        return (series, beside) if series + beside <= self.prepared.capacity // 2 else None

    def sbd_centers_bytes(self, reduction: SBDCenters, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for some centres: of work on resident members, or of S."""
        from .centers import dense_bytes

        if rows > LARGEST_GRID:
            return 0, 2**62
        shapes = reduction.series
        resident = self._resident_bytes(reduction, rows)
        if resident is None:
            return 0, dense_bytes(shapes.n_channels * shapes.n_timepoints)
        return 0, sum(resident)

    def sbd_centers(self, reduction: SBDCenters, tile: Tile, cancel: np.ndarray) -> Centers:
        """Centres of some clusters, and how far they are at most from the certified ones."""
        from . import centers

        shapes = reduction.series
        n_clusters, size = tile.shape[0], shapes.n_channels * shapes.n_timepoints
        found = Centers(np.zeros((n_clusters, size)), np.zeros(n_clusters))
        device_values, leading = self._resident_centers(reduction, tile, cancel)
        if leading is not None and not np.isnan(leading.errors).any():
            # nothing is left to be found by other means
            return _oriented(leading, reduction)
        for row in range(n_clusters):
            cluster = tile.row + row
            if cancel[0]:
                continue
            if leading is not None and not np.isnan(leading.errors[row]):
                value, error = leading.values[row], leading.errors[row]
                vector, total = leading.vectors[row], leading.totals[row]
                count = leading.counts[row]
                if value == 0 and error == 0:
                    continue
            else:
                square, count = reduction.squares[cluster], reduction.counts[cluster]
                if square == 0:
                    continue
                self.prepared.make_room(centers.dense_bytes(size))
                values, vectors, total = centers.dense_eigenvectors(
                    shapes,
                    device_values,
                    reduction.members(cluster),
                    reduction.shifts,
                    reduction.weights,
                    cancel,
                    centered=reduction.centered,
                )
                value, second = (*values, 0.0)[:2]
                residuals = 2 * (centers.DENSE_RESIDUAL * value,)
                error = center_error((value, second), residuals, square)
                vector = vectors[0]
            # against what the sum of the members could be
            sign = vector @ total / np.sqrt(count * value) if value > 0 else 0.0
            found.errors[row] = error if abs(sign) > 2 * LEVEL + error else np.inf
            found.values[row] = scaled_center(-vector if sign < 0 else vector, reduction.centered)
        values = found.values.reshape(n_clusters, shapes.n_channels, shapes.n_timepoints)
        return found._replace(values=values)

    def _resident_centers(
        self, reduction: SBDCenters, tile: Tile, cancel: np.ndarray
    ) -> tuple[Any, Leading | None]:
        """Series on the device and leading eigenvectors; None for both where members stream."""
        import cupy

        from . import centers, members, moments

        shapes = reduction.series
        size = shapes.n_channels * shapes.n_timepoints
        resident = self._resident_bytes(reduction, tile.shape[0])
        if resident is None:
            return None, None
        values = self._sbd_series(shapes, 0, len(shapes)).values
        where = reduction.labels, reduction.shifts
        n_clusters, weights, centered = reduction.n_clusters, reduction.weights, reduction.centered
        if size <= MOMENT_POINTS:
            # memory beside the series is not counted as prepared: prepared data make room
            self.prepared.make_room(resident[1])
            found = members.sort(*self._sbd_labels(*where), weights, n_clusters, tile.rows)
            return values, moments.leading_vectors(values, found, centered=centered)

        def build() -> tuple[centers.LeadingVectors, int]:
            made = centers.LeadingVectors(
                values, n_clusters, tile.rows, weighted=weights is not None, centered=centered
            )
            return made, resident[1]

        device = cupy.cuda.Device().id
        key = "centres", device, n_clusters, tile.row, tile.row_stop, weights is not None, centered
        previous = None if reduction.previous is None else reduction.previous[tile.rows]

        def counted() -> tuple[np.ndarray, np.ndarray]:
            return reduction.counts[tile.rows], reduction.squares[tile.rows]

        iteration = self.prepared.get(shapes.values, key, build, resident[1])
        if iteration.products.values is not values:
            # of a copy of the series that had to make room since
            self.prepared.drop(shapes.values, key)
            iteration = self.prepared.get(shapes.values, key, build, resident[1])
        if not iteration.on_host:
            where = self._sbd_labels(*where)
        return values, iteration.find(*where, weights, previous, counted, cancel)


def _oriented(leading: Leading, reduction: SBDCenters) -> Centers:
    """Centres of clusters, in the direction of the sums of their members."""
    counts, totals, values, vectors, errors = leading
    # against what the sum of the members could be
    most = np.sqrt(np.where(values > 0, counts * values, np.inf))
    signs = np.einsum("ij,ij->i", vectors, totals) / most
    empty = (values == 0) & (errors == 0)
    errors = np.where(empty | (np.abs(signs) > 2 * LEVEL + errors), errors, np.inf)
    found = scaled_center(np.where(signs[:, np.newaxis] < 0, -vectors, vectors), reduction.centered)
    return Centers(found.reshape(-1, *reduction.series.values.shape[1:]), errors)


def _assigned() -> tuple[str, int]:
    """Key of the mark that series have on the current device once their centres were found there.

    For series that are compared but once, memory that stays would be made in vain.
    """
    import cupy

    return "assigned", cupy.cuda.Device().id
