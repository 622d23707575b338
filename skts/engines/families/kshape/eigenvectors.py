"""The leading eigenvector of a cluster's members: block Lanczos iteration, sign and ties."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.constants import NEGLIGIBLE

__all__ = ["LEVEL", "RESIDUAL", "choose_shape", "krylov", "leading_shape"]

#: The largest eigenvalues count as one where they differ by less than this share of the first.
#: see "shape ties" in docs/developer/numerics.rst
DEGENERATE = 1e-8
#: An eigenvector is accepted with this residual, relative to its eigenvalue.
RESIDUAL = 1e-12
#: A certified one with this residual, relative to the distance of the next eigenvalue, too: it is
#: off by no more.
#: see "centres" in docs/developer/numerics.rst
CERTIFIED_ERROR = 1e-11
#: But no residual needs to be less than this, relative to the eigenvalue: products are no better.
LEAST_RESIDUAL = 4e-15
#: A sum of projections is at rounding level below this share of what it could be.
#: see "shape ties" in docs/developer/numerics.rst
LEVEL = 1e-9


def leading_shape(
    apply: Callable[[np.ndarray], np.ndarray],
    total: np.ndarray,
    guess: np.ndarray,
    n_members: int,
    *,
    dense: Callable[[], tuple[np.ndarray, np.ndarray]],
    member: Callable[[int], np.ndarray],
    max_vectors: int = 128,
    restarts: int = 4,
) -> np.ndarray:
    """Find the centre of one cluster, as `SBDCenters` defines it, of norm 1.

    Block Lanczos iteration with full orthogonalisation, from two vectors: the sum of the members,
    and a guess. Started from the sum, the iteration sees of a degenerate eigenspace the sum's
    projection, which is what is asked for.

    Parameters
    ----------
    apply : callable
        Maps vectors, one a row, to Q S Q times them.
    total : ndarray of shape (n,)
        Q times the sum of the members.
    guess : ndarray of shape (n,)
        Q times a second vector to start from, with a share of `generic_vector`.
    n_members : int
        Number of members.
    dense : callable
        Returns the eigenvalues of Q S Q, descending, and their vectors, one a row: asked where the
        residual stays above `RESIDUAL`.
    member : callable
        Maps a number below `n_members` to Q times that member.
    max_vectors : int, default 128
        Largest dimension before a restart.
    restarts : int, default 4
        How often to start anew before `dense` is asked.

    Returns
    -------
    ndarray of shape (n,)
        The centre, or zeros if all members are zeros.
    """
    values, vectors = _dominant(apply, total, guess, max_vectors, restarts) or dense()
    if values.size and values[0] > 0 and not _seen(vectors, values, total, n_members):
        # of a degenerate eigenspace only the projection of the guess was found
        first = _first_seen(vectors[:1], n_members, member)
        if first is not None:
            found = _dominant(apply, first, guess, max_vectors, restarts)
            values, vectors = found or dense()
    return choose_shape(values, vectors, total, n_members, member)


def _dominant(
    apply: Callable[[np.ndarray], np.ndarray],
    first: np.ndarray,
    guess: np.ndarray,
    max_vectors: int,
    restarts: int,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The largest eigenvalues and their vectors, or None where the iteration does not settle."""
    start = [first, guess]
    for _ in range(restarts):
        values, vectors, settled = krylov(apply, np.array(start), max_vectors)
        if settled:
            return values, vectors
        start = list(vectors)
    return None


def _seen(space: np.ndarray, values: np.ndarray, total: np.ndarray, n_members: int) -> bool:
    """Whether the sum of the members has a part in an eigenspace beyond rounding."""
    return _norm(space @ total) > LEVEL * np.sqrt(n_members * float(values[0]))


def _first_seen(
    space: np.ndarray, n_members: int, member: Callable[[int], np.ndarray]
) -> np.ndarray | None:
    """The first member that has a part in an eigenspace beyond rounding."""
    members = (member(number) for number in range(n_members))
    return next((one for one in members if _norm(space @ one) > LEVEL * _norm(one)), None)


def krylov(
    apply: Callable[[np.ndarray], np.ndarray], start: np.ndarray, max_vectors: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Largest eigenvalues within the space that grows from some vectors.

    Returns
    -------
    values, vectors : ndarray
        The largest, descending, and their Ritz vectors, one a row: all that count as one with the
        first, at least two where there are as many.
    settled : bool
        Whether the residuals of those that count as one are small enough.
    """
    n = start.shape[1]
    max_vectors = min(max_vectors, n + len(start))
    basis = np.empty((max_vectors, n))
    matrix = np.zeros((max_vectors, max_vectors))
    block, _ = _orthonormal(start, basis[:0])
    size, steps = 0, 0
    empty = np.empty(0)
    if len(block) == 0:
        return empty, np.empty((0, n)), True
    while True:
        stop = size + len(block)
        basis[size:stop] = block
        image = apply(block)
        inner = basis[:stop] @ image.T
        matrix[:stop, size:stop] = inner
        matrix[size:stop, :stop] = inner.T
        scale = float(np.abs(np.diagonal(matrix[:stop, :stop])).max())
        floor = NEGLIGIBLE * max(scale, _largest(image))
        block, coupling = _orthonormal(image, basis[:stop], floor)
        steps += 1
        exhausted = len(block) == 0
        full = stop + len(block) > max_vectors
        # checks take longer with more vectors
        if exhausted or full or steps % (2 if steps < 16 else 4) == 0:
            values, mixes = np.linalg.eigh((matrix[:stop, :stop] + matrix[:stop, :stop].T) / 2)
            values, mixes = values[::-1], mixes[:, ::-1]
            count = int(np.sum(values >= values[0] * (1 - DEGENERATE))) if values[0] > 0 else 1
            residuals = np.linalg.norm(coupling @ mixes[size:stop, :count], axis=0)
            gap = values[0] - (values[count] if count < stop else 0.0)
            least = min(RESIDUAL * values[0], CERTIFIED_ERROR * gap)
            least = max(least, LEAST_RESIDUAL * values[0])
            settled = exhausted or bool(np.all(residuals <= least))
            if settled or full:
                keep = min(max(count, 2), stop)
                return values[:keep], mixes[:, :keep].T @ basis[:stop], settled
        size = stop


def _largest(vectors: np.ndarray) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).max(initial=0.0))


def _orthonormal(
    vectors: np.ndarray, basis: np.ndarray, least: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors for what some vectors add to a basis, and their coordinates in them.

    Vectors that add less than `least` (by default a rounding of their own norm) are dropped.
    """
    rest = vectors.copy()
    for _ in range(2):
        rest -= (rest @ basis.T) @ basis
    found: list[np.ndarray] = []
    coordinates = np.zeros((len(vectors), len(vectors)))
    for row, vector in enumerate(rest):
        floor = NEGLIGIBLE * _norm(vectors[row]) if least is None else least
        for _ in range(2):
            for which, other in enumerate(found):
                share = float(other @ vector)
                coordinates[which, row] += share
                vector = vector - share * other
        norm = _norm(vector)
        if norm > floor:
            vector = vector / norm
            # a vector that shrinks much here is mostly rounding: not orthogonal yet
            vector -= (basis @ vector) @ basis
            vector /= _norm(vector)
            coordinates[len(found), row] = norm
            found.append(vector)
    return np.array(found).reshape(len(found), vectors.shape[1]), coordinates[: len(found)]


def _norm(vector: np.ndarray) -> float:
    return float(np.sqrt(vector @ vector))


def choose_shape(
    values: np.ndarray,
    vectors: np.ndarray,
    total: np.ndarray,
    n_members: int,
    member: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Pick a centre from eigenvectors, and give it its sign; see `SBDCenters`.

    Parameters
    ----------
    values : ndarray of shape (n_vectors,)
        Eigenvalues, descending: at least those that count as one with the first.
    vectors : ndarray of shape (n_vectors, n)
        Orthonormal eigenvectors, one a row.
    total : ndarray of shape (n,)
        Q times the sum of the members.
    n_members : int
        Their number.
    member : callable
        Maps a number to Q times that member.

    Returns
    -------
    ndarray of shape (n,)
        The centre, of norm 1, or zeros where no eigenvalue is positive.
    """
    if values.size == 0 or not values[0] > 0:
        return np.zeros(total.size)
    space = vectors[values >= values[0] * (1 - DEGENERATE)]
    vector = space[0]

    def direction() -> np.ndarray:
        """The sum of the members, else the first member, that has a part in the eigenspace."""
        if _seen(space, values, total, n_members):
            return total
        first = _first_seen(space, n_members, member)
        return vector if first is None else first

    if len(space) > 1:
        vector = (space @ direction()) @ space
        vector = vector / _norm(vector)
        space = vector[np.newaxis]
    return -vector if vector @ direction() < 0 else vector
