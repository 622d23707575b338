"""The ways in which shapelets of a node are joined, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

__all__ = ["FOLDS", "WAYS", "choose_ways"]

#: How a further shapelet may join those of a node.
WAYS = ("and", "or")
#: Parts of the training series, of which each is predicted by a tree of the others, at most.
FOLDS = 5


def choose_ways(
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    judge: Callable[[np.ndarray, np.ndarray], tuple[float, float]],
) -> tuple[str, ...]:
    """Choose whether shapelets are joined, by predictions of series that a tree has not seen.

    Parameters
    ----------
    folds : iterable of (ndarray, ndarray)
        Training series, and others, of each part.
    judge : callable
        Grows trees of some series, without and with joined shapelets, and returns how good each of
        them predicts others.

    Returns
    -------
    tuple of {"and", "or"}
        Both ways, or none: where both are equally good, and where there are no folds.
    """
    single, joined = 0.0, 0.0
    for train, test in folds:
        found = judge(train, test)
        single, joined = single + found[0], joined + found[1]
    return WAYS if joined > single else ()
