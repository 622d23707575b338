"""Work of k-Shape: shape-based distances, assignment to centres, centres of clusters.

Conventions, the same for all engines. The correlation of a series x with a centre c at shift s is
the sum over channels and time points t of ``x[t - s] c[t]``: x moves to the right by s. Divided by
both norms it is NCC, and SBD is 1 - max NCC over ``|s| < n_timepoints``. Shifts whose NCC lies
within `TIE` of the maximum tie; the smallest ``|s|`` wins, then the negative one. Centres whose
SBD lies within `TIE` of the smallest tie, and the lowest index wins. Where a norm is 0, NCC is 0.

All values are float64: an engine's rounding (some 1e-15) is so far below `TIE` that all engines
choose alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ._reductions import Reduction, Tile
from ._series import Series, zeros_beside

__all__ = [
    "Assignment",
    "SBDAssign",
    "SBDCenters",
    "SBDMatrix",
    "ShapeDistances",
    "Shapes",
    "choose_shape",
    "leading_shape",
]

#: NCC values and distances that are no further apart than this tie.
TIE = 1e-9
#: The largest eigenvalues count as one where they differ by less than this share of the first.
DEGENERATE = 1e-8
#: An eigenvector is accepted with this residual, relative to its eigenvalue.
RESIDUAL = 1e-12
#: A sum of projections is at rounding level below this share of what it could be.
LEVEL = 1e-9
#: Series of fewer points are scaled to unit norm but not centred, nor are their centres.
SHORT = 3
#: A channel is constant where its range is at most this share of its largest value.
CONSTANT = 2.0**-40
#: Values that are normalised at a time.
NORMALIZED_AT_ONCE = 2**20
#: Points of a block of padded series, which decides the rows of a grid cell.
CELL_POINTS = 2**15


@dataclass(frozen=True, eq=False)
class Shapes:
    """Series that are compared by shape, normalised as the caller wants them.

    Parameters
    ----------
    values : ndarray of shape (n_series, n_channels, n_timepoints), float64, C-contiguous
        Points; unequal lengths are filled with zeros.
    norms : ndarray of shape (n_series,), float64
        Norm of each series over all channels.
    """

    values: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Shapes:
        """Measure the norms of series."""
        return cls(values, np.sqrt(np.einsum("ict,ict->i", values, values)))

    @classmethod
    def normalized(
        cls,
        series: Series,
        *,
        normalize: bool = True,
        short: bool = False,
        width: int | None = None,
    ) -> Shapes:
        """Bring series to one scale and width; those in a file go to a temporary file.

        Parameters
        ----------
        series : Series
            Series as they came, of any lengths.
        normalize : bool, default True
            Whether each channel of each series is z-normalised on its own points; a constant
            channel becomes zeros.
        short : bool, default False
            Whether series are scaled to norm 1 instead.
        width : int or None, default None
            Points to fill up to, with zeros; None is those of the longest.
        """
        shape = len(series), series.n_channels, width or series.n_timepoints
        values = zeros_beside(series.values, shape)
        length = series.n_timepoints
        step = max(1, NORMALIZED_AT_ONCE // values[0].size)
        for start in range(0, len(series), step):
            rows = slice(start, start + step)
            source, target = series.values[rows], values[rows, :, :length]
            if not normalize:
                target[:] = source
            elif short:
                norm = np.sqrt(np.einsum("ict,ict->i", source, source))
                np.divide(source, np.where(norm > 0, norm, 1.0)[:, None, None], out=target)
            else:
                _z_normalize(source, series.lengths[rows], target)
        return cls.of(values)

    def __len__(self) -> int:
        return self.values.shape[0]

    @property
    def n_channels(self) -> int:
        """Channels of every series."""
        return self.values.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Points of every series."""
        return self.values.shape[2]

    def take(self, which: slice | np.ndarray) -> Shapes:
        """Return some of the series: views for a slice, copies for an index array."""
        return Shapes(self.values[which], self.norms[which])


def _z_normalize(source: np.ndarray, lengths: np.ndarray, target: np.ndarray) -> None:
    """Z-normalise series of shape (n_series, n_channels, n_timepoints) on their own points."""
    n_points = lengths[:, None, None]
    outside = np.arange(source.shape[2]) >= n_points
    padded = bool(outside.any())
    known = np.where(outside, source[:, :, :1], source) if padded else source
    low, high = known.min(axis=2, keepdims=True), known.max(axis=2, keepdims=True)
    constant = high - low <= CONSTANT * np.maximum(np.abs(low), np.abs(high))
    # sums of unequal series run over zeros at their end
    np.subtract(source, source.sum(axis=2, keepdims=True) / n_points, out=target)
    if padded:
        np.copyto(target, 0.0, where=outside)
    variance = np.einsum("ict,ict->ic", target, target)[:, :, None] / n_points
    np.multiply(
        target, np.where(constant, 0.0, 1 / np.sqrt(np.where(constant, 1, variance))), target
    )


class ShapeDistances(NamedTuple):
    """Distances and shifts between two sets.

    Attributes
    ----------
    distances : ndarray of shape (n_series, n_centers), float64
        SBD.
    shifts : ndarray of shape (n_series, n_centers), int32
        How far a series moves to the right to match a centre.
    """

    distances: np.ndarray
    shifts: np.ndarray

    def assign(self) -> Assignment:
        """Choose the centre of each series: of those within `TIE` of the nearest the first."""
        near = self.distances <= self.distances.min(axis=1, keepdims=True) + TIE
        labels = near.argmax(axis=1).astype(np.int32)
        rows = np.arange(len(labels))
        return Assignment(labels, self.shifts[rows, labels], self.distances[rows, labels])


class Assignment(NamedTuple):
    """The centre of each series.

    Attributes
    ----------
    labels : ndarray of shape (n_series,), int32
        Which centre.
    shifts : ndarray of shape (n_series,), int32
        How far the series moves to the right to match it.
    distances : ndarray of shape (n_series,), float64
        SBD to it.
    """

    labels: np.ndarray
    shifts: np.ndarray
    distances: np.ndarray


class SBDReduction(Reduction):
    """Work whose steps are correlations of series with centres at all shifts."""

    series: Shapes
    centers: Shapes

    @property
    def shape(self) -> tuple[int, int]:
        """Series and centres."""
        return len(self.series), len(self.centers)

    @property
    def step_work(self) -> int:
        """What a product and a transform take."""
        n = 2 * self.series.n_timepoints
        return n * (self.series.n_channels + max(1, n.bit_length()))

    def work(self, tile: Tile) -> int:
        """Steps that run without a look at the interpreter: those of one cell."""
        return min(tile.shape[0], self.cell_rows) * tile.shape[1] * self.step_work

    @property
    def cell_rows(self) -> int:
        """Series of a grid cell, an even number."""
        fitting = CELL_POINTS // (2 * self.series.n_timepoints)
        return 1 << min(8, max(1, fitting.bit_length() - 1))


@dataclass(frozen=True, eq=False)
class SBDMatrix(SBDReduction):
    """Every distance and shift between two sets of series.

    Parameters
    ----------
    series, centers : Shapes
        Two sets of one width; `shifts` move those of `series`.
    """

    series: Shapes
    centers: Shapes
    method: ClassVar[str] = "sbd_matrix"

    @property
    def cell(self) -> tuple[int, int]:
        """A block of series and one centre."""
        return self.cell_rows, 1

    def result_bytes(self) -> int:
        """Size of both matrices."""
        return 12 * len(self.series) * len(self.centers)

    def part(self, tile: Tile) -> SBDMatrix:
        """Return some series against some centres."""
        return SBDMatrix(self.series.take(tile.rows), self.centers.take(tile.cols))

    def start(self) -> ShapeDistances:
        """Return the empty matrices."""
        return ShapeDistances(np.empty(self.shape), np.empty(self.shape, np.int32))

    def merge(self, total: ShapeDistances, tile: Tile, result: ShapeDistances) -> None:
        """Write a block."""
        total.distances[tile.rows, tile.cols] = result.distances
        total.shifts[tile.rows, tile.cols] = result.shifts


@dataclass(frozen=True, eq=False)
class SBDAssign(SBDReduction):
    """The nearest centre of each series.

    Parameters
    ----------
    series, centers : Shapes
        Two sets of one width.
    """

    series: Shapes
    centers: Shapes
    method: ClassVar[str] = "sbd_assign"

    @property
    def cell(self) -> tuple[int, int]:
        """A block of series and all centres, among which ties are settled."""
        return self.cell_rows, len(self.centers)

    def result_bytes(self) -> int:
        """Size of labels, shifts and distances."""
        return 16 * len(self.series)

    def part(self, tile: Tile) -> SBDAssign:
        """Return some series."""
        return SBDAssign(self.series.take(tile.rows), self.centers)

    def start(self) -> dict[int, Assignment]:
        """Return no parts."""
        return {}

    def merge(self, total: dict[int, Assignment], tile: Tile, result: Assignment) -> None:
        """Keep a part by its first row."""
        total[tile.row] = result

    def finish(self, total: dict[int, Assignment], run: Callable[[Reduction], Any]) -> Assignment:
        """Join the parts; a single one is handed out as it is, so that engines know it again."""
        parts = [total[row] for row in sorted(total)]
        if len(parts) == 1:
            return parts[0]
        return Assignment(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class SBDCenters(Reduction):
    """The centre of each cluster: the leading eigenvector of its aligned members.

    With A the aligned members of a cluster, one a row, channels end to end, S = A' A, and Q the
    projection that centres each channel, a centre is the eigenvector v of Q S Q whose eigenvalue
    is the largest. Where that is degenerate (`DEGENERATE`), v is the projection of the sum of
    the members onto its eigenspace, or of the first member where the sum has none. Its sign makes
    the sum of the members' projections positive; where that is at rounding level (`LEVEL`), that of
    the first member that has one. It is scaled to norm sqrt(n_channels x n_timepoints), or 1 where
    `centered` is False. An empty cluster, and one of zeros, has a centre of zeros.

    Parameters
    ----------
    series : Shapes
        All series.
    labels, shifts : ndarray of shape (n_series,), int32
        Cluster of each series, and how far it moves to the right.
    n_clusters : int
        Number of clusters.
    previous : ndarray of shape (n_clusters, n_channels, n_timepoints) or None
        Centres to start the iteration from; they change nothing but its length.
    centered : bool
        Whether Q centres; short series are not centred.
    """

    series: Shapes
    labels: np.ndarray
    shifts: np.ndarray
    n_clusters: int
    previous: np.ndarray | None = None
    centered: bool = True
    method: ClassVar[str] = "sbd_centers"

    @property
    def shape(self) -> tuple[int, int]:
        """Clusters, one column."""
        return self.n_clusters, 1

    @property
    def step_work(self) -> int:
        """Some twenty products with the members of an average cluster."""
        return 80 * self.series.values.size // self.n_clusters + 1

    @property
    def cell(self) -> tuple[int, int]:
        """One cluster."""
        return 1, 1

    def work(self, tile: Tile) -> int:
        """Steps that run without a look at the interpreter: one product."""
        return 4 * self.series.values.size // self.n_clusters

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the series in the order of their clusters, and where each cluster starts."""
        kind = np.uint8 if self.n_clusters <= 2**8 else np.uint16
        if self.n_clusters > 2**16:
            kind = np.int64
        # a stable sort of short integers is a counting sort
        order = np.argsort(self.labels.astype(kind), kind="stable")
        return order, np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def counts(self) -> np.ndarray:
        """Number of members of each cluster."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    def members(self, cluster: int) -> np.ndarray:
        """Indices of the members of a cluster, ascending."""
        order, starts = self.groups
        return order[starts[cluster] : starts[cluster + 1]]

    def result_bytes(self) -> int:
        """Size of the centres."""
        return 8 * self.n_clusters * self.series.n_channels * self.series.n_timepoints

    def part(self, tile: Tile) -> SBDCenters:
        """Return some clusters with just their members."""
        members = np.sort(np.concatenate([self.members(c) for c in range(tile.row, tile.row_stop)]))
        return SBDCenters(
            self.series.take(members),
            self.labels[members] - np.int32(tile.row),
            self.shifts[members],
            tile.row_stop - tile.row,
            None if self.previous is None else self.previous[tile.rows],
            self.centered,
        )

    def start(self) -> np.ndarray:
        """Return the empty centres."""
        return np.empty((self.n_clusters, *self.series.values.shape[1:]))

    def merge(self, total: np.ndarray, tile: Tile, result: np.ndarray) -> None:
        """Write some centres."""
        total[tile.rows] = result


def center_space(vectors: np.ndarray, n_channels: int, centered: bool) -> np.ndarray:
    """Apply Q: subtract from each channel of each vector its mean, if series are centred."""
    if not centered:
        return vectors
    parts = vectors.reshape(len(vectors), n_channels, -1)
    return (parts - parts.mean(axis=2, keepdims=True)).reshape(vectors.shape)


@lru_cache(maxsize=8)
def generic_vector(n: int) -> np.ndarray:
    """Fixed numbers without pattern, so that no eigenvector is orthogonal to them."""
    k = np.arange(1, n + 1)
    numbers = np.sin(k * k * 0.7310585786300049 + k)
    numbers.flags.writeable = False
    return numbers


def aligned_member(work: SBDCenters, index: int) -> np.ndarray:
    """Q times one series, moved by its shift; of shape (n_channels * n_timepoints,)."""
    source, shift = work.series.values[index], int(work.shifts[index])
    n = source.shape[1]
    low, high = max(0, shift), min(n, n + shift)
    moved = np.zeros(source.shape)
    moved[:, low:high] = source[:, low - shift : high - shift]
    return center_space(moved.reshape(1, -1), len(source), work.centered)[0]


def scaled_center(vector: np.ndarray, centered: bool) -> np.ndarray:
    """Scale a vector of norm 1 to the norm of a centre: that of a z-normalised series, or 1."""
    return vector * np.sqrt(vector.size) if centered else vector


def leading_shape(
    apply: Callable[[np.ndarray], np.ndarray],
    total: np.ndarray,
    guess: np.ndarray,
    n_members: int,
    *,
    dense: Callable[[], tuple[np.ndarray, np.ndarray]],
    member: Callable[[int], np.ndarray],
    max_vectors: int = 128,
    restarts: int = 4,
) -> np.ndarray:
    """Find the centre of one cluster, as `SBDCenters` defines it, of norm 1.

    Block Lanczos iteration with full orthogonalisation, from two vectors: the sum of the members,
    and a guess. Started from the sum, the iteration sees of a degenerate eigenspace the sum's
    projection, which is what is asked for.

    Parameters
    ----------
    apply : callable
        Maps vectors, one a row, to Q S Q times them.
    total : ndarray of shape (n,)
        Q times the sum of the members.
    guess : ndarray of shape (n,)
        Q times a second vector to start from, with a share of `generic_vector`.
    n_members : int
        Number of members.
    dense : callable
        Returns the eigenvalues of Q S Q, descending, and their vectors, one a row: asked where the
        residual stays above `RESIDUAL`.
    member : callable
        Maps a number below `n_members` to Q times that member.
    max_vectors : int, default 128
        Largest dimension before a restart.
    restarts : int, default 4
        How often to start anew before `dense` is asked.

    Returns
    -------
    ndarray of shape (n,)
        The centre, or zeros if all members are zeros.
    """
    values, vectors = _dominant(apply, total, guess, max_vectors, restarts) or dense()
    if values.size and values[0] > 0 and not _seen(vectors, values, total, n_members):
        # of a degenerate eigenspace only what the guess has of it was found
        first = _first_seen(vectors[:1], n_members, member)
        if first is not None:
            found = _dominant(apply, first, guess, max_vectors, restarts)
            values, vectors = found or dense()
    return choose_shape(values, vectors, total, n_members, member)


def _dominant(
    apply: Callable[[np.ndarray], np.ndarray],
    first: np.ndarray,
    guess: np.ndarray,
    max_vectors: int,
    restarts: int,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The largest eigenvalues and their vectors, or None where the iteration does not settle."""
    start = [first, guess]
    for _ in range(restarts):
        values, vectors, settled = krylov(apply, np.array(start), max_vectors)
        if settled:
            return values, vectors
        start = list(vectors)
    return None


def _seen(space: np.ndarray, values: np.ndarray, total: np.ndarray, n_members: int) -> bool:
    """Whether the sum of the members has a part in an eigenspace beyond rounding."""
    return _norm(space @ total) > LEVEL * np.sqrt(n_members * float(values[0]))


def _first_seen(
    space: np.ndarray, n_members: int, member: Callable[[int], np.ndarray]
) -> np.ndarray | None:
    """The first member that has a part in an eigenspace beyond rounding."""
    members = (member(number) for number in range(n_members))
    return next((one for one in members if _norm(space @ one) > LEVEL * _norm(one)), None)


def krylov(
    apply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, max_vectors: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Largest eigenvalues within the space that grows from some vectors.

    Returns
    -------
    values, vectors : ndarray
        The largest, descending, and their Ritz vectors, one a row: all that count as one with the
        first, at least two where there are as many.
    settled : bool
        Whether the residuals of those that count as one are small enough.
    """
    n = start.shape[1]
    max_vectors = min(max_vectors, n + len(start))
    basis = np.empty((max_vectors, n))
    matrix = np.zeros((max_vectors, max_vectors))
    block, _ = _orthonormal(start, basis[:0])
    size, steps = 0, 0
    empty = np.empty(0)
    if len(block) == 0:
        return empty, np.empty((0, n)), True
    while True:
        stop = size + len(block)
        basis[size:stop] = block
        image = apply(block)
        inner = basis[:stop] @ image.T
        matrix[:stop, size:stop] = inner
        matrix[size:stop, :stop] = inner.T
        scale = float(np.abs(np.diagonal(matrix[:stop, :stop])).max())
        block, coupling = _orthonormal(image, basis[:stop], 1e-14 * max(scale, _largest(image)))
        steps += 1
        exhausted = len(block) == 0
        full = stop + len(block) > max_vectors
        # the more vectors, the dearer a look
        if exhausted or full or steps % (2 if steps < 16 else 4) == 0:
            values, mixes = np.linalg.eigh((matrix[:stop, :stop] + matrix[:stop, :stop].T) / 2)
            values, mixes = values[::-1], mixes[:, ::-1]
            count = int(np.sum(values >= values[0] * (1 - DEGENERATE))) if values[0] > 0 else 1
            residuals = np.linalg.norm(coupling @ mixes[size:stop, :count], axis=0)
            settled = exhausted or bool(np.all(residuals <= RESIDUAL * values[0]))
            if settled or full:
                keep = min(max(count, 2), stop)
                return values[:keep], mixes[:, :keep].T @ basis[:stop], settled
        size = stop


def _largest(vectors: np.ndarray) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).max(initial=0.0))


def _orthonormal(
    vectors: np.ndarray, basis: np.ndarray, least: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors for what some vectors add to a basis, and their coordinates in them.

    Vectors that add less than `least` (by default a rounding of their own norm) are dropped.
    """
    rest = vectors.copy()
    for _ in range(2):
        rest -= (rest @ basis.T) @ basis
    found: list[np.ndarray] = []
    coordinates = np.zeros((len(vectors), len(vectors)))
    for row, vector in enumerate(rest):
        floor = 1e-14 * _norm(vectors[row]) if least is None else least
        for _ in range(2):
            for which, other in enumerate(found):
                share = float(other @ vector)
                coordinates[which, row] += share
                vector = vector - share * other
        norm = _norm(vector)
        if norm > floor:
            vector = vector / norm
            # what is small against what it was taken from is not orthogonal yet
            vector -= (basis @ vector) @ basis
            vector /= _norm(vector)
            coordinates[len(found), row] = norm
            found.append(vector)
    return np.array(found).reshape(len(found), vectors.shape[1]), coordinates[: len(found)]


def _norm(vector: np.ndarray) -> float:
    return float(np.sqrt(vector @ vector))


def choose_shape(
    values: np.ndarray,
    vectors: np.ndarray,
    total: np.ndarray,
    n_members: int,
    member: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Pick a centre from eigenvectors, and give it its sign; see `SBDCenters`.

    Parameters
    ----------
    values : ndarray of shape (n_vectors,)
        Eigenvalues, descending: at least those that count as one with the first.
    vectors : ndarray of shape (n_vectors, n)
        Orthonormal eigenvectors, one a row.
    total : ndarray of shape (n,)
        Q times the sum of the members.
    n_members : int
        Their number.
    member : callable
        Maps a number to Q times that member.

    Returns
    -------
    ndarray of shape (n,)
        The centre, of norm 1, or zeros where no eigenvalue is positive.
    """
    if values.size == 0 or not values[0] > 0:
        return np.zeros(total.size)
    space = vectors[values >= values[0] * (1 - DEGENERATE)]
    vector = space[0]

    def direction() -> np.ndarray:
        """The sum of the members where the eigenspace sees it, else the first that it sees."""
        if _seen(space, values, total, n_members):
            return total
        first = _first_seen(space, n_members, member)
        return vector if first is None else first

    if len(space) > 1:
        vector = (space @ direction()) @ space
        vector = vector / _norm(vector)
        space = vector[np.newaxis]
    return -vector if vector @ direction() < 0 else vector
