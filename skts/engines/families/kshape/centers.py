"""Centres of clusters: the leading eigenvectors of their aligned members."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...core.constants import FLOAT64_UNIT, TIE
from ...core.reduction import Reduction, Tile
from ...core.registry import REFERENCE
from ...core.verify import Check, Sample, check_value
from .eigenvectors import CERTIFIED_ERROR, LEAST_RESIDUAL, LEVEL
from .shapes import Shapes

__all__ = [
    "LARGEST_ERROR",
    "Centers",
    "SBDCenters",
    "center_error",
    "center_space",
    "generic_vector",
    "scaled_center",
]

#: A product of S with a unit vector is off by so many units of sqrt(eigenvalue x squares), where
#: squares are those of all points of the members.
#: see "centres" in docs/developer/numerics.rst
PRODUCT_UNITS = 16
#: Members that are smaller than the largest of their cluster by more powers of two count nothing.
#: see "shape ties" in docs/developer/numerics.rst
LARGEST_POWER = 200
#: Series from which on members are counted by a compiled function: for fewer NumPy takes no longer.
MANY_LABELS = 2**18
#: Squares of members that are this much larger than the eigenvalue are not centred exactly enough.
#: see "centres" in docs/developer/numerics.rst
LARGEST_OFFSET = 2.0**20
#: Centres are no further than this from the certified ones, or an engine leaves them to the CPU's.
LARGEST_ERROR = TIE / 8
#: Eigenvalues of plain code are no further from those of an engine than this share.
#: see "self-check" in docs/developer/numerics.rst
CLOSE = 1e-9
#: Members, or points, up to which plain code computes eigenvalues.
MOST_DENSE = 512


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
        """Steps between two checks for Ctrl-C: one product."""
        return 4 * self.series.values.size // self.n_clusters

    @cached_property
    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the series in the order of their clusters, and where each cluster starts."""
        # a stable sort of short integers is a counting sort
        short = self.labels.astype(np.min_scalar_type(self.n_clusters - 1))
        order = np.argsort(short, kind="stable")
        return order, np.concatenate([[0], np.cumsum(self.counts)])

    @property
    def counts(self) -> np.ndarray:
        """Number of members of each cluster."""
        return self._counted[0]

    @cached_property
    def weights(self) -> np.ndarray | None:
        """The divisor of each series over the largest of its cluster; None where all are 1."""
        exponents = self.series.exponents
        if exponents is None:
            return None
        # a series of zeros has no exponent
        sized = self.series.norms > 0
        largest = np.full(self.n_clusters, np.iinfo(np.int32).min)
        np.maximum.at(largest, self.labels[sized], exponents[sized])
        powers = np.where(sized, exponents - largest[self.labels], 0)
        # smaller ones do not change a sum of squares
        weights = np.ldexp(1.0, np.maximum(powers, -LARGEST_POWER))
        return np.where(powers < -LARGEST_POWER, 0.0, weights)

    @property
    def squares(self) -> np.ndarray:
        """Sum of the squared norms of each cluster's members, before they are centred."""
        return self._counted[1]

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Both of these, in one pass over the labels where there are many."""
        squares, n = self.series.squares, self.n_clusters
        if self.weights is not None:
            norms = self.series.norms * self.weights
            squares = norms * norms
        if self.labels.size < MANY_LABELS:
            return np.bincount(self.labels, minlength=n), np.bincount(
                self.labels, squares, minlength=n
            )
        from ...host import shapes

        counted = np.zeros(n, np.int64), np.zeros(n)
        shapes.count_members(self.labels, squares, *counted)
        return counted

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
            values[uncertain] = run(self._of_clusters(uncertain), engine=REFERENCE).values
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
        """The aligned members of a cluster, centred unless they are short."""
        n, weights = self.series.n_timepoints, self.weights
        flat, rows = self.series.flat.astype(bool), []
        for member in np.flatnonzero(self.labels == cluster).tolist():
            shift, row = int(self.shifts[member]), np.zeros(self.series.values.shape[1:])
            if abs(shift) < n:
                values = self.series.values[member]
                row[:, max(0, shift) : n + min(0, shift)] = values[
                    :, max(0, -shift) : n - max(0, shift)
                ]
            if self.centered:
                # a constant channel centred is rounding, unless it moved beside zeros
                row[flat[member] & (shift == 0)] = 0.0
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
    rounding = PRODUCT_UNITS * FLOAT64_UNIT * np.sqrt(values[0] * squares)
    # the certified vector has a residual and roundings of its own
    certified = LEAST_RESIDUAL * values[0] + rounding
    return float((residuals[0] + rounding + certified) / gap + CERTIFIED_ERROR)


class Centers(NamedTuple):
    """The centres of a tile.

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
    """Fixed numbers without pattern, so that no eigenvector is likely to be orthogonal to them."""
    k = np.arange(1, n + 1)
    numbers = np.sin(k * k * 0.7310585786300049 + k)
    numbers.flags.writeable = False
    return numbers


def scaled_center(vectors: np.ndarray, centered: bool) -> np.ndarray:
    """Scale vectors of norm 1 to the norm of a centre: that of a z-normalised series, or 1."""
    return vectors * np.sqrt(vectors.shape[-1]) if centered else vectors
