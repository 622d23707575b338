"""The members of a cluster as their centre needs them: sums, products with vectors, rows."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ...families.kshape.centers import SBDCenters
from . import sbd

__all__ = ["FewMembers", "Members", "few_bytes", "members_of"]

#: Of at most so many points the aligned members are written down, by NumPy: their products are
#: then those of a small matrix, and no kernel needs to be compiled.
FEW = 1 << 13


class Members:
    """Aligned members of a cluster, read where they lie by kernels.

    Parameters
    ----------
    reduction : SBDCenters
        The work.
    members : ndarray of int64
        Which series are members.
    cancel : ndarray of shape (1,), uint8
        A product that finds it set ends early.
    """

    def __init__(self, reduction: SBDCenters, members: np.ndarray, cancel: np.ndarray) -> None:
        shapes, weights = reduction.series, reduction.weights
        # only what is centred can be a constant that centring leaves nothing of
        flat = shapes.flat if reduction.centered else np.zeros(shapes.flat.shape, np.uint8)
        weights = np.ones(len(shapes)) if weights is None else weights
        self._known = shapes.values, flat, weights
        self._members, self._shifts, self._cancel = members, reduction.shifts, cancel
        self._shape = shapes.values.shape[1:]

    def sum(self) -> np.ndarray:
        """The sum of all, of shape (n_channels * n_timepoints,)."""
        sums = np.zeros(self._shape)
        sbd.member_sums(*self._known, self._members, self._shifts, sums)
        return sums.ravel()

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """S, the sum of the outer products of members, times vectors, one a row."""
        lanes = np.ascontiguousarray(vectors).reshape(len(vectors), *self._shape)
        out = np.zeros(lanes.shape)
        sbd.gram_product(*self._known, self._members, self._shifts, lanes, out, self._cancel)
        return out.reshape(vectors.shape)

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Some of the members, one a row."""
        out = np.empty((stop - start, *self._shape))
        sbd.aligned(*self._known, self._members[start:stop], self._shifts, out)
        return out.reshape(len(out), -1)


class FewMembers:
    """The same of few points: a matrix. Parameters are those of `Members`, but for `cancel`."""

    def __init__(self, reduction: SBDCenters, members: np.ndarray) -> None:
        shapes, shifts = reduction.series, reduction.shifts[members]
        n = shapes.n_timepoints
        wide = np.zeros((members.size, shapes.n_channels, 3 * n))
        wide[:, :, n : 2 * n] = shapes.values[members]
        windows = sliding_window_view(wide, n, axis=2)
        found = windows[np.arange(members.size), :, n - shifts]
        if reduction.centered:
            flat = (shapes.flat[members] != 0) & (shifts == 0)[:, np.newaxis]
            np.copyto(found, 0.0, where=flat[:, :, np.newaxis])
        if reduction.weights is not None:
            found *= reduction.weights[members][:, np.newaxis, np.newaxis]
        self._rows = found.reshape(members.size, -1)

    def sum(self) -> np.ndarray:
        """See `Members.sum`."""
        return self._rows.sum(axis=0)

    def product(self, vectors: np.ndarray) -> np.ndarray:
        """See `Members.product`."""
        return (vectors @ self._rows.T) @ self._rows

    def rows(self, start: int, stop: int) -> np.ndarray:
        """See `Members.rows`."""
        return self._rows[start:stop]


def members_of(
    reduction: SBDCenters, cluster: int, cancel: np.ndarray
) -> Members | FewMembers | None:
    """The members of a cluster in the form for their number; None if there are none."""
    members = reduction.members(cluster)
    if members.size == 0:
        return None
    if members.size * reduction.series.values[0].size <= FEW:
        return FewMembers(reduction, members)
    return Members(reduction, members, cancel)


def few_bytes(reduction: SBDCenters) -> int:
    """Bytes held at most for members that are written down, zeros on both sides included."""
    return 40 * min(FEW, reduction.series.values.size)
