"""Checks of answers: a sample of each is computed again by plain code, where the user asks for it.

With ``set_config(verify=True)`` `run` hands each answer to the `verify` of its reduction, which
yields a `Check` for each sampled piece of it. Plain code is `skts.engines.host.plain` and NumPy:
it shares nothing with the engines. Values are compared bit by bit where bits are promised, else
within the tolerance that the reduction states. Where an answer is a choice, a sample of what was
not chosen is looked at, too: no certificate of what a search found sees what it lost.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...exceptions import VerificationError

__all__ = ["Check", "Sample", "check_neighbors", "check_value", "verify"]

#: Pieces of an answer that are looked at, at most.
SAMPLE = 16


class Check(NamedTuple):
    """One piece of an answer, and what plain code says.

    Attributes
    ----------
    item : str
        Which piece.
    found, expected : object
        What the engine found, and what plain code did.
    holds : bool
        Whether both agree.
    """

    item: str
    found: Any
    expected: Any
    holds: bool


class Sample:
    """Draws pieces of an answer, the same ones for all work of one kind and shape.

    Parameters
    ----------
    reduction : Reduction
        The work.
    """

    def __init__(self, reduction: Any) -> None:
        name = f"{type(reduction).__name__} {reduction.shape}"
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def __call__(self, count: int, most: int = SAMPLE) -> list[int]:
        """Return up to `most` of the numbers below `count`, ascending; all if these are few."""
        if count <= most:
            return list(range(count))
        return sorted(self.random.choice(count, most, replace=False).tolist())


def verify(reduction: Any, engine: str, answer: Any) -> None:
    """Check a sample of an answer.

    Parameters
    ----------
    reduction : Reduction
        The work.
    engine : str
        Who did it.
    answer : object
        What `run` is about to return.

    Raises
    ------
    VerificationError
        If plain code says otherwise.
    """
    for check in reduction.verify(answer, Sample(reduction)):
        if not check.holds:
            raise VerificationError(
                f"engine={engine!r} is wrong about {check.item} of {type(reduction).__name__} of "
                f"shape {reduction.shape}: it finds {check.found!r}, plain code finds "
                f"{check.expected!r}. Please report this, with the data."
            )


def check_value(item: str, found: Any, expected: Any, tolerance: float = 0.0) -> Check:
    """Compare two numbers, bit by bit or within a tolerance."""
    found, expected = float(found), float(expected)
    same = found == expected or (np.isnan(found) and np.isnan(expected))
    return Check(item, found, expected, bool(same or abs(found - expected) <= tolerance))


def check_neighbors(work: Any, answer: Any, sample: Sample, most: int) -> Iterator[Check]:
    """Check the neighbours of some queries, and that some other candidates are not nearer.

    `work` is a `NeighborsInBatches`; `most` bounds queries, neighbours and other candidates.
    """
    n_candidates = len(work.candidates)
    for query in sample(len(work.queries), most):
        own = -1 if work.excluded is None else int(work.excluded[query])
        distances, indices = answer.distances[query], answer.indices[query]
        keys = list(zip(distances.tolist(), indices.tolist(), strict=True))
        listed = [key for key in keys if key[1] >= 0]
        taken = {index for _, index in listed}
        item = f"the neighbours of query {query}"
        right = listed == sorted(listed) and len(taken) == len(listed) and own not in taken
        right &= all(key == (np.inf, -1) for key in keys[len(listed) :])
        yield Check(item, keys, "different ones, the nearest first", right)
        for place in sample(len(listed), most):
            distance, index = listed[place]
            expected = work.plain_distance(query, index)
            yield check_value(f"the distance of {query} and {index}", distance, expected)
        last = listed[-1] if len(listed) == work.n_neighbors else (np.inf, n_candidates)
        for other in sample(n_candidates, most):
            if other not in taken and other != own:
                key = work.plain_distance(query, other), other
                beyond = work.limit_of(query) < key[0]
                yield Check(f"the last neighbour of query {query}", last, key, beyond or key > last)
