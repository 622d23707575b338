"""Sums over aligned members of clusters, from which centres follow without the members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from .centers import center_space, generic_vector, scaled_center
from .distances import Assignment
from .eigenvectors import choose_shape, leading_shape
from .shapes import Shapes

__all__ = ["MemberParts", "ShapeMoments"]

#: Values of members that are aligned at a time.
ALIGNED_AT_ONCE = 2**20
#: Points up to which all eigenvectors are found; beyond, the leading ones by iteration.
SMALL = 256
#: The power of two of a cluster without members.
NOTHING = -(2**20)


class MemberParts(NamedTuple):
    """The parts of aligned members along their centres.

    Attributes
    ----------
    squares, sums : ndarray of shape (n_clusters,)
        Sums of their squares, and of the parts themselves, divided by a power of two.
    counts : ndarray of shape (n_clusters,), int64
        Number of the members.
    exponents : ndarray of shape (n_clusters,), int64
        The power of two.
    """

    squares: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    exponents: np.ndarray

    @classmethod
    def of(cls, shapes: Shapes, found: Assignment, n_clusters: int) -> Self:
        """Return those of some series.

        Parameters
        ----------
        shapes : Shapes
            The members.
        found : Assignment
            Their centres.
        n_clusters : int
            Number of clusters.
        """
        labels = found.labels
        exponents = _largest_powers(np.full(n_clusters, NOTHING), shapes, labels)
        powers = np.maximum(_powers(shapes) - exponents[labels], -1000)
        # beside the largest of its cluster a part may vanish
        with np.errstate(under="ignore"):
            parts = np.ldexp((1 - found.distances) * shapes.norms, powers)
            squares = parts * parts
        return cls(
            np.bincount(labels, squares, n_clusters),
            np.bincount(labels, parts, n_clusters),
            np.bincount(labels, minlength=n_clusters),
            exponents,
        )


@dataclass(frozen=True, eq=False)
class ShapeMoments:
    """Sums over the aligned members that clusters have had so far.

    Members are aligned, and centred channel by channel, as in `SBDCenters`; those of a cluster are
    divided by one power of two, that of the largest.

    Parameters
    ----------
    products : ndarray of shape (n_clusters, n, n)
        Sum of the products of all pairs of points of a member, channels end to end.
    sums : ndarray of shape (n_clusters, n)
        Sum of the members.
    counts : ndarray of shape (n_clusters,), int64
        Number of the members.
    exponents : ndarray of shape (n_clusters,), int64
        The power of two.
    n_channels : int
        Channels.
    centered : bool
        Whether members are centred; short series are not.
    """

    products: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    exponents: np.ndarray
    n_channels: int
    centered: bool

    @classmethod
    def none(cls, centers: np.ndarray, *, centered: bool) -> Self:
        """Return those of clusters that have had no member.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_channels, n_timepoints)
            The centres, for their shape.
        centered : bool
            Whether members are centred.
        """
        k, n_channels, n = len(centers), centers.shape[1], centers[0].size
        return cls(
            np.zeros((k, n, n)), np.zeros((k, n)), np.zeros(k, np.int64),
            np.full(k, NOTHING), n_channels, centered,
        )  # fmt: skip

    @classmethod
    def along(cls, centers: np.ndarray, parts: MemberParts, *, centered: bool) -> Self:
        """Return those of members that are known by their parts along their centres alone.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_channels, n_timepoints)
            The centres.
        parts : MemberParts
            Of the members of each.
        centered : bool
            Whether members are centred.
        """
        flat = centers.reshape(len(centers), -1)
        norms = np.sqrt(np.einsum("ij,ij->i", flat, flat))
        units = flat / np.where(norms > 0, norms, 1.0)[:, np.newaxis]
        products = units[:, :, np.newaxis] * units[:, np.newaxis]
        products *= parts.squares[:, np.newaxis, np.newaxis]
        sums = parts.sums[:, np.newaxis] * units
        return cls(products, sums, parts.counts, parts.exponents, centers.shape[1], centered)

    def joined(self, shapes: Shapes, found: Assignment) -> ShapeMoments:
        """Add members.

        Parameters
        ----------
        shapes : Shapes
            More members, as wide as the centres.
        found : Assignment
            Their centres, and how they are aligned.

        Returns
        -------
        ShapeMoments
            Of all members.
        """
        exponents = _largest_powers(self.exponents, shapes, found.labels)
        change = np.maximum(self.exponents - exponents, -1000)
        products = np.ldexp(self.products, 2 * change[:, np.newaxis, np.newaxis])
        sums = np.ldexp(self.sums, change[:, np.newaxis])
        powers = np.maximum(_powers(shapes) - exponents[found.labels], -1000)
        n_rows = max(1, ALIGNED_AT_ONCE // sums.shape[1])
        for cluster in range(len(sums)):
            members = np.flatnonzero((found.labels == cluster) & (shapes.norms > 0))
            for first in range(0, members.size, n_rows):
                some = members[first : first + n_rows]
                rows = np.ldexp(
                    self._aligned(shapes.take(some), found.shifts[some]), powers[some, np.newaxis]
                )
                products[cluster] += rows.T @ rows
                sums[cluster] += rows.sum(axis=0)
        counts = self.counts + np.bincount(found.labels, minlength=len(sums))
        return ShapeMoments(products, sums, counts, exponents, self.n_channels, self.centered)

    def centers(self, which: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Find centres, as `SBDCenters` defines them, of all members so far.

        Where the sum of the members does not tell the sign of a centre, it is that of the centre
        before.

        Parameters
        ----------
        which : ndarray of int
            Numbers of the clusters.
        before : ndarray of shape (n_clusters, n_channels, n_timepoints)
            All centres before.

        Returns
        -------
        ndarray of the shape of `before`
            Those of other clusters are as they were.
        """
        values = before.copy()
        for cluster in which.tolist():
            found = self._center(cluster, before[cluster].ravel())
            values[cluster] = scaled_center(found, self.centered).reshape(before.shape[1:])
        return values

    def _center(self, cluster: int, before: np.ndarray) -> np.ndarray:
        """A centre of norm 1."""
        products, total = self.products[cluster], self.sums[cluster]
        count = max(2, int(self.counts[cluster]))

        def dense() -> tuple[np.ndarray, np.ndarray]:
            values, vectors = np.linalg.eigh(products)
            return values[::-1], vectors.T[::-1]

        def member(number: int) -> np.ndarray:
            # rows of the products lie where the members do
            return before if number == 0 else products[(number - 1) % len(products)]

        if len(products) <= SMALL:
            return choose_shape(*dense(), total, count, member)
        guess = self._center_space(generic_vector(len(total))[np.newaxis])[0]
        return leading_shape(
            lambda vectors: vectors @ products, total, guess, count, dense=dense, member=member
        )

    def _aligned(self, shapes: Shapes, shifts: np.ndarray) -> np.ndarray:
        """Members moved by their shifts, one a row, and centred."""
        values, n = shapes.values, shapes.n_timepoints
        times = np.arange(n) - shifts[:, np.newaxis]
        rows = np.take_along_axis(values, times.clip(0, n - 1)[:, np.newaxis], axis=2)
        rows = np.where(((times >= 0) & (times < n))[:, np.newaxis], rows, 0.0)
        if self.centered:
            # a constant channel centred is rounding, unless it moved beside zeros
            constant = shapes.flat.astype(bool) & (shifts == 0)[:, np.newaxis]
            rows[constant] = 0.0
        return self._center_space(rows.reshape(len(rows), -1))

    def _center_space(self, vectors: np.ndarray) -> np.ndarray:
        return center_space(vectors, self.n_channels, self.centered)


def _largest_powers(exponents: np.ndarray, shapes: Shapes, labels: np.ndarray) -> np.ndarray:
    """The powers of two of clusters, with more members."""
    exponents = exponents.copy()
    sized = shapes.norms > 0
    np.maximum.at(exponents, labels[sized], _powers(shapes)[sized])
    return exponents


def _powers(shapes: Shapes) -> np.ndarray:
    """The power of two that each series was divided by."""
    if shapes.exponents is None:
        return np.zeros(len(shapes), np.int64)
    return shapes.exponents.astype(np.int64)
