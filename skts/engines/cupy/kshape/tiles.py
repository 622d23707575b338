"""Tiles of k-Shape work on the GPU: what is uploaded, which kernel runs.

CuPy is imported by the methods, so that the engine can be asked whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.constants import FLOAT64_UNIT
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

if TYPE_CHECKING:
    from .sbd import DeviceShapes, Spectra

__all__ = ["SBDTiles"]

#: Clusters of a launch at most: the second extent of its grid.
LARGEST_GRID = 65_535
#: Residual of eigenvectors from S itself, relative to the eigenvalue.
#: see "centres" in docs/developer/numerics.rst
DENSE_RESIDUAL = 64 * FLOAT64_UNIT


class SBDTiles:
    """Methods of the GPU engine for k-Shape work."""

    prepared: PreparedStore
    workers: Callable[[int | None], int]

    def _sbd_bytes(self, reduction: SBDReduction, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for a tile of this shape: series, spectra of pairs and centres."""
        from .sbd import FFT_BATCH, transform_length

        shapes = reduction.series
        n = transform_length(shapes.n_timepoints)
        size = shapes.n_channels * shapes.n_timepoints
        spectrum = 16 * shapes.n_channels * n
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
        from ..transfers import bring, to_host
        from . import sbd

        on_device = sbd.nearest(*self._sbd_distances(reduction, tile))
        labels, shifts, distances = on_device
        # labels and shifts stay with the user
        found = Assignment(bring(labels), bring(shifts), to_host(distances))
        clear = found.clear
        settle_assignment(reduction, tile, found, cancel)
        if clear and tile.shape == reduction.shape:
            self._sbd_labels(found.labels, found.shifts, (labels, shifts))
        return found

    def _sbd_distances(self, reduction: SBDReduction, tile: Tile) -> tuple[Any, Any, Any]:
        """Distances and shifts of a tile, and the errors of NCC with its centres, on the device."""
        import cupy

        from . import sbd

        series, series_norms = self._sbd_spectra(reduction.series, tile.row, tile.row_stop)
        chosen = reduction.centers.take(tile.cols)
        # one copy for both
        norms, doubts = cupy.asarray(np.stack([chosen.norms, reduction.doubts[tile.cols]]))
        centers = sbd.DeviceShapes(cupy.asarray(chosen.values), norms)
        found = sbd.distances(
            series,
            series_norms,
            sbd.spectra(centers, paired=False),
            norms,
            doubts,
            reduction.series.n_timepoints,
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
            return (shifts, made), 8 * labels.size

        key = ("labels", cupy.cuda.Device().id)
        belonging, found = self.prepared.get(labels, key, build)
        return found if belonging is shifts else build()[0][1]

    def _krylov_bytes(self, shapes: Shapes, n_clusters: int) -> tuple[int, int] | None:
        """Bytes of the series and of iteration on members beside them; None where S is formed."""
        from .centers import choose_gram, krylov_bytes

        n, size = len(shapes), shapes.n_channels * shapes.n_timepoints
        series, beside = 8 * n * size, krylov_bytes(n, n_clusters, size)
        fits = choose_gram(size) is not None and series + beside <= self.prepared.capacity // 2
        return (series, beside) if fits else None

    def sbd_centers_bytes(self, reduction: SBDCenters, rows: int, cols: int) -> tuple[int, int]:
        """Bytes on each device for some centres: of iteration on members, or of S."""
        from .centers import dense_bytes

        if rows > LARGEST_GRID:
            return 0, 2**62
        shapes = reduction.series
        resident = self._krylov_bytes(shapes, rows)
        if resident is None:
            return 0, dense_bytes(shapes.n_channels * shapes.n_timepoints)
        return 0, sum(resident)

    def sbd_centers(self, reduction: SBDCenters, tile: Tile, cancel: np.ndarray) -> Centers:
        """Centres of some clusters, and how far they are at most from the certified ones."""
        from . import centers, members

        shapes = reduction.series
        n_clusters, size = tile.shape[0], shapes.n_channels * shapes.n_timepoints
        resident = self._krylov_bytes(shapes, n_clusters)
        device_values = leading = None
        if resident is not None:
            device_values = self._sbd_series(shapes, 0, len(shapes)).values
            # memory beside the series is not counted as prepared: prepared data make room
            self.prepared.make_room(resident[1])
            labels, shifts = self._sbd_labels(reduction.labels, reduction.shifts)
            sorted_series = members.sort(
                labels, shifts, reduction.weights, reduction.n_clusters, tile.rows
            )
            previous = None if reduction.previous is None else reduction.previous[tile.rows]
            leading = centers.leading_vectors(
                device_values,
                sorted_series,
                previous,
                reduction.squares[tile.rows],
                cancel,
                centered=reduction.centered,
            )
        found = Centers(np.zeros((n_clusters, size)), np.zeros(n_clusters))
        for row in range(n_clusters):
            cluster = tile.row + row
            if reduction.squares[cluster] == 0 or cancel[0]:
                continue
            if leading is not None and not np.isnan(leading.errors[row]):
                value, error = leading.values[row], leading.errors[row]
                vector, total = leading.vectors[row], leading.totals[row]
            else:
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
                residuals = 2 * (DENSE_RESIDUAL * value,)
                error = center_error((value, second), residuals, reduction.squares[cluster])
                vector = vectors[0]
            # against what the sum of the members could be
            sign = vector @ total / np.sqrt(reduction.counts[cluster] * value) if value > 0 else 0.0
            found.errors[row] = error if abs(sign) > 2 * LEVEL + error else np.inf
            found.values[row] = scaled_center(-vector if sign < 0 else vector, reduction.centered)
        values = found.values.reshape(n_clusters, shapes.n_channels, shapes.n_timepoints)
        return found._replace(values=values)
