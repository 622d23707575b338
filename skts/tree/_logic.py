"""The ways in which shapelets of a node are joined, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.model_selection import StratifiedKFold

__all__ = ["WAYS", "choose_ways"]

#: How a further shapelet may join those of a node.
WAYS = ("and", "or")
#: Parts of the training series, of which each is classified by a tree of the others, at most.
_FOLDS = 5


def choose_ways(
    labels: np.ndarray, judge: Callable[[np.ndarray, np.ndarray], tuple[float, float]]
) -> tuple[str, ...]:
    """Choose whether shapelets are joined, by accuracy on series that a tree has not seen.

    Parameters
    ----------
    labels : ndarray of shape (n_series,), int64
        The classes of the training series.
    judge : callable
        Grows trees of some series, without and with joined shapelets, and returns the weight of
        other series that each of them classifies rightly.

    Returns
    -------
    tuple of {"and", "or"}
        Both ways, or none: where both are right equally often, and where a class has one series.
    """
    count = min(_FOLDS, int(np.bincount(labels).min()))
    if count < 2:
        return ()
    # the same parts whatever draws the candidates
    folds = StratifiedKFold(count, shuffle=True, random_state=0)
    single, joined = 0.0, 0.0
    for train, test in folds.split(np.zeros(len(labels)), labels):
        found = judge(train, test)
        single, joined = single + found[0], joined + found[1]
    return WAYS if joined > single else ()
