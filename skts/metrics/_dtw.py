"""Dynamic time warping as functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..base import check_series
from ..engines import DTWMatrix, DTWPath, Series, run

__all__ = ["dtw", "dtw_path", "pairwise_dtw"]


def dtw(x: ArrayLike, y: ArrayLike, *, engine: str | None = None) -> float:
    """Dynamic time warping distance of two series.

    The square root of the least sum of squared differences over all warping paths, which match
    first with first point, last with last, and never step back.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.

    Returns
    -------
    float
        The distance, in the units of the data.

    Raises
    ------
    ValueError
        If a series is empty, has NaN inside or infinity, or the channels differ.

    See Also
    --------
    dtw_path : The path along with the distance.
    pairwise_dtw : All distances between two sets.

    References
    ----------
    .. [1] Bachmann, Trogant, Freytag. "GPU-beschleunigte Time-Warping-Distanzen", section 2.

    Examples
    --------
    >>> from skts.metrics import dtw
    >>> dtw([0, 1, 2, 2], [0, 0, 1, 2])
    0.0
    >>> dtw([0, 0], [3, 4])
    5.0
    """
    left, right = _check_two([x], [y], ("x", "y"))
    return float(run(DTWMatrix(left, right), engine=engine, n_jobs=1)[0, 0])


def dtw_path(x: ArrayLike, y: ArrayLike, *, engine: str | None = None) -> tuple[np.ndarray, float]:
    """Best warping path of two series, and the distance along it.

    Of equally good paths the one is returned that, from the end backwards, prefers the diagonal
    step, then a step back in `x`.

    Parameters
    ----------
    x, y : array-like of shape (n_timepoints,) or (n_channels, n_timepoints)
        Two series, of any lengths and the same number of channels.
    engine : str or None, default None
        An engine that computes paths; "auto" finds one.

    Returns
    -------
    path : ndarray of shape (n_steps, 2), int64
        Matched time points of `x` and `y`, from (0, 0) to the last of both.
    distance : float
        As `dtw` returns it.

    Raises
    ------
    ValueError
        As `dtw` does.

    Notes
    -----
    Memory grows with n_y sqrt(n_x), not with n_x n_y: rows between kept ones are filled in twice.

    Examples
    --------
    >>> from skts.metrics import dtw_path
    >>> path, distance = dtw_path([0, 1, 2, 2], [0, 0, 1, 2])
    >>> path.tolist()
    [[0, 0], [0, 1], [1, 2], [2, 3], [3, 3]]
    >>> distance
    0.0
    """
    path, distance = run(DTWPath(*_check_two([x], [y], ("x", "y"))), engine=engine, n_jobs=1)
    return path, distance


def pairwise_dtw(
    X: ArrayLike,
    Y: ArrayLike | None = None,
    *,
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> np.ndarray:
    """Dynamic time warping distances between all series of two sets, or within one.

    Parameters
    ----------
    X : array-like of shape (n_samples_X, n_timepoints) or (n_samples_X, n_channels, n_timepoints)
        Series; or a list of arrays, each one series, of any lengths.
    Y : array-like or None, default None
        A second set in one of these forms; None compares `X` with itself, each pair once.
    engine : str or None, default None
        "auto", "numba", "cupy" or another registered engine; None takes the configured one.
    n_jobs : int or None, default None
        Threads on the CPU; None is all that Numba was given.
    verbose : int, default 0
        1 shows a progress bar.

    Returns
    -------
    ndarray of shape (n_samples_X, n_samples_Y)
        Square roots of accumulated squared differences, computed in float64.

    Raises
    ------
    ValueError
        If a series is empty, has NaN inside or infinity, or the channels differ.
    MemoryBudgetError
        If the matrix is larger than the memory of the machine.

    Examples
    --------
    >>> from skts.metrics import pairwise_dtw
    >>> pairwise_dtw([[0, 1, 2], [0, 2, 2], [5, 5, 5]])
    array([[0.        , 1.        , 7.07106781],
           [1.        , 0.        , 6.55743852],
           [7.07106781, 6.55743852, 0.        ]])
    """
    if Y is None:
        rows = cols = check_series(X)
    else:
        rows, cols = _check_two(X, Y, ("X", "Y"))
    return run(DTWMatrix(rows, cols), engine=engine, n_jobs=n_jobs, verbose=verbose)


def _check_two(a: ArrayLike, b: ArrayLike, names: tuple[str, str]) -> tuple[Series, Series]:
    left, right = check_series(a, input_name=names[0]), check_series(b, input_name=names[1])
    if left.n_channels != right.n_channels:
        raise ValueError(
            f"{names[0]} has {left.n_channels} channels where {names[1]} has {right.n_channels}."
        )
    return left, right
