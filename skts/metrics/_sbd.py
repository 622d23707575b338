"""The shape-based distance as functions."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from .._distance_rows import SHORT
from .._parameters import N_JOBS, checks_arguments
from .._scalars import takes_plain
from ..engines import SBDMatrix, Series, ShapeDistances, Shapes, run
from ._arguments import check_pair, check_sets

__all__ = ["ShapeDistance", "pairwise_sbd", "sbd"]

_OPTIONS: dict[str, list[Any]] = {"normalize": ["boolean"], "engine": [str, None]}
_SETS: dict[str, list[Any]] = {
    "return_shifts": ["boolean"],
    "n_jobs": N_JOBS,
    "verbose": ["verbose"],
}

#: A correlation up to this may be 0; above the tie of shifts and all rounding.
_NO_CORRELATION = 2e-9
#: Distances that are looked at together.
_PAIRS_AT_ONCE = 2**16


class ShapeDistance(NamedTuple):
    """Distance and shift, as `sbd` returns them.

    Attributes
    ----------
    distance : float
        Between 0 and 2.
    shift : int
        How many time points the first series moves to the right to match the second.

    Examples
    --------
    >>> from skts.metrics import sbd
    >>> sbd([0, 1, 0, 0], [0, 0, 1, 0], normalize=False).shift
    1
    """

    distance: float
    shift: int


@takes_plain
@checks_arguments(_OPTIONS)
def sbd(
    x: ArrayLike, y: ArrayLike, *, normalize: bool = True, engine: str | None = None
) -> ShapeDistance:
    """Compute the shape-based distance of two series, and the shift that brings them together.

    1 minus the largest cross-correlation over all shifts, divided by the norms of both series. A
    shifted series is not wrapped around: zeros fill the places that it leaves.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series with the same number of channels, which share one shift; the shorter is filled
        with zeros after normalisation.
    normalize : bool, default True
        Whether each channel is z-normalised first, as k-Shape does; where both series have fewer
        than 3 points, they are scaled to norm 1 instead. A constant channel becomes zeros.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    distance : float
        Between 0 (one is a shifted multiple of the other) and 2; 1 where a norm is 0.
    shift : int
        How many time points `x` moves to the right to match `y`. If several correlations are within
        1e-9 of the largest, the shortest of their shifts is taken, of two the one to the left.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ.

    See Also
    --------
    pairwise_sbd : All distances between two sets.

    References
    ----------
    .. [1] Wang, Song, Xiao, Li, Li. "Accelerating k-Shape Time Series Clustering Algorithm Using
       GPU", section II.B, equations 1 to 4.

    Examples
    --------
    >>> from skts.metrics import sbd
    >>> distance, shift = sbd([0, 0, 1, 2, 1, 0, 0, 0], [0, 0, 0, 0, 1, 2, 1, 0], normalize=False)
    >>> round(distance, 12), shift
    (0.0, 2)
    """
    left, right = check_pair(x, y)
    found = run(_work(left, right, normalize), engine=engine, n_jobs=1)
    return ShapeDistance(float(found.distances[0, 0]), int(found.shifts[0, 0]))


@overload
def pairwise_sbd(  # numpydoc ignore=GL08
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = ...,
    *,
    normalize: bool = ...,
    return_shifts: Literal[False] = ...,
    engine: str | None = ...,
    n_jobs: int | None = ...,
    verbose: int = ...,
) -> np.ndarray: ...
@overload
def pairwise_sbd(  # numpydoc ignore=GL08
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = ...,
    *,
    normalize: bool = ...,
    return_shifts: Literal[True],
    engine: str | None = ...,
    n_jobs: int | None = ...,
    verbose: int = ...,
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def pairwise_sbd(  # numpydoc ignore=GL08
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = ...,
    *,
    normalize: bool = ...,
    return_shifts: bool,
    engine: str | None = ...,
    n_jobs: int | None = ...,
    verbose: int = ...,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]: ...
@takes_plain
@checks_arguments(_OPTIONS | _SETS)
def pairwise_sbd(
    X: ArrayLike | list[ArrayLike],
    Y: ArrayLike | list[ArrayLike] | None = None,
    *,
    normalize: bool = True,
    return_shifts: bool = False,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Compute shape-based distances between all series of two sets, or within one.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_timepoints) or (n_samples_X, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    Y : array-like or None, default None
        A second set in one of these forms; None compares `X` with itself.
    normalize : bool, default True
        Whether each channel is z-normalised first; see `sbd`.
    return_shifts : bool, default False
        Whether to return the shifts too.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    distances : ndarray of shape (n_samples_X, n_samples_Y)
        Distances as `sbd` returns them, whatever the lengths of the other series.
    shifts : ndarray of shape (n_samples_X, n_samples_Y), int32
        How far series of `X` move to the right; only with `return_shifts`.

    Raises
    ------
    ValueError
        If a series is empty, or holds infinity, or NaN before its last value; if the numbers of
        channels differ.
    MemoryBudgetError
        If the matrix is larger than the memory of the machine.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.metrics import pairwise_sbd
    >>> X = [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, -1, 0]]
    >>> distances, shifts = pairwise_sbd(X, normalize=False, return_shifts=True)
    >>> distances.round(12)
    array([[0., 0., 1.],
           [0., 0., 1.],
           [1., 1., 0.]])
    >>> shifts[0]
    array([0, 2, 0], dtype=int32)
    """
    left, right = check_sets(X, Y)
    given: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "verbose": verbose}
    found = run(_work(left, right, normalize), **given)
    _compare_shorter(found, left, right, normalize, given)
    return (found.distances, found.shifts) if return_shifts else found.distances


def _compare_shorter(
    found: ShapeDistances, left: Series, right: Series, normalize: bool, given: dict[str, Any]
) -> None:
    """Compare pairs of series anew to which the width of longer ones makes a difference.

    That width has shifts by which two shorter series no longer meet: a correlation of 0, which is
    above that of their own shifts if all of these are negative. Correlations of series that sum to
    0 add up to 0, so that none of them needs this once it is z-normalised; but what is short enough
    for norm 1 depends on the width.
    """
    width = max(left.n_timepoints, right.n_timepoints)
    lengths = np.union1d(left.lengths, right.lengths)
    for length in lengths[lengths < (min(width, SHORT) if normalize else width)]:
        for rows, cols in (
            (left.lengths == length, right.lengths <= length),
            (left.lengths < length, right.lengths == length),
        ):
            others = np.flatnonzero(cols)
            step = max(1, _PAIRS_AT_ONCE // max(1, others.size))
            every = np.flatnonzero(rows)
            for start in range(0, every.size, step):
                block = np.ix_(every[start : start + step], others)
                anew = found.distances[block] > (-np.inf if normalize else 1 - _NO_CORRELATION)
                if not anew.any():
                    continue
                which = block[0].ravel()[anew.any(axis=1)], others[anew.any(axis=0)]
                one, other = (
                    Series(np.ascontiguousarray(side.values[who, :, :length]), side.lengths[who])
                    for side, who in zip((left, right), which, strict=True)
                )
                place = np.ix_(*which)
                found.distances[place], found.shifts[place] = run(
                    _work(one, other, normalize), **given
                )


def _work(left: Series, right: Series, normalize: bool) -> SBDMatrix:
    """Normalise both sides, and fill them to one width."""
    width = max(left.n_timepoints, right.n_timepoints)
    options: dict[str, Any] = {"normalize": normalize, "short": width < SHORT, "width": width}
    series = Shapes.normalized(left, **options)
    return SBDMatrix(series, series if left is right else Shapes.normalized(right, **options))
