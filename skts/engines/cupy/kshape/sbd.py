"""k-Shape on the GPU: transforms, the counting sort, and centres by block Lanczos iteration."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from ...families.kshape.centers import LARGEST_ERROR, center_error, center_space, generic_vector
from ...families.kshape.eigenvectors import RESIDUAL
from ...families.kshape.shapes import Shapes
from ..loading import load_kernel
from .programs import Transform, choose_gram, choose_transform

__all__ = [
    "DeviceShapes",
    "Members",
    "Spectra",
    "choose_gram",
    "dense_eigenvectors",
    "distances",
    "leading_vectors",
    "nearest",
    "sort",
    "spectra",
    "upload",
]

#: Pairs of series of one call of cuFFT: always as many, so that no transform depends on the split.
FFT_BATCH = 64
#: Vectors of the basis before the iteration starts anew.
ROOM = 64
RESTARTS = 4
#: Steps after which Ritz values are looked at, whatever the values: when a cluster is done must not
#: depend on the others. A step over few series costs less than a look.
CHECKS = (6, 8, 10, 13, 16, 20, 25)
CHECKS_OF_MANY = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 23, 26, 29)
MANY = 2**25
#: Members of a chunk: at least so many, and more where there would be too many chunks.
CHUNK = 16
CHUNKS = 2048
#: Members whose outer products one multiplication adds up.
DENSE_ROWS = 4096


def _launch(
    name: str,
    grid: tuple[int, ...],
    threads: int | tuple[int, ...],
    arguments: tuple[Any, ...],
    shared: int = 0,
) -> None:
    """Run a kernel of ``shapes.cu``."""
    kernel = load_kernel("kshape/shapes.cu", name)
    block = threads if isinstance(threads, tuple) else (threads,)
    kernel(grid, block, arguments, shared_mem=shared)


class DeviceShapes(NamedTuple):
    """Series on the device: values (n_series, n_channels, n_timepoints) and norms, float64."""

    values: cp.ndarray
    norms: cp.ndarray


class Spectra(NamedTuple):
    """Spectra of pairs of series (n_pairs, n_channels, n), or of single ones."""

    values: cp.ndarray
    transform: Transform | None

    @property
    def n(self) -> int:
        """Points of a transform."""
        return self.values.shape[2]


def upload(shapes: Shapes) -> DeviceShapes:
    """Copy series to the device."""
    return DeviceShapes(cp.asarray(shapes.values), cp.asarray(shapes.norms))


def fft_length(n_timepoints: int) -> int:
    """Points of a transform of cuFFT: no prime factor above 7."""
    n = 2 * n_timepoints - 1
    while True:
        rest = n
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


def transform_for(n_timepoints: int) -> Transform | None:
    """The fused transform that fits this device, None where the series are too long for it."""
    limit = cp.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return choose_transform(n_timepoints, int(limit))


def transform_length(n_timepoints: int) -> int:
    """Points of the transforms of series."""
    transform = transform_for(n_timepoints)
    return fft_length(n_timepoints) if transform is None else transform.n


@cache
def _roots(n: int, device: int) -> cp.ndarray:
    """exp(2 pi i k / n), correctly rounded but for a few."""
    angle = 2 * np.pi * np.arange(n, dtype=np.longdouble) / n
    return cp.asarray((np.cos(angle) + 1j * np.sin(angle)).astype(np.complex128))


def spectra(shapes: DeviceShapes, *, paired: bool) -> Spectra:
    """Transform series, two by two (one the real, one the imaginary part) or one by one."""
    n_series, n_channels, length = shapes.values.shape
    step = 2 if paired else 1
    n_pairs = -(-n_series // step)
    transform = transform_for(length)
    if transform is None:
        n = fft_length(length)
        out = cp.empty((n_pairs, n_channels, n), np.complex128)
        block = cp.zeros((FFT_BATCH, n_channels, n), np.complex128)
        for start in range(0, n_pairs, FFT_BATCH):
            stop = min(start + FFT_BATCH, n_pairs)
            block[:] = 0
            for which in range(step):
                rows = shapes.values[step * start + which : step * stop : step]
                part = block.imag if which else block.real
                part[: len(rows), :, :length] = rows
            out[start:stop] = cp.fft.fft(block, axis=2)[: stop - start]
        return Spectra(out, None)
    out = cp.empty((n_pairs, n_channels, transform.n), np.complex128)
    kernel = load_kernel(transform.file, transform.names[0], transform.shared_bytes)
    kernel(
        (-(-n_pairs // transform.batch), n_channels),
        (transform.threads, transform.batch),
        (
            shapes.values,
            np.int32(n_series),
            np.int32(n_channels),
            np.int32(length),
            np.int32(step),
            _roots(transform.n, cp.cuda.Device().id),
            out,
        ),
        shared_mem=transform.shared_bytes,
    )
    return Spectra(out, transform)


def distances(
    series: Spectra,
    norms: cp.ndarray,
    centers: Spectra,
    center_norms: cp.ndarray,
    doubts: cp.ndarray,
    length: int,
) -> tuple[cp.ndarray, cp.ndarray]:
    """Distances and shifts of paired series and single centres, (n_series, n_centers) each.

    Shifts that errors of the NCC with a centre, at most its `doubts`, could change are `UNCLEAR`.
    """
    n_series, n_centers = norms.size, center_norms.size
    found = cp.empty((n_series, n_centers))
    shifts = cp.empty((n_series, n_centers), np.int32)
    n_pairs, n_channels, n = series.values.shape
    transform = series.transform
    if transform is None:
        block = cp.zeros((FFT_BATCH, n), np.complex128)
        for start in range(0, n_pairs, FFT_BATCH):
            stop = min(start + FFT_BATCH, n_pairs)
            for center in range(n_centers):
                product = series.values[start:stop] * centers.values[center].conj()
                block[: stop - start] = product.sum(axis=1) if n_channels > 1 else product[:, 0]
                values = cp.fft.ifft(block, axis=1, norm="forward")
                _launch(
                    "longest",
                    (stop - start,),
                    256,
                    (
                        values,
                        np.int32(n),
                        np.int32(length),
                        np.int64(2 * start),
                        np.int64(n_series),
                        norms,
                        center_norms,
                        doubts,
                        np.int32(center),
                        np.int32(n_centers),
                        found,
                        shifts,
                    ),
                )
        return found, shifts
    blocks = -(-n_pairs // transform.batch)
    # few series: the centres go to several blocks
    enough = 4 * cp.cuda.Device().attributes["MultiProcessorCount"]
    groups = min(n_centers, max(1, -(-enough // blocks)))
    per_block = -(-n_centers // groups)
    kernel = load_kernel(transform.file, transform.names[1], transform.shared_bytes)
    kernel(
        (blocks, -(-n_centers // per_block)),
        (transform.threads, transform.batch),
        (
            series.values,
            norms,
            np.int32(n_series),
            np.int32(n_channels),
            np.int32(length),
            centers.values,
            center_norms,
            doubts,
            np.int32(n_centers),
            np.int32(per_block),
            _roots(transform.n, cp.cuda.Device().id),
            found,
            shifts,
        ),
        shared_mem=transform.shared_bytes,
    )
    return found, shifts


def nearest(
    found: cp.ndarray, shifts: cp.ndarray, doubts: cp.ndarray
) -> tuple[cp.ndarray, cp.ndarray, cp.ndarray]:
    """Label, shift and distance of each series; the shift is `UNCLEAR` where either is."""
    n_series, n_centers = found.shape
    labels, label_shifts = (cp.empty(n_series, np.int32) for _ in range(2))
    label_distances = cp.empty(n_series)
    _launch(
        "nearest",
        (-(-n_series // 256),),
        256,
        (
            found,
            shifts,
            doubts,
            np.int64(n_series),
            np.int32(n_centers),
            labels,
            label_shifts,
            label_distances,
        ),
    )
    return labels, label_shifts, label_distances


class Members(NamedTuple):
    """Series by cluster.

    Attributes
    ----------
    order : cupy.ndarray of int32
        Series, cluster by cluster, ascending within each.
    starts : cupy.ndarray of int64
        Where each cluster starts in `order`, and the end.
    shifts : cupy.ndarray of int32
        Shift of each series, in their own order.
    chunk_starts : cupy.ndarray of int32
        The first chunk of members of each cluster, and their number.
    active : cupy.ndarray of uint8
        Clusters that are worked on.
    weights : cupy.ndarray of float64 or numpy.intp
        How often each series counts, in their own order; a null pointer where once.
    """

    order: cp.ndarray
    starts: cp.ndarray
    shifts: cp.ndarray
    chunk_starts: cp.ndarray
    active: cp.ndarray
    weights: cp.ndarray | np.intp


def pointer(weights: np.ndarray | None) -> cp.ndarray | np.intp:
    """Copy weights to the device; a null pointer for None."""
    return np.intp(0) if weights is None else cp.asarray(weights)


def sort(
    labels: cp.ndarray,
    shifts: cp.ndarray,
    weights: np.ndarray | None,
    n_clusters: int,
    wanted: slice,
) -> Members:
    """Sort series by label (counts of blocks, running sums, places), and describe some clusters."""
    n_series = labels.size
    blocks = -(-n_series // 1024)
    counts = cp.empty((n_clusters, blocks), np.int32)
    _launch("count", (blocks,), 256, (labels, np.int64(n_series), np.int32(n_clusters), counts))
    ends = cp.cumsum(counts.ravel(), dtype=np.int64)
    order = cp.empty(n_series, np.int32)
    _launch("scatter", (blocks,), 256, (labels, np.int64(n_series), counts, ends, order))
    n_wanted = wanted.stop - wanted.start
    starts = cp.empty(n_wanted + 1, np.int64)
    chunk_starts = cp.empty(n_wanted + 1, np.int32)
    active = cp.empty(n_wanted, np.uint8)
    chunk = chunk_rows(n_series)
    _launch(
        "bounds",
        (1,),
        256,
        (
            ends,
            np.int64(blocks),
            np.int32(wanted.start),
            np.int32(n_wanted),
            np.int32(chunk),
            starts,
            chunk_starts,
            active,
        ),
    )
    return Members(order, starts, shifts, chunk_starts, active, pointer(weights))


def chunk_rows(n_series: int) -> int:
    """Members of a chunk, by the number of all series alone."""
    return max(CHUNK, -(-n_series // CHUNKS))


class _Products:
    """Products of S with two vectors a cluster, for all clusters at once."""

    def __init__(self, values: cp.ndarray, members: Members) -> None:
        self.values, self.members = values, members
        n_series, self.n_channels, self.length = values.shape
        self.size = self.n_channels * self.length
        self.n_clusters = members.starts.size - 1
        kernel = choose_gram(self.size)
        assert kernel is not None, "for so many points S is formed instead"
        self.kernel = kernel
        self.chunk = chunk_rows(n_series)
        self.chunk_starts, self.active = members.chunk_starts, members.active
        self.blocks = -(-n_series // self.chunk) + self.n_clusters
        self.partial = cp.empty((self.blocks, 2, self.size))

    def apply(self, vectors: cp.ndarray, stride: int, out: cp.ndarray, *, sums: bool) -> None:
        """Write S times the vectors, or the sum of the members, to out[cluster]."""
        name = self.kernel.names[sums]
        kernel = load_kernel(self.kernel.file, name)
        kernel(
            (self.blocks,),
            (self.kernel.threads,),
            (
                self.values,
                self.members.weights,
                self.members.shifts,
                self.members.order,
                self.members.starts,
                self.chunk_starts,
                self.active,
                np.int32(self.n_clusters),
                np.int32(self.chunk),
                np.int32(self.n_channels),
                np.int32(self.length),
                vectors,
                np.int64(stride),
                self.partial,
            ),
        )
        count = self.size * (1 if sums else 2)
        _launch(
            "collect",
            (-(-count // 32), self.n_clusters),
            (32, 16),
            (
                self.partial,
                self.chunk_starts,
                self.active,
                np.int64(count),
                np.int64(2 * self.size),
                out,
            ),
        )


class Leading(NamedTuple):
    """The result of `leading_vectors`, on the host.

    Attributes
    ----------
    totals : ndarray of shape (n_clusters, size)
        Sum of the members of each cluster, centred.
    values : ndarray of shape (n_clusters,)
        Largest eigenvalue of each cluster; 0 for one without members or of zeros.
    vectors : ndarray of shape (n_clusters, size)
        Its vector.
    errors : ndarray of shape (n_clusters,)
        How far that is at most from the certified one: infinite where eigenvalues are too close to
        tell, NaN where the iteration did not settle.
    """

    totals: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    errors: np.ndarray


def leading_vectors(
    values: cp.ndarray,
    members: Members,
    previous: np.ndarray | None,
    squares: np.ndarray,
    cancel: np.ndarray,
    *,
    centered: bool,
) -> Leading:
    """Find the leading eigenvectors of all clusters at once, from their aligned members.

    The iteration is that of `leading_shape`, which the CPU runs, but that it looks at the Ritz
    values at fixed steps: a cluster is done at the same one whatever other clusters do.

    Parameters
    ----------
    values : cupy.ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    members : Members
        Series by cluster.
    previous : ndarray of shape (n_clusters, n_channels, n_timepoints) or None
        Centres to start from.
    squares : ndarray of shape (n_clusters,)
        Sum of the squared norms of the members of each cluster.
    cancel : ndarray
        Turns 1 on an interrupt.
    centered : bool
        Whether members are centred.
    """
    products = _Products(values, members)
    size, k = products.size, products.n_clusters
    last = min(ROOM, 2 * (-(-size // 2) + 1))
    room = last + 2
    guess = np.broadcast_to(generic_vector(size), (k, size))
    if previous is not None:
        before = previous.reshape(k, size)
        guess = before + 1e-3 * np.sqrt(np.mean(before**2, axis=1, keepdims=True)) * guess
    pairs = cp.empty((k, 2, size))
    products.apply(pairs, 2 * size, pairs, sums=True)
    sums = pairs.get()
    sums[:, 1] = guess
    totals = center_space(sums[:, 0], products.n_channels, centered)
    pairs.set(sums)
    bases = cp.empty((k, room, size))
    matrix, coupling = cp.zeros((k, room, room)), cp.zeros((k, 3))
    found = Leading(totals, np.zeros(k), np.zeros((k, size)), np.full(k, np.nan))
    found.errors[squares == 0] = 0.0
    waiting = squares > 0
    if not waiting.any():
        return found
    if not waiting.all():
        products.active.set(waiting.astype(np.uint8))
    checks = CHECKS if values.size < MANY else CHECKS_OF_MANY
    for _ in range(RESTARTS):
        _extend(products, pairs, bases, 0, matrix, coupling, centered=centered)
        for known in range(2, last + 1, 2):
            products.apply(bases[:, known - 2 :], room * size, pairs, sums=False)
            _extend(products, pairs, bases, known, matrix, coupling, centered=centered)
            if known < last and known // 2 not in checks:
                continue
            if cancel[0]:
                return found
            mixes, done = _ritz(
                matrix[:, :known, :known].get(), coupling.get(), squares, waiting, found, room
            )
            _launch(
                "combine",
                (-(-size // 128), k),
                128,
                (bases, cp.asarray(mixes), *map(np.int32, (known, room, size)), pairs),
            )
            if done.any():
                vectors = pairs.get()
                found.vectors[done] = vectors[done, 0]
            waiting &= ~done
            if not waiting.any():
                return found
            products.active.set(waiting.astype(np.uint8))
    return found


def _extend(
    products: _Products,
    pairs: cp.ndarray,
    bases: cp.ndarray,
    known: int,
    matrix: cp.ndarray,
    coupling: cp.ndarray,
    *,
    centered: bool,
) -> None:
    """Make the pairs the next vectors of the bases, which have `known` so far."""
    room = bases.shape[1]
    _launch(
        "extend",
        (products.n_clusters,),
        1024,
        (
            pairs,
            bases,
            *map(np.int32, (known, room, products.n_channels, products.length, centered)),
            products.active,
            matrix,
            coupling,
        ),
        shared=16 * room,
    )


def _ritz(
    matrix: np.ndarray,
    coupling: np.ndarray,
    squares: np.ndarray,
    waiting: np.ndarray,
    leading: Leading,
    room: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Look at the Ritz values of the clusters that wait.

    Parameters
    ----------
    matrix : ndarray of shape (n_clusters, known, known)
        S in the basis of each cluster.
    coupling : ndarray of shape (n_clusters, 3)
        Parts of S times the last two vectors outside of the basis: (a, b, c) of [a b; 0 c].
    squares : ndarray of shape (n_clusters,)
        Sum of the squared norms of the members of each cluster.
    waiting : ndarray of bool
        Clusters to look at.
    leading : Leading
        Gets eigenvalues and errors of those that are done.
    room : int
        Vectors that a basis has room for.

    Returns
    -------
    mixes : ndarray of shape (n_clusters, 2, room)
        How the two best Ritz vectors are mixed from the basis.
    done : ndarray of bool
        Where the vector is as good as it needs to be, or as it can be.
    """
    k, known, _ = matrix.shape
    mixes = np.zeros((k, 2, room))
    done = np.zeros(k, bool)
    clusters = np.flatnonzero(waiting)
    if clusters.size == 0:
        return mixes, done
    # a column holds products with the vectors before it and with its own pair
    found, vectors = np.linalg.eigh(matrix[clusters], UPLO="U")
    for cluster, ritz, rows in zip(
        clusters, found[:, ::-1], vectors.transpose(0, 2, 1)[:, ::-1], strict=True
    ):
        mixes[cluster, :, :known] = rows[:2]
        a, b, c = coupling[cluster]
        first, second = (
            float(np.hypot(a * row[-2] + b * row[-1], c * row[-1])) for row in rows[:2]
        )
        if not first <= RESIDUAL * ritz[0]:
            continue
        # the second value only grows, so its distance is never more than it is now
        least = center_error((ritz[0], ritz[1]), (0.0, 0.0), squares[cluster])
        error = center_error((ritz[0], ritz[1]), (first, second), squares[cluster])
        hopeless = not least <= LARGEST_ERROR
        done[cluster] = hopeless or error <= LARGEST_ERROR
        if done[cluster]:
            leading.values[cluster] = ritz[0]
            leading.errors[cluster] = np.inf if hopeless else error
    return mixes, done


def dense_eigenvectors(
    shapes: Shapes,
    device_values: cp.ndarray | None,
    order: np.ndarray,
    shifts: np.ndarray,
    weights: np.ndarray | None,
    cancel: np.ndarray,
    *,
    centered: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the largest eigenvalues of one cluster from S itself; members may stream.

    Parameters
    ----------
    shapes : Shapes
        All series, on the host.
    device_values : cupy.ndarray or None
        The same on the device, if they fit.
    order : ndarray
        Members of the cluster.
    shifts : ndarray
        Shift of each series.
    weights : ndarray or None
        How often each counts; None is once.
    cancel : ndarray
        Turns 1 on an interrupt.
    centered : bool
        Whether members are centred.

    Returns
    -------
    values, vectors : ndarray
        The two largest eigenvalues, descending, and their vectors, one a row.
    total : ndarray
        Sum of the members.
    """
    n_channels, length = shapes.n_channels, shapes.n_timepoints
    size = n_channels * length
    S, total = cp.zeros((size, size)), cp.zeros(size)
    rows = cp.empty((DENSE_ROWS, size))
    for start in range(0, order.size, DENSE_ROWS):
        if cancel[0]:
            break
        chunk = order[start : start + DENSE_ROWS]
        source = None  # the chunk before goes first
        if device_values is None:
            source = cp.asarray(shapes.values[chunk])
            places, moved = np.arange(chunk.size), shifts[chunk]
            counted = None if weights is None else weights[chunk]
        else:
            source, places, moved, counted = device_values, chunk, shifts, weights
        _launch(
            "align",
            (DENSE_ROWS,),
            128,
            (
                source,
                pointer(counted),
                cp.asarray(moved.astype(np.int32)),
                cp.asarray(places.astype(np.int32)),
                np.int64(0),
                np.int64(chunk.size),
                *map(np.int32, (n_channels, length, centered)),
                rows,
            ),
        )
        S += rows.T @ rows
        total += rows.sum(axis=0)
    values, vectors = cp.linalg.eigh(S)
    return values[-2:].get()[::-1], vectors.T[::-1][:2].get(), total.get()


def dense_bytes(size: int) -> int:
    """Bytes that `dense_eigenvectors` takes."""
    return 8 * (5 * size * size + 2 * DENSE_ROWS * size)


def krylov_bytes(n_series: int, n_clusters: int, size: int) -> int:
    """Bytes that `leading_vectors` takes beside the series: bases, pairs, sums of chunks."""
    chunks = -(-n_series // chunk_rows(n_series)) + n_clusters
    return 8 * size * (n_clusters * (min(ROOM, size + 4) + 8) + 2 * chunks) + 40 * n_series
