"""Centres on the GPU: leading eigenvectors by block Lanczos iteration, or of S itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import cupy as cp
import cupyx
import numpy as np

from ...core.constants import FLOAT64_UNIT, PARTIAL_LANES, SORTED_SERIES, STEP_THREADS
from ...families.kshape.centers import LARGEST_ERROR, center_error, center_space, generic_vector
from ...families.kshape.eigenvectors import RESIDUAL
from ...families.kshape.shapes import Shapes
from ..launch import Copy, Launches
from ..loading import blocks_for, load_kernel
from ..transfers import Near, Staged, bring
from .members import Members, Sorting, chunk_rows
from .programs import FEW, choose_gram

__all__ = [
    "DENSE_RESIDUAL",
    "Leading",
    "LeadingVectors",
    "Products",
    "add_chunks",
    "choose_gram",
    "dense_bytes",
    "dense_eigenvectors",
    "krylov_bytes",
]

#: Vectors of the basis before the iteration starts anew.
ROOM = 64
RESTARTS = 4
#: Steps after which Ritz values are looked at, whatever the values: when a cluster is done must not
#: depend on the others. A step over few series costs less than a look.
CHECKS = (5, 7, 9, 12, 15, 20, 25)
CHECKS_OF_MANY = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 23, 26, 29)
MANY = 2**25
#: Shared memory of a block that holds two vectors, at most; longer ones stay in memory.
SHARED = 46 * 1024
#: Residual of eigenvectors from S itself, relative to the eigenvalue.
#: see "centres" in docs/developer/numerics.rst
DENSE_RESIDUAL = 64 * FLOAT64_UNIT
#: An eigenvector whose norm, or mean of a channel times the root of its points, is off by more, is
#: of a basis that is none.
#: see "centres" in docs/developer/numerics.rst
UNSOUND = 2.0**-40
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
        for launch in self.ready(vectors, stride, None, out, sums=sums):
            launch()

    def ready(
        self,
        vectors: cp.ndarray,
        stride: int,
        known: cp.ndarray | None,
        out: cp.ndarray,
        *,
        sums: bool,
    ) -> list[Callable[[], None]]:
        """Return the launches of `apply`; with `known` for the last two vectors of bases."""
        count = self.size * (1 if sums else 2)
        return [
            load_kernel(self.kernel.file, self.kernel.names[sums]).ready(
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
                known=known,
                partial=self.partial,
            ),
            add_chunks(self.members, self.partial, count, 2 * self.size, out),
        ]


def add_chunks(
    members: Members, partial: cp.ndarray, count: int, width: int, out: cp.ndarray
) -> Callable[[], None]:
    """Return the launch that adds up what chunks of members have: `count` of `width` numbers."""
    return load_kernel("kshape/centers.cu", "collect").ready(
        (blocks_for(count, 32), members.starts.size - 1),
        (32, PARTIAL_LANES),
        partial=partial,
        chunk_starts=members.chunk_starts,
        active=members.active,
        count=count,
        width=width,
        stride=count,
        out=out,
    )


class Leading(NamedTuple):
    """Leading eigenvectors of clusters, on the host.

    Attributes
    ----------
    counts : ndarray of shape (n_clusters,)
        Number of members of each cluster.
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

    counts: np.ndarray
    totals: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    errors: np.ndarray


class LeadingVectors:
    """Finds the leading eigenvectors of clusters of the same series again and again.

    The iteration is that of `leading_shape`, which the CPU runs, for all clusters at once, but that
    it looks at the Ritz values at fixed steps: a cluster is done at the same one whatever other
    clusters do. Each basis grows by two vectors in a step.

    Parameters
    ----------
    values : cupy.ndarray of shape (n_series, n_channels, n_timepoints)
        Series.
    n_clusters : int
        Number of clusters.
    wanted : slice
        Those whose vectors are found.
    weighted : bool
        Whether series count more or less than once.
    centered : bool
        Whether members are centred.
    """

    def __init__(
        self,
        values: cp.ndarray,
        n_clusters: int,
        wanted: slice,
        *,
        weighted: bool,
        centered: bool,
    ) -> None:
        n_series, k = len(values), wanted.stop - wanted.start
        size = values[0].size
        self.last = min(ROOM, 2 * (-(-size // 2) + 1))
        self.room = self.last + 2
        #: Whether labels and shifts are taken from the host.
        self.on_host = n_series < FEW
        given: dict[str, tuple[tuple[int, ...], type]] = {"guess": ((k, size), np.float64)}
        if self.on_host:
            given |= {"labels": ((n_series,), np.int32), "shifts": ((n_series,), np.int32)}
            given |= {"weights": ((n_series,), np.float64)} if weighted else {}
        # `ritz` is both vectors: those to start from, in the end
        self.staged = Staged(
            **given,
            mixes=((k * 2 * self.last,), np.float64),
            ritz=((2, k, size), np.float64),
        )
        guess, *labelled = (self.staged.there[name] for name in given)
        self.sorting = Sorting(
            n_series, n_clusters, wanted, weighted=weighted, given=labelled or None
        )
        self.products = products = Products(values, self.sorting.members)
        self.centered = centered
        self.bases, self.pairs = cp.empty((k, self.room, size)), cp.empty((k, 2, size))
        self.known = cp.empty(k, np.int32)
        # sums of the members, coupling and columns of the matrix lie together: one transfer brings
        # all. The last pair of a basis has no columns.
        found = cp.zeros(k * size + 3 * k + self.last * k * self.room)
        totals, self.report = found[: k * size].reshape(k, size), found[k * size :]
        ritz = self.staged.there["ritz"]
        step = [
            *products.ready(self.bases, self.room * size, self.known, self.pairs, sums=False),
            self._extension(*ritz, begin=False),
        ]
        begin = [
            self.staged.send("guess", [*given][-1]),
            *self.sorting.launches,
            *products.ready(self.pairs, 2 * size, None, totals, sums=True),
            self._extension(totals, guess, begin=True),
        ]
        again = [self._extension(*ritz, begin=True)]
        checks = CHECKS if values.size < MANY else CHECKS_OF_MANY
        stops = [*(check for check in checks if 2 * check < self.last), self.last // 2]
        self.stops = [2 * stop for stop in stops]
        # between two looks at the Ritz values, or before the first
        self.rounds = {
            2 * stop: Launches(step * (stop - before)) for before, stop in pairwise(stops)
        }
        found = found[: k * size + 3 * k + self.stops[0] * k * self.room]
        self.brought = cupyx.empty_pinned(found.shape, found.dtype)
        steps = [*stops[0] * step, Copy(self.brought, found)]
        self.first, self.again = (Launches([*one, *steps]) for one in (begin, again))
        self.mixing = {known: Launches(self._mix(known)) for known in self.stops}

    def _extension(
        self, first: cp.ndarray, second: cp.ndarray, *, begin: bool
    ) -> Callable[[], None]:
        """The launch of `extend`; to begin, from some vectors."""
        k = self.products.n_clusters
        shared = 16 * (self.room + self.products.size)
        held = shared <= SHARED
        return load_kernel("kshape/centers.cu", "extend").ready(
            k,
            STEP_THREADS,
            pairs=self.pairs,
            first=first,
            second=second,
            bases=self.bases,
            known=self.known,
            begin=begin,
            room=self.room,
            n_channels=self.products.n_channels,
            length=self.products.length,
            centered=self.centered,
            held=held,
            active=self.products.active,
            matrix=self.report[3 * k :],
            coupling=self.report,
            shared_mem=shared if held else 16 * self.room,
        )

    def find(
        self,
        labels: Near,
        shifts: Near,
        weights: np.ndarray | None,
        previous: np.ndarray | None,
        counted: Callable[[], tuple[np.ndarray, np.ndarray]],
        cancel: np.ndarray,
    ) -> Leading:
        """Find the leading eigenvectors of all clusters at once, from their aligned members.

        Parameters
        ----------
        labels, shifts : array of shape (n_series,), int32
            Cluster of each series, and how far it moves to the right: `on_host`, or on the device.
        weights : ndarray or None
            How often each counts.
        previous : ndarray of shape (n_clusters, n_channels, n_timepoints) or None
            Centres to start from.
        counted : callable
            Returns the members of each cluster, and the sum of their squared norms: two ndarray of
            shape (n_clusters,). It is called while the device works.
        cancel : ndarray
            Turns 1 on an interrupt.
        """
        here = self.staged.here
        k, size = here["guess"].shape
        here["guess"][...] = generic_vector(size)
        if previous is not None:
            before = previous.reshape(k, size)
            here["guess"] *= 1e-3 * np.sqrt(np.mean(before**2, axis=1, keepdims=True))
            here["guess"] += before
        if self.on_host:
            here["labels"][...], here["shifts"][...] = labels, shifts
            if weights is not None:
                here["weights"][...] = weights
        else:
            self.sorting.take(labels, shifts, weights)
        self.first()
        counts, squares = counted()
        found = Leading(
            counts, np.zeros((k, size)), np.zeros(k), np.zeros((k, size)), np.full(k, np.nan)
        )
        found.errors[squares == 0] = 0.0
        waiting, stream = squares > 0, cp.cuda.get_current_stream()
        for turn in range(RESTARTS):
            if turn:
                self.again()
            for known in self.stops:
                if known != self.stops[0]:
                    self.rounds[known]()
                projected = self._projected(known)
                if cancel[0] or not waiting.any():
                    return found
                mixes, done = _ritz(*projected, squares, waiting, found)
                here["mixes"][: mixes.size] = mixes.ravel()
                self.mixing[known]()
                if done.any():
                    totals = self.brought[: k * size].reshape(k, size)
                    totals = center_space(totals, self.products.n_channels, self.centered)
                    stream.synchronize()
                    found.totals[done], found.vectors[done] = totals[done], here["ritz"][0, done]
                    found.errors[done & ~self._are_sound(found.vectors)] = np.inf
                waiting &= ~done
                if not waiting.any():
                    return found
                if done.any():
                    self.products.active.set(waiting.astype(np.uint8))
        return found

    def _are_sound(self, vectors: np.ndarray) -> np.ndarray:
        """Whether vectors are of norm 1, and centred: what error bounds take for granted."""
        sound = np.abs(np.einsum("ij,ij->i", vectors, vectors) - 1.0) <= UNSOUND
        if self.centered:
            length = self.products.length
            sums = vectors.reshape(len(vectors), -1, length).sum(axis=2)
            sound &= (np.abs(sums) <= UNSOUND * np.sqrt(length)).all(axis=1)
        return sound

    def _projected(self, known: int) -> tuple[np.ndarray, np.ndarray]:
        """Bring S in the bases, of `known` vectors, and the coupling; see `_ritz`."""
        k = self.products.n_clusters
        if known == self.stops[0]:
            cp.cuda.get_current_stream().synchronize()
            report = self.brought[k * self.products.size :]
        else:
            report = bring(self.report[: 3 * k + known * k * self.room])
        columns = report[3 * k :].reshape(known, k, self.room)[:, :, :known]
        return columns.transpose(1, 2, 0), report[: 3 * k].reshape(k, 3)

    def _mix(self, known: int) -> list[Callable[[], None]]:
        """Mix two vectors of each cluster: the first may be the answer, both begin a restart."""
        k, size, staged = self.products.n_clusters, self.products.size, self.staged
        count = k * 2 * known
        combine = load_kernel("kshape/centers.cu", "combine").ready(
            (blocks_for(size, 128), k),
            128,
            bases=self.bases,
            mixes=staged.there["mixes"],
            active=self.products.active,
            known=known,
            room=self.room,
            size=size,
            out=staged.there["ritz"],
        )
        return [
            Copy(staged.there["mixes"][:count], staged.here["mixes"][:count]),
            combine,
            Copy(staged.here["ritz"][0], staged.there["ritz"][0]),
        ]


def _ritz(
    matrix: np.ndarray,
    coupling: np.ndarray,
    squares: np.ndarray,
    waiting: np.ndarray,
    leading: Leading,
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

    Returns
    -------
    mixes : ndarray of shape (n_clusters, 2, known)
        How the two best Ritz vectors are mixed from the basis.
    done : ndarray of bool
        Where the vector is as good as it needs to be, or as it can be.
    """
    k, known, _ = matrix.shape
    mixes = np.zeros((k, 2, known))
    done = np.zeros(k, bool)
    clusters = np.flatnonzero(waiting)
    if clusters.size == 0:
        return mixes, done
    # a column holds products with the vectors before it and with its own pair
    found, vectors = np.linalg.eigh(matrix[clusters], UPLO="U")
    values, best = found[:, :-3:-1], vectors[:, :, :-3:-1]
    mixes[clusters] = best.transpose(0, 2, 1)
    a, b, c = coupling[clusters].T[:, :, np.newaxis]
    residuals = np.hypot(a * best[:, -2] + b * best[:, -1], c * best[:, -1])
    for cluster, ritz, off in zip(
        clusters.tolist(), values.tolist(), residuals.tolist(), strict=True
    ):
        if not off[0] <= RESIDUAL * ritz[0]:
            continue
        square = float(squares[cluster])
        # the second value only grows, so its distance is never more than it is now
        least = center_error((ritz[0], ritz[1]), (0.0, 0.0), square)
        error = center_error((ritz[0], ritz[1]), (off[0], off[1]), square)
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
    """Bytes that `LeadingVectors` takes beside the series: vectors, matrices, sums of chunks."""
    chunks = -(-n_series // chunk_rows(n_series)) + n_clusters
    room = min(ROOM, size + 3) + 2
    vectors = 8 * size * (n_clusters * (room + 6) + 2 * chunks)
    matrices = 8 * n_clusters * ((room - 2) * room + 3)
    counts = 12 * (n_clusters + 1) * blocks_for(n_series, SORTED_SERIES)
    return vectors + matrices + counts + 40 * n_series
