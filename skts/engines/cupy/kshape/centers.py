"""Centres on the GPU: leading eigenvectors by block Lanczos iteration, or of S itself."""

from __future__ import annotations

from typing import NamedTuple

import cupy as cp
import numpy as np

from ...core.constants import PARTIAL_LANES, STEP_THREADS
from ...families.kshape.centers import LARGEST_ERROR, center_error, center_space, generic_vector
from ...families.kshape.eigenvectors import RESIDUAL
from ...families.kshape.shapes import Shapes
from ..loading import blocks_for, load_kernel
from .members import Members, chunk_rows
from .programs import choose_gram

__all__ = [
    "Products",
    "choose_gram",
    "dense_bytes",
    "dense_eigenvectors",
    "krylov_bytes",
    "leading_vectors",
]

#: Vectors of the basis before the iteration starts anew.
ROOM = 64
RESTARTS = 4
#: Steps after which Ritz values are looked at, whatever the values: when a cluster is done must not
#: depend on the others. A step over few series costs less than a look.
CHECKS = (6, 8, 10, 13, 16, 20, 25)
CHECKS_OF_MANY = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 23, 26, 29)
MANY = 2**25
#: Members whose outer products one multiplication adds up.
DENSE_ROWS = 4096


class Products:
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
        load_kernel(self.kernel.file, self.kernel.names[sums])(
            self.blocks,
            self.kernel.threads,
            values=self.values,
            weights=self.members.weights,
            shifts=self.members.shifts,
            order=self.members.order,
            starts=self.members.starts,
            chunk_starts=self.chunk_starts,
            active=self.active,
            n_clusters=self.n_clusters,
            chunk=self.chunk,
            n_channels=self.n_channels,
            length=self.length,
            vectors=vectors,
            stride=stride,
            partial=self.partial,
        )
        count = self.size * (1 if sums else 2)
        load_kernel("kshape/centers.cu", "collect")(
            (blocks_for(count, 32), self.n_clusters),
            (32, PARTIAL_LANES),
            partial=self.partial,
            chunk_starts=self.chunk_starts,
            active=self.active,
            count=count,
            width=2 * self.size,
            out=out,
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
    products = Products(values, members)
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
            load_kernel("kshape/centers.cu", "combine")(
                (blocks_for(size, 128), k),
                128,
                bases=bases,
                mixes=cp.asarray(mixes),
                known=known,
                room=room,
                size=size,
                out=pairs,
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
    products: Products,
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
    load_kernel("kshape/centers.cu", "extend")(
        products.n_clusters,
        STEP_THREADS,
        pairs=pairs,
        bases=bases,
        known=known,
        room=room,
        n_channels=products.n_channels,
        length=products.length,
        centered=centered,
        active=products.active,
        matrix=matrix,
        coupling=coupling,
        shared_mem=16 * room,
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
        too_close = not least <= LARGEST_ERROR
        done[cluster] = too_close or error <= LARGEST_ERROR
        if done[cluster]:
            leading.values[cluster] = ritz[0]
            leading.errors[cluster] = np.inf if too_close else error
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
        load_kernel("kshape/centers.cu", "align")(
            DENSE_ROWS,
            128,
            values=source,
            weights=None if counted is None else cp.asarray(counted),
            shifts=cp.asarray(moved.astype(np.int32)),
            order=cp.asarray(places.astype(np.int32)),
            first=0,
            count=chunk.size,
            n_channels=n_channels,
            length=length,
            centered=centered,
            out=rows,
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
