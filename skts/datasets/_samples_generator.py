"""Artificial series whose truth is known."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal, overload

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from .._parameters import checks_arguments
from .._scalars import takes_plain

__all__ = [
    "make_cylinder_bell_funnel",
    "make_planted_motifs",
    "make_random_walk",
    "make_shifted_shapes",
    "make_two_patterns",
    "make_warped_shapes",
]

RandomState = int | np.random.RandomState | None


def _at_least(lowest: int) -> list[Interval]:
    return [Interval(Integral, lowest, None, closed="left")]


_non_negative = [Interval(Real, 0, None, closed="left")]
#: Parameters of all generators of noisy series with classes.
_labelled = {
    "n_samples": _at_least(1),
    "noise": _non_negative,
    "shuffle": ["boolean"],
    "random_state": ["random_state"],
}


# The parts that several generators share -----------------------------------------------------


def _balanced_labels(
    n_samples: int, n_classes: int, shuffle: bool, rng: np.random.RandomState
) -> np.ndarray:
    """0, 1, ..., n_classes - 1, 0, 1, ...: class sizes differ by at most one."""
    y = np.arange(n_samples, dtype=np.int64) % n_classes
    if shuffle:
        rng.shuffle(y)
    return y


class _Shapes:
    """Random smooth curves on [0, 1]: five harmonics under a Hann window, deviation 1.

    They can be evaluated anywhere, so that a warped copy needs no interpolation, and are 0 at both
    ends, so that a shifted copy has no step.
    """

    n_harmonics = 5

    def __init__(self, n_shapes: int, n_timepoints: int, rng: np.random.RandomState) -> None:
        self.coefficients = rng.standard_normal((n_shapes, 2 * self.n_harmonics))
        self.grid = np.linspace(0.0, 1.0, n_timepoints)
        self.scale = np.ones(n_shapes)
        self.scale = self.on_grid().std(axis=1)

    def __call__(self, which: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Shape ``which[i]`` at the places ``u[i]``."""
        weights = self.coefficients[which]
        curves = np.zeros_like(u)
        for harmonic in range(1, self.n_harmonics + 1):
            angle = 2 * np.pi * harmonic * u
            cosine, sine = weights[:, [2 * harmonic - 2]], weights[:, [2 * harmonic - 1]]
            curves += cosine * np.cos(angle) + sine * np.sin(angle)
        return np.sin(np.pi * u) ** 2 * curves / self.scale[which, np.newaxis]

    def on_grid(self) -> np.ndarray:
        """Every shape at the regular time points, of shape (n_shapes, n_timepoints)."""
        n_shapes = len(self.coefficients)
        return self(np.arange(n_shapes), np.tile(self.grid, (n_shapes, 1)))


# The generators ------------------------------------------------------------------------------


@takes_plain
@checks_arguments(
    {
        "n_samples": _at_least(1),
        "n_timepoints": _at_least(1),
        "n_channels": [*_at_least(1), None],
        "drift": [Interval(Real, None, None, closed="neither")],
        "scale": _non_negative,
        "random_state": ["random_state"],
    },
)
def make_random_walk(
    n_samples: int = 100,
    n_timepoints: int = 128,
    *,
    n_channels: int | None = None,
    drift: float = 0.0,
    scale: float = 1.0,
    random_state: RandomState = None,
) -> np.ndarray:
    """Make random walks: sums of independent Gaussian steps.

    ``x(t) = x(t - 1) + drift + scale * e(t)`` with ``x(0) = 0`` before the first point and e(t)
    standard normal: the data on which speed is measured in much of the literature [1]_.

    Parameters
    ----------
    n_samples : int, default 100
        Number of walks.
    n_timepoints : int, default 128
        Points of each walk.
    n_channels : int or None, default None
        Channels of each walk, independent of each other; None makes a 2-D array.
    drift : float, default 0.0
        Mean of a step.
    scale : float, default 1.0
        Standard deviation of a step.
    random_state : int, RandomState instance or None, default None
        Source of randomness; an int makes the result the same on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_timepoints) or (n_samples, n_channels, n_timepoints)
        The walks.

    References
    ----------
    .. [1] R. Agrawal, C. Faloutsos and A. Swami, "Efficient similarity search in sequence
       databases", FODO, 69-84, 1993.

    Examples
    --------
    >>> from skts.datasets import make_random_walk
    >>> make_random_walk(3, 50, random_state=0).shape
    (3, 50)
    >>> make_random_walk(3, 50, n_channels=2, random_state=0).shape
    (3, 2, 50)
    """
    rng = check_random_state(random_state)
    channels = () if n_channels is None else (n_channels,)
    steps = rng.normal(drift, scale, size=(n_samples, *channels, n_timepoints))
    return np.cumsum(steps, axis=-1)


@takes_plain
@checks_arguments({**_labelled, "n_timepoints": _at_least(8)})
def make_cylinder_bell_funnel(
    n_samples: int = 90,
    n_timepoints: int = 128,
    *,
    noise: float = 1.0,
    shuffle: bool = True,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make the cylinder-bell-funnel problem of Saito: a plateau, a rise or a fall in noise.

    With n time points, t = 1 ... n, a an integer drawn from [n/8, n/4], b - a one from
    [n/4, 3n/4], h and every e(t) standard normal, and [a, b](t) = 1 inside the interval, else
    0 [1]_::

        cylinder (0)    x(t) = (6 + h) [a, b](t)                   + noise e(t)
        bell     (1)    x(t) = (6 + h) [a, b](t) (t - a) / (b - a) + noise e(t)
        funnel   (2)    x(t) = (6 + h) [a, b](t) (b - t) / (b - a) + noise e(t)

    For n = 128 these are Saito's intervals, [16, 32] and [32, 96].

    Parameters
    ----------
    n_samples : int, default 90
        Number of series; class sizes differ by at most one.
    n_timepoints : int, default 128
        Points of each series, at least 8.
    noise : float, default 1.0
        Standard deviation of the noise.
    shuffle : bool, default True
        Shuffle the classes; otherwise they alternate 0, 1, 2, 0, ...
    random_state : int, RandomState instance or None, default None
        Source of randomness; an int makes the result the same on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_timepoints)
        The series.
    y : ndarray of shape (n_samples,)
        The class: 0 cylinder, 1 bell, 2 funnel.

    References
    ----------
    .. [1] N. Saito, "Local feature extraction and its applications using a library of bases", PhD
       thesis, Yale University, 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.datasets import make_cylinder_bell_funnel
    >>> X, y = make_cylinder_bell_funnel(30, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((30, 128), [10, 10, 10])
    """
    rng = check_random_state(random_state)
    y = _balanced_labels(n_samples, 3, shuffle, rng)
    n, column = n_timepoints, (n_samples, 1)
    a = rng.randint(n // 8, n // 4 + 1, size=column)
    b = a + rng.randint(n // 4, 3 * n // 4 + 1, size=column)
    height = 6.0 + rng.standard_normal(column)

    t = np.arange(1, n + 1)
    rise = (t - a) / (b - a)
    profile = np.choose(y[:, np.newaxis], [np.ones_like(rise), rise, 1.0 - rise])
    X = np.where((t >= a) & (t <= b), height * profile, 0.0)
    return X + noise * rng.standard_normal((n_samples, n)), y


@takes_plain
@checks_arguments({**_labelled, "n_timepoints": _at_least(16)})
def make_two_patterns(
    n_samples: int = 120,
    n_timepoints: int = 128,
    *,
    noise: float = 1.0,
    shuffle: bool = True,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make the two-patterns problem of Geurts: two steps in noise, each up or down.

    Each series is Gaussian noise that two patterns of lengths l1 and l2 overwrite, one after the
    other [1]_. A pattern of length l is, for t = 0 ... l - 1::

        up    -5 for t < l / 2,  +5 from there on
        down  +5 for t < l / 2,  -5 from there on

    and the class is the pair (first, second): 0 (down, down), 1 (up, down), 2 (down, up),
    3 (up, up). The lengths are integers drawn from [n/8, n/4], where n is `n_timepoints` (for
    n = 128 that is [16, 32]); the place of the pair is drawn uniformly among those where both fit
    without overlap. The class shows in the order of the patterns, not in the values at one place.

    Parameters
    ----------
    n_samples : int, default 120
        Number of series; class sizes differ by at most one.
    n_timepoints : int, default 128
        Points of each series, at least 16.
    noise : float, default 1.0
        Standard deviation of the noise around the patterns; the patterns have none.
    shuffle : bool, default True
        Shuffle the classes; otherwise they alternate 0, 1, 2, 3, 0, ...
    random_state : int, RandomState instance or None, default None
        Source of randomness; an int makes the result the same on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_timepoints)
        The series.
    y : ndarray of shape (n_samples,)
        The class, 0 to 3.

    References
    ----------
    .. [1] P. Geurts, "Contributions to decision tree induction: bias/variance tradeoff and time
       series classification", PhD thesis, University of Liège, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.datasets import make_two_patterns
    >>> X, y = make_two_patterns(40, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((40, 128), [10, 10, 10, 10])
    """
    rng = check_random_state(random_state)
    y = _balanced_labels(n_samples, 4, shuffle, rng)
    X = noise * rng.standard_normal((n_samples, n_timepoints))
    lengths = rng.randint(n_timepoints // 8, n_timepoints // 4 + 1, size=(n_samples, 2))
    for series, two_lengths, label in zip(X, lengths, y, strict=True):
        starts = _starts_without_overlap(two_lengths, n_timepoints, rng)
        for start, length, is_up in zip(starts, two_lengths, (label & 1, label & 2), strict=True):
            step = np.where(2 * np.arange(length) < length, -5.0, 5.0)
            series[start : start + length] = step if is_up else -step
    return X, y


def _starts_without_overlap(
    lengths: np.ndarray, n_timepoints: int, rng: np.random.RandomState
) -> np.ndarray:
    """Ascending starts of consecutive pieces: the free points are spread at random."""
    free = n_timepoints - lengths.sum()
    before = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return np.sort(rng.randint(0, free + 1, size=len(lengths))) + before


@takes_plain
@checks_arguments(
    {
        "n_timepoints": _at_least(4),
        "window": _at_least(4),
        "n_motifs": _at_least(1),
        "n_occurrences": _at_least(2),
        "noise": _non_negative,
        "random_state": ["random_state"],
    },
)
def make_planted_motifs(
    n_timepoints: int = 2000,
    *,
    window: int = 100,
    n_motifs: int = 1,
    n_occurrences: int = 2,
    noise: float = 0.02,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make one long random walk in which noisy copies of smooth patterns are planted.

    Occurrence j of motif k starts at p = positions[k, j]; inside it, for i = 0 ... window - 1::

        x(p + i) = level + patterns[k, i] + noise * s * e(i)

    with e(i) standard normal and ``s = sqrt(window / 6)``, which is the standard deviation of every
    pattern and, on average, that of a random walk inside a window: a copy stands out by its shape
    alone. The level is such that the first point of the copy (without noise) continues the walk,
    and the walk goes on from the last point of the copy. Occurrences do not overlap. Planting known
    motifs in a random walk is the test of exact motif discovery [1]_.

    Parameters
    ----------
    n_timepoints : int, default 2000
        Points of the series, at least ``window * n_motifs * n_occurrences``.
    window : int, default 100
        Points of a pattern, at least 4.
    n_motifs : int, default 1
        Number of different patterns.
    n_occurrences : int, default 2
        Copies of each pattern, at least 2.
    noise : float, default 0.02
        Standard deviation of the noise on a copy over that of the pattern.
    random_state : int, RandomState instance or None, default None
        Source of randomness; an int makes the result the same on every call.

    Returns
    -------
    X : ndarray of shape (1, n_timepoints)
        The series.
    positions : ndarray of shape (n_motifs, n_occurrences)
        First point of each occurrence, ascending within a motif.
    patterns : ndarray of shape (n_motifs, window)
        The patterns, each of mean 0.

    References
    ----------
    .. [1] A. Mueen, E. Keogh, Q. Zhu, S. Cash and B. Westover, "Exact discovery of time series
       motifs", SDM, 473-484, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.datasets import make_planted_motifs
    >>> X, positions, patterns = make_planted_motifs(noise=0.0, random_state=0)
    >>> first, second = (X[0, p : p + 100] for p in positions[0])
    >>> bool(np.allclose(first - first.mean(), second - second.mean()))
    True
    """
    n_pieces = n_motifs * n_occurrences
    if n_pieces * window > n_timepoints:
        raise ValueError(
            f"{n_motifs} motifs with {n_occurrences} occurrences of {window} points need at least "
            f"{n_pieces * window} time points, but n_timepoints is {n_timepoints}."
        )
    rng = check_random_state(random_state)
    deviation = np.sqrt(window / 6.0)
    patterns = _Shapes(n_motifs, window, rng).on_grid() * deviation
    patterns -= patterns.mean(axis=1, keepdims=True)

    starts = _starts_without_overlap(np.full(n_pieces, window), n_timepoints, rng)
    positions = np.sort(rng.permutation(starts).reshape(n_motifs, n_occurrences), axis=1)
    inside = positions[..., np.newaxis] + np.arange(window)

    steps = rng.standard_normal(n_timepoints)
    steps[inside[..., 1:]] = np.diff(patterns)[:, np.newaxis]
    x = np.cumsum(steps)
    x[inside] += noise * deviation * rng.standard_normal(inside.shape)
    return x[np.newaxis], positions, patterns


@overload
def make_shifted_shapes(  # numpydoc ignore=GL08
    n_samples: int = ...,
    n_timepoints: int = ...,
    *,
    n_shapes: int = ...,
    max_shift: int | float = ...,
    boundary: str = ...,
    noise: float = ...,
    shuffle: bool = ...,
    return_shapes: Literal[False] = ...,
    random_state: RandomState = ...,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def make_shifted_shapes(  # numpydoc ignore=GL08
    n_samples: int = ...,
    n_timepoints: int = ...,
    *,
    n_shapes: int = ...,
    max_shift: int | float = ...,
    boundary: str = ...,
    noise: float = ...,
    shuffle: bool = ...,
    return_shapes: Literal[True],
    random_state: RandomState = ...,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def make_shifted_shapes(  # numpydoc ignore=GL08
    n_samples: int = ...,
    n_timepoints: int = ...,
    *,
    n_shapes: int = ...,
    max_shift: int | float = ...,
    boundary: str = ...,
    noise: float = ...,
    shuffle: bool = ...,
    return_shapes: bool,
    random_state: RandomState = ...,
) -> (
    tuple[np.ndarray, np.ndarray, np.ndarray]
    | tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
): ...
@takes_plain
@checks_arguments(
    {
        **_labelled,
        "n_timepoints": _at_least(4),
        "n_shapes": _at_least(1),
        "max_shift": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="left"),
        ],
        "boundary": [StrOptions({"circular", "zero"})],
        "return_shapes": ["boolean"],
    },
)
def make_shifted_shapes(
    n_samples: int = 90,
    n_timepoints: int = 128,
    *,
    n_shapes: int = 3,
    max_shift: int | float = 0.25,
    boundary: str = "zero",
    noise: float = 0.1,
    shuffle: bool = True,
    return_shapes: bool = False,
    random_state: RandomState = None,
) -> (
    tuple[np.ndarray, np.ndarray, np.ndarray]
    | tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
):
    """Make copies of a few shapes, each moved in time: clusters for a shift-invariant distance.

    ``X[i, t] = s(t - shifts[i]) + noise * e(t)``, where s is ``shapes[y[i]]``, a random smooth
    curve of standard deviation 1 that is 0 at both ends, e(t) is standard normal and the shift is
    an integer drawn uniformly from -max_shift to max_shift. A positive shift moves the shape to
    later points. Distances that see through this are the subject of [1]_.

    Parameters
    ----------
    n_samples : int, default 90
        Number of series; class sizes differ by at most one.
    n_timepoints : int, default 128
        Points of each series, at least 4.
    n_shapes : int, default 3
        Number of shapes, which are the classes.
    max_shift : int or float, default 0.25
        Largest shift either way: an int in points, below `n_timepoints`; a float below 1 as a
        fraction of `n_timepoints`, rounded down.
    boundary : {"zero", "circular"}, default "zero"
        What enters at one end as the shape leaves at the other: "zero" lets zeros in, "circular"
        the points that left.
    noise : float, default 0.1
        Standard deviation of the noise.
    shuffle : bool, default True
        Shuffle the classes; otherwise they alternate 0, 1, ...
    return_shapes : bool, default False
        Return the shapes too.
    random_state : int, RandomState instance or None, default None
        Source of randomness; an int makes the result the same on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_timepoints)
        The series.
    y : ndarray of shape (n_samples,)
        The shape of each series, 0 to n_shapes - 1.
    shifts : ndarray of shape (n_samples,)
        The shift of each series, in points.
    shapes : ndarray of shape (n_shapes, n_timepoints)
        The shapes before shift and noise; only with ``return_shapes=True``.

    References
    ----------
    .. [1] J. Paparrizos and L. Gravano, "k-Shape: efficient and accurate clustering of time
       series", SIGMOD, 1855-1870, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.datasets import make_shifted_shapes
    >>> X, y, shifts, shapes = make_shifted_shapes(
    ...     noise=0.0, boundary="circular", return_shapes=True, random_state=0
    ... )
    >>> bool(np.array_equal(np.roll(shapes[y[0]], shifts[0]), X[0]))
    True
    """
    points = max_shift if isinstance(max_shift, Integral) else int(max_shift * n_timepoints)
    if points >= n_timepoints:
        raise ValueError(f"max_shift={points} must be below n_timepoints={n_timepoints}.")
    rng = check_random_state(random_state)
    y = _balanced_labels(n_samples, n_shapes, shuffle, rng)
    shapes = _Shapes(n_shapes, n_timepoints, rng).on_grid()
    shifts = rng.randint(-points, points + 1, size=n_samples).astype(np.int64)

    source = np.arange(n_timepoints) - shifts[:, np.newaxis]
    X = shapes[y[:, np.newaxis], source % n_timepoints]
    if boundary == "zero":
        X[(source < 0) | (source >= n_timepoints)] = 0.0
    X += noise * rng.standard_normal(X.shape)
    return (X, y, shifts, shapes) if return_shapes else (X, y, shifts)


@overload
def make_warped_shapes(  # numpydoc ignore=GL08
    n_samples: int = ...,
    n_timepoints: int = ...,
    *,
    n_shapes: int = ...,
    warp: float = ...,
    noise: float = ...,
    shuffle: bool = ...,
    return_warps: Literal[False] = ...,
    random_state: RandomState = ...,
) -> tuple[np.ndarray, np.ndarray]: ...
@overload
def make_warped_shapes(  # numpydoc ignore=GL08
    n_samples: int = ...,
    n_timepoints: int = ...,
    *,
    n_shapes: int = ...,
    warp: float = ...,
    noise: float = ...,
    shuffle: bool = ...,
    return_warps: Literal[True],
    random_state: RandomState = ...,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
@overload
def make_warped_shapes(  # numpydoc ignore=GL08
    n_samples: int = ...,
    n_timepoints: int = ...,
    *,
    n_shapes: int = ...,
    warp: float = ...,
    noise: float = ...,
    shuffle: bool = ...,
    return_warps: bool,
    random_state: RandomState = ...,
) -> tuple[np.ndarray, np.ndarray] | tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
@takes_plain
@checks_arguments(
    {
        **_labelled,
        "n_timepoints": _at_least(4),
        "n_shapes": _at_least(1),
        "warp": _non_negative,
        "return_warps": ["boolean"],
    },
)
def make_warped_shapes(
    n_samples: int = 90,
    n_timepoints: int = 128,
    *,
    n_shapes: int = 3,
    warp: float = 0.5,
    noise: float = 0.1,
    shuffle: bool = True,
    return_warps: bool = False,
    random_state: RandomState = None,
) -> tuple[np.ndarray, np.ndarray] | tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make copies of a few shapes, each with its own smooth warp of time: classes for DTW.

    ``X[i, t] = s(w(t)) + noise * e(t)``, where s is a random smooth curve on [0, 1] of standard
    deviation 1, one per class, e(t) is standard normal and w is a strictly increasing map of the
    time points onto [0, 1]; with a `warp` of some 10 and more, steps of it may be too small for
    float64. Its slope is proportional to ``exp(warp * g)``, the form of smooth monotone functions
    in [1]_, with g a sum of three cosines of random normal weight, of variance 1 at the ends and
    1/2 on average::

        w(u) = G(u) / G(1),   G(u) = integral from 0 to u of exp(warp * g(v)) dv
        g(v) = (c1 cos(pi v) + c2 cos(2 pi v) + c3 cos(3 pi v)) / sqrt(3)

    Parameters
    ----------
    n_samples : int, default 90
        Number of series; class sizes differ by at most one.
    n_timepoints : int, default 128
        Points of each series, at least 4.
    n_shapes : int, default 3
        Number of shapes, which are the classes.
    warp : float, default 0.5
        Strength of the warp, at most 50; 0 means none.
    noise : float, default 0.1
        Standard deviation of the noise.
    shuffle : bool, default True
        Shuffle the classes; otherwise they alternate 0, 1, ...
    return_warps : bool, default False
        Return the warps and the unwarped shapes too.
    random_state : int, RandomState instance or None, default None
        Source of randomness; an int makes the result the same on every call.

    Returns
    -------
    X : ndarray of shape (n_samples, n_timepoints)
        The series.
    y : ndarray of shape (n_samples,)
        The shape of each series, 0 to n_shapes - 1.
    warps : ndarray of shape (n_samples, n_timepoints)
        ``w(t)`` of each series, from 0 to 1; only with ``return_warps=True``.
    shapes : ndarray of shape (n_shapes, n_timepoints)
        The shapes without warp and noise; only with ``return_warps=True``.

    References
    ----------
    .. [1] J. O. Ramsay, "Estimating smooth monotone functions", Journal of the Royal Statistical
       Society B 60(2), 365-375, 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from skts.datasets import make_warped_shapes
    >>> X, y, warps, shapes = make_warped_shapes(return_warps=True, random_state=0)
    >>> X.shape, warps.shape, shapes.shape
    ((90, 128), (90, 128), (3, 128))
    >>> bool(np.all(np.diff(warps) > 0))
    True
    """
    if warp > 50:
        raise ValueError(f"warp={warp!r} is more than 50: slopes would be beyond all numbers.")
    rng = check_random_state(random_state)
    y = _balanced_labels(n_samples, n_shapes, shuffle, rng)
    shapes = _Shapes(n_shapes, n_timepoints, rng)

    harmonics = np.arange(1, 4)[:, np.newaxis]
    weights = rng.standard_normal((n_samples, 3)) / np.sqrt(3.0)
    slopes = np.exp(warp * (weights @ np.cos(np.pi * harmonics * shapes.grid)))
    warps = np.zeros((n_samples, n_timepoints))
    np.cumsum(slopes[:, 1:] + slopes[:, :-1], axis=1, out=warps[:, 1:])  # the trapezoid rule
    warps /= warps[:, -1:]

    X = shapes(y, warps)
    X += noise * rng.standard_normal(X.shape)
    return (X, y, warps, shapes.on_grid()) if return_warps else (X, y)
