"""Work of k-Shape: shape-based distances, assignment to centres, centres of clusters.

Conventions, the same for all engines. The correlation of a series x with a centre c at shift s is
the sum over channels and time points t of ``x[t - s] c[t]``: x moves to the right by s. Divided by
both norms it is NCC, and SBD is 1 - max NCC over ``|s| < n_timepoints``. Shifts whose NCC lies
within `TIE` of the maximum tie; the smallest ``|s|`` wins, then the negative one. Centres whose
SBD lies within `TIE` of the smallest tie, and the lowest index wins. Where a norm is 0, NCC is 0.

Series that are not z-normalised are scaled by a power of two each, so that nothing leaves the range
of float64; a series whose centred points are constant (`CONSTANT`) adds nothing to a centre.

*Filter and certify.* Engines compute in float64, and their roundings differ. A choice that holds
for every value within the rounding (`SBDReduction.doubts`) is taken from them; any other is marked
`UNCLEAR` and made again from certified values, which have the same bits everywhere
(`certified`, beside this module). The centres of the CPU engine are the certified ones. Another
engine's come with a bound on how far they are from those (`Shapes.errors`); whoever finds a choice
unclear for that reason asks the CPU engine for the centres. So labels and shifts, all that an
iteration hands to the next, are the same on every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import CONSTANT, TIE, UNCLEAR
from ...core.reduction import Reduction, Tile
from ...core.series import Series, zeros_beside
from ...core.verify import Check, Sample, check_value

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

#: The largest eigenvalues count as one where they differ by less than this share of the first.
#: see "shape ties" in docs/developer/numerics.rst
DEGENERATE = 1e-8
#: An eigenvector is accepted with this residual, relative to its eigenvalue.
RESIDUAL = 1e-12
#: A certified one with this residual, relative to the distance of the next eigenvalue, too: it is
#: off by no more.
#: see "centres" in docs/developer/numerics.rst
CERTIFIED_ERROR = 1e-11
#: But no residual needs to be less than this, relative to the eigenvalue: products are no better.
LEAST_RESIDUAL = 4e-15
#: A product of S with a unit vector is off by so many units of sqrt(eigenvalue x squares), where
#: squares are those of all points of the members.
#: see "centres" in docs/developer/numerics.rst
PRODUCT_UNITS = 16
#: Members that are smaller than the largest of their cluster by more powers of two count nothing.
#: see "shape ties" in docs/developer/numerics.rst
LARGEST_POWER = 200
#: Squares of members that are this much larger than the eigenvalue are not centred exactly enough.
#: see "centres" in docs/developer/numerics.rst
LARGEST_OFFSET = 2.0**20
#: A sum of projections is at rounding level below this share of what it could be.
#: see "shape ties" in docs/developer/numerics.rst
LEVEL = 1e-9
#: Series of fewer points are scaled to unit norm but not centred, nor are their centres.
SHORT = 3
#: An NCC that comes from transforms is off by at most so many units for each pass of radix 2.
#: see "transforms" in docs/developer/numerics.rst
UNITS = 16
#: Centres are no further than this from the certified ones, or an engine leaves them to the CPU's.
LARGEST_ERROR = TIE / 8
#: Eigenvalues of plain code are no further from those of an engine than this share.
#: see "self-check" in docs/developer/numerics.rst
CLOSE = 1e-9
#: Members, or points, up to which plain code computes eigenvalues.
MOST_DENSE = 512
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
    exponents : ndarray of shape (n_series,), int32, or None
        The power of two that each series was divided by; None where all are 0.
    errors : ndarray of shape (n_series,), float64, or None
        For centres: how far each, scaled to norm 1, is at most from the certified one. None where
        these are what everything else follows from.
    """

    values: np.ndarray
    norms: np.ndarray
    exponents: np.ndarray | None = None
    errors: np.ndarray | None = None

    @classmethod
    def of(cls, values: np.ndarray, errors: np.ndarray | None = None) -> Shapes:
        """Measure the norms of series."""
        return cls(values, np.sqrt(np.einsum("ict,ict->i", values, values)), None, errors)

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

        A series that is not normalised is divided by the power of two that brings its norm to
        between 1 and 2. What comes out depends on the points of the series alone.

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
        from ...host import shapes

        shape = len(series), series.n_channels, width or series.n_timepoints
        values = zeros_beside(series.values, shape)
        norms, exponents = np.empty(len(series)), np.zeros(len(series), np.int32)
        scale = shapes.z_normalize if normalize and not short else shapes.scale_to_norm
        step = max(1, NORMALIZED_AT_ONCE // values[0].size)
        for start in range(0, len(series), step):
            rows = slice(start, start + step)
            scale(
                series.values[rows],
                series.lengths[rows],
                normalize,
                values[rows],
                norms[rows],
                exponents[rows],
            )
        return cls(values, norms, exponents if exponents.any() else None)

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

    @cached_property
    def spread(self) -> float:
        """The largest norm divided by the least that is not 0."""
        norms = self.norms[self.norms > 0]
        return float(norms.max() / norms.min()) if norms.size else 1.0

    @cached_property
    def flat(self) -> np.ndarray:
        """Which channels of which series are constant, over all their points, as uint8."""
        low, high = self.values.min(axis=2), self.values.max(axis=2)
        return (high - low <= CONSTANT * np.maximum(-low, high)).astype(np.uint8)

    def take(self, which: slice | np.ndarray) -> Shapes:
        """Return some of the series: views for a slice, copies for an index array."""
        known = (self.values, self.norms, self.exponents, self.errors)
        return Shapes(*(None if one is None else one[which] for one in known))


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

    def assign(self, doubts: np.ndarray | float = 0.0) -> Assignment:
        """Choose the centre of each series: of those within `TIE` of the nearest the first.

        Where errors of the distances, up to `doubts` for each centre, could change the choice, the
        shift is `UNCLEAR`.
        """
        low, high = self.distances - doubts, self.distances + doubts
        possible = low <= high.min(axis=1, keepdims=True) + TIE
        labels = possible.argmax(axis=1).astype(np.int32)
        rows = np.arange(len(labels))
        clear = high[rows, labels] <= low.min(axis=1) + TIE
        shifts = np.where(clear, self.shifts[rows, labels], np.int32(UNCLEAR))
        return Assignment(labels, shifts, self.distances[rows, labels])


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

    @property
    def clear(self) -> bool:
        """Whether errors of the centres change no label and no shift."""
        return not np.any(self.shifts == UNCLEAR)


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
    def rounding(self) -> float:
        """How far an NCC that comes from transforms is at most from the certified one.

        Two series may share a transform, and the smaller of them gets the errors of the larger.
        """
        passes = np.log2(2 * self.series.n_timepoints) + np.log2(2 * self.series.n_channels)
        return UNITS * 2.0**-53 * float(passes) * self.series.spread

    @property
    def doubts(self) -> np.ndarray:
        """How far the NCC with each centre is at most from the certified one; (n_centers,)."""
        doubts = np.full(len(self.centers), self.rounding)
        return doubts if self.centers.errors is None else doubts + self.centers.errors

    def plain_distances(self, row: int, col: int) -> tuple[np.ndarray, float]:
        """1 - NCC of a pair at all shifts, by dot products, and how far an engine's may be off.

        Shift s is at place s + n_timepoints - 1.
        """
        scale = self.series.norms[row] * self.centers.norms[col]
        series, center = self.series.values[row], self.centers.values[col]
        sums = sum(
            np.correlate(there, own, "full") for own, there in zip(series, center, strict=True)
        )
        # dot products have a rounding for each point
        error = 2 * float(self.doubts[col]) + 2.0**-53 * (2 * series.size + 8)
        return (1 - sums / scale if scale > 0 else np.ones(sums.size)), error

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

    def verify(self, answer: ShapeDistances, sample: Sample) -> Iterator[Check]:
        """Compare some distances and shifts."""
        for place in sample(answer.distances.size):
            i, j = divmod(place, len(self.centers))
            pair = answer.distances[i, j], answer.shifts[i, j]
            yield from check_shape(self, i, j, *pair)


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

    def verify(self, answer: Assignment, sample: Sample) -> Iterator[Check]:
        """Compare some distances and shifts, and look at the other centres."""
        for row in sample(len(self.series)):
            label = int(answer.labels[row])
            yield from check_shape(self, row, label, answer.distances[row], answer.shifts[row])
            for other in sample(len(self.centers)):
                distances, error = self.plain_distances(row, other)
                least, found = max(0.0, float(distances.min())), float(answer.distances[row])
                item = f"the centre of series {row}, which is not {other}"
                # of centres within TIE of the nearest the first is chosen
                nearer = least < found - TIE - 2 * error
                yield Check(item, (found, label), (least, other), not nearer)


def check_shape(
    work: SBDReduction, row: int, col: int, distance: float, shift: int
) -> Iterator[Check]:
    """Compare distance and shift of a pair; one that is `UNCLEAR` says nothing."""
    distances, error = work.plain_distances(row, col)
    item, least = f"the distance of series {row} and centre {col}", float(distances.min())
    yield check_value(item, distance, max(0.0, least), error)
    if shift != UNCLEAR:
        n = work.series.n_timepoints
        ties = bool(distances[shift + n - 1] <= least + TIE + 2 * error)
        expected = int(np.argmin(distances)) - n + 1
        yield Check(f"the shift of series {row} and centre {col}", int(shift), expected, ties)


@dataclass(frozen=True, eq=False)
class SBDCenters(Reduction):
    """The centre of each cluster: the leading eigenvector of its aligned members.

    With A the aligned members of a cluster, one a row, channels end to end, S = A' A, and Q the
    projection that centres each channel, a centre is the eigenvector v of Q S Q whose eigenvalue
    is the largest. Where that is degenerate (`DEGENERATE`), v is the projection of the sum of
    the members onto its eigenspace, or of the first member where the sum has none. Its sign makes
    the sum of the members' projections positive; where that is at rounding level (`LEVEL`), that of
    the first member that has one. It is scaled to norm sqrt(n_channels x n_timepoints), or 1 where
    `centered` is False. An empty cluster, and one of zeros, has a centre of zeros. A channel of a
    member that is constant as it is aligned (`CONSTANT`) counts as zeros: centred it is rounding.

    The answer is a `Shapes`. Where an engine other than the CPU's finds no centre that is within
    `LARGEST_ERROR` of the certified one, because eigenvalues or signs are too close, that cluster's
    certified centre is computed.

    Parameters
    ----------
    series : Shapes
        All series.
    labels, shifts : ndarray of shape (n_series,), int32
        Cluster of each series, and how far it moves to the right.
    n_clusters : int
        Number of clusters.
    previous : ndarray of shape (n_clusters, n_channels, n_timepoints) or None
        Centres to start an iteration from; certified centres do not depend on them.
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

    @cached_property
    def weights(self) -> np.ndarray | None:
        """What each series was divided by, relative to the largest of its cluster; None where 1."""
        exponents = self.series.exponents
        if exponents is None:
            return None
        # one of zeros has no size
        sized = self.series.norms > 0
        largest = np.full(self.n_clusters, np.iinfo(np.int32).min)
        np.maximum.at(largest, self.labels[sized], exponents[sized])
        powers = np.where(sized, exponents - largest[self.labels], 0)
        # what is smaller by more has no share in a sum of squares
        weights = np.ldexp(1.0, np.maximum(powers, -LARGEST_POWER))
        return np.where(powers < -LARGEST_POWER, 0.0, weights)

    @cached_property
    def squares(self) -> np.ndarray:
        """Sum of the squared norms of each cluster's members, before they are centred."""
        norms = self.series.norms if self.weights is None else self.series.norms * self.weights
        return np.bincount(self.labels, norms * norms, minlength=self.n_clusters)

    def members(self, cluster: int) -> np.ndarray:
        """Indices of the members of a cluster, ascending."""
        order, starts = self.groups
        return order[starts[cluster] : starts[cluster + 1]]

    def result_bytes(self) -> int:
        """Size of the centres."""
        return 8 * self.n_clusters * self.series.n_channels * self.series.n_timepoints

    def part(self, tile: Tile) -> SBDCenters:
        """Return some clusters with just their members."""
        return self._of_clusters(np.arange(tile.row, tile.row_stop))

    def _of_clusters(self, clusters: np.ndarray) -> SBDCenters:
        """Return some clusters, named in ascending order, with just their members."""
        new = np.full(self.n_clusters, -1, np.int32)
        new[clusters] = np.arange(clusters.size, dtype=np.int32)
        members = np.flatnonzero(new[self.labels] >= 0)
        return SBDCenters(
            self.series.take(members),
            new[self.labels[members]],
            self.shifts[members],
            clusters.size,
            None if self.previous is None else self.previous[clusters],
            self.centered,
        )

    def start(self) -> Centers:
        """Return the empty centres."""
        shape = (self.n_clusters, *self.series.values.shape[1:])
        return Centers(np.empty(shape), np.empty(self.n_clusters))

    def merge(self, total: Centers, tile: Tile, result: Centers) -> None:
        """Write some centres."""
        total.values[tile.rows] = result.values
        total.errors[tile.rows] = result.errors

    def finish(self, total: Centers, run: Callable[..., Any]) -> Shapes:
        """Replace centres that are not certain enough by certified ones."""
        values, errors = total
        uncertain = np.flatnonzero(~(errors <= LARGEST_ERROR))
        if uncertain.size:
            values[uncertain] = run(self._of_clusters(uncertain), engine="numba").values
            errors[uncertain] = 0.0
        return Shapes.of(values, errors if errors.any() else None)

    def verify(self, answer: Shapes, sample: Sample) -> Iterator[Check]:
        """See that some centres are leading eigenvectors, by dense algebra."""
        for cluster in sample(self.n_clusters, 4):
            rows = self._plain_members(cluster)
            center, largest = answer.values[cluster].ravel(), 0.0
            if min(rows.shape) <= MOST_DENSE and rows.any():
                largest = float(np.linalg.norm(rows, 2)) ** 2
            item, norm = f"the centre of cluster {cluster}", float(np.linalg.norm(center))
            length = np.sqrt(center.size) if self.centered else 1.0
            squares = float(self.squares[cluster])
            level = CLOSE * largest + 2.0**-40 * squares
            if largest <= level:
                # nothing but rounding: zeros, or any direction
                continue
            yield check_value(f"the norm of {item}", norm, length, CLOSE * length)
            along = rows @ (center / (norm or 1.0))
            yield check_value(item, float(along @ along), largest, level)
            sign = float(along.sum())
            up = sign >= -2 * LEVEL * float(np.abs(along).sum())
            yield Check(f"the sign of {item}", sign, "at least 0", up)

    def _plain_members(self, cluster: int) -> np.ndarray:
        """The aligned members of a cluster, centred."""
        n, weights = self.series.n_timepoints, self.weights
        flat, rows = self.series.flat.astype(bool), []
        for member in np.flatnonzero(self.labels == cluster).tolist():
            shift, row = int(self.shifts[member]), np.zeros(self.series.values.shape[1:])
            if abs(shift) < n:
                values = self.series.values[member]
                row[:, max(0, shift) : n + min(0, shift)] = values[
                    :, max(0, -shift) : n - max(0, shift)
                ]
            if shift == 0:
                row[flat[member]] = 0.0
            if self.centered:
                row = row - row.mean(axis=1, keepdims=True)
            rows.append((row * (1.0 if weights is None else weights[member])).ravel())
        return np.array(rows).reshape(-1, self.series.values[0].size)


def center_error(
    values: tuple[float, float], residuals: tuple[float, float], squares: float
) -> float:
    """Bound how far an approximate leading eigenvector of norm 1 is from the certified one.

    An eigenvector is off by at most its residual divided by the distance to the other eigenvalues.

    Parameters
    ----------
    values : tuple of float
        The two largest eigenvalues, as they were found.
    residuals : tuple of float
        Their residuals.
    squares : float
        Sum of the squared norms of the members, before they are centred.

    Returns
    -------
    float
        Infinite where the eigenvalues may be as good as equal, or the members as good as constant.
    """
    # see "centres" in docs/developer/numerics.rst
    gap = values[0] - values[1] - residuals[1]
    if not gap > 0 or squares > LARGEST_OFFSET * values[0]:
        return np.inf
    rounding = PRODUCT_UNITS * 2.0**-53 * np.sqrt(values[0] * squares)
    # the certified vector has a residual and roundings of its own
    certified = LEAST_RESIDUAL * values[0] + rounding
    return float((residuals[0] + rounding + certified) / gap + CERTIFIED_ERROR)


class Centers(NamedTuple):
    """What a tile finds.

    Attributes
    ----------
    values : ndarray of shape (n_clusters, n_channels, n_timepoints)
        Centres.
    errors : ndarray of shape (n_clusters,)
        How far each, scaled to norm 1, is at most from the certified centre; infinite where it is
        not known.
    """

    values: np.ndarray
    errors: np.ndarray


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
            gap = values[0] - (values[count] if count < stop else 0.0)
            least = min(RESIDUAL * values[0], CERTIFIED_ERROR * gap)
            least = max(least, LEAST_RESIDUAL * values[0])
            settled = exhausted or bool(np.all(residuals <= least))
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
