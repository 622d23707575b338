"""The oracle of k-Shape work: correlations, centres and the whole loop in plain loops."""

from __future__ import annotations

from math import fsum

import numpy as np

from skts.engines import Assignment, ShapeDistances
from skts.engines.families.kshape.centers import Centers

TIE = 1e-9


def shifted(x, shift):
    """x, (n_channels, n), moved to the right by `shift`, with zeros where nothing came."""
    n = x.shape[1]
    out = np.zeros_like(x)
    for t in range(n):
        if 0 <= t - shift < n:
            out[:, t] = x[:, t - shift]
    return out


def ncc(x, c):
    """Normalised correlation at every shift, from 1 - n to n - 1."""
    n = x.shape[1]
    scale = np.sqrt(np.sum(x * x)) * np.sqrt(np.sum(c * c))
    if scale == 0:
        return np.zeros(2 * n - 1)
    return np.array([np.sum(shifted(x, s) * c) / scale for s in range(1 - n, n)])


def sbd(x, c):
    """Distance, and the shift: among those that tie the shortest, then the one to the left."""
    n = x.shape[1]
    values = ncc(x, c)
    best = values.max()
    tied = [s for s, v in zip(range(1 - n, n), values, strict=True) if v >= best - TIE]
    return max(0.0, 1 - best), min(tied, key=lambda s: (abs(s), s))


def pairwise_sbd(X, C):
    """Distances and shifts of all pairs."""
    found = [[sbd(x, c) for c in C] for x in X]
    distances, shifts = np.array(found, float).transpose(2, 0, 1)
    return distances, shifts.astype(np.int32)


def assign(X, C):
    """The first of the nearest centres of each series, with shift and distance."""
    distances, shifts = pairwise_sbd(X, C)
    labels = [next(j for j, d in enumerate(row) if d <= row.min() + TIE) for row in distances]
    rows = range(len(X))
    return np.array(labels, np.int32), shifts[rows, labels], distances[rows, labels]


def without_offset(x):
    """x, (n_channels, n), each channel less its mean; zeros where a channel is constant."""
    out = np.zeros_like(x)
    for c, channel in enumerate(x):
        if np.ptp(channel) > 2.0**-40 * np.abs(channel).max():
            out[c] = channel - fsum(channel) / channel.size
            out[c] -= fsum(out[c]) / channel.size
    return out


def center(members, centered=True):
    """The centre of aligned members, (n_members, n_channels, n): by the whole matrix Q S Q."""
    shape = members.shape[1:]
    if centered:
        members = np.array([without_offset(member) for member in members]).reshape(members.shape)
    A = members.reshape(len(members), shape[0] * shape[1])
    S = np.zeros((A.shape[1], A.shape[1]))
    for a in A:
        S += np.outer(a, a)
    values, vectors = np.linalg.eigh(S)
    if len(A) == 0 or values[-1] <= 0:
        return np.zeros(shape)
    space = vectors[:, values >= values[-1] * (1 - 1e-8)]
    level = 1e-9 * np.sqrt(len(A) * values[-1])
    for direction, least in [(A.sum(axis=0), level), *((a, 1e-9 * np.sqrt(a @ a)) for a in A)]:
        v = space @ (space.T @ direction) if space.shape[1] > 1 else space[:, 0]
        if np.linalg.norm(space.T @ direction) > least:
            break
    v = v / np.sqrt(v @ v)
    for direction, least in [(A.sum(axis=0), level), *((a, 1e-9 * np.sqrt(a @ a)) for a in A)]:
        if abs(v @ direction) > least:
            v = v * np.sign(v @ direction)
            break
    return v.reshape(shape) * (np.sqrt(v.size) if centered else 1.0)


def centers(X, labels, shifts, n_clusters, centered=True):
    """The centre of each cluster."""
    found = []
    for cluster in range(n_clusters):
        members = [shifted(X[i], shifts[i]) for i in range(len(X)) if labels[i] == cluster]
        found.append(center(np.array(members).reshape(-1, *X.shape[1:]), centered))
    return np.array(found)


def of_size_one(x):
    """x, divided by the power of two that brings its largest value to 1/2 or more, but below 1."""
    return np.ldexp(x, -np.frexp(np.abs(x).max())[1])


def normalize(x, short=None):
    """A series, (n_channels, n), z-normalised channel by channel; short ones to unit norm."""
    x = np.asarray(x, float)
    if x.shape[1] < 3 if short is None else short:
        x = of_size_one(x)
        norm = np.sqrt(np.sum(x * x))
        return x / norm if norm > 0 else np.zeros_like(x)
    out = np.zeros_like(x)
    for c, channel in enumerate(x):
        if np.ptp(channel) > 2.0**-500:
            moved = without_offset(of_size_one(channel)[None])[0]
            out[c] = moved / (np.sqrt(np.mean(moved * moved)) or 1.0)
    return out


def k_shape(X, labels, n_clusters, n_iter):
    """So many rounds from given labels: inertia, labels, centres, shifts of each."""
    X = np.array([normalize(x) for x in X])
    centered = X.shape[2] >= 3
    shifts = np.zeros(len(X), int)
    iterates = []
    for _ in range(n_iter):
        found = centers(X, labels, shifts, n_clusters, centered)
        labels, shifts, distances = assign(X, found)
        assert len(set(labels)) == n_clusters, "an empty cluster: not for this loop"
        iterates.append((distances.sum(), labels, found, shifts))
    return iterates


class SBDOracle:
    """Methods of the oracle engine."""

    def sbd_matrix(self, reduction, tile, cancel):
        X, C = reduction.series.values[tile.rows], reduction.centers.values[tile.cols]
        return ShapeDistances(*pairwise_sbd(X, C))

    def sbd_assign(self, reduction, tile, cancel):
        X, C = reduction.series.values[tile.rows], reduction.centers.values
        return Assignment(*assign(X, C))

    def sbd_centers(self, reduction, tile, cancel):
        part = reduction.part(tile)
        X, powers = part.series.values, part.series.exponents
        if powers is not None:
            # as they were, but for one power of two a cluster
            some = np.abs(X).max(axis=(1, 2)) > 0
            for c in set(part.labels):
                own = (part.labels == c) & some
                if own.any():
                    X = np.where(
                        own[:, None, None],
                        np.ldexp(X, (powers - powers[own].max())[:, None, None]),
                        X,
                    )
        found = centers(X, part.labels, part.shifts, part.n_clusters, part.centered)
        return Centers(found, np.zeros(len(found)))
