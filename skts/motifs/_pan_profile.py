"""The matrix profiles of a series for many lengths of the window."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Real
from time import monotonic
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from .._parameters import N_JOBS, checks_arguments, warn_user
from .._scalars import takes_plain
from ..engines import Join, Lengths, Nearest, check_size, run
from ._matrix_profile import APART, one_line
from ._records import PanProfile
from ._search import exclusion_of
from ._windows import window_lengths

__all__ = ["pan_matrix_profile"]


@takes_plain
@checks_arguments(
    {
        "a": ["array-like"],
        "windows": ["array-like"],
        "exclusion": APART,
        "normalize": ["boolean"],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "on_interrupt": [StrOptions({"raise", "return"})],
        "precision": [StrOptions({"auto", "float32", "float64"})],
        "engine": [str, None],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
    }
)
def pan_matrix_profile(
    a: ArrayLike,
    windows: ArrayLike,
    *,
    exclusion: float | None = None,
    normalize: bool = True,
    time_limit: float | None = None,
    on_interrupt: Literal["raise", "return"] = "raise",
    precision: Literal["auto", "float32", "float64"] = "auto",
    engine: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PanProfile:
    """Find the nearest neighbours of all windows of a series, for many lengths of the window.

    The profile of each length is that of `matrix_profile`, divided by ``sqrt(2 window)``: then the
    distances of windows of different lengths can be compared. Those of z-normalised windows lie
    between 0 and ``sqrt(2)``, and windows that do not correlate are at 1.

    Parameters
    ----------
    a : array-like of shape (n_timepoints,)
        The series. A window that holds NaN or infinity has no neighbour, and is the neighbour of
        none. A memory map is not copied.
    windows : array-like of shape (n_lengths,)
        The lengths of the window, such as ``range(20, 200)``, in any order: numbers of points, or
        fractions of the series, rounded up. Equal ones count once.
    exclusion : int, float or None, default None
        Windows that start at most this many points apart are no neighbours; a float is a fraction
        of the window, rounded up, and None means a quarter.
    normalize : bool, default True
        Whether windows are z-normalised. Otherwise distances are plain Euclidean ones; they, too,
        are divided by ``sqrt(2 window)``.
    time_limit : float or None, default None
        Seconds after which no further length is begun. The first is computed in any case, and a
        length that was begun is completed.
    on_interrupt : {"raise", "return"}, default "raise"
        What follows Ctrl-C: an exception as everywhere, or a warning and the lengths that are done,
        if there are any.
    precision : {"auto", "float32", "float64"}, default "auto"
        "auto" is exact: the search may run in float32, with known error, and every answer is
        certified in float64. "float32" leaves out the certificate, "float64" searches in float64.
    engine : str or None, default None
        "auto", "numba", "cupy", or another registered engine; None takes the configuration's.
    n_jobs : int or None, default None
        Threads on the CPU; None takes all that Numba has.
    verbose : int, default 0
        1 shows a progress bar for each length that takes long.

    Returns
    -------
    PanProfile
        Distances and neighbours of all windows of all lengths, the best motif and discord of each
        length and of all, and which lengths were computed.

    Raises
    ------
    ValueError
        If `a` is no 1-D array, a length is longer than the series, or there is no length.
    MemoryBudgetError
        If the result, 16 bytes for each start and length, is larger than the memory of this
        machine. This is known before any work is done.

    Warns
    -----
    UserWarning
        On Ctrl-C with ``on_interrupt="return"``.

    See Also
    --------
    matrix_profile : The profile of one length.
    skts.MotifFinder : Motifs and discords of one or several lengths, with all their occurrences.
    skts.plotting.PanProfileDisplay : The distances as a picture.

    Notes
    -----
    The lengths are computed breadth first [1]_: the shortest, the longest, the one between them,
    then those halfway between two that are done. So a search that stops early has seen the whole
    range, at a coarser step. On a GPU, lengths of a long series that are close to each other are
    searched together: pairs that are far at one length are so at somewhat longer ones [2]_.

    References
    ----------
    .. [1] Madrid, Imani, Mercer, Zimmerman, Shakibay, Keogh. "Matrix Profile XX: Finding and
       Visualizing Time Series Motifs of All Lengths using the Matrix Profile". ICBK 2019.
    .. [2] Linardi, Zhu, Palpanas, Keogh. "Matrix Profile X: VALMOD - Scalable Discovery of
       Variable-Length Motifs in Data Series". SIGMOD 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.motifs import pan_matrix_profile
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> x[200:240] = 2 * x[50:90] + 1
    >>> pan = pan_matrix_profile(x, windows=range(10, 61, 10))
    >>> pan.windows[pan.motif_distances < 1e-6]
    array([10, 20, 30, 40])
    >>> pan.discord.window
    50
    """
    line = one_line(a, "a")
    size = line.points.size
    lengths = np.unique(window_lengths(windows, [line.points], "windows"))
    n_windows = size - int(lengths[0]) + 1
    check_size(16 * lengths.size * n_windows, (lengths.size, n_windows))
    pan = _empty(lengths, n_windows)
    exclusions = np.array([exclusion_of(exclusion, int(length), size) for length in lengths])
    together = Lengths(lengths, exclusions, set(lengths.tolist()))
    begin, n_begun = monotonic(), 0
    done: list[int] = []
    try:
        with _Writer(pan, done) as writer:
            for row in _breadth_first(lengths.size):
                if time_limit is not None and n_begun and monotonic() - begin >= time_limit:
                    break
                n_begun += 1
                length = int(lengths[row])
                if length in together.waiting:
                    work = Join(
                        line,
                        None,
                        length,
                        exclusion=int(exclusions[row]),
                        normalize=bool(normalize),
                        precision=precision,
                        lengths=together,
                    )
                    found = run(work, engine=engine, n_jobs=n_jobs, verbose=verbose)
                    answers = found.lengths or {length: Nearest(found.distances, found.indices)}
                    together.waiting.difference_update(answers)
                    writer.write(answers)
                writer.finish(row)
    except KeyboardInterrupt:
        if not done or on_interrupt == "raise":
            raise
        warn_user(
            f"Interrupted: {len(done)} of {lengths.size} lengths are done; `computed` of the "
            "result names them."
        )
    return _keep(pan, done)


class _Writer:
    """Writes profiles into a record, while the next ones are computed.

    Parameters
    ----------
    pan : PanProfile
        The record.
    done : list of int
        Gets the rows that are written and asked for.
    """

    def __init__(self, pan: PanProfile, done: list[int]) -> None:
        self.pan, self.done = pan, done
        self._worker = ThreadPoolExecutor(1)
        self._written: dict[int, Future[None]] = {}
        self._asked: deque[int] = deque()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._settle(0)
        finally:
            self._worker.shutdown(cancel_futures=True)

    def write(self, answers: Mapping[int, Nearest]) -> None:
        """Begin to write the profiles of some lengths."""
        for length, (distances, indices) in answers.items():
            row = int(np.searchsorted(self.pan.windows, length))
            self._written[row] = self._worker.submit(
                _write, self.pan, row, distances[:, 0], indices[:, 0]
            )

    def finish(self, row: int) -> None:
        """Take notice that a row was asked for, once that before is written."""
        self._asked.append(row)
        self._settle(1)

    def _settle(self, n_open: int) -> None:
        """Wait until all rows that were asked for are written, but for so many."""
        while len(self._asked) > n_open:
            row = self._asked.popleft()
            try:
                self._written.pop(row).result()
            except BaseException:
                # those after it would leave a gap
                self._asked.clear()
                raise
            self.done.append(row)


def _breadth_first(n: int) -> Iterator[int]:
    """Yield the numbers below n: the first, the last, and then the middles of what lies between."""
    yield from range(n)[:1]
    if n > 1:
        yield n - 1
    between = [(0, n - 1)]
    while between:
        deeper = []
        for low, high in between:
            if high - low > 1:
                middle = (low + high) // 2
                yield middle
                deeper += [(low, middle), (middle, high)]
        between = deeper


def _empty(lengths: np.ndarray, n_windows: int) -> PanProfile:
    """A record without any profile, whose distances and indices are still to be written."""
    n = lengths.size

    def pairs() -> tuple[np.ndarray, np.ndarray]:
        return np.full(n, np.inf), np.full((n, 2), -1, np.int64)

    return PanProfile(
        lengths,
        np.empty(0, np.int64),
        np.empty((n, n_windows)),
        np.empty((n, n_windows), np.int64),
        *pairs(),
        *pairs(),
    )


def _write(pan: PanProfile, row: int, distances: np.ndarray, indices: np.ndarray) -> None:
    """Write the profile of a length, and the best motif and discord in it."""
    scale, size = math.sqrt(2 * int(pan.windows[row])), distances.size
    scaled, places = pan.distances[row, :size], pan.indices[row, :size]
    np.divide(distances, scale, out=scaled)
    places[:] = indices
    pan.distances[row, size:], pan.indices[row, size:] = np.inf, -1
    nearest = int(np.argmin(distances))
    if indices[nearest] < 0:
        return
    pan.motif_distances[row] = scaled[nearest]
    pan.motif_indices[row] = sorted((nearest, int(indices[nearest])))
    farthest = int(np.argmax(distances))
    if indices[farthest] < 0:
        farthest = int(np.argmax(np.where(indices < 0, -np.inf, distances)))
    pan.discord_distances[row] = scaled[farthest]
    pan.discord_indices[row] = farthest, indices[farthest]


def _keep(pan: PanProfile, done: list[int]) -> PanProfile:
    """Return what is done, and clear the rest, of which an interrupt may have left a part."""
    other = np.ones(pan.windows.size, bool)
    other[done] = False
    for values in (pan.distances, pan.motif_distances, pan.discord_distances):
        values[other] = np.inf
    for places in (pan.indices, pan.motif_indices, pan.discord_indices):
        places[other] = -1
    return pan._replace(computed=pan.windows[done])
