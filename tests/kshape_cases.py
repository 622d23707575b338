"""Small cases of k-Shape that are hard to decide: repeats, ties, degenerate and nearly so."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skts import KShapeClusterer
from skts.engines.families.kshape.centers import LARGEST_ERROR, Centers
from skts.engines.numba import NumbaEngine

KINDS = (
    "noise",
    "walks",
    "small integers",
    "signs",
    "spikes",
    "noisy spikes",
    "edges of ties",
    "edges of ties with centers",
    "shifted repeats",
    "two shapes",
    "opposites",
    "nearly constant",
    "constant",
    "offset",
    "nearly equal",
    "near ties",
    "orthogonal",
    "mixed scales",
    "periodic",
)


def series(rng, kind, n, channels, length):
    """Series of one kind, (n, channels, length)."""
    shape = n, channels, length
    X = rng.normal(size=shape)
    t = np.arange(length)
    if kind == "walks":
        X = X.cumsum(axis=2)
    elif kind == "small integers":
        X = rng.integers(-2, 3, shape).astype(float)
    elif kind == "signs":
        X = rng.choice([-1.0, 1.0], shape)
    elif kind == "spikes":
        X = np.zeros(shape)
        X[np.arange(n), :, rng.integers(0, length, n)] = 1.0
    elif kind == "noisy spikes":
        X *= 10.0 ** rng.uniform(-10, -8)
        X[np.arange(n), :, rng.integers(0, length, n)] += rng.choice([1.0, 1.0, -1.0, 2.0], (n, 1))
    elif kind == "edges of ties":
        X = np.zeros(shape)
        X[np.arange(n), :, length // 2] = 1.0
    elif kind == "shifted repeats":
        moves = rng.integers(-2, 3, n)
        X = np.array([np.roll(X[i % 3], s, axis=1) for i, s in enumerate(moves)])
    elif kind == "two shapes":
        X = X[rng.integers(0, min(n, 2), n)]
    elif kind == "opposites":
        X = X[np.arange(n) // 2] * np.where(np.arange(n) % 2, -1.0, 1.0)[:, None, None]
    elif kind == "nearly constant":
        X = 1.0 + X * 10.0 ** rng.integers(-16, -8, (n, 1, 1))
    elif kind == "constant":
        X = np.ones(shape) * rng.integers(-1, 3, (n, channels, 1))
        X[0] += rng.normal(size=shape[1:])
    elif kind == "offset":
        X = X * rng.choice([1e-6, 1e-3, 1.0]) + 1e8
    elif kind == "nearly equal":
        X = X[:1] + 10.0 ** -rng.integers(7, 17) * X
    elif kind == "near ties":
        # correlations that differ by about the tolerance
        X = rng.integers(-1, 2, shape) + 1e-9 * rng.normal(size=shape)
    elif kind == "orthogonal":
        size = channels * length
        basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
        X = basis[rng.permutation(size)[np.arange(n) % size]].reshape(shape)
        X = X * (1 + 10.0 ** -rng.integers(5, 16) * rng.normal(size=(n, 1, 1)))
    elif kind == "mixed scales":
        X = X * 2.0 ** rng.integers(-300, 300, (n, 1, 1))
    elif kind == "periodic":
        phases = rng.integers(0, 4, (n, channels, 1))
        X = np.sign(np.sin((t + phases) * np.pi / 2 + 0.1)) + rng.choice([0, 1e-9, 1e-3]) * X
    return np.ascontiguousarray(X)


def edges(rng, k, channels, length, error=None):
    """Centres whose largest values differ by the tolerance but for little."""
    centers = rng.uniform(-1, 0.5, (k, channels, length))
    centers[1:] = centers[0] if k > 1 and rng.random() < 0.5 else centers[1:]
    for center in centers:
        a, b = rng.choice(length, 2, replace=False) if length > 1 else (0, 0)
        center[:, [a, b]] = 1.0
        for _ in range(20):
            # what an NCC with a spike in all channels is, in units of the centre
            z = center - center.mean(axis=1, keepdims=True) if length > 2 else center
            z = z / (np.sqrt(np.mean(z * z, axis=1, keepdims=True)) if length > 2 else 1.0)
            short = z[:, a].sum() - z[:, b].sum() - 1e-9 * np.sqrt(channels) * np.linalg.norm(z)
            center[:, b] += short / channels * np.abs(center[:, a] / z[:, a])
        error = rng.choice([0.0, 1e-16, 1e-15, 1e-13]) if error is None else error
        center[:, b] += error * rng.uniform(-1, 1)
    return centers


def case(seed):
    """Series (an array or a list) and parameters, by number."""
    rng = np.random.default_rng([20261122, seed])
    kind = KINDS[seed % len(KINDS)]
    n = int(rng.choice([1, 2, 3, 5, 8, 13, 40]))
    channels = int(rng.choice([1, 1, 1, 2, 3]))
    length = int(rng.choice([1, 2, 3, 4, 5, 7, 12, 16, 33, 48, 65, 90]))
    X = series(rng, kind, n, channels, length)
    if rng.random() < 0.2:
        X = X * 2.0 ** int(rng.integers(-100, 100))
    k = int(rng.integers(1, min(n, 6) + 1))
    init = rng.choice(["random", "series", "plusplus", "array"])
    options = {
        "n_clusters": k,
        "init": str(init),
        "n_init": int(rng.choice([1, 2, 4])),
        "max_iter": int(rng.choice([1, 2, 5, 30])),
        "tol": float(rng.choice([0.0, 0.0, 0.0, 1e-9, 1e-3, 0.1])),
        "normalize": bool(rng.random() < 0.5),
        "random_state": int(rng.integers(1000)),
    }
    if kind == "edges of ties":
        options |= {"init": edges(rng, k, channels, length), "normalize": False}
    elif kind == "edges of ties with centers":
        # members that are the centre, and spikes so small that they do not move it
        centers = edges(rng, k, channels, length, 1e-10)
        X[:k] = centers
        X[k:] = 1e-12 * (np.arange(length) == length // 2)
        options |= {"init": centers, "normalize": False}
    elif init == "array":
        options["init"] = X[rng.integers(0, n, k)] + rng.choice([0.0, 0.0, 1e-9, 1.0]) * rng.normal(
            size=(k, *X.shape[1:])
        )
    elif length > 1 and rng.random() < 0.25:
        lengths = rng.integers(1, length + 1, n)
        X = [x[:, :size].copy() for x, size in zip(X, lengths, strict=True)]
    if length == 1 < channels:
        X = list(X)  # in an array this is taken as axes that changed places
    return kind, X, options


def fitted(X, options, engine):
    """The model, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* channels of one time point each")
        model = KShapeClusterer(engine=engine, **options).fit(X)
    others = [one for one in caught if one.category is not ConvergenceWarning]
    assert not others, others[0].message
    return model, [str(one.message) for one in caught]


def differences(X, options, engines):
    """Differences of two engines, in words; empty where they agree."""
    (a, said), (b, says) = (fitted(X, options, engine) for engine in engines)
    found = [
        name
        for name in ("labels_", "shifts_", "n_iter_")
        if not np.array_equal(getattr(a, name), getattr(b, name))
    ]
    if said != says:
        found.append(f"warnings {said} {says}")
    if not found:
        if not np.allclose(a.history_, b.history_, rtol=0, atol=2e-9 * len(X)):
            found.append("history_")
        scale = np.sqrt(a.cluster_centers_[0].size)
        if not np.allclose(a.cluster_centers_, b.cluster_centers_, rtol=0, atol=1e-9 * scale):
            found.append("cluster_centers_")
        if not np.array_equal(a.predict(X), b.labels_):
            found.append("predict")
    return found


class NoisyEngine(NumbaEngine):
    """The CPU engine with errors, as large as it may have, in all that is not certified.

    Spectra are off by some 1e-15; centres by as much as they claim to be, and some are not found.
    """

    name = "noisy"

    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(0)

    def _sbd_spectra(self, shapes, start, stop):
        spectra = super()._sbd_spectra(shapes, start, stop)
        size = np.sqrt(np.mean(np.abs(spectra) ** 2, axis=(1, 2), keepdims=True))
        parts = self.rng.uniform(-1, 1, (2, *spectra.shape))
        return spectra + 1e-15 * size * (parts[0] + 1j * parts[1])

    def sbd_centers(self, reduction, tile, cancel):
        values, _ = super().sbd_centers(reduction, tile, cancel)
        flat = values.reshape(len(values), -1)
        norms = np.linalg.norm(flat, axis=1)
        errors = LARGEST_ERROR * self.rng.choice([1e-3, 0.1, 1.0, 1.0], len(values))
        noise = self.rng.normal(size=flat.shape)
        noise *= (0.9 * norms * errors / np.linalg.norm(noise, axis=1))[:, None]
        flat += noise
        # a centre of zeros is only told from one of rounding by the CPU engine
        lost = (self.rng.random(len(values)) < 0.1) | (norms == 0)
        flat[lost], errors[lost] = np.nan, np.inf
        return Centers(flat.reshape(values.shape), errors)
