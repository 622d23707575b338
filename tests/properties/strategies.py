"""Series for hypothesis: ordinary numbers, whole numbers, ties, offsets."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

__all__ = ["few", "labelled", "lines", "powers", "series", "sets", "windows"]

#: A few dozen examples, new ones each time; a failure prints what repeats it.
few = settings(
    max_examples=30,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

#: Numbers whose differences have squares in the range of float64: none is tiny but not 0.
numbers = st.one_of(
    st.integers(-9, 9).map(float),
    st.floats(-100, 100).filter(lambda x: x == 0 or abs(x) > 1e-6),
    st.sampled_from([0.1, 0.1 + 2**-56, 1e3, 1e6, -1e6 - 1]),
)
#: Exponents of scales.
powers = st.integers(-400, 400)


def series(least: int = 1, most: int = 20, channels: int = 1) -> st.SearchStrategy[np.ndarray]:
    """One series, of shape (n,) or (n_channels, n)."""
    sizes = st.integers(least, most)
    shapes = sizes.map(lambda n: (n,) if channels == 1 else (channels, n))
    return shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=numbers))


def lines(least: int = 12, most: int = 60) -> st.SearchStrategy[np.ndarray]:
    """A series long enough for windows, from random numbers and with repeats."""

    def make(parts: tuple[int, int, bool]) -> np.ndarray:
        seed, n, repeats = parts
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n) if seed % 3 else rng.integers(0, 4, n).astype(float)
        if repeats:
            x[n // 2 : n // 2 + n // 4] = x[: n // 4]
        return x

    return st.tuples(st.integers(0, 2**31), st.integers(least, most), st.booleans()).map(make)


windows = st.integers(1, 9)


@st.composite
def sets(
    draw: st.DrawFn, least: int = 1, most: int = 7, *, equal: bool = False
) -> list[np.ndarray]:
    """Several series of one channel, of one length or of several."""
    count = draw(st.integers(least, most))
    if equal:
        n = draw(st.integers(1, 16))
        return list(draw(arrays(np.float64, (count, n), elements=numbers)))
    return [draw(series(1, 16)) for _ in range(count)]


@st.composite
def labelled(draw: st.DrawFn, least: int = 4, most: int = 9, points: int = 12) -> tuple:
    """Series of one length and two or three classes, each there at least twice."""
    seed = draw(st.integers(0, 2**31))
    n = draw(st.integers(least, most))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, points))
    if seed % 2:
        X = np.round(X * 2)
    y = rng.integers(0, 2 + seed % 2, n)
    y[:2], y[2:4] = 0, 1
    return X, y
